"""Tasks seen through a camera: the pictures show the state, newest first, in batches and after resets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import envs

SIZE = (24, 20)  # width, height


def seen(**changes):
    return envs.make("cartpole_balance_vision", **{"size": SIZE, "frames": 2, **changes})


def still(env, angle, cart=0.0):
    """Picture of the cart-pole at rest."""
    data, _ = env.env.initial(jax.random.key(0))
    return np.asarray(jax.jit(env.look)(data.replace(qpos=jnp.array([cart, angle]))))


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


def test_wrong_settings_are_named():
    with pytest.raises(ValueError, match="picture='grey': expected one of depth, rgb"):
        seen(picture="grey")
    with pytest.raises(ValueError, match="frames=0"):
        seen(frames=0)
    with pytest.raises(KeyError):
        seen(camera="nowhere")
