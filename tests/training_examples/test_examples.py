"""The training examples: they resume bitwise, bootstrap time-outs, and learn."""

import importlib.util
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.paths import EXAMPLES


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


ppo, sac = load("ppo"), load("sac")
SMALL = {
    ppo: {"env": "stub", "worlds": 4, "unroll": 4, "minibatches": 2, "epochs": 2, "hidden": (8,)},
    sac: {
        "env": "stub",
        "worlds": 4,
        "unroll": 2,
        "gradients": 2,
        "batch": 8,
        "buffer": 64,
        "warmup": 8,
        "hidden": (8,),
    },
}
BOTH = pytest.mark.parametrize("module", [ppo, sac], ids=["ppo", "sac"])


@BOTH
@pytest.mark.usefixtures("float32")
def test_a_run_goes_on_bitwise_from_its_checkpoint(module, tmp_path):
    def updates(trainer, run, n):
        for _ in range(n):
            run, _ = trainer.update(run)
        return run

    trainer = module.Trainer(module.Settings(**SMALL[module]))
    run = updates(trainer, trainer.start(), 3)
    module.save(run, tmp_path, 3)
    whole = updates(trainer, run, 2)
    again = updates(trainer, module.restore(trainer.start(), tmp_path), 2)
    assert int(again.update) == 5
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(again), strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)


@BOTH
@pytest.mark.usefixtures("float32")
def test_training_raises_the_reward_of_the_stub(module):
    trainer = module.Trainer(module.Settings(**SMALL[module], learning_rate=3e-3))
    run, rewards = trainer.start(), []
    for _ in range(60):
        run, log = trainer.update(run)
        rewards.append(float(log["reward"]))
    assert np.mean(rewards[-10:]) > np.mean(rewards[:10]) + 0.1


@BOTH
def test_no_checkpoint_is_an_error(module, tmp_path):
    with pytest.raises(SystemExit, match="no checkpoint"):
        module.restore({}, tmp_path)


def test_time_outs_are_bootstrapped_and_ends_are_not():
    s = ppo.Settings(discount=0.5, gae=1.0)
    one = jnp.ones((3, 1))
    batch = {"reward": one, "value": 0 * one, "next_value": 4 * one, "done": one.at[0].set(0)}
    batch["terminal"] = jnp.array([[0.0], [0.0], [1.0]])
    # the first goes on into the second, which is cut off (1 + 0.5 * 4); the third ends (1)
    assert np.allclose(ppo.advantages(s, batch)[:, 0], [1 + 0.5 * 4 + 0.5 * 3, 3, 1])


def test_density_of_a_squashed_action_integrates_to_one():
    mean, log_std = jnp.full((200_000, 1), 0.3), jnp.full((200_000, 1), -0.5)
    action, density = sac.sample(mean, log_std, jax.random.key(0))
    assert np.all(np.abs(action) < 1)
    assert np.allclose(np.mean(1 / np.exp(density)), 2, rtol=0.1)  # the length of (-1, 1)


def test_settings_of_a_resumed_run_are_those_of_its_folder(tmp_path):
    first = ppo.settings(ppo.parse(["--hidden", "8,9", "--worlds", "16", "--out", str(tmp_path)]))
    (tmp_path / "settings.json").write_text(ppo.json.dumps(ppo.dataclasses.asdict(first)))
    assert ppo.settings(ppo.parse(["--resume", str(tmp_path)])) == first
    assert ppo.settings(ppo.parse(["--resume", str(tmp_path), "--steps", "7"])).steps == 7


@pytest.mark.slow
@BOTH
def test_smoke_run_writes_all_that_it_promises(module, tmp_path):
    with jax.enable_x64(False):
        assert module.main(["--smoke", "--out", str(tmp_path)]) == 0
    assert {p.name for p in tmp_path.iterdir()} >= {"log.csv", "checkpoints", "replay.html", "settings.json"}
