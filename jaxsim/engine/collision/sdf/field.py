"""Signed distances of points from geoms, in the geoms' frames: exact or bounding formulas, and meshes' octrees."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.plugins import BY_SLOT, numbers
from jaxsim.core.types import MAXVAL, GeomType
from jaxsim.math import safe
from jaxsim.math.arrays import gather
from jaxsim.math.safe import Array
from jaxsim.math.signed_distance import FIELDS

OUTWARD = 1e-6  # points outside an octree's box are read this far inside it


def _plane(size: Array, x: Array) -> Array:
    return x[..., 2]


def _sphere(size: Array, x: Array) -> Array:
    return safe.norm(x) - size[..., 0]


def _box(size: Array, x: Array) -> Array:
    """Outside the distance; inside along a field that turns from the centre's rays to the faces' normals."""
    a = jnp.abs(x) - size
    outside = safe.norm(jnp.maximum(a, 0)) + jnp.minimum(safe.greatest(a), 0)
    field = safe.normalize(safe.divide(-size, a))[0]
    steps = safe.divide(-a, jnp.abs(field), MAXVAL)
    return jnp.where(jnp.any(a >= 0, axis=-1), outside, -safe.least(steps) * safe.norm(field))


def _capsule(size: Array, x: Array) -> Array:
    z = x[..., 2] - jnp.clip(x[..., 2], -size[..., 1], size[..., 1])
    return safe.norm(jnp.stack([x[..., 0], x[..., 1], z], axis=-1)) - size[..., 0]


def _ellipsoid(size: Array, x: Array) -> Array:
    scaled = safe.norm(safe.divide(x, size))
    return safe.divide(scaled * (scaled - 1), safe.norm(safe.divide(x, size * size)))


def _cylinder(size: Array, x: Array) -> Array:
    a = jnp.stack([safe.norm(x[..., :2]) - size[..., 0], jnp.abs(x[..., 2]) - size[..., 1]], axis=-1)
    return jnp.minimum(safe.greatest(a), 0) + safe.norm(jnp.maximum(a, 0))


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
    return _octree(m, m.mesh_octadr[mesh], x)[0]


def _octree(m: Any, root: Array, x: Array) -> tuple[Array, Array]:
    """Distances and the gradients that the reference takes for theirs, from octrees that begin at `root` (k,).

    Within a tree's box a gradient is per width of the cell, beyond it per length.
    """
    root = jnp.asarray(root, jnp.int32)
    box = jnp.asarray(m.oct_aabb, x.dtype)
    away = x - box[root, :3]
    beyond = jnp.abs(away) - box[root, 3:]
    inside = jnp.all(beyond <= 0, axis=-1)
    projected = (beyond >= 0) & ~inside[..., None]
    outward = jnp.where(away > 0, 1, -1)
    out = jnp.where(projected, beyond, 0)
    point = x - jnp.where(projected, outward * (beyond + OUTWARD), 0)
    child = jnp.asarray(m.oct_child)
    leaf = jnp.asarray((m.oct_child < 0).all(axis=1))
    depth = int(m.oct_depth.max(initial=0))

    def place(node: Array) -> Array:
        low, high = box[node, :3] - box[node, 3:], box[node, :3] + box[node, 3:]
        return (point - low) / (high - low)

    def descend(_: int, node: Array) -> Array:
        octant = jnp.sum(jnp.where(place(node) < 0.5, 0, jnp.array([1, 2, 4], jnp.int32)), axis=-1, dtype=jnp.int32)
        return jnp.where(leaf[node], node, root + child[node, octant])

    start = jnp.broadcast_to(root, x.shape[:-1])
    node = jax.lax.fori_loop(0, depth, descend, start)
    at = place(node)[..., None, :]
    factor = jnp.where(_CORNER == 1, at, 1 - at)
    coeff = jnp.asarray(m.oct_coeff, x.dtype)[node]
    value = jnp.sum(jnp.prod(factor, axis=-1) * coeff, axis=-1)
    others = jnp.stack([factor[..., [1, 2]], factor[..., [0, 2]], factor[..., [0, 1]]], axis=-2).prod(axis=-1)
    slope = jnp.sum(others * (2 * _CORNER - 1) * coeff[..., None], axis=-2)
    length = safe.norm(out)
    along = jnp.where(projected, 0, slope / (2 * box[node, 3:])) + outward * safe.divide(out, length[..., None])
    gradient = jnp.where(inside[..., None], slope, along)
    return value + jnp.where(inside, 0, length), gradient


_CORNER = (np.arange(8, dtype=np.int32)[:, None] >> np.arange(3, dtype=np.int32)) & 1


class Field(NamedTuple):
    """`distance(geoms, x)` (..., n) and `gradient(geoms, x)` (..., n, 3) of points x (..., n, 3) in the geoms' frames.

    `geoms` holds the `size` (n, 3) and `id` (n,) of the geoms. The gradient is what the reference takes for it, which
    is not the derivative of the distance everywhere.
    """

    distance: Callable
    gradient: Callable


OCTREE, USER, PLUGIN = 100, 101, 200  # kinds of field beside the types of primitives; plugins by slot


def fields_of(m: Any, geoms: np.ndarray) -> tuple[np.ndarray, dict[int, Field]]:
    """The kind of field of each geom (ngeom,), and the fields of the kinds that occur among `geoms` (static ids)."""
    kind = m.geom_type.astype(np.int32)
    bare = (kind == GeomType.SDF) & (m.geom_plugin < 0)
    kind[bare] = OCTREE if m.callbacks.sdf is None else USER
    own = (m.geom_type == GeomType.SDF) & ~bare
    kind[own] = PLUGIN + m.plugin[m.geom_plugin[own]]
    return kind, {int(k): _field(m, kind, int(k)) for k in np.unique(kind[geoms])}


def _field(m: Any, kind: np.ndarray, this: int) -> Field:
    if this in PRIMITIVES:
        return _primitive(this)
    if this == OCTREE:
        mine = kind == OCTREE
        root = np.where(mine, m.mesh_octadr[np.where(mine, m.geom_dataid, m.geom_dataid[mine][0])], 0).astype(np.int32)
        root[~mine] = root[mine][0]
        of = lambda g, x: _octree(m, gather(jnp.asarray(root), jnp.asarray(g.id)), x)  # noqa: E731
        return Field(lambda g, x: of(g, x)[0], lambda g, x: of(g, x)[1])
    if this == USER:
        distance = lambda g, x: jnp.asarray(m.callbacks.sdf(m, g.id, x), x.dtype)  # noqa: E731
        return Field(distance, _slope(distance))
    return _plugin(m, kind == this, BY_SLOT[this - PLUGIN].name)


def _slope(distance: Callable) -> Callable:
    """The gradient of a distance."""
    return lambda g, x: jax.grad(lambda x: jnp.sum(distance(g, x)))(x)


def _primitive(kind: int) -> Field:
    def distance(g: Any, x: Array) -> Array:
        return PRIMITIVES[kind](g.size, x)

    def box(g: Any, x: Array) -> Array:
        a = jnp.abs(x) - g.size
        radial = jnp.where(x < 0, -1, 1) * safe.normalize(safe.divide(-g.size, a))[0]
        return jnp.where(jnp.all(a < 0, axis=-1, keepdims=True), radial, slope(g, x))

    slope = _slope(distance)
    special = {GeomType.BOX: box, GeomType.ELLIPSOID: lambda g, x: safe.normalize(slope(g, x))[0]}
    return Field(distance, special.get(kind, slope))


def _plugin(m: Any, mine: np.ndarray, name: str) -> Field:
    """The field of a plugin; the attributes of geoms that do not have it are those of one that has."""
    first = np.flatnonzero(mine)[0]
    table = np.array([numbers(m, int(m.geom_plugin[g if mine[g] else first])) for g in range(m.ngeom)])

    def distance(g: Any, x: Array) -> Array:
        attributes = gather(jnp.asarray(table, x.dtype), jnp.asarray(g.id))
        return FIELDS[name](x[..., 0], x[..., 1], x[..., 2], *attributes.T)

    return Field(distance, _slope(distance))
