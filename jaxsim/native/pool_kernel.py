"""The pool of searches as a kernel of a GPU: each thread searches one entry.

The kernel's source is written from the search's jaxpr (`c_source`) and compiled to PTX by NVRTC, which needs no GPU.
XLA takes PTX within a program, so that the kernel is compiled, launched and captured with it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

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
    """Source of a kernel `pool(leaves..., order, total, out)`, or of a C function that loops over all entries.

    Entry `order[t]` of the `length` entries of all worlds is searched by thread t if t is below `total`; the others get
    zeros. Raises UnsupportedPrimitive.
    """
    closed, out = jax.make_jaxpr(lambda *leaves: s.search(list(leaves), True), return_shape=True)(*s.entry)
    own = {"shared": "0", "world": "(long long)w", "entry": "(long long)e"}
    leaves = list(zip(s.entry, s.place, strict=True))
    arguments = [f"a{i} + {own[place]} * {math.prod(x.shape)}" for i, (x, place) in enumerate(leaves)]
    number = C_TYPES[str(out.dtype)]
    parameters = [f"const {C_TYPES[str(x.dtype)]}* a{i}" for i, x in enumerate(s.entry)]
    parameters += ["const int* order", "const int* total", f"{number}* out"]
    signature = ", ".join(parameters)
    names = ", ".join(p.split()[-1] for p in parameters)
    return f"""{ONE_LANE}{c_function("search", closed)}
FUNCTION void visit(int t, {signature}) {{
int e = order[t], w = e / {length};
{number}* row = out + (long long)e * {out.size};
if (t < total[0]) search({", ".join([*arguments, "row"])});
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
    order, total = real_first(count, length)
    how = kernels.Launch(-(-len(order) // THREADS), THREADS)
    return kernels.launch(pool_source(s, len(count), length), "pool", [*leaves, order, total[None]], out, how)


def real_first(count: Array, length: int) -> tuple[Array, Array]:
    """All entries, the first `count` of each world before the others, and how many those are."""
    real = (np.arange(length) < count[:, None]).reshape(-1)
    before = jnp.cumsum(real, dtype=jnp.int32)
    every = jnp.arange(len(real), dtype=jnp.int32)
    place = jnp.where(real, before - 1, before[-1] + every - before)
    order = jnp.zeros_like(every).at[place].set(every, unique_indices=True, mode="promise_in_bounds")
    return order, before[-1]
