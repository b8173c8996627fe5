"""`State`, `Config` and `Env`: the functional interface of environments, and the base class of those on a model.

An environment is a pair of pure functions of one world, `reset(rng) -> State` and `step(state, action) -> State`.
Wrappers (`jaxsim.envs.wrappers`) add batches, episodes and randomisation. Names and conventions are those that Brax
and MuJoCo Playground share, so that trainers written for them run these environments unchanged.

Quantities that follow from positions (`data.xpos`, `data.sensordata`, ...) are those before the last integration of
a step, one physics step behind `data.qpos`, as in MuJoCo's own `mj_step`.
"""

import copy
import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.describe import describe_struct
from jaxsim.core.model import Model
from jaxsim.core.types import DIVERGED
from jaxsim.engine.actuation.forces import control_range
from jaxsim.engine.step.rollout import step_of_state
from jaxsim.engine.structure.checks import restart
from jaxsim.math.safe import Array

Info = dict[str, Any]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class State:
    """Result of `reset` and `step`; in a batch, every array has a leading axis of worlds.

    `data`: the physics. `obs`: an array or a mapping of arrays. `reward`: a scalar. `done`: 1.0 where the episode
    ended, else 0.0. `metrics`: scalars to log. `info`: everything else that an environment or a wrapper carries from
    step to step.
    """

    data: Any
    obs: Any
    reward: Array
    done: Array
    metrics: dict[str, Array] = dataclasses.field(default_factory=dict)
    info: Info = dataclasses.field(default_factory=dict)

    __repr__ = describe_struct

    @property
    def pipeline_state(self) -> Any:
        """Brax's name for `data`."""
        return self.data

    def replace(self, **changes: Any) -> "State":
        """Return a copy with some fields changed; `pipeline_state` is another name for `data`."""
        if "pipeline_state" in changes:
            changes["data"] = changes.pop("pipeline_state")
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings that every environment has; tasks extend it with numbers of their own.

    `model`: a path, the name of a file in the folder of models, MJCF text, or a compiled `Model`. `ctrl_dt`: seconds
    between actions. `sim_dt`: the physics time step in seconds, None for the model's own. `episode_length`: actions
    after which a wrapper truncates an episode. `max_contacts`, `max_constraints`: as in `load_model`.
    """

    model: Any = ""
    ctrl_dt: float = 0.02
    sim_dt: float | None = None
    episode_length: int = 1000
    max_contacts: int | None = None
    max_constraints: int | None = None


def model_path(name: str) -> Path:
    """Return the path of a model file of jaxsim. Raises FileNotFoundError, which lists them, for another name."""
    package = Path(jaxsim.__file__).parent
    for folder in (package / "models", package.parent / "models"):
        if (folder / name).is_file():
            return folder / name
    known = sorted(p.name for f in ("models", "../models") for p in (package / f).glob("*.xml"))
    raise FileNotFoundError(f"no model {name!r}; there are {', '.join(known) or 'none installed'}")


def load(config: Config) -> Model:
    """Load and compile the model of a config, and set its time step."""
    m = config.model
    if not isinstance(m, Model):
        if isinstance(m, str) and not m.lstrip().startswith("<") and not Path(m).is_file():
            m = model_path(m)
        m = jaxsim.load_model(m, config.max_contacts, config.max_constraints)
    if config.sim_dt is not None:
        m = m.replace(opt=m.opt.replace(timestep=config.sim_dt))
    return m


def raw_key(rng: Array) -> Array:
    """Return the integers of a random key, which can be stored, masked and saved like any other array."""
    return jax.random.key_data(rng) if jnp.issubdtype(rng.dtype, jax.dtypes.prng_key) else rng


def first_state(env: Any, rng: Array, last: Info | None = None) -> State:
    """Begin an episode of `env`; `last` holds its `lasting` entries of `info` as the last episode left them.

    An environment without such entries has a `reset` of the key alone.
    """
    return env.reset(rng, last) if getattr(env, "lasting", ()) else env.reset(rng)


def observation_size(env: Any) -> Any:
    """Number of entries of an observation of `env`; for a mapping, the shapes by name."""
    obs = jax.eval_shape(env.reset, jax.random.PRNGKey(0)).obs
    return {k: v.shape for k, v in obs.items()} if isinstance(obs, Mapping) else obs.shape[-1]


class Env:
    """Environment on a model. A task overrides `initial`, `observe` and `score`, and other methods if needed.

    `lasting` names entries of `info` that are kept from one episode to the next. If there are any, `reset` has a second
    argument: the mapping of these entries at the end of the world's last episode, or None for its first.

    Args:
        config: settings of the task.

    Raises:
        ValueError: the model has no actuators, or the time steps do not fit together.
    """

    lasting: tuple[str, ...] = ()

    def __init__(self, config: Config):
        self.config = config
        self.model = load(config)
        if not self.model.nu:
            raise ValueError(f"model {self.model.modelname!r} has no actuators: an environment needs an <actuator>")
        timestep = float(self.model.opt.timestep)
        self.n_substeps = max(1, round(config.ctrl_dt / timestep))
        if abs(self.n_substeps * timestep - config.ctrl_dt) > 1e-3 * timestep:
            raise ValueError(f"ctrl_dt={config.ctrl_dt} is not a multiple of the physics time step {timestep}")
        self._low, self._high = control_range(self.model)
        self._term_names: tuple[str, ...] | None = None

    # Hooks that a task overrides.

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """Draw a random first state, and the task's own entries of `info`; the default is qpos0 and none."""
        del rng
        return jaxsim.make_data(self.model), {}

    def prepare(self, data: Data) -> Data:
        """Compute the derived fields of a first state that `observe` reads; the default is `forward`, with all sensors.

        A task that reads fewer fields can call less, such as `kinematics`: resets get cheaper and compile faster.
        """
        return jaxsim.forward(self.model, data)

    def control(self, data: Data, action: Array, info: Info) -> Array:
        """Convert an action in [-1, 1] to controls (nu,); the default maps it to the control ranges."""
        del data, info
        middle, half = (self._high + self._low) / 2, (self._high - self._low) / 2
        return jnp.clip(action, -1, 1) * half.astype(action.dtype) + middle.astype(action.dtype)

    def physics(self, data: Data, control: Array, info: Info) -> Data:
        """Advance the data by the physics steps of one action; the default holds the controls constant."""
        del info
        return simulate(self.model, data, control, self.n_substeps)

    def update(self, data: Data, action: Array, info: Info, rng: Array) -> Info:
        """Update `info` after the physics of a step (new commands, last actions); the default returns it unchanged."""
        del data, action, rng
        return info

    def observe(self, data: Data, info: Info) -> Any:
        """Compute the observation, an array or a mapping of arrays; the default is qpos and qvel."""
        del info
        return jnp.concatenate([data.qpos, data.qvel])

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """Compute the reward of a step, and its terms by name, which are logged as metrics."""
        raise NotImplementedError(f"{type(self).__name__} has no reward: define score(before, data, action, info)")

    def failed(self, data: Data, info: Info) -> Array:
        """Return whether the episode terminates in this state; the time limit is the wrappers'."""
        del info
        return jnp.zeros((), bool) & (data.time < 0)

    # Shared by all tasks.

    @property
    def action_size(self) -> int:
        """Number of entries of an action; the default `control` has one for each actuator."""
        return self.model.nu

    @property
    def observation_size(self) -> Any:
        """Number of entries of an observation; for a mapping, the shapes by name."""
        return observation_size(self)

    @property
    def dt(self) -> float:
        """Seconds of one step."""
        return self.config.ctrl_dt

    @property
    def unwrapped(self) -> "Env":
        """The environment below all wrappers: this one."""
        return self

    @property
    def backend(self) -> str:
        """Name of the physics engine, which Brax's trainers read."""
        return "jaxsim"

    @property
    def sys(self) -> Model:
        """Brax's name for `model`; its domain randomisation sets it."""
        return self.model

    @sys.setter
    def sys(self, model: Model) -> None:
        self.model = model

    def with_model(self, model: Model) -> "Env":
        """Copy of the environment with another model of the same structure, whose numbers may be traced."""
        other = copy.copy(self)
        other.model = model
        return other

    def reset(self, rng: Array) -> State:
        """Reset the environment to the first state of an episode, drawn with the key `rng`."""
        carried, draw = jax.random.split(rng)
        data, info = self.initial(draw)
        data = self.prepare(data)
        info = {**info, "rng": raw_key(carried)}
        zero = jnp.zeros((), data.qpos.dtype)
        metrics = dict.fromkeys((*self.term_names, "diverged"), zero)
        return State(data, self.observe(data, info), zero, zero, metrics, info)

    @property
    def term_names(self) -> tuple[str, ...]:
        """Names of the terms of the reward."""
        if self._term_names is None:

            def terms(rng: Array) -> dict[str, Array]:
                data, info = self.initial(rng)
                info = {**info, "rng": rng}
                action = jnp.zeros(self.action_size, data.qpos.dtype)
                info = self.update(data, action, info, rng)
                return self.score(data, data, action, info)[1]

            self._term_names = tuple(jax.eval_shape(terms, jax.random.PRNGKey(0)))
        return self._term_names

    def step(self, state: State, action: Array) -> State:
        """Advance the state by one action: `n_substeps` physics steps, then reward and observation.

        A world that diverges ends its episode: it is reset to the model's initial state, its reward and observation are
        zero, and `metrics["diverged"]` is one.
        """
        action = jnp.asarray(action, state.data.qpos.dtype)
        if action.shape != (self.action_size,):
            raise ValueError(
                f"an action of {type(self).__name__} has shape ({self.action_size},), not {action.shape}"
                + ("; vectorise the environment to step a batch" if action.ndim > 1 else "")
            )
        m, before = self.model, state.data
        data = self.physics(before, self.control(before, action, state.info), state.info)
        rng, draw = jax.random.split(state.info["rng"])
        info = self.update(data, action, {**state.info, "rng": rng}, draw)
        reward, terms = self.score(before, data, action, info)
        obs = self.observe(data, info)
        bad = diverged(data, obs, reward)
        data = restart(m, data, bad)
        done = jnp.where(bad | self.failed(data, info), 1.0, 0.0)
        real = data.qpos.dtype
        metrics = {name: jnp.where(bad, 0, x).astype(real) for name, x in terms.items()}
        metrics["diverged"] = bad.astype(real)
        return state.replace(
            data=data,
            obs=jax.tree.map(lambda x: jnp.where(bad, jnp.zeros_like(x), x), obs),
            reward=jnp.where(bad, 0, reward).astype(real),
            done=done.astype(real),
            metrics={**state.metrics, **metrics},
            info={k: _like(v, state.info.get(k)) for k, v in info.items()},
        )


class KinematicEnv(Env):
    """An environment whose observations read the kinematics at most: resets compute no more."""

    def prepare(self, data: Data) -> Data:
        """Compute the kinematics of a first state."""
        return jaxsim.kinematics(self.model, data)


def _like(new: Any, old: Any) -> Any:
    """`new` with the dtypes of `old`, so that a loop over steps compiles once."""
    return new if old is None else jax.tree.map(lambda n, o: jnp.asarray(n, jnp.asarray(o).dtype), new, old)


def simulate(m: Model, d: Data, ctrl: Array, nstep: int) -> Data:
    """Advance data by `nstep` physics steps under a constant control; derivatives keep the state before each one."""
    step, d = partial(step_of_state, m), d.replace(ctrl=ctrl)
    return step(d) if nstep == 1 else jax.lax.fori_loop(0, nstep, lambda _, d: step(d), d)


def diverged(data: Data, obs: Any, reward: Array) -> Array:
    """Return whether a world diverged: the engine restarted it, or its state, observation or reward is not finite."""
    bad = data.warning.number[np.array(DIVERGED)].sum() > 0
    for x in (data.qpos, data.qvel, reward, *jax.tree.leaves(obs)):
        bad |= ~jnp.isfinite(x).all()
    return bad
