"""Locomotion of any legged robot: a joystick task from an MJCF file that the user brings."""

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
    """Locomotion task of a config, with random models and levels of terrain where the config says so."""
    task = Locomotion(config)
    env: Locomotion | Wrapper = task
    if changes_model(task.ranges):
        env = DomainRandomization(env, model_randomizer(task.robot, task.ranges))
    return TerrainCurriculum(env, config.levels, config.level) if config.levels else env


def locomotion(model: Any, **settings: Any) -> Locomotion | Wrapper:
    """Joystick task for the legged robot of a model: follow a commanded velocity.

        env = envs.locomotion("robot.xml")
        env = envs.locomotion("robot.xml", feet=["FL", "FR", "RL", "RR"], gains=(30, 0.5), command=(1, 0, 0.5))

    Args:
        model: a path, MJCF text, a `Spec` or a compiled `Model`, with a robot on a free joint.
        settings: fields of `LocomotionConfig`. What is not given is read from the model: the feet reach lowest in the
            home pose, the home pose is a keyframe, motors get gains from their limits.

    Raises:
        TypeError: there is no such setting.
        ValueError: the model lacks something; the message says what and how to give it.
        UnsupportedError: an actuator or a joint is of a kind that the task does not know.
    """
    return make_locomotion(LocomotionConfig(model=model, **settings))
