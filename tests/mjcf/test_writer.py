"""Saved models, read by MuJoCo, are what they were: as written, and flat after every macro has run."""

import os

import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.core.errors import UnsupportedError
from jaxsim.mjcf import expand, read, save_mjcf
from tests.mjcf.helpers import CONTEXT
from tests.mjcf.macro.test_expand import ASSETS, ATTACH, CHILD, COPIES, parent
from tests.mjcf.test_defaults import ACTUATORS, DEFAULTS, MODEL
from tests.paths import MODELS

OURS = sorted(map(str, MODELS.glob("*.xml")))
SHARED = {f"common/{path.name}": path.read_bytes() for path in MODELS.glob("common/*.xml")}  # files of attached models


def differences(a, b, only="") -> list[str]:
    """Names of the fields in which two compiled models differ."""
    found = []
    for holder, other, prefix in ((a, b, ""), (a.opt, b.opt, "opt."), (a.stat, b.stat, "stat.")):
        for name in dir(holder):
            if name.startswith("_") or name == "paths" or not name.startswith(only):
                continue
            x, y = getattr(holder, name), getattr(other, name)
            if isinstance(x, bytes):
                same = x == y
            elif isinstance(x, int | float | np.ndarray):
                x, y = np.asarray(x), np.asarray(y)
                same = x.shape == y.shape and np.allclose(x, y, rtol=1e-10, atol=_rounding(x), equal_nan=True)
            else:
                continue
            if not same:
                found.append(prefix + name)
    return found


def _rounding(x):
    """What may differ by rounding alone: an entry of a row (a matrix, say) may be what large terms of it leave."""
    size = np.where(np.isfinite(x), np.abs(x), 0)
    return 1e-13 * (size.max(-1, initial=1, keepdims=True) if x.ndim > 1 else 1)


def assert_saved_alike(text, assets=None, flat=True, only=""):
    """Save, compile with MuJoCo, compare with MuJoCo's reading of the original."""
    model = mujoco.MjModel.from_xml_string(text, assets or {})
    spec = read(text, assets)
    for saved in (save_mjcf(spec), *([save_mjcf(expand(spec))] if flat else [])):
        assert differences(model, mujoco.MjModel.from_xml_string(saved, assets or {}), only) == []
        assert save_mjcf(read(saved, assets)) == saved


@pytest.mark.parametrize("path", OURS, ids=os.path.basename)
def test_models_are_saved_alike(path):
    model, spec = mujoco.MjModel.from_xml_path(path), read(path)
    for saved in (save_mjcf(spec), save_mjcf(expand(spec))):
        assert differences(model, mujoco.MjModel.from_xml_string(saved, SHARED)) == []
        assert save_mjcf(read(saved, SHARED)) == saved


@pytest.mark.parametrize(
    "text, assets, flat",
    [
        (MODEL, None, False),
        (CONTEXT % "", None, True),
        (
            f"<mujoco><worldbody>{COPIES}</worldbody></mujoco>",
            None,
            True,
        ),
        (f'<mujoco><worldbody>{COPIES}</worldbody><sensor><jointpos joint="j"/></sensor></mujoco>', None, True),
        (CHILD.decode(), None, True),
        (
            '<mujoco><option gravity="1e-30 0.1 -0.30000000000000004"><flag energy="enable"/></option></mujoco>',
            None,
            True,
        ),
        (
            '<mujoco model="a &amp; &quot;b&quot;"><custom><text name="t" data="&lt;x&gt;"/></custom></mujoco>',
            None,
            True,
        ),
    ],
)
def test_features_are_saved_alike(text, assets, flat):
    assert_saved_alike(text, assets, flat)


@pytest.mark.parametrize(
    "world", [ATTACH, '<attach model="ch" prefix="p_"/>', f'<frame euler="10 20 30">{ATTACH}</frame>']
)
def test_attached_models_are_saved_alike(world):
    text = parent(world, before='<default><geom density="5"/></default>')
    model = mujoco.MjModel.from_xml_string(text, ASSETS)
    spec = read(text, ASSETS)
    assert differences(model, mujoco.MjModel.from_xml_string(save_mjcf(expand(spec)))) == []
    assert differences(model, mujoco.MjModel.from_xml_string(save_mjcf(spec), ASSETS)) == []


def test_models_attached_in_python_are_saved_flat():
    spec = read("<mujoco/>")
    spec.attach(read(CHILD.decode()), prefix="p_")
    model = mujoco.MjModel.from_xml_string(parent('<attach model="ch" prefix="p_"/>'), ASSETS)
    assert differences(model, mujoco.MjModel.from_xml_string(save_mjcf(spec))) == []


@pytest.mark.parametrize("tag", ACTUATORS)
def test_actuators_are_saved_alike(tag):
    target = "body='b'" if tag == "adhesion" else "joint='j'"
    for default in DEFAULTS:
        for attrs in ACTUATORS[tag]:
            text = f"""<mujoco><default><default class="a">{default}</default></default>
              <worldbody><body name="b"><joint name="j" range="-1 1"/><geom size="1"/></body></worldbody>
              <actuator><{tag} class="a" {target} {attrs}/></actuator></mujoco>"""
            try:
                mujoco.MjModel.from_xml_string(text)
            except ValueError:
                continue
            assert_saved_alike(text, only="actuator_")


def test_file_names_follow_the_file(tmp_path):
    inner = tmp_path / "meshes"
    inner.mkdir()
    (inner / "t.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n")
    model = tmp_path / "m.xml"
    model.write_text("""<mujoco><compiler assetdir="meshes"/><asset><mesh file="t.obj"/></asset>
      <worldbody><geom type="mesh" mesh="t"/></worldbody></mujoco>""")
    other = tmp_path / "other"
    other.mkdir()
    save_mjcf(read(model), other / "saved.xml")
    first, second = (mujoco.MjModel.from_xml_path(str(p)) for p in (model, other / "saved.xml"))
    assert differences(first, second) == []


def test_what_only_a_class_can_say_is_saved_flat():
    assert_saved_alike("""<mujoco><default><tendon width=".5"/><general biasprm="1 2 3"/></default>
      <worldbody><body><joint name="j"/><geom size="1"/></body></worldbody>
      <tendon><fixed><joint joint="j" coef="1"/></fixed></tendon>
      <actuator><plugin plugin="mujoco.pid" joint="j"/></actuator>
      <extension><plugin plugin="mujoco.pid"/></extension></mujoco>""")


LIMITED = """<worldbody><body name="b" euler="20 30 0" pos="0 0 1">
  <joint name="j" range="-20 1.5" actuatorfrcrange="-1 1"/><joint name="k" axis="1 0 0"/>
  <geom size=".1 .2 .3" type="box" pos=".1 0 0"/><geom size=".1" group="2" pos="0 0 .4"/>
  <body name="c"><inertial pos="0 0 .1" mass="1" diaginertia=".1 .2 .25"/><joint type="slide"/><geom size=".02"/></body>
  <body name="d" pos="1 0 0"/><body name="e" pos="1 1 0"><geom size=".1" group="4"/></body></body>
  <body name="f"><freejoint name="f"/><geom size=".1 .2" type="capsule" pos="0 .3 0"/>
  <site pos="1 2 3"/></body></worldbody>
  <tendon><fixed name="t" range="-1 1"><joint joint="j" coef="2"/></fixed></tendon>
  <actuator><motor joint="j" ctrlrange="-1 2" forcerange="0 3"/><position joint="j" inheritrange="1"/>
  <intvelocity joint="j" inheritrange=".5"/></actuator>"""
SETTINGS = {
    "no autolimits around": ('autolimits="false"', ""),
    "bounds inside": ("", 'boundmass="70" boundinertia=".2"'),
    "bounds around": ('boundmass="70" boundinertia=".2"', ""),
    "groups": ('inertiagrouprange="0 3"', 'inertiagrouprange="0 1"'),
    "from geoms inside": ("", 'inertiafromgeom="true"'),
    "from geoms around": ('inertiafromgeom="true" settotalmass="7"', 'balanceinertia="true" angle="radian"'),
    "aligned inside": ("", 'alignfree="true"'),
    "aligned around": ('alignfree="true" fusestatic="true"', 'boundmass=".5" eulerseq="zyx"'),
}


@pytest.mark.parametrize("around, inside", SETTINGS.values(), ids=SETTINGS)
def test_models_with_other_settings_are_saved_flat(around, inside):
    child = f"<mujoco><compiler {inside}/>{LIMITED}</mujoco>"
    text = f"""<mujoco><compiler {around}/><asset><model name="m" file="m.xml"/></asset><worldbody>
      <body pos="1 2 3"><freejoint/><geom size=".2 .1" type="cylinder"/>
      <inertial mass="3" pos="0 0 1" diaginertia="1 1 1"/><site name="s"/></body><frame name="f"/>
      <attach model="m" prefix="p_"/></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text, {"m.xml": child.encode()})
    plain = text.replace('<asset><model name="m" file="m.xml"/></asset>', "").replace(
        '<attach model="m" prefix="p_"/>', ""
    )
    spec = read(plain)
    spec.attach(read(child), prefix="p_")
    assert differences(model, mujoco.MjModel.from_xml_string(jaxsim.save_mjcf(spec))) == []


def test_what_cannot_be_said_flat_is_refused():
    other = read("<mujoco/>")
    other.attach(
        read("""<mujoco><compiler fitaabb="true"/><asset><mesh name="m" builtin="cone" params="8 1"/></asset>
          <worldbody><geom type="box" mesh="m"/></worldbody></mujoco>"""),
        prefix="p",
    )
    with pytest.raises(UnsupportedError, match="fitaabb"):
        jaxsim.save_mjcf(other)
