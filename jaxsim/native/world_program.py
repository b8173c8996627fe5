"""Functions of a world that are machine code on a CPU: C source of our own, with a plain form in JAX for all else.

XLA makes a kernel of every few operations, each with a start of its own and a place in memory for what it hands on. A
stage of many small steps, of which most are not taken, is one call here: world after world, in the memory of a core.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.math.safe import Array
from jaxsim.native import compiler as native
from jaxsim.native.c_source import ONE_LANE, c_function
from jaxsim.native.expressions import C_TYPES, PREAMBLE, UnsupportedPrimitive
from jaxsim.native.function import CPU, NativeFunction, of_world
from jaxsim.native.jaxpr import trace

WORLDS_OF_PART = 8  # that a thread computes before it takes more: some tens of microseconds


class ProgramSource(NamedTuple):
    """C source of a function `world(in0, in1, ..., out0, out1, ...)` of pointers; results begin as zeros.

    `parts` are sources of functions that it calls, each a library of its own, which other programs share.
    """

    world: str
    parts: tuple[str, ...] = ()


class WorldProgram(NamedTuple):
    """Two forms of a function of a world's arrays, whose results are like `results`.

    `plain(*operands)` returns a sequence of arrays. `source()` raises UnsupportedPrimitive where there is no other.
    Both give the same numbers but for rounding. Derivatives are those of the plain form.
    """

    plain: Callable[..., Sequence[Array]]
    source: Callable[[], ProgramSource]
    results: tuple[jax.ShapeDtypeStruct, ...]
    label: str  # in messages
    inlined: bool = False  # programs of vectors of worlds contain `plain` instead of a call


def scalar_source(function: Callable[..., Sequence[Array]], operands: Sequence[Array]) -> Callable[[], ProgramSource]:
    """`source` of a program that computes `function(*operands)`, written as one thread runs it (`c_source`)."""
    shapes = [jax.ShapeDtypeStruct(jnp.shape(x), jax.dtypes.canonicalize_dtype(x.dtype)) for x in operands]

    def source() -> ProgramSource:
        written = c_function("world", trace(lambda *x: list(function(*x)), shapes))
        return ProgramSource(ONE_LANE + written.replace("FUNCTION void world(", "static void world("))

    return source


def rebuilt(tree: Any, operands: Sequence[Array]) -> Callable[[Sequence[Array]], Any]:
    """A function of values for the `operands`, which are leaves of the tree, that gives the tree with these values.

    Other leaves that are traced become None: a program reads only what it is given.
    """
    leaves, structure = jax.tree.flatten(tree)
    place_of = {id(x): i for i, x in enumerate(operands)}
    places = [place_of.get(id(leaf)) for leaf in leaves]
    known = [None if isinstance(leaf, jax.Array) else leaf for leaf in leaves]

    def of(values: Sequence[Array]) -> Any:
        return structure.unflatten([k if i is None else values[i] for i, k in zip(places, known, strict=True)])

    return of


@lru_cache(maxsize=32)
def _sources(program: WorldProgram, operands: tuple[jax.ShapeDtypeStruct, ...]) -> ProgramSource:
    """Source of a handler of (operands..., whether each has worlds) for any number of worlds, and of its parts."""
    source = program.source()
    n = len(operands)
    inputs = [f"const {C_TYPES[str(x.dtype)]}* a{i} = argument(frame, {i})->data;" for i, x in enumerate(operands)]
    outputs = [f"{C_TYPES[str(x.dtype)]}* r{i} = result(frame, {i})->data;" for i, x in enumerate(program.results)]
    clear = [
        f"memset(r{i} + first * {math.prod(x.shape)}, 0, (last - first) * {math.prod(x.shape) * x.dtype.itemsize});"
        for i, x in enumerate(program.results)
    ]
    places = [f"a{i} + w * steps[{i}] * {math.prod(x.shape)}" for i, x in enumerate(operands)]
    places += [f"r{i} + w * {math.prod(x.shape)}" for i, x in enumerate(program.results)]
    lines = "\n".join([*inputs, *outputs, *clear])
    handler = f"""{native.PREAMBLE}{native.WORKERS}{PREAMBLE}{source.world}
static void worlds(long long first, long long last, const void* data) {{
XLA_FFI_CallFrame* frame = (XLA_FFI_CallFrame*)data;
const int* steps = argument(frame, {n})->data;
{lines}
for (long long w = first; w < last; ++w)
world({", ".join(places)});
}}
XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {{
if (!is_question(frame)) share(frame, result(frame, 0)->dims[0], {WORLDS_OF_PART}, worlds, frame);
return 0;
}}
"""
    return ProgramSource(handler, source.parts)


def run_program(program: WorldProgram, *operands: Array) -> list[Array]:
    """Results of the program for one world."""
    return WORLD_PROGRAM(program, *operands)


def _begin(program: WorldProgram, worlds: Sequence[bool], operands: Sequence[jax.ShapeDtypeStruct]) -> None:
    with contextlib.suppress(UnsupportedPrimitive):
        main, parts = _sources(program, tuple(operands))
        for source in (*parts, main):
            native.begin(source)


def _on_cpu(program: WorldProgram, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    main, parts = _sources(program, of_world(operands, worlds))
    for part in parts:
        native.load_part(part)
    out = [jax.ShapeDtypeStruct((count, *x.shape), x.dtype) for x in program.results]
    return list(jax.ffi.ffi_call(native.target_of(main), out)(*operands, np.array(worlds, np.int32)))


WORLD_PROGRAM = NativeFunction(
    name="world_program",
    plain=lambda program, *operands: program.plain(*operands),
    results=lambda program, _: program.results,
    programs={CPU: _on_cpu},
    begin=_begin,
    label=lambda program: program.label,
)
