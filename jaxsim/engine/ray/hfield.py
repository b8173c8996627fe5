"""Rays against height fields: the box below, the triangles between the points of the grid, the walls at its edge.

A ray is followed along the grid's axis that it runs along most: at each column of cells it can only be in a few of
them. As for meshes, the search says which plane a ray meets first and the caller measures the distance again.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL
from jaxsim.engine.ray.mesh import Found, meet
from jaxsim.engine.ray.primitive import along
from jaxsim.math import component as c
from jaxsim.math.arrays import gather
from jaxsim.math.component import Vector
from jaxsim.math.safe import Array

NEAR = np.array(
    [-1, 0, 1, 2], np.int32
)  # cells beside the one in which a ray enters a column, of those it can meet there
FACES = 6  # parts: -1 to -6 are the sides -x, +x, -y, +y, -z, +z; from 0 on, two triangles a cell


class Grid(NamedTuple):
    """One height field: rows, columns, first number of its data, half sizes, height, depth of the base."""

    nrow: int
    ncol: int
    address: int
    half: tuple[Array, Array]
    height: Array
    base: Array


def grid(m: Any, geom: int) -> Grid:
    """The height field of a geom."""
    i = int(m.geom_dataid[geom])
    size = m.hfield_size[i]
    return Grid(
        int(m.hfield_nrow[i]), int(m.hfield_ncol[i]), int(m.hfield_adr[i]), (size[0], size[1]), size[2], size[3]
    )


def _corner(m: Any, g: Grid, row: Array, col: Array) -> Vector:
    """The grid's points at rows and columns within it."""
    z = gather(m.hfield_data, g.address + row * g.ncol + col) * g.height
    x = 2 * g.half[0] / (g.ncol - 1) * col - g.half[0]
    y = 2 * g.half[1] / (g.nrow - 1) * row - g.half[1]
    return x, y, z


def triangle(m: Any, g: Grid, part: Array) -> tuple[Vector, Vector, Vector]:
    """Corners of the triangles `part` (any shape), counter-clockwise seen from above."""
    cell, upper = part // 2, part % 2
    row, col = cell // (g.ncol - 1), cell % (g.ncol - 1)
    first = _corner(m, g, row, col)
    last = _corner(m, g, row + 1, col + 1)
    other = _corner(m, g, row + upper, col + 1 - upper)
    second = tuple(jnp.where(upper == 1, a, b) for a, b in zip(last, other, strict=True))
    third = tuple(jnp.where(upper == 1, a, b) for a, b in zip(other, last, strict=True))
    return first, second, third


def plane_of(m: Any, g: Grid, part: Array) -> tuple[Array, Array]:
    """A point and a normal, of any length, of the planes of parts (n,), in the geom's frame."""
    v0, v1, v2 = triangle(m, g, jnp.maximum(part, 0))
    normal = c.join(c.cross(c.sub(v1, v0), c.sub(v2, v0)))
    axes = np.repeat(np.eye(3), 2, axis=0) * np.tile([-1.0, 1.0], 3)[:, None]
    reach = jnp.stack([g.half[0], g.half[0], g.half[1], g.half[1], g.base, g.height * 0])
    side = jnp.clip(-part - 1, 0, FACES - 1)
    face = jnp.asarray(axes, normal.dtype)[side]
    flat = (part < 0)[:, None]
    return jnp.where(flat, face * reach[side][:, None], c.join(v0)), jnp.where(flat, face, normal)


def search(m: Any, geom: int, p: Vector, v: Vector, front: bool) -> Found:
    """What rays (n,), in the geom's frame, meet first of one height field."""
    g = grid(m, geom)
    found = _sides(m, g, p, v, front)
    columns = [_columns(m, g, p, v, axis, found, front) for axis in (0, 1)]
    dx, dy = 2 * g.half[0] / (g.ncol - 1), 2 * g.half[1] / (g.nrow - 1)
    steep = jnp.abs(v[1]) * dx > jnp.abs(v[0]) * dy
    return jax.tree.map(lambda a, b: jnp.where(steep, b, a), *columns)


def _sides(m: Any, g: Grid, p: Vector, v: Vector, front: bool) -> Found:
    """The box below the grid, and the walls between it and the edges of the grid."""
    best, part = jnp.full_like(p[0], jnp.inf), jnp.full(p[0].shape, -1, jnp.int32)

    def take(t: Array, ok: Array, face: int, best: Array, part: Array) -> tuple[Array, Array]:
        outward = (2 * (face % 2) - 1) * v[face // 2]
        better = ok & (t >= 0) & (t < best) & ((outward < 0) | (not front))
        return jnp.where(better, t, best), jnp.where(better, jnp.int32(-face - 1), part)

    for axis, count in ((0, g.nrow), (1, g.ncol)):
        slope = jnp.where(jnp.abs(v[axis]) > MINVAL, v[axis], 1)
        for side in (0, 1):
            t = ((2 * side - 1) * g.half[axis] - p[axis]) / slope
            q = along(p, v, t)
            across, wide = q[1 - axis], g.half[1 - axis]
            place = (across + wide) / (2 * wide) * (count - 1)
            low = jnp.clip(jnp.floor(place), 0, count - 2).astype(jnp.int32)
            edge = low * 0 + side * ((g.ncol if axis == 0 else g.nrow) - 1)
            ends = [_corner(m, g, *((k, edge) if axis == 0 else (edge, k)))[2] for k in (low, low + 1)]
            top = ends[0] * (low + 1 - place) + ends[1] * (place - low)
            within = (jnp.abs(across) <= wide) & (q[2] >= -g.base)
            below = (q[2] <= 0) | ((q[2] < top) & (q[2] <= g.height))
            best, part = take(t, (jnp.abs(v[axis]) > MINVAL) & within & below, 2 * axis + side, best, part)
    slope = jnp.where(jnp.abs(v[2]) > MINVAL, v[2], 1)
    for face, level in ((4, -g.base), (5, 0)):
        t = (level - p[2]) / slope
        x, y, _ = along(p, v, t)
        ok = (jnp.abs(v[2]) > MINVAL) & (jnp.abs(x) <= g.half[0]) & (jnp.abs(y) <= g.half[1])
        best, part = take(t, ok, face, best, part)
    return Found(best, jnp.zeros(p[0].shape, jnp.int32), part)


def _columns(m: Any, g: Grid, p: Vector, v: Vector, axis: int, found: Found, front: bool) -> Found:
    """Triangles on rays that run along `axis` (0: x) at least as much as across it, in cells."""
    count = (g.ncol - 1, g.nrow - 1)
    step = [2 * g.half[i] / count[i] for i in (0, 1)]
    slope = jnp.where(jnp.abs(v[axis]) > MINVAL, v[axis], jnp.where(v[axis] < 0, -MINVAL, MINVAL))
    upright = jnp.abs(v[axis]) <= MINVAL

    def visit(k: Array, found: Found) -> Found:
        # where the ray is between the two sides of column k
        t = [((k + e) * step[axis] - g.half[axis] - p[axis]) / slope for e in (0, 1)]
        across = [jnp.where(upright, p[1 - axis], p[1 - axis] + s * v[1 - axis]) for s in t]
        first = jnp.floor((jnp.minimum(*across) + g.half[1 - axis]) / step[1 - axis])
        first = jnp.clip(first, -2, count[1 - axis] + 1).astype(jnp.int32)
        cell = first[:, None] + NEAR
        real = (cell >= 0) & (cell < count[1 - axis])
        cell = jnp.clip(cell, 0, count[1 - axis] - 1)
        row, col = (cell, k) if axis == 0 else (k, cell)
        part = (2 * (row * (g.ncol - 1) + col))[:, :, None] + np.arange(2, dtype=np.int32)
        t = meet(*triangle(m, g, part), *(tuple(x[:, None, None] for x in a) for a in (p, v)), front)
        t, part = (x.reshape(len(x), -1) for x in (jnp.where(real[:, :, None], t, jnp.inf), part))
        best = jnp.argmin(t, axis=1)[:, None]
        t, part = (jnp.take_along_axis(x, best, axis=1)[:, 0] for x in (t, part))
        better = t < found.dist
        return Found(jnp.where(better, t, found.dist), found.place, jnp.where(better, part, found.part))

    return jax.lax.fori_loop(0, count[axis], visit, found)
