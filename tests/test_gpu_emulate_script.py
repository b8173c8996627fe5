"""How the script of emulated kernels compares arrays: needs no emulator."""

import importlib
import subprocess
import sys
from pathlib import Path
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


@pytest.fixture
def rounding(monkeypatch):
    monkeypatch.syspath_prepend(CI)
    return importlib.import_module("rounding")


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


def search(x):
    """Steps of a search that takes the larger of two numbers which are equal but for rounding."""

    def step(state):
        k, x = state
        nearer = jnp.sum(x * x) * x[0] >= x[0] * jnp.sum(x * x)
        return k + 1, jnp.where(nearer, x * 0.9, x * 1.1)

    return jax.lax.while_loop(lambda state: state[0] < 3, step, (0, x))[1]


def test_rounding_otherwise_moves_what_is_rounded_and_nothing_else(rounding):
    def function(a, b):
        exact = [2 * a, jnp.maximum(a, b), jnp.round(4 * a) + 3, jnp.argmax(a), a[::-1], jnp.zeros(3)]
        return [*exact, a * b, jnp.sum(a), jnp.sin(a)]

    want = function(A, B)
    runs = rounding.moved(function, [A, B])
    for run in runs:
        for x, y in zip(run[:6], want[:6], strict=True):
            np.testing.assert_array_equal(x, y)
        for x, y in zip(run[6:], want[6:], strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6)
    for k in (6, 7, 8):
        assert any(np.any(run[k] != want[k]) for run in runs)


def test_rounding_otherwise_shows_where_numbers_cancel(rounding):
    def function(a, b):
        return [a * b - a * b, (a + b) - b - a, a @ jnp.where(jnp.arange(16) < 8, b, -b[::-1] * a[::-1] / a)]

    runs = rounding.moved(function, [A, B])
    for k in range(3):
        spread = max(np.abs(run[k]).max() for run in runs)
        assert 1e-8 < spread < 3e-6


def test_rounding_otherwise_reaches_loops_branches_and_solutions(rounding):
    matrix = np.outer(A, A) + np.eye(16, dtype=np.float32)

    def function(a, b):
        chosen = jax.lax.cond(a[0] > 0, lambda: jnp.exp(b), lambda: jnp.cos(b))
        turns = jax.lax.scan(lambda x, y: (jnp.sin(x + y), x), a, jnp.arange(3, dtype=a.dtype))[0]
        return [chosen, turns, jnp.linalg.solve(matrix, b), jnp.linalg.cholesky(matrix + jnp.outer(a, a))]

    want = function(A, B)
    runs = rounding.moved(function, [A, B])
    for k, y in enumerate(want):
        assert any(np.any(run[k] != y) for run in runs)
        for run in runs:
            np.testing.assert_allclose(run[k], y, rtol=1e-4, atol=1e-5)


def test_a_tie_is_decided_either_way(script, rounding):
    runs = [run[0] for run in rounding.moved(lambda x: [search(x)], [A])]
    assert max(script.difference(run, A * np.float32(0.9) ** 3) for run in runs) > 0.1


def test_a_kernel_may_differ_by_as_much_as_rounding(script):
    want, moved = np.float32([1, 2, 3]), [np.float32([1, 2, 3.1]), np.float32([1, 1.99, 3])]
    assert script.is_within(np.float32([1.2, 2, 3]), want, moved)
    assert not script.is_within(np.float32([2, 2, 3]), want, moved)
    assert not script.is_within(np.float32([np.nan, 2, 3]), want, moved)
    chosen, others = np.array([1, 2, 3]), [np.array([1, 2, 4]), np.array([1, 0, 3])]
    assert script.is_within(np.array([1, 7, 5]), chosen, others)
    assert not script.is_within(np.array([0, 2, 3]), chosen, others)


def test_a_report_says_which_results_differ_by_rounding(script, monkeypatch):
    monkeypatch.setitem(sys.modules, "ptxemu", ModuleType("ptxemu"))
    emulated = script.Emulated(SimpleNamespace(tolerance=1e-4))

    def by_jax(a, b):
        return [a * b - b * a * (1 + 1e-4), a + b]

    def program(a, b):
        cancelled, exact = by_jax(a, b)
        emulated.compare("right", [cancelled * (1 + 3e-4), exact], by_jax, (a, b))
        emulated.compare("wrong", [cancelled, exact * (1 + 3e-4)], by_jax, (a, b))

    jax.jit(program)(A, B)
    jax.effects_barrier()
    emulated.settle()
    assert [apart > 1e-4 for _, apart in sorted(emulated.checked)] == [False, True]
    assert [("right" in k, "wrong" in k) for k in sorted(emulated.rounding)] == [(True, False)]


def test_a_table_has_a_row_for_each_model(script):
    figures = dict.fromkeys((*script.OF_TABLE, *script.FAULTS), 1) | {"instructions": 12345, "KB": 1.5}
    rows = script.table({"a, step": figures, "a, grad": {"error": "not ended"}, "b, grad": figures}).splitlines()
    assert len(rows) == 4
    assert "12,345; " in rows[2]
    assert "1.5" in rows[2]
    assert "not ended" in rows[2]
    assert rows[3] == "| b | not run; 1 | ; 12,345 | ; 1.5 | ; 1 | ; 5 | ; 1 | ; 1 |"
    assert script.has_fault({"left": ["a stage"]})
    assert not script.has_fault({"left": [], "complaints": [], "worst": {}})


def test_all_models_run_by_processes_of_their_own(script, monkeypatch, tmp_path):
    names = sorted(path.stem for path in script.MODELS.glob("*.xml"))
    done, late, first = f"{names[0]}, step", names[1], names[2]
    path, asked = tmp_path / "figures.json", []
    args = SimpleNamespace(json=path, what=["step"], limit=1.0)
    script.write(args, {done: {"launches": 3}})

    def run(command, timeout):
        name, own = command[2], Path(command[-1])
        asked.append(name)
        if name == late:
            raise subprocess.TimeoutExpired(command, timeout)
        if name != first:
            script.write(SimpleNamespace(json=own), {f"{name}, step": {"launches": 7}})

    monkeypatch.setattr(script.subprocess, "run", run)
    figures = script.each_alone(args)
    assert asked == names[1:]
    assert figures == script.read(path)
    assert figures[done] == {"launches": 3}
    assert "1 s" in figures[f"{late}, step"]["error"]
    assert "ended" in figures[f"{first}, step"]["error"]
    assert figures[f"{names[3]}, step"] == {"launches": 7}
    assert [p.name for p in tmp_path.iterdir()] == ["figures.json"]
