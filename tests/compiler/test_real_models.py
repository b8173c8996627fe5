"""Models of other projects, as they are installed, against MuJoCo's: every field of mjModel."""

import importlib.util
import pathlib

import mujoco
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.mjcf import read
from tests.paths import MODELS
from validation.compare import archive_differences, assert_models_equal, saved_differences


def files(package: str, folder: str) -> list[pathlib.Path]:
    """The MJCF files in a folder of a package, none where it is not installed."""
    spec = importlib.util.find_spec(package)
    return [] if spec is None else sorted((pathlib.Path(spec.origin).parent / folder).glob("*.xml"))


OURS = sorted(MODELS.glob("*.xml"))
GYMNASIUM = files("gymnasium", "envs/mujoco/assets")
SUITE = files("dm_control", "suite")  # not installed with Python 3.13 and newer


def check(path: pathlib.Path) -> None:
    assert_models_equal(compile_spec(read(str(path))), mujoco.MjModel.from_xml_path(str(path)))


@pytest.mark.parametrize("path", OURS + GYMNASIUM, ids=lambda p: p.name)
def test_model_equals_mujoco(path):
    check(path)


@pytest.mark.parametrize("path", OURS, ids=lambda p: p.name)
def test_saved_model_equals_mujoco(path, tmp_path):
    spec, theirs = read(str(path)), mujoco.MjModel.from_xml_path(str(path))
    assert archive_differences(compile_spec(spec), tmp_path / "model.jaxsim") == {}
    assert saved_differences(spec, theirs, tmp_path / "model.xml") == {}
    assert saved_differences(spec, theirs, tmp_path / "flat.xml", flat=True) == {}


@pytest.mark.slow
@pytest.mark.parametrize("path", SUITE, ids=lambda p: p.name)
def test_control_suite_equals_mujoco(path):
    check(path)
