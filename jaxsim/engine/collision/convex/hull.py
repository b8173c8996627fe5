"""Convex hulls of meshes as padded tables: vertices, faces, and what touches what."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import GeomType
from jaxsim.math.safe import Array

MAX_POLYVERT = 150  # most vertices of a face, and faces of a vertex, that the reference looks at
CLIMB = 200  # hulls of as many vertices are searched along their edges
HILL_CLIMB = 10  # meshes of fewer vertices are searched without the graph


class Hulls(NamedTuple):
    """Hulls of the meshes of some geoms, one row each, padded by repeating the first vertex; the last row is empty.

    `vert` (r, V, 3) in the geoms' frames; `vertex_id` (r - 1, V) as the mesh numbers them; `of_geom` (ngeom,) the row
    of each geom, the last one for geoms that are no meshes; `mesh` (r - 1,) the mesh of each row.
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


def hulls(m: Any, geoms: np.ndarray) -> Hulls:
    """The hulls of those geoms (n,) that are meshes."""
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
    return Hulls(vert, table, of_geom, mesh)


def hull_vertices(m: Any, mesh: int) -> np.ndarray:
    """Ids of the vertices on a mesh's convex hull, or of all its vertices if it has none."""
    graph = m.mesh_graphadr[mesh]
    if graph < 0:
        return np.arange(m.mesh_vertnum[mesh])
    count = m.mesh_graph[graph]
    return np.sort(m.mesh_graph[graph + 2 + count : graph + 2 + 2 * count])


class Facets(NamedTuple):
    """Faces of the hulls of some geoms, one row each; -1 pads.

    `around` (r, V, K): faces at each vertex; `beside` (r, V, K): the other end of an edge of that face at that vertex;
    `corner` (r, F, P): vertices of each face in order; `count` (r, F) how many; `normal` (r, F, 3) in the geom's frame.
    Vertices are numbered as the rows of `Hulls.vert`. The last row is a box, its vertices numbered by the bits of which
    coordinates are positive.
    """

    around: np.ndarray
    beside: np.ndarray
    corner: np.ndarray
    count: np.ndarray
    normal: Array


BOX_CORNERS = np.array([[7, 3, 1, 5], [2, 6, 4, 0], [2, 3, 7, 6], [4, 5, 1, 0], [6, 7, 5, 4], [3, 2, 0, 1]], np.int32)
BOX_SIGNS = np.where((np.arange(8)[:, None] >> np.arange(3)) & 1, 1.0, -1.0)


def box_facets() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Faces of a box, +x, -x, +y, -y, +z, -z: around, beside and corner."""
    vertex = np.arange(8)[:, None]
    around = np.where((vertex >> np.arange(3)) & 1, 0, 1) + np.array([0, 2, 4])
    return around, vertex ^ np.array([1, 2, 4]), BOX_CORNERS


def facets(m: Any, h: Hulls) -> Facets:
    """Faces of the hulls of meshes, one row each; the last row is a box."""
    rows = [_mesh_facets(m, mesh, ids) for mesh, ids in zip(h.mesh, h.vertex_id, strict=True)] + [box_facets()]
    around, beside, corner = [_pad([row[i] for row in rows]) for i in range(3)]
    count = np.sum(corner >= 0, axis=-1)
    normal = [jnp.asarray(np.repeat(np.eye(3), 2, axis=0) * np.tile([1.0, -1.0], 3)[:, None], h.vert.dtype)]
    for mesh in h.mesh[::-1]:
        first = m.mesh_polyadr[mesh]
        normal.insert(0, jnp.asarray(m.mesh_polynormal[first : first + m.mesh_polynum[mesh]], h.vert.dtype))
    width = count.shape[1]
    return Facets(around, beside, corner, count, jnp.stack([jnp.pad(x, ((0, width - len(x)), (0, 0))) for x in normal]))


def _mesh_facets(m: Any, mesh: int, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    place = np.full(m.mesh_vertnum[mesh], -1)
    place[ids[::-1]] = np.arange(len(ids))[::-1]
    first = m.mesh_polyadr[mesh]
    faces = []
    for f in range(first, first + m.mesh_polynum[mesh]):
        adr, num = m.mesh_polyvertadr[f], m.mesh_polyvertnum[f]
        faces.append(place[m.mesh_polyvert[adr : adr + min(num, MAX_POLYVERT)]])
    around, beside = [], []
    for v in ids:
        adr, num = m.mesh_polymapadr[m.mesh_vertadr[mesh] + v], m.mesh_polymapnum[m.mesh_vertadr[mesh] + v]
        mine = m.mesh_polymap[adr : adr + min(num, MAX_POLYVERT)]
        around.append(mine)
        beside.append([faces[f][np.flatnonzero(faces[f] == place[v])[0] - 1] for f in mine])
    return _pad_rows(around), _pad_rows(beside), _pad_rows([f[::-1] for f in faces])


def _pad_rows(rows: list) -> np.ndarray:
    width = max((len(r) for r in rows), default=1)
    return np.array([[*r, *[-1] * (width - len(r))] for r in rows], dtype=np.int32).reshape(len(rows), width)


def _pad(tables: list[np.ndarray]) -> np.ndarray:
    shape = np.max([t.shape for t in tables], axis=0)
    return np.stack(
        [np.pad(t, [(0, s - n) for s, n in zip(shape, t.shape, strict=True)], constant_values=-1) for t in tables]
    )


def edges(m: Any, h: Hulls) -> np.ndarray | None:
    """The ends of the edges at each hull vertex (r, V, K), padded by the vertex itself; None for small hulls."""
    if not len(h.mesh) or h.vert.shape[1] < CLIMB or np.any(m.mesh_graphadr[h.mesh] < 0):
        return None
    rows = _pad([_beside(m, mesh, ids) for mesh, ids in zip(h.mesh, h.vertex_id, strict=True)])
    rows = np.concatenate([rows, np.full((1, *rows.shape[1:]), -1)])
    return np.where(rows < 0, np.arange(rows.shape[1])[:, None], rows).astype(np.int32)


class Rim(NamedTuple):
    """Hulls of meshes, the bounds of geoms, and for each vertex those that may touch a plane with it (r, V, K)."""

    hulls: Hulls
    rbound: Array
    beside: np.ndarray


def rims(m: Any, g1: np.ndarray, g2: np.ndarray) -> Rim:
    """The rims of meshes g2 (n,)."""
    h = hulls(m, g2)
    return Rim(h, m.geom_rbound, _pad([_beside(m, mesh, ids) for mesh, ids in zip(h.mesh, h.vertex_id, strict=True)]))


def _beside(m: Any, mesh: int, ids: np.ndarray) -> np.ndarray:
    """Neighbours of each hull vertex in the order of the hull's graph; all other vertices where there is no graph."""
    graph = m.mesh_graphadr[mesh]
    count = len(np.unique(ids))
    if graph < 0:
        return _pad_rows([[i for i in range(count) if i != v] for v in range(len(ids))])
    start, vertex, edges = np.split(m.mesh_graph[graph + 2 :], [m.mesh_graph[graph], 2 * m.mesh_graph[graph]])
    place = np.searchsorted(ids[:count], vertex)
    rows = []
    for v in ids:
        # of meshes this small the reference takes the vertex's own number for its number in the graph
        local = v if m.mesh_vertnum[mesh] < HILL_CLIMB else np.flatnonzero(vertex == v)[0]
        around = edges[start[min(local, len(start) - 1)] :]
        rows.append(place[around[: np.flatnonzero(around < 0)[0]]])
    return _pad_rows(rows)
