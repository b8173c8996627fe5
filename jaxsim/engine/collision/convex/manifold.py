"""Several contacts between faceted shapes at once: the faces that touch, one clipped by the other; for one pair."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL, GeomType
from jaxsim.engine.collision.convex.gjk import Points
from jaxsim.engine.collision.convex.hull import BOX_SIGNS, Facets
from jaxsim.engine.collision.convex.support import Shape
from jaxsim.engine.collision.shapes import unit
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array

FACE_TOLERANCE = 0.99999872  # cosine between normals of faces that count as parallel
EDGE_TOLERANCE = 0.00159999931  # sine between an edge and a face that count as parallel
SLOTS = 5


class Side(NamedTuple):
    """What of one shape the face of the polytope touches.

    `dim` is 1 for a vertex, 2 for an edge, 3 for a face; `vertex` (3,) and `point` (3, 3) its vertices; `face`
    (K,) the faces they have in common, `normal` (K, 3) and `real` (K,) which entries count.
    """

    dim: Array
    vertex: Array
    point: Array
    face: Array
    normal: Array
    real: Array


def manifold(facets: Facets, a: Shape, b: Shape, face: Points, gap: Array) -> tuple[Array, Array, Array, Array]:
    """Contacts where two faces, or a face and an edge, touch: whether any, positions, normals (5, 3), which are real.

    `face` is the face of the polytope where the search ended, `gap` (3,) the vector from witness x1 to x2.
    """
    one = _side(facets, a, face.index[:, 0], -gap)
    two = _side(facets, b, face.index[:, 1], gap)
    depth = safe.norm(gap)

    facing = (inner(one.normal[:, None], two.normal) < -FACE_TOLERANCE) & one.real[:, None] & two.real
    by_face = jnp.any(facing)
    i, j = jnp.divmod(jnp.argmax(facing), facing.shape[1])
    try1 = (one.dim < 3) & (one.dim <= two.dim)
    try2 = ~try1 & (two.dim < 3)
    by_edge1, edge1, under1 = _edge_on_face(facets, a, one, two)
    by_edge2, edge2, under2 = _edge_on_face(facets, b, two, one)
    by_edge1, by_edge2 = ~by_face & try1 & by_edge1, ~by_face & try2 & by_edge2

    face1 = _polygon(facets, a, one.face[jnp.where(by_edge2, under2, i)])
    face2 = _polygon(facets, b, two.face[jnp.where(by_edge1, under1, j)])
    normal1 = one.normal[jnp.where(by_edge2, under2, i)]
    normal2 = two.normal[jnp.where(by_edge1, under1, j)]
    size = max(face1[0].shape[0], face2[0].shape[0])
    face1, face2, edge1, edge2 = [_widen(p, n, size) for p, n in (face1, face2, (edge1, 2), (edge2, 2))]
    clipper = _choose(by_edge1, face2, face1)
    subject = _choose(by_edge1, edge1, _choose(by_edge2, edge2, face2))
    normal = jnp.where(by_edge1, normal2, normal1)
    way = jnp.where(by_edge2, normal1, -normal2)
    points, count = clip(clipper, subject, normal)
    ok = (by_face | by_edge1 | by_edge2) & (clipper[1] >= 3) & (count >= 1)
    points, real = _prune(points, count)
    return ok, points + 0.5 * depth * way, jnp.broadcast_to(way, points.shape), real & ok


def _choose(which: Array, x: tuple, y: tuple) -> tuple:
    return tuple(jnp.where(which, p, q) for p, q in zip(x, y, strict=True))


def _widen(points: Array, count: Array, size: int) -> tuple[Array, Array]:
    return jnp.pad(points, ((0, size - points.shape[0]), (0, 0))), jnp.asarray(count, jnp.int32)


def _local(shape: Shape, vertex: Array) -> Array:
    """Vertices of a shape in its own frame."""
    corner = jnp.asarray(BOX_SIGNS, shape.size.dtype)[jnp.minimum(vertex, 7)] * shape.size
    return jnp.where(shape.kind == GeomType.BOX, corner, shape.vert[jnp.minimum(vertex, shape.vert.shape[0] - 1)])


def _side(f: Facets, shape: Shape, index: Array, out: Array) -> Side:
    i1, i2, i3 = index
    swap = i1 == i2
    dim = jnp.where(swap, jnp.where(i1 == i3, 1, 2), jnp.where((i3 == i1) | (i3 == i2), 2, 3))
    vertex = jnp.stack([i1, jnp.where(swap, i3, i2), i3])
    point = shape.pos + matvec(shape.mat, _local(shape, vertex))
    around = jnp.asarray(f.around)[shape.row][vertex]  # (3, K)
    real = around[0] >= 0
    with2 = jnp.any(around[0][:, None] == around[1], axis=1) & real
    with2 &= jnp.cumsum(with2) <= 2
    with3 = with2 & jnp.any(around[0][:, None] == around[2], axis=1)
    with3 &= jnp.cumsum(with3) <= 1
    real = jnp.where(dim == 1, real, jnp.where(dim == 2, with2, with3))
    face = jnp.maximum(around[0], 0)
    normals = f.normal[shape.row]
    # vertices of a box that span no face or edge: the face whose normal is that of the contact
    close = (inner(normals, unit(matvec_t(shape.mat, out))[0]) > FACE_TOLERANCE) & (jnp.arange(len(normals)) < 6)
    odd = (shape.kind == GeomType.BOX) & (dim > 1) & (jnp.sum(real) != 4 - dim)
    first = jnp.arange(real.shape[0]) == 0
    real = jnp.where(odd, first & jnp.any(close), real)
    face = jnp.where(odd & first, jnp.argmax(close), face)
    return Side(dim, vertex, point, face, matvec(shape.mat, normals[face]), real)


def _edge_on_face(f: Facets, shape: Shape, edge: Side, face: Side):
    """The first edge of one side that lies on a face of the other: whether any, its ends (2, 3), the face's place."""
    beside = jnp.asarray(f.beside)[shape.row][edge.vertex[0]]
    ends = shape.pos + matvec(shape.mat, _local(shape, jnp.maximum(beside, 0)))
    single = edge.dim == 2
    first = jnp.arange(beside.shape[0]) == 0
    ends = jnp.where(single, edge.point[1], ends)
    real = jnp.where(single, first, beside >= 0)
    along = unit(ends - edge.point[0])[0]
    lies = (jnp.abs(inner(face.normal[:, None], along)) < EDGE_TOLERANCE) & face.real[:, None] & real
    i, j = jnp.divmod(jnp.argmax(lies), lies.shape[1])
    return jnp.any(lies), jnp.stack([edge.point[0], ends[j]]), i


def _polygon(f: Facets, shape: Shape, face: Array) -> tuple[Array, Array]:
    """Corners (P, 3) of a face in the world, and how many."""
    corner = jnp.maximum(jnp.asarray(f.corner)[shape.row, face], 0)
    return shape.pos + matvec(shape.mat, _local(shape, corner)), jnp.asarray(f.count)[shape.row, face]


def clip(clipper: tuple[Array, Array], subject: tuple[Array, Array], normal: Array) -> tuple[Array, Array]:
    """A polygon clipped by the planes through the edges of another, along a normal; polygons are (P, 3), count."""
    points, sides = clipper
    polygon, count = subject
    size = points.shape[0]
    total = 2 * size
    polygon = jnp.pad(polygon, ((0, total - polygon.shape[0]), (0, 0)))
    after = points[jnp.where(jnp.arange(size) + 1 < sides, jnp.arange(size) + 1, 0)]
    planes = cross(after - points, jnp.broadcast_to(normal, points.shape))
    place = jnp.arange(total)

    def cut(state: tuple, edge: tuple) -> tuple:
        polygon, count = state
        start, plane, real = edge
        q = polygon[jnp.where(place + 1 < count, place + 1, 0)]
        mine = place < count
        inside1, inside2 = inner(polygon - start, plane) > -MINVAL, inner(q - start, plane) > -MINVAL
        slope = inner(q - polygon, plane)
        t = safe.divide(inner(plane, start) - inner(polygon, plane), jnp.where(inside1 != inside2, slope, 0), jnp.inf)
        crosses = mine & (t >= 0) & (t <= 1)
        crossing = polygon + jnp.where(crosses, t, 0)[:, None] * (q - polygon)
        keep = jnp.stack([crosses, mine & inside2], axis=1).reshape(-1)
        both = jnp.stack([crossing, q], axis=1).reshape(-1, 3)
        rank = jnp.cumsum(keep, dtype=jnp.int32)
        source = jnp.sum(rank <= place[:, None], axis=1)
        out = both[jnp.minimum(source, len(both) - 1)]
        return (jnp.where(real, out, polygon), jnp.where(real, rank[-1], count)), None

    (polygon, count), _ = jax.lax.scan(cut, (polygon, count), (points, planes, jnp.arange(size) < sides))
    return polygon, count


def _prune(polygon: Array, count: Array) -> tuple[Array, Array]:
    """At most four points (5, 3): those of the largest quadrilateral, or all that differ; and which are real."""
    four = polygon[quadrilateral(jax.lax.stop_gradient(polygon), count)]
    few = polygon[:4]
    same = jnp.all(jnp.abs(few[:, None] - few) < MINVAL, axis=-1) & np.tril(np.ones((4, 4), bool), -1)
    kept = [jnp.array(True)]
    for i in range(1, 4):
        kept.append(~jnp.any(same[i, :i] & jnp.stack(kept)))
    real = jnp.stack(kept) & (jnp.arange(4) < count)
    many = count > 4
    points, real = jnp.where(many, four, few), jnp.where(many, True, real)
    return jnp.pad(points, ((0, SLOTS - 4), (0, 0))), jnp.pad(real, (0, SLOTS - 4))


def quadrilateral(polygon: Array, count: Array) -> Array:
    """Indices (4,) of the corners of a convex polygon that span a quadrilateral of greatest area.

    Four corners go round; each in turn moves on as long as that makes the area larger.
    """

    def area(q: Array) -> Array:
        a, b, c, d = polygon[q]
        total = cross(d - a, b - d) + cross(c - b, a - c)
        return 0.5 * jnp.sqrt(inner(total, total))

    def move(q: Array, corner: Array) -> Array:
        step = jnp.where(q + 1 < count, q + 1, 0)
        return jnp.where(jnp.arange(4) == corner, step, q)

    def body(state: tuple) -> tuple:
        q, best, largest, corner = state
        # corner 3, 2, 1 tries to move on; when 3 cannot, the first corner does
        trial = move(q, corner)
        size = area(trial)
        better = size > largest * (1 + 8 * jnp.finfo(size.dtype).eps)
        q1 = jnp.where(better, trial, q)
        given_up = ~better & (corner == 3)
        bump = q1
        for k in (1, 2, 3):
            bump = jnp.where((bump[k] == bump[k - 1]) & (jnp.all(bump[1:k] != q1[1:k]) | (k == 1)), move(bump, k), bump)
        advanced = bump.at[0].set(q1[0] + 1)
        following = jnp.where(better, jnp.where(corner == 3, 2, corner), jnp.where(corner == 1, 3, corner - 1))
        return (
            jnp.where(given_up, advanced, q1),
            jnp.where(better, trial, best),
            jnp.where(better, size, largest),
            jnp.where(given_up, 3, following),
        )

    start = jnp.arange(4, dtype=jnp.int32)
    state = (start, start, area(start), jnp.int32(3))
    return jax.lax.while_loop(lambda s: (s[0][0] < count) & (count > 4), lambda s: _keep(s, body(s)), state)[1]


def _keep(old: tuple, new: tuple) -> tuple:
    return jax.tree.map(lambda x, y: jnp.asarray(y, x.dtype), old, new)
