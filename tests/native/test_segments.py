"""A function cut into kernels: large ones in pieces, and what they hand on."""

import math
import re
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.native import function
from jaxsim.native import segments as cutting
from jaxsim.native import tile_source as tile
from jaxsim.native.jaxpr import CORE, GPU, VECTORS, Var, flatten, trace
from jaxsim.native.operations import is_cheap
from jaxsim.native.segments import segments, with_all_results
from jaxsim.native.stage import stage
from jaxsim.native.tile_source import tile_source
from jaxsim.native.writer import MOST_UNROLLED


def chain(x):
    """Many operations in a row, a wide array in the middle, and results from the beginning and the end."""
    first = x
    for k in range(10):
        x = jnp.sin(x) + k
    narrow = x.sum(keepdims=True)
    wide = narrow * jnp.ones((50, 1)) + x
    for k in range(10):
        wide = jnp.cos(wide) * (k + 1)
    return wide.sum(0), first * 2


def cut(function, most, monkeypatch, platform=GPU):
    monkeypatch.setattr(cutting, "MOST_OPERATIONS", most)
    flat = flatten(trace(function, [jnp.zeros(3)]), platform)
    return flat, [s.flat for s in segments(flat, [True], platform)]


def test_a_small_function_is_one_kernel(monkeypatch):
    assert len(cut(chain, math.inf, monkeypatch)[1]) == 1


def test_pieces_have_at_most_so_many_operations_and_hold_all(monkeypatch):
    flat, parts = cut(chain, 12, monkeypatch)
    assert len(parts) > 2
    assert all(sum(map(cutting.operations_of, p.operations)) <= 12 for p in parts)
    assert sum(len(p.operations) for p in parts) >= len(flat.operations)


def test_a_cut_lies_where_little_is_handed_on(monkeypatch):
    """Ten of twenty operations on few numbers come first: what is cut there is narrow."""
    _, parts = cut(chain, 30, monkeypatch)
    handed = [v for p in parts[:-1] for v in p.outputs if isinstance(v, Var)]
    assert len(parts) == 2 and all(math.prod(v.shape) <= 3 for v in handed)


def test_a_program_of_vectors_is_not_cut(monkeypatch):
    assert len(cut(chain, 5, monkeypatch, VECTORS)[1]) == 1


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="kernels on the host need a C compiler")
def test_pieces_compute_the_function(monkeypatch):
    monkeypatch.setattr(cutting, "MOST_OPERATIONS", 6)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)))
    for got, want in zip(jax.vmap(stage(chain, "host"))(x), jax.vmap(chain)(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_halves_pass_on_little_and_end_at_one_operation():
    flat = flatten(trace(chain, [jnp.zeros(3)]), GPU)
    first, second = cutting.halves(flat)
    handed = [v for v in second.inputs if v not in flat.inputs]
    assert all(math.prod(v.shape) <= 3 for v in handed) and not set(handed) - set(first.outputs)
    assert {*first.outputs, *second.outputs} >= set(flat.outputs)

    def parts(flat):
        halves = cutting.halves(flat)
        return [part for half in halves for part in parts(half)] if halves else [flat]

    assert all(sum(not is_cheap(op) for op in part.operations) == 1 for part in parts(flat))


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="kernels on the host need a C compiler")
def test_a_kernel_of_too_many_arrays_is_several(monkeypatch):
    monkeypatch.setattr(tile, "MOST_PARAMETERS", 5)
    x = np.random.default_rng(0).normal(size=(4, 5, 3))

    def function(x):
        y = [jnp.sin(x[k]) for k in range(5)]
        return (*y, y[0] * y[1], sum(y[2:]))

    for got, want in zip(jax.vmap(stage(function, "host"))(x), jax.vmap(function)(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_constants_are_folded_within_branches():
    places = np.arange(-2, 3)

    def function(x):
        return jax.lax.cond(x[0] > 0, lambda: x[jnp.where(places < 0, places + 5, places)], lambda: x)

    flat = flatten(trace(function, [jnp.zeros(5)]), GPU)
    (cond,) = [op for op in flat.operations if op.name == "cond"]
    assert all(isinstance(v, Var) for v in cond.inputs)
    inner = [[op.name for op in flatten(branch, GPU).operations] for branch in cond.params["branches"]]
    assert inner == [[], ["gather"]]


def test_loops_of_lanes_over_the_same_entries_are_one():
    def function(x, y):
        return jnp.sin(x) + 1, jnp.cos(y) * 2, x[::-1] - y

    flat = flatten(trace(function, [jnp.zeros(7), jnp.zeros(7)]), GPU)
    assert tile_source(flat, [True, True], 4).text.count("ALL_OF(i, 7) {") == 1


def test_a_loop_hands_rows_on_in_registers():
    def function(x):
        y = jnp.stack([jnp.sin(x[:, 0]), x[:, 1] * x[:, 0]], -1)
        z = jnp.concatenate([y, x], -1)
        return z.reshape(7, 2, 2) * 2, y[:, 0] + z[:, 3]

    text = tile_source(flatten(trace(function, [jnp.zeros((7, 2))]), GPU), [True], 4).text
    visit = text[text.index("FUNCTION void visit") :]
    assert visit.count("ALL_OF(i, 7) {") == 1 and "sync();" not in visit and visit.count("AT(") == 2


def test_an_operation_is_computed_once():
    def function(x, i):
        return jnp.sin(x) * 2, jnp.sin(x) + x[i], x[i] * jnp.sin(x)

    names = [op.name for op in flatten(trace(function, [jnp.zeros(3), jnp.zeros(3, int)]), GPU).operations]
    assert names.count("sin") == names.count("gather") == 1


def test_loops_that_wait_for_each_other_stay_apart():
    def function(x):
        y = jnp.sin(x)
        return y, y[::-1] + 1

    flat = flatten(trace(function, [jnp.zeros(7)]), GPU)
    assert tile_source(flat, [True], 4).text.count("ALL_OF(i, 7) {") == 2


def test_a_loop_of_many_statements_is_not_unrolled():
    def function(x, y):
        for k in range(MOST_UNROLLED):
            x = jnp.sin(x) + k
        return x, y[1:] * y[:-1]

    text = tile_source(flatten(trace(function, [jnp.zeros(512), jnp.zeros(512)]), GPU), [True, True], 4).text
    heads = re.findall(r"(?m)^ALL\w*\(i, \d+\) {$", text[text.index("FUNCTION void visit") :])
    assert sorted(heads) == ["ALL(i, 512) {", "ALL_OF(i, 511) {"]


def prints(x):
    jax.debug.print("{}", x)
    return x


def test_a_program_writes_all_results_itself():
    """Constants, what depends on unchanged inputs, and equal results are arrays of their own; inputs stay inputs."""

    def function(x, y):
        z = jnp.sin(x) * y
        return jnp.zeros(2) + 1, jnp.cos(x), z, z, y

    flat = flatten(trace(function, [jnp.zeros(3)] * 2), CORE)
    found = with_all_results(flat, [False, True])
    made = [v for op in found.operations for v in op.outputs]
    assert len(set(found.outputs)) == 5 and found.outputs[4] is flat.inputs[1]
    assert all(v in made for v in found.outputs[:4]) and found.outputs[2] is flat.outputs[2]


def test_a_stage_that_prints_runs_by_xla_with_a_warning():
    function.warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="the printer runs by XLA instead.*a function in it prints or calls back"):
        jax.jit(stage(prints, "core", "the printer")).trace(1.0)


def test_a_stage_that_prints_is_refused_by_the_native_backend():
    with pytest.raises(jaxsim.UnsupportedError, match="the printer: a function in it prints or calls back"):
        jax.jit(stage(prints, "core", "the printer", jaxsim.Backend.NATIVE)).trace(1.0)
