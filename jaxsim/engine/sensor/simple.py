"""Sensors that read one field of their object, or the row of its limit."""

import operator
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.core.contact import Constraint
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import ConstraintType
from jaxsim.math.arrays import take, take_or_zero
from jaxsim.math.safe import Array

Sensor = Callable[[Model, Data, np.ndarray], Array]


def field_of_object(name: str) -> Sensor:
    """Return the sensor that reads a field of `Data`, in the row of the sensor's object."""
    return lambda m, d, ids: take(getattr(d, name), m.sensor_objid[ids])


def limits(read: Callable[[Constraint], Array]) -> tuple[Sensor, Sensor]:
    """Return the sensors that read a value (nslot,) of constraint rows in those of limits of joints, and of tendons."""

    def of(kind: ConstraintType) -> Sensor:
        return lambda m, d, ids: _first_limit(d, kind, m.sensor_objid[ids], read(d.efc))

    return of(ConstraintType.LIMIT_JOINT), of(ConstraintType.LIMIT_TENDON)


JOINT_LIMIT_POS, TENDON_LIMIT_POS = limits(lambda efc: efc.pos - efc.margin)
JOINT_LIMIT_VEL, TENDON_LIMIT_VEL = limits(operator.attrgetter("vel"))
JOINT_LIMIT_FRC, TENDON_LIMIT_FRC = limits(operator.attrgetter("force"))


def _first_limit(d: Data, constraint_type: ConstraintType, ids: np.ndarray, value: Array) -> Array:
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
