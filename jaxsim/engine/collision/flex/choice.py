"""Selection of the contacts that a full segment of flexes keeps: at most `MAXCONPAIR`, spread over the surface.

The selection depends on the order in which MuJoCo finds the contacts. Source: filterFlexContacts.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import MAXCONPAIR
from jaxsim.engine.collision.flex import segments as static
from jaxsim.engine.collision.flex.found import ID_NAMES
from jaxsim.engine.collision.flex.rounding import dot, run_time_one
from jaxsim.engine.collision.flex.trees import leaf_pairs, leaves, node_surfaces, tree_keys, tree_paths, walk
from jaxsim.math.arrays import entry_at, gather, row_at, with_entry
from jaxsim.math.safe import Array, short_sum
from jaxsim.native.world_program import WorldProgram, run_program, scalar_source
from jaxsim.xla.loops import repeat


def choose(m: Any, d: Any, numbers: Array, keys: Array, ids: Array, segment: Array) -> Array:
    """Return the rank (n,) of each contact among the kept contacts of its segment, or -1 if it is dropped.

    `numbers`, `keys` and `ids` are those of `Found`; `segment` (n,) is the number of segments where there is no
    contact. In segments with at most `MAXCONPAIR` contacts, ranks are positions in the array.
    """
    n, of, known = len(segment), static.segments(m), leaves(m)
    nseg = len(of.kind)
    base = jnp.asarray(m.flex_elemadr, jnp.int32)
    name = {k: ids[:, i] for i, k in enumerate(ID_NAMES)}
    first, second = (jnp.maximum(name[f"elem{k}"], 0) + gather(base, jnp.maximum(name[f"flex{k}"], 0)) for k in (1, 2))
    by_tree = jnp.asarray(np.append(of.tree, False))[segment] & (keys[:, 0] == 2)
    any_tree = bool(of.tree.any())
    surface = node_surfaces(m, d) if any_tree else jnp.zeros(0, numbers.dtype)

    def plain(segment: Array, keys: Array, by_tree: Array, leaf: Array, spot: Array, surface: Array, *rest: Array):
        high, low = tree_keys(m, surface, leaf) if any_tree else (keys[:, 1], keys[:, 2])
        turns = jnp.where(by_tree, high, keys[:, 1]), jnp.where(by_tree, low, keys[:, 2])
        return (_spread(segment, (keys[:, 0], *turns), spot, nseg, rest[-1]),)

    turns = known.turns if any_tree else 0

    def in_sequence(*x: Array) -> tuple[Array]:
        return (_spread_in_sequence(nseg, turns, _Contacts(*x[:-1])),)

    tables = [jnp.asarray(x) for x in (known.path, known.depth, tree_paths(m).second)]
    leaf = leaf_pairs(m, name["geom"], first, second)
    operands = segment, keys, by_tree, leaf, numbers[:, :4], surface, *tables, run_time_one(m)
    result = (jax.ShapeDtypeStruct((n,), jnp.int32),)
    source = scalar_source(in_sequence, operands)
    (rank,) = run_program(WorldProgram(plain, source, result, "the choice of a flex's contacts"), *operands)
    return rank


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


class _Contacts(NamedTuple):
    """Contacts (n,), of which `by_tree` are ordered by a tree walk to `leaf` (n, 2), and the tables of the walk."""

    segment: Array
    keys: Array
    by_tree: Array
    leaf: Array
    spot: Array
    surface: Array
    path: Array
    depth: Array
    second: Array


def _spread_in_sequence(nseg: int, turns: int, x: _Contacts) -> Array:
    """Compute `_spread` on one core, segment by segment, for segments with too many contacts.

    Native code does not contract products with sums, so no factor of one is needed.
    """
    n = len(x.segment)
    count = jnp.zeros(nseg + 1, jnp.int32).at[x.segment].add(1)
    number, content = _in_order(nseg, turns, x, count)
    end_of = lambda begin, content: begin + entry_at(count, entry_at(x.segment, entry_at(content, begin)))  # noqa: E731

    def exchange(begin: Array, end: Array, k: Array, state: tuple) -> tuple:
        content, nearest, best = state
        first, chosen = jnp.where(k < MAXCONPAIR - 1, begin + k, best), entry_at(content, best)
        pos, other = row_at(x.spot, chosen)[1:], entry_at(content, first)

        def look(i: Array, state: tuple) -> tuple:
            nearest, most, following = state
            gap, old = row_at(x.spot, entry_at(content, i))[1:] - pos, entry_at(nearest, i)
            away = short_sum(gap * gap)
            new = jnp.where(away < old, away, old)
            farther = new > most
            return with_entry(nearest, i, new), jnp.where(farther, new, most), jnp.where(farther, i, following)

        start = with_entry(nearest, best, -1), jnp.asarray(-1, x.spot.dtype), end - 1  # below every distance
        nearest, _, following = lax.fori_loop(begin, end, look, start)
        content = with_entry(with_entry(content, first, chosen), best, other)
        return content, nearest, jnp.where(following == first, best, following)

    def of_segment(begin: Array, content: Array, nearest: Array, rank: Array) -> tuple:
        end = end_of(begin, content)
        dist = lambda i: entry_at(x.spot, entry_at(content, i), 0)  # noqa: E731
        best = lax.fori_loop(begin, end, lambda i, best: jnp.where(dist(i) < dist(best), i, best), begin)
        content, nearest, _ = repeat(MAXCONPAIR, partial(exchange, begin, end), (content, nearest, best))

        def write(i: Array, rank: Array) -> Array:
            return with_entry(rank, entry_at(content, i), jnp.where(i - begin < MAXCONPAIR, i - begin, -1))

        return end, content, nearest, lax.fori_loop(begin, end, write, rank)

    state = jnp.int32(0), content, jnp.full(n, jnp.inf, x.spot.dtype), lax.iota(jnp.int32, n)
    return lax.while_loop(lambda s: s[0] < number, lambda s: of_segment(*s), state)[-1]


def _in_order(nseg: int, turns: int, x: _Contacts, count: Array) -> tuple[Array, Array]:
    """Return the number of contacts in segments with too many, and these in order at the front of an array (n,)."""
    n = len(x.segment)

    def keys_of(i: Array) -> tuple[Array, ...]:
        own = lambda: (entry_at(x.keys, i, 1), entry_at(x.keys, i, 2))  # noqa: E731
        if not turns:
            return own()
        by_tree = lambda: walk(turns, x.path, x.depth, x.second, x.surface, *row_at(x.leaf, i))  # noqa: E731
        return lax.cond(entry_at(x.by_tree, i), by_tree, own)

    def collect(i: Array, state: tuple) -> tuple:
        segment = entry_at(x.segment, i)

        def add(number: Array, rows: list[Array]) -> tuple:
            new = segment, entry_at(x.keys, i, 0), *keys_of(i), i
            return number + 1, [with_entry(y, number, v) for y, v in zip(rows, new, strict=True)]

        return lax.cond((segment < nseg) & (entry_at(count, segment) > MAXCONPAIR), add, lambda *s: s, *state)

    number, rows = repeat(n, collect, (jnp.int32(0), [jnp.full(n, k, jnp.int32) for k in (nseg, 0, 0, 0, 0)]))
    return number, lax.sort(rows, num_keys=4)[-1]
