"""Checks of the arguments of public functions: the class of each, then the shape and the kind of every field.

Shapes are static, so that a compiled function has no cost from checks, and under `vmap` they apply to one world.
"""

import inspect
import weakref
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jax.core
import numpy as np

from jaxsim.core.contact import CONSTRAINT_FIELDS, CONTACT_FIELDS, WARNING_FIELDS, Constraint
from jaxsim.core.data import DATA_FIELDS, Data
from jaxsim.core.errors import did_you_mean
from jaxsim.core.layout import Layout, make_layout
from jaxsim.core.model import ARRAYS, MODEL_FIELDS, SIZES, Model
from jaxsim.core.option import OPTION_INTS, Option, Statistic
from jaxsim.core.struct import Field, evaluate, fields_of
from jaxsim.core.structure import per_structure
from jaxsim.xla.compat import is_checked_by_shard_map

KINDS = {"float": ("f", "floating-point numbers"), "int": ("iu", "integers"), "bool": ("b", "booleans")}
MANY = 3  # fields of wrong shape that make it another model rather than a slip
REMEDY = "Make it anew: jaxsim.make_data(m)"
MEANING = {row.name: row.meaning for row in fields_of(Model, "size")}
_option_ints = attrgetter(*OPTION_INTS)


HALF = 2  # bytes of a float of half precision


class Expected(NamedTuple):
    """Specification of a leaf: its dotted name, its getter, its shape, its shape in sizes, and its kind."""

    name: str
    read: attrgetter
    shape: tuple[int, ...]
    symbolic: tuple[str | int, ...]
    kind: str


class Wrong(NamedTuple):
    """A leaf that differs from its specification; `shape` is None if it is not an array."""

    expected: Expected
    shape: tuple[int, ...] | None
    kind: str


def _expect(name: str, shape: tuple[int, ...], symbolic: tuple[str | int, ...] = (), kind: str = "float") -> Expected:
    return Expected(name, attrgetter(name), tuple(shape), tuple(symbolic), kind)


@per_structure
def _expected_of_model(m: Any) -> tuple[Expected, ...]:
    """All leaves of a model. Raises ValueError where an array of the structure has the wrong shape."""
    sizes = {name: getattr(m, name) for name in SIZES}
    out = []
    for name, kind, symbolic, *_ in MODEL_FIELDS:
        shape = evaluate(symbolic, sizes)
        if kind == "float":
            out.append(_expect(name, shape, symbolic))
        elif name in ARRAYS and getattr(m, name).shape != shape:
            raise ValueError(f"m.{name} has shape {getattr(m, name).shape}, wanted {shape}: {phrase(symbolic)}")
    for part, rows in (("opt", fields_of(Option, "float")), ("stat", fields_of(Statistic))):
        out += [_expect(f"{part}.{row.name}", evaluate(row.shape, sizes)) for row in rows]
    return tuple(out)


@per_structure
def _expectations_of_data(_: Any) -> dict[Any, tuple[Layout, tuple[Expected, ...]]]:
    """Leaves of the data of a model by its options, filled by `_expected_of_data`."""
    return {}


def _expected_of_data(m: Model) -> tuple[Layout, tuple[Expected, ...]]:
    """Layout of the constraint rows and all leaves of the data of a model."""
    known, key = _expectations_of_data(m), _option_ints(m.opt)
    if key not in known:
        known[key] = _make_expected_of_data(m)
    return known[key]


def _make_expected_of_data(m: Model) -> tuple[Layout, tuple[Expected, ...]]:
    sizes = {name: getattr(m, name) for name in SIZES}
    layout = make_layout(m)

    def rows(table: list[Field], prefix: str = "", lead: tuple[tuple[str, int], ...] = ()) -> list[Expected]:
        names, numbers = tuple(name for name, _ in lead), tuple(number for _, number in lead)
        return [
            _expect(prefix + name, numbers + evaluate(shape, sizes), names + shape, kind)
            for name, kind, shape, *_ in table
        ]

    columns = layout.columns.shape[1] if layout.sparse else m.nv
    parts = (layout.nside, 6) if layout.sparse else (m.nv,)
    nbody = layout.nside if layout.sparse and layout.flexes else 0
    return layout, (
        *rows(DATA_FIELDS),
        *rows(WARNING_FIELDS, "warning."),
        *rows(CONTACT_FIELDS, "contact.", (("max_contacts", layout.ncontact),)),
        *rows(CONSTRAINT_FIELDS, "efc.", (("slots", layout.nslot),)),
        _expect("efc.J_general", (layout.ngeneral, columns)),
        _expect("efc.J_contact", (layout.ncontact, layout.condim, *parts)),
        _expect("efc.bodies", (layout.ncontact, nbody), kind="int"),
    )


def phrase(symbolic: tuple[str | int, ...]) -> str:
    """Describe a shape in sizes as text: "one number for each actuator", "3 numbers for each body"."""
    sizes, numbers = [s for s in symbolic if isinstance(s, str)], [s for s in symbolic if isinstance(s, int)]
    count = int(np.prod(numbers)) if numbers else 1
    much = "one number" if count == 1 else f"{' x '.join(map(str, numbers))} numbers"
    if not sizes:
        return much if count > 1 else "a single number"
    first = sizes[0]
    if first == "max_contacts":
        return f"{much} for each entry of the contact buffer (max_contacts)"
    if first == "slots":
        return f"{much} for each slot of a constraint row"
    meaning = MEANING[first.partition("*")[0]].partition(" (")[0]
    if meaning.startswith("number of "):
        return f"{much} for each {_singular(meaning.removeprefix('number of '))}"
    return f"{first} is the {meaning}"


def _singular(plural: str) -> str:
    """One of what a plural names, without what is said about it after a comma."""
    head, of, rest = plural.partition(",")[0].partition(" of ")
    head = head[:-3] + "y" if head.endswith("ies") else head.removesuffix("s")
    return head + of + rest


def unknown_argument(function: str, signature: inspect.Signature, given: Iterable[str]) -> str | None:
    """Write the message for a call with an unknown keyword; None if all are parameters."""
    words = {"model": "m", "data": "d"}
    for name in given:
        if name not in signature.parameters:
            near = words.get(name, "")
            hint = (
                f"; did you mean {near!r}?"
                if near in signature.parameters
                else did_you_mean(name, signature.parameters)
            )
            return f"{function}: there is no argument {name!r}{hint}"
    return None


def check_model(m: Any, function: str, other: Any = None) -> None:
    """Raise TypeError or ValueError where `m` is not a model with leaves of the right shapes and kinds."""
    if not isinstance(m, Model):
        raise TypeError(_not_a_model(m, function, other))
    right = _found_right(m)
    if right.get("m", _gone)() is m:
        return
    wrong = _compare(m, _expected_of_model(m))
    if not wrong:
        _check_precision(m, m, _expected_of_model(m), function, "m.")
        right["m"] = weakref.ref(m)
        return
    lead = _common_lead(wrong, len(_expected_of_model(m)))
    if lead:
        raise ValueError(
            f"{function}: every number of the model has a leading axis of {_numbers(lead)}: "
            f"use jax.vmap(jaxsim.{function}, in_axes=(0, 0)), or one model with in_axes=(None, 0)"
        )
    first = wrong[0]
    hint = ""
    if _is_batched(first):
        hint = (
            f"; for models that differ use jax.vmap with in_axes=(jaxsim.batch_axes(m, [{first.expected.name!r}]), 0)"
        )
    raise _error(f"{function}: m.{_complaint(first)}{hint}", first)


def check_data(m: Model, d: Any, function: str, name: str = "d") -> None:
    """Raise TypeError or ValueError where `d` is not data of the model `m`, one world without a leading axis."""
    if not isinstance(d, Data):
        raise TypeError(_not_data(d, function, name))
    if isinstance(d.time, jax.core.Tracer) and is_checked_by_shard_map(d.time):
        raise TypeError(
            f"{function}: jax.shard_map checks which values vary between devices, and loops of a step fail this check: "
            "use jaxsim.parallel.shard_map, or jaxsim.over_devices"
        )
    layout, expected = _expected_of_data(m)
    leaves, form = jax.tree.flatten(d)
    like = (form, _option_ints(m.opt), m.qpos0.dtype, [_type_of(x) for x in leaves])
    if _found_right(m).get("d") == like:
        return
    wrong = _compare(d, expected)
    if wrong:
        raise _error(f"{function}: {_why_data_is_wrong(m, d, wrong, len(expected), function, name)}", wrong[0])
    _check_precision(m, d, expected, function, "" if name == "d" else f"{name}.")
    if isinstance(d.efc, Constraint) and d.efc.layout != layout:
        raise ValueError(f"{function}: {_another_layout(d.efc.layout, layout)}")
    _found_right(m)["d"] = like


def check_worlds(m: Model, d: Any, function: str, nworld: int) -> None:
    """Raise TypeError or ValueError where `d` is not data of `nworld` worlds of the model `m`."""
    if not isinstance(d, Data):
        raise TypeError(_not_data(d, function, "d"))
    for path, x in jax.tree.leaves_with_path(d):
        if np.shape(x)[:1] != (nworld,):
            name = jax.tree_util.keystr(path).removeprefix(".")
            raise ValueError(f"{function}: {name} has shape {np.shape(x)}, wanted a leading axis of {nworld} worlds")
    check_data(m, jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), d), function)


@per_structure
def _found_right(_: Any) -> dict[str, Any]:
    """The model that was last found right, as a weak reference, and the form and types of data: loops give the same."""
    return {}


def _gone() -> None:
    """A reference to nothing."""


def _type_of(x: Any) -> tuple[Any, Any, Any]:
    return x.__class__, getattr(x, "shape", None), getattr(x, "dtype", None)


def _compare(tree: Any, expected: tuple[Expected, ...]) -> list[Wrong]:
    out = []
    for item in expected:
        value = item.read(tree)
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        if shape is None and isinstance(value, (bool, int, float)):
            shape, dtype = (), np.dtype(type(value))
        kind = getattr(dtype, "kind", "O")
        kind = "f" if kind == "V" else kind  # bfloat16 and its like are numpy's void
        if shape != item.shape or kind not in KINDS[item.kind][0]:
            out.append(Wrong(item, shape, kind if shape is not None else type(value).__name__))
    return out


def _check_precision(m: Model, tree: Any, expected: tuple[Expected, ...], function: str, prefix: str) -> None:
    """Raise TypeError where a floating-point leaf has another type than the model's, or one of half precision."""
    wanted = _precision(m.qpos0)
    for item in expected:
        found = _precision(item.read(tree)) if item.kind == "float" else None
        if found is None or (found == wanted and found.itemsize > HALF):
            continue
        what = f"{function}: {prefix}{item.name} is {found}"
        if found.itemsize <= HALF:
            raise TypeError(f"{what}; jaxsim computes in float32 or, under jax_enable_x64, in float64")
        if prefix == "m.":
            raise TypeError(f"{what}, and m.qpos0 {wanted}: give all numbers of a model one type")
        raise TypeError(
            f"{what}, and the model's numbers are {wanted}: cast the data, or make it by jaxsim.make_data(m)"
        )


def _precision(x: Any) -> Any:
    """The type of a leaf as JAX takes it; None of a number of Python."""
    dtype = getattr(x, "dtype", None)
    if isinstance(x, np.ndarray) and dtype is not None and dtype.itemsize == np.dtype(np.float64).itemsize:
        return jax.dtypes.canonicalize_dtype(dtype)
    return dtype


def _common_lead(wrong: list[Wrong], count: int) -> tuple[int, ...]:
    """The leading axes that all `count` leaves have before their shapes, if they have the same."""
    leads = {_lead(w) for w in wrong}
    return leads.pop() if len(wrong) == count and len(leads) == 1 else ()


def _lead(w: Wrong) -> tuple[int, ...]:
    shape = w.shape or ()
    n = len(shape) - len(w.expected.shape)
    return shape[:n] if n > 0 and shape[n:] == w.expected.shape else ()


def _is_batched(w: Wrong) -> bool:
    return bool(_lead(w))


def _numbers(lead: tuple[int, ...]) -> str:
    return " x ".join(map(str, lead))


def _why_data_is_wrong(m: Model, d: Data, wrong: list[Wrong], count: int, function: str, name: str) -> str:
    lead = _common_lead(wrong, count)
    if lead:
        nested = f"jaxsim.{function}"
        for _ in lead[1:]:
            nested = f"jax.vmap({nested}, in_axes=(None, 0))"
        axes = "a leading axis" if len(lead) == 1 else "leading axes"
        return (
            f"every field has {axes} of {_numbers(lead)}: use jax.vmap({nested}, in_axes=(None, 0)); "
            "jaxsim is written for one world"
        )
    buffers = [w for w in wrong if w.expected.name.startswith(("contact.", "efc."))]
    if len(buffers) == len(wrong) and d.efc.layout != _expected_of_data(m)[0]:
        return _another_layout(d.efc.layout, _expected_of_data(m)[0])
    shapes = [w for w in wrong if w not in buffers and w.shape is not None and w.shape != w.expected.shape]
    if len(shapes) >= MANY and not all(map(_is_batched, shapes)):
        listed = "; ".join(map(_sizes, shapes[:MANY]))
        return f"this Data belongs to another model: {listed}; and {len(wrong) - MANY} more. {REMEDY}"
    first = wrong[0]
    hint = f"; so have {len(wrong) - 1} more fields" if len(wrong) > 1 else ""
    if _is_batched(first):
        hint = f"; if the leading axis of {_numbers(_lead(first))} is one of worlds, map over it with jax.vmap"
    return f"{name + '.' if name != 'd' else ''}{_complaint(first)}{hint}"


def _sizes(w: Wrong) -> str:
    return f"{w.expected.name} has shape {w.shape}, wanted {w.expected.shape}"


def _another_layout(old: Layout, new: Layout) -> str:
    what = "another model's constraint rows"
    if old.ncontact != new.ncontact:
        what = f"max_contacts={old.ncontact}, and the model has {new.ncontact}"
    elif old.pyramidal != new.pyramidal:
        cones = {True: "pyramidal", False: "elliptic"}
        what = f"{cones[old.pyramidal]} cones, and the model has {cones[new.pyramidal]} ones"
    elif old.max_constraints != new.max_constraints:
        what = f"max_constraints={old.max_constraints}, and the model has {new.max_constraints}"
    return f"this Data was made for {what}. {REMEDY}"


def _complaint(w: Wrong) -> str:
    name = w.expected.name
    if w.shape is None:
        return f"{name} is of type {w.kind}, wanted an array of shape {w.expected.shape}"
    if w.shape != w.expected.shape:
        return (
            f"{name} has shape {w.shape}, wanted {w.expected.shape}: {phrase(w.expected.symbolic or w.expected.shape)}"
        )
    found = next((words for kinds, words in KINDS.values() if w.kind in kinds), "something else")
    return f"{name} holds {found}, wanted {KINDS[w.expected.kind][1]}"


def _error(text: str, w: Wrong) -> Exception:
    return TypeError(text) if w.shape is None or w.shape == w.expected.shape else ValueError(text)


def _not_a_model(m: Any, function: str, other: Any) -> str:
    if isinstance(m, Data):
        if isinstance(other, Model):
            return f"{function}: the arguments are swapped: {function}(m, d) takes the model first"
        return f"{function}: the first argument is a Data, wanted a Model: {function}(m, d)"
    return f"{function}: the model is {_described(m)}, wanted a jaxsim.Model{_remedy_for_model(m)}"


def _not_data(d: Any, function: str, name: str) -> str:
    if isinstance(d, Model):
        return f"{function}: {name} is a Model, wanted its Data: jaxsim.make_data(m)"
    return f"{function}: {name} is {_described(d)}, wanted a jaxsim.Data{_remedy_for_data(d)}"


def _described(x: Any) -> str:
    home = type(x).__module__.partition("._")[0]
    known = {"mujoco": "mujoco", "mujoco.mjx": "mjx", "mujoco.mjx._src.types": "mjx", "jaxsim.mjx.types": "jaxsim.mjx"}
    if home in known:
        return f"a {known[home]}.{type(x).__name__}"
    return "None" if x is None else f"of type {type(x).__name__}"


def _remedy_for_model(m: Any) -> str:
    home = type(m).__module__
    if home == "jaxsim.mjx.types":
        return ": use jaxsim.mjx's functions, or m.model and d.data"
    if home.startswith("mujoco.mjx"):
        return ": use jaxsim.from_mujoco(mj_model) with the MjModel that it was made of"
    if home.startswith("mujoco"):
        return ": use jaxsim.from_mujoco(mj_model)" if type(m).__name__ == "MjModel" else ""
    return ": use jaxsim.load_model" if isinstance(m, str) or hasattr(m, "__fspath__") else ""


def _remedy_for_data(d: Any) -> str:
    if type(d).__module__.startswith("mujoco"):
        return ": use jaxsim.from_mujoco_data(m, mj_data)" if type(d).__name__ == "MjData" else ": jaxsim.make_data(m)"
    return ": jaxsim.make_data(m)" if d is None else ""
