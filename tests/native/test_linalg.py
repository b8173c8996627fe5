"""Factors and solves of batches, and that no CPU thread waits for others in them."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.core.types import IntegratorType
from jaxsim.engine.step.forward import step_by_stages
from jaxsim.native import linalg
from tests.paths import HUMANOID

CLOSE = 1e-12  # float64, well conditioned, up to 90 rows
SIZES = [(1, 5), (6, 300), (27, 100), (90, 5)]  # n and how many: in one part, in several, one by one


def _matrices(n: int, count: int, positive: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    a = rng.normal(size=(count, n, n)) + n * np.eye(n)
    return a @ a.swapaxes(1, 2) / n if positive else a, rng.normal(size=(count, n))


@pytest.mark.parametrize(("n", "count"), SIZES)
def test_cholesky_factors_of_a_batch(n, count):
    a, _ = _matrices(n, count, positive=True)
    np.testing.assert_allclose(jax.jit(jax.vmap(linalg.cholesky))(a), np.linalg.cholesky(a), atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize(("n", "count"), SIZES)
def test_solution_of_positive_systems(n, count):
    a, b = _matrices(n, count, positive=True)
    want = np.linalg.solve(a, b[..., None])[..., 0]
    np.testing.assert_allclose(jax.jit(jax.vmap(linalg.solve_positive))(a, b), want, atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize("n", [1, 4])
def test_system_that_is_not_positive_gives_nan(n):
    assert np.isnan(linalg.solve_positive(-jnp.eye(n), jnp.ones(n))).all()


@pytest.mark.parametrize("pivot", [0.0, -1.0])
@pytest.mark.parametrize("row", [0, 3, 5])
def test_system_that_is_not_positive_spoils_no_other_of_a_batch(row, pivot):
    a, b = _matrices(6, linalg.FEW, positive=True)
    a[7] = np.diag(np.where(np.arange(6) == row, pivot, 1.0))
    got = jax.jit(linalg.solve_positive)(a, b)
    np.testing.assert_array_equal(np.isnan(got).any(1), np.arange(linalg.FEW) == 7)
    assert np.isnan(got[7]).all()


@pytest.mark.parametrize(("n", "count"), SIZES)
def test_solution_of_any_systems(n, count):
    a, b = _matrices(n, count)
    want = np.linalg.solve(a, b[..., None])
    np.testing.assert_allclose(jax.jit(jax.vmap(linalg.solve))(a, b[..., None]), want, atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize(("n", "count"), SIZES)
def test_eigenvalues_of_a_batch(n, count):
    a, _ = _matrices(n, count, positive=True)
    values, vectors = jax.jit(jax.vmap(linalg.eigh))(a)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), atol=CLOSE, rtol=CLOSE)
    np.testing.assert_allclose(vectors * values[:, None] @ vectors.swapaxes(1, 2), a, atol=n * CLOSE, rtol=CLOSE)


def test_batches_of_batches():
    a, b = _matrices(6, 60, positive=True)
    solve = jax.jit(jax.vmap(jax.vmap(linalg.solve_positive), in_axes=(0, None)))
    got = solve(a.reshape(10, 6, 6, 6), b[:6])
    want = np.linalg.solve(a.reshape(10, 6, 6, 6), np.broadcast_to(b[:6], (10, 6, 6))[..., None])[..., 0]
    np.testing.assert_allclose(got, want, atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize("n", [2, 3])
def test_small_systems_whose_first_pivot_is_zero(n):
    a, b = _matrices(n, 5)
    a[:, 0, 0] = 0
    got = jax.jit(linalg.solve)(a, b[..., None])
    np.testing.assert_allclose(got, np.linalg.solve(a, b[..., None]), atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize(("name", "n"), [("cholesky", 4), ("solve", 4), ("solve", 3), ("solve", 2)])
def test_derivatives_are_those_of_jax(name, n, mode):
    a, b = _matrices(n, 2, positive=name == "cholesky")
    ours, theirs = {
        "cholesky": (linalg.cholesky, lambda a: jnp.linalg.cholesky(a, symmetrize_input=False)),
        "solve": (lambda a: linalg.solve(a, b[..., None]), lambda a: jnp.linalg.solve(a, b[..., None])),
    }[name]
    np.testing.assert_allclose(mode(ours)(a), mode(theirs)(a), atol=CLOSE)


WORK = {"potrf": lambda n, k: linalg.factor_work(n), "trsm": lambda n, k: n * n * k, "getrf": lambda n, k: n**3}


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast"])
def test_step_of_many_worlds_leaves_no_part_of_a_batch_to_other_threads(integrator):
    """jaxlib shares a batch among threads from so much work on, and waits for them."""
    m = jaxsim.load_model(HUMANOID)
    m = m.replace(opt=m.opt.replace(integrator=IntegratorType[integrator.upper()]))
    worlds = jax.vmap(lambda _: jaxsim.make_data(m))(jnp.arange(256))
    text = jax.jit(jax.vmap(step_by_stages, in_axes=(None, 0))).lower(m, worlds).as_text()  # not one program
    calls = re.findall(r"@lapack_[sd](potrf|trsm|getrf)_ffi\(.*?-> \(?tensor<([0-9x]+)xf", text)
    assert calls
    for name, shape in calls:
        *batch, n, k = map(int, shape.split("x"))
        assert np.prod(batch) * WORK[name](n, k) < linalg.SHARED_WORK or np.prod(batch) == 1


def test_a_matrix_that_rounding_made_indefinite_gives_a_direction_of_descent_and_leaves_its_neighbours_alone():
    rows = np.random.default_rng(0).standard_normal((2, 4, 30))
    matrices = np.stack([np.eye(30) + w * r.T @ r for w, r in zip((1.0, 1e12), rows, strict=True)]).astype(np.float32)
    b = np.ones((2, 30), np.float32)
    assert not np.isfinite(linalg.solve_positive(matrices, b)[1]).all()
    x = jax.vmap(linalg.solve_nearly_positive)(matrices, b)
    np.testing.assert_array_equal(x[0], linalg.solve_positive(matrices, b)[0])
    assert np.isfinite(x).all() and np.sum(x[1]) > 0
