"""Stages `com_pos` and `com_vel`: inertias, motion axes and velocities in frames at the trees' centres of mass."""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import MINVAL, JointType
from jaxsim.engine.structure import tables
from jaxsim.interface.public import public
from jaxsim.math.arrays import take
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, xp_of
from jaxsim.math.spatial import cross_motion, inertia_about, join
from jaxsim.math.tree import dof_path_sum, dof_prior_sum, subtree_sum


@public
def com_pos(m: Model, d: Data) -> Data:
    """Compute centres of mass of subtrees; `cinert` and `cdof` about the centre of mass of each whole tree."""
    xp = xp_of(m.body_mass, d.xipos)
    moment = subtree_sum(tables.tree(m), m.body_mass[:, None] * d.xipos)
    mass = m.body_subtreemass[:, None]
    heavy = mass >= MINVAL
    com = xp.where(heavy, moment / xp.where(heavy, mass, 1), d.xipos)
    root = take(com, m.body_rootid)
    ximat = d.ximat.reshape(-1, 3, 3)
    inertia = inertia_about(m.body_inertia[1:], ximat[1:], (d.xipos - root)[1:], m.body_mass[1:])
    cinert = xp.concatenate([xp.zeros((1, 10), inertia.dtype), inertia])
    return d.replace(subtree_com=com, cinert=cinert, cdof=motion_axes(m, d, com))


@per_structure
def _axis_sources(m) -> tuple[np.ndarray, np.ndarray]:
    """Return the source of each dof's axis, and whether the dof rotates.

    The source is a row of (joint axes, columns of body frames, global axes).
    """
    kind = m.jnt_type[m.dof_jntid]
    k = np.arange(m.nv) - m.jnt_dofadr[m.dof_jntid]
    shift = tables.in_world(m)
    column = m.njnt + 3 * m.dof_bodyid + k % 3
    source = np.where(np.isin(kind, (JointType.HINGE, JointType.SLIDE)), m.dof_jntid, column)
    return np.where(shift, m.njnt + 3 * m.nbody + k, source), ~shift & (kind != JointType.SLIDE)


def motion_axes(m: Model, d: Data, point: Array) -> Array:
    """Compute the motion axes of dofs (nv, 6) about a point (nbody, 3) of each tree's root body."""
    xp = xp_of(d.xaxis, point)
    source, turns = _axis_sources(m)
    axes = d.xaxis
    if (source >= m.njnt).any():
        columns = xp.swapaxes(d.xmat.reshape(-1, 3, 3), -1, -2).reshape(-1, 3)
        axes = xp.concatenate([axes, columns, np.eye(3, dtype=axes.dtype)])
    axis = take(axes, source)
    offset = take(point, m.body_rootid[m.dof_bodyid]) - take(d.xanchor, m.dof_jntid)
    linear = cross(axis, offset)
    if turns.all():
        return join(axis, linear)
    turns = turns[:, None]
    return join(xp.where(turns, axis, 0), xp.where(turns, linear, axis))


@public
def com_vel(m: Model, d: Data) -> Data:
    """Compute velocities `cvel` of bodies and rates `cdof_dot` of motion axes, about the trees' centres of mass."""
    tree = tables.tree(m)
    motion = d.cdof * d.qvel[:, None]
    return d.replace(
        cvel=dof_path_sum(tree, motion),
        cdof_dot=cross_motion(dof_prior_sum(tree, motion), d.cdof),
    )
