"""The plugin mujoco.pid: PID controllers of actuator length, with limits on integral and slew.

Gains and bounds are read from the plugin's configuration (structure). The first activations of an actuator are its
integral (with an integral gain) and the control of the previous step (with a slew rate); the last is that of its own
dynamics, if it has any, and then replaces the control as the target.
"""

from typing import NamedTuple

import numpy as np

from jaxsim.core import plugins
from jaxsim.core.data import Data
from jaxsim.core.errors import ModelError
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import DynType
from jaxsim.math.arrays import take, take_or_zero
from jaxsim.math.safe import Array, xp_of

NAME = "mujoco.pid"
WITH_STATE = (DynType.INTEGRATOR, DynType.FILTER, DynType.FILTEREXACT)


class Pid(NamedTuple):
    """All PID actuators, static (k,): ids, gains, bounds (infinite if absent), addresses in `act` or -1."""

    ids: np.ndarray
    kp: np.ndarray
    ki: np.ndarray
    kd: np.ndarray
    max_integral: np.ndarray
    slew: np.ndarray
    integral: np.ndarray
    previous: np.ndarray
    last: np.ndarray


@per_structure
def pids(m) -> Pid:
    """Return the PID actuators of a model. Raises ModelError for a negative bound or a wrong `actdim`."""
    rows = []
    for instance in np.flatnonzero(m.plugin == plugins.PLUGINS[NAME].slot).tolist():
        texts = plugins.config(m, instance)
        values = {k: plugins.leading_number(v) for k, v in texts.items()}
        kp, ki, kd = (values[k] or 0.0 for k in ("kp", "ki", "kd"))
        given = {k: None if texts[k] == "" else values[k] or 0.0 for k in ("imax", "slewmax")}
        bound = given["imax"] / ki if given["imax"] is not None and ki else np.inf
        slew = np.inf if given["slewmax"] is None else given["slewmax"]
        if bound < 0 or slew < 0:
            raise ModelError(f"plugin {NAME}: imax and slewmax must not be negative")
        for i in np.flatnonzero(m.actuator_plugin == instance):
            first, own = m.actuator_actadr[i], int(ki != 0) + int(given["slewmax"] is not None)
            wanted = own + int(m.actuator_dyntype[i] in WITH_STATE)
            if m.actuator_actnum[i] != wanted:
                raise ModelError(f"plugin {NAME}: actuator {i} needs actdim {wanted}; it has {m.actuator_actnum[i]}")
            integral = first if ki else -1
            previous = first + int(ki != 0) if given["slewmax"] is not None else -1
            last = -1 if m.actuator_dyntype[i] == DynType.NONE else first + m.actuator_actnum[i] - 1
            rows.append((i, kp, ki, kd, bound, slew, integral, previous, last))
    table = np.array(rows, float).reshape(-1, 9).T
    return Pid(table[0].astype(int), *table[1:6], *table[6:].astype(int))


def _followed(m: Model, d: Data, p: Pid, act: Array) -> Array:
    """Return the targets of the controllers (k,): the control, or the activation of their dynamics, slew-limited."""
    xp = xp_of(d.ctrl, act)
    ctrl = take(d.ctrl, p.ids)
    limited = m.actuator_ctrllimited[p.ids].astype(bool)
    if limited.any():
        low, high = take(m.actuator_ctrlrange, p.ids).T
        ctrl = xp.where(limited, xp.minimum(xp.maximum(ctrl, low), high), ctrl)
    ctrl = xp.where(p.last >= 0, take_or_zero(act, p.last), ctrl)
    if not (p.previous >= 0).any():
        return ctrl
    bounded = np.isfinite(p.slew)
    step = np.where(bounded, p.slew, 0) * m.opt.timestep  # an infinite factor would make the derivative NaN
    before, room = take_or_zero(d.act, p.previous), xp.where((d.time > 0) & bounded, step, np.inf)
    bound = xp.minimum(xp.maximum(ctrl, before - room), before + room)
    return xp.where(p.previous >= 0, bound, ctrl)


def _next_integral(m: Model, d: Data, p: Pid, error: Array) -> Array:
    xp = xp_of(error, d.act)
    integral = take_or_zero(d.act, p.integral) + error * m.opt.timestep
    bound = p.max_integral.astype(error.dtype)
    return xp.minimum(xp.maximum(integral, -bound), bound)


def activation_rates(m: Model, d: Data) -> list[tuple[np.ndarray, Array]]:
    """Return the addresses in `act` of integrals and previous controls, and their rates."""
    p = pids(m)
    h = m.opt.timestep
    ctrl = _followed(m, d, p, d.act)
    integral = _next_integral(m, d, p, ctrl - take(d.actuator_length, p.ids))
    parts = []
    for place, value in ((p.integral, integral), (p.previous, ctrl)):
        at = np.flatnonzero(place >= 0)
        parts.append((place[at], take((value - take_or_zero(d.act, place)) / h, at)))
    return parts


def force(m: Model, d: Data, ahead: Array) -> tuple[np.ndarray, Array]:
    """Return the ids of the PID actuators and their forces; `ahead` are the activations (na,) of the next step."""
    p = pids(m)
    xp = xp_of(d.act, ahead)
    early = np.zeros(m.na, bool)
    early[p.last[(p.last >= 0) & m.actuator_actearly[p.ids].astype(bool)]] = True
    ctrl = _followed(m, d, p, xp.where(early, ahead, d.act) if early.any() else d.act)
    error = ctrl - take(d.actuator_length, p.ids)
    rate = take_or_zero(d.act_dot, p.last) - take(d.actuator_velocity, p.ids)
    return p.ids, p.kp * error + p.kd * rate + p.ki * _next_integral(m, d, p, error)
