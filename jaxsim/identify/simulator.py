"""Simulated recordings as a function of a model, parameters and initial states, and their derivatives.

A `Simulator` holds the static data of a program and is hashed by content. Everything else is an argument, also the
number of steps. So fits to other records, of other lengths and from other values share their compiled programs.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.kinematics.positions import differentiate_pos, integrate_pos
from jaxsim.engine.step.rollout import rollout, select
from jaxsim.identify.parameters import Form
from jaxsim.math.arrays import take
from jaxsim.math.safe import Array
from jaxsim.native.stage import copying_state, keeping_residuals

Controller = Callable[[Data, Array, dict[str, Array]], Array]


class Setting(NamedTuple):
    """Numbers that all trajectories share.

    The nominal model, the deviations (w, q) of initial states, those (2 nv,) of windows' ends from the starts of the
    next or None, and the number of steps of a window, None for all rows of the controls: reverse mode needs that.
    """

    m: Model
    deviations: Array
    ends: Array | None
    length: Array | None


class Chunk(NamedTuple):
    """Some trajectories: initial states of their windows (c, w, nq) and (c, w, nv), controls (c, n, nu)."""

    qpos: Array
    qvel: Array
    ctrl: Array


@dataclasses.dataclass(frozen=True)
class Simulator:
    """Static data of the program of a problem.

    `columns` are those of `sensordata` that were measured, and `moved` the entries (q,) of positions and velocities
    that are unknown in initial states.
    """

    forms: tuple[Form, ...]
    columns: tuple[int, ...]
    step: Callable
    controller: Controller | None
    moved: tuple[int, ...]

    def split(self, free: Array) -> list[Array]:
        """Split coordinates by parameter."""
        return jnp.split(free, np.cumsum([f.size for f in self.forms])[:-1])

    def values(self, free: Array) -> Array:
        """Compute the values of the parameters, in their units, from free coordinates."""
        return jnp.concatenate([f.to_value(x) for f, x in zip(self.forms, self.split(free), strict=True)])

    def model(self, m: Model, free: Array) -> Model:
        """Make a model with these coordinates; derived constants are recomputed where they depend on them."""
        for f, x in zip(self.forms, self.split(free), strict=True):
            if f.kind == "model" and f.write is not None:
                m = f.write(m, f.to_value(x))
        return jaxsim.set_const(m) if any(f.constants for f in self.forms) else m

    def simulate(self, setting: Setting, free: Array, shift: Array, chunk: Chunk) -> tuple[Array, Array]:
        """Simulate measurements (c, n, ny) and gaps (c, w - 1, 2 nv) between any windows, in their deviations."""
        with copying_state():
            y, end = self.windows(setting, free, shift, chunk)
        return y, self.gaps(setting, end, shift, chunk)

    def windows(self, setting: Setting, free: Array, shift: Array, chunk: Chunk) -> tuple[Array, tuple[Array, Array]]:
        """Simulate measurements (c, n, ny), and the states in which all windows end."""
        y, end, _ = self.watched(setting, free, shift, chunk, ())
        return y, end

    def watched(
        self, setting: Setting, free: Array, shift: Array, chunk: Chunk, outputs: tuple[str, ...]
    ) -> tuple[Array, tuple[Array, Array], dict[str, Array]]:
        """Compute the results of `windows`, and other fields of the data by name, (c, w, n, ...)."""
        m, controller = self.model(setting.m, free), self.controller
        d = jaxsim.make_data(setting.m)
        c, w, _ = chunk.qpos.shape
        gains = {f.channels[0]: f.to_value(x) for f, x in zip(self.forms, self.split(free), strict=True)
                 if f.kind == "controller"}  # fmt: skip

        def seen(d: Data) -> tuple[Array, dict[str, Array]]:
            return take(d.sensordata, np.array(self.columns)), select(d, outputs)

        def one(qpos: Array, qvel: Array, time: Array, u: Array) -> tuple[Array, tuple[Array, Array], dict[str, Array]]:
            start = d.replace(qpos=qpos, qvel=qvel, time=time)
            driven = u if controller is None else lambda i, d, f=controller: f(d, u[i], gains)
            last, (y, found) = rollout(m, start, driven, len(u), outputs=seen, step=self.step, length=setting.length)
            return y, (last.qpos, last.qvel), found

        ctrl = self._controls(setting.m, chunk.ctrl, free)
        qpos, qvel = self.started(setting, chunk, shift)
        rows = ctrl.shape[1] // w
        length = rows if setting.length is None else setting.length
        time = jnp.broadcast_to(jnp.arange(w) * length * m.opt.timestep, (c, w)).astype(d.time.dtype)
        y, end, found = jax.vmap(jax.vmap(one))(qpos, qvel, time, ctrl.reshape(c, w, rows, -1))
        known = length * w
        return self._signals(setting, y.reshape(c, ctrl.shape[1], -1), free, known), end, found

    def started(self, setting: Setting, chunk: Chunk, shift: Array) -> tuple[Array, Array]:
        """Compute the states (c, w, nq), (c, w, nv) in which windows begin."""
        if not self.moved:
            return chunk.qpos, chunk.qvel
        m, nv = setting.m, setting.m.nv
        change = jnp.zeros((*shift.shape[:-1], 2 * nv), shift.dtype)
        change = change.at[..., np.array(self.moved)].set(shift * setting.deviations)
        move = jax.vmap(jax.vmap(lambda q, v: integrate_pos(m, q, v, 1.0)))
        return move(chunk.qpos, change[..., :nv]), chunk.qvel + change[..., nv:]

    def gaps(self, setting: Setting, end: tuple[Array, Array], shift: Array, chunk: Chunk) -> Array:
        """Subtract the starts of the next windows from windows' ends, in their deviations."""
        if setting.ends is None:
            return jnp.zeros((len(chunk.qpos), 0, 0), shift.dtype)
        qpos, qvel = self.started(setting, chunk, shift)
        apart = jax.vmap(jax.vmap(lambda a, b: differentiate_pos(setting.m, a, b)))
        gap = [apart(qpos[:, 1:], end[0][:, :-1]), end[1][:, :-1] - qvel[:, 1:]]
        return jnp.concatenate(gap, -1) / setting.ends

    def derivatives(self, setting: Setting, free: Array, shift: Array, chunk: Chunk) -> tuple[Array, ...]:
        """Compute measurements and their derivatives by forward mode, with a leading axis of p + q directions.

        Where windows have ends to meet, they are followed by gaps, their derivatives, and those by the shift of the
        later window.
        """
        q = len(self.moved)
        every = jnp.broadcast_to(jnp.eye(q, dtype=shift.dtype)[:, None, None], (q, *shift.shape[:2], q))
        directions = (
            jnp.concatenate([jnp.eye(len(free), dtype=free.dtype), jnp.zeros((q, len(free)), free.dtype)]),
            jnp.concatenate([jnp.zeros((len(free), *shift.shape), shift.dtype), every]),
        )

        def ahead(free: Array, shift: Array) -> tuple[Array, Array, tuple[Array, Array]]:
            y, end = self.windows(setting, free, shift, chunk)
            return y, self.gaps(setting, end, jax.lax.stop_gradient(shift), chunk), end

        def along(*direction: Array) -> tuple:
            return jax.jvp(ahead, (free, shift), direction)

        with keeping_residuals():
            (y, gap, end), (moved, opened, _) = jax.vmap(along, out_axes=(None, 0))(*directions)
        if setting.ends is None:
            return y, moved
        later = jax.vmap(jax.linearize(lambda s: self.gaps(setting, end, s, chunk), shift)[1])(every)
        return y, moved, gap, opened, later

    def _controls(self, m: Model, ctrl: Array, free: Array) -> Array:
        """Controls with the delays of actuators."""
        place = {
            name: [m.name2id("actuator", name)] for f in self.forms if f.kind == "ctrl_delay" for name in f.channels
        }
        lag = self._of_columns("ctrl_delay", free, place, ctrl.shape[-1], 0.0)
        return ctrl if lag is None else _late(ctrl, lag / m.opt.timestep, ctrl.shape[1])

    def _signals(self, setting: Setting, y: Array, free: Array, length: Array) -> Array:
        """Sensor values with delays, gains and biases of the channels, in the order in which a chain applies them."""
        of_sensor = ("delay", "offset", "gain", "bias")
        names = {name for f in self.forms if f.kind in of_sensor for name in f.channels}
        place = {n: np.flatnonzero(np.isin(self.columns, sensor_columns(setting.m, n))) for n in names}
        late, ahead, gain, bias = (
            self._of_columns(kind, free, place, y.shape[-1], float(kind == "gain")) for kind in of_sensor
        )
        for lag in (late, ahead):
            y = y if lag is None else _late(y, lag / setting.m.opt.timestep, length)
        y = y if gain is None else y * gain
        return y if bias is None else y + bias

    def _of_columns(self, kind: str, free: Array, place: Mapping[str, Any], count: int, usual: float) -> Array | None:
        """Values (count,) of the parameters of a kind for each column, `usual` elsewhere; None without parameters."""
        found = None
        for f, x in zip(self.forms, self.split(free), strict=True):
            if f.kind == kind:
                found = jnp.full(count, usual, free.dtype) if found is None else found
                values = jnp.broadcast_to(f.to_value(x), (len(f.channels),))
                for i, name in enumerate(f.channels):
                    at = np.array(place[name])
                    found = found.at[at].set(found[at] * values[i] if kind == "gain" else found[at] + values[i])
        return found


def sensor_columns(m: Model, name: str) -> np.ndarray:
    """Find the indices of a sensor's values in `sensordata`."""
    i = m.name2id("sensor", name)
    return m.sensor_adr[i] + np.arange(m.sensor_dim[i])


def delayed(y: Array, lag: Array, length: Array | int) -> Array:
    """Delay a signal (k, n), of which `length` are known, by `lag` steps: linear between samples, constant beyond."""
    index = jnp.clip(jnp.arange(y.shape[-1]) - lag, 0, length - 1)
    low = jnp.floor(jax.lax.stop_gradient(index)).astype(int)
    high = jnp.minimum(low + 1, length - 1)
    return y[..., low] + (index - low) * (y[..., high] - y[..., low])


def _late(signals: Array, lag: Array, length: Array | int) -> Array:
    """Signals (k, n, c), delayed by `lag` (c,) steps.

    All columns are computed anew: XLA updates a column in place, while it still reads earlier rows of it.
    """
    return jax.vmap(delayed, (-1, 0, None), -1)(signals, lag, length)


class Programs(NamedTuple):
    """Compiled functions of a simulator (static), a setting, points (s, p), shifts (s, c, w, q) and a chunk."""

    simulate: Callable
    derivatives: Callable
    started: Callable


@functools.cache
def programs() -> Programs:
    """Make the functions that JAX compiles once for each simulator and each shape."""

    def batched(function: Callable) -> Callable:
        def run(simulator: Simulator, setting: Setting, free: Array, shift: Array, chunk: Chunk) -> tuple:
            points = jax.vmap(functools.partial(function, simulator), (None, 0, 0, None))
            return points(setting, free, shift, chunk)

        return jaxsim.jit(run, static_argnums=0)

    started = jaxsim.jit(Simulator.started, static_argnums=0)
    return Programs(batched(Simulator.simulate), batched(Simulator.derivatives), started)
