"""Parameters to identify: numbers of a model by name, with bounds and priors, in unconstrained coordinates."""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.describe import describe_struct
from jaxsim.core.errors import did_you_mean
from jaxsim.core.model import Model
from jaxsim.core.named import KINDS
from jaxsim.identify import inertia as log_cholesky
from jaxsim.math.safe import Array

NAMED = ("body", "joint", "geom", "site", "actuator", "tendon", "pair", "equality", "camera")
# prefix of a field's name -> type of the objects that its rows belong to
OBJECTS = {prefix.rstrip("_"): kind for kind in NAMED for prefix in KINDS[kind].prefixes}
# fields that constants derived at qpos0 depend on, with geom_size
CONSTANTS_DEPEND_ON = (
    "body_mass",
    "body_inertia",
    "body_pos",
    "body_quat",
    "body_ipos",
    "body_iquat",
    "dof_armature",
    "jnt_pos",
)


Write = Callable[[Model, Array], Model]


@dataclasses.dataclass(frozen=True)
class Form:
    """Static part of a parameter: parameters with equal forms share compiled programs.

    `kind`, `channels`, `log` and `write` are those of `Parameter`, `size` is the number of its values.
    """

    kind: str
    channels: tuple[str, ...]
    log: bool
    size: int
    write: Write | None
    constants: bool

    def to_value(self, free: Array) -> Array:
        """Convert free coordinates to a value."""
        return jnp.exp(free) if self.log else free


@dataclasses.dataclass(frozen=True)
class Entries:
    """Function that writes entries of a field of the model, given as one tuple of indices for each axis."""

    field: str
    index: tuple[tuple[int, ...], ...]

    def __call__(self, m: Model, value: Array) -> Model:
        index = tuple(np.array(x) for x in self.index)
        return m.replace(**{self.field: getattr(m, self.field).at[index].set(value)})


@dataclasses.dataclass(frozen=True)
class OptionEntries:
    """Function that writes entries of a field of `m.opt`."""

    field: str
    index: tuple[int, ...]

    def __call__(self, m: Model, value: Array) -> Model:
        old = getattr(m.opt, self.field)
        new = old.at[np.array(self.index)].set(value) if old.ndim else value[0]
        return m.replace(opt=m.opt.replace(**{self.field: new}))


@dataclasses.dataclass(frozen=True)
class Mass:
    """Function that writes the mass of a body and its inertia in proportion."""

    body: int

    def __call__(self, m: Model, value: Array) -> Model:
        ratio = value[0] / m.body_mass[self.body]
        inertia = m.body_inertia.at[self.body].multiply(ratio)
        return m.replace(body_mass=m.body_mass.at[self.body].set(value[0]), body_inertia=inertia)


@dataclasses.dataclass(frozen=True)
class Moments:
    """Function that writes the inertia of a body from its ten log-Cholesky numbers."""

    body: int

    def __call__(self, m: Model, value: Array) -> Model:
        return log_cholesky.write_moments(m, self.body, log_cholesky.to_moments(value))


@dataclasses.dataclass(frozen=True, repr=False)
class Parameter:
    """Numbers of a model that are to be identified.

    `write(m, value)` returns the model with the numbers `value` (n,). `log` estimates their logarithms, which keeps
    them positive. `prior` is (mean, standard deviation) in the units of the value; with `log`, the deviation is
    relative. `constants`: whether constants derived at qpos0 depend on them. `kind` is "model" or a property of
    `channels`: "gain", "bias", "delay" or "offset" of sensors, "ctrl_delay" of actuators. "controller" is a number
    of the controller in the loop.
    """

    labels: tuple[str, ...]
    start: np.ndarray
    write: Write | None
    low: float = -np.inf
    high: float = np.inf
    log: bool = False
    prior: tuple[Any, Any] | None = None
    constants: bool = False
    kind: str = "model"
    channels: tuple[str, ...] = ()

    __repr__ = describe_struct

    @property
    def form(self) -> Form:
        """Static part, a key of compiled programs."""
        return Form(self.kind, self.channels, self.log, len(self.labels), self.write, self.constants)

    def to_free(self, value: Any) -> np.ndarray:
        """Convert a value to free coordinates."""
        return np.log(value) if self.log else np.asarray(value, float)


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
    """Make a parameter of entries of a float field of the model, chosen by the names of their objects.

    Args:
        field: "dof_damping", "geom_friction", "actuator_gainprm", ... or "opt.gravity" for an option.
        name: name of the joint, geom, actuator, ..., or several names; None for all rows. Dofs go by their joint.
        index: column or columns of the field, such as 0 for sliding friction; None for all.
        tie: use one number for all entries.

    Raises KeyError for an unknown name, TypeError for an unknown field, ValueError where a start is out of bounds.
    """
    if field.startswith("opt."):
        return _option(m, field[4:], index, low, high, log, prior)
    if not hasattr(m, field) or field not in jaxsim.core.model.FLOATS:
        raise TypeError(f"Model has no float field {field!r}{did_you_mean(field, jaxsim.core.model.FLOATS)}")
    rows, names = _rows(m, field, name)
    if field in ("body_ipos", "body_iquat"):
        _refuse_simple(m, rows)
    array = np.asarray(getattr(m, field))
    width = array.shape[1] if array.ndim > 1 else 1
    if index is not None and not all(0 <= int(i) < width for i in np.atleast_1d(index)):
        raise ValueError(f"{field} has columns 0 to {width - 1}, and index is {index}")
    columns = (
        [()]
        if array.ndim == 1
        else [(int(c),) for c in np.atleast_1d(range(array.shape[1]) if index is None else index)]
    )
    entries = [(row, *column) for row in rows for column in columns]
    labels = [f"{field}[{n}]" + "".join(f"[{c}]" for c in column) for n in names for column in columns]
    start = np.array([array[entry] for entry in entries])
    write = Entries(field, tuple(zip(*entries, strict=True)))
    if tie:
        labels = [f"{field}[{', '.join(names)}]" + ("" if index is None else f"[{index}]")]
        if not np.allclose(start, start[0]):
            values = ", ".join(f"{x:.4g}" for x in start)
            warnings.warn(
                f"{labels[0]} is one number that starts at {start[0]:.4g}, of {values}", UserWarning, stacklevel=2
            )
        start = start[:1]
    constants = field in CONSTANTS_DEPEND_ON
    return _checked(Parameter(tuple(labels), start, write, low, high, log, prior, constants))


def _refuse_simple(m: Model, bodies: list[int]) -> None:
    """Raise ValueError for a body whose mass matrix was compiled as diagonal: its inertial frame cannot move."""
    if (m.body_simple[bodies] == 1).any():
        raise ValueError(
            "the mass matrix of this body was compiled as diagonal, so that its inertial frame cannot move: "
            "use jaxsim.with_full_inertia(m)"
        )


def _rows(m: Model, field: str, name: str | Sequence[str] | None) -> tuple[list[int], list[str]]:
    """Rows of a field that belong to the named objects, and a label for each."""
    prefix = field.split("_")[0]
    if prefix not in OBJECTS:
        raise TypeError(f"rows of {field!r} have no names; construct a Parameter with a `write` function instead")
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
    """Parameter of entries of a field of `m.opt`."""
    value = np.asarray(getattr(m.opt, field), float)
    entries = np.arange(value.size) if index is None else np.atleast_1d(index)
    labels = [f"opt.{field}" + (f"[{i}]" if value.ndim else "") for i in entries]

    write = OptionEntries(field, tuple(int(i) for i in entries))
    return _checked(Parameter(tuple(labels), value.reshape(-1)[entries], write, low, high, log, prior))


def mass(m: Model, body: str, *, low: float = 1e-6, high: float = np.inf, prior: tuple | None = None) -> Parameter:
    """Make a parameter of the mass of a body; its inertia changes in proportion, as by a change of density."""
    b = m.name2id("body", body)
    start = np.asarray(m.body_mass)[b : b + 1]
    return _checked(Parameter((f"mass[{body}]",), start, Mass(b), low, high, True, prior, True))


def inertia(m: Model, body: str, *, prior: float | None = None) -> Parameter:
    """Make a parameter of a body's ten inertial parameters in log-Cholesky form, which is physical for all values.

    `prior`: standard deviation of each about the model's own. Raises ValueError for a body whose mass matrix was
    compiled as diagonal: use `jaxsim.with_full_inertia` first.
    """
    b = m.name2id("body", body)
    _refuse_simple(m, [b])
    start = log_cholesky.from_moments(log_cholesky.read_moments(m, b))
    labels = tuple(f"inertia[{body}].{n}" for n in ["alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3"])
    return Parameter(labels, start, Moments(b), prior=None if prior is None else (start, prior), constants=True)


def signal(
    kind: str,
    channels: str | Sequence[str],
    start: float | None = None,
    *,
    low=-np.inf,
    high=np.inf,
    prior=None,
    tie: bool = False,
) -> Parameter:
    """Make a parameter: "gain", "bias" or "delay" (s) of each named sensor, or "ctrl_delay" (s) of each actuator.

    "offset" is the delay (s) of a sensor's clock, of either sign, with finite bounds `low` and `high`. Rows that the
    offset may shift beyond the ends of a record are left out. `tie`: use one number for all of them.
    """
    if kind not in ("gain", "bias", "delay", "offset", "ctrl_delay"):
        raise ValueError(f'kind is {kind!r}; expected "gain", "bias", "delay", "offset" or "ctrl_delay"')
    if kind == "offset" and not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError('an "offset" needs finite low and high (s): rows near the ends of records are left out')
    channels = (channels,) if isinstance(channels, str) else tuple(channels)
    first = (1.0 if kind == "gain" else 0.0) if start is None else start
    low = max(low, 0.0) if "delay" in kind else low
    labels = (f"{kind}[{', '.join(channels)}]",) if tie else tuple(f"{kind}[{c}]" for c in channels)
    return _checked(
        Parameter(labels, np.full(len(labels), first), None, low, high, False, prior, kind=kind, channels=channels)
    )


def gain(
    name: str, start: float | Sequence[float], *, low=-np.inf, high=np.inf, log: bool = False, prior=None
) -> Parameter:
    """Make a parameter of a controller in the loop: `controller(data, row, gains)` finds it as `gains[name]` (n,)."""
    values = np.atleast_1d(np.asarray(start, float))
    labels = (name,) if len(values) == 1 else tuple(f"{name}[{i}]" for i in range(len(values)))
    return _checked(Parameter(labels, values, None, low, high, log, prior, kind="controller", channels=(name,)))


def _checked(p: Parameter) -> Parameter:
    """The parameter itself. Raises ValueError where a start is out of bounds."""
    low = max(p.low, 0.0) if p.log else p.low
    mean, deviation = p.prior or (1.0, 1.0)
    if not (
        np.isfinite(mean).all() and (np.asarray(deviation) > 0).all() and (not p.log or np.all(np.asarray(mean) > 0))
    ):
        raise ValueError(f"the prior of {p.labels[0]} is {p.prior}; expected (mean, positive standard deviation)")
    for label, value in zip(p.labels, p.start, strict=True):
        if not low <= value <= p.high or (p.log and value <= 0):
            raise ValueError(f"{label} starts at {value:g}, outside ({low:g}, {p.high:g})")
    return p
