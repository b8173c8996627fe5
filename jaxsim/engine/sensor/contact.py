"""The contact sensor: contacts between chosen objects, chosen by order, depth or force, or summed up."""

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

SIZES = {
    ConDataField.FOUND: 1,
    ConDataField.FORCE: 3,
    ConDataField.TORQUE: 3,
    ConDataField.DIST: 1,
    ConDataField.POS: 3,
    ConDataField.NORMAL: 3,
    ConDataField.TANGENT: 3,
}
FIRST, MINDIST, MAXFORCE, NETFORCE = range(4)


@per_structure
def _admitted(m) -> tuple[np.ndarray, np.ndarray]:
    """For both objects of every sensor, the geoms that belong to it: (nsensor, ngeom + 1), the last for no geom."""
    out = []
    for kinds, ids in ((m.sensor_objtype, m.sensor_objid), (m.sensor_reftype, m.sensor_refid)):
        table = np.zeros((m.nsensor, m.ngeom + 1), bool)
        for row, kind, i in zip(table, kinds, ids, strict=True):
            if kind in (ObjType.UNKNOWN, ObjType.SITE):
                row[:] = True
            elif kind == ObjType.GEOM:
                row[i] = True
            elif kind == ObjType.BODY:
                row[:-1] = m.geom_bodyid == i
            elif kind == ObjType.XBODY:
                row[:-1] = np.isin(m.geom_bodyid, _subtree(m, i))
        out.append(table)
    return tuple(out)


def _subtree(m, root: int) -> np.ndarray:
    inside_ = np.arange(m.nbody) == root
    for b in range(root + 1, m.nbody):
        inside_[b] = inside_[m.body_parentid[b]]
    return np.flatnonzero(inside_)


def contact(m: Model, d: Data, ids: np.ndarray) -> Array:
    """What the sensors' contacts are, slot by slot; all sensors one after the other, flat."""
    groups: dict[tuple, list[int]] = {}
    for i in ids:
        groups.setdefault((*m.sensor_intprm[i, :2].tolist(), int(m.sensor_dim[i])), []).append(i)
    pieces = {}
    for (spec, reduce, dim), members in groups.items():
        fields = [f for f in ConDataField if spec & (1 << f)]
        slots = dim // sum(SIZES[f] for f in fields)
        rows = _read(m, d, np.array(members), fields, slots, reduce)
        pieces.update(dict(zip(members, rows, strict=True)))
    return jnp.concatenate([pieces[i] for i in ids])


def _matches(m: Model, d: Data, ids: np.ndarray) -> Array:
    """+1 where a contact (n) is between a sensor's (k) objects in order, -1 in reverse order, else 0: (k, n)."""
    geom = jnp.where(d.contact.geom >= 0, d.contact.geom, m.ngeom)
    one, two = (jnp.asarray(table[ids])[:, geom] for table in _admitted(m))
    known1 = (m.sensor_objtype[ids] != ObjType.UNKNOWN)[:, None]
    known2 = (m.sensor_reftype[ids] != ObjType.UNKNOWN)[:, None]
    regular, reverse = one[..., 0] & two[..., 1], one[..., 1] & two[..., 0]
    both = jnp.where(regular, 1, jnp.where(reverse, -1, 0))
    any1, any2 = one.any(-1), two.any(-1)
    only1, only2 = jnp.where(one[..., 0], 1, -1), jnp.where(two[..., 1], 1, -1)
    sign = jnp.where(known1 & known2, both, jnp.where(known1, only1, jnp.where(known2, only2, 1)))
    sign = jnp.where(any1 & any2, sign, 0)
    by_site = m.sensor_objtype[ids] == ObjType.SITE
    if by_site.any():
        sites = np.where(by_site, m.sensor_objid[ids], 0)
        mat = take(d.site_xmat, sites).reshape(-1, 1, 3, 3)
        local = matvec_t(mat, d.contact.pos[None] - take(d.site_xpos, sites)[:, None])
        zone = inside(m.site_type[sites], take(m.site_size, sites), local)
        sign = jnp.where(by_site[:, None] & ~zone, 0, sign)
    return jnp.where(d.contact.dim > 0, sign, 0)


def _read(m: Model, d: Data, ids: np.ndarray, fields: list[ConDataField], slots: int, reduce: int) -> Array:
    """Sensors that ask for the same: (k, dim)."""
    if not d.efc.layout.ncontact:
        return _unfilled(d, ids, fields, slots, reduce)
    sign = _matches(m, d, ids)
    wrench = contact_forces(d)
    found = (sign != 0).sum(1)
    if reduce == NETFORCE:
        values = _net(d, sign, wrench)
        values[ConDataField.FOUND] = found[:, None].astype(wrench.dtype)
        first = jnp.concatenate([values[f] for f in fields], axis=1)
        return jnp.pad(first, ((0, 0), (0, first.shape[1] * (slots - 1))))
    criterion = {MINDIST: d.contact.dist, MAXFORCE: -(wrench * wrench)[:, :3].sum(1)}.get(reduce)
    criterion = jnp.zeros_like(d.contact.dist) if criterion is None else criterion
    order = jnp.argsort(jnp.where(sign != 0, criterion, jnp.inf), axis=1, stable=True)
    count = min(slots, order.shape[1])
    which = order[:, :count]
    flip = jnp.where(jnp.take_along_axis(sign, which, axis=1) < 0, -1.0, 1.0).astype(wrench.dtype)[..., None]
    turn = jnp.concatenate([jnp.ones_like(flip), jnp.ones_like(flip), flip], axis=-1)
    frame = d.contact.frame[which]
    values = {
        ConDataField.FOUND: jnp.broadcast_to(found[:, None, None], flip.shape).astype(wrench.dtype),
        ConDataField.FORCE: wrench[which][..., :3] * turn,
        ConDataField.TORQUE: wrench[which][..., 3:] * turn,
        ConDataField.DIST: d.contact.dist[which][..., None],
        ConDataField.POS: d.contact.pos[which],
        ConDataField.NORMAL: frame[..., :3] * flip,
        ConDataField.TANGENT: frame[..., 3:6] * flip,
    }
    filled = (jnp.arange(count) < found[:, None])[..., None]
    rows = jnp.where(filled, jnp.concatenate([values[f] for f in fields], axis=-1), 0)
    rows = jnp.pad(rows, ((0, 0), (0, slots - count), (0, 0)))
    return rows.reshape(len(ids), -1)


def _net(d: Data, sign: Array, wrench: Array) -> dict[ConDataField, Array]:
    """Sum of all matching contacts: a wrench in the global frame about the forces' centre."""
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


def _unfilled(d: Data, ids: np.ndarray, fields: list[ConDataField], slots: int, reduce: int) -> Array:
    """What the sensors read where nothing can touch."""
    axis = {ConDataField.NORMAL: 0, ConDataField.TANGENT: 1} if reduce == NETFORCE else {}
    first = [np.eye(3)[axis[f]] if f in axis else np.zeros(SIZES[f]) for f in fields]
    row = np.concatenate(first)
    row = np.concatenate([row, np.zeros(len(row) * (slots - 1))])
    return jnp.asarray(np.tile(row, (len(ids), 1)), d.sensordata.dtype)
