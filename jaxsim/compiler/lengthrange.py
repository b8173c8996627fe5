"""Length ranges of actuators, where the compiler must find them: from limits, else by pulling to both ends."""

from __future__ import annotations

import numpy as np

from jaxsim.compiler.draft import Draft, unsupported
from jaxsim.model import Model
from jaxsim.types import BiasType, GainType, TrnType


def _wanted(draft: Draft, m: Model) -> list[int]:
    """Actuators whose range is asked for and not known."""
    options = draft.lengthrange
    muscle = (m.actuator_gaintype == GainType.MUSCLE) | (m.actuator_biastype == BiasType.MUSCLE)
    user = (m.actuator_gaintype == GainType.USER) | (m.actuator_biastype == BiasType.USER)
    modes = {"none": muscle & False, "muscle": muscle, "muscleuser": muscle | user, "all": muscle | True}
    known = m.actuator_lengthrange[:, 0] < m.actuator_lengthrange[:, 1]
    return np.flatnonzero(modes[options["mode"]] & ~(known & bool(options["useexisting"]))).tolist()


def set_length_ranges(draft: Draft, m: Model) -> Model:
    """`m` with actuator_lengthrange filled in where the compiler's `lengthrange` element asks for it."""
    ranges = m.actuator_lengthrange.copy()
    ids = _wanted(draft, m)
    for i in ids:
        found = _from_limits(m, i) if draft.lengthrange["uselimit"] else None
        if found is None:
            raise unsupported(draft.lists["actuator"][i].el, "a length range that must be found by simulation")
        ranges[i] = found
    return m.replace(actuator_lengthrange=ranges) if ids else m


def _from_limits(m: Model, i: int) -> np.ndarray | None:
    """The limits of the joint or tendon.

    The reference looks up the target at place i of the flattened pairs of targets, which is that of actuator i // 2;
    so does this.
    """
    target = int(m.actuator_trnid.reshape(-1)[i])
    kind = m.actuator_trntype[i]
    if kind in (TrnType.JOINT, TrnType.JOINTINPARENT) and 0 <= target < m.njnt and m.jnt_limited[target]:
        return m.jnt_range[target]
    if kind == TrnType.TENDON and 0 <= target < m.ntendon and m.tendon_limited[target]:
        return m.tendon_range[target]
    return None
