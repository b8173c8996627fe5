"""Allocation: `Data` of the shapes of a model, and the initial states of a simulation."""

from typing import Any

import jax
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
    d = Data(**values)
    return at_qpos0(m, d if host else jax.device_put(d))


def at_qpos0(m: Model, d: Data) -> Data:
    """Set positions and mocap poses to qpos0, and wake all trees."""
    mocap = np.flatnonzero(m.body_mocapid >= 0)
    mocap = mocap[np.argsort(m.body_mocapid[mocap])]
    asleep = np.full(m.ntree, -(1 + MINAWAKE))
    return d.replace(qpos=m.qpos0, mocap_pos=m.body_pos[mocap], mocap_quat=m.body_quat[mocap], tree_asleep=asleep)


def reset_to_keyframe(m: Model, d: Data, key: int) -> Data:
    """Set time, positions, velocities, activations, mocap poses and controls to keyframe `key`."""
    return d.replace(
        time=m.key_time[key],
        qpos=m.key_qpos[key],
        qvel=m.key_qvel[key],
        act=m.key_act[key],
        ctrl=m.key_ctrl[key],
        mocap_pos=m.key_mpos[key].reshape(d.mocap_pos.shape),
        mocap_quat=m.key_mquat[key].reshape(d.mocap_quat.shape),
    )
