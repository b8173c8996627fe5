"""Reader of MJCF text or files to a Spec.

It uses no DTD, no entities beyond the five of XML and no network; size, depth and include depth are bounded. Any other
input is a ModelError with file, line and the nearest valid word.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

import lxml.etree as etree
import numpy as np

from jaxsim.core.errors import ModelError
from jaxsim.mjcf.actuator import read_actuator
from jaxsim.mjcf.defaults import class_name, class_table
from jaxsim.mjcf.files import MAX_BYTES, base_name, portable, read_bytes
from jaxsim.mjcf.schema import rules
from jaxsim.mjcf.schema.element_type import SCHEMA, ElementType, all_types
from jaxsim.mjcf.schema.newer import newer_attribute, newer_element, newer_word
from jaxsim.mjcf.schema.values import ENUMS, did_you_mean, parse_value
from jaxsim.mjcf.spec import Element, Spec, compiler_of
from jaxsim.mjcf.urdf import read_urdf
from jaxsim.mjcf.xml import parse_xml

MAX_DEPTH = 600  # MuJoCo stops at 500, Python at 1,000 calls
MAX_INCLUDE_DEPTH = 32

_WORLD = SCHEMA.children["worldbody"]
_UNREAD_AT_ROOT = ("body", "frame")  # MuJoCo allows them at the root and does not read them
_LENIENT_TYPES = {("objtype", "user")}
_LENIENT_TYPES |= {("reftype", f"frame{x}") for x in ("pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel")}
_LENIENT = ("frame", "replicate")
_POSE_ATTRIBUTES = ("pos", "quat", "euler", "axisangle", "xyaxes", "zaxis", "fromto")
_TREE = ("worldbody", "body", *_LENIENT)
_FILE_ATTRIBUTES = ("file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")


@dataclass
class _ReadContext:
    """State of one call of `read`: files read so far, their total size, and folders of included elements."""

    spec: Spec
    main: str
    included: set[str] = field(default_factory=set)
    total: int = 0
    include_dirs: list[tuple[Element, str]] = field(default_factory=list)


def read(source: str | os.PathLike, assets: dict[str, bytes] | None = None, models: tuple[str, ...] = ()) -> Spec:
    """Read an MJCF file or an XML string.

    `source` is XML text (it starts with `<`) or a path; `assets` maps file names to bytes that replace files; `models`
    are the files of the models that attach this one. Raises ModelError for input that is not MJCF, FileNotFoundError
    for a path that does not exist.
    """
    text = os.fspath(source)
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        spec, filename, data = Spec("", assets), "", text.encode()
    else:
        filename = text if os.path.exists(text) else portable(text)
        spec = Spec(os.path.dirname(filename), assets)
        data = _read_main(spec, filename)
    context = _ReadContext(spec, filename, {filename})
    node = _parse(context, data, filename)
    if node.tag == "robot":
        read_urdf(node, spec, filename)
        check(spec)
        return spec
    if node.tag != "mujoco":
        raise ModelError(
            f"the root element is '{node.tag}'; an MJCF file starts with <mujoco>", (filename, node.sourceline)
        )
    _convert(context, node, spec.root, filename)
    _merge_sections(spec)
    _resolve_files(context)
    check(spec)
    _read_models(spec, (*models, filename))
    return spec


def _read_models(spec: Spec, models: tuple[str, ...]) -> None:
    """Read the models that can be attached, each from a file in the model's folder."""
    assets = spec.root.child("asset")
    for element in assets.children if assets is not None else ():
        if element.tag != "model":
            continue
        path = os.path.join(spec.modelfiledir, portable(element.attrs["file"]))
        if path in models or len(models) > MAX_INCLUDE_DEPTH:
            raise element.error(f"the model file '{path}' attaches itself")
        try:
            child = read(path, spec.assets, models)
        except (FileNotFoundError, IsADirectoryError) as reason:
            raise element.error(str(reason)) from None
        element.attrs.setdefault("name", child.modelname)
        spec.models[element.name or ""] = child


def check(spec: Spec) -> None:
    """Check elements, default classes and names of a spec against the language; raises ModelError.

    Names in a model with replicates are checked when it is expanded.
    """
    rules.check_elements(spec)
    table = class_table(spec)
    rules.check_classes(spec, table)
    for element in spec.elements("actuator"):
        read_actuator(table[class_name(element)].actuator.copy(), element)
    if not any(element.tag == "replicate" for element in spec.root.all()):
        rules.check_names(spec)


def _read_main(spec: Spec, path: str) -> bytes:
    data = read_file(spec, path)
    if data is None and os.path.isdir(path):
        raise IsADirectoryError(f"the model file '{path}' is a folder; name a file in it")
    if data is None:
        raise FileNotFoundError(f"there is no model file '{path}'")
    return data


def read_file(spec: Spec, path: str) -> bytes | None:
    """Return the bytes of a file that a model names, from the assets or the file system; None if it does not exist."""
    return read_bytes(spec.assets, path)


def _parse(context: _ReadContext, data: bytes, filename: str) -> etree._Element:
    context.total += len(data)
    if context.total > MAX_BYTES:
        raise ModelError(f"the model is larger than {MAX_BYTES} bytes", (filename, 1))
    return parse_xml(data, filename)


def _convert(context: _ReadContext, root: etree._Element, target: Element, filename: str) -> None:
    """Fill `target` from a parsed root and all its includes, in document order."""
    target.source = (filename, root.sourceline)
    location = _Location(filename, "", (filename,))
    _read_attributes(root, target, location)
    _read_children(context, root, target, location, 1)


@dataclass(frozen=True)
class _Location:
    """Origin of nodes: the file, the folder of the include (empty in the main file), the including files.

    `lenient`: inside of a frame or replicate, where MuJoCo ignores unknown elements and attributes. `unread`: inside of
    a body or frame at the root, which is not read; names of elements and attributes are checked.
    """

    filename: str
    folder: str
    stack: tuple[str, ...]
    lenient: bool = False
    unread: bool = False


def _read_children(
    context: _ReadContext, node: etree._Element, parent: Element, location: _Location, depth: int
) -> None:
    if depth > MAX_DEPTH:
        raise ModelError(f"elements are nested deeper than {MAX_DEPTH}", (location.filename, node.sourceline))
    for child in node:
        if not isinstance(child.tag, str):
            raise ModelError("entities are not read", (location.filename, child.sourceline))
        if child.tag == "include":
            _include(context, child, parent, location, depth)
            continue
        kind = parent.type.children.get(child.tag)
        if kind is None and location.lenient and parent.tag not in _TREE:
            parent.warn(f"{_misplaced(child, parent, location).what}; it is not read")
            continue
        unread = parent.type is SCHEMA and child.tag in _UNREAD_AT_ROOT
        if kind is None and not unread:
            raise _misplaced(child, parent, location)
        element = Element(kind or _WORLD.children[child.tag], (location.filename, child.sourceline))
        if unread:
            element.warn(f"a {child.tag} outside the worldbody is not read; write it in <worldbody>")
        else:
            parent.append(element)
        inner = replace(location, lenient=location.lenient or child.tag in _LENIENT, unread=location.unread or unread)
        _read_attributes(child, element, inner)
        if location.folder:
            context.include_dirs.append((element, location.folder))
        _read_children(context, child, element, inner, depth + 1)


def _misplaced(node: etree._Element, parent: Element, location: _Location) -> ModelError:
    places = sorted({kind.path.split("/")[-2] for kind in all_types() if kind.tag == node.tag and "/" in kind.path})
    hint = newer_element(str(node.tag)) or did_you_mean(node.tag, parent.type.children)
    if places:
        hint = f"; {node.tag} is allowed in {', '.join(places)}"
    known = "element" if places else "unknown element"
    what = f"{known} '{node.tag}' in {parent.label()}" + (" is out of place" if places else "")
    return ModelError(what + hint, (location.filename, node.sourceline))


def _read_attributes(node: etree._Element, element: Element, location: _Location) -> None:
    extra = [prefix for prefix in node.nsmap if prefix is None or node.getparent() is None]
    if extra:
        raise element.error("namespaces (xmlns) are not part of MJCF")
    for name, text in node.attrib.items():
        attribute = element.type.attributes.get(name)
        if attribute is None and location.lenient:
            element.warn(f"{_unknown_attribute(name, element.type)}; it is not read")
            continue
        if attribute is None:
            raise element.error(_unknown_attribute(name, element.type))
        if location.unread or _is_unknown_type(element, name, text):
            continue
        try:
            value = parse_value(attribute, text)
        except ValueError as reason:
            raise element.error(f"attribute '{name}': {reason}{newer_word(name, text.strip())}") from None
        if value is None:
            continue
        element.attrs[name] = value
        if attribute.kind in "fg":
            _check_number(element, name, value)
    _drop_unknown_types(node, element)


def _check_number(element: Element, name: str, value: Any) -> None:
    """Warn about numbers that are hardly meant; NaN in a keyframe is an error, since it marks missing values."""
    if np.any(np.isnan(value)):
        if element.tag == "key":
            raise element.error(f"attribute '{name}' has a NaN; leave out the attribute to keep the initial state")
        element.warn(f"attribute '{name}' has a NaN; is it meant?")
    if name in _POSE_ATTRIBUTES and np.any(np.isinf(value)):
        element.warn(f"attribute '{name}' is infinite; is it meant?")
    if name.startswith("solref") and len(value) == 2 and (value[0] > 0) != (value[1] > 0):
        element.warn(f"attribute '{name}': both numbers must be positive or both negative; the default is used instead")
    if name.startswith("rgba") and np.any(value > 1):
        element.warn(f"attribute '{name}' is above 1; colours are numbers from 0 to 1: divide by 255")


def _drop_unknown_types(node: etree._Element, element: Element) -> None:
    """Drop an unknown type of a reference object with a warning; MuJoCo ignores it."""
    kind, name = ("objtype", "objname") if element.tag == "user" else ("reftype", "refname")
    if _is_unknown_type(element, kind, node.get(kind)):
        element.warn(
            f"unknown {kind} '{node.get(kind)}'{did_you_mean(node.get(kind), ENUMS['object'])}; it is not read"
        )
        element.attrs.pop(name, None)


def _is_unknown_type(element: Element, name: str, text: str | None) -> bool:
    lenient = element.type.kind == "sensor" and (name, element.tag) in _LENIENT_TYPES
    return lenient and text is not None and text not in ENUMS["object"]


def _unknown_attribute(name: str, kind: ElementType) -> str:
    if not kind.attributes:
        return f"unknown attribute '{name}' in {kind.tag}, which has no attributes"
    hint = newer_attribute(kind.tag, name) or did_you_mean(name, kind.attributes)
    return f"unknown attribute '{name}' in {kind.tag}{hint}"


def _include(context: _ReadContext, node: etree._Element, parent: Element, location: _Location, depth: int) -> None:
    where = (location.filename, node.sourceline)
    if len(node):
        raise ModelError("an include cannot have children", where)
    for name in node.attrib:
        if name != "file":
            raise ModelError(f"unknown attribute '{name}' in include{did_you_mean(name, ['file'])}", where)
    name = node.get("file")
    if name is None:
        raise ModelError("an include needs the attribute 'file'", where)
    name = portable(name)
    if name in context.included:
        raise ModelError(f"the file '{name}' is included twice", where)
    path, data = _find_include(context.spec, name, location.folder)
    if data is None:
        raise ModelError(f"the included file '{name}' does not exist (looked for as '{path}')", where)
    context.included.add(os.path.join(location.folder, name))
    real = os.path.realpath(path)
    if real in location.stack or path in location.stack or path == context.main:
        raise ModelError(f"the file '{name}' includes itself", where)
    if len(location.stack) > MAX_INCLUDE_DEPTH:
        raise ModelError(f"includes are nested deeper than {MAX_INCLUDE_DEPTH}", where)
    root = _parse(context, data, path)
    if not len(root):
        raise ModelError(f"the included file '{name}' has no elements", where)
    inner = _Location(path, os.path.dirname(path), (*location.stack, real), location.lenient, location.unread)
    _read_children(context, root, parent, inner, depth)


def _find_include(spec: Spec, name: str, folder: str) -> tuple[str, bytes | None]:
    """Return the path and bytes of an included file: in the model's folder, else in the including file's folder."""
    first = os.path.join(spec.modelfiledir, name)
    data = read_file(spec, first)
    if data is None and folder:
        second = os.path.join(folder, name)
        return second, read_file(spec, second)
    return first, data


def _merge_sections(spec: Spec) -> None:
    """Merge sections of the same kind: later ones overwrite attributes and add elements. Defaults stay separate."""
    merged: list[Element] = []
    first: dict[str, Element] = {}
    for section in spec.root.children:
        into = first.get(section.tag)
        if into is None or section.tag == "default" or _memory_replaces(into, section):
            first[section.tag] = section
            rules.check_counts(section)
            merged.append(section)
            continue
        if "assetdir" in section.attrs:
            for name in ("meshdir", "texturedir"):
                into.attrs.pop(name, None)
        _merge(into, section)
    spec.root.children = merged


def _memory_replaces(earlier: Element, later: Element) -> bool:
    """Return whether memory follows njmax or nstack in a later section: MuJoCo allows both in this order alone."""
    return "memory" in later.attrs and ("njmax" in earlier.attrs or "nstack" in earlier.attrs)


def _merge(into: Element, section: Element) -> None:
    rules.check_element(section)
    rules.check_counts(section)
    _overwrite(into, section)
    own = list(into.children)
    for child in section.children:
        twin = next((c for c in own if c.tag == child.tag), None) if child.type.count == "?" else None
        if twin is None:
            into.append(child)
        else:
            _overwrite(twin, child)


def _overwrite(into: Element, later: Element) -> None:
    """Overwrite attributes by later ones; a shorter array replaces only the leading entries."""
    for name, value in later.attrs.items():
        old, attribute = into.attrs.get(name), into.type.attributes[name]
        if attribute.is_array and not attribute.exact and old is not None and len(old) > len(value):
            value = np.concatenate([value, old[len(value) :]])
        into.attrs[name] = value


def _resolve_files(context: _ReadContext) -> None:
    """Set paths of files named in included files: in the model's folders, else in the including file's folder."""
    spec = context.spec
    for element, folder in context.include_dirs:
        for name in _FILE_ATTRIBUTES:
            attribute = element.type.attributes.get(name)
            if attribute is None or attribute.kind != "file" or name not in element.attrs:
                continue
            path = portable(element.attrs[name])
            if not os.path.isabs(path) and read_file(spec, asset_path(spec, element, name)) is None:
                element.attrs[name] = os.path.abspath(os.path.join(folder, path))


_FOLDERS = {"mesh": "meshdir", "flexcomp": "meshdir", "hfield": "meshdir", "texture": "texturedir", "skin": "meshdir"}


def asset_path(spec: Spec, element: Element, name: str = "file") -> str:
    """Return the path of the file that an attribute names: below the model's folder and meshdir or texturedir."""
    compiler = compiler_of(spec, element)
    path = portable(element.attrs[name])
    if compiler["strippath"]:
        path = base_name(path)
    folder = _FOLDERS.get(element.tag)
    inner = compiler[folder] if folder else ""
    if inner is None:
        inner = compiler["assetdir"] or ""
    return os.path.join(compiler["modelfiledir"], portable(inner), path)
