"""Wrappers: batches, episodes, randomised models, repeated and delayed actions, normalised observations.

`DomainRandomization`, `ActionRepeat` and `ActionDelay` wrap an environment of one world. `Vectorize` makes a batch of
it. `AutoReset` and `NormalizeObservation` wrap a batch. `wrap` composes them in that order.
"""

import copy
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.core.model import Model
from jaxsim.envs.base import Env, Info, State, first_state, raw_key
from jaxsim.math.safe import Array


class Wrapper:
    """Environment around an inner one; attributes that it does not define are the inner environment's."""

    def __init__(self, env: Any):
        self.env = env

    def reset(self, rng: Array, last: Info | None = None) -> State:
        """Reset the inner environment; `last` holds entries of the last episode (`Env.lasting`)."""
        return first_state(self.env, rng, last)

    def step(self, state: State, action: Array) -> State:
        """Advance the inner environment by one action."""
        return self.env.step(state, action)

    @property
    def unwrapped(self) -> Env:
        """The environment below all wrappers."""
        return self.env.unwrapped

    def with_model(self, model: Model) -> "Wrapper":
        """Copy of the wrapped environment with another model of the same structure."""
        other = copy.copy(self)
        other.env = self.env.with_model(model)
        return other

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)


class ModelDraw:
    """The numbers of a model that a function `draw(model, rng) -> model` replaces, by path.

    Any float may be changed, with `model.replace` and `model.opt.replace`; a change of structure raises ValueError.
    With `derive`, `jaxsim.set_const` recomputes the derived constants. `like` is a model of the structure.
    """

    def __init__(self, like: Model, draw: Callable[[Model, Array], Model], derive: bool):
        self._draw, self._derive = draw, derive
        self._changed: tuple[int, ...] | None = None  # positions of the leaves that `draw` replaces
        self._names = [jax.tree_util.keystr(path)[1:] for path, _ in jax.tree_util.tree_leaves_with_path(like)]
        jax.eval_shape(self.numbers, like, jax.random.PRNGKey(0))

    def numbers(self, nominal: Model, rng: Array) -> dict[str, Array]:
        """Draw new numbers."""
        drawn = self._draw(nominal, rng)
        if jax.tree.structure(drawn) != jax.tree.structure(nominal):
            raise ValueError("domain randomisation may change numbers of a model only, not its structure")
        if self._derive:
            drawn = jaxsim.set_const(drawn)
        old, new = jax.tree.leaves(nominal), jax.tree.leaves(drawn)
        if self._changed is None:
            self._changed = tuple(i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a is not b)
        return {self._names[i]: new[i] for i in self._changed}

    def model(self, nominal: Model, drawn: dict[str, Array]) -> Model:
        """Return the model with the numbers drawn."""
        leaves, structure = jax.tree.flatten(nominal)
        for i in self._changed or ():
            leaves[i] = drawn[self._names[i]]
        return jax.tree.unflatten(structure, leaves)


class DomainRandomization(Wrapper):
    """Environment that draws a model for every episode by `randomize(model, rng) -> model`; see `ModelDraw`.

    The numbers drawn are in `info["model"]`, by path.
    """

    def __init__(self, env: Any, randomize: Callable[[Model, Array], Model], derive: bool = True):
        super().__init__(env)
        self._models = ModelDraw(env.model, randomize, derive)

    def _inner(self, drawn: dict[str, Array]) -> Any:
        return self.env.with_model(self._models.model(self.env.model, drawn))

    def reset(self, rng: Array, last: Info | None = None) -> State:
        """Reset the environment, with a newly drawn model."""
        draw, rng = jax.random.split(rng)
        drawn = self._models.numbers(self.env.model, draw)
        state = first_state(self._inner(drawn), rng, last)
        return state.replace(info={**state.info, "model": drawn})

    def step(self, state: State, action: Array) -> State:
        """Advance the state by one action, with the model drawn for this episode."""
        return self._inner(state.info["model"]).step(state, action)


class ActionRepeat(Wrapper):
    """Environment that applies every action `repeat` times and sums the rewards, until the episode ends."""

    def __init__(self, env: Any, repeat: int):
        super().__init__(env)
        if repeat < 1:
            raise ValueError(f"repeat={repeat}: an action is taken at least once")
        self.repeat = repeat

    @property
    def dt(self) -> float:
        """Seconds of one step."""
        return self.env.dt * self.repeat

    def step(self, state: State, action: Array) -> State:
        """Advance the state by `repeat` steps of the inner environment."""

        def again(_: Array, state: State) -> State:
            new = self.env.step(state, action)
            ended = state.done > 0
            kept = jax.tree.map(lambda a, b: jnp.where(ended, a, b), state, new)
            return kept.replace(reward=state.reward + jnp.where(ended, 0, new.reward))

        start = state.replace(reward=jnp.zeros_like(state.reward), done=jnp.zeros_like(state.done))
        return jax.lax.fori_loop(0, self.repeat, again, start)


class ActionDelay(Wrapper):
    """Environment whose actions take effect `delay` steps late, or a number drawn per episode from `(least, most)`.

    Until the first action takes effect, the action is zero. Pending actions are `info["delayed"]`, the newest first.
    """

    def __init__(self, env: Any, delay: int | tuple[int, int]):
        super().__init__(env)
        self.least, self.most = (delay, delay) if isinstance(delay, int) else delay
        if not 0 <= self.least <= self.most:
            raise ValueError(f"delay={delay}: expected 0 <= least <= most")

    def reset(self, rng: Array, last: Info | None = None) -> State:
        """Reset the environment, with a newly drawn delay."""
        draw, rng = jax.random.split(rng)
        state = first_state(self.env, rng, last)
        delay = jax.random.randint(draw, (), self.least, self.most + 1)
        queue = jnp.zeros((self.most + 1, self.env.action_size), state.reward.dtype)
        return state.replace(info={**state.info, "delay": delay, "delayed": queue})

    def step(self, state: State, action: Array) -> State:
        """Advance the state by the action of `delay` steps ago."""
        queue = state.info["delayed"]
        if jnp.shape(action) != queue.shape[1:]:  # the inner environment raises the error
            return self.env.step(state, action)
        queue = jnp.concatenate([jnp.asarray(action, queue.dtype)[None], queue[:-1]])
        return self.env.step(state.replace(info={**state.info, "delayed": queue}), queue[state.info["delay"]])


class Vectorize(Wrapper):
    """Batch of worlds: `reset` takes keys (nworld, ...) and `step` actions (nworld, action_size)."""

    def reset(self, rng: Array, last: Info | None = None) -> State:
        """Reset all worlds to their first states."""
        if last is None:
            return jax.vmap(lambda rng: first_state(self.env, rng))(rng)
        return jax.vmap(lambda rng, last: first_state(self.env, rng, last))(rng, last)

    def step(self, state: State, action: Array) -> State:
        """Advance the states of all worlds by one action each."""
        if jnp.ndim(action) != 2 or action.shape[0] != state.done.shape[0]:
            expected = (state.done.shape[0], self.action_size)
            raise ValueError(f"actions of a batch have shape {expected}, not {jnp.shape(action)}")
        return jax.vmap(self.env.step)(state, action)


class AutoReset(Wrapper):
    """Batch of episodes with a time limit; a world whose episode ends is reset at once to a new random state.

    `done` is 1.0 where an episode ended; `obs` is then already the first observation of the next. In `info`:
    `truncation`: 1.0 where only the time limit ended it: a value function must be bootstrapped from `final_obs`.
    `final_obs`: the observation at the end of this step, before any reset, in every world.
    `steps`: actions of the running episode. `episode_return`, `episode_length`: of the episode that ended last.
    `episodes`, `diverged`: number of episodes that ended, and of those that ended in a state that is not finite.
    `overflow`: contacts and constraint rows dropped for lack of capacity, the maximum over episodes.

    Entries of `info` that the environment lists in `lasting` (such as the level of a curriculum) are kept.

    Only worlds whose episode ended are reset, in slices, so that the cost depends on their number. Reverse-mode
    derivatives do not pass through a reset; to differentiate a rollout use only `Vectorize`. `stagger` starts the
    worlds at random times of their first episode, so that episodes do not end together.
    """

    def __init__(self, env: Any, episode_length: int, stagger: bool = False):
        super().__init__(env)
        self.episode_length, self.stagger = episode_length, stagger

    def reset(self, rng: Array) -> State:
        """Reset all worlds to their first states; `rng` has one key for each world."""
        keys = jax.vmap(lambda k: jax.random.split(k, 3))(rng)
        state = self.env.reset(keys[:, 0])
        zero = jnp.zeros_like(state.reward)
        count = jnp.zeros(state.reward.shape, jnp.int32)
        steps = count
        if self.stagger:
            steps = jax.vmap(lambda k: jax.random.randint(k, (), 0, self.episode_length))(keys[:, 2])
        own = {
            "reset_rng": raw_key(keys[:, 1]),
            "final_obs": jax.tree.map(jnp.copy, state.obs),
            "steps": steps,
            "truncation": zero,
            "running_return": zero,
            "running_length": count,
            "episode_return": zero,
            "episode_length": count,
            **dict.fromkeys(("episodes", "diverged", "overflow"), count),
        }
        return state.replace(info={**state.info, **own})

    def step(self, state: State, action: Array) -> State:
        """Advance the states by one action each, with new first states where episodes ended."""
        state = self.env.step(state.replace(done=jnp.zeros_like(state.done)), action)
        info = state.info
        steps = info["steps"] + 1
        terminal = state.done > 0
        truncated = (steps >= self.episode_length) & ~terminal
        ended = terminal | truncated
        total, length = info["running_return"] + state.reward, info["running_length"] + 1
        dropped = state.data.overflow_contacts + state.data.overflow_constraints
        own = {
            "final_obs": state.obs,
            "steps": jnp.where(ended, 0, steps),
            "truncation": truncated.astype(state.done.dtype),
            "running_return": jnp.where(ended, 0, total),
            "running_length": jnp.where(ended, 0, length),
            "episode_return": jnp.where(ended, total, info["episode_return"]),
            "episode_length": jnp.where(ended, length, info["episode_length"]),
            "episodes": info["episodes"] + ended,
            "diverged": info["diverged"] + (state.metrics["diverged"] > 0),
            "overflow": jnp.maximum(info["overflow"], dropped),
        }
        state = state.replace(done=ended.astype(state.done.dtype), info={**info, **own})
        state, keys = renew(self.env, state, ended, info["reset_rng"])
        return state.replace(info={**state.info, "reset_rng": keys})


def renew(env: Any, state: State, which: Array, rng: Array) -> tuple[State, Array]:
    """Give `state` new first states where `which` (nworld,) holds, and next keys; `rng` (nworld, ...) is raw keys.

    Replaces `data`, `obs` and the environment's own entries of `info`. The reset gets the `lasting` entries from the
    end of the episode. Worlds are reset in slices of a sixteenth of the batch until none is left.
    """
    nworld = which.shape[0]
    size = min(nworld, max(8, -(-nworld // 16)))
    order = jnp.argsort(~which, stable=True)
    count = which.sum()

    def body(carry: tuple) -> tuple:
        first, parts, rng = carry
        slots = first + jnp.arange(size)
        worlds = order[jnp.minimum(slots, nworld - 1)]
        keys = jax.vmap(jax.random.split)(rng[worlds])
        last = {k: parts["info"][k][worlds] for k in getattr(env, "lasting", ())}
        fresh = first_state(env, keys[:, 0], last)
        target = jnp.where(slots < count, worlds, nworld)  # out of range past the last world: dropped
        new = {k: fresh.info[k] for k in parts["info"]}
        new = {"data": fresh.data, "obs": fresh.obs, "info": new}
        parts = jax.tree.map(lambda old, x: old.at[target].set(x.astype(old.dtype), mode="drop"), parts, new)
        return first + size, parts, rng.at[target].set(keys[:, 1], mode="drop")

    kept = jax.eval_shape(env.reset, rng).info
    parts = {"data": state.data, "obs": state.obs, "info": {k: state.info[k] for k in kept}}
    _, parts, rng = jax.lax.while_loop(lambda c: c[0] < count, body, (jnp.zeros((), count.dtype), parts, rng))
    info = {**state.info, **parts["info"]}
    return state.replace(data=parts["data"], obs=parts["obs"], info=info), rng


class NormalizeObservation(Wrapper):
    """Batch with observations of mean zero and variance one, by running moments over all worlds and steps.

    The moments are `info["moments"]` (no axis of worlds): count, mean, and the sum of squared deviations. `obs` and
    `info["final_obs"]` are normalised alike and clipped to `limit`. With `learn=False` the moments are not updated.
    """

    def __init__(self, env: Any, limit: float = 10.0, learn: bool = True):
        super().__init__(env)
        self.limit, self.learn = limit, learn

    def reset(self, rng: Array) -> State:
        """Reset all worlds to their first states, with observations normalised by their own moments."""
        state = self.env.reset(rng)
        return self._normal(state, first_moments(state.obs))

    def step(self, state: State, action: Array) -> State:
        """Advance the states by one action each, and normalise the observations."""
        moments = state.info["moments"]
        inner = {k: v for k, v in state.info.items() if k != "moments"}
        state = self.env.step(state.replace(info=inner), action)
        if self.learn:
            moments = update_moments(moments, state.obs)
        return self._normal(state, moments)

    def _normal(self, state: State, moments: dict[str, Any]) -> State:
        info = {**state.info, "moments": moments}
        if "final_obs" in info:
            info["final_obs"] = normalize(moments, info["final_obs"], self.limit)
        return state.replace(obs=normalize(moments, state.obs, self.limit), info=info)


def first_moments(obs: Any) -> dict[str, Any]:
    """Compute the moments of one batch of observations, whose leading axis is the batch."""
    first = jax.tree.leaves(obs)[0]
    mean = jax.tree.map(lambda x: x.mean(0), obs)
    square = jax.tree.map(lambda x, mean: jnp.square(x - mean).sum(0), obs, mean)
    return {"count": jnp.asarray(first.shape[0], first.dtype), "mean": mean, "square": square}


def merge_moments(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Combine the moments of two samples."""
    count = a["count"] + b["count"]
    change = jax.tree.map(lambda x, y: y - x, a["mean"], b["mean"])
    mean = jax.tree.map(lambda x, c: x + c * b["count"] / count, a["mean"], change)
    both = a["count"] * b["count"] / count
    square = jax.tree.map(lambda x, y, c: x + y + c**2 * both, a["square"], b["square"], change)
    return {"count": count, "mean": mean, "square": square}


def update_moments(moments: dict[str, Any], obs: Any) -> dict[str, Any]:
    """Update running moments by a batch of observations, whose leading axis is the batch."""
    return merge_moments(moments, first_moments(obs))


def normalize(moments: dict[str, Any], obs: Any, limit: float = 10.0) -> Any:
    """Subtract the running mean from observations, divide by the standard deviation, and clip to [-limit, limit]."""

    def one(x: Array, mean: Array, square: Array) -> Array:
        variance = square / jnp.maximum(moments["count"], 1)
        return jnp.clip((x - mean) / jnp.sqrt(variance + 1e-6), -limit, limit)

    return jax.tree.map(one, obs, moments["mean"], moments["square"])


def wrap(
    env: Env | Wrapper,
    episode_length: int | None = None,
    *,
    action_repeat: int = 1,
    action_delay: int | tuple[int, int] = 0,
    randomize: Callable[[Model, Array], Model] | None = None,
    normalize_observation: bool = False,
    stagger: bool = False,
) -> Wrapper:
    """Batch of episodes of `env`, as trainers step it.

    Args:
        env: an environment of one world.
        episode_length: actions after which an episode is truncated; by default that of the environment's config.
        action_repeat: inner steps of one action.
        action_delay: steps by which actions take effect late, or a range to draw from for each episode.
        randomize: `(model, rng) -> model`, drawn for each episode; see `DomainRandomization`.
        normalize_observation: see `NormalizeObservation`.
        stagger: see `AutoReset`.
    """
    length = episode_length or env.config.episode_length
    world: Env | Wrapper = env
    if randomize is not None:
        world = DomainRandomization(world, randomize)
    if action_repeat > 1:
        world = ActionRepeat(world, action_repeat)
    if action_delay != 0:
        world = ActionDelay(world, action_delay)
    batch = AutoReset(Vectorize(world), length, stagger)
    return NormalizeObservation(batch) if normalize_observation else batch


def diagnostics(state: State) -> list[str]:
    """Describe divergence and overflow in a batch so far, a sentence each with its remedy; empty when there was none.

    Host-side.
    """
    info, found = jax.device_get({k: state.info[k] for k in ("diverged", "episodes", "overflow")}), []
    worlds = len(info["diverged"])
    if info["diverged"].any():
        found.append(
            f"{int(info['diverged'].sum())} of {int(info['episodes'].sum())} episodes ended because the state was no "
            "longer finite; use a smaller sim_dt, lower gains, or more damping"
        )
    if info["overflow"].any():
        found.append(
            f"contacts or constraint rows were dropped in {int((info['overflow'] > 0).sum())} of {worlds} worlds "
            f"(at most {int(info['overflow'].max())} in one); raise max_contacts or max_constraints in the config"
        )
    return found
