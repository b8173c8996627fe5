"""Reading: verdicts of MuJoCo, messages, includes, bounds."""

import random

import mujoco
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxsim.core.errors import ModelError
from jaxsim.mjcf import read, reader
from jaxsim.mjcf.schema.element_type import all_types
from jaxsim.mjcf.schema.values import ENUMS


def verdicts(text):
    """Ours and MuJoCo's."""
    results = []
    for parse in (read, mujoco.MjSpec.from_string):
        try:
            parse(text)
            results.append(True)
        except (ValueError, RuntimeError):
            results.append(False)
    return results


@pytest.mark.parametrize(
    "text",
    [
        '<option timestep=""/>',
        '<option timestep="  "/>',
        '<option timestep="0x1p-3"/>',
        '<option timestep="1e-320"/>',
        '<option timestep="nan"/>',
        '<option impratio="inf"/>',
        '<option impratio="-infinity"/>',
        '<option impratio="1_0"/>',
        '<option impratio="1."/>',
        '<option impratio=".5e-2"/>',
        '<option impratio="1d"/>',
        '<option impratio="1e999"/>',
        '<option iterations=""/>',
        '<option iterations=" 5 "/>',
        '<option iterations="+5"/>',
        '<option iterations="0x5"/>',
        '<option iterations="5 6"/>',
        '<option iterations="1.0"/>',
        '<option iterations="99999999999"/>',
        '<option cone="elliptic "/>',
        '<option cone=""/>',
        '<option gravity="1,2,3"/>',
        '<option gravity="1 2"/>',
        '<option gravity="1 2 3 4"/>',
        '<option gravity=" 1  2\t3 "/>',
        '<option gravity="nan(1) 0 0"/>',
        "<option><flag/><flag/></option>",
        "<option/><option/>",
        '<option actuatorgroupdisable="31"/>',
        '<option o_solref="1"/>',
        '<worldbody><geom size="1" rgba="1e50 0 0 1"/></worldbody>',
        '<visual><map znear="0"/></visual>',
        '<visual><global realtime="0"/></visual>',
        '<statistic extent="0"/>',
        '<size memory="1K"/>',
        '<size memory="-1"/>',
        '<size memory="1KB"/>',
        '<size memory="99999999999999999999"/>',
        '<size nuser_body="-2"/>',
        '<size memory="1M" njmax="3"/>',
        '<size memory="1M"/><size njmax="3"/>',
        '<size njmax="3"/><size memory="1M"/>',
        '<size nstack="3"/><size memory="1M"/><size njmax="3"/>',
        '<size nstack="3"/><size memory="-1"/><size nuserdata="2"/>',
        '<compiler eulerseq="xy"/>',
        '<compiler coordinate="global"/>',
        '<custom><numeric name="a"/></custom>',
        '<custom><numeric name="a" size="2"/></custom>',
        '<custom><numeric name="a" size="2" data="1 2 3"/></custom>',
        '<custom><numeric name="a" size="502" data="1"/></custom>',
        '<custom><text name="a" data=""/></custom>',
        '<custom><tuple name="a"><element objtype="zz" objname="b"/></tuple></custom>',
        "<worldbody><worldbody/></worldbody>",
        '<worldbody name="a"/>',
        "<worldbody><joint/></worldbody>",
        '<worldbody><frame><inertial pos="0 0 0" mass="1"/></frame></worldbody>',
        '<worldbody><body name="world"/></worldbody>',
        '<worldbody><body name="a"/><body name="a"/></worldbody>',
        '<worldbody><frame name="a"/><frame name="a"/></worldbody>',
        '<worldbody><body><freejoint name="a"/></body><body><joint name="a"/></body></worldbody>',
        '<worldbody><geom quat="0 0 0 0"/></worldbody>',
        '<worldbody><geom quat="1 0 0 0" euler="0 0 0"/></worldbody>',
        '<worldbody><geom zaxis="1 0 0" euler="0 0 0"/></worldbody>',
        '<worldbody><camera fovy="1" sensorsize="1 1"/></worldbody>',
        '<worldbody><light type="point" directional="true"/></worldbody>',
        '<worldbody><body><inertial pos="0 0 0" mass="1" euler="0 0 0" fullinertia="1 1 1 0 0 0"/></body></worldbody>',
        '<equality><connect active="true"/></equality>',
        '<equality><connect body1="a"/></equality>',
        '<equality><connect body1="a" anchor="0 0 0" site1="b"/></equality>',
        '<equality><weld site1="a"/></equality>',
        '<equality><weld body1="a" site2="a"/></equality>',
        '<equality><weld body1="a" relpose="0 0 0 1 0 0 0"/></equality>',
        "<sensor><rangefinder/></sensor>",
        '<sensor><distance geom1="a" body1="b" geom2="c"/></sensor>',
        '<sensor><contact geom1="a" body1="b"/></sensor>',
        '<sensor><contact data="force found"/></sensor>',
        '<sensor><contact data="found found"/></sensor>',
        '<sensor><contact num="0"/></sensor>',
        "<sensor><user/></sensor>",
        '<sensor><framepos objtype="body" objname="a" refname="b"/></sensor>',
        "<keyframe><key/><key/></keyframe>",
        '<asset><mesh vertex="0 0 0" maxhullvert="3"/></asset>',
        '<asset><mesh builtin="sphere"/></asset>',
        '<asset><mesh builtin="none" params="1"/></asset>',
        '<asset><hfield nrow="2" ncol="2" size="1 1 1 1" elevation="1"/></asset>',
        '<asset><texture gridlayout="UU"/></asset>',
        '<asset><material texture="a"><layer role="rgb" texture="b"/></material></asset>',
        '<deformable><skin group="6"/></deformable>',
        "<zzz/>",
        "<Option/>",
        "text",
        "<extension><plugin/></extension>",
        '<actuator><motor joint="a" tendon="b"/></actuator>',
    ],
)
def test_verdict_is_mujoco_one(text):
    ours, theirs = verdicts(f"<mujoco>{text}</mujoco>")
    assert ours == theirs


@pytest.mark.parametrize(
    "text",
    [
        "<MUJOCO/>",
        '<?xml version="1.0"?><mujoco/>',
        '<mujoco model="a" model="b"/>',
        '<mujoco xmlns="x"/>',
        "<mujoco>",
        '<mujoco><option timestep="1"/><!-- -- c -- --></mujoco>',
        '<mujoco><x:option xmlns:x="a"/></mujoco>',
        "<robot/>",
        '<mujoco><worldbody><geom size="&#49;"/></worldbody></mujoco>',
        "<mujoco></mujoko>",
        "<urdf/>",
        "<mujoco/>\n",
    ],
)
def test_verdict_on_whole_documents_is_mujoco_one(text):
    ours, theirs = verdicts(text)
    assert ours == theirs


@pytest.mark.parametrize(
    "text, message",
    [
        (
            '<worldbody><body name="leg"><joint name="hip" rnage="0 1"/></body></worldbody>',
            "XML:2: joint 'hip': unknown attribute 'rnage' in joint; did you mean 'range'?",
        ),
        ("<worldbody><goem/></worldbody>", "XML:2: unknown element 'goem' in worldbody; did you mean 'geom'?"),
        ("<worldbody><motor/></worldbody>", "motor is allowed in actuator, default"),
        (
            '<worldbody><geom name="g" type="spere"/></worldbody>',
            "geom 'g': attribute 'type': unknown keyword 'spere'; did you mean",
        ),
        ('<worldbody><geom size="1 2 3 4"/></worldbody>', "attribute 'size': has 4 numbers; at most 3 are allowed"),
        ('<worldbody><geom pos="1 2"/></worldbody>', "attribute 'pos': has 2 numbers; 3 are needed"),
        ('<worldbody><geom pos="1 b 2"/></worldbody>', "'b' is not a number"),
        ('<worldbody><geom pos="1,2,3"/></worldbody>', "'pos': separate numbers by spaces, not commas"),
        ('<worldbody><geom pos="1"/></worldbody>', "'pos': has 1 number; 3 are needed"),
        ('<actuator><position kP="1"/></actuator>', "unknown attribute 'kP' in position; did you mean 'kp'?"),
        ('<sensor><accelerometer body="a"/></sensor>', "unknown attribute 'body' in accelerometer; known are cutoff"),
        ("<sensor><touch/></sensor>", "the attribute 'site' is required"),
        ("<option><flag/><flag/></option>", "option can have only one flag"),
        (
            '<worldbody><body name="a"/>\n<body name="a"/></worldbody>',
            "XML:3: body 'a': the body name 'a' is taken; the other is in line 2",
        ),
        (
            '<worldbody><body name="a" childclass="mian"/></worldbody>',
            "unknown default class 'mian'; did you mean 'main'",
        ),
    ],
)
def test_messages_say_where_what_and_what_would_be_right(text, message):
    with pytest.raises(ModelError) as error:
        read(f"<mujoco>\n{text}</mujoco>")
    assert message in str(error.value)


def test_sections_merge_as_in_mujoco():
    spec = read("""<mujoco><compiler meshdir="a" angle="radian"/><compiler assetdir="b"/>
      <option timestep="1" gravity="0 0 1" o_solimp=".5 .6 .7"><flag gravity="disable"/></option>
      <option timestep="2" o_solimp=".8"><flag contact="disable"/></option>
      <worldbody><geom name="a"/></worldbody><worldbody><geom name="b"/></worldbody></mujoco>""")
    option = spec.section("option")
    assert option.attrs["timestep"] == 2 and list(option.attrs["gravity"]) == [0, 0, 1]
    assert list(option.attrs["o_solimp"]) == [0.8, 0.6, 0.7]
    assert option.child("flag").attrs == {"gravity": "disable", "contact": "disable"}
    assert [g.name for g in spec.worldbody.children] == ["a", "b"]
    assert spec.section("compiler").attrs == {"angle": "radian", "assetdir": "b"}


FILES = {
    "common.xml": '<x><worldbody><geom name="c" size="1"/></worldbody></x>',
    "twice.xml": '<mujoco><include file="common.xml"/><include file="common.xml"/></mujoco>',
    "self.xml": '<mujoco><include file="self.xml"/></mujoco>',
    "loop1.xml": '<mujoco><include file="loop2.xml"/></mujoco>',
    "loop2.xml": '<mujoco><include file="loop1.xml"/></mujoco>',
    "deep.xml": '<mujoco><include file="sub/c.xml"/></mujoco>',
    "sub/c.xml": '<mujoco><include file="d.xml"/></mujoco>',
    "sub/d.xml": '<mujoco>\n\n<worldbody><geom name="d" size="1"/></worldbody></mujoco>',
    "fallback.xml": '<mujoco><include file="sub/e.xml"/></mujoco>',
    "sub/e.xml": '<mujoco><include file="common.xml"/></mujoco>',
    "empty.xml": '<mujoco><include file="none.xml"/></mujoco>',
    "none.xml": "<mujoco/>",
    "missing.xml": '<mujoco><include file="gone.xml"/></mujoco>',
    "nofile.xml": "<mujoco><include/></mujoco>",
    "children.xml": '<mujoco><include file="common.xml"><option/></include></mujoco>',
    "inner.xml": '<mujoco><worldbody><body><include file="parts.xml"/></body></worldbody></mujoco>',
    "parts.xml": '<a><joint/><geom name="p" size="1"/></a>',
    "bad.xml": '<mujoco>\n<include file="worse.xml"/></mujoco>',
    "worse.xml": '<mujoco>\n\n<worldbody><geom siz="1"/></worldbody></mujoco>',
}


@pytest.fixture
def folder(tmp_path):
    """A folder with models that include one another."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "name", [name for name in FILES if "/" not in name and name not in ("common.xml", "parts.xml")]
)
def test_includes_are_read_and_refused_as_by_mujoco(folder, name):
    path = str(folder / name)
    try:
        theirs = [g.name for g in mujoco.MjSpec.from_file(path).geoms]
    except ValueError:
        theirs = None
    try:
        ours = [g.name for g in read(path).elements("geom")]
    except ModelError:
        ours = None
    assert ours == theirs


def test_lines_are_those_of_the_included_file(folder):
    with pytest.raises(ModelError, match=r"worse.xml:3: geom: unknown attribute 'siz' in geom; did you mean 'size'"):
        read(folder / "bad.xml")
    assert read(folder / "deep.xml").find("geom", "d").source == (str(folder / "sub/d.xml"), 3)


def test_includes_can_come_from_assets():
    spec = read('<mujoco><include file="common.xml"/></mujoco>', {"common.xml": FILES["common.xml"].encode()})
    assert spec.find("geom", "c") is not None


def test_a_path_that_does_not_exist_is_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.xml"):
        read(tmp_path / "nothing.xml")


@pytest.mark.parametrize(
    "text, reason",
    [
        ('<!DOCTYPE mujoco [<!ENTITY a "1">]><mujoco/>', "document types"),
        ('<!DOCTYPE mujoco SYSTEM "file:///etc/passwd"><mujoco/>', "document types"),
        ('<mujoco model="&a;"/>', "well-formed"),
        ("<mujoco>&a;</mujoco>", "entities|well-formed"),
        ("<mujoco><worldbody>" + "<body>" * 600 + "</body>" * 600 + "</worldbody></mujoco>", "nested deeper"),
        ("<mujoco>\0</mujoco>", "8-bit"),
    ],
)
def test_dangerous_documents_are_refused(text, reason):
    with pytest.raises(ModelError, match=reason):
        read(text)


def test_a_chain_of_500_links_is_read():
    spec = read("<mujoco><worldbody>" + "<body>" * 500 + "</body>" * 500 + "</worldbody></mujoco>")
    assert sum(element.tag == "body" for element in spec.root.all()) == 500


def test_size_is_bounded(monkeypatch):
    monkeypatch.setattr(reader, "MAX_BYTES", 100)
    with pytest.raises(ModelError, match="larger than"):
        read("<mujoco>" + " " * 100 + "</mujoco>")


def test_values_have_the_types_that_the_schema_says():
    spec = read("""<mujoco><option timestep=".1" iterations="3" gravity="0 0 1" actuatorgroupdisable="1 2"/>
      <worldbody><body name="b" mocap="true"><geom type="box" size="1 2"/></body></worldbody>
      <deformable><flex body="b b" element="0 1" dim="1"/></deformable></mujoco>""")
    option = spec.section("option").attrs
    assert isinstance(option["timestep"], float) and isinstance(option["iterations"], int)
    assert option["gravity"].dtype == np.float64 and option["actuatorgroupdisable"].dtype == np.int64
    assert spec.body("b").attrs["mocap"] is True
    assert next(spec.elements("geom")).attrs["type"] == "box"
    assert next(spec.elements("flex")).attrs["body"] == ("b", "b")


TAGS = sorted({kind.tag for kind in all_types()} | {"include", "zzz"})
NAMES = sorted({name for kind in all_types() for name in kind.attributes} | {"zzz"})
WORDS = sorted({word for words in ENUMS.values() for word in words})
VALUES = [*WORDS, "", "1", "1 2 3", "-1", "nan", "1e400", "x" * 50, "&amp;"]


def tree(random, depth=3):
    """An element of words of the language in wild order."""
    tag = random.choice(TAGS)
    attrs = {random.choice(NAMES): random.choice(VALUES) for _ in range(random.randint(0, 3))}
    inside = "".join(tree(random, depth - 1) for _ in range(random.randint(0, 3))) if depth else ""
    return f"<{tag}{''.join(f' {k}={chr(34)}{v}{chr(34)}' for k, v in attrs.items())}>{inside}</{tag}>"


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_wild_documents_are_read_or_refused(seed):
    try:
        read(f"<mujoco>{tree(random.Random(seed))}</mujoco>")
    except ModelError as error:
        assert str(error)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=200), st.integers(0, 400))
def test_damaged_text_is_read_or_refused(noise, place):
    text = b'<mujoco><worldbody><body name="a"><joint type="hinge"/><geom size="1" rgba="1 0 0 1"/></body>'
    text += b"</worldbody></mujoco>"
    damaged = text[:place] + noise + text[place:]
    try:
        read("<mujoco/>", {"x.xml": damaged})
        read('<mujoco><include file="x.xml"/></mujoco>', {"x.xml": damaged})
    except ModelError as error:
        assert str(error)
