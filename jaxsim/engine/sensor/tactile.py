"""The tactile sensor: pressure and slip velocity at each vertex of a mesh, from the geoms that its body touches."""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL, GeomType
from jaxsim.engine.collision.broad.pairs import candidates
from jaxsim.engine.structure.distance_field import PRIMITIVES, FieldGeoms, distance_fields, distance_of, octree_distance
from jaxsim.math.arrays import inner, matvec, matvec_t, take
from jaxsim.math.rotation import cross, quat_rotate
from jaxsim.math.safe import Array

MAX_DEPTH = 0.05  # scale of the depth in the pressure


def touchable(m: Model, weld: int) -> np.ndarray:
    """Return the static ids of the geoms that can touch geoms welded to a body and have a signed distance."""
    geom = candidates(m).geom
    is_welded = m.body_weldid[m.geom_bodyid[geom]] == weld
    others = np.unique(np.concatenate([geom[is_welded[:, 0], 1], geom[is_welded[:, 1], 0]]))
    no_octree = (m.geom_type[others] == GeomType.MESH) & (m.mesh_octadr[m.geom_dataid[others]] < 0)
    return others[~no_octree]


def tactile(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Compute the tactile sensors, flat: pressure at each vertex, and speeds along two tangents if it has a frame."""
    return jnp.concatenate([_readings(m, d, int(i)).reshape(-1) for i in ids])


def _readings(m: Model, d: Data, sensor: int) -> Array:
    """Compute the values (channels, vertices) of one sensor."""
    mesh, geom = int(m.sensor_objid[sensor]), int(m.sensor_refid[sensor])
    weld, count = int(m.body_weldid[m.geom_bodyid[geom]]), int(m.mesh_vertnum[mesh])
    nchannel = int(m.sensor_dim[sensor]) // count
    others = touchable(m, weld)
    if not len(others) or not d.efc.layout.ncontact:
        return jnp.zeros((nchannel, count), d.sensordata.dtype)
    first = int(m.mesh_vertadr[mesh])
    vertex = m.mesh_vert[first : first + count]
    point = d.geom_xpos[geom] + matvec(d.geom_xmat[geom].reshape(3, 3), vertex)
    depth = jnp.minimum(_distances(m, d, others, point), 0)
    depth = jnp.where(_touching(m, d, weld, others), depth, 0)
    has_frames = m.mesh_normalnum[mesh] == 3 * count
    start = int(m.mesh_normaladr[mesh])
    axes = m.mesh_normal[start : start + (3 if has_frames else 1) * count].reshape(count, -1, 3)
    axes = quat_rotate(m.mesh_quat[mesh], jnp.asarray(axes, point.dtype))
    pressure = jnp.sum(depth / jnp.maximum(MAX_DEPTH - depth, MINVAL), axis=1) * inner(axes[:, 0], axes[:, 0])
    channels = [pressure]
    if has_frames:
        slip = _velocity(m, d, weld, point)[:, None] - _velocity(m, d, m.geom_bodyid[others], take(d.geom_xpos, others))
        for axis in (1, 2):
            speed = jnp.abs(inner(slip, axes[:, None, axis]))
            channels.append(jnp.sum(jnp.where(depth != 0, speed, 0), axis=1))
    unused = [jnp.zeros_like(pressure)] * (nchannel - len(channels))
    return jnp.stack([*channels, *unused][:nchannel])


def _distances(m: Model, d: Data, geoms: np.ndarray, point: Array) -> Array:
    """Compute the signed distances (n, k) of global points (n, 3) from geoms (k,)."""
    parts, order = [], []
    for geom_type in np.unique(m.geom_type[geoms]):
        index = np.flatnonzero(m.geom_type[geoms] == geom_type)
        ids = geoms[index]
        mat = take(d.geom_xmat, ids).reshape(-1, 3, 3)
        local = matvec_t(mat, point[:, None] - take(d.geom_xpos, ids))
        if geom_type in PRIMITIVES:
            parts.append(PRIMITIVES[geom_type](take(m.geom_size, ids), local))
        elif geom_type == GeomType.MESH:
            parts.append(octree_distance(m, m.geom_dataid[ids], local))
        elif geom_type == GeomType.SDF and (m.geom_plugin[ids] >= 0).all():  # in the frame of the asset, as in MuJoCo
            mesh = m.geom_dataid[ids]
            local = quat_rotate(take(m.mesh_quat, mesh), local) + take(m.mesh_pos, mesh)
            parts.append(distance_of(distance_fields(m, ids), FieldGeoms(take(m.geom_size, ids), ids), local))
        else:
            raise UnsupportedError(
                f"tactile sensors that touch geoms of type {GeomType(geom_type).name.lower()} are not supported"
            )
        order.append(index)
    return take(jnp.concatenate(parts, axis=1).T, np.argsort(np.concatenate(order))).T


def _touching(m: Model, d: Data, weld: int, geoms: np.ndarray) -> Array:
    """Return whether each geom (k,) is in contact with a geom welded to a body."""
    real = jnp.arange(d.contact.geom.shape[0]) < d.ncon
    body = jnp.asarray(m.body_weldid[m.geom_bodyid])[jnp.maximum(d.contact.geom, 0)]
    is_welded = (body == weld) & real[:, None] & (d.contact.geom >= 0)
    other = d.contact.geom[:, ::-1]
    return jnp.any(is_welded[..., None] & (other[..., None] == geoms), axis=(0, 1))


def _velocity(m: Model, d: Data, body: int | np.ndarray, point: Array) -> Array:
    """Compute the linear velocities of global points fixed to bodies."""
    velocity = d.cvel[body]
    return velocity[..., 3:] + cross(velocity[..., :3], point - d.subtree_com[m.body_rootid[body]])
