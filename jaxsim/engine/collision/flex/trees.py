"""Trees of bounding volumes in the order of MuJoCo's walk, which descends into the larger of two nodes.

Source: mj_collideTree.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.structure import per_structure
from jaxsim.engine.collision.flex import segments as static
from jaxsim.math.arrays import gather, take
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat

WORD = 31  # steps of a walk that fit in one non-negative int32


class TreePaths(NamedTuple):
    """Paths from roots to leaves: of elements (nflexelem, D) and geoms (ngeom, D), padded by the leaf.

    `element_depth`, `geom_depth` are the leaves' depths, `second` (nbvh,) marks second children.
    """

    element: np.ndarray
    element_depth: np.ndarray
    geom: np.ndarray
    geom_depth: np.ndarray
    second: np.ndarray


@per_structure
def tree_paths(m: Any) -> TreePaths:
    """Return the paths to all leaves of the trees of flexes and of bodies."""
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
    """Return inner nodes of the trees of flexes and their children (n, 2), as ids of dynamic nodes, deepest first."""
    rows = []
    for first, count in zip(m.flex_bvhadr, m.flex_bvhnum, strict=True):
        node = first + np.arange(count) if first >= 0 else np.zeros(0, int)
        inner = node[m.bvh_nodeid[node] < 0]
        rows.append(np.column_stack([m.bvh_depth[inner], inner, first + m.bvh_child[inner]]))
    table = np.concatenate(rows) - [0, *[m.nbvhstatic] * 3]
    return [(t[:, 1], t[:, 2:]) for k in np.unique(table[:, 0])[::-1] for t in [table[table[:, 0] == k]]]


@per_structure
def _leaf_nodes(m: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the elements that are leaves of trees, and their dynamic nodes."""
    element = np.flatnonzero(static.in_tree(m))
    return element, tree_paths(m).element[element, -1] - m.nbvhstatic


def node_boxes(m: Any, d: Any) -> Array:
    """Return the boxes (nbvh, 6) of all nodes, centres and half sizes: flexes in the world, others in their bodies."""
    element, leaf = _leaf_nodes(m)
    box = take(d.flexelem_aabb, element)
    centre, half = box[:, :3], box[:, 3:]
    corners = jnp.zeros((m.nbvhdynamic, 6), box.dtype)  # the lower corner, and the upper one negated
    corners = corners.at[leaf].set(jnp.concatenate([centre - half, -(centre + half)], axis=1))
    for node, child in _levels(m):
        corners = corners.at[node].set(jnp.min(take(corners, child), axis=1))
    low, high = corners[:, :3], -corners[:, 3:]
    boxes = jnp.concatenate([0.5 * (high + low), 0.5 * (high - low)], axis=1).at[leaf].set(box)
    return jnp.concatenate([jnp.asarray(m.bvh_aabb, box.dtype), boxes])


def node_surfaces(m: Any, d: Any) -> Array:
    """Return the measure of each node (nbvh,) by which MuJoCo chooses the tree to descend.

    It is the surface of the box read as two corners, as in MuJoCo.
    """
    boxes = node_boxes(m, d)
    x, y, z = (boxes[:, 3:] - boxes[:, :3]).T
    return x * y + y * z + z * x


class Leaves(NamedTuple):
    """Paths from roots to leaves, of geoms and then of elements: `path` (n, width), padded by the leaf, `depth` (n,).

    `turns` is the length of the longest walk to two leaves.
    """

    path: np.ndarray
    depth: np.ndarray
    turns: int


@per_structure
def leaves(m: Any) -> Leaves:
    """Return the leaves of all trees."""
    paths = tree_paths(m)
    width = max(paths.element.shape[1], paths.geom.shape[1])
    table = [np.pad(p, ((0, 0), (0, width - p.shape[1])), mode="edge") for p in (paths.geom, paths.element)]
    deepest, of_geom = (x.max(initial=0) for x in (paths.element_depth, paths.geom_depth))
    turns = min(int(deepest + max(deepest, of_geom)), 2 * WORD)
    return Leaves(np.concatenate(table), np.concatenate([paths.geom_depth, paths.element_depth]), turns)


def leaf_pairs(m: Any, geom: Array, first: Array, second: Array) -> Array:
    """Return rows of `leaves` (n, 2) for pairs.

    The first side is `geom` (n,), or the element `first` where `geom` is -1; the second side is the element `second`.
    """
    return jnp.stack([jnp.where(geom >= 0, geom, m.ngeom + jnp.maximum(first, 0)), m.ngeom + jnp.maximum(second, 0)], 1)


def tree_keys(m: Any, surface: Array, leaf: Array) -> tuple[Array, Array]:
    """Return two keys (n,) that order pairs `leaf` (n, 2) of `leaves` as MuJoCo's walk does, by node surfaces."""
    known = leaves(m)
    tables = jnp.asarray(known.path), jnp.asarray(known.depth), jnp.asarray(tree_paths(m).second)
    return walk(known.turns, *tables, surface, *leaf.T)


def walk(
    turns: int, path: Array, depth: Array, second: Array, surface: Array, leaf1: Array, leaf2: Array
) -> tuple[Array, Array]:
    """Compute `tree_keys` for one pair of leaves or arrays of them, from the tables of `Leaves` and `TreePaths`."""
    width, path = path.shape[1], path.reshape(-1)
    end1, end2 = gather(depth, leaf1), gather(depth, leaf2)

    def step(i: Array, state: tuple) -> tuple:
        at1, at2, high, low = state
        node1, node2 = gather(path, leaf1 * width + at1), gather(path, leaf2 * width + at2)
        down1 = (at1 < end1) & ((at2 == end2) | (gather(surface, node1) > gather(surface, node2)))
        down2 = ~down1 & (at2 < end2)
        at1, at2 = at1 + down1, at2 + down2
        child = jnp.where(down1, gather(path, leaf1 * width + at1), gather(path, leaf2 * width + at2))
        turn = ((down1 | down2) & ~gather(second, child)).astype(jnp.int32)  # the second child is visited first
        in_high = i < WORD
        shifted = lambda x: x * 2 + turn  # noqa: E731
        return at1, at2, jnp.where(in_high, shifted(high), high), jnp.where(in_high, low, shifted(low))

    zero = jnp.zeros_like(leaf1)
    *_, high, low = repeat(turns, step, (zero, zero, zero, zero))
    return high, low
