"""Sums over kinematic trees, for every tree at once; each operator has three implementations.

Small models: one product with a constant 0/1 mask of ancestors. Large models (more than `DENSE_BODIES` bodies) are
divided into their trees: trees of one shape, or of about one size, share a batched product with masks of that size; a
single large tree uses pointer jumping. No array is quadratic in bodies or dofs of the model.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from jaxsim.math.arrays import dot_static, einsum, is_numpy, take, take_or_zero
from jaxsim.math.safe import SHORT, Array, short_sum, xp_of

DENSE_BODIES = 96
BATCH_MIN_TREES = 4  # least number of trees of one shape for a batched product of their own


class Bunch(NamedTuple):
    """k trees of at most n bodies and j dofs: their bodies (k, n) and dofs (k, j), padded with -1, and masks.

    These are the masks of `Tree` within a tree, (n, n), (n, j) and (j, j), shared by all trees or with a leading axis
    of trees.
    """

    bodies: np.ndarray
    dofs: np.ndarray
    ancestor: np.ndarray
    dof_mask: np.ndarray
    prior: np.ndarray


class Forest(NamedTuple):
    """A large model in parts: bunches of small trees, then the large trees, as a `Tree` of their own with the world.

    `rest_bodies` (the world first) and `rest_dofs` are those of the large trees. `body_index` and `dof_index` are the
    positions of bodies and dofs in the results of the bunches, followed by those of the rest.
    """

    bunches: tuple[Bunch, ...]
    rest: "Tree"
    rest_bodies: np.ndarray
    rest_dofs: np.ndarray
    body_index: np.ndarray
    dof_index: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Tree:
    """Constant tables of a forest of bodies and their dofs.

    `jumps` are the ancestors of each round of pointer jumping, parents first. `ancestor[b, a]` and `dof_mask[b, i]`
    mean that body a, or dof i, is on the path from the world to b (b included); `prior[i, j]` that dof j moves the
    frame in which dof i acts. The three masks are None for large models, which have a `forest` unless all of their
    trees are large. `body_dofs` and `dof_prior` are lists padded with -1.
    """

    parent: np.ndarray
    jumps: tuple[np.ndarray, ...]
    dof_bodyid: np.ndarray
    body_dofs: np.ndarray
    dof_prior: np.ndarray
    ancestor: np.ndarray | None
    dof_mask: np.ndarray | None
    prior: np.ndarray | None
    forest: Forest | None = None


def make_tree(parent: np.ndarray, dof_bodyid: np.ndarray, dof_group: np.ndarray, dense: bool | None = None) -> Tree:
    """Return tables for bodies with the given parents (parent of 0 is 0; parents come first).

    Args:
        parent: (nbody,) parent of each body.
        dof_bodyid: (nv,) body of each dof; the dofs of a body are consecutive.
        dof_group: (nv,) a number that increases from joint to joint within a body; dofs of one group act in the same
            frame (the rotations of a ball) and -1 marks dofs with fixed axes (the translations of a free joint).
        dense: force one of the implementations.
    """
    parent, dof_bodyid, dof_group = np.asarray(parent), np.asarray(dof_bodyid), np.asarray(dof_group)
    nbody = len(parent)
    dense = nbody <= DENSE_BODIES if dense is None else dense
    prior = _own_prior(dof_bodyid, dof_group)
    ancestor = dof_mask = prior_mask = forest = None
    if dense:
        ancestor, dof_mask, prior_mask = _masks(parent, dof_bodyid, dof_group, prior)
    else:
        forest = _forest(parent, dof_bodyid, dof_group)
    return Tree(
        parent=parent,
        jumps=pointer_jumps(parent) if forest is None else (),
        dof_bodyid=dof_bodyid,
        body_dofs=_pad(np.split(np.arange(len(dof_bodyid)), np.searchsorted(dof_bodyid, np.arange(1, nbody)))),
        dof_prior=_pad(prior),
        ancestor=ancestor,
        dof_mask=dof_mask,
        prior=prior_mask,
        forest=forest,
    )


def _own_prior(dof_bodyid: np.ndarray, dof_group: np.ndarray) -> list[list[int]]:
    """Return for each dof the earlier dofs of its own body that move the frame in which it acts."""
    body, group = dof_bodyid.tolist(), dof_group.tolist()
    return [
        [j for j in range(max(0, i - 6), i) if body[j] == body[i] and group[i] >= 0 and group[j] != group[i]]
        for i in range(len(body))
    ]


def _masks(
    parent: np.ndarray, dof_bodyid: np.ndarray, dof_group: np.ndarray, own: list[list[int]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `ancestor`, `dof_mask` and `prior` of a tree; body 0 is its own parent."""
    ancestor = np.eye(len(parent), dtype=bool)
    for b in range(1, len(parent)):
        ancestor[b] |= ancestor[parent[b]]
    dof_mask = ancestor[:, dof_bodyid]
    prior = dof_mask[parent[dof_bodyid]] & ~(dof_group < 0)[:, None]
    for i, before in enumerate(own):
        prior[i, before] = True
    return ancestor, dof_mask, prior


def _forest(parent: np.ndarray, dof_bodyid: np.ndarray, dof_group: np.ndarray) -> Forest | None:
    """Group the trees below the world into bunches; None when every tree is large."""
    if len(parent) < 2:
        return None
    root = np.arange(len(parent))
    while (parent[root] != 0).any():
        root = np.where(parent[root] != 0, parent[root], root)
    order = np.argsort(root[1:], kind="stable") + 1
    bodies = np.split(order, np.flatnonzero(np.diff(root[order])) + 1)
    dof_root = root[dof_bodyid]
    dof_order = np.argsort(dof_root, kind="stable")
    starts = np.searchsorted(dof_root[dof_order], [b[0] for b in bodies])
    dofs = np.split(dof_order, starts[1:])
    small = [max(len(b), len(v)) <= DENSE_BODIES for b, v in zip(bodies, dofs, strict=True)]
    if not any(small):
        return None
    trees = [(b, v) for b, v, s in zip(bodies, dofs, small, strict=True) if s]
    large = [(b, v) for b, v, s in zip(bodies, dofs, small, strict=True) if not s]
    bunches = _bunches(trees, parent, dof_bodyid, dof_group)
    none = np.zeros(0, int)
    rest_bodies = np.concatenate([[0], *(b for b, _ in large)]).astype(int)
    rest_dofs = np.concatenate([none, *(v for _, v in large)]).astype(int)
    local = np.zeros(len(parent), int)
    local[rest_bodies] = np.arange(len(rest_bodies))
    rest = make_tree(local[parent[rest_bodies]], local[dof_bodyid[rest_dofs]], dof_group[rest_dofs], dense=False)
    body_rows = np.concatenate([*(b.bodies.reshape(-1) for b in bunches), rest_bodies])
    dof_rows = np.concatenate([none, *(b.dofs.reshape(-1) for b in bunches), rest_dofs])
    return Forest(bunches, rest, rest_bodies, rest_dofs, _positions(body_rows), _positions(dof_rows))


def _positions(rows: np.ndarray) -> np.ndarray:
    """Return the position in `rows` of each number from 0 on; `rows` has every one once, and -1 in empty entries."""
    at = np.flatnonzero(rows >= 0)
    return at[np.argsort(rows[at])]


def _bunches(
    trees: list[tuple[np.ndarray, np.ndarray]], parent: np.ndarray, dof_bodyid: np.ndarray, dof_group: np.ndarray
) -> tuple[Bunch, ...]:
    shapes: dict[tuple, list[int]] = {}
    for i, (bodies, dofs) in enumerate(trees):
        up = np.where(parent[bodies] == 0, 0, np.searchsorted(bodies, parent[bodies]) + 1)
        group = dof_group[dofs]
        group = np.where(group < 0, -1, group - np.min(group, where=group >= 0, initial=group.max(initial=0)))
        on = np.searchsorted(bodies, dof_bodyid[dofs])
        shapes.setdefault((tuple(up.tolist()), tuple(on.tolist()), tuple(group.tolist())), []).append(i)
    sizes: dict[tuple, list[tuple[tuple, int]]] = {}
    for shape, members in shapes.items():
        key = shape if len(members) >= BATCH_MIN_TREES else (len(shape[0]).bit_length(), len(shape[1]).bit_length())
        sizes.setdefault(key, []).extend((shape, i) for i in members)
    return tuple(_bunch(members, trees) for members in sizes.values())


def _bunch(members: list[tuple[tuple, int]], trees: list[tuple[np.ndarray, np.ndarray]]) -> Bunch:
    """Return trees of several shapes in tables of one size."""
    n, j = (max(len(shape[side]) for shape, _ in members) for side in (0, 1))
    of_shape = {}
    for shape, _ in members:
        if shape not in of_shape:
            up, on, group = (np.array(x, int) for x in shape)
            ancestor, dof_mask, prior = _masks(np.append(0, up), on + 1, group, _own_prior(on, group))
            masks = ancestor[1:, 1:], dof_mask[1:], prior
            of_shape[shape] = [
                np.pad(x, [(0, a - b) for a, b in zip(size, x.shape, strict=True)])
                for x, size in zip(masks, ((n, n), (n, j), (j, j)), strict=True)
            ]
    one = len(of_shape) == 1
    masks = [
        of_shape[members[0][0]][k] if one else np.stack([of_shape[shape][k] for shape, _ in members]) for k in range(3)
    ]
    bodies, dofs = (
        np.stack([np.pad(trees[i][side], (0, size - len(trees[i][side])), constant_values=-1) for _, i in members])
        for side, size in ((0, n), (1, j))
    )
    return Bunch(bodies, dofs, *masks)


def _pad(lists: list) -> np.ndarray:
    out = np.full((len(lists), max([len(x) for x in lists], default=0)), -1)
    for row, items in zip(out, lists, strict=True):
        row[: len(items)] = items
    return out


def pointer_jumps(parent: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the ancestors of each round of pointer jumping, 1, 2, 4, ... levels up; node 0 is its own parent."""
    jumps = []
    while parent.any():
        jumps.append(parent)
        parent = parent[parent]
    return tuple(jumps)


def _by_bunch(
    forest: Forest, x: Array, source: str, target: str, mask: str, rest: Callable[[Tree, Array], Array]
) -> Array:
    """Compute a sum within each tree: products with the `mask` of the bunches, and `rest` for the large trees.

    `source` and `target` are "bodies" or "dofs", the kind of rows; a mask whose name ends with "T" is transposed.
    """
    xp, out = xp_of(x), []
    for bunch in forest.bunches:
        part = take_or_zero(x, getattr(bunch, source))
        weight = getattr(bunch, mask.removesuffix("T"))
        weight = np.swapaxes(weight, -1, -2) if mask.endswith("T") else weight
        if weight.ndim == 2 and max(weight.shape) <= SHORT:  # a sum that XLA fuses with its neighbours
            rows = short_sum(part[:, None] * weight.astype(x.dtype)[..., None], 2)
        else:
            rows = einsum("ab,kbc->kac" if weight.ndim == 2 else "kab,kbc->kac", weight.astype(x.dtype), part)
        out.append(rows.reshape(-1, x.shape[-1]))
    out.append(rest(forest.rest, take(x, forest.rest_bodies if source == "bodies" else forest.rest_dofs)))
    return take(xp.concatenate(out), forest.body_index if target == "bodies" else forest.dof_index)


def subtree_sum(tree: Tree, x: Array) -> Array:
    """Sum over each body's subtree: (nbody, k) -> (nbody, k)."""
    if tree.ancestor is not None:
        return dot_static(tree.ancestor.T, x)
    if tree.forest is not None:
        out = _by_bunch(tree.forest, x, "bodies", "bodies", "ancestorT", subtree_sum)
        return xp_of(x).concatenate([x.sum(0, keepdims=True), out[1:]])
    total = x.sum(0, keepdims=True)  # a jump to 0 may also mean beyond the world, so the world is summed by itself
    for jump in tree.jumps:
        x = x + _into(np.where(jump > 0, jump, -1), x)
    return xp_of(x).concatenate([total, x[1:]])


def _into(index: np.ndarray, x: Array) -> Array:
    keep = np.flatnonzero(index >= 0)
    if len(keep) == 0:
        return xp_of(x).zeros_like(x)
    if is_numpy(x):
        out = np.zeros_like(x)
        np.add.at(out, index[keep], x[keep])
        return out
    return jax.ops.segment_sum(take(x, keep), index[keep], x.shape[0])


def path_sum(tree: Tree, x: Array) -> Array:
    """Sum over the path from the world to each body: (nbody, k) -> (nbody, k)."""
    if tree.ancestor is not None:
        return dot_static(tree.ancestor, x)
    if tree.forest is not None:
        apart = xp_of(x).concatenate([x[:1] * 0, x[1:]])
        return _by_bunch(tree.forest, apart, "bodies", "bodies", "ancestor", path_sum) + x[:1]
    world, rest = x[:1], xp_of(x).concatenate([x[:1] * 0, x[1:]])
    for jump in tree.jumps:
        rest = rest + take(rest, jump)
    return rest + world


def dof_path_sum(tree: Tree, x: Array) -> Array:
    """Sum over the dofs that move each body: (nv, k) -> (nbody, k)."""
    if tree.dof_mask is not None:
        return dot_static(tree.dof_mask, x)
    if tree.forest is not None:
        return _by_bunch(tree.forest, x, "dofs", "bodies", "dof_mask", dof_path_sum)
    return path_sum(tree, take_or_zero(x, tree.body_dofs).sum(1))


def dof_subtree_sum(tree: Tree, x: Array) -> Array:
    """Sum over the bodies that each dof moves: (nbody, k) -> (nv, k)."""
    if tree.dof_mask is not None:
        return dot_static(tree.dof_mask.T, x)
    if tree.forest is not None:
        return _by_bunch(tree.forest, x, "bodies", "dofs", "dof_maskT", dof_subtree_sum)
    return take(subtree_sum(tree, x), tree.dof_bodyid)


def dof_prior_sum(tree: Tree, x: Array) -> Array:
    """Sum over the dofs that move the frame in which each dof acts: (nv, k) -> (nv, k)."""
    if tree.prior is not None:
        return dot_static(tree.prior, x)
    if tree.forest is not None:
        return _by_bunch(tree.forest, x, "dofs", "dofs", "prior", dof_prior_sum)
    body = take(dof_path_sum(tree, x), tree.parent[tree.dof_bodyid])
    return body + take_or_zero(x, tree.dof_prior).sum(1)
