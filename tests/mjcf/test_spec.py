"""Specs built and edited from Python."""

import mujoco
import numpy as np
import pytest

from jaxsim.core.errors import ModelError
from jaxsim.mjcf import Spec, compiler_of, expand, read, resolve, save_mjcf


def pendulum() -> Spec:
    """A pendulum with a motor, made in Python."""
    spec = Spec()
    body = spec.worldbody.add("body", name="arm", pos=[0, 0, 1])
    body.add("joint", name="hinge", axis=(0, 1, 0), damping=0.1)
    body.add("geom", type="capsule", size=[0.05], fromto=[0, 0, 0, 0, 0, -0.5])
    spec.add("actuator", "motor", joint="hinge", ctrllimited=True, ctrlrange=[-1, 1])
    return spec


def test_a_spec_made_in_python_is_the_model_it_says():
    model = mujoco.MjModel.from_xml_string(save_mjcf(pendulum()))
    assert model.nv == 1 and model.nu == 1
    np.testing.assert_allclose(model.dof_damping, [0.1])


def test_elements_are_found_by_kind_and_name():
    spec = pendulum()
    assert spec.body("arm").tag == "body" and spec.body("world") is spec.worldbody
    assert spec.find("joint", "hinge").parent is spec.body("arm")
    assert spec.find("joint", "none") is None
    with pytest.raises(ModelError, match=r"no joint 'hnge'; did you mean 'hinge'"):
        spec.require("joint", "hnge")


def test_attributes_are_checked_when_they_are_written():
    joint = pendulum().find("joint", "hinge")
    joint.set(range="-1 1", limited="true", class_="main", damping=None)
    assert list(joint.attrs["range"]) == [-1, 1] and joint.attrs["class"] == "main" and "damping" not in joint.attrs
    for wrong, words in (
        ({"rnage": "0 1"}, "unknown attribute 'rnage' in joint; did you mean 'range'"),
        ({"range": [0, 1, 2]}, "'range': has 3 numbers; 2 are needed"),
        ({"range": "a b"}, "'range': 'a' is not a number"),
        ({"type": "hinges"}, "'type': unknown keyword 'hinges'; did you mean 'hinge'"),
        ({"group": 1.5}, "'group': 1.5 is not a list of integers"),
        ({"axis": object()}, "'axis': .* is not a list of numbers"),
    ):
        with pytest.raises(ModelError, match=f"joint 'hinge': .*{words}"):
            joint.set(**wrong)


def test_children_stand_only_where_the_language_allows():
    with pytest.raises(ModelError, match=r"unknown element 'goem' in body; did you mean 'geom'"):
        pendulum().body("arm").add("goem")


def test_elements_are_deleted_and_copied():
    spec = pendulum()
    twin = spec.copy()
    spec.delete("joint", "hinge")
    assert spec.find("joint", "hinge") is None and twin.find("joint", "hinge") is not None
    with pytest.raises(ModelError, match="does not exist"):
        expand(spec)
    body = twin.body("arm").copy()
    body.set(name="arm2")
    body.child("joint").set(name="hinge2")
    twin.worldbody.append(body)
    assert [j.name for j in expand(twin).elements("joint")] == ["hinge", "hinge2"]


def test_edits_count_at_once():
    spec = read('<mujoco><default><geom size="1"/></default><worldbody><geom name="g"/></worldbody></mujoco>')
    geom = spec.find("geom", "g")
    assert resolve(spec, geom)["size"][0] == 1
    spec.root.child("default").child("geom").set(size=[2])
    assert resolve(spec, geom)["size"][0] == 2
    assert compiler_of(spec, geom)["angle"] == "degree"
    spec.section("compiler").set(angle="radian")
    assert compiler_of(spec, geom)["angle"] == "radian"


def test_contradictions_made_in_python_are_found_by_expand():
    spec = pendulum()
    spec.worldbody.add("geom", size=[1], quat=[1, 0, 0, 0], euler=[0, 0, 0])
    with pytest.raises(ModelError, match="exclude each other"):
        expand(spec)
