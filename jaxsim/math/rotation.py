"""Quaternions (w, x, y, z) and rotation matrices; every function acts on the last axis (or two), for numpy and JAX."""

import numpy as np

from jaxsim.math.safe import Array, normalize, xp_of


def cross(a: Array, b: Array) -> Array:
    """Cross product along the last axis."""
    xp = xp_of(a, b)
    a0, a1, a2 = a[..., 0], a[..., 1], a[..., 2]
    b0, b1, b2 = b[..., 0], b[..., 1], b[..., 2]
    return xp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


def quat_mul(p: Array, q: Array) -> Array:
    """Product of quaternions: the rotation q, then p."""
    xp = xp_of(p, q)
    pw, px, py, pz = p[..., 0], p[..., 1], p[..., 2], p[..., 3]
    qw, qx, qy, qz = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    return xp.stack(
        [
            pw * qw - px * qx - py * qy - pz * qz,
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
        ],
        axis=-1,
    )


def quat_conj(q: Array) -> Array:
    """The inverse of a unit quaternion."""
    return q * np.array([1, -1, -1, -1], dtype=q.dtype)


def quat_rotate(q: Array, v: Array) -> Array:
    """Rotate a vector by a unit quaternion."""
    w, u = q[..., :1], q[..., 1:]
    t = 2 * cross(u, v)
    return v + w * t + cross(u, t)


def quat_to_mat(q: Array) -> Array:
    """Rotation matrix (..., 3, 3) of a unit quaternion."""
    xp = xp_of(q)
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    entries = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return xp.stack([xp.stack(row, axis=-1) for row in entries], axis=-2)


def quat_normalize(q: Array) -> Array:
    """Unit quaternion; the identity where the length is zero."""
    return normalize(q, default=np.array([1.0, 0, 0, 0]))[0]


def axis_angle_to_quat(axis: Array, angle: Array) -> Array:
    """Quaternion of a rotation by `angle` about a unit `axis`."""
    xp = xp_of(axis, angle)
    half = 0.5 * angle
    return xp.concatenate([xp.cos(half)[..., None], xp.sin(half)[..., None] * axis], axis=-1)


def rotvec_to_quat(v: Array) -> Array:
    """Quaternion of a rotation vector (axis times angle); exact identity, with exact derivative, at zero."""
    xp = xp_of(v)
    square = xp.sum(v * v, axis=-1)
    small = square < 1e-12
    angle = xp.sqrt(xp.where(small, 1, square))
    scale = xp.where(small, 0.5 - square / 48, xp.sin(0.5 * angle) / angle)
    w = xp.where(small, 1 - square / 8, xp.cos(0.5 * angle))
    return xp.concatenate([w[..., None], scale[..., None] * v], axis=-1)


def quat_to_rotvec(q: Array) -> Array:
    """Rotation vector of a unit quaternion, of length at most pi; derivative finite at the identity."""
    xp = xp_of(q)
    q = xp.where(q[..., :1] < 0, -q, q)
    w, u = q[..., 0], q[..., 1:]
    square = xp.sum(u * u, axis=-1)
    small = square < 1e-12
    length = xp.sqrt(xp.where(small, 1, square))
    scale = xp.where(small, 2 + square / 3, 2 * xp.arctan2(length, w) / length)
    return scale[..., None] * u


def mat_to_quat(r: Array) -> Array:
    """Unit quaternion of rotation matrices (..., 3, 3), by the largest of its four components."""
    xp = xp_of(r)
    d = [r[..., i, i] for i in range(3)]
    squares = xp.stack(
        [1 + d[0] + d[1] + d[2], 1 + d[0] - d[1] - d[2], 1 - d[0] + d[1] - d[2], 1 - d[0] - d[1] + d[2]], axis=-1
    )
    a, b, c = r[..., 2, 1] - r[..., 1, 2], r[..., 0, 2] - r[..., 2, 0], r[..., 1, 0] - r[..., 0, 1]
    e, f, g = r[..., 0, 1] + r[..., 1, 0], r[..., 0, 2] + r[..., 2, 0], r[..., 1, 2] + r[..., 2, 1]
    s = squares
    rows = xp.stack(
        [
            xp.stack([s[..., 0], a, b, c], axis=-1),
            xp.stack([a, s[..., 1], e, f], axis=-1),
            xp.stack([b, e, s[..., 2], g], axis=-1),
            xp.stack([c, f, g, s[..., 3]], axis=-1),
        ],
        axis=-2,
    )
    best = xp.argmax(s, axis=-1)
    q = xp.take_along_axis(rows, best[..., None, None], axis=-2)[..., 0, :]
    return quat_normalize(q)
