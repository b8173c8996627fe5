"""Gradient-free optimisers on a batch: MPPI and the cross-entropy method."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.math.safe import Array
from jaxsim.optim.arguments import compiled, floats, limits
from jaxsim.optim.progress import bar, warn_of_bad_costs
from jaxsim.optim.shooting import OptimResult

Cost = Callable[[Array], Array]


def mppi(
    cost: Cost,
    mean: Array,
    key: Array,
    *,
    sigma: float | Array,
    n: int = 64,
    temperature: float = 0.1,
    iterations: int = 50,
    low: float | Array = -jnp.inf,
    high: float | Array = jnp.inf,
    progress: bool = False,
) -> OptimResult:
    """Minimise by model predictive path integral: the mean of samples weighted by exp(-cost / temperature), iterated.

    Costs are shifted and scaled to [0, 1] within the batch before they are weighted, so `temperature` has no unit.
    Samples whose cost is not finite are left out; NaN warns. Williams et al., "Information Theoretic MPC", ICRA 2017.
    """
    return _iterate("MPPI", _mppi, cost, mean, key, sigma, (temperature,), n, iterations, low, high, progress)


def cem(
    cost: Cost,
    mean: Array,
    key: Array,
    *,
    sigma: float | Array,
    n: int = 64,
    elites: int = 8,
    iterations: int = 50,
    low: float | Array = -jnp.inf,
    high: float | Array = jnp.inf,
    floor: float = 1e-3,
    progress: bool = False,
) -> OptimResult:
    """Minimise by the cross-entropy method: a diagonal Gaussian fitted to the `elites` best of `n` samples, iterated.

    `floor` is the least standard deviation. Samples whose cost is not finite are left out; NaN warns. de Boer et al.,
    "A Tutorial on the Cross-Entropy Method", 2005.
    """
    if not 0 < elites <= n:
        raise ValueError(f"CEM: elites is {elites}; expected 1 to n = {n}")
    return _iterate("CEM", _cem, cost, mean, key, sigma, (elites, floor), n, iterations, low, high, progress)


def _mppi(mean: Array, deviation: Array, samples: Array, costs: Array, temperature: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the next samples; costs are infinite where a sample is left out."""
    good = jnp.isfinite(costs)
    least = jnp.min(costs)
    spread = jnp.maximum(jnp.max(jnp.where(good, costs, -jnp.inf)) - least, 1e-12)
    weight = jax.nn.softmax(jnp.where(good, -(costs - least) / (temperature * spread), -jnp.inf))
    return jnp.tensordot(weight, samples, 1), deviation


def _cem(
    mean: Array, deviation: Array, samples: Array, costs: Array, elites: Array, floor: Array
) -> tuple[Array, Array]:
    """Mean and standard deviation of the best samples; costs are infinite where a sample is left out.

    Where fewer than the elites are left, the deviation stays: of one sample it would be zero.
    """
    order = jnp.argsort(costs)
    chosen = (jnp.arange(len(costs)) < elites) & jnp.isfinite(costs[order])
    weight = chosen / jnp.sum(chosen)
    best = jnp.where(chosen.reshape(-1, *[1] * mean.ndim), samples[order], 0)
    centre = jnp.tensordot(weight, best, 1)
    spread = jnp.maximum(jnp.sqrt(jnp.tensordot(weight, (best - centre) ** 2, 1)), floor)
    return centre, jnp.where(jnp.sum(chosen) < elites, deviation, spread)


@partial(jax.jit, static_argnames="n")
def _draw(mean: Array, deviation: Array, key: Array, low: Array, high: Array, n: int) -> Array:
    """Samples (n, ...), the first of them the mean itself."""
    noise = jax.random.normal(key, (n, *mean.shape), mean.dtype).at[0].set(0)
    return jnp.clip(mean + deviation * noise, low, high)


@partial(jax.jit, static_argnums=0)
def _advance(update: Callable, carry: tuple, samples: Array, costs: Array, parameters: tuple) -> tuple:
    """The next mean and deviation, the best sample and its cost, and how many costs were NaN and not finite."""
    mean, deviation, best, least, nans, bad = carry
    good = jnp.isfinite(costs)
    nans, bad = nans + jnp.sum(jnp.isnan(costs)), bad + jnp.sum(~good)
    costs = jnp.where(good, costs, jnp.inf)
    first = jnp.argmin(costs)
    better = costs[first] < least
    best, least = jnp.where(better, samples[first], best), jnp.where(better, costs[first], least)
    new = update(mean, deviation, samples, costs, *parameters)
    mean, deviation = (jnp.where(good.any(), a, b) for a, b in zip(new, (mean, deviation), strict=True))
    return mean, deviation, best, least, nans, bad


def _iterate(
    name: str,
    update: Callable[..., tuple[Array, Array]],
    cost: Cost,
    mean: Any,
    key: Array,
    sigma: float | Array,
    parameters: tuple,
    n: int,
    iterations: int,
    low: Any,
    high: Any,
    progress: bool,
) -> OptimResult:
    """Best sample of iterated draws, evaluations and updates; the mean itself is always one of the samples.

    A cost that is not finite counts as worse than all others, and its sample is left out of the update.
    """
    mean = floats(jnp.asarray(mean))
    low, high = limits(low, high, mean, name)
    sigma = jnp.broadcast_to(jnp.asarray(sigma, mean.dtype), mean.shape)
    batch = compiled(jax.vmap, cost)
    zero = jnp.zeros((), int)
    carry = (mean, sigma, mean, jnp.asarray(jnp.inf, mean.dtype), zero, zero)
    history = []
    with bar(iterations, name, progress) as shown:
        for i in range(iterations):
            samples = _draw(carry[0], carry[1], jax.random.fold_in(key, i), low, high, n)
            carry = _advance(update, carry, samples, batch(samples), parameters)
            history.append(carry[3])
            shown(carry[3])
    warn_of_bad_costs(name, int(carry[4]), int(carry[5]), n * iterations)
    return OptimResult(carry[2], carry[3], jnp.stack(history))
