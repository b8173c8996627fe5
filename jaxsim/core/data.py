"""`Data`: the state of one world and everything that the engine computes from it, with mjData's names.

All shapes are fixed by the model. `contact` has `max_contacts` entries of which the first `ncon` are real. Constraint
rows live in `efc` in fixed slots (see `jaxsim.core.layout`); the names of MuJoCo (`d.efc_force`, `d.efc_J`, ...) are
properties that pack the active rows, in MuJoCo's order, into arrays of `max_constraints` rows of which the first
`nefc` are real. Differences from the bindings: `actuator_moment` and `efc_J` are dense; `solver_niter` has one entry.

Own fields: `maxuse_con` and `maxuse_efc` are the most contacts and rows that this world ever asked for;
`overflow_contacts` and `overflow_constraints` count what was dropped for want of capacity since the last reset.
"""

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core import fields
from jaxsim.core.layout import make_layout
from jaxsim.core.model import SIZES, Model, _cast_like, _Frozen, _refuse_unknown
from jaxsim.core.rows import pack_rows, slot_values
from jaxsim.core.types import MINAWAKE

Array = Any
NWARNING = 7


def _struct(name: str, doc: str, names: tuple[str, ...], static: tuple[str, ...] = ()) -> type:
    """A frozen PyTree class with the given leaves, static parts and a `replace`."""
    get, get_static = attrgetter(*names), tuple(static)

    def init(self, **values: Any):
        for field in (*names, *static):
            object.__setattr__(self, field, values[field])

    def replace(self, **changes: Any):
        """A copy with some fields changed; new values take the dtype of the old ones."""
        values = {field: getattr(self, field) for field in (*names, *static)}
        _refuse_unknown(changes, values, name)
        values.update({k: _cast_like(values[k], v) for k, v in changes.items()})
        return cls(**values)

    body = {"__slots__": (*names, *static, "__weakref__"), "__init__": init, "replace": replace, "__doc__": doc}
    cls = type(name, (_Frozen,), body)
    cls.__module__ = __name__

    def aux(x: Any) -> tuple:
        return tuple(getattr(x, s) for s in get_static)

    setters = tuple(cls.__dict__[n].__set__ for n in (*names, *static))

    def unflatten(static_values: tuple, children: tuple) -> Any:
        new = object.__new__(cls)
        for assign, value in zip(setters, (*children, *static_values), strict=True):
            assign(new, value)
        return new

    jax.tree_util.register_pytree_with_keys(
        cls,
        lambda x: ([(jax.tree_util.GetAttrKey(n), getattr(x, n)) for n in names], aux(x)),
        unflatten,
        lambda x: (get(x), aux(x)),
    )
    return cls


CONTACT_FIELDS = fields.parse(fields.CONTACT)
CONSTRAINT_FIELDS = fields.parse(fields.CONSTRAINT)
DATA_FIELDS = fields.parse(fields.DATA)

Contact = _struct(
    "Contact",
    "Contacts of one world, `d.contact`: mjContact's fields as arrays over the contact buffer.",
    tuple(n for n, *_ in CONTACT_FIELDS),
)
Constraint = _struct(
    "Constraint",
    "Constraint rows in their slots: see `jaxsim.core.layout`. `state` is mjtConstraintState, `force` the row's force.",
    (*(n for n, *_ in CONSTRAINT_FIELDS), "J_general", "J_contact"),
    ("layout",),
)
Warning = _struct(
    "Warning", "mjWarningStat by kind (mjtWarning): how often, and the last index.", ("number", "lastinfo")
)
Data = _struct(
    "Data",
    __doc__,
    (*(n for n, *_ in DATA_FIELDS), "contact", "efc", "warning"),
)


def _default_dtypes(host: bool) -> dict[str, Any]:
    real = np.float64 if host else jax.dtypes.canonicalize_dtype(np.float64)
    return {"float": real, "int": np.int32, "bool": np.bool_}


def allocate(m: Model) -> Data:
    """`Data` of the final shapes and dtypes at qpos0, everything else zero: no histories, all trees awake.

    A model on the host (numpy leaves) gives numpy data. `jaxsim.make_data` is the one for users.
    """
    host = isinstance(m.qpos0, np.ndarray)
    dtypes = _default_dtypes(host)
    sizes = {n: getattr(m, n) for n in SIZES}
    layout = make_layout(m)

    def zeros(table: list, lead: tuple[int, ...] = ()) -> dict[str, np.ndarray]:
        return {n: np.zeros(lead + fields.evaluate(shape, sizes), dtypes[kind]) for n, kind, shape, *_ in table}

    values: dict[str, Any] = zeros(DATA_FIELDS)
    contact = zeros(CONTACT_FIELDS, (layout.ncontact,))
    contact["geom"][:] = -1
    contact["efc_address"][:] = -1
    values["contact"] = Contact(**contact)
    values["efc"] = Constraint(
        **zeros(CONSTRAINT_FIELDS, (layout.nslot,)),
        J_general=np.zeros((layout.ngeneral, layout.columns.shape[1] if layout.sparse else m.nv), dtypes["float"]),
        J_contact=np.zeros((layout.ncontact, layout.condim, *((2, 6) if layout.sparse else (m.nv,))), dtypes["float"]),
        layout=layout,
    )
    values["warning"] = Warning(number=np.zeros(NWARNING, np.int32), lastinfo=np.zeros(NWARNING, np.int32))
    values["eq_active"][:] = m.eq_active0
    d = Data(**values)
    return at_qpos0(m, d if host else jax.device_put(d))


def at_qpos0(m: Model, d: Data) -> Data:
    """`d` with positions and mocap poses of qpos0 and all trees awake."""
    mocap = np.flatnonzero(m.body_mocapid >= 0)
    mocap = mocap[np.argsort(m.body_mocapid[mocap])]
    asleep = np.full(m.ntree, -(1 + MINAWAKE))
    return d.replace(qpos=m.qpos0, mocap_pos=m.body_pos[mocap], mocap_quat=m.body_quat[mocap], tree_asleep=asleep)


def reset_to_keyframe(m: Model, d: Data, key: int) -> Data:
    """`d` with time, positions, velocities, activations, mocap poses and controls of keyframe `key`."""
    return d.replace(
        time=m.key_time[key],
        qpos=m.key_qpos[key],
        qvel=m.key_qvel[key],
        act=m.key_act[key],
        ctrl=m.key_ctrl[key],
        mocap_pos=m.key_mpos[key].reshape(d.mocap_pos.shape),
        mocap_quat=m.key_mquat[key].reshape(d.mocap_quat.shape),
    )


@functools.cache
def _packer(field: str, batch_axes: int) -> Callable[..., Array]:
    """A compiled function that packs one field of a batch: compiled once for a structure and a shape."""

    def packed(efc: Any, contact: Any, cdof: Array) -> Array:
        return pack_rows(efc.layout, efc.active, slot_values(efc, contact, cdof, field))

    for _ in range(batch_axes):
        packed = jax.vmap(packed)
    return jax.jit(packed)


def _packed_property(field: str) -> property:
    def get(self: Any) -> Array:
        return _packer(field, jnp.ndim(self.time))(self.efc, self.contact, self.cdof)

    return property(get, doc=f"efc_{field}: packed rows in MuJoCo's order, of which the first nefc are real.")


PACKED = (*(n for n, *_ in CONSTRAINT_FIELDS if n != "active"), "type", "id", "J")

for _field in PACKED:
    setattr(Data, f"efc_{_field}", _packed_property(_field))
