"""Recordings from files and frames: .npz without pickle, .csv, MCAP and rosbag2, pandas."""

import csv
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.model import Model
from jaxsim.identify.data import Recordings, columns_of, recordings
from jaxsim.identify.messages import common_times, is_log, read_log
from jaxsim.identify.sampling import RowError, resampled, timestep

CTRL = "ctrl:"  # before the name of an actuator in the header of a .csv file
STARTS = ("qpos", "qvel")
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


class _Part(NamedTuple):
    """One trajectory: arrays of sensors by name, controls, times, initial state, and what a person calls row i."""

    sensors: dict[str, np.ndarray]
    ctrl: np.ndarray
    time: np.ndarray | None
    start: dict[str, np.ndarray]
    place: Callable[[int], str]


def load_recordings(
    m: Model,
    paths: Any,
    sigma: float | Mapping[str, float] = 1.0,
    *,
    resample: bool = False,
    zero_ctrl: bool = False,
    ignore: Sequence[str] = (),
    channels: Mapping[str, str] | None = None,
) -> Recordings:
    """Read recordings from files or frames of equal length, one trajectory each.

    .npz: arrays `ctrl` (n, nu), each sensor by its name, and optionally `time` (n,), `qpos` (nq,) and `qvel` (nv,).
    .csv: a header, then one row a step, with columns `ctrl:NAME` for actuators, `NAME` or `NAME:0`, `NAME:1`, ... for
    sensors in any order, and optionally `time`; an empty cell is a missing measurement.
    Frames of pandas or polars: columns as in .csv.
    .mcap, or a folder of rosbag2 with such files: messages, interpolated to the model's time step (`channels`).

    Args:
        paths: a path, a frame, or a sequence of them.
        sigma: standard deviation of the noise, for all sensors or by name.
        resample: interpolate to the model's time step where `time` has another: measurements linearly, controls held.
            Within a gap measurements are missing.
        zero_ctrl: set controls without a column to zero. A file without any control columns is read so, with a warning.
        ignore: names of columns or arrays to leave out, such as those of a log that are not of the model.
        channels: where an .mcap file has the values of sensors and of `ctrl:NAME`: "TOPIC:FIELD", with names and
            entries of fields, as in "/joint_states:position[elbow]", "/imu:angular_velocity", "/command:data[0]".

    Raises ValueError that names the file, the row or column, and the remedy.
    """
    given = [paths] if isinstance(paths, (str, Path)) or _is_frame(paths) else list(paths)
    if not given:
        raise ValueError("load_recordings: no files are given")
    files = [f"frame {i}" if _is_frame(x) else Path(x) for i, x in enumerate(given)]
    logs = [is_log(x) for x in files]
    if any(logs) and channels is None:
        raise ValueError(f'{files[logs.index(True)]}: channels={{"SENSOR": "TOPIC:FIELD"}} says what its messages hold')
    parts = [
        _load(m, path, x, sigma, resample, zero_ctrl, ignore, channels if log else None)
        for path, x, log in zip(files, given, logs, strict=True)
    ]
    first = parts[0]
    for path, part in zip(files, parts, strict=True):
        if set(part.names) != set(first.names):
            raise ValueError(f"{path} has the sensors {_listed(part)}, and {files[0]} {_listed(first)}")
        if part.ctrl.shape[1] != first.ctrl.shape[1]:
            lengths = f"{part.ctrl.shape[1]} steps, and {files[0]} {first.ctrl.shape[1]}"
            raise ValueError(f"{path} has {lengths}: recordings have one length; cut them")
    columns = [columns_of(m, part.names) for part in parts]
    order = [np.concatenate([at[name] for name in first.names]) for at in columns]
    return Recordings(
        np.concatenate([part.qpos for part in parts]),
        np.concatenate([part.qvel for part in parts]),
        np.concatenate([part.ctrl for part in parts]),
        np.concatenate([part.measured[..., at] for part, at in zip(parts, order, strict=True)]),
        first.names,
        first.sigma,
    )


def _listed(part: Recordings) -> str:
    return ", ".join(sorted(part.names))


def _is_frame(x: Any) -> bool:
    """Return whether this is a frame of pandas or polars, or of another library with the same functions."""
    return hasattr(x, "columns") and hasattr(x, "to_numpy")


def _load(
    m: Model,
    path: Path | str,
    given: Any,
    sigma: float | Mapping[str, float],
    resample: bool,
    zero_ctrl: bool,
    ignore: Sequence[str],
    channels: Mapping[str, str] | None,
) -> Recordings:
    """One trajectory, from a log of messages if there are channels. Raises ValueError with the file and the row."""
    place: Callable[[int], str] = lambda row: f"row {row}"  # noqa: E731
    try:
        if isinstance(path, str):
            part = _of_frame(m, given, path, zero_ctrl, ignore)
        elif channels is not None:
            part = _of_log(m, path, zero_ctrl, channels)
        else:
            part = _load_npz(path, ignore) if path.suffix == ".npz" else _load_csv(m, path, zero_ctrl, ignore)
        place = part.place
        return recordings(m, part.ctrl, part.sensors, time=part.time, sigma=sigma, resample=resample,
                          qpos=part.start.get("qpos"), qvel=part.start.get("qvel"))  # fmt: skip
    except RowError as error:
        raise ValueError(f"{path}, {place(error.row)}: {error.what}") from None
    except KeyError as error:
        remedy = "see channels=" if channels is not None else "ignore=[...] leaves out what is not of the model"
        raise ValueError(f"{path}: {error.args[0]} ({remedy})") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _load_npz(path: Path, ignore: Sequence[str]) -> _Part:
    """Arrays of one trajectory by name."""
    try:
        with np.load(path, allow_pickle=False) as loaded:
            out = {name: loaded[name] for name in loaded.files if name not in ignore}
    except (ValueError, EOFError) as error:
        raise ValueError(f"not an .npz file of numbers: {error}") from None
    if "ctrl" not in out:
        raise ValueError(f"no array 'ctrl' (n, nu), only {', '.join(out) or 'nothing'}")
    ctrl, time = out.pop("ctrl"), out.pop("time", None)
    start = {name: out.pop(name) for name in STARTS if name in out}
    ctrl = ctrl[:, None] if ctrl.ndim == 1 else ctrl
    return _Part(out, ctrl, time, start, lambda row: f"row {row}")


def _load_csv(m: Model, path: Path, zero_ctrl: bool, ignore: Sequence[str]) -> _Part:
    """Controls, sensors and times of one trajectory by the names of the columns."""
    header, table, lines = _read_table(path, ignore)
    return _of_table(m, header, table, path, zero_ctrl, lambda row: f"line {lines[row]}")


def _of_frame(m: Model, frame: Any, name: str, zero_ctrl: bool, ignore: Sequence[str]) -> _Part:
    """Controls, sensors and times of one trajectory by the names of the columns of a frame."""
    header = [str(column) for column in frame.columns]
    kept = [column for column in header if column not in ignore]
    twice = sorted({column for column in kept if header.count(column) > 1})
    if twice:
        raise ValueError(f"the frame has {twice[0]!r} {header.count(twice[0])} times")
    table = np.empty((len(frame), len(kept)))
    for place, column in enumerate(kept):
        try:
            table[:, place] = np.asarray(frame[column], float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"column {column!r} does not hold numbers: {error}") from None
    return _of_table(m, kept, table, name, zero_ctrl, lambda row: f"row {row}")


def _of_log(m: Model, path: Path, zero_ctrl: bool, channels: Mapping[str, str]) -> _Part:
    """Controls, sensors and times of one trajectory from a log of messages, at the model's time step."""
    width = {name: 1 if name.startswith(CTRL) else int(m.sensor_dim[m.name2id("sensor", name)]) for name in channels}
    signals = read_log(path, channels, width)
    grid = common_times(signals, timestep(m))
    sensors, ctrl = {}, np.zeros((len(grid), m.nu))
    undriven = [f"{CTRL}{m.id2name('actuator', i) or i}" for i in range(m.nu)]
    for name, (times, values) in signals.items():
        none = np.zeros((1, len(times), 0))
        if name.startswith(CTRL):
            held, _ = resampled(m, (), times, grid, values[None], none)
            ctrl[:, m.name2id("actuator", name.removeprefix(CTRL))] = held[0, :, 0]
            undriven.remove(name)
        else:
            sensors[name] = resampled(m, (name,), times, grid, none, values[None])[1][0]
    if undriven and not zero_ctrl:
        raise ValueError(f"no channel {', '.join(undriven)}: add it, or pass zero_ctrl=True if nothing was applied")
    return _Part(sensors, ctrl, grid, {}, lambda row: f"time {grid[row]:.6g}")


def _of_table(
    m: Model, header: Sequence[str], table: np.ndarray, what: Path | str, zero_ctrl: bool, place: Callable[[int], str]
) -> _Part:
    """Controls, sensors and times of one trajectory by the names of the columns of a table."""
    time = table[:, header.index("time")] if "time" in header else None
    ctrl = np.zeros((len(table), m.nu))
    driven: set[int] = set()
    columns: dict[str, dict[int, np.ndarray]] = {}
    for name, values in zip(header, table.T, strict=True):
        if name.startswith(CTRL):
            i = m.name2id("actuator", name.removeprefix(CTRL))
            driven.add(i)
            ctrl[:, i] = values
        elif name != "time":
            sensor, entry = _sensor_column(m, name)
            columns.setdefault(sensor, {})[entry] = values
    undriven = [f"{CTRL}{m.id2name('actuator', i) or i}" for i in range(m.nu) if i not in driven]
    if driven and undriven and not zero_ctrl:
        raise ValueError(
            f"no column {', '.join(undriven)}: add what was applied, or pass zero_ctrl=True if that was nothing"
        )
    sensors = {name: _joined(m, name, found) for name, found in columns.items()}
    if undriven and not zero_ctrl:
        warnings.warn(f"{what} has no columns {CTRL}NAME: all controls are taken as zero", UserWarning, stacklevel=6)
    return _Part(sensors, ctrl, time, {}, place)


def _read_table(path: Path, ignore: Sequence[str]) -> tuple[list[str], np.ndarray, list[int]]:
    """Names of the columns but those to `ignore`, numbers (n, columns) with NaN for empty cells, and lines of rows."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    if not rows:
        raise ValueError("the file is empty")
    header = [name.strip() for name in rows.pop(0)[1]]
    for separator, what in SEPARATORS.items():
        if len(header) == 1 and separator in header[0]:
            raise ValueError(
                f"columns are separated by {what}; separate them by commas, with a decimal point in numbers"
            )
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise ValueError(f"the header has {twice[0]!r} {header.count(twice[0])} times")
    if not rows:
        raise ValueError("the file has no rows below the header")
    kept = [j for j, name in enumerate(header) if name not in ignore]
    table = np.full((len(rows), len(kept)), np.nan)
    for i, (line, row) in enumerate(rows):
        if len(row) != len(header):
            raise ValueError(f"line {line}: {len(row)} cells, and the header has {len(header)}")
        for place, j in enumerate(kept):
            try:
                table[i, place] = float(row[j]) if row[j].strip() else np.nan
            except ValueError:
                raise ValueError(f"line {line}, column {header[j]!r}: {row[j]!r} is not a number") from None
    return [header[j] for j in kept], table, [line for line, _ in rows]


def _sensor_column(m: Model, name: str) -> tuple[str, int]:
    """Sensor that a column belongs to, and which of its values: `NAME` or `NAME:2`."""
    sensor, colon, index = name.rpartition(":")
    if not colon or not index.isdecimal():
        sensor, index = name, ""
    dim = int(m.sensor_dim[m.name2id("sensor", sensor)])
    if not index and dim > 1:
        raise ValueError(f"column {name!r}: the sensor has {dim} values: {name}:0 to {name}:{dim - 1}")
    if index and int(index) >= dim:
        raise ValueError(f"column {name!r}: the sensor has {dim} value{'s' * (dim > 1)}, counted from 0")
    return sensor, int(index or 0)


def _joined(m: Model, name: str, columns: dict[int, np.ndarray]) -> np.ndarray:
    """Values (n, dim) of a sensor in their order, whatever the order of the columns."""
    dim = int(m.sensor_dim[m.name2id("sensor", name)])
    missing = [f"{name}:{i}" for i in range(dim) if i not in columns]
    if missing:
        raise ValueError(f"no column {', '.join(missing)}; leave cells empty where it was not measured")
    return np.stack([columns[i] for i in range(dim)], -1)
