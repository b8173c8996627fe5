"""Functions without rows that nothing reads, and loops without what is the same in each turn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.core.types import Backend
from jaxsim.native.jaxpr import VECTORS, flatten, trace
from jaxsim.native.simplified import simplified
from jaxsim.native.stage import stage

X = jnp.asarray(np.random.default_rng(0).standard_normal((9, 6, 3)))
LOWER = np.tril(np.ones((6, 6)))
LOWER[2, :3] = 0


def both(f):
    """Operations of a function of (6, 3) for vectors, as they are and simplified."""
    flat = flatten(trace(f, [jax.ShapeDtypeStruct((6, 3), X.dtype)]), VECTORS)
    return flat.operations, simplified(flat, VECTORS).operations


def numbers(operations, name):
    """How many numbers operations of this name make."""
    return sum(int(np.prod(v.shape)) for op in operations if op.name == name for v in op.outputs)


def rows(x):
    return jnp.sin(x)[1:4:2]


def chosen(x):
    return jnp.sin(x)[np.array([4, 1, 4])]


def joined(x):
    """The first array alone is read, and of it two rows."""
    return jnp.concatenate([jnp.sin(x), jnp.cos(x)])[2:4]


def through_views(x):
    """Rows stay rows in sums over columns, transpositions of columns, and new axes."""
    y = jnp.sin(x)[:, None, :].transpose(0, 2, 1).reshape(6, 3)
    return (y * y.sum(1, keepdims=True) + jnp.cumsum(y, 1)[:, ::-1])[4:]


def by_constant(x):
    """Row 2 of the constant matrix is zero but in columns 3 to 5, of which those above the diagonal are zero too."""
    return (LOWER @ jnp.sin(x))[:2]


def of_each(x):
    """A product for each row."""
    return jax.lax.dot_general(jnp.sin(x), x, (((1,), (1,)), ((0,), (0,))))[5:]


def in_two_sizes(x):
    """Two rows are read here, two others there."""
    y = jnp.sin(x)
    return y[:2].sum() + y[3:5]


CASES = [(rows, 6), (chosen, 6), (joined, 6), (through_views, 6), (by_constant, 6), (of_each, 3), (in_two_sizes, 12)]


@pytest.mark.parametrize(("f", "count"), CASES, ids=lambda f: getattr(f, "__name__", ""))
def test_only_rows_that_are_read_are_computed(f, count):
    before, after = both(f)
    assert numbers(before, "sin") == 18
    assert numbers(after, "sin") == count
    assert numbers(after, "cos") == 0


@pytest.mark.parametrize("f", [f for f, _ in CASES], ids=lambda f: f.__name__)
def test_results_stay_the_same(f):
    assert_same(f, X)


WHOLE = [lambda x: jnp.sin(x), lambda x: jnp.sin(x).sum(0), lambda x: jnp.cumsum(jnp.sin(x), 0)[:2]]


@pytest.mark.parametrize("f", WHOLE, ids=["result", "sum", "running sum"])
def test_rows_stay_that_are_results_or_read_together(f):
    assert numbers(both(f)[1], "sin") == 18


def loop(x):
    """Sines of what does not change, of each row, and of what is carried."""

    def turn(carry, row):
        return jnp.cos(carry + row) + jnp.sin(x).sum(0), carry

    return jax.lax.scan(turn, x[0], x)


def loop_in_loop(x):
    def turn(carry, row):
        return jax.lax.scan(lambda c, _: (jnp.cos(c) * jnp.sin(x).sum(0), row), carry, None, length=2)

    return jax.lax.scan(turn, x[0], x, reverse=True)


@pytest.mark.parametrize("f", [loop, loop_in_loop])
def test_what_is_the_same_in_each_turn_stands_before_the_loop(f):
    before, after = both(f)
    assert numbers(before, "sin") == 0
    assert numbers(after, "sin") == 18
    (scan,) = (op for op in after if op.name == "scan")
    assert numbers(flatten(scan.params["jaxpr"], VECTORS).operations, "sin") == 0
    assert_same(f, X)


def test_rows_are_left_out_of_loops():
    def turn(carry, row):
        return jnp.sin(carry)[:2].sum() + carry * row, ()

    def f(x):
        return jax.lax.scan(turn, x, x.sum(1))[0]

    (scan,) = (op for op in both(f)[1] if op.name == "scan")
    assert numbers(flatten(scan.params["jaxpr"], VECTORS).operations, "sin") == 6
    assert_same(f, X)


def assert_same(f, x):
    """Compare a program of vectors, and one of a core, with operations of JAX."""
    expected = jax.vmap(f)(x)
    own = stage(f, "batches", backend=Backend.NATIVE)
    found, alone = jax.jit(jax.vmap(own))(x), jax.jit(own)(x[0])
    for a, b, c in zip(*map(jax.tree.leaves, (expected, found, alone)), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(c, a[0], rtol=1e-5, atol=1e-6)
