"""The rangefinder: rays from sites and through the pixels of cameras, all of a model's in one cast."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import ObjType, RayDataField
from jaxsim.engine.dynamics.camera import PERSPECTIVE, pixel_rays
from jaxsim.engine.ray.cast import cast, culled, report, visible
from jaxsim.math.arrays import inner, take
from jaxsim.math.safe import Array

# the columns of each field in the table of all that is known of a ray
COLUMNS = {
    RayDataField.DIST: (0,),
    RayDataField.DIR: (1, 2, 3),
    RayDataField.ORIGIN: (4, 5, 6),
    RayDataField.POINT: (7, 8, 9),
    RayDataField.NORMAL: (10, 11, 12),
    RayDataField.DEPTH: (13,),
}
WIDTH = 14


class Rays(NamedTuple):
    """The rays of all rangefinders, those of sites first.

    `sites` and `cams` (sensors' objects), `exclude` (n,) the body that each ray leaves out, `bounded` (n,) whether the
    reference casts it with the tests of mj_multiRay, `entries` where each number of the sensors stands in the table of
    all fields of all rays.
    """

    sites: np.ndarray
    cams: np.ndarray
    exclude: np.ndarray
    bounded: np.ndarray
    entries: np.ndarray


@per_structure
def _rays(m) -> dict[tuple[int, ...], Rays]:
    return {}


def rays_of(m: Model, ids: np.ndarray) -> Rays:
    """The rays of rangefinders, as static structure."""
    known = _rays(m)
    key = tuple(ids.tolist())
    if key not in known:
        known[key] = _make_rays(m, ids)
    return known[key]


def _make_rays(m: Model, ids: np.ndarray) -> Rays:
    at_site = m.sensor_objtype[ids] == ObjType.SITE
    sites, cams = m.sensor_objid[ids[at_site]], m.sensor_objid[ids[~at_site]]
    count = np.prod(m.cam_resolution[cams], axis=1, dtype=int)
    exclude = np.concatenate([m.site_bodyid[sites], np.repeat(m.cam_bodyid[cams], count)])
    bounded = np.concatenate([np.zeros(len(sites), bool), np.repeat(m.cam_projection[cams] == PERSPECTIVE, count)])
    number = np.where(at_site, 1, 0)
    number[~at_site] = count
    start = np.where(at_site, np.cumsum(at_site) - 1, len(sites) + np.cumsum(number * ~at_site) - number)
    entries = []
    for i, first, n in zip(ids, start, number, strict=True):
        bits = m.sensor_intprm[i, 0]
        columns = [column for field, where in COLUMNS.items() if bits & (1 << field) for column in where]
        entries.append(((first + np.arange(n))[:, None] * WIDTH + np.array(columns, int)).reshape(-1))
    return Rays(sites, cams, exclude, bounded, np.concatenate(entries))


def rangefinder(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Distance, direction, origin, point, normal and depth of rays, as each sensor asks, ray by ray."""
    rays = rays_of(m, ids)
    mat = take(d.site_xmat, rays.sites).reshape(-1, 3, 3)
    origin, way = take(d.site_xpos, rays.sites), mat[:, :, 2]
    axis = -way
    if len(rays.cams):
        resolution = m.cam_resolution[rays.cams]
        from_cameras = pixel_rays(m, d, rays.cams, resolution, rendered=False)
        owner = np.repeat(rays.cams, np.prod(resolution, axis=1, dtype=int))
        back = take(d.cam_xmat, owner).reshape(-1, 3, 3)[:, :, 2]
        eye = jnp.concatenate([origin, take(d.cam_xpos, owner)])
        origin, way = (jnp.concatenate(pair) for pair in zip((origin, way), from_cameras, strict=True))
        axis = jnp.concatenate([axis, back])
    else:
        eye = origin
    geoms = visible(m)
    able = True
    if rays.bounded.any():
        able = ~rays.bounded[:, None] | culled(m, d, geoms, origin, way, np.inf)
    dist, _, normal = report(cast(m, d, origin, way, geoms, able, rays.exclude))
    hit = (dist >= 0)[:, None]
    point = origin + dist[:, None] * way
    depth = jnp.where(hit, -inner(point - eye, axis)[:, None], -1)
    everything = [dist[:, None], jnp.where(hit, way, 0), origin, jnp.where(hit, point, 0), normal, depth]
    return take(jnp.concatenate(everything, axis=1).reshape(-1), rays.entries)
