"""What refers to what: the names that an element uses, and elements copied under new names.

Everything here is driven by the reference kinds of the language table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsim.mjcf.spec import Element, Spec, object_name
from jaxsim.mjcf.values import did_you_mean

TREE_KINDS = ("body", "joint", "geom", "site", "camera", "light", "frame")
ASSET_KINDS = ("mesh", "hfield", "skin", "texture", "material")
CHECKED_KINDS = (*TREE_KINDS, *ASSET_KINDS, "tendon", "actuator", "flex", "sensor", "instance", "model")
_BODY_ALIASES = {"xbody": "body"}
_SECOND = ("refname", "geom2", "body2", "subtree2")
_SECOND_OF = {"insidesite": ("site",), "camprojection": ("camera",), "tactile": ("geom",)}


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


def is_second(slot: Slot) -> bool:
    """Whether a sensor, pair or exclude uses the name for its second object."""
    return slot.attribute in _SECOND or slot.attribute in _SECOND_OF.get(slot.element.tag, ())


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


def copy_renamed(element: Element, space: Namespace, names: Names) -> Element | None:
    """A copy of a sensor, actuator, pair, ... for objects that were copied under new names; None where it uses none.

    Objects outside what was copied keep their names where the reference allows that: in tendon paths, and for one of
    the two objects of a pair, an exclude or a sensor.
    """
    twin = element.copy()
    if element.name:
        twin.attrs["name"] = space(element.name)
    todo = []
    for slot in slots(twin):
        if slot.kind == "default" or (slot.kind in ASSET_KINDS and element.type.kind != "sensor"):
            if space.foreign:
                slot.rename(space(slot.name))
        else:
            todo.append(slot)
    rule = _RULES.get(element.type.kind or "", _all)
    return twin if rule(todo, space, names) else None


def _exists(slot: Slot, name: str, names: Names) -> bool:
    return names.has(slot.kind, name)


def _all(todo: list[Slot], space: Namespace, names: Names) -> bool:
    if not all(_exists(slot, space(slot.name), names) for slot in todo):
        return False
    for slot in todo:
        slot.rename(space(slot.name))
    return True


def _two(todo: list[Slot], space: Namespace, names: Names) -> bool:
    found = [_exists(slot, space(slot.name), names) for slot in todo]
    if todo and not any(found):
        return False
    if len(todo) == 1 and not found[0]:
        return False
    for slot, new in zip(todo, found, strict=True):
        if new:
            slot.rename(space(slot.name))
        elif not _exists(slot, slot.name, names):
            return False
    return True


def _path(todo: list[Slot], space: Namespace, names: Names) -> bool:
    """A tendon: each entry of its path takes the new names if all of them exist, else the old ones."""
    any_new = False
    for owner in {id(slot.element): slot.element for slot in todo}.values():
        mine = [slot for slot in todo if slot.element is owner]
        if all(_exists(slot, space(slot.name), names) for slot in mine):
            any_new = True
            for slot in mine:
                slot.rename(space(slot.name))
        elif not all(_exists(slot, slot.name, names) for slot in mine):
            return False
    return any_new


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


def copy_references(source: Spec, target: Spec, space: Namespace, names: Names) -> None:
    """Append to `target` copies of everything outside the tree of `source` that uses what was copied."""
    for section, kind in LISTS:
        for element in listed(source, section, kind):
            twin = copy_renamed(element, space, names)
            if twin is not None:
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


def check_references(spec: Spec) -> None:
    """Raise a ModelError where an element outside the defaults names something that does not exist."""
    names = Names()
    sections = [section for section in spec.root.children if section.tag != "default"]
    for section in sections:
        names.add_all(section)
    for section in sections:
        for element in section.all():
            for slot in own_slots(element):
                if slot.kind in CHECKED_KINDS and not names.has(slot.kind, slot.name):
                    hint = did_you_mean(slot.name, names.of(slot.kind))
                    raise element.error(
                        f"{slot.attribute} names the {slot.kind} '{slot.name}', which does not exist{hint}"
                    )
