"""Compiled flexes against MuJoCo's: every field of the model."""

import re

import mujoco
import pytest

import jaxsim
from jaxsim.compiler import compile_spec
from jaxsim.mjcf import read
from tests.compiler.flex_cases import EXPLICIT, MACROS, WRONG, explicit, flex, grid
from validation.compare import assert_models_equal


@pytest.mark.parametrize("name", EXPLICIT)
def test_a_flex_over_bodies_has_the_fields_of_mujoco(name):
    assert_models_equal(compile_spec(read(EXPLICIT[name])), mujoco.MjModel.from_xml_string(EXPLICIT[name]))


@pytest.mark.parametrize("name", MACROS)
def test_a_flexcomp_has_the_fields_of_mujoco(name):
    assert_models_equal(compile_spec(read(MACROS[name])), mujoco.MjModel.from_xml_string(MACROS[name]))


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=list(WRONG))
def test_a_flex_that_mujoco_rejects_is_an_error_with_its_place(text, words):
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(explicit(text))
    with pytest.raises(jaxsim.ModelError, match=re.escape(f"XML:2: {words}")):
        compile_spec(read(explicit(text)))


@pytest.mark.parametrize(
    "extra, words",
    [
        ('<equality><flex flex="g"/></equality>', "flex: flex names the flex 'g', which does not exist"),
        (
            '<equality><flexvert flex="f"/></equality>',
            "flex 'f': constraints on vertices need a surface that is flat and",
        ),
    ],
)
def test_constraints_need_a_flex_that_fits(extra, words):
    text = explicit(flex(2), extra=extra)
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(jaxsim.ModelError, match=re.escape(words)):
        compile_spec(read(text))


def test_a_rigid_flex_takes_no_constraint():
    text = explicit(flex(2, bodies="q q q q q q"), extra='<equality><flex flex="f"/></equality>')
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(jaxsim.ModelError, match="rigid"):
        compile_spec(read(text))


def test_vertices_that_are_not_numbers_are_refused():
    with pytest.raises(jaxsim.ModelError, match="finite"):
        compile_spec(read(explicit(flex(1, 'vertex="nan 0 0 .1 0 0 0 .1 0 0 0 .1 .1 .1 .1 0 .2 .2"'))))


@pytest.mark.parametrize(
    "attrs, words",
    [
        ('dim="3" count="100000 100000 100000"', "flexcomp 'f': count makes more than 10000000 points"),
        ('dim="2" count="400 400 1"', "flexcomp 'f': there are more than 65534 points to move"),
        (
            'dim="3" count="3 3 3" dof="quadratic" cellcount="99999 99999 99999"',
            "flexcomp 'f': cellcount makes more than 65534 nodes",
        ),
    ],
)
def test_absurd_counts_are_refused_before_anything_is_made(attrs, words):
    with pytest.raises(jaxsim.ModelError, match=re.escape(words)):
        compile_spec(read(grid(attrs, '<contact selfcollide="none"/>')))


def test_a_model_with_a_flex_loads():
    m = jaxsim.load_model(MACROS["edges held"])
    assert m.nflex == 1 and m.flex_vertnum.tolist() == [16]
