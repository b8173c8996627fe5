"""Copy rows between arrays of a batch and those of a group of it: XLA's gathers and scatters of a CPU move numbers."""

from collections.abc import Sequence

import jax

from jaxsim.math.safe import Array
from jaxsim.native import compiler as native
from jaxsim.native.core_program import BYTES
from jaxsim.native.nvrtc import CompilerMissing
from jaxsim.xla.loops import COPIES, RowCopies

_SOURCE = f"""{native.PREAMBLE}{BYTES}
static size_t bytes_of_row(const XLA_FFI_Buffer* x) {{
  size_t size = bytes[x->dtype];
  for (int k = 1; k < x->rank; k++) size *= x->dims[k];
  return size;
}}
XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {{
  if (is_question(frame)) return 0;
  const int* place = (const int*)argument(frame, 0)->data;
  const long long rows = argument(frame, 0)->dims[0];
  for (int i = 0; i < frame->rets.size; i++) {{
    const XLA_FFI_Buffer *from = argument(frame, i + 1), *to = result(frame, i);
    const size_t size = bytes_of_row(from);
    const long long last = (TAKES ? from : to)->dims[0] - 1;
    for (long long k = 0; size && k < rows; k++) {{
      if (TAKES)
        memcpy((char*)to->data + k * size, (char*)from->data + (place[k] < last ? place[k] : last) * size, size);
      else if (place[k] <= last)
        memcpy((char*)to->data + place[k] * size, (char*)from->data + k * size, size);
    }}
  }}
  return 0;
}}
"""
_TAKE, _PUT = (f"#define TAKES {takes}\n{_SOURCE}" for takes in (1, 0))


def _take(places: Array, arrays: Sequence[Array]) -> Sequence[Array]:
    out = [jax.ShapeDtypeStruct((len(places), *x.shape[1:]), x.dtype) for x in arrays]
    return _called(_TAKE, out, {}, places, *arrays)


def _put(places: Array, arrays: Sequence[Array], rows: Sequence[Array]) -> Sequence[Array]:
    count = len(arrays)
    out = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
    return _called(_PUT, out, {1 + count + i: i for i in range(count)}, places, *rows, *arrays)


def _called(
    source: str, out: Sequence[jax.ShapeDtypeStruct], aliases: dict[int, int], *operands: Array
) -> Sequence[Array]:
    return jax.ffi.ffi_call(native.target_of(source), out, input_output_aliases=aliases)(*operands)


def row_copies() -> RowCopies:
    """Return functions that copy rows of numbers on a CPU by one call for all arrays, or by XLA without a compiler."""
    try:
        for source in (_TAKE, _PUT):
            native.target_of(source)
    except CompilerMissing:
        return COPIES
    return RowCopies(_take, _put)
