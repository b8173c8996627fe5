"""Attributes and results by the elements of a `mujoco.MjSpec`, as in MJX's `bind`.

`jaxsim.core.named` finds the fields and their entries; this module adds MJX's errors and its shapes, in which a single
element has no axis.
"""

from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxsim.core.data as core
import jaxsim.core.model as core_model
from jaxsim.core.named import IN_DATA, KINDS, Place, assign, attributes, locate
from jaxsim.math.safe import Array
from jaxsim.mjx.types import MATRICES, MODEL_MATRICES, Data, Model

MODEL_KINDS = tuple(kind for kind in KINDS if kind not in ("flex", "plugin"))
OWNERS = {  # fields whose name implies the kind of object
    "sensordata": ("sensor", "sensordata is not available for this type"),
    "ctrl": ("actuator", "ctrl is not available for this type"),
    "qpos": ("joint", "qpos, qvel, qacc, qfrc are not available for this type"),
}
OWNERS |= dict.fromkeys(("qvel", "qacc"), OWNERS["qpos"])


class UnknownField(AttributeError, KeyError):
    """A name that is not a field of these elements; MJX raises KeyError here."""

    __str__ = AttributeError.__str__


def _elements(model: Model, obj: Any, kinds: tuple[str, ...]) -> tuple[str, Any]:
    """Return the kind of the elements, and their ids: a number for one element, else an array."""
    specs = list(obj) if isinstance(obj, Iterable) else [obj]
    kind, ids = "", []
    for spec in specs:
        if spec.signature != model.signature:
            raise ValueError(
                f"mjSpec signature does not match mjx.Model signature: {spec.signature} != {model.signature}"
            )
        if spec.id < 0:
            raise KeyError(f"invalid id: {spec.id}")
        kind = type(spec).__name__.removeprefix("Mjs").lower()
        if kind not in kinds:
            raise ValueError(f"invalid spec type: {type(spec).__name__}")
        ids.append(spec.id)
    return kind, (ids[0] if len(ids) == 1 else np.array(ids, int))


def _place(model: Model, kind: str, ids: Any, field: Any, matrices: tuple[str, ...]) -> tuple:
    """Return the index of the elements' entries in a field; in MJX, rotation matrices are (3, 3)."""
    place: Place = locate(model.model, kind, ids, field)
    if isinstance(place, slice) and place.stop - place.start == 1:
        place = place.start
    return (..., place, *(slice(None),) * (len(field.shape) - 1 + (field.name in matrices)))


class BindModel:
    """Fields of a model at the elements of a spec: `m.bind(spec.bodies).mass`."""

    def __init__(self, model: Model, obj: Any):
        self.model = model
        self.kind, self.id = _elements(model, obj, MODEL_KINDS)

    def __getattr__(self, name: str) -> Any:
        known = attributes(core_model.Model, self.kind) if "kind" in self.__dict__ else {}
        if name not in known:
            raise UnknownField(f"a {self.__dict__.get('kind')} has no field {name!r}")
        field = known[name]
        return getattr(self.model, field.name)[_place(self.model, self.kind, self.id, field, MODEL_MATRICES)]


class BindData:
    """Fields of data at the elements of a spec: `d.bind(m, spec.joints).qpos`; `set` returns changed data."""

    def __init__(self, data: Data, model: Model, obj: Any):
        self.data, self.model = data, model
        self.kind, self.id = _elements(model, obj, IN_DATA)

    def _field(self, name: str) -> tuple[str, tuple]:
        """Return the name of a field, and the index of the elements' entries."""
        kind = self.__dict__.get("kind", "")
        owner, message = OWNERS.get("qpos" if name.startswith("qfrc_") else name, (kind, ""))
        if owner != kind:
            raise AttributeError(message)
        known = attributes(core.Data, kind) if kind else {}
        short = "data" if name == "sensordata" else name
        if short not in known:
            raise UnknownField(f"a {kind} has no field {name!r} in Data")
        field = known[short]
        return field.name, _place(self.model, kind, self.id, field, MATRICES)

    def __getattr__(self, name: str) -> Any:
        field, place = self._field(name)
        return getattr(self.data, field)[place]

    def set(self, name: str, value: Array) -> Data:
        """Set the field's entries of these elements; returns the changed data."""
        if name == "sensordata":
            raise AttributeError(f"{name} is readonly")
        field, place = self._field(name)
        array = getattr(self.data, field)
        return self.data.replace(**{field: assign(array, place, jnp.asarray(value, array.dtype))})


def bind_model(self: Model, obj: Any) -> BindModel:
    """Return the attributes of the elements of a `mujoco.MjSpec`: `m.bind(spec.geoms).pos`."""
    return BindModel(self, obj)


def bind_data(self: Data, model: Model, obj: Any) -> BindData:
    """Return the results for the elements of a `mujoco.MjSpec`: `d.bind(m, spec.bodies).xpos`."""
    return BindData(self, model, obj)


Model.bind = bind_model  # pyright: ignore[reportAttributeAccessIssue]
Data.bind = bind_data  # pyright: ignore[reportAttributeAccessIssue]
