"""Sensors of distance, normal and segment between two geoms or two bodies."""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import ObjType, SensorType
from jaxsim.engine.collision.distance import geom_distance
from jaxsim.math.arrays import take, take_or_zero
from jaxsim.math.safe import Array, normalize

# columns of a sensor's values in the table of distance, normal and segment
COLUMNS = {SensorType.GEOMDIST: (0,), SensorType.GEOMNORMAL: (1, 2, 3), SensorType.GEOMFROMTO: (4, 5, 6, 7, 8, 9)}
NCOLUMNS = 10


def _geoms(m: Model, objtype: int, index: int) -> np.ndarray:
    """Return the static ids of the geoms of a body, or the geom itself."""
    if objtype == ObjType.BODY:
        return m.body_geomadr[index] + np.arange(m.body_geomnum[index])
    return np.array([index])


@per_structure
def _pairs(m) -> tuple[np.ndarray, ...]:
    """Return the pairs of geoms (p, 2) of each distance sensor, which reads the nearest pair."""
    measures_distance = np.isin(m.sensor_type, tuple(COLUMNS))
    return tuple(
        np.stack(
            np.meshgrid(
                _geoms(m, m.sensor_objtype[i], m.sensor_objid[i]),
                _geoms(m, m.sensor_reftype[i], m.sensor_refid[i]),
                indexing="ij",
            ),
            axis=-1,
        ).reshape(-1, 2)
        if measures_distance[i]
        else np.zeros((0, 2), int)
        for i in range(m.nsensor)
    )


def distances(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Compute the distance (at most the cutoff), normal and segment (zero beyond it), by the type of each sensor.

    Flat.
    """
    pairs = [_pairs(m)[i] for i in ids]
    npair = np.array([len(p) for p in pairs])
    cutoff = take(m.sensor_cutoff, ids)
    all_pairs = np.concatenate(pairs)
    if not len(all_pairs):
        dist, fromto = cutoff, jnp.zeros((len(ids), 6), d.sensordata.dtype)
    else:
        dist, fromto = geom_distance(m, d, *all_pairs.T, take(cutoff, np.repeat(np.arange(len(ids)), npair)))
        slot = np.arange(npair.max())
        index = np.where(slot < npair[:, None], (np.cumsum(npair) - npair)[:, None] + slot, -1)
        dist_of_pair = jnp.where(index >= 0, take_or_zero(dist, index), jnp.inf)
        best = jnp.argmin(dist_of_pair, axis=1)
        nearest = jnp.take_along_axis(jnp.asarray(np.maximum(index, 0)), best[:, None], axis=1)[:, 0]
        near = jnp.min(dist_of_pair, axis=1) < cutoff
        dist = jnp.where(near, dist[nearest], cutoff)
        fromto = jnp.where(near[:, None], fromto[nearest], 0)
    normal = normalize(fromto[:, 3:] - fromto[:, :3])[0]
    table = jnp.concatenate([dist[:, None], normal, fromto], axis=1)
    columns = [
        k * NCOLUMNS + np.array(COLUMNS[SensorType(sensor_type)]) for k, sensor_type in enumerate(m.sensor_type[ids])
    ]
    return take(table.reshape(-1), np.concatenate(columns))
