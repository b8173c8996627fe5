"""All macros in one call: a Spec of plain elements from a Spec as people write it.

The tree of bodies is rebuilt in document order, and each macro runs where it stands, so that it sees what has been
built so far: that order decides which references a macro finds.
"""

from __future__ import annotations

from typing import Any

from jaxsim.errors import UnsupportedError
from jaxsim.mjcf import rules
from jaxsim.mjcf.defaults import class_table
from jaxsim.mjcf.references import Names, check_references
from jaxsim.mjcf.replicate import replicate
from jaxsim.mjcf.schema import SCHEMA
from jaxsim.mjcf.spec import Element, Spec, shallow_copy

_COMPILER = SCHEMA.children["compiler"].attributes


def compiler_of(spec: Spec, element: Element | None = None) -> dict[str, Any]:
    """The compiler settings that hold for an element, defaults filled in.

    They are those of the model that the element was written in: attached elements keep theirs.
    """
    if element is not None and element.compiler is not None:
        return element.compiler
    written = spec.root.child("compiler")
    defaults = {name: attribute.default for name, attribute in _COMPILER.items()}
    return defaults | (written.attrs if written is not None else {})


def expand(spec: Spec) -> Spec:
    """Run every macro; the given spec stays as it is.

    The result has no replicate, attach, composite or flexcomp; what they make stands in frames. It is checked, its
    names are unique, and its table of default classes is fixed: it is to be compiled, not edited.
    """
    out = spec.copy()
    rules.check_elements(out)
    rules.check_classes(out, class_table(out))
    world = out.root.child("worldbody")
    if world is not None and any(e.tag in _MACROS for e in world.all()):
        _Expansion(out).run(world)
    rules.check_names(out)
    check_references(out)
    out.defaults = class_table(out)
    return out


class _Expansion:
    """One run over the tree of a spec, which it changes in place."""

    def __init__(self, spec: Spec):
        self.spec, self.names = spec, Names()
        for section in spec.root.children:
            if section.tag not in ("default", "worldbody"):
                self.names.add_all(section)

    def run(self, world: Element) -> None:
        source = world.copy()
        world.children = []
        self.build(source, world)

    def build(self, source: Element, into: Element) -> None:
        """Append the expanded children of `source` to `into`."""
        for child in source.children:
            if child.tag in _MACROS:
                _MACROS[child.tag](self, child, into)
                continue
            twin = into.append(shallow_copy(child))
            rules.check_name_free(twin, self.names)
            self.names.add(twin)
            self.build(child, twin)

    def replicate(self, element: Element, into: Element) -> None:
        replicate(element, into, self.spec, self.names, compiler_of(self.spec, element), self.build)

    def unsupported(self, element: Element, into: Element) -> None:
        raise UnsupportedError(f"{element.label()} is not built yet")


_MACROS = {
    "replicate": _Expansion.replicate,
    "attach": _Expansion.unsupported,
    "composite": _Expansion.unsupported,
    "flexcomp": _Expansion.unsupported,
}
