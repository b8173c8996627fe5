"""Selection of the contacts that a full segment of flexes keeps: at most `MAXCONPAIR`, spread over the surface.

The selection depends on the order in which MuJoCo finds the contacts. Source: filterFlexContacts.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import MAXCONPAIR
from jaxsim.engine.collision.flex import segments as static
from jaxsim.engine.collision.flex.found import ID_NAMES
from jaxsim.engine.collision.flex.rounding import dot, run_time_one
from jaxsim.engine.collision.flex.trees import leaf_pairs, node_surfaces, tree_keys
from jaxsim.math.arrays import gather
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat


def choose(m: Any, d: Any, numbers: Array, keys: Array, ids: Array, segment: Array) -> Array:
    """Return the rank (n,) of each contact among the kept contacts of its segment, or -1 if it is dropped.

    `numbers`, `keys` and `ids` are those of `Found`; `segment` (n,) is the number of segments where there is no
    contact. In segments with at most `MAXCONPAIR` contacts, ranks are positions in the array.
    """
    of, base = static.segments(m), jnp.asarray(m.flex_elemadr, jnp.int32)
    name = {k: ids[:, i] for i, k in enumerate(ID_NAMES)}
    first, second = (jnp.maximum(name[f"elem{k}"], 0) + gather(base, jnp.maximum(name[f"flex{k}"], 0)) for k in (1, 2))
    by_tree = jnp.asarray(np.append(of.tree, False))[segment] & (keys[:, 0] == 2)
    any_tree, turns = bool(of.tree.any()), (keys[:, 1], keys[:, 2])
    high, low = tree_keys(m, node_surfaces(m, d), leaf_pairs(m, name["geom"], first, second)) if any_tree else turns
    ordered = keys[:, 0], *(jnp.where(by_tree, x, y) for x, y in zip((high, low), turns, strict=True))
    return _spread(segment, ordered, numbers[:, :4], len(of.kind), run_time_one(m))


def sorted_rows(*keys: Array) -> Array:
    """Return the order (n,) of rows by integer keys (n,), the first key being the major one; the sort is stable."""
    place = jnp.arange(len(keys[0]), dtype=jnp.int32)
    return lax.sort((*keys, place), num_keys=len(keys))[-1]


def _spread(segment: Array, keys: tuple[Array, ...], spot: Array, nseg: int, one: Array) -> Array:
    """Compute the ranks (n,) of contacts, given the keys (n,) that order a segment; `spot` (n, 4) has dist and pos.

    Starts from the deepest contact and repeatedly takes the contact farthest from those taken. As in MuJoCo, a taken
    contact is swapped to the front while its mark stays behind, so that some contacts are taken twice.
    """
    n = len(segment)
    place = jnp.arange(n, dtype=jnp.int32)
    order = sorted_rows(segment, *keys)
    count = jnp.zeros(nseg + 1, jnp.int32).at[segment].add(1)[:nseg]
    segment = gather(segment, order)
    dist, pos = gather(spot[:, 0], order), gather(spot[:, 1:], order)
    start = jnp.concatenate([jnp.cumsum(count) - count, jnp.full(1, n, jnp.int32)])
    over = jnp.concatenate([count > MAXCONPAIR, jnp.zeros(1, bool)])
    mine = gather(over, segment)

    def farthest(x: Array, ok: Array) -> Array:
        """Return the first position of the largest value in each segment (nseg + 1,)."""
        x = jnp.where(ok, x, -jnp.inf)
        most = jax.ops.segment_max(x, segment, nseg + 1, indices_are_sorted=True)
        here = jnp.where(ok & (x == gather(most, segment)), place, n)
        return jnp.minimum(jax.ops.segment_min(here, segment, nseg + 1, indices_are_sorted=True), n - 1)

    def exchange(k: Array, state: tuple) -> tuple:
        content, at, selected, nearest, best = state
        selected = selected.at[jnp.where(over, best, n)].set(True, mode="drop")
        gap = at - gather(gather(at, best), segment)
        away = dot(gap, gap, one)
        nearest = jnp.where(selected, nearest, jnp.minimum(nearest, away))
        following = farthest(nearest, mine & ~selected)
        first = jnp.where(k < MAXCONPAIR - 1, start + k, best)
        to = jnp.where(over, jnp.stack([first, best]), n)
        content, at = (
            x.at[to].set(jnp.stack([gather(x, best), gather(x, jnp.minimum(first, n - 1))]), mode="drop")
            for x in (content, at)
        )
        return content, at, selected, nearest, jnp.where(following == first, best, following)

    state = order, pos, jnp.zeros(n, bool), jnp.full(n, jnp.inf, pos.dtype), farthest(-dist, mine)
    content, *_ = repeat(MAXCONPAIR, exchange, state)
    local = place - gather(start, segment)
    kept = jnp.where(local < MAXCONPAIR, local, -1)
    return jnp.zeros(n, jnp.int32).at[content].set(jnp.where(mine, kept, content))
