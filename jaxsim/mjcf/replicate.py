"""The macro `replicate`: copies of its content, each moved and turned a step further, names numbered.

What refers to a copied name (sensors, actuators, pairs, tendons, ...) is copied with it, and the original goes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from jaxsim.errors import UnsupportedError
from jaxsim.mjcf.pose import euler_to_quat, rotate
from jaxsim.mjcf.references import Names, Namespace, copy_references, drop_references, rename_tree
from jaxsim.mjcf.spec import Element, Spec

Build = Callable[[Element, Element], None]


def replicate(element: Element, into: Element, spec: Spec, names: Names, compiler: dict, build: Build) -> None:
    """Append the copies that `element` asks for to `into`, a body or frame of `spec`.

    `build(source, into)` expands the content of an element; `names` are those that exist so far.
    """
    if spec.root.child("keyframe") is not None and spec.root.child("keyframe").children:
        raise UnsupportedError("replicate in a model with keyframes is not built yet")
    frame = into.type.children["frame"]
    template = Element(frame, element.source)
    if "childclass" in element.attrs:
        template.attrs["childclass"] = element.attrs["childclass"]
    template.parent = into
    build(element, template)

    count = element.attrs["count"]
    offset = element.attrs.get("offset", np.zeros(3))
    euler = element.attrs.get("euler", np.zeros(3))
    pos = np.zeros(3)
    for i in range(count):
        quat = euler_to_quat(i * euler, compiler["angle"] == "degree", compiler["eulerseq"])
        twin = into.append(template.copy())
        twin.attrs.update(pos=pos, quat=quat)
        space = Namespace("", f"{element.attrs.get('sep', '')}{i:0{len(str(count))}d}")
        rename_tree(twin, space)
        names.add_all(twin)
        copy_references(spec, spec, space, names)
        pos = pos + rotate(quat, offset)
    _forget(template, spec, names)


def _forget(template: Element, spec: Spec, names: Names) -> None:
    before = copy.deepcopy(names)
    names.discard_all(template)
    drop_references(spec, before, names)
