"""A function of scalars and small arrays as one thread runs it, in C99 and CUDA alike."""

import math
from pathlib import Path
from typing import Any

from jaxsim.native.expressions import PREAMBLE, UnsupportedPrimitive, c_type
from jaxsim.native.jaxpr import GPU, Var, flatten
from jaxsim.native.source_text import text
from jaxsim.native.statements import compute
from jaxsim.native.writer import Writer

ONE_LANE = f"{PREAMBLE}\n#ifndef LANES\n#define LANES 1\n{text(Path(__file__).parent, 'lane.h')}#endif\n"


def c_function(name: str, closed: Any) -> str:
    """A function `name(in0, in1, ..., out)` of pointers that writes the only result of a closed jaxpr.

    It follows `ONE_LANE`. Slices of arguments must lie inside (`math.arrays.row_at`): they are not moved there, so that
    the source says nothing of how long arguments are. Raises UnsupportedPrimitive.
    """
    flat = flatten(closed, GPU)
    w = Writer(lanes=1, prefix=f"{name}_", sequential=True)
    args = []
    for i, v in enumerate(flat.inputs):
        buffer = w.buffer(v.dtype, math.prod(v.shape), f"in{i}")
        buffer.unsized = True
        args.append(w.stored(buffer, v.shape))
    (result,) = flat.outputs
    kind = result.dtype
    out = w.buffer(kind, math.prod(result.shape), "out")
    made = {v for op in flat.operations for v in op.outputs}
    (found,) = compute(w, flat, args, {result: out} if isinstance(result, Var) and result in made else None)
    if found.buffer is not out:
        w.fill(out, found, result.shape)
    if any(line.startswith(("cholesky(", "solve_")) for line in w.lines):
        raise UnsupportedPrimitive("a system of equations by one thread")
    parameters = [f"const {c_type(v.dtype)}* in{i}" for i, v in enumerate(flat.inputs)]
    arrays = [f"{c_type(b.dtype)} {b.name}[{max(b.size, 1)}];" for b in w.buffers if not b.given]
    body, tables = "\n".join([*arrays, *w.lines]), "\n".join(w.tables)
    return f"{tables}\nFUNCTION void {name}({', '.join([*parameters, f'{c_type(kind)}* out'])}) {{\n{body}\n}}\n"
