"""GJK: the distance of two convex shapes, or a simplex around the origin of their Minkowski difference; for one pair.

Sources: Gilbert, Johnson and Keerthi (1988); the sub-distance step is the signed volumes method of Montanari, Petrinic
and Barbieri (2017), Improving the GJK algorithm for faster and more reliable distance queries.

The steps, tests and their order are those of MuJoCo's engine_collision_gjk.c. So shapes with curved surfaces, for which
the search ends within a tolerance, end at the same points. Every function works on one pair; callers use vmap.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL
from jaxsim.math.arrays import inner
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array
from jaxsim.xla.loops import PAIRS, while_each

DISTANCE, INTERSECT, RESUME_DISTANCE, DONE = range(4)  # modes of the loop
# vertices of each face of a tetrahedron; face i is opposite to vertex i
TETRAHEDRON_FACES = np.array([[2, 1, 3], [0, 2, 3], [1, 0, 3], [0, 1, 2]], np.int32)


class SupportPoints(NamedTuple):
    """Support points of two shapes along opposite directions: a, b (n, 3) and their vertex indices (n, 2)."""

    a: Array
    b: Array
    index: Array

    @property
    def w(self) -> Array:
        """Points (n, 3) of the Minkowski difference."""
        return self.a - self.b

    def put(self, at: Array, new: "SupportPoints") -> "SupportPoints":
        """A copy with entry `at` replaced by a single point."""
        mask = (jnp.arange(self.a.shape[0], dtype=jnp.result_type(at)) == at)[:, None]
        return SupportPoints(*[jnp.where(mask, y, x) for x, y in zip(self, new, strict=True)])

    def take(self, order: Array) -> "SupportPoints":
        """The entries in this order."""
        return SupportPoints(*[x[order] for x in self])


class GjkResult(NamedTuple):
    """GJK's final simplex: distance (infinite if separated), vertices, weights, their number, witness points (3,)."""

    dist: Array
    points: SupportPoints
    weight: Array
    n: Array
    x1: Array
    x2: Array


class _GjkState(NamedTuple):
    mode: Array
    k: Array  # iterations
    n: Array  # vertices of the simplex
    x: Array  # (3,) its point nearest to the origin
    weight: Array  # (4,) of the vertices in x
    points: SupportPoints  # (4,)
    trial: SupportPoints  # (4,) the tetrahedron of the intersection test
    try_intersect: Array  # whether that test may still be made
    dist: Array
    inside: Array  # whether the origin is inside the tetrahedron


def minkowski_support(support1: Callable, support2: Callable, direction: Array) -> SupportPoints:
    """The support point of the Minkowski difference of two shapes along a unit direction."""
    a, i = support1(direction)
    b, j = support2(-direction)
    return SupportPoints(a, b, jnp.stack([i, j]))


def gjk(
    support1: Callable,
    support2: Callable,
    x0: Array,
    tolerance: Array,
    discrete: Array,
    iterations: int,
    measure: Array,
    cutoff: Array,
    active: Array,
) -> GjkResult:
    """The final simplex of GJK, started from the difference of centres `x0` (3,).

    With `measure` the search finds the distance, up to `cutoff`; otherwise it only decides whether the shapes
    intersect. `discrete`: both shapes have finitely many support points. Where not `active`, no step is made.
    """
    epsilon = jnp.where(discrete, 0, 0.5 * tolerance**2)
    min_norm2 = jnp.where(discrete, MINVAL**2, tolerance**2)
    zero = jnp.zeros((4, 3), x0.dtype)
    points = SupportPoints(zero, zero, jnp.zeros((4, 2), jnp.int32))

    def step(s: _GjkState) -> _GjkState:
        norm2 = inner(s.x, s.x)
        near_origin = (s.mode == DISTANCE) & (norm2 < min_norm2)
        length = jnp.sqrt(jnp.where(norm2 > 0, norm2, 1))
        normals, heights = _face_planes(s.trial.w)
        worst = 3 - jnp.argmin(heights[::-1])
        in_intersect_mode = s.mode == INTERSECT
        direction = jnp.where(in_intersect_mode, normals[worst], -s.x / length)
        new = minkowski_support(support1, support2, direction)
        w = new.a - new.b

        # distance: duality gap, separating axis, or a tetrahedron that may enclose the origin
        in_distance_mode = (s.mode == DISTANCE) & ~near_origin
        converged = in_distance_mode & (inner(s.x, s.x - w) < epsilon)
        along = inner(s.x, w)
        separated = (
            in_distance_mode & ~converged & (along > 0) & (~measure | (along * along >= cutoff * cutoff * norm2))
        )
        points = jax.tree.map(lambda p, q: jnp.where(in_distance_mode, q, p), s.points, s.points.put(s.n, new))
        start_intersect = in_distance_mode & ~converged & ~separated & (s.n == 3) & s.try_intersect

        # intersection: replace the vertex opposite to the face that the origin is farthest outside of
        degenerate = jnp.any(heights == 0) | (s.k >= iterations)
        inside = in_intersect_mode & ~degenerate & (heights[worst] > 0)
        beyond = in_intersect_mode & ~degenerate & ~inside & (inner(direction, w) < 0)
        trial = _replace_vertex(s.trial, worst, new)
        go_on = in_intersect_mode & ~degenerate & ~inside & ~beyond
        trial = jax.tree.map(lambda old, new: jnp.where(go_on, new, old), s.trial, trial)
        trial = jax.tree.map(lambda old, new: jnp.where(start_intersect, new, old), trial, points)

        # the point of the simplex nearest to the origin
        reduce = (in_distance_mode & ~converged & ~separated & ~start_intersect) | (s.mode == RESUME_DISTANCE)
        weight = signed_volumes(points.w, s.n + 1)
        order = jnp.argsort(weight == 0, stable=True)
        n = jnp.sum(weight != 0, dtype=jnp.int32)
        weight, kept = weight[order], points.take(order)
        x = jnp.sum(weight[:, None] * kept.w, axis=0)
        stalled = jnp.all(jnp.abs(x - s.x) < MINVAL)
        last = s.k + 1 >= iterations
        stop = stalled | (n == 4) | last | (n < 1)

        end = near_origin | converged | separated | inside | beyond | (reduce & stop)
        mode = jnp.where(
            end,
            DONE,
            jnp.where(start_intersect, INTERSECT, jnp.where(in_intersect_mode & degenerate, RESUME_DISTANCE, s.mode)),
        )
        mode = jnp.where(reduce & ~stop, DISTANCE, mode)
        dist = jnp.where(near_origin, norm2, jnp.where(norm2 > 0, length, 0))
        dist = jnp.where(reduce & (n == 4) & ~stalled, 0, dist)
        dist = jnp.where(separated | beyond | (reduce & (n < 1)), jnp.inf, jnp.where(inside, 0, dist))
        return _GjkState(
            mode=mode,
            k=s.k + (reduce | go_on).astype(s.k.dtype),
            n=jnp.where(reduce, n, jnp.where(converged & (s.k == 0), 1, jnp.where(separated | beyond, 0, s.n))),
            x=jnp.where(reduce & ~stalled, x, s.x),
            weight=jnp.where(reduce, weight, s.weight),
            points=jax.tree.map(lambda a, b: jnp.where(reduce, b, a), points, kept),
            trial=trial,
            try_intersect=s.try_intersect & ~in_intersect_mode,
            dist=dist,
            inside=inside,
        )

    first = jnp.array([1, 0, 0, 0], x0.dtype)
    mode = jnp.where(active, DISTANCE, DONE)
    start = _GjkState(
        *(mode, jnp.int32(0), jnp.int32(0), x0, first, points, points),
        *(~measure, jnp.full_like(x0[0], jnp.inf), jnp.array(False)),
    )
    start = start._replace(mode=jnp.asarray(mode, jnp.int32))
    s = while_each(lambda s: s.mode != DONE, step, start, group=PAIRS)
    points = jax.tree.map(lambda a, b: jnp.where(s.inside, b, a), s.points, s.trial)
    used = jnp.where(jnp.arange(4, dtype=jnp.int32) < s.n, s.weight, 0)[:, None]
    n = jnp.where(jnp.isinf(s.dist), 0, jnp.where(s.inside, 4, s.n))
    return GjkResult(s.dist, points, used[:, 0], n, jnp.sum(used * points.a, axis=0), jnp.sum(used * points.b, axis=0))


def _face_planes(w: Array) -> tuple[Array, Array]:
    """Unit normals (4, 3) and heights (4,) of the faces of a tetrahedron; infinite height where a face has no area."""
    v1, v2, v3 = w[TETRAHEDRON_FACES[:, 0]], w[TETRAHEDRON_FACES[:, 1]], w[TETRAHEDRON_FACES[:, 2]]
    normal = cross(v3 - v1, v2 - v1)
    square = inner(normal, normal)
    ok = square > MINVAL**2
    normal = normal / jnp.sqrt(jnp.where(ok, square, 1))[:, None]
    return normal, jnp.where(ok, inner(normal, v1), jnp.inf)


def _replace_vertex(points: SupportPoints, at: Array, new: SupportPoints) -> SupportPoints:
    """The tetrahedron with a vertex replaced and the next two swapped, which keeps its orientation."""
    i, j = (at + 1) % 4, (at + 2) % 4
    index = jnp.arange(4)
    return points.put(at, new).take(jnp.where(index == i, j, jnp.where(index == j, i, index)))


def signed_volumes(w: Array, n: Array) -> Array:
    """Weights (4,) of the point of the simplex w[:n] (4, 3) nearest to the origin, by the signed volumes method."""
    triangles = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]], np.int32)
    inner_weight, edge = _signed_volumes_2d(w[triangles])
    scatter = np.zeros((4, 3, 4))
    scatter[np.arange(4)[:, None], np.arange(3), triangles] = 1
    of_faces = jnp.sum(inner_weight[..., None] * scatter.astype(w.dtype), axis=1)  # (4 faces, 4 vertices)
    of_tetrahedron = _signed_volumes_3d(w, of_faces)
    of_segment = jnp.concatenate([edge[3], jnp.zeros(2, w.dtype)])
    of_vertex = jnp.array([1, 0, 0, 0], w.dtype)
    return jnp.where(n == 4, of_tetrahedron, jnp.where(n == 3, of_faces[3], jnp.where(n == 2, of_segment, of_vertex)))


def _same_sign(a: Array, b: Array) -> Array:
    """Whether both are positive or both negative."""
    return ((a > 0) & (b > 0)) | ((a < 0) & (b < 0))


def _signed_volumes_3d(w: Array, faces: Array) -> Array:
    """Weights (4,) of the nearest point of the tetrahedron w (4, 3), given those of its faces (4, 4)."""

    def det(i: int, j: int, k: int) -> Array:
        return inner(w[i], cross(w[j], w[k]))

    minors = jnp.stack([-det(1, 2, 3), det(0, 2, 3), -det(0, 1, 3), det(0, 1, 2)])
    total = jnp.sum(minors)
    within = _same_sign(total, minors)
    return jnp.where(jnp.all(within), minors / jnp.where(total == 0, 1, total), _nearest_candidate(faces, w, within))


def _nearest_candidate(weights: Array, w: Array, within: Array) -> Array:
    """Weights of the nearest point among the faces (or edges) that the origin is outside of."""
    x = jnp.sum(weights[..., None] * w[..., None, :, :], axis=-2)
    square = jnp.where(within, jnp.inf, inner(x, x))
    best = jnp.argmin(square, axis=-1)
    return jnp.take_along_axis(weights, best[..., None, None], axis=-2)[..., 0, :]


def _project_origin(v1: Array, v2: Array, v3: Array) -> tuple[Array, Array]:
    """The origin projected on the planes of triangles (..., 3), and whether each triangle has an area."""
    normal = cross(v3 - v2, v2 - v1)
    square = inner(normal, normal)
    has_area = square > 0
    return normal * (inner(normal, v2) / jnp.where(has_area, square, 1))[..., None], has_area


def barycentric_areas(v1: Array, v2: Array, v3: Array, p: Array) -> tuple[Array, Array]:
    """Signed areas (..., 3) of p with the sides of triangles, and of the triangles, for barycentric coordinates.

    All are projected on the coordinate plane in which the triangle has the largest area.
    """
    minor = cross(v2 - v1, v3 - v1) * np.array([1, -1, 1], v1.dtype)
    size = jnp.abs(minor)
    dropped_axis = jnp.where(
        (size[..., 0] >= size[..., 1]) & (size[..., 0] >= size[..., 2]),
        0,
        jnp.where(size[..., 1] >= size[..., 2], 1, 2),
    )
    first, second = jnp.where(dropped_axis == 0, 1, 0)[..., None], jnp.where(dropped_axis == 2, 1, 2)[..., None]

    def projected(v: Array) -> tuple[Array, Array]:
        pick = [jnp.sum(jnp.where(np.arange(3) == axis, v, 0), axis=-1) for axis in (first, second)]
        return pick[0] - p_projected[0], pick[1] - p_projected[1]

    p_projected = [jnp.sum(jnp.where(np.arange(3) == axis, p, 0), axis=-1) for axis in (first, second)]
    (x1, y1), (x2, y2), (x3, y3) = projected(v1), projected(v2), projected(v3)
    part = jnp.stack([x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1], axis=-1)
    total = jnp.sum(jnp.where(np.arange(3) == dropped_axis[..., None], minor, 0), axis=-1)
    return part, total


def _signed_volumes_2d(w: Array) -> tuple[Array, Array]:
    """Weights (..., 3) of the nearest point of triangles (..., 3, 3), and (..., 2) of their first edge."""
    v1, v2, v3 = w[..., 0, :], w[..., 1, :], w[..., 2, :]
    edges = np.array([[1, 2], [0, 2], [0, 1]], np.int32)
    ends = _signed_volumes_1d(w[..., edges, :])  # (..., 3, 2)
    scatter = np.zeros((3, 2, 3))
    scatter[np.arange(3)[:, None], np.arange(2), edges] = 1
    sides = jnp.sum(ends[..., None] * scatter.astype(w.dtype), axis=-2)
    p, ok = _project_origin(v1, v2, v3)
    part, total = barycentric_areas(v1, v2, v3, p)
    within = _same_sign(total[..., None], part)
    weight = part / jnp.where(total == 0, 1, total)[..., None]
    weight = jnp.where(jnp.all(within, axis=-1, keepdims=True), weight, _nearest_candidate(sides, w, within))
    return jnp.where(ok[..., None], weight, sides[..., 2, :]), ends[..., 2, :]


def _signed_volumes_1d(w: Array) -> Array:
    """Weights (..., 2) of the nearest point of segments (..., 2, 3): an inner point, or the second end."""
    v1, v2 = w[..., 0, :], w[..., 1, :]
    gap = v2 - v1
    square = inner(gap, gap)
    p = v2 - (inner(v2, gap) / jnp.where(square == 0, 1, square))[..., None] * gap
    size = jnp.abs(gap)
    axis = jnp.where(size[..., 1] >= size[..., 0], 1, 0)
    axis = jnp.where(size[..., 2] >= jnp.maximum(size[..., 0], size[..., 1]), 2, axis)[..., None]
    pick = [jnp.sum(jnp.where(np.arange(3) == axis, x, 0), axis=-1) for x in (-gap, p - v2, v1 - p)]
    inside = _same_sign(pick[0], pick[1]) & _same_sign(pick[0], pick[2])
    total = jnp.where(pick[0] == 0, 1, pick[0])
    return jnp.stack([jnp.where(inside, pick[1] / total, 0), jnp.where(inside, pick[2] / total, 1)], axis=-1)
