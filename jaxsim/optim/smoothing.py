"""Randomised smoothing: gradient of the mean of a function over a Gaussian around the point, on a batch.

Suh et al., "Do Differentiable Simulators Give Better Policy Gradients?", ICML 2022.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from jaxsim.math.safe import Array, divide


def smoothed(
    f: Callable[[Any], Array], sigma: float, n: int, mode: str = "mixed", confidence: float = 3.0
) -> Callable[[Any, Array], tuple[Array, Any]]:
    """Make a function (x, key) -> value, gradient of E f(x + sigma w), w standard normal, by `n` antithetic pairs.

    `mode`: "first" averages gradients, which has a low variance but is biased at discontinuities and by stiff contacts.
    "zeroth" averages differences of values, which is unbiased wherever f is integrable. "mixed" weighs the two by their
    variances, entry by entry, and takes "zeroth" where they differ by more than `confidence` standard errors.
    """
    if mode not in ("first", "zeroth", "mixed"):
        raise ValueError(f'mode is {mode!r}; expected "first", "zeroth" or "mixed"')

    def estimate(x: Any, key: Array) -> tuple[Array, Any]:
        flat, unravel = ravel_pytree(x)
        noise = jax.random.normal(key, (n, flat.size), flat.dtype)
        points = jnp.concatenate([flat + sigma * noise, flat - sigma * noise])
        if mode == "zeroth":
            values, first = jax.vmap(lambda p: f(unravel(p)))(points), None
        else:
            values, first = jax.vmap(jax.value_and_grad(lambda p: f(unravel(p))))(points)
            first = 0.5 * (first[:n] + first[n:])
        zeroth = 0.5 * (values[:n] - values[n:])[:, None] * noise / sigma
        gradient = {"first": first, "zeroth": zeroth}.get(mode)
        gradient = _mix(first, zeroth, n, confidence) if gradient is None else gradient.mean(0)
        return values.mean(), unravel(gradient)

    return estimate


def _mix(first: Array, zeroth: Array, n: int, confidence: float) -> Array:
    """Mean gradient of samples (n, nx) of both estimators, each entry weighted by the other estimator's variance."""
    var1, var0 = first.var(0) / n, zeroth.var(0) / n
    g1, g0 = first.mean(0), zeroth.mean(0)
    weight = divide(var0, var0 + var1, default=0.5)
    biased = jnp.abs(g1 - g0) > confidence * jnp.sqrt(var0 + var1)
    weight = jnp.where(biased, 0, weight)
    return weight * g1 + (1 - weight) * g0
