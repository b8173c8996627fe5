"""Stage `transmission`: lengths and moments of actuators, one function for each kind of transmission."""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.flags import disabled
from jaxsim.core.model import Model
from jaxsim.core.structure import moving_dofs, per_structure
from jaxsim.core.types import DisableBit, JointType, TrnType
from jaxsim.engine.kinematics.jacobian import jac
from jaxsim.engine.kinematics.sparse_contact import normal_sums
from jaxsim.engine.structure import tables
from jaxsim.engine.tendon.tendon import full_jacobian
from jaxsim.interface.public import public
from jaxsim.math.arrays import add_at, assemble, dot, inner, matvec, matvec_t, take
from jaxsim.math.rotation import cross, quat_conj, quat_mul, quat_normalize, quat_rotate, quat_to_rotvec
from jaxsim.math.safe import Array, divide, sqrt, xp_of

JOINT_KINDS = (TrnType.JOINT, TrnType.JOINTINPARENT)


@per_structure
def scalar_actuators(m) -> np.ndarray:
    """Return the actuators that drive one dof of a hinge or a slide."""
    joint = np.where(np.isin(m.actuator_trntype, JOINT_KINDS), m.actuator_trnid[:, 0], -1)
    return np.flatnonzero((joint >= 0) & np.isin(np.append(m.jnt_type, -1)[joint], (JointType.HINGE, JointType.SLIDE)))


@per_structure
def other_actuators(m) -> np.ndarray:
    """Return the actuators that may drive several dofs."""
    return np.setdiff1d(np.arange(m.nu), scalar_actuators(m))


@per_structure
def scalar_dofs(m) -> np.ndarray:
    """Return the dof of each of the `scalar_actuators`."""
    return m.jnt_dofadr[m.actuator_trnid[scalar_actuators(m), 0]]


@public
def transmission(m: Model, d: Data) -> Data:
    """Compute actuator_length (nu,) and actuator_moment (nu, nv), dense."""
    if not m.nu:
        return d
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
        (np.flatnonzero(m.actuator_trntype == TrnType.TENDON), _tendon),
        (np.flatnonzero(m.actuator_trntype == TrnType.SLIDERCRANK), _slidercrank),
        (np.flatnonzero((m.actuator_trntype == TrnType.SITE) & (m.actuator_trnid[:, 1] < 0)), _site),
        (np.flatnonzero((m.actuator_trntype == TrnType.SITE) & (m.actuator_trnid[:, 1] >= 0)), _site_to_site),
        (np.flatnonzero(m.actuator_trntype == TrnType.BODY), _body),
    ]
    return [(ids, kind) for ids, kind in groups if len(ids)]


def _spread(m: Model, dof: np.ndarray, x: Array) -> Array:
    """Scatter the entries of `x` (k, n) to the dofs (k, n) of rows (k, nv)."""
    k = len(dof)
    flat = add_at((np.arange(k)[:, None] * m.nv + dof).reshape(-1), x.reshape(-1), k * m.nv)
    return flat.reshape(k, m.nv)


def _scalar(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    joint = m.actuator_trnid[ids, 0]
    gear = take(m.actuator_gear[:, 0], ids)
    mask = m.jnt_dofadr[joint][:, None] == np.arange(m.nv)
    return take(d.qpos, m.jnt_qposadr[joint]) * gear, xp_of(gear).where(mask, gear[:, None], 0)


def _local_gear(m: Model, ids: np.ndarray, quat: Array, gear: Array) -> Array:
    """Return the gears (k, 3) of rotations in the joint's frame: gears given in the parent's frame are rotated."""
    in_parent = (m.actuator_trntype[ids] == TrnType.JOINTINPARENT)[:, None]
    if not in_parent.any():
        return gear
    return xp_of(gear).where(in_parent, quat_rotate(quat_conj(quat), gear), gear)


def _ball(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    joint = m.actuator_trnid[ids, 0]
    quat = quat_normalize(take(d.qpos, tables.joint_quat(m)[joint]))
    gear = _local_gear(m, ids, quat, take(m.actuator_gear, ids)[:, :3])
    dofs = m.jnt_dofadr[joint][:, None] + np.arange(3)
    return inner(quat_to_rotvec(quat), gear), _spread(m, dofs, gear)


def _free(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    xp = xp_of(d.qpos, m.actuator_gear)
    joint = m.actuator_trnid[ids, 0]
    quat = quat_normalize(take(d.qpos, tables.joint_quat(m)[joint]))
    gear = take(m.actuator_gear, ids)
    gear = xp.concatenate([gear[:, :3], _local_gear(m, ids, quat, gear[:, 3:])], axis=1)
    dofs = m.jnt_dofadr[joint][:, None] + np.arange(6)
    return xp.zeros(len(ids), d.qpos.dtype), _spread(m, dofs, gear)


def _tendon(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    tendon = m.actuator_trnid[ids, 0]
    gear = take(m.actuator_gear[:, 0], ids)
    return take(d.ten_length, tendon) * gear, take(full_jacobian(m, d), tendon) * gear[:, None]


def _site_jac(m: Model, d: Data, site: np.ndarray) -> tuple[Array, Array]:
    return jac(m, d, take(d.site_xpos, site), m.site_bodyid[site])


def _along(jacobian: Array, direction: Array) -> Array:
    """Project Jacobians (k, 3, nv) on directions (k, 3): rows (k, nv)."""
    return (jacobian * direction[:, :, None]).sum(1)


def _slidercrank(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    xp = xp_of(d.site_xpos, m.actuator_cranklength)
    crank, slider = m.actuator_trnid[ids, 0], m.actuator_trnid[ids, 1]
    gear, rod = take(m.actuator_gear[:, 0], ids), take(m.actuator_cranklength, ids)
    axis = take(d.site_xmat, slider).reshape(-1, 3, 3)[:, :, 2]
    vec = take(d.site_xpos, crank) - take(d.site_xpos, slider)
    along = inner(axis, vec)
    square = along * along + rod * rod - inner(vec, vec)
    reaches = (square > 0)[:, None]
    reach = sqrt(square)
    ratio = (1 - divide(along, reach))[:, None]
    by_vec = xp.where(reaches, axis * ratio + vec * divide(xp.ones_like(reach), reach)[:, None], axis)
    by_axis = xp.where(reaches, vec * ratio, vec)
    jac_slider, turn = _site_jac(m, d, slider)
    jac_vec = _site_jac(m, d, crank)[0] - jac_slider
    # the axis turns with the slider's body: d axis = turn x axis
    moment = _along(jac_vec, by_vec) + _along(turn, cross(axis, by_axis))
    return (along - reach) * gear, moment * gear[:, None]


def _site(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    site = m.actuator_trnid[ids, 0]
    gear, mat = take(m.actuator_gear, ids), take(d.site_xmat, site).reshape(-1, 3, 3)
    shift, turn = _site_jac(m, d, site)
    moment = _along(shift, matvec(mat, gear[:, :3])) + _along(turn, matvec(mat, gear[:, 3:]))
    return xp_of(moment).zeros(len(ids), moment.dtype), moment


def _site_to_site(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    site, ref = m.actuator_trnid[ids, 0], m.actuator_trnid[ids, 1]
    gear, mat = take(m.actuator_gear, ids), take(d.site_xmat, ref).reshape(-1, 3, 3)
    offset = matvec_t(mat, take(d.site_xpos, site) - take(d.site_xpos, ref))
    # the order of this product is MuJoCo's, the same for both sites
    quat, base = (quat_mul(take(m.site_quat, s), take(d.xquat, m.site_bodyid[s])) for s in (site, ref))
    turned = quat_to_rotvec(quat_mul(quat_conj(base), quat))
    length = inner(offset, gear[:, :3]) + inner(turned, gear[:, 3:])
    # dofs that move both sites do not count
    own, other = (moving_dofs(m, m.site_bodyid[s]) for s in (site, ref))
    apart = (own != other)[:, None, :]
    (shift, turn), (shift0, turn0) = _site_jac(m, d, site), _site_jac(m, d, ref)
    apart = apart.astype(shift.dtype)
    moment = _along((shift - shift0) * apart, matvec(mat, gear[:, :3]))
    return length, moment + _along((turn - turn0) * apart, matvec(mat, gear[:, 3:]))


def _body(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    """Compute adhesion: minus the mean of the normal Jacobians of the body's contacts, contacts in the gap included."""
    xp = xp_of(d.qpos, d.efc.J_contact)
    zero = xp.zeros(len(ids), d.qpos.dtype)
    if not d.efc.layout.ncontact:
        return zero, xp.zeros((len(ids), m.nv), d.qpos.dtype)
    geom = d.contact.geom
    body = xp.where(geom >= 0, xp.asarray(m.geom_bodyid)[xp.maximum(geom, 0)], -1)
    real = (d.contact.dim > 0) & (d.contact.exclude <= 1)
    if d.efc.layout.flexes:
        real &= (geom >= 0).all(1)
    touches = ((body[None] == m.actuator_trnid[ids, 0][:, None, None]).any(-1) & real).astype(d.qpos.dtype)
    if d.efc.layout.sparse:
        total = normal_sums(d, touches)
    else:
        total = dot(touches, d.efc.J_contact[:, 0])
    return zero, -total / xp.maximum(touches.sum(1), 1)[:, None]


def actuator_velocities(m: Model, d: Data) -> Array:
    """Compute actuator_velocity (nu,): zero where actuation is disabled."""
    if disabled(m, DisableBit.ACTUATION):
        return xp_of(d.qvel).zeros(m.nu, d.qvel.dtype)
    return mul_moment(m, d, d.qvel)


def mul_moment(m: Model, d: Data, v: Array) -> Array:
    """Compute the product of the moments with a vector (nv,): (nu,)."""
    scalar, other = scalar_actuators(m), other_actuators(m)
    parts = [(scalar, take(m.actuator_gear[:, 0], scalar) * take(v, scalar_dofs(m)))]
    parts.append((other, dot(take(d.actuator_moment, other), v)))
    return assemble(parts, m.nu, v)


def mul_moment_t(m: Model, d: Data, force: Array) -> Array:
    """Compute the product of the transposed moments with forces of actuators (nu,): (nv,)."""
    scalar, other = scalar_actuators(m), other_actuators(m)
    out = add_at(scalar_dofs(m), take(m.actuator_gear[:, 0], scalar) * take(force, scalar), m.nv)
    if len(other):
        out = out + dot(take(force, other), take(d.actuator_moment, other))
    return out
