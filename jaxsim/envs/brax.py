"""Adapter for Brax's trainers: `train(environment=env, wrap_env_fn=jaxsim.envs.brax.wrap, ...)`.

Brax's SAC needs it; its PPO also runs without. With it every episode starts from a new random state, where Brax's own
wrapper goes back to the first one. Brax itself is not imported here.
"""

from collections.abc import Callable

import jax.numpy as jnp

from jaxsim.envs.base import Env, State
from jaxsim.envs.wrappers import Wrapper
from jaxsim.envs.wrappers import wrap as wrap_batch
from jaxsim.math.safe import Array


class BraxBatch(Wrapper):
    """Batch of episodes with the entries of `info` that Brax's evaluation reads.

    Brax's learner takes the next observation from `obs`. Where an episode was truncated, SAC's replay buffer therefore
    holds the first observation of the next one, as with Brax's own wrapper, and masks it by `truncation`.
    """

    def reset(self, rng: Array) -> State:
        """Reset all worlds to their first states; `rng` has one key for each world."""
        return self._with_brax_info(self.env.reset(rng))

    def step(self, state: State, action: Array) -> State:
        """Advance the states of all worlds by one action each."""
        steps = jnp.where(state.info["episode_done"] > 0, 0, state.info["steps"]).astype(jnp.int32)
        return self._with_brax_info(self.env.step(state.replace(info={**state.info, "steps": steps}), action))

    @staticmethod
    def _with_brax_info(state: State) -> State:
        """State whose `steps` is, as in Brax, the length of an episode at its end, and zero one step later."""
        info = dict(state.info)
        steps = jnp.where(state.done > 0, info["episode_length"], info["steps"])
        info["steps"] = steps.astype(state.reward.dtype)
        episode = {"sum_reward": info["episode_return"], "length": info["episode_length"].astype(state.reward.dtype)}
        episode |= {name: jnp.zeros_like(state.reward) for name in state.metrics if name != "reward"}
        return state.replace(info={**info, "episode_metrics": episode, "episode_done": state.done})


def wrap(
    env: Env, episode_length: int = 1000, action_repeat: int = 1, randomization_fn: Callable | None = None
) -> Wrapper:
    """Batch of episodes of one environment, with the signature of Brax's `wrap_env_fn`.

    `episode_length` counts inner steps: a repeated action counts `action_repeat` times. Raises ValueError for a
    `randomization_fn`: `jaxsim.envs.DomainRandomization` draws a model for every episode instead.
    """
    if randomization_fn is not None:
        raise ValueError("with this wrapper, give the trainer jaxsim.envs.DomainRandomization(env, randomize) instead")
    return BraxBatch(wrap_batch(env, -(-episode_length // action_repeat), action_repeat=action_repeat))
