"""Distance between two convex shapes, or a simplex around the origin of their difference: GJK, for one pair.

The steps, tests and their order are those of the reference, so that shapes with curved surfaces, where the search
ends within a tolerance, end at the same points. Every function here works on one pair; callers map over pairs.
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

WALK, ENCLOSE, RESUME, DONE = range(4)
FACES = np.array(
    [[2, 1, 3], [0, 2, 3], [1, 0, 3], [0, 1, 2]], np.int32
)  # of a tetrahedron; the vertex left out comes first


class Points(NamedTuple):
    """Support points: on each shape a, b (n, 3), their vertex indices (n, 2)."""

    a: Array
    b: Array
    index: Array

    @property
    def w(self) -> Array:
        """Points of the difference of the shapes."""
        return self.a - self.b

    def put(self, at: Array, new: "Points") -> "Points":
        """A copy with place `at` taken by a single point."""
        mask = (jnp.arange(self.a.shape[0]) == at)[:, None]
        return Points(*[jnp.where(mask, y, x) for x, y in zip(self, new, strict=True)])

    def take(self, order: Array) -> "Points":
        return Points(*[x[order] for x in self])


class Simplex(NamedTuple):
    """Where GJK ended: distance (infinite if apart), vertices, their weights, how many, witness points x1, x2 (3,)."""

    dist: Array
    points: Points
    weight: Array
    n: Array
    x1: Array
    x2: Array


class _State(NamedTuple):
    mode: Array
    k: Array
    n: Array
    x: Array
    weight: Array
    points: Points
    trial: Points
    backup: Array
    dist: Array
    inside: Array


def new_point(support1: Callable, support2: Callable, direction: Array) -> Points:
    """The support point of the difference of two shapes along a unit direction."""
    a, i = support1(direction)
    b, j = support2(-direction)
    return Points(a, b, jnp.stack([i, j]))


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
) -> Simplex:
    """Run GJK from the difference of centres `x0` (3,).

    To `measure` is to find the distance, up to `cutoff`; else the search only decides whether there is contact.
    `discrete`: both shapes have finitely many support points. Where not `active` nothing is run.
    """
    epsilon = jnp.where(discrete, 0, 0.5 * tolerance**2)
    least = jnp.where(discrete, MINVAL**2, tolerance**2)
    zero = jnp.zeros((4, 3), x0.dtype)
    points = Points(zero, zero, jnp.zeros((4, 2), jnp.int32))

    def step(s: _State) -> _State:
        square = inner(s.x, s.x)
        touching = (s.mode == WALK) & (square < least)
        length = jnp.sqrt(jnp.where(square > 0, square, 1))
        normals, heights = _faces(s.trial.w)
        worst = 3 - jnp.argmin(heights[::-1])
        enclosing = s.mode == ENCLOSE
        direction = jnp.where(enclosing, normals[worst], -s.x / length)
        new = new_point(support1, support2, direction)
        w = new.a - new.b

        # walking: duality gap, separation, or a tetrahedron that may enclose the origin
        walking = (s.mode == WALK) & ~touching
        closed = walking & (inner(s.x, s.x - w) < epsilon)
        along = inner(s.x, w)
        apart = walking & ~closed & (along > 0) & (~measure | (along * along >= cutoff * cutoff * square))
        points = jax.tree.map(lambda p, q: jnp.where(walking, q, p), s.points, s.points.put(s.n, new))
        enclose = walking & ~closed & ~apart & (s.n == 3) & s.backup

        # enclosing: replace the vertex behind the face that the origin is farthest outside of
        flat = jnp.any(heights == 0) | (s.k >= iterations)
        inside = enclosing & ~flat & (heights[worst] > 0)
        beyond = enclosing & ~flat & ~inside & (inner(direction, w) < 0)
        trial = _replace(s.trial, worst, new)
        go_on = enclosing & ~flat & ~inside & ~beyond
        trial = jax.tree.map(lambda old, new: jnp.where(go_on, new, old), s.trial, trial)
        trial = jax.tree.map(lambda old, new: jnp.where(enclose, new, old), trial, points)

        # the point of the simplex nearest to the origin
        reduce = (walking & ~closed & ~apart & ~enclose) | (s.mode == RESUME)
        weight = nearest(points.w, s.n + 1)
        order = jnp.argsort(weight == 0, stable=True)
        n = jnp.sum(weight != 0)
        weight, kept = weight[order], points.take(order)
        x = jnp.sum(weight[:, None] * kept.w, axis=0)
        still = jnp.all(jnp.abs(x - s.x) < MINVAL)
        last = s.k + 1 >= iterations
        stop = still | (n == 4) | last | (n < 1)

        end = touching | closed | apart | inside | beyond | (reduce & stop)
        mode = jnp.where(end, DONE, jnp.where(enclose, ENCLOSE, jnp.where(enclosing & flat, RESUME, s.mode)))
        mode = jnp.where(reduce & ~stop, WALK, mode)
        dist = jnp.where(touching, square, jnp.where(square > 0, length, 0))
        dist = jnp.where(reduce & (n == 4) & ~still, 0, dist)
        dist = jnp.where(apart | beyond | (reduce & (n < 1)), jnp.inf, jnp.where(inside, 0, dist))
        return _State(
            mode=mode,
            k=s.k + (reduce | go_on),
            n=jnp.where(reduce, n, jnp.where(closed & (s.k == 0), 1, jnp.where(apart | beyond, 0, s.n))),
            x=jnp.where(reduce & ~still, x, s.x),
            weight=jnp.where(reduce, weight, s.weight),
            points=jax.tree.map(lambda a, b: jnp.where(reduce, b, a), points, kept),
            trial=trial,
            backup=s.backup & ~enclosing,
            dist=dist,
            inside=inside,
        )

    first = jnp.array([1, 0, 0, 0], x0.dtype)
    mode = jnp.where(active, WALK, DONE)
    start = _State(
        *(mode, jnp.int32(0), jnp.int32(0), x0, first, points, points),
        *(~measure, jnp.full_like(x0[0], jnp.inf), jnp.array(False)),
    )
    start = start._replace(mode=jnp.asarray(mode, jnp.int32))
    s = while_each(lambda s: s.mode != DONE, step, start, group=PAIRS)
    points = jax.tree.map(lambda a, b: jnp.where(s.inside, b, a), s.points, s.trial)
    used = jnp.where(jnp.arange(4) < s.n, s.weight, 0)[:, None]
    n = jnp.where(jnp.isinf(s.dist), 0, jnp.where(s.inside, 4, s.n))
    return Simplex(s.dist, points, used[:, 0], n, jnp.sum(used * points.a, axis=0), jnp.sum(used * points.b, axis=0))


def _faces(w: Array) -> tuple[Array, Array]:
    """Unit normals (4, 3) and heights (4,) of the faces of a tetrahedron, infinite where a face has no area."""
    v1, v2, v3 = w[FACES[:, 0]], w[FACES[:, 1]], w[FACES[:, 2]]
    normal = cross(v3 - v1, v2 - v1)
    square = inner(normal, normal)
    ok = square > MINVAL**2
    normal = normal / jnp.sqrt(jnp.where(ok, square, 1))[:, None]
    return normal, jnp.where(ok, inner(normal, v1), jnp.inf)


def _replace(points: Points, at: Array, new: Points) -> Points:
    """Replace a vertex and swap the next two, so that the tetrahedron keeps its orientation."""
    i, j = (at + 1) % 4, (at + 2) % 4
    place = jnp.arange(4)
    return points.put(at, new).take(jnp.where(place == i, j, jnp.where(place == j, i, place)))


def nearest(w: Array, n: Array) -> Array:
    """Weights (4,) of the point of the simplex w[:n] (4, 3) that is nearest to the origin."""
    triangles = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]], np.int32)
    inner_weight, edge = _triangle(w[triangles])
    spread = np.zeros((4, 3, 4))
    spread[np.arange(4)[:, None], np.arange(3), triangles] = 1
    flat = jnp.sum(inner_weight[..., None] * spread.astype(w.dtype), axis=1)  # (4 faces, 4 vertices)
    four = _tetrahedron(w, flat)
    two = jnp.concatenate([edge[3], jnp.zeros(2, w.dtype)])
    one = jnp.array([1, 0, 0, 0], w.dtype)
    return jnp.where(n == 4, four, jnp.where(n == 3, flat[3], jnp.where(n == 2, two, one)))


def _same_sign(a: Array, b: Array) -> Array:
    return ((a > 0) & (b > 0)) | ((a < 0) & (b < 0))


def _tetrahedron(w: Array, faces: Array) -> Array:
    def det(i: int, j: int, k: int) -> Array:
        return inner(w[i], cross(w[j], w[k]))

    minors = jnp.stack([-det(1, 2, 3), det(0, 2, 3), -det(0, 1, 3), det(0, 1, 2)])
    total = jnp.sum(minors)
    within = _same_sign(total, minors)
    return jnp.where(jnp.all(within), minors / jnp.where(total == 0, 1, total), _best(faces, w, within))


def _best(weights: Array, w: Array, within: Array) -> Array:
    """Among the faces (or edges) that the origin is outside of, the weights of the one whose point is nearest."""
    x = jnp.sum(weights[..., None] * w[..., None, :, :], axis=-2)
    square = jnp.where(within, jnp.inf, inner(x, x))
    best = jnp.argmin(square, axis=-1)
    return jnp.take_along_axis(weights, best[..., None, None], axis=-2)[..., 0, :]


def project(v1: Array, v2: Array, v3: Array) -> tuple[Array, Array]:
    """The origin projected on the planes of triangles (..., 3), and whether a triangle has an area."""
    normal = cross(v3 - v2, v2 - v1)
    square = inner(normal, normal)
    ok = square > 0
    return normal * (inner(normal, v2) / jnp.where(ok, square, 1))[..., None], ok


def areas(v1: Array, v2: Array, v3: Array, p: Array) -> tuple[Array, Array]:
    """Signed areas (..., 3) of p with the sides of triangles, and of the triangles, on the most extended plane."""
    minor = cross(v2 - v1, v3 - v1) * np.array([1, -1, 1], v1.dtype)
    size = jnp.abs(minor)
    drop = jnp.where(
        (size[..., 0] >= size[..., 1]) & (size[..., 0] >= size[..., 2]),
        0,
        jnp.where(size[..., 1] >= size[..., 2], 1, 2),
    )
    first, second = jnp.where(drop == 0, 1, 0)[..., None], jnp.where(drop == 2, 1, 2)[..., None]

    def flat(v: Array) -> tuple[Array, Array]:
        pick = [jnp.sum(jnp.where(np.arange(3) == axis, v, 0), axis=-1) for axis in (first, second)]
        return pick[0] - p_flat[0], pick[1] - p_flat[1]

    p_flat = [jnp.sum(jnp.where(np.arange(3) == axis, p, 0), axis=-1) for axis in (first, second)]
    (x1, y1), (x2, y2), (x3, y3) = flat(v1), flat(v2), flat(v3)
    part = jnp.stack([x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1], axis=-1)
    total = jnp.sum(jnp.where(np.arange(3) == drop[..., None], minor, 0), axis=-1)
    return part, total


def _triangle(w: Array) -> tuple[Array, Array]:
    """Weights (..., 3) of the nearest point of triangles (..., 3, 3); and (..., 2) of that of their first edge."""
    v1, v2, v3 = w[..., 0, :], w[..., 1, :], w[..., 2, :]
    edges = np.array([[1, 2], [0, 2], [0, 1]], np.int32)
    ends = _segment(w[..., edges, :])  # (..., 3, 2)
    spread = np.zeros((3, 2, 3))
    spread[np.arange(3)[:, None], np.arange(2), edges] = 1
    sides = jnp.sum(ends[..., None] * spread.astype(w.dtype), axis=-2)
    p, ok = project(v1, v2, v3)
    part, total = areas(v1, v2, v3, p)
    within = _same_sign(total[..., None], part)
    weight = part / jnp.where(total == 0, 1, total)[..., None]
    weight = jnp.where(jnp.all(within, axis=-1, keepdims=True), weight, _best(sides, w, within))
    return jnp.where(ok[..., None], weight, sides[..., 2, :]), ends[..., 2, :]


def _segment(w: Array) -> Array:
    """Weights (..., 2) of the nearest point of segments (..., 2, 3): within, or the second end."""
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
