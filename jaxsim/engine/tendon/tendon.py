"""Stage `tendon`: lengths and Jacobians of tendons."""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import WrapType
from jaxsim.engine.structure.damping import tendon_actuator_sum
from jaxsim.engine.tendon import path as tendon_path
from jaxsim.interface.public import public
from jaxsim.math.arrays import add_at, take, take_or_zero
from jaxsim.math.safe import Array, xp_of


@per_structure
def jacobian_pattern(m) -> tuple[np.ndarray, np.ndarray]:
    """Return the tendon and dof of each entry of the sparse `ten_J`."""
    return np.repeat(np.arange(m.ntendon), m.ten_J_rownnz), np.asarray(m.ten_J_colind)


@per_structure
def jacobian_entries(m) -> np.ndarray:
    """Return the entry of `ten_J` for each tendon and dof (ntendon, nv), -1 for none.

    A fixed tendon that names a joint twice has two entries for it: the first holds the sum, the second zero.
    """
    tendon, dof = jacobian_pattern(m)
    place, first = np.unique(tendon * m.nv + dof, return_index=True)
    address = np.full(m.ntendon * m.nv, -1)
    address[place] = first
    return address.reshape(m.ntendon, m.nv)


def full_jacobian(m: Model, d: Data) -> Array:
    """Return the tendons' Jacobian, dense (ntendon, nv)."""
    return take_or_zero(d.ten_J, jacobian_entries(m))


def mul_jac(m: Model, d: Data, v: Array) -> Array:
    """Compute the product of the tendons' Jacobian with a vector (nv,): (ntendon,)."""
    tendon, dof = jacobian_pattern(m)
    return add_at(tendon, d.ten_J * take(v, dof), m.ntendon)


def mul_jac_t(m: Model, d: Data, force: Array) -> Array:
    """Compute the product of the transposed Jacobian with forces of tendons (ntendon,): (nv,)."""
    tendon, dof = jacobian_pattern(m)
    return add_at(dof, d.ten_J * take(force, tendon), m.nv)


@per_structure
def _fixed(m) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the terms of fixed tendons: entry of `wrap_*`, tendon, joint, entry of ten_J."""
    tendon = np.repeat(np.arange(m.ntendon), m.tendon_num)
    wrap = np.concatenate([np.arange(a, a + n) for a, n in zip(m.tendon_adr, m.tendon_num, strict=True)] or [[]])
    wrap = wrap.astype(int)
    keep = m.wrap_type[wrap] == WrapType.JOINT
    wrap, tendon = wrap[keep], tendon[keep]
    joint = m.wrap_objid[wrap]
    return wrap, tendon, joint, jacobian_entries(m)[tendon, m.jnt_dofadr[joint]]


@public
def tendon(m: Model, d: Data) -> Data:
    """Compute ten_length, ten_J and, for spatial tendons, the points of their paths."""
    if not m.ntendon:
        return d
    wrap, ids, joint, entry = _fixed(m)
    coefficient = take(m.wrap_prm, wrap)
    length = add_at(ids, coefficient * take(d.qpos, m.jnt_qposadr[joint]), m.ntendon)
    jacobian = add_at(entry, coefficient, m.nJten)
    if len(tendon_path.pieces(m).tendon) == 0:
        return d.replace(ten_length=length, ten_J=jacobian)
    way = tendon_path.path(m, d)
    return d.replace(
        ten_length=length + tendon_path.lengths(m, way),
        ten_J=jacobian + tendon_path.jacobian(m, d, way, jacobian_entries(m)),
        **tendon_path.wrap_points(m, way),
    )


def spring_displacement(m: Model, d: Data) -> Array:
    """Compute the stretch of each tendon's spring beyond its dead band, negative below it: (ntendon,)."""
    xp = xp_of(d.ten_length)
    lower, upper = m.tendon_lengthspring[:, 0], m.tendon_lengthspring[:, 1]
    return xp.maximum(d.ten_length - upper, 0) + xp.minimum(d.ten_length - lower, 0)


def tendon_armature(m: Model) -> Array:
    """Return the armature of tendons, with that of actuators: (ntendon,)."""
    from_actuators = tendon_actuator_sum(m, m.actuator_armature)
    return m.tendon_armature if from_actuators is None else m.tendon_armature + from_actuators
