"""Effective attributes against MuJoCo's own parsed specification, before it compiles."""

import mujoco
import numpy as np
import pytest

from jaxsim.core.errors import ModelError
from jaxsim.mjcf import read, resolve, resolve_actuator
from jaxsim.mjcf.schema.values import ENUMS

CLASSES = """
<default>
  <geom size="1 2 3" friction="2" rgba="1 0 0 1" solref=".1" euler="10 20 30"/>
  <joint stiffness="3" damping="1 2 3" range="-1 1" solimplimit=".8 .9"/>
  <tendon springlength=".5" width=".01" stiffness="4"/>
  <light directional="true" diffuse="1 1 1"/>
  <default class="a">
    <geom size="7" friction="3 .1" mass="2" quat="0 1 0 0"/>
    <joint type="slide" damping="9"/>
    <site size=".1 .2" type="box" rgba="0 1 0 1"/>
    <camera fovy="30" resolution="3 4"/>
    <pair friction="2 3" condim="4"/>
    <equality solref=".3 .4" active="false"/>
    <default class="b"><geom size="8 9" axisangle="1 0 0 90"/><tendon width=".02"/></default>
  </default>
</default>
<default><geom margin=".5"/></default>
"""
MODEL = f"""<mujoco>{CLASSES}
<worldbody>
  <geom name="g0"/><geom name="g1" class="a"/><geom name="g2" class="b" size="4"/>
  <geom name="g3" class="b" zaxis="1 0 0"/>
  <light name="l0"/><light name="l1" type="point"/><site name="s0" class="a" size=".3"/><camera name="c0" class="a"/>
  <body name="b1" childclass="a">
    <geom name="g4"/><joint name="j0"/><joint name="j1" class="main" damping="5 6"/><site name="s1"/>
    <frame childclass="b"><geom name="g5"/><body name="b2"><geom name="g6"/></body></frame>
    <body name="b3"><geom name="g7" class="main"/></body>
  </body>
</worldbody>
<contact><pair name="p0" class="a" geom1="g0" geom2="g4" friction="9"/></contact>
<equality><weld name="e0" class="a" body1="b1"/><weld name="e1" body1="b2" solref=".9"/></equality>
<tendon><fixed name="t0" class="b"><joint joint="j0" coef="1"/></fixed>
<spatial name="t1"><site site="s0"/><site site="s1"/></spatial></tendon>
</mujoco>"""

FIELDS = {
    "geom": "type size friction rgba solref solimp margin gap mass density contype conaffinity condim priority solmix",
    "joint": "type stiffness damping range solimp_limit=solimplimit solref_limit=solreflimit armature margin axis pos",
    "light": "type diffuse pos dir castshadow cutoff",
    "site": "type size rgba group",
    "camera": "fovy resolution ipd",
    "pair": "friction condim solref solreffriction margin",
    "equality": "solref solimp active",
    "tendon": "width springlength stiffness damping limited actfrclimited=actuatorfrclimited range rgba",
}


def same(ours, theirs) -> bool:
    """Whether a resolved value is MuJoCo's, words and undefined values included."""
    if isinstance(ours, str):
        words = [w for w in ENUMS.values() if ours in w]
        return any(w[ours] == int(theirs) for w in words)
    if ours is None:
        return bool(np.isnan(np.atleast_1d(theirs)[0]))
    return np.allclose(np.asarray(ours, float), np.asarray(theirs, float), rtol=1e-6, atol=0)


def attribute_pairs(kind):
    """(field of MuJoCo, attribute of ours) of a kind."""
    return [(field.split("=")[0], field.split("=")[-1]) for field in FIELDS[kind].split()]


@pytest.mark.parametrize("kind", FIELDS)
def test_values_are_those_of_mujoco(kind):
    ours, theirs = read(MODEL), mujoco.MjSpec.from_string(MODEL)
    for element in ours.elements(kind):
        other = getattr(theirs, kind)(element.name)
        values = resolve(ours, element)
        for field, name in attribute_pairs(kind):
            assert same(values[name], getattr(other, field)), f"{element.name}.{name}: {values[name]}"


def test_the_last_written_orientation_stands_above_quat():
    spec = read(MODEL)
    values = resolve(spec, spec.find("geom", "g1"))
    assert values["euler"] is not None and list(values["quat"]) == [0, 1, 0, 0]
    values = resolve(spec, spec.find("geom", "g2"))
    assert values["euler"] is None and values["axisangle"] is not None
    values = resolve(spec, spec.find("geom", "g3"))
    assert values["axisangle"] is None and list(values["zaxis"]) == [1, 0, 0]


def test_given_and_count_tell_what_was_written():
    spec = read(MODEL)
    values = resolve(spec, spec.find("geom", "g2"))
    assert values.given("size") and values.count("size") == 3 and values.given("mass")
    assert not values.given("gap") and values.count("gap") == 0


def test_a_nested_class_does_not_see_what_its_parent_gets_later():
    spec = read(MODEL)
    assert resolve(spec, spec.find("geom", "g0"))["margin"] == 0.5
    assert resolve(spec, spec.find("geom", "g1"))["margin"] == 0


def test_material_layers_come_from_the_class_and_the_element():
    spec = read("""<mujoco><default><default class="a"><material><layer role="rgb" texture="x"/></material></default>
      </default>
      <asset><texture name="x" builtin="flat" width="1" height="1"/><material name="m" class="a"/>
      <material name="n" class="a"><layer role="orm" texture="x"/></material></asset></mujoco>""")
    assert resolve(spec, spec.find("material", "m"))["layers"] == {"rgb": "x"}
    assert resolve(spec, spec.find("material", "n"))["layers"] == {"rgb": "x", "orm": "x"}


@pytest.mark.parametrize(
    "text, reason",
    [
        ('<default class="b"/>', "main"),
        ("<default><default/></default>", "needs a name"),
        ('<default><default class="a"/><default class="a"/></default>', "exists already"),
        ('<default><default class="main"/></default>', "exists already"),
        ('<worldbody><body childclass="zz"/></worldbody>', "unknown default class 'zz'"),
        ('<worldbody><geom class="zz"/></worldbody>', "unknown default class 'zz'"),
    ],
)
def test_wrong_classes_are_refused(text, reason):
    with pytest.raises(ModelError, match=reason):
        read(f"<mujoco>{text}</mujoco>")
    with pytest.raises(ValueError):
        mujoco.MjSpec.from_string(f"<mujoco>{text}</mujoco>")


ACTUATORS = {
    "motor": ["gear='2 3'", "ctrlrange='-1 1' ctrllimited='true'"],
    "position": ["kp='5'", "kp='5' kv='2'", "dampratio='1'", "timeconst='.1'", "timeconst='0'", "inheritrange='1'"],
    "intvelocity": ["kp='5'", "kv='2' actrange='-1 1'", "inheritrange='.5'", "kv='2' dampratio='1'"],
    "velocity": ["kv='3'", ""],
    "damper": ["kv='3' ctrlrange='0 1'", ""],
    "cylinder": ["timeconst='2' area='3'", "diameter='2'", ""],
    "muscle": [
        "",
        "timeconst='.02 .03' range='.6 1.1' force='100' scale='300'",
        "lmin='.4' lmax='1.7' vmax='2' fpmax='1' fvmax='1.1' tausmooth='.1'",
    ],
    "adhesion": ["gain='3' ctrlrange='0 1'"],
    "dcmotor": [
        "motorconst='.1' resistance='2'",
        "motorconst='.1 .2' resistance='2' inductance='.1'",
        "nominal='12 2 30'",
        "nominal='12 2 30' damping='.01'",
        "resistance='2' nominal='12 2 30' damping='.01'",
        "motorconst='.1' resistance='2' saturation='1 2 3' cogging='1 2 3' controller='1 2 3 4 5 6' input='velocity'",
        "motorconst='.1' resistance='2' saturation='0 2' thermal='1 2 0 3 4 5' lugre='1 2 3 4 5'",
        "motorconst='.1' resistance='2' thermal='1 0 6'",
        "motorconst='.1' resistance='2' inductance='0 .2'",
    ],
    "general": [
        "dyntype='filter' dynprm='2 3' gaintype='affine' gainprm='1 2 3' biastype='affine' biasprm='4' actdim='1' "
        "actearly='true'"
    ],
}
DEFAULTS = [
    "",
    "<general gainprm='3 4' biasprm='5' dynprm='6 7' gear='2'/>",
    "<position kp='7' kv='1'/>",
    "<muscle force='5'/>",
    "<velocity kv='4'/><motor gear='5'/>",
    "<damper kv='2' ctrlrange='0 2'/>",
    "<cylinder area='2'/>",
    "<dcmotor motorconst='.3' resistance='4' inductance='.1' controller='1 1'/>",
    "<general ctrlrange='-3 3' ctrllimited='true'/>",
]
RECORD = (
    "gainprm biasprm dynprm gear damping ctrlrange forcerange actrange lengthrange dyntype gaintype biastype actdim "
)
RECORD += "actearly ctrllimited forcelimited actlimited inheritrange group armature cranklength"


@pytest.mark.parametrize("default", DEFAULTS)
@pytest.mark.parametrize("tag", ACTUATORS)
def test_actuator_records_are_those_of_mujoco(tag, default):
    for attrs in ACTUATORS[tag]:
        target = "body='b'" if tag == "adhesion" else "joint='j'"
        text = f"""<mujoco><default><default class="a">{default}</default></default>
          <worldbody><body name="b"><joint name="j"/><geom size="1"/></body></worldbody>
          <actuator><{tag} class="a" {target} {attrs}/></actuator></mujoco>"""
        try:
            theirs_spec = mujoco.MjSpec.from_string(text)
        except ValueError:
            with pytest.raises(ModelError, match=r"ctrlrange .* (cannot be negative|exclude each other)"):
                read(text)
            continue
        theirs = theirs_spec.actuators[0]
        spec = read(text)
        record = resolve_actuator(spec, next(spec.elements("actuator")))
        for name in RECORD.split():
            assert same(record[name], getattr(theirs, name)), f"{attrs} {name}: {record[name]} {getattr(theirs, name)}"


@pytest.mark.parametrize(
    "attrs, reason",
    [
        ("joint='j' body='b'", "only one transmission target"),
        ("joint='j' cranklength='1'", "slider-crank"),
        ("joint='j' refsite='s'", "site transmission"),
    ],
)
def test_contradictory_transmissions_are_refused(attrs, reason):
    text = f"""<mujoco><worldbody><body name="b"><joint name="j"/><geom size="1"/><site name="s"/></body></worldbody>
      <actuator><general {attrs}/></actuator></mujoco>"""
    with pytest.raises(ModelError, match=reason):
        read(text)
