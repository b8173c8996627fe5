"""Log-Cholesky form of the pseudo-inertia: inertial parameters that are physical for all values.

Rucker and Wensing, "Smooth Parameterization of Rigid-Body Inertia", RA-L 2022. Ten numbers
(alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3) give an upper triangular U with positive diagonal, and U U' is the matrix
of second moments of a mass distribution: the mass is positive and the inertia keeps the triangle inequalities.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.model import Model
from jaxsim.math.rotation import quat_to_mat
from jaxsim.math.safe import Array

MOMENT_SEPARATION = 1e-6  # relative, added between equal principal moments, whose axes have no derivative


def to_moments(theta: Array) -> Array:
    """Map ten numbers to a pseudo-inertia (4, 4), [[sum m r r', sum m r], [sum m r', sum m]] in the body's frame."""
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = theta
    one, zero = jnp.ones_like(alpha), jnp.zeros_like(alpha)
    upper = jnp.array(
        [
            [jnp.exp(d1), s12, s13, t1],
            [zero, jnp.exp(d2), s23, t2],
            [zero, zero, jnp.exp(d3), t3],
            [zero, zero, zero, one],
        ]
    )
    upper = jnp.exp(alpha) * upper
    return upper @ upper.T


def from_moments(moments: np.ndarray) -> np.ndarray:
    """Find the ten numbers of a pseudo-inertia (4, 4); raise LinAlgError when it is not positive definite."""
    flipped = np.asarray(moments, float)[::-1, ::-1]
    upper = np.linalg.cholesky(flipped)[::-1, ::-1]
    alpha = np.log(upper[3, 3])
    u = upper / upper[3, 3]
    d = np.log(np.diag(u)[:3])
    return np.array([alpha, *d, u[0, 1], u[1, 2], u[0, 2], u[0, 3], u[1, 3], u[2, 3]])


def read_moments(m: Model, body: int) -> np.ndarray:
    """Compute the pseudo-inertia (4, 4) of a body of the model, in the body's frame; host-side."""
    mass, com, moments = (np.asarray(x[body], float) for x in (m.body_mass, m.body_ipos, m.body_inertia))
    rotation = np.asarray(quat_to_mat(np.asarray(m.body_iquat[body], float)))
    second = np.diag(0.5 * moments.sum() - moments)  # second moments along the principal axes
    out = np.empty((4, 4))
    out[:3, :3] = rotation @ second @ rotation.T + mass * np.outer(com, com)
    out[:3, 3] = out[3, :3] = mass * com
    out[3, 3] = mass
    return out


def write_moments(m: Model, body: int, moments: Array) -> Model:
    """Return the model with a body's mass, centre of mass and principal inertia from its pseudo-inertia (4, 4)."""
    mass = moments[3, 3]
    com = moments[:3, 3] / mass
    second = moments[:3, :3] - mass * jnp.outer(com, com)
    inertia = jnp.trace(second) * jnp.eye(3, dtype=second.dtype) - second
    separation = MOMENT_SEPARATION * jnp.trace(inertia) * jnp.diag(jnp.asarray([0.0, 1.0, 2.0], second.dtype))
    values, axes = jnp.linalg.eigh(inertia + separation)
    axes = axes.at[:, 2].multiply(jnp.where(jnp.linalg.det(axes) < 0, -1.0, 1.0))
    return m.replace(
        body_mass=m.body_mass.at[body].set(mass),
        body_ipos=m.body_ipos.at[body].set(com),
        body_inertia=m.body_inertia.at[body].set(values),
        body_iquat=m.body_iquat.at[body].set(mat_to_quat(axes)),
    )


def mat_to_quat(r: Array) -> Array:
    """Convert a rotation matrix (3, 3) to a quaternion (4,), the row of 4 q q' of largest diagonal, normalised."""
    (a, b, c), (d, e, f), (g, h, i) = r
    rows = jnp.stack(
        [
            jnp.stack([1 + a + e + i, h - f, c - g, d - b]),
            jnp.stack([h - f, 1 + a - e - i, b + d, c + g]),
            jnp.stack([c - g, b + d, 1 - a + e - i, f + h]),
            jnp.stack([d - b, c + g, f + h, 1 - a - e + i]),
        ]
    )
    row = rows[jnp.argmax(jnp.diagonal(rows))]
    return row / jnp.linalg.norm(row)
