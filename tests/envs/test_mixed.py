"""Groups of worlds of several environments, stepped together."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import envs
from jaxsim.envs.tasks.stub import Stub, StubConfig

LONG, SHORT = Stub(StubConfig(nobs=4, naction=3)), Stub(StubConfig(nobs=2, naction=1, terminate_after=3))


@pytest.fixture(scope="module")
def mixed():
    return envs.Mixed([LONG, SHORT], [3, 2], episode_length=10)


def test_each_group_steps_as_it_does_alone(mixed):
    keys, actions = jax.random.split(jax.random.key(0), 5), jax.random.normal(jax.random.key(1), (4, 5, 3))
    state = mixed.reset(keys)
    alone = [envs.wrap(LONG, 10), envs.wrap(SHORT, 10)]
    states = [alone[0].reset(keys[:3]), alone[1].reset(keys[3:])]
    for action in actions:
        state = jax.jit(mixed.step)(state, action)
        states = [alone[0].step(states[0], action[:3]), alone[1].step(states[1], action[3:, :1])]
        np.testing.assert_array_equal(state.reward, jnp.concatenate([s.reward for s in states]))
        np.testing.assert_array_equal(state.done, jnp.concatenate([s.done for s in states]))
        np.testing.assert_array_equal(state.obs[:3], states[0].obs)
        np.testing.assert_array_equal(state.obs[3:, :2], states[1].obs)
    assert list(state.info["episodes"]) == [0, 0, 0, 1, 1]


def test_short_observations_end_in_zeros(mixed):
    state = mixed.reset(jax.random.split(jax.random.key(0), 5))
    assert mixed.observation_size == 4 and mixed.action_size == 3
    assert not np.any(state.obs[3:, 2:]) and np.all(state.obs[:3, 2:] > 0)


def test_numbers_that_do_not_fit_are_errors(mixed):
    with pytest.raises(ValueError, match="2 environments and 1 numbers of worlds"):
        envs.Mixed([LONG, SHORT], [3])
    with pytest.raises(ValueError, match="at least one world"):
        envs.Mixed([LONG, SHORT], [3, 0])
    with pytest.raises(ValueError, match="takes 5 keys"):
        mixed.reset(jax.random.split(jax.random.key(0), 4))
    with pytest.raises(ValueError, match=r"actions of these groups have shape \(5, 3\)"):
        mixed.step(mixed.reset(jax.random.split(jax.random.key(0), 5)), jnp.zeros((5, 2)))


def test_mappings_and_arrays_do_not_mix():
    class Named(Stub):
        def reset(self, rng):
            state = super().reset(rng)
            return state.replace(obs={"state": state.obs})

    with pytest.raises(ValueError, match="differ in kind"):
        envs.Mixed([LONG, Named()], [1, 1])
