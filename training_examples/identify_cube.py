"""Identify contact, friction and shape of a real cube from 400 tosses, and write cube_fitted.xml.

The tosses (`--data`, an .npz with an array (n, 13) for each: position, quaternion, velocity, angular velocity of the
body, 148 Hz) are those of Pfrommer, Halm and Posa, "ContactNets" (CoRL 2020). They are not part of the repository.
Three quarters are fitted, the rest is held out.
First the flight and the 0.1 s after the first impact are fitted by exact derivatives, with first states known up to
their noise. After several impacts derivatives mislead: whole tosses are fitted by a search that begins there, from
first states with new noise in every generation.
Expected: on held-out tosses, from the measured first state on, half the error of a box with friction 0.18.
Writes cube_fitted.xml, cube.html with values, intervals and residuals of the first impacts, and cube.svg.
"""

import argparse
import itertools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from common import describe, finish, options

import jaxsim
from jaxsim import identify
from jaxsim.identify.save import written

WIDTH, RATE, SUBSTEPS = 0.1048, 148, 4
MASS, ROWS, FIRST, AFTER = 0.37, 112, 40, 16  # rows of whole tosses, of first impacts, after them
CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
FACES = np.concatenate([np.eye(3), -np.eye(3)])
POINTS = np.concatenate([CORNERS, FACES])
PARTS = 3  # of the fitted tosses, one a generation of the search
INERTIA = MASS * WIDTH**2 / 6
HALF, ROUND, ROLLING = 0.0518, 0.005, 0.001
SIGMA = {"pos": 0.002, "quat": 0.01}
NOISE = identify.Initial(qvel=np.repeat((0.003, 0.05), 3))  # of first states in the search, a quarter of the measured


def model(corners: bool = True) -> str:
    """MJCF of the cube: spheres at its corners and in the middle of its faces, or a box with MuJoCo's defaults."""
    geom = '<geom name="cube" type="box" size=".0524 .0524 .0524" mass=".37" friction=".18" priority="1"/>'
    if corners:
        shape = f'type="sphere" size="{ROUND}" solref=".007 .8" solimp=".2 .8 .003" priority="1"'
        geom = f'<inertial pos="1e-6 0 0" mass="{MASS}" fullinertia="{INERTIA} {INERTIA} {INERTIA} 0 0 0"/>'
        for i, place in enumerate(POINTS * (HALF - ROUND)):
            name, contact = (f"corner{i}", f'condim="6" friction=".18 .005 {ROLLING}"') if i < 8 else (
                f"face{i - 8}", 'friction=".28"')  # fmt: skip
            geom += f'<geom name="{name}" {shape} {contact} pos="{" ".join(map(str, place))}"/>'
    option = f'timestep="{1 / RATE / SUBSTEPS:.10f}"' + (' cone="elliptic" impratio=".3"' if corners else "")
    return (
        f'<mujoco><option {option}/><worldbody><geom name="table" type="plane" size="5 5 .1"/>'
        f'<body name="cube" pos="0 0 .1"><freejoint name="free"/>{geom}</body></worldbody><sensor>'
        '<framepos name="pos" objtype="xbody" objname="cube"/><framequat name="quat" objtype="xbody" objname="cube"/>'
        "</sensor></mujoco>"
    )


def parameters(m) -> list:
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
        number("inertia", 1.1, inertia, 0.87, 1.147, constants=True),
        number("size", [HALF, HALF, HALF, ROUND], shape, 0.001, 0.056, log=False, constants=True),
        number("face_friction", 0.28, column("geom_friction", 0, faces), 0.02, 2.0),
        number("bulge", 3e-4, bulge, -0.002, 0.003, log=False, constants=True),
    ]  # fmt: skip


def recorded(m, tosses, rows):
    """Recordings at the model's time step from measured first states; a row of a toss is one of `SUBSTEPS` rows."""
    n, k = rows * SUBSTEPS, len(tosses)
    y = np.full((k, n, 7), np.nan)
    for i, toss in enumerate(tosses):
        part = toss[:rows, :7]
        y[i, : len(part) * SUBSTEPS : SUBSTEPS] = part
    first, parts = np.array([toss[0] for toss in tosses]), {"pos": y[..., :3], "quat": y[..., 3:]}
    return identify.recordings(m, np.zeros((k, n, 0)), parts, sigma=SIGMA, qpos=first[:, :7], qvel=first[:, 7:])


def until_first_impact(tosses) -> list[np.ndarray]:
    """Tosses until `AFTER` rows after a corner is first near the table, of those that begin with 8 rows of flight."""
    found = []
    for toss in tosses:
        w, x, y, z = toss[:, 3:7].T
        up = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], 1)  # in the cube's frame
        impact = int(np.argmax(toss[:, 2] - 0.5 * WIDTH * np.abs(up).sum(1) < 0.004))
        found += [toss[: impact + AFTER]] if 8 <= impact <= FIRST - AFTER else []
    return found


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


def predicted(problem, free, tosses, rng) -> np.ndarray:
    """Errors (s, k, 2) of whole tosses for coordinates (s, p), from first states with noise, the same for all s."""
    point, found = problem.start(free), []
    noise = rng.standard_normal(point.shift.shape[1:]).astype(point.shift.dtype)
    for place, y, _ in problem.simulated(point._replace(shift=np.broadcast_to(noise, point.shift.shape))):
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
    parser.add_argument("--seconds", type=float, default=60, help="processor time of the search")


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
    impacts = until_first_impact(fitted)[:60]
    records = recorded(m, impacts, FIRST)
    known = identify.Initial(qpos=np.repeat((5e-4, 3e-3), 3), qvel=np.repeat((0.03, 0.3), 3))
    early = parameters(m)[:-2]  # faces do not touch the table so soon
    fit = identify.identify(
        m, records, early, iterations=1 if args.smoke else 8, horizons=(), initial=known,
        loss=identify.Loss("cauchy", 2.0), progress=True,
    )  # fmt: skip
    print(fit)
    identify.save_report(fit, records, args.out / "cube.html", "Cube, first impacts")
    parts = [fitted[i::PARTS] for i in range(PARTS)]
    whole = [identify.Problem(m, recorded(m, part, ROWS), parameters(m), initial=NOISE) for part in parts]
    first = np.asarray(whole[0].first, float)
    first[: len(fit.point.free)] = fit.point.free
    logs = np.repeat([p.log for p in whole[0].parameters], whole[0].sizes)
    spread = np.where(logs, 0.1, 2e-4)
    spread[list(whole[0].labels).index("gravity")] = 0.005
    spread[list(whole[0].labels).index("inertia")] = 0.03
    generations, rng = itertools.count(), np.random.default_rng(args.seed)

    def costs(points):
        i = next(generations) % PARTS
        found = predicted(whole[i], points.astype(np.float32), parts[i], rng).mean(1)
        return found[:, 0] / 0.1 + found[:, 1] / 10

    result = identify.search(
        costs, first, spread, iterations=1 if args.smoke else 300, population=16, seconds=args.seconds,
        low=np.asarray(whole[0].low), high=np.asarray(whole[0].high), seed=args.seed, progress=True,
    )  # fmt: skip
    print(f"fit: {time.process_time() - began[0]:.0f} s of processor time, {time.perf_counter() - began[1]:.0f} s")
    free = jnp.asarray(result.mean, jnp.float32)
    values = np.asarray(whole[0].values(free))
    impact = [f"{fit.values[i]:.6g}, 95 %: {fit.interval_text(i)}" for i in range(len(fit.values))] + ["none"] * 2
    rows = [f"{label} = {values[i]:.6g}; of first impacts {impact[i]}" for i, label in enumerate(whole[0].labels)]
    print(*rows, sep="\n")
    text = jaxsim.save_mjcf(written(m, jax.tree.map(np.asarray, whole[0].model(free))))
    head, body = text.split("\n", 1)
    text = "\n".join([head, *(f"  <!-- {row} -->" for row in rows), body])
    (args.out / "cube_fitted.xml").write_text(text, encoding="utf-8")
    before, after = (in_mujoco(x, held_out).mean(0) for x in (model(corners=False), text))
    picture(args.out / "cube.svg", (model(corners=False), text), held_out[:3])
    result = describe(["before: of width", "degrees", "after: of width", "degrees"], [*before, *after])
    finish(bool((after < (0.5 * before[0], 0.7 * before[1])).all()), result, args.smoke)


if __name__ == "__main__":
    main()
