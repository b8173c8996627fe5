"""Support functions of convex shapes, for one shape at a time; vectors are tuples of components.

The type of a shape is a traced number, so that pairs of all types share one search and one compilation.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import MINVAL, GeomType
from jaxsim.math import component
from jaxsim.math.arrays import gather, row_at, with_row
from jaxsim.math.component import Vector, split, vector
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat

ROUND_TYPES = (GeomType.SPHERE, GeomType.CAPSULE)  # a point or a segment, inflated: searched without the radius first
FACETED_TYPES = (GeomType.BOX, GeomType.MESH)  # have tables of faces
POLYHEDRON_TYPES = (*FACETED_TYPES, GeomType.HFIELD)  # have finitely many support points
SCAN_WIDTH = 8  # vertices of a hull that are compared at once: those of a vector register
CLIMB_WIDTH = 8  # neighbours of a vertex that are compared at once
COMPARED_AT_ONCE = 4  # vertices of a hull on a TPU, so that their loads overlap


class Hulls(NamedTuple):
    """Vertices of the convex hulls of a group of pairs, side by side.

    `vert` are their components (n,) in the geoms' frames. A hull is searched among its entries of `scan` (k,), all
    its vertices or, if it is large, some of them that are spread over it. From the best one the search climbs to
    neighbours: `edge` (l,) lists those of vertex i from `first_edge[i]` to `first_edge[i + 1]`; none for small hulls.
    Entries of `edge` are padded by the vertex itself to a multiple of `CLIMB_WIDTH`, those of `scan` by its first
    vertex to a multiple of `SCAN_WIDTH`. `scan_vert` are the
    components (k,) of the vertices in `scan`. `first` (r + 1,) is the first vertex of each row's hull, and their end.
    """

    vert: Vector
    scan_vert: Vector
    scan: Array
    first_edge: Array
    edge: Array
    first: Array


class ConvexShape(NamedTuple):
    """A convex geom in the world frame.

    `type` is its geom type; `pos` (3,), `mat` (3, 3), `size` (3,); `margin`, by half of which the shape is inflated;
    `row` its row in the tables of hulls and facets; `first_vertex` that of its hull in `Hulls`; `scan` (2,) the first
    and the last entry of `Hulls.scan`; `vert` (6, 3) the vertices of a prism or of an element of a flex, else None;
    `corner` (3, 3), if known, the vertices that it is touched at. Vertices are in the shape's frame. The radius of an
    element of a flex counts to its margin, twice.
    """

    type: Array
    pos: Array
    mat: Array
    size: Array
    margin: Array
    row: Array
    first_vertex: Array
    scan: Array
    vert: Array = None
    corner: Array = None


def is_type(shape_type: Array, types: tuple[int, ...]) -> Array:
    """Return whether a geom type is one of `types`."""
    return jnp.any(jnp.stack([shape_type == t for t in types]), axis=0)


def are_polyhedra(a: ConvexShape, b: ConvexShape) -> Array:
    """Return whether both shapes are polyhedra without a margin."""
    return (a.margin == 0) & (b.margin == 0) & is_type(a.type, POLYHEDRON_TYPES) & is_type(b.type, POLYHEDRON_TYPES)


def touched(hulls: Hulls, s: ConvexShape, index: Array) -> ConvexShape:
    """Give a shape the vertices (3, 3) of these indices (3,), where it has some; else any of the table."""
    if s.vert is not None:
        return s._replace(corner=gather(s.vert, index))
    place = jnp.where(s.type == GeomType.MESH, s.first_vertex + index, 0)  # the empty row begins after the last vertex
    return s._replace(corner=jnp.stack([gather(x, place) for x in hulls.vert], axis=-1))


def centre(s: ConvexShape) -> Array:
    """Return an interior point (3,), where the search starts; the vertices' mean for a prism of a height field."""
    return s.pos if s.vert is None else jnp.where(s.type == GeomType.HFIELD, jnp.mean(s.vert, axis=0), s.pos)


def _sphere(s: ConvexShape, d: Vector) -> tuple[Vector, Array]:
    return component.scale(s.size[0], d), jnp.int32(0)


def _capsule(s: ConvexShape, d: Vector) -> tuple[Vector, Array]:
    x, y, z = component.scale(s.size[0], d)
    return (x, y, z + jnp.where(d[2] >= 0, s.size[1], -s.size[1])), jnp.int32(0)


def _ellipsoid(s: ConvexShape, d: Vector) -> tuple[Vector, Array]:
    size = split(s.size)
    scaled = component.mul(d, size)
    square = component.dot(scaled, scaled)
    ok = square >= MINVAL**2
    point = component.scale(1 / jnp.sqrt(jnp.where(ok, square, 1)), component.mul(scaled, size))
    return component.where(ok, point, (size[0], 0 * size[0], 0 * size[0])), jnp.int32(0)


def _cylinder(s: ConvexShape, d: Vector) -> tuple[Vector, Array]:
    square = d[0] ** 2 + d[1] ** 2
    ok = square >= MINVAL**2
    scale = jnp.where(ok, s.size[0] / jnp.sqrt(jnp.where(ok, square, 1)), 0)
    return (scale * d[0], scale * d[1], jnp.where(d[2] >= 0, s.size[1], -s.size[1])), jnp.int32(0)


def _box(s: ConvexShape, d: Vector) -> tuple[Vector, Array]:
    # XLA may compute d twice with different rounding: along a face, point and index must stay consistent
    high = [x >= -16 * float(jnp.finfo(x.dtype).eps) for x in d]
    index = sum(jnp.where(h, jnp.int32(1 << i), 0) for i, h in enumerate(high))
    return component.vector(jnp.where(h, s.size[i], -s.size[i]) for i, h in enumerate(high)), index


def _prism(s: ConvexShape, d: Vector) -> tuple[Vector, Array]:
    """The farthest vertex of a prism's upper triangle, or of the lower one if the direction points down.

    Directions along a vertical side are horizontal except for rounding. There MuJoCo, whose products are not
    contracted, has an exact zero.
    """
    down = d[2] < -16 * float(jnp.finfo(d[2].dtype).eps)
    corners = [component.vector(jnp.where(down, s.vert[i + 3, k], s.vert[i, k]) for k in range(3)) for i in range(3)]
    height = [component.dot(c, d) for c in corners]
    best = jnp.where(height[1] > height[0], 1, 0)
    best = jnp.where(height[2] > jnp.maximum(height[0], height[1]), 2, best)
    point = component.where(best == 0, corners[0], component.where(best == 1, corners[1], corners[2]))
    return point, (best + jnp.where(down, 3, 0)).astype(jnp.int32)


def _element(s: ConvexShape, d: Vector) -> tuple[Vector, Array]:
    """The farthest of up to four vertices of an element of a flex, the first of equals."""
    best, index = component.vector(s.vert[0, k] for k in range(3)), jnp.int32(0)
    height = component.dot(best, d)
    for i in range(1, 4):
        vertex = component.vector(s.vert[i, k] for k in range(3))
        here = component.dot(vertex, d)
        higher = here > height
        best, index = component.where(higher, vertex, best), jnp.where(higher, jnp.int32(i), index)
        height = jnp.where(higher, here, height)
    return best, index


def farthest_vertex(hulls: Hulls, row: Array, first: Array, scanned: Array, d: Vector) -> tuple[Vector, Array]:
    """Find the vertex of a hull farthest along d, in its geom's frame, and its number in the hull.

    The best of those scanned (see `ConvexShape`), then uphill along edges. On a TPU all vertices of the hull are
    compared: all worlds of a block search the same hull, but would climb over different vertices.
    """

    def search(first: Array, *d: Array) -> tuple[Vector, Array]:
        return _scan_and_climb(hulls, first, scanned, vector(d))

    def compare(first: Array, *d: Array) -> tuple[Vector, Array]:
        return highest_of_hull(hulls, row, first, vector(d))

    return lax.platform_dependent(first, *d, tpu=compare, default=search)


def highest_of_hull(hulls: Hulls, row: Array, first: Array, d: Vector) -> tuple[Vector, Array]:
    """Compute `farthest_vertex` by comparing all vertices of the hull, some of them in each turn of a loop."""
    count = row_at(hulls.first, row + 1) - first

    def visit(i: Array, best: tuple[Vector, Array, Array]) -> tuple[Vector, Array, Array]:
        point, index, height = best
        for k in range(COMPARED_AT_ONCE):
            at = jnp.minimum(COMPARED_AT_ONCE * i + k, count - 1)
            vertex = vector(row_at(x, first + at) for x in hulls.vert)
            here = component.dot(vertex, d)
            higher = here > height
            point, index = component.where(higher, vertex, point), jnp.where(higher, at, index)
            height = jnp.where(higher, here, height)
        return point, index, height

    start = tuple(0 * x for x in d), jnp.int32(0), jnp.full_like(d[0], -jnp.inf)
    return repeat((count + (COMPARED_AT_ONCE - 1)) // COMPARED_AT_ONCE, visit, start)[:2]


def _scan_and_climb(hulls: Hulls, first: Array, scanned: Array, d: Vector) -> tuple[Vector, Array]:
    lanes = np.arange(SCAN_WIDTH, dtype=np.int32)

    def scan(i: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        at = scanned[0] + i * SCAN_WIDTH
        height = component.dot(tuple(_block(x, at, SCAN_WIDTH) for x in hulls.scan_vert), d)
        higher = height > best[0]
        return jnp.where(higher, height, best[0]), jnp.where(higher, at + lanes, best[1])

    low = jnp.full(SCAN_WIDTH, -jnp.inf, d[0].dtype)
    heights, places = repeat((scanned[1] - scanned[0]) // SCAN_WIDTH, scan, (low, lanes * 0 + scanned[0]))
    height, place = _first_highest(heights, places)
    at = _climb(hulls, d, row_at(hulls.scan, place), height)
    return tuple(row_at(x, at) for x in hulls.vert), at - first


def _climb(hulls: Hulls, d: Vector, vertex: Array, height: Array) -> Array:
    """From a vertex of a hull uphill to the highest one."""

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        at, height, edge = state
        others = _block(hulls.edge, edge, CLIMB_WIDTH)
        heights = component.dot(tuple(gather(x, others) for x in hulls.vert), d)
        best, other = _first_highest(heights, others)
        higher = best > height
        at = jnp.where(higher, other, at)
        edge = jnp.where(higher, row_at(hulls.first_edge, at), edge + CLIMB_WIDTH)
        return at, jnp.where(higher, best, height), edge

    start = vertex, height, row_at(hulls.first_edge, vertex)
    return lax.while_loop(lambda state: state[2] < row_at(hulls.first_edge, state[0] + 1), step, start)[0]


def _block(x: Array, at: Array, width: int) -> Array:
    return lax.dynamic_slice(x, (at,), (width,), allow_negative_indices=False)


def _first_highest(heights: Array, index: Array) -> tuple[Array, Array]:
    """The greatest of a power of two of heights (n,), and its index, the lowest one of equals."""
    while len(heights) > 1:
        half = len(heights) // 2
        first = (heights[:half] > heights[half:]) | (
            (heights[:half] == heights[half:]) & (index[:half] <= index[half:])
        )
        heights, index = (jnp.where(first, x[:half], x[half:]) for x in (heights, index))
    return heights[0], index[0]


def farthest_point(types: tuple[int, ...], hulls: Hulls, s: ConvexShape, direction: Vector) -> tuple[Vector, Array]:
    """Find the farthest point of a shape along a unit direction, in the world frame, and its vertex's index.

    `types` are those that may occur. Points of curved shapes have the index 0.
    """
    functions: dict[int, Callable[[ConvexShape, Vector], tuple[Vector, Array]]] = {
        GeomType.SPHERE: _sphere,
        GeomType.CAPSULE: _capsule,
        GeomType.ELLIPSOID: _ellipsoid,
        GeomType.CYLINDER: _cylinder,
        GeomType.BOX: _box,
        GeomType.MESH: lambda s, d: farthest_vertex(hulls, s.row, s.first_vertex, s.scan, d),
        GeomType.HFIELD: _prism,
        GeomType.FLEX: _element,
    }
    branches = [partial(functions[t], s) for t in types]
    mat = split(s.mat.reshape(9))
    d = component.mat_t_vec(mat, direction)
    branch = sum((s.type == t) * np.int32(i) for i, t in enumerate(types))
    point, index = lax.switch(branch, branches, d) if len(types) > 1 else branches[0](d)
    inflation = component.scale(0.5 * s.margin, direction)
    return component.add(component.add(split(s.pos), component.mat_vec(mat, point)), inflation), index


class SupportPoint(NamedTuple):
    """Support points a, b of two shapes along opposite directions, and their vertex indices i, j."""

    a: Vector
    b: Vector
    i: Array
    j: Array

    @property
    def w(self) -> Vector:
        """The point of the Minkowski difference."""
        return component.sub(self.a, self.b)


def pair_support(
    farthest: Callable[[ConvexShape, Vector], tuple[Vector, Array]], a: ConvexShape, b: ConvexShape
) -> Callable[[Vector], SupportPoint]:
    """Make the support function (unit direction -> point) of two shapes' Minkowski difference from that of one.

    A loop visits the two shapes, so that its program holds the support function once.
    """
    if a.vert is not None and b.vert is None:
        b = b._replace(vert=jnp.zeros_like(a.vert))
    elif a.vert is None and b.vert is not None:
        a = a._replace(vert=jnp.zeros_like(b.vert))
    shapes = jax.tree.map(lambda x, y: jnp.stack([x, y]), a, b)

    def support(direction: Vector) -> SupportPoint:
        def visit(k: Array, out: tuple[Array, Array]) -> tuple[Array, Array]:
            points, index = out
            shape = jax.tree.map(lambda x: row_at(x, k), shapes)
            point, i = farthest(shape, component.where(k == 0, direction, component.neg(direction)))
            return with_row(points, k, jnp.stack(point)), with_row(index, k, i)

        out = jnp.zeros((2, 3), direction[0].dtype), jnp.zeros(2, jnp.int32)
        points, index = repeat(2, visit, out)
        return SupportPoint(split(points[0]), split(points[1]), index[0], index[1])

    return support
