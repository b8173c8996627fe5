"""Compaction: the true entries of a mask, in order."""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.arrays import gather
from jaxsim.math.safe import Array
from jaxsim.native.world_program import ProgramSource, WorldProgram, run_program
from jaxsim.xla.fusion import one_kernel

NATIVE_MIN_ENTRIES = 64  # of a mask: fewer cost less by XLA than a call of machine code
SOURCE = """
static void world(const bool* mask, const int* sizes, int* index, int* total) {
  int n = 0;
  for (int i = 0; i < sizes[0]; ++i) {
    if (!mask[i]) continue;
    if (n < sizes[1]) index[n] = i;
    ++n;
  }
  *total = n;
}
"""


def compact(mask: Array, capacity: int) -> tuple[Array, Array, Array]:
    """The first `capacity` true entries of `mask` (n,) in order: indices, whether each is real, the number dropped.

    Entries beyond the last true one have index 0 and are not real.
    """
    plain = partial(_plain, capacity)
    if len(mask) < NATIVE_MIN_ENTRIES:
        index, (total,) = plain(mask)
    else:
        results = jax.ShapeDtypeStruct((capacity,), jnp.int32), jax.ShapeDtypeStruct((1,), jnp.int32)
        program = WorldProgram(plain, lambda: ProgramSource(SOURCE), results, "a compaction of pairs")
        index, (total,) = run_program(program, mask, np.array([len(mask), capacity], np.int32))
    real = jnp.arange(capacity, dtype=jnp.int32) < total
    return index, real, jnp.maximum(total - capacity, 0)


def _plain(capacity: int, mask: Array, *_: Array) -> Sequence[Array]:
    """Indices (capacity,), 0 beyond the last true entry, and the number of true entries (1,)."""
    total = jnp.cumsum(mask, dtype=jnp.int32)
    search = one_kernel(partial(_index_of_true, capacity))
    index = lax.platform_dependent(mask, total, cpu=lambda _, x: search(x), default=partial(_placed, capacity))
    return jnp.where(jnp.arange(capacity, dtype=jnp.int32) < total[-1], index, 0), total[-1:]


def _placed(capacity: int, mask: Array, total: Array) -> Array:
    """Index of the k-th true entry for k = 1 ... `capacity`: each goes to its place."""
    place = jnp.where(mask, total - 1, capacity)
    return jnp.zeros(capacity, jnp.int32).at[place].set(jnp.arange(len(mask), dtype=jnp.int32), mode="drop")


def _index_of_true(capacity: int, total: Array) -> Array:
    """Index of the k-th true entry for k = 1 ... `capacity`, by binary search in the running count `total` (n,)."""
    n = len(total)
    steps = n.bit_length()

    def halve(i: Array, index: Array) -> Array:
        ahead = index + ((1 << (steps - 1)) >> i)
        less = gather(total, jnp.minimum(ahead, n) - 1) <= np.arange(capacity, dtype=np.int32)
        return jnp.where((ahead <= n) & less, ahead, index)

    return lax.fori_loop(0, steps, halve, jnp.zeros(capacity, jnp.int32))
