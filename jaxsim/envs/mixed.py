"""Worlds of different structure in groups: several environments stepped together, for one policy."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.envs.base import Env, State
from jaxsim.envs.wrappers import Wrapper, wrap
from jaxsim.math.safe import Array

SHARED = ("truncation", "episode_return", "episode_length", "episodes", "diverged", "overflow")


class Mixed:
    """A batch of groups of worlds, each group of another environment: robots, terrains or numbers of objects differ.

    Observations of all groups are one array (or one mapping of arrays), the worlds of the first group first. Shorter
    observations are padded with zeros, and shorter actions are the first entries of the given ones. Groups may differ
    in the entries of `metrics`: only common entries are kept. `State.data` holds the groups' own states.

    Args:
        environments: environments of one world each, or batches made by `wrap`.
        worlds: number of worlds of each group.
        settings: of `wrap`, for environments that are not batches yet.

    Raises:
        ValueError: the numbers are inconsistent, or some observations are mappings and others are not.
    """

    def __init__(self, environments: Sequence[Env | Wrapper], worlds: Sequence[int], **settings: Any):
        if not environments or len(environments) != len(worlds):
            raise ValueError(f"{len(environments)} environments and {len(worlds)} numbers of worlds")
        if min(worlds) < 1:
            raise ValueError(f"worlds={list(worlds)}: each group has at least one world")
        self.groups = [e if hasattr(e, "episode_length") else wrap(e, **settings) for e in environments]
        self.worlds = tuple(int(n) for n in worlds)
        shapes = [jax.eval_shape(g.unwrapped.reset, jax.random.PRNGKey(0)).obs for g in self.groups]
        kinds = {jax.tree.structure(s) for s in shapes}
        if len(kinds) > 1:
            raise ValueError(f"observations of the groups differ in kind: {', '.join(map(str, kinds))}")
        self._shape = jax.tree.map(lambda *x: max(s.shape[-1] for s in x), *shapes)
        self.action_size = max(g.action_size for g in self.groups)

    @property
    def observation_size(self) -> Any:
        """Number of entries of an observation, by name for a mapping."""
        return self._shape

    def reset(self, rng: Array) -> State:
        """Reset all worlds to their first states; `rng` has one key for each world."""
        if rng.shape[0] != sum(self.worlds):
            raise ValueError(f"reset takes {sum(self.worlds)} keys, one for each world, not {rng.shape[0]}")
        ends = [sum(self.worlds[: i + 1]) for i in range(len(self.worlds))]
        keys = [rng[end - n : end] for end, n in zip(ends, self.worlds, strict=True)]
        return self._together([g.reset(k) for g, k in zip(self.groups, keys, strict=True)])

    def step(self, state: State, action: Array) -> State:
        """Advance the states of all worlds by one action (nworld, action_size) each."""
        expected = (state.done.shape[0], self.action_size)
        if jnp.shape(action) != expected:
            raise ValueError(f"actions of these groups have shape {expected}, not {jnp.shape(action)}")
        first, states = 0, []
        for group, inner in zip(self.groups, state.data, strict=True):
            last = first + inner.done.shape[0]  # of this device, where worlds are spread over several
            states.append(group.step(inner, action[first:last, : group.action_size]))
            first = last
        return self._together(states)

    def _together(self, states: list[State]) -> State:
        def joined(*parts: Array) -> Array:
            return jnp.concatenate(parts)

        def padded(obs: Any) -> Any:
            return jax.tree.map(lambda x, n: jnp.pad(x, ((0, 0), (0, n - x.shape[-1]))), obs, self._shape)

        kept = [k for k in states[0].metrics if all(k in s.metrics for s in states)]
        info = {k: joined(*[s.info[k] for s in states]) for k in SHARED}
        info["final_obs"] = jax.tree.map(joined, *[padded(s.info["final_obs"]) for s in states])
        return State(
            data=tuple(states),
            obs=jax.tree.map(joined, *[padded(s.obs) for s in states]),
            reward=joined(*[s.reward for s in states]),
            done=joined(*[s.done for s in states]),
            metrics={k: joined(*[s.metrics[k] for s in states]) for k in kept},
            info=info,
        )
