"""The kinematic tree: bodies depth first; joints, geoms, sites, cameras and lights in the order of their bodies."""

from __future__ import annotations

from jaxsim.compiler.draft import Draft, unsupported
from jaxsim.compiler.objects import ATTACHED, Body, DraftObject, Frame
from jaxsim.core.errors import ModelError
from jaxsim.mjcf import Element, resolve
from jaxsim.mjcf.pose import IDENTITY, compose, normalize, orientation, unit, z_to_quat

_KIND = {"joint": "joint", "freejoint": "joint", "geom": "geom", "site": "site", "camera": "camera", "light": "light"}


def build_tree(draft: Draft) -> None:
    """Fill the lists of bodies and of their objects, with ids as in mjModel."""
    sections = [el for el in draft.spec.root.children if el.tag == "worldbody"]
    el = sections[0] if sections else draft.spec.root
    world = Body(el, {"user": None, "gravcomp": 0.0, "sleep": "auto", "mocap": False}, "world", None)
    pending = [_populate(draft, world, section, None) for section in sections]
    draft.lists.body.append(world)
    stack = [child for children in reversed(pending) for child in reversed(children)]
    while stack:
        body, element = stack.pop()
        assert body.parent is not None
        body.parent.bodies.append(body)
        draft.lists.body.append(body)
        stack.extend(reversed(_populate(draft, body, element, None)))
    collect(draft)


def collect(draft: Draft) -> None:
    """List the objects of all bodies in body order and number all objects of the tree."""
    bodies = draft.lists.body
    for i, body in enumerate(bodies):
        body.id = i
        body.weldid = i if body.joints or body.parent is None else body.parent.weldid
    for kind in ("joint", "geom", "site", "camera", "light"):
        draft.lists[kind] = [obj for body in bodies for obj in body.objects[kind]]
        for i, obj in enumerate(draft.lists[kind]):
            obj.id = i


def _populate(draft: Draft, body: Body, element: Element, frame: Frame | None) -> list[tuple[Body, Element]]:
    """Read the children of a body's element, frames flattened; return its child bodies in document order."""
    children: list[tuple[Body, Element]] = []
    stack = [(el, frame) for el in reversed(element.children)]
    while stack:
        el, frame = stack.pop()
        tag = el.tag
        if tag == "frame":
            inner = _frame(draft, el, frame)
            stack.extend((child, inner) for child in reversed(el.children))
        elif tag == "body":
            child = Body(el, resolve(draft.spec, el), el.name or "", body)
            child.frame = frame
            children.append((child, el))
        elif tag == "inertial":
            body.inertials.append(el)
        elif tag in _KIND:
            obj = ATTACHED[_KIND[tag]](_KIND[tag], el, resolve(draft.spec, el), el.name or "")
            obj.frame, obj.body = frame, body
            body.objects[obj.kind].append(obj)
        elif tag == "plugin":
            body.plugin_el = el
        elif tag == "instance":  # a plugin instance created by a macro
            continue
        else:
            raise unsupported(el, tag)
    return children


def _frame(draft: Draft, el: Element, outer: Frame | None) -> Frame:
    """Return the pose of a frame in its body."""
    attrs, settings = resolve(draft.spec, el), draft.settings_of(el)
    pos = [float(x) for x in attrs["pos"]]
    quat = own_orientation(el, attrs, settings)
    if outer is not None:
        pos, quat = compose(*outer, pos, quat)
    return pos, unit(quat)


def own_orientation(el: Element, attrs, settings) -> list[float]:
    """Return the quaternion of an element's orientation attributes under its compiler settings."""
    try:
        return orientation(attrs, settings.degree, settings.eulerseq)
    except ModelError as reason:
        raise el.error(reason.what) from None


def in_frame(obj: DraftObject, pos: list[float], quat: list[float]) -> Frame:
    """Return the pose in the object's body, given its pose in the object's `frame` element."""
    return compose(*obj.frame, pos, quat) if obj.frame is not None else (pos, quat)


def point_in_frame(obj: DraftObject, pos: list[float]) -> list[float]:
    """Return the point in the object's body, given in the object's `frame` element."""
    return compose(*obj.frame, pos, IDENTITY)[0] if obj.frame is not None else pos


def fromto_pose(obj: DraftObject) -> tuple[list[float], list[float], float]:
    """Return the position, orientation and half length of a geom or site with `fromto`."""
    line = obj.floats("fromto")
    if any(obj.floats("pos")):
        raise obj.error("'pos' and 'fromto' cannot both be given")
    z, length = normalize([line[i] - line[i + 3] for i in range(3)])
    if length / 2 < 1e-14:
        raise obj.error("the points of 'fromto' are too close")
    return [(line[i] + line[i + 3]) / 2 for i in range(3)], z_to_quat(z), length / 2
