"""Loops whose length differs from world to world."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsim.xla.loops import GROUP, where_needed, while_each, without_unused


def collatz(x, step=3):
    """The number of steps to one, and the largest number on the way; the loop closes over `step`."""
    go = lambda s: s[0] != 1  # noqa: E731

    def body(s):
        n = jnp.where(s[0] % 2 == 0, s[0] // 2, step * s[0] + 1)
        return n, s[1] + 1, jnp.maximum(s[2], n)

    return while_each(go, body, (x, 0, x))[1:]


def plain(x):
    steps, top = 0, x
    while x != 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps, top = steps + 1, max(top, x)
    return steps, top


@pytest.mark.parametrize("size", [1, GROUP, GROUP + 1, 3 * GROUP, 5 * GROUP - 1])
def test_each_world_of_a_batch_stops_by_itself(size):
    x = np.arange(1, size + 1)
    steps, top = jax.jit(jax.vmap(collatz))(jnp.asarray(x))
    np.testing.assert_array_equal(np.stack([steps, top], 1), [plain(n) for n in x])


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_batches_of_batches_are_batches(axes):
    x = np.arange(2, 2 + 4 * 20).reshape(4, 20)
    three = jnp.full((4, 20), 3)
    inner = jax.vmap(collatz, in_axes=(0, axes[1]))
    outer = jax.jit(jax.vmap(inner, in_axes=(0, axes[0])))
    step = three[tuple(slice(None) if a == 0 else 0 for a in axes)]
    steps, top = outer(jnp.asarray(x), step)
    expected = np.array([plain(n) for n in x.ravel()]).reshape(4, 20, 2)
    np.testing.assert_array_equal(np.stack([steps, top], -1), expected)


def test_worlds_that_are_done_are_not_computed():
    """One world of many goes on: a batch takes about as many operations as its sum of rounds, not rounds times size."""
    seen = []

    def body(n):
        jax.debug.callback(seen.append, n)
        return n - 1

    run = jax.jit(jax.vmap(partial(while_each, lambda n: n > 0, body)))
    n = np.zeros(4 * GROUP, np.int32)
    n[7], n[3 * GROUP] = 10, 5
    np.testing.assert_array_equal(run(n), 0)
    jax.effects_barrier()
    assert len(seen) == 10 * GROUP


def test_what_few_worlds_need_is_computed_for_their_group():
    seen = []

    def double(x):
        jax.debug.callback(seen.append, x)
        return 2 * x

    needed, x = np.zeros(3 * GROUP, bool), np.arange(3.0 * GROUP)
    needed[[7, 2 * GROUP]] = True
    run = jax.jit(jax.vmap(lambda n, x: where_needed(n, lambda: double(x), x)))
    np.testing.assert_array_equal(run(needed, x), np.where(needed, 2 * x, x))
    jax.effects_barrier()
    assert len(seen) == GROUP


def test_a_world_has_the_same_bits_wherever_it_is():
    def newton(x):
        return while_each(lambda s: s[1] > 1e-12, lambda s: _halley(x, s[0]), (x, x))[0]

    x = np.random.default_rng(0).random(3 * GROUP) + 0.1
    run = jax.jit(jax.vmap(newton))
    order = np.random.default_rng(1).permutation(len(x))
    np.testing.assert_array_equal(run(x)[order], run(x[order]))


def _halley(a, x):
    new = x * (x * x + 3 * a) / (3 * x * x + a)
    return new, jnp.abs(new - x)


def test_it_equals_the_plain_loop_outside_of_a_batch():
    mine = jax.jit(lambda c: while_each(lambda s: s < 100, lambda s: s * c, 1.0))(1.5)
    assert mine == lax.while_loop(lambda s: s < 100, lambda s: s * 1.5, 1.0)


def test_the_body_of_a_loop_is_computed_without_what_it_does_not_use():
    """The closed-over operand keeps its derivative."""

    def both(scale, x):
        return without_unused(lambda x: {"half": scale * {"half": x / 2, "sine": jnp.sin(x)}["half"]})(x)["half"]

    assert "sin" not in str(jax.make_jaxpr(both)(3.0, 1.0))
    assert jax.grad(both)(3.0, 1.0) == 0.5
