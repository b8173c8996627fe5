"""Locomotion of any legged robot: a joystick task for the user's MJCF file."""

from typing import Any

from jaxsim.envs.locomotion.curriculum import TerrainCurriculum
from jaxsim.envs.locomotion.randomize import Randomization, changes_model, model_randomizer
from jaxsim.envs.locomotion.robot import Robot, read_robot
from jaxsim.envs.locomotion.task import Locomotion, LocomotionConfig
from jaxsim.envs.wrappers import DomainRandomization, Wrapper

__all__ = [
    "Locomotion",
    "LocomotionConfig",
    "Randomization",
    "Robot",
    "TerrainCurriculum",
    "locomotion",
    "make_locomotion",
    "read_robot",
]


def make_locomotion(config: LocomotionConfig) -> Locomotion | Wrapper:
    """Make the locomotion task of a config, with its random models and levels of terrain."""
    task = Locomotion(config)
    env: Locomotion | Wrapper = task
    if changes_model(task.ranges):
        env = DomainRandomization(env, model_randomizer(task.robot, task.ranges))
    return TerrainCurriculum(env, config.levels, config.level) if config.levels else env


def locomotion(model: Any, **settings: Any) -> Locomotion | Wrapper:
    """Make a joystick task for the legged robot of a model: follow a commanded velocity.

        env = envs.locomotion("robot.xml")
        env = envs.locomotion("robot.xml", feet=["FL", "FR", "RL", "RR"], gains=(30, 0.5), command=(1, 0, 0.5))

    Args:
        model: a path, MJCF text, a `Spec` or a compiled `Model`, with a robot on a free joint.
        settings: fields of `LocomotionConfig`. Other parts are found in the model: the feet are the lowest geoms in the
            home pose, the home pose is a keyframe, gains of motors follow from their limits.

    Raises:
        TypeError: there is no such setting.
        ValueError: the model lacks something; the message says what and how to give it.
        UnsupportedError: the task does not support the type of an actuator or a joint.
    """
    return make_locomotion(LocomotionConfig(model=model, **settings))
