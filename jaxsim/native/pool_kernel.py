"""Run the searches of `pool` as a kernel of a GPU: each thread searches one entry.

The kernel's source is generated from the search's jaxpr (`c_source`) and compiled to PTX by NVRTC, without a GPU. XLA
accepts PTX inside a program, and compiles, launches and captures the kernel with the rest.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.math.safe import Array
from jaxsim.native import launch as kernels
from jaxsim.native.c_source import ONE_LANE, c_function
from jaxsim.native.expressions import c_type

THREADS = 64  # of a block


class KernelSearch(NamedTuple):
    """A search as a kernel needs it: a function of the leaves of one entry that returns a row of numbers.

    `entry` holds the shapes of the leaves. `place` says of each leaf whether all share it ("shared"), the entries of a
    world ("world"), the entries of all worlds with the same index ("row"), or each entry has its own ("entry").
    `by_vectors`: on a CPU a vector of entries is searched at once, since entries that follow each other take mostly the
    same branches.
    """

    search: Callable[[list[Array], Array], Array]
    entry: list[jax.ShapeDtypeStruct]
    place: list[str]
    by_vectors: bool = False


def pool_source(s: KernelSearch, nworld: int, length: int) -> str:
    """Return source of a kernel `pool(leaves..., before, out)`, or of a C function that loops over all entries.

    `before` (nworld,) is the inclusive prefix sum of the number of entries to search in each world. The first threads
    search one entry each. The other threads write zeros for the remaining ones of the `length` entries of each world.
    Raises UnsupportedPrimitive.
    """
    closed, out = jax.make_jaxpr(lambda *leaves: s.search(list(leaves), True), return_shape=True)(*s.entry)
    own = {"shared": "0", "world": "(long long)w", "row": f"(long long)(e - w * {length})", "entry": "(long long)e"}
    leaves = list(zip(s.entry, s.place, strict=True))
    arguments = [f"a{i} + {own[place]} * {math.prod(x.shape)}" for i, (x, place) in enumerate(leaves)]
    number = c_type(out.dtype)
    parameters = [f"const {c_type(x.dtype)}* a{i}" for i, x in enumerate(s.entry)]
    parameters += ["const int* before", f"{number}* out"]
    signature = ", ".join(parameters)
    names = ", ".join(p.split()[-1] for p in parameters)
    return f"""{ONE_LANE}{c_function("search", closed)}
FUNCTION void visit(int t, {signature}) {{
int total = before[{nworld - 1}], w = 0, last = {nworld - 1};
bool real = t < total;
int u = real ? t : t - total;
while (w < last) {{
  int middle = (w + last) / 2, up_to = before[middle];
  if ((real ? up_to : (middle + 1) * {length} - up_to) > u) last = middle;
  else w = middle + 1;
}}
int first = w ? before[w - 1] : 0;
int e = real ? w * {length} + u - first : u + before[w];
{number}* row = out + (long long)e * {out.size};
if (real) search({", ".join([*arguments, "row"])});
else for (int i = 0; i < {out.size}; ++i) row[i] = 0;
}}
#ifdef __CUDACC_RTC__
extern "C" __global__ void pool({signature}) {{
int t = blockIdx.x * blockDim.x + threadIdx.x;
if (t < {nworld * length}) visit(t, {names});
}}
#else
void pool({signature}) {{
for (int t = 0; t < {nworld * length}; ++t) visit(t, {names});
}}
#endif
"""


def search_by_kernel(s: KernelSearch, leaves: list[Array], count: Array, length: int, out: Any) -> Array:
    """Return results like `out` (nworld, length, k): of the first `count` (nworld,) entries, and zeros for the others.

    Only for CUDA. Raises UnsupportedPrimitive, CompilerMissing.
    """
    before = jnp.cumsum(jnp.clip(count.astype(jnp.int32), 0, length))
    how = kernels.Launch(-(-len(count) * length // THREADS), THREADS)
    return kernels.launch(pool_source(s, len(count), length), "pool", [*leaves, before], out, how)
