"""Selection by a comparison that is not an order."""

import numpy as np
import pytest

from jaxsim.compiler.asset.nth_element import nth_element


def less(a, b):
    return a[0] < b[0] if abs(a[0] - b[0]) > 1e-14 else a[1] < b[1]


@pytest.mark.parametrize("n", [*range(1, 12), 100, 1000])
def test_selection_by_an_order_puts_the_smallest_first(n):
    values = np.random.default_rng(n).integers(0, max(2, n // 2), n).astype(float)
    items = list(zip(values.tolist(), range(n), strict=True))
    expected = sorted(items)
    nth_element(items, n // 2, less)
    assert items[n // 2] == expected[n // 2]
    assert sorted(items[: n // 2]) == expected[: n // 2]


@pytest.mark.parametrize("n", [5, 8, 50, 300])
def test_selection_without_an_order_ends_and_keeps_all(n):
    values = np.random.default_rng(n).random(n)
    values[:: max(2, n // 7)] = np.nan
    items = list(zip(values.tolist(), range(n), strict=True))
    nth_element(items, n // 2, less)
    assert sorted(item[1] for item in items) == list(range(n))


def test_sorted_items_stay():
    items = [(float(i), i) for i in range(20)]
    nth_element(items, 10, less)
    assert items == [(float(i), i) for i in range(20)]
