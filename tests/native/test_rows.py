"""Functions of the rows in use: all rows by XLA, a loop over those in use in programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.native import compiler as native
from jaxsim.native.hints import symmetric_matrix
from jaxsim.native.rows import over_rows, rows_in_use
from jaxsim.native.stage import stage
from tests.native import threads

NWORLD, NROW = 19, 5
needs_compiler = pytest.mark.skipif(native.c_compiler() is None, reason="runs machine code of a C compiler")


def function(present, x, jacobian):
    """Forces of the rows in use, their sum over rows, a sum of numbers and one of symmetric matrices."""

    def of_rows(x, rows):
        jacobian, used = rows
        force = jnp.where(used[:, None], jnp.einsum("cdi,i->cd", jacobian, x), 0)
        weighted = jnp.where(used[:, None, None], jacobian, 0)
        matrix = symmetric_matrix(jnp.einsum("cdi,cdj->ij", jacobian, weighted))
        return force, (jnp.einsum("cdi,cd->i", jacobian, force), jnp.sum(force * force), matrix)

    return over_rows(of_rows, rows_in_use(present), x, (jacobian, present))


def worlds():
    rng = np.random.default_rng(0)
    present = rng.integers(0, 2, (NWORLD, NROW)).astype(bool)
    return present, rng.normal(size=(NWORLD, 7)), rng.normal(size=(NWORLD, NROW, 3, 7))


def expected(present, x, jacobian):
    used = np.where(present[:, :, None, None], jacobian, 0)
    force = np.einsum("wcdi,wi->wcd", used, x)
    sums = np.einsum("wcdi,wcd->wi", used, force), (force**2).sum((1, 2)), np.einsum("wcdi,wcdj->wij", used, used)
    return force, sums


@pytest.mark.parametrize(
    "form", ["plain", pytest.param("wide", marks=needs_compiler), pytest.param("host", marks=needs_compiler)]
)
def test_rows_in_use_and_their_sums(form):
    given = worlds()
    found = jax.jit(jax.vmap(stage(function, form)))(*given)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), found, expected(*given))


@pytest.mark.parametrize(("form", "counts"), [("plain", {1, NROW}), pytest.param("core", {1}, marks=needs_compiler)])
def test_a_function_of_rows_and_its_derivative_are_traced_with_the_rows_that_a_program_computes_at_once(form, counts):
    traced = set()

    def energy(present, x, jacobian):
        def of_rows(x, rows):
            traced.add(len(rows[0]))
            return (), jnp.sum(jnp.where(rows[1][:, None], rows[0] @ x, 0) ** 2)

        return over_rows(of_rows, rows_in_use(present), x, (jacobian, present))[1]

    present, x, jacobian = (a[0] for a in worlds())
    found = jax.jit(jax.grad(stage(energy, form), 1))(present, x, jacobian)
    used = np.where(present[:, None, None], jacobian, 0)
    np.testing.assert_allclose(found, 2 * np.einsum("cdi,cdj,j->i", used, used, x), rtol=1e-12, atol=1e-12)
    assert traced == counts


def test_a_function_of_rows_closes_over_no_traced_array():
    def total(x, rows):
        return over_rows(lambda _, r: ((), jnp.sum(r * x)), rows_in_use(np.ones(3, bool)), (), rows)[1]

    with pytest.raises(TypeError, match="closes over a traced array"):
        jax.jit(total)(2.0, jnp.ones((3, 2)))


@needs_compiler
def test_lanes_do_not_read_rows_beyond_the_last_one_in_use(monkeypatch):
    threads.use(monkeypatch)
    present, x, jacobian = worlds()
    last = np.max(np.where(present, np.arange(NROW), -1), axis=1)
    beyond = (np.arange(NROW) > last[:, None])[:, :, None, None]
    found = jax.jit(jax.vmap(stage(function, "host")))(present, x, np.where(beyond, np.nan, jacobian))
    want = expected(present, x, jacobian)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), found, want)


@needs_compiler
@pytest.mark.parametrize(("rows", "sides", "bins"), [(5, 2, 4), (41, 2, 60), (41, 8, 60)])
@pytest.mark.parametrize("form", ["host", "wide"])
def test_rows_are_added_to_bins_that_they_name(monkeypatch, form, rows, sides, bins):
    """By entries that look through all updates, by lists of them, or by each update; those not in use name no bin."""
    threads.use(monkeypatch)
    rng = np.random.default_rng(0)
    count = rng.integers(0, rows, NWORLD)
    place = rng.integers(0, bins, (NWORLD, rows, sides)).astype(np.int32)
    value = rng.normal(size=(NWORLD, rows, 6))
    unused = np.arange(rows) >= count[:, None]
    want = np.zeros((NWORLD, bins, 6))
    for w, r in zip(*np.nonzero(~unused), strict=True):
        for k in range(sides):
            want[w, place[w, r, k]] += value[w, r] * (k + 1)

    def sums(present, place, value):
        def of_rows(_, rows):
            place, value = rows
            parts = jnp.stack([value * (k + 1) for k in range(sides)], 1)
            return (), jnp.zeros((bins, 6)).at[place].add(parts, mode="promise_in_bounds")

        return over_rows(of_rows, rows_in_use(present), (), (place, value))[1]

    # a vector computes rows that any of its worlds uses
    place[unused], value[unused] = (10**6, np.nan) if form == "host" else (0, 0)
    found = jax.jit(jax.vmap(stage(sums, form)))(~unused, place, value)
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)


@needs_compiler
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: jnp.cumsum(x, 1), lambda x: np.cumsum(x, 2)),
        (lambda x: jnp.sort(x, 2)[..., 0], lambda x: np.sort(x, 3)[..., 0]),
    ],
    ids=["running sums", "least numbers"],
)
def test_lanes_compute_all_rows_where_it_is_not_known_which_are_in_use(monkeypatch, function, expected):
    threads.use(monkeypatch)

    def sums(present, jacobian):
        of_rows = lambda _, rows: ((), jnp.sum(function(rows)))  # noqa: E731
        return over_rows(of_rows, rows_in_use(present), None, jacobian)[1]

    present, _, jacobian = worlds()
    used = np.where(present[:, :, None, None], jacobian, 0)
    found = jax.jit(jax.vmap(stage(sums, "host")))(present, used)
    np.testing.assert_allclose(found, expected(used).reshape(len(used), -1).sum(1), rtol=1e-12)


def loss(present, x, jacobian):
    """Number of a world that depends on results of rows and on both kinds of sums, not linearly."""
    force, (total, square, matrix) = function(present, x, jacobian)
    used = jnp.where(present[:, None], jnp.sin(force), 0)
    return jnp.sum(used) + total @ matrix @ total + square**2


@pytest.mark.parametrize(
    "form", ["plain", pytest.param("wide", marks=needs_compiler), pytest.param("host", marks=needs_compiler)]
)
@pytest.mark.parametrize("mode", [jax.grad, jax.jacfwd], ids=["reverse", "forward"])
def test_derivatives_by_what_rows_share_and_by_rows(form, mode):
    def by_sums(present, x, jacobian):
        used = jnp.where(present[:, None, None], jacobian, 0)
        force = jnp.einsum("cdi,i->cd", used, x)
        total, matrix = jnp.einsum("cdi,cd->i", used, force), jnp.einsum("cdi,cdj->ij", used, used)
        return jnp.sum(jnp.sin(force)) + total @ matrix @ total + jnp.sum(force * force) ** 2

    given = worlds()
    found = jax.jit(jax.vmap(mode(stage(loss, form), (1, 2))))(*given)
    want = jax.vmap(jax.grad(by_sums, (1, 2)))(*given)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10), found, want)


@needs_compiler
def test_lanes_differentiate_rows_in_use_only(monkeypatch):
    threads.use(monkeypatch)
    present, x, jacobian = worlds()
    last = np.max(np.where(present, np.arange(NROW), -1), axis=1)
    absent = (np.arange(NROW) > last[:, None])[:, :, None, None]
    run = jax.jit(jax.vmap(jax.grad(stage(loss, "host"), (1, 2))))
    found, want = run(present, x, np.where(absent, np.nan, jacobian)), run(present, x, np.where(absent, 0, jacobian))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), found, want)
    assert all(np.isfinite(x).all() for x in found)


def test_derivatives_that_do_not_read_an_operand_of_the_value():
    def values(x, rows):
        def of_rows(x, rows):
            return jnp.where(rows > 0, x * rows, 0), ()  # the tangent is rows * dx: no x

        return over_rows(of_rows, rows_in_use(rows > 0), x, rows)[0].sum()

    x, rows = jnp.asarray(2.0), jnp.arange(4.0)
    np.testing.assert_allclose([jax.grad(values)(x, rows), jax.jvp(lambda x: values(x, rows), (x,), (x,))[1]], [6, 12])


def test_second_derivatives_of_functions_of_rows():
    present, x, jacobian = (y[0] for y in worlds())
    total = lambda x: loss(jnp.asarray(present), x, jacobian)  # noqa: E731
    by_differences = [(jax.grad(total)(x + h) - jax.grad(total)(x - h)) / 2e-5 for h in 1e-5 * np.eye(7)]
    np.testing.assert_allclose(jax.hessian(total)(x), by_differences, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize(("mask", "count"), [([0, 0, 0], 0), ([1, 0, 0], 1), ([0, 1, 0], 2), ([1, 1, 1], 3)])
def test_rows_up_to_the_last_one_present_are_in_use(mask, count):
    assert rows_in_use(jnp.array(mask, bool)).count == count


def test_a_function_that_closes_over_a_traced_array_is_refused():
    def bad(x):
        used = rows_in_use(jnp.ones(2, bool))
        return over_rows(lambda _, rows: ((), jnp.sum(rows * x)), used, None, jnp.ones((2, 1)))[1]

    with pytest.raises(TypeError, match="closes over"):
        jax.jit(bad)(jnp.float32(1))
