"""Adapters for Gymnasium: an `Env` of one world, a `VectorEnv` over a batch. Need `pip install 'jaxsim-mjcf[gym]'`.

Importing this module registers every environment, also those registered later, as `jaxsim/<name>-v0`:

    gymnasium.make("jaxsim.envs.gym:jaxsim/cartpole_balance-v0", render_mode="rgb_array")
    gymnasium.make_vec("jaxsim.envs.gym:jaxsim/cartpole_balance-v0", num_envs=64)
    gymnasium.make("jaxsim.envs.gym:jaxsim/task-v0", env="my_tasks.py:spin")
"""

import dataclasses
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.base import State, raw_key
from jaxsim.envs.registry import for_each_name, make
from jaxsim.envs.wrappers import Vectorize, renew
from jaxsim.host.packing import Packing
from jaxsim.math.safe import Array
from jaxsim.native.core_program import core_program
from jaxsim.xla.options import jit

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as error:  # pragma: no cover - depends on the installation
    raise ImportError("jaxsim.envs.gym needs gymnasium: pip install 'jaxsim-mjcf[gym]'") from error


@lru_cache
def _process() -> int:
    """Id of the process that made the first environment, also in its forks."""
    return os.getpid()


def _refuse_forks() -> None:
    """Raise RuntimeError in a fork of a process that has used JAX: its first program would wait for ever."""
    if os.getpid() != _process():
        raise RuntimeError(
            "this process is a fork of one that uses JAX, whose threads a fork lacks: start processes with "
            "multiprocessing's spawn, AsyncVectorEnv(..., context='spawn'). GymVectorEnv needs no processes"
        )


class PackedWorld:
    """State of one world of an environment in few buffers, for loops on the host."""

    def __init__(self, env: Any):
        self.env = env
        self.packing: Packing | None = None  # of the state; None before the first reset
        self._buffers: Any = ()
        self._first: Any = None  # a compiled reset, and the packing of its state
        self._steps: dict[int, Any] = {}  # compiled steps, and the packings of their states, by the packing before

    def __reduce__(self) -> Any:
        state = None if self.packing is None else jax.tree.map(np.asarray, self.packing.unpack(self._buffers))
        return _packed_world, (self.env, state)

    def reset(self, key: Array) -> None:
        """Begin an episode."""
        if self._first is None:
            self._first = self._compiled(None, self.env.reset, key)
        program, self.packing = self._first
        self._buffers = program((), key)

    def step(self, action: np.ndarray) -> None:
        """Advance by one action."""
        before = self.packing
        assert before is not None  # the caller has reset
        if id(before) not in self._steps:
            step = lambda action, state: self.env.step(State(**state), action)  # noqa: E731
            self._steps[id(before)] = self._compiled(before, step, action)
        program, self.packing = self._steps[id(before)]
        self._buffers = program(self._buffers, action)

    def begin(self, state: dict[str, Any]) -> None:
        """Continue from a state, given by field."""
        self.packing = Packing(state)
        self._buffers = self.packing.pack(state)

    def read(self, name: str) -> Any:
        """Copy a field of the state to the host, into memory of its own."""
        assert self.packing is not None
        found = self.packing.read(self._buffers, name)
        return np.array(found) if isinstance(found, np.ndarray) else jax.tree.map(np.array, found)

    def number(self, name: str) -> float:
        """Read a field of the state that is one number."""
        assert self.packing is not None
        return self.packing.read(self._buffers, name).item()

    def numbers(self, name: str) -> dict[str, float]:
        """Read a field of the state that is a dictionary of numbers."""
        assert self.packing is not None
        return {key: value.item() for key, value in self.packing.read(self._buffers, name).items()}

    def _compiled(self, before: Packing | None, function: Callable[..., State], argument: Any) -> Any:
        """A program (buffers, argument) -> buffers, and the packing of its results; `before` is that of its buffers."""

        def fields(buffers: Any, argument: Any) -> dict[str, Any]:
            state = function(argument) if before is None else function(argument, before.unpack(buffers))
            return {f.name: getattr(state, f.name) for f in dataclasses.fields(State)}

        buffers = () if before is None else before.shapes
        after = Packing(jax.eval_shape(fields, buffers, argument))
        if before is not None and before == after:
            after = before
        backend = None if self.env.model is None else self.env.model.opt.backend
        packed = core_program(lambda *x: after.pack(fields(*x)), type(self.env).__name__, backend)
        return jit(packed).lower(buffers, argument).compile(), after


def _packed_world(env: Any, state: dict[str, Any] | None) -> PackedWorld:
    world = PackedWorld(env)
    if state is not None:
        world.begin(state)
    return world


class GymEnv(gymnasium.Env):
    """One world with Gymnasium's interface; results are NumPy arrays.

    Args:
        env: an environment of one world, or its name in the registry.
        render_mode: None, or "rgb_array": `render` gives a picture (height, width, 3) of bytes.
        episode_length: actions after which an episode is truncated; by default that of the environment's config.
        width: of pictures, in pixels.
        height: of pictures, in pixels.
        camera: name of the camera of pictures; by default the free one.
        config: fields of the config to change, where `env` is a name.

    For many worlds use `GymVectorEnv`: one world uses only a small part of a machine.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012, Gymnasium's

    def __init__(
        self,
        env: Any,
        *,
        render_mode: str | None = None,
        episode_length: int | None = None,
        width: int = 320,
        height: int = 240,
        camera: str | None = None,
        **config: Any,
    ):
        _refuse_forks()
        self.env = make(env, **config) if isinstance(env, str) else env
        self.metadata = {**type(self).metadata, "render_fps": round(1 / self.env.dt)}
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode is {render_mode!r}, wanted None or 'rgb_array'")
        self.render_mode, self.width, self.height, self.camera = render_mode, width, height, camera
        self.episode_length = episode_length or self.env.config.episode_length
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.env.action_size,), np.float32)
        self.observation_space = _observations(self.env)
        self._world = PackedWorld(self.env)
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict]:
        """Begin an episode: its first observation and metrics; without a seed, the sequence of episodes goes on."""
        super().reset(seed=seed)
        key = jax.random.PRNGKey(int(self.np_random.integers(2**31)))
        self._world.reset(key)
        self._steps = 0
        return self._world.read("obs"), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one action: observation, reward, whether the episode ended by itself or by its length, and metrics."""
        world = self._world
        if world.packing is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        world.step(np.asarray(action, np.float32))
        self._steps += 1
        terminal = world.number("done") > 0
        truncated = not terminal and self._steps >= self.episode_length
        return world.read("obs"), float(world.number("reward")), terminal, truncated, self._info()

    def render(self) -> np.ndarray | None:
        """Render a picture of the world (height, width, 3), bytes; None without a `render_mode`."""
        if self.render_mode is None or self._world.packing is None:
            return None
        from jaxsim.viewer.render import render

        d = self._world.read("data")
        frame = {name: jnp.asarray(getattr(d, name))[None] for name in ("qpos", "mocap_pos", "mocap_quat")}
        return render(self.env.model, frame, camera=self.camera, width=self.width, height=self.height)[0]

    def _info(self) -> dict[str, float]:
        return {name: float(value) for name, value in self._world.numbers("metrics").items()}


class GymVectorEnv(VectorEnv):
    """Batch of worlds of one environment with Gymnasium's interface.

    Observations, rewards and flags are JAX arrays that stay on the device until they are converted
    (`np.asarray(obs)`); `to_numpy=True` brings every result to the host at once.

    Args:
        env: an environment of one world, or its name in the registry.
        num_envs: number of worlds.
        episode_length: actions after which an episode is truncated; by default that of the environment's config.
        autoreset_mode: Gymnasium's: NEXT_STEP (an episode that ended is reset by the next `step`, which ignores that
            world's action), SAME_STEP (reset at once, with `infos["final_obs"]` and `infos["final_info"]`) or DISABLED
            (`reset(options={"reset_mask": mask})`).
        to_numpy: bring results to the host.
        config: fields of the config to change, where `env` is a name.

    `reset(seed=...)` draws the worlds' keys from that seed; without a seed, the next keys of the running sequence.
    """

    def __init__(
        self,
        env: Any,
        num_envs: int,
        *,
        episode_length: int | None = None,
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        to_numpy: bool = False,
        **config: Any,
    ):
        self.env = make(env, **config) if isinstance(env, str) else env
        self.num_envs, self.to_numpy = num_envs, to_numpy
        self.mode = AutoresetMode(autoreset_mode)
        self.metadata = {"autoreset_mode": self.mode, "render_modes": []}
        self.episode_length = episode_length or self.env.config.episode_length
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.env.action_size,), np.float32)
        self.single_observation_space = _observations(self.env)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._batch = Vectorize(self.env)
        self._compile()
        self._state: Any = None  # a State after the first reset
        self._rng = None

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict]:
        """Reset all worlds, or those in `options["reset_mask"]`, and return their first observations."""
        super().reset(seed=seed)
        if seed is not None or self._rng is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
            self._rng = jax.vmap(raw_key)(jax.random.split(jax.random.key(seed), self.num_envs))
        mask = (options or {}).get("reset_mask")
        if mask is None or self._state is None:
            if mask is not None and not np.all(mask):
                raise ValueError("the first reset must reset all worlds: leave out options['reset_mask']")
            self._state, self._rng = self._call(self._reset, self._rng)
        else:
            mask = np.asarray(mask, bool)
            if mask.shape != (self.num_envs,) or not mask.any():
                raise ValueError(
                    f"reset_mask must have shape ({self.num_envs},) and a true entry; got shape {mask.shape} with "
                    f"{int(mask.sum())} true entries"
                )
            self._state, self._rng = self._call(self._renew, self._state, mask, self._rng)
        return self._out(self._state.obs), self._infos(self._state)

    def step(self, actions: Array) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Take one action in each world; `autoreset_mode` says what happens where an episode ended."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        if np.shape(actions) != (self.num_envs, self.env.action_size):
            expected = (self.num_envs, self.env.action_size)
            raise ValueError(f"actions have shape {expected}, not {np.shape(actions)}")
        if self.mode is AutoresetMode.DISABLED and bool(jnp.any(self._state.done > 0)):
            raise gymnasium.error.ResetNeeded("episodes ended: reset them with options={'reset_mask': mask}")
        result = self._call(self._step, self._state, jnp.asarray(actions, jnp.float32), self._rng)
        self._state, self._rng, terminal, truncated, final = result
        infos = self._infos(self._state)
        if self.mode is AutoresetMode.SAME_STEP:
            ended = terminal | truncated
            infos |= {"final_obs": self._out(final.obs), "_final_obs": self._out(ended)}
            infos |= {"final_info": self._infos(final), "_final_info": self._out(ended)}
        out = (self._state.obs, final.reward, terminal, truncated)
        return (*(self._out(x) for x in out), infos)

    def state(self) -> State:
        """Return the current state of the batch, on the device."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset first")
        return self._state

    def __getstate__(self) -> dict[str, Any]:
        """Everything but compiled functions, which are made anew."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_reset", "_step", "_renew")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._compile()

    def _compile(self) -> None:
        self._reset, self._step, self._renew = jit(self._start), jit(self._advance), jit(self._restart)

    def _start(self, rng: Array) -> tuple[State, Array]:
        keys = jax.vmap(jax.random.split)(rng)
        state = self._batch.reset(keys[:, 0])
        steps = jnp.zeros(self.num_envs, jnp.int32)
        return state.replace(info={**state.info, "steps": steps}), keys[:, 1]

    def _restart(self, state: State, which: Array, rng: Array) -> tuple[State, Array]:
        state, rng = renew(self._batch, state, which, rng)
        steps = jnp.where(which, 0, state.info["steps"])
        metrics = {k: jnp.where(which, 0, v) for k, v in state.metrics.items()}
        done = jnp.where(which, 0, state.done)
        return state.replace(info={**state.info, "steps": steps}, done=done, metrics=metrics), rng

    def _advance(self, state: State, action: Array, rng: Array) -> tuple:
        """Next state, next keys, terminated, truncated, and the state of the step before any reset."""
        ended = state.done > 0
        new = self._batch.step(state.replace(done=jnp.zeros_like(state.done)), action)
        new = new.replace(info={**new.info, "steps": state.info["steps"] + 1})
        if self.mode is AutoresetMode.NEXT_STEP:
            new = new.replace(reward=jnp.where(ended, 0, new.reward), done=jnp.where(ended, 0, new.done))
            new, rng = self._restart(new, ended, rng)
        terminal = new.done > 0
        truncated = (new.info["steps"] >= self.episode_length) & ~terminal
        new = new.replace(done=jnp.maximum(new.done, truncated))
        final = new
        if self.mode is AutoresetMode.SAME_STEP:
            new, rng = self._restart(new, terminal | truncated, rng)
        return new, rng, terminal, truncated, final.replace(data=None)

    def _infos(self, state: State) -> dict[str, Any]:
        """Metrics and step counts, each with Gymnasium's mask `_name` of the worlds that have it: all."""
        everywhere = self._out(np.ones(self.num_envs, bool))
        infos = {name: self._out(x) for name, x in {**state.metrics, "steps": state.info["steps"]}.items()}
        return infos | {f"_{name}": everywhere for name in infos}

    def _out(self, x: Any) -> Any:
        return jax.device_get(x) if self.to_numpy else x

    def _call(self, function: Any, *args: Any) -> Any:
        """Result of a compiled function; raises MemoryError with the remedy when the device is out of memory."""
        try:
            return function(*args)
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise MemoryError(f"out of memory with {self.num_envs} worlds: reduce num_envs") from error


def _observations(env: Any) -> gymnasium.Space:
    """Space of the observations of an environment, bounded where it says so."""
    obs, bounds = jax.eval_shape(env.reset, jax.random.PRNGKey(0)).obs, getattr(env, "observation_bounds", {})

    def space(x: Any, low: float = -np.inf, high: float = np.inf) -> gymnasium.Space:
        return gymnasium.spaces.Box(low, high, x.shape, np.dtype(x.dtype).type)

    if isinstance(obs, Mapping):
        return gymnasium.spaces.Dict({k: space(v, *bounds.get(k, ())) for k, v in obs.items()})
    return space(obs)


def _register(id: str, env: str | None) -> None:
    """Register an environment with Gymnasium, for one world and for a batch."""
    gymnasium.register(
        id=id,
        entry_point=GymEnv,  # pyright: ignore[reportArgumentType]
        vector_entry_point=GymVectorEnv,  # pyright: ignore[reportArgumentType]
        kwargs={} if env is None else {"env": env},
    )


for_each_name(lambda name: _register(f"jaxsim/{name}-v0", name))
_register("jaxsim/task-v0", None)  # of the name in its argument `env`
