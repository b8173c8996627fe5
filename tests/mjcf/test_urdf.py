"""URDF, against MuJoCo's reading of it."""

import mujoco
import numpy as np
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.core.errors import ModelError, ModelWarning
from jaxsim.mjcf import expand, read, save_mjcf
from tests.mjcf.test_writer import differences

INERTIAL = """<inertial><origin xyz="1 2 3" rpy=".3 .4 .5"/><mass value="2"/>
  <inertia ixx="1" ixy=".1" ixz="0" iyy="2" iyz="0" izz="2.5"/></inertial>"""
COLLISION = '<collision name="%s"><origin xyz="0 0 1" rpy=".1 .2 .3"/><geometry>%s</geometry></collision>'
SHAPES = [
    '<box size="1 2 3"/>',
    '<sphere radius="1"/>',
    '<cylinder radius="1" length="2"/>',
    '<capsule radius="1" length="2"/>',
]
RED = '<material name="red"><color rgba="1 0 0 1"/></material>'
OBJ = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"


def joint(parent, child, kind, inside=""):
    """A joint between two links."""
    return f"""<joint name="j_{child}" type="{kind}"><origin xyz="1 0 0" rpy="0 1 2"/><parent link="{parent}"/>
      <child link="{child}"/>{inside}</joint>"""


def link(name, shape=0):
    """A link with a mass, a visual and a collision shape."""
    visual = '<visual><geometry><box size="1 1 1"/></geometry><material name="red"/></visual>'
    return f'<link name="{name}">{INERTIAL}{visual}{COLLISION % ("c" + name, SHAPES[shape])}</link>'


TREE = (
    RED
    + "".join(link(name, i % 4) for i, name in enumerate("abcdefg"))
    + joint(
        "a",
        "b",
        "revolute",
        '<axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="30" velocity="3"/>'
        '<dynamics damping=".5" friction=".1"/>',
    )
    + joint("b", "c", "prismatic", '<limit lower="1"/>')
    + joint("c", "d", "fixed")
    + joint("d", "e", "spherical")
    + joint("a", "f", "planar", '<axis xyz="1 1 0"/><dynamics damping="2"/>')
    + joint("a", "g", "continuous")
)
MESH = (
    '<link name="%s">' + INERTIAL + '<collision><geometry><mesh filename="p/t.obj" %s/></geometry></collision></link>'
)


@pytest.mark.parametrize(
    "inside",
    [
        TREE,
        '<mujoco><compiler fusestatic="false" discardvisual="false"/><option timestep=".01">'
        '<flag energy="enable"/></option></mujoco>' + TREE,
        '<link name="world"/>' + link("b") + joint("world", "b", "floating"),
        f'<link name="world">{COLLISION % ("x", SHAPES[1])}</link>'
        + link("b")
        + joint("world", "b", "revolute", '<limit lower="2" upper="1"/>'),
        '<mujoco><compiler strippath="true"/></mujoco>'
        + MESH % ("a", "")
        + MESH % ("b", 'scale="2 2 2"')
        + MESH % ("c", 'scale="1 1 1"')
        + joint("a", "b", "revolute")
        + joint("b", "c", "revolute"),
        link("a") + link("b") + joint("a", "b", "fixed") + link("c") + joint("b", "c", "floating"),
        link("a") + "<gazebo><x/></gazebo><transmission/>",
        "",
    ],
)
def test_robots_are_those_of_mujoco(inside):
    text, assets = f'<robot name="r">{inside}</robot>', {"t.obj": OBJ}
    model = mujoco.MjModel.from_xml_string(text, assets)
    saved = save_mjcf(read(text, assets))
    assert differences(model, mujoco.MjModel.from_xml_string(saved, assets)) == []
    flat = save_mjcf(expand(read(text, assets)))
    assert differences(model, mujoco.MjModel.from_xml_string(flat, assets)) == []


MIMICS = link("a") + link("b") + link("c") + joint("a", "b", "revolute")


def test_a_joint_that_mimics_another_is_held_by_an_equality():
    mimic = joint("a", "c", "prismatic", '<mimic joint="j_b" multiplier="-2" offset="0.1"/>')
    with pytest.warns(ModelWarning, match="joint 'j_c': it mimics the joint 'j_b'.*MuJoCo ignores mimic"):
        spec = read(f'<robot name="r">{MIMICS + mimic}</robot>')
    m = compile_spec(spec)
    assert (m.neq, m.eq_type[0], m.eq_obj1id[0], m.eq_obj2id[0]) == (1, mujoco.mjtEq.mjEQ_JOINT, 1, 0)
    np.testing.assert_array_equal(m.eq_data[0, :5], [0.1, -2, 0, 0, 0])


@pytest.mark.parametrize(
    "other, kind, reason", [("z", "revolute", "'z', which does not exist"), ("j_b", "planar", "one number")]
)
def test_a_joint_that_cannot_mimic_is_refused(other, kind, reason):
    mimic = joint("a", "c", kind, f'<mimic joint="{other}"/>')
    with pytest.raises(ModelError, match=f"joint 'j_c': .*{reason}"):
        read(f'<robot name="r">{MIMICS + mimic}</robot>')


@pytest.mark.parametrize(
    "inside",
    [
        "<xacro:arm/>",
        '<link name="${prefix}a"/>',
        '<link name="a"><visual><geometry><mesh filename="$(find arm)/a.obj"/></geometry></visual></link>',
    ],
)
@pytest.mark.parametrize("declared", ['xmlns:xacro="http://www.ros.org/wiki/xacro"', ""])
def test_xacro_that_is_not_expanded_is_refused(inside, declared):
    with pytest.raises(ModelError, match="run it first: xacro"):
        read(f'<robot name="r" {declared}>{inside}</robot>')


def test_a_declared_namespace_alone_is_no_xacro():
    assert read(f'<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">{link("a")}</robot>').modelname == "r"


def test_a_mesh_in_a_package_gets_the_remedy_and_loads_with_it():
    mesh = MESH.replace("p/t.obj", "package://my pkg/meshes/t.obj") % ("a", "")
    with pytest.raises(ModelError, match=r"package://my pkg/meshes/t\.obj.*meshdir=.*strippath"):
        compile_spec(read(f'<robot name="r">{mesh}</robot>', {}))
    remedy = '<mujoco><compiler strippath="true"/></mujoco>'
    assert compile_spec(read(f'<robot name="r">{remedy}{mesh}</robot>', {"t.obj": OBJ})).nmesh == 1


@pytest.mark.parametrize(
    "inside, reason",
    [
        ("<link/>", "'name' is required"),
        ('<link name="a"/><link name="a"/>', "taken"),
        (link("a") + joint("a", "z", "fixed"), "no link 'z'"),
        (link("a") + link("b") + joint("a", "b", "turning"), "unknown joint type"),
        (link("a") + link("b") + joint("a", "b", "fixed") + joint("b", "a", "fixed"), "its own ancestor"),
        (link("a") + link("b") + joint("a", "b", "fixed") + joint("a", "b", "fixed"), "more than one parent"),
        ('<link name="a"><inertial><mass value="1"/></inertial></link>', "'inertia' is missing"),
        ('<link name="a"><collision><geometry/></collision></link>', "needs a box"),
        ('<link name="a"><collision><geometry><box size="1 1"/></geometry></collision></link>', "3 are needed"),
        ('<link name="a"><inertial/><inertial/></link>', "once is allowed"),
    ],
)
def test_wrong_robots_are_refused_with_a_place(inside, reason):
    text = f'<robot name="r">\n{inside}</robot>'
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ModelError, match=reason) as error:
        read(text)
    assert error.value.source is not None


def test_sections_that_urdf_cannot_carry_are_refused():
    with pytest.raises(ModelError, match="compiler, option, size"):
        read("<robot><mujoco><worldbody/></mujoco></robot>")
