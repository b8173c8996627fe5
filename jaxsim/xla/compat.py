"""Features of JAX outside of its compatibility promise, imported only here, each with a fallback.

Without `custom_vmap` its batching rules are not applied; without metadata XLA fuses by its own rules: slower programs,
the same numbers.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.core

# primitives of our own: JAX's guide "How JAX primitives work" uses these
from jax.extend.core import ClosedJaxpr, Primitive
from jax.interpreters import ad, batching, mlir

try:
    from jax.core import eval_jaxpr
except ImportError:

    def eval_jaxpr(jaxpr: Any, consts: Any, *args: Any) -> list:
        """Evaluate `jaxpr` on arrays."""
        from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

        return jaxpr_as_fun(ClosedJaxpr(jaxpr, consts))(*args)


try:
    from jax.interpreters.partial_eval import dce_jaxpr, dce_rules
except ImportError:
    dce_rules: dict[Any, Any] = {}  # unused results are computed

    def dce_jaxpr(jaxpr: Any, *_: Any, **__: Any) -> Any:
        """Return the jaxpr as it is, which reads all its arguments."""
        return jaxpr, [True] * len(jaxpr.invars)


try:
    from jax.custom_batching import custom_vmap  # pyright: ignore[reportAssignmentType]
except ImportError:

    class custom_vmap:
        """The function itself; its rule is not used, so `vmap` treats it as any function."""

        def __init__(self, function: Callable[..., Any]) -> None:
            self.function = function

        def __call__(self, *args: Any) -> Any:
            return self.function(*args)

        def def_vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
            return rule


try:
    from jax.experimental.xla_metadata import set_xla_metadata
except ImportError:

    def set_xla_metadata(x: Any, **_: Any) -> Any:
        """Return `x`, unmarked."""
        return x


try:
    from jax.extend.core import unsafe_am_i_under_a_jit_DO_NOT_USE as is_staging  # pyright: ignore[reportPrivateImportUsage]
except ImportError:

    def is_staging() -> bool:
        """Return whether a function is being traced to a program (`jit`, `scan`, ...), rather than evaluated."""
        return isinstance(jax.lax.add(1, 1), jax.core.Tracer)


def scan_lengths(params: dict[str, Any], operands: int) -> tuple[int, int]:
    """Return the numbers of constants and of carried operands of a scan.

    JAX 0.12.0.1 groups them by a tree.
    """
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].update(range(operands)).unpack()
    return len(list(consts)), len(list(carry))


def jax_version() -> tuple[int, int]:
    """Return the major and minor version of JAX."""
    major, minor, *_ = jax.__version__.split(".")
    return int(major), int(minor)


__all__ = [
    "ClosedJaxpr",
    "Primitive",
    "ad",
    "batching",
    "custom_vmap",
    "dce_jaxpr",
    "dce_rules",
    "eval_jaxpr",
    "is_staging",
    "jax_version",
    "mlir",
    "scan_lengths",
    "set_xla_metadata",
]


def is_checked_by_shard_map(x: Any) -> bool:
    """Return whether a traced array varies between devices within a `jax.shard_map` that checks it (`check_vma`)."""
    aval = jax.typeof(x)
    kind = getattr(aval, "manual_axis_type", None)
    return bool(getattr(aval, "vma", ()) if kind is None else kind.varying)
