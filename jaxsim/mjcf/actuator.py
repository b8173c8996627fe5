"""Actuator shortcuts: every actuator element expands to one general record.

A record has the attributes of `general` by name (arrays at full length, None if undefined) and in addition:

- `trntype`: joint, jointinparent, slidercrank, tendon, site, body, or None if there is no transmission;
- `target`: the name of the joint, tendon, crank site, site or body; `slidersite`, `refsite`: names or None;
- `inheritrange`: 0 or the factor by which the control range follows the target's range;
- `plugin`, `instance`: for actuators that a plugin runs.

A positive `biasprm[2]` of a position servo is a damping ratio, which the compiler converts to a damping.
Default classes hold one such record; a shortcut in a default class rewrites it as it would an actuator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxsim.mjcf.resolved import Resolved
from jaxsim.mjcf.schema.element_type import SCHEMA
from jaxsim.mjcf.spec import Element

_GENERAL = SCHEMA.children["actuator"].children["general"].attributes
_TRANSMISSIONS = {
    "joint": "joint",
    "jointinparent": "jointinparent",
    "tendon": "tendon",
    "cranksite": "slidercrank",
    "site": "site",
    "body": "body",
}
_COMMON = tuple(
    name for name in _GENERAL if name not in (*_TRANSMISSIONS, "name", "class", "dyntype", "gaintype", "biastype",
                                              "dynprm", "gainprm", "biasprm", "actdim", "actearly")
)  # fmt: skip
_EXPLICIT = {
    "general": ("dyntype", "gaintype", "biastype", "actearly", "dynprm", "gainprm", "biasprm", "actdim"),
    "plugin": ("dyntype", "actearly", "dynprm", "actdim", "plugin", "instance"),
}


def new_actuator() -> dict[str, Any]:
    """Return the record of an actuator without any written attribute."""
    values = {name: _GENERAL[name].default for name in (*_COMMON, *_EXPLICIT["general"])}
    extra = {"trntype": None, "target": None, "inheritrange": 0.0, "plugin": None, "instance": None}
    return {**values, **extra}


def read_actuator(record: Resolved, element: Element) -> Resolved:
    """Overlay an actuator element on a record, in place, and return it; raise ModelError for contradictions."""
    attrs = element.attrs
    for name in _COMMON:
        if name in attrs:
            record.overlay_value(name, attrs[name])
    _read_transmission(record, element)
    for name in _EXPLICIT.get(element.tag, ()):
        if name in attrs:
            record.overlay_value(name, attrs[name])
    shortcut = _SHORTCUTS.get(element.tag)
    if shortcut:
        for name in ("dynprm", "gainprm", "biasprm"):
            record[name] = np.array(record[name], np.float64)
        fault = shortcut(record, attrs)
        if fault:
            raise element.error(fault)
    return record


def _read_transmission(record: Resolved, element: Element) -> None:
    attrs = element.attrs
    found = [name for name in _TRANSMISSIONS if name in attrs]
    if len(found) > 1:
        raise element.error(f"an actuator can have only one transmission target; it has {' and '.join(found)}")
    if found:
        record["trntype"], record["target"] = _TRANSMISSIONS[found[0]], attrs[found[0]]
    trntype = record["trntype"]
    if ("cranklength" in attrs or "slidersite" in attrs) and trntype not in ("slidercrank", None):
        raise element.error("cranklength and slidersite belong to a slider-crank; write cranksite as well")
    if "refsite" in attrs and trntype not in ("site", None):
        raise element.error("refsite belongs to a site transmission; write site as well")


def _types(record: dict, dyn: str | None, gain: str, bias: str) -> None:
    if dyn is not None:
        record["dyntype"] = dyn
    record["gaintype"], record["biastype"] = gain, bias


def _motor(record: dict, attrs: dict) -> str | None:
    record["gainprm"][0] = 1
    _types(record, "none", "fixed", "none")
    return None


def _position(record: dict, attrs: dict) -> str | None:
    kp = attrs.get("kp", record["gainprm"][0])
    record["gainprm"][0], record["biasprm"][1] = kp, -kp
    if "dampratio" in attrs and "kv" in attrs:
        return "kv and dampratio exclude each other"
    for name, sign in (("kv", -1.0), ("dampratio", 1.0)):
        if name in attrs:
            if attrs[name] < 0:
                return f"{name} cannot be negative"
            record["biasprm"][2] = sign * attrs[name]
    if "timeconst" in attrs:
        if attrs["timeconst"] < 0:
            return "timeconst cannot be negative"
        record["dynprm"][0] = attrs["timeconst"]
        record["dyntype"] = "filterexact" if attrs["timeconst"] else "none"
    record["inheritrange"] = attrs.get("inheritrange", record["inheritrange"])
    if record["inheritrange"] > 0 and np.any(record["ctrlrange"]):
        return "ctrlrange and inheritrange exclude each other"
    _types(record, None, "fixed", "affine")
    return None


def _intvelocity(record: dict, attrs: dict) -> str | None:
    _position(record, attrs)  # MuJoCo ignores errors of this call
    record["dyntype"], record["actlimited"] = "integrator", "true"
    inherit = attrs.get("inheritrange", record["inheritrange"])
    if inherit > 0 and np.any(record["actrange"]):
        return "actrange and inheritrange exclude each other"
    return None


def _velocity(record: dict, attrs: dict) -> str | None:
    kv = attrs.get("kv", record["gainprm"][0])
    record["biasprm"][:] = 0
    record["gainprm"][0], record["biasprm"][2] = kv, -kv
    _types(record, "none", "fixed", "affine")
    return None


def _damper(record: dict, attrs: dict) -> str | None:
    kv = attrs.get("kv", 0.0)
    record["gainprm"][:] = 0
    record["gainprm"][2] = -kv
    record["ctrllimited"] = "true"
    _types(record, "none", "affine", "none")
    if kv < 0:
        return "kv of a damper cannot be negative"
    return "ctrlrange of a damper cannot be negative" if np.any(record["ctrlrange"] < 0) else None


def _cylinder(record: dict, attrs: dict) -> str | None:
    record["dynprm"][0] = attrs.get("timeconst", record["dynprm"][0])
    if "bias" in attrs:
        record["biasprm"][0] = attrs["bias"][0]  # MuJoCo accepts three numbers and uses one
    record["gainprm"][0] = attrs.get("area", record["gainprm"][0])
    if attrs.get("diameter", -1) >= 0:
        record["gainprm"][0] = math.pi / 4 * attrs["diameter"] ** 2
    _types(record, "filter", "fixed", "affine")
    return None


_MUSCLE_DYN = ((1.0, 0.01), (0.0, 0.04))
_MUSCLE_GAIN = ((1.0, 0.75), (0.0, 1.05), (0.0, -1.0), (0.0, 200.0), (0.0, 0.5), (0.0, 1.6), (0.0, 1.5), (0.0, 1.3),
                (0.0, 1.2))  # fmt: skip
_MUSCLE_NAMES = ("force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax")


def _muscle(record: dict, attrs: dict) -> str | None:
    dyn, gain = record["dynprm"], record["gainprm"]
    for values, defaults in ((dyn, _MUSCLE_DYN), (gain, _MUSCLE_GAIN)):
        for i, (unset, default) in enumerate(defaults):
            if values[i] == unset:
                values[i] = default
    smooth = attrs.get("tausmooth", dyn[2])
    if smooth < 0:
        return "tausmooth cannot be negative"
    dyn[2] = smooth
    written = [*zip(range(2), attrs.get("range", ()), strict=False)]
    written += [(2 + i, attrs[name]) for i, name in enumerate(_MUSCLE_NAMES) if name in attrs]
    for values, entries in ((dyn, enumerate(attrs.get("timeconst", ()))), (gain, written)):
        for i, value in entries:
            if value >= 0:
                values[i] = value
    record["biasprm"][:9] = gain[:9]
    _types(record, "muscle", "muscle", "muscle")
    return None


def _adhesion(record: dict, attrs: dict) -> str | None:
    gain = attrs.get("gain", record["gainprm"][0])
    record["gainprm"][0] = gain
    record["ctrllimited"] = "true"
    _types(record, None, "fixed", "none")
    if gain < 0:
        return "gain of an adhesion actuator cannot be negative"
    return "ctrlrange of an adhesion actuator cannot be negative" if np.any(record["ctrlrange"] < 0) else None


def _over(base: Sequence[float], written: Any) -> list[float]:
    """Replace the leading entries of `base` by the written ones."""
    head = () if written is None else written
    return [float(x) for x in (*head, *base[len(head) :])]


def _motor_constants(record: dict, attrs: dict, gain: np.ndarray) -> tuple[float, float]:
    """Compute the torque constant and resistance, from `motorconst` and `resistance`, or from nominal values."""
    torque, emf = _over([gain[1], 0.0], attrs.get("motorconst"))
    resistance = attrs.get("resistance", float(gain[0]))
    volt, stall, free = _over([0.0] * 3, attrs.get("nominal"))
    if volt > 0 and emf <= 0 and free > 0:
        viscous = record["damping"][0]
        emf = volt / free
        if viscous > 0 and resistance > 0:
            root = volt**2 - 4 * resistance * viscous * free**2
            emf = (volt + math.sqrt(root)) / (2 * free) if root > 0 else emf
        elif viscous > 0 and stall > 0:
            exact = volt / free - volt * viscous / stall
            emf = exact if exact > 0 else emf
    both = torque > 0 and emf > 0
    constant = math.sqrt(torque * emf) if both else torque if torque > 0 else emf
    if resistance == 0 and volt > 0 and stall > 0 and constant > 0:
        resistance = constant * volt / stall
    return constant, resistance


def _thermal(record: dict, values: list[float]) -> str | None:
    resistance, capacity, time, alpha, reference, ambient = values
    if time > 0 and resistance > 0 and capacity == 0:
        capacity = time / resistance
    elif time > 0 and capacity > 0 and resistance == 0:
        resistance = time / capacity
    if resistance <= 0:
        return "the thermal resistance of a DC motor must be positive"
    if capacity <= 0:
        return "the thermal capacitance of a DC motor must be positive"
    record["dynprm"][2:5] = resistance, capacity, ambient
    record["gainprm"][2:4] = alpha, reference
    return None


def _dcmotor(record: dict, attrs: dict) -> str | None:
    inherited = record["gaintype"] == "dcmotor"
    dyn, gain, bias = (record[name] if inherited else np.zeros(10) for name in ("dynprm", "gainprm", "biasprm"))
    controller = _over([*gain[4:7], *dyn[7:9], gain[7]], attrs.get("controller"))
    saturation = _over([0.0, 0.0, dyn[1]], attrs.get("saturation"))
    inductance = _over([0.0, dyn[0]], attrs.get("inductance"))
    cogging = _over([*bias[:3]], attrs.get("cogging"))
    thermal = _over([*dyn[2:4], 0.0, *gain[2:4], dyn[4]], attrs.get("thermal"))
    lugre = _over([*dyn[5:7], *bias[3:6]], attrs.get("lugre"))
    mode = _INPUTS[attrs["input"]] if "input" in attrs else float(gain[8])
    constant, resistance = _motor_constants(record, attrs, gain)
    if not constant > 0:
        return "the motor constant of a DC motor must be positive; write motorconst, or nominal"
    if not resistance > 0:
        return "the resistance of a DC motor must be positive; write resistance, or nominal"
    if min(inductance) < 0:
        return "inductance cannot be negative"

    dyn, gain, bias = record["dynprm"], record["gainprm"], record["biasprm"]
    _types(record, "dcmotor", "dcmotor", "dcmotor")
    gain[0:2] = resistance, constant
    gain[4:7] = controller[:3]
    dyn[7:9] = controller[3:5]
    if controller[5] > 0:
        gain[7] = controller[5]
    if saturation[0] > 0 or saturation[1] > 0:
        limit = constant * saturation[1] if saturation[0] == 0 and saturation[1] > 0 else saturation[0]
        record["forcerange"], record["forcelimited"] = np.array([-limit, limit]), "true"
    if saturation[2] > 0:
        dyn[1] = saturation[2]
    bias[0:3] = cogging
    dyn[0] = inductance[0] / resistance if inductance[0] > 0 else inductance[1]
    heated = any(x > 0 for x in thermal[:3])
    if heated:
        fault = _thermal(record, thermal)
        if fault:
            return fault
    if lugre[0] > 0:
        dyn[5:7], bias[3:6] = lugre[:2], lugre[2:]
    gain[8] = mode
    record["actdim"] = [dyn[0] > 0, controller[3] > 0, controller[1] > 0, heated, lugre[0] > 0].count(True)
    record["actlimited"], record["actearly"] = "false", True
    return None


_INPUTS = {"voltage": 0.0, "position": 1.0, "velocity": 2.0}
_SHORTCUTS: dict[str, Callable[[dict, dict], str | None]] = {
    "motor": _motor,
    "position": _position,
    "intvelocity": _intvelocity,
    "velocity": _velocity,
    "damper": _damper,
    "cylinder": _cylinder,
    "muscle": _muscle,
    "adhesion": _adhesion,
    "dcmotor": _dcmotor,
}
