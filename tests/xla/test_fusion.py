"""Functions that are one kernel of a CPU."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.xla import fusion
from jaxsim.xla.fusion import one_kernel


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
