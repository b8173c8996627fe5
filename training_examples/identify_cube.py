"""Identify contact, friction, inertia and shape of a real cube from 400 tosses, and write cube_fitted.xml.

The tosses (`--data`, an .npz with an array (n, 13) for each: position, quaternion, velocity, angular velocity of the
body, 148 Hz) are those of Pfrommer, Halm and Posa, "ContactNets" (CoRL 2020). They are not part of the repository.
Three quarters are fitted, the rest is held out.
Whole tosses are chaotic: they are cut into windows of 0.17 s, which begin at states smoothed over seven rows. Exact
derivatives fit a part of them, then differences over 3 % fit them all.
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
from scipy.spatial.transform import Rotation

import jaxsim
from jaxsim import identify
from jaxsim.identify.save import written

WIDTH, RATE, SUBSTEPS = 0.1048, 148, 4
MASS, ROWS, SMOOTHED, APART = 0.37, 26, 3, 8  # rows of a window; to each side of its start; between two starts
CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
FACES = np.concatenate([np.eye(3), -np.eye(3)])
POINTS = np.concatenate([CORNERS, FACES])
OTHERS, BATCH = 700, 8  # windows beside those of first impacts; candidates of a batch
FALL = 9.65  # m/s2, as recorded
SOLID, HOLLOW = (0.87, 1.147), (1.28, 1.73)  # inertia of a solid cube, and of one of acrylic of this mass, within 15 %
INERTIA = MASS * WIDTH**2 / 6
HALF, ROUND, ROLLING = 0.0518, 0.005, 0.001
TORSION = 0.0003  # m, torsional friction of a patch of contact of 3 mm at friction 0.16; MuJoCo's 0.005 stops turns
SIGMA = {"pos": 0.002, "quat": 0.01}
SMOOTH = 4e-4, 6e-3  # m and rad, residuals of a parabola where the cube does not touch the table


def model(corners: bool = True) -> str:
    """MJCF of the cube: spheres at its corners and in the middle of its faces, or a box with MuJoCo's defaults."""
    geom = '<geom name="cube" type="box" size=".0524 .0524 .0524" mass=".37" friction=".18" priority="1"/>'
    if corners:
        shape = f'type="sphere" size="{ROUND}" solref=".007 .8" solimp=".2 .8 .003" priority="1"'
        geom = f'<inertial pos="1e-6 0 0" mass="{MASS}" fullinertia="{INERTIA} {INERTIA} {INERTIA} 0 0 0"/>'
        for i, place in enumerate(POINTS * (HALF - ROUND)):
            name, contact = (f"corner{i}", f'condim="6" friction=".18 {TORSION} {ROLLING}"') if i < 8 else (
                f"face{i - 8}", 'friction=".28"')  # fmt: skip
            geom += f'<geom name="{name}" {shape} {contact} pos="{" ".join(map(str, place))}"/>'
    option = f'timestep="{1 / RATE / SUBSTEPS:.10f}"' + (' cone="elliptic" impratio=".3"' if corners else "")
    return (
        f'<mujoco><option {option}/><worldbody><geom name="table" type="plane" size="5 5 .1"/>'
        f'<body name="cube" pos="0 0 .1"><freejoint name="free"/>{geom}</body></worldbody><sensor>'
        '<framepos name="pos" objtype="xbody" objname="cube"/><framequat name="quat" objtype="xbody" objname="cube"/>'
        "</sensor></mujoco>"
    )


def parameters(m, inertias) -> list:
    """Nineteen numbers: contact, friction, gravity, mass centre, inertia, half sizes and radius; the faces' last."""
    spheres = np.array([m.name2id("geom", f"corner{i}") for i in range(8)] + [m.name2id("geom", f"face{i}") for i in
                       range(6)])  # fmt: skip
    corners, faces = spheres[:8], spheres[8:]

    def column(field, j, ids=spheres):
        return lambda m, v: m.replace(**{field: getattr(m, field).at[ids, j].set(v[0])})

    def shape(m, v):
        place = jnp.asarray(POINTS) * (v[:3] - v[3])
        return m.replace(geom_size=m.geom_size.at[spheres, 0].set(v[3]), geom_pos=m.geom_pos.at[spheres].set(place))

    def bulge(m, v):
        return m.replace(geom_size=m.geom_size.at[faces, 0].add(v[0]))

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
        number("friction", 0.18, column("geom_friction", 0, corners), 0.02, 2.0),
        number("rolling", ROLLING, column("geom_friction", 2, corners), 1e-5, 0.02),
        number("timeconst", 0.007, column("geom_solref", 0), shortest, 0.1),
        number("dampratio", 0.8, column("geom_solref", 1), 0.05, 5.0),
        number("dmin", 0.2, column("geom_solimp", 0), 0.01, 0.99),
        number("dmax", 0.8, column("geom_solimp", 1), 0.05, 0.99),
        number("width", 0.003, column("geom_solimp", 2), 3e-4, 0.02),
        number("impratio", 0.3, lambda m, v: m.replace(opt=m.opt.replace(impratio=v[0])), 0.02, 20.0),
        number("gravity", 9.7, gravity, 9.63, 9.82),
        number("centre", [1e-6, 0, 0], lambda m, v: m.replace(body_ipos=m.body_ipos.at[1].set(v)), -0.02, 0.02,
               log=False, constants=True),
        number("inertia", np.mean(inertias), inertia, *inertias, constants=True),
        number("size", [HALF, HALF, HALF, ROUND], shape, 0.001, 0.056, log=False, constants=True),
        number("face_friction", 0.28, column("geom_friction", 0, faces), 0.02, 2.0),
        number("bulge", 3e-4, bulge, -0.002, 0.003, log=False, constants=True),
    ]  # fmt: skip


def windows(toss) -> list[np.ndarray]:
    """Parts of a toss (ROWS, 13) that begin at the measured first state, or at a smoothed one between impacts."""
    found, last = [toss[:ROWS].copy()], 0
    for i in range(APART, len(toss) - ROWS):
        state = smoothed(toss[i - SMOOTHED : i + SMOOTHED + 1]) if i >= last + APART else None
        part = toss[i : i + ROWS].copy()
        moves = np.linalg.norm(part[-1, :3] - part[0, :3]) > 0.01 or abs(part[0, 3:7] @ part[-1, 3:7]) < 0.999
        if state is not None and moves:
            part[0], last = state, i
            found.append(part)
    return found


def impact(toss, before: int = 4, rows: int = ROWS) -> np.ndarray | None:
    """Part of a toss (rows, 13) that begins just before the first impact, at a state by all rows of the flight."""
    turns = Rotation.from_quat(toss[:, [4, 5, 6, 3]])
    low = toss[:, 2] - 0.5 * WIDTH * np.abs(turns.as_matrix()[:, 2]).sum(-1)
    n = int(np.argmax(low < 0.006))
    first = n - before
    if n < 6 or first + rows > len(toss):
        return None
    seconds, middle = (np.arange(n) - first) / RATE, turns[n // 2]
    fall = np.zeros((n, 3))
    fall[:, 2] = 0.5 * FALL * seconds**2
    poses = np.concatenate([toss[:n, :3] + fall, (turns[:n] * middle.inv()).as_rotvec()], 1)
    fitted = np.linalg.lstsq(np.stack([np.ones(n), seconds], 1), poses, rcond=None)[0]
    turn = Rotation.from_rotvec(fitted[0, 3:]) * middle
    part = toss[first : first + rows].copy()
    part[0] = *fitted[0, :3], *np.roll(turn.as_quat(), 1), *fitted[1, :3], *turn.inv().apply(fitted[1, 3:])
    return part


def smoothed(rows) -> np.ndarray | None:
    """State (13,) in the middle of rows by parabolas in time, or None where these do not fit, as in an impact."""
    seconds = (np.arange(len(rows)) - SMOOTHED) / RATE
    powers = seconds[:, None] ** np.arange(3)
    turns = Rotation.from_quat(rows[:, [4, 5, 6, 3]])
    middle = turns[SMOOTHED]
    poses = np.concatenate([rows[:, :3], (middle.inv() * turns).as_rotvec()], 1)
    fitted = np.linalg.lstsq(powers, poses, rcond=None)[0]
    off = np.sqrt(np.square(powers @ fitted - poses).reshape(-1, 2, 3).mean((0, 2)))
    if (off > SMOOTH).any():
        return None
    x, y, z, w = (middle * Rotation.from_rotvec(fitted[0, 3:])).as_quat()
    return np.concatenate([fitted[0, :3], (w, x, y, z), fitted[1]])


def recorded(m, parts):
    """Recordings of windows (k, rows, 13) at the model's time step; a row of a window is one of `SUBSTEPS` rows."""
    n, k = parts.shape[1] * SUBSTEPS, len(parts)
    y, first = np.full((k, n, 7), np.nan), parts[:, 0]
    y[:, ::SUBSTEPS] = parts[..., :7]
    columns = {"pos": y[..., :3], "quat": y[..., 3:]}
    return identify.recordings(m, np.zeros((k, n, 0)), columns, sigma=SIGMA, qpos=first[:, :7], qvel=first[:, 7:])


def errors(y, measured) -> np.ndarray:
    """Mean errors (..., 2) of poses (..., rows, 7) over rows: share of the width, degrees."""
    apart = np.linalg.norm(y[..., :3] - measured[..., :3], axis=-1) / WIDTH
    along = np.clip(np.abs((y[..., 3:7] * measured[..., 3:7]).sum(-1)), 0, 1)
    return np.stack([apart.mean(-1), 2 * np.degrees(np.arccos(along)).mean(-1)], -1)


def residuals(problem, points, parts) -> np.ndarray:
    """Errors (s, k, n, 6) of windows in units of 0.02 of the width and 2 degrees, for coordinates (s, p)."""
    found = []
    for i in range(0, len(points), BATCH):
        some = points[np.minimum(np.arange(i, i + BATCH), len(points) - 1)].astype(np.float32)
        y = np.concatenate([y[:, :, ::SUBSTEPS] for _, y, _ in problem.simulated(problem.start(some))], 1)
        turned = Rotation.from_quat(np.roll(parts[..., 3:7], -1, -1).reshape(-1, 4)).inv()
        for x in y[: len(points) - i].astype(float):
            r = (turned * Rotation.from_quat(np.roll(x[..., 3:], -1, -1).reshape(-1, 4))).as_rotvec()
            place = (x[..., :3] - parts[..., :3]) / (0.02 * WIDTH)
            found.append(np.concatenate([place, np.degrees(r).reshape(place.shape) / 2], -1))
    return np.nan_to_num(np.array(found), nan=1e3)


def descend(problem, free, spread, parts, seconds: float, iterations: int) -> np.ndarray:
    """Coordinates after Gauss-Newton with differences over +-`spread`, in which impacts that move average out.

    Each window has a weight by its error (Cauchy). Every iteration tries eight steps.
    """
    began, damping = time.process_time(), 0.003
    low, high = np.asarray(problem.low, float), np.asarray(problem.high, float)
    for i in range(iterations):
        points = np.clip(free + np.concatenate([0 * spread[None], np.diag(spread), -np.diag(spread)]), low, high)
        r = residuals(problem, points, parts)
        square = np.square(r).sum(-1).mean(-1)
        weight = np.sqrt(1 / (1 + square[0] / 2))[:, None, None]
        ahead, back = ((weight * x).reshape(len(x), -1) for x in np.split(r[1:], 2))
        jacobian = (ahead - back) / 2
        normal, gradient = jacobian @ jacobian.T, jacobian @ (weight * r[0]).ravel()
        trials = []
        for scale in damping * np.array([0.1, 1, 10, 100]):
            move = np.linalg.solve(normal + scale * np.diag(np.diag(normal)), -gradient)
            trials += [np.clip(free + share * np.clip(move, -10, 10) * spread, low, high) for share in (1, 0.5)]
        costs = np.log1p(np.square(residuals(problem, np.array(trials), parts)).sum(-1).mean(-1) / 2).mean(-1)
        first, best = np.log1p(square[0] / 2).mean(), int(np.argmin(costs))
        spent = time.process_time() - began
        print(f"differences, iteration {i + 1}: cost {first:.5f}, then {costs[best]:.5f}; {spent:.0f} s")
        if costs[best] >= first:
            break
        free, damping = trials[best], max(damping * 10.0 ** (best // 2 - 1), 1e-5)
        if spent > seconds:
            break
    return free


def in_mujoco(text, toss) -> np.ndarray:
    """Poses (n, 7) of a whole toss from its measured first state, in MuJoCo."""
    import mujoco

    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = toss[0, :7], toss[0, 7:]
    rows = [toss[0, :7].copy()]
    for _ in toss[1:]:
        mujoco.mj_step(m, d, SUBSTEPS)
        rows.append(d.qpos.copy())
    return np.array(rows)


def picture(path: Path, models, tosses) -> None:
    """Draw height and rotation error of held-out tosses, measured, before and after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained")
    grid = figure.subplots(2, 3, sharex=True)
    for toss, axes in zip(tosses, grid.T, strict=False):
        seconds = np.arange(len(toss)) / RATE
        for text, color, label in zip(models, ("tab:orange", "tab:blue"), ("before", "after"), strict=True):
            y = in_mujoco(text, toss)
            axes[0].plot(seconds, y[:, 2], color=color, lw=1, label=label)
            axes[1].plot(seconds, errors(y[:, None], toss[:, None])[:, 1], color=color, lw=1, label=label)
        axes[0].plot(seconds, toss[:, 2], "k:", lw=1.5, label="measured")
        axes[1].set(xlabel="s")
    grid[0, 0].set(ylabel="height (m)")
    grid[1, 0].set(ylabel="rotation error (degrees)")
    grid[0, 0].legend()
    figure.savefig(path)
    print(f"plot: {path}")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, default=Path("cube_tosses.npz"), help="the tosses, .npz")
    parser.add_argument("--seconds", type=float, default=60, help="processor time of the second stage")
    parser.add_argument("--fold", type=int, default=3, choices=range(4), help="quarter of the tosses that is held out")
    parser.add_argument("--solid", action="store_true", help="inertia within 15 % of a solid cube's")


def read(path: Path) -> list[np.ndarray]:
    if not path.exists():
        raise SystemExit(f"{path} does not exist: pass the tosses with --data")
    with np.load(path) as record:
        return [record[name].astype(float) for name in record.files]


def main():
    args = options(__doc__, x64=False, add=add_options)
    tosses = read(args.data)
    order = np.random.default_rng(args.seed).permutation(len(tosses))
    order = np.roll(order, (3 - args.fold) * (len(tosses) // 4))  # the quarter held out last
    count = 40 if args.smoke else int(0.75 * len(tosses))
    fitted, held_out = ([tosses[i] for i in part] for part in (order[:count], order[int(0.75 * len(tosses)) :]))
    m = jaxsim.load_model(model())
    numbers = parameters(m, SOLID if args.solid else HOLLOW)
    began = time.process_time(), time.perf_counter()
    rng = np.random.default_rng(args.seed)
    others = rng.permutation(np.array([part for toss in fitted for part in windows(toss)]))[:OTHERS]
    parts = rng.permutation(np.concatenate([[x for toss in fitted if (x := impact(toss)) is not None], others]))
    records = recorded(m, parts[:150])
    early = numbers[:-2]  # what faces do is little in a window: derivatives would leave them out
    fit = identify.identify(
        m, records, early, iterations=1 if args.smoke else 8, horizons=(), loss=identify.Loss("cauchy", 2.0),
        progress=True, held_out=None,
    )  # fmt: skip
    print(fit)
    identify.save_report(fit, records, args.out / "cube.html", "Cube, windows of 0.17 s")
    whole = identify.Problem(m, recorded(m, parts), numbers)
    first = np.asarray(whole.first, float)
    first[: len(fit.point.free)] = fit.point.free
    logs = np.repeat([p.log for p in whole.parameters], whole.sizes)
    spread = np.where(logs, 0.03, 6e-5)
    spread[list(whole.labels).index("gravity")] = 0.0015
    spread[list(whole.labels).index("inertia")] = 0.01
    spread[list(whole.labels).index("rolling")] = 0.15  # a small share of the friction
    found = descend(whole, first, spread, parts, args.seconds, 1 if args.smoke else 8)
    print(f"fit: {time.process_time() - began[0]:.0f} s of processor time, {time.perf_counter() - began[1]:.0f} s")
    free = jnp.asarray(found, jnp.float32)
    values = np.asarray(whole.values(free))
    by = [f"{fit.values[i]:.6g}, 95 %: {fit.interval_text(i)}" for i in range(len(fit.values))] + ["none"] * 2
    rows = [f"{label} = {values[i]:.6g}; by derivatives {by[i]}" for i, label in enumerate(whole.labels)]
    print(*rows, sep="\n")
    text = jaxsim.save_mjcf(written(m, jax.tree.map(np.asarray, whole.model(free))))
    head, body = text.split("\n", 1)
    text = "\n".join([head, *(f"  <!-- {row} -->" for row in rows), body])
    (args.out / "cube_fitted.xml").write_text(text, encoding="utf-8")
    before, after = (
        np.mean([errors(in_mujoco(x, toss), toss) for toss in held_out], 0) for x in (model(corners=False), text)
    )
    picture(args.out / "cube.svg", (model(corners=False), text), held_out[:3])
    result = describe(["before: of width", "degrees", "after: of width", "degrees"], [*before, *after])
    finish(bool((after < (0.5 * before[0], 0.7 * before[1])).all()), result, args.smoke)


if __name__ == "__main__":
    main()
