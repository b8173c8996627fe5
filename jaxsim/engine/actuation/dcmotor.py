"""DC motors: voltage (or a controller that sets it), current, temperature and friction with up to five states.

The states of a motor have a fixed order in `act` (slew, integral, temperature, bristle, current); its parameters decide
which of them exist, so that their addresses are computed. All functions act on all motors at once.
"""

from typing import NamedTuple

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import MINVAL, BiasType, DynType, GainType
from jaxsim.math.arrays import take, take_or_zero
from jaxsim.math.safe import Array, divide, xp_of

STATES = 5
SLEW, INTEGRAL, TEMPERATURE, BRISTLE, CURRENT = range(STATES)


class Roles(NamedTuple):
    """Masks (k,) of the roles of a motor as a DC motor, static: its dynamics, its gain, its bias."""

    dynamics: np.ndarray
    gain: np.ndarray
    bias: np.ndarray


@per_structure
def motors(m) -> np.ndarray:
    """Return the ids of the actuators that are DC motors by any of dynamics, gain and bias."""
    kinds = (m.actuator_dyntype == DynType.DCMOTOR, m.actuator_gaintype == GainType.DCMOTOR)
    return np.flatnonzero(kinds[0] | kinds[1] | (m.actuator_biastype == BiasType.DCMOTOR))


@per_structure
def roles(m) -> Roles:
    """Return the roles of the motors."""
    ids = motors(m)
    return Roles(
        m.actuator_dyntype[ids] == DynType.DCMOTOR,
        m.actuator_gaintype[ids] == GainType.DCMOTOR,
        m.actuator_biastype[ids] == BiasType.DCMOTOR,
    )


@per_structure
def _addresses(m) -> np.ndarray:
    """Return the addresses in `act` of the states of each motor, padded with -1: (k, 5)."""
    ids = motors(m)
    place = np.arange(STATES)
    return np.where(place < m.actuator_actnum[ids][:, None], m.actuator_actadr[ids][:, None] + place, -1)


class Motor(NamedTuple):
    """Parameters and state of the motors, (k,) each; `present` and `state` (k, 5), `where` (k, states, places)."""

    resistance: Array
    constant: Array
    alpha: Array
    reference: Array
    kp: Array
    ki: Array
    kd: Array
    max_voltage: Array
    mode: Array
    electrical_time: Array
    max_current_rate: Array
    thermal_resistance: Array
    thermal_capacitance: Array
    ambient: Array
    sigma0: Array
    sigma1: Array
    slew: Array
    max_integral: Array
    cogging: Array
    poles: Array
    phase: Array
    coulomb: Array
    static: Array
    stribeck: Array
    length: Array
    velocity: Array
    present: Array
    where: Array
    state: Array


def read(m: Model, d: Data) -> Motor:
    """Read the motors of a state."""
    ids = motors(m)
    xp = xp_of(m.actuator_gainprm, d.act)
    gain, dyn, bias = (take(x, ids).T for x in (m.actuator_gainprm, m.actuator_dynprm, m.actuator_biasprm))
    mode = xp.floor(gain[8])
    present = xp.stack([dyn[7] > 0, gain[5] > 0, dyn[2] > 0, dyn[5] > 0, dyn[0] > 0], axis=1)
    place = xp.cumsum(present, axis=1) - 1
    where = present[:, :, None] & (place[:, :, None] == np.arange(STATES))
    state = xp.where(where, take_or_zero(d.act, _addresses(m))[:, None], 0).sum(-1)
    moving = take(d.actuator_length, ids), take(d.actuator_velocity, ids)
    return Motor._make((*gain[:8], mode, *dyn[:9], *bias[:6], *moving, present, where, state))


def _hot_resistance(p: Motor) -> Array:
    rise = p.state[:, TEMPERATURE] + p.ambient - p.reference
    factor = xp_of(rise).where(p.present[:, TEMPERATURE], 1 + p.alpha * rise, 1)
    return p.resistance * factor


def _voltage(p: Motor, ctrl: Array) -> Array:
    """Return the output of the controller, or the control itself, within the limits of the supply."""
    xp = xp_of(ctrl, p.kp)
    integral = p.state[:, INTEGRAL]
    position = p.kp * (ctrl - p.length) + p.ki * integral - p.kd * p.velocity
    velocity = p.kp * (ctrl - p.velocity) + p.ki * (integral - p.length)
    volts = xp.where(p.mode == 1, position, xp.where(p.mode > 0, velocity, ctrl))
    bound = xp.where(p.max_voltage > 0, p.max_voltage, np.inf)
    return xp.minimum(xp.maximum(volts, -bound), bound)


def _bristle_decay(p: Motor) -> Array:
    xp = xp_of(p.velocity, p.stribeck)
    ratio = p.velocity / xp.maximum(p.stribeck, MINVAL)
    friction = p.coulomb + (p.static - p.coulomb) * xp.exp(-ratio * ratio)
    return -p.sigma0 * abs(p.velocity) / xp.maximum(friction, MINVAL)


def slewed_control(p: Motor, ctrl: Array, h: Array) -> Array:
    """Limit the change of the control since the previous step by the slew rate."""
    xp = xp_of(ctrl, p.slew)
    before, room = p.state[:, SLEW], p.slew * h
    return xp.where(p.present[:, SLEW], xp.minimum(xp.maximum(ctrl, before - room), before + room), ctrl)


def rates(m: Model, p: Motor, ctrl: Array) -> Array:
    """Compute the rates of the five states (k, 5) for slewed controls; those of absent states have no meaning."""
    xp = xp_of(ctrl, p.kp)
    h = m.opt.timestep
    integral = p.state[:, INTEGRAL]
    grow = xp.where(p.mode == 1, ctrl - p.length, ctrl)
    bounded = p.max_integral > 0
    grow = xp.where(bounded & (integral >= p.max_integral), xp.minimum(grow, 0), grow)
    grow = xp.where(bounded & (integral < p.max_integral) & (integral <= -p.max_integral), xp.maximum(grow, 0), grow)
    volts, ohms = _voltage(p, ctrl), _hot_resistance(p)
    steady = divide(volts - p.constant * p.velocity, ohms)
    current = p.state[:, CURRENT]
    flowing = xp.where(p.present[:, CURRENT], current, steady)
    lost = divide(p.state[:, TEMPERATURE], p.thermal_resistance)
    heat = divide(ohms * flowing * flowing - lost, p.thermal_capacitance)
    slide = _bristle_decay(p) * p.state[:, BRISTLE] + p.velocity
    bound = xp.where(p.max_current_rate > 0, p.max_current_rate, np.inf)
    surge = xp.minimum(xp.maximum(divide(steady - current, p.electrical_time), -bound), bound)
    return xp.stack([(ctrl - p.state[:, SLEW]) / h, grow, heat, slide, surge], axis=1)


def next_states(m: Model, p: Motor, rate: Array) -> Array:
    """Advance the five states (k, 5) by one time step."""
    xp = xp_of(rate, p.kp)
    h = m.opt.timestep
    new = p.state + h * rate
    te = xp.maximum(p.electrical_time, MINVAL)
    current = p.state[:, CURRENT] - rate[:, CURRENT] * te * xp.expm1(-h / te)
    decay = _bristle_decay(p)
    slow = abs(decay) <= MINVAL
    driven = xp.where(slow, h, xp.expm1(decay * h) / xp.where(slow, 1, decay))
    bristle = xp.exp(decay * h) * p.state[:, BRISTLE] + driven * p.velocity
    bound = xp.where(p.max_integral > 0, p.max_integral, np.inf)
    integral = xp.minimum(xp.maximum(new[:, INTEGRAL], -bound), bound)
    return xp.stack([new[:, SLEW], integral, new[:, TEMPERATURE], bristle, current], axis=1)


def to_act(m: Model, p: Motor, states: Array) -> tuple[np.ndarray, Array]:
    """Return the addresses in `act` of all states of motor dynamics, and their values from (k, 5) states."""
    address = np.where(roles(m).dynamics[:, None], _addresses(m), -1)
    values = xp_of(states).where(p.where, states[:, :, None], 0).sum(1)
    flat = np.flatnonzero(address.reshape(-1) >= 0)
    return address.reshape(-1)[flat], take(values.reshape(-1), flat)


def from_act(m: Model, p: Motor, act_dot: Array) -> Array:
    """Return the rates of the five states (k, 5) from `act_dot`, zero for absent states."""
    return xp_of(act_dot).where(p.where, take_or_zero(act_dot, _addresses(m))[:, None], 0).sum(-1)


def gain(p: Motor) -> Array:
    """Return the force (k,) for unit current if the current is a state, else for unit voltage."""
    xp = xp_of(p.constant)
    return xp.where(p.present[:, CURRENT], p.constant, p.constant / xp.maximum(_hot_resistance(p), MINVAL))


def drive(p: Motor, ctrl: Array) -> Array:
    """Return the voltage (k,) of slewed controls: the controller's, if there is one, else the control itself."""
    return xp_of(ctrl, p.kp).where(p.mode > 0, _voltage(p, ctrl), ctrl)


def back_emf(p: Motor, gain: Array) -> Array:
    """Compute the force of the induced voltage (k,) at a given gain; zero if the current is a state."""
    return xp_of(gain).where(p.present[:, CURRENT], 0, -gain * p.constant * p.velocity)


def mechanical_force(p: Motor, rate: Array) -> Array:
    """Compute cogging and friction (k,), which the limits of the electric force do not bound."""
    xp = xp_of(rate, p.cogging)
    friction = p.sigma0 * p.state[:, BRISTLE] + p.sigma1 * rate[:, BRISTLE]
    cogging = p.cogging * xp.sin(p.poles * p.length + p.phase)
    return cogging - xp.where(p.present[:, BRISTLE], friction, 0)


def force_derivative(m: Model, p: Motor) -> Array:
    """Compute the derivative of the force by velocity (k,), for the implicit integrators, at the cold resistance."""
    xp = xp_of(p.resistance, m.opt.timestep)
    ohms = xp.maximum(p.resistance, MINVAL)
    stateful, role = p.present[:, CURRENT], roles(m)
    by_voltage = p.constant * xp.where(p.mode == 1, -p.kd, xp.where(p.mode == 2, -p.kp, 0)) / ohms
    induced = p.constant * p.constant / ohms
    settled = -xp.expm1(-m.opt.timestep / xp.where(stateful, p.electrical_time, 1))
    of_gain = xp.where(stateful, (by_voltage - induced) * settled, by_voltage) - xp.maximum(p.sigma1, 0)
    of_bias = xp.where(stateful, 0, -induced)
    return xp.where(role.gain, of_gain, 0) + xp.where(role.bias, of_bias, 0)
