"""Capsules against capsules and boxes."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL
from jaxsim.engine.collision.primitive.sphere import sphere_in_box, spheres
from jaxsim.engine.collision.shapes import Geoms, Hits, small
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.jvp import sum_of_tangents
from jaxsim.math.safe import Array
from jaxsim.xla.fusion import fusion_barrier


def parallel(ma: Array, mb: Array, mc: Array) -> tuple[Array, Array]:
    """Determinant of a pair of segments and whether they count as parallel."""
    det = ma * mc - mb * mb
    if det.dtype == jnp.float64:
        return det, jnp.abs(det) < MINVAL
    return det, jnp.abs(det) < 8 * jnp.finfo(det.dtype).eps * ma * mc + MINVAL


def _nearest(ma: Array, mb: Array, mc: Array, u: Array, v: Array, det: Array) -> tuple[Array, Array]:
    """Parameters in [-1, 1] of the nearest points of two segments that are not parallel."""
    x1, x2 = safe.divide(mc * u - mb * v, det), safe.divide(ma * v - mb * u, det)
    side1 = jnp.where(x1 > 1, 1, jnp.where(x1 < -1, -1, 0)).astype(x1.dtype)
    x2 = jnp.where(side1 == 0, x2, safe.divide(v - side1 * mb, mc))
    x1 = jnp.where(side1 == 0, x1, side1)
    side2 = jnp.where(x2 > 1, 1, jnp.where(x2 < -1, -1, 0)).astype(x2.dtype)
    x1 = jnp.where(side2 == 0, x1, jnp.clip(safe.divide(u - side2 * mb, ma), -1, 1))
    return x1, jnp.where(side2 == 0, x2, side2)


@jax.custom_jvp
def _chosen(pick: Array, places: list[Array]) -> Array:
    """The place (n, 2) that each row of `pick` (n, 2, k) marks, zero where it marks none."""
    return safe.short_sum(pick * jnp.stack(places, axis=1)[:, None])


def _chosen_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    pick, places = primals
    out = _chosen(pick, places)
    terms = [(lambda t, k=k: jnp.where(pick[:, :, k], t[:, None], 0), t) for k, t in enumerate(tangents[1])]
    return out, sum_of_tangents(out, *terms)


_chosen.defjvp(_chosen_jvp, symbolic_zeros=True)  # half of the places are ends, which do not move


def capsule_capsule(a: Geoms, b: Geoms, margin: Array) -> Hits:
    """Two capsules: one contact at the nearest points, or up to two at the ends of parallel ones."""
    axis1, axis2 = a.axis * a.size[:, 1:2], b.axis * b.size[:, 1:2]
    gap = a.pos - b.pos
    ma, mb, mc = inner(axis1, axis1), -inner(axis1, axis2), inner(axis2, axis2)
    u, v = -inner(axis1, gap), inner(axis2, gap)
    ma, mb, mc, u, v = fusion_barrier(jnp.stack([ma, mb, mc, u, v]))
    det, flat = parallel(ma, mb, mc)
    x1, x2 = _nearest(ma, mb, mc, u, v, jnp.where(flat, 0, det))

    # parallel: each end of either capsule against the other; the first two that are near are kept
    one = jnp.ones_like(u)
    on2 = [jnp.clip(safe.divide(v - s * mb, mc), -1, 1) for s in (1, -1)]
    on1 = [jnp.clip(safe.divide(u - s * mb, ma), -1, 1) for s in (1, -1)]
    places = [jnp.where(flat, one, x1), -one, *on1], [jnp.where(flat, on2[0], x2), on2[1], one, -one]
    p1, p2 = (jnp.stack(p, axis=1) for p in places)
    apart = gap[:, None] + axis1[:, None] * p1[..., None] - axis2[:, None] * p2[..., None]
    reach = (margin + a.size[:, 0] + b.size[:, 0])[:, None]
    near = inner(apart, apart) <= reach * reach
    near = fusion_barrier(near & jnp.stack([one > 0, flat, flat, flat], axis=1))
    rank = jnp.cumsum(near, axis=1)
    pick = near[:, None] & (rank[:, None] == jnp.arange(1, 3)[:, None])  # (n, 2, 4)
    x1, x2 = (_chosen(pick, p) for p in places)

    ends1 = a.pos[:, None] + axis1[:, None] * x1[..., None]
    ends2 = b.pos[:, None] + axis2[:, None] * x2[..., None]
    z1, z2 = a.axis[:, None], b.axis[:, None]
    dist, pos, normal, _ = spheres(ends1, a.size[:, :1], ends2, b.size[:, :1], margin[:, None], z1, z2)
    return Hits(dist, pos, normal, rank[:, -1:] > np.arange(2))


# the twelve edges of a box: their axis, and the signs of the corner at the lower end, its own axis left at zero
EDGE_AXIS = np.repeat(np.arange(3, dtype=np.int32), 4)
EDGE_CORNER = np.array([i for j in range(3) for i in range(8) if not i & (1 << j)], np.int32)
EDGE_SIGN = np.where((EDGE_CORNER[:, None] >> np.arange(3)) & 1, 1.0, -1.0) * (EDGE_AXIS[:, None] != np.arange(3))


def capsule_box(a: Geoms, b: Geoms, margin: Array) -> Hits:
    """A capsule and a box: the nearest point, and a second one where the capsule lies along a face or an edge."""
    pos = matvec_t(b.mat, a.pos - b.pos)
    axis = matvec_t(b.mat, a.axis)
    half = axis * a.size[:, 1:2]
    face_dist, end, face, tip_free = _nearest_face(pos, half, b.size)
    edge_dist, x1, x2, s1, edge = _nearest_edge(pos, half, a.size[:, 1], b.size)
    farthest = margin + 2 * (a.size[:, 0] + a.size[:, 1] + jnp.sum(b.size, axis=1))
    by_edge = edge_dist < jnp.minimum(jnp.where(tip_free, face_dist, jnp.inf), farthest) - small(pos.dtype)
    found = by_edge | (tip_free & (face_dist < farthest))

    first = jnp.where(by_edge, x2, end)
    bits = np.array([1, 2, 4])
    direction = jnp.sum(jnp.where(half > 0, bits, 0), axis=1)
    lower, along = jnp.asarray(EDGE_CORNER)[edge], jnp.asarray(EDGE_AXIS)[edge]
    corner = lower + jnp.where(s1 == 2, jnp.asarray(bits)[along], 0)
    reach = safe.divide(b.size, jnp.abs(half), default=1e10)
    at_corner = _second_from_corner(direction ^ corner, axis, reach, x2)
    at_edge = _second_from_edge(direction, corner, along, axis, reach, x1, x2)
    at_face = _second_from_face(pos, half, b.size, end, face)
    step, more = [
        jnp.where(by_edge, jnp.where(s1 == 1, e, c), f) for c, e, f in zip(at_corner, at_edge, at_face, strict=True)
    ]
    points = jnp.stack([first, first + jnp.where(more, step, 0)], axis=1)
    centre = b.pos[:, None] + matvec(b.mat[:, None], pos[:, None] + half[:, None] * points[..., None])
    box = Geoms(b.pos[:, None], b.mat[:, None], b.size[:, None])
    dist, where, normal, near = sphere_in_box(centre, a.size[:, :1], box, margin[:, None])
    return Hits(dist, where, normal, near & jnp.stack([found, found & more], axis=1))


def _nearest_face(pos: Array, half: Array, size: Array) -> tuple[Array, Array, Array, Array]:
    """The end of the capsule nearest to the inside of a face: squared distance, end, face (-1 inside), whether any."""
    ends = np.array([-1.0, 1.0], pos.dtype)
    tip = pos[:, None] + half[:, None] * ends[:, None]
    size = size[:, None]
    out = jnp.abs(tip) > size
    gap = jnp.clip(tip, -size, size) - tip
    ok = jnp.sum(out, axis=-1) <= 1
    square = jnp.where(ok, inner(gap, gap), jnp.inf)
    face = jnp.max(jnp.where(out, np.arange(3), -1), axis=-1)
    upper = square[:, 1] < square[:, 0]
    square = jnp.where(upper, square[:, 1], square[:, 0])
    return square, jnp.where(upper, ends[1], ends[0]), jnp.where(upper, face[:, 1], face[:, 0]), jnp.any(ok, axis=1)


def _nearest_edge(pos: Array, half: Array, length: Array, size: Array) -> tuple[Array, ...]:
    """The box edge nearest to the capsule's segment.

    Squared distance, positions in [-1, 1] on the edge and on the segment, where on the edge (0 lower end, 1 between, 2
    upper end), and which edge.
    """
    edge_half, along = size[:, EDGE_AXIS], half[:, EDGE_AXIS]
    gap = EDGE_SIGN.astype(pos.dtype) * size[:, None] - pos[:, None]
    own = jnp.sum(jnp.where(EDGE_AXIS[:, None] == np.arange(3), gap, 0), axis=-1)
    ma, mb, mc = edge_half * edge_half, -edge_half * along, (length * length)[:, None]
    u, v = -edge_half * own, inner(half[:, None], gap)
    det, flat = parallel(ma, mb, mc)
    det = jnp.where(flat, 0, det)
    x1, x2 = safe.divide(mc * u - mb * v, det), safe.divide(ma * v - mb * u, det)
    s1 = _side(x1)
    x2 = jnp.where(s1 == 0, x2, safe.divide(v - s1 * mb, mc))
    x1 = jnp.clip(x1, -1, 1)
    s2 = _side(x2)
    again = safe.divide(u - s2 * mb, ma)
    s1 = jnp.where((s2 != 0) & (_side(again) != 0), _side(again), s1)
    x1 = jnp.where(s2 == 0, x1, jnp.clip(again, -1, 1))
    x2 = jnp.clip(x2, -1, 1)
    on_edge = jnp.where(EDGE_AXIS[:, None] == np.arange(3), (edge_half * x1)[..., None], 0)
    apart = gap - half[:, None] * x2[..., None] + on_edge
    square = jnp.where(flat, jnp.inf, inner(apart, apart))
    least = safe.least(square, keepdims=True)
    best = jnp.argmax(square <= least + small(pos.dtype), axis=1)
    mask = np.arange(12) == best[:, None]
    chosen = [jnp.sum(jnp.where(mask, x, 0), axis=1) for x in (x1, x2, s1)]
    return least[:, 0], chosen[0], chosen[1], chosen[2].astype(int) + 1, best


def _side(x: Array) -> Array:
    """-1 below -1, 1 above 1, else 0."""
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, 0)).astype(x.dtype)


def _pick(x: Array, axis: Array) -> Array:
    return jnp.sum(jnp.where(np.arange(3) == axis[:, None], x, 0), axis=1)


def _second_from_corner(octant: Array, axis: Array, reach: Array, x: Array) -> tuple[Array, Array]:
    """Step to a second point from a corner: along the box edge, or over the face, that the capsule follows."""
    more = (octant != 0) & (octant != 7)
    straight = (octant == 1) | (octant == 2) | (octant == 4)
    way = jnp.where(straight, 1, -1).astype(x.dtype)
    octant = jnp.where(straight, octant, 7 - octant)
    ax = octant // 2
    follow = _pick(axis, ax) ** 2 > 0.5
    side = jnp.where(np.arange(3) == ax[:, None], jnp.inf, reach)
    edge = jnp.minimum(1 - way * x, 2 * _pick(reach, ax))
    face = jnp.minimum(1 + way * x, 2 * safe.least(side))
    return jnp.where(follow, edge * way, -face * way), more


def _second_from_edge(
    direction: Array, corner: Array, along: Array, axis: Array, reach: Array, x1: Array, x2: Array
) -> tuple[Array, Array]:
    """Step to a second point from within a box edge, over the face that the capsule is closer to."""
    bit = jnp.asarray([1, 2, 4])
    cross = (direction ^ corner) & (7 - bit[along])
    more = (cross == 1) | (cross == 2) | (cross == 4)
    after, last = (along + 1) % 3, (along + 2) % 3
    ax = jnp.where(jnp.abs(_pick(axis, after)) > jnp.abs(_pick(axis, last)), after, last)
    up = (cross & bit[ax]) != 0
    way = jnp.where(up, 1, -1).astype(x1.dtype)
    step = jnp.minimum(1 - way * x2, 2 * _pick(reach, ax))
    forward = ((direction & bit[along]) != 0) == up
    step = jnp.minimum(step, _pick(reach, along) * jnp.where(forward, 1 - x1, 1 + x1))
    return step * way, more


def _second_from_face(pos: Array, half: Array, size: Array, end: Array, face: Array) -> tuple[Array, Array]:
    """Step to a second point from an end over a face: to where the capsule leaves the face, at most its other end."""
    way = -end[:, None]
    tip = pos - half * way
    leave = jnp.stack([safe.divide(s * size - tip, half) * way for s in (1, -1)], axis=-1)
    ok = (leave > 0) & (np.arange(3) != face[:, None])[..., None]
    step = safe.least(jnp.where(ok, leave, 2.0).reshape(-1, 6))
    return jnp.minimum(step, 2) * -end, face != -1
