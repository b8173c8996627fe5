"""`jit` with XLA options for jaxsim's programs: on a CPU they halve compile time and make the step faster."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax

# A step is some hundred small fusions. The MLIR emitters of XLA's CPU backend take twice as long to compile them as the
# older ones, and YNNPACK, which runs sums and elementwise work, takes longer than a loop for these sizes.
# It keeps matrix products: XLA expands a small one to a thousand lines and more, which run slower. Kernels that
# are shared among cores take longer too: whole worlds are (`sharding.use_cores`).
OPTIONS = {
    "cpu": {
        "xla_cpu_use_fusion_emitters": False,
        "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
        "xla_cpu_multi_thread_eigen": False,
    },
    # Loops and branches within captured graphs: the device evaluates their conditions, not the host.
    "gpu": {
        "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,DYNAMIC_SLICE_FUSION,"
        "CONDITIONAL,WHILE",
    },
}


def compiler_options(platform: str | None = None) -> dict[str, Any]:
    """Return options for `jax.jit(..., compiler_options=...)` on a platform.

    The platform is "cpu", "gpu", "tpu", by default JAX's own. The result is empty if no option helps. Options that the
    installed XLA does not support are left out.
    """
    return dict(known_options(platform or jax.default_backend()))


@lru_cache
def known_options(platform: str) -> tuple[tuple[str, Any], ...]:
    return tuple(item for item in OPTIONS.get(platform, {}).items() if _is_known(platform, *item))


def _is_known(platform: str, name: str, value: Any) -> bool:
    device = jax.local_devices(backend=platform)[0]
    try:
        with jax.default_device(device):
            jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def jit(fun: Callable, **options: Any) -> Callable:
    """Call `jax.jit` with `compiler_options()`; takes the arguments of `jax.jit`.

    `compiler_options` in these arguments take precedence. For the outermost function of a program: JAX refuses compiler
    options within another jitted function.
    """
    chosen = {**compiler_options(), **(options.pop("compiler_options", None) or {})}
    return jax.jit(fun, compiler_options=chosen or None, **options)
