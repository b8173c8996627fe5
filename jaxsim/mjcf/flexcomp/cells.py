"""Empty cells of the lattice of nodes for the points of a flex."""

from __future__ import annotations

import numpy as np


def empty_cells(points: np.ndarray, elements: np.ndarray, count: np.ndarray, bounds=None) -> np.ndarray:
    """Return the mask of empty cells (count[0], count[1], count[2]) of the box around the points.

    A cell that the box of an element touches is not empty. Cells that a surface encloses are not empty either: only
    cells that can be reached from outside are.

    Args:
        points: (npoint, 3).
        elements: (nelem, dim + 1) indices of points.
        count: three positive numbers of cells.
        bounds: lower and upper corner of the box; those of all points if not given.
    """
    count = np.asarray(count, int)
    low, high = bounds if bounds is not None else (points.min(axis=0), points.max(axis=0))
    corner = points[elements]
    touched = np.zeros(tuple(count), bool)
    first = _cell(corner.min(axis=1), low, high, count)
    last = _cell(corner.max(axis=1), low, high, count)
    for i, j, k, a, b, c in np.unique(np.hstack([first, last]), axis=0).tolist():
        touched[i : a + 1, j : b + 1, k : c + 1] = True
    return _reachable(~touched) if elements.shape[1] == 3 else ~touched


def _cell(x: np.ndarray, low: np.ndarray, high: np.ndarray, count: np.ndarray) -> np.ndarray:
    span = high - low
    with np.errstate(divide="ignore", invalid="ignore"):
        index = np.where(span > 0, (x - low) / np.where(span > 0, span, 1) * count, 0.0)
    return np.clip(np.nan_to_num(index).astype(np.int64), 0, count - 1)


def _reachable(free: np.ndarray) -> np.ndarray:
    """Return the free cells that are connected to the outside through free neighbours."""
    from scipy.ndimage import binary_propagation  # imported here, since few models need it

    around = np.pad(free, 1, constant_values=True)
    outside = np.zeros_like(around)
    outside[0, 0, 0] = True
    return binary_propagation(outside, mask=around)[1:-1, 1:-1, 1:-1]


def lonely_nodes(empty: np.ndarray, order: int) -> np.ndarray:
    """Return the nodes (flat, the last index fastest) that belong to empty cells only; cells have `order` intervals."""
    used = np.zeros([n * order + 1 for n in empty.shape], bool)
    for cell in np.argwhere(~empty):
        used[tuple(slice(c * order, (c + 1) * order + 1) for c in cell)] = True
    return ~used.ravel()
