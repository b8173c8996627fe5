"""Support functions of convex shapes, for one shape at a time; callers use vmap.

The type of a shape is a traced number, so that pairs of all types share one search and one compilation: the support
points of all types that occur are computed, and one is selected.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL, GeomType
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.safe import Array

ROUND_TYPES = (GeomType.SPHERE, GeomType.CAPSULE)  # a point or a segment, inflated: searched without the radius first
FACETED_TYPES = (GeomType.BOX, GeomType.MESH)  # have tables of faces
POLYHEDRON_TYPES = (*FACETED_TYPES, GeomType.HFIELD)  # have finitely many support points
PRISM_VERTICES = 6  # a triangle of a height field and its projection on the base
CLIMB_STARTS = 32  # vertices of a large hull that are compared before hill climbing


class ShapeTypes(NamedTuple):
    """Geom types that may occur, and for large hulls the neighbours of each vertex (r, V, K), else None."""

    present: tuple[int, ...]
    neighbours: np.ndarray | None = None


class ConvexShape(NamedTuple):
    """A convex geom in the world frame.

    `type` is its geom type; `pos` (3,), `mat` (3, 3), `size` (3,); `vert` (V, 3) the hull of a mesh in the geom's
    frame; `row` its row in the tables of hulls and facets; `margin`, by half of which the shape is inflated.
    """

    type: Array
    pos: Array
    mat: Array
    size: Array
    vert: Array
    row: Array
    margin: Array


def is_type(shape_type: Array, types: tuple[int, ...]) -> Array:
    """Whether a geom type is one of `types`."""
    return jnp.any(jnp.stack([shape_type == t for t in types]), axis=0)


def centre(s: ConvexShape) -> Array:
    """An interior point, from which the search starts; the vertices' mean for a prism of a height field."""
    return jnp.where(s.type == GeomType.HFIELD, jnp.mean(s.vert, axis=0), s.pos)


def _capsule(s: ConvexShape, d: Array) -> Array:
    """The farthest point of a capsule along the unit direction d, in its frame."""
    z = jnp.where(d[2] >= 0, s.size[1], -s.size[1])
    return s.size[0] * d + jnp.stack([jnp.zeros_like(z), jnp.zeros_like(z), z])


def _ellipsoid(s: ConvexShape, d: Array) -> Array:
    """The farthest point of an ellipsoid along d, in its frame."""
    scaled = d * s.size
    square = inner(scaled, scaled)
    ok = square >= MINVAL**2
    point = scaled * s.size / jnp.sqrt(jnp.where(ok, square, 1))
    return jnp.where(ok, point, s.size * jnp.array([1, 0, 0], d.dtype))


def _cylinder(s: ConvexShape, d: Array) -> Array:
    """The farthest point of a cylinder along d, in its frame."""
    square = d[0] ** 2 + d[1] ** 2
    ok = square >= MINVAL**2
    scale = jnp.where(ok, s.size[0] / jnp.sqrt(jnp.where(ok, square, 1)), 0)
    return jnp.stack([scale * d[0], scale * d[1], jnp.where(d[2] >= 0, s.size[1], -s.size[1])])


def _prism(vert: Array, d: Array) -> Array:
    """The farthest vertex of a prism's upper triangle, or of the lower one if the direction points down.

    Directions along a vertical side are horizontal except for rounding. There MuJoCo, whose products are not
    contracted, has an exact zero.
    """
    side = jnp.where(d[2] < -16 * float(jnp.finfo(d.dtype).eps), vert[3:6], vert[:3])
    return side[jnp.argmax(inner(side, d))]


SMOOTH_SUPPORT = {
    GeomType.SPHERE: lambda s, d: s.size[0] * d,
    GeomType.CAPSULE: _capsule,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _cylinder,
}


def _hull_support(neighbours: np.ndarray | None, s: ConvexShape, d: Array) -> Array:
    """The vertex of a hull farthest along d: the best of all, or hill climbing from the best of a few."""
    if neighbours is None:
        return jnp.argmax(inner(s.vert, d)).astype(jnp.int32)
    starts = np.linspace(0, len(s.vert) - 1, CLIMB_STARTS).astype(np.int32)
    heights, table = inner(s.vert[starts], d), jnp.asarray(neighbours)

    def climb(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        at, height, _ = state
        next_vertex = table[s.row, at]
        heights = inner(s.vert[next_vertex], d)
        best = jnp.argmax(heights)
        higher = heights[best] > height
        return jnp.where(higher, next_vertex[best], at), jnp.where(higher, heights[best], height), higher

    best = jnp.argmax(heights)
    start = jnp.asarray(starts)[best], heights[best], s.type == GeomType.MESH
    return jax.lax.while_loop(lambda state: state[2], climb, start)[0]


def support(types: ShapeTypes, s: ConvexShape) -> Callable[[Array], tuple[Array, Array]]:
    """The support function of a shape: unit direction (3,) -> farthest point in the world frame (3,) and vertex index.

    `types` are those that may occur.
    """

    def farthest(direction: Array) -> tuple[Array, Array]:
        d = matvec_t(s.mat, direction)
        point, index = jnp.zeros_like(d), jnp.zeros((), jnp.int32)
        for t in types.present:
            if t in SMOOTH_SUPPORT:
                point = jnp.where(s.type == t, SMOOTH_SUPPORT[t](s, d), point)
        if GeomType.BOX in types.present:
            # XLA may compute d twice with different rounding: along a face, point and index must stay consistent
            box, high = s.type == GeomType.BOX, d >= -16 * float(jnp.finfo(d.dtype).eps)
            point = jnp.where(box, jnp.where(high, s.size, -s.size), point)
            corner = jnp.sum(jnp.where(high, jnp.array([1, 2, 4], jnp.int32), 0), dtype=jnp.int32)
            index = jnp.where(box, corner, index)
        if GeomType.MESH in types.present:
            mesh = s.type == GeomType.MESH
            best = _hull_support(types.neighbours, s, d)
            point, index = jnp.where(mesh, s.vert[best], point), jnp.where(mesh, best, index)
        if GeomType.HFIELD in types.present and s.vert.shape[0] == PRISM_VERTICES:
            # MuJoCo does not number a prism's vertices; its search ends when the other shape's vertices repeat
            point = jnp.where(s.type == GeomType.HFIELD, _prism(s.vert, d), point)
        return s.pos + matvec(s.mat, point) + direction * 0.5 * s.margin, index

    return farthest
