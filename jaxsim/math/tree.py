"""Sums over kinematic trees, for every tree at once, each operator with two implementations behind one name.

Small models: one product with a constant 0/1 mask of ancestors. Large models (more than `DENSE_BODIES` bodies): pointer
doubling, so that nothing quadratic in bodies or dofs is ever built.
"""

import dataclasses

import jax
import numpy as np

from jaxsim.math.arrays import dot, is_numpy, take, take_or_zero
from jaxsim.math.safe import Array, xp_of

DENSE_BODIES = 96


@dataclasses.dataclass(frozen=True, eq=False)
class Tree:
    """Constant tables of a forest of bodies and their dofs.

    `hops` are the pointers of each round of doubling, the parents first. `ancestor[b, a]` and `dof_mask[b, i]` say
    that body a, or dof i, lies on the path from the world to b (b included); `prior[i, j]` that dof j moves the frame
    in which dof i acts. The three masks are None for large models. `body_dofs` and `dof_prior` are lists padded with
    -1.
    """

    parent: np.ndarray
    hops: tuple[np.ndarray, ...]
    dof_bodyid: np.ndarray
    body_dofs: np.ndarray
    dof_prior: np.ndarray
    ancestor: np.ndarray | None
    dof_mask: np.ndarray | None
    prior: np.ndarray | None


def make_tree(parent: np.ndarray, dof_bodyid: np.ndarray, dof_group: np.ndarray, dense: bool | None = None) -> Tree:
    """Tables for bodies with the given parents (parent of 0 is 0; parents come first).

    Args:
        parent: (nbody,) parent of each body.
        dof_bodyid: (nv,) body of each dof; the dofs of a body are neighbours.
        dof_group: (nv,) a number that rises from joint to joint within a body; dofs of one group act in the same frame
            (the rotations of a ball) and -1 marks dofs with fixed axes (the translations of a free joint).
        dense: force one of the implementations.
    """
    nbody, nv = len(parent), len(dof_bodyid)
    dense = nbody <= DENSE_BODIES if dense is None else dense
    prior = [
        [
            j
            for j in range(max(0, i - 6), i)
            if dof_bodyid[j] == dof_bodyid[i] and dof_group[i] >= 0 and dof_group[j] != dof_group[i]
        ]
        for i in range(nv)
    ]
    ancestor = dof_mask = prior_mask = None
    if dense:
        ancestor = np.eye(nbody, dtype=bool)
        for b in range(1, nbody):
            ancestor[b] |= ancestor[parent[b]]
        dof_mask = ancestor[:, dof_bodyid]
        fixed = (np.asarray(dof_group) < 0)[:, None]
        prior_mask = dof_mask[np.asarray(parent)[dof_bodyid]] & ~fixed
        for i, before in enumerate(prior):
            prior_mask[i, before] = True
    return Tree(
        parent=np.asarray(parent),
        hops=hops_of(np.asarray(parent)),
        dof_bodyid=np.asarray(dof_bodyid),
        body_dofs=_pad([np.flatnonzero(np.asarray(dof_bodyid) == b) for b in range(nbody)]),
        dof_prior=_pad(prior),
        ancestor=ancestor,
        dof_mask=dof_mask,
        prior=prior_mask,
    )


def _pad(lists: list) -> np.ndarray:
    out = np.full((len(lists), max([len(x) for x in lists], default=0)), -1)
    for row, items in zip(out, lists, strict=True):
        row[: len(items)] = items
    return out


def hops_of(parent: np.ndarray) -> tuple[np.ndarray, ...]:
    """Pointers of each round of doubling: 1, 2, 4, ... steps towards node 0, which is its own parent."""
    hops = []
    while parent.any():
        hops.append(parent)
        parent = parent[parent]
    return tuple(hops)


def _mask(mask: np.ndarray, x: Array) -> Array:
    return dot(mask.astype(x.dtype), x)


def subtree_sum(tree: Tree, x: Array) -> Array:
    """Sum over each body's subtree: (nbody, k) -> (nbody, k)."""
    if tree.ancestor is not None:
        return _mask(tree.ancestor.T, x)
    total = x.sum(0, keepdims=True)  # a hop to 0 may also mean beyond the world, so the world is summed apart
    for hop in tree.hops:
        x = x + _into(np.where(hop > 0, hop, -1), x)
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
        return _mask(tree.ancestor, x)
    world, rest = x[:1], xp_of(x).concatenate([x[:1] * 0, x[1:]])
    for hop in tree.hops:
        rest = rest + take(rest, hop)
    return rest + world


def dof_path_sum(tree: Tree, x: Array) -> Array:
    """Sum over the dofs that move each body: (nv, k) -> (nbody, k)."""
    if tree.dof_mask is not None:
        return _mask(tree.dof_mask, x)
    return path_sum(tree, take_or_zero(x, tree.body_dofs).sum(1))


def dof_subtree_sum(tree: Tree, x: Array) -> Array:
    """Sum over the bodies that each dof moves: (nbody, k) -> (nv, k)."""
    if tree.dof_mask is not None:
        return _mask(tree.dof_mask.T, x)
    return take(subtree_sum(tree, x), tree.dof_bodyid)


def dof_prior_sum(tree: Tree, x: Array) -> Array:
    """Sum over the dofs that move the frame in which each dof acts: (nv, k) -> (nv, k)."""
    if tree.prior is not None:
        return _mask(tree.prior, x)
    body = take(dof_path_sum(tree, x), tree.parent[tree.dof_bodyid])
    return body + take_or_zero(x, tree.dof_prior).sum(1)
