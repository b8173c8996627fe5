"""Data of the sweeps of the noslip solver, one world."""

from typing import NamedTuple

import numpy as np

from jaxsim.core.layout import Layout
from jaxsim.core.types import ConstraintType
from jaxsim.math.safe import Array


class SweepProblem(NamedTuple):
    """A world at the start of the sweeps; arrays over slots (nslot,) unless stated otherwise."""

    factor: Array  # L with M = L L' (nv, nv)
    y: Array  # L' a for the acceleration a with `force` (nv,)
    general: Array | None  # Jacobian of dry friction in tendons (n, nv), or None
    contact: Array | None  # Jacobian of contacts (ncontact, condim, nv); None without friction
    friction: Array | None  # coefficients (ncontact, condim - 1)
    aref: Array
    active: Array
    bound: Array  # largest force of dry friction
    force: Array
    regular: Array  # R
    label: Array  # of the island
    tolerance: Array  # ()
    scale: Array  # ()


def friction_slots(layout: Layout) -> np.ndarray:
    """Return the slots of dry friction in MuJoCo's order: dofs, then tendons."""
    dofs = np.arange(layout.offsets[1], layout.offsets[2])
    return np.concatenate([dofs, np.flatnonzero(layout.general.type == ConstraintType.FRICTION_TENDON)])


def has_pairs(layout: Layout) -> bool:
    """Return whether contacts are pyramids, whose opposing edges are updated in pairs."""
    return layout.pyramidal and layout.condim > 1 and layout.ncontact > 0
