"""Playground's conventions on this engine, by a small environment written like Playground's own."""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from mujoco import mjx

import jaxsim
from jaxsim import envs
from jaxsim.envs.playground import Playground

XML = """<mujoco><option timestep="0.01"/><worldbody><body name="pole"><joint name="j" axis="0 1 0"/>
  <geom size=".05" pos="0 0 -.5"/></body></worldbody><actuator><motor joint="j"/></actuator></mujoco>"""


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    data: object
    obs: jax.Array
    reward: jax.Array
    done: jax.Array
    metrics: dict
    info: dict


class Stock:
    """Environment as in Playground: an mjModel, an MJX model, data through `mjx`, dictionaries changed in place."""

    action_size, dt = 1, 0.01

    def __init__(self):
        self._config = SimpleNamespace(episode_length=5)
        self.mj_model = mujoco.MjModel.from_xml_string(XML)
        self.mjx_model = mjx.put_model(self.mj_model, impl="jax")

    def _obs(self, data):
        return jnp.concatenate([data.xmat[1:, 2, 2], data.qvel])

    def reset(self, rng):
        data = mjx.make_data(self.mj_model, impl=self.mjx_model.impl.value)
        data = mjx.forward(self.mjx_model, data.replace(qpos=jax.random.uniform(rng, (self.mjx_model.nq,))))
        zero = jnp.zeros(())
        return State(data, self._obs(data), zero, zero, {"height": zero}, {"rng": rng})

    def step(self, state, action):
        data = mjx.step(self.mjx_model, state.data.replace(ctrl=action))
        state.metrics["height"] = data.xmat[1, 2, 2]
        return State(data, self._obs(data), data.qpos[0], jnp.zeros(()), state.metrics, state.info)


@pytest.fixture(scope="module")
def env():
    return Playground(Stock)


@pytest.mark.parametrize("key", [jax.random.key, jax.random.PRNGKey])
def test_it_steps_on_this_engine(env, key):
    state = jax.jit(env.reset)(key(0))
    new = jax.jit(env.step)(state, jnp.ones(1))
    expected = jax.jit(jaxsim.step)(env.model, state.data.data.replace(ctrl=jnp.ones(1)))
    assert np.allclose(new.data.qpos, expected.qpos) and np.allclose(new.reward, expected.qpos[0])
    assert np.allclose(new.metrics["height"], expected.xmat[1, 8]) and env.observation_size == 2


def test_wrappers_apply_to_it(env):
    batch = envs.wrap(env)
    step, state = jax.jit(batch.step), jax.jit(batch.reset)(jax.random.split(jax.random.PRNGKey(0), 3))
    for _ in range(5):
        state = step(state, jnp.zeros((3, 1)))
    assert np.all(state.done == 1) and np.all(state.info["truncation"] == 1) and step._cache_size() == 1


def test_mjx_is_restored(env):
    jax.eval_shape(env.reset, jax.random.PRNGKey(0))
    assert mjx.step.__module__.startswith("mujoco") and mjx.put_model.__module__.startswith("mujoco")


def test_wrong_size_of_an_action_is_an_error(env):
    state = jax.eval_shape(env.reset, jax.random.PRNGKey(0))
    with pytest.raises(ValueError, match=r"an action of Stock has shape \(1,\)"):
        env.step(state, jnp.zeros(2))
