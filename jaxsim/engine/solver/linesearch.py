"""Exact search along a direction: a root of the derivative of a convex, piecewise smooth function of one number."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.math.safe import Array, divide
from jaxsim.xla.loops import while_packed


class Ray(NamedTuple):
    """The problem along a + alpha p: residual r, rows z = J p, and the quadratic part's slope and curvature at 0.

    Rows are an array or a PyTree of arrays.
    """

    r: Any
    z: Any
    slope: Array
    bend: Array


class Search(NamedTuple):
    alpha: Array
    slope: Array
    noise: Array  # what rounding alone can make of the slope
    lo: Array  # the derivative is negative here
    hi: Array  # and positive here (infinity until found)
    step: Array  # Newton's next point
    count: Array


def ahead(r: Any, z: Any, alpha: Array) -> Any:
    """r + alpha z of rows."""
    return jax.tree.map(lambda r, z: r + alpha * z, r, z)


def line_search(
    along: Callable[[Any, Any], tuple[Array, Array, Array]],
    ray: Ray,
    tolerance: Array,
    iterations: int,
    idle: Array,
    loop: Callable[..., Search] = while_packed,
) -> Array:
    """alpha with |derivative| below `tolerance`, by Newton's method kept inside a bracket.

    `along(r, z)` of rows with residual r: the product of their force with z, the sum of the sizes of its terms, and the
    second derivative of their cost along z. A world that is `idle` takes its first guess: in a batch, those that are
    done must not keep the others waiting. `loop(cond, body, state)` repeats its body.
    """

    def visit(alpha: Array, s: Search) -> Search:
        r = ahead(ray.r, ray.z, alpha)
        push, size, curvature = along(r, ray.z)
        slope, bend = ray.slope + alpha * ray.bend - push, ray.bend + curvature
        noise = eps * (jnp.abs(ray.slope) + jnp.abs(alpha * ray.bend) + size)
        lo = jnp.where(slope < 0, alpha, s.lo)
        hi = jnp.where(slope >= 0, alpha, s.hi)
        newton = alpha - divide(slope, bend)
        middle = jnp.where(jnp.isfinite(hi), 0.5 * (lo + hi), 2 * alpha + 1)
        step = jnp.where((newton > lo) & (newton < hi), newton, middle)
        return Search(alpha, slope, noise, lo, hi, step, s.count + 1)

    def unfinished(s: Search) -> Array:
        exact = jnp.abs(s.slope) <= jnp.maximum(tolerance, s.noise)
        return ~exact & ~idle & (s.count < iterations) & (s.lo < s.hi)

    eps = 4 * jnp.finfo(ray.slope.dtype).eps
    zero = jnp.zeros_like(ray.slope)
    start = Search(zero, zero, zero, zero, zero + jnp.inf, zero, zero)
    first = visit(jnp.ones_like(zero), start)
    return loop(unfinished, lambda s: visit(s.step, s), first).alpha
