"""Cart-pole: balance from near upright, swing-up from hanging."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.core.data import Data
from jaxsim.envs.base import Config, Info, KinematicEnv
from jaxsim.envs.tasks.rewards import small, within
from jaxsim.envs.vision import VisionConfig
from jaxsim.math.safe import Array


@dataclasses.dataclass(frozen=True)
class CartpoleConfig(Config):
    """`swing_up`: start hanging. `spread`: half the range of the initial angle, rad.

    `fail_angle`: angle in rad beyond which balancing has failed.
    """

    model: Any = "cartpole.xml"
    ctrl_dt: float = 0.02
    swing_up: bool = False
    spread: float = 0.1
    fail_angle: float = 0.6


@dataclasses.dataclass(frozen=True)
class CartpoleVisionConfig(CartpoleConfig, VisionConfig):
    """The cart-pole seen by a camera."""

    ctrl_dt: float = 0.04
    episode_length: int = 250
    camera: int | str = "near"
    reach: float = 4.0


class Cartpole(KinematicEnv):
    """Keep the pole upright and the cart near the middle of its rail.

    Observation (5): cart position, cosine and sine of the pole's angle, both velocities. Action (1): force on the cart.
    Reward, at most 1: upright * (1 + centred) / 2 * (4 + small push) / 5 * (1 + slow pole) / 2, with upright = (1 +
    cos) / 2. Balancing ends when the pole leans more than `fail_angle`; swing-up ends at the time limit only.
    """

    config: CartpoleConfig

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """Draw a random angle about upright or hanging, nearly at rest."""
        config = self.config
        d = jaxsim.make_data(self.model)
        cart, pole, speed = jax.random.split(rng, 3)
        real = d.qpos.dtype
        angle = config.spread * jax.random.uniform(pole, (), real, -1, 1) + (jnp.pi if config.swing_up else 0.0)
        qpos = jnp.stack([0.1 * jax.random.uniform(cart, (), real, -1, 1), angle])
        return d.replace(qpos=qpos, qvel=0.05 * jax.random.normal(speed, (2,), real)), {}

    def observe(self, data: Data, info: Info) -> Array:
        """Compute the observation described in the class."""
        angle = data.qpos[1]
        return jnp.concatenate([jnp.stack([data.qpos[0], jnp.cos(angle), jnp.sin(angle)]), data.qvel])

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """Compute the reward described in the class, and its terms."""
        terms = {
            "upright": (1 + jnp.cos(data.qpos[1])) / 2,
            "centred": (1 + within(data.qpos[0], margin=1.8)) / 2,
            "small_push": (4 + small(action)) / 5,
            "slow": (1 + within(data.qvel[1], margin=5.0)) / 2,
        }
        return terms["upright"] * terms["centred"] * terms["small_push"] * terms["slow"], terms

    def failed(self, data: Data, info: Info) -> Array:
        """Return whether the pole fell, in the balancing task."""
        angle = data.qpos[1]
        return (abs(angle) > self.config.fail_angle) & (not self.config.swing_up)
