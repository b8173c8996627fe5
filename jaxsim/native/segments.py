"""Split a function into kernels, between the operations that the generator does not support.

JAX computes these (the solver, searches of a pool, callbacks) for the whole batch. An operation runs in the earliest
kernel that its operands allow, so a chain of n unsupported operations gives at most n + 1 kernels. On a GPU large
kernels are split further, where the fewest bytes must be passed on.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jax import lax

from jaxsim.native.compute import is_known
from jaxsim.native.jaxpr import GPU, MOST_CONSTANTS, WIDE, Flat, Operation, Var, needed, nested
from jaxsim.native.operations import VIEWS, is_cheap
from jaxsim.native.sums import has_sparse_factor

MOST_OPERATIONS = 400  # of a kernel on a GPU: some 48 KB of instructions, which fit a multiprocessor's cache
BYTES_OF_KERNEL = 1024  # of a world: moving these takes as long as one more kernel


class Segment(NamedTuple):
    """Either a kernel's function, or one operation that JAX computes."""

    flat: Flat | None
    operation: Operation | None


def tables_apart(flat: Flat, platform: str, last: int = 0) -> tuple[Flat, list[np.ndarray]]:
    """Return a function with its large constants as inputs, before the `last` ones, and these constants.

    Matrices of which a program of one lane writes only the entries that are not zero stay.
    """
    operands = [v for op in flat.operations if platform == GPU or not has_sparse_factor(op) for v in op.inputs]
    large = {id(v): v for v in operands if isinstance(v, np.ndarray) and v.size > MOST_CONSTANTS}
    apart = {i: Var(v.shape, v.dtype) for i, v in large.items()}
    operations = [op._replace(inputs=[apart.get(id(v), v) for v in op.inputs]) for op in flat.operations]
    count = len(flat.inputs) - last
    inputs = [*flat.inputs[:count], *apart.values(), *flat.inputs[count:]]
    return Flat(inputs, operations, flat.outputs), list(large.values())


def segments(flat: Flat, has_worlds: Sequence[bool], platform: str = GPU) -> list[Segment]:
    """Return the function as kernels and single operations, in the order in which they run.

    `has_worlds` marks the inputs that differ between worlds. Values that depend only on the other inputs, and are read
    by JAX operations, are computed once for all worlds, before everything else.
    """
    known = {id(op): is_known(op, platform) for op in flat.operations}
    once = (_shared if platform in WIDE else _once)(flat, has_worlds, known)
    rest = [op for op in flat.operations if id(op) not in {id(o) for o in once}]
    inputs = [*flat.inputs, *(v for op in once for v in op.outputs)]
    most = MOST_OPERATIONS if platform == GPU else math.inf
    return [*(Segment(None, op) for op in once), *_by_level(Flat(inputs, rest, flat.outputs), known, most)]


def without_shared(flat: Flat, changes: Sequence[bool], platform: str) -> tuple[Flat, Flat]:
    """Return a function in two parts: what depends only on inputs that do not change, and the rest.

    The second has the results of the first as additional inputs.
    """
    first = _shared(flat, changes, {id(op): is_known(op, platform) for op in flat.operations})
    own = {id(op) for op in first}
    rest = [op for op in flat.operations if id(op) not in own]
    made = {v for op in first for v in op.outputs}
    passed = list(dict.fromkeys(v for v in (*arrays_read(rest), *flat.outputs) if isinstance(v, Var) and v in made))
    return Flat(arrays_read(first), first, passed), Flat([*flat.inputs, *passed], rest, flat.outputs)


def with_all_results(flat: Flat, changes: Sequence[bool]) -> Flat:
    """Return a function of which each result is an array of its own, or an input: else XLA copies them in each call.

    Constants, results on which no changing input acts, and results that are equal to another are copied by the program.
    """
    alike = {id(op) for op in _alike(flat, changes)}
    own = {v for op in flat.operations if id(op) not in alike for v in op.outputs}.union(flat.inputs)
    outputs, moves = [], []
    for v in flat.outputs:
        is_copy = 0 < v.size <= MOST_CONSTANTS if isinstance(v, np.ndarray) else v not in own
        if is_copy:
            moves.append(Operation(lax.copy_p, {}, [v], [Var(v.shape, v.dtype)]))
        outputs.append(moves[-1].outputs[0] if is_copy else v)
        own = own if isinstance(v, np.ndarray) or v in flat.inputs else own - {v}
    return Flat(flat.inputs, [*flat.operations, *moves], outputs)


def _alike(flat: Flat, changes: Sequence[bool]) -> list[Operation]:
    """Return the operations on which no changing input acts."""
    differs = {v for v, c in zip(flat.inputs, changes, strict=True) if c}
    alike: list[Operation] = []
    for op in flat.operations:
        if differs.isdisjoint(v for v in op.inputs if isinstance(v, Var)):
            alike.append(op)
        else:
            differs |= set(op.outputs)
    return alike


def _once(flat: Flat, has_worlds: Sequence[bool], known: dict[int, bool]) -> list[Operation]:
    """Return the operations that depend only on inputs without worlds, and on which JAX operations depend."""
    alike = _alike(flat, has_worlds)
    made = {v for op in alike for v in op.outputs}
    read = [v for op in flat.operations if not known[id(op)] for v in op.inputs]
    return needed(alike, [v for v in read if isinstance(v, Var) and v in made])


def _shared(flat: Flat, has_worlds: Sequence[bool], known: dict[int, bool]) -> list[Operation]:
    """Return the operations on shared inputs only, so that programs do not repeat them, except final views."""
    differs = {v for v, w in zip(flat.inputs, has_worlds, strict=True) if w}
    of_inputs, alike = set(flat.inputs), []
    for op in flat.operations:
        read = [v for v in op.inputs if isinstance(v, Var)]
        if not differs.isdisjoint(read):
            differs |= set(op.outputs)
            continue
        alike.append(op)
        if not of_inputs.isdisjoint(read):  # others are constants
            of_inputs |= set(op.outputs)
    roots = {v for op in _once(flat, has_worlds, known) for v in op.outputs}
    roots |= {v for op in alike if op.name not in VIEWS for v in op.outputs if v in of_inputs}
    return needed(alike, list(roots))


def _by_level(flat: Flat, known: dict[int, bool], most: float) -> list[Segment]:
    made = {v: op for op in flat.operations for v in op.outputs}
    level: dict[Var, int] = dict.fromkeys(flat.inputs, 0)
    by_level: dict[int, list[Operation]] = {}
    others: dict[int, list[Operation]] = {}
    for op in flat.operations:
        rank = max((level[v] for v in op.inputs if isinstance(v, Var)), default=0)
        (by_level if known[id(op)] else others).setdefault(rank, []).append(op)
        level |= dict.fromkeys(op.outputs, rank if known[id(op)] else rank + 1)
    wanted = {v for v in flat.outputs if isinstance(v, Var)}
    steps: list[Operation | list[Operation]] = []
    for k in range(max([*by_level, *others], default=0) + 1):
        steps += [*pieces(by_level.get(k, []), made, wanted, most), *others.get(k, [])]
    own = [{v for op in x for v in op.outputs} if isinstance(x, list) else set() for x in steps]
    found: list[Segment] = []
    for step, mine in reversed(list(zip(steps, own, strict=True))):
        if isinstance(step, list):
            outputs = [v for op in step for v in op.outputs if v in wanted]
            kept = needed(with_views(step, made, known, mine), outputs)
            found += [Segment(Flat(arrays_read(kept), kept, outputs), None)] if kept else []
            wanted |= set(arrays_read(kept))
        else:
            found.append(Segment(None, step))
            wanted |= {v for v in step.inputs if isinstance(v, Var)}
    return found[::-1]


def pieces(
    operations: list[Operation], made: dict[Var, Operation], wanted: set[Var], most: float
) -> list[list[Operation]]:
    """Split the operations of a kernel into pieces of at most `most` operations that pass on the fewest bytes.

    The instructions of a small kernel stay in a multiprocessor's cache from world to world.
    """
    sizes = np.cumsum([0, *(operations_of(op) for op in operations)])
    if sizes[-1] <= most:
        return [operations] if operations else []
    live = _live_bytes(operations, made, wanted)
    cost, before = [0.0], [0]
    for end in range(1, len(operations) + 1):
        first = min(int(np.searchsorted(sizes, sizes[end] - most)), end - 1)
        begin = min(range(first, end), key=cost.__getitem__)
        cost.append(cost[begin] + live[end - 1] + BYTES_OF_KERNEL)
        before.append(begin)
    ends = [len(operations)]
    while ends[-1]:
        ends.append(before[ends[-1]])
    return [operations[a:b] for a, b in itertools.pairwise(ends[::-1])]


def halves(flat: Flat) -> list[Flat]:
    """Split a kernel's function in two that pass on few bytes, near the middle; an empty list if that cannot be."""
    ops, made = flat.operations, {v: op for op in flat.operations for v in op.outputs}
    own = [k for k, op in enumerate(ops) if not is_cheap(op)]  # others are computed again in the second half
    if len(own) < 2:
        return []
    wanted = [v for v in flat.outputs if isinstance(v, Var)]
    live, quarter = _live_bytes(ops, made, set(wanted)), len(own) // 4
    cut = min(own[max(1, quarter) : len(own) - quarter], key=lambda k: live[k - 1])
    found: list[Flat] = []
    for part in (ops[cut:], ops[:cut]):
        mine = {v for op in part for v in op.outputs}
        outputs = [v for v in dict.fromkeys(wanted) if v in mine]
        kept = needed(with_views(part, made, dict.fromkeys(map(id, ops), True), mine), outputs)
        found.append(Flat(arrays_read(kept), kept, outputs))
        wanted += found[-1].inputs
    return found[::-1]


def operations_of(op: Operation) -> int:
    """Return the operations of an operation: itself, if it is no view, and those of the largest jaxpr in it."""
    return _count(op.name, op.params)


def _count(name: str, params: dict[str, Any]) -> int:
    inner = (sum(_count(e.primitive.name, e.params) for e in j.eqns) for j in nested(params))
    return int(name not in VIEWS) + max(inner, default=0)


def _live_bytes(operations: Sequence[Operation], made: dict[Var, Operation], wanted: set[Var]) -> np.ndarray:
    """Return the bytes of a world that are live after each operation, without results, which are written anyway."""
    born = {v: k for k, op in enumerate(operations) if not is_cheap(op) for v in op.outputs}
    read: dict[Var, int] = {}

    def note(v: Any, k: int) -> None:
        if not isinstance(v, Var):
            return
        if v in born:
            read[v] = k
        elif v in made and is_cheap(made[v]):
            for x in made[v].inputs:
                note(x, k)

    for k, op in enumerate(operations):
        for v in () if is_cheap(op) else op.inputs:
            note(v, k)
    change = np.zeros(len(operations) + 1)
    for v, end in read.items():
        if v not in wanted:
            change[born[v]] += (size := math.prod(v.shape) * v.dtype.itemsize)
            change[end] -= size
    return np.cumsum(change)[:-1]


def arrays_read(operations: Sequence[Operation]) -> list[Var]:
    """Return the arrays that these operations read and do not compute."""
    inside = {v for op in operations for v in op.outputs}
    return list({v: None for op in operations for v in op.inputs if isinstance(v, Var) and v not in inside})


def with_views(
    operations: Sequence[Operation], made: dict[Var, Operation], known: dict[int, bool], own: set[Var]
) -> list[Operation]:
    """Return the operations of a kernel, with the cheap operations (views) of earlier kernels that it must repeat."""
    added: dict[int, Operation] = {}

    def visit(op: Operation) -> None:
        for v in (v for v in op.inputs if isinstance(v, Var) and v in made and v not in own):
            before = made[v]
            if id(before) not in added and known[id(before)] and is_cheap(before):
                visit(before)
                added[id(before)] = before

    for op in operations:
        visit(op)
    return [*added.values(), *operations]
