"""`set_const`: the constants of a model that follow from its numbers at qpos0, recomputed by the engine's own stages.

Works on a host model (NumPy) when a model is compiled, and under jit, vmap and grad after masses or lengths changed.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.allocate import allocate
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import path, per_structure
from jaxsim.core.types import MINVAL, EqType, GeomType, JointType, ObjType, SameFrame, TrnType
from jaxsim.engine.actuation.transmission import transmission
from jaxsim.engine.constants.flex import body_reach, flex_constants
from jaxsim.engine.constants.invweight import inverse_blocks, quadratic_forms, substituted
from jaxsim.engine.dynamics.inertia import crb
from jaxsim.engine.kinematics.com import com_pos
from jaxsim.engine.kinematics.kinematics import kinematics
from jaxsim.engine.structure import tables
from jaxsim.engine.structure.damping import joint_actuator_sum
from jaxsim.engine.tendon.tendon import full_jacobian, jacobian_pattern, tendon
from jaxsim.interface.public import public
from jaxsim.math.arrays import einsum, inner, is_numpy, matvec, matvec_t, take, take_or_zero
from jaxsim.math.rotation import cross, quat_conj, quat_mul, quat_normalize, quat_rotate, quat_to_mat
from jaxsim.math.safe import Array, greatest, norm, normalize, sqrt, xp_of
from jaxsim.math.spatial import inertia_mul
from jaxsim.math.tree import subtree_sum

_TINY_SIZE = 1e-5  # bodies and models are at least this large
_LEVEL = 64  # ends of geoms are equal within this many units in the last place


@public
def set_const(m: Model) -> Model:
    """Recompute every derived constant: masses of subtrees, inverse weights, M0, rest lengths, statistics.

    Pure and differentiable. As in MuJoCo's `mj_setConst`, statistics are computed even where the file gave them, and
    marks of missing numbers (spring lengths of -1, a zero quaternion in a weld, a positive damping ratio) are replaced
    by the computed numbers.
    """
    tree = tables.tree(m)
    m = m.replace(body_subtreemass=subtree_sum(tree, m.body_mass[:, None])[:, 0])
    d = com_pos(m, kinematics(m, allocate(m)))
    d = transmission(m, crb(m, tendon(m, d)))
    inverses = [inverse_blocks(take_or_zero(d.M, block.full)) for block in tables.inertia_blocks(m)]
    m = m.replace(
        dof_M0=_mass_diagonal(m, d),
        tendon_length0=d.ten_length,
        actuator_length0=d.actuator_length,
        body_invweight0=_body_weights(m, d, inverses),
        dof_invweight0=_dof_weights(m, d, inverses),
    )
    m = m.replace(**_driven(m, d, inverses), eq_data=_equalities(m, d), **_cameras(m, d), **_lights(m, d))
    m = m.replace(actuator_biasprm=_damping_ratio(m, d), **flex_constants(m, d, inverses))
    return _springs(_statistics(m, d), d)


def _mass_diagonal(m: Model, d: Data) -> Array:
    """Compute dof_M0: the diagonal of M without the armature of tendons."""
    composite = subtree_sum(tables.tree(m), d.cinert)
    diagonal = inner(inertia_mul(take(composite, m.dof_bodyid), d.cdof), d.cdof) + m.dof_armature
    from_actuators = joint_actuator_sum(m, m.actuator_armature)
    return diagonal if from_actuators is None else diagonal + take(from_actuators, m.dof_jntid)


@per_structure
def _body_entries(m) -> tuple[np.ndarray, np.ndarray]:
    """Return the bodies whose weight needs the inertia matrix, repeated for each dof that moves them, and the dofs."""
    paths = [np.zeros(0, int) if m.body_simple[b] == 2 else np.sort(path(m, b)) for b in range(m.nbody)]
    return np.repeat(np.arange(m.nbody), [len(p) for p in paths]), np.concatenate(paths).astype(int)


def _solve(m: Model, inverses: list[Array], x: Array) -> Array:
    """Compute the product of the inverse of M with x (nv, k)."""
    xp = xp_of(x, *inverses)
    parts = [
        einsum("tij,tjk->tik", inverse, take(x, block.dofs)).reshape(-1, x.shape[-1])
        for block, inverse in zip(tables.inertia_blocks(m), inverses, strict=True)
    ]
    return take(xp.concatenate(parts), tables.dof_order(m))


def _inverse_mass(m: Model, body: np.ndarray) -> Array:
    xp = xp_of(m.body_mass)
    return 1 / xp.maximum(take(m.body_mass, body), MINVAL)


def _body_weights(m: Model, d: Data, inverses: list[Array]) -> Array:
    """Compute the mean inverse inertia of each body at its centre of mass: to a force, to a torque (nbody, 2)."""
    if not m.nv:
        return m.body_invweight0
    xp = xp_of(d.cdof)
    body, dof = _body_entries(m)
    cdof = take(d.cdof, dof)
    arm = take(d.xipos, body) - take(d.subtree_com, m.body_rootid[body])
    jac = xp.concatenate([cdof[:, 3:] + cross(cdof[:, :3], arm), cdof[:, :3]], axis=-1)
    weight = quadratic_forms(m, inverses, body, dof, jac, m.nbody).reshape(m.nbody, 2, 3).sum(-1) / 3
    slides = m.body_simple == 2
    if not slides.any():
        return weight
    plain = _inverse_mass(m, np.arange(m.nbody))
    return xp.where(slides[:, None], xp.stack([plain, plain * 0], axis=-1), weight)


def _dof_weights(m: Model, d: Data, inverses: list[Array]) -> Array:
    """Compute the mean diagonal of the inverse of M over the dofs of a joint, translations and rotations separately."""
    if not m.nv:
        return m.dof_invweight0
    xp = xp_of(d.cdof)
    diagonal = [xp.diagonal(inverse, axis1=-2, axis2=-1).reshape(-1) for inverse in inverses]
    diagonal = take(xp.concatenate(diagonal), tables.dof_order(m))
    first = np.arange(m.nv) - m.jnt_dofadr[m.dof_jntid]
    kind = m.jnt_type[m.dof_jntid]
    many = np.isin(kind, (JointType.FREE, JointType.BALL))
    start = np.arange(m.nv) - np.where(many, first % 3, 0)
    steps = np.where(many[:, None], [[0, 1, 2]], 0)
    mean = take(diagonal, start[:, None] + steps).sum(-1) / 3
    slides = m.body_simple[m.dof_bodyid] == 2
    return xp.where(slides, _inverse_mass(m, m.dof_bodyid), xp.where(many, mean, diagonal))


@per_structure
def _repeated(m) -> np.ndarray:
    """Return the mask of dofs (ntendon, nv) that a fixed tendon names twice.

    MuJoCo loses them in its dense Jacobian.
    """
    count = np.zeros((m.ntendon, m.nv), int)
    np.add.at(count, jacobian_pattern(m), 1)
    return count > 1


def _driven(m: Model, d: Data, inverses: list[Array]) -> dict[str, Array]:
    """Compute tendon_invweight0 and actuator_acc0: accelerations due to a unit force of a tendon or actuator."""
    if not m.nv:
        return {}
    out = {}
    moment = d.actuator_moment
    if m.ntendon:
        jac, twice = full_jacobian(m, d), _repeated(m)
        if twice.any():
            jac = jac * ~twice
            driven = m.actuator_trntype == TrnType.TENDON
            moment = moment * ~(twice[np.where(driven, m.actuator_trnid[:, 0], 0)] & driven[:, None])
        out["tendon_invweight0"] = inner(jac, _solve(m, inverses, jac.T).T)
    if m.nu:
        host = is_numpy(d.M) and is_numpy(moment)
        change = substituted(m, np.asarray(d.M), np.asarray(moment.T)) if host else _solve(m, inverses, moment.T)
        with np.errstate(all="ignore"):
            square = (change**2).sum(0)
        out["actuator_acc0"] = xp_of(moment).where(xp_of(moment).isnan(square), square, sqrt(square))
    return out


def _equalities(m: Model, d: Data) -> Array:
    """Compute the anchors in the second body and relative poses that connects and welds of bodies leave open."""
    ids = np.flatnonzero(np.isin(m.eq_type, (EqType.CONNECT, EqType.WELD)))
    if not len(ids):
        return m.eq_data
    xp = xp_of(m.eq_data, d.xpos)
    connect = (m.eq_type == EqType.CONNECT)[:, None]
    bodies = ((m.eq_objtype == ObjType.BODY) & np.isin(np.arange(m.neq), ids))[:, None]
    one = np.where(bodies[:, 0], m.eq_obj1id, 0)
    two = np.where(bodies[:, 0], m.eq_obj2id, 0)
    data, mat = m.eq_data, d.xmat.reshape(-1, 3, 3)
    # the anchor is given in the first body of a connect and in the second of a weld
    source, other = (np.where(connect[:, 0], a, b) for a, b in ((one, two), (two, one)))
    point = take(d.xpos, source) + matvec(take(mat, source), data[:, :3])
    anchor = matvec_t(take(mat, other), point - take(d.xpos, other))
    quat = data[:, 6:10]
    given = xp.any(quat != 0, axis=-1, keepdims=True)
    relative = quat_mul(quat_conj(take(d.xquat, one)), take(d.xquat, two))
    kept = xp.where(given, quat_normalize(xp.where(given, quat, relative)), relative)
    weld = xp.concatenate([data[:, :3], xp.where(given, data[:, 3:6], anchor), kept, data[:, 10:]], axis=-1)
    joined = xp.concatenate([data[:, :3], anchor, data[:, 6:]], axis=-1)
    sites = connect & (m.eq_objtype == ObjType.SITE)[:, None]
    return xp.where(bodies, xp.where(connect, joined, weld), xp.where(sites, 0, data))


def _cameras(m: Model, d: Data) -> dict[str, Array]:
    """Compute the poses of cameras at qpos0, relative to their bodies and to their targets.

    They count as fixed in their bodies.
    """
    if not m.ncam:
        return {}
    quat = take(d.xquat, m.cam_bodyid)
    pos = take(d.xpos, m.cam_bodyid) + quat_rotate(quat, m.cam_pos)
    mat = quat_to_mat(quat_mul(quat, m.cam_quat)).reshape(-1, 9)
    com = np.where(m.cam_targetbodyid >= 0, m.cam_targetbodyid, m.cam_bodyid)
    offsets = pos - take(d.xpos, m.cam_bodyid), pos - take(d.subtree_com, com)
    return {"cam_pos0": offsets[0], "cam_poscom0": offsets[1], "cam_mat0": mat}


def _lights(m: Model, d: Data) -> dict[str, Array]:
    """Compute the poses of lights at qpos0, like `_cameras`."""
    if not m.nlight:
        return {}
    mat = take(d.xmat.reshape(-1, 3, 3), m.light_bodyid)
    pos = take(d.xpos, m.light_bodyid) + matvec(mat, m.light_pos)
    com = np.where(m.light_targetbodyid >= 0, m.light_targetbodyid, m.light_bodyid)
    return {
        "light_pos0": pos - take(d.xpos, m.light_bodyid),
        "light_poscom0": pos - take(d.subtree_com, com),
        "light_dir0": normalize(matvec(mat, m.light_dir), default=np.array([1.0, 0, 0]))[0],
    }


def _damping_ratio(m: Model, d: Data) -> Array:
    """Replace a damping ratio of a position servo by the damping.

    A positive third bias parameter is a damping ratio.
    """
    if not m.nu or not m.nv:
        return m.actuator_biasprm
    xp = xp_of(m.actuator_biasprm, d.actuator_moment)
    bias, gain = m.actuator_biasprm, m.actuator_gainprm[:, 0]
    square = d.actuator_moment**2
    acts = square > MINVAL
    mass = xp.where(acts, m.dof_M0 / xp.where(acts, square, 1), 0).sum(-1)
    ratio = bias[:, 2]
    wanted = (gain == -bias[:, 1]) & (ratio > 0)
    damping = xp.where(wanted, -ratio * 2 * sqrt(xp.where(wanted, gain * mass, 0)), ratio)
    return xp.concatenate([bias[:, :2], damping[:, None], bias[:, 3:]], axis=-1)


def _max_at(index: np.ndarray, x: Array, n: int) -> Array:
    """Return the maximum of the numbers in each of `n` bins, at least zero."""
    if is_numpy(x):
        out = np.zeros(n, x.dtype)
        np.maximum.at(out, index, x)
        return out
    return xp_of(x).maximum(jax.ops.segment_max(x, index, n), 0)


def _body_sizes(m: Model, d: Data) -> Array:
    """Compute a length for each body: the distance to its joints, its children's joints and the ends of its geoms."""
    xp = xp_of(d.xipos)
    parent = m.body_parentid[m.jnt_bodyid]
    reach = [norm(take(d.xipos, b) - d.xanchor) for b in (m.jnt_bodyid, parent)]
    solid = m.geom_rbound > 0
    arm = norm(take(d.xipos, m.geom_bodyid) - d.geom_xpos)
    arm = xp.where(m.geom_sameframe == SameFrame.INERTIA, 0, arm)  # frames that count as equal have no offset
    ends = xp.where(solid, m.geom_rbound + arm, 0)
    flexible = body_reach(m, d)
    index = np.concatenate([m.jnt_bodyid, parent, m.geom_bodyid, *(body for body, _ in flexible)])
    sizes = _max_at(index, xp.concatenate([*reach, ends, *(length for _, length in flexible)]), m.nbody)
    return xp.where(np.arange(m.nbody) > 0, xp.maximum(sizes, _TINY_SIZE), 0)


def _geom_radii(m: Model) -> Array:
    """Return the radii of geoms for the extent of the model: a tenth of the size of planes and height fields."""
    xp = xp_of(m.geom_rbound)
    width = greatest(m.geom_size[:, :2])
    plane = xp.where(xp.any(m.geom_size[:, :2] != 0, axis=1), 0.1 * width, 1)
    radius = xp.where(m.geom_rbound > 0, m.geom_rbound, 0)
    radius = xp.where((m.geom_rbound <= 0) & (m.geom_type == GeomType.PLANE), plane, radius)
    if m.nhfield:
        field = 0.1 * greatest(take(m.hfield_size, np.maximum(m.geom_dataid, 0) % m.nhfield))
        radius = xp.where((m.geom_rbound <= 0) & (m.geom_type == GeomType.HFIELD), field, radius)
    return radius


def _lowest(x: Array) -> Array:
    """Return the smallest of points (n, 3) by coordinate, with the mean derivative of all equal ones.

    So the centre between geoms that end at the same level moves with both, and does not move when both only grow.
    """
    if is_numpy(x):
        return x.min(0)
    still = jax.lax.stop_gradient(x)
    low, rounding = still.min(0), _LEVEL * jnp.finfo(x.dtype).eps * abs(still).max(0)
    level = still <= low + rounding
    return low + jnp.where(level, x - still, 0).sum(0) / level.sum(0, dtype=x.dtype)


def _statistics(m: Model, d: Data) -> Model:
    """Compute the centre, extent, mean size, mass and inertia of the model, and the length of each dof."""
    xp = xp_of(d.xpos)
    radius = _geom_radii(m)[:, None]
    points = [d.xpos[1:], d.xipos[1:], d.xanchor, d.site_xpos]
    low = xp.concatenate([*points, d.geom_xpos - radius])
    high = xp.concatenate([*points, d.geom_xpos + radius])
    stat = m.stat
    if len(low):
        low, high = _lowest(low), -_lowest(-high)
        span = high - low
        extent = xp.where(span[0] > 0, xp.maximum(greatest(span), _TINY_SIZE), stat.extent)
        stat = stat.replace(center=0.5 * (low + high), extent=extent)
    sizes = _body_sizes(m, d)
    if m.nbody > 1:
        stat = stat.replace(meansize=sizes[1:].sum() / (m.nbody - 1), meanmass=m.body_mass[1:].sum() / (m.nbody - 1))
    stat = stat.replace(extent=xp.maximum(stat.extent, 2 * stat.meansize))
    if not m.nv:
        return m.replace(stat=stat)
    stat = stat.replace(meaninertia=take(d.M, m.M_rowadr + m.M_rownnz - 1).sum() / m.nv)
    turns = (m.jnt_type[m.dof_jntid] != JointType.SLIDE) & ~tables.in_world(m)
    return m.replace(stat=stat, dof_length=xp.where(turns, take(sizes, m.dof_bodyid), 1))


def _springs(m: Model, d: Data) -> Model:
    """Compute the rest lengths of tendon springs that are not given: the lengths at qpos_spring."""
    if not m.ntendon:
        return m
    xp = xp_of(m.tendon_lengthspring)
    if not (is_numpy(m.qpos_spring, d.qpos) and np.array_equal(m.qpos_spring, d.qpos)):
        d = tendon(m, com_pos(m, kinematics(m, allocate(m).replace(qpos=m.qpos_spring))))
    missing = xp.all(m.tendon_lengthspring == -1, axis=1, keepdims=True)
    return m.replace(tendon_lengthspring=xp.where(missing, d.ten_length[:, None], m.tendon_lengthspring))
