"""Gradient descent through rollouts, on controls, policies or parameters (single shooting)."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.core.describe import describe_struct
from jaxsim.core.extras import require
from jaxsim.math.safe import Array
from jaxsim.optim.arguments import SHARED_PROGRAMS, compiled, floats, is_compiled, limits
from jaxsim.optim.progress import bar, is_flat, warn_of_bad_costs, warn_of_bad_gradient, warn_of_zero_gradient


class OptimResult(NamedTuple):
    """Result of an optimiser: the best point `x`, its cost, and the cost of every iteration."""

    x: Any
    cost: Array
    history: Array

    __repr__ = describe_struct


def shoot(
    cost: Callable[..., Array],
    x: Any,
    iterations: int = 100,
    optimizer: Any = 1e-2,
    *,
    low: Any = None,
    high: Any = None,
    clip: float = 1.0,
    key: Array | None = None,
    value_and_grad: Callable | None = None,
    progress: bool = False,
) -> OptimResult:
    """Minimise `cost(x)` over a PyTree by an optax optimiser, projected to [low, high] after every update.

    Args:
        cost: x -> scalar; (x, key) -> scalar when `key` is given, with a new key every iteration.
        optimizer: an optax gradient transformation, or a step size for Adam with the gradient's norm clipped to `clip`.
        low: lower limits, a number or an array for all leaves, or limits in the structure of `x`.
        high: upper limits, likewise.
        value_and_grad: replaces `jax.value_and_grad(cost)`, e.g. by `smoothed(...)`.
        progress: show a bar.

    Gradients that are not finite are replaced by zero, with a warning that names them. Warns where the first one is no
    more than rounding. A function that is compiled by `jax.jit` already is compiled here once in a process.
    """
    transform = _adam(float(optimizer), float(clip)) if isinstance(optimizer, (int, float)) else optimizer
    if value_and_grad is None:
        evaluate = compiled(jax.value_and_grad, cost)
    else:
        evaluate = value_and_grad if is_compiled(value_and_grad) else jaxsim.jit(value_and_grad)
    x = floats(x)
    low, high = limits(low, high, x, "shooting")
    x = jax.tree.map(jnp.clip, x, low, high)
    descend = _descent(transform)
    least = jnp.asarray(jnp.inf, jax.tree.leaves(x)[0].dtype)
    carry = _Search(x, transform.init(x), x, least, jax.tree.map(lambda v: jnp.zeros(v.shape, int), x))
    history = []
    with bar(iterations, "shooting", progress) as shown:
        for i in range(iterations):
            value, grad = evaluate(carry.x) if key is None else evaluate(carry.x, jax.random.fold_in(key, i))
            if i == 0 and bool(is_flat(grad, value, carry.x)):
                warn_of_zero_gradient("shooting")
            carry = descend(carry, value, grad, low, high)
            history.append(value)
            shown(value)
    bad = int(jnp.sum(~jnp.isfinite(jnp.stack(history))))
    warn_of_bad_costs("shooting", int(jnp.sum(jnp.isnan(jnp.stack(history)))), bad, iterations)
    if any(bool(jnp.any(count)) for count in jax.tree.leaves(carry.bad)):
        warn_of_bad_gradient("shooting", carry.bad, iterations)
    return OptimResult(carry.best, carry.least, jnp.stack(history))


class _Search(NamedTuple):
    """Point, state of the optimiser, best point and its cost, and how often each entry's gradient was not finite."""

    x: Any
    state: Any
    best: Any
    least: Array
    bad: Any


@lru_cache(maxsize=SHARED_PROGRAMS)
def _adam(rate: float, clip: float) -> Any:
    optax = require("optax", "shooting needs optax", "optim")
    return optax.chain(optax.clip_by_global_norm(clip), optax.adam(rate))


@lru_cache(maxsize=SHARED_PROGRAMS)
def _descent(optimizer: Any) -> Callable[..., _Search]:
    """One update by an optimiser, compiled once for each."""
    optax = require("optax", "shooting needs optax", "optim")

    @jax.jit
    def descend(s: _Search, value: Array, grad: Any, low: Any, high: Any) -> _Search:
        better = value < s.least
        best = jax.tree.map(lambda a, b: jnp.where(better, a, b), s.x, s.best)
        bad = jax.tree.map(lambda n, g: n + ~jnp.isfinite(g), s.bad, grad)
        grad = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0), grad)
        updates, state = optimizer.update(grad, s.state, s.x)
        x = jax.tree.map(jnp.clip, optax.apply_updates(s.x, updates), low, high)
        return _Search(x, state, best, jnp.where(better, value, s.least), bad)

    return descend
