"""Trajectory optimisation by inverse dynamics: positions are the unknowns, and forces follow from them.

Kurtz and Castro, "Inverse Dynamics Trajectory Optimization for Contact-Implicit Model Predictive Control",
arXiv 2309.01813. The forces of a step depend on three consecutive positions, so that the Gauss-Newton matrix has five
diagonals of blocks. It is factorised as one of three diagonals of blocks twice as large.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import EnableBit, IntegratorType
from jaxsim.engine.actuation.forces import fwd_actuation
from jaxsim.engine.kinematics.positions import differentiate_pos, integrate_pos
from jaxsim.engine.step.inverse import inverse
from jaxsim.engine.step.transition import by_columns
from jaxsim.math.safe import Array
from jaxsim.optim import costs as terms
from jaxsim.optim.arguments import control_limits, floats
from jaxsim.optim.costs import Costs
from jaxsim.optim.options import Inverse, Iteration, Result, takes_options
from jaxsim.optim.progress import is_traced, listen, report, warn
from jaxsim.optim.rounds import LARGEST_PENALTY, PENALTY_FACTOR, STEP_LENGTHS, improves, is_over, next_weight, verdict

LEAST_WEIGHT = 1e-15  # of the regularisation: slow motions of n steps have eigenvalues n^-4 of the diagonal


class Problem(NamedTuple):
    """Arguments of a search: model, first data, costs and limits of controls (nu,)."""

    m: Model
    d: Data
    costs: Costs
    low: Array
    high: Array


class Outcome(NamedTuple):
    """Values of a path at every state: rows of terms (flat), forces that no actuator gives (nv,), how far controls are
    above and below their limits in units of force (2 nu,), and controls (nu,)."""

    rows: Array
    missing: Array
    excess: Array
    controls: Array

    def violation(self) -> Array:
        """Return the largest force that is missing or above a limit."""
        return jnp.maximum(jnp.max(jnp.abs(self.missing), initial=0), jnp.max(self.excess, initial=0))


class Search(NamedTuple):
    """State of the loop: the best positions, their expansion, and the step that is tried next."""

    positions: Array
    outcome: Outcome
    cost: Array
    multipliers: Array
    penalty: Array
    grad: Array
    hess: Array
    step: Array
    promised: Array
    weight: Array
    fresh: Array
    rounds: Array
    count: Array
    history: Array
    converged: Array
    ended: Array


@takes_options
def inverse_trajectory(
    m: Model,
    d: Data,
    costs: Costs,
    positions: Array,
    options: Inverse | None = None,
    *,
    low: Any = None,
    high: Any = None,
    callback: Callable[[Iteration], None] | None = None,
    progress: bool = False,
) -> Result:
    """Minimise costs over positions (n + 1, nq) by Gauss-Newton on inverse dynamics: contact-implicit, no rollouts.

    Velocities and accelerations are differences of positions. The forces of a step are `inverse`'s, those of MuJoCo's
    discrete step. Controls are those that give the forces best. What is missing then, e.g. at unactuated joints, and
    controls beyond their limits are penalised, then brought to zero by an augmented Lagrangian.

    Args:
        positions: a guess of all positions, of which the first is replaced by that of `d`. They need not obey the
            dynamics.
        low: lower limits of controls, by default those of the actuators.
        high: upper limits, likewise.
        callback: called with an `Iteration` after each; its point is the positions.
        progress: show a bar.

    Returns the controls `x` (n, nu), the `states` (qpos, qvel and time), and as `violation` the largest missing force.
    `ilqr(..., states=result.states)` goes on from there. Pass a model with `contacts_from_distance` where nothing
    touches at the start. A pure function, like `ilqr`; an eager call warns if the search gives up. Raises ValueError
    for activations, constraints and RK4.
    """
    options = Inverse() if options is None else options
    terms.check_costs(costs, "inverse_trajectory")
    if m.na or m.opt.integrator == IntegratorType.RK4 or costs.constraints or costs.final_constraints:
        raise ValueError("inverse_trajectory takes no activations, no RK4 and no constraints; ilqr does")
    positions = floats(jnp.asarray(positions))
    if positions.ndim != 2 or positions.shape[1] != m.nq or len(positions) < 2:
        raise ValueError(f"inverse_trajectory: positions have shape {positions.shape}, wanted (steps + 1, {m.nq})")
    low, high = control_limits(m, low, high, jnp.zeros(m.nu, positions.dtype), "inverse_trajectory")
    flags = m.opt.enableflags | int(EnableBit.INVDISCRETE)
    problem = Problem(m.replace(opt=m.opt.replace(enableflags=flags)), d, costs, low, high)
    positions = positions.at[0].set(d.qpos)
    if is_traced(problem, positions, options):
        return _minimise(problem, positions, options, False)
    with listen(options.iterations, "inverse dynamics", progress, callback) as watched:
        result = _compiled()(problem, positions, options, watched)
    if not bool(jnp.isfinite(result.cost)):
        raise FloatingPointError("inverse_trajectory: the cost is not finite at the positions given; start from others")
    count = int(result.iterations)
    if not bool(result.converged) and count < options.iterations:
        warn(
            f"inverse_trajectory gives up after iteration {count}: no step lowers the cost, and forces of "
            f"{float(result.violation):.2g} N or N m are missing. Start from other positions, or go on with ilqr and "
            "these states",
        )
    return result


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., Result]:
    return jaxsim.jit(_minimise, static_argnums=3)  # asks which options XLA knows: not on import


def _minimise(problem: Problem, positions: Array, options: Inverse, watched: bool) -> Result:
    n, nv, dtype = len(positions) - 1, problem.m.nv, positions.dtype
    outcome = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(partial(_outcome, problem), positions))
    no, big = jnp.asarray(False), jnp.asarray(jnp.inf, dtype)
    begin = Search(
        positions=positions,
        outcome=outcome,
        cost=big,
        multipliers=jnp.zeros((n + 1, nv + 2 * problem.m.nu), dtype),
        penalty=jnp.asarray(options.penalty, dtype),
        grad=jnp.zeros((n + 1, 3 * nv), dtype),
        hess=jnp.zeros((n + 1, 3 * nv, 3 * nv), dtype),
        step=jnp.zeros((n, nv), dtype),
        promised=big,
        weight=jnp.asarray(options.damping, dtype),
        fresh=jnp.asarray(True),
        rounds=jnp.asarray(0),
        count=jnp.asarray(-1),
        history=jnp.zeros(options.iterations + 1, dtype),
        converged=no,
        ended=no,
    )
    end = jax.lax.while_loop(lambda s: ~s.ended, partial(_round, problem, options, watched), begin)
    none = jax.tree.map(jnp.zeros_like, end.outcome)._replace(rows=end.outcome.rows)
    clean = _value(problem, none, jnp.zeros_like(end.multipliers), jnp.ones((), dtype))
    violation = end.outcome.violation()
    time = problem.d.time + jnp.arange(n + 1) * problem.m.opt.timestep
    states = {"qpos": end.positions, "qvel": _velocities(problem, end.positions), "time": time}
    return Result(
        jnp.clip(end.outcome.controls[:n], problem.low, problem.high),
        clean,
        jnp.where(jnp.arange(options.iterations + 1) <= end.count, end.history, end.cost),
        end.converged & (violation <= options.violation),
        jnp.maximum(end.count, 0),
        violation,
        None,
        states,
    )


def _round(problem: Problem, options: Inverse, watched: bool, s: Search) -> Search:
    """Line search along the step, then, where it found something, an expansion, and the next step."""
    first = s.count < 0
    lengths = 0.5 ** jnp.arange(STEP_LENGTHS, dtype=s.cost.dtype)
    tried = jax.vmap(lambda a: _moved(problem, s.positions, a * s.step))(lengths)
    outcomes = jax.vmap(partial(_outcome, problem))(tried)
    values = jax.vmap(lambda o: _value(problem, o, s.multipliers, s.penalty))(outcomes)
    best = jnp.argmin(jnp.where(jnp.isfinite(values), values, jnp.inf))
    found = jax.tree.map(lambda x: x[best], (tried, outcomes, values))
    gain = jnp.where(first, jnp.inf, s.cost - found[2])
    better = jnp.isfinite(found[2]) & improves(s, gain, options.tolerance)
    positions, outcome, cost = jax.tree.map(
        lambda a, b: jnp.where(better, a, b), found, (s.positions, s.outcome, s.cost)
    )
    count = s.count + better
    history = jnp.where(jnp.arange(len(s.history)) == count, cost, s.history)
    violation = outcome.violation()
    report(watched, count, cost, violation, positions)

    # the end of a minimisation, with the multipliers as they are
    done, gives_up, stuck = verdict(s, better, gain, cost, options.tolerance)
    inner = done | gives_up
    outer = inner & (violation > options.violation) & (s.penalty < LARGEST_PENALTY) & ~first
    equal, below = jnp.split(s.multipliers, [problem.m.nv], axis=1)
    raised = equal + s.penalty * outcome.missing, jnp.maximum(0, below + s.penalty * outcome.excess)
    multipliers = jnp.where(outer, jnp.concatenate(raised, axis=1), s.multipliers)
    penalty = jnp.where(outer, s.penalty * PENALTY_FACTOR, s.penalty)
    ended = (inner & ~outer) | (first & ~better) | is_over(count, s.rounds, options.iterations)
    again = (better | outer) & ~ended

    def expand(_: None) -> tuple[Array, Array]:
        return _expand(problem, positions, outcome, multipliers, penalty)

    grad, hess = jax.lax.cond(again, expand, lambda _: (s.grad, s.hess), None)
    weight = jnp.where(outer, options.damping, next_weight(s.weight, better, first, LEAST_WEIGHT))
    step, promised = _newton(grad, hess, weight)
    return Search(
        positions=positions,
        outcome=outcome,
        cost=jnp.where(outer, _value(problem, outcome, multipliers, penalty), cost),
        multipliers=multipliers,
        penalty=penalty,
        grad=grad,
        hess=hess,
        step=step,
        promised=jnp.where(again, promised, s.promised),
        weight=weight,
        fresh=again,
        rounds=s.rounds + 1,
        count=count,
        history=history,
        converged=inner & ~stuck,
        ended=ended,
    )


def _moved(problem: Problem, positions: Array, step: Array) -> Array:
    """Positions of which all but the first are displaced by rows of `step` (n, nv)."""
    one = jnp.ones((), step.dtype)
    moved = jax.vmap(lambda q, v: integrate_pos(problem.m, q, v, one))(positions[1:], step)
    return positions.at[1:].set(moved)


def _velocities(problem: Problem, positions: Array) -> Array:
    """Velocities (n + 1, nv) that lead from each position to the next, from the first data's on."""
    moved = jax.vmap(partial(differentiate_pos, problem.m))(positions[:-1], positions[1:])
    return jnp.concatenate([problem.d.qvel[None], moved / problem.m.opt.timestep])


def _triples(positions: Array) -> tuple[Array, Array, Array]:
    """Positions before, at and after each state; at the ends the state's own."""
    before = jnp.concatenate([positions[:1], positions[:-1]])
    return before, positions, jnp.concatenate([positions[1:], positions[-1:]])


def _stage(problem: Problem, n: int, i: Array, *three: Array) -> tuple[terms.Rows, Outcome]:
    """Rows of terms, and values at state `i` of n, from three positions one after the other."""
    m, d = problem.m, problem.d
    h, last = m.opt.timestep, i == n
    before, here, after = three
    velocity = jnp.where(i == 0, d.qvel, differentiate_pos(m, before, here) / h)
    change = differentiate_pos(m, here, after) / h - velocity
    at = d.replace(qpos=here, qvel=velocity, qacc=jnp.where(last, 0, change / h), time=d.time + i * h)
    at = inverse(m, at)

    def given(u: Array) -> Array:
        return fwd_actuation(m, at.replace(ctrl=u)).qfrc_actuator

    middle = jnp.where(jnp.isfinite(problem.high - problem.low), 0.5 * (problem.low + problem.high), 0)
    middle = middle.astype(here.dtype)
    by_controls, from_middle = jax.jacfwd(given)(middle), at.qfrc_inverse - given(middle)
    square = by_controls.T @ by_controls
    square += 1e-10 * (jnp.trace(square) + 1e-30) * jnp.eye(m.nu, dtype=here.dtype)
    u = jnp.where(last, d.ctrl, middle + jnp.linalg.solve(square, by_controls.T @ from_middle))
    missing = jnp.where(last, 0, from_middle - by_controls @ (u - middle))
    beyond = jnp.stack([u - problem.high, problem.low - u])
    excess = jnp.where(jnp.isfinite(beyond) & ~last, beyond, -1) * jnp.linalg.norm(by_controls, axis=0)
    rows = terms.rows_of(problem.costs, at.replace(ctrl=u))
    return rows, Outcome(_flat_rows(rows, here.dtype), missing, excess.ravel(), u)


def _flat_rows(rows: terms.Rows, dtype: Any) -> Array:
    return jnp.concatenate([*jax.tree.leaves(rows), jnp.zeros(0, dtype)])


def _unflatten_rows(rows: terms.Rows) -> Callable[[Array], terms.Rows]:
    leaves, tree = jax.tree.flatten(rows)
    cuts = np.cumsum([len(x) for x in leaves])[:-1] if leaves else []
    return lambda r: jax.tree.unflatten(tree, jnp.split(r, cuts) if leaves else [])


def _outcome(problem: Problem, positions: Array) -> Outcome:
    n = len(positions) - 1
    return jax.vmap(lambda i, *three: _stage(problem, n, i, *three)[1])(jnp.arange(n + 1), *_triples(positions))


def _shape_of_rows(problem: Problem) -> terms.Rows:
    return jax.tree.map(lambda x: jnp.zeros(x.shape), jax.eval_shape(partial(terms.rows_of, problem.costs), problem.d))


def _stage_value(problem: Problem, n: int, i: Array, at: Outcome, multipliers: Array, penalty: Array) -> Array:
    """Cost of a state, with the augmented Lagrangian of its missing forces and of limits of controls."""
    shape = _shape_of_rows(problem)
    none = terms.no_multipliers(shape, 1.0)
    value = terms.value_of(problem.costs, _unflatten_rows(shape)(at.rows), i == n, jnp.asarray(False), none)
    equal, below = jnp.split(multipliers, [problem.m.nv])
    value += terms.augmented("equal", at.missing, equal, penalty)
    return value + terms.augmented("below", at.excess, below, penalty)


def _value(problem: Problem, outcome: Outcome, multipliers: Array, penalty: Array) -> Array:
    n = len(outcome.missing) - 1
    values = jax.vmap(partial(_stage_value, problem, n), (0, 0, 0, None))
    return jnp.sum(values(jnp.arange(n + 1), outcome, multipliers, penalty)).astype(outcome.missing.dtype)


def _expand(
    problem: Problem, positions: Array, outcome: Outcome, multipliers: Array, penalty: Array
) -> tuple[Array, Array]:
    """Gradient (n + 1, 3 nv) and Gauss-Newton matrix of the cost of every state by its three positions."""
    m, n, nv = problem.m, len(positions) - 1, problem.m.nv
    one = jnp.ones((), positions.dtype)

    def by_positions(i: Array, *three: Array) -> Array:
        def at(*steps: Array) -> tuple[tuple[Array], None]:
            moved = (integrate_pos(m, q, v, one) for q, v in zip(three, steps, strict=True))
            return (_joined(_stage(problem, n, i, *moved)[1]),), None

        columns = jnp.concatenate(by_columns(at)(*(jnp.zeros(nv, positions.dtype),) * 3)[1][0], axis=1)
        moves = jnp.repeat(jnp.stack([i > 1, i > 0, i < n]), nv)  # what stands still: the first position, and the ends
        return jnp.where(moves, columns, 0)

    def stage(i: Array, at: Outcome, multiplier: Array, slope: Array) -> tuple[Array, Array]:
        cuts = [at.rows.size, at.rows.size + nv]

        def value(x: Array) -> Array:
            rows, missing, excess = jnp.split(x, cuts)
            new = at._replace(rows=rows, missing=missing, excess=excess)
            return _stage_value(problem, n, i, new, multiplier, penalty).astype(positions.dtype)

        x = _joined(at)
        return slope.T @ jax.grad(value)(x), slope.T @ jax.hessian(value)(x) @ slope

    steps = jnp.arange(n + 1)
    slopes = jax.vmap(by_positions)(steps, *_triples(positions))
    return jax.vmap(stage)(steps, outcome, multipliers, slopes)


def _joined(at: Outcome) -> Array:
    return jnp.concatenate([at.rows, at.missing, at.excess])


def _newton(grad: Array, hess: Array, weight: Array) -> tuple[Array, Array]:
    """The regularised Gauss-Newton step (n, nv) and the decrease that it promises."""
    n, nv = len(grad) - 1, grad.shape[1] // 3
    g = grad.reshape(n + 1, 3, nv)
    h = hess.reshape(n + 1, 3, nv, 3, nv)
    none = jnp.zeros((1, nv, nv), grad.dtype)
    later = lambda x: jnp.concatenate([x[2:], jnp.zeros_like(x[:1])])  # noqa: E731
    right = -(g[:-1, 2] + g[1:, 1] + later(g[:, 0]))
    diagonal = h[:-1, 2, :, 2] + h[1:, 1, :, 1] + later(h[:, 0, :, 0])
    one_below = jnp.concatenate([none, (h[:-1, 2, :, 1] + h[1:, 1, :, 0])[1:]])
    two_below = jnp.concatenate([none, none, h[2:-1, 2, :, 0]])[:n]
    scale = jnp.maximum(jnp.mean(jnp.trace(diagonal, axis1=1, axis2=2)) / max(nv, 1), 1e-12)
    step = solve_pentadiagonal(diagonal + weight * scale * jnp.eye(nv, dtype=grad.dtype), one_below, two_below, right)
    step = jnp.where(jnp.isfinite(step), step, 0)
    return step, 0.5 * jnp.sum(right * step)


def solve_pentadiagonal(diagonal: Array, one_below: Array, two_below: Array, right: Array) -> Array:
    """Solve a symmetric positive definite system of five diagonals of blocks, each (n, k, k), for x (n, k).

    Row i of `one_below` and `two_below` is the block of row i and column i - 1, or i - 2.
    """
    n, k = right.shape
    odd = n % 2
    pad = lambda x: jnp.concatenate([x, jnp.zeros_like(x[:odd])])  # noqa: E731
    a, b, c, r = (pad(x) for x in (diagonal, one_below, two_below, right))
    if odd:
        a = a.at[-1].set(jnp.eye(k, dtype=a.dtype))
    even, uneven = slice(0, None, 2), slice(1, None, 2)
    join = lambda p, q, s, t: jnp.block([[p, q], [s, t]])  # noqa: E731
    main = jax.vmap(join)(a[even], jnp.swapaxes(b[uneven], 1, 2), b[uneven], a[uneven])
    below = jax.vmap(join)(c[even], b[even], jnp.zeros_like(c[even]), c[uneven])
    # the block of row 2 j and column 2 j - 1 is one below; of row 2 j + 1 and column 2 j - 2 there is none
    rights = r.reshape(-1, 2 * k)

    def down(carry: tuple, row: tuple) -> tuple[tuple, tuple]:
        factor, before = carry
        block, under, rhs = row
        solved = jax.scipy.linalg.cho_solve((factor, True), jnp.concatenate([under.T, before[:, None]], axis=1))
        factor = jnp.linalg.cholesky(block - under @ solved[:, :-1])
        rhs = rhs - under @ solved[:, -1]
        return (factor, rhs), (factor, rhs)

    eye = jnp.eye(2 * k, dtype=a.dtype)
    _, (factors, reduced) = jax.lax.scan(down, (eye, jnp.zeros(2 * k, r.dtype)), (main, below, rights))

    def up(above: Array, row: tuple) -> tuple[Array, Array]:
        factor, rhs, under = row
        x = jax.scipy.linalg.cho_solve((factor, True), rhs - under.T @ above)
        return x, x

    after = jnp.concatenate([below[1:], jnp.zeros_like(below[:1])])
    x = jax.lax.scan(up, jnp.zeros(2 * k, r.dtype), (factors, reduced, after), reverse=True)[1]
    return x.reshape(-1, k)[:n]
