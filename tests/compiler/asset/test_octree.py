"""Octrees of signed distance against MuJoCo, and what they mean."""

import numpy as np
import pytest

from jaxsim.compiler.asset.builtin import builtin_mesh
from jaxsim.compiler.asset.bvh import face_bvh
from jaxsim.compiler.asset.octree import build_octree, signed_distance
from tests.compiler.mesh_cases import assert_same_mesh, compile_both, l_shape


@pytest.fixture(scope="module")
def sphere():
    raw, _ = builtin_mesh("sphere", [3])
    vert, face = raw.vertex.reshape(-1, 3).astype(float), raw.face.reshape(-1, 3)
    bvh = face_bvh(vert, face)
    return vert, face, bvh, build_octree(vert, face, np.r_[vert.min(axis=0), vert.max(axis=0)], bvh, 4)


def test_octree_equals_mujoco():
    vertex, face = l_shape()
    m, mesh = compile_both(geom="sdf", vertex=vertex * [1, 0.7, 0.3], face=face)
    assert_same_mesh(m, mesh)
    np.testing.assert_allclose(mesh.octree.aabb, m.oct_aabb, atol=1e-9, rtol=1e-6)
    np.testing.assert_array_equal(mesh.octree.child, m.oct_child)
    np.testing.assert_array_equal(mesh.octree.depth, m.oct_depth)
    np.testing.assert_allclose(mesh.octree.coeff, m.oct_coeff, atol=1e-9, rtol=1e-6)


def test_children_fill_their_parent(sphere):
    octree = sphere[3]
    inner = np.flatnonzero(octree.child[:, 0] >= 0)
    child = octree.child[inner]
    np.testing.assert_allclose(octree.aabb[child, 3:], np.repeat(octree.aabb[inner, None, 3:] / 2, 8, axis=1))
    np.testing.assert_allclose(octree.aabb[child, :3].mean(axis=1), octree.aabb[inner, :3], atol=1e-12)
    assert np.all(octree.depth[child] == octree.depth[inner, None] + 1)


def test_coefficients_are_the_distance_to_a_sphere(sphere):
    octree = sphere[3]
    corner = octree.aabb[:, None, :3] + octree.aabb[:, None, 3:] * (
        2 * ((np.arange(8)[:, None] >> np.arange(3)) & 1) - 1
    )
    leaf = (octree.depth == 4)[:, None] & np.ones(8, bool)
    expected = np.linalg.norm(corner, axis=-1) - 1
    assert np.abs(octree.coeff - expected)[leaf].max() < 0.03


def test_distance_is_negative_inside_and_found_by_the_hierarchy(sphere):
    vert, face, bvh, _ = sphere
    point = np.random.default_rng(0).normal(size=(200, 3))
    distance = signed_distance(point, vert, face, bvh)
    radius = np.linalg.norm(point, axis=1)
    np.testing.assert_allclose(distance, radius - 1, atol=0.02)
    assert np.all(np.sign(distance[np.abs(radius - 1) > 0.02]) == np.sign(radius - 1)[np.abs(radius - 1) > 0.02])
