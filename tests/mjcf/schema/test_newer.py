"""Words of newer versions of MuJoCo are refused by saying in which one they came."""

import pytest

import jaxsim
from jaxsim.mjcf.schema.element_type import all_types
from jaxsim.mjcf.schema.newer import VERSIONS

BODY = "<worldbody><body><joint name='j'/><geom size='.1' {}/></body></worldbody>"


@pytest.mark.parametrize(
    ("xml", "what", "version"),
    [
        (BODY.format('adhesion="1"'), "attribute 'adhesion' in geom", "3.11"),
        (BODY.format('surfacevel="1 0 0"'), "attribute 'surfacevel' in geom", "3.11"),
        ('<option><flag diagexact="enable"/></option>', "attribute 'diagexact' in flag", "3.9"),
        ('<compiler conflict="merge"/>', "attribute 'conflict' in compiler", "3.10"),
        (BODY.format("") + "<actuator><pid joint='j'/></actuator>", "element 'pid' in actuator", "3.12"),
        (BODY.format("") + "<actuator><orientation joint='j'/></actuator>", "element 'orientation'", "3.11"),
        (BODY.format("") + "<actuator><general joint='j' gaintype='so3'/></actuator>", "so3", "3.11"),
    ],
)
def test_the_error_names_the_version(xml, what, version):
    with pytest.raises(jaxsim.ModelError) as error:
        jaxsim.load_model(f"<mujoco>{xml}</mujoco>")
    assert what in str(error.value)
    assert f"it came with MuJoCo {version}, and this reads MuJoCo 3.8.1" in str(error.value)


def test_a_word_of_no_known_version_is_refused_as_newer():
    with pytest.raises(jaxsim.ModelError, match=r"it came after MuJoCo 3\.8\.1"):
        jaxsim.load_model('<mujoco><option integrator="discrete"/></mujoco>')


def test_the_tables_hold_nothing_that_is_read():
    types = all_types()
    tags = {kind.tag for kind in types}
    assert not tags & set(VERSIONS)
    for tag, name in (word.split("/") for word in VERSIONS if "/" in word):
        assert tag in tags, tag
        assert all(name not in kind.attributes for kind in types if kind.tag == tag), (tag, name)
