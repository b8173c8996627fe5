"""Searches that differ from entry to entry: each takes its own time, and only entries that need one are searched.

On a CPU a search is a program of scalars that runs entry by entry, world by world, within one kernel: loops end when
they are done, branches not taken cost nothing, and a world pays for nothing of its neighbours. Elsewhere the entries of
all worlds that need a search are moved together into chunks, in which they go side by side.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.arrays import row_at
from jaxsim.math.safe import Array
from jaxsim.xla.compat import custom_vmap, eval_jaxpr
from jaxsim.xla.fusion import one_kernel_of_tables
from jaxsim.xla.loops import repeat

CHUNK = 1 << 14  # entries that go side by side where there are many

# A search: (what all entries of a world share, an entry's row, whether it is real) -> a tree of arrays.
Search = Callable[[Any, Any, Array], Any]


def for_each(search: Search, shared: Any, rows: Any, count: Array) -> Any:
    """`search(shared, row, True)` for the first `count` of `rows` (n, ...), side by side; zeros for the others.

    `search` closes over no traced array and neither sorts nor scatters (`fusion.one_kernel`). Numbers of its results
    come back through the dtype of the first floating-point one. Not differentiable.
    """
    length = len(jax.tree.leaves(rows)[0])
    leaves, tree = jax.tree.flatten((shared, rows))
    nshared = len(jax.tree.leaves(shared))
    entry = [*leaves[:nshared], *[jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in leaves[nshared:]]]

    def of_leaves(real: Array, *x: Any) -> Any:
        return search(*tree.unflatten(x), real)

    traced, shape = jax.make_jaxpr(of_leaves, return_shape=True)(jax.ShapeDtypeStruct((), bool), *entry)
    read = {v for e in traced.jaxpr.eqns for v in e.invars if not hasattr(v, "val")} | set(traced.jaxpr.outvars)
    used = [i for i, v in enumerate(traced.jaxpr.invars[1:]) if v in read]
    dtype = next(x.dtype for x in jax.tree.leaves(shape) if jnp.issubdtype(x.dtype, jnp.floating))

    def packed(x: list[Array], real: Array) -> Array:
        full = dict(zip(used, x, strict=True))
        filled = [full.get(i, jnp.zeros(e.shape, e.dtype)) for i, e in enumerate(entry)]
        found = eval_jaxpr(traced.jaxpr, traced.consts, real, *filled)
        return jnp.concatenate([jnp.ravel(y).astype(dtype) for y in found])

    split = sum(i < nshared for i in used)
    width = sum(math.prod(x.shape) for x in jax.tree.leaves(shape))
    out = _pool(_Plan(packed, split, length, width, dtype))([jnp.asarray(leaves[i]) for i in used], count)
    return _unpacked(out, shape)


def _unpacked(out: Array, shape: Any) -> Any:
    """The numbers (n, k) as a tree of arrays (n, ...)."""
    leaves, tree = jax.tree.flatten(shape)
    cuts = np.cumsum([math.prod(x.shape) for x in leaves])[:-1]
    parts = jnp.split(out, cuts, axis=-1)
    return tree.unflatten(
        [p.reshape(*p.shape[:-1], *x.shape).astype(x.dtype) for p, x in zip(parts, leaves, strict=True)]
    )


class _Plan(NamedTuple):
    """A search of leaves, of which those before `split` are shared, for `length` entries: `width` numbers for each."""

    search: Callable[[list[Array], Array], Array]
    split: int
    length: int
    width: int
    dtype: Any


def _pool(plan: _Plan) -> Callable[[list[Array], Array], Array]:
    """The searches of one world; `vmap` makes those of all worlds."""
    split = plan.split

    @custom_vmap
    def one(leaves: list[Array], count: Array) -> Array:
        axes = [None] * split + [0] * (len(leaves) - split)
        return _of_worlds(plan, axes)(
            [x if a is None else x[None] for x, a in zip(leaves, axes, strict=True)], count[None]
        )[0]

    @one.def_vmap
    def _(size: int, batched: list[Any], leaves: list[Array], count: Array) -> tuple[Array, bool]:
        flags, count_batched = batched
        axes = [0 if b or i >= split else None for i, b in enumerate(flags)]
        full = [
            x if b or a is None else jnp.broadcast_to(x, (size, *x.shape))
            for x, b, a in zip(leaves, flags, axes, strict=True)
        ]
        count = count if count_batched else jnp.broadcast_to(count, (size,))
        return _of_worlds(plan, axes)(full, count), True

    return one


def _of_worlds(plan: _Plan, axes: list[int | None]) -> Callable[[list[Array], Array], Array]:
    """The searches of worlds (size, n); leaves with the axis None are the same for all."""

    @custom_vmap
    def worlds(leaves: list[Array], count: Array) -> Array:
        sequential = one_kernel_of_tables(partial(one_by_one, plan, axes))
        return lax.platform_dependent(
            leaves,
            count,
            cpu=lambda *x: sequential(*x)[..., :-1],
            default=partial(side_by_side, plan, axes),
        )

    @worlds.def_vmap
    def _(outer: int, batched: list[Any], leaves: list[Array], count: Array) -> tuple[Array, bool]:
        size = count.shape[-1]
        flags, count_batched = batched

        def flat(x: Array, out: bool, inside: bool) -> Array:
            x = x if out else jnp.broadcast_to(x, (outer, *x.shape))
            x = x if inside else jnp.broadcast_to(x[:, None], (outer, size, *x.shape[1:]))
            return x.reshape(outer * size, *x.shape[2:])

        of = list(zip(leaves, flags, axes, strict=True))
        full = [flat(x, b, a == 0) if b or a == 0 else x for x, b, a in of]
        out = _of_worlds(plan, [0 if b or a == 0 else None for _, b, a in of])(full, flat(count, count_batched, True))
        return out.reshape(outer, size, *out.shape[1:]), True

    return worlds


def one_by_one(plan: _Plan, axes: list[int | None], leaves: list[Array], count: Array) -> Array:
    """Results (size, n, k + 1) by a loop over worlds and, in each, over its entries; the last number means nothing."""
    search, split, length, width, dtype = plan

    def world(w: Array, out: Array) -> Array:
        mine = [x if a is None else row_at(x, w) for x, a in zip(leaves, axes, strict=True)]

        def entry(i: Array, out: Array) -> Array:
            found = search([*mine[:split], *[row_at(x, i) for x in mine[split:]]], jnp.array(True))
            return lax.dynamic_update_slice(out, found[None, None], (w, i, np.int32(0)), allow_negative_indices=False)

        return repeat(jnp.minimum(row_at(count, w).astype(jnp.int32), length), entry, out)

    out = repeat(len(count), world, jnp.zeros((len(count), length, width + 1), dtype))
    # XLA ends the process where a kernel does not read an argument, as where the pairs need no hulls: each is read here
    read = sum(jnp.ravel(x)[0].astype(dtype) for x in leaves if x.size)
    return lax.dynamic_update_slice(out, read[None, None, None], (0, 0, width))


def side_by_side(plan: _Plan, axes: list[int | None], leaves: list[Array], count: Array) -> Array:
    """Results (size, n, k): entries of all worlds that are searched come first, a chunk of them at a time."""
    search, split, length, width, dtype = plan
    size = len(count)
    chunk = min(CHUNK, size * length)
    real = (np.arange(length) < count[:, None]).reshape(-1)
    total = jnp.cumsum(real, dtype=jnp.int32)
    place = jnp.where(real, total - 1, size * length)
    pad = -(size * length) % chunk
    entry = jnp.zeros(size * length + pad, jnp.int32)
    entry = entry.at[place].set(jnp.arange(size * length, dtype=jnp.int32), mode="drop")
    in_axes = [None if i < split and a is None else 0 for i, a in enumerate(axes)]

    def some(i: Array, out: Array) -> Array:
        mine = lax.dynamic_slice(entry, (i * chunk,), (chunk,))
        world = mine // length
        rows = [
            x if a is None else (x[world] if k < split else x.reshape(-1, *x.shape[2:])[mine])
            for k, (x, a) in enumerate(zip(leaves, axes, strict=True))
        ]
        is_real = i * chunk + np.arange(chunk) < total[-1]
        found = jax.vmap(search, in_axes=(in_axes, 0))(rows, is_real)
        return out.at[jnp.where(is_real, mine, size * length)].set(found, mode="drop")

    out = repeat((total[-1] + chunk - 1) // chunk, some, jnp.zeros((size * length, width), dtype))
    return out.reshape(size, length, width)
