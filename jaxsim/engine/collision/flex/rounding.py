"""Products that a compiler does not contract with the sums that follow, so that they round as in MuJoCo's C.

Triangles that share an edge touch a sphere at the same point. Which of them is kept of too many contacts depends on the
last bit of their positions. A product times a one that is known at run time only is rounded before it is added.
"""

from typing import Any

import jax.numpy as jnp

from jaxsim.core.types import MINVAL
from jaxsim.engine.collision.shapes import min_length
from jaxsim.math.safe import Array, short_sum, sqrt


def run_time_one(m: Any) -> Array:
    """The number one, which no compiler can know."""
    return jnp.where(m.opt.timestep >= 0, 1.0, 2.0).astype(m.opt.timestep.dtype)


def dot(a: Array, b: Array, one: Array) -> Array:
    """Inner product along the last axis, from left to right."""
    return short_sum(a * b * one)


def cross(a: Array, b: Array, one: Array) -> Array:
    """Cross product along the last axis."""
    (x, y, z), (u, v, w) = ([t[..., k] for k in range(3)] for t in (a, b))
    return jnp.stack([y * w * one - z * v * one, z * u * one - x * w * one, x * v * one - y * u * one], axis=-1)


def direction(v: Array, one: Array) -> tuple[Array, Array]:
    """Unit vectors and lengths; the x axis for vectors without direction. Source: mju_normalize3."""
    length = sqrt(dot(v, v, one))
    ok = length >= (MINVAL if v.dtype == jnp.float64 else min_length(v.dtype))
    inverse = 1 / jnp.where(ok, length, 1)
    return jnp.where(ok[..., None], v * inverse[..., None], jnp.array([1.0, 0, 0], v.dtype)), length


def along(start: Array, v: Array, by: Array, one: Array) -> Array:
    """start + v by, for vectors (..., k) and numbers (...,)."""
    return start + v * by[..., None] * one


def turned(mat: Array, v: Array, one: Array) -> Array:
    """Products of matrices (..., 3, 3) and vectors (..., 3)."""
    return dot(mat, v[..., None, :], one)


def turned_back(mat: Array, v: Array, one: Array) -> Array:
    """Products of transposed matrices (..., 3, 3) and vectors (..., 3)."""
    return dot(jnp.swapaxes(mat, -1, -2), v[..., None, :], one)
