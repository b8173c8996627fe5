"""`Model`: what the compiler makes and the engine reads, structure apart from numbers.

A `Model` has mjModel's fields by their names. Integer, boolean and name fields are *structure*: numpy arrays in the
PyTree's static part, hashed once by content, so that two loads of one file share one compilation. Every float that the
physics reads is a *leaf*: it can be batched, differentiated and replaced. `jaxsim.core.fields` says which is which.
"""

import dataclasses
import difflib
import hashlib
import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import jax
import numpy as np

from jaxsim.core import fields
from jaxsim.core.callbacks import Callbacks
from jaxsim.core.describe import describe_option, option_value
from jaxsim.core.field_types import ModelFields, OptionFields
from jaxsim.core.types import EqType, ObjType

if TYPE_CHECKING:
    from jaxsim.core.field_types import ModelChanges, OptionChanges, StatisticChanges

SIZES = tuple(f.name for f in fields.parse(fields.SIZES))
CAPACITIES = ("max_contacts", "max_constraints")
MODEL_FIELDS = fields.parse(fields.MODEL)
FLOATS = tuple(f.name for f in MODEL_FIELDS if f.kind == "float")
ARRAYS = tuple(f.name for f in MODEL_FIELDS if f.kind not in ("float", "bytes"))
BYTES = tuple(f.name for f in MODEL_FIELDS if f.kind == "bytes")
OPTION_FLOATS = tuple(f.name for f in fields.parse(fields.OPTION) if f.kind == "float")
OPTION_INTS = tuple(f.name for f in fields.parse(fields.OPTION) if f.kind == "int")
OWN_OPTIONS = ("fluid", "solver_kernel")  # that MuJoCo does not have
FLUID_OPTIONS = ("density", "viscosity")  # options that switch `fluid` on
STATIC_DTYPES = {"int": np.int32, "bool": np.bool_, "char": np.uint8}
ASSET_DTYPES = {"tex_data": np.uint8, "bvh_aabb": np.float64, "oct_aabb": np.float64, "oct_coeff": np.float64}

# name of the object type in `name2id` -> (field with the addresses of its names, its mjtObj)
NAMED = {
    "body": ("name_bodyadr", ObjType.BODY),
    "joint": ("name_jntadr", ObjType.JOINT),
    "geom": ("name_geomadr", ObjType.GEOM),
    "site": ("name_siteadr", ObjType.SITE),
    "camera": ("name_camadr", ObjType.CAMERA),
    "light": ("name_lightadr", ObjType.LIGHT),
    "flex": ("name_flexadr", ObjType.FLEX),
    "mesh": ("name_meshadr", ObjType.MESH),
    "skin": ("name_skinadr", ObjType.SKIN),
    "hfield": ("name_hfieldadr", ObjType.HFIELD),
    "texture": ("name_texadr", ObjType.TEXTURE),
    "material": ("name_matadr", ObjType.MATERIAL),
    "pair": ("name_pairadr", ObjType.PAIR),
    "exclude": ("name_excludeadr", ObjType.EXCLUDE),
    "equality": ("name_eqadr", ObjType.EQUALITY),
    "tendon": ("name_tendonadr", ObjType.TENDON),
    "actuator": ("name_actuatoradr", ObjType.ACTUATOR),
    "sensor": ("name_sensoradr", ObjType.SENSOR),
    "numeric": ("name_numericadr", ObjType.NUMERIC),
    "text": ("name_textadr", ObjType.TEXT),
    "tuple": ("name_tupleadr", ObjType.TUPLE),
    "key": ("name_keyadr", ObjType.KEY),
    "plugin": ("name_pluginadr", ObjType.PLUGIN),
}


class Structure:
    """Everything of a model that shapes the program: sizes, integer and boolean arrays, names, assets, capacities.

    Immutable; equality and hash are those of a digest of the content, taken once, when it is first asked for.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, values: Mapping[str, Any]):
        for name in sorted(values):
            value = values[name]
            if isinstance(value, np.ndarray):
                value = np.ascontiguousarray(value)
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @cached_property
    def _digest(self) -> bytes:
        digest = hashlib.blake2b(digest_size=16)
        for name, value in self.values().items():
            if isinstance(value, np.ndarray):
                digest.update(f"{name}{value.dtype.str}{value.shape}".encode())
                digest.update(value.data if value.size else b"")
            else:
                digest.update(f"{name}={value!r}".encode())
        return digest.digest()

    @cached_property
    def _hash(self) -> int:
        return hash(self._digest)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Structure) and self._digest == other._digest)

    def __setattr__(self, name: str, value: Any):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}; use replace")

    def __reduce__(self):
        return Structure, (self.values(),)

    @property
    def source(self) -> Any:
        """The `Spec` that this structure was compiled from, None where there was none; takes no part in equality."""
        return self.__dict__.get("_source")

    def remember(self, source: Any) -> None:
        """Keep the `Spec` that this structure was compiled from."""
        object.__setattr__(self, "_source", source)

    def values(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if not k.startswith("_")}


class Frozen:
    """Attribute assignment refused: `replace` makes a changed copy."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any):
        raise dataclasses.FrozenInstanceError(f"{type(self).__name__} is immutable: use .replace({name}=...)")

    if not TYPE_CHECKING:  # a type checker that sees it takes any name for a field

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError for a name that is no field, with the nearest."""
            what = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(what + ("" if name.startswith("_") else _did_you_mean(name, dir(type(self)))))


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def cast_like(old: Any, new: Any) -> Any:
    """A value with the dtype of the one that it replaces; placeholders (axes, None) pass as they are."""
    if isinstance(old, np.ndarray):
        return np.asarray(new, dtype=old.dtype)
    if isinstance(old, jax.Array):
        # a copy of what the host may change later: asarray can share a numpy array's memory
        convert = jax.numpy.array if isinstance(new, np.ndarray) else jax.numpy.asarray
        return convert(new, dtype=old.dtype)
    return new


class Option(Frozen, OptionFields):
    """Physics options, `m.opt`: mjOption's fields. Floats are leaves, integers and flags are structure.

    Own fields, both structure: `fluid` says whether the program computes fluid forces at all. It is on when the
    compiled model has a density or viscosity, and `replace` of either turns it on (unless with a plain zero). To
    differentiate by density at zero, turn it on by hand: `opt.replace(fluid=1)`. With
    `solver_kernel` 0 the platform of the program chooses the solver: on CUDA a warp a world in one kernel, on a CPU
    with a C compiler machine code, elsewhere operations of XLA, with the same answers and gradient. 1 forces the kernel
    (on a CPU by its C compiler, for tests), -1 the operations, of the solver and of the rest of a step.
    """

    __slots__ = (*OPTION_FLOATS, *OPTION_INTS)

    def __init__(self, **values: Any):
        for name in self.__slots__:
            object.__setattr__(self, name, values[name])

    def __repr__(self) -> str:
        return describe_option(self, OPTION_FLOATS, OPTION_INTS)

    def replace(self, **changes: "Unpack[OptionChanges]") -> "Option":
        """A copy with some fields changed; new values take the dtype of the old ones.

        Choices may be given by MJCF's words: `replace(integrator="RK4", cone="elliptic")`.
        """
        values, given = {name: getattr(self, name) for name in self.__slots__}, dict[str, Any](changes)
        refuse_unknown(given, values, "Option")
        for name, value in given.items():
            values[name] = option_value(name, value) if name in OPTION_INTS else cast_like(values[name], value)
        if any(name in given and not _is_plain_zero(given[name]) for name in FLUID_OPTIONS):
            values["fluid"] = 1
        return Option(**values)


def _is_plain_zero(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and value == 0)


class Statistic(NamedTuple):
    """Statistics of the model at qpos0, `m.stat`; `meaninertia` scales the solver's tolerance."""

    meaninertia: Any
    meanmass: Any
    meansize: Any
    extent: Any
    center: Any

    def replace(self, **changes: "Unpack[StatisticChanges]") -> "Statistic":
        """A copy with some fields changed; new values take the dtype of the old ones."""
        refuse_unknown(changes, self._asdict(), "Statistic")
        return self._replace(**{k: cast_like(getattr(self, k), v) for k, v in changes.items()})


def make_visual(values: Mapping[tuple[str, str], Any]) -> SimpleNamespace:
    """`m.vis` from {(group, field): value}; the group "global" is reached as `global_`, as in MuJoCo's bindings."""
    groups: dict[str, dict[str, Any]] = {}
    for (group, name), value in values.items():
        groups.setdefault("global_" if group == "global" else group, {})[name] = value
    return SimpleNamespace(**{group: SimpleNamespace(**items) for group, items in groups.items()})


class Model(Frozen, ModelFields):
    """A compiled model: an immutable PyTree with mjModel's fields by name.

    Floats are leaves; everything else lives in `structure` and is read through properties of the same names. `opt`,
    `stat` and `vis` hold options, statistics and visual settings. `max_contacts` and `max_constraints` are the
    capacities of the contact buffer and of the constraint rows. `vis` takes no part in the physics and is static.
    """

    __slots__ = ("__weakref__", "opt", "stat", "structure", *FLOATS)

    def __init__(self, structure: Structure, opt: Option, stat: Statistic, **floats: Any):
        object.__setattr__(self, "structure", structure)
        object.__setattr__(self, "opt", opt)
        object.__setattr__(self, "stat", stat)
        for name in FLOATS:
            object.__setattr__(self, name, floats[name])

    def __repr__(self) -> str:
        counts = ("nbody", "nq", "nv", "nu", "ngeom", "njnt", "nsensor")
        return f"Model({', '.join(f'{n}={getattr(self, n)}' for n in counts)})"

    def replace(self, **changes: "Unpack[ModelChanges]") -> "Model":
        """A copy with some fields changed; changing structure means another compilation of what uses it."""
        floats = dict(zip(FLOATS, _floats(self), strict=True))
        static = {}
        given = dict[str, Any](changes)
        parts = {name: given.pop(name) for name in ("opt", "stat") if name in given}
        for name, value in given.items():
            if name in floats:
                floats[name] = cast_like(floats[name], value)
            elif name in ARRAYS:
                old = getattr(self.structure, name)
                static[name] = np.asarray(value, dtype=old.dtype)
            elif name in BYTES:
                static[name] = bytes(value)
            elif name in CAPACITIES:
                static[name] = capacity(name, value)
            elif name == "callbacks":
                static[name] = value
            else:
                refuse_unknown({name: value}, floats, "Model")
        structure = Structure({**self.structure.values(), **static}) if static else self.structure
        return Model(structure, parts.get("opt", self.opt), parts.get("stat", self.stat), **floats)

    def name2id(self, objtype: str, name: str) -> int:
        """The id of a named object; host-side only. Raises KeyError, with the nearest names, when there is none."""
        ids = self._names(objtype)
        if name in ids:
            return ids.index(name)
        near = difflib.get_close_matches(name, [n for n in ids if n], n=3)
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        raise KeyError(f"no {objtype} named {name!r}{hint}")

    def id2name(self, objtype: str, index: int) -> str:
        """The name of an object, empty when it has none; host-side only."""
        return self._names(objtype)[index]

    def _names(self, objtype: str) -> list[str]:
        if objtype not in NAMED:
            raise KeyError(f"unknown object type {objtype!r}: one of {', '.join(NAMED)}")
        data = self.structure.names
        return [data[a : data.index(0, a)].decode() for a in getattr(self.structure, NAMED[objtype][0])]

    def keyframe(self, key: str | int) -> int:
        """The index of a keyframe given by name or index; raises KeyError when there is none."""
        if isinstance(key, str):
            return self.name2id("key", key)
        if not 0 <= key < self.nkey:
            raise KeyError(f"keyframe {key} is out of range: the model has {self.nkey}")
        return int(key)


def refuse_unknown(changes: Mapping[str, Any], known: Mapping[str, Any], what: str):
    for name in changes:
        if name not in known:
            raise TypeError(f"{what} has no field {name!r}{_did_you_mean(name, known)}")


def capacity(name: str, value: Any) -> int:
    """A capacity as an integer; raises ValueError for one below zero."""
    if int(value) < 0:
        raise ValueError(f"{name} is {int(value)}, wanted a number of entries, zero or more")
    return int(value)


_floats = attrgetter(*FLOATS)
_option_floats = attrgetter(*OPTION_FLOATS)
_option_ints = attrgetter(*OPTION_INTS)

for _name in (*SIZES, *ARRAYS, *BYTES, *CAPACITIES, "vis", "modelname", "callbacks", "eq_strain"):
    setattr(Model, _name, property(attrgetter(f"structure.{_name}"), doc=f"static field {_name}"))


def _option_unflatten(ints: tuple, floats: Iterable[Any]) -> Option:
    return Option(**dict(zip(OPTION_FLOATS, floats, strict=True)), **dict(zip(OPTION_INTS, ints, strict=True)))


jax.tree_util.register_pytree_with_keys(
    Option,
    lambda o: ([(jax.tree_util.GetAttrKey(n), getattr(o, n)) for n in OPTION_FLOATS], _option_ints(o)),
    _option_unflatten,
    lambda o: (_option_floats(o), _option_ints(o)),
)


def _model_unflatten(structure: Structure, children: Iterable[Any]) -> Model:
    opt, stat, *floats = children
    return Model(structure, opt, stat, **dict(zip(FLOATS, floats, strict=True)))


jax.tree_util.register_pytree_with_keys(
    Model,
    lambda m: ([(jax.tree_util.GetAttrKey(n), getattr(m, n)) for n in ("opt", "stat", *FLOATS)], m.structure),
    _model_unflatten,
    lambda m: ((m.opt, m.stat, *_floats(m)), m.structure),
)


def make_model(
    values: Mapping[str, Any],
    opt: Mapping[str, Any],
    stat: Mapping[str, Any],
    vis: Mapping[tuple[str, str], Any],
    max_contacts: int = 0,
    max_constraints: int = 0,
    modelname: str = "",
) -> Model:
    """Assemble a host `Model` (numpy, float64 leaves) from mjModel's fields by name.

    `values` holds every size and array of mjModel; shapes are checked against the table. `to_device` turns the result
    into the model that users get. Raises ValueError naming a field that is missing or has the wrong shape.
    """
    sizes = {name: int(values[name]) for name in SIZES}
    static: dict[str, Any] = dict(sizes)
    floats = {}
    for name, kind, symbolic, *_ in MODEL_FIELDS:
        shape = fields.evaluate(symbolic, sizes)
        dtype = np.float64 if kind == "float" else STATIC_DTYPES.get(kind) or ASSET_DTYPES.get(name, np.float32)
        if name not in values:
            raise ValueError(f"mjModel field {name} is missing")
        if kind == "bytes":
            static[name] = bytes(values[name])
            if (len(static[name]),) != shape:
                raise ValueError(f"mjModel field {name} has {len(static[name])} bytes; its shape is {shape}")
            continue
        array = np.array(values[name], dtype=dtype).reshape(-1)
        if array.size != math.prod(shape):
            raise ValueError(f"mjModel field {name} has {array.size} numbers; its shape is {shape}")
        (floats if kind == "float" else static)[name] = array.reshape(shape)
    static["vis"] = make_visual(vis)
    static["modelname"] = modelname
    static["callbacks"] = Callbacks()
    static["eq_strain"] = strain_modes({**static, **floats})
    static["max_contacts"], static["max_constraints"] = int(max_contacts), int(max_constraints)
    opt = {"fluid": any(opt[n] != 0 for n in FLUID_OPTIONS), "solver_kernel": 0, **opt}
    option = Option(
        **{n: np.asarray(opt[n], dtype=np.float64) for n in OPTION_FLOATS}, **{n: int(opt[n]) for n in OPTION_INTS}
    )
    statistic = Statistic(**{n: np.asarray(stat[n], dtype=np.float64) for n in Statistic._fields})
    return Model(Structure(static), option, statistic, **floats)


def strain_modes(values: Mapping[str, Any]) -> np.ndarray:
    """For each equality (neq, 2) on the strain of a flex: the element of its lattice, and how many modes that has.

    MuJoCo keeps both among the numbers; here they shape the program. `values` are fields of a model by name, of which
    numbers may be batched: the first world counts.
    """
    out = np.zeros((values["neq"], 2), np.int32)
    for i in np.flatnonzero(values["eq_type"] == EqType.FLEXSTRAIN):
        f, data = values["eq_obj1id"][i], np.reshape(values["eq_data"], (-1, values["neq"], 11))
        cell = data[0, i, :3].astype(int)
        order, first = int(values["flex_interp"][f]), values["flex_stiffnessadr"][f]
        if not order:
            continue
        count = values["flex_cellnum"][f]
        out[i, 0] = cell[0] if order < 0 else (cell[0] * count[1] + cell[1]) * count[2] + cell[2]
        size = 9 * (abs(order) + 1) ** (4 if order < 0 else 6)
        at = first + out[i, 0] * size
        if first >= 0 and 0 <= at < values["nflexstiffness"]:
            out[i, 1] = int(np.reshape(values["flex_stiffness"], (-1, values["nflexstiffness"]))[0, at])
    return out


def to_device(m: Model) -> Model:
    """A host model with its leaves as JAX arrays of the default float type (float32, or float64 under x64)."""
    dtype = jax.dtypes.canonicalize_dtype(np.float64)
    return jax.device_put(jax.tree.map(lambda x: np.asarray(x, dtype=dtype), m))
