"""The contact sensor: contacts between chosen objects, selected by order, depth or force, or summed."""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import MINVAL, ConDataField, ObjType
from jaxsim.engine.dynamics.rne import contact_forces
from jaxsim.engine.sensor.position import inside
from jaxsim.math.arrays import einsum, matvec_t, take
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, norm

CONTACT_FIELDS = {
    ConDataField.FOUND: 1,
    ConDataField.FORCE: 3,
    ConDataField.TORQUE: 3,
    ConDataField.DIST: 1,
    ConDataField.POS: 3,
    ConDataField.NORMAL: 3,
    ConDataField.TANGENT: 3,
}
NO_REDUCTION, MINDIST, MAXFORCE, NETFORCE = range(4)  # the attribute `reduce`


@per_structure
def _matching_geoms(m) -> tuple[np.ndarray, np.ndarray]:
    """Return masks of the geoms of both objects of every sensor: (nsensor, ngeom + 1).

    The last column is for contacts without a geom.
    """
    out = []
    for types, ids in ((m.sensor_objtype, m.sensor_objid), (m.sensor_reftype, m.sensor_refid)):
        table = np.zeros((m.nsensor, m.ngeom + 1), bool)
        for row, objtype, i in zip(table, types, ids, strict=True):
            if objtype in (ObjType.UNKNOWN, ObjType.SITE):
                row[:] = True
            elif objtype == ObjType.GEOM:
                row[i] = True
            elif objtype == ObjType.BODY:
                row[:-1] = m.geom_bodyid == i
            elif objtype == ObjType.XBODY:
                row[:-1] = np.isin(m.geom_bodyid, _subtree(m, i))
        out.append(table)
    return tuple(out)


def _subtree(m, root: int) -> np.ndarray:
    """Return bodies of the subtree of a body."""
    in_subtree = np.arange(m.nbody) == root
    for b in range(root + 1, m.nbody):
        in_subtree[b] = in_subtree[m.body_parentid[b]]
    return np.flatnonzero(in_subtree)


def contact(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Compute the values of all contact sensors, flat (sum of their dimensions,), sensor by sensor and slot by slot."""
    groups: dict[tuple, list[int]] = {}
    for i in ids:
        groups.setdefault((*m.sensor_intprm[i, :2].tolist(), int(m.sensor_dim[i])), []).append(i)
    values = {}
    for (spec, reduce, dim), members in groups.items():
        fields = [f for f in ConDataField if spec & (1 << f)]
        slots = dim // sum(CONTACT_FIELDS[f] for f in fields)
        rows = _values(m, d, np.array(members), fields, slots, reduce)
        values.update(dict(zip(members, rows, strict=True)))
    return jnp.concatenate([values[i] for i in ids])


def _contact_signs(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the sign of each contact (n) for each sensor (k): (k, n).

    It is +1 between the sensor's objects in order, -1 in reverse order, else 0.
    """
    geom = jnp.where(d.contact.geom >= 0, d.contact.geom, m.ngeom)
    is1, is2 = (jnp.asarray(table[ids])[:, geom] for table in _matching_geoms(m))
    has1 = (m.sensor_objtype[ids] != ObjType.UNKNOWN)[:, None]
    has2 = (m.sensor_reftype[ids] != ObjType.UNKNOWN)[:, None]
    regular, reverse = is1[..., 0] & is2[..., 1], is1[..., 1] & is2[..., 0]
    both = jnp.where(regular, 1, jnp.where(reverse, -1, 0))
    any1, any2 = is1.any(-1), is2.any(-1)
    only1, only2 = jnp.where(is1[..., 0], 1, -1), jnp.where(is2[..., 1], 1, -1)
    sign = jnp.where(has1 & has2, both, jnp.where(has1, only1, jnp.where(has2, only2, 1)))
    sign = jnp.where(any1 & any2, sign, 0)
    by_site = m.sensor_objtype[ids] == ObjType.SITE
    if by_site.any():
        sites = np.where(by_site, m.sensor_objid[ids], 0)
        mat = take(d.site_xmat, sites).reshape(-1, 1, 3, 3)
        local = matvec_t(mat, d.contact.pos[None] - take(d.site_xpos, sites)[:, None])
        in_site = inside(m.site_type[sites], take(m.site_size, sites), local)
        sign = jnp.where(by_site[:, None] & ~in_site, 0, sign)
    return jnp.where(d.contact.dim > 0, sign, 0)


def _values(m: Model, d: Data, ids: np.ndarray, fields: list[ConDataField], slots: int, reduce: int) -> Array:
    """Compute the values (k, dim) of sensors with equal fields, number of slots and reduction."""
    if not d.efc.layout.ncontact:
        return _values_without_contacts(d, ids, fields, slots, reduce)
    sign = _contact_signs(m, d, ids)
    wrench = contact_forces(d)
    found = (sign != 0).sum(1)
    if reduce == NETFORCE:
        values = _net_values(d, sign, wrench)
        values[ConDataField.FOUND] = found[:, None].astype(wrench.dtype)
        first = jnp.concatenate([values[f] for f in fields], axis=1)
        return jnp.pad(first, ((0, 0), (0, first.shape[1] * (slots - 1))))
    criterion = {MINDIST: d.contact.dist, MAXFORCE: -(wrench * wrench)[:, :3].sum(1)}.get(reduce)
    criterion = jnp.zeros_like(d.contact.dist) if criterion is None else criterion
    order = jnp.argsort(jnp.where(sign != 0, criterion, jnp.inf), axis=1, stable=True)
    count = min(slots, order.shape[1])
    index = order[:, :count]
    sign_of_slot = jnp.where(jnp.take_along_axis(sign, index, axis=1) < 0, -1.0, 1.0).astype(wrench.dtype)[..., None]
    wrench_sign = jnp.concatenate([jnp.ones_like(sign_of_slot), jnp.ones_like(sign_of_slot), sign_of_slot], axis=-1)
    frame = d.contact.frame[index]
    values = {
        ConDataField.FOUND: jnp.broadcast_to(found[:, None, None], sign_of_slot.shape).astype(wrench.dtype),
        ConDataField.FORCE: wrench[index][..., :3] * wrench_sign,
        ConDataField.TORQUE: wrench[index][..., 3:] * wrench_sign,
        ConDataField.DIST: d.contact.dist[index][..., None],
        ConDataField.POS: d.contact.pos[index],
        ConDataField.NORMAL: frame[..., :3] * sign_of_slot,
        ConDataField.TANGENT: frame[..., 3:6] * sign_of_slot,
    }
    filled = (jnp.arange(count) < found[:, None])[..., None]
    rows = jnp.where(filled, jnp.concatenate([values[f] for f in fields], axis=-1), 0)
    rows = jnp.pad(rows, ((0, 0), (0, slots - count), (0, 0)))
    return rows.reshape(len(ids), -1)


def _net_values(d: Data, sign: Array, wrench: Array) -> dict[ConDataField, Array]:
    """Sum all matching contacts; the wrench is in the global frame about the force-weighted centre."""
    weight = jnp.abs(sign) * norm(wrench[:, :3])
    total = weight.sum(1, keepdims=True)
    point = (weight[..., None] * d.contact.pos).sum(1) / jnp.maximum(total, MINVAL)
    frame = d.contact.frame.reshape(-1, 3, 3)
    force, torque = (einsum("nij,ni->nj", frame, part) for part in (wrench[:, :3], wrench[:, 3:]))
    signed = sign.astype(force.dtype)[..., None]
    arm = d.contact.pos[None] - point[:, None]
    moment = torque + cross(arm, jnp.broadcast_to(force, arm.shape))
    one = jnp.ones_like(total)
    return {
        ConDataField.FORCE: (signed * force).sum(1),
        ConDataField.TORQUE: (signed * moment).sum(1),
        ConDataField.DIST: 0 * one,
        ConDataField.POS: point,
        ConDataField.NORMAL: one * np.array([1.0, 0, 0], force.dtype),
        ConDataField.TANGENT: one * np.array([0, 1.0, 0], force.dtype),
    }


def _values_without_contacts(d: Data, ids: np.ndarray, fields: list[ConDataField], slots: int, reduce: int) -> Array:
    """Return the values (k, dim) of sensors in a model without contacts."""
    axis = {ConDataField.NORMAL: 0, ConDataField.TANGENT: 1} if reduce == NETFORCE else {}
    first = [np.eye(3)[axis[f]] if f in axis else np.zeros(CONTACT_FIELDS[f]) for f in fields]
    row = np.concatenate(first)
    row = np.concatenate([row, np.zeros(len(row) * (slots - 1))])
    return jnp.asarray(np.tile(row, (len(ids), 1)), d.sensordata.dtype)
