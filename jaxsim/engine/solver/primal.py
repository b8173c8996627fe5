"""Newton and conjugate gradient on the primal problem, with exact line search and warm start."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.layout import Layout
from jaxsim.engine.solver.linesearch import SearchLine, ahead, line_search
from jaxsim.engine.solver.problem import (
    ConstraintProblem,
    along,
    contact_blocks,
    contact_hessian,
    costs,
    curvature,
    force,
    hessian,
    hessian_without_contacts,
    residual,
)
from jaxsim.math.arrays import dot, sums
from jaxsim.math.safe import Array, divide
from jaxsim.xla.batching import batch_max
from jaxsim.xla.linalg import cholesky, solve_factored, solve_nearly_positive, solve_positive
from jaxsim.xla.loops import while_each, while_packed

# A line search this exact, relative to the derivative at its start, costs no more iterations than an exact one.
LS_NEWTON, LS_CG = 1e-2, 1e-3


class Tolerances(NamedTuple):
    """Tolerances of the solver and of its line search: numbers of the model, not static."""

    tolerance: Array
    ls_tolerance: Array
    scale: Array  # 1 / (meaninertia * nv)


class Solver(NamedTuple):
    """A method that minimises the cost of a problem along one direction of search after the other. Static.

    `directions(layout, p)` gives a function from a `SolverState` to the next direction (nv,) and what to remember of
    it, `s.last` of the next state, and what `s.last` is at the start. A line search leaves at most `ls_relative` of the
    derivative at its start. `in_c` is the method's number in `primal.c` and `primal.cu`; without one, operations of
    JAX do it everywhere. `sparse` solves problems with the sparse rows of large models; without it they are refused.
    """

    directions: Callable[..., tuple[Callable[..., tuple[Array, Any]], Any]]
    ls_relative: float
    in_c: int | None = None
    sparse: Callable[..., tuple[Array, Array]] | None = None


class IterationLimits(NamedTuple):
    """The solver and its static limits; `kernel` is `opt.solver_kernel`."""

    solver: Solver
    iterations: int
    ls_iterations: int
    kernel: int = 0


class Guesses(NamedTuple):
    """Accelerations to start from: the unconstrained one, and the last solution or None."""

    free: Array
    warm: Array | None


class Solution(NamedTuple):
    """qacc (nv,), the number of iterations, J qacc - aref, J qacc_smooth - aref (nslot,) and J' force (nv,)."""

    acc: Array
    niter: Array
    r: Array
    free_r: Array
    qfrc: Array


class InitialGuess(NamedTuple):
    """An acceleration a to start from, with M a and r = J a - aref."""

    acc: Array
    momentum: Array
    r: Any


class SolverState(NamedTuple):
    acc: Array
    momentum: Array  # M a
    r: Any
    grad: Array
    last: Any  # what the solver remembers of its last direction
    niter: Array
    done: Array


class SolverOperators(NamedTuple):
    """A problem as the iteration uses it. Vectors are arrays; rows are of any type that these functions share."""

    smooth: Array  # smooth force
    inertia: Callable[[Array], Array]  # M x
    rows: Callable[[Array], Any]  # J x
    transpose: Callable[[Any], Array]  # J' f
    force: Callable[[Any], Any]  # of rows with residual r
    along: Callable[
        [Any, Any], tuple[Array, Array, Array]
    ]  # force, sizes and curvature along a line, see `line_search`
    direction: Callable[[SolverState], tuple[Array, Any]]  # the next search, and `last` for the one after it
    last: Any  # of the first state
    sums: Callable[..., tuple[Array, ...]] = sums  # of the entries of each of several vectors
    search_loop: Callable[..., Any] = while_packed  # of the line search


def solve(
    layout: Layout, limits: IterationLimits, p: ConstraintProblem, settings: Tolerances, guesses: Guesses
) -> Solution:
    """The solution by operations of JAX."""
    direction, last = limits.solver.directions(layout, p)
    operators = SolverOperators(
        smooth=p.qfrc_smooth,
        inertia=partial(dot, p.M.matrix),
        rows=p.J.times,
        transpose=p.J.transpose_times,
        force=partial(force, layout, p),
        along=partial(along, layout, p),
        direction=direction,
        last=last,
    )
    start = first_guess(layout, p, guesses.free, guesses.warm)
    acc, niter = minimise(operators, limits, settings, start, while_each)
    return solution(layout, p, acc, niter, guesses.free)


def solution(layout: Layout, p: ConstraintProblem, acc: Array, niter: Array, free: Array) -> Solution:
    """What is known of the solution `acc`."""
    r = residual(layout, p, acc)
    return Solution(acc, niter, r, residual(layout, p, free), p.J.transpose_times(force(layout, p, r)))


def minimise(
    operators: SolverOperators,
    limits: IterationLimits,
    settings: Tolerances,
    start: InitialGuess,
    loop: Callable[..., SolverState],
) -> tuple[Array, Array]:
    """The iteration from a guess; `loop(cond, body, state)` repeats its body."""
    first = _prepare(operators, settings, *start, jnp.zeros((), jnp.int32))._replace(last=operators.last)
    step = partial(_iterate, operators, limits, settings)
    last = loop(lambda s: ~s.done & (s.niter < limits.iterations), step, first)
    return last.acc, last.niter


def _prepare(
    operators: SolverOperators, settings: Tolerances, acc: Array, momentum: Array, r: Any, niter: Array
) -> SolverState:
    smooth = momentum - operators.smooth
    constraint = operators.transpose(operators.force(r))
    grad = smooth - constraint
    squares = operators.sums(*[x * x for x in (momentum, operators.smooth, constraint, grad)])
    *sizes, small = [jnp.sqrt(x) for x in squares]
    floor = 4 * jnp.finfo(acc.dtype).eps * sum(sizes)
    stop = (settings.scale * small < settings.tolerance) | (small <= floor)
    return SolverState(acc, momentum, r, grad, (), niter, stop)


def _iterate(operators: SolverOperators, limits: IterationLimits, settings: Tolerances, s: SolverState) -> SolverState:
    search, last = operators.direction(s)
    mv, z = operators.inertia(search), operators.rows(search)
    factors = (s.grad, s.momentum - operators.smooth, mv, search)
    total, derivative, curvature, square = operators.sums(*[search * x for x in factors])
    line = SearchLine(s.r, z, derivative, curvature)
    exact = settings.tolerance * settings.ls_tolerance * jnp.sqrt(square) / settings.scale
    enough = jnp.maximum(exact, limits.solver.ls_relative * jnp.abs(total))
    alpha = line_search(operators.along, line, enough, limits.ls_iterations, s.done, operators.search_loop)
    acc, momentum = s.acc + alpha * search, s.momentum + alpha * mv
    new = _prepare(operators, settings, acc, momentum, ahead(s.r, z, alpha), s.niter + 1)
    gain = -0.5 * alpha * total  # exact for a quadratic, never cancels
    done = new.done | (settings.scale * gain < settings.tolerance) | (total >= 0)
    return new._replace(last=last, done=done)


HESSIAN_CHUNK = 8  # contacts whose share of the Hessian is added at a time


def solve_hessian(layout: Layout, h: Array, b: Array) -> Array:
    """H^-1 b (nv,). Rows of strains grow with the square of a deformation, so that rounding may eat what M adds."""
    return (solve_nearly_positive if layout.strains else solve_positive)(h, b)


def newton_directions(layout: Layout, p: ConstraintProblem) -> tuple[Callable, tuple[()]]:
    """Directions to the minimum of the quadratic around each state."""
    return lambda s: (-solve_hessian(layout, hessian_of_used(layout, p, s.r), s.grad), ()), ()


def hessian_of_used(layout: Layout, p: ConstraintProblem, r: Array) -> Array:
    """`hessian` from only as many contacts as any world of a batch has: real contacts come first in the buffer."""
    c = curvature(layout, p, r)
    if layout.ncontact <= HESSIAN_CHUNK:
        return hessian(layout, p, c)
    blocks, last = contact_blocks(layout, p, c), layout.ncontact - HESSIAN_CHUNK

    def add(i: Array, h: Array) -> Array:
        start = jnp.minimum(
            i * HESSIAN_CHUNK, last
        )  # the last chunk reaches back: what it has in common does not count twice
        part, jacobian = [jax.lax.dynamic_slice_in_dim(x, start, HESSIAN_CHUNK) for x in (blocks, p.J.contact)]
        fresh = start + np.arange(HESSIAN_CHUNK) >= i * HESSIAN_CHUNK
        return h + contact_hessian(jnp.where(fresh[:, None, None], part, 0), jacobian)

    present = p.D[layout.offsets[3] :].reshape(layout.ncontact, -1).any(1)
    used = jnp.max(jnp.where(present, np.arange(1, layout.ncontact + 1), 0))
    chunks = (batch_max(used) + HESSIAN_CHUNK - 1) // HESSIAN_CHUNK
    return jax.lax.fori_loop(0, chunks, add, hessian_without_contacts(layout, p, c))


def cg_directions(layout: Layout, p: ConstraintProblem) -> tuple[Callable, tuple[Array, Array]]:
    """Polak-Ribiere with the inverse inertia as preconditioner; restarts when the coefficient is negative.

    It remembers the last direction and its preconditioned gradient.
    """
    nothing = jnp.zeros_like(p.qfrc_smooth)
    return partial(_cg_direction, cholesky(p.M.matrix), p), (nothing, nothing)


def _cg_direction(factor: Array, p: ConstraintProblem, s: SolverState) -> tuple[Array, tuple[Array, Array]]:
    mgrad = solve_factored(factor, s.grad)
    old_search, old_mgrad = s.last
    # grad_old = M old_mgrad; the products below need it only against mgrad and old_mgrad
    old_grad = dot(p.M.matrix, old_mgrad)
    beta = divide(jnp.sum(s.grad * (mgrad - old_mgrad)), jnp.sum(old_grad * old_mgrad))
    search = -mgrad + jnp.maximum(beta, 0) * old_search
    return search, (search, mgrad)


def first_guess(layout: Layout, p: ConstraintProblem, qacc_smooth: Array, warm: Array | None) -> InitialGuess:
    """The cheaper of two starts: the unconstrained acceleration, and the last solution if there is one."""
    free = InitialGuess(qacc_smooth, p.qfrc_smooth, residual(layout, p, qacc_smooth))
    if warm is None:
        return free
    last = InitialGuess(warm, p.M.times(warm), residual(layout, p, warm))
    gauss = 0.5 * jnp.sum((last.momentum - p.qfrc_smooth) * (warm - qacc_smooth))
    warm_cost, free_cost = sums(costs(layout, p, last.r), costs(layout, p, free.r))
    better = gauss + warm_cost < free_cost
    return jax.tree.map(lambda x, y: jnp.where(better, x, y), last, free)
