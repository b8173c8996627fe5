"""Residuals of recordings and their derivatives as functions of parameters and initial states, chunk by chunk."""

import copy
import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.model import Model
from jaxsim.identify.data import Recordings, columns_of
from jaxsim.identify.elimination import Linear, compressed
from jaxsim.identify.loss import Loss
from jaxsim.identify.parameters import Parameter
from jaxsim.identify.simulator import Chunk, Controller, Setting, Simulator, programs, sensor_columns
from jaxsim.identify.states import measured_states, memory
from jaxsim.math.safe import Array
from jaxsim.native.stage import FEWEST_WORLDS

TRIALS = (0.1, 1.0, 10.0, 100.0)  # dampings of an iteration, relative to the last one that helped
LEAST_ROWS = 64  # of a program for trajectories without windows; beyond, powers of two
MEMORY = 2**28  # bytes of measurements and their derivatives that a chunk may hold


@dataclasses.dataclass(frozen=True)
class Initial:
    """Initial states as unknowns of every trajectory or window, known up to these standard deviations.

    `qpos` and `qvel` are numbers or arrays (nv,), in rad and m, rad/s and m/s. Entries of zero are taken as measured.
    """

    qpos: Any = 0.0
    qvel: Any = 0.0

    def deviations(self, m: Model) -> np.ndarray:
        """Return standard deviations (2 nv,) of positions and velocities; raise ValueError if they are not valid."""
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
        """Repeat this point."""
        return Point(*(np.broadcast_to(x, (count, *x.shape)) for x in self))


class Linearised(NamedTuple):
    """Linearised residuals of each point, and the first point's: simulated (k, n, ny), and rows of the first chunk."""

    linears: list[Linear]
    simulated: np.ndarray
    rows: np.ndarray

    def jacobian(self, parameters: int) -> np.ndarray:
        """Return derivatives (n, p) of the first point's residuals in the first chunk by the parameters."""
        return self.rows[..., -1 - parameters : -1].reshape(-1, parameters)


class Problem:
    """Residuals of recordings as functions of parameters and of initial states.

    Trajectories are cut into `window` steps (None: they are one window). `continuity` are the deviations of a window's
    end from the start of the next (None: windows are independent).
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
        if not parameters:
            raise ValueError("no parameters to identify")
        self.m, self.data, self.parameters, self.step = m, data, tuple(parameters), step
        self.loss, self.controller = loss or Loss(), controller
        self.labels = tuple(label for p in parameters for label in p.labels)
        self._check_parameters()
        self.sizes = [len(p.labels) for p in parameters]
        columns = np.concatenate([sensor_columns(m, name) for name in data.names])
        self.first = jnp.asarray(np.concatenate([p.to_free(p.start) for p in parameters]))
        bounds = [[p.to_free(max(x, 1e-300) if p.log else x) for x in (p.low, p.high)] for p in parameters]
        self.low, self.high = (jnp.asarray(np.repeat([b[i] for b in bounds], self.sizes)) for i in (0, 1))
        self._read_windows(window, initial, continuity)
        self.simulator = Simulator(
            tuple(p.form for p in parameters), tuple(columns.tolist()), step, controller, tuple(self.moved.tolist())
        )
        ends = None if self.ends is None else jnp.asarray(self.ends)
        self.setting = Setting(m, jnp.asarray(self.deviations), ends, np.int32(self.window))
        self.chunk = min(self.trajectories, chunk or self._chunk())
        self._latest: tuple[Point, Linearised] | None = None

    def _check_parameters(self) -> None:
        """Raise ValueError for numbers of a model that are given twice, and for parameters that nothing reads."""
        own = [label for p in self.parameters if p.kind == "model" for label in p.labels]
        twice = sorted({label for label in own if own.count(label) > 1})
        if twice:
            raise ValueError(f"the parameter {twice[0]} is given {own.count(twice[0])} times")
        if self.controller is not None:
            self._check_controller()
        for p in self.parameters:
            if p.kind == "controller" and self.controller is None:
                raise ValueError(f"{p.labels[0]} is a number of a controller: pass controller=f")
            lost = [name for name in p.channels if name not in self.data.names]
            if p.kind not in ("model", "controller", "ctrl_delay") and lost:
                self.m.name2id("sensor", lost[0])  # raises for an unknown name
                names = ", ".join(self.data.names)
                raise ValueError(f"the {p.kind} of {lost[0]} needs its measurements; recordings have {names}")

    def _check_controller(self) -> None:
        """Raise ValueError if the controller reads a gain that is no parameter, or returns other than (nu,)."""
        gains = {p.channels[0]: jnp.asarray(p.start) for p in self.parameters if p.kind == "controller"}
        controller, m = self.controller, self.m
        assert controller is not None
        try:
            shape = jax.eval_shape(lambda d: controller(d, jnp.zeros(m.nu), gains), jaxsim.make_data(m)).shape
        except KeyError as error:
            names = ", ".join(gains) or "none"
            raise ValueError(f"the controller reads the gain {error}; gain parameters are {names}") from None
        if shape != (m.nu,):
            raise ValueError(f"the controller returns controls of shape {shape}; expected ({m.nu},)")

    def _read_windows(self, window: int | None, initial: Initial | None, continuity: Initial | None) -> None:
        """Cut controls and measurements into windows, the last one filled up with missing rows."""
        m, data = self.m, self.data
        k, n, _ = data.ctrl.shape
        length = n if window is None else int(window)
        if length < 1:
            raise ValueError(f"window is {window}; expected a number of steps")
        count = -(-n // length)
        if count > 1 and any(p.kind in ("delay", "offset") for p in self.parameters):
            raise ValueError("the delay of a sensor reaches across windows: fit it with window=None")
        if count > 1 and memory(m):
            raise ValueError(f"windows would begin with the wrong {' and '.join(memory(m))}: fit with window=None")
        if continuity is not None and (initial is None or count < 2):
            raise ValueError("continuity needs initial=Initial(...) and window=, shorter than the recordings")
        self.window, self.windows, self.trajectories = length, count, k
        fill = count * length - n
        self.rows = count * length
        capacity = self.rows if count > 1 else max(LEAST_ROWS, 1 << (n - 1).bit_length())
        self.ctrl = np.pad(data.ctrl, ((0, 0), (0, capacity - n), (0, 0)), mode="edge")
        self.measured = np.pad(data.measured, ((0, 0), (0, fill), (0, 0)), constant_values=np.nan)
        self._leave_out_ends(n)
        self.known = np.isfinite(self.measured)  # mask of available measurements, (k, n, ny)
        self._filled = np.where(self.known, self.measured, 0)
        qpos, qvel = data.qpos[:, None], data.qvel[:, None]
        if count > 1:
            states = measured_states(m, data) if data.states is None else data.states
            qpos, qvel = (x[:, ::length][:, :count] for x in states)
        self.qpos, self.qvel = qpos, qvel
        deviations = (initial or Initial()).deviations(m)
        self.moved = np.flatnonzero(deviations)
        self.deviations = np.tile(deviations[self.moved], (count, 1))  # of initial states, (w, q)
        ends = None if continuity is None else continuity.deviations(m)
        if ends is not None and (ends == 0).any():
            raise ValueError("deviations of continuity are positive: how far a window may end from the next")
        self.ends = ends

    def _leave_out_ends(self, rows: int) -> None:
        """Take rows as missing that an offset of a clock may move beyond the ends of a record."""
        columns = columns_of(self.m, self.data.names)
        for p in self.parameters:
            if p.kind == "offset":
                early, late = (int(np.ceil(max(x, 0) / float(self.m.opt.timestep))) for x in (p.high, -p.low))
                for name in set(columns) & set(p.channels):
                    self.measured[:, :early, columns[name]] = np.nan
                    self.measured[:, max(0, rows - late) :, columns[name]] = np.nan

    @property
    def scale(self) -> np.ndarray:
        """Sizes (p,) of the parameters in free coordinates: 1 for logarithms."""
        return np.concatenate([np.ones(n) if p.log else np.maximum(np.abs(p.start), 1e-2)
                               for p, n in zip(self.parameters, self.sizes, strict=True)])  # fmt: skip

    @property
    def shifts(self) -> int:
        """Number of unknowns of an initial state."""
        return len(self.moved)

    def start(self, free: Array) -> Point:
        """Make a point of free coordinates (s, p) with initial states as measured."""
        return Point(
            np.asarray(free),
            np.zeros((len(free), self.trajectories, self.windows, self.shifts), np.asarray(free).dtype),
        )

    def values(self, free: Array) -> Array:
        """Compute the values of the parameters, in their units, from free coordinates."""
        return self.simulator.values(free)

    def model(self, free: Array) -> Model:
        """Make a model with these coordinates; derived constants are recomputed where they depend on them."""
        return self.simulator.model(self.m, free)

    def everything(self) -> Chunk:
        """Return all trajectories as one chunk."""
        return Chunk(*(jnp.asarray(x) for x in (self.qpos, self.qvel, self.ctrl)))

    def started(self, shift: np.ndarray) -> tuple[Array, Array]:
        """Compute the states (k, w, nq), (k, w, nv) in which windows begin."""
        return programs().started(self.simulator, self.setting, self.everything(), jnp.asarray(shift))

    def simulate(self, free: Array, shift: Array | None = None) -> Array:
        """Simulate the measurements (k, n, ny)."""
        if shift is None:
            shift = jnp.zeros((self.trajectories, self.windows, self.shifts), free.dtype)
        points = jnp.stack([free]), jnp.stack([shift])
        y = programs().simulate(self.simulator, self.setting, *points, self.everything())[0]
        return y[0, :, : self.rows]

    def replace(self, **changes: Any) -> "Problem":
        """Copy the problem with other attributes, such as `loss` or `data` with another noise; it shares programs."""
        part = copy.copy(self)
        vars(part).update(changes, _latest=None)
        vars(part).pop("_weight", None)
        return part

    def fingerprint(self) -> str:
        """Compute a digest of what a stored iterate belongs to: labels, recordings, windows, noise, loss, priors."""
        numbers = (self.qpos, self.qvel, self.ctrl, self.measured, self.data.sigma, *self._priors, self.deviations)
        text = repr((self.labels, self.window, self.loss, None if self.ends is None else self.ends.tolist()))
        return hashlib.sha256(
            b"".join([text.encode(), *(np.ascontiguousarray(x).tobytes() for x in numbers)])
        ).hexdigest()

    def until(self, rows: int) -> "Problem":
        """Restrict the problem to the first rows of trajectories without windows."""
        length = np.int32(rows)
        first = {name: getattr(self, name)[:, :rows] for name in ("measured", "known", "_filled")}
        return self.replace(setting=self.setting._replace(length=length), rows=rows, **first)

    def differentiable_cost(self) -> Callable[[Array, Array], Array]:
        """Make the cost of least squares a function of free coordinates (p,) and shifts (k, w, q), for JAX programs.

        Its gradient is found by forward mode along all directions, with the value.
        """
        measured, known = jnp.asarray(self._padded(self._filled)), jnp.asarray(self._padded(self.known))
        weight = known / jnp.asarray(self.data.sigma)
        middle, wide = (jnp.asarray(x) for x in self._priors)
        simulator, setting, p = self.simulator, self.setting, len(self.first)

        def total(free: Array, shift: Array, r: Array) -> Array:
            prior = (free - middle) / wide
            return 0.5 * (jnp.sum(r**2) + jnp.sum(prior**2) + jnp.sum(shift**2))

        @jax.custom_vjp
        def cost(free: Array, shift: Array) -> Array:
            y, _ = simulator.simulate(setting, free, shift, self.everything())
            return total(free, shift, (y - measured) * weight)

        def with_gradient(free: Array, shift: Array) -> tuple[Array, tuple[Array, Array]]:
            y, moved, *_ = simulator.derivatives(setting, free, shift, self.everything())
            r = (y - measured) * weight
            by = moved * (r * weight)
            by_free = by[:p].sum((1, 2, 3)) + (free - middle) / wide**2
            if not shift.size:
                return total(free, shift, r), (by_free, shift)
            by_shift = by[p:].reshape(len(by) - p, *shift.shape[:2], -1).sum(-1)
            return total(free, shift, r), (by_free, jnp.moveaxis(by_shift, 0, -1) + shift)

        cost.defvjp(with_gradient, lambda gradient, by: tuple(by * g for g in gradient))
        return cost

    def _padded(self, rows: np.ndarray) -> np.ndarray:
        """Rows (k, n, ny) with zeros up to those of the program."""
        return np.pad(rows, ((0, 0), (0, self.ctrl.shape[1] - self.rows), (0, 0)))

    @cached_property
    def _priors(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations (p,) of the priors of free coordinates; the latter infinite without one."""
        middle, wide = np.zeros(len(self.first)), np.full(len(self.first), np.inf)
        for parameter, at in zip(self.parameters, np.split(np.arange(len(middle)), np.cumsum(self.sizes)[:-1]),
                                 strict=True):  # fmt: skip
            if parameter.prior is not None:
                mean, deviation = parameter.prior
                middle[at] = parameter.to_free(mean)
                wide[at] = np.asarray(deviation, float)
        return middle, wide

    def simulated(self, point: Point) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Simulate measurements (s, c, n, ny), gaps (s, c, w - 1, 2 nv) of points for each chunk's trajectories."""
        for place, chunk, shift in self._chunks(point):
            y, gap = self._simulate(point.free, shift, chunk)
            size = place.stop - place.start
            yield place, y[:, :size], np.asarray(gap, float)[:, :size]

    def _simulate(self, free: np.ndarray, shift: np.ndarray, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
        """Measurements (s, c, n, ny) and gaps of points (s, p); fewer than fill a vector of worlds are repeated."""
        s, times = len(free), self._repeats(len(free))
        free, shift = np.tile(free, (times, 1)), np.tile(shift, (times, 1, 1, 1))
        y, gap = programs().simulate(self.simulator, self.setting, free, shift, chunk)
        return np.asarray(y)[:s, :, : self.rows], np.asarray(gap)[:s]

    def _repeats(self, points: int) -> int:
        """Number of times that so many points are repeated to fill a vector of worlds."""
        return -(-FEWEST_WORLDS // (points * self.chunk * self.windows))

    def costs(self, point: Point) -> np.ndarray:
        """Compute the cost of each point, (s,)."""
        total = 0.5 * (self._prior_residuals(point.free) ** 2).sum(-1)
        for place, y, gap in self.simulated(point):
            r = self.loss.weighted(self._differences(y, place)).value
            total += 0.5 * np.einsum("skij,skij->s", r, r) + 0.5 * (gap**2).sum((1, 2, 3))
        prior = point.shift[:, :, :1] if self.ends is not None else point.shift
        total += 0.5 * np.square(prior, dtype=float).sum((1, 2, 3))
        return np.where(np.isfinite(total), total, np.inf)

    def linear(self, point: Point) -> list[Linear]:
        """Compute residuals and their derivatives at each point, compressed by orthogonal factorisations."""
        return self.linearised(point).linears

    def linearised(self, point: Point) -> Linearised:
        """Compute the results of `linear`, with those of the first point from which they are made."""
        if self._latest is not None and all(map(np.array_equal, self._latest[0], point)):
            return self._latest[1]
        self._latest = None  # its rows may be large
        q, priors, simulated, first = self.shifts, self._prior_rows(point.free), [], None
        parts: list[list[Linear]] = [[] for _ in point.free]
        for place, chunk, shift in self._chunks(point):
            y, rows, edges = self._rows(place, chunk, point.free, shift)
            simulated.append(y[0])
            first = rows[0] if first is None else first
            for i, out in enumerate(parts):
                edge = None if edges is None else edges[i]
                out.append(compressed(rows[i], edge, np.asarray(point.shift[i, place], float), q))
        assert first is not None
        linears = [Linear.joined(out, priors[i]) for i, out in enumerate(parts)]
        self._latest = point, Linearised(linears, np.concatenate(simulated), first)
        return self._latest[1]

    def _rows(
        self, place: slice, chunk: Chunk, free: np.ndarray, shift: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Measurements (s, c, n, ny), rows of windows (s, c, w, n, q + p + 1) and those of gaps: see `Linear`."""
        p, q, w, s = len(self.first), self.shifts, self.windows, len(free)
        size = place.stop - place.start
        found = programs().derivatives(self.simulator, self.setting, free, shift, chunk)
        y, moved = (np.asarray(x, float) for x in found[:2])
        y, moved = y[:, :size, : self.rows], moved[:, :, :size, : self.rows]
        r = self.loss.weighted(self._differences(y, place))
        scale = self._weight[place] * r.derivative
        columns = np.empty((s, size, self.rows, y.shape[-1], p + q + 1))
        columns[..., :q] = np.moveaxis(moved[:, p:] * scale[:, None], 1, -1)
        columns[..., q:-1] = np.moveaxis(moved[:, :p] * scale[:, None], 1, -1)
        columns[..., -1] = r.value
        rows = columns.reshape(s, size, w, -1, p + q + 1)
        if self.ends is None:
            return y, rows, None
        gap, opened, later = (np.asarray(x, float) for x in found[2:])
        by, after = (x[:, :, :size].transpose(0, 2, 3, 4, 1) for x in (opened, later))
        return y, rows, np.concatenate([by[..., p:], after, by[..., :p], gap[:, :size, ..., None]], -1)

    def sample(self, point: Point, starts: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return residuals (s, n) of the first chunk as a function of coordinates (s, p).

        `point` is one point, and `starts` the number of those that were fitted, whose programs are used.
        """
        count = len(TRIALS) * starts
        place, chunk, shift = next(self._chunks(point.repeated(count * self._repeats(count))))
        size, batch = place.stop - place.start, len(shift)

        def residuals(points: np.ndarray) -> np.ndarray:
            found = []
            for begin in range(0, len(points), batch):
                rows = np.minimum(np.arange(begin, begin + batch), len(points) - 1)
                y, _ = self._simulate(points[rows].astype(point.free.dtype), shift, chunk)
                r = self.loss.weighted(self._differences(y[:, :size], place)).value
                found.append(r.reshape(batch, -1))
            return np.concatenate(found)[: len(points)]

        return residuals

    def _prior_residuals(self, free: np.ndarray) -> np.ndarray:
        """Values less means of the free coordinates (s, p) that have priors, in standard deviations: (s, n)."""
        middle, wide = self._priors
        held = np.isfinite(wide)
        return (np.asarray(free, float)[:, held] - middle[held]) / wide[held]

    def _prior_rows(self, free: np.ndarray) -> np.ndarray:
        """Rows (s, n, p + 1) of the priors: their derivatives, and their values last."""
        _, wide = self._priors
        held, values = np.flatnonzero(np.isfinite(wide)), self._prior_residuals(free)
        rows = np.zeros((*values.shape, len(wide) + 1))
        rows[:, np.arange(len(held)), held] = 1 / wide[held]
        rows[..., -1] = values
        return rows

    @cached_property
    def _weight(self) -> np.ndarray:
        """Derivatives (k, n, ny) of residuals by the simulated measurements, zero where a measurement is missing."""
        return self.known / self.data.sigma

    def _differences(self, y: np.ndarray, place: slice) -> np.ndarray:
        """Simulated less measured in units of the noise, zero where a measurement is missing."""
        y = np.asarray(y, float)
        r = np.subtract(y, self._filled[place], out=np.zeros(y.shape), where=self.known[place])
        r /= self.data.sigma
        return r

    def _chunks(self, point: Point) -> Iterator[tuple[slice, Chunk, np.ndarray]]:
        """Trajectories by chunks of one size; the last is filled up with its last trajectory.

        They are NumPy's arrays, which a compiled function takes in 10 us, and `jnp.asarray` in 200.
        """
        for begin in range(0, self.trajectories, self.chunk):
            place = slice(begin, min(begin + self.chunk, self.trajectories))
            rows = np.minimum(np.arange(begin, begin + self.chunk), self.trajectories - 1)
            yield place, Chunk(*(x[rows] for x in (self.qpos, self.qvel, self.ctrl))), point.shift[:, rows]

    def _chunk(self) -> int:
        """Trajectories whose measurements and derivatives fit into `MEMORY`."""
        directions = len(self.first) + self.shifts + 1
        one = 8 * directions * (self.ctrl.shape[1] * len(self.simulator.columns) + 4 * self.windows * self.m.nv)
        return max(1, MEMORY // one)
