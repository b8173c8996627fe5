"""Write statements of linear systems: calls of functions of `systems.h` (one lane) or `systems.cu` (several lanes)."""

import math
from collections.abc import Sequence
from typing import Any

from jaxsim.native.jaxpr import Operation
from jaxsim.native.writer import Buffer, Loop, Targets, Value, Writer

TOLD = 2  # numbers that lanes exchange
REGISTERS = 64  # most rows of a matrix whose columns lanes hold in registers
SHARED_STEP = 12  # instructions of a lane for a pivot, or an entry that all lanes of a system read


def _call(w: Writer, name: str, n: int, sizes: Sequence[Any], arrays: Sequence[Buffer | str], work: float) -> None:
    """Write a call of a function of systems of n rows, which reads and writes these arrays and ends with a barrier.

    `work` is the number of entries that one lane computes.
    """
    w.sync()
    count, *rest = sizes
    text = ", ".join(map(str, (*([count, n] if w.lanes == 1 else [count]), *rest)))
    names = ", ".join(b if isinstance(b, str) else b.name for b in arrays)
    w.line(f"{name if w.lanes == 1 else f'{name}_{n}'}(lane, {text}, {names});")
    w.systems.add(n)
    w.epoch += 1
    w.unread.clear()
    for b in arrays:
        if isinstance(b, Buffer):
            b.last = w.epoch
            b.version += 1
    if w.lanes == 1:
        w.loops.append(Loop(math.ceil(work), 10, w.times))
    else:
        w.loops.append(Loop(math.ceil(work / n), n + 2 * SHARED_STEP, w.times))


def _read(w: Writer, x: Value) -> Buffer:
    """Return memory of a matrix or right-hand sides that a function reads; with one lane a copy to overwrite."""
    buffer = w.copy(x) if w.lanes == 1 else w.in_buffer(x).buffer
    assert buffer is not None  # it is in memory
    w.read({buffer})
    return buffer


def _factors(w: Writer, a: Value, n: int) -> list[Buffer]:
    """Return a matrix to factorise, and memory for its factors and the inverses of its pivots."""
    count = a.size // (n * n)
    if w.lanes == 1:
        return [_read(w, a), w.buffer(a.dtype, count * n)]
    return [_read(w, a), w.buffer(a.dtype, count * n * pitch(n)), w.buffer(a.dtype, count * n + shared_numbers(n))]


def shared_numbers(n: int) -> int:
    """Return the size of the memory that lanes share to eliminate a matrix of n rows."""
    return TOLD if n <= REGISTERS else 5 * pitch(n) + 16


def pitch(n: int) -> int:
    """Return the stride from a row of factors to the next one, in numbers."""
    return -(-n // 4) * 4


def cholesky(w: Writer, op: Operation, operands: list[Value], _: Targets) -> list[Value]:
    """Write Cholesky factors."""
    (a,), out = operands, op.outputs[0]
    return [w.stored(_factor(w, a, a.shape[-1]), out.shape)]


def _factor(w: Writer, a: Value, n: int) -> Buffer:
    factor, count = w.buffer(a.dtype, a.size), a.size // (n * n)
    _call(w, "cholesky", n, [count], [*_factors(w, a, n), factor], count * n * n * n / 6)
    return factor


def small_matrices(w: Writer, op: Operation, operands: list[Value], _: Targets) -> list[Value]:
    """Write the functions of `matrices.py` for batches of small matrices."""
    plan, out = op.params["plan"], op.outputs[0]
    n, m, dtype = plan.size, plan.right, operands[0].dtype
    if plan.name == "cholesky":
        return [w.stored(_factor(w, operands[0], n), out.shape)]
    count = operands[0].size // (n * n)
    given: list[Buffer] = []
    if plan.name == "solve_positive":
        return [w.stored(_solution(w, operands[0], operands[1], n, m), out.shape)]
    if plan.name == "solve_any":
        given = [w.buffer(dtype, n * (n + m)), *(_read(w, x) for x in operands)]
    else:
        given = [_read(w, x) for x in operands]
        given += [w.buffer(dtype, TOLD)] if w.lanes > 1 else []
    x = w.buffer(dtype, count * n * m)
    _call(w, plan.name, n, [count, m], [*given, x], count * (n * n * n / 6 + n * n * m))
    return [w.stored(x, out.shape)]


def _eliminated(a: Value, n: int) -> tuple[Any, ...]:
    """Return the key of what is left of a matrix after elimination; a call gives its memory a new version."""
    return "eliminated", n, (a.buffer, a.buffer.version) if a.buffer else a


def _solution(w: Writer, a: Value, b: Value, n: int, m: int) -> Buffer:
    """Solve for right-hand sides; a matrix is eliminated once for all systems that have it."""
    count = a.size // (n * n)
    if _eliminated(a, n) not in w.block.known:
        matrix, *factors = _factors(w, a, n)
        strides = [] if w.lanes == 1 else [str(n), "1"]
        _call(w, "eliminate", n, [count], [matrix, *strides, *factors], count * n**3 / 6)
        w.block.known[_eliminated(a, n)] = factors if w.lanes > 1 else [matrix, *factors]
    factors, right, x = w.block.known[_eliminated(a, n)], w.in_buffer(b).buffer, w.buffer(a.dtype, count * n * m)
    assert right is not None  # it is in memory
    w.read({*factors, right})
    _call(w, "solve_eliminated", n, [count, m], [*factors, right, x], count * n * n * m)
    return x


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
    left, right = w.in_buffer(a).buffer, w.in_buffer(b).buffer
    assert left is not None and right is not None  # they are in memory
    w.read({left, right})
    work = w.buffer(b.dtype, b.size if w.lanes == 1 else TOLD)
    x = w.buffer(b.dtype, b.size)
    arrays = [left, str(row), str(col), right, str(next_), str(beside), work, x]
    _call(w, "solve_triangular", n, [count, m, "true" if forward else "false", unit], arrays, count * n * n * m)
    return [w.stored(x, out.shape)]
