"""Models and data of newer versions of MuJoCo: translated to the meaning of 3.8.1, or refused by name.

`CHANGES` are the meanings that changed without an error; docs/newer_mujoco.md has all of them, with figures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.core.types import (
    BiasType,
    ConDataField,
    DynType,
    EnableBit,
    GainType,
    IntegratorType,
    SensorType,
    Stage,
    TrnType,
    WrapType,
)
from jaxsim.engine.structure.refusals import warn_once
from jaxsim.math.rotation import quat_mul

READ = (3, 8, 1)
MARGIN_WITHOUT_GAP = (3, 9)  # from here on a contact is found at margin + gap, and acts at margin
NO_LEGACY_M = (3, 11)  # qM is gone
MOCAP_WELDS = (3, 12)  # mocap bodies are roots of what is welded to them
# fields that do nothing where they are zero
_NEW_FIELDS = ("geom_adhesion", "geom_surfacevel", "pair_adhesion", "jnt_springyield", "tendon_springyield")
# numbers from the user's own type on have other meanings in newer versions
_TYPES = (("dyntype", DynType), ("gaintype", GainType), ("biastype", BiasType))
_RENAMED = {"efc_diagApprox": "efc_diagA"}
_IMPLICIT = (IntegratorType.IMPLICIT, IntegratorType.IMPLICITFAST)


class Change(NamedTuple):
    """A changed meaning: its version, whether compiled models can be translated, a test for affected models, a text."""

    since: tuple[int, ...]
    translated: bool
    concerns: Callable[[Model], bool]
    what: str


CHANGES = (
    Change(
        MARGIN_WITHOUT_GAP,
        True,
        lambda m: bool(np.any(m.geom_gap) or np.any(m.pair_gap)),
        "margin and gap of MJCF have MuJoCo 3.8.1's meaning (contacts act below margin - gap); "
        "since MuJoCo 3.9 they act below margin",
    ),
    Change(
        (4, 0),
        False,
        lambda m: bool((np.isin(m.wrap_type, (WrapType.SPHERE, WrapType.CYLINDER)) & (m.wrap_prm >= 0)).any()),
        "side sites of tendons have MuJoCo 3.8.1's meaning; in MuJoCo 4 the path goes round as through the side site, "
        "and lengths differ where the tendon is clear of the geom or wraps more than half a turn",
    ),
    Change(
        (4, 0),
        False,
        lambda m: m.opt.integrator in _IMPLICIT and _damping_within_limits(m),
        "implicit integrators keep the damping of actuators whose joint or tendon is at its actuatorfrcrange, "
        "as MuJoCo 3.8.1 does; MuJoCo 4 leaves it out",
    ),
)


def _damping_within_limits(m: Model) -> bool:
    """Whether a force law that depends on velocity acts on a joint or tendon with a limited actuator force."""
    damps = (m.actuator_biastype == BiasType.AFFINE) & (m.actuator_biasprm[:, 2] != 0)
    damps |= (m.actuator_gaintype == GainType.AFFINE) & (m.actuator_gainprm[:, 2] != 0)
    limited = {TrnType.JOINT: m.jnt_actfrclimited, TrnType.JOINTINPARENT: m.jnt_actfrclimited}
    limited[TrnType.TENDON] = m.tendon_actfrclimited
    return any(
        flags[m.actuator_trnid[damps & (m.actuator_trntype == kind), 0]].any() for kind, flags in limited.items()
    )


def version_of(mj_object: Any) -> tuple[int, ...]:
    """Return the version of the mujoco package that made a model or data, as numbers."""
    package = sys.modules.get(type(mj_object).__module__.partition(".")[0])
    words = getattr(package, "__version__", "3.8.1").split(".")[:3]
    return tuple(int(word) for word in words if word.isdigit())


def warn_of_changes(m: Model, version: tuple[int, ...] | None = None) -> None:
    """Warn, once in a process and kind, if newer versions of MuJoCo give other results for a host model.

    `version` is that of the MuJoCo that compiled the model; None for MJCF.
    """
    for change in CHANGES:
        if (version is None or (version >= change.since and not change.translated)) and change.concerns(m):
            warn_once(f"{change.what} (docs/newer_mujoco.md)")


def refuse_newer(mj_model: Any) -> None:
    """Raise UnsupportedError if a model uses features newer than MuJoCo 3.8.1; the message names all of them."""
    version = version_of(mj_model)
    if version <= READ:
        return
    found = _new_features(mj_model, version)
    if found:
        word = ".".join(map(str, version))
        raise UnsupportedError(f"compiled by MuJoCo {word}, and this has the physics of 3.8.1: {'; '.join(found)}")


def size(mj_model: Any, name: str) -> int:
    """Return a size of a model, zero where newer versions have no such tables (of flexes, which are refused)."""
    return getattr(mj_model, name, 0)


def field(mj_model: Any, name: str) -> Any:
    """Return a field of a model with the meaning that it has in MuJoCo 3.8.1."""
    version = version_of(mj_model)
    if version <= READ:
        return getattr(mj_model, name)
    value = getattr(mj_model, name, ())
    if name in ("geom_margin", "pair_margin") and version >= MARGIN_WITHOUT_GAP:
        return value + getattr(mj_model, name.replace("margin", "gap"))
    if name == "body_margin" and version >= MARGIN_WITHOUT_GAP:
        margins = np.full(mj_model.nbody, -np.inf)
        np.maximum.at(margins, mj_model.geom_bodyid, field(mj_model, "geom_margin"))
        return np.where(mj_model.body_geomnum > 0, margins, 0)
    if name == "eq_data":  # the last column says which welds set_const follows
        return np.asarray(value)[:, :11]
    if name == "sensor_needstage":
        return np.where(mj_model.sensor_type == SensorType.CONTACT, Stage.ACC, value)
    if name == "body_weldid" and version >= MOCAP_WELDS:
        return _welds(mj_model)
    return value


def _welds(m: Any) -> np.ndarray:
    """body_weldid: the nearest ancestor with joints, or the world."""
    weld = np.arange(m.nbody)
    for body in np.flatnonzero(m.body_dofnum == 0):
        weld[body] = weld[m.body_parentid[body]]
    return weld


def _new_features(m: Any, version: tuple[int, ...]) -> list[str]:
    found = [name for name in _NEW_FIELDS if np.any(getattr(m, name, 0))]
    if m.opt.integrator not in list(IntegratorType):
        found.append(f"integrator {int(m.opt.integrator)}")
    if m.opt.enableflags & ~sum(EnableBit):
        found.append("an enable flag that 3.8.1 does not have")
    if getattr(m, "nactuator", m.nu) != m.nu or getattr(m, "nout", m.nu) != m.nu:
        found.append("actuators with several inputs or outputs, or none")
    else:
        for name, kind in _TYPES:
            if np.any(np.asarray(getattr(m, f"actuator_{name}")) >= int(kind.USER)):
                found.append(f"an actuator_{name} of a newer MuJoCo, or of the user")
        if version >= (3, 12) and np.any(np.asarray(m.actuator_dyntype) == int(DynType.DCMOTOR)):
            found.append("dcmotor, whose controller has other gains since 3.12")
    if m.nflex:
        found.append("flexes, whose tables differ")
    if version >= MARGIN_WITHOUT_GAP and m.opt.enableflags & EnableBit.OVERRIDE and np.any(m.geom_gap):
        found.append("the flag override with a gap")
    if np.any(np.asarray(getattr(m, "site_dataid", -1)) >= 0):
        found.append("sites that are meshes")
    if np.any(np.asarray(getattr(m, "tex_adr", 0)) < 0):
        found.append("textures that are left in their files (embed or passthrough)")
    return found + _new_sensors(m, version)


def _new_sensors(m: Any, version: tuple[int, ...]) -> list[str]:
    kind, prm = m.sensor_type, m.sensor_intprm
    found = []
    if np.any(prm[kind == SensorType.CONTACT, 0] >> len(ConDataField)):
        found.append("velocities from contact sensors")
    if np.any(prm[kind == SensorType.INSIDESITE]):
        found.append("insidesite with enclosed")
    if version >= (3, 9) and SensorType.TACTILE in kind:
        found.append("tactile sensors, which give depths since 3.9")
    return found


def data_field(m: Model, mj_data: Any, name: str) -> Any:
    """Return a field of a `MjData`, by its name and meaning in MuJoCo 3.8.1."""
    if name == "qM" and version_of(mj_data) >= NO_LEGACY_M:
        entries = np.zeros(m.nM)
        entries[m.mapM2M] = mj_data.M
        return entries
    name = data_name(mj_data, name)
    return getattr(mj_data, name) if version_of(mj_data) <= READ else getattr(mj_data, name, ())


def data_name(mj_data: Any, name: str) -> str:
    """Name of a field of a `MjData` in the version that made it."""
    return name if hasattr(mj_data, name) else _RENAMED.get(name, name)


def complete(mj_data: Any) -> None:
    """Set the fields of a `MjData` that newer versions added and that are derived from others."""
    m = mj_data.model
    frames = {"xiquat": (slice(None), m.body_iquat)}
    frames |= {"geom_xquat": (m.geom_bodyid, m.geom_quat), "site_xquat": (m.site_bodyid, m.site_quat)}
    for name, (body, quat) in frames.items():
        if hasattr(mj_data, name):
            getattr(mj_data, name)[:] = quat_mul(mj_data.xquat[body], quat)
    for name in ("adhesion", "surfacevel"):
        if hasattr(mj_data.contact, name):
            getattr(mj_data.contact, name)[:] = 0
