"""A function cut into kernels: what this room can write between what it cannot.

Operations that it does not know (the solver, searches of a pool, callbacks) are computed by JAX for the whole batch.
What does not depend on them comes before; so there is one kernel more than there are such operations in a row.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jaxsim.native.jaxpr import GPU, VECTORS, Flat, Operation, Var, needed
from jaxsim.native.operations import EXPRESSIONS, OFTEN, VIEWS
from jaxsim.native.statements import is_known


class Segment(NamedTuple):
    """A kernel's function, or one operation that JAX computes."""

    flat: Flat | None
    operation: Operation | None


def segments(flat: Flat, has_worlds: Sequence[bool], platform: str = GPU) -> list[Segment]:
    """The function as kernels and single operations, in the order in which they run.

    `has_worlds` says which inputs differ from world to world. What operations of JAX read of the others alone is made
    once for all worlds, before everything else.
    """
    known = {id(op): is_known(op, platform) for op in flat.operations}
    once = (_shared if platform == VECTORS else _once)(flat, has_worlds, known)
    rest = [op for op in flat.operations if id(op) not in {id(o) for o in once}]
    inputs = [*flat.inputs, *(v for op in once for v in op.outputs)]
    return [*(Segment(None, op) for op in once), *_by_level(Flat(inputs, rest, flat.outputs), known)]


def _once(flat: Flat, has_worlds: Sequence[bool], known: dict[int, bool]) -> list[Operation]:
    """The operations that lead from inputs without worlds to operations of JAX."""
    differs = {v for v, w in zip(flat.inputs, has_worlds, strict=True) if w}
    alike: list[Operation] = []
    for op in flat.operations:
        if differs.isdisjoint(v for v in op.inputs if isinstance(v, Var)):
            alike.append(op)
        else:
            differs |= set(op.outputs)
    read = [v for op in flat.operations if not known[id(op)] for v in op.inputs]
    return needed(alike, [v for v in read if isinstance(v, Var) and v not in differs])


def _shared(flat: Flat, has_worlds: Sequence[bool], known: dict[int, bool]) -> list[Operation]:
    """The operations that read only what worlds share, but for views at their end: a program repeats no others."""
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


def _by_level(flat: Flat, known: dict[int, bool]) -> list[Segment]:
    made = {v: op for op in flat.operations for v in op.outputs}
    level: dict[Var, int] = dict.fromkeys(flat.inputs, 0)
    by_level: dict[int, list[Operation]] = {}
    others: dict[int, list[Operation]] = {}
    for op in flat.operations:
        own = max((level[v] for v in op.inputs if isinstance(v, Var)), default=0)
        (by_level if known[id(op)] else others).setdefault(own, []).append(op)
        level |= dict.fromkeys(op.outputs, own if known[id(op)] else own + 1)
    last = max([*by_level, *others, *(level[v] for v in flat.outputs if isinstance(v, Var)), 0])
    kernels = [_with_views(by_level.get(k, []), made, known, level, k) for k in range(last + 1)]
    found: list[Segment] = []
    for k, operations in enumerate(kernels):
        wanted = {v for rest in kernels[k + 1 :] for v in _read(rest)}
        wanted |= {v for j, rest in others.items() if j >= k for v in _read(rest)}
        wanted |= {v for v in flat.outputs if isinstance(v, Var)}
        own = {v: None for op in operations for v in op.outputs if v in wanted and level[v] == k}
        outputs = list(own)
        kept = needed(operations, outputs)
        if kept:
            found.append(Segment(Flat(_read(kept), kept, outputs), None))
        found += [Segment(None, op) for op in others.get(k, [])]
    return found


def _read(operations: Sequence[Operation]) -> list[Var]:
    """What operations read of others."""
    inside = {v for op in operations for v in op.outputs}
    return list({v: None for op in operations for v in op.inputs if isinstance(v, Var) and v not in inside})


def _with_views(
    operations: Sequence[Operation], made: dict[Var, Operation], known: dict[int, bool], level: dict[Var, int], k: int
) -> list[Operation]:
    """The operations of a kernel, with those again that only rearrange what earlier ones got."""
    added: dict[int, Operation] = {}

    def visit(op: Operation) -> None:
        for v in (v for v in op.inputs if isinstance(v, Var) and v in made):
            before = made[v]
            if level[v] != k and id(before) not in added and known[id(before)] and _is_cheap(before):
                visit(before)
                added[id(before)] = before

    for op in operations:
        visit(op)
    return [*added.values(), *operations]


def _is_cheap(op: Operation) -> bool:
    if op.name in VIEWS or op.name == "iota":
        return True
    return op.name in EXPRESSIONS and op.name not in OFTEN and not any(isinstance(v, Var) for v in op.inputs)
