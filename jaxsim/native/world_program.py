"""Functions of one world with C source for a CPU, and a reference implementation in JAX for everything else.

XLA makes a kernel of every few operations; each has to be started and passes results through memory. Here a stage of
many small steps, most of which are skipped, is one call. It runs sequentially over worlds, in the cache of a core.
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
from jaxsim.native.expressions import PREAMBLE, UnsupportedPrimitive, c_type
from jaxsim.native.function import CPU, NativeFunction, of_world
from jaxsim.native.jaxpr import trace
from jaxsim.xla.batching import is_read, of_used
from jaxsim.xla.compat import eval_jaxpr

WORLDS_OF_PART = 8  # worlds that a thread takes at a time: some tens of microseconds


class ProgramSource(NamedTuple):
    """C source of a function `world(in0, in1, ..., out0, out1, ...)` of pointers.

    With `clear`, results are zero at the start; without, it writes all of them. `parts` are sources of functions that
    it calls. Each is a separate library, which other programs share.
    """

    world: str
    parts: tuple[str, ...] = ()
    clear: bool = True


class WorldProgram(NamedTuple):
    """Two implementations of a function of one world, with results like `results`.

    `plain(*operands)` returns a sequence of arrays. `source()` raises UnsupportedPrimitive if there is no C source.
    Results of both differ by rounding only. Derivatives are those of `plain`.
    """

    plain: Callable[..., Sequence[Array]]
    source: Callable[[], ProgramSource]
    results: tuple[jax.ShapeDtypeStruct, ...]
    label: str  # in messages
    inlined: bool = False  # programs of vectors of worlds contain `plain` instead of a call
    flags: tuple[str, ...] = native.SCALAR  # of the compiler
    worlds_of_part: int = WORLDS_OF_PART


def scalar_source(function: Callable[..., Sequence[Array]], operands: Sequence[Array]) -> Callable[[], ProgramSource]:
    """Return the `source` of a program that computes `function(*operands)`, generated for one thread (`c_source`)."""
    shapes = [jax.ShapeDtypeStruct(jnp.shape(x), jax.dtypes.canonicalize_dtype(x.dtype)) for x in operands]

    def source() -> ProgramSource:
        written = c_function("world", trace(lambda *x: list(function(*x)), shapes))
        return ProgramSource(ONE_LANE + written.replace("FUNCTION void world(", "static void world("), clear=False)

    return source


def in_one_call(function: Callable[..., Any], label: str) -> Callable[..., Any]:
    """Return a function of one world (any PyTrees) that is one call of generated C on a CPU.

    Programs of vectors of worlds contain the function's operations. `label` names it in messages.
    """

    def run(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        closed, shape = jax.make_jaxpr(lambda *x: function(*tree.unflatten(x)), return_shape=True)(*leaves)
        read = [i for i, r in enumerate(is_read(closed.jaxpr)) if r]
        own, operands = of_used(closed, read), [leaves[i] for i in read]

        def plain(*x: Array) -> Sequence[Array]:
            return eval_jaxpr(own.jaxpr, own.consts, *x)

        results = tuple(jax.ShapeDtypeStruct(v.shape, v.dtype) for v in own.out_avals)
        program = WorldProgram(plain, scalar_source(plain, operands), results, label, inlined=True)
        return jax.tree.unflatten(jax.tree.structure(shape), run_program(program, *operands))

    return run


def rebuilt(tree: Any, operands: Sequence[Array]) -> Callable[[Sequence[Array]], Any]:
    """Return a function that rebuilds the tree with new values for `operands`, which are leaves of the tree.

    Other traced leaves become None: a program may read only its operands.
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
    """Return source of a handler of (operands..., whether each has worlds) for any number of worlds, and its parts."""
    source = program.source()
    n = len(operands)
    inputs = [f"const {c_type(x.dtype)}* a{i} = argument(frame, {i})->data;" for i, x in enumerate(operands)]
    outputs = [f"{c_type(x.dtype)}* r{i} = result(frame, {i})->data;" for i, x in enumerate(program.results)]
    clear = [
        f"memset(r{i} + first * {math.prod(x.shape)}, 0, (last - first) * {math.prod(x.shape) * x.dtype.itemsize});"
        for i, x in enumerate(program.results)
        if source.clear
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
if (!is_question(frame)) share(frame, result(frame, 0)->dims[0], {program.worlds_of_part}, worlds, frame);
return 0;
}}
"""
    return ProgramSource(handler, source.parts)


def run_program(program: WorldProgram, *operands: Array) -> list[Array]:
    """Return the results of the program for one world."""
    return WORLD_PROGRAM(program, *operands)


def begin(program: WorldProgram, worlds: Sequence[bool], operands: Sequence[jax.ShapeDtypeStruct]) -> None:
    """Start to compile a program, for operands of one world, while the caller goes on tracing."""
    with contextlib.suppress(UnsupportedPrimitive):
        source = _sources(program, tuple(operands))
        for part in source.parts:
            native.begin(part)
        native.begin(source.world, program.flags)


def on_cpu(program: WorldProgram, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    """Call a program for `count` worlds. Raises UnsupportedPrimitive or CompilerMissing."""
    source = _sources(program, of_world(operands, worlds))
    for part in source.parts:
        native.load_part(part)
    out = [jax.ShapeDtypeStruct((count, *x.shape), x.dtype) for x in program.results]
    target = native.target_of(source.world, program.flags)
    return list(jax.ffi.ffi_call(target, out)(*operands, np.array(worlds, np.int32)))


WORLD_PROGRAM = NativeFunction(
    name="world_program",
    plain=lambda program, *operands: program.plain(*operands),
    results=lambda program, _: program.results,
    programs={CPU: on_cpu},
    begin=begin,
    label=lambda program: program.label,
)
