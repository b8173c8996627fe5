"""Fusion barriers: they keep values and derivatives, and what is behind one is computed once."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.xla.fusion import fusion_barrier


def _no_barrier(tree):
    return tree


def _sines(barrier):
    def chain(x):
        for _ in range(3):
            x = jnp.sin(x)
        (y,) = barrier((x,))
        return 2 * y, y + 1, y[::-1] * y, jnp.cos(y).sum()

    return jax.vmap(chain)


def test_barrier_keeps_values_and_derivatives():
    x = jnp.linspace(0, 1, 12).reshape(3, 4)
    for got, want in zip(jax.jit(_sines(fusion_barrier))(x), _sines(_no_barrier)(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    both = (fusion_barrier, _no_barrier)
    gradients = [jax.grad(lambda x, w=w: sum(y.sum() for y in _sines(w)(x)))(x) for w in both]
    np.testing.assert_allclose(*gradients, rtol=1e-6)
    tangents = [jax.jvp(_sines(w), (x,), (x,))[1][0] for w in both]
    np.testing.assert_allclose(*tangents, rtol=1e-6)


def test_what_is_behind_a_barrier_is_computed_once():
    def sines(barrier):
        return jax.jit(_sines(barrier)).lower(jnp.ones((3, 4))).compile().as_text().count(" sine(")

    with jax.default_device(jax.devices("cpu")[0]):  # the only platform with barriers
        assert sines(fusion_barrier) == 3 < sines(_no_barrier)
