"""Gradient descent through rollouts, on controls, policies or parameters (single shooting)."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.core.extras import require
from jaxsim.math.safe import Array
from jaxsim.optim.arguments import SHARED_PROGRAMS, floats, is_compiled, limits, plain
from jaxsim.optim.options import Iteration, Result, Shooting, takes_options
from jaxsim.optim.progress import (
    is_flat,
    is_traced,
    listen,
    report,
    warn_of_bad_costs,
    warn_of_bad_gradient,
    warn_of_zero_gradient,
)


@takes_options
def shoot(
    cost: Callable[..., Array],
    x: Any,
    options: Shooting | None = None,
    *,
    low: Any = None,
    high: Any = None,
    key: Array | None = None,
    value_and_grad: Callable | None = None,
    callback: Callable[[Iteration], None] | None = None,
    progress: bool = False,
) -> Result:
    """Minimise `cost(x)` over a PyTree by an optax optimiser, projected to [low, high] after every update.

    Args:
        cost: x -> scalar; (x, key) -> scalar when `key` is given, with a new key every iteration.
        low: lower limits, a number or an array for all leaves, or limits in the structure of `x`.
        high: upper limits, likewise.
        value_and_grad: replaces `jax.value_and_grad(cost)`, e.g. by `smoothed(...)`.
        callback: called with an `Iteration` after each.
        progress: show a bar.

    Gradients that are not finite are replaced by zero, with a warning that names them. Warns if the first gradient is
    only rounding error. A function that is already jitted is compiled here once in a process. Pure: it can be batched
    and be part of a program; there it does not warn.
    """
    options = options or Shooting()
    x = floats(x)
    if not is_traced(low, high):
        low, high = limits(low, high, x, "shooting")
    function, differentiate = (cost, True) if value_and_grad is None else (value_and_grad, False)
    if is_traced(x, low, high, key, options):
        return descend(plain(function), differentiate, x, options, low, high, key)[0]
    with listen(options.iterations, "shooting", progress, callback) as watched:
        run = (_shared if is_compiled(function) else _program)(function, differentiate, watched)
        result, end = run(x, options, low, high, key)
    if bool(end.flat):
        warn_of_zero_gradient("shooting")
    warn_of_bad_costs("shooting", int(end.nans), int(end.infinite), options.iterations)
    if any(bool(jnp.any(count)) for count in jax.tree.leaves(end.bad)):
        warn_of_bad_gradient("shooting", end.bad, options.iterations)
    return result


def _program(function: Any, differentiate: bool, watched: bool) -> Callable[..., tuple]:
    return jaxsim.jit(lambda *args: descend(plain(function), differentiate, *args, watched=watched))


_shared = lru_cache(maxsize=SHARED_PROGRAMS)(_program)


class _Search(NamedTuple):
    """Point, state of the optimiser, the best point and its cost, and what was not as it should be."""

    x: Any
    state: Any
    best: Any
    least: Array
    bad: Any  # how often each entry of the gradient was not finite
    nans: Array
    infinite: Array
    flat: Array


def descend(
    function: Callable[..., Any],
    differentiate: bool,
    x: Any,
    options: Shooting,
    low: Any,
    high: Any,
    key: Array | None,
    watched: bool = False,
) -> tuple[Result, _Search]:
    """Find the best of all points that the optimiser visits; return it and the last state of the loop."""
    optax = require("optax", "shooting needs optax", "optim")
    optimizer = options.optimizer or optax.chain(optax.clip_by_global_norm(options.clip), optax.adam(options.rate))
    evaluate = jax.value_and_grad(function) if differentiate else function
    x = jax.tree.map(jnp.clip, x, low, high)
    least = jnp.asarray(jnp.inf, jax.tree.leaves(x)[0].dtype)
    none, no = jnp.zeros((), int), jnp.asarray(False)
    begin = _Search(x, optimizer.init(x), x, least, jax.tree.map(lambda v: jnp.zeros(v.shape, int), x), none, none, no)

    def iterate(s: _Search, i: Array) -> tuple[_Search, Array]:
        value, grad = evaluate(s.x) if key is None else evaluate(s.x, jax.random.fold_in(key, i))
        value = value.astype(least.dtype)
        flat = s.flat | ((i == 0) & is_flat(grad, value, s.x))
        better = value < s.least
        best = jax.tree.map(lambda a, b: jnp.where(better, a, b), s.x, s.best)
        bad = jax.tree.map(lambda n, g: n + ~jnp.isfinite(g), s.bad, grad)
        grad = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0), grad)
        updates, state = optimizer.update(grad, s.state, s.x)
        new = jax.tree.map(jnp.clip, optax.apply_updates(s.x, updates), low, high)
        least_now = jnp.where(better, value, s.least)
        report(watched, i + 1, value, 0.0, s.x)
        nans, infinite = s.nans + jnp.isnan(value), s.infinite + ~jnp.isfinite(value)
        return _Search(new, state, best, least_now, bad, nans, infinite, flat), value

    end, values = jax.lax.scan(iterate, begin, jnp.arange(options.iterations))
    history = jnp.concatenate([values, end.least[None]])
    return Result(end.best, end.least, history, False, options.iterations), end
