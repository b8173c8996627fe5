"""Collider of boxes: the axis of least penetration, then one face clipped by the other. Source: mjc_BoxBox.

The axis is found by the separating axis theorem among 6 face normals and 9 cross products of edges.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.engine.collision.shapes import Geoms, PairContacts, min_length
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matmul_t, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array

# rotations of a face's outward normal to z: faces +x, +y, +z, -x, -y, -z
FACE_TO_Z = np.array(
    [
        [[0, 0, -1], [0, 1, 0], [1, 0, 0]],
        [[1, 0, 0], [0, 0, -1], [0, 1, 0]],
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0, 0, 1], [0, 1, 0], [-1, 0, 0]],
        [[1, 0, 0], [0, 0, 1], [0, -1, 0]],
        [[-1, 0, 0], [0, 1, 0], [0, 0, -1]],
    ],
    dtype=float,
)
OTHER_AXES = np.array([[1, 2], [0, 2], [1, 0]], np.int32)  # the other two axes, for each axis
THIRD_AXIS = np.array([[0, 2, 1], [2, 1, 0], [1, 0, 2]], np.int32)  # the axis that is neither of two
OUTSIDE_RATIO = 1.01  # contacts outside a box grown by this ratio are removed


class FaceClip(NamedTuple):
    """A rectangle of half sizes `size[:2]` in the plane z = 0 and a parallelogram that it clips, for n pairs.

    `projected` holds the parallelogram's origin and two edges, projected on the plane, `exact` without the projection;
    both (n, 3, 3). `height_to_distance` is the factor from z to distance. `edges` marks whether the first and second
    edge exist, `face` whether the axis is a face normal rather than a cross product of edges. `frame` (n, 3, 3) and
    `origin` transform to the world.
    """

    projected: Array
    exact: Array
    size: Array
    height_to_distance: Array
    edges: Array
    face: Array
    frame: Array
    origin: Array
    normal: Array


def entry_at(x: Array, index: Array) -> Array:
    """Select x[i, index[i]] for x (n, k, ...) by a mask: no gather, and a gradient that is a product."""
    mask = jnp.arange(x.shape[1], dtype=index.dtype) == index[:, None]
    return jnp.sum(jnp.where(mask.reshape(mask.shape + (1,) * (x.ndim - 2)), x, 0), axis=1)


def box_box(a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contacts of two boxes: points of the clipped face without outliers and duplicates, in 24 slots."""
    rot = matmul_t(a.mat, b.mat)
    pos21, pos12 = matvec_t(a.mat, b.pos - a.pos), matvec_t(b.mat, a.pos - b.pos)
    face, depth, face_separates = _face_axis(a, b, rot, pos21, pos12, margin)
    edge, edge_depth, edge_normal, edge_sign, edge_separates = _edge_axis(a, b, rot, pos21, margin)
    hysteresis = 1e-12 if rot.dtype == jnp.float64 else 1e-5
    by_edge = edge_depth < depth * (1 - hysteresis)
    clip1 = _clip_of_face(a, b, rot, pos21, pos12, face)
    clip2 = _clip_of_edge(a, b, rot, pos21, edge, edge_normal, edge_sign)
    clip = FaceClip(
        *[jnp.where(by_edge.reshape((-1,) + (1,) * (x.ndim - 1)), y, x) for x, y in zip(clip1, clip2, strict=True)]
    )
    points, dist, valid = _clipped_points(clip, margin)
    pos = clip.origin[:, None] + matvec(clip.frame[:, None], points)
    valid &= ~(face_separates | edge_separates)[:, None]
    valid = _remove_outliers(a, b, margin, pos, valid)
    return PairContacts(dist, pos, jnp.broadcast_to(clip.normal[:, None], pos.shape), valid)


def _face_axis(a: Geoms, b: Geoms, rot: Array, pos21: Array, pos12: Array, margin: Array):
    """Find the face of least penetration, 0-5 of the first box, 6-11 of the second: face, depth, any separating."""
    extent = jnp.abs(rot)
    depth1 = a.size + matvec(extent, b.size) - jnp.abs(pos21)
    depth2 = b.size + matvec_t(extent, a.size) - jnp.abs(pos12)
    axis = np.arange(3)
    code = jnp.stack([axis + jnp.where(pos21 < 0, 3, 0), axis + jnp.where(pos12 < 0, 9, 6)], axis=-1).reshape(-1, 6)
    depth = jnp.stack([depth1, depth2], axis=-1).reshape(-1, 6)
    best = jnp.argmin(depth, axis=1)
    return entry_at(code, best), entry_at(depth, best), jnp.any(depth < -margin[:, None], axis=1)


def _edge_axis(a: Geoms, b: Geoms, rot: Array, pos21: Array, margin: Array):
    """Find the pair of edges (3 i + j) of least penetration: pair, depth, normal, side, whether any pair separates."""
    n = rot.shape[0]
    axis = cross(np.eye(3, dtype=rot.dtype)[None, :, None], jnp.swapaxes(rot, 1, 2)[:, None])  # (n, i, j, 3)
    normal, length = safe.normalize(axis)
    gap = inner(normal, pos21[:, None, None])
    reach1 = jnp.sum(jnp.abs(normal) * a.size[:, None, None], axis=-1)  # component i is zero
    across = jnp.abs(rot)[:, :, THIRD_AXIS] * (1 - np.eye(3, dtype=rot.dtype))  # (n, i, j, k)
    reach2 = safe.divide(jnp.sum(across * b.size[:, None, None], axis=-1), length)
    depth = reach1 + reach2 - jnp.abs(gap)
    has_direction = length >= min_length(rot.dtype)
    separates = jnp.any(has_direction & (depth < -margin[:, None, None]), axis=(1, 2))
    depth = jnp.where(has_direction, depth, jnp.inf).reshape(n, 9)
    least = jnp.min(depth, axis=1, keepdims=True)
    best = jnp.argmax(depth <= least + (1e-12 if rot.dtype == jnp.float64 else 1e-6) * jnp.abs(least), axis=1).astype(
        jnp.int32
    )
    no_axis = ~jnp.isfinite(least[:, 0])
    depth = jnp.where(no_axis, jnp.inf, entry_at(jnp.where(has_direction.reshape(n, 9), depth, 0), best))
    return best, depth, entry_at(normal.reshape(n, 9, 3), best), entry_at(gap.reshape(n, 9), best) < 0, separates


def _clip_of_face(a: Geoms, b: Geoms, rot: Array, pos21: Array, pos12: Array, code: Array) -> FaceClip:
    """Set up the clip of the most opposed face of the other box by the face of least penetration."""
    second = code >= 6
    to_z = jnp.asarray(FACE_TO_Z, rot.dtype)[code % 6]
    by_second, by_second_mat = second[:, None], second[:, None, None]
    rot_z = matmul_t(jnp.swapaxes(to_z, 1, 2), jnp.where(by_second_mat, jnp.swapaxes(rot, 1, 2), rot))
    size = jnp.abs(matvec(to_z, jnp.where(by_second, b.size, a.size)))
    other = jnp.where(by_second, a.size, b.size)
    columns = jnp.swapaxes(rot_z, 1, 2)
    sign = jnp.where(rot_z[:, 2] < 0, 1.0, -1.0).astype(rot_z.dtype)
    corner = matvec(to_z, jnp.where(by_second, pos12, pos21)) - size * np.array([0.0, 0, 1], rot_z.dtype)
    corner += jnp.sum(columns * (other * sign)[..., None], axis=1)
    edges = columns * (-2 * other * sign)[..., None]
    horizontal = jnp.abs(rot_z[:, 2]) < 0.5
    rank = jnp.cumsum(horizontal, axis=1)
    projected = [corner, *[jnp.sum(jnp.where((horizontal & (rank == k))[..., None], edges, 0), axis=1) for k in (1, 2)]]
    projected = jnp.stack(projected, axis=1)
    count = rank[:, -1:]
    mat = jnp.where(by_second_mat, b.mat, a.mat)
    frame = jnp.sum(mat[:, :, None] * to_z[:, None], axis=-1)  # mat @ to_z.T
    normal = jnp.where(by_second, -1.0, 1.0).astype(rot_z.dtype) * frame[:, :, 2]
    factor = jnp.ones_like(size[:, 0])
    edges = count >= np.array([1, 2])
    return FaceClip(
        projected, projected, size, factor, edges, factor > 0, frame, jnp.where(by_second, b.pos, a.pos), normal
    )


def _clip_of_edge(a: Geoms, b: Geoms, rot: Array, pos21: Array, edge: Array, normal: Array, behind: Array) -> FaceClip:
    """Set up the clip of the second box's face by the first box's face, both at their edges, along the edge normal."""
    q1, q2 = edge // 3, edge % 3
    other = jnp.asarray(OTHER_AXES)
    row, column = entry_at(jnp.abs(rot), q1), entry_at(jnp.abs(jnp.swapaxes(rot, 1, 2)), q2)
    axes2, axes1 = other[q2], other[q1]
    swap = entry_at(row, axes2[:, 0]) < entry_at(row, axes2[:, 1])
    axis2, last_axis2 = jnp.where(swap, axes2[:, 1], axes2[:, 0]), jnp.where(swap, axes2[:, 0], axes2[:, 1])
    axis1 = jnp.where(entry_at(column, axes1[:, 0]) < entry_at(column, axes1[:, 1]), axes1[:, 0], axes1[:, 1])

    # on which side of each box the edges are
    is_high1 = (entry_at(normal, axis1) > 0) ^ behind
    face = jnp.where(is_high1, axis1, axis1 + 3)
    signed = entry_at(rot, q1)

    def sign(k: Array) -> Array:
        high = (entry_at(signed, 3 - k - q2) > 0) ^ behind ^ ((k - q2 + 3) % 3 == 1)
        return jnp.where(high, 1.0, -1.0).astype(rot.dtype)

    to_z = jnp.asarray(FACE_TO_Z, rot.dtype)[face]
    columns = jnp.swapaxes(matmul_t(jnp.swapaxes(to_z, 1, 2), rot), 1, 2) * b.size[..., None]
    size = jnp.abs(matvec(to_z, a.size))
    turned = matvec(to_z, normal)
    height = turned[:, 2]
    side1, along = entry_at(columns, axis2) * sign(axis2)[:, None], entry_at(columns, q2)
    corner = matvec(to_z, pos21) - size * np.array([0.0, 0, 1], rot.dtype)
    corner += side1 + entry_at(columns, last_axis2) * sign(last_axis2)[:, None] + along
    exact = jnp.stack([corner, -2 * along, -2 * side1], axis=1)
    projected = exact - safe.divide(exact[:, :, 2], height[:, None])[..., None] * turned[:, None]
    frame = jnp.sum(a.mat[:, :, None] * to_z[:, None], axis=-1)
    sign_out = jnp.where(behind, -1.0, 1.0).astype(rot.dtype)
    edges_exist = jnp.ones((*edge.shape, 2), bool) & (jnp.abs(height) >= min_length(rot.dtype))[:, None]
    outward = matvec(frame, turned) * sign_out[:, None]
    return FaceClip(
        projected,
        exact,
        size,
        safe.divide(sign_out, height),
        edges_exist,
        jnp.zeros(edge.shape, bool),
        frame,
        a.pos,
        outward,
    )


def _clipped_points(c: FaceClip, margin: Array) -> tuple[Array, Array, Array]:
    """Return points midway between the surfaces (n, 24, 3) in the frame of the face, distances, and a mask."""
    lines, dist1, valid1 = _crossings(c, margin)
    nline = jnp.sum(valid1, axis=1)
    corners, dist2, valid2 = _rectangle_corners(c, margin, nline)
    inner_corners, dist3, valid3 = _parallelogram_corners(c, margin, nline, nline + jnp.sum(valid2, axis=1))
    points = jnp.concatenate([lines, corners, inner_corners], axis=1)
    points += (c.size * np.array([0.0, 0, 1], lines.dtype))[:, None]
    return points, jnp.concatenate([dist1, dist2, dist3], axis=1), jnp.concatenate([valid1, valid2, valid3], axis=1)


def _crossings(c: FaceClip, margin: Array) -> tuple[Array, Array, Array]:
    """Intersect the four sides of the parallelogram with the four sides of the rectangle: 16 slots."""
    start = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]], float)
    along = np.array([1, 2, 2, 1], np.int32)

    def side_lines(x: Array) -> tuple[Array, Array]:
        first = jnp.sum(start.astype(x.dtype)[..., None] * x[:, None], axis=2)
        return first, x[:, along]

    p, e = side_lines(c.projected)  # (n, 4, 3)
    exact_p, exact_e = side_lines(c.exact)
    size = c.size[:, None, :2]
    swap = slice(1, None, -1)
    p, e, other_p, e_other = p[..., :2], e[..., :2], p[..., swap], e[..., swap]
    limit = size[..., None] * np.array([-1.0, 1.0], size.dtype)  # (n, 1, q, sign)
    t = safe.divide(limit - p[..., None], e[..., None])  # (n, 4, q, sign)
    across = other_p[..., None] + e_other[..., None] * t
    valid = (jnp.abs(e)[..., None] > min_length(e.dtype)) & (t >= 0) & (t <= 1)
    valid &= jnp.abs(across) <= size[..., swap][..., None]
    point = exact_p[:, :, None, None] + exact_e[:, :, None, None] * t[..., None]
    dist = point[..., 2] * c.height_to_distance[:, None, None, None]
    limit = jnp.broadcast_to(limit, across.shape)
    x = jnp.stack([limit[:, :, 0], across[:, :, 1]], axis=2)
    y = jnp.stack([across[:, :, 0], limit[:, :, 1]], axis=2)
    middle = 0.5 * (point + jnp.stack([x, y, jnp.zeros_like(x)], axis=-1))
    exists = jnp.where(c.face[:, None], c.edges[:, np.array([0, 1, 1, 1], np.int32)], c.edges[:, :1])
    valid &= exists[:, :, None, None] & (dist <= margin[:, None, None, None])
    n = t.shape[0]
    return middle.reshape(n, 16, 3), dist.reshape(n, 16), valid.reshape(n, 16)


def _rectangle_corners(c: FaceClip, margin: Array, nline: Array) -> tuple[Array, Array, Array]:
    """Return the corners of the rectangle inside the parallelogram: 4 slots."""
    p, e1, e2 = c.projected[:, 0], c.projected[:, 1], c.projected[:, 2]
    det = e1[:, 0] * e2[:, 1] - e2[:, 0] * e1[:, 1]
    out = []
    for sx, sy in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        corner = c.size * np.array([sx, sy, 0.0], p.dtype)
        x, y = corner[:, 0] - p[:, 0], corner[:, 1] - p[:, 1]
        u = safe.divide(x * e2[:, 1] - y * e2[:, 0], det)
        v = safe.divide(y * e1[:, 0] - x * e1[:, 1], det)
        outside_u, outside_v = (u < 0) | (u > 1), (v < 0) | (v > 1)
        strict = (u > 0) & (v > 0) & (u < 1) & (v < 1)
        is_over = jnp.where(c.face, strict, jnp.where(nline == 0, ~(outside_u & outside_v), ~(outside_u | outside_v)))
        u, v = jnp.clip(u, 0, 1)[:, None], jnp.clip(v, 0, 1)[:, None]
        point = c.exact[:, 0] + c.exact[:, 1] * u + c.exact[:, 2] * v
        gap = corner - point
        square = inner(gap, gap)
        dist = jnp.where(c.face, point[:, 2], safe.sqrt(square) * jnp.where(point[:, 2] < 0, -1, 1))
        is_over &= c.edges[:, 1]
        out.append((0.5 * (corner + point), dist, is_over & ~((point[:, 2] > 0) & (square > margin * margin))))
        # as in MuJoCo, the next corner's coordinates are divided by this square
        det = jnp.where(~c.face & is_over, square, det)
    pos, dist, valid = (jnp.stack(x, axis=1) for x in zip(*out, strict=True))
    return pos, dist, valid


def _parallelogram_corners(c: FaceClip, margin: Array, nline: Array, nfound: Array) -> tuple[Array, Array, Array]:
    """Return the corners of the parallelogram inside the rectangle: 4 slots."""
    corners = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]], c.projected.dtype)
    projected = jnp.sum(corners[..., None] * c.projected[:, None], axis=2)[..., :2]
    exact = jnp.sum(corners[..., None] * c.exact[:, None], axis=2)
    size = c.size[:, None, :2]
    outside = jnp.abs(projected) > size
    both, either = jnp.all(outside, axis=-1), jnp.any(outside, axis=-1)
    within = jnp.where(nline[:, None] == 0, (nfound[:, None] == 0) | ~both, ~either)
    first = np.arange(4) == 0
    within_face = first | jnp.all(jnp.abs(projected) < size, axis=-1)
    exists = jnp.stack([jnp.ones_like(c.face), c.edges[:, 0], c.edges[:, 1], c.edges[:, 1]], axis=1)
    clamped = jnp.clip(projected, -size, size)
    z = exact[..., 2]
    square = jnp.sum((projected - clamped) ** 2, axis=-1) + (z * c.height_to_distance[:, None]) ** 2
    near = ~((z > 0) & (square > (margin * margin)[:, None]))
    face = c.face[:, None]
    dist = jnp.where(face, z, safe.sqrt(square) * jnp.where(z < 0, -1, 1))
    on_plane = jnp.where(face[..., None], projected, clamped)
    middle = 0.5 * (exact + jnp.concatenate([on_plane, jnp.zeros_like(z)[..., None]], axis=-1))
    valid = jnp.where(face, within_face & exists & (z <= margin[:, None]), within & near & c.edges[:, :1])
    return middle, dist, valid


def _remove_outliers(a: Geoms, b: Geoms, margin: Array, pos: Array, valid: Array) -> Array:
    """Invalidate contacts that are outside one box and not inside the other, and duplicates of earlier ones."""
    side = [_side_of_box(g, margin, pos) for g in (a, b)]
    outlier = ((side[0] == 1) & (side[1] != -1)) | ((side[1] == 1) & (side[0] != -1))
    valid = valid & ~outlier
    scale = jnp.max(a.size, axis=1) + jnp.max(b.size, axis=1)
    equal = jnp.abs(pos[:, :, None] - pos[:, None]) <= (16 * jnp.finfo(pos.dtype).eps * scale)[:, None, None, None]
    later = np.triu(np.ones((pos.shape[1], pos.shape[1]), bool), 1)
    return valid & ~jnp.any(jnp.all(equal, axis=-1) & later & valid[:, None], axis=2)


def _side_of_box(g: Geoms, margin: Array, pos: Array) -> Array:
    """Return 1 outside the box grown by the margin and 1%, -1 inside the box shrunk by 1%, else 0."""
    local = jnp.abs(matvec_t(g.mat[:, None], pos - g.pos[:, None]))
    size = (g.size + margin[:, None])[:, None]
    outside = jnp.any(local > size * OUTSIDE_RATIO, axis=-1)
    inside = jnp.all(local < size / OUTSIDE_RATIO, axis=-1)
    return jnp.where(outside, 1, jnp.where(inside, -1, 0))
