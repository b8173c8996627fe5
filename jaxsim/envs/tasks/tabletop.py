"""Tasks on a table whose goals are seen: a planar arm reaches a ball, and a hand pushes a can to a post."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.core.data import Data
from jaxsim.envs.base import Info, KinematicEnv
from jaxsim.envs.tasks.rewards import within
from jaxsim.envs.vision import VisionConfig
from jaxsim.math.safe import Array, norm


@dataclasses.dataclass(frozen=True)
class ReacherConfig(VisionConfig):
    """`near`, `far`: least and greatest distance of the ball from the shoulder in m."""

    model: Any = "reacher.xml"
    ctrl_dt: float = 0.04
    episode_length: int = 100
    near: float = 0.06
    far: float = 0.21
    camera: int | str = "top"
    picture: str = "rgb"
    size: tuple[int, int] = (48, 48)
    frames: int = 2


class Reacher(KinematicEnv):
    """Bring the tip of a planar arm of two motors to a ball, which stands still.

    Observation (8): cosines and sines of both joint angles, both velocities, the ball's position less the tip's.
    Reward, at most 1: 0.8 g(distance, 0.25 m) + 0.2 g(distance, 0.03 m), where g is a Gaussian that is 0.1 at the
    second argument. `metrics["near"]` is one where the tip is within 2 cm of the ball's middle.
    """

    config: ReacherConfig

    def __init__(self, config: ReacherConfig):
        super().__init__(config)
        self._tip = self.model.name2id("site", "tip")

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """Draw any joint angles at rest, and the ball anywhere between two circles."""
        d, config = jaxsim.make_data(self.model), self.config
        shoulder, elbow, angle, radius = jax.random.uniform(rng, (4,), d.qpos.dtype, -1, 1)
        angle, radius = jnp.pi * angle, config.near + (config.far - config.near) * (1 + radius) / 2
        ball = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)])
        return d.replace(
            qpos=jnp.stack([jnp.pi * shoulder, 2.5 * elbow]), mocap_pos=d.mocap_pos.at[0, :2].set(ball)
        ), {}

    def _to_ball(self, data: Data) -> Array:
        return (data.mocap_pos[0] - data.site_xpos[self._tip])[:2]

    def observe(self, data: Data, info: Info) -> Array:
        """Compute the observation described in the class."""
        return jnp.concatenate([jnp.cos(data.qpos), jnp.sin(data.qpos), data.qvel / 3, 5 * self._to_ball(data)])

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """Compute the reward described in the class, and its terms."""
        distance = norm(self._to_ball(data))
        reward = 0.8 * within(distance, margin=0.25) + 0.2 * within(distance, margin=0.03)
        return reward, {"distance": distance, "near": (distance < 0.02).astype(distance.dtype)}


@dataclasses.dataclass(frozen=True)
class PushConfig(VisionConfig):
    """`spread`: half the range in m of the can's and the post's first positions across the hand's way."""

    model: Any = "push.xml"
    ctrl_dt: float = 0.04
    episode_length: int = 100
    spread: float = 0.1
    camera: int | str = "hand"
    size: tuple[int, int] = (48, 48)
    reach: float = 0.8


class Push(KinematicEnv):
    """Push a can over a table to a post, with a hand that slides along x and y.

    Observation (8): velocities of hand and can, the can's position less the hand's, the post's less the can's (2
    each). Action (2): velocities of the hand. Reward, at most 1: 0.3 g(distance of hand and can, 0.2 m) + 0.5 g(gap,
    0.3 m) + 0.2 g(gap, 0.04 m), where g is a Gaussian that is 0.1 at the second argument, and the gap is that between
    can and post. `metrics["near"]` is one where the gap is less than 2 cm.
    """

    config: PushConfig
    touching = 0.043  # m between the middles of can and post where their sides touch

    def __init__(self, config: PushConfig):
        super().__init__(config)
        self._grip, self._can = self.model.name2id("site", "grip"), self.model.name2id("body", "can")

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """Place the hand in the middle, the can before it, the post behind the can."""
        d = jaxsim.make_data(self.model)
        along, can, far, post = jax.random.uniform(rng, (4,), d.qpos.dtype, -1, 1)
        spread = self.config.spread
        qpos = d.qpos.at[2:].set(jnp.stack([0.05 * along, spread * can]))
        where = jnp.stack([0.45 + 0.05 * far, spread * post])
        return d.replace(qpos=qpos, mocap_pos=d.mocap_pos.at[0, :2].set(where)), {}

    def _places(self, data: Data) -> tuple[Array, Array, Array]:
        """Positions (2,) of the hand, the can and the post."""
        return data.site_xpos[self._grip, :2], data.xpos[self._can, :2], data.mocap_pos[0, :2]

    def observe(self, data: Data, info: Info) -> Array:
        """Compute the observation described in the class."""
        hand, can, post = self._places(data)
        return jnp.concatenate([3 * data.qvel, 5 * (can - hand), 5 * (post - can)])

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """Compute the reward described in the class, and its terms."""
        hand, can, post = self._places(data)
        held, gap = norm(can - hand), jnp.maximum(norm(post - can) - self.touching, 0)
        reward = 0.3 * within(held, margin=0.2) + 0.5 * within(gap, margin=0.3) + 0.2 * within(gap, margin=0.04)
        return reward, {"held": held, "gap": gap, "near": (gap < 0.02).astype(gap.dtype)}
