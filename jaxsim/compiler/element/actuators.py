"""Actuators: transmission targets, ranges and activations."""

from __future__ import annotations

from jaxsim.compiler.draft import Draft
from jaxsim.compiler.element.elements import limited
from jaxsim.compiler.objects import Actuator, DraftObject
from jaxsim.core.types import BiasType, DynType, GainType, JointType, TrnType
from jaxsim.mjcf.schema.values import ENUMS

MAX_SAMPLES = 1 << 24  # the cursor of a history buffer is stored as a float

_TARGETS = {
    "joint": ("joint", TrnType.JOINT),
    "jointinparent": ("joint", TrnType.JOINTINPARENT),
    "slidercrank": ("site", TrnType.SLIDERCRANK),
    "tendon": ("tendon", TrnType.TENDON),
    "site": ("site", TrnType.SITE),
    "body": ("body", TrnType.BODY),
}
_ATTRIBUTE = {"slidercrank": "cranksite"}
_DAMPING_TARGETS = (TrnType.JOINT, TrnType.JOINTINPARENT, TrnType.TENDON)


def compile_actuators(draft: Draft) -> None:
    """Set all fields of actuators that do not depend on positions."""
    for actuator in draft.lists.actuator:
        a = actuator.attrs
        actuator.dyntype = DynType(ENUMS["dyn"][a["dyntype"]])
        actuator.gaintype = GainType(ENUMS["gain"][a["gaintype"]])
        actuator.biastype = BiasType(ENUMS["bias"][a["biastype"]])
        for name in ("dynprm", "gainprm", "biasprm", "gear", "damping", "ctrlrange", "forcerange", "actrange"):
            setattr(actuator, name, actuator.floats(name))
        lengthrange = a.get("lengthrange")
        actuator.lengthrange = [0.0, 0.0] if lengthrange is None else [float(x) for x in lengthrange]
        _transmission(draft, actuator)
        _inherit_range(actuator)
        _limits(draft, actuator)
        _activation(actuator)
        _check_muscle(actuator)
        check_history(actuator)


def _transmission(draft: Draft, actuator: Actuator) -> None:
    a, word = actuator.attrs, actuator.attrs["trntype"]
    if not word or not a["target"]:
        raise actuator.error("no transmission target: name a joint, tendon, site or body")
    kind, actuator.trntype = _TARGETS[word]
    second = -1
    if actuator.trntype == TrnType.SLIDERCRANK:
        if not a["slidersite"]:
            raise actuator.error("a slider-crank needs 'slidersite'")
        second = draft.refer(actuator, "site", a["slidersite"], "slidersite").id
        if not a["cranklength"] > 0:
            raise actuator.error("'cranklength' must be positive")
    elif actuator.trntype == TrnType.SITE and a["refsite"]:
        second = draft.refer(actuator, "site", a["refsite"], "refsite").id
    actuator.target = draft.refer(actuator, kind, a["target"], _ATTRIBUTE.get(word) or word)
    actuator.trnid = [actuator.target.id, second]
    for name, present in (("damping", any(actuator.damping)), ("armature", a["armature"] != 0)):
        if present and actuator.trntype not in _DAMPING_TARGETS:
            raise actuator.error(f"'{name}' needs a joint or tendon")


def _inherit_range(actuator: Actuator) -> None:
    """Set the control or activation range of a position servo with `inheritrange` from its target's range."""
    factor = actuator.attrs["inheritrange"]
    servo = actuator.gaintype == GainType.FIXED and actuator.biastype == BiasType.AFFINE
    if not servo or actuator.gainprm[0] != -actuator.biasprm[1] or not factor > 0:
        return
    ranges = {DynType.NONE: "ctrlrange", DynType.FILTEREXACT: "ctrlrange", DynType.INTEGRATOR: "actrange"}
    if actuator.dyntype not in ranges:
        raise actuator.error("'inheritrange' is only for position and intvelocity actuators")
    if actuator.trntype not in (TrnType.JOINT, TrnType.TENDON):
        raise actuator.error("'inheritrange' needs a joint or tendon")
    if actuator.trntype == TrnType.JOINT and actuator.target.type not in (JointType.HINGE, JointType.SLIDE):
        raise actuator.error("'inheritrange' needs a hinge or slide joint")
    low, high = actuator.target.range
    if low == high:
        raise actuator.error(f"'inheritrange' is given, but '{actuator.target.name}' has no range")
    middle, radius = 0.5 * (high + low), 0.5 * (high - low) * factor
    setattr(actuator, ranges[actuator.dyntype], [middle - radius, middle + radius])


def _limits(draft: Draft, actuator: Actuator) -> None:
    autolimits = draft.settings_of(actuator.el).autolimits
    for what in ("force", "ctrl", "act"):
        bounds = getattr(actuator, f"{what}range")
        switch = limited(actuator, actuator.attrs[f"{what}limited"], bounds, autolimits, what)
        setattr(actuator, f"{what}limited", switch)
        if switch and bounds[0] >= bounds[1]:
            raise actuator.error(f"'{what}range' must rise; it is ({bounds[0]:g}, {bounds[1]:g})")
    if actuator.actlimited and actuator.dyntype == DynType.NONE:
        raise actuator.error("'actrange' is given, but 'dyntype' is 'none'")


def _activation(actuator: Actuator) -> None:
    dim, dyn = actuator.attrs["actdim"], actuator.dyntype
    if actuator.plugin is None:
        _check_actdim(actuator, dim, dyn)
    if dyn == DynType.DCMOTOR and not actuator.attrs["actearly"]:
        raise actuator.error("'actearly' cannot be false for a DC motor")
    actuator.actdim = int(dyn not in (DynType.NONE, DynType.DCMOTOR)) if dim < 0 else dim


def _check_actdim(actuator: Actuator, dim: int, dyn: DynType) -> None:
    if dim > 1 and dyn not in (DynType.USER, DynType.DCMOTOR):
        raise actuator.error("'actdim' above 1 is only for dyntype 'user' and 'dcmotor'")
    if dim == 1 and dyn == DynType.NONE:
        raise actuator.error("'actdim' is 1, but the actuator has no state")
    if dim == 0 and dyn not in (DynType.NONE, DynType.DCMOTOR):
        raise actuator.error("'actdim' is 0, but the actuator has a state")


def _check_muscle(actuator: Actuator) -> None:
    for muscle, prm in (
        (actuator.gaintype == GainType.MUSCLE, actuator.gainprm),
        (actuator.biastype == BiasType.MUSCLE, actuator.biasprm),
    ):
        if not muscle:
            continue
        if prm[0] >= prm[1]:
            raise actuator.error("'range' of a muscle must rise")
        if prm[4] >= 1 or prm[5] <= 1:
            raise actuator.error("a muscle needs lmin < 1 < lmax")
        if min(prm[3], prm[6], prm[7], prm[8]) <= 0:
            raise actuator.error("scale, vmax, fpmax and fvmax of a muscle must be positive")


def check_history(obj: DraftObject) -> None:
    """Check that a delay has a buffer of samples, of bounded size."""
    if obj.attrs["delay"] > 0 and obj.attrs["nsample"] <= 0:
        raise obj.error("'delay' needs 'nsample', the size of its buffer")
    if obj.attrs["nsample"] > MAX_SAMPLES:
        raise obj.error(f"'nsample' is at most {MAX_SAMPLES}")
