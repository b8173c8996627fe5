"""Searches that differ from entry to entry: each takes its own time, and only entries that need one are searched.

On a CPU a search is a program of scalars that runs entry by entry, world by world, within one kernel: loops end when
they are done, branches not taken cost nothing, and a world pays for nothing of its neighbours. Elsewhere the entries of
all worlds that need a search are moved together into chunks, in which they go side by side.
"""

import contextlib
import math
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import core, lax

from jaxsim.math.arrays import row_at
from jaxsim.math.safe import Array
from jaxsim.native.compiler import begin
from jaxsim.native.expressions import UnsupportedPrimitive
from jaxsim.native.jaxpr import GPU, Operation, flatten
from jaxsim.native.nvrtc import CompilerMissing
from jaxsim.native.pool_kernel import KernelSearch, real_first, search_by_kernel
from jaxsim.native.pool_native import native_source, search_natively
from jaxsim.native.statements import SEQUENTIAL, compute, row_of
from jaxsim.native.writer import Value, Writer
from jaxsim.xla.batching import is_read, merged
from jaxsim.xla.compat import Primitive, batching, eval_jaxpr, mlir
from jaxsim.xla.fusion import one_kernel_of_tables
from jaxsim.xla.loops import repeat

CHUNK = 1 << 14  # entries that go side by side where there are many

# A search: (what all entries of a world share, an entry's row, whether it is real) -> a tree of arrays.
Search = Callable[[Any, Any, Array], Any]


class _Plan(NamedTuple):
    """A search of leaves, of which those before `split` are shared, for `length` entries: `width` numbers for each."""

    search: Callable[[list[Array], Array], Array]
    split: int
    length: int
    width: int
    dtype: Any


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
        own, row = tree.unflatten(x)
        return search(own, row, real)

    traced, shape = jax.make_jaxpr(of_leaves, return_shape=True)(jax.ShapeDtypeStruct((), bool), *entry)
    used = [i for i, read in enumerate(is_read(traced.jaxpr)[1:]) if read]
    dtype = next(x.dtype for x in jax.tree.leaves(shape) if jnp.issubdtype(x.dtype, jnp.floating))

    def packed(x: list[Array], real: Array) -> Array:
        full = dict(zip(used, x, strict=True))
        filled = [full.get(i, jnp.zeros(e.shape, e.dtype)) for i, e in enumerate(entry)]
        found = eval_jaxpr(traced.jaxpr, traced.consts, real, *filled)
        return jnp.concatenate([jnp.ravel(y).astype(dtype) for y in found])

    split = sum(i < nshared for i in used)
    width = sum(math.prod(x.shape) for x in jax.tree.leaves(shape))
    read_leaves = [lax.stop_gradient(jnp.asarray(leaves[i])) for i in used]
    axes = (None,) * split + (0,) * (len(used) - split)
    full = [x if a is None else x[None] for x, a in zip(read_leaves, axes, strict=True)]
    out = pool_p.bind(*full, jnp.asarray(count)[None], plan=_Plan(packed, split, length, width, dtype), axes=axes)
    return _unpacked(out[0], shape)


def _unpacked(out: Array, shape: Any) -> Any:
    """The numbers (n, k) as a tree of arrays (n, ...)."""
    leaves, tree = jax.tree.flatten(shape)
    cuts = np.cumsum([math.prod(x.shape) for x in leaves])[:-1]
    parts = jnp.split(out, cuts, axis=-1)
    return tree.unflatten(
        [p.reshape(*p.shape[:-1], *x.shape).astype(x.dtype) for p, x in zip(parts, leaves, strict=True)]
    )


# Searches of worlds: leaves, each with an axis of worlds unless its entry of `axes` is None, and counts (size,), give
# results (size, n, k). A primitive, so that only the form for the platform of the program is traced.
pool_p = Primitive("pool")


@pool_p.def_impl
def _run(*operands: Array, plan: _Plan, axes: tuple) -> Array:
    return jax.jit(partial(pool_p.bind, plan=plan, axes=axes))(*operands)


@pool_p.def_abstract_eval
def _shape(*operands: Any, plan: _Plan, axes: tuple) -> Any:
    if jax.default_backend() == "cpu" and plan.length > 1:  # of one entry: mostly of a pair, within a program
        with contextlib.suppress(UnsupportedPrimitive):
            begin(_source(plan, axes, _shapes(operands[:-1])))
    return core.ShapedArray((operands[-1].shape[0], plan.length, plan.width), plan.dtype)


def _on_cpu(*operands: Array, plan: _Plan, axes: tuple) -> Array:
    *leaves, count = operands
    out = jax.ShapeDtypeStruct((len(count), plan.length, plan.width), plan.dtype)
    try:
        source = _source(plan, axes, _shapes(leaves))
        return search_natively(source, kernel_search(plan, axes, leaves).place, leaves, count, out)
    except (UnsupportedPrimitive, CompilerMissing):
        return _by_xla(leaves, count, plan, axes)


def _shapes(leaves: Sequence[Any]) -> tuple[jax.ShapeDtypeStruct, ...]:
    return tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves)


@lru_cache(maxsize=32)
def _source(plan: _Plan, axes: tuple, leaves: tuple[jax.ShapeDtypeStruct, ...]) -> str:
    return native_source(kernel_search(plan, axes, list(leaves)))


def _by_xla(leaves: list[Array], count: Array, plan: _Plan, axes: tuple) -> Array:
    """Results (size, n, k) by a kernel that XLA compiles for a CPU."""
    return one_kernel_of_tables(partial(one_by_one, plan, axes))(leaves, count)[..., :-1]


def _elsewhere(*operands: Array, plan: _Plan, axes: tuple) -> Array:
    *leaves, count = operands
    return side_by_side(plan, axes, leaves, count)


def kernel_search(plan: _Plan, axes: tuple, leaves: list[Any]) -> KernelSearch:
    """A plan as `pool_kernel` takes it."""
    place = ["shared" if a is None else "world" if i < plan.split else "entry" for i, a in enumerate(axes)]
    begin = {"shared": 0, "world": 1, "entry": 2}
    entry = [jax.ShapeDtypeStruct(x.shape[begin[p] :], x.dtype) for x, p in zip(leaves, place, strict=True)]
    return KernelSearch(plan.search, entry, place)


def _on_cuda(*operands: Array, plan: _Plan, axes: tuple) -> Array:
    *leaves, count = operands
    out = jax.ShapeDtypeStruct((len(count), plan.length, plan.width), plan.dtype)
    try:
        return search_by_kernel(kernel_search(plan, axes, leaves), leaves, count, plan.length, out)
    except (UnsupportedPrimitive, CompilerMissing) as error:
        warnings.warn(f"a search is not one kernel of the GPU and takes many times as long: {error}", stacklevel=2)
        return side_by_side(plan, axes, leaves, count)


mlir.register_lowering(pool_p, mlir.lower_fun(_on_cuda, multiple_results=False), platform="cuda")
mlir.register_lowering(pool_p, mlir.lower_fun(_on_cpu, multiple_results=False), platform="cpu")
mlir.register_lowering(pool_p, mlir.lower_fun(_elsewhere, multiple_results=False))


def _batch(operands: tuple, dims: tuple, *, plan: _Plan, axes: tuple) -> tuple[Array, int]:
    """A batch of batches as one larger batch."""
    outer = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    size = operands[-1].shape[0] if dims[-1] is None else np.delete(operands[-1].shape, dims[-1])[0]

    of = list(zip(operands, dims, (*axes, 0), strict=True))
    full = [x if d is None and a is None else merged(x, d, a, outer, size) for x, d, a in of]
    out_axes = tuple(None if d is None and a is None else 0 for _, d, a in of[:-1])
    out = pool_p.bind(*full, plan=plan, axes=out_axes)
    return out.reshape(outer, size, *out.shape[1:]), 0


batching.primitive_batchers[pool_p] = _batch


def _of_one_world(w: Writer, op: Operation, operands: list[Value]) -> list[Value]:
    """The searches of one world, which a program of it makes one after the other."""
    plan, axes = op.params["plan"], op.params["axes"]
    s = kernel_search(plan, axes, list(op.inputs[:-1]))
    closed = jax.make_jaxpr(lambda *x: plan.search(list(x), jnp.array(True)))(*s.entry)
    *leaves, count = operands
    own = [x if p == "shared" else row_of(x, "0") for x, p in zip(leaves, s.place, strict=True)]
    out = w.buffer(plan.dtype, plan.length * plan.width)
    i, total = next(w.names), w.name_of(count)
    with w.repeated(plan.length), w.scope(f"EACH({i}, {plan.length})"):
        w.line(f"if ({i} >= {total}) {{ EACH(k, {plan.width}) PUT({out.name}, {i} * {plan.width} + k, 0); continue; }}")
        args = [row_of(x, i) if p == "entry" else x for x, p in zip(own, s.place, strict=True)]
        (found,) = compute(w, flatten(closed, GPU), args)
        w.fill(out, found, (plan.length, plan.width), lambda index: [i, *index])
    out.version += 1
    return [w.stored(out, (1, plan.length, plan.width))]


SEQUENTIAL["pool"] = _of_one_world


def one_by_one(plan: _Plan, axes: Sequence[int | None], leaves: list[Array], count: Array) -> Array:
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
    read = sum((jnp.ravel(x)[0].astype(dtype) for x in leaves if x.size), start=jnp.zeros((), dtype))
    return lax.dynamic_update_slice(out, read[None, None, None], (0, 0, width))


def side_by_side(plan: _Plan, axes: Sequence[int | None], leaves: list[Array], count: Array) -> Array:
    """Results (size, n, k): entries of all worlds that are searched come first, a chunk of them at a time."""
    search, split, length, width, dtype = plan
    size = len(count)
    chunk = min(CHUNK, size * length)
    order, total = real_first(count, length)
    order = jnp.pad(order, (0, -(size * length) % chunk))
    in_axes = [None if i < split and a is None else 0 for i, a in enumerate(axes)]

    def some(i: Array, out: Array) -> Array:
        mine = lax.dynamic_slice(order, (i * chunk,), (chunk,))
        world = mine // length
        rows = [
            x if a is None else (x[world] if k < split else x.reshape(-1, *x.shape[2:])[mine])
            for k, (x, a) in enumerate(zip(leaves, axes, strict=True))
        ]
        is_real = i * chunk + np.arange(chunk) < total
        found = jax.vmap(search, in_axes=(in_axes, 0))(rows, is_real)
        return out.at[jnp.where(is_real, mine, size * length)].set(found, mode="drop")

    out = repeat((total + chunk - 1) // chunk, some, jnp.zeros((size * length, width), dtype))
    return out.reshape(size, length, width)
