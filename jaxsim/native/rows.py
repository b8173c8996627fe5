"""Functions of the rows of arrays of which some are in use, such as contacts in their buffer.

XLA computes all rows, since shapes are fixed. A native program loops over the rows in use, one at a time. For a vector
of worlds these are the rows that any world uses.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
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


class RowFunction:
    """A function of rows that is traced with as many rows as a program asks for: with one row, or with all.

    `function(*operands)` has operands like `structs`, of which the first `nshared` are shared by rows, and returns
    arrays. It is traced with those that it reads with one row (`read`).
    """

    def __init__(
        self, function: Callable[..., Sequence[Array]], structs: Sequence[jax.ShapeDtypeStruct], nshared: int
    ) -> None:
        self._function, self._structs, self._nshared = function, structs, nshared
        self._traced: dict[int, Any] = {}

    def _of_all_operands(self, count: int) -> Any:
        rows = (jax.ShapeDtypeStruct((count, *x.shape[1:]), x.dtype) for x in self._structs[self._nshared :])
        closed = jax.make_jaxpr(self._function)(*self._structs[: self._nshared], *rows)
        return closed.replace(jaxpr=dce_jaxpr(closed.jaxpr, [True] * len(closed.out_avals), instantiate=True)[0])

    @cached_property
    def _whole(self) -> Any:
        return self._of_all_operands(1)

    @cached_property
    def read(self) -> list[int]:
        """The operands that the function reads."""
        return [i for i, r in enumerate(is_read(self._whole.jaxpr)) if r]

    @property
    def nshared(self) -> int:
        """The number of operands in `read` that rows share."""
        return sum(i < self._nshared for i in self.read)

    @cached_property
    def one(self) -> Any:
        """The closed jaxpr of one row, of the operands in `read`."""
        return of_used(self._whole, self.read)

    @property
    def jaxpr(self) -> Any:
        """The jaxpr of one row, as `jaxpr.nested` looks for it in the parameters of an equation."""
        return self.one.jaxpr

    def of(self, count: int) -> Any:
        """Return the closed jaxpr of `count` rows, of the operands in `read`."""
        if count == 1:
            return self.one
        if count not in self._traced:
            closed = self._of_all_operands(count)
            unknown = {i for i, r in enumerate(is_read(closed.jaxpr)) if r}.difference(self.read)
            if unknown:
                raise TypeError("a function of rows reads other operands for several rows than for one")
            self._traced[count] = of_used(closed, self.read)
        return self._traced[count]

    def results(self, count: int, nmapped: int) -> list[jax.ShapeDtypeStruct]:
        """Return the results' shapes for `count` rows; the first `nmapped` have one row for each."""
        one = self.one.out_avals
        shapes = [(count, *x.shape[1:]) if k < nmapped else x.shape for k, x in enumerate(one)]
        return [jax.ShapeDtypeStruct(shape, x.dtype) for shape, x in zip(shapes, one, strict=True)]


def over_rows(
    function: Callable[[Any, Any], tuple[Any, Any]], used: RowsInUse, shared: Any, rows: Any, chunk: int | None = None
) -> Any:
    """Return the two trees of `function(shared, rows)`: arrays with one row for each row (n, ...), and sums over rows.

    `rows` is a tree of arrays (n, ...), of which some rows are in use. Row i of a result depends on row i alone.
    Callers must not use results of rows that are not in use: native programs give zeros, XLA the function's value. Such
    rows, and rows of zeros, must add nothing to sums. The same holds for derivatives, which are functions of rows, too.
    The function is traced with one row, and with all rows where a program computes these at once. It closes over no
    traced array. `chunk` is for functions that are expensive for all rows: XLA then adds up sums over chunks of so many
    rows, until no world of a batch has further rows in use. Such a function returns sums only.
    """
    shared, shared_tree = jax.tree.flatten(shared)
    rows, rows_tree = jax.tree.flatten(rows)
    structs = [jax.ShapeDtypeStruct(x.shape, jax.dtypes.canonicalize_dtype(x.dtype)) for x in (*shared, *rows)]
    nshared, trees = len(shared), []

    def of_leaves(*x: Array) -> list[Array]:
        found = function(shared_tree.unflatten(x[:nshared]), rows_tree.unflatten(x[nshared:]))
        leaves, tree = jax.tree.flatten(found)
        trees.append((tree, len(jax.tree.leaves(found[0]))))
        return leaves

    of_rows = RowFunction(of_leaves, structs, nshared)
    if any(isinstance(c, core.Tracer) for c in of_rows.one.consts):
        raise TypeError("a function of rows closes over a traced array: hand it in as `shared`")
    (tree, nmapped), length = trees[0], structs[-1].shape[0]
    leaves = [jnp.asarray([*shared, *rows][i]) for i in of_rows.read]
    params = {"rows": of_rows, "nmapped": nmapped, "chunk": None if chunk is None or chunk >= length else chunk}
    return tree.unflatten(rows_p.bind(jnp.asarray(used.count, jnp.int32), used.present, *leaves, **params))


# Operands: the two fields of `RowsInUse`, what rows share, and rows. Results: those of rows, then sums.
rows_p = Primitive("over_rows")
rows_p.multiple_results = True


def by_jax(count: Array, present: Array, *operands: Array, **params: Any) -> list[Array]:
    """Evaluate the primitive by JAX operations: the reference implementation.

    A matrix unit of a TPU takes as long for a product of few rows as for one of 128, so there are no chunks there.
    """
    every, chunks = partial(of_all_rows, **params), partial(_in_chunks, **params)
    if params["chunk"] is None:
        return every(count, present, *operands)
    return lax.platform_dependent(count, present, *operands, tpu=every, default=chunks)


def of_all_rows(_: Array, present: Array, *operands: Array, rows: RowFunction, **__: Any) -> list[Array]:
    """Return the results from all rows, in use or not."""
    closed = rows.of(len(present))
    return eval_jaxpr(closed.jaxpr, closed.consts, *operands)


def _in_chunks(count: Array, _: Array, *operands: Array, rows: RowFunction, chunk: int, **__: Any) -> list[Array]:
    """Return sums over chunks of rows, up to the last row that any world of a batch uses."""
    shared, given, closed = operands[: rows.nshared], operands[rows.nshared :], rows.of(chunk)
    last = len(given[0])

    def add(i: Array, sums: list[Array]) -> list[Array]:
        start = jnp.minimum(i * chunk, last - chunk)  # the last chunk overlaps the one before: those rows become zeros
        fresh = start + np.arange(chunk, dtype=np.int32) >= i * chunk
        parts = [lax.dynamic_slice_in_dim(x, start, chunk) for x in given]
        parts = [jnp.where(fresh.reshape(-1, *(1,) * (x.ndim - 1)), x, jnp.zeros((), x.dtype)) for x in parts]
        found = eval_jaxpr(closed.jaxpr, closed.consts, *shared, *parts)
        return [x + y for x, y in zip(sums, found, strict=True)]

    start = [jnp.zeros(x.shape, x.dtype) for x in closed.out_avals]
    return lax.fori_loop(0, (batch_max(count) + chunk - 1) // chunk, add, start)


@rows_p.def_abstract_eval
def _shape(_: Any, present: Any, *__: Any, rows: RowFunction, nmapped: int, **___: Any) -> list[Any]:
    return [core.ShapedArray(x.shape, x.dtype) for x in rows.results(present.shape[0], nmapped)]


def _jvp(primals: tuple, tangents: tuple, *, rows: RowFunction, nmapped: int, chunk: int | None) -> tuple[list, list]:
    """Return values and tangents, which are a function of rows, too, that computes the values of a row again."""
    (count, present, *operands), moving = primals, [type(t) is not ad.Zero for t in tangents[2:]]
    values = rows_p.bind(*primals, rows=rows, nmapped=nmapped, chunk=chunk)
    real = [jnp.issubdtype(x.dtype, jnp.inexact) for x in rows.one.out_avals]
    moves = [r and d for r, d in zip(real, depends(rows.one.jaxpr, moving), strict=True)]
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

    is_row = [k >= rows.nshared for k in range(len(moving))]
    is_row += [r for r, m in zip(is_row, moving, strict=True) if m]
    operands += [t for t, m in zip(tangents[2:], moving, strict=True) if m]
    found = iter(_rows_of(count, present, tangents_of, rows, operands, is_row, sum(moves[:nmapped])))
    return values, [
        next(found) if m else ad.Zero(jax.typeof(x).to_tangent_aval()) for x, m in zip(values, moves, strict=True)
    ]


def _transpose(
    cotangents: Sequence[Any], count: Array, present: Array, *operands: Any, rows: RowFunction, nmapped: int, **_: Any
) -> list[Any]:
    """Return cotangents of linear operands by a function of rows; those of shared operands are sums over rows."""
    nshared = rows.nshared
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
    given = [x for x, m in zip(operands, linear, strict=True) if not m]
    given += [c for c, r in zip(cotangents, real, strict=True) if r]
    found = _rows_of(count, present, transposed, rows, given, is_row, sum(linear[nshared:]))
    found = dict(zip(order, found, strict=True))
    return [None, None, *(found.get(k) for k in range(len(operands)))]


def _rows_of(
    count: Array,
    present: Array,
    function: Callable[..., list[Array]],
    rows: RowFunction,
    operands: Sequence[Array],
    is_row: Sequence[bool],
    nmapped: int,
) -> list[Array]:
    """Call `function(closed, *operands)` as a function of rows, where `closed` is `rows` traced with as many rows.

    Operands come in any order.
    """
    order = [k for k, r in enumerate(is_row) if not r] + [k for k, r in enumerate(is_row) if r]
    nshared, place = is_row.count(False), [order.index(k) for k in range(len(order))]

    def of_leaves(*x: Array) -> list[Array]:
        size = len(x[-1]) if nshared < len(x) else len(present)
        return function(rows.of(size), *(x[i] for i in place))

    structs = [jax.ShapeDtypeStruct(operands[k].shape, operands[k].dtype) for k in order]
    of_rows = RowFunction(of_leaves, structs, nshared)
    if of_rows.nshared == len(of_rows.read):  # then nothing says how many rows there are
        return function(rows.of(len(present)), *operands)
    leaves = [operands[order[i]] for i in of_rows.read]
    return rows_p.bind(count, present, *leaves, rows=of_rows, nmapped=nmapped, chunk=None)


def _batch(operands: tuple, dims: tuple, **params: Any) -> tuple[list[Array], list[int]]:
    found = jax.vmap(lambda *x: by_jax(*x, **params), in_axes=dims)(*operands)
    return found, [0] * len(found)


rows_p.def_impl(by_jax)
mlir.register_lowering(rows_p, mlir.lower_fun(by_jax, multiple_results=True))
ad.primitive_jvps[rows_p] = _jvp
ad.primitive_transposes[rows_p] = _transpose
batching.primitive_batchers[rows_p] = _batch
