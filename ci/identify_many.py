"""Time of one Gauss-Newton iteration over thousands of trajectories of an arm, and the memory of the process.

    python ci/identify_many.py [--trajectories 10000] [--steps 100] [--tosses cube_tosses.npz]

With `--tosses`, time instead one fit of ten parameters, and of all first velocities and poses, to the first 0.27 s of
the 400 tosses of `training_examples/identify_cube.py`.
"""

import argparse
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

import jaxsim
from jaxsim import identify
from validation.coverage import ARM


def main() -> None:
    """Print the figures of two fits of one iteration each: the first one compiles."""
    parser = argparse.ArgumentParser(description="Identification from many trajectories")
    parser.add_argument("--trajectories", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--tosses", type=Path)
    args = parser.parse_args()
    if args.tosses:
        return fit_tosses(args.tosses)
    m = jaxsim.load_model(ARM)
    rng, k, n = np.random.default_rng(0), args.trajectories, args.steps
    ctrl = np.sin(rng.uniform(2, 9, (k, 1, 2)) * 0.01 * np.arange(n)[:, None] + rng.uniform(0, 6, (k, 1, 2)))
    joints = ["shoulder", "elbow"]
    parameters = [identify.parameter(m, f, joints, log=True) for f in ("dof_damping", "dof_frictionloss")]
    empty = identify.recordings(m, ctrl, {q: np.zeros((k, n, 1)) for q in ("q1", "q2")}, sigma=0.002)
    problem = identify.Problem(m, empty, parameters)
    point = problem.start(problem.first[None])
    y = np.concatenate([y[0] for _, y, _ in problem.simulated(point)])[:, :n]
    y = y + 0.002 * rng.standard_normal(y.shape)
    data = identify.recordings(m, ctrl, {"q1": y[..., :1], "q2": y[..., 1:]}, sigma=0.002)
    problem = identify.Problem(m, data, parameters)
    first = problem.first[None]
    for label, away in (("with compilation", 0.2), ("again", 0.21)):
        start = problem.start(first + away)
        began = time.perf_counter(), time.process_time()
        linear = problem.linear(start)[0]
        step = linear.step(1e-6, np.zeros(len(problem.first), bool))
        cost = problem.costs(start._replace(free=(start.free + step.free).astype(start.free.dtype)))[0]
        spent = time.perf_counter() - began[0], time.process_time() - began[1]
        print(f"one iteration, {label}: {spent[0]:.1f} s, processor {spent[1]:.1f} s")
    print(f"residuals {np.sqrt(2 * linear.cost() / y.size):.4g} times the noise, then {np.sqrt(2 * cost / y.size):.4g}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{k} trajectories of {n} steps, chunks of {problem.chunk}: {memory:.2f} GiB at most")


def fit_tosses(path: Path) -> None:
    """Print the fit to all tosses and its time, compilation included."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "training_examples"))
    import identify_cube as cube

    began = time.perf_counter()
    with np.load(path) as record:
        tosses = [record[name].astype(float) for name in record.files]
    m = jaxsim.load_model(cube.model())
    known = identify.Initial(qpos=np.repeat((5e-4, 3e-3), 3), qvel=np.repeat((0.03, 0.3), 3))
    parameters = [p for p in cube.parameters(m, cube.SOLID)[:-2] if p.labels[0] not in ("centre[0]", "size[0]")]
    records = cube.recorded(m, np.array([toss[:40] for toss in tosses]))
    loss = identify.Loss("cauchy", 2.0)
    fit = identify.identify(m, records, parameters, iterations=8, horizons=(), initial=known, loss=loss, held_out=None)
    print(fit)
    t, seconds = os.times(), time.perf_counter() - began
    print(f"{len(tosses)} tosses, {len(fit.values)} parameters: {seconds:.0f} s")
    print(f"processor {t.user + t.system:.0f} s, and the C++ compiler {t.children_user + t.children_system:.0f} s")


if __name__ == "__main__":
    main()
