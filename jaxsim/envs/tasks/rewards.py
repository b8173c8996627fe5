"""Smooth indicator functions for rewards: one where a condition is met, falling off with the distance from it."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.math.safe import Array


def within(x: Array, low: float = 0.0, high: float = 0.0, margin: float = 0.0, at_margin: float = 0.1) -> Array:
    """Return one where `low <= x <= high`, outside a Gaussian that is `at_margin` at the distance `margin`.

    With a margin of zero it is a step function. `low` or `high` may be infinite.
    """
    distance = jnp.maximum(jnp.maximum(low - x, x - high), 0)
    if margin == 0:
        return jnp.where(distance > 0, 0.0, 1.0).astype(x.dtype)
    return jnp.exp(np.log(at_margin) * jnp.square(distance / margin))


def ramp(x: Array, low: float, high: float) -> Array:
    """Zero below `low`, one above `high`, linear between.

    Below `low` its derivative is that of the line, so that gradient descent reaches the ramp; above `high` it is zero.
    """
    line = jnp.minimum((x - low) / (high - low), 1)
    return line + jax.lax.stop_gradient(jnp.maximum(line, 0) - line)


def small(x: Array, margin: float = 1.0) -> Array:
    """Average max(0, 1 - (x / margin)^2) over the entries of `x`."""
    return jnp.mean(jnp.maximum(0, 1 - jnp.square(x / margin)))
