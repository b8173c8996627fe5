"""Boxes against boxes: the axis of least penetration, then one face clipped by the other's edges."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.engine.collision.shapes import Geoms, Hits, small
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array

# rotations that bring a face's outward normal to z: faces +x, +y, +z, -x, -y, -z
TO_Z = np.array(
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
OTHER = np.array([[1, 2], [0, 2], [1, 0]], np.int32)  # the two other axes of an edge along each axis
THIRD = np.array([[0, 2, 1], [2, 1, 0], [1, 0, 2]], np.int32)  # the axis that is neither of two
REMOVE = 1.01  # contacts outside a box by more than this ratio are removed


class Clip(NamedTuple):
    """A rectangle of half-sides `size[:2]` in the plane z = 0 and a parallelogram to be clipped by it, for n pairs.

    `flat` are the origin and two edges projected on the plane, `true` the same as they are; both (n, 3, 3). `drop`
    turns z into a distance. `edges` says whether the first and the second edge exist, `face` whether a face (rather
    than a pair of edges) separates the boxes. `frame` (n, 3, 3) and `origin` bring results to the world.
    """

    flat: Array
    true: Array
    size: Array
    drop: Array
    edges: Array
    face: Array
    frame: Array
    origin: Array
    normal: Array


def pick(x: Array, index: Array) -> Array:
    """x[i, index[i]] for x (n, k, ...), by a mask: no gather, and a gradient that is a product."""
    mask = jnp.arange(x.shape[1]) == index[:, None]
    return jnp.sum(jnp.where(mask.reshape(mask.shape + (1,) * (x.ndim - 2)), x, 0), axis=1)


def box_box(a: Geoms, b: Geoms, margin: Array) -> Hits:
    """Two boxes: the points of the clipped face, outliers and duplicates removed; 24 slots of which few are valid."""
    rot = matmul_t(a.mat, b.mat)
    pos21, pos12 = matvec_t(a.mat, b.pos - a.pos), matvec_t(b.mat, a.pos - b.pos)
    face, depth, apart = _face_axis(a, b, rot, pos21, pos12, margin)
    edge, edge_depth, edge_normal, edge_sign, edge_apart = _edge_axis(a, b, rot, pos21, margin)
    hysteresis = 1e-12 if rot.dtype == jnp.float64 else 1e-5
    by_edge = edge_depth < depth * (1 - hysteresis)
    clip1 = _face_clip(a, b, rot, pos21, pos12, face)
    clip2 = _edge_clip(a, b, rot, pos21, edge, edge_normal, edge_sign)
    clip = Clip(
        *[jnp.where(by_edge.reshape((-1,) + (1,) * (x.ndim - 1)), y, x) for x, y in zip(clip1, clip2, strict=True)]
    )
    points, dist, valid = _clip(clip, margin)
    pos = clip.origin[:, None] + matvec(clip.frame[:, None], points)
    valid &= ~(apart | edge_apart)[:, None]
    valid = _good(a, b, margin, pos, valid)
    return Hits(dist, pos, jnp.broadcast_to(clip.normal[:, None], pos.shape), valid)


def matmul_t(x: Array, y: Array) -> Array:
    """x.T @ y of matrices (n, 3, 3), as a sum that fuses."""
    return jnp.sum(x[:, :, :, None] * y[:, :, None, :], axis=1)


def _face_axis(a: Geoms, b: Geoms, rot: Array, pos21: Array, pos12: Array, margin: Array):
    """The face of least penetration, 0-5 of the first box and 6-11 of the second; its depth; whether one separates."""
    extent = jnp.abs(rot)
    depth1 = a.size + matvec(extent, b.size) - jnp.abs(pos21)
    depth2 = b.size + matvec_t(extent, a.size) - jnp.abs(pos12)
    axis = np.arange(3)
    code = jnp.stack([axis + 3 * (pos21 < 0), axis + 3 * (pos12 < 0) + 6], axis=-1).reshape(-1, 6)
    depth = jnp.stack([depth1, depth2], axis=-1).reshape(-1, 6)
    best = jnp.argmin(depth, axis=1)
    return pick(code, best), pick(depth, best), jnp.any(depth < -margin[:, None], axis=1)


def _edge_axis(a: Geoms, b: Geoms, rot: Array, pos21: Array, margin: Array):
    """The pair of edges (3 i + j) of least penetration, its depth, normal and side; whether a pair separates."""
    n = rot.shape[0]
    raw = cross(np.eye(3, dtype=rot.dtype)[None, :, None], jnp.swapaxes(rot, 1, 2)[:, None])  # (n, i, j, 3)
    normal, length = safe.normalize(raw)
    side = inner(normal, pos21[:, None, None])
    reach1 = jnp.sum(jnp.abs(normal) * a.size[:, None, None], axis=-1)  # component i is zero
    across = jnp.abs(rot)[:, :, THIRD] * (1 - np.eye(3, dtype=rot.dtype))  # (n, i, j, k)
    reach2 = safe.divide(jnp.sum(across * b.size[:, None, None], axis=-1), length)
    depth = reach1 + reach2 - jnp.abs(side)
    real = length >= small(rot.dtype)
    apart = jnp.any(real & (depth < -margin[:, None, None]), axis=(1, 2))
    depth = jnp.where(real, depth, jnp.inf).reshape(n, 9)
    least = jnp.min(depth, axis=1, keepdims=True)
    best = jnp.argmax(depth <= least + (1e-12 if rot.dtype == jnp.float64 else 1e-6) * jnp.abs(least), axis=1)
    none = ~jnp.isfinite(least[:, 0])
    depth = jnp.where(none, jnp.inf, pick(jnp.where(real.reshape(n, 9), depth, 0), best))
    return best, depth, pick(normal.reshape(n, 9, 3), best), pick(side.reshape(n, 9), best) < 0, apart


def _face_clip(a: Geoms, b: Geoms, rot: Array, pos21: Array, pos12: Array, code: Array) -> Clip:
    """The face of one box that is the reference, and the face of the other that looks at it most."""
    second = code >= 6
    turn = jnp.asarray(TO_Z, rot.dtype)[code % 6]
    one, two = second[:, None], second[:, None, None]
    r = matmul_t(jnp.swapaxes(turn, 1, 2), jnp.where(two, jnp.swapaxes(rot, 1, 2), rot))
    size = jnp.abs(matvec(turn, jnp.where(one, b.size, a.size)))
    other = jnp.where(one, a.size, b.size)
    columns = jnp.swapaxes(r, 1, 2)
    sign = jnp.where(r[:, 2] < 0, 1.0, -1.0).astype(r.dtype)
    corner = matvec(turn, jnp.where(one, pos12, pos21)) - size * np.array([0.0, 0, 1], r.dtype)
    corner += jnp.sum(columns * (other * sign)[..., None], axis=1)
    edges = columns * (-2 * other * sign)[..., None]
    lying = jnp.abs(r[:, 2]) < 0.5
    rank = jnp.cumsum(lying, axis=1)
    flat = [corner, *[jnp.sum(jnp.where((lying & (rank == k))[..., None], edges, 0), axis=1) for k in (1, 2)]]
    flat = jnp.stack(flat, axis=1)
    count = rank[:, -1:]
    mat = jnp.where(two, b.mat, a.mat)
    frame = jnp.sum(mat[:, :, None] * turn[:, None], axis=-1)  # mat @ turn.T
    normal = jnp.where(one, -1.0, 1.0).astype(r.dtype) * frame[:, :, 2]
    drop = jnp.ones_like(size[:, 0])
    edges = count >= np.array([1, 2])
    return Clip(flat, flat, size, drop, edges, drop > 0, frame, jnp.where(one, b.pos, a.pos), normal)


def _edge_clip(a: Geoms, b: Geoms, rot: Array, pos21: Array, edge: Array, normal: Array, back: Array) -> Clip:
    """The face of the first box beside its edge, and the face of the second beside its own, along the edges' normal."""
    q1, q2 = edge // 3, edge % 3
    other = jnp.asarray(OTHER)
    row, column = pick(jnp.abs(rot), q1), pick(jnp.abs(jnp.swapaxes(rot, 1, 2)), q2)
    ax, pax = other[q2], other[q1]
    swap = pick(row, ax[:, 0]) < pick(row, ax[:, 1])
    ax1, ax2 = jnp.where(swap, ax[:, 1], ax[:, 0]), jnp.where(swap, ax[:, 0], ax[:, 1])
    pax2 = jnp.where(pick(column, pax[:, 0]) < pick(column, pax[:, 1]), pax[:, 0], pax[:, 1])

    # on which side of each box the edges stand
    high1 = (pick(normal, pax2) > 0) ^ back
    face = jnp.where(high1, pax2, pax2 + 3)
    signed = pick(rot, q1)

    def sign(k: Array) -> Array:
        high = (pick(signed, 3 - k - q2) > 0) ^ back ^ ((k - q2 + 3) % 3 == 1)
        return jnp.where(high, 1.0, -1.0).astype(rot.dtype)

    turn = jnp.asarray(TO_Z, rot.dtype)[face]
    columns = jnp.swapaxes(matmul_t(jnp.swapaxes(turn, 1, 2), rot), 1, 2) * b.size[..., None]
    size = jnp.abs(matvec(turn, a.size))
    turned = matvec(turn, normal)
    height = turned[:, 2]
    side1, along = pick(columns, ax1) * sign(ax1)[:, None], pick(columns, q2)
    corner = matvec(turn, pos21) - size * np.array([0.0, 0, 1], rot.dtype)
    corner += side1 + pick(columns, ax2) * sign(ax2)[:, None] + along
    true = jnp.stack([corner, -2 * along, -2 * side1], axis=1)
    flat = true - safe.divide(true[:, :, 2], height[:, None])[..., None] * turned[:, None]
    frame = jnp.sum(a.mat[:, :, None] * turn[:, None], axis=-1)
    way = jnp.where(back, -1.0, 1.0).astype(rot.dtype)
    exist = jnp.ones((*edge.shape, 2), bool) & (jnp.abs(height) >= small(rot.dtype))[:, None]
    outward = matvec(frame, turned) * way[:, None]
    return Clip(flat, true, size, safe.divide(way, height), exist, jnp.zeros(edge.shape, bool), frame, a.pos, outward)


def _clip(c: Clip, margin: Array) -> tuple[Array, Array, Array]:
    """Points midway between the surfaces (n, 24, 3) in the frame of the face, distances, and which are real."""
    lines, dist1, valid1 = _crossings(c, margin)
    nline = jnp.sum(valid1, axis=1)
    corners, dist2, valid2 = _rectangle_corners(c, margin, nline)
    own, dist3, valid3 = _own_corners(c, margin, nline, nline + jnp.sum(valid2, axis=1))
    points = jnp.concatenate([lines, corners, own], axis=1) + (c.size * np.array([0.0, 0, 1], lines.dtype))[:, None]
    return points, jnp.concatenate([dist1, dist2, dist3], axis=1), jnp.concatenate([valid1, valid2, valid3], axis=1)


def _crossings(c: Clip, margin: Array) -> tuple[Array, Array, Array]:
    """Where the four sides of the parallelogram cross the four sides of the rectangle: 16 slots."""
    start = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]], float)
    along = np.array([1, 2, 2, 1], np.int32)

    def sides(x: Array) -> tuple[Array, Array]:
        first = jnp.sum(start.astype(x.dtype)[..., None] * x[:, None], axis=2)
        return first, x[:, along]

    p, e = sides(c.flat)  # (n, 4, 3)
    true_p, true_e = sides(c.true)
    size = c.size[:, None, :2]
    swap = slice(1, None, -1)
    p, e, other, e_other = p[..., :2], e[..., :2], p[..., swap], e[..., swap]
    limit = size[..., None] * np.array([-1.0, 1.0], size.dtype)  # (n, 1, q, sign)
    t = safe.divide(limit - p[..., None], e[..., None])  # (n, 4, q, sign)
    across = other[..., None] + e_other[..., None] * t
    valid = (jnp.abs(e)[..., None] > small(e.dtype)) & (t >= 0) & (t <= 1)
    valid &= jnp.abs(across) <= size[..., swap][..., None]
    point = true_p[:, :, None, None] + true_e[:, :, None, None] * t[..., None]
    dist = point[..., 2] * c.drop[:, None, None, None]
    limit = jnp.broadcast_to(limit, across.shape)
    x = jnp.stack([limit[:, :, 0], across[:, :, 1]], axis=2)
    y = jnp.stack([across[:, :, 0], limit[:, :, 1]], axis=2)
    middle = 0.5 * (point + jnp.stack([x, y, jnp.zeros_like(x)], axis=-1))
    exist = jnp.where(c.face[:, None], c.edges[:, np.array([0, 1, 1, 1], np.int32)], c.edges[:, :1])
    valid &= exist[:, :, None, None] & (dist <= margin[:, None, None, None])
    n = t.shape[0]
    return middle.reshape(n, 16, 3), dist.reshape(n, 16), valid.reshape(n, 16)


def _rectangle_corners(c: Clip, margin: Array, nline: Array) -> tuple[Array, Array, Array]:
    """The corners of the rectangle over the parallelogram: 4 slots."""
    p, e1, e2 = c.flat[:, 0], c.flat[:, 1], c.flat[:, 2]
    det = e1[:, 0] * e2[:, 1] - e2[:, 0] * e1[:, 1]
    out = []
    for sx, sy in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        corner = c.size * np.array([sx, sy, 0.0], p.dtype)
        x, y = corner[:, 0] - p[:, 0], corner[:, 1] - p[:, 1]
        u = safe.divide(x * e2[:, 1] - y * e2[:, 0], det)
        v = safe.divide(y * e1[:, 0] - x * e1[:, 1], det)
        bad_u, bad_v = (u < 0) | (u > 1), (v < 0) | (v > 1)
        strict = (u > 0) & (v > 0) & (u < 1) & (v < 1)
        over = jnp.where(c.face, strict, jnp.where(nline == 0, ~(bad_u & bad_v), ~(bad_u | bad_v)))
        u, v = jnp.clip(u, 0, 1)[:, None], jnp.clip(v, 0, 1)[:, None]
        point = c.true[:, 0] + c.true[:, 1] * u + c.true[:, 2] * v
        gap = corner - point
        square = inner(gap, gap)
        dist = jnp.where(c.face, point[:, 2], safe.sqrt(square) * jnp.where(point[:, 2] < 0, -1, 1))
        over &= c.edges[:, 1]
        out.append((0.5 * (corner + point), dist, over & ~((point[:, 2] > 0) & (square > margin * margin))))
        # the reference divides the next corner's coordinates by this square; so do we, to find what it finds
        det = jnp.where(~c.face & over, square, det)
    return tuple(jnp.stack(x, axis=1) for x in zip(*out, strict=True))


def _own_corners(c: Clip, margin: Array, nline: Array, nfound: Array) -> tuple[Array, Array, Array]:
    """The corners of the parallelogram within the rectangle: 4 slots."""
    mix = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]], c.flat.dtype)
    flat = jnp.sum(mix[..., None] * c.flat[:, None], axis=2)[..., :2]
    true = jnp.sum(mix[..., None] * c.true[:, None], axis=2)
    size = c.size[:, None, :2]
    out = jnp.abs(flat) > size
    both, either = jnp.all(out, axis=-1), jnp.any(out, axis=-1)
    within = jnp.where(nline[:, None] == 0, (nfound[:, None] == 0) | ~both, ~either)
    first = np.arange(4) == 0
    within_face = first | jnp.all(jnp.abs(flat) < size, axis=-1)
    exist = jnp.stack([jnp.ones_like(c.face), c.edges[:, 0], c.edges[:, 1], c.edges[:, 1]], axis=1)
    clamped = jnp.clip(flat, -size, size)
    z = true[..., 2]
    square = jnp.sum((flat - clamped) ** 2, axis=-1) + (z * c.drop[:, None]) ** 2
    near = ~((z > 0) & (square > (margin * margin)[:, None]))
    face = c.face[:, None]
    dist = jnp.where(face, z, safe.sqrt(square) * jnp.where(z < 0, -1, 1))
    flatten = jnp.where(face[..., None], flat, clamped)
    middle = 0.5 * (true + jnp.concatenate([flatten, jnp.zeros_like(z)[..., None]], axis=-1))
    valid = jnp.where(face, within_face & exist & (z <= margin[:, None]), within & near & c.edges[:, :1])
    return middle, dist, valid


def _good(a: Geoms, b: Geoms, margin: Array, pos: Array, valid: Array) -> Array:
    """Drop contacts outside one box that are not inside the other, and all but the last of equal ones."""
    side = [_side(g, margin, pos) for g in (a, b)]
    bad = ((side[0] == 1) & (side[1] != -1)) | ((side[1] == 1) & (side[0] != -1))
    valid = valid & ~bad
    scale = jnp.max(a.size, axis=1) + jnp.max(b.size, axis=1)
    same = jnp.abs(pos[:, :, None] - pos[:, None]) <= (16 * jnp.finfo(pos.dtype).eps * scale)[:, None, None, None]
    later = np.triu(np.ones((pos.shape[1], pos.shape[1]), bool), 1)
    return valid & ~jnp.any(jnp.all(same, axis=-1) & later & valid[:, None], axis=2)


def _side(g: Geoms, margin: Array, pos: Array) -> Array:
    """1 outside the box grown by the margin and 1%, -1 inside the one shrunk by 1%, else 0."""
    local = jnp.abs(matvec_t(g.mat[:, None], pos - g.pos[:, None]))
    size = (g.size + margin[:, None])[:, None]
    outside = jnp.any(local > size * REMOVE, axis=-1)
    inside = jnp.all(local < size / REMOVE, axis=-1)
    return jnp.where(outside, 1, jnp.where(inside, -1, 0))
