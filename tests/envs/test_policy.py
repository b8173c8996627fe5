"""Policies in NumPy: written and read back, and what is refused."""

import jax
import numpy as np
import pytest

from jaxsim import envs

RNG = np.random.default_rng(0)
LAYERS = [(RNG.normal(size=(5, 8)), RNG.normal(size=8)), (0.1 * RNG.normal(size=(8, 3)), np.zeros(3))]
MEAN, STD = RNG.normal(size=5), RNG.uniform(0.5, 2, 5)


@pytest.mark.parametrize(("activation", "function"), [("tanh", np.tanh), ("swish", lambda x: x / (1 + np.exp(-x)))])
def test_a_policy_read_back_is_the_network_that_was_written(tmp_path, activation, function):
    envs.save_policy(tmp_path / "p.npz", LAYERS, MEAN, STD, activation=activation, env="stub")
    policy = envs.load_policy(tmp_path / "p.npz")
    obs = RNG.normal(size=(4, 5))
    x = function((obs - MEAN) / STD @ LAYERS[0][0] + LAYERS[0][1])
    assert policy.sizes == (5, 8, 3) and policy.env == "stub"
    assert np.allclose(policy(obs), np.clip(x @ LAYERS[1][0], -1, 1), atol=1e-5)
    assert np.array_equal(policy({"state": obs, "privileged_state": None}), policy(obs))


def test_a_policy_sees_pictures_by_convolutions(tmp_path):
    first, second = RNG.normal(size=(4, 4, 2, 3)), RNG.normal(size=(2, 2, 3, 2))
    encoder = [(first.reshape(-1, 3), RNG.normal(size=3)), (second.reshape(-1, 2), np.zeros(2))]
    layers = [(0.1 * RNG.normal(size=(1 + 12, 3)), np.zeros(3))]
    envs.save_policy(tmp_path / "p.npz", layers, np.zeros(1), np.ones(1), activation="tanh", encoder=encoder)
    policy = envs.load_policy(tmp_path / "p.npz")
    pictures = RNG.uniform(size=(5, 17, 24, 2))  # a row is left over
    x = pictures
    for kernel, (_, bias) in zip((first, second), encoder, strict=True):
        stride = (len(kernel), len(kernel))
        layout = ("NHWC", "HWIO", "NHWC")
        x = np.tanh(jax.lax.conv_general_dilated(x, kernel, stride, "VALID", dimension_numbers=layout) + bias)
    expected = np.concatenate([np.full((5, 1), 0.5), np.reshape(x, (5, -1))], -1) @ layers[0][0]
    obs = {"state": np.full((5, 1), 0.5), "pixels/view_0": pictures[..., :1], "pixels/view_1": pictures[..., 1:]}
    assert np.allclose(policy(obs), np.clip(expected, -1, 1), atol=1e-5)
    assert np.allclose(jax.jit(policy)(obs), policy(obs), atol=1e-5)
    assert np.allclose(policy({k: v[0] for k, v in obs.items()}), policy(obs)[0], atol=1e-6)


def test_a_policy_can_be_traced(tmp_path):
    envs.save_policy(tmp_path / "p.npz", LAYERS, MEAN, STD, activation="elu")
    policy = envs.load_policy(tmp_path / "p.npz")
    obs = RNG.normal(size=(4, 5))
    assert isinstance(policy(obs), np.ndarray)
    assert np.allclose(jax.jit(policy)(obs), policy(obs), atol=1e-6)


def test_actions_are_within_their_range_and_far_observations_are_clipped(tmp_path):
    layers = [(LAYERS[0][0], LAYERS[0][1]), (100 * LAYERS[1][0], LAYERS[1][1])]
    envs.save_policy(tmp_path / "p.npz", layers, MEAN, STD, activation="elu")
    policy = envs.load_policy(tmp_path / "p.npz")
    far = np.array([1e9, -1e9, 0, 0, 0])
    assert np.abs(policy(far)).max() <= 1
    assert np.array_equal(policy(far), policy(10 * far))


def test_a_wrong_number_of_observations_is_named(tmp_path):
    envs.save_policy(tmp_path / "p.npz", LAYERS, MEAN, STD, activation="elu", env="spin")
    with pytest.raises(ValueError, match="'spin' takes 5 observations, got 4"):
        envs.load_policy(tmp_path / "p.npz")(np.zeros(4))


def test_other_files_and_activations_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(2))
    with pytest.raises(ValueError, match="not a policy of format 1"):
        envs.load_policy(tmp_path / "other.npz")
    with pytest.raises(ValueError, match="expected one of tanh, elu, swish"):
        envs.save_policy(tmp_path / "p.npz", LAYERS, MEAN, STD, activation="relu6")
