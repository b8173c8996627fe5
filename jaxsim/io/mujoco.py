"""Conversion from and to objects of the `mujoco` package, which need not be installed otherwise."""

from typing import Any

import numpy as np

from jaxsim.core.make_model import make_model, to_device
from jaxsim.core.model import MODEL_FIELDS, SIZES, Model
from jaxsim.core.option import OPTION_FLOATS, OPTION_INTS, OWN_OPTIONS, STATISTICS
from jaxsim.core.visual import visual_fields
from jaxsim.engine.collision.broad.capacity import default_capacities
from jaxsim.engine.structure.refusals import warn_of_substitutes
from jaxsim.io import newer


def from_mujoco(mj_model: Any, max_contacts: int | None = None, max_constraints: int | None = None) -> Model:
    """Make a `Model` of a compiled `mujoco.MjModel`; capacities and warnings are as in `load_model`.

    A model of a newer MuJoCo is accepted if it uses no new features, with a `ModelWarning` if its results differ.
    Otherwise raises UnsupportedError that names the new features.
    """
    host = default_capacities(host_model(mj_model), max_contacts, max_constraints)
    m = to_device(host)
    warn_of_substitutes(m)
    newer.warn_of_changes(host, newer.version_of(mj_model))
    return m


def host_model(mj_model: Any) -> Model:
    """Make a `Model` of a `mujoco.MjModel` with float64 NumPy leaves, its capacities not set."""
    if isinstance(mj_model, Model) or not hasattr(mj_model, "names"):
        raise TypeError(f"the model is of type {type(mj_model).__name__}, wanted a mujoco.MjModel")
    newer.refuse_newer(mj_model)
    values = {name: newer.size(mj_model, name) for name in SIZES}
    values |= {name: newer.field(mj_model, name) for name, *_ in MODEL_FIELDS}
    vis = {}
    for group, field in visual_fields():
        value = getattr(getattr(mj_model.vis, group), field.name)
        vis[group, field.name] = tuple(np.asarray(value).tolist()) if np.ndim(value) else value
    first_name = mj_model.names.split(b"\0", 1)[0].decode()
    return make_model(
        values,
        {n: getattr(mj_model.opt, n) for n in (*OPTION_FLOATS, *OPTION_INTS) if n not in OWN_OPTIONS},
        {n: getattr(mj_model.stat, n) for n in STATISTICS},
        vis,
        modelname=first_name,
    )
