"""Kernels of small matrices, their source compiled for this machine: what the plain functions find."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.native import compiler as native
from jaxsim.native import launch as kernels
from jaxsim.native import linalg, matrices
from jaxsim.native import tile_source as tile

needs_compiler = pytest.mark.skipif(
    native.c_compiler() is None, reason="runs the kernels' source on this machine: needs a C compiler (cc)"
)
RNG = np.random.default_rng(0)


def positive(count, n):
    root = RNG.standard_normal((count, n, n))
    return root @ np.swapaxes(root, 1, 2) + np.eye(n)


def by_kernel(name, *operands):
    """The function by its kernel, compiled for the host."""
    last = operands[-1]
    n, k = operands[0].shape[-1], last.shape[-1] if name != "cholesky" and last.ndim == 3 else 1
    flat = matrices.flat_of(matrices.Plan(name, n, k, None), operands)
    return jax.jit(lambda *x: tile.run_on_host(flat, [True] * len(x), len(last), x)[0][:, 0])(*operands)


@needs_compiler
@pytest.mark.parametrize("n", [2, 7, 66])
def test_positive_systems_and_factors(n):
    a, b = positive(3, n), RNG.standard_normal((3, n))
    np.testing.assert_allclose(by_kernel("solve_positive", a, b), np.linalg.solve(a, b[..., None])[..., 0], atol=1e-10)
    np.testing.assert_allclose(by_kernel("cholesky", a), np.linalg.cholesky(a), atol=1e-10)


@needs_compiler
def test_matrices_that_are_not_positive_have_no_factor():
    a = np.stack([np.diag([1.0, -1.0]), np.eye(2)])
    found = by_kernel("solve_positive", a, np.ones((2, 2)))
    assert np.isnan(found[0]).all() and np.all(found[1] == 1)


@needs_compiler
@pytest.mark.parametrize("k", [1, 3])
def test_general_systems_take_pivots(k):
    a, b = RNG.standard_normal((4, 6, 6)), RNG.standard_normal((4, 6, k))
    a[:, 0, 0] = 0
    np.testing.assert_allclose(by_kernel("solve_any", a, b), np.linalg.solve(a, b), atol=1e-10)


@needs_compiler
def test_factors_of_inertia():
    ld, x = np.tril(RNG.standard_normal((3, 5, 5)), -1), RNG.standard_normal((3, 5, 2))
    inverse = RNG.uniform(1, 2, (3, 5))
    want = jax.jit(linalg.solve_ltdl)(ld, inverse, x)
    unit = ld + np.eye(5)
    full = np.swapaxes(unit, 1, 2) @ (unit / inverse[..., None])
    np.testing.assert_allclose(full @ want, x, atol=1e-10)
    np.testing.assert_allclose(by_kernel("solve_ltdl", ld, inverse, x), want, atol=1e-12)


CASES = {
    "solve_positive": (linalg.solve_positive, lambda: (positive(3, 4), np.ones((3, 4)))),
    "cholesky": (linalg.cholesky, lambda: (positive(3, 4),)),
    "solve_any": (linalg.solve, lambda: (positive(3, 4), np.ones((3, 4, 1)))),
    "solve_ltdl": (linalg.solve_ltdl, lambda: (positive(3, 4)[:, None], np.ones((3, 1, 4)), np.ones((3, 1, 4, 1)))),
}


@pytest.mark.parametrize("name", CASES)
def test_a_gpu_takes_one_kernel_and_no_library(name, monkeypatch):
    monkeypatch.setattr(kernels, "ptx_of", lambda source: source)
    (function, operands), called = CASES[name], {"solve_positive": "solve_eliminated"}
    traced = jax.jit(jax.vmap(function)).trace(*map(jnp.asarray, operands()))
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("__gpu$xla.gpu.ptx") == 1 and f"{called.get(name, name)}_4(lane, " in text
    assert "xla.gpu" not in traced.lower(lowering_platforms=("cpu",)).as_text()
