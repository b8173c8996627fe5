"""Functions of the rows of arrays of which some are in use, such as contacts in their buffer.

XLA computes all rows, since shapes are fixed. A native program loops over the rows in use, one at a time. For a vector
of worlds these are the rows that any world uses.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import core, lax

from jaxsim.math.safe import Array
from jaxsim.xla.batching import batch_max, depends, is_read, of_used
from jaxsim.xla.compat import Primitive, ad, batching, dce_jaxpr, eval_jaxpr, mlir


class RowsInUse(NamedTuple):
    """A mask of the rows in use (n,), and the number of rows up to the last one."""

    present: Array
    count: Array


def rows_in_use(present: Array) -> RowsInUse:
    """Return the rows in use from their mask (n,)."""
    place = np.arange(1, len(present) + 1, dtype=np.int32)
    return RowsInUse(present, jnp.max(jnp.where(present, place, 0), initial=0))


def real_rows(count: Any, length: int) -> RowsInUse:
    """Return the rows in use from a mask (n,), or from the number of rows, of `length`, which come first."""
    return rows_in_use(count if jnp.ndim(count) else np.arange(length) < count)


def over_rows(
    function: Callable[[Any, Any], tuple[Any, Any]], used: RowsInUse, shared: Any, rows: Any, chunk: int | None = None
) -> Any:
    """Return the two trees of `function(shared, rows)`: arrays with one row for each row (n, ...), and sums over rows.

    `rows` is a tree of arrays (n, ...), of which some rows are in use. Row i of a result depends on row i alone.
    Callers must not use results of rows that are not in use: native programs give zeros, XLA the function's value. Such
    rows, and rows of zeros, must add nothing to sums. The same holds for derivatives, which are functions of rows, too.
    The function is traced with all rows and with one row, and closes over no traced array. `chunk` is for functions
    that are expensive for all rows: XLA then adds up sums over chunks of so many rows, until no world of a batch
    has further rows in use. Such a function returns sums only.
    """
    shared, shared_tree = jax.tree.flatten(shared)
    rows, rows_tree = jax.tree.flatten(rows)
    structs = [jax.ShapeDtypeStruct(x.shape, jax.dtypes.canonicalize_dtype(x.dtype)) for x in (*shared, *rows)]
    nshared, length = len(shared), structs[-1].shape[0]

    def of_leaves(*x: Array) -> tuple[Any, Any]:
        return function(shared_tree.unflatten(x[:nshared]), rows_tree.unflatten(x[nshared:]))

    def traced(n: int) -> Any:
        own = (jax.ShapeDtypeStruct((n, *x.shape[1:]), x.dtype) for x in structs[nshared:])
        return jax.make_jaxpr(of_leaves, return_shape=True)(*structs[:nshared], *own)

    every, shape = traced(length)
    if any(isinstance(c, core.Tracer) for c in every.consts):
        raise TypeError("a function of rows closes over a traced array: hand it in as `shared`")
    sizes = {"every": every, "one": traced(1)[0]}
    if chunk is not None and chunk < length:
        sizes["some"] = traced(chunk)[0]
    read = [any(r) for r in zip(*(is_read(closed.jaxpr) for closed in sizes.values()), strict=True)]
    taken = [i for i, r in enumerate(read) if r]
    sizes = {"some": None} | {name: of_used(closed, taken) for name, closed in sizes.items()}
    leaves = [jnp.asarray([*shared, *rows][i]) for i in taken]
    params = {"nshared": sum(i < nshared for i in taken), "nmapped": len(jax.tree.leaves(shape[0]))}
    found = rows_p.bind(jnp.asarray(used.count, jnp.int32), used.present, *leaves, **sizes, **params)
    return jax.tree.structure(shape).unflatten(found)


# Operands: the two fields of `RowsInUse`, what rows share, and rows. Results: those of rows, then sums.
rows_p = Primitive("over_rows")
rows_p.multiple_results = True


def by_jax(count: Array, present: Array, *operands: Array, **params: Any) -> list[Array]:
    """Evaluate the primitive by JAX operations: the reference implementation.

    A matrix unit of a TPU takes as long for a product of few rows as for one of 128, so there are no chunks there.
    """
    every, chunks = partial(of_all_rows, **params), partial(_in_chunks, **params)
    if params["some"] is None:
        return every(count, present, *operands)
    return lax.platform_dependent(count, present, *operands, tpu=every, default=chunks)


def of_all_rows(_: Array, __: Array, *operands: Array, every: Any, **___: Any) -> list[Array]:
    """Return the results from all rows, in use or not."""
    return eval_jaxpr(every.jaxpr, every.consts, *operands)


def _in_chunks(count: Array, _: Array, *operands: Array, every: Any, some: Any, nshared: int, **__: Any) -> list[Array]:
    """Return sums over chunks of rows, up to the last row that any world of a batch uses."""
    shared, rows = operands[:nshared], operands[nshared:]
    chunk, last = some.jaxpr.invars[nshared].aval.shape[0], len(rows[0])

    def add(i: Array, sums: list[Array]) -> list[Array]:
        start = jnp.minimum(i * chunk, last - chunk)  # the last chunk overlaps the one before: those rows become zeros
        fresh = start + np.arange(chunk, dtype=np.int32) >= i * chunk
        parts = [lax.dynamic_slice_in_dim(x, start, chunk) for x in rows]
        parts = [jnp.where(fresh.reshape(-1, *(1,) * (x.ndim - 1)), x, jnp.zeros((), x.dtype)) for x in parts]
        found = eval_jaxpr(some.jaxpr, some.consts, *shared, *parts)
        return [x + y for x, y in zip(sums, found, strict=True)]

    start = [jnp.zeros(x.shape, x.dtype) for x in every.out_avals]
    return lax.fori_loop(0, (batch_max(count) + chunk - 1) // chunk, add, start)


@rows_p.def_abstract_eval
def _shape(*_: Any, every: Any, **__: Any) -> list[Any]:
    return [core.ShapedArray(x.shape, x.dtype) for x in every.out_avals]


def _jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple[list, list]:
    """Return values and tangents, which are a function of rows, too, that computes the values of a row again."""
    nshared, nmapped, every = params["nshared"], params["nmapped"], params["every"]
    (count, present, *operands), moving = primals, [type(t) is not ad.Zero for t in tangents[2:]]
    values = rows_p.bind(*primals, **params)
    real = [jnp.issubdtype(x.dtype, jnp.inexact) for x in every.out_avals]
    moves = [r and d for r, d in zip(real, depends(every.jaxpr, moving), strict=True)]
    if not any(moves):
        return values, [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in values]

    def tangents_of(closed: Any, *x: Array) -> list[Array]:
        size = len(moving)
        given, changes = x[:size], iter(x[size:])

        def of(*y: Array) -> list[Array]:
            new = iter(y)
            full = [next(new) if m else g for g, m in zip(given, moving, strict=True)]
            found = eval_jaxpr(closed.jaxpr, closed.consts, *full)
            return [y for y, m in zip(found, moves, strict=True) if m]

        return jax.jvp(of, [g for g, m in zip(given, moving, strict=True) if m], [*changes])[1]

    is_row = [k >= nshared for k in range(len(moving))]
    is_row += [r for r, m in zip(is_row, moving, strict=True) if m]
    structs = [[*c.in_avals, *(x for x, m in zip(c.in_avals, moving, strict=True) if m)] for c in _sizes(params)]
    operands += [t for t, m in zip(tangents[2:], moving, strict=True) if m]
    found = iter(_rows_of(count, present, tangents_of, params, structs, operands, is_row, sum(moves[:nmapped])))
    return values, [
        next(found) if m else ad.Zero(jax.typeof(x).to_tangent_aval()) for x, m in zip(values, moves, strict=True)
    ]


def _transpose(cotangents: Sequence[Any], count: Array, present: Array, *operands: Any, **params: Any) -> list[Any]:
    """Return cotangents of linear operands by a function of rows; those of shared operands are sums over rows."""
    nshared, nmapped = params["nshared"], params["nmapped"]
    linear = [ad.is_undefined_primal(x) for x in operands]
    real = [type(c) is not ad.Zero for c in cotangents]
    order = [k for k, x in enumerate(linear) if x and k >= nshared] + [k for k, x in enumerate(linear[:nshared]) if x]

    def transposed(closed: Any, *x: Array) -> list[Array]:
        size = linear.count(False)
        known, given = x[:size], list(x[size:])

        def of(*y: Array) -> list[Array]:
            old, new = iter(known), iter(y)
            found = eval_jaxpr(closed.jaxpr, closed.consts, *(next(new if m else old) for m in linear))
            return [y for y, r in zip(found, real, strict=True) if r]

        structs = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v, m in zip(closed.in_avals, linear, strict=True) if m]
        found = dict(
            zip((k for k, m in enumerate(linear) if m), jax.linear_transpose(of, *structs)(given), strict=True)
        )
        return [found[k] for k in order]

    is_row = [k >= nshared for k, m in enumerate(linear) if not m]
    is_row += [k < nmapped for k, r in enumerate(real) if r]
    structs = [
        [
            *(x for x, m in zip(c.in_avals, linear, strict=True) if not m),
            *(x for x, r in zip(c.out_avals, real, strict=True) if r),
        ]
        for c in _sizes(params)
    ]
    given = [x for x, m in zip(operands, linear, strict=True) if not m]
    given += [c for c, r in zip(cotangents, real, strict=True) if r]
    found = _rows_of(count, present, transposed, params, structs, given, is_row, sum(linear[nshared:]))
    found = dict(zip(order, found, strict=True))
    return [None, None, *(found.get(k) for k in range(len(operands)))]


def _sizes(params: dict[str, Any]) -> tuple[Any, Any]:
    """Return the function of all rows and that of one."""
    return params["every"], params["one"]


def _rows_of(
    count: Array,
    present: Array,
    function: Callable[..., list[Array]],
    params: dict[str, Any],
    structs: Sequence[Sequence[Any]],
    operands: Sequence[Array],
    is_row: Sequence[bool],
    nmapped: int,
) -> list[Array]:
    """Call `function(closed, *operands)` as a function of rows, without the operands that it does not read.

    Operands come in any order. `structs` are the operands' shapes for all rows and for one.
    """
    traced = [
        jax.make_jaxpr(partial(function, closed))(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in own))
        for closed, own in zip(_sizes(params), structs, strict=True)
    ]
    every_result = [True] * len(traced[0].out_avals)
    traced = [c.replace(jaxpr=dce_jaxpr(c.jaxpr, every_result, instantiate=True)[0]) for c in traced]
    read = [any(r) for r in zip(*(is_read(c.jaxpr) for c in traced), strict=True)]
    used = [k for k, r in enumerate(read) if r and not is_row[k]], [k for k, r in enumerate(read) if r and is_row[k]]
    if not used[1]:  # then nothing says how many rows there are
        return function(params["every"], *operands)
    order = [*used[0], *used[1]]
    sizes = dict(zip(("every", "one"), (of_used(c, order) for c in traced), strict=True))
    leaves = [operands[k] for k in order]
    return rows_p.bind(count, present, *leaves, some=None, **sizes, nshared=len(used[0]), nmapped=nmapped)


def _batch(operands: tuple, dims: tuple, **params: Any) -> tuple[list[Array], list[int]]:
    found = jax.vmap(lambda *x: by_jax(*x, **params), in_axes=dims)(*operands)
    return found, [0] * len(found)


rows_p.def_impl(by_jax)
mlir.register_lowering(rows_p, mlir.lower_fun(by_jax, multiple_results=True))
ad.primitive_jvps[rows_p] = _jvp
ad.primitive_transposes[rows_p] = _transpose
batching.primitive_batchers[rows_p] = _batch
