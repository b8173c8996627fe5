"""Text of `print` for a model, data and their parts: a short summary of one world or a batch."""

import dataclasses
import textwrap
from typing import Any

import jax
import jax.core
import numpy as np

from jaxsim.core.types import (
    Backend,
    ConeType,
    DisableBit,
    EnableBit,
    IntegratorType,
    JacobianType,
    SolverType,
    WarningType,
)

WORDS = {
    "integrator": IntegratorType,
    "cone": ConeType,
    "jacobian": JacobianType,
    "solver": SolverType,
    "backend": Backend,
}
FLAGS = {"disableflags": DisableBit, "enableflags": EnableBit}
MAX_CONTACTS = 10  # contacts that are listed
MAX_TEXT = 60  # characters of a value that is not an array
SIZES = (
    *("nbody", "nq", "nv", "nu", "na", "ngeom", "njnt", "nsite", "ncam", "nlight", "nmesh", "nhfield", "nflex"),
    *("neq", "ntendon", "nsensor", "nkey", "nmocap"),
)  # sizes of a model, shown if nonzero


def refuse_traced(name: str, value: Any) -> None:
    """Raise TypeError for a traced value of a field that is structure."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{name} is traced, and decides what is compiled: set it outside of jit, vmap and grad, or make it a "
            "static argument (static_argnames)"
        )


def count(name: str, value: Any, of: str = "") -> int:
    """Return a number of things as an integer; raise ValueError if it is negative or not whole."""
    refuse_traced(name, value)
    if int(value) != value or value < 0:
        raise ValueError(f"{name} is {value}, wanted a whole number{of}, zero or more")
    return int(value)


def option_value(name: str, value: Any) -> int:
    """Return the integer of an option given as a number or, for choices, as MJCF's word ("RK4", "elliptic", "Newton").

    Raises ValueError for an unknown word or a number without a meaning, TypeError for a traced number.
    """
    refuse_traced(f"opt.{name}", value)
    if name not in WORDS:
        return count(f"opt.{name}", value)
    choices = {member.name.lower(): member for member in WORDS[name]}
    wanted = ", ".join(repr(word) for word in choices)
    if isinstance(value, str):
        if value.lower() not in choices:
            raise ValueError(f"{name} is {value!r}, wanted one of {wanted}")
        return int(choices[value.lower()])
    number = int(value)
    if number not in list(WORDS[name]):
        raise ValueError(f"{name} is {number}, wanted one of {wanted}, or a number from 0 to {len(choices) - 1}")
    return number


def describe_struct(self: Any) -> str:
    """Return all fields of a dataclass or named tuple, wrapped: numbers where they are few, else types and shapes."""
    names = getattr(self, "_fields", None) or [f.name for f in dataclasses.fields(self)]
    return wrapped(type(self).__name__, {name: getattr(self, name) for name in names})


def wrapped(name: str, values: dict[str, Any]) -> str:
    """Return `name(field=value, ...)` in lines of 118 characters."""
    items = ", ".join(f"{key}={short_value(value)}" for key, value in values.items())
    lines = textwrap.wrap(items, 116, break_long_words=False, break_on_hyphens=False)
    if len(lines) <= 1 and len(name) + len(items) < 116:
        return f"{name}({items})"
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)"


def describe_model(m: Any) -> str:
    """Return the name, sizes, capacities and the main options."""
    sizes = {n: getattr(m, n) for n in SIZES if getattr(m, n)}
    words = {n: WORDS[n](getattr(m.opt, n)).name.lower() for n in ("integrator", "cone", "solver")}
    capacities = {n: getattr(m, n) for n in ("max_contacts", "max_constraints")}
    return wrapped("Model", {"name": m.modelname, **sizes, **capacities, "timestep": m.opt.timestep, **words})


def describe_option(opt: Any, floats: tuple[str, ...], ints: tuple[str, ...]) -> str:
    """Return one line for each option, choices and flags by their words."""
    lines = [f"{name}={short_value(getattr(opt, name))}" for name in floats]
    for name in ints:
        value = getattr(opt, name)
        if isinstance(value, int) and name in WORDS:
            value = f"{WORDS[name](value).name.lower()!r}"
        elif isinstance(value, int) and name in FLAGS and value:
            value = " | ".join(str(flag.name) for flag in FLAGS[name] if flag & value)
        lines.append(f"{name}={value}")
    return "Option(\n  " + ",\n  ".join(lines) + ",\n)"


def describe_data(d: Any) -> str:
    """Return sizes, number of worlds, time, state and counts."""
    if not _is_concrete(d.time, d.qpos, d.qvel, d.ctrl, d.ncon, d.nefc):
        return f"Data(qpos={short_value(d.qpos)}, qvel={short_value(d.qvel)}, ctrl={short_value(d.ctrl)}, ...)"
    worlds = np.shape(d.time)
    head = f"{' x '.join(map(str, worlds))} worlds, " if worlds else ""
    state = "".join(
        f", {name}={short_value(getattr(d, name))}" for name in ("qpos", "qvel", "act", "ctrl") if _has(d, name)
    )
    counts = f"ncon={short_value(d.ncon)}, nefc={short_value(d.nefc)}"
    trouble = [name for name in ("overflow_contacts", "overflow_constraints") if _any(getattr(d, name))]
    dropped = "".join(f", {name}={short_value(getattr(d, name))}" for name in trouble)
    given = f", warning={describe_warning(d.warning)}" if _any(d.warning.number) else ""
    return f"Data({head}time={short_value(d.time)}{state}, {counts}{dropped}{given})"


def describe_contact(contact: Any) -> str:
    """Return the contacts in use, one line each; only their numbers for a batch."""
    if not _is_concrete(contact.geom, contact.dist, contact.pos):
        return f"Contact(dist={short_value(contact.dist)}, geom={short_value(contact.geom)}, ...)"
    geom, dist, pos = (np.asarray(x) for x in (contact.geom, contact.dist, contact.pos))
    used = geom[..., 0] >= 0
    capacity = used.shape[-1] if used.ndim else 0
    if used.ndim != 1:
        return f"Contact({' x '.join(map(str, used.shape[:-1]))} worlds, in use {used.sum(-1)} of {capacity})"
    rows = np.flatnonzero(used)
    lines = [f"  geoms {geom[i].tolist()}: dist {dist[i]:.6g}, pos {short_value(pos[i])}" for i in rows[:MAX_CONTACTS]]
    more = [f"  and {len(rows) - MAX_CONTACTS} more"] if len(rows) > MAX_CONTACTS else []
    return "\n".join([f"Contact({len(rows)} of {capacity} in use)", *lines, *more])


def describe_constraint(efc: Any) -> str:
    """Return slots in use, and the shapes of the Jacobians."""
    if not _is_concrete(efc.active):
        return f"Constraint(active={short_value(efc.active)}, J_contact={short_value(efc.J_contact)}, ...)"
    used, worlds = np.asarray(efc.active), np.shape(efc.active)[:-1]
    head = f"{' x '.join(map(str, worlds))} worlds, " if worlds else ""
    jacobians = ", ".join(f"{name}{list(np.shape(getattr(efc, name)))}" for name in ("J_general", "J_contact"))
    return f"Constraint({head}{short_value(used.sum(-1))} of {used.shape[-1]} slots active, {jacobians})"


def describe_warning(warning: Any) -> str:
    """Return the warnings issued, by name, with their counts and the last index."""
    if not _is_concrete(warning.number, warning.lastinfo):
        return f"Warning(number={short_value(warning.number)}, lastinfo={short_value(warning.lastinfo)})"
    number, last = np.asarray(warning.number), np.asarray(warning.lastinfo)
    number, last = number.reshape(-1, number.shape[-1]), last.reshape(-1, last.shape[-1])
    worlds = f" in {len(number)} worlds" if np.ndim(warning.number) > 1 else ""
    given = [
        f"{WarningType(k).name}: {number[:, k].sum()}{worlds} (last at {last[number[:, k] > 0, k][-1]})"
        for k in np.flatnonzero(number.any(0))
    ]
    return f"Warning({', '.join(given) or 'none'})"


def _has(d: Any, name: str) -> bool:
    return bool(np.size(getattr(d, name)))


def _any(x: Any) -> bool:
    return _is_concrete(x) and bool(np.any(np.asarray(x)))


def _is_concrete(*values: Any) -> bool:
    return all(
        isinstance(x, (np.ndarray, np.generic, jax.Array)) and not isinstance(x, jax.core.Tracer) for x in values
    )


def short_value(x: Any) -> str:
    """Format a value: short arrays as numbers, longer ones by type and shape.

    Tracers, and values that are not arrays, format themselves.
    """
    if isinstance(x, tuple) and all(isinstance(one, (int, float)) for one in x):
        return short_value(np.asarray(x))
    if isinstance(x, dict) and x:
        return "{" + ", ".join(f"{key!r}: {short_value(value)}" for key, value in x.items()) + "}"
    if isinstance(x, float):
        return f"{x:.6g}"
    if not _is_concrete(x):
        shape = getattr(x, "shape", None)
        return _in_short(repr(x)) if shape is None else f"{getattr(x, 'dtype', '')}{list(shape)}"
    array = np.asarray(x)
    if array.size > 12:
        return f"{array.dtype}{list(array.shape)}"
    text = np.array2string(array, separator=", ", formatter={"float_kind": lambda x: f"{x:.6g}"})
    return " ".join(text.split())


def _in_short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}..."
