"""EPA: the penetration depth of two convex shapes, for one pair; callers use vmap.

Source: van den Bergen (2001), Proximity queries and penetration depth computation on 3D game objects. The steps follow
MuJoCo's engine_collision_gjk.c.

A polytope inside the Minkowski difference is expanded, by support points along the normal of its face nearest to the
origin, until that face is on the boundary. It has at most 5 + iterations vertices, and a closed surface has fewer than
twice as many faces, so arrays of this size suffice; new faces fill the entries of deleted ones. Each face stores the
faces across its edges, and vectors of faces are tuples of components (`math.component`): both avoid scatters, which are
slow on a CPU.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL
from jaxsim.engine.collision.convex.gjk import GjkResult, SupportPoints, barycentric_areas, minkowski_support
from jaxsim.engine.collision.shapes import unit
from jaxsim.math import component
from jaxsim.math.arrays import gather, inner, matvec
from jaxsim.math.component import Vector, split
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array
from jaxsim.xla.loops import PAIRS, while_each

SMALL_POLYTOPE_ITERATIONS = 11  # suffice for most pairs, so they run on a smaller polytope first
# faces of the initial polytope, by what GJK's simplex is
SEGMENT_POLYTOPE = np.array([[0, 2, 3], [0, 4, 2], [0, 3, 4], [1, 3, 2], [1, 2, 4], [1, 4, 3]], np.int32)
TRIANGLE_POLYTOPE = np.array([[4, 0, 1], [4, 2, 0], [4, 1, 2], [3, 1, 0], [3, 0, 2], [3, 2, 1]], np.int32)
TETRAHEDRON_POLYTOPE = np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [3, 2, 1]], np.int32)


def _adjacent_faces(verts: np.ndarray) -> np.ndarray:
    """The face (F, 3) across each edge, from vertex i to vertex i + 1, of the faces (F, 3) of a polytope."""
    ends = np.roll(verts, -1, axis=1)
    back = (verts[:, :, None, None] == ends) & (ends[:, :, None, None] == verts)
    return np.argmax(back.any(axis=3), axis=2).astype(np.int32)


class EpaResult(NamedTuple):
    """Whether EPA ended well, depth, witness points x1, x2 (3,), the nearest face's support points and weights (3,)."""

    valid: Array
    depth: Array
    x1: Array
    x2: Array
    face: SupportPoints
    weight: Array


class _EpaState(NamedTuple):
    running: Array
    k: Array  # iterations
    points: SupportPoints  # (V,)
    count: Array  # number of vertices
    verts: Array  # (F, 3) vertices of each face
    adjacent: Array  # (F, 3) face across each edge
    projection: Vector  # (F,) origin projected on each face
    alive: Array  # (F,) whether the entry is a face of the polytope
    open: Array  # (F,) whether the face may still be expanded
    face: Array  # (3,) vertices of the nearest face
    normal: Array  # (3,) origin projected on it
    valid: Array  # whether the search has not failed
    upper: Array  # upper bound of the depth


def epa(
    support1: Callable,
    support2: Callable,
    simplex: GjkResult,
    tolerance: Array,
    discrete: Array,
    iterations: int,
    active: Array,
) -> EpaResult:
    """The penetration depth: a polytope expanded from GJK's simplex until its nearest face is on the boundary."""
    points, verts, adjacent, nface, usable = _initial_polytope(support1, support2, simplex)
    iterations = min(iterations, 1000)
    projection, _ = _project_origin(points.w, verts)
    alive = jnp.arange(6) < nface
    first_face = verts[0], jnp.stack([x[0] for x in projection])
    if points.a.dtype == jnp.float64:
        tolerance = jnp.where(discrete, MINVAL, tolerance)
    # faces in one plane have one distance and do not see its points, except for rounding
    rounding = 256 * float(jnp.finfo(points.a.dtype).eps)
    slack = 1 + rounding
    infinite = jnp.full((), jnp.inf, points.a.dtype)
    count = jnp.where(nface == 4, 4, 5).astype(jnp.int32)
    start = _EpaState(
        *(active & usable, jnp.int32(0), points, count, verts, adjacent, projection, alive),
        *(alive, *first_face, active & usable, infinite),
    )

    def step(s: _EpaState) -> _EpaState:
        distance2 = _dot(s.projection, s.projection)
        score = jnp.where(s.open, distance2, jnp.inf)
        best = jnp.argmin(score).astype(jnp.int32)
        lower2 = gather(score, best)
        beyond_upper = lower2 > slack * s.upper * s.upper
        face = jnp.where(beyond_upper, s.face, gather(s.verts, best))
        normal = jnp.where(beyond_upper, s.normal, jnp.stack([gather(x, best) for x in s.projection]))
        lower = jnp.sqrt(jnp.where(lower2 > 0, lower2, 1))
        has_direction = lower > MINVAL
        direction = jnp.where(has_direction, normal / lower, jnp.array([1, 0, 0], normal.dtype))
        new = minkowski_support(support1, support2, direction)
        w = new.a - new.b
        upper = jnp.minimum(s.upper, inner(normal, w) / lower)
        repeated = (jnp.arange(len(s.points.a), dtype=jnp.int32) < s.count) & jnp.all(
            s.points.index == new.index, axis=1
        )
        end = beyond_upper | (lower2 <= 0) | (upper - lower < tolerance) | (discrete & jnp.any(repeated))

        tolerance_of_side = MINVAL + rounding * jnp.sqrt(distance2 * inner(w, w))
        sees = s.alive & (_dot(s.projection, split(w)) - distance2 > tolerance_of_side)
        visible, seen_across = _visible_faces(s.adjacent, sees, best)
        horizon = visible[:, None] & ~seen_across
        alive = s.alive & ~visible
        verts, adjacent, fresh = _add_horizon_faces(s, alive, horizon, seen_across)
        points = s.points.put(s.count, new)
        projection, has_area = _project_origin(points.w, verts)
        projection = tuple(jnp.where(fresh, x, y) for x, y in zip(projection, s.projection, strict=True))
        distance2 = _dot(projection, projection)
        degenerate = (jnp.sum(horizon) < 3) | jnp.any(fresh & (~has_area | (distance2 == 0)))
        opened = fresh & (distance2 * slack >= lower2) & (distance2 <= slack * upper * upper)
        still_open = (s.open & ~visible & s.alive) | opened
        valid = s.valid & (end | ~degenerate)
        running = ~end & ~degenerate & jnp.any(still_open) & (s.k + 1 < iterations)
        return _EpaState(
            *(running, s.k + 1, points, s.count + 1, verts, adjacent, projection),
            *(alive | fresh, still_open, face, normal, valid, upper),
        )

    s = start
    for limit in sorted({min(SMALL_POLYTOPE_ITERATIONS, iterations), iterations}):
        s = _with_capacity(s, 5 + limit)
        unfinished = partial(lambda limit, s: s.running & (s.k < limit), limit)
        s = while_each(unfinished, step, s, group=PAIRS)
    face = s.points.take(s.face)
    w = face.w
    areas, total = barycentric_areas(w[0], w[1], w[2], s.normal)
    weight = areas / jnp.where(total == 0, 1, total)
    x1, x2 = [jnp.sum(weight[:, None] * side, axis=0) for side in (face.a, face.b)]
    return EpaResult(s.valid, jnp.sqrt(inner(s.normal, s.normal)), x1, x2, face, weight)


def _with_capacity(s: _EpaState, nvert: int) -> _EpaState:
    """The polytope with capacity for `nvert` vertices and twice as many faces."""

    def padded(x: Array, size: int) -> Array:
        return jnp.pad(x, ((0, size - len(x)),) + ((0, 0),) * (x.ndim - 1))

    def padded_faces(tree: Any) -> Any:
        return jax.tree.map(partial(padded, size=2 * nvert), tree)

    return s._replace(
        points=jax.tree.map(partial(padded, size=nvert), s.points),
        **{name: padded_faces(getattr(s, name)) for name in ("verts", "adjacent", "projection", "alive", "open")},
    )


def _dot(a: Vector, b: Vector) -> Array:
    """Inner products of vectors given by components."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _project_origin(w: Array, verts: Array) -> tuple[Vector, Array]:
    """The origin projected on the planes of faces (F, 3), and whether each face has an area."""
    at = gather(w, verts)
    v1, v2, v3 = [split(at[:, i]) for i in (2, 1, 0)]
    normal = component.cross(component.sub(v3, v2), component.sub(v2, v1))
    square = _dot(normal, normal)
    has_area = square > 0
    return component.scale(_dot(normal, v2) / jnp.where(has_area, square, 1), normal), has_area


def _visible_faces(adjacent: Array, sees: Array, best: Array) -> tuple[Array, Array]:
    """Visible faces (F,) that are connected to the best face by visible faces, and which neighbours are such, (F, 3).

    Without the connection a sliver far away, whose normal is all rounding, would open the polytope there.
    """

    def grow(state: tuple) -> tuple:
        member, across, _ = state
        more = member | (sees & jnp.any(across, axis=1))
        return more, gather(more, adjacent), jnp.any(more != member)

    member = jnp.arange(len(adjacent), dtype=jnp.int32) == best
    start = member, gather(member, adjacent), jnp.array(True)
    return jax.lax.while_loop(lambda s: s[2], grow, start)[:2]


def _add_horizon_faces(s: _EpaState, alive: Array, horizon: Array, seen_across: Array) -> tuple[Array, Array, Array]:
    """The faces from the new vertex to each horizon edge, put into free entries.

    Returns the vertices of all faces and the faces across their edges, (F, 3), and which faces are new (F,). The
    horizon is one closed line that meets each vertex once, as around the visible part of a convex surface.
    """
    nvert, face = len(s.points.a), jnp.arange(len(alive), dtype=jnp.int32)
    total = jnp.cumsum(horizon.reshape(-1), dtype=jnp.int32)
    rank = jnp.cumsum(~alive, dtype=jnp.int32) - 1
    fresh = ~alive & (rank < total[-1])
    edge = jnp.searchsorted(total, rank + 1, method="scan_unrolled")
    next_vertex = jnp.roll(s.verts, -1, axis=1)
    edges = jnp.stack([s.verts, next_vertex, s.adjacent], axis=2).reshape(-1, 3)
    vertex1, vertex2, outer_face = split(gather(edges, jnp.minimum(edge, len(edges) - 1)))

    def face_at(vertex: Array) -> Array:
        """The new face whose horizon edge has a given end among `vertex` (F,), for each vertex (V,), or -1."""
        return jnp.max(jnp.where(fresh & (vertex == jnp.arange(nvert, dtype=jnp.int32)[:, None]), face, -1), axis=1)

    face_from, face_to = face_at(vertex1), face_at(vertex2)
    verts = jnp.stack([jnp.broadcast_to(s.count, vertex1.shape), vertex1, vertex2], axis=1)
    adjacent = jnp.stack([gather(face_to, vertex1), outer_face, gather(face_from, vertex2)], axis=1)
    kept_adjacent = jnp.where(seen_across, gather(face_from, next_vertex), s.adjacent)
    new = fresh[:, None]
    return jnp.where(new, verts, s.verts), jnp.maximum(jnp.where(new, adjacent, kept_adjacent), 0), fresh


def _initial_polytope(
    support1: Callable, support2: Callable, simplex: GjkResult
) -> tuple[SupportPoints, Array, Array, Array, Array]:
    """The initial polytope: 5 points, faces (6, 3), their adjacent faces, the number of faces, whether it is usable.

    A segment or tetrahedron with the origin on one of its faces is replaced by that face; a triangle gets a support
    point on either side.
    """
    of_segment = _around_segment(support1, support2, simplex.points)
    of_tetrahedron = SupportPoints(*[jnp.concatenate([x, x[:1]]) for x in simplex.points])
    is_segment = simplex.n == 2
    points = jax.tree.map(lambda a, b: jnp.where(is_segment, a, b), of_segment, of_tetrahedron)
    verts = jnp.where(is_segment, SEGMENT_POLYTOPE, np.concatenate([TETRAHEDRON_POLYTOPE, TETRAHEDRON_POLYTOPE[:2]]))
    projection, has_area = _project_origin(points.w, verts)
    flat = (~has_area | (_dot(projection, projection) < MINVAL**2)) & (jnp.arange(6) < jnp.where(is_segment, 6, 4))
    triangle = jnp.where(simplex.n == 3, jnp.arange(3, dtype=jnp.int32), verts[jnp.argmax(flat)])
    by_triangle = (simplex.n == 3) | jnp.any(flat)
    of_triangle, triangle_usable = _around_triangle(support1, support2, points.take(triangle))
    usable = jnp.where(
        by_triangle,
        triangle_usable,
        jnp.where(is_segment, _segment_meets_triangle(points.w), _origin_in_tetrahedron(points.w)),
    )
    points = jax.tree.map(lambda a, b: jnp.where(by_triangle, a, b), of_triangle, points)
    verts = jnp.where(by_triangle, TRIANGLE_POLYTOPE, verts)
    adjacent = jnp.where(
        is_segment,
        _adjacent_faces(SEGMENT_POLYTOPE),
        np.concatenate([_adjacent_faces(TETRAHEDRON_POLYTOPE), _adjacent_faces(TETRAHEDRON_POLYTOPE)[:2]]),
    )
    adjacent = jnp.where(by_triangle, _adjacent_faces(TRIANGLE_POLYTOPE), adjacent)
    return points, verts, adjacent, jnp.where(by_triangle | is_segment, 6, 4), usable


def _around_segment(support1: Callable, support2: Callable, points: SupportPoints) -> SupportPoints:
    """A segment and the support points in three directions around it."""
    gap = points.w[1] - points.w[0]
    length = jnp.sqrt(inner(gap, gap))
    axis = gap / jnp.where(length == 0, 1, length)
    across = cross(jnp.where(jnp.arange(3) == jnp.argmin(jnp.abs(gap)), 1, 0).astype(gap.dtype), gap)
    sine, cosine = 0.86602540378, -0.5
    skew = jnp.stack([cross(e, axis) for e in np.eye(3, dtype=gap.dtype)], axis=0)
    rotation = cosine * np.eye(3, dtype=gap.dtype) + (1 - cosine) * axis[:, None] * axis + sine * skew
    across2 = matvec(rotation, across)
    directions = jnp.stack([across, across2, matvec(rotation, across2)])
    new = _supports(support1, support2, unit(directions)[0])
    return SupportPoints(
        *[jnp.concatenate(x) for x in zip(points.take(np.arange(2, dtype=np.int32)), new, strict=True)]
    )


def _supports(support1: Callable, support2: Callable, directions: Array) -> SupportPoints:
    """Support points of the Minkowski difference along unit directions (n, 3)."""
    return jax.vmap(lambda d: minkowski_support(support1, support2, d))(directions)


def _around_triangle(support1: Callable, support2: Callable, points: SupportPoints) -> tuple[SupportPoints, Array]:
    """A triangle and the support points on either side, and whether they make a polytope around the origin."""
    w = points.w
    normal = cross(w[1] - w[0], w[2] - w[0])
    length = jnp.sqrt(inner(normal, normal))
    usable = length >= MINVAL
    normal = unit(normal)[0]
    ends = _supports(support1, support2, jnp.stack([-normal, normal]))
    usable &= ~_point_in_triangle(w, ends.w[0]) & ~_point_in_triangle(w, ends.w[1])
    points5 = SupportPoints(*[jnp.concatenate(x) for x in zip(points, ends, strict=True)])
    projection, has_area = _project_origin(points5.w, TRIANGLE_POLYTOPE)
    return points5, usable & jnp.all(has_area & (_dot(projection, projection) >= MINVAL**2))


def _point_in_triangle(w: Array, p: Array) -> Array:
    """Whether a point is in the triangle w (3, 3)."""
    part, total = barycentric_areas(w[0], w[1], w[2], p)
    weight = part / jnp.where(total == 0, 1, total)
    gap = jnp.sum(weight[:, None] * w, axis=0) - p
    return jnp.all(weight >= 0) & (jnp.sqrt(inner(gap, gap)) < MINVAL)


def _segment_meets_triangle(w: Array) -> Array:
    """Whether the segment from w[0] to w[1] passes the triangle of the other three points."""
    gap = w[1:] - w[0]
    volume = jnp.stack([inner(gap[i], cross(gap[j], gap[0])) for i, j in ((1, 2), (2, 3), (3, 1))])
    return jnp.all(volume >= 0) | jnp.all(volume <= 0)


def _origin_in_tetrahedron(w: Array) -> Array:
    """Whether the origin is inside the tetrahedron w[:4]."""
    inside = jnp.array(True)
    for i in range(4):
        p = w[np.roll(np.arange(4, dtype=np.int32), -i)]
        normal = cross(p[1] - p[0], p[2] - p[0])
        height, origin_height = inner(normal, p[3] - p[0]), -inner(normal, p[0])
        inside &= ((height > 0) & (origin_height > 0)) | ((height < 0) & (origin_height < 0))
    return inside
