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

COLUMNS = {
    ConDataField.FOUND: [0],
    ConDataField.FORCE: [1, 2, 3],
    ConDataField.TORQUE: [4, 5, 6],
    ConDataField.DIST: [7],
    ConDataField.POS: [8, 9, 10],
    ConDataField.NORMAL: [11, 12, 13],
    ConDataField.TANGENT: [14, 15, 16],
}
NCOLUMN = 17  # of all fields
NO_REDUCTION, MINDIST, MAXFORCE, NETFORCE = range(4)  # the attribute `reduce`


@per_structure
def _matching_geoms(m) -> tuple[np.ndarray, np.ndarray]:
    """For both objects of every sensor, which geoms belong to it: (nsensor, ngeom + 1), the last column for no geom."""
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
    """Bodies of the subtree of a body."""
    in_subtree = np.arange(m.nbody) == root
    for b in range(root + 1, m.nbody):
        in_subtree[b] = in_subtree[m.body_parentid[b]]
    return np.flatnonzero(in_subtree)


def contact(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Values of all contact sensors, flat (sum of their dimensions,), sensor by sensor and slot by slot.

    All sensors have all fields at first: the program does not grow with the kinds of sensors.
    """
    net = m.sensor_intprm[ids, 1] == NETFORCE
    slots = min(max(_slots(m, ids[~net]), default=0), d.efc.layout.ncontact)
    parts = [jnp.zeros(1, d.qpos.dtype)]
    if net.any():
        parts.insert(0, _sums(m, d, ids[net]).reshape(-1))
    if slots:
        parts.insert(0, _selected(m, d, ids[~net], slots).reshape(-1))
    return take(jnp.concatenate(parts), _places(m, ids, net, slots))


def _columns(m: Model, i: int) -> np.ndarray:
    """Columns of the fields of a sensor among those of all fields."""
    return np.concatenate([COLUMNS[f] for f in ConDataField if m.sensor_intprm[i, 0] & (1 << f)])


def _slots(m: Model, ids: np.ndarray) -> list[int]:
    return [int(m.sensor_dim[i]) // len(_columns(m, i)) for i in ids]


def _places(m: Model, ids: np.ndarray, net: np.ndarray, slots: int) -> np.ndarray:
    """Places of the sensors' values in the slots of those that select, the sums of the others, and a zero."""
    filled = np.where(net, 1, slots)
    width = NCOLUMN * filled
    order = np.argsort(net, kind="stable")
    first = np.empty_like(width)
    first[order] = np.cumsum(width[order]) - width[order]
    out = []
    for i, count, at, there in zip(ids, _slots(m, ids), first, filled, strict=True):
        slot = np.arange(count)[:, None]
        out.append(np.where(slot < there, at + NCOLUMN * slot + _columns(m, i), width.sum()).ravel())
    return np.concatenate(out)


def _contact_signs(m: Model, d: Data, ids: np.ndarray) -> Array:
    """+1 where a contact (n) is between a sensor's (k) objects in order, -1 in reverse order, else 0: (k, n)."""
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


def _wrenches(d: Data) -> Array:
    return contact_forces(d) if d.efc.layout.ncontact else jnp.zeros((0, 6), d.qpos.dtype)


def _selected(m: Model, d: Data, ids: np.ndarray, slots: int) -> Array:
    """All fields of the first contacts (k, slots, NCOLUMN) of sensors that select, by depth, by force or in order."""
    sign, wrench = _contact_signs(m, d, ids), _wrenches(d)
    found = (sign != 0).sum(1)
    by_force = -(wrench * wrench)[:, :3].sum(1)
    criteria = jnp.stack([jnp.zeros_like(by_force), d.contact.dist, by_force])
    criterion = take(criteria, m.sensor_intprm[ids, 1])
    index = jnp.argsort(jnp.where(sign != 0, criterion, jnp.inf), axis=1, stable=True)[:, :slots]
    one = jnp.ones((*index.shape, 1), wrench.dtype)
    side = jnp.where(jnp.take_along_axis(sign, index, axis=1) < 0, -1.0, 1.0).astype(wrench.dtype)[..., None]
    both = jnp.concatenate([wrench, d.contact.dist[:, None], d.contact.pos, d.contact.frame[:, :6]], axis=1)[index]
    signs = jnp.concatenate([one, one, side] * 2 + [one] * 4 + [side] * 6, axis=-1)
    count = jnp.broadcast_to(found[:, None, None], one.shape).astype(wrench.dtype)
    filled = (jnp.arange(slots) < found[:, None])[..., None]
    return jnp.where(filled, jnp.concatenate([count, both * signs], axis=-1), 0)


def _sums(m: Model, d: Data, ids: np.ndarray) -> Array:
    """All fields (k, NCOLUMN) of sums of matching contacts: a wrench in the global frame about the weighted centre."""
    sign, wrench = _contact_signs(m, d, ids), _wrenches(d)
    weight = jnp.abs(sign) * norm(wrench[:, :3])
    total = weight.sum(1, keepdims=True)
    point = (weight[..., None] * d.contact.pos).sum(1) / jnp.maximum(total, MINVAL)
    frame = d.contact.frame.reshape(-1, 3, 3)
    force, torque = (einsum("nij,ni->nj", frame, part) for part in (wrench[:, :3], wrench[:, 3:]))
    signed = sign.astype(force.dtype)[..., None]
    arm = d.contact.pos[None] - point[:, None]
    moment = torque + cross(arm, jnp.broadcast_to(force, arm.shape))
    found = (sign != 0).sum(1, keepdims=True).astype(force.dtype)
    axes = jnp.ones_like(total) * np.array([1.0, 0, 0, 0, 1.0, 0], force.dtype)
    return jnp.concatenate([found, (signed * force).sum(1), (signed * moment).sum(1), 0 * total, point, axes], axis=1)
