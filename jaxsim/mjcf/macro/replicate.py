"""The macro `replicate`: copies of its content, each moved and rotated by one more step, with numbered names.

Sensors, actuators, pairs, tendons, ... that reference a copied name are copied with it, and the original is removed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from jaxsim.core.errors import UnsupportedError
from jaxsim.mjcf.keyframes import PendingKeyframes, extend, forget
from jaxsim.mjcf.pose import euler_to_quat, rotate
from jaxsim.mjcf.references import (
    TREE_KINDS,
    DeclaredNames,
    Namespace,
    ObjectReferences,
    copy_references,
    drop_references,
    listed,
    references_in,
    rename_tree,
)
from jaxsim.mjcf.spec import Element, Spec, compiler_of

Build = Callable[[Element, Element], None]


def replicate(
    element: Element, into: Element, spec: Spec, names: DeclaredNames, pending: PendingKeyframes, build: Build
) -> None:
    """Append the copies that `element` describes to `into`, a body or frame of `spec`.

    `build(source, into)` expands the content of an element; `names` are the names in use.
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
    known: dict[int, ObjectReferences] = {}
    for i in range(count):
        quat = euler_to_quat(i * euler, compiler["angle"] == "degree", compiler["eulerseq"])
        space = Namespace("", f"{element.attrs.get('sep', '')}{i:0{len(str(count))}d}")
        pending.store(spec, space)
        twin = into.append(template.copy())
        forget(template)
        twin.attrs.update(pos=pos, quat=np.array(quat))
        rename_tree(twin, space)
        names.add_all(twin)
        copy_references(spec, spec, space, names, known)
        extend(spec)
        pos = pos + np.array(rotate(quat, offset))
    _remove(template, spec, names, pending)


def _drop_inertials(frame: Element) -> None:
    """Remove inertials, with a warning: MuJoCo reads them but does not apply them to the containing body."""
    for child in list(frame.children):
        if child.tag == "frame":
            _drop_inertials(child)
        elif child.tag == "inertial":
            child.warn("an inertial inside of a replicate does not reach the body around it; write it in the body")
            child.delete()


def _refuse_plugins(template: Element) -> None:
    """Refuse plugins: MuJoCo drops them or crashes, so there is no behaviour to reproduce."""
    for plugin in template.all("plugin"):
        raise UnsupportedError(f"{plugin.error('plugins in a replicate are not supported yet; write the copies out')}")


def _is_there(spec: Spec, element: Element, names: DeclaredNames) -> bool:
    """Return whether all targets of an actuator or a tendon are in the tree built so far."""
    for reference in references_in(element):
        if reference.kind in TREE_KINDS and not names.has(reference.kind, reference.name):
            return False
        tendon = spec.find("tendon", reference.name) if reference.kind == "tendon" else None
        if tendon is not None and not _is_there(spec, tendon, names):
            return False
    return True


def _remove(template: Element, spec: Spec, names: DeclaredNames, pending: PendingKeyframes) -> None:
    """Remove the original and its references; keyframes are stored until the tree is complete.

    As in MuJoCo, keyframes of the copies lose the values of actuators whose targets already exist.
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
