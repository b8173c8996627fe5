"""Distil a policy of the exact state into one that sees pictures alone, in flax and optax.

First SHAC learns a teacher from what a task of pictures tells its critic, with the settings of the task for `shac.py`.
Then the student acts, from pictures and its last action, and learns what the teacher would do in the states that it
comes to: DAgger (Ross et al., "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online
Learning", AISTATS 2011), from the newest states alone. A gradient of rewards has one step for each action of all
worlds; here each picture serves several steps, with a target instead of a direction. What the teacher does must follow
from what the pictures show.

    python training_examples/distil.py --env reacher_vision
    python training_examples/distil.py --env reacher_vision --teacher runs/distil/teacher/policy.npz --seed 1

Options, output and checkpoints are those of `ppo.py`.
"""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ppo
import shac
import training_loop
from actor_critic import mean_over_devices, new_moments, normal, own_key, seen
from tuned import DISTIL, SHAC

from jaxsim import envs

Array = Any


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a run; each is an option of the command line."""

    env: str = "reacher_vision"
    teacher: str = ""  # file of a policy of the state; without one SHAC learns it, to the folder `teacher` of `out`
    steps: int = 400_000  # actions of all worlds together
    worlds: int = 128
    devices: int = 0  # that share the worlds; 0: all
    unroll: int = 8  # actions of one world in an update
    epochs: int = 4
    minibatches: int = 4
    hidden: tuple[int, ...] = (128, 128)
    encoder: tuple[int, ...] = (32, 64)  # channels of the convolutions
    activation: str = "elu"
    learning_rate: float = 1e-3
    max_grad: float = 1.0
    first_std: float = 0.2  # of the noise of actions
    seed: int = 0
    eval_every: int = 50  # updates
    eval_worlds: int = 16
    save_every: int = 50  # updates
    out: str = "runs/distil"


class Trainer(ppo.Trainer):
    """Update of the student; its network is that of PPO, whose critic has no use here."""

    Settings = Settings
    tuned = DISTIL
    starts = {}  # noqa: RUF012
    smoke = Settings(
        env="cartpole_balance_vision",
        teacher=str(Path(__file__).parent / "policies" / "cartpole_balance.npz"),
        steps=4_096,
        worlds=32,
        eval_every=8,
        eval_worlds=4,
        out="runs/distil_smoke",
    )

    def start(self) -> ppo.Run:
        """`Run` before the first update, after the teacher has learnt where there is none."""
        s = self.s
        path = Path(s.teacher or f"{s.out}/teacher/policy.npz")
        if not s.teacher and not path.is_file():
            own = {"env": s.env, "seed": s.seed, "devices": s.devices, "out": str(path.parent)}
            settings = shac.Settings(**{**SHAC.get(s.env, {}), **own})
            settings = dataclasses.replace(settings, save_every=settings.steps)  # a policy that is there is complete
            training_loop.train(shac.Trainer(settings, self.env.env))
        self.teacher = envs.load_policy(path)
        return super().start()

    def _update(self, run: ppo.Run) -> tuple[ppo.Run, dict[str, Array]]:
        s = self.s
        key, own = own_key(run.key)
        act, shuffle = jax.random.split(own)

        def step(state: envs.State, key: Array) -> tuple[envs.State, dict[str, Array]]:
            raw = seen(state.obs)
            mean, log_std = self.net.apply(run.params, normal(run.moments, raw), method="act")
            new = self.batch.step(state, mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape, mean.dtype))
            log = {"reward": new.reward, **new.metrics}
            return new, {"raw": raw, "target": self.teacher(raw["critic"]), "log": log}

        world, batch = jax.lax.scan(step, run.world, jax.random.split(act, s.unroll))
        log = jax.tree.map(jnp.mean, batch.pop("log"))
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
        moments = new_moments(run.moments, flat["raw"])

        def loss(params: Any, indices: Array) -> Array:
            obs = normal(moments, jax.tree.map(lambda x: x[indices], flat["raw"]))
            return jnp.square(self.net.apply(params, obs, method="act")[0] - flat["target"][indices]).mean()

        def descend(carry: tuple, indices: Array) -> tuple[tuple, Array]:
            value, grad = jax.value_and_grad(loss)(carry[0], indices)
            change, optimiser = self.tx.update(mean_over_devices(grad), carry[1])
            return (jax.tree.map(lambda p, c: p - run.rate * c, carry[0], change), optimiser), value

        keys = jax.random.split(shuffle, s.epochs)
        order = jax.vmap(lambda k: jax.random.permutation(k, len(flat["target"])))(keys)
        parts = order.reshape(s.epochs * s.minibatches, -1)
        (params, optimiser), losses = jax.lax.scan(descend, (run.params, run.optimiser), parts)
        log |= {
            "loss": losses.mean(),
            "return": world.info["episode_return"].mean(),
            "length": world.info["episode_length"].astype(jnp.float32).mean(),
        }
        run = ppo.Run(params, optimiser, run.rate, moments, world, key, run.update + 1)
        return run, mean_over_devices(log)


def main(argv: list[str] | None = None) -> int:
    """Train as the command line says."""
    return training_loop.main(Trainer, __doc__, argv)


if __name__ == "__main__":
    raise SystemExit(main())
