"""Models that are wrong are rejected, as by MuJoCo, with an error that says where."""

import mujoco
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.core.errors import ModelError
from jaxsim.mjcf import read
from tests.compiler.reject_cases import CASES


@pytest.mark.parametrize("name", CASES)
def test_wrong_model_is_rejected(name):
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(CASES[name])
    with pytest.raises(ModelError):
        compile_spec(read(CASES[name]))


def test_error_names_line_element_and_nearest_name():
    text = """<mujoco>
      <worldbody><body name="torso"><joint name="hip"/><geom size=".1"/></body></worldbody>
      <actuator><motor name="m" joint="hop"/></actuator>
    </mujoco>"""
    with pytest.raises(ModelError, match=r"3: motor 'm': .*'hop'.*did you mean 'hip'"):
        compile_spec(read(text))
