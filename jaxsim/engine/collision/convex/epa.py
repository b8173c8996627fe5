"""Depth of penetration of two convex shapes: EPA, for one pair. Callers map over pairs.

The polytope holds at most 5 + iterations vertices, so a closed surface of them has fewer than twice as many faces:
faces live in that many places, and a deleted face leaves its place to a new one. Each face knows those beside it, and
vectors of faces are tuples of components (`math.component`): both are for speed on a CPU, which has no fast scatter.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL
from jaxsim.engine.collision.convex.gjk import Points, Simplex, areas, new_point
from jaxsim.engine.collision.shapes import unit
from jaxsim.math import component
from jaxsim.math.arrays import gather, inner, matvec
from jaxsim.math.component import Vector, split
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array
from jaxsim.xla.loops import PAIRS, while_each

FEW = 11  # rounds that suffice for most pairs: these work on a smaller polytope
TWO = np.array([[0, 2, 3], [0, 4, 2], [0, 3, 4], [1, 3, 2], [1, 2, 4], [1, 4, 3]], np.int32)  # faces around a segment
THREE = np.array([[4, 0, 1], [4, 2, 0], [4, 1, 2], [3, 1, 0], [3, 0, 2], [3, 2, 1]], np.int32)  # around a triangle
FOUR = np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [3, 2, 1]], np.int32)  # of a tetrahedron


def _beside(verts: np.ndarray) -> np.ndarray:
    """The face on the other side of each edge, from vertex i to vertex i + 1, of the faces (F, 3) of a polytope."""
    ends = np.roll(verts, -1, axis=1)
    back = (verts[:, :, None, None] == ends) & (ends[:, :, None, None] == verts)
    return np.argmax(back.any(axis=3), axis=2).astype(np.int32)


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
    beside: Array  # (F, 3) faces across its edges
    near: Vector  # (F,) the origin projected on each face
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
    points, verts, beside, nface, valid = _first(support1, support2, simplex)
    iterations = min(iterations, 1000)
    near, _ = _project(points.w, verts)
    alive = jnp.arange(6) < nface
    first = verts[0], jnp.stack([x[0] for x in near])
    if points.a.dtype == jnp.float64:
        tolerance = jnp.where(discrete, MINVAL, tolerance)
    # faces of one plane are at one distance, and none sees a point of it, but for rounding
    rounding = 256 * float(jnp.finfo(points.a.dtype).eps)
    slack = 1 + rounding
    infinite = jnp.full((), jnp.inf, points.a.dtype)
    count = jnp.where(nface == 4, 4, 5).astype(jnp.int32)
    start = _State(
        *(active & valid, jnp.int32(0), points, count, verts, beside, near, alive),
        *(alive, *first, active & valid, infinite),
    )

    def step(s: _State) -> _State:
        square = _dot(s.near, s.near)
        score = jnp.where(s.open, square, jnp.inf)
        best = jnp.argmin(score)
        lower2 = gather(score, best)
        beaten = lower2 > slack * s.upper * s.upper
        face = jnp.where(beaten, s.face, gather(s.verts, best))
        normal = jnp.where(beaten, s.normal, jnp.stack([gather(x, best) for x in s.near]))
        lower = jnp.sqrt(jnp.where(lower2 > 0, lower2, 1))
        far = lower > MINVAL
        direction = jnp.where(far, normal / lower, jnp.array([1, 0, 0], normal.dtype))
        new = new_point(support1, support2, direction)
        w = new.a - new.b
        upper = jnp.minimum(s.upper, inner(normal, w) / lower)
        known = (jnp.arange(len(s.points.a)) < s.count) & jnp.all(s.points.index == new.index, axis=1)
        end = beaten | (lower2 <= 0) | (upper - lower < tolerance) | (discrete & jnp.any(known))

        margin = MINVAL + rounding * jnp.sqrt(square * inner(w, w))
        sees = s.alive & (_dot(s.near, split(w)) - square > margin)
        visible, seen_across = _visible(s.beside, sees, best)
        edge = visible[:, None] & ~seen_across
        alive = s.alive & ~visible
        verts, beside, fresh = _attach(s, alive, edge, seen_across)
        points = s.points.put(s.count, new)
        near, solid = _project(points.w, verts)
        near = tuple(jnp.where(fresh, x, y) for x, y in zip(near, s.near, strict=True))
        square = _dot(near, near)
        broken = (jnp.sum(edge) < 3) | jnp.any(fresh & (~solid | (square == 0)))
        opened = fresh & (square * slack >= lower2) & (square <= slack * upper * upper)
        still_open = (s.open & ~visible & s.alive) | opened
        ok = s.ok & (end | ~broken)
        running = ~end & ~broken & jnp.any(still_open) & (s.k + 1 < iterations)
        return _State(
            *(running, s.k + 1, points, s.count + 1, verts, beside, near),
            *(alive | fresh, still_open, face, normal, ok, upper),
        )

    s = start
    for rounds in sorted({min(FEW, iterations), iterations}):
        s = _room(s, 5 + rounds)
        going = partial(lambda rounds, s: s.running & (s.k < rounds), rounds)
        s = while_each(going, step, s, group=PAIRS)
    face = s.points.take(s.face)
    w = face.w
    part, total = areas(w[0], w[1], w[2], s.normal)
    weight = part / jnp.where(total == 0, 1, total)
    x1, x2 = [jnp.sum(weight[:, None] * side, axis=0) for side in (face.a, face.b)]
    return Depth(s.ok, jnp.sqrt(inner(s.normal, s.normal)), x1, x2, face, weight)


def _room(s: _State, nvert: int) -> _State:
    """The polytope with room for this many vertices."""

    def longer(x: Array, size: int) -> Array:
        return jnp.pad(x, ((0, size - len(x)),) + ((0, 0),) * (x.ndim - 1))

    def faces(tree: Any) -> Any:
        return jax.tree.map(partial(longer, size=2 * nvert), tree)

    return s._replace(
        points=jax.tree.map(partial(longer, size=nvert), s.points),
        **{name: faces(getattr(s, name)) for name in ("verts", "beside", "near", "alive", "open")},
    )


def _dot(a: Vector, b: Vector) -> Array:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _project(w: Array, verts: Array) -> tuple[Vector, Array]:
    """The origin projected on the planes of faces (F, 3), and whether a face has an area."""
    at = gather(w, verts)
    v1, v2, v3 = [split(at[:, i]) for i in (2, 1, 0)]
    normal = component.cross(component.sub(v3, v2), component.sub(v2, v1))
    square = _dot(normal, normal)
    ok = square > 0
    return component.scale(_dot(normal, v2) / jnp.where(ok, square, 1), normal), ok


def _visible(beside: Array, sees: Array, best: Array) -> tuple[Array, Array]:
    """Faces (F,) that are seen and connected to the best one by such, and whether those across their edges are, (F, 3).

    Without the connection a sliver far away, whose normal is all rounding, would open the polytope there.
    """

    def grow(state: tuple) -> tuple:
        member, across, _ = state
        more = member | (sees & jnp.any(across, axis=1))
        return more, gather(more, beside), jnp.any(more != member)

    member = jnp.arange(len(beside), dtype=jnp.int32) == best
    start = member, gather(member, beside), jnp.array(True)
    return jax.lax.while_loop(lambda s: s[2], grow, start)[:2]


def _attach(s: _State, alive: Array, edge: Array, seen_across: Array) -> tuple[Array, Array, Array]:
    """Faces from the new vertex to each horizon edge, in the free places.

    The vertices of all faces and the faces beside them, (F, 3), and which are new (F,). The horizon is one line that
    meets each vertex once, as it is around what a point sees of a convex surface.
    """
    nvert, place = len(s.points.a), jnp.arange(len(alive), dtype=jnp.int32)
    total = jnp.cumsum(edge.reshape(-1), dtype=jnp.int32)
    rank = jnp.cumsum(~alive, dtype=jnp.int32) - 1
    fresh = ~alive & (rank < total[-1])
    source = jnp.searchsorted(total, rank + 1, method="scan_unrolled")
    after = jnp.roll(s.verts, -1, axis=1)
    edges = jnp.stack([s.verts, after, s.beside], axis=2).reshape(-1, 3)
    start, end, outer = split(gather(edges, jnp.minimum(source, len(edges) - 1)))

    def face_at(vertex: Array) -> Array:
        """The new face whose edge on the horizon has a given vertex (V,), or -1."""
        return jnp.max(jnp.where(fresh & (vertex == jnp.arange(nvert)[:, None]), place, -1), axis=1)

    starts, ends = face_at(start), face_at(end)
    verts = jnp.stack([jnp.broadcast_to(s.count, start.shape), start, end], axis=1)
    beside = jnp.stack([gather(ends, start), outer, gather(starts, end)], axis=1)
    joined = jnp.where(seen_across, gather(starts, after), s.beside)
    new = fresh[:, None]
    return jnp.where(new, verts, s.verts), jnp.maximum(jnp.where(new, beside, joined), 0), fresh


def _first(support1: Callable, support2: Callable, simplex: Simplex) -> tuple[Points, Array, Array, Array, Array]:
    """The first polytope: 5 points, its faces (6, 3), those beside them, how many there are, and whether it is usable.

    A segment or tetrahedron with the origin on one of its faces is replaced by that face; a triangle gets a point on
    either side.
    """
    from_two = _around_segment(support1, support2, simplex.points)
    four = Points(*[jnp.concatenate([x, x[:1]]) for x in simplex.points])
    two = simplex.n == 2
    points = jax.tree.map(lambda a, b: jnp.where(two, a, b), from_two, four)
    verts = jnp.where(two, TWO, np.concatenate([FOUR, FOUR[:2]]))
    near, solid = _project(points.w, verts)
    flat = (~solid | (_dot(near, near) < MINVAL**2)) & (jnp.arange(6) < jnp.where(two, 6, 4))
    triangle = jnp.where(simplex.n == 3, jnp.arange(3), verts[jnp.argmax(flat)])
    by_triangle = (simplex.n == 3) | jnp.any(flat)
    three, three_ok = _around_triangle(support1, support2, points.take(triangle))
    ok = jnp.where(by_triangle, three_ok, jnp.where(two, _convex(points.w), _encloses(points.w)))
    points = jax.tree.map(lambda a, b: jnp.where(by_triangle, a, b), three, points)
    verts = jnp.where(by_triangle, THREE, verts)
    beside = jnp.where(two, _beside(TWO), np.concatenate([_beside(FOUR), _beside(FOUR)[:2]]))
    beside = jnp.where(by_triangle, _beside(THREE), beside)
    return points, verts, beside, jnp.where(by_triangle | two, 6, 4), ok


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
    return five, ok & jnp.all(solid & (_dot(near, near) >= MINVAL**2))


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
