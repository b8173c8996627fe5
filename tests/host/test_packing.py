"""Leaves of a tree in few buffers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.host.packing import MAX_PACKED, Packing

TREE = {
    "a": jnp.arange(6, dtype=jnp.float32).reshape(2, 3),
    "b": {"c": jnp.array([True, False]), "d": jnp.float32(7)},
    "empty": jnp.zeros((0, 3), jnp.float32),
    "large": jnp.arange(MAX_PACKED + 1, dtype=jnp.float32),
    "n": jnp.arange(3, dtype=jnp.int32),
}


def test_a_tree_survives_its_buffers():
    packing = Packing(TREE)
    back = packing.unpack(jax.jit(packing.pack)(TREE))
    assert jax.tree.structure(back) == jax.tree.structure(TREE)
    for x, y in zip(jax.tree.leaves(back), jax.tree.leaves(TREE), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_there_is_a_buffer_for_each_type_and_each_large_array():
    packing = Packing(TREE)
    assert [(x.shape, str(x.dtype)) for x in packing.shapes] == [
        ((7,), "float32"),
        ((2,), "bool"),
        ((MAX_PACKED + 1,), "float32"),
        ((3,), "int32"),
    ]


@pytest.mark.parametrize("name", ["a", "b", "empty", "large"])
def test_entries_are_read_on_the_host(name):
    packing = Packing(TREE)
    read = packing.read(packing.pack(TREE), name)
    jax.tree.map(np.testing.assert_array_equal, read, TREE[name])
    assert not any(x.flags.writeable for x in jax.tree.leaves(read) if x.size)


def test_an_entry_is_written_without_touching_the_rest():
    packing = Packing(TREE)
    before = packing.pack(TREE)
    after = packing.written(before, "a", np.ones((2, 3)))
    np.testing.assert_array_equal(packing.read(after, "a"), np.ones((2, 3)))
    np.testing.assert_array_equal(packing.read(after, "b")["d"], 7)
    np.testing.assert_array_equal(packing.read(before, "a"), TREE["a"])
