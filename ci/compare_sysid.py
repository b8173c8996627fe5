"""Time `jaxsim.identify` and `mujoco.sysid` (MuJoCo 4) on the same records, to the same residual.

    python -m venv mj4 && mj4/bin/pip install "mujoco[sysid]==4.0.0"
    python ci/compare_sysid.py mj4/bin/python [--cases own arm] [--float32]

`own` is the example of sysid's integration test: armatures of five joints from one record of 2 s without noise, fitted
when all of them are within 1e-4 of the truth. `arm` has the same arm, 32 records of 1 s with noise of 0.5 %, and ten
parameters; it is fitted when the residual is at most 1.001 times the least that either found. Times begin with the
fit and end with the first evaluation there; of ours also with the end of the call, with its intervals and checks. Our
first call compiles, the second fits the same records from another start.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

JOINTS, MASSES = 5, (1.0, 0.8, 0.6, 0.4, 0.2)
ARMATURE, DAMPING = (0.5, 0.4, 0.3, 0.2, 0.1), (1.0, 0.8, 0.6, 0.4, 0.2)
AXES, LENGTHS = ("0 0 1", "0 1 0", "0 1 0", "0 0 1", "0 1 0"), (0.1, 0.1, 0.1, 0.08, 0.06)
CASES = {"own": (1, 1000, False), "arm": (32, 500, True)}  # records, steps, noise and dampings


def arm(armature, damping) -> str:
    """MJCF of a chain of five links with motors, as in sysid's integration test."""
    body = ""
    for i in reversed(range(JOINTS)):
        at, mass, inertia = (0, *LENGTHS)[i] if i else 0.1, MASSES[i], 0.01 * MASSES[i]
        body = (
            f'<body name="link{i}" pos="0 0 {at}"><inertial pos="0 0 {LENGTHS[i] / 2}" mass="{mass}" '
            f'diaginertia="{inertia} {inertia} {inertia / 2}"/><joint name="joint{i}" axis="{AXES[i]}" '
            f'armature="{armature[i]}" damping="{damping[i]}"/>{body}</body>'
        )
    motors = "".join(f'<motor name="act{i}" joint="joint{i}"/>' for i in range(JOINTS))
    sensors = "".join(f'<joint{k} name="{k}{i}" joint="joint{i}"/>' for k in ("pos", "vel") for i in range(JOINTS))
    return (
        '<mujoco><option integrator="implicitfast" timestep="0.002"><flag contact="disable"/></option>'
        f"<worldbody>{body}</worldbody><actuator>{motors}</actuator><sensor>{sensors}</sensor></mujoco>"
    )


def records(case: str) -> dict[str, np.ndarray]:
    """Controls (k, n, 5), measurements (k, n, 10) by MuJoCo, and the standard deviations (10,) of their noise."""
    import mujoco

    k, n, noisy = CASES[case]
    rng, t = np.random.default_rng(0), 0.002 * np.arange(n)[:, None]
    rates = np.array([0.5, 0.7, 0.4, 0.9, 0.6]) if case == "own" else rng.uniform(0.3, 2, (k, 1, JOINTS))
    phases = 0.5 * np.arange(JOINTS) if case == "own" else rng.uniform(0, 6, (k, 1, JOINTS))
    ctrl = np.broadcast_to(np.arange(5, 0, -1) * np.sin(2 * np.pi * rates * t + phases), (k, n, JOINTS))
    y = simulated(mujoco, arm(ARMATURE, DAMPING), ctrl)
    sigma = 0.005 * np.sqrt((y**2).mean((0, 1)))
    return {"ctrl": ctrl, "y": y + noisy * sigma * rng.standard_normal(y.shape), "sigma": sigma}


def simulated(mujoco, text, ctrl) -> np.ndarray:
    """Sensors (k, n, 10) of all records in MuJoCo."""
    m = mujoco.MjModel.from_xml_string(text)
    d, y = mujoco.MjData(m), np.zeros((*ctrl.shape[:2], m.nsensordata))
    for i, controls in enumerate(ctrl):
        mujoco.mj_resetData(m, d)
        for j, u in enumerate(controls):
            d.ctrl[:] = u
            mujoco.mj_step(m, d)
            y[i, j] = d.sensordata
    return y


def peer(path: str) -> None:
    """Fit with mujoco.sysid, and write all points it evaluated with their times."""
    import mujoco
    from mujoco import sysid

    with np.load(path) as kept:
        ctrl, y, case = kept["ctrl"], kept["y"], str(kept["case"])
    spec = mujoco.MjSpec.from_string(arm(ARMATURE, DAMPING))
    m = spec.compile()
    d = mujoco.MjData(m)
    state = sysid.create_initial_state(m, d.qpos, d.qvel, d.act)
    parameters = sysid.ParameterDict()
    for field, truth in (("armature", ARMATURE), ("damping", DAMPING))[: 1 + CASES[case][2]]:
        for i in range(JOINTS):

            def write(s, p, name=f"joint{i}", field=field):
                joint = s.joint(name)
                setattr(joint, field, p.value[0] if np.ndim(getattr(joint, field)) == 0 else [p.value[0], 0, 0])

            parameters.add(sysid.Parameter(f"{field}{i}", truth[i], 0.001, 3.0, modifier=write))
            parameters[f"{field}{i}"].value[:] = 0.01 if field == "armature" else 0.4
    # rows of sysid: the sensors of a step belong to its end
    times = 0.002 * np.arange(ctrl.shape[1] + 1)
    sequences = sysid.ModelSequences(
        "arm", spec, [f"run{i}" for i in range(len(ctrl))], [state] * len(ctrl),
        [sysid.TimeSeries(times, np.concatenate([u, u[-1:]])) for u in ctrl],
        [sysid.TimeSeries.from_names(times[1:], x, m) for x in y],
    )  # fmt: skip
    residual, points, began = sysid.build_residual_fn(models_sequences=[sequences]), [], time.perf_counter()
    processor = time.process_time()

    def watched(x, p, **options):
        found = residual(x, p, **options)
        if x.ndim == 1 or x.shape[1] == 1:
            points.append([time.perf_counter() - began, time.process_time() - processor, *np.ravel(x)])
        return found

    sysid.optimize(initial_params=parameters, residual_fn=watched, optimizer="mujoco", verbose=False)
    Path(path).with_suffix(".json").write_text(json.dumps(points))


def ours(case: str, data: dict[str, np.ndarray]) -> list[list[list[float]]]:
    """Points that a fit which compiles and a second one evaluated, as of `peer`; the last is that of the whole call."""
    import jaxsim
    from jaxsim import identify

    start = {"armature": np.full(JOINTS, 0.01), "damping": np.full(JOINTS, 0.4) if CASES[case][2] else DAMPING}
    names = [f"{k}{i}" for k in ("pos", "vel") for i in range(JOINTS)]
    found, costs = [], identify.Problem.costs
    for scale in (1.1, 1.0):
        points, began = [], []

        def watched(problem, point, began=began, points=points):
            cost = costs(problem, point)
            best = np.exp(point.free[np.argmin(cost)].astype(float))  # all parameters are logarithms
            points.append([time.perf_counter() - began[0], time.process_time() - began[1], *best])
            return cost

        identify.Problem.costs = watched
        m = jaxsim.load_model(arm(scale * start["armature"], start["damping"]))
        kept = identify.recordings(
            m, data["ctrl"], {n: data["y"][..., i] for i, n in enumerate(names)},
            sigma=dict(zip(names, data["sigma"], strict=True)),
        )  # fmt: skip
        joints = [f"joint{i}" for i in range(JOINTS)]
        fields = ("dof_armature", "dof_damping")[: 1 + CASES[case][2]]
        parameters = [identify.parameter(m, f, joints, low=0.001, high=3.0, log=True) for f in fields]
        began += [time.perf_counter(), time.process_time()]
        fit = identify.identify(m, kept, parameters, held_out=None)
        points.append([time.perf_counter() - began[0], time.process_time() - began[1], *fit.values])
        found.append(points)
    return found


def compare(case: str, python: str) -> None:
    """Print the times of both, and their ratio."""
    import mujoco

    data = records(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.npz"
        np.savez(path, case=case, **data)
        subprocess.run([python, __file__, "--peer", str(path)], check=True)
        points = json.loads(path.with_suffix(".json").read_text())
    fits = ours(case, data)

    def residual(x) -> float:
        y = simulated(mujoco, arm(x[:JOINTS], x[JOINTS:] if len(x) > JOINTS else DAMPING), data["ctrl"])
        return float(np.sqrt(np.mean(((y - data["y"]) / data["sigma"]) ** 2)))

    def error(x) -> float:
        return float(np.abs(np.array(x)[:JOINTS] - ARMATURE).max())

    if CASES[case][2]:
        least = min(residual(fits[-1][-1][2:]), residual(points[-1][2:]))
        reached = lambda x: residual(x) <= 1.001 * least  # noqa: E731
    else:
        reached = lambda x: error(x) <= 1e-4  # noqa: E731
    first = next((p for p in points if reached(p[2:])), None)
    print(f"{case}: mujoco.sysid, {len(points)} evaluations in {points[-1][0]:.2f} s (processor {points[-1][1]:.2f} s)")
    if first is None:
        print(
            f"  does not get there: residual {residual(points[-1][2:]):.6g}, armatures {error(points[-1][2:]):.2g} off"
        )
    else:
        print(f"  there after {first[0]:.2f} s (processor {first[1]:.2f} s): residual {residual(first[2:]):.6g}")
    for label, ends in zip(("with compilation", "again"), fits, strict=True):
        there = next((p for p in ends if reached(p[2:])), None)
        for what, point in (("there", there), ("whole call", ends[-1])):
            if point is None or first is None:
                print(f"  jaxsim, {label}: NOT {what}")
                continue
            seconds, processor, *x = point
            print(f"  jaxsim, {label}, {what}: {seconds:.2f} s (processor {processor:.3f} s), "
                  f"{first[0] / seconds:.3g} times as fast ({first[1] / processor:.3g}): "
                  f"residual {residual(x):.6g}, armatures {error(x):.2g} off")  # fmt: skip


def main() -> None:
    """Compare as the command line says."""
    if sys.argv[1:2] == ["--peer"]:
        return peer(sys.argv[2])
    parser = argparse.ArgumentParser(description="Time identification beside mujoco.sysid")
    parser.add_argument("python", help="interpreter of an environment with mujoco[sysid]==4.0.0")
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--float32", action="store_true")
    args = parser.parse_args()
    import jax

    jax.config.update("jax_enable_x64", not args.float32)
    for case in args.cases:
        compare(case, args.python)


if __name__ == "__main__":
    main()
