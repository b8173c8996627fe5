"""Effective attributes of an element, and the number of written entries of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxsim.mjcf.spec import Element

ORIENTATIONS = ("axisangle", "xyaxes", "zaxis", "euler")


class Resolved(dict):
    """Effective attributes of one element by name, None if undefined; arrays have their full length.

    `given(name)` is whether the element or its default class wrote the attribute, `count(name)` the number of leading
    entries of an array that either of them wrote. A material also has `layers`, a dict from role to texture.
    """

    def __init__(self, values: Mapping[str, Any], counts: Mapping[str, int]):
        super().__init__(values)
        self._counts = dict(counts)

    def given(self, name: str) -> bool:
        """Return whether the attribute was written, by the element or in its default class."""
        return name in self._counts

    def count(self, name: str) -> int:
        """Return the number of leading entries that were written."""
        return self._counts.get(name, 0)

    def copy(self) -> Resolved:
        """Return a shallow copy."""
        return Resolved(self, self._counts)

    def overlay(self, element: Element) -> Resolved:
        """Overwrite these values, in place, by the values written in the element."""
        for name, value in _normalised(element).items():
            if name in ORIENTATIONS:
                self._forget(*ORIENTATIONS)
            self.overlay_value(name, value)
        return self

    def _forget(self, *names: str) -> None:
        for name in names:
            if name in self:
                self[name] = None
                self._counts.pop(name, None)

    def overlay_value(self, name: str, value: Any) -> None:
        """Overwrite one value, in place; a shorter array replaces only the leading entries."""
        old = self.get(name)
        count = len(value) if isinstance(value, np.ndarray) else 1
        if isinstance(value, np.ndarray) and old is not None and len(value) < len(old) and name not in _REPLACED_ARRAYS:
            value = np.concatenate([value, old[len(value) :]])
        if isinstance(value, dict):
            value = {**(old or {}), **value}
        self[name] = value
        self._counts[name] = max(count, self._counts.get(name, 0))


_REPLACED_ARRAYS = ("user", "data")  # arrays of any length are replaced as a whole


def _normalised(element: Element) -> dict[str, Any]:
    """Return the written attributes in full form.

    This applies to `directional`, a single `springlength` and textures of materials.
    """
    attrs = dict(element.attrs)
    if element.type.record == "light" or element.type.path.endswith("default/light"):
        directional = attrs.pop("directional", None)
        if directional is not None:
            attrs["type"] = "directional" if directional else "spot"
    spring = attrs.get("springlength")
    if spring is not None and len(spring) == 1:
        attrs["springlength"] = np.repeat(spring, 2)
    if element.tag == "material":
        layers = {child.attrs["role"]: child.attrs["texture"] for child in element.children if child.tag == "layer"}
        if "texture" in attrs:
            layers["rgb"] = attrs["texture"]
        if layers:
            attrs["layers"] = layers
    return attrs
