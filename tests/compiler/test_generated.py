"""Each attribute of the language, well and badly written: MuJoCo's verdict, and its fields where it accepts."""

import warnings

import mujoco
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.core.errors import ModelError
from jaxsim.mjcf import read
from jaxsim.mjcf.schema.element_type import all_types
from tests.mjcf.helpers import CONTEXT, document
from tests.mjcf.schema.test_element_type import uses
from validation.compare import model_differences

FLEX = CONTEXT[CONTEXT.index("<deformable>") : CONTEXT.index("</deformable>") + len("</deformable>")]
CRASH = "mujoco/body/flexcomp/plugin/config"  # of MuJoCo 3.8.1, whatever the configuration says
KINDS = [kind for kind in all_types() if kind.path != CRASH]


def model(kind, attrs: dict[str, str]) -> str:
    """A model with one use of an element; without the flex that nothing in it refers to."""
    text = document(kind, attrs)
    return text if text.count("flex1") > 1 else text.replace(FLEX, "")


def fault(text: str) -> str | None:
    """How our verdict or our fields differ from MuJoCo's."""
    try:
        theirs, reason = mujoco.MjModel.from_xml_string(text), None
    except (ValueError, mujoco.FatalError) as error:
        theirs, reason = None, str(error)
    try:
        ours = compile_spec(read(text))
    except ModelError as error:
        return None if theirs is None else f"ours: {error}"
    if theirs is None:
        return f"MuJoCo: {reason}"
    different = model_differences(ours, theirs)
    return str(different) if different else None


def check(kind, most: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {}
        for name, good, bads in uses(kind):
            for attrs in (good, *bads[:most]):
                found[name, attrs.get(name)] = fault(model(kind, attrs))
    assert not {use: how for use, how in found.items() if how}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.path)
def test_use_of_each_attribute_agrees_with_mujoco(kind):
    check(kind, 0 if kind.path.count("sensor") or "default" in kind.path else 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.path)
def test_every_use_of_each_attribute_agrees_with_mujoco(kind):
    check(kind, 99)
