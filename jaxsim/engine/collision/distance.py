"""Smallest signed distance of geoms, and the segment between their nearest points. Source: mj_geomDistance."""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.errors import UnsupportedError
from jaxsim.core.types import DisableBit, GeomType
from jaxsim.engine.collision.convex.convex import convex_context, convex_convex, convex_distance
from jaxsim.engine.collision.primitive.box import box_box
from jaxsim.engine.collision.shapes import Geoms, posed_geoms
from jaxsim.engine.collision.table import COLLIDERS
from jaxsim.engine.structure.geom_bounds import with_current_bounds
from jaxsim.interface.public import public
from jaxsim.math.arrays import take
from jaxsim.math.safe import Array


@public(static=("geom1", "geom2"))
def geom_distance(m: Any, d: Any, geom1: Any, geom2: Any, distmax: Array) -> tuple[Array, Array]:
    """Compute the smallest signed distance of geoms and the segment from the first to the second, for the poses in `d`.

    `geom1` and `geom2` are ids known while tracing: numbers, or arrays (n,) for n pairs; `distmax` is a number or (n,).
    Returns `dist` () or (n,), at most `distmax`, and `fromto` (6,) or (n, 6), two points in the world frame. `fromto`
    is zero where the geoms are farther apart than `distmax`, and for pairs of planes and height fields. Raises
    UnsupportedError for a pair of types without a collider. Source: mj_geomDistance.
    """
    scalar = np.ndim(geom1) == 0 and np.ndim(geom2) == 0
    pair = np.stack(np.broadcast_arrays(np.atleast_1d(geom1), np.atleast_1d(geom2)), axis=-1).astype(np.int32)
    distmax = jnp.broadcast_to(jnp.asarray(distmax, d.geom_xpos.dtype), len(pair))
    m, dist, fromto = with_current_bounds(m, np.unique(pair)), distmax, jnp.zeros((len(pair), 6), d.geom_xpos.dtype)
    for index, collider in _group_by_collider(m, pair):
        found = _measure(m, d, pair[index], take(distmax, index), collider)
        dist, fromto = dist.at[index].set(found[0]), fromto.at[index].set(found[1])
    return (dist[0], fromto[0]) if scalar else (dist, fromto)


def _group_by_collider(m: Any, pair: np.ndarray) -> list[tuple[np.ndarray, Any]]:
    """Group the indices of pairs by collider; pairs of planes and height fields have none."""
    types = np.sort(m.geom_type[pair], axis=1)
    groups = {}
    for i, (t1, t2) in enumerate(types.tolist()):
        if t2 <= GeomType.HFIELD:
            continue
        if (t1, t2) not in COLLIDERS:
            raise UnsupportedError(
                f"distances between {GeomType(t1).name.lower()} and {GeomType(t2).name.lower()} are not supported"
            )
        collider = COLLIDERS[t1, t2]
        if collider.function is box_box and not m.opt.disableflags & DisableBit.NATIVECCD:
            collider = COLLIDERS[GeomType.BOX, GeomType.MESH]
        groups.setdefault(collider.function, ([], collider))[0].append(i)
    return [(np.array(index), collider) for index, collider in groups.values()]


def _measure(m: Any, d: Any, pair: np.ndarray, distmax: Array, collider: Any) -> tuple[Array, Array]:
    """Compute distances (n,) and segments (n, 6) of pairs (n, 2) of one collider."""
    if collider.function is convex_convex and not m.opt.disableflags & DisableBit.NATIVECCD:
        a, b = (_geoms(m, d, g) for g in pair.T)
        return convex_distance(convex_context(m, *pair.T), a, b, distmax)
    flip = m.geom_type[pair[:, 0]] > m.geom_type[pair[:, 1]]
    g1, g2 = np.where(flip[:, None], pair[:, ::-1], pair).T
    collide = partial(collider.function, collider.setup(m, g1, g2)) if collider.setup else collider.function
    count = {"count": jnp.int32(len(pair))} if collider.searches else {}
    contacts = collide(_geoms(m, d, g1), _geoms(m, d, g2), distmax, **count)
    dist_of_slot = jnp.where(contacts.valid, contacts.dist, jnp.inf)
    best = jnp.argmin(dist_of_slot, axis=1)[:, None]
    dist = jnp.take_along_axis(dist_of_slot, best, axis=1)[:, 0]
    within = dist < distmax
    dist = jnp.where(within, dist, distmax)
    pos, normal = [jnp.take_along_axis(x, best[..., None], axis=1)[:, 0] for x in (contacts.pos, contacts.normal)]
    half = 0.5 * dist[:, None] * normal * np.where(flip, -1, 1)[:, None]
    return dist, jnp.where(within[:, None], jnp.concatenate([pos - half, pos + half], axis=1), 0)


def _geoms(m: Any, d: Any, g: np.ndarray) -> Geoms:
    return posed_geoms(take, d.geom_xpos, d.geom_xmat, take(m.geom_size, g), g)
