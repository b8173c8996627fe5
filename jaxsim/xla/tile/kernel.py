"""Operations as statements of a kernel: what goes to memory, loops, branches, systems of equations."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxsim.xla.compat import scan_lengths
from jaxsim.xla.machine_code.c_expressions import (
    C_TYPES,
    Index,
    UnsupportedPrimitive,
    c_type,
    chosen,
    linear,
    plus,
    times,
    unravelled,
)
from jaxsim.xla.tile.equations import CALLS, Flat, Operation, Term, Var, flatten
from jaxsim.xla.tile.operations import (
    DEAR,
    EXPRESSIONS,
    JOINS,
    OFTEN,
    REDUCTIONS,
    SCATTERS,
    VIEWS,
    clamped,
    known_rows,
)
from jaxsim.xla.tile.writer import CYCLES_OF_LOAD, ONE, Body, Buffer, Loop, Value, Writer

RECOMPUTED = 8  # instructions that are rather repeated than kept in memory
OFTEN_COST = 3  # of an entry that is read often
UNKNOWN_TRIPS = 4  # of a loop whose length is not known, in the count of instructions
LONGEST_ROW = 32  # numbers that a lane joins
LANES_OF_SUM, MOST_PARTS = 32, 512  # parts of a long sum, at least and at most
TERMS_OF_PART = 16
MOST_SEARCHED = 4096  # entries times updates that an entry looks through
MOST_EMPTY = 1.5  # places for updates, for each update
CYCLES_OF_ATOMIC, CYCLES_OF_STORE, CYCLES_OF_WAIT = 4, 4, 10
PLATFORM = "cuda"


def compute(w: Writer, flat: Flat, args: Sequence[Value], targets: dict[Var, Buffer] | None = None) -> list[Value]:
    """Write the operations of a function for these arguments; its results. Some have a buffer to lie in."""
    targets = targets or {}
    kept = _kept(flat, w.keeps_more, w.lanes) | set(targets)
    env: dict[Var, Value] = dict(zip(flat.inputs, args, strict=True))

    def read(v: Term) -> Value:
        return w.constant(v) if isinstance(v, np.ndarray) else env[v]

    def in_memory(v: Term, limit: int) -> Value:
        x = read(v)
        if x.cost > limit:
            x = w.memory(x)
            if isinstance(v, Var):
                env[v] = x
        return x

    for op in flat.operations:
        if op.name in STATEMENTS:
            found = STATEMENTS[op.name](w, op, [in_memory(v, RECOMPUTED) for v in op.inputs])
            env |= dict(zip(op.outputs, found, strict=True))
            continue
        limit = OFTEN_COST if op.name in OFTEN else _limit(op, w.lanes)
        operands = [in_memory(v, limit) for v in op.inputs]
        if op.name in JOINS:
            env[op.outputs[0]] = _join(w, op, operands, targets.get(op.outputs[0]))
            continue
        if op.name in SCATTERS and (rows := _rows_to_look_for(w, op)) is not None:
            operands.append(w.constant(rows))
        elif op.name in SCATTERS and (w.wide or not _is_searched(op)):
            env[op.outputs[0]] = _scatter(w, op, operands, targets.get(op.outputs[0]))
            continue
        if op.name in REDUCTIONS:
            operands = [_in_parts(w, op, operands[0])]
        if op.name == "cumsum" and op.inputs[0].shape[op.params["axis"]] > LANES_OF_SUM:
            env[op.outputs[0]] = _long_cumsum(w, op, operands[0], targets.get(op.outputs[0]))
            continue
        found = EXPRESSIONS[op.name](op, operands)
        for v, x in zip(op.outputs, found, strict=True):
            env[v] = w.memory(x, targets.get(v)) if v in kept else x
    return [read(v) for v in flat.outputs]


def is_known(op: Operation) -> bool:
    """Whether this room can write an operation, and all that its branches and loops hold."""
    types = [v.dtype for v in (*op.inputs, *op.outputs)]
    if any(str(t) not in C_TYPES for t in types):
        return False
    if op.name in INNER:
        return all(all(map(is_known, f.operations)) for f in _inner(op))
    if op.name == "small_matrices":
        return op.params["plan"].name in SYSTEMS
    if op.name == "sort":
        return op.params["dimension"] == len(op.inputs[0].shape) - 1
    if op.name in ("lt_to", "le_to"):
        return not np.issubdtype(op.inputs[0].dtype, np.floating)
    return op.name in EXPRESSIONS or op.name in STATEMENTS


def is_written(name: str) -> bool:
    """Whether this room knows a primitive."""
    return name in EXPRESSIONS or name in STATEMENTS or name in CALLS or name in TRANSPARENT


def _inner(op: Operation) -> list[Flat]:
    """The functions of a loop or a branch."""
    found = (op.params[k] for k in INNER[op.name])
    closed = [c for x in found for c in (x if isinstance(x, tuple) else (x,))]
    return [flatten(c, PLATFORM) for c in closed]


def _limit(op: Operation, lanes: int) -> int:
    """The cost of an entry from which on an operand is computed before it is spread over more entries, or joined."""
    x, out = op.inputs[0] if op.inputs else None, op.outputs[0]
    if op.name == "pad":  # which computes it for all entries, whether they are outside or not
        return OFTEN_COST
    if op.name == "broadcast_in_dim" and x is not None:
        return RECOMPUTED if math.prod(out.shape) > 4 * math.prod(x.shape) else 10**9
    if op.name in REDUCTIONS and x is not None:
        return _limit_of_terms(math.prod(x.shape), max(1, math.prod(out.shape)), lanes)
    return 10**9


def _limit_of_terms(terms: int, sums: int, lanes: int) -> int:
    """The cost from which on more lanes compute the terms of sums first: those that would add them are few, or many."""
    passes, count = math.ceil(sums / lanes), terms / sums
    saved = passes * count - math.ceil(terms / lanes)
    spent = math.ceil(terms / lanes) * CYCLES_OF_STORE + passes * count * CYCLES_OF_LOAD + CYCLES_OF_WAIT
    return math.ceil(spent / saved) if saved > 0 else 10**9


def _kept(flat: Flat, often: bool, lanes: int) -> set[Var]:
    """What goes to memory since loops read it more than once, and computing it again costs more.

    More than one loop; or one loop `often`, a guess, since what a lane has computed already it does not compute again.
    """
    cost: dict[Var, float] = {}
    for op in flat.operations:
        own = sum(cost.get(v, 1) for v in op.inputs if isinstance(v, Var))
        x = op.inputs[0] if op.inputs else None
        if op.name in REDUCTIONS and x is not None:
            own *= math.prod(x.shape) / max(1, math.prod(op.outputs[0].shape))
        elif op.name == "dot_general" and x is not None:
            own *= math.prod(x.shape[d] for d in op.params["dimension_numbers"][0][0])
        price = 0 if op.name in VIEWS else DEAR.get(op.name, 2)
        is_stored = op.name in STATEMENTS or op.name in JOINS
        cost |= dict.fromkeys(op.outputs, 1 if is_stored else min(own + price, 1e6))
    readers: dict[Var, set[int]] = {}
    for v in flat.outputs:
        if isinstance(v, Var):
            readers.setdefault(v, set()).add(-1)
    kept: set[Var] = set()
    read: dict[Var, float] = {}  # how many entries of it are computed, if it is not kept
    for k, op in reversed(list(enumerate(flat.operations))):
        mine: set[int] = set()
        for v in op.outputs:
            found = readers.get(v, set())
            again = (len(found) - 1) * cost[v] > RECOMPUTED or (
                often and _is_read_often(v, read.get(v, 0), cost[v], lanes)
            )
            if again and op.name not in VIEWS:
                kept.add(v)
            mine |= {k} if v in kept else found
        if op.name in STATEMENTS or op.name in JOINS:
            mine = {k}
        for v in op.inputs:
            if isinstance(v, Var):
                readers.setdefault(v, set()).update(mine)
                read[v] = read.get(v, 0) + _entries(op, v, kept, read)
    return kept


def _is_read_often(v: Var, entries: float, cost: float, lanes: int) -> bool:
    """Whether lanes that compute so many entries of an array, half of them known already, rather keep it."""
    passes, own = entries / lanes, math.ceil(math.prod(v.shape) / lanes)
    spent = own * CYCLES_OF_STORE + passes * CYCLES_OF_LOAD + CYCLES_OF_WAIT
    return (passes / 2 - own) * cost > spent


def _entries(op: Operation, v: Var, kept: set[Var], read: dict[Var, float]) -> float:
    """How many entries of an operand an operation computes."""
    own, size = math.prod(v.shape), math.prod(op.outputs[0].shape)
    if op.name in STATEMENTS or op.name in JOINS or op.name in OFTEN:
        return own
    often = size if op.outputs[0] in kept else read.get(op.outputs[0], size)
    return often * (own / max(size, 1) if op.name in REDUCTIONS else 1)


def _join(w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None) -> Value:
    """Arrays one after the other, in memory."""
    out, axis = op.outputs[0], op.params["axis" if op.name == "stack" else "dimension"]
    buffer, begin = target or w.buffer(out.dtype, math.prod(out.shape)), 0
    if axis > 0 and math.prod(out.shape[axis:]) <= LONGEST_ROW and math.prod(out.shape) > 0:
        w.fill(buffer, JOINS[op.name](op, operands)[0], out.shape, split=axis)  # a lane writes a row
        return w.stored(buffer, out.shape)
    for x in operands:
        if op.name == "stack":
            place = lambda i, k=begin: [*i[:axis], k, *i[axis:]]  # noqa: E731
        else:
            place = lambda i, k=begin: [plus(n, k) if d == axis else n for d, n in enumerate(i)]  # noqa: E731
        if x.size:
            w.fill(buffer, x, out.shape, place)
        begin += 1 if op.name == "stack" else x.shape[axis]
    return w.stored(buffer, out.shape)


def _in_parts(w: Writer, op: Operation, x: Value) -> Value:
    """What is left to be joined when lanes have joined parts of few long rows, or the operand itself."""
    axes, out = op.params["axes"], op.outputs[0]
    count, rows = math.prod(x.shape[a] for a in axes), math.prod(out.shape)
    axis = max(axes, key=lambda a: x.shape[a], default=0)
    if w.wide or count < 2 * LANES_OF_SUM or rows * 4 > LANES_OF_SUM or x.shape[axis] <= LANES_OF_SUM:
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


def _long_cumsum(w: Writer, op: Operation, x: Value, target: Buffer | None) -> Value:
    """Sums up to each entry of one long axis: of parts of it, of the parts before, then within each part."""
    out, axis, reverse = op.outputs[0], op.params["axis"], op.params["reverse"]
    count = x.shape[axis]
    parts = min(MOST_PARTS, LANES_OF_SUM * -(-count // (TERMS_OF_PART * LANES_OF_SUM)))
    size, outer = -(-count // parts), (*x.shape[:axis], *x.shape[axis + 1 :])
    buffer = target or w.buffer(out.dtype, x.size)

    def visit(body: Body, index: Sequence[Index], total: str, store: bool) -> None:
        """Add the entries of a part, in their order, and write the sum at each."""
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
    body, rows = Body(), math.prod(starts.shape)
    head, index = w.every(body, starts.shape)
    visit(body, index, body.variable(out.dtype, body.at(starts, index)), store=True)
    w.write(body, [], rows, head)
    w.written(buffer)
    return w.stored(buffer, out.shape)


def _scatter(w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None) -> Value:
    """A scatter whose lanes go over the updates. Where two have one place, either may be the last one, as in XLA."""
    (x, indices, updates), out, mode = operands, op.outputs[0], str(op.params["mode"])
    d = op.params["dimension_numbers"]
    buffer = target or w.buffer(out.dtype, math.prod(out.shape))
    w.fill(buffer, x, out.shape)
    body, rows = Body(), updates.size
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
            tests.append(f"{start} >= 0 && {start} <= {most}")
            place[dim] = clamped(body, start, most) if w.wide else start
            body.cost += 2
    for dim, o in zip(kept, d.update_window_dims, strict=True):
        place[dim] = plus(place[dim], index[o])
    value = body.at(updates, index)
    join = w.atomic(SCATTERS[op.name][1], out.dtype)
    to = body.index(linear(place, out.shape))
    test = body.let(np.dtype(bool), " && ".join(tests)) if tests else "true"
    store = f"{join}({test}, {buffer.name}, {to}, {value});"
    body.cost += CYCLES_OF_ATOMIC * (SCATTERS[op.name][1] != "SET")
    body.reads.add(buffer)  # all of it is filled before
    w.write(body, [store], rows, head)
    w.written(buffer)
    return w.stored(buffer, out.shape)


def _rows_to_look_for(w: Writer, op: Operation) -> np.ndarray | None:
    """The known updates of each row, or None. One lane rather goes over the updates, if few rows have most of them."""
    rows = known_rows(op)
    if rows is None or (w.wide and rows.size > MOST_EMPTY * op.inputs[2].shape[0]):
        return None
    return rows


def _is_searched(op: Operation) -> bool:
    """Whether each entry of a scatter looks for its updates: sums keep their order, as long as that is little work."""
    updates, out = op.inputs[2], op.outputs[0]
    if SCATTERS[op.name][1] == "SET":
        return False
    window = math.prod(updates.shape[k] for k in op.params["dimension_numbers"].update_window_dims)
    return math.prod(out.shape) * math.prod(updates.shape) <= MOST_SEARCHED * max(window, 1)


def _sort(w: Writer, op: Operation, operands: list[Value]) -> list[Value]:
    """Rows in the order of their keys: a bitonic network over their places."""
    operands = [x if x.cost <= OFTEN_COST else w.memory(x) for x in operands]
    if w.wide:
        raise UnsupportedPrimitive("sort of worlds in one vector")
    *lead, n = operands[0].shape
    full, keys = 1 << max(n - 1, 0).bit_length(), operands[: op.params["num_keys"]]
    outer = math.prod(lead)
    if full == 1:
        return operands
    at_first = Value((outer, full), np.dtype(np.int32), lambda b, index: b.let(np.int32, f"({index[1]})"))
    buffer = w.buffer(np.int32, outer * full)
    w.fill(buffer, at_first, at_first.shape)
    rounds = full.bit_length() - 1
    size, gap = next(w.names), next(w.names)
    with w.repeated(rounds * (rounds + 1) / 2):
        w.line(f"for (int {size} = 2; {size} <= {full}; {size} *= 2)")
        w.line(f"for (int {gap} = {size} / 2; {gap} > 0; {gap} /= 2) {{")
        w.sync()
        body, rows = Body(), outer * full // 2
        row, pair = (body.index(i) for i in unravelled("i", (outer, full // 2)))
        low = body.index(f"({pair} / {gap} * 2 * {gap} + {pair} % {gap})")
        first, second = (body.index(plus(times(row, full), plus(low, k))) for k in (0, gap))
        a, b = body.load(buffer, first), body.load(buffer, second)
        inside = [body.index(chosen(f"{k} < {n}", k, str(n - 1))) for k in (a, b)]
        before = f"({b} < {a})"  # rows that are equal stay as they are
        for key in reversed(keys):
            x, y = (body.at(key, [*unravelled(row, lead), k]) for k in inside)
            before = f"({_precedes(y, x)} || (!{_precedes(x, y)} && {before}))"
            body.cost += 4
        test = f"{chosen(f'{a} >= {n} || {b} >= {n}', f'{b} < {a}', before)} == (({low} & {size}) == 0)"
        store = f"if ({test}) {{ {buffer.name}[{first}] = {b}; {buffer.name}[{second}] = {a}; }}"
        body.cost += 12
        w.write(body, [store], rows, f"ALL(i, {rows})" if rows > 1 else ONE)
        w.written(buffer)
        w.line("}")
    w.sync()

    def entry(x: Value) -> Callable[[Body, Sequence[Index]], str]:
        return lambda b, index: b.at(x, [*index[:-1], b.load(buffer, _in_row(b, index, x.shape, full))])

    return [Value(x.shape, x.dtype, entry(x), x.cost + CYCLES_OF_LOAD) for x in operands]


def _in_row(body: Body, index: Sequence[Index], shape: Sequence[int], full: int) -> Index:
    """The place of an entry in rows that are `full` long."""
    return body.index(plus(times(linear(index[:-1], shape[:-1]), full), index[-1]))


def _precedes(x: str, y: str) -> str:
    """Whether a number comes first in JAX's order, in which what is no number is the last."""
    return f"({x} < {y} || ({y} != {y} && {x} == {x}))"


def _holder(w: Writer, v: Var) -> tuple[Value, Callable[[Value], None]]:
    """A place for an array that branches or turns of a loop give a value, and what gives it one."""
    if math.prod(v.shape) == 1:
        name = next(w.names)
        w.line(f"DECLARE({c_type(v.dtype)}, {name});")
        return Value(v.shape, v.dtype, lambda _b, _i: name), lambda x: w.assign(name, x)
    buffer = w.buffer(v.dtype, math.prod(v.shape))

    def give(x: Value) -> None:
        if x.size:
            w.fill(buffer, x, x.shape)

    return w.stored(buffer, v.shape), give


def _cond(w: Writer, op: Operation, operands: list[Value]) -> list[Value]:
    which, *args = operands
    places = [_holder(w, v) for v in op.outputs]
    name = next(w.names)
    w.line(f"DECLARE(int, {name});")
    w.assign(name, which)
    branches = _inner(op)
    if w.wide:
        return _cond_of_each(w, name, branches, args, places)
    w.sync()
    for k, branch in enumerate(branches):
        test = f"{name} <= 0" if k == 0 else f"{name} == {k}"
        w.line(
            "{" if len(branches) == 1 else "else {" if k == len(branches) - 1 else f"{'else ' * (k > 0)}if ({test}) {{"
        )
        for (_, give), x in zip(places, compute(w, branch, args), strict=True):
            give(x)
        w.line("}")
    w.sync()
    return [x for x, _ in places]


def _cond_of_each(
    w: Writer, which: str, branches: Sequence[Flat], args: Sequence[Value], places: Sequence[tuple[Value, Callable]]
) -> list[Value]:
    """Results of the branch of each world: one after the other, those that no world takes left out."""
    for k, branch in enumerate(branches):
        test = f"{which} <= 0" if k == 0 else f"{which} == {k}"
        test = f"{which} >= {k}" if k and k == len(branches) - 1 else test
        mine = next(w.names)
        w.line(f"LET(bool, {mine}, {test});")
        w.line(f"if (ANY({mine})) {{")
        for (old, give), x in zip(places, compute(w, branch, args), strict=True):
            give(_where(mine, x, old))
        w.line("}")
    return [x for x, _ in places]


def _where(mask: str, x: Value, old: Value) -> Value:
    """The new array in worlds where the mask holds, the old one elsewhere."""
    entry = lambda body, i: body.let(x.dtype, chosen(mask, body.at(x, i), body.at(old, i)))  # noqa: E731
    return Value(x.shape, x.dtype, entry, x.cost + CYCLES_OF_LOAD)


def _carried(w: Writer, variables: Sequence[Var], start: Sequence[Value]) -> tuple[list[Value], Callable[..., None]]:
    """Arrays that a loop changes, and what gives all of them new values at once."""
    places = [_holder(w, v) for v in variables]
    for (_, give), x in zip(places, start, strict=True):
        give(x)

    def advance(new: Sequence[Value], mask: str = "") -> None:
        both = [(old, give, x) for (old, give), x in zip(places, new, strict=True) if old is not x]
        changed = [(give, w.memory(_where(mask, x, old) if mask else x)) for old, give, x in both]
        if any(x.size > 1 for _, x in changed):
            w.sync()  # which no lane passes before all have read what changes now
        for give, x in changed:
            give(x)

    return [x for x, _ in places], advance


def _while(w: Writer, op: Operation, operands: list[Value]) -> list[Value]:
    p = op.params
    nc, nb = p["cond_nconsts"], p["body_nconsts"]
    test, body = _inner(op)
    consts = [x if x.cost <= OFTEN_COST else w.memory(x) for x in operands[: nc + nb]]
    state, advance = _carried(w, op.outputs, operands[nc + nb :])
    name, going = next(w.names), next(w.names)
    with w.repeated(UNKNOWN_TRIPS):
        if w.wide:
            w.line(f"VARIABLE(bool, {going}, true);")
        w.line("while (true) {")
        w.sync()
        (go,) = compute(w, test, [*consts[:nc], *state])
        w.line(f"DECLARE(bool, {name});")
        w.assign(name, go)
        if w.wide:
            w.line(f"ASSIGN({going}, {going} && {name});")
        w.line(f"if (!{f'ANY({going})' if w.wide else name}) break;")
        advance(compute(w, body, [*consts[nc:], *state]), going if w.wide else "")
        w.line("}")
    w.sync()
    return state


def _scan(w: Writer, op: Operation, operands: list[Value]) -> list[Value]:
    p = op.params
    (nc, nk), length = scan_lengths(p, len(operands)), p["length"]
    operands = [x if x.cost <= OFTEN_COST else w.memory(x) for x in operands[:nc]] + operands[nc:]
    rows = [x if x.cost <= OFTEN_COST else w.memory(x) for x in operands[nc + nk :]]
    state, advance = _carried(w, op.outputs[:nk], operands[nc : nc + nk])
    outs = [w.buffer(v.dtype, math.prod(v.shape)) for v in op.outputs[nk:]]
    (body,) = _inner(op)
    k = next(w.names)
    i = f"({length - 1} - {k})" if p["reverse"] else k

    def row(x: Value) -> Value:
        return Value(x.shape[1:], x.dtype, lambda b, index: b.at(x, [b.index(i), *index]), x.cost)

    with w.repeated(length):
        w.line(f"for (int {k} = 0; {k} < {length}; ++{k}) {{")
        w.sync()
        new = compute(w, body, [*operands[:nc], *state, *map(row, rows)])
        for buffer, v, y in zip(outs, op.outputs[nk:], new[nk:], strict=True):
            if y.size:
                w.fill(buffer, y, v.shape, lambda index: [i, *index])
        advance(new[:nk])
        w.line("}")
    w.sync()
    return [*state, *(w.stored(b, v.shape) for b, v in zip(outs, op.outputs[nk:], strict=True))]


def _fresh(w: Writer, x: Value) -> Buffer:
    """A copy of an array in memory that may be overwritten."""
    buffer = w.buffer(x.dtype, x.size)
    w.fill(buffer, x, x.shape)
    return buffer


def _call(w: Writer, name: str, sizes: Sequence[Any], arrays: Sequence[Buffer | str], work: float) -> None:
    """Write a call of a function of `tile.cu`, which reads and writes these arrays and ends with a wait."""
    w.sync()
    text = ", ".join(["lane", *map(str, sizes), *(b if isinstance(b, str) else b.name for b in arrays)])
    w.line(f"{name}({text});")
    w.epoch += 1
    w.unread.clear()
    for b in arrays:
        if isinstance(b, Buffer):
            b.last = w.epoch
    w.loops.append(Loop(math.ceil(work), 10, w.times))


def _cholesky(w: Writer, op: Operation, operands: list[Value]) -> list[Value]:
    (a,), out = operands, op.outputs[0]
    return [w.stored(_factor(w, a, a.shape[-1]), out.shape)]


def _factor(w: Writer, a: Value, n: int) -> Buffer:
    count = a.size // (n * n)
    work, inverse, factor = _fresh(w, a), w.buffer(a.dtype, count * n), w.buffer(a.dtype, a.size)
    _call(w, "cholesky", [count, n], [work, inverse, factor], count * n * n * n / 6)
    return factor


def _small_matrices(w: Writer, op: Operation, operands: list[Value]) -> list[Value]:
    plan, out = op.params["plan"], op.outputs[0]
    n, m, dtype = plan.size, plan.right, operands[0].dtype
    if plan.name == "cholesky":
        return [w.stored(_factor(w, operands[0], n), out.shape)]
    count = operands[0].size // (n * n)
    x = w.buffer(dtype, count * n * m)
    given = [_fresh(w, o) for o in operands]
    if plan.name == "solve_positive":
        given.insert(1, w.buffer(dtype, count * n))
    elif plan.name == "solve_any":
        given.insert(0, w.buffer(dtype, n * (n + m)))
    _call(w, plan.name, [count, n, m], [*given, x], count * (n * n * n / 6 + n * n * m))
    return [w.stored(x, out.shape)]


def _triangular_solve(w: Writer, op: Operation, operands: list[Value]) -> list[Value]:
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
    arrays = [_fresh(w, a), str(row), str(col), _fresh(w, b), str(next_), str(beside), work, x]
    _call(w, "solve_triangular", [count, n, m, "true" if forward else "false", unit], arrays, count * n * n * m)
    return [w.stored(x, out.shape)]


# Primitives that are gone when a jaxpr is flat.
TRANSPARENT = ("custom_vmap_call", "custom_linear_solve", "xla_metadata_value", "platform_index", "world_program")
TRANSPARENT += ("reduce",)
SYSTEMS = ("solve_positive", "cholesky", "solve_ltdl", "solve_any")
INNER = {"cond": ("branches",), "while": ("cond_jaxpr", "body_jaxpr"), "scan": ("jaxpr",)}
STATEMENTS: dict[str, Callable[[Writer, Operation, list[Value]], list[Value]]] = {
    "cond": _cond,
    "while": _while,
    "scan": _scan,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "sort": _sort,
    "small_matrices": _small_matrices,
}
