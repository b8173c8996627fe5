"""Randomised smoothing: each estimator on a function whose averaged gradient is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import optim

KEY = jax.random.key(0)


@pytest.mark.parametrize("mode", ["first", "zeroth", "mixed"])
def test_every_estimator_gives_the_gradient_of_a_smooth_function(mode):
    value, grad = jax.jit(optim.smoothed(lambda x: jnp.sum(x**2), 0.1, 4000, mode))(jnp.asarray([1.0, -2.0]), KEY)
    np.testing.assert_allclose(grad, [2, -4], rtol=0.1)
    np.testing.assert_allclose(value, 5 + 2 * 0.01, rtol=1e-2)


def test_gradient_across_a_jump_is_found_where_the_plain_one_is_zero():
    """The derivative of a step function averaged over a Gaussian is the density of the Gaussian."""

    def jump(x):
        return jnp.where(x > 0, 1.0, 0.0)

    expected = 1 / np.sqrt(2 * np.pi) / 0.5
    assert jax.grad(jump)(0.0) == 0 and optim.smoothed(jump, 0.5, 4000, "first")(jnp.asarray(0.0), KEY)[1] == 0
    for mode in ("zeroth", "mixed"):
        np.testing.assert_allclose(optim.smoothed(jump, 0.5, 4000, mode)(jnp.asarray(0.0), KEY)[1], expected, rtol=0.05)


def test_mixed_takes_the_less_noisy_estimator():
    def f(x):
        return jnp.sum(x**2) + 100.0

    spread = [
        np.std([optim.smoothed(f, 1e-3, 64, mode)(jnp.asarray([1.0]), jax.random.key(i))[1] for i in range(12)])
        for mode in ("zeroth", "mixed")
    ]
    assert spread[1] < 0.2 * spread[0]


def test_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="second"):
        optim.smoothed(jnp.sum, 1.0, 1, "second")
