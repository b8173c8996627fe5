"""Plugins in the language: instances, configuration, users and sizes, against MuJoCo and its own plugins."""

import re

import mujoco
import numpy as np
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.core import plugins
from jaxsim.core.errors import ModelError, UnsupportedError
from jaxsim.mjcf import read
from validation.compare import assert_models_equal

CABLE = "mujoco.elasticity.cable"
BODY = '<worldbody><body name="b"><joint name="j" type="ball"/><geom name="g" type="capsule" size=".1 .2"/>%s</body>'
ARM = '<worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>'
COMPOSITE = '<composite type="cable" curve="s" count="5 1 1" size="1" prefix="%s">%s<geom type="capsule" size=".01"/>'


def model(names: str, rest: str, inside: str = "") -> str:
    """A model that declares plugins."""
    declared = "".join(f'<plugin plugin="mujoco.{name}">{inside}</plugin>' for name in names.split())
    return f"<mujoco><extension>{declared}</extension>{rest}</mujoco>"


def configured(**values: str) -> str:
    """Config elements."""
    return "".join(f'<config key="{key}" value="{value}"/>' for key, value in values.items())


def cable(**values: str) -> str:
    """A plugin element in a body."""
    return f'<plugin plugin="{CABLE}">{configured(**values)}</plugin>'


def body(text: str) -> str:
    """A world with one body that holds a text, and a site."""
    return BODY % text + '<site name="s"/></worldbody>'


def pid(attributes: str = "", **values: str) -> str:
    """A model with one controlled joint."""
    actuator = f'<plugin joint="j" plugin="mujoco.pid" {attributes}>{configured(kp="1", **values)}</plugin>'
    return model("pid", f"{ARM}<actuator>{actuator}</actuator>")


def touch(attributes: str = 'objtype="site" objname="s"', **values: str) -> str:
    """A model with one grid of touch sensors."""
    values = {"size": "2 3", "fov": "10 20", **values}
    sensor = f'<plugin plugin="mujoco.sensor.touch_grid" {attributes}>{configured(**values)}</plugin>'
    return model("sensor.touch_grid", f"{body('')}<sensor><clock/>{sensor}<clock/></sensor>")


INSTANCES = f'<instance name="i">{configured(flat="true", bend="3")}</instance><instance name="k"/>'
EQUAL = {
    "implicit": model("elasticity.cable", body(cable(twist="1e3"))),
    "instance": model("elasticity.cable", body('<plugin instance="i"/>'), INSTANCES),
    "instance and name": model("elasticity.cable", body(f'<plugin plugin="{CABLE}" instance="i"/>'), INSTANCES),
    "instance with a config": model(
        "elasticity.cable", body(f'<plugin instance="i">{configured(bend="1")}</plugin>'), INSTANCES
    ),
    "instance of another plugin": model(
        "pid elasticity.cable", body(f'<plugin plugin="{CABLE}" instance="i"/>'), "<instance name='i'/>"
    ).replace("<instance name='i'/>", "", 1),
    "declared": model("pid elasticity.cable sdf.gear", body("")),
    "declared twice": model("pid pid", body("")),
    "unused instances": model("elasticity.cable", body(""), INSTANCES),
    "nameless instance": model("elasticity.cable", "", '<instance name=""/>'),
    "empty name": model("elasticity.cable", body(f'<plugin plugin="{CABLE}" instance=""/>')),
    "in the world": model("elasticity.cable", f"<worldbody>{cable()}</worldbody>"),
    "in a frame": model("elasticity.cable", body(f"<frame>{cable()}</frame>")),
    "on a geom": model("sdf.torus", '<worldbody><geom size="1"><plugin plugin="mujoco.sdf.torus"/>'
                       '<plugin plugin="mujoco.sdf.gear"/></geom></worldbody>'),
    "cables": model(
        "elasticity.cable",
        f'<worldbody><body name="o">{cable(vmax="9")}</body>{COMPOSITE % ("a", cable(twist="1e7"))}</composite>'
        f"{COMPOSITE % ('b', cable(bend='1'))}</composite><body>{cable(vmax='2')}</body></worldbody>",
    ),
    "cable of an instance": model(
        "elasticity.cable",
        "<worldbody>" + COMPOSITE % ("c", f'<plugin plugin="{CABLE}" instance="i"/>') + "</composite></worldbody>",
        INSTANCES,
    ),
    "order": model(
        "elasticity.cable sensor.touch_grid pid",
        f'<worldbody><body><joint name="j"/>{cable(vmax="2")}<geom size=".1"/></body><site name="s"/></worldbody>'
        f'<sensor><plugin name="tg" plugin="mujoco.sensor.touch_grid" objtype="site" objname="s" cutoff="1" user="1 2">'
        f'{configured(size="2 3", fov="10 20", nchannel="3", gamma="0.5")}</plugin><clock/></sensor>'
        f'<actuator><plugin name="a" joint="j" plugin="mujoco.pid">{configured(kp="2")}</plugin></actuator>',
    ),
    "pid": pid(),
    "pid with integral": pid('actdim="1"', ki="1", imax="3"),
    "pid with integral and slew": pid('actdim="2"', ki="1", slewmax="3"),
    "pid with filter": pid('actdim="2" dyntype="filter" actlimited="true" actrange="0 1"', ki="1"),
    "pid with integrator": pid('dyntype="integrator"', kd="1"),
    "pid of a user type": pid('dyntype="user" actdim="0" damping="1" armature="2" nsample="3" delay=".01"'),
    "pid of odd text": pid("", kd="x", imax="-1"),
    "touch": touch(),
    "touch with channels": touch(nchannel="6", gamma=" 1 "),
    "touch with a fraction": touch(size="2.7 3", nchannel="1.5"),
    "touch with hexadecimals": touch(nchannel="0x2"),
    "touch of a frame": touch('objtype="site" objname="s" reftype="body" refname="b"'),
}  # fmt: skip
REJECTED = {
    "not a number": (
        model("elasticity.cable", body(cable(twist="a"))),
        "plugin: mujoco.elasticity.cable: 'twist' must be a number",
    ),
    "unknown key": (
        model("elasticity.cable", body(cable(twis="1"))),
        "plugin: unrecognized key 'twis' for plugin mujoco.elasticity.cable",
    ),
    "repeated key": (
        model("elasticity.cable", body(f'<plugin plugin="{CABLE}">{configured(bend="1") * 2}</plugin>')),
        "plugin: a config key is written twice",
    ),
    "undeclared": (f"<mujoco>{body(cable())}</mujoco>", "plugin: unrecognized plugin 'mujoco.elasticity.cable'"),
    "unknown plugin": (model("pidd", ""), "plugin: plugin 'mujoco.pidd' not found"),
    "wrong kind": (
        model("pid", body('<plugin plugin="mujoco.pid"/>')),
        "plugin: plugin 'mujoco.pid' does not support passive forces",
    ),
    "wrong kind on a geom": (
        model("pid", '<worldbody><geom size="1"><plugin plugin="mujoco.pid"/></geom></worldbody>'),
        "plugin: plugin 'mujoco.pid' does not support signed distance fields",
    ),
    "wrong kind on a mesh": (
        model("pid", '<asset><mesh name="m"><plugin plugin="mujoco.pid"/></mesh></asset>'),
        "plugin: plugin 'mujoco.pid' does not support signed distance fields",
    ),
    "neither plugin nor instance": (
        model("pid", body("<plugin/>")),
        "plugin: neither 'plugin' nor 'instance' is given",
    ),
    "unknown instance": (
        model("elasticity.cable", body('<plugin instance="k"/>')),
        "plugin: instance names the instance 'k', which does not exist",
    ),
    "repeated instance": (
        model("elasticity.cable", "", '<instance name="i"/><instance name="i"/>'),
        "instance 'i': the instance name 'i' is taken",
    ),
    "cable of another plugin": (
        model("pid", "<worldbody>" + COMPOSITE % ("c", '<plugin plugin="mujoco.pid"/>') + "</composite></worldbody>"),
        "plugin: a composite takes no plugin but mujoco.elasticity.cable",
    ),
    "unused pid": (
        model("pid", ARM, '<instance name="i"/>'),
        "instance 'i': mujoco.pid: no actuator uses this instance",
    ),
    "pid without actdim": (pid("", ki="1"), "plugin: mujoco.pid: actuator '' has actdim 0"),
    "pid with too much": (pid('actdim="2"', ki="1"), "plugin: mujoco.pid: actuator '' has actdim 2"),
    "pid with negative slew": (pid('actdim="1"', slewmax="-1"), "plugin: mujoco.pid: 'slewmax' cannot be negative"),
    "pid with negative imax": (pid('actdim="1"', ki="1", imax="-1"), "plugin: mujoco.pid: 'imax' cannot be negative"),
    "torus": (
        model("sdf.torus", "", f'<instance name="i">{configured(radius1="x")}</instance>'),
        "instance 'i': mujoco.sdf.torus: 'radius1' must be a number",
    ),
    "gear": (
        model("sdf.gear", "", f'<instance name="i">{configured(thickness="x")}</instance>'),
        "instance 'i': mujoco.sdf.gear: 'thickness' must be a number",
    ),
    "touch without a site": (touch(""), "plugin: mujoco.sensor.touch_grid: the sensor must be at a site"),
    "touch of a body": (
        touch('objtype="body" objname="b"'),
        "plugin: mujoco.sensor.touch_grid: the sensor must be at a site",
    ),
    "touch with half an object": (touch('objtype="site"'), "plugin: objtype is written but objname is missing"),
    **{
        f"touch {key} {value}": (touch(**{key: value}), f"plugin: mujoco.sensor.touch_grid: '{key}' must be {must}")
        for key, value, must in (
            *(("size", value, "two positive numbers") for value in ("2", "2 3 4", "0 2", "-2 -3", "2  3")),
            *(("fov", value, "two angles in degrees") for value in ("190 20", "10 100", "10")),
            *(("nchannel", value, "between 1 and 6") for value in ("7", "-1")),
            *(("nchannel", "x", "a number"), ("gamma", "1.1", "between 0 and 1"), ("gamma", "y", "a number")),
        )
    },
}


@pytest.mark.parametrize("name", EQUAL)
def test_model_with_plugins_equals_mujoco(name):
    assert_models_equal(compile_spec(read(EQUAL[name])), mujoco.MjModel.from_xml_string(EQUAL[name]))


@pytest.mark.parametrize("name", REJECTED)
def test_wrong_plugin_is_rejected(name):
    given, words = REJECTED[name]
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(given)
    with pytest.raises(ModelError, match=re.escape(words)):
        compile_spec(read(given))


def test_unknown_plugin_names_the_nearest():
    with pytest.raises(ModelError, match=r"1: plugin: plugin 'mujoco.pidd' not found; did you mean 'mujoco.pid'"):
        compile_spec(read(REJECTED["unknown plugin"][0]))


def test_plugins_in_a_replicate_are_refused():
    text = model("elasticity.cable", f'<worldbody><replicate count="2"><body>{cable()}</body></replicate></worldbody>')
    with pytest.raises(UnsupportedError, match="plugins in a replicate"):
        compile_spec(read(text))


def test_configuration_is_read_back_from_the_model():
    m = compile_spec(read(EQUAL["order"]))
    assert plugins.config(m, 0) == {"kp": "2", "ki": "", "kd": "", "imax": "", "slewmax": ""}
    assert plugins.config(m, 1)["size"] == "2 3"
    assert plugins.config(m, 2)["vmax"] == "2"


def test_numbers_fill_in_defaults():
    text = model("sdf.bowl", "", f'<instance name="i">{configured(radius="2")}</instance>')
    texts = plugins.config(compile_spec(read(text)), 0)
    assert plugins.numbers(plugins.PLUGINS["mujoco.sdf.bowl"], texts) == (0.4, 2.0, 0.02)


@pytest.mark.parametrize(("text", "number"), [("1.5x", 1.5), (" -2e1", -20.0), ("0x10", 16.0), ("x", None), ("", None)])
def test_leading_number_reads_as_c_does(text, number):
    assert plugins.leading_number(text) == number


def test_plugin_numbers_are_those_of_mujoco():
    names = [name for name, plugin in plugins.PLUGINS.items() if plugin.drives in ("body", "geom")]
    for name in names:
        text = f'<mujoco><extension><plugin plugin="{name}"><instance name="i"/></plugin></extension></mujoco>'
        theirs = mujoco.MjModel.from_xml_string(text)
        np.testing.assert_array_equal(theirs.plugin, [plugins.PLUGINS[name].slot])
        assert theirs.npluginattr == len(plugins.PLUGINS[name].attributes)
