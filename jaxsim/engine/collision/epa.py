"""Depth of penetration of two convex shapes: EPA, for one pair. Callers map over pairs.

The polytope holds at most 5 + iterations vertices, so a closed surface of them has fewer than twice as many faces:
faces live in that many places, and a deleted face leaves its place to a new one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.engine.collision.gjk import Points, Simplex, areas, new_point, project
from jaxsim.engine.collision.shapes import unit
from jaxsim.math.arrays import inner, matvec
from jaxsim.math.loops import PAIRS, while_each
from jaxsim.math.rotation import cross
from jaxsim.types import MINVAL

Array = Any
TWO = np.array([[0, 2, 3], [0, 4, 2], [0, 3, 4], [1, 3, 2], [1, 2, 4], [1, 4, 3]], np.int32)  # faces around a segment
THREE = np.array([[4, 0, 1], [4, 2, 0], [4, 1, 2], [3, 1, 0], [3, 0, 2], [3, 2, 1]], np.int32)  # around a triangle
FOUR = np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [3, 2, 1]], np.int32)  # of a tetrahedron


class Depth(NamedTuple):
    """Penetration: whether found, depth, witness points x1, x2 (3,), and the face's support points and weights (3,)."""

    ok: Array
    depth: Array
    x1: Array
    x2: Array
    face: Points
    weight: Array


class _State(NamedTuple):
    running: Array
    k: Array
    points: Points  # (V,)
    count: Array  # vertices used
    verts: Array  # (F, 3) vertices of each face
    near: Array  # (F, 3) the origin projected on each face
    alive: Array  # (F,) faces of the polytope
    open: Array  # (F,) faces that may be expanded
    face: Array  # (3,) vertices of the best face
    normal: Array  # (3,) the origin projected on it
    ok: Array
    upper: Array


def epa(
    support1: Callable,
    support2: Callable,
    simplex: Simplex,
    tolerance: Array,
    discrete: Array,
    iterations: int,
    active: Array,
) -> Depth:
    """Expand a polytope in the difference of two shapes from GJK's simplex to the face nearest to the origin."""
    points, verts, nface, valid = _first(support1, support2, simplex)
    iterations = min(iterations, 1000)
    nvert, nplace = 5 + iterations, 2 * (5 + iterations)
    points = Points(*[jnp.zeros((nvert, *x.shape[1:]), x.dtype).at[:5].set(x) for x in points])
    verts = jnp.zeros((nplace, 3), jnp.int32).at[:6].set(verts)
    alive = jnp.arange(nplace) < nface
    near, _ = _project(points.w, verts)
    if points.a.dtype == jnp.float64:
        tolerance = jnp.where(discrete, MINVAL, tolerance)
    # faces of one plane are at one distance, and none sees a point of it, but for rounding
    rounding = 256 * float(jnp.finfo(points.a.dtype).eps)
    slack = 1 + rounding
    infinite = jnp.full((), jnp.inf, points.a.dtype)
    start = _State(
        *(active & valid, jnp.int32(0), points, jnp.where(nface == 4, 4, 5).astype(jnp.int32), verts, near, alive),
        *(alive, verts[0], near[0], active & valid, infinite),
    )

    def step(s: _State) -> _State:
        square = inner(s.near, s.near)
        best = jnp.argmin(jnp.where(s.open, square, jnp.inf))
        lower2 = jnp.where(s.open[best], square[best], jnp.inf)
        beaten = lower2 > slack * s.upper * s.upper
        face, normal = jnp.where(beaten, s.face, s.verts[best]), jnp.where(beaten, s.normal, s.near[best])
        lower = jnp.sqrt(jnp.where(lower2 > 0, lower2, 1))
        far = lower > MINVAL
        direction = jnp.where(far, normal / lower, jnp.array([1, 0, 0], normal.dtype))
        new = new_point(support1, support2, direction)
        w = new.a - new.b
        upper = jnp.minimum(s.upper, inner(normal, w) / lower)
        known = (jnp.arange(nvert) < s.count) & jnp.all(s.points.index == new.index, axis=1)
        end = beaten | (lower2 <= 0) | (upper - lower < tolerance) | (discrete & jnp.any(known))

        points = s.points.put(s.count, new)
        sees = s.alive & (inner(s.near, w) - square > MINVAL + rounding * jnp.sqrt(square * inner(w, w)))
        visible, edge = _horizon(s.verts, s.alive, sees, best, nvert)
        nedge = jnp.sum(edge)
        alive = s.alive & ~visible
        verts, fresh = _attach(s.verts, alive, edge, s.count)
        near, solid = _project(points.w, verts)
        square = inner(near, near)
        broken = (nedge < 3) | jnp.any(fresh & (~solid | (square == 0)))
        opened = fresh & (square * slack >= lower2) & (square <= slack * upper * upper)
        still_open = (s.open & ~visible & s.alive) | opened
        ok = s.ok & (end | ~broken)
        running = ~end & ~broken & jnp.any(still_open) & (s.k + 1 < iterations)
        return _State(
            *(running, s.k + 1, points, s.count + 1, verts, near, alive | fresh, still_open, face, normal, ok, upper)
        )

    s = while_each(lambda s: s.running, lambda s: _keep_types(s, step(s)), start, group=PAIRS)
    face = s.points.take(s.face)
    w = face.w
    part, total = areas(w[0], w[1], w[2], s.normal)
    weight = part / jnp.where(total == 0, 1, total)
    x1, x2 = [jnp.sum(weight[:, None] * side, axis=0) for side in (face.a, face.b)]
    return Depth(s.ok, jnp.sqrt(inner(s.normal, s.normal)), x1, x2, face, weight)


def _keep_types(old: _State, new: _State) -> _State:
    return jax.tree.map(lambda a, b: jnp.asarray(b, a.dtype), old, new)


def _project(w: Array, verts: Array) -> tuple[Array, Array]:
    return project(w[verts[:, 2]], w[verts[:, 1]], w[verts[:, 0]])


def _horizon(verts: Array, alive: Array, sees: Array, best: Array, nvert: int) -> tuple[Array, Array]:
    """Faces (F,) that are seen and connected to the best one by such, and their edges on the horizon (F, 3).

    Without the connection a sliver far away, whose normal is all rounding, would open the polytope there.
    """
    ends, place = jnp.roll(verts, -1, axis=1), jnp.arange(len(verts), dtype=jnp.int32)
    owner = jnp.full((nvert, nvert), -1, jnp.int32)
    owner = owner.at[verts, ends].max(jnp.where(alive, place, -1)[:, None])
    beside = owner[ends, verts]

    def neighbours(member: Array) -> Array:
        return member[beside] & (beside >= 0)

    def grow(state: tuple) -> tuple:
        member, _ = state
        more = member | (sees & jnp.any(neighbours(member), axis=1))
        return more, jnp.any(more != member)

    member, _ = jax.lax.while_loop(lambda s: s[1], grow, (place == best, jnp.array(True)))
    return member, member[:, None] & ~neighbours(member)


def _attach(verts: Array, alive: Array, edge: Array, new: Array) -> tuple[Array, Array]:
    """Faces from the new vertex to each horizon edge, in the free places: (F, 3), and which are new (F,)."""
    total = jnp.cumsum(edge.reshape(-1), dtype=jnp.int32)
    rank = jnp.cumsum(~alive, dtype=jnp.int32) - 1
    fresh = ~alive & (rank < total[-1])
    source = jnp.searchsorted(total, rank + 1, method="scan_unrolled")
    source = jnp.minimum(source, len(total) - 1)
    start, end = verts.reshape(-1)[source], jnp.roll(verts, -1, axis=1).reshape(-1)[source]
    face = jnp.stack([jnp.full_like(start, 1) * new, start, end], axis=1)
    return jnp.where(fresh[:, None], face, verts), fresh


def _first(support1: Callable, support2: Callable, simplex: Simplex) -> tuple[Points, Array, Array, Array]:
    """The first polytope: 5 points, its faces (6, 3), how many there are, and whether it is usable.

    A segment or tetrahedron with the origin on one of its faces is replaced by that face; a triangle gets a point on
    either side.
    """
    from_two = _around_segment(support1, support2, simplex.points)
    four = Points(*[jnp.concatenate([x, x[:1]]) for x in simplex.points])
    two = simplex.n == 2
    points = jax.tree.map(lambda a, b: jnp.where(two, a, b), from_two, four)
    verts = jnp.where(two, TWO, np.concatenate([FOUR, FOUR[:2]]))
    near, solid = _project(points.w, verts)
    flat = (~solid | (inner(near, near) < MINVAL**2)) & (jnp.arange(6) < jnp.where(two, 6, 4))
    triangle = jnp.where(simplex.n == 3, jnp.arange(3), verts[jnp.argmax(flat)])
    by_triangle = (simplex.n == 3) | jnp.any(flat)
    three, three_ok = _around_triangle(support1, support2, points.take(triangle))
    ok = jnp.where(by_triangle, three_ok, jnp.where(two, _convex(points.w), _encloses(points.w)))
    points = jax.tree.map(lambda a, b: jnp.where(by_triangle, a, b), three, points)
    verts = jnp.where(by_triangle, THREE, verts)
    return points, verts.astype(jnp.int32), jnp.where(by_triangle | two, 6, 4), ok


def _around_segment(support1: Callable, support2: Callable, points: Points) -> Points:
    """A segment and the support points in three directions around it."""
    gap = points.w[1] - points.w[0]
    length = jnp.sqrt(inner(gap, gap))
    axis = gap / jnp.where(length == 0, 1, length)
    across = cross(jnp.where(jnp.arange(3) == jnp.argmin(jnp.abs(gap)), 1, 0).astype(gap.dtype), gap)
    sine, cosine = 0.86602540378, -0.5
    skew = jnp.stack([cross(e, axis) for e in np.eye(3, dtype=gap.dtype)], axis=0)
    turn = cosine * np.eye(3, dtype=gap.dtype) + (1 - cosine) * axis[:, None] * axis + sine * skew
    once = matvec(turn, across)
    around = jnp.stack([across, once, matvec(turn, once)])
    more = _supports(support1, support2, unit(around)[0])
    return Points(*[jnp.concatenate(x) for x in zip(points.take(np.arange(2, dtype=np.int32)), more, strict=True)])


def _supports(support1: Callable, support2: Callable, directions: Array) -> Points:
    return jax.vmap(lambda d: new_point(support1, support2, d))(directions)


def _around_triangle(support1: Callable, support2: Callable, points: Points) -> tuple[Points, Array]:
    """A triangle and the support points on either side of it; whether they make a polytope around the origin."""
    w = points.w
    normal = cross(w[1] - w[0], w[2] - w[0])
    length = jnp.sqrt(inner(normal, normal))
    ok = length >= MINVAL
    normal = unit(normal)[0]
    ends = _supports(support1, support2, jnp.stack([-normal, normal]))
    ok &= ~_within(w, ends.w[0]) & ~_within(w, ends.w[1])
    five = Points(*[jnp.concatenate(x) for x in zip(points, ends, strict=True)])
    near, solid = _project(five.w, THREE)
    return five, ok & jnp.all(solid & (inner(near, near) >= MINVAL**2))


def _within(w: Array, p: Array) -> Array:
    """Whether a point lies in a triangle."""
    part, total = areas(w[0], w[1], w[2], p)
    weight = part / jnp.where(total == 0, 1, total)
    gap = jnp.sum(weight[:, None] * w, axis=0) - p
    return jnp.all(weight >= 0) & (jnp.sqrt(inner(gap, gap)) < MINVAL)


def _convex(w: Array) -> Array:
    """Whether the segment w[0] w[1] goes through the triangle of the other three."""
    gap = w[1:] - w[0]
    volume = jnp.stack([inner(gap[i], cross(gap[j], gap[0])) for i, j in ((1, 2), (2, 3), (3, 1))])
    return jnp.all(volume >= 0) | jnp.all(volume <= 0)


def _encloses(w: Array) -> Array:
    """Whether the origin lies within the tetrahedron w[:4]."""
    inside = jnp.array(True)
    for i in range(4):
        p = w[np.roll(np.arange(4, dtype=np.int32), -i)]
        normal = cross(p[1] - p[0], p[2] - p[0])
        one, two = inner(normal, p[3] - p[0]), -inner(normal, p[0])
        inside &= ((one > 0) & (two > 0)) | ((one < 0) & (two < 0))
    return inside
