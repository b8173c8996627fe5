"""Run a search, such as GJK, for the entries that need one; the number of iterations differs between entries.

On a CPU a search is a scalar program that runs sequentially over entries and worlds, in one kernel. Each loop ends when
its own entry has converged, branches that are not taken cost nothing, and no world waits for another. On a TPU the
entries are searched sequentially too, each of them for a block of worlds together. Elsewhere the entries of all worlds
that need a search are compacted into chunks, and the entries of a chunk are batched.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.arrays import gather, row_at
from jaxsim.math.safe import Array
from jaxsim.native import blocks
from jaxsim.native.calls import world_program
from jaxsim.native.compiler import begin
from jaxsim.native.compute import OF_EACH_WORLD, SEQUENTIAL, compute
from jaxsim.native.control import row_of
from jaxsim.native.expressions import UnsupportedPrimitive
from jaxsim.native.function import CPU, NativeFunction, of_world
from jaxsim.native.jaxpr import BLOCKS, GPU, THREAD, TPU, Operation, flatten
from jaxsim.native.pool_kernel import KernelSearch, search_by_kernel
from jaxsim.native.pool_native import native_source, search_natively
from jaxsim.native.world_program import WorldProgram, scalar_source
from jaxsim.native.writer import Value, Writer
from jaxsim.xla.compaction import compact
from jaxsim.xla.compat import dce_jaxpr, eval_jaxpr
from jaxsim.xla.fusion import one_kernel_of_tables
from jaxsim.xla.loops import repeat, when

CHUNK = 1 << 14  # entries of a batch, where there are many

NUMBERS_AT_ONCE = 10_000  # of a world, in operands and results of a kernel on a TPU: 40 MB in the memory of a core

# A search: (values that all entries of a world share, an entry's row, whether it is real) -> a tree of arrays.
Search = Callable[[Any, Any, Array], Any]


class _Plan(NamedTuple):
    """A search for `length` entries with results of `width` numbers; all entries share the leaves before `split`.

    The last operand is the number of entries to search, which come first, or a mask of them if the plan is `masked`.
    """

    search: Callable[[list[Array], Array], Array]
    split: int
    length: int
    width: int
    dtype: Any
    label: str
    by_vectors: bool
    masked: bool = False


def for_each(search: Search, shared: Any, rows: Any, count: Array, by_vectors: bool = False) -> Any:
    """Return `search(shared, row, True)` for the first `count` of `rows` (n, ...), batched, and zeros for the others.

    `count` may be a mask (n,) of rows instead. A TPU then searches row by row, each in all worlds that need it: what
    these worlds share of a row is a number there, not a vector. Elsewhere the rows are compacted first.

    `search` closes over no traced array and neither sorts nor scatters (`fusion.one_kernel`). All its results are
    converted to the dtype of the first floating-point result and back. Not differentiable. With `by_vectors` a CPU
    searches a vector of entries at once, which pays where neighbours take mostly the same branches (`hints`).
    """
    length = len(jax.tree.leaves(rows)[0])
    leaves, tree = jax.tree.flatten((shared, rows))
    nshared = len(jax.tree.leaves(shared))
    entry = [*leaves[:nshared], *[jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in leaves[nshared:]]]

    def of_leaves(real: Array, *x: Any) -> Any:
        own, row = tree.unflatten(x)
        return search(own, row, real)

    traced, shape = jax.make_jaxpr(of_leaves, return_shape=True)(jax.ShapeDtypeStruct((), bool), *entry)
    part, (_, *read) = dce_jaxpr(
        traced.jaxpr, [True] * len(traced.out_avals), instantiate=[True] + [False] * len(entry)
    )
    used = [i for i, r in enumerate(read) if r]
    dtype = next(x.dtype for x in jax.tree.leaves(shape) if jnp.issubdtype(x.dtype, jnp.floating))

    def packed(x: list[Array], real: Array) -> Array:
        found = eval_jaxpr(part, traced.consts, real, *x)
        return jnp.concatenate([jnp.ravel(y).astype(dtype) for y in found])

    split = sum(i < nshared for i in used)
    width = sum(math.prod(x.shape) for x in jax.tree.leaves(shape))
    plan = _Plan(packed, split, length, width, dtype, _label(search), by_vectors)
    operands = [*(lax.stop_gradient(jnp.asarray(leaves[i])) for i in used), jnp.asarray(count)]
    if jnp.ndim(count):
        masked = partial(POOL, plan._replace(masked=True))
        (out,) = lax.platform_dependent(*operands, tpu=masked, default=partial(_compacted, plan))
    else:
        (out,) = POOL(plan, *operands)
    return _unpacked(out, shape)


def _compacted(plan: _Plan, *operands: Array) -> list[Array]:
    """Return results of the entries in a mask, whose rows are brought to the front for the search."""
    *leaves, mask = operands
    index, real, _ = compact(mask, plan.length)
    rows = [x if i < plan.split else gather(x, index) for i, x in enumerate(leaves)]
    (out,) = POOL(plan, *rows, jnp.sum(real, dtype=jnp.int32))
    place = jnp.cumsum(mask, dtype=jnp.int32) - 1
    return [jnp.where(mask[:, None], gather(out, jnp.maximum(place, 0)), 0)]


def _label(search: Search) -> str:
    """Return the name of a search in messages: the module and function that define it."""
    function = search.func if isinstance(search, partial) else search
    return f"the search of {function.__module__}.{function.__qualname__.split('.<locals>')[0]}"


def _unpacked(out: Array, shape: Any) -> Any:
    """Return the numbers (n, k) as a tree of arrays (n, ...)."""
    leaves, tree = jax.tree.flatten(shape)
    cuts = np.cumsum([math.prod(x.shape) for x in leaves])[:-1]
    parts = jnp.split(out, cuts, axis=-1)
    return tree.unflatten(
        [p.reshape(*p.shape[:-1], *x.shape).astype(x.dtype) for p, x in zip(parts, leaves, strict=True)]
    )


def _full(
    worlds: Sequence[bool], count: int, operands: Sequence[Array]
) -> tuple[tuple[int | None, ...], list[Array], Array]:
    """Return the world axis of each leaf (0 or None), the leaves, and counts (size,)."""
    axes = tuple(0 if w else None for w in worlds[:-1])
    counts = operands[-1] if worlds[-1] else jnp.broadcast_to(operands[-1], (count,))
    return axes, list(operands[:-1]), counts


def _begin(plan: _Plan, worlds: Sequence[bool], operands: Sequence[jax.ShapeDtypeStruct]) -> None:
    if plan.length > 1 and not plan.masked:  # a search of one entry is mostly that of a pair, inside another program
        with contextlib.suppress(UnsupportedPrimitive):
            s = kernel_search(plan, worlds, operands)
            begin(*_source(plan, tuple(s.place), tuple(s.entry)))


def _on_cpu(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    _, leaves, counts = _full(worlds, count, operands)
    s = kernel_search(plan, worlds, of_world(operands, worlds))
    out = jax.ShapeDtypeStruct((count, plan.length, plan.width), plan.dtype)
    return [search_natively(_source(plan, tuple(s.place), tuple(s.entry)), s.place, leaves, counts, out)]


@lru_cache(maxsize=32)
def _source(plan: _Plan, place: tuple[str, ...], entry: tuple[jax.ShapeDtypeStruct, ...]) -> tuple[str, tuple]:
    return native_source(KernelSearch(plan.search, list(entry), list(place), plan.by_vectors))


def _on_cuda(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    _, leaves, counts = _full(worlds, count, operands)
    s = kernel_search(plan, worlds, of_world(operands, worlds))
    out = jax.ShapeDtypeStruct((count, plan.length, plan.width), plan.dtype)
    return [search_by_kernel(s, leaves, counts, plan.length, out)]


def _by_xla(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    """Return results (size, n, k) by XLA, on a CPU in one kernel."""
    axes, leaves, counts = _full(worlds, count, operands)
    on_cpu = lambda x, n: one_kernel_of_tables(partial(one_by_one, plan, axes))(x, n)[..., :-1]  # noqa: E731
    return [jax.lax.platform_dependent(leaves, counts, cpu=on_cpu, default=partial(side_by_side, plan, axes))]


def _on_tpu(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    return in_blocks(plan, worlds, count, operands)


def in_blocks(
    plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array], interpret: bool = False
) -> list[Array]:
    """Return results (size, n, k) by kernels of blocks of worlds, each of which searches some entries sequentially."""
    if not worlds[-1]:  # a batch of results
        worlds = [*worlds[:-1], True]
        operands = [*operands[:-1], jnp.broadcast_to(operands[-1], (count, *operands[-1].shape))]
    *leaves, needed = operands
    if not plan.masked:
        needed = np.arange(plan.length, dtype=np.int32) < needed[:, None]
    of_rows = range(plan.split, len(leaves))
    numbers = plan.width + sum(math.prod(leaves[i].shape[2:]) for i in of_rows if worlds[i])
    some = max(1, min(plan.length, NUMBERS_AT_ONCE // numbers))
    turns = -(-plan.length // some)

    def parts(x: Array, has_worlds: bool) -> Array:
        """Return rows as (turns, [worlds,] some, ...)."""
        at = int(has_worlds)
        x = jnp.pad(x, [(0, turns * some - plan.length if d == at else 0) for d in range(x.ndim)])
        return jnp.moveaxis(x.reshape(*x.shape[:at], turns, some, *x.shape[at + 1 :]), at, 0)

    rows = [*(parts(leaves[i], worlds[i]) for i in of_rows), parts(needed, True)]
    shapes = of_world([*leaves[: plan.split], *(x[0] for x in rows)], worlds)
    flat = flatten(jax.make_jaxpr(partial(_sequentially, plan))(*shapes), BLOCKS)

    def run(rows: list[Array]) -> Array:
        (found,) = blocks.run(flat, worlds, count, [*leaves[: plan.split], *rows], interpret)
        return found

    if turns == 1:
        return [run([x[0] for x in rows])]
    found = lax.map(lambda rows: when(jnp.any(rows[-1]), lambda: run(rows)), rows)
    return [jnp.moveaxis(found, 0, 1).reshape(count, turns * some, plan.width)[:, : plan.length]]


def _sequentially(plan: _Plan, *operands: Array) -> list[Array]:
    """Return results (n, k) of the rows in a mask by a loop over rows."""

    def visit(_: None, entry: tuple[list[Array], Array]) -> tuple[None, Array]:
        row, needed = entry
        return None, when(needed, lambda: plan.search([*operands[: plan.split], *row], needed))

    return [lax.scan(visit, None, (list(operands[plan.split : -1]), operands[-1]))[1]]


def _of_world(plan: _Plan, *operands: Array) -> list[Array]:
    if plan.masked:
        return _compacted(plan._replace(masked=False), *operands)
    return [x[0] for x in _by_xla(plan, (False,) * len(operands), 1, operands)]


def _of_worlds(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    if plan.masked:
        return jax.vmap(partial(_of_world, plan), in_axes=[0 if w else None for w in worlds])(*operands)
    return _by_xla(plan, worlds, count, operands)


def kernel_search(plan: _Plan, worlds: Sequence[bool], operands: Sequence[Any]) -> KernelSearch:
    """Return a plan in the form that `pool_kernel` takes, for operands like these of one world."""
    places = ("shared", "row"), ("world", "entry")
    own = [i >= plan.split for i in range(len(operands) - 1)]
    place = [places[w][o] for w, o in zip(worlds, own, strict=False)]
    entry = [jax.ShapeDtypeStruct(x.shape[o:], x.dtype) for x, o in zip(operands, own, strict=False)]
    return KernelSearch(plan.search, entry, place, plan.by_vectors)


POOL = NativeFunction(
    name="pool",
    plain=_of_world,
    batched=_of_worlds,
    results=lambda plan, _: [jax.ShapeDtypeStruct((plan.length, plan.width), plan.dtype)],
    programs={CPU: _on_cpu, GPU: _on_cuda, TPU: _on_tpu},
    begin=_begin,
    label=lambda plan: plan.label,
)


def _of_one_world(w: Writer, op: Operation, operands: list[Value]) -> list[Value]:
    """Write the searches of one world as a sequential loop in its program."""
    plan = op.params["plan"]
    if op.params["worlds"] is not None:
        raise UnsupportedPrimitive("searches of a batch within a world")
    shapes = [x.shape[i >= plan.split :] for i, x in enumerate(op.inputs[:-1])]
    s = [jax.ShapeDtypeStruct(shape, x.dtype) for shape, x in zip(shapes, op.inputs[:-1], strict=True)]
    closed = jax.make_jaxpr(lambda *x: plan.search(list(x), jnp.array(True)))(*s)
    *leaves, count = operands
    out = w.buffer(plan.dtype, plan.length * plan.width)
    i, total = next(w.names), w.name_of(count)
    with w.repeated(plan.length), w.scope(f"EACH({i}, {plan.length})"):
        w.line(f"if ({i} >= {total}) {{ EACH(k, {plan.width}) PUT({out.name}, {i} * {plan.width} + k, 0); continue; }}")
        args = [row_of(x, i) if k >= plan.split else x for k, x in enumerate(leaves)]
        (found,) = compute(w, flatten(closed, THREAD), args)
        w.fill(out, found, (plan.length, plan.width), lambda index: [i, *index])
    out.version += 1
    return [w.stored(out, (plan.length, plan.width))]


def _of_each_world(w: Writer, op: Operation, operands: list[Value]) -> list[Value]:
    """Write a call of a C function that searches sequentially for each world of a vector."""
    if op.params["worlds"] is not None:
        raise UnsupportedPrimitive("searches of a batch within a world")
    search = partial(POOL, op.params["plan"])
    results = tuple(jax.ShapeDtypeStruct(v.shape, v.dtype) for v in op.outputs)
    program = WorldProgram(search, scalar_source(search, op.inputs), results, op.params["plan"].label)
    return world_program(w, op._replace(params={"plan": program}), operands, {})


SEQUENTIAL["pool"] = _of_one_world
OF_EACH_WORLD["pool"] = _of_each_world


def one_by_one(plan: _Plan, axes: Sequence[int | None], leaves: list[Array], count: Array) -> Array:
    """Return results (size, n, k + 1) by loops over worlds and entries; ignore the last number of each entry."""
    search, split, length, width, dtype, *_ = plan

    def world(w: Array, out: Array) -> Array:
        mine = [x if a is None else row_at(x, w) for x, a in zip(leaves, axes, strict=True)]

        def entry(i: Array, out: Array) -> Array:
            found = search([*mine[:split], *[row_at(x, i) for x in mine[split:]]], jnp.array(True))
            return lax.dynamic_update_slice(out, found[None, None], (w, i, np.int32(0)), allow_negative_indices=False)

        return repeat(jnp.minimum(row_at(count, w).astype(jnp.int32), length), entry, out)

    out = repeat(len(count), world, jnp.zeros((len(count), length, width + 1), dtype))
    # XLA kills the process if a kernel does not read an argument (pairs that need no hulls), so each is read here
    read = sum((jnp.ravel(x)[0].astype(dtype) for x in leaves if x.size), start=jnp.zeros((), dtype))
    return lax.dynamic_update_slice(out, read[None, None, None], (0, 0, width))


def side_by_side(plan: _Plan, axes: Sequence[int | None], leaves: list[Array], count: Array) -> Array:
    """Return results (size, n, k): compact the entries to search of all worlds, and batch one chunk at a time.

    Places are computed by chunks: a scan over all entries would be folded, in minutes, where `count` is constant.
    """
    search, split, length, width, dtype, *_ = plan
    size = len(count)
    chunk = min(CHUNK, size * length)
    own = jnp.clip(count.astype(jnp.int32), 0, length)
    before = jnp.cumsum(own)
    total = before[-1]
    in_axes = [None if i < split and a is None else 0 for i, a in enumerate(axes)]

    def some(i: Array, out: Array) -> Array:
        place = i * chunk + jnp.arange(chunk, dtype=jnp.int32)
        is_real = place < total
        world = jnp.minimum(jnp.searchsorted(before, place, side="right"), size - 1)
        entry = jnp.where(is_real, place - (before - own)[world], 0)
        mine = world * length + entry
        rows = [
            (x if a is None else x[world]) if k < split else (x[entry] if a is None else x[world, entry])
            for k, (x, a) in enumerate(zip(leaves, axes, strict=True))
        ]
        found = jax.vmap(search, in_axes=(in_axes, 0))(rows, is_real)
        return out.at[jnp.where(is_real, mine, size * length)].set(found, mode="drop")

    out = repeat((total + chunk - 1) // chunk, some, jnp.zeros((size * length, width), dtype))
    return out.reshape(size, length, width)
