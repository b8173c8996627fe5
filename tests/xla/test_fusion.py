"""Fusion barriers: they keep values and derivatives, and what is behind one is computed once."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.xla import fusion
from jaxsim.xla.fusion import fusion_barrier, one_kernel


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


def test_kernel_gives_what_the_function_gives():
    x, y = jnp.arange(12.0).reshape(3, 4), jnp.arange(3.0)
    function = lambda x, y: (2 * x + y[:, None], x.sum(axis=1) * y)  # noqa: E731
    for got, want in zip(jax.jit(one_kernel(function))(x, y), function(x, y), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_kernels_are_tried_in_a_process_of_its_own_with_a_newer_jax(monkeypatch):
    monkeypatch.setattr(fusion, "TESTED_JAX", (0, 0))
    for survives in (True, False):
        monkeypatch.setattr(fusion, "kernels_survive", lambda s=survives: s)
        fusion.kernels_hold.cache_clear()
        text = jax.jit(fusion.one_kernel(lambda x: x + 1)).lower(jnp.ones(3)).as_text()
        assert ("xla_cpu_small_call" in text) == survives
    fusion.kernels_hold.cache_clear()


def test_trial_of_kernels():
    assert fusion.kernels_survive()


def test_a_trial_that_dies_is_a_no(monkeypatch):
    monkeypatch.setattr(fusion.sys, "executable", "/bin/false")
    assert not fusion.kernels_survive()
