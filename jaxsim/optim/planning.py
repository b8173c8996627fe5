"""One function for all methods of trajectory optimisation, and controllers that plan again at every step."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.step.derived import with_fields
from jaxsim.engine.step.rollout import select
from jaxsim.math.safe import Array
from jaxsim.optim import costs as terms
from jaxsim.optim.arguments import control_limits, floats
from jaxsim.optim.costs import Costs
from jaxsim.optim.inverse import inverse_trajectory
from jaxsim.optim.lqr import Problem, Soften, Step, advance, at_state, ilqr, program_of
from jaxsim.optim.options import Cem, Ilqr, Inverse, Iteration, Method, Result, Shooting, takes_options
from jaxsim.optim.progress import is_traced, warn_of_bad_costs, warn_of_zero_gradient
from jaxsim.optim.progress import listen as listening
from jaxsim.optim.sampling import search
from jaxsim.optim.shooting import descend


def trajectory_cost(
    m: Model, d: Data, costs: Costs, controls: Array, *, step: Step = jaxsim.step, substeps: int = 1, length: Any = None
) -> Array:
    """Compute the cost of controls (n, nu) from the data `d`, differentiable in all of them, without constraints."""
    terms.check_costs(costs, "trajectory_cost")
    if costs.constraints or costs.final_constraints:
        raise ValueError("constraints are met by ilqr and ddp alone; here make them terms, with a weight")
    reads = terms.reads_of(costs, d)
    length = len(controls) if length is None else length
    none = terms.no_multipliers(terms.Rows((), (), (), ()), 1.0)
    once = costs.__class__(running=costs.running)
    problem = Problem(m, d, once, jnp.zeros(()), jnp.zeros(()), jnp.asarray(length))
    program = program_of(problem, step, substeps)

    @jax.checkpoint
    def body(state: dict[str, Any], row: tuple) -> tuple[dict[str, Any], Array]:
        i, u = row
        new, seen = advance(problem, program, at_state(m, d, state).replace(ctrl=u))
        rows = terms.rows_of(once, seen)
        kept = jax.tree.map(lambda a, b: jnp.where(i < length, a, b), select(new, program.moving), state)
        return kept, terms.value_of(once, rows, jnp.asarray(False), i >= length, none)

    last, values = jax.lax.scan(body, select(d, program.moving), (jnp.arange(len(controls)), controls))
    final = costs.__class__(final=costs.final)
    end = with_fields(m, at_state(m, d, last).replace(ctrl=d.ctrl), reads)
    yes, no = jnp.asarray(True), jnp.asarray(False)
    return jnp.sum(values) + terms.value_of(final, terms.rows_of(final, end), yes, no, none)


@takes_options
def plan(
    m: Model,
    d: Data,
    costs: Costs,
    controls: Array,
    method: Method | None = None,
    *,
    key: Array | None = None,
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
    """Minimise costs over controls (n, nu) by the method of the options: `Ilqr`, `Ddp`, `Inverse`, `Shooting`,
    `Mppi`, `Cem`.

    `key`: random key, for methods that draw samples. The other arguments are those of `ilqr`. `states` and `soften` are
    for `Ilqr` and `Ddp`. `Inverse` starts from the positions of a rollout, and takes one plain step for each row of
    controls.
    """
    method = Ilqr() if method is None else method
    shared = {"low": low, "high": high, "step": step, "substeps": substeps, "length": length}
    if isinstance(method, Ilqr):
        alone = {"states": states, "soften": soften}
        return ilqr(m, d, costs, controls, method, **shared, **alone, callback=callback, progress=progress)
    name = type(method).__name__
    terms.check_costs(costs, name)
    controls = floats(jnp.asarray(controls))
    if states is not None:
        raise ValueError(f"{name}: states are for Ilqr and Ddp; inverse_trajectory takes positions")
    if soften:
        raise ValueError(f"{name}: soften is for Ilqr and Ddp; give softened models, one call after the other")
    if isinstance(method, Inverse):
        if substeps != 1 or step is not jaxsim.step or length is not None:
            raise ValueError("Inverse: no substeps, step or length; give a model with another timestep or contacts")
        rolled = jaxsim.rollout(m, d, controls)[1]["qpos"]
        positions = jnp.concatenate([d.qpos[None], rolled])
        limits = {"low": low, "high": high}
        return inverse_trajectory(m, d, costs, positions, method, **limits, callback=callback, progress=progress)
    low, high = control_limits(m, low, high, controls[0], name)
    key = jax.random.key(0) if key is None else key
    length = jnp.asarray(len(controls) if length is None else length)
    given = m, d, costs, controls, method, key, low, high, length
    if is_traced(given):
        return _by_costs(*given, step, substeps, False)[0]
    if isinstance(method, Cem) and not 0 < method.elites <= method.samples:
        raise ValueError(f"Cem: elites is {method.elites}; expected 1 to samples = {method.samples}")
    if not isinstance(method, Shooting) and method.sigma is None and not bool(jnp.isfinite(high - low).all()):
        raise ValueError(f"{name}: give sigma, the deviation of samples, where controls have no limits")
    with listening(method.iterations, name, progress, callback) as watched:
        result, (nans, bad, flat) = _compiled()(*given, step, substeps, watched)
    count = method.iterations * (1 if isinstance(method, Shooting) else method.samples)
    warn_of_bad_costs(name, int(nans), int(bad), count)
    if bool(flat):
        warn_of_zero_gradient(name)
    return result


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., tuple[Result, tuple]]:
    return jaxsim.jit(_by_costs, static_argnums=(9, 10, 11))  # asks which options XLA knows: not on import


def _by_costs(
    m: Model, d: Data, costs: Costs, controls: Array, method: Any, key: Array, low: Array, high: Array, length: Array,
    step: Step, substeps: int, watched: bool,
) -> tuple[Result, tuple]:  # fmt: skip
    """Result of a method that sees the cost of whole trajectories, and what went wrong."""

    def cost(u: Array) -> Array:
        return trajectory_cost(m, d, costs, u, step=step, substeps=substeps, length=length)

    low, high = (jnp.broadcast_to(x, controls.shape[1:]) for x in (low, high))
    if isinstance(method, Shooting):
        below, above = (jnp.broadcast_to(x, controls.shape) for x in (low, high))
        result, end = descend(cost, True, controls, method, below, above, None, watched)
        return result, (end.nans, end.infinite, end.flat)
    n = len(controls)
    if method.knots is None or method.knots >= n:
        result, nans, bad = search(cost, controls, key, method, low, high, watched)
        return result, (nans, bad, jnp.asarray(False))
    spread = _interpolation(n, method.knots, controls.dtype)
    mean = jnp.linalg.lstsq(spread, controls)[0]
    result, nans, bad = search(lambda x: cost(spread @ x), mean, key, method, low, high, watched)
    return result._replace(x=spread @ result.x), (nans, bad, jnp.asarray(False))


def _interpolation(n: int, knots: int, dtype: Any) -> Array:
    """Matrix (n, knots) from values at equidistant knots to linear interpolations between them."""
    at = jnp.linspace(0, knots - 1, n, dtype=dtype)
    return jnp.maximum(0, 1 - jnp.abs(at[:, None] - jnp.arange(knots, dtype=dtype)))


class Memory(NamedTuple):
    """State of a controller between calls: the plan (n, nu), and the number of calls."""

    controls: Array
    count: Array
    cost: Array


class Controller(NamedTuple):
    """Receding-horizon controller that `mpc` makes.

    `controller(d, memory)` returns the current control (nu,) and the memory for the next call. Pure, with fixed shapes.
    """

    start: Callable[[Data], Memory]
    control: Callable[[Data, Memory], tuple[Array, Memory]]

    def __call__(self, d: Data, memory: Memory) -> tuple[Array, Memory]:
        return self.control(d, memory)


@takes_options
def mpc(
    m: Model,
    costs: Costs,
    solver: Method | None = None,
    *,
    horizon: int,
    substeps: int = 1,
    low: Any = None,
    high: Any = None,
    step: Step = jaxsim.step,
    controls: Array | None = None,
    key: Array | None = None,
) -> Controller:
    """Make a controller that plans `horizon` controls at every call, from the last plan shifted by one control.

    Each control is held for `substeps` steps, which is how often the controller is meant to be called. `solver`: by
    default one iteration of `ilqr`. `controls` (horizon, nu) or (nu,): the first plan, by default the middle of the
    limits, or zero. Call `controller.start(d)` for the first memory. An eager call runs one compiled program; within
    `scan`, `vmap` or `jit` the controller is part of that program.
    """
    method = Ilqr(iterations=1, tolerance=0.0) if solver is None else solver
    root = jax.random.key(0) if key is None else key

    def start(d: Data) -> Memory:
        row = jnp.zeros(m.nu, d.qpos.dtype)
        below, above = control_limits(m, low, high, row, "mpc")
        middle = jnp.where(jnp.isfinite(above - below), 0.5 * (below + above), 0)
        first = middle if controls is None else jnp.asarray(controls, d.qpos.dtype)
        return Memory(jnp.broadcast_to(first, (horizon, m.nu)), jnp.zeros((), int), jnp.zeros((), d.qpos.dtype))

    def replan(m: Model, d: Data, memory: Memory) -> tuple[Array, Memory]:
        found = plan(
            m, d, costs, memory.controls, method, key=jax.random.fold_in(root, memory.count), low=low, high=high,
            step=step, substeps=substeps,
        )  # fmt: skip
        usable = jnp.isfinite(found.x).all()
        now = jnp.where(usable, found.x, memory.controls)
        return now[0], Memory(jnp.concatenate([now[1:], now[-1:]]), memory.count + 1, found.cost)

    program = jaxsim.jit(replan)

    def control(d: Data, memory: Memory) -> tuple[Array, Memory]:
        return (replan if is_traced(m, d, memory) else program)(m, d, memory)

    return Controller(start, control)
