"""Translate each primitive to an expression of its operands' entries."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaxsim.native.expressions import (
    ELEMENTWISE,
    Index,
    TableIndex,
    UnsupportedPrimitive,
    bitwise,
    c_type,
    chosen,
    greater_of,
    is_real,
    linear,
    literal,
    plus,
    times,
    unravelled,
    wrapped,
)
from jaxsim.native.jaxpr import Operation, Var
from jaxsim.native.writer import Body, Chosen, Value, select

FEW_PLACES = 2 / 3  # of an array: others are set first, as one block of memory
WRITTEN_SUM = 9  # most terms of a sum that is unrolled
COST = {"div": 8, "sqrt": 8, "rsqrt": 8, "cbrt": 20, "exp": 15, "log": 15, "tanh": 20, "sin": 20, "cos": 20, "tan": 30}
COST |= {"atan2": 30, "atan": 25, "asin": 25, "acos": 25, "pow": 40, "rem": 10}


def elementwise(op: Operation, operands: Sequence[Value]) -> list[Value]:
    """Apply a function entry by entry."""
    out, expression = op.outputs[0], ELEMENTWISE[op.name]
    price = COST.get(op.name, 1)

    def entry(body: Body, index: Sequence[Index]) -> str:
        parts = [body.at(x, index if x.shape else ()) for x in operands]
        body.cost += price * body.times
        return body.let(out.dtype, expression(*parts, dtype=operands[-1].dtype, out=out.dtype, **op.params))

    few = _chosen(op, operands) if op.name == "select_n" else None
    return [Value(out.shape, out.dtype, entry, price + sum(x.cost for x in operands), chosen=few)]


def _chosen(op: Operation, operands: Sequence[Value]) -> Chosen | None:
    """Return at which places a selection by a constant test has entries, if it is one number at many others."""
    test, *cases = operands
    if test.known is None or test.known.dtype != np.bool_ or test.shape != op.outputs[0].shape or len(cases) != 2:
        return None
    for k, (x, other) in enumerate((cases, cases[::-1])):
        number, places = x.known, np.flatnonzero(test.known == (k == 0))
        if number is not None and other.known is None and number.size and (number == number.flat[0]).all():
            few = len(places) and len(places) <= FEW_PLACES * test.size
            return Chosen(places, other, literal(number.flat[0], number.dtype)) if few else None
    return None


def _view(
    place: Callable[[Operation, Value], Callable[[Sequence[Index]], Sequence[Index]]],
) -> Callable[..., list[Value]]:
    """Return the rule of a view: its entries are entries of the operand at other indices."""

    def of(op: Operation, operands: Sequence[Value]) -> list[Value]:
        x, out = operands[0], op.outputs[0]
        at = place(op, x)
        return [Value(out.shape, out.dtype, lambda body, index: body.at(x, at(index)), x.cost)]

    return of


def _reshape(op: Operation, operands: Sequence[Value]) -> list[Value]:
    x, out = operands[0], op.outputs[0]
    groups = _groups(out.shape, x.shape)

    def entry(body: Body, index: Sequence[Index]) -> str:
        place: list[Index] = [0] * len(x.shape)
        for new, old in groups:
            lengths = [x.shape[k] for k in old]
            parts = unravelled(body.index(linear([index[k] for k in new], [out.shape[k] for k in new])), lengths)
            for k, i in zip(old, parts, strict=True):
                place[k] = body.index(i)
        return body.at(x, place)

    return [Value(out.shape, out.dtype, entry, x.cost, chosen=x.chosen)]


def _groups(new: Sequence[int], old: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return the smallest groups of new and old axes with equal numbers of entries, without axes of length one."""
    a, b = ([k for k, n in enumerate(shape) if n != 1] for shape in (new, old))
    if math.prod(new) == 0:
        return []
    found: list[tuple[list[int], list[int]]] = []
    while a or b:
        mine, theirs = [a.pop(0)], [b.pop(0)]
        while (m := math.prod(new[k] for k in mine)) != (t := math.prod(old[k] for k in theirs)):
            (mine if m < t else theirs).append((a if m < t else b).pop(0))
        found.append((mine, theirs))
    return found


def _broadcast(op: Operation, x: Value) -> Callable[[Sequence[Index]], Sequence[Index]]:
    dims = op.params["broadcast_dimensions"]
    return lambda index: [0 if n == 1 else index[d] for d, n in zip(dims, x.shape, strict=True)]


def _transpose(op: Operation, x: Value) -> Callable[[Sequence[Index]], Sequence[Index]]:
    order = np.argsort(op.params["permutation"])
    return lambda index: [index[k] for k in order]


def _slice(op: Operation, x: Value) -> Callable[[Sequence[Index]], Sequence[Index]]:
    steps = tuple(map(int, op.params["strides"] or (1,) * len(x.shape)))
    begin = tuple(map(int, op.params["start_indices"]))
    return lambda index: [plus(times(i, s), b) for i, s, b in zip(index, steps, begin, strict=True)]


def _reverse(op: Operation, x: Value) -> Callable[[Sequence[Index]], Sequence[Index]]:
    dims = op.params["dimensions"]

    def at(index: Sequence[Index]) -> Sequence[Index]:
        turned = [n - 1 - i if isinstance(i, int) else f"({n - 1} - {i})" for i, n in zip(index, x.shape, strict=True)]
        return [t if d in dims else i for d, (i, t) in enumerate(zip(index, turned, strict=True))]

    return at


def _split(op: Operation, operands: Sequence[Value]) -> list[Value]:
    x, axis = operands[0], op.params["axis"]
    begins = itertools.accumulate(map(int, op.params["sizes"]), initial=0)

    def part(v: Any, begin: int) -> Value:
        at = lambda index: [plus(i, begin) if d == axis else i for d, i in enumerate(index)]  # noqa: E731
        return Value(v.shape, v.dtype, lambda body, index: body.at(x, at(index)), x.cost)

    return [part(v, b) for v, b in zip(op.outputs, begins, strict=False)]


def _unstack(op: Operation, operands: Sequence[Value]) -> list[Value]:
    x, axis = operands[0], op.params["axis"]
    at = lambda index, k: [*index[:axis], k, *index[axis:]]  # noqa: E731
    entry = lambda k: lambda body, index: body.at(x, at(index, k))  # noqa: E731
    return [Value(v.shape, v.dtype, entry(k), x.cost) for k, v in enumerate(op.outputs)]


def _empty(op: Operation, operands: Sequence[Value]) -> list[Value]:
    return [Value(v.shape, v.dtype, lambda _body, _index, t=v.dtype: literal(0, t), unset=True) for v in op.outputs]


def _rounded(op: Operation, operands: Sequence[Value]) -> list[Value]:
    """Return the operand of a `reduce_precision` that does not reduce it."""
    kind = np.finfo(operands[0].dtype)
    if op.params["exponent_bits"] < kind.iexp or op.params["mantissa_bits"] < kind.nmant:
        raise UnsupportedPrimitive("reduce_precision to fewer bits")
    return list(operands)


def _same(op: Operation, operands: Sequence[Value]) -> list[Value]:
    return list(operands)


def _iota(op: Operation, operands: Sequence[Value]) -> list[Value]:
    out, axis = op.outputs[0], op.params["dimension"]

    def entry(body: Body, index: Sequence[Index]) -> str:
        i = index[axis]
        return (
            literal(i, out.dtype) if isinstance(i, int) else body.let(out.dtype, f"CONVERT({c_type(out.dtype)}, {i})")
        )

    return [Value(out.shape, out.dtype, entry)]


def _inside(body: Body, i: Index, size: int) -> tuple[str | bool, Index]:
    """Return whether an index lies inside an axis, and the clamped index."""
    if isinstance(i, int):
        return 0 <= i < size, min(max(i, 0), size - 1)
    i = body.index(i)
    return f"({i} >= 0 && {i} < {size})", clamped(body, str(i), size - 1)


def _all(tests: Sequence[str | bool]) -> str | bool:
    if any(t is False for t in tests):
        return False
    rest = [t for t in tests if t is not True]
    return " && ".join(map(str, rest)) if rest else True


def _block(body: Body, x: Value, index: Sequence[Index], otherwise: Callable[[], str]) -> str:
    """Return the entry of `x` at an index, or `otherwise()` outside of it."""
    tests, place = zip(*(_inside(body, i, n) for i, n in zip(index, x.shape, strict=True)), strict=True)
    test = _all(tests)
    if isinstance(test, bool):
        return body.at(x, place) if test else otherwise()
    return body.let(x.dtype, chosen(test, body.at(x, place), otherwise()))


def _pad(op: Operation, operands: Sequence[Value]) -> list[Value]:
    (x, fill), out = operands, op.outputs[0]
    config = [tuple(map(int, c)) for c in op.params["padding_config"]]

    def entry(body: Body, index: Sequence[Index]) -> str:
        place, tests = [], []
        for i, (low, _, inner) in zip(index, config, strict=True):
            k = plus(i, -low) if low else i
            if inner:
                k = body.index(k)
                tests.append(k % (inner + 1) == 0 if isinstance(k, int) else f"({k} % {inner + 1} == 0)")
                k = k // (inner + 1) if isinstance(k, int) else f"({k} / {inner + 1})"
            place.append(k)
        if x.size == 0:
            return body.at(fill, ())
        found = _block(body, x, place, lambda: body.at(fill, ()))
        test = _all(tests)
        if isinstance(test, bool):
            return found if test else body.at(fill, ())
        return body.let(x.dtype, chosen(test, found, body.at(fill, ())))

    return [Value(out.shape, out.dtype, entry, x.cost + fill.cost + 2)]


def starts_of(
    body: Body, starts: Sequence[Value], shape: Sequence[int], sizes: Sequence[int], unsized: bool = False
) -> list[Index]:
    """Return the starts of a slice, clamped unless `unsized`."""
    at = zip(starts, shape, sizes, strict=True)
    return [
        0 if n == size else body.at(s, ()) if unsized else clamped(body, body.at(s, ()), n - size) for s, n, size in at
    ]


def clamped(body: Body, text: str, high: int) -> Index:
    if high == 0:
        return 0
    bare = text.strip("()")
    if bare.isdigit():
        return min(int(bare), high)
    return body.index(chosen(f"{text} < 0", "0", chosen(f"{text} > {high}", str(high), text)))


def _dynamic_slice(op: Operation, operands: Sequence[Value]) -> list[Value]:
    (x, *starts), out = operands, op.outputs[0]

    def entry(body: Body, index: Sequence[Index]) -> str:
        begin = starts_of(body, starts, x.shape, out.shape, x.buffer is not None and x.buffer.unsized)
        return body.at(x, [body.index(plus(i, b)) for i, b in zip(index, begin, strict=True)])

    return [Value(out.shape, out.dtype, entry, x.cost + 2)]


def _any_of_vector(op: Operation, operands: Sequence[Value]) -> list[Value]:
    """Return whether a test holds for any entry of a vector; for one entry, its test."""
    (x,), out = operands, op.outputs[0]
    entry = lambda body, i: body.let(out.dtype, f"ANY({body.at(x, i)})")  # noqa: E731
    return [Value(out.shape, out.dtype, entry, x.cost + 1, reads=x.reads, uniform=True)]


def _dynamic_update_slice(op: Operation, operands: Sequence[Value]) -> list[Value]:
    (x, update, *starts), out = operands, op.outputs[0]

    def entry(body: Body, index: Sequence[Index]) -> str:
        begin = starts_of(body, starts, x.shape, update.shape)
        place = [i if b == 0 else f"({i} - {b})" for i, b in zip(index, begin, strict=True)]
        return _block(body, update, place, lambda: body.at(x, index))

    return [Value(out.shape, out.dtype, entry, x.cost + update.cost + 4)]


def _gather(op: Operation, operands: Sequence[Value]) -> list[Value]:
    (x, indices), out = operands, op.outputs[0]
    d, sizes, mode = op.params["dimension_numbers"], op.params["slice_sizes"], str(op.params["mode"])
    batch = [k for k in range(len(out.shape)) if k not in d.offset_dims]
    own, theirs = tuple(d.operand_batching_dims), tuple(d.start_indices_batching_dims)
    kept = [k for k in range(len(x.shape)) if k not in d.collapsed_slice_dims and k not in own]
    fill = op.params.get("fill_value")

    def entry(body: Body, index: Sequence[Index]) -> str:
        place: list[Index] = [0] * len(x.shape)
        at, tests = [index[b] for b in batch], []
        for k, dim in zip(theirs, own, strict=True):
            place[dim] = at[k]
        for k, dim in enumerate(d.start_index_map):
            start, high = body.at(indices, [*at, k]), x.shape[dim] - sizes[dim]
            if isinstance(start, TableIndex):
                inside = np.clip(start.numbers, 0, high)
                is_inside = bool((inside == start.numbers).all())
                if "FILL" in mode and not is_inside:
                    tests.append(f"{start} >= 0 && {start} <= {high}")
                start = start if is_inside else start.with_numbers(inside)
                place[dim] = start.named(str(body.index(f"INSIDE({start}, {high})")))
                continue
            if "PROMISE" in mode:
                place[dim] = start if any(b.unsized for b in x.reads) else f"INSIDE({start}, {high})"
            else:
                place[dim] = clamped(body, start, high)
            if start.strip("()").isdigit():
                place[dim] = min(int(start.strip("()")), high)
            if "FILL" in mode:
                tests.append(f"{start} >= 0 && {start} <= {high}")
        for dim, o in zip(kept, d.offset_dims, strict=True):
            place[dim] = plus(place[dim], index[o])
        value = body.at(x, [body.index(i) for i in place])
        body.gathered += body.times * any(isinstance(place[dim], str) for dim in d.start_index_map)
        if not tests:
            return value
        none = np.nan if np.issubdtype(x.dtype, np.floating) else 0 if x.dtype == np.bool_ else np.iinfo(x.dtype).min
        outside = literal(none if fill is None else fill, x.dtype)
        return body.let(x.dtype, chosen(" && ".join(tests), value, outside))

    return [Value(out.shape, out.dtype, entry, x.cost + indices.cost + 2)]


def _scatter(join: Callable[..., str]) -> Callable[..., list[Value]]:
    """Return the rule of a scatter in which each entry loops over all updates, in order, and applies its own."""

    def of(op: Operation, operands: Sequence[Value]) -> list[Value]:
        if len(operands) == 4:
            return _scatter_rows(op, operands, join)
        (x, indices, updates), out = operands, op.outputs[0]
        d, mode = op.params["dimension_numbers"], str(op.params["mode"])
        window = d.update_window_dims
        batch = [k for k in range(len(updates.shape)) if k not in window]
        own, theirs = tuple(d.operand_batching_dims), tuple(d.scatter_indices_batching_dims)
        kept = [k for k in range(len(x.shape)) if k not in d.inserted_window_dims and k not in own]
        spread = {dim: updates.shape[o] for dim, o in zip(kept, window, strict=True)}
        free = [k for k in range(len(batch)) if k not in theirs]  # axes of updates over which an entry loops
        lengths = [updates.shape[batch[k]] for k in free]
        count = math.prod(lengths)
        # the first axis is that of rows
        used = None if updates.used is None else f"{updates.used[1]} * {math.prod(lengths[1:])}"

        def entry(body: Body, index: Sequence[Index]) -> str:
            total = body.variable(x.dtype, body.at(x, index))
            with body.loop(count, used) as t:
                at: list[Index] = [0] * len(batch)
                for k, i in zip(free, unravelled(t, lengths), strict=True):
                    at[k] = body.index(i)
                for k, dim in zip(theirs, own, strict=True):
                    at[k] = index[dim]
                tests, place = [], dict.fromkeys(kept, "0")
                for k, dim in enumerate(d.scatter_dims_to_operand_dims):
                    start, size = body.at(indices, [*at, k]), spread.get(dim, 1)
                    if "CLIP" in mode:
                        start = str(clamped(body, start, x.shape[dim] - size))
                    inside = f"{start} >= 0 && {start} <= {x.shape[dim] - size} && "
                    test = f"{index[dim]} >= {start} && {index[dim]} < {start} + {size}"
                    tests.append(("" if "PROMISE" in mode else inside) + test)
                    place[dim] = start
                full: list[Index] = [0] * len(updates.shape)
                for k, b in enumerate(batch):
                    full[b] = at[k]
                for dim, o in zip(kept, window, strict=True):
                    size = spread[dim]
                    i = index[dim] if place[dim] == "0" else f"({index[dim]} - {place[dim]})"
                    full[o] = _inside(body, i, size)[1]
                value = body.at(updates, full)
                new = join(total, value, out=x.dtype)
                body.lines.append(f"ASSIGN({total}, {chosen(' && '.join(tests) or 'true', new, total)});")
                body.cost += 3 * body.times
            return total

        return [Value(out.shape, out.dtype, entry, x.cost + count * (indices.cost + updates.cost + 4))]

    return of


def known_rows(op: Operation) -> np.ndarray | None:
    """Return the updates of each row (rows, most updates of a row), padded by -1; None unless places are constants."""
    indices, d = op.inputs[1], op.params["dimension_numbers"]
    x, updates = op.inputs[0], op.inputs[2]
    plain = tuple(d.scatter_dims_to_operand_dims) == (0,) == tuple(d.inserted_window_dims)
    batches = d.operand_batching_dims or d.scatter_indices_batching_dims
    rows = tuple(d.update_window_dims) == tuple(range(1, len(updates.shape)))
    if not isinstance(indices, np.ndarray) or not plain or batches or not rows or indices.ndim != 2:
        return None
    if updates.shape[1:] != x.shape[1:]:
        return None
    to = indices[:, 0]
    to = np.clip(to, 0, x.shape[0] - 1) if "CLIP" in str(op.params["mode"]) else to
    mine = [np.flatnonzero(to == k) for k in range(x.shape[0])]
    most = max(map(len, mine), default=0)
    return np.array([[*m, *[-1] * (most - len(m))] for m in mine], np.int32).reshape(len(mine), most)


def _scatter_rows(op: Operation, operands: Sequence[Value], join: Callable[..., str]) -> list[Value]:
    """Scatter rows; the last operand is `known_rows`."""
    (x, _, updates, known), out = operands, op.outputs[0]
    most = known.shape[1]

    def entry(body: Body, index: Sequence[Index]) -> str:
        total = body.at(x, index)
        for k in range(most):
            place = body.at(known, [index[0], k])
            inside = body.index(chosen(f"{place} < 0", "0", place))
            value = body.at(updates, [inside, *index[1:]])
            new = join(total, value, out=out.dtype)
            total = body.let(out.dtype, chosen(f"{place} < 0", total, new))
            body.cost += 2 * body.times
        return total

    return [Value(out.shape, out.dtype, entry, x.cost + most * (updates.cost + 4))]


def in_use(x: Value, axes: Sequence[int]) -> tuple[list[int], str | None]:
    """Return the axes of a loop, with that of rows in use first, and the number of iterations in use (None: all)."""
    if x.used is None or x.used[0] not in axes:
        return list(axes), None
    axis, count = x.used
    rest = [a for a in axes if a != axis]
    return [axis, *rest], f"{count} * {math.prod(x.shape[a] for a in rest)}"


def _reduction(start: Callable[[Any], str], join: Callable[..., str]) -> Callable[..., list[Value]]:
    def of(op: Operation, operands: Sequence[Value]) -> list[Value]:
        (x, *_), out, axes = operands, op.outputs[0], op.params["axes"]
        kept = [d for d in range(len(x.shape)) if d not in axes]
        axes, used = in_use(x, axes)
        lengths = [x.shape[a] for a in axes]
        count = math.prod(lengths)

        def full(index: Sequence[Index], inner: Sequence[Index]) -> list[Index]:
            found: list[Index] = [0] * len(x.shape)
            for d, i in zip([*kept, *axes], [*index, *inner], strict=True):
                found[d] = i
            return found

        def entry(body: Body, index: Sequence[Index]) -> str:
            if count <= WRITTEN_SUM and not used:
                total = ""
                for inner in itertools.product(*map(range, lengths)):
                    term = body.at(x, full(index, inner))
                    total = body.let(out.dtype, join(total, term, out=out.dtype)) if total else term
                    body.cost += body.times
                return total or start(out.dtype)
            total = body.variable(out.dtype, start(out.dtype), x.uniform)
            with body.loop(count, used) as t:
                term = body.at(x, full(index, [body.index(i) for i in unravelled(t, lengths)]))
                body.lines.append(f"ASSIGN({total}, {join(total, term, out=out.dtype)});")
                body.cost += 3 * body.times
            return total

        return [Value(out.shape, out.dtype, entry, count * (x.cost + 1) + (0 if count <= WRITTEN_SUM else 10))]

    return of


def _arg(symbol: str) -> Callable[..., list[Value]]:
    def of(op: Operation, operands: Sequence[Value]) -> list[Value]:
        (x,), out, (axis,) = operands, op.outputs[0], op.params["axes"]
        count = x.shape[axis]

        def entry(body: Body, index: Sequence[Index]) -> str:
            full = lambda k: [*index[:axis], k, *index[axis:]]  # noqa: E731
            best, place = (
                body.variable(x.dtype, body.at(x, full(0)), x.uniform),
                body.variable(out.dtype, "0", x.uniform),
            )
            with body.loop(count) as t:
                value = body.at(x, full(t))
                text = ELEMENTWISE["gt" if symbol == ">" else "lt"](value, best, dtype=x.dtype)
                if is_real(x.dtype):
                    text = f"({text} || ({value} != {value} && {best} == {best}))"
                test = body.let(np.dtype(bool), text)
                body.lines.append(f"ASSIGN({best}, {chosen(test, value, best)});")
                body.lines.append(f"ASSIGN({place}, {chosen(test, t, place)});")
                body.cost += 4 * body.times
            return place

        return [Value(out.shape, out.dtype, entry, count * (x.cost + 4))]

    return of


def _cumulative(op: Operation, operands: Sequence[Value]) -> list[Value]:
    """Compute each entry from all entries before it: for short axes, or for lanes that work in parallel."""
    (x,), out, axis = operands, op.outputs[0], op.params["axis"]
    (start, join), count = CUMULATIVE[op.name], x.shape[axis]

    def entry(body: Body, index: Sequence[Index]) -> str:
        total, i = body.variable(out.dtype, start(out.dtype), x.uniform), body.index(index[axis])
        with body.loop(count) as t:
            k = body.index(f"({count - 1} - {t})") if op.params["reverse"] else t
            term = body.at(x, [*index[:axis], k, *index[axis + 1 :]])
            symbol = ">=" if op.params["reverse"] else "<="
            new = join(total, term, out=out.dtype)
            body.lines.append(f"ASSIGN({total}, {chosen(f'{k} {symbol} {i}', new, total)});")
            body.cost += 3 * body.times
        return total

    return [Value(out.shape, out.dtype, entry, count * (x.cost + 3))]


def term_of_product(
    op: Operation, operands: Sequence[Value], order: Sequence[int] | None = None
) -> Callable[[Body, Sequence[Index], Sequence[Index]], str]:
    """Return the rule of a term of a product's entry: of its index, and of the indices of the contracted axes.

    These axes are in the order of the operation, or in another `order`.
    """
    a, b = operands
    (ca, cb), (ba, bb) = op.params["dimension_numbers"]
    free_a = [d for d in range(len(a.shape)) if d not in (*ca, *ba)]
    free_b = [d for d in range(len(b.shape)) if d not in (*cb, *bb)]
    ca, cb = ([c[k] for k in (range(len(ca)) if order is None else order)] for c in (ca, cb))

    def term(body: Body, index: Sequence[Index], inner: Sequence[Index]) -> str:
        nb, na = len(ba), len(free_a)
        batch, of_a, of_b = index[:nb], index[nb : nb + na], index[nb + na :]
        left = dict(zip([*ba, *free_a, *ca], [*batch, *of_a, *inner], strict=True))
        right = dict(zip([*bb, *free_b, *cb], [*batch, *of_b, *inner], strict=True))
        x, y = (body.at(z, [m[d] for d in range(len(z.shape))]) for z, m in ((a, left), (b, right)))
        body.cost += body.times
        return f"{x} * {y}"

    return term


def _dot(op: Operation, operands: Sequence[Value]) -> list[Value]:
    (a, b), out = operands, op.outputs[0]
    (ca, cb), _ = op.params["dimension_numbers"]
    side, own = (a, ca) if a.used is not None and a.used[0] in ca else (b, cb)
    axes, used = in_use(side, own)
    order = [own.index(d) for d in axes]
    lengths = [a.shape[ca[k]] for k in order]
    count, term = math.prod(lengths), term_of_product(op, operands, order)

    def entry(body: Body, index: Sequence[Index]) -> str:
        if count <= WRITTEN_SUM and not used:
            terms = [term(body, index, inner) for inner in itertools.product(*map(range, lengths))]
            return body.let(out.dtype, wrapped(f"({' + '.join(terms)})", out.dtype) if terms else literal(0, out.dtype))
        total = body.variable(out.dtype, "0", a.uniform and b.uniform)
        with body.loop(count, used) as t:
            text = term(body, index, [body.index(i) for i in unravelled(t, lengths)])
            body.lines.append(f"ASSIGN({total}, {wrapped(f'{total} + {text}', out.dtype)});")
            body.cost += 3 * body.times
        return total

    return [Value(out.shape, out.dtype, entry, count * (a.cost + b.cost + 1))]


def _joined(op: Operation, operands: Sequence[Value]) -> list[Value]:
    """Concatenate or stack arrays; for `concatenate` the index along the axis must be a constant (`JOINS`)."""
    out, is_stack = op.outputs[0], op.name == "stack"
    axis = op.params["axis" if is_stack else "dimension"]
    ends = list(itertools.accumulate(1 if is_stack else x.shape[axis] for x in operands))

    def entry(body: Body, index: Sequence[Index]) -> str:
        def of(part: int) -> str:
            if is_stack:
                return body.at(operands[part], [*index[:axis], *index[axis + 1 :]])
            begin = ends[part] - operands[part].shape[axis]
            return body.at(operands[part], [plus(i, -begin) if d == axis else i for d, i in enumerate(index)])

        i = index[axis]
        if isinstance(i, int):
            return of(next(k for k, end in enumerate(ends) if i < end))
        if not is_stack:
            raise AssertionError("a joined array whose part is not known")
        return body.let(out.dtype, select(body, i, [of(k) for k in range(len(operands))]))

    return [Value(out.shape, out.dtype, entry, max(x.cost for x in operands))]


def _least(t: Any) -> str:
    return "false" if t == np.bool_ else literal(-np.inf if np.issubdtype(t, np.floating) else np.iinfo(t).min, t)


def _greatest(t: Any) -> str:
    return "true" if t == np.bool_ else literal(np.inf if np.issubdtype(t, np.floating) else np.iinfo(t).max, t)


VIEWS = {
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "reshape": _reshape,
    "broadcast_in_dim": _view(_broadcast),
    "transpose": _view(_transpose),
    "slice": _view(_slice),
    "rev": _view(_reverse),
    "split": _split,
    "unstack": _unstack,
    "reduce_precision": _rounded,
    "name": _same,
    **dict.fromkeys(
        ("copy", "copy_p", "stop_gradient", "optimization_barrier", "reshard", "sharding_constraint"), _same
    ),
}
# Primitives that read an entry of their operands many times, or at run-time indices: operands must be in memory.
OFTEN: dict[str, Callable[[Operation, Sequence[Value]], list[Value]]] = {
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "argmax": _arg(">"),
    "argmin": _arg("<"),
    "dot_general": _dot,
}
REDUCTIONS: dict[str, Callable[..., str]] = {
    "reduce_sum": ELEMENTWISE["add"],
    "reduce_prod": ELEMENTWISE["mul"],
    "reduce_max": greater_of(">"),
    "reduce_min": greater_of("<"),
    "reduce_and": bitwise("&", "&&"),
    "reduce_or": bitwise("|", "||"),
}
# Scatters: the function that combines an entry and its update, and the name of the operation on memory.
SCATTERS: dict[str, tuple[Callable[..., str], str]] = {
    "scatter": (lambda _, b, **__: b, "SET"),
    **dict.fromkeys(("scatter-add", "scatter_add"), (REDUCTIONS["reduce_sum"], "ADD")),
    **dict.fromkeys(("scatter-mul", "scatter_mul"), (REDUCTIONS["reduce_prod"], "TIMES")),
    **dict.fromkeys(("scatter-min", "scatter_min"), (REDUCTIONS["reduce_min"], "LEAST")),
    **dict.fromkeys(("scatter-max", "scatter_max"), (REDUCTIONS["reduce_max"], "GREATEST")),
}
OFTEN |= {name: _scatter(join) for name, (join, _) in SCATTERS.items()}
STARTS: dict[str, Callable[[Any], str]] = {
    "reduce_sum": lambda t: literal(0, t),
    "reduce_prod": lambda t: literal(1, t),
    "reduce_max": _least,
    "reduce_min": _greatest,
    "reduce_and": lambda t: "true" if t == np.bool_ else literal(np.array(-1).astype(t), t),  # all bits
    "reduce_or": lambda _: "false",
}
CUMULATIVE: dict[str, tuple[Callable[[Any], str], Callable[..., str]]] = {
    "cumsum": (STARTS["reduce_sum"], REDUCTIONS["reduce_sum"]),
    "cumprod": (STARTS["reduce_prod"], REDUCTIONS["reduce_prod"]),
    "cummax": (STARTS["reduce_max"], REDUCTIONS["reduce_max"]),
    "cummin": (STARTS["reduce_min"], REDUCTIONS["reduce_min"]),
}
OFTEN |= dict.fromkeys(CUMULATIVE, _cumulative)
JOINS = {"concatenate": _joined, "stack": _joined}
EXPRESSIONS: dict[str, Callable[[Operation, Sequence[Value]], list[Value]]] = {
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **VIEWS,
    **OFTEN,
    **JOINS,
    "iota": _iota,
    "symmetric_matrix": lambda _, x: [replace(x[0], symmetric=True)],
    "any_of_vector": _any_of_vector,
    "empty": _empty,
    "empty2": _empty,
    "pad": _pad,
    "dynamic_update_slice": _dynamic_update_slice,
    **{name: _reduction(STARTS[name], join) for name, join in REDUCTIONS.items()},
}


def is_cheap(op: Operation) -> bool:
    """Return whether a program computes the result again where it is read, rather than pass it on."""
    if op.name in VIEWS or op.name == "iota":
        return True
    if op.name == "select_n" and not any(isinstance(v, Var) for v in op.inputs[1:]):
        return True  # one of two constants
    return op.name in EXPRESSIONS and op.name not in OFTEN and not any(isinstance(v, Var) for v in op.inputs)
