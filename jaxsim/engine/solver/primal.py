"""Newton and conjugate gradient on the primal problem, with exact line search and warm start."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.core.layout import Layout
from jaxsim.engine.solver.linesearch import ahead, at_least_once, line_search
from jaxsim.engine.solver.operators import ContactsInUse
from jaxsim.engine.solver.problem import (
    ConstraintProblem,
    along,
    contacts_in_use,
    cost,
    force,
    hessian,
    residual,
)
from jaxsim.math.arrays import dot, sums
from jaxsim.math.safe import Array, divide
from jaxsim.native.linalg import cholesky, solve_factored, solve_nearly_positive, solve_positive
from jaxsim.xla.loops import while_each

# A line search this exact, relative to the derivative at its start, costs no more iterations than an exact one.
LS_NEWTON, LS_CG = 1e-2, 1e-3


class Tolerances(NamedTuple):
    """Tolerances of the solver and of its line search: numbers of the model, not static."""

    tolerance: Array
    ls_tolerance: Array
    scale: Array  # 1 / (meaninertia * nv)


class Solver(NamedTuple):
    """A method that minimises the cost of a problem by a sequence of line searches. Static.

    `directions(layout, p)` returns a function from a `SolverState` to the next direction (nv,) and the memory `s.last`
    of the next state, and the initial `s.last`. A line search reduces the derivative to at most `ls_relative` of its
    initial value. `native_id` is its number in `used_dense.METHODS` and `primal.cu`; without one, JAX operations run it
    on every platform. `sparse` solves problems with the sparse rows of large models; without it they are refused.
    """

    directions: Callable[..., tuple[Callable[..., tuple[Array, Any]], Any]]
    ls_relative: float
    native_id: int | None = None
    sparse: Callable[..., tuple[Array, Array]] | None = None


class IterationLimits(NamedTuple):
    """The solver and its static limits; `backend` is `opt.backend`."""

    solver: Solver
    iterations: int
    ls_iterations: int
    backend: int = 0


class Guesses(NamedTuple):
    """Initial accelerations: the unconstrained one, and the warm start or None."""

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
    """An initial acceleration a, with M a and r = J a - aref."""

    acc: Array
    momentum: Array
    r: Any


class SolverState(NamedTuple):
    acc: Array
    momentum: Array  # M a
    r: Any
    grad: Array
    last: Any  # memory of the solver, of its last direction
    niter: Array
    done: Array


class SolverOperators(NamedTuple):
    """Operators of a problem for the iteration. Vectors are arrays; rows are of any type that these functions share."""

    smooth: Array  # smooth force
    inertia: Callable[[Array], Array]  # M x
    rows: Callable[[Array], Any]  # J x
    constraint: Callable[[Any], Array]  # J' f of the forces f of rows with residual r
    along: Callable[[Any, Any, Array], tuple[Array, Array, Array]]  # of (r, z, alpha), as `line_search` needs it
    direction: Callable[[SolverState], tuple[Array, Any]]  # the next direction, and `last` of the next state
    last: Any  # of the first state
    sums: Callable[..., tuple[Array, ...]] = sums  # of the entries of each of several vectors
    search_loop: Callable[..., Any] = at_least_once  # of the line search
    ahead: Callable[[Any, Any, Array], Any] = ahead  # r + alpha z of (r, z, alpha)


def solve(
    layout: Layout, limits: IterationLimits, p: ConstraintProblem, settings: Tolerances, guesses: Guesses
) -> Solution:
    """Solve the problem by the reference implementation, which defines the solution on every platform."""
    p = p._replace(J=dataclasses.replace(p.J, parts=ContactsInUse(contacts_in_use(layout, p))))
    directions = limits.solver.directions(layout, p)
    found, free = minimise_problem(layout, limits, p, settings, guesses, directions, while_each)
    r = residual(layout, p, found.acc)
    return Solution(found.acc, found.niter, r, free, p.J.transpose_times(force(layout, p, r)))


def minimise_problem(
    layout: Layout,
    limits: IterationLimits,
    p: ConstraintProblem,
    settings: Tolerances,
    guesses: Guesses,
    directions: tuple[Callable[..., Any], Any],
    loop: Callable[..., SolverState],
) -> tuple[SolverState, Array]:
    """Minimise the cost of a problem by its operators; return the last state, and J qacc_smooth - aref (nslot,).

    `directions` are those of a `Solver`, `loop` that of `minimise`.
    """
    used, (direction, last) = contacts_in_use(layout, p), directions
    operators = SolverOperators(
        smooth=p.qfrc_smooth,
        inertia=p.M.times,
        rows=p.J.times,
        constraint=lambda r: p.J.transpose_times(force(layout, p, r)),
        along=lambda r, z, alpha: along(layout, p, used, ahead(r, z, alpha), z),
        direction=direction,
        last=last,
    )
    each = one_by_one(partial(residual, layout, p), partial(cost, layout, p, used))
    start, free = first_guess(each, p, guesses)
    return minimise(operators, limits, settings, start, loop), free


def solution(layout: Layout, p: ConstraintProblem, acc: Array, niter: Array, free: Array) -> Solution:
    """Compute the derived quantities of the solution `acc`, by the operators of the problem."""
    r = residual(layout, p, acc)
    qfrc = p.J.transpose_times(force(layout, p, r))
    return Solution(acc, niter, r, residual(layout, p, free), qfrc)


def minimise(
    operators: SolverOperators,
    limits: IterationLimits,
    settings: Tolerances,
    start: InitialGuess,
    loop: Callable[..., SolverState],
) -> SolverState:
    """Iterate from an initial guess and return the last state; `loop(cond, body, state)` repeats its body."""
    first = _prepare(operators, settings, *start, jnp.zeros((), jnp.int32))._replace(last=operators.last)
    step = partial(_iterate, operators, limits, settings)
    return loop(lambda s: ~s.done & (s.niter < limits.iterations), step, first)


def _prepare(
    operators: SolverOperators, settings: Tolerances, acc: Array, momentum: Array, r: Any, niter: Array
) -> SolverState:
    smooth = momentum - operators.smooth
    constraint = operators.constraint(r)
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
    line, along = (derivative, curvature), partial(operators.along, s.r, z)
    exact = settings.tolerance * settings.ls_tolerance * jnp.sqrt(square) / settings.scale
    enough = jnp.maximum(exact, limits.solver.ls_relative * jnp.abs(total))
    alpha = line_search(along, line, enough, limits.ls_iterations, s.done, operators.search_loop)
    acc, momentum = s.acc + alpha * search, s.momentum + alpha * mv
    new = _prepare(operators, settings, acc, momentum, operators.ahead(s.r, z, alpha), s.niter + 1)
    gain = -0.5 * alpha * total  # exact for a quadratic, without cancellation
    done = new.done | (settings.scale * gain < settings.tolerance) | (total >= 0)
    return new._replace(last=last, done=done)


def solve_hessian(layout: Layout, h: Array, b: Array) -> Array:
    """Compute H^-1 b (nv,).

    Rows of strains grow with the square of a deformation, so that M may be lost to rounding.
    """
    return (solve_nearly_positive if layout.strains else solve_positive)(h, b)


def newton_directions(layout: Layout, p: ConstraintProblem) -> tuple[Callable, tuple[()]]:
    """Return Newton directions, to the minimum of the quadratic model at each state."""
    used = contacts_in_use(layout, p)
    return lambda s: (-solve_hessian(layout, hessian(layout, p, used, s.r), s.grad), ()), ()


def cg_directions(layout: Layout, p: ConstraintProblem) -> tuple[Callable, tuple[Array, Array]]:
    """Return Polak-Ribiere directions, preconditioned with the inverse inertia; they restart on a negative coefficient.

    The memory holds the last direction and its preconditioned gradient.
    """
    nothing = jnp.zeros_like(p.qfrc_smooth)
    precondition = partial(solve_factored, cholesky(p.M.matrix))
    return partial(cg_direction, precondition, partial(dot, p.M.matrix)), (nothing, nothing)


def cg_direction(
    precondition: Callable[[Array], Array], inertia: Callable[[Array], Array], s: SolverState
) -> tuple[Array, tuple[Array, Array]]:
    """Compute a Polak-Ribiere direction and the memory of the next state, from the products M^-1 x and M x."""
    mgrad = precondition(s.grad)
    old_search, old_mgrad = s.last
    # grad_old = M old_mgrad; the products below need it only against mgrad and old_mgrad
    old_grad = inertia(old_mgrad)
    beta = divide(jnp.sum(s.grad * (mgrad - old_mgrad)), jnp.sum(old_grad * old_mgrad))
    search = -mgrad + jnp.maximum(beta, 0) * old_search
    return search, (search, mgrad)


def one_by_one(residual: Callable[[Array], Any], cost: Callable[[Any], Array]) -> Callable[..., list]:
    """Return a function of several accelerations, which returns the residual and the cost of each."""

    def of_one(acc: Array) -> tuple[Any, Array]:
        r = residual(acc)
        return r, cost(r)

    return lambda *accs: [of_one(x) for x in accs]


def first_guess(each: Callable[..., Any], p: ConstraintProblem, guesses: Guesses) -> tuple[InitialGuess, Any]:
    """Choose the cheaper of two starts, the unconstrained acceleration and the warm start.

    `each` gives the residual and the cost of each of its arguments. Also returns the residual of the unconstrained
    acceleration.
    """
    smooth, warm = p.qfrc_smooth, guesses.warm
    if warm is None:
        ((r, _),) = each(guesses.free)
        return InitialGuess(guesses.free, smooth, r), r
    (r, cost), (last_r, last_cost) = each(guesses.free, warm)
    free, last = InitialGuess(guesses.free, smooth, r), InitialGuess(warm, p.M.times(warm), last_r)
    gauss = 0.5 * jnp.sum((last.momentum - smooth) * (warm - guesses.free))
    better = gauss + last_cost < cost
    return jax.tree.map(lambda x, y: jnp.where(better, x, y), last, free), r
