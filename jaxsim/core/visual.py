"""`Visual`: settings of images, `m.vis`, by group. They are static and have no effect on the physics."""

from collections.abc import Mapping
from typing import Any

from jaxsim.core.struct import Field, Struct, fields_of, integer, part, real


class VisualGlobal(Struct):
    """Camera at the start, image and lines, `m.vis.global_`."""

    cameraid: int = integer("", "camera at the start; -1: free")
    orthographic: int = integer("", "whether the free camera is orthographic")
    fovy: float = real("", "vertical field of view of the free camera; orthographic: visible height", "deg or m")
    ipd: float = real("", "distance between the eyes of the free camera", "m")
    azimuth: float = real("", "azimuth of the free camera at the start", "deg")
    elevation: float = real("", "elevation of the free camera at the start", "deg")
    linewidth: float = real("", "width of lines", "pixel")
    glow: float = real("", "glow of the selected body")
    realtime: float = real("", "ratio of simulated to real time at the start")
    offwidth: int = integer("", "width of the offscreen image", "pixel")
    offheight: int = integer("", "height of the offscreen image", "pixel")
    ellipsoidinertia: int = integer("", "inertias are drawn as 0: boxes, 1: ellipsoids")
    bvactive: int = integer("", "whether active bounding volumes are drawn")


class VisualQuality(Struct):
    """Shadow map, samples, and resolution of round shapes, `m.vis.quality`."""

    shadowsize: int = integer("", "side of the shadow map", "pixel")
    offsamples: int = integer("", "samples of each pixel offscreen")
    numslices: int = integer("", "slices of round shapes")
    numstacks: int = integer("", "stacks of round shapes")
    numquads: int = integer("", "squares along the side of a box")


class VisualHeadlight(Struct):
    """Light at the camera, `m.vis.headlight`."""

    ambient: tuple[float, ...] = real("3", "ambient colour")
    diffuse: tuple[float, ...] = real("3", "diffuse colour")
    specular: tuple[float, ...] = real("3", "specular colour")
    active: int = integer("", "whether the headlight is on")


class VisualMap(Struct):
    """Scales of the mouse, fog, planes and shadows, `m.vis.map`."""

    stiffness: float = real("", "stiffness of perturbation by mouse, translation", "N/m")
    stiffnessrot: float = real("", "stiffness of perturbation by mouse, rotation", "N m/rad")
    force: float = real("", "length drawn for a unit force", "m/N")
    torque: float = real("", "length drawn for a unit torque", "1/N")
    alpha: float = real("", "factor of opacity when geoms are transparent")
    fogstart: float = real("", "distance at which fog begins, in extents")
    fogend: float = real("", "distance at which fog is full, in extents")
    znear: float = real("", "distance of the near plane, in extents")
    zfar: float = real("", "distance of the far plane, in extents")
    haze: float = real("", "part of the horizon that is haze")
    shadowclip: float = real("", "half width of shadows of directional lights, in extents")
    shadowscale: float = real("", "part of a spot light's cone that casts shadows")
    actuatortendon: float = real("", "width of actuated tendons, in tendon widths")


class VisualScale(Struct):
    """Sizes of decorations of an image, in mean sizes of the model, `m.vis.scale`."""

    forcewidth: float = real("", "width of force arrows")
    contactwidth: float = real("", "width of contact discs")
    contactheight: float = real("", "height of contact discs")
    connect: float = real("", "width of capsules that join bodies")
    com: float = real("", "radius of centres of mass")
    camera: float = real("", "size of cameras")
    light: float = real("", "size of lights")
    selectpoint: float = real("", "radius of the selected point")
    jointlength: float = real("", "length of joint arrows")
    jointwidth: float = real("", "width of joint arrows")
    actuatorlength: float = real("", "length of actuators")
    actuatorwidth: float = real("", "width of actuators")
    framelength: float = real("", "length of frame axes")
    framewidth: float = real("", "width of frame axes")
    constraint: float = real("", "width of constraint lines")
    slidercrank: float = real("", "width of slider-cranks")
    frustum: float = real("", "distance of the far plane of camera frustums")


class VisualRgba(Struct):
    """Colours of decorations of an image, `m.vis.rgba`."""

    fog: tuple[float, ...] = real("4", "fog")
    haze: tuple[float, ...] = real("4", "haze")
    force: tuple[float, ...] = real("4", "external forces")
    inertia: tuple[float, ...] = real("4", "inertias")
    joint: tuple[float, ...] = real("4", "joints")
    actuator: tuple[float, ...] = real("4", "actuators at zero")
    actuatornegative: tuple[float, ...] = real("4", "actuators at the lower end of the range")
    actuatorpositive: tuple[float, ...] = real("4", "actuators at the upper end of the range")
    com: tuple[float, ...] = real("4", "centres of mass")
    camera: tuple[float, ...] = real("4", "cameras")
    light: tuple[float, ...] = real("4", "lights")
    selectpoint: tuple[float, ...] = real("4", "selected point")
    connect: tuple[float, ...] = real("4", "capsules that join bodies")
    contactpoint: tuple[float, ...] = real("4", "contact points")
    contactforce: tuple[float, ...] = real("4", "contact forces")
    contactfriction: tuple[float, ...] = real("4", "friction forces")
    contacttorque: tuple[float, ...] = real("4", "contact torques")
    contactgap: tuple[float, ...] = real("4", "contacts within the gap")
    rangefinder: tuple[float, ...] = real("4", "rays of rangefinders")
    constraint: tuple[float, ...] = real("4", "constraints")
    slidercrank: tuple[float, ...] = real("4", "slider-cranks")
    crankbroken: tuple[float, ...] = real("4", "slider-cranks that cannot reach")
    frustum: tuple[float, ...] = real("4", "camera frustums")
    bv: tuple[float, ...] = real("4", "bounding volumes")
    bvactive: tuple[float, ...] = real("4", "active bounding volumes")


class Visual(Struct):
    """Settings of images, `m.vis`: mjVisual's groups.

    "global" is reached as `global_`, as in MuJoCo's bindings.
    """

    global_: VisualGlobal = part("camera at the start, image, lines")
    quality: VisualQuality = part("quality of pictures")
    headlight: VisualHeadlight = part("light at the camera")
    map: VisualMap = part("scales of the mouse, fog, planes, shadows")
    scale: VisualScale = part("sizes of decorations")
    rgba: VisualRgba = part("colours of decorations")

    def __repr__(self) -> str:
        return "\n".join(f"{group}: {getattr(self, group)!r}" for group in VISUAL_GROUPS)


VISUAL_GROUPS: dict[str, type[Struct]] = {
    "global_": VisualGlobal,
    "quality": VisualQuality,
    "headlight": VisualHeadlight,
    "map": VisualMap,
    "scale": VisualScale,
    "rgba": VisualRgba,
}


def visual_fields() -> list[tuple[str, Field]]:
    """Return all settings: the attribute of the group, and the field."""
    return [(group, field) for group, kind in VISUAL_GROUPS.items() for field in fields_of(kind)]


def make_visual(values: Mapping[tuple[str, str], Any]) -> Visual:
    """Return `m.vis` from {(group, field): value}, groups by their attributes."""
    groups: dict[str, Any] = {
        group: kind(**{f.name: values[group, f.name] for f in fields_of(kind)}) for group, kind in VISUAL_GROUPS.items()
    }
    return Visual(**groups)
