"""Elements of a flex that follows a lattice of nodes: cells, or in a shell the faces on the border."""

import itertools
from typing import Any

import numpy as np


def steps(order: int, dims: int = 3) -> np.ndarray:
    """Return the lattice indices of the nodes of a cell relative to its first node: (nodes, dims).

    The last direction is the fastest.
    """
    return np.array(list(itertools.product(range(order + 1), repeat=dims)))


def lattice_elements(m: Any, flex: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes (n, k) of the elements of an interpolated flex, and axes (n, 3): of faces slow, fast and normal."""
    elements = faces if m.flex_interp[flex] < 0 else cells
    node, axes = elements(m.flex_cellnum[flex].tolist(), abs(int(m.flex_interp[flex])))
    return node + m.flex_nodeadr[flex], axes


def cells(count: list[int], order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes (n, k) of all cells of a lattice, and their axes (n, 3)."""
    corner = np.array(list(itertools.product(*map(range, count))))
    return nodes(count, order, corner[:, None] * order + steps(order)), np.tile([0, 1, 2], (len(corner), 1))


def faces(count: list[int], order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes (n, k) of the outer faces of a lattice, side by side, and their axes (n, 3)."""
    at, axes = [], []
    for side in range(6):
        normal, slow, fast = side_axes(side)
        quads = np.array(list(itertools.product(range(count[slow]), range(count[fast]))))
        index = np.zeros((len(quads), (order + 1) ** 2, 3), int)
        index[..., normal] = (side % 2) * count[normal] * order
        index[..., [slow, fast]] = quads[:, None] * order + steps(order, 2)
        at.append(index)
        axes.append(np.tile([slow, fast, normal], (len(quads), 1)))
    return nodes(count, order, np.concatenate(at)), np.concatenate(axes)


def side_axes(side: int) -> tuple[int, int, int]:
    """Return the normal of a side of the box and the two axes in it, the slow one first."""
    normal = side // 2
    return normal, (normal + 1) % 3, (normal + 2) % 3


def nodes(count: list[int], order: int, at: np.ndarray) -> np.ndarray:
    """Return the nodes at lattice indices (..., 3), of a lattice with `count` cells in each direction."""
    _, y, z = (n * order + 1 for n in count)
    return at @ np.array([y * z, z, 1])
