"""Rangefinders of sites and cameras, with all their data fields, compared with the reference's."""

import mujoco
import numpy as np

import jaxsim
from tests.engine.sensor_cases import sensordata

ALL = "dist dir origin point normal depth"
XML = f"""
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 1" pos="0 0 -1"/>
    <camera name="far" pos="0 -3 1" xyaxes="1 0 0 0 .3 1" resolution="5 4" fovy="40"/>
    <camera name="lens" pos="0 3 1" xyaxes="-1 0 0 0 -.3 1" resolution="4 3" focal=".01 .02" sensorsize=".02 .01"
      principal=".001 .002"/>
    <camera name="parallel" pos="0 -3 1" xyaxes="1 0 0 0 .3 1" resolution="4 3" projection="orthographic" fovy="2"/>
    <body pos=".2 0 .3" euler="20 30 10">
      <freejoint/>
      <geom type="capsule" size=".2 .4"/>
      <geom type="box" size=".1 .2 .3" pos="1 0 0" mass="9"/>
      <site name="up" pos="0 0 .1"/>
      <site name="down" pos=".2 0 .1" euler="180 0 20"/>
      <camera name="eye" pos="0 0 .5" resolution="3 2" euler="0 90 0"/>
    </body>
    <body pos="0 .5 1.5"><joint type="ball"/><geom type="ellipsoid" size=".3 .5 .2" pos=".3 0 0"/></body>
  </worldbody>
  <sensor>
    <rangefinder site="down"/>
    <rangefinder camera="far" data="{ALL}"/>
    <rangefinder site="up" data="{ALL}"/>
    <rangefinder camera="lens" data="depth"/>
    <rangefinder camera="parallel" data="dist origin normal depth"/>
    <rangefinder camera="eye" data="dist point" cutoff="1.5"/>
    <rangefinder site="down" data="point normal" cutoff=".5"/>
  </sensor>
</mujoco>
"""


def test_every_field_of_every_rangefinder_is_the_references():
    model = mujoco.MjModel.from_xml_string(XML)
    ours, theirs = sensordata(model, jaxsim.load_model(XML), count=4)
    assert (theirs == -1).any()
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
