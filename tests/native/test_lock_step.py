"""Functions of one entry in lock step: the numbers of `vmap`, without its gathers and scatters."""

import importlib.util
import json
import os
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsim.math.arrays import gather, row_at, with_row
from jaxsim.native import pool
from jaxsim.native.lock_step import LANES, Each, in_lock_step, rows_of
from jaxsim.xla.loops import repeat, when
from tests.native.test_pool import COUNTS, NUMBERS, assert_same, expected, no_c_compiler, run  # noqa: F401
from tests.paths import MODELS

N = 300
ROWS = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)  # more than are compared one by one
WORDS = np.random.default_rng(1).integers(-(2**30), 2**30, 300).astype(np.int32)


def assert_like_vmap(function, *operands):
    """Exactly equal, for all entries."""
    wanted = jax.tree.leaves(jax.jit(jax.vmap(function))(*operands))
    closed = jax.make_jaxpr(function)(*(x[0] for x in operands))
    rows = rows_of(N)

    def laid_out(x):
        x = jnp.pad(jnp.moveaxis(x, 0, -1), [(0, 0)] * (x.ndim - 1) + [(0, rows * LANES - N)])
        return x.reshape(*x.shape[:-1], rows, LANES)

    real = laid_out(jnp.ones(N, bool))
    found = jax.jit(lambda *x: in_lock_step(closed, [Each(laid_out(y)) for y in x], real))(*operands)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.moveaxis(x.reshape(*x.shape[:-2], -1)[..., :N], -1, 0), y)


NUMBER, VECTOR = np.arange(N, dtype=np.int32), np.random.default_rng(2).normal(size=(N, 4)).astype(np.float32)


def test_rows_of_tables_and_of_an_entrys_own_arrays_at_indices_that_differ():
    def function(i, x):
        small = row_at(jnp.asarray(ROWS[:9]), i % 9), row_at(x, i % 4)
        block = lax.dynamic_slice(jnp.asarray(WORDS), (i,), (3,))  # the last ones reach beyond the end
        return *small, block, row_at(jnp.asarray(ROWS), i), gather(jnp.asarray(WORDS), jnp.stack([i, 299 - i]))

    assert_like_vmap(function, NUMBER, VECTOR)


def test_loops_of_a_length_that_differs_write_rows_where_they_say():
    def function(i, x):
        def body(k, state):
            table, n = state
            row = row_at(jnp.asarray(ROWS), (7 * i + k) % 300)
            return with_row(table, n % 5, row), n + 1 + (row[0] > 0)

        return repeat(i % 7, body, (jnp.zeros((5, 3)), jnp.int32(0))), repeat(2, lambda k, s: s + x[k], x[0])

    assert_like_vmap(function, NUMBER, VECTOR)


def test_branches_and_loops_that_end_for_each_entry_by_itself():
    def function(i, x):
        halves = lax.while_loop(lambda s: s[0] > i, lambda s: (s[0] // 2, s[1] + 1), (jnp.int32(1000), jnp.int32(0)))
        some = when(i % 3 == 0, lambda: repeat(i % 4, lambda k, y: y + x[1], x[0]))
        _, seen = lax.scan(lambda s, k: (s + x[0], s * k), x[1], jnp.arange(3.0))
        return *halves, some, seen, lax.switch(i % 3, [lambda: x[0], lambda: x[1], lambda: 2 * x[2]])

    assert_like_vmap(function, NUMBER, VECTOR)


def test_the_first_of_equal_extremes_and_what_is_not_a_number():
    x = np.round(VECTOR)
    x[:50, 1] = np.nan
    assert_like_vmap(lambda x: (jnp.argmax(x), jnp.argmin(x), jnp.argmax(x > 0)), x)


def test_what_has_no_rule_goes_by_vmap():
    assert_like_vmap(lambda i, x: (jnp.sort(x), x.at[i % 4].add(1.0)), NUMBER, VECTOR)


@pytest.mark.parametrize("part", [1, 1000])
def test_searches_of_all_worlds_in_lock_step_give_what_they_give_one_by_one(monkeypatch, part):
    """Entries of all worlds together, or first the first ones of all, then the second ones."""
    monkeypatch.setattr(pool, "LOCK_STEP", part)
    monkeypatch.setattr(pool, "LOCK_STEP_PART", part)
    monkeypatch.setitem(pool.POOL.programs, "cpu", pool.POOL.programs["tpu"])
    found = jax.jit(jax.vmap(partial(run), in_axes=(None, 0, 0)))(2.0, NUMBERS[0], COUNTS[0])
    wanted = [expected(np.float32(2), *x) for x in zip(NUMBERS[0], COUNTS[0], strict=True)]
    assert_same(found, jax.tree.map(lambda *x: np.stack(x), *wanted))


def test_a_program_for_a_tpu_searches_without_gathers_and_scatters():
    traced = jax.jit(jax.vmap(partial(run), in_axes=(None, 0, 0))).trace(2.0, NUMBERS[0], COUNTS[0])
    text = traced.lower(lowering_platforms=("tpu",)).as_text()
    assert "stablehlo.while" in text and "gather" not in text and "scatter" not in text


OFFLINE = """
import json, sys, jax, jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding
import jaxsim
device = topologies.get_topology_desc("v5e:2x2", platform="tpu").devices[0]
m = jaxsim.load_model(sys.argv[1])
like = lambda x: jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x), sharding=SingleDeviceSharding(device))
m, d = jax.tree.map(like, (m, jaxsim.make_data(m, nworld=256)))
step = jax.jit(jax.vmap(jaxsim.step, in_axes=(None, 0)))
print(json.dumps(step.trace(m, d).lower(lowering_platforms=("tpu",)).compile().as_text()))
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="compiles for a TPU: needs libtpu")
@pytest.mark.parametrize("name", sorted(path.stem for path in MODELS.glob("*.xml")))
def test_products_of_a_tpus_step_are_in_full_precision(name):
    settings = {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "TPU_ACCELERATOR_TYPE": "v5litepod-4"}
    settings |= {"TPU_WORKER_HOSTNAMES": "localhost", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "JAX_ENABLE_X64": "0"}
    command = [sys.executable, "-W", "ignore", "-c", OFFLINE, str(MODELS / f"{name}.xml")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=os.environ | settings)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = json.loads(done.stdout.splitlines()[-1]).splitlines()
    products = [x for x in lines if " dot(" in x or " convolution(" in x]
    reals = [x for x in products if x.split(" = ")[1].startswith(("f32", "(f32"))]
    assert [x for x in reals if "operand_precision={highest,highest}" not in x] == []
    assert [x for x in lines if "bf16[" in x] == []
