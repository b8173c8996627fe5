"""Manifolds of faces: the points found, and the same points again from how they arose."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.convex.convex import convex_context, search, shapes_of
from jaxsim.engine.collision.convex.manifold import manifold, manifold_again
from jaxsim.engine.collision.driver import collision
from jaxsim.engine.collision.shapes import Geoms
from jaxsim.engine.kinematics.kinematics import kinematics
from jaxsim.math.component import split
from jaxsim.math.rotation import quat_mul, quat_to_mat

ANGLES = np.linspace(0, 2 * np.pi, 10)[:-1]
DISC = " ".join(f"{np.cos(a):.6f} {np.sin(a):.6f} {z}" for z in (-0.3, 0.3) for a in ANGLES)
XML = f"""<mujoco><asset><mesh name="disc" vertex="{DISC}"/></asset><worldbody>
<body><freejoint/><geom type="box" size="0.9 0.7 0.3"/></body>
<body><freejoint/><geom type="mesh" mesh="disc"/></body>
<body><freejoint/><geom type="box" size="0.8 0.5 0.3"/></body></worldbody></mujoco>"""
N = 40


@pytest.fixture(scope="module")
def stacked():
    """Manifolds of shapes that lie on each other turned and shifted, their records, and the same points again."""
    m = jaxsim.from_mujoco(mujoco.MjModel.from_xml_string(XML))
    rng = np.random.default_rng(0)
    g1, g2 = np.tile([[0, 1], [0, 2], [2, 1]], (N, 1)).T
    yaw, tilt = rng.uniform(0, 2 * np.pi, 3 * N), 1e-4 * rng.standard_normal((3 * N, 2))
    quat = np.stack([np.cos(yaw / 2), *(tilt / 2).T, np.sin(yaw / 2)], axis=1)
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    quat = quat_mul(jnp.asarray(quat), jnp.asarray(m.geom_quat)[g2])  # meshes have frames of their own
    pos = np.concatenate([rng.uniform(-0.7, 0.7, (3 * N, 2)), np.full((3 * N, 1), 0.59)], axis=1)
    c = convex_context(m, g1, g2)
    none = jnp.zeros(3 * N)
    size = jnp.asarray(m.geom_size)
    mat = jnp.broadcast_to(jnp.eye(3), (3 * N, 3, 3))
    a = shapes_of(c, Geoms(jnp.zeros((3 * N, 3)), mat, size[g1], jnp.asarray(g1)), none)
    b = shapes_of(c, Geoms(jnp.asarray(pos), quat_to_mat(quat), size[g2], jnp.asarray(g2)), none)

    def both(a, b):
        facets, hulls = c.tables.facets, c.tables.hulls
        record = search(c.settings, c.tables, a, b, jnp.array(True))
        gap = split(record.x2 - record.x1)
        found, how = manifold(facets, hulls, a, b, record.points.index, gap, c.settings.max_corners)
        return found, how, manifold_again(facets, hulls, a, b, how, gap)

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(both))(a, b))


def test_a_record_gives_the_points_of_the_manifold(stacked):
    found, how, again = stacked
    assert found.ok.sum() > 100
    for x, y in zip(found, again, strict=True):
        mask = found.ok if x.ndim < 2 or x.shape[1:] == (3,) else found.real
        np.testing.assert_allclose(x[mask], y[mask], rtol=0, atol=1e-12)
    line, cut = np.moveaxis(how.origin[found.ok], -1, 0)
    kinds = (cut < 0), (cut >= 0) & (line >= 0), (cut >= 0) & (line < 0)
    assert all(k.sum() > 20 for k in kinds)  # vertices, crossings of edges, corners of the clipping face


def test_points_of_a_manifold_lie_between_the_faces(stacked):
    found, *_ = stacked
    heights = found.pos[:, :4, 2][found.ok[:, None] & found.real[:, :4]]
    np.testing.assert_allclose(heights, 0.295, atol=1e-3)
    np.testing.assert_allclose(np.abs(found.normal[found.ok, 2]), 1, atol=1e-6)


def test_an_edge_that_is_clipped_at_both_ends_has_two_contacts_in_single_precision(float32):
    beam = " ".join(f"{x} {y} {z}" for x in (-0.2, 0.2) for y in (-0.05, 0.05) for z in (-0.05, 0.05))
    mj_model = mujoco.MjModel.from_xml_string(f"""<mujoco><asset><mesh name="beam" vertex="{beam}"/></asset>
      <worldbody><geom type="box" size=".07 .1 .1"/><body><freejoint/>
      <geom type="mesh" mesh="beam"/></body></worldbody></mujoco>""")
    m, mj_data = jaxsim.from_mujoco(mj_model), mujoco.MjData(mj_model)
    d = jaxsim.make_data(m)
    count = jax.jit(jax.vmap(lambda q: collision(m, kinematics(m, d.replace(qpos=q))).ncon))
    yaw, roll, quat = np.deg2rad(np.arange(-30, 35, 7)) / 2, np.pi / 8, np.zeros((10, 4))
    for out, a in zip(quat, yaw, strict=True):
        mujoco.mju_mulQuat(out, [np.cos(a), 0, 0, np.sin(a)], [np.cos(roll), np.sin(roll), 0, 0])
    qpos = np.concatenate([np.tile([0.01, 0.02, 0.17], (10, 1)), quat], axis=1)
    for q, n in zip(qpos, count(qpos), strict=True):
        mj_data.qpos[:] = q
        mujoco.mj_forward(mj_model, mj_data)
        assert n == mj_data.ncon == 2


def test_gradient_is_finite_where_an_edge_is_nearly_along_a_side(float32):
    """The crossing of such lines is no point of the manifold, but in single precision its derivative overflows."""
    m = jaxsim.load_model(XML)
    c = convex_context(m, *np.array([[0, 2]]).T)
    size, none = jnp.asarray(m.geom_size, jnp.float32), jnp.zeros(1, jnp.float32)
    upright = jnp.eye(3, dtype=jnp.float32)[None]
    nearly, tilted = upright.at[0, 1, 2].set(1e-23), upright.at[0, 2, 0].set(5e-4)

    def shape(geom, pos, mat):
        s = shapes_of(c, Geoms(pos[None], mat, size[geom : geom + 1], jnp.array([geom])), none)
        return jax.tree.map(lambda x: x[0], s)

    still = shape(0, jnp.zeros(3, jnp.float32), nearly)

    def points(pos):
        other = shape(2, pos, tilted)
        record = search(c.settings, c.tables, *jax.lax.stop_gradient((still, other)), jnp.array(True))
        gap = split(record.x2 - record.x1)
        facets, hulls = c.tables.facets, c.tables.hulls
        _, how = manifold(facets, hulls, still, jax.lax.stop_gradient(other), record.points.index, gap, 8)
        return jnp.sum(manifold_again(facets, hulls, still, other, how, gap).pos), how

    grad, how = jax.jit(jax.grad(points, has_aux=True))(jnp.array([0.3, 0.4, 0.59], jnp.float32))
    assert how.ok and (how.origin[:, 1] >= 0).any()
    assert np.isfinite(grad).all()


def test_gradients_of_far_shapes_whose_faces_are_all_but_parallel_are_zero_in_single_precision(float32):
    brick = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.15, 0.15) for z in (-0.2, 0.2))
    m = jaxsim.load_model(f"""<mujoco><asset><mesh name="brick" vertex="{brick}"/></asset><worldbody>
      <body><freejoint/><geom type="mesh" mesh="brick"/></body>
      <body><freejoint/><geom type="mesh" mesh="brick"/></body></worldbody></mujoco>""")
    d, n, rng = jaxsim.make_data(m), 300, np.random.default_rng(0)

    def distance(qpos):
        return collision(m, kinematics(m, d.replace(qpos=qpos))).contact.dist.sum()

    def quarter_turns():
        """Turned by 0, 90 or 180 degrees about an axis, but for a rounding far below single precision."""
        quat = np.eye(4)[rng.integers(0, 4, n)] + rng.integers(0, 2, (n, 1)) * np.eye(4)[rng.integers(0, 4, n)]
        quat += 10.0 ** -rng.uniform(10, 30, (n, 1)) * rng.standard_normal((n, 4))
        return quat / np.linalg.norm(quat, axis=1, keepdims=True)

    pos = np.tile([0, 0, 0], (n, 1)), np.tile([1, 0.7, 0.5], (n, 1))
    qpos = np.concatenate([pos[0], quarter_turns(), pos[1], quarter_turns()], axis=1).astype(np.float32)
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.grad(distance)))(jnp.asarray(qpos)), 0)
