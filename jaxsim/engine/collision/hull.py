"""Convex hulls of meshes as padded tables: vertices, faces, and what touches what."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.types import GeomType

Array = Any
MAX_POLYVERT = 150  # most vertices of a face, and faces of a vertex, that the reference looks at


class Hulls(NamedTuple):
    """Hulls of the meshes of some geoms, one row each, padded by repeating the first vertex.

    `vert` (r, V, 3) in the geoms' frames; `vertex_id` (r, V) as the mesh numbers them; `of_geom` (ngeom,) the row of each
    geom; `mesh` (r,) the mesh of each row, -1 where the geoms are no meshes.
    """

    vert: Array
    vertex_id: np.ndarray
    of_geom: np.ndarray
    mesh: np.ndarray

    def row(self, geom: Array) -> Array:
        """The row of each geom."""
        if isinstance(geom, np.ndarray):
            return jnp.asarray(self.of_geom[geom])
        return jnp.asarray(self.of_geom)[geom]

    def vertices(self, geom: Array) -> Array:
        """Hull vertices (n, V, 3) of geoms (n,)."""
        return self.vert[self.row(geom)]


def hulls(m: Any, geoms: np.ndarray) -> Hulls:
    """The hulls of geoms (n,) that are all of one type; a single empty row if they are not meshes."""
    geoms = np.asarray(geoms)
    if m.geom_type[geoms[0]] not in (GeomType.MESH, GeomType.SDF):
        none = np.zeros(m.ngeom, np.int32)
        return Hulls(jnp.zeros((1, 1, 3), m.geom_size.dtype), np.zeros((1, 1), np.int32), none, np.array([-1]))
    mesh = np.unique(m.geom_dataid[geoms])
    of_geom = np.searchsorted(mesh, m.geom_dataid).clip(0, len(mesh) - 1).astype(np.int32)
    ids = [hull_vertices(m, i) for i in mesh]
    size = max(len(i) for i in ids)
    table = np.stack([np.concatenate([i, np.full(size - len(i), i[0])]) for i in ids]).astype(np.int32)
    vert = m.mesh_vert[table + m.mesh_vertadr[mesh][:, None]]
    return Hulls(jnp.asarray(vert, m.geom_size.dtype), table, of_geom, mesh)


def hull_vertices(m: Any, mesh: int) -> np.ndarray:
    """Ids of the vertices on a mesh's convex hull, or of all its vertices if it has none."""
    graph = m.mesh_graphadr[mesh]
    if graph < 0:
        return np.arange(m.mesh_vertnum[mesh])
    count = m.mesh_graph[graph]
    return np.sort(m.mesh_graph[graph + 2 + count : graph + 2 + 2 * count])
