"""Selection by a comparison that is not an order."""

import numpy as np
import pytest

from jaxsim.compiler.asset.nth_element import nth_element

EPS = 1e-14


@pytest.mark.parametrize("n", [*range(1, 12), 100, 1000])
def test_selection_by_an_order_puts_the_smallest_first(n):
    values = np.random.default_rng(n).integers(0, max(2, n // 2), n).astype(float)
    numbers = np.arange(n)
    expected = np.lexsort([numbers, values])
    nth_element(values, numbers, n // 2, EPS)
    assert numbers[n // 2] == expected[n // 2]
    assert set(numbers[: n // 2]) == set(expected[: n // 2])


@pytest.mark.parametrize("n", [5, 8, 50, 300])
def test_selection_without_an_order_ends_and_keeps_all(n):
    values = np.random.default_rng(n).random(n)
    values[:: max(2, n // 7)] = np.nan
    numbers = np.arange(n)
    nth_element(values, numbers, n // 2, EPS)
    assert sorted(numbers) == list(range(n))


def test_sorted_items_stay():
    values, numbers = np.arange(20.0), np.arange(20)
    nth_element(values, numbers, 10, EPS)
    np.testing.assert_array_equal(numbers, np.arange(20))
