"""Planar locomotion: hopper, walker and runner, whose trunk moves in the x-z plane on legs with motors."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.envs.base import Config, Info, KinematicEnv
from jaxsim.envs.tasks.rewards import ramp, within
from jaxsim.math.safe import Array


@dataclasses.dataclass(frozen=True)
class PlanarConfig(Config):
    """`speed`: target along x in m/s, 0 to stand. `height`: of the trunk's origin in m, above which it stands.

    `fail_height`: height in m below which an episode ends (0: never). `upright`: whether the trunk's pitch is
    rewarded. `control_cost`: weight of the mean squared action. `noise`: standard deviation of initial joint
    positions (rad) and velocities about `keyframe`.
    """

    speed: float = 1.0
    height: float = 1.0
    fail_height: float = 0.0
    upright: bool = True
    control_cost: float = 0.05
    noise: float = 0.05
    keyframe: str = "stand"


class Planar(KinematicEnv):
    """Stand high and upright, and move along x at the target speed.

    Observation: joint positions without the root's x, then all velocities. Action: one entry for each motor.
    Reward, at most 1: standing * (1 + 5 moving) / 6 less `control_cost` * mean squared action. Here standing =
    (3 high + upright) / 4 (high alone for the runner, which has no upright pose) and moving = v / speed clipped to
    [0, 1]. With a target speed of 0 the reward is standing * (1 + still) / 2 instead. The episode ends where the
    trunk sinks below `fail_height`.
    """

    config: PlanarConfig

    def __init__(self, config: PlanarConfig):
        super().__init__(config)
        m = self.model
        names = ("root_x", "root_z", "root_pitch")
        self._x, self._z, self._pitch = (int(m.jnt_qposadr[m.name2id("joint", n)]) for n in names)
        self._trunk = m.name2id("body", "trunk")
        # the trunk's height is its body's plus the root's slide joint, whose zero is at the joint's ref
        self._base = float(m.body_pos[self._trunk, 2]) - float(m.qpos0[self._z])
        self._observed = np.delete(np.arange(m.nq), self._x)
        self._start = m.key_qpos[m.keyframe(config.keyframe).id]

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """Start from the keyframe with noise on joint positions and velocities."""
        d = jaxsim.make_data(self.model)
        pose, speed = jax.random.split(rng)
        noise = self.config.noise * jax.random.normal(pose, d.qpos.shape, d.qpos.dtype)
        noise = noise.at[np.array([self._x, self._z])].set(0)
        qvel = self.config.noise * jax.random.normal(speed, d.qvel.shape, d.qvel.dtype)
        return d.replace(qpos=self._start + noise, qvel=qvel), {}

    def height(self, data: Data) -> Array:
        """Return the height of the trunk's origin above the ground in m."""
        return data.qpos[self._z] + self._base

    def observe(self, data: Data, info: Info) -> Array:
        """Compute the observation described in the class."""
        return jnp.concatenate([data.qpos[self._observed], jnp.clip(data.qvel, -20, 20)])

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """Compute the reward described in the class, and its terms."""
        config = self.config
        speed = (data.qpos[self._x] - before.qpos[self._x]) / self.dt
        standing = within(self.height(data), config.height, np.inf, margin=config.height / 2)
        if config.upright:
            standing = (3 * standing + (1 + jnp.cos(data.qpos[self._pitch])) / 2) / 4
        if config.speed > 0:
            moving = ramp(speed, 0.0, config.speed)
            reward = standing * (1 + 5 * moving) / 6
        else:
            moving = within(speed, margin=1.0)
            reward = standing * (1 + moving) / 2
        cost = config.control_cost * jnp.mean(jnp.square(jnp.clip(action, -1, 1)))
        return reward - cost, {"standing": standing, "moving": moving, "speed": speed, "control_cost": cost}

    def failed(self, data: Data, info: Info) -> Array:
        """Return whether the trunk sank below `fail_height`."""
        return self.height(data) < self.config.fail_height
