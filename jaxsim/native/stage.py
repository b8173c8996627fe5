"""Stages: functions of one world that become a few kernels on a GPU, and one program for a batch on a CPU.

A stage is traced once, as by `jit`. On a GPU the operations that the generator supports become kernels (`segments.py`).
On a CPU a batch becomes one program of vectors of worlds. Otherwise the stage is inlined as JAX operations. Derivatives
are stages too. A stage is a JAX primitive, so that only the program of the target platform is generated.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.ad_checkpoint import checkpoint_name

from jaxsim.core.types import Backend
from jaxsim.math.safe import Array
from jaxsim.native import blocks, vectors
from jaxsim.native import tile_source as tile
from jaxsim.native.compiler import LINEAR, ONCE, WORLDS
from jaxsim.native.compute import is_known
from jaxsim.native.core_program import MOST_COPIED, copied, on_core
from jaxsim.native.directions import split
from jaxsim.native.expressions import TooLarge, UnsupportedPrimitive
from jaxsim.native.function import CPU, NativeFunction, batched, fall_back, jvp_of_plain, paused_collections, size_of
from jaxsim.native.jaxpr import (
    BETWEEN,
    BLOCKS,
    CORE,
    CORE_FORMS,
    GPU,
    OUTLINE,
    PLAIN_FORMS,
    TPU,
    VECTOR_FORMS,
    VECTORS,
    Flat,
    Operation,
    Term,
    Var,
    flatten,
    holds,
    nested,
    trace,
)
from jaxsim.native.operations import VIEWS
from jaxsim.native.segments import Segment, halves, segments, tables_apart, with_all_results
from jaxsim.native.simplified import simplified
from jaxsim.xla.batching import depends, with_results
from jaxsim.xla.compat import ClosedJaxpr, ad, batching, dce_jaxpr, dce_rules, eval_jaxpr

KEPT = "kept_between_kernels"  # checkpoint name of the results of JAX operations that a derivative needs
SOLUTION = "custom_linear_solve"  # the primitive of solutions, which are small and take an elimination
FEWEST_COPIED = 5  # arrays of a loop's state, from which on XLA hands their copies to other threads, which then spin
FEWEST_WORLDS = 8  # of a batch that is computed in vectors: the worlds of one vector, in single precision
# computes a kernel, from its function, which inputs have worlds, the number of worlds, and the inputs
Run = Callable[[Flat, Sequence[bool], int, Sequence[Array]], list[Array]]
Arrays = dict[Var, tuple[Array, bool]]  # arrays, and whether each has an axis of worlds


# Forms of a stage on a CPU:
# "plain": JAX operations;
# "host": kernels compiled by the C compiler, one lane a world, for tests;
# "blocks": a kernel of a TPU, interpreted, for tests;
# "wide": vectors of worlds;
# "core": one world, and its derivatives, are programs of one core, which take the worlds of a batch one after another;
# "batches": as "core", but a batch, with its derivatives, is one program of vectors of worlds;
# "loops": as "batches", for a loop over stages. A GPU leaves the loop to XLA, and so does a CPU if it does not know an
#     operation, or if the arrays of a batch are too large: the stages within have programs of their own;
# "columns": a batch is one program of vectors of worlds, with loops over the directions of stages within. One world is
#     plain, with programs of those stages.


class _Plan(NamedTuple):
    """What a stage computes, and its form on a CPU."""

    traced: "_Traced"
    form: str = "plain"
    label: str = "a stage"
    backend: int | None = None  # `opt.backend` of its model, or that of the stage around it
    tangents: int = 0  # of the last operands, in which it is linear
    fixed: tuple[bool, ...] = ()  # operands that are the same in most calls: leaves of the model
    along: bool = False  # these tangents, and all results, have an axis of directions, after that of worlds
    flags: tuple[str, ...] = WORLDS  # of the C++ compiler
    alone: tuple[str, ...] = ONCE  # of the C compiler, for one world
    copies: bool = False  # the small arrays of a batch's state, as `copying_state` says


class _Traced:
    """A closed jaxpr as a static argument of `jit`: compared by identity."""

    def __init__(self, closed: Any) -> None:
        self.closed = closed
        self.derivatives: dict[tuple[tuple[int, ...], bool], _Derivative] = {}
        self.transposed: dict[tuple[int, ...], _Traced] = {}
        self.pushed: dict[tuple[int, ...], tuple[_Traced, tuple[bool, ...]]] = {}
        self.parts: dict[tuple, tuple[_Traced, list[bool]]] = {}

    def flat(self, platform: str) -> Flat:
        """Return the operations in a program for a platform: GPU or VECTORS."""
        return flatten(self.closed, platform)

    @cached_property
    def unknown(self) -> str | None:
        """Name of an operation that the generator does not support for vectors of worlds, or None."""
        return next((op.name for op in self.flat(VECTORS).operations if not is_known(op, VECTORS)), None)


_copies: ContextVar[bool] = ContextVar("copies", default=False)


@contextmanager
def copying_state() -> Iterator[None]:
    """Let stages that are traced within, as the steps of a loop, copy small states of a batch by one call.

    XLA copies what a loop replaces array by array, and its threads look for such work. Else it copies nothing.
    """
    before = _copies.set(True)
    try:
        yield
    finally:
        _copies.reset(before)


_known: ContextVar[dict | None] = ContextVar("known", default=None)


@contextmanager
def tracing_once() -> Iterator[None]:
    """Trace each stage that is called within once, and differentiate it once, for all calls with the same shapes."""
    before = _known.set({})
    try:
        yield
    finally:
        _known.reset(before)


def stage(
    function: Callable[..., Any],
    form: str = "plain",
    label: str = "a stage",
    backend: int | None = None,
    alone: tuple[str, ...] = ONCE,
) -> Callable[..., Any]:
    """Return a function of one world (any PyTrees) as a stage: a few kernels on a GPU, one of the forms on a CPU.

    `label` names it in messages; `backend` is `opt.backend`, for the stage and all native functions within it. `alone`
    are flags of the C compiler for one world: ONCE or PRODUCTS.
    """

    @paused_collections()
    def run(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        known = _known.get()
        key = function, tree, tuple(map(jax.typeof, leaves))
        if known is None or (found := known.get(key)) is None:
            made, shape = jax.make_jaxpr(lambda *x: function(*tree.unflatten(x)), return_shape=True)(*leaves)
            if made.effects and backend != Backend.XLA:
                fall_back(label, UnsupportedPrimitive("a function in it prints or calls back"), backend)
            if made.effects:
                return function(*args)
            if form == "columns" and not takes_directions(made):
                return jax.tree.unflatten(jax.tree.structure(shape), eval_jaxpr(made.jaxpr, made.consts, *leaves))
            closed, constants = _closed(made)
            found = _Traced(closed), shape, constants
            if known is not None and not constants:
                known[key] = found
        traced, shape, constants = found
        count = len(constants) + len(jax.tree.leaves(args[:1]))
        fixed = tuple(i < count for i in range(len(constants) + len(leaves)))
        plan = _Plan(traced, form, label, backend, fixed=fixed, alone=alone, copies=_copies.get())
        found = STAGE(plan, *constants, *leaves)
        return jax.tree.unflatten(jax.tree.structure(shape), found)

    return run


def _closed(traced: Any) -> tuple[Any, list[Array]]:
    """Return a jaxpr whose traced constants became its first operands, and these constants."""
    apart = [isinstance(c, core.Tracer) for c in traced.consts]
    mine = [np.asarray(c) for c, a in zip(traced.consts, apart, strict=True) if not a]

    def of(constants: Sequence[Array], *args: Array) -> list[Array]:
        rest, own = iter(constants), iter(mine)
        return eval_jaxpr(traced.jaxpr, [next(rest) if a else next(own) for a in apart], *args)

    if not any(apart):
        return traced, []
    constants = [c for c, a in zip(traced.consts, apart, strict=True) if a]
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in traced.jaxpr.invars]
    return jax.make_jaxpr(of)(constants, *shapes), constants


def _on_cuda(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array] | None:
    if plan.along or plan.form in ("columns", "loops"):
        return None
    return by_kernels(tile.launch, GPU, plan, worlds, count, operands)


def _on_cpu(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array] | None:
    if plan.form == "host":
        return by_kernels(tile.run_on_host, GPU, plan, worlds, count, operands)
    if plan.form == "blocks":
        return by_kernels(partial(blocks.run, interpret=True), BLOCKS, plan, worlds, count, operands)
    if plan.form == "wide":
        return by_kernels(vectors.run, VECTORS, plan, worlds, count, operands)
    one_by_one = not any(worlds) or count < FEWEST_WORLDS or plan.form == "core"
    if plan.form in ("batches", "loops", "core") and not plan.along and one_by_one:
        return _one_by_one(plan, worlds, operands)
    if plan.form not in ("batches", "loops", "columns") or not (plan.along or (count >= FEWEST_WORLDS and any(worlds))):
        return None
    if plan.form == "columns":
        return _columns_on_cpu(plan, worlds, count, operands)
    if plan.traced.unknown and plan.form == "loops" and takes_directions(plan.traced.closed):
        return None
    if plan.traced.unknown:
        raise UnsupportedPrimitive(f"a program of vectors does not know the operation {plan.traced.unknown}")
    if plan.along:
        return _by_directions(plan, worlds, count, operands)
    try:
        return by_kernels(partial(vectors.run, flags=plan.flags), VECTORS, plan, worlds, count, operands)
    except vectors.TooManyNumbers:
        return None if plan.form == "loops" else _one_by_one(plan, worlds, operands)


def _one_by_one(plan: _Plan, worlds: Sequence[bool], operands: Sequence[Array]) -> list[Array] | None:
    """Return results by programs of one core, which take the worlds one after another; None if XLA is faster."""
    flags = ONCE if plan.tangents else plan.alone
    first = len(operands) - plan.tangents if plan.tangents else 0
    moving = [i >= first and not f for i, f in enumerate(plan.fixed)]
    of_worlds = worlds if any(worlds) else ()
    found = on_core(plan.traced.flat(CORE), plan.fixed, moving, operands, flags, of_worlds)
    return found if found is None or of_worlds else [x[None] for x in found]


def _on_tpu(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array] | None:
    if plan.along or plan.form == "columns":
        return None
    if not any(worlds):  # a block of one world
        worlds = [not f for f in plan.fixed]
        operands = [x[None] if w else x for x, w in zip(operands, worlds, strict=True)]
    return by_kernels(blocks.run, BLOCKS, plan, worlds, count, operands)


def _columns_on_cpu(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array] | None:
    try:
        return by_kernels(partial(vectors.run, flags=LINEAR), VECTORS, plan, worlds, count, operands)
    except UnsupportedPrimitive:  # the stages within have programs of their own, or say why not
        return None


def _by_directions(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    """Evaluate a linear stage along directions: what they share in vectors of worlds, the rest in vectors of them."""
    fixed = len(operands) - plan.tangents
    flat, tables = tables_apart(plan.traced.flat(VECTORS), VECTORS, plan.tangents)
    shared, along = split(flat, plan.tangents)
    own = [*(worlds[:fixed] if any(worlds) else [True] * fixed), *[False] * len(tables)]
    given = [*(x if any(worlds) else x[None] for x in operands[:fixed]), *map(jnp.asarray, tables)]
    env = dict(zip(shared.inputs, zip(given, own, strict=True), strict=True))
    passed = along.inputs[: len(along.inputs) - plan.tangents]
    made = [v for v in shared.outputs if v not in env]  # others are operands
    parts = segments(Flat(shared.inputs, shared.operations, made), own, VECTORS)
    has_worlds = _have_worlds(parts, env)
    program = vectors.source(along, (*(has_worlds[v] for v in passed), *worlds[fixed:]), plan.tangents)
    vectors.begin(program, LINEAR)  # while the other part is written
    env |= _evaluated(parts, partial(vectors.run, flags=LINEAR), env, count, False)
    size = next(operands[i].shape[int(worlds[i])] for i in range(fixed, len(operands)))
    given = [*(env[v][0] for v in passed), *operands[fixed:]]
    found = vectors.call(program, along.outputs, (count, size), given, LINEAR)
    moved = dict(zip(along.outputs, found, strict=True))

    def result(v: Term) -> Array:
        if isinstance(v, Var) and v in moved:
            return moved[v]
        x, has_axis = (v, False) if isinstance(v, np.ndarray) else env[v]
        return jnp.broadcast_to(x[:, None] if has_axis else x, (count, size, *v.shape))

    return [result(v) for v in plan.traced.flat(VECTORS).outputs]


def _have_worlds(parts: Sequence[Segment], given: Arrays) -> dict[Var, bool]:
    """Return whether each array that these parts read or make has an axis of worlds."""
    found = {v: has_worlds for v, (_, has_worlds) in given.items()}
    for part in parts:
        if part.operation is not None:
            own = any(found[v] for v in part.operation.inputs if isinstance(v, Var))
            found |= dict.fromkeys(part.operation.outputs, own)
        elif part.flat is not None:
            found |= {v: True for v in part.flat.outputs if isinstance(v, Var)}
    return found


def by_kernels(
    run: Run, platform: str, plan: _Plan, has_worlds: Sequence[bool], count: int, operands: Sequence[Array]
) -> list[Array]:
    """Evaluate the primitive by kernels for a platform, each computed by `run`. Raises CompilerMissing."""
    flat, tables = tables_apart(plan.traced.flat(platform), platform)
    operands, has_worlds = (*operands, *map(jnp.asarray, tables)), (*has_worlds, *[False] * len(tables))
    is_whole = platform == VECTORS and plan.form in ("batches", "loops", "columns")
    may_fall_back = not is_whole and platform != BLOCKS
    flat = with_all_results(simplified(flat, platform), has_worlds) if is_whole else flat
    given = dict(zip(flat.inputs, zip(operands, has_worlds, strict=True), strict=True))
    env = given | (_copied_state(plan, flat, given) if is_whole else {})
    env |= _evaluated(segments(flat, has_worlds, platform), run, env, count, may_fall_back)
    out = []
    for v in flat.outputs:
        x, worlds = (jnp.asarray(v), False) if isinstance(v, np.ndarray) else (env | given)[v]
        out.append(x if worlds else jnp.broadcast_to(x, (count, *x.shape)))
    return out


def _copied_state(plan: _Plan, flat: Flat, given: Arrays) -> Arrays:
    """Return copies of the small arrays of a batch that are read and may be a state that a loop replaces."""
    read = {v for op in flat.operations for v in op.inputs if isinstance(v, Var)}
    moving = [v for v, fixed in zip(flat.inputs, plan.fixed, strict=False) if not fixed and v in read and given[v][1]]
    small = [v for v in moving if 0 < given[v][0].size <= MOST_COPIED]
    if not plan.copies or plan.tangents or len(small) < FEWEST_COPIED:
        return {}
    return {v: (x, True) for v, x in zip(small, copied([given[v][0] for v in small]), strict=True)}


def _evaluated(parts: Sequence[Segment], run: Run, given: Arrays, count: int, may_fall_back: bool) -> Arrays:
    """Return the given arrays and all that kernels and JAX operations make of them."""
    env = dict(given)
    for part in parts:
        env |= {} if part.flat is None else _of_kernel(part.flat, run, env, count, may_fall_back)
        env |= {} if part.operation is None else by_jax(part.operation, env)
    return env


def _of_kernel(flat: Flat, run: Run, given: Arrays, count: int, may_fall_back: bool) -> Arrays:
    """Return the results of a function by one kernel or, if that is too large, by those of its parts."""
    operands, worlds = zip(*(given[v] for v in flat.inputs), strict=True) if flat.inputs else ((), ())
    try:
        found = run(flat, worlds, count, operands)
        return {v: (x, True) for v, x in zip(flat.outputs, found, strict=True) if isinstance(v, Var)}
    except UnsupportedPrimitive as error:
        parts, env = halves(flat) if isinstance(error, TooLarge) else [], dict(given)
        if not parts and not may_fall_back and not isinstance(error, TooLarge):
            raise
        for part in parts:
            env |= _of_kernel(part, run, env, count, may_fall_back)
        for op in () if parts else flat.operations:
            env |= by_jax(op, env)
        return env


def by_jax(op: Operation, env: Arrays) -> Arrays:
    """Return the results of one operation for all worlds."""
    given = [(jnp.asarray(v), False) if isinstance(v, np.ndarray) else env[v] for v in op.inputs]
    worlds = any(w for _, w in given)

    def of(*x: Array) -> list[Array]:
        found = op.primitive.bind(*x, **op.params)
        return list(found) if op.primitive.multiple_results else [found]

    run = jax.vmap(of, in_axes=tuple(0 if w else None for _, w in given)) if worlds else of
    return {v: (x, worlds) for v, x in zip(op.outputs, run(*(x for x, _ in given)), strict=True)}


def _plain(plan: _Plan, *operands: Array) -> list[Array]:
    function = partial(eval_jaxpr, plan.traced.closed.jaxpr, plan.traced.closed.consts)
    fixed = len(operands) - plan.tangents
    axes = tuple(None if i < fixed else 0 for i in range(len(operands)))
    return (jax.vmap(function, axes) if plan.along else function)(*operands)


def _results(plan: _Plan, operands: Sequence[Any]) -> list[Any]:
    lead = (operands[-1].shape[0],) if plan.along else ()
    return [jax.ShapeDtypeStruct((*lead, *v.shape), v.dtype) for v in plan.traced.closed.out_avals]


STAGE = NativeFunction(
    name="stage",
    plain=_plain,
    results=_results,
    programs={CPU: _on_cpu, GPU: _on_cuda, TPU: _on_tpu},
    label=lambda plan: plan.label,
    backend=lambda plan: plan.backend,
)
CORE_FORMS[STAGE.name] = PLAIN_FORMS[STAGE.name]  # part of the program around it
bind = STAGE.primitive.bind


def _in_vectors(eqn: Any) -> Any:
    """Return the closed jaxpr of a stage within a program of vectors of worlds: directions are the turns of a loop."""
    plan = eqn.params["plan"]
    if not plan.along:
        return PLAIN_FORMS[STAGE.name](eqn)
    shared, along = split(plan.traced.flat(VECTORS), plan.tangents)

    def of(*operands: Array) -> list[Array]:
        fixed = len(operands) - plan.tangents
        env = {v: (x, False) for v, x in zip(shared.inputs, operands[:fixed], strict=True)}
        for op in shared.operations:
            env |= by_jax(op, env)

        def one(_: None, tangents: Sequence[Array]) -> tuple[None, list[Array]]:
            own = env | {v: (x, False) for v, x in zip(along.inputs[-plan.tangents :], tangents, strict=True)}
            for op in along.operations:
                own |= by_jax(op, own)
            return None, [own[v][0] for v in along.outputs if isinstance(v, Var)]

        moved = dict(zip(along.outputs, jax.lax.scan(one, None, operands[fixed:])[1], strict=True))
        size = len(operands[-1])

        def result(v: Term) -> Array:
            if isinstance(v, Var) and v in moved:
                return moved[v]
            x = env[v][0] if isinstance(v, Var) else v
            return jnp.broadcast_to(x, (size, *x.shape))

        return [result(v) for v in plan.traced.flat(VECTORS).outputs]

    return trace(of, [v.aval for v in eqn.invars])


VECTOR_FORMS[STAGE.name] = _in_vectors


def takes_directions(closed: Any) -> bool:
    """Return whether a function contains a stage with a program for vectors of directions of its tangents."""

    def any_of(jaxpr: Any) -> bool:
        of_stage = (e.params["plan"].form == "batches" for e in jaxpr.eqns if e.primitive is STAGE.primitive)
        return any(of_stage) or any(any_of(inner) for e in jaxpr.eqns for inner in nested(e.params))

    return any_of(closed.jaxpr)


def _without_unused(used: Sequence[bool], *rest: Any) -> tuple[list[bool], Any]:
    """Return the equation without unused results, and which operands it still reads: the rule for dead code."""
    eqn = rest[-1]  # since JAX 0.12 it follows an argument about references, of which there are none
    plan, worlds = eqn.params["plan"], eqn.params["worlds"]
    if not any(used):
        return [False] * len(eqn.invars), None
    sized = None if worlds is None else worlds.index(True)  # says how many worlds
    key = (*used, sized)
    if key not in plan.traced.parts:
        closed = plan.traced.closed
        needed = [i == sized for i in range(len(eqn.invars))]
        part, read = dce_jaxpr(closed.jaxpr, list(used), instantiate=needed)
        plan.traced.parts[key] = _Traced(ClosedJaxpr(part, closed.consts)), read
    traced, read = plan.traced.parts[key]
    tangents = sum(read[len(read) - plan.tangents :])
    pick = lambda x, which: [y for y, w in zip(x, which, strict=True) if w]  # noqa: E731
    fixed = tuple(pick(plan.fixed, read))
    params = {
        "plan": plan._replace(traced=traced, tangents=tangents, fixed=fixed),
        "worlds": worlds and tuple(pick(worlds, read)),
    }
    return read, eqn.replace(invars=pick(eqn.invars, read), outvars=pick(eqn.outvars, used), params=params)


dce_rules[STAGE.primitive] = _without_unused


class _Derivative(NamedTuple):
    """A derivative in two parts: `forward` returns results and residuals, `linear` maps tangents, given residuals.

    `given` has an entry for each residual: the index of an operand, or -1 for an additional result of `forward`.
    `moves` says which results have tangents.
    """

    forward: _Traced
    linear: _Traced
    given: tuple[int, ...]
    moves: tuple[bool, ...]


_keeps: ContextVar[bool] = ContextVar("keeps", default=False)


@contextmanager
def keeping_residuals() -> Iterator[None]:
    """Let derivatives of stages that are traced within keep all that they need of the values.

    They do not compute it again: for linear functions that are used several times, as for columns of a Jacobian. On a
    GPU derivatives stay as they are.
    """
    before = _keeps.set(jax.default_backend() == CPU)
    try:
        yield
    finally:
        _keeps.reset(before)


def keeps_residuals() -> bool:
    """Return whether derivatives are made for many directions (`keeping_residuals`)."""
    return _keeps.get()


_pushes: ContextVar[bool] = ContextVar("pushes", default=False)


@contextmanager
def pushing_forward(on: bool = True) -> Iterator[None]:
    """Let a stage and its derivative along a direction be one stage.

    For a derivative that is differentiated again: derivatives of two stages would each compute the values once more.
    Only for `jax.jvp` of functions without derivatives of their own, since partial evaluation cannot divide that stage.
    On a GPU derivatives stay as they are.
    """
    before = _pushes.set(on and jax.default_backend() == CPU)
    try:
        yield
    finally:
        _pushes.reset(before)


def _push(
    primals: tuple, tangents: tuple, moving: tuple[int, ...], plan: _Plan, worlds: tuple[bool, ...] | None
) -> tuple[list, list]:
    """Return values and tangents by one stage."""
    if moving not in plan.traced.pushed:
        plan.traced.pushed[moving] = _pushed(plan.traced.closed, moving)
    traced, moves = plan.traced.pushed[moving]
    places = worlds and (*worlds, *(worlds[i] for i in moving))
    fixed = (*plan.fixed, *(False for _ in moving))
    given = (*primals, *(tangents[i] for i in moving))
    found = bind(*given, plan=plan._replace(traced=traced, fixed=fixed), worlds=places)
    values, moved = found[: len(moves)], iter(found[len(moves) :])
    none = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in values]
    return values, [next(moved) if m else z for m, z in zip(moves, none, strict=True)]


@paused_collections()
def _pushed(closed: Any, moving: tuple[int, ...]) -> tuple[_Traced, tuple[bool, ...]]:
    """Return a function of operands and tangents to results and tangents, and which results have these."""
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars]
    count, results = len(shapes), len(closed.jaxpr.outvars)

    def of(*x: Array) -> list[Array]:
        def values(*y: Array) -> list[Array]:
            at = dict(enumerate(x[:count])) | dict(zip(moving, y, strict=True))
            return eval_jaxpr(closed.jaxpr, closed.consts, *at.values())

        found, moved = jax.jvp(values, tuple(x[i] for i in moving), x[count:])
        return [*found, *moved]

    with pushing_forward(False):  # stages within are parts of one program
        whole = jax.make_jaxpr(of)(*shapes, *(shapes[i] for i in moving))
    moves = tuple(depends(whole.jaxpr, [False] * count + [True] * len(moving))[results:])
    return _Traced(with_results(whole, [*range(results), *(results + k for k, m in enumerate(moves) if m)])), moves


@paused_collections()
def _jvp(primals: tuple, tangents: tuple, *, plan: _Plan, worlds: tuple[bool, ...] | None) -> tuple[list, list]:
    """Return values and tangents, each by a stage; a result that depends on no moving operand has a zero tangent."""
    if plan.along:
        return jvp_of_plain(partial(STAGE.by_jax, plan=plan, worlds=worlds), primals, tangents)
    moving = tuple(i for i, t in enumerate(tangents) if type(t) is not ad.Zero)
    if _pushes.get() and not plan.tangents:
        return _push(primals, tangents, moving, plan, worlds)
    key = moving, plan.form == "batches" and _keeps.get()
    if key not in plan.traced.derivatives:
        plan.traced.derivatives[key] = _derivative(plan.traced, *key)
    d = plan.traced.derivatives[key]
    flags = LINEAR if key[1] else plan.flags
    found = bind(*primals, plan=plan._replace(traced=d.forward, tangents=0, flags=flags), worlds=worlds)
    values, rest = found[: len(d.moves)], iter(found[len(d.moves) :])
    needed = [checkpoint_name(next(rest), KEPT) if i < 0 else primals[i] for i in d.given]
    places = worlds and (*(i < 0 or worlds[i] for i in d.given), *(worlds[i] for i in moving))
    if places and not any(places):
        places = None  # moving operands and residuals are the same for all worlds
    fixed = (*(i >= 0 and plan.fixed[i] for i in d.given), *(False for _ in moving))
    linear = plan._replace(traced=d.linear, tangents=len(moving), fixed=fixed)
    moved = bind(*needed, *(tangents[i] for i in moving), plan=linear, worlds=places)
    if worlds and places is None:
        moved = [jnp.broadcast_to(x, (size_of(primals, worlds), *x.shape)) for x in moved]
    moved = iter(moved)
    none = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in values]
    return values, [next(moved) if m else z for m, z in zip(d.moves, none, strict=True)]


def _derivative(traced: _Traced, moving: tuple[int, ...], keeps: bool) -> _Derivative:
    """Return the derivative with respect to the operands `moving`.

    Its residuals are operands, the results of JAX operations between kernels, and solutions of systems of equations.
    Kernels compute the rest again. With `keeps` residuals are all arrays that it reads, except views.
    """
    closed = traced.closed
    outline = () if keeps else traced.flat(OUTLINE).operations
    between = {*BETWEEN, SOLUTION, *(op.name for op in outline if not is_known(op, OUTLINE))}
    function = partial(eval_jaxpr, closed.jaxpr, closed.consts)

    def is_kept(primitive: Any, *_: Any, **params: Any) -> bool:
        return primitive.name not in VIEWS if keeps else holds(between, primitive, params)

    function = jax.checkpoint(function, policy=is_kept, prevent_cse=False)
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars]
    moved = [shapes[i] for i in moving]
    trees = []

    def values_and_needs(*x: Array) -> list[Array]:
        def of(*y: Array) -> list[Array]:
            return function(*(dict(enumerate(x)) | dict(zip(moving, y, strict=True))).values())

        values, linear = jax.linearize(of, *(x[i] for i in moving))
        needs, tree = jax.tree.flatten(linear)
        trees.append(tree)
        return [*values, *needs]

    every = jax.make_jaxpr(values_and_needs)(*shapes)
    count = len(closed.jaxpr.outvars)
    constants = _constants(every)[count:]
    needs = [(k, v) for k, (v, c) in enumerate(zip(every.jaxpr.outvars[count:], constants, strict=True)) if c is None]
    given = tuple(every.jaxpr.invars.index(v) if v in every.jaxpr.invars else -1 for _, v in needs)
    mine = [*range(count), *(count + k for (k, _), i in zip(needs, given, strict=True) if i < 0)]
    forward = with_results(every, mine)

    def tangents(*x: Array) -> list[Array]:
        needed = iter(x[: len(needs)])
        return trees[-1].unflatten([next(needed) if c is None else c for c in constants])(*x[len(needs) :])

    operands = [*(jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for _, v in needs), *moved]
    whole = jax.make_jaxpr(tangents)(*operands)
    moves = tuple(depends(whole.jaxpr, [False] * len(needs) + [True] * len(moved)))
    linear = with_results(whole, [k for k, m in enumerate(moves) if m])
    return _Derivative(_Traced(forward), _Traced(linear), given, moves)


def _constants(closed: Any) -> list[np.ndarray | None]:
    """Return the results that are constants, and None for those that depend on an argument."""
    moves = depends(closed.jaxpr, [True] * len(closed.jaxpr.invars))
    found = iter(flatten(with_results(closed, [k for k, m in enumerate(moves) if not m]), GPU).outputs)
    return [x if not m and isinstance(x := next(found), np.ndarray) else None for m in moves]


def _transpose(cotangents: Sequence[Any], *operands: Any, plan: _Plan, worlds: tuple[bool, ...] | None) -> list[Any]:
    """Return cotangents of the tangents, by a stage; for operands that worlds share they are sums over worlds."""
    count = len(operands) - plan.tangents
    real = tuple(k for k, c in enumerate(cotangents) if type(c) is not ad.Zero)
    if real not in plan.traced.transposed:
        plan.traced.transposed[real] = _transposed(plan.traced.closed, count, real)
    places = worlds and (*worlds[:count], *(True for _ in real))
    given = [*operands[:count], *(cotangents[k] for k in real)]
    fixed = (*plan.fixed[:count], *(False for _ in real))
    transposed = plan._replace(traced=plan.traced.transposed[real], tangents=len(real), fixed=fixed)
    found = bind(*given, plan=transposed, worlds=places)
    shared = [worlds is not None and not w for w in (worlds or operands)[count:]]
    return [None] * count + [x.sum(0) if s else x for x, s in zip(found, shared, strict=True)]


@paused_collections()
def _transposed(closed: Any, count: int, real: tuple[int, ...]) -> _Traced:
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars]
    results = [closed.jaxpr.outvars[k].aval for k in real]

    def of(*x: Array) -> list[Array]:
        def linear(*t: Array) -> list[Array]:
            found = eval_jaxpr(closed.jaxpr, closed.consts, *x[:count], *t)
            return [found[k] for k in real]

        return jax.linear_transpose(linear, *shapes[count:])(list(x[count:]))

    cotangents = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in results]
    return _Traced(jax.make_jaxpr(of)(*shapes[:count], *cotangents))


def _batch(operands: tuple, dims: tuple, *, plan: _Plan, worlds: tuple[bool, ...] | None) -> tuple[list, list]:
    """Batching rule: a batch of worlds, or of directions if only tangents have the axis and share all else."""
    fixed = len(operands) - plan.tangents
    if not plan.tangents or any(d is not None for d in dims[:fixed]):
        return batched(STAGE.primitive, operands, dims, plan=plan, worlds=worlds)
    if plan.form != "batches":
        found = jax.vmap(partial(STAGE.by_jax, plan=plan, worlds=worlds), dims)(*operands)
        return found, [0] * len(found)
    size = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    given = list(operands)
    for i in range(fixed, len(operands)):
        x, d, at = operands[i], dims[i], int(worlds is not None and worlds[i])
        x = (
            jnp.broadcast_to(jnp.expand_dims(x, at), (*x.shape[:at], size, *x.shape[at:]))
            if d is None
            else jnp.moveaxis(x, d, at)
        )
        given[i] = jax.lax.collapse(x, at, at + 2) if plan.along else x
    found = bind(*given, plan=plan._replace(along=True), worlds=worlds)
    at = int(worlds is not None)
    if plan.along:
        found = [x.reshape(*x.shape[:at], size, x.shape[at] // size, *x.shape[at + 1 :]) for x in found]
    return found, [at] * len(found)


batching.primitive_batchers[STAGE.primitive] = _batch
ad.primitive_transposes[STAGE.primitive] = _transpose
ad.primitive_jvps[STAGE.primitive] = _jvp
