"""Functions that XLA keeps apart: not inlined, or one kernel of a CPU."""

from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata

from jaxsim.math.safe import Array


def one_kernel(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function of arrays, which gives an array, as one kernel when XLA compiles it for a CPU.

    XLA starts each operation of a loop's body anew, which takes 0.1 us; loops within one kernel are machine code. It
    compiles small loops so by itself, and what it marks them with is set here (XLA,
    `small_while_loop_hoisting_pass.cc`). The function must really need every argument, whatever its numbers are: XLA
    does not find the buffer of one that it has simplified away, and ends the process. No calls of libraries (LAPACK,
    sorts), which such a kernel cannot make.
    """
    return _called(function, inlineable="false", xla_cpu_small_call="true")


def not_inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arrays (any PyTrees), which XLA calls: nothing in it is fused with what surrounds it."""
    return _called(function, inlineable="false")


def _called(function: Callable[..., Any], **attributes: str) -> Callable[..., Any]:
    called = jax.jit(function)

    def run(*args: Any) -> Any:
        return set_xla_metadata(called(*args), **attributes)

    return run
