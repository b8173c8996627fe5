"""Gradient-free optimisers on a batch: MPPI and the cross-entropy method."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.math.safe import Array
from jaxsim.optim.arguments import SHARED_PROGRAMS, floats, is_compiled, limits, plain
from jaxsim.optim.options import Cem, Iteration, Mppi, Result, takes_options
from jaxsim.optim.progress import is_traced, listen, report, warn_of_bad_costs

Cost = Callable[[Array], Array]
Options = Mppi | Cem


@takes_options
def mppi(
    cost: Cost,
    mean: Array,
    key: Array,
    options: Mppi | None = None,
    *,
    low: Any = None,
    high: Any = None,
    callback: Callable[[Iteration], None] | None = None,
    progress: bool = False,
) -> Result:
    """Minimise by model predictive path integral: the mean of samples weighted by exp(-cost / temperature), iterated.

    Costs are shifted and scaled to [0, 1] within the batch before they are weighted, so `temperature` has no unit.
    Samples whose cost is not finite are left out; NaN warns. Pure: it can be batched, and be part of a program.
    Williams et al., "Information Theoretic MPC", ICRA 2017.
    """
    return _minimise("MPPI", cost, mean, key, options or Mppi(), low, high, callback, progress)


@takes_options
def cem(
    cost: Cost,
    mean: Array,
    key: Array,
    options: Cem | None = None,
    *,
    low: Any = None,
    high: Any = None,
    callback: Callable[[Iteration], None] | None = None,
    progress: bool = False,
) -> Result:
    """Minimise by the cross-entropy method: a diagonal Gaussian fitted to the best samples, iterated.

    de Boer et al., "A Tutorial on the Cross-Entropy Method", 2005. Otherwise like `mppi`.
    """
    options = options or Cem()
    if not is_traced(options.elites) and not 0 < options.elites <= options.samples:
        raise ValueError(f"CEM: elites is {options.elites}; expected 1 to samples = {options.samples}")
    return _minimise("CEM", cost, mean, key, options, low, high, callback, progress)


class _Draws(NamedTuple):
    """Mean and deviation of the next samples, the best one so far with its cost, and how many were not finite."""

    mean: Array
    deviation: Array
    best: Array
    least: Array
    nans: Array
    bad: Array


def _minimise(
    name: str,
    cost: Cost,
    mean: Any,
    key: Array,
    options: Options,
    low: Any,
    high: Any,
    callback: Callable[[Iteration], None] | None,
    progress: bool,
) -> Result:
    mean = floats(jnp.asarray(mean))
    if not is_traced(low, high):
        low, high = limits(low, high, mean, name)
    if options.sigma is None and not is_traced(low, high) and not np.isfinite([low, high]).all():
        raise ValueError(f"{name}: give sigma, the deviation of samples, where there are no limits low and high")
    if is_traced(mean, key, options, low, high):
        return search(plain(cost), mean, key, options, low, high)[0]
    with listen(options.iterations, name, progress, callback) as watched:
        run = _shared(cost, watched) if is_compiled(cost) else _program(cost, watched)
        result, nans, bad = run(mean, key, options, low, high)
    warn_of_bad_costs(name, int(nans), int(bad), options.samples * options.iterations)
    return result


def _program(cost: Any, watched: bool) -> Callable[..., tuple]:
    return jaxsim.jit(lambda *args: search(plain(cost), *args, watched=watched))


_shared = lru_cache(maxsize=SHARED_PROGRAMS)(_program)


def search(
    cost: Cost, mean: Array, key: Array, options: Options, low: Array, high: Array, watched: bool = False
) -> tuple[Result, Array, Array]:
    """Find the best sample of iterated draws, evaluations and updates; the mean itself is always one of the samples.

    A cost that is not finite is worse than all others, and its sample is left out of the update.
    """
    sigma = 0.15 * (high - low) if options.sigma is None else options.sigma
    low, high = jnp.broadcast_to(low, mean.shape), jnp.broadcast_to(high, mean.shape)
    zero = jnp.zeros((), int)
    least = jnp.asarray(jnp.inf, mean.dtype)
    begin = _Draws(mean, jnp.broadcast_to(jnp.asarray(sigma, mean.dtype), mean.shape), mean, least, zero, zero)
    update = _elites if isinstance(options, Cem) else _weighted

    def iterate(s: _Draws, i: Array) -> tuple[_Draws, Array]:
        noise = jax.random.normal(jax.random.fold_in(key, i), (options.samples, *mean.shape), mean.dtype).at[0].set(0)
        samples = jnp.clip(s.mean + s.deviation * noise, low, high)
        costs = jax.vmap(cost)(samples).astype(mean.dtype)
        good = jnp.isfinite(costs)
        nans, bad = s.nans + jnp.sum(jnp.isnan(costs)), s.bad + jnp.sum(~good)
        costs = jnp.where(good, costs, jnp.inf)
        first = jnp.argmin(costs)
        better = costs[first] < s.least
        best, least = jnp.where(better, samples[first], s.best), jnp.where(better, costs[first], s.least)
        new = update(s, samples, costs, options)
        centre, deviation = (jnp.where(good.any(), a, b) for a, b in zip(new, (s.mean, s.deviation), strict=True))
        report(watched, i + 1, least, 0.0, best)
        return _Draws(centre, deviation, best, least, nans, bad), jnp.stack([costs[0], least])

    end, costs = jax.lax.scan(iterate, begin, jnp.arange(options.iterations))
    history = jnp.concatenate([costs[:1, 0], costs[:, 1]])
    return Result(end.best, end.least, history, False, options.iterations), end.nans, end.bad


def _weighted(s: _Draws, samples: Array, costs: Array, options: Any) -> tuple[Array, Array]:
    """Mean and standard deviation of the next samples; costs are infinite where a sample is left out."""
    good = jnp.isfinite(costs)
    least = jnp.min(costs)
    spread = jnp.maximum(jnp.max(jnp.where(good, costs, -jnp.inf)) - least, 1e-12)
    weight = jax.nn.softmax(jnp.where(good, -(costs - least) / (options.temperature * spread), -jnp.inf))
    return jnp.tensordot(weight, samples, 1), s.deviation


def _elites(s: _Draws, samples: Array, costs: Array, options: Any) -> tuple[Array, Array]:
    """Mean and standard deviation of the best samples; costs are infinite where a sample is left out.

    Where fewer than the elites are left, the deviation stays: of one sample it would be zero.
    """
    order = jnp.argsort(costs)
    chosen = (jnp.arange(len(costs)) < options.elites) & jnp.isfinite(costs[order])
    weight = chosen / jnp.sum(chosen)
    best = jnp.where(chosen.reshape(-1, *[1] * s.mean.ndim), samples[order], 0)
    centre = jnp.tensordot(weight, best, 1)
    spread = jnp.maximum(jnp.sqrt(jnp.tensordot(weight, (best - centre) ** 2, 1)), options.floor)
    return centre, jnp.where(jnp.sum(chosen) < options.elites, s.deviation, spread)
