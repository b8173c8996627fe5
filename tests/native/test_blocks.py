"""Blocks of worlds on a TPU: the kernels, interpreted on a CPU, and what a program for a TPU consists of."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.math.arrays import gather, row_at
from jaxsim.native import blocks, linalg
from jaxsim.native.blocks import kernel, program
from jaxsim.native.expressions import UnsupportedPrimitive
from jaxsim.native.jaxpr import BLOCKS, flatten, trace
from jaxsim.native.reading import functions, statements
from jaxsim.native.rows import over_rows, rows_in_use
from jaxsim.native.stage import stage

N, WORLDS = 5, 3
PENDULUM = """
<mujoco><option timestep="0.01"/><worldbody><body><joint name="hinge" axis="0 1 0" damping="0.1" range="-1 1"
limited="true"/><geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05"/></body></worldbody></mujoco>
"""


def in_blocks(function, *operands):
    """The results of a kernel and of JAX's operations."""
    with jax.enable_x64(False):
        return [
            [np.asarray(x) for x in jax.jit(jax.vmap(stage(function, form)))(*operands)] for form in ("blocks", "plain")
        ]


def assert_close(found, want, rtol):
    for x, y in zip(found, want, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol)


@pytest.fixture
def strict(monkeypatch):
    """What a kernel refuses is an error, not JAX's operations."""
    monkeypatch.setattr("jaxsim.native.function.UnsupportedPrimitive", KeyError)


def test_systems_of_equations_are_solved(strict):
    r = np.random.default_rng(0)
    a = r.normal(size=(WORLDS, N, N)).astype(np.float32)
    positive = a @ a.swapaxes(1, 2) + np.eye(N, dtype=np.float32)
    b = r.normal(size=(WORLDS, N, 2)).astype(np.float32)

    def solutions(positive, a, b):
        factor = linalg.cholesky(positive)
        lower = linalg.solve_triangular(factor, b)
        upper = linalg.solve_triangular(factor, lower, transpose_a=True)
        return [factor, lower, upper, linalg.solve_positive(positive, b[:, 0]), linalg.solve(a, b)]

    assert_close(*in_blocks(solutions, positive, a, b), 3e-5)  # float32, condition numbers up to 84


def test_loops_end_for_each_world_and_rows_in_use_are_summed(strict):
    x = np.arange(1, 3 * WORLDS + 1, dtype=np.float32).reshape(WORLDS, 3)

    def function(x):
        halved = jax.lax.while_loop(lambda s: s[0] > 1.5, lambda s: (s[0] / 2, s[1] + 1), (x[2], jnp.int32(0)))
        used = rows_in_use((x > 3) & (np.arange(3) != 1))  # no world uses the second row
        rows, total = over_rows(lambda s, row: (row * s, jnp.sum(row, 0)), used, x[0], jnp.where(used.present, x, 0))
        taken = x[jnp.clip(halved[1], 0, 2)]
        return [*halved, jnp.where(used.present, rows, 0), total, taken, jnp.sort(x)[::-1]]

    assert_close(*in_blocks(function, x), 1e-6)


def test_rows_at_indices_of_worlds_are_read_without_a_copy_of_their_table():
    table, i = np.zeros((400, 3), np.float32), np.zeros(2, np.int32)
    with jax.enable_x64(False):
        flat = flatten(trace(lambda t, i: [row_at(t, i[0]), gather(t, i)], [table, i]), BLOCKS)
    for worlds in ([False, True], [True, True]):
        p = program(flat, worlds)
        assert p.size + sum(p.shared_sizes) <= 3  # a row


def test_a_step_for_a_tpu_is_one_kernel():
    with jax.enable_x64(False):
        m = jaxsim.load_model(PENDULUM)
        d = jax.tree.map(lambda x: jax.ShapeDtypeStruct((2048, *x.shape), x.dtype), jaxsim.make_data(m))
        step = jax.jit(jax.vmap(partial(jaxsim.step, m))).trace(d).lower(lowering_platforms=("tpu",)).as_text()
    assert step.count("tpu_custom_call") == 1


def of_two(x, y):
    """Two sums of the running sums of 60 numbers."""
    return jnp.sum(jnp.sin(jnp.cumsum(x))) + jnp.sum(jnp.cos(jnp.cumsum(y)))


@pytest.mark.parametrize(("numbers", "kernels"), [(1000, 1), (150, 2), (100, 2)])
def test_parts_of_a_function_that_does_not_fit_are_kernels(monkeypatch, strict, numbers, kernels):
    """The memory of a core holds so many numbers of a world; operations that need more are JAX's."""
    monkeypatch.setattr(blocks, "MOST_BYTES", numbers * blocks.BYTES)
    x, y = np.random.default_rng(0).normal(size=(2, WORLDS, 60)).astype(np.float32)
    with jax.enable_x64(False):
        text = jax.jit(jax.vmap(stage(of_two))).trace(x, y).lower(lowering_platforms=("tpu",)).as_text()
    assert text.count("tpu_custom_call") == kernels
    assert_close(*in_blocks(lambda x, y: [of_two(x, y)], x, y), 1e-5)


@pytest.mark.parametrize(
    ("function", "message"), [(jnp.cbrt, "cbrtf on a TPU"), (lambda x: x.astype(np.int8), "type int8 on a TPU")]
)
def test_what_a_tpu_lacks_is_refused_by_name(function, message):
    with pytest.raises(UnsupportedPrimitive, match=message):
        p = program(flatten(trace(function, [np.zeros(3, np.float32)]), BLOCKS), [True])
        kernel(p, [(3,)], 2, [jnp.zeros((2, 3), jnp.float32)], True)


def test_statements_are_read_with_the_precedence_of_c():
    (assigned, repeated) = statements(
        ["LET(int, a, 1 + b * 2 < c || !d && e == -3);", "RANGE(i, 1, n) PUT(x, i, 0.5f);"]
    )
    left = ("<", ("+", 1, ("*", ("name", "b"), 2)), ("name", "c"))
    right = ("&&", ("unary!", ("name", "d")), ("==", ("name", "e"), ("unary-", 3)))
    assert assigned == ("call", "LET", [("name", "int"), ("name", "a"), ("||", left, right)])
    store = ("call", "PUT", [("name", "x"), ("name", "i"), 0.5])
    assert repeated == ("each", "i", 1, ("name", "n"), [store])


def test_functions_are_read_with_their_parameters():
    found = functions("/* solves */\nFUNCTION void solve(int n, const T* a) {\n  EACH(i, n) PUT(a, i, 0);\n}\n")
    ((parameters, body),) = found.values()
    assert parameters == ["n", "a"] and body[0][:4] == ("each", "i", 0, ("name", "n"))
