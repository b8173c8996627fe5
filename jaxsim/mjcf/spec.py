"""The object model of MJCF: `Element` (tag, attributes, children) and `Spec` (root element, folder of its files).

Both are plain Python and may be edited freely. Only written attributes are stored; `resolve` adds defaults.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from jaxsim.core.errors import ModelError, warn
from jaxsim.mjcf.files import base_name, check_assets
from jaxsim.mjcf.schema.element_type import SCHEMA, ElementType
from jaxsim.mjcf.schema.values import check_value, did_you_mean


class Element:
    """One element: `attrs` holds the attributes that were given, as values of the schema's types.

    Numbers are float or int, arrays of numbers are NumPy float64 or int64, words, names and texts are str, switches are
    bool, lists of words or names are tuples of str. `source` is `(file, line)` or None for an element created in
    Python. `compiler` is None, or the compiler settings of the model that this element was attached from. `state`
    belongs to the expansion of macros: values of keyframes for this element. `derived` holds results of a macro for the
    element that have no attribute in MJCF.
    """

    __slots__ = ("attrs", "children", "compiler", "derived", "parent", "source", "state", "type")

    def __init__(self, type: ElementType, source: tuple[str, int] | None = None):
        self.type = type
        self.attrs: dict[str, Any] = {}
        self.children: list[Element] = []
        self.parent: Element | None = None
        self.source = source
        self.compiler: dict[str, Any] | None = None
        self.state: dict[str, dict[str, Any]] | None = None
        self.derived: dict[str, Any] | None = None

    @property
    def tag(self) -> str:
        """The tag of the element."""
        return self.type.tag

    @property
    def name(self) -> str | None:
        """The written name; None for an element without one."""
        return self.attrs.get("name") or None

    def __repr__(self) -> str:
        return f"<{self.label()} with {len(self.attrs)} attributes and {len(self.children)} children>"

    def label(self) -> str:
        """Return the label of the element in messages: `geom 'foot'`."""
        return f"{self.tag} '{self.name}'" if self.name else self.tag

    def error(self, what: str) -> ModelError:
        """Return a ModelError about this element, to be raised."""
        return ModelError(what, self.source, self.label())

    def warn(self, what: str) -> None:
        """Issue a ModelWarning about this element."""
        warn(what, self.source, self.label())

    def get(self, name: str, default: Any = None) -> Any:
        """Return the written value of an attribute, or `default`."""
        return self.attrs.get(name, default)

    def set(self, **attrs: Any) -> Element:
        """Write attributes; values are text or Python values, None removes one; `class_` means `class`."""
        for key, value in attrs.items():
            self._write(key.rstrip("_"), value)
        return self

    def _write(self, name: str, value: Any) -> None:
        attribute = self.type.attributes.get(name)
        if attribute is None:
            raise self.error(f"unknown attribute '{name}' in {self.tag}{did_you_mean(name, self.type.attributes)}")
        try:
            checked = check_value(attribute, value)
        except ValueError as reason:
            raise self.error(f"attribute '{name}': {reason}") from None
        if checked is None:
            self.attrs.pop(name, None)
        else:
            self.attrs[name] = checked

    def add(self, tag: str, **attrs: Any) -> Element:
        """Append a child and return it; raise ModelError if MJCF does not allow it."""
        child = Element(self.child_type(tag))
        child.set(**attrs)
        return self.append(child)

    def append(self, child: Element) -> Element:
        """Append an element (with its descendants) and return it."""
        child.parent = self
        self.children.append(child)
        return child

    def child_type(self, tag: str) -> ElementType:
        """Return the type of a child with this tag; raise ModelError if the child is not allowed."""
        kind = self.type.children.get(tag)
        if kind is None:
            raise self.error(f"unknown element '{tag}' in {self.tag}{did_you_mean(tag, self.type.children)}")
        return kind

    def delete(self) -> None:
        """Remove the element from its parent."""
        if self.parent is not None:
            self.parent.children = [c for c in self.parent.children if c is not self]
            self.parent = None

    def child(self, tag: str) -> Element | None:
        """Return the first child with this tag."""
        return next((c for c in self.children if c.tag == tag), None)

    def all(self, *tags: str) -> Iterator[Element]:
        """Return this element and its descendants in document order; only the given tags if any are given."""
        todo: list[Element] = [self]
        while todo:
            element = todo.pop()
            if not tags or element.tag in tags:
                yield element
            todo.extend(reversed(element.children))

    def ancestors(self) -> Iterator[Element]:
        """Return the parent, its parent, and so on up to the root."""
        element = self.parent
        while element is not None:
            yield element
            element = element.parent

    def copy(self) -> Element:
        """Return a deep copy without a parent. Values are shared: they are replaced, never changed in place."""
        top = shallow_copy(self)
        todo: list[tuple[Element, Element]] = [(self, top)]
        while todo:
            old, new = todo.pop()
            for child in old.children:
                twin = new.append(shallow_copy(child))
                todo.append((child, twin))
        return top


def shallow_copy(element: Element) -> Element:
    """Return a copy of one element without its children and its parent."""
    twin = Element(element.type, element.source)
    twin.attrs = dict(element.attrs)
    twin.compiler, twin.state, twin.derived = element.compiler, element.state, element.derived
    return twin


class Spec:
    """A model as written: `root` is the `<mujoco>` element.

    `modelfiledir` is the folder of relative file names, `assets` maps file names to bytes and is searched before the
    file system. `models` are the models that can be attached, by name. `defaults` is None, or the table of default
    classes of a spec that is no longer edited.
    """

    def __init__(self, modelfiledir: str = "", assets: dict[str, bytes] | None = None):
        self.root = Element(SCHEMA)
        self.modelfiledir = modelfiledir
        self.assets: dict[str, bytes] = check_assets(assets)
        self.models: dict[str, Spec] = {}
        self.defaults: Any = None

    @property
    def modelname(self) -> str:
        """The model's name, `MuJoCo Model` by default."""
        return self.root.attrs.get("model", "MuJoCo Model")

    def copy(self) -> Spec:
        """Return a deep copy that can be edited."""
        twin = Spec(self.modelfiledir, self.assets)
        twin.root = self.root.copy()
        twin.models = dict(self.models)
        return twin

    def section(self, tag: str) -> Element:
        """Return the section `tag` of the root (worldbody, asset, option, ...), created if necessary."""
        return self.root.child(tag) or self.root.add(tag)

    @property
    def worldbody(self) -> Element:
        """The world's body."""
        return self.section("worldbody")

    def elements(self, kind: str) -> Iterator[Element]:
        """Return all elements of a kind (`body`, `joint`, `sensor`, `mesh`, ...) outside defaults in document order."""
        for section in self.root.children:
            if section.tag != "default":
                yield from (e for e in section.all() if e.type.kind == kind)

    def find(self, kind: str, name: str) -> Element | None:
        """Return the element of a kind with a name, or None."""
        return next((e for e in self.elements(kind) if object_name(e) == name), None)

    def require(self, kind: str, name: str) -> Element:
        """Return an element like `find`; raise ModelError with the nearest name if it does not exist."""
        found = self.find(kind, name)
        if found is None:
            names = [object_name(e) or "" for e in self.elements(kind)]
            raise ModelError(f"there is no {kind} '{name}'{did_you_mean(name, names)}")
        return found

    def body(self, name: str) -> Element:
        """Return the body with a name; `world` is the worldbody."""
        return self.worldbody if name == "world" else self.require("body", name)

    def add(self, section: str, tag: str, **attrs: Any) -> Element:
        """Append an element to a section of the root: `spec.add("actuator", "motor", joint="hip")`."""
        return self.section(section).add(tag, **attrs)

    def attach(
        self, child: Spec, to: Element | str | None = None, prefix: str = "", body: str | None = None
    ) -> Element:
        """Attach a body of another model (all of its world without a name) to a body or frame of this one.

        `to` is the element or the name of a body, by default the world. Names of the attached elements get the prefix.
        Returns the `attach` element; `expand` makes the copy.
        """
        around = self.body(to) if isinstance(to, str) else self.worldbody if to is None else to
        if not isinstance(child, Spec) or not isinstance(around, Element):
            raise TypeError(
                f"attach: a {type(child).__name__} to a {type(around).__name__}, wanted a Spec (of jaxsim.mjcf.read) "
                "to a body or frame of this one, or to the name of a body"
            )
        name = child.root.attrs.get("model") or "model"
        while self.models.get(name, child) is not child:
            name += "_"
        self.models[name] = child
        return around.add("attach", model=name, body=body, prefix=prefix)

    def delete(self, kind: str, name: str) -> None:
        """Remove the element of a kind with a name."""
        self.require(kind, name).delete()


def object_name(element: Element) -> str | None:
    """Return the name by which others reference the element: assets without a name have that of their file."""
    if element.name:
        return element.name
    if element.type.kind in ("mesh", "hfield", "texture", "skin") and element.attrs.get("file"):
        return os.path.splitext(base_name(element.attrs["file"]))[0]
    return None


def compiler_of(spec: Spec, element: Element | None = None) -> dict[str, Any]:
    """Return the compiler settings of an element, with defaults, and the folder `modelfiledir`.

    They are those of the model in which the element was written: attached elements keep theirs.
    """
    if element is not None and element.compiler is not None:
        return element.compiler
    written = spec.root.child("compiler")
    defaults = {name: attribute.default for name, attribute in SCHEMA.children["compiler"].attributes.items()}
    return {**defaults, "modelfiledir": spec.modelfiledir, **(written.attrs if written is not None else {})}
