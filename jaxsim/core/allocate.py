"""Allocation: `Data` of the shapes of a model, and the initial states of a simulation."""

from typing import Any

import jax
import jax.core
import numpy as np

from jaxsim.core.contact import (
    CONSTRAINT_FIELDS,
    CONTACT_FIELDS,
    EMPTY_CONTACT,
    WARNING_FIELDS,
    Constraint,
    Contact,
    Warning,
)
from jaxsim.core.data import DATA_FIELDS, Data
from jaxsim.core.layout import make_layout
from jaxsim.core.model import SIZES, Model
from jaxsim.core.named import data_index
from jaxsim.core.struct import Field, evaluate
from jaxsim.core.types import MINAWAKE


def _default_dtypes(host: bool) -> dict[str, Any]:
    real = np.float64 if host else jax.dtypes.canonicalize_dtype(np.float64)
    return {"float": real, "int": np.int32, "bool": np.bool_}


def allocate(m: Model) -> Data:
    """Allocate `Data` of the final shapes and dtypes at qpos0, with zeros elsewhere: no histories, all trees awake.

    A model on the host (NumPy leaves) gives NumPy data. Users call `jaxsim.make_data`.
    """
    host = isinstance(m.qpos0, np.ndarray)
    dtypes = _default_dtypes(host)
    sizes = {n: getattr(m, n) for n in SIZES}
    layout = make_layout(m)

    def zeros(table: list[Field], lead: tuple[int, ...] = ()) -> dict[str, Any]:
        return {n: np.zeros(lead + evaluate(shape, sizes), dtypes[kind]) for n, kind, shape, *_ in table}

    values: dict[str, Any] = zeros(DATA_FIELDS)
    contact = zeros(CONTACT_FIELDS, (layout.ncontact,))
    for name in EMPTY_CONTACT:
        contact[name][:] = -1
    values["contact"] = Contact(**contact)
    efc = zeros(CONSTRAINT_FIELDS, (layout.nslot,))
    columns, of_contact = (layout.columns.shape[1], (layout.nside, 6)) if layout.sparse else (m.nv, (m.nv,))
    efc["J_general"] = np.zeros((layout.ngeneral, columns), dtypes["float"])
    efc["J_contact"] = np.zeros((layout.ncontact, layout.condim, *of_contact), dtypes["float"])
    efc["bodies"] = np.zeros((layout.ncontact, layout.nside if layout.sparse and layout.flexes else 0), np.int32)
    values["efc"] = Constraint(**efc, layout=layout)
    values["warning"] = Warning(**zeros(WARNING_FIELDS))
    values["index"] = data_index(m)
    values["eq_active"][:] = m.eq_active0
    d = at_qpos0(m, Data(**values))  # on the host, where no program has to be compiled
    return d if host else jax.device_put(d)


def at_qpos0(m: Model, d: Data) -> Data:
    """Set positions and mocap poses to qpos0, and wake all trees."""
    mocap = np.flatnonzero(m.body_mocapid >= 0)
    mocap = mocap[np.argsort(m.body_mocapid[mocap])]
    asleep = np.full(m.ntree, -(1 + MINAWAKE))
    pos, quat = (_on_host(x)[mocap] for x in (m.body_pos, m.body_quat))
    return d.replace(qpos=m.qpos0, mocap_pos=pos, mocap_quat=quat, tree_asleep=asleep)


def reset_to_keyframe(m: Model, d: Data, key: int) -> Data:
    """Set time, positions, velocities, activations, mocap poses and controls to keyframe `key`."""
    names = {"qpos": "qpos", "qvel": "qvel", "act": "act", "ctrl": "ctrl", "mocap_pos": "mpos", "mocap_quat": "mquat"}
    values = {name: _on_host(getattr(m, f"key_{of}"))[key] for name, of in names.items()}
    values |= {name: values[name].reshape(getattr(d, name).shape) for name in ("mocap_pos", "mocap_quat")}
    return d.replace(time=_on_host(m.key_time)[key], **values)


def _on_host(x: Any) -> Any:
    """Return an array that is not traced as NumPy's: JAX would compile a program to take a part of it."""
    return x if isinstance(x, jax.core.Tracer) else np.asarray(x)
