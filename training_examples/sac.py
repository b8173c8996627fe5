"""SAC in flax and optax: the whole update (rollout, replay buffer, gradient steps) is one compiled function.

Haarnoja et al., "Soft Actor-Critic Algorithms and Applications", 2018.

    python training_examples/sac.py --env cartpole_swingup
    python training_examples/sac.py --resume runs/sac
    python training_examples/sac.py --smoke

Writes `log.csv`, checkpoints that resume exactly (the replay buffer included) and `replay.html` of the policy to
`--out` (with `--video`, an mp4).
"""

import dataclasses
from functools import partial
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import training_loop

from jaxsim import envs
from jaxsim.envs.wrappers import first_moments, normalize, update_moments

Array = Any


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a run; each is an option of the command line."""

    env: str = "cartpole_swingup"
    steps: int = 500_000  # actions of all worlds together
    worlds: int = 64
    unroll: int = 4  # actions of one world in an update
    gradients: int = 64  # gradient steps in an update
    batch: int = 256
    buffer: int = 204_800  # transitions; a multiple of worlds x unroll
    warmup: int = 5_000  # random actions before the first gradient step
    hidden: tuple[int, ...] = (128, 128)
    learning_rate: float = 5e-4
    discount: float = 0.99
    polyak: float = 0.005  # weight of the critics in the moving average that the target critics are
    first_temperature: float = 0.1
    reward_scale: float = 1.0
    seed: int = 0
    eval_every: int = 100  # updates
    eval_worlds: int = 16
    save_every: int = 500  # updates
    out: str = "runs/sac"


class Actor(nn.Module):
    """Mean and log standard deviation of an action before the tanh."""

    action_size: int
    hidden: tuple[int, ...]

    @nn.compact
    def __call__(self, obs: Array) -> tuple[Array, Array]:
        x = obs
        for width in self.hidden:
            x = nn.relu(nn.Dense(width)(x))
        mean, log_std = jnp.split(nn.Dense(2 * self.action_size)(x), 2, -1)
        return mean, jnp.clip(log_std, -5, 2)


class Critics(nn.Module):
    """Values (2, ...) of an action by two critics of separate weights."""

    hidden: tuple[int, ...]

    @nn.compact
    def __call__(self, obs: Array, action: Array) -> Array:
        def critic() -> Array:
            x = jnp.concatenate([obs, action], -1)
            for width in self.hidden:
                x = nn.relu(nn.LayerNorm()(nn.Dense(width)(x)))
            return nn.Dense(1)(x)[..., 0]

        return jnp.stack([critic(), critic()])


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Run:
    """Everything that changes while training, worlds and replay buffer included: the contents of a checkpoint."""

    params: Any
    target: Any
    optimiser: Any
    moments: Any
    world: envs.State
    replay: dict[str, Array]
    stored: Array  # transitions stored so far, those overwritten included
    key: Array
    update: Array


def sample(mean: Array, log_std: Array, key: Array) -> tuple[Array, Array]:
    """Action in (-1, 1), the tanh of a normal draw, and its log density."""
    noise = jax.random.normal(key, mean.shape, mean.dtype)
    draw = mean + jnp.exp(log_std) * noise
    density = -0.5 * noise**2 - log_std - 0.5 * jnp.log(2 * jnp.pi)
    density -= 2 * (jnp.log(2.0) - draw - nn.softplus(-2 * draw))  # log of the derivative of tanh
    return jnp.tanh(draw), density.sum(-1)


class Trainer(training_loop.Trainer):
    """Networks and update of SAC."""

    Settings = Settings
    tuned: ClassVar = {}
    smoke = Settings(
        steps=12_800,
        eval_every=25,
        eval_worlds=4,
        warmup=2_000,
        gradients=16,
        batch=64,
        buffer=51_200,
        out="runs/sac_smoke",
    )
    memory_remedy = "use fewer --worlds or a smaller --buffer"

    def __init__(self, s: Settings):
        if s.buffer % (s.worlds * s.unroll):
            raise SystemExit(f"buffer = {s.buffer} must be a multiple of worlds x unroll = {s.worlds * s.unroll}")
        super().__init__(s)
        self.actor, self.critics = Actor(self.env.action_size, s.hidden), Critics(s.hidden)
        self.tx = optax.adam(s.learning_rate)

    def start(self) -> Run:
        """`Run` before the first update."""
        actor, critics, world, key = jax.random.split(jax.random.PRNGKey(self.s.seed), 4)
        return self._start(actor, critics, self.worlds(world), key)

    @partial(jax.jit, static_argnums=0)
    def _start(self, actor: Array, critics: Array, state: envs.State, key: Array) -> Run:
        s = self.s
        obs, action = state.obs, jnp.zeros((s.worlds, self.env.action_size), state.obs.dtype)
        params = {
            "actor": self.actor.init(actor, obs),
            "critics": self.critics.init(critics, obs, action),
            "log_temperature": jnp.log(jnp.asarray(s.first_temperature, obs.dtype)),
        }
        row = {"obs": obs, "action": action, "reward": state.reward, "terminal": state.done, "next": obs}
        replay = jax.tree.map(lambda x: jnp.zeros((s.buffer, *x.shape[1:]), x.dtype), row)
        zero = jnp.zeros((), jnp.int32)
        target = jax.tree.map(jnp.copy, params["critics"])
        return Run(params, target, self.tx.init(params), first_moments(obs), state, replay, zero, key, zero)

    def _update(self, run: Run) -> tuple[Run, dict[str, Array]]:
        s = self.s
        key, act, learn = jax.random.split(run.key, 3)
        warming_up = run.stored < s.warmup

        def step(state: envs.State, key: Array) -> tuple[envs.State, dict[str, Array]]:
            draw, uniform = jax.random.split(key)
            mean, log_std = self.actor.apply(run.params["actor"], normalize(run.moments, state.obs))
            action = sample(mean, log_std, draw)[0]
            action = jnp.where(warming_up, jax.random.uniform(uniform, action.shape, action.dtype, -1, 1), action)
            new = self.batch.step(state, action)
            row = {"obs": state.obs, "action": action, "reward": s.reward_scale * new.reward}
            row |= {"terminal": new.done * (1 - new.info["truncation"]), "next": new.info["final_obs"]}
            return new, row

        world, rows = jax.lax.scan(step, run.world, jax.random.split(act, s.unroll))
        rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)
        first = run.stored % s.buffer
        replay = jax.tree.map(lambda r, x: jax.lax.dynamic_update_slice_in_dim(r, x, first, 0), run.replay, rows)
        moments = update_moments(run.moments, rows["obs"])
        stored = run.stored + self.steps_per_update

        def step_on_sample(carry: tuple, key: Array) -> tuple[tuple, dict[str, Array]]:
            pick, noise = jax.random.split(key)
            index = jax.random.randint(pick, (s.batch,), 0, jnp.minimum(stored, s.buffer))
            batch = jax.tree.map(lambda x: x[index], replay)
            batch |= {k: normalize(moments, batch[k]) for k in ("obs", "next")}
            return self._gradient_step(carry, batch, noise)

        def learning(carry: tuple) -> tuple:
            carry, losses = jax.lax.scan(step_on_sample, carry, jax.random.split(learn, s.gradients))
            return carry, jax.tree.map(jnp.mean, losses)

        carry = (run.params, run.target, run.optimiser)
        zero_log = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(learning, carry)[1])
        carry, log = jax.lax.cond(warming_up, lambda c: (c, zero_log), learning, carry)
        log |= {
            "reward": rows["reward"].mean() / s.reward_scale,
            "return": world.info["episode_return"].mean(),
            "length": world.info["episode_length"].mean(),
            "diverged": world.info["diverged"].sum(),
        }
        return Run(*carry, moments, world, replay, stored, key, run.update + 1), log

    def _gradient_step(self, carry: tuple, batch: dict[str, Array], key: Array) -> tuple[tuple, dict[str, Array]]:
        """Parameters, target critics and optimiser state after one gradient step, and scalars to log."""
        params, target, optimiser = carry
        (_, log), grad = jax.value_and_grad(self._loss, has_aux=True)(params, target, batch, key)
        change, optimiser = self.tx.update(grad, optimiser, params)
        params = optax.apply_updates(params, change)
        target = optax.incremental_update(params["critics"], target, self.s.polyak)
        return (params, target, optimiser), log

    def _loss(self, params: Any, target: Any, batch: dict[str, Array], key: Array) -> tuple[Array, dict[str, Array]]:
        """Sum of the losses of critics, actor and temperature, and scalars to log.

        `stop_gradient` keeps each loss from the parameters of the other two.
        """
        s, fixed = self.s, jax.lax.stop_gradient
        key_obs, key_next = jax.random.split(key)
        temperature = fixed(jnp.exp(params["log_temperature"]))
        action, density = sample(*self.actor.apply(fixed(params["actor"]), batch["next"]), key_next)
        next_value = self.critics.apply(target, batch["next"], action).min(0) - temperature * density
        goal = fixed(batch["reward"] + s.discount * (1 - batch["terminal"]) * next_value)
        critic = jnp.square(self.critics.apply(params["critics"], batch["obs"], batch["action"]) - goal).sum(0).mean()
        action, density = sample(*self.actor.apply(params["actor"], batch["obs"]), key_obs)
        value = self.critics.apply(fixed(params["critics"]), batch["obs"], action).min(0)
        actor = (temperature * density - value).mean()
        missing_entropy = fixed(density.mean() - self.env.action_size)  # the target is -action_size
        temperature_loss = -params["log_temperature"] * missing_entropy
        log = {"critic_loss": critic, "actor_loss": actor, "temperature": temperature, "value": value.mean()}
        return critic + actor + temperature_loss, log

    def policy(self, run: Run, obs: Array) -> Array:
        """Actions without exploration noise: the tanh of the means."""
        return jnp.tanh(self.actor.apply(run.params["actor"], normalize(run.moments, obs))[0])


def main(argv: list[str] | None = None) -> int:
    """Train as the command line says."""
    return training_loop.main(Trainer, __doc__, argv)


if __name__ == "__main__":
    raise SystemExit(main())
