"""The factor of the inertia matrix and solutions by it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.dynamics import factor as inertia_factor
from jaxsim.engine.dynamics import inertia
from jaxsim.engine.structure import tables
from tests.paths import MODELS

CLOSE = 1e-9  # float64, of numbers relative to the largest; masses and lengths of models differ by 1e3
NAMES = ["humanoid", "quadruped", "hand", "thirty_boxes"]  # the last has entries on the diagonal only


def _problem(name: str):
    m = jaxsim.load_model(MODELS / f"{name}.xml")
    d = jax.jit(lambda m, d: jaxsim.crb(m, jaxsim.com_pos(m, jaxsim.kinematics(m, d))))(m, jaxsim.make_data(m))
    x = np.random.default_rng(0).normal(size=m.nv)
    return m, d.M, x, np.linalg.solve(inertia.full_m(m, d), x)


@pytest.mark.parametrize("name", NAMES)
def test_solutions_are_those_of_the_dense_matrix(name):
    m, matrix, x, want = _problem(name)
    ld, inverse = inertia_factor.factor(m, matrix)
    scale = abs(want).max()
    np.testing.assert_allclose(inertia_factor.solve_ld(m, ld, inverse, x) / scale, want / scale, atol=CLOSE)
    np.testing.assert_allclose(inertia_factor.solve_once(m, matrix, x) / scale, want / scale, atol=CLOSE)
    columns = inertia_factor.solve_ld(m, ld, inverse, np.stack([x, -x], 1))
    np.testing.assert_allclose(columns / scale, np.stack([want, -want], 1) / scale, atol=CLOSE)


@pytest.mark.parametrize("name", NAMES)
def test_factor_gives_the_matrix_back(name):
    """M = L' D L, L having ones on its diagonal and zeros where M has them."""
    m, matrix, _, _ = _problem(name)
    ld, inverse = inertia_factor.factor(m, matrix)
    row, col = tables.inertia_pattern(m)
    lower, full = np.zeros((m.nv, m.nv)), np.zeros((m.nv, m.nv))
    lower[row, col], full[row, col], full[col, row] = ld, matrix, matrix
    np.fill_diagonal(lower, 1)
    np.testing.assert_allclose(lower.T @ (lower / inverse[:, None]), full, rtol=CLOSE, atol=CLOSE)


def test_worlds_of_a_batch_and_of_batches_of_batches():
    m, matrix, x, want = _problem("quadruped")
    size = np.array([1.0, 2.0, 4.0])
    many = jax.vmap(jax.vmap(inertia_factor.solve_once, (None, 0, None)), (None, None, 0))
    got = many(m, size[:, None] * matrix, size[:, None] * x)
    want = size[:, None, None] / size[None, :, None] * want
    np.testing.assert_allclose(got / abs(want).max(), want / abs(want).max(), atol=CLOSE)


@pytest.mark.parametrize("name", ["quadruped", "thirty_boxes"])
def test_matrix_that_is_not_positive_gives_nan(name):
    m, matrix, x, _ = _problem(name)
    wrong = jnp.asarray(matrix).at[m.M_rowadr[-1] + m.M_rownnz[-1] - 1].set(-1.0)
    ld, inverse = inertia_factor.factor(m, wrong)
    assert np.isnan(inertia_factor.solve_ld(m, ld, inverse, x)[-1])
    assert np.isnan(inertia_factor.solve_once(m, wrong, x)[-1])
