"""Machine code of a C compiler within compiled programs: where it is kept, and what happens without a compiler."""

import contextlib

import jax
import numpy as np
import pytest

from jaxsim.native import compiler as native
from jaxsim.native.nvrtc import CompilerMissing

TWICE = (
    native.PREAMBLE
    + """XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {
if (is_question(frame)) return 0;
const float* x = argument(frame, 0)->data;
float* y = result(frame, 0)->data;
for (long long i = 0; i < result(frame, 0)->dims[0]; ++i) y[i] = 2 * x[i];
return 0;
}
"""
)
needs_compiler = pytest.mark.skipif(native.c_compiler() is None, reason="compiles C sources: needs a C compiler (cc)")


def forget():
    for known in (native.c_compiler, native.shared_library):
        known.cache_clear()


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No library and no compiler is known yet."""
    forget()
    yield
    forget()


@pytest.fixture
def kept(tmp_path):
    """The folder of libraries beside compiled programs."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    yield tmp_path / "native"
    jax.config.update("jax_compilation_cache_dir", before)


@needs_compiler
def test_a_library_runs_within_a_program_for_any_length():
    twice = jax.jit(lambda x: 1 + jax.ffi.ffi_call(native.target_of(TWICE), jax.ShapeDtypeStruct(x.shape, x.dtype))(x))
    for x in (np.arange(3, dtype=np.float32), np.arange(70, dtype=np.float32)):
        np.testing.assert_array_equal(twice(x), 1 + 2 * x)


@needs_compiler
def test_a_library_that_was_cut_short_is_compiled_again(kept):
    native.target_of(TWICE + "// cut")
    (library,) = kept.glob("*.so")
    whole = library.read_bytes()
    library.unlink()  # this process has it loaded
    library.write_bytes(whole[:5000])
    forget()
    target = native.target_of(TWICE + "// cut")
    assert native.is_whole(library)
    x = np.arange(5, dtype=np.float32)
    run = jax.jit(lambda x: jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(x.shape, x.dtype))(x))
    np.testing.assert_array_equal(run(x), 2 * x)


@needs_compiler
def test_a_library_is_kept_beside_compiled_programs_and_used_again(kept, monkeypatch):
    native.target_of(TWICE + "// kept")
    (library,) = kept.glob("*.so")
    forget()
    monkeypatch.setattr(native.subprocess, "run", None)  # a second compilation would fail
    native.target_of(TWICE + "// kept")
    assert list(kept.glob("*.so")) == [library]


@needs_compiler
def test_a_library_that_cannot_be_loaded_counts_as_none(kept, monkeypatch):
    monkeypatch.setattr(native, "_compile", lambda *_: None)
    with pytest.raises(CompilerMissing, match="no library of machine code"):
        native.target_of(TWICE + "// not there")


@needs_compiler
def test_a_source_that_is_refused_says_what_the_compiler_says():
    with pytest.raises(CompilerMissing, match=r"refuses the source.*error"):
        native.target_of("int handler( {")


@needs_compiler
def test_a_compiler_that_crashes_runs_again_without_vectors_of_loops(kept, monkeypatch, tmp_path):
    crashing = tmp_path / "cc"
    crash = "echo 'internal compiler error: in a pass' >&2; exit 1"
    cases = f'*" -c "*fno-tree-vectorize* | *" -o "*library.so*) exec {" ".join(native.c_compiler())} "$@";;'
    crashing.write_text(f'#!/bin/sh\ncase "$* " in\n{cases}\nesac\n{crash}\n')
    crashing.chmod(0o755)
    monkeypatch.setenv("JAXSIM_CC", str(crashing))
    forget()
    library = native.shared_library(TWICE + "// crash", native.SCALAR)
    library.written.result(60)
    assert native.is_whole(library.path)


@pytest.mark.parametrize("value", ["", "no-such-compiler"])
def test_a_machine_without_a_compiler_says_so(monkeypatch, value):
    monkeypatch.setenv("JAXSIM_CC", value)
    assert native.c_compiler() is None
    with pytest.raises(CompilerMissing, match="no C compiler"):
        native.target_of(TWICE)


@needs_compiler
def test_a_library_is_kept_in_the_users_cache_where_nothing_was_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        native.target_of(TWICE + "// of the user")
        assert len(list((tmp_path / "jaxsim" / "native").glob("*.so"))) == 1
        with switched_off():
            native.target_of(TWICE + "// of this process")
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
    assert len(list((tmp_path / "jaxsim" / "native").glob("*.so"))) == 1


@contextlib.contextmanager
def switched_off():
    """Without JAX's cache of compiled programs."""
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", True)


def test_another_compiler_than_gcc_takes_a_level_it_knows(monkeypatch):
    monkeypatch.setattr(native, "is_gcc", lambda: False)
    flags = native.of_compiler(native.ONCE)
    assert "-O2" in flags and not set(native.SHORT) & set(flags)
    assert set(flags) - {"-O2"} == set(native.ONCE) - set(native.SHORT)
    assert native.of_compiler(native.SCALAR) == native.SCALAR
