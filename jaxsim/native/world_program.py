"""Functions of a world that are machine code on a CPU: C source of our own, with a plain form in JAX for all else.

XLA makes a kernel of every few operations, each with a start of its own and a place in memory for what it hands on. A
stage of many small steps, of which most are not taken, is one call here: world after world, in the memory of a core.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxsim.math.safe import Array
from jaxsim.native import compiler as native
from jaxsim.native.expressions import C_TYPES, PREAMBLE, UnsupportedPrimitive
from jaxsim.native.jaxpr import PLAIN_FORMS, trace
from jaxsim.native.nvrtc import CompilerMissing
from jaxsim.xla.batching import merged
from jaxsim.xla.compat import Primitive, ad, batching, mlir

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
    inlined: bool = False  # programs of vectors of worlds contain `plain` instead of a call


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


def run_program(program: WorldProgram, *operands: Array) -> list[Array]:
    """Results of the program for one world."""
    return world_p.bind(*map(jnp.asarray, operands), program=program, axes=None)


# Operands without worlds if `axes` is None; otherwise with an axis of worlds first, unless their entry of `axes` is
# None. Results have the worlds first.
world_p = Primitive("world_program")
world_p.multiple_results = True


@world_p.def_impl
def _run(*operands: Array, program: WorldProgram, axes: tuple | None) -> list[Array]:
    return jax.jit(lambda *x: world_p.bind(*x, program=program, axes=axes))(*operands)


@world_p.def_abstract_eval
def _shape(*operands: Any, program: WorldProgram, axes: tuple | None) -> list[Any]:
    if jax.default_backend() == "cpu":
        with contextlib.suppress(UnsupportedPrimitive):
            main, parts = _sources(program, _of_world(operands, axes))
            for source in (*parts, main):
                native.begin(source)
    lead = () if axes is None else (_size(operands, axes),)
    return [core.ShapedArray((*lead, *x.shape), x.dtype) for x in program.results]


def _size(operands: Sequence[Any], axes: tuple) -> int:
    return next(x.shape[0] for x, a in zip(operands, axes, strict=True) if a is not None)


def _of_world(operands: Sequence[Any], axes: tuple | None) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Shapes of the operands of one world."""
    axes = axes or (None,) * len(operands)
    shapes = [x.shape if a is None else x.shape[1:] for x, a in zip(operands, axes, strict=True)]
    return tuple(jax.ShapeDtypeStruct(s, x.dtype) for s, x in zip(shapes, operands, strict=True))


def by_jax(*operands: Array, program: WorldProgram, axes: tuple | None) -> list[Array]:
    """What the primitive means, by operations of JAX."""
    plain = lambda *x: list(program.plain(*x))  # noqa: E731
    return (plain if axes is None else jax.vmap(plain, in_axes=axes))(*operands)


def _on_cpu(*operands: Array, program: WorldProgram, axes: tuple | None) -> list[Array]:
    try:
        return natively(*operands, program=program, axes=axes)
    except (UnsupportedPrimitive, CompilerMissing):
        return by_jax(*operands, program=program, axes=axes)


def natively(*operands: Array, program: WorldProgram, axes: tuple | None) -> list[Array]:
    """What the primitive means, by machine code of a CPU. Raises UnsupportedPrimitive and CompilerMissing."""
    main, parts = _sources(program, _of_world(operands, axes))
    for part in parts:
        native.load_part(part)
    target = native.target_of(main)
    kept = axes or (None,) * len(operands)
    worlds = 1 if axes is None else _size(operands, axes)
    steps = np.array([0 if a is None else 1 for a in kept], np.int32)
    out = [jax.ShapeDtypeStruct((worlds, *x.shape), x.dtype) for x in program.results]
    found = jax.ffi.ffi_call(target, out)(*operands, steps)
    return [x[0] for x in found] if axes is None else list(found)


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


mlir.register_lowering(world_p, mlir.lower_fun(_on_cpu, multiple_results=True), platform="cpu")
mlir.register_lowering(world_p, mlir.lower_fun(by_jax, multiple_results=True))


def jvp_of_plain(plain: Callable[..., Sequence[Array]], primals: tuple, tangents: tuple) -> tuple[list, list]:
    """Values and derivatives of a function of arrays, by the operands that have tangents."""
    moving = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]

    def of(*x: Array) -> list[Array]:
        full = list(primals)
        for i, value in zip(moving, x, strict=True):
            full[i] = value
        return list(plain(*full))

    found, moved = jax.jvp(of, [primals[i] for i in moving], [tangents[i] for i in moving])
    real = [jnp.issubdtype(x.dtype, jnp.inexact) for x in found]
    none = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in found]
    return found, [t if r else z for t, r, z in zip(moved, real, none, strict=True)]


def _jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple[list, list]:
    return jvp_of_plain(partial(by_jax, **params), primals, tangents)


ad.primitive_jvps[world_p] = _jvp


def _batch(operands: tuple, dims: tuple, *, program: WorldProgram, axes: tuple | None) -> tuple[list, list]:
    """A batch; a batch of batches as one larger batch."""
    outer = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    if axes is None:
        moved = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True)]
        found = world_p.bind(*moved, program=program, axes=tuple(None if d is None else 0 for d in dims))
        return found, [0] * len(found)
    inside = [x if d is None else np.empty(np.delete(x.shape, d), bool) for x, d in zip(operands, dims, strict=True)]
    size = _size(inside, axes)
    of = list(zip(operands, dims, axes, strict=True))
    full = [x if d is None and a is None else merged(x, d, a, outer, size) for x, d, a in of]
    out_axes = tuple(None if d is None and a is None else 0 for _, d, a in of)
    found = world_p.bind(*full, program=program, axes=out_axes)
    return [x.reshape(outer, size, *x.shape[1:]) for x in found], [0] * len(found)


batching.primitive_batchers[world_p] = _batch


def _plain_form(eqn: Any) -> Any:
    return trace(partial(by_jax, **eqn.params), [v.aval for v in eqn.invars])


PLAIN_FORMS[world_p.name] = _plain_form
