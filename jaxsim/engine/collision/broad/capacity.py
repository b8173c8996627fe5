"""How many contacts and constraint rows a model needs room for."""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.layout import is_sparse, make_layout
from jaxsim.core.model import Model
from jaxsim.core.types import GeomType
from jaxsim.engine.collision.broad.broadphase import class_pairs, is_large
from jaxsim.engine.collision.broad.overlap import most_overlapping
from jaxsim.engine.collision.broad.pairs import Candidates, candidates
from jaxsim.engine.collision.table import COLLIDERS

PACKED = 1.25  # more than usual in a scene of many trees
USUAL = 8  # no pair is expected to make more contacts than this
FACE = 4  # points of two flat faces that meet
CROWD = 3  # pairs for each body of a heap: six neighbours, each shared by two
HEAP = 14  # contacts for each body of a large heap: boxes make 6 to 9 in a bin, 13.5 where they lie flush in a corner
SLACK = 1.25  # room to leave above what was seen


class Capacity(NamedTuple):
    """Room for contacts and for constraint rows, as `load_model` takes them."""

    max_contacts: int
    max_constraints: int


def default_capacities(m: Model, max_contacts: int | None = None, max_constraints: int | None = None) -> Model:
    """`m` with its capacities set: those given, else chosen so that ordinary use never overflows."""
    if max_contacts is None:
        max_contacts = expected_contacts(m)
    m = m.replace(max_contacts=max_contacts, max_constraints=0)
    full = make_layout(m).nslot
    return m.replace(max_constraints=full if max_constraints is None else min(max_constraints, full))


def expected_contacts(m: Any) -> int:
    """A number of contacts that the host model `m` hardly ever exceeds, never more than its pairs can make.

    Every moving geom may touch something with all the points that its widest pair can make. Geoms of one kinematic
    tree do not all touch at once: beyond 16 points of a tree only half of them count, beyond 64 an eighth. A tree that
    may be heaped on others makes at least the points of `CROWD` pairs, up to `USUAL`, in large scenes, whose rows cost
    little, up to `HEAP`. And there is room for all pairs that overlap at qpos0 or a keyframe, with `FACE` points each.
    """
    most, widest, heaped = _points_of_geoms(m)
    more, limit = (PACKED, HEAP) if is_sparse(m) else (1, USUAL)
    tree = m.body_treeid[m.geom_bodyid]
    moving = tree >= 0
    sums = np.bincount(tree[moving], widest[moving], minlength=max(m.ntree, 1))
    share = np.minimum(sums, 16) + np.clip(sums - 16, 0, 48) / 2 + np.maximum(sums - 64, 0) / 8
    alone, crowd = np.zeros((2, len(sums)))
    np.maximum.at(alone, tree[moving], widest[moving])
    np.maximum.at(crowd, tree[moving], np.minimum(more * CROWD * widest[moving], limit))
    total = np.maximum(more * np.maximum(share, alone), np.where(heaped, crowd, 0)).sum()
    if not is_large(m):
        pairs = candidates(m)
        faces = np.minimum(pair_points(m, pairs), FACE) if len(pairs.pair) else np.zeros(0)
        total = most_overlapping(m, pairs, faces, total)
    return int(min(most, max(np.ceil(total), USUAL)))


def most_contacts(m: Any) -> int:
    """The number of contacts that all pairs together can make."""
    return _points_of_geoms(m)[0]


def _points_of_geoms(m: Any) -> tuple[int, np.ndarray, np.ndarray]:
    """The most contacts of all pairs together, for each geom those of its widest pair, which trees may be heaped.

    A pair counts for `USUAL` at most, but where one contact is made for each prism or start: height fields and SDFs.
    """
    widest = np.zeros(m.ngeom, int)
    if is_large(m):
        most = 0
        for t1, t2, count in class_pairs(m.structure):
            points = _points(m, t1, t2)
            most += points * count
            either = (m.geom_type == t1) | (m.geom_type == t2)
            able = either & ((m.geom_contype != 0) | (m.geom_conaffinity != 0))
            widest[able] = np.maximum(widest[able], min(points, USUAL))
        return most, widest, np.ones(max(m.ntree, 1), bool)
    pairs = candidates(m)
    heaped = np.zeros(max(m.ntree, 1), bool)
    if not len(pairs.pair):
        return 0, widest, heaped
    points = pair_points(m, pairs)
    usual = np.minimum(points, USUAL)
    fields = m.geom_type[pairs.geom[:, 1]] == GeomType.SDF  # make a contact for nearly every start
    usual[fields] = points[fields]
    np.maximum.at(widest, pairs.geom.reshape(-1), np.repeat(usual, 2))
    ground = m.geom_type[pairs.geom[:, 0]] == GeomType.HFIELD
    prisms = np.minimum(_prisms(m, *pairs.geom[ground].T), points[ground])
    np.add.at(widest, pairs.geom[ground, 1], np.where(prisms > USUAL, prisms, 0))
    tree = np.sort(m.body_treeid[m.geom_bodyid[pairs.geom]], axis=1)
    both = np.unique(tree[(tree[:, 0] >= 0) & (tree[:, 0] != tree[:, 1])], axis=0)
    heaped[:] = np.bincount(both.reshape(-1), minlength=len(heaped)) >= CROWD
    return int(points.sum()), widest, heaped


def _prisms(m: Any, field: np.ndarray, geom: np.ndarray) -> np.ndarray:
    """Prisms of height fields under a square as wide as half of the geoms' bounds (n,)."""
    which = m.geom_dataid[field]
    cells = np.stack([m.hfield_ncol[which], m.hfield_nrow[which]], axis=1) - 1
    across = m.geom_rbound[geom][:, None] * cells / (2 * np.asarray(m.hfield_size)[which, :2])
    return np.minimum(2 * np.prod(across, axis=1), 1e6).astype(int)


def _points(m: Any, t1: int, t2: int) -> int:
    if t2 == GeomType.SDF and t1 not in (GeomType.PLANE, GeomType.MESH):
        return max(int(m.opt.sdf_initpoints), 1)
    return COLLIDERS[t1, t2].ncon if (t1, t2) in COLLIDERS else USUAL


def pair_points(m: Any, pairs: Candidates) -> np.ndarray:
    """The most contacts that each candidate pair can make (n,)."""
    types, which = np.unique(m.geom_type[pairs.geom], axis=0, return_inverse=True)
    points = [_points(m, a, b) for a, b in types.tolist()]
    return np.array(points)[which.reshape(-1)]


def suggest_capacity(m: Model, d: Any) -> Capacity:
    """Capacities for a model from data that were really simulated, one world or a batch; host-side.

    Takes the most contacts and rows that any world asked for since its last reset, dropped ones included, with a
    quarter to spare. Prisms of a height field for which there was no room count as contacts: the search among them has
    twice as much room as there is for contacts.
    """

    def room(used: Any) -> int:
        return int(np.ceil(SLACK * np.max(np.asarray(used))))

    contacts = room(d.maxuse_con)
    if not np.any(m.geom_type == GeomType.HFIELD):
        contacts = min(contacts, most_contacts(m))
    full = make_layout(m.replace(max_contacts=max(contacts, most_contacts(m)))).nslot
    return Capacity(contacts, min(room(d.maxuse_efc), full))
