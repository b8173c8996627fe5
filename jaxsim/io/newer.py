"""Models that a newer MuJoCo compiled: taken where they use nothing that came after 3.8.1, else refused by name."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from jaxsim.core.errors import UnsupportedError
from jaxsim.core.types import BiasType, DynType, EnableBit, GainType, IntegratorType

READ = (3, 8, 1)
MARGIN_WITHOUT_GAP = (3, 9)  # from here on a contact is found at margin + gap, and acts at margin
EMPTY = {"flex_bandwidth": np.zeros(0, np.int32)}  # tables that newer versions do not have
# fields that do nothing where they are zero
_NEW_FIELDS = ("geom_adhesion", "geom_surfacevel", "pair_adhesion")
# numbers from the user's own type on have other meanings in newer versions
_TYPES = (("dyntype", DynType), ("gaintype", GainType), ("biastype", BiasType))


def version_of(mj_model: Any) -> tuple[int, ...]:
    """Version of the mujoco package that made a model, as numbers."""
    package = sys.modules.get(type(mj_model).__module__.partition(".")[0])
    words = getattr(package, "__version__", "3.8.1").split(".")[:3]
    return tuple(int(word) for word in words if word.isdigit())


def refuse_newer(mj_model: Any) -> None:
    """Raise UnsupportedError where a model needs what came after MuJoCo 3.8.1; the message names all of it."""
    version = version_of(mj_model)
    if version <= READ:
        return
    found = _new_features(mj_model, version)
    if found:
        word = ".".join(map(str, version))
        raise UnsupportedError(f"compiled by MuJoCo {word}, and this has the physics of 3.8.1: {'; '.join(found)}")


def field(mj_model: Any, name: str, version: tuple[int, ...]) -> Any:
    """A field of a model with the meaning that it has in MuJoCo 3.8.1."""
    value = getattr(mj_model, name)
    if version >= MARGIN_WITHOUT_GAP and name in ("geom_margin", "pair_margin"):
        return value + getattr(mj_model, name.replace("margin", "gap"))
    return value


def _new_features(m: Any, version: tuple[int, ...]) -> list[str]:
    found = [name for name in _NEW_FIELDS if np.any(getattr(m, name, 0))]
    if m.opt.integrator not in list(IntegratorType):
        found.append(f"integrator {int(m.opt.integrator)}")
    if m.opt.enableflags & ~sum(EnableBit):
        found.append("an enable flag that 3.8.1 does not have")
    if getattr(m, "nactuator", m.nu) != m.nu:
        found.append("actuators with several inputs, or none")
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
    return found
