"""How the script of emulated kernels compares arrays: needs no emulator."""

import importlib
import sys
from types import ModuleType, SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.paths import CI


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(CI)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    return importlib.import_module("gpu_emulate")


A, B = np.random.default_rng(0).normal(scale=0.5, size=(2, 16)).astype(np.float32)


def cancelling(a, b):
    """Zero but for rounding."""
    return (a * b) * a - a * (b * b) / b * a


def test_an_array_that_is_zero_but_for_rounding_has_no_digits(script):
    want, again = cancelling(A, B), cancelling(script.rounded(A), script.rounded(B))
    assert np.any(want)
    assert script.difference(-want, want) > 1e-4
    assert script.is_small(-want, want, [A, B])
    assert script.is_rounding(want, again)


def test_rounding_beside_exact_zeros_has_no_digits(script):
    zeros, found = np.zeros(3, np.float32), np.float32([3e-24, 0, -1e-9])
    assert script.difference(found, zeros) > 1e-4
    assert script.is_small(found, zeros, [A, B])
    assert script.is_rounding(zeros, zeros)


def test_small_numbers_that_operands_determine_are_compared(script):
    small = np.float32([1e-12, 3e-12, -2e-12])
    want, again = small * A[:3], script.rounded(small) * script.rounded(A[:3])
    assert script.is_small(2 * want, want, [small, A])
    assert not script.is_rounding(want, again)


@pytest.mark.parametrize("found", [np.float32([1e-3, 0, 0]), np.float32([np.nan, 0, 0]), np.array([1, 0, 0])])
def test_numbers_above_rounding_are_compared(script, found):
    assert not script.is_small(found, np.zeros_like(found), [A, B])


def test_large_operands_excuse_no_more_than_those_of_size_one(script):
    found = np.float32([1e-3, 0, 0])
    assert not script.is_small(found, np.zeros_like(found), [np.float32([1e10, np.inf])])


def test_a_rounded_operand_differs_in_its_last_places_alone(script):
    given = np.float32([*A, 0, np.inf])
    moved = script.rounded(given)
    assert np.all(moved[:16] != A)
    np.testing.assert_allclose(moved[:17], given[:17], rtol=3e-7, atol=1e-40)
    assert moved[17] == np.inf
    whole = np.array([1, 2])
    assert script.rounded(whole) is whole


def test_a_report_leaves_out_rounding_and_nothing_else(script, monkeypatch):
    monkeypatch.setitem(sys.modules, "ptxemu", ModuleType("ptxemu"))
    emulated = script.Emulated(SimpleNamespace(tolerance=1e-4))

    def by_jax(a, b):
        return [cancelling(a, b), jnp.zeros(3, a.dtype), 1e-12 * a]

    def program(a, b):
        rounding, zeros, small = by_jax(a, b)
        emulated.compare("right", [-rounding, zeros + 3e-24, small], by_jax, (a, b))
        emulated.compare("wrong", [-rounding, zeros, 2 * small], by_jax, (a, b))

    jax.jit(program)(A, B)
    jax.effects_barrier()
    assert all(apart > 0.5 for _, apart in emulated.checked)
    emulated.settle()
    assert sorted(apart > 1e-4 for _, apart in emulated.checked) == [False, True]
    assert any("wrong, result 2 of 3" in name for name, _ in emulated.checked)
