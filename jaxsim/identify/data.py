"""Recordings of controls and sensors, from arrays."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxsim.core.describe import describe_struct
from jaxsim.core.model import Model
from jaxsim.identify.plausible import check_rows
from jaxsim.identify.sampling import RowError, resampled, sample_times, timestep


@dataclasses.dataclass(frozen=True, repr=False)
class Recordings:
    """Trajectories of equal length: initial states (k, nq), (k, nv), controls (k, n, nu), measurements (k, n, ny).

    Row i of the measurements holds the values of the sensors `names` in the step with row i of the controls. NaN is a
    missing measurement. `sigma` (ny,) are standard deviations of the noise. `states` are positions (k, n, nq) and
    velocities (k, n, nv) of all rows, if they are known: windows of a trajectory begin in these states.
    """

    qpos: np.ndarray
    qvel: np.ndarray
    ctrl: np.ndarray
    measured: np.ndarray
    names: tuple[str, ...]
    sigma: np.ndarray
    states: tuple[np.ndarray, np.ndarray] | None = None

    __repr__ = describe_struct

    def chosen(self, which: Any) -> "Recordings":
        """Return the trajectories with these indices, or of a mask (k,)."""
        qpos, qvel, ctrl, measured = (x[which] for x in (self.qpos, self.qvel, self.ctrl, self.measured))
        states = None if self.states is None else (self.states[0][which], self.states[1][which])
        return Recordings(qpos, qvel, ctrl, measured, self.names, self.sigma, states)


def recordings(
    m: Model,
    ctrl: Any,
    measured: Mapping[str, Any],
    *,
    time: Any = None,
    qpos: Any = None,
    qvel: Any = None,
    sigma: float | Mapping[str, float] = 1.0,
    resample: bool = False,
    states: tuple[Any, Any] | None = None,
) -> Recordings:
    """Make recordings from arrays of k trajectories of n steps.

    Args:
        ctrl: controls (k, n, nu), or (n, nu) of one trajectory.
        measured: by sensor name: (k, n, dim), (k, n) of a scalar sensor; of one trajectory also without k. NaN is a
            missing measurement.
        time: times of the rows (n,) in s, the same for all trajectories. They must be those of the model's time step.
        qpos: initial positions (k, nq), or (nq,) for all; by default qpos0.
        qvel: initial velocities (k, nv), or (nv,) for all; by default zero.
        sigma: standard deviation of the noise, for all sensors or by name.
        resample: interpolate to the model's time step where `time` has another: measurements linearly, controls held.
            Within a gap measurements are missing.
        states: positions (k, n, nq) and velocities (k, n, nv) of all rows, in which windows begin; the first row is the
            initial state.

    Raises ValueError for inconsistent shapes, times or numbers, KeyError for an unknown sensor.
    """
    if not measured:
        raise ValueError("recordings: no sensor is measured")
    dims = dict(zip(measured, sensor_sizes(m, measured), strict=True))
    values = {name: np.asarray(x, float) for name, x in measured.items()}
    controls = _controls(m, ctrl)
    k, n, _ = controls.shape
    columns = [_channel(m, name, values[name], k, n, dims[name]) for name in measured]
    deviations = np.concatenate([np.full(dims[name], _deviation(sigma, name)) for name in measured])
    unknown = sorted(set(sigma) - set(measured)) if isinstance(sigma, Mapping) else []
    if unknown:
        raise ValueError(f"sigma names {', '.join(unknown)}; measured are {', '.join(measured)}")
    paths = None if states is None else _paths(m, states, k, n)
    if paths is not None:
        if qpos is not None or qvel is not None or resample:
            raise ValueError("states hold the initial qpos and qvel, and cannot be resampled")
        qpos, qvel = paths[0][:, 0], paths[1][:, 0]
    start = _initial("qpos", m.qpos0 if qpos is None else qpos, k, m.nq)
    speed = _initial("qvel", np.zeros(m.nv) if qvel is None else qvel, k, m.nv)
    y = np.concatenate(columns, -1)
    if not np.isfinite(y).any():
        raise ValueError(f"all measurements of {', '.join(measured)} are missing (NaN)")
    if time is not None:
        times = np.asarray(time, float)
        if times.shape != (n,):
            raise ValueError(f"time has shape {times.shape}; expected ({n},), one for each step")
        grid = sample_times(times, timestep(m), resample)
        if grid is not None:
            controls, y = resampled(m, tuple(measured), times, grid, controls, y)
    return Recordings(start, speed, controls, y, tuple(measured), deviations, paths)


def sensor_sizes(m: Model, names: Iterable[str]) -> list[int]:
    """Return the numbers of values of sensors."""
    return [int(m.sensor_dim[m.name2id("sensor", name)]) for name in names]


def columns_of(m: Model, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Find the columns of the measurements of each sensor, where the sensors `names` were measured."""
    ends = np.cumsum(sensor_sizes(m, names))
    return dict(zip(names, np.split(np.arange(ends[-1]), ends[:-1]), strict=True))


def _paths(m: Model, states: tuple[Any, Any], k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions (k, n, nq) and velocities (k, n, nv) of all rows."""
    qpos, qvel = (np.asarray(x, float) for x in states)
    if qpos.shape != (k, n, m.nq) or qvel.shape != (k, n, m.nv):
        raise ValueError(
            f"states have shapes {qpos.shape} and {qvel.shape}; expected ({k}, {n}, {m.nq}) and ({k}, {n}, {m.nv})"
        )
    if not (np.isfinite(qpos).all() and np.isfinite(qvel).all()):
        raise ValueError("states have entries that are not finite; a state cannot be missing")
    return qpos, qvel


def _controls(m: Model, ctrl: Any) -> np.ndarray:
    """Controls (k, n, nu)."""
    controls = np.asarray(ctrl, float)
    controls = controls[None] if controls.ndim == 2 else controls
    if controls.ndim != 3 or controls.shape[-1] != m.nu:
        turned = controls.ndim == 3 and controls.shape[1] == m.nu
        raise ValueError(
            f"controls have shape {np.shape(ctrl)}; expected (trajectories, steps, {m.nu})"
            + ("; swap the last two axes" if turned else "")
        )
    if not controls.shape[1]:
        raise ValueError("the recording has no steps")
    bad = np.argwhere(~np.isfinite(controls))
    if len(bad):
        trajectory, step, i = bad[0]
        raise RowError(
            f"the control {m.id2name('actuator', int(i)) or i} is {controls[tuple(bad[0])]}; fill in what was applied",
            int(step),
            int(trajectory),
        )
    return controls


def _channel(m: Model, name: str, values: np.ndarray, k: int, n: int, dim: int) -> np.ndarray:
    """Measurements (k, n, dim) of a sensor."""
    allowed = [(k, n, dim)] + ([(k, n)] if dim == 1 else [])
    allowed += [shape[1:] for shape in allowed if k == 1]
    if values.shape not in allowed:
        turned = values.ndim > 1 and (*values.shape[:-2], *values.shape[:-3:-1]) in allowed
        raise ValueError(
            f"sensor {name!r} has shape {values.shape}; expected {' or '.join(map(str, allowed))}, for controls of "
            f"{k} x {n} steps" + ("; swap the last two axes" if turned else "")
        )
    values = values.reshape(k, n, dim)
    bad = np.argwhere(np.isinf(values))
    if len(bad):
        raise RowError(f"sensor {name!r} is infinite; a missing measurement is NaN", int(bad[0][1]), int(bad[0][0]))
    check_rows(m, name, values)
    return values


def _deviation(sigma: float | Mapping[str, float], name: str) -> float:
    """Standard deviation of a sensor's noise."""
    if isinstance(sigma, Mapping) and name not in sigma:
        raise ValueError(f"sigma has no entry for the sensor {name!r}; it has {', '.join(sigma) or 'none'}")
    value = float(sigma[name] if isinstance(sigma, Mapping) else sigma)
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"sigma of {name!r} is {value:g}; a standard deviation is positive, in units of the sensor")
    return value


def _initial(name: str, values: Any, k: int, size: int) -> np.ndarray:
    """Initial positions or velocities (k, size)."""
    array = np.asarray(values, float)
    if array.shape not in ((size,), (k, size), (1, size)):
        raise ValueError(f"{name} has shape {array.shape}; expected ({k}, {size}), or ({size},) for all trajectories")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has entries that are not finite; an initial state cannot be missing")
    return np.broadcast_to(array, (k, size))
