"""Macros: the objects that they make, by name and in order, and their keyframes, against MuJoCo's compiled model."""

import re

import mujoco
import numpy as np
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.core.errors import ModelError
from jaxsim.mjcf import compiler_of, expand, object_name, read, resolve
from jaxsim.mjcf.keyframes import bodies, content
from jaxsim.mjcf.references import listed
from jaxsim.mjcf.schema.element_type import all_types
from tests.mjcf.helpers import document
from tests.mjcf.schema.test_element_type import NO_FILE, PLUGIN, uses

TREE = {"joint": "njnt", "geom": "ngeom", "site": "nsite", "camera": "ncam", "light": "nlight"}
LISTS = {
    "mesh": ("asset", "nmesh"),
    "texture": ("asset", "ntex"),
    "material": ("asset", "nmat"),
    "pair": ("contact", "npair"),
    "exclude": ("contact", "nexclude"),
    "equality": ("equality", "neq"),
    "tendon": ("tendon", "ntendon"),
    "actuator": ("actuator", "nu"),
    "sensor": ("sensor", "nsensor"),
    "numeric": ("custom", "nnumeric"),
    "tuple": ("custom", "ntuple"),
    "key": ("keyframe", "nkey"),
}


def mujoco_names(model) -> dict:
    """Names of all objects of a compiled model."""
    sizes = {"body": "nbody", **TREE, **{kind: size for kind, (_, size) in LISTS.items()}}
    return {
        kind: [mujoco.mj_id2name(model, mujoco.mju_str2Type(kind), i) or None for i in range(getattr(model, size))]
        for kind, size in sizes.items()
    }


def our_names(spec) -> dict:
    """Names of all objects of an expanded spec, in the order that they will have."""
    tree = list(bodies(spec.worldbody))
    names = {"body": ["world", *(body.name for body in tree[1:])]}
    for kind in TREE:
        names[kind] = [e.name for body in tree for e in content(body) if e.type.kind == kind]
    for kind, (section, _) in LISTS.items():
        names[kind] = [object_name(e) for e in listed(spec, section, kind)]
    return names


def assert_same_objects(text, assets=None):
    """Expand with both and compare names, keyframes included."""
    model = mujoco.MjModel.from_xml_string(text, assets or {})
    spec = expand(read(text, assets))
    assert our_names(spec) == mujoco_names(model)
    for i, key in enumerate(listed(spec, "keyframe", "key")):
        for name, initial in (("qpos", model.qpos0), ("qvel", np.zeros(model.nv)), ("ctrl", np.zeros(model.nu))):
            if name in key.attrs:
                value = np.where(np.isnan(key.attrs[name]), initial[: len(key.attrs[name])], key.attrs[name])
                np.testing.assert_allclose(value, getattr(model, f"key_{name}")[i, : len(value)])


OUTER = '<body name="o"><joint name="jo"/><geom name="go" size=".1"/><site name="so"/></body>'
COPIES = (
    OUTER
    + """<replicate count="3" offset="1 0 0" euler="0 0 30"><body name="b"><joint name="j"/>
  <geom name="g" size=".1"/><site name="s"/></body></replicate>"""
)
NESTED = """<replicate count="2" sep="-"><body name="b"><replicate count="2" sep="_"><geom name="g" size="1"/>
  <site name="s"/></replicate></body></replicate>"""


@pytest.mark.parametrize(
    "world, rest",
    [
        (
            COPIES,
            """<sensor><clock name="c"/><clock/><jointpos name="q" joint="j"/><jointpos name="qo" joint="jo"/>
       <framepos name="f" objtype="site" objname="s" reftype="site" refname="so"/>
       <framepos name="fz" objtype="site" objname="so" reftype="body" refname="b"/></sensor>""",
        ),
        (
            COPIES,
            """<contact><pair name="p" geom1="g" geom2="go"/><pair geom1="go" geom2="g"/>
       <exclude name="e" body1="o" body2="b"/>
       </contact><tendon><spatial name="t"><site site="s"/><site site="so"/></spatial><fixed name="fx">
       <joint joint="jo" coef="1"/>
       </fixed></tendon><equality><weld name="w" body1="b" body2="o"/><joint name="ej" joint1="j" joint2="jo"/>
       <weld name="w2" body1="o"/></equality><actuator><motor name="m" joint="j"/><motor name="mo" joint="jo"/>
       <motor name="mt" tendon="t"/></actuator>""",
        ),
        (COPIES, '<equality><weld name="w" body1="b"/></equality>'),
        (COPIES, '<keyframe><key name="k" qpos="1 2" time="3"/></keyframe>'),
        (COPIES + '<body><joint/><geom size="1"/></body>', '<keyframe><key name="k" time="3"/></keyframe>'),
        (COPIES, '<size nkey="2"/><keyframe><key name="k" qpos="1 2"/></keyframe>'),
        (
            COPIES,
            '<actuator><motor joint="j" name="m"/></actuator><keyframe><key name="k" qvel="1 2" ctrl="5"/></keyframe>',
        ),
        (NESTED, '<sensor><touch name="t" site="s"/></sensor>'),
        (NESTED, '<sensor><touch name="t" site="s_0-1"/></sensor>'),
        (NESTED, '<sensor><touch name="t" site="s_0"/><clock name="c"/></sensor>'),
        (
            '<replicate count="11" sep="-"><geom name="g" size="1"/></replicate>'
            '<replicate count="1"><geom name="h" size="1"/></replicate>'
            '<replicate count="0"><geom name="h" size="1"/></replicate>',
            "",
        ),
        ('<replicate count="2"><body name="b"><camera name="c" target="b"/><light name="l"/></body></replicate>', ""),
        ('<replicate count="2"/>', ""),
        (f'<frame name="fr" pos="1 0 0">{COPIES}</frame>', '<sensor><user name="u" dim="1"/></sensor>'),
    ],
)
def test_replicate_makes_mujoco_objects(world, rest):
    assert_same_objects(f"<mujoco><worldbody>{world}</worldbody>{rest}</mujoco>")


@pytest.mark.parametrize(
    "world, rest, words",
    [
        (
            COPIES,
            '<custom><tuple name="tu"><element objtype="geom" objname="g"/></tuple></custom>',
            "element: objname names the geom 'g', which does not exist",
        ),
        (COPIES, '<keyframe><key qpos="1 2 3 4"/></keyframe>', "key: qpos has 4 numbers"),
        (
            COPIES + '<body><geom name="gl" size="1"/></body>',
            '<contact><pair geom1="g" geom2="gl"/></contact>',
            "pair: geom1 names the geom 'g', which does not exist",
        ),
        (
            '<body name="x"/><replicate count="2"><body name="b"><camera target="x"/></body></replicate>',
            "",
            "camera: target names the body 'x0', which does not exist",
        ),
        (COPIES + COPIES.replace('"b"', '"bb"'), "", "body 'o': the body name 'o' is taken"),
        (
            '<replicate count="2" childclass="zz"><geom size="1"/></replicate>',
            "",
            "replicate: unknown default class 'zz'",
        ),
    ],
)
def test_replicate_refuses_what_mujoco_refuses(world, rest, words):
    text = f"<mujoco><worldbody>{world}</worldbody>{rest}</mujoco>"
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ModelError, match=re.escape(words)):
        expand(read(text))


def test_replicate_moves_and_turns_each_copy_a_step_further():
    spec = expand(
        read("""<mujoco><compiler angle="radian" eulerseq="zyx"/><worldbody>
      <replicate count="3" offset="1 0 0" euler="1 0 0"><geom size="1"/></replicate></worldbody></mujoco>""")
    )
    frames = [e for e in spec.worldbody.children if e.tag == "frame"]
    np.testing.assert_allclose(frames[2].attrs["quat"], [np.cos(1), 0, 0, np.sin(1)])
    np.testing.assert_allclose(frames[2].attrs["pos"], [1 + np.cos(1), np.sin(1), 0])


CHILD = b"""<mujoco model="ch"><compiler angle="radian"/><default><geom rgba="1 0 0 1" material="ma"/>
<default class="k"><geom size=".3"/></default></default>
<asset><mesh name="me" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
<texture name="tx" type="2d" builtin="flat" width="2" height="2"/>
<material name="ma" texture="tx"/></asset><custom><numeric name="nu" data="1"/></custom>
<worldbody><geom name="wg" size="1" material="ma"/><body name="b" childclass="k" pos="0 0 1">
<joint name="j" range="-1 1"/>
<geom name="g"/><geom name="mg" type="mesh" mesh="me"/><site name="s"/><body name="b2"><joint name="j2" ref="0.5"/>
<geom name="g2"/></body></body><body name="c"><joint name="jc" type="slide"/><geom size="1"/></body></worldbody>
<actuator><motor name="m" joint="j"/><motor name="mc" joint="jc"/></actuator>
<sensor><clock name="cl"/><touch name="t" site="s"/></sensor>
<tendon><fixed name="te"><joint joint="j" coef="1"/></fixed></tendon>
<contact><exclude name="ex" body1="b" body2="c"/></contact>
<keyframe><key name="home" qpos="1 .5 2" ctrl="3 4" qvel="1 2 3"/></keyframe></mujoco>"""
ASSETS = {"ch.xml": CHILD}
ATTACH = '<attach model="ch" body="b" prefix="p_"/>'


def parent(world, rest="", before=""):
    """A model that can attach the child."""
    return (
        f'<mujoco>{before}<asset><model name="ch" file="ch.xml"/></asset><worldbody>{world}</worldbody>{rest}</mujoco>'
    )


@pytest.mark.parametrize(
    "world, rest",
    [
        (ATTACH, ""),
        ('<attach model="ch" prefix="p_"/>', ""),
        ('<attach model="ch" body="b2" prefix="p_"/>', ""),
        ('<attach model="ch" body="world" prefix="p_"/>', ""),
        ('<frame pos="1 0 0"><attach model="ch" body="world" prefix="p_"/></frame>', ""),
        (f'<frame pos="1 0 0">{ATTACH}</frame>{ATTACH.replace("p_", "q_")}', ""),
        (
            f'<body><joint name="x"/><geom size="1"/>{ATTACH}</body><body><joint/><geom size="1"/></body>',
            '<keyframe><key name="k" qpos="1"/></keyframe>',
        ),
        (
            f'<body><joint name="x"/><geom size="1"/>{ATTACH}</body>',
            '<sensor><jointpos joint="p_j"/></sensor><keyframe><key name="k" qpos="1 1 1"/></keyframe>',
        ),
        (
            f'<body><joint name="x"/><geom size="1"/>{ATTACH}</body>',
            '<size nkey="3"/><keyframe><key name="k" qpos="1 1 1"/></keyframe>',
        ),
        (f'{ATTACH}<body/><frame pos="0 1 0" euler="0 0 30"><frame pos="1 0 0">{ATTACH}</frame></frame>', ""),
        (f'<frame pos="0 1 0">{ATTACH}</frame><body/>{ATTACH}', ""),
        (f'<frame pos="0 2 0"><body/><frame name="f" pos="1 1 1"><body/>{ATTACH}<body/></frame></frame>{ATTACH}', ""),
        ('<body name="p_b"/><body/>' + ATTACH, ""),
    ],
)
def test_attach_makes_mujoco_objects(world, rest):
    assert_same_objects(parent(world, rest), ASSETS)


@pytest.mark.parametrize(
    "world, words",
    [
        ('<attach model="ch" body="zz" prefix="p_"/>', "attach: the model has no body 'zz'"),
        (f"{ATTACH}<body>{ATTACH}</body>", "attach: the body 'p_b' already exists, in another body than this one"),
        ('<attach model="zz" body="b" prefix="p_"/>', "attach: there is no model 'zz'"),
        ('<attach model="ch" body="world" prefix=""/>', "attach: the world of another model becomes a body"),
        ('<attach model="ch" body="b"/>', "attach: the attribute 'prefix' is required"),
    ],
)
def test_attach_refuses_what_mujoco_refuses(world, words):
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(parent(world), ASSETS)
    with pytest.raises(ModelError, match=re.escape(words)):
        expand(read(parent(world), ASSETS))


def test_attached_elements_keep_their_classes_and_settings():
    spec = expand(read(parent(ATTACH, before='<default><geom density="5"/></default>'), ASSETS))
    geom = spec.find("geom", "p_g")
    values = resolve(spec, geom)
    assert values["density"] == 1000 and values["size"][0] == 0.3 and list(values["rgba"]) == [1, 0, 0, 1]
    assert values["material"] == "p_ma"
    assert compiler_of(spec, geom)["angle"] == "radian" and compiler_of(spec)["angle"] == "degree"


def test_models_built_in_python_can_be_attached():
    spec, child = read("<mujoco/>"), read(CHILD.decode())
    frame = spec.worldbody.add("frame", pos=[1, 0, 0])
    spec.attach(child, frame, prefix="p_", body="b")
    assert expand(spec).find("joint", "p_j2") is not None
    assert spec.find("joint", "p_j2") is None and child.find("joint", "p_j2") is None


@pytest.mark.parametrize("to", [None, "world", "arm"])
def test_a_model_is_attached_to_a_body_by_name(to):
    spec = read('<mujoco><worldbody><body name="arm"/></worldbody></mujoco>')
    spec.attach(read(CHILD.decode()), to, prefix="p_")
    around = expand(spec).find("body", "p_b").ancestors()
    assert next(e.name for e in around if e.tag in ("body", "worldbody")) == (to if to == "arm" else None)


def test_what_cannot_be_attached_is_refused():
    spec, child = read("<mujoco/>"), read(CHILD.decode())
    with pytest.raises(TypeError, match="a str to a Element, wanted a Spec"):
        spec.attach("ch.xml", prefix="p_")
    with pytest.raises(ModelError, match="there is no body 'arm'"):
        spec.attach(child, "arm", prefix="p_")


def test_a_keyframe_of_all_copies_gets_the_remedy():
    text = """<mujoco><worldbody><replicate count="2"><body><freejoint/><geom size=".1"/></body></replicate>
      </worldbody><keyframe><key name="k" qpos="1 2 3 1 0 0 0 1 2 3 1 0 0 0"/></keyframe></mujoco>"""
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ModelError, match=r"key 'k': qpos has 14 numbers; it needs 7.*d\.replace\(qpos="):
        expand(read(text))


def test_expand_leaves_the_given_spec_as_it_is():
    spec = read(f"<mujoco><worldbody>{COPIES}</worldbody></mujoco>")
    expand(spec)
    assert spec.find("joint", "j") is not None and spec.defaults is None


@pytest.mark.parametrize(
    "text",
    [
        '<sensor><touch site="sx"/></sensor>',
        '<worldbody><geom material="zz" size="1"/></worldbody>',
        '<worldbody><camera target="zz"/></worldbody>',
        '<contact><exclude body1="world" body2="b"/></contact>',
    ],
)
def test_references_to_nothing_are_refused(text):
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(f"<mujoco>{text}</mujoco>")
    with pytest.raises(ModelError, match="does not exist"):
        expand(read(f"<mujoco>{text}</mujoco>"))


def compiles(text) -> bool:
    """MuJoCo's verdict on a whole model."""
    try:
        mujoco.MjModel.from_xml_string(text)
    except ValueError:
        return False
    return True


def referring_attributes():
    """Element types with an attribute that names something, and attributes with which MuJoCo takes them."""
    for kind in all_types():
        if kind.path.startswith("mujoco/default") or PLUGIN.search(kind.path) or kind.path in NO_FILE:
            continue
        for name, good, _ in uses(kind):
            if kind.attributes[name].kind == "ref" and compiles(document(kind, good)):
                yield kind, name, good


@pytest.mark.parametrize(
    "kind, name, good", list(referring_attributes()), ids=lambda value: getattr(value, "path", None)
)
@pytest.mark.parametrize("wrong", ["nothing", ""])
def test_names_of_nothing_are_refused_where_mujoco_refuses_them(kind, name, good, wrong):
    if (kind.tag, name, wrong) == ("geom", "mesh", ""):
        good = good | {"size": "1"}  # without a mesh the geom is a sphere
    text = document(kind, good | {name: wrong})
    try:
        expand(read(text))
        ours = True
    except ModelError:
        ours = False
    assert ours == compiles(text)


@pytest.mark.parametrize("place", range(4))
def test_copied_keyframes_keep_controls_of_what_comes_later(place):
    bodies = [f'<body><joint name="{name}"/><geom size="1"/></body>' for name in "abc"]
    bodies.insert(place, '<replicate count="2"><geom size="1"/></replicate>')
    text = f"""<mujoco><worldbody><site name="s"/>{"".join(bodies)}<site name="z"/></worldbody>
      <tendon><fixed name="t"><joint joint="a" coef="1"/></fixed></tendon>
      <actuator><motor joint="a"/><motor joint="b"/><motor joint="c"/><general site="s" dyntype="integrator"/>
      <motor site="z"/><motor tendon="t"/></actuator>
      <keyframe><key name="k" ctrl="1 2 3 4 5 6" act="7" time="3"/></keyframe></mujoco>"""
    ours, theirs = compile_spec(read(text)), mujoco.MjModel.from_xml_string(text)
    for name in ("key_time", "key_qpos", "key_act", "key_ctrl"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)
