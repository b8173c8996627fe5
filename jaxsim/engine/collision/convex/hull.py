"""Convex hulls of meshes as tables: vertices, their neighbours, and faces."""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import GeomType
from jaxsim.engine.collision.convex.support import CLIMB_WIDTH, SCAN_WIDTH, Hulls, farthest_vertex
from jaxsim.engine.collision.shapes import Geoms
from jaxsim.engine.structure.geom_bounds import hull_vertices
from jaxsim.math.arrays import gather, row_at, take, with_row
from jaxsim.math.component import Vector, add, dot, scale, split, sub, vector
from jaxsim.math.safe import Array
from jaxsim.native.pool import for_each

MAX_POLYVERT = 150  # MuJoCo's limit for vertices of a face and faces of a vertex
CLIMB_MIN_VERTICES = 128  # hulls with as many vertices are searched by hill climbing
MUJOCO_CLIMB_MIN_VERTICES = 10  # mjMESH_HILLCLIMB_MIN: MuJoCo searches smaller meshes without the graph


class HullTable(NamedTuple):
    """Hulls of meshes, one row each; the last row is empty.

    `hulls` holds their vertices side by side; `first_vertex` (r,) and `scan` (r, 2) are those of each row (see
    `ConvexShape`); `vertex_id` ids (V,) in the mesh, for each row; `of_geom` (ngeom,) the row of each geom, the last
    one for geoms that are not meshes; `mesh` (r - 1,) the mesh of each row.
    """

    hulls: Hulls
    first_vertex: np.ndarray
    scan: np.ndarray
    vertex_id: list[np.ndarray]
    of_geom: np.ndarray
    mesh: np.ndarray


def hull_table(m: Any, geoms: np.ndarray) -> HullTable:
    """Collect the hulls of those geoms (n,) that are meshes or SDFs."""
    geoms = np.unique(geoms)
    meshes = (GeomType.MESH, GeomType.SDF)
    mesh = np.unique(m.geom_dataid[geoms[np.isin(m.geom_type[geoms], meshes)]])
    is_mesh = np.isin(m.geom_type, meshes) & np.isin(m.geom_dataid, mesh)
    of_geom = np.where(is_mesh, np.searchsorted(mesh, m.geom_dataid), len(mesh)).astype(np.int32)
    ids = [hull_vertices(m, i) for i in mesh]
    first = np.cumsum([0, *map(len, ids)])
    scans, edges = [], []
    for i, start, vertices in zip(mesh, first, ids, strict=False):
        large = len(vertices) >= CLIMB_MIN_VERTICES and m.mesh_graphadr[i] >= 0
        scans.append(_padded(start + _scanned(len(vertices), large), SCAN_WIDTH))
        neighbours = _vertex_neighbours(m, i, vertices) if large else np.zeros((len(vertices), 0), np.int32)
        edges += [_padded(start + row[row >= 0], CLIMB_WIDTH, start + v) for v, row in enumerate(neighbours)]
    none = np.zeros(0, np.int32)
    ends = np.cumsum([0, *map(len, scans)])
    scan = np.concatenate([*scans, np.zeros(SCAN_WIDTH, np.int32)]).astype(np.int32)
    edge = np.concatenate([none, *edges, np.zeros(CLIMB_WIDTH, np.int32)]).astype(np.int32)
    vertex = np.concatenate([none, *(m.mesh_vertadr[i] + v for i, v in zip(mesh, ids, strict=True))]).astype(np.int32)
    dtype = m.geom_size.dtype
    # one vertex follows the last, which a search that is not made reads
    first_edge = np.cumsum([0, *map(len, edges), 0]).astype(np.int32)
    scanned = vertex[scan] if len(vertex) else vertex
    tables = (components(m.mesh_vert, x, dtype) for x in (vertex, scanned))
    ends_of_hulls = np.append(first, first[-1]).astype(np.int32)  # of the last row, which is empty
    hulls = Hulls(*tables, *map(jnp.asarray, (scan, first_edge, edge, ends_of_hulls)))
    rows = np.stack([ends, [*ends[1:], ends[-1]]], axis=1)
    return HullTable(hulls, first.astype(np.int32), rows.astype(np.int32), ids, of_geom, mesh)


def components(x: Array, rows: np.ndarray, dtype: Any) -> Vector:
    """Take the components of rows (n,) of vectors x (k, 3); some zeros if there are none.

    Each is a gather: XLA takes gathers out of a loop of steps, but not the slices of one.
    """
    if not len(rows):
        return vector(jnp.zeros(2 * SCAN_WIDTH, dtype) for _ in range(3))  # for searches that are not made
    return vector(jnp.asarray(take(x.reshape(-1), 3 * rows + k), dtype) for k in range(3))


def _scanned(count: int, large: bool) -> np.ndarray:
    """The vertices of a hull that are compared before climbing: all, or about as many as the climb takes steps."""
    if not large:
        return np.arange(count)
    width = -(-int(count**0.5) // SCAN_WIDTH) * SCAN_WIDTH
    return np.linspace(0, count - 1, width).astype(int)


def _padded(x: np.ndarray, width: int, value: int | None = None) -> np.ndarray:
    """Indices, with the first one or `value` appended up to a multiple of `width`."""
    return np.concatenate([x, np.full(-len(x) % width, x[0] if value is None else value)]).astype(np.int32)


class FacetTable(NamedTuple):
    """Faces side by side, of which the first six are those of a box.

    `normal` are their components (f,) in the geoms' frames. Corners of face i, in order, are entries of `corner` from
    `first_corner[i]` to `first_corner[i + 1]`. Faces at vertex v are entries of `face` from
    `first_face[v]` to `first_face[v + 1]`; `edge_end` is the other end of an edge of that face at that vertex. Vertex
    v is number v - `first_vertex` of its hull, as are corners and ends; those of the box follow the others. Bit i of a
    box's vertex number says whether coordinate i is positive.
    """

    normal: Vector
    first_corner: Array
    corner: Array
    first_face: Array
    face: Array
    edge_end: Array


BOX_CORNERS = np.array([[7, 3, 1, 5], [2, 6, 4, 0], [2, 3, 7, 6], [4, 5, 1, 0], [6, 7, 5, 4], [3, 2, 0, 1]], np.int32)
BOX_NORMALS = np.repeat(np.eye(3), 2, axis=0) * np.tile([1.0, -1.0], 3)[:, None]


def facet_table(m: Any, hulls: HullTable) -> tuple[FacetTable, int]:
    """List the faces of the hulls of meshes and of a box, and count the most corners that one has."""
    of_meshes = [m.mesh_polyadr[i] + np.arange(m.mesh_polynum[i]) for i in hulls.mesh]
    begin = np.cumsum([len(BOX_NORMALS), *map(len, of_meshes)])
    meshes = [_mesh_faces(m, *row) for row in zip(hulls.mesh, hulls.vertex_id, begin, strict=False)]
    box_corners, *box_vertices = _box_faces()
    corners = [*box_corners, *(x for part in meshes for x in part[0])]
    faces, ends = ([*(x for part in meshes for x in part[i + 1]), *box_vertices[i]] for i in (0, 1))
    rows = [*_in_rows(corners), *_in_rows(faces), _in_rows(ends)[1]]
    dtype = hulls.hulls.vert[0].dtype
    normal = vector(jnp.asarray(x, dtype) for x in BOX_NORMALS.T)
    if of_meshes:
        own = components(m.mesh_polynormal, np.concatenate(of_meshes), dtype)
        normal = vector(map(jnp.concatenate, zip(normal, own, strict=True)))
    # a walk along a row looks at the entry behind its end
    table = FacetTable(normal, *(jnp.asarray(np.append(x, x[-1]), jnp.int32) for x in rows))
    return table, max(map(len, corners))


def _in_rows(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of different length one after the other: where each begins, with the end of the last, and all entries."""
    return np.cumsum([0, *map(len, rows)]), np.concatenate(rows)


def _box_faces() -> tuple[list, list, list]:
    """Corners of the faces of a box, +x, -x, +y, -y, +z, -z; faces at its vertices; ends of edges there."""
    vertex = np.arange(8)[:, None]
    faces = np.where((vertex >> np.arange(3)) & 1, 0, 1) + np.array([0, 2, 4])
    return list(BOX_CORNERS), list(faces), list(vertex ^ np.array([1, 2, 4]))


def _mesh_faces(m: Any, mesh: int, ids: np.ndarray, first: int) -> tuple[list, list, list]:
    """Corners of the faces of a mesh's hull with vertices `ids`; faces at them, from `first` on; ends of edges."""
    hull_index = np.full(m.mesh_vertnum[mesh], -1)
    hull_index[ids[::-1]] = np.arange(len(ids))[::-1]
    faces = []
    for f in range(m.mesh_polyadr[mesh], m.mesh_polyadr[mesh] + m.mesh_polynum[mesh]):
        adr, num = m.mesh_polyvertadr[f], m.mesh_polyvertnum[f]
        faces.append(hull_index[m.mesh_polyvert[adr : adr + min(num, MAX_POLYVERT)]])
    faces_at, edge_end = [], []
    for v in ids:
        adr, num = m.mesh_polymapadr[m.mesh_vertadr[mesh] + v], m.mesh_polymapnum[m.mesh_vertadr[mesh] + v]
        of_vertex = m.mesh_polymap[adr : adr + min(num, MAX_POLYVERT)]
        faces_at.append(first + of_vertex)
        edge_end.append(np.array([faces[f][np.flatnonzero(faces[f] == hull_index[v])[0] - 1] for f in of_vertex], int))
    return [f[::-1] for f in faces], faces_at, edge_end


def _pad_rows(rows: list) -> np.ndarray:
    """Rows of different length as one table, padded by -1."""
    width = max((len(r) for r in rows), default=1)
    return np.array([[*r, *[-1] * (width - len(r))] for r in rows], dtype=np.int32).reshape(len(rows), width)


class VertexNeighbours(NamedTuple):
    """Neighbours of the vertices of hulls: those of vertex v are `vertex[first[v]:first[v + 1]]`."""

    first: Array
    vertex: Array


class PlaneMeshContext(NamedTuple):
    """Context of `plane_mesh`: hulls of meshes, bounds of geoms, and neighbours of each vertex."""

    hulls: HullTable
    rbound: Array
    neighbours: VertexNeighbours


def plane_mesh_setup(m: Any, g1: np.ndarray, g2: np.ndarray) -> PlaneMeshContext:
    """Build the context of pairs of planes g1 and meshes g2 (n,)."""
    hulls = hull_table(m, g2)
    of_meshes = zip(hulls.mesh, hulls.vertex_id, hulls.first_vertex, strict=False)
    rows = [first + row[row >= 0] for mesh, ids, first in of_meshes for row in _vertex_neighbours(m, mesh, ids)]
    # a vertex without neighbours may be the last one: its walk looks at the entry behind them
    neighbours = VertexNeighbours(*(np.append(x, x[-1:]).astype(np.int32) for x in _in_rows(rows)))
    return PlaneMeshContext(hulls._replace(vertex_id=[]), m.geom_rbound, neighbours)


class HullAbovePlane(NamedTuple):
    """A hull above a plane, in the hull's frame: the direction `down` (3,), and the origin's height above the plane.

    `row` and `first` are those of the hull in its table. Vertices below `margin` touch the plane. Further ones must be
    at least `apart` from the point of the first contact.
    """

    row: Array
    first: Array
    down: Array
    height: Array
    margin: Array
    apart: Array


class TouchingVertices(NamedTuple):
    """The lowest vertex of a hull, the point of its contact, and `count` vertices (3,) that touch a plane."""

    lowest: Array
    point: Vector
    vertex: Array
    count: Array


def touching_vertices(
    c: PlaneMeshContext, g: Geoms, down: Array, height: Array, margin: Array, apart: Array, count: Array
) -> tuple[Array, Array]:
    """Find the vertices (n, 3) in `Hulls` where meshes of n geoms touch planes, and how many of them do (n,).

    These are the lowest vertex and the first two of its neighbours within the margin that are apart from its contact.
    The operands (n, ...) are fields of `HullAbovePlane`; the first `count` geoms are searched.
    """
    row = gather(jnp.asarray(c.hulls.of_geom), g.id)
    first, scan = gather(jnp.asarray(c.hulls.first_vertex), row), gather(jnp.asarray(c.hulls.scan), row)
    tables = c.hulls.hulls, VertexNeighbours(*map(jnp.asarray, c.neighbours))

    def search(tables: tuple[Hulls, VertexNeighbours], entry: tuple, _: Array) -> tuple[Array, Array, Array]:
        (above, scan), down = entry, split(entry[0].down)
        lowest, index = farthest_vertex(tables[0], above.row, above.first, scan, down)
        dist, at = above.height - dot(lowest, down), above.first + index
        point = add(lowest, scale(0.5 * dist, down))
        found = TouchingVertices(at, point, jnp.stack([at, at, at]), (dist <= above.margin).astype(jnp.int32))
        found = lax.platform_dependent(
            above, found, tpu=partial(neighbours_by_hull, *tables), default=partial(neighbours_by_walk, *tables)
        )
        return found.vertex, found.count, dist

    above = HullAbovePlane(row, first, down, height, margin, apart)
    vertex, number, _ = for_each(search, tables, (above, scan), count)
    return vertex, number


def neighbours_by_walk(
    hulls: Hulls, neighbours: VertexNeighbours, above: HullAbovePlane, found: TouchingVertices
) -> TouchingVertices:
    """Add the touching neighbours of the lowest vertex, if that touches the plane."""
    return _with_neighbours(hulls, neighbours, above, found.lowest, found)


def neighbours_by_hull(
    hulls: Hulls, neighbours: VertexNeighbours, above: HullAbovePlane, found: TouchingVertices
) -> TouchingVertices:
    """Do as `neighbours_by_walk`, for a TPU: loop over all vertices of the hull, which all worlds of a block share."""

    def visit(v: Array, found: TouchingVertices) -> TouchingVertices:
        step = partial(_with_neighbours, hulls, neighbours, above, v)
        return lax.cond((v == found.lowest) & (found.count > 0), step, lambda found: found, found)

    return lax.fori_loop(above.first, row_at(hulls.first, above.row + 1), visit, found)


def _with_neighbours(
    hulls: Hulls, neighbours: VertexNeighbours, above: HullAbovePlane, v: Array, found: TouchingVertices
) -> TouchingVertices:
    """Add the touching neighbours of a vertex until there are three vertices; none if there is no vertex yet."""
    down = split(above.down)

    def visit(k: Array, found: TouchingVertices) -> TouchingVertices:
        other = row_at(neighbours.vertex, k)
        local = vector(row_at(x, other) for x in hulls.vert)
        gap = sub(local, found.point)
        near = (above.height - dot(local, down) < above.margin) & (jnp.sqrt(dot(gap, gap)) >= above.apart)
        near &= (found.count > 0) & (found.count < 3)
        at = jnp.minimum(found.count, 2)
        new = with_row(found.vertex, at, jnp.where(near, other, row_at(found.vertex, at)))
        return found._replace(vertex=new, count=found.count + near)

    return lax.fori_loop(row_at(neighbours.first, v), row_at(neighbours.first, v + 1), visit, found)


def _vertex_neighbours(m: Any, mesh: int, ids: np.ndarray) -> np.ndarray:
    """Neighbours of each hull vertex in the order of the hull's graph; all other vertices where there is no graph."""
    graph = m.mesh_graphadr[mesh]
    count = len(np.unique(ids))
    if graph < 0:
        return _pad_rows([[i for i in range(count) if i != v] for v in range(len(ids))])
    start, vertex, edges = np.split(m.mesh_graph[graph + 2 :], [m.mesh_graph[graph], 2 * m.mesh_graph[graph]])
    # for meshes this small MuJoCo uses the vertex id as index in the graph
    small = m.mesh_vertnum[mesh] < MUJOCO_CLIMB_MIN_VERTICES
    by_vertex = np.argsort(vertex, kind="stable")
    local = ids if small else by_vertex[np.searchsorted(vertex, ids, sorter=by_vertex)]
    first = start[np.minimum(local, len(start) - 1)]
    ends = np.flatnonzero(edges < 0)  # each vertex's list ends with a negative number
    count = ends[np.searchsorted(ends, first)] - first
    column = np.arange(count.max(initial=1))
    other = edges[np.minimum(first[:, None] + column, len(edges) - 1)]
    real = column < count[:, None]
    hull_index = np.searchsorted(ids[: len(np.unique(ids))], vertex)
    return np.where(real, hull_index[np.where(real, other, 0)], -1).astype(np.int32)
