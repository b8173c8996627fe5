"""The macro `attach`: a body of another model, or all of its world, under a prefix, with everything that uses it.

Assets, default classes, numbers and texts of the other model come along under the prefix. Elements keep the compiler
settings of the model that they come from (`Element.compiler`).
"""

from __future__ import annotations

from jaxsim.errors import UnsupportedError
from jaxsim.mjcf.defaults import DefaultClass, Resolved, class_name
from jaxsim.mjcf.keyframes import Pending, extend
from jaxsim.mjcf.references import Names, Namespace, copy_references, listed, rename_tree
from jaxsim.mjcf.rules import check_name_free
from jaxsim.mjcf.spec import Element, Spec, compiler_of, object_name
from jaxsim.mjcf.values import did_you_mean

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


def attach(element: Element, into: Element, spec: Spec, child: Spec, names: Names, pending: Pending) -> None:
    """Append to `into`, a body or frame of `spec`, what `element` attaches from `child`, an expanded spec.

    `names` are those that exist so far. The default classes of `spec` (its table) get those of the child.
    """
    prefix, wanted = element.attrs["prefix"], element.attrs.get("body")
    space = Namespace(prefix, "", foreign=True)
    if names.has("body", space(wanted or "")):
        raise UnsupportedError(
            f"{element.label()}: the body '{space(wanted or '')}' exists already; moving it is not built"
        )
    if wanted and child.find("body", wanted) is None:
        known = [body.name or "" for body in child.elements("body")]
        raise element.error(f"the model has no body '{wanted}'{did_you_mean(wanted, known)}")
    table, settings = child.defaults, compiler_of(child)
    child = child.copy()
    child.defaults = table
    spec.assets = {**child.assets, **spec.assets}
    pending.store(child, space)
    for top in child.root.children:
        _own(top, settings)
    _explicit_classes(child)

    around = child.require("body", wanted) if wanted else child.worldbody
    subtree = around.copy() if wanted else _world(child)
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


def _own(top: Element, compiler: dict) -> None:
    for element in top.all():
        if element.compiler is None:
            element.compiler = compiler


def _world(child: Spec) -> Element:
    frame = Element(child.worldbody.type.children["frame"], child.worldbody.source)
    frame.compiler = child.worldbody.compiler
    for element in child.worldbody.children:
        frame.append(element.copy())
    return frame


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
    """Write the class of everything outside the tree: the root class of the child is not that of the parent."""
    for section in child.root.children:
        if section.tag not in ("default", "worldbody"):
            for element in section.all():
                if "class" in element.type.attributes and "class" not in element.attrs:
                    element.attrs["class"] = "main"


def _copy_assets(child: Spec, spec: Spec, space: Namespace, names: Names) -> None:
    for section, kind in _COPIED:
        for element in listed(child, section, kind):
            name = object_name(element)
            twin = element.copy()
            if name:
                twin.attrs["name"] = name
            rename_tree(twin, space)
            spec.section(section).append(twin)
            names.add(twin)


def _copy_plugins(child: Spec, spec: Spec, space: Namespace, names: Names) -> None:
    section = child.root.child("extension")
    for plugin in section.children if section is not None else ():
        twin = plugin.copy()
        rename_tree(twin, space)
        spec.section("extension").append(twin)
        names.add_all(twin)
