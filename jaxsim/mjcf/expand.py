"""All macros in one call: a Spec of plain elements from a Spec as people write it."""

from __future__ import annotations

from typing import Any

from jaxsim.errors import UnsupportedError
from jaxsim.mjcf import rules
from jaxsim.mjcf.defaults import class_table
from jaxsim.mjcf.schema import SCHEMA
from jaxsim.mjcf.spec import Element, Spec

_COMPILER = SCHEMA.children["compiler"].attributes
_MACROS = {"replicate", "attach", "composite", "flexcomp"}


def compiler_of(spec: Spec, element: Element | None = None) -> dict[str, Any]:
    """The compiler settings that hold for an element, defaults filled in.

    They are those of the model that the element was written in: attached elements keep theirs.
    """
    if element is not None and element.compiler is not None:
        return element.compiler
    return {name: attribute.default for name, attribute in _COMPILER.items()} | spec.section("compiler").attrs


def expand(spec: Spec) -> Spec:
    """Run every macro; the given spec stays as it is.

    The result has no replicate, attach, composite or flexcomp; what they make stands in frames. It is checked, its
    names are unique, and its table of default classes is fixed: it is to be compiled, not edited.
    """
    out = spec.copy()
    rules.check_elements(out)
    rules.check_classes(out, class_table(out))
    for element in list(out.worldbody.all()):
        if element.tag in _MACROS:
            raise UnsupportedError(f"{element.label()} is not built yet")
    rules.check_names(out)
    out.defaults = class_table(out)
    return out
