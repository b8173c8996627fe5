"""Compile a function of one world for vectors of worlds on a CPU: each SIMD lane computes one world.

XLA makes many small kernels of a reverse pass, whose inner loops go over axes of three or six numbers. Here the inner
loop is over worlds, always as long as a vector, and intermediate values stay in the cache of a core.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from jaxsim.math.safe import Array
from jaxsim.native import compiler as native
from jaxsim.native.compute import compute
from jaxsim.native.expressions import NUMBERS, PREAMBLE, UnsupportedPrimitive, c_type
from jaxsim.native.jaxpr import Flat, Term, Var
from jaxsim.native.source_text import text
from jaxsim.native.tile_source import real_type
from jaxsim.native.units import HIDDEN, LENGTH, units
from jaxsim.native.writer import Buffer, Writer, places

# Bounds of such a program; the ant has 290,000 numbers, 0.9 MB
MOST_NUMBERS = 1_000_000  # entries of all results, for one world
MOST_BYTES = 8 << 20  # of arrays of a vector of worlds


Program = tuple[str, list[str]]  # C++ source of a handler, and C sources of functions that it calls


def run(
    flat: Flat,
    has_worlds: Sequence[bool],
    count: int,
    operands: Sequence[Array],
    flags: tuple[str, ...] = native.WORLDS,
) -> list[Array]:
    """Return results (count, ...). Raises UnsupportedPrimitive, and CompilerMissing without a C++ compiler."""
    return call(source(flat, tuple(has_worlds)), flat.outputs, (count,), operands, flags)


def begin(program: Program, flags: tuple[str, ...] = native.WORLDS) -> None:
    """Start to compile a program in other threads."""
    text, parts = program
    for part in parts:
        native.begin(part)
    native.begin(text, flags)


def call(
    program: Program, outputs: Sequence[Term], lead: tuple[int, ...], operands: Sequence[Array], flags: tuple[str, ...]
) -> list[Array]:
    """Return results (*lead, ...): `lead` is the number of worlds and, if a vector holds directions, that of these."""
    text, parts = program
    begin(program, flags)
    for part in parts:
        native.load_part(part)
    out = [jax.ShapeDtypeStruct((*lead, *v.shape), v.dtype) for v in outputs]
    return list(jax.ffi.ffi_call(native.target_of(text, flags), out)(*operands))


def source(flat: Flat, has_worlds: tuple[bool, ...], tangents: int = 0) -> Program:
    """Return the program of a function for any number of worlds. Raises UnsupportedPrimitive.

    With `tangents`, a vector holds directions of one world: the last `tangents` inputs and all results have an axis of
    directions, after that of worlds if they have one.
    """
    fixed = len(flat.inputs) - tangents
    wide = tuple(i >= fixed for i in range(len(flat.inputs))) if tangents else has_worlds
    text, parts, nbytes = of_vector(flat, wide)
    outputs = [v for v in flat.outputs if isinstance(v, Var)]
    places = [f"({c_type(v.dtype)}*)argument(frame, {i})->data" for i, v in enumerate(flat.inputs)]
    places += [f"({c_type(v.dtype)}*)result(frame, {i})->data" for i, v in enumerate(outputs)]
    if tangents:
        sizes = [math.prod(v.shape) for v in (*flat.inputs, *outputs)]
        rows = ["world"] * fixed + ["world * directions"] * (tangents + len(outputs))
        own = [*has_worlds, *(True for _ in outputs)]
        places = [f"{p} + {r} * {n}" if o else p for p, r, n, o in zip(places, rows, sizes, own, strict=True)]
    number = f"sizes[0] * {_VECTORS.format(1)}" if tangents else _VECTORS.format(0)
    return (
        f"""{text}
static void vectors(long long first, long long last, const void* data) {{
{memory(nbytes)}
XLA_FFI_CallFrame* frame = (XLA_FFI_CallFrame*)data;
const long long* sizes = (const long long*)result(frame, 0)->dims;
{_DIRECTIONS if tangents else _WORLDS}visit(memory, begin, left < WORLDS ? left : WORLDS, {", ".join(places)});
}}
}}
extern "C" XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {{
if (is_question(frame)) return 0;
const long long* sizes = (const long long*)result(frame, 0)->dims;
share(frame, {number}, 1, vectors, frame);
return 0;
}}
""",
        parts,
    )


_VECTORS = "((sizes[{}] + WORLDS - 1) / WORLDS)"
_WORLDS = """for (long long v = first; v < last; ++v) {
const long long begin = v * WORLDS, left = sizes[0] - begin;
"""
_DIRECTIONS = f"""const long long directions = sizes[1], each = {_VECTORS.format(1)};
for (long long v = first; v < last; ++v) {{
const long long world = v / each, begin = v % each * WORLDS, left = directions - begin;
"""


class TooManyNumbers(UnsupportedPrimitive):
    """A world has more numbers than a vector of worlds may have."""


def memory(nbytes: int) -> str:
    """Return the declaration of the memory of a thread that `visit` works in."""
    return f"alignas(64) static thread_local char memory[{max(nbytes, 64)}];"


def of_vector(flat: Flat, has_worlds: Sequence[bool], unsized: bool = False) -> tuple[str, list[str], int]:
    """Return C++ source of a function for a vector, C sources of functions that it calls, and the bytes of its memory.

    The function is `visit(memory, first, worlds, in..., out...)`: pointers to arrays of all worlds, the first world of
    the vector, and how many it holds. With `unsized`, slices of arguments without worlds are not clamped. Raises
    UnsupportedPrimitive.
    """
    made = {v for op in flat.operations for v in op.outputs}
    if sum(math.prod(v.shape) for v in made) > MOST_NUMBERS:
        raise TooManyNumbers("so many numbers of a world")
    outputs = [v for v in flat.outputs if isinstance(v, Var)]
    w = Writer(keeps_more=True, lanes=1, vector=native.vector_bytes(), real=real_type(flat, outputs))
    inputs = [
        _buffer(w, v, f"in{i}", given=not worlds)
        for i, (v, worlds) in enumerate(zip(flat.inputs, has_worlds, strict=True))
    ]
    for b in inputs:
        b.unsized = unsized and b.uniform
    results = [_buffer(w, v, f"out{i}") for i, v in enumerate(outputs)]
    args = [w.stored(b, v.shape) for b, v in zip(inputs, flat.inputs, strict=True)]
    place = {b: f"to{i} + first * {b.size}" for i, b in enumerate(results)}

    def hand_out(b: Buffer) -> None:
        """Write a result to the worlds' memory as soon as it is computed, while it is in the cache."""
        w.line(f"unpack({b.name}, {place.pop(b)}, {b.size}, worlds);")
        b.last = w.epoch = w.epoch + 1

    targets = {v: b for v, b in zip(outputs, results, strict=True) if v in made}
    found = compute(w, flat, args, targets, made=hand_out, unit=LENGTH)
    for v, b, x in zip(outputs, results, found, strict=True):
        if b in place:
            if x.buffer is not b:
                w.fill(b, x, v.shape)
            hand_out(b)
    w.leave_out_unread()
    parts = [part for program in w.externals.values() for part in program.parts]
    text, nbytes = _text(w, flat, outputs, has_worlds)
    return text, [*parts, *(_exported(n, p.world) for n, p in w.externals.items())], nbytes


def _exported(name: str, world: str) -> str:
    """Return C source of a library that exports the function `world` of a program's source as `name`."""
    return f"#include <string.h>\n{PREAMBLE}{world.replace('static void world(', f'void {name}(')}"


def _buffer(w: Writer, v: Var, name: str, given: bool = False) -> Buffer:
    """Return an array with this name: that of all worlds in global memory if `given`, else of a vector of worlds."""
    found = w.buffer(v.dtype, math.prod(v.shape), name, uniform=given)
    found.given = given
    return found


def _text(w: Writer, flat: Flat, outputs: Sequence[Var], has_worlds: Sequence[bool]) -> tuple[str, int]:
    """Return the source of `visit` as units (`units.py`), the last of which may be continued, and bytes of memory."""
    placed, nbytes = places([b for b in w.buffers if not b.given], native.vector_bytes())
    if nbytes > MOST_BYTES:
        raise TooManyNumbers("so many numbers of a world at once")
    names = [f"from{i}" if worlds else f"in{i}" for i, worlds in enumerate(has_worlds)]
    pointers = {name: f"const {c_type(v.dtype)}* {name}" for name, v in zip(names, flat.inputs, strict=True)}
    pointers |= {f"to{i}": f"{c_type(v.dtype)}* to{i}" for i, v in enumerate(outputs)}
    sizes = {i: math.prod(v.shape) for i, v in enumerate(flat.inputs) if has_worlds[i] and math.prod(v.shape)}
    packed = [f"pack(in{i}, from{i} + first * {n}, {n}, worlds);" for i, n in sizes.items()]
    state = {"memory": "char* memory", "first": "long long first", "worlds": "int worlds"}
    real = real_type(flat, outputs)
    root = "sqrt" if real == np.float64 else "sqrtf"
    start = native.PREAMBLE + _NUMBERS.format(c_type(real), 8 * real.itemsize, native.vector_bytes(), root)
    here = Path(__file__).parent
    wide, lane, systems = (text(here, name) for name in ("wide.h", "lane.h", "systems.h"))
    head = f"{start}{wide.replace('NUMBERS_H', NUMBERS)}{PREAMBLE}{lane}{systems}"
    found, prototypes, calls = [], [], []
    for i, unit in enumerate(units(w, packed)):
        own = state | {name: p for name, p in pointers.items() if name in unit.words}
        name = f"void visit_{i}({', '.join(own.values())})"
        used = {b: at for b, at in placed.items() if b.name in unit.words}
        body = [f"{_vector(b)}* {b.name} = ({_vector(b)}*)(memory + {at});" for b, at in used.items()]
        lines = "\n".join([*unit.tables, f"{HIDDEN} {name} {{", "const int lane = 0;", *body, *unit.lines, "}"])
        found.append(f"{head}{lines}")
        prototypes.append(f"{HIDDEN} {name};")
        calls.append(f"visit_{i}({', '.join(own)});")
    every = ", ".join([*state.values(), *pointers.values()])
    main = "\n".join([*prototypes, f"static void visit({every}) {{", *calls, "}", ""])
    if len(found) == 1:  # small programs are many, and each run of the compiler takes a tenth of a second
        return f"{found[0]}\n{native.WORKERS}{main}", nbytes
    return f"{native.UNIT.join(found)}{native.UNIT}{start}{native.WORKERS}{main}", nbytes


_NUMBERS = """#include <math.h>
#define REAL {}
#define REAL_BITS {}
#define VECTOR_BYTES {}
#define WORLDS (int)(VECTOR_BYTES / sizeof(REAL))
#define T F
#define SQRT {}
#define FUNCTION static
"""


def _vector(b: Buffer) -> str:
    return c_type(b.dtype) if b.uniform else f"typename Of<{c_type(b.dtype)}>::vector"
