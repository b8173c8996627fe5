"""Settings of the whole model: compiler, option, size, visual and statistic; later sections override earlier ones.

Rules of the language (`mjcf/schema/rules.py`) have been checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxsim.compiler.draft import Draft, Settings
from jaxsim.core.option import Option
from jaxsim.core.struct import fields_of
from jaxsim.core.types import DisableBit, EnableBit
from jaxsim.core.visual import visual_fields
from jaxsim.mjcf import Element
from jaxsim.mjcf.keyframes import MAX_COUNT
from jaxsim.mjcf.schema.element_type import SCHEMA
from jaxsim.mjcf.schema.values import ENUMS

_OPTION_WORDS = ("integrator", "cone", "jacobian", "solver")
USER_DATA_KINDS = ("body", "jnt", "geom", "site", "cam", "tendon", "actuator", "sensor")


def _merged(draft: Draft, *path: str) -> tuple[dict[str, Any], dict[str, Any], Element]:
    """Return the defaults of a section, its written attributes, and its last element (else the root).

    Of a repeated attribute the last value counts.
    """
    kind = SCHEMA
    for tag in path:
        kind = kind.children[tag]
    written: dict[str, Any] = {}
    element = draft.spec.root
    for element in _elements(draft, path):
        for name, value in element.attrs.items():
            old = written.get(name, kind.attributes[name].default)
            if isinstance(value, np.ndarray) and old is not None and len(value) < len(old):
                value = np.concatenate([value, old[len(value) :]])
            written[name] = value
    defaults = {name: attribute.default for name, attribute in kind.attributes.items()}
    return defaults, written, element


def _elements(draft: Draft, path: tuple[str, ...]) -> Iterator[Element]:
    level = [draft.spec.root]
    for tag in path:
        level = [child for element in level for child in element.children if child.tag == tag]
    return iter(level)


def read_compiler(draft: Draft) -> None:
    """Read the compiler settings, and those of the length range computation."""
    defaults, written, _ = _merged(draft, "compiler")
    draft.settings = Settings({**defaults, **written})
    lr_defaults, lr_written, _ = _merged(draft, "compiler", "lengthrange")
    draft.lengthrange = {**lr_defaults, **lr_written}


def read_option(draft: Draft) -> None:
    """Read mjOption, with the flags as bit fields."""
    defaults, written, element = _merged(draft, "option")
    merged = {**defaults, **written}
    option: dict[str, Any] = {}
    for name, kind, *_ in fields_of(Option):
        if name in merged:
            word = merged[name]
            value = ENUMS[name][word] if name in _OPTION_WORDS else word
            option[name] = int(value) if kind == "int" else np.asarray(value, np.float64)
    if option["timestep"] <= 0:
        element.warn(
            f"the time step is {option['timestep']:g}, so that time does not go forward; give a positive timestep"
        )
    option["disableactuator"] = 0
    for element in _elements(draft, ("option",)):
        for group in element.attrs.get("actuatorgroupdisable", ()):
            option["disableactuator"] |= 1 << int(group)
    _, flags, _ = _merged(draft, "option", "flag")
    option["disableflags"] = sum(int(bit) for bit in DisableBit if flags.get((bit.name or "").lower()) == "disable")
    option["enableflags"] = sum(int(bit) for bit in EnableBit if flags.get((bit.name or "").lower()) == "enable")
    draft.option = option


def read_size(draft: Draft) -> None:
    """Read the sizes in the file, like the numbers of user data of each kind of object (-1: as needed)."""
    defaults, written, element = _merged(draft, "size")
    draft.size = {**defaults, **written}
    for name in ("nuserdata", "nkey"):
        if draft.size[name] < 0:
            raise element.error(f"{name} cannot be negative")
    for name in ("nuserdata", "nkey", *(f"nuser_{kind}" for kind in USER_DATA_KINDS)):
        if draft.size[name] > MAX_COUNT:
            raise element.error(f"{name} is larger than {MAX_COUNT}, the greatest number accepted")


def read_visual(draft: Draft) -> None:
    """Read mjVisual as {(group, field): value}, rounded to float32 as in MuJoCo."""
    sections = {group: _merged(draft, "visual", group) for group in SCHEMA.children["visual"].children}
    visual: dict[tuple[str, str], Any] = {}
    for group, field in visual_fields():
        name = field.name
        defaults, written, _ = sections[group.removesuffix("_")]
        value = written.get(name, defaults[name])
        if field.kind == "int":
            visual[group, name] = int(value)
        else:
            single = np.asarray(value, np.float32).astype(np.float64)
            visual[group, name] = tuple(single.tolist()) if single.ndim else float(single)
    draft.visual = visual


def read_statistic(draft: Draft) -> None:
    """Read the statistics in the file; all others, and those set to NaN, are computed."""
    _, written, _ = _merged(draft, "statistic")
    draft.statistic = {name: value for name, value in written.items() if not np.isnan(np.ravel(value)[0])}


def read_settings(draft: Draft) -> None:
    """Read all settings into the draft."""
    read_compiler(draft)
    read_option(draft)
    read_size(draft)
    read_visual(draft)
    read_statistic(draft)
