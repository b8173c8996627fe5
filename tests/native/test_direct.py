"""Programs that are one C function, called without JAX."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.native import compiler
from jaxsim.native.core_program import core_program
from jaxsim.native.direct import DirectCall
from jaxsim.native.jaxpr import MOST_CONSTANTS

pytestmark = pytest.mark.skipif(compiler.c_compiler() is None, reason="no C compiler")
TABLE = np.sin(np.arange(MOST_CONSTANTS + 4, dtype=np.float32))


def recorded(function, *args, fixed=0) -> list[DirectCall]:
    calls: list[DirectCall] = []
    jax.jit(core_program(function, record=calls.append, fixed=fixed)).lower(*args)
    return calls


def function(x, i):
    return jnp.sin(x) + jnp.asarray(TABLE)[i], i, jnp.zeros((0, 2), jnp.float32), i + 1, np.full(3, 2, np.int32)


@pytest.fixture(scope="module")
def direct():
    (call,) = recorded(function, jnp.zeros((2, 3), jnp.float32), jnp.int32(0))
    return call.load()


def test_a_direct_call_gives_the_functions_results(direct):
    x, i = np.arange(6, dtype=np.float32).reshape(2, 3), np.asarray(MOST_CONSTANTS + 1, np.int32)
    for given in ((x, i), (jnp.asarray(x), jnp.asarray(i)), (np.asfortranarray(x), i)):
        for found, wanted in zip(direct(*given), function(x, i), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_arrays_that_cannot_be_written_to_are_read(direct):
    x = np.ones((2, 3), np.float32)
    x.setflags(write=False)
    np.testing.assert_allclose(direct(x, np.int32(0).reshape(()))[0], np.sin(x), rtol=1e-6)


def test_results_do_not_change_in_later_calls(direct):
    x, i = np.ones((2, 3), np.float32), np.asarray(0, np.int32)
    first = direct(x, i)[0]
    before = first.copy()
    direct(2 * x, i)
    np.testing.assert_array_equal(first, before)


@pytest.mark.parametrize("x", [np.ones((3, 2), np.float32), np.ones((2, 3)), jnp.ones(6, jnp.float32)])
def test_other_shapes_and_types_are_refused(direct, x):
    with pytest.raises(TypeError, match=r"wanted float32\(2, 3\)"):
        direct(x, np.asarray(0, np.int32))


def test_a_program_with_a_part_of_jax_has_no_direct_call():
    assert not recorded(lambda x: jnp.real(jnp.fft.fft(jnp.sin(x))), jnp.ones(8))


def test_a_library_that_is_loaded_again_counts_as_used():
    (call,) = recorded(lambda x: 2 * jnp.sin(x), jnp.zeros(3))
    library = compiler.folder() / f"{call.target}.so"
    os.utime(library, (0, 0))
    del compiler.loaded[call.target]  # as in a process that has not loaded it
    assert compiler.load_again({call.target: False}) and library.stat().st_mtime > 1e9


def test_what_fixed_arguments_determine_is_computed_once(monkeypatch):
    (call,) = recorded(lambda m, x: jnp.cumsum(jnp.sin(m)) * x, jnp.zeros(5, jnp.float32), jnp.float32(0), fixed=1)
    program, prepared = call.load(), []
    prepare = program._prepare._program
    monkeypatch.setattr(program._prepare, "_program", lambda *x: prepared.append(x) or prepare(*x))
    models = np.ones(5, np.float32), np.arange(5, dtype=np.float32)
    for m, x in ((models[0], 1.0), (models[0], 2.0), (models[1], 3.0), (models[1], 4.0)):
        found = program(m, np.asarray(x, np.float32))[0]
        np.testing.assert_allclose(found, np.cumsum(np.sin(m)) * x, rtol=1e-6)
    assert len(prepared) == 2
