"""Static gathers and sums, on numpy and on JAX."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.math import arrays

X = np.arange(24.0).reshape(6, 4)
INDICES = [[0, 1, 2, 3, 4, 5], [2, 3, 4], [5], [1, 1, 1], [4, 0, 2], [], [[0, 1], [2, 3]], [[5, 0], [1, 5]]]


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_take_is_a_gather(make, index):
    index = np.array(index, dtype=int)
    np.testing.assert_array_equal(arrays.take(make(X), index), X[index])


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
def test_take_or_zero_fills_holes(make):
    got = arrays.take_or_zero(make(X), np.array([2, -1, 0]))
    np.testing.assert_array_equal(got, np.stack([X[2], 0 * X[0], X[0]]))


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("index", [[], [3], [4, 1], [5, 4, 3, 2, 1, 0]])
def test_merge_replaces_rows(make, index):
    index = np.array(index, dtype=int)
    want = X.copy()
    want[index] = -1.0 * np.arange(len(index))[:, None]
    new = make(np.broadcast_to(-1.0 * np.arange(len(index))[:, None], (len(index), 4)))
    np.testing.assert_array_equal(arrays.merge(make(X), index, new), want)


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("dense", [True, False])
def test_add_at_sums_rows_into_bins(make, dense, monkeypatch):
    monkeypatch.setattr(arrays, "DENSE_BINS", 1 << 14 if dense else 0)
    want = np.zeros((3, 4))
    index = np.array([0, 2, -1, 0, 2, 2])
    for i, row in zip(index, X, strict=True):
        if i >= 0:
            want[i] += row
    np.testing.assert_allclose(arrays.add_at(index, make(X), 3), want)


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("index", [np.array([4, 0, 0]), np.array([[1, 2], [5, 0]])], ids=["flat", "pairs"])
def test_gather_all_is_a_gather_of_each(make, index):
    tables = X, X[:, 0], X.reshape(6, 2, 2)
    for got, table in zip(arrays.gather_all(make(index), *map(make, tables)), tables, strict=True):
        np.testing.assert_array_equal(got, table[index])
    nothing = arrays.gather_all(make(index[:0]), make(X[:0]), make(X[:0, 0]))
    assert [x.shape for x in nothing] == [(*index[:0].shape, 4), index[:0].shape]


def test_entries_are_read_and_written_where_they_lie():
    x = jnp.asarray(X)
    assert arrays.entry_at(x, 4, 1) == X[4, 1]
    np.testing.assert_array_equal(arrays.entry_at(x, 4), X[4])
    np.testing.assert_array_equal(arrays.with_entry(x[:, 0], 2, 7.0), np.where(np.arange(6) == 2, 7, X[:, 0]))
