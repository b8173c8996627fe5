"""Training loop of the PPO and SAC examples: command line, updates, evaluation, log, checkpoints, resume and replay.

An algorithm defines a dataclass of settings, a dataclass `Run` of everything that changes while training (with the
fields `world` and `update`), and a subclass of `Trainer`.
"""

import argparse
import contextlib
import csv
import dataclasses
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from common import POSE
from tqdm import tqdm

import jaxsim
from jaxsim import envs
from jaxsim.xla.cache import use_compile_cache

Array = Any
WIDTHS = ("hidden", "encoder")  # settings that are the widths of layers


class Trainer:
    """Environment, compiled update and compiled evaluation of an algorithm with the settings `s`.

    A subclass defines these four attributes, `start`, `policy` and `_update`.
    """

    Settings: type
    tuned: dict[str, dict[str, Any]]  # settings of a task, by its name
    smoke: Any  # settings of --smoke
    starts: dict[str, dict[str, Any]] = {}  # noqa: RUF012, settings that --tune tries, by name
    memory_remedy: str  # advice when the device is out of memory
    uses_cores = False  # whether an update runs on several devices, of which the settings have the number

    def __init__(self, s: Any, env: Any = None):
        self.s, self.env = s, env or envs.make(s.env)
        self.batch = envs.wrap(self.env, stagger=True)
        self.reset = jaxsim.jit(self.batch.reset)
        self.update = jaxsim.jit(self._update, donate_argnums=0)
        self._episodes = jaxsim.jit(self._evaluate)

    def start(self) -> Any:
        """`Run` before the first update."""
        raise NotImplementedError

    def policy(self, run: Any, obs: Array) -> Array:
        """Actions without exploration noise."""
        raise NotImplementedError

    def _update(self, run: Any) -> tuple[Any, dict[str, Array]]:
        """`Run` after one update, and scalars to log."""
        raise NotImplementedError

    @property
    def steps_per_update(self) -> int:
        """Actions of all worlds in one update."""
        return self.s.worlds * self.s.unroll

    def export(self, run: Any, path: Path) -> None:
        """Write the policy for `jaxsim.envs.load_policy`; nothing unless an algorithm can."""

    def worlds(self, key: Array) -> envs.State:
        """First states of all worlds: one compiled reset, for training and evaluation."""
        return self.reset(jax.random.split(key, self.s.worlds))

    def evaluate(self, run: Any, key: Array) -> dict[str, Array]:
        """Mean and worst return, mean length and mean metrics of one whole episode in each of `eval_worlds` new worlds.

        Without exploration noise: what a policy does with it can be quite another thing.
        """
        return self._episodes(run, jax.tree.map(lambda x: x[: self.s.eval_worlds], self.worlds(key)))

    def _evaluate(self, run: Any, state: envs.State) -> dict[str, Array]:
        step_all = envs.Vectorize(self.env).step  # no resets: one episode is enough

        def step(carry: tuple, _: None) -> tuple[tuple, None]:
            state, alive, total, length, sums = carry
            state = step_all(state, self.policy(run, state.obs))
            total, length = total + alive * state.reward, length + alive
            sums = jax.tree.map(lambda s, x: s + alive * x, sums, state.metrics)
            return (state, alive * (1 - state.done), total, length, sums), None

        zero = jnp.zeros_like(state.reward)
        carry = (state, zero + 1, zero, zero, jax.tree.map(jnp.zeros_like, state.metrics))
        (_, _, total, length, sums), _ = jax.lax.scan(step, carry, None, self.env.config.episode_length)
        means = {f"eval_{name}": x.sum() / length.sum() for name, x in sums.items()}
        return {"eval_return": total.mean(), "eval_worst": total.min(), "eval_length": length.mean(), **means}


def train(
    trainer: Trainer, resume: bool = False, video: bool = False, quiet: bool = False, tensorboard: bool = False
) -> dict[str, float]:
    """Train to `s.steps` actions and write `s.out`; returns the last evaluation with its actions and seconds."""
    s, out, begin = trainer.s, Path(trainer.s.out), time.perf_counter()
    processor = time.process_time()
    out.mkdir(parents=True, exist_ok=True)
    (out / "settings.json").write_text(json.dumps(dataclasses.asdict(s), indent=1))
    run = trainer.start()
    if resume:
        run = restore(run, out / "checkpoints")
    total = -(-s.steps // trainer.steps_per_update)
    first = int(run.update)
    result: dict[str, float] = {}
    evaluation: dict[str, float] = {}
    names = jax.eval_shape(trainer._evaluate, run, run.world)
    unknown = dict.fromkeys(names, float("nan"))
    with (
        events(out if tensorboard else None) as curves,
        open(out / "log.csv", "a" if resume else "w", newline="") as file,
        tqdm(total=total, initial=first, unit="update", disable=quiet, mininterval=1) as bar,
    ):
        writer = None
        for update in range(first + 1, total + 1):
            run, log = trainer.update(run)
            row = {k: round(float(v), 5) for k, v in log.items()}  # waits for the update
            if update == first + 1:
                warm, compiled = time.perf_counter(), update
            if update % s.eval_every == 0 or update == total:
                evaluation = {k: round(float(v), 5) for k, v in trainer.evaluate(run, jax.random.key(update)).items()}
            clock = {"seconds": time.perf_counter() - begin, "processor_seconds": time.process_time() - processor}
            result = {"steps": update * trainer.steps_per_update} | {k: round(v, 2) for k, v in clock.items()} | row
            result |= evaluation or unknown
            if writer is None:
                writer = csv.DictWriter(file, list(result))
                if not resume:
                    writer.writeheader()
            writer.writerow(result)
            file.flush()
            curves(result)
            speed = (update - compiled) * trainer.steps_per_update / max(time.perf_counter() - warm, 1e-9)
            shown = {"reward": result["reward"], "return": result["return"], "length": result["length"]}
            bar.set_postfix({k: f"{v:.3g}" for k, v in shown.items()} | {"actions/s": f"{speed:.0f}"}, refresh=False)
            if update % s.save_every == 0 or update == total:
                save(run, out / "checkpoints", update)
                trainer.export(run, out / "policy.npz")
            bar.update()
    for line in envs.diagnostics(run.world):
        print(f"warning: {line}", file=sys.stderr)
    record(trainer, run, out, video)
    return result


@contextlib.contextmanager
def events(folder: Path | None) -> Iterator[Callable[[dict[str, float]], None]]:
    """Function that writes a row of the log as curves for TensorBoard; it does nothing without a folder."""
    if folder is None:
        yield lambda row: None
        return
    from tensorboardX import SummaryWriter

    with SummaryWriter(str(folder)) as writer:

        def write(row: dict[str, float]) -> None:
            for name, value in row.items():
                if name != "steps" and math.isfinite(value):
                    writer.add_scalar(name, value, int(row["steps"]))
            writer.flush()

        yield write


def save(run: Any, folder: Path, update: int) -> None:
    """Write a checkpoint: every array of the run that has entries, named by its position among the leaves."""
    leaves = {f"{i:05d}": x for i, x in enumerate(jax.tree.leaves(run)) if x.size}
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder.absolute() / f"{update:08d}", leaves, force=True)


def restore(like: Any, folder: Path) -> Any:
    """Run of the last checkpoint in a folder, with the structure of `like`. Raises SystemExit when there is none."""
    found = sorted(p for p in folder.glob("*") if p.name.isdigit())
    if not found:
        raise SystemExit(f"no checkpoint in {folder}")
    leaves, structure = jax.tree.flatten(like)
    with ocp.StandardCheckpointer() as checkpointer:
        saved = checkpointer.restore(found[-1].absolute(), {f"{i:05d}": x for i, x in enumerate(leaves) if x.size})
    return jax.tree.unflatten(structure, [saved.get(f"{i:05d}", x) for i, x in enumerate(leaves)])


def record(trainer: Trainer, run: Any, out: Path, video: bool, nstep: int = 500) -> None:
    """Write `replay.html` of one episode of the policy, and `video.mp4` when `video` is set."""
    from jaxsim.viewer.html import save_html
    from jaxsim.viewer.render import STATE

    env, names = trainer.env, (*STATE, *POSE)
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


def parse(algorithm: type[Trainer], doc: str | None, argv: list[str] | None = None) -> argparse.Namespace:
    """Arguments of the command line, which has an option for each setting."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in dataclasses.fields(algorithm.Settings):
        kind = _integers if field.name in WIDTHS else field.type
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, help=f"default: {field.default}")
    parser.epilog = f"tasks with settings of their own (tuned.py): {', '.join(algorithm.tuned)}"
    parser.add_argument("--resume", metavar="DIR", help="continue the run in this folder")
    parser.add_argument("--tune", action="store_true", help="try a few settings for a tenth of the steps each, first")
    parser.add_argument("--video", action="store_true", help="write an mp4 as well")
    parser.add_argument("--tensorboard", action="store_true", help="write curves for `tensorboard --logdir` as well")
    parser.add_argument("--smoke", action="store_true", help="a run of about a minute, to check the installation")
    return parser.parse_args(argv)


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(x) for x in text.split(","))


def settings(algorithm: type[Trainer], args: argparse.Namespace) -> Any:
    """Settings given on the command line, over those of a resumed run, of `--smoke` or of the task."""
    base = algorithm.tuned.get(args.env or algorithm.Settings.env, {})
    if args.resume:
        base = json.loads((Path(args.resume) / "settings.json").read_text()) | {"out": args.resume}
        base |= {name: tuple(base[name]) for name in WIDTHS if name in base}
    elif args.smoke:
        base = dataclasses.asdict(algorithm.smoke)
    given = {f.name: getattr(args, f.name) for f in dataclasses.fields(algorithm.Settings)}
    return algorithm.Settings(**{**base, **{k: v for k, v in given.items() if v is not None}})


def tune(algorithm: type[Trainer], s: Any, given: set[str]) -> Any:
    """Settings `s` with those of the best start: each is tried for a tenth of the actions, without what is `given`."""
    if not algorithm.starts:
        raise SystemExit("--tune: this trainer has no settings to try; ppo.py has")
    tried = {}
    for name, start in algorithm.starts.items():
        chosen = dataclasses.replace(s, **{k: v for k, v in start.items() if k not in given})
        trial = dataclasses.replace(chosen, steps=max(1, s.steps // 10), out=str(Path(s.out) / "tune" / name))
        score = train(algorithm(trial))["eval_return"]
        print(f"{name}: mean return {score:.4g} after {trial.steps:,} actions ({start})", flush=True)
        tried[name] = (score if math.isfinite(score) else -math.inf), chosen
    best = max(tried, key=lambda name: tried[name][0])
    print(f"going on with the settings of {best}", flush=True)
    return tried[best][1]


def main(algorithm: type[Trainer], doc: str | None, argv: list[str] | None = None) -> int:
    """Train as the command line says, and print the result as JSON; returns the exit status."""
    args = parse(algorithm, doc, argv)
    if argv is None:
        use_compile_cache()
        if algorithm.uses_cores and os.environ.get("JAX_PLATFORMS", "cpu") == "cpu":
            jaxsim.use_cores(settings(algorithm, args).devices or None)  # of no effect where JAX finds a GPU
    sys.path.append(os.getcwd())  # where a module of the user is looked for
    try:
        envs.default_config(settings(algorithm, args).env)
    except (KeyError, ImportError, FileNotFoundError) as error:
        raise SystemExit(f"--env: {error.args[0]}") from None
    try:
        s = settings(algorithm, args)
        if args.tune:
            s = tune(algorithm, s, {f.name for f in dataclasses.fields(s) if getattr(args, f.name) is not None})
        trainer = algorithm(s)
        result = train(trainer, resume=bool(args.resume), video=args.video, tensorboard=args.tensorboard)
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise SystemExit(f"out of memory: {algorithm.memory_remedy}") from None
    print(json.dumps({"device": jax.devices()[0].device_kind, **result}))
    return 0
