"""Short-horizon actor-critic (SHAC): the actor ascends derivatives of the simulator, in flax and optax.

A world goes through `unroll` actions. The gradient of their rewards, and of a critic's value at the end, is taken
through all of it: policy, physics, contacts. The critic learns TD(lambda) targets of the same actions. Xu et al.,
"Accelerated Policy Learning with Parallel Differentiable Simulation", ICLR 2022. After a hard impact the derivatives of
one world can be very large: they are clipped to the median of all. `unroll` is a matter of the task: noise grows with
every contact (`compare_gradients.py`), and the critic sees what lies beyond. The learning rate follows the change of
the policy, as in `ppo.py`.
On several devices (the cores of a CPU, all GPUs, or `--devices` of them) each steps its own worlds; gradients are
averaged over them.

    python training_examples/shac.py --env ant_run
    python training_examples/shac.py --env quadruped_locomotion --out runs/quadruped_shac
    python training_examples/shac.py --resume runs/quadruped_shac --steps 1000000
    python training_examples/shac.py --smoke

Options, output and checkpoints are those of `ppo.py`.
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
    mean_over_devices,
    new_moments,
    next_rate,
    normal,
    own_key,
    seen,
)
from jax.sharding import PartitionSpec as P
from tuned import SHAC

from jaxsim import envs
from jaxsim.envs.wrappers import first_moments, renew
from jaxsim.math.safe import norm

Array = Any


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a run; each is an option of the command line."""

    env: str = "ant_run"
    steps: int = 300_000  # actions of all worlds together
    worlds: int = 128
    devices: int = 0  # that share the worlds; 0: all
    unroll: int = 8  # actions of one world in an update: the horizon of the gradient
    epochs: int = 16  # of the critic
    minibatches: int = 4
    hidden: tuple[int, ...] = (128, 128)
    encoder: tuple[int, ...] = (16, 32)  # channels of the convolutions, where the actor sees pictures
    activation: str = "elu"
    learning_rate: float = 2e-3  # of the actor; the first, then it follows `target_kl`
    target_kl: float = 0.02  # 0: a constant learning rate
    critic_rate: float = 1e-3
    discount: float = 0.98
    gae: float = 0.95
    max_grad: float = 1.0
    entropy: float = 0.0  # weight of the policy's log standard deviations
    saturation: float = 0.1  # weight of the squared excess of actions over [-1, 1]
    reward_scale: float = 1.0
    first_std: float = 0.25
    target_rate: float = 0.4  # share of the critic that its copy takes over in an update
    seed: int = 0
    eval_every: int = 50  # updates
    eval_worlds: int = 16
    save_every: int = 50  # updates
    out: str = "runs/shac"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Run:
    """Everything that changes while training, worlds included: the contents of a checkpoint."""

    params: Any
    target: Any
    optimisers: Any
    rate: Array
    moments: Any
    world: envs.State
    key: Array
    update: Array


def of_actor(params: Any) -> dict[str, Any]:
    """The actor's part of a network's parameters."""
    return {k: v for k, v in params["params"].items() if not k.startswith("critic")}


def of_critic(params: Any) -> dict[str, Any]:
    """The critic's part of a network's parameters."""
    return {k: v for k, v in params["params"].items() if k.startswith("critic")}


def bounded(action: Array) -> Array:
    """Action within [-1, 1], with the derivative of one outside as well, so that it finds the way back."""
    return action + jax.lax.stop_gradient(jnp.clip(action, -1, 1) - action)


def weighted(push: Array) -> Array:
    """Derivatives by the actions (worlds, unroll, action_size) as shares of their mean over worlds.

    Those of a world are clipped to the median length of all; what is not finite counts as zero.
    """
    size = norm(push.reshape(len(push), -1))
    good = jnp.isfinite(push).all((1, 2))
    most = jnp.nanmedian(jnp.where(good, size, jnp.nan))
    weight = jnp.minimum(1, most / (size + 1e-9)) / len(push)
    return jnp.where(good[:, None, None], weight[:, None, None] * push, 0)


class Trainer(training_loop.Trainer):
    """Network and update of SHAC."""

    Settings = Settings
    tuned = SHAC
    smoke = Settings(env="runner_run", steps=6_144, worlds=16, eval_every=2, eval_worlds=4, out="runs/shac_smoke")
    memory_remedy = "use fewer --worlds or a shorter --unroll"
    uses_cores = True

    def __init__(self, s: Settings, env: Any = None):
        used = actor_critic.devices(s)
        super().__init__(s, env)
        self.net = Network(self.env.action_size, s.hidden, s.first_std, s.activation, s.encoder)
        self.actor_tx = optax.chain(optax.clip_by_global_norm(s.max_grad), optax.scale_by_adam(b1=0.7, b2=0.95))
        self.critic_tx = optax.chain(optax.clip_by_global_norm(s.max_grad), optax.adam(s.critic_rate, b1=0.7, b2=0.95))
        spec = Run(params=P(), target=P(), optimisers=P(), rate=P(), moments=P(), world=P(AXIS), key=P(), update=P())
        self.update, self.sharding = actor_critic.over_devices(self._update, spec, used)

    def start(self) -> Run:
        """`Run` before the first update."""
        return actor_critic.first_run(self, self._start)

    @partial(jax.jit, static_argnums=0)
    def _start(self, net: Array, state: envs.State, key: Array) -> Run:
        obs = seen(state.obs)
        params = self.net.init(net, obs)
        optimisers = self.actor_tx.init(of_actor(params)), self.critic_tx.init(of_critic(params))
        zero, rate = jnp.zeros((), jnp.int32), jnp.asarray(self.s.learning_rate, jnp.float32)
        return Run(params, of_critic(params), optimisers, rate, first_moments(obs), state, key, zero)

    def _value(self, critic: Any, moments: Any, raw: Array) -> Array:
        obs = normal(moments, {"critic": raw})["critic"]
        unused = {"log_std": jnp.zeros(self.env.action_size)}  # the actor's: flax looks up all parameters of `setup`
        return self.net.apply({"params": {**unused, **critic}}, obs, method="value")

    def _action(self, actor: Any, obs: dict[str, Array], noise: Array) -> tuple[Array, Array]:
        """Action and its mean."""
        mean, log_std = self.net.apply({"params": actor}, obs, method="act")
        return mean + jnp.exp(log_std) * noise, mean

    def _advance(self, run: Run, state: envs.State, noise: Array, push: Array) -> tuple[tuple, dict[str, Array]]:
        """Last state of one world after actions with a `push` each, whether its episode goes on, and a record."""
        actor = of_actor(run.params)

        def one(carry: tuple[envs.State, Array], now: tuple[Array, Array]) -> tuple[tuple, dict[str, Array]]:
            (state, going), (noise, push) = carry, now
            raw = seen(state.obs)
            obs = normal(run.moments, raw)
            if "pixels" in obs:  # derivatives do not pass through pictures, nor through the rest of the network then
                obs = jax.lax.stop_gradient(obs)
            action, mean = self._action(actor, obs, noise)
            action += push
            new = self.env.step(state, bounded(action))
            excess = jnp.square(jnp.maximum(jnp.abs(action) - 1, 0)).mean()
            record = {
                "raw": raw,
                "mean": mean,
                "next": seen(new.obs)["critic"],
                "going": going,
                "next_going": going * (1 - new.done),
                "reward": new.reward,
                "excess": excess,
                "metrics": new.metrics,
            }
            return (new, record["next_going"]), record

        return jax.lax.scan(one, (state, jnp.ones(())), (noise, push))

    def _gained(self, push: Array, run: Run, state: envs.State, noise: Array) -> tuple[Array, tuple]:
        """Discounted rewards of one world and its final value, per action, and what happened."""
        s = self.s
        (last, going), record = self._advance(run, state, noise, push)
        value = self._value(run.target, run.moments, seen(last.obs)["critic"])
        gained = s.reward_scale * record["reward"] - s.saturation * record["excess"]
        total = s.discount ** jnp.arange(s.unroll) @ jnp.where(record["going"] > 0, gained, 0)
        total += s.discount**s.unroll * jnp.where(going > 0, value, 0)
        return total / s.unroll, (last, record)

    def _actor_loss(self, actor: Any, run: Run, record: dict[str, Array], noise: Array, push: Array) -> Array:
        """Function whose derivative by the actor is that of minus what is gained, given its derivatives by the actions.

        An action changes by the actor's numbers at the observation of the moment; what follows from that is in `push`.
        So the gradient of all worlds is one pass through the network, and none is made of each.
        """
        action, _ = self._action(actor, normal(run.moments, record["raw"]), noise)
        return -(push * action).sum() - self.s.entropy * actor["log_std"].sum()

    def _targets(self, run: Run, record: dict[str, Array]) -> Array:
        """TD(lambda) targets (worlds, unroll) of the values before each action."""
        s = self.s
        value = self._value(run.target, run.moments, record["next"])

        def back(later: Array, now: tuple) -> tuple[Array, Array]:
            reward, value, going = now
            target = reward + s.discount * going * ((1 - s.gae) * value + s.gae * later)
            return target, target

        steps = s.reward_scale * record["reward"].T, value.T, record["next_going"].T
        return jax.lax.scan(back, value[:, -1], steps, reverse=True)[1].T

    def _update(self, run: Run) -> tuple[Run, dict[str, Array]]:
        s = self.s
        key, own = own_key(run.key)
        draw, shuffle = jax.random.split(own)
        noise = jax.random.normal(draw, (run.world.done.shape[0], s.unroll, self.env.action_size))
        derivative = jax.vmap(jax.value_and_grad(self._gained, has_aux=True), (0, None, 0, 0))
        (gained, (world, record)), push = derivative(jnp.zeros_like(noise), run, run.world, noise)
        grad = jax.grad(self._actor_loss)(of_actor(run.params), run, record, noise, weighted(push))
        grad = mean_over_devices(grad)
        change, actor_state = self.actor_tx.update(grad, run.optimisers[0])
        actor = jax.tree.map(lambda p, c: p - run.rate * c, of_actor(run.params), change)
        kl = mean_over_devices(self._kl(run, actor, record))
        merge = partial(jax.tree.map, lambda x: x.reshape(-1, *x.shape[2:]))
        moments = new_moments(run.moments, merge(record["raw"]))
        raw = record["raw"]["critic"]
        flat = merge({"raw": raw, "target": self._targets(run, record), "going": record["going"]})

        def epoch(carry: tuple, key: Array) -> tuple:
            order = jax.random.permutation(key, flat["target"].shape[0]).reshape(s.minibatches, -1)
            step = partial(self._critic_step, moments)
            return jax.lax.scan(lambda c, i: step(c, jax.tree.map(lambda x: x[i], flat)), carry, order)

        carry = of_critic(run.params), run.optimisers[1]
        (critic, critic_state), losses = jax.lax.scan(epoch, carry, jax.random.split(shuffle, s.epochs))
        target = optax.incremental_update(critic, run.target, s.target_rate)
        world = self._next_episodes(world, record)
        going = record["going"]
        log = jax.tree.map(lambda x: (going * x).sum() / going.sum(), record["metrics"]) | {
            "gained": gained.mean(),
            "value_loss": losses.mean(),
            "std": jnp.exp(actor["log_std"]).mean(),
            "kl": kl,
            "rate": run.rate,
            "gradient": norm(jnp.stack([norm(g.ravel()) for g in jax.tree.leaves(grad)])),
            "reward": (going * record["reward"]).sum() / going.sum(),
            "return": world.info["episode_return"].mean(),
            "length": world.info["episode_length"].astype(jnp.float32).mean(),
        }
        params = {"params": {**actor, **critic}}
        rate = next_rate(run.rate, kl, s.target_kl)
        run = Run(params, target, (actor_state, critic_state), rate, moments, world, key, run.update + 1)
        return run, mean_over_devices(log)

    def _kl(self, run: Run, actor: Any, record: dict[str, Array]) -> Array:
        """KL divergence of the policy before an update from that after it, in the mean of the actions of `record`."""
        log_std = of_actor(run.params)["log_std"]
        new, new_log_std = self.net.apply({"params": actor}, normal(run.moments, record["raw"]), method="act")
        return actor_critic.kl_divergence(record["mean"], log_std, new, new_log_std).mean()

    def _critic_step(self, moments: Any, carry: tuple, batch: dict[str, Array]) -> tuple[tuple, Array]:
        """Critic and optimiser state after one step on a minibatch, and the loss."""
        critic, state = carry

        def loss(critic: Any) -> Array:
            error = self._value(critic, moments, batch["raw"]) - batch["target"]
            return (batch["going"] * jnp.square(error)).mean()

        value, grad = jax.value_and_grad(loss)(critic)
        change, state = self.critic_tx.update(mean_over_devices(grad), state)
        return (optax.apply_updates(critic, change), state), value

    def _next_episodes(self, world: envs.State, record: dict[str, Array]) -> envs.State:
        """Worlds with new first states where an episode ended among the actions of `record`, or its time is up.

        Resets stand between rollouts: derivatives do not pass through them (see `envs.AutoReset`).
        """
        info, going = world.info, record["going"]
        steps = info["steps"] + self.s.unroll
        ended = (record["next_going"][:, -1] < 1) | (steps >= self.env.config.episode_length)
        total = info["running_return"] + (going * record["reward"]).sum(1)
        length = info["running_length"] + going.sum(1).astype(jnp.int32)
        own = {
            "steps": jnp.where(ended, 0, steps),
            "running_return": jnp.where(ended, 0, total),
            "running_length": jnp.where(ended, 0, length),
            "episode_return": jnp.where(ended, total, info["episode_return"]),
            "episode_length": jnp.where(ended, length, info["episode_length"]),
            "episodes": info["episodes"] + ended,
            "overflow": jnp.maximum(info["overflow"], world.data.overflow_contacts + world.data.overflow_constraints),
            "diverged": info["diverged"] + (going * record["metrics"]["diverged"]).sum(1).astype(jnp.int32),
        }
        world = world.replace(info={**info, **own})
        world, keys = renew(envs.Vectorize(self.env), world, ended, info["reset_rng"])
        return world.replace(info={**world.info, "reset_rng": keys})

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
