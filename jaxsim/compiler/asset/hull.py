"""Convex hulls and their graphs, in the format of `mesh_graph`.

The hull is Qhull's (through scipy) with the option "Qt". scipy gives the triangles in Qhull's own order, but neither
the order of its vertex list nor the order of the facets around a vertex. The program `qhull` prints both.

Without that program the orders are reconstructed from the triangles. Qhull moves a vertex to the end of its list
whenever a new facet has it, in batches of one added point each; the triangulation of merged facets is the last batch.
It appends each new facet to the neighbours of its vertices. If Qhull has merged facets on its way, it has shuffled
these lists: then the order of neighbours, and rarely that of vertices, differs from MuJoCo's. The sets are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from jaxsim.compiler.asset import qhull as lists
from jaxsim.core.errors import ModelError
from jaxsim.core.types import MINVAL

_AREA_TOLERANCE = 1e-9
_KNOWN_HULLS = 1024  # cached in a process by content, for models loaded again and repeated parts


@dataclass(frozen=True)
class Hull:
    """A convex hull.

    Attributes:
        vertex: (nv,) int32, indices of the hull's vertices in the point set, in Qhull's order.
        face: (nf, 3) int32, triangles of point indices, counter-clockwise seen from outside.
        graph: (2 + 3 nv + 6 nf,) int32, the record of `mesh_graph`: nv, nf, vert_edgeadr (nv), vert_globalid (nv),
            edge_localid (nv + 3 nf, each vertex's neighbours closed by -1), face_globalid (3 nf).
    """

    vertex: np.ndarray
    face: np.ndarray
    graph: np.ndarray


def convex_hull(vert: np.ndarray, maxhullvert: int = -1, name: str = "") -> Hull:
    """Compute the convex hull of points.

    Args:
        vert: (n, 3) float64 points, n >= 4.
        maxhullvert: most vertices that the hull may have (4 or more), or -1.
        name: the mesh's name, for messages.

    Raises:
        ModelError: if the points lie on a point, a line or a plane, or Qhull fails.
    """
    _check_spread(vert, name)
    try:
        return _hull(np.ascontiguousarray(vert, np.float64).tobytes(), maxhullvert, lists.program())
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(f"convex hull of mesh '{name}' failed: qhull error") from error


@lru_cache(maxsize=_KNOWN_HULLS)
def _hull(points: bytes, maxhullvert: int, command: str | None) -> Hull:
    """Compute the hull of the bytes of points (n, 3), its arrays read-only; `command` is the program `qhull`, or None.

    Raises ValueError if Qhull fails.
    """
    from scipy.spatial import ConvexHull, QhullError  # imported here, since models without meshes do not need it

    vert = np.frombuffer(points).reshape(-1, 3)
    options = "Qt" if maxhullvert < 0 else f"Qt TA{maxhullvert - 4}"
    try:
        qhull = ConvexHull(vert, qhull_options=options)
    except QhullError as error:
        raise ValueError(str(error)) from error
    simplices = qhull.simplices.astype(np.int64)
    face = _orient(vert, simplices, qhull.equations, qhull.neighbors)
    known = lists.qhull_lists(command, vert, options, simplices)
    if known is not None and known.vertex is not None:
        vertex = known.vertex
    else:
        vertex = _vertex_order(simplices, _batches(simplices, qhull.equations))
    around = known.around if known is not None else None
    arrays = vertex.astype(np.int32), face.astype(np.int32), _graph(simplices, face, vertex, around)
    for array in arrays:
        array.flags.writeable = False
    return Hull(*arrays)


def _check_spread(vert: np.ndarray, name: str) -> None:
    """Raise ModelError if the points do not span space."""
    delta = vert - vert[0]
    length = np.sqrt((delta * delta).sum(axis=1))
    far = np.flatnonzero(length > MINVAL)
    if far.size == 0:
        raise ModelError(
            f"mesh '{name}' has colocated vertices, cannot compute convex hull. Consider using a small sphere instead"
        )
    edge, size = delta[far[0]], length[far[0]]
    cross = np.cross(edge, delta)
    norm = np.sqrt((cross * cross).sum(axis=1))
    wide = np.flatnonzero((norm > MINVAL * size * length) & (length >= MINVAL))
    if wide.size == 0:
        raise ModelError(
            f"mesh '{name}' has collinear vertices, cannot compute convex hull. Consider using a thin capsule instead"
        )
    normal = cross[wide[0]] / norm[wide[0]]
    height = vert @ normal - vert[0] @ normal
    if not np.any(np.abs(height) > MINVAL * size):
        raise ModelError(
            f"mesh '{name}' has coplanar vertices, cannot compute convex hull. "
            "Consider using a primitive geom type (plane or thin box) instead"
        )


def _orient(vert: np.ndarray, simplices: np.ndarray, equations: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """Orient triangles outwards: by the plane's normal, or by an adjacent triangle if they have no area."""
    a, b, c = (vert[simplices[:, k]] for k in range(3))
    cross = np.cross(b - a, c - a)
    along = (cross * equations[:, :3]).sum(axis=1)
    scale = np.maximum(((b - a) ** 2).sum(axis=1), ((c - a) ** 2).sum(axis=1))
    flip = along < 0
    unsure = np.abs(along) <= _AREA_TOLERANCE * scale
    face = np.where(flip[:, None], simplices[:, [1, 0, 2]], simplices)
    todo = set(np.flatnonzero(unsure).tolist())
    while todo:
        ready = [i for i in todo if any(n not in todo for n in neighbors[i])]
        if not ready:
            break
        for i in ready:
            other = face[next(n for n in neighbors[i] if n not in todo)]
            face[i] = _reverse_to(simplices[i], other)
            todo.discard(i)
    return face


def _reverse_to(triangle: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return `triangle`, with its first two vertices swapped if necessary.

    The shared edge then has the opposite direction in `other`.
    """
    edges = {(int(other[k]), int(other[(k + 1) % 3])) for k in range(3)}
    runs = any((int(triangle[k]), int(triangle[(k + 1) % 3])) in edges for k in range(3))
    return triangle[[1, 0, 2]] if runs else triangle


def _batches(simplices: np.ndarray, equations: np.ndarray) -> np.ndarray:
    """Return the number (nf,) of the batch that created each triangle; triangles of merged facets share the last."""
    changed = np.r_[False, simplices[1:, 0] != simplices[:-1, 0]]
    batch = np.cumsum(changed)
    same = np.r_[False, (equations[1:] == equations[:-1]).all(axis=1)]
    if same.any():
        batch[np.flatnonzero(same)[0] - 1 :] = len(simplices)
    return batch


def _vertex_order(simplices: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """Sort the hull vertices by the last batch that has them, then by their first position in that batch."""
    if len(simplices) == 4:  # each triangle has its vertices in the list's order
        vertex, index = np.unique(simplices, return_inverse=True)
        return vertex[np.argsort(np.bincount(index.reshape(-1), np.tile(range(3), 4)))]
    flat = simplices.reshape(-1)
    of = np.repeat(batch, 3)
    last = np.full(flat.max() + 1, -1, dtype=np.int64)
    np.maximum.at(last, flat, of)
    keep = np.flatnonzero(of == last[flat])
    _, first = np.unique(flat[keep], return_index=True)
    return flat[keep[np.sort(first)]]


def _graph(
    simplices: np.ndarray, face: np.ndarray, vertex: np.ndarray, around: tuple[np.ndarray, np.ndarray] | None
) -> np.ndarray:
    """Return the record of `mesh_graph`; `around` has the pairs (vertex, triangle) in Qhull's order, or is None."""
    nv, nf = len(vertex), len(face)
    local = np.full(simplices.max() + 1, -1, dtype=np.int64)
    local[vertex] = np.arange(nv)
    tri = local[simplices]
    # (vertex, neighbour) in the order of triangles, then of the vertices in a triangle; first occurrence counts
    if around is None:
        source = np.repeat(tri, 3, axis=1).reshape(-1)
        target = np.tile(tri, (1, 3)).reshape(-1)
    else:
        source = np.repeat(local[around[0]], 3)
        target = tri[around[1]].reshape(-1)
    pair = (source * nv + target)[source != target]
    _, first = np.unique(pair, return_index=True)
    pair = pair[np.sort(first)]
    pair = pair[np.argsort(pair // nv, kind="stable")]
    count = np.bincount(pair // nv, minlength=nv)
    edgeadr = np.r_[0, np.cumsum(count + 1)[:-1]]
    edge = np.full(nv + 3 * nf, -1, dtype=np.int64)
    if len(pair) != 3 * nf:
        raise ModelError("convex hull is not a closed surface of triangles")
    edge[np.arange(len(pair)) + pair // nv] = pair % nv
    return np.concatenate([[nv, nf], edgeadr, vertex, edge, face.reshape(-1)]).astype(np.int32)
