"""Recordings of controls and sensors, from arrays or files. Files are read without pickle."""

import csv
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.core.describe import describe_struct
from jaxsim.core.model import Model


@dataclasses.dataclass(frozen=True, repr=False)
class Recordings:
    """Trajectories of equal length: initial states (k, nq), (k, nv), controls (k, n, nu), measurements (k, n, ny).

    Row i of the measurements holds the values of the sensors `names` in the step with row i of the controls. NaN is a
    missing measurement. `sigma` (ny,) are standard deviations of the noise.
    """

    qpos: np.ndarray
    qvel: np.ndarray
    ctrl: np.ndarray
    measured: np.ndarray
    names: tuple[str, ...]
    sigma: np.ndarray

    __repr__ = describe_struct


def recordings(
    m: Model,
    ctrl: Any,
    measured: Mapping[str, Any],
    *,
    qpos: Any = None,
    qvel: Any = None,
    sigma: float | Mapping[str, float] = 1.0,
) -> Recordings:
    """Recordings from arrays of k trajectories of n steps.

    Args:
        ctrl: controls (k, n, nu), or (n, nu) of one trajectory.
        measured: by sensor name: (k, n, dim), (k, n) of a scalar sensor, or without k.
        qpos, qvel: initial states (k, nq) and (k, nv), by default qpos0 at rest.
        sigma: standard deviation of the noise, for all sensors or by name.

    Raises ValueError when shapes do not fit, KeyError for an unknown sensor.
    """
    ctrl = np.asarray(ctrl, float)
    ctrl = ctrl[None] if ctrl.ndim == 2 else ctrl
    if ctrl.ndim != 3 or ctrl.shape[-1] != m.nu:
        raise ValueError(f"controls have shape {ctrl.shape}; expected (trajectories, steps, {m.nu})")
    k, n, _ = ctrl.shape
    columns, deviations = [], []
    for name, values in measured.items():
        dim = int(m.sensor_dim[m.name2id("sensor", name)])
        values = np.asarray(values, float)
        if values.size != k * n * dim:
            raise ValueError(f"sensor {name!r} has {values.size} numbers; expected {k} x {n} x {dim}")
        columns.append(values.reshape(k, n, dim))
        deviations += [sigma[name] if isinstance(sigma, Mapping) else sigma] * dim
    start = np.broadcast_to(np.asarray(m.qpos0 if qpos is None else qpos, float), (k, m.nq))
    speed = np.broadcast_to(np.asarray(np.zeros(m.nv) if qvel is None else qvel, float), (k, m.nv))
    return Recordings(start, speed, ctrl, np.concatenate(columns, -1), tuple(measured), np.asarray(deviations, float))


def load_recordings(
    m: Model, paths: str | Path | Sequence[str | Path], sigma: float | Mapping[str, float] = 1.0
) -> Recordings:
    """Recordings from .npz or .csv files of equal length, one trajectory each.

    .npz: arrays `ctrl` (n, nu), each sensor by its name, and optionally `qpos` (nq,) and `qvel` (nv,).
    .csv: a header, then one row a step, with columns `ctrl:NAME` for actuators and `NAME` or `NAME:0`, `NAME:1`, ...
    for sensors; an empty cell is a missing measurement. Raises ValueError that names the file and the mistake.
    """
    paths = [paths] if isinstance(paths, (str, Path)) else list(paths)
    parts = [(_load_npz if Path(p).suffix == ".npz" else _load_csv)(m, Path(p)) for p in paths]
    lengths = {len(p["ctrl"]) for p in parts}
    if len(lengths) != 1:
        raise ValueError(f"recordings have different lengths: {sorted(lengths)}")
    names = [n for n in parts[0] if n not in ("ctrl", "qpos", "qvel")]
    missing = [str(path) for path, p in zip(paths, parts, strict=True) if any(n not in p for n in names)]
    if missing:
        raise ValueError(f"{', '.join(missing)}: not all of the sensors {', '.join(names)}")
    start = {n: np.stack([p[n] for p in parts]) for n in ("qpos", "qvel") if n in parts[0]}
    return recordings(
        m,
        np.stack([p["ctrl"] for p in parts]),
        {n: np.stack([p[n] for p in parts]) for n in names},
        sigma=sigma,
        **start,
    )


def _load_npz(m: Model, path: Path) -> dict[str, np.ndarray]:
    """Arrays of one trajectory by name, those of sensors with two axes."""
    try:
        with np.load(path, allow_pickle=False) as loaded:
            out = {name: loaded[name] for name in loaded.files}
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is not an .npz file of numbers: {error}") from None
    if "ctrl" not in out:
        raise ValueError(f"{path} holds no array 'ctrl', only {', '.join(out) or 'nothing'}")
    starts = ("qpos", "qvel")
    return {n: x[:, None] if x.ndim == 1 and n not in starts else x for n, x in out.items()}


def _load_csv(m: Model, path: Path) -> dict[str, np.ndarray]:
    """Controls and sensors of one trajectory by name, as from an .npz file."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    try:
        table = np.array([[float(cell) if cell.strip() else np.nan for cell in row] for row in rows])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if table.ndim != 2 or table.shape[1] != len(header):
        raise ValueError(f"{path}: rows and header have different lengths")
    column = dict(zip(header, table.T, strict=True))
    ctrl = np.zeros((len(table), m.nu))
    out: dict[str, list] = {}
    for name, values in column.items():
        if name == "time":
            continue
        if name.startswith("ctrl:"):
            ctrl[:, m.name2id("actuator", name[5:])] = values
        else:
            out.setdefault(name.split(":")[0], []).append(values)
    return {"ctrl": ctrl, **{n: np.stack(v, -1) for n, v in out.items()}}
