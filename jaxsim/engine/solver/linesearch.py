"""Exact search along a direction: a root of the derivative of a convex, piecewise smooth function of one number."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.engine.solver.problem import ConstraintProblem, curvature, curvature_along, force
from jaxsim.layout import Layout
from jaxsim.math.safe import Array, divide


class Ray(NamedTuple):
    """The problem along a + alpha p: residual r, rows z = J p, and the quadratic part's slope and curvature at 0."""

    r: Array
    z: Array
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


def line_search(
    layout: Layout, p: ConstraintProblem, ray: Ray, tolerance: Array, iterations: int, idle: Array
) -> Array:
    """alpha with |derivative| below `tolerance`, by Newton's method kept inside a bracket.

    A world that is `idle` takes its first guess: in a batch, those that are done must not keep the others waiting.
    """

    def visit(alpha: Array, s: Search) -> Search:
        r = ray.r + alpha * ray.z
        push = force(layout, p, r) * ray.z
        slope = ray.slope + alpha * ray.bend - jnp.sum(push)
        noise = eps * (jnp.abs(ray.slope) + jnp.abs(alpha * ray.bend) + jnp.sum(jnp.abs(push)))
        bend = ray.bend + curvature_along(layout, curvature(layout, p, r), ray.z)
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
    start = Search(zero, zero, zero, zero, zero + jnp.inf, zero, jnp.zeros((), jnp.int32))
    first = visit(jnp.ones_like(zero), start)
    found = jax.lax.while_loop(unfinished, lambda s: visit(s.step, s), first)
    return found.alpha
