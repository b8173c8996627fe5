"""Write statements of sorts."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from jaxsim.native.expressions import Index, chosen, is_real, linear, plus, times, unravelled
from jaxsim.native.jaxpr import Operation
from jaxsim.native.writer import CYCLES_OF_LOAD, OFTEN_COST, Body, Buffer, Targets, Value, Writer


def sort(w: Writer, op: Operation, operands: list[Value], _: Targets) -> list[Value]:
    """Sort rows by their keys: by merging if one lane sorts, else by a bitonic network over their places."""
    operands = [x if x.cost <= OFTEN_COST else w.memory(x) for x in operands]
    *lead, n = operands[0].shape
    full, outer = 1 << max(n - 1, 0).bit_length(), math.prod(lead)
    if full == 1 or outer == 0:
        return operands
    operands = [w.in_buffer(x) if x.names else x for x in operands]  # entries are chosen at run time
    keys = operands[: op.params["num_keys"]]
    uniform = all(x.uniform for x in keys)
    if w.lanes == 1 and not w.wide:
        full = n
    at_first = Value((outer, full), np.dtype(np.int32), lambda b, index: b.let(np.int32, f"({index[1]})"), uniform=True)
    buffer = w.buffer(np.int32, outer * full, uniform=uniform)
    w.fill(buffer, at_first, at_first.shape)
    (_merge if w.lanes == 1 and not w.wide else _exchange)(w, keys, buffer, lead, n)

    def entry(x: Value) -> Callable[[Body, Sequence[Index]], str]:
        return lambda b, index: b.at(x, [*index[:-1], b.load(buffer, _in_row(b, index, x.shape, full))])

    reads = frozenset([buffer])
    return [
        Value(x.shape, x.dtype, entry(x), x.cost + CYCLES_OF_LOAD, reads=reads | x.reads, uniform=uniform and x.uniform)
        for x in operands
    ]


def _merge(w: Writer, keys: Sequence[Value], buffer: Buffer, lead: Sequence[int], n: int) -> None:
    """Merge runs of places; runs that are already in order cost one comparison."""
    spare, outer = w.buffer(np.int32, n), math.prod(lead)
    row, size, begin, middle, end, first, second, at, place = (next(w.names) for _ in range(9))
    rounds = (n - 1).bit_length()
    with w.repeated(outer * rounds * n):
        w.line(f"for (int {row} = 0; {row} < {outer}; ++{row})")
        w.line(f"for (int {size} = 1; {size} < {n}; {size} *= 2)")
        w.line(f"for (int {begin} = 0; {begin} < {n} - {size}; {begin} += 2 * {size}) {{")
        w.line(f"int *{place} = {buffer.name} + {row} * {n}, {middle} = {begin} + {size}, {first} = 0;")
        w.line(f"int {second} = {middle}, {at} = {begin};")
        w.line(f"const int {end} = {size} < {n} - {middle} ? {middle} + {size} : {n};")
        body, test = _before(w, keys, lead, row, f"{place}[{middle}]", f"{place}[{middle} - 1]")
        w.lines += [*body.lines, f"if (!{test}) continue;"]
        w.line(f"for (int i = 0; i < {size}; ++i) {spare.name}[i] = {place}[{begin} + i];")
        w.line(f"while ({first} < {size} && {second} < {end}) {{")
        body, test = _before(w, keys, lead, row, f"{place}[{second}]", f"{spare.name}[{first}]")
        w.lines += [*body.lines, f"{place}[{at}++] = {test} ? {place}[{second}++] : {spare.name}[{first}++];", "}"]
        w.line(f"while ({first} < {size}) {place}[{at}++] = {spare.name}[{first}++];")
        w.line("}")
        w.read(body.reads | {spare, buffer})
    w.written(buffer)
    w.epoch += 1


def _before(
    w: Writer, keys: Sequence[Value], lead: Sequence[int], row: str, first: str, second: str
) -> tuple[Body, str]:
    """Return statements, and an expression of whether the first of two rows sorts before the other."""
    body, test = w.body(), "false"
    places = [body.fresh(np.int32, x) for x in (first, second)]
    for key in reversed(keys):
        x, y = (body.at(key, [*unravelled(row, lead), k]) for k in places)
        test = f"({_precedes(x, y, key)} || (!{_precedes(y, x, key)} && {test}))"
    return body, body.let(np.dtype(bool), test)


def _exchange(w: Writer, keys: Sequence[Value], buffer: Buffer, lead: Sequence[int], n: int) -> None:
    """Write the exchange of places in a bitonic network."""
    outer = math.prod(lead)
    full = buffer.size // outer
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
            before = f"({_precedes(y, x, key)} || (!{_precedes(x, y, key)} && {before}))"
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


def _in_row(body: Body, index: Sequence[Index], shape: Sequence[int], full: int) -> Index:
    """Return the index of an entry in rows of length `full`."""
    return body.index(plus(times(linear(index[:-1], shape[:-1]), full), index[-1]))


def _precedes(x: str, y: str, key: Value) -> str:
    """Return whether entry x of a key sorts before y; NaN sorts last, as in JAX."""
    return f"({x} < {y} || ({y} != {y} && {x} == {x}))" if is_real(key.dtype) else f"({x} < {y})"
