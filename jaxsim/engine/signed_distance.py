"""Signed distances of points from geoms, in the geoms' frames: exact or bounding formulas, and meshes' octrees."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.math import safe
from jaxsim.math.safe import Array
from jaxsim.types import GeomType

OUTWARD = 1e-6  # points outside an octree's box are read this far inside it


def _plane(size: Array, x: Array) -> Array:
    return x[..., 2]


def _sphere(size: Array, x: Array) -> Array:
    return safe.norm(x) - size[..., 0]


def _box(size: Array, x: Array) -> Array:
    """Outside the distance; inside along a field that turns from the centre's rays to the faces' normals."""
    a = jnp.abs(x) - size
    outside = safe.norm(jnp.maximum(a, 0)) + jnp.minimum(jnp.max(a, axis=-1), 0)
    field = safe.normalize(safe.divide(-size, a))[0]
    steps = safe.divide(-a, jnp.abs(field), np.inf)
    return jnp.where(jnp.any(a >= 0, axis=-1), outside, -jnp.min(steps, axis=-1) * safe.norm(field))


def _capsule(size: Array, x: Array) -> Array:
    z = x[..., 2] - jnp.clip(x[..., 2], -size[..., 1], size[..., 1])
    return safe.norm(jnp.stack([x[..., 0], x[..., 1], z], axis=-1)) - size[..., 0]


def _ellipsoid(size: Array, x: Array) -> Array:
    scaled = safe.norm(safe.divide(x, size))
    return safe.divide(scaled * (scaled - 1), safe.norm(safe.divide(x, size * size)))


def _cylinder(size: Array, x: Array) -> Array:
    a = jnp.stack([safe.norm(x[..., :2]) - size[..., 0], jnp.abs(x[..., 2]) - size[..., 1]], axis=-1)
    return jnp.minimum(jnp.max(a, axis=-1), 0) + safe.norm(jnp.maximum(a, 0))


PRIMITIVES = {
    GeomType.PLANE: _plane,
    GeomType.SPHERE: _sphere,
    GeomType.BOX: _box,
    GeomType.CAPSULE: _capsule,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _cylinder,
}


def octree_distance(m: Any, mesh: np.ndarray, x: Array) -> Array:
    """Distances of points (..., k, 3) from meshes (k,) with octrees, between the values at their cells' corners."""
    root = m.mesh_octadr[mesh]
    box = jnp.asarray(m.oct_aabb, x.dtype)
    away = x - box[root, :3]
    beyond = jnp.abs(away) - box[root, 3:]
    inside = jnp.all(beyond <= 0, axis=-1)
    out = jnp.where(beyond >= 0, beyond, 0)
    moved = jnp.where((beyond >= 0) & ~inside[..., None], jnp.where(away > 0, 1, -1) * (beyond + OUTWARD), 0)
    point = x - moved
    child = jnp.asarray(m.oct_child)
    leaf = jnp.asarray((m.oct_child < 0).all(axis=1))
    depth = int(m.oct_depth.max(initial=0))

    def place(node: Array) -> Array:
        low, high = box[node, :3] - box[node, 3:], box[node, :3] + box[node, 3:]
        return (point - low) / (high - low)

    def descend(_: int, node: Array) -> Array:
        octant = jnp.sum(jnp.where(place(node) < 0.5, 0, jnp.array([1, 2, 4], jnp.int32)), axis=-1, dtype=jnp.int32)
        return jnp.where(leaf[node], node, root.astype(np.int32) + child[node, octant])

    start = jnp.broadcast_to(jnp.asarray(root, jnp.int32), x.shape[:-1])
    node = jax.lax.fori_loop(0, depth, descend, start)
    at = place(node)[..., None, :]
    corner = (np.arange(8)[:, None] >> np.arange(3)) & 1
    weight = jnp.prod(jnp.where(corner == 1, at, 1 - at), axis=-1)
    value = jnp.sum(weight * jnp.asarray(m.oct_coeff, x.dtype)[node], axis=-1)
    return value + jnp.where(inside, 0, safe.norm(out))
