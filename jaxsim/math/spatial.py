"""Spatial algebra: motions (angular, linear) and forces (torque, force) as 6-vectors, inertias as MuJoCo's 10 numbers.

An inertia about a point is (Ixx, Iyy, Izz, Ixy, Ixz, Iyz, mass * offset (3), mass), with global axes. All functions act
on the last axis, for NumPy and JAX.
"""

import numpy as np

from jaxsim.math.arrays import matvec
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, short_sum, xp_of

SYMMETRIC = np.array([0, 3, 4, 3, 1, 5, 4, 5, 2], np.int32)


def _halves(x: Array) -> tuple[Array, Array]:
    return x[..., :3], x[..., 3:6]


def join(a: Array, b: Array) -> Array:
    """Return the 6-vector of an angular and a linear part."""
    return xp_of(a, b).concatenate([a, b], axis=-1)


def cross_motion(v: Array, s: Array) -> Array:
    """Compute the rate of the motion `s` moving with the velocity `v`."""
    (w, u), (a, b) = _halves(v), _halves(s)
    return join(cross(w, a), cross(w, b) + cross(u, a))


def cross_force(v: Array, f: Array) -> Array:
    """Compute the rate of the force `f` moving with the velocity `v`."""
    (w, u), (t, g) = _halves(v), _halves(f)
    return join(cross(w, t) + cross(u, g), cross(w, g))


def inertia_mul(inertia: Array, v: Array) -> Array:
    """Compute the momentum of the velocity `v` (or force of an acceleration) for an inertia of 10 numbers."""
    w, u = _halves(v)
    rotational = inertia[..., SYMMETRIC].reshape(*inertia.shape[:-1], 3, 3)
    moment, mass = inertia[..., 6:9], inertia[..., 9:]
    return join(matvec(rotational, w) + cross(moment, u), mass * u - cross(moment, w))


def inertia_about(diagonal: Array, r: Array, offset: Array, mass: Array) -> Array:
    """Compute the inertia, 10 numbers, about a point, with the centre of mass at `offset` from it.

    Args:
        diagonal: principal moments (..., 3) in the frame `r`.
        r: rotation (..., 3, 3) from the principal frame to the global one.
        offset: (..., 3), global.
        mass: (...).
    """
    xp = xp_of(diagonal, r, offset, mass)
    i, j = np.array([0, 1, 2, 0, 0, 1]), np.array([0, 1, 2, 1, 2, 2])
    mass = mass[..., None]
    central = short_sum(r[..., i, :] * r[..., j, :] * diagonal[..., None, :])
    square = short_sum(offset * offset, keepdims=True) * (i == j).astype(offset.dtype)
    parallel = mass * (square - offset[..., i] * offset[..., j])
    return xp.concatenate([central + parallel, mass * offset, mass], axis=-1)


def shift_force(f: Array, offset: Array) -> Array:
    """Move a (torque, force) to another point; the old one is at `offset` from it."""
    torque, force = _halves(f)
    return join(torque + cross(offset, force), force)


def shift_motion(v: Array, offset: Array) -> Array:
    """Move an (angular, linear) velocity to a point at `offset` from the old one."""
    w, u = _halves(v)
    return join(w, u + cross(w, offset))
