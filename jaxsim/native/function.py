"""Functions of one world that have native programs on some platforms, and are JAX operations on all others.

Each is a JAX primitive, so that only the program of the target platform is generated. This module holds the rules that
all of them share: abstract evaluation, batching, JVP, lowering, and the fallback where no native program exists.
"""

import functools
import gc
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxsim.core.errors import UnsupportedError
from jaxsim.core.types import Backend
from jaxsim.math.safe import Array
from jaxsim.native import compiler, trust
from jaxsim.native.expressions import UnsupportedPrimitive
from jaxsim.native.jaxpr import CORE_FORMS, GPU, PLAIN_FORMS, TPU, forget, trace
from jaxsim.native.nvrtc import CompilerMissing
from jaxsim.xla.batching import merged
from jaxsim.xla.compat import Primitive, ad, batching, eval_jaxpr, mlir

CPU = "cpu"
Shape = jax.ShapeDtypeStruct
# (plan, which operands have a leading axis of worlds, number of worlds, operands) -> results, worlds leading.
Batch = Callable[[Any, Sequence[bool], int, Sequence[Array]], Sequence[Array] | None]


@dataclass(frozen=True, eq=False)
class NativeFunction:
    """A function of a static plan and of the arrays of one world.

    `plain(plan, *operands)` is the reference implementation. It returns a sequence of arrays like
    `results(plan, operands)`. `programs`, by platform, give the same results for a batch. A program raises
    UnsupportedPrimitive or CompilerMissing if it cannot be made, and returns None to choose JAX operations. `batched`
    is the implementation of a batch on other platforms; the default is `plain` of each world. `begin` starts to compile
    for a CPU while the caller goes on tracing. `label(plan)` names the function in messages. `backend(plan)` is the
    model's `opt.backend`, or None.
    """

    name: str
    plain: Callable[..., Sequence[Array]]
    results: Callable[[Any, Sequence[Shape]], Sequence[Shape]]
    programs: Mapping[str, Batch]
    label: Callable[[Any], str]
    batched: Batch | None = None
    begin: Callable[[Any, Sequence[bool], Sequence[Shape]], None] | None = None
    backend: Callable[[Any], int | None] = lambda _: None
    primitive: Primitive = field(init=False)

    def __post_init__(self) -> None:
        # `worlds` None: one world. Else it marks the operands that have an axis of worlds; all results have one
        primitive = Primitive(self.name)
        primitive.multiple_results = True
        object.__setattr__(self, "primitive", primitive)
        primitive.def_impl(partial(_run, primitive))
        primitive.def_abstract_eval(partial(_shapes, self))
        for platform in self.programs:
            mlir.register_lowering(primitive, partial(lowering, self, platform), platform=platform)
        mlir.register_lowering(primitive, partial(lowering, self, None))
        batching.primitive_batchers[primitive] = partial(batched, primitive)
        ad.primitive_jvps[primitive] = partial(_jvp, self)
        PLAIN_FORMS[self.name] = lambda eqn: trace(partial(self.by_jax, **eqn.params), [v.aval for v in eqn.invars])
        on_core = partial(_chosen, self, CPU)
        CORE_FORMS[self.name] = lambda eqn: trace(partial(on_core, **eqn.params), [v.aval for v in eqn.invars])

    def __call__(self, plan: Any, *operands: Array) -> list[Array]:
        """Return the results for one world."""
        return self.primitive.bind(*map(jnp.asarray, operands), plan=plan, worlds=None)

    def by_jax(self, *operands: Array, plan: Any, worlds: tuple[bool, ...] | None) -> list[Array]:
        """Evaluate the primitive by JAX operations: the reference implementation."""
        if worlds is None:
            return list(self.plain(plan, *operands))
        if self.batched:
            return list(self.batched(plan, worlds, size_of(operands, worlds), operands) or ())
        axes = tuple(0 if w else None for w in worlds)
        return list(jax.vmap(lambda *x: list(self.plain(plan, *x)), in_axes=axes)(*operands))


def size_of(operands: Sequence[Any], worlds: Sequence[bool]) -> int:
    """Return the number of worlds of the operands."""
    return next(x.shape[0] for x, w in zip(operands, worlds, strict=True) if w)


def of_world(operands: Sequence[Any], worlds: Sequence[bool]) -> tuple[Shape, ...]:
    """Return the shapes of one world's operands."""
    return tuple(Shape(x.shape[1:] if w else x.shape, x.dtype) for x, w in zip(operands, worlds, strict=True))


def _run(primitive: Primitive, *operands: Array, **params: Any) -> list[Array]:
    return jax.jit(partial(primitive.bind, **params))(*operands)


def _shapes(f: NativeFunction, *operands: Any, plan: Any, worlds: tuple[bool, ...] | None) -> list[Any]:
    given = worlds or (False,) * len(operands)
    own = of_world(operands, given)
    if f.begin and jax.default_backend() == CPU:
        f.begin(plan, given, own)
    results = f.results(plan, own)
    if worlds is None:
        return [core.ShapedArray(x.shape, x.dtype) for x in results]
    first = next(x for x, w in zip(operands, worlds, strict=True) if w)
    return [_split_like(first, core.ShapedArray((first.shape[0], *x.shape), x.dtype)) for x in results]


def _split_like(operand: Any, result: Any) -> Any:
    """Return the type of a result whose worlds are split over the axes of an explicit mesh as those of an operand."""
    spec = operand.sharding.spec
    spec = spec.update(partitions=(spec[0], *[None] * (result.ndim - 1)))
    return result.update(sharding=operand.sharding.update(spec=spec))


class Choice(NamedTuple):
    """How a function was lowered: its label, and the reason why XLA computes it, or None for a native program."""

    label: str
    cause: str | None


class _Lowering(NamedTuple):
    """Settings while a program is lowered: the model's `opt.backend`, and the list that collects choices."""

    backend: int = Backend.AUTO
    choices: list[Choice] | None = None


_USUAL = _Lowering()
_lowering: ContextVar[_Lowering] = ContextVar("lowering")


@contextmanager
def _within(**changes: Any) -> Iterator[None]:
    before = _lowering.set(_lowering.get(_USUAL)._replace(**changes))
    try:
        yield
    finally:
        _lowering.reset(before)


def choices_of(lower: Callable[[], Any]) -> list[Choice]:
    """Call `lower()`, which lowers a program, and return the choices made meanwhile, in their order."""
    found: list[Choice] = []
    with _within(choices=found):
        lower()
    return found


@contextmanager
def paused_collections() -> Iterator[None]:
    """Pause Python's garbage collector: it took a quarter of the time in which a step is traced and written."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@paused_collections()
def lowering(f: NativeFunction, platform: str | None, ctx: Any, *operands: Any, plan: Any, **params: Any) -> Any:
    """Lower the function: to its native program of the platform, or to JAX operations."""
    demanded = f.backend(plan)
    with nullcontext() if demanded is None else _within(backend=demanded):
        written = _written if platform == CPU else _chosen
        run = mlir.lower_fun(partial(written, f, platform, plan=plan, **params), multiple_results=True)
        plain = [core.ShapedArray(x.shape, x.dtype) for x in ctx.avals_in]  # without axes of an explicit mesh
        return run(ctx.replace(avals_in=plain), *operands)


def _written(f: NativeFunction, platform: str | None, *operands: Array, **params: Any) -> list[Array]:
    """Return the results of `_chosen`, whose C is compiled while the rest of the program is written."""
    choices = _lowering.get(_USUAL).choices
    known = len(choices or ())
    try:
        with compiler.loaded_at_end():
            program = trace(partial(_chosen, f, platform, **params), operands)
    except CompilerMissing:  # again, with an error for the very function whose C is refused
        del (choices or [])[known:]
        forget()
        program = trace(partial(_chosen, f, platform, **params), operands)  # JAX knows the other partial's jaxpr
    return eval_jaxpr(program.jaxpr, program.consts, *operands)


def _chosen(
    f: NativeFunction, platform: str | None, *operands: Array, plan: Any, worlds: tuple[bool, ...] | None
) -> list[Array]:
    """Return the results of the native program of the platform, or of JAX operations."""
    backend, choices = _lowering.get(_USUAL)
    if backend != Backend.XLA and platform is not None and platform in f.programs:
        given = worlds or (False,) * len(operands)
        count = 1 if worlds is None else size_of(operands, worlds)
        try:
            if platform in (GPU, TPU) and backend != Backend.NATIVE and (fault := trust.fault()):
                raise UnsupportedPrimitive(f"native programs are not used on this device, since {fault}")
            found = f.programs[platform](plan, given, count, operands)
            if found is not None:
                if choices is not None:
                    choices.append(Choice(f.label(plan), None))
                return [x[0] for x in found] if worlds is None else list(found)
        except (UnsupportedPrimitive, CompilerMissing) as error:
            fall_back(f.label(plan), error, backend)
    return f.by_jax(*operands, plan=plan, worlds=worlds)


@functools.cache
def warn_once(message: str) -> None:
    """Issue a RuntimeWarning, once per process."""
    warnings.warn(message, RuntimeWarning, stacklevel=2)


def fall_back(label: str, error: UnsupportedPrimitive | CompilerMissing, backend: int | None) -> None:
    """Warn once per process that XLA runs a function, and why; a missing compiler gives one warning for all.

    Raises UnsupportedError if the backend is NATIVE.
    """
    if backend == Backend.NATIVE:
        raise UnsupportedError(f"opt.backend 'native': {label}: {error}") from error
    what = "programs of jaxsim's own run" if type(error) is CompilerMissing else f"{label} runs"
    warn_once(f"{what} by XLA instead, with the same results but slower: {error}")
    if (choices := _lowering.get(_USUAL).choices) is not None:
        choices.append(Choice(label, str(error)))


def jvp_of_plain(plain: Callable[..., Sequence[Array]], primals: tuple, tangents: tuple) -> tuple[list, list]:
    """Return values and tangents of a function of arrays, for the operands that have tangents."""
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


def _jvp(f: NativeFunction, primals: tuple, tangents: tuple, **params: Any) -> tuple[list, list]:
    return jvp_of_plain(partial(f.by_jax, **params), primals, tangents)


def batched(
    primitive: Primitive, operands: tuple, dims: tuple, *, plan: Any, worlds: tuple[bool, ...] | None
) -> tuple[list, list]:
    """Batch a native function: a batch of batches is flattened into one axis."""
    outer = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    if worlds is None:
        moved = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True)]
        found = primitive.bind(*moved, plan=plan, worlds=tuple(d is not None for d in dims))
        return found, [0] * len(found)
    inside = [x if d is None else np.empty(np.delete(x.shape, d), bool) for x, d in zip(operands, dims, strict=True)]
    size = size_of(inside, worlds)
    of = list(zip(operands, dims, worlds, strict=True))
    full = [x if d is None and not w else merged(x, d, 0 if w else None, outer, size) for x, d, w in of]
    found = primitive.bind(*full, plan=plan, worlds=tuple(d is not None or w for _, d, w in of))
    return [x.reshape(outer, size, *x.shape[1:]) for x in found], [0] * len(found)
