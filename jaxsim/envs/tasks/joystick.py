"""Quadruped that follows a commanded velocity, on flat and on rough ground."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.envs.base import Config, Info, KinematicEnv
from jaxsim.envs.locomotion.edit import rough_ground
from jaxsim.envs.locomotion.rewards import feet_phase
from jaxsim.envs.tasks.rewards import within
from jaxsim.math.rotation import quat_conj, quat_rotate
from jaxsim.math.safe import Array


@dataclasses.dataclass(frozen=True)
class JoystickConfig(Config):
    """`command`: greatest forward and sideways speeds (m/s) and yaw rate (rad/s). `hold`: mean actions of a command.

    `action_scale`: rad of joint angle about the stance. `feet`: names of the geoms that step, the first and last, and
    the two between, together. `gait`: steps of each in a second. `swing`: height of a step, m. `roughness`: greatest
    height of the ground in m, 0 for flat; `terrain_seed` draws its shape. `noise`: standard deviation of initial joint
    angles (rad) and velocities. `fail_up`, `fail_height`: cosine of tilt and height in m below which an episode ends.
    """

    model: Any = "quadruped.xml"
    ctrl_dt: float = 0.02
    command: tuple[float, float, float] = (1.0, 0.4, 1.0)
    hold: int = 200
    action_scale: float = 0.4
    feet: tuple[str, str, str, str] = ("fr_toe", "fl_toe", "rr_toe", "rl_toe")
    gait: float = 2.0
    swing: float = 0.06
    roughness: float = 0.0
    terrain_seed: int = 0
    noise: float = 0.03
    fail_up: float = 0.7
    fail_height: float = 0.2


class Joystick(KinematicEnv):
    """Follow `info["command"]`: forward and sideways speeds and the yaw rate.

    Observation (50): velocities in the trunk's frame (6), the world's up axis in that frame (3), the command (3),
    joint angles about the stance (12), joint velocities (12), the last action (12), cosine and sine of the gait's
    clock. Action (12): joint angles about the stance. Reward: follow (exp(-(e / 0.4 m/s)^2) of the error e in planar
    velocity) + 0.5 turn (a Gaussian of the error in yaw rate, 0.1 at 1 rad/s) + step - 0.5 v_z^2 - 0.05 (roll and pitch
    rates)^2 - 0.5 tilt^2 - 0.005 (change of action)^2 - 2e-5 (joint torques)^2. Here step = exp(-4 mean((z - z*)^2)) of
    the feet's heights above the lowest, in steps; the clock lifts one pair to z* = sin(phase), then the other, and none
    if the command is to stand. Without this term the robot shuffles until a knee catches. The reward is clipped below
    at 0, so that a policy never gains by ending an episode. The episode ends when the trunk tilts or sinks.
    """

    config: JoystickConfig

    def __init__(self, config: JoystickConfig):
        super().__init__(config)
        m = self.model
        key = m.keyframe("stand").id
        self._start, self._stance = m.key_qpos[key], m.key_ctrl[key]
        self._feet = np.array([m.name2id("geom", name) for name in config.feet])
        if config.roughness > 0:
            self.model = m.replace(hfield_data=terrain(m, config))

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """Start from the stance at a random position and heading, with a first command."""
        config = self.config
        d = jaxsim.make_data(self.model)
        pose, speed, turn, position, command, clock = jax.random.split(rng, 6)
        real = d.qpos.dtype
        qpos = self._start + config.noise * jax.random.normal(pose, d.qpos.shape, real)
        yaw = jax.random.uniform(turn, (), real, -jnp.pi, jnp.pi) / 2
        height = self._start[2] + config.roughness
        xy = jax.random.uniform(position, (2,), real, -1, 1)
        root = jnp.concatenate([xy, height[None], jnp.stack([jnp.cos(yaw), 0 * yaw, 0 * yaw, jnp.sin(yaw)])])
        qpos = qpos.at[:7].set(root)
        qvel = config.noise * jax.random.normal(speed, d.qvel.shape, real)
        zero = jnp.zeros(self.action_size, real)
        phase = jax.random.uniform(clock, (), real, 0, 2 * jnp.pi)
        info = {"command": self._draw_command(command, real), "phase": phase, "last_action": zero, "change": zero}
        return d.replace(qpos=qpos, qvel=qvel, ctrl=self._stance), info

    def _draw_command(self, rng: Array, real: Any) -> Array:
        draw, stand = jax.random.split(rng)
        limit = np.asarray(self.config.command, real)
        command = limit * jax.random.uniform(draw, (3,), real, -1, 1)
        return jnp.where(jax.random.bernoulli(stand, 0.1), 0, command)

    def control(self, data: Data, action: Array, info: Info) -> Array:
        """Add the scaled action to the joint angles of the stance."""
        return self._stance + self.config.action_scale * jnp.clip(action, -1, 1)

    def update(self, data: Data, action: Array, info: Info, rng: Array) -> Info:
        """Update `info` with the action, the clock, and with a new command once in `hold` actions on average."""
        when, draw = jax.random.split(rng)
        new = jax.random.bernoulli(when, 1 / self.config.hold)
        command = jnp.where(new, self._draw_command(draw, data.qpos.dtype), info["command"])
        action = jnp.clip(action, -1, 1)
        phase = (info["phase"] + 2 * np.pi * self.config.gait * self.dt) % (2 * np.pi)
        change = action - info["last_action"]
        return {**info, "command": command, "phase": phase, "last_action": action, "change": change}

    def _motion(self, data: Data) -> tuple[Array, Array]:
        """The trunk's velocity and the world's up axis, in the trunk's frame."""
        to_trunk = quat_conj(data.qpos[3:7])
        up = jnp.array([0.0, 0.0, 1.0], data.qpos.dtype)
        return quat_rotate(to_trunk, data.qvel[:3]), quat_rotate(to_trunk, up)

    def observe(self, data: Data, info: Info) -> Array:
        """Compute the observation described in the class."""
        velocity, up = self._motion(data)
        angles, rates = data.qpos[7:] - self._stance, jnp.clip(data.qvel[6:] / 10, -5, 5)
        clock = jnp.stack([jnp.cos(info["phase"]), jnp.sin(info["phase"])])
        parts = [velocity, data.qvel[3:6] / 2, up, info["command"], angles, rates, info["last_action"], clock]
        return jnp.concatenate(parts)

    def _step(self, data: Data, info: Info) -> Array:
        """How well the feet step, in (0, 1]."""
        z = data.geom_xpos[self._feet, 2]
        lift = jnp.sin(info["phase"]) * np.array([1, -1, -1, 1], z.dtype)
        moving = (jnp.abs(info["command"]).max() > 0.05).astype(z.dtype)
        return feet_phase((z - z.min()) / self.config.swing, lift, moving)

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """Compute the reward described in the class, and its terms."""
        velocity, up = self._motion(data)
        command = info["command"]
        error = jnp.square(velocity[:2] - command[:2]).sum()
        terms = {
            "follow": jnp.exp(-error / 0.4**2),
            "turn": 0.5 * within(data.qvel[5] - command[2], margin=1.0),
            "step": self._step(data, info),
            "bounce": -0.5 * jnp.square(velocity[2]),
            "rock": -0.05 * jnp.square(data.qvel[3:5]).sum(),
            "tilt": -0.5 * jnp.square(up[:2]).sum(),
            "jerk": -0.005 * jnp.square(info["change"]).sum(),
            "torque": -2e-5 * jnp.square(data.actuator_force).sum(),
        }
        return jnp.maximum(sum(terms.values()), 0), terms

    def failed(self, data: Data, info: Info) -> Array:
        """Return whether the trunk tilted over or lies on the ground."""
        up = quat_rotate(data.qpos[3:7], jnp.array([0.0, 0.0, 1.0], data.qpos.dtype))[2]
        return (up < self.config.fail_up) | (data.qpos[2] < self.config.fail_height)


def terrain(m: jaxsim.Model, config: JoystickConfig) -> np.ndarray:
    """Generate heights (nrow * ncol,) of a smooth random ground, over the field's size; the greatest is `roughness`."""
    ground = rough_ground(int(m.hfield_nrow[0]), int(m.hfield_ncol[0]), config.terrain_seed)
    return (ground * config.roughness / float(m.hfield_size[0, 2])).ravel()
