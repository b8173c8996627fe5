"""Order of the contacts of flexes. Source: mj_collideTree."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import MAXCONPAIR
from jaxsim.engine.collision.flex import segments as static
from jaxsim.engine.collision.flex.choice import choose, sorted_rows
from jaxsim.engine.collision.flex.found import Found
from jaxsim.math.arrays import gather
from jaxsim.xla.batching import batch_max
from jaxsim.xla.compaction import compact


def in_order(m: Any, d: Any, found: Found, capacity: int) -> Found:
    """Sort the contacts of all segments in MuJoCo's order, at most `MAXCONPAIR` of each, from at most `capacity`."""
    kept, real, dropped = compact(found.valid, capacity)
    of = static.segments(m)
    nseg = len(of.kind)
    numbers, keys, ids = (gather(x, kept) for x in (found.numbers, found.keys, found.ids))
    segment = jnp.where(real, gather(found.segment, kept), nseg)
    keys = jnp.where(real[:, None], keys, 0)
    place = jnp.arange(capacity, dtype=jnp.int32)
    count = jnp.zeros(nseg + 1, jnp.int32).at[segment].add(1)[:nseg]
    most = jnp.max(count, initial=0)
    fixed = lax.stop_gradient((m, d, numbers, keys, ids, segment))

    def choose_few(state: tuple) -> tuple:
        rank = choose(*fixed)
        over = jnp.concatenate([count > MAXCONPAIR, jnp.zeros(1, bool)])[segment]
        by_tree = jnp.asarray(np.append(of.tree, False))[segment]
        keys_now = jnp.where((over & ~by_tree)[:, None], 0, keys[:, 1:])
        return jnp.where(rank >= 0, segment, nseg), keys_now, rank

    state = segment, keys[:, 1:], place
    if capacity > MAXCONPAIR:
        # a branch with a condition shared by the batch: XLA evaluates loop invariants even of a loop without iterations
        state = lax.cond(batch_max(most) > MAXCONPAIR, choose_few, lambda x: x, state)
    segment, keys2, rank = state
    # contacts beyond the contact buffer are dropped, so only a few are sorted
    left, real, more = compact(segment < nseg, min(capacity, max(m.max_contacts, 1)))
    segment = jnp.where(real, gather(segment, left), nseg)
    key1, key2, rank = (gather(x, left) for x in (keys2[:, 0], keys2[:, 1], rank))
    order = sorted_rows(segment, key1, key2, rank)
    segment, left = gather(segment, order), gather(left, order)
    numbers, keys, ids = (gather(x, left) for x in (numbers, keys, ids))
    return Found(numbers, segment < nseg, segment, keys, ids, found.dropped + dropped + more)
