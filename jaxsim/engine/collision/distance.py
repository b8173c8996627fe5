"""Smallest signed distance between geoms, and the segment that it is measured along: mj_geomDistance."""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.errors import UnsupportedError
from jaxsim.core.types import DisableBit, GeomType
from jaxsim.engine.collision.convex.convex import convex_context, convex_convex, convex_distance
from jaxsim.engine.collision.primitive.box import box_box
from jaxsim.engine.collision.shapes import Geoms, posed
from jaxsim.engine.collision.table import COLLIDERS
from jaxsim.math.arrays import take
from jaxsim.math.safe import Array


def geom_distance(m: Any, d: Any, geom1: Any, geom2: Any, distmax: Array) -> tuple[Array, Array]:
    """Smallest signed distance between geoms and the segment from the first to the second, for poses in `d`.

    `geom1` and `geom2` are ids known while tracing: numbers, or arrays (n,) for n pairs at once; `distmax` is a number
    or (n,). Gives `dist` () or (n,), at most `distmax`, and `fromto` (6,) or (n, 6), two points in the world. `fromto`
    is zero where the geoms are farther apart than `distmax`, and for pairs of planes and height fields. Raises
    UnsupportedError for a pair that the collision table does not hold. Source: mj_geomDistance.
    """
    single = np.ndim(geom1) == 0 and np.ndim(geom2) == 0
    pair = np.stack(np.broadcast_arrays(np.atleast_1d(geom1), np.atleast_1d(geom2)), axis=-1).astype(np.int32)
    distmax = jnp.broadcast_to(jnp.asarray(distmax, d.geom_xpos.dtype), len(pair))
    dist, fromto = distmax, jnp.zeros((len(pair), 6), d.geom_xpos.dtype)
    for which, collider in _groups(m, pair):
        found = _measure(m, d, pair[which], take(distmax, which), collider)
        dist, fromto = dist.at[which].set(found[0]), fromto.at[which].set(found[1])
    return (dist[0], fromto[0]) if single else (dist, fromto)


def _groups(m: Any, pair: np.ndarray) -> list[tuple[np.ndarray, Any]]:
    """Places of the pairs of each collider; pairs of planes and height fields are in none."""
    types = np.sort(m.geom_type[pair], axis=1)
    groups = {}
    for i, (t1, t2) in enumerate(types.tolist()):
        if t2 <= GeomType.HFIELD:
            continue
        if (t1, t2) not in COLLIDERS:
            raise UnsupportedError(f"distances between {GeomType(t1).name.lower()} and {GeomType(t2).name.lower()}")
        collider = COLLIDERS[t1, t2]
        if collider.function is box_box and not m.opt.disableflags & DisableBit.NATIVECCD:
            collider = COLLIDERS[GeomType.BOX, GeomType.MESH]
        groups.setdefault(collider.function, ([], collider))[0].append(i)
    return [(np.array(which), collider) for which, collider in groups.values()]


def _measure(m: Any, d: Any, pair: np.ndarray, distmax: Array, collider: Any) -> tuple[Array, Array]:
    """Distances (n,) and segments (n, 6) of pairs (n, 2) of one collider."""
    if collider.function is convex_convex and not m.opt.disableflags & DisableBit.NATIVECCD:
        return convex_distance(convex_context(m, *pair.T), *[_geoms(m, d, g) for g in pair.T], distmax)
    flip = m.geom_type[pair[:, 0]] > m.geom_type[pair[:, 1]]
    g1, g2 = np.where(flip[:, None], pair[:, ::-1], pair).T
    collide = partial(collider.function, collider.setup(m, g1, g2)) if collider.setup else collider.function
    hits = collide(_geoms(m, d, g1), _geoms(m, d, g2), distmax)
    each = jnp.where(hits.valid, hits.dist, jnp.inf)
    best = jnp.argmin(each, axis=1)[:, None]
    dist = jnp.take_along_axis(each, best, axis=1)[:, 0]
    near = dist < distmax
    dist = jnp.where(near, dist, distmax)
    pos, normal = [jnp.take_along_axis(x, best[..., None], axis=1)[:, 0] for x in (hits.pos, hits.normal)]
    half = 0.5 * dist[:, None] * normal * np.where(flip, -1, 1)[:, None]
    return dist, jnp.where(near[:, None], jnp.concatenate([pos - half, pos + half], axis=1), 0)


def _geoms(m: Any, d: Any, g: np.ndarray) -> Geoms:
    return posed(take, d.geom_xpos, d.geom_xmat, take(m.geom_size, g), g)
