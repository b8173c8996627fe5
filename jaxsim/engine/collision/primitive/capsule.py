"""Colliders of capsules with capsules and boxes. Source: mjc_CapsuleCapsule, mjc_CapsuleBox."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL
from jaxsim.engine.collision.primitive.sphere import sphere_in_box, spheres
from jaxsim.engine.collision.shapes import BOX_SIGNS, Geoms, PairContacts, min_length
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.jvp import sum_of_tangents
from jaxsim.math.safe import Array


def segment_determinant(ma: Array, mb: Array, mc: Array) -> tuple[Array, Array]:
    """Return the determinant of the system for nearest points of two segments, and whether they count as parallel."""
    det = ma * mc - mb * mb
    if det.dtype == jnp.float64:
        return det, jnp.abs(det) < MINVAL
    return det, jnp.abs(det) < 8 * jnp.finfo(det.dtype).eps * ma * mc + MINVAL


def _nearest_parameters(ma: Array, mb: Array, mc: Array, u: Array, v: Array, det: Array) -> tuple[Array, Array]:
    """Return the parameters in [-1, 1] of the nearest points of two segments that are not parallel."""
    x1, x2 = safe.divide(mc * u - mb * v, det), safe.divide(ma * v - mb * u, det)
    side1 = _beyond_end(x1)
    x2 = jnp.where(side1 == 0, x2, safe.divide(v - side1 * mb, mc))
    x1 = jnp.where(side1 == 0, x1, side1)
    side2 = _beyond_end(x2)
    x1 = jnp.where(side2 == 0, x1, jnp.clip(safe.divide(u - side2 * mb, ma), -1, 1))
    return x1, jnp.where(side2 == 0, x2, side2)


@jax.custom_jvp
def _select_parameters(mask: Array, parameters: list[Array]) -> Array:
    """Return the parameters (n, 2) that the rows of `mask` (n, 2, k) select, zero where a row selects none."""
    return safe.short_sum(mask.astype(parameters[0].dtype) * jnp.stack(parameters, axis=1)[:, None])


def _select_parameters_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    mask, parameters = primals
    out = _select_parameters(mask, parameters)
    terms = [(lambda t, k=k: jnp.where(mask[:, :, k], t[:, None], 0), t) for k, t in enumerate(tangents[1])]
    return out, sum_of_tangents(out, *terms)


# symbolic zeros: half of the parameters are ends, which have no tangent
_select_parameters.defjvp(_select_parameters_jvp, symbolic_zeros=True)


def capsule_capsule(a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contacts of two capsules: one at the nearest points, or up to two at the ends of parallel ones."""
    axis1, axis2 = a.axis * a.size[:, 1:2], b.axis * b.size[:, 1:2]
    gap = a.pos - b.pos
    ma, mb, mc = inner(axis1, axis1), -inner(axis1, axis2), inner(axis2, axis2)
    u, v = -inner(axis1, gap), inner(axis2, gap)
    det, are_parallel = segment_determinant(ma, mb, mc)
    x1, x2 = _nearest_parameters(ma, mb, mc, u, v, jnp.where(are_parallel, 0, det))

    # parallel: each end of either capsule against the other; the first two within the margin are kept
    one = jnp.ones_like(u)
    ends_on2 = [jnp.clip(safe.divide(v - s * mb, mc), -1, 1) for s in (1, -1)]
    ends_on1 = [jnp.clip(safe.divide(u - s * mb, ma), -1, 1) for s in (1, -1)]
    parameters = (
        [jnp.where(are_parallel, one, x1), -one, *ends_on1],
        [jnp.where(are_parallel, ends_on2[0], x2), ends_on2[1], one, -one],
    )
    p1, p2 = (jnp.stack(p, axis=1) for p in parameters)
    difference = gap[:, None] + axis1[:, None] * p1[..., None] - axis2[:, None] * p2[..., None]
    reach = (margin + a.size[:, 0] + b.size[:, 0])[:, None]
    near = inner(difference, difference) <= reach * reach
    near = near & jnp.stack([one > 0, are_parallel, are_parallel, are_parallel], axis=1)
    rank = jnp.cumsum(near, axis=1)
    mask = near[:, None] & (rank[:, None] == jnp.arange(1, 3)[:, None])  # (n, 2, 4)
    x1, x2 = (_select_parameters(mask, p) for p in parameters)

    ends1 = a.pos[:, None] + axis1[:, None] * x1[..., None]
    ends2 = b.pos[:, None] + axis2[:, None] * x2[..., None]
    z1, z2 = a.axis[:, None], b.axis[:, None]
    dist, pos, normal, _ = spheres(ends1, a.size[:, :1], ends2, b.size[:, :1], margin[:, None], z1, z2)
    return PairContacts(dist, pos, normal, rank[:, -1:] > np.arange(2))


# the twelve edges of a box: axis, lower corner, and the corner's signs, zero along the axis
EDGE_AXIS = np.repeat(np.arange(3, dtype=np.int32), 4)
EDGE_LOWER_CORNER = np.array([i for j in range(3) for i in range(8) if not i & (1 << j)], np.int32)
EDGE_SIGN = BOX_SIGNS[EDGE_LOWER_CORNER] * (EDGE_AXIS[:, None] != np.arange(3))


def capsule_box(a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contacts of a capsule and a box: at the nearest point, and a second one along a face or an edge."""
    pos = matvec_t(b.mat, a.pos - b.pos)
    axis = matvec_t(b.mat, a.axis)
    half = axis * a.size[:, 1:2]
    face_dist, end, face, tip_free = _nearest_face(pos, half, b.size)
    edge_dist, x1, x2, edge_part, edge = _nearest_edge(pos, half, a.size[:, 1], b.size)
    farthest = margin + 2 * (a.size[:, 0] + a.size[:, 1] + jnp.sum(b.size, axis=1))
    by_edge = edge_dist < jnp.minimum(jnp.where(tip_free, face_dist, jnp.inf), farthest) - min_length(pos.dtype)
    found = by_edge | (tip_free & (face_dist < farthest))

    first = jnp.where(by_edge, x2, end)
    bits = np.array([1, 2, 4], np.int32)
    direction = jnp.sum(jnp.where(half > 0, bits, 0), axis=1, dtype=jnp.int32)
    lower, along = jnp.asarray(EDGE_LOWER_CORNER)[edge], jnp.asarray(EDGE_AXIS)[edge]
    corner = lower + jnp.where(edge_part == 2, jnp.asarray(bits)[along], 0)
    box_length = safe.divide(b.size, jnp.abs(half), default=1e10)
    at_corner = _second_from_corner(direction ^ corner, axis, box_length, x2)
    at_edge = _second_from_edge(direction, corner, along, axis, box_length, x1, x2)
    at_face = _second_from_face(pos, half, b.size, end, face)
    step, has_second = [
        jnp.where(by_edge, jnp.where(edge_part == 1, e, c), f)
        for c, e, f in zip(at_corner, at_edge, at_face, strict=True)
    ]
    points = jnp.stack([first, first + jnp.where(has_second, step, 0)], axis=1)
    centre = b.pos[:, None] + matvec(b.mat[:, None], pos[:, None] + half[:, None] * points[..., None])
    box = Geoms(b.pos[:, None], b.mat[:, None], b.size[:, None])
    dist, where, normal, near = sphere_in_box(centre, a.size[:, :1], box, margin[:, None])
    return PairContacts(dist, where, normal, near & jnp.stack([found, found & has_second], axis=1))


def _nearest_face(pos: Array, half: Array, size: Array) -> tuple[Array, Array, Array, Array]:
    """Find the capsule end nearest to the interior of a face: squared distance, end, face (-1: inside), whether any."""
    ends = np.array([-1.0, 1.0], pos.dtype)
    tip = pos[:, None] + half[:, None] * ends[:, None]
    size = size[:, None]
    outside = jnp.abs(tip) > size
    gap = jnp.clip(tip, -size, size) - tip
    ok = jnp.sum(outside, axis=-1) <= 1
    square = jnp.where(ok, inner(gap, gap), jnp.inf)
    face = jnp.max(jnp.where(outside, np.arange(3), -1), axis=-1)
    upper = square[:, 1] < square[:, 0]
    square = jnp.where(upper, square[:, 1], square[:, 0])
    return square, jnp.where(upper, ends[1], ends[0]), jnp.where(upper, face[:, 1], face[:, 0]), jnp.any(ok, axis=1)


def _nearest_edge(pos: Array, half: Array, length: Array, size: Array) -> tuple[Array, ...]:
    """Find the box edge nearest to the capsule's segment.

    Returns the squared distance, parameters in [-1, 1] on the edge and on the segment, the part of the edge (0 lower
    end, 1 between, 2 upper end), and the edge.
    """
    edge_half, along = size[:, EDGE_AXIS], half[:, EDGE_AXIS]
    gap = EDGE_SIGN.astype(pos.dtype) * size[:, None] - pos[:, None]
    gap_along_edge = jnp.sum(jnp.where(EDGE_AXIS[:, None] == np.arange(3), gap, 0), axis=-1)
    ma, mb, mc = edge_half * edge_half, -edge_half * along, (length * length)[:, None]
    u, v = -edge_half * gap_along_edge, inner(half[:, None], gap)
    det, are_parallel = segment_determinant(ma, mb, mc)
    det = jnp.where(are_parallel, 0, det)
    x1, x2 = safe.divide(mc * u - mb * v, det), safe.divide(ma * v - mb * u, det)
    part1 = _beyond_end(x1)
    x2 = jnp.where(part1 == 0, x2, safe.divide(v - part1 * mb, mc))
    x1 = jnp.clip(x1, -1, 1)
    part2 = _beyond_end(x2)
    x1_again = safe.divide(u - part2 * mb, ma)
    part1 = jnp.where((part2 != 0) & (_beyond_end(x1_again) != 0), _beyond_end(x1_again), part1)
    x1 = jnp.where(part2 == 0, x1, jnp.clip(x1_again, -1, 1))
    x2 = jnp.clip(x2, -1, 1)
    on_edge = jnp.where(EDGE_AXIS[:, None] == np.arange(3), (edge_half * x1)[..., None], 0)
    difference = gap - half[:, None] * x2[..., None] + on_edge
    square = jnp.where(are_parallel, jnp.inf, inner(difference, difference))
    least = safe.least(square, keepdims=True)
    best = jnp.argmax(square <= least + min_length(pos.dtype), axis=1)
    mask = np.arange(12) == best[:, None]
    chosen = [jnp.sum(jnp.where(mask, x, 0), axis=1) for x in (x1, x2, part1)]
    return least[:, 0], chosen[0], chosen[1], chosen[2].astype(int) + 1, best


def _beyond_end(x: Array) -> Array:
    """Return -1 below -1, 1 above 1, else 0."""
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, 0)).astype(x.dtype)


def _component(x: Array, axis: Array) -> Array:
    """Return the component x[i, axis[i]] of vectors (n, 3)."""
    return jnp.sum(jnp.where(np.arange(3, dtype=axis.dtype) == axis[:, None], x, 0), axis=1)


def _second_from_corner(octant: Array, axis: Array, box_length: Array, x: Array) -> tuple[Array, Array]:
    """Step to a second contact from a corner, along the box edge or over the face that the capsule follows."""
    has_second = (octant != 0) & (octant != 7)
    one_bit = (octant == 1) | (octant == 2) | (octant == 4)
    sign = jnp.where(one_bit, 1, -1).astype(x.dtype)
    octant = jnp.where(one_bit, octant, 7 - octant)
    k = octant // 2
    along_edge = _component(axis, k) ** 2 > 0.5
    other_lengths = jnp.where(np.arange(3) == k[:, None], jnp.inf, box_length)
    over_edge = jnp.minimum(1 - sign * x, 2 * _component(box_length, k))
    over_face = jnp.minimum(1 + sign * x, 2 * safe.least(other_lengths))
    return jnp.where(along_edge, over_edge * sign, -over_face * sign), has_second


def _second_from_edge(
    direction: Array, corner: Array, along: Array, axis: Array, box_length: Array, x1: Array, x2: Array
) -> tuple[Array, Array]:
    """Step to a second contact from inside a box edge, over the face nearer to the capsule."""
    bit = jnp.asarray([1, 2, 4])
    differs = (direction ^ corner) & (7 - bit[along])
    has_second = (differs == 1) | (differs == 2) | (differs == 4)
    after, last = (along + 1) % 3, (along + 2) % 3
    k = jnp.where(jnp.abs(_component(axis, after)) > jnp.abs(_component(axis, last)), after, last)
    up = (differs & bit[k]) != 0
    sign = jnp.where(up, 1, -1).astype(x1.dtype)
    step = jnp.minimum(1 - sign * x2, 2 * _component(box_length, k))
    forward = ((direction & bit[along]) != 0) == up
    step = jnp.minimum(step, _component(box_length, along) * jnp.where(forward, 1 - x1, 1 + x1))
    return step * sign, has_second


def _second_from_face(pos: Array, half: Array, size: Array, end: Array, face: Array) -> tuple[Array, Array]:
    """Step to a second contact from an end over a face: where the capsule leaves the face, or at the other end."""
    sign = -end[:, None]
    tip = pos - half * sign
    exits = jnp.stack([safe.divide(s * size - tip, half) * sign for s in (1, -1)], axis=-1)
    ok = (exits > 0) & (np.arange(3) != face[:, None])[..., None]
    step = safe.least(jnp.where(ok, exits, 2.0).reshape(-1, 6))
    return jnp.minimum(step, 2) * -end, face != -1
