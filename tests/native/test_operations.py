"""Each operation as lanes compute it, against JAX: by one lane, and by threads that wait where the kernel says so."""

import shutil
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsim.math.arrays import row_at
from jaxsim.native import compiler as native
from jaxsim.native import launch as kernels
from jaxsim.native import linalg, pool
from jaxsim.native import stage as tile
from jaxsim.native.compute import is_known
from jaxsim.native.expressions import linear, unravelled
from jaxsim.native.jaxpr import flatten, trace
from jaxsim.native.segments import segments
from jaxsim.native.tile_source import tile_source
from jaxsim.xla.compat import jax_version
from tests.native import threads

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler, as kernels on the host do"
)

needs_cpp = pytest.mark.skipif(not any(map(shutil.which, ("g++", "clang++"))), reason="needs a C++ compiler")

WORLDS = 3
EXACT = 1e-12  # float64; sums in another order


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (WORLDS, *shape))


def positive(*shape):
    a = numbers(*shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])


def integers(high, *shape):
    return np.random.default_rng(1).integers(0, high, (WORLDS, *shape)).astype(np.int32)


def newton(x):
    """A loop whose length differs from world to world, with an array and a number that it changes."""
    go = lambda s: (s[1] > 1e-3) & (s[2] < 50)  # noqa: E731
    turn = lambda s: (s[0] * 0.5 + jnp.roll(s[0], 1) * 0.1, jnp.max(jnp.abs(s[0])), s[2] + 1)  # noqa: E731
    return lax.while_loop(go, turn, (x, jnp.array(1.0), 0))


def scanned(x, rows):
    def turn(c, r):
        return c * 0.9 + r.sum(), (c[1], r * c[0])

    return lax.scan(turn, x, rows, reverse=True)


def branches(x):
    return lax.cond(x[0] > 0, lambda x: (x.sum(), jnp.cumsum(x)), lambda x: (x.prod(), x[::-1] * 2), x)


def einsum(x, y):
    return x @ y, x.T @ x, jnp.einsum("ijk,ik->ij", x[:6].reshape(2, 3, 12), y[:12, :2].T)


def sums_over_tree(x, y):
    """Sums over subtrees and ancestors; a matrix of few other numbers, and one with an empty row."""
    ancestors = np.eye(9)
    for body, parent in enumerate([0, 0, 1, 2, 3, 2, 5, 0, 7]):
        ancestors[body] += ancestors[parent] * (body > 0)
    few = np.zeros((4, 9))
    few[[0, 0, 1, 3], [2, 7, 2, 8]] = 1, -2, 0.5, 3
    return ancestors @ x, ancestors.T @ x, y @ ancestors, few @ x


def at_known_places(x, y):
    """Few entries in zeros, a part of a product, one row for all rows, places that lie outside."""
    row, column = np.tril_indices(6)
    place = np.full((6, 6), -1)
    place[row, column] = place[column, row] = np.random.default_rng(0).permutation(21)
    expanded = jnp.where(place % 3 == 0, x[np.maximum(place, 0)], 0.0)
    rows = jnp.asarray(np.tile([[1.0, 2.0, 3.0]], (6, 1)))
    outside = x.at[np.arange(-3, 30, 2)].get(mode="fill", fill_value=2.0)
    return (
        expanded,
        (y @ y.T).reshape(-1)[row * 6 + column],
        y[:, :3] * rows,
        outside,
        jnp.where(place < 3, 1.0, y @ y.T),
    )


def read_again(x, y):
    """Operands that are costly to compute, for each of several rows."""
    return jnp.tanh(x)[None, :, None] * y[:, None, :] + jnp.sin(x * x)[:, None]


def of_rows(x, y):
    """Rows that one lane hands on, rows that others read, and parts of the same array."""
    a = jnp.stack([x[:, 0] * y[:, 1], x[:, 1] - y[:, 0], x[:, 2] * 2], -1)
    b = jnp.concatenate([a + y, x], -1)
    c = jnp.concatenate([a, b[:, 3:] * 2])
    return a * 2, b[::-1] + b, c, b.reshape(13, 2, 3) @ jnp.ones(3), b[:, 2] + a[:, 0]


def functions(x):
    return jnp.arctan2(x, 0.3), jnp.round(x * 9), jnp.clip(x, -0.1, 0.2), x**3, jnp.sign(x)


def of_integers(i):
    return i // 3, i % 4, i << 2, i >> 1, (i & 5) ^ 3, i.astype(jnp.float32)


def sums_up_to(x):
    return jnp.cumsum(x, 0), lax.cumsum(x, 0, reverse=True), jnp.cumsum(x[:5], 0)


def kept(x):
    """What three loops read, too expensive to compute three times."""
    y = jnp.exp(jnp.sin(x) * jnp.cos(x))
    return jnp.roll(y, 1) * y, y.sum(), y[::-1]


def updated(x, i, y):
    return lax.dynamic_update_slice(x, y, (i[0], jnp.int32(0)))


def filled(x, i):
    return x.at[i].get(mode="fill", fill_value=7.0)


def placed(x, i):
    return x.at[i].set(jnp.arange(4.0), unique_indices=True)


def gathered_places(x, i, y):
    """Scatters of so many updates that lanes go over these."""
    drop = {"mode": "drop"}
    return x.at[i].add(y), x.at[i].max(y, **drop), x.at[i].min(y), jnp.zeros(99, jnp.int32).at[i].add(i, **drop)


def windows_set(x, i, y):
    d = lax.ScatterDimensionNumbers((1,), (), (0,))
    return lax.scatter(x, i[:, None], y, d, mode="clip"), jnp.zeros((99, 50)).at[i, 3].set(y[0, 0], mode="drop")


def rows_of_batches(x, i, y):
    d = lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    return lax.scatter(x, i[..., None], y, d, mode="drop")


def sorts(x, i, y):
    odd = jnp.where(i > 4, jnp.nan, x)
    return *lax.sort((i, jnp.round(y * 3), x), num_keys=2), jnp.argsort(odd), jnp.sort(x.reshape(5, 9)), jnp.sort(x[:1])


def two_sums(x, y):
    return lax.reduce((x, y), (0.5, 0.0), lambda a, b: (a[0] + b[0], a[1] + b[1]), (0,))


def triangular(a, b):
    return lax.linalg.triangular_solve(jnp.tril(a), b, left_side=True, lower=True)


def from_the_right(a, b):
    return lax.linalg.triangular_solve(jnp.triu(a), b, transpose_a=True)


CASES = {
    "views": (lambda x: x.T[1:, ::2].reshape(-1)[::-1], numbers(6, 5)),
    "stack": (lambda x: jnp.stack([jnp.sin(x), x * 2, -x], -1), numbers(40)),
    "concatenate": (lambda x, y: jnp.concatenate([x, y * 2, x[:1]]), numbers(40, 3), numbers(7, 3)),
    "concatenate of rows": (lambda x, y: jnp.concatenate([x, y], -1) * 2, numbers(20, 3), numbers(20, 4)),
    "split": (lambda x: jnp.split(x, [2, 5], axis=1)[1] + 1, numbers(9, 8)),
    "pad": (lambda x: lax.pad(x, 2.0, ((1, 2, 0), (0, 1, 1))), numbers(5, 4)),
    "gather": (lambda x, i: x[i], numbers(30, 3), integers(30, 50)),
    "gather that fills": (filled, numbers(30), integers(40, 50)),
    "row": (lambda x, i: row_at(x, i[0]), numbers(30, 3), integers(30, 1)),
    "row set": (updated, numbers(9, 3), integers(12, 1), numbers(2, 3)),
    "scatter": (placed, numbers(9), integers(1, 4) + np.arange(4)),
    "scatter to known rows": (lambda x, y: x.at[np.array([3, 1, 3, 8, -1])].add(y), numbers(9, 3), numbers(5, 3)),
    "rows set": (lambda x, y: x.at[np.array([3, 1, -1])].set(y), numbers(9), numbers(3)),
    "scatter-add": (lambda x, i, y: x.at[i].add(y), numbers(9, 3), integers(9, 40), numbers(40, 3)),
    "scatter to known pairs": (
        lambda x, y: x.at[np.array([[0, 3, 0], [9, 1, 3]]), np.array([[1, 0, 1], [0, 0, 9]])].add(y, mode="drop"),
        numbers(9, 2, 200),
        numbers(2, 3, 200),
    ),
    "scatter to known rows of uneven length": (
        lambda x, y: x.at[np.array([7] * 38 + [2, -1])].add(y),
        numbers(60, 3),
        numbers(40, 3),
    ),
    "scatter along lists": (
        lambda x, i, y: (
            x.at[i[:, :, 0], i[:, :, 1]].add(y, mode="drop"),
            x[0].at[i[:, 0, 1]].mul(y[:, 0], mode="clip"),
        ),
        numbers(9, 4, 30),
        integers(5, 20, 4, 2),
        numbers(20, 4, 30),
    ),
    "scatter that drops": (lambda x, i: x.at[i].add(1.0, mode="drop"), numbers(9), integers(20, 15)),
    "scatter of many": (gathered_places, numbers(99), integers(120, 800), numbers(800)),
    "scatter of windows": (windows_set, numbers(900), np.arange(0, 900, 9)[None] + integers(2, 1), numbers(100, 7)),
    "scatter of batches": (
        rows_of_batches,
        numbers(9, 70),
        np.argsort(numbers(9, 70))[..., :60].astype(np.int32) * 2,
        numbers(9, 60),
    ),
    "sort": (sorts, numbers(45), integers(9, 45), numbers(45)),
    "sums at once": (two_sums, numbers(300, 2), numbers(300, 2)),
    "long sum": (lambda x: (x.sum(), x.max(), (x > 0.9).any(), x[:, 1].min()), numbers(1201, 3)),
    "sums of rows": (lambda x: (x.sum(1), x.sum(0), (x * x).sum((0, 1))), numbers(20, 30)),
    "cumsum": (sums_up_to, numbers(1101, 2)),
    "argmax": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x[:, 0])), numbers(20, 30)),
    "sums over a tree": (sums_over_tree, numbers(9, 6), numbers(20, 9)),
    "rows of arrays one after the other": (of_rows, numbers(13, 3), numbers(13, 3)),
    "at known places": (at_known_places, numbers(21), numbers(6, 4)),
    "operands that are read again": (read_again, numbers(20), numbers(5, 9)),
    "products": (einsum, numbers(20, 12), numbers(12, 7)),
    "integers": (of_integers, integers(100, 33)),
    "functions": (functions, numbers(33)),
    "kept": (kept, numbers(50)),
    "not finite": (lambda x, i: x * jnp.array([np.inf, -np.inf, np.nan, 1.0] * 8)[i], numbers(20), integers(32, 20)),
    "while": (newton, numbers(20)),
    "scan": (scanned, numbers(6), numbers(7, 3)),
    "cond": (branches, numbers(40)),
    "positive": (lambda a, b: linalg.solve_positive(a[None], b[None])[0], positive(11, 11), numbers(11)),
    "many rows": (lambda a, b: linalg.solve_positive(a[None], b[None])[0], positive(66, 66), numbers(66)),
    "positive matrices": (linalg.solve_positive, positive(4, 6, 6), numbers(4, 6)),
    "L' D L": (lambda a, *b: linalg.solve_ltdl(jnp.tril(a, -1), *b), numbers(3, 6, 6), numbers(3, 6), numbers(3, 6, 2)),
    "any": (linalg.solve, numbers(8, 8), numbers(8, 1)),
    "cholesky": (jnp.linalg.cholesky, positive(3, 7, 7)),
    "triangular": (triangular, positive(9, 9), numbers(9, 2)),
    "triangular from the right": (from_the_right, positive(9, 9), numbers(2, 9)),
}

if jax_version() < (0, 12):  # since then a primitive, which JAX computes between kernels
    CASES["place in a sorted row"] = (lambda i, j: jnp.searchsorted(jnp.sort(i), j, "right"), *[integers(60, 50)] * 2)


@pytest.fixture(autouse=True, scope="module")
def doubles():
    with jax.enable_x64(True):
        yield


def assert_same(got, want):
    got, want = jax.tree.leaves(got), jax.tree.leaves(want)
    assert len(got) == len(want)
    for x, y in zip(got, want, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("name", CASES)
def test_lanes_compute_what_jax_computes(name, monkeypatch):
    function, *operands = CASES[name]
    assert all(map(is_known, flatten(trace(function, [x[0] for x in operands]), "cuda").operations))
    want = jax.vmap(function)(*operands)
    assert_same(jax.jit(jax.vmap(tile.stage(function, form="host")))(*operands), want)
    threads.use(monkeypatch)
    assert_same(jax.jit(jax.vmap(tile.stage(function, form="host")))(*operands), want)


def test_parts_of_a_flat_index_are_joined_again():
    row, column = unravelled("i", (12, 3))
    assert linear([row, column], (12, 3)) == "i" and linear([row, 0, column], (12, 1, 3)) == "i"
    assert linear([row, column], (12, 4)) == f"({row} * 4 + {column})"
    assert unravelled(linear([0, column], (3, 3)), (9,)) == [column]  # of nine entries it reaches three


LISTS = ["scatter to known pairs", "scatter to known rows of uneven length", "scatter along lists"]


@pytest.mark.parametrize("name", LISTS)
def test_sums_of_scatters_have_an_order(name):
    function, *operands = CASES[name]
    flat = flatten(trace(function, [x[0] for x in operands]), "cuda")
    text = tile_source(flat, [True] * len(operands), WORLDS).text.split("void visit(")[1]
    assert "add_float64" not in text and text.count("\n") < 250  # updates of a long row are not written out


@needs_cpp
@pytest.mark.parametrize("name", CASES)
def test_vectors_of_worlds_hold_what_jax_computes(name):
    function, *operands = CASES[name]
    found = jax.jit(jax.vmap(tile.stage(function, form="wide")))(*operands)
    assert_same(found, jax.vmap(function)(*operands))


@needs_cpp
@pytest.mark.parametrize("count", [1, 8, 19])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_worlds_is_vectors(count, dtype):
    def function(x, shared):
        return newton(x + shared)[0], x > 0, jnp.argsort(x)[0], lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)

    x, shared = np.random.default_rng(4).uniform(-1, 1, (count, 5)).astype(dtype), np.linspace(0, 1, 5, dtype=dtype)
    found = jax.jit(jax.vmap(tile.stage(function, form="wide"), (0, None)))(x, shared)
    want = jax.vmap(function, (0, None))(x, shared)
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=10 * np.finfo(dtype).eps, atol=10 * np.finfo(dtype).eps)


@needs_cpp
def test_without_a_compiler_of_cpp_vectors_of_worlds_are_operations_of_jax(monkeypatch):
    monkeypatch.setattr(native, "WORLDS", ("-no-such-option",))
    x = numbers(20)
    assert_same(jax.jit(jax.vmap(tile.stage(jnp.cumsum, form="wide")))(x), jnp.cumsum(x, axis=1))


@needs_cpp
def test_the_c_compiler_is_given_further_flags(monkeypatch):
    monkeypatch.setenv("JAXSIM_CFLAGS", "-no-other-option")
    with pytest.warns(RuntimeWarning, match="-no-other-option"):
        jax.jit(jax.vmap(tile.stage(lambda x: jnp.cumsum(x) + 7, form="wide")))(numbers(20))


def test_arrays_that_do_not_fit_the_shared_memory_lie_in_that_of_the_program(monkeypatch):
    function, *operands = CASES["kept"]
    monkeypatch.setattr(kernels, "SHARED_BYTES", 64)
    assert_same(jax.jit(jax.vmap(tile.stage(function, form="host")))(*operands), jax.vmap(function)(*operands))


def test_what_it_cannot_write_is_computed_between_kernels():
    def function(x):
        return jnp.cumsum(lax.cumlogsumexp(jnp.sin(x)) * 2), x.sum()

    x = numbers(20)
    plan = tile.stage(function, form="host")
    assert_same(jax.jit(jax.vmap(plan))(x), jax.vmap(function)(x))
    kinds = [s.operation and s.operation.name for s in segments(flatten(trace(function, [x[0]]), "cuda"), [True])]
    assert kinds == [None, "cumlogsumexp", None]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_short_loop_with_searches_is_written_out(reverse):
    """So that they stand between kernels of a GPU."""

    def turn(x, row):
        (found,) = pool.for_each(lambda _, y, __: (jnp.cos(y),), (), x * row, jnp.int32(2))
        return found, found.sum()

    def function(x, rows):
        return lax.scan(turn, x, rows * 2, reverse=reverse)

    x, rows = numbers(3), numbers(3, seed=2)
    assert_same(jax.jit(jax.vmap(tile.stage(function, form="host")))(x, rows), jax.vmap(function)(x, rows))
    flat = flatten(trace(function, [x[0], rows[0]]), "cuda")
    kinds = [s.operation and s.operation.name for s in segments(flat, [True, True])]
    assert kinds == [None, "pool", None, "pool", None, "pool", None]


def test_what_no_world_changes_is_computed_once():
    def function(x, shared):
        return lax.cumlogsumexp(x) + lax.cumlogsumexp(shared * 2)

    x, shared = numbers(20), numbers(20)[0]
    one = tile.stage(function, form="host")
    assert_same(jax.jit(jax.vmap(one, (0, None)))(x, shared), jax.vmap(function, (0, None))(x, shared))
    program = jax.jit(jax.vmap(one, (0, None))).lower(x, shared).as_text()
    assert program.count("stablehlo.reduce_window") == 2 and "tensor<20xf64>, tensor<20xf64>" not in program


@pytest.mark.parametrize("batch", ["none", "shared", "twice"])
def test_batches(batch):
    function, x, y = CASES["products"]
    one = tile.stage(function, form="host")
    if batch == "none":
        assert_same(jax.jit(one)(x[0], y[0]), function(x[0], y[0]))
    elif batch == "shared":
        axes = (0, None)
        assert_same(jax.jit(jax.vmap(one, axes))(x, y[0]), jax.vmap(function, axes)(x, y[0]))
    else:
        pairs = partial(jax.vmap, in_axes=(None, 0))
        assert_same(jax.jit(jax.vmap(pairs(one), (0, None)))(x, y), jax.vmap(pairs(function), (0, None))(x, y))


def test_derivatives_are_those_of_the_function():
    function, x = CASES["kept"]
    one, v = tile.stage(function, form="host"), numbers(50, seed=3)
    assert_same(jax.jvp(jax.vmap(one), (x,), (v,)), jax.jvp(jax.vmap(function), (x,), (v,)))
    loss = lambda f, x: sum(jnp.sum(y**2) for y in f(x))  # noqa: E731
    assert_same(jax.vmap(jax.grad(partial(loss, one)))(x), jax.vmap(jax.grad(partial(loss, function)))(x))


def test_a_result_that_does_not_move_has_no_tangent():
    """So that programs of derivatives do not compute with zeros."""
    one = tile.stage(lambda x, y: (x * 2, y * 3))
    program = jax.make_jaxpr(lambda v: jax.jvp(lambda x: one(x, jnp.ones(3))[1], (jnp.ones(3),), (v,))[1])(jnp.ones(3))
    (made,) = [e for e in program.jaxpr.eqns if program.jaxpr.outvars[0] in e.outvars]
    assert made.primitive.name == "broadcast_in_dim" and float(made.invars[0].val) == 0


def test_constants_that_are_traced_are_operands():
    def outer(scale, x):
        return jax.vmap(tile.stage(lambda x: x * scale, form="host"))(x)

    x = numbers(5)
    assert_same(jax.jit(outer)(2.0, x), x * 2)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), None])
def test_what_a_program_does_not_use_is_not_computed(axes):
    def both(x, y):
        return jnp.cumsum(y), lax.cumlogsumexp(x) * 2, x.sum() + y[0]

    one, x, y = tile.stage(both, form="host"), numbers(20), numbers(30)
    given = [v if axes and a == 0 else v[0] for v, a in zip((x, y), axes or (0, 0), strict=True)]
    run, plain = (jax.vmap(f, axes) if axes else f for f in (one, both))
    assert_same(jax.jit(lambda x, y: run(x, y)[0])(*given), plain(*given)[0])
    program = jax.jit(lambda x, y: run(x, y)[0]).lower(*given).as_text()
    assert "reduce_window" not in program and "reduce_window" in jax.jit(run).lower(*given).as_text()
    total = lambda f: lambda x, y: f(x, y)[0].sum()  # noqa: E731
    assert_same(jax.jit(jax.grad(total(run), (0, 1)))(*given), jax.grad(total(plain), (0, 1))(*given))
