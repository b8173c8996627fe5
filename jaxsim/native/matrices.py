"""Linear algebra of small matrices on a GPU, one kernel for each call: libraries need several launches.

These are the functions of `linalg` on a GPU. On other platforms, and for large matrices, they call `otherwise`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsim.math.safe import Array
from jaxsim.native import launch as kernels
from jaxsim.native import tile_source as tile
from jaxsim.native.function import NativeFunction
from jaxsim.native.jaxpr import GPU, Flat, Operation, Var

MOST_ROWS = 256  # of matrices that kernels solve; larger ones use the library


class Plan(NamedTuple):
    """A function of `systems.cu` for matrices of `size` rows, with `right` right-hand sides."""

    name: str
    size: int
    right: int
    otherwise: Callable[..., Array]


def of_matrices(name: str, otherwise: Callable[..., Array], *operands: Array) -> Array:
    """Return the function `name` of a batch: matrices (count, n, n), right-hand sides (count, n, k) or (count, n).

    The result has the shape of the last operand. `otherwise` computes the same by JAX.
    """
    n = operands[0].shape[-1]
    last = operands[-1].shape
    right = last[-1] if name != "cholesky" and len(last) == 3 else 1
    plan = Plan(name, n, right, otherwise)
    return MATRICES.primitive.bind(*operands, plan=plan, worlds=(True,) * len(operands))[0]


def _by_jax(plan: Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    full = [x if w else jnp.broadcast_to(x, (count, *x.shape)) for x, w in zip(operands, worlds, strict=True)]
    return [plan.otherwise(*full)]


def flat_of(plan: Plan, operands: Sequence[Any]) -> Flat:
    """Return the operations for one matrix, given operands of a batch."""
    inputs = [Var((1, *x.shape[1:]), x.dtype) for x in operands]
    out = Var((1, *operands[-1].shape[1:]), operands[-1].dtype)
    params = {"plan": plan, "worlds": (True,) * len(inputs)}
    return Flat(inputs, [Operation(MATRICES.primitive, params, [*inputs], [out])], [out])


def _on_cuda(plan: Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array] | None:
    if plan.size > MOST_ROWS or str(operands[0].dtype) not in kernels.C_NUMBERS:
        return None
    full = [x if w else jnp.broadcast_to(x, (count, *x.shape)) for x, w in zip(operands, worlds, strict=True)]
    return [x[:, 0] for x in tile.launch(flat_of(plan, full), worlds, count, full)]


MATRICES = NativeFunction(
    name="small_matrices",
    plain=lambda plan, *operands: [plan.otherwise(*(x[None] for x in operands))[0]],
    batched=_by_jax,
    results=lambda _, operands: [operands[-1]],
    programs={GPU: _on_cuda},
    label=lambda plan: f"{plan.name} of small matrices",
)
