"""Rangefinders of sites and cameras, with all their data fields, compared with MuJoCo's."""

import mujoco
import numpy as np

import jaxsim
from tests.engine.sensor_cases import sensordata
from validation.models.features import RAYS


def test_every_field_of_every_rangefinder_equals_mujocos():
    model = mujoco.MjModel.from_xml_string(RAYS)
    ours, theirs = sensordata(model, jaxsim.load_model(RAYS), count=4)
    assert (theirs == -1).any()
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
