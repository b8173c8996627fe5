"""jaxsim: a differentiable physics engine in JAX that reads MJCF and URDF and speaks MuJoCo's names."""

from jaxsim.data import Contact, Data, make_data, reset_data
from jaxsim.errors import ModelError, UnsupportedError
from jaxsim.interop import from_mujoco, to_mujoco
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
    "make_data",
    "reset_data",
    "to_mujoco",
]
