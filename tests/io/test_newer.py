"""Models of a newer MuJoCo: what is taken, and what is refused by name. The version is set, the model is of 3.8.1."""

from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.io.mujoco import host_model
from jaxsim.io.newer import refuse_newer

XML = """<mujoco><worldbody><geom type="plane" size="1 1 1" margin=".1" gap=".04"/><body><joint name="a"/>
<geom size=".1"/></body></worldbody><actuator>{}</actuator></mujoco>"""


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
    model = type("MjModel", (), {"__module__": "mujoco._structs", **part, **change})()
    with pytest.raises(jaxsim.UnsupportedError, match=f"compiled by MuJoCo 3.12.0.*{name}"):
        refuse_newer(model)


def test_a_dcmotor_of_another_meaning_is_refused(newer):
    with pytest.raises(jaxsim.UnsupportedError, match="dcmotor"):
        host_model(compiled('<dcmotor joint="a" motorconst="1" resistance="1"/>'))
