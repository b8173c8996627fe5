"""Edges, shells and layers of a flex from its elements: pure connectivity, integers only.

An element has dim + 1 vertices: a segment, a triangle or a tetrahedron. A fragment is an element without one vertex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# corners of the edges of an element, in the order of flex_elemedge
LOCAL_EDGES = {1: [[0, 1]], 2: [[1, 2], [2, 0], [0, 1]], 3: [[0, 1], [1, 2], [2, 0], [2, 3], [0, 3], [1, 3]]}
# corners of the fragments of an element, outwards
_FRAGMENTS = {1: [[0], [1]], 2: [[0, 1], [1, 2], [2, 0]], 3: [[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]]}


@dataclass(frozen=True)
class Topology:
    """Connectivity of the elements of one flex.

    Attributes:
        edge: (nedge, 2) vertices of the edges, the lower first, in the order of their first appearance.
        elemedge: (nelem, edges of an element) edges of each element.
        flap: (nedge, 4) for triangles: the vertices of each edge in the orientation of its first triangle, then the
            vertices opposite to it in its first and last triangle, -1 if there is only one; (0, 4) otherwise.
        shell: (nshell, dim) fragments that belong to one element only.
        elemlayer: (nelem,) in 3D the number of elements between an element and the border, else zero.
        evpair: (nevpair, 2) element and opposite vertex of a neighbour, if one of the two is on the border.
    """

    edge: np.ndarray
    elemedge: np.ndarray
    flap: np.ndarray
    shell: np.ndarray
    elemlayer: np.ndarray
    evpair: np.ndarray


def topology(elem: np.ndarray) -> Topology:
    """Compute the connectivity of elements (nelem, dim + 1)."""
    dim = elem.shape[1] - 1
    edge, elemedge = _edges(elem)
    flap = _flaps(elem, elemedge, len(edge)) if dim == 2 else np.zeros((0, 4), np.int64)
    vertices, owner, oriented = _fragments(elem)
    same = np.all(vertices[1:] == vertices[:-1], axis=1)
    alone = ~(np.r_[False, same] | np.r_[same, False])
    border = np.zeros(len(elem), bool)
    border[owner[alone]] = True
    joined = np.stack([owner[:-1][same], owner[1:][same]], axis=1)
    layer = _layers(border, joined) if dim == 3 else np.zeros(len(elem), np.int64)
    evpair = _opposite_pairs(elem, joined, vertices[1:][same], border) if dim < 3 else np.zeros((0, 2), np.int64)
    return Topology(edge, elemedge, flap, oriented[alone], layer, evpair)


def _edges(elem: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.sort(elem[:, LOCAL_EDGES[elem.shape[1] - 1]], axis=2)
    edge, first, inverse = np.unique(pairs.reshape(-1, 2), axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.argsort(order)
    return edge[order], rank[inverse.reshape(-1)].reshape(pairs.shape[:2])


def _flaps(elem: np.ndarray, elemedge: np.ndarray, nedge: int) -> np.ndarray:
    flat = elemedge.ravel()
    flap = np.full((nedge, 4), -1, np.int64)
    _, first = np.unique(flat, return_index=True)
    last = len(flat) - 1 - np.unique(flat[::-1], return_index=True)[1]
    ends = elem[:, LOCAL_EDGES[2]].reshape(-1, 2)
    opposite = elem.ravel()  # edges of a triangle are numbered by the opposite corner
    flap[:, :2], flap[:, 2] = ends[first], opposite[first]
    shared = last != first
    flap[shared, 3] = opposite[last[shared]]
    return flap


def _fragments(elem: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all fragments, sorted: vertices in increasing order, elements, and vertices in outward orientation."""
    dim = elem.shape[1] - 1
    oriented = elem[:, _FRAGMENTS[dim]].reshape(-1, dim)
    owner = np.repeat(np.arange(len(elem)), dim + 1)
    vertices = np.sort(oriented, axis=1)
    order = np.lexsort((owner, *vertices.T[::-1]))
    return vertices[order], owner[order], oriented[order]


def _layers(border: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """Compute the distance of each element from the border, nelem + 1 if no path leads there."""
    layer = np.where(border, 0, len(border) + 1)
    while True:
        near = np.minimum(layer[joined[:, 0]], layer[joined[:, 1]]) + 1
        better = layer.copy()
        np.minimum.at(better, joined[:, 0], near)
        np.minimum.at(better, joined[:, 1], near)
        if np.array_equal(better, layer):
            return layer
        layer = better


def _opposite_pairs(elem: np.ndarray, joined: np.ndarray, common: np.ndarray, border: np.ndarray) -> np.ndarray:
    chosen = border[joined].any(axis=1)
    joined, common = joined[chosen], common[chosen]
    corners = elem[joined]
    outside = ~np.any(corners[..., None] == common[:, None, None, :], axis=-1)
    vertex = np.take_along_axis(corners, np.argmax(outside, axis=-1)[..., None], axis=-1)[..., 0]
    return np.stack([joined[:, ::-1], vertex], axis=-1).reshape(-1, 2)
