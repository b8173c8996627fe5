"""Contacts of flexes, their rows and the accelerations that follow, against MuJoCo from the same states."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.flex import pairs
from tests.engine.collision.flex.cases import (
    ALONE,
    CLOTH,
    DENSE,
    PLANE,
    ROPE,
    SOLID,
    SPHERE,
    assert_contacts,
    assert_rows,
    exact,
    flexcomp,
    programs,
    scene,
    states,
)

SMALL = 'dim="2" count="4 4 1"'
GEOMS = """<body pos="0 0 -.02"><joint type="slide" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <geom type="box" conaffinity="0" size=".04 .05 .02" pos="-.06 0 0" euler="10 20 30"/>
  <geom type="capsule" conaffinity="0" size=".02 .05" pos=".07 .03 0" euler="80 0 0" margin=".005"/></body>"""
SHAPES = """<body pos="0 0 -.02"><joint type="slide" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <geom type="ellipsoid" conaffinity="0" size=".04 .05 .03" pos="-.06 0 0" euler="10 20 30"/>
  <geom type="cylinder" conaffinity="0" size=".02 .05" pos=".07 .03 0" euler="80 0 0"/>
  <geom type="mesh" conaffinity="0" mesh="t" pos="0 .05 -.09" euler="3 4 5"/></body>"""
CASES = {
    "plane and sphere, pyramids": scene(PLANE + SPHERE + flexcomp(SMALL, CLOTH, ALONE + ' condim="4"', pos="0 0 .152")),
    "plane and sphere, cones": scene(
        SPHERE + flexcomp(SMALL, CLOTH, ALONE + ' condim="6" friction="1 .01 .002"', pos="0 0 .152"),
        DENSE + ' cone="elliptic" impratio="3"',
    ),
    "boxes and capsules": scene(GEOMS + flexcomp('dim="2" count="6 6 1"', CLOTH)),
    "boxes and capsules without trees": scene(
        GEOMS + flexcomp('dim="2" count="6 6 1"', CLOTH), flag='midphase="disable"'
    ),
    "ropes": scene(GEOMS + SPHERE + flexcomp('dim="1" count="8 1 1"', ROPE, radius=".02")),
    "other shapes": scene(SHAPES + flexcomp('dim="2" count="5 5 1"', CLOTH)),
    "solids": scene(
        GEOMS + SHAPES.replace('"-.06 0 0"', '"-.06 .1 0"') + flexcomp('dim="3" count="3 3 2"', SOLID, pos="0 0 .04")
    ),
    "itself, near vertices": scene(
        flexcomp('dim="2" count="5 5 1"', CLOTH, 'selfcollide="none" internal="true"', radius=".03")
    ),
    "itself, all pairs": scene(
        flexcomp('dim="2" count="5 5 1"', CLOTH, 'selfcollide="narrow" internal="false"', radius=".014")
    ),
    "itself, by a sweep": scene(
        flexcomp('dim="2" count="5 5 1"', CLOTH, 'selfcollide="sap" internal="true"', radius=".014")
    ),
    "itself, by trees": scene(
        flexcomp('dim="2" count="5 5 1"', CLOTH, 'selfcollide="bvh" internal="false"', radius=".014")
    ),
    "a solid itself": scene(
        flexcomp('dim="3" count="3 3 3"', SOLID, 'selfcollide="auto" internal="true" activelayers="2"')
    ),
    "a rope itself": scene(flexcomp('dim="1" count="9 1 1"', ROPE, 'internal="true"', radius=".029")),
    "flexes": scene(
        flexcomp('dim="1" count="5 1 1"', ROPE, name="a", pos="0 0 .012")
        + flexcomp('dim="3" count="2 2 2"', SOLID, name="b", pos=".02 .01 .05")
        + flexcomp(
            'dim="2" count="3 3 1"', CLOTH, ALONE + ' margin=".004" condim="4"', name="c", pos="0 0 .1", euler="0 0 20"
        )
    ),
    "passive": scene(SPHERE + flexcomp(SMALL, CLOTH, ALONE + ' passive="true"', pos="0 0 .152")),
    "nodes of a cell": scene(PLANE + SPHERE + flexcomp('dim="3" dof="trilinear" count="4 4 3"', SOLID, pos="0 0 .2")),
    "nodes of quadratic cells": scene(
        SPHERE + flexcomp('dim="3" dof="quadratic" cellcount="2 1 1" count="5 3 3"', SOLID, pos="0 0 .2")
    ),
    "on a moving body": scene(
        PLANE
        + '<body name="p" pos="0 0 .03"><freejoint/><geom type="box" size=".03 .03 .01"/>'
        + flexcomp('dim="2" count="5 5 1"', CLOTH, inside='<pin id="0 1 2 5 6"/>', pos="0 0 .02")
        + "</body>"
    ),
    "among contacts of geoms": scene(
        PLANE
        + '<body pos="0 0 .03"><freejoint/><geom name="s" size=".04"/></body>'
        + '<body pos=".05 0 .05"><freejoint/><geom name="q" type="box" size=".04 .04 .04"/></body>'
        + flexcomp(SMALL, CLOTH, pos="0 0 .01"),
        extra='<contact><pair geom1="s" geom2="q" condim="4"/></contact>',
    ),
    "signed distance fields": scene(
        '<body pos=".03 0 -.03"><geom type="sdf" mesh="t" conaffinity="0"/></body>'
        '<body pos="-.05 .01 -.02"><joint axis="0 1 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
        '<geom type="sdf" mesh="t" conaffinity="0" euler="20 0 0"/></body>' + flexcomp('dim="2" count="8 8 1"', CLOTH)
    ),
    "sparse rows": scene(SPHERE + flexcomp('dim="2" count="9 9 1"', CLOTH, pos="0 0 .152"), 'cone="elliptic"'),
}
NOISE = {"itself": 0.02, "a rope itself": 0.03, "a solid itself": 0.012}
# Searches of round shapes end within ccd_tolerance, 1e-6, of the distance, and farther off along the surface; where in
# these two models is a matter of rounding.
# Beyond an octree's box MuJoCo takes the gradient of its field from differences over 1e-8.
TOLERANCE = {"solids": 1e-4, "flexes": 1e-4, "signed distance fields": 1e-6}


def noise_of(case):
    return next((v for k, v in NOISE.items() if case.startswith(k)), 0.005)


LONG = ("boxes and capsules", "other shapes", "solids", "a solid itself", "plane and sphere, cones", "a rope itself")
LONG += ("boxes and capsules without trees", "itself, near vertices", "nodes of quadratic cells", "on a moving body")


@pytest.mark.parametrize("case", [pytest.param(x, marks=[pytest.mark.slow] if x in LONG else []) for x in CASES])
def test_contacts_and_rows_are_those_of_mujoco(case):
    model = exact(mujoco.MjModel.from_xml_string(CASES[case]))
    m = exact(jaxsim.load_model(CASES[case]))
    start, seen = jaxsim.make_data(m), 0
    for data in states(model, 3, noise_of(case)):
        d = programs()(m, start.replace(qpos=data.qpos, qvel=data.qvel))
        tolerance = TOLERANCE.get(case, 1e-9)
        assert_contacts(d, data, tolerance)
        assert_rows(d, model, data, tolerance)
        seen += data.ncon
    assert seen


def test_of_too_many_contacts_those_are_kept_that_mujoco_keeps():
    xml = scene(
        PLANE
        + SPHERE.replace("<geom", "<geom conaffinity='0' contype='2'")
        + flexcomp('dim="2" count="12 12 1"', CLOTH, ALONE + ' conaffinity="3"', pos="0 0 .01")
    )
    model, m = mujoco.MjModel.from_xml_string(xml), jaxsim.load_model(xml)
    start = jaxsim.make_data(m)
    for data in states(model, 3, 0.003):
        assert data.ncon == 100  # 50 of the plane and 50 of the sphere
        # triangles that share an edge touch the sphere at one point: which of them is kept is a matter of rounding
        assert_contacts(programs()(m, start.replace(qpos=data.qpos)), data, ids=("geom", "flex", "vert"))


@pytest.mark.parametrize("case", ["itself, by a sweep", "flexes"])
def test_the_grid_finds_the_pairs_of_the_table(case, monkeypatch):
    model, m = mujoco.MjModel.from_xml_string(CASES[case]), jaxsim.load_model(CASES[case])
    data = next(states(model, 1, noise_of(case)))
    d = _posed(m, jaxsim.make_data(m).replace(qpos=data.qpos))
    found = []
    for limit in (1 << 15, 0):
        monkeypatch.setattr(pairs, "TABLE_MAX_PAIRS", limit)
        near = [jax.jit(lambda d, r=r: pairs.near_elements(m, d, r))(d) for r in pairs.relations(m)]
        assert not any(int(x.dropped) for x in near)
        found.append([{frozenset(map(int, p)) for p in np.asarray(x.element)[np.asarray(x.real)]} for x in near])
    assert found[0] == found[1] and any(found[0])


def test_sensors_of_touch_and_contact_know_flexes():
    ball = SPHERE.replace("<body>", '<body name="b">').replace("</body>", '<site name="s" size=".2"/></body>')
    extra = """<sensor><touch site="s"/><contact body1="b" data="found force dist pos normal" num="3" reduce="mindist"/>
      <contact site="s" data="found" num="1"/><contact subtree1="b" data="force" reduce="netforce"/></sensor>"""
    xml = scene(ball + flexcomp(SMALL, CLOTH, pos="0 0 .152"), extra=extra)
    model, m = exact(mujoco.MjModel.from_xml_string(xml)), exact(jaxsim.load_model(xml))
    start = jaxsim.make_data(m)
    for data in states(model, 2, 0.005):
        assert data.sensordata[0] > 0
        d = programs()(m, start.replace(qpos=data.qpos, qvel=data.qvel))
        np.testing.assert_allclose(d.sensordata, data.sensordata, rtol=1e-6, atol=1e-7)


def test_worlds_of_a_batch_find_their_own_contacts():
    xml = scene(PLANE + flexcomp('dim="2" count="9 9 1"', CLOTH, 'selfcollide="none" internal="true"', pos="0 0 .009"))
    model, m = mujoco.MjModel.from_xml_string(xml), jaxsim.load_model(xml)
    start = jaxsim.make_data(m)
    worlds = [*states(model, 2, 0.0005), *states(model, 1, 0.02)]
    qpos = np.stack([data.qpos for data in worlds])
    batch = jax.jit(jax.vmap(lambda q: jaxsim.stages.collision(m, _posed(m, start.replace(qpos=q)))))(qpos)
    assert min(data.ncon for data in worlds) < 50 <= max(data.ncon for data in worlds)
    for i, data in enumerate(worlds):
        assert_contacts(jax.tree.map(lambda x, i=i: x[i], batch), data, ids=("geom", "flex", "elem", "vert"))


def _posed(m, d):
    return jaxsim.stages.flex(m, jaxsim.com_pos(m, jaxsim.kinematics(m, d)))


def test_contacts_beyond_the_capacity_are_counted():
    xml = scene(PLANE + flexcomp('dim="2" count="5 5 1"', CLOTH, pos="0 0 .005"))
    m = jaxsim.load_model(xml, max_contacts=20)
    d = programs()(m, jaxsim.make_data(m))
    assert (int(d.ncon), int(d.overflow_contacts), int(d.maxuse_con)) == (20, 5, 25)
    assert jaxsim.suggest_capacity(m, d).max_contacts >= 25


def test_a_flat_field_holds_a_cloth_as_a_plane_does():
    field = '<asset><hfield name="h" nrow="3" ncol="3" size=".5 .5 .1 .1" elevation="0 0 0 0 0 0 0 0 0"/></asset>'
    cloth = flexcomp('dim="2" count="3 3 1"', CLOTH, pos=".02 .03 -.004")
    m = jaxsim.load_model(f'<mujoco>{field}<worldbody><geom type="hfield" hfield="h"/>{cloth}</worldbody></mujoco>')
    d = programs()(m, jaxsim.make_data(m))
    n = int(d.ncon)
    assert n and np.unique(np.asarray(d.contact.elem[:n, 1])).tolist() == list(range(8))
    deepest = [np.min(np.where(np.asarray(d.contact.elem[:n, 1]) == e, d.contact.dist[:n], 0)) for e in range(8)]
    np.testing.assert_allclose(deepest, -0.014, atol=1e-6)
    np.testing.assert_allclose(d.contact.frame[np.argmin(d.contact.dist), :3], [0, 0, 1], atol=1e-5)
