"""Frames, velocities and accelerations of bodies (inertial or regular frame), geoms, sites and cameras, mixed.

The kinds and ids of the objects are known while tracing.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import ObjType
from jaxsim.interface.public import public
from jaxsim.math.arrays import assemble, matvec, matvec_t, take
from jaxsim.math.rotation import cross, quat_mul, quat_to_mat
from jaxsim.math.safe import Array, xp_of
from jaxsim.math.spatial import join, shift_motion

KINDS = (ObjType.BODY, ObjType.XBODY, ObjType.GEOM, ObjType.SITE, ObjType.CAMERA)


def _by_kind(kinds: np.ndarray, ids: np.ndarray, get: Callable[[ObjType, np.ndarray], Array]) -> Array:
    """Call `get(kind, ids)` for each kind, and return the rows in the order of the objects."""
    parts = []
    for kind in KINDS:
        which = np.flatnonzero(kinds == kind)
        if len(which):
            parts.append((which, get(kind, ids[which])))
    if len(parts) == 1:
        return parts[0][1]
    return assemble(parts, len(ids), parts[0][1])


def bodies(m: Model, kinds: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return the body of each object."""
    out = np.array(ids)
    for kind, table in ((ObjType.GEOM, m.geom_bodyid), (ObjType.SITE, m.site_bodyid), (ObjType.CAMERA, m.cam_bodyid)):
        out[kinds == kind] = table[ids[kinds == kind]]
    return out


def positions(m: Model, d: Data, kinds: np.ndarray, ids: np.ndarray) -> Array:
    """Return the global positions (k, 3)."""
    table = {
        ObjType.BODY: d.xipos,
        ObjType.XBODY: d.xpos,
        ObjType.GEOM: d.geom_xpos,
        ObjType.SITE: d.site_xpos,
        ObjType.CAMERA: d.cam_xpos,
    }
    return _by_kind(kinds, ids, lambda kind, which: take(table[kind], which))


def rotations(m: Model, d: Data, kinds: np.ndarray, ids: np.ndarray) -> Array:
    """Return the rotation matrices (k, 3, 3)."""
    table = {
        ObjType.BODY: d.ximat,
        ObjType.XBODY: d.xmat,
        ObjType.GEOM: d.geom_xmat,
        ObjType.SITE: d.site_xmat,
        ObjType.CAMERA: d.cam_xmat,
    }
    return _by_kind(kinds, ids, lambda kind, which: take(table[kind], which)).reshape(-1, 3, 3)


def quaternions(m: Model, d: Data, kinds: np.ndarray, ids: np.ndarray) -> Array:
    """Return the global quaternions (k, 4)."""
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


def point_velocities(m: Model, d: Data, body: np.ndarray, pos: Array, mat: Array | None = None) -> Array:
    """Compute the velocity (k, 6), angular first, at points (k, 3) of bodies.

    It is in the frames `mat` (k, 3, 3), or global without them.
    """
    v = shift_motion(take(d.cvel, body), pos - take(d.subtree_com, m.body_rootid[body]))
    return v if mat is None else join(matvec_t(mat, v[:, :3]), matvec_t(mat, v[:, 3:]))


def velocities(m: Model, d: Data, kinds: np.ndarray, ids: np.ndarray, local: bool = False) -> Array:
    """Compute velocities (k, 6), angular first, in global frames or in the objects' own."""
    mat = rotations(m, d, kinds, ids) if local else None
    return point_velocities(m, d, bodies(m, kinds, ids), positions(m, d, kinds, ids), mat)


def accelerations(m: Model, d: Data, kinds: np.ndarray, ids: np.ndarray, local: bool = False) -> Array:
    """Compute accelerations (k, 6), angular first, gravity included; zero for objects welded to the world.

    Needs `cacc`.
    """
    body = bodies(m, kinds, ids)
    pos = positions(m, d, kinds, ids)
    acc = shift_motion(take(d.cacc, body), pos - take(d.subtree_com, m.body_rootid[body]))
    vel = point_velocities(m, d, body, pos)
    acc = join(acc[:, :3], acc[:, 3:] + cross(vel[:, :3], vel[:, 3:]))
    acc = xp_of(acc).where((m.body_weldid[body] != 0)[:, None], acc, 0)
    if not local:
        return acc
    mat = rotations(m, d, kinds, ids)
    return join(matvec_t(mat, acc[:, :3]), matvec_t(mat, acc[:, 3:]))


@public(static=("objtype", "objid"))
def object_velocity(m: Model, d: Data, objtype: int, objid: int, flg_local: bool = False) -> Array:
    """Compute the velocity (6,), angular first, of a body, geom, site or camera, in the global or its own frame.

    `objtype` is an mjtObj (`jaxsim.ObjType`) and `objid` an id, both known while tracing. Needs `com_vel`. Source:
    mj_objectVelocity.
    """
    return velocities(m, d, np.array([objtype]), np.array([objid]), bool(flg_local))[0]


@public(static=("objtype", "objid"))
def object_acceleration(m: Model, d: Data, objtype: int, objid: int, flg_local: bool = False) -> Array:
    """Compute the acceleration (6,), angular first and with gravity, of an object given as in `object_velocity`.

    Needs `rne_post_constraint`. Source: mj_objectAcceleration.
    """
    return accelerations(m, d, np.array([objtype]), np.array([objid]), bool(flg_local))[0]


@public
def local2global(m: Model, d: Data, pos: Array, quat: Array, body: Any) -> tuple[Array, Array]:
    """Transform a pose in a body's frame to the global position (3,) and rotation matrix (3, 3): mj_local2Global.

    `body` is an id, a number or traced.
    """
    xpos = d.xpos[body] + matvec(d.xmat[body].reshape(3, 3), jnp.asarray(pos, d.qpos.dtype))
    return xpos, quat_to_mat(quat_mul(d.xquat[body], jnp.asarray(quat, d.qpos.dtype)))
