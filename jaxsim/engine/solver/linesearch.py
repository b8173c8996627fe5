"""Exact line search: a root of the derivative of a convex, piecewise smooth function of one number."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.math.safe import Array, divide


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


def at_least_once(cond: Callable[..., Array], body: Callable[..., Any], state: Any) -> Any:
    """Repeat `state = body(state)` while `cond(state)`, the first time in any case and outside of the loop."""
    return lax.while_loop(cond, body, body(state))


def line_search(
    along: Callable[[Array], tuple[Array, Array, Array]],
    quadratic: tuple[Array, Array],
    tolerance: Array,
    iterations: int,
    idle: Array,
    loop: Callable[..., SearchState] = at_least_once,
) -> Array:
    """Find alpha with |derivative| below `tolerance`, by Newton's method safeguarded by a bracket.

    `along(alpha)` gives, for rows with residual r + alpha z, z = J p: the product of their force with z, the sum of the
    absolute terms, and the second derivative of their cost along z. `quadratic` are the first and second derivative of
    the quadratic part at 0. A world that is `idle` takes its first guess, so that converged worlds of a batch do not
    prolong the loop. `loop(cond, body, state)` repeats its body, at least once.
    """

    def visit(alpha: Array, s: SearchState) -> SearchState:
        force, size, of_rows = along(alpha)
        derivative = grad + alpha * quad - force
        curvature = quad + of_rows
        noise = eps * (jnp.abs(grad) + jnp.abs(alpha * quad) + size)
        lo = jnp.where(derivative < 0, alpha, s.lo)
        hi = jnp.where(derivative >= 0, alpha, s.hi)
        newton = alpha - divide(derivative, curvature)
        middle = jnp.where(jnp.isfinite(hi), 0.5 * (lo + hi), 2 * alpha + 1)
        step = jnp.where((newton > lo) & (newton < hi), newton, middle)
        return SearchState(alpha, derivative, noise, lo, hi, step, s.count + 1)

    def unfinished(s: SearchState) -> Array:
        exact = jnp.abs(s.derivative) <= jnp.maximum(tolerance, s.noise)
        return ~exact & ~idle & (s.count < iterations) & (s.lo < s.hi)

    grad, quad = quadratic
    eps = 4 * jnp.finfo(grad.dtype).eps
    zero = jnp.zeros_like(grad)
    start = SearchState(zero, zero, zero, zero, zero + jnp.inf, zero + 1, zero)
    return loop(unfinished, lambda s: visit(s.step, s), start).alpha
