"""Models and data of the MuJoCo that is installed, where it is newer than 3.8.1: `ci/newer_mujoco.sh` runs them."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.compiler.compile import compile_spec
from jaxsim.core.model import MODEL_FIELDS, SIZES
from jaxsim.io.mujoco import host_model
from jaxsim.mjcf import read
from tests.paths import MODELS

VERSION = tuple(int(x) for x in mujoco.__version__.split(".")[:2])
pytestmark = pytest.mark.skipif(VERSION < (4, 0), reason="needs MuJoCo 4")

SCENE = """<mujoco>{top}<worldbody>
<geom name="floor" type="plane" size="1 1 1" margin=".05" {floor}/><site name="s" {site}/>
<body name="b" pos="0 0 .12"><joint name="j" type="{joint}" {spring}/><geom name="g" size=".1" gap=".02"/></body>
<body name="hand" mocap="true" pos="0 0 1"><geom size=".1"/><body pos="0 0 .15"><joint name="k" type="slide"/>
<geom size=".1"/></body></body>{world}</worldbody>{end}</mujoco>"""
PLAIN = {key: "" for key in ("top", "floor", "site", "spring", "world", "end")} | {"joint": "slide"}

NEW = {
    "integrator 4": {"top": '<option integrator="discrete"/>'},
    "an enable flag": {"top": '<option><flag diagexact="enable"/></option>'},
    "geom_adhesion": {"floor": 'adhesion="1"'},
    "geom_surfacevel": {"floor": 'surfacevel="1 0 0 0 0 0"'},
    "pair_adhesion": {"end": '<contact><pair geom1="floor" geom2="g" adhesion="1"/></contact>'},
    "jnt_springyield": {"spring": 'stiffness="1" springyield=".1"'},
    "several inputs": {"joint": "ball", "end": '<actuator><orientation joint="j" kp="1"/></actuator>'},
    "actuator_gaintype": {"end": '<actuator><pid joint="j" kp="1" input="pos"/></actuator>'},
    "dcmotor": {"end": '<actuator><dcmotor joint="j" motorconst="1" resistance="1"/></actuator>'},
    "flexes": {"world": '<flexcomp name="f" type="grid" dim="2" count="3 3 1" spacing=".1 .1 .1" radius=".01"/>'},
    "sites that are meshes": {
        "top": '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>',
        "site": 'type="mesh" mesh="m"',
    },
    "velocities from contact": {"end": '<sensor><contact geom1="g" data="found linvel"/></sensor>'},
    "insidesite with enclosed": {
        "end": '<sensor><insidesite site="s" objtype="geom" objname="g" enclosed="true"/></sensor>'
    },
}


def scene(**parts):
    return SCENE.format(**(PLAIN | parts))


@pytest.mark.parametrize("name", NEW)
def test_what_came_later_is_named(name):
    model = mujoco.MjModel.from_xml_string(scene(**NEW[name]))
    with pytest.raises(jaxsim.UnsupportedError, match=f"compiled by MuJoCo {mujoco.__version__}.*{name}"):
        jaxsim.from_mujoco(model)


def differences(ours, theirs):
    """Names of fields in which two host models differ."""
    names = (*SIZES, *(f.name for f in MODEL_FIELDS if f.kind != "bytes"))
    pairs = {name: (np.asarray(getattr(ours, name)), np.asarray(getattr(theirs, name))) for name in names}
    return {
        name
        for name, (a, b) in pairs.items()
        if a.shape != b.shape or not np.allclose(a.astype(float), b.astype(float), rtol=1e-6, atol=1e-9)
    }


@pytest.mark.parametrize("file", ["humanoid.xml", "hand.xml", "quadruped.xml"])
def test_a_model_without_new_features_is_what_the_compiler_here_makes(file):
    path = str(MODELS / file)
    assert not differences(compile_spec(read(path)), host_model(mujoco.MjModel.from_xml_path(path)))


def test_margins_welds_of_mocap_bodies_and_stages_of_sensors_are_those_of_mujoco_3_8():
    end = '<sensor><contact geom1="g" data="found dist"/></sensor>'
    text = scene(end=end, floor='gap=".01"')
    model = mujoco.MjModel.from_xml_string(text)
    m = host_model(model)
    assert model.body_weldid[2] == 2 and m.body_weldid[2] == 0
    assert m.sensor_needstage.tolist() == [3]
    np.testing.assert_allclose(m.geom_margin[:2], [0.06, 0.02])
    # margin and gap of MJCF have their new meaning in MuJoCo 4 alone
    assert differences(compile_spec(read(text)), m) == {"geom_margin", "body_margin"}


def test_contacts_of_a_translated_margin_are_mujocos():
    model = mujoco.MjModel.from_xml_string(scene(floor='gap=".01"'))
    m, data = jaxsim.from_mujoco(model), mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    d = jax.jit(jaxsim.forward)(m, jaxsim.from_mujoco_data(m, data))
    (theirs,) = np.flatnonzero((data.contact.geom == (0, 1)).all(1))
    (ours,) = np.flatnonzero((np.asarray(d.contact.geom) == (0, 1)).all(1))
    for name in ("dist", "includemargin"):
        np.testing.assert_allclose(getattr(d.contact, name)[ours], getattr(data.contact, name)[theirs], atol=1e-6)
