"""The macro `replicate`: copies of its content, each moved and turned a step further, names numbered.

What refers to a copied name (sensors, actuators, pairs, tendons, ...) is copied with it, and the original goes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from jaxsim.core.errors import UnsupportedError
from jaxsim.mjcf.keyframes import Pending, extend, forget
from jaxsim.mjcf.pose import euler_to_quat, rotate
from jaxsim.mjcf.references import (
    TREE_KINDS,
    Names,
    Namespace,
    Uses,
    copy_references,
    drop_references,
    listed,
    rename_tree,
    slots,
)
from jaxsim.mjcf.spec import Element, Spec, compiler_of

Build = Callable[[Element, Element], None]


def replicate(element: Element, into: Element, spec: Spec, names: Names, pending: Pending, build: Build) -> None:
    """Append the copies that `element` asks for to `into`, a body or frame of `spec`.

    `build(source, into)` expands the content of an element; `names` are those that exist so far.
    """
    template = into.append(Element(into.type.children["frame"], element.source))
    template.compiler = element.compiler
    if "childclass" in element.attrs:
        template.attrs["childclass"] = element.attrs["childclass"]
    build(element, template)
    _drop_inertials(template)
    _refuse_plugins(template)

    compiler = compiler_of(spec, element)
    count, pos = element.attrs["count"], np.zeros(3)
    offset, euler = element.attrs.get("offset", np.zeros(3)), element.attrs.get("euler", np.zeros(3))
    known: dict[int, Uses] = {}
    for i in range(count):
        quat = euler_to_quat(i * euler, compiler["angle"] == "degree", compiler["eulerseq"])
        space = Namespace("", f"{element.attrs.get('sep', '')}{i:0{len(str(count))}d}")
        pending.store(spec, space)
        twin = into.append(template.copy())
        forget(template)
        twin.attrs.update(pos=pos, quat=quat)
        rename_tree(twin, space)
        names.add_all(twin)
        copy_references(spec, spec, space, names, known)
        extend(spec)
        pos = pos + rotate(quat, offset)
    _remove(template, spec, names, pending)


def _drop_inertials(frame: Element) -> None:
    """The reference reads what says the inertia of the body around, but does not hand it on to that body."""
    for child in list(frame.children):
        if child.tag == "frame":
            _drop_inertials(child)
        elif child.tag == "inertial":
            child.warn("an inertial inside of a replicate does not reach the body around it; write it in the body")
            child.delete()


def _refuse_plugins(template: Element) -> None:
    """The reference loses, or dies of, plugins of what is replicated: there is nothing to be equal to."""
    for plugin in template.all("plugin"):
        raise UnsupportedError(f"{plugin.error('plugins in a replicate are not supported yet; write the copies out')}")


def _is_there(spec: Spec, element: Element, names: Names) -> bool:
    """Whether all that an actuator or a tendon acts on stands in the tree so far."""
    for slot in slots(element):
        if slot.kind in TREE_KINDS and not names.has(slot.kind, slot.name):
            return False
        tendon = spec.find("tendon", slot.name) if slot.kind == "tendon" else None
        if tendon is not None and not _is_there(spec, tendon, names):
            return False
    return True


def _remove(template: Element, spec: Spec, names: Names, pending: Pending) -> None:
    """Take the original out, with what refers to it; keyframes wait until the tree is complete.

    As in the reference, the keyframes of the copies lose what they said about actuators of what is there already.
    """
    for element in listed(spec, "actuator", "actuator"):
        if _is_there(spec, element, names):
            forget(element)
    pending.store(spec, lambda name: name)
    for key in listed(spec, "keyframe", "key"):
        key.delete()
    template.delete()
    before = copy.deepcopy(names)
    names.discard_all(template)
    drop_references(spec, before, names)
