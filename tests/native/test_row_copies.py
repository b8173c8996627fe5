"""Copies of rows by one call agree with XLA's gathers and scatters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.native import compiler
from jaxsim.native.row_copies import row_copies
from jaxsim.xla.loops import COPIES, while_each

ARRAYS = (
    np.arange(24.0).reshape(6, 2, 2),
    np.arange(6, dtype=np.int32),
    np.arange(12).reshape(6, 2) % 5 == 0,
    np.arange(6, dtype=np.float16),
    np.zeros((6, 0, 3)),
)
PLACES = np.array([4, 1, 5, 6, 6], np.int32)  # 6 is no row


needs_compiler = pytest.mark.skipif(compiler.c_compiler() is None, reason="calls machine code of a C compiler (cc)")


@needs_compiler
def test_rows_are_those_of_gathers_and_scatters():
    """Also places after the last row, arrays without numbers, and types of one and two bytes."""
    own, arrays = row_copies(), [*map(jnp.asarray, ARRAYS)]
    assert own is not COPIES
    rows, expected = (jax.jit(c.take)(PLACES, arrays) for c in (own, COPIES))
    jax.tree.map(np.testing.assert_array_equal, rows, list(expected))
    new = [jnp.logical_not(x) if x.dtype == bool else x + 1 for x in rows]
    found, expected = (jax.jit(c.put)(PLACES, arrays, new) for c in (own, COPIES))
    jax.tree.map(np.testing.assert_array_equal, list(found), list(expected))


@pytest.mark.parametrize("group", [4, 40])
def test_loops_of_a_batch_are_those_of_each_problem(group):
    """Groups that are full, groups that are not, and a batch smaller than a group."""
    factors, counts = jnp.linspace(0.5, 2, 11), jnp.arange(11) % 5

    def run(factor, count):
        start = count, jnp.ones(3)
        return while_each(
            lambda s: s[0] > 0, lambda s: (s[0] - 1, factor * s[1]), start, group=group, copies=row_copies()
        )[1]

    expected = np.asarray(factors)[:, None] ** np.asarray(counts)[:, None] * np.ones(3)
    np.testing.assert_allclose(jax.jit(jax.vmap(run))(factors, counts), expected, rtol=1e-6)


def test_xla_copies_rows_without_a_compiler(monkeypatch):
    def missing(*_):
        raise compiler.CompilerMissing("none")

    monkeypatch.setattr(compiler, "target_of", missing)
    assert row_copies() is COPIES
