"""Brax's own trainers on jaxsim's environments, unchanged."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brax.envs.wrappers.training import EvalWrapper
from brax.training.agents.ppo import train as ppo
from brax.training.agents.sac import train as sac

from jaxsim import envs
from jaxsim.envs.brax import wrap


@pytest.fixture(autouse=True)
def replicated(monkeypatch):
    """A function that Brax 0.14.2 calls and JAX 0.10 no longer has."""

    def replicate(tree, devices):
        return jax.tree.map(lambda x: jnp.stack([x] * len(devices)), tree)

    monkeypatch.setattr(jax, "device_put_replicated", replicate, raising=False)


PPO = {
    "num_envs": 16,
    "batch_size": 16,
    "num_minibatches": 4,
    "unroll_length": 5,
    "num_updates_per_batch": 4,
    "learning_rate": 1e-2,
    "num_eval_envs": 8,
    "num_evals": 2,
    "normalize_observations": True,
}


def rewards(train, env, **settings):
    """Mean returns of the evaluations, the first before any training."""
    found = []
    train(environment=env, progress_fn=lambda _, metrics: found.append(metrics["eval/episode_reward"]), **settings)
    return np.array(found)


@pytest.mark.usefixtures("float32")
@pytest.mark.slow
@pytest.mark.parametrize("wrapped", [{}, {"wrap_env_fn": wrap}], ids=["brax wrapper", "jaxsim wrapper"])
def test_ppo_trains_an_environment_unchanged(wrapped):
    found = rewards(ppo.train, envs.make("stub"), num_timesteps=60_000, episode_length=20, **PPO, **wrapped)
    assert found[-1] > found[0] + 5


@pytest.mark.usefixtures("float32")
def test_sac_trains_an_environment():
    found = rewards(
        sac.train,
        envs.make("stub"),
        wrap_env_fn=wrap,
        num_timesteps=4_000,
        episode_length=20,
        num_envs=8,
        batch_size=32,
        grad_updates_per_step=4,
        min_replay_size=64,
        max_replay_size=2048,
        num_eval_envs=8,
        num_evals=2,
    )
    assert found[-1] > found[0] + 5


def test_evaluation_counts_the_length_of_an_episode():
    batch = EvalWrapper(wrap(envs.make("stub", terminate_after=3), 10))
    state, step = batch.reset(jax.random.split(jax.random.PRNGKey(0), 4)), jax.jit(batch.step)
    for _ in range(5):
        state = step(state, np.zeros((4, 2)))
    assert np.all(state.info["eval_metrics"].episode_steps == 3)


def test_a_randomization_fn_is_refused():
    with pytest.raises(ValueError, match="DomainRandomization"):
        wrap(envs.make("stub"), randomization_fn=lambda sys: (sys, None))


@pytest.mark.slow
@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize(("name", "steps"), [("cartpole_balance", 200_000), ("runner_run", 400_000)])
def test_ppo_learns_tasks(name, steps):
    found = rewards(
        ppo.train,
        envs.make(name),
        num_timesteps=steps,
        episode_length=500,
        **{**PPO, "num_envs": 64, "batch_size": 64, "num_minibatches": 8, "unroll_length": 16, "learning_rate": 1e-3},
        discounting=0.98,
        reward_scaling=0.1,
    )
    assert found[-1] > 1.5 * found[0]
