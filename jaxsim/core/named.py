"""Objects by name, as in MuJoCo's bindings: `m.body("torso").mass`, `d.joint("knee").qpos`.

A kind of object has fields with one entry for each object, and fields of which each object has a range (dofs and
coordinates of joints, values of sensors, pixels of textures). Both follow from the shapes of the fields: `KINDS` lists
the sizes of each kind. Ids are found on the host; the values may be traced or batched.
"""

import functools
import math
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from jaxsim.core.describe import short_value
from jaxsim.core.errors import did_you_mean
from jaxsim.core.struct import Field, fields_of
from jaxsim.core.structure import Structure, per_structure
from jaxsim.core.types import JointType, ObjType

Place = int | slice | np.ndarray
Range = Callable[[Any], tuple[Any, Any]]  # first entries and numbers of entries of all objects


class Kind(NamedTuple):
    """A kind of object: the field with the addresses of its names, its mjtObj, its size, prefixes of its fields.

    `ranges` has the ranges of objects in fields of other sizes, `shape` the shape of an object's range if it is not
    flat.
    """

    names: str
    objtype: ObjType
    size: str
    prefixes: tuple[str, ...]
    ranges: dict[str, Range] = {}  # noqa: RUF012
    shape: Callable[[Any, int], tuple[int, ...]] | None = None


def _range(first: str, count: str) -> Range:
    return lambda s: (getattr(s, first), getattr(s, count))


def _widths(s: Any, width: Callable[[JointType], int]) -> np.ndarray:
    return np.array([width(JointType(t)) for t in s.jnt_type], int)


def _image(s: Any, i: int) -> tuple[int, ...]:
    return int(s.tex_height[i]), int(s.tex_width[i]), int(s.tex_nchannel[i])


def _grid(s: Any, i: int) -> tuple[int, ...]:
    return int(s.hfield_nrow[i]), int(s.hfield_ncol[i])


KINDS = {
    "body": Kind(
        *("name_bodyadr", ObjType.BODY, "nbody", ("body_",)),
        {"nmocap": lambda s: (s.body_mocapid, (s.body_mocapid >= 0).astype(int))},
    ),
    "joint": Kind(
        *("name_jntadr", ObjType.JOINT, "njnt", ("jnt_", "dof_")),
        {
            "nv": lambda s: (s.jnt_dofadr, _widths(s, JointType.dof_width)),
            "nq": lambda s: (s.jnt_qposadr, _widths(s, JointType.qpos_width)),
        },
    ),
    "geom": Kind("name_geomadr", ObjType.GEOM, "ngeom", ("geom_",)),
    "site": Kind("name_siteadr", ObjType.SITE, "nsite", ("site_",)),
    "camera": Kind("name_camadr", ObjType.CAMERA, "ncam", ("cam_",)),
    "light": Kind("name_lightadr", ObjType.LIGHT, "nlight", ("light_",)),
    "flex": Kind("name_flexadr", ObjType.FLEX, "nflex", ("flex_",)),
    "mesh": Kind(
        *("name_meshadr", ObjType.MESH, "nmesh", ("mesh_",)),
        {
            "nmeshvert": _range("mesh_vertadr", "mesh_vertnum"),
            "nmeshface": _range("mesh_faceadr", "mesh_facenum"),
            "nmeshnormal": _range("mesh_normaladr", "mesh_normalnum"),
        },
    ),
    "skin": Kind("name_skinadr", ObjType.SKIN, "nskin", ("skin_",)),
    "hfield": Kind(
        *("name_hfieldadr", ObjType.HFIELD, "nhfield", ("hfield_",)),
        {"nhfielddata": lambda s: (s.hfield_adr, s.hfield_nrow * s.hfield_ncol)},
        _grid,
    ),
    "texture": Kind(
        *("name_texadr", ObjType.TEXTURE, "ntex", ("tex_",)),
        {"ntexdata": lambda s: (s.tex_adr, s.tex_height * s.tex_width * s.tex_nchannel)},
        _image,
    ),
    "material": Kind("name_matadr", ObjType.MATERIAL, "nmat", ("mat_",)),
    "pair": Kind("name_pairadr", ObjType.PAIR, "npair", ("pair_",)),
    "exclude": Kind("name_excludeadr", ObjType.EXCLUDE, "nexclude", ("exclude_",)),
    "equality": Kind("name_eqadr", ObjType.EQUALITY, "neq", ("eq_",)),
    "tendon": Kind(
        *("name_tendonadr", ObjType.TENDON, "ntendon", ("tendon_", "ten_")),
        {"nJten": _range("ten_J_rowadr", "ten_J_rownnz")},
    ),
    "actuator": Kind(
        *("name_actuatoradr", ObjType.ACTUATOR, "nu", ("actuator_",)),
        {"na": _range("actuator_actadr", "actuator_actnum")},
    ),
    "sensor": Kind(
        *("name_sensoradr", ObjType.SENSOR, "nsensor", ("sensor_", "sensor")),
        {"nsensordata": _range("sensor_adr", "sensor_dim")},
    ),
    "numeric": Kind(
        *("name_numericadr", ObjType.NUMERIC, "nnumeric", ("numeric_",)),
        {"nnumericdata": _range("numeric_adr", "numeric_size")},
    ),
    "text": Kind(*("name_textadr", ObjType.TEXT, "ntext", ("text_",)), {"ntextdata": _range("text_adr", "text_size")}),
    "tuple": Kind(
        *("name_tupleadr", ObjType.TUPLE, "ntuple", ("tuple_",)), {"ntupledata": _range("tuple_adr", "tuple_size")}
    ),
    "key": Kind("name_keyadr", ObjType.KEY, "nkey", ("key_",)),
    "plugin": Kind("name_pluginadr", ObjType.PLUGIN, "nplugin", ("plugin_",)),
}
IN_DATA = ("body", "joint", "geom", "site", "camera", "light", "equality", "tendon", "actuator", "sensor")
_READ_IN_DATA = (  # fields of a model for the ranges of kinds in data
    *("names", "body_mocapid", "jnt_type", "jnt_dofadr", "jnt_qposadr", "ten_J_rowadr", "ten_J_rownnz"),
    *("actuator_actadr", "actuator_actnum", "sensor_adr", "sensor_dim"),
)


@per_structure
def data_index(m: Any) -> Structure:
    """Return the names and addresses of objects in `Data`, as part of the model's structure."""
    return Structure({n: getattr(m, n) for n in (*_READ_IN_DATA, *(KINDS[kind].names for kind in IN_DATA))})


def names_of(m: Any, kind: str) -> list[str]:
    """Return the names of all objects of a kind, empty for objects without a name.

    Raise KeyError for an unknown kind.
    """
    return _names_and_ids(m, kind)[0]


@per_structure
def _names_and_ids(m: Any, kind: str) -> tuple[list[str], dict[str, int]]:
    if kind not in KINDS:
        raise KeyError(f"unknown object type {kind!r}: one of {', '.join(KINDS)}")
    names = [m.names[a : m.names.index(0, a)].decode() for a in getattr(m, KINDS[kind].names)]
    return names, {name: i for i, name in reversed(list(enumerate(names))) if name}


def find(m: Any, kind: str, key: Any) -> int:
    """Return the id of an object given by name or id.

    Raises KeyError, with the nearest names, if there is none, and TypeError for a traced id.
    """
    names, ids = _names_and_ids(m, kind)
    if isinstance(key, str):
        if key in ids:
            return ids[key]
        raise KeyError(f"no {kind} named {key!r}{did_you_mean(key, ids, 3)}")
    if isinstance(key, jax.core.Tracer):
        raise TypeError(
            f"the id of a {kind} is traced, and objects are found on the host: index the field, as in "
            f"m.{KINDS[kind].prefixes[0]}...[id]"
        )
    index = int(key)
    if not 0 <= index < len(names):
        raise KeyError(f"{kind} {index} is out of range: the model has {len(names)}")
    return index


@functools.cache
def attributes(owner: type, kind: str) -> dict[str, Field]:
    """Return the fields of a kind of object in Model or Data by their names in views.

    Prefixes are left out. Fields without a prefix count in Data (`xpos` of bodies), and `qpos0` and `qpos_spring` of
    joints.
    """
    table, out = KINDS[kind], {}
    of_data = any(field.name == "qvel" for field in fields_of(owner))
    for sizes in ((table.size,), tuple(table.ranges)):
        for field in fields_of(owner):
            if field.shape and field.shape[0] in sizes:
                bare = "" if of_data or field.shape[0] == "nq" else None
                prefix = next((p for p in table.prefixes if field.name.startswith(p)), bare)
                if prefix is not None:
                    out.setdefault(field.name.removeprefix(prefix), field)
    return out


def locate(m: Any, kind: str, ids: Any, field: Field) -> Place:
    """Return the position of the entries of one object (an id), or of several (an array), on a field's first axis."""
    if field.shape[0] == KINDS[kind].size:
        return ids
    first, count = KINDS[kind].ranges[str(field.shape[0])](m)
    if np.ndim(ids) == 0:
        return slice(int(first[ids]), int(first[ids]) + int(count[ids]))
    return np.concatenate([np.zeros(0, int), *(first[i] + np.arange(count[i]) for i in ids)])


class View:
    """One object, or several of a kind, of a model or of data: fields by MuJoCo's names, and `id` and `name`.

    Shapes are those of MuJoCo's bindings: a number is an array of one entry. Fields of several objects have an axis of
    objects; ranges (`qpos` of joints) are concatenated. `set` returns the changed model or data.
    """

    def __init__(self, owner: Any, index: Any, kind: str, key: Any):
        many = isinstance(key, list | tuple) or (isinstance(key, np.ndarray | jax.Array) and key.ndim > 0)
        ids = np.array([find(index, kind, one) for one in key], int) if many else find(index, kind, key)
        self.__dict__.update(_owner=owner, _index=index, _kind=kind, id=ids)

    @property
    def name(self) -> Any:
        """The name, empty if there is none; a list of several objects' names."""
        names = names_of(self._index, self._kind)
        return names[self.id] if np.ndim(self.id) == 0 else [names[i] for i in self.id]

    def __index__(self) -> int:
        return int(self.id)

    def _field(self, name: str) -> Field:
        known = attributes(type(self._owner), self._kind)
        if name not in known:
            owner = type(self._owner).__name__
            near = "" if name.startswith("_") else did_you_mean(name, [*known, "id", "name"])
            raise AttributeError(f"a {self._kind} has no field {name!r} in {owner}{near}")
        return known[name]

    def _place(self, field: Field) -> Place:
        place = locate(self._index, self._kind, self.id, field)
        return slice(place, place + 1) if isinstance(place, int) and len(field.shape) == 1 else place

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_owner" not in self.__dict__:
            raise AttributeError(name)
        field = self._field(name)
        value, place = getattr(self._owner, field.name), self._place(field)
        if isinstance(value, bytes):
            return value[place]
        shape, single = KINDS[self._kind].shape, np.ndim(self.id) == 0
        found = value[(..., place, *(slice(None),) * (len(field.shape) - 1))]
        if shape and single and field.shape[0] in KINDS[self._kind].ranges:
            return found.reshape(*found.shape[:-1], *shape(self._index, self.id))
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"immutable: use .set({name}=...), which gives the changed {type(self._owner).__name__}")

    def set(self, **changes: Any) -> Any:
        """Return the model or data with these fields of the object changed: `m = m.geom("foot").set(friction=...)`."""
        new = {}
        for name, value in changes.items():
            field = self._field(name)
            array, place = getattr(self._owner, field.name), self._place(field)
            new[field.name] = assign(array, (..., place, *(slice(None),) * (len(field.shape) - 1)), value)
        return self._owner.replace(**new)

    def __dir__(self) -> list[str]:
        return sorted([*attributes(type(self._owner), self._kind), "id", "name", "set"])

    def __repr__(self) -> str:
        head = f"{type(self._owner).__name__}.{self._kind}: id={self.id}, name={self.name!r}"
        values = (f"{name}={short_value(getattr(self, name))}" for name in attributes(type(self._owner), self._kind))
        body = textwrap.fill(", ".join(values), 118, initial_indent="  ", subsequent_indent="  ")
        return f"{head}\n{body}"


def assign(array: Any, place: tuple, value: Any) -> Any:
    """Return a copy of an array, of NumPy or JAX, with the entries at `place` set.

    The value has as many numbers as there are entries, or is broadcast to them; raises ValueError for another shape.
    """
    shape = np.shape(array[place])
    if not isinstance(value, jax.Array):
        value = np.asarray(value)
    if value.size == math.prod(shape):
        value = value.reshape(shape)
    elif not _fits(value.shape, shape):
        raise ValueError(f"a value of shape {value.shape} cannot be set; wanted {shape}")
    if isinstance(array, np.ndarray) and not isinstance(value, jax.core.Tracer):
        out = np.array(array)
        out[place] = value
        return out
    return jnp.asarray(array).at[place].set(value)


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    tail = wanted[len(wanted) - len(shape) :]
    return len(shape) <= len(wanted) and all(n in (1, k) for n, k in zip(shape, tail, strict=True))


def objects(kind: str, of_data: bool = False) -> Callable[[Any, Any], View]:
    """Return the method of a model or of data that finds objects of a kind."""

    def get(self: Any, key: Any) -> View:
        return View(self, self.index if of_data else self.structure, kind, key)

    get.__name__ = get.__qualname__ = kind
    get.__doc__ = f"The {kind} of this name or id, with its fields; several for a list of names or ids."
    return get
