"""Compile a function of one world to programs of one core: C where the generator supports it, JAX operations between.

XLA makes a kernel of every few operations, and each call starts hundreds of kernels. For one world this takes several
times as long as the physics. Here each part between two operations that JAX computes (the solver, collisions of convex
shapes, callbacks) is one call of C. A step has some five parts.
"""

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.math.safe import Array
from jaxsim.native import compiler as native
from jaxsim.native.c_source import ONE_LANE, function_units
from jaxsim.native.compute import has_large_matrices
from jaxsim.native.direct import Computed, DirectCall, Given, direct_source
from jaxsim.native.expressions import UnsupportedPrimitive, c_type
from jaxsim.native.function import CPU, NativeFunction
from jaxsim.native.jaxpr import CORE, Flat, Operation, Term, Var, flatten, trace
from jaxsim.native.segments import Segment, segments, tables_apart, with_all_results, without_shared
from jaxsim.native.simplified import simplified
from jaxsim.native.source_text import text
from jaxsim.native.tile_source import real_type
from jaxsim.xla.compat import eval_jaxpr

MOST_COPIED = 1024  # numbers of an operand that is copied before a call
BODIES = {"cond": "branches", "while": "body_jaxpr", "scan": "jaxpr"}  # functions within an operation


_CALL = """
/* another handler, where none has failed before */
static void call(XLA_FFI_Error** failed, XLA_FFI_Error* (*other)(XLA_FFI_CallFrame*), XLA_FFI_CallFrame* frame,
                 void** operands, int64_t noperand, void** results, int64_t nresult) {
  XLA_FFI_CallFrame own = *frame;
  if (*failed) return;
  own.extension_start = 0;
  own.args.args = operands, own.args.size = noperand;
  own.rets.rets = results, own.rets.size = nresult;
  *failed = other(&own);
}
"""


_HANDLER = """
/* a call for one world, or for the worlds of a batch: then its results have one axis more, and some operands, too */
typedef struct {
  XLA_FFI_CallFrame* frame;
  XLA_FFI_Error* failed;
} Batch;
static void* of_world(const XLA_FFI_Buffer* x, int rank, long long bytes, long long w) {
  return (char*)x->data + (x->rank > rank ? w * bytes : 0);
}
static void worlds(long long first, long long last, const void* data) {
  Batch* b = (Batch*)data;
  XLA_FFI_CallFrame* frame = b->frame;
  for (long long w = first; w < last; ++w) {
    XLA_FFI_Error* failed = 0;
    world(frame, &failed, PASSED);
    if (failed) b->failed = failed;
  }
}
XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {
  Batch b = {frame, 0};
  if (!is_question(frame)) share(frame, result(frame, 0)->rank > RANK ? result(frame, 0)->dims[0] : 1, 1, worlds, &b);
  return b.failed;
}
"""


class _Plan(NamedTuple):
    closed: Any  # the jaxpr
    fixed: tuple[bool, ...]
    label: str
    backend: int | None
    record: Callable[[DirectCall], None] | None  # gets the program at lowering, if it is one C function


def core_program(
    function: Callable[..., Any],
    label: str = "a program",
    backend: int | None = None,
    record: Callable[[DirectCall], None] | None = None,
    fixed: int = 0,
) -> Callable[..., Any]:
    """Return a function of one world (any PyTrees) that runs as programs of one core on a CPU, by JAX elsewhere.

    A result that is an argument stays that argument. Results differ from those of `function` by rounding only. `label`
    names it in messages; `backend` is `opt.backend` of its model. The first `fixed` arguments, as a model, are the same
    in most calls: what depends on these alone is a program of its own. If the rest is one C function, `record` is
    called with it at lowering: a function of the leaves of the arguments, without JAX.
    """

    def run(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        closed, shape = jax.make_jaxpr(lambda *x: function(*tree.unflatten(x)), return_shape=True)(*leaves)
        if closed.effects:
            return function(*args)
        of_argument = dict(zip(closed.jaxpr.invars, leaves, strict=True))
        outputs = closed.jaxpr.outvars
        made = [v.aval.size > 0 and (hasattr(v, "val") or v not in of_argument) for v in outputs]
        own = closed.replace(jaxpr=closed.jaxpr.replace(outvars=[v for v, m in zip(outputs, made, strict=True) if m]))
        noted = None if record is None else partial(_record_all, record, outputs, closed.jaxpr.invars, made)
        count = len(jax.tree.leaves(args[:fixed]))
        plan = _Plan(own, tuple(i < count for i in range(len(leaves))), label, backend, noted)
        computed = iter(CORE_PROGRAM(plan, *leaves) if any(made) else ())
        results = [
            next(computed) if m else of_argument[v] if v in of_argument else jnp.zeros(v.aval.shape, v.aval.dtype)
            for v, m in zip(outputs, made, strict=True)
        ]
        return jax.tree.unflatten(jax.tree.structure(shape), results)

    return run


def _on_cpu(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array] | None:
    if any(worlds):
        return None
    made = _parts(flatten(plan.closed, CORE), plan.fixed)
    if made.is_large:
        return None
    found = [x[None] for x in _by_parts(made, operands)]
    if plan.record is not None and (call := _direct(made)):
        plan.record(call)
    return found


def on_core(
    flat: Flat,
    fixed: Sequence[bool],
    moving: Sequence[bool],
    operands: Sequence[Array],
    flags: tuple[str, ...],
    worlds: Sequence[bool] = (),
) -> list[Array] | None:
    """Return the results by programs of one core; None where XLA's kernels are faster.

    `fixed` marks operands that are the same in most calls, as a model's numbers: what depends on these alone is
    computed before the rest, so that XLA moves it out of loops. `moving` marks operands that a loop replaces in each
    turn, as a state. `worlds` marks those that have a leading axis of worlds, as the results then have; programs take
    the worlds one after the other, on all cores. Raises CompilerMissing.
    """
    made = _parts(flat, [f and not w for f, w in zip(fixed, worlds, strict=True)] if worlds else fixed, flags)
    if made.is_large or (worlds and any(source is None for _, source in made.parts[made.shared :])):
        return None
    count = next((x.shape[0] for x, w in zip(operands, worlds, strict=True) if w), 0) if worlds else 0
    found = _by_parts(made, operands, moving, count)
    if not count:
        return found
    alike = {v for v, w in zip(made.flat.inputs, worlds, strict=False) if not w}  # all other results are of the parts
    return [
        jnp.broadcast_to(x, (count, *x.shape)) if isinstance(v, np.ndarray) or v in alike else x
        for v, x in zip(made.flat.outputs, found, strict=True)
    ]


class _Parts(NamedTuple):
    """A function as parts in their order, of which the first `shared` depend on fixed inputs only."""

    flat: Flat
    tables: list[np.ndarray]  # the last inputs of the function
    parts: list[tuple[Segment, str | None]]  # each with its C source (None: JAX computes it)
    shared: int
    is_large: bool  # whether it has matrices for which a library is faster
    flags: tuple[str, ...]  # of the compiler


def _parts(flat: Flat, fixed: Sequence[bool] = (), flags: tuple[str, ...] = native.ONCE) -> _Parts:
    flat, tables = tables_apart(simplified(flat, CORE), CORE)
    changes = [*(not f for f in fixed), *[False] * len(tables)] if fixed else [True] * len(flat.inputs)
    flat = with_all_results(flat, changes)
    shared, rest = without_shared(flat, changes, CORE)
    is_large = has_large_matrices(rest.operations)
    first, others = (segments(f, [True] * len(f.inputs), CORE) for f in (shared, rest))
    sources = [None if is_large else _source_of(x) for x in (*first, *others)]
    return _Parts(flat, tables, list(zip((*first, *others), sources, strict=True)), len(first), is_large, flags)


def _direct(made: _Parts) -> DirectCall | None:
    """Return the call of the program's only part, and of one before it for what is fixed; None if it has others."""
    if made.shared > 1 or len(made.parts) != made.shared + 1:
        return None
    flat = made.flat
    place: dict[Var, Any] = {v: Given(i) for i, v in enumerate(flat.inputs[: len(flat.inputs) - len(made.tables)])}
    given = [(v.shape, str(v.dtype)) for v in place]
    place |= dict(zip(flat.inputs[len(place) :], made.tables, strict=True))
    call: DirectCall | None = None
    for part, source in made.parts:
        if part.flat is None or source is None:
            return None
        outputs = part.flat.outputs
        kinds = [(v.shape, str(v.dtype)) for v in outputs]
        operands, own = tuple(place[v] for v in part.flat.inputs), tuple(map(Computed, range(len(outputs))))
        target = native.target_of(source, made.flags)
        is_last = part is made.parts[-1][0]
        for i, v in enumerate(outputs):
            if isinstance(v, Var):
                place[v] = Computed(i) if is_last else Given(len(given) + i)
        call = DirectCall(target, tuple(given), operands, tuple(kinds), own, call)
        given += kinds
    results = tuple(v if isinstance(v, np.ndarray) else place[v] for v in flat.outputs)
    return None if call is None else call._replace(results=results)


def _record_all(
    record: Callable[[DirectCall], None], outputs: Sequence[Any], given: Sequence[Any], made: Sequence[bool],
    call: DirectCall,
) -> None:  # fmt: skip
    """Record the call with the results that are arguments or empty too."""
    own, place = iter(call.results), {v: Given(i) for i, v in enumerate(given)}
    empty = lambda v: np.zeros(v.aval.shape, v.aval.dtype)  # noqa: E731
    results = [next(own) if m else place[v] if v in place else empty(v) for v, m in zip(outputs, made, strict=True)]
    record(call._replace(results=tuple(results)))


def _by_parts(made: _Parts, operands: Sequence[Array], moving: Sequence[bool] = (), count: int = 0) -> list[Array]:
    """Return the results of the operations for one world, or for `count` worlds. Raises CompilerMissing."""
    flat, tables, parts = made[:3]
    if any(moving):
        native.begin(COPIES)
    for _, source in parts:
        if source is not None:
            native.begin(source, made.flags)
    given: dict[Var, Array] = dict(zip(flat.inputs, (*operands, *map(jnp.asarray, tables)), strict=True))
    read = {v for part, _ in parts[made.shared :] if part.flat is not None for v in part.flat.inputs}
    small = {v for v, m in zip(flat.inputs, moving, strict=False) if m and 0 < math.prod(v.shape) <= MOST_COPIED}
    own = list(filter((read & small).__contains__, flat.inputs))
    env = given | dict(zip(own, copied([given[v] for v in own]), strict=True))
    for k, (part, source) in enumerate(parts):
        if part.flat is not None and source is not None:
            env |= _called(part.flat, source, env, made.flags, count if k >= made.shared else 0)
            continue
        for op in part.flat.operations if part.flat is not None else filter(None, [part.operation]):
            env |= dict(zip(op.outputs, _by_jax(op, [_read(env, v) for v in op.inputs]), strict=True))
    return [_read(env | given, v) for v in flat.outputs]


def _called(flat: Flat, source: str, env: dict[Var, Array], flags: tuple[str, ...], count: int) -> dict[Var, Array]:
    """Return the results of a part, computed by the handler of its source, for one world or for `count` worlds."""
    for target in dict.fromkeys(re.findall(r"^XLA_FFI_Error\* (jaxsim_\w+)\(", source, re.MULTILINE)):
        native.let_call(target)
    lead = (count,) if count else ()
    out = [jax.ShapeDtypeStruct((*lead, *v.shape), v.dtype) for v in flat.outputs]
    found = jax.ffi.ffi_call(native.target_of(source, flags), out)(*(env[v] for v in flat.inputs))
    return {v: x for v, x in zip(flat.outputs, found, strict=True) if isinstance(v, Var)}


BYTES = """static const size_t bytes[] = {
  [XLA_FFI_DataType_PRED] = 1, [XLA_FFI_DataType_U8] = 1, [XLA_FFI_DataType_S8] = 1,
  [XLA_FFI_DataType_F16] = 2, [XLA_FFI_DataType_BF16] = 2, [XLA_FFI_DataType_U16] = 2, [XLA_FFI_DataType_S16] = 2,
  [XLA_FFI_DataType_S32] = 4, [XLA_FFI_DataType_U32] = 4, [XLA_FFI_DataType_F32] = 4,
  [XLA_FFI_DataType_S64] = 8, [XLA_FFI_DataType_U64] = 8, [XLA_FFI_DataType_F64] = 8,
};
"""  # of a number of each type
# In a loop XLA would copy each array of a state that a call reads and replaces, and start other threads for so many
# copies. This call copies all.
COPIES = f"""{native.PREAMBLE}{BYTES}XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {{
  if (is_question(frame)) return 0;
  for (int i = 0; i < frame->args.size; i++) {{
    const XLA_FFI_Buffer* x = argument(frame, i);
    size_t size = bytes[x->dtype];
    for (int k = 0; k < x->rank; k++) size *= x->dims[k];
    memcpy(result(frame, i)->data, x->data, size);
  }}
  return 0;
}}
"""


def copied(arrays: Sequence[Array]) -> Sequence[Array]:
    """Return copies of arrays, by one call. Raises CompilerMissing."""
    out = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
    return jax.ffi.ffi_call(native.target_of(COPIES), out)(*arrays) if arrays else ()


def _source_of(part: Segment) -> str | None:
    """Return the source of a part; None if JAX computes it."""
    try:
        return None if part.flat is None else _source(part.flat)
    except UnsupportedPrimitive:
        return None


def _source(flat: Flat) -> str:
    """Return C source of the handler of a function. Raises UnsupportedPrimitive."""
    every = [*flat.inputs, *flat.outputs]
    kinds = [c_type(v.dtype) for v in every]
    places = [*(f"argument(frame, {i})" for i in range(len(flat.inputs)))]
    places += [*(f"result(frame, {i})" for i in range(len(flat.outputs)))]
    passed = [
        f"({kind}*)of_world({place}, {len(v.shape)}, {math.prod(v.shape) * v.dtype.itemsize}, w)"
        for kind, place, v in zip(kinds, places, every, strict=True)
    ]
    real = real_type(flat, [v for v in flat.outputs if isinstance(v, Var)])
    head = f"""{native.PREAMBLE}#include <math.h>
#define REAL {c_type(real)}
#define T REAL
#define SQRT {"sqrt" if real == np.float64 else "sqrtf"}
{ONE_LANE}{text(Path(__file__).parent, "systems.h")}
enum {{ lane }};
{_CALL}"""
    handler = f"""{native.WORKERS}{_HANDLER}
{direct_source(kinds)}"""
    handler = handler.replace("PASSED", ", ".join(passed)).replace("RANK", str(len(flat.outputs[0].shape)))
    return native.UNIT.join(head + unit for unit in function_units("world", flat)) + handler


def _read(env: dict[Var, Array], v: Term) -> Array:
    return jnp.asarray(v) if isinstance(v, np.ndarray) else env[v]


def _by_jax(op: Operation, operands: Sequence[Array]) -> Sequence[Array]:
    """Return the results of a JAX operation; bodies of its branches or its loop become programs of one core."""
    params = dict(op.params)
    if (name := BODIES.get(op.name)) is not None:
        inner = params[name]
        params[name] = tuple(map(_body, inner)) if isinstance(inner, tuple) else _body(inner)
    found = op.primitive.bind(*operands, **params)
    return found if op.primitive.multiple_results else [found]


def _body(closed: Any) -> Any:
    return trace(lambda *x: _by_parts(_parts(flatten(closed, CORE)), x), closed.in_avals)


CORE_PROGRAM = NativeFunction(
    name="core_program",
    plain=lambda plan, *operands: eval_jaxpr(plan.closed.jaxpr, plan.closed.consts, *operands),
    results=lambda plan, _: [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in plan.closed.out_avals],
    programs={CPU: _on_cpu},
    label=lambda plan: plan.label,
    backend=lambda plan: plan.backend,
)
