"""The step, as a list of stages. Each is a pure function (m, d) -> d with MuJoCo's name."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple

from jaxsim.core.callbacks import Callbacks
from jaxsim.core.data import Data
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.flags import disabled, enabled
from jaxsim.core.model import Model
from jaxsim.core.types import Backend, DisableBit, EnableBit, IntegratorType
from jaxsim.engine.actuation.forces import fwd_actuation
from jaxsim.engine.actuation.transmission import actuator_velocities, transmission
from jaxsim.engine.collision.driver import collision
from jaxsim.engine.constraint.contact_passive import contact_passive
from jaxsim.engine.constraint.make import make_constraint, reference_constraint
from jaxsim.engine.constraint.solve import fwd_constraint
from jaxsim.engine.dynamics.energy import energy_of_sensors, energy_pos, energy_vel
from jaxsim.engine.dynamics.force_matrices import force_of_wrenches, poses_are_current, with_bias_matrices
from jaxsim.engine.dynamics.inertia import crb, factor_m, solve_spd
from jaxsim.engine.dynamics.inertia_jvp import inertia_parts
from jaxsim.engine.dynamics.passive import passive
from jaxsim.engine.dynamics.rne import rne, tendon_bias
from jaxsim.engine.flex.kinematics import edge_velocities, flex
from jaxsim.engine.integrate.explicit import euler, integrate_rk4, rk4_step
from jaxsim.engine.integrate.implicit import implicit
from jaxsim.engine.islands import sleep
from jaxsim.engine.kinematics.com import com_pos, com_vel
from jaxsim.engine.kinematics.kinematics import camlight, kinematics
from jaxsim.engine.sensor.stages import sensor_acc, sensor_pos, sensor_vel
from jaxsim.engine.step.inverse_forces import compare_fwd_inv
from jaxsim.engine.structure.checks import check_acc, check_state, hold
from jaxsim.engine.structure.refusals import refuse
from jaxsim.engine.tendon.tendon import mul_jac, tendon
from jaxsim.interface.public import public
from jaxsim.math.arrays import is_numpy
from jaxsim.native import nvrtc
from jaxsim.native.compiler import ONCE
from jaxsim.native.stage import stage

# As one program a batch of hands with hulls (625 slots) takes 0.6 of the time, of arms with hulls (412, none in use)
# 0.9, of kitchens (2,725) 1.03: docs/decisions/step_in_vectors.md
MOST_SLOTS, MOST_DOFS = 1024, 48


@public
def fwd_position(m: Model, d: Data) -> Data:
    """Compute all stages that depend on positions only."""
    before = d
    d = kinematics(m, d)
    if sleep.sleeps(m):
        d = sleep.wake(m, before, d)
    d = com_pos(m, d)
    d = camlight(m, d)
    if sleep.sleeps(m):
        d = sleep.keep_views(m, before, d)
    d = flex(m, d)
    d = tendon(m, d)
    d = crb(m, d)
    d = factor_m(m, d)
    if sleep.sleeps(m) and m.ntendon:
        d = sleep.wake_tendons(m, d)
    d = collision(m, d)
    if m.callbacks.contact is not None:
        d = d.replace(contact=m.callbacks.contact(m, d))
    if sleep.sleeps(m):
        d = sleep.wake_equalities(m, d)
    d = make_constraint(m, d)
    d = transmission(m, d)
    return sleep.keep_actuators(m, before, d) if sleep.sleeps(m) and m.nu else d


@public
def fwd_velocity(m: Model, d: Data) -> Data:
    """Compute all stages that depend on positions and velocities only."""
    if m.nflexedge:
        d = d.replace(flexedge_velocity=edge_velocities(m, d, d.qvel))
    if m.ntendon:
        d = d.replace(ten_velocity=mul_jac(m, d, d.qvel))
    if m.nu:
        d = d.replace(actuator_velocity=actuator_velocities(m, d))
    d = before = com_vel(m, d)
    d = passive(m, d)
    if m.nflex:
        d = contact_passive(m, d)
    if sleep.sleeps(m):
        d = sleep.keep_forces(m, before, d, "qfrc_spring", "qfrc_passive")
    d = reference_constraint(m, d)
    return d.replace(qfrc_bias=with_bias_matrices(m, d, rne(m, d)) + tendon_bias(m, d))


@public
def fwd_acceleration(m: Model, d: Data) -> Data:
    """Compute the sum of all forces except constraint forces, and the resulting unconstrained acceleration."""
    force = d.qfrc_passive - d.qfrc_bias + d.qfrc_applied + d.qfrc_actuator
    force = force + force_of_wrenches(m, d, d.xfrc_applied[:, :3], d.xfrc_applied[:, 3:])
    qacc = solve_spd(m, d.M, d.qLD, d.qLDiagInv, force, inertia_parts(m, d))
    new = d.replace(qfrc_smooth=force, qacc_smooth=qacc)
    return sleep.keep_forces(m, d, new, "qfrc_smooth", "qacc_smooth") if sleep.sleeps(m) else new


def _with_current_poses(function: Callable[[Model, Data], Data]) -> Callable[[Model, Data], Data]:
    """Return a function whose stages see poses of the positions; poses of trees that sleep may be older."""

    @wraps(function)
    def run(m: Model, d: Data) -> Data:
        with poses_are_current(not sleep.sleeps(m)):
            return function(m, d)

    return run


@_with_current_poses
def dynamics(m: Model, d: Data) -> Data:
    """Compute `forward` without sensors."""
    d = energy_pos(m, fwd_position(m, d))
    d = energy_vel(m, fwd_velocity(m, d))
    d = fwd_actuation(m, _control(m, d))
    d = fwd_acceleration(m, d)
    return fwd_constraint(m, d)


@public
def rungekutta4(m: Model, d: Data) -> Data:
    """Advance the state one time step by the classical fourth-order method, from the results of `forward`."""
    return integrate_rk4(m, d, dynamics)


@public
def forward(m: Model, d: Data) -> Data:
    """Compute forward dynamics: from the state to qacc, with sensors and energy; the state does not change."""
    numbers = is_numpy(m.qpos0, d.qpos)
    return (by_backend(m, _forward) if m.opt.backend and not numbers else _forward)(m, d)


@_with_current_poses
def _forward(m: Model, d: Data) -> Data:
    return _after_control(m, _control(m, _before_control(m, d)))


def _control(m: Model, d: Data) -> Data:
    """Set controls and applied forces by the user's callback, if there is one."""
    if m.callbacks.control is None or disabled(m, DisableBit.ACTUATION):
        return d
    return m.callbacks.control(m, d)


def _before_control(m: Model, d: Data) -> Data:
    refuse(m)
    d = fwd_position(m, d)
    d = sensor_pos(m, d)
    d = energy_of_sensors(m, d)
    d = fwd_velocity(m, d)
    d = sensor_vel(m, d)
    return energy_vel(m, d)


def _after_control(m: Model, d: Data) -> Data:
    d = fwd_actuation(m, d)
    d = fwd_acceleration(m, d)
    d = fwd_constraint(m, d)
    return sensor_acc(m, d)


class Integrator(NamedTuple):
    """Functions that advance the state from the results of `forward`: at the end of `step`, and of `step2`."""

    step: Callable[[Model, Data], Data]
    step2: Callable[[Model, Data], Data]


INTEGRATORS: dict[int, Integrator] = {
    IntegratorType.EULER: Integrator(euler, euler),
    IntegratorType.RK4: Integrator(rungekutta4, euler),  # it would evaluate `step1` again, as in MuJoCo
    IntegratorType.IMPLICIT: Integrator(implicit, implicit),
    IntegratorType.IMPLICITFAST: Integrator(implicit, implicit),
}


def _integrator(m: Model) -> Integrator:
    if m.opt.integrator not in INTEGRATORS:
        raise UnsupportedError(f"the integrator {m.opt.integrator!r} is not supported")
    return INTEGRATORS[m.opt.integrator]


def _integrate(m: Model, d: Data, advance: Callable[[Model, Data], Data]) -> Data:
    d, stopped = check_acc(m, d)
    if enabled(m, EnableBit.FWDINV):
        d = compare_fwd_inv(m, d)
    new = advance(m, d)
    if sleep.sleeps(m):
        new = sleep.settle(m, d, new, _after_position)
    return hold(d, new, stopped)


def _after_position(m: Model, d: Data) -> Data:
    d = sensor_vel(m, fwd_velocity(m, d))
    return _after_control(m, _control(m, energy_vel(m, d)))


@public
def step(m: Model, d: Data) -> Data:
    """Advance one time step: `forward`, then the integrator that `m.opt` names."""
    if is_numpy(m.qpos0, d.qpos):
        return step_by_stages(m, d)
    if m.callbacks == Callbacks():
        return by_backend(m, step_by_stages, "core" if not_in_vectors(m, d) else "batches")(m, d)
    # A callback may have no forward mode, of which the derivative of a program is made. Without native programs a stage
    # gives the same values, but its gradient takes longer.
    return (by_backend(m, step_by_stages) if m.opt.backend or nvrtc.makes_programs() else step_by_stages)(m, d)


def by_backend(
    m: Model,
    function: Callable[..., Any],
    form: str = "plain",
    label: str = "the step",
    alone: tuple[str, ...] = ONCE,
) -> Callable[..., Any]:
    """Return the function as a stage that runs on the backend `m.opt.backend`; `label` and `alone` as for `stage`."""
    return stage(function, "plain" if m.opt.backend == Backend.XLA else form, label, m.opt.backend, alone)


def not_in_vectors(m: Model, d: Data) -> str | None:
    """Return the reason why a batch is not one program for vectors of worlds, or None.

    The program is faster only with few slots.
    """
    slots = d.efc.layout.nslot
    causes = {
        "it has callbacks": m.callbacks != Callbacks(),
        "it has flexes": m.nflex > 0,
        "its rows are sparse": d.efc.layout.sparse,
        "its trees sleep": sleep.sleeps(m),
        f"it has over {MOST_SLOTS} slots of rows ({slots})": slots > MOST_SLOTS,
        f"it has over {MOST_DOFS} dofs": m.nv > MOST_DOFS,
    }
    return next((cause for cause, holds in causes.items() if holds), None)


@_with_current_poses
def step_by_stages(m: Model, d: Data) -> Data:
    # a callback may read sensors, which the loop computes after an evaluation
    if m.opt.integrator == IntegratorType.RK4 and not sleep.sleeps(m) and m.callbacks == Callbacks():
        refuse(m)
        new, before, stopped = rk4_step(m, check_state(m, d), dynamics, partial(_complete, m), check_acc)
        return hold(before, new, stopped)
    return _integrate(m, _forward(m, check_state(m, d)), _integrator(m).step)


def _complete(m: Model, d: Data) -> Data:
    """Compute sensors and comparisons after the first evaluation of the dynamics in a step."""
    d = sensor_acc(m, sensor_vel(m, sensor_pos(m, d)))
    return compare_fwd_inv(m, d) if enabled(m, EnableBit.FWDINV) else d


@public
def step1(m: Model, d: Data) -> Data:
    """Compute the part of `step` before controls and applied forces are set."""
    d = check_state(m, d)
    return _control(m, _before_control(m, d))


@public
def step2(m: Model, d: Data) -> Data:
    """Compute the part of `step` after controls and applied forces are set; RK4 becomes Euler, as in MuJoCo."""
    d = _after_control(m, d)
    return _integrate(m, d, _integrator(m).step2)
