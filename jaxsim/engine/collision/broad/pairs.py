"""Candidate pairs: the geoms that can collide, filtered and ordered once from the model's structure, in NumPy."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from jaxsim.core.types import DisableBit, GeomType


class Candidates(NamedTuple):
    """Candidate pairs in the order in which MuJoCo reports their contacts.

    `geom` (n, 2) ascends by geom type within a pair; `pair` (n,) is the index of the explicit pair, or -1.
    """

    geom: np.ndarray
    pair: np.ndarray


def candidates(m) -> Candidates:
    """Return all pairs that pass the static filters, in MuJoCo's order; depends on the model's structure only."""
    return listed_candidates(m.structure, m.opt.disableflags & (DisableBit.MIDPHASE | DisableBit.FILTERPARENT))


@lru_cache(maxsize=256)
def listed_candidates(m, flags: int, grid: tuple[int, ...] = ()) -> Candidates:
    """Return the candidates except dynamic pairs within the geoms `grid`, which the broad phase finds at run time."""
    g1, g2 = _dynamic_pairs(m, not flags & DisableBit.FILTERPARENT, grid)
    explicit = np.stack([m.pair_geom1, m.pair_geom2], axis=-1).astype(np.int64).reshape(-1, 2)
    both = np.sort(explicit, axis=1)
    taken = np.isin(np.minimum(g1, g2) * m.ngeom + np.maximum(g1, g2), both[:, 0] * m.ngeom + both[:, 1])
    g1, g2 = g1[~taken], g2[~taken]
    body1, body2 = m.geom_bodyid[g1].astype(np.int64), m.geom_bodyid[g2].astype(np.int64)
    t1, t2 = _by_type(m, g1, g2)
    # body pairs that MuJoCo tests with bounding volumes are ordered by geoms that ascend by type
    single = (m.body_geomnum[body1] == 1) & (m.body_geomnum[body2] == 1)
    volumes = (m.body_bvhadr[body1] >= 0) & (m.body_bvhadr[body2] >= 0) & ~single & (not flags & DisableBit.MIDPHASE)
    first, second = np.where(volumes, t1, g1), np.where(volumes, t2, g2)

    e1, e2 = _by_type(m, explicit[:, 0], explicit[:, 1])
    npair = len(explicit)
    signature = np.concatenate([np.maximum.accumulate(m.pair_signature.astype(np.int64)), (body1 << 16) + body2])
    dynamic = np.concatenate([np.zeros(npair, int), np.ones(len(g1), int)])
    rank = np.concatenate([np.arange(npair), first])
    order = np.lexsort([np.concatenate([np.zeros(npair, int), second]), rank, dynamic, signature])
    geom = np.stack([np.concatenate([e1, t1]), np.concatenate([e2, t2])], axis=-1)[order]
    pair = np.concatenate([np.arange(npair), np.full(len(g1), -1)])[order]
    collidable = _can_touch(m.geom_type[geom[:, 0]], m.geom_type[geom[:, 1]])
    return Candidates(geom[collidable].astype(np.int32), pair[collidable].astype(np.int32))


def _by_type(m, g1: np.ndarray, g2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    swap = m.geom_type[g1] > m.geom_type[g2]
    return np.where(swap, g2, g1), np.where(swap, g1, g2)


def _can_touch(type1: np.ndarray, type2: np.ndarray) -> np.ndarray:
    """Return whether two types can collide; planes and height fields do not collide with each other."""
    return ~((type1 <= GeomType.HFIELD) & (type2 <= GeomType.HFIELD))


def _dynamic_pairs(m, filter_parent: bool, grid: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the geom pairs that pass the filters of contact type, welding, parents and exclusions.

    Body ids ascend in a pair. Geoms are sorted into classes with equal contype, conaffinity, staticness and membership
    in `grid`, so that only pairs of classes that can collide are enumerated. Pairs of two geoms in `grid` are left out.
    """
    static = m.body_weldid[m.geom_bodyid] == 0
    in_grid = np.isin(np.arange(m.ngeom), grid)
    key = np.stack([m.geom_contype.astype(np.int64), m.geom_conaffinity.astype(np.int64), static, in_grid], axis=-1)
    classes, class_of = np.unique(key.reshape(-1, 4), axis=0, return_inverse=True)
    members = [np.flatnonzero(class_of.reshape(-1) == c) for c in range(len(classes))]
    pairs = [(np.zeros(0, int), np.zeros(0, int))]
    for i, (type1, affinity1, static1, in_grid1) in enumerate(classes):
        for j, (type2, affinity2, static2, in_grid2) in enumerate(classes[i:], start=i):
            if (static1 and static2) or (in_grid1 and in_grid2) or not (type1 & affinity2 or type2 & affinity1):
                continue
            pairs.append(_filter(m, *_product(members[i], members[j], i == j), filter_parent))
    return np.concatenate([f[0] for f in pairs]), np.concatenate([f[1] for f in pairs])


def _product(a: np.ndarray, b: np.ndarray, same: bool) -> tuple[np.ndarray, np.ndarray]:
    if same:
        i, j = np.triu_indices(len(a), 1)
        return a[i], a[j]
    return np.repeat(a, len(b)), np.tile(b, len(a))


def _filter(m, g1: np.ndarray, g2: np.ndarray, filter_parent: bool) -> tuple[np.ndarray, np.ndarray]:
    swap = m.geom_bodyid[g1] > m.geom_bodyid[g2]
    g1, g2 = np.where(swap, g2, g1), np.where(swap, g1, g2)
    body1, body2 = m.geom_bodyid[g1].astype(np.int64), m.geom_bodyid[g2].astype(np.int64)
    weld1, weld2 = m.body_weldid[body1], m.body_weldid[body2]
    keep = weld1 != weld2
    if filter_parent:
        parent1, parent2 = m.body_weldid[m.body_parentid[weld1]], m.body_weldid[m.body_parentid[weld2]]
        keep &= ~((weld1 != 0) & (weld2 != 0) & ((weld1 == parent2) | (weld2 == parent1)))
    if m.nexclude:
        keep &= ~np.isin((body1 << 16) + body2, m.exclude_signature)
    return g1[keep], g2[keep]
