"""General rows, each with a Jacobian of its own: equality, friction in tendons, limits of balls and tendons.

Every kind is a function of (m, d, ids, row, columns) that returns `GeneralRows` for all its objects at once.
`general_rows` puts them into the order of the layout. A new kind is one function and one line in `KINDS`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.layout import EQ_ROWS, Layout, flex_edges, is_sparse
from jaxsim.core.model import Model
from jaxsim.core.structure import moving_dofs, path
from jaxsim.core.types import ConstraintType, EqType, JacobianType, ObjType
from jaxsim.engine.flex.strain_modes import strain_modes
from jaxsim.engine.kinematics.contact_jacobian import dof_axes, jacobian_rows, point_wrench
from jaxsim.engine.structure import tables
from jaxsim.engine.tendon.tendon import jacobian_entries
from jaxsim.math.arrays import dot, einsum, take, take_or_zero
from jaxsim.math.rotation import cross, quat_conj, quat_mul, quat_rotate, quat_to_rotvec
from jaxsim.math.safe import Array, greatest, norm, normalize
from jaxsim.math.tree import dof_path_sum

SPARSE_JACOBIAN = 60  # number of dofs from which MuJoCo's Jacobian is sparse by default


class GeneralRows(NamedTuple):
    """n rows: Jacobian (n, nv), position error and the other inputs of impedance and reference.

    They are the position that sets the impedance, margin, friction loss (0: none), solref (n, 2), solimp (n, 5),
    diagApprox before regularisation, and activity.
    """

    jac: Array
    pos: Array
    impedance_pos: Array
    margin: Array
    frictionloss: Array
    solref: Array
    solimp: Array
    diag: Array
    active: Array


def general_rows(m: Model, d: Data, layout: Layout) -> GeneralRows | None:
    """Compute all general rows in the order of the layout; None when the model has none."""
    parts, ids = [], []
    for (kind, subtype), make in KINDS.items():
        where = _slots_of(m, layout, kind, subtype)
        if len(where):
            parts.append(make(m, d, layout.general.id[where], layout.general.row[where], _columns(layout, where)))
            ids.append(where)
    if not parts:
        return None
    order = np.argsort(np.concatenate(ids))
    return GeneralRows(*(take(jnp.concatenate(x), order) for x in zip(*parts, strict=True)))


def _slots_of(m: Model, layout: Layout, kind: ConstraintType, subtype: EqType | None) -> np.ndarray:
    of_kind = layout.general.type == kind
    if subtype is not None:
        of_kind[of_kind] = m.eq_type[layout.general.id[of_kind]] == subtype
    return np.flatnonzero(of_kind)


Columns = np.ndarray | None  # dofs at which rows hold values (n, width), padded with -1; None for all dofs


def _columns(layout: Layout, where: np.ndarray) -> Columns:
    return layout.columns[where] if layout.sparse else None


def tendon_jacobian(m: Model, d: Data, ids: np.ndarray, columns: Columns) -> Array:
    """Return the rows of ten_J of tendons (n,), at the columns of each row or at all dofs."""
    if columns is None:
        return take_or_zero(d.ten_J, jacobian_entries(m))[ids]
    index = jacobian_entries(m)[ids[:, None], columns]
    return take_or_zero(d.ten_J, np.where(columns >= 0, index, -1))


def _rows(
    m: Model, jac: Array, pos: Array, solref: Array, solimp: Array, diag: Array, active: Array, **other
) -> GeneralRows:
    zero = jnp.zeros_like(pos)
    fields = {"impedance_pos": pos, "margin": zero, "frictionloss": zero, **other}
    return GeneralRows(jac=jac, pos=pos, solref=solref, solimp=solimp, diag=diag, active=active, **fields)


def _one_hot(m: Model, dofs: np.ndarray, columns: Columns, dtype: np.dtype) -> np.ndarray:
    """Return rows (n, k, width) with a one at each of the dofs (n, k). Static."""
    columns = np.arange(m.nv) if columns is None else columns[:, None]
    return (dofs[:, :, None] == columns).astype(dtype)


def _eq_prm(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array, Array]:
    return take(m.eq_solref, ids), take(m.eq_solimp, ids), take(d.eq_active, ids)


def _polynomial(data: Array, x: Array) -> tuple[Array, Array]:
    """Evaluate c1 x + ... + c4 x^4 and its derivative, from eq_data (n, 11)."""
    c1, c2, c3, c4 = (data[:, i] for i in range(1, 5))
    return x * (c1 + x * (c2 + x * (c3 + x * c4))), c1 + x * (2 * c2 + x * (3 * c3 + x * 4 * c4))


def _coupling(
    m: Model, d: Data, ids: np.ndarray, value: Array, jac: Array, invweight: Array, second: np.ndarray
) -> GeneralRows:
    """Compute rows that couple two scalars.

    Value (n, 2), jac (n, 2, nv) and invweight (n, 2) are of first and second.
    """
    has2 = jnp.asarray(second)
    poly, derivative = _polynomial(take(m.eq_data, ids), jnp.where(has2, value[:, 1], 0))
    pos = value[:, 0] - m.eq_data[ids, 0] - jnp.where(has2, poly, 0)
    rows = jac[:, 0] - jnp.where(has2, derivative, 0)[:, None] * jac[:, 1]
    solref, solimp, active = _eq_prm(m, d, ids)
    return _rows(m, rows, pos, solref, solimp, invweight[:, 0] + jnp.where(has2, invweight[:, 1], 0), active)


def joint_equality(m: Model, d: Data, ids: np.ndarray, _: np.ndarray, columns: Columns) -> GeneralRows:
    objects = np.stack([m.eq_obj1id[ids], m.eq_obj2id[ids]], axis=1)
    known = np.maximum(objects, 0)
    address, dof = m.jnt_qposadr[known], m.jnt_dofadr[known]
    value = take(d.qpos, address) - take(m.qpos0, address)
    jac = jnp.asarray(_one_hot(m, dof, columns, d.qpos.dtype))
    return _coupling(m, d, ids, value, jac, take(m.dof_invweight0, dof), objects[:, 1] >= 0)


def tendon_equality(m: Model, d: Data, ids: np.ndarray, _: np.ndarray, columns: Columns) -> GeneralRows:
    objects = np.stack([m.eq_obj1id[ids], m.eq_obj2id[ids]], axis=1)
    known = np.maximum(objects, 0)
    value = take(d.ten_length, known) - take(m.tendon_length0, known)
    jac = jnp.stack([tendon_jacobian(m, d, known[:, k], columns) for k in range(2)], axis=1)
    rows = _coupling(m, d, ids, value, jac, take(m.tendon_invweight0, known), objects[:, 1] >= 0)
    count = np.where(objects >= 0, m.ten_J_rownnz[known], 0).sum(axis=1)
    return rows._replace(active=rows.active & _not_empty(m, rows.jac, count))


class Anchors(NamedTuple):
    """Two bodies held together: their ids (static), anchors in the world and orientations (first times relpose)."""

    body1: np.ndarray
    body2: np.ndarray
    pos1: Array
    pos2: Array
    quat1: Array
    quat2: Array


def _anchors(m: Model, d: Data, ids: np.ndarray, weld: bool) -> Anchors:
    on_site = m.eq_objtype[ids] == ObjType.SITE
    obj1, obj2 = m.eq_obj1id[ids], m.eq_obj2id[ids]
    site1, site2 = np.where(on_site, obj1, 0), np.where(on_site, obj2, 0)
    body1 = np.where(on_site, m.site_bodyid[site1] if m.nsite else 0, obj1)
    body2 = np.where(on_site, m.site_bodyid[site2] if m.nsite else 0, obj2)
    data = take(m.eq_data, ids)
    local1, local2 = (data[:, 3:6], data[:, :3]) if weld else (data[:, :3], data[:, 3:6])
    quat1, quat2 = data[:, 6:10], jnp.broadcast_to(jnp.asarray([1.0, 0, 0, 0], data.dtype), (len(ids), 4))
    if m.nsite:
        at = jnp.asarray(on_site)[:, None]
        local1 = jnp.where(at, take(m.site_pos, site1), local1)
        local2 = jnp.where(at, take(m.site_pos, site2), local2)
        quat1 = jnp.where(at, take(m.site_quat, site1), quat1)
        quat2 = jnp.where(at, take(m.site_quat, site2), quat2)
    pos1 = take(d.xpos, body1) + quat_rotate(take(d.xquat, body1), local1)
    pos2 = take(d.xpos, body2) + quat_rotate(take(d.xquat, body2), local2)
    return Anchors(
        body1, body2, pos1, pos2, quat_mul(take(d.xquat, body1), quat1), quat_mul(take(d.xquat, body2), quat2)
    )


def _point_jacobian(m: Model, d: Data, body: np.ndarray, pos: Array, columns: Columns) -> Array:
    """Compute the translational and rotational Jacobian (n, 6, width) of points (n, 3) fixed in bodies."""
    axes, origin = dof_axes(m, d)
    eye = jnp.broadcast_to(jnp.eye(3, dtype=pos.dtype), (len(body), 3, 3))
    force = point_wrench(eye, jnp.broadcast_to((pos - origin)[:, None, :], eye.shape))
    torque = jnp.concatenate([eye, jnp.zeros_like(eye)], axis=-1)
    wrench = jnp.concatenate([force, torque], axis=1)
    if columns is None:
        return jacobian_rows(axes, jnp.asarray(moving_dofs(m, body), pos.dtype), wrench)
    moves = [np.isin(own, path(m, b)) for own, b in zip(columns, body, strict=True)]
    own = jnp.where(np.array(moves)[..., None], take_or_zero(axes.T, columns), 0)
    return einsum("nkc,nwc->nkw", wrench, own)


def _bias_acceleration(m: Model, d: Data, body: np.ndarray, pos: Array) -> tuple[Array, Array]:
    """Compute Jdot qvel of points fixed in bodies: the linear and angular acceleration (n, 3) due to velocities."""
    rate = d.cdof_dot * d.qvel[:, None]
    if is_sparse(m):
        spatial = take(dof_path_sum(tables.tree(m), rate), body)
    else:
        spatial = dot(jnp.asarray(moving_dofs(m, body), pos.dtype), rate)
    arm = pos - d.subtree_com[m.body_rootid[body]]
    angular, linear = d.cvel[body, :3], d.cvel[body, 3:]
    velocity = linear + cross(angular, arm)
    return spatial[:, 3:] + cross(spatial[:, :3], arm) + cross(angular, velocity), spatial[:, :3]


def _nonempty(m: Model, body1: np.ndarray, body2: np.ndarray) -> np.ndarray:
    return np.array([len(path(m, a)) + len(path(m, b)) > 0 for a, b in zip(body1, body2, strict=True)])


def _flatten(m: Model, d: Data, ids: np.ndarray, a: Anchors, jac: Array, pos: Array, diag: Array) -> GeneralRows:
    """Flatten objects with k rows each to GeneralRows (n * k); the norm of the whole error sets the impedance."""
    n, k = pos.shape
    solref, solimp, active = _eq_prm(m, d, ids)
    active = active & jnp.asarray(_nonempty(m, a.body1, a.body2))

    def each(x: Array) -> Array:
        return jnp.repeat(x, k, axis=0)

    return _rows(
        m,
        jac.reshape(n * k, -1),
        pos.reshape(-1),
        each(solref),
        each(solimp),
        diag.reshape(-1),
        each(active),
        impedance_pos=each(norm(pos)),
    )


def connect_equality(m: Model, d: Data, ids: np.ndarray, _: np.ndarray, columns: Columns) -> GeneralRows:
    ids = ids[:: EQ_ROWS[EqType.CONNECT]]
    at = None if columns is None else columns[:: EQ_ROWS[EqType.CONNECT]]
    a = _anchors(m, d, ids, weld=False)
    jac = _point_jacobian(m, d, a.body1, a.pos1, at)[:, :3] - _point_jacobian(m, d, a.body2, a.pos2, at)[:, :3]
    diag = m.body_invweight0[a.body1, 0] + m.body_invweight0[a.body2, 0]
    return _flatten(m, d, ids, a, jac, a.pos1 - a.pos2, jnp.repeat(diag, 3))


def connect_jdotv(m: Model, d: Data, ids: np.ndarray) -> Array:
    a = _anchors(m, d, ids, weld=False)
    return _bias_acceleration(m, d, a.body1, a.pos1)[0] - _bias_acceleration(m, d, a.body2, a.pos2)[0]


def _turn(left: Array, omega: Array, right: Array) -> Array:
    """Compute vec(left omega right) / 2 for quaternions left and right and a pure quaternion omega."""
    pure = jnp.concatenate([jnp.zeros_like(omega[..., :1]), omega], axis=-1)
    return 0.5 * quat_mul(quat_mul(left, pure), right)[..., 1:]


def weld_equality(m: Model, d: Data, ids: np.ndarray, _: np.ndarray, columns: Columns) -> GeneralRows:
    """Compute the position error of the anchors and the vector part of the relative rotation, times torquescale.

    With q = conj(q2) q1, the rotational error is vec(q); an angular velocity difference w changes it by vec(conj(q2) w
    q1) / 2, which is a 3 x 3 matrix on the rotational Jacobian.
    """
    ids = ids[:: EQ_ROWS[EqType.WELD]]
    at = None if columns is None else columns[:: EQ_ROWS[EqType.WELD]]
    a = _anchors(m, d, ids, weld=True)
    scale = m.eq_data[ids, 10][:, None]
    inverse = quat_conj(a.quat2)
    error = jnp.concatenate([a.pos1 - a.pos2, scale * quat_mul(inverse, a.quat1)[:, 1:]], axis=1)
    basis = jnp.broadcast_to(jnp.eye(3, dtype=error.dtype), (len(ids), 3, 3))
    turn = _turn(inverse[:, None], basis, a.quat1[:, None])  # (n, axis, component)
    jac = _point_jacobian(m, d, a.body1, a.pos1, at) - _point_jacobian(m, d, a.body2, a.pos2, at)
    rotation = dot(jnp.swapaxes(turn, 1, 2), jac[:, 3:]) * scale[..., None]
    weight = take(m.body_invweight0, a.body1) + take(m.body_invweight0, a.body2)
    return _flatten(m, d, ids, a, jnp.concatenate([jac[:, :3], rotation], axis=1), error, jnp.repeat(weight, 3, axis=1))


def weld_jdotv(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Compute Jdot qvel of weld rows by the product rule over conj(q2), the angular velocity difference and q1."""
    a = _anchors(m, d, ids, weld=True)
    inverse = quat_conj(a.quat2)
    lin1, ang1 = _bias_acceleration(m, d, a.body1, a.pos1)
    lin2, ang2 = _bias_acceleration(m, d, a.body2, a.pos2)
    omega1, omega2 = d.cvel[a.body1, :3], d.cvel[a.body2, :3]

    def rate(q: Array, omega: Array) -> Array:
        pure = jnp.concatenate([jnp.zeros_like(omega[..., :1]), omega], axis=-1)
        return 0.5 * quat_mul(pure, q)

    spin = (
        _turn(quat_conj(rate(a.quat2, omega2)), omega1 - omega2, a.quat1)
        + _turn(inverse, ang1 - ang2, a.quat1)
        + _turn(inverse, omega1 - omega2, rate(a.quat1, omega1))
    )
    return jnp.concatenate([lin1 - lin2, m.eq_data[ids, 10][:, None] * spin], axis=1)


def velocity_product(m: Model, d: Data, layout: Layout) -> Array | None:
    """Compute Jdot qvel of the general rows (ngeneral,); None when no row has one (only connect and weld do)."""
    parts, slots = [], []
    for subtype, make in ((EqType.CONNECT, connect_jdotv), (EqType.WELD, weld_jdotv)):
        where = _slots_of(m, layout, ConstraintType.EQUALITY, subtype)
        if len(where):
            parts.append(make(m, d, layout.general.id[where][:: EQ_ROWS[subtype]]).reshape(-1))
            slots.append(where)
    if not parts:
        return None
    filled = np.concatenate(slots)
    order = np.full(layout.ngeneral, -1)
    order[filled] = np.arange(len(filled))
    return take_or_zero(jnp.concatenate(parts), order)


def tendon_friction(m: Model, d: Data, ids: np.ndarray, _: np.ndarray, columns: Columns) -> GeneralRows:
    jac, loss = tendon_jacobian(m, d, ids, columns), take(m.tendon_frictionloss, ids)
    active = (loss > 0) & jnp.any(jac != 0, axis=1)
    pos = jnp.zeros_like(loss)
    prm = take(m.tendon_solref_fri, ids), take(m.tendon_solimp_fri, ids), take(m.tendon_invweight0, ids)
    return _rows(m, jac, pos, *prm, active, frictionloss=loss)


def ball_limit(m: Model, d: Data, ids: np.ndarray, _: np.ndarray, columns: Columns) -> GeneralRows:
    quat = normalize(d.qpos[tables.joint_quat(m)[ids]], default=np.array([1.0, 0, 0, 0]))[0]
    axis, angle = normalize(quat_to_rotvec(quat), default=np.array([1.0, 0, 0]))
    pos = greatest(take(m.jnt_range, ids)) - angle
    dofs = m.jnt_dofadr[ids][:, None] + np.arange(3)
    place = _one_hot(m, dofs, columns, pos.dtype)
    jac = -dot(axis[:, None, :], place)[:, 0]
    prm = take(m.jnt_solref, ids), take(m.jnt_solimp, ids), m.dof_invweight0[dofs[:, 0]]
    return _rows(m, jac, pos, *prm, pos < take(m.jnt_margin, ids), margin=take(m.jnt_margin, ids))


def tendon_limit(m: Model, d: Data, ids: np.ndarray, side: np.ndarray, columns: Columns) -> GeneralRows:
    sign = side.astype(d.ten_length.dtype)
    pos = sign * (m.tendon_range[ids, (side + 1) // 2] - take(d.ten_length, ids))
    jac = -sign[:, None] * tendon_jacobian(m, d, ids, columns)
    active = (pos < take(m.tendon_margin, ids)) & jnp.any(jac != 0, axis=1)
    prm = take(m.tendon_solref_lim, ids), take(m.tendon_solimp_lim, ids), take(m.tendon_invweight0, ids)
    return _rows(m, jac, pos, *prm, active, margin=take(m.tendon_margin, ids))


def flex_equality(m: Model, d: Data, ids: np.ndarray, row: np.ndarray, columns: Columns) -> GeneralRows:
    flex = m.eq_obj1id[ids]
    held = {int(f): flex_edges(m, f) for f in np.unique(flex)}
    edge = np.array([held[f][r] for f, r in zip(flex.tolist(), row.tolist(), strict=True)])
    return _edge_rows(m, d, ids, edge, columns)


def _edge_rows(m: Model, d: Data, ids: np.ndarray, edge: np.ndarray, columns: Columns) -> GeneralRows:
    """Compute rows that hold edges of flexes at their rest lengths."""
    count, first = m.flexedge_J_rownnz[edge], m.flexedge_J_rowadr[edge]
    jac = _stored_rows(m, d.flexedge_J, m.flexedge_J_colind, first, count, columns)
    pos = take(d.flexedge_length, edge) - take(m.flexedge_length0, edge)
    solref, solimp, active = _eq_prm(m, d, ids)
    diag = take(m.flexedge_invweight0, edge)
    return _rows(m, jac, pos, solref, solimp, diag, active & _not_empty(m, jac, count))


def _stored_rows(
    m: Model, values: Array, dofs: np.ndarray, first: np.ndarray, count: np.ndarray, columns: Columns
) -> Array:
    """Expand rows of a sparse Jacobian to the columns of general rows.

    The rows begin at `first` and have `count` entries.
    """
    step = np.arange(count.max(initial=0))
    slot = first[:, None] + step
    slot = np.where((step < count[:, None]) & (slot < len(dofs)), slot, -1)
    row, k = np.nonzero(slot >= 0)
    slot = slot[row, k]
    wide = np.tile(np.arange(m.nv), (len(first), 1)) if columns is None else columns
    key = row * m.nv + dofs[slot]
    order = np.argsort(key, kind="stable")
    wanted = np.arange(len(first))[:, None] * m.nv + wide
    at = np.searchsorted(key[order], wanted, side="right") - 1  # for a repeated dof the last entry counts
    at = order[np.maximum(at, 0)] if len(order) else np.zeros(wanted.shape, int)
    found = (wide >= 0) & (key[at] == wanted) if len(order) else np.zeros(wanted.shape, bool)
    return take_or_zero(values, np.where(found, slot[at] if len(order) else 0, -1))


def _not_empty(m: Model, jac: Array, count: np.ndarray) -> Array | np.ndarray:
    """Return the mask of rows that MuJoCo keeps: not all zero with a dense Jacobian, not empty with a sparse one."""
    if m.opt.jacobian == JacobianType.DENSE or (m.opt.jacobian == JacobianType.AUTO and m.nv < SPARSE_JACOBIAN):
        return jnp.any(jac != 0, axis=1)
    return count > 0


def flexvert_equality(m: Model, d: Data, ids: np.ndarray, row: np.ndarray, columns: Columns) -> GeneralRows:
    vertex, kind = m.flex_vertadr[m.eq_obj1id[ids]] + row // 2, row % 2
    count, first = m.flexvert_J_rownnz[vertex, kind], m.flexvert_J_rowadr[vertex, kind]
    jac = _stored_rows(m, d.flexvert_J.reshape(-1), m.flexvert_J_colind.reshape(-1), first, count, columns)
    pos = take(d.flexvert_length.reshape(-1), 2 * vertex + kind)
    solref, solimp, active = _eq_prm(m, d, ids)
    diag = take(m.body_invweight0[:, 0], np.maximum(m.flex_vertbodyid[vertex], 0))
    return _rows(m, jac, pos, solref, solimp, diag, active & _not_empty(m, jac, count))


def flexstrain_equality(m: Model, d: Data, ids: np.ndarray, row: np.ndarray, columns: Columns) -> GeneralRows:
    modes = strain_modes(m, d, ids, row, columns)
    solref, solimp, active = _eq_prm(m, d, ids)
    one = np.ones(len(ids), int)
    return _rows(m, modes.jac, modes.pos, solref, solimp, modes.weight, active & _not_empty(m, modes.jac, one))


KINDS: dict[tuple[ConstraintType, EqType | None], Callable[..., GeneralRows]] = {
    (ConstraintType.EQUALITY, EqType.CONNECT): connect_equality,
    (ConstraintType.EQUALITY, EqType.WELD): weld_equality,
    (ConstraintType.EQUALITY, EqType.JOINT): joint_equality,
    (ConstraintType.EQUALITY, EqType.TENDON): tendon_equality,
    (ConstraintType.EQUALITY, EqType.FLEX): flex_equality,
    (ConstraintType.EQUALITY, EqType.FLEXVERT): flexvert_equality,
    (ConstraintType.EQUALITY, EqType.FLEXSTRAIN): flexstrain_equality,
    (ConstraintType.FRICTION_TENDON, None): tendon_friction,
    (ConstraintType.LIMIT_JOINT, None): ball_limit,
    (ConstraintType.LIMIT_TENDON, None): tendon_limit,
}
