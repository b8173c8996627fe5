"""Smooth indicators that rewards are made of: one where a wish is met, falling to a given value at a given distance."""

import jax.numpy as jnp
import numpy as np

from jaxsim.math.safe import Array


def within(x: Array, low: float = 0.0, high: float = 0.0, margin: float = 0.0, at_margin: float = 0.1) -> Array:
    """One where `low <= x <= high`; beside it a bell curve that has fallen to `at_margin` at the distance `margin`.

    Without a margin it is a step. `low` or `high` may be infinite.
    """
    away = jnp.maximum(jnp.maximum(low - x, x - high), 0)
    if margin == 0:
        return jnp.where(away > 0, 0.0, 1.0).astype(x.dtype)
    return jnp.exp(np.log(at_margin) * jnp.square(away / margin))


def ramp(x: Array, low: float, high: float) -> Array:
    """Zero up to `low`, one from `high`, linear between."""
    return jnp.clip((x - low) / (high - low), 0, 1)


def small(x: Array, margin: float = 1.0) -> Array:
    """Mean over the entries of `x` of a parabola: one at zero, zero from `margin` on."""
    return jnp.mean(jnp.maximum(0, 1 - jnp.square(x / margin)))
