"""Sweep and prune on one core: pairs of geoms whose boxes along the world's axes overlap.

Boxes are sorted by their lower ends along the axis of largest spread. Static geoms never meet each other, so they are
sorted apart and tested against moving geoms only.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import GeomType
from jaxsim.math.arrays import entry_at, gather, matvec, row_at, with_entry
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat

AXIS_FIRST = np.array([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3], [2, 0, 1, 5, 3, 4]], np.int32)  # columns of boxes


class SweptGeoms(NamedTuple):
    """Poses and boxes of geoms (n, ...), masks of static geoms and of swept geoms.

    `reach` is added to each box: half of the largest margin.
    """

    pos: Array
    mat: Array
    aabb: Array
    reach: Array
    is_still: Array
    is_swept: Array


def swept_geoms(m: Any) -> np.ndarray:
    """Return the mask of swept geoms (ngeom,): bounded, with contact bits."""
    return (m.geom_type > GeomType.HFIELD) & ((m.geom_contype != 0) | (m.geom_conaffinity != 0))


def sweep(x: SweptGeoms, meet: Callable[[Array, Array, Any], Any], state: Any) -> Any:
    """Fold `state = meet(g, h, state)` over geom pairs whose boxes overlap; poses that are not finite are skipped."""
    order, box, moving, every = _sorted_boxes(x)
    start = jnp.append(box[:, 0], np.nan)

    def look(i: Array, first: Array, last: Array, state: Any) -> Any:
        """Fold `meet` over the boxes from `first` to `last` that overlap box i."""
        a = entry_at(box, i)

        def one(j: Array, state: Any) -> tuple:
            b = entry_at(box, j)
            apart = (a[1] > b[4]) | (b[1] > a[4]) | (a[2] > b[5]) | (b[2] > a[5])
            both = lambda s: meet(entry_at(order, i), entry_at(order, j), s)  # noqa: E731
            return j + 1, lax.cond(apart, lambda s: s, both, state)

        going = lambda s: (s[0] < last) & (entry_at(start, s[0]) <= a[3])  # noqa: E731
        return lax.while_loop(going, lambda s: one(*s), (first, state))[1]

    def visit(i: Array, state: tuple) -> tuple:
        of_moving, of_still, state = state
        begin, is_moving = entry_at(start, i), i < moving
        behind = lambda k: (k < moving) & ~is_moving & (entry_at(start, k) < begin)  # noqa: E731
        of_moving = lax.while_loop(behind, lambda k: k + 1, of_moving)
        behind = lambda k: (k < every) & is_moving & (entry_at(start, k) <= begin)  # noqa: E731
        of_still = lax.while_loop(behind, lambda k: k + 1, of_still)
        state = look(i, jnp.where(is_moving, i + 1, of_moving), moving, state)
        return of_moving, of_still, look(i, of_still, jnp.where(is_moving, every, 0), state)

    return lax.fori_loop(jnp.int32(0), every, visit, (jnp.int32(0), moving, state))[-1]


def _sorted_boxes(x: SweptGeoms) -> tuple[Array, Array, Array, Array]:
    """Sort the geoms (n,) for the sweep: moving ones, static ones, and the rest.

    Returns the order, the sorted boxes (n, 6) with the axis of the sweep first, the number of moving
    geoms, and the number of moving and static geoms.
    """
    centre = x.pos + matvec(x.mat, x.aabb[:, :3])
    half = matvec(jnp.abs(x.mat), x.aabb[:, 3:]) + x.reach
    half = half + 1e-6 * (jnp.abs(centre) + half)  # rounding
    box = jnp.concatenate([centre - half, centre + half], axis=1)
    ok = x.is_swept & jnp.all(jnp.isfinite(box), axis=1)
    moves = ok & ~x.is_still
    mean = jnp.sum(jnp.where(moves[:, None], centre, 0), axis=0) / jnp.maximum(jnp.sum(moves), 1)
    spread = jnp.sum(jnp.where(moves[:, None], (centre - mean) ** 2, 0), axis=0)
    column = row_at(jnp.asarray(AXIS_FIRST), jnp.argmax(spread).astype(jnp.int32))
    box = gather(box.T, column).T
    kind = jnp.where(ok, x.is_still.astype(jnp.int32), 2)
    order = lax.sort((kind, box[:, 0], lax.iota(jnp.int32, len(kind))), num_keys=2)[-1]
    return order, gather(box, order), jnp.sum(moves, dtype=jnp.int32), jnp.sum(ok, dtype=jnp.int32)


def near_of_list(x: SweptGeoms, npair: int, key: Array, place: Array, always: Array) -> Array:
    """Return the mask of the `npair` pairs to test: those in `always`, and those whose boxes overlap.

    `key` holds the sorted keys of the other pairs (lower id times ngeom plus higher id), `place` their positions in the
    list.
    """
    ngeom, count = len(x.pos), len(key)

    def meet(g: Array, h: Array, found: Array) -> Array:
        wanted = jnp.minimum(g, h) * ngeom + jnp.maximum(g, h)

        def narrow(s: tuple[Array, Array]) -> tuple[Array, Array]:
            low, n = s
            half = n // 2
            after = entry_at(key, low + half) < wanted
            return jnp.where(after, low + half + 1, low), jnp.where(after, n - half - 1, half)

        first, _ = lax.while_loop(lambda s: s[1] > 0, narrow, (jnp.int32(0), jnp.int32(count)))
        here = lambda s: (s[0] < count) & (entry_at(key, jnp.minimum(s[0], count - 1)) == wanted)  # noqa: E731
        mark = lambda s: (s[0] + 1, with_entry(s[1], entry_at(place, s[0]), True))  # noqa: E731
        return lax.while_loop(here, mark, (first, found))[1]

    found = jnp.zeros(npair, bool)
    found = repeat(len(always), lambda i, found: with_entry(found, entry_at(always, i), True), found)
    return sweep(x, meet, found) if count else found
