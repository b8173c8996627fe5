"""Convex hulls of meshes as padded tables: vertices, faces, and their neighbours."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import GeomType
from jaxsim.math.safe import Array

MAX_POLYVERT = 150  # MuJoCo's limit for vertices of a face and faces of a vertex
CLIMB_MIN_VERTICES = 200  # hulls with as many vertices are searched by hill climbing
MUJOCO_CLIMB_MIN_VERTICES = 10  # mjMESH_HILLCLIMB_MIN: MuJoCo searches smaller meshes without the graph


class HullTable(NamedTuple):
    """Hulls of meshes, one row each, padded by repeating the first vertex; the last row is empty.

    `vert` (r, V, 3) in the geoms' frames; `vertex_id` (r - 1, V) ids in the mesh; `of_geom` (ngeom,) the row of each
    geom, the last one for geoms that are not meshes; `mesh` (r - 1,) the mesh of each row.
    """

    vert: Array
    vertex_id: np.ndarray
    of_geom: np.ndarray
    mesh: np.ndarray

    def row(self, geom: Array) -> Array:
        """The row of each geom."""
        return jnp.asarray(self.of_geom)[geom]

    def vertices(self, geom: Array) -> Array:
        """Hull vertices (n, V, 3) of geoms (n,)."""
        return self.vert[self.row(geom)]


def hull_table(m: Any, geoms: np.ndarray) -> HullTable:
    """The hulls of those geoms (n,) that are meshes or SDFs."""
    geoms = np.unique(geoms)
    meshes = (GeomType.MESH, GeomType.SDF)
    mesh = np.unique(m.geom_dataid[geoms[np.isin(m.geom_type[geoms], meshes)]])
    is_mesh = np.isin(m.geom_type, meshes) & np.isin(m.geom_dataid, mesh)
    of_geom = np.where(is_mesh, np.searchsorted(mesh, m.geom_dataid), len(mesh)).astype(np.int32)
    ids = [hull_vertices(m, i) for i in mesh]
    size = max([1, *map(len, ids)])
    table = np.array([[*i, *[i[0]] * (size - len(i))] for i in ids], np.int32).reshape(len(mesh), size)
    vert = m.mesh_vert[table + m.mesh_vertadr[mesh][:, None]] if len(mesh) else jnp.zeros((0, 1, 3))
    vert = jnp.concatenate([jnp.asarray(vert, m.geom_size.dtype), jnp.zeros((1, size, 3), m.geom_size.dtype)])
    return HullTable(vert, table, of_geom, mesh)


def hull_vertices(m: Any, mesh: int) -> np.ndarray:
    """Ids of the vertices on a mesh's convex hull, or of all its vertices if it has none."""
    graph = m.mesh_graphadr[mesh]
    if graph < 0:
        return np.arange(m.mesh_vertnum[mesh])
    count = m.mesh_graph[graph]
    return np.sort(m.mesh_graph[graph + 2 + count : graph + 2 + 2 * count])


class FacetTable(NamedTuple):
    """Faces of hulls, one row each, padded by -1; the last row is a box.

    `faces_at` (r, V, K): faces at each vertex; `edge_end` (r, V, K): the other end of an edge of that face at that
    vertex; `corners` (r, F, P): vertices of each face in order; `ncorner` (r, F): their number; `normal` (r, F, 3) in
    the geom's frame. Vertices are numbered as in the rows of `HullTable.vert`. Bit i of a box's vertex number says
    whether coordinate i is positive.
    """

    faces_at: np.ndarray
    edge_end: np.ndarray
    corners: np.ndarray
    ncorner: np.ndarray
    normal: Array


BOX_CORNERS = np.array([[7, 3, 1, 5], [2, 6, 4, 0], [2, 3, 7, 6], [4, 5, 1, 0], [6, 7, 5, 4], [3, 2, 0, 1]], np.int32)
BOX_SIGNS = np.where((np.arange(8)[:, None] >> np.arange(3)) & 1, 1.0, -1.0)


def box_faces() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Faces of a box, +x, -x, +y, -y, +z, -z: `faces_at`, `edge_end` and `corners` of a `FacetTable`."""
    vertex = np.arange(8)[:, None]
    faces_at = np.where((vertex >> np.arange(3)) & 1, 0, 1) + np.array([0, 2, 4])
    return faces_at, vertex ^ np.array([1, 2, 4]), BOX_CORNERS


def facet_table(m: Any, hulls: HullTable) -> FacetTable:
    """Faces of the hulls of meshes, one row each; the last row is a box."""
    rows = [_mesh_faces(m, mesh, ids) for mesh, ids in zip(hulls.mesh, hulls.vertex_id, strict=True)] + [box_faces()]
    faces_at, edge_end, corners = [_pad([row[i] for row in rows]) for i in range(3)]
    ncorner = np.sum(corners >= 0, axis=-1)
    normal = [jnp.asarray(np.repeat(np.eye(3), 2, axis=0) * np.tile([1.0, -1.0], 3)[:, None], hulls.vert.dtype)]
    for mesh in hulls.mesh[::-1]:
        first = m.mesh_polyadr[mesh]
        normal.insert(0, jnp.asarray(m.mesh_polynormal[first : first + m.mesh_polynum[mesh]], hulls.vert.dtype))
    width = ncorner.shape[1]
    return FacetTable(
        faces_at, edge_end, corners, ncorner, jnp.stack([jnp.pad(x, ((0, width - len(x)), (0, 0))) for x in normal])
    )


def _mesh_faces(m: Any, mesh: int, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Faces of a mesh's hull with vertices `ids`: `faces_at`, `edge_end` and `corners` of a `FacetTable`."""
    hull_index = np.full(m.mesh_vertnum[mesh], -1)
    hull_index[ids[::-1]] = np.arange(len(ids))[::-1]
    first = m.mesh_polyadr[mesh]
    faces = []
    for f in range(first, first + m.mesh_polynum[mesh]):
        adr, num = m.mesh_polyvertadr[f], m.mesh_polyvertnum[f]
        faces.append(hull_index[m.mesh_polyvert[adr : adr + min(num, MAX_POLYVERT)]])
    faces_at, edge_end = [], []
    for v in ids:
        adr, num = m.mesh_polymapadr[m.mesh_vertadr[mesh] + v], m.mesh_polymapnum[m.mesh_vertadr[mesh] + v]
        of_vertex = m.mesh_polymap[adr : adr + min(num, MAX_POLYVERT)]
        faces_at.append(of_vertex)
        edge_end.append([faces[f][np.flatnonzero(faces[f] == hull_index[v])[0] - 1] for f in of_vertex])
    return _pad_rows(faces_at), _pad_rows(edge_end), _pad_rows([f[::-1] for f in faces])


def _pad_rows(rows: list) -> np.ndarray:
    """Rows of different length as one table, padded by -1."""
    width = max((len(r) for r in rows), default=1)
    return np.array([[*r, *[-1] * (width - len(r))] for r in rows], dtype=np.int32).reshape(len(rows), width)


def _pad(tables: list[np.ndarray]) -> np.ndarray:
    """Tables of different shape as one array, padded by -1."""
    shape = np.max([t.shape for t in tables], axis=0)
    return np.stack(
        [np.pad(t, [(0, s - n) for s, n in zip(shape, t.shape, strict=True)], constant_values=-1) for t in tables]
    )


def climb_neighbours(m: Any, hulls: HullTable) -> np.ndarray | None:
    """Neighbours of each hull vertex (r, V, K), padded by the vertex itself; None where all hulls are small."""
    if not len(hulls.mesh) or hulls.vert.shape[1] < CLIMB_MIN_VERTICES or np.any(m.mesh_graphadr[hulls.mesh] < 0):
        return None
    rows = _pad([_vertex_neighbours(m, mesh, ids) for mesh, ids in zip(hulls.mesh, hulls.vertex_id, strict=True)])
    rows = np.concatenate([rows, np.full((1, *rows.shape[1:]), -1)])
    return np.where(rows < 0, np.arange(rows.shape[1])[:, None], rows).astype(np.int32)


class PlaneMeshContext(NamedTuple):
    """What `plane_mesh` needs: hulls of meshes, bounds of geoms, and neighbours of each vertex (r, V, K)."""

    hulls: HullTable
    rbound: Array
    neighbours: np.ndarray


def plane_mesh_setup(m: Any, g1: np.ndarray, g2: np.ndarray) -> PlaneMeshContext:
    """The context of pairs of planes g1 and meshes g2 (n,)."""
    hulls = hull_table(m, g2)
    return PlaneMeshContext(
        hulls,
        m.geom_rbound,
        _pad([_vertex_neighbours(m, mesh, ids) for mesh, ids in zip(hulls.mesh, hulls.vertex_id, strict=True)]),
    )


def _vertex_neighbours(m: Any, mesh: int, ids: np.ndarray) -> np.ndarray:
    """Neighbours of each hull vertex in the order of the hull's graph; all other vertices where there is no graph."""
    graph = m.mesh_graphadr[mesh]
    count = len(np.unique(ids))
    if graph < 0:
        return _pad_rows([[i for i in range(count) if i != v] for v in range(len(ids))])
    start, vertex, edge_list = np.split(m.mesh_graph[graph + 2 :], [m.mesh_graph[graph], 2 * m.mesh_graph[graph]])
    hull_index = np.searchsorted(ids[:count], vertex)
    rows = []
    for v in ids:
        # for meshes this small MuJoCo uses the vertex id as index in the graph
        local = v if m.mesh_vertnum[mesh] < MUJOCO_CLIMB_MIN_VERTICES else np.flatnonzero(vertex == v)[0]
        end = edge_list[start[min(local, len(start) - 1)] :]
        rows.append(hull_index[end[: np.flatnonzero(end < 0)[0]]])
    return _pad_rows(rows)
