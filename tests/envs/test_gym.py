"""The Gymnasium adapter: its three modes, seeding, arrays on the device."""

import pickle
import warnings

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from jaxsim import envs
from jaxsim.envs import make as make_env
from jaxsim.envs.gym import GymEnv, GymVectorEnv
from jaxsim.envs.tasks.stub import Stub, StubConfig

ZERO = np.zeros((3, 2), np.float32)


def make(mode=AutoresetMode.NEXT_STEP, **changes):
    return GymVectorEnv("stub", 3, autoreset_mode=mode, **changes)


def test_spaces_and_metadata():
    env = make()
    assert isinstance(env, gymnasium.vector.VectorEnv) and env.num_envs == 3
    assert env.single_action_space.shape == (2,) and env.observation_space.shape == (3, 4)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


def eyes():
    return envs.Vision(envs.make("cartpole_balance"), ["near", "side"], "rgbd", (8, 8), frames=2)


def test_pictures_are_boxes_from_zero_to_one():
    one, many = GymEnv(eyes()).observation_space, GymVectorEnv(eyes(), 3).observation_space
    box = one["pixels/view_1"]
    assert isinstance(one, gymnasium.spaces.Dict)
    assert box == gymnasium.spaces.Box(0.0, 1.0, (8, 8, 8), box.dtype.type)
    assert np.all(one["state"].high == np.inf) and many["pixels/view_0"].shape == (3, 8, 8, 8)


@pytest.mark.slow
def test_observations_with_pictures_lie_in_their_space():
    one, many = GymEnv(eyes()), GymVectorEnv(eyes(), 3)
    assert one.observation_space.contains(one.reset(seed=0)[0])
    assert one.observation_space.contains(one.step(np.ones(1, np.float32))[0])
    assert many.observation_space.contains(jax.device_get(many.reset(seed=0)[0]))


def test_next_step_mode_resets_on_the_following_step():
    env = make(episode_length=2)
    first, _ = env.reset(seed=0)
    env.step(ZERO)
    last, _, terminated, truncated, _ = env.step(ZERO)
    assert np.all(truncated) and not np.any(terminated) and np.allclose(last, first + 2)
    fresh, reward, terminated, truncated, _ = env.step(ZERO + 1)
    assert not np.any(truncated | terminated) and np.all(reward == 0) and np.all(np.asarray(fresh)[:, 0] < 1)
    assert np.allclose(env.step(ZERO)[0], fresh + 1)


def test_same_step_mode_gives_the_final_observation():
    env = make(AutoresetMode.SAME_STEP, terminate_after=2)
    first, _ = env.reset(seed=0)
    env.step(ZERO)
    obs, _, terminated, truncated, infos = env.step(ZERO)
    assert np.all(terminated) and not np.any(truncated)
    assert np.allclose(infos["final_obs"], first + 2) and np.all(infos["_final_obs"])
    assert np.all(np.asarray(obs)[:, 0] < 1) and np.all(infos["final_info"]["steps"] == 2)


def test_disabled_mode_resets_what_the_mask_says():
    env = make(AutoresetMode.DISABLED, episode_length=2)
    env.reset(seed=0)
    env.step(ZERO)
    last, *_ = env.step(ZERO)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(ZERO)
    obs, _ = env.reset(options={"reset_mask": np.array([True, False, True])})
    assert np.allclose(obs[1], last[1]) and np.all(np.asarray(obs)[[0, 2], 0] < 1)
    env.reset(options={"reset_mask": np.array([False, True, False])})
    assert np.all(np.asarray(env.step(ZERO)[0])[:, 0] < 2)


def test_a_seed_repeats_and_none_goes_on():
    env = make()
    a, _ = env.reset(seed=5)
    b, _ = env.reset()
    c, _ = env.reset(seed=5)
    assert np.array_equal(a, c) and not np.any(np.asarray(a) == b)
    assert len(np.unique(np.asarray(a)[:, 0])) == 3


def test_arrays_stay_on_the_device_until_converted():
    obs, _ = make().reset(seed=0)
    assert isinstance(obs, jax.Array)
    env = make(to_numpy=True)
    obs, _ = env.reset(seed=0)
    assert isinstance(obs, np.ndarray) and all(isinstance(x, np.ndarray) for x in env.step(ZERO)[:4])


@pytest.mark.parametrize("actions", [np.zeros((3, 3)), np.zeros(2), np.zeros((2, 2))])
def test_wrong_shape_of_actions_is_an_error(actions):
    env = make()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"actions have shape \(3, 2\)"):
        env.step(actions)


def test_step_before_reset_is_an_error():
    with pytest.raises(gymnasium.error.ResetNeeded):
        make().step(ZERO)


@pytest.mark.parametrize("mask", [np.zeros(3, bool), np.ones(2, bool)])
def test_a_bad_mask_is_an_error(mask):
    env = make(AutoresetMode.DISABLED)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="reset_mask"):
        env.reset(options={"reset_mask": mask})


def test_an_environment_of_one_world_passes_gymnasiums_check():
    env = gymnasium.make("jaxsim.envs.gym:jaxsim/cartpole_balance-v0", render_mode="rgb_array", width=32, height=24)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*Box.*(infinity|precision).*")
        check_env(env.unwrapped, skip_render_check=False)
    assert isinstance(env.unwrapped, GymEnv) and env.unwrapped.observation_space.shape == (5,)


def test_one_world_ends_and_repeats_by_its_seed():
    env = GymEnv("stub", episode_length=2)
    first, info = env.reset(seed=3)
    assert env.step(np.zeros(2))[2:4] == (False, False) and env.step(np.zeros(2))[2:4] == (False, True)
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(first, again)
    other, _ = env.reset()
    assert not np.array_equal(first, other) and set(info) == set(env.step(np.zeros(2))[4])
    ended = GymEnv("stub", terminate_after=1)
    ended.reset(seed=0)
    assert ended.step(np.zeros(2))[2:4] == (True, False)


def test_one_world_is_drawn():
    env = GymEnv("cartpole_balance", render_mode="rgb_array", width=48, height=32)
    env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (32, 48, 3) and picture.dtype == np.uint8 and picture.std() > 5
    with pytest.raises(ValueError, match="wanted None or 'rgb_array'"):
        GymEnv("stub", render_mode="human")


def test_batches_are_made_by_name():
    env = gymnasium.make_vec("jaxsim.envs.gym:jaxsim/stub-v0", num_envs=3)
    obs, _ = env.reset(seed=0)
    assert isinstance(env.unwrapped, GymVectorEnv) and obs.shape == (3, 4)


def test_worlds_run_in_processes_of_their_own(monkeypatch):
    monkeypatch.setenv("JAX_ENABLE_X64", "true")  # as here
    env = make_env("cartpole_balance")
    worlds = gymnasium.vector.AsyncVectorEnv([lambda: GymEnv(env)] * 2, context="spawn")
    try:
        first, _ = worlds.reset(seed=0)
        obs, reward, *_ = worlds.step(np.zeros(worlds.action_space.shape, np.float32))
    finally:
        worlds.close()
    assert obs.shape == first.shape == (2, 5) and reward.shape == (2,) and not np.allclose(obs, first)


@pytest.mark.parametrize("build", [lambda: GymEnv("stub"), make], ids=["one", "vector"])
def test_environments_can_be_pickled_and_go_on(build):
    env = build()
    env.reset(seed=0)
    twin = pickle.loads(pickle.dumps(env))
    action = np.zeros(env.action_space.shape, np.float32)
    np.testing.assert_array_equal(env.step(action)[0], twin.step(action)[0])


def test_tasks_registered_later_and_by_file_are_known_to_gymnasium(tmp_path):
    envs.register("registered_later", Stub, StubConfig(nobs=6))
    assert gymnasium.make("jaxsim/registered_later-v0").observation_space.shape == (6,)
    path = tmp_path / "tasks_of_file.py"
    path.write_text(
        "from jaxsim import envs\nfrom jaxsim.envs.tasks.stub import Stub, StubConfig\n"
        "envs.register('gym_of_file', Stub, StubConfig(nobs=8))\n"
    )
    assert gymnasium.make("jaxsim/task-v0", env=f"{path}:gym_of_file").observation_space.shape == (8,)


def test_a_fork_of_a_process_that_made_environments_is_refused(monkeypatch):
    GymEnv("stub")
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="spawn"):
        GymEnv("stub")
