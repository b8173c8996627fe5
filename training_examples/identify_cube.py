"""Identify contact, friction and shape of a real cube from 400 tosses, and write cube_fitted.xml.

The tosses (`--data`, an .npz with an array (n, 13) for each: position, quaternion, velocity, angular velocity of the
body, 148 Hz) are those of Pfrommer, Halm and Posa, "ContactNets" (CoRL 2020). They are not part of the repository.
Three quarters are fitted, the rest is held out.
First windows of 0.16 s, which begin in measured states with velocities known up to their noise, are fitted by exact
derivatives. After several impacts derivatives mislead: whole tosses are fitted by a search that begins there.
Expected: on held-out tosses, from the measured first state on, half the error of a box with friction 0.18.
Writes cube_fitted.xml, cube.html with values, intervals and residuals of the windows, and cube.svg.
"""

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from common import describe, finish, options

import jaxsim
from jaxsim import identify
from jaxsim.identify.save import written

WIDTH, RATE, SUBSTEPS = 0.1048, 148, 2
MASS, ROWS, WINDOW = 0.37, 112, 24
CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
INERTIA = MASS * WIDTH**2 / 6
HALF, ROUND = 0.0518, 0.005
SIGMA = {"pos": 0.002, "quat": 0.01}


def model(corners: bool = True) -> str:
    """MJCF of the cube: eight spheres at its corners, or a box with MuJoCo's defaults."""
    geom = '<geom name="cube" type="box" size=".0524 .0524 .0524" mass=".37" friction=".18" priority="1"/>'
    if corners:
        shape = f'type="sphere" size="{ROUND}" friction=".2" solref=".012 .8" solimp=".5 .9 .003" priority="1"'
        geom = f'<inertial pos="1e-6 0 0" mass="{MASS}" fullinertia="{INERTIA} {INERTIA} {INERTIA} 0 0 0"/>'
        for i, corner in enumerate(CORNERS * (HALF - ROUND)):
            geom += f'<geom name="corner{i}" {shape} pos="{" ".join(map(str, corner))}"/>'
    option = f'timestep="{1 / RATE / SUBSTEPS:.10f}"' + (' cone="elliptic" impratio=".5"' if corners else "")
    return (
        f'<mujoco><option {option}/><worldbody><geom name="table" type="plane" size="5 5 .1"/>'
        f'<body name="cube" pos="0 0 .1"><freejoint name="free"/>{geom}</body></worldbody><sensor>'
        '<framepos name="pos" objtype="xbody" objname="cube"/><framequat name="quat" objtype="xbody" objname="cube"/>'
        "</sensor></mujoco>"
    )


def parameters(m) -> list:
    """Sixteen numbers: contact, friction, gravity, mass centre, inertia, half sizes and the corners' radius."""
    corners = np.array([m.name2id("geom", f"corner{i}") for i in range(8)])

    def column(field, j):
        return lambda m, v: m.replace(**{field: getattr(m, field).at[corners, j].set(v[0])})

    def shape(m, v):
        place = jnp.asarray(CORNERS) * (v[:3] - v[3])
        return m.replace(geom_size=m.geom_size.at[corners, 0].set(v[3]), geom_pos=m.geom_pos.at[corners].set(place))

    def number(label, start, write, low, high, **options):
        start = np.atleast_1d(np.asarray(start, float))
        labels = (label,) if len(start) == 1 else tuple(f"{label}[{i}]" for i in range(len(start)))
        return identify.Parameter(labels, start, write, low, high, options.pop("log", True), **options)

    def gravity(m, v):
        return m.replace(opt=m.opt.replace(gravity=m.opt.gravity.at[2].set(-v[0])))

    def inertia(m, v):
        return m.replace(body_inertia=m.body_inertia.at[1].set(INERTIA * v[0] * jnp.ones(3)))

    shortest = 2.02 / RATE / SUBSTEPS  # MuJoCo holds the time constant above two steps
    return [
        number("friction", 0.2, column("geom_friction", 0), 0.02, 2.0),
        number("timeconst", 0.012, column("geom_solref", 0), shortest, 0.1),
        number("dampratio", 0.8, column("geom_solref", 1), 0.05, 5.0),
        number("dmin", 0.5, column("geom_solimp", 0), 0.01, 0.99),
        number("dmax", 0.9, column("geom_solimp", 1), 0.05, 0.99),
        number("width", 0.003, column("geom_solimp", 2), 3e-4, 0.02),
        number("impratio", 0.5, lambda m, v: m.replace(opt=m.opt.replace(impratio=v[0])), 0.02, 20.0),
        number("gravity", 9.7, gravity, 9.63, 9.82),
        number("centre", [1e-6, 0, 0], lambda m, v: m.replace(body_ipos=m.body_ipos.at[1].set(v)), -0.02, 0.02,
               log=False, constants=True),
        number("inertia", 1.05, inertia, 0.87, 1.14, constants=True),
        number("size", [HALF, HALF, HALF, ROUND], shape, 0.001, 0.056, log=False, constants=True),
    ]  # fmt: skip


def recorded(m, tosses, rows):
    """Recordings at the model's time step, whose measurements are every second row."""
    n, k = rows * SUBSTEPS, len(tosses)
    y, qpos, qvel = np.full((k, n, 7), np.nan), np.zeros((k, n, 7)), np.zeros((k, n, 6))
    for i, toss in enumerate(tosses):
        part = toss[:rows]
        v = part[:, 7:].copy()
        v[1:-1, :3] = 0.5 * RATE * (part[2:, :3] - part[:-2, :3])
        v[0] = part[0, 7:]
        held = np.minimum(np.arange(n) // SUBSTEPS, len(part) - 1)
        y[i, : len(part) * SUBSTEPS : SUBSTEPS] = part[:, :7]
        qpos[i], qvel[i] = part[held, :7], v[held]
    parts = {"pos": y[..., :3], "quat": y[..., 3:]}
    return identify.recordings(m, np.zeros((k, n, 0)), parts, sigma=SIGMA, states=(qpos, qvel))


def errors(y, tosses) -> np.ndarray:
    """Mean errors (..., k, 2) of poses (..., k, rows, 7) over the rows of tosses: share of the width, degrees."""
    rows = y.shape[-2]
    measured, weight = np.zeros((len(tosses), rows, 7)), np.zeros((len(tosses), rows))
    for i, toss in enumerate(tosses):
        n = min(len(toss), rows)
        measured[i, :n], weight[i, :n] = toss[:n, :7], 1 / len(toss)
        weight[i, n - 1] += (len(toss) - n) / len(toss)  # the cube rests: later errors are the last one
    apart = np.linalg.norm(y[..., :3] - measured[..., :3], axis=-1) / WIDTH
    along = np.clip(np.abs((y[..., 3:] * measured[..., 3:]).sum(-1)), 0, 1)
    turned = np.where(weight > 0, 2 * np.degrees(np.arccos(along)), 0)
    return np.stack([(weight * apart).sum(-1), (weight * turned).sum(-1)], -1)


def predicted(problem, free, tosses) -> np.ndarray:
    """Errors (s, k, 2) of whole tosses for coordinates (s, p)."""
    found = []
    for place, y, _ in problem.simulated(problem.start(free)):
        found.append(errors(y[:, :, ::SUBSTEPS].astype(float), tosses[place]))
    return np.minimum(np.nan_to_num(np.concatenate(found, 1), nan=1e3), (2.0, 180.0))


def in_mujoco(text, tosses) -> np.ndarray:
    """Errors (k, 2) of whole tosses from their measured first states, in MuJoCo."""
    import mujoco

    m = mujoco.MjModel.from_xml_string(text)
    d, found = mujoco.MjData(m), []
    for toss in tosses:
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:] = toss[0, :7], toss[0, 7:]
        rows = [toss[0, :7].copy()]
        for _ in toss[1:]:
            mujoco.mj_step(m, d, SUBSTEPS)
            rows.append(d.qpos.copy())
        found.append(errors(np.array(rows)[None], [toss])[0])
    return np.array(found)


def picture(path: Path, models, tosses) -> None:
    """Draw height and rotation error of held-out tosses, measured, before and after."""
    import mujoco
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained")
    grid = figure.subplots(2, 3, sharex=True)
    for toss, axes in zip(tosses, grid.T, strict=False):
        seconds = np.arange(len(toss)) / RATE
        for text, color, label in zip(models, ("tab:orange", "tab:blue"), ("before", "after"), strict=True):
            m = mujoco.MjModel.from_xml_string(text)
            d = mujoco.MjData(m)
            d.qpos[:], d.qvel[:] = toss[0, :7], toss[0, 7:]
            rows = [toss[0, :7].copy()]
            for _ in toss[1:]:
                mujoco.mj_step(m, d, SUBSTEPS)
                rows.append(d.qpos.copy())
            y = np.array(rows)
            axes[0].plot(seconds, y[:, 2], color=color, lw=1, label=label)
            along = np.clip(np.abs((y[:, 3:] * toss[:, 3:7]).sum(1)), 0, 1)
            axes[1].plot(seconds, 2 * np.degrees(np.arccos(along)), color=color, lw=1, label=label)
        axes[0].plot(seconds, toss[:, 2], "k:", lw=1.5, label="measured")
        axes[1].set(xlabel="s")
    grid[0, 0].set(ylabel="height (m)")
    grid[1, 0].set(ylabel="rotation error (degrees)")
    grid[0, 0].legend()
    figure.savefig(path)
    print(f"plot: {path}")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, default=Path("cube_tosses.npz"), help="the tosses, .npz")
    parser.add_argument("--seconds", type=float, default=100, help="processor time of the search")


def main():
    args = options(__doc__, x64=False, add=add_options)
    if not args.data.exists():
        raise SystemExit(f"{args.data} does not exist: pass the tosses with --data")
    with np.load(args.data) as record:
        tosses = [record[name].astype(float) for name in record.files]
    order = np.random.default_rng(args.seed).permutation(len(tosses))
    count = 12 if args.smoke else int(0.75 * len(tosses))
    fitted, held_out = ([tosses[i] for i in part] for part in (order[:count], order[int(0.75 * len(tosses)) :]))
    m = jaxsim.load_model(model())
    began = time.process_time(), time.perf_counter()
    windows = recorded(m, fitted[:60], 96)
    known = identify.Initial(qpos=np.repeat((5e-4, 3e-3), 3), qvel=np.repeat((0.03, 0.3), 3))
    fit = identify.identify(
        m, windows, parameters(m), iterations=1 if args.smoke else 10, window=WINDOW * SUBSTEPS, initial=known,
        loss=identify.Loss("cauchy", 2.0), progress=True,
    )  # fmt: skip
    print(fit)
    identify.save_report(fit, windows, args.out / "cube.html", "Cube, windows of 0.16 s")
    whole = identify.Problem(m, recorded(m, fitted, ROWS), fit.problem.parameters)
    first = np.asarray(fit.point.free, float)
    logs = np.repeat([p.log for p in fit.problem.parameters], whole.sizes)
    spread = np.where(logs, 0.15, 3e-4)
    spread[list(whole.labels).index("gravity")] = 0.005
    spread[list(whole.labels).index("inertia")] = 0.03

    def costs(points):
        found = predicted(whole, points.astype(np.float32), fitted).mean(1)
        return found[:, 0] / 0.1 + found[:, 1] / 10

    result = identify.search(
        costs, first, spread, iterations=1 if args.smoke else 300, population=16, seconds=args.seconds,
        low=np.asarray(whole.low), high=np.asarray(whole.high), seed=args.seed, progress=True,
    )  # fmt: skip
    print(f"fit: {time.process_time() - began[0]:.0f} s of processor time, {time.perf_counter() - began[1]:.0f} s")
    free = jnp.asarray(result.mean, jnp.float32)
    values = np.asarray(whole.values(free))
    for i, label in enumerate(whole.labels):
        print(f"{label:14s} windows {fit.values[i]:10.5g} {fit.interval_text(i):26s} whole tosses {values[i]:10.5g}")
    text = jaxsim.save_mjcf(written(m, jax.tree.map(np.asarray, whole.model(free))))
    head, body = text.split("\n", 1)
    rows = [f"  <!-- {label} = {values[i]:.6g}; of windows {fit.values[i]:.6g}, 95 %: {fit.interval_text(i)} -->"
            for i, label in enumerate(whole.labels)]  # fmt: skip
    text = "\n".join([head, *rows, body])
    (args.out / "cube_fitted.xml").write_text(text, encoding="utf-8")
    before, after = (in_mujoco(x, held_out).mean(0) for x in (model(corners=False), text))
    picture(args.out / "cube.svg", (model(corners=False), text), held_out[:3])
    result = describe(["before: of width", "degrees", "after: of width", "degrees"], [*before, *after])
    finish(bool((after < (0.5 * before[0], 0.7 * before[1])).all()), result, args.smoke)


if __name__ == "__main__":
    main()
