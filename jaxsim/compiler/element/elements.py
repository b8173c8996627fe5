"""Joints, sites, cameras and lights of bodies."""

from __future__ import annotations

import math

import numpy as np

from jaxsim.compiler.draft import Draft, Settings
from jaxsim.compiler.element.volumes import SIZES
from jaxsim.compiler.kinematic_tree import fromto_pose, in_frame, own_orientation, point_in_frame
from jaxsim.compiler.objects import Camera, DraftObject, Joint, Light, Site
from jaxsim.core.types import GeomType, JointType
from jaxsim.mjcf.pose import EPS, normalize, rotate, unit
from jaxsim.mjcf.schema.element_type import SCHEMA
from jaxsim.mjcf.schema.values import ENUMS

_FROMTO_TYPES = (GeomType.CAPSULE, GeomType.CYLINDER, GeomType.ELLIPSOID, GeomType.BOX)
_NOT_IN_SITES = (GeomType.MESH, GeomType.HFIELD, GeomType.PLANE)

_JOINT = SCHEMA.children["worldbody"].children["body"].children["joint"].attributes
_FREEJOINT = {name: attribute.default for name, attribute in _JOINT.items()} | {
    "type": "free",
    "limited": "false",
    "actuatorfrclimited": "false",
}


def limited(obj: DraftObject, switch: str, bounds: list[float], autolimits: bool, what: str = "") -> bool:
    """Return whether a limit is active; `auto` means active if a range is given.

    `what` is the prefix of the attributes (`ctrl` for ctrlrange and ctrllimited).
    """
    if switch != "auto":
        return switch == "true"
    if not autolimits and any(bounds):
        raise obj.error(
            f"'{what}range' is given but '{what}limited' is not; give it, or set compiler autolimits='true'"
        )
    if bounds[0] > bounds[1]:
        obj.el.warn(f"'{what}range' falls from {bounds[0]:g} to {bounds[1]:g}, which is no limit; swap the numbers")
    return bounds[0] < bounds[1]


def compile_joint(draft: Draft, joint: Joint) -> None:
    """Set type, axis, position, limits and reference positions of a joint, angles in radians."""
    if joint.el.tag == "freejoint":
        joint.attrs = {**_FREEJOINT, **joint.attrs}
    settings = draft.settings_of(joint.el)
    a = joint.attrs
    kind = joint.type = JointType(ENUMS["joint"][a["type"]])
    joint.nq, joint.nv = kind.qpos_width(), kind.dof_width()
    joint.springdamper = joint.floats("springdamper")
    if any(joint.springdamper) and min(joint.springdamper) <= 0:
        raise joint.error("both numbers of 'springdamper' must be positive")
    _joint_limits(joint, settings)
    if kind in (JointType.FREE, JointType.BALL):
        joint.axis = [0.0, 0.0, 1.0]
    else:
        axis = joint.floats("axis")
        axis = rotate(joint.frame[1], axis) if joint.frame else axis
        joint.axis, length = normalize(axis)
        if length < EPS:
            raise joint.error("'axis' is zero; it must be a direction")
    joint.pos = [0.0] * 3 if kind == JointType.FREE else point_in_frame(joint, joint.floats("pos"))
    scale = math.pi / 180.0 if kind == JointType.HINGE and settings.degree else 1.0
    joint.ref, joint.springref = a["ref"] * scale, a["springref"] * scale


def _joint_limits(joint: Joint, settings: Settings) -> None:
    kind, bounds, force = joint.type, joint.floats("range"), joint.floats("actuatorfrcrange")
    joint.limited = kind != JointType.FREE and limited(joint, joint.attrs["limited"], bounds, settings.autolimits)
    if joint.limited:
        if kind == JointType.BALL and bounds[0]:
            raise joint.error("'range' of a ball joint must start at 0")
        if kind != JointType.BALL and bounds[0] >= bounds[1]:
            raise joint.error(f"'range' must rise; it is ({bounds[0]:g}, {bounds[1]:g})")
        if settings.degree and kind in (JointType.HINGE, JointType.BALL):
            bounds = [x * (math.pi / 180.0) for x in bounds]
    joint.actfrclimited = kind in (JointType.SLIDE, JointType.HINGE) and limited(
        joint, joint.attrs["actuatorfrclimited"], force, settings.autolimits, "actuatorfrc"
    )
    if joint.actfrclimited and force[0] >= force[1]:
        raise joint.error(f"'actuatorfrcrange' must rise; it is ({force[0]:g}, {force[1]:g})")
    joint.range, joint.actfrcrange = bounds, force


def check_size(obj: DraftObject, kind: GeomType, size: list[float]) -> None:
    """Check that the sizes of a geom's type are positive; for a plane only the third, its grid spacing."""
    if kind == GeomType.PLANE:
        if size[2] <= 0:
            raise obj.error("the third size of a plane must be positive")
        return
    for i in range(SIZES.get(kind, 0)):
        if not size[i] > 0:
            name, need = kind.name.lower(), SIZES[kind]
            raise obj.error(f"a {name} needs {need} positive size{'s'[: need > 1]}; number {i + 1} is {size[i]:g}")


def pose_from_fromto(
    obj: DraftObject, kind: GeomType, size: list[float]
) -> tuple[list[float], list[float], list[float]]:
    """Return the position, orientation and size of a geom or site with `fromto`."""
    if kind not in _FROMTO_TYPES:
        raise obj.error("'fromto' needs a capsule, cylinder, ellipsoid or box")
    pos, quat, half = fromto_pose(obj)
    if kind in (GeomType.ELLIPSOID, GeomType.BOX):
        return pos, quat, [size[0], size[0], half]
    return pos, quat, [size[0], half, size[2]]


def compile_site(draft: Draft, site: Site) -> None:
    """Set type, pose and size of a site."""
    site.type = GeomType(ENUMS["geom"][site.attrs["type"]])
    if site.type in _NOT_IN_SITES:
        raise site.error("a site cannot be a mesh, a height field or a plane")
    site.size = site.floats("size")
    if site.attrs["fromto"] is not None:
        pos, quat, site.size = pose_from_fromto(site, site.type, site.size)
    else:
        pos, quat = site.floats("pos"), own_orientation(site.el, site.attrs, draft.settings_of(site.el))
    site.pos, quat = in_frame(site, pos, quat)
    site.quat = unit(quat)
    check_size(site, site.type, site.size)


def compile_camera(draft: Draft, camera: Camera) -> None:
    """Set pose and intrinsics of a camera."""
    a = camera.attrs
    quat = own_orientation(camera.el, a, draft.settings_of(camera.el))
    camera.pos, quat = in_frame(camera, camera.floats("pos"), quat)
    camera.quat = unit(quat)
    camera.target = draft.refer(camera, "body", a["target"], "target").id if a["target"] else -1
    camera.fovy = a["fovy"]
    if camera.fovy >= 180:
        raise camera.error(f"'fovy' must be less than 180; it is {camera.fovy:g}")
    words = a["output"]
    words = words.split() if isinstance(words, str) else words
    camera.output = 0
    for word in words:
        camera.output |= ENUMS["camout"][word]
    camera.mode, camera.projection = ENUMS["track"][a["mode"]], ENUMS["projection"][a["projection"]]
    _intrinsics(draft, camera)


def _intrinsics(draft: Draft, camera: Camera) -> None:
    """Set focal lengths and principal point in units of length; values in pixels take precedence."""
    a = camera.attrs
    single = {name: np.asarray(a[name], np.float32) for name in ("focal", "focalpixel", "principal", "principalpixel")}
    sensor, resolution = np.asarray(a["sensorsize"], np.float32), camera.floats("resolution")
    sensed = bool(np.all(sensor > 0))
    if any(x.any() for x in single.values()) and not sensed:
        raise camera.error("focal and principal need 'sensorsize'")
    if not sensed:
        near = draft.visual["map", "znear"]
        camera.intrinsic = [near, near, 0.0, 0.0]
        return
    if min(resolution) <= 0:
        raise camera.error("'sensorsize' needs a positive 'resolution'")
    density = np.asarray(resolution, np.float32) / sensor

    def pick(pixel: str, length: str) -> list[float]:
        return np.where(single[pixel] != 0, single[pixel] / density, single[length]).tolist()

    camera.intrinsic = pick("focalpixel", "focal") + pick("principalpixel", "principal")
    angle = np.arctan2(sensor[1] / np.float32(2), np.float32(camera.intrinsic[1]))
    camera.fovy = float(angle) * 360.0 / math.pi


def compile_light(draft: Draft, light: Light) -> None:
    """Set pose, type, target body and texture of a light."""
    a = light.attrs
    light.pos, direction = point_in_frame(light, light.floats("pos")), light.floats("dir")
    if light.frame:
        direction = rotate(light.frame[1], direction)
    light.dir, length = normalize(direction)
    if length < EPS:
        raise light.error("'dir' is zero")
    light.mode, light.type = ENUMS["track"][a["mode"]], ENUMS["light"][a["type"]]
    light.target = draft.refer(light, "body", a["target"], "target").id if a["target"] else -1
    light.texture = draft.refer(light, "texture", a["texture"], "texture").id if a["texture"] else -1
