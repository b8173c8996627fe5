"""Positions along velocities: integration, differentiation and normalisation, quaternions included."""

import jax.numpy as jnp

from jaxsim.core.model import Model
from jaxsim.engine.structure import tables
from jaxsim.interface.public import public
from jaxsim.math.arrays import assemble, merge, take
from jaxsim.math.rotation import quat_conj, quat_mul, quat_normalize, quat_to_rotvec, rotvec_to_quat
from jaxsim.math.safe import Array


@public
def integrate_pos(m: Model, qpos: Array, qvel: Array, dt: Array | float) -> Array:
    """Move positions (nq,) along velocities (nv,) for the time dt: mj_integratePos.

    Quaternions are rotated.
    """
    c = tables.joint_coordinates(m)
    if len(c.turning) == 0:
        return qpos + dt * take(qvel, c.linear_dof[c.linear_qpos.argsort()])
    quat = quat_mul(quat_normalize(take(qpos, c.quat)), rotvec_to_quat(take(qvel, c.omega) * dt))
    linear = take(qpos, c.linear_qpos) + dt * take(qvel, c.linear_dof)
    return assemble([(c.linear_qpos, linear), (c.quat.reshape(-1), quat.reshape(-1))], m.nq, qpos)


@public
def differentiate_pos(m: Model, qpos1: Array, qpos2: Array, dt: Array | float = 1.0) -> Array:
    """Compute the velocity (nv,) that moves qpos1 to qpos2 in the time dt: mj_differentiatePos.

    It is the inverse of `integrate_pos`. MuJoCo takes dt before the positions.
    """
    c = tables.joint_coordinates(m)
    parts = [(c.linear_dof, take(qpos2, c.linear_qpos) - take(qpos1, c.linear_qpos))]
    if len(c.turning):
        q1, q2 = (quat_normalize(take(q, c.quat)) for q in (qpos1, qpos2))
        parts.append((c.omega.reshape(-1), quat_to_rotvec(quat_mul(quat_conj(q1), q2)).reshape(-1)))
    return assemble(parts, m.nv, qpos1) / dt


@public
def normalize_quat(m: Model, qpos: Array) -> Array:
    """Normalise all quaternions of positions (nq,): mj_normalizeQuat."""
    quat = tables.joint_coordinates(m).quat
    if not len(quat):
        return qpos
    return merge(jnp.asarray(qpos), quat.reshape(-1), quat_normalize(take(qpos, quat)).reshape(-1))
