"""Gradient-free optimisers on a batch: MPPI and the cross-entropy method."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxsim.math.safe import Array
from jaxsim.optim.progress import bar
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
    Williams et al., "Information Theoretic MPC", ICRA 2017.
    """

    def update(mean: Array, samples: Array, costs: Array) -> tuple[Array, Array]:
        spread = jnp.maximum(jnp.max(costs) - jnp.min(costs), 1e-12)
        weight = jax.nn.softmax(-(costs - jnp.min(costs)) / (temperature * spread))
        return jnp.tensordot(weight, samples, 1), jnp.broadcast_to(jnp.asarray(sigma, mean.dtype), mean.shape)

    return _iterate("MPPI", cost, mean, sigma, key, n, iterations, low, high, update, progress)


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

    `floor` is the least standard deviation. de Boer et al., "A Tutorial on the Cross-Entropy Method", 2005.
    """

    def update(mean: Array, samples: Array, costs: Array) -> tuple[Array, Array]:
        best = samples[jnp.argsort(costs)[:elites]]
        return best.mean(0), jnp.maximum(best.std(0), floor)

    return _iterate("CEM", cost, mean, sigma, key, n, iterations, low, high, update, progress)


def _iterate(name, cost, mean, sigma, key, n, iterations, low, high, update, progress) -> OptimResult:
    """Best sample of iterated draws, evaluations and updates; the mean itself is always one of the samples.

    A cost that is not finite counts as worse than all others.
    """
    mean = jnp.asarray(mean)
    batch = jax.vmap(cost)

    @jax.jit
    def iterate(carry: tuple, key: Array) -> tuple[tuple, Array]:
        mean, deviation, best, least = carry
        noise = jax.random.normal(key, (n, *mean.shape), mean.dtype).at[0].set(0)
        samples = jnp.clip(mean + deviation * noise, low, high)
        costs = batch(samples)
        bad = ~jnp.isfinite(costs)
        costs = jnp.where(bad, jnp.max(jnp.where(bad, -jnp.inf, costs)) + 1, costs)
        first = jnp.argmin(costs)
        better = costs[first] < least
        best, least = jnp.where(better, samples[first], best), jnp.where(better, costs[first], least)
        return (*update(mean, samples, costs), best, least), least

    deviation = jnp.broadcast_to(jnp.asarray(sigma, mean.dtype), mean.shape)
    carry = (mean, deviation, mean, jnp.asarray(jnp.inf, mean.dtype))
    history = []
    with bar(iterations, name, progress) as shown:
        for i in range(iterations):
            carry, value = iterate(carry, jax.random.fold_in(key, i))
            history.append(value)
            shown(value)
    return OptimResult(carry[2], carry[3], jnp.stack(history))
