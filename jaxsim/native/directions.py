"""Split a linear function into what depends on its direction and what does not.

A Jacobian needs many directions of the same world. What they share is computed once, in vectors of worlds. The rest is
computed for vectors of directions, in which the shared arrays are numbers.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jax import lax

from jaxsim.native.jaxpr import VECTORS, Flat, Operation, Term, Var, inlined, needed, trace
from jaxsim.native.linalg import cholesky, solve_factored
from jaxsim.native.segments import arrays_read, with_views


class Split(NamedTuple):
    """A linear function in two parts: the outputs of `shared` are the first inputs of `along`, then its tangents.

    Inputs of `shared` are the function's operands without its tangents.
    """

    shared: Flat
    along: Flat


def split(flat: Flat, tangents: int) -> Split:
    """Return the two parts of a function that is linear in its last `tangents` inputs."""
    count = len(flat.inputs) - tangents
    moving, given = set(flat.inputs[count:]), flat.inputs[:count]
    shared: list[Operation] = []
    along: list[Operation] = []
    for op in flat.operations:
        if depends(op.inputs, moving):
            before, after = _factored(op) if _solves(op) and not depends(op.inputs[:1], moving) else ([], [op])
            shared += before
            along += after
            moving |= {v for new in after for v in new.outputs}
        else:
            shared.append(op)
    made = {v: op for op in shared for v in op.outputs}
    own = {v for op in along for v in op.outputs}
    along = with_views(along, made, dict.fromkeys(map(id, shared), True), own)
    results = [v for v in flat.outputs if isinstance(v, Var) and v not in moving]
    passed = [v for v in dict.fromkeys([*arrays_read(along), *results]) if v not in moving]
    return Split(Flat(given, needed(shared, passed), passed), Flat([*passed, *flat.inputs[count:]], along, flat.outputs))


def depends(terms: Sequence[Term], on: set[Var]) -> bool:
    """Return whether any of these arrays is in a set."""
    return not on.isdisjoint(v for v in terms if isinstance(v, Var))


def _solves(op: Operation) -> bool:
    return op.name == "small_matrices" and op.params["plan"].name == "solve_positive"


def _factored(op: Operation) -> tuple[list[Operation], list[Operation]]:
    """Return a solution with a positive matrix in two parts: Cholesky factors, and the solution with them."""
    matrix, right = op.inputs
    shared: list[Operation] = []
    along: list[Operation] = []
    (factor,) = inlined(trace(cholesky, [matrix]), [matrix], shared, VECTORS)
    (x,) = inlined(trace(solve_factored, [matrix, right]), [factor, right], along, VECTORS)
    return shared, [*along, Operation(lax.copy_p, {}, [x], op.outputs)]
