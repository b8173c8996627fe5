"""Stage `transmission`: lengths and moments of actuators, one function for each kind of transmission."""

import numpy as np

from jaxsim.data import Data
from jaxsim.engine import tables
from jaxsim.engine.support import assemble
from jaxsim.errors import UnsupportedError
from jaxsim.math.arrays import add_at, dot, inner, take
from jaxsim.math.rotation import quat_conj, quat_normalize, quat_rotate, quat_to_rotvec
from jaxsim.math.safe import Array, xp_of
from jaxsim.model import Model
from jaxsim.types import JointType, TrnType

JOINT_KINDS = (TrnType.JOINT, TrnType.JOINTINPARENT)


@tables.per_structure
def scalar_actuators(m) -> np.ndarray:
    """Actuators that drive one dof of a hinge or a slide."""
    joint = np.where(np.isin(m.actuator_trntype, JOINT_KINDS), m.actuator_trnid[:, 0], -1)
    return np.flatnonzero((joint >= 0) & np.isin(m.jnt_type[joint], (JointType.HINGE, JointType.SLIDE)))


@tables.per_structure
def other_actuators(m) -> np.ndarray:
    """Actuators that may drive several dofs."""
    return np.setdiff1d(np.arange(m.nu), scalar_actuators(m))


@tables.per_structure
def scalar_dofs(m) -> np.ndarray:
    """The dof of each of the `scalar_actuators`."""
    return m.jnt_dofadr[m.actuator_trnid[scalar_actuators(m), 0]]


def transmission(m: Model, d: Data) -> Data:
    """actuator_length (nu,) and actuator_moment (nu, nv), dense."""
    if not m.nu:
        return d
    if other := set(m.actuator_trntype.tolist()) - {int(kind) for kind in JOINT_KINDS}:
        names = ", ".join(TrnType(kind).name.lower() for kind in sorted(other))
        raise UnsupportedError(f"not supported yet: actuators with transmission {names}")
    lengths, moments = [], []
    for ids, kind in _kinds(m):
        length, moment = kind(m, d, ids)
        lengths.append((ids, length))
        moments.append((ids, moment))
    return d.replace(
        actuator_length=assemble(lengths, m.nu, d.qpos), actuator_moment=assemble(moments, m.nu, d.actuator_moment)
    )


def _kinds(m: Model) -> list:
    joint = np.isin(m.actuator_trntype, JOINT_KINDS)
    jnt_type = np.where(joint, m.jnt_type[np.where(joint, m.actuator_trnid[:, 0], 0)] if m.njnt else -1, -1)
    groups = [
        (scalar_actuators(m), _scalar),
        (np.flatnonzero(jnt_type == JointType.BALL), _ball),
        (np.flatnonzero(jnt_type == JointType.FREE), _free),
    ]
    return [(ids, kind) for ids, kind in groups if len(ids)]


def _spread(m: Model, dof: np.ndarray, x: Array) -> Array:
    """Rows (k, nv) with the entries of `x` (k, n) at the dofs (k, n)."""
    k = len(dof)
    flat = add_at((np.arange(k)[:, None] * m.nv + dof).reshape(-1), x.reshape(-1), k * m.nv)
    return flat.reshape(k, m.nv)


def _scalar(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    joint = m.actuator_trnid[ids, 0]
    gear = take(m.actuator_gear[:, 0], ids)
    mask = m.jnt_dofadr[joint][:, None] == np.arange(m.nv)
    return take(d.qpos, m.jnt_qposadr[joint]) * gear, xp_of(gear).where(mask, gear[:, None], 0)


def _local_gear(m: Model, ids: np.ndarray, quat: Array, gear: Array) -> Array:
    """Gears (k, 3) of rotations in the joint's frame: those given in the parent's frame are turned."""
    in_parent = (m.actuator_trntype[ids] == TrnType.JOINTINPARENT)[:, None]
    if not in_parent.any():
        return gear
    return xp_of(gear).where(in_parent, quat_rotate(quat_conj(quat), gear), gear)


def _ball(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    joint = m.actuator_trnid[ids, 0]
    quat = quat_normalize(take(d.qpos, m.jnt_qposadr[joint][:, None] + np.arange(4)))
    gear = _local_gear(m, ids, quat, take(m.actuator_gear, ids)[:, :3])
    dofs = m.jnt_dofadr[joint][:, None] + np.arange(3)
    return inner(quat_to_rotvec(quat), gear), _spread(m, dofs, gear)


def _free(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    xp = xp_of(d.qpos, m.actuator_gear)
    joint = m.actuator_trnid[ids, 0]
    quat = quat_normalize(take(d.qpos, m.jnt_qposadr[joint][:, None] + np.arange(3, 7)))
    gear = take(m.actuator_gear, ids)
    gear = xp.concatenate([gear[:, :3], _local_gear(m, ids, quat, gear[:, 3:])], axis=1)
    dofs = m.jnt_dofadr[joint][:, None] + np.arange(6)
    return xp.zeros(len(ids), d.qpos.dtype), _spread(m, dofs, gear)


def mul_moment(m: Model, d: Data, v: Array) -> Array:
    """Product of the moments with (nv,): (nu,)."""
    scalar, other = scalar_actuators(m), other_actuators(m)
    parts = [(scalar, take(m.actuator_gear[:, 0], scalar) * take(v, scalar_dofs(m)))]
    parts.append((other, dot(take(d.actuator_moment, other), v)))
    return assemble(parts, m.nu, v)


def mul_moment_t(m: Model, d: Data, force: Array) -> Array:
    """Product of the transposed moments with forces of actuators (nu,): (nv,)."""
    scalar, other = scalar_actuators(m), other_actuators(m)
    out = add_at(scalar_dofs(m), take(m.actuator_gear[:, 0], scalar) * take(force, scalar), m.nv)
    if len(other):
        out = out + dot(take(force, other), take(d.actuator_moment, other))
    return out
