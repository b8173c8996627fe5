"""Statements of systems of equations: calls of the functions of `systems.h`."""

import math
from collections.abc import Sequence
from typing import Any

from jaxsim.native.jaxpr import Operation
from jaxsim.native.writer import Buffer, Loop, Targets, Value, Writer


def _call(w: Writer, name: str, sizes: Sequence[Any], arrays: Sequence[Buffer | str], work: float) -> None:
    """Write a call of a function of `systems.h`, which reads and writes these arrays and ends with a wait."""
    w.sync()
    text = ", ".join(["lane", *map(str, sizes), *(b if isinstance(b, str) else b.name for b in arrays)])
    w.line(f"{name}({text});")
    w.epoch += 1
    w.unread.clear()
    for b in arrays:
        if isinstance(b, Buffer):
            b.last = w.epoch
            b.version += 1
    w.loops.append(Loop(math.ceil(work), 10, w.times))


def cholesky(w: Writer, op: Operation, operands: list[Value], _: Targets) -> list[Value]:
    """Write Cholesky factors."""
    (a,), out = operands, op.outputs[0]
    return [w.stored(_factor(w, a, a.shape[-1]), out.shape)]


def _factor(w: Writer, a: Value, n: int) -> Buffer:
    count = a.size // (n * n)
    work, inverse, factor = w.copy(a), w.buffer(a.dtype, count * n), w.buffer(a.dtype, a.size)
    _call(w, "cholesky", [count, n], [work, inverse, factor], count * n * n * n / 6)
    return factor


def small_matrices(w: Writer, op: Operation, operands: list[Value], _: Targets) -> list[Value]:
    """Write what `matrices.py` does with batches of small matrices."""
    plan, out = op.params["plan"], op.outputs[0]
    n, m, dtype = plan.size, plan.right, operands[0].dtype
    if plan.name == "cholesky":
        return [w.stored(_factor(w, operands[0], n), out.shape)]
    count = operands[0].size // (n * n)
    x = w.buffer(dtype, count * n * m)
    given = [w.copy(o) for o in operands]
    if plan.name == "solve_positive":
        given.insert(1, w.buffer(dtype, count * n))
    elif plan.name == "solve_any":
        given.insert(0, w.buffer(dtype, n * (n + m)))
    _call(w, plan.name, [count, n, m], [*given, x], count * (n * n * n / 6 + n * n * m))
    return [w.stored(x, out.shape)]


def triangular_solve(w: Writer, op: Operation, operands: list[Value], _: Targets) -> list[Value]:
    """Write solutions of triangular systems."""
    (a, b), out, p = operands, op.outputs[0], op.params
    n = a.shape[-1]
    count = a.size // (n * n)
    m = b.size // (count * n)
    transposed = p["transpose_a"] != (not p["left_side"])  # x a = b is a' x' = b'
    forward = p["lower"] != transposed
    row, col = (1, n) if transposed else (n, 1)
    beside, next_ = (1, m) if p["left_side"] else (n, 1)
    unit = "true" if p["unit_diagonal"] else "false"
    x, work = w.buffer(b.dtype, b.size), w.buffer(b.dtype, b.size)
    arrays = [w.copy(a), str(row), str(col), w.copy(b), str(next_), str(beside), work, x]
    _call(w, "solve_triangular", [count, n, m, "true" if forward else "false", unit], arrays, count * n * n * m)
    return [w.stored(x, out.shape)]
