"""Flexes from a few numbers, against MuJoCo's."""

import re

import mujoco
import pytest

from jaxsim.core.errors import ModelError, UnsupportedError
from jaxsim.mjcf import expand, read, save_mjcf
from tests.mjcf.test_writer import differences

POINTS = 'point="0 0 0 1 0 0 0 1 0 5 5 5 0 0 1" element="0 1 2 0 1 4"'
TETS = 'point="0 0 0 1 0 0 0 1 0 0 0 1" element="0 1 2 3"'


def model(attrs, inside="", around="{}"):
    """A model with one flexcomp in a named body."""
    flexcomp = f'<flexcomp name="f" spacing=".1 .2 .3" {attrs}>{inside}</flexcomp>'
    return f"""<mujoco><default><joint damping="3"/><equality solref=".5 1"/>
      <default class="c"><joint armature="2"/></default></default>
      <asset><texture name="t" type="2d" builtin="flat" width="2" height="2"/><material name="m" texture="t"/></asset>
      <worldbody><body name="p" pos="0 0 1" childclass="c"><geom size="1"/>
      {around.format(flexcomp)}</body></worldbody></mujoco>"""


CASES = [
    ('type="grid" dim="1" count="4 1 1"', ""),
    ('type="circle" dim="1" count="6 1 1" euler="10 20 30"', ""),
    ('type="grid" dim="2" count="3 4 1" pos="1 2 3" zaxis="1 1 0"', '<pin id="0 1"/>'),
    ('type="grid" dim="2" count="3 4 1" material="m" mass="5"', '<pin gridrange="0 0 1 1" grid="2 3"/>'),
    ('type="grid" dim="3" count="3 3 2" axisangle="1 0 0 30" rgba="1 0 0 1"', '<pin grid="0 0 0" range="3 5"/>'),
    ('type="grid" dim="3" count="3 3 2" material="m" rigid="true" xyaxes="0 1 0 1 0 0"', ""),
    ('type="square" count="3 3 1"', '<edge equality="true" solref=".1 1" damping="2"/>'),
    ('type="disc" count="5 5 1"', '<edge equality="vert"/><contact condim="4" selfcollide="none"/>'),
    ('type="box" dim="3" count="3 4 3"', '<elasticity young="5e3" poisson=".1"/>'),
    ('type="box" dim="2" count="3 4 3" radius=".01"', ""),
    ('type="cylinder" dim="3" count="4 4 3" dof="radial"', ""),
    ('type="ellipsoid" dim="3" count="4 4 4" dof="radial" material="m"', ""),
    ('type="ellipsoid" dim="2" count="4 3 4"', ""),
    ('type="grid" dim="2" count="3 3 1" dof="2d"', '<pin id="4"/>'),
    (f'type="direct" dim="2" {POINTS} scale="2 3 4"', '<pin id="1"/>'),
    (f'type="direct" dim="3" {TETS} inertiabox=".1"', ""),
]


@pytest.mark.parametrize("attrs, inside", CASES)
def test_flexes_are_those_of_mujoco(attrs, inside):
    text = model(attrs, inside)
    flat = save_mjcf(expand(read(text)))
    assert differences(mujoco.MjModel.from_xml_string(text), mujoco.MjModel.from_xml_string(flat)) == []


def test_a_frame_around_has_no_effect_as_in_mujoco():
    text = model('dim="2" count="3 3 1"', "", '<frame pos="1 0 0">{}</frame>')
    flat = save_mjcf(expand(read(text)))
    assert differences(mujoco.MjModel.from_xml_string(text), mujoco.MjModel.from_xml_string(flat)) == []


@pytest.mark.parametrize(
    "attrs, inside, words",
    [
        ('dim="4"', "", "flexcomp 'f': dim must be 1, 2 or 3"),
        ('count="0 1 1"', "", "flexcomp 'f': count is too small"),
        (
            'spacing="0 0 0" type="grid" radius="1"',
            "",
            "flexcomp 'f': spacing must not be smaller than twice the radius plus the",
        ),
        ('mass="0"', "", "flexcomp 'f': scale, mass and inertiabox must be positive"),
        (
            'type="direct" dim="2" point="0 0 0" element="0 1 2"',
            "",
            "flexcomp 'f': an element names a point that does not exist",
        ),
        ('type="direct" dim="2"', "", "flexcomp 'f': a flexcomp needs points and elements"),
        (
            'type="direct" dim="2" point="0 0" element="0 0 0"',
            "",
            "flexcomp 'f': point needs three numbers for each point",
        ),
        (f'type="direct" dim="3" {POINTS[:-2]}"', "", "flexcomp 'f': an element has 4 points"),
        ('count="3 3 1"', '<pin id="9"/>', "flexcomp 'f': a pin names a point that does not exist"),
        ('count="3 3 1"', '<pin range="1"/>', "flexcomp 'f': the pins' range needs a multiple of 2 numbers"),
        ('count="3 3 1"', '<pin grid="3 0"/>', "flexcomp 'f': a pin lies outside of the grid"),
        (
            'type="disc" count="3 3 1"',
            '<pin grid="0 0"/>',
            "flexcomp 'f': grid and gridrange pin points of grids and nodes only",
        ),
        ('count="3 3 1" zaxis="0 0 0"', "", "flexcomp 'f': zaxis is zero"),
        (
            'count="3 3 1"',
            '<edge equality="true"/><elasticity young="1"/>',
            "flexcomp 'f': edge constraints and elasticity (young) exclude each other",
        ),
        ('type="mesh" dim="3" file="a.obj"', "", "flexcomp 'f': a flexcomp of type mesh and dim 3 needs origin"),
    ],
)
def test_wrong_flexcomps_are_refused(attrs, inside, words):
    text = model(attrs, inside).replace('spacing=".1 .2 .3" spacing', "spacing")
    if 'spacing="0 0 0"' in attrs:
        text = text.replace('spacing=".1 .2 .3"', "")
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ModelError, match=re.escape(words)):
        expand(read(text))


NODES = 'dim="3" count="3 3 3" dof="trilinear" cellcount="2 1 1" euler="10 20 .1"'
KEPT = {
    "a pin": '<elasticity young="9"/><pin id="0"/>',
    "no pin": '<elasticity young="9"/>',
    "equality": '<pin id="2"/><edge equality="strain"/>',
    "plugin": '<pin id="0"/><plugin plugin="mujoco.elasticity.cable"><config key="twist" value="3"/></plugin>',
}


def with_plugins(inside):
    """A model with one flexcomp that may have a plugin."""
    text = model(NODES, f'<contact selfcollide="none"/>{inside}')
    return text.replace("<worldbody>", '<extension><plugin plugin="mujoco.elasticity.cable"/></extension><worldbody>')


@pytest.mark.parametrize("inside", KEPT.values(), ids=KEPT)
def test_flexes_with_nodes_are_saved_flat_as_flexcomps_where_nodes_are_pinned(inside):
    text = with_plugins(inside)
    saved = save_mjcf(expand(read(text)))
    assert ("flexcomp" in saved) == ("pin" in inside)
    first, second = (mujoco.MjModel.from_xml_string(x) for x in (text, saved))
    assert differences(first, second) == []


@pytest.mark.parametrize("case", ["a pin", "equality"])
def test_attached_flexcomps_with_pinned_nodes_are_saved_flat(case):
    assets = {"m.xml": with_plugins(KEPT[case]).encode()}
    text = """<mujoco><compiler angle="radian"/><asset><model name="m" file="m.xml"/></asset>
      <worldbody><body name="q"><geom size="1"/></body><attach model="m" prefix="x_"/></worldbody></mujoco>"""
    saved = save_mjcf(expand(read(text, assets)))
    assert 'flexcomp name="x_f"' in saved
    assert differences(mujoco.MjModel.from_xml_string(text, assets), mujoco.MjModel.from_xml_string(saved)) == []


def test_attached_flexcomps_with_pinned_nodes_and_a_plugin_are_not_saved_flat():
    spec = read("<mujoco/>")
    spec.attach(read(with_plugins(KEPT["plugin"])), prefix="x_")
    with pytest.raises(UnsupportedError, match=r"flex 'x_f'.*pinned nodes.*prefix, with a plugin"):
        save_mjcf(spec)


def test_pins_that_several_elements_say_count_together():
    spec = expand(read(model('count="3 3 1"', '<pin range="1"/><pin range="3"/>')))
    bodies = spec.find("flex", "f").attrs["body"]
    assert [i for i, name in enumerate(bodies) if name == "p"] == [1, 2, 3]


def test_a_range_of_pins_that_runs_backwards_pins_nothing():
    spec = expand(read(model('count="3 3 1"', '<pin range="3 1"/>')))
    assert "p" not in spec.find("flex", "f").attrs["body"]
