"""Sensors of the distance between two geoms or two bodies: how far, in which direction, between which points."""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import ObjType, SensorType
from jaxsim.engine.collision.distance import geom_distance
from jaxsim.math.arrays import take, take_or_zero
from jaxsim.math.safe import Array, normalize

PARTS = {SensorType.GEOMDIST: (0,), SensorType.GEOMNORMAL: (1, 2, 3), SensorType.GEOMFROMTO: (4, 5, 6, 7, 8, 9)}
WIDTH = 10


def _geoms(m: Model, kind: int, index: int) -> np.ndarray:
    if kind == ObjType.BODY:
        return m.body_geomadr[index] + np.arange(m.body_geomnum[index])
    return np.array([index])


@per_structure
def _pairs(m) -> tuple[np.ndarray, ...]:
    """For each sensor that measures distances: the pairs of geoms (p, 2) to try."""
    kinds = np.isin(m.sensor_type, tuple(PARTS))
    return tuple(
        np.stack(
            np.meshgrid(
                _geoms(m, m.sensor_objtype[i], m.sensor_objid[i]),
                _geoms(m, m.sensor_reftype[i], m.sensor_refid[i]),
                indexing="ij",
            ),
            axis=-1,
        ).reshape(-1, 2)
        if kinds[i]
        else np.zeros((0, 2), int)
        for i in range(m.nsensor)
    )


def distances(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Distance (at most the cutoff), normal and segment (zero beyond it) as each sensor asks, one after the other."""
    pairs = [_pairs(m)[i] for i in ids]
    number = np.array([len(p) for p in pairs])
    cutoff = take(m.sensor_cutoff, ids)
    every = np.concatenate(pairs)
    if not len(every):
        dist, fromto = cutoff, jnp.zeros((len(ids), 6), d.sensordata.dtype)
    else:
        dist, fromto = geom_distance(m, d, *every.T, take(cutoff, np.repeat(np.arange(len(ids)), number)))
        slot = np.arange(number.max())
        place = np.where(slot < number[:, None], (np.cumsum(number) - number)[:, None] + slot, -1)
        each = jnp.where(place >= 0, take_or_zero(dist, place), jnp.inf)
        best = jnp.argmin(each, axis=1)
        nearest = jnp.take_along_axis(jnp.asarray(np.maximum(place, 0)), best[:, None], axis=1)[:, 0]
        near = jnp.min(each, axis=1) < cutoff
        dist = jnp.where(near, dist[nearest], cutoff)
        fromto = jnp.where(near[:, None], fromto[nearest], 0)
    normal = normalize(fromto[:, 3:] - fromto[:, :3])[0]
    everything = jnp.concatenate([dist[:, None], normal, fromto], axis=1)
    columns = [k * WIDTH + np.array(PARTS[SensorType(kind)]) for k, kind in enumerate(m.sensor_type[ids])]
    return take(everything.reshape(-1), np.concatenate(columns))
