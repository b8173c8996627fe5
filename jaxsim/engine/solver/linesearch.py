"""Exact line search: a root of the derivative of a convex, piecewise smooth function of one number."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.math.safe import Array, divide
from jaxsim.xla.loops import while_packed


class SearchLine(NamedTuple):
    """The problem along a + alpha p: residual r, rows z = J p, first and second derivative of the quadratic part at 0.

    Rows are an array or a PyTree of arrays.
    """

    r: Any
    z: Any
    derivative: Array
    curvature: Array


class SearchState(NamedTuple):
    alpha: Array
    derivative: Array
    noise: Array  # a bound on the rounding error of the derivative
    lo: Array  # the derivative is negative here
    hi: Array  # the derivative is positive here (infinity until found)
    step: Array  # Newton's next point
    count: Array


def ahead(r: Any, z: Any, alpha: Array) -> Any:
    """Return r + alpha z for rows."""
    return jax.tree.map(lambda r, z: r + alpha * z, r, z)


def line_search(
    along: Callable[[Any, Any], tuple[Array, Array, Array]],
    line: SearchLine,
    tolerance: Array,
    iterations: int,
    idle: Array,
    loop: Callable[..., SearchState] = while_packed,
) -> Array:
    """Find alpha with |derivative| below `tolerance`, by Newton's method safeguarded by a bracket.

    `along(r, z)` gives, for rows with residual r: the product of their force with z, the sum of the absolute terms, and
    the second derivative of their cost along z. A world that is `idle` takes its first guess, so that converged worlds
    of a batch do not prolong the loop. `loop(cond, body, state)` repeats its body.
    """

    def visit(alpha: Array, s: SearchState) -> SearchState:
        r = ahead(line.r, line.z, alpha)
        force, size, curvature = along(r, line.z)
        derivative = line.derivative + alpha * line.curvature - force
        curvature = line.curvature + curvature
        noise = eps * (jnp.abs(line.derivative) + jnp.abs(alpha * line.curvature) + size)
        lo = jnp.where(derivative < 0, alpha, s.lo)
        hi = jnp.where(derivative >= 0, alpha, s.hi)
        newton = alpha - divide(derivative, curvature)
        middle = jnp.where(jnp.isfinite(hi), 0.5 * (lo + hi), 2 * alpha + 1)
        step = jnp.where((newton > lo) & (newton < hi), newton, middle)
        return SearchState(alpha, derivative, noise, lo, hi, step, s.count + 1)

    def unfinished(s: SearchState) -> Array:
        exact = jnp.abs(s.derivative) <= jnp.maximum(tolerance, s.noise)
        return ~exact & ~idle & (s.count < iterations) & (s.lo < s.hi)

    eps = 4 * jnp.finfo(line.derivative.dtype).eps
    zero = jnp.zeros_like(line.derivative)
    start = SearchState(zero, zero, zero, zero, zero + jnp.inf, zero, zero)
    first = visit(jnp.ones_like(zero), start)
    return loop(unfinished, lambda s: visit(s.step, s), first).alpha
