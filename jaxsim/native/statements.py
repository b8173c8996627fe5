"""Write operations as statements of a program: choose arrays to store, write loops, branches and linear systems."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxsim.native.expressions import (
    C_TYPES,
    ELEMENTWISE,
    Index,
    UnsupportedPrimitive,
    c_type,
    chosen,
    linear,
    plus,
    unravelled,
)
from jaxsim.native.jaxpr import CALLS, CORE, GPU, VECTORS, Flat, Operation, Term, Var, flatten
from jaxsim.native.operations import (
    COST,
    CUMULATIVE,
    EXPRESSIONS,
    JOINS,
    OFTEN,
    REDUCTIONS,
    SCATTERS,
    STARTS,
    VIEWS,
    clamped,
    in_use,
    known_rows,
    starts_of,
)
from jaxsim.native.sorting import sort
from jaxsim.native.systems import cholesky, small_matrices, triangular_solve
from jaxsim.native.uniform import carried_by_while, uniform_outputs, uniform_results
from jaxsim.native.used import rows_in_use
from jaxsim.native.writer import (
    CYCLES_OF_LOAD,
    OFTEN_COST,
    Body,
    Buffer,
    Loop,
    Targets,
    Value,
    Writer,
    named,
    reshaped,
)
from jaxsim.xla.compat import scan_lengths

RECOMPUTED = 8  # instructions: a value is recomputed up to this cost, and stored above it
UNKNOWN_TRIPS = 4  # iterations assumed for a loop of unknown length, in estimates of cost
LONGEST_ROW = 32  # numbers of a row that one lane concatenates
MOST_OF_BLOCK, LEAST_TERMS = 32, 4  # most sums of a matrix product that a lane computes together; fewest terms of each
CYCLES_OF_LOOP = 3  # overhead of an iteration, in instructions
MOST_WARPS = 32  # of a world
FEWEST_OF_TOTAL = 12  # numbers from which on a reduction is parallel; shorter ones are computed by every lane
MOST_APART = 16  # distance, in operations, of reductions that are fused
LANES_OF_SUM, MOST_PARTS = 32, 512  # parts of a long sum, at least and at most
TERMS_OF_PART = 16
MOST_SEARCHED = 4096  # entries times updates, for scatters in which each entry loops over all updates
MOST_LISTED = 256  # updates at run-time places, for lists that compare each place with all others
MOST_EMPTY = 1.5  # places in the table of known updates, for each update
CYCLES_OF_ATOMIC, CYCLES_OF_STORE, CYCLES_OF_WAIT = 4, 4, 10
SAME_PLACE = ("reshape", "squeeze", "expand_dims")


class _Scope:
    """Arrays of a function while its operations are written, and the buffers that may be overwritten."""

    def __init__(self, w: Writer, flat: Flat, args: Sequence[Value], owned: Sequence[bool]) -> None:
        self.w = w
        self.env: dict[Var, Value] = dict(zip(flat.inputs, args, strict=True))
        self.last: dict[Var, int] = {}
        for k, op in enumerate(flat.operations):
            self.last |= {v: k for v in op.inputs if isinstance(v, Var)}
        self.last |= {v: len(flat.operations) for v in flat.outputs if isinstance(v, Var)}
        self.used: dict[Var, tuple[int, str]] = {}
        self.foreign = {b for x, own in zip(args, owned, strict=True) if not own for b in x.reads}

    def read(self, v: Term) -> Value:
        return self.w.constant(v) if isinstance(v, np.ndarray) else self.env[v]

    def in_memory(self, v: Term, limit: int) -> Value:
        x = self.read(v)
        if x.cost > limit:
            x = self.w.memory(x)
            if isinstance(v, Var):
                self.env[v] = x
        return x

    def is_last(self, v: Term, k: int) -> bool:
        return isinstance(v, Var) and self.last.get(v, -1) == k

    def claim(self, v: Term, k: int) -> bool:
        """Return whether operation k may overwrite the buffer of its operand v; compute other readers first."""
        x = self.read(v)
        if not self.is_last(v, k) or x.buffer is None or x.buffer in self.foreign:
            return False
        for other, y in list(self.env.items()):
            if other is v or self.last.get(other, -1) < k or x.buffer not in y.reads:
                continue
            if y.buffer is x.buffer:
                return False  # an alias of the whole buffer
            self.env[other] = self.w.memory(y)
        return True


def compute(
    w: Writer,
    flat: Flat,
    args: Sequence[Value],
    targets: Targets | None = None,
    owned: Sequence[bool] | None = None,
    made: Callable[[Buffer], None] = lambda _: None,
    used: dict[Var, tuple[int, str]] | None = None,
) -> list[Value]:
    """Write the operations of a function for these arguments, and return its results.

    `targets` are buffers for some of the results; `made` is called when one holds its result. Buffers of `owned`
    arguments may be overwritten. Of arrays with an axis of rows in use, only the `used` part is computed.
    """
    targets, used, totals = targets or {}, used or {}, {}
    groups = _groups(flat) if w.lanes > 1 else {}
    kept = _kept(flat, w.keeps_more, w.lanes, groups) | set(targets)
    scope = _Scope(w, flat, args, owned or [False] * len(args))
    scope.used = used
    for k, op in enumerate(flat.operations):
        for v in op.outputs:
            if v in targets and not targets[v].version:
                targets[v].first = w.epoch
        if k in groups:
            totals |= _totals(w, flat, groups[k], scope)
        found = [totals.pop(k)] if k in totals else _results(w, op, scope, k, targets)
        for v, x in zip(op.outputs, found, strict=True):
            x = replace(x, used=used[v]) if v in used else x
            is_small = w.lanes == 1 and 0 < x.size <= w.registers and op.name not in VIEWS
            if v in targets and x.buffer is not targets[v]:
                x = w.memory(x, targets[v])
            elif x.buffer is None and x.names is None and (v in kept or is_small):
                x = w.memory(x)
            scope.env[v] = x
            if v in targets:
                made(targets[v])
    return [scope.read(v) for v in flat.outputs]


def _results(w: Writer, op: Operation, scope: _Scope, k: int, targets: Targets) -> list[Value]:
    """Write an operation and return its results."""
    if op.name in SEQUENTIAL and w.sequential:
        return SEQUENTIAL[op.name](w, op, [scope.in_memory(v, RECOMPUTED) for v in op.inputs])
    if not is_written(op.name):
        raise UnsupportedPrimitive(f"no source for {op.name}")
    if op.name in STATEMENTS or op.name in CONTROL:
        operands = [scope.in_memory(v, RECOMPUTED) for v in op.inputs]
        if op.name in CONTROL:
            return CONTROL[op.name](w, op, operands, _owned(op, scope, k), targets)
        return STATEMENTS[op.name](w, op, operands, targets)
    limit = OFTEN_COST if op.name in OFTEN and not _picks_few(op, w.lanes) else _limit(op, w.lanes)
    operands = [scope.in_memory(v, limit) for v in op.inputs]
    target = targets.get(op.outputs[0])
    small = w.lanes == 1 and target is None and math.prod(op.outputs[0].shape) <= w.registers
    if op.name in SAME_PLACE and (same := reshaped(operands[0], op.outputs[0].shape)) is not None:
        return [same]
    if op.name in JOINS and not small:
        return [_join(w, op, operands, target, scope.used.get(op.outputs[0]))]
    if op.name == "pad" and w.lanes == 1 and not small and all(c[2] == 0 for c in op.params["padding_config"]):
        return [_padded(w, op, operands, target)]
    if op.name == "dynamic_update_slice" and w.lanes == 1 and not small:
        return [_updated(w, op, operands, scope.claim(op.inputs[0], k), target)]
    if op.name in SCATTERS and w.lanes > 1 and (rows := _rows_to_look_for(w, op)) is not None:
        operands.append(w.constant(rows))
    elif (
        op.name in SCATTERS and w.lanes > 1 and not _is_searched(op) and (lists := _lists(w, op, operands)) is not None
    ):
        return [_along_lists(op, operands, *lists)]
    elif op.name in SCATTERS and (w.lanes == 1 or not _is_searched(op)):
        return [_scatter(w, op, operands, scope.claim(op.inputs[0], k), target)]
    if op.name in REDUCTIONS:
        operands = [_in_parts(w, op, operands[0])]
    if op.name in CUMULATIVE and w.lanes == 1 and op.inputs[0].shape[op.params["axis"]] > 1:
        return [_running(w, op, operands[0], target)]
    if op.name == "cumsum" and op.inputs[0].shape[op.params["axis"]] > LANES_OF_SUM:
        return [_long_cumsum(w, op, operands[0], target)]
    if op.name == "dot_general" and w.lanes > 1 and (block := _block_of_product(w, op, operands)) is not None:
        return [_product(w, op, operands, block, target)]
    return [_with_reads(op, x, operands) for x in EXPRESSIONS[op.name](op, operands)]


def _with_reads(op: Operation, x: Value, operands: Sequence[Value]) -> Value:
    """Return a new expression with its `reads` and `aligned` buffers set."""
    if x.buffer is not None or x.names is not None or any(x is y for y in operands):
        return x
    reads = frozenset().union(*(y.reads for y in operands))
    aligned = frozenset()
    if op.name in ELEMENTWISE:
        same = [y for y in operands if y.shape == x.shape]
        shifted = frozenset().union(*(y.reads - (y.aligned if y in same else frozenset()) for y in operands))
        aligned = frozenset().union(*(y.aligned for y in same)) - shifted
    return replace(x, reads=reads, aligned=aligned, uniform=all(y.uniform for y in operands))


def _owned(op: Operation, scope: _Scope, k: int) -> list[bool]:
    """Return which operands a loop or a branch may overwrite."""
    claimed = [scope.claim(v, k) for v in op.inputs]
    buffers = [scope.read(v).buffer for v in op.inputs]
    return [c and buffers.count(b) == 1 for c, b in zip(claimed, buffers, strict=True)]


def is_known(op: Operation, platform: str = GPU) -> bool:
    """Return whether the generator supports an operation and every nested jaxpr on a platform."""
    types = [v.dtype for v in (*op.inputs, *op.outputs)]
    if any(str(t) not in C_TYPES for t in types):
        return False
    if op.name in INNER:
        return all(is_known(inner, platform) for f in _inner(op, platform) for inner in f.operations)
    if op.name == "world_program":
        return platform == VECTORS
    if op.name == "ffi_call":
        return platform == CORE and op.params["target_name"].startswith("jaxsim_") and not op.params["attributes"]
    if op.name == "small_matrices":
        return op.params["plan"].name in SYSTEMS
    if op.name == "sort":
        return op.params["dimension"] == len(op.inputs[0].shape) - 1
    if op.name in ("lt_to", "le_to"):
        return not np.issubdtype(op.inputs[0].dtype, np.floating)
    return op.name in EXPRESSIONS or op.name in STATEMENTS


def is_written(name: str) -> bool:
    """Return whether the generator supports a primitive."""
    return name in (*EXPRESSIONS, *STATEMENTS, *CONTROL, *CALLS, *TRANSPARENT)


def _inner(op: Operation, platform: str) -> list[Flat]:
    """Return the functions of a loop or a branch."""
    found = (op.params[k] for k in INNER[op.name])
    closed = [c for x in found for c in (x if isinstance(x, tuple) else (x,))]
    return [flatten(c, platform) for c in closed]


def _limit(op: Operation, lanes: int) -> int:
    """Return the cost of an entry above which an operand is stored before it is broadcast or reduced."""
    x, out = op.inputs[0] if op.inputs else None, op.outputs[0]
    if op.name == "pad":  # evaluates the operand for all entries, also those of the padding
        return OFTEN_COST
    if op.name == "broadcast_in_dim" and x is not None:
        return RECOMPUTED if math.prod(out.shape) > 4 * math.prod(x.shape) else 10**9
    if op.name in REDUCTIONS and x is not None:
        return _limit_of_terms(math.prod(x.shape), max(1, math.prod(out.shape)), lanes)
    return 10**9


def _picks_few(op: Operation, lanes: int) -> bool:
    """Return whether one lane gathers at most half of an array at constant indices, so that it computes only these."""
    return (
        op.name == "gather"
        and lanes == 1
        and isinstance(op.inputs[1], np.ndarray)
        and 2 * math.prod(op.outputs[0].shape) <= math.prod(op.inputs[0].shape)
    )


def _limit_of_terms(terms: int, sums: int, lanes: int) -> int:
    """Return the cost of a term above which all lanes store the terms before others add them, because it is faster."""
    passes, count = math.ceil(sums / lanes), terms / sums
    saved = passes * count - math.ceil(terms / lanes)
    spent = math.ceil(terms / lanes) * CYCLES_OF_STORE + passes * count * CYCLES_OF_LOAD + CYCLES_OF_WAIT
    return math.ceil(spent / saved) if saved > 0 else 10**9


def _is_stored(op: Operation) -> bool:
    """Return whether the results of an operation are always stored in memory."""
    return op.name in STATEMENTS or op.name in CONTROL or op.name in JOINS


def _kept(flat: Flat, often: bool, lanes: int, groups: dict[int, list[int]]) -> set[Var]:
    """Return the arrays to store in memory, because loops read them more than once and recomputing them costs more.

    These are arrays that several loops read. With `often`, arrays that one loop reads many times are stored too. This
    is an estimate, since a lane does not recompute an expression that it has already computed.
    """
    cost: dict[Var, float] = {}
    reader = {j: k for k, group in groups.items() for j in group}  # a group counts as one loop
    for k, op in enumerate(flat.operations):
        own = sum(cost.get(v, 1) for v in op.inputs if isinstance(v, Var))
        x = op.inputs[0] if op.inputs else None
        if op.name in REDUCTIONS and x is not None:
            own *= math.prod(x.shape) / max(1, math.prod(op.outputs[0].shape))
        elif op.name == "dot_general" and x is not None:
            own *= math.prod(x.shape[d] for d in op.params["dimension_numbers"][0][0])
        price = 0 if op.name in VIEWS else COST.get(op.name, 2)
        is_stored = _is_stored(op) or k in reader
        cost |= dict.fromkeys(op.outputs, 1 if is_stored else min(own + price, 1e6))
    readers: dict[Var, set[int]] = {}
    for v in flat.outputs:
        if isinstance(v, Var):
            readers.setdefault(v, set()).add(-1)
    kept: set[Var] = set()
    read: dict[Var, float] = {}  # how many entries are computed if the array is not stored
    for k, op in reversed(list(enumerate(flat.operations))):
        mine: set[int] = {reader[k]} if k in reader else set()
        for v in op.outputs if k not in reader else ():
            found = readers.get(v, set())
            again = (len(found) - 1) * cost[v] > RECOMPUTED or (
                often and _is_read_often(v, read.get(v, 0), cost[v], lanes)
            )
            if again and op.name not in VIEWS:
                kept.add(v)
            mine |= {k} if v in kept else found
        if _is_stored(op):
            mine = {k}
        for v in op.inputs:
            if isinstance(v, Var):
                readers.setdefault(v, set()).update(mine)
                read[v] = read.get(v, 0) + (math.prod(v.shape) if k in reader else _entries(op, v, kept, read))
    return kept


def _is_read_often(v: Var, entries: float, cost: float, lanes: int) -> bool:
    """Return whether storing an array is cheaper than computing so many entries, if half of them are known already."""
    passes, own = entries / lanes, math.ceil(math.prod(v.shape) / lanes)
    spent = own * CYCLES_OF_STORE + passes * CYCLES_OF_LOAD + CYCLES_OF_WAIT
    return (passes / 2 - own) * cost > spent


def _entries(op: Operation, v: Var, kept: set[Var], read: dict[Var, float]) -> float:
    """Return how many entries of an operand an operation computes."""
    own, size = math.prod(v.shape), math.prod(op.outputs[0].shape)
    if _is_stored(op) or op.name in OFTEN:
        return own
    often = size if op.outputs[0] in kept else read.get(op.outputs[0], size)
    return often * (own / max(size, 1) if op.name in REDUCTIONS else 1)


def _new(w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None = None) -> Buffer:
    """Return memory for the result of an operation."""
    out = op.outputs[0]
    return target or w.buffer(out.dtype, math.prod(out.shape), uniform=all(x.uniform for x in operands))


def _join(
    w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None, used: tuple[int, str] | None
) -> Value:
    """Concatenate or stack arrays in memory; only a part of the result may be `used`."""
    out, axis = op.outputs[0], op.params["axis" if op.name == "stack" else "dimension"]
    buffer, begin = _new(w, op, operands, target), 0
    if axis > 0 and math.prod(out.shape[axis:]) <= LONGEST_ROW and math.prod(out.shape) > 0:
        joined = replace(JOINS[op.name](op, operands)[0], used=used)
        w.fill(buffer, joined, out.shape, split=axis)  # one lane writes a row
        return w.stored(buffer, out.shape)
    for x in operands:
        if op.name == "stack":
            place = lambda i, k=begin: [*i[:axis], k, *i[axis:]]  # noqa: E731
        else:
            place = lambda i, k=begin: [plus(n, k) if d == axis else n for d, n in enumerate(i)]  # noqa: E731
        w.fill(buffer, x, out.shape, place)
        begin += 1 if op.name == "stack" else x.shape[axis]
    return w.stored(buffer, out.shape)


def _padded(w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None) -> Value:
    """Pad an array in memory; entries that negative padding cuts off are not written."""
    (x, value), out = operands, op.outputs[0]
    low = [int(c[0]) for c in op.params["padding_config"]]
    high = [int(c[1]) for c in op.params["padding_config"]]
    buffer = _new(w, op, operands, target)
    every = Value(out.shape, out.dtype, lambda body, _: body.at(value, ()), uniform=value.uniform)
    w.fill(buffer, every, out.shape)
    begin = [max(0, -n) for n in low]
    shape = [n - b - max(0, -h) for n, b, h in zip(x.shape, begin, high, strict=True)]
    inner = Value(
        tuple(shape), x.dtype, lambda body, i: body.at(x, [plus(k, b) for k, b in zip(i, begin, strict=True)])
    )
    if all(n > 0 for n in shape):
        start = [max(0, n) for n in low]
        w.fill(buffer, inner, out.shape, lambda i: [plus(k, b) for k, b in zip(i, start, strict=True)])
    return w.stored(buffer, out.shape)


def _updated(w: Writer, op: Operation, operands: Sequence[Value], claimed: bool, target: Buffer | None) -> Value:
    """Write a block of an array, in place if its buffer is `claimed`."""
    (x, update, *starts), out = operands, op.outputs[0]
    uniform = all(y.uniform for y in operands)
    if claimed and x.buffer is not None and x.buffer.uniform == uniform and (target is None or target is x.buffer):
        buffer = x.buffer
        update = w.memory(update) if buffer in update.reads else update
    else:
        buffer = _new(w, op, operands, target)
        w.fill(buffer, x, out.shape)
    body = w.block
    begin = starts_of(body, starts, x.shape, update.shape)
    w.note_reads()
    w.fill(buffer, update, out.shape, lambda i: [plus(k, b) for k, b in zip(i, begin, strict=True)])
    return w.stored(buffer, out.shape)


def _running(w: Writer, op: Operation, x: Value, target: Buffer | None) -> Value:
    """Write cumulative sums, products or extremes along an axis, by one lane."""
    out, axis, reverse = op.outputs[0], op.params["axis"], op.params["reverse"]
    start, join = CUMULATIVE[op.name]
    n, lengths = x.shape[axis], [m for d, m in enumerate(x.shape) if d != axis]
    buffer, body = _new(w, op, [x], target), w.body()
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


def _in_parts(w: Writer, op: Operation, x: Value) -> Value:
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
    return _in_parts(w, op, w.memory(Value(shape, x.dtype, entry, size * RECOMPUTED)))


def _is_total(op: Operation) -> bool:
    """Return whether an operation reduces a long array to a number."""
    if op.name not in REDUCTIONS or not isinstance(op.inputs[0], Var):
        return False
    return math.prod(op.outputs[0].shape) == 1 and math.prod(op.inputs[0].shape) >= FEWEST_OF_TOTAL


def _groups(flat: Flat) -> dict[int, list[int]]:
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


def _totals(w: Writer, flat: Flat, together: Sequence[int], scope: _Scope) -> dict[int, Value]:
    """Write a group of reductions to a number, of arrays of one shape, in parallel."""
    group = [(j, flat.operations[j]) for j in together]
    first = group[0][1]
    terms = [scope.read(op.inputs[0]) for _, op in group]
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


def _product(
    w: Writer, op: Operation, operands: Sequence[Value], block: tuple[int, int], target: Buffer | None
) -> Value:
    """Write a blocked matrix product: a lane computes blocks, and uses each entry that it reads for several sums."""
    (a, b), out = operands, op.outputs[0]
    (ca, cb), _ = op.params["dimension_numbers"]
    blocks = [-(-n // size) for n, size in zip(out.shape, block, strict=True)]
    _, used = in_use(a if a.used is not None else b, ca if a.used is not None else cb)
    buffer, body = _new(w, op, operands, target), w.body()
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


def _long_cumsum(w: Writer, op: Operation, x: Value, target: Buffer | None) -> Value:
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


def _scatter(w: Writer, op: Operation, operands: Sequence[Value], claimed: bool, target: Buffer | None) -> Value:
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
        buffer = _new(w, op, operands, target)
        w.fill(buffer, x, out.shape)
    if not updates.size:
        return w.stored(buffer, out.shape)
    body, rows = w.body(), updates.size
    head, index = w.every(body, updates.shape)
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


def _rows_to_look_for(w: Writer, op: Operation) -> np.ndarray | None:
    """Return the known updates of each row, or None; also None if one lane would read a table with many gaps."""
    rows = known_rows(op)
    if rows is None or (w.lanes == 1 and rows.size > MOST_EMPTY * op.inputs[2].shape[0]):
        return None
    return rows


def _is_searched(op: Operation) -> bool:
    """Return whether each entry of a scatter loops over all updates: sums keep their order, and the work is small."""
    updates, out = op.inputs[2], op.outputs[0]
    if SCATTERS[op.name][1] == "SET":
        return False
    window = math.prod(updates.shape[k] for k in op.params["dimension_numbers"].update_window_dims)
    return math.prod(out.shape) * math.prod(updates.shape) <= MOST_SEARCHED * max(window, 1)


def _lists(w: Writer, op: Operation, operands: Sequence[Value]) -> tuple[Value, Value] | None:
    """Return linked lists of a scatter's updates: the first update of each place, and the next one after each update.

    -1 ends a list. Returns None if the order does not matter, places overlap, or lists cost too much.
    """
    (x, indices, updates), d, mode = operands, op.params["dimension_numbers"], str(op.params["mode"])
    dims, axes = d.scatter_dims_to_operand_dims, _axes_of_updates(op)
    lengths, sizes = [updates.shape[k] for k in axes], [x.shape[k] for k in dims]
    count, known = math.prod(lengths), op.inputs[1]
    is_sum = SCATTERS[op.name][1] in ("ADD", "TIMES")
    if not is_sum or d.operand_batching_dims or set(dims) != set(d.inserted_window_dims) or not x.size or not count:
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

    def first_with(body: Body, wanted: str, after: Index) -> str:
        found = body.variable(np.dtype(np.int32), "-1")
        with body.loop(count) as u:
            test = f"{found} < 0 && {u} > {after} && {body.at(places, [u])} == {wanted}"
            body.lines.append(f"ASSIGN({found}, {chosen(test, u, found)});")
            body.cost += 4 * body.times
        return found

    int32, cost = np.dtype(np.int32), count * (CYCLES_OF_LOAD + 4)
    places = w.memory(Value((count,), int32, place, indices.cost + 4 * len(sizes), reads=indices.reads))
    entry = lambda body, index: first_with(body, str(index[0]), -1)  # noqa: E731
    first = Value((math.prod(sizes),), int32, entry, cost, reads=places.reads)
    entry = lambda body, index: first_with(body, body.at(places, index), index[0])  # noqa: E731
    return w.memory(first), w.memory(Value((count,), int32, entry, cost, reads=places.reads))


def _axes_of_updates(op: Operation) -> list[int]:
    """Return the axes of a scatter's updates that are not window axes."""
    window = op.params["dimension_numbers"].update_window_dims
    return [k for k in range(len(op.inputs[2].shape)) if k not in window]


def _along_lists(op: Operation, operands: Sequence[Value], first: Value, after: Value) -> Value:
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
    return _with_reads(op, Value(out.shape, out.dtype, entry, math.ceil(cost)), [x, updates, first, after])


@dataclass
class _Place:
    """Variables or memory for an array that branches, or iterations of a loop, assign."""

    w: Writer
    value: Value

    def give(self, x: Value) -> None:
        """Write the values of an array."""
        if self.value.names is None:
            assert self.value.buffer is not None  # without names it has a buffer
            if self.value.buffer is not x.buffer:
                self.w.fill(self.value.buffer, x, x.shape)
            return
        if self.w.lanes > 1:
            self.w.assign(self.value.names[0], x)
            return
        entries = [self.w.block.at(x, i) for i in itertools.product(*map(range, x.shape))]
        self.w.note_reads()
        for name, entry in zip(self.value.names, entries, strict=True):
            self.w.line(f"ASSIGN({name}, {entry});")


def _place(w: Writer, v: Var, uniform: bool, in_memory: bool = False) -> _Place:
    """Return a new place for an array like `v`."""
    size = math.prod(v.shape)
    if 0 < size <= w.registers and not in_memory:
        names = w.declared(v.dtype, size, uniform or not w.wide)
        return _Place(w, named(w, v.shape, v.dtype, names, uniform))
    return _Place(w, w.stored(w.buffer(v.dtype, size, uniform=uniform and w.wide), v.shape))


def _settled(w: Writer, x: Value) -> Value:
    """Return the present value of a place, which later assignments do not change."""
    if x.names is None or w.lanes > 1:
        return x
    return named(w, x.shape, x.dtype, [w.block.fresh(x.dtype, name) for name in x.names], x.uniform)


def _cond(w: Writer, op: Operation, operands: list[Value], owned: list[bool], _: Targets) -> list[Value]:
    which, *args = operands
    branches = _inner(op, w.platform)
    uniform = uniform_results(op, [x.uniform for x in operands], w.platform) if w.wide else [False] * len(op.outputs)
    if w.wide and not which.uniform:
        return _cond_of_each(w, which, op, branches, args)
    (name,) = w.declared(np.int32, 1, True)
    w.assign(name, which)
    outer, written = w.lines, []
    w.sync()
    for branch in branches:
        w.lines = w.block.lines = []
        known, w.block.known = w.block.known, w.block.known.new_child()
        w.unread.clear()
        found = compute(w, branch, args, owned=owned[1:])
        written.append((w.lines, found, w.block.known, set(w.unread)))
        w.block.known = known
    w.lines = w.block.lines = outer
    mine = [x.buffer for x, own in zip(args, owned[1:], strict=True) if own]
    places: list[_Place] = []
    for k, v in enumerate(op.outputs):
        buffers = {found[k].buffer for _, found, *_ in written}
        (same,) = buffers if len(buffers) == 1 else (None,)
        in_place = w.lanes == 1 and any(same is b for b in mine)
        places.append(_Place(w, w.stored(same, v.shape)) if in_place and same else _place(w, v, uniform[k]))
    for k, (lines, found, known, unread) in enumerate(written):
        test = f"if ({name} <= 0)" if k == 0 else f"if ({name} == {k})"
        head = "" if len(branches) == 1 else "else" if k == len(branches) - 1 else f"{'else ' * (k > 0)}{test}"
        with w.scope(head):
            w.lines += lines
            w.block.known, w.unread = known, unread
            for place, x in zip(places, found, strict=True):
                place.give(x)
    w.sync()
    return [p.value for p in places]


def _cond_of_each(
    w: Writer, which: Value, op: Operation, branches: Sequence[Flat], args: Sequence[Value]
) -> list[Value]:
    """Return the results of each world's branch: run all branches in turn, except those that no world takes."""
    places = [_place(w, v, False) for v in op.outputs]
    own = w.name_of(which)
    for k, branch in enumerate(branches):
        test = f"{own} <= 0" if k == 0 else f"{own} == {k}"
        test = f"{own} >= {k}" if k and k == len(branches) - 1 else test
        mine = next(w.names)
        w.line(f"LET(bool, {mine}, {test});")
        with w.scope(f"if (ANY({mine}))"):
            for place, x in zip(places, compute(w, branch, args), strict=True):
                place.give(_where(mine, x, place.value))
    return [p.value for p in places]


def _where(mask: str, x: Value, old: Value) -> Value:
    """Return the new array in worlds where the mask holds, and the old one elsewhere."""
    entry = lambda body, i: body.let(x.dtype, chosen(mask, body.at(x, i), body.at(old, i)))  # noqa: E731
    aligned = (x.aligned | old.aligned) - (x.reads - x.aligned)
    return Value(x.shape, x.dtype, entry, x.cost + CYCLES_OF_LOAD, reads=x.reads | old.reads, aligned=aligned)


def _carried(
    w: Writer,
    variables: Sequence[Var],
    start: Sequence[Value],
    owned: Sequence[bool],
    uniform: Sequence[bool],
    targets: Targets,
    indexed: set[int],
) -> list[_Place]:
    """Return initialised places of the arrays that a loop carries: with one lane, the `targets` of its results if any.

    Arrays of `indexed` are stored in memory, since the loop writes entries at run-time indices.
    """
    places = []
    for k, (v, x, own, u) in enumerate(zip(variables, start, owned, uniform, strict=True)):
        is_small = math.prod(v.shape) <= w.registers and k not in indexed
        target = targets.get(v) if w.lanes == 1 and not w.wide and not is_small else None
        if target is not None:
            places.append(_Place(w, w.stored(target, v.shape)))
            if not x.unset:
                places[-1].give(x)
        elif own and x.buffer is not None and x.buffer.uniform == (u and w.wide) and x.size > 1:
            places.append(_Place(w, w.stored(x.buffer, v.shape)))
            x.buffer.version += 1
        else:
            places.append(_place(w, v, u, k in indexed))
            if not x.unset or w.wide:
                places[-1].give(x)
    return places


def _indexed(w: Writer, body: Flat, first: int, size: int) -> set[int]:
    """Return which of `size` inputs, from `first` on, a loop of one lane writes at run-time indices."""
    mine = {v: k for k, v in enumerate(body.inputs[first : first + size])}
    if w.lanes > 1 or w.wide or all(math.prod(v.shape) <= 1 or math.prod(v.shape) > w.registers for v in mine):
        return set()
    return {mine[v] for v in _written_at_run_time(body) if v in mine}


def _written_at_run_time(flat: Flat) -> set[Var]:
    """Return the arrays whose entries are written at run-time indices, also in nested functions."""
    found: set[Var] = set()
    for op in reversed(flat.operations):
        indices = op.inputs[1:2] if op.name in SCATTERS else op.inputs[2:]
        if op.name in SCATTERS or op.name == "dynamic_update_slice":
            found |= {v for v in op.inputs[:1] if isinstance(v, Var) and any(isinstance(i, Var) for i in indices)}
        elif op.name in CONTROL:
            for inner, operands in zip(_inner(op, GPU), _operands_of_inner(op), strict=True):
                below = _written_at_run_time(inner)
                pairs = zip(operands, inner.inputs, strict=True)
                found |= {v for v, x in pairs if isinstance(v, Var) and x in below and v.shape == x.shape}
    return found


def _operands_of_inner(op: Operation) -> list[Sequence[Term]]:
    """Return the operands of each function of a loop or a branch."""
    if op.name == "cond":
        return [op.inputs[1:]] * len(op.params["branches"])
    if op.name == "scan":
        return [op.inputs]
    of_test, of_body = op.params["cond_nconsts"], op.params["body_nconsts"]
    state = op.inputs[of_test + of_body :]
    return [[*op.inputs[:of_test], *state], [*op.inputs[of_test : of_test + of_body], *state]]


def _advance(w: Writer, places: Sequence[_Place], new: Sequence[Value], mask: str = "") -> None:
    """Assign new values to all places simultaneously; with a mask, only in the worlds where it holds."""
    todo = [(p, _where(mask, x, p.value) if mask else x) for p, x in zip(places, new, strict=True) if not _is_at(p, x)]
    if w.lanes > 1:
        todo = [(p, w.memory(x)) for p, x in todo]
        if any(x.size > 1 for _, x in todo):
            w.sync()  # all lanes have read the old values
    else:
        todo = [(p, w.in_registers(x) if p.value.names else x) for p, x in todo]
        for k, (p, _) in enumerate(todo):
            target = p.value.buffer
            if target is None:
                continue
            for j, (q, x) in enumerate(todo):
                if target in x.reads and (j != k or target not in x.aligned):
                    todo[j] = q, w.stored(w.copy(x, x.uniform), x.shape)
    for p, x in todo:
        p.give(x)


def _is_at(p: _Place, x: Value) -> bool:
    return (x.buffer is not None and x.buffer is p.value.buffer) or (x.names is not None and x.names == p.value.names)


def _while(w: Writer, op: Operation, operands: list[Value], owned: list[bool], targets: Targets) -> list[Value]:
    p = op.params
    nc, nb = p["cond_nconsts"], p["body_nconsts"]
    test, body = _inner(op, w.platform)
    uniform = carried_by_while(op, [x.uniform for x in operands], w.platform) if w.wide else [False] * len(op.outputs)
    consts = [x if x.cost <= OFTEN_COST else w.memory(x) for x in operands[: nc + nb]]
    indexed = _indexed(w, body, nb, len(op.outputs))
    places = _carried(w, op.outputs, operands[nc + nb :], owned[nc + nb :], uniform, targets, indexed)
    going = next(w.names)
    with w.repeated(UNKNOWN_TRIPS):
        masked = w.wide and not _is_uniform_test(w, test, consts[:nc], uniform)
        if masked:
            w.line(f"VARIABLE(bool, {going}, true);")
        with w.scope("while (true)"):
            w.sync()
            for q in places:
                if q.value.buffer:
                    q.value.buffer.version += 1
            state = [_settled(w, q.value) for q in places]
            (go,) = compute(w, test, [*consts[:nc], *state])
            name = w.name_of(go)
            if masked:
                w.line(f"ASSIGN({going}, {going} && {name});")
            w.line(f"if (!{f'ANY({going})' if masked else name}) break;")
            mine = [False] * nb + [not masked] * len(state)
            _advance(w, places, compute(w, body, [*consts[nc:], *state], owned=mine), going if masked else "")
    w.sync()
    return [_finished(w, q) for q in places]


def _is_uniform_test(w: Writer, test: Flat, consts: Sequence[Value], carry: Sequence[bool]) -> bool:
    (is_same,) = uniform_outputs(test, [*(x.uniform for x in consts), *carry], w.platform)
    return is_same


def _finished(w: Writer, place: _Place) -> Value:
    if place.value.buffer:
        place.value.buffer.version += 1
    return place.value


def row_of(x: Value, i: str) -> Value:
    """Return `x[i]` along the first axis."""
    return Value(
        x.shape[1:], x.dtype, lambda b, index: b.at(x, [b.index(i), *index]), x.cost, reads=x.reads, uniform=x.uniform
    )


def _scan(w: Writer, op: Operation, operands: list[Value], owned: list[bool], targets: Targets) -> list[Value]:
    p = op.params
    (nc, nk), length = scan_lengths(p, len(operands)), p["length"]
    uniform = uniform_results(op, [x.uniform for x in operands], w.platform) if w.wide else [False] * len(op.outputs)
    consts = [x if x.cost <= OFTEN_COST else w.memory(x) for x in operands[:nc]]
    rows = [
        w.in_buffer(w.memory(x) if x.cost > OFTEN_COST else x)
        if w.lanes == 1
        else w.memory(x)
        if x.cost > OFTEN_COST
        else x
        for x in operands[nc + nk :]
    ]
    (body,) = _inner(op, w.platform)
    start = operands[nc : nc + nk], owned[nc : nc + nk], uniform[:nk]
    places = _carried(w, op.outputs[:nk], *start, targets, _indexed(w, body, nc, nk))
    outs = [
        w.buffer(v.dtype, math.prod(v.shape), uniform=u and w.wide)
        for v, u in zip(op.outputs[nk:], uniform[nk:], strict=True)
    ]
    k = next(w.names)
    i = f"({length - 1} - {k})" if p["reverse"] else k
    with w.repeated(length), w.scope(f"for (int {k} = 0; {k} < {length}; ++{k})"):
        w.sync()
        for q in places:
            if q.value.buffer:
                q.value.buffer.version += 1
        state = [_settled(w, q.value) for q in places]
        mine = [False] * nc + [True] * nk + [False] * len(rows)
        new = compute(w, body, [*consts, *state, *(row_of(x, i) for x in rows)], owned=mine)
        for buffer, v, y in zip(outs, op.outputs[nk:], new[nk:], strict=True):
            w.fill(buffer, y, v.shape, lambda index: [i, *index])
        _advance(w, places, new[:nk])
    w.sync()
    for b in outs:
        b.version += 1
    return [
        *(_finished(w, q) for q in places),
        *(w.stored(b, v.shape) for b, v in zip(outs, op.outputs[nk:], strict=True)),
    ]


def _over_rows(w: Writer, op: Operation, operands: list[Value], targets: Targets) -> list[Value]:
    """Write the results of rows in use, and sums over them: one lane runs a loop of dynamic length.

    In a vector of worlds the loop is as long as the world with the most rows needs. Rows not in use add nothing.
    """
    p = op.params
    nshared, nmapped = p["nshared"], p["nmapped"]
    if w.lanes > 1:
        return _by_lanes(w, op, operands, targets)
    count, *rest = operands
    shared = [x if x.cost <= OFTEN_COST else w.memory(x) for x in rest[:nshared]]
    rows = [w.in_buffer(w.memory(x) if x.cost > OFTEN_COST else x) for x in rest[nshared:]]
    mapped = [targets.get(v) or w.buffer(v.dtype, math.prod(v.shape)) for v in op.outputs[:nmapped]]
    for buffer, v in zip(mapped, op.outputs, strict=False):
        w.fill(buffer, w.constant(np.zeros(v.shape, v.dtype)), v.shape)
    sums = [_place(w, v, False) for v in op.outputs[nmapped:]]
    for place, v in zip(sums, op.outputs[nmapped:], strict=True):
        place.give(w.constant(np.zeros(v.shape, v.dtype)))
    i, total = next(w.names), w.name_of(count)
    most = op.inputs[1 + nshared].shape[0]
    going = f"ANY({i} < {total})" if w.wide and not count.uniform else f"{i} < {total}"
    with w.repeated(most / 2), w.scope(f"for (int {i} = 0; {i} < {most} && {going}; ++{i})"):
        for place in sums:
            if place.value.buffer:
                place.value.buffer.version += 1
        found = compute(w, flatten(p["one"], w.platform), [*shared, *(_single(x, i) for x in rows)])
        for buffer, x, v in zip(mapped, found, op.outputs, strict=False):
            w.fill(buffer, x, v.shape, lambda index: [i, *index[1:]])
        for place, x in zip(sums, found[nmapped:], strict=True):
            place.give(_sum(w, place.value, x))
    for buffer in mapped:
        buffer.version += 1
    return [*(w.stored(b, v.shape) for b, v in zip(mapped, op.outputs, strict=False)), *(_finished(w, q) for q in sums)]


def _by_lanes(w: Writer, op: Operation, operands: list[Value], targets: Targets) -> list[Value]:
    """Write the results of rows in use, and sums over them, by several lanes: all such rows in parallel."""
    p, (count, *rest) = op.params, operands
    flat, nshared = flatten(p["every"], w.platform), p["nshared"]
    most = op.inputs[1 + nshared].shape[0]
    rows = rows_in_use(flat, nshared, most) if most > 1 else None
    if rows is None:
        return compute(w, flat, rest)
    total = w.name_of(count)
    used = {v: (axis, total if many == 1 else f"{total} * {many}") for v, (axis, many) in rows.items()}
    given = [replace(x, used=used[v]) if v in used else x for v, x in zip(flat.inputs, rest, strict=True)]
    found = compute(w, flat, given, used=used)
    for k, (v, x) in enumerate(zip(op.outputs[: p["nmapped"]], found, strict=False)):
        buffer, own = targets.get(op.outputs[k]) or w.buffer(v.dtype, math.prod(v.shape)), math.prod(v.shape[1:])
        if not buffer.size:
            continue
        if x.used is None:  # the same for all rows
            x = replace(x, used=(0, total))
        w.fill(buffer, x, v.shape)
        zeros = [f"PUT({buffer.name}, {total} * {own} + i, 0);"]
        w.write(w.body(), zeros, buffer.size, f"ALL(i, {own} * ({most} - {total}))")
        w.written(buffer)
        found[k] = w.stored(buffer, v.shape)
    return found


def _world_program(w: Writer, op: Operation, operands: list[Value], _: Targets) -> list[Value]:
    """Write calls of a C function of one world, one for each world of the vector, with arrays of its own."""
    source = op.params["plan"].source()
    name = w.external(source, [v.dtype for v in op.inputs], [v.dtype for v in op.outputs])
    operands = [w.in_buffer(x) for x in operands]
    w.note_reads()
    arguments, own = [], []  # arrays in which each world is contiguous
    for x in operands:
        assert x.buffer is not None  # as asked for
        x.buffer.last = max(x.buffer.last, w.epoch)
        if x.buffer.uniform:
            arguments.append(x.buffer.name)
            continue
        own.append(w.buffer(x.dtype, x.size))
        w.line(f"unpack({x.buffer.name}, ({c_type(x.dtype)}*){own[-1].name}, {x.size}, WORLDS);")
        arguments.append(f"({c_type(x.dtype)}*){own[-1].name} + w * {x.size}")
    results = [w.buffer(v.dtype, math.prod(v.shape)) for v in op.outputs]
    for space, v in zip(results, op.outputs, strict=True):
        arguments.append(f"({c_type(v.dtype)}*){space.name} + w * {math.prod(v.shape)}")
        w.line(f"memset({space.name}, 0, WORLDS * {math.prod(v.shape) * v.dtype.itemsize});")
    w.line(f"for (int w = 0; w < worlds; ++w) {name}({', '.join(arguments)});")
    found = []
    for space, v in zip(results, op.outputs, strict=True):
        buffer = w.buffer(v.dtype, math.prod(v.shape))
        w.line(f"pack({buffer.name}, ({c_type(v.dtype)}*){space.name}, {math.prod(v.shape)}, WORLDS);")
        found.append(w.stored(buffer, v.shape))
    w.epoch += 1
    for b in (*own, *results, *(x.buffer for x in found)):
        b.last = w.epoch
        b.version += 1
    return found


def _call(w: Writer, op: Operation, operands: list[Value], _: Targets) -> list[Value]:
    """Write a call of another library's handler, which reads data and extents of its buffers, but not their types."""
    name = op.params["target_name"]
    declaration = f"XLA_FFI_Error* {name}(XLA_FFI_CallFrame*);"
    if declaration not in w.tables:
        w.tables.append(declaration)
    operands = [w.in_buffer(x) for x in operands]
    w.note_reads()
    results = [w.buffer(v.dtype, math.prod(v.shape)) for v in op.outputs]
    with w.scope(""):
        for label, buffers, values in (("a", [x.buffer for x in operands], operands), ("r", results, op.outputs)):
            for i, (b, x) in enumerate(zip(buffers, values, strict=True)):
                assert b is not None  # as asked for
                extents = ", ".join(map(str, x.shape)) or "0"
                w.line(f"int64_t {label}d{i}[] = {{{extents}}};")
                form = f"{{sizeof(XLA_FFI_Buffer), 0, 0, (void*){b.name}, {len(x.shape)}, {label}d{i}}}"
                w.line(f"XLA_FFI_Buffer {label}{i} = {form};")
            pointers = ", ".join(f"&{label}{i}" for i in range(len(buffers))) or "0"
            w.line(f"void* {label}s[] = {{{pointers}}};")
        w.line(f"call(failed, {name}, frame, as, {len(operands)}, rs, {len(results)});")
    w.epoch += 1
    for b in (*(x.buffer for x in operands), *results):
        assert b is not None
        b.last = max(b.last, w.epoch)
    for b in results:
        b.version += 1
    return [w.stored(b, v.shape) for b, v in zip(results, op.outputs, strict=True)]


def _single(x: Value, i: str) -> Value:
    """Return `x[i:i+1]` along the first axis."""
    entry = lambda b, index: b.at(x, [b.index(i), *index[1:]])  # noqa: E731
    return Value((1, *x.shape[1:]), x.dtype, entry, x.cost, reads=x.reads, uniform=x.uniform)


def _sum(w: Writer, x: Value, y: Value) -> Value:
    """Return the sum of two arrays of one shape."""
    entry = lambda b, i: b.let(x.dtype, f"({b.at(x, i)} + {b.at(y, i)})")  # noqa: E731
    reads = x.reads | y.reads
    found = Value(x.shape, x.dtype, entry, x.cost + y.cost + 1, reads=reads, aligned=reads)
    return replace(found, symmetric=y.symmetric)  # if y is symmetric, so is the sum before it


# Rules of primitives that only programs of one world or entry support: `pool` adds its own.
SEQUENTIAL: dict[str, Callable[[Writer, Operation, list[Value]], list[Value]]] = {}
# Primitives that `flatten` removes.
TRANSPARENT = ("custom_vmap_call", "custom_linear_solve", "xla_metadata_value", "platform_index", "world_program")
TRANSPARENT += ("reduce",)
SYSTEMS_PRIMITIVES = ("cholesky", "triangular_solve", "small_matrices")  # tested by `test_operations`
OWN_PRIMITIVES = ("over_rows", "symmetric_matrix")  # tested by `test_rows`
SYSTEMS = ("solve_positive", "cholesky", "solve_ltdl", "solve_any")
INNER = {
    "cond": ("branches",),
    "while": ("cond_jaxpr", "body_jaxpr"),
    "scan": ("jaxpr",),
    "over_rows": ("one", "every"),
}
CONTROL: dict[str, Callable[[Writer, Operation, list[Value], list[bool], Targets], list[Value]]] = {
    "cond": _cond,
    "while": _while,
    "scan": _scan,
}
STATEMENTS: dict[str, Callable[[Writer, Operation, list[Value], Targets], list[Value]]] = {
    "cholesky": cholesky,
    "triangular_solve": triangular_solve,
    "sort": sort,
    "small_matrices": small_matrices,
    "over_rows": _over_rows,
    "world_program": _world_program,
    "ffi_call": _call,
}
