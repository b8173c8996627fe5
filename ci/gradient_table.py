"""Write docs/gradient_table.md: errors of derivatives by each field of Model and Data.

For every model, states are taken along a trajectory with random controls. Every float output of a step, of inverse
dynamics and of `set_const` is differentiated by every float input: forward mode along random directions is compared
with central differences in 80-bit floats (`validation/gradients.py`), reverse mode with forward mode. Usage:

    python ci/gradient_table.py --results DIR [--models NAME ...] [--states N]     (DIR keeps finished results)
    python ci/gradient_table.py --results DIR --scan N [--models NAME ...]         (float32, random bad states)
    python ci/gradient_table.py --results DIR --models                             (only the page)
"""

import argparse
import contextlib
import json
from pathlib import Path

import jax
import numpy as np

import jaxsim
from validation import gradient_models, gradient_scan, gradients
from validation.gradient_page import render

ROOT = Path(__file__).resolve().parent.parent
EXACT = {"tolerance": 1e-22, "ls_tolerance": 1e-12, "iterations": 1000, "ls_iterations": 100}
LONG_SEARCH = {"ccd_tolerance": 1e-12, "ccd_iterations": 200}
# inputs that affect contacts, the only ones for models whose step takes long because of its searches
SHAPING = ("geom_size", "geom_pos", "geom_quat", "body_pos", "body_quat", "mesh_vert", "hfield_size", "hfield_data")
SHAPING += ("jnt_axis", "pair_margin", "pair_friction", "pair_solref", "d.qpos", "d.qvel")
INVERSE = ("everything", "transmissions")
SET_CONST = ("everything", "joints, actuators, sensors", "tendons", "cartpole", "humanoid")


def load(name):
    """Model and its initial state."""
    source, start = gradient_models.own().get(name) or (gradient_models.suite(name), None)
    m = jaxsim.load_model(source)
    d = jaxsim.make_data(m, 0 if m.nkey else None)
    d = d.replace(qvel=d.qvel + 0.1 * np.random.default_rng(0).standard_normal(m.nv))
    return m, d.replace(**start()) if start else d


def nudged(m, seed=0):
    """Model with bodies and geoms turned by 1e-3: in planes and at right angles, features of boxes are tied."""
    rng = np.random.default_rng(seed)

    def turned(quat):
        moved = np.asarray(quat) + gradients.NUDGE * rng.standard_normal(quat.shape)
        return moved / np.linalg.norm(moved, axis=1, keepdims=True)

    return m.replace(body_quat=turned(m.body_quat), geom_quat=turned(m.geom_quat))


def examine(name, function, count):
    """Rows by field of one model and function, the worst of `count` states."""
    m, d = load(name)
    m = nudged(m)
    searched = name in gradient_models.SEARCHED
    m = m.replace(opt=m.opt.replace(**EXACT, **({} if searched else LONG_SEARCH)))
    fields = None
    if searched:
        inputs = gradients.inputs_of(m, d)
        fields = [n for n in SHAPING if n in inputs]
    with gradients.exact_searches() if searched else contextlib.nullcontext():  # long searches are not needed then
        program = gradients.compiled(m, d, function)
        return states_examined(program, m, d, name, function, count, fields)


def states_examined(program, m, d, name, function, count, fields):
    """Rows by field of a compiled program, the worst of `count` states."""
    rows = {}
    if function == "step":
        gap = 3 if name in gradient_models.SHORT else 200 if name in gradient_models.SUITE else 20
        at = gradients.states(program, m, d, count, gap)
    else:
        rng = np.random.default_rng(1)
        at = [d.replace(qacc=rng.standard_normal(m.nv))]
    for seed, state in enumerate(at):
        for field, row in gradients.check(program, m, state, function, seed, fields=fields).items():
            rows.setdefault(field, []).append(row)
    return {field: gradients.worst(many)._asdict() for field, many in rows.items()}


def functions_of(name):
    """Functions that are differentiated for a model."""
    out = ["step"]
    return out + ["inverse"] * (name in INVERSE) + ["set_const"] * (name in SET_CONST)


def file_of(results, *words):
    """Path of a result."""
    return results / ("_".join(words).replace(" ", "_").replace(",", "") + ".json")


def run_table(names, results, count):
    """Write the missing results of all functions of models, in float64."""
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
    """Write the missing scans of `count` random states of models, in float32."""
    for name in names:
        path = file_of(results, "scan", name)
        if not path.exists():
            bad, total = gradient_scan.scan(load(name)[0], count, report=lambda *what: print("not finite:", *what[:2]))
            path.write_text(json.dumps({"model": name, "bad": bad, "states": total}), encoding="utf-8")
            print(f"{name}: {bad} of {total:,}", flush=True)


def collect(results):
    """Results in a folder: tables [{model, function, rows}] and scans [{model, bad, states}]."""
    found = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(results.glob("*.json"))]
    return [f for f in found if "rows" in f], [f for f in found if "bad" in f]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="folder of results, which is read and extended")
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
