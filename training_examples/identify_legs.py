"""Identify the joints of a real quadruped whose legs hang in the air, and write legs_fitted.xml.

The record (`--data`, an .npz with `time`, `dof_pos` and `des_dof_pos`, 200 Hz, 12 joints of a Unitree Go2) is not part
of the repository. Its first three quarters are fitted in windows of 0.5 s that begin in measured states; the rest is
held out. Each joint has a gain, a damping (of controller and joint together), an armature and a dry friction; the base
may be tilted.
Expected: on the held-out part, in MuJoCo where it is installed, windows of 0.5 s with half the nominal model's error.
Writes legs_fitted.xml, legs.html with values, intervals and predictions, and legs.svg, measured and simulated.
"""

import argparse
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from common import describe, finish, options

import jaxsim
from jaxsim import identify

STEP, WINDOW, SIGMA = 0.005, 101, 0.003
LEGS, LINKS = ("FL", "FR", "RL", "RR"), ("hip", "thigh", "calf")
JOINTS = [f"{leg}_{link}" for leg in LEGS for link in LINKS]
MASS, LIMIT = (0.678, 1.152, 0.241), (23.7, 23.7, 45.4)
INERTIA = ("4.8e-4 8.84e-4 5.96e-4", "5.94e-3 5.49e-3 1.1e-3", "1.5e-3 1.5e-3 3.3e-5")
KP, KV, DAMPING = 20.0, 1.5, 0.6  # of the controller as it is known, and of published models


def model() -> str:
    """MJCF of the nominal robot with its base held; joint damping stands with the controller's."""
    bodies, actuators, sensors = [], [], []
    for leg in LEGS:
        x, y = (1 if leg[0] == "F" else -1), (1 if leg[1] == "L" else -1)
        places = ((0.1934 * x, 0.0465 * y, 0), (0, 0.0955 * y, 0), (0, 0, -0.213))
        centres = ((-0.0054 * x, 0.00194 * y, -0.0001), (-0.0037, -0.0223 * y, -0.0327), (0.0063, -0.0006 * y, -0.1414))
        text = ""
        for i, link in enumerate(LINKS):
            text += (
                f'<body name="{leg}_{link}" pos="{numbers(places[i])}"><joint name="{leg}_{link}" '
                f'axis="{"1 0 0" if i == 0 else "0 1 0"}" damping="0" armature=".01" frictionloss=".2"/>'
                f'<inertial pos="{numbers(centres[i])}" mass="{MASS[i]}" diaginertia="{INERTIA[i]}"/>'
                f'<geom type="capsule" fromto="0 0 0 {numbers(places[i + 1]) if i < 2 else "0 0 -.213"}" size=".02" '
                'contype="0" conaffinity="0"/>'
            )
            actuators.append(
                f'<position name="{leg}_{link}" joint="{leg}_{link}" kp="{KP}" kv="{KV + DAMPING}" '
                f'forcerange="{-LIMIT[i]} {LIMIT[i]}"/>'
            )
            sensors.append(f'<jointpos name="{leg}_{link}" joint="{leg}_{link}"/>')
        bodies.append(text + "</body>" * 3)
    return (
        f'<mujoco><option timestep="{STEP}" integrator="implicitfast"/><worldbody><body name="base" pos="0 0 1">'
        f"{''.join(bodies)}</body></worldbody><actuator>{''.join(actuators)}</actuator>"
        f"<sensor>{''.join(sensors)}</sensor></mujoco>"
    )


def numbers(values) -> str:
    return " ".join(f"{x:g}" for x in values)


def parameters(m) -> list:
    """A gain, a damping, an armature and a friction of each joint, and the tilt of the base."""

    def stiffness(m, value):
        bias = m.actuator_biasprm.at[:, 1].set(-value)
        return m.replace(actuator_gainprm=m.actuator_gainprm.at[:, 0].set(value), actuator_biasprm=bias)

    def viscous(m, value):
        return m.replace(actuator_biasprm=m.actuator_biasprm.at[:, 2].set(-value))

    def each(name):
        return tuple(f"{name}[{joint}]" for joint in JOINTS)

    return [
        identify.Parameter(each("kp"), np.full(12, KP), stiffness, 1.0, 100.0, True, (KP, 0.3)),
        identify.Parameter(each("kv"), np.full(12, KV + DAMPING), viscous, 0.2, 5.0, True, (KV + DAMPING, 0.7)),
        identify.parameter(m, "dof_armature", JOINTS, log=True, prior=(0.01, 1.0)),
        identify.parameter(m, "dof_frictionloss", JOINTS, log=True, prior=(0.2, 1.0)),
        identify.parameter(m, "opt.gravity", index=[0, 1], prior=(0.0, 2.0)),
    ]


def predicted_by_mujoco(path_or_text, q, u, v, first, last) -> np.ndarray | None:
    """Errors (windows, 100, 12) of open-loop windows of 0.5 s in MuJoCo, None where it is not installed."""
    try:
        import mujoco
    except ImportError:
        return None
    text = path_or_text.read_text() if isinstance(path_or_text, Path) else path_or_text
    m = mujoco.MjModel.from_xml_string(text)
    d, errors = mujoco.MjData(m), []
    for start in range(first, last - WINDOW, 50):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:] = q[start], v[start]
        rows = []
        for i in range(start, start + WINDOW - 1):
            d.ctrl[:] = u[i]
            mujoco.mj_step(m, d, round(STEP / m.opt.timestep))
            rows.append(d.qpos - q[i + 1])
        errors.append(rows)
    return np.array(errors)


def picture(path: Path, problem, free, data, q) -> None:
    """Draw measured angles of the held-out part, and those of both models in windows."""
    from matplotlib.figure import Figure

    other = identify.Problem(problem.m, data, problem.parameters, window=WINDOW)
    both = other.start(jnp.stack([problem.first, jnp.asarray(free)]))
    y = np.concatenate([y for _, y, _ in other.simulated(both)], 1)[:, 0, : len(q)]
    figure = Figure(figsize=(9, 7), layout="constrained")
    time = STEP * np.arange(len(q))
    for axes, i in zip(figure.subplots(3, 1, sharex=True), (0, 1, 8), strict=True):
        for start in range(0, len(q), WINDOW):
            part = slice(start, start + WINDOW)
            for j, (color, label) in enumerate((("tab:orange", "before"), ("tab:blue", "after"))):
                axes.plot(time[part], y[j, part, i], color=color, lw=1, label=label if start == 0 else None)
        axes.plot(time, q[:, i], "k:", lw=1.5, label="measured")
        axes.set(ylabel=f"{JOINTS[i]} (rad)")
    axes.set(xlabel="s, held out, windows of 0.5 s from measured states")
    axes.legend()
    figure.savefig(path)
    print(f"plot: {path}")


def add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, default=Path("go2_air.npz"), help="the record, .npz")


def main():
    args = options(__doc__, add=add_data)
    if not args.data.exists():
        raise SystemExit(f"{args.data} does not exist: pass the record with --data")
    with np.load(args.data) as record:
        q, u = record["dof_pos"].astype(float), record["des_dof_pos"].astype(float)
    v = np.gradient(q, axis=0) / STEP
    m = jaxsim.load_model(model())
    cut = int(0.75 * len(q))

    def recording(part):
        angles = {joint: q[None, part, i] for i, joint in enumerate(JOINTS)}
        return identify.recordings(m, u[None, part], angles, sigma=SIGMA, states=(q[None, part], v[None, part]))

    fitted, held_out = recording(slice(1, cut)), recording(slice(cut, len(q) - 1))
    began = time.process_time(), time.perf_counter()
    fit = identify.identify(
        m, fitted, parameters(m), iterations=1 if args.smoke else 8, window=WINDOW, held_out=held_out, progress=True
    )
    print(f"fit: {time.process_time() - began[0]:.0f} s of processor time, {time.perf_counter() - began[1]:.0f} s")
    print(fit)
    identify.save_report(fit, fitted, args.out / "legs.html", "Legs in the air")
    identify.save_mjcf(fit, args.out / "legs_fitted.xml")
    picture(args.out / "legs.svg", fit.problem, fit.point.free, held_out, q[cut : len(q) - 1])
    both = [predicted_by_mujoco(x, q, u, v, cut, len(q)) for x in (model(), args.out / "legs_fitted.xml")]
    if both[0] is None:
        half = fit.validation.horizons.tolist().index(0.5)
        both = [x[half] for x in (fit.validation.nominal, fit.validation.fitted)]
    before, after = (float(np.sqrt(np.mean(np.square(x)))) for x in both)
    finish(after < 0.5 * before, describe(["before (rad)", "after (rad)"], [before, after]), args.smoke)


if __name__ == "__main__":
    main()
