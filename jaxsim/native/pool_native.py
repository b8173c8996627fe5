"""Run the searches of `pool` as machine code of a CPU, sequentially over worlds and entries."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.math.safe import Array
from jaxsim.native.c_source import ONE_LANE, c_function
from jaxsim.native.compiler import PREAMBLE as HANDLER
from jaxsim.native.compiler import WORKERS, target_of
from jaxsim.native.expressions import C_TYPES
from jaxsim.native.pool_kernel import KernelSearch


def native_source(s: KernelSearch) -> str:
    """Return C source of a handler of (leaves..., steps, count) for any number of worlds and entries.

    The first `count[w]` entries of world w are searched; the others get zeros. The two `steps` of a leaf are its
    strides over worlds and entries, so one source serves one world and batches. Raises UnsupportedPrimitive.
    """
    closed, out = jax.make_jaxpr(lambda *leaves: s.search(list(leaves), True), return_shape=True)(*s.entry)
    types = [C_TYPES[str(x.dtype)] for x in s.entry]
    number, size = C_TYPES[str(out.dtype)], out.size
    pointers = [f"const {t}* a{i} = argument(frame, {i})->data;" for i, t in enumerate(types)]
    places = [
        f"a{i} + (steps[{2 * i}] * w + steps[{2 * i + 1}] * i) * {math.prod(x.shape)}" for i, x in enumerate(s.entry)
    ]
    return f"""{HANDLER}{WORKERS}{ONE_LANE}{c_function("search", closed)}
static void worlds(long long first, long long last, const void* data) {{
XLA_FFI_CallFrame* frame = (XLA_FFI_CallFrame*)data;
{chr(10).join(pointers)}
const int* steps = argument(frame, {len(types)})->data;
const int* count = argument(frame, {len(types) + 1})->data;
const XLA_FFI_Buffer* found = result(frame, 0);
const long long length = found->dims[1];
memset(({number}*)found->data + first * length * {size}, 0, (last - first) * length * {size} * sizeof({number}));
for (long long w = first; w < last; ++w)
for (long long i = 0; i < count[w] && i < length; ++i) {{
{number}* row = ({number}*)found->data + (w * length + i) * {size};
search({", ".join([*places, "row"])});
}}
}}
XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {{
if (!is_question(frame)) share(frame, result(frame, 0)->dims[0], 1, worlds, frame);
return 0;
}}
"""


def search_natively(source: str, place: Sequence[str], leaves: list[Array], count: Array, out: Any) -> Array:
    """Return results like `out` (nworld, n, k): of the first `count` (nworld,) entries, and zeros for the others.

    Only for a CPU. `place` is as in `KernelSearch`. Raises CompilerMissing.
    """
    steps = {"shared": (0, 0), "world": (1, 0), "entry": (out.shape[1], 1)}
    table = np.array([steps[p] for p in place], np.int32).reshape(-1)
    return jax.ffi.ffi_call(target_of(source), out)(*leaves, table, count.astype(jnp.int32))
