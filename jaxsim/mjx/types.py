"""`Model`, `Data` and `Contact` with MJX's attributes and shapes, around jaxsim's own."""

import dataclasses
import enum
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

import jaxsim.core.data as core
from jaxsim.core.contact import CONSTRAINT_FIELDS
from jaxsim.core.contact import Contact as CoreContact
from jaxsim.core.data import DATA_FIELDS
from jaxsim.core.model import MODEL_FIELDS, SIZES
from jaxsim.core.model import Model as CoreModel
from jaxsim.core.rows import unpack_rows
from jaxsim.core.types import JacobianType
from jaxsim.math.safe import Array

MATRICES = ("xmat", "ximat", "geom_xmat", "site_xmat", "cam_xmat")  # (n, 3, 3) in MJX, (n, 9) in MuJoCo and here
ROW_FIELDS = tuple(f.name for f in CONSTRAINT_FIELDS if f.name != "active")
MODEL_MATRICES = ("cam_mat0",)
FAR = 1e10  # distance of empty entries of the contact buffer: MJX's programs look for dist < 0
SPARSE_DOFS = 60  # MJX's `jacobian="auto"` is sparse from here on


class Impl(enum.Enum):
    """MJX's names of implementations; jaxsim has one, named "jax"."""

    CPP = "cpp"
    C = "cpp"  # noqa: PIE796  # MJX's other name of it
    JAX = "jax"
    WARP = "warp"

    @classmethod
    def _missing_(cls, value: object) -> "Impl | None":
        """Return the member of a name in capitals."""
        lower = value.lower() if isinstance(value, str) else None
        return next((member for member in cls if member.value == lower), None)


class Field(NamedTuple):
    """Entry of `Data.fields()`."""

    name: str


def as_matrix(x: Any) -> Any:
    """Return the rotation matrices (..., 3, 3) of (..., 9); placeholders are returned unchanged."""
    return x.reshape(*x.shape[:-1], 3, 3) if np.ndim(x) else x


def _flat(old: Any, new: Any) -> Any:
    """Flatten matrices of a new value to (..., 9) if the old value has that shape.

    Placeholders are returned unchanged.
    """
    shape = np.shape(new)
    if np.ndim(old) >= 1 and len(shape) >= 2 and shape[-2:] == (3, 3) and np.shape(old)[-1] == 9:
        return jnp.reshape(new, (*shape[:-2], 9))
    return new


def _tree_replace(node: Any, changes: Mapping[str, Any]) -> Any:
    """Return a copy with the fields of dotted names changed."""
    for path, value in changes.items():
        first, _, rest = path.removeprefix("_impl.").partition(".")
        new = _tree_replace(getattr(node, first), {rest: value}) if rest else value
        node = node.replace(**{first: new})
    return node


class _Wrapper:
    """An immutable PyTree node around an object of the core, its attribute `wrapped`, whose attributes it exposes."""

    __slots__ = ()
    wrapped: str
    matrices: tuple[str, ...] = ()  # fields that have another shape in MJX

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == self.wrapped:
            raise AttributeError(name)
        value = getattr(getattr(self, self.wrapped), name)
        return as_matrix(value) if name in self.matrices else value

    def __repr__(self) -> str:
        return f"mjx.{getattr(self, self.wrapped)!r}"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"mjx.{type(self).__name__} is immutable: use .replace({name}=...)")

    def tree_replace(self, params: Mapping[str, Any]) -> Any:
        """Return a copy with the fields of dotted names changed: `tree_replace({"opt.timestep": 0.001})`."""
        return _tree_replace(self, params)

    @property
    def impl(self) -> Impl:
        """Name of the corresponding MJX implementation."""
        return Impl.JAX

    @property
    def _impl(self) -> Any:
        return self


class Model(_Wrapper):
    """`jaxsim.Model`, available as `model`, with MJX's shapes; `signature` is that of the MjModel."""

    __slots__ = ("model", "signature")
    wrapped, matrices = "model", MODEL_MATRICES

    def __init__(self, model: CoreModel, signature: int = 0):
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "signature", signature)

    @property
    def opt(self) -> "Option":
        """Options with MJX's methods."""
        return Option(self.model.opt)

    @property
    def stat(self) -> "Statistic":
        """Statistics with MJX's methods."""
        return Statistic(self.model.stat)

    @property
    def names(self) -> bytes:
        """All names, each with a terminator."""
        return self.model.names

    @classmethod
    def fields(cls) -> tuple[Field, ...]:
        """Return the fields, by their names."""
        return tuple(Field(name) for name in (*SIZES, "opt", "stat", *(f.name for f in MODEL_FIELDS)))

    def replace(self, **changes: Any) -> "Model":
        """Return a copy with some fields changed."""
        changes = {name: _unwrapped(value) for name, value in changes.items()}
        changes = {n: _flat(getattr(self.model, n), x) if n in MODEL_MATRICES else x for n, x in changes.items()}
        return Model(self.model.replace(**changes), self.signature)


class _Part(_Wrapper):
    """Options or statistics with `tree_replace`."""

    __slots__ = ("value",)
    wrapped = "value"

    def __init__(self, value: Any):
        object.__setattr__(self, "value", value)

    def replace(self, **changes: Any) -> Any:
        """Return a copy with some fields changed."""
        return type(self)(self.value.replace(**changes))


class Option(_Part):
    """`jaxsim.Option` with MJX's additions."""

    __slots__ = ()

    @property
    def has_fluid_params(self) -> bool:
        """Whether fluid forces are computed."""
        return bool(self.value.fluid)


class Statistic(_Part):
    """`jaxsim.Statistic` with `tree_replace`."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class Contact:
    """Contacts with MJX's fields and shapes; empty entries have no geoms (-1) and are far apart (`dist` of 1e10).

    `dim` and `efc_address` are NumPy arrays outside of compiled functions, as in MJX, where they never change.
    """

    dist: Any
    pos: Any
    frame: Any
    includemargin: Any
    friction: Any
    solref: Any
    solreffriction: Any
    solimp: Any
    dim: Any
    geom: Any
    efc_address: Any

    def __post_init__(self) -> None:
        for name in ("dim", "efc_address"):
            object.__setattr__(self, name, _host(getattr(self, name)))

    @property
    def geom1(self) -> Array:
        """First geom of each contact."""
        return self.geom[..., 0]

    @property
    def geom2(self) -> Array:
        """Second geom of each contact."""
        return self.geom[..., 1]

    @classmethod
    def fields(cls) -> tuple[Any, ...]:
        """Return the fields, like `dataclasses.fields`."""
        return dataclasses.fields(cls)

    def replace(self, **changes: Any) -> "Contact":
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def tree_replace(self, params: Mapping[str, Any]) -> "Contact":
        """Return a copy with the fields of these names changed."""
        return self.replace(**params)


def _host(value: Any) -> Any:
    """Return an array as a NumPy array if its numbers are known and local."""
    known = isinstance(value, jax.Array) and not isinstance(value, Tracer)
    return np.asarray(value) if known and value.is_fully_addressable else value


class Data(_Wrapper):
    """`jaxsim.Data`, available as `data`, with MJX's shapes."""

    __slots__ = ("data", "structure")
    wrapped, matrices = "data", MATRICES

    def __init__(self, data: core.Data, structure: Any):
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "structure", structure)

    def __getitem__(self, key: Any) -> "Data":
        """Return the worlds of a batch at `key`."""
        return jax.tree.map(lambda x: x[key], self)

    @property
    def contact(self) -> Contact:
        """Contacts with MJX's shapes."""
        contact = self.data.contact
        fields = {f.name: getattr(contact, f.name) for f in Contact.fields()}
        fields["frame"] = as_matrix(contact.frame)
        if np.ndim(contact.dist):
            fields["dist"] = jnp.where(contact.geom[..., 0] >= 0, contact.dist, FAR)
        return Contact(**fields)

    @property
    def qM(self) -> Array:
        """Inertia matrix: dense (nv, nv), or MuJoCo's entries (nM,) if MJX's is sparse."""
        s = self.structure
        return self.data.qM if s.mjx_sparse else symmetric(s, self.data.M)

    @property
    def ten_J(self) -> Array:
        """Jacobian of the lengths of tendons (ntendon, nv)."""
        return _scatter(self.data.ten_J, *self._tendon_entries(), (self.structure.ntendon, self.structure.nv))

    def _tendon_entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and columns of the stored entries of the Jacobian of tendons."""
        s = self.structure
        columns = [s.ten_J_colind[a : a + n] for a, n in zip(s.ten_J_rowadr, s.ten_J_rownnz, strict=True)]
        return np.repeat(np.arange(s.ntendon), s.ten_J_rownnz), np.concatenate([*columns, np.zeros(0, int)])

    @property
    def solver_niter(self) -> Array:
        """Iterations of the solver, an array of one entry in jaxsim and in MuJoCo."""
        return self.data.solver_niter[..., 0]

    @property
    def qLD(self) -> Array:
        """Factors of M; if MJX's M is sparse, in the order of qM, as in MJX."""
        s = self.structure
        return jnp.zeros_like(self.data.qM).at[..., s.mapM2M].set(self.data.qLD) if s.mjx_sparse else self.data.qLD

    @classmethod
    def fields(cls) -> tuple[Field, ...]:
        """Return the fields, by their names."""
        return tuple(Field(f.name) for f in DATA_FIELDS)

    def replace(self, **changes: Any) -> "Data":
        """Return a copy with some fields changed."""
        flat: dict[str, Any] = {}
        efc = self.data.efc
        for name, value in changes.items():
            if name in MATRICES:
                flat[name] = _flat(getattr(self.data, name), value)
            elif name == "qM" and np.shape(value)[-2:] == (self.structure.nv, self.structure.nv):
                flat |= self._inertia(value)
            elif name == "solver_niter":
                flat[name] = jnp.asarray(value)[..., None]
            elif name == "ten_J":
                rows, columns = self._tendon_entries()
                flat[name] = jnp.asarray(value)[..., rows, columns]
            elif name.startswith("efc_") and name.removeprefix("efc_") in ROW_FIELDS:
                rows = unpack_rows(efc.layout, efc.active, jnp.asarray(value))
                efc = efc.replace(**{name.removeprefix("efc_"): rows})
            elif isinstance(value, Contact):
                flat[name] = _core_contact(self.data.contact, value)
            elif name != "_impl":
                flat[name] = _unwrapped(value)
        return Data(self.data.replace(**flat, **({} if efc is self.data.efc else {"efc": efc})), self.structure)

    def _inertia(self, dense: Array) -> dict[str, Array]:
        """Return the stored entries of M from a dense matrix, in both orders."""
        s, data = self.structure, self.data
        entries = jnp.asarray(dense)[..., np.repeat(np.arange(s.nv), s.M_rownnz), s.M_colind]
        return {"M": entries, "qM": data.qM.at[..., s.mapM2M].set(entries)}


class DataStructure:
    """Parts of a model's structure that `Data` needs; equal for equal models."""

    def __init__(self, m: CoreModel):
        auto = m.opt.jacobian == JacobianType.AUTO and m.nv >= SPARSE_DOFS
        self.mjx_sparse = m.opt.jacobian == JacobianType.SPARSE or auto
        self._structure = m.structure

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_structure":
            raise AttributeError(name)
        return getattr(self._structure, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DataStructure):
            return False
        return self._structure == other._structure and self.mjx_sparse == other.mjx_sparse

    def __hash__(self) -> int:
        return hash((self._structure, self.mjx_sparse))


def _scatter(values: Array, row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> Array:
    """Return the dense matrices (..., *shape) with the values (..., n) at these entries."""
    flat = row.astype(int) * shape[1] + column.astype(int)
    out = jnp.zeros((*values.shape[:-1], shape[0] * shape[1]), values.dtype)
    return out.at[..., flat].set(values[..., : len(flat)]).reshape(*values.shape[:-1], *shape)


def _core_contact(old: CoreContact, new: Contact) -> CoreContact:
    """Return jaxsim's contacts with the fields of MJX's; empty entries keep their distance."""
    fields = {f.name: getattr(new, f.name) for f in Contact.fields()}
    fields["frame"] = _flat(old.frame, new.frame)
    fields["dist"] = jnp.where(new.geom[..., 0] >= 0, new.dist, old.dist)
    return old.replace(**fields)


def symmetric(s: Any, entries: Array) -> Array:
    """Return the dense symmetric matrices (..., nv, nv) of the stored lower entries (..., nC), as in `d.M`."""
    lower = _scatter(entries, np.repeat(np.arange(s.nv), s.M_rownnz), s.M_colind, (s.nv, s.nv))
    return lower + jnp.swapaxes(jnp.tril(lower, -1), -1, -2)


def _unwrapped(value: Any) -> Any:
    return value.value if isinstance(value, _Part) else value


def _register(kind: type, child: str, static: Callable[[Any], Any], make: Callable[[Any, Any], Any]) -> None:
    """Register a wrapper as a PyTree of its child; `make(child, static)` rebuilds it."""
    jax.tree_util.register_pytree_with_keys(
        kind,
        lambda x: (((jax.tree_util.GetAttrKey(child), getattr(x, child)),), static(x)),
        lambda static, children: make(next(iter(children)), static),
    )


_register(Model, "model", lambda m: m.signature, Model)
_register(Data, "data", lambda d: d.structure, Data)
for _part in (Option, Statistic):
    _register(_part, "value", type, lambda value, kind: kind(value))
jax.tree_util.register_dataclass(Contact)
