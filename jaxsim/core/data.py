"""`Data`: the state of one world and everything that the engine computes from it, with mjData's names."""

import functools
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core import fields
from jaxsim.core.describe import describe_contact, describe_data, describe_warning
from jaxsim.core.field_types import ConstraintFields, ContactFields, DataFields, WarningFields
from jaxsim.core.layout import make_layout
from jaxsim.core.model import SIZES, Frozen, Model, cast_like, refuse_unknown
from jaxsim.core.rows import pack_rows, slot_values
from jaxsim.core.types import MINAWAKE
from jaxsim.math.safe import Array

if TYPE_CHECKING:
    from jaxsim.core.field_types import ConstraintChanges, ContactChanges, DataChanges, WarningChanges


class _Struct(Frozen):
    """A frozen PyTree class: leaves are `__slots__`, except those of `static`, which are compared and hashed."""

    __slots__ = ("__weakref__",)

    def __init_subclass__(cls, static: tuple[str, ...] = ()):
        leaves = tuple(name for name in cls.__slots__ if name not in static)
        get, setters = attrgetter(*leaves), tuple(cls.__dict__[name].__set__ for name in (*leaves, *static))

        def aux(x: Any) -> tuple:
            return tuple(getattr(x, name) for name in static)

        def unflatten(static_values: tuple, children: Iterable[Any]) -> Any:
            new = object.__new__(cls)
            for assign, value in zip(setters, (*children, *static_values), strict=True):
                assign(new, value)
            return new

        jax.tree_util.register_pytree_with_keys(
            cls,
            lambda x: ([(jax.tree_util.GetAttrKey(name), getattr(x, name)) for name in leaves], aux(x)),
            unflatten,
            lambda x: (get(x), aux(x)),
        )

    def __init__(self, **values: Any):
        for name in self.__slots__:
            object.__setattr__(self, name, values[name])

    def _replace(self, changes: Mapping[str, Any]) -> Any:
        values = {name: getattr(self, name) for name in self.__slots__}
        refuse_unknown(changes, values, type(self).__name__)
        values.update({name: cast_like(values[name], value) for name, value in changes.items()})
        return type(self)(**values)


def _names(table: list[fields.Field]) -> tuple[str, ...]:
    return tuple(field.name for field in table)


CONTACT_FIELDS = fields.parse(fields.CONTACT)
CONSTRAINT_FIELDS = fields.parse(fields.CONSTRAINT)
DATA_FIELDS = fields.parse(fields.DATA)
WARNING_FIELDS = fields.parse(fields.WARNING)
EMPTY_CONTACT = ("geom", "flex", "elem", "vert", "efc_address")  # fields of contacts that are -1 where there is none


class Contact(_Struct, ContactFields):
    """Contacts of one world, `d.contact`: mjContact's fields as arrays over the contact buffer."""

    __slots__ = _names(CONTACT_FIELDS)

    def __repr__(self) -> str:
        return describe_contact(self)

    def replace(self, **changes: "Unpack[ContactChanges]") -> "Contact":
        """A copy with some fields changed; new values take the dtype of the old ones."""
        return self._replace(changes)


class Constraint(_Struct, ConstraintFields, static=("layout",)):
    """Constraint rows in their slots, `d.efc`: see `jaxsim.core.layout`."""

    __slots__ = (*_names(CONSTRAINT_FIELDS), *_names(fields.parse(fields.JACOBIANS)))

    def replace(self, **changes: "Unpack[ConstraintChanges]") -> "Constraint":
        """A copy with some fields changed; new values take the dtype of the old ones."""
        return self._replace(changes)


class Warning(_Struct, WarningFields):
    """mjWarningStat by kind (mjtWarning), `d.warning`: how often, and the last index."""

    __slots__ = _names(WARNING_FIELDS)

    def __repr__(self) -> str:
        return describe_warning(self)

    def replace(self, **changes: "Unpack[WarningChanges]") -> "Warning":
        """A copy with some fields changed; new values take the dtype of the old ones."""
        return self._replace(changes)


class Data(_Struct, DataFields):
    """The state of one world and everything that the engine computes from it, with mjData's names.

    All shapes are fixed by the model. `contact` has `max_contacts` entries of which the first `ncon` are real.
    Constraint rows live in `efc` in fixed slots (see `jaxsim.core.layout`). MuJoCo's names (`d.efc_force`, `d.efc_J`,
    ...) are properties that pack the active rows, in MuJoCo's order, into arrays of `max_constraints` rows, of which
    the first `nefc` are real. Differences from the bindings: `actuator_moment` and `efc_J` are dense; `solver_niter`
    has one entry.

    Own fields: `maxuse_con` and `maxuse_efc` are the most contacts and rows that this world ever needed;
    `overflow_contacts` and `overflow_constraints` count what was dropped for want of capacity since the last reset.
    """

    __slots__ = (*_names(DATA_FIELDS), *_names(fields.parse(fields.DATA_PARTS)))

    def __repr__(self) -> str:
        return describe_data(self)

    def replace(self, **changes: "Unpack[DataChanges]") -> "Data":
        """A copy with some fields changed; new values take the dtype of the old ones."""
        return self._replace(changes)


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
    for name in EMPTY_CONTACT:
        contact[name][:] = -1
    values["contact"] = Contact(**contact)
    values["efc"] = Constraint(
        **zeros(CONSTRAINT_FIELDS, (layout.nslot,)),
        J_general=np.zeros((layout.ngeneral, layout.columns.shape[1] if layout.sparse else m.nv), dtypes["float"]),
        J_contact=np.zeros(
            (layout.ncontact, layout.condim, *((layout.nside, 6) if layout.sparse else (m.nv,))), dtypes["float"]
        ),
        bodies=np.zeros((layout.ncontact, layout.nside if layout.sparse and layout.flexes else 0), np.int32),
        layout=layout,
    )
    values["warning"] = Warning(**zeros(WARNING_FIELDS))
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
def packer(field: str, batch_axes: int) -> Callable[..., Array]:
    """A compiled function that packs one field of a batch: compiled once for a structure and a shape."""

    def packed(efc: Any, contact: Any, cdof: Array) -> Array:
        return pack_rows(efc.layout, efc.active, slot_values(efc, contact, cdof, field))

    for _ in range(batch_axes):
        packed = jax.vmap(packed)
    return jax.jit(packed)


def _packed_property(field: str) -> property:
    def get(self: Any) -> Array:
        return packer(field, jnp.ndim(self.time))(self.efc, self.contact, self.cdof)

    return property(get, doc=f"efc_{field}: packed rows in MuJoCo's order, of which the first nefc are real.")


PACKED = (*(name for name in _names(CONSTRAINT_FIELDS) if name != "active"), *_names(fields.parse(fields.ROW)))

for _field in PACKED:
    setattr(Data, f"efc_{_field}", _packed_property(_field))
