"""Height fields against convex geoms: each triangle of the field under the geom is a prism, searched by GJK and EPA."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MAXCONPAIR, GeomType
from jaxsim.engine.collision.convex.convex import Context, convex_context, deepest
from jaxsim.engine.collision.convex.support import Shape, support
from jaxsim.engine.collision.shapes import Geoms, Hits, single
from jaxsim.math.arrays import matvec, matvec_t
from jaxsim.math.safe import Array

LANES = 32  # prisms that are searched at once, at least


class Prisms(NamedTuple):
    """The triangles of height fields, one row a field; padded ones are not real.

    `corner` (h, P, 3, 2): row and column of the corners; `address` (h, P, 3) of their heights; `place` (h, P, 2): row
    and column by which a triangle is enumerated; `count` (h, 2): rows and columns of the field; `field` (h,): its id;
    `of_geom` (ngeom,): the row of each geom.
    """

    corner: np.ndarray
    address: np.ndarray
    place: np.ndarray
    real: np.ndarray
    count: np.ndarray
    field: np.ndarray
    of_geom: np.ndarray


class FieldContext(NamedTuple):
    """What the collider needs: that of convex geoms, the triangles, sizes and heights, and how many lanes to search."""

    convex: Context
    prisms: Prisms
    size: Array
    height: Array
    lanes: int


def setup(m: Any, g1: np.ndarray, g2: np.ndarray) -> FieldContext:
    """The context of pairs of height fields g1 and convex geoms g2 (n,)."""
    field = np.unique(m.geom_dataid[g1])
    rows = [_triangles(int(m.hfield_nrow[h]), int(m.hfield_ncol[h])) for h in field]
    size = max(len(place) for _, place in rows)
    corner, place = [np.stack([_pad(row[i], size) for row in rows]) for i in (0, 1)]
    real = np.stack([np.arange(size) < len(r[1]) for r in rows])
    count = np.stack([m.hfield_nrow[field], m.hfield_ncol[field]], axis=1)
    address = m.hfield_adr[field][:, None, None] + corner[..., 0] * count[:, None, None, 1] + corner[..., 1]
    of_geom = np.searchsorted(field, m.geom_dataid).clip(0, len(field) - 1)
    prisms = Prisms(corner, address, place, real, count, field, of_geom)
    return FieldContext(convex_context(m, g1, g2), prisms, m.hfield_size, m.hfield_data, max(LANES, 2 * m.max_contacts))


def _triangles(nrow: int, ncol: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners (P, 3, 2) of the triangles of a grid, in strips along its rows, and the row and column of each (P, 2)."""
    r, c, i = [x.reshape(-1) for x in np.meshgrid(np.arange(nrow - 1), np.arange(1, ncol), np.arange(2), indexing="ij")]
    ends = [(r + 1, c - 1), (r, c - 1), (r + 1, c), (r, c)]
    strip = np.stack([np.stack(end, axis=-1) for end in ends], axis=1)
    corner = np.where(i[:, None, None] == 0, strip[:, :3], strip[:, 1:])
    return corner.astype(np.int32), np.stack([r, c], axis=-1).astype(np.int32)


def _pad(x: np.ndarray, size: int) -> np.ndarray:
    return np.pad(x, [(0, size - len(x))] + [(0, 0)] * (x.ndim - 1))


def hfield_convex(c: FieldContext, a: Geoms, b: Geoms, margin: Array) -> Hits:
    """A height field and a convex geom: one contact for each triangle that the geom penetrates, at most 50."""
    n = a.pos.shape[0]
    sizes, height = c.size[c.prisms.field], c.height
    row = jnp.asarray(c.prisms.of_geom)[a.id]
    pos = matvec_t(a.mat, b.pos - a.pos)
    mat = jnp.sum(a.mat[:, :, :, None] * b.mat[:, :, None, :], axis=1)
    kind = jnp.asarray(c.convex.of_geom)[b.id]
    shape = Shape(
        kind, pos, mat, b.size, c.convex.hulls.vertices(b.id), c.convex.hulls.row(b.id), jnp.zeros_like(margin)
    )

    under = _under(c, *jax.lax.stop_gradient((shape, row, sizes, height, margin)))
    flat, total = under.reshape(-1), jnp.cumsum(under.reshape(-1), dtype=jnp.int32)
    lane = jnp.searchsorted(total, jnp.arange(1, c.lanes + 1, dtype=jnp.int32), method="scan_unrolled")
    active = jnp.arange(c.lanes) < total[-1]
    lane = jnp.where(active, lane, 0)
    pair, triangle = lane // under.shape[1], lane % under.shape[1]

    grow = margin[pair]
    prism = _prism(c, sizes, height, row[pair], triangle, grow)
    zero = jnp.zeros_like(prism[:, 0])
    eye = jnp.broadcast_to(jnp.eye(3, dtype=zero.dtype), (c.lanes, 3, 3))
    field = Shape(jnp.full(c.lanes, int(GeomType.HFIELD)), zero, eye, zero, prism, pair * 0, grow * 0)
    geom = jax.tree.map(lambda x: x[pair], shape)._replace(margin=jnp.maximum(grow, 0))
    find = jax.vmap(partial(deepest, c.convex), in_axes=(0, 0, None, 0, 0, 0))
    found = find(field, geom, jnp.zeros((), zero.dtype), field, geom, active)

    known = found.hit & jnp.isfinite(found.dist)
    world = jnp.asarray(a.mat)[pair]
    middle = a.pos[pair] + matvec(world, jnp.where(known[:, None], 0.5 * (found.x1 + found.x2), 0))
    hits = single(jnp.where(known, found.dist, 0), middle, matvec(world, found.normal), known)
    hit = hits.valid[:, 0] & active
    rank = jnp.cumsum(hit, dtype=jnp.int32) - 1
    before = jnp.sum((pair[None] < jnp.arange(n)[:, None]) & hit, axis=1)
    slot = jnp.where(hit & (rank - before[pair] < MAXCONPAIR), pair * MAXCONPAIR + rank - before[pair], n * MAXCONPAIR)
    source = jnp.full(n * MAXCONPAIR, -1, jnp.int32)
    source = source.at[slot].set(jnp.arange(c.lanes, dtype=jnp.int32), mode="drop").reshape(n, MAXCONPAIR)
    at = jnp.maximum(source, 0)
    lost = jnp.maximum(total[-1] - c.lanes, 0) + 0 * flat[0]
    return Hits(hits.dist[at, 0], hits.pos[at, 0], hits.normal[at, 0], source >= 0, lost=lost)


def _under(c: FieldContext, shape: Shape, row: Array, sizes: Array, height: Array, margin: Array) -> Array:
    """Which triangles (n, P) lie under the bounds of the geoms and reach up to them."""
    sides = np.concatenate([np.eye(3), -np.eye(3)]).astype(shape.pos.dtype)
    ends = jax.vmap(lambda s: jax.vmap(lambda d: support(c.convex.kinds, s)(d)[0])(sides))(shape)
    high = jnp.stack([ends[:, 0, 0], ends[:, 1, 1]], axis=-1)
    low, bottom = jnp.stack([ends[:, 3, 0], ends[:, 4, 1]], axis=-1), ends[:, 5, 2]
    half = sizes[row][:, :2]
    cells = jnp.asarray(c.prisms.count)[row][:, ::-1] - 1
    scale = cells / (2 * half)
    first = jnp.maximum(jnp.floor((low + half) * scale), 0)
    last = jnp.minimum(jnp.ceil((high + half) * scale), cells)
    place = jnp.asarray(c.prisms.place)[row]
    col, line = place[..., 1], place[..., 0]
    inside = (col > first[:, :1]) & (col <= last[:, :1]) & (line >= first[:, 1:]) & (line < last[:, 1:])
    top = height[jnp.asarray(c.prisms.address)[row]] * sizes[row][:, None, None, 2] + margin[:, None, None]
    return inside & jnp.asarray(c.prisms.real)[row] & ~jnp.all(top < bottom[:, None, None], axis=-1)


def _prism(c: FieldContext, sizes: Array, height: Array, row: Array, triangle: Array, margin: Array) -> Array:
    """Vertices (L, 6, 3) of prisms in the field's frame: the triangle, then its foot."""
    corner = jnp.asarray(c.prisms.corner)[row, triangle]
    size = sizes[row]
    step = 2 * size[:, :2] / (jnp.asarray(c.prisms.count)[row][:, ::-1] - 1)
    xy = corner[..., ::-1] * step[:, None] - size[:, None, :2]
    top = height[jnp.asarray(c.prisms.address)[row, triangle]] * size[:, 2:3] + margin[:, None]
    foot = jnp.broadcast_to(-size[:, 3:4], top.shape)
    return jnp.concatenate([jnp.concatenate([xy, z[..., None]], axis=-1) for z in (top, foot)], axis=1)
