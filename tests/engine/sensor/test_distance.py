"""Sensors of distances between geoms and between bodies, compared with MuJoCo's."""

import mujoco
import numpy as np
import pytest

import jaxsim
from tests.engine.sensor_cases import sensordata
from validation.models.features import DISTANCE_PAIRS, DISTANCES


@pytest.mark.parametrize("cutoff", [0, 0.45, 10])
def test_distance_normal_and_segment_equal_mujocos(cutoff):
    kinds = ("distance", "normal", "fromto")
    sensors = "\n".join(f'<{kind} {pair} cutoff="{cutoff}"/>' for pair in DISTANCE_PAIRS for kind in kinds)
    xml = DISTANCES.format(sensors=sensors)
    model = mujoco.MjModel.from_xml_string(xml)
    ours, theirs = sensordata(model, jaxsim.load_model(xml), count=4, skip=25)
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)
    if cutoff == 0.45:
        assert (theirs == cutoff).any() and (theirs[:, 0] != cutoff).any()
