"""The pool of searches as a kernel of a GPU: each thread searches one entry.

The kernel's source is written from the search's jaxpr (`c_source`) and compiled to PTX by NVRTC, which needs no GPU.
XLA takes PTX within a program, so that the kernel is compiled, launched and captured with it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.math.safe import Array
from jaxsim.native import launch as kernels
from jaxsim.native.c_source import ONE_LANE, c_function
from jaxsim.native.expressions import C_TYPES

THREADS = 64  # of a block


class KernelSearch(NamedTuple):
    """A search as a kernel needs it: of the leaves of one `entry`, each "shared", of its "world" or its own ("entry").

    Its result is a row of numbers.
    """

    search: Callable[[list[Array], Array], Array]
    entry: list[jax.ShapeDtypeStruct]
    place: list[str]


def pool_source(s: KernelSearch, nworld: int, length: int) -> str:
    """Source of a kernel `pool(leaves..., before, out)`, or of a C function that loops over all entries.

    `before` (nworld,) counts the entries that are searched of each world and those before it. Threads search them one
    after the other; the threads behind give zeros to the rest of the `length` entries of each world.
    Raises UnsupportedPrimitive.
    """
    closed, out = jax.make_jaxpr(lambda *leaves: s.search(list(leaves), True), return_shape=True)(*s.entry)
    own = {"shared": "0", "world": "(long long)w", "entry": "(long long)e"}
    leaves = list(zip(s.entry, s.place, strict=True))
    arguments = [f"a{i} + {own[place]} * {math.prod(x.shape)}" for i, (x, place) in enumerate(leaves)]
    number = C_TYPES[str(out.dtype)]
    parameters = [f"const {C_TYPES[str(x.dtype)]}* a{i}" for i, x in enumerate(s.entry)]
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
    """Results like `out` (nworld, length, k) of the first `count` (nworld,) entries of each world; zeros for others.

    Only for CUDA. Raises UnsupportedPrimitive, CompilerMissing.
    """
    before = jnp.cumsum(jnp.clip(count.astype(jnp.int32), 0, length))
    how = kernels.Launch(-(-len(count) * length // THREADS), THREADS)
    return kernels.launch(pool_source(s, len(count), length), "pool", [*leaves, before], out, how)
