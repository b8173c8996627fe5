"""The training examples: they resume bitwise, bootstrap truncated episodes, and learn."""

import dataclasses
import importlib
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import envs
from jaxsim.envs.tasks.stub import Stub, StubConfig
from jaxsim.envs.wrappers import Wrapper
from tests.paths import EXAMPLES

sys.path.insert(0, str(EXAMPLES))  # as for a script in that folder
NAMES = ("training_loop", "ppo", "sac", "shac", "distil", "tuned", "learn", "gallery", "compare_gradients")
loop, ppo, sac, shac, distil, tuned, learn, gallery, compare_gradients = map(importlib.import_module, NAMES)
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
SMALL[shac] = SMALL[ppo]
ALL = pytest.mark.parametrize("module", [ppo, sac, shac], ids=["ppo", "sac", "shac"])


@ALL
@pytest.mark.usefixtures("float32")
def test_a_run_continues_bitwise_from_its_checkpoint(module, tmp_path):
    def updates(trainer, run, n):
        for _ in range(n):
            run, _ = trainer.update(run)
        return run

    trainer = module.Trainer(module.Settings(**SMALL[module]))
    run = updates(trainer, trainer.start(), 3)
    loop.save(run, tmp_path, 3)
    whole = updates(trainer, run, 2)
    again = updates(trainer, loop.restore(trainer.start(), tmp_path), 2)
    assert int(again.update) == 5
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(again), strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)


@ALL
@pytest.mark.usefixtures("float32")
def test_training_raises_the_reward_of_the_stub(module):
    trainer = module.Trainer(module.Settings(**SMALL[module], learning_rate=3e-3))
    run, rewards = trainer.start(), []
    for _ in range(60):
        run, log = trainer.update(run)
        rewards.append(float(log["reward"]))
    assert np.mean(rewards[-10:]) > np.mean(rewards[:10]) + 0.1


@pytest.mark.slow
@pytest.mark.usefixtures("float32")
def test_derivatives_by_the_actions_give_the_gradient_of_the_closed_loop():
    sizes = {"worlds": 4, "unroll": 3, "minibatches": 1, "hidden": (8,)}
    trainer = shac.Trainer(shac.Settings(env="cartpole_balance", **sizes))
    run, noise = trainer.start(), jax.random.normal(jax.random.key(1), (4, 3, 1))
    none, actor = jnp.zeros_like(noise), shac.of_actor(run.params)
    gained = jax.vmap(trainer._gained, (0, None, 0, 0))

    def whole(actor):  # through the policy as well, action after action
        params = {"params": {**run.params["params"], **actor}}
        return -gained(none, dataclasses.replace(run, params=params), run.world, noise)[0].mean()

    def of_push(push):
        total, (_, record) = gained(push, run, run.world, noise)
        return total.mean(), record

    push, record = jax.grad(of_push, has_aux=True)(none)
    got = jax.grad(trainer._actor_loss)(actor, run, record, noise, push)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(jax.grad(whole)(actor)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6)  # float32


def test_derivatives_of_a_world_are_clipped_to_the_median_and_what_is_not_finite_counts_as_zero():
    push = jnp.stack([jnp.full((2, 2), x) for x in (1.0, 2.0, 3.0, 100.0, jnp.nan)])
    got = shac.weighted(push)[:, 0, 0]
    np.testing.assert_allclose(got, np.array([1.0, 2.0, 2.5, 2.5, 0.0]) / 5, rtol=1e-6)


def test_the_signal_of_gradients_is_told_from_their_noise():
    grads = np.array([3.0, 4.0]) + np.random.default_rng(0).normal(size=(200_000, 2))
    length, worlds = compare_gradients.signal(grads)
    np.testing.assert_allclose([length, worlds], [5.0, 2 / 25], rtol=0.01)


def test_the_gallery_shows_each_task_with_what_belongs_to_it(tmp_path, monkeypatch):
    folder, out = tmp_path / "runs" / "ant_run_ppo", tmp_path / "learnt.md"
    folder.mkdir(parents=True)
    for name in ("video.webp", "replay.html", "curve.svg"):
        (folder / name).write_text(name)
    (folder / "report.md").write_text("a table")
    monkeypatch.setattr(sys, "argv", ["gallery", str(folder), "--out", str(out)])
    gallery.main()
    page = out.read_text()
    assert page.startswith(f"{gallery.HEAD}\n[![ant_run](learnt/ant_run_ppo.webp)](#ant_run)\n\n## ant_run\n\na table")
    for name in ("webp", "html", "svg"):
        assert f"(learnt/ant_run_ppo.{name})" in page and (tmp_path / "learnt" / f"ant_run_ppo.{name}").is_file()
    out.write_text(page.replace("task by task", "by us"))
    gallery.main()
    assert out.read_text() == page.replace("task by task", "by us")


def test_curves_for_tensorboard_hold_the_rows_of_the_log(tmp_path):
    with loop.events(tmp_path) as write:
        write({"steps": 64, "reward": 0.5, "eval_return": float("nan")})
    (file,) = tmp_path.glob("events.out.tfevents.*")
    content = file.read_bytes()
    assert b"reward" in content and b"eval_return" not in content
    with loop.events(None) as write:
        write({"steps": 64, "reward": 0.5})


def test_no_checkpoint_is_an_error(tmp_path):
    with pytest.raises(SystemExit, match="no checkpoint"):
        loop.restore({}, tmp_path)


def test_truncated_episodes_are_bootstrapped_and_terminated_ones_are_not():
    s = ppo.Settings(discount=0.5, gae=1.0)
    one = jnp.ones((3, 1))
    batch = {"reward": one, "value": 0 * one, "next_value": 4 * one, "done": one.at[0].set(0)}
    batch["terminal"] = jnp.array([[0.0], [0.0], [1.0]])
    # the first continues into the second, which is truncated (1 + 0.5 * 4); the third terminates (1)
    assert np.allclose(ppo.advantages(s, batch)[:, 0], [1 + 0.5 * 4 + 0.5 * 3, 3, 1])


def test_density_of_a_squashed_action_integrates_to_one():
    mean, log_std = jnp.full((200_000, 1), 0.3), jnp.full((200_000, 1), -0.5)
    action, density = sac.sample(mean, log_std, jax.random.key(0))
    assert np.all(np.abs(action) < 1)
    assert np.allclose(np.mean(1 / np.exp(density)), 2, rtol=0.1)  # the length of (-1, 1)


def test_settings_of_a_resumed_run_are_those_of_its_folder(tmp_path):
    def settings(*argv):
        return loop.settings(ppo.Trainer, loop.parse(ppo.Trainer, None, [*argv]))

    first = settings("--hidden", "8,9", "--worlds", "16", "--out", str(tmp_path))
    (tmp_path / "settings.json").write_text(json.dumps(dataclasses.asdict(first)))
    assert settings("--resume", str(tmp_path)) == first
    assert settings("--resume", str(tmp_path), "--steps", "7").steps == 7


def test_a_task_has_settings_of_its_own_and_the_command_line_comes_first():
    def settings(*argv):
        return loop.settings(ppo.Trainer, loop.parse(ppo.Trainer, None, [*argv]))

    assert settings("--env", "ant_run") == ppo.Settings(env="ant_run", **tuned.PPO["ant_run"])
    assert settings("--env", "ant_run", "--entropy", "0.5").entropy == 0.5
    assert settings("--env", "stub") == ppo.Settings(env="stub")
    assert settings("--smoke") == ppo.Trainer.smoke


def test_the_best_of_a_few_starts_goes_on(monkeypatch, capsys):
    tried = []

    def train(s):
        tried.append(s)
        return {"eval_return": {0.95: 3.0, 0.985: float("nan")}.get(s.discount, 1.0)}

    monkeypatch.setattr(loop, "train", train)

    class Trainer(ppo.Trainer):
        def __new__(cls, s):
            return s

    s = ppo.Settings(env="stub", steps=1000, worlds=8, out="runs/own")
    chosen = loop.tune(Trainer, s, given={"worlds"})
    assert chosen == dataclasses.replace(s, discount=tuned.STARTS["reach"]["discount"])
    assert [(x.steps, x.worlds, x.out) for x in tried] == [(100, 8, f"runs/own/tune/{n}") for n in tuned.STARTS]
    assert "going on with the settings of reach" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no settings to try"):
        loop.tune(sac.Trainer, s, set())


@pytest.mark.parametrize("name", sorted({*tuned.PPO, *tuned.SHAC, *tuned.DISTIL, *tuned.GOALS}))
def test_tuned_settings_are_of_registered_tasks_and_known_fields(name):
    assert name in envs.names()
    ppo.Settings(**{"env": name, **tuned.PPO.get(name, {})})
    shac.Settings(**{"env": name, **tuned.SHAC.get(name, {})})
    distil.Settings(**{"env": name, **tuned.DISTIL.get(name, {})})


def test_a_goal_is_reached_where_the_mean_of_ten_updates_is(tmp_path):
    rows = [f"{100 * i},{2 * i},{i},{0.0 if i < 10 else 1.0}" for i in range(30)]
    (tmp_path / "log.csv").write_text("\n".join(["steps,seconds,processor_seconds,speed", *rows]))
    assert learn.reached(tmp_path, "speed", 0.5) == (1400, 28, 14)
    assert learn.reached(tmp_path, "speed", 1.5) is None


class Shown(Wrapper):
    """The stub with pictures of 16 x 16 pixels, as bright as its offset; the critic sees the sum of that and 0 to 1."""

    def reset(self, rng, last=None):
        return self._seen(self.env.reset(rng))

    def step(self, state, action):
        return self._seen(self.env.step(state, action))

    def _seen(self, state):
        picture = jnp.full((16, 16, 1), state.data.offset)
        exact = state.obs - state.data.count
        return state.replace(obs={"state": jnp.zeros(2), "privileged_state": exact, "pixels/view_0": picture})


@pytest.fixture(scope="module")
def small_pictures():
    """Name of a task that shows small pictures."""
    envs.register("test_small_pictures", lambda config: Shown(Stub(config)), StubConfig(episode_length=3))
    return "test_small_pictures"


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("module", [ppo, shac], ids=["ppo", "shac"])
def test_a_policy_that_sees_pictures_is_exported_as_it_is(module, small_pictures, tmp_path):
    trainer = module.Trainer(module.Settings(**{**SMALL[module], "env": small_pictures}, encoder=(3, 4)))
    run = trainer.start()
    after, _ = jax.eval_shape(trainer.update, run)
    same = jax.tree.map(lambda a, b: a.shape == b.shape and a.dtype == b.dtype, run, after)
    assert all(jax.tree.leaves(same)) and set(run.moments["mean"]) == {"actor", "critic", "pixels"}
    trainer.export(run, tmp_path / "policy.npz")
    obs = run.world.obs
    action = envs.load_policy(tmp_path / "policy.npz")(jax.device_get(obs))
    assert np.allclose(action, np.clip(trainer.policy(run, obs), -1, 1), atol=1e-5)
    dark = {**obs, "pixels/view_0": 0 * obs["pixels/view_0"]}
    assert not np.allclose(trainer.policy(run, dark), trainer.policy(run, obs), atol=1e-6)


@pytest.mark.usefixtures("float32")
def test_a_student_learns_from_pictures_what_its_teacher_does_in_the_state(small_pictures, tmp_path):
    path = tmp_path / "teacher.npz"
    weight, bias = np.outer([2, 0, 0, 0], [1, -1]), np.array([-1, 1])
    envs.save_policy(path, [(weight, bias)], np.zeros(4), np.ones(4), activation="elu")
    sizes = {"worlds": 16, "unroll": 4, "hidden": (8,), "encoder": (3, 4), "learning_rate": 3e-3}
    trainer = distil.Trainer(distil.Settings(env=small_pictures, teacher=str(path), **sizes))
    run, losses = trainer.start(), []
    for _ in range(60):
        run, log = trainer.update(run)
        losses.append(float(log["loss"]))
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.usefixtures("float32")
def test_without_a_teacher_one_is_learnt_from_the_state(small_pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "record", lambda *_: None)  # the stub has no model
    monkeypatch.setitem(tuned.SHAC, small_pictures, {**SMALL[shac], "steps": 16})
    trainer = distil.Trainer(distil.Settings(env=small_pictures, out=str(tmp_path)))
    trainer.start()
    assert trainer.teacher.sizes == (4, 8, 2) and not trainer.teacher.encoder


@pytest.mark.slow
@pytest.mark.parametrize("module", [ppo, sac, shac, distil], ids=["ppo", "sac", "shac", "distil"])
def test_smoke_run_writes_its_files(module, tmp_path):
    with jax.enable_x64(False):
        assert module.main(["--smoke", "--out", str(tmp_path)]) == 0
    assert {p.name for p in tmp_path.iterdir()} >= {"log.csv", "checkpoints", "replay.html", "settings.json"}
