"""Polygons of hulls."""

import numpy as np
import pytest

from jaxsim.compiler.asset.hull import convex_hull
from jaxsim.compiler.asset.polygon import make_polygons, polygon_normals
from tests.compiler.mesh_cases import CUBE, compile_both


def test_cube_has_six_squares_with_the_axes_as_normals():
    polygons = make_polygons(CUBE, convex_hull(CUBE).face)
    assert sorted(len(p) for p in polygons) == [4] * 6
    normals = {tuple(n) for n in np.round(polygon_normals(CUBE, polygons)).astype(int).tolist()}
    assert normals == {tuple(s * row) for row in np.eye(3, dtype=int) for s in (-1, 1)}


@pytest.mark.parametrize("n", [30, 150, 600])
def test_order_of_many_polygons_is_mujoco(n):
    points = np.random.default_rng(n).normal(size=(n, 3))
    points = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    m, mesh = compile_both(vertex=points)
    np.testing.assert_array_equal(mesh.polyvert, m.mesh_polyvert)
    np.testing.assert_array_equal(mesh.polymap, m.mesh_polymap)


def test_every_edge_of_the_hull_is_in_at_most_two_polygons():
    points = np.random.default_rng(1).integers(0, 4, size=(40, 3)).astype(float)
    edges: dict[tuple[int, int], int] = {}
    for p in make_polygons(points, convex_hull(points).face):
        for a, b in zip(p, p[1:] + p[:1], strict=True):
            edges[(a, b)] = edges.get((a, b), 0) + 1
    assert set(edges.values()) == {1}
    assert all((b, a) in edges for a, b in edges)


def test_normals_of_tiny_polygons_equal_mujoco():
    points = np.random.default_rng(2).normal(size=(30, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    close = points[:1] + 5e-4 * np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    points = np.concatenate([points, close / np.linalg.norm(close, axis=1, keepdims=True)]).astype(np.float32)
    m, mesh = compile_both(vertex=points, scale=(1e-4, 1e-4, 1e-4))
    assert np.abs(m.mesh_polynormal).max() > 10
    np.testing.assert_allclose(mesh.polynormal, m.mesh_polynormal, rtol=1e-6, atol=1e-9)
