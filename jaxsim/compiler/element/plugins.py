"""Plugins: the instances of a model, the objects that use them, their configuration, and derived sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from jaxsim.compiler.draft import Draft, starts
from jaxsim.compiler.objects import Body, DraftObject, Instance
from jaxsim.core.plugins import PLUGINS, Plugin, leading_number, numeric
from jaxsim.core.types import DynType, ObjType
from jaxsim.mjcf import Element
from jaxsim.mjcf.schema.values import did_you_mean

_FILTERS = (DynType.INTEGRATOR, DynType.FILTER, DynType.FILTEREXACT)
_DRIVES = {"body": "body", "geom": "geom", "mesh": "geom", "actuator": "actuator", "sensor": "sensor"}
_WHAT = {"body": "passive forces", "geom": "signed distance fields", "actuator": "actuators", "sensor": "sensors"}


def _known(el: Element, name: str) -> Plugin:
    if name not in PLUGINS:
        raise el.error(f"plugin '{name}' not found{did_you_mean(name, PLUGINS)}; there are {', '.join(PLUGINS)}")
    return PLUGINS[name]


def list_plugins(draft: Draft) -> None:
    """List all instances in mjModel's order: declared ones, then those implied by elements without `instance`."""
    sections = {section.tag: section for section in draft.spec.root.children}
    extension = sections.get("extension")
    draft.plugins = set()
    for el in extension.children if extension is not None else ():
        plugin = _known(el, el.attrs["plugin"])
        draft.plugins.add(plugin.name)
        for child in el.children:
            _add(draft, Instance(child, child.attrs["name"], plugin))
    for section in ("asset", "actuator", "sensor", "worldbody"):
        if section in sections:
            for el in _implicit(sections[section]):
                _add(draft, Instance(el, (el.name or "") if el.tag == "instance" else "", None))


def _add(draft: Draft, instance: Instance) -> None:
    instance.id = len(draft.lists.plugin)
    draft.lists.plugin.append(instance)


def _implicit(section: Element) -> Iterator[Element]:
    """Return the elements that imply an instance of their own; of several in a geom or mesh only the first one does."""
    for el in section.all("plugin", "instance"):
        parent = el.parent
        assert parent is not None
        if parent.tag in ("geom", "mesh") and parent.child("plugin") is not el:
            continue
        if not el.attrs.get("instance"):
            yield el


def link_plugins(draft: Draft) -> None:
    """Set the instance of each body, geom, mesh, actuator and sensor."""
    by_element = {id(p.el): p for p in draft.lists.plugin if p.declared is None}
    for kind in _DRIVES:
        for obj in draft.lists[kind]:
            el = _element(obj)
            obj.plugin = _resolve(draft, obj, el, by_element) if el is not None else None
            if obj.plugin is not None:
                obj.plugin.users.append(obj)
    for instance in draft.lists.plugin:
        if instance.declared is None:
            raise instance.error("a body can have only one plugin")


def _element(obj: DraftObject) -> Element | None:
    """Return the plugin element of an object, or None."""
    if obj.kind in ("actuator", "sensor"):
        return obj.el if obj.el.tag == "plugin" else None
    if isinstance(obj, Body):
        return obj.plugin_el
    return obj.el.child("plugin")


def _resolve(draft: Draft, obj: DraftObject, el: Element, by_element: dict[int, Instance]) -> Instance:
    name, instance_name = el.attrs.get("plugin") or "", el.attrs.get("instance") or ""
    if not name and not instance_name:
        raise el.error("neither 'plugin' nor 'instance' is given")
    instance: Instance
    if instance_name:
        user = DraftObject(obj.kind, el, {})
        instance = draft.refer(user, "plugin", instance_name, "instance")
    else:
        instance = by_element[id(el)]
    if name or instance.declared is None:
        if name not in draft.plugins:
            known = did_you_mean(name, draft.plugins)
            raise el.error(f"unrecognized plugin '{name}'{known}; declare it by <plugin plugin=...> in <extension>")
        instance.declared = PLUGINS[name]
    if instance.plugin.drives != _DRIVES[obj.kind]:
        raise el.error(f"plugin '{instance.plugin.name}' does not support {_WHAT[_DRIVES[obj.kind]]}")
    return instance


def check_plugins(draft: Draft) -> None:
    """Check that the plugin has every configured key and accepts its value."""
    for instance in draft.lists.plugin:
        plugin = instance.plugin
        for key in instance.config:
            if key not in plugin.attributes:
                near = did_you_mean(key, plugin.attributes)
                known = ", ".join(plugin.attributes)
                raise instance.error(f"unrecognized key '{key}' for plugin {plugin.name}{near}; it takes {known}")
        fault = _CHECKS[plugin.name](instance.texts(), instance)
        if fault:
            raise instance.error(f"{plugin.name}: {fault}")


def _need_numbers(values: dict[str, str], *names: str) -> str | None:
    bad = [name for name in names if not numeric(values[name])]
    return f"'{bad[0]}' must be a number; it is '{values[bad[0]]}'" if bad else None


def _numeric_only(*names: str) -> Callable[[dict[str, str], Instance], str | None]:
    return lambda values, instance: _need_numbers(values, *names)


def _sdf(*names: str) -> Callable[[dict[str, str], Instance], str | None]:
    """Return a check that every written attribute begins with a number, and that `names` are entirely numbers."""

    def check(values: dict[str, str], instance: Instance) -> str | None:
        for name, text in values.items():
            if text and leading_number(text) is None:
                return f"'{name}' must be a number; it is '{text}'"
        return _need_numbers(values, *names)

    return check


def _pid(values: dict[str, str], instance: Instance) -> str | None:
    gain, most, slew = (leading_number(values[name]) or 0.0 for name in ("ki", "imax", "slewmax"))
    if values["imax"] and gain and most / gain < 0:
        return "'imax' cannot be negative"
    if slew < 0:
        return "'slewmax' cannot be negative"
    if not instance.users:
        return "no actuator uses this instance"
    need = int(gain != 0) + int(values["slewmax"] != "")
    for actuator in instance.users:
        dim = need + int(actuator.dyntype in _FILTERS)
        if actuator.actdim != dim:
            return f"actuator '{actuator.name}' has actdim {actuator.actdim}; write actdim='{dim}'"
    return None


def _touch_grid(values: dict[str, str], instance: Instance) -> str | None:
    fault = _need_numbers(values, "gamma", "nchannel")
    if fault:
        return fault
    size, fov = (_list(values[name]) for name in ("size", "fov"))
    if not 1 <= _channels(values) <= 6:
        return "'nchannel' must be between 1 and 6"
    if len(size) != 2 or not min(int(x) for x in size) > 0:
        return "'size' must be two positive numbers, the horizontal and the vertical resolution"
    if len(fov) != 2 or not 0 < fov[0] <= 180 or not 0 < fov[1] <= 90:
        return "'fov' must be two angles in degrees, the first in (0, 180] and the second in (0, 90]"
    if not 0 <= (leading_number(values["gamma"]) or 0.0) <= 1:
        return "'gamma' must be between 0 and 1"
    if any(sensor.objtype != ObjType.SITE for sensor in instance.users):
        return "the sensor must be at a site; write objtype='site'"
    return None


def _channels(values: dict[str, str]) -> int:
    return int(leading_number(values["nchannel"]) or 0) or 1


def _list(text: str) -> list[float]:
    """Parse numbers of a text split at single spaces; a word that is not a number counts as zero."""
    return [leading_number(word) or 0.0 for word in text.split(" ")] if text else []


_CHECKS = {
    "mujoco.pid": _pid,
    "mujoco.elasticity.cable": _numeric_only("twist", "bend"),
    "mujoco.sensor.touch_grid": _touch_grid,
    "mujoco.sdf.bolt": _sdf("radius"),
    "mujoco.sdf.bowl": _sdf("radius", "height", "thickness"),
    "mujoco.sdf.gear": _sdf("alpha", "diameter", "teeth", "innerdiameter"),
    "mujoco.sdf.nut": _sdf("radius"),
    "mujoco.sdf.torus": _sdf("radius1", "radius2"),
}


def sensor_dim(instance: Instance) -> int:
    """Return the dimension of a plugin's sensor."""
    values = instance.texts()
    size = [int(x) for x in _list(values["size"])]
    return _channels(values) * size[0] * size[1] if len(size) == 2 else 0


def plugin_tables(draft: Draft) -> None:
    """Fill plugin, plugin_attr, the (empty) states, and the plugin instance of every object."""
    v, instances = draft.values, draft.lists.plugin
    chunks = [b"".join(text.encode() + b"\0" for text in p.texts().values()) for p in instances]
    v["plugin"] = np.array([p.plugin.slot for p in instances], np.int32)
    v["plugin_attr"] = np.frombuffer(b"".join(chunks), np.uint8)
    v["npluginattr"] = len(v["plugin_attr"])
    v["plugin_attradr"] = starts(map(len, chunks))
    v["plugin_stateadr"] = v["plugin_statenum"] = np.zeros(len(instances), np.int32)
    v["npluginstate"] = 0
    for kind in ("body", "geom", "actuator", "sensor"):
        ids = [-1 if obj.plugin is None else obj.plugin.id for obj in draft.lists[kind]]
        v[f"{kind}_plugin"] = np.array(ids, np.int32)
