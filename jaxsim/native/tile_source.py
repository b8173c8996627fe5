"""Generate the source of a kernel, choose the number of lanes for each world, and estimate its cost."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from jaxsim.math.safe import Array
from jaxsim.native import launch as kernels
from jaxsim.native.compute import compute
from jaxsim.native.expressions import PREAMBLE, TooLarge, c_type
from jaxsim.native.jaxpr import Flat, Var
from jaxsim.native.source_text import text
from jaxsim.native.writer import USUAL_LANES, Buffer, Writer, places

MOST_PARAMETERS = 500  # pointers of a kernel: 4 KB
LANES = (32, 64, 128, 256, 512)
# Cost model for the choice of lanes, not a measurement: of a GPU whose multiprocessors hold these bytes and warps, the
# instructions that one issues in a cycle, and the cycles of an instruction and a barrier.
RESIDENT_BYTES, RESIDENT_WARPS, SCHEDULERS = 200 << 10, 48, 4
LATENCY, WAIT = 4, {32: 20, 64: 35, 128: 40, 256: 50, 512: 70}
BYTES_OF_CYCLE = 1600  # to and from global memory
# Arrays of at least so many bytes go to global memory: less shared memory for a world means more worlds at once.
APART = (1 << 30, 8192, 4096, 2048, 1024, 512, 0)


class TileSource(NamedTuple):
    """Source of a kernel `tile(inputs..., outputs..., scratch)` of worlds, and its resources."""

    text: str
    lanes: int
    worlds: int  # of a block
    shared: int  # bytes of a block
    scratch: int  # bytes of a world in global memory
    instructions: float  # of a lane
    waits: float


def tile_source(flat: Flat, has_worlds: Sequence[bool], count: int, lanes: int | None = None) -> TileSource:
    """Return the kernel of a function for `count` worlds. Raises TooLarge."""
    if len(flat.inputs) + len(flat.outputs) >= MOST_PARAMETERS:
        raise TooLarge("a kernel of so many arrays")
    tried = [_written(flat, has_worlds, count, lanes, keeps_more) for keeps_more in (False, True)]
    return min(tried, key=lambda t: t[0])[1]


def launch(flat: Flat, has_worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    """Return results (count, ...) of the function's kernel on a GPU. Raises UnsupportedPrimitive, CompilerMissing."""
    source = tile_source(flat, has_worlds, count)
    how = kernels.Launch(-(-count // source.worlds), source.lanes * source.worlds, source.shared)
    return kernels.launch(source.text, "tile", operands, _results(flat, source, count), how)[:-1]


def run_on_host(flat: Flat, has_worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    """Return the same as `launch`, computed on the host by one lane: for tests."""
    source = tile_source(flat, has_worlds, count, lanes=1)
    return kernels.run_on_host(source.text, "tile", operands, _results(flat, source, count))[:-1]


def _results(flat: Flat, source: TileSource, count: int) -> list[jax.ShapeDtypeStruct]:
    """Return the shapes of the arrays that the kernel writes, its scratch last."""
    out = [jax.ShapeDtypeStruct((count, *v.shape), v.dtype) for v in flat.outputs]
    return [*out, jax.ShapeDtypeStruct((max(1, count * source.scratch),), np.int8)]


def real_type(flat: Flat, outputs: Sequence[Var]) -> np.dtype:
    """Return the floating-point type of a function, float32 if it has none."""
    types = (v.dtype for v in (*flat.inputs, *outputs) if np.issubdtype(v.dtype, np.floating))
    return next(types, np.dtype(np.float32))


def _written(
    flat: Flat, has_worlds: Sequence[bool], count: int, lanes: int | None, keeps_more: bool
) -> tuple[float, TileSource]:
    """Return the kernel's cycles by the cost model, and the kernel."""
    w = Writer(keeps_more, 1 if lanes == 1 else USUAL_LANES)
    args = [w.stored(w.buffer(v.dtype, math.prod(v.shape), f"in{i}"), v.shape) for i, v in enumerate(flat.inputs)]
    outputs = [v for v in flat.outputs if isinstance(v, Var)]
    made = {v for op in flat.operations for v in op.outputs}
    targets = {v: w.buffer(v.dtype, math.prod(v.shape), f"out{i}") for i, v in enumerate(outputs) if v in made}
    found = compute(w, flat, args, targets)
    for (v, buffer), x in zip(targets.items(), found, strict=True):
        if x.size and x.buffer is not buffer:
            w.fill(buffer, x, v.shape)
    if w.lanes > 1:
        w.leave_out_unread()
        w.limit_unrolling()
    taken, shape, declared = _chosen(w, count, LANES if lanes is None else (lanes,))
    text = _text(w, flat, outputs, has_worlds, count, shape, declared)
    instructions = _instructions(w, shape.lanes)
    shared = shape.shared * shape.worlds
    return taken, TileSource(text, shape.lanes, shape.worlds, shared, shape.scratch, instructions, w.syncs)


class _Shape(NamedTuple):
    lanes: int
    worlds: int  # of a block
    shared: int  # bytes of a world
    scratch: int


def _chosen(w: Writer, count: int, choices: Sequence[int]) -> tuple[float, _Shape, list[str]]:
    """Choose lanes, and the arrays of global memory; return cycles by the model, the choice and declarations."""
    own = [b for b in w.buffers if not b.given]
    best: tuple[float, _Shape, list[str]] | None = None
    for limit in APART:
        near, shared = places([b for b in own if b.nbytes < limit])
        far, scratch = places([b for b in own if b.nbytes >= limit])
        if shared > kernels.SHARED_BYTES:
            continue
        declared = [_declared(b, f"memory + {at}") for b, at in near.items()]
        declared += [_declared(b, f"scratch + {at}") for b, at in far.items()]
        moved = 2 * count * sum(b.nbytes for b in far) / BYTES_OF_CYCLE
        for lanes in choices:
            fit = min(kernels.BLOCK // lanes, kernels.SHARED_BYTES // max(shared, 1))
            shape = _Shape(lanes, max(1, fit) if lanes == kernels.WARP else 1, shared, scratch)
            taken = cycles(lanes, _instructions(w, lanes), w.syncs, shared, count) + moved
            if best is None or taken < best[0]:
                best = taken, shape, declared
    assert best is not None  # with the last of APART nothing is shared
    return best


def _declared(b: Buffer, place: str) -> str:
    return f"{c_type(b.dtype)}* {b.name} = ({c_type(b.dtype)}*)({place});"


def _instructions(w: Writer, lanes: int) -> float:
    return sum(math.ceil(x.rows / lanes) * x.cost * x.times for x in w.loops)


def cycles(
    lanes: int,
    instructions: float,
    waits: float,
    shared: int,
    count: int,
    multiprocessors: int = kernels.MULTIPROCESSORS,
) -> float:
    """Return cycles of a kernel by a model of a GPU; a world takes `shared` bytes of shared memory.

    The result is the larger of two bounds. Latency: a multiprocessor runs as many worlds at once as fit, and then the
    next ones. Throughput: it issues the instructions of all its worlds at its highest rate.
    """
    warps, mine = max(1, lanes // 32), math.ceil(count / multiprocessors)
    resident = max(1, min(RESIDENT_WARPS // warps, RESIDENT_BYTES // max(shared, 1), mine))
    alone = instructions * LATENCY + waits * WAIT.get(lanes, 0)
    return max(math.ceil(mine / resident) * alone, mine * instructions * warps / SCHEDULERS)


def _text(
    w: Writer,
    flat: Flat,
    outputs: Sequence[Var],
    has_worlds: Sequence[bool],
    count: int,
    shape: _Shape,
    declared: Sequence[str],
) -> str:
    real = real_type(flat, outputs)
    parameters = [f"const {c_type(v.dtype)}* __restrict__ in{i}" for i, v in enumerate(flat.inputs)]
    parameters += [f"{c_type(v.dtype)}* out{i}" for i, v in enumerate(outputs)] + ["char* scratch"]
    own = [f"in{i} += (long long)world * {math.prod(v.shape)};" for i, v in enumerate(flat.inputs) if has_worlds[i]]
    own += [f"out{i} += (long long)world * {math.prod(v.shape)};" for i, v in enumerate(outputs)]
    own.append(f"scratch += (long long)world * {shape.scratch};")
    here = Path(__file__).parent
    of_systems = text(here, "elimination.cu") + text(here, "systems.cu")
    systems = [f"#define N {n}\n{of_systems}" for n in sorted(w.systems) if w.lanes > 1]
    lanes = "\n".join([text(here, "lane.h"), *(systems if w.lanes > 1 else [text(here, "systems.h")])])
    signature, names = ", ".join(parameters), ", ".join(p.split()[-1] for p in parameters)
    lines = "\n".join([*own, *declared, *w.lines])
    tables = "\n".join(w.tables)
    return f"""{PREAMBLE}#define REAL {c_type(real)}
#define T REAL
#define SQRT {"sqrt" if real == np.float64 else "sqrtf"}
#ifndef LANES
#define LANES {shape.lanes}
#endif
{lanes}
{tables}
FUNCTION void visit(int lane, long long world, char* memory, {signature}) {{
{lines}
}}
#ifdef __CUDACC_RTC__
extern "C" __global__ void {kernels.bounds(shape.lanes * shape.worlds, -(-count // shape.worlds))} tile({signature}) {{
  extern __shared__ __align__(16) char block[];
  int lane = threadIdx.x % LANES, world = blockIdx.x * {shape.worlds} + threadIdx.x / LANES;
  if (world < {count}) visit(lane, world, block + threadIdx.x / LANES * {shape.shared}, {names});
}}
#elif LANES == 1
void tile({signature}) {{
  static _Thread_local double aligned[{max(shape.shared // 8, 1)}];
  char* block = (char*)aligned;
  for (long long world = 0; world < {count}; ++world) visit(0, world, block, {names});
}}
#endif
"""
