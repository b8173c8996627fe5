"""Bounds of geoms from their current sizes, vertices of meshes, and extents of height fields."""

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.structure import structure_of
from jaxsim.core.types import GeomType
from jaxsim.math import safe
from jaxsim.math.arrays import merge, take
from jaxsim.math.safe import Array

MESH_ROW = 32  # vertices per row of the first reduction over a mesh


class _Bounds(NamedTuple):
    """Radii (n,) of spheres about the geoms' centres; boxes (n, 6) in the geoms' frames: centre and half sizes."""

    radius: Array
    box: Array


def with_current_bounds(m: Any, geoms: np.ndarray | None = None) -> Any:
    """Set `geom_rbound` and `geom_aabb` from the current sizes, vertices and height fields of the model.

    The compiler sets these fields, and they do not change when a size is replaced. Planes keep their bounds, as do
    meshes of geoms not in `geoms` (static ids), by default the geoms that can collide. Derivatives with respect to
    bounds are zero.
    """
    structure = structure_of(m)
    of_mesh = _colliding_meshes(structure) if geoms is None else _meshes_of(structure, geoms)
    shape = _box_table(structure)
    rbound, aabb, size = lax.stop_gradient((jnp.asarray(m.geom_rbound), jnp.asarray(m.geom_aabb), m.geom_size))
    entry = take(size.reshape(-1), shape.entry)
    half = jnp.stack([*entry.T[:2], entry[:, 2] + jnp.where(shape.capsule, size[:, 0], 0)], axis=1)
    radius = jnp.where(shape.widest, jnp.max(half, axis=1), safe.norm(jnp.where(shape.within, half, 0)))
    solid = shape.solid
    box = jnp.where(solid[:, None], jnp.concatenate([jnp.zeros_like(half), half], axis=1), aabb)
    radius = jnp.where(solid, radius, rbound)
    if len(of_mesh.geom):
        own = _bounds_of_corners(_mesh_corners(m, of_mesh))
        radius, box = merge(radius, of_mesh.geom, own.radius), merge(box, of_mesh.geom, own.box)
    fields = np.flatnonzero(m.geom_type == GeomType.HFIELD)
    if len(fields):
        x, y, top, base = lax.stop_gradient(take(m.hfield_size, m.geom_dataid[fields])).T
        own = _bounds_of_corners(jnp.stack([x, y, top, x, y, base], axis=1))
        radius, box = merge(radius, fields, own.radius), merge(box, fields, own.box)
    return m.replace(geom_rbound=radius, geom_aabb=box)


class _BoxTable(NamedTuple):
    """Formulas of boxes and spheres of primitives from their sizes: static, a row for each geom.

    `entry` (ngeom, 3) are the entries of sizes that are the half sizes; capsules are longer by their radius. The radius
    is the largest half size where `widest`, otherwise the norm of the half sizes that are `within`.
    """

    entry: np.ndarray
    capsule: np.ndarray
    widest: np.ndarray
    within: np.ndarray
    solid: np.ndarray


@lru_cache(maxsize=64)
def _box_table(m: Any) -> _BoxTable:
    column = np.tile(np.arange(3), (m.ngeom, 1))
    column[m.geom_type == GeomType.SPHERE] = 0
    cylinder, capsule = m.geom_type == GeomType.CYLINDER, m.geom_type == GeomType.CAPSULE
    column[cylinder | capsule] = [0, 0, 1]
    within = np.ones((m.ngeom, 3), bool)
    within[cylinder, 0] = False
    round_types = (GeomType.SPHERE, GeomType.CAPSULE, GeomType.ELLIPSOID)
    solid = np.isin(m.geom_type, (*round_types, GeomType.CYLINDER, GeomType.BOX))
    entry = (column + 3 * np.arange(m.ngeom)[:, None]).astype(np.int32)
    return _BoxTable(entry, capsule, np.isin(m.geom_type, round_types), within, solid)


class _MeshTable(NamedTuple):
    """Geoms with meshes and the rows of vertices of each: static.

    `vertex` (nrow, MESH_ROW) are vertices, `row` (nmesh, k) the rows of a mesh, `mesh` (n,) the entry of a geom.
    """

    geom: np.ndarray
    mesh: np.ndarray
    row: np.ndarray
    vertex: np.ndarray


@lru_cache(maxsize=64)
def _colliding_meshes(m: Any) -> _MeshTable:
    explicit = np.isin(np.arange(m.ngeom), np.concatenate([m.pair_geom1, m.pair_geom2]))
    return _meshes_of(m, np.flatnonzero((m.geom_contype != 0) | (m.geom_conaffinity != 0) | explicit))


def _meshes_of(m: Any, geoms: np.ndarray) -> _MeshTable:
    geoms = geoms[np.isin(m.geom_type[geoms], (GeomType.MESH, GeomType.SDF)) & (m.geom_dataid[geoms] >= 0)]
    meshes, of_geom = np.unique(m.geom_dataid[geoms], return_inverse=True)
    rows = []
    for mesh in meshes:
        vertex = m.mesh_vertadr[mesh] + hull_vertices(m, mesh)
        rows.append(np.pad(vertex, (0, -len(vertex) % MESH_ROW), mode="edge").reshape(-1, MESH_ROW))
    first = np.cumsum([0, *map(len, rows)])
    width = max([0, *map(len, rows)])
    of_mesh = [np.minimum(start + np.arange(width), stop - 1) for start, stop in pairwise(first)]
    vertex = np.concatenate([np.zeros((0, MESH_ROW), int), *rows])
    return _MeshTable(geoms, of_geom.reshape(-1), np.array(of_mesh, int).reshape(len(rows), width), vertex)


def _mesh_corners(m: Any, of_mesh: _MeshTable) -> Array:
    """Return the upper corners (n, 3) of the boxes of geoms with meshes, then the negated lower corners."""
    vertex = take(lax.stop_gradient(m.mesh_vert), of_mesh.vertex)
    corner = jnp.concatenate([jnp.max(vertex, axis=1), -jnp.min(vertex, axis=1)], axis=1)
    return take(jnp.max(take(corner, of_mesh.row), axis=1), of_mesh.mesh)


def _bounds_of_corners(corner: Array) -> _Bounds:
    """Return the bounds of boxes from their upper corners (n, 3) and negated lower corners."""
    high, low = corner[:, :3], -corner[:, 3:]
    radius = safe.norm(jnp.maximum(abs(high), abs(low)))
    return _Bounds(radius, jnp.concatenate([(high + low) / 2, (high - low) / 2], axis=1))


def hull_vertices(m: Any, mesh: int) -> np.ndarray:
    """Return the ids of the vertices on a mesh's convex hull, or of all its vertices if it has none."""
    graph = m.mesh_graphadr[mesh]
    if graph < 0:
        return np.arange(m.mesh_vertnum[mesh])
    count = m.mesh_graph[graph]
    return np.sort(m.mesh_graph[graph + 2 + count : graph + 2 + 2 * count])
