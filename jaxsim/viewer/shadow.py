"""Shadows of the software rasteriser: a depth image seen from the sun, and which points it hides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SIZE = 1024  # pixels of the depth image in each direction
DISTANCE = 1000.0  # of the eye that stands for the sun, in radii of the scene: rays are parallel to a thousandth
BIAS = 2.5  # pixels of the depth image that a point is moved towards the sun and along its normal


class ShadowMap(NamedTuple):
    """Depth (SIZE * SIZE,) seen from the sun, the camera there, and the size of a pixel in metres."""

    depth: np.ndarray
    camera: Any
    texel: float


def shadow_map(corners: np.ndarray, sun: np.ndarray, cover: Callable, make_camera: Callable) -> ShadowMap | None:
    """`ShadowMap` of the triangles that cast shadows, corners (3 n, 3); None where there are none.

    `cover` and `make_camera` are the rasteriser's. The image holds all triangles.
    """
    if not len(corners):
        return None
    low, high = corners.min(0), corners.max(0)
    centre, radius = (low + high) / 2, max(float(np.linalg.norm(high - low)) / 2, 1e-6)
    side = np.cross(sun, np.eye(3)[np.abs(sun).argmin()])
    side /= np.linalg.norm(side)
    rotation = np.stack([side, np.cross(sun, side), sun], 1)
    fovy = 2 * np.rad2deg(np.arctan(1.05 / DISTANCE))
    camera = make_camera(centre + DISTANCE * radius * sun, rotation, fovy)
    pixel, triangle, weight = cover(corners, camera, SIZE, SIZE)
    point = np.einsum("nk,nki->ni", weight, corners.reshape(-1, 3, 3)[triangle])
    depth = np.full(SIZE * SIZE, np.inf)
    depth[pixel] = (camera.position - point) @ sun
    return ShadowMap(depth, camera, 2.1 * radius / SIZE)


def lit(shadows: ShadowMap | None, point: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """How much of the sun points (n, 3) see, 0 to 1: the mean over nine neighbouring pixels. Normals face the eye."""
    if shadows is None:
        return np.ones(len(point))
    camera, offset = shadows.camera, BIAS * shadows.texel
    local = (point + offset * normal - camera.position) @ camera.rotation
    depth = -local[:, 2]
    focal = SIZE / 2 / np.tan(np.deg2rad(camera.fovy) / 2)
    x = focal * local[:, 0] / depth + SIZE / 2
    y = SIZE / 2 - focal * local[:, 1] / depth
    total = np.zeros(len(point))
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            column, row = np.floor(x + i).astype(int), np.floor(y + j).astype(int)
            inside = (column >= 0) & (column < SIZE) & (row >= 0) & (row < SIZE)
            seen = shadows.depth[np.where(inside, row * SIZE + column, 0)]
            total += ~inside | (depth - offset <= seen)
    return total / 9
