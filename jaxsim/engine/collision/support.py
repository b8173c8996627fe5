"""Convex shapes by their support functions, for one pair at a time; callers map over pairs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.types import MINVAL, GeomType

Array = Any
POINT, LINE = -1, -2  # a sphere and a capsule without their radius


class Shape(NamedTuple):
    """A convex geom in the world: pos (3,), mat (3, 3), size (3,), vert (V, 3) of a mesh, inflation by `margin`."""

    pos: Array
    mat: Array
    size: Array
    vert: Array
    margin: Array


def _point(s: Shape, d: Array) -> tuple[Array, Array]:
    return jnp.zeros_like(d), 0


def _line(s: Shape, d: Array) -> tuple[Array, Array]:
    return _axis(jnp.where(d[2] >= 0, s.size[1], -s.size[1])), 0


def _axis(z: Array) -> Array:
    return jnp.stack([jnp.zeros_like(z), jnp.zeros_like(z), z])


def _sphere(s: Shape, d: Array) -> tuple[Array, Array]:
    return s.size[0] * d, 0


def _capsule(s: Shape, d: Array) -> tuple[Array, Array]:
    return s.size[0] * d + _line(s, d)[0], 0


def _ellipsoid(s: Shape, d: Array) -> tuple[Array, Array]:
    scaled = d * s.size
    square = inner(scaled, scaled)
    ok = square >= MINVAL**2
    along = scaled * s.size / jnp.sqrt(jnp.where(ok, square, 1))
    return jnp.where(ok, along, s.size * jnp.array([1, 0, 0], d.dtype)), 0


def _cylinder(s: Shape, d: Array) -> tuple[Array, Array]:
    square = d[0] ** 2 + d[1] ** 2
    ok = square >= MINVAL**2
    scale = jnp.where(ok, s.size[0] / jnp.sqrt(jnp.where(ok, square, 1)), 0)
    return jnp.stack([scale * d[0], scale * d[1], jnp.where(d[2] >= 0, s.size[1], -s.size[1])]), 0


def _box(s: Shape, d: Array) -> tuple[Array, Array]:
    high = d >= 0
    return jnp.where(high, s.size, -s.size), jnp.sum(jnp.where(high, jnp.array([1, 2, 4]), 0))


def _mesh(s: Shape, d: Array) -> tuple[Array, Array]:
    best = jnp.argmax(inner(s.vert, d))
    return s.vert[best], best


LOCAL = {
    POINT: _point,
    LINE: _line,
    GeomType.SPHERE: _sphere,
    GeomType.CAPSULE: _capsule,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _cylinder,
    GeomType.BOX: _box,
    GeomType.MESH: _mesh,
}
DISCRETE = (GeomType.BOX, GeomType.MESH)
SHRUNK = {GeomType.SPHERE: POINT, GeomType.CAPSULE: LINE}


def support(kind: int, s: Shape) -> Callable[[Array], tuple[Array, Array]]:
    """The support function of a shape: unit direction (3,) -> farthest point in the world (3,) and vertex index."""
    local = LOCAL[kind]

    def farthest(direction: Array) -> tuple[Array, Array]:
        point, index = local(s, matvec_t(s.mat, direction))
        world = s.pos + matvec(s.mat, point)
        if kind not in (POINT, LINE):
            world = world + direction * 0.5 * jnp.maximum(s.margin, 0)
        return world, jnp.asarray(index, jnp.int32)

    return farthest
