"""jaxsim: a differentiable physics engine in JAX that reads MJCF and URDF and speaks MuJoCo's names."""

from jaxsim.callbacks import Callbacks
from jaxsim.data import Contact, Data, make_data, reset_data
from jaxsim.engine.collision.capacity import suggest_capacity
from jaxsim.engine.forward import (
    camlight,
    collision,
    com_pos,
    com_vel,
    crb,
    energy_pos,
    energy_vel,
    euler,
    factor_m,
    forward,
    fwd_acceleration,
    fwd_actuation,
    fwd_constraint,
    fwd_position,
    fwd_velocity,
    implicit,
    kinematics,
    make_constraint,
    passive,
    reference_constraint,
    rne,
    rungekutta4,
    sensor_acc,
    sensor_pos,
    sensor_vel,
    step,
    step1,
    step2,
    tendon,
    transmission,
)
from jaxsim.engine.history import init_ctrl_history, init_sensor_history, read_ctrl, read_sensor
from jaxsim.engine.inverse import inverse
from jaxsim.engine.ray import multiRay, ray
from jaxsim.engine.rollout import rollout
from jaxsim.engine.set_const import set_const
from jaxsim.engine.transition import differentiate_pos, transition_derivatives
from jaxsim.errors import ModelError, UnsupportedError
from jaxsim.interop import from_mujoco, to_mujoco
from jaxsim.load import load_model
from jaxsim.model import Model, Option, Statistic

__version__ = "0.1.0"
__all__ = [
    "Callbacks",
    "Contact",
    "Data",
    "Model",
    "ModelError",
    "Option",
    "Statistic",
    "UnsupportedError",
    "camlight",
    "collision",
    "com_pos",
    "com_vel",
    "crb",
    "differentiate_pos",
    "energy_pos",
    "energy_vel",
    "euler",
    "factor_m",
    "forward",
    "from_mujoco",
    "fwd_acceleration",
    "fwd_actuation",
    "fwd_constraint",
    "fwd_position",
    "fwd_velocity",
    "implicit",
    "init_ctrl_history",
    "init_sensor_history",
    "inverse",
    "kinematics",
    "load_model",
    "make_constraint",
    "make_data",
    "multiRay",
    "passive",
    "ray",
    "read_ctrl",
    "read_sensor",
    "reference_constraint",
    "reset_data",
    "rne",
    "rollout",
    "rungekutta4",
    "sensor_acc",
    "sensor_pos",
    "sensor_vel",
    "set_const",
    "step",
    "step1",
    "step2",
    "suggest_capacity",
    "tendon",
    "to_mujoco",
    "transition_derivatives",
    "transmission",
]
