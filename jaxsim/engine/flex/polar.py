"""Rotation of a deformation gradient, with the derivative of the polar decomposition."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import MINVAL
from jaxsim.math import component as c
from jaxsim.math.arrays import is_numpy
from jaxsim.math.rotation import quat_to_mat
from jaxsim.math.safe import Array, divide, norm, xp_of

ROUNDS = 500
CLOSE = 1e-9  # largest angle of the last correction; CLOSE_SINGLE in float32
CLOSE_SINGLE = 2e-6


def rotation(gradient: Array) -> Array:
    """Compute the unit quaternions (n, 4) of the rotations nearest to matrices (n, 3, 3), starting at the identity.

    Uses the iteration of Mueller et al., "A robust method to extract the rotational part of deformations" (2016), which
    gives a rotation for inverted matrices too. Derivatives are those of the polar decomposition.
    """
    return _iterate(gradient) if is_numpy(gradient) else _rotation(gradient)


@jax.custom_jvp
def _rotation(gradient: Array) -> Array:
    return _iterate(gradient)


def _correct(gradient: Array, quat: Array) -> tuple[Array, Array]:
    """Correct quaternions once; return the new ones, and the angles of the correction."""
    xp = xp_of(gradient)
    columns = [c.split(gradient[..., k]) for k in range(3)]
    turned = quat_to_mat(quat)
    axes = [c.split(turned[..., k]) for k in range(3)]
    torque = c.add(c.add(c.cross(axes[0], columns[0]), c.cross(axes[1], columns[1])), c.cross(axes[2], columns[2]))
    overlap = c.dot(axes[0], columns[0]) + c.dot(axes[1], columns[1]) + c.dot(axes[2], columns[2])
    omega = c.join(c.scale(1 / (abs(overlap) + MINVAL), torque))
    angle = norm(omega)
    close = CLOSE if gradient.dtype == np.float64 else CLOSE_SINGLE
    done = angle < close
    half = 0.5 * angle
    axis = c.split(omega / xp.where(done, 1, angle)[..., None])
    step = (xp.cos(half), *c.scale(xp.sin(half), axis))
    new = c.join(c.quat_mul(step, c.split(quat)))
    new = new / norm(new, keepdims=True)
    return xp.where(done[..., None], quat, new), xp.where(done, 0, angle)


def _iterate(gradient: Array) -> Array:
    xp = xp_of(gradient)
    start = xp.concatenate([gradient[..., 0, :1] * 0 + 1, gradient[..., 0] * 0], axis=-1)
    if is_numpy(gradient):
        quat, k, moved = start, 0, True
        while moved and k < ROUNDS:
            quat, angle = _correct(gradient, quat)
            moved, k = bool((angle > 0).any()), k + 1
        return quat

    def go(state: tuple[Array, Array, Array]) -> Array:
        return (state[1] < ROUNDS) & (state[2] > 0)

    def body(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        quat, angle = _correct(gradient, state[0])
        return quat, state[1] + 1, angle.max(initial=0)

    first = (start, jnp.zeros((), jnp.int32), jnp.ones((), gradient.dtype))
    return lax.while_loop(go, body, first)[0]


@_rotation.defjvp
def _rotation_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Compute the JVP of the polar decomposition.

    R' S + R S' = F' with S symmetric: the rate of rotation solves (tr(S) 1 - S) w = axis of R' F' - F'' R.
    """
    (gradient,), (rate,) = primals, tangents
    quat = _rotation(gradient)
    turned = jnp.swapaxes(quat_to_mat(quat), -1, -2)
    stretch, change = _times(turned, gradient), _times(turned, rate)
    stretch = 0.5 * (stretch + jnp.swapaxes(stretch, -1, -2))
    skew = change - jnp.swapaxes(change, -1, -2)
    axis = jnp.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], axis=-1)
    trace = stretch[..., 0, 0] + stretch[..., 1, 1] + stretch[..., 2, 2]
    matrix = trace[..., None, None] * np.eye(3, dtype=gradient.dtype) - stretch
    local = c.split(_solve(matrix, axis))
    return quat, c.join(c.quat_mul(c.split(quat), (jnp.zeros_like(local[0]), *c.scale(0.5, local))))


def _times(a: Array, b: Array) -> Array:
    return (a[..., :, :, None] * b[..., None, :, :]).sum(-2)


def _solve(matrix: Array, x: Array) -> Array:
    """Solve symmetric 3 x 3 systems by cofactors; zero where the matrix is singular."""
    rows = [c.split(matrix[..., k, :]) for k in range(3)]
    cofactors = [c.cross(rows[1], rows[2]), c.cross(rows[2], rows[0]), c.cross(rows[0], rows[1])]
    det = c.dot(rows[0], cofactors[0])
    parts = c.split(x)
    total = c.add(
        c.add(c.scale(parts[0], cofactors[0]), c.scale(parts[1], cofactors[1])), c.scale(parts[2], cofactors[2])
    )
    return divide(c.join(total), det[..., None])
