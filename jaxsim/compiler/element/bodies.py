"""Bodies: frames, inertial frames and inertias (given, or inferred from geoms), alignment of free bodies."""

from __future__ import annotations

from jaxsim.compiler.draft import Draft, Settings
from jaxsim.compiler.element.elements import compile_camera, compile_joint, compile_light, compile_site
from jaxsim.compiler.element.geoms import compile_geom
from jaxsim.compiler.kinematic_tree import own_orientation
from jaxsim.compiler.linalg import full_inertia
from jaxsim.compiler.objects import Body, Frame
from jaxsim.core.errors import ModelError
from jaxsim.core.types import MINVAL, JointType
from jaxsim.mjcf import Resolved, resolve
from jaxsim.mjcf.pose import EPS, IDENTITY, compose, invert, quat2mat, rotate, unit
from jaxsim.mjcf.resolved import ORIENTATIONS


def compile_bodies(draft: Draft) -> None:
    """Compile every body, parents first, with its joints, geoms, sites, cameras and lights."""
    for body in draft.lists.body:
        compile_body(draft, body)


def compile_body(draft: Draft, body: Body) -> None:
    """Compile one body: its pose, inertia, joints, geoms, sites, cameras and lights."""
    settings = draft.settings_of(body.el)
    _read_pose(body, settings)
    _read_inertial(draft, body, settings)
    for geom in body.geoms:
        group = geom.attrs["group"]
        low, high = settings.inertiagrouprange
        explicit = body.inertial is not None and settings.inertiafromgeom != "true"
        compile_geom(draft, geom, infer=body.id > 0 and not explicit and low <= group <= high)
    _infer_inertia(body, settings)
    _check_inertia(body, settings)
    if body.frame is not None:
        body.pos, body.quat = compose(*body.frame, body.pos, body.quat)
    back = _align_geoms(body) if _aligned(body, settings) else None
    for joint in body.joints:
        compile_joint(draft, joint)
    _check_joints(body)
    for site in body.objects.site:
        compile_site(draft, site)
    for camera in body.objects.camera:
        compile_camera(draft, camera)
    for light in body.objects.light:
        compile_light(draft, light)
    if back is not None:
        _align_rest(body, back)


def _read_pose(body: Body, settings: Settings) -> None:
    if body.parent is None:
        body.pos, body.quat, body.mocap = [0.0, 0.0, 0.0], list(IDENTITY), False
        return
    body.pos, body.quat = body.floats("pos"), own_orientation(body.el, body.attrs, settings)
    if all(body.attrs[kind] is None for kind in ORIENTATIONS):
        body.quat = unit(body.quat)
    body.mocap = body.attrs["mocap"]


def _read_inertial(draft: Draft, body: Body, settings: Settings) -> None:
    body.mass, body.inertia, body.ipos, body.iquat = 0.0, [0.0] * 3, [], list(IDENTITY)
    el = body.inertial
    if el is None:
        return
    if body.parent is None:
        raise el.error("the world body cannot have inertia")
    a = _merged_inertial(draft, body)
    turned = any(a[kind] is not None for kind in ORIENTATIONS)
    body.mass, body.ipos = float(a["mass"]), [float(x) for x in a["pos"]]
    body.inertia = [float(x) for x in a["diaginertia"]]
    body.iquat = unit([float(x) for x in a["quat"]])
    if a["fullinertia"] is not None:
        if turned:
            raise el.error("'fullinertia' and an orientation of the inertial frame exclude each other")
        if any(body.inertia):
            raise el.error("'fullinertia' and 'diaginertia' exclude each other")
        try:
            inertia, quat = full_inertia(a["fullinertia"])
        except ModelError as reason:
            raise el.error(f"fullinertia: {reason.what}") from None
        body.inertia, body.iquat = inertia.tolist(), quat.tolist()
    elif turned:
        body.iquat = own_orientation(el, a, settings)


def _merged_inertial(draft: Draft, body: Body) -> Resolved:
    """Return the attributes of a body's `inertial` elements, merged: later ones overwrite the written attributes."""
    a = resolve(draft.spec, body.inertials[0])
    for el in body.inertials[1:]:
        if any(name in el.attrs for name in ORIENTATIONS):
            a.update(dict.fromkeys(ORIENTATIONS))
        a.update(el.attrs)
    return a


def global_inertia(inertia: list[float], quat: list[float]) -> list[float]:
    """Compute the inertia (xx, yy, zz, xy, xz, yz) of a diagonal inertia rotated by a quaternion."""
    r = quat2mat(quat)
    rows = [r[0:3], r[3:6], r[6:9]]
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    return [sum(rows[i][k] * (rows[j][k] * inertia[k]) for k in range(3)) for i, j in pairs]


def point_inertia(mass: float, at: list[float]) -> list[float]:
    """Compute the inertia (xx, yy, zz, xy, xz, yz) of a point mass at a position."""
    x, y, z = at
    full = (y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z)
    return [mass * value for value in full]


def merge_inertias(parts: list[tuple[float, list[float], list[float], list[float]]], sum_part_first: bool = False):
    """Compute the mass, centre, frame and diagonal inertia of rigid parts (mass, centre, frame, diagonal inertia).

    `sum_part_first` adds both terms of a part before adding them to the total. If principal moments are equal, the
    frame depends on this order of summation.
    """
    mass = 0.0
    com = [0.0] * 3
    for m, pos, _, _ in parts:
        mass += m
        com = [c + m * p for c, p in zip(com, pos, strict=True)]
    if mass < EPS:
        raise ModelError("the mass of the body is too small to compute its centre")
    com = [c / mass for c in com]
    total = [0.0] * 6
    for m, pos, quat, inertia in parts:
        turned = global_inertia(inertia, quat)
        moved = point_inertia(m, [p - c for p, c in zip(pos, com, strict=True)])
        total = [t + (a + b) if sum_part_first else t + a + b for t, a, b in zip(total, turned, moved, strict=True)]
    inertia, quat = full_inertia(total)
    return mass, com, quat.tolist(), inertia.tolist()


def _infer_inertia(body: Body, settings: Settings) -> None:
    mode = settings.inertiafromgeom
    if body.id == 0 or not (mode == "true" or (not body.ipos and mode == "auto")):
        return
    low, high = settings.inertiagrouprange
    chosen = [g for g in body.geoms if low <= g.attrs["group"] <= high and g.mass > EPS]
    if len(chosen) == 1:
        g = chosen[0]
        body.mass, body.ipos, body.iquat, body.inertia = g.mass, list(g.pos), list(g.quat), list(g.inertia)
    elif chosen:
        try:
            merged = merge_inertias([(g.mass, g.pos, g.quat, g.inertia) for g in chosen])
        except ModelError as reason:
            raise body.error(reason.what) from None
        body.mass, body.ipos, body.iquat, body.inertia = merged


def _check_inertia(body: Body, settings: Settings) -> None:
    if not body.ipos:  # no inertia is given or inferred: the inertial frame repeats the body's own pose
        body.ipos, body.iquat = list(body.pos), list(body.quat)
    if body.id == 0:
        return
    body.mass = max(body.mass, settings.boundmass)
    body.inertia = [max(x, settings.boundinertia) for x in body.inertia]
    if body.mass < 0 or min(body.inertia) < 0:
        raise body.error("mass and inertia cannot be negative")
    a, b, c = body.inertia
    if a + b < c or a + c < b or b + c < a:
        if not settings.balanceinertia:
            raise body.error(
                f"inertia ({a:g}, {b:g}, {c:g}) violates A + B >= C, which holds for every rigid body; compiler "
                "balanceinertia='true' replaces it by its mean"
            )
        body.inertia = [(a + b + c) / 3.0] * 3
    body.inertial_frame = body.ipos, body.iquat


def _aligned(body: Body, settings: Settings) -> bool:
    if len(body.joints) != 1 or body.bodies or body.joints[0].attrs.get("type", "free") != "free":
        return False
    align = body.joints[0].attrs.get("align", "auto")
    return align == "true" or (align == "auto" and settings.alignfree)


def _align_geoms(body: Body) -> Frame:
    body.pos, body.quat = compose(body.pos, body.quat, body.ipos, body.iquat)
    back = invert(body.ipos, body.iquat)
    body.ipos, body.iquat = [0.0] * 3, list(IDENTITY)
    for geom in body.geoms:
        geom.pos, geom.quat = compose(*back, geom.pos, geom.quat)
    return back


def _align_rest(body: Body, back: Frame) -> None:
    for obj in body.objects.site + body.objects.camera:
        obj.pos, obj.quat = compose(*back, obj.pos, obj.quat)
    for light in body.objects.light:
        light.pos = compose(*back, light.pos, IDENTITY)[0]
        light.dir = rotate(back[1], light.dir)


def _check_joints(body: Body) -> None:
    types = [joint.type for joint in body.joints]
    body.dofnum = sum(joint.nv for joint in body.joints)
    if types and body.parent is None:
        raise body.joints[0].error("the world body cannot have joints")
    if body.dofnum > 6:
        raise body.error(f"{body.dofnum} degrees of freedom in one body; there can be at most 6")
    if JointType.BALL in types:
        after = types[types.index(JointType.BALL) + 1 :]
        if JointType.BALL in after or JointType.HINGE in after:
            raise body.error("a ball joint cannot be followed by another rotation")
    if JointType.FREE in types and len(types) > 1:
        raise body.error("a free joint can only be alone in its body")
    if body.mocap and (types or body.parent is None or body.parent.parent is not None):
        raise body.error("a mocap body must be a child of the world without joints")


def check_free_bodies(draft: Draft) -> None:
    """Check that bodies with a free joint are children of the world, once static bodies are fused."""
    for body in draft.lists.body:
        if body.parent is None or body.parent.parent is None:
            continue
        if any(joint.type == JointType.FREE for joint in body.joints):
            raise body.error(
                "a free joint is only allowed in children of the world; a static body around it merges into it "
                "by <compiler fusestatic='true'/>"
            )


def check_moving_inertia(draft: Draft) -> None:
    """Check that every moving body has mass and inertia, its own or those of a child fixed to it."""
    for body in draft.lists.body[1:]:
        if body.joints and not _has_inertia(body):
            raise body.error(
                "mass and inertia of a moving body must be positive: give it a geom with mass, or an <inertial>"
            )


def _has_inertia(body: Body) -> bool:
    stack = [body]
    while stack:
        part = stack.pop()
        if part.mass >= MINVAL and min(part.inertia) >= MINVAL:
            return True
        stack += [child for child in part.bodies if not child.joints]
    return False


def contact_bits(body: Body) -> tuple[int, int, float]:
    """Return contype and conaffinity of a body, combined over its geoms, and the largest margin of these."""
    contype = conaffinity = 0
    margin = 0.0
    for geom in body.geoms:
        contype |= geom.attrs["contype"]
        conaffinity |= geom.attrs["conaffinity"]
        margin = max(margin, geom.attrs["margin"])
    return contype, conaffinity, margin
