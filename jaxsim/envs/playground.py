"""Adapter for MuJoCo Playground (`playground==0.2.0`): its environments, unchanged, on this engine.

    from jaxsim.envs import playground, wrap
    env = playground.load("CartpoleBalance")
    batch = wrap(env)

Playground's code calls `mujoco.mjx`. While one of its environments is built or traced, the functions of that module
are those of `jaxsim.mjx`; they are restored afterwards. Needs playground with its dependencies, `mujoco` included.
Environments that render (vision), and models with unsupported features, raise UnsupportedError.
"""

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim import mjx
from jaxsim.envs.base import State, diverged, observation_size
from jaxsim.math.safe import Array


@contextlib.contextmanager
def _replaced_mjx(models: dict[int, mjx.Model]) -> Iterator[None]:
    """Context in which the functions of `mujoco.mjx` that Playground calls are jaxsim's.

    `models` collects the models made, by the id of their mjModel.
    """
    from mujoco import mjx as theirs

    def put_model(mj_model: Any, *_: Any, **__: Any) -> mjx.Model:
        models[id(mj_model)] = mjx.put_model(mj_model)
        return models[id(mj_model)]

    def make_data(m: Any, *_: Any, **__: Any) -> mjx.Data:
        return mjx.make_data(models.get(id(m), m))

    ours = {name: getattr(mjx, name) for name in mjx.__all__ if name.islower() and hasattr(theirs, name)}
    replacements = {**ours, "put_model": put_model, "make_data": make_data}
    originals = {name: getattr(theirs, name) for name in replacements}
    try:
        for name, function in replacements.items():
            setattr(theirs, name, function)
        yield
    finally:
        for name, function in originals.items():
            setattr(theirs, name, function)


class Playground:
    """Environment of MuJoCo Playground on this engine, with the interface of `jaxsim.envs.Env`.

    Args:
        make: builds Playground's environment; called once.

    A world that diverges ends its episode and is counted, as in every environment of jaxsim.
    """

    backend = "jaxsim"

    def __init__(self, make: Callable[[], Any]):
        self._models: dict[int, mjx.Model] = {}
        with _replaced_mjx(self._models):
            self.env = make()
        self._state_type: Any = None
        self.model = self.env.mjx_model.model
        self.action_size, self.dt = int(self.env.action_size), float(self.env.dt)
        length = getattr(self.env._config, "episode_length", 1000)
        self.config = SimpleNamespace(episode_length=int(length), ctrl_dt=self.dt)

    @property
    def unwrapped(self) -> "Playground":
        """This environment."""
        return self

    @property
    def observation_size(self) -> Any:
        """Number of entries of an observation; for a mapping, the shapes by name."""
        return observation_size(self)

    def reset(self, rng: Array) -> State:
        """Reset the environment to the first state of an episode."""
        with _replaced_mjx(self._models):
            state = self.env.reset(rng)
        self._state_type = type(state)
        zero = jnp.zeros((), state.data.qpos.dtype)
        metrics = {name: jnp.asarray(x, zero.dtype) for name, x in state.metrics.items()}
        return State(state.data, state.obs, zero, zero, {**metrics, "diverged": zero}, dict(state.info))

    def step(self, state: State, action: Array) -> State:
        """Advance the state by one action."""
        if jnp.shape(action) != (self.action_size,):
            name = type(self.env).__name__
            raise ValueError(f"an action of {name} has shape ({self.action_size},), not {jnp.shape(action)}")
        real = state.data.qpos.dtype
        metrics = {k: v for k, v in state.metrics.items() if k != "diverged"}
        inner = self._state_type(state.data, state.obs, state.reward, state.done, metrics, dict(state.info))
        with _replaced_mjx(self._models):
            new = self.env.step(inner, jnp.asarray(action, real))
        bad = diverged(new.data, new.obs, new.reward)
        metrics = {k: jnp.where(bad, 0, v).astype(real) for k, v in new.metrics.items()}
        return state.replace(
            data=new.data,
            obs=jax.tree.map(lambda x: jnp.where(bad, jnp.zeros_like(x), x), new.obs),
            reward=jnp.where(bad, 0, new.reward).astype(real),
            done=jnp.where(bad, 1, new.done).astype(real),
            metrics={**metrics, "diverged": bad.astype(real)},
            info=jax.tree.map(_of_the_kind_of, dict(new.info), dict(state.info)),
        )


def _of_the_kind_of(x: Any, old: Any) -> Array:
    """A value with the dtype of the one before; new-style keys of `jax.random.key` pass as they are."""
    dtype = jnp.asarray(old).dtype
    return x if jnp.issubdtype(dtype, jax.dtypes.prng_key) else jnp.asarray(x, dtype)


def load(name: str, **overrides: Any) -> Playground:
    """Load an environment by its name in Playground's registry; `overrides` change its config.

    Raises ImportError that names the package to install, ValueError for an unknown name, UnsupportedError for a feature
    that jaxsim does not have.
    """
    try:
        from mujoco_playground import registry  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError("jaxsim.envs.playground needs playground: pip install playground==0.2.0") from error
    return Playground(lambda: registry.load(name, config_overrides={"impl": "jax", **overrides}))
