"""Bounds of geoms follow sizes that are replaced: contacts and rays are those of MuJoCo with its bounds recomputed."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.structure.geom_bounds import with_current_bounds

CORNERS = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1))
GRID = " ".join(["0 1 2 1 0"] * 5)
MESH = f'<mesh name="cube" vertex="{CORNERS}"/>'
HFIELD = f'<hfield name="h" nrow="5" ncol="5" size="1 1 .1 .1" elevation="{GRID}"/>'


PLANE, SLAB = 'type="plane" size="1 1 1"', 'type="box" size=".2 .2 .02"'


def scene(geom, z, fixed='type="box" size=".1 .1 .1"'):
    assets = (MESH if "mesh=" in geom else "") + (HFIELD if "hfield=" in fixed else "")
    body = f'<body pos="0 0 {z}"><freejoint/><geom {geom}/></body>'
    return f"<mujoco><asset>{assets}</asset><worldbody><geom {fixed}/>{body}</worldbody></mujoco>"


# scene and what is replaced in it: a field, a row (of meshes: all) and new values
CASES = {
    "sphere": (scene('size=".1"', 0.45, 'size=".1"'), "geom_size", 1, (0.4, 0, 0)),
    "sphere on a plane": (scene('size=".1"', 0.3, PLANE), "geom_size", 1, (0.31, 0, 0)),
    "capsule": (scene('type="capsule" size=".05 .1"', 0.3), "geom_size", 1, (0.05, 0.17, 0)),
    "box": (scene('type="box" size=".1 .1 .1"', 0.25), "geom_size", 1, (0.05, 0.05, 0.17)),
    "wide box": (
        scene('type="box" size=".1 .1 .1"', 0.15, 'type="box" size=".2 .2 .02"'),
        "geom_size",
        0,
        (0.2, 0.2, 0.06),
    ),
    "ellipsoid": (scene('type="ellipsoid" size=".2 .1 .1"', 0.28), "geom_size", 1, (0.1, 0.1, 0.2)),
    "cylinder": (scene('type="cylinder" size=".2 .05"', 0.28), "geom_size", 1, (0.05, 0.2, 0)),
    "mesh": (scene('type="mesh" mesh="cube"', 0.4), "mesh_vert", None, (1, 1, 3.2)),
    "mesh on a plane": (
        scene('type="mesh" mesh="cube"', 0.4, 'type="plane" size="1 1 1"'),
        "mesh_vert",
        None,
        (1, 1, 4.1),
    ),
    "height field": (scene('size=".1"', 0.5, 'type="hfield" hfield="h"'), "hfield_size", 0, (1, 1, 0.6, 0.1)),
}


def changed(m, case):
    _, field, row, values = CASES[case]
    old = jnp.asarray(getattr(m, field))
    return m.replace(**{field: old * jnp.array(values) if row is None else old.at[row].set(jnp.array(values))})


def oracle(case):
    """MuJoCo's model and data after the same change, with bounds that follow it."""
    xml, field, row, values = CASES[case]
    model = mujoco.MjModel.from_xml_string(xml)
    if row is None:
        getattr(model, field)[:] *= values
    else:
        getattr(model, field)[row] = values
    m = changed(jaxsim.load_model(xml), case)
    bounds = with_current_bounds(m)
    model.geom_rbound[:], model.geom_aabb[:] = bounds.geom_rbound, bounds.geom_aabb
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


LONG = ("sphere", "capsule", "wide box", "ellipsoid", "mesh on a plane")


@pytest.mark.parametrize("case", [pytest.param(x, marks=[pytest.mark.slow] if x in LONG else []) for x in CASES])
def test_contacts_are_those_of_the_replaced_size(case):
    m = jaxsim.load_model(CASES[case][0])
    _, data = oracle(case)
    assert data.ncon > 0
    d = jaxsim.make_data(m)
    worlds = jax.tree.map(lambda *x: jnp.stack(x), m, changed(m, case))  # one world with each size
    ncon, dist = jax.jit(jax.vmap(lambda m: (lambda d: (d.ncon, d.contact.dist))(jaxsim.forward(m, d))))(worlds)
    assert ncon.tolist() == [0, data.ncon]
    np.testing.assert_allclose(np.sort(dist[1, : data.ncon]), np.sort(data.contact.dist), atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_bounds_of_a_compiled_model_are_its_fields(case):
    m = jaxsim.load_model(CASES[case][0])
    bounds = with_current_bounds(m)
    np.testing.assert_allclose(bounds.geom_rbound, m.geom_rbound, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(bounds.geom_aabb, m.geom_aabb, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("case", ["sphere", "box", "mesh", "height field"])
def test_rays_meet_the_replaced_size(case):
    m = changed(jaxsim.load_model(CASES[case][0]), case)
    d = jaxsim.forward(m, jaxsim.make_data(m))
    start = jnp.array([0.04, 0.03, 2.0])
    one, geom, _ = jaxsim.ray(m, d, start, jnp.array([0.0, 0, -1]))
    many, geoms, _ = jaxsim.multi_ray(m, d, start, jnp.array([[0.0, 0, -1]]), cutoff=1.8)
    assert int(geoms[0]) == int(geom) == 1
    np.testing.assert_allclose(many[0], one)


def test_large_models_find_the_replaced_size():
    ball = '<body pos="{} {} .1"><freejoint/><geom size=".1"/></body>'
    bodies = "".join(ball.format(i, j) for i in range(17) for j in range(17))
    plane = '<geom type="plane" size="9 9 1" pos="0 0 -1"/>'
    m = jaxsim.load_model(f"<mujoco><worldbody>{plane}{bodies}</worldbody></mujoco>")
    grown = m.replace(geom_size=jnp.asarray(m.geom_size).at[1:, 0].set(0.51))
    assert int(jax.jit(jaxsim.collision)(grown, jaxsim.kinematics(grown, jaxsim.make_data(grown))).ncon) == 2 * 17 * 16


def test_mjx_interface_finds_the_replaced_size():
    mjx = pytest.importorskip("jaxsim.mjx")
    model = mujoco.MjModel.from_xml_string(CASES["box"][0])
    m = mjx.put_model(model)
    m = m.replace(geom_size=m.geom_size.at[1].set(jnp.array([0.05, 0.05, 0.17])))
    d = mjx.forward(m, mjx.make_data(m))
    assert int((np.asarray(d._impl.contact.dist if hasattr(d, "_impl") else d.contact.dist) < 0).sum()) == 4


def test_gradient_by_a_size_is_that_of_the_contact():
    m = jaxsim.load_model(CASES["sphere"][0])
    d = jaxsim.make_data(m)
    size = jnp.asarray(m.geom_size).at[1, 0].set(0.4)
    gradient = jax.grad(lambda s: jaxsim.forward(m.replace(geom_size=s), d).contact.dist[0])(size)
    np.testing.assert_allclose(gradient, [[-1, 0, 0], [-1, 0, 0]], atol=1e-9)
