"""Compare the solver's fused kernel with the plain solver on a batch of settled worlds: results and speed.

    python ci/solver_kernel.py [--model models/humanoid.xml] [--nworld 8192] [--cone elliptic] [--out kernel.json]

Solves the same batch from the same states with both, and compares `qacc` and iterations. Then it times the plain
solver, the kernel with each number of warps, and whole steps with the fastest of them. On a CPU the kernel is
interpreted, and its times are meaningless. Exits with status 1 where results differ by more than `--tolerance`.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxsim
from jaxsim.core.types import ConeType
from jaxsim.tools import bench
from jaxsim.tools.timing import best_time

ROOT = Path(__file__).resolve().parent.parent
Figures = dict[str, Any]


def compile_solver(m: jaxsim.Model, d: jaxsim.Data) -> Any:
    """Compiled solver of a batch whose constraint rows are in `d`."""
    solve = jax.vmap(lambda m, d: jaxsim.fwd_constraint(m, d).replace(efc=d.efc), in_axes=(None, 0))
    return (
        jaxsim.jit(lambda m, d: (lambda d: (d.qacc, d.qfrc_constraint, d.solver_niter))(solve(m, d)))
        .lower(m, d)
        .compile()
    )


def differences(plain: tuple, other: tuple) -> Figures:
    """Largest difference of `qacc`, relative to the largest entry of the world, and the iterations of both."""
    expected, got = np.asarray(plain[0], float), np.asarray(other[0], float)
    scale = np.maximum(1, np.abs(expected).max(1))
    difference = np.abs(got - expected).max(1) / scale
    counts = {k: np.asarray(x[2], float) for k, x in (("plain", plain), ("kernel", other))}
    return {
        "qacc_difference": {"most": float(difference.max()), "median": float(np.median(difference))},
        "iterations": {k: {"mean": float(x.mean()), "most": int(x.max())} for k, x in counts.items()},
    }


def with_kernel(m: jaxsim.Model, warps: int) -> jaxsim.Model:
    """Model with the fused kernel, with `warps` warps per world; 1 chooses them by size."""
    return m.replace(opt=m.opt.replace(solver_kernel=warps))


def measure(m: jaxsim.Model, args: argparse.Namespace) -> Figures:
    """Figures of one model."""
    settings = bench.BenchSettings(args.model, (args.nworld,), args.nstep, settle=args.settle)
    d = bench.prepare(m, settings, args.nworld)
    d = jax.block_until_ready(jaxsim.batched(jaxsim.forward)(m, d))
    models = {0: m, **{warps: with_kernel(m, warps) for warps in args.warps}}
    solvers = {warps: compile_solver(x, d) for warps, x in models.items()}
    times = {w: 1e3 * best_time(partial(solvers[w], models[w], d)) for w in models}
    fastest = min(args.warps, key=times.__getitem__)
    steps = {w: bench.speed(models[w], d, args.nstep)["steps_per_s"] for w in (0, fastest)}
    return {
        "nworld": args.nworld,
        "nv": m.nv,
        "mean_ncon": float(np.mean(d.ncon)),
        "solver_ms": {f"kernel, warps {w}" if w else "plain": t for w, t in times.items()},
        "steps_per_s": {f"kernel, warps {w}" if w else "plain": x for w, x in steps.items()},
        **differences(solvers[0](m, d), solvers[fastest](models[fastest], d)),
    }


def main() -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(ROOT / "models" / "humanoid.xml"))
    parser.add_argument("--nworld", type=int, default=8192)
    parser.add_argument("--nstep", type=int, default=100)
    parser.add_argument("--settle", type=int, default=100)
    parser.add_argument("--cone", choices=("pyramidal", "elliptic"), default=None, help="default: the model's")
    parser.add_argument(
        "--warps", type=int, nargs="*", default=(1, 2, 4), help="numbers of warps to try; 1 chooses by size"
    )
    parser.add_argument("--tolerance", type=float, default=1e-2, help="largest relative difference of qacc")
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    m = jaxsim.load_model(args.model)
    if args.cone:
        m = m.replace(opt=m.opt.replace(cone=ConeType[args.cone.upper()]))
    report = {"device": [jax.devices()[0].platform, jax.devices()[0].device_kind], **measure(m, args)}
    print(json.dumps(report, indent=2))
    if args.out:
        args.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return int(not report["qacc_difference"]["most"] <= args.tolerance)


if __name__ == "__main__":
    sys.exit(main())
