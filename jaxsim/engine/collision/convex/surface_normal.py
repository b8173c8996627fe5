"""Contact normals from the surfaces of curved shapes, for one pair. Source: mjc_fixNormal.

MPR gives a normal along the line between the centres. With a sphere, a capsule, an ellipsoid or the side of a cylinder
in the pair, it is replaced by the surface's own normal near the contact, or by the mean of both.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import MINVAL, GeomType
from jaxsim.engine.collision.convex.support import ConvexShape
from jaxsim.engine.collision.shapes import unit
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.jvp import with_derivatives_of
from jaxsim.math.safe import Array

ELLIPSOID_ITERATIONS = 30  # of the searches for the nearest point of an ellipsoid
ELLIPSOID_TOLERANCE = 1e-6  # at which they end
CYLINDER_WALL_FRACTION = 0.95  # of a cylinder's half length that counts as its side
CYLINDER_CAP_RATIO = 0.25  # of the distances to cap and side, below which the contact is the cap's


def surface_normal(types: tuple[int, ...], a: ConvexShape, b: ConvexShape, pos: Array, normal: Array) -> Array:
    """Find the normal (3,) of a contact at `pos` (3,) by the surfaces, or `normal` if neither shape is curved."""
    (normal1, has1), (normal2, has2) = _shape_normal(types, a, pos, normal), _shape_normal(types, b, pos, -normal)
    mean = unit(normal1 - normal2)[0]
    return jnp.where(has1 & has2, mean, jnp.where(has1, normal1, jnp.where(has2, -normal2, normal)))


def _shape_normal(types: tuple[int, ...], s: ConvexShape, pos: Array, normal: Array) -> tuple[Array, Array]:
    """The outward normal of one shape's surface near a point, and whether that shape defines one."""
    p, n = matvec_t(s.mat, pos - s.pos), matvec_t(s.mat, normal)
    radial = p * np.array([1, 1, 0], p.dtype)
    has_normal = jnp.array(False)
    out = n
    for geom_type in types:
        if geom_type == GeomType.SPHERE:
            surface, is_known = unit(p)[0], True
        elif geom_type == GeomType.CAPSULE:
            surface, is_known = unit(p - jnp.clip(p[2], -s.size[1], s.size[1]) * np.array([0, 0, 1], p.dtype))[0], True
        elif geom_type == GeomType.CYLINDER:
            cap, wall = jnp.abs(s.size[1] - jnp.abs(p[2])), jnp.abs(s.size[0] - safe.norm(radial))
            surface = unit(radial)[0]
            is_known = (jnp.abs(p[2]) <= CYLINDER_WALL_FRACTION * s.size[1]) & (cap >= CYLINDER_CAP_RATIO * wall)
        elif geom_type == GeomType.ELLIPSOID:
            surface, is_known = _ellipsoid_normal(s.size, p, n)
        else:
            continue
        applies = (s.type == geom_type) & is_known
        out, has_normal = jnp.where(applies, surface, out), has_normal | applies
    return matvec(s.mat, out), has_normal


def _ellipsoid_normal(size: Array, p: Array, n: Array) -> tuple[Array, Array]:
    """The normal at the point q of an ellipsoid nearest to p (3,), searched from n, and whether there is one.

    Differentiable by size and p: p = q + multiplier q / size^2.
    """
    surface, ok, multiplier = _nearest_normal(*lax.stop_gradient((size, p, n)))
    moving = unit(safe.divide(p, size * size + _multiplier(size, p, multiplier)))[0]
    return jnp.where(ok, with_derivatives_of(moving, surface), n), ok


@jax.custom_jvp
def _multiplier(size: Array, p: Array, multiplier: Array) -> Array:
    """The multiplier of the constraint that the nearest point is on the ellipsoid, differentiable by size and p."""
    return multiplier


@_multiplier.defjvp
def _multiplier_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    def constraint(size: Array, p: Array, multiplier: Array) -> Array:
        return jnp.sum((p * size * safe.divide(1.0, size * size + multiplier)) ** 2)

    size, p, multiplier = primals
    out = _multiplier(size, p, multiplier)
    by_multiplier = jax.grad(constraint, argnums=2)(size, p, out)
    _, moved = jax.jvp(lambda size, p: constraint(size, p, out), (size, p), tangents[:2])
    return out, -safe.divide(moved, by_multiplier)


def _nearest_normal(size: Array, p: Array, n: Array) -> tuple[Array, Array, Array]:
    """The normal at the nearest point, whether there is one, and the Lagrange multiplier."""
    is_valid = jnp.all(size >= MINVAL)
    size = jnp.where(is_valid, size, 1)
    scaled = p / size
    inside = inner(scaled, scaled) <= 1
    from_inside, ok, depth = _normal_inside(size, p, n, inside)
    multiplier = jnp.where(inside, depth, _multiplier_outside(size, p, ~inside))
    surface = jnp.where(inside, from_inside, unit(p / (size * size + jnp.where(inside, 0, multiplier)))[0])
    return surface, is_valid & (ok | ~inside), multiplier


def _normal_inside(size: Array, p: Array, n: Array, active: Array) -> tuple[Array, Array, Array]:
    """From inside: the normal where a ray along the last normal leaves, iterated; success; the multiplier."""
    weight = 1 / (size * size)
    c = inner(p * weight, p) - 1

    def leave(n: Array) -> tuple[Array, Array, Array]:
        a, b = inner(n * weight, n), inner(p * weight, n)
        det = b * b - a * c
        ok = (det >= MINVAL) & (a >= MINVAL)
        x = (jnp.sqrt(jnp.where(ok, det, 1)) - b) / jnp.where(ok, a, 1)
        return x, ok & (x >= 0), (p + x * n) * weight

    def step(s: tuple) -> tuple:
        n, k, ok, _ = s
        _, good, gradient = leave(n)
        new = unit(gradient)[0]
        change = new - n
        end = ~good | (inner(change, change) < ELLIPSOID_TOLERANCE**2)
        return jnp.where(good, new, n), k + 1, ok | good, end | (k + 1 >= ELLIPSOID_ITERATIONS)

    start = (unit(n)[0], jnp.int32(0), jnp.array(False), ~active)
    n, _, ok, _ = lax.while_loop(lambda s: ~s[3], step, start)
    x, good, gradient = leave(n)
    length = jnp.sqrt(inner(gradient, gradient))
    return n, ok, jnp.where(good, -x / jnp.where(length > 0, length, 1), 0)


def _multiplier_outside(size: Array, p: Array, active: Array) -> Array:
    """From outside: the multiplier, by Newton's method from zero."""
    square, weight = size * size, (p * size) ** 2

    def step(s: tuple) -> tuple:
        multiplier, k, _ = s
        factor = 1 / (square + multiplier)
        value, derivative = inner(weight * factor, factor) - 1, -2 * jnp.sum(weight * factor**3)
        change = -value / jnp.where(derivative > -MINVAL, -1, derivative)
        end = (value < ELLIPSOID_TOLERANCE) | (derivative > -MINVAL) | (change < ELLIPSOID_TOLERANCE)
        return jnp.where(end, multiplier, multiplier + change), k + 1, end | (k + 1 >= ELLIPSOID_ITERATIONS)

    zero = jnp.zeros_like(size[0])
    return lax.while_loop(lambda s: ~s[2], step, (zero, jnp.int32(0), ~active))[0]
