"""Numbers of contacts of flexes: the maximum, and an estimate for ordinary use."""

from typing import Any

import numpy as np

from jaxsim.core.types import MAXCONPAIR
from jaxsim.engine.collision.flex import segments as static
from jaxsim.engine.collision.flex.elements import GEOM_COLLIDERS
from jaxsim.engine.structure import flex_tables as tables

FULL_SEGMENTS = 4  # of a flex that are expected to be full at once
VERTICES_PER_CONTACT = 2  # of a flex with many vertices


def flex_contact_bounds(m: Any) -> np.ndarray:
    """Return the largest number of contacts of each segment (n,)."""
    of = static.segments(m)
    count = np.where(of.kind == static.GEOM, 0, MAXCONPAIR)
    if not static.collides(m) or not len(count):
        return count
    np.add.at(count, static.plane_vertices(m).segment, 1)
    np.add.at(count, static.sdf_geoms(m)[:, 2], MAXCONPAIR)
    for dim, (ids, _) in tables.elements(m).items():
        pairs, flex = static.geom_elements(m, dim), tables.element_flex(m)[ids]
        for geom, segment, allowed in zip(pairs.geom, pairs.segment, pairs.allowed, strict=True):
            kind = GEOM_COLLIDERS.get((int(m.geom_type[geom]), dim))
            np.add.at(count, segment[flex[allowed]], kind.ncon if kind else MAXCONPAIR)
    return np.minimum(count, MAXCONPAIR)


def expected_flex_contacts(m: Any) -> int:
    """Estimate a number of contacts of flexes that the host model `m` rarely exceeds.

    Each flex counts with all its segments, up to `FULL_SEGMENTS` full ones, or a contact for every
    `VERTICES_PER_CONTACT` of its vertices if that is more.
    """
    bound, of = flex_contact_bounds(m), static.segments(m)
    total = np.bincount(of.flex[:, 1], bound, minlength=m.nflex)
    return int(np.minimum(total, np.maximum(FULL_SEGMENTS * MAXCONPAIR, m.flex_vertnum // VERTICES_PER_CONTACT)).sum())
