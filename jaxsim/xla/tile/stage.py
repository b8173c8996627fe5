"""A function of a world that is a few kernels on a GPU, and what it is everywhere else.

It is traced once, as `jit` would. On a GPU what this room can write becomes kernels (`segments.py`); on other
platforms, and in derivatives, its operations stand where the call stood. A primitive of JAX, so that only the form for
the platform of the program is made.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxsim.math.safe import Array
from jaxsim.xla import kernels
from jaxsim.xla.batching import merged
from jaxsim.xla.c_expressions import UnsupportedPrimitive
from jaxsim.xla.compat import Primitive, ad, batching, eval_jaxpr, mlir
from jaxsim.xla.nvrtc import CompilerMissing
from jaxsim.xla.tile.equations import Flat, Operation, Var, flatten
from jaxsim.xla.tile.kernel import PLATFORM
from jaxsim.xla.tile.segments import segments
from jaxsim.xla.tile.source import TileSource, tile_source

MOST_CONSTANTS = 4096  # numbers of a table within a kernel
# computes a kernel: its function, which inputs have worlds, how many worlds, the inputs
Run = Callable[[Flat, Sequence[bool], int, Sequence[Array]], list[Array]]


class _Plan(NamedTuple):
    """What a stage computes, and whether kernels run on other platforms too, by a C compiler: for tests."""

    traced: "_Traced"
    on_host: bool


class _Traced:
    """A closed jaxpr, for `jit` to compare: two are the same if they are one object."""

    def __init__(self, closed: Any) -> None:
        self.closed = closed

    @cached_property
    def flat(self) -> Flat:
        """The operations on a GPU."""
        return flatten(self.closed, PLATFORM)


def stage(function: Callable[..., Any], on_host: bool = False) -> Callable[..., Any]:
    """The function of one world's arrays (any PyTrees), as a few kernels on a GPU, and elsewhere too if `on_host`."""

    def run(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        traced, shape = jax.make_jaxpr(lambda *x: function(*tree.unflatten(x)), return_shape=True)(*leaves)
        closed, constants = _closed(traced)
        plan = _Plan(_Traced(closed), on_host)
        found = stage_p.bind(*constants, *map(jnp.asarray, leaves), plan=plan, axes=None)
        return jax.tree.unflatten(jax.tree.structure(shape), found)

    return run


def _closed(traced: Any) -> tuple[Any, list[Array]]:
    """A jaxpr without the constants that are not known now or are large, which become its first operands."""
    apart = [not isinstance(c, np.ndarray) or c.size > MOST_CONSTANTS for c in traced.consts]
    mine = [c for c, a in zip(traced.consts, apart, strict=True) if not a]

    def of(constants: Sequence[Array], *args: Array) -> list[Array]:
        rest, own = iter(constants), iter(mine)
        return eval_jaxpr(traced.jaxpr, [next(rest) if a else next(own) for a in apart], *args)

    if not any(apart):
        return traced, []
    constants = [jnp.asarray(c) for c, a in zip(traced.consts, apart, strict=True) if a]
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in traced.jaxpr.invars]
    return jax.make_jaxpr(of)(constants, *shapes), constants


# Operands without worlds if `axes` is None; otherwise with an axis of worlds first, unless their entry of `axes` is
# None. Results have the worlds first.
stage_p = Primitive("stage")
stage_p.multiple_results = True


@stage_p.def_impl
def _run(*operands: Array, plan: _Plan, axes: tuple | None) -> list[Array]:
    return jax.jit(lambda *x: stage_p.bind(*x, plan=plan, axes=axes))(*operands)


@stage_p.def_abstract_eval
def _shape(*operands: Any, plan: _Plan, axes: tuple | None) -> list[Any]:
    lead = () if axes is None else (_size(operands, axes),)
    return [core.ShapedArray((*lead, *v.aval.shape), v.aval.dtype) for v in plan.traced.closed.jaxpr.outvars]


def _size(operands: Sequence[Any], axes: tuple) -> int:
    return next(x.shape[0] for x, a in zip(operands, axes, strict=True) if a is not None)


def by_jax(*operands: Array, plan: _Plan, axes: tuple | None) -> list[Array]:
    """What the primitive means, by operations of JAX."""
    closed = plan.traced.closed
    plain = partial(eval_jaxpr, closed.jaxpr, closed.consts)
    return list((plain if axes is None else jax.vmap(plain, in_axes=axes))(*operands))


def _on_cuda(*operands: Array, plan: _Plan, axes: tuple | None) -> list[Array]:
    try:
        return by_kernels(_on_gpu, *operands, plan=plan, axes=axes)
    except CompilerMissing:
        return by_jax(*operands, plan=plan, axes=axes)


def _elsewhere(*operands: Array, plan: _Plan, axes: tuple | None) -> list[Array]:
    form = partial(by_kernels, _on_host) if plan.on_host else by_jax
    return form(*operands, plan=plan, axes=axes)


def by_kernels(run: Run, *operands: Array, plan: _Plan, axes: tuple | None) -> list[Array]:
    """What the primitive means, by kernels, each computed by `run`. Raises CompilerMissing."""
    flat, count = plan.traced.flat, 1 if axes is None else _size(operands, axes)
    has_worlds = [a is not None for a in axes or (None,) * len(operands)]
    env = dict(zip(flat.inputs, zip(operands, has_worlds, strict=True), strict=True))
    for part in segments(flat, has_worlds):
        if part.flat is not None:
            given, worlds = zip(*(env[v] for v in part.flat.inputs), strict=True) if part.flat.inputs else ((), ())
            try:
                found = run(part.flat, worlds, count, given)
                env |= {v: (x, True) for v, x in zip(part.flat.outputs, found, strict=True) if isinstance(v, Var)}
            except UnsupportedPrimitive:  # too many arrays for a kernel
                for op in part.flat.operations:
                    env |= _by_jax(op, env)
        elif part.operation is not None:
            env |= _by_jax(part.operation, env)
    out = []
    for v in flat.outputs:
        x, worlds = (jnp.asarray(v), False) if isinstance(v, np.ndarray) else env[v]
        x = x if worlds else jnp.broadcast_to(x, (count, *x.shape))
        out.append(x[0] if axes is None else x)
    return out


def _by_jax(op: Operation, env: dict[Var, tuple[Array, bool]]) -> dict[Var, tuple[Array, bool]]:
    """Results of one operation for all worlds."""
    given = [(jnp.asarray(v), False) if isinstance(v, np.ndarray) else env[v] for v in op.inputs]
    worlds = any(w for _, w in given)

    def of(*x: Array) -> list[Array]:
        found = op.primitive.bind(*x, **op.params)
        return list(found) if op.primitive.multiple_results else [found]

    run = jax.vmap(of, in_axes=tuple(0 if w else None for _, w in given)) if worlds else of
    return {v: (x, worlds) for v, x in zip(op.outputs, run(*(x for x, _ in given)), strict=True)}


def _on_gpu(flat: Flat, has_worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    source = tile_source(flat, has_worlds, count)
    how = kernels.Launch(-(-count // source.worlds), source.lanes * source.worlds, source.shared)
    return kernels.launch(source.text, "tile", operands, _results(flat, source, count), how)[:-1]


def _on_host(flat: Flat, has_worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    source = tile_source(flat, has_worlds, count, lanes=1)
    return kernels.run_on_host(source.text, "tile", operands, _results(flat, source, count))[:-1]


def _results(flat: Flat, source: TileSource, count: int) -> list[jax.ShapeDtypeStruct]:
    """What the kernel writes, its scratch last."""
    out = [jax.ShapeDtypeStruct((count, *v.shape), v.dtype) for v in flat.outputs]
    return [*out, jax.ShapeDtypeStruct((max(1, count * source.scratch),), np.int8)]


mlir.register_lowering(stage_p, mlir.lower_fun(_on_cuda, multiple_results=True), platform=PLATFORM)
mlir.register_lowering(stage_p, mlir.lower_fun(_elsewhere, multiple_results=True))


def _jvp(primals: tuple, tangents: tuple, *, plan: _Plan, axes: tuple | None) -> tuple[list, list]:
    """Values and derivatives by operations of JAX; results that do not depend on what moves have none."""
    moving = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]

    def of(moved: list[Array], *x: Array) -> tuple[list[Array], list[Array]]:
        def partly(*y: Array) -> list[Array]:
            full = dict(enumerate(x)) | dict(zip(moving, y, strict=True))
            return by_jax(*full.values(), plan=plan, axes=axes)

        return jax.jvp(partly, [x[i] for i in moving], moved)

    traced = jax.make_jaxpr(of)([tangents[i] for i in moving], *primals)
    found = eval_jaxpr(traced.jaxpr, traced.consts, *(tangents[i] for i in moving), *primals)
    half = len(found) // 2
    depends = _depends(traced.jaxpr, len(moving))[half:]
    none = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in found[:half]]
    return found[:half], [t if d else z for t, d, z in zip(found[half:], depends, none, strict=True)]


def _depends(jaxpr: Any, count: int) -> list[bool]:
    """Whether each result depends on the first `count` arguments."""
    touched = set(jaxpr.invars[:count])
    for eqn in jaxpr.eqns:
        if any(not hasattr(v, "val") and v in touched for v in eqn.invars):
            touched |= set(eqn.outvars)
    return [not hasattr(v, "val") and v in touched for v in jaxpr.outvars]


ad.primitive_jvps[stage_p] = _jvp


def _batch(operands: tuple, dims: tuple, *, plan: _Plan, axes: tuple | None) -> tuple[list, list]:
    """A batch; a batch of batches as one larger batch."""
    outer = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    if axes is None:
        moved = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True)]
        found = stage_p.bind(*moved, plan=plan, axes=tuple(None if d is None else 0 for d in dims))
        return found, [0] * len(found)
    inside = [x if d is None else np.empty(np.delete(x.shape, d), bool) for x, d in zip(operands, dims, strict=True)]
    size = _size(inside, axes)
    of = list(zip(operands, dims, axes, strict=True))
    full = [x if d is None and a is None else merged(x, d, a, outer, size) for x, d, a in of]
    found = stage_p.bind(*full, plan=plan, axes=tuple(None if d is None and a is None else 0 for _, d, a in of))
    return [x.reshape(outer, size, *x.shape[1:]) for x in found], [0] * len(found)


batching.primitive_batchers[stage_p] = _batch
