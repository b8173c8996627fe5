"""Kernels of a GPU, run on a CPU from their PTX by an emulator, each compared with JAX on the same operands.

    python ci/gpu_emulate.py --emulator FOLDER humanoid quadruped --what step grad
    python ci/gpu_emulate.py --emulator FOLDER --what step grad --nworld 2 --json FILE      all models, and a table

FOLDER holds the modules `ptxemu` (PTX to C, one coroutine a thread, checks of every access) and `cost` (SASS by ptxas
and nvdisasm, weighted by the emulator's counts). Needs gcc on x86-64 Linux, JAX's CUDA plugin, and the packages
nvidia-cuda-nvrtc, nvidia-cuda-nvcc and nvidia-cuda-nvdisasm; no GPU. It prints a row for each model, with `--kernels`
one for each kernel: races, accesses outside of operands, functions left to XLA, results further from JAX than
`--tolerance`, instructions of warps a world, code, registers and spilled bytes. A result counts as "rounding", not as
"beyond", if JAX's operations move it as far when they round otherwise (`rounding.py`). Nothing in it is a measurement.
The exit status is the number of programs with a complaint, or that do not run.
"""

import argparse
import gc
import importlib
import json
import os
import pickle
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ["JAX_PLATFORMS"] = "cpu"
# each program runs once
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

import gpu_offline
import jax
import jax.numpy as jnp
import numpy as np
import rounding

import jaxsim
from jaxsim.core.types import Backend
from jaxsim.engine.solver import kernel as solver
from jaxsim.native import function, matrices, pool, stage
from jaxsim.native import launch as kernels
from jaxsim.native import tile_source as tile
from jaxsim.native.jaxpr import GPU, Var
from jaxsim.native.nvrtc import ptx_of
from jaxsim.xla.compat import mlir

MODELS = Path(__file__).resolve().parent.parent / "models"
FUNCTIONS = (stage.STAGE, solver.SOLVE, pool.POOL, matrices.MATRICES)
RACES = ("race", "ordered by a shuffle alone")
OUTSIDE = ("out of bounds", "not aligned", "write to an input")
MOST_ROUNDING = 4  # a kernel may be so much further from JAX than JAX is from itself, rounded otherwise
MOST_PTX = 1 << 20  # characters of a kernel that gcc compiles without passes
CLOCK = 1.755  # GHz, of an H100, for models of time
# a function of arrays by operations of XLA alone, within a program whose native functions are emulated
BY_XLA = function.NativeFunction(
    name="reference",
    plain=lambda f, *x: f(*x),
    results=lambda f, x: jax.eval_shape(f, *x),
    programs={},
    label=lambda _: "the reference",
    backend=lambda _: Backend.XLA,
)
COLUMNS = ("launches", "races", "outside", "other", "by XLA", "beyond", "rounding", "instructions", "PTX", "KB")
COLUMNS += ("code KB", "registers", "spilled", "issue ms", "latency ms", "program")
FAULTS = ("races", "outside", "other", "by XLA", "beyond")
OF_TABLE = ("launches", "instructions", "KB", "code KB", "faults", "rounding", "program")


class Doubt(NamedTuple):
    """A kernel's results of which some are further from JAX's than the tolerance."""

    name: str
    check: int  # its place in `Emulated.checked`
    by_jax: Callable
    operands: list[np.ndarray]
    found: list[np.ndarray]
    want: list[np.ndarray]
    apart: list[float]


class Emulated:
    """Takes the place of a GPU: kernels that have been launched, and how far their results are from JAX's."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.ptxemu = importlib.import_module("ptxemu")
        self.compiled: dict[str, Any] = {}
        self.rows: list[dict[str, Any]] = []
        self.checked: list[tuple[str, float]] = []
        self.doubts: list[Doubt] = []
        # how far results beyond the tolerance are, and JAX rounded otherwise
        self.beyond: dict[str, str] = {}
        self.rounding: dict[str, str] = {}

    def begin(self) -> None:
        """Forget what another program did."""
        self.rows, self.checked, self.doubts, self.beyond, self.rounding = [], [], [], {}, {}

    def install(self) -> None:
        """Let programs for a CPU be those of a GPU from now on, launched here."""
        kernels.launch = self.launch
        write, whole = tile.tile_source, self.args.as_for

        def as_for_many(flat: Any, worlds: Any, count: int, lanes: int | None = None) -> Any:
            found = write(flat, worlds, whole, lanes)
            return found._replace(text=found.text.replace(f"if (world < {whole})", f"if (world < {count})"))

        tile.tile_source = as_for_many
        tile.launch = partial(self.kernel_of_stage, tile.launch)
        for f in FUNCTIONS:
            if f is not stage.STAGE:
                f.programs[GPU] = partial(self.program, f, f.programs[GPU])
            mlir.register_lowering(f.primitive, partial(function.lowering, f, GPU), platform="cpu")

    def kernel_of_stage(self, run: Callable, flat: Any, worlds: Sequence[bool], count: int, operands: Any) -> list:
        """A kernel of a stage, compared with its operations by JAX."""

        def by_jax(*operands: Any) -> list[Any]:
            env = dict(zip(flat.inputs, zip(operands, worlds, strict=True), strict=True))
            for op in flat.operations:
                env |= stage.by_jax(op, env)
            want = [env[v] if isinstance(v, Var) else (jnp.asarray(v), False) for v in flat.outputs]
            return [x if w else jnp.broadcast_to(x, (count, *x.shape)) for x, w in want]

        found = run(flat, worlds, count, operands)
        self.compare("tile", found, by_jax, operands)
        return found

    def program(self, f: Any, run: Callable, plan: Any, worlds: Sequence[bool], count: int, operands: Any) -> Any:
        """The program of a native function, compared with what it means."""
        found = run(plan, worlds, count, operands)
        if found is not None and any(worlds):
            by_jax = partial(f.by_jax, plan=plan, worlds=tuple(worlds))
            self.compare(f.name, found, lambda *x: list(by_jax(*x)), operands)
        return found

    def compare(self, name: str, found: Sequence[Any], by_jax: Callable, operands: Sequence[Any]) -> None:
        """Note how far results are from those of JAX, when the program runs."""

        def note(found: list, want: list, operands: list) -> None:
            apart = [difference(x, y) for x, y in zip(found, want, strict=True)]
            if not max(apart, default=0) <= self.args.tolerance:
                given = [list(map(np.array, x)) for x in (operands, found, want)]
                self.doubts.append(Doubt(name, len(self.checked), by_jax, *given, apart))
            self.checked.append(worst(name, apart, want))

        jax.debug.callback(note, list(found), list(BY_XLA(by_jax, *operands)), list(operands))

    def settle(self) -> None:
        """Leave differences that are nothing but rounding out of what was noted."""
        for doubt in self.doubts:
            beyond = [k for k, apart in enumerate(doubt.apart) if not apart <= self.args.tolerance]
            rest, excused = list(doubt.apart), self.zeros(doubt, beyond)
            excused |= self.rounded(doubt, [k for k in beyond if k not in excused])
            for k in excused:
                rest[k] = 0.0
            self.checked[doubt.check] = worst(doubt.name, rest, doubt.want)
        self.doubts = []

    def zeros(self, doubt: Doubt, beyond: Sequence[int]) -> set[int]:
        """The results that are zero but for rounding, of those beyond the tolerance."""
        small = [k for k in beyond if is_small(doubt.found[k], doubt.want[k], doubt.operands)]
        again = jax.jit(partial(BY_XLA, doubt.by_jax))(*map(rounded, doubt.operands)) if small else []
        return {k for k in small if is_rounding(doubt.want[k], again[k])}

    def rounded(self, doubt: Doubt, beyond: Sequence[int]) -> set[int]:
        """The results that JAX's own operations, rounded otherwise, move as far, of those beyond the tolerance."""
        if not beyond:
            return set()
        runs = rounding.moved(lambda *x: [doubt.by_jax(*x)[k] for k in beyond], doubt.operands)
        within: set[int] = set()
        for k, *moved in zip(beyond, *runs, strict=True):
            far = max(difference(x, doubt.want[k]) for x in moved)
            label = f"kernel {doubt.check}, {result(doubt.name, k, doubt.want)}"
            is_excused = is_within(doubt.found[k], doubt.want[k], moved)
            noted = self.rounding if is_excused else self.beyond
            noted[label] = f"{doubt.apart[k]:.1e}, JAX rounded otherwise {far:.1e}"
            within |= {k} if is_excused else set()
        return within

    def launch(self, source: str, name: str, operands: Sequence[Any], out: Any, how: kernels.Launch) -> Any:
        """In place of `native.launch.launch`."""
        shapes = out if isinstance(out, list) else [out]
        shapes = [jax.ShapeDtypeStruct(s.shape, s.dtype) for s in shapes]
        found = jax.pure_callback(partial(self.run, source, name, shapes, how), tuple(shapes), *operands)
        return list(found) if isinstance(out, list) else found[0]

    def run(self, source: str, name: str, shapes: Sequence[Any], how: kernels.Launch, *operands: Any) -> tuple:
        """Results of a kernel."""
        if source not in self.compiled:
            ptx = ptx_of(source)  # gcc's passes take longer than they save; without them a kernel needs more stack
            self.compiled[source] = self.ptxemu.Kernel(ptx, "-O0" if len(ptx) < MOST_PTX else "-O1")
        kernel, n = self.compiled[source], self.args.nworld
        given = [np.ascontiguousarray(np.asarray(x)) for x in operands]
        given = [x.view(np.uint8) if x.dtype == bool else x for x in given]
        outs: list[np.ndarray] = []
        for order in self.args.order:
            outs = [_poisoned(s) for s in shapes]
            options = {"order": order, "seed": 1, "preempt": self.args.preempt, "profile": order == self.args.order[0]}
            report = kernel.run(given, outs, how.blocks, how.threads, how.shared, **options)
            own = sum(x.nbytes for x in given if x.ndim and x.shape[0] == n)
            self.rows.append(
                {
                    "name": name,
                    "order": order,
                    "ptx": kernel.ptx,
                    "found": [kernel.show(f) for f in report.bad],
                    "blocks": how.blocks,
                    "threads": how.threads,
                    "shared": how.shared,
                    "nworld": n,
                    "warp": report.warp_instructions,
                    "lane": report.lane_instructions,
                    "instructions": kernel.t.instructions,
                    "blocks_lines": kernel.t.blocks,
                    "block_warp": report.block_warp,
                    "block_lane": report.block_lane,
                    "mem_warp": report.mem_warp,
                    "mem_wave": report.mem_wave,
                    "mem_lanes": report.mem_lanes,
                    "mem": {line: (shared, size) for line, shared, size in kernel.t.pcs},
                    "in_bytes": own,
                    "shared_bytes": sum(x.nbytes for x in given) - own,
                    "out_bytes": sum(o.nbytes for o in outs),
                }
            )
        return tuple(o.view(s.dtype).reshape(s.shape) for o, s in zip(outs, shapes, strict=True))


def _poisoned(s: Any) -> np.ndarray:
    """Memory for a result, filled with what no kernel writes."""
    dtype = np.dtype(np.uint8 if s.dtype == bool else s.dtype)
    return np.frombuffer(bytearray(b"\xff" * (int(np.prod(s.shape)) * dtype.itemsize)), dtype).reshape(s.shape)


def difference(found: Any, want: Any) -> float:
    """The largest difference over the largest entry; of integers and masks the number of entries that differ."""
    x, y = np.asarray(found), np.asarray(want)
    if x.size == 0:
        return 0.0
    if x.dtype.kind != "f":
        return float(np.sum(x != y))
    if np.any(np.isnan(x) != np.isnan(y)):
        return float("inf")
    with np.errstate(invalid="ignore"):
        apart = np.where((x == y) | np.isnan(y), 0, np.abs(x.astype(np.float64) - y))
    size = np.abs(np.where(np.isfinite(y), y, 0)).max()
    return float(apart.max()) / max(float(size), 1e-30)


def worst(name: str, apart: Sequence[float], want: Sequence[Any]) -> tuple[str, float]:
    """The result of a kernel that is furthest from JAX's, and how far it is."""
    if not apart:
        return name, 0.0
    k = max(range(len(apart)), key=lambda k: apart[k])
    return result(name, k, want), apart[k]


def result(name: str, k: int, want: Sequence[Any]) -> str:
    """The name of a result of a kernel."""
    return f"{name}, result {k} of {len(want)}, {np.shape(want[k])}"


def is_small(found: Any, want: Any, operands: Sequence[Any]) -> bool:
    """Whether both arrays are of the size of a rounding error of the largest operand, or of one, if that is less."""
    x, y = np.asarray(found), np.asarray(want)
    if x.size == 0 or x.dtype.kind != "f":
        return False
    real = [np.asarray(v) for v in operands if np.asarray(v).dtype.kind == "f" and np.size(v)]
    size = max((np.abs(np.where(np.isfinite(v), v, 0)).max() for v in real), default=0)
    return bool(max(np.abs(x).max(), np.abs(y).max()) <= np.finfo(x.dtype).eps * min(size, 1))


def rounded(x: np.ndarray) -> np.ndarray:
    """An operand whose real numbers are changed in their last place, half of them up and half of them down."""
    if x.dtype.kind != "f":
        return x
    up = np.random.default_rng(x.size).random(x.shape) < 0.5
    return np.where(np.isfinite(x), np.nextafter(x, np.where(up, np.inf, -np.inf).astype(x.dtype)), x)


def is_rounding(want: Any, again: Any) -> bool:
    """Whether an array that is zero, or of rounding size, has no digit that operands determine.

    `again` is the same array of operands that differ in their last place: it has other digits, or is zero as well.
    """
    x, y = np.asarray(want, np.float64), np.asarray(again, np.float64)
    return bool(np.abs(y - x).max() >= 0.1 * np.abs(x).max())


def is_within(found: Any, want: Any, moved: Sequence[Any]) -> bool:
    """Whether a result differs from JAX's by no more than JAX's own, if its operations round otherwise.

    Integers and masks may differ where they do in one of these runs, numbers by so many times as much as the run that
    differs most.
    """
    if np.asarray(want).dtype.kind != "f":
        return not np.any((found != want) & ~np.any([x != want for x in moved], axis=0))
    return difference(found, want) <= MOST_ROUNDING * max(difference(x, want) for x in moved)


def states(m: Any, count: int, steps: int) -> Any:
    """Worlds after some steps with random velocities and controls."""
    first = jaxsim.make_data(m)

    def one(key: Any) -> Any:
        a, b = jax.random.split(key)
        moving = first.qvel + 0.5 * jax.random.normal(a, first.qvel.shape)
        return first.replace(qvel=moving, ctrl=0.3 * jax.random.normal(b, first.ctrl.shape))

    d = jax.vmap(one)(jax.random.split(jax.random.PRNGKey(0), count))
    run = jax.jit(jax.vmap(lambda m, d: jaxsim.rollout(m, d, nstep=steps)[0], in_axes=(None, 0)))
    return jax.tree.map(np.asarray, run(m, d))


def cost_of(rows: Sequence[dict[str, Any]], as_for: int) -> list[dict[str, Any]]:
    """What kernels cost by their SASS, one for each launch."""
    cost = importlib.import_module("cost")
    return [cost.of_kernel(row, as_for, CLOCK, 250)[0] for row in rows]


def summary(emulated: Emulated, args: argparse.Namespace, left: Sequence[str], program: float) -> dict[str, Any]:
    """The figures of a program that ran.

    `left` names what has no kernel; `program` is how far its results are from those of the whole by JAX.
    """
    rows = emulated.rows
    found = list(dict.fromkeys(text for row in rows for text in row["found"]))
    races = [text for text in found if text.startswith(RACES)]
    outside = [text for text in found if text.startswith(OUTSIDE)]
    first = [row for row in rows if row["order"] == args.order[0]]
    costs = cost_of(first, args.as_for)
    beyond = [name for name, apart in emulated.checked if not apart <= args.tolerance]
    return {
        "launches": len(first),
        "races": len(races),
        "outside": len(outside),
        "other": len(found) - len(races) - len(outside),
        "by XLA": len(left),
        "beyond": len(beyond),
        "rounding": len(emulated.rounding),
        "instructions": round(sum(c["sass_world"] for c in costs)),
        "PTX": round(sum(c["ptx_world"] for c in costs)),
        "KB": round(sum(c["unique_kb"] for c in costs), 1),
        "code KB": round(sum(c["code_kb"] for c in costs)),
        "registers": max(c["registers"] for c in costs),
        "spilled": sum(sum(c["spill"][1:]) for c in costs),
        "issue ms": round(sum(c["issue_ms"] for c in costs), 3),
        "latency ms": round(sum(c["latency_ms"] for c in costs), 3),
        "program": f"{program:.1e}",
        "complaints": found,
        "left": list(left),
        "worst": emulated.beyond,
        "rounded": emulated.rounding,
        "kernels": costs,
    }


def of_kernel(c: dict[str, Any]) -> str:
    """A line that says what one kernel costs."""
    return (
        f"    {c['kernel']}: {c['threads']} threads, {c['shared']:,} bytes shared, {c['registers']} registers, spilled "
        f"{c['spill'][1]} / {c['spill'][2]}, {c['resident']}, {c['sass_world']:,.0f} instructions a world (PTX "
        f"{c['ptx_world']:,.0f}, lanes busy {c['busy_lanes']:.2f}), code {c['code_kb']:.0f} KB, "
        f"{c['unique_kb']:.1f} KB a world, issue {c['issue_ms']:.3f} ms, latency {c['latency_ms']:.3f} ms"
    )


def prepare(name: str, args: argparse.Namespace) -> dict[tuple[str, str], tuple[Any, Any, Any]]:
    """A model, worlds, and what each of its programs gives by operations of XLA."""
    m = jaxsim.load_model(MODELS / f"{name}.xml" if (MODELS / f"{name}.xml").exists() else Path(name))
    d = states(m, args.nworld, args.steps)
    plain = m.replace(opt=m.opt.replace(backend="xla"))
    run = lambda what: jax.tree.map(np.asarray, jax.jit(gpu_offline.PROGRAMS[what])(plain, d))  # noqa: E731
    return {(name, what): (m, d, run(what)) for what in args.what}


def emulate(emulated: Emulated, args: argparse.Namespace, what: str, m: Any, d: Any, want: Any) -> dict[str, Any]:
    """The figures of a program of a model, or its error."""
    emulated.begin()
    lowered: list[Any] = []
    try:
        program = jax.jit(partial(gpu_offline.PROGRAMS[what]))
        choices = function.choices_of(lambda: lowered.append(program.lower(m, d)))
        got = lowered[0].compile()(m, d)
        jax.effects_barrier()
        emulated.settle()
        apart = [difference(x, y) for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True)]
        left = [f"left to XLA: {c.label}: {c.cause}" for c in choices if c.cause is not None]
        return summary(emulated, args, left, max(apart))
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def report(label: str, f: dict[str, Any], spent: float, each_kernel: bool) -> list[str]:
    """The lines that say what the figures of a program are."""
    if "error" in f:
        return [f"| {label} | does not run: {f['error']} |"]
    numbers = [f"{f[c]:,}" if isinstance(f[c], int) else str(f[c]) for c in COLUMNS]
    lines = [f"| {label} | " + " | ".join([*numbers, f"{spent:.0f}"]) + " |"]
    lines += map(of_kernel, f["kernels"] if each_kernel else ())
    lines += [f"    {text}" for text in (*f["complaints"][:20], *f["left"])]
    lines += [f"    beyond: {name} {text}" for name, text in f["worst"].items()]
    return [*lines, *(f"    rounding: {name} {text}" for name, text in f["rounded"].items())]


def has_fault(f: dict[str, Any]) -> bool:
    """Whether a program does not run, or has a complaint."""
    return any(f.get(k) for k in ("complaints", "left", "worst", "error"))


def each_alone(args: argparse.Namespace) -> dict[str, Any]:
    """The figures of all models that the file of figures does not hold yet, each by a process of its own."""
    figures = read(args.json) if args.json.exists() else {}
    for name in sorted(path.stem for path in MODELS.glob("*.xml")):
        missing = [what for what in args.what if f"{name}, {what}" not in figures]
        if not missing:
            continue
        own = args.json.with_suffix(f".{name}.json")
        command = [sys.executable, __file__, name, *sys.argv[1:], "--what", *missing, "--json", str(own)]
        ended = ""
        try:
            subprocess.run(command, timeout=args.limit)
        except subprocess.TimeoutExpired:
            ended = f"not ended after {args.limit:.0f} s"
        found = read(own) if own.exists() else {}
        own.unlink(missing_ok=True)
        figures |= {f"{name}, {what}": {"error": ended or "the process ended"} for what in missing} | found
        write(args, figures)
    return figures


def read(path: Path) -> dict[str, Any]:
    """The figures of a file."""
    return json.loads(path.read_text())["programs"]


def write(args: argparse.Namespace, figures: dict[str, Any]) -> None:
    """Write figures and settings to the file of figures."""
    args.json.write_text(json.dumps({"settings": vars(args), "programs": figures}, default=str, indent=1))


def table(figures: dict[str, Any]) -> str:
    """A table of models in Markdown: of each its step and gradient."""
    names = list(dict.fromkeys(label.split(", ")[0] for label in figures))
    lines = ["| step; gradient | " + " | ".join(OF_TABLE) + " |", "| --- " * (len(OF_TABLE) + 1) + "|"]
    for name in names:
        both = [_row(figures.get(f"{name}, {what}", {"error": "not run"})) for what in ("step", "grad")]
        lines.append(f"| {name} | " + " | ".join(map("; ".join, zip(*both, strict=True))) + " |")
    return "\n".join(lines)


def _row(f: dict[str, Any]) -> list[str]:
    if "error" in f:
        return [f["error"], *[""] * (len(OF_TABLE) - 1)]
    figures = f | {"faults": sum(f[c] for c in FAULTS)}
    return [f"{figures[c]:,}" if isinstance(figures[c], int) else str(figures[c]) for c in OF_TABLE]


def settings() -> argparse.Namespace:
    """The arguments of the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "models",
        nargs="*",
        help="names of models of this repository, or paths; by default all that the file of figures does not hold yet",
    )
    parser.add_argument("--emulator", type=Path, required=True, help="the folder of ptxemu.py and cost.py")
    parser.add_argument("--what", nargs="*", choices=("step", "grad"), default=["step"])
    parser.add_argument("--nworld", type=int, default=8)
    parser.add_argument(
        "--as-for", type=int, default=8192, help="worlds for which lanes are chosen and time is modelled"
    )
    parser.add_argument("--steps", type=int, default=150, help="steps before the one that is emulated")
    parser.add_argument("--order", nargs="*", default=["forward"], help="of lanes: forward, reverse, random, warps")
    parser.add_argument("--preempt", type=int, default=0, help="a lane gives way at one access of so many")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of the largest entry")
    parser.add_argument("--kernels", action="store_true", help="print a line for each kernel")
    parser.add_argument("--limit", type=float, default=1200, help="seconds of each model, if all are run")
    parser.add_argument("--json", type=Path, help="the file of figures, written after every program")
    parser.add_argument("--profile", type=Path, help="write what cost.py and ops.py read to this file")
    args = parser.parse_args()
    if not args.models and not args.json:
        parser.error("all models need a file of figures (--json)")
    return args


def main() -> None:
    args = settings()
    gc.set_threshold(200_000, 50, 1000)  # collections took a sixth of the time
    if not args.models:
        figures = each_alone(args)
        print(table(figures))
        sys.exit(sum(map(has_fault, figures.values())))
    sys.path.insert(0, str(args.emulator))
    given = {k: v for name in args.models for k, v in prepare(name, args).items()}  # before programs become a GPU's
    emulated = Emulated(args)
    emulated.install()
    print("| program | " + " | ".join([*COLUMNS, "s"]) + " |\n" + "| --- " * (len(COLUMNS) + 2) + "|", flush=True)
    figures: dict[str, Any] = {}
    every: list[dict[str, Any]] = []
    for (name, what), (m, d, want) in given.items():
        begin, label = time.perf_counter(), f"{Path(name).stem}, {what}"
        figures[label] = emulate(emulated, args, what, m, d, want)
        print("\n".join(report(label, figures[label], time.perf_counter() - begin, args.kernels)), flush=True)
        if args.json:
            write(args, figures)
        every += emulated.rows
        if args.profile:
            args.profile.write_bytes(pickle.dumps(every))
    sys.exit(sum(map(has_fault, figures.values())))


if __name__ == "__main__":
    main()
