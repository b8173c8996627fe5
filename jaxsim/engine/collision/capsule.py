"""Capsules against capsules and boxes."""

import jax.numpy as jnp

from jaxsim.engine.collision.shapes import Array, Geoms, Hits
from jaxsim.engine.collision.sphere import spheres
from jaxsim.math import safe
from jaxsim.math.arrays import inner
from jaxsim.types import MINVAL


def parallel(ma: Array, mb: Array, mc: Array) -> tuple[Array, Array]:
    """Determinant of a pair of segments and whether they count as parallel."""
    det = ma * mc - mb * mb
    if det.dtype == jnp.float64:
        return det, jnp.abs(det) < MINVAL
    return det, jnp.abs(det) < 8 * jnp.finfo(det.dtype).eps * ma * mc + MINVAL


def _nearest(ma: Array, mb: Array, mc: Array, u: Array, v: Array, det: Array) -> tuple[Array, Array]:
    """Parameters in [-1, 1] of the nearest points of two segments that are not parallel."""
    x1, x2 = safe.divide(mc * u - mb * v, det), safe.divide(ma * v - mb * u, det)
    side1 = jnp.where(x1 > 1, 1, jnp.where(x1 < -1, -1, 0)).astype(x1.dtype)
    x2 = jnp.where(side1 == 0, x2, safe.divide(v - side1 * mb, mc))
    x1 = jnp.where(side1 == 0, x1, side1)
    side2 = jnp.where(x2 > 1, 1, jnp.where(x2 < -1, -1, 0)).astype(x2.dtype)
    x1 = jnp.where(side2 == 0, x1, jnp.clip(safe.divide(u - side2 * mb, ma), -1, 1))
    return x1, jnp.where(side2 == 0, x2, side2)


def capsule_capsule(a: Geoms, b: Geoms, margin: Array) -> Hits:
    """Two capsules: one contact at the nearest points, or up to two at the ends of parallel ones."""
    axis1, axis2 = a.mat[:, :, 2] * a.size[:, 1:2], b.mat[:, :, 2] * b.size[:, 1:2]
    gap = a.pos - b.pos
    ma, mb, mc = inner(axis1, axis1), -inner(axis1, axis2), inner(axis2, axis2)
    u, v = -inner(axis1, gap), inner(axis2, gap)
    det, flat = parallel(ma, mb, mc)
    x1, x2 = _nearest(ma, mb, mc, u, v, jnp.where(flat, 0, det))

    # parallel: each end of either capsule against the other; the first two that are near are kept
    one = jnp.ones_like(u)
    on2 = [jnp.clip(safe.divide(v - s * mb, mc), -1, 1) for s in (1, -1)]
    on1 = [jnp.clip(safe.divide(u - s * mb, ma), -1, 1) for s in (1, -1)]
    p1 = jnp.stack([jnp.where(flat, one, x1), -one, *on1], axis=1)
    p2 = jnp.stack([jnp.where(flat, on2[0], x2), on2[1], one, -one], axis=1)
    apart = gap[:, None] + axis1[:, None] * p1[..., None] - axis2[:, None] * p2[..., None]
    reach = (margin + a.size[:, 0] + b.size[:, 0])[:, None]
    near = inner(apart, apart) <= reach * reach
    near &= jnp.stack([one > 0, flat, flat, flat], axis=1)
    rank = jnp.cumsum(near, axis=1)
    pick = near[:, None] & (rank[:, None] == jnp.arange(1, 3)[:, None])  # (n, 2, 4)
    x1, x2 = jnp.sum(pick * p1[:, None], axis=-1), jnp.sum(pick * p2[:, None], axis=-1)

    ends1 = a.pos[:, None] + axis1[:, None] * x1[..., None]
    ends2 = b.pos[:, None] + axis2[:, None] * x2[..., None]
    z1, z2 = a.mat[:, None, :, 2], b.mat[:, None, :, 2]
    dist, pos, normal, _ = spheres(ends1, a.size[:, :1], ends2, b.size[:, :1], margin[:, None], z1, z2)
    return Hits(dist, pos, normal, jnp.any(pick, axis=-1))
