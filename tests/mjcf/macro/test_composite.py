"""Cables, against MuJoCo's."""

import re

import mujoco
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.core.errors import ModelError
from jaxsim.mjcf import expand, read, save_mjcf
from tests.mjcf.test_writer import differences
from validation.compare import assert_models_equal

CAPSULE = '<geom type="capsule" size=".1" rgba="1 0 0 1"/>'
BOX = '<geom type="box" size=".1 .05 .02"/><skin texcoord="true" rgba="1 0 0 1" material="m"/>'


def model(attrs, inside, around="{}"):
    """A model with one composite."""
    parts = inside + '<joint kind="main" damping="1" stiffness="2"/><site size=".2"/>'
    composite = f'<composite type="cable" {attrs}>{parts}</composite>'
    return f"""<mujoco><default><geom friction="5"/><joint armature="1"/></default><asset><material name="m"/></asset>
      <worldbody>{around.format(composite)}</worldbody></mujoco>"""


@pytest.mark.parametrize(
    "inside", [CAPSULE, BOX, CAPSULE.replace("capsule", "cylinder")], ids=["capsule", "box", "cylinder"]
)
@pytest.mark.parametrize(
    "attrs, around",
    [
        ('count="5 1 1" curve="s" size="1" offset="0 0 1" initial="none"', '<body name="p"><geom size="1"/>{}</body>'),
        ('count="6 1 1" curve="cos(s) sin(s) s" size="1 .3 2" initial="free" prefix="q" quat="1 1 0 0"', "{}"),
        (
            'vertex="0 0 0 1 0 0 1 1 0 1 1 1"',
            '<body><geom size="1"/><frame pos="1 0 0" euler="10 20 30">{}</frame></body>',
        ),
    ],
)
def test_cables_are_those_of_mujoco(attrs, around, inside):
    text = model(attrs, inside, around)
    flat = save_mjcf(expand(read(text)))
    assert differences(mujoco.MjModel.from_xml_string(text), mujoco.MjModel.from_xml_string(flat)) == []


@pytest.mark.parametrize(
    "attrs, inside, words",
    [
        ('count="3 2 1" curve="s"', CAPSULE, "composite: a cable has one dimension and two vertices or more"),
        ('count="1" curve="s"', CAPSULE, "composite: a cable has one dimension and two vertices or more"),
        ('count="3" curve="s" size="0"', CAPSULE, "composite: size must be positive"),
        ('count="3" curve="s"', "", "composite: a cable of three vertices cannot be made (nor by MuJoCo)"),
        ('count="3" vertex="0 0 0 1 0 0"', CAPSULE, "composite: vertex and count exclude each other"),
        ('count="3" curve="x"', CAPSULE, "composite: unknown shape 'x' in curve"),
        ('count="0" curve="s"', CAPSULE, "composite: count must be positive"),
        ('count="3" curve="s s s s"', CAPSULE, "composite: curve has at most 3 components"),
        ('vertex="0 0 0 1 0"', CAPSULE, "composite: vertex needs three numbers for each point"),
    ],
)
def test_wrong_cables_are_refused(attrs, inside, words):
    text = model(attrs, inside)
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ModelError, match=re.escape(words)):
        expand(read(text))


@pytest.mark.parametrize("kind", ["particle", "grid", "rope", "loop", "cloth"])
def test_withdrawn_types_say_what_to_write_instead(kind):
    text = model('count="3" curve="s"', CAPSULE).replace("cable", kind)
    with pytest.raises(ModelError, match=f"composites of type {kind} were removed from MJCF; write"):
        expand(read(text))


@pytest.mark.parametrize("subgrid", [1, 2, 3])
@pytest.mark.parametrize("count", [4, 6])
def test_skins_with_a_subgrid_are_those_of_mujoco(count, subgrid):
    inside = BOX.replace("<skin", f'<skin subgrid="{subgrid}"')
    text = model(f'count="{count} 1 1" curve="s cos(s) 0" size="1 .3 1"', inside)
    theirs = mujoco.MjModel.from_xml_string(text)
    assert_models_equal(compile_spec(read(text)), theirs)
    assert differences(theirs, mujoco.MjModel.from_xml_string(save_mjcf(expand(read(text))))) == []
