"""Compiled models against MuJoCo's, every field of mjModel, one small model for each feature."""

import mujoco
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.mjcf import read
from tests.compiler.cases import CASES
from validation.compare import assert_models_equal


@pytest.mark.parametrize("name", CASES)
def test_model_equals_mujoco(name):
    assert_models_equal(compile_spec(read(CASES[name])), mujoco.MjModel.from_xml_string(CASES[name]))
