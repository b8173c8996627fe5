"""`jaxsim.jit` and the compiler options behind it."""

import jax
import jax.numpy as jnp
import pytest

import jaxsim
from jaxsim.xla import options
from jaxsim.xla.compat import jax_version


def test_jit_compiles_with_the_options_of_the_platform():
    lowered = jaxsim.jit(lambda x: 2 * x, static_argnames=()).lower(1.0)
    assert lowered.compile()(1.0) == 2
    gone = set() if jax_version() == (0, 10) else {"xla_cpu_use_fusion_emitters"}
    assert set(jaxsim.compiler_options("cpu")) == set(options.OPTIONS["cpu"]) - gone


def test_options_that_xla_does_not_know_are_left_out(monkeypatch):
    monkeypatch.setitem(options.OPTIONS, "cpu", {"xla_cpu_no_such_option": True})
    options.known_options.cache_clear()
    assert jaxsim.compiler_options("cpu") == {}
    monkeypatch.undo()
    options.known_options.cache_clear()


def test_options_of_the_caller_win():
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_cpu_no_such_option"):
        jaxsim.jit(lambda x: x, compiler_options={"xla_cpu_no_such_option": True})(jnp.ones(1))
