"""Compaction: the true entries of a mask, in order."""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.arrays import gather
from jaxsim.math.safe import Array
from jaxsim.xla.fusion import one_kernel


def compact(mask: Array, capacity: int) -> tuple[Array, Array, Array]:
    """Return the first `capacity` true entries of `mask` (n,) in order: indices, mask of real ones, number dropped.

    Entries after the last true one have index 0 and are not real.
    """
    total = jnp.cumsum(mask, dtype=jnp.int32)
    search = one_kernel(partial(_index_of_true, capacity))
    index = lax.platform_dependent(mask, total, cpu=lambda _, x: search(x), default=partial(_placed, capacity))
    real = jnp.arange(capacity, dtype=jnp.int32) < total[-1]
    return jnp.where(real, index, 0), real, jnp.maximum(total[-1] - capacity, 0)


def _placed(capacity: int, mask: Array, total: Array) -> Array:
    """Return the index of the k-th true entry for k = 1 ... `capacity`, by a scatter."""
    place = jnp.where(mask, total - 1, capacity)
    return jnp.zeros(capacity, jnp.int32).at[place].set(jnp.arange(len(mask), dtype=jnp.int32), mode="drop")


def _index_of_true(capacity: int, total: Array) -> Array:
    """Return the index of the k-th true entry for k = 1 ...

    `capacity`, by binary search in the prefix sum `total` (n,).
    """
    n = len(total)
    steps = n.bit_length()

    def halve(i: Array, index: Array) -> Array:
        ahead = index + ((1 << (steps - 1)) >> i)
        less = gather(total, jnp.minimum(ahead, n) - 1) <= np.arange(capacity, dtype=np.int32)
        return jnp.where((ahead <= n) & less, ahead, index)

    return lax.fori_loop(0, steps, halve, jnp.zeros(capacity, jnp.int32))
