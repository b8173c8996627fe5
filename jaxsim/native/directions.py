"""Split a linear function into what depends on its direction and what does not.

A Jacobian needs many directions of the same world. What they share is computed once, in vectors of worlds. The rest is
computed for vectors of directions, in which the shared arrays are numbers.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxsim.math.safe import Array
from jaxsim.native.control import inner_functions
from jaxsim.native.jaxpr import VECTORS, Flat, Operation, Term, Var, inlined, needed, trace
from jaxsim.native.linalg import cholesky, solve_factored
from jaxsim.native.segments import arrays_read, with_views


class Split(NamedTuple):
    """A linear function in two parts.

    `shared` takes the function's operands without its tangents. `along` takes outputs of `shared`, then the tangents.
    Its outputs are those that depend on tangents; the others are outputs of `shared`, or constants.
    """

    shared: Flat
    along: Flat


def split(flat: Flat, tangents: int) -> Split:
    """Return the two parts of a function that is linear in its last `tangents` inputs."""
    count = len(flat.inputs) - tangents
    moving, given = set(flat.inputs[count:]), flat.inputs[:count]
    shared: list[Operation] = []
    along: list[Operation] = []
    for op in _with_both_branches(flat.operations, moving):
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
    passed = [v for v in arrays_read(along) if v not in moving]
    outputs = list(dict.fromkeys(v for v in flat.outputs if isinstance(v, Var)))
    shared_outputs = list(dict.fromkeys([*passed, *(v for v in outputs if v not in moving)]))
    return Split(
        Flat(given, needed(shared, shared_outputs), shared_outputs),
        Flat([*passed, *flat.inputs[count:]], along, [v for v in outputs if v in moving]),
    )


def depends(terms: Sequence[Term], on: set[Var]) -> bool:
    """Return whether any of these arrays is in a set."""
    return not on.isdisjoint(v for v in terms if isinstance(v, Var))


def _with_both_branches(operations: Sequence[Operation], tangents: set[Var]) -> list[Operation]:
    """Return the operations with a choice between their results in the place of branches that solve systems.

    The matrix of such a system is then factorised once for all directions. Loops and nested branches stay.
    """
    moving, found = set(tangents), []
    for op in operations:
        if depends(op.inputs, moving):
            moving |= set(op.outputs)
        inner = inner_functions(op, VECTORS) if op.name == "cond" and not depends(op.inputs[:1], moving) else []
        if len(inner) != 2 or not any(_solves(o) for flat in inner for o in flat.operations):
            found.append(op)
            continue
        which, *operands = op.inputs
        first, second = (inlined(branch, operands, found, VECTORS) for branch in op.params["branches"])
        both = [which, *first, *second]
        results = inlined(trace(_second_if, both), both, found, VECTORS)
        found += [Operation(lax.copy_p, {}, [x], [v]) for x, v in zip(results, op.outputs, strict=True)]
    return found


def _second_if(which: Array, *both: Array) -> list[Array]:
    """Return the second half of the arrays where the index of a branch is not 0, else the first half."""
    half = len(both) // 2
    return [jnp.where(which > 0, b, a) for a, b in zip(both[:half], both[half:], strict=True)]


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
