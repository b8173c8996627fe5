"""PPO in one file: flax, optax, and the whole update (worlds, advantages, epochs) in one compiled function.

    python training_examples/ppo.py --env cartpole_balance
    python training_examples/ppo.py --env runner_run --steps 20000000 --worlds 2048 --out runs/runner
    python training_examples/ppo.py --resume runs/runner
    python training_examples/ppo.py --smoke

Writes to `--out`: `log.csv`, checkpoints that resume exactly, and `replay.html` of the policy (with `--video`, an mp4).
"""

import argparse
import csv
import dataclasses
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from tqdm import tqdm

import jaxsim
from jaxsim import envs
from jaxsim.envs.wrappers import normalize, update_moments

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
    """Mean of the policy, its spread, and the value: two towers of tanh layers."""

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
    """All that changes while training, worlds included: what a checkpoint holds."""

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
    """Generalised advantages (time, worlds); a time-out is bootstrapped from the observation at its end."""
    going = 1 - batch["done"]
    error = batch["reward"] + s.discount * (1 - batch["terminal"]) * batch["next_value"] - batch["value"]

    def back(later: Array, now: tuple) -> tuple[Array, Array]:
        error, going = now
        here = error + s.discount * s.gae * going * later
        return here, here

    return jax.lax.scan(back, jnp.zeros_like(error[0]), (error, going), reverse=True)[1]


class Trainer:
    """The environment, the network and the compiled update; the state of a run is a `Run`."""

    def __init__(self, s: Settings):
        self.s, self.env = s, envs.make(s.env)
        self.batch = envs.wrap(self.env, stagger=True)
        self.net = Network(self.env.action_size, s.hidden, s.first_std)
        self.tx = optax.chain(optax.clip_by_global_norm(s.max_grad), optax.adam(s.learning_rate, eps=1e-5))
        if s.worlds * s.unroll % s.minibatches:
            raise SystemExit(
                f"worlds x unroll = {s.worlds * s.unroll} is not a multiple of {s.minibatches} minibatches"
            )
        self.update = jaxsim.jit(self._update, donate_argnums=0)
        self.evaluate = jaxsim.jit(self._evaluate)

    @property
    def steps_per_update(self) -> int:
        """Actions of all worlds in one update."""
        return self.s.worlds * self.s.unroll

    @partial(jax.jit, static_argnums=0)
    def start(self) -> Run:
        """A new run."""
        net, world, key = jax.random.split(jax.random.PRNGKey(self.s.seed), 3)
        state = self.batch.reset(jax.random.split(world, self.s.worlds))
        zero = jnp.zeros_like(state.obs[0])
        moments = update_moments({"count": jnp.zeros(()), "mean": zero, "square": zero}, state.obs)
        params = self.net.init(net, state.obs)
        return Run(params, self.tx.init(params), moments, state, key, jnp.zeros((), jnp.int32))

    def _update(self, run: Run) -> tuple[Run, dict[str, Array]]:
        s = self.s
        key, act, shuffle = jax.random.split(run.key, 3)

        def step(state: envs.State, key: Array) -> tuple[envs.State, dict[str, Array]]:
            obs = normalize(run.moments, state.obs)
            mean, log_std, value = self.net.apply(run.params, obs)
            action = mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape, mean.dtype)
            new = self.batch.step(state, action)
            last = normalize(run.moments, new.info["final_obs"])
            return new, {
                "obs": obs,
                "raw": state.obs,
                "action": action,
                "log_prob": log_prob(mean, log_std, action),
                "value": value,
                "next_value": self.net.apply(run.params, last)[2],
                "reward": s.reward_scale * new.reward,
                "done": new.done,
                "terminal": new.done * (1 - new.info["truncation"]),
            }

        world, batch = jax.lax.scan(step, run.world, jax.random.split(act, s.unroll))
        batch["advantage"] = advantages(s, batch)
        batch["target"] = batch["advantage"] + batch["value"]
        moments = update_moments(run.moments, batch.pop("raw").reshape(-1, run.world.obs.shape[-1]))
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)

        def epoch(carry: tuple, key: Array) -> tuple:
            order = jax.random.permutation(key, self.steps_per_update).reshape(s.minibatches, -1)
            return jax.lax.scan(lambda c, i: self._descend(c, jax.tree.map(lambda x: x[i], flat)), carry, order)

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

    def _descend(self, carry: tuple, batch: dict[str, Array]) -> tuple[tuple, dict[str, Array]]:
        params, optimiser = carry
        (_, log), grad = jax.value_and_grad(self._loss, has_aux=True)(params, batch)
        change, optimiser = self.tx.update(grad, optimiser, params)
        return (optax.apply_updates(params, change), optimiser), log

    def _loss(self, params: Any, batch: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
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
        """The action without noise."""
        return self.net.apply(run.params, normalize(run.moments, obs))[0]

    def _evaluate(self, run: Run, key: Array) -> dict[str, Array]:
        """Mean return, length and worst return of whole first episodes of fresh worlds."""
        batch = envs.wrap(self.env)
        state = batch.reset(jax.random.split(key, self.s.eval_worlds))

        def step(carry: tuple, _: None) -> tuple[tuple, None]:
            state, alive, total, length = carry
            state = batch.step(state, self.policy(run, state.obs))
            total, length = total + alive * state.reward, length + alive
            return (state, alive * (1 - state.done), total, length), None

        zero = jnp.zeros_like(state.reward)
        carry = (state, zero + 1, zero, zero)
        (_, _, total, length), _ = jax.lax.scan(step, carry, None, self.env.config.episode_length)
        return {"eval_return": total.mean(), "eval_worst": total.min(), "eval_length": length.mean()}


def record(trainer: Any, run: Any, out: Path, video: bool, nstep: int = 500) -> None:
    """One episode of the policy as a page, and as a video if asked."""
    from jaxsim.viewer.html import save_html

    env, names = trainer.env, ("time", "qpos", "geom_xpos", "geom_xmat", "xpos")
    nstep = min(nstep, env.config.episode_length)

    def step(state: envs.State, _: None) -> tuple:
        state = env.step(state, trainer.policy(run, state.obs))
        return state, ({n: getattr(state.data, n) for n in names}, state.done)

    state = jaxsim.jit(env.reset)(jax.random.key(7))
    _, (frames, done) = jaxsim.jit(lambda s: jax.lax.scan(step, s, None, nstep))(state)
    ended = np.flatnonzero(np.asarray(done))
    frames = {n: np.asarray(x)[: ended[0] + 1 if ended.size else None] for n, x in frames.items()}
    save_html(env.model, frames, out / "replay.html", title=trainer.s.env)
    if video:
        from jaxsim.viewer.render import save_video

        save_video(env.model, frames, out / "video.mp4", fps=1 / env.dt)


def save(run: Any, folder: Path, step: int) -> None:
    """A checkpoint: every array of the run, by its place; what has no entries is left out."""
    leaves = {f"{i:05d}": x for i, x in enumerate(jax.tree.leaves(run)) if x.size}
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder.absolute() / f"{step:08d}", leaves, force=True)


def restore(like: Any, folder: Path) -> Any:
    """The last checkpoint of a folder, in the shape of `like`; SystemExit when there is none."""
    found = sorted(p for p in folder.glob("*") if p.name.isdigit())
    if not found:
        raise SystemExit(f"no checkpoint in {folder}")
    leaves, structure = jax.tree.flatten(like)
    with ocp.StandardCheckpointer() as checkpointer:
        saved = checkpointer.restore(found[-1].absolute(), {f"{i:05d}": x for i, x in enumerate(leaves) if x.size})
    return jax.tree.unflatten(structure, [saved.get(f"{i:05d}", x) for i, x in enumerate(leaves)])


def train(s: Settings, resume: bool = False, video: bool = False, quiet: bool = False) -> dict[str, float]:
    """Train and write `s.out`; gives the last evaluation, with the seconds spent and the actions taken."""
    trainer, out, begin = Trainer(s), Path(s.out), time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    (out / "settings.json").write_text(json.dumps(dataclasses.asdict(s), indent=1))
    run = trainer.start()
    if resume:
        run = restore(run, out / "checkpoints")
    total = -(-s.steps // trainer.steps_per_update)
    result: dict[str, float] = {}
    with (
        open(out / "log.csv", "a" if resume else "w", newline="") as file,
        tqdm(total=total, initial=int(run.update), unit="update", disable=quiet) as bar,
    ):
        writer = None
        for update in range(int(run.update) + 1, total + 1):
            run, log = trainer.update(run)
            if update % s.eval_every == 0 or update == total:
                log |= trainer.evaluate(run, jax.random.key(update))
                row = {"steps": update * trainer.steps_per_update, "seconds": round(time.perf_counter() - begin, 2)}
                result = row | {k: round(float(v), 5) for k, v in log.items()}
                if writer is None:
                    writer = csv.DictWriter(file, list(result))
                    if not resume:
                        writer.writeheader()
                writer.writerow(result)
                file.flush()
                bar.set_postfix({"return": result["eval_return"], "length": result["eval_length"]})
            if update % s.save_every == 0 or update == total:
                save(run, out / "checkpoints", update)
            bar.update()
    for line in envs.troubles(run.world):
        print(f"warning: {line}", file=sys.stderr)
    record(trainer, run, out, video)
    return result


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line: one option for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in dataclasses.fields(Settings):
        kind = _numbers if field.name == "hidden" else field.type
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, help=f"default: {field.default}")
    parser.add_argument("--resume", metavar="DIR", help="go on with the run in this folder")
    parser.add_argument("--video", action="store_true", help="write an mp4 as well")
    parser.add_argument("--smoke", action="store_true", help="a run of a minute, to see that all of it works")
    return parser.parse_args(argv)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(x) for x in text.split(","))


def settings(args: argparse.Namespace) -> Settings:
    """Settings of the command line, over those of a run that is resumed."""
    base: dict[str, Any] = {}
    if args.resume:
        base = json.loads((Path(args.resume) / "settings.json").read_text()) | {"out": args.resume}
        base["hidden"] = tuple(base["hidden"])
    elif args.smoke:
        base = {"steps": 40_960, "worlds": 64, "eval_every": 5, "eval_worlds": 4, "out": "runs/ppo_smoke"}
    given = {f.name: getattr(args, f.name) for f in dataclasses.fields(Settings)}
    return Settings(**{**base, **{k: v for k, v in given.items() if v is not None}})


def main(argv: list[str] | None = None) -> int:
    """Train as the command line says."""
    args = parse(argv)
    try:
        result = train(settings(args), resume=bool(args.resume), video=args.video)
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise SystemExit("out of memory: use fewer --worlds or a shorter --unroll") from None
    print(json.dumps({"device": jax.devices()[0].device_kind, **result}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
