"""Bound tests of pairs of geoms, by spheres and by boxes; geom indices may be static or known at run time only."""

from typing import Any

import numpy as np

from jaxsim.math.arrays import gather, inner, matvec, matvec_t, take
from jaxsim.math.safe import Array


def rows_at(x: Array, index: Array) -> Array:
    """`x[index]` along the first axis, for a static or a traced index."""
    return take(x, index) if isinstance(index, np.ndarray) else gather(x, index)


def spheres_touch(gap: Array, reach: Array) -> Array:
    """Whether centres with the difference `gap` (n, 3) are within the distance `reach` (n,)."""
    return inner(gap, gap) <= reach * reach


def boxes_touch(m: Any, pos: Array, mat: Array, margin: Array, g1: Array, g2: Array) -> Array:
    """Whether the geoms' oriented boxes overlap along the axes of either: six of the fifteen axes of the full test."""
    centre = pos + matvec(mat, m.geom_aabb[:, :3])
    gap = rows_at(centre, g2) - rows_at(centre, g1)
    mat1, mat2 = rows_at(mat, g1), rows_at(mat, g2)
    half1, half2 = rows_at(m.geom_aabb[:, 3:], g1), rows_at(m.geom_aabb[:, 3:], g2)
    cosines = abs((mat1[:, :, :, None] * mat2[:, :, None, :]).sum(axis=1))
    separated1 = abs(matvec_t(mat1, gap)) - margin[:, None] > half1 + matvec(cosines, half2)
    separated2 = abs(matvec_t(mat2, gap)) - margin[:, None] > half2 + matvec_t(cosines, half1)
    return ~(separated1 | separated2).any(axis=1)
