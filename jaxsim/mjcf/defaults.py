"""Default classes, and the effective attributes of elements.

An attribute has MJCF's own default, overwritten by the element's default class (which starts as a copy of its parent
class), overwritten by the element itself. Partly written arrays replace the leading entries.
"""

from __future__ import annotations

from typing import Any

from jaxsim.core.errors import ModelError
from jaxsim.mjcf.actuator import new_actuator, read_actuator
from jaxsim.mjcf.resolved import Resolved
from jaxsim.mjcf.schema.element_type import SCHEMA, ElementType
from jaxsim.mjcf.schema.values import did_you_mean
from jaxsim.mjcf.spec import Element, Spec

_DEFAULT = SCHEMA.children["default"]
_RECORD_KINDS = tuple(tag for tag in _DEFAULT.children if tag not in ("default", *SCHEMA.children["actuator"].children))


def _language_defaults(kind: ElementType) -> dict[str, Any]:
    return {name: attribute.default for name, attribute in kind.attributes.items()}


class DefaultClass:
    """One default class: a record of values for each kind of element that takes defaults, and the actuator's."""

    def __init__(self, records: dict[str, Resolved], actuator: Resolved, parent: str | None = None):
        self.records, self.actuator, self.parent = records, actuator, parent

    @staticmethod
    def fresh() -> DefaultClass:
        """Return a class with MJCF's own defaults."""
        records = {kind: Resolved(_language_defaults(_DEFAULT.children[kind]), {}) for kind in _RECORD_KINDS}
        return DefaultClass(records, Resolved(new_actuator(), {}))

    def copy(self, parent: str) -> DefaultClass:
        """Return a class that starts as a copy of this one."""
        return DefaultClass({k: r.copy() for k, r in self.records.items()}, self.actuator.copy(), parent)

    def read(self, element: Element) -> None:
        """Overwrite values of the class by one child of a `<default>`."""
        if element.tag in self.records:
            self.records[element.tag].overlay(element)
        else:
            self.actuator = read_actuator(self.actuator, element)


def class_table(spec: Spec) -> dict[str, DefaultClass]:
    """Return all default classes of a spec by name; `main` always exists.

    Raises ModelError for classes without a name or with a name in use, or a root class that is not called main.
    """
    table = {"main": DefaultClass.fresh()}
    for section in spec.root.children:
        if section.tag == "default":
            name = section.attrs.get("class")
            if name and name != "main":
                raise section.error(f"the root default class is 'main' and cannot be called '{name}'")
            _read_class(section, "main", table)
    return table


def _read_class(section: Element, name: str, table: dict[str, DefaultClass]) -> None:
    for child in section.children:
        if child.tag != "default":
            table[name].read(child)
    for child in section.children:
        if child.tag == "default":
            inner = child.attrs.get("class")
            if not inner:
                raise child.error("a nested default class needs a name; write class='...'")
            if inner in table:
                raise child.error(f"the default class '{inner}' exists already")
            table[inner] = table[name].copy(name)
            _read_class(child, inner, table)


def class_name(element: Element) -> str:
    """Return the default class of an element: its own, else the nearest childclass around it, else `main`."""
    own = element.attrs.get("class")
    if own is not None and element.tag != "default":
        return own
    for around in element.ancestors():
        if "childclass" in around.attrs:
            return around.attrs["childclass"]
    return "main"


def find_class(spec: Spec, element: Element) -> DefaultClass:
    """Return the default class of an element; raise ModelError if the class does not exist."""
    table = spec.defaults or class_table(spec)
    name = class_name(element)
    if name not in table:
        raise element.error(f"unknown default class '{name}'{did_you_mean(name, table)}")
    return table[name]


def resolve(spec: Spec, element: Element) -> Resolved:
    """Return the effective attributes of an element; not for actuators, which have `resolve_actuator`.

    Keys are all attributes of the element and of its default record; see `Resolved`. At most one of axisangle, xyaxes,
    zaxis and euler is set: the one written last, which takes precedence over quat. A light's `directional` becomes its
    `type`, a single springlength becomes two.
    """
    values = _language_defaults(element.type)
    if element.type.record in (None, "actuator"):
        return Resolved(values, {}).overlay(element)
    record = find_class(spec, element).records[element.type.record]
    counts = {name: record.count(name) for name in record if record.given(name)}
    if element.type.record == "camera":  # user data of a camera is not inherited
        record, counts = {**record, "user": None}, {k: n for k, n in counts.items() if k != "user"}
    return Resolved({**values, **record}, counts).overlay(element)


def resolve_actuator(spec: Spec, element: Element) -> Resolved:
    """Return the general record of an actuator element; see `jaxsim.mjcf.actuator` for its keys."""
    if element.type.record != "actuator":
        raise ModelError(f"{element.label()} is not an actuator", element.source)
    return read_actuator(find_class(spec, element).actuator.copy(), element)
