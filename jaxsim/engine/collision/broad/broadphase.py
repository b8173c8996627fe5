"""Broad phase of large models: a uniform grid over the geoms of similar size, instead of a list of all pairs.

A model with more than `LIST_MAX_PAIRS` candidate pairs keeps no list of them. Its geoms of similar size are sorted by
the grid cell of their centres. Cells are as wide as the largest of these geoms, so that geoms that touch are in
neighbouring cells, which are a few runs of the sorted list. A loop visits the runs a chunk of pairs at a time, applies
the static filters and keeps pairs whose spheres touch. Planes, height fields and geoms much larger than the median are
paired with all others in a list, and so are explicit pairs. Near pairs are then sorted into MuJoCo's order of contacts.
The work is proportional to the number of neighbours. The result is indices only, so nothing is differentiated.

On a CPU with a C compiler pairs are found by sweep and prune instead (`sweep.py`).
"""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import DisableBit, GeomType
from jaxsim.engine.collision import parameters
from jaxsim.engine.collision.broad.bounds import boxes_touch, spheres_touch
from jaxsim.engine.collision.broad.pairs import Candidates, listed_candidates
from jaxsim.engine.collision.broad.sweep import SweptGeoms, sweep, swept_geoms
from jaxsim.engine.collision.grid import appended, neighbours
from jaxsim.math.arrays import entry_at, gather, take
from jaxsim.math.safe import Array
from jaxsim.native.world_program import WorldProgram, rebuilt, run_program, scalar_source
from jaxsim.xla.loops import repeat

LIST_MAX_PAIRS = 1 << 15  # models with more candidate pairs use the grid
GRID_MAX_SIZE_RATIO = 4  # geoms larger than this times the median are not in the grid
NEAR_PAIRS_PER_GEOM = 24  # capacity for near pairs, before the box test, for each geom


class NearPairs(NamedTuple):
    """Near pairs in the order of their contacts: geoms (n, 2) by type, explicit pair or -1, mask of real entries."""

    geom: Array
    pair: Array
    real: Array
    dropped: Array


class _PairBuffer(NamedTuple):
    """Rows (n, 3) of geoms and explicit pair; the first `count` are real, and a `count` above n means overflow."""

    rows: Array
    count: Array


def is_large(m: Any) -> bool:
    """Return whether the model has too many candidate pairs for a list."""
    return _is_large(m.structure, LIST_MAX_PAIRS)


@lru_cache(maxsize=256)
def _is_large(m: Any, max_pairs: int) -> bool:
    return sum(n for _, _, n in class_pairs(m)) > max_pairs


def class_pairs(m: Any) -> list[tuple[int, int, int]]:
    """Return pairs of geom types that may collide by contact bits and welding, each with an upper bound of pairs."""
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
def grid_geoms(m: Any) -> np.ndarray:
    """Return the geoms (k,) in the grid: they can collide, are bounded, and are not much larger than the median."""
    size = np.full(m.ngeom, np.inf)
    has_bvh = m.body_bvhadr >= 0
    node = np.concatenate(
        [np.zeros(0, int), *map(np.arange, m.body_bvhadr[has_bvh], (m.body_bvhadr + m.body_bvhnum)[has_bvh])]
    )
    node = node[m.bvh_nodeid[node] >= 0]
    size[m.bvh_nodeid[node]] = np.linalg.norm(m.bvh_aabb[node, 3:], axis=1)
    size[(m.geom_type <= GeomType.HFIELD) | ((m.geom_contype == 0) & (m.geom_conaffinity == 0))] = np.inf
    bounded = np.isfinite(size)
    if not bounded.any():
        return np.zeros(0, int)
    return np.flatnonzero(bounded & (size <= GRID_MAX_SIZE_RATIO * np.median(size[bounded])))


def near_capacity(m: Any) -> int:
    """Return the capacity for near pairs: twice the contacts, at most a fixed number for each geom."""
    return max(256, min(2 * m.max_contacts, NEAR_PAIRS_PER_GEOM * m.ngeom))


@lru_cache(maxsize=64)
def colliding_types(m: Any) -> list[tuple[int, int]]:
    """Return the pairs of geom types that can collide."""
    explicit = np.sort(m.geom_type[np.stack([m.pair_geom1, m.pair_geom2], axis=-1)].reshape(-1, 2), axis=1)
    return sorted({(a, b) for a, b, _ in class_pairs(m)} | set(map(tuple, explicit.tolist())))


def near_pairs(m: Any, d: Any, capacity: int) -> NearPairs:
    """Return at most `capacity` pairs whose spheres and boxes touch.

    On overflow the two implementations may drop different pairs.
    """
    m, pos, mat = lax.stop_gradient((m, d.geom_xpos, d.geom_xmat.reshape(-1, 3, 3)))
    operands = [pos, mat, m.geom_rbound, m.geom_aabb, m.geom_margin, m.opt.o_margin, m.pair_margin]
    again = rebuilt((m, pos, mat), operands)
    plain, in_sequence = (
        lambda *x, form=f: tuple(form(*again(x), capacity)) for f in (_near_in_plain_form, _near_in_sequence)
    )
    results = tuple(jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((capacity, 3), (), ()))
    program = WorldProgram(plain, scalar_source(in_sequence, operands), results, "the broad phase")
    rows, count, dropped = run_program(program, *operands)
    real = np.arange(capacity) < count
    rows = jnp.where(real[:, None], rows, 0)
    return NearPairs(rows[:, :2], rows[:, 2], real, dropped + jnp.maximum(count - capacity, 0))


def _near_in_plain_form(m: Any, pos: Array, mat: Array, capacity: int) -> tuple[Array, Array, Array]:
    """Find near pairs by the grid and the list; return them in MuJoCo's order, their number, and the number dropped."""
    grid = grid_geoms(m.structure)
    pairs = _not_within(m, grid)
    found = _no_pairs(NEAR_PAIRS_PER_GEOM * m.ngeom)
    if len(pairs.pair):
        listed = jnp.asarray(np.column_stack([pairs.geom, pairs.pair]))
        found = _PairBuffer(*appended(found, _near_listed(m, pos, mat, pairs), listed))
    found = _near_in_grid(m, pos, grid, found)
    rows, list_capacity = found.rows, len(found.rows)
    touch = (np.arange(list_capacity) < found.count) & _boxes_touch(m, pos, mat, rows)
    kept = _PairBuffer(*appended(_no_pairs(capacity), touch, rows))
    dropped = jnp.maximum(found.count - list_capacity, 0)
    return _sorted_rows(m, kept), kept.count, dropped


def _near_in_sequence(m: Any, pos: Array, mat: Array, capacity: int) -> tuple[Array, Array, Array]:
    """Find near pairs on one core by sweep and prune and the list; see `_near_in_plain_form`."""
    swept = swept_geoms(m)
    pairs, found = _not_within(m, np.flatnonzero(swept)), _no_pairs(capacity)

    def kept(near: Array, row: Array, found: _PairBuffer) -> _PairBuffer:
        """Append the pair `row` (3,) if it is near and its boxes touch."""
        add = lambda f: _PairBuffer(f.rows.at[f.count].set(row, mode="drop"), f.count + 1)  # noqa: E731
        if_boxes = lambda f: lax.cond(_boxes_touch(m, pos, mat, row[None])[0], add, lambda f: f, f)  # noqa: E731
        return lax.cond(near, if_boxes, lambda f: f, found)

    def meet(g: Array, h: Array, found: _PairBuffer) -> _PairBuffer:
        near, rows = _near_by_spheres(m, pos, g[None], h[None])
        return kept(near[0], rows[0], found)

    if len(pairs.pair):
        near, listed = _near_listed(m, pos, mat, pairs), jnp.asarray(np.column_stack([pairs.geom, pairs.pair]))
        found = repeat(len(listed), lambda k, f: kept(entry_at(near, k), entry_at(listed, k), f), found)
    reach = parameters.max_margin(m) / 2
    is_still = m.body_weldid[m.geom_bodyid] == 0
    x = SweptGeoms(pos, mat, m.geom_aabb, reach, jnp.asarray(is_still), jnp.asarray(swept))
    found = sweep(x, meet, found)
    return _sorted_rows(m, found), found.count, jnp.int32(0)


def _not_within(m: Any, geoms: np.ndarray) -> Candidates:
    """Return the candidates without dynamic pairs of two of these geoms."""
    flags = m.opt.disableflags & (DisableBit.MIDPHASE | DisableBit.FILTERPARENT)
    return listed_candidates(m.structure, flags, tuple(geoms.tolist()))


def _boxes_touch(m: Any, pos: Array, mat: Array, rows: Array) -> Array:
    """Return whether the boxes of pairs (n, 3) touch; always true with a plane or a height field."""
    geom, pair = rows[:, :2], rows[:, 2]
    is_ground = gather(jnp.asarray(m.geom_type), geom[:, 0]) <= GeomType.HFIELD
    return is_ground | boxes_touch(m, pos, mat, parameters.margin_of(m, geom, pair), geom[:, 0], geom[:, 1])


def _no_pairs(capacity: int) -> _PairBuffer:
    return _PairBuffer(jnp.zeros((capacity, 3), jnp.int32), jnp.zeros((), jnp.int32))


def _near_listed(m: Any, pos: Array, mat: Array, pairs: Candidates) -> Array:
    """Return whether bounding spheres of listed pairs, or plane and sphere, touch; always true for height fields."""
    g1, g2 = pairs.geom.T
    margin = parameters.margins(m, pairs)
    gap = take(pos, g2) - take(pos, g1)
    above = (gap * take(mat[:, :, 2], g1)).sum(-1) <= margin + take(m.geom_rbound, g2)
    near = spheres_touch(gap, take(m.geom_rbound, g1) + take(m.geom_rbound, g2) + margin)
    return jnp.where(m.geom_type[g1] == GeomType.PLANE, above, near | (m.geom_type[g1] == GeomType.HFIELD))


def _near_in_grid(m: Any, pos: Array, grid: np.ndarray, found: _PairBuffer) -> _PairBuffer:
    """Append the pairs of geoms in the grid whose spheres touch."""
    n = len(grid)
    if n < 2:
        return found
    centre, radius = take(pos, grid), take(m.geom_rbound, grid)
    width = 2 * jnp.max(radius) + parameters.max_margin(m)

    def near(i: Array, j: Array) -> tuple[Array, Array]:
        return _near_by_spheres(m, pos, *(gather(jnp.asarray(grid, jnp.int32), k) for k in (i, j)))

    return _PairBuffer(*neighbours(centre, width, near, tuple(found)))


def _near_by_spheres(m: Any, pos: Array, g1: Array, g2: Array) -> tuple[Array, Array]:
    """Return whether geoms (n,) may collide and their spheres touch, and the rows (n, 3) of the pairs."""
    t1, t2 = (gather(jnp.asarray(m.geom_type), g) for g in (g1, g2))
    swap = (t1 > t2) | ((t1 == t2) & (g1 > g2))
    g1, g2 = jnp.where(swap, g2, g1), jnp.where(swap, g1, g2)
    rows = jnp.stack([g1, g2, jnp.full_like(g1, -1)], axis=1)
    reach = gather(m.geom_rbound, g1) + gather(m.geom_rbound, g2) + parameters.margin_of(m, rows[:, :2], rows[:, 2])
    return spheres_touch(gather(pos, g2) - gather(pos, g1), reach) & _may_collide(m, g1, g2), rows


def _may_collide(m: Any, g1: Array, g2: Array) -> Array:
    """Return whether pairs pass the static filters: contact bits, welding, parents, exclusions, explicit pairs."""

    def at(table: np.ndarray, index: Array) -> Array:
        return gather(jnp.asarray(table), index)

    keep = (at(m.geom_contype, g1) & at(m.geom_conaffinity, g2)) | (at(m.geom_contype, g2) & at(m.geom_conaffinity, g1))
    b1, b2 = at(m.geom_bodyid, g1), at(m.geom_bodyid, g2)
    weld1, weld2 = at(m.body_weldid, b1), at(m.body_weldid, b2)
    keep = (keep != 0) & (weld1 != weld2)
    if not m.opt.disableflags & DisableBit.FILTERPARENT:
        parent_weld = m.body_weldid[m.body_parentid[m.body_weldid]]
        family = (weld1 == at(parent_weld, b2)) | (weld2 == at(parent_weld, b1))
        keep &= ~((weld1 != 0) & (weld2 != 0) & family)
    if m.nexclude:
        body_key = (jnp.minimum(b1, b2).astype(jnp.uint32) << 16) + jnp.maximum(b1, b2).astype(jnp.uint32)
        keep &= ~_is_in(body_key, m.exclude_signature.astype(np.int64))
    if m.npair:
        a, b = np.sort(np.stack([m.pair_geom1, m.pair_geom2]).astype(np.int64), axis=0)
        geom_key = jnp.minimum(g1, g2).astype(jnp.uint32) * np.uint32(m.ngeom) + jnp.maximum(g1, g2).astype(jnp.uint32)
        keep &= ~_is_in(geom_key, a * m.ngeom + b)
    return keep


def _is_in(x: Array, members: np.ndarray) -> Array:
    """Return whether each of `x` (uint32) is among the static `members`."""
    table = jnp.asarray(np.unique(members).astype(np.uint32))
    index = jnp.minimum(jnp.searchsorted(table, x), len(table) - 1)
    return gather(table, index) == x


def _sorted_rows(m: Any, found: _PairBuffer) -> Array:
    """Return the rows (n, 3) of the pairs in MuJoCo's order: by bodies, explicit pairs first, then by geoms."""
    n = len(found.rows)
    geom, pair = found.rows[:, :2], found.rows[:, 2]
    real = np.arange(n) < found.count
    body = gather(jnp.asarray(m.geom_bodyid), geom)
    low, high = jnp.min(body, axis=1), jnp.max(body, axis=1)
    # body pairs that MuJoCo tests with bounding volumes are ordered by geoms that ascend by type
    single_geom, has_volumes = (gather(jnp.asarray(x), body).all(1) for x in (m.body_geomnum == 1, m.body_bvhadr >= 0))
    by_type = has_volumes & ~single_geom & (not m.opt.disableflags & DisableBit.MIDPHASE)
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
    *_, order = lax.sort((major, minor, jnp.arange(n, dtype=jnp.int32)), num_keys=2)
    return gather(found.rows, order)
