"""Functions that programs import from MJX's `_src.math`, by its names: one vector (3,) or quaternion (w, x, y, z) each.

Write `from jaxsim.mjx import math` instead of `from mujoco.mjx._src import math` if MJX is not installed.
"""

import jax.numpy as jnp

from jaxsim.math import safe
from jaxsim.math.rotation import axis_angle_to_quat as axis_angle_to_quat
from jaxsim.math.rotation import quat_conj as quat_inv
from jaxsim.math.rotation import quat_mul as quat_mul
from jaxsim.math.rotation import quat_normalize, quat_rotate, quat_to_rotvec, rotvec_to_quat
from jaxsim.math.rotation import quat_to_mat as quat_to_mat
from jaxsim.math.safe import Array


def norm(x: Array, axis: int | None = None) -> Array:
    """Compute the length, of all entries without an axis; its derivative at zero is zero."""
    return safe.norm(jnp.ravel(x)) if axis is None else safe.norm(x, axis)


def normalize_with_norm(x: Array) -> tuple[Array, Array]:
    """Return a unit vector, and its original length; zero stays zero."""
    return safe.normalize(x)


def normalize(x: Array) -> Array:
    """Return a unit vector; zero stays zero."""
    return safe.normalize(x)[0]


def rotate(vec: Array, quat: Array) -> Array:
    """Rotate the vector by a unit quaternion."""
    return quat_rotate(quat, vec)


def quat_to_axis_angle(q: Array) -> tuple[Array, Array]:
    """Compute the axis, zero for no rotation, and angle between -pi and pi."""
    axis, sine = normalize_with_norm(q[1:])
    angle = 2 * safe.arctan2(sine, q[0])
    return axis, jnp.where(angle > jnp.pi, angle - 2 * jnp.pi, angle)


def quat_sub(u: Array, v: Array) -> Array:
    """Compute the rotation vector from v to u."""
    return quat_to_rotvec(quat_mul(quat_inv(v), u))


def quat_integrate(q: Array, v: Array, dt: Array | float) -> Array:
    """Compute the orientation after the time `dt` at an angular velocity in the body's frame."""
    return quat_normalize(quat_mul(q, rotvec_to_quat(dt * v)))
