"""Write loops, branches and functions of rows in use, whose inner functions `compute` writes."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxsim.native.expressions import chosen
from jaxsim.native.jaxpr import BLOCKS, GPU, Flat, Operation, Term, Var, flatten
from jaxsim.native.operations import SCATTERS
from jaxsim.native.rows import RowFunction
from jaxsim.native.uniform import carried_by_while, uniform_outputs, uniform_results
from jaxsim.native.used import rows_in_use
from jaxsim.native.writer import CYCLES_OF_LOAD, INDEX, OFTEN_COST, RECOMPUTED, Buffer, Targets, Value, Writer, named
from jaxsim.xla.compat import scan_lengths

UNKNOWN_TRIPS = 4  # iterations assumed for a loop of unknown length, in estimates of cost
INNER = {
    "cond": ("branches",),
    "while": ("cond_jaxpr", "body_jaxpr"),
    "scan": ("jaxpr",),
    "over_rows": ("rows",),
    "by_value": ("jaxpr",),
}


Compute = Callable[..., list[Value]]  # `compute.compute`, which writes an inner function


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

    def changed(self) -> Value:
        """Return the value, which a loop may have written since it was last read."""
        if self.value.buffer:
            self.value.buffer.version += 1
        return self.value


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


def _cond(
    w: Writer, op: Operation, operands: list[Value], owned: list[bool], _: Targets, compute: Compute
) -> list[Value]:
    which, *args = operands
    branches = inner_functions(op, w.platform)
    uniform = uniform_results(op, [x.uniform for x in operands], w.platform) if w.wide else [False] * len(op.outputs)
    if w.wide and not which.uniform:
        return _cond_of_each(w, which, op, branches, args, compute)
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
    w: Writer, which: Value, op: Operation, branches: Sequence[Flat], args: Sequence[Value], compute: Compute
) -> list[Value]:
    """Return the results of each world's branch: run all branches in turn, except those that no world takes."""
    places = [_place(w, v, False) for v in op.outputs]
    own = w.name_of(which)
    for k, branch in enumerate(branches):
        test = f"{own} <= 0" if k == 0 else f"{own} == {k}"
        test = f"{own} >= {k}" if k and k == len(branches) - 1 else test
        mine = next(w.names)
        w.line(f"LET(bool, {mine}, {f'{w.mask} && ({test})' if w.mask else test});")
        with w.scope(f"if (ANY({mine}))"), w.within(mine):
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
            for inner, operands in zip(inner_functions(op, GPU), _operands_of_inner(op), strict=True):
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


def inner_functions(op: Operation, platform: str) -> list[Flat]:
    """Return the functions of a loop, of a branch or of one row."""
    found = (op.params[k] for k in INNER[op.name])
    closed = [c for x in found for c in (x if isinstance(x, tuple) else (x,))]
    return [flatten(c.one if isinstance(c, RowFunction) else c, platform) for c in closed]


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


def _by_value(
    w: Writer, op: Operation, operands: list[Value], owned: list[bool], _: Targets, compute: Compute
) -> list[Value]:
    """Write a function of a key once for each value of the key in a vector of entries, which is a number inside."""
    (body,) = inner_functions(op, w.platform)
    key, *rest = operands
    if key.uniform:
        return compute(w, body, operands, owned=owned)
    rest = [x if x.cost <= OFTEN_COST else w.memory(x) for x in rest]
    places = [_place(w, v, False) for v in op.outputs]
    for p in places:  # also those of entries with a negative key may be indices
        p.give(w.constant(np.zeros(p.value.shape, p.value.dtype)))
    own, left, mine, value = w.name_of(key), next(w.names), next(w.names), next(w.names)
    w.line(f"VARIABLE(bool, {left}, {own} >= 0);")
    with w.repeated(UNKNOWN_TRIPS), w.scope(f"while (ANY({left}))"):
        for p in places:
            p.changed()
        w.line(f"const int {value} = first_of_these({left}, {own});")
        w.line(f"LET(bool, {mine}, {left} && {own} == {value});")
        w.line(f"ASSIGN({left}, {left} && {own} != {value});")
        found = compute(w, body, [named(w, (), key.dtype, (value,), uniform=True), *rest])
        for p, x in zip(places, found, strict=True):
            p.give(_where(mine, x, p.value))
    return [p.changed() for p in places]


def _while(
    w: Writer, op: Operation, operands: list[Value], owned: list[bool], targets: Targets, compute: Compute
) -> list[Value]:
    p = op.params
    nc, nb = p["cond_nconsts"], p["body_nconsts"]
    test, body = inner_functions(op, w.platform)
    uniform = carried_by_while(op, [x.uniform for x in operands], w.platform) if w.wide else [False] * len(op.outputs)
    consts = [x if x.cost <= OFTEN_COST else w.memory(x) for x in operands[: nc + nb]]
    test, body = _with_known(test, consts[:nc]), _with_known(body, consts[nc:])
    indexed = _indexed(w, body, nb, len(op.outputs))
    places = _carried(w, op.outputs, operands[nc + nb :], owned[nc + nb :], uniform, targets, indexed)
    going = next(w.names)
    with w.repeated(UNKNOWN_TRIPS):
        masked = w.wide and not _is_uniform_test(w, test, consts[:nc], uniform)
        if masked:
            w.line(f"VARIABLE(bool, {going}, {w.mask or 'true'});")
        in_place = updated_in_place(body, nb) if masked and w.platform == BLOCKS else set()
        kept = [q.value.buffer for k, q in enumerate(places) if k in in_place and q.value.buffer]
        with w.scope("while (true)"), w.within(going if masked else "", kept):
            w.sync()
            for q in places:
                q.changed()
            state = [_settled(w, q.value) for q in places]
            (go,) = compute(w, test, [*consts[:nc], *state])
            name = w.name_of(go)
            if masked:
                w.line(f"ASSIGN({going}, {going} && {name});")
            w.line(f"if (!{f'ANY({going})' if masked else name}) break;")
            mine = [False] * nb + [not masked or q.value.buffer in kept for q in places]
            _advance(w, places, compute(w, body, [*consts[nc:], *state], owned=mine), going if masked else "")
    w.sync()
    return [q.changed() for q in places]


def updated_in_place(body: Flat, first: int) -> set[int]:
    """Return which arrays that a loop carries, inputs from `first` on, are nothing but updated slice by slice."""
    carried, results = body.inputs[first:], list(body.outputs)
    return {k for k, (v, x) in enumerate(zip(carried, results, strict=True)) if _is_updated(body, v, x)}


def _is_updated(flat: Flat, v: Term, result: Term) -> bool:
    """Return whether updates make an array of `v` that nothing reads later but what follows from it."""
    if sum(x is result for x in flat.outputs) > 1:
        return False
    while v is not result:
        last = next((op for op in reversed(flat.operations) if any(x is v for x in op.inputs)), None)
        if last is None or any(x is v for x in flat.outputs):
            return False
        place = [k for k, x in enumerate(last.inputs) if x is v]
        if last.name == "dynamic_update_slice" and place == [0]:
            v = last.outputs[0]
            continue
        if last.name != "while" or len(place) > 1:
            return False
        of_test, of_body = last.params["cond_nconsts"], last.params["body_nconsts"]
        k = place[0] - of_test - of_body
        if k < 0 or k not in updated_in_place(flatten(last.params["body_jaxpr"], BLOCKS), of_body):
            return False
        v = last.outputs[k]
    return True


def _is_uniform_test(w: Writer, test: Flat, consts: Sequence[Value], carry: Sequence[bool]) -> bool:
    (is_same,) = uniform_outputs(test, [*(x.uniform for x in consts), *carry], w.platform)
    return is_same


def row_of(x: Value, i: str) -> Value:
    """Return `x[i]` along the first axis."""
    return Value(
        x.shape[1:], x.dtype, lambda b, index: b.at(x, [b.index(i), *index]), x.cost, reads=x.reads, uniform=x.uniform
    )


def _scan(
    w: Writer, op: Operation, operands: list[Value], owned: list[bool], targets: Targets, compute: Compute
) -> list[Value]:
    p = op.params
    (nc, nk), length = scan_lengths(p, len(operands)), p["length"]
    uniform = uniform_results(op, [x.uniform for x in operands], w.platform) if w.wide else [False] * len(op.outputs)
    consts = [x if x.cost <= OFTEN_COST else w.memory(x) for x in operands[:nc]]
    rows = [_rows(w, x) for x in operands[nc + nk :]]
    (body,) = (_with_known(flat, consts) for flat in inner_functions(op, w.platform))
    start = operands[nc : nc + nk], owned[nc : nc + nk], uniform[:nk]
    places = _carried(w, op.outputs[:nk], *start, targets, _indexed(w, body, nc, nk))
    outs = [
        w.buffer(v.dtype, math.prod(v.shape), uniform=u and w.wide)
        for v, u in zip(op.outputs[nk:], uniform[nk:], strict=True)
    ]
    k = next(w.names)
    i = f"({length - 1} - {k})" if p["reverse"] else k
    with w.repeated(length), w.scope(f"for ({INDEX} {k} = 0; {k} < {length}; ++{k})"):
        w.sync()
        for q in places:
            q.changed()
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
        *(q.changed() for q in places),
        *(w.stored(b, v.shape) for b, v in zip(outs, op.outputs[nk:], strict=True)),
    ]


def _with_known(flat: Flat, constants: Sequence[Value]) -> Flat:
    """Return a function whose first inputs, where they are constants, are constants of its operations as well."""
    known = {v: x.known for v, x in zip(flat.inputs, constants, strict=False) if x.known is not None}

    def terms(of: Sequence[Term]) -> list[Term]:
        return [known.get(v, v) if isinstance(v, Var) else v for v in of]

    operations = [op._replace(inputs=terms(op.inputs)) for op in flat.operations]
    return Flat(flat.inputs, operations, terms(flat.outputs)) if known else flat


def _rows(w: Writer, x: Value) -> Value:
    """Return an array of which each turn of a loop reads a row: in memory, unless an entry is cheap.

    One lane stores it anyway, unless entries are those of the program's inputs, which no loop overwrites.
    """
    x = w.memory(x) if x.cost > OFTEN_COST else x
    is_given = bool(x.reads) and all(b.given and b.version == 0 for b in x.reads)
    return x if w.lanes > 1 or is_given else w.in_buffer(x)


def over_rows(w: Writer, op: Operation, operands: list[Value], targets: Targets, compute: Compute) -> list[Value]:
    """Write the results of rows in use, and sums over them: one lane runs a loop of dynamic length.

    In a vector of worlds these are the rows that any world uses. Rows not in use add nothing.
    """
    p = op.params
    nshared, nmapped = p["rows"].nshared, p["nmapped"]
    if w.lanes > 1:
        return _by_lanes(w, op, operands, targets, compute)
    count, present, *rest = operands
    shared = [x if x.cost <= OFTEN_COST else w.memory(x) for x in rest[:nshared]]
    present, *rows = (_by_rows(w, x) for x in (present, *rest[nshared:]))
    mapped = [targets.get(v) or w.buffer(v.dtype, math.prod(v.shape)) for v in op.outputs[:nmapped]]
    for buffer, v in zip(mapped, op.outputs, strict=False):
        size = math.prod(v.shape)
        w.fill(buffer, w.constant(np.zeros(size, v.dtype)), (size,))  # one axis: a compiler clears it as a whole
    sums = [_place(w, v, False) for v in op.outputs[nmapped:]]
    for place, v in zip(sums, op.outputs[nmapped:], strict=True):
        place.give(w.constant(np.zeros(v.shape, v.dtype)))
    i, total = next(w.names), w.name_of(count)
    most = op.inputs[1].shape[0]
    going = f"ANY({i} < {total})" if w.wide and not count.uniform else f"{i} < {total}"
    with w.repeated(most / 2), w.scope(f"for ({INDEX} {i} = 0; {i} < {most} && {going}; ++{i})"):
        for place in sums:
            place.changed()
        own = w.name_of(row_of(present, i))
        w.line(f"if (!{f'ANY({own})' if w.wide and not present.uniform else own}) continue;")
        found = compute(w, flatten(p["rows"].one, w.platform), [*shared, *(_single(x, i) for x in rows)])
        for buffer, x, v in zip(mapped, found, op.outputs, strict=False):
            w.fill(buffer, x, v.shape, lambda index: [i, *index[1:]])
        for place, x in zip(sums, found[nmapped:], strict=True):
            place.give(_sum(w, place.value, x))
    for buffer in mapped:
        buffer.version += 1
    return [*(w.stored(b, v.shape) for b, v in zip(mapped, op.outputs, strict=False)), *(q.changed() for q in sums)]


def _by_rows(w: Writer, x: Value) -> Value:
    """Return an array whose rows are read one at a time, and not all of them: as an expression if it is cheap."""
    return x if x.size > w.registers and x.cost <= RECOMPUTED else w.in_buffer(x)


def _by_lanes(w: Writer, op: Operation, operands: list[Value], targets: Targets, compute: Compute) -> list[Value]:
    """Write the results of rows in use, and sums over them, by several lanes: all such rows in parallel."""
    p, (count, _, *given) = op.params, operands
    most = op.inputs[1].shape[0]
    flat, nshared = flatten(p["rows"].of(most), w.platform), p["rows"].nshared
    rows = rows_in_use(flat, nshared, most) if most > 1 else None
    if rows is None:
        return compute(w, flat, given)
    total = w.name_of(count)
    used = {v: (axis, total if many == 1 else f"{total} * {many}") for v, (axis, many) in rows.items()}
    given = [replace(x, used=used[v]) if v in used else x for v, x in zip(flat.inputs, given, strict=True)]
    found = compute(w, flat, given, used=used)
    rest: dict[int, list[Buffer]] = {}
    for k, (v, x) in enumerate(zip(op.outputs[: p["nmapped"]], found, strict=False)):
        buffer, own = targets.get(op.outputs[k]) or w.buffer(v.dtype, math.prod(v.shape)), math.prod(v.shape[1:])
        if not buffer.size:
            continue
        if x.used is None:  # the same for all rows
            x = replace(x, used=(0, total))
        w.fill(buffer, x, v.shape)
        rest.setdefault(own, []).append(buffer)
        found[k] = w.stored(buffer, v.shape)
    for own, buffers in rest.items():  # afterwards, so that the loops above follow each other
        zeros = [f"PUT({b.name}, {total} * {own} + i, 0);" for b in buffers]
        w.write(w.body(), zeros, own * most, f"ALL(i, {own} * ({most} - {total}))")
        for b in buffers:
            b.last = max(b.last, w.epoch)
            w.unread.add(b)
    return found


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


CONTROL: dict[str, Callable[[Writer, Operation, list[Value], list[bool], Targets, Compute], list[Value]]] = {
    "cond": _cond,
    "while": _while,
    "scan": _scan,
    "by_value": _by_value,
}
