"""Fusion barriers: functions that XLA does not inline, or compiles as one kernel of a CPU."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

from jaxsim.math.safe import Array, xp_of


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


def fusion_barrier(tree: Any) -> Any:
    """`tree`, computed once: on a CPU XLA fuses nothing across this point. Not a barrier for numpy arrays.

    XLA repeats elementwise work, sines and powers included, in every fusion that reads it, and expands its own
    optimization barrier before it fuses. Here values pass through a function that XLA is told not to inline, which
    takes no code and no time: it gives the buffers that it gets.
    """
    leaves, structure = jax.tree.flatten(tree)
    if xp_of(*leaves) is np:
        return tree
    return structure.unflatten(lax.platform_dependent(leaves, cpu=not_inlined(lambda x: x), default=lambda x: x))
