"""Compile a step, or its gradient, for a TPU v5e without having one, and count what it executes.

    python ci/tpu_offline.py models/humanoid.xml [--what step|grad] [--worlds 1024] [--turns 4] [--loops 10]

Needs `pip install libtpu` (x86-64 Linux). Two counts are added. XLA's operations have the compiler's own estimate of
cycles; gathers, sorts and factorisations have none. Of jaxsim's kernels the compiler's dump holds the bundles of
instructions: one is issued in each cycle, if it need not wait for memory. A bundle counts as often as the loops around
it turn. Loops whose end the program computes count `--turns`, those that begin at an index of an outer loop half of
their length, and conditionals as taken. The figures compare programs; they are not times.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

CLOCK = 940e6  # of a v5e core, Hz
BUNDLE = re.compile(r"^\s*(?:0x[0-9a-f]+|0)\s+(?:[A-Z]{2})?:?\s*:?\s*[> ]*\{")
EXIT = re.compile(r"%(p\w+) = scmp\.ge\.s32\.totalorder (?:\(%\w+\), )?%(s\w+), ([%\w]+)( /\* loop exit)?")
BACK = re.compile(r"sbr\.rel \(!?%(p\w+)\) target = \$region(\d+)")
SLOTS = 4  # bundles after a branch that are executed with it


class Loop(NamedTuple):
    """Bundles of a loop, and how often it turns."""

    first: int
    last: int
    turns: float


def loops(lines: list[str], turns: float) -> list[Loop]:
    """Return the loops of a kernel's bundles."""
    begin = {region: i for i, line in enumerate(lines) for region in re.findall(r"Start region (\d+)", line)}
    exits = {p: rest for line in lines for p, *rest in EXIT.findall(line)}
    found = []
    for i, line in enumerate(lines):
        for predicate, region in BACK.findall(line):
            first = begin.get(region, i + 1)
            if first <= i and " LB:" in lines[first]:
                body = "".join(lines[first : i + 1 + SLOTS])
                found.append(Loop(first, i + SLOTS, _turns(body, *exits.get(predicate, ("", "", "")), turns=turns)))
    return found


def _turns(body: str, following: str, end: str, is_counted: str, turns: float) -> float:
    if end.isdigit():
        return int(end) if is_counted else int(end) / 2
    return 1 if following and _is_branch(body, following) else turns


def _is_branch(body: str, following: str) -> bool:
    """Return whether a loop is a conditional, of one turn or none: its index gives the next index alone."""
    added = re.search(rf"%{following} = sadd\.s32 (?:\(%\w+\), )?1, %(s\w+)", body)
    carried = re.search(rf"%(s\w+) = sphi [^;]*%{following}\b", body)
    if added is None or carried is None:
        return False
    index = re.compile(rf"%(?:{added.group(1)}|{carried.group(1)})\b")
    own = (" = sphi ", "spill", f"%{following} = ")
    return not any(index.search(x) and not any(o in x for o in own) for x in re.split(";;|\n", body))


def executed(path: Path, turns: float) -> tuple[float, list[tuple[float, Loop]]]:
    """Return the bundles that a kernel executes, and each loop's part of them, the largest first."""
    lines = [line for line in path.read_text().splitlines(keepends=True) if BUNDLE.match(line)]
    weight, found = [1.0] * len(lines), loops(lines, turns)
    for loop in found:
        for i in range(loop.first, min(len(lines), loop.last + 1)):
            weight[i] *= loop.turns
    parts = [(sum(weight[x.first : x.last + 1]), x) for x in found]
    return sum(weight), sorted(parts, key=lambda p: -p[0])


def xla_cycles(text: str, turns: float) -> float:
    """Return the compiler's estimate of cycles for XLA's operations, those of loops as often as they turn."""
    found: dict[str, list[str]] = {}
    name = entry = ""
    for line in text.splitlines():
        if line.endswith("{") and not line.startswith(" "):
            name = line.removeprefix("ENTRY ").split()[0].lstrip("%")
            entry, found[name] = (name if line.startswith("ENTRY ") else entry), []
        elif name:
            found[name].append(line)

    def cycles(name: str) -> float:
        total = 0.0
        for line in found.get(name, ()):
            total += sum(map(int, re.findall(r'"estimated_cycles":"(\d+)"', line)))
            called = re.findall(r"(?:body|condition|to_apply|\w+_computation)=%?([\w.\-]+)", line)
            for names in re.findall(r"branch_computations=\{([^}]*)\}", line):
                called += re.findall(r"[\w.\-]+", names)
            if " while(" in line:
                known = re.search(r'"known_trip_count":\{"n":"(\d+)"\}', line)
                total += (int(known.group(1)) if known else turns) * sum(map(cycles, called))
            elif " conditional(" in line:
                total += max(map(cycles, called), default=0)
            elif " call(" in line:
                total += sum(map(cycles, called))
        return total

    return cycles(entry)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("--what", choices=("step", "grad"), default="step")
    p.add_argument("--worlds", type=int, default=1024)
    p.add_argument("--turns", type=float, default=4)
    p.add_argument("--loops", type=int, default=0, help="loops to list of each kernel, with their bundles")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report(a, Path(folder))


def report(a: argparse.Namespace, folder: Path) -> None:
    settings = {"TPU_SKIP_MDS_QUERY": "1", "TPU_ACCELERATOR_TYPE": "v5litepod-4", "TPU_WORKER_HOSTNAMES": "localhost"}
    settings |= {"ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    dump = f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"
    os.environ.update(
        settings | {"JAX_PLATFORMS": "cpu", "LIBTPU_INIT_ARGS": dump, "JAX_ENABLE_COMPILATION_CACHE": "0"}
    )
    import jax
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    import jaxsim

    def gradient(m: jaxsim.Model, d: jaxsim.Data) -> tuple[jax.Array, jax.Array]:
        def of(qvel: jax.Array, ctrl: jax.Array) -> jax.Array:
            new = jaxsim.step(m, d.replace(qvel=qvel, ctrl=ctrl))
            return (new.qvel**2).sum() + (new.qpos**2).sum()

        return jax.grad(of, argnums=(0, 1))(d.qvel, d.ctrl)

    where = SingleDeviceSharding(topologies.get_topology_desc("v5e:2x2", platform="tpu").devices[0])
    m = jaxsim.load_model(a.model)
    like = lambda x: jax.ShapeDtypeStruct(jax.numpy.shape(x), jax.numpy.result_type(x), sharding=where)  # noqa: E731
    operands = jax.tree.map(like, (m, jaxsim.make_data(m, nworld=a.worlds)))
    begin = time.process_time()
    traced = jax.jit(jax.vmap(jaxsim.step if a.what == "step" else gradient, (None, 0))).trace(*operands)
    text = traced.lower(lowering_platforms=("tpu",)).compile().as_text()
    taken = time.process_time() - begin
    names = set(re.findall(r"%([\w.]+) = [^\n]*custom_call_target=\"tpu_custom_call\"", text))
    dumped = {x.name.split("-", 1)[1].rsplit("-", 2)[0]: x for x in folder.glob("*-final_bundles.txt")}
    blocks, total = -(-a.worlds // 1024), 0.0
    for name in sorted(names):
        path = next(x for n, x in dumped.items() if n == name and "schedule" not in x.name)
        count, parts = executed(path, a.turns)
        total += blocks * count
        print(f"kernel {name:20s} {count:12,.0f} bundles for 1,024 worlds")
        for part, loop in parts[: a.loops]:
            print(f"    {part:12,.0f} in bundles {loop.first} to {loop.last}, {loop.turns:g} turns")
    xla = xla_cycles(text, a.turns)
    print(f"operations of XLA: {xla:,.0f} cycles")
    print(
        f"{a.what} of {a.worlds} worlds: {(total + xla) / CLOCK * 1e3:.2f} ms by this count; compiled in {taken:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
