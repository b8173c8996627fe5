"""Support points of large hulls and of prisms."""

from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.core.types import GeomType
from jaxsim.engine.collision.convex.hull import CLIMB_MIN_VERTICES, hull_table
from jaxsim.engine.collision.convex.support import (
    ConvexShape,
    farthest_point,
    farthest_vertex,
    highest_of_hull,
    touched,
)
from jaxsim.math.component import split


@pytest.mark.parametrize("compare_all", [False, True])
def test_the_search_of_a_hull_ends_at_the_farthest_vertex(compare_all):
    """By hill climbing, or among all its vertices as on a TPU."""
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
    vert = np.stack(table.hulls.vert, axis=-1)
    assert table.hulls.first_edge[1] > 0  # it is climbed
    directions = np.concatenate([rng.standard_normal((200, 3)), np.eye(3), -np.eye(3)])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    climb = partial(farthest_vertex, table.hulls, jnp.int32(0), jnp.int32(0), jnp.asarray(table.scan[0]))
    search = partial(highest_of_hull, table.hulls, jnp.int32(0), jnp.int32(0)) if compare_all else climb
    found, index = jax.jit(jax.vmap(lambda d: search(split(d))))(directions)
    np.testing.assert_array_equal(index, np.argmax(vert @ directions.T, axis=0))
    np.testing.assert_array_equal(np.stack(found, axis=-1), vert[index])


def test_along_its_side_a_prism_gives_its_upper_triangle_despite_rounding():
    upper = np.array([[0, 0, 0.3], [1, 0, 0.1], [0, 1, 0.2]])
    vert = jnp.asarray(np.concatenate([upper, upper * [1, 1, 0]]))
    kind = jnp.asarray(int(GeomType.HFIELD))
    zero, none = jnp.zeros(3), jnp.int32(0)
    shape = ConvexShape(kind, zero, jnp.eye(3), zero, zero[0], none, none, jnp.zeros(2, jnp.int32), vert)
    for up, expected in ((1e-17, upper[1]), (-1e-17, upper[1]), (-1e-9, upper[1] * [1, 1, 0])):
        direction = tuple(jnp.asarray(x) for x in (1.0, 0.0, up))
        point, _ = farthest_point((GeomType.HFIELD,), None, shape, direction)
        np.testing.assert_array_equal(point, expected)


def test_a_shape_without_vertices_reads_none_behind_the_table():
    """The empty row of the table, which a box has, begins after the last vertex."""
    m = jaxsim.from_mujoco(
        mujoco.MjModel.from_xml_string(
            '<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
            '<worldbody><geom type="mesh" mesh="m"/><geom type="box" size="1 1 1"/></worldbody></mujoco>'
        )
    )
    table = hull_table(m, np.array([0, 1]))
    zero, one, index = jnp.zeros(3), jnp.eye(3), jnp.asarray([3, 1, 2])
    vert = np.stack(table.hulls.vert, axis=-1)
    assert table.first_vertex[table.of_geom[1]] == len(vert)
    for geom, kind, expected in ((0, GeomType.MESH, vert[index]), (1, GeomType.BOX, vert[[0, 0, 0]])):
        first, none = jnp.asarray(table.first_vertex[table.of_geom[geom]]), jnp.int32(0)
        shape = ConvexShape(jnp.int32(int(kind)), zero, one, zero, zero[0], none, first, jnp.zeros(2, jnp.int32))
        np.testing.assert_array_equal(touched(table.hulls, shape, index).corner, expected)
