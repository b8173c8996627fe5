"""Vertices of hulls that touch a plane."""

from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.convex.hull import (
    CLIMB_MIN_VERTICES,
    HullAbovePlane,
    TouchingVertices,
    neighbours_by_hull,
    neighbours_by_walk,
    plane_mesh_setup,
)
from jaxsim.math.component import split

POINTS = 20, CLIMB_MIN_VERTICES + 50


def rocks(rng):
    """Two meshes above a plane, of which one is climbed."""
    assets, bodies = [], []
    for k, count in enumerate(POINTS):
        x = rng.standard_normal((count, 3))
        x *= np.array([0.4, 0.3, 0.05]) / np.linalg.norm(x, axis=1, keepdims=True)
        assets.append(f'<mesh name="{k}" vertex="{" ".join(f"{v:.5f}" for v in x.ravel())}"/>')
        bodies.append(f'<body><freejoint/><geom type="mesh" mesh="{k}"/></body>')
    xml = f'<mujoco><asset>{"".join(assets)}</asset><worldbody><geom type="plane" size="1 1 1"/>{"".join(bodies)}'
    return mujoco.MjModel.from_xml_string(xml + "</worldbody></mujoco>")


@pytest.mark.parametrize("find", [neighbours_by_walk, neighbours_by_hull])
def test_touching_vertices_are_the_lowest_and_its_first_neighbours_apart_from_it(find):
    """Compared with loops over the graph of the hull: in the order of its edges, three at most."""
    rng = np.random.default_rng(0)
    m = jaxsim.from_mujoco(rocks(rng))
    c = plane_mesh_setup(m, np.array([0, 0]), np.array([1, 2]))
    vert = np.stack(c.hulls.hulls.vert, axis=-1)
    first, after = map(np.asarray, c.neighbours)
    counts = set()
    run = jax.jit(partial(find, c.hulls.hulls, type(c.neighbours)(*map(jnp.asarray, c.neighbours))))
    for row in (0, 1):
        begin, end = (int(x) for x in c.hulls.hulls.first[row : row + 2])
        for _ in range(20):
            down = rng.standard_normal(3) * [0.2, 0.2, 1]
            down /= np.linalg.norm(down)
            low = begin + int(np.argmax(vert[begin:end] @ down))
            height = vert[low] @ down + rng.uniform(-0.04, 0.005)
            dist, margin, apart = height - vert @ down, 0.003, 0.1
            point = vert[low] + 0.5 * dist[low] * down
            wanted = [low] if dist[low] <= margin else []
            for other in after[first[low] : first[low + 1]] if wanted else ():
                far = np.linalg.norm(vert[other] - point) >= apart
                wanted += [int(other)] if dist[other] < margin and far and len(wanted) < 3 else []
            at = jnp.int32(low)
            start = TouchingVertices(at, split(point), jnp.stack([at] * 3), jnp.int32(len(wanted) > 0))
            above = HullAbovePlane(jnp.int32(row), jnp.int32(begin), down, height, margin, apart)
            found = run(above, start)
            assert np.asarray(found.vertex)[: int(found.count)].tolist() == wanted
            counts.add(len(wanted))
    assert counts == {0, 1, 2, 3}


def test_meshes_rest_on_a_plane_as_in_mujoco():
    """Contacts of a large and of a small hull, at many poses, in their order."""
    rng = np.random.default_rng(1)
    mj = rocks(rng)
    m, data = jaxsim.from_mujoco(mj), mujoco.MjData(mj)
    run, total = jax.jit(lambda d: jaxsim.forward(m, d).contact), 0
    for _ in range(10):
        quat = rng.standard_normal((2, 4)) * [1, 0.1, 0.1, 0.1]
        data.qpos[:] = np.concatenate([np.array([[-1, 0, 0.03], [1, 0, 0.02]]), quat], axis=1).ravel()
        mujoco.mj_forward(mj, data)
        found = run(jaxsim.make_data(m).replace(qpos=jnp.asarray(data.qpos)))
        mine = np.asarray(found.geom)[:, 0] >= 0
        assert mine.sum() == data.ncon
        np.testing.assert_allclose(np.asarray(found.pos)[mine], data.contact.pos, atol=1e-9)
        np.testing.assert_allclose(np.asarray(found.dist)[mine], data.contact.dist, atol=1e-9)
        total += data.ncon
    assert total > 20
