"""Bound tests of pairs of geoms, by spheres and by boxes; indices may be static or known at run time only."""

from typing import Any

import numpy as np

from jaxsim.math.arrays import gather, inner, matvec, matvec_t, take
from jaxsim.math.safe import Array


def pick(x: Array, index: Array) -> Array:
    """`x[index]` along the first axis."""
    return take(x, index) if isinstance(index, np.ndarray) else gather(x, index)


def spheres_touch(gap: Array, reach: Array) -> Array:
    """Whether centres that are `gap` (n, 3) apart are within `reach` (n,)."""
    return inner(gap, gap) <= reach * reach


def boxes_touch(m: Any, pos: Array, mat: Array, margin: Array, g1: Array, g2: Array) -> Array:
    """Whether the geoms' boxes, in their own frames, overlap along each other's axes."""
    centre = pos + matvec(mat, m.geom_aabb[:, :3])
    gap = pick(centre, g2) - pick(centre, g1)
    mat1, mat2 = pick(mat, g1), pick(mat, g2)
    half1, half2 = pick(m.geom_aabb[:, 3:], g1), pick(m.geom_aabb[:, 3:], g2)
    across = abs((mat1[:, :, :, None] * mat2[:, :, None, :]).sum(axis=1))
    apart1 = abs(matvec_t(mat1, gap)) - margin[:, None] > half1 + matvec(across, half2)
    apart2 = abs(matvec_t(mat2, gap)) - margin[:, None] > half2 + matvec_t(across, half1)
    return ~(apart1 | apart2).any(axis=1)
