"""What refers to what: the names that an element uses, and elements copied under new names.

Everything here is driven by the reference kinds of the language table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsim.core.errors import UnsupportedError
from jaxsim.mjcf.schema.values import did_you_mean
from jaxsim.mjcf.spec import Element, Spec, object_name

TREE_KINDS = ("body", "joint", "geom", "site", "camera", "light", "frame")
ASSET_KINDS = ("mesh", "hfield", "skin", "texture", "material")
CHECKED_KINDS = (*TREE_KINDS, *ASSET_KINDS, "tendon", "actuator", "flex", "sensor", "instance", "model")
_BODY_ALIASES = {"xbody": "body"}


@dataclass(frozen=True)
class Slot:
    """One place where a name is used: an attribute of an element, for lists of names one entry of it."""

    element: Element
    attribute: str
    kind: str
    index: int | None = None

    @property
    def name(self) -> str:
        """The name used."""
        value = self.element.attrs[self.attribute]
        return value if self.index is None else value[self.index]

    def rename(self, name: str) -> None:
        """Use another name."""
        if self.index is None:
            self.element.attrs[self.attribute] = name
        else:
            names = list(self.element.attrs[self.attribute])
            names[self.index] = name
            self.element.attrs[self.attribute] = tuple(names)


def own_slots(element: Element) -> Iterator[Slot]:
    """The names that an element itself uses, empty ones left out."""
    for key, value in element.attrs.items():
        attribute = element.type.attributes[key]
        if attribute.kind != "ref" or not value:
            continue
        kind = attribute.refers
        if kind.startswith("("):
            kind = element.attrs.get(kind[1:-1], "")
        kind = _BODY_ALIASES.get(kind, kind)
        if attribute.many:
            yield from (Slot(element, key, kind, i) for i in range(len(value)))
        else:
            yield Slot(element, key, kind)


def slots(element: Element) -> list[Slot]:
    """The names that an element and everything in it use."""
    return [slot for inner in element.all() for slot in own_slots(inner)]


class Names:
    """The names that exist, by kind."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {"body": {"world"}}

    def add(self, element: Element) -> None:
        """Note the name of an element."""
        name = object_name(element)
        if element.type.kind and name:
            self._names.setdefault(element.type.kind, set()).add(name)

    def add_all(self, top: Element) -> None:
        """Note the names of an element and everything in it."""
        for element in top.all():
            self.add(element)

    def discard_all(self, top: Element) -> None:
        """Forget the names of everything in an element."""
        for element in top.all():
            if element.type.kind:
                self._names.get(element.type.kind, set()).discard(object_name(element) or "")

    def has(self, kind: str, name: str) -> bool:
        """Whether an element of a kind has a name."""
        return name in self._names.get(kind, ())

    def of(self, kind: str) -> set[str]:
        """All names of a kind."""
        return self._names.get(kind, set())

    def resolves(self, element: Element) -> bool:
        """Whether everything that an element uses exists."""
        return all(slot.kind == "default" or self.has(slot.kind, slot.name) for slot in slots(element))


@dataclass(frozen=True)
class Namespace:
    """New names for copied elements: a prefix and a suffix; `foreign` when they come from another model."""

    prefix: str = ""
    suffix: str = ""
    foreign: bool = False

    def __call__(self, name: str) -> str:
        return f"{self.prefix}{name}{self.suffix}"

    def shared(self, slot: Slot) -> bool:
        """Whether a name stays as it is: assets and classes within one model, the root class between models."""
        if slot.kind == "default":
            return not self.foreign
        light_texture = slot.element.tag == "light" and slot.attribute == "texture"
        return not self.foreign and slot.kind in ASSET_KINDS and not light_texture


def rename_tree(top: Element, space: Namespace) -> None:
    """Rename everything in a subtree of bodies, and what it uses."""
    for element in top.all():
        if element.type.kind and element.name:
            element.attrs["name"] = space(element.name)
        for slot in list(own_slots(element)):
            if not space.shared(slot):
                slot.rename(space(slot.name))


@dataclass(frozen=True)
class Uses:
    """What an element outside the tree uses: all its slots, and which of them a copy may point elsewhere."""

    slots: list[Slot]
    objects: list[int]

    @staticmethod
    def of(element: Element) -> Uses:
        found = slots(element)
        assets = () if element.type.kind == "sensor" else ASSET_KINDS
        return Uses(found, [i for i, slot in enumerate(found) if slot.kind != "default" and slot.kind not in assets])


def copy_renamed(element: Element, uses: Uses, space: Namespace, names: Names) -> Element | None:
    """A copy of a sensor, actuator, pair, ... for objects that were copied under new names; None where it uses none.

    Objects outside what was copied keep their names where the reference allows that: in tendon paths, and for one of
    the two objects of a pair, an exclude or a sensor.
    """
    todo = [uses.slots[i] for i in uses.objects]
    renamed = _RULES.get(element.type.kind or "", _all)(todo, space, names)
    if renamed is None:
        return None
    choice = dict(zip(uses.objects, renamed, strict=True))
    twin = element.copy()
    if element.name:
        twin.attrs["name"] = space(element.name)
    for i, slot in enumerate(slots(twin)):
        if choice.get(i, space.foreign):
            slot.rename(space(slot.name))
    return twin


def _exists(slot: Slot, name: str, names: Names) -> bool:
    return names.has(slot.kind, name)


def _all(todo: list[Slot], space: Namespace, names: Names) -> list[bool] | None:
    """Every object must have been copied."""
    return [True] * len(todo) if all(_exists(slot, space(slot.name), names) for slot in todo) else None


def _two(todo: list[Slot], space: Namespace, names: Names) -> list[bool] | None:
    """One of two objects must have been copied; the other may be anywhere. Without objects there is always a copy."""
    found = [_exists(slot, space(slot.name), names) for slot in todo]
    if todo and not any(found):
        return None
    fits = all(new or _exists(slot, slot.name, names) for slot, new in zip(todo, found, strict=True))
    return found if fits else None


def _path(todo: list[Slot], space: Namespace, names: Names) -> list[bool] | None:
    """A tendon: each entry of its path takes the new names if all of them exist, else the old ones."""
    new, old = ({id(slot.element): True for slot in todo} for _ in range(2))
    for slot in todo:
        new[id(slot.element)] &= _exists(slot, space(slot.name), names)
        old[id(slot.element)] &= _exists(slot, slot.name, names)
    if not any(new.values()) or not all(new[key] or old[key] for key in new):
        return None
    return [new[id(slot.element)] for slot in todo]


_RULES = {"pair": _two, "exclude": _two, "sensor": _two, "tendon": _path}

# sections outside the tree in the order in which copies are made, with the kinds that a section holds
LISTS = (
    ("deformable", "flex"),
    ("contact", "pair"),
    ("contact", "exclude"),
    ("tendon", "tendon"),
    ("equality", "equality"),
    ("actuator", "actuator"),
    ("sensor", "sensor"),
    ("custom", "tuple"),
)
_REMOVED = ("pair", "exclude", "tendon", "equality", "actuator", "sensor")


def listed(spec: Spec, section: str, kind: str) -> list[Element]:
    """The elements of a kind in a section."""
    found = spec.root.child(section)
    return [e for e in found.children if e.type.kind == kind] if found is not None else []


def copy_references(source: Spec, target: Spec, space: Namespace, names: Names, known: dict[int, Uses]) -> None:
    """Append to `target` copies of everything outside the tree of `source` that uses what was copied.

    `known` keeps what each element uses from one call to the next.
    """
    for section, kind in LISTS:
        for element in listed(source, section, kind):
            if id(element) not in known:
                known[id(element)] = Uses.of(element)
            twin = copy_renamed(element, known[id(element)], space, names)
            if twin is not None:
                if element.tag == "plugin" and not space.foreign:
                    raise UnsupportedError(
                        f"{element.error('plugins of what is replicated are not supported yet; write the copies out')}"
                    )
                target.section(section).append(twin)
                names.add(twin)


def drop_references(spec: Spec, before: Names, after: Names) -> None:
    """Delete everything outside the tree that lost what it used."""
    for section, kind in LISTS:
        if kind not in _REMOVED:
            continue
        for element in listed(spec, section, kind):
            if before.resolves(element) and not after.resolves(element):
                element.delete()
                after.discard_all(element)


_MAY_BE_EMPTY = ("refsite", "target", "sidesite", "joint2", "tendon2", "instance", "model")


def _check_empty(element: Element) -> None:
    for name, value in element.attrs.items():
        attribute = element.type.attributes[name]
        optional = attribute.refers in (*ASSET_KINDS, "default") and element.tag != "tactile"
        second = name == "body2" and element.type.kind == "equality"
        if attribute.kind == "ref" and value == "" and not (optional or second or name in _MAY_BE_EMPTY):
            raise element.error(f"{name} is empty; it must name a {attribute.refers.strip('()')}")


def check_references(spec: Spec) -> None:
    """Raise a ModelError where an element outside the defaults names something that does not exist."""
    names = Names()
    sections = [section for section in spec.root.children if section.tag != "default"]
    for section in sections:
        names.add_all(section)
    for section in sections:
        for element in section.all():
            _check_empty(element)
            for slot in own_slots(element):
                if slot.kind not in CHECKED_KINDS or names.has(slot.kind, slot.name):
                    continue
                hint = did_you_mean(slot.name, names.of(slot.kind))
                what = f"{slot.attribute} names the {slot.kind} '{slot.name}', which does not exist{hint}"
                if element.tag != "mesh":
                    raise element.error(what)
                element.warn(what)  # whether it matters the geoms tell
