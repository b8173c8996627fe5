"""The stages of MJX's pipeline by its names: functions of `mjx.Model` and `mjx.Data`."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from jaxsim import stages
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.types import ConeType, IntegratorType
from jaxsim.engine.dynamics.rne import rne as rne_force
from jaxsim.engine.dynamics.rne import tendon_bias as tendon_force
from jaxsim.engine.integrate.derivative import smooth_vel
from jaxsim.engine.sensor.velocity import subtree_vel as subtree_velocities
from jaxsim.engine.step import forward as engine
from jaxsim.engine.step.inverse import inverse as inverse_dynamics
from jaxsim.math.safe import Array
from jaxsim.mjx.arguments import takes_mjx
from jaxsim.mjx.types import Data, Model, symmetric


def _stage(function: Callable[..., Any]) -> Callable[[Model, Data], Data]:
    """Return the stage as a function of the wrapped model and data."""

    def stage(m: Model, d: Data) -> Data:
        return Data(function(m.model, d.data), d.structure)

    stage.__name__, stage.__doc__ = function.__name__, function.__doc__
    return takes_mjx(stage)


step = _stage(engine.step)
forward = _stage(engine.forward)
inverse = _stage(inverse_dynamics)
fwd_position = _stage(stages.fwd_position)
fwd_velocity = _stage(stages.fwd_velocity)
fwd_actuation = _stage(stages.fwd_actuation)
fwd_acceleration = _stage(stages.fwd_acceleration)
kinematics = _stage(stages.kinematics)
com_pos = _stage(stages.com_pos)
com_vel = _stage(stages.com_vel)
camlight = _stage(stages.camlight)
tendon = _stage(stages.tendon)
crb = _stage(stages.crb)
factor_m = _stage(stages.factor_m)
make_constraint = _stage(stages.make_constraint)
transmission = _stage(stages.transmission)
passive = _stage(stages.passive)
sensor_pos = _stage(stages.sensor_pos)
sensor_vel = _stage(stages.sensor_vel)
sensor_acc = _stage(stages.sensor_acc)
rne_postconstraint = _stage(stages.rne_post_constraint)
euler = _stage(stages.euler)
rungekutta4 = _stage(stages.rungekutta4)
solve = _stage(stages.fwd_constraint)
subtree_vel = _stage(subtree_velocities)


@takes_mjx
def collision(m: Model, d: Data) -> Data:
    """Compute the contacts of `d`, with the addresses of their rows.

    They are the rows of `make_constraint` if the numbers of other rows do not change. In MJX the rows of contacts never
    move, so that `efc_address` is known before there are rows.
    """
    data = stages.collision(m.model, d.data)
    contact = data.contact
    pyramid = jnp.where(contact.dim > 1, 2 * (contact.dim - 1), 1)
    rows = contact.dim if m.model.opt.cone == ConeType.ELLIPTIC else pyramid
    rows = jnp.where((contact.dim > 0) & (contact.exclude == 0), rows, 0)
    first = data.ne + data.nf + data.nl + jnp.cumsum(rows) - rows
    address = jnp.where(rows > 0, first, -1)
    return Data(data.replace(contact=contact.replace(efc_address=address)), d.structure)


@takes_mjx
def implicit(m: Model, d: Data) -> Data:
    """Advance one step by the integrator implicitfast, or by implicit if the model's options name it."""
    model = m.model
    if model.opt.integrator != IntegratorType.IMPLICIT:
        model = model.replace(opt=model.opt.replace(integrator=IntegratorType.IMPLICITFAST))
    return Data(stages.implicit(model, d.data), d.structure)


@takes_mjx
def deriv_smooth_vel(m: Model, d: Data) -> Array:
    """Compute the derivative (nv, nv) of the forces of actuators, dampers and tendons by velocity, without fluids."""
    if m.model.opt.fluid:
        raise UnsupportedError("deriv_smooth_vel with a fluid is not supported")
    return symmetric(d.structure, smooth_vel(m.model, d.data))


@takes_mjx
def rne(m: Model, d: Data, flg_acc: bool = False) -> Data:
    """Set qfrc_bias: Coriolis, centrifugal and gravitational forces, with inertial ones if `flg_acc`."""
    force = rne_force(m.model, d.data, d.qacc) if flg_acc else rne_force(m.model, d.data)
    return d.replace(qfrc_bias=force)


@takes_mjx
def tendon_armature(m: Model, d: Data) -> Data:
    """Return `d` unchanged: `crb` has added the armature of tendons to M."""
    return d


@takes_mjx
def tendon_bias(m: Model, d: Data) -> Data:
    """Add the bias force of the armature of tendons to qfrc_bias."""
    return d.replace(qfrc_bias=d.qfrc_bias + tendon_force(m.model, d.data))
