"""Write reductions, prefix sums and matrix products that are more than an expression of an entry."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jaxsim.native.expressions import Index, c_type, chosen, is_real, linear, literal, plus
from jaxsim.native.jaxpr import Flat, Operation, Term, Var
from jaxsim.native.operations import CUMULATIVE, REDUCTIONS, STARTS, WRITTEN_SUM, clamped, in_use, term_of_product
from jaxsim.native.writer import (
    CYCLES_OF_LOAD,
    RECOMPUTED,
    Body,
    Buffer,
    Loop,
    Value,
    Writer,
    named,
    result_buffer,
    with_reads,
    written_out,
)

MOST_OF_BLOCK, LEAST_TERMS = 32, 4  # most sums of a matrix product that a lane computes together; fewest terms of each
TERM_OF_PRODUCT = 4  # instructions for a term of a sum over a row of a matrix
MOST_SHARED = 256  # terms of sums that one lane computes by unrolled code
CYCLES_OF_LOOP = 3  # overhead of an iteration, in instructions
MOST_WARPS = 32  # of a world
FEWEST_OF_TOTAL = 12  # numbers from which on a reduction is parallel; shorter ones are computed by every lane
MOST_APART = 16  # distance, in operations, of reductions that are fused
LANES_OF_SUM, MOST_PARTS = 32, 512  # parts of a long sum, at least and at most
TERMS_OF_PART = 16
TERMS_AT_ONCE = 16  # of the sums of a row of a matrix product that one lane adds in one pass over the row
LEAST_OF_ROW = 24  # terms of a product of two rows that vectors of terms make
MOST_OF_ENTRIES = 0.7  # of a matrix's entries: more terms than that are not fewer


def reduced_in_parts(w: Writer, op: Operation, x: Value) -> Value:
    """Reduce parts of few long rows in parallel, and return the partial results; else return the operand."""
    axes, out = op.params["axes"], op.outputs[0]
    count, rows = math.prod(x.shape[a] for a in axes), math.prod(out.shape)
    axis = max(axes, key=lambda a: x.shape[a], default=0)
    if x.used is not None and x.used[0] in axes:
        return x
    if w.lanes == 1 or count < 2 * LANES_OF_SUM or rows * 4 > LANES_OF_SUM or x.shape[axis] <= LANES_OF_SUM:
        return x
    length = x.shape[axis]
    parts = min(MOST_PARTS, LANES_OF_SUM * -(-length // (TERMS_OF_PART * LANES_OF_SUM)))
    size = -(-length // parts)

    def entry(body: Body, index: Sequence[Index]) -> str:
        at = lambda i: body.at(x, [*index[:axis], body.index(i), *index[axis + 1 :]])  # noqa: E731
        total = body.variable(x.dtype, at(index[axis]))
        with body.loop(size - 1) as t:
            i = body.index(f"({index[axis]} + {parts} * ({t} + 1))")
            term = at(chosen(f"{i} < {length}", str(i), str(length - 1)))
            body.lines.append(f"if ({i} < {length}) {total} = {REDUCTIONS[op.name](total, term, out=out.dtype)};")
            body.cost += 4 * body.times
        return total

    shape = (*x.shape[:axis], parts, *x.shape[axis + 1 :])
    return reduced_in_parts(w, op, w.memory(Value(shape, x.dtype, entry, size * RECOMPUTED)))


def _is_total(op: Operation) -> bool:
    """Return whether an operation reduces a long array to a number."""
    if op.name not in REDUCTIONS or not isinstance(op.inputs[0], Var):
        return False
    return math.prod(op.outputs[0].shape) == 1 and math.prod(op.inputs[0].shape) >= FEWEST_OF_TOTAL


def groups_of_totals(flat: Flat) -> dict[int, list[int]]:
    """Return groups of reductions to a number, of arrays of one shape, to fuse; keys are their first operations."""
    made = {v: k for k, op in enumerate(flat.operations) for v in op.outputs}
    found: dict[int, list[int]] = {}
    taken: set[int] = set()
    for k, op in enumerate(flat.operations):
        if k in taken or not _is_total(op):
            continue
        found[k] = [k]
        for j, other in enumerate(flat.operations[k + 1 : k + MOST_APART], k + 1):
            x = other.inputs[0] if _is_total(other) else None
            if isinstance(x, Var) and x.shape == op.inputs[0].shape and made.get(x, -1) < k:
                found[k].append(j)
        taken.update(found[k])
    return found


def write_totals(w: Writer, flat: Flat, together: Sequence[int], read: Callable[[Term], Value]) -> dict[int, Value]:
    """Write a group of reductions to a number, of arrays of one shape, in parallel."""
    group = [(j, flat.operations[j]) for j in together]
    first = group[0][1]
    terms = [read(op.inputs[0]) for _, op in group]
    used = next((x.used for x in terms if x.used is not None), None)
    body, shape = w.body(), first.inputs[0].shape
    head, index = w.every(body, shape, used)
    entries = [body.at(x, index) for x in terms]
    joins = [REDUCTIONS[op.name] for _, op in group]
    names = [next(w.names) for _ in group]
    for name, (_, op) in zip(names, group, strict=True):
        out = op.outputs[0]
        w.line(f"{c_type(out.dtype)} {name} = {STARTS[op.name](out.dtype)};")

    def joined(others: Sequence[str]) -> list[str]:
        parts = zip(names, others, joins, group, strict=True)
        return [f"{n} = {join(n, other, out=op.outputs[0].dtype)};" for n, other, join, (_, op) in parts]

    w.write(body, joined(entries), math.prod(shape), head)
    kinds = [c_type(op.outputs[0].dtype) for _, op in group]
    others = [f"other_{n}" for n in names]
    declared = [f"{t} {o} = OF_LANE({n}, step);" for t, o, n in zip(kinds, others, names, strict=True)]
    w.line(" ".join(["FOLDED(step) {", *declared, *joined(others), "}"]))
    slots = [w.buffer(op.outputs[0].dtype, MOST_WARPS) for _, op in group]
    puts = [f"{b.name}[lane / WARP] = {n};" for b, n in zip(slots, names, strict=True)]
    begun = [f"{n} = {b.name}[0];" for b, n in zip(slots, names, strict=True)]
    w.line(" ".join(["if (WARPS > 1) { if (lane % WARP == 0) {", *puts, "} sync();", *begun]))
    w.line(" ".join(["for (int k = 1; k < WARPS; ++k) {", *joined([f"{b.name}[k]" for b in slots]), "} }"]))
    w.loops.append(Loop(1, 15 * len(group), w.times))
    return {
        j: named(w, op.outputs[0].shape, op.outputs[0].dtype, (name,))
        for (j, op), name in zip(group, names, strict=True)
    }


def running(w: Writer, op: Operation, x: Value, target: Buffer | None) -> Value:
    """Write cumulative sums, products or extremes along an axis, by one lane."""
    out, axis, reverse = op.outputs[0], op.params["axis"], op.params["reverse"]
    start, join = CUMULATIVE[op.name]
    n, lengths = x.shape[axis], [m for d, m in enumerate(x.shape) if d != axis]
    buffer, body = result_buffer(w, op, [x], target), w.body()
    head, index = w.every(body, lengths)
    total = body.variable(out.dtype, start(out.dtype), x.uniform)
    with body.loop(n) as t:
        i = body.index(f"({n - 1} - {t})") if reverse else t
        place = [*index[:axis], i, *index[axis:]]
        body.lines.append(f"ASSIGN({total}, {join(total, body.at(x, place), out=out.dtype)});")
        body.lines.append(f"PUT({buffer.name}, {body.index(linear(place, out.shape))}, {total});")
        body.cost += 4 * body.times
    w.write(body, [], math.prod(lengths), head)
    w.written(buffer)
    return w.stored(buffer, out.shape)


def long_cumsum(w: Writer, op: Operation, x: Value, target: Buffer | None) -> Value:
    """Write a prefix sum of a long axis in three passes: sums of parts, prefix sums of these, sums within each part."""
    out, axis, reverse = op.outputs[0], op.params["axis"], op.params["reverse"]
    count = x.shape[axis]
    parts = min(MOST_PARTS, LANES_OF_SUM * -(-count // (TERMS_OF_PART * LANES_OF_SUM)))
    size, outer = -(-count // parts), (*x.shape[:axis], *x.shape[axis + 1 :])
    buffer = target or w.buffer(out.dtype, x.size)

    def visit(body: Body, index: Sequence[Index], total: str, store: bool) -> None:
        """Add the entries of a part, in their order, and with `store` write the sum at each."""
        with body.loop(size) as t:
            i = body.index(plus(f"{index[-1]} * {size}", t))
            inside = body.index(chosen(f"{i} < {count}", str(i), str(count - 1)))
            place = [*index[:axis], body.index(f"({count - 1} - {inside})") if reverse else inside, *index[axis:-1]]
            term = body.at(x, place)
            stored = f" PUT({buffer.name}, {body.index(linear(place, out.shape))}, {total});" if store else ""
            body.lines.append(f"if ({i} < {count}) {{ {total} = {total} + {term};{stored} }}")
            body.cost += (6 if store else 4) * body.times

    def of_part(body: Body, index: Sequence[Index]) -> str:
        total = body.variable(out.dtype, "0")
        visit(body, index, total, store=False)
        return total

    sums = w.memory(Value((*outer, parts), out.dtype, of_part, RECOMPUTED * size))

    def before(body: Body, index: Sequence[Index]) -> str:
        total = body.variable(out.dtype, "0")
        with body.loop(parts) as t:
            term = body.at(sums, [*index[:-1], t])
            body.lines.append(f"if ({t} < {index[-1]}) {total} = {total} + {term};")
            body.cost += 3 * body.times
        return total

    starts = w.memory(Value((*outer, parts), out.dtype, before, RECOMPUTED * parts))
    body, rows = w.body(), math.prod(starts.shape)
    head, index = w.every(body, starts.shape)
    visit(body, index, body.variable(out.dtype, body.at(starts, index)), store=True)
    w.write(body, [], rows, head)
    w.written(buffer)
    return w.stored(buffer, out.shape)


def product_of_matrices(w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None) -> Value | None:
    """Write a matrix product in the first form that suits it; None if its entries are best computed one by one."""
    forms = (sums_in_order, sparse_product, product_of_rows, product_by_rows)
    forms = forms if w.lanes == 1 else (shared_sums, blocked_product)
    return next((found for form in forms if (found := form(w, op, operands, target)) is not None), None)


def sums_in_order(w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None) -> Value | None:
    """Write the product with a constant matrix, such as sums over subtrees: parts that rows share are summed once.

    One lane adds entry by entry, and then row to row. None if rows share little, or for other operations.
    """
    factor, out = _constant_factor(op), op.outputs[0]
    x = operands[0 if factor is None else factor.side]
    if factor is None or x.used is not None or math.prod(out.shape) <= w.registers:
        return None
    sums, axis, place = _shared_parts(factor.matrix), factor.axis, factor.place
    own = [(r, k, scale) for r, (_, entries) in enumerate(sums) for k, scale in entries]
    order = np.argsort([np.count_nonzero(row) for row in factor.matrix], kind="stable")
    parts = [(int(r), part) for r in order for part in sums[r][0]]
    if len(own) + len(parts) > MOST_OF_ENTRIES * np.count_nonzero(factor.matrix):
        return None
    buffer = result_buffer(w, op, operands, target)
    w.fill(buffer, w.constant(np.zeros(math.prod(out.shape), out.dtype)), (math.prod(out.shape),))
    scales = w.constant(np.asarray([scale for *_, scale in own], out.dtype))

    def entry_of(body: Body, t: Index, rest: Sequence[Index], source: Index) -> str:
        term, scale = body.at(x, [*rest[:axis], source, *rest[axis:]]), body.at(scales, [t])
        return term if scale == literal(1, out.dtype) else f"{scale} * {term}"

    def row_of(body: Body, _: Index, rest: Sequence[Index], source: Index) -> str:
        return body.load(buffer, body.index(linear([*rest[:place], source, *rest[place:]], out.shape)))

    _add(w, buffer, out.shape, place, [(r, k) for r, k, _ in own], entry_of)
    _add(w, buffer, out.shape, place, parts, row_of)
    return w.stored(buffer, out.shape)


def _add(
    w: Writer,
    buffer: Buffer,
    shape: Sequence[int],
    place: int,
    pairs: Sequence[tuple[int, int]],
    term: Callable[[Body, Index, Sequence[Index], Index], str],
) -> None:
    """Add terms to rows of an array, along axis `place`, in the order of the pairs (row, source of its term)."""
    if not pairs:
        return
    body, lengths = w.body(), [n for d, n in enumerate(shape) if d != place]
    inner = written_out(lengths)
    head, (t, *outer) = w.every(body, (len(pairs), *lengths[:inner]))
    tables = (np.asarray(k, np.int32) for k in zip(*pairs, strict=True))
    row, source = (body.index(f"INSIDE({body.at(w.constant(k), [t])}, {k.max()})") for k in tables)
    stores = []
    for rest in itertools.product(*map(range, lengths[inner:])):
        index = [*outer, *rest]
        at = body.index(linear([*index[:place], row, *index[place:]], shape))
        total = body.fresh(buffer.dtype, f"AT({buffer.name}, {at}) + {term(body, t, index, source)}")
        stores.append(f"PUT({buffer.name}, {at}, {total});")
    w.write(body, stores, len(pairs) * math.prod(lengths[:inner]), head)
    w.written(buffer)


def sparse_product(w: Writer, op: Operation, operands: Sequence[Value], _: Buffer | None) -> Value | None:
    """Return the product with a constant matrix, mostly zeros, as sums over its other entries; None for others."""
    factor, out = _constant_factor(op), op.outputs[0]
    x = operands[0 if factor is None else factor.side]
    if factor is None or x.used is not None or not _is_sparse(factor.matrix):
        return None
    matrix, other, place = factor.matrix, factor.axis, factor.place
    rows, columns = np.nonzero(matrix)
    first = np.searchsorted(rows, np.arange(len(matrix) + 1)).astype(np.int32)
    first, columns, entries = w.constant(first), w.constant(columns.astype(np.int32)), w.constant(matrix[matrix != 0])

    def entry(body: Body, index: Sequence[Index]) -> str:
        row, rest = index[place], [i for d, i in enumerate(index) if d != place]
        total = body.variable(out.dtype, "0", x.uniform)
        begin, end = (body.at(first, [body.index(plus(row, k))]) for k in (0, 1))
        with body.loop(len(rows), end, begin) as t:
            at = body.at(columns, [t])
            term = body.at(x, [*rest[:other], at, *rest[other:]])
            body.lines.append(f"ASSIGN({total}, {total} + {body.at(entries, [t])} * {term});")
            body.cost += 3 * body.times
        return total

    mean = -(-len(rows) // len(matrix))
    found = Value(out.shape, out.dtype, entry, mean * (x.cost + CYCLES_OF_LOAD + 1), uniform=x.uniform)
    return with_reads(op, found, operands)


def has_sparse_factor(op: Operation) -> bool:
    """Return whether an operation is a product with a constant matrix that is mostly zeros."""
    factor = _constant_factor(op) if op.name == "dot_general" else None
    return factor is not None and _is_sparse(factor.matrix)


def _is_sparse(matrix: np.ndarray) -> bool:
    return 2 * int(np.count_nonzero(matrix)) <= matrix.size


class _Factor(NamedTuple):
    """A constant matrix of a product; each of its rows makes a row of the result, along axis `place`.

    The other operand is number `side`, and is summed over its `axis`.
    """

    matrix: np.ndarray
    side: int
    axis: int
    place: int


def _constant_factor(op: Operation) -> _Factor | None:
    """Return the constant matrix of a product, or None."""
    (axes, (batch, _)), out = op.params["dimension_numbers"], op.outputs[0]
    side, given = next(((k, x) for k, x in enumerate(op.inputs) if isinstance(x, np.ndarray)), (0, None))
    if given is None or batch or len(axes[0]) != 1 or given.ndim != 2 or not given.size or not is_real(out.dtype):
        return None
    matrix = np.moveaxis(given, axes[side][0], 1)
    return _Factor(matrix, 1 - side, axes[1 - side][0], 0 if side == 0 else len(out.shape) - 1)


def shared_sums(w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None) -> Value | None:
    """Write the product with a constant matrix, mostly zeros, such as sums over subtrees; None if that is slower.

    A lane computes all rows for a column. Rows that are parts of a longer one are summed once.
    """
    factor, out = _constant_factor(op), op.outputs[0]
    if factor is None or not _is_sparse(factor.matrix):
        return None
    x = operands[factor.side]
    if x.used is not None and x.used[0] == factor.axis:
        return None
    rows, axis, place = len(factor.matrix), factor.axis, factor.place
    columns, sums = math.prod(out.shape) // max(rows, 1), _shared_parts(factor.matrix)
    terms = sum(len(parts) + len(own) for parts, own in sums)
    at_once = -(-columns // LANES_OF_SUM) * (np.count_nonzero(factor.matrix.any(0)) * CYCLES_OF_LOAD + terms + rows)
    apart = -(-columns * rows // LANES_OF_SUM) * factor.matrix.shape[1] * TERM_OF_PRODUCT
    if at_once > apart or terms > MOST_SHARED:
        return None

    def entry(body: Body, index: Sequence[Index]) -> str:
        parts, own = sums[int(index[place])]
        rest = [i for d, i in enumerate(index) if d != place]
        found = [body.at(value, [*index[:place], r, *index[place + 1 :]]) for r in parts]
        for k, scale in own:
            term = body.at(x, [*rest[:axis], k, *rest[axis:]])
            found.append(term if scale == 1 else body.let(out.dtype, f"({literal(scale, out.dtype)} * {term})"))
        if len(found) == 1:
            return found[0]
        body.cost += len(found) * body.times
        return body.let(out.dtype, f"({' + '.join(found)})") if found else literal(0, out.dtype)

    used = x.used and (x.used[0] - (x.used[0] > axis) + (place == 0), x.used[1])
    value = Value(out.shape, out.dtype, entry, terms, used=used)
    buffer = result_buffer(w, op, operands, target)
    w.fill(buffer, value, out.shape, own=(place,))
    return replace(w.stored(buffer, out.shape), used=used)


def _shared_parts(matrix: np.ndarray) -> list[tuple[list[int], list[tuple[int, Any]]]]:
    """Return each row of a matrix as a sum: of other rows, which have fewer entries, and of entries of its own."""
    rows = [{(int(k), row[k].item()) for k in np.flatnonzero(row)} for row in matrix]
    order = sorted(range(len(rows)), key=lambda r: len(rows[r]))
    found: dict[int, tuple[list[int], list[tuple[int, Any]]]] = {}
    for n, r in enumerate(order):
        left, parts = set(rows[r]), []
        for other in reversed(order[:n]):
            if rows[other] and rows[other] <= left:
                parts.append(other)
                left -= rows[other]
        found[r] = parts, sorted(left)
    return [found[r] for r in range(len(rows))]


def product_of_rows(w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None) -> Value | None:
    """Write a product of rows of two matrices in memory, each by vectors of its terms; None for other products."""
    (a, b), out = operands, op.outputs[0]
    (axes, others), (batch, _) = op.params["dimension_numbers"]
    are_rows = tuple(axes) == (len(a.shape) - 1,) and tuple(others) == (len(b.shape) - 1,)
    if batch or not are_rows or a.shape[-1] < LEAST_OF_ROW or not is_real(out.dtype) or not w.calls:
        return None
    if any(x.used is not None for x in operands) or (a.buffer is None and b.buffer is None):
        return None
    left, right = (w.in_buffer(x).buffer for x in operands)
    count, kind = a.shape[-1], c_type(out.dtype)

    def entry(body: Body, index: Sequence[Index]) -> str:
        assert left is not None and right is not None  # they are in memory
        rows = len(a.shape) - 1
        at = [body.index(linear([*i, 0], x.shape)) for x, i in ((a, index[:rows]), (b, index[rows:]))]
        body.reads |= {left, right}
        body.cost += count * body.times
        return body.let(out.dtype, f"dot_{kind}({left.name} + {at[0]}, {right.name} + {at[1]}, {count})")

    buffer = result_buffer(w, op, operands, target)
    w.fill(buffer, Value(out.shape, out.dtype, entry, count), out.shape, own=())
    return w.stored(buffer, out.shape)


def product_by_rows(w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None) -> Value | None:
    """Write a matrix product by one lane: a pass over a row of the result adds terms to all of its entries.

    A compiler makes vectors of neighbouring entries, and not of the terms of one sum, whose order counts. None for
    short sums, which are written out, and for other operations.
    """
    (ca, _), _ = op.params["dimension_numbers"]
    out = op.outputs[0]
    count = math.prod(operands[0].shape[d] for d in ca)
    few = count <= WRITTEN_SUM or math.prod(out.shape) <= w.registers
    if w.wide or len(ca) != 1 or few or not is_real(out.dtype) or any(x.used is not None for x in operands):
        return None
    buffer, term = result_buffer(w, op, operands, target), term_of_product(op, operands)
    for first in range(0, count, TERMS_AT_ONCE):

        def entry(body: Body, index: Sequence[Index], first: int = first) -> str:
            before = [f"AT({buffer.name}, {body.index(linear(index, out.shape))})"] if first else []
            terms = [term(body, index, [t]) for t in range(first, min(first + TERMS_AT_ONCE, count))]
            return body.let(out.dtype, f"({' + '.join([*before, *terms])})")

        w.fill(buffer, Value(out.shape, out.dtype, entry), out.shape, own=())
    return w.stored(buffer, out.shape)


def _block_of_product(w: Writer, op: Operation, operands: Sequence[Value]) -> tuple[int, int] | None:
    """Return rows and columns of the blocks of a matrix product; None if blocks gain too little over single entries."""
    (a, b), out = operands, op.outputs[0]
    (ca, cb), (batch, _) = op.params["dimension_numbers"]
    if batch or (len(ca), len(a.shape), len(b.shape)) != (1, 2, 2) or a.shape[ca[0]] < LEAST_TERMS:
        return None
    if any(x.used is not None and x.used[0] not in c for x, c in ((a, ca), (b, cb))):
        return None
    rows, cols = out.shape

    def cost(r: int, c: int) -> float:
        return math.ceil(-(-rows // r) * -(-cols // c) / w.lanes) * (r + c + r * c + CYCLES_OF_LOOP)

    sizes = [(r, c) for r in range(1, MOST_OF_BLOCK + 1) for c in range(1, MOST_OF_BLOCK // r + 1)]
    best = min(sizes, key=lambda n: cost(*n))
    return best if cost(*best) < 0.8 * cost(1, 1) and best != (1, 1) else None


def blocked_product(w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None) -> Value | None:
    """Write a blocked matrix product: a lane computes blocks, and uses each entry that it reads for several sums."""
    block = _block_of_product(w, op, operands)
    if block is None:
        return None
    (a, b), out = operands, op.outputs[0]
    (ca, cb), _ = op.params["dimension_numbers"]
    blocks = [-(-n // size) for n, size in zip(out.shape, block, strict=True)]
    _, used = in_use(a if a.used is not None else b, ca if a.used is not None else cb)
    buffer, body = result_buffer(w, op, operands, target), w.body()
    head, first = w.every(body, blocks)
    starts = [body.index(f"({i} * {size})") for i, size in zip(first, block, strict=True)]
    places = [
        [clamped(body, str(plus(start, k)), n - 1) if n % size else body.index(plus(start, k)) for k in range(size)]
        for start, n, size in zip(starts, out.shape, block, strict=True)
    ]
    sums = {(r, c): body.variable(out.dtype, "0") for r in range(block[0]) for c in range(block[1])}
    with body.loop(a.shape[ca[0]], used) as t:
        left = [body.at(a, [t, i] if ca[0] == 0 else [i, t]) for i in places[0]]
        right = [body.at(b, [t, j] if cb[0] == 0 else [j, t]) for j in places[1]]
        for (r, c), total in sums.items():
            body.lines.append(f"{total} = {total} + {left[r]} * {right[c]};")
            body.cost += body.times
    stores = [
        f"PUT({buffer.name}, {body.index(linear([places[0][r], places[1][c]], out.shape))}, {total});"
        for (r, c), total in sums.items()
    ]
    w.write(body, stores, math.prod(blocks), head)
    w.written(buffer)
    return w.stored(buffer, out.shape)
