"""Free-floating robots on legs: the ant-like quadruped run, and the humanoid that stands, walks and runs."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.envs.base import Config, Env, Info
from jaxsim.envs.rewards import ramp, small, within
from jaxsim.math.rotation import quat_conj, quat_rotate
from jaxsim.math.safe import Array


@dataclasses.dataclass(frozen=True)
class LeggedConfig(Config):
    """`speed`: along x in m/s, 0 to stand. `height`: of the root body, at which it stands. `fail_height`: ends it.

    `noise`: of first joint angles (rad) and velocities.
    """

    speed: float = 1.0
    height: float = 1.0
    fail_height: float = 0.0
    keyframe: str = "stand"
    noise: float = 0.05


class Legged(Env):
    """A free body on legs that stands upright and moves along the world's x axis at the wished speed.

    Observation: the root's height, the world's up and the velocities in the root's frame, joint angles, joint
    velocities and the last action. Action: one for each actuator.
    Reward, at most 1: standing * (4 + small action) / 5 * (1 + 5 moving) / 6, where standing = high * upright and
    moving = v_x / speed cut to [0, 1]; without a wished speed moving is a bell about rest, 1 m/s wide. The episode ends
    where the root sinks below `fail_height`.
    """

    def __init__(self, config: LeggedConfig):
        super().__init__(config)
        self._start = self.model.key_qpos[self.model.keyframe(config.keyframe)]

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """The keyframe with noisy joints, turned by nothing: ahead is x."""
        d = jaxsim.make_data(self.model)
        pose, speed = jax.random.split(rng)
        noise = self.config.noise * jax.random.normal(pose, d.qpos.shape, d.qpos.dtype)
        noise = noise.at[:7].set(0)
        qvel = self.config.noise * jax.random.normal(speed, d.qvel.shape, d.qvel.dtype)
        return d.replace(qpos=self._start + noise, qvel=qvel), {
            "last_action": jnp.zeros(self.action_size, d.qpos.dtype)
        }

    def prepare(self, data: Data) -> Data:
        """Positions are all that is read."""
        return jaxsim.kinematics(self.model, data)

    def update(self, data: Data, action: Array, info: Info, rng: Array) -> Info:
        """The action is kept for the next observation."""
        return {**info, "last_action": jnp.clip(action, -1, 1)}

    def observe(self, data: Data, info: Info) -> Array:
        """See the class."""
        back = quat_conj(data.qpos[3:7])
        up = quat_rotate(back, jnp.array([0.0, 0.0, 1.0], data.qpos.dtype))
        velocity = quat_rotate(back, data.qvel[:3])
        joints = jnp.clip(data.qvel[6:] / 10, -5, 5)
        parts = [data.qpos[2:3], up, velocity, data.qvel[3:6] / 5, data.qpos[7:], joints, info["last_action"]]
        return jnp.concatenate(parts)

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """See the class."""
        config = self.config
        up = quat_rotate(data.qpos[3:7], jnp.array([0.0, 0.0, 1.0], data.qpos.dtype))[2]
        speed = (data.qpos[0] - before.qpos[0]) / self.dt
        high = within(data.qpos[2], config.height, np.inf, margin=config.height / 4)
        standing = high * ramp(up, 0.0, 0.9)
        moving = ramp(speed, 0.0, config.speed) if config.speed > 0 else within(speed, margin=1.0)
        calm = (4 + small(jnp.clip(action, -1, 1))) / 5
        terms = {"standing": standing, "moving": moving, "speed": speed, "calm": calm}
        return standing * calm * (1 + 5 * moving) / 6, terms

    def failed(self, data: Data, info: Info) -> Array:
        """The root sank."""
        return data.qpos[2] < self.config.fail_height
