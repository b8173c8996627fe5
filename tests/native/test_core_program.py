"""Functions of one world as programs of one core."""

import re
import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxsim
from jaxsim.engine.step.forward import step_by_stages
from jaxsim.native import compiler, sums, vectors
from jaxsim.native.c_source import function_units
from jaxsim.native.compute import has_large_matrices, is_known
from jaxsim.native.core_program import COPIES, core_program
from jaxsim.native.function import choices_of
from jaxsim.native.jaxpr import CORE, MOST_CONSTANTS, flatten
from jaxsim.native.segments import tables_apart
from jaxsim.native.stage import FEWEST_COPIED, copying_state, stage
from jaxsim.native.sums import sums_in_order
from tests.paths import MODELS

pytestmark = pytest.mark.skipif(compiler.c_compiler() is None, reason="no C compiler (cc), whose code this runs")
PENDULUM = """<mujoco><worldbody><body><joint axis="0 1 0" limited="true" range="-10 10"/>
<geom size=".1" pos="0 0 -1"/></body></worldbody></mujoco>"""


def compiled(function, *args, **options):
    return jax.jit(core_program(function, **options)).lower(*args).compile()


def text_of(function, *args, **options) -> str:
    return compiled(function, *args, **options).as_text() or ""


def assert_same(function, *args):
    for found, wanted in zip(
        jax.tree.leaves(compiled(function, *args)(*args)), jax.tree.leaves(jax.jit(function)(*args)), strict=True
    ):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)


def mixed(x, i):
    a = x @ x.T + 4 * jnp.eye(4)
    total, parts = lax.scan(lambda c, row: (c + row.sum(), c * row), 1.0, x)
    row = lax.dynamic_index_in_dim(x, i, keepdims=False)  # moved inside
    found = lax.while_loop(lambda s: s[1] < 3, lambda s: (jnp.tanh(s[0]), s[1] + 1), (row, 0))
    return {"solved": jnp.linalg.solve(a, x), "scan": (total, parts), "row": found, "best": jnp.argmax(x)}


def test_a_program_gives_the_functions_numbers():
    assert_same(mixed, jnp.sin(jnp.arange(16.0).reshape(4, 4)), 7)


def test_products_of_matrices_are_sums_by_rows():
    """Of 20 terms: two passes over a row. A matrix and its transpose are read from memory, not computed twice."""
    x, y = (jnp.sin(jnp.arange(20.0 * n)).reshape(20, n) for n in (18, 21))

    def function(x, y):
        product = x.T @ y
        square = product[:, :18] + 1
        return product, 0.5 * (square + square.T)

    assert_same(function, x, y)


@pytest.mark.parametrize(("other", "dtype", "kind"), [((50,), "float32", "float"), ((7, 50), "float64", "double")])
def test_products_of_long_rows_are_those_of_vectors(other, dtype, kind):
    """Rows of 50 terms: vectors of four or eight, and two more; both operands are made by the program."""
    x, y = (jnp.sin(jnp.arange(np.prod(n), dtype=dtype)).reshape(n) for n in ((6, 50), other))

    def function(x, y):
        return jnp.tensordot(jnp.cumsum(x, 0), jnp.cumsum(y, 0), (-1, -1))

    assert_same(function, x, y)
    assert f"dot_{kind}(" in "".join(function_units("world", flatten(jax.make_jaxpr(function)(x, y), CORE)))


def test_large_constants_that_are_mostly_zeros_are_sums_of_the_other_entries():
    """Sums over pairs of neighbours: a matrix of 10,000 numbers, of which 199 are written."""
    pairs = np.eye(100, dtype=np.float32) + np.eye(100, k=1, dtype=np.float32)
    dense = np.sin(np.arange(100.0 * 100, dtype=np.float32)).reshape(100, 100)

    def function(x):
        return pairs @ x, dense @ x

    x = jnp.cos(jnp.arange(100.0 * 6)).reshape(100, 6)
    assert_same(function, x)
    flat, tables = tables_apart(flatten(jax.make_jaxpr(function)(x), CORE), CORE)
    assert len(tables) == 1 and tables[0].shape == dense.shape and len(flat.inputs) == 2


@pytest.mark.parametrize(("n", "is_large"), [(20, False), (300, True)])
def test_large_matrices_are_left_to_a_library(n, is_large):
    def function(x):
        return jnp.linalg.cholesky(x @ x.T + 4 * n * jnp.eye(n))

    assert has_large_matrices(flatten(jax.make_jaxpr(function)(jnp.ones((n, n))), CORE).operations) == is_large
    assert ("jaxsim_" in text_of(function, jnp.ones((n, n)))) != is_large


@pytest.mark.parametrize("name", ["rope_bridge", "soft_gripper"])
def test_a_step_of_flexes_is_a_program(name):
    """XLA has calls, which compute what follows from the model alone and the step, and the shapes of their operands."""
    m = jaxsim.load_model(MODELS / f"{name}.xml")
    text = jax.jit(jaxsim.step).lower(m, jaxsim.make_data(m)).as_text()
    assert set(re.findall(r"stablehlo\.(\w+)", text)) <= {"custom_call", "broadcast_in_dim", "reshape", "constant"}


def test_constants_are_constants_within_loops():
    """Sums over a chain of bodies: each is the one before it and an entry, in a loop over directions as well."""
    chain = np.tri(15, dtype=np.float32)

    def function(x):
        of = lambda k: chain @ (k * x)  # noqa: E731
        return lax.scan(lambda c, k: (c, of(k)), 0.0, jnp.arange(1.0, 4.0))[1]

    x = jnp.cos(jnp.arange(90.0)).reshape(15, 6)
    assert_same(function, x)
    products = []

    def spied(w, op, operands, target):
        products.append(found := sums_in_order(w, op, operands, target))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "sums_in_order", spied)
        function_units("f", flatten(jax.make_jaxpr(function)(x), CORE))
    assert len(products) == 1 and products[0] is not None


def test_what_c_does_not_know_is_an_operation_of_jax():
    def function(x):
        loop = lambda _, y: jnp.real(jnp.fft.ifft(2 * jnp.fft.fft(jnp.sin(y))))  # noqa: E731
        return lax.fori_loop(0, 3, loop, jnp.cos(x)) + 1

    x = jnp.arange(8.0)
    assert_same(function, x)
    assert "jaxsim_" in text_of(function, x)


def test_a_function_of_some_entries_is_an_operation_of_jax():
    """JAX writes it as a scatter of nothing, with that function as a parameter."""
    assert_same(lambda x: 2 * x.at[jnp.array([1, 4])].apply(jnp.sin), jnp.arange(6.0))


def test_keys_of_random_numbers_pass_through():
    def function(key, x):
        key, other = jax.random.split(key)
        return jax.random.key_data(key), 2 * jax.random.uniform(other, (3,)) + x

    assert_same(function, jax.random.key(3), jnp.ones(3))


def test_results_that_are_arguments_are_those_arguments():
    seen = []

    def function(x, y):
        seen.append(core_program(lambda x, y: (y, x + 1, x))(x, y))
        assert seen[0][0] is y
        assert seen[0][2] is x
        return seen[0]

    jax.jit(function)(jnp.ones(2), jnp.zeros(3))


def test_large_tables_are_arguments_of_the_program():
    table = np.arange(MOST_CONSTANTS + 1.0, dtype=np.float32)
    assert_same(lambda i: jnp.asarray(table)[i] * 2, jnp.asarray([3, MOST_CONSTANTS]))


def test_a_step_of_one_world_is_one_call():
    m = jaxsim.load_model(PENDULUM)
    d = jaxsim.make_data(m)
    text = text_of(jaxsim.step, m, d)
    assert text.count(" custom-call(") == 1
    assert " fusion(" not in text


def test_a_batch_below_a_vector_is_the_program_of_one_world():
    """With a model that differs between worlds, and its gradient."""
    m = jaxsim.load_model(PENDULUM)
    d, scale = jaxsim.make_data(m), jnp.array([0.5, 1.0, 2.0])
    qvel = jnp.array([[0.1], [0.2], [0.3]])

    def of(step):
        one = lambda s, v: step(m.replace(body_mass=s * m.body_mass), d.replace(qvel=v)).qvel  # noqa: E731
        loss = lambda s, v: jnp.sum(jax.vmap(one)(s, v) ** 2)  # noqa: E731
        return jax.jit(jax.value_and_grad(loss, (0, 1)))

    choices = choices_of(lambda: of(jaxsim.step).lower(scale, qvel))
    assert choices and all(choice.cause is None for choice in choices)
    got, want = (jax.tree.leaves(of(step)(scale, qvel)) for step in (jaxsim.step, step_by_stages))
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def test_a_loop_of_steps_is_one_call_beside_one_that_copies_the_state():
    """XLA hands out work to other threads, and waits for them, if a loop's body has more than eight operations."""
    m = jaxsim.load_model(PENDULUM)
    loop = jax.jit(lambda m, d: lax.fori_loop(0, 3, lambda _, d: jaxsim.step(m, d), d))
    text = loop.lower(m, jaxsim.make_data(m)).compile().as_text()
    (body,) = (part for part in re.split(r"\n(?=[%E])", text) if "custom-call(" in part and part[0] == "%")
    assert body.count("custom-call(") == 2
    assert len(re.findall(r" (?:copy|fusion)\(", body)) <= 3


def test_handlers_with_attributes_are_not_called_from_c():
    shape = jax.ShapeDtypeStruct((2,), np.float32)
    call = jax.ffi.ffi_call("jaxsim_0", shape)
    plain, named = (flatten(jax.make_jaxpr(f)(shape), CORE).operations for f in (call, lambda x: call(x, size=3)))
    assert [is_known(op, CORE) for op in (*plain, *named)] == [True, False]


def test_the_backend_xla_has_no_programs_of_ours():
    texts = [text_of(jnp.sin, jnp.ones(3), backend=b) for b in (jaxsim.Backend.AUTO, jaxsim.Backend.XLA)]
    assert ["jaxsim_" in text for text in texts] == [True, False]


def test_a_product_with_an_empty_constant_matrix_is_that_of_jax():
    assert_same(lambda x: jnp.concatenate([np.zeros((0, 3)) @ jnp.cos(x), jnp.sin(x)]), jnp.ones(3))


def test_entries_of_a_batched_loop_stop_one_by_one():
    def function(x, most):
        one = lambda x, most: lax.while_loop(lambda s: s[0] < most, lambda s: (s[0] + 1, s[1] * x), (0, x))[1]  # noqa: E731
        return jax.vmap(one)(x, most)

    assert_same(function, 1 + jnp.arange(12.0).reshape(4, 3) / 10, jnp.array([1, 4, 0, 2]))


@pytest.mark.parametrize("form", ["core", "batches"])
def test_a_batch_of_large_functions_is_the_program_of_one_world(monkeypatch, form):
    """As those of stages with this form, or with more numbers than a vector of worlds may have."""
    monkeypatch.setattr(vectors, "MOST_NUMBERS", 10)
    x = jnp.sin(jnp.arange(20 * 12.0)).reshape(20, 3, 4)
    function = lambda y, x: jnp.cumsum(jnp.sin(x @ x.T), 1) * y  # noqa: E731
    batch = jax.jit(jax.vmap(stage(function, form), (None, 0)))
    text = batch.lower(2.0, x).compile().as_text() or ""
    assert "jaxsim_" in text and not re.search(r"\b(dot|sine|reduce-window)\(", text)
    np.testing.assert_allclose(batch(2.0, x), jax.vmap(function, (None, 0))(2.0, x), rtol=2e-5, atol=1e-6)
    loss = lambda f: jax.jit(jax.grad(lambda x: (jax.vmap(f, (None, 0))(2.0, x) ** 2).sum()))  # noqa: E731
    np.testing.assert_allclose(loss(stage(function, form))(x), loss(function)(x), rtol=1e-4, atol=1e-5)


def loops_in(function, *args) -> int:
    """Number of loops over 40 rows of the program of a function."""
    flat = flatten(jax.make_jaxpr(function)(*args), CORE)
    return sum(unit.count(", 40) {") for unit in function_units("f", flat))


def test_loops_over_the_same_rows_are_joined():
    """Products that several sums read are stored by one loop with the sums, and no array of them is left."""

    def turned(q):
        a, b = q[:, 0] * q[:, 1], q[:, 2] * q[:, 3]
        return jnp.sin(a + b), jnp.cos(a - b)

    q = jnp.sin(jnp.arange(160.0)).reshape(40, 4)
    assert loops_in(turned, q) == 1
    assert_same(turned, q)


def test_a_loop_that_reads_other_rows_of_the_one_before_is_not_joined():
    def shifted(x):
        a = jnp.sin(x) * x
        b = a[::-1] * a
        return a, b, jnp.cos(b) + b[::-1]

    x = jnp.arange(40.0)
    assert loops_in(shifted, x) == 3
    assert_same(shifted, x)


def test_a_loop_that_overwrites_what_the_one_before_reads_is_not_joined():
    """Rows are replaced in place, one further than the loop before has read them."""

    def replaced(x):
        y = jnp.sin(x) * x
        z = jnp.exp(y)
        return lax.dynamic_update_slice(y, z[:39] + 1, (1,)), z

    assert_same(replaced, jnp.linspace(0.0, 2.0, 40))


def test_a_loop_that_reads_a_result_whose_part_the_one_before_writes_is_not_joined():
    """Two arrays are joined in the memory of a result, which the next loop reads from its end."""

    def reversed_rows(x):
        y = jnp.concatenate([x[:1], jnp.sin(x) * x])
        return y, jnp.cos(y[:0:-1]) * x

    assert_same(reversed_rows, jnp.linspace(0.0, 2.0, 40))


def test_only_functions_whose_c_is_refused_run_by_xla(monkeypatch):
    """Their compiler ends while the step around them is written."""
    m = jaxsim.load_model(PENDULUM)
    d = jaxsim.make_data(m)
    wanted = jaxsim.step(m, d)
    run = subprocess.run

    def refusing(command, **options):
        source = Path(command[-3]) if "-c" in command else None
        if source and "* steps = argument(" in source.read_text():  # whether it has worlds: a function of a step
            return subprocess.CompletedProcess(command, 1, "", "this is a test")
        return run(command, **options)

    monkeypatch.setattr(compiler.subprocess, "run", refusing)
    monkeypatch.setenv("JAXSIM_CFLAGS", "-DTEST")
    compiler.shared_library.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="this is a test"):
            choices = choices_of(lambda: jax.jit(lambda m, d: jaxsim.step(m, d)).lower(m, d))
        assert {c.label for c in choices if c.cause is None} == {"the step"}
        assert {c.label for c in choices if c.cause} == {"rows of constraints", "the constraint solver"}
        found = jax.jit(lambda m, d: jaxsim.step(m, d))(m, d)
    finally:
        compiler.shared_library.cache_clear()
    np.testing.assert_allclose(found.qvel, wanted.qvel, rtol=1e-6)


@pytest.mark.parametrize("arrays", [2, 6])
def test_one_call_copies_the_small_state_of_a_batch_in_a_loop(arrays):
    def turned(_, state):
        return [0.5 * x + jnp.roll(y, 1) for x, y in zip(state, [*state[1:], state[0]], strict=True)]

    step = stage(lambda model, *state: turned(model, state), "batches")
    state = [jnp.arange(40.0, dtype=jnp.float32).reshape(8, 5) + i for i in range(arrays)]

    def run(state):
        batch = jax.vmap(lambda *x: step(None, *x))
        return jax.lax.fori_loop(0, 9, lambda _, s: batch(*s), state)

    assert compiler.target_of(COPIES) not in jax.jit(lambda s: run(s)).lower(state).as_text()
    with copying_state():
        program = jax.jit(run).lower(state)
    assert (compiler.target_of(COPIES) in program.as_text()) == (arrays >= FEWEST_COPIED)
    wanted = state
    for _ in range(9):
        wanted = jax.vmap(lambda *x: turned(None, x))(*wanted)
    for x, y in zip(program.compile()(state), wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)
