"""A function of scalars and small arrays as one thread runs it, in C99 and CUDA alike."""

import math
from pathlib import Path
from typing import Any

from jaxsim.native.expressions import PREAMBLE, UnsupportedPrimitive, c_type
from jaxsim.native.jaxpr import GPU, Var, flatten
from jaxsim.native.source_text import text
from jaxsim.native.statements import compute
from jaxsim.native.writer import Buffer, Writer

ONE_LANE = f"{PREAMBLE}\n#ifndef LANES\n#define LANES 1\n{text(Path(__file__).parent, 'lane.h')}#endif\n"

MOST_ON_STACK = 1 << 14  # bytes of an array


def c_function(name: str, closed: Any) -> str:
    """A function `name(in0, in1, ..., out0, ...)` of pointers that writes the results of a closed jaxpr.

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
    results = [w.buffer(v.dtype, math.prod(v.shape), f"out{i}") for i, v in enumerate(flat.outputs)]
    made = {v for op in flat.operations for v in op.outputs}
    targets = {v: b for v, b in zip(flat.outputs, results, strict=True) if isinstance(v, Var) and v in made}
    found = compute(w, flat, args, targets)
    for v, buffer, x in zip(flat.outputs, results, found, strict=True):
        if x.size and x.buffer is not buffer:
            w.fill(buffer, x, v.shape)
    if any(line.startswith(("cholesky(", "solve_")) for line in w.lines):
        raise UnsupportedPrimitive("a system of equations by one thread")
    parameters = [f"const {c_type(v.dtype)}* in{i}" for i, v in enumerate(flat.inputs)]
    parameters += [f"{c_type(b.dtype)}* {b.name}" for b in results]
    arrays = [_declared(b) for b in w.buffers if not b.given]
    body, tables = "\n".join([*arrays, *w.lines]), "\n".join(w.tables)
    return f"{tables}\nFUNCTION void {name}({', '.join(parameters)}) {{\n{body}\n}}\n"


def _declared(b: Buffer) -> str:
    """The declaration of an array: of this thread, if it is large, with its address found once and not in each loop."""
    kind, size = c_type(b.dtype), max(b.size, 1)
    if b.nbytes <= MOST_ON_STACK:
        return f"{kind} {b.name}[{size}];"
    own = f"static _Thread_local {kind} {b.name}_memory[{size}]; {kind}* volatile {b.name}_place = {b.name}_memory;"
    return f"{own} {kind}* __restrict__ const {b.name} = {b.name}_place;"
