"""jaxsim: a differentiable physics engine in JAX that reads MJCF and URDF and uses MuJoCo's names.

This module exports the functions that most programs need. `jaxsim.stages` holds the stages of a step, `jaxsim.support`
MuJoCo's support functions, `jaxsim.mjcf` the `Spec`, `jaxsim.parallel` batches and devices, and `jaxsim.xla`
compilation. Import these packages separately: `jaxsim.mjx`, `jaxsim.envs`, `jaxsim.optim`, `jaxsim.identify`,
`jaxsim.viewer`.
"""

from typing import TYPE_CHECKING, Any

from jaxsim import mjcf, parallel, stages, support, xla
from jaxsim.compiler.full_inertia import with_full_inertia
from jaxsim.core.callbacks import Callbacks
from jaxsim.core.contact import Contact
from jaxsim.core.data import Data
from jaxsim.core.errors import CapacityWarning, ModelError, ModelWarning, UnsupportedError, did_you_mean
from jaxsim.core.model import Model
from jaxsim.core.option import Option, Statistic
from jaxsim.core.types import (
    Backend,
    BiasType,
    CamLightType,
    CamOutBit,
    ColorSpace,
    ConDataField,
    ConeType,
    ConstraintState,
    ConstraintType,
    DataType,
    DisableBit,
    DynType,
    EnableBit,
    EqType,
    FlexSelf,
    GainType,
    GeomType,
    IntegratorType,
    JacobianType,
    JointType,
    LightType,
    LRMode,
    ObjType,
    ProjectionType,
    RayDataField,
    SameFrame,
    SensorType,
    SleepPolicy,
    SolverType,
    Stage,
    State,
    TextureRole,
    TextureType,
    TrnType,
    WarningType,
    WrapType,
)
from jaxsim.engine.collision.broad.capacity import suggest_capacity
from jaxsim.engine.constants.elasticity import flex_elasticity
from jaxsim.engine.constants.set_const import set_const
from jaxsim.engine.ray.cast import multi_ray, ray
from jaxsim.engine.ray.flex import ray_flex
from jaxsim.engine.step.forward import forward, step, step1, step2
from jaxsim.engine.step.initial import make_data, reset_data
from jaxsim.engine.step.inverse import inverse
from jaxsim.engine.step.inverse_derivatives import inverse_derivatives
from jaxsim.engine.step.rollout import rollout
from jaxsim.engine.step.state import (
    copy_state,
    extract_state,
    get_state,
    reset_data_keyframe,
    set_keyframe,
    set_state,
    state_size,
)
from jaxsim.engine.step.transition import transition_derivatives
from jaxsim.host.programs import compile
from jaxsim.host.simulation import Simulation
from jaxsim.io.archive import save_model
from jaxsim.io.arrays import from_arrays, to_arrays
from jaxsim.io.load import load_model, save_mjcf
from jaxsim.io.mujoco import from_mujoco
from jaxsim.io.mujoco_data import from_mujoco_data, to_mujoco
from jaxsim.parallel import batch_axes, batched, over_devices, replicate, shard, stack_models, use_cores, warmup
from jaxsim.xla import jit

if TYPE_CHECKING:  # for editors and type checkers: `__getattr__` below finds these
    from jaxsim.stages import *  # noqa: F403
    from jaxsim.support import *  # noqa: F403
    from jaxsim.xla import compiler_options as compiler_options

__version__ = "0.1.0"
__all__ = [  # noqa: RUF022, in the order of the reference page
    # loading and saving
    "load_model",
    "save_model",
    "save_mjcf",
    "to_arrays",
    "from_arrays",
    "from_mujoco",
    "from_mujoco_data",
    "to_mujoco",
    "with_full_inertia",
    # state
    "make_data",
    "reset_data",
    "reset_data_keyframe",
    "set_keyframe",
    "get_state",
    "set_state",
    "state_size",
    "extract_state",
    "copy_state",
    # simulating
    "step",
    "step1",
    "step2",
    "forward",
    "inverse",
    "rollout",
    "Simulation",
    "set_const",
    "flex_elasticity",
    "suggest_capacity",
    # batches and devices
    "batched",
    "batch_axes",
    "stack_models",
    "warmup",
    "compile",
    "shard",
    "replicate",
    "over_devices",
    "use_cores",
    "jit",
    # derivatives
    "transition_derivatives",
    "inverse_derivatives",
    # rays
    "ray",
    "multi_ray",
    "ray_flex",
    # types
    "Model",
    "Option",
    "Statistic",
    "Data",
    "Contact",
    "Callbacks",
    # enumerations
    "Backend",
    "BiasType",
    "CamLightType",
    "CamOutBit",
    "ColorSpace",
    "ConDataField",
    "ConeType",
    "ConstraintState",
    "ConstraintType",
    "DataType",
    "DisableBit",
    "DynType",
    "EnableBit",
    "EqType",
    "FlexSelf",
    "GainType",
    "GeomType",
    "IntegratorType",
    "JacobianType",
    "JointType",
    "LRMode",
    "LightType",
    "ObjType",
    "ProjectionType",
    "RayDataField",
    "SameFrame",
    "SensorType",
    "SleepPolicy",
    "SolverType",
    "Stage",
    "State",
    "TextureRole",
    "TextureType",
    "TrnType",
    "WarningType",
    "WrapType",
    # errors
    "ModelError",
    "UnsupportedError",
    "ModelWarning",
    "CapacityWarning",
    # modules
    "mjcf",
    "parallel",
    "stages",
    "support",
    "xla",
]


SEPARATE = ("envs", "identify", "mjx", "optim", "torch", "viewer")  # packages that are imported when they are used


def __getattr__(name: str) -> Any:
    """What stands in a module below: a stage, a support function, what concerns compilation."""
    for module in (stages, support, xla):
        if name in module.__all__:
            return getattr(module, name)
    if name in SEPARATE:
        raise AttributeError(f"module 'jaxsim' has no attribute {name!r} before it is imported: import jaxsim.{name}")
    hint = did_you_mean(name, [*__all__, *stages.__all__, *support.__all__])
    raise AttributeError(f"module 'jaxsim' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted(__all__)
