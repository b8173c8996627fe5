"""The order of contacts of flexes, and which of too many are kept. Sources: mj_collideTree, filterFlexContacts.

A segment keeps at most `MAXCONPAIR` contacts, spread over the surface. Which ones depends on the order in which MuJoCo
finds them: that of a walk down two trees of bounding volumes, which descends in the tree whose node is larger.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.structure import per_structure
from jaxsim.core.types import MAXCONPAIR
from jaxsim.engine.collision.compaction import compact
from jaxsim.engine.collision.flex import segments as static
from jaxsim.engine.collision.flex.found import ID_NAMES, Found
from jaxsim.engine.collision.flex.rounding import dot, run_time_one
from jaxsim.math.arrays import gather, take
from jaxsim.math.safe import Array
from jaxsim.xla.batching import batch_max
from jaxsim.xla.loops import repeat

PAIRWISE_MAX_ROWS = 2048  # to sort
WORD = 31  # steps of a walk whose turns fit in one non-negative int32


class TreePaths(NamedTuple):
    """Paths from roots to leaves: of elements (nflexelem, D) and geoms (ngeom, D), padded by the leaf.

    `element_depth`, `geom_depth` are the leaves' depths, `second` (nbvh,) whether a node is a second child.
    """

    element: np.ndarray
    element_depth: np.ndarray
    geom: np.ndarray
    geom_depth: np.ndarray
    second: np.ndarray


@per_structure
def tree_paths(m: Any) -> TreePaths:
    """The paths of all leaves of the trees of flexes and of bodies."""
    second, parent = np.zeros(m.nbvh, bool), np.full(m.nbvh, -1)
    element, geom = np.full(m.nflexelem, -1), np.full(m.ngeom, -1)
    trees = [
        (a, n, element, m.flex_elemadr[f]) for f, (a, n) in enumerate(zip(m.flex_bvhadr, m.flex_bvhnum, strict=True))
    ]
    trees += [(a, n, geom, 0) for a, n in zip(m.body_bvhadr, m.body_bvhnum, strict=True)]
    for first, count, leaf_of, offset in trees:
        if first < 0:
            continue
        node = first + np.arange(count)
        child = m.bvh_child[node]
        for side in (0, 1):
            has = child[:, side] >= 0
            parent[first + child[has, side]] = node[has]
            second[first + child[has, side]] = side == 1
        leaves = node[m.bvh_nodeid[node] >= 0]
        leaf_of[offset + m.bvh_nodeid[leaves]] = leaves
    return TreePaths(*_paths(parent, element), *_paths(parent, geom), second)


def _paths(parent: np.ndarray, leaf: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    up = [leaf]
    while (up[-1] >= 0).any():
        up.append(np.where(up[-1] >= 0, parent[np.maximum(up[-1], 0)], -1))
    chain = np.stack(up[::-1], axis=1)  # (n, depth), -1 above the root
    depth = (chain >= 0).sum(1) - 1
    width = chain.shape[1]
    column = np.minimum(width - 1 - depth[:, None] + np.arange(width), width - 1)
    return np.maximum(np.take_along_axis(chain, column, 1), 0).astype(np.int32), np.maximum(depth, 0).astype(np.int32)


@per_structure
def _levels(m: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Inner nodes of the trees of flexes and their children (n, 2), the deepest ones first; as ids of dynamic nodes."""
    rows = []
    for first, count in zip(m.flex_bvhadr, m.flex_bvhnum, strict=True):
        node = first + np.arange(count) if first >= 0 else np.zeros(0, int)
        inner = node[m.bvh_nodeid[node] < 0]
        rows.append(np.column_stack([m.bvh_depth[inner], inner, first + m.bvh_child[inner]]))
    table = np.concatenate(rows) - [0, *[m.nbvhstatic] * 3]
    return [(t[:, 1], t[:, 2:]) for k in np.unique(table[:, 0])[::-1] for t in [table[table[:, 0] == k]]]


@per_structure
def _leaf_nodes(m: Any) -> tuple[np.ndarray, np.ndarray]:
    """Elements that are leaves of trees, and their dynamic nodes."""
    element = np.flatnonzero(static.in_tree(m))
    paths = tree_paths(m)
    return element, paths.element[element, paths.element_depth[element]] - m.nbvhstatic


def node_boxes(m: Any, d: Any) -> Array:
    """Boxes (nbvh, 6) of all nodes, centres and half sizes: those of flexes in the world, others in their bodies."""
    element, leaf = _leaf_nodes(m)
    box = take(d.flexelem_aabb, element)
    centre, half = box[:, :3], box[:, 3:]
    corners = jnp.zeros((m.nbvhdynamic, 6), box.dtype)  # the lower one, and the upper one with its sign turned
    corners = corners.at[leaf].set(jnp.concatenate([centre - half, -(centre + half)], axis=1))
    for node, child in _levels(m):
        corners = corners.at[node].set(jnp.min(take(corners, child), axis=1))
    low, high = corners[:, :3], -corners[:, 3:]
    boxes = jnp.concatenate([0.5 * (high + low), 0.5 * (high - low)], axis=1).at[leaf].set(box)
    return jnp.concatenate([jnp.asarray(m.bvh_aabb, box.dtype), boxes])


def node_surfaces(m: Any, d: Any) -> Array:
    """What MuJoCo compares to choose the tree to descend in, for each node (nbvh,): as if boxes were two corners."""
    boxes = node_boxes(m, d)
    x, y, z = (boxes[:, 3:] - boxes[:, :3]).T
    return x * y + y * z + z * x


def tree_keys(m: Any, d: Any, geom: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Two keys (n,) that order pairs of leaves as MuJoCo's walk does.

    `geom` (n,) is the geom of the first side; where it is -1 that is the element `first`. `second` is an element.
    """
    paths, surface = tree_paths(m), node_surfaces(m, d)
    width = max(paths.element.shape[1], paths.geom.shape[1])
    table = np.concatenate(
        [np.pad(p, ((0, 0), (0, width - p.shape[1])), mode="edge") for p in (paths.geom, paths.element)]
    )
    depth = jnp.asarray(np.concatenate([paths.geom_depth, paths.element_depth]))
    path = jnp.asarray(table.reshape(-1))
    leaf1, leaf2 = jnp.where(geom >= 0, geom, m.ngeom + jnp.maximum(first, 0)), m.ngeom + jnp.maximum(second, 0)
    end1, end2 = gather(depth, leaf1), gather(depth, leaf2)
    is_second = jnp.asarray(paths.second)

    def step(i: Array, state: tuple) -> tuple:
        at1, at2, high, low = state
        node1, node2 = gather(path, leaf1 * width + at1), gather(path, leaf2 * width + at2)
        down1 = (at1 < end1) & ((at2 == end2) | (gather(surface, node1) > gather(surface, node2)))
        down2 = ~down1 & (at2 < end2)
        at1, at2 = at1 + down1, at2 + down2
        child = jnp.where(down1, gather(path, leaf1 * width + at1), gather(path, leaf2 * width + at2))
        turn = ((down1 | down2) & ~gather(is_second, child)).astype(jnp.int32)  # the second child is visited first
        in_high = i < WORD
        shifted = lambda x: x * 2 + turn  # noqa: E731
        return at1, at2, jnp.where(in_high, shifted(high), high), jnp.where(in_high, low, shifted(low))

    zero = jnp.zeros_like(leaf1)
    count = int(
        paths.element_depth.max(initial=0) + max(paths.element_depth.max(initial=0), paths.geom_depth.max(initial=0))
    )
    *_, high, low = repeat(min(count, 2 * WORD), step, (zero, zero, zero, zero))
    return high, low


def in_order(m: Any, d: Any, found: Found, capacity: int) -> Found:
    """The contacts of all segments in MuJoCo's order, at most `MAXCONPAIR` of each; `capacity` before that choice."""
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

    def choose(state: tuple) -> tuple:
        chosen, rank = _choose(*fixed, count)
        over = jnp.concatenate([count > MAXCONPAIR, jnp.zeros(1, bool)])[segment]
        by_tree = jnp.asarray(np.append(of.tree, False))[segment]
        segment_now = jnp.where(over & ~chosen, nseg, segment)
        keys_now = jnp.where((over & ~by_tree)[:, None], 0, keys[:, 1:])
        return segment_now, keys_now, jnp.where(over, rank, place)

    state = segment, keys[:, 1:], place
    if capacity > MAXCONPAIR:
        # a branch, whose condition a batch shares: of a loop without turns XLA computes all that does not change
        state = lax.cond(batch_max(most) > MAXCONPAIR, choose, lambda x: x, state)
    segment, keys2, rank = state
    # what is chosen fits the contact buffer, or is dropped: few are sorted
    left, real, more = compact(segment < nseg, min(capacity, max(m.max_contacts, 1)))
    segment = jnp.where(real, gather(segment, left), nseg)
    key1, key2, rank = (gather(x, left) for x in (keys2[:, 0], keys2[:, 1], rank))
    order = _sorted(segment, key1, key2, rank)
    segment, left = gather(segment, order), gather(left, order)
    numbers, keys, ids = (gather(x, left) for x in (numbers, keys, ids))
    return Found(numbers, segment < nseg, segment, keys, ids, found.dropped + dropped + more)


def _sorted(*keys: Array) -> Array:
    """The order (n,) of rows by integer keys (n,), the first one first; equal rows stay as they are.

    Few rows are ranked by comparing all pairs: a sort of several operands takes XLA seconds to compile for a CPU.
    """
    n = len(keys[0])
    place = jnp.arange(n, dtype=jnp.int32)
    if n > PAIRWISE_MAX_ROWS:
        return lax.sort((*keys, place), num_keys=len(keys))[-1]
    before, equal = jnp.zeros((n, n), bool), jnp.ones((n, n), bool)
    for key in (*keys, place):
        before |= equal & (key[None] < key[:, None])
        equal &= key[None] == key[:, None]
    return jnp.zeros(n, jnp.int32).at[jnp.sum(before, axis=1, dtype=jnp.int32)].set(place)


def _choose(
    m: Any, d: Any, numbers: Array, keys: Array, ids: Array, segment: Array, count: Array
) -> tuple[Array, Array]:
    """Which contacts (n,) of segments with too many are kept, and their ranks after the exchanges of MuJoCo's choice.

    From the deepest contact on, the next one is that farthest from those chosen. Chosen contacts change places with
    the first ones, but not their marks: so some are chosen twice, others take their places.
    """
    n, nseg = len(segment), len(count)
    place = jnp.arange(n, dtype=jnp.int32)
    by_tree = jnp.asarray(np.append(static.segments(m).tree, False))[segment] & (keys[:, 0] == 2)
    base = jnp.asarray(m.flex_elemadr, jnp.int32)
    name = {k: ids[:, i] for i, k in enumerate(ID_NAMES)}
    at1 = jnp.maximum(name["elem1"], 0) + gather(base, jnp.maximum(name["flex1"], 0))
    at2 = jnp.maximum(name["elem2"], 0) + gather(base, jnp.maximum(name["flex2"], 0))
    if static.segments(m).tree.any():
        high, low = tree_keys(m, d, name["geom"], at1, at2)
        key1, key2 = jnp.where(by_tree, high, keys[:, 1]), jnp.where(by_tree, low, keys[:, 2])
    else:
        key1, key2 = keys[:, 1], keys[:, 2]
    order = _sorted(segment, keys[:, 0], key1, key2)
    segment = gather(segment, order)
    dist, pos = gather(numbers[:, 0], order), gather(numbers[:, 1:4], order)
    start = jnp.concatenate([jnp.cumsum(count) - count, jnp.full(1, n, jnp.int32)])
    over = jnp.concatenate([count > MAXCONPAIR, jnp.zeros(1, bool)])
    mine = gather(over, segment)

    def farthest(x: Array, ok: Array) -> Array:
        """The first place of the greatest number of each segment (nseg + 1,)."""
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

    one = run_time_one(m)
    state = order, pos, jnp.zeros(n, bool), jnp.full(n, jnp.inf, pos.dtype), farthest(-dist, mine)
    content, *_ = repeat(MAXCONPAIR, exchange, state)
    local = place - gather(start, segment)
    chosen = jnp.zeros(n, bool).at[content].set(mine & (local < MAXCONPAIR))
    return chosen, jnp.zeros(n, jnp.int32).at[content].set(place)
