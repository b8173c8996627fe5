"""Generate a function of scalars and small arrays for one thread, in source that is valid C99 and CUDA."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jaxsim.native.compute import compute
from jaxsim.native.expressions import PREAMBLE, UnsupportedPrimitive, c_type
from jaxsim.native.jaxpr import THREAD, Flat, Var, flatten
from jaxsim.native.source_text import text
from jaxsim.native.units import HIDDEN, LENGTH, units
from jaxsim.native.writer import Buffer, Writer

# gcc's -O2 makes vectors only of loops whose length is a multiple of a vector's, without this. Clang refuses the flag.
VECTORS_OF_LOOPS = """#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC optimize("vect-cost-model=cheap")
#endif"""
LANE = text(Path(__file__).parent, "lane.h")
ONE_LANE = f"{VECTORS_OF_LOOPS}\n{PREAMBLE}\n#ifndef LANES\n#define LANES 1\n{LANE}#endif\n"

MOST_ON_STACK, MOST_OF_ALL = 1 << 14, 1 << 16  # bytes of an array, and of all: threads of some systems have 512 KB
# bytes of a thread-local array, which is touched as a whole; larger ones belong to the call
MOST_OF_THREAD = 1 << 22


def c_function(name: str, closed: Any) -> str:
    """Return source of `name(in0, in1, ..., out0, ...)`, a function of pointers that evaluates a closed jaxpr.

    The source must come after `ONE_LANE`. Slices of arguments must lie inside (`math.arrays.row_at`): they are not
    clamped, so the source does not depend on the lengths of arguments. Raises UnsupportedPrimitive.
    """
    source = function_source(name, flatten(closed, THREAD), unsized=True)
    if re.search(r"^(cholesky\(|solve_)", source, re.MULTILINE):
        raise UnsupportedPrimitive("a system of equations by one thread")
    return source


def function_source(name: str, flat: Flat, unsized: bool = False) -> str:
    """Return source like `c_function` for flat operations, which may solve systems of equations.

    If they do, the source must come after `systems.h`. With `unsized`, slices of arguments are not clamped. Raises
    UnsupportedPrimitive.
    """
    w, parameters = _written(name, flat, unsized, calls=False)
    (unit,) = units(w)
    memory = [b for b in w.buffers if not b.given]
    return _function(f"FUNCTION void {name}", parameters.values(), memory, _declared(memory), unit.lines, unit.tables)


def function_units(name: str, flat: Flat) -> list[str]:
    """Return source of a function as its units (`units.py`); the last is the function, which calls those before it.

    Its first arguments are (frame, failed), those of `call`: it may call handlers of other libraries. Each unit must
    come after `call` and `systems.h`. Raises UnsupportedPrimitive.
    """
    w, parameters = _written(name, flat, unsized=False, calls=True, unit=LENGTH)
    parts = units(w)
    memory = [b for b in w.buffers if not b.given]
    declared = _declared(memory)
    readers = Counter(word for part in parts for word in part.words)
    passed = {b.name: f"{c_type(b.dtype)}* __restrict__ {b.name}" for b in memory if readers[b.name] > 1}
    found, prototypes, calls = [], [], []
    for i, part in enumerate(parts):
        mine = {n: p for n, p in (parameters | passed).items() if n in part.words or n in CALL}
        own = [b for b in memory if b.name in part.words and b.name not in passed]
        head = f"{HIDDEN} void {name}_{i}"
        found.append(_function(head, mine.values(), own, declared, part.lines, part.tables))
        prototypes.append(f"{head}({', '.join(mine.values())});")
        calls.append(f"{name}_{i}({', '.join(mine)});")
    shared = [b for b in memory if b.name in passed]
    return [*found, _function(f"FUNCTION void {name}", parameters.values(), shared, declared, calls, prototypes)]


CALL = {"frame": "XLA_FFI_CallFrame* frame", "failed": "XLA_FFI_Error** failed"}  # parameters, for calls of handlers


def _written(
    name: str, flat: Flat, unsized: bool, calls: bool, unit: float = math.inf
) -> tuple[Writer, dict[str, str]]:
    """Return what was written of a function, and its parameters by name."""
    w = Writer(lanes=1, prefix=f"{name}_", sequential=True, calls=calls)
    args = []
    for i, v in enumerate(flat.inputs):
        buffer = w.buffer(v.dtype, math.prod(v.shape), f"in{i}")
        buffer.unsized = unsized
        args.append(w.stored(buffer, v.shape))
    results = [w.buffer(v.dtype, math.prod(v.shape), f"out{i}") for i, v in enumerate(flat.outputs)]
    made = {v for op in flat.operations for v in op.outputs}
    targets = {v: b for v, b in zip(flat.outputs, results, strict=True) if isinstance(v, Var) and v in made}
    found = compute(w, flat, args, targets, unit=unit)
    for v, buffer, x in zip(flat.outputs, results, found, strict=True):
        if x.size and x.buffer is not buffer:
            w.fill(buffer, x, v.shape)
    w.leave_out_unread()
    parameters = {f"in{i}": f"const {c_type(v.dtype)}* in{i}" for i, v in enumerate(flat.inputs)}
    alone = "__restrict__ " if calls else ""  # a caller of other functions may write over what they read
    parameters |= {b.name: f"{c_type(b.dtype)}* {alone}{b.name}" for b in results}
    return w, (CALL if calls else {}) | parameters


def _function(
    head: str, parameters: Iterable[str], memory: Sequence[Buffer], declared: dict[Buffer, str],
    lines: Sequence[str], tables: Sequence[str],
) -> str:  # fmt: skip
    """Return source of a function with these arrays."""
    freed = [f"free({b.name});" for b in memory if b.nbytes > MOST_OF_THREAD]
    body = "\n".join([*(declared[b] for b in memory), *lines, *freed])
    return "\n".join(tables) + f"\n{head}({', '.join(parameters)}) {{\n{body}\n}}\n"


def _declared(buffers: Sequence[Buffer]) -> dict[Buffer, str]:
    """Return declarations of a function's arrays: on the stack, thread-local, or if they are large, of a call."""
    found, left = {}, MOST_OF_ALL
    for b in sorted(buffers, key=lambda b: b.nbytes):
        left -= b.nbytes
        on_stack = left >= 0 and b.nbytes <= MOST_ON_STACK
        found[b] = _on_stack(b) if on_stack else _of_thread(b) if b.nbytes <= MOST_OF_THREAD else _of_call(b)
    return found


def _on_stack(b: Buffer) -> str:
    return f"{c_type(b.dtype)} {b.name}[{max(b.size, 1)}];"


def _of_thread(b: Buffer) -> str:
    """Return the declaration of a thread-local array, whose address is loaded once and not in each loop."""
    kind, memory = c_type(b.dtype), f"{b.name}_memory"
    own = f"static _Thread_local {kind} {memory}[{b.size}]; {kind}* volatile {b.name}_place = {memory};"
    return f"{own} {kind}* __restrict__ const {b.name} = {b.name}_place;"


def _of_call(b: Buffer) -> str:
    return f"{c_type(b.dtype)}* __restrict__ const {b.name} = allocated({b.nbytes});"
