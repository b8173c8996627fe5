"""PPO in flax and optax: the whole update (rollout, advantages, epochs of gradient steps) is one compiled function.

Schulman et al., "Proximal Policy Optimization Algorithms", 2017.

    python training_examples/ppo.py --env cartpole_balance
    python training_examples/ppo.py --env runner_run --steps 20000000 --worlds 2048 --out runs/runner
    python training_examples/ppo.py --resume runs/runner
    python training_examples/ppo.py --smoke

Writes `log.csv`, checkpoints that resume exactly and `replay.html` of the policy to `--out` (with `--video`, an mp4).
"""

import dataclasses
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import training_loop

from jaxsim import envs
from jaxsim.envs.wrappers import first_moments, normalize, update_moments

Array = Any


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a run; each is an option of the command line."""

    env: str = "cartpole_balance"
    steps: int = 1_000_000  # actions of all worlds together
    worlds: int = 256
    unroll: int = 32  # actions of one world in an update
    epochs: int = 4
    minibatches: int = 8
    hidden: tuple[int, ...] = (128, 128)
    learning_rate: float = 1e-3
    discount: float = 0.99
    gae: float = 0.95
    clip: float = 0.2
    entropy: float = 1e-3
    value_weight: float = 0.5
    max_grad: float = 1.0
    reward_scale: float = 0.1
    first_std: float = 0.5
    seed: int = 0
    eval_every: int = 10  # updates
    eval_worlds: int = 16
    save_every: int = 50  # updates
    out: str = "runs/ppo"


class Network(nn.Module):
    """Mean and log standard deviation of an action, and the value of the observation: two towers of tanh layers."""

    action_size: int
    hidden: tuple[int, ...]
    first_std: float

    @nn.compact
    def __call__(self, obs: Array) -> tuple[Array, Array, Array]:
        def tower(x: Array, out: int, scale: float) -> Array:
            for width in self.hidden:
                x = nn.tanh(nn.Dense(width, kernel_init=nn.initializers.orthogonal(2**0.5))(x))
            return nn.Dense(out, kernel_init=nn.initializers.orthogonal(scale))(x)

        mean = tower(obs, self.action_size, 0.01)
        log_std = self.param("log_std", nn.initializers.constant(np.log(self.first_std)), (self.action_size,))
        return mean, log_std, tower(obs, 1, 1.0)[..., 0]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Run:
    """Everything that changes while training, worlds included: the contents of a checkpoint."""

    params: Any
    optimiser: Any
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
    smoke = Settings(steps=40_960, worlds=64, eval_every=5, eval_worlds=4, out="runs/ppo_smoke")
    memory_remedy = "use fewer --worlds or a shorter --unroll"

    def __init__(self, s: Settings):
        super().__init__(s)
        self.net = Network(self.env.action_size, s.hidden, s.first_std)
        self.tx = optax.chain(optax.clip_by_global_norm(s.max_grad), optax.adam(s.learning_rate, eps=1e-5))
        if s.worlds * s.unroll % s.minibatches:
            raise SystemExit(
                f"worlds x unroll = {s.worlds * s.unroll} is not a multiple of {s.minibatches} minibatches"
            )

    @partial(jax.jit, static_argnums=0)
    def start(self) -> Run:
        """`Run` before the first update."""
        net, world, key = jax.random.split(jax.random.PRNGKey(self.s.seed), 3)
        state = self.batch.reset(jax.random.split(world, self.s.worlds))
        params = self.net.init(net, state.obs)
        return Run(params, self.tx.init(params), first_moments(state.obs), state, key, jnp.zeros((), jnp.int32))

    def _update(self, run: Run) -> tuple[Run, dict[str, Array]]:
        s = self.s
        key, act, shuffle = jax.random.split(run.key, 3)

        def step(state: envs.State, key: Array) -> tuple[envs.State, dict[str, Array]]:
            obs = normalize(run.moments, state.obs)
            mean, log_std, value = self.net.apply(run.params, obs)
            action = mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape, mean.dtype)
            new = self.batch.step(state, action)
            final_obs = normalize(run.moments, new.info["final_obs"])
            return new, {
                "obs": obs,
                "raw_obs": state.obs,
                "action": action,
                "log_prob": log_prob(mean, log_std, action),
                "value": value,
                "next_value": self.net.apply(run.params, final_obs)[2],
                "reward": s.reward_scale * new.reward,
                "done": new.done,
                "terminal": new.done * (1 - new.info["truncation"]),
            }

        world, batch = jax.lax.scan(step, run.world, jax.random.split(act, s.unroll))
        batch["advantage"] = advantages(s, batch)
        batch["target"] = batch["advantage"] + batch["value"]
        moments = update_moments(run.moments, batch.pop("raw_obs").reshape(-1, run.world.obs.shape[-1]))
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)

        def epoch(carry: tuple, key: Array) -> tuple:
            order = jax.random.permutation(key, self.steps_per_update).reshape(s.minibatches, -1)
            return jax.lax.scan(lambda c, i: self._gradient_step(c, jax.tree.map(lambda x: x[i], flat)), carry, order)

        (params, optimiser), losses = jax.lax.scan(
            epoch, (run.params, run.optimiser), jax.random.split(shuffle, s.epochs)
        )
        log = jax.tree.map(jnp.mean, losses) | {
            "reward": batch["reward"].mean() / s.reward_scale,
            "return": world.info["episode_return"].mean(),
            "length": world.info["episode_length"].mean(),
            "diverged": world.info["diverged"].sum(),
        }
        return Run(params, optimiser, moments, world, key, run.update + 1), log

    def _gradient_step(self, carry: tuple, batch: dict[str, Array]) -> tuple[tuple, dict[str, Array]]:
        """Parameters and optimiser state after one step on a minibatch, and scalars to log."""
        params, optimiser = carry
        (_, log), grad = jax.value_and_grad(self._loss, has_aux=True)(params, batch)
        change, optimiser = self.tx.update(grad, optimiser, params)
        return (optax.apply_updates(params, change), optimiser), log

    def _loss(self, params: Any, batch: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
        """Clipped surrogate loss plus value loss less entropy, and its terms."""
        s = self.s
        mean, log_std, value = self.net.apply(params, batch["obs"])
        ratio = jnp.exp(log_prob(mean, log_std, batch["action"]) - batch["log_prob"])
        advantage = (batch["advantage"] - batch["advantage"].mean()) / (batch["advantage"].std() + 1e-8)
        policy = -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - s.clip, 1 + s.clip) * advantage).mean()
        critic = jnp.square(value - batch["target"]).mean()
        entropy = log_std.sum()
        log = {"policy_loss": policy, "value_loss": critic, "std": jnp.exp(log_std).mean()}
        return policy + s.value_weight * critic - s.entropy * entropy, log

    def policy(self, run: Run, obs: Array) -> Array:
        """Actions without exploration noise: the means."""
        return self.net.apply(run.params, normalize(run.moments, obs))[0]


def main(argv: list[str] | None = None) -> int:
    """Train as the command line says."""
    return training_loop.main(Trainer, __doc__, argv)


if __name__ == "__main__":
    raise SystemExit(main())
