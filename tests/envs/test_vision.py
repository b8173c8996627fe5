"""Tasks seen through a camera: the pictures show the state, newest first, in batches and after resets."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import envs

SIZE = (24, 20)  # width, height


@functools.cache
def seen(**changes):
    return envs.make("cartpole_balance_vision", **{"size": SIZE, "frames": 2, **changes})


@functools.cache
def look(env):
    return jax.jit(env.look)


def still(env, angle, cart=0.0):
    """Picture of the cart-pole at rest."""
    data, _ = env.env.initial(jax.random.key(0))
    return np.asarray(look(env)(data.replace(qpos=jnp.array([cart, angle])))["pixels/view_0"])


def test_observation_is_a_mapping_of_pictures_and_numbers():
    env = seen()
    assert env.observation_size == {"pixels/view_0": (20, 24, 2), "state": (1,), "privileged_state": (5,)}
    assert seen(picture="rgb").observation_size["pixels/view_0"] == (20, 24, 6)
    assert envs.make("cartpole_balance_vision").observation_size["pixels/view_0"] == (64, 64, 3)


def test_a_batch_of_pictures_is_finite_and_the_newest_stands_first():
    batch = envs.wrap(seen(), 3)
    reset, step = jax.jit(batch.reset), jax.jit(batch.step)
    before = reset(jax.random.split(jax.random.key(0), 5))
    pictures = np.asarray(before.obs["pixels/view_0"])
    assert pictures.shape == (5, 20, 24, 2) and np.array_equal(pictures[..., 0], pictures[..., 1])
    for k in range(3):
        after = step(before, jnp.full((5, 1), 1.0))
        last, pictures = pictures, np.asarray(after.info["final_obs"]["pixels/view_0"])
        assert np.isfinite(pictures).all() and pictures.min() >= 0 and pictures.max() <= 1
        assert np.array_equal(pictures[..., 1], last[..., 0])
        assert np.all(after.done == (k == 2))
        before = after
    assert np.allclose(after.info["final_obs"]["state"], 1)
    fresh = np.asarray(after.obs["pixels/view_0"])  # the first of the next episode
    assert np.array_equal(fresh[..., 0], fresh[..., 1]) and np.all(after.obs["state"] == 0)
    assert not np.array_equal(fresh[..., 0], pictures[..., 0])


def test_derivatives_pass_through_the_physics_but_not_through_pictures():
    env = seen()
    state = jax.jit(env.reset)(jax.random.key(0))

    def after(action):
        obs = env.step(state, action).obs
        return obs["pixels/view_0"].sum(), obs["privileged_state"].sum()

    by_pictures, by_physics = jax.jit(jax.jacrev(after))(jnp.zeros(1))
    assert by_pictures == 0 and by_physics != 0


def test_pictures_show_where_the_pole_leans_and_the_cart_stands():
    env = seen(size=(64, 64))
    middle = still(env, 0.0)[..., 0]
    columns = np.arange(64) - 31.5

    def centre(picture, rows):
        weight = (picture[rows] > 0.3).sum(0)
        return (weight * columns).sum() / weight.sum()

    pole, cart = slice(8, 40), slice(41, 46)  # rows above the cart, and those of the cart
    assert abs(centre(middle, pole)) < 1
    left, right = (centre(still(env, a)[..., 0], pole) for a in (-0.4, 0.4))
    assert left < -4 and right > 4 and abs(left + right) < 1
    moved = np.argwhere(still(env, 0.0, 0.5)[cart, :, 0] > 0.41)[:, 1].mean() - 31.5
    pixels = 32 / np.tan(np.deg2rad(45) / 2)  # of a metre at a distance of one
    assert abs(moved - 0.5 / 2.3 * pixels) < 1


def test_depth_is_measured_from_the_camera_and_fades_at_its_reach():
    env = seen(size=(64, 64))
    picture = still(env, 0.0)[..., 0]
    assert np.isclose(picture[43, 31], 1 - (2.4 - 0.1) / 4, atol=1e-5)  # the front of the cart
    assert picture[0, 0] == 0  # the sky
    assert still(seen(size=(64, 64), reach=2.0), 0.0).max() == 0


def test_colours_are_those_of_the_model():
    picture = still(seen(picture="rgb", size=(64, 64)), 0.0)
    red, _, blue = picture[30, 31]  # the pole is orange
    assert picture.shape == (64, 64, 3) and red > 2 * blue
    red, _, blue = picture[43, 31]  # the cart is blue
    assert blue > 2 * red


def test_own_numbers_of_a_robot_stand_beside_the_pictures():
    env = envs.Vision(envs.make("quadruped_locomotion"), size=SIZE, frames=1)
    sizes, inner = env.observation_size, envs.make("quadruped_locomotion").observation_size
    assert sizes == {**inner, "pixels/view_0": (20, 24, 1)}


EIGHT = {"camera": "near", "size": (8, 8), "frames": 2, "reach": 4.0}


def episode(env, actions=6):
    """Observations of one world, as NumPy arrays, and the true pictures of its states."""
    look, state = jax.jit(lambda s: env.look(s.data)), jax.jit(env.reset)(jax.random.key(1))
    seen, true = [state], [look(state)]
    step = jax.jit(env.step)
    for _ in range(actions):
        seen.append(step(seen[-1], jnp.ones(1)))
        true.append(look(seen[-1]))
    return seen, [{k: np.asarray(x) for k, x in t.items()} for t in true]


@pytest.mark.slow
def test_pictures_come_below_the_rate_of_control_and_late():
    env = envs.Vision(envs.make("cartpole_balance", ctrl_dt=0.1), **EIGHT, every=2, delay=3)
    seen, true = episode(env)
    for t, state in enumerate(seen):
        newest = max((t - 3) // 2 * 2, 0)
        before = max((t - 3) // 2 * 2 - 2, 0)
        wanted = np.concatenate([true[k]["pixels/view_0"] for k in (newest, before)], -1)
        np.testing.assert_allclose(state.obs["pixels/view_0"], wanted, atol=1e-12)
    assert not np.array_equal(true[0]["pixels/view_0"], true[2]["pixels/view_0"])


@pytest.mark.slow
def test_several_cameras_show_colours_and_depth_with_noise_of_their_own():
    cart = envs.make("cartpole_balance", ctrl_dt=0.1)
    sees = {"camera": ["near", "side"], "picture": "rgbd", "size": [(8, 6), (4, 8)], "frames": 1}
    env = envs.Vision(cart, **sees, noise=0.1, samples=2)
    assert env.observation_size == {
        "pixels/view_0": (6, 8, 4), "pixels/view_1": (8, 4, 4), "state": (1,), "privileged_state": (5,)
    }  # fmt: skip
    seen, true = episode(env, 2)
    off = [np.asarray(s.obs["pixels/view_0"]) - t["pixels/view_0"] for s, t in zip(seen, true, strict=True)]
    inside = (true[0]["pixels/view_0"] > 0.3) & (true[0]["pixels/view_0"] < 0.7)
    assert 0.05 < np.std(off[0][inside]) < 0.2 and not np.allclose(off[0], off[1], atol=0.01)
    halved = envs.Vision(cart, **{**sees, "camera": "near", "size": (8, 6)}, noise=lambda rng, x: 0.5 * x)
    state = jax.jit(halved.reset)(jax.random.key(1))
    np.testing.assert_allclose(state.obs["pixels/view_0"], 0.5 * halved.look(state.data)["pixels/view_0"], rtol=1e-6)


@pytest.mark.slow
def test_each_world_looks_different_in_each_episode_and_keeps_its_physics():
    cart = envs.make("cartpole_balance", ctrl_dt=0.1)
    look = envs.random_look(colours=0.3, light=0.5, position=0.1, angle=0.1, lens=0.1)
    env = envs.Vision(cart, **{**EIGHT, "picture": "rgb"}, randomize=look, delay=(0, 2))
    batch = envs.wrap(env, 2)
    reset, step = jax.jit(batch.reset), jax.jit(batch.step)
    keys = jax.random.split(jax.random.key(0), 4)
    first = reset(keys)
    second = step(step(first, jnp.zeros((4, 1))), jnp.zeros((4, 1)))
    drawn = [np.asarray(s.info["vision"]["model"]["cam_pos"]) for s in (first, second)]
    assert len(np.unique(np.concatenate(drawn)[:, 0, 0])) == 8 and np.abs(drawn[0] - cart.model.cam_pos).max() <= 0.1
    pictures = np.asarray(first.obs["pixels/view_0"])
    assert min(np.abs(pictures[i] - pictures[j]).max() for i in range(4) for j in range(i)) > 0.05
    plain = jax.jit(envs.wrap(envs.Vision(cart, **EIGHT), 2).reset)(keys)
    np.testing.assert_array_equal(first.data.qpos, plain.data.qpos)
    assert set(np.asarray(first.info["vision"]["delay"]).tolist()) <= {0, 1, 2}


def test_a_mask_says_which_worlds_are_drawn():
    env = seen(size=(8, 8))
    data = jax.vmap(lambda k: env.env.initial(k)[0])(jax.random.split(jax.random.key(0), 3))
    look = jax.jit(jax.vmap(lambda data, draw: env.look(data, draw=draw)["pixels/view_0"]))
    brightest = np.asarray(look(data, jnp.array([True, False, True])).max((1, 2, 3)))
    assert (brightest[[0, 2]] > 0.3).all() and brightest[1] == 0


def test_wrong_settings_are_named():
    with pytest.raises(ValueError, match="every=0"):
        envs.Vision(envs.make("cartpole_balance"), every=0)
    with pytest.raises(ValueError, match="delay="):
        envs.Vision(envs.make("cartpole_balance"), delay=(2, 1))
    with pytest.raises(ValueError, match="a pair for each of 1 cameras"):
        envs.Vision(envs.make("cartpole_balance"), size=[(8, 8), (8, 8)])
    with pytest.raises(ValueError, match="picture='grey': expected one of depth, rgb"):
        seen(picture="grey")
    with pytest.raises(ValueError, match="frames=0"):
        seen(frames=0)
    with pytest.raises(KeyError):
        seen(camera="nowhere")
