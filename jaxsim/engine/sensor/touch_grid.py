"""The sensor plugin `mujoco.sensor.touch_grid`: contact forces on a body, binned by direction as seen from a site."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.plugins import config
from jaxsim.engine.dynamics.rne import contact_forces
from jaxsim.engine.kinematics.contact_jacobian import bodies_of_geoms
from jaxsim.math.arrays import einsum, matvec_t
from jaxsim.math.safe import Array, arctan2, norm

TO_NORMAL_FIRST = np.array([2, 0, 1, 5, 3, 4], np.int32)  # indices of the channels in a wrench in the site's frame


class TouchGridConfig(NamedTuple):
    """Configuration of an instance: channels, bins across and up, and the edges of the bins (radians)."""

    nchannel: int
    size: tuple[int, int]
    edges: tuple[np.ndarray, np.ndarray]


def _numbers(text: str) -> list[float]:
    """Parse the numbers in a text."""
    return [float(word) for word in text.split()]


def touch_grid_config(m: Model, instance: int) -> TouchGridConfig:
    """Read the configuration of a plugin instance. Its settings are in range: the compiler checks them."""
    given = config(m, instance)
    nchannel = int(float(given["nchannel"] or 0)) or 1
    size = [int(x) for x in _numbers(given["size"])]
    fov, gamma = _numbers(given["fov"]), float(given["gamma"] or 0)
    across, up = (_edges(n, angle, gamma) for n, angle in zip(size, fov, strict=True))
    return TouchGridConfig(nchannel, (size[0], size[1]), (across, up))


def _edges(n: int, angle: float, gamma: float) -> np.ndarray:
    """Return the edges of n bins from -angle to angle (degrees), concentrated at the middle by gamma; in radians."""
    linear = -1 + 2 / n * np.arange(n + 1)
    return np.deg2rad(angle) * (gamma * linear**5 + (1 - gamma) * linear)


def touch_grid(m: Model, d: Data, sensor: int) -> Array:
    """Sum contact forces (nchannel * rows * columns) on the site's body, in the site's frame.

    Channels are the normal force, two tangential forces and three torques; the normal force is the component along the
    site's z axis. A contact counts in the bin of its direction from the site.
    """
    grid = touch_grid_config(m, int(m.sensor_plugin[sensor]))
    nx, ny = grid.size
    if not d.efc.layout.ncontact:
        return jnp.zeros(grid.nchannel * nx * ny, d.sensordata.dtype)
    site = int(m.sensor_objid[sensor])
    parent = int(m.body_weldid[m.site_bodyid[site]])
    real = jnp.arange(d.contact.geom.shape[0], dtype=jnp.int32) < d.ncon
    body = bodies_of_geoms(m, d)
    on_body = real & jnp.any((jnp.asarray(m.body_weldid)[body] == parent) & (body >= 0), axis=1)
    sign = jnp.where(parent < jnp.max(body, axis=1), -1, 1)
    mat = d.site_xmat[site].reshape(3, 3)
    frame = d.contact.frame.reshape(-1, 3, 3)
    force = contact_forces(d).reshape(-1, 2, 3)
    in_site = matvec_t(mat, matvec_t(frame[:, None], force)).reshape(-1, 6) * sign[:, None]
    channels = in_site[:, TO_NORMAL_FIRST[: grid.nchannel]]
    x, y, z = matvec_t(mat, d.contact.pos - d.site_xpos[site]).T
    azimuth, elevation = arctan2(x, -z), arctan2(y, norm(jnp.stack([x, z], axis=-1)))
    across = _in_bins(azimuth, grid.edges[0]) & on_body[:, None]
    up = _in_bins(elevation, grid.edges[1])
    return einsum("kc,ky,kx->cyx", channels, up.astype(x.dtype), across.astype(x.dtype)).reshape(-1)


def _in_bins(x: Array, edges: np.ndarray) -> Array:
    """Return whether numbers (k,) are in each bin (k, n): above its lower edge and up to its upper edge."""
    return (x[:, None] > edges[:-1].astype(x.dtype)) & (x[:, None] <= edges[1:].astype(x.dtype))


def plugin(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Compute the plugin sensors, flat; among sensors that share an instance only the first is nonzero."""
    values = []
    for i in ids:
        shared = np.flatnonzero(m.sensor_plugin == m.sensor_plugin[i])[0] != i
        zeros = jnp.zeros(int(m.sensor_dim[i]), d.sensordata.dtype)
        values.append(zeros if shared else touch_grid(m, d, int(i)))
    return jnp.concatenate(values)
