"""Rows of joint and tendon limits, for the sensors that read them."""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import ConstraintType
from jaxsim.math.arrays import take_or_zero
from jaxsim.math.safe import Array


def first_limit(m: Model, d: Data, constraint_type: ConstraintType, ids: np.ndarray, value: Array) -> Array:
    """Return `value` (nslot,) in the row of the lower limit if active, else of the upper one if active, else zero."""
    slots = np.full((len(ids), 2), -1)
    layout = d.efc.layout
    general = layout.general
    for row, i in zip(slots, ids, strict=True):
        rows_of_limit = np.flatnonzero((general.type == constraint_type) & (general.id == i))
        if constraint_type == ConstraintType.LIMIT_JOINT and len(rows_of_limit) == 0:
            index = np.flatnonzero(layout.limit_jnt == i)
            rows_of_limit = layout.offsets[2] + np.concatenate([index, index + layout.nlimit])
        row[: len(rows_of_limit)] = rows_of_limit
    active = take_or_zero(d.efc.active, slots)
    rows = take_or_zero(value, slots)
    return jnp.where(active[:, 0], rows[:, 0], jnp.where(active[:, 1], rows[:, 1], 0))
