"""Selection of the n-th smallest element with the steps of libc++'s `nth_element`, which MuJoCo uses.

Bounding volumes are split at the median. Triangles without area have no centre to compare, and equality within rounding
is not transitive. Then the steps of the selection decide the side of an element: median of three, partition from both
ends, selection sort for seven elements or fewer. Partitions compare many elements with one, so they use whole arrays.
"""

from __future__ import annotations

import numpy as np

_SELECTION_SORT_MAX = 7


class _Items:
    """Elements of a node: values, and the numbers that order them, equal within `eps` or NaN."""

    def __init__(self, value: np.ndarray, number: np.ndarray, eps: float):
        self.value, self.number, self.eps = value, number, eps

    def less(self, i, j):
        """Return whether item i comes before item j; each an index or a slice."""
        a, b = self.value[i], self.value[j]
        with np.errstate(invalid="ignore"):
            return np.where(np.abs(a - b) > self.eps, a < b, self.number[i] < self.number[j])

    def swap(self, i, j) -> None:
        """Exchange items at one index or at many."""
        for array in (self.value, self.number):
            kept = np.copy(array[i])
            array[i] = array[j]
            array[j] = kept


def nth_element(value: np.ndarray, number: np.ndarray, nth: int, eps: float) -> None:
    """Reorder items in place so that the one at index `nth` is the one that sorting would put there."""
    items = _Items(value, number, eps)
    first, last = 0, len(value)
    while nth != last and last - first > 1:
        if last - first <= 3:
            _sort_few(items, first, last)
            return
        if last - first <= _SELECTION_SORT_MAX:
            _selection_sort(items, first, last)
            return
        bounds = _narrow(items, first, last, nth)
        if bounds is None:
            return
        first, last = bounds


def _sort_few(items: _Items, first: int, last: int) -> None:
    if last - first == 3:
        _sort_three(items, first, first + 1, last - 1)
    elif items.less(last - 1, first):
        items.swap(first, last - 1)


def _sort_three(items: _Items, x: int, y: int, z: int) -> bool:
    """Sort the items at three indices; return whether any were swapped."""
    if not items.less(y, x):
        if not items.less(z, y):
            return False
        items.swap(y, z)
        if items.less(y, x):
            items.swap(x, y)
        return True
    if items.less(z, y):
        items.swap(x, z)
        return True
    items.swap(x, y)
    if items.less(z, y):
        items.swap(y, z)
    return True


def _selection_sort(items: _Items, first: int, last: int) -> None:
    for i in range(first, last - 1):
        best = i
        for j in range(i + 1, last):
            if items.less(j, best):
                best = j
        if best != i:
            items.swap(i, best)


def _narrow(items: _Items, first: int, last: int, nth: int) -> tuple[int, int] | None:
    """Partition once around a median of three; return the part that contains `nth`, None if the selection has ended."""
    m = first + (last - first) // 2
    swapped = _sort_three(items, first, m, last - 1)
    i, j = first, last - 1
    if not items.less(i, m):
        smaller = np.flatnonzero(items.less(slice(i + 1, j), m))
        if not smaller.size:
            start = _skip_equal(items, first, last)
            return None if start is None or nth < start else (start, last)
        j = i + 1 + int(smaller[-1])
        items.swap(i, j)
        swapped = True
    i += 1
    if i < j:
        i, m, moved = _partition(items, i, j, m, items.less(slice(i, j), m))
        swapped = swapped or moved
    if i != m and items.less(m, i):
        items.swap(i, m)
        swapped = True
    if nth == i:
        return None
    if not swapped and _is_sorted(items, *((first, i) if nth < i else (i, last))):
        return None
    return (first, i) if nth < i else (i + 1, last)


def _partition(items: _Items, i: int, j: int, m: int, left: np.ndarray) -> tuple[int, int, bool]:
    """Partition from both ends.

    Args:
        items: the items to reorder.
        i, j: the range.
        m: index of an item to keep track of.
        left: (j - i,) mask of items that belong in the first part. The one at `j` does not.

    Returns:
        The boundary, the new `m`, and whether items were swapped.
    """
    forward, backward = i + np.flatnonzero(np.r_[~left, True]), i + np.flatnonzero(left)[::-1]
    most = min(len(forward), len(backward))
    count = int(np.sum(forward[:most] < backward[:most]))
    items.swap(forward[:count], backward[:count])
    moved_to = backward[:count][forward[:count] == m]
    end = min([int(forward[count]), *backward[count - 1 : count].tolist()])
    return end, int(moved_to[0]) if moved_to.size else m, count > 0


def _skip_equal(items: _Items, first: int, last: int) -> int | None:
    """Move items equal to the first to the front; return the start of the rest, None if all are equal."""
    i, j = first + 1, last - 1
    if not items.less(first, j):
        larger = np.flatnonzero(items.less(first, slice(i, j)))
        if not larger.size:
            return None
        i += int(larger[0])
        items.swap(i, j)
        i += 1
    if i == j:
        return None
    return _partition(items, i, j, -1, ~items.less(first, slice(i, j)))[0]


def _is_sorted(items: _Items, first: int, last: int) -> bool:
    return not np.any(items.less(slice(first + 1, last), slice(first, last - 1)))
