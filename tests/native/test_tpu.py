"""Programs for a TPU, seen without one: loops within kernels, steps of models by NumPy, and what is compiled."""

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

import jaxsim
from jaxsim.math.arrays import row_at, with_row
from jaxsim.native import pool
from jaxsim.native.stage import stage
from jaxsim.xla.loops import repeat, when
from tests.native.test_pool import COUNTS, NUMBERS, assert_same, expected, run, search
from tests.paths import MODELS
from validation.tpu_blocks import by_numpy

WORLDS = 5


@pytest.fixture(autouse=True)
def singles():
    with jax.enable_x64(False):
        yield


def assert_like_jax(function, *operands):
    """Exactly equal, for all worlds."""
    wanted = jax.jit(jax.vmap(function))(*operands)
    with by_numpy():
        found = jax.jit(jax.vmap(stage(lambda *x: function(*x))))(*operands)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)


NUMBER, VECTOR = (
    np.arange(WORLDS, dtype=np.int32),
    np.random.default_rng(2).integers(-9, 9, (WORLDS, 4)).astype(np.float32),
)


@pytest.mark.parametrize("length", [6, 40])
def test_loops_update_arrays_in_place_until_their_own_world_has_finished(length):
    """By loops within loops, at places that differ between worlds, also beyond the ends."""

    def function(i, x):
        def push(k, table):
            return with_row(with_row(table, (3 * i + k) % length, k + x[:3]), k % 4, x[1:])

        def turn(state):
            k, table, marks = state
            table = repeat((i + k) % 3, push, table)
            marks = lax.dynamic_update_slice(marks, x[:2] + marks[0], (length - 4 + i,))
            return k + 1, table, with_row(marks, k + 1, table[k, 0])

        start = jnp.int32(0), jnp.zeros((length, 3)), jnp.zeros(length)
        k, table, marks = lax.while_loop(lambda s: s[0] < 2 + i, turn, start)
        return k, table, marks, row_at(table, (7 * i) % length)

    assert_like_jax(function, NUMBER, VECTOR)


def test_arrays_that_are_read_again_keep_their_numbers():
    def function(i, x):
        def turn(k, state):
            old, new = state
            return new, with_row(new, (i + k) % 20, old[k] + x[0])

        return repeat(i, turn, (jnp.arange(20.0), jnp.zeros(20)))

    assert_like_jax(function, NUMBER, VECTOR)


def test_loops_within_branches_run_for_the_worlds_that_take_them():
    def function(i, x):
        halves = lax.while_loop(lambda s: s[0] > i, lambda s: (s[0] // 2, s[1] + 1), (jnp.int32(1000), jnp.int32(0)))
        some = when(i % 3 == 0, lambda: repeat(i, lambda k, y: with_row(y, k % 9, x[1]), jnp.zeros(9)))
        return *halves, some, lax.switch(i % 3, [lambda: x[0], lambda: x[1], lambda: 2 * x[2]])

    assert_like_jax(function, NUMBER, VECTOR)


@pytest.mark.parametrize("numbers", [10, 10_000])
@pytest.mark.parametrize("masked", [False, True])
def test_searches_in_blocks_of_worlds_give_what_they_give_one_by_one(monkeypatch, numbers, masked):
    """In one kernel, or in one for each entry; of the first entries, or of those in a mask."""
    monkeypatch.setattr(pool, "NUMBERS_AT_ONCE", numbers)
    number, count = NUMBERS[0] // 12, COUNTS[0]
    wanted = [expected(np.float32(2), *x) for x in zip(number, count, strict=True)]
    needed = np.arange(number.shape[1]) < count[:, None] if masked else count
    if masked:  # the last entries instead of the first
        number, needed = number[:, ::-1].copy(), needed[:, ::-1].copy()
        wanted = [jax.tree.map(lambda x: x[::-1], w) for w in wanted]
    with by_numpy():
        found = jax.jit(jax.vmap(partial(run, np.float32(2))))(number, needed)
    assert_same(found, jax.tree.map(lambda *x: np.stack(x), *wanted))


def test_entries_in_a_mask_are_searched_alike_on_other_platforms():
    mask = np.array([True, False, True, True, False, True])
    number = jnp.asarray(NUMBERS[0, 0])
    rows = number, jnp.ones((6, 2))
    shared = jnp.arange(5000, dtype=jnp.int32), jnp.float32(2), jnp.zeros(3)
    found = jax.jit(lambda mask: pool.for_each(search, shared, rows, mask))(mask)
    np.testing.assert_array_equal(found["steps"], np.where(mask, NUMBERS[0, 0], 0))


def test_a_program_for_a_tpu_searches_in_a_kernel():
    traced = jax.jit(jax.vmap(run, in_axes=(None, 0, 0))).trace(np.float32(2.0), NUMBERS[0], COUNTS[0])
    text = traced.lower(lowering_platforms=("tpu",)).as_text()
    assert text.count("tpu_custom_call") == 1 and "stablehlo.while" not in text


HULLS = """
<mujoco><asset><mesh name="rock" vertex="-.1 -.1 0 .12 -.1 0 .1 .13 0 -.1 .1 .02 0 .02 .15 .05 -.05 .12"/></asset>
<worldbody><geom type="box" size="1 1 .1" pos="0 0 -.1"/>
<body pos="0 0 .005"><freejoint/><geom type="mesh" mesh="rock"/></body>
<body pos=".05 0 .14"><freejoint/><geom type="mesh" mesh="rock"/></body></worldbody></mujoco>
"""


def assert_step_like_xla(m, d, of):
    """All but `of` worlds of a batch are equal, except for rounding: others are on the edge of another contact."""
    step = jax.vmap(jaxsim.step, in_axes=(None, 0))
    wanted = jax.jit(lambda m, d: step(m, d))(m, d)
    with by_numpy():
        found = jax.jit(lambda m, d: step(m, d))(m, d)
    assert np.asarray(wanted.ncon).max() > 0
    same = np.asarray(found.ncon) == np.asarray(wanted.ncon)
    for x, y in ((found.qvel, wanted.qvel), (found.contact.dist, wanted.contact.dist)):
        x, y = np.asarray(x), np.asarray(y)
        same &= np.all(np.abs(x - y) <= 1e-4 * np.abs(y).max(), axis=1)
    assert (~same).sum() <= of


def states(m, nworld, steps):
    rng, d = np.random.default_rng(0), jaxsim.make_data(m, nworld=nworld)
    d = d.replace(qvel=d.qvel + 0.3 * rng.normal(size=d.qvel.shape).astype(np.float32))
    d = d.replace(ctrl=d.ctrl + 0.2 * rng.normal(size=d.ctrl.shape).astype(np.float32))
    step = jax.jit(jax.vmap(jaxsim.step, in_axes=(None, 0)))
    for _ in range(steps):
        d = step(m, d)
    return d


@pytest.mark.slow
def test_a_step_with_hulls_by_numpy_is_that_of_xla():
    m = jaxsim.load_model(HULLS)
    assert_step_like_xla(m, states(m, 8, 10), of=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["humanoid", "quadruped", "hopper", "mesh_gripper"])
def test_steps_of_models_by_numpy_are_those_of_xla(name):
    m = jaxsim.load_model(MODELS / f"{name}.xml")
    assert_step_like_xla(m, states(m, 64, 60), of=2)


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


needs_compiler = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="compiles for a TPU: needs libtpu"
)


def compiled(program, *arguments):
    """The text that a Python program prints as JSON, run with settings for compiling ahead of time."""
    settings = {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "TPU_ACCELERATOR_TYPE": "v5litepod-4"}
    settings |= {"TPU_WORKER_HOSTNAMES": "localhost", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "JAX_ENABLE_X64": "0"}
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}  # libtpu refuses those of a CPU
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment | settings)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


PASSED_ON = """
import json, jax, jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding
from jaxsim.native.stage import stage
device = topologies.get_topology_desc("v5e:2x2", platform="tpu").devices[0]
x = jax.ShapeDtypeStruct((1024, 5), jnp.float32, sharding=SingleDeviceSharding(device))
last_two = lambda x: jax.lax.fori_loop(0, 3, lambda i, s: (s[1], x[i]), (jnp.float32(0), jnp.float32(1)))
print(json.dumps(jax.jit(jax.vmap(stage(last_two))).trace(x).lower(lowering_platforms=("tpu",)).compile().as_text()))
"""


@needs_compiler
def test_loops_that_pass_numbers_from_one_variable_to_another_compile():
    """Mosaic refused them where both begin as constants."""
    assert "tpu_custom_call" in compiled(PASSED_ON)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("name", sorted(path.stem for path in MODELS.glob("*.xml")))
def test_products_of_a_tpus_step_are_in_full_precision(name):
    lines = compiled(OFFLINE, str(MODELS / f"{name}.xml")).splitlines()
    products = [x for x in lines if " dot(" in x or " convolution(" in x]
    reals = [x for x in products if x.split(" = ")[1].startswith(("f32", "(f32"))]
    assert [x for x in reals if "operand_precision={highest,highest}" not in x] == []
    assert [x for x in lines if "bf16[" in x] == []
