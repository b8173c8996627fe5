"""Bounding volume hierarchies of a body's geoms, a mesh's faces or a flex's elements.

The tree is built top down: a node's box encloses its elements, and its longest axis is split at the median. All nodes
of one depth are built at once. A median split halves a node, so the size of every subtree is known beforehand, and with
it the index of every node in depth-first order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.compiler.asset.nth_element import nth_element
from jaxsim.mjcf.pose import EPS


@dataclass(frozen=True)
class Bvh:
    """A hierarchy of n leaves, 2n - 1 nodes, numbered depth first.

    Attributes:
        aabb: (nbvh, 6) centre and half sizes, in the frame of the tree.
        child: (nbvh, 2) int32 indices of the children, -1 for a leaf.
        nodeid: (nbvh,) int32 element of a leaf, -1 for an inner node.
        depth: (nbvh,) int32.
    """

    aabb: np.ndarray
    child: np.ndarray
    nodeid: np.ndarray
    depth: np.ndarray


def rotate(vec: np.ndarray, quat: np.ndarray) -> np.ndarray:
    """Rotate vectors (..., 3) by quaternions (..., 4)."""
    w, x, y, z = (quat[..., k] for k in range(4))
    a, b, c = (vec[..., k] for k in range(3))
    t0 = w * a + y * c - z * b
    t1 = w * b + z * a - x * c
    t2 = w * c + x * b - y * a
    return np.stack([a + 2 * (y * t2 - z * t1), b + 2 * (z * t0 - x * t2), c + 2 * (x * t1 - y * t0)], axis=-1)


def build_bvh(center: np.ndarray, low: np.ndarray, high: np.ndarray, ids: np.ndarray) -> Bvh:
    """Build the hierarchy of n elements.

    Args:
        center: (n, 3) points by which the elements are split.
        low, high: (n, 3) corners of the elements' boxes; all in the frame of the tree.
        ids: (n,) entries of `nodeid`.
    """
    if len(ids) == 0:
        return Bvh(np.zeros((0, 6)), np.zeros((0, 2), np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32))
    n = len(ids)
    tree = Bvh(
        np.zeros((2 * n - 1, 6)), *(np.full(shape, -1, np.int32) for shape in ((2 * n - 1, 2), 2 * n - 1, 2 * n - 1))
    )
    doubtful: set[int] = set()
    selected: dict[int, np.ndarray] = {}
    by_rank = np.stack([np.argsort(column, kind="stable") for column in center.T])
    low, high = np.ascontiguousarray(low.T), np.ascontiguousarray(high.T)
    while True:
        found = _with_ancestors(_build(tree, center, by_rank, low, high, ids, doubtful, selected), tree.child)
        if found <= doubtful:
            return tree
        doubtful |= found


def _both(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Interleave values of the first and the second child, node after node."""
    return np.stack([first, second], axis=1).reshape(-1)


def _build(
    tree: Bvh, center, by_rank, low, high, ids: np.ndarray, doubtful: set[int], selected: dict[int, np.ndarray]
) -> set[int]:
    """Fill in the hierarchy; return the nodes whose split depends on the steps of the selection algorithm.

    Nodes in `doubtful`, and nodes below them that are found to be doubtful, are split by the steps of MuJoCo's
    `nth_element`; all others by sorting. `selected` stores the orders of elements from these selections. The first
    call, with `doubtful` empty, builds all nodes; later calls rebuild doubtful nodes and their descendants.
    """
    # The nodes of one depth: first element, number of elements, index of the node; `order` lists all elements.
    n = len(ids)
    order, start, count, node, level = np.arange(n), np.zeros(1, int), np.array([n]), np.zeros(1, int), 0
    found: set[int] = set()
    stepped = np.ones(1, bool)  # all nodes above were split by `nth_element`, so elements are in MuJoCo's order
    changed = np.full(1, not doubtful)
    doubtful_nodes = np.array(sorted(doubtful))
    while len(node):
        box_low, box_high = _node_boxes(low, high, order, start, count)
        tree.aabb[node] = np.concatenate([(box_high + box_low) / 2, (box_high - box_low) / 2], axis=1)
        tree.depth[node] = level
        leaf = count == 1
        tree.nodeid[node[leaf]] = ids[order[start[leaf]]]
        inner = ~leaf
        start, count, node, stepped, changed = start[inner], count[inner], node[inner], stepped[inner], changed[inner]
        axis = _longest_axis(box_high - box_low)[inner]
        before = order.copy()
        undecided = _split(center, by_rank, order, start, count, axis)
        found.update(node[undecided].tolist())
        stepped &= undecided | np.isin(node, doubtful_nodes)
        for i in np.flatnonzero(stepped):
            own = slice(int(start[i]), int(start[i] + count[i]))
            if int(node[i]) not in selected:
                selected[int(node[i])] = _select(center[:, axis[i]], before[own])
            order[own] = selected[int(node[i])]
        half = count // 2
        left, right = node + 1, node + 2 * half
        tree.child[node, 0], tree.child[node, 1] = left, right
        start, count, node = _both(start, start + half), _both(half, count - half), _both(left, right)
        stepped, changed = np.repeat(stepped, 2), np.repeat(changed | undecided, 2)
        keep = changed | np.isin(node, doubtful_nodes)
        start, count, node, stepped, changed = start[keep], count[keep], node[keep], stepped[keep], changed[keep]
        level += 1
    return found


def _with_ancestors(nodes: set[int], child: np.ndarray) -> set[int]:
    if not nodes:
        return nodes
    parent = np.full(len(child), -1)
    inner = np.flatnonzero(child[:, 0] >= 0)
    parent[child[inner].ravel()] = np.repeat(inner, 2)
    out: set[int] = set()
    for node in nodes:
        while node >= 0 and node not in out:
            out.add(node)
            node = int(parent[node])
    return out


def _elements(start: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of all elements of the nodes, node after node, and the start of each node among them."""
    begin = np.cumsum(count) - count
    return np.arange(count.sum()) + np.repeat(start - begin, count), begin


def _node_boxes(low, high, order, start, count) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the nodes' boxes, flat ones inflated."""
    where, begin = _elements(start, count)
    element = order[where]
    box_low = np.stack([np.minimum.reduceat(column[element], begin) for column in low], axis=1)
    box_high = np.stack([np.maximum.reduceat(column[element], begin) for column in high], axis=1)
    flat = np.abs(box_low - box_high) < EPS
    return np.where(flat, box_low - EPS, box_low), np.where(flat, box_high + EPS, box_high)


def _longest_axis(edge: np.ndarray) -> np.ndarray:
    """Return the axis of the longest edge; the first of those that are equal within EPS."""
    axis = np.where(edge[:, 1] >= edge[:, 0] + EPS, 1, 0)
    best = np.where(axis == 1, edge[:, 1], edge[:, 0])
    return np.where(edge[:, 2] >= best + EPS, 2, axis)


def _select(key: np.ndarray, element: np.ndarray) -> np.ndarray:
    """Reorder the elements of one node around their median by the steps of MuJoCo's `nth_element`."""
    value, number = key[element], element.copy()
    nth_element(value, number, len(number) // 2, EPS)
    return number


def _split(center, by_rank, order, start, count, axis) -> np.ndarray:
    """Sort the elements of every node along its axis, in place; the sort is stable.

    `by_rank` (3, n) lists all elements by their centres along each axis. Returns a mask of the nodes whose comparison
    is not an order: centres are NaN, or equal only through a chain of neighbours.
    """
    if not len(count):
        return np.zeros(0, bool)
    where, _ = _elements(start, count)
    nodes = len(count)
    small = np.uint16 if nodes < 1 << 16 else np.int64  # NumPy sorts the former by radix sort
    place = np.full(len(center), nodes, small)
    place[order[where]] = np.repeat(np.arange(nodes), count)
    element = np.concatenate([e[np.r_[axis == k, False][place[e]]] for k, e in enumerate(by_rank)])
    element = element[np.argsort(place[element], kind="stable")]
    segment = np.repeat(np.arange(nodes), count)
    key = center[element, axis[segment]]
    step = np.r_[True, ~((np.abs(np.diff(key)) <= EPS) & (segment[1:] == segment[:-1]))]
    order[where] = element
    if not step.all():
        order[where] = element[np.argsort(np.cumsum(step) * len(center) + element)]
    begin = np.flatnonzero(step)
    with np.errstate(invalid="ignore"):
        long = ~(key[np.r_[begin[1:], len(key)] - 1] - key[begin] <= EPS)
    return np.isin(np.arange(len(count)), segment[begin[long]])


def body_bvh(geom_pos, geom_quat, geom_aabb, collides, geom_id, ipos, iquat) -> Bvh:
    """Build the hierarchy of one body's geoms, in the body's inertial frame.

    Args:
        geom_pos, geom_quat: (n, 3), (n, 4) frames of the geoms in the body.
        geom_aabb: (n, 6) centre and half sizes of the geoms' boxes, in their own frames.
        collides: (n,) bool, contype or conaffinity is not zero; the others are left out.
        geom_id: (n,) the geoms' ids in the model.
        ipos, iquat: (3,), (4,) the inertial frame in the body.
    """
    collides = np.asarray(collides, dtype=bool)
    pos, quat = np.asarray(geom_pos, dtype=np.float64)[collides], np.asarray(geom_quat, dtype=np.float64)[collides]
    aabb, ids = np.asarray(geom_aabb, dtype=np.float64)[collides], np.asarray(geom_id)[collides]
    inverse = np.asarray(iquat, dtype=np.float64) * [1, -1, -1, -1]
    center = rotate(pos - ipos, inverse)
    low, high = aabb[:, :3] - aabb[:, 3:], aabb[:, :3] + aabb[:, 3:]
    bit = (np.arange(8)[:, None] >> np.arange(3)) & 1
    corner = np.where(bit[None], high[:, None], low[:, None])
    corner = rotate(rotate(corner, quat[:, None]) + (pos - ipos)[:, None], inverse)
    return build_bvh(center, corner.min(axis=1), corner.max(axis=1), ids)


def face_bvh(vert: np.ndarray, face: np.ndarray) -> Bvh:
    """Build the hierarchy of a mesh's triangles, split by their circumcentres, in the mesh's frame."""
    a, b, c = (vert[face[:, k]] for k in range(3))
    low = np.minimum(np.minimum(a, b), c)
    high = np.maximum(np.maximum(a, b), c)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    return build_bvh(circumcenter(a, b, c), middle - half, middle + half, np.arange(len(face)))


def circumcenter(p0: np.ndarray, p1: np.ndarray, p2: np.ndarray) -> np.ndarray:
    """Compute the centres (n, 3) of the circles through three points each; not finite for collinear points."""
    a, b = p0 - p2, p1 - p2
    normal = cross(a, b)
    area = np.sqrt(dot(normal, normal))
    vec = dot(a, a)[:, None] * b - dot(b, b)[:, None] * a
    with np.errstate(divide="ignore", invalid="ignore"):
        return cross(vec, normal) / (2 * area * area)[:, None] + p2


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute the cross products of (..., 3) vectors."""
    a0, a1, a2 = (a[..., k] for k in range(3))
    b0, b1, b2 = (b[..., k] for k in range(3))
    return np.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute the dot products of (..., 3) vectors, summed left to right."""
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]
