"""Attributes and results by the elements of a `mujoco.MjSpec`, as MJX's `bind` gives them."""

from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import DATA_FIELDS
from jaxsim.core.model import MODEL_FIELDS
from jaxsim.core.types import JointType
from jaxsim.math.safe import Array
from jaxsim.mjx.types import MATRICES, MODEL_MATRICES, Data, Model

# class of the element -> prefix of its fields in the model and in the data; None: there are none
PREFIXES = {
    "MjsBody": ("body_", ""),
    "MjsJoint": ("jnt_", "jnt_"),
    "MjsGeom": ("geom_", "geom_"),
    "MjsSite": ("site_", "site_"),
    "MjsLight": ("light_", "light_"),
    "MjsCamera": ("cam_", "cam_"),
    "MjsTendon": ("tendon_", "ten_"),
    "MjsActuator": ("actuator_", "actuator_"),
    "MjsSensor": ("sensor_", "sensor_"),
    "MjsEquality": ("eq_", "eq_"),
    "MjsMesh": ("mesh_", None),
    "MjsHField": ("hfield_", None),
    "MjsPair": ("pair_", None),
    "MjsKey": ("key_", None),
    "MjsNumeric": ("numeric_", None),
    "MjsText": ("text_", None),
    "MjsTuple": ("tuple_", None),
    "MjsTexture": ("tex_", None),
    "MjsExclude": ("exclude_", None),
    "MjsSkin": ("skin_", None),
    "MjsMaterial": ("mat_", None),
}
# axes of one element's value
MODEL_AXES = {f.name: len(f.shape) - 1 + (f.name in MODEL_MATRICES) for f in MODEL_FIELDS if f.kind != "bytes"}
DATA_AXES = {f.name: len(f.shape) - 1 + (f.name in MATRICES) for f in DATA_FIELDS}
OF_JOINTS = ("qpos", "qvel", "qacc")
READ_ONLY = ("sensordata",)


class UnknownField(AttributeError, KeyError):
    """A name that is no field of these elements; MJX raises KeyError here."""

    __str__ = AttributeError.__str__


def _elements(model: Model, obj: Any, which: int) -> tuple[str, Any]:
    """Prefix of the fields of elements of one kind, and their ids: a number for one element, else an array."""
    many = isinstance(obj, Iterable)
    specs = list(obj) if many else [obj]
    prefix, ids = "", []
    for spec in specs:
        if spec.signature != model.signature:
            raise ValueError(
                f"mjSpec signature does not match mjx.Model signature: {spec.signature} != {model.signature}"
            )
        if spec.id < 0:
            raise KeyError(f"invalid id: {spec.id}")
        kind = type(spec).__name__
        if kind not in PREFIXES or PREFIXES[kind][which] is None:
            raise ValueError(f"invalid spec type: {kind}")
        prefix = PREFIXES[kind][which]
        ids.append(spec.id)
    return prefix, (ids[0] if len(ids) == 1 else np.array(ids, int))


def _at(value: Any, index: Any, axes: int) -> Any:
    """The rows at `index` of a field whose own shape has `axes` axes after that of the elements."""
    return value[(..., index, *(slice(None),) * axes)]


class BindModel:
    """Fields of a model at the elements of a spec: `m.bind(spec.bodies).mass`."""

    def __init__(self, model: Model, obj: Any):
        self.model = model
        self.prefix, self.id = _elements(model, obj, 0)

    def __getattr__(self, name: str) -> Any:
        if name in ("model", "prefix", "id"):
            raise AttributeError(name)
        field = self.prefix + name
        value = getattr(self.model, field)
        if field not in MODEL_AXES:
            raise UnknownField(f"{field} has no entries for elements")
        return _at(value, self.id, MODEL_AXES[field])


class BindData:
    """Fields of data at the elements of a spec: `d.bind(m, spec.joints).qpos`; `set` gives changed data."""

    def __init__(self, data: Data, model: Model, obj: Any):
        self.data, self.model = data, model
        self.prefix, self.id = _elements(model, obj, 1)

    def _field(self, name: str) -> tuple[str, Any, int]:
        """Name of a field, the entries of it that belong to the elements, and the axes of one element's value."""
        m = self.model.model
        if name == "sensordata":
            self._only("sensor_", "sensordata is not available for this type")
            return name, self._ranges(m.sensor_adr, m.sensor_dim), 0
        if name == "ctrl":
            self._only("actuator_", "ctrl is not available for this type")
            return name, self.id, 0
        if name in OF_JOINTS or name.startswith("qfrc_"):
            self._only("jnt_", "qpos, qvel, qacc, qfrc are not available for this type")
            width, address = JointType.dof_width, m.jnt_dofadr
            if name == "qpos":
                width, address = JointType.qpos_width, m.jnt_qposadr
            return name, self._ranges(address, np.array([width(JointType(t)) for t in m.jnt_type])), 0
        if name in ("mocap_pos", "mocap_quat"):
            return name, m.body_mocapid[self.id], 1
        full = self.prefix + name
        if full not in DATA_AXES:
            raise UnknownField(f"'Data' object has no attribute '{full}'")
        return full, self.id, DATA_AXES[full]

    def _only(self, prefix: str, message: str) -> None:
        if self.prefix != prefix:
            raise AttributeError(message)

    def _ranges(self, address: np.ndarray, number: np.ndarray) -> Any:
        """The entries from each element's address on."""
        if np.ndim(self.id) == 0:
            first, count = int(address[self.id]), int(number[self.id])
            return first if count == 1 else slice(first, first + count)
        return np.concatenate([a + np.arange(n) for a, n in zip(address[self.id], number[self.id], strict=True)])

    def __getattr__(self, name: str) -> Any:
        if name in ("data", "model", "prefix", "id"):
            raise AttributeError(name)
        field, index, axes = self._field(name)
        return _at(getattr(self.data, field), index, axes)

    def set(self, name: str, value: Array) -> Data:
        """The data with the field's entries of these elements changed."""
        if name in READ_ONLY:
            raise AttributeError(f"{name} is readonly")
        field, index, axes = self._field(name)
        array = getattr(self.data, field)
        place = (..., index, *(slice(None),) * axes)
        value = jnp.asarray(value, array.dtype)
        return self.data.replace(**{field: array.at[place].set(value.reshape(jnp.shape(array[place])))})


def bind_model(self: Model, obj: Any) -> BindModel:
    """Attributes of the elements of a `mujoco.MjSpec`: `m.bind(spec.geoms).pos`."""
    return BindModel(self, obj)


def bind_data(self: Data, model: Model, obj: Any) -> BindData:
    """Results for the elements of a `mujoco.MjSpec`: `d.bind(m, spec.bodies).xpos`."""
    return BindData(self, model, obj)


Model.bind = bind_model  # pyright: ignore[reportAttributeAccessIssue]
Data.bind = bind_data  # pyright: ignore[reportAttributeAccessIssue]
