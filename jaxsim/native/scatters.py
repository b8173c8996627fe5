"""Write scatters: by a loop over updates, or by entries that look for their own updates, whose sums have an order."""

import math
from collections.abc import Sequence

import numpy as np

from jaxsim.native.expressions import Index, chosen, linear, plus, unravelled
from jaxsim.native.jaxpr import Operation
from jaxsim.native.operations import SCATTERS, clamped, known_rows
from jaxsim.native.writer import CYCLES_OF_LOAD, ONE, Body, Buffer, Value, Writer, result_buffer, with_reads

MOST_SEARCHED = 4096  # entries times updates, for scatters in which each entry loops over all updates
MOST_LISTED = 256  # updates at run-time places, which one lane goes over
MOST_WRITTEN = 16  # updates of a row that lanes write out, if most rows have few
IN_ORDER = ("ADD", "TIMES")  # how updates join whose results depend on their order
CYCLES_OF_ATOMIC = 4


def scatter(w: Writer, op: Operation, operands: Sequence[Value], claimed: bool, target: Buffer | None) -> Value:
    """Write a scatter as a parallel loop over updates, in place if the buffer of the array is `claimed`.

    If two updates have the same place, either may be the last one, as in XLA.
    """
    (x, indices, updates), out, mode = operands, op.outputs[0], str(op.params["mode"])
    d = op.params["dimension_numbers"]
    uniform = all(y.uniform for y in operands)
    if claimed and x.buffer is not None and x.buffer.uniform == uniform and target in (None, x.buffer):
        buffer = x.buffer
        indices, updates = (w.memory(y) if buffer in y.reads else y for y in (indices, updates))
    else:
        buffer = result_buffer(w, op, operands, target)
        w.fill(buffer, x, out.shape)
    if not updates.size:
        return w.stored(buffer, out.shape)
    body, rows = w.body(), updates.size
    head, index = w.every(body, updates.shape, updates.used)
    at = [i for k, i in enumerate(index) if k not in d.update_window_dims]
    kept = [k for k in range(len(x.shape)) if k not in (*d.inserted_window_dims, *d.operand_batching_dims)]
    sizes = {dim: updates.shape[o] for dim, o in zip(kept, d.update_window_dims, strict=True)}
    place: list[Index] = [0] * len(x.shape)
    for k, dim in zip(d.scatter_indices_batching_dims, d.operand_batching_dims, strict=True):
        place[dim] = at[k]
    tests = []
    for k, dim in enumerate(d.scatter_dims_to_operand_dims):
        start, most = body.at(indices, [*at, k]), x.shape[dim] - sizes.get(dim, 1)
        place[dim] = clamped(body, start, most) if "CLIP" in mode else start
        if "FILL" in mode:
            tests.append(f"{start} >= 0 && {start} <= {most}" if most >= 0 else "false")
            place[dim] = clamped(body, start, max(most, 0)) if w.wide else start
            body.cost += 2
    for dim, o in zip(kept, d.update_window_dims, strict=True):
        place[dim] = plus(place[dim], index[o])
    value = body.at(updates, index)
    join = w.atomic(SCATTERS[op.name][1], out.dtype)
    to = body.index(linear(place, out.shape))
    test = body.let(np.dtype(bool), " && ".join(tests)) if tests else "true"
    store = f"{join}({test}, {buffer.name}, {to}, {value});"
    body.cost += CYCLES_OF_ATOMIC * (SCATTERS[op.name][1] != "SET")
    body.reads.add(buffer)  # the copy of the operand must be complete
    w.write(body, [store], rows, head)
    w.written(buffer)
    return w.stored(buffer, out.shape)


def rows_to_look_for(op: Operation) -> np.ndarray | None:
    """Return the known updates of each row, which lanes write out, or None; also None if most rows have few of many."""
    rows = known_rows(op)
    if rows is None:
        return None
    is_uneven = rows.shape[1] > MOST_WRITTEN and rows.size > MOST_WRITTEN * op.inputs[2].shape[0]
    return None if is_uneven and SCATTERS[op.name][1] in IN_ORDER else rows


def is_searched(op: Operation) -> bool:
    """Return whether each entry of a scatter loops over all updates: sums keep their order, and the work is small."""
    updates, out = op.inputs[2], op.outputs[0]
    if SCATTERS[op.name][1] == "SET":
        return False
    window = math.prod(updates.shape[k] for k in op.params["dimension_numbers"].update_window_dims)
    return math.prod(out.shape) * math.prod(updates.shape) <= MOST_SEARCHED * max(window, 1)


def update_lists(w: Writer, op: Operation, operands: Sequence[Value]) -> tuple[Value, Value] | None:
    """Return linked lists of a scatter's updates: the first update of each place, and the next one after each update.

    -1 ends a list. Where places are known at run time only, one lane makes the lists. Returns None if the order does
    not matter, places overlap, or lists cost too much.
    """
    (x, indices, updates), d, mode = operands, op.params["dimension_numbers"], str(op.params["mode"])
    dims, axes = d.scatter_dims_to_operand_dims, _axes_of_updates(op)
    lengths, sizes = [updates.shape[k] for k in axes], [x.shape[k] for k in dims]
    count, known = math.prod(lengths), op.inputs[1]
    used = None if updates.used is None else f"{updates.used[1]} * {math.prod(lengths[1:])}"  # the first axis has rows
    has_order = SCATTERS[op.name][1] in IN_ORDER
    if not has_order or d.operand_batching_dims or set(dims) != set(d.inserted_window_dims) or not x.size or not count:
        return None
    if isinstance(known, np.ndarray):
        at = known.reshape(count, len(dims))
        inside = np.all((at >= 0) & (at < sizes), 1)
        at = np.clip(at, 0, np.array(sizes) - 1) @ [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
        first, after = np.full(math.prod(sizes), -1, np.int32), np.full(count, -1, np.int32)
        for u in range(count)[::-1]:
            if inside[u] or "CLIP" in mode:
                after[u], first[at[u]] = first[at[u]], u
        return w.constant(first), w.constant(after)
    if count > MOST_LISTED:
        return None

    def place(body: Body, index: Sequence[Index]) -> str:
        at, tests, starts = [body.index(i) for i in unravelled(index[0], lengths)], [], []
        for k, size in enumerate(sizes):
            start = body.at(indices, [*at, k])
            tests += [f"{start} >= 0 && {start} < {size}"] if "FILL" in mode else []
            starts.append(clamped(body, start, size - 1) if "CLIP" in mode else start)
        found = str(body.index(linear(starts, sizes)))
        return body.let(np.dtype(np.int32), chosen(" && ".join(tests), found, "-1")) if tests else found

    int32, size = np.dtype(np.int32), math.prod(sizes)
    own = Value(
        (count,),
        int32,
        place,
        indices.cost + 4 * len(sizes),
        reads=indices.reads,
        used=None if used is None else (0, used),
    )
    places = w.in_buffer(own).buffer
    first, after = w.memory(w.constant(np.full(size, -1, np.int32)), w.buffer(int32, size)), w.buffer(int32, count)
    assert places is not None and first.buffer is not None  # they are in memory
    body = w.body()
    with body.loop(count, used) as t:
        u = body.index(f"({used or count} - 1 - {t})")
        at = body.load(places, u)
        head = f"{first.buffer.name}, {at}"
        body.lines.append(f"if ({at} >= 0) {{ PUT({after.name}, {u}, AT({head})); PUT({head}, {u}); }}")
        body.cost += 6 * body.times
    body.reads.add(first.buffer)
    w.write(body, [], 1, ONE)
    w.written(first.buffer)
    w.written(after)
    return first, w.stored(after, (count,))


def _axes_of_updates(op: Operation) -> list[int]:
    """Return the axes of a scatter's updates that are not window axes."""
    window = op.params["dimension_numbers"].update_window_dims
    return [k for k in range(len(op.inputs[2].shape)) if k not in window]


def along_lists(op: Operation, operands: Sequence[Value], first: Value, after: Value) -> Value:
    """Write a scatter in which each entry follows the list of its updates, so that sums have a fixed order."""
    (x, _, updates), out, d = operands, op.outputs[0], op.params["dimension_numbers"]
    join, dims, axes = SCATTERS[op.name][0], d.scatter_dims_to_operand_dims, _axes_of_updates(op)
    lengths, kept = (
        [updates.shape[k] for k in axes],
        [k for k in range(len(x.shape)) if k not in d.inserted_window_dims],
    )
    often = max(1, math.prod(lengths) / first.size)

    def entry(body: Body, index: Sequence[Index]) -> str:
        total = body.variable(x.dtype, body.at(x, index))
        row = body.index(linear([index[k] for k in dims], [x.shape[k] for k in dims]))
        u = body.variable(first.dtype, body.at(first, [row]))
        with body.turns(f"{u} >= 0", often):
            full: list[Index] = [0] * len(updates.shape)
            for k, i in zip(
                [*axes, *d.update_window_dims], [*unravelled(u, lengths), *(index[k] for k in kept)], strict=True
            ):
                full[k] = body.index(i)
            body.lines.append(f"ASSIGN({total}, {join(total, body.at(updates, full), out=x.dtype)});")
            body.lines.append(f"ASSIGN({u}, {body.at(after, [u])});")
        return total

    cost = x.cost + often * (updates.cost + CYCLES_OF_LOAD + 4)
    return with_reads(op, Value(out.shape, out.dtype, entry, math.ceil(cost)), [x, updates, first, after])
