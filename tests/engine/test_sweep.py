"""Every number of the dynamics, one at a time: one step with another value against the reference, stage by stage."""

import functools

import jax
import lxml.etree
import mujoco
import numpy as np
import pytest

import jaxsim
from tests.engine.sweep_cases import NUMBERS, WORDS
from tests.engine.sweep_models import MODELS
from validation.models import everything
from validation.stages import INPUTS, assert_fields, copy_field, exact, field, states, to_data

STEP = jax.jit(jaxsim.step)
FIELDS = ["xpos", "subtree_com", "ten_length", "M", "ncon", "nefc", "actuator_length", "ten_velocity", "cvel"]
FIELDS += ["qfrc_spring", "qfrc_damper", "qfrc_gravcomp", "qfrc_fluid", "qfrc_bias", "act_dot", "actuator_force"]
FIELDS += ["qfrc_smooth", "qacc_smooth", "qfrc_constraint", "qacc", "energy", "sensordata", "act", "qvel", "qpos"]


def flat(table, many):
    return [(path, a, v) for path, names in table.items() for a, values in names.items() for v in many(values)]


CASES = flat(NUMBERS, lambda v: [v])
STRUCTURE = flat(WORDS, lambda v: v)


def changed(path, attribute, value):
    """The reference's model with one attribute written."""
    root = lxml.etree.fromstring(everything.BASE)
    found = root.findall(f".//{path}")
    assert len(found) == 1, (path, found)
    element = found[0]
    if attribute == "jointinparent":
        del element.attrib["joint"]
    if attribute == "density" and "mass" in element.attrib:
        del element.attrib["mass"]
    if attribute == "type":
        element.set("size", ".1 .11 .12")
    if attribute == "override":
        element.getparent().attrib.update({"o_solref": ".04 .7", "o_solimp": ".8 .9 .01 .4 2", "o_margin": ".03"})
        element.getparent().attrib.update({"o_friction": ".5 .6 .02 .01 .01"})
    element.set(attribute, value)
    return exact(mujoco.MjModel.from_xml_string(lxml.etree.tostring(root).decode()))


@functools.cache
def start():
    """A state of the base model in which everything acts, and its fields after a step of the reference."""
    model, state = everything.state()
    return state, after_step(model, state)[1]


def after_step(model, state):
    data = mujoco.MjData(model)
    for name in INPUTS:
        copy_field(data, state, name)
    data.eq_active[:] = model.eq_active0
    before = to_data_input(data)
    mujoco.mj_step(model, data)
    return before, data


BLANK = {}


def blank(m):
    """Our data, made once for each structure: all that a step reads is written over."""
    key = m.structure, m.opt.cone, m.opt.enableflags
    if key not in BLANK:
        BLANK[key] = jaxsim.make_data(m)
    return BLANK[key]


def to_data_input(data):
    return {name: np.array(getattr(data, name)) for name in INPUTS}


def check(path, attribute, value):
    model = changed(path, attribute, value)
    state, base = start()
    before, data = after_step(model, state)
    effect = any(
        np.shape(getattr(base, n)) != np.shape(getattr(data, n))
        or np.abs(getattr(base, n) - getattr(data, n)).max(initial=0)
        for n in FIELDS
    )
    assert effect or attribute in ("jacobian", "solver", "warmstart"), "the value changes nothing"
    m = jaxsim.from_mujoco(model, max_contacts=12)
    d = STEP(m, blank(m).replace(**before))
    assert_fields(FIELDS, model, data, d, 1e-7)


@pytest.mark.parametrize(("path", "attribute", "value"), CASES)
def test_a_number_is_used_as_in_the_reference(path, attribute, value):
    check(path, attribute, value)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "attribute", "value"), STRUCTURE)
def test_a_word_is_used_as_in_the_reference(path, attribute, value):
    check(path, attribute, value)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_another_form_is_stepped_as_in_the_reference(name):
    model = exact(mujoco.MjModel.from_xml_string(MODELS[name]))
    m = jaxsim.from_mujoco(model)
    for data in states(model, 2):
        d = STEP(m, to_data(m, data))
        mujoco.mj_step(model, data)
        assert_fields([n for n in FIELDS if n != "energy"], model, data, d, 1e-7)


def test_the_base_model_has_everything_at_work():
    _, data = start()
    for name in ("qfrc_spring", "qfrc_damper", "qfrc_gravcomp", "qfrc_fluid", "actuator_force", "qfrc_constraint"):
        assert np.abs(field(None, data, name)).max() > 1e-6, name
    kinds = set(data.efc_type.tolist())
    assert {0, 1, 2, 3, 4, 7} <= kinds and data.ncon >= 2
