"""How many contacts and constraint rows a model needs room for."""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.engine.collision.broadphase import class_pairs, is_large
from jaxsim.engine.collision.pairs import Candidates, candidates
from jaxsim.engine.collision.table import COLLIDERS
from jaxsim.layout import is_sparse, make_layout
from jaxsim.model import Model
from jaxsim.types import GeomType

PACKED = 1.25  # more than USUAL on a body, in a scene of many
USUAL = 8  # no pair is expected to make more contacts than this
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
    """A number of contacts that the model hardly ever exceeds, never more than its pairs can make.

    Every moving geom may touch something with all the points that its widest pair can make. Geoms of one kinematic
    tree do not all touch at once: beyond 16 points of a tree only half of them count, beyond 64 an eighth. Scenes of
    many trees, whose rows cost little, get `PACKED` times as much: a pile of boxes in a bin makes 6 to 9 points a box.
    """
    most, widest = _points_of_geoms(m)
    tree = m.body_treeid[m.geom_bodyid]
    sums = np.bincount(tree[tree >= 0], widest[tree >= 0], minlength=1)
    share = np.minimum(sums, 16) + np.clip(sums - 16, 0, 48) / 2 + np.maximum(sums - 64, 0) / 8
    total = share.sum() * (PACKED if is_sparse(m) else 1)
    return int(min(most, max(np.ceil(total), USUAL)))


def most_contacts(m: Any) -> int:
    """The number of contacts that all pairs together can make."""
    return _points_of_geoms(m)[0]


def _points_of_geoms(m: Any) -> tuple[int, np.ndarray]:
    """The most contacts of all pairs together, and for each geom those of its widest pair, `USUAL` at most (ngeom,)."""
    widest = np.zeros(m.ngeom, int)
    if is_large(m):
        most = 0
        for t1, t2, count in class_pairs(m.structure):
            points = _points(m, t1, t2)
            most += points * count
            either = (m.geom_type == t1) | (m.geom_type == t2)
            able = either & ((m.geom_contype != 0) | (m.geom_conaffinity != 0))
            widest[able] = np.maximum(widest[able], min(points, USUAL))
        return most, widest
    pairs = candidates(m)
    if not len(pairs.pair):
        return 0, widest
    points = pair_points(m, pairs)
    fields = m.geom_type[pairs.geom[:, 1]] == GeomType.SDF  # make a contact for nearly every start
    np.maximum.at(widest, pairs.geom.reshape(-1), np.repeat(np.where(fields, points, np.minimum(points, USUAL)), 2))
    return int(points.sum()), widest


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
    quarter to spare.
    """

    def room(used: Any, limit: int) -> int:
        return int(min(np.ceil(SLACK * np.max(np.asarray(used))), limit))

    most = most_contacts(m)
    full = make_layout(m.replace(max_contacts=most)).nslot
    return Capacity(room(d.maxuse_con, most), room(d.maxuse_efc, full))
