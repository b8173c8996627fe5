"""What several stages share: flags, forces on bodies, sums over actuators."""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import TrnType
from jaxsim.engine import tables
from jaxsim.math.arrays import add_at, inner, take, take_or_zero
from jaxsim.math.safe import Array, xp_of
from jaxsim.math.spatial import join, shift_force
from jaxsim.math.tree import dof_subtree_sum


def disabled(m: Model, *bits: int) -> bool:
    """Whether all of these flags of `opt.disableflags` are set."""
    return all(m.opt.disableflags & bit for bit in bits)


def enabled(m: Model, bit: int) -> bool:
    """Whether a flag of `opt.enableflags` is set."""
    return bool(m.opt.enableflags & bit)


def assemble(parts: list[tuple[np.ndarray, Array]], n: int, like: Array) -> Array:
    """Rows from parts, each with the static places of its rows among `n`; places that no part names hold zeros."""
    parts = [(np.asarray(index).reshape(-1), rows) for index, rows in parts if np.size(index)]
    xp = xp_of(like)
    if not parts:
        return xp.zeros(n, like.dtype)
    source = np.full(n, -1)
    index = np.concatenate([index for index, _ in parts])
    source[index] = np.arange(len(index))
    rows = [rows.reshape(len(index), *rows.shape[np.ndim(index) :]) for index, rows in parts]
    return take_or_zero(xp.concatenate(rows) if len(rows) > 1 else rows[0], source)


def apply_wrench(m: Model, d: Data, force: Array, torque: Array, point: Array, body: np.ndarray | None = None) -> Array:
    """Joint-space force (nv,) of global forces at points of bodies, all (k, 3); one for each body without `body`."""
    at = np.arange(m.nbody) if body is None else body
    about = shift_force(join(torque, force), point - take(d.subtree_com, m.body_rootid[at]))
    if body is not None:
        about = add_at(body, about, m.nbody)
    return inner(d.cdof, dof_subtree_sum(tables.tree(m), about))


def _actuator_sum(m: Model, actuatorid: np.ndarray, transmission: tuple[TrnType, ...], x: Array) -> Array:
    """Sum rows of `x` (nu, ...), times the gear squared, over the actuators of each joint or tendon that takes them."""
    target = m.actuator_trnid[:, 0]
    driven = np.isin(m.actuator_trntype, transmission)
    takes = np.zeros(m.nu, bool)
    takes[driven] = actuatorid[target[driven]] != -1
    gear2 = (m.actuator_gear[:, 0] ** 2).reshape(-1, *(1,) * (x.ndim - 1))
    return add_at(np.where(takes, target, -1), x * gear2, len(actuatorid))


def joint_actuator_sum(m: Model, x: Array) -> Array | None:
    """What actuators add to joints (armature, damping): `x` (nu, ...) summed by joint; None where none adds any."""
    if not (m.jnt_actuatorid != -1).any():
        return None
    return _actuator_sum(m, m.jnt_actuatorid, (TrnType.JOINT, TrnType.JOINTINPARENT), x)


def tendon_actuator_sum(m: Model, x: Array) -> Array | None:
    """What actuators add to tendons: `x` (nu, ...) summed by tendon; None where none adds any."""
    if not (m.tendon_actuatorid != -1).any():
        return None
    return _actuator_sum(m, m.tendon_actuatorid, (TrnType.TENDON,), x)


def dof_damping(m: Model) -> tuple[Array, Array]:
    """Linear (nv,) and polynomial (nv, 2) damping of dofs, with that of actuators."""
    damping, poly = m.dof_damping, m.dof_dampingpoly
    from_actuators = joint_actuator_sum(m, m.actuator_damping)
    if from_actuators is not None:
        damping = damping + take(from_actuators, m.dof_jntid)
        poly = poly + take(joint_actuator_sum(m, m.actuator_dampingpoly), m.dof_jntid)
    return damping, poly


def tendon_damping(m: Model) -> tuple[Array, Array]:
    """Linear (ntendon,) and polynomial (ntendon, 2) damping of tendons, with that of actuators."""
    damping, poly = m.tendon_damping, m.tendon_dampingpoly
    from_actuators = tendon_actuator_sum(m, m.actuator_damping)
    if from_actuators is not None:
        damping, poly = damping + from_actuators, poly + tendon_actuator_sum(m, m.actuator_dampingpoly)
    return damping, poly


def poly_force(linear: Array, poly: Array, x: Array) -> Array:
    """linear + poly[0] x + poly[1] x^2: what multiplies a displacement or, with abs(x), a velocity."""
    return linear + x * (poly[..., 0] + x * poly[..., 1])


def poly_force_derivative(linear: Array, poly: Array, x: Array) -> Array:
    """The derivative of x * poly_force(linear, poly, abs(x)) by x, given abs(x)."""
    return linear + x * (2 * poly[..., 0] + x * 3 * poly[..., 1])


def is_damped(m: Model, damping: Array, poly: Array) -> Array:
    """Whether Euler's method treats damping (nv,), (nv, 2) implicitly: any dof has some, or actuators add some."""
    return ((damping > 0) | (poly != 0).any(1)).any() | (m.jnt_actuatorid[m.dof_jntid] != -1).any()
