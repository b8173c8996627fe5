"""Collider of height fields and convex geoms: each triangle of the field under the geom is a prism for GJK and EPA."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import MAXCONPAIR, GeomType
from jaxsim.engine.collision.convex.convex import (
    ConvexContext,
    SearchSettings,
    SearchTables,
    convex_context,
    deepest_point,
    search,
    shapes_of,
    solved,
)
from jaxsim.engine.collision.convex.support import ConvexShape, farthest_point
from jaxsim.engine.collision.shapes import Geoms, PairContacts
from jaxsim.math.arrays import gather, matmul_t, matvec, matvec_t, row_at, with_row
from jaxsim.math.component import split, vector
from jaxsim.math.jvp import with_derivatives_of
from jaxsim.math.safe import Array
from jaxsim.native.pool import for_each
from jaxsim.xla.compaction import compact
from jaxsim.xla.loops import repeat, traced_once


class FieldTable(NamedTuple):
    """Height fields, one row each: address of the first height, rows, columns (h, 3); the row of each geom (ngeom,)."""

    grid: np.ndarray
    field: np.ndarray
    of_geom: np.ndarray


class HfieldContext(NamedTuple):
    """Context of the collider: the convex context, the fields, their sizes (h, 4) and all heights."""

    convex: ConvexContext
    fields: FieldTable
    size: Array
    height: Array
    max_contacts: int


class Field(NamedTuple):
    """The height field of a pair: address, rows and columns (3,), size (4,), and the margin of the pair."""

    grid: Array
    size: Array
    margin: Array


class FieldContacts(NamedTuple):
    """Contacts of a pair in `MAXCONPAIR` slots: their number, triangles, distances, midpoints and normals.

    Points are in the field's frame. `record` is what the search of each slot left.
    """

    count: Array
    triangle: Array
    dist: Array
    pos: Array
    normal: Array
    record: Any


def hfield_setup(m: Any, g1: np.ndarray, g2: np.ndarray) -> HfieldContext:
    """Build the context of pairs of height fields g1 and convex geoms g2 (n,)."""
    field = np.unique(m.geom_dataid[g1])
    grid = np.stack([m.hfield_adr[field], m.hfield_nrow[field], m.hfield_ncol[field]], axis=1).astype(np.int32)
    of_geom = np.searchsorted(field, m.geom_dataid).clip(0, len(field) - 1).astype(np.int32)
    convex = convex_context(m, g1, g2)
    return HfieldContext(convex, FieldTable(grid, field, of_geom), m.hfield_size, m.hfield_data, m.max_contacts)


def hfield_convex(c: HfieldContext, a: Geoms, b: Geoms, margin: Array, count: Array) -> PairContacts:
    """Find contacts of a height field and a convex geom, one for each triangle that it penetrates, at most 50."""
    inside = b._replace(pos=matvec_t(a.mat, b.pos - a.pos), mat=matmul_t(a.mat, b.mat))
    return hfield_shapes(c, a, shapes_of(c.convex, inside, margin), margin, count)


def hfield_shapes(c: HfieldContext, a: Geoms, shape: ConvexShape, margin: Array, count: Array) -> PairContacts:
    """Find contacts of height fields with convex shapes in their frames."""
    row = gather(jnp.asarray(c.fields.of_geom), a.id)
    number = gather(jnp.asarray(c.fields.field), row)
    field = Field(gather(jnp.asarray(c.fields.grid), row), gather(c.size, number), margin)
    capacity = min(len(row) * MAXCONPAIR, 2 * c.max_contacts)
    tables = FieldTables(c.convex.tables, c.height)
    number, dist, pos, normal = _field_contacts((c.convex.settings, capacity), tables, field, shape, count)
    rotation = a.mat[:, None]
    valid = np.arange(MAXCONPAIR) < number[:, None]
    return PairContacts(dist, a.pos[:, None] + matvec(rotation, pos), matvec(rotation, normal), valid)


class FieldTables(NamedTuple):
    """Data shared by all pairs: tables of the convex search, and the heights of all fields."""

    search: SearchTables
    height: Array


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _field_contacts(
    static: tuple[SearchSettings, int], tables: FieldTables, field: Field, shape: ConvexShape, count: Array
) -> tuple[Array, Array, Array, Array]:
    """Number, distances, positions and normals of the contacts of the first `count` of n pairs."""

    def of_pair(tables: FieldTables, pair: tuple[Field, ConvexShape], active: Array) -> tuple:
        found = _contacts_of_pair(static[0], tables, *pair, active)
        return found.count, found.dist, found.pos, found.normal

    return for_each(of_pair, tables, (field, shape), count)


@_field_contacts.defjvp
def _field_contacts_jvp(static: tuple[SearchSettings, int], primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    settings, capacity = static
    tables, field, shape, count = primals

    def of_pair(tables: FieldTables, pair: tuple[Field, ConvexShape], active: Array) -> FieldContacts:
        return _contacts_of_pair(settings, tables, *pair, active)

    found = for_each(of_pair, tables, (field, shape), count)
    valid = np.arange(MAXCONPAIR) < found.count[:, None]
    slot, real, _ = compact(valid.reshape(-1), capacity)
    pair = slot // MAXCONPAIR
    triangle, record = jax.tree.map(lambda x: gather(x.reshape(-1, *x.shape[2:]), slot), (found.triangle, found.record))

    def solve(tables: FieldTables, contact: tuple, _: Array) -> Any:
        field, shape, triangle, record = contact
        return solved(settings, tables.search, _prism(tables.height, field, triangle), shape, record)

    sides = jax.tree.map(lambda x: gather(x, pair), (field, shape))
    record = for_each(solve, tables, (*sides, triangle, record), jnp.sum(real, dtype=jnp.int32))

    def differentiable(tables: FieldTables, field: Field, shape: ConvexShape) -> tuple[Array, Array, Array]:
        def again(field: Field, shape: ConvexShape, triangle: Array, record: Any) -> tuple[Array, Array, Array]:
            sides = _prism(tables.height, field, triangle), shape
            point = deepest_point(settings, tables.search, record, *sides, *sides)
            return point.dist, 0.5 * (point.x1 + point.x2), point.normal

        fields, shapes = jax.tree.map(lambda x: gather(x, pair), (field, shape))
        contacts = jax.vmap(again)(fields, shapes, triangle, record)
        place = jnp.where(real, slot, valid.size)

        def spread(x: Array) -> Array:
            out = jnp.zeros((valid.size, *x.shape[1:]), x.dtype).at[place].set(x, mode="drop")
            return out.reshape(*valid.shape, *x.shape[1:])

        return tuple(spread(x) for x in contacts)

    again, tangent = jax.jvp(differentiable, primals[:3], tangents[:3])
    out = with_derivatives_of(again, (found.dist, found.pos, found.normal))
    return (found.count, *out), (np.zeros(found.count.shape, jax.dtypes.float0), *tangent)


def _contacts_of_pair(
    settings: SearchSettings, tables: FieldTables, field: Field, shape: ConvexShape, active: Array
) -> FieldContacts:
    """Contacts of one geom with the triangles under its bounds, row by row."""
    _, nrow, ncol = split(field.grid)
    reach = _bounds(settings, tables.search, shape)
    size_x, size_y = field.size[0], field.size[1]
    columns = _cells(reach[0], reach[3], size_x, ncol)
    lines = _cells(reach[1], reach[4], size_y, nrow)
    bottom = reach[5]
    width = jnp.maximum(columns[1] - columns[0], 0)
    total = jnp.where(active, 2 * width * jnp.maximum(lines[1] - lines[0], 0), 0)
    one = jnp.int32(0)
    prism = _prism(tables.height, field, one)
    find, empty = traced_once(partial(search, settings, tables.search), prism, shape, active)
    slots = jax.tree.map(
        lambda x: jnp.zeros((MAXCONPAIR, *x.shape), x.dtype), (one, bottom, shape.pos, shape.pos, empty)
    )

    def visit(i: Array, state: tuple) -> tuple:
        count, slots = state
        cell, half = lax.div(i, np.int32(2)), lax.rem(i, np.int32(2))
        line, column = lines[0] + lax.div(cell, width), columns[0] + lax.rem(cell, width)
        triangle = 2 * (line * (ncol - 1) + column) + half
        prism = _prism(tables.height, field, triangle)
        high = jnp.maximum(jnp.maximum(prism.vert[0, 2], prism.vert[1, 2]), prism.vert[2, 2])

        def collide(count: Array, slots: tuple) -> tuple:
            record = find(prism, shape, high >= bottom)
            point = deepest_point(settings, tables.search, record, prism, shape, prism, shape)
            hit = point.hit & jnp.isfinite(point.dist)
            found = triangle, jnp.where(hit, point.dist, 0), 0.5 * (point.x1 + point.x2), point.normal, record
            at = jnp.minimum(count, MAXCONPAIR - 1)
            kept = jax.tree.map(lambda x, y: with_row(x, at, jnp.where(hit, y, row_at(x, at))), slots, found)
            return count + hit, kept

        return lax.cond((high >= bottom) & (count < MAXCONPAIR), collide, lambda *x: x, count, slots)

    count, slots = repeat(total, visit, (jnp.int32(0), slots))
    return FieldContacts(count, *slots)


def _bounds(settings: SearchSettings, tables: SearchTables, shape: ConvexShape) -> Array:
    """The greatest x, y and z of a geom without its margin, and the least ones (6,)."""
    vert = jnp.zeros((6, 3), shape.pos.dtype) if shape.vert is None else shape.vert
    shape = shape._replace(margin=jnp.zeros_like(shape.margin), vert=vert)

    def along(k: Array, out: Array) -> Array:
        axis = lax.rem(k, np.int32(3))
        sign = jnp.where(k < 3, 1, -1).astype(shape.pos.dtype)
        point, _ = farthest_point(
            settings.types, tables.hulls, shape, vector(jnp.where(axis == i, sign, 0) for i in range(3))
        )
        return with_row(out, k, jnp.where(axis == 0, point[0], jnp.where(axis == 1, point[1], point[2])))

    return repeat(6, along, jnp.zeros(6, shape.pos.dtype))


def _cells(high: Array, low: Array, half: Array, count: Array) -> tuple[Array, Array]:
    """The first and one past the last cell of a grid of `count` points, over a width of 2 `half`, between bounds."""
    scale = (count - 1) / (2 * half)
    first = jnp.maximum(jnp.floor((low + half) * scale), 0).astype(jnp.int32)
    return first, jnp.minimum(jnp.ceil((high + half) * scale), count - 1).astype(jnp.int32)


def _prism(height: Array, field: Field, triangle: Array) -> ConvexShape:
    """The prism of a triangle in the field's frame: the triangle, raised by the margin, and its projection on the base.

    Triangles are numbered cell by cell along rows, two in each: one with two corners at the next row, one with one.
    """
    address, nrow, ncol = split(field.grid)
    cell, half = lax.div(triangle, np.int32(2)), lax.rem(triangle, np.int32(2))
    line, column = lax.div(cell, ncol - 1), lax.rem(cell, ncol - 1)
    # corners of the cell in a zigzag, of which a triangle has three in a row
    lines = [line + 1 - lax.rem(half + i, np.int32(2)) for i in range(3)]
    columns = [column + lax.div(half + i, np.int32(2)) for i in range(3)]
    step = 2 * field.size[0] / (ncol - 1), 2 * field.size[1] / (nrow - 1)
    top, foot = [], []
    for i, j in zip(lines, columns, strict=True):
        x, y = step[0] * j - field.size[0], step[1] * i - field.size[1]
        z = row_at(height, address + i * ncol + j) * field.size[2] + field.margin
        top.append(jnp.stack([x, y, z]))
        foot.append(jnp.stack([x, y, -field.size[3]]))
    zero = jnp.zeros(3, field.size.dtype)
    none = jnp.int32(0)
    return ConvexShape(
        jnp.int32(GeomType.HFIELD),
        *(zero, jnp.eye(3, dtype=zero.dtype), zero, zero[0], none, none, jnp.zeros(2, jnp.int32)),
        jnp.stack(top + foot),
    )
