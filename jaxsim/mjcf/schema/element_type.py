"""The language table of `language.py` as objects.

`SCHEMA` is the type of `<mujoco>`, and holds the types of its children. Nothing here reads files or compiles.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from jaxsim.mjcf.schema import language
from jaxsim.mjcf.schema.values import Attribute, parse_value

_TYPE = re.compile(r"(?P<kind>bytes|name|file|[fgibs]|@\w+|>\(?\w+\)?)(?P<len>\d+~?|\*)?(?P<required>!)?$")


@dataclass
class ElementType:
    """The type of an element under one parent: its attributes and children.

    `count` is `!`, `?`, `*` or `R` (recursive); `record` is the kind of default record for its defaults; `kind` is the
    kind of object that it creates and that its name belongs to (`joint` for a freejoint, `sensor` for all sensors),
    None for elements that create none.
    """

    tag: str
    count: str
    path: str
    record: str | None = None
    kind: str | None = None
    attributes: dict[str, Attribute] = field(default_factory=dict)
    children: dict[str, ElementType] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"ElementType({self.path})"


def _expand_groups(text: str) -> list[str]:
    words: list[str] = []
    for word in text.split():
        words += _expand_groups(language.GROUPS[word[1:]]) if word[0] == "%" else [word]
    return words


@cache
def _attribute(text: str) -> Attribute:
    head, _, default = text.partition("=")
    name, _, code = head.partition(":")
    match = _TYPE.match(code)
    if not match:
        raise ValueError(f"bad entry in the language table: {text}")
    kind, size = match["kind"], match["len"] or ""
    many = size == "*"
    length = None if many else int(size.rstrip("~") or 1)
    words = kind[1:] if kind[0] == "@" else ""
    refers = kind[1:] if kind[0] == ">" else ""
    kind = "word" if words else "ref" if refers else kind
    bare = Attribute(name, kind, length, not size.endswith("~"), bool(match["required"]), None, words, refers, many)
    return replace(bare, default=_parse_default(bare, default)) if default else bare


def _parse_default(attribute: Attribute, text: str) -> Any:
    value = parse_value(attribute, text.replace(",", " "), pad=True)
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    return value


_KIND_OF_TAG = {"freejoint": "joint", "worldbody": "body"}
_OBJECT_SECTIONS = ("body", "asset", "contact", "custom", "keyframe", "deformable")


def _kind(path: str) -> str | None:
    _, *places = path.split("/")
    if places == ["extension", "plugin", "instance"]:
        return "instance"
    if len(places) == 1:
        return "body" if places[0] in ("body", "worldbody") else None
    if len(places) != 2 or places[1] in ("inertial", "attach", "composite", "flexcomp", "replicate"):
        return None
    if places == ["body", "plugin"]:
        return None
    if places[0] in _OBJECT_SECTIONS:
        return _KIND_OF_TAG.get(places[1], places[1])
    return places[0] if places[0] in ("equality", "tendon", "actuator", "sensor") else None


def _build(table: str) -> ElementType:
    top = ElementType("", "*", "")
    stack = [[top]]
    shared: list[tuple[ElementType, ElementType, str]] = []
    for line in table.strip("\n").splitlines():
        head, *words = line.split()
        if head == "|":
            attributes = {a.name: a for a in map(_attribute, _expand_groups(" ".join(words)))}
            for kind in stack[-1]:
                kind.attributes.update(attributes)
            continue
        del stack[(len(line) - len(line.lstrip())) // 2 + 1 :]
        [parent] = stack[-1]
        marks = dict(zip(words[1::2], words[2::2], strict=True))
        stack.append([])
        for tag in head.split(","):
            path = f"{parent.path}/{tag}".lstrip("/")
            kind = ElementType(tag, words[0], path, marks.get("="), _kind(path))
            parent.children[tag] = kind
            stack[-1].append(kind)
            if "<" in marks:
                shared.append((kind, parent, marks["<"]))
    for kind, parent, tag in shared:
        kind.children = parent.children[tag].children if tag in parent.children else parent.children
    root = top.children["mujoco"]
    for recursive in (root.children["body"], root.children["default"]):
        recursive.children[recursive.tag] = recursive
    del root.children["body"]
    return root


SCHEMA: ElementType = _build(language.TABLE)
"""The type of the root element, `<mujoco>`."""


def all_types() -> list[ElementType]:
    """Return every element type of the language once, in the order of the table."""
    found: dict[int, ElementType] = {}
    todo = [SCHEMA]
    while todo:
        kind = todo.pop(0)
        if id(kind) not in found:
            found[id(kind)] = kind
            todo[:0] = kind.children.values()
    return list(found.values())
