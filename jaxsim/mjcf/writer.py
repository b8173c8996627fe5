"""Spec to canonical MJCF: sections, attributes and numbers in one fixed form, which reads back to the same model.

A spec that is not expanded is written with its default classes and macros. An expanded one, or one with models attached
in Python, is written flat: every element with all its effective attributes, no classes, actuators as `general`.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import lxml.etree as etree
import numpy as np

from jaxsim.core.errors import UnsupportedError
from jaxsim.mjcf.defaults import resolve, resolve_actuator
from jaxsim.mjcf.files import portable
from jaxsim.mjcf.flexcomp.saved import joints_of_flexcomps, keep_flexcomps
from jaxsim.mjcf.foreign import files, same, translate
from jaxsim.mjcf.macro.expand import expand
from jaxsim.mjcf.references import listed
from jaxsim.mjcf.resolved import ORIENTATIONS
from jaxsim.mjcf.schema.element_type import SCHEMA
from jaxsim.mjcf.schema.values import format_value
from jaxsim.mjcf.spec import Element, Spec, compiler_of

_ORDER = {tag: i for i, tag in enumerate(SCHEMA.children)}
_LAWS = ("dyntype", "gaintype", "biastype", "dynprm", "gainprm", "biasprm")
_TRANSMISSIONS = {"slidercrank": "cranksite"}


def save_mjcf(spec: Spec, path: str | os.PathLike | None = None) -> str:
    """Return the spec as MJCF text, and write it to `path` if one is given.

    File names stay relative: with a path in another folder they are rewritten for that folder. Raises UnsupportedError
    for models assembled from several that MJCF cannot express.
    """
    if spec.defaults is None and is_flat(spec):
        spec = expand(spec)
    if spec.defaults is not None:
        spec = _flat(spec)
    if path is not None:
        spec = _relocated(spec, os.path.dirname(os.path.abspath(os.fspath(path))))
    root = etree.Element("mujoco", _attributes(spec.root))
    for section in sorted(spec.root.children, key=lambda e: _ORDER[e.tag]):
        if section.children or section.attrs:
            root.append(_node(section))
    etree.indent(root, "  ")
    text = etree.tostring(root, encoding="unicode") + "\n"
    if path is not None:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    return text


def is_flat(spec: Spec) -> bool:
    """Return whether a spec can only be written flat: it is expanded, or it attaches a model that no asset names."""
    if spec.defaults is not None:
        return True
    files = {e.name for e in listed(spec, "asset", "model")}
    return any(e.tag == "attach" and e.attrs["model"] not in files for e in spec.root.all())


def _attributes(element: Element) -> dict[str, str]:
    types = element.type.attributes
    for name, value in element.attrs.items():
        if isinstance(value, tuple) and any(len(word.split()) != 1 for word in value):
            raise UnsupportedError(f"{element.label()}: '{name}' lists a name with spaces, which MJCF cannot express")
    return {name: format_value(types[name], element.attrs[name]) for name in types if name in element.attrs}


def _node(element: Element) -> etree._Element:
    top = etree.Element(element.tag, _attributes(element))
    todo = [(element, top)]
    while todo:
        source, node = todo.pop()
        for child in source.children:
            todo.append((child, etree.SubElement(node, child.tag, _attributes(child))))
    return top


def _relocated(spec: Spec, folder: str) -> Spec:
    """Return a copy with file names relative to another folder."""
    base = os.path.abspath(spec.modelfiledir or ".")
    if base == folder or not any(a.kind == "file" and a.name in e.attrs for e in spec.root.all() for a in files(e)):
        return spec
    out = spec.copy()
    compiler = compiler_of(spec)
    section = out.section("compiler")
    for name in ("meshdir", "texturedir"):
        written = compiler[name] if compiler[name] is not None else compiler["assetdir"] or ""
        section.attrs[name] = os.path.relpath(os.path.join(base, portable(written)), folder)
    section.attrs.pop("assetdir", None)
    for element in out.root.all():
        if element.tag == "model" and "file" in element.attrs:
            element.attrs["file"] = os.path.relpath(os.path.join(base, portable(element.attrs["file"])), folder)
    return out


def _flat(spec: Spec) -> Spec:
    """Return a copy without classes, every element with all its effective attributes.

    The copy has one set of compiler settings.
    """
    spec = keep_flexcomps(spec)
    out = Spec(spec.modelfiledir, spec.assets)
    out.root.attrs = dict(spec.root.attrs)
    for section in spec.root.children:
        if section.tag != "default":
            out.root.append(_flat_element(spec, out, section))
    _declare_instances(out)
    joints_of_flexcomps(out, functools.partial(_extra_class, out))
    return out


def _declare_instances(spec: Spec) -> None:
    """Move the plugin instances created by macros to the extension section."""
    for instance in list(spec.worldbody.all("instance")):
        user = next(e for e in spec.worldbody.all("plugin") if e.attrs.get("instance") == instance.name)
        instance.delete()
        spec.section("extension").add("plugin", plugin=user.attrs["plugin"]).append(instance)


def _extra_class(out: Spec, *records: tuple[str, dict[str, Any]]) -> str:
    """Return the name of a new default class with values for which an element has no attributes."""
    top = out.section("default")
    name = f"flat{len(top.children)}"
    inner = top.add("default", **{"class": name})
    for tag, attrs in records:
        inner.add(tag).attrs.update(attrs)
    return name


def _flat_element(spec: Spec, out: Spec, element: Element) -> Element:
    if element.type.record == "actuator":
        twin = _flat_actuator(spec, out, element)
    else:
        twin = Element(element.type, element.source)
        twin.attrs, extra = (dict(element.attrs), {}) if element.type.record is None else _differences(spec, element)
        for name in ("class", "childclass"):
            twin.attrs.pop(name, None)
        if extra and element.type.record is not None:
            twin.attrs["class"] = _extra_class(out, (element.type.record, extra))
    if element.type.kind == "key":
        _check_key(element, twin)
    if element.compiler is not None:
        translate(spec, element, twin)
    for child in element.children:
        twin.append(_flat_element(spec, out, child))
    _write_layers(spec, element, twin)
    twin.derived = element.derived
    return twin


def _differences(spec: Spec, element: Element) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return effective attributes that differ from MJCF's defaults, and those that only a default class can express."""
    found, extra = {}, {}
    for name, value in resolve(spec, element).items():
        attribute = element.type.attributes.get(name)
        if name in ("class", "layers") or (name == "texture" and element.tag == "material"):
            continue
        if attribute is None:
            assert element.type.record is not None
            default = SCHEMA.children["default"].children[element.type.record].attributes[name].default
            if not same(value, default):
                extra[name] = value
        elif value is not None and (not same(value, attribute.default) or name in element.attrs):
            found[name] = value
    if any(name in found for name in ORIENTATIONS):
        found.pop("quat", None)
    return found, extra


def _write_layers(spec: Spec, element: Element, twin: Element) -> None:
    if element.type.kind != "material":
        return
    layers = resolve(spec, element).get("layers") or {}
    twin.children = []
    if set(layers) == {"rgb"}:
        twin.attrs["texture"] = layers["rgb"]
    else:
        for role, texture in layers.items():
            twin.add("layer", role=role, texture=texture)


def _flat_actuator(spec: Spec, out: Spec, element: Element) -> Element:
    record = resolve_actuator(spec, element)
    plugin = element.tag == "plugin"
    servo = record["inheritrange"] > 0 and not plugin and _is_servo(record)
    tag = ("intvelocity" if record["dyntype"] == "integrator" else "position") if servo else "general"
    twin = Element(SCHEMA.children["actuator"].children["plugin" if plugin else tag], element.source)
    if element.name:
        twin.attrs["name"] = element.name
    known, extra = {**twin.type.attributes, **SCHEMA.children["actuator"].children["general"].attributes}, {}
    for name, attribute in known.items():
        if name in record and record[name] is not None and not same(record[name], attribute.default):
            (twin.attrs if name in twin.type.attributes else extra)[name] = record[name]
    transmission: str | None = record["trntype"]
    if transmission is not None:
        twin.attrs[_TRANSMISSIONS.get(transmission, transmission)] = record["target"]
    if servo:
        damping = record["biasprm"][2]
        twin.attrs["kp"] = float(record["gainprm"][0])
        twin.attrs["dampratio" if damping > 0 else "kv"] = abs(float(damping))
        if tag == "position" and record["dyntype"] == "filterexact":
            twin.attrs["timeconst"] = float(record["dynprm"][0])
    elif record["inheritrange"] > 0:
        laws = {name: record[name] for name in _LAWS}
        twin.attrs["class"] = _extra_class(
            out, ("position", {"inheritrange": record["inheritrange"]}), ("general", laws)
        )
    elif extra and plugin:
        twin.attrs["class"] = _extra_class(out, ("general", extra))
    return twin


def _is_servo(record: dict[str, Any]) -> bool:
    """Return whether an actuator that inherits its range is written as a servo: it has only a servo's parameters."""
    spare = [*record["gainprm"][1:], record["biasprm"][0], *record["biasprm"][3:], *record["dynprm"][1:]]
    return not np.any(np.array(spare) != 0) and record["gainprm"][0] == -record["biasprm"][1]


def _check_key(element: Element, twin: Element) -> None:
    for name in ("qpos", "mpos", "mquat"):
        value = twin.attrs.get(name)
        if value is not None and np.any(np.isnan(value)):
            if not np.all(np.isnan(value)):
                raise UnsupportedError(
                    f"{element.label()}: a keyframe leaves parts of the state open; save with jaxsim.save_mjcf"
                )
            del twin.attrs[name]
