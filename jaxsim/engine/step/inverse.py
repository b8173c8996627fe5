"""Inverse dynamics: from positions, velocities and accelerations to forces."""

from jaxsim.core.data import Data
from jaxsim.core.flags import enabled
from jaxsim.core.model import Model
from jaxsim.core.types import EnableBit
from jaxsim.engine.dynamics.energy import energy_of_sensors, energy_vel
from jaxsim.engine.sensor.stages import sensor_acc, sensor_pos, sensor_vel
from jaxsim.engine.step.forward import fwd_position, fwd_velocity
from jaxsim.engine.step.inverse_forces import continuous_qacc, inv_constraint, inverse_force
from jaxsim.engine.structure.refusals import refuse
from jaxsim.interface.public import public


@public
def inverse(m: Model, d: Data) -> Data:
    """Compute qfrc_inverse: the applied and actuator forces that produce `qacc`, with sensors and energy.

    With the flag invdiscrete, `qacc` is that of a discrete step of the integrator: (new qvel - qvel) / timestep. Raises
    UnsupportedError for invdiscrete with RK4, whose step has no closed inverse.
    """
    refuse(m)
    d = fwd_position(m, d)
    d = energy_of_sensors(m, sensor_pos(m, d))
    d = fwd_velocity(m, d)
    d = energy_vel(m, sensor_vel(m, d))
    given = d.qacc
    if enabled(m, EnableBit.INVDISCRETE):
        d = d.replace(qacc=continuous_qacc(m, d))
    d = inv_constraint(m, d)
    d = sensor_acc(m, d)
    return d.replace(qfrc_inverse=inverse_force(m, d), qacc=given)
