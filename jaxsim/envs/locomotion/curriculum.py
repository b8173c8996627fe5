"""A curriculum of terrain: the ground gets rougher for a world as its robot succeeds."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.envs.base import Info, State, first_state
from jaxsim.envs.wrappers import Wrapper
from jaxsim.math.safe import Array, norm

OWN = ("level", "covered", "asked", "fell")


class TerrainCurriculum(Wrapper):
    """Locomotion on a height field whose height is a level of each world, which follows the robot's success.

    At level l of n the ground is (l + 1) / n times as high as in the model. When an episode ends, the level rises by
    one if the robot did not fall and covered the share `enough` of the commanded distance, and at least `distance`. It
    falls by one if the robot fell, or covered less than half of that share. A world that passes the last level
    continues at a random one, so that the policy keeps training on every level. Rudin et al., "Learning to Walk in
    Minutes Using Massively Parallel Deep Reinforcement Learning", 2022.

    `info`: `level`, and of the running episode `asked` and `covered` in m, and whether the robot `fell`; all `lasting`.
    A robot that leaves the terrain has not fallen. `metrics["level"]` is the level.

    Args:
        env: a `Locomotion` with a terrain, or a wrapper around one.
        levels: number of levels.
        first: the level at which worlds begin.
        enough: share of the commanded distance.
        distance: least distance in m.

    Raises:
        ValueError: there is no terrain, or no such level.
    """

    def __init__(self, env: Any, levels: int, first: int = 0, enough: float = 0.7, distance: float = 2.0):
        super().__init__(env)
        if not env.model.nhfield:
            raise ValueError(
                f"levels={levels}: a curriculum of terrain needs a terrain: give terrain=..., its height in m"
            )
        if not 0 <= first < levels:
            raise ValueError(f"level={first}: the levels of this curriculum are 0 to {levels - 1}")
        self.levels, self.first, self.enough, self.distance = levels, first, enough, distance

    @property
    def lasting(self) -> tuple[str, ...]:
        """Names of the entries of `info` that are kept from one episode to the next."""
        return (*OWN, *getattr(self.env, "lasting", ()))

    def at_level(self, level: Array) -> Any:
        """Return the inner environment on the ground of a level."""
        m = self.env.model
        size = jnp.asarray(m.hfield_size)
        height = size[:, 2] * ((level + 1) / self.levels).astype(size.dtype)
        return self.env.with_model(m.replace(hfield_size=size.at[:, 2].set(height)))

    def next_level(self, last: Info, rng: Array) -> Array:
        """Choose the level of the next episode, from the entries `last` of the previous one."""
        covered, share = last["covered"], self.enough * last["asked"]
        fell = last["fell"] > 0
        rises = ~fell & (covered >= jnp.maximum(share, self.distance))
        falls = fell | (covered < share / 2)
        level = last["level"] + rises.astype(jnp.int32) - falls.astype(jnp.int32)
        anywhere = jax.random.randint(rng, (), 0, self.levels)
        return jnp.where(level < self.levels, jnp.maximum(level, 0), anywhere)

    def reset(self, rng: Array, last: Info | None = None) -> State:
        """Reset the environment, at the first level or at the next level after the last episode."""
        draw, rng = jax.random.split(rng)
        level = jnp.asarray(self.first, jnp.int32) if last is None else self.next_level(last, draw)
        state = first_state(self.at_level(level), rng, last)
        return self._with(state, level, *[jnp.zeros_like(state.reward)] * 3)

    def step(self, state: State, action: Array) -> State:
        """Advance the state by one action on the ground of the world's level."""
        info = state.info
        task: Any = self.unwrapped
        level, command = info["level"], info["command"][:2]
        state = self.at_level(level).step(state, action)
        asked = norm(command)
        velocity, _, _ = task.body_motion(state.data)
        along = (velocity[:2] * command).sum() / jnp.where(asked > 0, asked, 1)
        covered = info["covered"] + self.dt * jnp.clip(along, -asked, asked)
        fell = jnp.where(task.off_terrain(state.data), 0, state.done)
        return self._with(state, level, covered, info["asked"] + self.dt * asked, fell)

    def _with(self, state: State, level: Array, covered: Array, asked: Array, fell: Array) -> State:
        real = state.reward.dtype
        own = dict(zip(OWN, (level, *(x.astype(real) for x in (covered, asked, fell))), strict=True))
        metrics = {**state.metrics, "level": level.astype(real)}
        return state.replace(info={**state.info, **own}, metrics=metrics)
