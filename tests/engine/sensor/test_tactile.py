"""Tactile sensors against geoms of every type that has a signed distance, compared with MuJoCo's."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.sensor.tactile import tactile
from validation.stages import states

GEOMS = {
    "sphere": '<geom size=".1"/>',
    "box": '<geom type="box" size=".1 .08 .06"/>',
    "capsule": '<geom type="capsule" size=".06 .05"/>',
    "ellipsoid": '<geom type="ellipsoid" size=".1 .08 .05"/>',
    "cylinder": '<geom type="cylinder" size=".08 .06"/>',
    "octree": '<geom type="mesh" mesh="ball"/>',
    "mesh without octree": '<geom type="mesh" mesh="plain"/>',
}
XML = """
<mujoco>
  <extension><plugin plugin="mujoco.sdf.torus"><instance name="torus">
    <config key="radius1" value=".12"/><config key="radius2" value=".09"/>
  </instance></plugin></extension>
  <asset>
    <mesh name="torus" vertex="-.2 -.2 -.08  .22 -.2 -.09  -.2 .2 -.09  .2 .2 -.09
                               -.2 -.2 .09  .2 -.2 .09  -.2 .2 .09  .2 .23 .09"/>
    <mesh name="pad" builtin="plate" params="9 9" scale=".3 .3 .1"/>
    <mesh name="ball" builtin="sphere" params="2" scale=".1 .1 .1"/>
    <mesh name="plain" builtin="sphere" params="1" scale=".1 .1 .1"/>
  </asset>
  <worldbody>
    <geom type="plane" size="1 1 1" pos="0 0 -1"/>
    <geom type="sdf" mesh="ball" contype="0" conaffinity="0" pos="0 0 5"/>
    <body pos="0 0 .1"><joint type="slide" axis="0 0 1" stiffness="5000" damping="100"/>
      <joint axis="0 1 .2" stiffness="500" damping="50"/>
      <geom type="box" size=".3 .3 .1" solref=".1 1"/>
      <geom name="pad" type="mesh" mesh="pad" mass="0" contype="0" conaffinity="0" pos="0 0 .2"/>
    </body>
    {bodies}
  </worldbody>
  <sensor><tactile mesh="pad" geom="pad"/></sensor>
</mujoco>
"""


def with_mujocos_contacts(m: jaxsim.Model, data: mujoco.MjData) -> jaxsim.Data:
    """Our data with MuJoCo's poses, velocities and contacts."""
    names = ("geom_xpos", "geom_xmat", "cvel", "subtree_com")
    d = jaxsim.make_data(m).replace(ncon=data.ncon, **{n: getattr(data, n) for n in names})
    geom = np.full(d.contact.geom.shape, -1)
    geom[: data.ncon] = data.contact.geom
    return d.replace(contact=d.contact.replace(geom=geom))


def test_pressure_and_slip_equal_mujocos():
    spots = [(0.2 * (i % 3) - 0.2, 0.2 * (i // 3) - 0.2) for i in range(len(GEOMS))]
    bodies = "\n".join(
        f'<body pos="{x} {y} .27" euler="20 {10 * i} 30"><freejoint/>{geom}</body>'
        for i, ((x, y), geom) in enumerate(zip(spots, GEOMS.values(), strict=True))
    )
    model = mujoco.MjModel.from_xml_string(XML.format(bodies=bodies))
    m = jaxsim.from_mujoco(model, max_contacts=64)
    read = jax.jit(lambda m, d: tactile(m, d, np.zeros(1, int)))
    pressed = np.zeros(m.nsensordata, bool)
    for data in states(model, 3, skip=2, noise=0.2):
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(read(m, with_mujocos_contacts(m, data)), data.sensordata, rtol=1e-7, atol=1e-9)
        pressed |= data.sensordata != 0
    assert pressed.sum() > 20


def test_a_plugins_field_is_read_in_the_frame_of_its_mesh():
    torus = '<freejoint/><geom type="sdf" mesh="torus"><plugin instance="torus"/></geom>'
    model = mujoco.MjModel.from_xml_string(XML.format(bodies=f'<body pos="0 0 .27" euler="0 0 30">{torus}</body>'))
    m, data = jaxsim.from_mujoco(model, max_contacts=64), mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon and (data.sensordata != 0).sum() > 5
    read = jax.jit(lambda m, d: tactile(m, d, np.zeros(1, int)))
    np.testing.assert_allclose(read(m, with_mujocos_contacts(m, data)), data.sensordata, rtol=1e-7, atol=1e-9)


def test_a_height_field_that_it_could_touch_is_refused():
    xml = XML.format(bodies='<geom type="hfield" hfield="h" pos="0 0 -1"/>').replace(
        "<asset>", '<asset><hfield name="h" nrow="3" ncol="3" size="1 1 1 1" elevation="0 0 0 0 1 0 0 0 0"/>'
    )
    m = jaxsim.from_mujoco(mujoco.MjModel.from_xml_string(xml))
    with pytest.raises(jaxsim.UnsupportedError, match="hfield"):
        tactile(m, jaxsim.make_data(m), np.zeros(1, int))
