"""Length ranges of muscles that are found by pulling them to both ends."""

import mujoco
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.core.errors import ModelError
from jaxsim.mjcf import read
from validation.compare import assert_models_equal

ARM = """
<mujoco>
  <compiler><lengthrange timestep=".01" inttotal="{}"/></compiler>
  <worldbody>
    <body pos="0 0 1"><joint name="a" axis="0 1 0" range="-60 40"/>
      <geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/>
      <body pos=".3 0 0"><joint name="b" axis="0 1 0" range="-10 90" damping=".1"/>
        <geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/></body></body>
  </worldbody>
  <actuator><muscle name="x" joint="a"/><muscle name="y" joint="b" gear="2"/></actuator>
</mujoco>
"""


def test_ranges_equal_mujoco():
    text = ARM.format(10)
    assert_models_equal(compile_spec(read(text)), mujoco.MjModel.from_xml_string(text))


@pytest.mark.slow
def test_range_that_does_not_settle_is_an_error():
    text = ARM.format(0.5)
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ModelError, match=r"muscle 'x'.*settle"):
        compile_spec(read(text))
