"""Measurements of `jaxsim bench`: jaxsim and other simulators (peers) on the same model, states and controls.

Every simulator starts from the states after `settle` steps of jaxsim, so that contacts are present. The controls are
the same for all and constant in time: (1 - `noise`) times those of the keyframe plus `noise` times a uniform draw per
world. Times are those of the fastest of several runs; speeds count the steps of all worlds per second.
"""

import dataclasses
import datetime
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.actuation.forces import control_range
from jaxsim.math.safe import Array
from jaxsim.native.compiler import cores
from jaxsim.native.jaxpr import PLAIN_FORMS
from jaxsim.tools import peers
from jaxsim.tools.timing import best_time
from jaxsim.viewer import rollouts

Figures = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class BenchSettings:
    """Settings of a benchmark, with the meaning of the options of `jaxsim bench`."""

    path: str
    nworld: tuple[int, ...] = (256,)
    nstep: int = 100
    keyframe: int | None = None
    settle: int = 100
    noise: float = 0.1
    seed: int = 0
    grad: bool = False
    against: tuple[str, ...] = ()
    mjx_nworld: tuple[int, ...] = (64, 256)
    peer_timeout: float = 300.0
    quiet: bool = False


def bench(m: Model, settings: BenchSettings, load_s: float = 0.0) -> Figures:
    """Report of numbers and strings, ready for JSON, on jaxsim and on the peers that `settings` names."""

    def announce(what: str) -> None:
        if not settings.quiet:
            print(f"measuring {what} ...", file=sys.stderr)

    report: Figures = {"model": _model(m, settings), "machine": describe_machine(), "jaxsim": {"load_s": load_s}}
    own = report["jaxsim"]
    announce("jaxsim: compilation of a step")
    own |= compile_step(m, settings)
    announce("jaxsim: one world")
    start = prepare(m, settings, None)
    own["one_world"] = speed(m, start, settings.nstep)
    own["batches"] = []
    for nworld in settings.nworld:
        announce(f"jaxsim: {nworld} worlds")
        start = prepare(m, settings, nworld)
        own["batches"].append(speed(m, start, settings.nstep))
    if settings.grad:
        announce("jaxsim: gradient")
        own["gradient"] = gradient(m, jax.tree.map(lambda x: x[0], start))
    own["peak_rss_mb"] = peak_rss()
    report["peers"] = {}
    for name in settings.against:
        announce(name)
        report["peers"][name] = peers.measure(name, settings, start)
    report["ratios"] = ratios(report)
    return report


def _model(m: Model, settings: BenchSettings) -> Figures:
    sizes = {name: int(getattr(m, name)) for name in ("nbody", "nq", "nv", "nu", "ngeom")}
    capacities = {"max_contacts": m.max_contacts, "max_constraints": m.max_constraints}
    chosen = {k: v for k, v in dataclasses.asdict(settings).items() if k != "quiet"}
    return {"name": m.modelname, "timestep": float(m.opt.timestep), **sizes, **capacities, "settings": chosen}


def describe_machine() -> Figures:
    """Describe date, device, processor, cores, versions and precision of this run."""
    device = jax.devices()[0]
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": f"{device.platform}: {device.device_kind}",
        "processor": _processor(),
        "cores": cores(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxsim": jaxsim.__version__,
        "precision": jnp.zeros(()).dtype.name,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    except OSError:
        return platform.processor() or "unknown"


def peak_rss() -> float | None:
    """Measure peak resident memory of this process in MB; None on platforms without the module `resource`."""
    try:
        import resource
    except ImportError:
        return None
    scale = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def count_operations(jaxpr: Any) -> int:
    """Number of operations of a jaxpr, including those of every jaxpr and native function inside it."""
    total = 0
    for equation in jaxpr.eqns:
        plain = PLAIN_FORMS.get(equation.primitive.name)
        given = equation.params.values() if plain is None else [plain(equation)]
        inner = [j for value in given for j in _jaxprs(value)]
        total += sum(count_operations(j) for j in inner) if inner else 1
    return total


def _jaxprs(value: Any) -> list[Any]:
    """Jaxprs in a parameter of an equation."""
    if isinstance(value, (tuple, list)):
        return [j for item in value for j in _jaxprs(item)]
    inner = getattr(value, "jaxpr", value)
    return [inner] if hasattr(inner, "eqns") else []


def compile_step(m: Model, settings: BenchSettings) -> Figures:
    """Measure one world's step: times to trace, compile and dispatch it, operations of its jaxpr, program memory."""
    d = jaxsim.make_data(m, settings.keyframe)
    jax.clear_caches()
    fn = jaxsim.jit(jaxsim.step)
    begin = time.perf_counter()
    traced = fn.trace(m, d)
    lowered = traced.lower()
    trace_s = time.perf_counter() - begin
    begin = time.perf_counter()
    compiled = lowered.compile()
    return {
        "trace_s": trace_s,
        "compile_s": time.perf_counter() - begin,
        "operations": count_operations(traced.jaxpr.jaxpr),
        "stages": stage_operations(m, d),
        "dispatch_ms": dispatch(fn, m, d),
        "step_memory_mb": memory(compiled),
    }


STAGES = ("kinematics", "com_pos", "camlight", "tendon", "crb", "factor_m", "collision", "make_constraint")
STAGES += ("transmission", "com_vel", "passive", "reference_constraint", "rne", "fwd_actuation", "fwd_acceleration")
STAGES += ("fwd_constraint", "sensor_pos", "sensor_vel", "sensor_acc", "euler")


def stage_operations(m: Model, d: Data) -> Figures:
    """Number of operations of each stage of the step."""
    return {n: count_operations(jax.make_jaxpr(getattr(jaxsim, n))(m, d).jaxpr) for n in STAGES}


def dispatch(fn: Callable, m: Model, d: Data, repeats: int = 100) -> float:
    """Measure the median time in milliseconds of the call of a compiled step, without waiting for its result."""
    jax.block_until_ready(fn(m, d))
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        out = fn(m, d)
        times.append(time.perf_counter() - begin)
        jax.block_until_ready(out)
    return 1e3 * statistics.median(times)


def memory(compiled: Any) -> Figures | None:
    """Report the memory of a compiled program in MB, by kind; None where the platform does not report it."""
    analysis = compiled.memory_analysis()
    if analysis is None:
        return None
    kinds = ("argument", "output", "temp", "generated_code")
    return {kind: getattr(analysis, f"{kind}_size_in_bytes") / 1e6 for kind in kinds}


def prepare(m: Model, settings: BenchSettings, nworld: int | None) -> Data:
    """Batch of `nworld` worlds with controls, after `settle` steps; for None, one world without a batch axis."""
    d = jaxsim.make_data(m, settings.keyframe, nworld)
    low, high = control_range(m)
    draw = np.random.default_rng(settings.seed).uniform(low, high, d.ctrl.shape)
    ctrl = np.clip((1 - settings.noise) * np.asarray(d.ctrl) + settings.noise * draw, low, high)
    d = d.replace(ctrl=ctrl)
    if settings.settle:
        run, m, d = compile_rollout(m, d, settings.settle)
        d = run(m, d)[0]
    return jax.block_until_ready(d)


RECORDED = ("time", "qpos", "qvel", "act", "sensordata")  # after every step, as MuJoCo's own rollout does


def _advance(m: Model, d: Data, nstep: int) -> tuple[Data, Figures, Array]:
    """Last data of `nstep` steps of a world or a batch; of every step the recorded fields, and (ncon, nefc, niter)."""

    def outputs(d: Data) -> tuple[Figures, Array]:
        return {name: getattr(d, name) for name in RECORDED}, jnp.stack([d.ncon, d.nefc, jnp.max(d.solver_niter)])

    def one(d: Data) -> tuple[Data, Figures, Array]:
        d, (records, counts) = jaxsim.rollout(m, d, nstep=nstep, outputs=outputs, checkpoint="none")
        return d, records, counts

    return jax.vmap(one)(d) if d.time.ndim else one(d)


def compile_rollout(m: Model, d: Data, nstep: int) -> tuple[Callable, Model, Data]:
    """Compile a program of `nstep` steps and make its inputs; the worlds are split over all devices if possible."""
    advance = partial(_advance, nstep=nstep)
    if d.time.ndim and len(jax.devices()) > 1 and d.time.size % len(jax.devices()) == 0:
        m, d = jaxsim.replicate(m), jaxsim.shard(d)
        return jaxsim.over_devices(advance).lower(m, d).compile(), m, d
    return jaxsim.jit(advance).lower(m, d).compile(), m, d


def speed(m: Model, d: Data, nstep: int) -> Figures:
    """Measure steps per second, contacts, constraint rows and iterations on the way, and the memory of the program."""
    nworld = d.time.size
    begin = time.perf_counter()
    run, m, d = compile_rollout(m, d, nstep)
    compile_s = time.perf_counter() - begin
    seconds = best_time(lambda: run(m, d))
    last, _, counts = run(m, d)
    ncon, nefc, niter = np.asarray(counts, float).reshape(-1, 3).T
    steps = nworld * nstep
    return {
        "nworld": nworld,
        "steps_per_s": steps / seconds,
        "compile_s": compile_s,
        "mean_ncon": ncon.sum() / steps,
        "mean_nefc": nefc.sum() / steps,
        "mean_niter": niter.sum() / steps,
        "most_niter": int(niter.max()),
        "most_contacts": int(np.max(last.maxuse_con)),
        "most_constraints": int(np.max(last.maxuse_efc)),
        "dropped_contacts": int(np.sum(last.overflow_contacts)),
        "dropped_constraints": int(np.sum(last.overflow_constraints)),
        "memory_mb": memory(run),
        "diagnostics": rollouts.diagnostics(m, last),
    }


def gradient(m: Model, d: Data) -> Figures:
    """Time of the reverse-mode gradient of a scalar of the next state, and of the step itself."""

    def loss(qpos: Array, qvel: Array, ctrl: Array) -> Array:
        out = jaxsim.step(m, d.replace(qpos=qpos, qvel=qvel, ctrl=ctrl))
        return jnp.sum(out.qpos**2) + jnp.sum(out.qvel**2)

    inputs = (d.qpos, d.qvel, d.ctrl)
    step, grad = jaxsim.jit(loss), jaxsim.jit(jax.grad(loss, argnums=(0, 1, 2)))
    begin = time.perf_counter()
    compiled = grad.lower(*inputs).compile()
    compile_s = time.perf_counter() - begin
    finite = all(bool(jnp.isfinite(x).all()) for x in compiled(*inputs))

    def many(fn: Callable) -> float:
        return best_time(lambda: [fn(*inputs) for _ in range(50)]) / 50

    step_s, grad_s = many(step), many(grad)
    figures = {"compile_s": compile_s, "step_ms": 1e3 * step_s, "gradient_ms": 1e3 * grad_s}
    return figures | {"over_step": grad_s / step_s, "finite": finite}


def ratios(report: Figures) -> Figures:
    """Divide the speed of jaxsim by that of each peer: one world, the fastest batch, compilation."""
    own = report["jaxsim"]
    one = own["one_world"]["steps_per_s"]
    most = max(b["steps_per_s"] for b in own["batches"])
    out = {}
    for name, peer in report["peers"].items():
        if "refused" in peer:
            continue
        pairs = {"one_world": (one, peer.get("one_world")), "batch": (most, peer.get("batch"))}
        found = {k: a / b for k, (a, b) in pairs.items() if b}
        if peer.get("compile_s"):
            found["compile"] = peer["compile_s"] / own["compile_s"]
        out[name] = found
    return out


def to_json(report: Figures) -> str:
    """Format a report as JSON text; numbers that are not finite become null."""

    def clean(x: Any) -> Any:
        if isinstance(x, dict):
            return {k: clean(v) for k, v in x.items()}
        if isinstance(x, (list, tuple)):
            return [clean(v) for v in x]
        if isinstance(x, (float, np.floating)):
            return float(x) if np.isfinite(x) else None
        return int(x) if isinstance(x, np.integer) else x

    return json.dumps(clean(report), indent=2, allow_nan=False)


def table(report: Figures) -> str:
    """Format a report for a terminal."""
    model, machine, own = report["model"], report["machine"], report["jaxsim"]
    lines = [
        f"{model['name'] or model['settings']['path']}: nv {model['nv']}, nu {model['nu']}, ngeom {model['ngeom']}, "
        f"{machine['precision']} on {machine['device']}, {machine['cores']} cores",
        f"load {own['load_s']:.3f} s, trace {own['trace_s']:.2f} s, compile {own['compile_s']:.2f} s, "
        f"{own['operations']:,} operations, dispatch {own['dispatch_ms']:.3f} ms",
    ]
    largest = sorted(own["stages"].items(), key=lambda item: -item[1])[:6]
    lines.append("operations of the largest stages: " + ", ".join(f"{name} {count:,}" for name, count in largest))
    if own["peak_rss_mb"] is not None:
        lines.append(f"peak memory of the process {own['peak_rss_mb']:,.0f} MB")
    if "gradient" in own:
        g = own["gradient"]
        state = "finite" if g["finite"] else "NOT FINITE"
        lines.append(
            f"gradient {g['gradient_ms']:.3f} ms, {g['over_step']:.2f} x the step ({g['step_ms']:.3f} ms), {state}; "
            f"compile {g['compile_s']:.2f} s"
        )
    columns = f"{'contacts':>18}{'constraint rows':>18}{'iterations':>12}{'temp MB':>9}"
    lines += ["", f"{'':24}{'worlds':>7}{'steps/s':>13}{columns}"]
    for b in (own["one_world"], *own["batches"]):
        contacts = f"{b['mean_ncon']:.1f} ({b['most_contacts']}/{model['max_contacts']})"
        rows = f"{b['mean_nefc']:.1f} ({b['most_constraints']}/{model['max_constraints']})"
        temp = f"{b['memory_mb']['temp']:.1f}" if b["memory_mb"] else "-"
        lines.append(
            f"{'jaxsim':24}{b['nworld']:>7}{b['steps_per_s']:>13,.0f}{contacts:>18}{rows:>18}"
            f"{b['mean_niter']:>12.1f}{temp:>9}"
        )
    for name, peer in report["peers"].items():
        lines += _peer_lines(name, peer)
    lines.append("contacts and constraint rows: mean (maximum / capacity); iterations: mean of the solver")
    for name, ratio in report["ratios"].items():
        labels = {"one_world": "one world", "batch": "fastest batch", "compile": "compilation"}
        lines.append(f"jaxsim's speed over {name}'s: " + ", ".join(f"{labels[k]} {v:.2f} x" for k, v in ratio.items()))
    lines += [f"warning: {line}" for b in (own["one_world"], *own["batches"]) for line in b["diagnostics"]]
    return "\n".join(lines)


def _peer_lines(name: str, peer: Figures) -> list[str]:
    if "refused" in peer:
        return [f"{name}: {peer['refused']}"]
    lines = []
    for row in peer["rows"]:
        contacts = f"{row['mean_ncon']:.1f}" if row.get("mean_ncon") is not None else "-"
        lines.append(f"{row['what']:24}{row['nworld']:>7}{row['steps_per_s']:>13,.0f}{contacts:>18}")
    if peer.get("compile_s"):
        lines[-1] += f"   (one world compiles in {peer['compile_s']:.2f} s)"
    return lines
