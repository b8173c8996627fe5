"""`fusestatic`: merges bodies without joints into their parents.

Some of MuJoCo's behaviour here looks unintended, and is reproduced for parity:

- each merged bounding volume hierarchy counts one empty node, and inner nodes keep geoms of the earlier hierarchy;
- cameras and lights keep their poses although their body is gone;
- a name of a geom, site, camera or light that is looked up later gives the object that now has the old id.
"""

from __future__ import annotations

from jaxsim.compiler.connectivity import geom_tree, tree_geoms
from jaxsim.compiler.draft import Draft
from jaxsim.compiler.element.bodies import merge_inertias
from jaxsim.compiler.element.elements import compile_camera, compile_light
from jaxsim.compiler.kinematic_tree import collect
from jaxsim.compiler.objects import Body
from jaxsim.core.errors import ModelError
from jaxsim.core.types import MINVAL
from jaxsim.mjcf.pose import IDENTITY, compose, rotate

_MOVED = ("joint", "geom", "site", "camera", "light")
# attributes that name a body, by kind of object
_REFERENCES = ("body", "body1", "body2", "target", "subtree1", "subtree2")


def fuse_static(draft: Draft) -> None:
    """Merge every static body without references into its parent, if `fusestatic` is set."""
    if not draft.settings.fusestatic:
        return
    kept = _referenced(draft)
    i = 1
    while i < len(draft.lists.body):
        body = draft.lists.body[i]
        if body.joints or body.mocap or (body.name and (body.name in kept or _has_force_sensor(draft, body))):
            i += 1
            continue
        _dissolve(draft, body)
    old_ids = {kind: {name: obj.id for name, obj in draft.ids[kind].items()} for kind in _MOVED}
    collect(draft)
    draft.index()
    for kind, names in old_ids.items():
        draft.ids[kind] = {name: draft.lists[kind][i] for name, i in names.items()}
    for light in draft.lists.light:
        compile_light(draft, light)
    for camera in draft.lists.camera:
        compile_camera(draft, camera)


def _referenced(draft: Draft) -> set[str]:
    """Return the names of bodies that an element outside the tree, a camera or a light references."""
    names: set[str] = set()
    for kind in ("camera", "light", "exclude", "equality", "sensor", "tuple"):
        for obj in draft.lists[kind]:
            for el in (obj.el, *obj.el.children):
                names.update(el.attrs[a] for a in _REFERENCES if a in el.attrs)
                for what in ("obj", "ref"):
                    if el.attrs.get(f"{what}type") in ("body", "xbody"):
                        names.add(el.attrs.get(f"{what}name"))
    for skin in draft.lists.skin:
        names.update(bone.attrs["body"] for bone in skin.el.children)
    for actuator in draft.lists.actuator:
        if actuator.attrs["trntype"] == "body":
            names.add(actuator.attrs["target"])
    return names


def _has_force_sensor(draft: Draft, body: Body) -> bool:
    """Return whether a force or torque sensor is attached to the body: merging would change its values."""
    sites = {site.name for site in body.objects.site if site.name}
    return any(s.el.tag in ("force", "torque") and s.attrs["site"] in sites for s in draft.lists.sensor)


def _dissolve(draft: Draft, body: Body) -> None:
    parent = body.parent
    assert parent is not None
    draft.spare_bvh += _collides(parent) and _collides(body)
    if not parent.nodes:
        parent.nodes = tree_geoms(parent, geom_tree(parent))
    if parent.parent is not None and body.mass >= MINVAL:
        _add_mass(parent, body)
    for child in body.bodies:
        child.pos, child.quat = compose(body.pos, body.quat, child.pos, child.quat)
        child.parent = parent
    at = parent.bodies.index(body)
    parent.bodies[at : at + 1] = body.bodies
    for kind in _MOVED:
        for obj in body.objects[kind]:
            obj.body = parent
            if kind == "light":
                obj.pos = compose(body.pos, body.quat, obj.pos, IDENTITY)[0]
                obj.dir = rotate(body.quat, obj.dir)
            else:
                obj.pos, obj.quat = compose(body.pos, body.quat, obj.pos, obj.quat)
        parent.objects[kind] += body.objects[kind]
    merged = tree_geoms(parent, geom_tree(parent))
    before = parent.nodes + [None] * len(merged)
    parent.nodes = [new or old for new, old in zip(merged, before, strict=False)]
    draft.lists.body.remove(body)


def _collides(body: Body) -> bool:
    return any(geom.attrs["contype"] or geom.attrs["conaffinity"] for geom in body.geoms)


def _add_mass(parent: Body, body: Body) -> None:
    # MuJoCo composes the two poses in this order; the other order would give the child's inertial frame
    pos, quat = compose(body.ipos, body.iquat, body.pos, body.quat)
    parts = [(parent.mass, parent.ipos, parent.iquat, parent.inertia), (body.mass, pos, quat, body.inertia)]
    try:
        parent.mass, parent.ipos, parent.iquat, parent.inertia = merge_inertias(parts, sum_part_first=True)
    except ModelError as reason:
        raise body.error(f"fusing with its parent: {reason.what}") from None
