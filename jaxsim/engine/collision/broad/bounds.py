"""Bound tests of pairs of geoms by spheres and boxes; geom indices may be static or traced."""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.math.arrays import gather, inner, matmul_t, matvec, matvec_t, take
from jaxsim.math.safe import Array


def rows_at(x: Array, index: Array) -> Array:
    """Return `x[index]` along the first axis, for a static or a traced index."""
    return take(x, index) if isinstance(index, np.ndarray) else gather(x, index)


def spheres_touch(gap: Array, reach: Array) -> Array:
    """Return whether centres at the difference `gap` (n, 3) are within the distance `reach` (n,)."""
    return inner(gap, gap) <= reach * reach


def spheres_of_pairs(pos: Array, rbound: Array, geom: Array, margin: Array) -> Array:
    """Return whether the bounding spheres of pairs (n, 2) touch within margins (n,); planes, without one, always do."""
    g1, g2 = geom[:, 0], geom[:, 1]
    first = gather(rbound, g1)
    near = spheres_touch(gather(pos, g2) - gather(pos, g1), first + gather(rbound, g2) + margin)
    return near | (first <= 0)


class Box(NamedTuple):
    """One oriented box of each of n pairs: centre (n, 3), rotation (n, 3, 3), half sizes (n, 3)."""

    centre: Array
    mat: Array
    half: Array


def boxes_touch(m: Any, pos: Array, mat: Array, margin: Array, g1: Array, g2: Array) -> Array:
    """Return whether the oriented boxes of geoms g1, g2 (n,) overlap (`boxes_overlap`)."""

    def box(g: Array) -> Box:
        aabb, own = rows_at(m.geom_aabb, g), rows_at(mat, g)
        return Box(rows_at(pos, g) + matvec(own, aabb[:, :3]), own, aabb[:, 3:])

    return boxes_overlap(box(g1), box(g2), margin)


def boxes_overlap(a: Box, b: Box, margin: Array) -> Array:
    """Return whether boxes overlap within a margin (n,) along the axes of either: 6 of the 15 separating axes."""
    gap = b.centre - a.centre
    cosines = abs(matmul_t(a.mat, b.mat))
    separated1 = abs(matvec_t(a.mat, gap)) - margin[:, None] > a.half + matvec(cosines, b.half)
    separated2 = abs(matvec_t(b.mat, gap)) - margin[:, None] > b.half + matvec_t(cosines, a.half)
    return ~(separated1 | separated2).any(axis=1)
