"""Derivatives of poses by positions: bodies move by twists, sums of motion axes over the dofs on their paths.

Tangents of quaternions and of frames in parents are not made. A pose moves with its body's twist, an axis or anchor of
a joint with that of the frame before the joint. Carpentier and Mansard, "Analytical Derivatives of Rigid Body Dynamics
Algorithms", RSS 2018.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import JointType
from jaxsim.engine.kinematics.com import motion_axes
from jaxsim.engine.structure import tables
from jaxsim.math import component as c
from jaxsim.math.arrays import assemble, take
from jaxsim.math.rotation import cross, quat_conj, quat_mul, quat_normalize
from jaxsim.math.safe import Array, divide, norm
from jaxsim.math.tree import dof_path_sum, dof_prior_sum

# numbers of a model on which poses depend, beside positions and poses of mocap bodies
PLACING = "body_pos", "body_quat", "body_ipos", "body_iquat", "jnt_pos", "jnt_axis", "qpos0"
PLACED = "geom_pos", "geom_quat", "site_pos", "site_quat"  # of what is fixed in bodies


def displacement(m: Any, axes: Array, qpos: Array, tangent: Array) -> Array:
    """Return the displacement along motion axes (nv,) of a tangent (nq,) of positions.

    `m` is a model or its structure, `axes` are those of its joints. Bodies turn by angles, whatever the lengths of
    quaternions and of the axes of hinges.
    """
    joints, tangent = tables.joint_coordinates(m), jnp.asarray(tangent)
    dofs, linear = joints.linear_dof, take(tangent, joints.linear_qpos)
    hinge = m.jnt_type[m.dof_jntid[dofs]] == JointType.HINGE
    if hinge.any():
        linear = divide(linear, jnp.where(hinge, norm(take(axes, m.dof_jntid[dofs])), 1))
    parts = [(dofs, linear)]
    if len(joints.turning):
        quat, moved = jax.jvp(quat_normalize, (take(qpos, joints.quat),), (take(tangent, joints.quat),))
        parts.append((joints.omega.reshape(-1), 2 * quat_mul(quat_conj(quat), moved)[:, 1:].reshape(-1)))
    return assemble(parts, m.nv, tangent)


@per_structure
def _dof_of_joint(m) -> np.ndarray:
    """Return for each joint a dof that acts in the frame of its anchor: after the translations of a free joint."""
    return m.jnt_dofadr + np.where(m.jnt_type == JointType.FREE, 3, 0)


def poses_tangent(m: Model, d: Data, tangent: Array) -> dict[str, Array]:
    """Return the tangents of all poses in `d`, which are those of its positions, for a tangent (nq,) of these."""
    tree = tables.tree(m)
    # about the position of the body at the tree's root: accurate in float32
    motion = motion_axes(m, d, d.xpos) * displacement(m, m.jnt_axis, d.qpos, tangent)[:, None]
    of_body, of_axis = dof_path_sum(tree, motion), take(dof_prior_sum(tree, motion), _dof_of_joint(m))
    world = (m.jnt_type == JointType.FREE)[:, None]

    def moved(point: Array, body: np.ndarray, twist: Array) -> Array:
        return twist[:, 3:] + cross(twist[:, :3], point - take(d.xpos, m.body_rootid[body]))

    found = {
        "xquat": c.join(c.quat_mul(_half_turn(of_body), c.split(d.xquat))),
        "xanchor": moved(d.xanchor, m.jnt_bodyid, of_axis),
        "xaxis": jnp.where(world, 0, cross(of_axis[:, :3], d.xaxis)),
    }
    bodies = {"x": np.arange(m.nbody), "xi": np.arange(m.nbody), "geom_x": m.geom_bodyid, "site_x": m.site_bodyid}
    for name, body in bodies.items():
        twist, mat = take(of_body, body), getattr(d, f"{name}mat")
        found[f"{name}pos"] = moved(getattr(d, f"{name}pos"), body, twist)
        found[f"{name}mat"] = _turned(twist, mat)
    return found


def _half_turn(twist: Array) -> tuple[Array, ...]:
    """Return the quaternions of half an angular velocity, without a real part."""
    x, y, z = c.scale(0.5, c.split(twist[:, :3]))
    return jnp.zeros_like(x), x, y, z


def _turned(twist: Array, mat: Array) -> Array:
    """Return the rates of flat rotation matrices (n, 9)."""
    r = c.split(mat)
    columns = [c.cross(c.split(twist[:, :3]), (r[i], r[3 + i], r[6 + i])) for i in range(3)]
    return c.join(tuple(columns[i % 3][i // 3] for i in range(9)))
