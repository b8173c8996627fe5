"""The source of a kernel, for as many lanes a world as suit it, and what it will cost."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxsim.xla import kernels
from jaxsim.xla.c_expressions import PREAMBLE, UnsupportedPrimitive, c_type
from jaxsim.xla.tile.equations import Flat, Var
from jaxsim.xla.tile.kernel import compute
from jaxsim.xla.tile.writer import Writer, places

MOST_PARAMETERS = 500  # pointers of a kernel: 4 KB
LANES = (32, 64, 128)
# A multiprocessor of recent GPUs, for the choice of lanes: what it holds, and cycles of a wait and of a dependent
# instruction. They choose; they are no measurement.
RESIDENT_BYTES, RESIDENT_WARPS, SCHEDULERS = 200 << 10, 48, 4
WAIT, LATENCY = {32: 20, 64: 35, 128: 40}, 6


class TileSource(NamedTuple):
    """A kernel `tile(inputs..., outputs..., scratch)` of worlds, and what it takes."""

    text: str
    lanes: int
    worlds: int  # of a block
    shared: int  # bytes of a block
    scratch: int  # bytes of a world in the program's memory
    instructions: float  # of a lane
    waits: float


def tile_source(flat: Flat, has_worlds: Sequence[bool], count: int, lanes: int | None = None) -> TileSource:
    """The kernel of a function for `count` worlds. Raises UnsupportedPrimitive."""
    if len(flat.inputs) + len(flat.outputs) >= MOST_PARAMETERS:
        raise UnsupportedPrimitive("a kernel of so many arrays")
    w = Writer()
    args = [w.stored(w.buffer(v.dtype, math.prod(v.shape), f"in{i}"), v.shape) for i, v in enumerate(flat.inputs)]
    outputs = [v for v in flat.outputs if isinstance(v, Var)]
    made = {v for op in flat.operations for v in op.outputs}
    targets = {v: w.buffer(v.dtype, math.prod(v.shape), f"out{i}") for i, v in enumerate(outputs) if v in made}
    found = compute(w, flat, args, targets)
    for (v, buffer), x in zip(targets.items(), found, strict=True):
        if x.size and x.buffer is not buffer:
            w.fill(buffer, x, v.shape)
    placed, shared = places(w)
    lanes = lanes or _best_lanes(w, shared, count)
    scratch = 0
    if shared > kernels.SHARED_BYTES:
        shared, scratch = 0, shared
    worlds = max(1, min(kernels.BLOCK // lanes, kernels.SHARED_BYTES // max(shared, 1))) if lanes == 32 else 1
    declared = [f"{c_type(b.dtype)}* {b.name} = ({c_type(b.dtype)}*)(memory + {at});" for b, at in placed.items()]
    text = _text(w, flat, outputs, has_worlds, count, _Shape(lanes, worlds, shared, scratch), declared)
    work = sum(math.ceil(x.rows / lanes) * x.cost * x.times for x in w.loops)
    return TileSource(text, lanes, worlds, shared * worlds, scratch, work, w.syncs)


class _Shape(NamedTuple):
    lanes: int
    worlds: int
    shared: int
    scratch: int


def _best_lanes(w: Writer, shared: int, count: int) -> int:
    """The number of lanes with which `count` worlds would be done first on a GPU of a hundred multiprocessors."""

    def cycles(lanes: int) -> float:
        warps = lanes // 32
        instructions = sum(math.ceil(x.rows / lanes) * x.cost * x.times for x in w.loops)
        mine = math.ceil(count / 100)
        resident = max(1, min(RESIDENT_WARPS // warps, RESIDENT_BYTES // max(shared, 1), mine))
        alone = instructions * LATENCY + w.syncs * WAIT[lanes]
        return max(mine / resident * alone, mine * instructions * warps / SCHEDULERS)

    return min(LANES, key=cycles)


def _text(
    w: Writer,
    flat: Flat,
    outputs: Sequence[Var],
    has_worlds: Sequence[bool],
    count: int,
    shape: _Shape,
    declared: Sequence[str],
) -> str:
    real = next(
        (v.dtype for v in (*flat.inputs, *outputs) if np.issubdtype(v.dtype, np.floating)), np.dtype(np.float32)
    )
    parameters = [f"const {c_type(v.dtype)}* in{i}" for i, v in enumerate(flat.inputs)]
    parameters += [f"{c_type(v.dtype)}* out{i}" for i, v in enumerate(outputs)] + ["char* scratch"]
    own = [f"in{i} += (long long)world * {math.prod(v.shape)};" for i, v in enumerate(flat.inputs) if has_worlds[i]]
    own += [f"out{i} += (long long)world * {math.prod(v.shape)};" for i, v in enumerate(outputs)]
    if shape.scratch:
        own.append(f"char* memory = scratch + (long long)world * {shape.scratch};")
    tile_cu = kernels.text(Path(__file__).parent, "tile.cu")
    signature, names = ", ".join(parameters), ", ".join(p.split()[-1] for p in parameters)
    start = "0" if shape.scratch else f"block + threadIdx.x / LANES * {shape.shared}"
    host = "0" if shape.scratch else "block"
    lines = "\n".join([*own, *declared, *w.lines])
    tables = "\n".join(w.tables)
    return f"""{PREAMBLE}#define T {c_type(real)}
#define SQRT {"sqrt" if real == np.float64 else "sqrtf"}
#ifndef LANES
#define LANES {shape.lanes}
#endif
{tile_cu}
{tables}
FUNCTION void visit(int lane, long long world, char* {"unused" if shape.scratch else "memory"}, {signature}) {{
{lines}
}}
#ifdef __CUDACC_RTC__
extern "C" __global__ void __launch_bounds__({shape.lanes * shape.worlds}) tile({signature}) {{
  extern __shared__ __align__(16) char block[];
  int lane = threadIdx.x % LANES, world = blockIdx.x * {shape.worlds} + threadIdx.x / LANES;
  if (world < {count}) visit(lane, world, {start}, {names});
}}
#elif LANES == 1
void tile({signature}) {{
  static _Thread_local double aligned[{max(shape.shared // 8, 1)}];
  char* block = (char*)aligned;
  for (long long world = 0; world < {count}; ++world) visit(0, world, {host}, {names});
}}
#endif
"""
