"""Default and suggested capacities for contacts and constraint rows."""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.layout import is_sparse, make_layout
from jaxsim.core.model import Model
from jaxsim.core.types import GeomType, TrnType, WrapType
from jaxsim.engine.collision.broad.broadphase import class_pairs, is_large
from jaxsim.engine.collision.broad.overlap import max_overlapping_weight
from jaxsim.engine.collision.broad.pairs import Candidates, candidates
from jaxsim.engine.collision.flex.capacity import expected_flex_contacts, flex_contact_bounds
from jaxsim.engine.collision.table import COLLIDERS

SPARSE_FACTOR = 1.25  # contacts of a model whose constraint rows are sparse, relative to others
EXPECTED_PAIR_CONTACTS = 8  # no pair is expected to make more contacts
FACE_CONTACTS = 4  # of two flat faces
HEAP_PAIRS_PER_BODY = 3  # six neighbours, each shared by two bodies
HEAP_MAX_CONTACTS_PER_BODY = 14  # measured: 6 to 9 for boxes in a bin, 13.5 where they lie flush in a corner
PASSIVE_MAX_DOFS = 2  # trees of so few dofs are moved by what touches them: doors, drawers, knobs
SUGGESTED_FACTOR = 1.25  # suggested capacities, relative to the largest use that was seen


class Capacity(NamedTuple):
    """Capacities for contacts and for constraint rows, as arguments of `load_model`."""

    max_contacts: int
    max_constraints: int


def default_capacities(m: Model, max_contacts: int | None = None, max_constraints: int | None = None) -> Model:
    """`m` with its capacities set: those given, otherwise chosen so that ordinary use never overflows."""
    if max_contacts is None:
        max_contacts = expected_contacts(m)
    m = m.replace(max_contacts=max_contacts, max_constraints=0)
    full = make_layout(m).nslot
    return m.replace(max_constraints=full if max_constraints is None else min(max_constraints, full))


def expected_contacts(m: Any) -> int:
    """A number of contacts that the host model `m` rarely exceeds, never more than its pairs can make.

    Every moving geom may touch something with all the points of its widest pair. Geoms of one kinematic tree do not all
    touch at once: beyond 16 points of a tree only half of them count, beyond 64 an eighth. Nor do doors and drawers
    (`_passive_trees`): they count together like one tree, each with the points of a pair, and what they share with
    other trees counts for those. A tree that may be heaped on others counts with the points of at least
    `HEAP_PAIRS_PER_BODY` pairs. They are limited by `EXPECTED_PAIR_CONTACTS`, and in models with sparse rows, which
    cost little, by `HEAP_MAX_CONTACTS_PER_BODY`. The capacity also suffices for all pairs that overlap at qpos0 or a
    keyframe, with `FACE_CONTACTS` points each.
    """
    flexes = expected_flex_contacts(m)
    bound, widest, heaped, passive = _contact_bounds(m)
    factor, limit = (SPARSE_FACTOR, HEAP_MAX_CONTACTS_PER_BODY) if is_sparse(m) else (1, EXPECTED_PAIR_CONTACTS)
    tree = m.body_treeid[m.geom_bodyid]
    moving = tree >= 0
    sums = np.bincount(tree[moving], widest[moving], minlength=max(m.ntree, 1))
    widest_of_tree, heap = np.zeros((2, len(sums)))
    np.maximum.at(widest_of_tree, tree[moving], widest[moving])
    np.maximum.at(heap, tree[moving], np.minimum(factor * HEAP_PAIRS_PER_BODY * widest[moving], limit))
    own = factor * np.maximum(_not_all_at_once(sums), widest_of_tree)
    total = np.where(passive, 0, np.maximum(own, np.where(heaped, heap, 0))).sum()
    total += factor * _not_all_at_once(widest_of_tree[passive].sum())
    if not is_large(m):
        pairs = candidates(m)
        weight = np.minimum(pair_contacts(m, pairs), FACE_CONTACTS) if len(pairs.pair) else np.zeros(0)
        total = max_overlapping_weight(m, pairs, weight, total)
    return flexes + int(min(bound, max(np.ceil(total), EXPECTED_PAIR_CONTACTS)))


def _not_all_at_once(points: np.ndarray) -> np.ndarray:
    """How many of so many points are expected to touch at a time."""
    return np.minimum(points, 16) + np.clip(points - 16, 0, 48) / 2 + np.maximum(points - 64, 0) / 8


def contact_bound(m: Any) -> int:
    """The number of contacts that all pairs together can make."""
    return _contact_bounds(m)[0] + flex_contact_bounds(m).sum(dtype=int)


def _contact_bounds(m: Any) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """The most contacts of all pairs; those of each geom's widest pair; which trees may be heaped, which are passive.

    A pair counts with `EXPECTED_PAIR_CONTACTS` at most, except height fields and SDFs, which make one contact for each
    prism or start.
    """
    widest, none = np.zeros(m.ngeom, int), np.zeros(max(m.ntree, 1), bool)
    if is_large(m):
        bound = 0
        for t1, t2, count in class_pairs(m.structure):
            points = _type_pair_contacts(m, t1, t2)
            bound += points * count
            of_types = (m.geom_type == t1) | (m.geom_type == t2)
            collidable = of_types & ((m.geom_contype != 0) | (m.geom_conaffinity != 0))
            widest[collidable] = np.maximum(widest[collidable], min(points, EXPECTED_PAIR_CONTACTS))
        return bound, widest, ~none, none
    pairs = candidates(m)
    if not len(pairs.pair):
        return 0, widest, none, none
    points = pair_contacts(m, pairs)
    expected = np.minimum(points, EXPECTED_PAIR_CONTACTS)
    fields = m.geom_type[pairs.geom[:, 1]] == GeomType.SDF  # make a contact for nearly every start
    expected[fields] = points[fields]
    tree = m.body_treeid[m.geom_bodyid[pairs.geom]]
    passive = _passive_trees(m, tree)
    counts = (tree[:, ::-1] < 0) | (tree < 0) | ~passive[tree]
    np.maximum.at(widest, pairs.geom[counts], np.broadcast_to(expected[:, None], counts.shape)[counts])
    ground = m.geom_type[pairs.geom[:, 0]] == GeomType.HFIELD
    prisms = np.minimum(_prisms_under(m, *pairs.geom[ground].T), points[ground])
    np.add.at(widest, pairs.geom[ground, 1], np.where(prisms > EXPECTED_PAIR_CONTACTS, prisms, 0))
    counted = np.sort(tree[counts.all(axis=1)], axis=1)
    tree_pairs = np.unique(counted[(counted[:, 0] >= 0) & (counted[:, 0] != counted[:, 1])], axis=0)
    heaped = np.bincount(tree_pairs.reshape(-1), minlength=len(none)) >= HEAP_PAIRS_PER_BODY
    return int(points.sum()), widest, heaped, passive


def _passive_trees(m: Any, tree: np.ndarray) -> np.ndarray:
    """The trees that only what touches them moves, given the trees (n, 2) of pairs: few dofs, and not among themselves.

    Doors, drawers and knobs are such trees; dominoes on hinges are not, nor are fingers that an actuator drives.
    """
    small = np.append(m.tree_dofnum <= PASSIVE_MAX_DOFS, False)  # the last one stands for what does not move
    small[_driven_trees(m)] = False
    both = tree[small[tree].all(axis=1) & (tree[:, 0] != tree[:, 1])]
    small[both] = False
    return small[: max(m.ntree, 1)]


def _driven_trees(m: Any) -> np.ndarray:
    """Trees with a joint that an actuator moves, itself or by a tendon along joints."""
    of_joint = np.isin(m.actuator_trntype, (TrnType.JOINT, TrnType.JOINTINPARENT))
    tendons = m.actuator_trnid[m.actuator_trntype == TrnType.TENDON, 0]
    pulled = np.isin(np.repeat(np.arange(m.ntendon), m.tendon_num), tendons) & (m.wrap_type == WrapType.JOINT)
    joint = np.concatenate([m.actuator_trnid[of_joint, 0], m.wrap_objid[pulled]]).astype(int)
    return m.body_treeid[m.jnt_bodyid[joint]]


def _prisms_under(m: Any, field: np.ndarray, geom: np.ndarray) -> np.ndarray:
    """Number of prisms of height fields under a square as wide as half of the geoms' bounds (n,)."""
    hfield = m.geom_dataid[field]
    cells = np.stack([m.hfield_ncol[hfield], m.hfield_nrow[hfield]], axis=1) - 1
    cells_across = m.geom_rbound[geom][:, None] * cells / (2 * np.asarray(m.hfield_size)[hfield, :2])
    return np.minimum(2 * np.prod(cells_across, axis=1), 1e6).astype(int)


def _type_pair_contacts(m: Any, t1: int, t2: int) -> int:
    """The most contacts of a pair of these geom types."""
    if t2 == GeomType.SDF and t1 not in (GeomType.PLANE, GeomType.MESH):
        return max(int(m.opt.sdf_initpoints), 1)
    return COLLIDERS[t1, t2].ncon if (t1, t2) in COLLIDERS else EXPECTED_PAIR_CONTACTS


def pair_contacts(m: Any, pairs: Candidates) -> np.ndarray:
    """The most contacts of each candidate pair (n,)."""
    types, type_pair = np.unique(m.geom_type[pairs.geom], axis=0, return_inverse=True)
    points = [_type_pair_contacts(m, a, b) for a, b in types.tolist()]
    return np.array(points)[type_pair.reshape(-1)]


def suggest_capacity(m: Model, d: Any) -> Capacity:
    """Capacities from data that were really simulated, one world or a batch; host-side.

    Takes the most contacts and rows that any world needed since its last reset, dropped ones included, and a quarter
    more. Prisms of a height field that exceeded the capacity of the search count as contacts: the search has twice the
    capacity of the contact buffer.
    """

    def capacity_for(used: Any) -> int:
        return int(np.ceil(SUGGESTED_FACTOR * np.max(np.asarray(used))))

    contacts = capacity_for(d.maxuse_con)
    if not np.any(m.geom_type == GeomType.HFIELD):
        contacts = min(contacts, contact_bound(m))
    full = make_layout(m.replace(max_contacts=max(contacts, contact_bound(m)))).nslot
    return Capacity(contacts, min(capacity_for(d.maxuse_efc), full))
