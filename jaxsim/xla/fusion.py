"""Functions that XLA compiles as one kernel of a CPU."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.xla.compat import jax_version, set_xla_metadata

# The newest JAX with which tests of these kernels have passed. With a newer one a separate process tries first.
TESTED_JAX = (0, 12)


def one_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of arrays (any PyTrees) as one kernel when XLA compiles it for a CPU.

    XLA launches each operation of a loop's body separately, which takes 0.1 us; loops within one kernel are machine
    code. XLA compiles small loops in this way, and marks them with the metadata set here (XLA,
    `small_while_loop_hoisting_pass.cc`). These kernels are written by XLA's older emitters, even where other kernels
    use the newer ones. The function closes over no traced arrays, calls no libraries (LAPACK, products of large
    matrices) and has no scatters: XLA refuses them. It is not differentiated: derivatives may drop the results that
    keep its arguments, which crashes the process. Where XLA does not take these kernels, the function itself is
    returned.
    """
    return lambda *args: (_one_kernel if kernels_hold() else lambda f: f)(function)(*args)


def one_kernel_of_tables(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `one_kernel` for arguments of which some may be constants of the program, like large tables.

    XLA moves constants into a kernel and crashes when it then misses the argument. A barrier hides the constants. With
    many small kernels the barrier seemed to cost a tenth of a step.
    """
    return lambda *args: one_kernel(function)(*lax.optimization_barrier(args))


def _one_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    called = jax.jit(function)
    return lambda *args: set_xla_metadata(called(*args), inlineable="false", xla_cpu_small_call="true")


@lru_cache
def kernels_hold() -> bool:
    """Return whether XLA compiles `one_kernel` as this package needs it; a wrong guess would crash the process."""
    return jax_version() <= TESTED_JAX or kernels_survive()


def kernels_survive() -> bool:
    """Return whether a new process that compiles these kernels survives and reports the right numbers."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", f"from {__name__} import attempt_kernels; attempt_kernels()"]
    try:
        return subprocess.run(command, env=environment, capture_output=True, timeout=300).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def attempt_kernels() -> None:
    """Compile a kernel with a loop; raise if a number is wrong."""
    x = jnp.arange(12.0).reshape(3, 4)
    powers = _one_kernel(lambda x: lax.fori_loop(0, 3, lambda _, y: y * x, x))
    np.testing.assert_allclose(jax.jit(powers)(x), x**4, rtol=1e-6)
