"""Pairs of elements of flexes that may touch, of two flexes or of one with itself.

Pairs whose boxes overlap come from a table of all pairs, or from a uniform grid if that table would be large; on a CPU
they come from a sweep along the axis on which the elements spread. Pairs that share a body are left out.
"""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import EnableBit, FlexSelf
from jaxsim.engine.collision.broad.sweep import AXIS_FIRST
from jaxsim.engine.collision.flex import segments as static
from jaxsim.engine.collision.grid import neighbours
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.math.arrays import entry_at, gather, row_at, take, with_entry
from jaxsim.math.safe import Array
from jaxsim.native.world_program import WorldProgram, run_program, scalar_source
from jaxsim.xla.compaction import compact
from jaxsim.xla.loops import repeat

TABLE_MAX_PAIRS = 1 << 15  # beyond this many pairs of elements the grid is used
NEAR_PER_ELEMENT = 12  # capacity for near pairs per element; 3 or 4 occur in a flat cloth, 8 in a heap
NEAR_MIN = 1024  # least capacity for near pairs


class Relation(NamedTuple):
    """Elements of two flexes that may collide, ids of the model (n1,) and (n2,), the same for a flex with itself."""

    flex: tuple[int, int]
    segment: int
    first: np.ndarray
    second: np.ndarray
    mode: int  # `FlexSelf` of a flex with itself, NONE of two flexes


class NearElements(NamedTuple):
    """Pairs of elements (n, 2) whose boxes overlap: ids of the model, mask of real ones, number dropped.

    `rank` holds the positions of the elements `relation.first` in MuJoCo's sweep; zero where MuJoCo does not sweep.
    """

    element: Array
    real: Array
    dropped: Array
    rank: Array


def relations(m: Any) -> list[Relation]:
    """Return the pairs of flexes that may collide, a flex with itself included."""
    of, out = static.segments(m), []
    element = np.arange(m.nflexelem)
    flex = tables.element_flex(m)
    for i in np.flatnonzero((of.kind == static.FLEX) | (of.kind == static.SELF)):
        f, g = of.flex[i].tolist()
        itself = of.kind[i] == static.SELF
        mode = static.self_kind(m, f) if itself else FlexSelf.NONE
        leaves = of.tree[i] or mode == FlexSelf.BVH
        counts = static.in_tree(m) if leaves else (static.is_active(m) if itself else np.ones(m.nflexelem, bool))
        first, second = (element[(flex == k) & counts] for k in (f, g))
        if len(first) and len(second):
            out.append(Relation((f, g), int(i), first, second, int(mode)))
    return out


def margin_of(m: Any, relation: Relation) -> Array:
    """Return the margin of two flexes; zero for a flex with itself."""
    f, g = relation.flex
    if f == g:
        return jnp.zeros(())
    return m.opt.o_margin if m.opt.enableflags & EnableBit.OVERRIDE else m.flex_margin[f] + m.flex_margin[g]


def near_elements(m: Any, d: Any, relation: Relation) -> NearElements:
    """Return the pairs of elements whose boxes overlap and that share no body. Source: mj_collideElems."""
    f, g = relation.flex
    box = lax.stop_gradient(d.flexelem_aabb)
    margin = jnp.asarray(margin_of(m, relation), box.dtype)
    element = relation.first if f == g else np.concatenate([relation.first, relation.second])
    small = len(relation.first) * len(relation.second) <= TABLE_MAX_PAIRS
    capacity = _capacity(relation)

    n, swept = len(element), relation.mode == FlexSelf.SAP

    def plain(box: Array, margin: Array, *_: Array) -> tuple[Array, ...]:
        pairs = (_from_table if small else _from_grid)(m, box, margin, relation, element)
        return *pairs, _ranks(jnp.argsort(_starts(box)[1], stable=True)) if swept else jnp.zeros(n, jnp.int32)

    def in_sequence(*x: Array) -> tuple[Array, ...]:
        pair, count, order = _sweep(capacity, m.nbody, f == g, *x)
        return pair, count, _ranks(order) if swept else jnp.zeros(n, jnp.int32)

    tables = _bodies(m)[element], np.isin(element, relation.first), element
    tables = (jnp.asarray(x, bool if x.dtype == bool else jnp.int32) for x in tables)
    operands = take(box, element), lax.stop_gradient(margin), *tables
    result = tuple(jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((capacity, 2), (), (n,)))
    source = scalar_source(in_sequence, operands)
    program = WorldProgram(plain, source, result, "the broad phase of flex elements")
    pair, count, rank = run_program(program, *operands)
    return NearElements(pair, np.arange(capacity) < count, jnp.maximum(count - capacity, 0), rank)


def _sweep(
    capacity: int, nbody: int, itself: bool, box: Array, margin: Array, body: Array, is_first: Array, element: Array
) -> tuple[Array, Array, Array]:
    """Sweep elements on one core along the longest axis; return pairs (capacity, 2), their number, and the order (n,).

    `body` (n, k) are the bodies of elements with `box` (n, 6), or -1; `is_first` marks the elements of the first flex.
    """
    n, (axis, start) = len(box), _starts(box)
    order = jnp.argsort(start, stable=True)
    column = row_at(jnp.asarray(AXIS_FIRST), axis)
    boxes = gather(gather(box, order).T, column).T
    start = jnp.append(gather(start, order), np.nan)  # where the sweep of the last elements ends

    def visit(i: Array, state: tuple) -> tuple:
        mine, a = row_at(boxes, i), entry_at(order, i)
        at, reach = mine[0], mine[3] + margin
        end = (at + reach + 1e-6 * (jnp.abs(at) + reach)).astype(jnp.float32)  # rounding
        seen, pair, count = state
        for k in range(body.shape[1]):  # the last element seen at each body
            to = entry_at(body, a, k)
            seen = with_entry(seen, to + 1, jnp.where(to < 0, -1, i))

        def add(j: Array, pair: Array, count: Array) -> tuple:
            b = entry_at(order, j)
            shared = jnp.any(jnp.stack([entry_at(seen, entry_at(body, b, k) + 1) == i for k in range(body.shape[1])]))
            swap = a > b if itself else ~entry_at(is_first, a)
            new = jnp.stack([entry_at(element, jnp.where(swap, x, y)) for x, y in ((b, a), (a, b))])
            other = itself | (entry_at(is_first, a) != entry_at(is_first, b))
            place = jnp.where(shared | ~other, capacity, count)
            return pair.at[place].set(new, mode="drop"), count + (~shared & other)

        def look(j: Array, pair: Array, count: Array) -> tuple:
            other, skip = entry_at(boxes, j), lambda _, *s: s
            near = lambda k: _meet(mine[k::3], other[k::3], margin)  # noqa: E731
            rest = lambda *s: lax.cond(near(0) & near(2), add, skip, *s)  # noqa: E731
            return j + 1, *lax.cond(near(1), rest, skip, j, pair, count)

        going = lambda s: entry_at(start, s[0]) <= end  # noqa: E731
        return seen, *lax.while_loop(going, lambda s: look(*s), (i + 1, pair, count))[1:]

    none = jnp.full(nbody + 2, -1, jnp.int32), jnp.zeros((capacity, 2), jnp.int32), jnp.int32(0)
    _, pair, count = repeat(n, visit, none)
    return pair, count, order


def _starts(box: Array) -> tuple[Array, Array]:
    """Return the axis along which boxes (n, 6) reach farthest, by MuJoCo's comparison, and their starts on it (n,)."""
    low, high = box[:, :3] - box[:, 3:], box[:, :3] + box[:, 3:]
    size = jnp.max(high, axis=0) - jnp.min(low, axis=0)
    axis = jnp.where((size[0] > size[1]) & (size[0] > size[2]), 0, jnp.where(size[1] > size[2], 1, 2))
    start = jnp.where(axis == 0, low[:, 0], jnp.where(axis == 1, low[:, 1], low[:, 2]))
    return axis.astype(jnp.int32), start.astype(jnp.float32)


def _ranks(order: Array) -> Array:
    """Return the inverse (n,) of a permutation (n,)."""
    return jnp.zeros(len(order), jnp.int32).at[order].set(jnp.arange(len(order), dtype=jnp.int32))


def _meet(box1: Array, box2: Array, margin: Array) -> Array:
    """Return whether boxes (..., 6) overlap within the margin along all axes; NaN never overlaps."""
    n = box1.shape[-1] // 2
    gap = jnp.abs(box1[..., :n] - box2[..., :n])
    return jnp.all(gap <= box1[..., n:] + box2[..., n:] + margin, axis=-1)


def _bodies(m: Any) -> np.ndarray:
    """Return the bodies of the vertices of all elements (nflexelem, k), -1 for none."""
    vertex = tables.element_vertices(m)
    body = m.flex_vertbodyid[np.maximum(vertex, 0)]
    body = np.where((vertex < 0) | (body < 0), -1, body)
    return body[:, : max(1, (body >= 0).any(0).sum())]


def _capacity(relation: Relation) -> int:
    n, k = len(relation.first), len(relation.second)
    pairs = n * (n - 1) // 2 if relation.flex[0] == relation.flex[1] else n * k
    return max(1, min(pairs, max(NEAR_MIN, NEAR_PER_ELEMENT * max(n, k))))


def _from_table(m: Any, box: Array, margin: Array, relation: Relation, element: np.ndarray) -> tuple[Array, Array]:
    """Return pairs (capacity, 2) and their number, which may exceed the capacity, of elements with boxes (n, 6)."""
    itself, n = relation.flex[0] == relation.flex[1], len(relation.first)
    other = np.arange(n) if itself else np.arange(n, len(element))
    first, second = (x.reshape(-1) for x in np.meshgrid(np.arange(n), other, indexing="ij"))
    if itself:
        first, second = (x[first < second] for x in (first, second))
    body = _bodies(m)[element]
    same = (body[first][:, :, None] == body[second][:, None]) & (body[first] >= 0)[:, :, None]
    keep = ~same.any((1, 2))
    first, second = first[keep], second[keep]
    capacity = _capacity(relation)
    if not len(first):
        return jnp.zeros((capacity, 2), jnp.int32), jnp.zeros((), jnp.int32)
    near = _meet(take(box, first), take(box, second), margin)
    index, real, _ = compact(near, min(len(first), capacity))
    pairs = gather(jnp.asarray(np.stack([element[first], element[second]], 1), jnp.int32), index)
    pairs = jnp.pad(jnp.where(real[:, None], pairs, 0), ((0, capacity - len(pairs)), (0, 0)))
    return pairs, jnp.sum(near, dtype=jnp.int32)


def _from_grid(m: Any, of: Array, margin: Array, relation: Relation, element: np.ndarray) -> tuple[Array, Array]:
    """Find the pairs of `_from_table` by a grid, for many elements."""
    itself = relation.flex[0] == relation.flex[1]
    width = 2 * jnp.max(of[:, 3:]) + margin
    body, is_first = jnp.asarray(_bodies(m)[element]), jnp.asarray(np.isin(element, relation.first))
    ids = jnp.asarray(element, jnp.int32)

    def near(i: Array, j: Array) -> tuple[Array, Array]:
        ok = _meet(gather(of, i), gather(of, j), margin)
        body1, body2 = gather(body, i), gather(body, j)
        for k, other in itertools.product(range(body.shape[1]), repeat=2):
            ok &= (body1[:, k] != body2[:, other]) | (body1[:, k] < 0)
        swap = ~gather(is_first, i) if not itself else i > j
        if not itself:
            ok &= gather(is_first, i) != gather(is_first, j)
        pair = jnp.stack([jnp.where(swap, j, i), jnp.where(swap, i, j)], axis=1)
        return ok, gather(ids, pair)

    none = jnp.zeros((_capacity(relation), 2), jnp.int32), jnp.zeros((), jnp.int32)
    return neighbours(of[:, :3], width, near, none)
