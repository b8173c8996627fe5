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
    cells, order = m.flex_cellnum[flex].tolist(), abs(int(m.flex_interp[flex]))
    if m.flex_interp[flex] < 0:
        index, axes = _faces(cells, order)
    else:
        corner = np.array(list(itertools.product(*map(range, cells))))
        index = corner[:, None] * order + steps(order)
        axes = np.tile([0, 1, 2], (len(corner), 1))
    size = np.array(cells) * order + 1
    return index @ [size[1] * size[2], size[2], 1] + m.flex_nodeadr[flex], axes


def _faces(cells: list[int], order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the lattice indices (n, k, 3) of the nodes of the outer faces, side by side, and their axes (n, 3)."""
    at, axes = [], []
    for side in range(6):
        normal, slow, fast = side // 2, (side // 2 + 1) % 3, (side // 2 + 2) % 3
        quads = np.array(list(itertools.product(range(cells[slow]), range(cells[fast]))))
        index = np.zeros((len(quads), (order + 1) ** 2, 3), int)
        index[..., normal] = (side % 2) * cells[normal] * order
        index[..., [slow, fast]] = quads[:, None] * order + steps(order, 2)
        at.append(index)
        axes.append(np.tile([slow, fast, normal], (len(quads), 1)))
    return np.concatenate(at), np.concatenate(axes)
