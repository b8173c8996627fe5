"""The plugin mujoco.sensor.touch_grid, compared with MuJoCo's."""

import mujoco
import numpy as np
import pytest

import jaxsim
from tests.engine.sensor_cases import sensordata
from validation.models.features import TOUCH_GRID


@pytest.mark.parametrize(("gamma", "nchannel", "cutoff"), [(0, 1, 0), (0.6, 6, 2)])
def test_forces_are_binned_as_in_mujoco(gamma, nchannel, cutoff):
    xml = TOUCH_GRID.format(gamma=gamma, nchannel=nchannel, cutoff=cutoff)
    model = mujoco.MjModel.from_xml_string(xml)
    ours, theirs = sensordata(model, jaxsim.from_mujoco(model), count=3, skip=60, noise=0.1)
    assert (theirs != 0).sum() > 3
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
