"""Adapter for MuJoCo Playground (`playground==0.2.0`): its environments, unchanged, on this engine.

    from jaxsim.envs import playground, wrap
    env = playground.load("CartpoleBalance")
    batch = wrap(env)

Playground's code calls `mujoco.mjx`. While one of its environments is built or traced, the functions of `mjx` that it
calls are replaced by jaxsim's, and restored afterwards. Needs playground with its dependencies, `mujoco` included.
Environments that render (vision), and models with unsupported features, raise UnsupportedError.
"""

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.envs.base import State, diverged
from jaxsim.math.safe import Array

MATRICES = ("xmat", "ximat", "geom_xmat", "site_xmat", "cam_xmat")  # (n, 3, 3) in MJX, (n, 9) in MuJoCo and here
RENDERING = ("create_render_context", "refit_bvh", "render", "get_rgb")


class MjxModel:
    """`Model` with the attributes of MJX's model that Playground reads in addition to MuJoCo's."""

    impl = SimpleNamespace(value="jaxsim")

    def __init__(self, model: Model):
        self.model = model

    def __getattr__(self, name: str) -> Any:
        if name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)

    def replace(self, **changes: Any) -> "MjxModel":
        """A copy with some fields changed."""
        return MjxModel(self.model.replace(**changes))


class MjxData:
    """`Data` with MJX's shapes of rotation matrices."""

    def __init__(self, data: Data):
        self.data = data

    def __getattr__(self, name: str) -> Any:
        if name == "data":
            raise AttributeError(name)
        value = getattr(self.data, name)
        return value.reshape(*value.shape[:-1], 3, 3) if name in MATRICES else value

    def replace(self, **changes: Any) -> "MjxData":
        """A copy with some fields changed."""
        shapes = {name: jnp.shape(getattr(self.data, name)) for name in changes}
        return MjxData(self.data.replace(**{n: jnp.reshape(x, shapes[n]) for n, x in changes.items()}))


jax.tree_util.register_pytree_node(MjxModel, lambda m: ((m.model,), None), lambda _, x: MjxModel(*x))
jax.tree_util.register_pytree_node(MjxData, lambda d: ((d.data,), None), lambda _, x: MjxData(*x))


@contextlib.contextmanager
def _replaced_mjx(models: dict[int, MjxModel]) -> Iterator[None]:
    """Context in which the functions of `mujoco.mjx` that Playground calls are jaxsim's.

    `models` collects the models made, by the id of their mjModel.
    """
    from mujoco import mjx

    def put_model(mj_model: Any, *_: Any, **__: Any) -> MjxModel:
        models[id(mj_model)] = MjxModel(jaxsim.from_mujoco(mj_model))
        return models[id(mj_model)]

    def make_data(m: Any, *_: Any, **__: Any) -> MjxData:
        wrapped = m if isinstance(m, MjxModel) else models[id(m)]
        return MjxData(jaxsim.make_data(wrapped.model))

    def refuse(*_: Any, **__: Any) -> None:
        raise UnsupportedError("Playground environments that render images: use jaxsim.viewer.raycast")

    replacements = {
        "put_model": put_model,
        "make_data": make_data,
        "step": lambda m, d: MjxData(jaxsim.step(m.model, d.data)),
        "forward": lambda m, d: MjxData(jaxsim.forward(m.model, d.data)),
        **{name: refuse for name in RENDERING if hasattr(mjx, name)},
    }
    originals = {name: getattr(mjx, name) for name in replacements}
    try:
        for name, function in replacements.items():
            setattr(mjx, name, function)
        yield
    finally:
        for name, function in originals.items():
            setattr(mjx, name, function)


class Playground:
    """Environment of MuJoCo Playground on this engine, with the interface of `jaxsim.envs.Env`.

    Args:
        make: builds Playground's environment; called once.

    A world that is no longer finite ends its episode and is counted, as in every environment of jaxsim.
    """

    backend = "jaxsim"

    def __init__(self, make: Callable[[], Any]):
        self._models: dict[int, MjxModel] = {}
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
        obs = jax.eval_shape(self.reset, jax.random.PRNGKey(0)).obs
        return {k: v.shape for k, v in obs.items()} if isinstance(obs, dict) else obs.shape[-1]

    def reset(self, rng: Array) -> State:
        """First state of an episode."""
        with _replaced_mjx(self._models):
            state = self.env.reset(rng)
        self._state_type = type(state)
        zero = jnp.zeros((), state.data.qpos.dtype)
        metrics = {name: jnp.asarray(x, zero.dtype) for name, x in state.metrics.items()}
        return State(state.data, state.obs, zero, zero, {**metrics, "diverged": zero}, dict(state.info))

    def step(self, state: State, action: Array) -> State:
        """State after one action."""
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
            info=jax.tree.map(lambda x, old: jnp.asarray(x, jnp.asarray(old).dtype), dict(new.info), dict(state.info)),
        )


def load(name: str, **overrides: Any) -> Playground:
    """Environment by its name in Playground's registry; `overrides` change its config.

    Raises ImportError that says what to install, ValueError for an unknown name, UnsupportedError for a feature that
    jaxsim does not have.
    """
    try:
        from mujoco_playground import registry  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError("jaxsim.envs.playground needs playground: pip install playground==0.2.0") from error
    return Playground(lambda: registry.load(name, config_overrides={"impl": "jax", **overrides}))
