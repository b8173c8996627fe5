"""Brax's trainers on our environments: `train(environment=env, wrap_env_fn=jaxsim.envs.brax.wrap, ...)`.

PPO takes an environment without it as well; SAC asks for it. With it every episode starts from a fresh random state,
where Brax's own wrapper goes back to the first. Brax itself is not imported here.
"""

from collections.abc import Callable

import jax.numpy as jnp

from jaxsim.envs.base import Env, State
from jaxsim.envs.wrappers import Wrapper
from jaxsim.envs.wrappers import wrap as wrap_batch
from jaxsim.math.safe import Array


class BraxBatch(Wrapper):
    """A batch of episodes that carries what Brax's evaluation reads; its limit counts actions before repetition.

    Brax's learner takes the next observation from `obs`; SAC's replay buffer therefore sees, where an episode was cut
    off, the first observation of the next one, as with Brax's own wrapper, and masks it by `truncation`.
    """

    def reset(self, rng: Array) -> State:
        """First states; `rng` has one key for each world."""
        return self._carry(self.env.reset(rng))

    def step(self, state: State, action: Array) -> State:
        """A step of all worlds."""
        steps = jnp.where(state.info["episode_done"] > 0, 0, state.info["steps"]).astype(jnp.int32)
        return self._carry(self.env.step(state.replace(info={**state.info, "steps": steps}), action))

    @staticmethod
    def _carry(state: State) -> State:
        """At the end of an episode `steps` is its length, as Brax has it, and zero one step later."""
        info = dict(state.info)
        steps = jnp.where(state.done > 0, info["episode_length"], info["steps"])
        info["steps"] = steps.astype(state.reward.dtype)
        episode = {"sum_reward": info["episode_return"], "length": info["episode_length"].astype(state.reward.dtype)}
        episode |= {name: jnp.zeros_like(state.reward) for name in state.metrics if name != "reward"}
        return state.replace(info={**info, "episode_metrics": episode, "episode_done": state.done})


def wrap(
    env: Env, episode_length: int = 1000, action_repeat: int = 1, randomization_fn: Callable | None = None
) -> Wrapper:
    """What Brax calls to make a batch of episodes of one environment.

    Raises ValueError for a `randomization_fn`: `jaxsim.envs.DomainRandomization` draws a model for every episode.
    """
    if randomization_fn is not None:
        raise ValueError("with this wrapper, give the trainer jaxsim.envs.DomainRandomization(env, randomize) instead")
    return BraxBatch(wrap_batch(env, -(-episode_length // action_repeat), action_repeat=action_repeat))
