"""Remove from a function, and from the bodies of its loops, what need not be computed, or not in each iteration."""

from collections.abc import Sequence

import jax
from jax import lax

from jaxsim.math.safe import Array
from jaxsim.native.jaxpr import CALL, Callee, Flat, Operation, Term, Var, flatten, inlined, renamed, trace
from jaxsim.native.segments import without_shared
from jaxsim.native.unread import without_unread_rows
from jaxsim.xla.compat import scan_lengths


def simplified(flat: Flat, platform: str) -> Flat:
    """Return a function without rows that nothing reads, in which loops compute nothing that is the same in each turn.

    Loops are those of known length (`scan`), also those within others. What depends on their constants alone, as on the
    numbers of a model, stands before them.
    """
    flat = without_unread_rows(flat, platform)
    if not any(op.name == "scan" for op in flat.operations):
        return flat
    operations: list[Operation] = []
    made: dict[Var, Term] = {}
    for op in flat.operations:
        mine = op._replace(inputs=_read(op.inputs, made))
        if op.name != "scan":
            operations.append(mine)
        else:
            made |= dict(zip(op.outputs, _loop(mine, operations, platform), strict=True))
    return Flat(flat.inputs, operations, _read(flat.outputs, made))


def _read(terms: Sequence[Term], made: dict[Var, Term]) -> list[Term]:
    return [made.get(v, v) if isinstance(v, Var) else v for v in terms]


def _loop(op: Operation, operations: list[Operation], platform: str) -> Sequence[Term]:
    """Append a loop, after what its body computes of its constants alone; return its results."""
    (nc, nk), count = scan_lengths(op.params, len(op.inputs)), len(op.inputs)
    whole = flatten(op.params["jaxpr"], platform)
    body = simplified(whole, platform)
    alike, rest = without_shared(body, [k >= nc for k in range(count)], platform)
    if body is whole and not alike.operations:
        operations.append(op)
        return op.outputs
    place = dict(zip(body.inputs, op.inputs, strict=True))
    given = [*op.inputs, *renamed(alike, _read(alike.inputs, place), operations)]
    mine = Callee(rest)

    def loop(*x: Array) -> list[Array]:
        def turn(carry: list[Array], row: list[Array]) -> tuple[list[Array], list[Array]]:
            found = CALL.bind(*x[:nc], *carry, *row, *x[count:], body=mine)
            return found[:nk], found[nk:]

        p = op.params
        end, rows = lax.scan(turn, list(x[nc : nc + nk]), list(x[nc + nk : count]), p["length"], p["reverse"])
        return [*end, *rows]

    return inlined(trace(loop, [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in given]), given, operations, platform)
