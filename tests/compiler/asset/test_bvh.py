"""Bounding volume hierarchies against MuJoCo."""

import mujoco
import numpy as np
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.compiler.asset.bvh import body_bvh, build_bvh, circumcenter
from jaxsim.mjcf import read
from validation.compare import assert_models_equal

GEOMS = {
    "one": '<geom size=".1"/>',
    "row of equals": "".join(f'<geom size=".1" pos="{x} 0 0"/>' for x in (0, 1, 1, 2, 0.5)),
    "mixed": '<geom type="box" size=".1 .2 .3" pos="1 2 3" euler="10 20 30"/><geom type="capsule" size=".1 .4" '
    'pos="-1 0 1" zaxis="1 1 0"/><geom size=".2" contype="0" conaffinity="0" pos="9 9 9"/>'
    '<geom type="cylinder" size=".2 .1" pos="0 1 -1"/><geom type="ellipsoid" size=".2 .1 .3" euler="0 40 0"/>',
    "plane": '<geom type="plane" size="1 1 1"/><geom size=".1" pos="0 0 1"/>',
}


@pytest.mark.parametrize("what", GEOMS)
@pytest.mark.parametrize("body", ["static", "moving"])
def test_hierarchy_of_a_body(what, body):
    if body == "moving" and what == "plane":
        body = "world"
    start = {"world": "", "static": '<body pos="1 0 0">', "moving": "<body><freejoint/>"}[body]
    if what == "plane":
        start = ""
    m = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{start}{GEOMS[what]}{'</body>' if start else ''}</worldbody></mujoco>"
    )
    k = m.nbody - 1
    mine = body_bvh(
        m.geom_pos,
        m.geom_quat,
        m.geom_aabb,
        (m.geom_contype != 0) | (m.geom_conaffinity != 0),
        np.arange(m.ngeom),
        m.body_ipos[k],
        m.body_iquat[k],
    )
    nodes = slice(m.body_bvhadr[k], m.body_bvhadr[k] + m.body_bvhnum[k])
    np.testing.assert_allclose(mine.aabb, m.bvh_aabb[nodes], atol=1e-9, rtol=1e-6)
    np.testing.assert_array_equal(mine.child, m.bvh_child[nodes])
    np.testing.assert_array_equal(mine.nodeid, m.bvh_nodeid[nodes])
    np.testing.assert_array_equal(mine.depth, m.bvh_depth[nodes])


def test_every_element_is_in_one_leaf_and_in_every_box_above_it():
    rng = np.random.default_rng(0)
    center = rng.normal(size=(37, 3))
    half = rng.random((37, 3))
    tree = build_bvh(center, center - half, center + half, np.arange(37))
    assert sorted(tree.nodeid[tree.nodeid >= 0].tolist()) == list(range(37))
    for node, (left, right) in enumerate(tree.child):
        low, high = tree.aabb[node, :3] - tree.aabb[node, 3:], tree.aabb[node, :3] + tree.aabb[node, 3:]
        for child in (left, right) if left >= 0 else ():
            assert np.all(tree.aabb[child, :3] - tree.aabb[child, 3:] >= low - 1e-12)
            assert np.all(tree.aabb[child, :3] + tree.aabb[child, 3:] <= high + 1e-12)
            assert tree.depth[child] == tree.depth[node] + 1


def test_hierarchy_of_nothing_is_empty():
    tree = build_bvh(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, int))
    assert tree.aabb.shape == (0, 6)


def test_circumcenter_is_as_far_from_all_three_points():
    a, b, c = np.random.default_rng(0).normal(size=(3, 10, 3))
    center = circumcenter(a, b, c)
    radius = np.linalg.norm(center - a, axis=1)
    np.testing.assert_allclose(np.linalg.norm(center - b, axis=1), radius)
    np.testing.assert_allclose(np.linalg.norm(center - c, axis=1), radius)


@pytest.mark.parametrize("seed", range(4))
def test_hierarchy_of_faces_without_area(seed):
    rng = np.random.default_rng(seed)
    vertex = rng.integers(0, 5, (60, 3)).astype(float)
    face = rng.integers(0, 60, (80, 3))
    face[::9, 2] = face[::9, 1]
    flat = [" ".join(map(str, x.ravel())) for x in (vertex, face)]
    text = (
        f'<mujoco><asset><mesh name="m" inertia="shell" vertex="{flat[0]}" face="{flat[1]}"/></asset>'
        '<worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>'
    )
    assert_models_equal(compile_spec(read(text)), mujoco.MjModel.from_xml_string(text))
