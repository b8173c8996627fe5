"""Run the checks that need a GPU, and the benchmark against other simulators, on a machine with a GPU.

    python ci/gpu.py [--nworld 8192] [--model models/humanoid.xml] [--out gpu.json]

Runs the tests of the engine on the default device, then `jaxsim bench` against mjx and mjwarp, then the solver's fused
kernel against the plain solver with both cones (`ci/solver_kernel.py`). Each part is a process of its own with a time
limit, so that a failure does not affect the others. Prints a table, writes all figures as JSON, and exits with the
number of parts that failed. Without a GPU it runs on the CPU and says so; the kernel is left out, since it would be
interpreted there.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DEVICE = "import jax, json; d = jax.devices()[0]; print(json.dumps([d.platform, d.device_kind, jax.device_count()]))"
TESTS = ("tests/engine/test_forward.py", "tests/engine/solver", "tests/engine/collision/test_driver.py")
TESTS += ("tests/engine/test_gradients.py", "tests/parallel/test_batching.py")
CONES = ("pyramidal", "elliptic")


def run(command: list[str], limit: float) -> tuple[int, str]:
    """Exit status and end of the output of a command; status 124 when it exceeded the time limit."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return 124, f"took longer than {limit:.0f} s"
    return done.returncode, (done.stdout + done.stderr).strip()[-2000:]


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Report of all parts, of numbers and strings."""
    status, text = run([sys.executable, "-c", DEVICE], args.limit)
    report: dict[str, Any] = {"device": json.loads(text.splitlines()[-1]) if status == 0 else text, "failed": []}
    if status:
        report["failed"].append("device")
        return report
    for path in () if args.skip_tests else TESTS:
        status, text = run([sys.executable, "-m", "pytest", "-q", "-n", "0", path], args.limit)
        report.setdefault("tests", {})[path] = (text.splitlines() or ["no output"])[-1]
        report["failed"] += [path] if status else []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bench.json"
        command = [
            sys.executable,
            "-m",
            "jaxsim",
            "bench",
            args.model,
            "--nworld",
            str(args.nworld),
            "--json",
            str(out),
        ]
        command += ["--nstep", str(args.nstep)] + (["--against", args.against] if args.against else [])
        status, text = run(command, args.limit)
        report["table"] = text
        report["bench"] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else None
        report["failed"] += ["bench"] if status else []
    for cone in CONES if report["device"][0] == "gpu" else ():
        compare_solvers(args, cone, report)
    return report


def compare_solvers(args: argparse.Namespace, cone: str, report: dict[str, Any]) -> None:
    """Add the comparison of the fused kernel and the plain solver on the same worlds to the report."""
    script = str(ROOT / "ci" / "solver_kernel.py")
    options = ["--model", args.model, "--nworld", str(args.nworld), "--nstep", str(args.nstep), "--cone", cone]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernel.json"
        status, text = run([sys.executable, script, *options, "--out", str(out)], args.limit)
        found = json.loads(out.read_text(encoding="utf-8")) if out.exists() else text
    report.setdefault("solver_kernel", {})[cone] = found
    report["failed"] += [f"kernel, {cone}"] if status else []


def main() -> int:
    """Run the command line and return the number of parts that failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(ROOT / "models" / "humanoid.xml"))
    parser.add_argument("--nworld", type=int, default=8192)
    parser.add_argument("--nstep", type=int, default=100)
    parser.add_argument("--against", default="mjx,mjwarp")
    parser.add_argument("--limit", type=float, default=1800, help="time limit of each part in seconds")
    parser.add_argument("--skip-tests", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("gpu.json"))
    args = parser.parse_args()
    report = measure(args)
    args.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if report["device"][0] != "gpu":
        print(f"no GPU found: these figures are of {report['device']}")
    for path, line in report.get("tests", {}).items():
        print(f"{path}: {line}")
    print(report.get("table", ""))
    for cone, found in report.get("solver_kernel", {}).items():
        print(f"fused solver kernel, {cone} cones: {json.dumps(found)}")
    print(f"figures: {args.out}; failed: {', '.join(report['failed']) or 'nothing'}")
    return len(report["failed"])


if __name__ == "__main__":
    sys.exit(main())
