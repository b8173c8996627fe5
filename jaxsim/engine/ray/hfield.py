"""Rays against height fields: the box below, the triangles between the points of the grid, the walls at its edge.

A ray is followed along the grid's axis along which it advances most: in each column of cells it can only be in a few.
The search finds the plane that a ray hits first; the caller computes the distance again, differentiably.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL
from jaxsim.engine.ray.mesh import FirstHit, ray_triangle
from jaxsim.engine.ray.primitive import ray_points
from jaxsim.math import component as c
from jaxsim.math.arrays import gather
from jaxsim.math.component import Vector
from jaxsim.math.safe import Array

CELL_OFFSETS = np.array([-1, 0, 1, 2], np.int32)  # of the cells that a ray can meet in a column, from the one it enters
NSIDES = 6  # parts -1 to -6 are the sides -x, +x, -y, +y, -z, +z; parts from 0 on are two triangles a cell


class HfieldGrid(NamedTuple):
    """One height field: rows, columns, address of its data, half sizes, height, depth of the base."""

    nrow: int
    ncol: int
    address: int
    half: tuple[Array, Array]
    height: Array
    base: Array


def hfield_grid(m: Any, geom: int) -> HfieldGrid:
    """Return the height field of a geom."""
    i = int(m.geom_dataid[geom])
    size = m.hfield_size[i]
    return HfieldGrid(
        int(m.hfield_nrow[i]), int(m.hfield_ncol[i]), int(m.hfield_adr[i]), (size[0], size[1]), size[2], size[3]
    )


def _corner(m: Any, grid: HfieldGrid, row: Array, col: Array) -> Vector:
    """Return the grid's points at rows and columns."""
    z = gather(m.hfield_data, grid.address + row * grid.ncol + col) * grid.height
    x = 2 * grid.half[0] / (grid.ncol - 1) * col - grid.half[0]
    y = 2 * grid.half[1] / (grid.nrow - 1) * row - grid.half[1]
    return x, y, z


def triangle(m: Any, grid: HfieldGrid, part: Array) -> tuple[Vector, Vector, Vector]:
    """Return the corners of the triangles `part` (any shape), counter-clockwise seen from above."""
    cell, upper = part // 2, part % 2
    row, col = cell // (grid.ncol - 1), cell % (grid.ncol - 1)
    first = _corner(m, grid, row, col)
    last = _corner(m, grid, row + 1, col + 1)
    other = _corner(m, grid, row + upper, col + 1 - upper)
    second = c.vector(jnp.where(upper == 1, a, b) for a, b in zip(last, other, strict=True))
    third = c.vector(jnp.where(upper == 1, a, b) for a, b in zip(other, last, strict=True))
    return first, second, third


def plane_of(m: Any, grid: HfieldGrid, part: Array) -> tuple[Array, Array]:
    """Return a point and a normal, of any length, of the planes of parts (n,), in the geom's frame."""
    v0, v1, v2 = triangle(m, grid, jnp.maximum(part, 0))
    normal = c.join(c.cross(c.sub(v1, v0), c.sub(v2, v0)))
    axes = np.repeat(np.eye(3), 2, axis=0) * np.tile([-1.0, 1.0], 3)[:, None]
    distance = jnp.stack([grid.half[0], grid.half[0], grid.half[1], grid.half[1], grid.base, grid.height * 0])
    side = jnp.clip(-part - 1, 0, NSIDES - 1)
    outward = jnp.asarray(axes, normal.dtype)[side]
    is_side = (part < 0)[:, None]
    return jnp.where(is_side, outward * distance[side][:, None], c.join(v0)), jnp.where(is_side, outward, normal)


def search(m: Any, geom: int, p: Vector, v: Vector, front_only: bool) -> FirstHit:
    """Find the first hit of rays (n,), in the geom's frame, on one height field."""
    grid = hfield_grid(m, geom)
    hit = _search_sides(m, grid, p, v, front_only)
    columns = [_search_columns(m, grid, p, v, axis, hit, front_only) for axis in (0, 1)]
    dx, dy = 2 * grid.half[0] / (grid.ncol - 1), 2 * grid.half[1] / (grid.nrow - 1)
    along_y = jnp.abs(v[1]) * dx > jnp.abs(v[0]) * dy
    return jax.tree.map(lambda a, b: jnp.where(along_y, b, a), *columns)


def _search_sides(m: Any, grid: HfieldGrid, p: Vector, v: Vector, front_only: bool) -> FirstHit:
    """Find the first hit on the box below the grid, and on the walls between it and the edges of the grid."""
    best, part = jnp.full_like(p[0], jnp.inf), jnp.full(p[0].shape, -1, jnp.int32)

    def nearer(t: Array, ok: Array, face: int, best: Array, part: Array) -> tuple[Array, Array]:
        outward = (2 * (face % 2) - 1) * v[face // 2]
        better = ok & (t >= 0) & (t < best) & ((outward < 0) | (not front_only))
        return jnp.where(better, t, best), jnp.where(better, jnp.int32(-face - 1), part)

    for axis, count in ((0, grid.nrow), (1, grid.ncol)):
        divisor = jnp.where(jnp.abs(v[axis]) > MINVAL, v[axis], 1)
        for side in (0, 1):
            t = ((2 * side - 1) * grid.half[axis] - p[axis]) / divisor
            q = ray_points(p, v, t)
            across, half_width = q[1 - axis], grid.half[1 - axis]
            position = (across + half_width) / (2 * half_width) * (count - 1)
            index = jnp.clip(jnp.floor(position), 0, count - 2).astype(jnp.int32)
            edge = index * 0 + side * ((grid.ncol if axis == 0 else grid.nrow) - 1)
            ends = [_corner(m, grid, *((k, edge) if axis == 0 else (edge, k)))[2] for k in (index, index + 1)]
            top = ends[0] * (index + 1 - position) + ends[1] * (position - index)
            within = (jnp.abs(across) <= half_width) & (q[2] >= -grid.base)
            below = (q[2] <= 0) | ((q[2] < top) & (q[2] <= grid.height))
            best, part = nearer(t, (jnp.abs(v[axis]) > MINVAL) & within & below, 2 * axis + side, best, part)
    divisor = jnp.where(jnp.abs(v[2]) > MINVAL, v[2], 1)
    for face, level in ((4, -grid.base), (5, 0)):
        t = (level - p[2]) / divisor
        x, y, _ = ray_points(p, v, t)
        ok = (jnp.abs(v[2]) > MINVAL) & (jnp.abs(x) <= grid.half[0]) & (jnp.abs(y) <= grid.half[1])
        best, part = nearer(t, ok, face, best, part)
    return FirstHit(best, jnp.zeros(p[0].shape, jnp.int32), part)


def _search_columns(
    m: Any, grid: HfieldGrid, p: Vector, v: Vector, axis: int, hit: FirstHit, front_only: bool
) -> FirstHit:
    """Find the first hit on triangles, for rays that advance along `axis` (0: x) at least as fast as across it.

    Speeds are in cells.
    """
    count = (grid.ncol - 1, grid.nrow - 1)
    step = [2 * grid.half[i] / count[i] for i in (0, 1)]
    divisor = jnp.where(jnp.abs(v[axis]) > MINVAL, v[axis], jnp.where(v[axis] < 0, -MINVAL, MINVAL))
    is_vertical = jnp.abs(v[axis]) <= MINVAL

    def visit_column(k: Array, hit: FirstHit) -> FirstHit:
        # where the ray is between the two sides of column k
        t = [((k + side) * step[axis] - grid.half[axis] - p[axis]) / divisor for side in (0, 1)]
        across = [jnp.where(is_vertical, p[1 - axis], p[1 - axis] + x * v[1 - axis]) for x in t]
        first = jnp.floor((jnp.minimum(*across) + grid.half[1 - axis]) / step[1 - axis])
        first = jnp.clip(first, -2, count[1 - axis] + 1).astype(jnp.int32)
        cell = first[:, None] + CELL_OFFSETS
        real = (cell >= 0) & (cell < count[1 - axis])
        cell = jnp.clip(cell, 0, count[1 - axis] - 1)
        row, col = (cell, k) if axis == 0 else (k, cell)
        part = (2 * (row * (grid.ncol - 1) + col))[:, :, None] + np.arange(2, dtype=np.int32)
        origin, direction = (c.vector(x[:, None, None] for x in a) for a in (p, v))
        t = ray_triangle(*triangle(m, grid, part), origin, direction, front_only)
        t, part = (x.reshape(len(x), -1) for x in (jnp.where(real[:, :, None], t, jnp.inf), part))
        best = jnp.argmin(t, axis=1)[:, None]
        t, part = (jnp.take_along_axis(x, best, axis=1)[:, 0] for x in (t, part))
        nearer = t < hit.dist
        return FirstHit(jnp.where(nearer, t, hit.dist), hit.index, jnp.where(nearer, part, hit.part))

    return jax.lax.fori_loop(0, count[axis], visit_column, hit)
