"""Learn a task with several seeds and report it: a table, curves, a replay page and a short video of the best policy.

    python training_examples/learn.py ant_run
    python training_examples/learn.py quadruped_locomotion --trainer shac --seeds 0 1 2
    python training_examples/learn.py humanoid_walk --cores 1     # one core for each seed, all seeds at a time

Settings and goal of the task are those of `tuned.py`. Each seed is a run of the trainer in its own folder; runs that
are there already are taken as they are, or resumed. Writes report.md, curve.svg, replay.html, video.webp and policy.npz
to runs/<task>_<trainer>.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from plot_runs import columns, plot
from tuned import GOALS
from watch import camera_of, episodes

from jaxsim import envs
from jaxsim.viewer.html import save_html
from jaxsim.viewer.render import STATE, render
from jaxsim.xla.cache import use_compile_cache

HERE = Path(__file__).resolve().parent


def train(task: str, trainer: str, seed: int, folder: Path, cores: int | None) -> subprocess.Popen | None:
    """Start a run of the trainer, or go on with one; None where it is complete."""
    command = [sys.executable, str(HERE / f"{trainer}.py")]
    settings = folder / "settings.json"
    if not settings.is_file() or not any((folder / "checkpoints").glob("[0-9]*")):
        command += ["--env", task, "--seed", str(seed), "--out", str(folder)]
    elif columns(folder, ["steps"])["steps"][-1] >= json.loads(settings.read_text())["steps"]:
        return None
    else:
        command += ["--resume", str(folder)]
    if cores:
        available = sorted(os.sched_getaffinity(0))
        own = [available[(seed * cores + i) % len(available)] for i in range(cores)]
        command = ["taskset", "-c", ",".join(map(str, own)), *command]
    return subprocess.Popen(command)


def reached(folder: Path, metric: str, goal: float) -> tuple[float, float, float] | None:
    """Actions, seconds and processor seconds after which the mean of ten updates is at the goal; None if never."""
    log = columns(folder, ["steps", "seconds", "processor_seconds", metric], window=10)
    good = np.flatnonzero(log[metric] >= goal)
    return tuple(log[name][good[0]] for name in ("steps", "seconds", "processor_seconds")) if len(good) else None


def row(task: str, seed: int, folder: Path, score: dict[str, float]) -> str:
    """Row of the table of a report: when the goal was reached in training, and how the last policy does."""
    metric, goal = GOALS[task]
    log = columns(folder, ["steps", "seconds", "processor_seconds"])
    found = reached(folder, metric, goal)
    when = f"{found[0] / 1e6:.2f} million, {found[1]:.0f} s, {found[2]:.0f} s" if found else "not reached"
    whole = f"{log['steps'][-1] / 1e6:.2f} million, {log['seconds'][-1]:.0f} s, {log['processor_seconds'][-1]:.0f} s"
    return f"| {seed} | {when} | {whole} | {score[metric]:.3g} | {score['whole']:.0%} |"


def judge(env: envs.Env, policy: envs.Policy, worlds: int = 64) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Mean metrics and share of whole episodes of a policy without noise, and the poses of its first episode."""
    nstep = env.config.episode_length
    going, metrics, frames = episodes(env, policy, worlds, nstep, seed=1)
    score = {name: float((going * x).sum() / going.sum()) for name, x in metrics.items()}
    score["whole"] = float(going[-1].mean())
    return score, {name: x[: int(going[:, 0].sum())] for name, x in frames.items()}


def video(env: envs.Env, frames: dict[str, np.ndarray], path: Path, seconds: float = 4.0, fps: float = 20.0) -> None:
    """Write a small animated picture of the beginning of an episode, as it is seen by the camera that follows it."""
    from PIL import Image

    every = max(1, round(1 / (fps * env.dt)))
    count = min(len(frames["qpos"]) // every, round(seconds * fps))
    shown = {name: frames[name][: count * every : every] for name in STATE}
    images = [Image.fromarray(x).resize((320, 240)) for x in render(env.model, shown, camera_of(env.model))]
    step = round(1000 * every * env.dt)
    images[0].save(path, save_all=True, append_images=images[1:], duration=step, loop=0, quality=50, method=4)


def report(task: str, trainer: str, folders: dict[int, Path], out: Path) -> None:
    """Write the report of runs that are complete."""
    metric, goal = GOALS[task]
    env = envs.make(task)
    judged = {seed: judge(env, envs.load_policy(folder / "policy.npz")) for seed, folder in folders.items()}
    best = max(judged, key=lambda seed: judged[seed][0]["reward"] * judged[seed][0]["whole"])
    command = f"python training_examples/learn.py {task}" + (f" --trainer {trainer}" if trainer != "ppo" else "")
    lines = [
        f"`{command}`: {metric} of {goal:g}.",
        "",
        "| seed | goal reached (actions, clock, processor) | whole run | policy at the end | whole episodes |",
        "| --- | --- | --- | --- | --- |",
        *(row(task, seed, folder, judged[seed][0]) for seed, folder in folders.items()),
    ]
    (out / "report.md").write_text("\n".join(lines) + "\n")
    plot({trainer.upper(): list(folders.values())}, metric, out / "curve.svg")
    frames = judged[best][1]
    save_html(env.model, {name: x[:500] for name, x in frames.items()}, out / "replay.html", title=task)
    video(env, frames, out / "video.webp")
    shutil.copy(folders[best] / "policy.npz", out / "policy.npz")
    print("\n".join(lines))


def main() -> None:
    """Learn as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=GOALS, metavar="task", help=", ".join(GOALS))
    parser.add_argument("--trainer", choices=["ppo", "shac", "distil"], default="ppo")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--cores", type=int, help="cores of a run, and all runs at a time; one after the other without")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    args = parser.parse_args()
    use_compile_cache()
    out = args.out / f"{args.task}_{args.trainer}"
    folders = {seed: out / f"seed{seed}" for seed in args.seeds}
    running = []
    for seed, folder in folders.items():
        run = train(args.task, args.trainer, seed, folder, args.cores)
        running += [run] if run else []
        if run and not args.cores and run.wait():
            raise SystemExit(f"the run of seed {seed} failed")
    if any([run.wait() for run in running]):
        raise SystemExit("a run failed")
    report(args.task, args.trainer, folders, out)


if __name__ == "__main__":
    main()
