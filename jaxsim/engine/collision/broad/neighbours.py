"""Expected contacts of rigid groups of geoms, for the choice of capacities.

A rigid group holds all geoms that are welded together; all static geoms form one group. A geom of diameter w that
touches two geoms of a rigid group touches geoms that are less than w apart, whatever its pose. So at one time it can
touch only geoms that meet a cube of width w: four tiles of a floor, or twenty-five studs. This count applies to geoms
of one shape; of other shapes a body touches a few, one on each side. Geoms count with their boxes at qpos0.
"""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.allocate import allocate
from jaxsim.core.types import GeomType
from jaxsim.engine.collision.broad.pairs import Candidates
from jaxsim.engine.collision.parameters import margins
from jaxsim.engine.kinematics.kinematics import kinematics

OTHER_SIDES = 20  # contacts of a body with geoms of other shapes: flat faces on five sides
MAX_CLUSTER = 256  # boxes near one box that are compared in pairs; beyond that all count


class GroupPairs(NamedTuple):
    """Pairs of rigid groups that may touch, in both directions: groups, trees (-1: none) and contacts expected (n,).

    `radius` is that of the first and of the second group; `single` is the part of `contacts` that remains if each geom
    of the first group touches one geom of the second.
    """

    first: np.ndarray
    second: np.ndarray
    tree: np.ndarray
    other: np.ndarray
    radius: np.ndarray
    contacts: np.ndarray
    single: np.ndarray


def group_pairs(m: Any, pairs: Candidates, points: np.ndarray) -> GroupPairs:
    """Return the pairs of rigid groups that may touch.

    `points` (n,) are the contacts expected of each pair of geoms.
    """
    group = _rigid_groups(m)
    boxes = _world_boxes(m, float(np.max(np.asarray(margins(m, pairs)), initial=0)))
    most = int(group.max()) + 1
    geom, other = np.concatenate([pairs.geom, pairs.geom[:, ::-1]]).T.astype(np.int64)
    key, of_key = np.unique(geom * most + group[other], return_inverse=True)
    total, alike, widest = _covered(boxes, _shapes(m), key // most, of_key, other, np.tile(points, 2))
    both, of_both = np.unique(group[key // most].astype(np.int64) * most + key % most, return_inverse=True)
    total, alike, single = (np.bincount(of_both, x) for x in (total, alike, np.minimum(widest, total)))
    total = np.minimum(total, alike + OTHER_SIDES)
    first, second = both // most, both % most
    contacts = np.minimum(total, total[np.searchsorted(both, second * most + first)])
    tree = np.full(most, -1)
    tree[group] = m.body_treeid[m.geom_bodyid]
    radius = _radii(boxes, group, most)[np.stack([first, second])]
    return GroupPairs(first, second, tree[first], tree[second], radius, contacts, np.minimum(single, contacts))


class _Boxes(NamedTuple):
    """Corners (ngeom, 3) of boxes around geoms at qpos0, infinite for planes, and greatest widths (ngeom,) of geoms."""

    low: np.ndarray
    high: np.ndarray
    width: np.ndarray


def _covered(
    boxes: _Boxes, shape: np.ndarray, geom: np.ndarray, of_entry: np.ndarray, other: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return contacts of geoms (n,) with groups: with all geoms covered, with those of one shape, with a single geom.

    Of the pairs, `of_entry` is the geom and its group, `other` a geom of the group, `points` their contacts.
    """
    total, widest, count = np.bincount(of_entry, points), np.zeros(len(geom)), np.bincount(of_entry)
    np.maximum.at(widest, of_entry, points)
    alike = total.copy()
    order, start = np.argsort(of_entry, kind="stable"), np.cumsum(count) - count
    known: dict[Any, tuple[float, float]] = {}
    for k in np.flatnonzero(count > 1).tolist():
        entries = order[start[k] : start[k] + count[k]]
        partners, mine, width = other[entries], points[entries], boxes.width[geom[k]]
        memo = (float(np.round(width, 9)), partners.tobytes(), mine.tobytes())
        if memo not in known:
            windows = boxes.low[partners] - width, boxes.high[partners], mine
            of_shape = [shape[partners] == s for s in np.unique(shape[partners])]
            of_one = max(_most_in_window(*(x[those] for x in windows)) for those in of_shape)
            known[memo] = _most_in_window(*windows), of_one
        total[k], alike[k] = known[memo]
    return total, alike, widest


def _radii(boxes: _Boxes, group: np.ndarray, count: int) -> np.ndarray:
    """Return half the diagonals of the boxes of groups, without planes."""
    bounded = np.isfinite(boxes.low).all(axis=1)
    corner = np.full((count, 6), -np.inf)
    np.maximum.at(corner, group[bounded], np.concatenate([boxes.high, -boxes.low], axis=1)[bounded])
    extent = np.where(np.isfinite(corner[:, :3]), corner[:, :3] + corner[:, 3:], 0)
    return np.linalg.norm(extent, axis=1) / 2


def _rigid_groups(m: Any) -> np.ndarray:
    """Return the rigid group of each geom: its weld body, 0 for static geoms, or a mocap body."""
    body = m.geom_bodyid
    root = m.body_rootid[body]
    mocap = (m.body_weldid[body] == 0) & (m.body_mocapid[root] >= 0)
    return np.where(mocap, m.nbody + root, m.body_weldid[body])


def _shapes(m: Any) -> np.ndarray:
    """Return a number for each geom, equal for geoms of one type, size and mesh."""
    known = np.column_stack([m.geom_type, m.geom_dataid, np.round(np.asarray(m.geom_size), 6)])
    return np.unique(known, axis=0, return_inverse=True)[1].reshape(-1)


def _world_boxes(m: Any, margin: float) -> _Boxes:
    d = kinematics(m, allocate(m.replace(max_contacts=0, max_constraints=0)))
    mat = np.asarray(d.geom_xmat).reshape(-1, 3, 3)
    middle = np.asarray(d.geom_xpos) + np.einsum("nij,nj->ni", mat, m.geom_aabb[:, :3])
    half = np.einsum("nij,nj->ni", abs(mat), m.geom_aabb[:, 3:]) + margin
    plane = m.geom_type == GeomType.PLANE
    half[plane] = np.inf
    middle[plane] = 0
    width = np.where(plane, np.inf, 2 * np.linalg.norm(m.geom_aabb[:, 3:], axis=1) + 2 * margin)
    return _Boxes(middle - half, middle + half, width)


def _most_in_window(low: np.ndarray, high: np.ndarray, points: np.ndarray) -> float:
    """Return the largest sum of `points` (n,) over boxes (n, 3) with a common point.

    Tests the lowest common point of each two boxes, which suffices unless three boxes bound the common region, one
    along each axis.
    """
    most = points.max()
    for a in np.argsort(-points, kind="stable"):
        near = ((low <= high[a]) & (high >= low[a])).all(axis=1)
        if points[near].sum() <= most:
            continue
        if near.sum() > MAX_CLUSTER:
            return points[near].sum()
        place = np.maximum(low[a], low[near])[:, None]
        inside = ((low[near] <= place) & (place <= high[near])).all(axis=2)
        most = max(most, (inside @ points[near]).max())
    return most
