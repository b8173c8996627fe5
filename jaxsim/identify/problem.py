"""Simulated recordings as a function of parameters and initial states, and their derivatives, chunk by chunk."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.integrate.positions import differentiate_pos, integrate_pos
from jaxsim.engine.rollout import rollout
from jaxsim.identify.data import Recordings
from jaxsim.identify.elimination import Linear, compressed
from jaxsim.identify.loss import Loss
from jaxsim.identify.parameters import Parameter
from jaxsim.identify.states import measured_states
from jaxsim.math.safe import Array

TRIALS = (0.1, 1.0, 10.0, 100.0)  # dampings of an iteration, relative to the last one that helped
MEMORY = 2**28  # bytes of measurements and their derivatives that a chunk may hold

Controller = Callable[[Data, Array, dict[str, Array]], Array]


@dataclasses.dataclass(frozen=True)
class Initial:
    """Initial states as unknowns of every trajectory or window, known up to these standard deviations.

    `qpos` and `qvel` are numbers or arrays (nv,), in rad and m, rad/s and m/s; what has zero is taken as measured.
    """

    qpos: Any = 0.0
    qvel: Any = 0.0

    def deviations(self, m: Model) -> np.ndarray:
        """Standard deviations (2 nv,) of positions and velocities. Raises ValueError where they are not."""
        return np.concatenate([_deviations(m, "initial qpos", self.qpos), _deviations(m, "initial qvel", self.qvel)])


def _deviations(m: Model, what: str, value: Any) -> np.ndarray:
    array = np.asarray(value, float)
    if array.shape not in ((), (m.nv,)) or not (np.isfinite(array) & (array >= 0)).all():
        raise ValueError(f"{what} is {value}; expected standard deviations, one or ({m.nv},), finite and not negative")
    return np.broadcast_to(array, (m.nv,))


class Point(NamedTuple):
    """Free coordinates (..., p) of parameters, and shifts (..., k, w, q) of initial states in their deviations."""

    free: np.ndarray
    shift: np.ndarray

    def repeated(self, count: int) -> "Point":
        """So many points, all this one."""
        return Point(*(np.broadcast_to(x, (count, *x.shape)) for x in self))


class Chunk(NamedTuple):
    """Some trajectories: initial states of their windows (c, w, nq) and (c, w, nv), controls (c, n, nu)."""

    qpos: Array
    qvel: Array
    ctrl: Array


class Problem:
    """Residuals of recordings as functions of parameters and of initial states.

    Trajectories are cut into `window` steps (None: they are one window). `continuity` are the deviations of a window's
    end from the start of the next (None: windows are on their own).
    """

    def __init__(
        self,
        m: Model,
        data: Recordings,
        parameters: Sequence[Parameter],
        step: Callable = jaxsim.step,
        *,
        initial: Initial | None = None,
        window: int | None = None,
        continuity: Initial | None = None,
        loss: Loss | None = None,
        controller: Controller | None = None,
        chunk: int | None = None,
    ):
        self.m, self.data, self.parameters, self.step = m, data, tuple(parameters), step
        self.loss, self.controller = loss or Loss(), controller
        self.labels = tuple(label for p in parameters for label in p.labels)
        self.sizes = [len(p.labels) for p in parameters]
        self.columns = np.concatenate([_columns(m, name) for name in data.names])
        self.first = jnp.concatenate([p.to_free(jnp.asarray(p.start, float)) for p in parameters])
        bounds = [[p.to_free(jnp.maximum(x, 1e-300) if p.log else x) for x in (p.low, p.high)] for p in parameters]
        low, high = (jnp.asarray(np.repeat([float(b[i]) for b in bounds], self.sizes)) for i in (0, 1))
        self.low, self.high = low, high
        self._read_windows(window, initial, continuity)
        self.chunk = min(self.trajectories, chunk or self._chunk())
        self._simulate = jaxsim.jit(jax.vmap(self.simulate_chunk, (0, 0, None)))
        self._derivatives = jaxsim.jit(jax.vmap(self._derivatives_of_chunk, (0, 0, None)))

    def _read_windows(self, window: int | None, initial: Initial | None, continuity: Initial | None) -> None:
        """Cut controls and measurements into windows, the last one filled up with missing rows."""
        m, data = self.m, self.data
        k, n, _ = data.ctrl.shape
        length = n if window is None else int(window)
        if length < 1:
            raise ValueError(f"window is {window}; expected a number of steps")
        count = -(-n // length)
        if count > 1 and any(p.kind == "delay" for p in self.parameters):
            raise ValueError("the delay of a sensor reaches across windows: fit it with window=None")
        if continuity is not None and (initial is None or count < 2):
            raise ValueError("continuity needs initial=Initial(...) and window=, shorter than the recordings")
        self.window, self.windows, self.trajectories = length, count, k
        fill = count * length - n
        self.ctrl = np.pad(data.ctrl, ((0, 0), (0, fill), (0, 0)), mode="edge")
        self.measured = np.pad(data.measured, ((0, 0), (0, fill), (0, 0)), constant_values=np.nan)
        qpos, qvel = data.qpos[:, None], data.qvel[:, None]
        if count > 1:
            states = measured_states(m, data) if data.states is None else data.states
            qpos, qvel = (x[:, ::length][:, :count] for x in states)
        self.qpos, self.qvel = qpos, qvel
        deviations = (initial or Initial()).deviations(m)
        self.moved = np.flatnonzero(deviations)
        self.deviations = deviations[self.moved]
        ends = None if continuity is None else continuity.deviations(m)
        if ends is not None and (ends == 0).any():
            raise ValueError("deviations of continuity are positive: how far a window may end from the next")
        self.ends = ends

    @property
    def shifts(self) -> int:
        """Number of unknowns of an initial state."""
        return len(self.moved)

    @property
    def known(self) -> np.ndarray:
        """Which measurements there are, (k, n, ny)."""
        return np.isfinite(self.measured)

    def start(self, free: Array) -> Point:
        """Point of free coordinates (s, p) with initial states as measured."""
        return Point(
            np.asarray(free),
            np.zeros((len(free), self.trajectories, self.windows, self.shifts), np.asarray(free).dtype),
        )

    def split(self, free: Array) -> list[Array]:
        """Coordinates of each parameter."""
        return jnp.split(free, np.cumsum(self.sizes)[:-1])

    def values(self, free: Array) -> Array:
        """Values of the parameters, in their units, from free coordinates."""
        return jnp.concatenate([p.to_value(x) for p, x in zip(self.parameters, self.split(free), strict=True)])

    def model(self, free: Array) -> Model:
        """Model with these coordinates; derived constants are recomputed where they depend on them."""
        m = self.m
        for p, x in zip(self.parameters, self.split(free), strict=True):
            if p.kind == "model" and p.write is not None:
                m = p.write(m, p.to_value(x))
        return jaxsim.set_const(m) if any(p.constants for p in self.parameters) else m

    def everything(self) -> Chunk:
        """All trajectories as one chunk."""
        return Chunk(*(jnp.asarray(x) for x in (self.qpos, self.qvel, self.ctrl)))

    def simulate(self, free: Array, shift: Array | None = None) -> Array:
        """Simulated measurements (k, n, ny)."""
        shift = jnp.zeros((self.trajectories, self.windows, self.shifts), free.dtype) if shift is None else shift
        return self.simulate_chunk(free, shift, self.everything())[0]

    def simulate_chunk(self, free: Array, shift: Array, chunk: Chunk) -> tuple[Array, Array]:
        """Measurements (c, n, ny) and gaps (c, w - 1, 2 nv) between windows, in their deviations; none without any."""
        y, end = self._windows_of(free, shift, chunk)
        return y, self._gaps(end, shift, chunk)

    def _windows_of(self, free: Array, shift: Array, chunk: Chunk) -> tuple[Array, tuple[Array, Array]]:
        """Measurements (c, n, ny), and the states in which all windows end."""
        m, controller = self.model(free), self.controller
        d = jaxsim.make_data(self.m)
        c, w, _ = chunk.qpos.shape
        gains = {p.channels[0]: p.to_value(x) for p, x in zip(self.parameters, self.split(free), strict=True)
                 if p.kind == "controller"}  # fmt: skip

        def one(qpos: Array, qvel: Array, u: Array) -> tuple[Array, tuple[Array, Array]]:
            start = d.replace(qpos=qpos, qvel=qvel)
            driven = u if controller is None else lambda i, d, f=controller: f(d, u[i], gains)
            last, found = rollout(m, start, driven, len(u), outputs=("sensordata",), step=self.step)
            return found["sensordata"][:, self.columns], (last.qpos, last.qvel)

        ctrl = self._controls(chunk.ctrl, free)
        qpos, qvel = self.started(chunk, shift)
        y, end = jax.vmap(jax.vmap(one))(qpos, qvel, ctrl.reshape(c, w, self.window, -1))
        return self._signals(y.reshape(c, w * self.window, -1), free), end

    def started(self, chunk: Chunk, shift: Array) -> tuple[Array, Array]:
        """States (c, w, nq), (c, w, nv) in which windows begin."""
        if not self.shifts:
            return chunk.qpos, chunk.qvel
        nv = self.m.nv
        change = jnp.zeros((*shift.shape[:-1], 2 * nv), shift.dtype).at[..., self.moved].set(shift * self.deviations)
        move = jax.vmap(jax.vmap(lambda q, v: integrate_pos(self.m, q, v, 1.0)))
        return move(chunk.qpos, change[..., :nv]), chunk.qvel + change[..., nv:]

    def _gaps(self, end: tuple[Array, Array], shift: Array, chunk: Chunk) -> Array:
        """Differences of windows' ends from the starts of the next, in their deviations."""
        if self.ends is None:
            return jnp.zeros((len(chunk.qpos), 0, 0), shift.dtype)
        qpos, qvel = self.started(chunk, shift)
        apart = jax.vmap(jax.vmap(lambda a, b: differentiate_pos(self.m, a, b)))
        gap = [apart(qpos[:, 1:], end[0][:, :-1]), end[1][:, :-1] - qvel[:, 1:]]
        return jnp.concatenate(gap, -1) / self.ends

    def _derivatives_of_chunk(self, free: Array, shift: Array, chunk: Chunk) -> tuple[Array, ...]:
        """Measurements, gaps, and their derivatives by forward mode, with a leading axis of p + q directions.

        The last are those of gaps by the shift of the later window.
        """
        q = self.shifts
        every = jnp.broadcast_to(jnp.eye(q, dtype=shift.dtype)[:, None, None], (q, *shift.shape[:2], q))
        directions = (
            jnp.concatenate([jnp.eye(len(free), dtype=free.dtype), jnp.zeros((q, len(free)), free.dtype)]),
            jnp.concatenate([jnp.zeros((len(free), *shift.shape), shift.dtype), every]),
        )

        def ahead(free: Array, shift: Array) -> tuple[Array, Array, tuple[Array, Array]]:
            y, end = self._windows_of(free, shift, chunk)
            return y, self._gaps(end, jax.lax.stop_gradient(shift), chunk), end

        (y, gap, end), push = jax.linearize(ahead, free, shift)
        moved, opened, _ = jax.vmap(push)(*directions)
        later = jax.vmap(jax.linearize(lambda s: self._gaps(end, s, chunk), shift)[1])(every)
        return y, gap, moved, opened, later

    def _controls(self, ctrl: Array, free: Array) -> Array:
        """Controls with the delays of actuators."""
        for p, x in zip(self.parameters, self.split(free), strict=True):
            if p.kind == "ctrl_delay":
                delays = jnp.broadcast_to(p.to_value(x), (len(p.channels),))
                for i, name in enumerate(p.channels):
                    j = self.m.name2id("actuator", name)
                    ctrl = ctrl.at[..., j].set(delayed(ctrl[..., j], delays[i] / self.m.opt.timestep))
        return ctrl

    def _signals(self, y: Array, free: Array) -> Array:
        """Sensor values with delays, gains and biases of the channels."""
        by_kind = {"gain": lambda y, g: g * y, "bias": lambda y, b: y + b}
        by_kind["delay"] = lambda y, t: delayed(y, t / self.m.opt.timestep)
        for kind in ("delay", "gain", "bias"):  # in the order in which a measurement chain applies them
            for p, x in zip(self.parameters, self.split(free), strict=True):
                if p.kind == kind:
                    values = jnp.broadcast_to(p.to_value(x), (len(p.channels),))
                    for j, name in enumerate(p.channels):
                        for i in np.flatnonzero(np.isin(self.columns, _columns(self.m, name))):
                            y = y.at[..., i].set(by_kind[kind](y[..., i], values[j]))
        return y

    def residual(self, free: Array) -> Array:
        """Differences in units of the noise, those from priors last; zero where a measurement is missing."""
        measured = jnp.asarray(self.measured)
        known = jnp.isfinite(measured)
        error = jnp.where(known, self.simulate(free) - jnp.where(known, measured, 0), 0) / jnp.asarray(self.data.sigma)
        priors = []
        for p, x in zip(self.parameters, self.split(free), strict=True):
            if p.prior is not None:
                mean, deviation = p.prior
                priors.append((x - p.to_free(jnp.asarray(mean, x.dtype))) / deviation)
        return jnp.concatenate([error.reshape(-1), *(q.reshape(-1) for q in priors)])

    def simulated(self, point: Point) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Measurements (s, c, n, ny) and gaps (s, c, w - 1, 2 nv) of points, for the trajectories of each chunk."""
        for place, chunk, shift in self._chunks(point):
            y, gap = self._simulate(jnp.asarray(point.free), shift, chunk)
            size = place.stop - place.start
            yield place, np.asarray(y)[:, :size], np.asarray(gap, float)[:, :size]

    def costs(self, point: Point) -> np.ndarray:
        """Cost of each point, (s,)."""
        total = 0.5 * np.stack([r @ r for r in self._prior_rows(point.free)[..., -1]])
        for place, y, gap in self.simulated(point):
            r = self.loss.weighted(self._differences(y, place)).value
            total = total + 0.5 * (r**2).sum((1, 2, 3)) + 0.5 * (gap**2).sum((1, 2, 3))
        prior = point.shift[:, :, :1] if self.ends is not None else point.shift
        total = total + 0.5 * np.square(prior, dtype=float).sum((1, 2, 3))
        return np.where(np.isfinite(total), total, np.inf)

    def linear(self, point: Point) -> list[Linear]:
        """Residuals and their derivatives at each point, compressed by orthogonal factorisations."""
        q = self.shifts
        priors = self._prior_rows(point.free)
        parts: list[list[Linear]] = [[] for _ in point.free]
        for place, chunk, shift in self._chunks(point):
            rows, edges = self._rows(point, place, chunk, shift)
            for i, out in enumerate(parts):
                edge = None if edges is None else edges[i]
                out.append(compressed(rows[i], edge, np.asarray(point.shift[i, place], float), q))
        return [Linear.joined(out, priors[i]) for i, out in enumerate(parts)]

    def _rows(self, point: Point, place: slice, chunk: Chunk, shift: Array) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows of windows (s, c, w, n, q + p + 1) and of gaps (s, c, w - 1, 2 nv, 2 q + p + 1): see `Linear`."""
        p, q, w, s = len(self.first), self.shifts, self.windows, len(point.free)
        size = place.stop - place.start
        y, gap, moved, opened, later = (np.asarray(x, float) for x in self._derivatives(point.free, shift, chunk))
        r = self.loss.weighted(self._differences(y[:, :size], place))
        slope = np.where(self.known[place], 1 / self.data.sigma, 0) * r.derivative
        columns = np.concatenate([moved[:, :, :size] * slope[:, None], r.value[:, None]], 1)
        columns = columns.reshape(s, p + q + 1, size, w, -1).transpose(0, 2, 3, 4, 1)
        rows = np.concatenate([columns[..., p : p + q], columns[..., :p], columns[..., -1:]], -1)
        if self.ends is None:
            return rows, None
        by, after = (x[:, :, :size].transpose(0, 2, 3, 4, 1) for x in (opened, later))
        return rows, np.concatenate([by[..., p:], after, by[..., :p], gap[:, :size, ..., None]], -1)

    def sample(self, point: Point, starts: int) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
        """Residuals (s, n) of the first chunk as a function of coordinates (s, p), and their Jacobian (n, p).

        `point` is one point, and `starts` the number of those that were fitted, whose programs are used.
        """
        place, chunk, shift = next(self._chunks(point.repeated(len(TRIALS) * starts)))
        size, batch = place.stop - place.start, len(shift)

        def residuals(points: np.ndarray) -> np.ndarray:
            found = []
            for begin in range(0, len(points), batch):
                rows = np.minimum(np.arange(begin, begin + batch), len(points) - 1)
                y, _ = self._simulate(points[rows].astype(point.free.dtype), shift, chunk)
                r = self.loss.weighted(self._differences(np.asarray(y)[:, :size], place)).value
                found.append(r.reshape(batch, -1))
            return np.concatenate(found)[: len(points)]

        same = point.repeated(starts)
        rows = self._rows(same, *next(self._chunks(same)))[0][0]
        return residuals, rows[..., self.shifts : -1].reshape(-1, len(self.first))

    def _prior_rows(self, free: np.ndarray) -> np.ndarray:
        """Rows (s, n, p + 1) of the priors: their derivatives, and their values last."""
        rows, values, at = [], [], 0
        for parameter, size in zip(self.parameters, self.sizes, strict=True):
            if parameter.prior is not None:
                mean, deviation = parameter.prior
                wide = np.broadcast_to(np.asarray(deviation, float), (size,))
                rows.append(np.eye(len(self.first))[at : at + size] / wide[:, None])
                middle = np.asarray(parameter.to_free(jnp.asarray(mean, float)), float)
                values.append((np.asarray(free, float)[:, at : at + size] - middle) / wide)
            at += size
        if not rows:
            return np.zeros((len(free), 0, len(self.first) + 1))
        jac = np.broadcast_to(np.concatenate(rows), (len(free), sum(map(len, rows)), len(self.first)))
        return np.concatenate([jac, np.concatenate(values, 1)[..., None]], -1)

    def _differences(self, y: np.ndarray, place: slice) -> np.ndarray:
        """Simulated less measured in units of the noise, zero where a measurement is missing."""
        measured = self.measured[place]
        known = np.isfinite(measured)
        return np.where(known, np.asarray(y, float) - np.where(known, measured, 0), 0) / self.data.sigma

    def _chunks(self, point: Point) -> Iterator[tuple[slice, Chunk, Array]]:
        """Trajectories by chunks of one size; the last is filled up with its last trajectory."""
        for begin in range(0, self.trajectories, self.chunk):
            place = slice(begin, min(begin + self.chunk, self.trajectories))
            rows = np.minimum(np.arange(begin, begin + self.chunk), self.trajectories - 1)
            arrays = (jnp.asarray(x[rows]) for x in (self.qpos, self.qvel, self.ctrl))
            yield place, Chunk(*arrays), jnp.asarray(point.shift[:, rows])

    def _chunk(self) -> int:
        """Trajectories whose measurements and derivatives fit into `MEMORY`."""
        directions = len(self.first) + self.shifts + 1
        one = 8 * directions * self.windows * (self.window * len(self.columns) + 4 * self.m.nv)
        return max(1, MEMORY // one)


def _columns(m: Model, name: str) -> np.ndarray:
    """Indices of a sensor's values in `sensordata`."""
    i = m.name2id("sensor", name)
    return m.sensor_adr[i] + np.arange(m.sensor_dim[i])


def delayed(y: Array, lag: Array) -> Array:
    """Signal (k, n) delayed by `lag` steps, linear between samples and constant before the first."""
    index = jnp.clip(jnp.arange(y.shape[-1]) - lag, 0, y.shape[-1] - 1)
    low = jnp.floor(jax.lax.stop_gradient(index)).astype(int)
    high = jnp.minimum(low + 1, y.shape[-1] - 1)
    return y[..., low] + (index - low) * (y[..., high] - y[..., low])
