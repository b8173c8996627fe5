"""Locomotion with a free root: an ant that runs, and a humanoid that stands, walks and runs."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.envs.base import Config, Info, KinematicEnv
from jaxsim.envs.tasks.rewards import ramp, small, within
from jaxsim.math.rotation import quat_conj, quat_rotate
from jaxsim.math.safe import Array


@dataclasses.dataclass(frozen=True)
class LeggedConfig(Config):
    """`speed`: target along x in m/s, 0 to stand. `height`: of the root body in m, at which it stands.

    `torso`: names of the bodies that stay upright and face along x while it moves; empty if any direction may lead.
    `posture`: weight of joint angles near those of `keyframe`. `calm`: weight of small actions.
    `fail_height`: height in m below which an episode ends.
    `noise`: standard deviation of initial joint angles (rad) and velocities about `keyframe`.
    """

    speed: float = 1.0
    height: float = 1.0
    torso: tuple[str, ...] = ()
    posture: float = 0.0
    calm: float = 0.2
    fail_height: float = 0.0
    keyframe: str = "stand"
    noise: float = 0.05


class Legged(KinematicEnv):
    """Stand upright and move along the world's x axis at the target speed.

    Observation: the root's height, the world's x and up axes and the velocities in the root's frame, joint angles,
    joint velocities and the last action. Action: one entry for each actuator.
    Reward, at most 1: standing * (1 - calm + calm * small action) * (1 + 5 moving) / 6, where moving = facing * v_x /
    speed, clipped to [0, 1]. Standing is high * upright * (1 - posture + posture * pose); upright and facing are
    products over the root's or torso's bodies, pose is 1 at the keyframe's joint angles and 0 where all are 1.5 rad
    away. With a target speed of 0, moving is a Gaussian of v_x that is 0.1 at 1 m/s. The episode ends where the root
    sinks below `fail_height`.
    """

    config: LeggedConfig

    def __init__(self, config: LeggedConfig):
        super().__init__(config)
        self._start = self.model.key_qpos[self.model.keyframe(config.keyframe).id]
        self._torso = np.array([self.model.name2id("body", name) for name in config.torso], int)
        self._upright_bodies = self._torso if config.torso else self.model.jnt_bodyid[:1]

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """Start from the keyframe with noise on joint angles and on all velocities; the root faces along x."""
        d = jaxsim.make_data(self.model)
        pose, speed = jax.random.split(rng)
        noise = self.config.noise * jax.random.normal(pose, d.qpos.shape, d.qpos.dtype)
        noise = noise.at[:7].set(0)
        qvel = self.config.noise * jax.random.normal(speed, d.qvel.shape, d.qvel.dtype)
        return d.replace(qpos=self._start + noise, qvel=qvel), {
            "last_action": jnp.zeros(self.action_size, d.qpos.dtype)
        }

    def update(self, data: Data, action: Array, info: Info, rng: Array) -> Info:
        """Store the action in `info`, for the next observation."""
        return {**info, "last_action": jnp.clip(action, -1, 1)}

    def observe(self, data: Data, info: Info) -> Array:
        """Compute the observation described in the class."""
        to_root = quat_conj(data.qpos[3:7])
        ahead, up = (quat_rotate(to_root, jnp.eye(3, dtype=data.qpos.dtype)[i]) for i in (0, 2))
        velocity = quat_rotate(to_root, data.qvel[:3])
        joints = jnp.clip(data.qvel[6:] / 10, -5, 5)
        parts = [data.qpos[2:3], ahead, up, velocity, data.qvel[3:6] / 5, data.qpos[7:], joints, info["last_action"]]
        return jnp.concatenate(parts)

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """Compute the reward described in the class, and its terms."""
        config = self.config
        speed = (data.qpos[0] - before.qpos[0]) / self.dt
        high = within(data.qpos[2], config.height, np.inf, margin=config.height / 4)
        pose = small(data.qpos[7:] - self._start[7:], margin=1.5)
        up, facing = self._upright(data)
        standing = high * up * (1 - config.posture + config.posture * pose)
        moving = facing * ramp(speed, 0.0, config.speed) if config.speed > 0 else within(speed, margin=1.0)
        calm = 1 - config.calm + config.calm * small(jnp.clip(action, -1, 1))
        terms = {"standing": standing, "moving": moving, "speed": speed, "calm": calm}
        return standing * calm * (1 + 5 * moving) / 6, terms

    def _upright(self, data: Data) -> tuple[Array, Array]:
        """How upright the torso (or the root) is, and how much the torso faces along x, each in [0, 1]."""
        upright = jnp.prod(ramp(data.xmat[self._upright_bodies, 8], 0.0, 0.9))
        return upright, jnp.prod(ramp(data.xmat[self._torso, 0], -1.0, 0.9))

    def failed(self, data: Data, info: Info) -> Array:
        """Return whether the root sank below `fail_height`."""
        return data.qpos[2] < self.config.fail_height
