"""The macro `attach`: a body of another model, or its whole world, under a prefix, with all elements that reference it.

Assets, default classes, numerics and texts of the other model are copied under the prefix. Elements keep the compiler
settings of the model that they come from (`Element.compiler`).
"""

from __future__ import annotations

from jaxsim.mjcf.defaults import DefaultClass, class_name
from jaxsim.mjcf.keyframes import PendingKeyframes, extend
from jaxsim.mjcf.references import DeclaredNames, Namespace, copy_references, listed, rename_tree
from jaxsim.mjcf.resolved import Resolved
from jaxsim.mjcf.schema.rules import check_name_free
from jaxsim.mjcf.schema.values import did_you_mean
from jaxsim.mjcf.spec import Element, Spec, compiler_of, object_name, shallow_copy

_COPIED = (
    ("asset", "mesh"),
    ("asset", "skin"),
    ("deformable", "skin"),
    ("asset", "hfield"),
    ("asset", "texture"),
    ("asset", "material"),
    ("custom", "numeric"),
    ("custom", "text"),
)
_RECORD_NAMES = ("material", "mesh", "hfield", "texture")


def attach(
    element: Element, into: Element, spec: Spec, child: Spec, names: DeclaredNames, pending: PendingKeyframes
) -> None:
    """Append to `into`, a body or frame of `spec`, the part of `child`, an expanded spec, that `element` attaches.

    `names` are the names in use. The child's default classes are added to the table of `spec`.
    """
    prefix, body_name = element.attrs["prefix"], element.attrs.get("body")
    space = Namespace(prefix, "", foreign=True)
    if space(body_name or "") == "world":
        raise element.error("the world of another model becomes a body of this one: give it a prefix")
    if names.has("body", space(body_name or "")):
        _move(element, into, spec.require("body", space(body_name or "")))
        return
    if body_name and body_name != "world" and child.find("body", body_name) is None:
        known = ["world", *(body.name or "" for body in child.elements("body"))]
        raise element.error(f"the model has no body '{body_name}'{did_you_mean(body_name, known)}")
    table, settings = child.defaults, compiler_of(child)
    child = child.copy()
    child.defaults = table
    spec.assets = {**child.assets, **spec.assets}
    pending.store(child, space)
    for top in child.root.children:
        _own(top, settings)
    _explicit_classes(child)

    around = child.body(body_name or "world")
    subtree = around.copy() if around is not child.worldbody else _world(child, "body" if body_name else "frame")
    subtree.attrs.setdefault("childclass", class_name(around))
    rename_tree(subtree, space)
    into.append(subtree)
    for inner in subtree.all():
        check_name_free(inner, names)
    names.add_all(subtree)

    spec.defaults = spec.defaults | {space(name): _renamed_class(record, space) for name, record in table.items()}
    _copy_assets(child, spec, space, names)
    copy_references(child, spec, space, names, {})
    _copy_plugins(child, spec, space, names)
    extend(spec)


def _move(element: Element, into: Element, body: Element) -> None:
    """Move an existing body into the frame of the attachment, without changing the order of bodies."""
    around, frames = into, []
    while around.tag == "frame":
        frames.append(around)
        around = around.parent
        assert around is not None
    top = body
    while top.parent is not None and top.parent.tag == "frame":
        top = top.parent
    if top.parent is not around:
        raise element.error(f"the body '{body.name}' already exists, in another body than this one")
    before, behind = ([], []) if top is body else _split(top, body)
    outer = body
    for frame in frames:
        twin = shallow_copy(frame)
        twin.append(outer)
        outer = twin
    place = around.children.index(top)
    around.children[place : place + 1] = [*before, outer, *behind]
    for child in (*before, outer, *behind):
        child.parent = around


def _split(frame: Element, body: Element) -> tuple[list[Element], list[Element]]:
    """Split the content of a frame before and after a body, each in copies of the frame."""
    at = next(i for i, child in enumerate(frame.children) if any(e is body for e in child.all()))
    child = frame.children[at]
    before, behind = ([], []) if child is body else _split(child, body)
    before, behind = [*frame.children[:at], *before], [*behind, *frame.children[at + 1 :]]
    twins = []
    for children in (before, behind):
        twin = shallow_copy(frame)
        for inner in children:
            twin.append(inner)
        twins.append([twin] if children else [])
    if behind:
        twins[1][0].attrs.pop("name", None)
    return twins[0], twins[1]


def _own(top: Element, compiler: dict) -> None:
    for element in top.all():
        if element.compiler is None:
            element.compiler = compiler


def _world(child: Spec, tag: str) -> Element:
    """Return a model's whole world in a frame, or in a body called 'world'."""
    around = Element(child.worldbody.type.children[tag], child.worldbody.source)
    around.compiler = child.worldbody.compiler
    if tag == "body":
        around.attrs["name"] = "world"
    for element in child.worldbody.children:
        around.append(element.copy())
    return around


def _renamed_class(record: DefaultClass, space: Namespace) -> DefaultClass:
    records = {}
    for kind, values in record.records.items():
        twin: Resolved = values.copy()
        for name in _RECORD_NAMES:
            if twin.get(name):
                twin[name] = space(twin[name])
        if twin.get("layers"):
            twin["layers"] = {role: space(texture) for role, texture in twin["layers"].items()}
        records[kind] = twin
    return DefaultClass(records, record.actuator.copy(), space(record.parent) if record.parent else None)


def _explicit_classes(child: Spec) -> None:
    """Write the class of everything outside the tree, since the child's root class is not the parent's."""
    for section in child.root.children:
        if section.tag not in ("default", "worldbody"):
            for element in section.all():
                if "class" in element.type.attributes and "class" not in element.attrs:
                    element.attrs["class"] = "main"


def _copy_assets(child: Spec, spec: Spec, space: Namespace, names: DeclaredNames) -> None:
    for section, kind in _COPIED:
        for element in listed(child, section, kind):
            name = object_name(element)
            twin = element.copy()
            if name:
                twin.attrs["name"] = name
            rename_tree(twin, space)
            spec.section(section).append(twin)
            names.add(twin)


def _copy_plugins(child: Spec, spec: Spec, space: Namespace, names: DeclaredNames) -> None:
    section = child.root.child("extension")
    for plugin in section.children if section is not None else ():
        twin = plugin.copy()
        rename_tree(twin, space)
        spec.section("extension").append(twin)
        names.add_all(twin)
