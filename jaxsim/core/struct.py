"""`Struct`: frozen PyTree dataclasses whose annotated fields are the table of shapes, units and meanings.

```python
class Statistic(Struct):
    meanmass: Array = real("", "mean mass of bodies", "kg")
```

A field annotated `jax.Array`, or with a `Struct` that has leaves, is a child of the PyTree. All others are static:
they are compared and hashed. A shape is a list of sizes of the model, integers and products such as `nmocap*3`.
Validation, allocation and the page `docs/fields.md` read the same fields.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, dataclass_transform

import jax
import jax.core
import numpy as np

from jaxsim.core.describe import describe_struct
from jaxsim.core.errors import did_you_mean


class Field(NamedTuple):
    """Declaration of a field of a class. The kind is float, int, bool, char, bytes, asset, size or part."""

    name: str
    kind: str
    shape: tuple[str | int, ...]
    meaning: str
    unit: str
    dtype: str = ""


def _declare(kind: str, shape: str, meaning: str, unit: str = "-", dtype: str = "") -> Any:
    sizes = tuple(int(s) if s.isdigit() else s for s in shape.split())
    return dataclasses.field(metadata={"field": Field("", kind, sizes, meaning, unit, dtype)})


def size(meaning: str) -> Any:
    """Declare a size of the model: a static integer."""
    return _declare("size", "", meaning)


def real(shape: str, meaning: str, unit: str = "-") -> Any:
    """Declare floating-point numbers."""
    return _declare("float", shape, meaning, unit)


def integer(shape: str, meaning: str, unit: str = "-") -> Any:
    """Declare integers (int32)."""
    return _declare("int", shape, meaning, unit, "int32")


def boolean(shape: str, meaning: str, unit: str = "-") -> Any:
    """Declare truth values."""
    return _declare("bool", shape, meaning, unit, "bool")


def char(shape: str, meaning: str) -> Any:
    """Declare characters (uint8)."""
    return _declare("char", shape, meaning, dtype="uint8")


def text(shape: str, meaning: str) -> Any:
    """Declare Python's bytes."""
    return _declare("bytes", shape, meaning)


def asset(shape: str, meaning: str, unit: str = "-", dtype: str = "float32") -> Any:
    """Declare static numbers that no stage of the physics reads as numbers."""
    return _declare("asset", shape, meaning, unit, dtype)


def part(meaning: str, shape: str = "") -> Any:
    """Declare a field of another class, given by its annotation."""
    return _declare("part", shape, meaning)


def evaluate(shape: tuple[str | int, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Turn a symbolic shape into integers; ``a*3`` is a product."""
    out = []
    for item in shape:
        if isinstance(item, int):
            out.append(item)
        else:
            name, _, factor = item.partition("*")
            out.append(sizes[name] * int(factor or 1))
    return tuple(out)


def fields_of(struct: type["Struct"], *kinds: str) -> list[Field]:
    """Return the fields of a class in their order, of these kinds; all but parts if no kind is given."""
    rows = [f.metadata["field"]._replace(name=f.name) for f in dataclasses.fields(struct) if "field" in f.metadata]
    return [row for row in rows if (row.kind in kinds if kinds else row.kind != "part")]


def cast_like(old: Any, new: Any) -> Any:
    """Return a value with the dtype of the one that it replaces; placeholders (axes, None) are returned unchanged."""
    if isinstance(old, np.ndarray):
        if isinstance(new, jax.core.Tracer):
            return jax.numpy.asarray(new, dtype=jax.dtypes.canonicalize_dtype(old.dtype))
        new = np.array(new, old.dtype)  # a copy: the caller may change the original
        new.setflags(write=old.flags.writeable)
        return new
    if isinstance(old, jax.Array):
        if isinstance(new, np.ndarray):  # a copy, whose memory JAX may share: the host may change the original
            return jax.numpy.asarray(np.array(new, old.dtype))
        return jax.numpy.asarray(new, dtype=old.dtype)
    return new


@dataclass_transform(
    eq_default=False,
    kw_only_default=True,
    frozen_default=True,
    field_specifiers=(size, real, integer, boolean, char, text, asset, part),
)
class Struct:
    """Base of frozen PyTree dataclasses; see the module.

    Values are in the instance's `__dict__`, so that flattening and building are one call each. With `held_by`, static
    fields are attributes of the field of that name, which alone is the static part (`Model.structure`).

    `==` compares static fields and, on the host, all leaves: their types, shapes and numbers, NaN equal to NaN. Equal
    objects have equal hashes. Traced leaves have no numbers to compare: TypeError.
    """

    if TYPE_CHECKING:
        LEAVES: ClassVar[tuple[str, ...]]
        STATIC: ClassVar[tuple[str, ...]]
        __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, held_by: str | None = None):
        dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)
        children, static = [], []
        for f in dataclasses.fields(cls):
            leaf = f.type is jax.Array or (isinstance(f.type, type) and issubclass(f.type, Struct) and f.type.LEAVES)
            (children if leaf else static).append(f.name)
        if held_by:
            for name in static:
                if name != held_by:
                    setattr(cls, name, property(attrgetter(f"{held_by}.{name}")))
            static = [held_by]
        cls.LEAVES, cls.STATIC = tuple(children), tuple(static)
        _register(cls)

    def __init__(self, **values: Any):
        names = (*self.LEAVES, *self.STATIC)
        if missing := [name for name in names if name not in values]:
            raise TypeError(f"{type(self).__name__}() is missing {', '.join(map(repr, missing))}")
        self.refuse_unknown(values, names)
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: Any):
        raise dataclasses.FrozenInstanceError(f"{type(self).__name__} is immutable: use .replace({name}=...)")

    def __delattr__(self, name: str):
        raise dataclasses.FrozenInstanceError(f"{type(self).__name__} is immutable: {name!r} cannot be deleted")

    if not TYPE_CHECKING:  # a type checker would accept any name as a field

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError for an unknown name, with the nearest one."""
            what = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name.startswith("_"):
                raise AttributeError(what)
            if path := home_of(type(self), name):
                raise AttributeError(f"{what}; it is {type(self).__name__[0].lower()}.{'.'.join(path)}.{name}")
            known = {*dir(type(self)), *(f.name for f in dataclasses.fields(self))}
            raise AttributeError(what + did_you_mean(name, known))

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(f.name for f in dataclasses.fields(self))})

    def __repr__(self) -> str:
        return describe_struct(self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        (ours, form), (theirs, other_form) = jax.tree.flatten(self), jax.tree.flatten(other)
        return form == other_form and all(map(_equal, ours, theirs))

    def __hash__(self) -> int:
        return hash((type(self), *(self.__dict__[name] for name in self.STATIC)))

    @classmethod
    def refuse_unknown(cls, names: Iterable[str], known: Iterable[str]) -> None:
        """Raise TypeError for a name that is not among the known ones, with the field's class or the nearest name."""
        for name in names:
            if name in known:
                continue
            if path := home_of(cls, name):
                letter, change = cls.__name__[0].lower(), f"{name}=..."
                for n in range(len(path), 0, -1):
                    change = f"{path[n - 1]}={'.'.join((letter, *path[:n]))}.replace({change})"
                home = ".".join((letter, *path))
                raise TypeError(f"{name!r} is a field of {home}: {letter}.replace({change})")
            raise TypeError(f"{cls.__name__} has no field {name!r}{did_you_mean(name, known)}")

    def values(self) -> dict[str, Any]:
        """Return the stored fields by name."""
        return dict(self.__dict__)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed; new values take the dtype of the old ones."""
        values = self.values()
        self.refuse_unknown(changes, values)
        values.update({name: cast_like(values[name], value) for name, value in changes.items()})
        return build(type(self), values)


def build(cls: type, values: Mapping[str, Any]) -> Any:
    """Return an object with these values of its leaves and static fields, without checks."""
    new = object.__new__(cls)
    new.__dict__.update(values)
    return new


def home_of(struct: type[Struct], name: str) -> tuple[str, ...]:
    """Return the parts of a class that lead to the one with a field of this name; empty if none has it."""
    for f in dataclasses.fields(struct):
        if isinstance(f.type, type) and issubclass(f.type, Struct):
            if name in f.type.__dataclass_fields__:
                return (f.name,)
            if inner := home_of(f.type, name):
                return (f.name, *inner)
    return ()


def _getter(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], tuple]:
    """Return a function from a dictionary to the tuple of these entries."""
    if len(names) == 1:
        return lambda values: (values[names[0]],)
    return itemgetter(*names) if names else lambda values: ()


def _register(cls: type[Struct]) -> None:
    leaves, static = cls.LEAVES, cls.STATIC
    children, aux, names = _getter(leaves), _getter(static), (*leaves, *static)
    keys = tuple(jax.tree_util.GetAttrKey(name) for name in leaves)

    def unflatten(static_values: tuple, values: Iterable[Any]) -> Any:
        new = object.__new__(cls)
        new.__dict__.update(zip(names, (*values, *static_values), strict=True))
        return new

    jax.tree_util.register_pytree_with_keys(
        cls,
        lambda x: (tuple(zip(keys, children(x.__dict__), strict=True)), aux(x.__dict__)),
        unflatten,
        lambda x: (children(x.__dict__), aux(x.__dict__)),
    )


def _equal(a: Any, b: Any) -> bool:
    """Return whether two leaves have the same type, shape and numbers."""
    if a is b:
        return True
    if isinstance(a, jax.core.Tracer) or isinstance(b, jax.core.Tracer):
        raise TypeError(
            "== compares numbers on the host, and these are traced: compare leaves, as in "
            "jax.tree.map(jnp.array_equal, a, b)"
        )
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(np.all((a == b) | ((a != a) & (b != b))))
