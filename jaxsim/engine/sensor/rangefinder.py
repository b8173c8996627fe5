"""The rangefinder: rays from sites and through the pixels of cameras, all of a model's in one cast."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import ObjType, RayDataField
from jaxsim.engine.kinematics.camera import PERSPECTIVE, pixel_rays
from jaxsim.engine.ray.cast import cast, mujoco_results, visible, within_bounds
from jaxsim.math.arrays import inner, take
from jaxsim.math.safe import Array

# numbers of each field, in the order of their columns in the table of all fields of a ray
RAY_FIELDS = {
    RayDataField.DIST: 1,
    RayDataField.DIR: 3,
    RayDataField.ORIGIN: 3,
    RayDataField.POINT: 3,
    RayDataField.NORMAL: 3,
    RayDataField.DEPTH: 1,
}


class RangefinderRays(NamedTuple):
    """The rays of all rangefinders, sites first.

    `sites` and `cams` are the sensors' objects; `exclude` (n,) the body that is invisible to each ray; `bounded` (n,)
    the mask of rays that MuJoCo casts with the bound tests of mj_multiRay; `entries` the index of each sensor value in
    the flat table of all fields of all rays.
    """

    sites: np.ndarray
    cams: np.ndarray
    exclude: np.ndarray
    bounded: np.ndarray
    entries: np.ndarray


@per_structure
def rays_of(m, sensors: tuple[int, ...]) -> RangefinderRays:
    """Return the rays of rangefinders, as static structure."""
    ids = np.array(sensors)
    at_site = m.sensor_objtype[ids] == ObjType.SITE
    sites, cams = m.sensor_objid[ids[at_site]], m.sensor_objid[ids[~at_site]]
    count = np.prod(m.cam_resolution[cams], axis=1, dtype=int)
    exclude = np.concatenate([m.site_bodyid[sites], np.repeat(m.cam_bodyid[cams], count)])
    bounded = np.concatenate([np.zeros(len(sites), bool), np.repeat(m.cam_projection[cams] == PERSPECTIVE, count)])
    nray = np.where(at_site, 1, 0)
    nray[~at_site] = count
    start = np.where(at_site, np.cumsum(at_site) - 1, len(sites) + np.cumsum(nray * ~at_site) - nray)
    entries, ncolumn = [], sum(RAY_FIELDS.values())
    for i, first, n in zip(ids, start, nray, strict=True):
        bits = m.sensor_intprm[i, 0]
        columns = np.flatnonzero([bits & (1 << field) for field, size in RAY_FIELDS.items() for _ in range(size)])
        entries.append(((first + np.arange(n))[:, None] * ncolumn + columns).reshape(-1))
    return RangefinderRays(sites, cams, exclude, bounded, np.concatenate(entries))


def rangefinder(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the distance, direction, origin, point, normal and depth of rays, flat.

    The fields of each sensor come ray by ray.
    """
    rays = rays_of(m, tuple(ids.tolist()))
    mat = take(d.site_xmat, rays.sites).reshape(-1, 3, 3)
    origin, direction = take(d.site_xpos, rays.sites), mat[:, :, 2]
    axis = -direction
    if len(rays.cams):
        resolution = m.cam_resolution[rays.cams]
        from_cameras = pixel_rays(m, d, rays.cams, resolution)
        owner = np.repeat(rays.cams, np.prod(resolution, axis=1, dtype=int))
        camera_axis = take(d.cam_xmat, owner).reshape(-1, 3, 3)[:, :, 2]
        eye = jnp.concatenate([origin, take(d.cam_xpos, owner)])
        origin, direction = (jnp.concatenate(pair) for pair in zip((origin, direction), from_cameras, strict=True))
        axis = jnp.concatenate([axis, camera_axis])
    else:
        eye = origin
    geoms = visible(m)
    allowed = True
    if rays.bounded.any():
        allowed = ~rays.bounded[:, None] | within_bounds(m, d, geoms, origin, direction, np.inf)
    dist, _, normal = mujoco_results(cast(m, d, origin, direction, geoms, allowed, rays.exclude))
    hit = (dist >= 0)[:, None]
    point = origin + dist[:, None] * direction
    depth = jnp.where(hit, -inner(point - eye, axis)[:, None], -1)
    table = [dist[:, None], jnp.where(hit, direction, 0), origin, jnp.where(hit, point, 0), normal, depth]
    return take(jnp.concatenate(table, axis=1).reshape(-1), rays.entries)
