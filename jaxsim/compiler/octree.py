"""Octrees of signed distance, for meshes used by geoms of type sdf."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.compiler.bvh import Bvh


@dataclass(frozen=True)
class Octree:
    """A tree of boxes with the signed distance at their corners.

    Attributes:
        aabb: (n, 6) centre and half sizes.
        child: (n, 8) int32, -1 in a leaf.
        depth: (n,) int32.
        coeff: (n, 8) signed distance at the corners; bit k of a corner's number says low or high along axis k.
    """

    aabb: np.ndarray
    child: np.ndarray
    depth: np.ndarray
    coeff: np.ndarray

    @classmethod
    def empty(cls) -> Octree:
        """The octree of a mesh that needs none."""
        return cls(np.zeros((0, 6)), np.zeros((0, 8), np.int32), np.zeros(0, np.int32), np.zeros((0, 8)))


def build_octree(vert: np.ndarray, face: np.ndarray, aamm: np.ndarray, bvh: Bvh, maxdepth: int) -> Octree:
    raise NotImplementedError
