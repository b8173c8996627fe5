"""References between elements by name, and copies of elements under new names.

The language table defines the attributes that are references, and their kinds of objects.
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
class Reference:
    """A reference by name: an attribute of an element, or one entry of an attribute that lists names."""

    element: Element
    attribute: str
    kind: str
    index: int | None = None

    @property
    def name(self) -> str:
        """The name of the referenced object."""
        value = self.element.attrs[self.attribute]
        return value if self.index is None else value[self.index]

    def rename(self, name: str) -> None:
        """Set the name of the referenced object."""
        if self.index is None:
            self.element.attrs[self.attribute] = name
        else:
            names = list(self.element.attrs[self.attribute])
            names[self.index] = name
            self.element.attrs[self.attribute] = tuple(names)


def own_references(element: Element) -> Iterator[Reference]:
    """Return the references of an element without its children, except empty ones."""
    for key, value in element.attrs.items():
        attribute = element.type.attributes[key]
        if attribute.kind != "ref" or not value:
            continue
        kind = attribute.refers
        if kind.startswith("("):
            kind = element.attrs.get(kind[1:-1], "")
        kind = _BODY_ALIASES.get(kind, kind)
        if attribute.many:
            yield from (Reference(element, key, kind, i) for i in range(len(value)))
        else:
            yield Reference(element, key, kind)


def references_in(element: Element) -> list[Reference]:
    """Return the references of an element and of all its descendants."""
    return [reference for inner in element.all() for reference in own_references(inner)]


class DeclaredNames:
    """Names of the existing elements, by kind."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {"body": {"world"}}

    def add(self, element: Element) -> None:
        """Add the name of an element."""
        name = object_name(element)
        if element.type.kind and name:
            self._names.setdefault(element.type.kind, set()).add(name)

    def add_all(self, top: Element) -> None:
        """Add the names of an element and all its descendants."""
        for element in top.all():
            self.add(element)

    def discard_all(self, top: Element) -> None:
        """Remove the names of all descendants of an element."""
        for element in top.all():
            if element.type.kind:
                self._names.get(element.type.kind, set()).discard(object_name(element) or "")

    def has(self, kind: str, name: str) -> bool:
        """Return whether an element of a kind has a name."""
        return name in self._names.get(kind, ())

    def of(self, kind: str) -> set[str]:
        """Return all names of a kind."""
        return self._names.get(kind, set())

    def resolves(self, element: Element) -> bool:
        """Return whether all references of an element and its children exist."""
        return all(
            reference.kind == "default" or self.has(reference.kind, reference.name)
            for reference in references_in(element)
        )


@dataclass(frozen=True)
class Namespace:
    """New names for copied elements: a prefix and a suffix; `foreign` if they come from another model."""

    prefix: str = ""
    suffix: str = ""
    foreign: bool = False

    def __call__(self, name: str) -> str:
        return f"{self.prefix}{name}{self.suffix}"

    def shared(self, reference: Reference) -> bool:
        """Return whether a reference keeps its name: to assets and default classes within one model."""
        if reference.kind == "default":
            return not self.foreign
        light_texture = reference.element.tag == "light" and reference.attribute == "texture"
        return not self.foreign and reference.kind in ASSET_KINDS and not light_texture


def rename_tree(top: Element, space: Namespace) -> None:
    """Rename all elements in an element, and the objects that it references."""
    for element in top.all():
        if element.type.kind and element.name:
            element.attrs["name"] = space(element.name)
        for reference in list(own_references(element)):
            if not space.shared(reference):
                reference.rename(space(reference.name))


@dataclass(frozen=True)
class ObjectReferences:
    """References of an element outside the tree, and indices (`objects`) of those that a copy may redirect."""

    references: list[Reference]
    objects: list[int]

    @staticmethod
    def of(element: Element) -> ObjectReferences:
        found = references_in(element)
        assets = () if element.type.kind == "sensor" else ASSET_KINDS
        return ObjectReferences(
            found,
            [i for i, reference in enumerate(found) if reference.kind != "default" and reference.kind not in assets],
        )


def copy_renamed(element: Element, refs: ObjectReferences, space: Namespace, names: DeclaredNames) -> Element | None:
    """Copy a sensor, actuator, pair, ... for objects copied under new names; None if it references none of them.

    Objects that were not copied keep their names where MuJoCo allows that: in tendon paths, and for one of the two
    objects of a pair, an exclude or a sensor.
    """
    todo = [refs.references[i] for i in refs.objects]
    renamed = _RULES.get(element.type.kind or "", _all)(todo, space, names)
    if renamed is None:
        return None
    choice = dict(zip(refs.objects, renamed, strict=True))
    twin = element.copy()
    if element.name:
        twin.attrs["name"] = space(element.name)
    for i, reference in enumerate(references_in(twin)):
        if choice.get(i, space.foreign):
            reference.rename(space(reference.name))
    return twin


def _all(todo: list[Reference], space: Namespace, names: DeclaredNames) -> list[bool] | None:
    """Return the references that get new names: all of them; None unless every object was copied."""
    return [True] * len(todo) if all(names.has(reference.kind, space(reference.name)) for reference in todo) else None


def _two(todo: list[Reference], space: Namespace, names: DeclaredNames) -> list[bool] | None:
    """Return the ones of two references that get new names; None unless one object was copied and the other exists.

    An element without objects is always copied.
    """
    found = [names.has(reference.kind, space(reference.name)) for reference in todo]
    if todo and not any(found):
        return None
    fits = all(new or names.has(reference.kind, reference.name) for reference, new in zip(todo, found, strict=True))
    return found if fits else None


def _path(todo: list[Reference], space: Namespace, names: DeclaredNames) -> list[bool] | None:
    """Return the references of a tendon that get new names: of each path entry all if the new names exist, else none.

    Returns None if no entry has new names or an entry has neither.
    """
    new, old = ({id(reference.element): True for reference in todo} for _ in range(2))
    for reference in todo:
        new[id(reference.element)] &= names.has(reference.kind, space(reference.name))
        old[id(reference.element)] &= names.has(reference.kind, reference.name)
    if not any(new.values()) or not all(new[key] or old[key] for key in new):
        return None
    return [new[id(reference.element)] for reference in todo]


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
    """Return the elements of a kind in a section."""
    found = spec.root.child(section)
    return [e for e in found.children if e.type.kind == kind] if found is not None else []


def copy_references(
    source: Spec, target: Spec, space: Namespace, names: DeclaredNames, known: dict[int, ObjectReferences]
) -> None:
    """Append to `target` copies of all elements outside the tree of `source` that reference copied objects.

    `known` caches the references of each element from one call to the next.
    """
    for section, kind in LISTS:
        for element in listed(source, section, kind):
            if id(element) not in known:
                known[id(element)] = ObjectReferences.of(element)
            twin = copy_renamed(element, known[id(element)], space, names)
            if twin is not None:
                if element.tag == "plugin" and not space.foreign:
                    raise UnsupportedError(
                        f"{element.error('plugins of replicated elements are not supported yet; write the copies out')}"
                    )
                target.section(section).append(twin)
                names.add(twin)


def drop_references(spec: Spec, before: DeclaredNames, after: DeclaredNames) -> None:
    """Delete all elements outside the tree that reference a deleted object."""
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
    """Raise ModelError if an element outside the defaults references an object that does not exist."""
    names = DeclaredNames()
    sections = [section for section in spec.root.children if section.tag != "default"]
    for section in sections:
        names.add_all(section)
    for section in sections:
        for element in section.all():
            _check_empty(element)
            for reference in own_references(element):
                if reference.kind not in CHECKED_KINDS or names.has(reference.kind, reference.name):
                    continue
                hint = did_you_mean(reference.name, names.of(reference.kind))
                what = (
                    f"{reference.attribute} names the {reference.kind} '{reference.name}', which does not exist{hint}"
                )
                if element.tag != "mesh":
                    raise element.error(what)
                element.warn(what)  # an error only if a geom uses the mesh
