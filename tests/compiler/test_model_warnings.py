"""Warnings: what is allowed and probably not meant."""

import warnings

import mujoco
import pytest

import jaxsim
from jaxsim.compiler import compile_spec
from jaxsim.mjcf import read
from validation.compare import assert_models_equal

MESH = '<asset><mesh name="m" builtin="sphere" params="1"/></asset>'
CASES = {
    "unused mesh": (f"<mujoco>\n{MESH}</mujoco>", "2: mesh 'm': no geom uses"),
    "suspicious inertia": (
        '<mujoco><worldbody>\n<body name="b"><joint/><geom size=".1"/>'
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>',
        "2: body 'b': suspicious inertia 1",
    ),
    "attribute of a frame": (
        '<mujoco><worldbody>\n<frame foo="1"><geom size="1"/></frame></worldbody></mujoco>',
        "2: frame: unknown attribute 'foo'",
    ),
    "attribute of a replicate": (
        '<mujoco><worldbody>\n<replicate count="2" prefix="A"><geom size="1"/></replicate></worldbody></mujoco>',
        "2: replicate: unknown attribute 'prefix'",
    ),
    "body at the root": ('<mujoco>\n<body name="x"><geom size="1"/></body></mujoco>', "2: body: a body outside"),
    "frame at the root": ('<mujoco>\n<frame name="x"><geom size="1"/></frame></mujoco>', "2: frame.*outside"),
    "flex without forces": (
        '<mujoco><worldbody>\n<flexcomp name="f" type="grid" count="2 2 1" spacing="1 1 1" radius=".1"/></worldbody>'
        "</mujoco>",
        "2: flex 'f': it is not rigid and has no",
    ),
    "not a number": ('<mujoco><worldbody>\n<body name="b" pos="nan 0 0"/></worldbody></mujoco>', "'pos' has a NaN"),
    "range that falls": (
        '<mujoco><worldbody><body>\n<joint name="j" range="90 -90"/><geom size="1"/></body></worldbody></mujoco>',
        "2: joint 'j': 'range' falls from 90 to -90",
    ),
    "time step of zero": ('<mujoco>\n<option timestep="0"/></mujoco>', "2: option: the time step is 0"),
    "solref of both signs": (
        '<mujoco><worldbody>\n<geom size="1" solref="-1 1"/></worldbody></mujoco>',
        "2: geom: attribute 'solref': both numbers",
    ),
    "colours to 255": (
        '<mujoco><asset>\n<material name="m" rgba="255 0 0 1"/></asset></mujoco>',
        "2: material 'm': .* divide by 255",
    ),
    "infinite": (
        '<mujoco><worldbody>\n<site pos="inf 0 0"/></worldbody></mujoco>',
        "2: site: attribute 'pos' is infinite",
    ),
    "inertial in a replicate": (
        '<mujoco><worldbody><body><geom size="1"/><replicate count="2">\n<inertial pos="0 0 1" mass="2"/></replicate>'
        "</body></worldbody></mujoco>",
        "2: inertial: an inertial inside of a replicate",
    ),
    "wrong values in a body at the root": (
        '<mujoco>\n<body pos="a"><geom mass=""/></body></mujoco>',
        "2: body: a body",
    ),
    "second inertial": (
        '<mujoco><worldbody><body><frame><inertial pos="0 0 0" mass="1"/>\n<inertial pos="0 0 0" mass="1"/></frame>'
        "</body></worldbody></mujoco>",
        "2: inertial: a second inertial",
    ),
    "config next to an instance": (
        '<mujoco><extension><plugin plugin="mujoco.elasticity.cable"><instance name="i"/></plugin></extension>'
        '<worldbody>\n<body><plugin instance="i"><config key="bend" value="1"/></plugin></body></worldbody></mujoco>',
        "2: plugin: config next to an instance",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_warning_says_where_and_what(name):
    text, pattern = CASES[name]
    with pytest.warns(jaxsim.ModelWarning, match=pattern):
        compile_spec(read(text))


@pytest.mark.parametrize("name", ["inertial in a replicate", "wrong values in a body at the root", "second inertial"])
def test_what_is_not_read_is_not_read_by_mujoco(name):
    text = CASES[name][0]
    with pytest.warns(jaxsim.ModelWarning):
        assert_models_equal(compile_spec(read(text)), mujoco.MjModel.from_xml_string(text))


def test_statistics_that_are_not_numbers_are_computed():
    text = '<mujoco><statistic meansize="nan" center="nan 1 2"/><worldbody><geom size="3"/></worldbody></mujoco>'
    with pytest.warns(jaxsim.ModelWarning, match="has a NaN"):
        assert_models_equal(compile_spec(read(text)), mujoco.MjModel.from_xml_string(text))


@pytest.mark.parametrize(
    "inside, message",
    [
        ('<worldbody>\n<body euler="inf 0 0"/></worldbody>', "2: body: an angle of euler is infinite"),
        ('<keyframe>\n<key qvel="nan"/></keyframe>', "2: key: attribute 'qvel' has a NaN; leave"),
    ],
)
def test_what_mujoco_makes_nothing_of_is_an_error(inside, message):
    with pytest.raises(jaxsim.ModelError, match=message):
        compile_spec(read(f"<mujoco>{inside}</mujoco>"))


def test_model_that_is_meant_gives_no_warning():
    text = f"""<mujoco>{MESH}<worldbody><body><joint/><geom type="mesh" mesh="m"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".4 .4 .4"/></body></worldbody></mujoco>"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_spec(read(text))
