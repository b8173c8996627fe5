"""Limits that sensors ask for: the first active row of a joint's or a tendon's limit."""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import ConstraintType
from jaxsim.math.arrays import take_or_zero
from jaxsim.math.safe import Array


def first_limit(m: Model, d: Data, kind: ConstraintType, ids: np.ndarray, value: Array) -> Array:
    """`value` of the rows (nslot,) at the lower side of the limit if it is active, else at the upper one, else zero."""
    slots = np.full((len(ids), 2), -1)
    layout = d.efc.layout
    general = layout.general
    for row, i in zip(slots, ids, strict=True):
        found = np.flatnonzero((general.type == kind) & (general.id == i))
        if kind == ConstraintType.LIMIT_JOINT and len(found) == 0:
            place = np.flatnonzero(layout.limit_jnt == i)
            found = layout.offsets[2] + np.concatenate([place, place + layout.nlimit])
        row[: len(found)] = found
    active = take_or_zero(d.efc.active, slots)
    rows = take_or_zero(value, slots)
    return jnp.where(active[:, 0], rows[:, 0], jnp.where(active[:, 1], rows[:, 1], 0))
