"""The order of elimination of large problems."""

import numpy as np

from jaxsim.engine.solver.elimination import elimination_order


def grid(width, height, along_width):
    """Columns of rows that couple neighbours on a grid of trees of three dofs, numbered along a side."""
    number = np.arange(width * height).reshape(height, width)
    number = number if along_width else np.arange(width * height).reshape(width, height).T
    pairs = [*zip(number[:, 1:].flat, number[:, :-1].flat, strict=True)]
    pairs += zip(number[1:].flat, number[:-1].flat, strict=True)
    columns = np.array([[*(3 * a + np.arange(3)), *(3 * b + np.arange(3))] for a, b in pairs])
    return columns


def parents(count):
    """Of trees of three dofs."""
    return np.stack([np.full(count, -1), 3 * np.arange(count), 3 * np.arange(count) + 1], axis=1).reshape(-1)


def test_a_grid_that_is_numbered_along_its_longer_side_is_numbered_along_the_shorter():
    columns = grid(20, 5, True)
    order, products = elimination_order(columns, parents(100))
    across, fewer = elimination_order(grid(20, 5, False), parents(100))
    assert products <= 2 * fewer
    assert sorted(order) == sorted(across) == list(range(300))
    width = 3 * 5 + 3
    assert products < 300 * (width + 3) ** 2


def test_trees_stay_together_and_in_order():
    columns = grid(6, 4, True)
    order, _ = elimination_order(columns, parents(24))
    assert (np.diff(order.reshape(-1, 3)) == 1).all()
    assert (order.reshape(-1, 3)[:, 0] % 3 == 0).all()


def test_an_order_that_is_cheaper_already_is_kept():
    chain = np.stack([np.arange(9), np.arange(1, 10)], axis=1)
    order, products = elimination_order(chain, np.full(10, -1))
    assert np.array_equal(order, np.arange(10))
    assert products == 0.5 * (9 * 4 + 1)


def test_problems_without_coupling():
    order, products = elimination_order(np.zeros((0, 1), int), np.full(3, -1))
    assert np.array_equal(order, np.arange(3))
    assert products == 1.5
