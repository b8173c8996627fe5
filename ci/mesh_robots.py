"""Print the speed of the models that are made of convex meshes, beside MuJoCo's in C, as a Markdown table.

    python ci/mesh_robots.py [--models NAME ...] [--nworld 64] [--nstep 100] [--json figures.json]

All figures come from one run. Every world starts from the first keyframe: positions and velocities differ from it by
normal noise, controls by a fraction of uniform draws. jaxsim, in float32, and MuJoCo's rollout start from the same
states with the same controls, and use all cores that the process may use. Compile times count tracing too.
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.tools import bench, peers

ROOT = Path(__file__).resolve().parent.parent
MODELS = ("arm_capsules", "arm_hulls", "arm_table", "hand_hulls", "quadruped_hulls", "kitchen")
PAIR = ("arm_hulls", "arm_capsules")  # the same arm of hulls and of capsules
COLUMNS = ("contacts", "jaxsim, 1 world", "jaxsim, {n} worlds", "C, 1 world", "C, {n} worlds, 1 thread")
COLUMNS += (
    "C, {n} worlds, {cores} threads",
    "over C, 1 world",
    "over C, {n} worlds",
    "compile, 1 world",
    "compile, {n}",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--nworld", type=int, default=64, help="number of worlds of the batch (default: 64)")
    parser.add_argument("--nstep", type=int, default=100, help="number of steps of one measurement (default: 100)")
    parser.add_argument("--spread", type=float, default=1e-4, help="noise of positions and velocities (default: 1e-4)")
    parser.add_argument("--noise", type=float, default=0.02, help="random fraction of the controls (default: 0.02)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peer-timeout", type=float, default=300.0, help="time limit of MuJoCo in seconds")
    parser.add_argument("--json", type=Path, help="write all figures to this file, after every model")
    args = parser.parse_args()
    jaxsim.use_cores()
    jax.config.update("jax_enable_compilation_cache", False)  # compilation is measured

    report: dict[str, Any] = {"machine": bench.describe_machine(), "models": {}}
    cores = report["machine"]["cores"]
    columns = [c.format(n=args.nworld, cores=cores) for c in COLUMNS if cores > 1 or "cores" not in c]
    print(f"steps per second, {report['machine']['precision']}, {report['machine']['processor']}, {cores} cores\n")
    print("| model | " + " | ".join(columns) + " |\n| --- |" + " --- |" * len(columns), flush=True)
    for name in args.models:
        report["models"][name] = measure(name, args)
        print(row(name, report["models"][name], cores), flush=True)
        report["over_capsules"] = over_capsules(report["models"])
        if args.json:
            args.json.write_text(bench.to_json(report) + "\n", encoding="utf-8")
    if report["over_capsules"]:
        parts = [f"{what} {ratio:.2f}" for what, ratio in report["over_capsules"].items()]
        print(f"\ntime of a step, {PAIR[0]} over {PAIR[1]}: " + ", ".join(parts))


def measure(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Figures of one model: sizes, `one_world` and `batch` of jaxsim, MuJoCo's figures and the ratios to them."""
    path = ROOT / "models" / f"{name}.xml"
    with progress(name, "load"):
        m = jaxsim.load_model(path)
    settings = bench.BenchSettings(
        path=str(path),
        nworld=(args.nworld,),
        nstep=args.nstep,
        keyframe=0,
        settle=0,
        noise=args.noise,
        seed=args.seed,
        peer_timeout=args.peer_timeout,
    )
    start = spread(m, bench.prepare(m, settings, args.nworld), args)
    found: dict[str, Any] = {"settings": vars(args) | {"json": None}, "nv": m.nv, "ngeom": m.ngeom}
    found |= {"max_contacts": m.max_contacts, "max_constraints": m.max_constraints}
    for what, d in (("one_world", jax.tree.map(lambda x: x[0], start)), ("batch", start)):
        with progress(name, "jaxsim, one world" if what == "one_world" else f"jaxsim, {args.nworld} worlds"):
            jax.clear_caches()
            found[what] = bench.speed(m, d, args.nstep)
    with progress(name, "MuJoCo"):
        found["mujoco"] = peers.measure("mujoco", settings, start)
    theirs = found["mujoco"]
    if "refused" not in theirs:
        found["over_mujoco"] = {what: found[what]["steps_per_s"] / theirs[what] for what in ("one_world", "batch")}
    return found


def spread(m: jaxsim.Model, d: jaxsim.Data, args: argparse.Namespace) -> jaxsim.Data:
    """Batch of states with noise of `args.spread` (metres, radians, and those per second) on every dof."""
    rng = np.random.default_rng(args.seed)
    dq, dv = jnp.asarray(args.spread * rng.standard_normal((2, *d.qvel.shape)), d.qvel.dtype)
    qpos = jax.vmap(lambda q, v: jaxsim.integrate_pos(m, q, v, 1.0))(d.qpos, dq)
    return jax.block_until_ready(d.replace(qpos=qpos, qvel=d.qvel + dv))


@contextlib.contextmanager
def progress(name: str, what: str) -> Iterator[None]:
    """A line on stderr with the seconds that a measurement took, compilation included."""
    begin = time.perf_counter()
    print(f"{name}: {what} ...", end=" ", file=sys.stderr, flush=True)
    yield
    print(f"{time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)


def row(name: str, found: dict[str, Any], cores: int) -> str:
    """Line of the table: steps per second, ratios of jaxsim's to MuJoCo's, seconds of compilation."""
    one, batch, theirs = found["one_world"], found["batch"], found["mujoco"]
    if "refused" in theirs:
        speeds, ratios = ["-"] * (2 + (cores > 1)), ["-", "-"]
    else:
        speeds = [per_second(r) for r in theirs["rows"]]
        ratios = [f"{found['over_mujoco'][what]:.3g}" for what in ("one_world", "batch")]
    own = [per_second(x) for x in (one, batch)]
    compiled = [f"{x['compile_s']:.1f} s" for x in (one, batch)]
    return f"| {name} | " + " | ".join([f"{batch['mean_ncon']:.1f}", *own, *speeds, *ratios, *compiled]) + " |"


def per_second(found: dict[str, Any]) -> str:
    """Steps per second, of three digits where they are few."""
    return f"{found['steps_per_s']:,.0f}" if found["steps_per_s"] >= 100 else f"{found['steps_per_s']:.3g}"


def over_capsules(models: dict[str, Any]) -> dict[str, float]:
    """Time of a step of the arm of hulls over that of the arm of capsules; empty unless both were measured."""
    if not set(PAIR) <= set(models):
        return {}
    hulls, capsules = (models[name] for name in PAIR)
    found = {what: capsules[what]["steps_per_s"] / hulls[what]["steps_per_s"] for what in ("one_world", "batch")}
    if "refused" not in hulls["mujoco"] and "refused" not in capsules["mujoco"]:
        found |= {f"{what} in C": capsules["mujoco"][what] / hulls["mujoco"][what] for what in ("one_world", "batch")}
    return found


if __name__ == "__main__":
    main()
