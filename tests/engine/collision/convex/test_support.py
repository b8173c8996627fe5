"""Support points of large hulls by hill climbing, and of prisms."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jaxsim
from jaxsim.core.types import GeomType
from jaxsim.engine.collision.convex.hull import CLIMB_MIN_VERTICES, climb_neighbours, hull_table
from jaxsim.engine.collision.convex.support import ConvexShape, ShapeTypes, support


def test_hill_climbing_ends_at_the_farthest_vertex():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((CLIMB_MIN_VERTICES + 50, 3))
    points *= np.array([0.4, 0.3, 0.2]) / np.linalg.norm(points, axis=1, keepdims=True)
    vertices = " ".join(f"{x:.6f}" for x in points.ravel())
    m = jaxsim.from_mujoco(
        mujoco.MjModel.from_xml_string(
            f'<mujoco><asset><mesh name="m" vertex="{vertices}"/></asset>'
            '<worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>'
        )
    )
    table = hull_table(m, np.array([0]))
    vert, neighbours = table.vert[0], climb_neighbours(m, table)
    assert neighbours is not None
    zero = jnp.zeros(3)
    shape = ConvexShape(jnp.int32(GeomType.MESH), zero, jnp.eye(3), zero, vert, jnp.int32(0), jnp.zeros(()))
    directions = np.concatenate([rng.standard_normal((200, 3)), np.eye(3), -np.eye(3)])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    found, index = jax.jit(jax.vmap(support(ShapeTypes((GeomType.MESH,), neighbours), shape)))(directions)
    np.testing.assert_array_equal(index, np.argmax(np.asarray(vert) @ directions.T, axis=0))
    np.testing.assert_array_equal(found, vert[index])


def test_along_its_side_a_prism_gives_its_upper_triangle_despite_rounding():
    upper = np.array([[0, 0, 0.3], [1, 0, 0.1], [0, 1, 0.2]])
    vert = jnp.asarray(np.concatenate([upper, upper * [1, 1, 0]]))
    kind = jnp.asarray(int(GeomType.HFIELD))
    shape = ConvexShape(kind, jnp.zeros(3), jnp.eye(3), jnp.zeros(3), vert, jnp.asarray(0), jnp.asarray(0.0))
    farthest = support(ShapeTypes((GeomType.HFIELD,)), shape)
    for up, expected in ((1e-17, upper[1]), (-1e-17, upper[1]), (-1e-9, upper[1] * [1, 1, 0])):
        np.testing.assert_array_equal(farthest(jnp.array([1.0, 0.0, up]))[0], expected)
