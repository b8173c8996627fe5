"""Contact manifold of two faceted shapes: the touching faces, or a face and an edge, clipped; for one pair.

Clipping is the Sutherland-Hodgman algorithm (1974). The choice of faces and edges follows the multi-contact recovery of
MuJoCo's engine_collision_gjk.c.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL, GeomType
from jaxsim.engine.collision.convex.hull import BOX_NORMALS, FacetTable
from jaxsim.engine.collision.convex.support import ConvexShape, Hulls, hull_vertex
from jaxsim.engine.collision.shapes import unit
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matvec, matvec_t, row_at, with_row
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat

PARALLEL_FACE_COSINE = 0.99999872  # between the normals of faces that count as parallel
PARALLEL_EDGE_SINE = 0.00159999931  # between an edge and a face that count as parallel
MANIFOLD_SLOTS = 5  # of a convex pair, one more than a manifold has points


Polygon = tuple[Array, Array]  # points (P, 3) and their number
Clip = Callable[[Polygon, Polygon, Array], Polygon]  # of a clipper and a subject, along a normal


class TouchedFeature(NamedTuple):
    """The vertex, edge or face of one shape that EPA's nearest face touches.

    `dim` is 1 for a vertex, 2 for an edge, 3 for a face; `vertex` (3,) and `point` (3, 3) are its vertices; `face` (K,)
    are the faces that contain all of them, `normal` (K, 3) their normals, and `real` (K,) marks the valid entries.
    """

    dim: Array
    vertex: Array
    point: Array
    face: Array
    normal: Array
    real: Array


def manifold(
    facets: FacetTable, hulls: Hulls, a: ConvexShape, b: ConvexShape, face: Array, gap: Array, clip: Clip
) -> tuple[Array, Array, Array, Array]:
    """Contacts of two faces, or a face and an edge: whether there are any, positions, normals (5, 3), which are real.

    `face` (3, 2) are the vertices of EPA's nearest face, `gap` (3,) the vector from witness point x1 to x2;
    `clip` is `clip_side_by_side`, which is differentiable, or `clip_in_turn`.
    """
    feature1 = _touched_feature(facets, hulls, a, face[:, 0], -gap)
    feature2 = _touched_feature(facets, hulls, b, face[:, 1], gap)
    depth = safe.norm(gap)

    facing = (
        (inner(feature1.normal[:, None], feature2.normal) < -PARALLEL_FACE_COSINE)
        & feature1.real[:, None]
        & feature2.real
    )
    by_face = jnp.any(facing)
    i, j = jnp.divmod(jnp.argmax(facing), facing.shape[1])
    try1 = (feature1.dim < 3) & (feature1.dim <= feature2.dim)
    try2 = ~try1 & (feature2.dim < 3)
    by_edge1, edge1, face_index2 = _edge_on_face(facets, hulls, a, feature1, feature2)
    by_edge2, edge2, face_index1 = _edge_on_face(facets, hulls, b, feature2, feature1)
    by_edge1, by_edge2 = ~by_face & try1 & by_edge1, ~by_face & try2 & by_edge2

    face1 = _polygon(facets, hulls, a, feature1.face[jnp.where(by_edge2, face_index1, i)])
    face2 = _polygon(facets, hulls, b, feature2.face[jnp.where(by_edge1, face_index2, j)])
    normal1 = feature1.normal[jnp.where(by_edge2, face_index1, i)]
    normal2 = feature2.normal[jnp.where(by_edge1, face_index2, j)]
    size = max(face1[0].shape[0], face2[0].shape[0])
    face1, face2, edge1, edge2 = [_padded(p, n, size) for p, n in (face1, face2, (edge1, 2), (edge2, 2))]
    clipper = _select(by_edge1, face2, face1)
    subject = _select(by_edge1, edge1, _select(by_edge2, edge2, face2))
    normal = jnp.where(by_edge1, normal2, normal1)
    normal_out = jnp.where(by_edge2, normal1, -normal2)
    points, count = clip(clipper, subject, normal)
    ok = (by_face | by_edge1 | by_edge2) & (clipper[1] >= 3) & (count >= 1)
    points, real = _at_most_four(points, count)
    return ok, points + 0.5 * depth * normal_out, jnp.broadcast_to(normal_out, points.shape), real & ok


def _select(which: Array, x: tuple, y: tuple) -> tuple:
    """Component-wise choice between two tuples of arrays."""
    return tuple(jnp.where(which, p, q) for p, q in zip(x, y, strict=True))


def _padded(points: Array, count: Array, size: int) -> tuple[Array, Array]:
    """The polygon padded to `size` points, and its number of points."""
    return jnp.pad(points, ((0, size - points.shape[0]), (0, 0))), jnp.asarray(count, jnp.int32)


def _local_vertices(hulls: Hulls, shape: ConvexShape, vertex: Array) -> Array:
    """Vertices of a shape in its own frame."""
    corner = jnp.where((vertex[..., None] >> np.arange(3, dtype=np.int32)) & 1, shape.size, -shape.size)
    of_hull = hull_vertex(hulls, shape, jnp.where(shape.type == GeomType.BOX, 0, vertex))
    return jnp.where(shape.type == GeomType.BOX, corner, of_hull)


def _touched_feature(f: FacetTable, hulls: Hulls, shape: ConvexShape, index: Array, direction: Array) -> TouchedFeature:
    """The feature spanned by the vertices `index` (3,); `direction` (3,) points from the shape to the other one."""
    i1, i2, i3 = index
    swap = i1 == i2
    dim = jnp.where(swap, jnp.where(i1 == i3, 1, 2), jnp.where((i3 == i1) | (i3 == i2), 2, 3))
    vertex = jnp.stack([i1, jnp.where(swap, i3, i2), i3])
    point = shape.pos + matvec(shape.mat, _local_vertices(hulls, shape, vertex))
    faces_at = f.faces_at[shape.row, vertex]  # (3, K)
    real = faces_at[0] >= 0
    with2 = jnp.any(faces_at[0][:, None] == faces_at[1], axis=1) & real
    with2 &= jnp.cumsum(with2) <= 2
    with3 = with2 & jnp.any(faces_at[0][:, None] == faces_at[2], axis=1)
    with3 &= jnp.cumsum(with3) <= 1
    real = jnp.where(dim == 1, real, jnp.where(dim == 2, with2, with3))
    face = jnp.maximum(faces_at[0], 0)
    # vertices of a box that span no face or edge: use the face whose normal is the contact's
    aligned = inner(BOX_NORMALS.astype(direction.dtype), unit(matvec_t(shape.mat, direction))[0]) > PARALLEL_FACE_COSINE
    irregular = (shape.type == GeomType.BOX) & (dim > 1) & (jnp.sum(real) != 4 - dim)
    first = jnp.arange(real.shape[0]) == 0
    real = jnp.where(irregular, first & jnp.any(aligned), real)
    face = jnp.where(irregular & first, jnp.argmax(aligned), face)
    return TouchedFeature(dim, vertex, point, face, matvec(shape.mat, f.normal[shape.row, face]), real)


def _edge_on_face(
    f: FacetTable, hulls: Hulls, shape: ConvexShape, edge: TouchedFeature, face: TouchedFeature
) -> tuple[Array, Array, Array]:
    """The first edge of one feature that lies on a face of the other: if any, its ends (2, 3), the face's index."""
    edge_end = f.edge_end[shape.row, edge.vertex[0]]
    ends = shape.pos + matvec(shape.mat, _local_vertices(hulls, shape, jnp.maximum(edge_end, 0)))
    is_edge = edge.dim == 2
    first = jnp.arange(edge_end.shape[0]) == 0
    ends = jnp.where(is_edge, edge.point[1], ends)
    real = jnp.where(is_edge, first, edge_end >= 0)
    along = unit(ends - edge.point[0])[0]
    lies = (jnp.abs(inner(face.normal[:, None], along)) < PARALLEL_EDGE_SINE) & face.real[:, None] & real
    i, j = jnp.divmod(jnp.argmax(lies), lies.shape[1])
    return jnp.any(lies), jnp.stack([edge.point[0], ends[j]]), i


def _polygon(f: FacetTable, hulls: Hulls, shape: ConvexShape, face: Array) -> tuple[Array, Array]:
    """Vertices (P, 3) of a face in the world frame, and their number."""
    vertex = jnp.maximum(f.corners[shape.row, face], 0)
    return shape.pos + matvec(shape.mat, _local_vertices(hulls, shape, vertex)), f.ncorner[shape.row, face]


def clip_side_by_side(clipper: tuple[Array, Array], subject: tuple[Array, Array], normal: Array) -> tuple[Array, Array]:
    """The polygon `subject` clipped by the planes through the sides of `clipper` along `normal`.

    Polygons are points (P, 3) and their number.
    """
    points, nside = clipper
    polygon, count = subject
    size = points.shape[0]
    total = 2 * size
    polygon = jnp.pad(polygon, ((0, total - polygon.shape[0]), (0, 0)))
    following = jnp.arange(1, size + 1, dtype=jnp.int32)
    next_point = points[jnp.where(following < nside, following, 0)]
    planes = cross(next_point - points, jnp.broadcast_to(normal, points.shape))
    index = jnp.arange(total, dtype=jnp.int32)

    def cut(state: tuple, edge: tuple) -> tuple:
        polygon, count = state
        start, plane, is_side = edge
        q = polygon[jnp.where(index + 1 < count, index + 1, 0)]
        real_vertex = index < count
        inside1, inside2 = inner(polygon - start, plane) > -MINVAL, inner(q - start, plane) > -MINVAL
        rate = inner(q - polygon, plane)
        t = safe.divide(inner(plane, start) - inner(polygon, plane), jnp.where(inside1 != inside2, rate, 0), jnp.inf)
        crosses = real_vertex & (t >= 0) & (t <= 1)
        crossing = polygon + jnp.where(crosses, t, 0)[:, None] * (q - polygon)
        keep = jnp.stack([crosses, real_vertex & inside2], axis=1).reshape(-1)
        candidates = jnp.stack([crossing, q], axis=1).reshape(-1, 3)
        rank = jnp.cumsum(keep, dtype=jnp.int32)
        index_of = jnp.sum(rank <= index[:, None], axis=1)
        out = candidates[jnp.minimum(index_of, len(candidates) - 1)]
        return (jnp.where(is_side, out, polygon), jnp.where(is_side, rank[-1], count)), None

    (polygon, count), _ = jax.lax.scan(cut, (polygon, count), (points, planes, jnp.arange(size) < nside))
    return polygon, count


def clip_in_turn(clipper: Polygon, subject: Polygon, normal: Array) -> Polygon:
    """`clip_side_by_side` vertex by vertex: for one pair at a time, in time proportional to the vertices there are."""
    points, nside = clipper
    polygon, count = subject
    size = 2 * points.shape[0]
    none = jnp.zeros((size, 3), polygon.dtype)

    def cut(i: Array, state: Polygon) -> Polygon:
        polygon, count = state
        start, end = row_at(points, i), row_at(points, jnp.where(i + 1 < nside, i + 1, 0))
        plane = cross(end - start, normal)

        def visit(j: Array, out: Polygon) -> Polygon:
            kept, n = out
            p, q = row_at(polygon, j), row_at(polygon, jnp.where(j + 1 < count, j + 1, 0))
            inside1, inside2 = inner(p - start, plane) > -MINVAL, inner(q - start, plane) > -MINVAL
            rate = jnp.where(inside1 != inside2, inner(q - p, plane), 0)
            t = safe.divide(inner(plane, start) - inner(p, plane), rate, jnp.inf)
            crosses = (t >= 0) & (t <= 1)
            # what does not count is written over by what comes next
            kept = with_row(kept, jnp.minimum(n, size - 1), p + jnp.where(crosses, t, 0) * (q - p))
            n += crosses.astype(n.dtype)
            kept = with_row(kept, jnp.minimum(n, size - 1), q)
            return kept, n + inside2.astype(n.dtype)

        return repeat(count, visit, (none, jnp.int32(0)))

    padded = jnp.pad(polygon, ((0, size - len(polygon)), (0, 0)))
    return repeat(nside, cut, (padded, jnp.asarray(count, jnp.int32)))


def _at_most_four(polygon: Array, count: Array) -> tuple[Array, Array]:
    """At most four points (5, 3), those of the largest quadrilateral or all distinct ones; and which are real."""
    of_quadrilateral = polygon[largest_quadrilateral(jax.lax.stop_gradient(polygon), count)]
    first_four = polygon[:4]
    same = jnp.all(jnp.abs(first_four[:, None] - first_four) < MINVAL, axis=-1) & np.tril(np.ones((4, 4), bool), -1)
    kept = [jnp.array(True)]
    for i in range(1, 4):
        kept.append(~jnp.any(same[i, :i] & jnp.stack(kept)))
    real = jnp.stack(kept) & (jnp.arange(4) < count)
    more = count > 4
    points, real = jnp.where(more, of_quadrilateral, first_four), jnp.where(more, True, real)
    return jnp.pad(points, ((0, MANIFOLD_SLOTS - 4), (0, 0))), jnp.pad(real, (0, MANIFOLD_SLOTS - 4))


def largest_quadrilateral(polygon: Array, count: Array) -> Array:
    """Indices (4,) of the corners of a convex polygon that span a quadrilateral of greatest area.

    Rotating calipers: the four corners advance in turn as long as that makes the area larger.
    """

    def area(q: Array) -> Array:
        a, b, c, d = polygon[q]
        total = cross(d - a, b - d) + cross(c - b, a - c)
        return 0.5 * jnp.sqrt(inner(total, total))

    def move(q: Array, corner: Array) -> Array:
        next_corner = jnp.where(q + 1 < count, q + 1, 0)
        return jnp.where(jnp.arange(4, dtype=jnp.result_type(corner)) == corner, next_corner, q)

    def body(state: tuple) -> tuple:
        q, best, largest, corner = state
        # corner 3, 2, 1 tries to move on; when 3 cannot, the first corner does
        trial = move(q, corner)
        new_area = area(trial)
        better = new_area > largest * (1 + 8 * jnp.finfo(new_area.dtype).eps)
        q1 = jnp.where(better, trial, q)
        exhausted = ~better & (corner == 3)
        advanced_corners = q1
        for k in (1, 2, 3):
            advanced_corners = jnp.where(
                (advanced_corners[k] == advanced_corners[k - 1])
                & (jnp.all(advanced_corners[1:k] != q1[1:k]) | (k == 1)),
                move(advanced_corners, k),
                advanced_corners,
            )
        advanced = jnp.where(jnp.arange(4) == 0, q1[0] + 1, advanced_corners)
        following = jnp.where(better, jnp.where(corner == 3, 2, corner), jnp.where(corner == 1, 3, corner - 1))
        return (
            jnp.where(exhausted, advanced, q1),
            jnp.where(better, trial, best),
            jnp.where(better, new_area, largest),
            jnp.where(exhausted, 3, following),
        )

    start = jnp.arange(4, dtype=jnp.int32)
    state = (start, start, area(start), jnp.int32(3))
    return jax.lax.while_loop(lambda s: (s[0][0] < count) & (count > 4), lambda s: _cast_like(s, body(s)), state)[1]


def _cast_like(old: tuple, new: tuple) -> tuple:
    """The new state with the dtypes of the old one."""
    return jax.tree.map(lambda x, y: jnp.asarray(y, x.dtype), old, new)
