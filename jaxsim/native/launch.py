"""Launch kernels on a GPU, or call them on the host in tests: their source is valid CUDA and C99.

A kernel `name(operands..., out)` takes pointers. NVRTC compiles it to PTX, without a GPU. XLA accepts PTX inside a
program, and compiles, launches and captures it with the rest. The host's C compiler compiles the same source to a
function.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsim.math.safe import Array
from jaxsim.native import compiler as native
from jaxsim.native.nvrtc import ptx_of
from jaxsim.native.source_text import definitions, text

C_NUMBERS = {"float32": "float", "float64": "double"}
SHARED_BYTES = 48 << 10  # shared memory of a block on any GPU, without opting in to more
WARP = 32
BLOCK = 128  # threads of a block of small worlds
MULTIPROCESSORS = 100  # of a large GPU
REGISTERS, BLOCKS = 1 << 16, 32  # of a multiprocessor, at most


class Launch(NamedTuple):
    """Number of blocks, threads of a block, and bytes of its shared memory."""

    blocks: int
    threads: int
    shared: int = 0


class Lanes(NamedTuple):
    """Lanes (threads) of a world, which is a block, and lanes of a warp."""

    lanes: int
    width: int


HOST = Lanes(1, 1)


def lanes_for(columns: int) -> Lanes:
    """Return one lane for each column, in whole warps."""
    return Lanes(-(-columns // WARP) * WARP, WARP)


def bounds(threads: int, blocks: int, registers: int = 64) -> str:
    """Return the declaration of a kernel's threads, which have so many registers if there are blocks enough."""
    resident = min(REGISTERS // (registers * threads), BLOCKS, blocks // MULTIPROCESSORS)
    return f"__launch_bounds__({threads}, {resident})" if resident > 1 else f"__launch_bounds__({threads})"


@cache
def lanes_source(dtype: Any, size: int, shape: Lanes) -> str:
    """Return the sources `lanes.cu` and `elimination.cu` for matrices of `size` columns, with their constants."""
    known, here = {"NV": size, "N": size, "LANES": shape.lanes, "WIDTH": shape.width}, Path(__file__).parent
    return scalars_source(dtype) + definitions(known) + text(here, "lanes.cu") + text(here, "elimination.cu")


def scalars_source(dtype: Any) -> str:
    """Return the source `scalars.cu` for numbers of a type."""
    real = C_NUMBERS[str(dtype)]
    eps, tiny = np.finfo(dtype).eps, 1e-20 if dtype == np.float64 else 1e-12
    known = {"REAL": real, "EPS": f"(({real}){eps:.17e})", "TINY": f"(({real}){tiny})"}
    return definitions(known) + text(Path(__file__).parent, "scalars.cu")


def entry_source(name: str, parameters: Sequence[str], count: int, bounds: str, memory: str | None) -> str:
    """Return the kernel that calls `visit(lane, world, memory, parameters...)` for `count` worlds, a block for each.

    `bounds` declares its threads. `memory` is an expression: how many numbers of shared memory a world has. None:
    `visit` finds its memory itself.
    """
    signature = ", ".join(parameters)
    names = ", ".join(p.split()[-1] for p in parameters)
    numbers = memory or "1"
    declared = "extern __shared__ __align__(16) T memory[];" if memory else ""
    return f"""
#ifdef __CUDACC_RTC__
extern "C" __global__ void {bounds} {name}({signature}) {{
  {declared}
  visit(threadIdx.x, blockIdx.x, {"memory" if memory else "0"}, {names});
}}
#elif LANES == 1
void {name}({signature}) {{
  T memory[{numbers}];
  for (int world = 0; world < {count}; ++world) visit(0, world, memory, {names});
}}
#endif
"""


def launch(source: str, name: str, operands: Sequence[Array], out: Any, how: Launch) -> Any:
    """Return results like `out` (an array or a list) of a kernel of CUDA source. Raises CompilerMissing."""
    grid = {"grid_x": how.blocks, "grid_y": 1, "grid_z": 1}
    block = {"block_x": how.threads, "block_y": 1, "block_z": 1, "shared_mem_bytes": how.shared}
    places = tuple(range(len(operands), len(operands) + (len(out) if isinstance(out, list) else 1)))
    kernel = {"name": name, "kernel_type": "ptx", "kernel_data": ptx_of(source), "output_indices": places}
    return jax.ffi.ffi_call("__gpu$xla.gpu.ptx", out)(*operands, **kernel, **grid, **block)


def run_on_host(source: str, name: str, operands: Sequence[Array], out: Any) -> Any:
    """Return the same as `launch`, computed on the host: slow, for tests. Raises CompilerMissing."""
    pointers = [f"argument(frame, {i})->data" for i in range(len(operands))]
    pointers += [f"result(frame, {i})->data" for i in range(len(out) if isinstance(out, list) else 1)]
    handler = f"""
XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {{
  if (!is_question(frame)) {name}({", ".join(pointers)});
  return 0;
}}
"""
    target = native.target_of(native.PREAMBLE + source + handler, native.ONCE)
    return jax.ffi.ffi_call(target, out)(*operands)
