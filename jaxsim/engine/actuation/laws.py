"""Laws of actuators by type, as tables: activation dynamics, gains and biases. A new law is one function and one row.

Each function computes its law for all actuators of a type at once, given their static ids (k,): a rate of activation
from `(m, d, ids, ctrl)`, a gain or a bias from `(m, d, ids)`, all (k,). The force is gain * input + bias. DC motors
(`dcmotor.py`) and PID actuators (`pid.py`) couple these three and are not in the tables.

The row of a gain or a bias states whether it depends on velocity. If it does, implicit integrators differentiate it.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import MINVAL, BiasType, DynType, GainType
from jaxsim.engine.actuation import muscle
from jaxsim.math.arrays import take
from jaxsim.math.safe import Array, xp_of


@per_structure
def last_activation(m) -> np.ndarray:
    """Return the address in `act` of the activation that makes the force of each actuator, -1 if it has none."""
    return np.where(m.actuator_actnum > 0, m.actuator_actadr + m.actuator_actnum - 1, -1)


def _integrator(m: Model, d: Data, ids: np.ndarray, ctrl: Array) -> Array:
    """Return the control as the rate."""
    return take(ctrl, ids)


def _filter(m: Model, d: Data, ids: np.ndarray, ctrl: Array) -> Array:
    """Compute the rate of a low-pass filter of the control with the time constant dynprm[0]."""
    tau = xp_of(d.act, ctrl).maximum(take(m.actuator_dynprm, ids)[:, 0], MINVAL)
    return (take(ctrl, ids) - take(d.act, last_activation(m)[ids])) / tau


def _muscle_rate(m: Model, d: Data, ids: np.ndarray, ctrl: Array) -> Array:
    act = take(d.act, last_activation(m)[ids])
    return muscle.activation_rate(take(ctrl, ids), act, take(m.actuator_dynprm, ids))


def _affine(m: Model, d: Data, ids: np.ndarray, prm: Array) -> Array:
    """Compute prm[0] + prm[1] * length + prm[2] * velocity."""
    prm = take(prm, ids)
    return prm[:, 0] + prm[:, 1] * take(d.actuator_length, ids) + prm[:, 2] * take(d.actuator_velocity, ids)


def _fixed_gain(m: Model, d: Data, ids: np.ndarray) -> Array:
    return take(m.actuator_gainprm[:, 0], ids)


def _user_gain(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the callback's gains, or ones without a callback."""
    prm = m.actuator_gainprm
    if m.callbacks.act_gain is None:
        return xp_of(prm, d.qvel).ones(len(ids), prm.dtype)
    return m.callbacks.numbers("act_gain", len(ids), prm, m, d, ids)


def _affine_gain(m: Model, d: Data, ids: np.ndarray) -> Array:
    return _affine(m, d, ids, m.actuator_gainprm)


def _muscle_gain(m: Model, d: Data, ids: np.ndarray) -> Array:
    args = (d.actuator_length, d.actuator_velocity, m.actuator_lengthrange, m.actuator_acc0, m.actuator_gainprm)
    return muscle.gain(*(take(x, ids) for x in args))


def _affine_bias(m: Model, d: Data, ids: np.ndarray) -> Array:
    return _affine(m, d, ids, m.actuator_biasprm)


def _muscle_bias(m: Model, d: Data, ids: np.ndarray) -> Array:
    args = (d.actuator_length, m.actuator_lengthrange, m.actuator_acc0, m.actuator_biasprm)
    return muscle.bias(*(take(x, ids) for x in args))


def _user_bias(m: Model, d: Data, ids: np.ndarray) -> Array:
    """Return the callback's biases, or zeros without a callback."""
    prm = m.actuator_biasprm
    if m.callbacks.act_bias is None:
        return xp_of(prm, d.qvel).zeros(len(ids), prm.dtype)
    return m.callbacks.numbers("act_bias", len(ids), prm, m, d, ids)


class ForceLaw(NamedTuple):
    """A gain or a bias, and whether implicit integrators take its derivative by `d.actuator_velocity`."""

    value: Callable[[Model, Data, np.ndarray], Array]
    of_velocity: bool

    def __call__(self, m: Model, d: Data, ids: np.ndarray) -> Array:
        return self.value(m, d, ids)


RATES: dict[DynType, Callable[[Model, Data, np.ndarray, Array], Array]] = {
    DynType.INTEGRATOR: _integrator,
    DynType.FILTER: _filter,
    DynType.FILTEREXACT: _filter,
    DynType.MUSCLE: _muscle_rate,
}
GAINS: dict[GainType, ForceLaw] = {
    GainType.FIXED: ForceLaw(_fixed_gain, of_velocity=False),
    GainType.USER: ForceLaw(_user_gain, of_velocity=False),  # MuJoCo has no derivatives of callbacks
    GainType.AFFINE: ForceLaw(_affine_gain, of_velocity=True),
    GainType.MUSCLE: ForceLaw(_muscle_gain, of_velocity=True),
}
BIASES: dict[BiasType, ForceLaw] = {
    BiasType.AFFINE: ForceLaw(_affine_bias, of_velocity=True),
    BiasType.MUSCLE: ForceLaw(_muscle_bias, of_velocity=False),
    BiasType.USER: ForceLaw(_user_bias, of_velocity=False),
}


def refuse_unknown(m: Model):
    """Raise UnsupportedError for types that are neither in a table nor in a module of their own."""
    found = {
        "dyntype": (m.actuator_dyntype, (*RATES, DynType.NONE, DynType.DCMOTOR, DynType.USER)),
        "gaintype": (m.actuator_gaintype, (*GAINS, GainType.DCMOTOR)),
        "biastype": (m.actuator_biastype, (*BIASES, BiasType.NONE, BiasType.DCMOTOR)),
    }
    for name, (kinds, known) in found.items():
        unknown = kinds[~np.isin(kinds, known)]
        if len(unknown):
            raise UnsupportedError(f"actuators with {name} {unknown[0]} are not supported")


def evaluated(table: dict, kinds: np.ndarray, *args: Array) -> list[tuple[np.ndarray, Array]]:
    """Evaluate the laws of a table; return parts for `assemble`: ids of the actuators of each type, and values.

    Args:
        kinds: (nu,) the actuators' types, -1 where none applies.
        args: m, d and, for rates, ctrl; the ids are inserted after d.
    """
    m, d, *rest = args
    groups = ((law, np.flatnonzero(kinds == kind)) for kind, law in table.items())
    return [(ids, law(m, d, ids, *rest)) for law, ids in groups if len(ids)]


def of_velocity(table: dict, kinds: np.ndarray) -> dict:
    """Return the rows of a table of force laws that depend on velocity and that the model has."""
    return {kind: law for kind, law in table.items() if law.of_velocity and (kinds == kind).any()}


def by_velocity(table: dict, kinds: np.ndarray, m: Model, d: Data) -> list[tuple[np.ndarray, Array]]:
    """Return parts for `assemble`: derivatives by `d.actuator_velocity` of the force laws that depend on it."""

    def derivative(law: ForceLaw, m: Model, d: Data, ids: np.ndarray) -> Array:
        velocity = jnp.asarray(d.actuator_velocity)
        along = lambda v: law(m, d.replace(actuator_velocity=v), ids)  # noqa: E731
        return jax.jvp(along, (velocity,), (jnp.ones_like(velocity),))[1]

    rows = {kind: partial(derivative, law) for kind, law in of_velocity(table, kinds).items()}
    return evaluated(rows, kinds, m, d)
