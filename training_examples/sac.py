"""SAC in one file: flax, optax, and the whole update (worlds, replay buffer, gradient steps) in one compiled function.

    python training_examples/sac.py --env cartpole_swingup
    python training_examples/sac.py --resume runs/sac
    python training_examples/sac.py --smoke

Writes to `--out`: `log.csv`, checkpoints that resume exactly (the replay buffer included), and `replay.html` of the
policy (with `--video`, an mp4).
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

    env: str = "cartpole_swingup"
    steps: int = 500_000  # actions of all worlds together
    worlds: int = 64
    unroll: int = 4  # actions of one world in an update
    gradients: int = 64  # gradient steps in an update
    batch: int = 256
    buffer: int = 204_800  # transitions; a multiple of worlds x unroll
    warmup: int = 5_000  # actions at random before the first gradient step
    hidden: tuple[int, ...] = (128, 128)
    learning_rate: float = 5e-4
    discount: float = 0.99
    follow: float = 0.005  # share by which the target critics follow in a gradient step
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
    """Two values of an action."""

    hidden: tuple[int, ...]

    @nn.compact
    def __call__(self, obs: Array, action: Array) -> Array:
        def one() -> Array:
            x = jnp.concatenate([obs, action], -1)
            for width in self.hidden:
                x = nn.relu(nn.LayerNorm()(nn.Dense(width)(x)))
            return nn.Dense(1)(x)[..., 0]

        return jnp.stack([one(), one()])


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Run:
    """All that changes while training, worlds and replay buffer included: what a checkpoint holds."""

    params: Any
    target: Any
    optimiser: Any
    moments: Any
    world: envs.State
    memory: dict[str, Array]
    stored: Array
    key: Array
    update: Array


def sample(mean: Array, log_std: Array, key: Array) -> tuple[Array, Array]:
    """An action in (-1, 1) and its log density."""
    noise = jax.random.normal(key, mean.shape, mean.dtype)
    before = mean + jnp.exp(log_std) * noise
    density = -0.5 * noise**2 - log_std - 0.5 * jnp.log(2 * jnp.pi)
    density -= 2 * (jnp.log(2.0) - before - nn.softplus(-2 * before))  # of the tanh
    return jnp.tanh(before), density.sum(-1)


class Trainer:
    """The environment, the networks and the compiled update; the state of a run is a `Run`."""

    def __init__(self, s: Settings):
        if s.buffer % (s.worlds * s.unroll):
            raise SystemExit(f"buffer = {s.buffer} must be a multiple of worlds x unroll = {s.worlds * s.unroll}")
        self.s, self.env = s, envs.make(s.env)
        self.batch = envs.wrap(self.env, stagger=True)
        self.actor, self.critics = Actor(self.env.action_size, s.hidden), Critics(s.hidden)
        self.tx = optax.adam(s.learning_rate)
        self.update = jaxsim.jit(self._update, donate_argnums=0)
        self.evaluate = jaxsim.jit(self._evaluate)

    @property
    def steps_per_update(self) -> int:
        """Actions of all worlds in one update."""
        return self.s.worlds * self.s.unroll

    @partial(jax.jit, static_argnums=0)
    def start(self) -> Run:
        """A new run."""
        s = self.s
        actor, critics, world, key = jax.random.split(jax.random.PRNGKey(s.seed), 4)
        state = self.batch.reset(jax.random.split(world, s.worlds))
        obs, action = state.obs, jnp.zeros((s.worlds, self.env.action_size), state.obs.dtype)
        zero = jnp.zeros_like(obs[0])
        moments = update_moments({"count": jnp.zeros(()), "mean": zero, "square": zero}, obs)
        params = {
            "actor": self.actor.init(actor, obs),
            "critics": self.critics.init(critics, obs, action),
            "log_temperature": jnp.log(jnp.asarray(s.first_temperature, obs.dtype)),
        }
        row = {"obs": obs, "action": action, "reward": state.reward, "terminal": state.done, "next": obs}
        memory = jax.tree.map(lambda x: jnp.zeros((s.buffer, *x.shape[1:]), x.dtype), row)
        none = jnp.zeros((), jnp.int32)
        target = jax.tree.map(jnp.copy, params["critics"])
        return Run(params, target, self.tx.init(params), moments, state, memory, none, key, none)

    def _update(self, run: Run) -> tuple[Run, dict[str, Array]]:
        s = self.s
        key, act, learn = jax.random.split(run.key, 3)
        warm = run.stored < s.warmup

        def step(state: envs.State, key: Array) -> tuple[envs.State, dict[str, Array]]:
            draw, blind = jax.random.split(key)
            mean, log_std = self.actor.apply(run.params["actor"], normalize(run.moments, state.obs))
            action = sample(mean, log_std, draw)[0]
            action = jnp.where(warm, jax.random.uniform(blind, action.shape, action.dtype, -1, 1), action)
            new = self.batch.step(state, action)
            row = {"obs": state.obs, "action": action, "reward": s.reward_scale * new.reward}
            row |= {"terminal": new.done * (1 - new.info["truncation"]), "next": new.info["final_obs"]}
            return new, row

        world, rows = jax.lax.scan(step, run.world, jax.random.split(act, s.unroll))
        rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)
        place = run.stored % s.buffer
        memory = jax.tree.map(lambda m, x: jax.lax.dynamic_update_slice_in_dim(m, x, place, 0), run.memory, rows)
        moments = update_moments(run.moments, rows["obs"])
        stored = run.stored + self.steps_per_update

        def descend(carry: tuple, key: Array) -> tuple[tuple, dict[str, Array]]:
            pick, noise = jax.random.split(key)
            index = jax.random.randint(pick, (s.batch,), 0, jnp.minimum(stored, s.buffer))
            batch = jax.tree.map(lambda x: x[index], memory)
            batch |= {k: normalize(moments, batch[k]) for k in ("obs", "next")}
            return self._descend(carry, batch, noise)

        def learning(carry: tuple) -> tuple:
            carry, losses = jax.lax.scan(descend, carry, jax.random.split(learn, s.gradients))
            return carry, jax.tree.map(jnp.mean, losses)

        carry = (run.params, run.target, run.optimiser)
        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(learning, carry)[1])
        carry, log = jax.lax.cond(warm, lambda c: (c, nothing), learning, carry)
        log |= {
            "reward": rows["reward"].mean() / s.reward_scale,
            "return": world.info["episode_return"].mean(),
            "length": world.info["episode_length"].mean(),
            "diverged": world.info["diverged"].sum(),
        }
        return Run(*carry, moments, world, memory, stored, key, run.update + 1), log

    def _descend(self, carry: tuple, batch: dict[str, Array], key: Array) -> tuple[tuple, dict[str, Array]]:
        params, target, optimiser = carry
        (_, log), grad = jax.value_and_grad(self._loss, has_aux=True)(params, target, batch, key)
        change, optimiser = self.tx.update(grad, optimiser, params)
        params = optax.apply_updates(params, change)
        target = optax.incremental_update(params["critics"], target, self.s.follow)
        return (params, target, optimiser), log

    def _loss(self, params: Any, target: Any, batch: dict[str, Array], key: Array) -> tuple[Array, dict[str, Array]]:
        """Losses of critics, actor and temperature together: each parameter is reached by its own only."""
        s, fixed = self.s, jax.lax.stop_gradient
        here, there = jax.random.split(key)
        temperature = fixed(jnp.exp(params["log_temperature"]))
        action, density = sample(*self.actor.apply(fixed(params["actor"]), batch["next"]), there)
        after = self.critics.apply(target, batch["next"], action).min(0) - temperature * density
        goal = fixed(batch["reward"] + s.discount * (1 - batch["terminal"]) * after)
        critic = jnp.square(self.critics.apply(params["critics"], batch["obs"], batch["action"]) - goal).sum(0).mean()
        action, density = sample(*self.actor.apply(params["actor"], batch["obs"]), here)
        value = self.critics.apply(fixed(params["critics"]), batch["obs"], action).min(0)
        actor = (temperature * density - value).mean()
        surplus = fixed(density.mean() - self.env.action_size)  # wanted: an entropy of minus the number of actions
        heat = -params["log_temperature"] * surplus
        log = {"critic_loss": critic, "actor_loss": actor, "temperature": temperature, "value": value.mean()}
        return critic + actor + heat, log

    def policy(self, run: Run, obs: Array) -> Array:
        """The action without noise."""
        return jnp.tanh(self.actor.apply(run.params["actor"], normalize(run.moments, obs))[0])

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
        base = {"steps": 12_800, "eval_every": 25, "eval_worlds": 4, "warmup": 2_000, "gradients": 16}
        base |= {"batch": 64, "buffer": 51_200, "out": "runs/sac_smoke"}
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
        raise SystemExit("out of memory: use fewer --worlds or a smaller --buffer") from None
    print(json.dumps({"device": jax.devices()[0].device_kind, **result}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
