"""Frames of the objects that sensors speak of: bodies (inertial or regular frame), geoms, sites and cameras, mixed."""

from collections.abc import Callable

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import ObjType
from jaxsim.engine.support import assemble, object_velocity
from jaxsim.math.arrays import matvec_t, take
from jaxsim.math.rotation import cross, quat_mul
from jaxsim.math.safe import Array, xp_of
from jaxsim.math.spatial import join, shift_motion

KINDS = (ObjType.BODY, ObjType.XBODY, ObjType.GEOM, ObjType.SITE, ObjType.CAMERA)


def _by_kind(kinds: np.ndarray, ids: np.ndarray, get: Callable[[ObjType, np.ndarray], Array]) -> Array:
    """Rows of `get(kind, ids)` put together in the order of the objects."""
    parts = []
    for kind in KINDS:
        which = np.flatnonzero(kinds == kind)
        if len(which):
            parts.append((which, get(kind, ids[which])))
    if len(parts) == 1:
        return parts[0][1]
    return assemble(parts, len(ids), parts[0][1])


def bodies(m: Model, kinds: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The body of each object."""
    out = np.array(ids)
    for kind, table in ((ObjType.GEOM, m.geom_bodyid), (ObjType.SITE, m.site_bodyid), (ObjType.CAMERA, m.cam_bodyid)):
        out[kinds == kind] = table[ids[kinds == kind]]
    return out


def positions(m: Model, d: Data, kinds: np.ndarray, ids: np.ndarray) -> Array:
    """Global positions (k, 3)."""
    table = {
        ObjType.BODY: d.xipos,
        ObjType.XBODY: d.xpos,
        ObjType.GEOM: d.geom_xpos,
        ObjType.SITE: d.site_xpos,
        ObjType.CAMERA: d.cam_xpos,
    }
    return _by_kind(kinds, ids, lambda kind, which: take(table[kind], which))


def rotations(m: Model, d: Data, kinds: np.ndarray, ids: np.ndarray) -> Array:
    """Rotation matrices (k, 3, 3)."""
    table = {
        ObjType.BODY: d.ximat,
        ObjType.XBODY: d.xmat,
        ObjType.GEOM: d.geom_xmat,
        ObjType.SITE: d.site_xmat,
        ObjType.CAMERA: d.cam_xmat,
    }
    return _by_kind(kinds, ids, lambda kind, which: take(table[kind], which)).reshape(-1, 3, 3)


def quaternions(m: Model, d: Data, kinds: np.ndarray, ids: np.ndarray) -> Array:
    """Global quaternions (k, 4)."""
    table = {
        ObjType.BODY: m.body_iquat,
        ObjType.GEOM: m.geom_quat,
        ObjType.SITE: m.site_quat,
        ObjType.CAMERA: m.cam_quat,
    }

    def get(kind: ObjType, which: np.ndarray) -> Array:
        body = take(d.xquat, bodies(m, np.full(len(which), kind), which))
        return body if kind == ObjType.XBODY else quat_mul(body, take(table[kind], which))

    return _by_kind(kinds, ids, get)


def velocities(m: Model, d: Data, kinds: np.ndarray, ids: np.ndarray, local: bool = False) -> Array:
    """Velocities (k, 6), angular first, in global frames or in the objects' own."""
    mat = rotations(m, d, kinds, ids) if local else None
    return object_velocity(m, d, bodies(m, kinds, ids), positions(m, d, kinds, ids), mat)


def accelerations(m: Model, d: Data, kinds: np.ndarray, ids: np.ndarray, local: bool = False) -> Array:
    """Accelerations (k, 6), angular first, gravity included; zero for objects welded to the world. Needs `cacc`."""
    body = bodies(m, kinds, ids)
    pos = positions(m, d, kinds, ids)
    acc = shift_motion(take(d.cacc, body), pos - take(d.subtree_com, m.body_rootid[body]))
    vel = object_velocity(m, d, body, pos)
    acc = join(acc[:, :3], acc[:, 3:] + cross(vel[:, :3], vel[:, 3:]))
    acc = xp_of(acc).where((m.body_weldid[body] != 0)[:, None], acc, 0)
    if not local:
        return acc
    mat = rotations(m, d, kinds, ids)
    return join(matvec_t(mat, acc[:, :3]), matvec_t(mat, acc[:, 3:]))
