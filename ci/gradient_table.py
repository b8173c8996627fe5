"""Write docs/gradient_table.md: how well the gradient by each field of Model and Data is known, field by field.

For every model, states are taken along a trajectory with random controls. The outputs are everything that a step leaves
in qpos, qvel, act, sensordata and qacc. By each input the forward-mode derivative along a random direction is compared
with central differences of the step at four step sizes (the best counts: a kink or rounding spoils some of them), and
reverse mode with forward mode. Run from the repository: python ci/gradient_table.py [MODEL ...] [--scan N]
"""

import argparse
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import jaxsim  # noqa: E402
from jaxsim.model import FLOATS, OPTION_FLOATS  # noqa: E402

INPUTS = ("qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")
OUTPUTS = ("qpos", "qvel", "act", "sensordata", "qacc")
EPS = (1e-4, 1e-5, 1e-6, 1e-7)
DEFAULT = ("cartpole", "double_pendulum", "hopper", "runner", "arm_gripper")
# prefixes and fields that no output of a step reads: pictures, names, statistics, references for users
NO_EFFECT = ("cam_", "light_", "mat_", "key_", "flex", "skin_", "mesh_", "hfield_", "numeric_", "tuple_")
SUFFIXES = ("_user", "_rgba", "_aabb", "_rbound", "_width", "tolerance")


def inputs_of(m, d):
    """Everything that can be differentiated by: float fields of the model, options, inputs of the state."""
    x = {name: getattr(m, name) for name in FLOATS}
    x |= {f"opt.{name}": getattr(m.opt, name) for name in OPTION_FLOATS}
    x |= {f"d.{name}": getattr(d, name) for name in INPUTS}
    return {name: value for name, value in x.items() if np.size(value)}


def outcome(m, d, x):
    """What a step leaves, as one vector, as a function of the inputs."""
    model = {n: v for n, v in x.items() if "." not in n}
    option = {n[4:]: v for n, v in x.items() if n.startswith("opt.")}
    medium = m.opt.medium
    m = m.replace(**model, opt=m.opt.replace(**option).replace(medium=medium))
    new = jaxsim.step(m, d.replace(**{n[2:]: v for n, v in x.items() if n.startswith("d.")}))
    return jnp.concatenate([jnp.ravel(getattr(new, name)) for name in OUTPUTS])


def compiled(m):
    """(value and derivative along a direction, pull-back of a vector), both of (data, inputs, ...)."""
    forward = jax.jit(lambda d, x, v: jax.jvp(lambda x: outcome(m, d, x), (x,), (v,)))
    backward = jax.jit(lambda d, x, w: jax.vjp(lambda x: outcome(m, d, x), x)[1](w)[0])
    return forward, backward


def states(m, count, seed=0):
    """States along a trajectory with random controls."""
    step = jax.jit(jaxsim.step)
    rng = np.random.default_rng(seed)
    d = jaxsim.make_data(m, 0 if m.nkey else None)
    d = d.replace(qvel=d.qvel + 0.1 * rng.standard_normal(m.nv))
    out = []
    for i in range(30 * count):
        d = step(m, d.replace(ctrl=0.3 * rng.uniform(-1, 1, m.nu)))
        if i % 30 == 29:
            out.append(d)
    return out


def check(forward, backward, d, x, rng):
    """By field: size of the derivative, its error against differences, and that of reverse against forward mode."""
    zero = jax.tree.map(jnp.zeros_like, x)
    y = forward(d, x, zero)[0]
    w = jnp.asarray(rng.standard_normal(y.shape))
    back = backward(d, x, w)
    table = {}
    for name, value in x.items():
        size = jnp.maximum(jnp.abs(value), 0 if name in FLOATS or name.startswith("opt.") else 0.1)
        direction = zero | {name: size * jnp.asarray(rng.standard_normal(value.shape))}
        dy = np.asarray(forward(d, x, direction)[1])
        scale = max(np.abs(dy).max(initial=0), 1e-3)
        gaps = []
        for eps in EPS:
            ends = [forward(d, x | {name: value + s * eps * direction[name]}, zero)[0] for s in (1, -1)]
            plus, minus = (np.asarray(end) for end in ends)
            gaps.append(np.abs((plus - minus) / (2 * eps) - dy).max(initial=0) / scale)
        pulled = float(jnp.vdot(back[name], direction[name]))
        reverse = abs(pulled - float(jnp.vdot(w, dy))) / (scale * np.abs(np.asarray(w)).sum())
        finite = np.isfinite(dy).all() and np.isfinite(back[name]).all()
        table[name] = (np.abs(dy).max(initial=0), min(gaps), reverse, bool(finite))
    return table


def scan(m, count, seed=0, batch=256):
    """How many of `count` random states have a gradient that is not finite (in the precision that JAX is set to)."""

    def loss(x, d):
        new = jaxsim.step(m, d.replace(qpos=x[0], qvel=x[1], ctrl=x[2]))
        return sum(jnp.sum(getattr(new, name) ** 2) for name in ("qpos", "qvel", "sensordata"))

    grad = jax.jit(jax.vmap(jax.grad(loss), in_axes=(0, None)))
    d = jaxsim.make_data(m)
    rng = np.random.default_rng(seed)
    bad = 0
    for _ in range(-(-count // batch)):
        span = rng.choice([0.0, 0.1, 1.0], (batch, 1))  # some at rest exactly
        qpos = np.asarray(d.qpos) + span * rng.standard_normal((batch, m.nq))
        x = qpos, span * 3 * rng.standard_normal((batch, m.nv)), rng.uniform(-1, 1, (batch, m.nu))
        g = grad(tuple(jnp.asarray(v, d.qpos.dtype) for v in x), d)
        bad += int((~np.all([np.isfinite(v).all(1) for v in g], axis=0)).sum())
    return bad, -(-count // batch) * batch


def passive(name):
    return name.startswith(NO_EFFECT) or name.endswith(SUFFIXES)


def render(found, scanned, models):
    """The page, from {field: (size, error, reverse error, finite, model)} and the counts of the scan."""
    lines = [
        "# Gradients, field by field",
        "",
        "Generated by `ci/gradient_table.py`. Outputs: qpos, qvel, act, sensordata and qacc after one step. Errors are",
        "the worst over states and models below, relative to the largest derivative of the outputs (at least 1e-3),",
        "in float64, forward mode against central differences and reverse mode against forward mode.",
        "",
        f"Models: {', '.join(models)}.",
        "",
        "| field | forward against differences | reverse against forward | worst in |",
        "| --- | --- | --- | --- |",
    ]
    still = []
    for name, (size, error, reverse, finite, model) in sorted(found.items()):
        if size == 0 and error == 0:
            still.append(name)
        else:
            lines.append(f"| `{name}` | {error:.1e}{'' if finite else ' (not finite)'} | {reverse:.1e} | {model} |")
    unused = [n for n in still if not passive(n)]
    nature = [n for n in still if passive(n)]
    lines += [
        "",
        f"Zero by nature (pictures, user data, bounds, tolerances): {', '.join(f'`{n}`' for n in nature)}.",
        "",
        "Not checked by these models: nothing uses them, or they are zero (a field moves in proportion to its value):",
        f"{', '.join(f'`{n}`' for n in unused)}.",
        "",
        "Integers, flags and names are structure and have no derivative.",
        "",
    ]
    for model, (bad, count) in scanned.items():
        lines.append(f"{model}: {bad} of {count:,} random states in float32 with a gradient that is not finite.")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=[str(ROOT / "models" / f"{n}.xml") for n in DEFAULT])
    parser.add_argument("--states", type=int, default=2)
    parser.add_argument("--scan", type=int, default=0, metavar="N", help="random states of each model in float32")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "gradient_table.md")
    args = parser.parse_args()
    found, scanned = {}, {}
    jax.config.update("jax_enable_x64", True)
    names = [Path(path).stem for path in args.models]
    for path, model in zip(args.models, names, strict=True):
        m = jaxsim.load_model(path)
        m = m.replace(opt=m.opt.replace(tolerance=1e-14, ls_tolerance=1e-10, iterations=100, ls_iterations=50))
        forward, backward = compiled(m)
        rng = np.random.default_rng(0)
        for d in states(m, args.states):
            for name, row in check(forward, backward, d, inputs_of(m, d), rng).items():
                if name not in found or not row[1] <= found[name][1]:
                    found[name] = (*row, model)
                print(f"{model:20s} {name:28s} {row[0]:9.2e} {row[1]:9.2e} {row[2]:9.2e}", flush=True)
    with jax.enable_x64(False):
        for path, model in zip(args.models, names, strict=True):
            if args.scan:
                scanned[model] = scan(jaxsim.load_model(path), args.scan)
                print(model, scanned[model], flush=True)
    args.out.write_text(render(found, scanned, names), encoding="utf-8")


if __name__ == "__main__":
    main()
