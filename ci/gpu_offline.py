"""Count what a batched step costs on a GPU, from the program that XLA makes for one: no GPU is needed.

    python ci/gpu_offline.py models/humanoid.xml models/hand.xml [--nworld 8192] [--what step|grad|rollout]
        [--card h100|rtx4090] [--solver-kernel -1] [--top 20] [--json counts.json] [--text folder]

Compiles ahead of time for the card, walks the optimised program and counts, for one step of the whole batch:

- launches: kernels that are started, loops counted by their trips;
- round trips: turns of loops and conditionals whose length only the device knows, each of which the host must ask for
  unless the loop is captured in a graph;
- KB a world: bytes that kernels read and write, an upper bound of the traffic to memory.

From them follows a modelled time: of each kernel the larger of bytes over bandwidth and the floor of a launch, and a
time for each round trip. It is a model for comparing programs, never a measurement. What happens inside kernels of our
own is not in it. "Tiles ms" is a model of one kind of them (`jaxsim.native`), from the instructions and waits that
their writer counted. Registers, local and spilled bytes of all of them are listed below the table.

Needs jax with its CUDA plugin of the same version (`pip install '.[cuda]'`), and `ptxas` for the list of kernels.
"""

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jaxsim
from jaxsim.native import tile_source as tiles

CARD = """
gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: {shared} threads_per_core_limit: {threads} core_count: {cores} fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: {bandwidth} l2_cache_size: {cache} clock_rate_ghz: {clock} device_memory_size: {memory}
  shared_memory_per_block_optin: {optin} cuda_compute_capability {{ major: {major} minor: {minor} }}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 12 }}
device_description_str: "{name}"
"""
CARDS = {
    "h100": {
        "name": "NVIDIA H100 80GB HBM3",
        "major": 9,
        "minor": 0,
        "cores": 132,
        "clock": 1.98,
        "threads": 2048,
        "bandwidth": 3352320000000,
        "cache": 52428800,
        "memory": 84978434048,
        "shared": 233472,
        "optin": 232448,
    },
    "rtx4090": {
        "name": "NVIDIA GeForce RTX 4090",
        "major": 8,
        "minor": 9,
        "cores": 128,
        "clock": 2.52,
        "threads": 1536,
        "bandwidth": 1008096000000,
        "cache": 75497472,
        "memory": 25393692672,
        "shared": 102400,
        "optin": 101376,
    },
}
REACHED = 0.9  # share of the bandwidth that a kernel reaches
LAUNCH = 2.5e-6  # s, the least time of a kernel
ROUND_TRIP = 12e-6  # s, for a loop that asks the host
TRIPS = (6, 4, 4)  # of loops of unknown length, by depth
WIDTH = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4}
WIDTH |= {"s64": 8, "u64": 8, "f64": 8}
FREE = {"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all", "opt-barrier", "partition-id"}
READS_PART = {"slice", "dynamic-slice", "gather"}
# products by cuBLAS: what the autotuner would choose needs the device
OPTIONS = {"xla_gpu_enable_triton_gemm": False, "xla_gpu_autotune_level": 0}


class Op(NamedTuple):
    """An instruction of the optimised program."""

    name: str
    shape: str
    kind: str
    args: list[str]
    line: str


class Cost:
    """What a computation costs: counts, bytes, modelled seconds, and the kernels with their times and launches."""

    def __init__(self) -> None:
        self.launches = self.round_trips = self.bytes = self.seconds = 0.0
        self.calls: collections.Counter[str] = collections.Counter()
        self.kernels: list[tuple[float, float, str, str]] = []

    def add(self, other: "Cost", times: float) -> None:
        """Add another cost so many times."""
        self.launches += times * other.launches
        self.round_trips += times * other.round_trips
        self.bytes += times * other.bytes
        self.seconds += times * other.seconds
        for name, count in other.calls.items():
            self.calls[name] += times * count
        self.kernels += [(t * times, n * times, *rest) for t, n, *rest in other.kernels]

    def ask_host(self, times: float) -> None:
        """Add round trips."""
        self.round_trips += times
        self.seconds += times * ROUND_TRIP


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--nworld", type=int, default=8192)
    parser.add_argument("--what", choices=("step", "grad", "rollout"), default="step")
    parser.add_argument("--card", choices=CARDS, default="h100")
    parser.add_argument("--backend", default="auto", choices=("auto", "native", "xla"), help="opt.backend")
    parser.add_argument("--text", type=Path, help="write the optimised programs to this folder")
    parser.add_argument("--top", type=int, default=0, help="dearest kernels to list")
    parser.add_argument("--json", type=Path, help="write all counts to this file, after every model")
    args = parser.parse_args()
    columns = ("launches", "round trips", "KB a world", "modelled ms", "tiles ms", "temporary KB a world", "compile s")
    columns += ("calls",)
    print("| model | " + " | ".join(columns) + " |\n| --- |" + " --- |" * len(columns), flush=True)
    found = {}
    for path in args.models:
        compiled, seconds, written = compile_for(path, args)
        text = compiled.as_text()
        if args.text:
            args.text.mkdir(parents=True, exist_ok=True)
            (args.text / f"{path.stem}_{args.what}.txt").write_text(text, encoding="utf-8")
        total = cost(*parse(text), REACHED * CARDS[args.card]["bandwidth"])
        memory = compiled.memory_analysis().temp_size_in_bytes
        found[path.stem] = {
            "launches": round(total.launches),
            "round_trips": round(total.round_trips),
            "kb_world": total.bytes / args.nworld / 1e3,
            "modelled_ms": 1e3 * total.seconds,
            "tiles_ms": sum(tile_ms(t, args) for t in written),
            "temporary_kb_world": memory / args.nworld / 1e3,
            "compile_s": seconds,
            "calls": {k: round(v) for k, v in total.calls.most_common()},
            "kernels": own_kernels(text, CARDS[args.card]),
        }
        print(row(path.stem, found[path.stem]), flush=True)
        for kernel in found[path.stem]["kernels"]:
            print(f"    {kernel}")
        for t, n, kind, label in sorted(total.kernels, reverse=True)[: args.top]:
            print(f"    {1e6 * t:9.1f} us  x{n:<5g} {kind} {label}")
        if args.json:
            args.json.write_text(json.dumps({"settings": vars(args), "models": found}, default=str, indent=1))


def row(name: str, found: dict[str, Any]) -> str:
    """A line of the table."""
    numbers = [f"{found['launches']:,}", f"{found['round_trips']:,}", f"{found['kb_world']:,.0f}"]
    numbers += [f"{found['modelled_ms']:.2f}", f"{found['tiles_ms']:.2f}"]
    numbers += [f"{found['temporary_kb_world']:.0f}", f"{found['compile_s']:.0f}"]
    return f"| {name} | " + " | ".join([*numbers, " ".join(f"{k} {v}" for k, v in found["calls"].items())]) + " |"


def tile_ms(tile: tiles.TileSource, args: argparse.Namespace) -> float:
    """Modelled time of one tile kernel, in ms."""
    card = CARDS[args.card]
    shared = tile.shared // tile.worlds
    spent = tiles.cycles(tile.lanes, tile.instructions, tile.waits, shared, args.nworld, card["cores"])
    return spent / card["clock"] / 1e6


def compile_for(path: Path, args: argparse.Namespace) -> tuple[Any, float, list[tiles.TileSource]]:
    """The program for the card, the seconds to trace and compile it, and the tile kernels that were written for it."""
    written: list[tiles.TileSource] = []

    def noted(*given: Any, **options: Any) -> tiles.TileSource:
        written.append(write(*given, **options))
        return written[-1]

    write, tiles.tile_source = tiles.tile_source, noted
    topology = topologies.get_topology_desc(
        "", platform="cuda", target_config=CARD.format(**CARDS[args.card]), topology="1x1x1"
    )
    place = NamedSharding(Mesh(np.array(topology.devices), ("w",)), PartitionSpec())

    def there(x: Any, *lead: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((*lead, *jnp.shape(x)), jnp.asarray(x).dtype, sharding=place)

    with jax.default_device(jax.devices("cpu")[0]):
        m = jaxsim.load_model(path)
        m = m.replace(opt=m.opt.replace(backend=args.backend))
        worlds = jax.tree.map(lambda x: there(x, args.nworld), jaxsim.make_data(m))
        model = jax.tree.map(there, m)
    begin = time.perf_counter()
    compiled = jax.jit(PROGRAMS[args.what]).trace(model, worlds).lower().compile(compiler_options=OPTIONS)
    return compiled, time.perf_counter() - begin, written


def _step(m: Any, d: Any) -> tuple:
    """A step of all worlds; a loop of steps keeps the state only."""
    new = jax.vmap(jaxsim.step, in_axes=(None, 0))(m, d)
    return new.qpos, new.qvel, new.act, new.qacc_warmstart, new.time


def _rollout(m: Any, d: Any) -> Any:
    """Ten steps of all worlds."""
    return jax.vmap(lambda m, d: jaxsim.rollout(m, d, nstep=10)[0].qpos, in_axes=(None, 0))(m, d)


def _gradient(m: Any, d: Any) -> tuple:
    """The gradient of a step by positions, velocities and controls."""

    def loss(q: Any, v: Any, u: Any) -> Any:
        new = jax.vmap(jaxsim.step, in_axes=(None, 0))(m, d.replace(qpos=q, qvel=v, ctrl=u))
        return jnp.sum(new.qpos**2) + jnp.sum(new.qvel**2)

    return jax.grad(loss, argnums=(0, 1, 2))(d.qpos, d.qvel, d.ctrl)


PROGRAMS: dict[str, Callable] = {"step": _step, "rollout": _rollout, "grad": _gradient}


def size(shape: str) -> int:
    """Bytes of the arrays in the text of a shape."""
    total = 0
    for kind, dims in re.findall(r"\b([a-z]+\d*)\[([\d,]*)\]", shape):
        total += WIDTH.get(kind, 0) * int(np.prod([int(n) for n in dims.split(",") if n]))
    return total


def parse(text: str) -> tuple[dict[str, list[Op]], str]:
    """The computations of a program by name, and the name of the first one."""
    computations: dict[str, list[Op]] = {}
    entry, current = "", None
    for line in text.splitlines():
        head = re.match(r"^(ENTRY )?%?([\w.\-]+)\s*\(.*\)\s*->\s*.*\{\s*$", line)
        if head:
            current = computations[head[2]] = []
            entry = head[2] if head[1] else entry
        elif line.startswith("}"):
            current = None
        elif current is not None:
            found = re.match(r"\s*(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([a-z][\w\-]*)\((.*)$", line)
            if found:
                name, shape, kind, rest = found.groups()
                current.append(Op(name, shape, kind, re.findall(r"%([\w.\-]+)", _inside(rest)), line))
    return computations, entry


def _inside(text: str) -> str:
    """The text up to the parenthesis that closes an open one."""
    depth = 1
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return text[:i]
    return text


def traffic(op: Op, shapes: dict[str, str], computations: dict[str, list[Op]]) -> float:
    """Bytes that one kernel reads and writes; of operands only parts where only parts are read."""
    called = re.search(r"calls=%?([\w.\-]+)", op.line)
    if op.kind != "fusion" or not called:
        if op.kind in READS_PART:
            return 2 * size(op.shape)
        if op.kind == "dynamic-update-slice":
            return 2 * size(shapes.get(op.args[1], ""))
        return size(op.shape) + sum(size(shapes.get(a, "")) for a in op.args)
    body = computations[called[1]]
    users = collections.defaultdict(list)
    for o in body:
        for a in o.args:
            users[a].append(o)
    total = 0.0
    for p in (o for o in body if o.kind == "parameter"):
        use = users[p.name]
        if use and all(u.kind in READS_PART and u.args[0] == p.name for u in use):
            total += min(size(p.shape), sum(size(u.shape) for u in use))
        elif not (use and all(u.kind == "dynamic-update-slice" and u.args[0] == p.name for u in use)):
            total += size(p.shape)
    root = next((o for o in body if o.line.lstrip().startswith("ROOT")), body[-1])
    if root.kind == "dynamic-update-slice":
        return total + 2 * next((size(o.shape) for o in body if o.name == root.args[1]), 0)
    return total + size(op.shape)


def cost(computations: dict[str, list[Op]], name: str, bandwidth: float, depth: int = 0) -> Cost:
    """Cost of one run of a computation; loops of unknown length count TRIPS[depth] times."""
    total = Cost()
    shapes = {o.name: o.shape for o in computations[name]}
    for op in computations[name]:
        if op.kind == "while":
            _add_loop(total, op, computations, bandwidth, depth)
        elif op.kind in ("call", "conditional"):
            _add_branches(total, op, computations, bandwidth, depth)
        elif op.kind not in FREE:
            moved = traffic(op, shapes, computations)
            seconds = max(moved / bandwidth, LAUNCH)
            target = re.search(r'custom_call_target="([^"]*)"', op.line)
            if target:
                total.calls[target[1].split("$")[-1]] += 1
            label = re.search(r'op_name="([^"]*)"', op.line)
            total.launches += 1
            total.bytes += moved
            total.seconds += seconds
            total.kernels.append((seconds, 1, op.kind, label[1][-90:] if label else ""))
    return total


def _add_loop(total: Cost, op: Op, computations: dict[str, list[Op]], bandwidth: float, depth: int) -> None:
    body, condition = (re.search(rf"{k}=%?([\w.\-]+)", op.line)[1] for k in ("body", "condition"))
    known = re.search(r'"known_trip_count":\{"n":"(\d+)"', op.line)
    if known:
        total.add(cost(computations, body, bandwidth, depth), int(known[1]))
        return
    trips = TRIPS[min(depth, len(TRIPS) - 1)]
    total.add(cost(computations, body, bandwidth, depth + 1), trips)
    total.add(cost(computations, condition, bandwidth, depth + 1), trips + 1)
    total.ask_host(trips + 1)


def _add_branches(total: Cost, op: Op, computations: dict[str, list[Op]], bandwidth: float, depth: int) -> None:
    names = re.findall(r"(?:to_apply|true_computation|false_computation)=%?([\w.\-]+)", op.line)
    listed = re.search(r"branch_computations=\{([^}]*)\}", op.line)
    names += re.findall(r"%?([\w.\-]+)", listed[1]) if listed else []
    costs = [cost(computations, n, bandwidth, depth) for n in names if n in computations]
    if costs:
        total.add(max(costs, key=lambda c: c.seconds), 1)
    if op.kind == "conditional":
        total.ask_host(1)


def own_kernels(text: str, card: dict[str, Any]) -> list[str]:
    """Registers, local and spilled bytes of the kernels that the program holds as PTX."""
    ptxas = shutil.which("ptxas")
    found = []
    for data in sorted(set(re.findall(r'kernel_data = "(.*?)(?<!\\)",', text.replace('\\"', '"')))):
        ptx = re.sub(r"\\+([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), data).replace("\\n", "\n")
        if not ptxas:
            found.append("a kernel; ptxas is not installed")
            continue
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".ptx") as file:
            file.write(ptx)
            file.flush()
            arch = f"-arch=sm_{card['major']}{card['minor']}"
            done = subprocess.run(
                [ptxas, "-v", arch, file.name, "-o", os.devnull], capture_output=True, encoding="utf-8"
            )
        lines = [s.split(":")[-1].strip() for s in done.stderr.splitlines() if "stack" in s or "registers" in s]
        found.append("kernel: " + "; ".join(lines or [done.stderr[:300]]))
    return found


if __name__ == "__main__":
    main()
