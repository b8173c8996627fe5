"""Flatten a jaxpr to one list of operations: inline calls, drop branches of other platforms and unused results."""

from collections import ChainMap
from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray

from jaxsim.core.types import Backend
from jaxsim.xla.batching import with_results
from jaxsim.xla.compat import ClosedJaxpr, Primitive, eval_jaxpr, scan_lengths

CALLS = ("jit", "pjit", "closed_call", "core_call", "eval_jaxpr", "custom_jvp_call", "custom_vjp_call", "checkpoint")
CALLS += ("remat2",)
MOST_TURNS = 4  # iterations of a loop that is unrolled on a GPU if its body is more than one kernel
MOST_EQUATIONS = 400  # of the body of such a loop that is one kernel
MOST_CONSTANTS = 4096  # numbers of a table within a program; larger ones are operands


# JAX operations that replace jaxsim's own primitives, by name: each takes an equation and returns a closed jaxpr.
PLAIN_FORMS: dict[str, Callable[[Any], Any]] = {}
VECTOR_FORMS = ChainMap[str, Callable[[Any], Any]]({}, PLAIN_FORMS)  # the same for vectors of worlds
CORE_FORMS: dict[str, Callable[[Any], Any]] = {}  # the same for one world on a core, with calls of native programs
# The functions of `hints.py`, which are operations in the list; those of vectors only in programs for vectors.
HINTS = {name: Primitive(name) for name in ("symmetric_matrix", "any_of_vector", "by_value")}
# Targets of a program: threads of a GPU, one thread (of a GPU or a core), vectors of worlds on a CPU, one world on a
# core, blocks of worlds on a TPU.
# Where a function has a branch for each platform, that of a CPU is for XLA: vectors and cores take the default.
GPU, THREAD, VECTORS, CORE, BLOCKS, TPU = "cuda", "thread", "vectors", "core", "blocks", "tpu"
OUTLINE = "outline"  # no target: operations of a GPU, where programs of one world are not replaced by JAX operations
WIDE = (VECTORS, BLOCKS)  # each number is a vector of worlds
# jaxsim's own primitives that are not inlined. Those of BETWEEN are separate kernels, between other kernels of a GPU.
BETWEEN = ("constraint_solve", "pool")
WHOLE = {
    GPU: (*BETWEEN, "small_matrices"),
    THREAD: (*BETWEEN, "small_matrices"),
    VECTORS: ("world_program", "pool", "small_matrices"),
    CORE: ("small_matrices",),
    BLOCKS: ("pool", "small_matrices"),
    OUTLINE: (*BETWEEN, "small_matrices", "world_program"),
}


def _spread(params: dict[str, Any], out: Any, x: np.ndarray) -> np.ndarray:
    shape = [1] * len(out.shape)
    for d, n in zip(params["broadcast_dimensions"], x.shape, strict=True):
        shape[d] = n
    return np.broadcast_to(x.reshape(shape), out.shape)


# Operations that are evaluated here if all operands are constants (constant folding), mostly of indices.
FOLDED: dict[str, Callable[..., Any]] = {
    "lt": lambda _p, _o, a, b: a < b,
    "ge": lambda _p, _o, a, b: a >= b,
    "add": lambda _p, _o, a, b: a + b,
    "sub": lambda _p, _o, a, b: a - b,
    "mul": lambda _p, _o, a, b: a * b,
    "select_n": lambda _p, _o, which, *cases: np.choose(which.astype(int), cases),
    "convert_element_type": lambda _p, _o, x: x,
    "concatenate": lambda p, _o, *x: np.concatenate(x, p["dimension"]),
    "broadcast_in_dim": lambda p, o, x, *_: _spread(p, o, x),
    "slice": lambda p, _o, x: x[
        tuple(map(slice, p["start_indices"], p["limit_indices"], p["strides"] or (1,) * x.ndim))
    ],
    **dict.fromkeys(("reshape", "squeeze", "expand_dims"), lambda _p, o, x, *_: x.reshape(o.shape)),
}


def _permuted(p: dict[str, Any]) -> Callable[[Any], Any] | None:
    """Return a reshape of permuted axes, as in derivatives of a product of entries, by a transposition; else None."""
    dims = p["dimensions"]
    return None if dims is None else lambda x: jax.lax.reshape(jax.lax.transpose(x, dims), p["new_sizes"])


def _tiled(p: dict[str, Any]) -> Callable[[Any], Any]:
    def tiled(x: Any) -> Any:
        shape = [n for pair in zip(p["reps"], x.shape, strict=True) for n in pair]
        sizes = [r * n for r, n in zip(p["reps"], x.shape, strict=True)]
        return jax.lax.broadcast_in_dim(x, shape, range(1, 2 * x.ndim, 2)).reshape(sizes)

    return tiled


def _negated(p: dict[str, Any]) -> Callable[[Any, Any, Any], Any]:
    own = {k: p[k] for k in ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")}
    return lambda x, i, u: jax.lax.scatter_add(x, i, -u, **own)


# Operations that are others together: from the parameters a function of the operands, or None if it stays as it is.
EXPANDED: dict[str, Callable[[dict[str, Any]], Callable[..., Any] | None]] = {
    "reshape": _permuted,
    "tile": _tiled,
    "scatter-sub": _negated,
}


class Var:
    """An array that an operation makes."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        if not isinstance(dtype, np.dtype) and not jnp.issubdtype(dtype, jax.dtypes.extended):
            self.dtype = np.dtype(dtype)  # else a key of random numbers, which only JAX can use


Term = Var | np.ndarray  # an array that is made, or a constant


class Operation(NamedTuple):
    """A primitive of JAX with its operands and results."""

    primitive: Any
    params: dict[str, Any]
    inputs: list[Term]
    outputs: list[Var]

    @property
    def name(self) -> str:
        """The primitive's name."""
        return self.primitive.name


class Flat(NamedTuple):
    """A function: operations in an order in which they can be computed."""

    inputs: Sequence[Var]
    operations: Sequence[Operation]
    outputs: Sequence[Term]


class Callee:
    """A function as the parameter of `CALL`: compared by identity."""

    def __init__(self, flat: Flat) -> None:
        self.flat = flat

    @property
    def eqns(self) -> Sequence[Operation]:
        """Its operations, by the name that `nested` looks for."""
        return self.flat.operations


# A call of operations, of which the body of a loop is made.
CALL = Primitive("operations")
CALL.multiple_results = True
CALL.def_abstract_eval(lambda *_, body: [ShapedArray(v.shape, v.dtype) for v in body.flat.outputs])

_FLAT: WeakKeyDictionary[Any, dict[str, Flat]] = WeakKeyDictionary()


def flatten(closed: Any, platform: str) -> Flat:
    """Return the operations of a closed jaxpr for a platform: GPU, THREAD, VECTORS, CORE or BLOCKS.

    They are kept as long as the jaxpr is: functions within loops and branches are looked at many times.
    """
    kept = _FLAT.setdefault(closed, {})
    if platform not in kept:
        kept[platform] = _flattened(closed, platform)
    return kept[platform]


def forget() -> None:
    """Flatten all functions anew, since one that is called in them has no native program after all."""
    _FLAT.clear()


def _flattened(closed: Any, platform: str) -> Flat:
    inputs = [Var(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars]
    operations: list[Operation] = []
    outputs = inlined(closed, inputs, operations, platform)
    operations, outputs = without_repeats(operations, outputs)
    operations = _within_bounds(operations)
    return Flat(inputs, needed(operations, outputs), outputs)


def without_repeats(operations: Sequence[Operation], outputs: Sequence[Term]) -> tuple[list[Operation], list[Term]]:
    """Return operations and outputs without what an earlier operation computes too, as derivatives often do."""
    same: dict[Var, Var] = {}
    known: dict[Any, Operation] = {}
    kept: list[Operation] = []
    for op in operations:
        mine = _of_different(op._replace(inputs=[same.get(v, v) if isinstance(v, Var) else v for v in op.inputs]))
        keys = [v if isinstance(v, Var) else (v.dtype, v.shape, v.tobytes()) for v in mine.inputs]
        try:
            first = known.setdefault((op.name, tuple(op.params.items()), *keys), mine)
        except TypeError:  # parameters that cannot be compared
            first = mine
        if first is mine:
            kept.append(mine)
        else:
            same |= dict(zip(op.outputs, first.outputs, strict=True))
    return kept, [same.get(v, v) if isinstance(v, Var) else v for v in outputs]


def _within_bounds(operations: Sequence[Operation]) -> list[Operation]:
    """Return operations whose gathers are clipped if a scatter with the same indices may drop entries.

    Derivatives of a scatter gather with its indices and promise, wrongly, that they are within bounds.
    """
    promise, clip = jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS, jax.lax.GatherScatterMode.CLIP
    scatters = (op for op in operations if op.name.startswith("scatter") and op.params["mode"] != promise)
    doubtful = {id(op.inputs[1]) for op in scatters}

    def clipped(op: Operation) -> Operation:
        promised = op.name == "gather" and op.params["mode"] == promise
        return op._replace(params=op.params | {"mode": clip}) if promised and id(op.inputs[1]) in doubtful else op

    return [clipped(op) for op in operations]


def _of_different(op: Operation) -> Operation:
    """Return a conditional whose operands are different arrays: else its branches could not see what they repeat."""
    if op.name != "cond":
        return op
    which, *operands = op.inputs
    place = {v: k for k, v in reversed(list(enumerate(operands))) if isinstance(v, Var)}
    if len(place) == sum(isinstance(v, Var) for v in operands):
        return op
    kept = [k for k, v in enumerate(operands) if not isinstance(v, Var) or place[v] == k]
    at = [kept.index(place[v] if isinstance(v, Var) else k) for k, v in enumerate(operands)]

    def of_kept(branch: Any) -> Any:
        run = lambda *x: eval_jaxpr(branch.jaxpr, branch.consts, *(x[i] for i in at))  # noqa: E731
        return trace(run, [branch.jaxpr.invars[k].aval for k in kept])

    params = op.params | {"branches": tuple(map(of_kept, op.params["branches"]))}
    return op._replace(params=params, inputs=[which, *(operands[k] for k in kept)])


def needed(operations: Sequence[Operation], outputs: Sequence[Term]) -> list[Operation]:
    """Return the operations on which the outputs depend."""
    live, kept = {v for v in outputs if isinstance(v, Var)}, []
    for op in reversed(operations):
        if not live.isdisjoint(op.outputs):
            kept.append(op)
            live |= {v for v in op.inputs if isinstance(v, Var)}
    return kept[::-1]


def inlined(closed: Any, args: Sequence[Term], out: list[Operation], platform: str) -> list[Term]:
    """Append the operations of a closed jaxpr for these arguments to `out`, and return its results."""
    jaxpr = closed.jaxpr
    env: dict[Any, Term] = dict(zip(jaxpr.invars, args, strict=True))
    env |= {v: np.asarray(c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True)}

    def read(v: Any) -> Term:
        return np.asarray(v.val, v.aval.dtype) if hasattr(v, "val") else env[v]

    for eqn in jaxpr.eqns:
        found = _of_equation(eqn, [read(v) for v in eqn.invars], out, platform)
        env |= dict(zip(eqn.outvars, found, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _of_equation(eqn: Any, operands: list[Term], out: list[Operation], platform: str) -> Sequence[Term]:
    name, params = eqn.primitive.name, eqn.params
    inner = None if _stays(eqn, platform) else _called(eqn, platform)
    hint = HINTS.get(params.get("name", "")) if inner is not None else None
    if hint is not None and (hint.name == "symmetric_matrix" or platform in WIDE):
        results = [Var(v.aval.shape, v.aval.dtype) for v in eqn.outvars]
        out.append(Operation(hint, {"jaxpr": inner}, operands, results))
        return results
    if inner is not None:
        return inlined(inner, operands, out, platform)
    if eqn.primitive is CALL:
        return renamed(params["body"].flat, operands, out)
    if name == "device_put" and all(d is None for d in params["devices"]):
        return operands
    if name in EXPANDED and (form := EXPANDED[name](params)) is not None:
        return inlined(trace(lambda *x: [form(*x)], [v.aval for v in eqn.invars]), operands, out, platform)
    if name == "custom_linear_solve":
        solve, lengths = params["jaxprs"].solve, params["const_lengths"]
        begin = lengths.matvec + lengths.vecmat
        own = operands[begin : begin + lengths.solve] + operands[sum(lengths) :]
        return inlined(solve, own, out, platform)
    if name == "reduce" and (sums := _sums(eqn)) is not None:
        return inlined(sums, operands, out, platform)
    if name == "xla_metadata_value":
        return operands
    if name == "platform_index":
        listed = params["platforms"]
        target = TPU if platform == BLOCKS else platform
        here = next((k for k, names in enumerate(listed) if names is not None and target in names), None)
        return [np.asarray(listed.index(None) if here is None else here, np.int32)]
    if name == "cond" and isinstance(operands[0], np.ndarray):
        branch = params["branches"][int(np.clip(operands[0], 0, len(params["branches"]) - 1))]
        return inlined(branch, operands[1:], out, platform)
    if name in FOLDED and all(isinstance(x, np.ndarray) for x in operands):
        (v,) = eqn.outvars
        return [np.asarray(FOLDED[name](params, v.aval, *operands)).astype(v.aval.dtype)]
    if name == "cond":
        return _conditional(eqn, *_with_constants(params, operands), out, platform)
    results = [Var(v.aval.shape, v.aval.dtype) for v in eqn.outvars]
    out.append(Operation(eqn.primitive, params, operands, results))
    return results


def renamed(flat: Flat, operands: Sequence[Term], out: list[Operation]) -> list[Term]:
    """Append the operations of a function for these arguments, with results of their own, and return its results."""
    env: dict[Var, Term] = dict(zip(flat.inputs, operands, strict=True))
    read = lambda v: env[v] if isinstance(v, Var) else v  # noqa: E731
    for op in flat.operations:
        made = [Var(v.shape, v.dtype) for v in op.outputs]
        out.append(op._replace(inputs=list(map(read, op.inputs)), outputs=made))
        env |= dict(zip(op.outputs, made, strict=True))
    return list(map(read, flat.outputs))


def _conditional(
    eqn: Any, params: dict[str, Any], operands: list[Term], out: list[Operation], platform: str
) -> list[Term]:
    """Append a conditional, and choices of the results that are constants in all branches.

    Derivatives of branches have many of these: tables of indices, and zeros in the place of another branch's values.
    """
    branches = params["branches"]
    flats = [flatten(b, platform) for b in branches]
    constant = [all(isinstance(x, np.ndarray) for x in xs) for xs in zip(*(f.outputs for f in flats), strict=True)]
    made = [Var(v.aval.shape, v.aval.dtype) for v in eqn.outvars]
    results: list[Term] = [*made]
    for k in (k for k, c in enumerate(constant) if c):
        first, *others = (np.asarray(f.outputs[k], made[k].dtype) for f in flats)
        if all(first.tobytes() == x.tobytes() for x in others):
            results[k] = first
        else:
            which = Var(first.shape, np.int32)
            spread = {"shape": first.shape, "broadcast_dimensions": (), "sharding": None}
            out.append(Operation(jax.lax.broadcast_in_dim_p, spread, [operands[0]], [which]))
            out.append(Operation(jax.lax.select_n_p, {}, [which, first, *others], [made[k]]))
    kept = [v for v, c in zip(made, constant, strict=True) if not c]

    if any(constant):
        own = [k for k, c in enumerate(constant) if not c]
        params = params | {"branches": tuple(with_results(b, own) for b in branches)}
    if kept:
        out.append(Operation(eqn.primitive, params, operands, kept))
    return results


def _with_constants(params: dict[str, Any], operands: list[Term]) -> tuple[dict[str, Any], list[Term]]:
    """Return a conditional whose constant operands are constants of its branches, which can be folded there."""
    known = [isinstance(x, np.ndarray) and x.size <= MOST_CONSTANTS for x in operands[1:]]
    constants = [x for x, k in zip(operands[1:], known, strict=True) if k]

    def bound(branch: Any) -> Any:
        given, own = ([v for v, k in zip(branch.jaxpr.invars, known, strict=True) if k == w] for w in (False, True))
        jaxpr = branch.jaxpr.replace(invars=given, constvars=[*branch.jaxpr.constvars, *own])
        return branch.replace(jaxpr=jaxpr, consts=[*branch.consts, *constants])

    if not any(known):
        return params, operands
    rest = [x for x, k in zip(operands[1:], known, strict=True) if not k]
    return params | {"branches": tuple(map(bound, params["branches"]))}, [operands[0], *rest]


def _stays(eqn: Any, platform: str) -> bool:
    """Return whether a primitive of jaxsim is not inlined in a program for this platform."""
    plan = eqn.params.get("plan")
    if platform == CORE and getattr(plan, "backend", None) == Backend.XLA:
        return True
    return eqn.primitive.name in WHOLE.get(platform, ()) and not getattr(plan, "inlined", False)


def _called(eqn: Any, platform: str) -> Any:
    """Return the closed jaxpr to inline for an equation, or None."""
    name, params = eqn.primitive.name, eqn.params
    if name in CALLS:
        inner = params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr")))
        return inner if hasattr(inner, "jaxpr") else ClosedJaxpr(inner, ())
    if name == "custom_vmap_call":
        return params["call"]
    if name == "scan" and platform == GPU and params["length"] <= MOST_TURNS and _is_cut(eqn):
        return _turns(eqn)
    if name == "while" and params["cond_jaxpr"].out_avals[0].shape:
        return _until_all_are_done(eqn)
    forms = {CORE: CORE_FORMS, VECTORS: VECTOR_FORMS, BLOCKS: VECTOR_FORMS}.get(platform, PLAIN_FORMS)
    return forms[name](eqn) if name in forms else None


def holds(names: Container[str], primitive: Any, params: dict[str, Any]) -> bool:
    """Return whether an operation, or one of its nested jaxprs, is of a primitive with one of these names."""
    return primitive.name in names or any(holds(names, e.primitive, e.params) for j in nested(params) for e in j.eqns)


def nested(params: dict[str, Any]) -> list[Any]:
    """Return the jaxprs in the parameters of an operation."""
    found = [x for p in params.values() for x in (p if isinstance(p, tuple) else (p,))]
    return [getattr(x, "jaxpr", x) for x in found if hasattr(x, "jaxpr") or hasattr(x, "eqns")]


def _is_cut(eqn: Any) -> bool:
    """Return whether the body of a loop is more than one kernel of a GPU."""
    return holds(BETWEEN, eqn.primitive, eqn.params) or _equations(eqn.params) > MOST_EQUATIONS


def _equations(params: dict[str, Any]) -> int:
    return sum(1 + _equations(e.params) for j in nested(params) for e in j.eqns)


def _until_all_are_done(eqn: Any) -> Any:
    """Return a loop with a test for each entry of a batch as one with a single test, where entries that are done stay.

    `vmap` makes such loops. XLA's lowering of them does the same.
    """
    p, nc = eqn.params, eqn.params["cond_nconsts"]
    test, body = (partial(eval_jaxpr, p[f"{x}_jaxpr"].jaxpr, p[f"{x}_jaxpr"].consts) for x in ("cond", "body"))
    split = nc + p["body_nconsts"]

    def run(*x: Any) -> list[Any]:
        def go(state: list[Any]) -> Any:
            return jnp.any(test(*x[:nc], *state)[0])

        def advance(state: list[Any]) -> list[Any]:
            (going,) = test(*x[:nc], *state)
            spread = (jax.lax.broadcast_in_dim(going, s.shape, range(going.ndim)) for s in state)
            return [
                jax.lax.select(g, new, s) for g, new, s in zip(spread, body(*x[nc:split], *state), state, strict=True)
            ]

        return jax.lax.while_loop(go, advance, list(x[split:]))

    return trace(run, [v.aval for v in eqn.invars])


def _turns(eqn: Any) -> Any:
    """Return the closed jaxpr of an unrolled scan."""
    p = eqn.params
    body, (nc, nk) = p["jaxpr"], scan_lengths(p, len(eqn.invars))
    order = range(p["length"])[::-1] if p["reverse"] else range(p["length"])

    def run(*x: Any) -> list[Any]:
        carry, rows = list(x[nc : nc + nk]), {}
        for i in order:
            given = (jax.lax.index_in_dim(r, i, keepdims=False) for r in x[nc + nk :])
            found = eval_jaxpr(body.jaxpr, body.consts, *x[:nc], *carry, *given)
            carry, rows[i] = found[:nk], found[nk:]
        return [*carry, *(jnp.stack([rows[i][k] for i in sorted(rows)]) for k in range(len(rows[0])))]

    return trace(run, [v.aval for v in eqn.invars])


def _sums(eqn: Any) -> Any:
    """Return a reduction of several arrays as separate sums, or None if it does anything else than add."""
    inner, count = eqn.params["jaxpr"], len(eqn.outvars)
    pairs = zip(inner.invars[:count], inner.invars[count:], strict=True)
    wanted = [{a, b} for a, b in pairs]
    made = {e.outvars[0]: set(e.invars) for e in inner.eqns if e.primitive.name == "add"}
    if len(inner.eqns) != count or [made.get(v) for v in inner.outvars] != wanted:
        return None
    axes = tuple(eqn.params["dimensions"])
    add = lambda *x: [jax.lax.reduce_sum(a, axes) + start for a, start in zip(x[:count], x[count:], strict=True)]  # noqa: E731
    return trace(add, [v.aval for v in eqn.invars])


def trace(function: Callable[..., Any], shapes: Sequence[Any]) -> Any:
    """Return the closed jaxpr of a function of arrays like `shapes`."""
    return jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in shapes))
