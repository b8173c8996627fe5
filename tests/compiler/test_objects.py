"""The classes of draft objects declare every attribute that the compile passes set or read."""

import pytest

from jaxsim.compiler.assemble import FIELD_SOURCES, PREFIX_KIND
from jaxsim.compiler.compile import PASSES
from jaxsim.compiler.draft import KINDS, Draft
from jaxsim.compiler.objects import CLASSES, DraftObject
from jaxsim.mjcf import expand, read
from jaxsim.mjcf.keyframes import extend

OWN = {"kind", "_el", "attrs", "name", "id", "frame"}  # what every object has
OF_BODIES = {"parent", "bodies", "inertials", "plugin_el", "nodes", "objects"}
XML = """<mujoco>
  <extension><plugin plugin="mujoco.pid"><instance name="pid"/></plugin></extension>
  <size nkey="2"/>
  <asset>
    <mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
    <texture name="t" type="2d" builtin="flat" width="4" height="4"/>
    <material name="a" texture="t"/>
    <hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" material="a"/>
    <geom type="hfield" hfield="h"/>
    <camera name="c"/>
    <light name="l"/>
    <site name="s0"/>
    <body name="b" pos="0 0 1">
      <joint name="j" range="-1 1"/>
      <geom name="g" type="mesh" mesh="m"/>
      <site name="s" pos="0 0 1"/>
      <body name="b2"><joint name="j2" axis="1 0 0"/><geom name="g2" size="1"/></body>
    </body>
    <flexcomp name="f" type="grid" count="3 3 1" spacing="0.1 0.1 0.1" radius="0.01" dim="2" mass="1"/>
  </worldbody>
  <deformable><skin name="k" vertex="0 0 0 1 0 0 0 1 0" face="0 1 2">
    <bone body="b" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/></skin></deformable>
  <contact><pair geom1="floor" geom2="g2"/><exclude body1="b" body2="b2"/></contact>
  <equality><joint joint1="j" joint2="j2"/></equality>
  <tendon><spatial name="n"><site site="s0"/><site site="s"/></spatial></tendon>
  <actuator><motor joint="j"/><plugin joint="j2" plugin="mujoco.pid" instance="pid"/></actuator>
  <sensor><jointpos joint="j"/><touch site="s"/><tactile mesh="m" geom="g"/></sensor>
  <custom>
    <numeric name="x" data="1"/><text name="y" data="z"/>
    <tuple name="u"><element objtype="geom" objname="g2"/></tuple>
  </custom>
</mujoco>"""


def declared(kind: str) -> set[str]:
    """Names that the class of a kind declares."""
    cls = CLASSES[kind]
    return {name for base in cls.__mro__ for name in getattr(base, "__annotations__", ())}


@pytest.mark.parametrize("prefix", FIELD_SOURCES)
def test_sources_of_fields_are_declared(prefix):
    sources = [row.partition("=")[2] for row in FIELD_SOURCES[prefix].split()]
    assert {s[1:] for s in sources if s[0] in ".#"} <= declared(PREFIX_KIND[prefix]) | {"id"}


def test_passes_set_what_is_declared():
    spec = expand(read(XML))
    extend(spec)
    draft = Draft(spec)
    for step in PASSES:
        step(draft)
    for kind in KINDS:
        assert draft.lists[kind], kind
        known = declared(kind) | OWN | (OF_BODIES if kind == "body" else set())
        known |= {"declared", "config", "users"} if kind == "plugin" else set()
        for obj in draft.lists[kind]:
            assert vars(obj).keys() <= known
            assert type(obj) is not DraftObject or kind in ("text", "key")
    unset = {name for kind in KINDS for name in declared(kind) - set().union(*(vars(o) for o in draft.lists[kind]))}
    assert not unset, f"declared and never set: {unset}"
