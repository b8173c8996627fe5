"""GJK: the distance of two convex shapes, or a simplex around the origin of their Minkowski difference; for one pair.

Sources: Gilbert, Johnson and Keerthi (1988); the sub-distance step is the signed volumes method of Montanari, Petrinic
and Barbieri (2017), Improving the GJK algorithm for faster and more reliable distance queries.

The steps, tests and their order are those of MuJoCo's engine_collision_gjk.c. So shapes with curved surfaces, for which
the search ends within a tolerance, end at the same points. The program is one of scalars with branches: a CPU runs it
pair by pair (`native.pool`).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import MINVAL
from jaxsim.engine.collision.convex.support import SupportPoint
from jaxsim.math import component
from jaxsim.math.arrays import row_at, with_row
from jaxsim.math.component import Vector, split
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat

DISTANCE, INTERSECT, REDUCE, DONE = range(4)  # modes of the loop
# vertices of each face of a tetrahedron; face i is opposite to vertex i
TETRAHEDRON_FACES = ((2, 1, 3), (0, 2, 3), (1, 0, 3), (0, 1, 2))
SIDES = np.array([[1, 2, 0], [0, 2, 1], [0, 1, 2]], np.int32)  # of a triangle: their ends, and the vertex opposite
TRIANGLES = np.array([[1, 2, 3, 0], [0, 2, 3, 1], [0, 1, 3, 2], [0, 1, 2, 3]], np.int32)  # of a tetrahedron, likewise


class SupportPoints(NamedTuple):
    """Support points of two shapes along opposite directions: a, b (n, 3) and their vertex indices (n, 2)."""

    a: Array
    b: Array
    index: Array

    @property
    def w(self) -> Array:
        """Points (n, 3) of the Minkowski difference."""
        return self.a - self.b

    def put(self, at: Array, new: SupportPoint) -> "SupportPoints":
        """Replace the entry `at` of these points."""
        rows = jnp.stack(new.a), jnp.stack(new.b), jnp.stack([new.i, new.j])
        return SupportPoints(*[with_row(x, at, y) for x, y in zip(self, rows, strict=True)])

    def at(self, i: Array) -> SupportPoint:
        """Return one of the points."""
        a, b, index = (split(row_at(x, i)) for x in self)
        return SupportPoint(a, b, *index)

    def swap(self, i: Array, j: Array) -> "SupportPoints":
        """Swap two of these points."""
        one, other = self.at(i), self.at(j)
        return self.put(i, other).put(j, one)


class GjkResult(NamedTuple):
    """GJK's final simplex: distance (infinite if separated), points (4,), weights (4,), their number."""

    dist: Array
    points: SupportPoints
    weight: Array
    n: Array


class _GjkState(NamedTuple):
    mode: Array
    k: Array  # iterations
    n: Array  # vertices of the simplex
    x: Vector  # its point nearest to the origin
    direction: Vector  # of the next support point
    weight: Array  # (4,) of the vertices in x
    points: SupportPoints  # (4,)
    trial: SupportPoints  # (4,) the tetrahedron of the intersection test
    worst: Array  # face of that tetrahedron that the origin is farthest outside of
    try_intersect: Array  # whether that test may still be made
    dist: Array
    inside: Array  # whether the origin is inside the tetrahedron


def gjk(
    support: Callable[[Vector], SupportPoint],
    x0: Vector,
    tolerance: Array,
    discrete: Array,
    iterations: int,
    cutoff: Array,
    active: Array,
) -> GjkResult:
    """Find the final simplex of GJK, started from the difference of centres `x0`.

    With a positive `cutoff` the search finds the distance up to it; otherwise it only decides whether the shapes
    intersect. `discrete`: both shapes have finitely many support points. Where not `active`, no step is made.
    """
    epsilon = jnp.where(discrete, 0, 0.5 * tolerance**2)
    min_norm2 = jnp.where(discrete, MINVAL**2, tolerance**2)
    measure = cutoff > 0

    def aim(s: _GjkState) -> _GjkState:
        """Set the state's direction to the origin; the search ends where the simplex is there already."""
        norm2 = component.dot(s.x, s.x)
        length = jnp.sqrt(jnp.where(norm2 > 0, norm2, 1))
        goes_on = s.mode == DISTANCE
        ends = goes_on & (norm2 < min_norm2)
        return s._replace(
            mode=jnp.where(ends, DONE, s.mode),
            direction=component.scale(-1 / length, s.x),
            dist=jnp.where(ends, norm2, jnp.where(goes_on, length, s.dist)),
        )

    def reduce(s: _GjkState) -> _GjkState:
        """Find the point of the simplex nearest to the origin, and the vertices that span it."""
        weight, points, n = _nonzero_first(_signed_volumes(s.points.w, s.n), s.points)
        w = points.w
        x = component.vector(sum(weight[i] * w[i, k] for i in range(4)) for k in range(3))
        stalled = (jnp.abs(x[0] - s.x[0]) < MINVAL) & (jnp.abs(x[1] - s.x[1]) < MINVAL)
        stalled &= jnp.abs(x[2] - s.x[2]) < MINVAL
        stop = stalled | (n == 4) | (s.k + 1 >= iterations) | (n < 1)
        dist = jnp.where(n < 1, jnp.inf, jnp.where((n == 4) & ~stalled, 0, s.dist))
        s = s._replace(
            mode=jnp.where(stop, DONE, DISTANCE).astype(jnp.int32),
            k=s.k + 1,
            n=n,
            x=component.where(stalled, s.x, x),
            weight=weight,
            points=points,
            dist=dist,
        )
        return aim(s)

    def to_origin(s: _GjkState, new: SupportPoint) -> _GjkState:
        """Make a step for the distance: end by the duality gap or a separating axis, or give the simplex the point."""
        along = component.dot(s.x, new.w)
        norm2 = component.dot(s.x, s.x)
        converged = norm2 - along < epsilon
        separated = ~converged & (along > 0) & (~measure | (along * along >= cutoff * cutoff * norm2))
        points = s.points.put(s.n, new)
        ends = converged | separated
        test = ~ends & (s.n == 3) & s.try_intersect
        n = jnp.where(ends, jnp.where(separated, 0, jnp.where(s.k == 0, 1, s.n)), s.n + 1)
        mode = jnp.where(ends, DONE, jnp.where(test, INTERSECT, REDUCE))
        dist = jnp.where(separated, jnp.inf, s.dist)
        trial = SupportPoints(*[jnp.where(test, x, y) for x, y in zip(points, s.trial, strict=True)])
        return s._replace(mode=mode.astype(jnp.int32), n=n, points=points, trial=trial, dist=dist)

    def into_tetrahedron(s: _GjkState, new: SupportPoint) -> _GjkState:
        """Make a step of the intersection test: the new vertex replaces the one opposite to the worst face."""
        beyond = component.dot(s.direction, new.w) < 0
        trial = s.trial.put(s.worst, new).swap((s.worst + 1) % 4, (s.worst + 2) % 4)
        return s._replace(
            mode=jnp.where(beyond, DONE, INTERSECT).astype(jnp.int32),
            n=jnp.where(beyond, 0, s.n),
            dist=jnp.where(beyond, jnp.inf, s.dist),
            trial=trial,
            k=s.k + 1,
        )

    def step(s: _GjkState) -> _GjkState:
        new = support(s.direction)
        s = lax.cond(s.mode == DISTANCE, to_origin, into_tetrahedron, s, new)
        s = lax.cond(s.mode == INTERSECT, partial(_aim_at_face, iterations), lambda s: s, s)
        return lax.cond(s.mode == REDUCE, reduce, lambda s: s, s)

    number = x0[0]
    zero = jnp.zeros((4, 3), number.dtype)
    points = SupportPoints(zero, zero, jnp.zeros((4, 2), jnp.int32))
    start = _GjkState(
        *(jnp.where(active, DISTANCE, DONE).astype(jnp.int32), jnp.int32(0), jnp.int32(0), x0, x0),
        *(jnp.array([1, 0, 0, 0], number.dtype), points, points, jnp.int32(0), ~measure),
        *(jnp.full_like(number, jnp.inf), jnp.array(False)),
    )
    s = lax.while_loop(lambda s: s.mode != DONE, step, aim(start))
    points = SupportPoints(*[jnp.where(s.inside, y, x) for x, y in zip(s.points, s.trial, strict=True)])
    weight = jnp.where(jnp.arange(4, dtype=jnp.int32) < s.n, s.weight, 0)
    dist = jnp.where(active, s.dist, jnp.inf)
    n = jnp.where(jnp.isinf(dist), 0, jnp.where(s.inside, 4, s.n))
    return GjkResult(dist, points, weight, n)


def weighted(points: SupportPoints, weight: Array) -> tuple[Array, Array]:
    """Compute the points (3,) of either shape with these weights of the support points (n,)."""
    return jnp.sum(weight[:, None] * points.a, axis=0), jnp.sum(weight[:, None] * points.b, axis=0)


def _aim_at_face(iterations: int, s: _GjkState) -> _GjkState:
    """The state with the direction out of the trial tetrahedron's worst face; ends if the origin is inside.

    A degenerate tetrahedron ends the test: the search goes on with the simplex from before.
    """
    w = [split(s.trial.w[i]) for i in range(4)]
    planes = [_face_plane(*(w[i] for i in face)) for face in TETRAHEDRON_FACES]
    worst, normal, height = jnp.int32(3), *planes[3]
    for i in (2, 1, 0):
        lower = planes[i][1] < height
        worst, height = jnp.where(lower, i, worst), jnp.where(lower, planes[i][1], height)
        normal = component.where(lower, planes[i][0], normal)
    flat = (planes[0][1] == 0) | (planes[1][1] == 0) | (planes[2][1] == 0) | (planes[3][1] == 0)
    degenerate = flat | (s.k >= iterations)
    inside = ~degenerate & (height > 0)
    return s._replace(
        mode=jnp.where(inside, DONE, jnp.where(degenerate, REDUCE, INTERSECT)).astype(jnp.int32),
        direction=normal,
        worst=worst,
        inside=inside,
        dist=jnp.where(inside, 0, s.dist),
        try_intersect=jnp.array(False),
    )


def _face_plane(v1: Vector, v2: Vector, v3: Vector) -> tuple[Vector, Array]:
    """Unit normal and height of a face; infinite height where it has no area."""
    normal = component.cross(component.sub(v3, v1), component.sub(v2, v1))
    square = component.dot(normal, normal)
    ok = square > MINVAL**2
    normal = component.scale(1 / jnp.sqrt(jnp.where(ok, square, 1)), normal)
    return normal, jnp.where(ok, component.dot(normal, v1), jnp.inf)


def _nonzero_first(weight: Array, points: SupportPoints) -> tuple[Array, SupportPoints, Array]:
    """The weights (4,) and points with those that count first, else in order, and how many count."""
    counts = [(weight[i] != 0).astype(jnp.int32) for i in range(4)]
    total = counts[0] + counts[1] + counts[2] + counts[3]
    out, sorted_weight = points, weight
    for i in range(4):
        before = sum(counts[:i], jnp.int32(0))
        place = jnp.where(counts[i] > 0, before, total + i - before)
        out = out.put(place, points.at(i))
        sorted_weight = with_row(sorted_weight, place, weight[i])
    return sorted_weight, out, total


def _signed_volumes(w: Array, n: Array) -> Array:
    """Weights (4,) of the point of the simplex w[:n] (4, 3) nearest to the origin, by the signed volumes method."""

    def of_vertex() -> Array:
        return jnp.array([1, 0, 0, 0], w.dtype)

    def of_segment() -> Array:
        first, last = _segment_weights(split(w[0]), split(w[1]))
        return jnp.stack([first, last, 0 * first, 0 * first])

    def of_faces() -> Array:
        """Choose the nearest of the triangle, or of the tetrahedron's faces that the origin is outside of."""
        rows = [split(w[i]) for i in range(4)]
        minors = [-_det(*rows[1:]), _det(rows[0], *rows[2:]), -_det(rows[0], rows[1], rows[3]), _det(*rows[:3])]
        total = minors[0] + minors[1] + minors[2] + minors[3]
        minors = jnp.stack(minors)
        within = _same_sign(total, minors) & (n == 4)
        return lax.cond(
            jnp.all(within), lambda: minors / jnp.where(total == 0, 1, total), lambda: _nearest_face(w, within, n)
        )

    return lax.switch(jnp.clip(n - 1, 0, 2), [of_vertex, of_segment, of_faces])


def _nearest_face(w: Array, within: Array, n: Array) -> Array:
    """Weights (4,) of the nearest point of the faces of w (4, 3) not `within` (4,), or of the last one if n = 3."""
    return lax.platform_dependent(w, within, n, tpu=_nearest_of_faces, default=_nearest_face_sequential)


def _nearest_of_faces(w: Array, within: Array, n: Array) -> Array:
    """The same for all faces and sides at once."""
    v1, v2, v3 = (component.vector(w[TRIANGLES[:, k], i] for i in range(3)) for k in range(3))
    weight = _weights_of_triangles(v1, v2, v3)
    x = component.add(component.scale(weight[0], v1), component.scale(weight[1], v2))
    x = component.add(x, component.scale(weight[2], v3))
    square = component.dot(x, x)
    use = ~within & ((n != 3) | (np.arange(4) == 3)) & (square == square)
    best = jnp.argmin(jnp.where(use, square, jnp.inf)).astype(jnp.int32)
    zero = jnp.zeros((), w.dtype)
    corners = TRIANGLES[:, :3].tolist()
    full = jnp.stack(
        [jnp.stack([weight[row.index(j)][i] if j in row else zero for j in range(4)]) for i, row in enumerate(corners)]
    )
    return jnp.where(jnp.any(use), row_at(full, best), 0)


def _weights_of_triangles(v1: Vector, v2: Vector, v3: Vector) -> list[Array]:
    """As `_triangle_weights`, of several triangles of these three corners."""
    v = v1, v2, v3
    normal, has_area = project_origin(v1, v2, v3)
    part, total = barycentric_areas(v1, v2, v3, normal)
    within = [_same_sign(total, x) for x in part]
    best, out = jnp.full_like(total, jnp.inf), [jnp.zeros_like(total)] * 3
    for i in (2, 1, 0):
        a, b = int(SIDES[i, 0]), int(SIDES[i, 1])
        weight = _segment_weights(v[a], v[b])
        x = component.add(component.scale(weight[0], v[a]), component.scale(weight[1], v[b]))
        square = component.dot(x, x)
        nearer = (square <= best) & (~within[i] | ~has_area) & (has_area if i < 2 else True)
        full = {a: weight[0], b: weight[1]}
        best = jnp.where(nearer, square, best)
        out = [jnp.where(nearer, full.get(k, 0), x) for k, x in enumerate(out)]
    scale = jnp.where(total == 0, 1, total)
    inside = within[0] & within[1] & within[2] & has_area
    return [jnp.where(inside, x / scale, y) for x, y in zip(part, out, strict=True)]


def _nearest_face_sequential(w: Array, within: Array, n: Array) -> Array:
    table = jnp.asarray(TRIANGLES)

    def visit(i: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        corners = split(row_at(table, i))
        v = jnp.stack([row_at(w, k) for k in corners[:3]])
        weight = _triangle_weights(v)
        x = jnp.sum(weight[:, None] * v, axis=0)
        square = jnp.sum(x * x)
        nearer = (square <= best[0]) & ~row_at(within, i)
        full = jnp.zeros(4, w.dtype)
        for k in range(3):
            full = with_row(full, corners[k], weight[k])
        return jnp.where(nearer, square, best[0]), jnp.where(nearer, full, best[1])

    start = jnp.full((), jnp.inf, w.dtype), jnp.zeros(4, w.dtype)
    return repeat(jnp.where(n == 3, 1, 4), lambda i, best: visit(3 - i, best), start)[1]


def _triangle_weights(v: Array) -> Array:
    """Weights (3,) of the point of a triangle v (3, 3) nearest to the origin."""
    v1, v2, v3 = (split(v[i]) for i in range(3))
    normal, has_area = project_origin(v1, v2, v3)
    part, total = barycentric_areas(v1, v2, v3, normal)
    part = jnp.stack(part)
    within = _same_sign(total, part)

    def side(i: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        ends = split(row_at(jnp.asarray(SIDES), i))
        first, last = split(row_at(v, ends[0])), split(row_at(v, ends[1]))
        weight = _segment_weights(first, last)
        x = component.add(component.scale(weight[0], first), component.scale(weight[1], last))
        square = component.dot(x, x)
        nearer = (square <= best[0]) & (~row_at(within, i) | ~has_area)
        full = jnp.zeros(3, v.dtype)
        for k in range(2):
            full = with_row(full, ends[k], weight[k])
        return jnp.where(nearer, square, best[0]), jnp.where(nearer, full, best[1])

    def of_sides() -> Array:
        start = jnp.full((), jnp.inf, v.dtype), jnp.zeros(3, v.dtype)
        return repeat(jnp.where(has_area, 3, 1), lambda i, best: side(2 - i, best), start)[1]

    return lax.cond(jnp.all(within) & has_area, lambda: part / jnp.where(total == 0, 1, total), of_sides)


def _segment_weights(v1: Vector, v2: Vector) -> tuple[Array, Array]:
    """Weights of the nearest point of a segment: an inner point, or the second end."""
    gap = component.sub(v2, v1)
    square = component.dot(gap, gap)
    p = component.sub(v2, component.scale(component.dot(v2, gap) / jnp.where(square == 0, 1, square), gap))
    size = [jnp.abs(x) for x in gap]
    second = size[1] >= size[0]
    third = size[2] >= jnp.maximum(size[0], size[1])

    def largest(x: Vector) -> Array:
        return jnp.where(third, x[2], jnp.where(second, x[1], x[0]))

    total, part1, part2 = (largest(x) for x in (component.neg(gap), component.sub(p, v2), component.sub(v1, p)))
    inside = _same_sign(total, part1) & _same_sign(total, part2)
    scale = jnp.where(total == 0, 1, total)
    return jnp.where(inside, part1 / scale, 0), jnp.where(inside, part2 / scale, 1)


def _det(a: Vector, b: Vector, c: Vector) -> Array:
    return component.dot(a, component.cross(b, c))


def _same_sign(a: Array, b: Array) -> Array:
    """Whether both are positive or both negative."""
    return ((a > 0) & (b > 0)) | ((a < 0) & (b < 0))


def project_origin(v1: Vector, v2: Vector, v3: Vector) -> tuple[Vector, Array]:
    """Project the origin on the plane of a triangle, and return whether the triangle has an area."""
    normal = component.cross(component.sub(v3, v2), component.sub(v2, v1))
    square = component.dot(normal, normal)
    has_area = square > 0
    return component.scale(component.dot(normal, v2) / jnp.where(has_area, square, 1), normal), has_area


def barycentric_areas(v1: Vector, v2: Vector, v3: Vector, p: Vector) -> tuple[Vector, Array]:
    """Compute signed areas of p with the sides of a triangle, and of the triangle, for barycentric coordinates.

    All are projected on the coordinate plane in which the triangle has the largest area.
    """
    normal = component.cross(component.sub(v2, v1), component.sub(v3, v1))
    minor = normal[0], -normal[1], normal[2]
    size = [jnp.abs(x) for x in minor]
    drops_x = (size[0] >= size[1]) & (size[0] >= size[2])
    drops_y = ~drops_x & (size[1] >= size[2])

    def projected(v: Vector) -> tuple[Array, Array]:
        gap = component.sub(v, p)
        return jnp.where(drops_x, gap[1], gap[0]), jnp.where(drops_x | drops_y, gap[2], gap[1])

    (x1, y1), (x2, y2), (x3, y3) = projected(v1), projected(v2), projected(v3)
    part = x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1
    return part, jnp.where(drops_x, minor[0], jnp.where(drops_y, minor[1], minor[2]))
