"""The draft of the compile passes: objects by kind in mjModel's order, their names, the compiler's settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxsim.compiler.objects import DraftObject, Lists, make_object
from jaxsim.core import named
from jaxsim.core.errors import UnsupportedError, did_you_mean
from jaxsim.mjcf import Element, Spec, resolve

# kinds of objects in the order of mjModel's names, with the prefix of their fields
KINDS = {name: kind.prefixes[0].rstrip("_") for name, kind in named.KINDS.items()}


class Draft:
    """The unfinished model: `lists` holds the objects by kind, `values` the finished mjModel fields by name."""

    def __init__(self, spec: Spec):
        self.spec = spec
        self.lists = Lists(KINDS)
        self.ids: dict[str, dict[str, DraftObject]] = {kind: {} for kind in KINDS}
        self.values: dict[str, Any] = {}
        self.settings: Settings = Settings({})
        self.lengthrange: dict[str, Any] = {}
        self.option: dict[str, Any] = {}
        self.statistic: dict[str, Any] = {}
        self.visual: dict[tuple[str, str], Any] = {}
        self.size: dict[str, Any] = {}
        self.plugins: set[str] = set()  # names of the plugins that the model declares
        self.spare_bvh = 0
        self._settings: dict[int, Settings] = {}

    def settings_of(self, el: Element | None) -> Settings:
        """Return the compiler settings of an element: of the model it was attached from, else of the root model."""
        own = getattr(el, "compiler", None)
        if own is None:
            return self.settings
        if id(own) not in self._settings:
            self._settings[id(own)] = Settings({**self.settings.values, **own})
        return self._settings[id(own)]

    def add(self, kind: str, el: Element, attrs: dict[str, Any] | None = None, name: str | None = None) -> DraftObject:
        """Append an object of a kind; its id is its index in the list."""
        if attrs is None:
            attrs = resolve(self.spec, el)
        obj = make_object(kind, el, attrs, el.name or "" if name is None else name)
        obj.id = len(self.lists[kind])
        self.lists[kind].append(obj)
        return obj

    def index(self) -> None:
        """Number the objects of every list and map their names; raise ModelError for a repeated name."""
        for kind in KINDS:
            names = self.ids[kind] = {}
            for i, obj in enumerate(self.lists[kind]):
                obj.id = i
                if obj.name:
                    if obj.name in names:
                        raise obj.error(f"repeated name '{obj.name}' in {kind}")
                    names[obj.name] = obj

    def find(self, kind: str, name: str) -> Any | None:
        """Return the object of a kind with a name; a subtree (xbody) is found by its body."""
        return self.ids.get("body" if kind == "xbody" else kind, {}).get(name)

    def refer(self, user: DraftObject, kind: str, name: str, attribute: str) -> Any:
        """Return the object of a kind that an attribute of `user` names; raise ModelError with the nearest names."""
        found = self.find(kind, name)
        if found is None:
            names = self.ids.get("body" if kind == "xbody" else kind, {})
            hint = did_you_mean(name, names)
            raise user.error(f"attribute '{attribute}': there is no {kind} named '{name}'{hint}")
        return found


class Settings:
    """Attributes of the compiler element, with their defaults."""

    def __init__(self, values: Mapping[str, Any]):
        self.values = dict(values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def degree(self) -> bool:
        return self.values["angle"] == "degree"


def starts(counts: Iterable[int]) -> np.ndarray:
    """Return the address of each object's first entry, from the numbers of entries."""
    return np.cumsum([0, *counts])[:-1].astype(np.int32)


def starts_or_none(counts: Sequence[int]) -> np.ndarray:
    """Return the address of each object's first entry, -1 for an object without any."""
    return np.where(np.array(counts, int) > 0, starts(counts), -1).astype(np.int32)


def unsupported(el: Element, feature: str) -> UnsupportedError:
    """Return an error that names a valid feature without implementation, with file, line and element of its use."""
    location = f"{el.source[0] or 'XML'}:{el.source[1]}: " if el.source else ""
    return UnsupportedError(f"{location}{el.label()}: {feature} is not supported yet")
