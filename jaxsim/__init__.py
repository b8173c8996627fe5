"""jaxsim: a differentiable physics engine in JAX that reads MJCF and URDF and speaks MuJoCo's names."""

from jaxsim.data import Contact, Data, make_data, reset_data
from jaxsim.engine.set_const import set_const
from jaxsim.errors import ModelError, UnsupportedError
from jaxsim.interop import from_mujoco, to_mujoco
from jaxsim.load import load_model
from jaxsim.model import Model, Option, Statistic

__version__ = "0.1.0"
__all__ = [
    "Contact",
    "Data",
    "Model",
    "ModelError",
    "Option",
    "Statistic",
    "UnsupportedError",
    "from_mujoco",
    "load_model",
    "make_data",
    "reset_data",
    "set_const",
    "to_mujoco",
]
