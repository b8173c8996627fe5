"""Sensors of the acceleration stage: each function reads all sensors of its type, given their static ids."""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import ObjType, TrnType
from jaxsim.engine.dynamics.rne import contact_forces
from jaxsim.engine.kinematics import objects
from jaxsim.engine.kinematics.contact_jacobian import bodies_of_geoms
from jaxsim.engine.ray.cast import rays_meet_shapes
from jaxsim.math.arrays import add_at, matvec_t, take
from jaxsim.math.safe import Array
from jaxsim.math.spatial import shift_force
from jaxsim.native.rows import over_rows, rows_in_use


def touch(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the sum of normal forces on the site's body.

    Counts contacts whose outward normal, as a ray, hits the site's shape.
    """
    if not d.efc.layout.ncontact:
        return jnp.zeros(len(ids), d.sensordata.dtype)
    sites = m.sensor_objid[ids]
    kind, own = m.site_type[sites], m.site_bodyid[sites][:, None, None]

    def of_contacts(shared: tuple[Array, ...], rows: tuple[Array, ...]) -> tuple[tuple[()], Array]:
        (origin, mat, size), (normal, pos, force, body) = shared, rows
        on_body = body[None] == own
        outward, axes = jnp.where(on_body[..., 1:], -normal, normal), mat.reshape(-1, 1, 3, 3)
        hit = rays_meet_shapes(kind, size, matvec_t(axes, pos[None] - origin[:, None]), matvec_t(axes, outward))
        return (), jnp.where(on_body.any(-1) & (force > 0) & hit, force, 0).sum(1)

    used = rows_in_use(d.contact.efc_address >= 0)
    shared = take(d.site_xpos, sites), take(d.site_xmat, sites), take(m.site_size, sites)
    rows = d.contact.frame[:, :3], d.contact.pos, contact_forces(d)[:, 0], bodies_of_geoms(m, d)
    return over_rows(of_contacts, used, shared, rows)[1]


def accelerometer(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the linear acceleration of a site in its frame, including gravity."""
    objtypes = np.full(len(ids), ObjType.SITE)
    return objects.accelerations(m, d, objtypes, m.sensor_objid[ids], local=True)[:, 3:]


def _interaction(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Compute the torque and force between a site's body and its parent, at the site and in its frame: (k, 2, 3)."""
    sites = m.sensor_objid[ids]
    body = m.site_bodyid[sites]
    arm = take(d.site_xpos, sites) - take(d.subtree_com, m.body_rootid[body])
    wrench = shift_force(take(d.cfrc_int, body), -arm).reshape(-1, 2, 3)
    return matvec_t(take(d.site_xmat, sites).reshape(-1, 1, 3, 3), wrench)


def force(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the force between a site's body and its parent."""
    return _interaction(m, d, ids)[:, 1]


def torque(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the torque between a site's body and its parent."""
    return _interaction(m, d, ids)[:, 0]


def jointactfrc(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the force of all actuators at a joint."""
    return take(d.qfrc_actuator, m.jnt_dofadr[m.sensor_objid[ids]])


def tendonactfrc(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the force of all actuators at a tendon."""
    tendon = np.where(m.actuator_trntype == TrnType.TENDON, m.actuator_trnid[:, 0], -1)
    return take(add_at(tendon, d.actuator_force, m.ntendon), m.sensor_objid[ids])


def _frame_acceleration(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Compute the angular and linear acceleration (k, 6) of objects, global."""
    return objects.accelerations(m, d, m.sensor_objtype[ids], m.sensor_objid[ids])


def framelinacc(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the linear acceleration of an object, global, including gravity."""
    return _frame_acceleration(m, d, ids)[:, 3:]


def frameangacc(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the angular acceleration of an object, global."""
    return _frame_acceleration(m, d, ids)[:, :3]
