"""Selection of the n-th smallest element with the steps of libc++'s `nth_element`, which MuJoCo uses.

Bounding volumes are split at the median. Triangles without area have no centre to compare, and centres that are equal
only within rounding compare in a circle. Then the steps of the selection decide on which side an element ends up:
median of three, partition from both ends, selection sort for seven elements or fewer.
"""

from __future__ import annotations

from collections.abc import Callable

Less = Callable[[tuple[float, int], tuple[float, int]], bool]
_SELECTION_SORT_MAX = 7


def nth_element(items: list, nth: int, less: Less) -> None:
    """Reorder `items` in place so that the item at index `nth` is the one that sorting would put there."""
    first, last = 0, len(items)
    while nth != last and last - first > 1:
        if last - first <= 3:
            _sort_few(items, first, last, less)
            return
        if last - first <= _SELECTION_SORT_MAX:
            _selection_sort(items, first, last, less)
            return
        bounds = _narrow(items, first, last, nth, less)
        if bounds is None:
            return
        first, last = bounds


def _swap(items: list, i: int, j: int) -> None:
    items[i], items[j] = items[j], items[i]


def _sort_few(items: list, first: int, last: int, less: Less) -> None:
    if last - first == 3:
        _sort_three(items, first, first + 1, last - 1, less)
    elif less(items[last - 1], items[first]):
        _swap(items, first, last - 1)


def _sort_three(items: list, x: int, y: int, z: int, less: Less) -> bool:
    """Sort the items at three indices; returns whether any were swapped."""
    if not less(items[y], items[x]):
        if not less(items[z], items[y]):
            return False
        _swap(items, y, z)
        if less(items[y], items[x]):
            _swap(items, x, y)
        return True
    if less(items[z], items[y]):
        _swap(items, x, z)
        return True
    _swap(items, x, y)
    if less(items[z], items[y]):
        _swap(items, y, z)
    return True


def _selection_sort(items: list, first: int, last: int, less: Less) -> None:
    for i in range(first, last - 1):
        best = i
        for j in range(i + 1, last):
            if less(items[j], items[best]):
                best = j
        if best != i:
            _swap(items, i, best)


def _narrow(items: list, first: int, last: int, nth: int, less: Less) -> tuple[int, int] | None:
    """Partition once around a median of three; returns the part that holds `nth`, None if the selection is done."""
    m = first + (last - first) // 2
    swapped = _sort_three(items, first, m, last - 1, less)
    i, j = first, last - 1
    if not less(items[i], items[m]):
        j = _guard(items, i, j, m, less)
        if j is None:
            start = _skip_equal(items, first, last, less)
            return None if start is None or nth < start else (start, last)
        _swap(items, i, j)
        swapped = True
    i += 1
    i, m, moved = _partition(items, i, j, m, less)
    swapped = swapped or moved
    if i != m and less(items[m], items[i]):
        _swap(items, i, m)
        swapped = True
    if nth == i:
        return None
    if not swapped and _is_sorted(items, *((first, i) if nth < i else (i, last)), less):
        return None
    return (first, i) if nth < i else (i + 1, last)


def _guard(items: list, i: int, j: int, m: int, less: Less) -> int | None:
    """Last index before `j` whose item is less than the median, None if there is none after `i`."""
    while True:
        j -= 1
        if i == j:
            return None
        if less(items[j], items[m]):
            return j


def _partition(items: list, i: int, j: int, m: int, less: Less) -> tuple[int, int, bool]:
    """Partition from both ends; returns the boundary, the median's index, and whether items were swapped."""
    moved = False
    if i < j:
        while True:
            while less(items[i], items[m]):
                i += 1
            j -= 1
            while not less(items[j], items[m]):
                j -= 1
            if i >= j:
                break
            _swap(items, i, j)
            moved = True
            if m == i:
                m = j
            i += 1
    return i, m, moved


def _skip_equal(items: list, first: int, last: int, less: Less) -> int | None:
    """Move items equal to the first to the front; returns where the rest begins, None if all are equal."""
    i, j = first + 1, last - 1
    if not less(items[first], items[j]):
        while True:
            if i == j:
                return None
            if less(items[first], items[i]):
                _swap(items, i, j)
                i += 1
                break
            i += 1
    if i == j:
        return None
    while True:
        while not less(items[first], items[i]):
            i += 1
        j -= 1
        while less(items[first], items[j]):
            j -= 1
        if i >= j:
            return i
        _swap(items, i, j)
        i += 1


def _is_sorted(items: list, first: int, last: int, less: Less) -> bool:
    return not any(less(items[k + 1], items[k]) for k in range(first, last - 1))
