"""Systems of small matrices as kernels of a GPU, a warp a matrix: libraries take several launches for each.

The functions of `linalg`, for a GPU; everywhere else, and where a matrix is large, they do what they are told to do
`otherwise`.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import core

from jaxsim.math.safe import Array
from jaxsim.native import launch as kernels
from jaxsim.native.nvrtc import CompilerMissing
from jaxsim.native.source_text import definitions, text
from jaxsim.xla.compat import Primitive, mlir

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
    return matrices_p.bind(*operands, plan=_Plan(name, n, right, otherwise))


matrices_p = Primitive("small_matrices")


@matrices_p.def_impl
def _run(*operands: Array, plan: _Plan) -> Array:
    return jax.jit(partial(matrices_p.bind, plan=plan))(*operands)


@matrices_p.def_abstract_eval
def _shape(*operands: Any, plan: _Plan) -> Any:
    return core.ShapedArray(operands[-1].shape, operands[-1].dtype)


def _elsewhere(*operands: Array, plan: _Plan) -> Array:
    return plan.otherwise(*operands)


def _on_cuda(*operands: Array, plan: _Plan) -> Array:
    dtype = operands[0].dtype
    numbers = memory_of(plan.name, plan.size, plan.right)
    if plan.size > MOST_ROWS or numbers * dtype.itemsize > kernels.SHARED_BYTES or str(dtype) not in kernels.C_NUMBERS:
        return plan.otherwise(*operands)
    count = len(operands[0])
    shape = kernels.lanes_for(plan.size, numbers * dtype.itemsize)
    source = matrices_source(plan.name, plan.size, plan.right, dtype, count, shape)
    how = kernels.Launch(-(-count // shape.worlds), shape.lanes * shape.worlds, numbers * shape.worlds * dtype.itemsize)
    try:
        return kernels.launch(source, "matrices", operands, jax.ShapeDtypeStruct(operands[-1].shape, dtype), how)
    except CompilerMissing:
        return plan.otherwise(*operands)


mlir.register_lowering(matrices_p, mlir.lower_fun(_on_cuda, multiple_results=False), platform="cuda")
mlir.register_lowering(matrices_p, mlir.lower_fun(_elsewhere, multiple_results=False))


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
