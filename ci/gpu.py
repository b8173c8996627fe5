"""What a machine with a GPU has to show, in pieces, each of which can be repeated alone.

    python ci/gpu.py                          all pieces
    python ci/gpu.py step grad                these alone
    python ci/gpu.py step:humanoid            of a piece, one model
    python ci/gpu.py --list

Pieces of each model, in single precision: `parity` (accelerations against MuJoCo's), `step` and `grad` (times of a
step and of its gradient, and of each kernel; whether two runs are equal bit by bit), `plain` and `plaingrad` (native
programs beside XLA's: answers and speed), `bench` (`jaxsim bench` against mjx and mjwarp), and `tests` (one a file).
Each piece is a process of its own with a time limit; `--jobs` of them compile at once, and take turns to measure.
Results go to a JSON file, where a repeated piece replaces its old result; a table of all in it is printed at the end,
and the exit status is the number of pieces of this run that failed. Without a GPU everything runs on the CPU, and the
table says so; `--small` makes it seconds.
"""

import argparse
import contextlib
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 480.0  # s
TESTS = ("engine/solver/test_kernel", "native/test_matrices", "native/test_pool", "engine/step/test_forward")
TESTS += ("engine/collision/test_driver", "engine/test_gradients", "parallel/test_batching")
ROBOTS = ("humanoid", "quadruped", "hand", "mesh_gripper")
MODELS = {
    "parity": (*ROBOTS, "quadruped_rough"),
    "step": (*ROBOTS, "quadruped_rough", "arm_hulls", "hopper", "thirty_boxes"),
    "grad": (*ROBOTS, "hopper"),
    "plain": ("humanoid", "quadruped", "hand"),
    "plaingrad": ("humanoid", "quadruped"),
    "bench": ROBOTS,
}
WORLDS = {"thirty_boxes": 1024}  # at most


class Platform(NamedTuple):
    """What is measured on a kind of device: the script, its pieces, worlds, other simulators, and whose kernels."""

    name: str
    script: str
    models: dict[str, tuple[str, ...]]
    tests: tuple[str, ...]
    nworld: int
    against: str
    line: str  # of a profile, which lists the kernels

    def missing(self) -> list[str]:
        """Tests and models that the script names and that do not exist."""
        named = [test_path(x) for x in self.tests]
        named += [f"models/{x}.xml" for models in self.models.values() for x in models]
        return [x for x in dict.fromkeys(named) if not (ROOT / x).is_file()]


GPU = Platform("gpu", __file__, MODELS, TESTS, 8192, "mjx,mjwarp", "Stream")
PARITY = 2e-3  # largest difference of qacc after a settled state, of its largest entry, in single precision
EQUAL = 1e-2  # median over worlds of the largest difference of a native program's answer from XLA's, of its largest
KERNELS = 16  # of a program that are listed, by time
Figures = dict[str, Any]
Tree = Any  # of arrays


def test_path(name: str) -> str:
    """The file of tests of a piece."""
    return f"tests/{name}.py"


def all_pieces(args: argparse.Namespace) -> list[str]:
    """Names of pieces: kind and subject."""
    found = [f"{kind}:{x}" for kind, models in args.platform.models.items() for x in (args.models or models)]
    return found + [f"tests:{path}" for path in args.platform.tests]


def chosen(args: argparse.Namespace) -> list[str]:
    """The pieces that the command line names."""
    every = all_pieces(args)
    if not args.pieces:
        return every
    unknown = [p for p in args.pieces if p not in every and not any(x.split(":")[0] == p for x in every)]
    if unknown:
        raise SystemExit(f"no such piece: {', '.join(unknown)}; see --list")
    return [x for x in every if x in args.pieces or x.split(":")[0] in args.pieces]


def model_path(name: str) -> str:
    """The file of a model of this repository, or a path."""
    own = ROOT / "models" / f"{name}.xml"
    return str(own if own.exists() else name)


def command_of(piece: str, args: argparse.Namespace, out: str) -> list[str]:
    """The process of a piece, which writes its figures to `out`."""
    kind, subject = piece.split(":", 1)
    if kind == "tests":
        return [sys.executable, "-m", "pytest", "-q", "-n", "0", test_path(subject)]
    if kind == "bench":
        command = [sys.executable, "-m", "jaxsim", "bench", model_path(subject), "--nworld", str(args.nworld)]
        command += ["--nstep", str(args.nstep), "--json", out, *(["--against", args.against] if args.against else [])]
        return command
    own = [sys.executable, args.platform.script, "--inside", piece, "--out", out, "--turn", str(args.turn)]
    return [*own, "--nworld", str(args.nworld), "--nstep", str(args.nstep)]


def run(piece: str, args: argparse.Namespace) -> Figures:
    """The result of a piece: its status, the end of its output, its figures."""
    begin = time.perf_counter()
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    alone = turn(args) if piece.startswith("bench:") else contextlib.nullcontext()  # which takes no turns by itself
    with alone, tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        try:
            command = command_of(piece, args, str(out))
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=args.limit, env=environment
            )
            status, text = done.returncode, (done.stdout + done.stderr).strip()
        except subprocess.TimeoutExpired as error:
            said = error.stderr or b""
            status, text = 124, f"{said.decode(errors='replace')}\ntook longer than {args.limit:.0f} s"
        figures = json.loads(out.read_text(encoding="utf-8")) if out.exists() else None
    return {"status": status, "seconds": time.perf_counter() - begin, "output": text[-3000:], "figures": figures}


@contextlib.contextmanager
def turn(args: argparse.Namespace) -> Iterator[None]:
    """Wait until no other piece measures."""
    with open(args.turn, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def settled(subject: str, args: argparse.Namespace) -> tuple[Any, Any, Callable[[Tree, Tree], Tree], float]:
    """The model, worlds after `nstep` steps with controls of their own, the program of the steps, its compile time."""
    import jaxsim
    from jaxsim.tools import bench

    m = jaxsim.load_model(model_path(subject))
    nworld = min(args.nworld, WORLDS.get(subject, args.nworld))
    d = bench.prepare(m, bench.BenchSettings(model_path(subject), (nworld,), settle=0), nworld)
    program, seconds = rollout(m, d, args)
    with turn(args):
        return m, program(m, d), program, seconds


def rollout(m: Any, d: Any, args: argparse.Namespace) -> tuple[Callable[[Tree, Tree], Tree], float]:
    """The program of `nstep` steps, and the seconds to compile it."""
    import jax

    import jaxsim

    def advance(m: Any, d: Any) -> Any:
        return jax.lax.scan(lambda d, _: (jax.vmap(jaxsim.step, (None, 0))(m, d), None), d, None, length=args.nstep)[0]

    begin = time.perf_counter()
    program = jax.jit(advance).lower(m, d).compile()
    return program, time.perf_counter() - begin


def measured(program: Callable[[], Tree], times: int, args: argparse.Namespace) -> Figures:
    """Milliseconds of a program, of each of its kernels, and whether two runs are equal; all of one of `times`."""
    import jax

    from jaxsim.tools.timing import best_time

    with turn(args):
        same, finite = jax.tree.map(float, jax.jit(compared)(program(), program()))
        seconds = best_time(program)
        kernels, told = kernel_times(program, times, args.platform)
    stats = jax.devices()[0].memory_stats() or {}
    found = {"ms": 1e3 * seconds / times, "bitwise": same == 1, "finite": finite, "kernels": kernels, "event": told}
    return found | {"peak_mb": stats.get("peak_bytes_in_use", 0) / 1e6}


def compared(first: Tree, second: Tree) -> tuple[Any, Any]:
    """Whether two results are equal, and the share of finite numbers: on the device, since copies take seconds."""
    import jax
    import jax.numpy as jnp

    x, y = jax.tree.leaves(first), jax.tree.leaves(second)
    same = jnp.array([jnp.array_equal(a, b, equal_nan=True) for a, b in zip(x, y, strict=True)]).all()
    real = [a for a in x if a.dtype.kind == "f" and a.size]
    lost = sum(jnp.sum(~jnp.isfinite(a), dtype=jnp.float32) for a in real)
    return same, 1 - lost / sum(a.size for a in real)


def kernel_times(program: Callable[[], Tree], times: int, platform: Platform) -> tuple[list[list[Any]], str]:
    """Microseconds and launches of each kernel, of one of `times`, with its name; and what one event says."""
    import jax

    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(program())
        files = sorted(Path(folder).rglob("*.xplane.pb"))
        planes = list(jax.profiler.ProfileData.from_file(str(files[-1])).planes) if files else []
        spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
        told = ""
        mine = (p for p in planes if f"/device:{platform.name.upper()}" in p.name)
        for line in (line for p in mine for line in p.lines if platform.line in line.name):
            for event in line.events:
                stats = dict(event.stats)
                name = f"{event.name} {str(stats.get('kernel_details', '')).split(' occ')[0]}".strip()
                spent[name][0] += event.duration_ns / 1e3 / times
                spent[name][1] += 1 / times
                told = told or f"{line.name}: {event.name} {stats}"[:600]
    listed = sorted(([us, count, name[:120]] for name, (us, count) in spent.items()), reverse=True)
    return [*listed[:KERNELS], [sum(x[0] for x in listed), sum(x[1] for x in listed), "all"]], told


def step(subject: str, args: argparse.Namespace) -> Figures:
    """Times of a step within a rollout, and what it computes."""
    import numpy as np

    m, d, program, seconds = settled(subject, args)
    found = {"nworld": d.time.size, "compile_s": seconds} | measured(lambda: program(m, d), args.nstep, args)
    last = program(m, d)
    found |= {name: float(np.mean(np.asarray(getattr(last, name)))) for name in ("ncon", "nefc", "solver_niter")}
    return found | {"dropped": int(np.sum(last.overflow_contacts)), "us_world": 1e3 * found["ms"] / d.time.size}


def grad(subject: str, args: argparse.Namespace) -> Figures:
    """Times of the gradient of a scalar of the next state."""
    m, d, *_ = settled(subject, args)
    begin = time.perf_counter()
    program = gradient(m, d)
    found = {"nworld": d.time.size, "compile_s": time.perf_counter() - begin} | measured(program, 1, args)
    return found | {"us_world": 1e3 * found["ms"] / d.time.size}


def gradient(m: Any, d: Any) -> Callable[[], Tree]:
    """The gradient, compiled: of a sum of squares of the next state in the state and the controls, of all worlds."""
    import jax
    import jax.numpy as jnp

    import jaxsim

    def loss(given: Tree, d: Any) -> Any:
        out = jaxsim.step(m, d.replace(**given))
        return jnp.sum(out.qpos**2) + jnp.sum(out.qvel**2)

    given = {name: getattr(d, name) for name in ("qpos", "qvel", "ctrl")}
    program = jax.jit(jax.vmap(jax.grad(loss))).lower(given, d).compile()
    return lambda: program(given, d)


def plain(subject: str, args: argparse.Namespace) -> Figures:
    """The native program of a step beside XLA's: accelerations, and times."""
    import jax

    import jaxsim

    m, d, *_ = settled(subject, args)
    forms = [m.replace(opt=m.opt.replace(backend=b)) for b in ("xla", "native")]
    forward = jax.jit(jax.vmap(lambda m, d: jaxsim.forward(m, d).qacc, (None, 0)))
    accelerations = [forward.lower(x, d).compile() for x in forms]
    with turn(args):
        found = differences(*(run(x, d) for run, x in zip(accelerations, forms, strict=True)))
    programs = [(x, rollout(x, d, args)[0]) for x in forms]
    times = [measured(lambda p=p, x=x: p(x, d), args.nstep, args)["ms"] for x, p in programs]
    return found | {"ms": times}


def plaingrad(subject: str, args: argparse.Namespace) -> Figures:
    """The native program of a gradient beside XLA's: answers, and times."""
    import jax
    import jax.numpy as jnp

    m, d, *_ = settled(subject, args)
    programs = [gradient(m.replace(opt=m.opt.replace(backend=b)), d) for b in ("xla", "native")]
    with turn(args):
        want, got = (jax.tree.leaves(program()) for program in programs)
    found = differences(*(jnp.concatenate([x.reshape(x.shape[0], -1) for x in every], 1) for every in (want, got)))
    return found | {"ms": [measured(program, 1, args)["ms"] for program in programs]}


def differences(want: Any, got: Any) -> Figures:
    """Median, 99th percentile and largest, over worlds, of the largest difference of its largest entry."""
    import numpy as np

    want, got = np.asarray(want, np.float64), np.asarray(got, np.float64)
    found = np.abs(got - want).max(1) / np.maximum(1, np.abs(want).max(1))
    parts = {"median": float(np.median(found)), "p99": float(np.quantile(found, 0.99)), "most": float(found.max())}
    return parts | {"wanted": EQUAL}


def parity(subject: str, args: argparse.Namespace) -> Figures:
    """Accelerations of settled states in single precision, against MuJoCo's of the same states in double precision."""
    import jax
    import mujoco
    import numpy as np

    import jaxsim

    m, reference = jaxsim.load_model(model_path(subject)), mujoco.MjModel.from_xml_path(model_path(subject))
    moving, settled = mujoco.MjData(reference), mujoco.MjData(reference)
    names, states, want = ("qpos", "qvel", "act", "qacc_warmstart"), [], []
    for _ in range(min(4, args.nworld)):
        mujoco.mj_step(reference, moving, 10 * args.nstep)
        states.append([np.array(getattr(moving, name), np.float32) for name in names])
        for name, x in zip(names, states[-1], strict=True):
            getattr(settled, name)[:] = x
        mujoco.mj_forward(reference, settled)
        want.append(np.array(settled.qacc))
    given = dict(zip(names, map(np.stack, zip(*states, strict=True)), strict=True))

    def acceleration(m: Any, given: Any) -> Any:
        return jaxsim.forward(m, jaxsim.make_data(m).replace(**given)).qacc

    got = jax.jit(jax.vmap(acceleration, in_axes=(None, 0)))(m, given)
    return differences(np.stack(want), got) | {"wanted": PARITY}


INSIDE = {"parity": parity, "step": step, "grad": grad, "plain": plain, "plaingrad": plaingrad}


def line(piece: str, result: Figures) -> str:
    """A line of the table."""
    figures = result["figures"]
    kind = piece.split(":")[0]
    if result["status"] or figures is None:
        shown = (result["output"].splitlines() or ["no output"])[-1][:300]
    elif kind in INSIDE:
        listed = {k: v for k, v in figures.items() if k not in ("kernels", "event")}
        shown = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in listed.items())
    else:
        shown = _speeds(figures)
    took = f"{result['seconds']:.0f} s" if "seconds" in result else ""  # results of older versions have none
    return f"| {piece} | {'failed' if result['status'] else 'passed'} | {took} | {shown} |"


def _speeds(figures: Figures) -> str:
    """Best speeds of all simulators in a report of `jaxsim bench`."""
    best = max(figures["jaxsim"]["batches"], key=lambda b: b["steps_per_s"])
    found = [f"jaxsim {best['steps_per_s']:,.0f} steps/s ({best['nworld']} worlds)"]
    for name, own in figures.get("peers", {}).items():
        found.append(f"{name} {own['batch']:,.0f}" if "batch" in own else f"{name}: {own.get('refused')}")
    return ", ".join(found)


def inside(args: argparse.Namespace) -> int:
    """Run a piece of this script in this process; 1 if it is not what is wanted."""
    kind, subject = args.inside.split(":", 1)
    found = INSIDE[kind](subject, args)
    args.out.write_text(json.dumps(found), encoding="utf-8")
    print(json.dumps(found))
    return int(("wanted" in found and not found["median"] <= found["wanted"]) or found.get("finite", 1) < 1)


def device() -> str:
    """The device that JAX takes in a new process."""
    code = "import jax; d = jax.devices()[0]; print(d.platform, d.device_kind, jax.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    return (done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]])[-1]


def main(platform: Platform = GPU, text: str | None = __doc__) -> int:
    """Run the command line and return the number of pieces that failed."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pieces", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--models", nargs="*", help="instead of the models of each piece: names or files")
    parser.add_argument("--nworld", type=int, default=platform.nworld)
    parser.add_argument("--nstep", type=int, default=100)
    parser.add_argument("--small", action="store_true", help="2 worlds, 2 steps: whether the pieces work")
    parser.add_argument("--against", default=platform.against)
    parser.add_argument("--jobs", type=int, default=1, help="pieces at a time; they take turns to measure")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of a piece")
    parser.add_argument("--out", type=Path, default=Path(f"{platform.name}.json"))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--turn", default=Path(tempfile.gettempdir()) / "jaxsim_gpu_turn", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.platform = platform
    if missing := platform.missing():
        raise SystemExit(f"this script names what does not exist: {', '.join(missing)}")
    if args.small:
        args.nworld = args.nstep = 2
    if args.inside:
        return inside(args)
    pieces = chosen(args)
    if args.list:
        print("\n".join(pieces))
        return 0
    report = json.loads(args.out.read_text(encoding="utf-8")) if args.out.exists() else {"pieces": {}}
    report["device"] = device()
    lock = threading.Lock()
    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(lambda piece: note(piece, args, report, lock), pieces))
    if not report["device"].startswith(platform.name):
        print(f"no {platform.name.upper()} found: these figures are of {report['device']}")
    print("| piece | result | time | figures |\n| --- | --- | --- | --- |")
    print("\n".join(line(p, r) for p, r in report["pieces"].items()))
    failed = [p for p in pieces if report["pieces"][p]["status"]]
    print(f"figures: {args.out}; failed: {', '.join(failed) or 'nothing'}")
    return len(failed)


def note(piece: str, args: argparse.Namespace, report: Figures, lock: threading.Lock) -> None:
    """Run a piece and write its result to the file of results as soon as it is known."""
    result = run(piece, args)
    with lock:
        report["pieces"][piece] = result
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(line(piece, result), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
