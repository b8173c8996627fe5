"""PPO in flax and optax: the whole update (rollout, advantages, epochs of gradient steps) is one compiled function.

Schulman et al., "Proximal Policy Optimization Algorithms", 2017; with a learning rate that follows the change of the
policy, as in Rudin et al., "Learning to Walk in Minutes Using Massively Parallel Deep Reinforcement Learning", 2021.
On several devices (the cores of a CPU, all GPUs, or `--devices` of them) each steps its own worlds; gradients are
averaged over them.

    python training_examples/ppo.py --env cartpole_balance
    python training_examples/ppo.py --env my_tasks.py:spin    # a file, or a module, that calls envs.register
    python training_examples/ppo.py --env my_tasks.py:spin --tune    # try the settings of tuned.STARTS first
    python training_examples/ppo.py --env quadruped_locomotion --steps 3000000 --out runs/quadruped
    python training_examples/ppo.py --resume runs/quadruped --steps 6000000
    python training_examples/ppo.py --smoke

Writes to `--out`: `log.csv`, `policy.npz` (for `jaxsim.envs.load_policy`), checkpoints that resume exactly and
`replay.html` of the policy (with `--video`, an mp4).
"""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import actor_critic
import jax
import jax.numpy as jnp
import optax
import training_loop
from actor_critic import (
    AXIS,
    Network,
    kl_divergence,
    mean_over_devices,
    new_moments,
    next_rate,
    normal,
    normalized,
    own_key,
    seen,
)
from jax.sharding import PartitionSpec as P
from tuned import PPO, STARTS

from jaxsim import envs
from jaxsim.envs.wrappers import first_moments

Array = Any


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a run; each is an option of the command line."""

    env: str = "cartpole_balance"
    steps: int = 1_000_000  # actions of all worlds together
    worlds: int = 256
    devices: int = 0  # that share the worlds; 0: all
    unroll: int = 24  # actions of one world in an update
    epochs: int = 5
    minibatches: int = 4
    hidden: tuple[int, ...] = (128, 128)
    encoder: tuple[int, ...] = (16, 32)  # channels of the convolutions, where the actor sees pictures
    activation: str = "elu"
    learning_rate: float = 5e-4  # the first; then it follows `target_kl`
    target_kl: float = 0.02  # 0: a constant learning rate
    discount: float = 0.98
    gae: float = 0.95
    clip: float = 0.2
    entropy: float = 0.0
    value_weight: float = 0.5
    max_grad: float = 1.0
    reward_scale: float = 0.1
    first_std: float = 0.35
    seed: int = 0
    eval_every: int = 50  # updates
    eval_worlds: int = 16
    save_every: int = 50  # updates
    out: str = "runs/ppo"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Run:
    """Everything that changes while training, worlds included: the contents of a checkpoint."""

    params: Any
    optimiser: Any
    rate: Array
    moments: Any
    world: envs.State
    key: Array
    update: Array


def log_prob(mean: Array, log_std: Array, action: Array) -> Array:
    """Log density of a diagonal normal distribution."""
    z = (action - mean) / jnp.exp(log_std)
    return jnp.sum(-0.5 * z**2 - log_std - 0.5 * jnp.log(2 * jnp.pi), -1)


def advantages(s: Settings, batch: dict[str, Array]) -> Array:
    """Generalised advantage estimates (unroll, worlds); a truncated episode is bootstrapped from its last observation.

    Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", ICLR 2016.
    """
    running = 1 - batch["done"]
    error = batch["reward"] + s.discount * (1 - batch["terminal"]) * batch["next_value"] - batch["value"]

    def back(later: Array, now: tuple) -> tuple[Array, Array]:
        error, running = now
        advantage = error + s.discount * s.gae * running * later
        return advantage, advantage

    return jax.lax.scan(back, jnp.zeros_like(error[0]), (error, running), reverse=True)[1]


class Trainer(training_loop.Trainer):
    """Network and update of PPO."""

    Settings = Settings
    tuned = PPO
    starts = STARTS
    smoke = Settings(steps=40_960, worlds=64, eval_every=5, eval_worlds=4, out="runs/ppo_smoke")
    memory_remedy = "use fewer --worlds or a shorter --unroll"
    uses_cores = True

    def __init__(self, s: Settings):
        used = actor_critic.devices(s)
        super().__init__(s)
        self.net = Network(self.env.action_size, s.hidden, s.first_std, s.activation, s.encoder)
        self.tx = optax.chain(optax.clip_by_global_norm(s.max_grad), optax.scale_by_adam(eps=1e-5))
        spec = Run(params=P(), optimiser=P(), rate=P(), moments=P(), world=P(AXIS), key=P(), update=P())
        self.update, self.sharding = actor_critic.over_devices(self._update, spec, used)

    def start(self) -> Run:
        """`Run` before the first update."""
        return actor_critic.first_run(self, self._start)

    @partial(jax.jit, static_argnums=0)
    def _start(self, net: Array, state: envs.State, key: Array) -> Run:
        obs = seen(state.obs)
        params = self.net.init(net, obs)
        rate, moments = jnp.asarray(self.s.learning_rate, jnp.float32), first_moments(obs)
        return Run(params, self.tx.init(params), rate, moments, state, key, jnp.zeros((), jnp.int32))

    def _update(self, run: Run) -> tuple[Run, dict[str, Array]]:
        s = self.s
        key, own = own_key(run.key)
        act, shuffle = jax.random.split(own)

        def step(state: envs.State, key: Array) -> tuple[envs.State, dict[str, Array]]:
            raw = seen(state.obs)
            mean, log_std = self.net.apply(run.params, normal(run.moments, raw), method="act")
            action = mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape, mean.dtype)
            new = self.batch.step(state, action)
            return new, {
                "raw": raw,
                "final": seen(new.info["final_obs"])["critic"],
                "action": action,
                "mean": mean,
                "reward": s.reward_scale * new.reward,
                "done": new.done,
                "terminal": new.done * (1 - new.info["truncation"]),
                "metrics": jax.tree.map(jnp.mean, new.metrics),
            }

        world, batch = jax.lax.scan(step, run.world, jax.random.split(act, s.unroll))
        batch["obs"] = normal(run.moments, batch["raw"])
        final = normal(run.moments, {"critic": batch.pop("final")})["critic"]
        # values are one batch of all steps: a matrix product of a thousand rows is faster than many of a few
        batch["value"] = self.net.apply(run.params, batch["obs"]["critic"], method="value")
        batch["next_value"] = self.net.apply(run.params, final, method="value")
        batch["advantage"] = advantages(s, batch)
        batch["target"] = batch["advantage"] + batch["value"]
        metrics = jax.tree.map(jnp.mean, batch.pop("metrics"))
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
        moments = new_moments(run.moments, flat.pop("raw"))
        old_std = run.params["params"]["log_std"]

        def epoch(carry: tuple, key: Array) -> tuple:
            order = jax.random.permutation(key, flat["reward"].shape[0]).reshape(s.minibatches, -1)
            parts = order, normalized(flat["advantage"][order])
            step = partial(self._gradient_step, old_std, flat)
            return jax.lax.scan(step, carry, parts)

        carry = run.params, run.optimiser, run.rate
        (params, optimiser, rate), losses = jax.lax.scan(epoch, carry, jax.random.split(shuffle, s.epochs))
        log = jax.tree.map(jnp.mean, losses) | {
            "reward": batch["reward"].mean() / s.reward_scale,
            "return": world.info["episode_return"].mean(),
            "length": world.info["episode_length"].astype(jnp.float32).mean(),
            "diverged": world.info["diverged"].astype(jnp.float32).mean() * s.worlds,
            **metrics,
        }
        log, kl = mean_over_devices((log, losses["kl"][-1].mean()))
        rate = next_rate(rate, kl, s.target_kl)
        return Run(params, optimiser, rate, moments, world, key, run.update + 1), log | {"rate": rate}

    def _gradient_step(
        self, old_log_std: Array, flat: dict[str, Array], carry: tuple, part: tuple[Array, Array]
    ) -> tuple[tuple, dict[str, Array]]:
        """Parameters, optimiser state and learning rate after one step on a minibatch, and scalars to log.

        `part` has the indices of the minibatch in `flat`, and its normalised advantages.
        """
        params, optimiser, rate = carry
        indices, advantage = part
        batch = {**jax.tree.map(lambda x: x[indices], flat), "advantage": advantage}
        (_, log), grad = jax.value_and_grad(self._loss, has_aux=True)(params, old_log_std, batch)
        grad = mean_over_devices(grad)
        change, optimiser = self.tx.update(grad, optimiser, params)
        params = jax.tree.map(lambda p, c: p - rate * c, params, change)
        return (params, optimiser, rate), log

    def _loss(self, params: Any, old_log_std: Array, batch: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
        """Clipped surrogate loss plus value loss less entropy, and its terms."""
        s = self.s
        mean, log_std, value = self.net.apply(params, batch["obs"])
        new, old = log_prob(mean, log_std, batch["action"]), log_prob(batch["mean"], old_log_std, batch["action"])
        ratio = jnp.exp(new - old)
        clipped = jnp.clip(ratio, 1 - s.clip, 1 + s.clip)
        policy = -jnp.minimum(ratio * batch["advantage"], clipped * batch["advantage"]).mean()
        critic = jnp.square(value - batch["target"]).mean()
        kl = kl_divergence(batch["mean"], old_log_std, mean, log_std).mean()
        log = {"policy_loss": policy, "value_loss": critic, "std": jnp.exp(log_std).mean(), "kl": kl}
        return policy + s.value_weight * critic - s.entropy * log_std.sum(), log

    def policy(self, run: Run, obs: Any) -> Array:
        """Actions without exploration noise: the means."""
        return self.net.apply(run.params, normal(run.moments, seen(obs)), method="act")[0]

    def export(self, run: Run, path: Path) -> None:
        """Write the policy for `jaxsim.envs.load_policy`."""
        actor_critic.export(self.s, run.params, run.moments, path)


def main(argv: list[str] | None = None) -> int:
    """Train as the command line says."""
    return training_loop.main(Trainer, __doc__, argv)


if __name__ == "__main__":
    raise SystemExit(main())
