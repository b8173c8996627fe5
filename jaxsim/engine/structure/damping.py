"""Damping of dofs and tendons, linear and polynomial, including the damping of actuators."""

import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.types import TrnType
from jaxsim.math.arrays import add_at, take
from jaxsim.math.safe import Array


def _actuator_sum(m: Model, actuatorid: np.ndarray, transmission: tuple[TrnType, ...], x: Array) -> Array:
    """Sum rows of `x` (nu, ...) times the squared gear over the actuators of each joint or tendon."""
    target = m.actuator_trnid[:, 0]
    driven = np.isin(m.actuator_trntype, transmission)
    takes = np.zeros(m.nu, bool)
    takes[driven] = actuatorid[target[driven]] != -1
    gear2 = (m.actuator_gear[:, 0] ** 2).reshape(-1, *(1,) * (x.ndim - 1))
    return add_at(np.where(takes, target, -1), x * gear2, len(actuatorid))


def joint_actuator_sum(m: Model, x: Array) -> Array | None:
    """Sum the armature or damping that actuators add to joints: `x` (nu, ...) by joint; None if there is none."""
    if not (m.jnt_actuatorid != -1).any():
        return None
    return _actuator_sum(m, m.jnt_actuatorid, (TrnType.JOINT, TrnType.JOINTINPARENT), x)


def tendon_actuator_sum(m: Model, x: Array) -> Array | None:
    """Sum the armature or damping that actuators add to tendons: `x` (nu, ...) by tendon; None if there is none."""
    if not (m.tendon_actuatorid != -1).any():
        return None
    return _actuator_sum(m, m.tendon_actuatorid, (TrnType.TENDON,), x)


def dof_damping(m: Model) -> tuple[Array, Array]:
    """Return the linear (nv,) and polynomial (nv, 2) damping of dofs, including that of actuators."""
    damping, poly = m.dof_damping, m.dof_dampingpoly
    from_actuators = joint_actuator_sum(m, m.actuator_damping)
    if from_actuators is not None:
        damping = damping + take(from_actuators, m.dof_jntid)
        poly = poly + take(joint_actuator_sum(m, m.actuator_dampingpoly), m.dof_jntid)
    return damping, poly


def tendon_damping(m: Model) -> tuple[Array, Array]:
    """Return the linear (ntendon,) and polynomial (ntendon, 2) damping of tendons, including that of actuators."""
    damping, poly = m.tendon_damping, m.tendon_dampingpoly
    from_actuators = tendon_actuator_sum(m, m.actuator_damping)
    poly_from_actuators = tendon_actuator_sum(m, m.actuator_dampingpoly)
    if from_actuators is not None and poly_from_actuators is not None:
        damping, poly = damping + from_actuators, poly + poly_from_actuators
    return damping, poly


def poly_force(linear: Array, poly: Array, x: Array) -> Array:
    """Compute linear + poly[0] x + poly[1] x^2: the factor of a displacement or, with abs(x), of a velocity."""
    return linear + x * (poly[..., 0] + x * poly[..., 1])


def poly_force_derivative(linear: Array, poly: Array, x: Array) -> Array:
    """Compute the derivative of x * poly_force(linear, poly, abs(x)) by x, given abs(x)."""
    return linear + x * (2 * poly[..., 0] + x * 3 * poly[..., 1])


def is_damped(m: Model, damping: Array, poly: Array) -> Array:
    """Return whether Euler's method treats damping (nv,), (nv, 2) implicitly: a dof or an actuator has damping."""
    return ((damping > 0) | (poly != 0).any(1)).any() | (m.jnt_actuatorid[m.dof_jntid] != -1).any()
