"""Normals of contacts taken from the surfaces of round shapes, for one pair: mjc_fixNormal.

Portal refinement gives a normal along the line between the centres. With a sphere, a capsule, an ellipsoid or the round
wall of a cylinder in the pair, the surface's own normal near the contact takes its place, or the mean of both.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL, GeomType
from jaxsim.engine.collision.convex.support import Kinds, Shape
from jaxsim.engine.collision.shapes import unit
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.safe import Array

ITERATIONS = 30  # of the searches on an ellipsoid
TOLERANCE = 1e-6  # at which they end
WALL = 0.95  # share of a cylinder's length that counts as wall
CLOSER = 0.25  # a contact that much closer to a cylinder's cap than to its wall is the cap's


def surface_normal(kinds: Kinds, a: Shape, b: Shape, pos: Array, normal: Array) -> Array:
    """The normal (3,) of a contact at `pos` (3,) that the surfaces have, or `normal` where neither is round."""
    (one, first), (two, second) = _of_shape(kinds, a, pos, normal), _of_shape(kinds, b, pos, -normal)
    mean = unit(one - two)[0]
    return jnp.where(first & second, mean, jnp.where(first, one, jnp.where(second, -two, normal)))


def _of_shape(kinds: Kinds, s: Shape, pos: Array, normal: Array) -> tuple[Array, Array]:
    """The outward normal of one shape's surface near a point, and whether it has one to give."""
    p, n = matvec_t(s.mat, pos - s.pos), matvec_t(s.mat, normal)
    flat = p * np.array([1, 1, 0], p.dtype)
    ok = jnp.array(False)
    out = n
    for kind in kinds.of:
        if kind == GeomType.SPHERE:
            way, known = unit(p)[0], True
        elif kind == GeomType.CAPSULE:
            way, known = unit(p - jnp.clip(p[2], -s.size[1], s.size[1]) * np.array([0, 0, 1], p.dtype))[0], True
        elif kind == GeomType.CYLINDER:
            cap, wall = jnp.abs(s.size[1] - jnp.abs(p[2])), jnp.abs(s.size[0] - safe.norm(flat))
            way, known = unit(flat)[0], (jnp.abs(p[2]) <= WALL * s.size[1]) & (cap >= CLOSER * wall)
        elif kind == GeomType.ELLIPSOID:
            way, known = _of_ellipsoid(s.size, p, n)
        else:
            continue
        mine = (s.kind == kind) & known
        out, ok = jnp.where(mine, way, out), ok | mine
    return matvec(s.mat, out), ok


@jax.custom_jvp
def _of_ellipsoid(size: Array, p: Array, n: Array) -> tuple[Array, Array]:
    """The normal where an ellipsoid is nearest to a point p (3,), searched from n; whether there is one."""
    return _nearest(size, p, n)[:2]


@_of_ellipsoid.defjvp
def _of_ellipsoid_jvp(primals: tuple, tangents: tuple) -> tuple:
    way, ok, shift = _nearest(*primals)
    _, slope = jax.jvp(partial(_at_shift, jax.lax.stop_gradient(shift)), primals[:2], tangents[:2])
    return (way, ok), (jnp.where(ok, slope, tangents[2]), np.zeros(ok.shape, jax.dtypes.float0))


def _at_shift(shift: Array, size: Array, p: Array) -> Array:
    """The normal with the derivative of the nearest point: p = q + shift q / size^2 for a point q of the surface."""
    square = size * size
    over = safe.divide(1.0, square + shift)
    value = jnp.sum((p * size * over) ** 2)
    rate = jax.lax.stop_gradient(-2 * jnp.sum((p * size) ** 2 * over**3))
    shift = shift - safe.divide(value - jax.lax.stop_gradient(value), rate)
    return unit(safe.divide(p, square + shift))[0]


def _nearest(size: Array, p: Array, n: Array) -> tuple[Array, Array, Array]:
    big = jnp.all(size >= MINVAL)
    size = jnp.where(big, size, 1)
    scaled = p / size
    inside = inner(scaled, scaled) <= 1
    from_inside, ok, depth = _outward(size, p, n, inside)
    shift = jnp.where(inside, depth, _shift(size, p, ~inside))
    way = jnp.where(inside, from_inside, unit(p / (size * size + jnp.where(inside, 0, shift)))[0])
    return way, big & (ok | ~inside), shift


def _outward(size: Array, p: Array, n: Array, active: Array) -> tuple[Array, Array, Array]:
    """From inside: the normal where a ray along the last normal leaves, again and again; success; the shift."""
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
        _, good, way = leave(n)
        new = unit(way)[0]
        change = new - n
        end = ~good | (inner(change, change) < TOLERANCE**2)
        return jnp.where(good, new, n), k + 1, ok | good, end | (k + 1 >= ITERATIONS)

    start = (unit(n)[0], jnp.int32(0), jnp.array(False), ~active)
    n, _, ok, _ = jax.lax.while_loop(lambda s: ~s[3], step, start)
    x, good, way = leave(n)
    length = jnp.sqrt(inner(way, way))
    return n, ok, jnp.where(good, -x / jnp.where(length > 0, length, 1), 0)


def _shift(size: Array, p: Array, active: Array) -> Array:
    """From outside: the shift by Newton's method from zero."""
    square, weight = size * size, (p * size) ** 2

    def step(s: tuple) -> tuple:
        shift, k, _ = s
        over = 1 / (square + shift)
        value, rate = inner(weight * over, over) - 1, -2 * jnp.sum(weight * over**3)
        move = -value / jnp.where(rate > -MINVAL, -1, rate)
        end = (value < TOLERANCE) | (rate > -MINVAL) | (move < TOLERANCE)
        return jnp.where(end, shift, shift + move), k + 1, end | (k + 1 >= ITERATIONS)

    zero = jnp.zeros_like(size[0])
    return jax.lax.while_loop(lambda s: ~s[2], step, (zero, jnp.int32(0), ~active))[0]
