"""Default and suggested capacities for contacts and constraint rows."""

import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.errors import CapacityWarning
from jaxsim.core.layout import is_sparse, make_layout, max_condim
from jaxsim.core.model import Model
from jaxsim.core.types import GeomType, TrnType, WrapType
from jaxsim.engine.collision.broad.broadphase import class_pairs, is_large
from jaxsim.engine.collision.broad.neighbours import GroupPairs, group_pairs
from jaxsim.engine.collision.broad.overlap import max_overlapping_weight
from jaxsim.engine.collision.broad.pairs import Candidates, candidates
from jaxsim.engine.collision.flex.capacity import expected_flex_contacts, flex_contact_bounds
from jaxsim.engine.collision.table import COLLIDERS

AFFORDABLE_CONTACTS = 32  # bounds up to this are used as they are
NEAR_BOUND = 1.5  # bounds up to this multiple of the estimate are used as they are
AFFORDABLE_JACOBIAN = 4096  # as are bounds whose contact Jacobian has at most this many entries
SPARSE_ROW = 12  # entries counted for a row of a sparse model: two free bodies
LARGE_FACTOR = 1.25  # for models that list no pairs
EXPECTED_PAIR_CONTACTS = 8  # upper limit for one pair, and for two bodies in a heap
FACE_CONTACTS = 4  # of two flat faces
HEAP_NEIGHBOURS = 6  # neighbours of a body among equal ones in a heap; each contact is shared by two
HEAP_MIN_TREES = 3  # a tree that can touch this many others may be in a heap
HEAP_MAX_CONTACTS_PER_BODY = 14  # measured: 6 to 9 for boxes in a bin, 13.5 where they lie flush in a corner
MIN_RADIUS = 1e-9  # of a body
SILENT_MAX_TREES = 2  # a robot and an object: of such models none came near its estimate (docs/decisions/capacities.md)
PASSIVE_MAX_DOFS = 2  # most dofs of a passive tree: a door, a drawer, a knob
SUGGESTED_FACTOR = 1.25  # suggested capacity, relative to the largest use


class Capacity(NamedTuple):
    """Capacities for contacts and for constraint rows, as arguments of `load_model`."""

    max_contacts: int
    max_constraints: int


def default_capacities(m: Model, max_contacts: int | None = None, max_constraints: int | None = None) -> Model:
    """Set the capacities of `m`: those given, otherwise chosen so that ordinary use never overflows."""
    if max_contacts is None:
        max_contacts = expected_contacts(m)
    m = m.replace(max_contacts=max_contacts, max_constraints=0)
    full = make_layout(m).nslot
    return m.replace(max_constraints=full if max_constraints is None else min(max_constraints, full))


def expected_contacts(m: Any) -> int:
    """Estimate a number of contacts that the host model `m` rarely exceeds.

    An affordable bound of all pairs is used as it is. Otherwise the estimate is the sum over trees of the contacts
    expected of each (`_of_listed_pairs`), and suffices for all pairs that overlap at qpos0 or a keyframe, with
    `FACE_CONTACTS` points each.
    """
    flexes, (bound, widest) = expected_flex_contacts(m), _contact_bounds(m)
    if is_affordable(m, flexes + bound):
        return flexes + bound
    if is_large(m):
        total = _of_large_model(m, widest)
    else:
        pairs = candidates(m)
        total = _of_listed_pairs(m, pairs)
        total = max_overlapping_weight(m, pairs, np.minimum(pair_contacts(m, pairs), FACE_CONTACTS), total)
    estimate = max(np.ceil(total), EXPECTED_PAIR_CONTACTS)
    return flexes + int(bound if bound <= NEAR_BOUND * estimate else estimate)


def warn_of_estimate(m: Any) -> None:
    """Issue a `CapacityWarning` where the capacity of a host model is an estimate that a heap may exceed.

    Estimates of one or two trees on fixed geoms are silent: they count contacts with the world in full.
    """
    bound = contact_bound(m)
    if bound > m.max_contacts and (m.nflex or is_large(m) or _active_trees(m) > SILENT_MAX_TREES):
        warn_once_of_estimate(m.max_contacts, bound)


@cache
def warn_once_of_estimate(capacity: int, bound: int) -> None:
    """Issue the warning of an estimate, once in a process for each pair of arguments."""
    warnings.warn(
        f"max_contacts={capacity} is an estimate: all pairs of geoms together could make {bound} contacts. Contacts "
        "beyond the capacity are dropped and counted in d.overflow_contacts; load with max_contacts= to set another "
        "capacity, or use the result of jaxsim.suggest_capacity(m, d) after a simulation",
        CapacityWarning,
        stacklevel=4,  # at the line that loads the model
    )


def is_affordable(m: Any, contacts: int) -> bool:
    """Return whether capacity for this many contacts adds little to the cost of a step."""
    width = SPARSE_ROW if is_sparse(m) else m.nv
    return contacts <= AFFORDABLE_CONTACTS or contacts * max_condim(m) * width <= AFFORDABLE_JACOBIAN


def _of_large_model(m: Any, widest: np.ndarray) -> float:
    """Estimate the contacts of a model without a list of pairs: any of its trees may be heaped on others."""
    tree = m.body_treeid[m.geom_bodyid]
    moving = tree >= 0
    sums = np.bincount(tree[moving], widest[moving], minlength=max(m.ntree, 1))
    widest_of_tree = np.zeros(len(sums))
    np.maximum.at(widest_of_tree, tree[moving], widest[moving])
    heap = np.minimum(LARGE_FACTOR * HEAP_NEIGHBOURS / 2 * widest_of_tree, HEAP_MAX_CONTACTS_PER_BODY)
    return np.maximum(LARGE_FACTOR * np.maximum(_not_all_at_once(sums), widest_of_tree), heap).sum()


def _of_listed_pairs(m: Any, pairs: Candidates) -> float:
    """Estimate the contacts of candidate pairs.

    A rigid body counts with all geoms of the world that its geoms can cover (`neighbours.py`). In a tree with joints
    each geom counts one contact; further contacts with the world and contacts within the tree are discounted, since
    they seldom occur at once. Contacts between two trees count half for each, limited by the number of bodies that fit
    around one. Doors and drawers (`_passive_trees`) count together like one tree, and their contacts with other trees
    count for the other tree.
    """
    if not len(pairs.pair):
        return 0
    passive = _passive_trees(m, m.body_treeid[m.geom_bodyid[pairs.geom]])
    near = group_pairs(m, pairs, _expected_points(m, pairs))
    total, doors = 0.0, 0.0
    order = np.argsort(near.tree, kind="stable")
    cuts = np.flatnonzero(np.diff(near.tree[order])) + 1
    for rows in np.split(order, cuts):
        tree = int(near.tree[rows[0]])
        if tree < 0:
            continue
        part = GroupPairs(*(x[..., rows] for x in near))
        if passive[tree]:
            doors += min(part.contacts[part.other < 0].max(initial=0), EXPECTED_PAIR_CONTACTS)
        else:
            total += _of_tree(part, tree, passive)
    return total + _not_all_at_once(doors)


def _of_tree(near: GroupPairs, tree: int, passive: np.ndarray) -> float:
    """Estimate the contacts of one tree from its pairs of groups, the first of which are its own."""
    fixed, own = near.other < 0, near.other == tree
    others, count = ~fixed & ~own, len(np.unique(near.first))
    single, more = near.single[fixed].sum(), (near.contacts - near.single)[fixed].sum()
    widest = np.zeros(near.first.max() + 1)
    np.maximum.at(widest, near.first[own], np.minimum(near.contacts[own], EXPECTED_PAIR_CONTACTS))
    among_own = widest.sum() / 2
    heaped = len(np.unique(near.other[others & ~passive[near.other]])) >= HEAP_MIN_TREES
    alone = count == 1
    of_doors = passive[near.other[others]]
    limit = np.where(of_doors | heaped, EXPECTED_PAIR_CONTACTS, np.inf)
    contacts = np.minimum(near.contacts[others], limit) * np.where(of_doors, 1, 0.5)
    # a neighbour of equal size takes up a sixth of a body's surface
    room = max(1, count / HEAP_NEIGHBOURS) - (1 / HEAP_NEIGHBOURS if alone and heaped and single else 0)
    radius = near.radius[:, others]
    taken = 4 / HEAP_NEIGHBOURS / (1 + radius[0] / np.maximum(radius[1], MIN_RADIUS)) ** 2
    order = np.argsort(-contacts, kind="stable")
    shared = contacts[order][np.cumsum(taken[order]) - taken[order] / 2 < room * (1 + 1e-9)].sum()
    if alone and heaped:
        return max(single + more, min(single, EXPECTED_PAIR_CONTACTS) + shared)
    if alone:
        return single + more + shared
    return max(single, _not_all_at_once(single + among_own)) + _not_all_at_once(more) / 2 + shared


def _not_all_at_once(points: Any) -> Any:
    """Return the expected number of simultaneous contacts among this number of points."""
    return np.minimum(points, 16) + np.clip(points - 16, 0, 48) / 2 + np.maximum(points - 64, 0) / 8


def contact_bound(m: Any) -> int:
    """Return the largest number of contacts of all pairs together."""
    return _contact_bounds(m)[0] + flex_contact_bounds(m).sum(dtype=int)


def _contact_bounds(m: Any) -> tuple[int, np.ndarray]:
    """Return the largest number of contacts of all pairs of geoms.

    Also returns that of each geom's widest pair for models that list no pairs, else zeros.
    """
    widest = np.zeros(m.ngeom, int)
    if not is_large(m):
        return int(pair_contacts(m, candidates(m)).sum()), widest
    bound = 0
    for t1, t2, count in class_pairs(m.structure):
        points = _type_pair_contacts(m, t1, t2)
        bound += points * count
        of_types = (m.geom_type == t1) | (m.geom_type == t2)
        collidable = of_types & ((m.geom_contype != 0) | (m.geom_conaffinity != 0))
        widest[collidable] = np.maximum(widest[collidable], min(points, EXPECTED_PAIR_CONTACTS))
    return bound, widest


def _expected_points(m: Any, pairs: Candidates) -> np.ndarray:
    """Return the contacts (n,) expected of each candidate pair: of flat faces, of prisms, or of starts of searches."""
    points = pair_contacts(m, pairs)
    expected = np.minimum(points, FACE_CONTACTS).astype(float)
    type1, type2 = m.geom_type[pairs.geom].T
    fields = type2 == GeomType.SDF  # nearly every start ends in a contact
    expected[fields] = points[fields]
    ground = type1 == GeomType.HFIELD
    prisms = _prisms_under(m, *pairs.geom[ground].T)
    expected[ground] = np.minimum(np.maximum(prisms, FACE_CONTACTS), points[ground])
    return expected


def _passive_trees(m: Any, tree: np.ndarray) -> np.ndarray:
    """Return the mask of passive trees, given the trees (n, 2) of pairs: moved by contacts only, with few dofs.

    Doors, drawers and knobs are passive. Trees that may touch each other, like dominoes on hinges, are not, nor are
    fingers that an actuator drives.
    """
    small = np.append(m.tree_dofnum <= PASSIVE_MAX_DOFS, False)  # the last entry stands for static bodies
    small[_driven_trees(m)] = False
    both = tree[small[tree].all(axis=1) & (tree[:, 0] != tree[:, 1])]
    small[both] = False
    return small[: max(m.ntree, 1)]


def _active_trees(m: Any) -> int:
    """Return the number of trees in candidate pairs that are not passive."""
    tree = m.body_treeid[m.geom_bodyid[candidates(m).geom]]
    return int(np.sum(~_passive_trees(m, tree)[np.unique(tree[tree >= 0])]))


def _driven_trees(m: Any) -> np.ndarray:
    """Return the trees with a joint that an actuator moves, directly or by a tendon along joints."""
    of_joint = np.isin(m.actuator_trntype, (TrnType.JOINT, TrnType.JOINTINPARENT))
    tendons = m.actuator_trnid[m.actuator_trntype == TrnType.TENDON, 0]
    pulled = np.isin(np.repeat(np.arange(m.ntendon), m.tendon_num), tendons) & (m.wrap_type == WrapType.JOINT)
    joint = np.concatenate([m.actuator_trnid[of_joint, 0], m.wrap_objid[pulled]]).astype(int)
    return m.body_treeid[m.jnt_bodyid[joint]]


def _prisms_under(m: Any, field: np.ndarray, geom: np.ndarray) -> np.ndarray:
    """Return the number of height-field prisms under a square as wide as half of the geoms' bounds (n,)."""
    hfield = m.geom_dataid[field]
    cells = np.stack([m.hfield_ncol[hfield], m.hfield_nrow[hfield]], axis=1) - 1
    cells_across = m.geom_rbound[geom][:, None] * cells / (2 * np.asarray(m.hfield_size)[hfield, :2])
    return np.minimum(2 * np.prod(cells_across, axis=1), 1e6).astype(int)


def _type_pair_contacts(m: Any, t1: int, t2: int) -> int:
    """Return the largest number of contacts of a pair of these geom types."""
    if t2 == GeomType.SDF and t1 not in (GeomType.PLANE, GeomType.MESH):
        return max(int(m.opt.sdf_initpoints), 1)
    return COLLIDERS[t1, t2].ncon if (t1, t2) in COLLIDERS else EXPECTED_PAIR_CONTACTS


def pair_contacts(m: Any, pairs: Candidates) -> np.ndarray:
    """Return the largest number of contacts of each candidate pair (n,)."""
    if not len(pairs.pair):
        return np.zeros(0, int)
    types, type_pair = np.unique(m.geom_type[pairs.geom], axis=0, return_inverse=True)
    points = [_type_pair_contacts(m, a, b) for a, b in types.tolist()]
    return np.array(points)[type_pair.reshape(-1)]


def suggest_capacity(m: Model, d: Any) -> Capacity:
    """Suggest capacities from simulated data, one world or a batch; runs on the host.

    Takes the most contacts and rows that any world needed since its last reset, dropped ones included, and adds a
    quarter. Prisms of a height field that exceeded the capacity of the search count as contacts: the search has twice
    the capacity of the contact buffer.
    """

    def capacity_for(used: Any) -> int:
        return int(np.ceil(SUGGESTED_FACTOR * np.max(np.asarray(used))))

    contacts = capacity_for(d.maxuse_con)
    if not np.any(m.geom_type == GeomType.HFIELD):
        contacts = min(contacts, contact_bound(m))
    full = make_layout(m.replace(max_contacts=max(contacts, contact_bound(m)))).nslot
    return Capacity(contacts, min(capacity_for(d.maxuse_efc), full))
