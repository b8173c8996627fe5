"""Octrees of signed distance, for meshes used by geoms of type sdf.

Boxes that touch the surface are halved along each axis down to a fixed depth, then boxes are halved until neighbours
differ by one level at most. Signed distances are stored at the corners; a corner in the middle of a face or an edge of
a coarser neighbour takes the mean of that face's or edge's corners, so that the interpolated field is continuous.

Every box is a cell of a regular grid of its level, and every corner a point of the finest grid, so that neighbours are
found by index. Levels are built one after the other, all boxes of a level at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.compiler.asset.bvh import Bvh, cross, dot

_INFLATE = 1.1
_CHUNK = 1 << 14
_CORNER = (np.arange(8)[:, None] >> np.arange(3)) & 1


@dataclass(frozen=True)
class Octree:
    """A tree of boxes with the signed distance at their corners.

    Attributes:
        aabb: (n, 6) centre and half sizes.
        child: (n, 8) int32, -1 in a leaf.
        depth: (n,) int32.
        coeff: (n, 8) signed distance at the corners; bit k of a corner's number is low or high along axis k.
    """

    aabb: np.ndarray
    child: np.ndarray
    depth: np.ndarray
    coeff: np.ndarray

    @classmethod
    def empty(cls) -> Octree:
        """Return an octree without boxes, for a mesh that no sdf geom uses."""
        return cls(np.zeros((0, 6)), np.zeros((0, 8), np.int32), np.zeros(0, np.int32), np.zeros((0, 8)))


class _OctreeGrid:
    """Boxes under construction: level, cell and children of every node, and the nodes by level and cell."""

    def __init__(self, aamm: np.ndarray, maxdepth: int):
        center, half = (aamm[:3] + aamm[3:]) / 2, (aamm[3:] - aamm[:3]) / 2
        self.maxdepth = maxdepth
        self.planes = np.stack([center - _INFLATE * half, center + _INFLATE * half])
        for _ in range(maxdepth):
            middle = (self.planes[1:] + self.planes[:-1]) / 2
            finer = np.empty((len(self.planes) + len(middle), 3))
            finer[::2], finer[1::2] = self.planes, middle
            self.planes = finer
        self.level = np.zeros(1, dtype=np.int64)
        self.cell = np.zeros((1, 3), dtype=np.int64)
        self.first_child = np.full(1, -1, dtype=np.int64)
        self.at = [np.full((1 << k,) * 3, -1, dtype=np.int64) for k in range(maxdepth + 1)]
        self.at[0][0, 0, 0] = 0

    def corners(self) -> np.ndarray:
        """Return the corners (n, 8, 3) of all nodes, as indices into the planes."""
        shift = (self.maxdepth - self.level)[:, None, None]
        return (self.cell[:, None, :] + _CORNER) << shift

    def bounds(self, node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the low and high corners of nodes."""
        shift = (self.maxdepth - self.level[node])[:, None]
        axis = np.arange(3)
        return self.planes[self.cell[node] << shift, axis], self.planes[(self.cell[node] + 1) << shift, axis]

    def subdivide(self, node: np.ndarray) -> None:
        """Give eight children to every one of the nodes."""
        first = len(self.level) + 8 * np.arange(len(node))
        self.first_child[node] = first
        cell = (2 * self.cell[node][:, None, :] + _CORNER).reshape(-1, 3)
        level = np.repeat(self.level[node] + 1, 8)
        new = len(self.level) + np.arange(len(level))
        for k in np.unique(level):
            at = level == k
            self.at[k][tuple(cell[at].T)] = new[at]
        self.cell = np.concatenate([self.cell, cell])
        self.level = np.concatenate([self.level, level])
        self.first_child = np.concatenate([self.first_child, np.full(len(level), -1)])

    def neighbors(self, node: np.ndarray) -> np.ndarray:
        """Return the leaf beyond each face (x low, x high, y low, ...), -1 outside: (n, 6).

        Of finer leaves it is the one nearest the middle of the face.
        """
        out = np.full((len(node), 6), -1, dtype=np.int64)
        level = self.level[node]
        for direction in range(6):
            axis, side = direction // 2, direction % 2
            cell = self.cell[node].copy()
            cell[:, axis] += 2 * side - 1
            inside = (cell[:, axis] >= 0) & (cell[:, axis] < 1 << level)
            found = self._deepest(np.where(inside[:, None], cell, 0), level)
            out[:, direction] = np.where(inside, self._descend(found, level, axis, side), -1)
        return out

    def _deepest(self, cell: np.ndarray, level: np.ndarray) -> np.ndarray:
        """Return the deepest nodes, down to the levels given, that hold the cells."""
        found = np.zeros(len(cell), dtype=np.int64)
        for k in range(1, self.maxdepth + 1):
            at = self.at[k][tuple((cell >> np.maximum(level - k, 0)[:, None]).clip(max=(1 << k) - 1).T)]
            found = np.where((k <= level) & (at >= 0), at, found)
        return found

    def _descend(self, node: np.ndarray, level: np.ndarray, axis: int, side: int) -> np.ndarray:
        """Return the leaves under nodes of the same level: on the near side, and around the middle of the face."""
        near = (1 - side) << axis
        across = 7 & ~(1 << axis)
        for _ in range(self.maxdepth):
            inner = self.first_child[node] >= 0
            slot = near | np.where(self.level[node] > level, across, 0)
            node = np.where(inner, self.first_child[node] + slot, node)
        return node


def build_octree(vert: np.ndarray, face: np.ndarray, aamm: np.ndarray, bvh: Bvh, maxdepth: int = 6) -> Octree:
    """Build the octree of a closed mesh.

    Args:
        vert: (n, 3) float64. face: (nf, 3).
        aamm: (6,) least and greatest corner of the mesh.
        bvh: hierarchy of the faces, for a fast search of the closest one.
        maxdepth: deepest level of the boxes.
    """
    grid = _OctreeGrid(aamm, maxdepth)
    _refine(grid, vert[face])
    _balance(grid)
    low, high = grid.bounds(np.arange(len(grid.level)))
    child = np.where(grid.first_child[:, None] >= 0, grid.first_child[:, None] + np.arange(8), -1)
    return Octree(
        aabb=np.concatenate([(low + high) / 2, (high - low) / 2], axis=1),
        child=child.astype(np.int32),
        depth=grid.level.astype(np.int32),
        coeff=_coefficients(grid, vert, face, bvh),
    )


def _refine(grid: _OctreeGrid, triangle: np.ndarray) -> None:
    """Halve every box that a triangle touches, level by level."""
    node = np.zeros(len(triangle), dtype=np.int64)
    element = np.arange(len(triangle))
    for _ in range(grid.maxdepth):
        low, high = grid.bounds(node)
        parts = [slice(k, k + _CHUNK) for k in range(0, len(node), _CHUNK)]
        hit = np.concatenate(
            [_box_triangle(triangle[element[p]], low[p], high[p]) for p in parts] or [np.zeros(0, bool)]
        )
        node, element = node[hit], element[hit]
        if not len(node):
            return
        grid.subdivide(np.unique(node))
        node = (grid.first_child[node][:, None] + np.arange(8)).reshape(-1)
        element = np.repeat(element, 8)


def _box_triangle(v: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return whether triangles (n, 3, 3) touch boxes, (n,): tests of bounds, plane, then the three projections."""
    hit = ~np.any((v < low[:, None]).all(axis=1) | (v > high[:, None]).all(axis=1), axis=1)
    edge = np.roll(v, -1, axis=1) - v
    n = cross(edge[:, 0], edge[:, 1])
    size = high - low
    c = np.where(n > 0, size, 0.0)
    base = dot(n, low)
    hit &= ~((base + dot(n, c - v[:, 0])) * (base + dot(n, size - c - v[:, 0])) > 0)
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        sign = np.where(n[:, a] >= 0, 1.0, -1.0)
        for i in range(3):
            x, y = -edge[:, i, c] * sign, edge[:, i, b] * sign
            d = -(x * v[:, i, b] + y * v[:, i, c]) + np.maximum(0, size[:, b] * x) + np.maximum(0, size[:, c] * y)
            hit &= ~((x * low[:, b] + y * low[:, c]) + d < 0)
    return hit


def _balance(grid: _OctreeGrid) -> None:
    """Halve boxes until the levels of neighbours differ by one at most."""
    while True:
        leaf = np.flatnonzero(grid.first_child < 0)
        neighbor = grid.neighbors(leaf)
        level = np.where(neighbor >= 0, grid.level[neighbor], grid.level[leaf][:, None])
        own = grid.level[leaf][:, None]
        coarse = np.where(level > own + 1, leaf[:, None], np.where(own > level + 1, neighbor, -1)).reshape(-1)
        coarse = coarse[coarse >= 0]
        if not len(coarse):
            return
        _, first = np.unique(coarse, return_index=True)
        grid.subdivide(coarse[np.sort(first)])


def _coefficients(grid: _OctreeGrid, vert: np.ndarray, face: np.ndarray, bvh: Bvh) -> np.ndarray:
    """Compute the signed distances at the corners of all nodes, (n, 8)."""
    side = (1 << grid.maxdepth) + 1
    corner = grid.corners()
    key = (corner[..., 0] * side + corner[..., 1]) * side + corner[..., 2]
    unique, inverse = np.unique(key, return_inverse=True)
    inverse = inverse.reshape(-1, 8)
    index = np.stack([unique // side**2, unique // side % side, unique % side], axis=1)
    born = np.full(len(unique), grid.maxdepth, dtype=np.int64)
    np.minimum.at(born, inverse, grid.level[:, None])
    hanging, parents, count = _hanging(grid, inverse, index)
    value = np.zeros(len(unique))
    free = np.setdiff1d(np.arange(len(unique)), hanging)
    value[free] = signed_distance(grid.planes[index[free], np.arange(3)], vert, face, bvh)
    for level in range(grid.maxdepth + 1):
        now = born[hanging] == level
        total = np.add.accumulate(np.where(parents[now] >= 0, value[parents[now]], 0.0), axis=1)[:, -1]
        value[hanging[now]] = total / count[now]
    return value[inverse]


def _hanging(grid: _OctreeGrid, vertex: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find corners in the middle of a coarser neighbour's face or edge.

    Args:
        vertex: (n, 8) ids of the corners of all nodes. index: (nvert, 3) their indices on the finest grid.

    Returns:
        hanging (k,) corners; parents (k, 4) the corners of that face or edge, -1 if there are two; their count (k,).
    """
    leaf = np.flatnonzero(grid.first_child < 0)
    neighbor = grid.neighbors(leaf)
    coarser = (neighbor >= 0) & (grid.level[neighbor] < grid.level[leaf][:, None])
    row, direction = np.nonzero(coarser)
    # four corners of the face, in the order of the two axes after the face's own
    axis, high = direction // 2, direction % 2
    slot = (high << axis)[:, None] | ((np.arange(4) & 1) << ((axis + 1) % 3)[:, None])
    slot = slot | ((np.arange(4) >> 1) << ((axis + 2) % 3)[:, None])
    corner = vertex[leaf[row][:, None], slot].reshape(-1)
    other = np.repeat(neighbor[row, direction], 4)
    shift = (grid.maxdepth - grid.level[other])[:, None]
    is_low = index[corner] == grid.cell[other] << shift
    is_high = index[corner] == (grid.cell[other] + 1) << shift
    on = (is_low | is_high).sum(axis=1)
    middle = np.flatnonzero((on == 1) | (on == 2))
    _, first = np.unique(corner[middle], return_index=True)
    pick = middle[first]
    parents = np.array([_parents(vertex[other[k]], is_low[k], is_high[k]) for k in pick], dtype=np.int64).reshape(-1, 4)
    return corner[pick], parents, (parents >= 0).sum(axis=1)


def _parents(vertex: np.ndarray, is_low: np.ndarray, is_high: np.ndarray) -> list[int]:
    """Return the corners of the edge or face of a node with a point on its boundary planes."""
    fixed = is_low | is_high
    base = sum(int(is_high[d]) << d for d in range(3))
    if fixed.sum() == 2:
        axis = int(np.flatnonzero(~fixed)[0])
        return [vertex[base], vertex[base | 1 << axis], -1, -1]
    axis = int(np.flatnonzero(fixed)[0])
    b, c = 1 << (axis + 1) % 3, 1 << (axis + 2) % 3
    return [vertex[base], vertex[base | b], vertex[base | c], vertex[base | b | c]]


# distance


def signed_distance(point: np.ndarray, vert: np.ndarray, face: np.ndarray, bvh: Bvh) -> np.ndarray:
    """Compute distances (n,) of points (n, 3) to a mesh, negative behind the closest face.

    Of several faces at the same distance, the first in the hierarchy decides the sign.
    """
    from scipy.spatial import cKDTree  # pyright: ignore[reportAttributeAccessIssue]  # missing in its stubs

    reach = cKDTree(vert[np.unique(face)]).query(point)[0] ** 2 * (1 + 1e-9) + 1e-30
    parts = [slice(k, k + _CHUNK) for k in range(0, len(point), _CHUNK)]
    return np.concatenate([_signed_distance(point[p], reach[p], vert[face], bvh) for p in parts] or [np.zeros(0)])


def _signed_distance(point: np.ndarray, reach: np.ndarray, triangle: np.ndarray, bvh: Bvh) -> np.ndarray:
    which, leaf = _candidates(point, reach, bvh)
    v = triangle[bvh.nodeid[leaf]]
    u, w, square = _closest_on_triangle(point[which], v)
    order = np.lexsort((leaf, square, which))
    best = order[np.r_[True, which[order][1:] != which[order][:-1]]]
    v, u, w, dist = v[best], u[best, None], w[best, None], np.sqrt(square[best])
    offset = point - (v[:, 0] + u * (v[:, 1] - v[:, 0]) + w * (v[:, 2] - v[:, 0]))
    normal = cross(v[:, 1] - v[:, 0], v[:, 2] - v[:, 0])
    length = dot(normal, normal)
    length = np.where(length < 1e-14, 0.0, np.sqrt(length))
    return np.where(dot(offset, normal) > 1e-12 * length * dist, dist, -dist)


def _candidates(point: np.ndarray, reach: np.ndarray, bvh: Bvh) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs (point, leaf) where the leaf's box is within the point's reach, a squared distance."""
    which, node = np.arange(len(point)), np.zeros(len(point), dtype=np.int64)
    pairs = []
    while len(node):
        low, high = bvh.aabb[node, :3] - bvh.aabb[node, 3:], bvh.aabb[node, :3] + bvh.aabb[node, 3:]
        gap = np.maximum(np.maximum(low - point[which], point[which] - high), 0)
        near = dot(gap, gap) <= reach[which]
        which, node = which[near], node[near]
        leaf = bvh.child[node, 0] < 0
        pairs.append((which[leaf], node[leaf]))
        which = np.repeat(which[~leaf], 2)
        node = bvh.child[node[~leaf]].reshape(-1)
    return np.concatenate([p for p, _ in pairs]), np.concatenate([n for _, n in pairs])


def _closest_on_triangle(p: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the points of triangles (n, 3, 3) closest to points: two barycentric coordinates, squared distance.

    The squared distance is taken along the feature (corner, edge, face) of the closest point, so that two triangles
    that share the feature give the same bits.
    """
    ab, ac, bc = v[:, 1] - v[:, 0], v[:, 2] - v[:, 0], v[:, 2] - v[:, 1]
    ap, bp, cp = p - v[:, 0], p - v[:, 1], p - v[:, 2]
    d1, d2, d3, d4, d5, d6 = dot(ab, ap), dot(ac, ap), dot(ab, bp), dot(ac, bp), dot(ab, cp), dot(ac, cp)
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    zero, one = np.zeros(len(p)), np.ones(len(p))
    on_ab, on_ac, on_bc = _ratio(d1, d1 - d3), _ratio(d2, d2 - d6), _ratio(d4 - d3, (d4 - d3) + (d5 - d6))
    inner = _ratio(one, va + vb + vc)
    u, w = vb * inner, vc * inner
    regions = [
        ((d1 <= 0) & (d2 <= 0), zero, zero, v[:, 0]),
        ((d3 >= 0) & (d4 <= d3), one, zero, v[:, 1]),
        ((vc <= 0) & (d1 >= 0) & (d3 <= 0), on_ab, zero, v[:, 0] + on_ab[:, None] * ab),
        ((d6 >= 0) & (d5 <= d6), zero, one, v[:, 2]),
        ((vb <= 0) & (d2 >= 0) & (d6 <= 0), zero, on_ac, v[:, 0] + on_ac[:, None] * ac),
        ((va <= 0) & (d4 - d3 >= 0) & (d5 - d6 >= 0), 1 - on_bc, on_bc, v[:, 1] + on_bc[:, None] * bc),
    ]
    where, us, ws, points = zip(*regions, strict=True)
    inside = v[:, 0] + u[:, None] * ab + w[:, None] * ac
    offset = p - np.select([x[:, None] for x in where], points, inside)
    return np.select(where, us, u), np.select(where, ws, w), dot(offset, offset)


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a / np.where(b == 0, 1.0, b)
