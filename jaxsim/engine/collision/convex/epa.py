"""EPA: the penetration depth of two convex shapes, for one pair.

Source: van den Bergen (2001), Proximity queries and penetration depth computation on 3D game objects. The steps follow
MuJoCo's engine_collision_gjk.c.

A polytope inside the Minkowski difference is expanded, by support points along the normal of its face nearest to the
origin, until that face is on the boundary. It has at most 5 + iterations vertices, and a closed surface has fewer than
twice as many faces, so arrays of this size suffice. A round takes time in proportion to the faces that it replaces:
they are found by walking from face to face, and new faces fill their entries. As in `gjk`, this is a program of
scalars.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import MINVAL
from jaxsim.engine.collision.convex.gjk import (
    GjkResult,
    SupportPoints,
    barycentric_areas,
    project_origin,
    weighted,
)
from jaxsim.engine.collision.convex.support import SupportPoint
from jaxsim.math import component
from jaxsim.math.arrays import row_at, with_row
from jaxsim.math.component import Vector, split
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat

# faces of the initial polytope, by what GJK's simplex is
SEGMENT_POLYTOPE = np.array([[0, 2, 3], [0, 4, 2], [0, 3, 4], [1, 3, 2], [1, 2, 4], [1, 4, 3]], np.int32)
TRIANGLE_POLYTOPE = np.array([[4, 0, 1], [4, 2, 0], [4, 1, 2], [3, 1, 0], [3, 0, 2], [3, 2, 1]], np.int32)
TETRAHEDRON_POLYTOPE = np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [3, 2, 1]], np.int32)
INITIAL_FACES = 6  # at most
VERTEX_BITS, FACE_BITS = 10, 11  # of an edge's code: there are at most 1,005 vertices and twice as many faces


def _edge_code(vertex: Array, face: Array, edge: Array | int) -> Array:
    """An edge of a face as one number: its first vertex, the face across it, and the number of the edge there."""
    return vertex | (face << np.int32(VERTEX_BITS)) | (edge << np.int32(VERTEX_BITS + FACE_BITS))


def _first_vertex(code: Array) -> Array:
    return code & np.int32((1 << VERTEX_BITS) - 1)


def _across(code: Array) -> tuple[Array, Array]:
    """The face across an edge, and the number of the edge there."""
    above = code >> np.int32(VERTEX_BITS)
    return above & np.int32((1 << FACE_BITS) - 1), above >> np.int32(FACE_BITS)


def _edge_codes(verts: np.ndarray) -> np.ndarray:
    """Codes (F, 3) of the edges, from vertex i to vertex i + 1, of the faces (F, 3) of a polytope."""
    ends = np.roll(verts, -1, axis=1)
    back = ((verts[:, :, None, None] == ends) & (ends[:, :, None, None] == verts)).reshape(*verts.shape, -1)
    place = np.argmax(back, axis=2).astype(np.int32)
    return _edge_code(verts, place // 3, place % 3)


INITIAL = SEGMENT_POLYTOPE, TRIANGLE_POLYTOPE, TETRAHEDRON_POLYTOPE
POLYTOPES = np.stack([np.resize(p, (INITIAL_FACES, 3)) for p in INITIAL])
POLYTOPE_EDGES = np.stack([np.resize(_edge_codes(p), (INITIAL_FACES, 3)) for p in INITIAL])
OF_SEGMENT, OF_TRIANGLE, OF_TETRAHEDRON = range(3)
FACES_OF_KIND = np.array([6, 6, 4], np.int32)


class EpaResult(NamedTuple):
    """Whether EPA ended well, depth, witness points x1, x2 (3,), the nearest face's support points and weights (3,)."""

    valid: Array
    depth: Array
    x1: Array
    x2: Array
    face: SupportPoints
    weight: Array


class _Polytope(NamedTuple):
    points: SupportPoints  # (V,)
    faces: Array  # (F, 3) codes of the edges of each face, see `_edge_code`
    projection: Array  # (F, 4) origin projected on each face, and the square of its distance
    open: Array  # (F,) whether the face may still be expanded
    count: Array  # number of vertices
    nface: Array  # number of faces


class _Horizon(NamedTuple):
    """A walk over the faces that a point sees, and the edges around them."""

    top: Array  # of the stack
    stack: Array  # (2F,) edges to cross: 4 face + edge
    seen: Array  # (F,) the last walk, counted from one, whose point sees a face
    nseen: Array
    faces: Array  # (F,) the faces seen
    nedge: Array
    edges: Array  # (F, 2) of the horizon, as edges of the faces seen: code and second vertex


class _EpaState(NamedTuple):
    running: Array
    k: Array  # iterations
    polytope: _Polytope
    horizon: _Horizon  # of the last round; the next one overwrites it
    face: Array  # (3,) vertices of the nearest face
    normal: Vector  # origin projected on it
    valid: Array  # whether the search has not failed
    upper: Array  # upper bound of the depth


def epa(
    support: Callable[[Vector], SupportPoint],
    simplex: GjkResult,
    tolerance: Array,
    discrete: Array,
    iterations: int,
    numbered: tuple[Array, Array],
    active: Array,
) -> EpaResult:
    """Find the penetration depth: expand a polytope from GJK's simplex until its nearest face is on the boundary.

    With `discrete` the search also ends where a support point repeats; `numbered` says which of the shapes' indices
    count for that.
    """
    iterations = min(iterations, 1000)
    dtype = simplex.weight.dtype
    start, usable = _initial_polytope(support, simplex, 5 + iterations, active)
    if dtype == jnp.float64:
        tolerance = jnp.where(discrete, MINVAL, tolerance)
    # faces in one plane have one distance and do not see its points, except for rounding
    rounding = 256 * float(jnp.finfo(dtype).eps)
    slack = 1 + rounding

    def step(s: _EpaState) -> _EpaState:
        p = s.polytope
        best, lower2 = _nearest_open_face(p)
        beyond_upper = lower2 > slack * s.upper * s.upper
        face = jnp.where(beyond_upper, s.face, _first_vertex(row_at(p.faces, best)))
        normal = component.where(beyond_upper, s.normal, split(row_at(p.projection, best)[:3]))
        lower = jnp.sqrt(jnp.where(lower2 > 0, lower2, 1))
        has_direction = lower > MINVAL
        one = jnp.ones_like(lower)
        direction = component.where(has_direction, component.scale(1 / lower, normal), (one, 0 * one, 0 * one))
        new = support(direction)
        upper = jnp.minimum(s.upper, component.dot(normal, new.w) / lower)
        end = beyond_upper | (lower2 <= 0) | (upper - lower < tolerance) | (discrete & _repeats(p, new, numbered))

        horizon = _walk(p, s.horizon, s.k + 1, new.w, rounding, best, ~end)
        p, degenerate = _expanded(p, new, horizon, lower2, upper, slack)
        valid = s.valid & ~degenerate
        running = ~end & ~degenerate & (s.k + 1 < iterations)
        return _EpaState(running, s.k + 1, p, horizon, face, normal, valid, upper)

    first = _first_vertex(start.faces[0]), split(start.projection[0, :3])
    begin = active & usable
    s = _EpaState(
        begin, jnp.int32(0), start, _no_horizon(len(start.faces)), *first, begin, jnp.full((), jnp.inf, dtype)
    )
    s = lax.while_loop(lambda s: s.running, step, s)
    corners = [s.polytope.points.at(i) for i in split(s.face)]
    of_a, of_b = (jnp.stack([jnp.stack(p[k]) for p in corners]) for k in (0, 1))
    face = SupportPoints(of_a, of_b, _indices(corners))
    w = [split(x) for x in face.w]
    areas, total = barycentric_areas(w[0], w[1], w[2], s.normal)
    weight = jnp.stack(areas) / jnp.where(total == 0, 1, total)
    depth = jnp.sqrt(component.dot(s.normal, s.normal))
    return EpaResult(s.valid, depth, *weighted(face, weight), face, weight)


def _indices(points: list[SupportPoint]) -> Array:
    """The vertex indices (n, 2) of support points."""
    return jnp.stack([jnp.stack([p.i, p.j]) for p in points])


def _nearest_open_face(p: _Polytope) -> tuple[Array, Array]:
    """The open face nearest to the origin and its squared distance; infinite if there is none."""
    return lax.platform_dependent(p.open, p.projection, p.nface, tpu=_nearest_of_all, default=_nearest_sequential)


def _nearest_of_all(is_open: Array, projection: Array, nface: Array) -> tuple[Array, Array]:
    square = projection[:, 3]
    real = is_open & (np.arange(len(square), dtype=np.int32) < nface) & (square == square)
    square = jnp.where(real, square, jnp.inf)
    return jnp.argmin(square).astype(jnp.int32), jnp.min(square)


def _nearest_sequential(is_open: Array, projection: Array, nface: Array) -> tuple[Array, Array]:

    def visit(i: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        square = jnp.where(row_at(is_open, i), row_at(projection, i)[3], jnp.inf)
        nearer = square < best[1]
        return jnp.where(nearer, i, best[0]), jnp.where(nearer, square, best[1])

    return repeat(nface, visit, (jnp.int32(0), jnp.full((), jnp.inf, projection.dtype)))


def _repeats(p: _Polytope, new: SupportPoint, numbered: tuple[Array, Array]) -> Array:
    """Whether a support point is a vertex of the polytope already, by the numbers of the shapes that have some."""

    def is_same(one: Array, other: Array) -> Array:
        return ((one == new.i) | ~numbered[0]) & ((other == new.j) | ~numbered[1])

    def sequential(index: Array, count: Array) -> Array:
        return repeat(count, lambda i, found: found | is_same(*split(row_at(index, i))), jnp.array(False))

    def at_once(index: Array, count: Array) -> Array:
        return jnp.any(is_same(*index.T) & (np.arange(len(index), dtype=np.int32) < count))

    return lax.platform_dependent(p.points.index, p.count, tpu=at_once, default=sequential)


def _no_horizon(nface: int) -> _Horizon:
    none = jnp.zeros(nface, jnp.int32)
    zero = jnp.int32(0)
    return _Horizon(zero, jnp.zeros(2 * nface + 4, jnp.int32), none, zero, none, zero, jnp.zeros((nface, 2), jnp.int32))


def _walk(
    p: _Polytope, last: _Horizon, count: Array, w: Vector, rounding: float, best: Array, active: Array
) -> _Horizon:
    """The faces that the point w sees and that are connected to the best one by such faces, and their horizon.

    This is walk number `count`, from one; the arrays of the `last` one are used again.

    Without the connection a sliver far away, whose normal is all rounding, would open the polytope there. The edges of
    the horizon come out in order around the surface, since the walk turns the same way at every face.
    """
    w2 = component.dot(w, w)

    def cross_edge(h: _Horizon) -> _Horizon:
        item = row_at(h.stack, h.top - 1)
        face, edge = lax.div(item, np.int32(4)), lax.rem(item, np.int32(4))
        following = jnp.where(edge == 2, 0, edge + 1)
        mine = row_at(p.faces, face)
        code = row_at(mine, edge)
        beyond, back = _across(code)
        x, y, z, square = split(row_at(p.projection, beyond))
        height = component.dot((x, y, z), w) - square
        seen = row_at(h.seen, beyond)
        is_new = seen != count
        sees = is_new & (height > MINVAL + rounding * jnp.sqrt(square * w2))
        push = jnp.stack(
            [4 * beyond + jnp.where(back == 0, 2, back - 1), 4 * beyond + jnp.where(back == 2, 0, back + 1)]
        )
        row = jnp.stack([code, _first_vertex(row_at(mine, following))])
        # what does not hold is written behind the last entry in use
        return _Horizon(
            top=h.top - 1 + jnp.where(sees, 2, 0),
            stack=lax.dynamic_update_slice(h.stack, push, (h.top - 1,), allow_negative_indices=False),
            seen=with_row(h.seen, beyond, jnp.where(sees, count, seen)),
            nseen=h.nseen + sees,
            faces=with_row(h.faces, h.nseen, beyond),
            nedge=h.nedge + (is_new & ~sees),
            edges=with_row(h.edges, h.nedge, row),
        )

    first = 4 * best + np.array([2, 1, 0], np.int32)
    start = _Horizon(
        top=jnp.where(active, 3, 0).astype(jnp.int32),
        stack=lax.dynamic_update_slice(last.stack, first, (0,)),
        seen=with_row(last.seen, best, count),
        nseen=jnp.int32(1),
        faces=with_row(last.faces, 0, best),
        nedge=jnp.int32(0),
        edges=last.edges,
    )
    return lax.while_loop(lambda h: h.top > 0, cross_edge, start)


def _expanded(
    p: _Polytope, new: SupportPoint, h: _Horizon, lower2: Array, upper: Array, slack: float
) -> tuple[_Polytope, Array]:
    """The polytope with faces from the new vertex to the horizon instead of those seen; whether that is degenerate."""
    count = p.count
    points = p.points.put(count, new)
    active = h.nedge > 0

    def slot(i: Array) -> Array:
        return jnp.where(i < h.nseen, row_at(h.faces, jnp.minimum(i, h.nseen - 1)), p.nface + i - h.nseen)

    def add(i: Array, state: tuple[_Polytope, Array]) -> tuple[_Polytope, Array]:
        q, degenerate = state
        following = jnp.where(i + 1 < h.nedge, i + 1, 0)
        code, v = split(row_at(h.edges, i))
        u, (beyond, back) = _first_vertex(code), _across(code)
        at = slot(i)
        before = slot(jnp.where(i > 0, i - 1, h.nedge - 1))
        row = jnp.stack([_edge_code(count, before, np.int32(2)), code, _edge_code(v, slot(following), np.int32(0))])
        projection, has_area = project_origin(q.points.at(v).w, q.points.at(u).w, new.w)
        square = component.dot(projection, projection)
        faces = with_row(q.faces, at, row)
        own = _edge_code(v, at, np.int32(1))[None, None]
        faces = lax.dynamic_update_slice(faces, own, (beyond, back), allow_negative_indices=False)
        opened = (square * slack >= lower2) & (square <= slack * upper * upper)
        degenerate |= ~has_area | (square == 0) | (_first_vertex(row_at(h.edges, following)[0]) != v)
        return q._replace(
            faces=faces,
            projection=with_row(q.projection, at, jnp.stack([*projection, square])),
            open=with_row(q.open, at, opened),
        ), degenerate

    close = lambda i, is_open: with_row(is_open, row_at(h.faces, i), jnp.array(False))  # noqa: E731
    closed = repeat(jnp.where(active, h.nseen, 0), close, p.open)
    degenerate = active & ((h.nedge < 3) | (h.nedge < h.nseen + 2) | (p.nface + 2 > len(p.faces)))
    p = p._replace(points=points, open=closed, count=count + 1)
    p, degenerate = repeat(jnp.where(degenerate, 0, h.nedge), add, (p, degenerate))
    return p._replace(nface=p.nface + jnp.where(active, h.nedge - h.nseen, 0)), degenerate


def _initial_polytope(
    support: Callable[[Vector], SupportPoint], simplex: GjkResult, nvert: int, active: Array
) -> tuple[_Polytope, Array]:
    """The initial polytope with room for `nvert` vertices, and whether it is usable.

    A segment gets three support points around it. A segment or tetrahedron with the origin on one of its faces is
    replaced by that face; a triangle gets a support point on either side.
    """
    room = nvert - len(simplex.weight)
    points = SupportPoints(*[jnp.pad(x, ((0, room), (0, 0))) for x in simplex.points])
    n = jnp.where(active, simplex.n, 0)
    tables = jnp.asarray(POLYTOPES)
    kind = jnp.where(n == 2, OF_SEGMENT, OF_TETRAHEDRON)

    def build(stage: Array, state: tuple) -> tuple:
        """Build first around a segment or tetrahedron, then, if that is flat, or at once, around a triangle."""
        points, kind, _, flat, skipped = state
        is_triangle = stage == 1
        skip = is_triangle & (flat >= INITIAL_FACES) | ~active
        triangle = row_at(row_at(tables, kind), jnp.minimum(flat, INITIAL_FACES - 1))
        of_simplex = is_triangle & (n == 3) | ~is_triangle
        corners = [points.at(jnp.where(of_simplex | skip, i, triangle[i])) for i in range(3)]
        for i in range(3):
            points = points.put(i, corners[i])
        directions = jnp.where(is_triangle, _across_triangle(points), _around_segment(points))
        first = jnp.where(is_triangle, 3, 2)
        more = jnp.where(is_triangle, 2, jnp.where(n == 2, 3, 0))

        def add(i: Array, points: SupportPoints) -> SupportPoints:
            return points.put(first + i, support(split(row_at(directions, i))))

        points = repeat(jnp.where(skip, 0, more), add, points)
        kind = jnp.where(is_triangle & ~skip, OF_TRIANGLE, kind)
        count = jnp.where(skip | (~is_triangle & (n == 3)), 0, row_at(jnp.asarray(FACES_OF_KIND), kind))
        projection, found = _projected(points, row_at(tables, kind), count)
        projection = jnp.where(skip, state[2], projection)
        flat = jnp.where(skip, flat, jnp.where(~is_triangle & (n == 3), 0, found))
        return points, kind, projection, flat, jnp.where(is_triangle, skip, skipped)

    empty = jnp.zeros((INITIAL_FACES, 4), points.a.dtype)
    state = points, kind.astype(jnp.int32), empty, jnp.int32(INITIAL_FACES), jnp.array(True)
    points, kind, projection, flat, _ = repeat(2, build, state)

    def triangle_usable(points: SupportPoints) -> Array:
        is_flat = _point_in_triangle(points, 3) | _point_in_triangle(points, 4)
        return (flat >= INITIAL_FACES) & ~is_flat

    usable = lax.switch(kind, [_segment_meets_triangle, triangle_usable, _origin_in_tetrahedron], points)
    nface = row_at(jnp.asarray(FACES_OF_KIND), kind)

    def pad(x: Array) -> Array:
        return jnp.pad(x, ((0, 2 * nvert - len(x)), (0, 0)))

    return _Polytope(
        points,
        pad(row_at(jnp.asarray(POLYTOPE_EDGES), kind)),
        pad(projection),
        jnp.arange(2 * nvert) < nface,
        jnp.where(nface == 4, 4, 5).astype(jnp.int32),
        nface,
    ), usable


def _across_triangle(points: SupportPoints) -> Array:
    """The unit normals (3, 3) of the triangle of the first three points, downward and upward; zero if it is flat."""
    w = [points.at(i).w for i in range(3)]
    normal = component.cross(component.sub(w[1], w[0]), component.sub(w[2], w[0]))
    length = jnp.sqrt(component.dot(normal, normal))
    up = jnp.where(length >= MINVAL, jnp.stack(normal) / jnp.where(length > 0, length, 1), 0)
    return jnp.stack([-up, up, up])


def _projected(points: SupportPoints, faces: Array, count: Array) -> tuple[Array, Array]:
    """The origin projected on the first faces (6, 4), and the first one that is flat or contains it (6: none)."""

    def visit(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        out, flat = state
        # from the last vertex to the first, as in MuJoCo
        projection, has_area = project_origin(*(points.at(k).w for k in split(row_at(faces, i)[2::-1])))
        square = component.dot(projection, projection)
        is_flat = ~has_area | (square < MINVAL**2)
        out = with_row(out, i, jnp.stack([*projection, square]))
        return out, jnp.where(is_flat, jnp.minimum(flat, i), flat)

    start = jnp.zeros((INITIAL_FACES, 4), points.a.dtype), jnp.int32(INITIAL_FACES)
    return repeat(count, visit, start)


def _around_segment(points: SupportPoints) -> Array:
    """Three unit directions (3, 3) around a segment."""
    gap = component.sub(points.at(1).w, points.at(0).w)
    square = component.dot(gap, gap)
    axis = component.scale(1 / jnp.sqrt(jnp.where(square == 0, 1, square)), gap)
    size = [jnp.abs(x) for x in gap]
    first = (size[0] <= size[1]) & (size[0] <= size[2])
    second = ~first & (size[1] <= size[2])
    unit_axis = component.vector(x.astype(gap[0].dtype) for x in (first, second, ~first & ~second))
    across = component.cross(unit_axis, gap)
    square = component.dot(across, across)
    out = [component.scale(1 / jnp.sqrt(jnp.where(square == 0, 1, square)), across)]
    for _ in range(2):  # a third of a turn about the axis, to which they are orthogonal
        turned = component.scale(0.86602540378, component.cross(axis, out[-1]))
        out.append(component.add(component.scale(-0.5, out[-1]), turned))
    return jnp.stack([jnp.stack(x) for x in out])


def _point_in_triangle(points: SupportPoints, i: int) -> Array:
    """Whether point i lies in the triangle of the first three."""
    w = [points.at(k).w for k in range(3)]
    p = points.at(i).w
    part, total = barycentric_areas(w[0], w[1], w[2], p)
    weight = component.scale(1 / jnp.where(total == 0, 1, total), part)
    mean = tuple(weight[0] * w[0][k] + weight[1] * w[1][k] + weight[2] * w[2][k] for k in range(3))
    gap = component.sub(mean, p)
    inside = (weight[0] >= 0) & (weight[1] >= 0) & (weight[2] >= 0)
    return inside & (jnp.sqrt(component.dot(gap, gap)) < MINVAL)


def _segment_meets_triangle(points: SupportPoints) -> Array:
    """Whether the segment from the first point to the second passes the triangle of the next three."""
    first = points.at(0).w
    gap = [component.sub(points.at(i).w, first) for i in range(1, 5)]
    volume = [component.dot(gap[i], component.cross(gap[j], gap[0])) for i, j in ((1, 2), (2, 3), (3, 1))]
    positive = (volume[0] >= 0) & (volume[1] >= 0) & (volume[2] >= 0)
    return positive | ((volume[0] <= 0) & (volume[1] <= 0) & (volume[2] <= 0))


def _origin_in_tetrahedron(points: SupportPoints) -> Array:
    """Whether the origin is inside the tetrahedron of the first four points."""
    w = [points.at(i).w for i in range(4)]
    inside = jnp.array(True)
    for i in range(4):
        p = w[i:] + w[:i]
        normal = component.cross(component.sub(p[1], p[0]), component.sub(p[2], p[0]))
        height, origin_height = component.dot(normal, component.sub(p[3], p[0])), -component.dot(normal, p[0])
        inside &= ((height > 0) & (origin_height > 0)) | ((height < 0) & (origin_height < 0))
    return inside
