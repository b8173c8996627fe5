"""Contact manifold of two faceted shapes: the touching faces, or a face and an edge, clipped; for one pair.

Clipping is the Sutherland-Hodgman algorithm (1974). The choice of faces and edges follows the multi-contact recovery of
MuJoCo's engine_collision_gjk.c. The search is a program of scalars with branches, which a CPU runs pair by pair
(`native.pool`). Derivatives follow from what it left: between which vertices, edges and sides each point arose.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import MINVAL, GeomType
from jaxsim.engine.collision.convex.hull import BOX_NORMALS, FacetTable
from jaxsim.engine.collision.convex.support import ConvexShape, Hulls
from jaxsim.math import component, safe
from jaxsim.math.arrays import row_at, with_row
from jaxsim.math.component import Vector, split
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat

PARALLEL_FACE_COSINE = 0.99999872  # between the normals of faces that count as parallel
PARALLEL_EDGE_SINE = 0.00159999931  # between an edge and a face that count as parallel
MANIFOLD_SLOTS = 5  # of a convex pair, one more than a manifold has points
NO_SIDE = -1  # second number of the origin of a point that is a vertex


class Manifold(NamedTuple):
    """Contacts of two faces, or a face and an edge: whether there are any, positions (5, 3), normal, which are real."""

    ok: Array
    pos: Array
    normal: Array
    real: Array


class ManifoldRecord(NamedTuple):
    """How the manifold of a pair arose.

    `swapped`: the clipping face is the second shape's; `clipper` is that face, `subject` the clipped one, or -1 for an
    edge with the vertices `edge` (2,). `outward` is the sign of the clipping normal that gives the contact normal, 0 if
    the clipped face's does. `origin` (4, 2) of each point: a vertex j is (j, -1), a crossing (e, i) is where edge e of
    the clipped polygon, or side -1 - e of the clipping face, meets side i. `real` is (5,).
    """

    ok: Array
    swapped: Array
    clipper: Array
    subject: Array
    edge: Array
    outward: Array
    origin: Array
    real: Array


class _Feature(NamedTuple):
    """The vertex (`dim` 1), edge (2) or face (3) of a shape that EPA's nearest face touches.

    `vertex` and `other` are the first vertices; `count` faces contain all vertices: for a vertex those of the facet
    table from `start`, otherwise `faces`, two at most.
    """

    dim: Array
    vertex: Array
    other: Array
    start: Array
    count: Array
    faces: tuple[Array, Array]

    def face(self, f: FacetTable, i: Array) -> Array:
        """Return one of the faces."""
        listed = jnp.where(i == 0, *self.faces)
        return jnp.where(self.dim == 1, row_at(f.face, self.start + jnp.where(self.dim == 1, i, 0)), listed)


class _Polygon(NamedTuple):
    """A polygon that is being clipped: `count` points, in rows of `point` (2 P, 3) from `base` on.

    One half of the rows holds it, the other is free. The polygon begins with its point `first`. `line` is the edge that
    follows each point: its number in the clipped face or, of side i, -1 - i; `origin` (2 P, 2) is as in
    `ManifoldRecord`.
    """

    point: Array
    line: Array
    origin: Array
    base: Array
    first: Array
    count: Array

    def row(self, i: Array) -> Array:
        """Return the row of point i, for i up to `count`."""
        at = i + self.first
        return self.base + jnp.where(at >= self.count, at - self.count, at)

    def put(self, row: Array, point: Vector, line: Array, origin: tuple[Array, Array]) -> "_Polygon":
        """Replace a row of this polygon."""
        return self._replace(
            point=with_row(self.point, row, jnp.stack(point)),
            line=with_row(self.line, row, line),
            origin=with_row(self.origin, row, jnp.stack(origin)),
        )


def manifold(
    f: FacetTable, hulls: Hulls, a: ConvexShape, b: ConvexShape, face: Array, gap: Vector, max_corners: int
) -> tuple[Manifold, ManifoldRecord]:
    """Find the manifold of a pair; not differentiable.

    `face` (3, 2) are the vertices of EPA's nearest face, `gap` the vector from witness point x1 to x2. Faces have
    `max_corners` at most.
    """
    one = _feature(f, a, split(face[:, 0]), component.neg(gap))
    two = _feature(f, b, split(face[:, 1]), gap)
    by_face, face1, face2 = _facing(f, a, b, one, two)
    of_first = (one.dim < 3) & (one.dim <= two.dim)
    lies, on, end = _edge_on_face(f, hulls, a, b, one, two, of_first, ~by_face & (of_first | (two.dim < 3)))
    edge = jnp.stack([jnp.where(of_first, one.vertex, two.vertex), end])
    swapped = ~by_face & of_first
    record = ManifoldRecord(
        ok=by_face | lies,
        swapped=swapped,
        clipper=jnp.where(by_face, face1, on),
        subject=jnp.where(by_face, face2, NO_SIDE),
        edge=edge,
        outward=jnp.where(by_face, 0, jnp.where(swapped, -1, 1)),
        origin=jnp.zeros((MANIFOLD_SLOTS - 1, 2), jnp.int32),
        real=jnp.zeros(MANIFOLD_SLOTS, bool),
    )
    clipper, subject = _in_roles(record, a, b)
    polygon = _clipped(f, hulls, clipper, subject, record, 2 * max_corners)
    ok = record.ok & (_ncorner(f, record.clipper) >= 3) & (polygon.count >= 1)
    points, origin, real = _at_most_four(polygon)
    real = jnp.pad(real & ok, (0, 1))
    return _moved(f, record, clipper, subject, points, gap, ok, real), record._replace(ok=ok, origin=origin, real=real)


def manifold_again(
    f: FacetTable, hulls: Hulls, a: ConvexShape, b: ConvexShape, record: ManifoldRecord, gap: Vector
) -> Manifold:
    """Compute the manifold that a record describes, differentiable by the shapes and by `gap`."""
    clipper, subject = _in_roles(record, a, b)
    along = _normal(f, clipper, record.clipper)
    plane_of_subject = _normal(f, subject, jnp.maximum(record.subject, 0))
    base = _subject_vertex(f, hulls, subject, record, jnp.int32(0))
    nside, nedge = _ncorner(f, record.clipper), _subject_count(f, record)

    def side(i: Array) -> tuple[Vector, Vector]:
        start = _corner(f, hulls, clipper, record.clipper, i)
        end = _corner(f, hulls, clipper, record.clipper, jnp.where(i + 1 < nside, i + 1, 0))
        return start, component.cross(component.sub(end, start), along)

    def point(origin: Array, real: Array) -> Array:
        line, cut = split(origin)
        is_edge = line >= 0
        e = jnp.where(is_edge, line, 0)
        p = _subject_vertex(f, hulls, subject, record, e)
        q = _subject_vertex(f, hulls, subject, record, jnp.where(e + 1 < nedge, e + 1, 0))
        start, plane = side(jnp.maximum(cut, 0))
        step = component.sub(q, p)
        is_vertex = (cut < 0) | ~real
        # only the formula in use divides: those of parallel lines and planes overflow, and zero times that is nan
        rate = jnp.where(is_edge & ~is_vertex, component.dot(step, plane), 1)
        t = safe.divide(component.dot(component.sub(start, p), plane), rate)
        crossing = component.add(p, component.scale(t, step))
        planes = plane_of_subject, plane, side(jnp.where(is_edge, 0, -1 - line))
        corner = _meeting(planes, base, start, ~is_edge & ~is_vertex)
        return jnp.stack(component.where(is_vertex, p, component.where(is_edge, crossing, corner)))

    points = jax.vmap(point)(record.origin, record.real[: MANIFOLD_SLOTS - 1])
    return _moved(f, record, clipper, subject, points, gap, record.ok, record.real)


def _meeting(planes: tuple[Vector, Vector, tuple[Vector, Vector]], base: Vector, start: Vector, used: Array) -> Vector:
    """Where three planes meet, if `used`: that of normal n0 through `base`, n1 through `start`, and a side's."""
    n0, n1, (other, n2) = planes
    across = component.cross(n1, n2), component.cross(n2, n0), component.cross(n0, n1)
    heights = component.dot(n0, base), component.dot(n1, start), component.dot(n2, other)
    volume = jnp.where(used, component.dot(n0, across[0]), 1)
    parts = [component.scale(safe.divide(h, volume), x) for h, x in zip(heights, across, strict=True)]
    return component.add(component.add(parts[0], parts[1]), parts[2])


def _moved(
    f: FacetTable,
    record: ManifoldRecord,
    clipper: ConvexShape,
    subject: ConvexShape,
    points: Array,
    gap: Vector,
    ok: Array,
    real: Array,
) -> Manifold:
    """The contacts at points (4, 3) of the clipped polygon: half of the depth away, along the contact normal."""
    own = component.scale(record.outward.astype(points.dtype), _normal(f, clipper, record.clipper))
    other = component.neg(_normal(f, subject, jnp.maximum(record.subject, 0)))
    normal = jnp.stack(component.where(record.outward == 0, other, own))
    depth = safe.norm(jnp.stack(gap))
    return Manifold(ok, jnp.pad(points + 0.5 * depth * normal, ((0, 1), (0, 0))), normal, real)


def _in_roles(record: ManifoldRecord, a: ConvexShape, b: ConvexShape) -> tuple[ConvexShape, ConvexShape]:
    """The shape whose face clips, and the one whose face or edge is clipped."""
    choose = lambda x, y: jnp.where(record.swapped, y, x)  # noqa: E731
    return jax.tree.map(choose, a, b), jax.tree.map(choose, b, a)


def _world(s: ConvexShape, v: Vector) -> Vector:
    return component.add(split(s.pos), component.mat_vec(split(s.mat.reshape(9)), v))


def _vertex(hulls: Hulls, s: ConvexShape, vertex: Array) -> Vector:
    """A vertex of a box or hull in the world frame."""
    is_box = s.type == GeomType.BOX
    at = jnp.where(is_box, 0, s.first_vertex + vertex)
    of_hull = tuple(row_at(x, at) for x in hulls.vert)
    of_box = component.vector(jnp.where((vertex >> np.int32(i)) & 1, x, -x) for i, x in enumerate(split(s.size)))
    return _world(s, component.where(is_box, of_box, of_hull))


def _normal(f: FacetTable, s: ConvexShape, face: Array) -> Vector:
    """The normal of a face in the world frame."""
    return component.mat_vec(split(s.mat.reshape(9)), tuple(row_at(x, face) for x in f.normal))


def _ncorner(f: FacetTable, face: Array) -> Array:
    return row_at(f.first_corner, face + 1) - row_at(f.first_corner, face)


def _corner(f: FacetTable, hulls: Hulls, s: ConvexShape, face: Array, i: Array) -> Vector:
    """A corner of a face in the world frame."""
    return _vertex(hulls, s, row_at(f.corner, row_at(f.first_corner, face) + i))


def _subject_count(f: FacetTable, record: ManifoldRecord) -> Array:
    return jnp.where(record.subject < 0, 2, _ncorner(f, jnp.maximum(record.subject, 0)))


def _subject_vertex(f: FacetTable, hulls: Hulls, s: ConvexShape, record: ManifoldRecord, i: Array) -> Vector:
    """A corner of the face, or an end of the edge, that is clipped."""
    is_edge = record.subject < 0
    corner = row_at(f.corner, row_at(f.first_corner, jnp.maximum(record.subject, 0)) + jnp.where(is_edge, 0, i))
    return _vertex(hulls, s, jnp.where(is_edge, row_at(record.edge, jnp.where(is_edge, i, 0)), corner))


def _feature(f: FacetTable, s: ConvexShape, index: tuple[Array, ...], direction: Vector) -> _Feature:
    """The feature spanned by vertices `index`; `direction` points from the shape to the other one."""
    i1, i2, i3 = index
    swap = i1 == i2
    dim = jnp.where(swap, jnp.where(i1 == i3, 1, 2), jnp.where((i3 == i1) | (i3 == i2), 2, 3))
    other = jnp.where(swap, i3, i2)

    def faces_of(vertex: Array) -> tuple[Array, Array]:
        at = s.first_vertex + vertex
        return row_at(f.first_face, at), row_at(f.first_face, at + 1)

    start, end = faces_of(i1)
    ranges = faces_of(other), faces_of(i3)

    def contains(vertex: int, face: Array) -> Array:
        first, last = ranges[vertex]
        at = lax.while_loop(lambda k: (k < last) & (row_at(f.face, k) != face), lambda k: k + 1, first)
        return at < last

    def visit(k: Array, found: tuple) -> tuple:
        faces, count, shared = found
        face = row_at(f.face, start + k)
        with_other = contains(0, face) & (shared < 2)  # an edge has two faces
        chosen = with_other & ((dim == 2) | (contains(1, face) & (count < 1)))
        first = jnp.where(chosen & (count == 0), face, faces[0])
        second = jnp.where(chosen & (count == 1), face, faces[1])
        return (first, second), count + chosen, shared + with_other

    none = jnp.int32(0)
    faces, count, _ = repeat(jnp.where(dim > 1, end - start, 0), visit, ((none, none), none, none))
    count = jnp.where(dim == 1, end - start, count)
    # vertices of a box that span no face or edge: use the face whose normal is the contact's
    local = component.mat_t_vec(split(s.mat.reshape(9)), direction)
    length = safe.norm(jnp.stack(local))
    aligned = BOX_NORMALS.astype(length.dtype) @ jnp.stack(local) > PARALLEL_FACE_COSINE * length
    irregular = (s.type == GeomType.BOX) & (dim > 1) & (count != 4 - dim)
    first = jnp.where(irregular, jnp.argmax(aligned).astype(jnp.int32), faces[0])
    count = jnp.where(irregular, jnp.any(aligned), count)
    return _Feature(dim, i1, other, start, count, (first, faces[1]))


def _first_pair(count1: Array, count2: Array, test: Callable[[Array, Array], Array]) -> tuple[Array, Array, Array]:
    """The first (i, j), row by row, for which `test` holds: whether there is one, i, j."""

    def following(state: tuple) -> tuple:
        i, j, found = state
        found = test(i, j)
        ends = j + 1 >= count2
        return jnp.where(found, i, i + ends), jnp.where(found, j, jnp.where(ends, 0, j + 1)), found

    rows = jnp.where(count2 > 0, count1, 0)
    state = jnp.int32(0), jnp.int32(0), jnp.array(False)
    i, j, found = lax.while_loop(lambda s: (s[0] < rows) & ~s[2], following, state)
    return found, jnp.where(found, i, 0), jnp.where(found, j, 0)


def _facing(f: FacetTable, a: ConvexShape, b: ConvexShape, one: _Feature, two: _Feature) -> tuple[Array, Array, Array]:
    """The first faces of two features whose normals are opposite: whether there are any, and the faces."""

    def opposite(i: Array, j: Array) -> Array:
        return component.dot(_normal(f, a, one.face(f, i)), _normal(f, b, two.face(f, j))) < -PARALLEL_FACE_COSINE

    found, i, j = _first_pair(one.count, two.count, opposite)
    return found, one.face(f, i), two.face(f, j)


def _edge_on_face(
    f: FacetTable,
    hulls: Hulls,
    a: ConvexShape,
    b: ConvexShape,
    one: _Feature,
    two: _Feature,
    of_first: Array,
    needed: Array,
) -> tuple[Array, Array, Array]:
    """The first edge of one feature that lies on a face of the other: whether there is one, the face, the edge's end.

    Edges are the first shape's where `of_first`, and begin at the vertex of their feature.
    """
    choose = lambda x, y: jnp.where(of_first, x, y)  # noqa: E731
    edge, flat = jax.tree.map(choose, one, two), jax.tree.map(choose, two, one)
    mine, other = jax.tree.map(choose, a, b), jax.tree.map(choose, b, a)
    begin = _vertex(hulls, mine, edge.vertex)
    is_vertex = edge.dim == 1

    def end(j: Array) -> Array:
        return jnp.where(is_vertex, row_at(f.edge_end, edge.start + jnp.where(is_vertex, j, 0)), edge.other)

    def lies(i: Array, j: Array) -> Array:
        along = component.sub(_vertex(hulls, mine, end(j)), begin)
        square = component.dot(along, along)
        ok = square > MINVAL**2
        along = component.scale(jnp.where(ok, 1 / jnp.sqrt(jnp.where(ok, square, 1)), 0), along)
        return jnp.abs(component.dot(_normal(f, other, flat.face(f, i)), along)) < PARALLEL_EDGE_SINE

    nface, nedge = jnp.where(needed, flat.count, 0), jnp.where(is_vertex, edge.count, 1)
    found, i, j = _first_pair(nface, nedge, lies)
    return found, flat.face(f, i), end(j)


def _clipped(
    f: FacetTable, hulls: Hulls, clipper: ConvexShape, subject: ConvexShape, r: ManifoldRecord, half: int
) -> _Polygon:
    """The face or edge of `subject`, clipped by the planes through the sides of the other's face along its normal.

    Half of the rows of a polygon is `half`.
    """
    nside = jnp.where(r.ok, _ncorner(f, r.clipper), 0)
    along = _normal(f, clipper, r.clipper)
    dtype = along[0].dtype
    none, zero = jnp.zeros(2 * half, jnp.int32), jnp.int32(0)
    start = _Polygon(
        jnp.zeros((2 * half, 3), dtype), none, jnp.stack([none, none], 1), zero, zero, _subject_count(f, r)
    )

    def enter(i: Array, p: _Polygon) -> _Polygon:
        return p.put(i, _subject_vertex(f, hulls, subject, r, i), i, (i, jnp.int32(NO_SIDE)))

    polygon = repeat(jnp.where(r.ok, start.count, 0), enter, start)

    def cut(i: Array, p: _Polygon) -> _Polygon:
        corner = _corner(f, hulls, clipper, r.clipper, i)
        end = _corner(f, hulls, clipper, r.clipper, jnp.where(i + 1 < nside, i + 1, 0))
        plane = component.cross(component.sub(end, corner), along)

        def height(p: _Polygon, row: Array) -> Array:
            return component.dot(component.sub(split(row_at(p.point, row)), corner), plane)

        stays = lambda j: (j < p.count) & (height(p, p.base + j) > -MINVAL)  # noqa: E731
        all_stay = lax.while_loop(stays, lambda j: j + 1, jnp.int32(0)) == p.count
        # points are given out from the second on, whether one leaves or not
        turned = p._replace(first=jnp.where(p.first + 1 < p.count, p.first + 1, 0))
        return lax.cond(all_stay, lambda: turned, lambda: _cut(p, height, i, half))

    return repeat(nside, cut, polygon)


def _cut(p: _Polygon, height: Callable[[_Polygon, Array], Array], side: Array, half: int) -> _Polygon:
    """The part of a polygon above a plane, in the other half of its rows."""
    target = half - p.base
    last = target + np.int32(half - 1)

    def visit(j: Array, state: tuple) -> tuple:
        # the old rows are read from what is written, which leaves them as they are, so that there is one polygon
        out, n, row, below = state
        following = p.row(jnp.where(j + 1 < p.count, j + 1, 0))
        above = height(out, following)
        inside, stays = below > -MINVAL, above > -MINVAL
        rate = jnp.where(inside != stays, below - above, 0)
        t = jnp.where(rate == 0, -1, below / jnp.where(rate == 0, 1, rate))
        crosses = (t >= 0) & (t <= 1)
        line = row_at(out.line, row)
        here, there = split(row_at(out.point, row)), split(row_at(out.point, following))
        line_there, origin_there = row_at(out.line, following), split(row_at(out.origin, following))
        crossing = component.add(here, component.scale(t, component.sub(there, here)))
        # what does not count is written over by what comes next
        at = jnp.minimum(target + n, last)
        out = out.put(at, crossing, jnp.where(inside, -1 - side, line), (line, side))
        n += crosses
        at = jnp.minimum(target + n, last)
        out = out.put(at, there, line_there, origin_there)
        return out, n + stays, following, above

    row = p.row(jnp.int32(0))
    out, n, _, _ = repeat(p.count, visit, (p, jnp.int32(0), row, height(p, row)))
    return out._replace(base=target, first=jnp.int32(0), count=n)


def _same_point(x: Array) -> Array | float:
    """Return the distance within which points count as one: both directions along an edge round a crossing differently.

    MuJoCo's MINVAL is 4.5 eps of its precision.
    """
    eps = jnp.finfo(x.dtype).eps
    return MINVAL if eps < MINVAL else 4.5 * float(eps) * jnp.maximum(1, jnp.max(jnp.abs(x)))


def _at_most_four(p: _Polygon) -> tuple[Array, Array, Array]:
    """At most four points (4, 3), those of the largest quadrilateral or all distinct ones; origins; which are real."""
    corners = lax.cond(p.count > 4, lambda: _largest_quadrilateral(p), lambda: tuple(jnp.int32(i) for i in range(4)))
    rows = [p.row(jnp.minimum(i, p.count)) for i in corners]
    points = [split(row_at(p.point, i)) for i in rows]
    real = []
    reach = _same_point(jnp.stack(points[0]))
    for i, point in enumerate(points):
        same = [
            real[j] & jnp.all(jnp.stack([jnp.abs(x - y) < reach for x, y in zip(point, points[j], strict=True)]))
            for j in range(i)
        ]
        distinct = ~jnp.any(jnp.stack([jnp.array(False), *same]))
        real.append((p.count > 4) | (distinct & (i < p.count)))
    return (
        jnp.stack([jnp.stack(x) for x in points]),
        jnp.stack([row_at(p.origin, i) for i in rows]),
        jnp.stack(real),
    )


class _Quadrilateral(NamedTuple):
    """Rotating calipers: the four corners, the largest area that was seen, twice and squared, and where."""

    corner: tuple[Array, Array, Array, Array]
    area: Array
    best: tuple[Array, Array, Array, Array]


def _largest_quadrilateral(p: _Polygon) -> tuple[Array, Array, Array, Array]:
    """The corners of a convex polygon that span a quadrilateral of greatest area, as MuJoCo finds them.

    For each first corner the last one advances as long as that makes the area larger, and after each of its steps so do
    the third and the second.
    """
    slack = 1 + 16 * float(jnp.finfo(p.point.dtype).eps)

    def following(i: Array) -> Array:
        return jnp.where(i + 1 < p.count, i + 1, 0)

    def area(corner: tuple[Array, ...]) -> Array:
        a, b, c, d = (split(row_at(p.point, p.row(i))) for i in corner)
        one = component.cross(component.sub(d, a), component.sub(b, d))
        two = component.cross(component.sub(c, b), component.sub(a, c))
        total = component.add(one, two)
        return component.dot(total, total)

    def advance(k: int, after: Callable[[_Quadrilateral], _Quadrilateral], q: _Quadrilateral) -> _Quadrilateral:
        """Move corner k on as long as the area grows; `after` follows each move."""

        def attempt(q: _Quadrilateral) -> tuple[tuple, Array]:
            corner = (*q.corner[:k], following(q.corner[k]), *q.corner[k + 1 :])
            return corner, area(corner)

        def grows(state: tuple) -> Array:
            q, _, area = state
            return area > q.area * slack

        def accept(state: tuple) -> tuple:
            _, corner, area = state
            q = after(_Quadrilateral(corner, area, corner))
            return q, *attempt(q)

        return lax.while_loop(grows, accept, (q, *attempt(q)))[0]

    def others(q: _Quadrilateral) -> _Quadrilateral:
        same = lambda q: q  # noqa: E731
        return advance(1, same, advance(2, same, q))

    def visit(_: Array, q: _Quadrilateral) -> _Quadrilateral:
        q = advance(3, others, q)
        a, b, c, d = q.corner
        caught = b == a
        b = jnp.where(caught, following(b), b)
        caught &= c == b
        c = jnp.where(caught, following(c), c)
        caught &= d == c
        d = jnp.where(caught, following(d), d)
        return q._replace(corner=(a + 1, b, c, d))

    start = tuple(jnp.int32(i) for i in range(4))
    return repeat(p.count, visit, _Quadrilateral(start, area(start), start)).best
