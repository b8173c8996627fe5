"""Operations as statements of a kernel: what goes to memory, loops, branches, systems of equations."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxsim.xla.compat import scan_lengths
from jaxsim.xla.machine_code.c_expressions import C_TYPES, Index, c_type, plus
from jaxsim.xla.tile.equations import CALLS, Flat, Operation, Term, Var, flatten
from jaxsim.xla.tile.operations import (
    DEAR,
    EXPRESSIONS,
    JOINS,
    OFTEN,
    REDUCTIONS,
    SCATTERS,
    VIEWS,
    WRITTEN_SUM,
    known_rows,
)
from jaxsim.xla.tile.writer import Body, Buffer, Loop, Value, Writer

RECOMPUTED = 8  # instructions that are rather repeated than kept in memory
OFTEN_COST = 3  # of an entry that is read often
UNKNOWN_TRIPS = 4  # of a loop whose length is not known, in the count of instructions
LONGEST_ROW = 32  # numbers that a lane joins
LANES_OF_SUM = 32  # parts of a long sum
PLATFORM = "cuda"


def compute(w: Writer, flat: Flat, args: Sequence[Value], targets: dict[Var, Buffer] | None = None) -> list[Value]:
    """Write the operations of a function for these arguments; its results. Some have a buffer to lie in."""
    targets = targets or {}
    kept = _kept(flat) | set(targets)
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
        limit = OFTEN_COST if op.name in OFTEN else _limit(op)
        operands = [in_memory(v, limit) for v in op.inputs]
        if op.name in JOINS:
            env[op.outputs[0]] = _join(w, op, operands, targets.get(op.outputs[0]))
            continue
        if op.name in SCATTERS and (rows := known_rows(op)) is not None:
            operands.append(w.constant(rows))
        if op.name in REDUCTIONS:
            operands = [_in_parts(w, op, operands[0])]
        if op.name == "cumsum" and op.inputs[0].shape[op.params["axis"]] > LANES_OF_SUM:
            env[op.outputs[0]] = _long_cumsum(w, op, operands[0])
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
    return op.name in EXPRESSIONS or op.name in STATEMENTS


def is_written(name: str) -> bool:
    """Whether this room knows a primitive."""
    return name in EXPRESSIONS or name in STATEMENTS or name in CALLS or name in TRANSPARENT


def _inner(op: Operation) -> list[Flat]:
    """The functions of a loop or a branch."""
    found = (op.params[k] for k in INNER[op.name])
    closed = [c for x in found for c in (x if isinstance(x, tuple) else (x,))]
    return [flatten(c, PLATFORM) for c in closed]


def _limit(op: Operation) -> int:
    """The cost of an entry from which on an operand is computed before it is spread over more entries, or joined."""
    x, out = op.inputs[0] if op.inputs else None, op.outputs[0]
    if op.name == "pad":  # which computes it for all entries, whether they are outside or not
        return OFTEN_COST
    if op.name == "broadcast_in_dim" and x is not None:
        return RECOMPUTED if math.prod(out.shape) > 4 * math.prod(x.shape) else 10**9
    if op.name in REDUCTIONS and x is not None:
        return RECOMPUTED if math.prod(x.shape) > WRITTEN_SUM * math.prod(out.shape) else 10**9
    return 10**9


def _kept(flat: Flat) -> set[Var]:
    """What goes to memory since more than one loop reads it, and computing it again costs more."""
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
    for k, op in reversed(list(enumerate(flat.operations))):
        mine: set[int] = set()
        for v in op.outputs:
            found = readers.get(v, set())
            if (len(found) - 1) * cost[v] > RECOMPUTED and op.name not in VIEWS:
                kept.add(v)
            mine |= {k} if v in kept else found
        if op.name in STATEMENTS or op.name in JOINS:
            mine = {k}
        for v in op.inputs:
            if isinstance(v, Var):
                readers.setdefault(v, set()).update(mine)
    return kept


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
    if count < 2 * LANES_OF_SUM or rows * 4 > LANES_OF_SUM or x.shape[axis] < LANES_OF_SUM:
        return x
    size, length = -(-x.shape[axis] // LANES_OF_SUM), x.shape[axis]

    def entry(body: Body, index: Sequence[Index]) -> str:
        at = lambda i: body.at(x, [*index[:axis], body.index(i), *index[axis + 1 :]])  # noqa: E731
        total = body.variable(x.dtype, at(index[axis]))
        with body.loop(size - 1) as t:
            i = body.index(f"({index[axis]} + {LANES_OF_SUM} * ({t} + 1))")
            term = at(f"({i} < {length} ? {i} : {length - 1})")
            body.lines.append(f"if ({i} < {length}) {total} = {REDUCTIONS[op.name](total, term, out=out.dtype)};")
            body.cost += 4 * body.times
        return total

    shape = (*x.shape[:axis], LANES_OF_SUM, *x.shape[axis + 1 :])
    return w.memory(Value(shape, x.dtype, entry, size * RECOMPUTED))


def _long_cumsum(w: Writer, op: Operation, x: Value) -> Value:
    """Sums up to each entry of one long axis: within parts of it, then of the parts before."""
    out, axis, reverse = op.outputs[0], op.params["axis"], op.params["reverse"]
    count, size = x.shape[axis], -(-x.shape[axis] // LANES_OF_SUM)
    outer = (*x.shape[:axis], *x.shape[axis + 1 :])

    def full(body: Body, index: Sequence[Index], i: Index) -> list[Index]:
        turned = f"({count - 1} - {i})" if reverse else i
        return [*index[:axis], body.index(turned), *index[axis:]]

    def of_part(body: Body, index: Sequence[Index]) -> str:
        total = body.variable(out.dtype, "0")
        with body.loop(size) as t:
            i = body.index(plus(f"{index[-1]} * {size}", t))
            inside = body.index(f"({i} < {count} ? {i} : {count - 1})")
            term = body.at(x, full(body, index[:-1], inside))
            body.lines.append(f"if ({i} < {count}) {total} = {total} + {term};")
            body.cost += 4 * body.times
        return total

    parts = w.memory(Value((*outer, LANES_OF_SUM), out.dtype, of_part, RECOMPUTED * size))

    def before(body: Body, index: Sequence[Index]) -> str:
        total = body.variable(out.dtype, "0")
        with body.loop(LANES_OF_SUM) as t:
            term = body.at(parts, [*index[:-1], t])
            body.lines.append(f"if ({t} < {index[-1]}) {total} = {total} + {term};")
            body.cost += 3 * body.times
        return total

    starts = w.memory(Value((*outer, LANES_OF_SUM), out.dtype, before, RECOMPUTED * LANES_OF_SUM))

    def entry(body: Body, index: Sequence[Index]) -> str:
        rest, i = [*index[:axis], *index[axis + 1 :]], index[axis]
        i = body.index(f"({count - 1} - {i})" if reverse else i)
        part = body.index(f"({i} / {size})") if isinstance(i, str) else i // size
        total = body.variable(out.dtype, body.at(starts, [*rest, part]))
        with body.loop(size) as t:
            k = body.index(plus(f"{part} * {size}", t))
            inside = body.index(f"({k} < {count} ? {k} : {count - 1})")
            term = body.at(x, full(body, rest, inside))
            body.lines.append(f"if ({k} <= {i}) {total} = {total} + {term};")
            body.cost += 4 * body.times
        return total

    return w.memory(Value(out.shape, out.dtype, entry, RECOMPUTED * size))


def _holder(w: Writer, v: Var) -> tuple[Value, Callable[[Value], None]]:
    """A place for an array that branches or turns of a loop give a value, and what gives it one."""
    if math.prod(v.shape) == 1:
        name = next(w.names)
        w.line(f"{c_type(v.dtype)} {name};")
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
    w.line(f"int {name};")
    w.assign(name, which)
    branches = _inner(op)
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


def _carried(w: Writer, variables: Sequence[Var], start: Sequence[Value]) -> tuple[list[Value], Callable[..., None]]:
    """Arrays that a loop changes, and what gives all of them new values at once."""
    places = [_holder(w, v) for v in variables]
    for (_, give), x in zip(places, start, strict=True):
        give(x)

    def advance(new: Sequence[Value]) -> None:
        changed = [(give, w.memory(x)) for (old, give), x in zip(places, new, strict=True) if old is not x]
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
    with w.repeated(UNKNOWN_TRIPS):
        w.line("while (true) {")
        w.sync()
        (go,) = compute(w, test, [*consts[:nc], *state])
        name = next(w.names)
        w.line(f"bool {name};")
        w.assign(name, go)
        w.line(f"if (!{name}) break;")
        advance(compute(w, body, [*consts[nc:], *state]))
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
SYSTEMS = ("solve_positive", "cholesky", "solve_ltdl", "solve_any")
INNER = {"cond": ("branches",), "while": ("cond_jaxpr", "body_jaxpr"), "scan": ("jaxpr",)}
STATEMENTS: dict[str, Callable[[Writer, Operation, list[Value]], list[Value]]] = {
    "cond": _cond,
    "while": _while,
    "scan": _scan,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "small_matrices": _small_matrices,
}
