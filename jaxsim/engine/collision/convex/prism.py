"""Collider of height fields and convex geoms: each triangle of the field under the geom is a prism for GJK and EPA."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MAXCONPAIR, GeomType
from jaxsim.engine.collision.convex.convex import ConvexContext, convex_context, deepest_contact
from jaxsim.engine.collision.convex.support import ConvexShape, support
from jaxsim.engine.collision.shapes import Geoms, PairContacts, single_contact
from jaxsim.math.arrays import matvec, matvec_t
from jaxsim.math.safe import Array

MIN_SEARCH_CAPACITY = 32  # prisms of a group of pairs that can be searched, at least


class TriangleTable(NamedTuple):
    """The triangles of height fields, one row per field, padded.

    `corner` (h, P, 3, 2): grid row and column of the corners; `address` (h, P, 3) of their heights; `cell` (h, P, 2):
    row and column by which a triangle is enumerated; `real` (h, P): not padding; `grid_shape` (h, 2): rows and columns
    of the field; `field` (h,): its id; `of_geom` (ngeom,): the row of each geom.
    """

    corner: np.ndarray
    address: np.ndarray
    cell: np.ndarray
    real: np.ndarray
    grid_shape: np.ndarray
    field: np.ndarray
    of_geom: np.ndarray


class HfieldContext(NamedTuple):
    """What the collider needs: the convex context, triangles, sizes and heights, and the capacity for prisms."""

    convex: ConvexContext
    triangles: TriangleTable
    size: Array
    height: Array
    capacity: int


def hfield_setup(m: Any, g1: np.ndarray, g2: np.ndarray) -> HfieldContext:
    """The context of pairs of height fields g1 and convex geoms g2 (n,)."""
    field = np.unique(m.geom_dataid[g1])
    rows = [_triangles(int(m.hfield_nrow[h]), int(m.hfield_ncol[h])) for h in field]
    size = max(len(cell) for _, cell in rows)
    corner, cell = [np.stack([_pad(row[i], size) for row in rows]) for i in (0, 1)]
    real = np.stack([np.arange(size) < len(r[1]) for r in rows])
    grid_shape = np.stack([m.hfield_nrow[field], m.hfield_ncol[field]], axis=1)
    address = m.hfield_adr[field][:, None, None] + corner[..., 0] * grid_shape[:, None, None, 1] + corner[..., 1]
    of_geom = np.searchsorted(field, m.geom_dataid).clip(0, len(field) - 1)
    triangles = TriangleTable(corner, address, cell, real, grid_shape, field, of_geom)
    return HfieldContext(
        convex_context(m, g1, g2), triangles, m.hfield_size, m.hfield_data, max(MIN_SEARCH_CAPACITY, 2 * m.max_contacts)
    )


def _triangles(nrow: int, ncol: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners (P, 3, 2) of the triangles of a grid, in strips along its rows, and row and column of each (P, 2)."""
    r, c, i = [x.reshape(-1) for x in np.meshgrid(np.arange(nrow - 1), np.arange(1, ncol), np.arange(2), indexing="ij")]
    ends = [(r + 1, c - 1), (r, c - 1), (r + 1, c), (r, c)]
    strip = np.stack([np.stack(end, axis=-1) for end in ends], axis=1)
    corner = np.where(i[:, None, None] == 0, strip[:, :3], strip[:, 1:])
    return corner.astype(np.int32), np.stack([r, c], axis=-1).astype(np.int32)


def _pad(x: np.ndarray, size: int) -> np.ndarray:
    """The array padded with zeros to this length."""
    return np.pad(x, [(0, size - len(x))] + [(0, 0)] * (x.ndim - 1))


def hfield_convex(c: HfieldContext, a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Contacts of a height field and a convex geom: one for each triangle that the geom penetrates, at most 50."""
    n = a.pos.shape[0]
    sizes, height = c.size[c.triangles.field], c.height
    row = jnp.asarray(c.triangles.of_geom)[a.id]
    pos = matvec_t(a.mat, b.pos - a.pos)
    mat = jnp.sum(a.mat[:, :, :, None] * b.mat[:, :, None, :], axis=1)
    geom_type = jnp.asarray(c.convex.type_of_geom)[b.id]
    shape = ConvexShape(
        geom_type, pos, mat, b.size, c.convex.hulls.vertices(b.id), c.convex.hulls.row(b.id), jnp.zeros_like(margin)
    )

    is_under = _triangles_under(c, *jax.lax.stop_gradient((shape, row, sizes, height, margin)))
    is_under_flat, total = is_under.reshape(-1), jnp.cumsum(is_under.reshape(-1), dtype=jnp.int32)
    index = jnp.searchsorted(total, jnp.arange(1, c.capacity + 1, dtype=jnp.int32), method="scan_unrolled")
    active = jnp.arange(c.capacity) < total[-1]
    index = jnp.where(active, index, 0)
    pair, triangle = index // is_under.shape[1], index % is_under.shape[1]

    pair_margin = margin[pair]
    prism = _prism_vertices(c, sizes, height, row[pair], triangle, pair_margin)
    zero = jnp.zeros_like(prism[:, 0])
    eye = jnp.broadcast_to(jnp.eye(3, dtype=zero.dtype), (c.capacity, 3, 3))
    prism_shape = ConvexShape(
        jnp.full(c.capacity, int(GeomType.HFIELD)), zero, eye, zero, prism, pair * 0, pair_margin * 0
    )
    geom = jax.tree.map(lambda x: x[pair], shape)._replace(margin=jnp.maximum(pair_margin, 0))
    find = jax.vmap(partial(deepest_contact, c.convex), in_axes=(0, 0, None, 0, 0, 0))
    found = find(prism_shape, geom, jnp.zeros((), zero.dtype), prism_shape, geom, active)

    penetrating = found.hit & jnp.isfinite(found.dist)
    rotation = jnp.asarray(a.mat)[pair]
    midpoint = a.pos[pair] + matvec(rotation, jnp.where(penetrating[:, None], 0.5 * (found.x1 + found.x2), 0))
    contacts = single_contact(
        jnp.where(penetrating, found.dist, 0), midpoint, matvec(rotation, found.normal), penetrating
    )
    hit = contacts.valid[:, 0] & active
    rank = jnp.cumsum(hit, dtype=jnp.int32) - 1
    earlier = jnp.sum((pair[None] < jnp.arange(n)[:, None]) & hit, axis=1)
    slot = jnp.where(
        hit & (rank - earlier[pair] < MAXCONPAIR), pair * MAXCONPAIR + rank - earlier[pair], n * MAXCONPAIR
    )
    index_of_slot = jnp.full(n * MAXCONPAIR, -1, jnp.int32)
    index_of_slot = index_of_slot.at[slot].set(jnp.arange(c.capacity, dtype=jnp.int32), mode="drop")
    index_of_slot = index_of_slot.reshape(n, MAXCONPAIR)
    search = jnp.maximum(index_of_slot, 0)
    dropped = jnp.maximum(total[-1] - c.capacity, 0) + 0 * is_under_flat[0]
    return PairContacts(
        contacts.dist[search, 0],
        contacts.pos[search, 0],
        contacts.normal[search, 0],
        index_of_slot >= 0,
        dropped=dropped,
    )


def _triangles_under(
    c: HfieldContext, shape: ConvexShape, row: Array, sizes: Array, height: Array, margin: Array
) -> Array:
    """Which triangles (n, P) are under the bounds of the geoms and reach up to them."""
    sides = np.concatenate([np.eye(3), -np.eye(3)]).astype(shape.pos.dtype)
    ends = jax.vmap(lambda s: jax.vmap(lambda d: support(c.convex.types, s)(d)[0])(sides))(shape)
    high = jnp.stack([ends[:, 0, 0], ends[:, 1, 1]], axis=-1)
    low, bottom = jnp.stack([ends[:, 3, 0], ends[:, 4, 1]], axis=-1), ends[:, 5, 2]
    half = sizes[row][:, :2]
    cells = jnp.asarray(c.triangles.grid_shape)[row][:, ::-1] - 1
    scale = cells / (2 * half)
    first = jnp.maximum(jnp.floor((low + half) * scale), 0)
    last = jnp.minimum(jnp.ceil((high + half) * scale), cells)
    cell = jnp.asarray(c.triangles.cell)[row]
    col, line = cell[..., 1], cell[..., 0]
    inside = (col > first[:, :1]) & (col <= last[:, :1]) & (line >= first[:, 1:]) & (line < last[:, 1:])
    top = height[jnp.asarray(c.triangles.address)[row]] * sizes[row][:, None, None, 2] + margin[:, None, None]
    return inside & jnp.asarray(c.triangles.real)[row] & ~jnp.all(top < bottom[:, None, None], axis=-1)


def _prism_vertices(c: HfieldContext, sizes: Array, height: Array, row: Array, triangle: Array, margin: Array) -> Array:
    """Vertices (L, 6, 3) of prisms in the field's frame: the triangle, then its projection on the base."""
    corner = jnp.asarray(c.triangles.corner)[row, triangle]
    size = sizes[row]
    step = 2 * size[:, :2] / (jnp.asarray(c.triangles.grid_shape)[row][:, ::-1] - 1)
    xy = corner[..., ::-1] * step[:, None] - size[:, None, :2]
    top = height[jnp.asarray(c.triangles.address)[row, triangle]] * size[:, 2:3] + margin[:, None]
    foot = jnp.broadcast_to(-size[:, 3:4], top.shape)
    return jnp.concatenate([jnp.concatenate([xy, z[..., None]], axis=-1) for z in (top, foot)], axis=1)
