"""Functions of the rows of arrays of which only the first ones are in use: contacts in their buffer.

XLA computes all rows, since shapes are fixed. A native program loops over the rows in use, one at a time; in a vector
of worlds up to the most that one of them uses.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import core, lax

from jaxsim.math.safe import Array
from jaxsim.native.function import jvp_of_plain
from jaxsim.xla.batching import batch_max, is_read, of_used
from jaxsim.xla.compat import Primitive, ad, batching, eval_jaxpr, mlir


def over_rows(
    function: Callable[[Any, Any], tuple[Any, Any]], count: Array, shared: Any, rows: Any, chunk: int | None = None
) -> Any:
    """Two trees from `function(shared, rows)`: arrays of a row each (n, ...), and sums over rows.

    `rows` is a tree of arrays (n, ...), of which the first `count` are in use. Row i of the result depends on row i
    alone. Results of rows that are not in use must not matter: they are zero in a program, and what the function gives
    in XLA. To a sum such rows, and rows of zeros, must add nothing. The function is called with all rows and with one,
    and closes over no traced array. Where XLA's work on all rows costs much, it takes sums by so many rows as `chunk`
    says, as far as any world of a batch has rows in use; there must be no arrays of a row each then.
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
    used = [i for i, r in enumerate(read) if r]
    sizes = {"some": None} | {name: of_used(closed, used) for name, closed in sizes.items()}
    leaves = [jnp.asarray([*shared, *rows][i]) for i in used]
    params = {"nshared": sum(i < nshared for i in used), "nmapped": len(jax.tree.leaves(shape[0]))}
    found = rows_p.bind(jnp.asarray(count, jnp.int32), *leaves, **sizes, **params)
    return jax.tree.structure(shape).unflatten(found)


def count_in_use(present: Array) -> Array:
    """The number of rows up to the last one that is present, from a mask (n,)."""
    return jnp.max(jnp.where(present, np.arange(1, len(present) + 1, dtype=np.int32), 0))


# Operands: the number of rows in use, what rows share, and rows. Results: those of rows, then sums.
rows_p = Primitive("over_rows")
rows_p.multiple_results = True


def by_jax(count: Array, *operands: Array, **params: Any) -> list[Array]:
    """What the primitive means, by operations of JAX."""
    return (of_all_rows if params["some"] is None else _in_chunks)(count, *operands, **params)


def of_all_rows(_: Array, *operands: Array, every: Any, **__: Any) -> list[Array]:
    """The results from all rows, used or not."""
    return eval_jaxpr(every.jaxpr, every.consts, *operands)


def _in_chunks(count: Array, *operands: Array, every: Any, some: Any, nshared: int, **_: Any) -> list[Array]:
    """Sums over chunks of rows, as far as any world of a batch has rows in use."""
    shared, rows = operands[:nshared], operands[nshared:]
    chunk, last = some.jaxpr.invars[nshared].aval.shape[0], len(rows[0])

    def add(i: Array, sums: list[Array]) -> list[Array]:
        start = jnp.minimum(i * chunk, last - chunk)  # the last chunk reaches back: rows counted before become zeros
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
    return jvp_of_plain(partial(of_all_rows, **params), primals, tangents)


def _batch(operands: tuple, dims: tuple, **params: Any) -> tuple[list[Array], list[int]]:
    found = jax.vmap(lambda *x: by_jax(*x, **params), in_axes=dims)(*operands)
    return found, [0] * len(found)


rows_p.def_impl(by_jax)
mlir.register_lowering(rows_p, mlir.lower_fun(by_jax, multiple_results=True))
ad.primitive_jvps[rows_p] = _jvp
batching.primitive_batchers[rows_p] = _batch
