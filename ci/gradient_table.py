"""Write docs/gradient_table.md: how well derivatives by each field of Model and Data are known, field by field.

For every model, states are taken along a trajectory with random controls. Of each function (a step, inverse dynamics,
`set_const`) every float output is differentiated by every float input: forward mode along random directions against
central differences in floats of 80 bits (`gradient_check`), reverse mode against forward mode. Run from the repository:

    python ci/gradient_table.py --results DIR [--models NAME ...] [--states N]     (DIR keeps what is done)
    python ci/gradient_table.py --results DIR --scan N [--models NAME ...]         (float32, random bad states)
    python ci/gradient_table.py --results DIR --models                             (only the page)
"""

import argparse
import json
import sys
from pathlib import Path

import jax
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "ci")]

import gradient_check  # noqa: E402
import gradient_models  # noqa: E402
import gradient_scan  # noqa: E402

import jaxsim  # noqa: E402

EXACT = {"tolerance": 1e-22, "ls_tolerance": 1e-12, "iterations": 1000, "ls_iterations": 100}
LONG_SEARCH = {"ccd_tolerance": 1e-12, "ccd_iterations": 200}
SEARCHED = ("convex pairs", "height field", "SDF")  # asked of these: 1e-5
# a step that searches takes long: there only what shapes contacts is moved
SHAPING = ("geom_size", "geom_pos", "geom_quat", "body_pos", "body_quat", "mesh_vert", "hfield_size", "hfield_data")
SHAPING += ("jnt_axis", "pair_margin", "pair_friction", "pair_solref", "d.qpos", "d.qvel")
INVERSE = ("everything", "transmissions")
SET_CONST = ("everything", "joints, actuators, sensors", "tendons", "cartpole", "humanoid")
# prefixes and fields that no output of a step reads: pictures, names, statistics, references for users
NO_EFFECT = ("light_", "mat_", "key_", "flex", "skin_", "numeric_", "tuple_", "stat.", "geom_rgba", "site_rgba")
NO_EFFECT += ("cam_ipd", "cam_poscom0", "cam_pos0", "cam_mat0", "cam_intrinsic")
SUFFIXES = ("_user", "_rgba", "_aabb", "_rbound", "_width", "tolerance", "_noise", "warmstart")


def passive(name):
    return name.startswith(NO_EFFECT) or name.endswith(SUFFIXES)


def load(name):
    """The model and its state to start from."""
    source, start = gradient_models.own().get(name) or (gradient_models.suite(name), None)
    m = jaxsim.load_model(source)
    d = jaxsim.make_data(m, 0 if m.nkey else None)
    d = d.replace(qvel=d.qvel + 0.1 * np.random.default_rng(0).standard_normal(m.nv))
    return m, d.replace(**start()) if start else d


def nudged(m, seed=0):
    """The model with bodies and geoms turned by 1e-3: in planes and at right angles, features of boxes are tied."""
    rng = np.random.default_rng(seed)

    def turned(quat):
        moved = np.asarray(quat) + gradient_check.NUDGE * rng.standard_normal(quat.shape)
        return moved / np.linalg.norm(moved, axis=1, keepdims=True)

    return m.replace(body_quat=turned(m.body_quat), geom_quat=turned(m.geom_quat))


def examine(name, function, count):
    """{field: row} of one model and function, the worst of `count` states."""
    m, d = load(name)
    m = nudged(m)
    searched = name in SEARCHED
    m = m.replace(opt=m.opt.replace(**EXACT, **({} if searched else LONG_SEARCH)))
    rows = {}
    fields = None
    if searched:  # Newton's method ends the searches, which need not be long then
        gradient_check.exact_searches()
        inputs = gradient_check.inputs_of(m, d)
        fields = [n for n in SHAPING if n in inputs]
    program = gradient_check.compiled(m, d, function)
    if function == "step":
        gap = 3 if name in gradient_models.SHORT else 200 if name in gradient_models.SUITE else 20
        at = gradient_check.states(program, m, d, count, gap)
    else:
        rng = np.random.default_rng(1)
        at = [d.replace(qacc=rng.standard_normal(m.nv))]
    for seed, state in enumerate(at):
        for field, row in gradient_check.check(program, m, state, function, seed, fields=fields).items():
            rows.setdefault(field, []).append(row)
    return {field: gradient_check.worst(many)._asdict() for field, many in rows.items()}


def functions_of(name):
    out = ["step"]
    return out + ["inverse"] * (name in INVERSE) + ["set_const"] * (name in SET_CONST)


def file_of(results, *words):
    return results / ("_".join(words).replace(" ", "_").replace(",", "") + ".json")


def run_table(names, results, count):
    jax.config.update("jax_enable_x64", True)
    for name in names:
        for function in functions_of(name):
            path = file_of(results, function, name)
            if not path.exists():
                rows = examine(name, function, count)
                path.write_text(json.dumps({"model": name, "function": function, "rows": rows}), encoding="utf-8")
                worst = max(rows, key=lambda n: rows[n]["error"])
                print(f"{function} {name}: {rows[worst]['error']:.1e} by {worst}", flush=True)


def run_scan(names, results, count):
    for name in names:
        path = file_of(results, "scan", name)
        if not path.exists():
            bad, total = gradient_scan.scan(load(name)[0], count, report=lambda *what: print("not finite:", *what[:2]))
            path.write_text(json.dumps({"model": name, "bad": bad, "states": total}), encoding="utf-8")
            print(f"{name}: {bad} of {total:,}", flush=True)


def collect(results):
    """What the results say: tables [{model, function, rows}] and scans [{model, bad, states}]."""
    found = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(results.glob("*.json"))]
    return [f for f in found if "rows" in f], [f for f in found if "bad" in f]


def worst_cell(tables, field):
    """The worst error by a field and the model it is of, "" where no table moves the field."""
    rows = [
        (t["rows"][field]["error"], t["model"], t["function"])
        for t in tables
        if t["rows"].get(field, {}).get("checked")
    ]
    if not rows:
        return "", ""
    error, model, function = max(rows)
    return f"{error:.0e}", model if function == "step" else f"{model} ({function})"


def field_rows(tables):
    """A line of the page for each field that some output depends on, and the names of all others."""
    near, far = ([t for t in tables if (t["model"] in SEARCHED) == s] for s in (False, True))
    lines, still = [], []
    for field in sorted({f for t in tables for f in t["rows"]}):
        rows = [t["rows"][field] for t in tables if field in t["rows"]]
        checked, kinks = sum(r["checked"] for r in rows), sum(r["kinks"] for r in rows)
        if not checked:
            still.append(field)
            continue
        error, model = worst_cell(near, field)
        searched, _ = worst_cell(far, field)
        reverse = max(r["reverse"] for r in rows)
        wrong = "" if all(r["finite"] for r in rows) else " (not finite)"
        lines.append(f"| `{field}` | {error}{wrong} | {searched} | {reverse:.0e} | {checked:,} | {kinks:,} | {model} |")
    return lines, still


HEAD = """# Gradients, field by field

Generated by `ci/gradient_table.py`, float64. Every float output of a step (and so of `forward` and the sensors), of
`inverse` and of `set_const` is differentiated by every float field of Model and every input of Data.

Forward mode, compiled, is compared with central differences along two random directions a field: one in proportion to
its numbers, one that moves zeros too. Differences are of the same function evaluated with floats of 80 bits
(`ci/extended.py`), whose rounding leaves room for widths of 4e-5, 2e-5 and 1e-5, extrapolated to sixth order. An entry
of an output counts as checked where two extrapolations, and the slopes of both sides, agree to 2e-7; elsewhere it
counts as a kink: a contact begins, a feature changes, a limit is met, or contacts are tied and rounding chooses. Errors
are relative to the largest derivative of that output, at least to a thousandth of its size (of `qfrc_constraint` and
`efc.force`, found as what balances forces, to 1e-6 of `qfrc_smooth`). With CG widths are 4e-3 and less, since its
answers end at 1e-11; for frames of geoms and inertias they are 4e-4 and less. States are those of a trajectory, bodies
and geoms turned by 1e-3 off planes and right angles.
Reverse mode: <u, J v> against <J' u, v>, relative to the sum of the terms.

| field | error | through searches | reverse | entries checked | at kinks | worst in |
| --- | --- | --- | --- | --- | --- | --- |
"""


SWITCHES = """Integers, flags and names are structure and have no derivative. Zero is a switch of MuJoCo's for
`dof_frictionloss` (no row), `sensor_cutoff` (no cutoff), `geom_fluid` (no ellipsoid) and, for free bodies under
implicitfast, `body_ipos`: there the derivative is that of the side without. `body_ipos` and `geom_pos` within 1e-6 of
each other are one frame. M of a body that is "simple" has no room for a moved inertial frame unless
`jaxsim.with_full_inertia` makes it."""

MODELS = """## Models

| model | function | worst error | by | reverse |
| --- | --- | --- | --- | --- |
"""

SCANS = """## Random states

{bad} of {total:,} random states in float32 have a gradient that is not finite, of a sum of all that a step leaves in
the state, the sensors and qacc, by all inputs. The states are bad ones: centres in one point, deep in floors, exactly
at rest, turned by right angles, joints at their limits.

| model | states | not finite |
| --- | --- | --- |
"""


def listed(names):
    return ", ".join(f"`{n}`" for n in names)


def render(tables, scans):
    """The page as text."""
    lines, still = field_rows(tables)
    nature = [n for n in still if passive(n)]
    unused = [n for n in still if not passive(n)]
    parts = [
        HEAD + "\n".join(lines),
        '"Through searches": contacts of convex pairs, height fields and signed distance fields.',
        f"Zero by nature (pictures, user data, bounds, tolerances, starts of searches): {listed(nature)}.",
        f"Not moved by these models: {listed(unused)}." if unused else "",
        SWITCHES,
        MODELS + "\n".join(map(model_row, tables)),
    ]
    if scans:
        bad, total = (sum(s[key] for s in scans) for key in ("bad", "states"))
        rows = (f"| {s['model']} | {s['states']:,} | {s['bad']} |" for s in scans)
        parts.append(SCANS.format(bad=bad, total=total) + "\n".join(rows))
    return "\n\n".join(p for p in parts if p) + "\n"


def model_row(table):
    rows = table["rows"]
    worst = max(rows, key=lambda n: rows[n]["error"])
    reverse = max(r["reverse"] for r in rows.values())
    name = f"{table['model']} of dm_control" if table["model"] in gradient_models.SUITE else table["model"]
    return f"| {name} | {table['function']} | {rows[worst]['error']:.0e} | `{worst}` | {reverse:.0e} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="folder of results, read and added to")
    parser.add_argument("--models", nargs="*", default=[*gradient_models.own(), *gradient_models.SUITE])
    parser.add_argument("--states", type=int, default=2)
    parser.add_argument("--scan", type=int, default=0, metavar="N", help="random states of each model in float32")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "gradient_table.md")
    args = parser.parse_args()
    args.results.mkdir(parents=True, exist_ok=True)
    if args.scan:
        run_scan(args.models, args.results, args.scan)
    else:
        run_table(args.models, args.results, args.states)
    args.out.write_text(render(*collect(args.results)), encoding="utf-8")


if __name__ == "__main__":
    main()
