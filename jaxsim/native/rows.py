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
from jax import core

from jaxsim.math.safe import Array
from jaxsim.native.world_program import jvp_of_plain
from jaxsim.xla.batching import is_read, of_used
from jaxsim.xla.compat import Primitive, ad, batching, eval_jaxpr, mlir


def over_rows(function: Callable[[Any, Any], tuple[Any, Any]], count: Array, shared: Any, rows: Any) -> Any:
    """Two trees from `function(shared, rows)`: arrays of a row each (n, ...), and sums over rows.

    `rows` is a tree of arrays (n, ...), of which the first `count` are in use. Row i of the result depends on row i
    alone. The function must give zeros for a row that is not in use, and nothing to a sum. It is called with all rows
    and with one, and closes over no traced array.
    """
    shared, shared_tree = jax.tree.flatten(shared)
    rows, rows_tree = jax.tree.flatten(rows)
    structs = [jax.ShapeDtypeStruct(x.shape, jax.dtypes.canonicalize_dtype(x.dtype)) for x in (*shared, *rows)]
    nshared = len(shared)
    one = [*structs[:nshared], *(jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype) for x in structs[nshared:])]

    def of_leaves(*x: Array) -> tuple[Any, Any]:
        return function(shared_tree.unflatten(x[:nshared]), rows_tree.unflatten(x[nshared:]))

    every, shape = jax.make_jaxpr(of_leaves, return_shape=True)(*structs)
    if any(isinstance(c, core.Tracer) for c in every.consts):
        raise TypeError("a function of rows closes over a traced array: hand it in as `shared`")
    single = jax.make_jaxpr(of_leaves)(*one)
    read = [a or b for a, b in zip(is_read(every.jaxpr), is_read(single.jaxpr), strict=True)]
    used = [i for i, r in enumerate(read) if r]
    every, single = of_used(every, used), of_used(single, used)
    leaves = [jnp.asarray([*shared, *rows][i]) for i in used]
    params = {"nshared": sum(i < nshared for i in used), "nmapped": len(jax.tree.leaves(shape[0]))}
    found = rows_p.bind(jnp.asarray(count, jnp.int32), *leaves, every=every, one=single, **params)
    return jax.tree.structure(shape).unflatten(found)


def count_in_use(present: Array) -> Array:
    """The number of rows up to the last one that is present, from a mask (n,)."""
    return jnp.max(jnp.where(present, np.arange(1, len(present) + 1, dtype=np.int32), 0))


# Operands: the number of rows in use, what rows share, and rows. Results: those of rows, then sums.
rows_p = Primitive("over_rows")
rows_p.multiple_results = True


def by_jax(_: Array, *operands: Array, every: Any, **__: Any) -> list[Array]:
    """The results from all rows."""
    return eval_jaxpr(every.jaxpr, every.consts, *operands)


@rows_p.def_abstract_eval
def _shape(*_: Any, every: Any, **__: Any) -> list[Any]:
    return [core.ShapedArray(x.shape, x.dtype) for x in every.out_avals]


def _jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple[list, list]:
    return jvp_of_plain(partial(by_jax, **params), primals, tangents)


def _batch(operands: tuple, dims: tuple, **params: Any) -> tuple[list[Array], list[int]]:
    found = jax.vmap(lambda *x: by_jax(*x, **params), in_axes=dims)(*operands)
    return found, [0] * len(found)


rows_p.def_impl(by_jax)
mlir.register_lowering(rows_p, mlir.lower_fun(by_jax, multiple_results=True))
ad.primitive_jvps[rows_p] = _jvp
batching.primitive_batchers[rows_p] = _batch
