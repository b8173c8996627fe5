"""Iterative LQR with control limits: quadratic expansions along a rollout, a Riccati sweep, a batched line search.

Tassa, Mansard and Todorov, "Control-Limited Differential Dynamic Programming", ICRA 2014. States are (qpos, qvel, act);
their differences live in the tangent space (2 nv + na), so free and ball joints need no care.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.integrate.positions import differentiate_pos, integrate_pos
from jaxsim.engine.rollout import CARRIED
from jaxsim.engine.transition import transition_derivatives
from jaxsim.math.safe import Array
from jaxsim.optim.progress import bar

ALPHAS = tuple(0.6**k for k in range(10))
BOX_ITERATIONS = 12


class Costs(NamedTuple):
    """`running(d, u, i)` and `final(d)`, scalars. `d` holds state and control; what is derived from it is zero."""

    running: Callable[[Data, Array, Array], Array]
    final: Callable[[Data], Array]


class Plan(NamedTuple):
    """Controls (n, nu), feedback gains (n, nu, 2 nv + na), the data at every step (leading axis n + 1), and the cost of
    every iteration. `converged`: the expected gain fell below the tolerance."""

    controls: Array
    gains: Array
    states: dict[str, Array]
    history: Array
    converged: bool


class Expansion(NamedTuple):
    """Quadratic model of one step: cost by state and control, dynamics."""

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
) -> Plan:
    """Minimise the sum of costs over controls, starting from `controls` (n, nu).

    Args:
        low: least controls, held exactly (a box-constrained Newton step at every time).
        high: greatest controls, likewise.
        tolerance: stop when a step improves the cost by less than this fraction, or promises no more and fails.
        damping: first regularisation of the control Hessian; adapted by factors of 4.
        step: the step function, e.g. of a model with smoothed contacts.
        progress: show a bar.

    The cost's Hessians are made positive semidefinite by clipping eigenvalues.
    """
    low, high = (jnp.broadcast_to(jnp.asarray(x, controls.dtype), (m.nu,)) for x in (low, high))
    simulate = jaxsim.jit(partial(_simulate, costs, step))
    expand = jaxsim.jit(partial(_expand, costs, step))
    sweep = jaxsim.jit(_sweep)
    search = jaxsim.jit(partial(_search, costs, step))
    controls = jnp.clip(controls, low, high)
    states, cost = simulate(m, d, controls)
    history, weight, converged = [cost], damping, False
    gains = jnp.zeros((*controls.shape, 2 * m.nv + m.na), controls.dtype)
    with bar(iterations, "iLQR", progress) as shown:
        model = None
        for _ in range(iterations):
            fresh = model is None
            if fresh:
                model = expand(m, d, states, controls)
            feed, trial, promised = sweep(*model, controls, low, high, weight)
            new = search(m, d, states, controls, feed, trial, low, high)
            shown(jnp.minimum(cost, new[2]))
            if float(new[2]) < float(cost):
                gain = float(cost) - float(new[2])
                states, controls, cost, gains = *new, trial
                history.append(cost)
                model, weight = None, max(weight / 4, 1e-9)
                if gain <= tolerance * abs(float(cost)):
                    converged = True
                    break
            elif weight > 1e8 or (fresh and float(promised) <= tolerance * abs(float(cost))):
                converged = True  # nothing to gain, or nothing that rounding does not hide
                break
            else:
                weight *= 4
    return Plan(controls, gains, states, jnp.stack(history), converged)


def _at(d: Data, state: dict[str, Any]) -> Data:
    return jax.tree.map(jnp.zeros_like, d).replace(**state)


def _kept(d: Data) -> dict[str, Any]:
    return {name: getattr(d, name) for name in CARRIED}


def _simulate(costs: Costs, step: Callable, m: Model, d: Data, controls: Array) -> tuple[dict, Array]:
    """States at steps 0 to n, and the cost."""

    def body(state: dict, xs: tuple) -> tuple[dict, tuple]:
        i, u = xs
        here = _at(d, state).replace(ctrl=u)
        return _kept(step(m, here)), (state, costs.running(here, u, i))

    last, (states, running) = jax.lax.scan(body, _kept(d), (jnp.arange(len(controls)), controls))
    states = jax.tree.map(lambda a, b: jnp.concatenate([a, b[None]]), states, last)
    return states, jnp.sum(running) + costs.final(_at(d, last))


def _moved(m: Model, d: Data, dx: Array) -> Data:
    dq, dv, da = jnp.split(dx, (m.nv, 2 * m.nv))
    qpos = integrate_pos(m, d.qpos, dq, jnp.ones((), dx.dtype))
    return d.replace(qpos=qpos, qvel=d.qvel + dv, act=d.act + da)


def _difference(m: Model, a: Data, b: Data) -> Array:
    return jnp.concatenate([differentiate_pos(m, a.qpos, b.qpos), b.qvel - a.qvel, b.act - a.act])


def _semidefinite(h: Array) -> Array:
    values, vectors = jnp.linalg.eigh(0.5 * (h + h.T))
    return jnp.einsum("ij,j,kj->ik", vectors, jnp.maximum(values, 0), vectors)


def _expand(costs: Costs, step: Callable, m: Model, d: Data, states: dict, controls: Array) -> tuple:
    """Expansions of all steps at once, and the final cost's slope and curvature."""
    n = 2 * m.nv + m.na

    def one(state: dict, u: Array, i: Array) -> Expansion:
        here = _at(d, state).replace(ctrl=u)

        def cost(z: Array) -> Array:
            moved = _moved(m, here, z[:n]).replace(ctrl=u + z[n:])
            return costs.running(moved, u + z[n:], i)

        zero = jnp.zeros(n + m.nu, u.dtype)
        slope, curve = jax.grad(cost)(zero), _semidefinite(jax.hessian(cost)(zero))
        t = transition_derivatives(m, here, step)
        return Expansion(slope[:n], slope[n:], curve[:n, :n], curve[n:, n:], curve[n:, :n], t.A, t.B)

    before = jax.tree.map(lambda x: x[:-1], states)
    along = jax.vmap(one)(before, controls, jnp.arange(len(controls)))
    end = _at(d, jax.tree.map(lambda x: x[-1], states))

    def final(dx: Array) -> Array:
        return costs.final(_moved(m, end, dx))

    zero = jnp.zeros(n, controls.dtype)
    return along, jax.grad(final)(zero), _semidefinite(jax.hessian(final)(zero))


def _sweep(along: Expansion, vx: Array, vxx: Array, controls: Array, low: Array, high: Array, weight: Array) -> tuple:
    """From the last step to the first: changes of the controls (n, nu), gains (n, nu, nx), and what both promise."""

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

    feeds, gains, promised = jax.lax.scan(back, (vx, vxx), (along, controls), reverse=True)[1]
    return feeds, gains, jnp.sum(promised)


def box_newton(h: Array, g: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Minimise x' h x / 2 + g' x within low <= x <= high by projected Newton steps; also which x are free of limits."""

    def value(x: Array) -> Array:
        return 0.5 * x @ h @ x + g @ x

    def free_at(x: Array) -> Array:
        slope = h @ x + g
        return ~(((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0)))

    def improve(x: Array, _: None) -> tuple[Array, None]:
        free = free_at(x)
        slope = jnp.where(free, h @ x + g, 0)
        matrix = jnp.where(free[:, None] & free[None], h, jnp.eye(len(g), dtype=h.dtype))
        direction = -jnp.linalg.solve(matrix, slope)
        trials = jnp.clip(x + jnp.asarray(0.5 ** jnp.arange(8), x.dtype)[:, None] * direction, low, high)
        values = jax.vmap(value)(trials)
        best = jnp.argmin(values)
        return jnp.where(values[best] < value(x), trials[best], x), None

    x, _ = jax.lax.scan(improve, jnp.clip(jnp.zeros_like(g), low, high), None, length=BOX_ITERATIONS)
    return x, free_at(x)


def _search(
    costs: Costs, step: Callable, m: Model, d: Data, states: dict, controls: Array, feed: Array, gains: Array, low, high
) -> tuple[dict, Array, Array]:
    """Roll out the new law with all step lengths at once; the best states, controls and cost."""

    def trial(alpha: Array) -> tuple[dict, Array, Array]:
        def body(state: dict, xs: tuple) -> tuple[dict, tuple]:
            i, old, u, k, gain = xs
            here = _at(d, state)
            u = jnp.clip(u + alpha * k + gain @ _difference(m, _at(d, old), here), low, high)
            here = here.replace(ctrl=u)
            return _kept(step(m, here)), (state, u, costs.running(here, u, i))

        before = jax.tree.map(lambda x: x[:-1], states)
        xs = (jnp.arange(len(controls)), before, controls, feed, gains)
        last, (path, new, running) = jax.lax.scan(body, _kept(d), xs)
        path = jax.tree.map(lambda a, b: jnp.concatenate([a, b[None]]), path, last)
        return path, new, jnp.sum(running) + costs.final(_at(d, last))

    paths, new, values = jax.vmap(trial)(jnp.asarray(ALPHAS, controls.dtype))
    best = jnp.argmin(jnp.where(jnp.isfinite(values), values, jnp.inf))
    return jax.tree.map(lambda x: x[best], (paths, new, values))
