"""Conversion from and to objects of the `mujoco` package, which need not be installed otherwise."""

from typing import Any

import numpy as np

from jaxsim.core import fields
from jaxsim.core.model import (
    MODEL_FIELDS,
    OPTION_FLOATS,
    OPTION_INTS,
    OWN_OPTIONS,
    SIZES,
    Model,
    Statistic,
    make_model,
    to_device,
)
from jaxsim.engine.collision.broad.capacity import default_capacities
from jaxsim.engine.refusals import warn_of_substitutes


def from_mujoco(mj_model: Any, max_contacts: int | None = None, max_constraints: int | None = None) -> Model:
    """`Model` of a compiled `mujoco.MjModel`; capacities and warnings as in `load_model`."""
    m = to_device(finish(host_model(mj_model), max_contacts, max_constraints))
    warn_of_substitutes(m)
    return m


def host_model(mj_model: Any) -> Model:
    """`Model` of a `mujoco.MjModel` with float64 NumPy leaves, its capacities not set."""
    values = {name: getattr(mj_model, name) for name in SIZES}
    for name, *_ in MODEL_FIELDS:
        values[name] = getattr(mj_model, name)
    vis = {}
    for field in fields.parse(fields.VISUAL):
        group, _, name = field.name.partition(".")
        value = getattr(getattr(mj_model.vis, "global_" if group == "global" else group), name)
        vis[group, name] = tuple(np.asarray(value).tolist()) if np.ndim(value) else value
    first_name = mj_model.names.split(b"\0", 1)[0].decode()
    return make_model(
        values,
        {n: getattr(mj_model.opt, n) for n in (*OPTION_FLOATS, *OPTION_INTS) if n not in OWN_OPTIONS},
        {n: getattr(mj_model.stat, n) for n in Statistic._fields},
        vis,
        modelname=first_name,
    )


def finish(m: Model, max_contacts: int | None, max_constraints: int | None) -> Model:
    """Host model with its capacities set: those given, else the compiler's defaults."""
    return default_capacities(m, max_contacts, max_constraints)


def to_mujoco(m: Model, d: Any, mj_data: Any) -> None:
    """Copy the state of one world into a `mujoco.MjData` of the same model."""
    for name in ("time", "qpos", "qvel", "act", "history", "qacc_warmstart", "ctrl", "qfrc_applied", "xfrc_applied"):
        _assign(mj_data, name, getattr(d, name))
    for name in ("eq_active", "mocap_pos", "mocap_quat", "userdata", "plugin_state"):
        _assign(mj_data, name, getattr(d, name))


def _assign(mj_data: Any, name: str, value: Any) -> None:
    value = np.asarray(value)
    if value.ndim == 0:
        setattr(mj_data, name, float(value))
    else:
        getattr(mj_data, name)[:] = value
