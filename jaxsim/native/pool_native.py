"""Run the searches of `pool` as machine code of a CPU: over worlds and entries, or over vectors of entries."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.math.safe import Array
from jaxsim.native import vectors
from jaxsim.native.c_source import ONE_LANE, c_function
from jaxsim.native.compiler import PREAMBLE as HANDLER
from jaxsim.native.compiler import SCALAR, WORKERS, WORLDS, target_of
from jaxsim.native.expressions import c_type
from jaxsim.native.jaxpr import VECTORS, flatten
from jaxsim.native.pool_kernel import KernelSearch

ENTRIES_OF_PART = 512  # that a thread searches at a time, of one world


def native_source(s: KernelSearch) -> tuple[str, tuple[str, ...]]:
    """Return source of a handler of (leaves..., steps, count) for any number of worlds and entries, and its flags.

    The first `count[w]` entries of world w are searched; the others get zeros. The two `steps` of a leaf are its
    strides over worlds and entries, so one source serves one world and batches. Raises UnsupportedPrimitive.
    """
    closed, out = jax.make_jaxpr(lambda *leaves: s.search(list(leaves), True), return_shape=True)(*s.entry)
    types = [c_type(x.dtype) for x in s.entry]
    number, size = c_type(out.dtype), out.size
    pointers = [f"const {t}* a{i} = ({t}*)argument(frame, {i})->data;" for i, t in enumerate(types)]
    of_world = [f"a{i} + steps[{2 * i}] * w * {math.prod(x.shape)}" for i, x in enumerate(s.entry)]
    if s.by_vectors:
        function, parts, nbytes = vectors.of_vector(
            flatten(closed, VECTORS), [place in ("entry", "row") for place in s.place], unsized=True
        )
        assert not parts  # a search calls no other functions
        memory = vectors.memory(nbytes)
        step, call = "WORLDS", f"visit(memory, i, last - i < WORLDS ? last - i : WORLDS, {', '.join(of_world)}, row)"
    else:
        function, memory, step = f"{HANDLER}{WORKERS}{ONE_LANE}{c_function('search', closed)}", "", "1"
        sizes = [math.prod(x.shape) for x in s.entry]
        places = [f"{x} + steps[{2 * i + 1}] * i * {sizes[i]}" for i, x in enumerate(of_world)]
        call = f"search({', '.join(places)}, row + i * {size})"
    extern = 'extern "C" ' * s.by_vectors
    source = f"""{function}
static void entries(long long begin, long long end, const void* data) {{
{memory}
XLA_FFI_CallFrame* frame = (XLA_FFI_CallFrame*)data;
{chr(10).join(pointers)}
const int* steps = (int*)argument(frame, {len(types)})->data;
const int* count = (int*)argument(frame, {len(types) + 1})->data;
const XLA_FFI_Buffer* found = result(frame, 0);
const long long length = found->dims[1], parts = (length + {ENTRIES_OF_PART} - 1) / {ENTRIES_OF_PART};
for (long long p = begin; p < end; ++p) {{
const long long w = p / parts, first = p % parts * {ENTRIES_OF_PART};
const long long until = first + {ENTRIES_OF_PART} < length ? first + {ENTRIES_OF_PART} : length;
const long long last = count[w] < first ? first : count[w] < until ? count[w] : until;
{number}* row = ({number}*)found->data + w * length * {size};
for (long long i = first; i < last; i += {step}) {call};
memset(row + last * {size}, 0, (until - last) * {size} * sizeof({number}));
}}
}}
{extern}XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {{
if (is_question(frame)) return 0;
const int64_t* dims = result(frame, 0)->dims;
share(frame, dims[0] * ((dims[1] + {ENTRIES_OF_PART} - 1) / {ENTRIES_OF_PART}), 1, entries, frame);
return 0;
}}
"""
    return source, WORLDS if s.by_vectors else SCALAR


def search_natively(
    source: tuple[str, tuple[str, ...]], place: Sequence[str], leaves: list[Array], count: Array, out: Any
) -> Array:
    """Return results like `out` (nworld, n, k): of the first `count` (nworld,) entries, and zeros for the others.

    Only for a CPU. `place` is as in `KernelSearch`. Raises CompilerMissing.
    """
    steps = {"shared": (0, 0), "world": (1, 0), "row": (0, 1), "entry": (out.shape[1], 1)}
    table = np.array([steps[p] for p in place], np.int32).reshape(-1)
    return jax.ffi.ffi_call(target_of(*source), out)(*leaves, table, count.astype(jnp.int32))
