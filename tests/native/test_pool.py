"""Searches of entries that take different time: the same results one by one and side by side, for every batch."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsim.math.arrays import row_at
from jaxsim.native import compiler as native
from jaxsim.native import function, pool
from jaxsim.native import launch as kernels
from jaxsim.native.hints import any_of_vector, by_value
from jaxsim.native.nvrtc import CompilerMissing
from jaxsim.native.pool import for_each

N = 6
TABLE = np.arange(5000, dtype=np.int32)  # more than XLA takes as a constant operand of a kernel that it sees


def search(shared, row, active):
    """Steps of the table until the row's number is reached: a loop of another length for each entry."""
    table, scale, _ = shared
    number, _ = row
    steps = lax.while_loop(lambda i: active & (row_at(table, i) < number), lambda i: i + 1, jnp.int32(0))
    return {"steps": steps, "scaled": scale * jnp.stack([number, 2 * number]).astype(scale.dtype)}


def run(scale, number, count):
    shared = jnp.asarray(TABLE), scale, jnp.zeros(3)  # the last one is not read
    return for_each(search, shared, (number, jnp.ones((N, 2))), count)


def expected(scale, number, count):
    real = np.arange(N) < count
    scaled = scale * np.stack([number, 2 * number], axis=-1)
    return {"steps": np.where(real, number, 0), "scaled": np.where(real[:, None], scaled, 0)}


def assert_same(found, wanted):
    jax.tree.map(np.testing.assert_array_equal, found, wanted)


NUMBERS = np.random.default_rng(0).integers(0, 100, (2, 3, N)).astype(np.int32)
COUNTS = np.array([[0, 1, 6], [3, 6, 2]], np.int32)


def test_one_world_gets_results_of_its_first_entries_and_zeros():
    assert_same(jax.jit(run)(2.0, NUMBERS[0, 0], 4), expected(2.0, NUMBERS[0, 0], 4))


@pytest.mark.parametrize("axis", [None, 0])
def test_worlds_of_a_batch_get_their_own_results(axis):
    scale = np.float32(2.0) if axis is None else np.array([1.0, 2.0, 3.0], np.float32)
    found = jax.jit(jax.vmap(run, in_axes=(axis, 0, 0)))(scale, NUMBERS[0], COUNTS[0])
    wanted = [expected(s, *x) for s, *x in zip(np.broadcast_to(scale, 3), NUMBERS[0], COUNTS[0], strict=True)]
    assert_same(found, jax.tree.map(lambda *x: np.stack(x), *wanted))


def test_a_batch_of_batches_is_one_larger_batch():
    nested = jax.jit(jax.vmap(jax.vmap(run, in_axes=(None, 0, 0)), in_axes=(0, 0, 0)))
    found = nested(np.array([1.0, 2.0], np.float32), NUMBERS, COUNTS)
    flat = jax.vmap(run)(np.repeat(np.float32([1, 2]), 3), NUMBERS.reshape(6, N), COUNTS.reshape(6))
    assert_same(found, jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), flat))


MASKS = np.array([[1, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1]], bool)


def of_masks(scale):
    steps = np.where(MASKS, NUMBERS[0], 0)
    return {"steps": steps, "scaled": scale * np.stack([steps, 2 * steps], axis=-1)}


def test_a_mask_names_the_rows_to_search():
    assert_same(jax.jit(jax.vmap(run, in_axes=(None, 0, 0)))(2.0, NUMBERS[0], MASKS), of_masks(2.0))


@pytest.mark.parametrize("batch", [False, True])
def test_the_plain_form_of_a_search_takes_a_mask(monkeypatch, batch):
    by_jax = pool.POOL.by_jax

    def plain(plan, *operands):
        if not batch:
            return by_jax(*operands, plan=plan, worlds=None)
        worlds = (True,) * len(operands)
        return [x[0] for x in by_jax(*(jnp.asarray(x)[None] for x in operands), plan=plan, worlds=worlds)]

    monkeypatch.setattr(pool, "POOL", plain)
    monkeypatch.setattr(lax, "platform_dependent", lambda *x, default, tpu=None, **_: (tpu or default)(*x))
    assert_same(run(2.0, NUMBERS[0, 0], MASKS[0]), jax.tree.map(lambda x: x[0], of_masks(2.0)))


@pytest.fixture
def no_c_compiler(monkeypatch):
    """A machine without one: XLA's kernel is what runs."""
    monkeypatch.setattr(native, "c_compiler", lambda: None)


@pytest.mark.skipif(native.c_compiler() is None, reason="no C compiler (cc) to compare with XLA")
def test_a_c_compiler_gives_what_xla_gives(request):
    by_c = jax.jit(jax.vmap(run, in_axes=(None, 0, 0)))
    assert "jaxsim_" in by_c.lower(2.0, NUMBERS[1], COUNTS[1]).as_text()
    found = by_c(2.0, NUMBERS[1], COUNTS[1])
    request.getfixturevalue("no_c_compiler")
    by_xla = jax.jit(jax.vmap(lambda *x: run(*x), in_axes=(None, 0, 0)))
    assert "jaxsim_" not in by_xla.lower(2.0, NUMBERS[1], COUNTS[1]).as_text()
    assert_same(found, by_xla(2.0, NUMBERS[1], COUNTS[1]))


@pytest.mark.parametrize("chunk", [4, 1000])
def test_entries_side_by_side_give_what_they_give_one_by_one(monkeypatch, no_c_compiler, chunk):
    """What other platforms run, in chunks smaller and larger than the batch."""
    one_by_one = jax.jit(jax.vmap(run, in_axes=(None, 0, 0)))(2.0, NUMBERS[1], COUNTS[1])
    monkeypatch.setattr(pool, "CHUNK", chunk)
    monkeypatch.setattr(pool, "one_by_one", partial(with_a_spare_number, pool.side_by_side))
    monkeypatch.setattr(pool, "one_kernel_of_tables", lambda function: function)
    assert_same(jax.jit(jax.vmap(lambda *x: run(*x), in_axes=(None, 0, 0)))(2.0, NUMBERS[1], COUNTS[1]), one_by_one)


def with_a_spare_number(function, *args):
    return jnp.pad(function(*args), ((0, 0), (0, 0), (0, 1)))


def scaled_rows(shared, row, _):
    """Rows of a table by a key, and the first of its numbers above a threshold, which neighbours look for together."""
    (table,), (number, key) = shared, row

    def visit(state):
        i, found = state
        found = jnp.where((found < 0) & (row_at(table, i)[0] > number), i, found)
        return jnp.where(any_of_vector(found < 0), i + 1, len(table)), found

    place = lax.while_loop(lambda x: x[0] < len(table), visit, (jnp.int32(0), jnp.int32(-1)))[1]
    scaled, seen = by_value(lambda k, x, t: (x * row_at(t, k), k), jnp.where(number > 0, key, -1), number, table)
    return jnp.where(number > 0, scaled, 0), jnp.where(number > 0, seen, -1), place


@pytest.mark.skipif(native.c_compiler() is None, reason="runs machine code of a C compiler")
def test_vectors_of_entries_give_what_each_entry_gives():
    rng = np.random.default_rng(0)
    table, number = rng.normal(size=(2, 50, 3)), rng.normal(size=(2, 21))
    keys, count = rng.integers(0, 4, (2, 21)).astype(np.int32), np.array([19, 3], np.int32)
    each = lambda *x: for_each(scaled_rows, x[:1], x[1:3], x[3])  # noqa: E731
    both = lambda *x: for_each(scaled_rows, x[:1], x[1:3], x[3], by_vectors=True)  # noqa: E731
    alone, together = (jax.jit(jax.vmap(f))(table, number, keys, count) for f in (each, both))
    jax.tree.map(np.testing.assert_array_equal, together, alone)
    assert (np.asarray(alone[2])[0] > 0).any() and not alone[0][1, 3:].any()


def test_results_may_be_constants():
    found = jax.jit(lambda x: for_each(lambda _, row, real: {"x": row[0], "k": jnp.int32(3)}, (), (x,), 2))(jnp.ones(N))
    assert_same(found, {"x": np.array([1, 1, 0, 0, 0, 0]), "k": np.array([3, 3, 0, 0, 0, 0])})


def test_a_program_for_cuda_holds_the_search_as_a_kernel(monkeypatch):
    sources = []
    monkeypatch.setattr(kernels, "ptx_of", lambda source: sources.append(source) or "// of this test")
    traced = jax.jit(jax.vmap(run, in_axes=(None, 0, 0))).trace(2.0, NUMBERS[0], COUNTS[0])
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "__gpu$xla.gpu.ptx" in text
    assert len(sources) == 1
    assert "__global__ void pool" in sources[0]


def test_without_a_compiler_entries_go_side_by_side_with_a_warning(monkeypatch):
    def missing(_):
        raise CompilerMissing("none")

    monkeypatch.setattr(kernels, "ptx_of", missing)
    traced = jax.jit(run).trace(2.0, NUMBERS[0, 0], 3)
    function.warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="run by XLA instead, with the same results but slower: none"):
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "stablehlo.while" in text
