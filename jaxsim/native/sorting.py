"""Statements of sorts."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from jaxsim.native.expressions import Index, chosen, linear, plus, times, unravelled
from jaxsim.native.jaxpr import Operation
from jaxsim.native.writer import CYCLES_OF_LOAD, OFTEN_COST, Body, Targets, Value, Writer


def sort(w: Writer, op: Operation, operands: list[Value], _: Targets) -> list[Value]:
    """Rows in the order of their keys: a bitonic network over their places."""
    operands = [x if x.cost <= OFTEN_COST else w.memory(x) for x in operands]
    *lead, n = operands[0].shape
    full, keys = 1 << max(n - 1, 0).bit_length(), operands[: op.params["num_keys"]]
    outer = math.prod(lead)
    if full == 1:
        return operands
    operands = [x if x.buffer or w.lanes > 1 else w.in_buffer(x) for x in operands]
    keys = operands[: op.params["num_keys"]]
    uniform = all(x.uniform for x in keys)
    at_first = Value((outer, full), np.dtype(np.int32), lambda b, index: b.let(np.int32, f"({index[1]})"), uniform=True)
    buffer = w.buffer(np.int32, outer * full, uniform=uniform)
    w.fill(buffer, at_first, at_first.shape)
    rounds = full.bit_length() - 1
    size, gap = next(w.names), next(w.names)
    with w.repeated(rounds * (rounds + 1) / 2):
        w.line(f"for (int {size} = 2; {size} <= {full}; {size} *= 2)")
        w.line(f"for (int {gap} = {size} / 2; {gap} > 0; {gap} /= 2) {{")
        w.sync()
        body, rows = w.body(), outer * full // 2
        head, (row, pair) = w.every(body, (outer, full // 2))
        pair = str(pair)
        low = body.index(f"({pair} / {gap} * 2 * {gap} + {pair} % {gap})")
        first, second = (body.index(plus(times(row, full), plus(low, k))) for k in (0, gap))
        a, b = body.load(buffer, first), body.load(buffer, second)
        inside = [body.index(chosen(f"{k} < {n}", k, str(n - 1))) for k in (a, b)]
        before = f"({b} < {a})"  # rows that are equal stay as they are
        for key in reversed(keys):
            x, y = (body.at(key, [*unravelled(row, lead), k]) for k in inside)
            before = f"({_precedes(y, x)} || (!{_precedes(x, y)} && {before}))"
            body.cost += 4
        wanted = body.let(np.dtype(bool), chosen(f"{a} >= {n} || {b} >= {n}", f"({b} < {a})", before))
        swap = body.let(np.dtype(bool), chosen(f"(({low} & {size}) == 0)", wanted, f"!{wanted}"))
        stores = [
            f"PUT({buffer.name}, {first}, {chosen(swap, b, a)});",
            f"PUT({buffer.name}, {second}, {chosen(swap, a, b)});",
        ]
        body.cost += 12
        w.write(body, stores, rows, head)
        w.written(buffer)
        w.line("}")
    w.sync()

    def entry(x: Value) -> Callable[[Body, Sequence[Index]], str]:
        return lambda b, index: b.at(x, [*index[:-1], b.load(buffer, _in_row(b, index, x.shape, full))])

    reads = frozenset([buffer])
    return [
        Value(x.shape, x.dtype, entry(x), x.cost + CYCLES_OF_LOAD, reads=reads | x.reads, uniform=uniform and x.uniform)
        for x in operands
    ]


def _in_row(body: Body, index: Sequence[Index], shape: Sequence[int], full: int) -> Index:
    """The place of an entry in rows that are `full` long."""
    return body.index(plus(times(linear(index[:-1], shape[:-1]), full), index[-1]))


def _precedes(x: str, y: str) -> str:
    """Return whether x sorts before y; NaN sorts last, as in JAX."""
    return f"({x} < {y} || ({y} != {y} && {x} == {x}))"
