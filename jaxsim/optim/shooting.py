"""Gradient descent through rollouts, on controls, policies or parameters (single shooting)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.core.describe import describe_struct
from jaxsim.core.extras import require
from jaxsim.math.safe import Array
from jaxsim.optim.progress import bar, warn_of_zero_gradient


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
        value_and_grad: replaces `jax.value_and_grad(cost)`, e.g. by `smoothed(...)`.
        progress: show a bar.

    Gradients that are not finite are replaced by zero. Warns where the first one is zero throughout.
    """
    optax = require("optax", "shooting needs optax", "optim")
    if isinstance(optimizer, (int, float)):
        optimizer = optax.chain(optax.clip_by_global_norm(clip), optax.adam(optimizer))
    evaluate = value_and_grad or jax.value_and_grad(cost)

    @jaxsim.jit
    def iterate(carry: tuple, key: Array | None) -> tuple[tuple, Array, Array]:
        x, state, best, least = carry
        value, grad = evaluate(x) if key is None else evaluate(x, key)
        better = value < least
        best = jax.tree.map(lambda a, b: jnp.where(better, a, b), x, best)
        grad = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0), grad)
        updates, state = optimizer.update(grad, state, x)
        x = _project(optax.apply_updates(x, updates), low, high)
        flat = ~jnp.any(jnp.array([jnp.any(g != 0) for g in jax.tree.leaves(grad)]))
        return (x, state, best, jnp.where(better, value, least)), value, flat

    x = _project(jax.tree.map(jnp.asarray, x), low, high)
    dtype = jax.tree.leaves(x)[0].dtype
    carry = (x, optimizer.init(x), x, jnp.asarray(jnp.inf, dtype))
    history = []
    with bar(iterations, "shooting", progress) as shown:
        for i in range(iterations):
            carry, value, flat = iterate(carry, None if key is None else jax.random.fold_in(key, i))
            if i == 0 and bool(flat):
                warn_of_zero_gradient("shooting")
            history.append(value)
            shown(value)
    return OptimResult(carry[2], carry[3], jnp.stack(history))


def _project(x: Any, low: Any, high: Any) -> Any:
    if low is None and high is None:
        return x
    return jax.tree.map(lambda v: jnp.clip(v, low, high), x)
