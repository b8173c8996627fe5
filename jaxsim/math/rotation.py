"""Quaternions (w, x, y, z) and rotation matrices; every function acts on the last axis (or two), for NumPy and JAX."""

import numpy as np

from jaxsim.math import component as c
from jaxsim.math.safe import Array, normalize, short_sum, xp_of


def cross(a: Array, b: Array) -> Array:
    """Compute the cross product along the last axis."""
    return c.join(c.cross(c.split(a), c.split(b)))


def quat_mul(p: Array, q: Array) -> Array:
    """Compute the product of quaternions: the rotation q, then p."""
    return c.join(c.quat_mul(c.split(p), c.split(q)))


def quat_conj(q: Array) -> Array:
    """Return the inverse of a unit quaternion."""
    return q * np.array([1, -1, -1, -1], dtype=q.dtype)


def quat_rotate(q: Array, v: Array) -> Array:
    """Rotate a vector by a unit quaternion."""
    return c.join(c.quat_rotate(c.split(q), c.split(v)))


def quat_to_mat(q: Array) -> Array:
    """Compute the rotation matrix (..., 3, 3) of a unit quaternion."""
    return c.join(c.quat_to_mat(c.split(q))).reshape(*q.shape[:-1], 3, 3)


def quat_normalize(q: Array) -> Array:
    """Normalise a quaternion; the identity where the length is zero."""
    return normalize(q, default=np.array([1.0, 0, 0, 0]))[0]


def axis_angle_to_quat(axis: Array, angle: Array) -> Array:
    """Compute the quaternion of a rotation by `angle` about a unit `axis`."""
    xp = xp_of(axis, angle)
    half = 0.5 * angle
    return xp.concatenate([xp.cos(half)[..., None], xp.sin(half)[..., None] * axis], axis=-1)


def rotvec_to_quat(v: Array) -> Array:
    """Compute the quaternion of a rotation vector (axis times angle); exact in value and derivative at zero."""
    xp = xp_of(v)
    square = short_sum(v * v)
    small = square < 1e-12
    angle = xp.sqrt(xp.where(small, 1, square))
    scale = xp.where(small, 0.5 - square / 48, xp.sin(0.5 * angle) / angle)
    w = xp.where(small, 1 - square / 8, xp.cos(0.5 * angle))
    return xp.concatenate([w[..., None], scale[..., None] * v], axis=-1)


def quat_to_rotvec(q: Array) -> Array:
    """Compute the rotation vector of a unit quaternion, of length at most pi; derivative finite at the identity."""
    xp = xp_of(q)
    q = xp.where(q[..., :1] < 0, -q, q)
    w, u = q[..., 0], q[..., 1:]
    square = short_sum(u * u)
    small = square < 1e-12
    length = xp.sqrt(xp.where(small, 1, square))
    scale = xp.where(small, 2 + square / 3, 2 * xp.arctan2(length, w) / length)
    return scale[..., None] * u
