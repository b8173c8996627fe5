"""Models of a newer MuJoCo: what is taken, and what is refused by name. The version is set, the model is of 3.8.1.

`test_newer_installed.py` has what needs a newer MuJoCo.
"""

import warnings
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.structure.refusals import warn_once
from jaxsim.io.mujoco import host_model
from jaxsim.io.newer import refuse_newer, warn_of_changes

XML = """<mujoco><worldbody><geom type="plane" size="1 1 1" margin=".1" gap=".04"/><body><joint name="a"/>
<geom size=".1"/></body></worldbody><actuator>{}</actuator></mujoco>"""


pytestmark = pytest.mark.skipif(mujoco.__version__ != "3.8.1", reason="pretends that 3.8.1 is newer")


@pytest.fixture
def newer(monkeypatch):
    monkeypatch.setattr(mujoco, "__version__", "3.12.0")


def compiled(actuator='<motor joint="a"/>'):
    return mujoco.MjModel.from_xml_string(XML.format(actuator))


def test_a_model_without_new_features_is_taken_and_its_margins_are_translated(newer):
    m = host_model(compiled())
    np.testing.assert_allclose(m.geom_margin, [0.14, 0])
    np.testing.assert_allclose(m.geom_gap, [0.04, 0])


def test_a_model_of_the_same_version_keeps_its_margins():
    np.testing.assert_allclose(host_model(compiled()).geom_margin, [0.1, 0])


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"geom_adhesion": np.ones(1)}, "geom_adhesion"),
        ({"opt": SimpleNamespace(integrator=4, enableflags=0)}, "integrator 4"),
        ({"opt": SimpleNamespace(integrator=0, enableflags=32)}, "enable flag"),
        ({"nactuator": 3}, "several inputs"),
        ({"actuator_gaintype": np.array([5])}, "actuator_gaintype"),
        ({"nflex": 1}, "flexes"),
    ],
)
def test_what_came_later_is_named(newer, change, name):
    m = compiled()
    part = {"opt": m.opt, "nu": 1, "nflex": 0, **{f"actuator_{k}type": np.zeros(1) for k in ("dyn", "gain", "bias")}}
    part |= {"sensor_type": np.zeros(0, int), "sensor_intprm": np.zeros((0, 3), int)}
    model = type("MjModel", (), {"__module__": "mujoco._structs", **part, **change})()
    with pytest.raises(jaxsim.UnsupportedError, match=f"compiled by MuJoCo 3.12.0.*{name}"):
        refuse_newer(model)


def test_a_dcmotor_of_another_meaning_is_refused(newer):
    with pytest.raises(jaxsim.UnsupportedError, match="dcmotor"):
        host_model(compiled('<dcmotor joint="a" motorconst="1" resistance="1"/>'))


GAP = XML.format("")
SERVO = """<mujoco><option integrator="implicitfast"/><worldbody><body><joint name="a" actuatorfrcrange="-1 1"/>
<geom size=".1"/></body></worldbody><actuator><{} joint="a"/></actuator></mujoco>"""
WRAP = """<mujoco><worldbody><geom name="g" type="cylinder" size=".1 .1"/><site name="s" pos="0 .2 0"/>
<site name="t" pos=".3 0 0"/><body><joint/><geom size=".1"/><site name="u"/></body></worldbody><tendon><spatial>
<site site="t"/><geom geom="g" {}/><site site="u"/></spatial></tendon></mujoco>"""


def said_of(xml, version=None):
    """What is said of a model of MJCF, or one that a version of MuJoCo compiled."""
    warn_once.cache_clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if version is None:
            jaxsim.load_model(xml)
        else:
            warn_of_changes(host_model(mujoco.MjModel.from_xml_string(xml)), version)
    return [str(one.message) for one in said]


@pytest.mark.parametrize(
    ("xml", "other", "word"),
    [
        (GAP, GAP.replace('gap=".04"', ""), "margin and gap"),
        (WRAP.format('sidesite="s"'), WRAP.format(""), "side sites"),
        (SERVO.format('position kv="1"'), SERVO.format("motor"), "actuatorfrcrange"),
    ],
)
def test_loading_warns_of_what_moves_results_most_in_newer_versions(xml, other, word):
    (line,) = said_of(xml)
    assert word in line and "docs/newer_mujoco.md" in line
    assert not said_of(other)


def test_of_a_compiled_model_margins_are_translated_without_a_warning():
    assert not said_of(GAP, (4, 0, 0)) and not said_of(WRAP.format('sidesite="s"'), (3, 12, 0))
    assert "side sites" in said_of(WRAP.format('sidesite="s"'), (4, 0, 0))[0]
