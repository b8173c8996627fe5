"""Environments on a model: configs, error messages, worlds that diverge."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import envs

PENDULUM = """<mujoco model="pendulum"><option timestep="0.01"/><worldbody><body><joint name="j" axis="0 1 0"/>
  <geom size=".05" pos="0 0 -.5"/></body></worldbody><actuator>
  <motor joint="j" ctrlrange="-2 4" ctrllimited="true"/></actuator></mujoco>"""


class Pendulum(envs.Env):
    """Small task as a user would write it; an action of one makes the observation infinite."""

    def initial(self, rng):
        d = jaxsim.make_data(self.model)
        return d.replace(qpos=jax.random.uniform(rng, (1,))), {"note": jnp.zeros(())}

    def observe(self, data, info):
        return jnp.concatenate([data.qpos, data.qvel, jnp.where(data.ctrl >= 4, jnp.inf, 0)])

    def score(self, before, data, action, info):
        return jnp.cos(data.qpos[0]), {"angle": data.qpos[0]}


@pytest.fixture(scope="module")
def env():
    return Pendulum(envs.Config(model=PENDULUM, ctrl_dt=0.02))


@pytest.fixture(scope="module")
def batch(env):
    batch = envs.wrap(env, 50)
    return jax.jit(batch.reset)(jax.random.split(jax.random.key(0), 4)), jax.jit(batch.step)


def test_sizes(env):
    assert (env.action_size, env.observation_size, env.n_substeps, env.dt) == (1, 3, 2, 0.02)


def test_actions_span_the_control_range(env):
    d = jaxsim.make_data(env.model)
    got = [float(env.control(d, jnp.array([a]), {})[0]) for a in (-1.0, 0.0, 1.0, 5.0)]
    assert got == [-2, 1, 4, 4]


def test_step_is_that_of_the_engine(env):
    state = jax.jit(env.reset)(jax.random.key(1))
    d, step = state.data.replace(ctrl=jnp.array([1.0])), jax.jit(jaxsim.step)
    for _ in range(2):
        d = step(env.model, d)
    assert np.allclose(jax.jit(env.step)(state, jnp.zeros(1)).data.qpos, d.qpos)


def test_a_diverged_world_ends_its_episode_and_leaves_the_others_unchanged(batch):
    state, step = batch
    finite = step(state, jnp.zeros((4, 1)))
    diverged = step(state, jnp.zeros((4, 1)).at[2].set(1))
    others = np.array([0, 1, 3])
    assert np.array_equal(diverged.obs[others], finite.obs[others])
    assert np.array_equal(diverged.done, [0, 0, 1, 0]) and np.array_equal(diverged.info["truncation"], np.zeros(4))
    assert np.array_equal(diverged.info["diverged"], [0, 0, 1, 0]) and np.array_equal(
        diverged.info["final_obs"][2], np.zeros(3)
    )
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(diverged))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_a_state_that_is_not_finite_ends_the_episode(batch, value):
    state, step = batch
    bad = state.replace(data=state.data.replace(qvel=state.data.qvel.at[1].set(value)))
    new = step(bad, jnp.zeros((4, 1)))
    assert np.array_equal(new.done, [0, 1, 0, 0]) and np.isfinite(new.reward).all() and np.isfinite(new.obs).all()
    again = step(new, jnp.zeros((4, 1)))
    assert np.all(again.done == 0) and np.array_equal(again.info["diverged"], [0, 1, 0, 0])


def test_an_action_that_is_not_finite_does_no_harm(batch):
    state, step = batch
    new = step(state, jnp.zeros((4, 1)).at[0].set(jnp.nan))
    assert np.isfinite(new.obs).all() and np.all(new.done == 0)


@pytest.mark.parametrize("shape", [(2,), (), (1, 1)])
def test_wrong_size_of_an_action_is_an_error(env, shape):
    with pytest.raises(ValueError, match=r"an action of Pendulum has shape \(1,\), not"):
        env.step(jax.jit(env.reset)(jax.random.key(0)), jnp.zeros(shape))


def test_a_model_without_actuators_is_an_error():
    with pytest.raises(ValueError, match="no actuators"):
        Pendulum(envs.Config(model="<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>"))


def test_time_steps_that_do_not_fit_are_an_error():
    with pytest.raises(ValueError, match="multiple"):
        Pendulum(envs.Config(model=PENDULUM, ctrl_dt=0.025))


def test_an_unknown_model_name_lists_the_known_ones():
    with pytest.raises(FileNotFoundError, match=r"cartpole\.xml"):
        Pendulum(envs.Config(model="cartpol.xml"))


def test_an_environment_without_a_reward_says_so():
    class Empty(envs.Env):
        pass

    with pytest.raises(NotImplementedError, match=r"score\(before, data, action, info\)"):
        Empty(envs.Config(model=PENDULUM)).reset(jax.random.key(0))


def test_physics_time_step_of_the_config():
    env = Pendulum(envs.Config(model=PENDULUM, ctrl_dt=0.02, sim_dt=0.005))
    assert env.n_substeps == 4 and float(env.model.opt.timestep) == 0.005


def test_a_custom_task_can_be_registered_and_changed():
    @dataclasses.dataclass(frozen=True)
    class Mine(envs.Config):
        gain: float = 1.0

    envs.register("test_pendulum", Pendulum, Mine(model=PENDULUM))
    assert envs.make("test_pendulum", gain=2.0).config.gain == 2.0
    assert envs.default_config("test_pendulum").gain == 1.0 and "test_pendulum" in envs.names()
    envs.register("test_pendulum", Pendulum, Mine(model=PENDULUM, gain=3.0))  # a cell that is run again
    assert envs.default_config("test_pendulum").gain == 3.0
    with pytest.raises(ValueError, match="registered already"):
        envs.register("test_pendulum", envs.Env, Mine(model=PENDULUM))


def test_unknown_names_and_fields_come_with_the_nearest():
    with pytest.raises(KeyError, match="cartpole_balance"):
        envs.make("cartpole_balanced")
    with pytest.raises(TypeError, match="'episode_length'"):
        envs.make("stub", episode_lenght=3)
