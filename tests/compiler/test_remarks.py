"""Warnings: what is allowed and probably not meant."""

import warnings

import pytest

import jaxsim
from jaxsim.compiler import compile_spec
from jaxsim.mjcf import read

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
    "second inertial": (
        '<mujoco><worldbody><body><frame><inertial pos="0 0 0" mass="1"/>\n<inertial pos="0 0 0" mass="1"/></frame>'
        "</body></worldbody></mujoco>",
        "2: inertial: a second inertial",
    ),
    "config beside an instance": (
        '<mujoco><extension><plugin plugin="mujoco.elasticity.cable"><instance name="i"/></plugin></extension>'
        '<worldbody>\n<body><plugin instance="i"><config key="bend" value="1"/></plugin></body></worldbody></mujoco>',
        "2: plugin: config beside an instance",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_warning_says_where_and_what(name):
    text, pattern = CASES[name]
    with pytest.warns(jaxsim.ModelWarning, match=pattern):
        compile_spec(read(text))


def test_model_that_is_meant_gives_no_warning():
    text = f"""<mujoco>{MESH}<worldbody><body><joint/><geom type="mesh" mesh="m"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".4 .4 .4"/></body></worldbody></mujoco>"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_spec(read(text))
