"""DDP and iterative LQR with limits of controls and constraints: one search, with and without second derivatives.

Tassa, Mansard and Todorov, "Control-Limited Differential Dynamic Programming", ICRA 2014; constraints as in Howell,
Jackson and Manchester, "ALTRO", IROS 2019. States are (qpos, qvel, act); their differences are in the tangent space
(2 nv + na), also for free and ball joints. Multiple shooting: gaps between given states are closed by the line search,
as in Mastalli et al., "Crocoddyl", ICRA 2020 (FDDP), judged by the cost plus a weight times the gaps.

The whole search is one loop of one program: each round rolls out a line search, expands the dynamics about the best
path, and recurses backwards. `jax.vmap` can batch it over any argument.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import IntegratorType
from jaxsim.engine.kinematics.positions import differentiate_pos, integrate_pos
from jaxsim.engine.step.derived import CARRIED, carried, carried_names, from_carried, moved_names, with_fields
from jaxsim.engine.step.forward import by_backend
from jaxsim.engine.step.rollout import select
from jaxsim.engine.step.transition import columns_of
from jaxsim.engine.structure.checks import STATE
from jaxsim.math.arrays import matmul
from jaxsim.math.safe import Array
from jaxsim.native.compiler import PRODUCTS
from jaxsim.native.linalg import cholesky, eigh
from jaxsim.native.row_copies import row_copies
from jaxsim.native.stage import stage, tracing_once
from jaxsim.optim import costs as terms
from jaxsim.optim.arguments import control_limits, floats
from jaxsim.optim.box import NATIVE_CONTROLS, control_law
from jaxsim.optim.costs import Costs, Multipliers, Rows
from jaxsim.optim.options import Ddp, Ilqr, Iteration, Result, takes_options
from jaxsim.optim.progress import is_traced, listen, negligible, report, warn, warn_of_zero_gradient
from jaxsim.optim.rounds import (
    LARGEST_PENALTY,
    PENALTY_FACTOR,
    STEP_LENGTHS,
    SUFFICIENT,
    improves,
    is_over,
    next_weight,
    verdict,
)
from jaxsim.xla.loops import where_needed, while_each, without_unused

LEAST_WEIGHT = 1e-9  # of the regularisation
LEAST_SHARE = 0.1  # of second derivatives that DDP tries to add, before it leaves them out
GROUP = 256  # problems of a batch in a round; within it those that need another rollout or expansion are gathered
# States and controls up to which the backward pass is a native program. With 36 and 12 that of iLQR takes 0.4 of XLA's
# time, with 54 and 21 0.8; that of DDP takes longer than by XLA with 36 and 12.
NATIVE_SIZE, NATIVE_SIZE_OF_DDP = (40, NATIVE_CONTROLS), (16, 8)
VECTORS = 32  # problems of a batch in a rollout: full vectors of both precisions, for two cores
SUMMED = 16  # rows and columns of matrices whose products XLA computes as sums
HINT = " Where a contact begins it is not: soften=(lambda m: smooth_impedance(m, 0.01),) searches around such places"

Step = Callable[[Model, Data], Data]
Soften = Callable[[Model], Model]
Limits = tuple[Array, Array]


class Problem(NamedTuple):
    """Arguments of a search: model, first data, costs, limits of controls (nu,), the number of active steps, and
    fields of the states (n + 1, ...) of a start with gaps, or no fields."""

    m: Model
    d: Data
    costs: Costs
    low: Array
    high: Array
    length: Array
    nodes: dict[str, Array] | None = None


class Program(NamedTuple):
    """Static data of a search: the step, the fields that costs read, and those that differ from state to state."""

    step: Step
    substeps: int
    reads: frozenset[str]
    moving: tuple[str, ...]
    watched: bool


class Expansion(NamedTuple):
    """Derivatives at every state, by state and control: of the cost (nx + nu,), of the next state (nx, nx + nu).

    Second derivatives of costs `hess` (nx + nu, nx + nu) are those of Gauss-Newton; `curve` is what DDP adds to them.
    `finite` says whether all derivatives but those are.
    """

    grad: Array
    hess: Array
    dynamics: Array
    finite: Array
    curve: Array


class Laws(NamedTuple):
    """Control laws: changes of the controls (laws, n, nu), gains (laws, n, nu, nx), and expected improvements (laws,).

    One of Gauss-Newton; with second derivatives those of `_newton`. The last is not tried where minus infinity is
    expected of it.
    """

    feed: Array
    gains: Array
    promised: Array


class Search(NamedTuple):
    """State of the loop: the best path, its expansion, and the control laws that are tried next."""

    controls: Array
    states: dict[str, Any]
    rows: Rows
    gaps: Array  # (n, nx), of every state but the first to the end of the step before it; (n, 0) without given states
    cost: Array
    closing: Array  # weight of the gaps in the merit of a path
    multipliers: Multipliers
    violation: Array
    expansion: Expansion
    laws: Laws
    promised: Array  # improvement, that of the most hopeful law
    weight: Array
    fresh: Array  # whether these are the first laws after an expansion
    rounds: Array
    count: Array
    history: Array
    flat: Array
    finite: Array
    stuck: Array
    converged: Array
    ended: Array


@takes_options
def ilqr(
    m: Model,
    d: Data,
    costs: Costs,
    controls: Array,
    options: Ilqr | None = None,
    *,
    low: Any = None,
    high: Any = None,
    step: Step = jaxsim.step,
    substeps: int = 1,
    length: Any = None,
    states: dict[str, Array] | None = None,
    soften: Sequence[Soften] = (),
    callback: Callable[[Iteration], None] | None = None,
    progress: bool = False,
) -> Result:
    """Minimise costs over controls from the start `controls` (n, nu), by Gauss-Newton: iterative LQR.

    Args:
        costs: terms and constraints of every step and of the last state. Constraints are met by an augmented
            Lagrangian.
        low: lower limits of controls, held exactly by a box-constrained Newton step at every time; by default those of
            the model's actuators.
        high: upper limits of controls, likewise.
        step: the step function, e.g. with smoothed contacts. Its derivatives must be those of its values: one of
            `straight_through` is refused.
        substeps: steps for each row of controls.
        length: number of rows of `controls` that are used, n by default. It is a traced number: plans of several
            lengths share one program if their controls are padded.
        states: guess of fields of the data at all n + 1 states, e.g. {"qpos": ..., "qvel": ...}: multiple shooting.
            The guess need not obey the dynamics. Its first state is replaced by that of `d`. The line search closes the
            gaps; the largest gap that is left is part of `violation`.
        soften: functions m -> m, e.g. `smooth_impedance`. A search often ends where a contact begins or ends, though
            derivatives promise more. From there each of these models is searched, then `m` again; at last `m` from the
            best of its plans. Searches before the last have the tolerance `rough`. `iterations` counts those of all,
            `history` is that of the last.
        callback: called with an `Iteration` after each.
        progress: show a bar.

    A pure function: `jax.vmap` batches it over starts, controls, models and weights of costs, and it can be part of a
    jitted program; there it neither raises nor warns. An eager call raises FloatingPointError if the cost or a
    derivative is not finite at the start. It warns if controls have no effect on the cost, or if derivatives predict a
    decrease that no step length gives. Functions of the costs are traced once, as by `jax.jit`: values that they close
    over are constants. Calls with the same functions, shapes and options share one compiled program; weights and
    tolerances may differ.
    """
    options = Ilqr() if options is None else options
    name = "DDP" if options.second_order else "iLQR"
    if getattr(step, "straight_through", False):
        raise ValueError(
            f"{name}: a straight_through step has derivatives of another step, and no step length of the line search "
            "gives what they promise. Optimise the softened one, step=lambda m, d: jaxsim.step(soften(m), d), and go "
            "on from its controls with the plain step; or use shoot"
        )
    terms.check_costs(costs, name)
    controls = floats(jnp.asarray(controls))
    if controls.ndim != 2 or controls.shape[1] != m.nu or not len(controls):
        raise ValueError(f"{name}: controls have shape {controls.shape}, wanted (steps, {m.nu})")
    low, high = control_limits(m, low, high, controls[0], name)
    length = jnp.asarray(len(controls) if length is None else length)
    problem = Problem(m, d, costs, low, high, length, _nodes(d, states, len(controls), name))
    traced = is_traced(problem, controls, options)

    def run(problem: Problem, controls: Array, options: Ilqr) -> tuple[Result, Search]:
        program = program_of(problem, step, substeps)
        if traced:
            return minimise(problem, controls, options, program)
        with listen(options.iterations, name, progress, callback) as watched:
            return _compiled()(problem, controls, options, program._replace(watched=watched))

    count = 0
    if soften:
        problem, controls, count = _through_softened(problem, controls, soften, options, run)
    result, end = run(problem, controls, options)
    if not traced:
        _judge(name, problem, program_of(problem, step, substeps), result, end, "" if soften else HINT)
    return result._replace(iterations=result.iterations + count)


@takes_options
def ddp(
    m: Model,
    d: Data,
    costs: Costs,
    controls: Array,
    options: Ddp | None = None,
    *,
    low: Any = None,
    high: Any = None,
    step: Step = jaxsim.step,
    substeps: int = 1,
    length: Any = None,
    states: dict[str, Array] | None = None,
    soften: Sequence[Soften] = (),
    callback: Callable[[Iteration], None] | None = None,
    progress: bool = False,
) -> Result:
    """Minimise as `ilqr` does, with second derivatives of the dynamics: differential dynamic programming.

    They are contracted with the costate, so that a step costs one derivative of a gradient for each direction. Second
    derivatives of residuals are added. An iteration takes the best of three rollouts. The first is a step of Newton's
    method if all Hessians by the controls are positive; else second derivatives are halved until they are. The second
    takes of second derivatives what is convex at each step, the third none, as in `ilqr`.
    """
    options = Ddp() if options is None else options
    rest = {"low": low, "high": high, "step": step, "substeps": substeps, "length": length, "states": states}
    return ilqr(m, d, costs, controls, options, **rest, soften=soften, callback=callback, progress=progress)


def _through_softened(
    problem: Problem,
    controls: Array,
    soften: Sequence[Soften],
    options: Ilqr,
    run: Callable[[Problem, Array, Ilqr], tuple[Result, Search]],
) -> tuple[Problem, Array, Array]:
    """Return the problem and the controls of the best plan among that from `controls` and those from the plans of
    softened models, one after the other, and the number of iterations of all."""
    rough = replace(options, tolerance=options.rough)

    def resumed(result: Result) -> Problem:
        return problem._replace(nodes={k: result.states[k] for k in problem.nodes or {}})

    def is_better(new: Result, old: Result) -> Array:
        a, b = (jnp.maximum(jnp.asarray(x.violation), options.violation) for x in (new, old))
        return (a < b) | ((a == b) & (new.cost < old.cost))

    last = best = run(problem, controls, rough)[0]
    count = jnp.asarray(last.iterations)
    for softened in soften:
        for m in (softened(problem.m), problem.m):
            last = run(resumed(last)._replace(m=m), last.x, rough)[0]
            count += last.iterations
        best = jax.tree.map(partial(jnp.where, is_better(last, best)), last, best)
    return resumed(best), best.x, count


def program_of(problem: Problem, step: Step, substeps: int) -> Program:
    """Return the static data of a search without a callback. A step function of the user may change any field."""
    moving = moved_names(problem.m) if step is jaxsim.step else carried_names(problem.m)
    given = (k for k in problem.nodes or {} if k not in moving)
    return Program(step, substeps, terms.reads_of(problem.costs, problem.d), (*moving, *given), False)


def _nodes(d: Data, states: dict[str, Array] | None, n: int, name: str) -> dict[str, Array]:
    """The fields of a guess of all states, checked."""
    nodes = {}
    for field, rows in (states or {}).items():
        if field not in CARRIED:
            raise ValueError(
                f"{name}: states has '{field}', which is no field of the state; expected some of {CARRIED}"
            )
        own = jnp.asarray(getattr(d, field))
        rows = jnp.asarray(rows, own.dtype)
        if rows.shape != (n + 1, *own.shape):
            raise ValueError(f"{name}: states['{field}'] has shape {rows.shape}, wanted {(n + 1, *own.shape)}")
        nodes[field] = rows.at[0].set(own)
    return nodes


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., tuple[Result, Search]]:
    return jaxsim.jit(minimise, static_argnums=3)  # asks which options XLA knows: not on import


def _judge(name: str, problem: Problem, program: Program, result: Result, end: Search, hint: str) -> None:
    """Raise and warn where a search found that something is wrong; `hint` is for a search that is stuck."""
    if not bool(end.finite):
        what = _what_is_not_finite(problem, program, end)
        if int(end.count) < 1:
            raise FloatingPointError(f"{name}: {what}")
        warn(f"{name} ends after iteration {int(result.iterations)}: {what}")
    if bool(end.stuck):
        warn(
            f"{name}: derivatives promise a cost lower by {float(end.promised):.3g} of {float(end.cost):.3g}, and no "
            f"step length lowers it: are they those of the step, and is the cost smooth here?{hint}",
        )
    if bool(end.flat):
        warn_of_zero_gradient(name)


def minimise(problem: Problem, controls: Array, options: Ilqr, program: Program) -> tuple[Result, Search]:
    """Return the result of a search, and the last state of the loop."""
    begin = _begin(problem, controls, options, program)
    with tracing_once():
        end = while_each(lambda s: ~s.ended, partial(_round, problem, options, program), begin, GROUP, row_copies())
    violation = jnp.maximum(end.violation, _widest(end.gaps))
    violated = violation > options.violation
    result = Result(
        end.controls,
        end.cost,
        jnp.where(jnp.arange(options.iterations + 1) <= end.count, end.history, end.cost),
        end.converged & ~end.flat & ~violated,
        jnp.maximum(end.count, 0),
        violation,
        end.laws.gains[0],
        _fields_of_state(problem.d, end),
    )
    return result, end


def _fields_of_state(d: Data, s: Search) -> dict[str, Array]:
    """Return the fields of the state at all steps, also those that no step changes."""
    spread = {k: jnp.broadcast_to(getattr(d, k), (len(s.controls) + 1, *getattr(d, k).shape)) for k in STATE}
    spread["ctrl"] = jnp.concatenate([d.ctrl[None].astype(s.controls.dtype), s.controls])
    return {k: s.states.get(k, x) for k, x in spread.items()}


def _begin(problem: Problem, controls: Array, options: Ilqr, program: Program) -> Search:
    """State of the loop before anything was rolled out: a control law that is the given controls."""
    m, d = problem.m, problem.d
    n, dtype = len(controls), controls.dtype
    nx = 2 * m.nv + m.na
    zeros = lambda *shape: jnp.zeros(shape, dtype)  # noqa: E731
    controls = jnp.clip(controls, problem.low, problem.high)
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (n + 1, *jnp.shape(x))), select(d, program.moving))
    if problem.nodes:
        seconds = jnp.arange(n + 1) * program.substeps * m.opt.timestep
        states |= {"time": (d.time + seconds).astype(states["time"].dtype), **problem.nodes}
    rows = jax.eval_shape(partial(terms.rows_of, problem.costs), d)
    rows = jax.tree.map(lambda x: zeros(n + 1, *x.shape), rows)
    big = jnp.asarray(jnp.inf, dtype)
    no, yes = jnp.asarray(False), jnp.asarray(True)
    laws = 3 if options.second_order else 1
    nz = nx + m.nu
    curve = zeros(n + 1, *((nz, nz) if options.second_order else (0, 0)))
    expansion = Expansion(zeros(n + 1, nz), zeros(n + 1, nz, nz), zeros(n + 1, nx, nz), jnp.ones(n + 1, bool), curve)
    return Search(
        controls=controls,
        states=states,
        rows=rows,
        gaps=zeros(n, nx if problem.nodes else 0),
        cost=big,
        closing=jnp.asarray(0, dtype),
        multipliers=terms.no_multipliers(rows, jnp.asarray(options.penalty, dtype)),
        violation=jnp.asarray(0, dtype),
        expansion=expansion,
        laws=Laws(zeros(laws, n, m.nu), zeros(laws, n, m.nu, nx), jnp.where(jnp.arange(laws) == 0, big, -big)),
        promised=big,
        weight=jnp.asarray(options.damping, dtype),
        fresh=yes,
        rounds=jnp.asarray(0),
        count=jnp.asarray(-1),
        history=zeros(options.iterations + 1),
        flat=no,
        finite=yes,
        stuck=no,
        converged=no,
        ended=no,
    )


def _round(problem: Problem, options: Ilqr, program: Program, s: Search) -> Search:
    """Line search along the control laws, then, where it found something, an expansion, and the next laws."""
    first = s.count < 0
    found = line_search(problem, program, s)
    old = Path(s.states, s.controls, s.rows, s.gaps, s.cost)
    gain = jnp.where(first, jnp.inf, _merit(old, s.closing) - _merit(found, s.closing))
    better = jnp.isfinite(found.cost) & improves(s, gain, options.tolerance)
    new = jax.tree.map(lambda a, b: jnp.where(better, a, b), found, old)
    count = s.count + better
    history = jnp.where(jnp.arange(len(s.history)) == count, new.cost, s.history)
    report_now = partial(report, program.watched)

    # the end of a minimisation, with the multipliers as they are
    done, gives_up, stuck = verdict(s, better, gain, new.cost, options.tolerance)
    violation = terms.violation_of(problem.costs, _counted(problem, new.rows)).astype(s.violation.dtype)
    inner = done & (_widest(new.gaps) <= options.violation) | gives_up
    penalty = s.multipliers.penalty
    wrong = (violation > options.violation) & (penalty < LARGEST_PENALTY)
    outer = inner & wrong & ~first
    raised = terms.updated(problem.costs, _counted(problem, new.rows), s.multipliers, penalty * PENALTY_FACTOR)
    multipliers = jax.tree.map(lambda a, b: jnp.where(outer, a, b), raised, s.multipliers)
    ended = (inner & ~outer) | (first & ~better) | is_over(count, s.rounds, options.iterations)

    report_now(count, new.cost, violation, new.controls)
    again = (better | outer) & ~ended & ~s.ended

    def expand() -> tuple[Expansion, Array]:
        return expansion_of(problem, options, program, new, multipliers)

    expansion, cost = where_needed(again, expand, (s.expansion, new.cost), copies=row_copies())
    finite = s.finite & jnp.isfinite(new.cost) & _is_finite(expansion)
    ended |= ~finite
    weight = jnp.where(outer, options.damping, next_weight(s.weight, better, first, LEAST_WEIGHT))

    def backward(_: None) -> Laws:
        return backward_pass(problem, options, expansion, new.controls, new.gaps, weight)

    laws = jax.lax.cond(ended, lambda _: s.laws, backward, None)  # gains belong to the path where the search has ended
    promised, closing = jnp.max(laws.promised), s.closing
    if problem.nodes:  # the least weight by which the whole step is a descent: half the gaps pay for the cost
        total = jnp.sum(jnp.abs(new.gaps))
        closing = jnp.maximum(closing, jnp.where(total > 0, -2 * promised / jnp.where(total > 0, total, 1), 0))
        promised = promised + closing * total
        laws = laws._replace(promised=laws.promised + closing * total)
    keep = ~again & (laws.promised > -jnp.inf) & (s.laws.promised > -jnp.inf)
    still = s.flat & ~(better & (gain > negligible(cost.dtype) * jnp.abs(cost)))
    flat = jax.lax.cond(first, lambda _: _is_flat(expansion), lambda _: still, None)
    return Search(
        controls=new.controls,
        states=new.states,
        rows=new.rows,
        gaps=new.gaps,
        cost=cost,
        closing=closing,
        multipliers=multipliers,
        violation=violation,
        expansion=expansion,
        laws=laws._replace(promised=jnp.where(keep, s.laws.promised, laws.promised)),
        promised=jnp.where(again, promised, s.promised),
        weight=weight,
        fresh=again,
        rounds=s.rounds + 1,
        count=count,
        history=history,
        flat=flat,
        finite=finite,
        stuck=stuck & ~outer,
        converged=inner & ~stuck & finite,
        ended=ended,
    )


def _counted(problem: Problem, rows: Rows) -> Rows:
    """Rows of all states with zeros for those that do not count."""
    i = jnp.arange(jax.tree.leaves(rows)[0].shape[0])
    return jax.vmap(terms.active)(rows, i == problem.length, i > problem.length)


class Path(NamedTuple):
    """A rollout: moving fields at steps 0 to n, controls, rows at every state, gaps between steps, and the cost."""

    states: dict[str, Any]
    controls: Array
    rows: Rows
    gaps: Array
    cost: Array


def _merit(path: Path, closing: Array) -> Array:
    """Cost of a path, and of its gaps."""
    return path.cost + closing * jnp.sum(jnp.abs(path.gaps))


def _widest(gaps: Array) -> Array:
    return jnp.max(jnp.abs(gaps), initial=0)


def at_state(m: Model, d: Data, state: dict[str, Any]) -> Data:
    """Return data with the moving fields `state`, other fields of a state as in `d`, and derived fields of zero."""
    return from_carried(d, carried(m, d) | state)


def advance(problem: Problem, program: Program, d: Data) -> tuple[Data, Data]:
    """Simulate the steps of one row of controls; return the data, and `d` with the fields that costs read."""
    m = problem.m
    derived = program.step is jaxsim.step and m.opt.integrator != IntegratorType.RK4  # by the step, at the state before
    names = [n for n in program.reads if n not in CARRIED] if derived else []

    def body(state: dict, _: None) -> tuple[dict, dict]:
        new = program.step(m, at_state(m, d, state))
        return select(new, program.moving), select(new, names)

    if program.substeps == 1:
        new = program.step(m, d)
        found = select(new, names)
    else:
        state, all_found = jax.lax.scan(body, select(d, program.moving), None, length=program.substeps)
        new, found = at_state(m, d, state), jax.tree.map(lambda x: x[0], all_found)
    return new, d.replace(**found) if derived else with_fields(m, d, program.reads)


def _value(problem: Problem, rows: Rows, i: Array, multipliers: Multipliers) -> Array:
    return terms.value_of(problem.costs, rows, i == problem.length, i > problem.length, multipliers)


def _with_last(problem: Problem, controls: Array) -> Array:
    """Controls with the row that final terms see."""
    return jnp.concatenate([controls, problem.d.ctrl[None].astype(controls.dtype)])


def line_search(problem: Problem, program: Program, s: Search) -> Path:
    """Return the best rollout along the control laws.

    The step length of each is halved until the cost falls enough, or rises again.
    """
    m, d = problem.m, problem.d
    n, steps = len(s.controls), jnp.arange(len(s.controls) + 1)
    pad = lambda x: jnp.concatenate([x, jnp.zeros_like(x[:1])])  # noqa: E731
    limits = [jnp.broadcast_to(b, s.controls.shape) for b in (problem.low, problem.high)]
    xs = (
        steps,
        s.states,
        _with_last(problem, s.controls),
        s.multipliers._replace(penalty=None),
    )
    low, high = (jnp.concatenate([b, problem.d.ctrl[None].astype(b.dtype)]) for b in limits)
    nodes = jax.tree.map(lambda x: jnp.concatenate([x[1:], x[-1:]]), s.states) if problem.nodes else None
    control, cost = by_backend(m, _control, "core", "the feedback"), by_backend(m, _cost, "core", "the cost")

    def across(alpha: Array, i: Array, new: Data, gap: Array, node: dict) -> tuple[dict, Array]:
        """Move the next state to the other side of what is left of a gap: at first the whole of it."""
        shorter = (1 - alpha) * gap
        dq, dv, da = jnp.split(shorter, (m.nv, 2 * m.nv))
        qpos = integrate_pos(m, new.qpos, dq, jnp.ones((), dq.dtype)) if m.nv else new.qpos
        moved = select(new.replace(qpos=qpos, qvel=new.qvel + dv, act=new.act + da), program.moving)
        first = (s.count < 0) & (i < problem.length)
        gap = jnp.where(first, _difference(m, select(new, program.moving), node), shorter)
        return jax.tree.map(lambda a, b: jnp.where(first, a, b), node, moved), gap

    def trial(alpha: Array, feeds: Array, gains: Array) -> Path:
        def body(state: dict, row: tuple) -> tuple[dict, tuple]:
            (i, old, u, mu), feed, gain, low, high, gap, node = row
            u = control(m, old, state, u, alpha * feed, gain, low, high)
            new, seen = advance(problem, program, at_state(m, d, state).replace(ctrl=u))
            rows, value = cost((problem.costs, problem.length), seen, i, mu._replace(penalty=s.multipliers.penalty))
            after, gap = across(alpha, i, new, gap, node) if problem.nodes else (select(new, program.moving), gap)
            return after, (state, u, rows, gap, value.astype(u.dtype))

        along = xs, pad(feeds), pad(gains), low, high, pad(s.gaps), nodes
        _, (path, controls, rows, gaps, values) = jax.lax.scan(body, select(d, program.moving), along)
        return Path(path, controls[:n], rows, gaps[:n], jnp.sum(values))

    run = by_backend(m, trial, "loops", "a rollout")
    before = Path(s.states, s.controls, s.rows, s.gaps, s.cost)
    old = _merit(before, s.closing)

    def tries(found: Trials) -> Trials:
        k, which = found.halvings, found.law
        alpha = jnp.asarray(0.5, old.dtype) ** k
        path = run(alpha, s.laws.feed[which], s.laws.gains[which])
        merit = _merit(path, s.closing)
        merit = jnp.where(jnp.isfinite(merit), merit, jnp.inf)
        better = merit < found.of_law
        enough = old - merit >= SUFFICIENT * alpha * s.laws.promised[which]
        enough |= (s.count < 0) | (~better & (found.of_law < old)) | (k + 1 == STEP_LENGTHS)
        taken = (merit < found.least) | ((k == 0) & (which == 0))  # also one that is not finite, to say where
        best = jax.tree.map(lambda a, b: jnp.where(taken, a, b), path, found.best)
        lowest = jnp.where(enough, jnp.inf, jnp.minimum(merit, found.of_law))
        return Trials(which + enough, jnp.where(enough, 0, k + 1), best, jnp.minimum(merit, found.least), lowest)

    def is_open(found: Trials) -> Array:
        return (found.law < jnp.sum(s.laws.promised > -jnp.inf)) & ~s.ended

    zero, none = jnp.asarray(0), jnp.full_like(old, jnp.inf)
    # a batch goes on with problems that have ended: these try nothing
    return while_each(is_open, tries, Trials(zero, zero, before, none, none), VECTORS, row_copies()).best


class Trials(NamedTuple):
    """A line search: the law and how often its step length was halved, the best path, least merit, and that of the
    law."""

    law: Array
    halvings: Array
    best: Path
    least: Array
    of_law: Array


def _difference(m: Model, a: dict, b: dict) -> Array:
    """Tangent vector (2 nv + na,) from the state `a` to `b`."""
    return jnp.concatenate([differentiate_pos(m, a["qpos"], b["qpos"]), b["qvel"] - a["qvel"], b["act"] - a["act"]])


def _control(m: Model, old: dict, state: dict, u: Array, feed: Array, gain: Array, low: Array, high: Array) -> Array:
    """The control of a state near `old`, where it is `u` plus `feed`."""
    return jnp.clip(u + feed + gain @ _difference(m, old, state), low, high)


def _cost(given: tuple[Costs, Array], d: Data, i: Array, multipliers: Multipliers) -> tuple[Rows, Array]:
    """Rows and cost at step i, given costs and the number of steps."""
    costs, length = given
    rows = terms.rows_of(costs, d)
    return rows, terms.value_of(costs, rows, i == length, i > length, multipliers)


def expansion_of(
    problem: Problem, options: Ilqr, program: Program, path: Path, multipliers: Multipliers
) -> tuple[Expansion, Array]:
    """Return expansions at all states, of which the last has no dynamics, and the cost with these multipliers."""
    m = problem.m
    n, nx, nu = len(path.controls), 2 * m.nv + m.na, m.nu
    steps = jnp.arange(n + 1)
    dtype = path.controls.dtype
    of = path.states, _with_last(problem, path.controls)

    def of_state(problem: Problem, state: dict, u: Array, i: Array, rows: Rows, mu: Multipliers) -> tuple:
        dynamics, slopes = _linearized(problem, program, state, u)
        mu = mu._replace(penalty=multipliers.penalty)
        value, grad, hess, by_rows = _expanded(problem, i, rows, slopes, mu)
        alive, is_control = i < problem.length, np.arange(nx + nu) >= nx
        dynamics = jnp.where(alive, dynamics, 0)
        regular = jnp.where(is_control[:, None] | is_control, jnp.eye(nx + nu, dtype=dtype), hess)
        hess = jnp.where(alive, hess, regular)  # no singular system
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in (grad, hess, dynamics)]))
        return dynamics, value, grad, hess, finite, by_rows if options.second_order else []

    mus = multipliers._replace(penalty=None)
    of_states = jax.vmap(stage(of_state, "columns", "derivatives of a path"), (None, 0, 0, 0, 0, 0))
    dynamics, values, grad, hess, finite, by_rows = of_states(problem, *of, steps, path.rows, mus)
    curve = jnp.zeros((n + 1, 0, 0), dtype)
    if options.second_order:
        costates = _costates(grad[:, :nx], dynamics[..., :nx])

        def curved(state: dict, u: Array, costate: Array, by_rows: list[Array]) -> Array:
            outcome = _outcome(problem, program, state, u)

            def total(z: Array) -> Array:
                (new, *rows), _ = outcome(*jnp.split(z, np.cumsum([m.nv, m.nv, m.na])))
                return costate @ new + sum((a @ b for a, b in zip(by_rows, rows, strict=True)), jnp.zeros((), dtype))

            def column(direction: Array) -> Array:  # reverse over forward: rules of the solver hold in that order
                return jax.grad(lambda z: jax.jvp(total, (z,), (direction,))[1])(jnp.zeros(nx + nu, dtype))

            return jax.vmap(column)(jnp.eye(nx + nu, dtype=dtype))

        second = jax.vmap(curved)(*of, costates, by_rows)
        counts = (steps < problem.length)[:, None] | ((steps == problem.length)[:, None] & (jnp.arange(nx + nu) < nx))
        curve = jnp.where(counts[:, :, None] & counts[:, None], 0.5 * (second + second.mT), 0)
    return Expansion(grad, hess, dynamics, finite, curve), jnp.sum(values)


def _outcome(problem: Problem, program: Program, state: dict, u: Array) -> Callable[..., tuple[tuple, dict]]:
    """The next state and the rows, as a function of displacements of the state and the control; and the next data."""
    m = problem.m
    here = at_state(m, problem.d, state).replace(ctrl=u)

    def outcome(dq: Array, dv: Array, da: Array, du: Array) -> tuple[tuple, dict]:
        qpos = integrate_pos(m, here.qpos, dq, jnp.ones((), dq.dtype)) if m.nv else here.qpos
        displaced = here.replace(qpos=qpos, qvel=here.qvel + dv, act=here.act + da, ctrl=u + du)
        new, seen = advance(problem, program, displaced)
        rows = jax.tree.leaves(terms.rows_of(problem.costs, seen))
        change = differentiate_pos(m, jax.lax.stop_gradient(new.qpos), new.qpos)
        state = select(new, program.moving)
        return (jnp.concatenate([change, new.qvel, new.act]), *(r.astype(u.dtype) for r in rows)), state

    return outcome


Slopes = list[tuple[Array | None, ...]]  # of each vector of rows by positions, velocities, activations and controls


def _linearized(problem: Problem, program: Program, state: dict, u: Array) -> tuple[Array, Slopes]:
    """Derivatives of the state after all sub-steps (nx, nx + nu), and of the rows, at a state."""
    m, dtype = problem.m, u.dtype
    sizes, nx = (m.nv, m.nv, m.na, m.nu), 2 * m.nv + m.na
    at = tuple(jnp.zeros(k, dtype) for k in sizes)

    def substep(at_begin: tuple[dict, Array | None], _: None) -> tuple[tuple[dict, Array], Slopes]:
        state, before = at_begin  # and its derivative by the first state and the control
        derivatives = columns_of(_outcome(problem, program._replace(substeps=1), state, u))
        after, (first, *slopes) = derivatives(*at)[1:]
        own = jnp.concatenate(
            [jnp.zeros((nx, k), dtype) if x is None else x for k, x in zip(sizes, first, strict=True)], axis=1
        )
        if before is None:
            return (after, own), slopes
        total = _product(own[:, :nx], before)
        return (after, total.at[:, nx:].add(own[:, nx:])), slopes

    if program.substeps == 1:
        (_, total), slopes = substep((state, None), None)
        return total, slopes
    begin = state, jnp.eye(nx, nx + m.nu, dtype=dtype)
    (_, total), slopes = jax.lax.scan(substep, begin, None, length=program.substeps)
    return total, jax.tree.map(lambda x: x[0], slopes)


def _expanded(
    problem: Problem, i: Array, rows: Rows, slopes: Slopes, mu: Multipliers
) -> tuple[Array, Array, Array, list[Array]]:
    """Cost at step i, its gradient and Hessian (Gauss-Newton) by state and control, and the gradient by rows.

    The cost is a sum of functions of one vector of rows each, which often depends on a part of the state alone.
    """
    m = problem.m
    counts = jax.tree.leaves(terms.active(jax.tree.map(jnp.ones_like, rows), i == problem.length, i > problem.length))
    leaves, tree = jax.tree.flatten(rows)
    leaves = [jnp.where(c > 0, r, 0) for c, r in zip(counts, leaves, strict=True)]
    dtype = mu.penalty.dtype

    def value(leaves: list[Array]) -> Array:
        return _value(problem, jax.tree.unflatten(tree, leaves), i, mu).astype(dtype)

    total, by_rows = jax.value_and_grad(value)(leaves)
    sizes = m.nv, m.nv, m.na, m.nu
    grad = [jnp.zeros(k, dtype) for k in sizes]
    hess = {(a, b): jnp.zeros((sizes[a], sizes[b]), dtype) for a in range(4) for b in range(a + 1)}
    for k, (c, r, slope) in enumerate(zip(counts, by_rows, slopes, strict=True)):
        curve = jax.hessian(lambda x, k=k: value([*leaves[:k], x, *leaves[k + 1 :]]))(leaves[k])
        own = {a: jnp.where(c[:, None] > 0, s, 0) for a, s in enumerate(slope) if s is not None}
        for a, s in own.items():
            grad[a] += _product(s.T, r[:, None])[:, 0]
            moved = _product(curve, s)
            for b in filter(own.__contains__, range(a, 4)):
                hess[b, a] += _product(own[b].T, moved)
    whole = [jnp.concatenate([hess[a, b] if a >= b else hess[b, a].T for b in range(4)], axis=1) for a in range(4)]
    return total, jnp.concatenate(grad), jnp.concatenate(whole), by_rows


def _costates(lx: Array, A: Array) -> Array:
    """Derivatives of the cost that is to come by the next state, at every step; zero at the last state."""

    def back(costate: Array, e: tuple[Array, Array]) -> tuple[Array, Array]:
        lx, A = e
        return lx + A.T @ costate, costate

    return jax.lax.scan(back, jnp.zeros_like(lx[0]), (lx, A), reverse=True)[1]


def _is_finite(expansion: Expansion) -> Array:
    """Whether all derivatives are."""
    return jnp.all(expansion.finite) & jnp.all(jnp.isfinite(expansion.curve))


def _is_flat(e: Expansion) -> Array:
    """Whether controls change the cost, to first order, by no more than rounding of what it changes with."""
    nx = e.dynamics.shape[1]
    b, v = jnp.abs(e.dynamics[..., nx:]), jnp.abs(_costates(e.grad[:, :nx], e.dynamics[..., :nx]))
    effect = jnp.abs(e.grad[:, nx:]) + jnp.einsum("kij,ki->kj", b, v)
    scale = jnp.max(b, (1, 2), initial=0) * jnp.max(v, 1, initial=0)
    return jnp.max(effect, initial=0) <= negligible(e.grad.dtype) * jnp.max(scale)


def backward_pass(problem: Problem, options: Ilqr, e: Expansion, controls: Array, gaps: Array, weight: Array) -> Laws:
    """Return control laws of Riccati recursions. The gaps (n, nx), or (n, 0) for none, are closed by a whole step."""
    recursion = _newton if options.second_order else _gauss_newton
    states, inputs = NATIVE_SIZE_OF_DDP if options.second_order else NATIVE_SIZE
    is_small = e.dynamics.shape[1] <= states and controls.shape[1] <= inputs
    run = by_backend(problem.m, recursion, "loops", "the backward pass", PRODUCTS) if is_small else recursion
    return run((problem.low, problem.high), e, convex_part(e.curve), controls, gaps, weight)


def convex_part(curve: Array) -> Array:
    """Remove negative eigenvalues from symmetric matrices."""
    if not curve.shape[-1]:
        return curve
    values, vectors = eigh(curve)
    return (vectors * jnp.maximum(values, 0)[:, None]) @ vectors.mT


def _gauss_newton(limits: Limits, e: Expansion, _: Array, controls: Array, gaps: Array, weight: Array) -> Laws:
    """The law without second derivatives of the dynamics."""
    law = without_unused(lambda *given: _riccati(*given)[0])  # does not ask whether Hessians are positive
    return Laws(*(x[None] for x in law(limits, e, controls, gaps, weight)))


def _newton(limits: Limits, e: Expansion, convex: Array, controls: Array, gaps: Array, weight: Array) -> Laws:
    """The laws with the largest share of `curve` that leaves all Hessians by the controls positive, which is a step of
    Newton's method if it is the whole, with the convex part of each, and without it."""

    def attempt(curve: Array) -> tuple[tuple[Array, Array, Array], Array]:
        return _riccati(limits, e._replace(hess=e.hess + curve), controls, gaps, weight)

    def less(found: tuple) -> tuple:
        share = jnp.where(found[0] > LEAST_SHARE, 0.5 * found[0], 0)
        law, positive = attempt(share * e.curve)
        return share, law, positive | (share == 0)

    start = jnp.ones((), e.grad.dtype), *attempt(e.curve)
    share, law, _ = while_each(lambda found: ~found[2], less, start)
    feed, gains, promised = attempt(0 * e.curve)[0]
    plain = feed, gains, jnp.where(share > 0, promised, -jnp.inf)  # else it is the first
    return Laws(*(jnp.stack(x) for x in zip(law, attempt(convex)[0], plain, strict=True)))


def _riccati(
    limits: Limits, e: Expansion, controls: Array, gaps: Array, weight: Array
) -> tuple[tuple[Array, Array, Array], Array]:
    """Changes of the controls (n, nu), feedback gains (n, nu, nx) and the expected improvement, and whether all
    Hessians by the controls are positive."""
    low, high = limits
    n, nx = len(controls), e.dynamics.shape[1]

    def back(value: tuple, xs: tuple) -> tuple[tuple, tuple]:
        vx, vxx, improvement, positive = value
        (grad, hess, dynamics), u, gap = xs
        if len(gap):
            moved = vxx @ gap
            improvement += gap @ (vx - 0.5 * moved)
            vx -= moved
        q = grad + dynamics.T @ vx
        hess = hess + dynamics.T @ (vxx @ dynamics)
        qx, qu, qxx, qux, quu = q[:nx], q[nx:], hess[:nx, :nx], hess[nx:, :nx], hess[nx:, nx:]
        scale = jnp.maximum(jnp.trace(quu) / len(quu), 1e-12)
        regular = quu + weight * scale * jnp.eye(len(quu), dtype=quu.dtype)
        feed, gain = control_law(regular, qu, qux, low - u, high - u)
        vx = qx + gain.T @ (quu @ feed + qu) + qux.T @ feed
        vxx = qxx + gain.T @ (quu @ gain + qux) + qux.T @ gain
        improvement -= feed @ (qu + 0.5 * quu @ feed)
        positive &= jnp.all(jnp.isfinite(cholesky(quu)))
        return (vx, 0.5 * (vxx + vxx.T), improvement, positive), (feed, gain)

    begin = e.grad[n, :nx], e.hess[n, :nx, :nx], jnp.zeros_like(weight), jnp.asarray(True)
    steps = (e.grad[:n], e.hess[:n], e.dynamics[:n]), controls, gaps
    (_, _, improvement, positive), (feed, gains) = jax.lax.scan(back, begin, steps, reverse=True)
    return (feed, gains, improvement), positive


def _product(a: Array, b: Array) -> Array:
    """Multiply matrices; of few rows and columns as a sum, since a library takes a call for each of a batch."""
    return matmul(a, b) if max(*a.shape, *b.shape) <= SUMMED else a @ b


def _what_is_not_finite(problem: Problem, program: Program, end: Search) -> str:
    """Name and step of a cost or derivative of the path that is not finite."""
    m, e = problem.m, end.expansion
    otherwise = "with the controls given; start from others, or limit them"
    if int(end.count) < 0:
        s = end._replace(cost=jnp.inf, ended=jnp.asarray(False))
        rows = jaxsim.jit(lambda p, s: line_search(p, program, s).rows)(problem, s)
        for what, values in (("running", rows.running), ("final", rows.final)):
            for k, r in enumerate(values):
                of = np.asarray(r) if what == "running" else np.asarray(r[-1:])
                bad = np.argwhere(~np.isfinite(of))
                if len(bad):
                    where = f" in step {bad[0][0]}" if what == "running" else ""
                    return f"the {what} term {k} is {of[tuple(bad[0])]}{where} {otherwise}"
        return f"the cost is not finite {otherwise}"
    remedy = "a root or a norm at zero? Add a small constant below it"
    bad = np.argwhere(~np.isfinite(np.asarray(e.grad)))
    if len(bad):
        where, i = _coordinate(m, int(bad[0][1])), int(bad[0][0])
        what = "final cost is not finite" if i == len(end.controls) else f"running cost is not finite in step {i}"
        return f"the gradient of the {what}, by {where}: {remedy}"
    bad = np.argwhere(~np.isfinite(np.asarray(e.hess)))
    if len(bad):
        return f"the Hessian of the cost is not finite in step {bad[0][0]}: {remedy}"
    bad = np.argwhere(~np.isfinite(np.asarray(e.dynamics)))
    if not len(bad):
        return "the cost is not finite"
    return f"the derivative of step {bad[0][0]} by {_coordinate(m, int(bad[0][2]))} is not finite"


def _coordinate(m: Model, i: int) -> str:
    """Name of an entry of (displacement, velocity, activation, control)."""
    if i < 2 * m.nv:
        joint = int(m.dof_jntid[i % m.nv])
        what = "position" if i < m.nv else "velocity"
        return f"the {what} of dof {i % m.nv} (joint '{m.id2name('joint', joint) or joint}')"
    i -= 2 * m.nv
    return f"activation {i}" if i < m.na else f"control {i - m.na}"
