"""Sensors of the velocity stage: each function reads all sensors of its type, given their static ids."""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL, ObjType
from jaxsim.engine.kinematics import objects
from jaxsim.engine.sensor.position import references
from jaxsim.engine.structure import tables
from jaxsim.math.arrays import matvec, matvec_t, take
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, xp_of
from jaxsim.math.spatial import join
from jaxsim.math.tree import subtree_sum


def subtree_vel(m: Model, d: Data) -> Data:
    """Set subtree_linvel and subtree_angmom.

    They are the velocities of subtrees' centres of mass, and the angular momenta about them.
    """
    tree = tables.tree(m)
    body = np.arange(m.nbody)
    v = objects.velocities(m, d, np.full(m.nbody, ObjType.BODY), body)
    mass = m.body_mass[:, None]
    momentum = subtree_sum(tree, mass * v[:, 3:])
    mat = d.ximat.reshape(-1, 3, 3)
    spin = matvec(mat, m.body_inertia * matvec_t(mat, v[:, :3]))
    subtree_mass = xp_of(momentum).maximum(m.body_subtreemass, MINVAL)[:, None]
    linvel = momentum / subtree_mass
    # about the world's origin, then about each centre of mass
    origin = take(d.subtree_com, np.zeros(m.nbody, int))
    about_origin = subtree_sum(tree, spin + cross(d.xipos - origin, mass * v[:, 3:]))
    angmom = about_origin - cross(d.subtree_com - origin, momentum)
    return d.replace(subtree_linvel=linvel, subtree_angmom=angmom)


def _site_velocity(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the angular and linear velocity (k, 6) of sites in their frames."""
    return objects.velocities(m, d, np.full(len(ids), ObjType.SITE), m.sensor_objid[ids], local=True)


def velocimeter(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the linear velocity of a site in its frame."""
    return _site_velocity(m, d, ids)[:, 3:]


def gyro(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the angular velocity of a site in its frame."""
    return _site_velocity(m, d, ids)[:, :3]


def jointvel(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the velocity of a hinge or a slide."""
    return take(d.qvel, m.jnt_dofadr[m.sensor_objid[ids]])


def ballangvel(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the angular velocity of a ball joint."""
    return take(d.qvel, m.jnt_dofadr[m.sensor_objid[ids]][:, None] + np.arange(3))


def _frame_velocity(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the angular and linear velocity (k, 6) of objects.

    It is relative to the reference objects, and in their frames, if there are any.
    """
    objtypes, objs = m.sensor_objtype[ids], m.sensor_objid[ids]
    v = objects.velocities(m, d, objtypes, objs)
    has_ref, reftypes, refs = references(m, ids)
    if not has_ref.any():
        return v
    base = objects.velocities(m, d, reftypes, refs)
    arm = objects.positions(m, d, objtypes, objs) - objects.positions(m, d, reftypes, refs)
    mat = objects.rotations(m, d, reftypes, refs)
    relative = v - base
    angular, linear = relative[:, :3], relative[:, 3:] + cross(arm, base[:, :3])
    return xp_of(v).where(has_ref[:, None], join(matvec_t(mat, angular), matvec_t(mat, linear)), v)


def framelinvel(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the linear velocity of an object, relative to the reference object and in its frame if there is one."""
    return _frame_velocity(m, d, ids)[:, 3:]


def frameangvel(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the angular velocity of an object, relative to the reference object and in its frame if there is one."""
    return _frame_velocity(m, d, ids)[:, :3]
