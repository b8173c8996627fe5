"""Sensors of the position stage: each function reads all sensors of its type, given their static ids."""

import functools
import operator

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL, GeomType, ObjType
from jaxsim.engine.dynamics import energy
from jaxsim.engine.kinematics import objects
from jaxsim.engine.structure import tables
from jaxsim.math.arrays import matvec_t, take
from jaxsim.math.rotation import quat_conj, quat_mul, quat_normalize
from jaxsim.math.safe import Array, divide, xp_of


def magnetometer(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the magnetic field in the site's frame."""
    return matvec_t(take(d.site_xmat, m.sensor_objid[ids]).reshape(-1, 3, 3), m.opt.magnetic)


def jointpos(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the position of a hinge or a slide."""
    return take(d.qpos, m.jnt_qposadr[m.sensor_objid[ids]])


def ballquat(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the unit quaternion of a ball joint."""
    return quat_normalize(take(d.qpos, tables.joint_quat(m)[m.sensor_objid[ids]]))


def references(m: Model, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which sensors have a reference object, and types and ids of these; of the world for the others."""
    has_ref = m.sensor_refid[ids] >= 0
    return has_ref, np.where(has_ref, m.sensor_reftype[ids], ObjType.XBODY), np.where(has_ref, m.sensor_refid[ids], 0)


def _in_reference(m: Model, d: Data, ids: np.ndarray, vector: Array) -> Array:
    """Transform global vectors to the frames of the sensors' reference objects, for sensors that have one."""
    has_ref, *refs = references(m, ids)
    if not has_ref.any():
        return vector
    return xp_of(vector).where(has_ref[:, None], matvec_t(objects.rotations(m, d, *refs), vector), vector)


def framepos(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the position of an object, in the reference object's frame if there is one."""
    xpos = objects.positions(m, d, m.sensor_objtype[ids], m.sensor_objid[ids])
    has_ref, *refs = references(m, ids)
    if has_ref.any():
        xpos = xp_of(xpos).where(has_ref[:, None], xpos - objects.positions(m, d, *refs), xpos)
    return _in_reference(m, d, ids, xpos)


def framequat(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the orientation of an object, relative to the reference object if there is one."""
    quat = objects.quaternions(m, d, m.sensor_objtype[ids], m.sensor_objid[ids])
    has_ref, *refs = references(m, ids)
    if has_ref.any():
        base = objects.quaternions(m, d, *refs)
        quat = xp_of(quat).where(has_ref[:, None], quat_mul(quat_conj(base), quat), quat)
    return quat


def frame_axis(m: Model, d: Data, ids: np.ndarray, k: int) -> Array:
    """Return the axis k of an object's frame, in the reference object's frame if there is one."""
    axis = objects.rotations(m, d, m.sensor_objtype[ids], m.sensor_objid[ids])[:, :, k]
    return _in_reference(m, d, ids, axis)


def insidesite(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return one where an object's origin is inside a site's shape, else zero."""
    xp = xp_of(d.site_xpos)
    objtypes, objs, sites = m.sensor_objtype[ids], m.sensor_objid[ids], m.sensor_refid[ids]
    point = objects.positions(m, d, objtypes, objs)
    is_body = (objtypes == ObjType.BODY) & (objs > 0)
    if is_body.any():
        body_id = np.where(is_body, objs, 0)
        massless = (take(m.body_mass, body_id) < MINVAL) & (take(m.body_subtreemass, body_id) >= MINVAL)
        point = xp.where((is_body & massless)[:, None], take(d.subtree_com, body_id), point)
    mat = take(d.site_xmat, sites).reshape(-1, 3, 3)
    local = matvec_t(mat, point - take(d.site_xpos, sites))
    return inside(m.site_type[sites], take(m.site_size, sites), local).astype(d.sensordata.dtype)


def inside(types: np.ndarray, size: Array, p: Array) -> Array:
    """Return whether points (k, ..., 3), in the frames of shapes of static types (k,) and sizes (k, 3), are inside."""
    xp = xp_of(p, size)
    types, size = (x.reshape(len(types), *(1,) * (p.ndim - 2), *x.shape[1:]) for x in (types, size))
    radial, z = p[..., 0] ** 2 + p[..., 1] ** 2, p[..., 2]
    radius, half = size[..., 0], size[..., 1]
    beyond = xp.maximum(abs(z) - half, 0)
    tests = {
        GeomType.SPHERE: (p * p).sum(-1) < radius**2,
        GeomType.CAPSULE: radial + beyond**2 < radius**2,
        GeomType.ELLIPSOID: (divide(p, size) ** 2).sum(-1) < 1,
        GeomType.CYLINDER: (abs(z) < half) & (radial < radius**2),
        GeomType.BOX: (abs(p) < size).all(-1),
        GeomType.PLANE: z < 0,
    }
    return functools.reduce(operator.or_, ((types == t) & test for t, test in tests.items()))


def camprojection(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return pixel coordinates of a site in a camera's image."""
    xp = xp_of(d.cam_xpos, m.cam_fovy)
    sites, cams = m.sensor_objid[ids], m.sensor_refid[ids]
    mat = take(d.cam_xmat, cams).reshape(-1, 3, 3)
    p = matvec_t(mat, take(d.site_xpos, sites) - take(d.cam_xpos, cams))
    resolution = m.cam_resolution[cams].astype(p.dtype)
    sensor, intrinsic = take(m.cam_sensorsize, cams), take(m.cam_intrinsic, cams)
    by_angle = 0.5 / xp.tan(take(m.cam_fovy, cams) * (np.pi / 360)) * resolution[:, 1]
    physical = (sensor[:, 0] != 0) & (sensor[:, 1] != 0)
    focal = xp.where(physical[:, None], divide(intrinsic[:, :2], sensor) * resolution, by_angle[:, None])
    depth = p[:, 2]
    tiny = abs(depth) < MINVAL
    depth = xp.where(tiny, xp.where(depth < 0, -MINVAL, MINVAL), depth)
    centre = resolution / 2
    x = (-focal[:, 0] * p[:, 0] + centre[:, 0] * p[:, 2]) / depth
    y = (focal[:, 1] * p[:, 1] + centre[:, 1] * p[:, 2]) / depth
    return xp.stack([x, y], axis=1)


def e_potential(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the potential energy."""
    return xp_of(d.qpos).broadcast_to(energy.potential(m, d), (len(ids),))


def e_kinetic(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the kinetic energy."""
    return xp_of(d.qpos).broadcast_to(energy.kinetic(m, d), (len(ids),))


def clock(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return simulation time."""
    return xp_of(d.time).broadcast_to(d.time, (len(ids),))
