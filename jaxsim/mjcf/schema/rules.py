"""Rules beyond the language table: attributes that exclude or need each other, bounds, unique names.

The checks run over a spec and raise the first ModelError. Rules are data: for each element type (the end of its path)
a list of functions `element -> reason or None`, most of them made by the rule makers below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxsim.mjcf.schema.element_type import SCHEMA, ElementType, all_types
from jaxsim.mjcf.schema.values import ENUMS, did_you_mean
from jaxsim.mjcf.spec import Element, Spec, object_name

Rule = Callable[[Element], str | None]


def _written(element: Element, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in element.attrs]


def at_most_one(*names: str) -> Rule:
    """Return a rule: these attributes exclude each other."""

    def rule(element: Element) -> str | None:
        found = _written(element, names)
        return f"{' and '.join(found)} exclude each other; write one of them" if len(found) > 1 else None

    return rule


def exactly_one(*names: str) -> Rule:
    """Return a rule: one of these attributes must be written, and only one."""

    def rule(element: Element) -> str | None:
        found = _written(element, names)
        return None if len(found) == 1 else f"exactly one of {', '.join(names)} must be written, not {len(found)}"

    return rule


def bounds(name: str, good: Callable[[Any], bool], what: str) -> Rule:
    """Return a rule: the attribute, if written, must be `what`."""

    def rule(element: Element) -> str | None:
        value = element.attrs.get(name)
        return None if value is None or good(value) else f"{name} must be {what}"

    return rule


def nonzero(name: str) -> Rule:
    """Return a rule: a quaternion must not be zero."""
    return bounds(name, lambda q: bool(np.any(q != 0)), "a quaternion that is not zero")


def both(first: str, second: str) -> Rule:
    """Return a rule: one of these attributes needs the other."""

    def rule(element: Element) -> str | None:
        found = _written(element, (first, second))
        if len(found) == 1:
            missing = second if found[0] == first else first
            return f"{found[0]} is written but {missing} is missing"
        return None

    return rule


def ordered(name: str, words: str) -> Rule:
    """Return a rule: the words of a list must be in the order of the language."""

    def rule(element: Element) -> str | None:
        order = [ENUMS[words][w] for w in element.attrs.get(name, ())]
        return None if order == sorted(order) else f"the words of {name} must be in the order {', '.join(ENUMS[words])}"

    return rule


def _anchored(needed: tuple[str, ...], optional: tuple[str, ...]) -> Rule:
    def rule(element: Element) -> str | None:
        sites = _written(element, ("site1", "site2"))
        bodies = _written(element, needed + optional)
        remedy = f"write either {' and '.join(needed)} (with {', '.join(optional)} if needed) or site1 and site2"
        if sites and bodies:
            return f"{sites[0]} and {bodies[0]} exclude each other; {remedy}"
        complete = len(sites) == 2 or all(name in element.attrs for name in needed)
        return None if complete else remedy

    return rule


def _layers(element: Element) -> str | None:
    if "texture" in element.attrs and any(child.tag == "layer" for child in element.children):
        return "a material with the attribute texture cannot have layers; write the texture as a layer"
    return None


def _numeric(element: Element) -> str | None:
    data = element.attrs.get("data")
    written = 0 if data is None else len(data)
    size = element.attrs.get("size", written)
    if not 1 <= (500 if size == 501 else size) <= 500:
        return "the size must be between 1 and 500"
    return f"data has {written} numbers; at most {size} are allowed" if written > size else None


def _elevation(element: Element) -> str | None:
    rows, columns = element.attrs.get("nrow", 0), element.attrs.get("ncol", 0)
    data = element.attrs.get("elevation")
    if data is None or "file" in element.attrs or rows <= 0 or columns <= 0 or len(data) == rows * columns:
        return None
    return f"elevation has {len(data)} numbers; nrow * ncol = {rows * columns} are needed"


def _gridlayout(element: Element) -> str | None:
    text = element.attrs.get("gridlayout")
    if text is None:
        return None
    if len(text) > 12:
        return "gridlayout cannot have more than 12 characters"
    size = element.attrs.get("gridsize", np.ones(2))
    return None if len(text) == int(size[0] * size[1]) else "gridlayout must have a character for each cell of gridsize"


def _builtin_mesh(element: Element) -> str | None:
    if "builtin" not in element.attrs:
        return None
    if element.attrs["builtin"] == "none":
        return "builtin='none' makes no mesh; leave it out"
    if "params" not in element.attrs:
        return "a builtin mesh needs params"
    clash = _written(element, ("file", "vertex"))
    return f"builtin and {clash[0]} exclude each other" if clash else None


def _inertia(element: Element) -> str | None:
    found = _written(element, ("quat", "axisangle", "xyaxes", "zaxis", "euler"))
    if "fullinertia" in element.attrs and found:
        return f"fullinertia already gives the orientation; {found[0]} must not be written"
    return None


def _in_world(element: Element) -> str | None:
    for around in element.ancestors():
        if around.tag == "worldbody":
            return f"the world cannot have a {element.tag}; write it in a body"
        if around.tag in ("body", "replicate", "mujoco"):
            return None
    return None


def _plugin_configs(element: Element) -> str | None:
    keys = [child.attrs.get("key") for child in element.children if child.tag == "config"]
    if len(set(keys)) < len(keys):
        return "a config key is written twice"
    if keys and element.attrs.get("instance"):
        element.warn("config next to an instance is not read; write it in the instance")
    return None


def _memory(element: Element) -> str | None:
    if element.attrs.get("memory", -1) == -1:
        return None
    found = [name for name in ("nstack", "njmax") if element.attrs.get(name, -1) != -1]
    return f"memory and {found[0]} exclude each other" if found else None


def _flex_young(element: Element) -> str | None:
    parts = {child.tag: child.attrs for child in element.children}
    elastic = parts.get("elasticity", {})
    constrained = parts.get("edge", {}).get("equality", "false") != "false"
    if constrained and elastic.get("young", 0) > 0 and elastic.get("elastic2d") != "bend":
        return "edge constraints and elasticity (young) exclude each other"
    if element.attrs.get("type") == "mesh" and element.attrs.get("dim") == 3 and "origin" not in element.attrs:
        return "a flexcomp of type mesh and dim 3 needs origin"
    return None


_CURVE_SHAPES = ("s", "cos(s)", "sin(s)", "0")


def _cable(element: Element) -> str | None:
    if sum(child.tag == "joint" for child in element.children) > 1:
        return "a composite can have only one joint element"
    words = element.attrs.get("curve", "").split()
    if len(words) > 3:
        return "curve has at most 3 components"
    bad = [w for w in words if w not in _CURVE_SHAPES]
    return f"unknown shape '{bad[0]}' in curve; allowed are {', '.join(_CURVE_SHAPES)}" if bad else None


_GROUP = bounds("group", lambda g: 0 <= g <= 5, "between 0 and 5")
_SIZES = [
    bounds(name, lambda n: n >= -1, "-1 or more")
    for name in ["nconmax", *(name for name in SCHEMA.children["size"].attributes if name.startswith("nuser_"))]
]
_PAIR = [exactly_one("geom1", "body1"), exactly_one("geom2", "body2")]
_PLUGIN_OBJECT = [both("objtype", "objname"), both("reftype", "refname")]

RULES: dict[str, list[Rule]] = {
    "mujoco/compiler": [
        bounds("coordinate", lambda w: w != "global", "local; global coordinates ended with MuJoCo 2.3.3"),
        bounds("eulerseq", lambda s: len(s) == 3, "three letters"),
    ],
    "mujoco/option": [
        bounds("actuatorgroupdisable", lambda g: bool(np.all((g >= 0) & (g <= 30))), "groups between 0 and 30")
    ],
    "mujoco/size": [*_SIZES, _memory],
    "mujoco/statistic": [bounds("extent", lambda x: x > 0 or np.isnan(x), "positive")],
    "visual/global": [bounds("realtime", lambda x: x > 0, "positive")],
    "visual/map": [bounds("znear", lambda x: x > 0, "positive")],
    "material": [_layers],
    "mesh": [bounds("maxhullvert", lambda n: n == -1 or n >= 4, "-1, or 4 or more"), _builtin_mesh],
    "skin": [_GROUP],
    "camera": [at_most_one("fovy", "sensorsize")],
    "light": [at_most_one("type", "directional")],
    "custom/numeric": [_numeric],
    "custom/text": [bounds("data", bool, "a text that is not empty")],
    "asset/hfield": [_elevation],
    "asset/texture": [_gridlayout],
    "body/inertial": [_inertia, _in_world],
    "body/joint": [_in_world],
    "body/freejoint": [_in_world],
    "body/composite": [_cable],
    "body/flexcomp": [_flex_young],
    "equality/connect": [_anchored(("body1", "anchor"), ("body2",))],
    "equality/weld": [_anchored(("body1",), ("body2", "anchor", "relpose"))],
    "sensor/rangefinder": [exactly_one("site", "camera"), ordered("data", "raydata")],
    "sensor/distance": _PAIR,
    "sensor/normal": _PAIR,
    "sensor/fromto": _PAIR,
    "sensor/contact": [
        at_most_one("geom1", "body1", "subtree1", "site"),
        at_most_one("geom2", "body2", "subtree2"),
        ordered("data", "condata"),
        bounds("num", lambda n: n > 0, "positive"),
    ],
    "sensor/user": [both("objtype", "objname")],
    "sensor/plugin": _PLUGIN_OBJECT,
    "plugin": [_plugin_configs],
    "instance": [_plugin_configs],
    **{f"sensor/frame{what}": [both("reftype", "refname")]
       for what in ("pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel")},
}  # fmt: skip


def _rules_of(kind: ElementType) -> list[Rule]:
    places = kind.path.split("/")
    rules = [*RULES.get("/".join(places[-2:]), ()), *(RULES.get(places[-1], ()) if "equality" not in places else ())]
    if "euler" in kind.attributes and "quat" in kind.attributes:
        rules.append(at_most_one("quat", "axisangle", "xyaxes", "zaxis", "euler"))
    if "quat" in kind.attributes and kind.tag not in ("composite", "flexcomp"):
        rules.append(nonzero("quat"))
    return rules


_ALL_RULES: dict[int, list[Rule]] = {id(kind): _rules_of(kind) for kind in all_types()}


def check_element(element: Element) -> None:
    """Raise ModelError if an element lacks a required attribute or violates a rule of its type."""
    for attribute in element.type.attributes.values():
        if attribute.required and attribute.name not in element.attrs:
            raise element.error(f"the attribute '{attribute.name}' is required")
    for rule in _ALL_RULES[id(element.type)]:
        reason = rule(element)
        if reason:
            raise element.error(reason)


def check_counts(element: Element) -> None:
    """Raise ModelError for a child that occurs too often; inside of frames it is a warning, as MuJoCo accepts it."""
    seen: dict[str, Element] = {}
    for child in element.children:
        if child.type.count in "?!" and child.tag in seen:
            if any(around.tag in ("frame", "replicate") for around in child.ancestors()):
                child.warn(f"a second {child.tag} overwrites the first")
                continue
            raise child.error(f"{element.tag} can have only one {child.tag}")
        seen[child.tag] = child


def check_elements(spec: Spec) -> None:
    """Check every element of a spec separately."""
    for element in spec.root.all():
        check_element(element)
        check_counts(element)


def check_classes(spec: Spec, table: dict[str, Any]) -> None:
    """Raise ModelError for a `class` or `childclass` that is not in the table of default classes."""
    for section in spec.root.children:
        if section.tag == "default":
            continue
        for element in section.all():
            for key in ("class", "childclass"):
                name = element.attrs.get(key)
                if name is not None and name not in table:
                    raise element.error(f"unknown default class '{name}'{did_you_mean(name, table)}")


def check_name_free(element: Element, names: Any) -> None:
    """Raise ModelError if the element's name is already one of `names`."""
    if element.name and element.type.kind and names.has(element.type.kind, element.name):
        raise element.error(f"the {element.type.kind} name '{element.name}' is taken")


def check_names(spec: Spec) -> None:
    """Raise ModelError if two elements of a kind have the same name."""
    seen: dict[tuple[str, str], Element] = {("body", "world"): spec.root}
    for section in spec.root.children:
        if section.tag == "default":
            continue
        for element in section.all():
            kind, name = element.type.kind, object_name(element)
            if not kind or not name or element.type.tag == "worldbody":
                continue
            other = seen.setdefault((kind, name), element)
            if other is not element:
                where = f"; the other is in line {other.source[1]}" if other.source else ""
                raise element.error(f"the {kind} name '{name}' is taken{where}")
