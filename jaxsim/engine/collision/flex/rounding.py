"""Products that a compiler does not contract with the sums that follow, so that they round as in MuJoCo's C.

Triangles that share an edge touch a sphere at the same point, and the last bit of their positions decides which contact
is kept. A product times one, where the one is a run-time value, is rounded before it is added.
"""

from typing import Any

import jax.numpy as jnp

from jaxsim.core.types import MINVAL
from jaxsim.engine.collision.shapes import min_length
from jaxsim.math.safe import Array, short_sum, sqrt


def run_time_one(m: Any) -> Array:
    """Return the number one as a run-time value that no compiler can fold."""
    return jnp.where(m.opt.timestep >= 0, 1.0, 2.0).astype(m.opt.timestep.dtype)


def dot(a: Array, b: Array, one: Array) -> Array:
    """Compute the inner product along the last axis, from left to right."""
    return short_sum(a * b * one)


def cross(a: Array, b: Array, one: Array) -> Array:
    """Compute the cross product along the last axis."""
    (x, y, z), (u, v, w) = ([t[..., k] for k in range(3)] for t in (a, b))
    return jnp.stack([y * w * one - z * v * one, z * u * one - x * w * one, x * v * one - y * u * one], axis=-1)


def direction(v: Array, one: Array) -> tuple[Array, Array]:
    """Return unit vectors and lengths; the x axis for vectors without direction. Source: mju_normalize3."""
    length = sqrt(dot(v, v, one))
    ok = length >= (MINVAL if v.dtype == jnp.float64 else min_length(v.dtype))
    inverse = 1 / jnp.where(ok, length, 1)
    return jnp.where(ok[..., None], v * inverse[..., None], jnp.array([1.0, 0, 0], v.dtype)), length


def along(start: Array, v: Array, by: Array, one: Array) -> Array:
    """Compute start + v by, for vectors (..., k) and numbers (...,)."""
    return start + v * by[..., None] * one


def turned(mat: Array, v: Array, one: Array) -> Array:
    """Multiply matrices (..., 3, 3) by vectors (..., 3)."""
    return dot(mat, v[..., None, :], one)


def turned_back(mat: Array, v: Array, one: Array) -> Array:
    """Multiply transposed matrices (..., 3, 3) by vectors (..., 3)."""
    return dot(jnp.swapaxes(mat, -1, -2), v[..., None, :], one)
