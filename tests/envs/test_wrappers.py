"""Wrappers: episodes, resets, delays, repeats, normalisation; on the stub where physics does not matter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import envs

NWORLD = 20


def keys(n=NWORLD, seed=0):
    return jax.random.split(jax.random.key(seed), n)


def run(batch, nstep, nworld=NWORLD, action=None, seed=0):
    """States of `nstep` steps, the first included."""
    step = jax.jit(batch.step)
    states = [jax.jit(batch.reset)(keys(nworld, seed))]
    for _ in range(nstep):
        states.append(step(states[-1], jnp.zeros((nworld, batch.action_size)) if action is None else action))
    return states


def stub(**changes):
    return envs.make("stub", **changes)


def test_time_limit_truncates_and_termination_does_not():
    cut = run(envs.wrap(stub(), 3), 3)[-1]
    assert np.all(cut.done == 1) and np.all(cut.info["truncation"] == 1)
    over = run(envs.wrap(stub(terminate_after=3), 5), 3)[-1]
    assert np.all(over.done == 1) and np.all(over.info["truncation"] == 0)
    both = run(envs.wrap(stub(terminate_after=3), 3), 3)[-1]
    assert np.all(both.done == 1) and np.all(both.info["truncation"] == 0)


def test_final_observation_is_kept_and_the_new_one_is_fresh():
    before, after = run(envs.wrap(stub(), 3), 3)[-2:]
    assert np.allclose(after.info["final_obs"], before.obs + 1)
    assert np.all(after.obs[:, 0] < 1) and np.all(after.obs[:, 0] >= 0)


def test_every_reset_is_another_random_state():
    states = run(envs.wrap(stub(), 2), 8)
    firsts = np.array([s.obs[:, 0] for s in states[::2]])
    assert len(np.unique(firsts)) == firsts.size


def test_running_worlds_are_unchanged_by_resets_of_others():
    batch = envs.wrap(stub(), 6, stagger=True)
    for before, after in zip(*(lambda s: (s[:-1], s[1:]))(run(batch, 9)), strict=True):
        going = np.asarray(after.done) == 0
        assert np.allclose(after.obs[going], before.obs[going] + 1)


class Counting(envs.Wrapper):
    """Environment that counts its episodes in an entry of `info` that outlives them."""

    lasting = ("number",)

    def reset(self, rng, last=None):
        state = self.env.reset(rng)
        number = jnp.zeros((), jnp.int32) if last is None else last["number"] + 1
        return state.replace(info={**state.info, "number": number})


@pytest.mark.parametrize("settings", [{}, {"action_delay": (1, 2), "action_repeat": 2, "normalize_observation": True}])
def test_a_lasting_entry_is_handed_from_episode_to_episode(settings):
    states = run(envs.wrap(Counting(stub(terminate_after=5)), 7, stagger=True, **settings), 15)
    numbers = np.array([s.info["number"] for s in states])
    assert np.array_equal(numbers, [s.info["episodes"] for s in states])
    assert len(np.unique(numbers[7])) > 1 and numbers[-1].min() >= 2
    plain = run(envs.wrap(stub(terminate_after=5), 7, stagger=True, **settings), 15)
    assert all(np.array_equal(a.obs, b.obs) for a, b in zip(states, plain, strict=True))


def test_staggered_worlds_end_at_different_times_and_only_once_each():
    batch = envs.wrap(stub(), 10, stagger=True)
    ends = np.array([s.done for s in run(batch, 10)[1:]])
    assert np.all(ends.sum(0) == 1) and np.unique(ends.argmax(0)).size > 3


def test_episode_return_and_length_are_those_of_the_last_episode():
    states = run(envs.wrap(stub(), 4), 6, action=jnp.full((NWORLD, 2), 0.5))
    assert np.allclose(states[-1].info["episode_return"], 2.0) and np.all(states[-1].info["episode_length"] == 4)
    assert np.all(states[-1].info["steps"] == 2) and np.all(states[-1].info["episodes"] == 1)


def test_a_diverged_world_is_counted_and_reported():
    state = run(envs.wrap(stub(diverge_after=2), 10), 5)[-1]
    assert np.all(state.info["diverged"] == 2)
    (line,) = envs.diagnostics(state)
    assert "40 of 40 episodes" in line and "sim_dt" in line


def test_a_sound_batch_has_no_diagnostics():
    assert envs.diagnostics(run(envs.wrap(stub(), 10), 2)[-1]) == []


def test_loop_over_steps_compiles_once():
    batch = envs.wrap(stub(), 3, action_delay=2, action_repeat=2, normalize_observation=True)
    step = jax.jit(batch.step)
    state = jax.jit(batch.reset)(keys())
    for _ in range(3):
        state = step(state, jnp.zeros((NWORLD, 2)))
    assert step._cache_size() == 1


def test_action_repeat_sums_rewards_and_stops_at_the_end():
    env = envs.ActionRepeat(stub(terminate_after=3), 2)
    state = env.reset(jax.random.key(0))
    one = env.step(state, jnp.ones(2))
    two = env.step(one, jnp.ones(2))
    assert float(one.reward) == 2 and float(one.done) == 0
    assert float(two.reward) == 1 and float(two.done) == 1 and float(two.data.count) == 3
    assert env.dt == 2 * stub().dt


def test_action_delay_is_that_of_the_queue():
    env = envs.ActionDelay(stub(), 2)
    state = env.reset(jax.random.key(0))
    rewards = []
    for k in range(4):
        state = env.step(state, jnp.full(2, k + 1.0))
        rewards.append(float(state.reward))
    assert rewards == [0, 0, 1, 2]


def test_random_delay_is_drawn_for_each_episode():
    batch = envs.wrap(stub(), 2, action_delay=(1, 3))
    delays = np.array([s.info["delay"] for s in run(batch, 6)[::2]])
    assert set(np.unique(delays)) == {1, 2, 3} and np.any(delays[0] != delays[1])


def test_observations_are_normalised_by_running_moments():
    batch = envs.wrap(stub(), 7, normalize_observation=True)
    states = run(batch, 30)
    plain = np.concatenate([s.obs for s in run(envs.wrap(stub(), 7), 30)])
    moments = states[-1].info["moments"]
    assert np.allclose(moments["mean"], plain.mean(0)) and float(moments["count"]) == len(plain)
    assert np.allclose(moments["square"] / moments["count"], plain.var(0))
    last = run(envs.wrap(stub(), 7), 30)[-1]
    assert np.allclose(states[-1].obs, (last.obs - plain.mean(0)) / np.sqrt(plain.var(0) + 1e-6))


@pytest.mark.parametrize("shape", [(NWORLD, 3), (2,), (NWORLD - 1, 2)])
def test_wrong_shape_of_actions_is_an_error_with_the_right_one(shape):
    batch = envs.wrap(stub(), 5)
    state = batch.reset(keys())
    with pytest.raises(ValueError, match=r"shape \(2,\)|shape \(20, 2\)"):
        batch.step(state, jnp.zeros(shape))


def test_domain_randomisation_draws_a_model_for_each_episode_and_derives_its_constants():
    def heavier(m, rng):
        return m.replace(body_mass=m.body_mass * jax.random.uniform(rng, (m.nbody,), minval=1.0, maxval=2.0))

    env = envs.make("cartpole_balance")
    batch = envs.wrap(env, 2, randomize=heavier)
    states = run(batch, 2, nworld=4)
    first, last = (s.info["model"] for s in states[::2])
    assert np.all(first["body_mass"][:, 1:] > env.model.body_mass[1:])
    assert np.all(first["body_mass"][:, 1:] != last["body_mass"][:, 1:])
    derive = jax.jit(lambda mass: jaxsim.set_const(env.model.replace(body_mass=mass)))
    for world in range(4):
        assert np.allclose(last["dof_M0"][world], derive(last["body_mass"][world]).dof_M0)
    # the physics is that of the model drawn: each world accelerates as its own model does
    d = jax.tree.map(lambda x: x[0], states[1].data)
    m, step = derive(first["body_mass"][0]), jax.jit(jaxsim.step)
    d0 = jax.tree.map(lambda x: x[0], states[0].data)
    assert np.allclose(step(m, step(m, d0)).qvel, d.qvel)


def test_domain_randomisation_of_structure_is_refused():
    env = envs.make("cartpole_balance")
    with pytest.raises(ValueError, match="structure"):
        envs.DomainRandomization(env, lambda m, rng: m.replace(max_contacts=3))
