"""One update of the noslip sweeps: the force of a row, or of the friction of a contact, that stops its slip.

Each update minimises 1/2 f'A f + f'b over the force of its block alone, within its bounds. The formulas use scalars and
no linear algebra library, so that the same code is differentiated, batched, and compiled as scalar code.
"""

import functools
import operator
from collections.abc import Iterable

import jax.numpy as jnp
from jax import lax

from jaxsim.core.types import MINVAL
from jaxsim.math.arrays import dot, inner
from jaxsim.math.safe import Array, divide, norm

COST_RISE = 1e-10  # an update that raises the cost by more is rejected
MULTIPLIER_STEPS = 20
MULTIPLIER_EXACT = 1e-10  # tolerance of the squared force on the cone, and least step of the multiplier


def visit_scalar(slip: Array, diagonal: Array, value: Array, limit: Array, paired: bool) -> tuple[Array, Array]:
    """Compute the force of a scalar row that stops its slip, and the improvement of the cost.

    Args:
        slip: acceleration along the row without its reference.
        diagonal: of A.
        value: force before.
        limit: largest size of the force.
        paired: whether the row is a pair of edges of a pyramid, not dry friction.
    """
    flat = diagonal < MINVAL
    step = slip / jnp.where(flat, jnp.where(paired, 1, MINVAL), diagonal)
    free = jnp.where(flat & paired, 0, value - step)
    new = jnp.minimum(jnp.maximum(free, -limit), limit)
    change = 0.5 * (new - value) ** 2 * diagonal + (new - value) * slip
    new = jnp.where(paired & (change > COST_RISE), value, new)
    return new, jnp.where(new != value, -change, 0)


def visit_cone(
    slip: Array, block: Array, friction: Array, active: Array, value: Array, normal: Array
) -> tuple[Array, Array]:
    """Compute the tangential forces (k,) of an elliptic contact and the improvement of the cost.

    Args:
        slip: acceleration along the tangents without their references (k,).
        block: A of the contact (k, k), made by `cone_block`.
        friction: coefficients (k,), one for inactive tangents.
        active: mask of active tangents (k,).
        value: tangential forces before (k,).
        normal: normal force.
    """
    slip = jnp.where(active, slip, 0)
    new = _in_cone(block, slip - dot(block, value), friction, normal, active)
    new = jnp.where((normal >= MINVAL) & active, new, 0)
    delta = new - value
    change = 0.5 * inner(delta, dot(block, delta)) + inner(delta, slip)
    return jnp.where(active & (change <= COST_RISE), new, value), jnp.where(change <= COST_RISE, -change, 0)


def cone_block(products: Array, active: Array) -> Array:
    """Return A of a contact (k, k) from the inner products of its rows.

    Inactive tangents get rows of the unit matrix.
    """
    both = active[:, None] & active[None, :]
    eye = jnp.eye(len(active), dtype=products.dtype)
    return jnp.where(eye > 0, jnp.where(both, jnp.maximum(products, COST_RISE), 1), jnp.where(both, products, 0))


def _in_cone(block: Array, b: Array, friction: Array, normal: Array, active: Array) -> Array:
    """Minimise 1/2 v'A v + v'b over sum (v / friction)^2 <= normal^2: (k,). Zero where A is close to singular."""
    scaled = block * friction[:, None] * friction[None, :]
    rhs = jnp.where(active, b * friction, 0)
    square = normal * normal
    singular, multiplier = _multiplier(*lax.stop_gradient((scaled, rhs, square)), jnp.sum(active))
    on_cone = multiplier > 0
    eye = jnp.eye(len(b), dtype=b.dtype)
    factor = _factor(jnp.where(singular, eye, scaled + multiplier * eye))
    v = -_solve(factor, rhs)
    # derivative of the multiplier: |v| stays equal to the radius of the cone
    moving = lax.stop_gradient(_solve(factor, v))
    curvature = lax.stop_gradient(inner(v, moving))
    excess = inner(v, v) - square
    moved = divide(excess - lax.stop_gradient(excess), 2 * curvature)
    v = v - jnp.where(on_cone, moved, 0) * moving
    v = v * jnp.where(on_cone, divide(normal, norm(v), 1.0), 1)
    return jnp.where(singular, 0, v * friction)


def _multiplier(a: Array, b: Array, square: Array, count: Array) -> tuple[Array, Array]:
    """Return whether A is nearly singular, and the multiplier l at which |(A + l)^-1 b| is the radius, zero inside."""
    _, pivots = _factor(a)
    least = functools.reduce(jnp.minimum, pivots)
    small = jnp.where(count > 3, least, functools.reduce(operator.mul, pivots)) < MULTIPLIER_EXACT
    singular = small | (least <= 0)
    eye = jnp.eye(len(b), dtype=b.dtype)
    safe = jnp.where(singular, eye, a)

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        _, done, turn = state
        return ~done & (turn < MULTIPLIER_STEPS)

    def improve(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        multiplier, _, turn = state
        factor = _factor(safe + multiplier * eye)
        v = _solve(factor, b)
        excess = inner(v, v) - square
        step = divide(excess, 2 * inner(v, _solve(factor, v)))
        done = (excess < MULTIPLIER_EXACT) | (step < MULTIPLIER_EXACT)
        return jnp.where(done, multiplier, multiplier + step), done, turn + 1

    start = (jnp.zeros_like(square), singular, jnp.zeros((), jnp.int32))
    return singular, lax.while_loop(unfinished, improve, start)[0]


def _factor(a: Array) -> tuple[list[list[Array]], list[Array]]:
    """Factor a symmetric matrix as L D L' (k, k), entry by entry.

    The unit diagonal of L is not stored.
    """
    lower, pivots = [], []
    for i in range(len(a)):
        row = []  # of L D, then of L
        for j in range(i):
            row.append(a[i, j] - _sum(x * y for x, y in zip(row, lower[j], strict=False)))
        scaled = [divide(x, d) for x, d in zip(row, pivots, strict=True)]
        pivots.append(a[i, i] - _sum(x * y for x, y in zip(row, scaled, strict=True)))
        lower.append(scaled)
    return lower, pivots


def _solve(factor: tuple[list[list[Array]], list[Array]], b: Array) -> Array:
    """Solve L D L' x = b for x (k,)."""
    lower, pivots = factor
    x = []
    for i, row in enumerate(lower):
        x.append(b[i] - _sum(y * z for y, z in zip(row, x, strict=True)))
    x = [divide(y, d) for y, d in zip(x, pivots, strict=True)]
    for i in reversed(range(len(x))):
        x[i] = x[i] - _sum(lower[j][i] * x[j] for j in range(i + 1, len(x)))
    return jnp.stack(x)


def _sum(terms: Iterable[Array]) -> Array | int:
    return functools.reduce(operator.add, terms, 0)
