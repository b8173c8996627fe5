"""The documentation page of MJCF, from its table: `python -m jaxsim.mjcf.schema.page` prints it."""

from __future__ import annotations

import numpy as np

from jaxsim.mjcf.schema.element_type import ElementType, all_types
from jaxsim.mjcf.schema.values import ENUMS, Attribute, format_value

_COUNTS = {
    "!": "exactly once",
    "?": "at most once",
    "*": "any number of times",
    "R": "any number of times, also in itself",
}
_KINDS = {"f": "real", "g": "real (single precision)", "i": "integer", "b": "true or false", "s": "text"}
_INTRO = """# MJCF, as jaxsim reads it

This page is written from the table that drives the reader, the defaults and the writer
(`jaxsim/mjcf/schema/language.py`). It lists every element with its parent, and every attribute with its type and
default. MuJoCo's XML reference explains what they mean; all of it applies here.

Numbers in brackets after a type are the length of an array; `1..n` means that the leading entries may be written alone.
"""


def language_page() -> str:
    """Return the page as Markdown."""
    parts = [_INTRO]
    for kind in all_types():
        parts.append(_element(kind))
    return "\n".join(parts)


def _element(kind: ElementType) -> str:
    path = kind.path.replace("mujoco/body", "mujoco/(world)body")
    lines = [f"## {path}", "", f"Occurs {_COUNTS[kind.count]}."]
    if kind.record:
        lines[-1] += f" Attributes left out come from the default class (`{kind.record}`)."
    if kind.attributes:
        lines += ["", "| attribute | type | default |", "| --- | --- | --- |"]
        lines += [f"| `{a.name}` | {_type(a)} | {_default(a)} |" for a in kind.attributes.values()]
    return "\n".join([*lines, ""])


def _type(attribute: Attribute) -> str:
    if attribute.kind == "word":
        text = ", ".join(f"`{word}`" for word in ENUMS[attribute.words])
        return f"some of {text}" if attribute.many else text
    if attribute.kind == "ref":
        target = attribute.refers
        what = f"object of the kind in `{target[1:-1]}`" if target.startswith("(") else target
        return f"names of {what}" if attribute.many else f"name of {what}"
    text = _KINDS.get(attribute.kind, {"bytes": "size in bytes"}.get(attribute.kind, attribute.kind))
    if attribute.many:
        return f"{text} [any]"
    if attribute.length != 1:
        return f"{text} [{attribute.length if attribute.exact else f'1..{attribute.length}'}]"
    return text


def _default(attribute: Attribute) -> str:
    if attribute.required:
        return "required"
    if attribute.default is None:
        return ""
    value = attribute.default
    if isinstance(value, np.ndarray) and len(value) > 1 and np.all(value == value[0]):
        return f"`{format_value(attribute, value[:1])} ...`"
    return f"`{format_value(attribute, value)}`"


if __name__ == "__main__":
    print(language_page(), end="")
