"""Length ranges found in numpy: every kind of thing that can move or hold, against MuJoCo's."""

import mujoco
import numpy as np
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.compiler.lengthrange import pull, ranges
from jaxsim.core.errors import ModelError
from jaxsim.mjcf import read
from validation.compare import assert_models_equal

FINGER = """
<mujoco>
  <compiler><lengthrange mode="all" inttotal="1.5" interval=".5" tolrange="10" {settings}/></compiler>
  <option {option}/>
  <default><joint armature=".01"/><geom mass=".2"/></default>
  <worldbody>
    <site name="hook" pos=".1 0 1.2"/>
    <body pos="0 0 1" euler="10 0 20"><joint name="a" axis="1 2 0" pos=".02 .1 0" range="-60 40" ref="5"/>
      <joint name="s" type="slide" axis="0 1 1" range="-.1 .2" solreflimit="-300 -20"/>
      <geom type="box" size=".1 .03 .05" pos=".1 .02 0" euler="0 30 10"/>
      <geom name="ball" type="sphere" size=".08" pos=".1 0 .1"/>
      <site name="one" pos=".05 .03 .2"/>
      <body pos=".25 0 0"><geom name="peg" type="cylinder" size=".04 .1" euler="90 0 0"/>
        <body pos=".05 0 0"><joint name="b" axis="0 1 0" range="-10 90" solimplimit=".8 .99 .1 .3 3"/>
          <geom type="capsule" size=".03" fromto="0 0 0 .2 0 .05"/>
          <site name="two" pos=".1 0 .06"/><site name="side" pos="-.05 0 .08"/>
          <body pos=".2 0 0"><joint name="c" axis="0 1 .2" range="-5 70" margin=".1"/>
            <geom type="ellipsoid" size=".05 .03 .02" pos=".05 0 0"/>
            <site name="three" pos=".08 0 .03"/></body></body></body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="bent" range="1.1 1.27"><site site="hook"/><geom geom="ball"/><site site="one"/>
      <geom geom="peg" sidesite="side"/><site site="two"/>
      <pulley divisor="2"/><site site="one"/><site site="three"/></spatial>
    <spatial name="plain" range=".3 .55" limited="true" margin=".02"><site site="one"/><site site="three"/></spatial>
    <fixed name="sum"><joint joint="b" coef="2"/><joint joint="c" coef="-.5"/></fixed>
  </tendon>
  <equality>{equality}</equality>
  <actuator>
    <muscle name="m" tendon="bent" gear="2"/><motor name="t" tendon="sum"/><motor name="p" tendon="plain" gear="-1"/>
    <motor name="j" jointinparent="s" gear="3"/><motor name="k" joint="b" armature=".02"/>
  </actuator>
</mujoco>
"""
COUPLING = '<joint joint1="c" joint2="b" polycoef=".1 .5 .2 0 .1"/><joint joint1="s" active="false"/>'
CASES = {
    "plain": {},
    "coupled": {"equality": COUPLING},
    "weak": {"settings": 'maxforce=".5" accel="50"'},
    "by steps": {"settings": 'timestep=".003" timeconst=".3" uselimit="true"'},
    "runge-kutta": {"option": 'integrator="RK4" density="1000"'},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_ranges_equal_mujoco(case):
    text = FINGER.format(**{"settings": "", "option": "", "equality": "", **case})
    spec = read(text)
    assert_models_equal(compile_spec(spec), mujoco.MjModel.from_xml_string(text))


FREE = """
<mujoco>
  <compiler><lengthrange mode="all" inttotal="2" interval=".5" tolrange="10"/></compiler>
  <option density="9"/>
  <worldbody>
    <site name="hook" pos="0 .2 2"/>
    <body pos="0 0 1" euler="10 20 30"><freejoint/><geom type="box" size=".1 .2 .3" pos=".02 0 .03"/>
      <site name="one" pos=".1 .2 .3"/>
      <body pos=".2 0 0"><joint type="ball" pos="-.05 0 .01" armature=".01"/>
        <geom type="capsule" size=".05" fromto="0 0 0 .4 .1 0"/><site name="two" pos=".4 .1 .1"/>
        <body pos=".4 .1 0"><joint name="h" axis="0 1 1" range="-30 50"/><geom size=".1" pos=".1 0 0"/></body></body>
    </body>
  </worldbody>
  <tendon><spatial name="t" range=".2 2"><site site="hook"/><site site="one"/><site site="two"/></spatial></tendon>
  <actuator><muscle tendon="t"/><motor joint="h"/></actuator>
</mujoco>
"""


def test_ranges_of_a_body_that_tumbles_equal_mujoco():
    m = compile_spec(read(FREE.replace('mode="all"', 'mode="none"')))
    assert pull.can_pull(m, [0, 1])
    assert_models_equal(compile_spec(read(FREE)), mujoco.MjModel.from_xml_string(FREE))


@pytest.mark.slow
def test_both_ways_of_pulling_agree():
    text = FINGER.format(settings="", option="", equality=COUPLING).replace('inttotal="1.5"', 'inttotal=".1"')
    m = compile_spec(read(text.replace('mode="all"', 'mode="none"')))
    m = m.replace(opt=m.opt.replace(disableflags=int(ranges.DISABLE_ALL_BUT_LIMITS), timestep=0.01))
    options = {"accel": 20.0, "timeconst": 1.0, "maxforce": 0.0}
    assert pull.can_pull(m, [0, 1])
    ours, engines = (way(m, [0, 1], 10, 0.01, options)[0] for way in (pull.pull, ranges.pull_by_engine))
    np.testing.assert_allclose(ours, engines, rtol=0, atol=1e-10)


@pytest.mark.parametrize("attributes", ['inttotal="1e300"', 'timestep="1e-300"', 'inttotal="20000" timestep=".01"'])
def test_endless_searches_are_refused(attributes):
    text = FINGER.format(settings="", option="", equality="").replace('inttotal="1.5"', attributes)
    with pytest.raises(ModelError, match=r"muscle 'm'.*more than 1000000 steps"):
        compile_spec(read(text))


def test_motion_that_diverges_is_an_error():
    text = FINGER.format(settings='accel="1e200"', option="", equality="")
    with pytest.raises(ModelError, match=r"muscle 'm'.*unstable"):
        compile_spec(read(text))
