"""Expansion of all macros: a Spec of plain elements from a Spec with macros.

The tree of bodies is rebuilt in document order, and each macro runs at its position, on the tree built so far: that
order decides which references a macro finds.
"""

from __future__ import annotations

from jaxsim.mjcf.defaults import class_table
from jaxsim.mjcf.keyframes import PendingKeyframes
from jaxsim.mjcf.macro.attach import attach
from jaxsim.mjcf.macro.composite import composite
from jaxsim.mjcf.macro.flexcomp import flexcomp
from jaxsim.mjcf.macro.replicate import replicate
from jaxsim.mjcf.references import DeclaredNames, check_references, listed
from jaxsim.mjcf.schema import rules
from jaxsim.mjcf.schema.values import did_you_mean
from jaxsim.mjcf.spec import Element, Spec, shallow_copy


def expand(spec: Spec) -> Spec:
    """Run every macro; the given spec does not change.

    The result has no replicate, attach, composite or flexcomp; the elements that these create are in frames. It is
    checked, its names are unique, and its table of default classes is fixed: it is to be compiled, not edited.
    """
    out = spec.copy()
    rules.check_elements(out)
    out.defaults = class_table(out)
    rules.check_classes(out, out.defaults)
    world = out.root.child("worldbody")
    if world is not None and any(e.tag in _MACROS for e in world.all()):
        _Expansion(out).run(world)
    for element in listed(out, "asset", "model"):
        element.delete()
    rules.check_names(out)
    check_references(out)
    return out


class _Expansion:
    """One run over the tree of a spec, which it changes in place."""

    def __init__(self, spec: Spec):
        self.spec, self.names, self.pending = spec, DeclaredNames(), PendingKeyframes()
        self.children: dict[str, Spec] = {}
        for section in spec.root.children:
            if section.tag not in ("default", "worldbody"):
                self.names.add_all(section)

    def run(self, world: Element) -> None:
        source = world.copy()
        world.children = []
        self.build(source, world)
        self.pending.finish(self.spec)

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
        replicate(element, into, self.spec, self.names, self.pending, self.build)

    def attach(self, element: Element, into: Element) -> None:
        name = element.attrs["model"]
        if name not in self.spec.models:
            raise element.error(f"there is no model '{name}'{did_you_mean(name, self.spec.models)}")
        if name not in self.children:
            self.children[name] = expand(self.spec.models[name])
        attach(element, into, self.spec, self.children[name], self.names, self.pending)

    def composite(self, element: Element, into: Element) -> None:
        composite(element, into, self.spec, self.names)

    def flexcomp(self, element: Element, into: Element) -> None:
        flexcomp(element, into, self.spec, self.names)


_MACROS = {
    "replicate": _Expansion.replicate,
    "attach": _Expansion.attach,
    "composite": _Expansion.composite,
    "flexcomp": _Expansion.flexcomp,
}
