"""Input of the viewers: one state, a batch, or a trajectory of one world or of many, as frames of each world."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.math.safe import Array

PLACES = (
    *("xpos", "xmat", "geom_xpos", "geom_xmat", "site_xpos", "site_xmat"),
    *("cam_xpos", "cam_xmat", "light_xpos", "light_xdir"),
)  # of what is drawn
TENDON = ("ten_wrapadr", "ten_wrapnum", "wrap_obj", "wrap_xpos")
FLEX = ("flexvert_xpos",)
_CONTACT = ("pos", "frame")
WORLD_SPACING = 1.2  # between worlds that are drawn in one scene, in extents of the model


def split_worlds(m: Model, states: Any) -> list[dict[str, np.ndarray]]:
    """Split states into one mapping of arrays for each world, with a leading axis of frames.

    `states` is a `Data`, a mapping or an array of qpos, of shape (nq,), (frames, nq) or (frames, worlds, nq). A
    single leading axis counts frames, unless all entries have the same time: then it counts worlds, as in a batch.

    Raises ValueError where neither `qpos` nor `geom_xpos` has such a shape.
    """
    fields = _fields(states)
    lead = _leading_axes(m, fields)
    if lead is None or lead > 2:
        shape = {n: np.shape(fields[n]) for n in ("qpos", "geom_xpos") if n in fields}
        raise ValueError(f"to be drawn is qpos ({m.nq},), (frames, {m.nq}) or (frames, worlds, {m.nq}), not {shape}")
    if lead == 0:
        return [{name: x[None] for name, x in fields.items()}]
    time = fields.get("time")
    if lead == 1 and time is not None and len(time) > 1 and np.ndim(time) == 1 and (time == time[0]).all():
        return [{name: x[i : i + 1] for name, x in fields.items()} for i in range(len(time))]
    if lead == 1:
        return [fields]
    count = next(fields[n].shape[1] for n in ("qpos", "geom_xpos") if n in fields)
    return [
        {name: x if name == "time" and x.ndim == 1 else x[:, i] for name, x in fields.items()} for i in range(count)
    ]


def _fields(states: Any) -> dict[str, np.ndarray]:
    """Arrays by name; those of contacts as `contact_pos` and `contact_frame`."""
    if isinstance(states, Mapping):
        return {name: np.asarray(x) for name, x in states.items() if x is not None}
    if not isinstance(states, Data):
        return {"qpos": np.asarray(states)}
    names = ("time", "qpos", "mocap_pos", "mocap_quat", "sensordata", "ncon", *PLACES, *FLEX, *TENDON)
    found = {n: getattr(states, n) for n in names} | {f"contact_{n}": getattr(states.contact, n) for n in _CONTACT}
    return {name: np.asarray(x) for name, x in jax.device_get(found).items()}


def _leading_axes(m: Model, fields: dict[str, np.ndarray]) -> int | None:
    """Axes before those of one state; None where the shapes are not a model's."""
    for name, shape in (("qpos", (m.nq,)), ("geom_xpos", (m.ngeom, 3))):
        if name in fields:
            x = fields[name]
            return x.ndim - len(shape) if x.ndim >= len(shape) and x.shape[x.ndim - len(shape) :] == shape else None
    return None


def grid(count: int, spacing: float) -> np.ndarray:
    """Compute offsets (count, 3) of worlds placed in a square grid around the origin."""
    side = int(np.ceil(np.sqrt(count)))
    row, column = np.divmod(np.arange(count), side)
    place = np.stack([column - (side - 1) / 2, row - (np.ceil(count / side) - 1) / 2, 0 * row], 1)
    return place * spacing


def tiles(images: list[np.ndarray]) -> np.ndarray:
    """Tile images of one size in a square."""
    side = int(np.ceil(np.sqrt(len(images))))
    blank = np.full_like(images[0], 255)
    rows = [images[i : i + side] for i in range(0, len(images), side)]
    return np.concatenate([np.concatenate(row + [blank] * (side - len(row)), 1) for row in rows], 0)


def poses(m: Model, trajectory: Any) -> dict[str, np.ndarray]:
    """Compute poses of all drawn objects, frames first, at `qpos` and `time` of a trajectory (a mapping or a `Data`).

    Mocap poses are those of the trajectory if it has them. Raises ValueError when it has no frames of `qpos`.
    """
    get = trajectory.get if isinstance(trajectory, Mapping) else partial(getattr, trajectory)
    qpos = get("qpos", None)
    shape = () if qpos is None else np.shape(qpos)
    if len(shape) != 2 or shape[1] != m.nq:
        raise ValueError(f"a trajectory to draw has qpos (frames, {m.nq}), not {shape}")
    given = {"qpos": jnp.asarray(qpos)}
    given |= {n: jnp.asarray(x) for n in ("mocap_pos", "mocap_quat") if (x := get(n, None)) is not None}
    time = get("time", None)
    found = jax.device_get(_poses(m, given))
    found["time"] = np.arange(shape[0]) * float(m.opt.timestep) if time is None else np.asarray(time)
    return found


def place(m: Model, d: Data) -> Data:
    """Compute data with the poses of all visible objects, at `qpos` and the poses of mocap bodies."""
    d = jaxsim.stages.flex(m, jaxsim.camlight(m, jaxsim.com_pos(m, jaxsim.kinematics(m, d))))
    return jaxsim.tendon(m, d)


@jax.jit
def _poses(m: Model, given: dict[str, Array]) -> dict[str, Array]:
    names = (*PLACES, "xanchor", "xaxis") + (TENDON if m.ntendon else ()) + (FLEX if m.nflex else ())

    def one(given: dict[str, Array]) -> dict[str, Array]:
        d = place(m, jaxsim.make_data(m).replace(**given))
        return {n: getattr(d, n) for n in names}

    return jax.lax.map(one, given)
