"""Factors of tree-sparse matrices, entry by entry, against dense ones."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.math import ltdl

CLOSE = 1e-12  # float64, well conditioned, up to 12 rows
PARENTS = {
    "chain": [-1, 0, 1, 2, 3],
    "star": [-1, 0, 0, 0, 0],
    "branches": [-1, 0, 1, 1, 0, 4, 5, 4, 7, 8, 8, 2],
    "two_trees": [-1, 0, 1, -1, 3, 3],
}


def _pattern(parents: list[int]) -> tuple[np.ndarray, np.ndarray]:
    ancestors = []
    for i, p in enumerate(parents):
        ancestors.append([*(ancestors[p] if p >= 0 else []), i])
    return np.repeat(np.arange(len(parents)), [len(a) for a in ancestors]), np.concatenate(ancestors)


def _matrices(parents: list[int], size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sparse entries (entries, size) and dense matrices (size, n, n) L' D L, and right-hand sides (n, size)."""
    row, col = _pattern(parents)
    n, rng = len(parents), np.random.default_rng(len(row))
    lower = np.zeros((size, n, n))
    lower[:, row, col] = rng.normal(size=(size, len(row)))
    lower[:, range(n), range(n)] = 1
    dense = lower.swapaxes(1, 2) @ (lower * rng.uniform(1, 2, size=(size, n))[:, :, None])
    return dense[:, row, col].T, dense, rng.normal(size=(n, size))


@pytest.mark.parametrize("name", PARENTS)
def test_factor_gives_the_matrix_back(name):
    row, col = _pattern(PARENTS[name])
    a, dense, _ = _matrices(PARENTS[name], 3)
    ld = np.asarray(ltdl.factor(ltdl.elimination(row, col), jnp.asarray(a)))
    lower = np.zeros_like(dense)
    lower[:, row, col] = ld.T
    d = np.einsum("bii->bi", lower).copy()
    np.einsum("bii->bi", lower)[...] = 1
    np.testing.assert_allclose(lower.swapaxes(1, 2) @ (d[:, :, None] * lower), dense, atol=CLOSE)


@pytest.mark.parametrize("name", PARENTS)
def test_solutions_are_those_of_the_dense_matrices(name):
    table = ltdl.elimination(*_pattern(PARENTS[name]))
    a, dense, x = _matrices(PARENTS[name], 3)
    want = np.linalg.solve(dense, x.T[..., None])[..., 0].T
    ld = ltdl.factor(table, jnp.asarray(a))
    inverse = ltdl.inverse(ld[table.diagonal])
    columns = jnp.stack([x, 2 * x], axis=1)
    np.testing.assert_allclose(ltdl.solve(table, ld, inverse, columns), np.stack([want, 2 * want], 1), atol=CLOSE)
    np.testing.assert_allclose(ltdl.factor_and_solve(table, jnp.asarray(a), x), want, atol=CLOSE)


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("pivot", [0.0, -1.0])
def test_matrix_that_is_not_positive_gives_nan_in_its_tree_alone(pivot, row):
    parents = PARENTS["two_trees"]
    table = ltdl.elimination(*_pattern(parents))
    a = np.zeros((len(_pattern(parents)[0]), 2))
    a[table.diagonal] = 1
    a[table.diagonal[row], 1] = pivot
    got = np.asarray(ltdl.factor_and_solve(table, jnp.asarray(a), jnp.ones((6, 2))))
    first = np.arange(6) < 3
    np.testing.assert_array_equal(np.isnan(got[:, 1]), first == (row < 3))
    assert np.isfinite(got[:, 0]).all()


@pytest.mark.parametrize("name", PARENTS)
def test_number_of_operations(name):
    row, col = _pattern(PARENTS[name])
    assert ltdl.operations(row, col) == len(ltdl.elimination(row, col).source)
