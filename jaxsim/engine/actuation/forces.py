"""Stage `fwd_actuation`: from controls and activations to forces."""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.flags import disabled
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import MINVAL, DisableBit, DynType, TrnType, WarningType
from jaxsim.engine.actuation import dcmotor, laws, pid
from jaxsim.engine.actuation.transmission import mul_moment_t
from jaxsim.engine.islands import sleep
from jaxsim.engine.structure.checks import is_bad, warn
from jaxsim.engine.structure.history import delayed_controls
from jaxsim.interface.public import public
from jaxsim.math.arrays import add_at, assemble, is_numpy, merge, take, take_or_zero
from jaxsim.math.safe import Array, divide, xp_of


@public
def fwd_actuation(m: Model, d: Data) -> Data:
    """Compute act_dot, actuator_force and qfrc_actuator."""
    xp = xp_of(d.ctrl, d.qvel)
    if not m.nu or disabled(m, DisableBit.ACTUATION):
        return d.replace(actuator_force=xp.zeros(m.nu, d.qvel.dtype), qfrc_actuator=xp.zeros(m.nv, d.qvel.dtype))
    laws.refuse_unknown(m)
    ctrl, d = _controls(m, d)
    ctrl = _slewed(m, d, ctrl)
    rates = _activation_rates(m, d, ctrl)
    if sleep.sleeps(m) and m.na:  # rates of sleeping actuators do not change
        rates = xp.where(take(sleep.awake_actuators(m, d), _activation_owner(m)), rates, d.act_dot)
    d = d.replace(act_dot=rates)
    gain = _gain(m, d)
    force = gain * _input(m, d, ctrl) + _bias(m, d, gain)
    force = xp.where(disabled_actuators(m), 0, force) if disabled_actuators(m).any() else force
    if len(pid.pids(m).ids):  # disabled groups do not affect PID actuators
        force = merge(force, *pid.force(m, d, next_activation(m, d, d.act_dot)))
    force = _limit_tendon_force(m, force)
    force = clamp(force, m.actuator_forcerange, m.actuator_forcelimited)
    if len(dcmotor.motors(m)):
        force = force + _motor_friction(m, d)
    if sleep.sleeps(m):
        force = xp.where(sleep.awake_actuators(m, d), force, 0)
    qfrc = mul_moment_t(m, d, force)
    if m.ngravcomp and m.jnt_actgravcomp.any() and not disabled(m, DisableBit.GRAVITY):
        qfrc = qfrc + xp.where(m.jnt_actgravcomp[m.dof_jntid], d.qfrc_gravcomp, 0)
    limited = np.flatnonzero(m.jnt_actfrclimited)
    if len(limited):
        dof_range = take_or_zero(m.jnt_actfrcrange, _first_dofs(m))
        qfrc = clamp(qfrc, dof_range, _first_dofs(m) >= 0)
    return d.replace(actuator_force=force, qfrc_actuator=qfrc)


@per_structure
def _first_dofs(m) -> np.ndarray:
    """Return the joint of each dof that is the first of a joint with a limited actuator force, else -1."""
    joint = np.full(m.nv, -1)
    limited = np.flatnonzero(m.jnt_actfrclimited)
    joint[m.jnt_dofadr[limited]] = limited
    return joint


def clamp(x: Array, bounds: Array, limited: np.ndarray) -> Array:
    """Clip `x` to its range where it is limited."""
    limited = limited.astype(bool)
    if not limited.any():
        return x
    xp = xp_of(x, bounds)
    # at a bound the derivative is the inner one; `minimum` would give the mean of both sides
    clipped = xp.where(x < bounds[:, 0], bounds[:, 0], xp.where(x > bounds[:, 1], bounds[:, 1], x))
    return clipped if limited.all() else xp.where(limited, clipped, x)


def disabled_actuators(m: Model) -> np.ndarray:
    """Return the mask of actuators that the option disableactuator disables, by their groups."""
    group = m.actuator_group
    listed = (group >= 0) & (group <= 30)
    return listed & ((m.opt.disableactuator >> np.where(listed, group, 0)) & 1).astype(bool)


def _controls(m: Model, d: Data) -> tuple[Array, Data]:
    """Return the clamped controls; if one of them is NaN or diverged, all are zero and a warning is counted."""
    ctrl = delayed_controls(m, d) if (m.actuator_history[:, 0] > 0).any() else d.ctrl
    if not disabled(m, DisableBit.CLAMPCTRL):
        ctrl = clamp(ctrl, m.actuator_ctrlrange, m.actuator_ctrllimited)
    bad = is_bad(ctrl)
    ctrl = xp_of(ctrl).where(bad.any(), 0, ctrl)
    return ctrl, d if is_numpy(bad) else warn(d, WarningType.BADCTRL, bad)


def _activation_rates(m: Model, d: Data, ctrl: Array) -> Array:
    """Compute the rates (na,) of all activations; zero for those without a law."""
    if not m.na:
        return d.act_dot
    stateful = m.actuator_actadr >= 0
    rates = laws.evaluated(laws.RATES, np.where(stateful, m.actuator_dyntype, -1), m, d, ctrl)
    parts = [(laws.last_activation(m)[ids], rate) for ids, rate in rates]
    if len(dcmotor.motors(m)):
        motor = dcmotor.read(m, d)
        parts.append(dcmotor.to_act(m, motor, dcmotor.rates(m, motor, take(ctrl, dcmotor.motors(m)))))
    users = np.flatnonzero(stateful & (m.actuator_dyntype == DynType.USER))
    if len(users) and m.callbacks.act_dyn is not None:
        index = np.flatnonzero(np.isin(_activation_owner(m), users))
        parts.append((index, m.callbacks.numbers("act_dyn", len(index), d.act, m, d, users)))
    if len(pid.pids(m).ids):
        parts += pid.activation_rates(m, d)
    return assemble(parts, m.na, d.act)


def _slewed(m: Model, d: Data, ctrl: Array) -> Array:
    """Limit the controls of DC motors by their slew rates."""
    ids = dcmotor.motors(m)
    if not dcmotor.roles(m).dynamics.any():
        return ctrl
    bound = dcmotor.slewed_control(dcmotor.read(m, d), take(ctrl, ids), m.opt.timestep)
    return merge(ctrl, ids, xp_of(bound).where(dcmotor.roles(m).dynamics, bound, take(ctrl, ids)))


def _motor_friction(m: Model, d: Data) -> Array:
    """Compute cogging and friction of DC motors: (nu,)."""
    motor = dcmotor.read(m, d)
    force = dcmotor.mechanical_force(motor, dcmotor.from_act(m, motor, d.act_dot))
    on = dcmotor.roles(m).bias & ~disabled_actuators(m)[dcmotor.motors(m)]
    return add_at(dcmotor.motors(m), xp_of(force).where(on, force, 0), m.nu)


@per_structure
def _activation_owner(m) -> np.ndarray:
    """Return the actuator of each activation."""
    owner = np.full(m.na, -1)
    for i in range(m.nu):
        if m.actuator_actadr[i] >= 0:
            owner[m.actuator_actadr[i] : m.actuator_actadr[i] + m.actuator_actnum[i]] = i
    return owner


def next_activation(m: Model, d: Data, act_dot: Array) -> Array:
    """Compute the activations (na,) one time step ahead, clamped to their ranges."""
    xp = xp_of(d.act, act_dot)
    owner, h = _activation_owner(m), m.opt.timestep
    exact = m.actuator_dyntype[owner] == DynType.FILTEREXACT
    rate = act_dot * h
    if exact.any():
        tau = xp.maximum(take(m.actuator_dynprm, owner)[:, 0], MINVAL)
        tau = xp.where(exact, tau, 1)
        rate = xp.where(exact, -act_dot * tau * xp.expm1(-h / tau), rate)
    limited = m.actuator_actlimited[owner] & (m.actuator_dyntype[owner] != DynType.DCMOTOR)
    act = clamp(d.act + rate, take(m.actuator_actrange, owner), limited)
    if len(dcmotor.motors(m)):
        motor = dcmotor.read(m, d)
        states = dcmotor.next_states(m, motor, dcmotor.from_act(m, motor, act_dot))
        act = merge(act, *dcmotor.to_act(m, motor, states))
    return act


def advance_activation(m: Model, d: Data, act_dot: Array) -> Array:
    """Compute the activations after a step; those of disabled actuators do not change."""
    if not m.na or disabled(m, DisableBit.ACTUATION):
        return d.act
    held = disabled_actuators(m)[_activation_owner(m)]
    return next_activation(m, d, xp_of(act_dot).where(held, 0, act_dot) if held.any() else act_dot)


def _input(m: Model, d: Data, ctrl: Array) -> Array:
    """Return the factor of the gain: the control, or the last activation (of the next step if it acts early)."""
    last, xp = laws.last_activation(m), xp_of(ctrl, d.act)
    stateful = last >= 0
    value = ctrl
    if stateful.any():
        act = take_or_zero(d.act, last)
        early = stateful & m.actuator_actearly
        if early.any():
            act = xp.where(early, take_or_zero(next_activation(m, d, d.act_dot), last), act)
        value = xp.where(stateful, act, ctrl)
    ids = dcmotor.motors(m)
    if dcmotor.roles(m).gain.any():  # without a current state, the voltage drives the motor
        motor, there = dcmotor.read(m, d), take(value, ids)
        voltage = dcmotor.drive(motor, take(ctrl, ids))
        driven = dcmotor.roles(m).gain & (~stateful[ids] | ~motor.present[:, dcmotor.CURRENT])
        value = merge(value, ids, xp.where(driven, voltage, there))
    return value


def _gain(m: Model, d: Data) -> Array:
    """Compute the gains (nu,)."""
    parts = laws.evaluated(laws.GAINS, m.actuator_gaintype, m, d)
    if dcmotor.roles(m).gain.any():
        mine = np.flatnonzero(dcmotor.roles(m).gain)
        parts.append((dcmotor.motors(m)[mine], take(dcmotor.gain(dcmotor.read(m, d)), mine)))
    return assemble(parts, m.nu, m.actuator_gainprm)


def _bias(m: Model, d: Data, gain: Array) -> Array:
    """Compute the biases (nu,); those of DC motors follow from their gains."""
    parts = laws.evaluated(laws.BIASES, m.actuator_biastype, m, d)
    if dcmotor.roles(m).bias.any():
        mine = np.flatnonzero(dcmotor.roles(m).bias)
        emf = dcmotor.back_emf(dcmotor.read(m, d), take(gain, dcmotor.motors(m)))
        parts.append((dcmotor.motors(m)[mine], take(emf, mine)))
    return assemble(parts, m.nu, m.actuator_biasprm)


def _limit_tendon_force(m: Model, force: Array) -> Array:
    """Scale the forces of actuators of one tendon so that their sum stays within the tendon's range."""
    tendon = np.where(m.actuator_trntype == TrnType.TENDON, m.actuator_trnid[:, 0], -1)
    limited = (tendon >= 0) & m.tendon_actfrclimited[tendon] if m.ntendon else np.zeros(m.nu, bool)
    # a limit applies only if one of its actuators is enabled
    if not (limited & ~disabled_actuators(m)).any():
        return force
    xp = xp_of(force)
    total = take(add_at(np.where(limited, tendon, -1), force, m.ntendon), np.where(limited, tendon, 0))
    bounds = take(m.tendon_actfrcrange, np.where(limited, tendon, 0))
    clipped = xp.minimum(xp.maximum(total, bounds[:, 0]), bounds[:, 1])
    return force * xp.where(limited & (total != 0), divide(clipped, total, 1.0), 1)


def control_range(m: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper limit (nu,) of the control of each actuator; -1 and 1 where it has none."""
    low, high = np.asarray(m.actuator_ctrlrange).reshape(-1, 2).T
    limited = np.asarray(m.actuator_ctrllimited, bool)
    return np.where(limited, low, -1.0), np.where(limited, high, 1.0)
