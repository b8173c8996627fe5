"""The first-party plugins of MuJoCo by name: their numbers, capabilities and attributes.

The compiler checks and lays out the plugins of a model, the engine reads them with `config`: both use this table. No
library is loaded; a plugin that is not in the table is an error of the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_NUMBER = re.compile(
    r"[+-]?(?:0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?"
    r"|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Plugin:
    """One plugin: its name, the number in `Model.plugin`, the kind of element for it and its attributes in order.

    `drives` is the kind of element that may use it: `body` (passive forces), `actuator`, `sensor`, or `geom` for signed
    distance fields, which meshes may use as well. `defaults` are the numbers of attributes that are not written.
    """

    name: str
    slot: int
    drives: str
    attributes: tuple[str, ...]
    defaults: tuple[float, ...] = ()


_TABLE = (
    ("mujoco.pid", "actuator", "kp ki kd imax slewmax", ()),
    ("mujoco.elasticity.cable", "body", "twist bend flat vmax", ()),
    ("mujoco.sensor.touch_grid", "sensor", "nchannel size fov gamma", ()),
    ("mujoco.sdf.bolt", "geom", "radius", (0.26,)),
    ("mujoco.sdf.bowl", "geom", "height radius thickness", (0.4, 1.0, 0.02)),
    ("mujoco.sdf.gear", "geom", "alpha diameter teeth thickness innerdiameter", (0.0, 2.8, 25.0, 0.2, -1.0)),
    ("mujoco.sdf.nut", "geom", "radius", (0.26,)),
    ("mujoco.sdf.torus", "geom", "radius1 radius2", (0.35, 0.15)),
)
PLUGINS = {
    name: Plugin(name, slot, drives, tuple(attributes.split()), defaults)
    for slot, (name, drives, attributes, defaults) in enumerate(_TABLE)
}
"""All plugins by name. Their numbers are those of MuJoCo's Python package, which loads them in this order."""
BY_SLOT = tuple(PLUGINS.values())


def config(m: Any, instance: int) -> dict[str, str]:
    """Return the configuration of a plugin instance of a model: attribute -> text, empty for attributes not written.

    Args:
        m: a `Model` (or an object with mjModel's fields `plugin`, `plugin_attr`, `plugin_attradr`).
        instance: the id of the instance.
    """
    plugin = BY_SLOT[int(m.plugin[instance])]
    words = bytes(m.plugin_attr[int(m.plugin_attradr[instance]) :]).split(b"\0", len(plugin.attributes))
    return {name: word.decode() for name, word in zip(plugin.attributes, words, strict=False)}


def leading_number(text: str) -> float | None:
    """Return the number at the start of a text, after white space; None if there is none."""
    found = _NUMBER.match(text.lstrip())
    if not found:
        return None
    word = found[0].lower()
    return float.fromhex(word) if "0x" in word else float(word)


def numeric(text: str) -> bool:
    """Return whether a text is a number, white space aside, or empty."""
    bare = "".join(text.split())
    return not bare or bool(_NUMBER.fullmatch(bare))


def numbers(plugin: Plugin, texts: Mapping[str, str]) -> tuple[float, ...]:
    """Return the attributes of a configuration as numbers, with defaults (zero for a plugin without defaults)."""
    found = [leading_number(text) for text in texts.values()]
    defaults = plugin.defaults or (0.0,) * len(found)
    return tuple(default if x is None else x for x, default in zip(found, defaults, strict=True))
