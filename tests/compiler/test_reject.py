"""Models that are wrong are rejected, as by MuJoCo, with an error that says where."""

import re

import mujoco
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.core.errors import ModelError
from jaxsim.mjcf import read
from tests.compiler.reject_cases import CASES


@pytest.mark.parametrize(("text", "words"), CASES.values(), ids=list(CASES))
def test_wrong_model_is_rejected_with_line_element_and_reason(text, words):
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ModelError) as error:
        compile_spec(read(text))
    assert str(error.value).startswith(f"XML:{line_of(text, words)}: {words}")


def line_of(text: str, words: str) -> int:
    """The line of the last element that the words name: the wrong one."""
    tag = next(word for word in re.findall(r"\w+", words) if f"<{word}" in text)
    return text[: text.rindex(f"<{tag}")].count("\n") + 1


def test_error_names_line_element_and_nearest_name():
    text = """<mujoco>
      <worldbody><body name="torso"><joint name="hip"/><geom size=".1"/></body></worldbody>
      <actuator><motor name="m" joint="hop"/></actuator>
    </mujoco>"""
    with pytest.raises(ModelError, match=r"3: motor 'm': .*'hop'.*did you mean 'hip'"):
        compile_spec(read(text))
