"""What a machine with a GPU has to show, in pieces of at most eight minutes, each of which can be repeated alone.

    python ci/gpu.py                          all pieces
    python ci/gpu.py bench kernel             these alone
    python ci/gpu.py bench:humanoid           of a piece, one model
    python ci/gpu.py --list

Pieces: `tests` (one a file), then for each model `parity` (a step in single precision against MuJoCo's), `kernel` (the
solver's kernel against the plain solver: answers and speed), `bench` (`jaxsim bench` against mjx and mjwarp), and
`grad` (times of a gradient of a step). Each piece is a process of its own with a time limit. Results go to a JSON file,
where a repeated piece replaces its old result; a table of all in it is printed at the end, and the exit status is the
number of pieces of this run that failed. Without a GPU everything runs on the CPU, and the table says so; `--small`
makes it seconds.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 480.0  # s
TESTS = ("engine/solver/test_kernel", "native/test_matrices", "native/test_pool", "engine/test_forward")
TESTS += ("engine/collision/test_driver", "engine/test_gradients", "parallel/test_batching")
MODELS = {
    "parity": ("humanoid", "quadruped", "hand", "mesh_gripper", "quadruped_rough"),
    "kernel": ("humanoid", "quadruped", "hand"),
    "bench": ("humanoid", "quadruped", "hand", "mesh_gripper"),
    "grad": ("humanoid", "quadruped"),
}
PARITY = 2e-3  # largest difference of qacc after a settled state, of its largest entry, in single precision
Figures = dict[str, Any]


def missing() -> list[str]:
    """Tests and models that this script names and that do not exist."""
    named = [test_path(x) for x in TESTS] + [f"models/{x}.xml" for models in MODELS.values() for x in models]
    return [x for x in dict.fromkeys(named) if not (ROOT / x).is_file()]


def test_path(name: str) -> str:
    """The file of tests of a piece."""
    return f"tests/{name}.py"


def all_pieces(args: argparse.Namespace) -> list[str]:
    """Names of pieces: kind and subject."""
    found = [f"tests:{path}" for path in TESTS]
    for kind, models in MODELS.items():
        found += [f"{kind}:{x}" for x in (args.models or models)]
    return found


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
    if kind in ("bench", "grad"):
        command = [sys.executable, "-m", "jaxsim", "bench", model_path(subject), "--nworld", str(args.nworld)]
        command += ["--nstep", str(args.nstep), "--json", out]
        if kind == "grad":
            return [*command, "--grad"]
        return [*command, *(["--against", args.against] if args.against else [])]
    own = [sys.executable, __file__, "--inside", piece, "--out", out]
    return [*own, "--nworld", str(args.nworld), "--nstep", str(args.nstep)]


def run(piece: str, args: argparse.Namespace) -> Figures:
    """The result of a piece: its status, the end of its output, its figures."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        try:
            command = command_of(piece, args, str(out))
            done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=args.limit)
            status, text = done.returncode, (done.stdout + done.stderr).strip()
        except subprocess.TimeoutExpired:
            status, text = 124, f"took longer than {args.limit:.0f} s"
        figures = json.loads(out.read_text(encoding="utf-8")) if out.exists() else None
    return {"status": status, "output": text[-3000:], "figures": figures}


def parity(subject: str, args: argparse.Namespace) -> Figures:
    """Accelerations of settled states in single precision, against MuJoCo's in double precision."""
    import jax
    import mujoco
    import numpy as np

    import jaxsim

    m, reference = jaxsim.load_model(model_path(subject)), mujoco.MjModel.from_xml_path(model_path(subject))
    data, states, want = mujoco.MjData(reference), [], []
    for _ in range(min(4, args.nworld)):
        mujoco.mj_step(reference, data, 10 * args.nstep)
        states.append([np.array(x) for x in (data.qpos, data.qvel, data.act, data.qacc_warmstart)])
        mujoco.mj_forward(reference, data)
        want.append(np.array(data.qacc))
    names = ("qpos", "qvel", "act", "qacc_warmstart")
    given = dict(zip(names, (np.stack(x).astype(np.float32) for x in zip(*states, strict=True)), strict=True))

    def acceleration(m: Any, given: Any) -> Any:
        return jaxsim.forward(m, jaxsim.make_data(m).replace(**given)).qacc

    got = jaxsim.jit(jax.vmap(acceleration, in_axes=(None, 0)))(m, given)
    scale = np.abs(want).max(1)
    difference = np.abs(np.asarray(got) - want).max(1) / np.maximum(1, scale)
    return {"median": float(np.median(difference)), "most": float(difference.max()), "wanted": PARITY}


def kernel(subject: str, args: argparse.Namespace) -> Figures:
    """The solver's kernel beside the plain solver: differences of `qacc`, and steps a second of both."""
    import jax
    import numpy as np

    import jaxsim
    from jaxsim.tools import bench

    on_gpu = jax.default_backend() == "gpu"
    m = jaxsim.load_model(model_path(subject))
    plain, fast = (m.replace(opt=m.opt.replace(backend=b)) for b in ("xla", "native"))
    d = bench.prepare(plain, bench.BenchSettings(model_path(subject), (args.nworld,), args.nstep), args.nworld)
    forward = jaxsim.jit(jax.vmap(lambda m, d: (lambda d: (d.qacc, d.solver_niter))(jaxsim.forward(m, d)), (None, 0)))
    want, got = (jax.tree.map(np.asarray, forward(x, d)) for x in (plain, fast))
    difference = np.abs(got[0] - want[0]).max(1) / np.maximum(1, np.abs(want[0]).max(1))
    found = {"median": float(np.median(difference)), "most": float(difference.max()), "wanted": 1e-2}
    found |= {"iterations": [float(want[1].mean()), float(got[1].mean())]}
    if on_gpu:
        speeds = [bench.speed(x, d, args.nstep)["steps_per_s"] for x in (plain, fast)]
        found |= {"plain_steps_per_s": speeds[0], "kernel_steps_per_s": speeds[1]}
    return found


INSIDE = {"parity": parity, "kernel": kernel}


def line(piece: str, result: Figures) -> str:
    """A line of the table."""
    figures = result["figures"]
    kind = piece.split(":")[0]
    if result["status"] or figures is None:
        shown = (result["output"].splitlines() or ["no output"])[-1][:90]
    elif kind in INSIDE:
        shown = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in figures.items())
    else:
        shown = _speeds(figures)
    return f"| {piece} | {'failed' if result['status'] else 'passed'} | {shown} |"


def _speeds(figures: Figures) -> str:
    """Best speeds of all simulators in a report of `jaxsim bench`, and times of gradients."""
    found = []
    for name, own in figures.items():
        batches = own.get("batches") if isinstance(own, dict) else None
        if batches:
            best = max(batches, key=lambda b: b.get("steps_per_s", 0))
            found.append(f"{name} {best.get('steps_per_s', 0):,.0f} steps/s ({best.get('nworld')} worlds)")
            found += [f"{k} {v:.3g}" for k, v in best.items() if "grad" in k and isinstance(v, float)]
    return ", ".join(found) or "see the file"


def inside(args: argparse.Namespace) -> int:
    """Run a piece of this script in this process; 1 if it is not what is wanted."""
    kind, subject = args.inside.split(":", 1)
    found = INSIDE[kind](subject, args)
    args.out.write_text(json.dumps(found), encoding="utf-8")
    print(json.dumps(found))
    return int(not found["median"] <= found["wanted"])


def device() -> str:
    """The device that JAX takes in a new process."""
    code = "import jax; d = jax.devices()[0]; print(d.platform, d.device_kind, jax.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    return (done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]])[-1]


def main() -> int:
    """Run the command line and return the number of pieces that failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pieces", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--models", nargs="*", help="instead of the models of each piece: names or files")
    parser.add_argument("--nworld", type=int, default=8192)
    parser.add_argument("--nstep", type=int, default=100)
    parser.add_argument("--small", action="store_true", help="2 worlds, 2 steps: whether the pieces work")
    parser.add_argument("--against", default="mjx,mjwarp")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of a piece")
    parser.add_argument("--out", type=Path, default=Path("gpu.json"))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if missing():
        raise SystemExit(f"this script names what does not exist: {', '.join(missing())}")
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
    for piece in pieces:
        print(f"{piece} ...", file=sys.stderr, flush=True)
        report["pieces"][piece] = run(piece, args)
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if not report["device"].startswith("gpu"):
        print(f"no GPU found: these figures are of {report['device']}")
    print("| piece | result | figures |\n| --- | --- | --- |")
    print("\n".join(line(p, r) for p, r in report["pieces"].items()))
    failed = [p for p in pieces if report["pieces"][p]["status"]]
    print(f"figures: {args.out}; failed: {', '.join(failed) or 'nothing'}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
