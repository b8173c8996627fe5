"""Environment without physics, for tests of wrappers, adapters and trainers: a step has almost no cost."""

import dataclasses

import jax
import jax.numpy as jnp

from jaxsim.envs.base import Config, State, raw_key
from jaxsim.math.safe import Array


@dataclasses.dataclass(frozen=True)
class StubConfig(Config):
    """Sizes of the stub. `terminate_after`: steps until an episode ends. `diverge_after`: steps until it diverges."""

    nobs: int = 4
    naction: int = 2
    terminate_after: int = 0
    diverge_after: int = 0


class Stub:
    """Deterministic environment of constant cost: the observation counts steps, the reward is the action's mean."""

    model = None
    backend = "stub"

    def __init__(self, config: StubConfig = StubConfig()):
        self.config = config
        self.action_size, self.observation_size, self.dt = config.naction, config.nobs, config.ctrl_dt

    @property
    def unwrapped(self) -> "Stub":
        """This environment."""
        return self

    def _observe(self, count: Array, offset: Array) -> Array:
        return count + jnp.linspace(0, 1, self.config.nobs) + offset

    def reset(self, rng: Array) -> State:
        """Reset the environment; the observations of an episode share a random offset."""
        carried, draw = jax.random.split(rng)
        zero, offset = jnp.zeros(()), jax.random.uniform(draw)
        none = jnp.zeros((), jnp.int32)
        data = StubData(zero, offset, none, none)
        return State(data, self._observe(zero, offset), zero, zero, {"diverged": zero}, {"rng": raw_key(carried)})

    def step(self, state: State, action: Array) -> State:
        """Advance the state, with the counter increased by one."""
        if jnp.shape(action) != (self.action_size,):
            raise ValueError(f"an action of Stub has shape ({self.action_size},), not {jnp.shape(action)}")
        config, count = self.config, state.data.count + 1
        bad = (count == config.diverge_after) if config.diverge_after else jnp.zeros((), bool)
        done = bad | ((count >= config.terminate_after) if config.terminate_after else False)
        return state.replace(
            data=dataclasses.replace(state.data, count=count),
            obs=jnp.where(bad, 0, self._observe(count, state.data.offset)),
            reward=jnp.where(bad, 0, jnp.mean(action)).astype(count.dtype),
            done=done.astype(count.dtype),
            metrics={**state.metrics, "diverged": bad.astype(count.dtype)},
        )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StubData:
    """The fields of `Data` that wrappers read, and the stub's own state."""

    count: Array
    offset: Array
    overflow_contacts: Array
    overflow_constraints: Array
