"""Convex shapes of any kind by their support functions, for one pair at a time; callers map over pairs.

The kind of a shape is a traced number, so that pairs of all kinds share one search (and one compilation): the support
points of all kinds that occur are found, and one is selected.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL, GeomType
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.safe import Array

ROUND = (GeomType.SPHERE, GeomType.CAPSULE)  # searched as a point and a segment first
DISCRETE = (GeomType.BOX, GeomType.MESH)
PRISM = (*DISCRETE, GeomType.HFIELD)  # shapes whose search ends after finitely many steps
PRISM_SIZE = 6  # vertices of a prism of a height field
STARTS = 32  # vertices of a large hull that are looked at before the climb


class Kinds(NamedTuple):
    """The kinds of shape that may occur; for large hulls the ends of the edges at each vertex (r, V, K), else None."""

    of: tuple[int, ...]
    beside: np.ndarray | None = None


class Shape(NamedTuple):
    """A convex geom in the world.

    `kind` its type, `pos` (3,), `mat` (3, 3), `size` (3,), `vert` (V, 3) the hull if it is a mesh, `row` of the tables
    of hulls and facets, and `margin`, by half of which it is inflated.
    """

    kind: Array
    pos: Array
    mat: Array
    size: Array
    vert: Array
    row: Array
    margin: Array


def is_any(kind: Array, kinds: tuple[int, ...]) -> Array:
    """Whether a kind is one of some."""
    return jnp.any(jnp.stack([kind == k for k in kinds]), axis=0)


def centre(s: Shape) -> Array:
    """Where the search takes the middle of a shape to be; a prism of a height field is given by its vertices alone."""
    return jnp.where(s.kind == GeomType.HFIELD, jnp.mean(s.vert, axis=0), s.pos)


def _capsule(s: Shape, d: Array) -> Array:
    half = jnp.where(d[2] >= 0, s.size[1], -s.size[1])
    return s.size[0] * d + jnp.stack([jnp.zeros_like(half), jnp.zeros_like(half), half])


def _ellipsoid(s: Shape, d: Array) -> Array:
    scaled = d * s.size
    square = inner(scaled, scaled)
    ok = square >= MINVAL**2
    along = scaled * s.size / jnp.sqrt(jnp.where(ok, square, 1))
    return jnp.where(ok, along, s.size * jnp.array([1, 0, 0], d.dtype))


def _cylinder(s: Shape, d: Array) -> Array:
    square = d[0] ** 2 + d[1] ** 2
    ok = square >= MINVAL**2
    scale = jnp.where(ok, s.size[0] / jnp.sqrt(jnp.where(ok, square, 1)), 0)
    return jnp.stack([scale * d[0], scale * d[1], jnp.where(d[2] >= 0, s.size[1], -s.size[1])])


def _prism(vert: Array, d: Array) -> Array:
    """The farthest vertex of the roof of a prism, or of its foot if the direction points down.

    Directions along a wall are horizontal but for rounding, and the reference, whose products are not contracted, has
    an exact zero there.
    """
    side = jnp.where(d[2] < -16 * float(jnp.finfo(d.dtype).eps), vert[3:6], vert[:3])
    return side[jnp.argmax(inner(side, d))]


LOCAL = {
    GeomType.SPHERE: lambda s, d: s.size[0] * d,
    GeomType.CAPSULE: _capsule,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _cylinder,
}


def _farthest_vertex(beside: np.ndarray | None, s: Shape, d: Array) -> Array:
    """The vertex of a hull farthest along d: by looking at all, or uphill along edges from the best of a few."""
    if beside is None:
        return jnp.argmax(inner(s.vert, d)).astype(jnp.int32)
    few = np.linspace(0, len(s.vert) - 1, STARTS).astype(np.int32)
    heights, table = inner(s.vert[few], d), jnp.asarray(beside)

    def climb(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        at, height, _ = state
        around = table[s.row, at]
        heights = inner(s.vert[around], d)
        best = jnp.argmax(heights)
        higher = heights[best] > height
        return jnp.where(higher, around[best], at), jnp.where(higher, heights[best], height), higher

    best = jnp.argmax(heights)
    start = jnp.asarray(few)[best], heights[best], s.kind == GeomType.MESH
    return jax.lax.while_loop(lambda state: state[2], climb, start)[0]


def support(kinds: Kinds, s: Shape) -> Callable[[Array], tuple[Array, Array]]:
    """The support function of a shape: unit direction (3,) -> farthest point in the world (3,) and vertex index.

    `kinds` are those that may occur.
    """

    def farthest(direction: Array) -> tuple[Array, Array]:
        d = matvec_t(s.mat, direction)
        point, index = jnp.zeros_like(d), jnp.zeros((), jnp.int32)
        for kind in kinds.of:
            if kind in LOCAL:
                point = jnp.where(s.kind == kind, LOCAL[kind](s, d), point)
        if GeomType.BOX in kinds.of:
            # XLA may compute d more than once, differently rounded: along a face point and index must not part ways
            box, high = s.kind == GeomType.BOX, d >= -16 * float(jnp.finfo(d.dtype).eps)
            point = jnp.where(box, jnp.where(high, s.size, -s.size), point)
            corner = jnp.sum(jnp.where(high, jnp.array([1, 2, 4], jnp.int32), 0), dtype=jnp.int32)
            index = jnp.where(box, corner, index)
        if GeomType.MESH in kinds.of:
            mesh = s.kind == GeomType.MESH
            best = _farthest_vertex(kinds.beside, s, d)
            point, index = jnp.where(mesh, s.vert[best], point), jnp.where(mesh, best, index)
        if GeomType.HFIELD in kinds.of and s.vert.shape[0] == PRISM_SIZE:
            # the reference gives no numbers to the vertices of a prism; its search ends when the other shape's repeat
            point = jnp.where(s.kind == GeomType.HFIELD, _prism(s.vert, d), point)
        return s.pos + matvec(s.mat, point) + direction * 0.5 * s.margin, index

    return farthest
