"""Rewards of locomotion under their usual names: functions of a `Motion`, and default weights.

Rates and penalties are relative to the robot (its height, its actuators' strength, its number of joints), so that the
same weights serve a robot of half a kilogram and one of fifty.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp

from jaxsim.core.errors import did_you_mean
from jaxsim.math.safe import Array

DEFAULT_WEIGHTS = {
    "tracking_lin_vel": 1.0,
    "tracking_ang_vel": 0.5,
    "feet_phase": 1.0,
    "alive": 0.0,
    "lin_vel_z": -0.5,
    "ang_vel_xy": -0.02,
    "orientation": -1.0,
    "base_height": -1.0,
    "torques": -0.05,
    "energy": -0.0,
    "action_rate": -0.1,
    "action_jerk": -0.0,
    "pose": -0.1,
    "dof_pos_limits": -1.0,
    "feet_slip": -0.05,
    "feet_air_time": 0.0,
    "feet_clearance": 0.0,
    "stand_still": -0.2,
    "termination": 0.0,
}


class Motion(NamedTuple):
    """Inputs of the rewards, of one world.

    `velocity`, `gyro`: of the torso in its frame (3,), m/s and rad/s. `up`: the world's up axis there (3,). `command`:
    (3,). `height`: of the torso over that at home. `angles`: joint angles less home, `rates`: their velocities (n,).
    `beyond`: how far joints are outside 0.95 of their ranges (n,). `effort`: actuator forces over their greatest (nu,).
    `action`, `change`, `jerk`: last action and its first and second difference (nu,). `contact`: of each foot, 0 or 1.
    `foot_height`: above the ground, over the height of a swing; `foot_speed`: horizontal, m/s. `lift`: sine of the
    phase of each foot's gait. `landed`: time in the air of a foot that just landed, else 0, s. `moving`: whether the
    command is to move. `failed`: whether the episode ends.
    """

    velocity: Array
    gyro: Array
    up: Array
    command: Array
    height: Array
    angles: Array
    rates: Array
    beyond: Array
    effort: Array
    action: Array
    change: Array
    jerk: Array
    contact: Array
    foot_height: Array
    foot_speed: Array
    lift: Array
    landed: Array
    moving: Array
    failed: Array


def weights_of(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights that are not zero. Raises ValueError, with the nearest name, for an unknown reward."""
    for name in weights:
        if name not in DEFAULT_WEIGHTS:
            hint = did_you_mean(name, DEFAULT_WEIGHTS) or f"; there are {', '.join(DEFAULT_WEIGHTS)}"
            raise ValueError(f"rewards: there is no reward {name!r}{hint}")
    tracking = ("tracking_lin_vel", "tracking_ang_vel")
    if not all(weights[name] > 0 for name in tracking):
        raise ValueError(f"rewards: the weights of {' and '.join(tracking)} are positive")
    return {name: float(w) for name, w in weights.items() if w}


def feet_phase(height: Array, lift: Array, moving: Array) -> Array:
    """Judge how well feet follow the gait's clock, in (0, 1].

    `height` (n,) of the feet, over that of a swing; `lift` (n,) the sines of their phases; `moving` is 0 for standing.
    """
    return jnp.exp(-4 * jnp.square(height - moving * jnp.maximum(lift, 0)).mean())


def reward_terms(motion: Motion, sigma: float) -> dict[str, Array]:
    """Compute rewards by name, without their weights; `sigma` (m/s)^2 or (rad/s)^2 is the width of tracking terms."""
    k = motion
    planar = jnp.square(k.velocity[:2] - k.command[:2]).sum()
    square = jnp.square
    return {
        "tracking_lin_vel": jnp.exp(-planar / sigma),
        "tracking_ang_vel": jnp.exp(-square(k.gyro[2] - k.command[2]) / sigma),
        "feet_phase": feet_phase(k.foot_height, k.lift, k.moving),
        "alive": jnp.ones_like(planar),
        "lin_vel_z": square(k.velocity[2]),
        "ang_vel_xy": square(k.gyro[:2]).sum(),
        "orientation": square(k.up[:2]).sum(),
        "base_height": square(k.height - 1),
        "torques": square(k.effort).mean(),
        "energy": jnp.abs(k.effort).mean() * jnp.abs(k.rates).mean(),
        "action_rate": square(k.change).mean(),
        "action_jerk": square(k.jerk).mean(),
        "pose": square(k.angles).mean(),
        "dof_pos_limits": k.beyond.sum(),
        "feet_slip": (k.contact * square(k.foot_speed)).mean(),
        "feet_air_time": k.moving * jnp.where(k.landed > 0, k.landed - 0.2, 0).sum(),
        "feet_clearance": (square(k.foot_height - 1) * k.foot_speed).mean(),
        "stand_still": (1 - k.moving) * jnp.abs(k.angles).mean(),
        "termination": k.failed.astype(planar.dtype),
    }
