"""Functions with finite derivatives: compiled, where operands may be computed twice and rounded differently."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.math import safe

X = np.array([[3.0, 1.0, 2.0], [0.5, -4.0, 7.0], [1.0, 1.0, 1.0]])


@pytest.mark.parametrize(("reduce", "reference"), [(safe.least, np.min), (safe.greatest, np.max)])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_least_and_greatest_are_numpys(reduce, reference, axis, keepdims):
    expected = reference(X, axis=axis, keepdims=keepdims)
    np.testing.assert_array_equal(reduce(X, axis, keepdims), expected)
    np.testing.assert_array_equal(reduce(jnp.asarray(X), axis, keepdims), expected)


def test_the_derivative_of_least_belongs_to_the_first_of_equals():
    gradient = jax.grad(lambda x: safe.least(x).sum())(jnp.asarray(X))
    np.testing.assert_array_equal(gradient, [[0, 1, 0], [0, 1, 0], [1, 0, 0]])
    _, forward = jax.jvp(safe.greatest, (jnp.asarray(X),), (jnp.asarray(X + 1),))
    np.testing.assert_array_equal(forward, [4, 8, 2])


def test_the_derivative_of_least_belongs_to_one_entry_though_operands_are_rounded_twice():
    """Products that XLA may contract to fused multiply-adds in one place and not in another."""
    rng = np.random.default_rng(0)
    mat, vec, size = rng.standard_normal((500, 3, 3)), rng.standard_normal((500, 3)), rng.random((500, 3))

    def depth(t):
        local = (mat * (vec * (1 + t))[:, None]).sum(-1)
        return safe.least(jnp.stack([jnp.abs(size + local), jnp.abs(size - local)], -1).reshape(-1, 6))

    assert np.isfinite(jax.jit(lambda t: jax.jvp(depth, (t,), (1.0,))[1])(0.0)).all()


@pytest.mark.parametrize("x", [0.0, 1e-300, 1e-41, -1.0])
def test_roots_of_next_to_nothing_are_zero_with_zero_derivative(x):
    value, slope = jax.value_and_grad(safe.sqrt)(jnp.asarray(x))
    assert value == 0 and slope == 0


def test_roots_and_their_derivatives_are_exact_above():
    x = jnp.asarray([1e-30, 1e-8, 2.0])
    np.testing.assert_allclose(safe.sqrt(x), np.sqrt(x), rtol=1e-15)
    np.testing.assert_allclose(jax.vmap(jax.grad(safe.sqrt))(x), 0.5 / np.sqrt(x), rtol=1e-15)
