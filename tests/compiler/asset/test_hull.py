"""Convex hulls and their graphs against MuJoCo."""

import numpy as np
import pytest

from jaxsim.compiler.asset import qhull
from jaxsim.compiler.asset.hull import convex_hull
from jaxsim.core.errors import ModelError
from tests.compiler.mesh_cases import CUBE, TETRAHEDRON, mujoco_model, neighbours, random_points


def float32(points):
    return np.asarray(points, dtype=np.float32).astype(float)


def prism(n):
    angle = np.arange(n) * 2 * np.pi / n
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return float32(np.concatenate([np.c_[ring, -np.ones(n)], np.c_[ring, np.ones(n)]]))


@pytest.mark.parametrize("seed", range(6))
def test_graph_of_points_in_general_position(seed):
    points = random_points(10 + 15 * seed, seed)
    np.testing.assert_array_equal(convex_hull(points).graph, mujoco_model(vertex=points).mesh_graph)


@pytest.mark.parametrize("points", [TETRAHEDRON, TETRAHEDRON[::-1], CUBE, prism(3), prism(6), prism(12), prism(64)])
def test_graph_of_shapes_with_merged_faces(points):
    np.testing.assert_array_equal(convex_hull(points).graph, mujoco_model(vertex=points).mesh_graph)


@pytest.mark.parametrize("seed", range(6))
def test_graph_of_grid_points(seed):
    points = np.random.default_rng(seed).integers(0, 4, size=(40, 3)).astype(float)
    np.testing.assert_array_equal(convex_hull(points).graph, mujoco_model(vertex=points).mesh_graph)


@pytest.mark.parametrize("seed", range(3))
def test_hull_without_the_program_has_the_same_faces_and_neighbours(seed, monkeypatch):
    monkeypatch.setattr(qhull, "program", lambda: None)
    points = np.random.default_rng(seed).integers(0, 4, size=(40, 3)).astype(float)
    mine, ref = convex_hull(points).graph, mujoco_model(vertex=points).mesh_graph
    np.testing.assert_array_equal(mine[:2], ref[:2])
    np.testing.assert_array_equal(mine[-3 * mine[1] :], ref[-3 * mine[1] :])
    assert neighbours(mine) == neighbours(ref)


def test_flat_tetrahedron_without_the_program(monkeypatch):
    """Found by the fuzzer: Qhull lists the facets of a degenerate simplex in another order."""
    monkeypatch.setattr(qhull, "program", lambda: None)
    near, unit = [[4e-43, 0, 0], [6e-45, 0, 0], [1, 2e-38, 9e-41]], np.eye(3)
    points = np.r_[near, unit, [[0, 0, 0], [0, 1.0000047683715820, 0], [0, 0, -4096]]]
    hull = convex_hull(points)
    assert len(hull.vertex) == len(set(hull.vertex.tolist())) == 4


@pytest.mark.parametrize("count", [5, 6, 8, 12])
def test_graph_of_a_bounded_hull_of_grid_points(count):
    points = np.random.default_rng(count).integers(0, 4, size=(40, 3)).astype(float)
    mine = convex_hull(points, count).graph
    np.testing.assert_array_equal(mine, mujoco_model(vertex=points, maxhullvert=count).mesh_graph)


@pytest.mark.parametrize("maxhullvert", [4, 7, 20])
def test_bounded_number_of_vertices(maxhullvert):
    points = random_points(50, maxhullvert)
    hull = convex_hull(points, maxhullvert)
    assert 4 <= len(hull.vertex) <= maxhullvert
    np.testing.assert_array_equal(hull.graph, mujoco_model(vertex=points, maxhullvert=maxhullvert).mesh_graph)


def test_faces_look_outward():
    points = random_points(60, 9)
    a, b, c = (points[convex_hull(points).face[:, k]] for k in range(3))
    volume = np.einsum("ij,ij->i", np.cross(b - a, c - a), a - points.mean(axis=0))
    assert np.all(volume > 0)


@pytest.mark.parametrize(
    ("points", "what"),
    [
        (np.ones((6, 3)), "colocated"),
        (np.arange(6.0)[:, None] * [1, 2, 3], "collinear"),
        (CUBE * [1, 0, 1], "coplanar"),
    ],
)
def test_points_that_span_no_space_are_refused(points, what):
    with pytest.raises(ModelError, match=what):
        convex_hull(points, name="m")


def test_a_hull_is_made_once_for_each_content(monkeypatch):
    points = random_points(30, 77)
    first = convex_hull(points, name="a")
    monkeypatch.setattr(qhull, "qhull_lists", lambda *_: pytest.fail("made again"))
    assert convex_hull(points.copy(), name="b") is first
    assert not first.graph.flags.writeable and not first.face.flags.writeable
