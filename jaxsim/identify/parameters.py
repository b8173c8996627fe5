"""What can be identified: numbers of a model by name, with bounds and priors, in coordinates without constraints."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.model import Model
from jaxsim.identify import inertia as lc
from jaxsim.math.safe import Array

# prefix of a field -> the objects that its rows belong to
OBJECTS = {
    "body": "body",
    "jnt": "joint",
    "dof": "joint",
    "geom": "geom",
    "site": "site",
    "actuator": "actuator",
    "tendon": "tendon",
    "pair": "pair",
    "eq": "equality",
    "cam": "camera",
}
DERIVED = ("body_mass", "body_inertia", "body_pos", "body_quat", "body_ipos", "body_iquat", "dof_armature", "jnt_pos")


@dataclasses.dataclass(frozen=True)
class Parameter:
    """Some numbers of a model that are to be found.

    `write(m, value)` gives the model with the numbers `value` (n,). `log` estimates their logarithms, which keeps them
    positive. `prior` is (mean, standard deviation) in the units of the value; with `log`, the deviation is relative.
    `constants` says that constants derived at qpos0 depend on them. `kind` is "model" or one of the signals: "gain",
    "bias", "delay" of sensors, "ctrl_delay" of controls.
    """

    labels: tuple[str, ...]
    start: np.ndarray
    write: Callable[[Model, Array], Model] | None
    low: float = -np.inf
    high: float = np.inf
    log: bool = False
    prior: tuple[Any, Any] | None = None
    constants: bool = False
    kind: str = "model"
    channels: tuple[str, ...] = ()

    def to_free(self, value: Any) -> Any:
        return jnp.log(value) if self.log else jnp.asarray(value)

    def to_value(self, free: Array) -> Array:
        return jnp.exp(free) if self.log else free


def parameter(
    m: Model,
    field: str,
    name: str | Sequence[str] | None = None,
    index: int | Sequence[int] | None = None,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    log: bool = False,
    prior: tuple[float, float] | None = None,
    tie: bool = False,
) -> Parameter:
    """Numbers of a float field of the model, chosen by the names of their objects.

    Args:
        field: "dof_damping", "geom_friction", "actuator_gainprm", ... or "opt.gravity" for an option.
        name: of the joint, geom, actuator, ...; several; None for all rows. A dof goes by the name of its joint.
        index: columns of the field, for those that have several: 0 for sliding friction, 0 for a position gain.
        tie: one number for all of them.

    Raises KeyError for an unknown name, TypeError for an unknown field, ValueError where a start is out of bounds.
    """
    if field.startswith("opt."):
        return _option(m, field[4:], index, low, high, log, prior)
    if not hasattr(m, field) or field not in jaxsim.core.model.FLOATS:
        raise TypeError(f"Model has no float field {field!r}")
    rows, names = _rows(m, field, name)
    if field in ("body_ipos", "body_iquat"):
        _refuse_simple(m, rows)
    array = np.asarray(getattr(m, field))
    columns = (
        [()]
        if array.ndim == 1
        else [(int(c),) for c in np.atleast_1d(range(array.shape[1]) if index is None else index)]
    )
    places = [(row, *column) for row in rows for column in columns]
    labels = [f"{field}[{n}]" + "".join(f"[{c}]" for c in column) for n in names for column in columns]
    start = np.array([array[p] for p in places])
    at = tuple(np.array(x) for x in zip(*places, strict=True))
    if tie:
        labels, start = [f"{field}[{', '.join(names)}]" + ("" if index is None else f"[{index}]")], start[:1]

    def write(m: Model, value: Array) -> Model:
        return m.replace(**{field: getattr(m, field).at[at].set(value)})

    return _checked(
        Parameter(tuple(labels), start, write, low, high, log, prior, field in DERIVED or field.startswith("geom_size"))
    )


def _refuse_simple(m: Model, bodies: list[int]):
    """The inertial frame of a body whose M was compiled as diagonal cannot move."""
    if (m.body_simple[bodies] == 1).any():
        raise ValueError("M of this model has no room for a moved inertial frame: use jaxsim.with_full_inertia(m)")


def _rows(m: Model, field: str, name: str | Sequence[str] | None) -> tuple[list[int], list[str]]:
    prefix = field.split("_")[0]
    if prefix not in OBJECTS:
        raise TypeError(f"rows of {field!r} have no names; write a Parameter of your own")
    objects = OBJECTS[prefix]
    count = len(getattr(m, field)) if prefix != "dof" else m.njnt
    names = [m.id2name(objects, i) for i in range(count)] if name is None else [name] if isinstance(name, str) else name
    ids = range(count) if name is None else [m.name2id(objects, n) for n in names]
    if prefix != "dof":
        return list(ids), [n or str(i) for n, i in zip(names, ids, strict=True)]
    rows, labels = [], []
    for i, n in zip(ids, names, strict=True):
        dofs = np.flatnonzero(m.dof_jntid == i).tolist()
        rows += dofs
        labels += [n or str(i)] if len(dofs) == 1 else [f"{n or i}.{k}" for k in range(len(dofs))]
    return rows, labels


def _option(m: Model, field: str, index: Any, low: float, high: float, log: bool, prior: Any) -> Parameter:
    value = np.asarray(getattr(m.opt, field), float)
    places = np.arange(value.size) if index is None else np.atleast_1d(index)
    labels = [f"opt.{field}" + (f"[{i}]" if value.ndim else "") for i in places]

    def write(m: Model, new: Array) -> Model:
        old = getattr(m.opt, field)
        return m.replace(opt=m.opt.replace(**{field: old.at[places].set(new) if value.ndim else new[0]}))

    return _checked(Parameter(tuple(labels), value.reshape(-1)[places], write, low, high, log, prior))


def mass(m: Model, body: str, *, low: float = 1e-6, high: float = np.inf, prior: tuple | None = None) -> Parameter:
    """The mass of a body; its inertia changes in proportion, as for a body of another density."""
    b = m.name2id("body", body)

    def write(m: Model, value: Array) -> Model:
        ratio = value[0] / m.body_mass[b]
        inertia = m.body_inertia.at[b].multiply(ratio)
        return m.replace(body_mass=m.body_mass.at[b].set(value[0]), body_inertia=inertia)

    return _checked(
        Parameter((f"mass[{body}]",), np.asarray(m.body_mass)[b : b + 1], write, low, high, True, prior, True)
    )


def inertia(m: Model, body: str, *, prior: float | None = None) -> Parameter:
    """All ten inertial parameters of a body in log-Cholesky form: always physical. `prior`: a deviation for each.

    Raises ValueError for a body with a diagonal M: `jaxsim.with_full_inertia` makes room.
    """
    b = m.name2id("body", body)
    _refuse_simple(m, [b])
    start = lc.from_moments(lc.read_moments(m, b))
    labels = tuple(f"inertia[{body}].{n}" for n in ["alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3"])

    def write(m: Model, value: Array) -> Model:
        return lc.write_moments(m, b, lc.to_moments(value))

    return Parameter(labels, start, write, prior=None if prior is None else (start, prior), constants=True)


def signal(
    kind: str, channels: str | Sequence[str], start: float | None = None, *, low=-np.inf, high=np.inf, prior=None
) -> Parameter:
    """A "gain", "bias" or "delay" (s) of sensors by name, or the "ctrl_delay" (s) of actuators by name: one each."""
    if kind not in ("gain", "bias", "delay", "ctrl_delay"):
        raise ValueError(f'kind is {kind!r}; wanted "gain", "bias", "delay" or "ctrl_delay"')
    channels = (channels,) if isinstance(channels, str) else tuple(channels)
    first = (1.0 if kind == "gain" else 0.0) if start is None else start
    low = max(low, 0.0) if "delay" in kind else low
    labels = tuple(f"{kind}[{c}]" for c in channels)
    return _checked(
        Parameter(labels, np.full(len(channels), first), None, low, high, False, prior, kind=kind, channels=channels)
    )


def _checked(p: Parameter) -> Parameter:
    low = max(p.low, 0.0) if p.log else p.low
    for label, value in zip(p.labels, p.start, strict=True):
        if not low <= value <= p.high or (p.log and value <= 0):
            raise ValueError(f"{label} starts at {value:g}, outside ({low:g}, {p.high:g})")
    return p
