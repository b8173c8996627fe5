"""Iterative LQR with control limits: quadratic expansions along a rollout, a Riccati recursion, a batched line search.

Tassa, Mansard and Todorov, "Control-Limited Differential Dynamic Programming", ICRA 2014. States are (qpos, qvel, act).
Their differences are in the tangent space (2 nv + na), also for free and ball joints.
"""

import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.describe import describe_struct
from jaxsim.core.model import Model
from jaxsim.engine.derived import carried, fields_read, from_carried, with_fields
from jaxsim.engine.integrate.positions import differentiate_pos, integrate_pos
from jaxsim.engine.transition import transition_derivatives
from jaxsim.math.safe import Array
from jaxsim.optim.arguments import SHARED_PROGRAMS, floats, is_compiled, limits
from jaxsim.optim.progress import bar, negligible, warn_of_zero_gradient

LARGEST_WEIGHT = 1e8  # of the regularisation, at which the search ends
PROMISE = 1e-4  # of the cost, an improvement that derivatives promise and that is no rounding
STEP_LENGTHS = tuple(0.6**k for k in range(10))  # of the line search, tried in one batch
BOX_ITERATIONS = 12  # projected Newton steps of a box-constrained quadratic program


class Costs(NamedTuple):
    """Scalar costs `running(d, u, i)` of step i and `final(d)`.

    Fields of `d` that are derived from the state (xpos, sensordata) are those of `forward`, computed if they are read.
    """

    running: Callable[[Data, Array, Array], Array]
    final: Callable[[Data], Array]


class IlqrResult(NamedTuple):
    """Result of `ilqr`.

    `controls` (n, nu), feedback `gains` (n, nu, 2 nv + na), `states`: fields of the data at every step (leading axis
    n + 1), `history`: cost of every iteration. `converged`: the expected improvement fell below the tolerance; not
    where controls have no effect on the cost at the start, where derivatives promise an improvement that no step length
    gives, or where they are not finite: warnings tell of these.
    """

    controls: Array
    gains: Array
    states: dict[str, Array]
    history: Array
    converged: bool

    __repr__ = describe_struct


class _Costs(NamedTuple):
    """The user's costs as functions of the model as well: `running(m, d, u, i)` and `final(m, d)`."""

    running: Callable[[Model, Data, Array, Array], Array]
    final: Callable[[Model, Data], Array]


class Expansion(NamedTuple):
    """Derivatives of one step: of the cost by state and control, and of the next state (A, B)."""

    lx: Array
    lu: Array
    lxx: Array
    luu: Array
    lux: Array
    A: Array
    B: Array


def ilqr(
    m: Model,
    d: Data,
    controls: Array,
    costs: Costs,
    *,
    low: Array | float = -jnp.inf,
    high: Array | float = jnp.inf,
    iterations: int = 100,
    tolerance: float = 1e-6,
    damping: float = 1e-3,
    step: Callable[[Model, Data], Data] = jaxsim.step,
    progress: bool = False,
) -> IlqrResult:
    """Minimise the sum of costs over controls, starting from `controls` (n, nu).

    Args:
        low: lower limits of controls, held exactly by a box-constrained Newton step at every time.
        high: upper limits of controls, likewise.
        tolerance: stop when an iteration improves the cost by less than this fraction, or when less is expected and
            the line search fails.
        damping: initial regularisation of the control Hessian; adapted by factors of 4.
        step: the step function, e.g. with smoothed contacts. Its derivatives must be those of its values: one of
            `straight_through` is refused.
        progress: show a bar.

    Where both costs are compiled (`jax.jit`), so is the search, once in a process: later calls with the same functions,
    `step` and number of steps compile nothing, as where a controller plans anew from each state. Costs that are not
    compiled are traced at every call, since what they close over may have changed.

    The Hessians of the costs are made positive semidefinite by clipping eigenvalues. Raises FloatingPointError, with
    the cost and the step, where a cost or a derivative is not finite at the start.
    """
    if getattr(step, "straight_through", False):
        raise ValueError(
            "ilqr: a straight_through step has derivatives of another step, and no step length of the line search "
            "gives what they promise. Optimise the softened one, step=lambda m, d: jaxsim.step(soften(m), d), and go "
            "on from its controls with the plain step; or use shoot"
        )
    controls = floats(jnp.asarray(controls))
    if controls.ndim != 2 or controls.shape[1] != m.nu or not len(controls):
        raise ValueError(f"ilqr: controls have shape {controls.shape}, wanted (steps, {m.nu})")
    low, high = limits(low, high, controls[0], "ilqr")
    shared = is_compiled(costs.running) and is_compiled(costs.final)
    make = _programs if shared else _programs.__wrapped__
    terms, simulate, expand, search = make(*_with_derived_fields(costs, d, controls), step)
    controls = jnp.clip(controls, low, high)
    states, cost = simulate(m, d, controls)
    if not bool(jnp.isfinite(cost)):
        raise FloatingPointError(f"ilqr: {_bad_cost(terms, m, d, states, controls)}")
    history, weight, converged, promised, flat = [cost], damping, False, 0.0, False
    gains = jnp.zeros((*controls.shape, 2 * m.nv + m.na), controls.dtype)
    with bar(iterations, "iLQR", progress) as shown:
        expansion: Any = None
        for _ in range(iterations):
            first_trial = expansion is None
            if first_trial:
                expansion = expand(m, d, states, controls)
                if not _is_finite(expansion):
                    what = _bad_derivative(m, *expansion)
                    if len(history) == 1:
                        raise FloatingPointError(f"ilqr: {what}")
                    warnings.warn(f"ilqr ends after iteration {len(history) - 1}: {what}", RuntimeWarning, stacklevel=2)
                    break
                if len(history) == 1:
                    flat = bool(_is_flat(*expansion))
            feed, feedback, expected = _backward(*expansion, controls, low, high, weight)
            promised = float(expected) if first_trial else promised
            new = search(m, d, states, controls, feed, feedback, low, high)
            shown(jnp.minimum(cost, new[2]))
            if float(new[2]) < float(cost):
                improvement = float(cost) - float(new[2])
                states, controls, cost, gains = *new, feedback
                history.append(cost)
                flat = flat and improvement <= negligible(cost.dtype) * abs(float(cost))
                expansion, weight = None, max(weight / 4, 1e-9)
                if improvement <= tolerance * abs(float(cost)):
                    converged = True
                    break
            elif first_trial and promised <= tolerance * abs(float(cost)):
                converged = True  # any improvement left is within rounding
                break
            elif weight > LARGEST_WEIGHT:
                converged = promised <= PROMISE * abs(float(cost))
                if not converged:
                    warnings.warn(
                        f"ilqr: derivatives promise a cost lower by {promised:.3g} of {float(cost):.3g}, and no step "
                        "length lowers it: are they those of the step, and is the cost smooth here?",
                        RuntimeWarning,
                        stacklevel=2,
                    )
                break
            else:
                weight *= 4
    if flat:
        warn_of_zero_gradient("iLQR")
    return IlqrResult(controls, gains, states, jnp.stack(history), converged and not flat)


def _with_derived_fields(costs: Costs, d: Data, controls: Array) -> tuple[Costs, frozenset[str], frozenset[str]]:
    """The costs, not compiled, and the fields of the data that each of the two reads."""
    plain = Costs(_plain(costs.running), _plain(costs.final))
    running = fields_read(lambda d: plain.running(d, controls[0], jnp.int32(0)), d)
    return plain, running, fields_read(plain.final, d)


def _plain(function: Any) -> Any:
    """A function that was compiled, as it was written."""
    return function.__wrapped__ if is_compiled(function) else function


@lru_cache(maxsize=SHARED_PROGRAMS)
def _programs(costs: Costs, running: frozenset[str], final: frozenset[str], step: Callable) -> tuple[Any, ...]:
    """The costs as functions of the model as well, and what is compiled for them: simulation, expansion, search."""
    terms = _Costs(
        lambda m, d, u, i: costs.running(with_fields(m, d, running), u, i),
        lambda m, d: costs.final(with_fields(m, d, final)),
    )
    return terms, *(jaxsim.jit(partial(f, terms, step)) for f in (_simulate, _expand, _search))


@jax.jit
def _is_finite(expansion: tuple) -> Array:
    """Whether all derivatives are."""
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(expansion)]))


@jax.jit
def _is_flat(e: Expansion, vx: Array, vxx: Array) -> Array:
    """Whether controls change the cost, to first order, by no more than rounding of what it changes with."""

    def back(vx: Array, e: Expansion) -> tuple[Array, tuple[Array, Array]]:
        effect = jnp.abs(e.lu) + jnp.abs(e.B).T @ jnp.abs(vx)
        scale = jnp.max(jnp.abs(e.B), initial=0) * jnp.max(jnp.abs(vx), initial=0)
        return e.lx + e.A.T @ vx, (jnp.max(effect, initial=0), scale)

    effect, scale = jax.lax.scan(back, vx, e, reverse=True)[1]
    return jnp.max(effect) <= negligible(vx.dtype) * jnp.max(scale)


def _bad_cost(costs: _Costs, m: Model, d: Data, states: dict, controls: Array) -> str:
    """Which cost of the first controls is not finite, and in which step."""

    def running(state: dict, u: Array, i: Array) -> Array:
        return costs.running(m, from_carried(d, state).replace(ctrl=u), u, i)

    before = jax.tree.map(lambda x: x[:-1], states)
    each = np.asarray(jaxsim.jit(jax.vmap(running))(before, controls, jnp.arange(len(controls))))
    bad = np.flatnonzero(~np.isfinite(each))
    where = f"the running cost is {each[bad[0]]} in step {bad[0]}" if len(bad) else "the final cost is not finite"
    return f"{where} with the controls given; start from others, or limit them"


def _bad_derivative(m: Model, e: Expansion, vx: Array, vxx: Array) -> str:
    """Which derivative is not finite: of which cost or of the step, by what, and in which step."""
    remedy = "a root or a norm at zero? Add a small constant below it"
    for what, values in (("running", jnp.concatenate([e.lx, e.lu], 1)), ("final", vx[None])):
        bad = np.argwhere(~np.isfinite(np.asarray(values)))
        if len(bad):
            step = f" in step {bad[0][0]}" if what == "running" else ""
            where = _coordinate(m, int(bad[0][1]))
            return f"the gradient of the {what} cost is not finite{step}, by {where}: {remedy}"
    running = jnp.concatenate([x.reshape(len(x), -1) for x in (e.lxx, e.luu, e.lux)], 1)
    for what, values in (("running", running), ("final", vxx[None])):
        bad = np.argwhere(~np.isfinite(np.asarray(values)))
        if len(bad):
            step = f" in step {bad[0][0]}" if what == "running" else ""
            return f"the Hessian of the {what} cost is not finite{step}: {remedy}"
    bad = np.argwhere(~np.isfinite(np.asarray(jnp.concatenate([e.A, e.B], 2))))
    return f"the derivative of step {bad[0][0]} by {_coordinate(m, int(bad[0][2]))} is not finite"


def _coordinate(m: Model, i: int) -> str:
    """Name of an entry of (displacement, velocity, activation, control)."""
    if i < 2 * m.nv:
        joint = int(m.dof_jntid[i % m.nv])
        what = "position" if i < m.nv else "velocity"
        return f"the {what} of dof {i % m.nv} (joint '{m.id2name('joint', joint) or joint}')"
    i -= 2 * m.nv
    return f"activation {i}" if i < m.na else f"control {i - m.na}"


def _simulate(costs: _Costs, step: Callable, m: Model, d: Data, controls: Array) -> tuple[dict, Array]:
    """Carried fields at steps 0 to n, and the cost."""

    def body(state: dict, xs: tuple) -> tuple[dict, tuple]:
        i, u = xs
        here = from_carried(d, state).replace(ctrl=u)
        return carried(step(m, here)), (state, costs.running(m, here, u, i))

    last, (states, running) = jax.lax.scan(body, carried(d), (jnp.arange(len(controls)), controls))
    states = jax.tree.map(lambda a, b: jnp.concatenate([a, b[None]]), states, last)
    return states, jnp.sum(running) + costs.final(m, from_carried(d, last))


def _displaced(m: Model, d: Data, dx: Array) -> Data:
    """Data with its state displaced by a tangent vector (2 nv + na,)."""
    dq, dv, da = jnp.split(dx, (m.nv, 2 * m.nv))
    qpos = integrate_pos(m, d.qpos, dq, jnp.ones((), dx.dtype))
    return d.replace(qpos=qpos, qvel=d.qvel + dv, act=d.act + da)


def _difference(m: Model, a: Data, b: Data) -> Array:
    """Tangent vector (2 nv + na,) from the state of `a` to that of `b`."""
    return jnp.concatenate([differentiate_pos(m, a.qpos, b.qpos), b.qvel - a.qvel, b.act - a.act])


def _semidefinite(h: Array) -> Array:
    """Symmetric part of `h` with its negative eigenvalues set to zero."""
    values, vectors = jnp.linalg.eigh(0.5 * (h + h.T))
    return jnp.einsum("ij,j,kj->ik", vectors, jnp.maximum(values, 0), vectors)


def _expand(costs: _Costs, step: Callable, m: Model, d: Data, states: dict, controls: Array) -> tuple:
    """Expansions of all steps, and gradient and Hessian of the final cost."""
    n = 2 * m.nv + m.na

    def one(state: dict, u: Array, i: Array) -> Expansion:
        here = from_carried(d, state).replace(ctrl=u)

        def cost(z: Array) -> Array:
            displaced = _displaced(m, here, z[:n]).replace(ctrl=u + z[n:])
            return costs.running(m, displaced, u + z[n:], i)

        zero = jnp.zeros(n + m.nu, u.dtype)
        g, h = jax.grad(cost)(zero), _semidefinite(jax.hessian(cost)(zero))
        t = transition_derivatives(m, here, step)
        return Expansion(g[:n], g[n:], h[:n, :n], h[n:, n:], h[n:, :n], t.A, t.B)

    before = jax.tree.map(lambda x: x[:-1], states)
    expansions = jax.vmap(one)(before, controls, jnp.arange(len(controls)))
    end = from_carried(d, jax.tree.map(lambda x: x[-1], states))

    def final(dx: Array) -> Array:
        return costs.final(m, _displaced(m, end, dx))

    zero = jnp.zeros(n, controls.dtype)
    return expansions, jax.grad(final)(zero), _semidefinite(jax.hessian(final)(zero))


def _backward_pass(
    expansions: Expansion, vx: Array, vxx: Array, controls: Array, low: Array, high: Array, weight: Array
) -> tuple:
    """Changes of the controls (n, nu), feedback gains (n, nu, nx) and the expected improvement: a Riccati recursion.

    `vx` and `vxx` are gradient and Hessian of the value function at the end; `weight` regularises.
    """

    def back(value: tuple, xs: tuple) -> tuple[tuple, tuple]:
        vx, vxx = value
        e, u = xs
        qx, qu = e.lx + e.A.T @ vx, e.lu + e.B.T @ vx
        qxx, quu = e.lxx + e.A.T @ vxx @ e.A, e.luu + e.B.T @ vxx @ e.B
        qux = e.lux + e.B.T @ vxx @ e.A
        scale = jnp.maximum(jnp.trace(quu) / len(quu), 1e-12)
        regular = quu + weight * scale * jnp.eye(len(quu), dtype=quu.dtype)
        feed, free = box_newton(regular, qu, low - u, high - u)
        solved = jnp.linalg.solve(jnp.where(free[:, None] & free[None], regular, jnp.eye(len(quu))), qux)
        gain = -jnp.where(free[:, None], solved, 0)
        vx = qx + gain.T @ quu @ feed + gain.T @ qu + qux.T @ feed
        vxx = qxx + gain.T @ quu @ gain + gain.T @ qux + qux.T @ gain
        return (vx, 0.5 * (vxx + vxx.T)), (feed, gain, -feed @ (qu + 0.5 * quu @ feed))

    feeds, gains, expected = jax.lax.scan(back, (vx, vxx), (expansions, controls), reverse=True)[1]
    return feeds, gains, jnp.sum(expected)


@lru_cache(maxsize=1)
def _compiled_backward() -> Callable[..., tuple]:
    return jaxsim.jit(_backward_pass)  # asks which options XLA knows: not on import


def _backward(*args: Any) -> tuple:
    return _compiled_backward()(*args)


def box_newton(h: Array, g: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Minimiser of x' h x / 2 + g' x within low <= x <= high by projected Newton steps, and which x are not clamped."""

    def value(x: Array) -> Array:
        return 0.5 * x @ h @ x + g @ x

    def free_at(x: Array) -> Array:
        gradient = h @ x + g
        return ~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0)))

    def improve(x: Array, _: None) -> tuple[Array, None]:
        free = free_at(x)
        gradient = jnp.where(free, h @ x + g, 0)
        matrix = jnp.where(free[:, None] & free[None], h, jnp.eye(len(g), dtype=h.dtype))
        direction = -jnp.linalg.solve(matrix, gradient)
        trials = jnp.clip(x + jnp.asarray(0.5 ** jnp.arange(8), x.dtype)[:, None] * direction, low, high)
        values = jax.vmap(value)(trials)
        best = jnp.argmin(values)
        return jnp.where(values[best] < value(x), trials[best], x), None

    x, _ = jax.lax.scan(improve, jnp.clip(jnp.zeros_like(g), low, high), None, length=BOX_ITERATIONS)
    return x, free_at(x)


def _search(
    costs: _Costs,
    step: Callable,
    m: Model,
    d: Data,
    states: dict,
    controls: Array,
    feed: Array,
    gains: Array,
    low,
    high,
) -> tuple[dict, Array, Array]:
    """States, controls and cost of the best of `STEP_LENGTHS` along the new control law, rolled out in one batch."""

    def trial(alpha: Array) -> tuple[dict, Array, Array]:
        def body(state: dict, xs: tuple) -> tuple[dict, tuple]:
            i, old, u, k, gain = xs
            here = from_carried(d, state)
            u = jnp.clip(u + alpha * k + gain @ _difference(m, from_carried(d, old), here), low, high)
            here = here.replace(ctrl=u)
            return carried(step(m, here)), (state, u, costs.running(m, here, u, i))

        before = jax.tree.map(lambda x: x[:-1], states)
        xs = (jnp.arange(len(controls)), before, controls, feed, gains)
        last, (path, new, running) = jax.lax.scan(body, carried(d), xs)
        path = jax.tree.map(lambda a, b: jnp.concatenate([a, b[None]]), path, last)
        return path, new, jnp.sum(running) + costs.final(m, from_carried(d, last))

    paths, new, values = jax.vmap(trial)(jnp.asarray(STEP_LENGTHS, controls.dtype))
    best = jnp.argmin(jnp.where(jnp.isfinite(values), values, jnp.inf))
    return jax.tree.map(lambda x: x[best], (paths, new, values))
