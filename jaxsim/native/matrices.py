"""Systems of small matrices as kernels of a GPU, a warp a matrix: libraries take several launches for each.

The functions of `linalg`, for a GPU; everywhere else, and where a matrix is large, they do what they are told to do
`otherwise`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.math.safe import Array
from jaxsim.native import launch as kernels
from jaxsim.native.function import NativeFunction
from jaxsim.native.jaxpr import GPU
from jaxsim.native.source_text import definitions, text

MOST_ROWS = 256  # of registers: a column is in one lane
# of the arguments (count, ...) of each function, numbers of a matrix of n rows with k right-hand sides
OPERANDS = {
    "solve_positive": (("a", "n*n"), ("b", "n*k")),
    "cholesky": (("a", "n*n"),),
    "solve_ltdl": (("ld", "n*n"), ("inverse", "n"), ("x", "n*k")),
    "solve_any": (("a", "n*n"), ("b", "n*k")),
}


class _Plan(NamedTuple):
    """A function of `matrices.cu` for matrices of `size` rows, with `right` right-hand sides."""

    name: str
    size: int
    right: int
    otherwise: Callable[..., Array]


def of_matrices(name: str, otherwise: Callable[..., Array], *operands: Array) -> Array:
    """The function `name` of a batch: matrices (count, n, n), right-hand sides (count, n, k) or (count, n).

    The result is like the last operand. `otherwise` computes the same by JAX.
    """
    n = operands[0].shape[-1]
    last = operands[-1].shape
    right = last[-1] if name != "cholesky" and len(last) == 3 else 1
    plan = _Plan(name, n, right, otherwise)
    return MATRICES.primitive.bind(*operands, plan=plan, worlds=(True,) * len(operands))[0]


def _by_jax(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    full = [x if w else jnp.broadcast_to(x, (count, *x.shape)) for x, w in zip(operands, worlds, strict=True)]
    return [plan.otherwise(*full)]


def _on_cuda(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array] | None:
    dtype = operands[0].dtype
    numbers = memory_of(plan.name, plan.size, plan.right)
    if plan.size > MOST_ROWS or numbers * dtype.itemsize > kernels.SHARED_BYTES or str(dtype) not in kernels.C_NUMBERS:
        return None
    shape = kernels.lanes_for(plan.size, numbers * dtype.itemsize)
    source = matrices_source(plan.name, plan.size, plan.right, dtype, count, shape)
    how = kernels.Launch(-(-count // shape.worlds), shape.lanes * shape.worlds, numbers * shape.worlds * dtype.itemsize)
    full = [x if w else jnp.broadcast_to(x, (count, *x.shape)) for x, w in zip(operands, worlds, strict=True)]
    return [kernels.launch(source, "matrices", full, jax.ShapeDtypeStruct(full[-1].shape, dtype), how)]


MATRICES = NativeFunction(
    name="small_matrices",
    plain=lambda plan, *operands: [plan.otherwise(*(x[None] for x in operands))[0]],
    batched=_by_jax,
    results=lambda _, operands: [operands[-1]],
    programs={GPU: _on_cuda},
    label=lambda plan: f"{plan.name} of small matrices",
)


def memory_of(name: str, n: int, k: int) -> int:
    """Numbers that the lanes of a matrix share."""
    return n * (n + k) if name == "solve_any" else 2 * (-(-(n + 3) // 4) * 4)


def matrices_source(name: str, n: int, k: int, dtype: Any, count: int, shape: kernels.Lanes) -> str:
    """Source of `matrices(operands..., out)` for `count` matrices."""
    operands = OPERANDS[name]
    size = {"n": n, "n*n": n * n, "n*k": n * k}
    parameters = [f"const T* {x}" for x, _ in operands] + ["T* out"]
    given = [f"{x} + (long long)world * {size[s]}" for x, s in operands]
    given += [f"out + (long long)world * {size[operands[-1][1]]}"]
    visit = f"""FUNCTION void visit(int lane, int world, T* memory, {", ".join(parameters)}) {{
  {name}(lane, memory, {", ".join(given)});
}}
"""
    known = definitions({"RIGHT": k})
    body = text(Path(__file__).parent, "matrices.cu")
    entry = kernels.entry_source("matrices", parameters, count, shape, str(memory_of(name, n, k)))
    return kernels.lanes_source(np.dtype(dtype), n, shape) + known + body + visit + entry
