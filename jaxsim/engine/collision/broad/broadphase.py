"""Which pairs are near, in large scenes: a uniform grid over the geoms of usual size, instead of a list of all pairs.

A model with more than `MANY` candidate pairs keeps no list of them. Its geoms of usual size are sorted by the cell of a
grid that holds their centres; the cell is as wide as the largest of them, so that partners stand in neighbouring cells,
which are a few runs of the sorted list. The runs are walked a chunk at a time, the static filters are predicates on a
chunk, and pairs whose spheres touch are kept. Planes, height fields and geoms that are large beside the usual are
paired with all others in a list, and so are explicit pairs. What is near is sorted into the order in which the
reference reports contacts. The work follows the number of neighbours. Only indices leave here: nothing is
differentiated.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import DisableBit, GeomType
from jaxsim.engine.collision import parameters
from jaxsim.engine.collision.broad.bounds import boxes_touch, spheres_touch
from jaxsim.engine.collision.broad.pairs import Candidates, listed
from jaxsim.math.arrays import gather, take
from jaxsim.math.safe import Array
from jaxsim.xla.batching import batch_max

MANY = 1 << 15
BROAD = 4  # geoms larger than this many times the median are paired by list
CELLS = 1022  # of the grid along an axis; what lies beyond counts to the last one
NEIGHBOURS = 24  # near pairs of a geom for which there is room
COLUMNS = (1, 1023, 1024, 1025)  # half of the neighbouring columns of cells: (dz, dy) of a key (z 1024 + y) 1024 + x


class Near(NamedTuple):
    """Pairs that may touch, in the order of their contacts: geoms (n, 2) by type, explicit pair or -1, real or not."""

    geom: Array
    pair: Array
    real: Array
    lost: Array


def is_large(m: Any) -> bool:
    """Whether the model has too many candidate pairs to list them."""
    return _is_large(m.structure, MANY)


@lru_cache(maxsize=256)
def _is_large(m: Any, many: int) -> bool:
    return sum(n for _, _, n in class_pairs(m)) > many


def class_pairs(m: Any) -> list[tuple[int, int, int]]:
    """Geom types of pairs that contact bits and welding to the world let collide, and how many pairs: a bound."""
    static = m.body_weldid[m.geom_bodyid] == 0
    key = np.column_stack([m.geom_type, m.geom_contype, m.geom_conaffinity, static]).astype(np.int64)
    classes, count = np.unique(key.reshape(-1, 4), axis=0, return_counts=True)
    out = []
    for i, (a, con1, aff1, static1) in enumerate(classes.tolist()):
        for j, (b, con2, aff2, static2) in enumerate(classes[i:].tolist(), start=i):
            n = int(count[i] * (count[i] - 1) // 2 if i == j else count[i] * count[j])
            fixed = (static1 and static2) or (a <= GeomType.HFIELD and b <= GeomType.HFIELD)
            if n and not fixed and (con1 & aff2 or con2 & aff1):
                out.append((a, b, n))
    return out


@lru_cache(maxsize=64)
def usual(m: Any) -> np.ndarray:
    """Geoms (k,) that go into the grid: those that can collide, of bounded size, not large beside the median."""
    size = np.full(m.ngeom, np.inf)
    bodies = m.body_bvhadr >= 0
    node = np.concatenate(
        [np.zeros(0, int), *map(np.arange, m.body_bvhadr[bodies], (m.body_bvhadr + m.body_bvhnum)[bodies])]
    )
    node = node[m.bvh_nodeid[node] >= 0]
    size[m.bvh_nodeid[node]] = np.linalg.norm(m.bvh_aabb[node, 3:], axis=1)
    size[(m.geom_type <= GeomType.HFIELD) | ((m.geom_contype == 0) & (m.geom_conaffinity == 0))] = np.inf
    bounded = np.isfinite(size)
    return np.flatnonzero(bounded & (size <= BROAD * np.median(size[bounded]))) if bounded.any() else np.zeros(0, int)


def room(m: Any) -> int:
    """Near pairs for which there is room: more than can make contacts that find room."""
    return max(256, min(2 * m.max_contacts, NEIGHBOURS * m.ngeom))


@lru_cache(maxsize=64)
def types_that_meet(m: Any) -> list[tuple[int, int]]:
    """Pairs of geom types that can collide."""
    explicit = np.sort(m.geom_type[np.stack([m.pair_geom1, m.pair_geom2], axis=-1)].reshape(-1, 2), axis=1)
    return sorted({(a, b) for a, b, _ in class_pairs(m)} | set(map(tuple, explicit.tolist())))


def near_pairs(m: Any, d: Any, room: int) -> Near:
    """Pairs whose spheres and boxes touch, `room` at most."""
    pos, mat = lax.stop_gradient((d.geom_xpos, d.geom_xmat.reshape(-1, 3, 3)))
    m = lax.stop_gradient(m)
    grid = usual(m.structure)
    flags = m.opt.disableflags & (DisableBit.MIDPHASE | DisableBit.FILTERPARENT)
    pairs = listed(m.structure, flags, tuple(grid.tolist()))
    found = _List(jnp.zeros((NEIGHBOURS * m.ngeom, 3), jnp.int32), jnp.zeros((), jnp.int32))
    if len(pairs.pair):
        found = _append(found, _near_listed(m, pos, mat, pairs), jnp.asarray(np.column_stack([pairs.geom, pairs.pair])))
    found = _near_in_grid(m, pos, grid, found)
    rows, capacity = found.rows, len(found.rows)
    real = np.arange(capacity) < found.count
    geom, pair = rows[:, :2], rows[:, 2]
    touch = real & (
        (gather(jnp.asarray(m.geom_type), geom[:, 0]) <= GeomType.HFIELD)
        | boxes_touch(m, pos, mat, parameters.margin_of(m, geom, pair), geom[:, 0], geom[:, 1])
    )
    kept = _append(_List(jnp.zeros((room, 3), jnp.int32), jnp.zeros((), jnp.int32)), touch, rows)
    lost = jnp.maximum(found.count - capacity, 0) + jnp.maximum(kept.count - room, 0)
    return _in_order(m, kept, lost)


class _List(NamedTuple):
    """Rows (n, 3) of geoms and explicit pair, the first `count` of them real; more were found if that is above n."""

    rows: Array
    count: Array


def _append(found: _List, mask: Array, rows: Array) -> _List:
    place = found.count + jnp.cumsum(mask, dtype=jnp.int32) - 1
    place = jnp.where(mask, place, len(found.rows))
    return _List(found.rows.at[place].set(rows, mode="drop"), found.count + jnp.sum(mask, dtype=jnp.int32))


def _near_listed(m: Any, pos: Array, mat: Array, pairs: Candidates) -> Array:
    g1, g2 = pairs.geom.T
    margin = parameters.margins(m, pairs)
    gap = take(pos, g2) - take(pos, g1)
    above = (gap * take(mat[:, :, 2], g1)).sum(-1) <= margin + take(m.geom_rbound, g2)
    near = spheres_touch(gap, take(m.geom_rbound, g1) + take(m.geom_rbound, g2) + margin)
    return jnp.where(m.geom_type[g1] == GeomType.PLANE, above, near | (m.geom_type[g1] == GeomType.HFIELD))


def _near_in_grid(m: Any, pos: Array, grid: np.ndarray, found: _List) -> _List:
    """Append the pairs within the grid whose spheres touch."""
    n = len(grid)
    if n < 2:
        return found
    centre, radius = take(pos, grid), take(m.geom_rbound, grid)
    centre = jnp.where(jnp.isfinite(centre), centre, 0)
    width = 2 * jnp.max(radius) + parameters.widest_margin(m)
    cell = jnp.clip(jnp.floor((centre - jnp.min(centre, axis=0)) / jnp.maximum(width, 1e-9)), 0, CELLS - 1)
    x, y, z = (cell.astype(jnp.int32) + 1).T
    key, order = lax.sort_key_val((z * 1024 + y) * 1024 + x, jnp.arange(n, dtype=jnp.int32))
    geom = gather(jnp.asarray(grid, jnp.int32), order)
    begin, end = [jnp.arange(1, n + 1)], [jnp.searchsorted(key, key + 1, side="right")]
    for column in COLUMNS:
        begin.append(jnp.searchsorted(key, key + 1024 * column - 1, side="left"))
        end.append(jnp.searchsorted(key, key + 1024 * column + 1, side="right"))
    begin, end = jnp.concatenate(begin), jnp.concatenate(end)
    after = jnp.cumsum(end - begin, dtype=jnp.int32)
    size = 16 * n

    def visit(i: Array, found: _List) -> _List:
        k = i * size + jnp.arange(size, dtype=jnp.int32)
        run = jnp.minimum(jnp.searchsorted(after, k, side="right"), 5 * n - 1)
        other = jnp.clip(gather(end, run) - (gather(after, run) - k), 0, n - 1)
        g1, g2 = gather(geom, run % n), gather(geom, other)
        t1, t2 = (gather(jnp.asarray(m.geom_type), g) for g in (g1, g2))
        swap = (t1 > t2) | ((t1 == t2) & (g1 > g2))
        g1, g2 = jnp.where(swap, g2, g1), jnp.where(swap, g1, g2)
        rows = jnp.stack([g1, g2, jnp.full_like(g1, -1)], axis=1)
        reach = gather(m.geom_rbound, g1) + gather(m.geom_rbound, g2) + parameters.margin_of(m, rows[:, :2], rows[:, 2])
        near = (k < after[-1]) & spheres_touch(gather(pos, g2) - gather(pos, g1), reach) & _may_collide(m, g1, g2)
        return _append(found, near, rows)

    return lax.fori_loop(0, (batch_max(after[-1]) + size - 1) // size, visit, found)


def _may_collide(m: Any, g1: Array, g2: Array) -> Array:
    """The static filters: contact bits, bodies welded together, parent and child, exclusions, explicit pairs."""

    def of(table: np.ndarray, index: Array) -> Array:
        return gather(jnp.asarray(table), index)

    keep = (of(m.geom_contype, g1) & of(m.geom_conaffinity, g2)) | (of(m.geom_contype, g2) & of(m.geom_conaffinity, g1))
    b1, b2 = of(m.geom_bodyid, g1), of(m.geom_bodyid, g2)
    weld1, weld2 = of(m.body_weldid, b1), of(m.body_weldid, b2)
    keep = (keep != 0) & (weld1 != weld2)
    if not m.opt.disableflags & DisableBit.FILTERPARENT:
        above = m.body_weldid[m.body_parentid[m.body_weldid]]
        family = (weld1 == of(above, b2)) | (weld2 == of(above, b1))
        keep &= ~((weld1 != 0) & (weld2 != 0) & family)
    if m.nexclude:
        both = (jnp.minimum(b1, b2).astype(jnp.uint32) << 16) + jnp.maximum(b1, b2).astype(jnp.uint32)
        keep &= ~_is_in(both, m.exclude_signature.astype(np.int64))
    if m.npair:
        a, b = np.sort(np.stack([m.pair_geom1, m.pair_geom2]).astype(np.int64), axis=0)
        own = jnp.minimum(g1, g2).astype(jnp.uint32) * np.uint32(m.ngeom) + jnp.maximum(g1, g2).astype(jnp.uint32)
        keep &= ~_is_in(own, a * m.ngeom + b)
    return keep


def _is_in(x: Array, members: np.ndarray) -> Array:
    """Which of `x` (uint32) are among the static `members`."""
    table = jnp.asarray(np.unique(members).astype(np.uint32))
    at = jnp.minimum(jnp.searchsorted(table, x), len(table) - 1)
    return gather(table, at) == x


def _in_order(m: Any, found: _List, lost: Array) -> Near:
    """Sorted as the reference visits pairs: by bodies, explicit pairs first, then by geoms."""
    room = len(found.rows)
    geom, pair = found.rows[:, :2], found.rows[:, 2]
    real = np.arange(room) < found.count
    body = gather(jnp.asarray(m.geom_bodyid), geom)
    low, high = jnp.min(body, axis=1), jnp.max(body, axis=1)
    # pairs of bodies that the reference tests with bounding volumes are sorted by the geoms ordered by type
    one, tree = (gather(jnp.asarray(x), body).all(1) for x in (m.body_geomnum == 1, m.body_bvhadr >= 0))
    by_type = tree & ~one & (not m.opt.disableflags & DisableBit.MIDPHASE)
    flip = ~by_type & (body[:, 0] > body[:, 1])
    first, second = jnp.where(flip, geom[:, 1], geom[:, 0]), jnp.where(flip, geom[:, 0], geom[:, 1])
    major = (low.astype(jnp.uint32) << 16) + high.astype(jnp.uint32)
    minor = np.uint32(m.npair) + first.astype(jnp.uint32) * np.uint32(m.ngeom) + second.astype(jnp.uint32)
    if m.npair:
        signature = np.maximum.accumulate(m.pair_signature.astype(np.int64)).astype(np.uint32)
        index = jnp.maximum(pair, 0)
        major = jnp.where(pair >= 0, gather(jnp.asarray(signature), index), major)
        minor = jnp.where(pair >= 0, index.astype(jnp.uint32), minor)
    major = jnp.where(real, major, np.uint32(0xFFFFFFFF))
    *_, place = lax.sort((major, minor, jnp.arange(room, dtype=jnp.int32)), num_keys=2)
    rows = gather(found.rows, place)
    return Near(rows[:, :2], rows[:, 2], real, lost)
