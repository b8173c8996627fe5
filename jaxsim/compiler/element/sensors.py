"""Sensors: one table gives the type, object, stage, dimension and data type of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from jaxsim.compiler.draft import Draft
from jaxsim.compiler.element.actuators import check_history
from jaxsim.compiler.element.plugins import sensor_dim
from jaxsim.compiler.objects import Sensor
from jaxsim.core.types import ConDataField, DataType, GeomType, JointType, ObjType, RayDataField, SensorType, Stage
from jaxsim.engine.sensor.contact import CONTACT_FIELDS
from jaxsim.engine.sensor.rangefinder import RAY_FIELDS
from jaxsim.mjcf.schema.values import ENUMS

# tag: (type, kind of object, stage, dimension, type of data); for kind "any" the attribute objtype gives the kind
_SENSOR_KINDS = {
    "touch": ("TOUCH", "site", "ACC", 1, "POSITIVE"),
    "accelerometer": ("ACCELEROMETER", "site", "ACC", 3, "REAL"),
    "velocimeter": ("VELOCIMETER", "site", "VEL", 3, "REAL"),
    "gyro": ("GYRO", "site", "VEL", 3, "REAL"),
    "force": ("FORCE", "site", "ACC", 3, "REAL"),
    "torque": ("TORQUE", "site", "ACC", 3, "REAL"),
    "magnetometer": ("MAGNETOMETER", "site", "POS", 3, "REAL"),
    "camprojection": ("CAMPROJECTION", "site", "POS", 2, "REAL"),
    "rangefinder": ("RANGEFINDER", "ray", "POS", 0, "REAL"),
    "jointpos": ("JOINTPOS", "joint", "POS", 1, "REAL"),
    "jointvel": ("JOINTVEL", "joint", "VEL", 1, "REAL"),
    "tendonpos": ("TENDONPOS", "tendon", "POS", 1, "REAL"),
    "tendonvel": ("TENDONVEL", "tendon", "VEL", 1, "REAL"),
    "actuatorpos": ("ACTUATORPOS", "actuator", "POS", 1, "REAL"),
    "actuatorvel": ("ACTUATORVEL", "actuator", "VEL", 1, "REAL"),
    "actuatorfrc": ("ACTUATORFRC", "actuator", "ACC", 1, "REAL"),
    "jointactuatorfrc": ("JOINTACTFRC", "joint", "ACC", 1, "REAL"),
    "tendonactuatorfrc": ("TENDONACTFRC", "tendon", "ACC", 1, "REAL"),
    "ballquat": ("BALLQUAT", "joint", "POS", 4, "QUATERNION"),
    "ballangvel": ("BALLANGVEL", "joint", "VEL", 3, "REAL"),
    "jointlimitpos": ("JOINTLIMITPOS", "joint", "POS", 1, "REAL"),
    "jointlimitvel": ("JOINTLIMITVEL", "joint", "VEL", 1, "REAL"),
    "jointlimitfrc": ("JOINTLIMITFRC", "joint", "ACC", 1, "REAL"),
    "tendonlimitpos": ("TENDONLIMITPOS", "tendon", "POS", 1, "REAL"),
    "tendonlimitvel": ("TENDONLIMITVEL", "tendon", "VEL", 1, "REAL"),
    "tendonlimitfrc": ("TENDONLIMITFRC", "tendon", "ACC", 1, "REAL"),
    "framepos": ("FRAMEPOS", "any", "POS", 3, "REAL"),
    "framequat": ("FRAMEQUAT", "any", "POS", 4, "QUATERNION"),
    "framexaxis": ("FRAMEXAXIS", "any", "POS", 3, "AXIS"),
    "frameyaxis": ("FRAMEYAXIS", "any", "POS", 3, "AXIS"),
    "framezaxis": ("FRAMEZAXIS", "any", "POS", 3, "AXIS"),
    "framelinvel": ("FRAMELINVEL", "any", "VEL", 3, "REAL"),
    "frameangvel": ("FRAMEANGVEL", "any", "VEL", 3, "REAL"),
    "framelinacc": ("FRAMELINACC", "any", "ACC", 3, "REAL"),
    "frameangacc": ("FRAMEANGACC", "any", "ACC", 3, "REAL"),
    "subtreecom": ("SUBTREECOM", "body", "POS", 3, "REAL"),
    "subtreelinvel": ("SUBTREELINVEL", "body", "VEL", 3, "REAL"),
    "subtreeangmom": ("SUBTREEANGMOM", "body", "VEL", 3, "REAL"),
    "insidesite": ("INSIDESITE", "any", "POS", 1, "POSITIVE"),
    "distance": ("GEOMDIST", "pair", "POS", 1, "REAL"),
    "normal": ("GEOMNORMAL", "pair", "POS", 3, "AXIS"),
    "fromto": ("GEOMFROMTO", "pair", "POS", 6, "REAL"),
    "contact": ("CONTACT", "contact", "ACC", 0, "REAL"),
    "e_potential": ("E_POTENTIAL", None, "POS", 1, "REAL"),
    "e_kinetic": ("E_KINETIC", None, "POS", 1, "REAL"),
    "clock": ("CLOCK", None, "POS", 1, "REAL"),
    "tactile": ("TACTILE", "mesh", "ACC", 0, "REAL"),
    "user": ("USER", "any", "ACC", 0, "REAL"),
    "plugin": ("PLUGIN", "any", "ACC", 0, "REAL"),
}
_FRAMES = ("body", "xbody", "geom", "site", "camera")
_CONTACT_FIRST = {"site": "site", "body1": "body", "subtree1": "xbody", "geom1": "geom"}
_CONTACT_SECOND = {"body2": "body", "subtree2": "xbody", "geom2": "geom"}

Target = tuple[str, str, str] | None  # kind, name, attribute that holds the name


def compile_sensors(draft: Draft) -> None:
    """Set objects, reference objects, dimensions and stages of sensors."""
    for sensor in draft.lists.sensor:
        tag = sensor.el.tag
        name, kind, stage, sensor.dim, data = _SENSOR_KINDS[tag]
        sensor.type, sensor.stage, sensor.datatype = SensorType[name], Stage[stage], DataType[data]
        sensor.intprm = [0, 0, 0]
        _check_numbers(sensor)
        first, second = _targets(sensor, tag, kind)
        sensor.obj, sensor.objtype = _find(draft, sensor, first)
        sensor.ref, sensor.reftype = _find(draft, sensor, second)
        rule = _RULES.get(tag)
        if rule:
            rule(sensor)
        if sensor.cutoff > 0 and _directional(sensor):
            raise sensor.error("'cutoff' cannot be used on axes and quaternions")


def _directional(sensor: Sensor) -> bool:
    axis = sensor.datatype == DataType.AXIS and sensor.type != SensorType.GEOMNORMAL
    return axis or sensor.datatype == DataType.QUATERNION


def _check_numbers(sensor: Sensor) -> None:
    a = sensor.attrs
    sensor.noise, sensor.cutoff = a.get("noise", 0.0), a.get("cutoff", 0.0)
    for name in ("noise", "cutoff"):
        if getattr(sensor, name) < 0:
            raise sensor.error(f"'{name}' cannot be negative")
    if "interval" not in a:
        sensor.interval, sensor.delay, sensor.nsample, sensor.interp = [0.0, 0.0], 0.0, 0, 0
        return
    sensor.interval, sensor.delay, sensor.nsample = sensor.floats("interval"), a["delay"], a["nsample"]
    sensor.interp = ENUMS["interp"][a["interp"]]
    period, phase = sensor.interval
    if period < 0:
        raise sensor.error("the period in 'interval' cannot be negative")
    if phase > 0 or (period > 0 and phase <= -period):
        raise sensor.error("the phase in 'interval' must be greater than minus the period and at most zero")
    check_history(sensor)


def _targets(sensor: Sensor, tag: str, kind: str | None) -> tuple[Target, Target]:
    """Return the object and reference object of a sensor, from the attributes of its kind."""
    a = sensor.attrs
    if kind is None:
        return None, None
    if kind == "any":
        return _framed(sensor, tag)
    if kind == "pair":
        return _one_of(sensor, {"geom1": "geom", "body1": "body"}), _one_of(sensor, {"geom2": "geom", "body2": "body"})
    if kind == "ray":
        return _one_of(sensor, {"site": "site", "camera": "camera"}), None
    if kind == "contact":
        return _one_of(sensor, _CONTACT_FIRST), _one_of(sensor, _CONTACT_SECOND)
    if kind == "mesh":
        return ("mesh", a["mesh"], "mesh"), ("geom", a["geom"], "geom")
    second = ("camera", a["camera"], "camera") if tag == "camprojection" else None
    return (kind, a[kind], kind), second


def _framed(sensor: Sensor, tag: str) -> tuple[Target, Target]:
    a = sensor.attrs
    first = (a["objtype"], a["objname"], "objname") if a["objtype"] else None
    if tag == "insidesite":
        return first, ("site", a["site"], "site")
    second = (a["reftype"], a["refname"], "refname") if a.get("reftype") else None
    for target, what in ((first, "objtype"), (second, "reftype")):
        if target and (tag not in ("user", "plugin") or what == "reftype") and target[0] not in _FRAMES:
            raise sensor.error(f"'{what}' must be one of {', '.join(_FRAMES)}")
    return first, second


def _one_of(sensor: Sensor, choices: dict[str, str]) -> Target:
    found = [name for name in choices if sensor.attrs[name] is not None]
    return (choices[found[0]], sensor.attrs[found[0]], found[0]) if found else None


def _find(draft: Draft, sensor: Sensor, target: Target) -> tuple[Any, ObjType]:
    if target is None:
        return None, ObjType.UNKNOWN
    kind, name, attribute = target
    found = draft.refer(sensor, kind, name, attribute)
    if kind in ("geom", "mesh"):
        found.visual = False
    return found, ObjType[kind.upper()]


def _bits(sensor: Sensor, fields: type[IntEnum]) -> int:
    """Return the bit field of the words in `data`."""
    value = sensor.attrs["data"]
    names = value.split() if isinstance(value, str) else value
    return sum(1 << fields[name.upper()] for name in names)


def _size(bits: int, sizes: Mapping[Any, int]) -> int:
    return sum(size for item, size in sizes.items() if bits & (1 << item))


def _joint_of(*types: JointType):
    def rule(sensor: Sensor) -> None:
        if sensor.obj.type not in types:
            raise sensor.error(f"the joint must be a {' or '.join(t.name.lower() for t in types)}")

    return rule


def _is_limited(sensor: Sensor) -> None:
    if not sensor.obj.limited:
        raise sensor.error(f"the {sensor.obj.kind} must have limits: give it a 'range'")


def _projection(sensor: Sensor) -> None:
    if not all(sensor.ref.attrs["resolution"]):
        raise sensor.error("the camera needs a 'resolution'")


def _rangefinder(sensor: Sensor) -> None:
    sensor.intprm[0] = _bits(sensor, RayDataField)
    rays = 1
    if sensor.objtype == ObjType.CAMERA:
        rays = int(sensor.obj.attrs["resolution"][0]) * int(sensor.obj.attrs["resolution"][1])
    sensor.dim = rays * _size(sensor.intprm[0], RAY_FIELDS)


def _contact(sensor: Sensor) -> None:
    bits = _bits(sensor, ConDataField)
    sensor.intprm = [bits, ENUMS["reduce"][sensor.attrs["reduce"]], sensor.attrs["num"]]
    sensor.dim = sensor.attrs["num"] * _size(bits, CONTACT_FIELDS)


def _distance(sensor: Sensor) -> None:
    if sensor.objtype == sensor.reftype and sensor.obj is sensor.ref:
        raise sensor.error("the two objects must be different")
    for obj in (sensor.obj, sensor.ref):
        if obj.kind == "geom" and obj.type == GeomType.HFIELD:
            raise sensor.error("distances to height fields are not defined")


def _tactile(sensor: Sensor) -> None:
    sensor.dim = 3 * len(sensor.obj.arrays.vert)


def _plugin(sensor: Sensor) -> None:
    assert sensor.plugin is not None
    sensor.dim = sensor_dim(sensor.plugin)


def _user(sensor: Sensor) -> None:
    sensor.dim = sensor.attrs["dim"]
    sensor.datatype = DataType(ENUMS["datatype"][sensor.attrs["datatype"]])
    sensor.stage = Stage(ENUMS["stage"][sensor.attrs["needstage"]])
    if sensor.dim < 0:
        raise sensor.error("'dim' cannot be negative")
    need = {DataType.AXIS: 3, DataType.QUATERNION: 4}.get(sensor.datatype, sensor.dim)
    if sensor.dim != need:
        raise sensor.error(f"datatype '{sensor.attrs['datatype']}' needs dim={need}")


_SCALAR = _joint_of(JointType.SLIDE, JointType.HINGE)
_BALL = _joint_of(JointType.BALL)
_RULES = {
    **dict.fromkeys(("jointpos", "jointvel", "jointactuatorfrc"), _SCALAR),
    **dict.fromkeys(("ballquat", "ballangvel"), _BALL),
    **dict.fromkeys([f"{what}limit{q}" for what in ("joint", "tendon") for q in ("pos", "vel", "frc")], _is_limited),
    **dict.fromkeys(("distance", "normal", "fromto"), _distance),
    "camprojection": _projection,
    "rangefinder": _rangefinder,
    "contact": _contact,
    "tactile": _tactile,
    "user": _user,
    "plugin": _plugin,
}
