"""`Data` from a `mujoco.MjData` and back: state, derived fields, contacts and constraint rows. Host-side."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxsim.core.contact import CONSTRAINT_FIELDS, CONTACT_FIELDS
from jaxsim.core.data import DATA_FIELDS, Data
from jaxsim.core.extras import require
from jaxsim.core.layout import Layout, make_layout
from jaxsim.core.model import Model
from jaxsim.core.types import ConstraintType, JointType
from jaxsim.engine.step.initial import make_data
from jaxsim.engine.structure.checks import STATE
from jaxsim.io import newer

OWN = ("maxuse_con", "maxuse_efc", "overflow_contacts", "overflow_constraints")
CONVERTED = ("actuator_moment", "solver_niter", "ncon", "ne", "nf", "nl", "nefc")  # not copied as they are
ROW_FIELDS = tuple(f.name for f in CONSTRAINT_FIELDS if f.name != "active")


def from_mujoco_data(m: Model, mj_data: Any) -> Data:
    """Make a `Data` of a `mujoco.MjData`, derived fields, contacts and constraint rows included.

    Args:
        m: the model that was made of the MjModel of `mj_data`.
        mj_data: a `MjData`, or a sequence of them for a batch with a leading axis of worlds.

    Contacts and rows beyond a capacity of `m` are dropped and counted, as in a step. Rows over all dofs of a large
    sparse model are NaN: `forward` computes them. Raises ValueError if the data belongs to another model.
    """
    if isinstance(mj_data, Sequence):
        worlds = [_from_one(m, one) for one in mj_data]
        host = jax.tree.map(lambda *x: np.stack(x), *worlds)
    else:
        host = jax.tree.map(np.array, _from_one(m, mj_data))  # copies: JAX may share the memory of NumPy arrays
    return jax.device_put(host)


def _from_one(m: Model, mj_data: Any) -> Data:
    """`Data` with NumPy leaves."""
    empty = jax.tree.map(np.asarray, make_data(m))
    values = {}
    for name, *_ in DATA_FIELDS:
        if name not in (*OWN, *CONVERTED):
            values[name] = _like(getattr(empty, name), newer.data_field(m, mj_data, name), name)
    count = int(mj_data.ncon)
    values["actuator_moment"] = _dense_moment(m, mj_data)
    values["solver_niter"] = np.asarray(mj_data.solver_niter)[:1]
    values |= {name: np.int32(getattr(mj_data, name)) for name in ("ne", "nf", "nl")}
    kept = min(count, m.max_contacts)
    values["ncon"], values["maxuse_con"], values["overflow_contacts"] = kept, count, count - kept
    values["contact"] = _contacts(empty.contact, mj_data.contact, kept)
    values["efc"], rows = _rows(m, empty.efc, mj_data, kept)
    nefc = int(mj_data.nefc)
    values["nefc"], values["maxuse_efc"], values["overflow_constraints"] = rows, nefc, nefc - rows
    warning = {"number": [w.number for w in mj_data.warning], "lastinfo": [w.lastinfo for w in mj_data.warning]}
    kinds = len(empty.warning.number)
    values["warning"] = empty.warning.replace(**{name: np.array(x)[:kinds] for name, x in warning.items()})
    return empty.replace(**values)


def _like(old: np.ndarray, new: Any, name: str) -> np.ndarray:
    new = np.asarray(new)
    if new.size != old.size:
        raise ValueError(f"mj_data.{name} has {new.size} numbers, wanted {old.size}: it is data of another model")
    return new.reshape(old.shape)


def _dense_moment(m: Model, mj_data: Any) -> np.ndarray:
    """Jacobian of the transmissions (nu, nv) from MuJoCo's sparse one."""
    rows = (mj_data.moment_rownnz, mj_data.moment_rowadr, mj_data.moment_colind)
    return _dense(np.asarray(mj_data.actuator_moment), *rows, m.nu, m.nv)


def _dense(values: np.ndarray, nnz: Any, address: Any, column: Any, nrow: int, ncol: int) -> np.ndarray:
    out = np.zeros((nrow, ncol))
    for i in range(nrow):
        entries = slice(int(address[i]), int(address[i]) + int(nnz[i]))
        out[i, np.asarray(column)[entries]] = values[entries]
    return out


def _contacts(empty: Any, contact: Any, count: int) -> Any:
    changes = {}
    for name, *_ in CONTACT_FIELDS:
        buffer = np.array(getattr(empty, name))
        buffer[:count] = np.asarray(getattr(contact, name))[:count]
        changes[name] = buffer
    return empty.replace(**changes)


def _rows(m: Model, empty: Any, mj_data: Any, ncon: int) -> tuple[Any, int]:
    """`Constraint` with MuJoCo's rows in their slots, and how many there are."""
    layout = make_layout(m)
    jac = _jacobian(m, mj_data)
    slots = _slots(m, layout, mj_data, jac)
    real = np.flatnonzero((slots >= 0) & ((slots < layout.offsets[3]) | (_contact_of(layout, slots) < ncon)))
    changes = {name: np.array(getattr(empty, name)) for name in ROW_FIELDS}
    for name, buffer in changes.items():
        buffer[slots[real]] = np.asarray(newer.data_field(m, mj_data, f"efc_{name}")).reshape(-1, *buffer.shape[1:])[
            real
        ]
    active = np.zeros(layout.nslot, bool)
    active[slots[real]] = True
    changes |= {"active": active, **_jacobian_parts(layout, empty, mj_data, jac, slots, real, ncon)}
    return empty.replace(**changes), len(real)


def _mujoco() -> Any:
    return require("mujoco", "a MjData needs MuJoCo", "dev")


def _jacobian(m: Model, mj_data: Any) -> np.ndarray:
    """Rows over all dofs (nefc, nv); MuJoCo stores them sparse or dense."""
    mujoco: Any = _mujoco()
    nefc, values = int(mj_data.nefc), np.asarray(mj_data.efc_J)
    if not mujoco.mj_isSparse(mj_data.model):
        return values.reshape(nefc, m.nv)
    return _dense(values, mj_data.efc_J_rownnz, mj_data.efc_J_rowadr, mj_data.efc_J_colind, nefc, m.nv)


def _slots(m: Model, layout: Layout, mj_data: Any, jac: np.ndarray) -> np.ndarray:
    """The slot of each of MuJoCo's rows (nefc,)."""
    general = {key: i for i, key in enumerate(zip(*(x.tolist() for x in layout.general), strict=True))}
    limit = {j: i for i, j in enumerate(layout.limit_jnt.tolist())}
    _, friction, first_limit, first_contact, _ = layout.offsets
    seen: dict[tuple[int, int], int] = {}
    out = []
    for kind, index, row in zip(mj_data.efc_type.tolist(), mj_data.efc_id.tolist(), jac, strict=True):
        number = seen[kind, index] = seen.get((kind, index), -1) + 1
        if kind == ConstraintType.FRICTION_DOF:
            out.append(friction + index)
        elif kind == ConstraintType.LIMIT_JOINT and m.jnt_type[index] != JointType.BALL:
            upper = row[m.jnt_dofadr[index]] < 0
            out.append(first_limit + limit[index] + layout.nlimit * int(upper))
        elif kind >= ConstraintType.CONTACT_FRICTIONLESS:
            out.append(first_contact + index * layout.nfacet + number)
        else:
            side = number
            if kind == ConstraintType.LIMIT_TENDON:
                side = -1 if row @ _tendon_row(m, mj_data, index) > 0 else 1
            out.append(general[kind, index, side])
    return np.array(out, int)


def _tendon_row(m: Model, mj_data: Any, index: int) -> np.ndarray:
    entries = m.ten_J_rowadr[index] + np.arange(m.ten_J_rownnz[index])
    row = np.zeros(m.nv)
    row[m.ten_J_colind[entries]] = np.asarray(mj_data.ten_J).ravel()[entries]
    return row


def _contact_of(layout: Layout, slots: np.ndarray) -> np.ndarray:
    return (slots - layout.offsets[3]) // layout.nfacet


def _jacobian_parts(
    layout: Layout, empty: Any, mj_data: Any, jac: np.ndarray, slots: np.ndarray, real: np.ndarray, ncon: int
) -> dict[str, np.ndarray]:
    """Jacobian rows of `Constraint`: general ones, and those of contacts in their frames."""
    general, contact = np.array(empty.J_general), np.array(empty.J_contact)
    for row in real[slots[real] < layout.ngeneral]:
        columns = layout.columns[slots[row]] if layout.sparse else np.arange(layout.nv)
        general[slots[row]] = np.where(columns < 0, 0, jac[row, columns])
    if layout.sparse:
        contact[:ncon] = np.nan
        return {"J_general": general, "J_contact": contact}
    for c in range(ncon):
        first, dim = int(mj_data.contact.efc_address[c]), int(mj_data.contact.dim[c])
        if first < 0:
            continue
        if not layout.pyramidal or dim == 1:
            contact[c, :dim] = jac[first : first + dim]
            continue
        pairs = jac[first : first + 2 * (dim - 1)].reshape(dim - 1, 2, -1)
        mu = np.asarray(mj_data.contact.friction[c])[: dim - 1, None]
        contact[c, 0] = pairs[0].mean(0)
        contact[c, 1:dim] = (pairs[:, 0] - pairs[:, 1]) / (2 * np.where(mu, mu, np.inf))
    return {"J_general": general, "J_contact": contact}


def to_mujoco(m: Model, d: Data, mj_data: Any) -> None:
    """Copy the state, all derived fields, contacts and constraint rows into a `mujoco.MjData` of the same model.

    Args:
        d: one world; or a batch, for a sequence of `MjData`, one for each world.
        mj_data: the `MjData` to write to.

    If only the state of the data is valid (the last data of a rollout), only the state is copied.
    """
    if isinstance(mj_data, Sequence):
        if np.shape(d.time) != (len(mj_data),):
            raise ValueError(f"d has {np.shape(d.time)} worlds, wanted {len(mj_data)}, one for each MjData")
        host = jax.device_get(d)
        for i, one in enumerate(mj_data):
            to_mujoco(m, jax.tree.map(lambda x, i=i: x[i], host), one)
        return
    if isinstance(mj_data, Model | Data) or not hasattr(mj_data, "qpos"):
        raise TypeError(f"to_mujoco: mj_data is of type {type(mj_data).__name__}, wanted a mujoco.MjData")
    if np.shape(d.time):
        raise ValueError(f"d is a batch of {np.shape(d.time)} worlds, wanted one, or a list of MjData")
    for name in (*STATE, "plugin_state"):
        _assign(mj_data, name, getattr(d, name))
    if int(d.ncon) < 0:
        return
    _write_rows(m, d, mj_data)
    for name, *_ in DATA_FIELDS:
        if name not in (*OWN, *CONVERTED, *STATE, "plugin_state"):
            _assign(mj_data, name, getattr(d, name))
    mj_data.solver_niter[:1] = np.asarray(d.solver_niter)
    _write_moment(d, mj_data)
    for kind, stat in enumerate(mj_data.warning):
        if kind < len(d.warning.number):
            stat.number, stat.lastinfo = int(d.warning.number[kind]), int(d.warning.lastinfo[kind])
    newer.complete(mj_data)


def _write_rows(m: Model, d: Data, mj_data: Any) -> None:
    mujoco: Any = _mujoco()
    ncon, nefc = min(int(d.ncon), len(d.contact.dist)), min(int(d.nefc), d.efc.layout.max_constraints)
    jac = np.asarray(d.efc_J)[:nefc].astype(np.float64)
    sparse = bool(mujoco.mj_isSparse(mj_data.model))
    mujoco._functions._realloc_con_efc(  # the binding that MuJoCo's own MJX uses
        mj_data, ncon=ncon, nefc=nefc, nJ=int(np.count_nonzero(jac)) if sparse else nefc * m.nv
    )
    for name, *_ in CONTACT_FIELDS:
        getattr(mj_data.contact, name)[:] = np.asarray(getattr(d.contact, name))[:ncon]
    for name in (*ROW_FIELDS, "type", "id"):
        getattr(mj_data, newer.data_name(mj_data, f"efc_{name}"))[:] = np.asarray(getattr(d, f"efc_{name}"))[:nefc]
    for name in ("ne", "nf", "nl"):
        setattr(mj_data, name, int(getattr(d, name)))
    if sparse and nefc:
        target = (mj_data.efc_J_rownnz, mj_data.efc_J_rowadr, mj_data.efc_J_colind)
        mujoco.mju_dense2sparse(mj_data.efc_J, jac, *target)
    elif nefc:
        mj_data.efc_J[:] = jac.ravel()


def _write_moment(d: Data, mj_data: Any) -> None:
    """MuJoCo's sparse Jacobian of the transmissions, rows one after the other."""
    moment, address, room = np.asarray(d.actuator_moment, np.float64), 0, len(mj_data.moment_colind)
    for i, row in enumerate(moment):
        columns = np.flatnonzero(row)[: room - address]
        end = address + len(columns)
        mj_data.moment_rownnz[i], mj_data.moment_rowadr[i] = len(columns), address
        mj_data.moment_colind[address:end], mj_data.actuator_moment[address:end] = columns, row[columns]
        address = end


def _assign(mj_data: Any, name: str, value: Any) -> None:
    value = np.asarray(value)
    if newer.version_of(mj_data) > newer.READ and not hasattr(mj_data, name):
        return
    if value.ndim == 0:
        setattr(mj_data, name, value.item())
    else:
        field = getattr(mj_data, name)
        if field.size != value.size:
            raise ValueError(f"Input field {name} has shape {value.shape}, wanted {field.shape}")
        field[:] = value.reshape(field.shape)
