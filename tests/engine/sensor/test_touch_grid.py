"""The plugin mujoco.sensor.touch_grid, compared with the reference's."""

import mujoco
import numpy as np
import pytest

import jaxsim
from tests.engine.sensor_cases import sensordata

XML = """
<mujoco>
  <extension><plugin plugin="mujoco.sensor.touch_grid"/></extension>
  <worldbody>
    <geom type="plane" size="2 2 1"/>
    <body pos="0 0 .2" euler="5 3 0">
      <freejoint/>
      <geom type="box" size=".2 .15 .1" mass="3"/>
      <site name="pad" pos="0 0 .05"/>
      <body pos="0 0 .25"><joint type="hinge" axis="1 0 0"/><geom size=".16" pos="0 .02 0"/></body>
    </body>
    <body pos=".05 .05 .65"><freejoint/><geom size=".05"/></body>
  </worldbody>
  <sensor>
    <plugin name="one" plugin="mujoco.sensor.touch_grid" objtype="site" objname="pad" cutoff="{cutoff}">
      <config key="size" value="6 5"/><config key="fov" value="170 80"/><config key="gamma" value="{gamma}"/>
      <config key="nchannel" value="{nchannel}"/>
    </plugin>
  </sensor>
</mujoco>
"""


@pytest.mark.parametrize(("gamma", "nchannel", "cutoff"), [(0, 1, 0), (0.6, 6, 2)])
def test_forces_are_binned_as_in_the_reference(gamma, nchannel, cutoff):
    xml = XML.format(gamma=gamma, nchannel=nchannel, cutoff=cutoff)
    model = mujoco.MjModel.from_xml_string(xml)
    ours, theirs = sensordata(model, jaxsim.from_mujoco(model), count=3, skip=60, noise=0.1)
    assert (theirs != 0).sum() > 3
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
