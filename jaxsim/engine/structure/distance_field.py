"""Signed distance fields of geoms in their own frames: formulas of primitives, octrees, plugins, user callbacks."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.plugins import BY_SLOT, PLUGINS, config, numbers
from jaxsim.core.types import MAXVAL, GeomType
from jaxsim.math import safe
from jaxsim.math.arrays import gather
from jaxsim.math.safe import Array
from jaxsim.math.signed_distance import FIELDS

OCTREE_INSET = 1e-6  # points outside an octree's box are moved this far inside it


def _plane(size: Array, x: Array) -> Array:
    return x[..., 2]


def _sphere(size: Array, x: Array) -> Array:
    return safe.norm(x) - size[..., 0]


def _box(size: Array, x: Array) -> Array:
    """Return the distance of a box.

    Inside, distances are along directions that turn from the rays of the centre to the normals of the faces.
    """
    a = jnp.abs(x) - size
    outside = safe.norm(jnp.maximum(a, 0)) + jnp.minimum(safe.greatest(a), 0)
    direction = safe.normalize(safe.divide(-size, a))[0]
    steps = safe.divide(-a, jnp.abs(direction), MAXVAL)
    return jnp.where(jnp.any(a >= 0, axis=-1), outside, -safe.least(steps) * safe.norm(direction))


def _capsule(size: Array, x: Array) -> Array:
    z = x[..., 2] - jnp.clip(x[..., 2], -size[..., 1], size[..., 1])
    return safe.norm(jnp.stack([x[..., 0], x[..., 1], z], axis=-1)) - size[..., 0]


def _ellipsoid(size: Array, x: Array) -> Array:
    scaled = safe.norm(safe.divide(x, size))
    return safe.divide(scaled * (scaled - 1), safe.norm(safe.divide(x, size * size)))


def _cylinder(size: Array, x: Array) -> Array:
    a = jnp.stack([safe.norm(x[..., :2]) - size[..., 0], jnp.abs(x[..., 2]) - size[..., 1]], axis=-1)
    return jnp.minimum(safe.greatest(a), 0) + safe.norm(jnp.maximum(a, 0))


PRIMITIVES: dict[int, Callable[[Array, Array], Array]] = {
    GeomType.PLANE: _plane,
    GeomType.SPHERE: _sphere,
    GeomType.BOX: _box,
    GeomType.CAPSULE: _capsule,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _cylinder,
}


def octree_distance(m: Any, mesh: np.ndarray, x: Array) -> Array:
    """Return distances of points (..., k, 3) from meshes (k,), interpolated in the cells of their octrees."""
    return _octree_value(m, m.mesh_octadr[mesh], x)[0]


def _octree_value(m: Any, root: Array, x: Array) -> tuple[Array, Array]:
    """Return distances and MuJoCo's gradients of them, from octrees with the node `root` (k,).

    Within a tree's box a gradient is per width of the cell, outside per unit of length.
    """
    root = jnp.asarray(root, jnp.int32)
    box = jnp.asarray(m.oct_aabb, x.dtype)
    offset = x - box[root, :3]
    excess_all = jnp.abs(offset) - box[root, 3:]
    inside = jnp.all(excess_all <= 0, axis=-1)
    projected = (excess_all >= 0) & ~inside[..., None]
    sign = jnp.where(offset > 0, 1, -1)
    excess = jnp.where(projected, excess_all, 0)
    point = x - jnp.where(projected, sign * (excess_all + OCTREE_INSET), 0)
    child = jnp.asarray(m.oct_child)
    leaf = jnp.asarray((m.oct_child < 0).all(axis=1))
    depth = int(m.oct_depth.max(initial=0))

    def cell_position(node: Array) -> Array:
        low, high = box[node, :3] - box[node, 3:], box[node, :3] + box[node, 3:]
        return (point - low) / (high - low)

    def descend(_: int, node: Array) -> Array:
        bits = jnp.where(cell_position(node) < 0.5, 0, jnp.array([1, 2, 4], jnp.int32))
        octant = jnp.sum(bits, axis=-1, dtype=jnp.int32)
        return jnp.where(leaf[node], node, root + child[node, octant])

    start = jnp.broadcast_to(root, x.shape[:-1])
    node = jax.lax.fori_loop(0, depth, descend, start)
    position = cell_position(node)[..., None, :]
    factor = jnp.where(_CORNER_BITS == 1, position, 1 - position)
    coeff = jnp.asarray(m.oct_coeff, x.dtype)[node]
    value = jnp.sum(jnp.prod(factor, axis=-1) * coeff, axis=-1)
    other_factors = jnp.stack([factor[..., [1, 2]], factor[..., [0, 2]], factor[..., [0, 1]]], axis=-2).prod(axis=-1)
    cell_gradient = jnp.sum(other_factors * (2 * _CORNER_BITS - 1).astype(coeff.dtype) * coeff[..., None], axis=-2)
    length = safe.norm(excess)
    outside_gradient = jnp.where(projected, 0, cell_gradient / (2 * box[node, 3:]))
    outside_gradient += sign * safe.divide(excess, length[..., None])
    gradient = jnp.where(inside[..., None], cell_gradient, outside_gradient)
    return value + jnp.where(inside, 0, length), gradient


_CORNER_BITS = (np.arange(8, dtype=np.int32)[:, None] >> np.arange(3, dtype=np.int32)) & 1


class DistanceField(NamedTuple):
    """`distance(geoms, x)` (..., n) and `gradient(geoms, x)` (..., n, 3) of points x (..., n, 3) in the geoms' frames.

    `geoms` holds the `size` (n, 3) and `id` (n,) of the geoms. The gradient is MuJoCo's, which is not the derivative of
    the distance everywhere.
    """

    distance: Callable
    gradient: Callable


class FieldGeoms(NamedTuple):
    """Geoms whose fields are evaluated: sizes (n, 3) and ids (n,)."""

    size: Array
    id: Array


Fields = tuple[np.ndarray, dict[int, DistanceField]]  # the kind of field of each geom, and the field of each kind

# kinds of field other than primitive geom types; those of plugins are PLUGIN_FIELD plus the slot
OCTREE_FIELD, USER_FIELD, PLUGIN_FIELD = 100, 101, 200


def distance_fields(m: Any, geoms: np.ndarray) -> Fields:
    """Return the kind of field of each geom (ngeom,), and the field of each kind among `geoms` (static ids)."""
    kind = m.geom_type.astype(np.int32)
    without_plugin = (kind == GeomType.SDF) & (m.geom_plugin < 0)
    kind[without_plugin] = OCTREE_FIELD if m.callbacks.sdf is None else USER_FIELD
    with_plugin = (m.geom_type == GeomType.SDF) & ~without_plugin
    kind[with_plugin] = PLUGIN_FIELD + m.plugin[m.geom_plugin[with_plugin]]
    return kind, {int(k): _field(m, kind, int(k)) for k in np.unique(kind[geoms])}


def distance_of(fields: Fields, geoms: Any, x: Array) -> Array:
    """Return distances (..., n) of points (..., n, 3), each by its geom's kind of field."""
    kinds, (out, *others) = _kind_of_field(fields, geoms), [field.distance(geoms, x) for field in fields[1].values()]
    for kind, value in zip(list(fields[1])[1:], others, strict=True):
        out = jnp.where(kinds == kind, value, out)
    return out


def gradient_of(fields: Fields, geoms: Any, x: Array) -> Array:
    """Return gradients (..., n, 3) of the distances at points (..., n, 3), each by its geom's kind of field."""
    kinds, (out, *others) = _kind_of_field(fields, geoms), [field.gradient(geoms, x) for field in fields[1].values()]
    for kind, value in zip(list(fields[1])[1:], others, strict=True):
        out = jnp.where((kinds == kind)[:, None], value, out)
    return out


def _kind_of_field(fields: Fields, geoms: Any) -> Array:
    """Return the kind of field of each geom (n,)."""
    return gather(jnp.asarray(fields[0]), jnp.asarray(geoms.id))


def _field(m: Any, kind_of_geom: np.ndarray, kind: int) -> DistanceField:
    """Return the field of one kind."""
    if kind in PRIMITIVES:
        return _primitive(kind)
    if kind == OCTREE_FIELD:
        has_octree = kind_of_geom == OCTREE_FIELD
        mesh = np.where(has_octree, m.geom_dataid, m.geom_dataid[has_octree][0])
        root = np.where(has_octree, m.mesh_octadr[mesh], 0).astype(np.int32)
        root[~has_octree] = root[has_octree][0]
        evaluate = lambda g, x: _octree_value(m, gather(jnp.asarray(root), jnp.asarray(g.id)), x)  # noqa: E731
        return DistanceField(lambda g, x: evaluate(g, x)[0], lambda g, x: evaluate(g, x)[1])
    if kind == USER_FIELD:
        distance = lambda g, x: jnp.asarray(m.callbacks.sdf(m, g.id, x), x.dtype)  # noqa: E731
        return DistanceField(distance, _gradient_of(distance))
    return _plugin(m, kind_of_geom == kind, BY_SLOT[kind - PLUGIN_FIELD].name)


def _gradient_of(distance: Callable) -> Callable:
    """Return the gradient of a distance, by reverse mode."""
    return lambda g, x: jax.grad(lambda x: jnp.sum(distance(g, x)))(x)


def _primitive(geom_type: int) -> DistanceField:
    """Return the field of a primitive geom type."""

    def distance(g: Any, x: Array) -> Array:
        return PRIMITIVES[geom_type](g.size, x)

    def box(g: Any, x: Array) -> Array:
        a = jnp.abs(x) - g.size
        radial = jnp.where(x < 0, -1, 1) * safe.normalize(safe.divide(-g.size, a))[0]
        return jnp.where(jnp.all(a < 0, axis=-1, keepdims=True), radial, gradient(g, x))

    gradient = _gradient_of(distance)
    gradients: dict[int, Callable[[Any, Array], Array]] = {
        GeomType.BOX: box,
        GeomType.ELLIPSOID: lambda g, x: safe.normalize(gradient(g, x))[0],
    }
    return DistanceField(distance, gradients.get(geom_type, gradient))


def _plugin(m: Any, has_plugin: np.ndarray, name: str) -> DistanceField:
    """Return the field of a plugin; geoms of other plugins get the attributes of one that has it."""
    first = np.flatnonzero(has_plugin)[0]
    instances = np.where(has_plugin, m.geom_plugin, m.geom_plugin[first])
    table = np.array([numbers(PLUGINS[name], config(m, i)) for i in instances])

    def distance(g: Any, x: Array) -> Array:
        attributes = gather(jnp.asarray(table, x.dtype), jnp.asarray(g.id))
        return FIELDS[name](x[..., 0], x[..., 1], x[..., 2], *attributes.T)

    return DistanceField(distance, _gradient_of(distance))
