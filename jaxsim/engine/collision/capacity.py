"""How many contacts and constraint rows a model needs room for."""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.engine.collision.pairs import Candidates, candidates
from jaxsim.engine.collision.table import COLLIDERS
from jaxsim.layout import make_layout
from jaxsim.model import Model

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
    tree do not all touch at once: beyond 16 points of a tree only half of them count, beyond 64 an eighth. Beyond 2048
    points of a whole scene a quarter counts.
    """
    pairs = candidates(m)
    if not len(pairs.pair):
        return 0
    points = pair_points(m, pairs)
    widest = np.zeros(m.ngeom, int)
    np.maximum.at(widest, pairs.geom.reshape(-1), np.repeat(np.minimum(points, USUAL), 2))
    tree = m.body_treeid[m.geom_bodyid]
    sums = np.bincount(tree[tree >= 0], widest[tree >= 0], minlength=1)
    share = np.minimum(sums, 16) + np.clip(sums - 16, 0, 48) / 2 + np.maximum(sums - 64, 0) / 8
    total = share.sum()
    total = min(total, 2048) + max(total - 2048, 0) / 4
    return int(min(points.sum(), max(np.ceil(total), USUAL)))


def pair_points(m: Any, pairs: Candidates) -> np.ndarray:
    """The most contacts that each candidate pair can make (n,)."""
    types, which = np.unique(m.geom_type[pairs.geom], axis=0, return_inverse=True)
    points = [COLLIDERS[a, b].ncon if (a, b) in COLLIDERS else USUAL for a, b in types.tolist()]
    return np.array(points)[which.reshape(-1)]


def suggest_capacity(m: Model, d: Any) -> Capacity:
    """Capacities for a model from data that were really simulated, one world or a batch; host-side.

    Takes the most contacts and rows that any world asked for since its last reset, dropped ones included, with a
    quarter to spare.
    """

    def room(used: Any, limit: int) -> int:
        return int(min(np.ceil(SLACK * np.max(np.asarray(used))), limit))

    pairs = candidates(m)
    most = int(pair_points(m, pairs).sum()) if len(pairs.pair) else 0
    full = make_layout(m.replace(max_contacts=most)).nslot
    return Capacity(room(d.maxuse_con, most), room(d.maxuse_efc, full))
