"""C source of jaxprs, compiled for this machine by its C compiler: the numbers that JAX gives."""

import ctypes
import inspect
import re
import shutil
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxsim
from jaxsim.engine.collision import driver
from jaxsim.math.arrays import entry_at, row_at, with_entry, with_row
from jaxsim.native import c_source, pool
from jaxsim.native.c_source import ONE_LANE, c_function
from jaxsim.native.expressions import UnsupportedPrimitive
from jaxsim.native.pool_kernel import KernelSearch, pool_source

COMPILER = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(
    COMPILER is None, reason="runs the C source on this machine: needs a C compiler (cc), which jaxsim itself does not"
)
X = np.linspace(-2.0, 3.0, 30).reshape(10, 3)


def compiled(source, folder):
    (folder / "f.c").write_text(source)
    command = [COMPILER, "-O1", "-std=c99", "-w", "-ffp-contract=off", "-shared", "-fPIC", "f.c", "-o", "f.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "f.so"))


def call(function, *arrays):
    function(*[x.ctypes.data_as(ctypes.c_void_p) for x in arrays])


def sum_of_rows(x):
    def add(i, state):
        total, seen = state
        return total + row_at(x, i), with_row(seen, i, jnp.sum(row_at(x, i)))

    total, seen = lax.fori_loop(0, 10, add, (jnp.zeros(3), jnp.zeros(40)))
    return jnp.concatenate([total, seen])


def swapped_in_a_loop(x):
    return jnp.concatenate(lax.fori_loop(0, 3, lambda _, s: (s[1], s[0] + 1), (x, 2 * x)))


def kept_and_changed(x):
    y = 2 * x
    changed = with_row(y, 4, x[0])
    return jnp.stack([changed, y, with_row(changed, 5, x[1])])


def branches(x):
    big, small = lax.cond(x[0, 0] < 0, lambda: (with_row(x, 2, -x[3]), x[1]), lambda: (x, x[2]))
    return jnp.concatenate([big.reshape(-1), small, lax.switch(2, [lambda: x[4], lambda: x[5], lambda: x[6]])])


def either_branch_changes(x):
    """In a loop, an array that one branch changes and the other hands on, with no copy of its own."""

    def visit(i, y):
        return lax.cond(row_at(y, i)[0] < 0, lambda: with_row(y, i, row_at(y, 9 - i)), lambda: with_row(y, 0, y[i]))

    return lax.fori_loop(0, 10, visit, jnp.concatenate([x, -x])[5:15])


def small_in_large(x):
    """Entries of small arrays, of the axes that loops run over and of those that are written out."""
    rotation, column = x[:3], x[:, :1]
    turned = jnp.sum(rotation[None] * x[:, None], axis=-1)
    return jnp.concatenate([turned, column * x, x[:4] @ rotation, jnp.broadcast_to(x[5], x.shape), x[::-1] @ rotation])


def scans(x):
    last, sums = lax.scan(lambda c, r: (c + r, c * r), x[0], x, reverse=True)
    return jnp.concatenate([last, sums.reshape(-1)])


def reductions(x):
    parts = [x.sum(0), x.max(1), x.min(0), jnp.cumsum(x, axis=0).reshape(-1), (x[:4] @ x[0]), x.T[::-1].reshape(-1)]
    found = [jnp.argmax(x[3]), jnp.argmin(x[3]), jnp.any(x > 2), jnp.all(x > 2)]
    return jnp.concatenate([*parts, jnp.stack([y.astype(float) for y in found])])


def arithmetic(x):
    y = jnp.abs(x) + 0.5
    parts = [jnp.sqrt(y), x / y, jnp.sign(x), jnp.floor(x), jnp.maximum(x, 0.3), x**3, x**-2, jnp.where(x > 1, x, y)]
    parts += [jnp.exp(x), jnp.arctan2(x, y), x % 0.7, jnp.clip(x, -1, 1), (x.astype(int) // 2).astype(float)]
    return jnp.stack(parts)


def gathers(x):
    index = jnp.array([3, 9, -1])
    beyond = x.at[jnp.array([2, 40])].get(mode="fill", fill_value=np.nan)
    return jnp.concatenate([x[index].reshape(-1), beyond.reshape(-1), x[:, jnp.array([2, 0])].reshape(-1)])


def sorts(x):
    """By two keys, equal rows as they are, NaN last; one row in order already."""
    first, place = jnp.round(x).at[4].set(np.nan).T, jnp.broadcast_to(jnp.arange(10.0), (3, 10))
    found = [*lax.sort((first, -jnp.cos(9 * x.T), place), num_keys=2), lax.sort((first % 2, place), num_keys=1)[1]]
    return jnp.concatenate([jnp.nan_to_num(y, nan=-9).reshape(-1) for y in found])


def small_arrays_written_at_run_time(x):
    """Bins of a loop, in branches too, beside an array that starts with any numbers and is larger than the stack's."""

    def visit(i, state):
        bins, seen = state
        k = jnp.abs(entry_at(x, i, 0)).astype(jnp.int32)
        bins = lax.cond(k > 0, lambda b: with_entry(b, k, entry_at(b, k) + 1), lambda b: b, bins)
        return bins, with_entry(seen, i, entry_at(bins, k))

    bins, seen = lax.fori_loop(0, 10, visit, (jnp.zeros(4), lax.empty((4000,), x.dtype)))
    return jnp.concatenate([bins, seen[:10]])


@needs_compiler
@pytest.mark.parametrize(
    "function",
    [
        *(sum_of_rows, swapped_in_a_loop, kept_and_changed, branches, either_branch_changes, small_in_large),
        *(scans, reductions, arithmetic, gathers, sorts, small_arrays_written_at_run_time),
    ],
)
def test_source_computes_what_the_function_does(function, tmp_path):
    closed = jax.make_jaxpr(function)(X)
    want = np.asarray(jax.jit(function)(X))
    source = ONE_LANE + c_function("f", closed).replace("FUNCTION", "")
    found = np.zeros_like(want)
    call(compiled(source, tmp_path).f, X.copy(), found)
    np.testing.assert_allclose(found, want, rtol=1e-14, atol=1e-15)  # other rounding of fused products


def test_a_loop_whose_branches_change_or_keep_an_array_does_not_copy_it():
    closed = jax.make_jaxpr(either_branch_changes)(X)
    source = c_function("f", closed)
    within = source[source.index("for (INDEX") :]
    assert within.count("EACH") == 0  # it lies where the result shall; rows are written out


def test_small_arrays_that_a_loop_writes_at_run_time_lie_in_memory():
    source = c_function("f", jax.make_jaxpr(small_arrays_written_at_run_time)(X))
    within = source[source.index("for (INDEX") :]
    assert within.count("set_float64(true") == 2  # the bins in their branch, and what is seen
    assert "EACH(" not in within[: within.index("out0")]  # no copies
    assert source.count("_memory") == 2  # the large array is found once


@needs_compiler
def test_large_arrays_belong_to_the_call(tmp_path, monkeypatch):
    monkeypatch.setattr(c_source, "MOST_ON_STACK", 64)
    monkeypatch.setattr(c_source, "MOST_OF_THREAD", 128)  # bytes of 40 rows: more
    twice = lambda x: 2 * sum_of_rows(x)  # noqa: E731  (a result itself needs no other memory)
    source = ONE_LANE + c_function("f", jax.make_jaxpr(twice)(X))
    name = re.search(r"double\* __restrict__ const (\w+) = allocated\(320\);", source).group(1)
    assert f"free({name});" in source
    want, got = np.asarray(twice(X)), np.zeros(43)
    call(compiled(source.replace("FUNCTION void f(", "void f("), tmp_path).f, X, got)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-14)


def test_a_primitive_without_source_is_named():
    closed = jax.make_jaxpr(lambda x: lax.cumlogsumexp(x, axis=0))(X)
    with pytest.raises(UnsupportedPrimitive, match="cumlogsumexp"):
        c_function("f", closed)


SCENE = """<mujoco><option><flag nativeccd="{native}"/></option>
<asset><mesh name="m" vertex="0 0 0  .2 0 0  0 .2 0  0 0 .2  .15 .15 .1"/>
<hfield name="h" nrow="5" ncol="5" size="1 1 .1 .1"/></asset><worldbody>
{floor}<body pos="0 0 {z}"><freejoint/><geom type="mesh" mesh="m"/></body>
<body pos=".1 .05 {z}"><freejoint/><geom type="{kind}" size=".1 .1 .1"/></body></worldbody></mujoco>"""


@needs_compiler
@pytest.mark.parametrize(
    ("kind", "floor", "native"),
    [
        pytest.param("box", "", "enable", marks=pytest.mark.slow),
        ("cylinder", '<geom type="plane" size="1 1 1"/>', "disable"),
        pytest.param("capsule", '<geom type="hfield" hfield="h"/>', "enable", marks=pytest.mark.slow),
    ],
)
def test_kernels_of_collisions_find_what_xla_finds(kind, floor, native, tmp_path, monkeypatch):
    monkeypatch.setattr(jaxsim.native.compiler, "c_compiler", lambda: None)  # the pool is XLA's
    m = jaxsim.load_model(SCENE.format(kind=kind, floor=floor, native=native, z=0.05))
    d = jaxsim.com_pos(m, jaxsim.kinematics(m, jaxsim.make_data(m)))
    seen, bind = [], pool.POOL.primitive.bind

    def spy(*operands, plan, **params):
        found = bind(*operands, plan=plan, **params)
        note = lambda one, *numbers: seen.append(([np.array(x) for x in numbers], plan, np.array(one)))  # noqa: E731
        jax.debug.callback(note, found[0], *operands)
        return found

    monkeypatch.setattr(pool.POOL.primitive, "bind", spy)
    monkeypatch.setattr(driver, "entries_in_sequence", lambda m, x, geom, kind, groups, plain: plain(x, geom, kind))
    jax.block_until_ready(jax.jit(inspect.unwrap(driver.collision))(m, d))
    jax.effects_barrier()
    assert any(operands[-1].any() for operands, *_ in seen)
    for (*leaves, count), plan, one in seen:
        s = pool.kernel_search(plan, (True,) * (len(leaves) + 1), [*leaves, count])
        leaves, want, count = [x[None] for x in leaves], one[None], count[None]
        library = compiled(pool_source(s, len(count), want.shape[1]), tmp_path)
        found = np.ones_like(want)
        call(library.pool, *leaves, count.astype(np.int32), found)
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-9)
        tmp_path = tmp_path / "next"
        tmp_path.mkdir()


@needs_compiler
def test_a_kernel_searches_the_first_entries_of_each_world(tmp_path):
    counts = np.array([0, 2, 0, 0, 3, 1, 0], np.int32)
    one = jax.ShapeDtypeStruct((), np.float64)
    s = KernelSearch(lambda x, _: jnp.stack([x[0] * 2, x[1]]), [one, one], ["entry", "world"])
    x, own, found = np.arange(21.0), np.arange(7.0), np.ones((7, 3, 2))
    call(compiled(pool_source(s, 7, 3), tmp_path).pool, x, own, np.cumsum(counts, dtype=np.int32), found)
    want = np.stack([x.reshape(7, 3) * 2, np.repeat(own, 3).reshape(7, 3)], axis=2)
    np.testing.assert_array_equal(found, np.where(np.arange(3)[:, None] < counts[:, None, None], want, 0))
