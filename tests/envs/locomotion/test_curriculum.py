"""The curriculum of terrain: when a level rises and falls, what it does to the ground, and how long it lasts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import envs
from jaxsim.envs.locomotion import TerrainCurriculum
from tests.envs.locomotion.test_locomotion import robot_text

HEIGHT, LEVELS = 0.3, 3


def rough(**changes):
    settings = {"terrain": HEIGHT, "levels": LEVELS, "randomization": None, "noise": 0.0, "ctrl_dt": 0.004}
    return envs.locomotion(robot_text(), **{**settings, **changes})


@pytest.fixture(scope="module")
def env():
    return rough()


# level, metres covered, metres asked for, whether it fell -> level of the next episode
CASES = {
    "far enough": (0, 8.0, 10.0, 0, 1),
    "neither": (1, 5.0, 10.0, 0, 1),
    "too little": (1, 3.0, 10.0, 0, 0),
    "far, but fell": (1, 8.0, 10.0, 1, 0),
    "fell at the lowest": (0, 0.0, 0.0, 1, 0),
    "stood as it was asked to": (1, 0.0, 0.0, 0, 1),
    "all of a short way": (1, 1.5, 1.5, 0, 1),
    "backwards": (2, -1.0, 4.0, 0, 1),
}


@pytest.mark.parametrize("case", CASES)
def test_a_level_follows_the_distance_and_falls(env, case):
    level, covered, asked, fell, expected = CASES[case]
    last = {"level": level, "covered": covered, "asked": asked, "fell": fell}
    last = {k: jnp.asarray(v) for k, v in last.items()}
    assert int(env.next_level(last, jax.random.key(0))) == expected


def test_a_world_that_passes_the_last_level_goes_on_at_any(env):
    last = {"level": jnp.asarray(LEVELS - 1), "covered": jnp.asarray(9.0), "asked": jnp.asarray(10.0)}
    last["fell"] = jnp.asarray(0)
    drawn = jax.vmap(lambda key: env.next_level(last, key))(jax.random.split(jax.random.key(0), 50))
    assert set(np.unique(drawn)) == set(range(LEVELS))


def test_ground_is_as_high_as_the_level_says(env):
    whole = np.asarray(env.model.hfield_size)
    assert np.isclose(whole[0, 2], HEIGHT)
    for level in range(LEVELS):
        size = np.asarray(env.at_level(jnp.asarray(level)).model.hfield_size)
        assert np.isclose(size[0, 2], HEIGHT * (level + 1) / LEVELS)
        assert np.array_equal(size[:, [0, 1, 3]], whole[:, [0, 1, 3]])


@pytest.fixture(scope="module")
def batch(env):
    batch = envs.wrap(env, 4)
    batch.compiled_reset, batch.compiled_step = jax.jit(batch.reset), jax.jit(batch.step)
    return batch


def first(batch):
    return batch.compiled_reset(jax.random.split(jax.random.key(0), 4))


def test_levels_outlive_episodes_in_a_batch(batch):
    state, step, env = first(batch), batch.compiled_step, batch.unwrapped
    assert np.all(state.info["level"] == 0) and np.all(state.metrics["level"] == 0)
    height = np.asarray(state.data.qpos[:, 2])
    command = jnp.tile(jnp.array([1.0, 0.0, 0.0]), (4, 1))
    state = state.replace(data=state.data.replace(qvel=state.data.qvel.at[:, :2].set(0)))
    for k in range(4):
        state = state.replace(info={**state.info, "command": command})
        if k == 3:
            assert np.allclose(state.info["asked"], 3 * batch.dt)
            assert np.all(np.abs(state.info["covered"]) < 3 * batch.dt)
            far = state.info["asked"].at[:2].set(10.0)
            state = state.replace(info={**state.info, "asked": far, "covered": far, "level": jnp.array([0, 1, 1, 0])})
        state = step(state, jnp.zeros((4, env.action_size)))
        assert np.all(state.done == (k == 3))
    # the first two succeeded; the others were asked for little, and covered less than half of it or not
    levels = np.asarray(state.info["level"])
    assert levels[:2].tolist() == [1, 2] and set(levels[2:]) <= {0, 1}
    assert np.all(state.info["asked"] == 0) and np.all(state.info["covered"] == 0)
    # they start above the highest point of their own ground
    assert np.allclose(state.data.qpos[:, 2] - height, HEIGHT / LEVELS * levels, atol=1e-6)
    for _ in range(2):
        state = step(state, jnp.zeros((4, env.action_size)))
    assert np.array_equal(state.info["level"], levels) and np.array_equal(state.metrics["level"], levels)


def test_a_robot_that_leaves_the_terrain_has_not_fallen(batch):
    state, step = first(batch), batch.compiled_step
    qpos = state.data.qpos.at[:2, 3:7].set(jnp.array([0.0, 1.0, 0.0, 0.0]))  # upside down
    qpos = qpos.at[2:, 0].set(0.99 * batch.config.terrain_size)
    far, level = jnp.full_like(state.info["asked"], 10.0), jnp.ones(4, jnp.int32)
    info = {**state.info, "asked": far, "covered": far, "level": level}
    after = step(state.replace(data=state.data.replace(qpos=qpos), info=info), jnp.zeros((4, batch.action_size)))
    assert np.all(after.done == 1) and np.all(after.info["truncation"] == 0)
    assert after.info["level"].tolist() == [0, 0, 2, 2]


def test_models_are_drawn_on_the_ground_of_the_level():
    env = rough(randomization=envs.Randomization())
    assert type(env) is TerrainCurriculum and type(env.env) is envs.DomainRandomization
    state = jax.eval_shape(env.reset, jax.random.key(0))
    assert {"level", "model"} <= set(state.info) and not any("hfield" in name for name in state.info["model"])


def test_wrong_settings_are_named():
    with pytest.raises(ValueError, match=r"needs a terrain: give terrain=\.\.\."):
        rough(terrain=0.0)
    with pytest.raises(ValueError, match="level=3: the levels of this curriculum are 0 to 2"):
        rough(level=3)
