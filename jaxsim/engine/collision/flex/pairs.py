"""Elements of flexes that may touch elements: of another flex, or of the same one.

Pairs whose boxes overlap come from a table of all pairs, or from a uniform grid where that would be large. Those that
share a body are left out.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import EnableBit, FlexSelf
from jaxsim.engine.collision.compaction import compact
from jaxsim.engine.collision.flex import segments as static
from jaxsim.engine.collision.grid import neighbours
from jaxsim.engine.flex import tables
from jaxsim.math.arrays import gather, take
from jaxsim.math.safe import Array

TABLE_MAX_PAIRS = 1 << 15  # more pairs of elements are found by the grid
NEAR_PER_ELEMENT = 8  # capacity for pairs whose boxes overlap, for each element; in a flat cloth 3 or 4 do
NEAR_MIN = 1024  # and at least


class Relation(NamedTuple):
    """Elements of two flexes that may collide, ids of the model (n1,) and (n2,), the same for a flex with itself."""

    flex: tuple[int, int]
    segment: int
    first: np.ndarray
    second: np.ndarray
    mode: int  # `FlexSelf` of a flex with itself, NONE of two flexes


class NearElements(NamedTuple):
    """Pairs of elements (n, 2) whose boxes overlap: ids of the model, whether real, and how many were dropped."""

    element: Array
    real: Array
    dropped: Array


def relations(m: Any) -> list[Relation]:
    """All flexes that may collide with others or with themselves."""
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


def near_elements(m: Any, d: Any, relation: Relation) -> NearElements:
    """Pairs of elements whose boxes overlap and that have no body in common. Source: mj_collideElems."""
    f, g = relation.flex
    box = lax.stop_gradient(d.flexelem_aabb)
    margin = jnp.zeros((), box.dtype)
    if f != g:
        override = m.opt.enableflags & EnableBit.OVERRIDE
        margin = m.opt.o_margin if override else m.flex_margin[f] + m.flex_margin[g]
    small = len(relation.first) * len(relation.second) <= TABLE_MAX_PAIRS
    return (_from_table if small else _from_grid)(m, box, lax.stop_gradient(margin), relation)


def _apart(box1: Array, box2: Array, margin: Array) -> Array:
    """Whether boxes (..., 6) are farther than the margin from each other along an axis."""
    away = jnp.abs(box1[..., :3] - box2[..., :3]) > box1[..., 3:] + box2[..., 3:] + margin
    return jnp.any(away, axis=-1)


def _bodies(m: Any) -> np.ndarray:
    """Bodies of the vertices of all elements (nflexelem, 4); of those without any, numbers that differ."""
    vertex = tables.element_vertices(m)
    body = m.flex_vertbodyid[np.maximum(vertex, 0)]
    return np.where((vertex < 0) | (body < 0), -1, body)


def _from_table(m: Any, box: Array, margin: Array, relation: Relation) -> NearElements:
    first, second = (x.reshape(-1) for x in np.meshgrid(relation.first, relation.second, indexing="ij"))
    if relation.flex[0] == relation.flex[1]:
        first, second = (x[first < second] for x in (first, second))
    body = _bodies(m)
    same = (body[first][:, :, None] == body[second][:, None]) & (body[first] >= 0)[:, :, None]
    keep = ~same.any((1, 2))
    first, second = first[keep], second[keep]
    if not len(first):
        none = jnp.zeros((0, 2), jnp.int32)
        return NearElements(none, jnp.zeros(0, bool), jnp.zeros((), jnp.int32))
    near = ~_apart(take(box, first), take(box, second), margin)
    index, real, dropped = compact(near, min(len(first), _capacity(relation)))
    return NearElements(gather(jnp.asarray(np.stack([first, second], 1), jnp.int32), index), real, dropped)


def _capacity(relation: Relation) -> int:
    return max(NEAR_MIN, NEAR_PER_ELEMENT * max(len(relation.first), len(relation.second)))


def _from_grid(m: Any, box: Array, margin: Array, relation: Relation) -> NearElements:
    itself = relation.flex[0] == relation.flex[1]
    element = relation.first if itself else np.concatenate([relation.first, relation.second])
    of = take(box, element)
    width = 2 * jnp.max(of[:, 3:]) + margin
    body, is_first = jnp.asarray(_bodies(m)[element]), jnp.asarray(np.isin(element, relation.first))
    ids = jnp.asarray(element, jnp.int32)

    def near(i: Array, j: Array) -> tuple[Array, Array]:
        ok = ~_apart(gather(of, i), gather(of, j), margin)
        body1, body2 = gather(body, i), gather(body, j)
        for k in range(4):
            for other in range(4):
                ok &= (body1[:, k] != body2[:, other]) | (body1[:, k] < 0)
        swap = ~gather(is_first, i) if not itself else i > j
        if not itself:
            ok &= gather(is_first, i) != gather(is_first, j)
        pair = jnp.stack([jnp.where(swap, j, i), jnp.where(swap, i, j)], axis=1)
        return ok, gather(ids, pair)

    none = jnp.zeros((_capacity(relation), 2), jnp.int32), jnp.zeros((), jnp.int32)
    rows, count = neighbours(of[:, :3], width, near, none)
    return NearElements(rows, np.arange(len(rows)) < count, jnp.maximum(count - len(rows), 0))
