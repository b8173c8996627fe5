"""Stages: functions of one world that become a few kernels on a GPU, and one program for a batch on a CPU.

A stage is traced once, as by `jit`. On a GPU the operations that the generator supports become kernels (`segments.py`).
On a CPU a batch becomes one program of vectors of worlds. Otherwise the stage is inlined as JAX operations. Derivatives
are stages too. A stage is a JAX primitive, so that only the program of the target platform is generated.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.ad_checkpoint import checkpoint_name

from jaxsim.math.safe import Array
from jaxsim.native import tile_source as tile
from jaxsim.native import vectors
from jaxsim.native.compute import is_known
from jaxsim.native.expressions import UnsupportedPrimitive
from jaxsim.native.function import CPU, NativeFunction, batched, size_of
from jaxsim.native.jaxpr import GPU, VECTORS, Flat, Operation, Var, flatten, holds, nested
from jaxsim.native.segments import segments
from jaxsim.xla.compat import ClosedJaxpr, ad, batching, dce_jaxpr, dce_rules, eval_jaxpr

KEPT = "kept_between_kernels"  # checkpoint name of the results of JAX operations that a derivative needs
MOST_CONSTANTS = 4096  # numbers of a table within a kernel
FEWEST_WORLDS = 4  # of a batch that is computed in vectors: the worlds of one vector, in double precision
# Of a derivative: in smaller ones each direction is a world. Arms of 2 and 5 joints (9,000 and 19,000) take 0.36 and
# 0.55 of the time so, the humanoid (309,000) 1.6: docs/decisions/step_in_vectors.md
MOST_REPEATED = 50_000
# computes a kernel, from its function, which inputs have worlds, the number of worlds, and the inputs
Run = Callable[[Flat, Sequence[bool], int, Sequence[Array]], list[Array]]


# Forms of a stage on a CPU:
# "plain": JAX operations;
# "host": kernels compiled by the C compiler, one lane a world, for tests;
# "wide": vectors of worlds;
# "wide transpose": plain, but its transpose is wide;
# "batches": a batch, and its derivatives, are one program of vectors of worlds if the generator supports all
# operations; else plain.
TRANSPOSED = {"wide transpose": "wide"}


class _Plan(NamedTuple):
    """What a stage computes, and its form on a CPU."""

    traced: "_Traced"
    form: str = "plain"
    label: str = "a stage"
    backend: int | None = None  # `opt.backend` of its model, or that of the stage around it
    tangents: int = 0  # of the last operands, in which it is linear


class _Traced:
    """A closed jaxpr as a static argument of `jit`: compared by identity."""

    def __init__(self, closed: Any) -> None:
        self.closed = closed
        self.flats: dict[str, Flat] = {}
        self.derivatives: dict[tuple[int, ...], _Derivative] = {}
        self.transposed: dict[tuple[int, ...], _Traced] = {}
        self.parts: dict[tuple, tuple[_Traced, list[bool]]] = {}

    def flat(self, platform: str) -> Flat:
        """Return the operations in a program for a platform: GPU or VECTORS."""
        if platform not in self.flats:
            self.flats[platform] = flatten(self.closed, platform)
        return self.flats[platform]

    @cached_property
    def numbers(self) -> int:
        """Count the entries of all results of operations, with loops counted once."""
        operations = self.flat(VECTORS).operations
        inner = sum(_entries(j) for op in operations for j in nested(op.params))
        return inner + sum(math.prod(v.shape) for op in operations for v in op.outputs)

    @cached_property
    def unknown(self) -> str | None:
        """Name of an operation that the generator does not support for vectors of worlds, or None."""
        return next((op.name for op in self.flat(VECTORS).operations if not is_known(op, VECTORS)), None)


def _entries(jaxpr: Any) -> int:
    """Count the entries of all results in a jaxpr."""
    own = sum(math.prod(v.aval.shape) for eqn in jaxpr.eqns for v in eqn.outvars)
    return own + sum(_entries(j) for eqn in jaxpr.eqns for j in nested(eqn.params))


def stage(
    function: Callable[..., Any], form: str = "plain", label: str = "a stage", backend: int | None = None
) -> Callable[..., Any]:
    """Return a function of one world (any PyTrees) as a stage: a few kernels on a GPU, one of the forms on a CPU.

    `label` names it in messages; `backend` is `opt.backend`, for the stage and all native functions within it.
    """

    def run(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        traced, shape = jax.make_jaxpr(lambda *x: function(*tree.unflatten(x)), return_shape=True)(*leaves)
        closed, constants = _closed(traced)
        found = STAGE(_Plan(_Traced(closed), form, label, backend), *constants, *leaves)
        return jax.tree.unflatten(jax.tree.structure(shape), found)

    return run


def _closed(traced: Any) -> tuple[Any, list[Array]]:
    """Return a jaxpr whose traced or large constants became its first operands, and these constants."""
    apart = [isinstance(c, core.Tracer) or np.size(c) > MOST_CONSTANTS for c in traced.consts]
    mine = [np.asarray(c) for c, a in zip(traced.consts, apart, strict=True) if not a]

    def of(constants: Sequence[Array], *args: Array) -> list[Array]:
        rest, own = iter(constants), iter(mine)
        return eval_jaxpr(traced.jaxpr, [next(rest) if a else next(own) for a in apart], *args)

    if not any(apart):
        return traced, []
    constants = [jnp.asarray(c) for c, a in zip(traced.consts, apart, strict=True) if a]
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in traced.jaxpr.invars]
    return jax.make_jaxpr(of)(constants, *shapes), constants


def _on_cuda(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    return by_kernels(tile.launch, GPU, plan, worlds, count, operands)


def _on_cpu(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array] | None:
    if plan.form == "host":
        return by_kernels(tile.run_on_host, GPU, plan, worlds, count, operands)
    if plan.form == "wide":
        return by_kernels(vectors.run, VECTORS, plan, worlds, count, operands)
    if plan.form != "batches" or count < FEWEST_WORLDS or not any(worlds):
        return None
    if plan.traced.unknown:
        raise UnsupportedPrimitive(f"a program of vectors does not know the operation {plan.traced.unknown}")
    return by_kernels(vectors.run, VECTORS, plan, worlds, count, operands)


def by_kernels(
    run: Run, platform: str, plan: _Plan, has_worlds: Sequence[bool], count: int, operands: Sequence[Array]
) -> list[Array]:
    """Evaluate the primitive by kernels for a platform, each computed by `run`. Raises CompilerMissing."""
    flat = plan.traced.flat(platform)
    env = dict(zip(flat.inputs, zip(operands, has_worlds, strict=True), strict=True))
    for part in segments(flat, has_worlds, platform):
        if part.flat is not None:
            given, worlds = zip(*(env[v] for v in part.flat.inputs), strict=True) if part.flat.inputs else ((), ())
            try:
                found = run(part.flat, worlds, count, given)
                env |= {v: (x, True) for v, x in zip(part.flat.outputs, found, strict=True) if isinstance(v, Var)}
            except UnsupportedPrimitive:  # too many arrays for a kernel
                if platform == VECTORS and plan.form == "batches":
                    raise
                for op in part.flat.operations:
                    env |= by_jax(op, env)
        elif part.operation is not None:
            env |= by_jax(part.operation, env)
    out = []
    for v in flat.outputs:
        x, worlds = (jnp.asarray(v), False) if isinstance(v, np.ndarray) else env[v]
        out.append(x if worlds else jnp.broadcast_to(x, (count, *x.shape)))
    return out


def by_jax(op: Operation, env: dict[Var, tuple[Array, bool]]) -> dict[Var, tuple[Array, bool]]:
    """Return the results of one operation for all worlds."""
    given = [(jnp.asarray(v), False) if isinstance(v, np.ndarray) else env[v] for v in op.inputs]
    worlds = any(w for _, w in given)

    def of(*x: Array) -> list[Array]:
        found = op.primitive.bind(*x, **op.params)
        return list(found) if op.primitive.multiple_results else [found]

    run = jax.vmap(of, in_axes=tuple(0 if w else None for _, w in given)) if worlds else of
    return {v: (x, worlds) for v, x in zip(op.outputs, run(*(x for x, _ in given)), strict=True)}


STAGE = NativeFunction(
    name="stage",
    plain=lambda plan, *operands: eval_jaxpr(plan.traced.closed.jaxpr, plan.traced.closed.consts, *operands),
    results=lambda plan, _: [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in plan.traced.closed.out_avals],
    programs={CPU: _on_cpu, GPU: _on_cuda},
    label=lambda plan: plan.label,
    backend=lambda plan: plan.backend,
)
bind = STAGE.primitive.bind


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
    params = {"plan": plan._replace(traced=traced, tangents=tangents), "worlds": worlds and tuple(pick(worlds, read))}
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


def _jvp(primals: tuple, tangents: tuple, *, plan: _Plan, worlds: tuple[bool, ...] | None) -> tuple[list, list]:
    """Return values and tangents, each by a stage; a result that depends on no moving operand has a zero tangent."""
    moving = tuple(i for i, t in enumerate(tangents) if type(t) is not ad.Zero)
    if moving not in plan.traced.derivatives:
        plan.traced.derivatives[moving] = _derivative(plan.traced, moving)
    d = plan.traced.derivatives[moving]
    found = bind(*primals, plan=plan._replace(traced=d.forward, tangents=0), worlds=worlds)
    values, rest = found[: len(d.moves)], iter(found[len(d.moves) :])
    needed = [checkpoint_name(next(rest), KEPT) if i < 0 else primals[i] for i in d.given]
    places = worlds and (*(i < 0 or worlds[i] for i in d.given), *(worlds[i] for i in moving))
    if places and not any(places):
        places = None  # moving operands and residuals are the same for all worlds
    linear = plan._replace(traced=d.linear, tangents=len(moving))
    moved = bind(*needed, *(tangents[i] for i in moving), plan=linear, worlds=places)
    if worlds and places is None:
        moved = [jnp.broadcast_to(x, (size_of(primals, worlds), *x.shape)) for x in moved]
    moved = iter(moved)
    none = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in values]
    return values, [next(moved) if m else z for m, z in zip(d.moves, none, strict=True)]


def _derivative(traced: _Traced, moving: tuple[int, ...]) -> _Derivative:
    """Return the derivative with respect to the operands `moving`.

    Its residuals are operands and the results of JAX operations between kernels. Kernels compute the rest again.
    """
    closed = traced.closed
    between = {op.name for op in traced.flat(GPU).operations if not is_known(op)}
    function = partial(eval_jaxpr, closed.jaxpr, closed.consts)
    is_kept = lambda primitive, *_, **params: holds(between, primitive, params)  # noqa: E731
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
    constants = [x if isinstance(x, np.ndarray) else None for x in flatten(every, GPU).outputs[count:]]
    needs = [(k, v) for k, (v, c) in enumerate(zip(every.jaxpr.outvars[count:], constants, strict=True)) if c is None]
    given = tuple(every.jaxpr.invars.index(v) if v in every.jaxpr.invars else -1 for _, v in needs)
    mine = [*range(count), *(count + k for (k, _), i in zip(needs, given, strict=True) if i < 0)]
    pick = lambda x: [x[k] for k in mine]  # noqa: E731
    forward = jax.make_jaxpr(lambda *x: pick(eval_jaxpr(every.jaxpr, every.consts, *x)))(*shapes)

    def tangents(*x: Array) -> list[Array]:
        needed = iter(x[: len(needs)])
        return trees[-1].unflatten([next(needed) if c is None else c for c in constants])(*x[len(needs) :])

    operands = [*(jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for _, v in needs), *moved]
    whole = jax.make_jaxpr(tangents)(*operands)
    moves = tuple(_depends(whole.jaxpr, len(moved)))
    parts = lambda x: [t for t, m in zip(x, moves, strict=True) if m]  # noqa: E731
    linear = jax.make_jaxpr(lambda *x: parts(tangents(*x)))(*operands)
    return _Derivative(_Traced(forward), _Traced(linear), given, moves)


def _depends(jaxpr: Any, count: int) -> list[bool]:
    """Return whether each result depends on the last `count` arguments."""
    touched = set(jaxpr.invars[len(jaxpr.invars) - count :])
    for eqn in jaxpr.eqns:
        if any(not hasattr(v, "val") and v in touched for v in eqn.invars):
            touched |= set(eqn.outvars)
    return [not hasattr(v, "val") and v in touched for v in jaxpr.outvars]


def _transpose(cotangents: Sequence[Any], *operands: Any, plan: _Plan, worlds: tuple[bool, ...] | None) -> list[Any]:
    """Return cotangents of the tangents, by a stage; for operands that worlds share they are sums over worlds."""
    count = len(operands) - plan.tangents
    real = tuple(k for k, c in enumerate(cotangents) if type(c) is not ad.Zero)
    if real not in plan.traced.transposed:
        plan.traced.transposed[real] = _transposed(plan.traced.closed, count, real)
    places = worlds and (*worlds[:count], *(True for _ in real))
    given = [*operands[:count], *(cotangents[k] for k in real)]
    form = TRANSPOSED.get(plan.form, plan.form)
    transposed = plan._replace(traced=plan.traced.transposed[real], form=form, tangents=len(real))
    found = bind(*given, plan=transposed, worlds=places)
    shared = [worlds is not None and not w for w in (worlds or operands)[count:]]
    return [None] * count + [x.sum(0) if s else x for x, s in zip(found, shared, strict=True)]


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
    """Batching rule: a batch of worlds. If only tangents have the axis, JAX operations share all else between them,
    unless that is little: then each direction is a world.
    """
    count = len(operands) - plan.tangents
    shared = plan.tangents and all(d is None for d in dims[:count])
    if not shared or (plan.form == "batches" and plan.traced.numbers <= MOST_REPEATED):
        return batched(STAGE.primitive, operands, dims, plan=plan, worlds=worlds)
    found = jax.vmap(partial(STAGE.by_jax, plan=plan, worlds=worlds), dims)(*operands)
    return found, [0] * len(found)


batching.primitive_batchers[STAGE.primitive] = _batch
ad.primitive_transposes[STAGE.primitive] = _transpose
ad.primitive_jvps[STAGE.primitive] = _jvp
