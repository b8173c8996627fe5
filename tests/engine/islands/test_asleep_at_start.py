"""Bounds that say without the engine that nothing asleep at the start touches what is awake."""

import pytest

from jaxsim.compiler import compile_spec
from jaxsim.engine.islands.asleep_at_start import may_touch_awake
from jaxsim.mjcf import read

SCENE = """<mujoco><option><flag sleep="enable"/></option><worldbody><geom type="plane" size="1 1 1"/>
<body name="a" pos="0 0 .0999" sleep="init"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body name="b" pos="{}" {}><freejoint/><geom type="box" size=".1 .1 .1" euler="0 0 {}"/></body></worldbody>
{}</mujoco>"""
WELD = '<equality><weld body1="a" body2="b"/></equality>'


@pytest.mark.parametrize(
    ("pos", "policy", "turn", "extra", "near"),
    [
        ("0 0 .29", "", 0, "", True),
        ("0 0 .31", "", 0, "", False),
        (".22 0 .1", "", 0, "", False),
        (".22 0 .1", "", 45, "", True),
        ("0 0 .29", 'sleep="init"', 0, "", False),
        ("1 0 .1", "", 0, WELD, True),
    ],
)
def test_a_tree_that_begins_asleep_is_near_one_that_is_awake(pos, policy, turn, extra, near):
    assert may_touch_awake(compile_spec(read(SCENE.format(pos, policy, turn, extra)))) == near
