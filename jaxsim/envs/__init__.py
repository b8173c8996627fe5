"""Environments for reinforcement learning: pure functions `reset` and `step`, wrappers, tasks, adapters.

import jax
import jaxsim
from jaxsim import envs

env = envs.make("cartpole_balance")
batch = envs.wrap(env)  # a batch of worlds; an episode that ends is followed by a new one
state = jaxsim.jit(batch.reset)(jax.random.split(jax.random.key(0), 256))
state = jaxsim.jit(batch.step)(state, actions)
"""

from jaxsim.envs import tasks as _tasks  # noqa: F401 - registers the tasks
from jaxsim.envs.base import Config, Env, State, model_path
from jaxsim.envs.locomotion import Locomotion, LocomotionConfig, Randomization, TerrainCurriculum, locomotion
from jaxsim.envs.mixed import Mixed
from jaxsim.envs.policy import Policy, load_policy, patches, save_policy
from jaxsim.envs.registry import default_config, make, names, register
from jaxsim.envs.vision import Vision, VisionConfig, make_vision, random_look
from jaxsim.envs.wrappers import (
    ActionDelay,
    ActionRepeat,
    AutoReset,
    DomainRandomization,
    NormalizeObservation,
    Vectorize,
    Wrapper,
    diagnostics,
    wrap,
)

__all__ = [
    "ActionDelay",
    "ActionRepeat",
    "AutoReset",
    "Config",
    "DomainRandomization",
    "Env",
    "Locomotion",
    "LocomotionConfig",
    "Mixed",
    "NormalizeObservation",
    "Policy",
    "Randomization",
    "State",
    "TerrainCurriculum",
    "Vectorize",
    "Vision",
    "VisionConfig",
    "Wrapper",
    "default_config",
    "diagnostics",
    "load_policy",
    "locomotion",
    "make",
    "make_vision",
    "model_path",
    "names",
    "patches",
    "random_look",
    "register",
    "save_policy",
    "wrap",
]
