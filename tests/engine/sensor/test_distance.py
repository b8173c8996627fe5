"""Sensors of distances between geoms and between bodies, compared with the reference's."""

import mujoco
import numpy as np
import pytest

import jaxsim
from tests.engine.sensor_cases import sensordata

PAIRS = (
    'geom1="ball" geom2="tube"',
    'geom1="tube" geom2="ball"',
    'body1="many" body2="other"',
    'geom1="floor" body2="many"',
    'geom1="box" geom2="crate"',
    'body1="other" geom2="floor"',
)
XML = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 1" pos="0 0 -.5"/>
    <body name="many" pos="0 0 .2"><freejoint/>
      <geom name="ball" size=".1"/><geom name="box" type="box" size=".1 .2 .15" pos=".3 0 0"/>
    </body>
    <body name="other" pos=".1 .5 .3"><freejoint/>
      <geom name="tube" type="capsule" size=".1 .2"/>
      <geom name="crate" type="box" size=".1 .1 .1" pos="0 .2 .2" euler="10 20 30"/>
    </body>
  </worldbody>
  <sensor>
    {sensors}
  </sensor>
</mujoco>
"""


@pytest.mark.parametrize("cutoff", [0, 0.45, 10])
def test_distance_normal_and_segment_are_the_references(cutoff):
    kinds = ("distance", "normal", "fromto")
    sensors = "\n".join(f'<{kind} {pair} cutoff="{cutoff}"/>' for pair in PAIRS for kind in kinds)
    xml = XML.format(sensors=sensors)
    model = mujoco.MjModel.from_xml_string(xml)
    ours, theirs = sensordata(model, jaxsim.load_model(xml), count=4, skip=25)
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)
    if cutoff == 0.45:
        assert (theirs == cutoff).any() and (theirs[:, 0] != cutoff).any()
