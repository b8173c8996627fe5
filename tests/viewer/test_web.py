"""Interactive viewer without a browser: its scene and its panel."""

import socket

import numpy as np
import pytest

import jaxsim
from jaxsim.tools.cli import main
from jaxsim.viewer.web import Viewer

SCENE = """<mujoco model="scene"><option timestep="0.01"/>
  <asset><texture name="t" type="2d" builtin="checker" width="8" height="8"/><material name="t" texture="t"/>
    <mesh name="tetra" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" material="t"/>
    <body name="ball" pos="0 0 .19"><freejoint/><geom type="sphere" size=".2" mass="1"/><site name="a"/></body>
    <body name="arm" pos="1 0 1"><joint name="j" axis="0 1 0"/>
      <geom name="arm" type="capsule" size=".05" fromto="0 0 0 .4 0 0"/>
      <geom type="mesh" mesh="tetra" contype="0" conaffinity="0"/></body>
    <geom type="box" size=".1 .1 .1" pos="-1 0 0" rgba="1 0 0 .5"/><geom type="box" size="1 1 1" group="4" pos="9 0 0"/>
    <site name="b" pos="0 0 1"/>
  </worldbody>
  <tendon><spatial name="rope"><site site="a"/><site site="b"/></spatial></tendon>
  <actuator><motor name="motor" joint="j" ctrlrange="-2 2"/></actuator>
  <sensor><jointpos name="angle" joint="j"/><framepos name="place" objtype="body" objname="ball"/></sensor>
</mujoco>"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="module")
def shared():
    viewer = Viewer(jaxsim.load_model(SCENE), port=free_port(), paused=True)
    assert viewer.ready.wait(120)
    yield viewer
    viewer.server.stop()


@pytest.fixture
def viewer(shared):
    shared.drag.value = "none"
    shared.reset()
    return shared


def test_geoms_of_shown_groups_become_meshes(viewer):
    m = viewer.m
    assert {g for g, h in viewer.geoms.items() if h.visible} == {g for g in range(m.ngeom) if m.geom_group[g] < 3}
    viewer.groups[4].value = True
    viewer._show_groups()
    assert all(h.visible for h in viewer.geoms.values())
    viewer.groups[4].value = False
    viewer._show_groups()
    assert np.allclose(viewer.geoms[1].position, viewer.data.geom_xpos[1])


def test_steps_move_geoms_and_reset_returns_them(viewer):
    viewer.sliders[0].value = 2.0
    viewer.advance(20)
    viewer.draw()
    assert np.isclose(float(viewer.data.time), 0.2)
    arm = viewer.geoms[viewer.m.name2id("geom", "arm")]
    moved = np.array(arm.wxyz)
    viewer.reset()
    assert not np.allclose(moved, arm.wxyz, atol=1e-3) and viewer.sliders[0].value == 0.0
    assert float(viewer.data.time) == 0


def test_a_dragged_body_goes_to_its_handle(viewer):
    viewer.drag.value = "1 ball"
    viewer._target = np.array([0.3, 0.0, 0.6])
    viewer.advance(200)
    assert np.allclose(viewer.data.xpos[1], [0.3, 0, 0.6 - 9.81 / 200], atol=0.02)
    viewer.draw()
    assert viewer._handles["pull"].visible


def test_contacts_forces_axes_and_tendons_are_lines_that_can_be_hidden(viewer):
    for box in viewer.show.values():
        box.value = True
    viewer.advance(100)
    viewer.draw()
    lines = {name: viewer._handles[name] for name in ("contacts", "forces", "axes", "tendon_0")}
    assert all(handle.visible for handle in lines.values())
    arrow = np.diff(np.asarray(lines["forces"].points), axis=1)[0, 0]
    assert arrow[2] > 0 and abs(arrow[0]) < 0.05 * arrow[2]  # the ball's weight, supported by the floor
    for box in viewer.show.values():
        box.value = False
    viewer.draw()
    assert not any(handle.visible for handle in lines.values())


def test_sensors_are_plotted_over_time(viewer):
    viewer.sensor.value = "1 place"
    for _ in range(3):
        viewer.advance(2)
    viewer.draw()
    assert len(viewer.plot.data) == 4
    assert np.allclose(viewer.plot.data[0], [0.02, 0.04, 0.06])
    assert np.isclose(viewer.plot.data[3][-1], float(viewer.data.sensordata[3]))


def test_model_without_actuators_sensors_or_geoms_can_be_viewed():
    viewer = Viewer(jaxsim.load_model("<mujoco><worldbody/></mujoco>"), port=free_port(), paused=True)
    viewer.draw()
    viewer.server.stop()
    assert viewer.sliders == [] and viewer.plot is None


@pytest.mark.parametrize(
    "host, port, words", [("127.0.0.1", "70000", "end at 65535"), ("203.0.113.1", "8080", "cannot")]
)
def test_a_port_or_an_address_that_cannot_be_used_is_one_line(tmp_path, capsys, host, port, words):
    model = tmp_path / "m.xml"
    model.write_text('<mujoco><worldbody><geom size=".1"/></worldbody></mujoco>')
    assert main(["view", str(model), "--host", host, "--port", port]) == 1
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
