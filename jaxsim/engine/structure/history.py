"""History buffers of controls and sensors, `d.history`: reading with a delay, inserting, initialising.

The buffer of an actuator or sensor with n samples of dimension dim is [user, cursor, times (n), values (n * dim)] in
`history`, in MuJoCo's layout: a ring buffer whose newest sample is at `cursor`; `user` holds the last tick of a sensor
with an interval. Buffers of one shape are processed together.

Two times count as equal when they differ by less than MuJoCo's 1e-15; in float32, where times themselves are rounded,
by a few units in the last place.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import MINVAL
from jaxsim.interface.public import public
from jaxsim.math.arrays import merge, take
from jaxsim.math.safe import Array, divide, xp_of

HOLD, LINEAR, CUBIC = range(3)


class Group(NamedTuple):
    """Buffers of one shape, static: ids (k,) of actuators or sensors, addresses, samples, dimension, interpolation."""

    sensor: bool
    ids: np.ndarray
    address: np.ndarray
    n: int
    dim: int
    interp: int

    @property
    def places(self) -> np.ndarray:
        """Addresses of all numbers of the buffers: (k, 2 + n + n * dim)."""
        return self.address[:, None] + np.arange(2 + self.n + self.n * self.dim)


class Buffers(NamedTuple):
    """The contents: `user` and `cursor` (k,), and in order of time `times` (k, n), `values` (k, n, dim)."""

    user: Array
    cursor: Array
    times: Array
    values: Array


@per_structure
def groups(m) -> tuple[Group, ...]:
    """Return all history buffers of a model, by shape."""
    found: dict[tuple, list[tuple[int, int]]] = {}
    for sensor, history, address, dims in (
        (False, m.actuator_history, m.actuator_historyadr, np.ones(m.nu, int)),
        (True, m.sensor_history, m.sensor_historyadr, m.sensor_dim),
    ):
        for i in np.flatnonzero(history[:, 0] > 0):
            key = (sensor, int(history[i, 0]), int(dims[i]), int(history[i, 1]))
            found.setdefault(key, []).append((int(i), int(address[i])))
    return tuple(
        Group(sensor, *np.array(rows).T, n=n, dim=dim, interp=interp)
        for (sensor, n, dim, interp), rows in found.items()
    )


def read_group(group: Group, history: Array) -> Buffers:
    """Return the buffers of a group in order of time."""
    numbers = take(history, group.places)
    k, n = len(group.ids), group.n
    cursor = jnp.asarray(numbers[:, 1], jnp.int32)
    order = (cursor[:, None] + 1 + np.arange(n, dtype=np.int32)) % n
    times = jnp.take_along_axis(numbers[:, 2 : 2 + n], order, axis=1)
    values = jnp.take_along_axis(numbers[:, 2 + n :].reshape(k, n, group.dim), order[..., None], axis=1)
    return Buffers(numbers[:, 0], cursor, times, values)


def write_group(group: Group, b: Buffers) -> tuple[np.ndarray, Array]:
    """Return addresses in `history` and the numbers to write there."""
    k, n = len(group.ids), group.n
    order = (np.arange(n, dtype=np.int32) - b.cursor[:, None] - 1) % n
    times = jnp.take_along_axis(b.times, order, axis=1)
    values = jnp.take_along_axis(b.values, order[..., None], axis=1).reshape(k, n * group.dim)
    head = jnp.stack([b.user, b.cursor.astype(b.user.dtype)], axis=1)
    return group.places.reshape(-1), jnp.concatenate([head, times, values], axis=1).reshape(-1)


def _equal_within(time: Array, n: int) -> Array:
    if time.dtype == np.float64:
        return jnp.full_like(time, MINVAL)
    return (n + 2) * jnp.finfo(time.dtype).eps * jnp.maximum(1e-3, jnp.abs(time))


def lookup(b: Buffers, time: Array, interp: int) -> Array:
    """Look up values (k, dim) at the times (k,), held beyond both ends.

    `interp` is 0 (hold), 1 (linear) or 2 (cubic).
    """
    n = b.times.shape[1]
    near = _equal_within(time, n)
    after = jnp.clip(jnp.sum(b.times < (time - near)[:, None], axis=1), 0, n - 1)
    before = jnp.maximum(after - 1, 0)

    def at(x: Array, i: Array) -> Array:
        index = i[:, None] if x.ndim == 2 else i[:, None, None]
        return jnp.take_along_axis(x, index, axis=1)[:, 0]

    exact = (jnp.abs(time - at(b.times, after)) <= near) | (time >= b.times[:, -1]) | (after == 0)
    low, high = at(b.values, before), at(b.values, after)
    if interp == HOLD:
        return jnp.where(exact[:, None], high, low)
    start, gap = at(b.times, before), at(b.times, after) - at(b.times, before)
    alpha = jnp.where(exact, 0, divide(time - start, gap))[:, None]
    if interp == LINEAR:
        between = low + alpha * (high - low)
    else:
        earlier, later = jnp.maximum(before - 1, 0), jnp.minimum(after + 1, n - 1)
        rise_low = divide(high - at(b.values, earlier), (at(b.times, after) - at(b.times, earlier))[:, None])
        rise_high = divide(at(b.values, later) - low, (at(b.times, later) - start)[:, None])
        tangent_low = jnp.where((before > 0)[:, None], rise_low, 0)
        tangent_high = jnp.where((after < n - 1)[:, None], rise_high, 0)
        square, cube = alpha**2, alpha**3
        between = (2 * cube - 3 * square + 1) * low + (3 * square - 2 * cube) * high
        between = between + gap[:, None] * ((cube - 2 * square + alpha) * tangent_low + (cube - square) * tangent_high)
    return jnp.where(exact[:, None], high, between)


def insert(b: Buffers, time: Array, value: Array, on: Array) -> Buffers:
    """Insert samples `value` (k, dim) at one time, where `on` (k,), and drop the oldest sample.

    A sample of the same time is overwritten; a sample older than all others replaces the oldest.
    """
    n = b.times.shape[1]
    time = jnp.broadcast_to(time, b.user.shape)
    near = _equal_within(time, n)
    i = jnp.sum(b.times < (time - near)[:, None], axis=1)
    there = jnp.take_along_axis(b.times, jnp.minimum(i, n - 1)[:, None], axis=1)[:, 0]
    same = (i < n) & (jnp.abs(time - there) <= near)
    place = jnp.where(same, i, jnp.maximum(i - 1, 0))
    moves = ~same & (i > 0)
    slot = np.arange(n)
    shifts = (slot < place[:, None]) & moves[:, None]
    times = jnp.where(shifts, jnp.roll(b.times, -1, axis=1), b.times)
    values = jnp.where(shifts[..., None], jnp.roll(b.values, -1, axis=1), b.values)
    here = slot == place[:, None]
    times = jnp.where(here & ~same[:, None], time[:, None], times)
    values = jnp.where(here[..., None], value[:, None], values)
    cursor = jnp.where(i == n, (b.cursor + 1) % n, b.cursor)
    return Buffers(
        b.user,
        jnp.where(on, cursor, b.cursor),
        jnp.where(on[:, None], times, b.times),
        jnp.where(on[:, None, None], values, b.values),
    )


def initial_history(m: Model) -> Array:
    """Return `history` (nhistory,) of the initial state: zeros at the times before the start."""
    xp = xp_of(m.opt.timestep)
    parts, index = [], []
    dt = m.opt.timestep
    for g in groups(m):
        k, n = len(g.ids), g.n
        back = xp.broadcast_to(np.arange(-n, 0).astype(dt.dtype) * dt, (k, n))
        user = xp.zeros(k, dt.dtype)
        if g.sensor:
            period, phase = take(m.sensor_interval, g.ids).T
            ticks = period > 0
            start = xp.where(phase == 0, -period, phase)
            steps = xp.ceil((start[:, None] + np.arange(1 - n, 1).astype(dt.dtype) * period[:, None]) / dt)
            back = xp.where(ticks[:, None], steps * dt, back)
            user = xp.where(ticks, start, -dt)
        head = xp.stack([user, xp.full(k, n - 1, dt.dtype)], axis=1)
        parts.append(xp.concatenate([head, back, xp.zeros((k, n * g.dim), dt.dtype)], axis=1).reshape(-1))
        index.append(g.places.reshape(-1))
    return take(xp.concatenate(parts), np.argsort(np.concatenate(index)))


def delayed_controls(m: Model, d: Data) -> Array:
    """Return controls (nu,) as the actuators see them: delayed where there is a delay."""
    ctrl = d.ctrl
    for g in groups(m):
        if not g.sensor:
            delay = take(m.actuator_delay, g.ids)
            seen = lookup(read_group(g, d.history), d.time - delay, g.interp)[:, 0]
            ctrl = merge(ctrl, g.ids, jnp.where(delay != 0, seen, take(ctrl, g.ids)))
    return ctrl


def _due(m: Model, d: Data, g: Group, user: Array) -> tuple[Array, Array]:
    """Return the mask of sensors of a group with an interval, and the mask of those that tick now."""
    interval = take(m.sensor_interval, g.ids)[:, 0]
    near = _equal_within(jnp.broadcast_to(d.time, user.shape), 2) if d.time.dtype != np.float64 else 0
    return interval > 0, (interval > 0) & (user + interval <= d.time + near)


def delayed_sensors(m: Model, d: Data, index: np.ndarray, values: Array) -> Array:
    """Return values (k,) at static addresses `index` of sensordata, delayed, or held between ticks."""
    position = np.full(m.nsensordata, -1)
    position[index] = np.arange(len(index))
    for g in groups(m):
        if not g.sensor:
            continue
        places = position[m.sensor_adr[g.ids][:, None] + np.arange(g.dim)]
        mine = np.flatnonzero((places >= 0).all(1))
        if not len(mine):
            continue
        g = g._replace(ids=g.ids[mine], address=g.address[mine])
        places = places[mine]
        b = read_group(g, d.history)
        delay = take(m.sensor_delay, g.ids)
        ticking, due = _due(m, d, g, b.user)
        seen = lookup(b, d.time - delay, g.interp)
        fresh = take(values, places)
        new = jnp.where(((delay > 0) | (ticking & ~due))[:, None], seen, fresh)
        values = merge(values, places.reshape(-1), new.reshape(-1))
    return values


def record(m: Model, d: Data, sensors: Array) -> Array:
    """Record controls and sensors in `history` after a step, at `d.time`; `sensors` (nsensordata,) are undelayed."""
    history = d.history
    for g in groups(m):
        b = read_group(g, d.history)
        on = jnp.ones(len(g.ids), bool)
        if g.sensor:
            places = m.sensor_adr[g.ids][:, None] + np.arange(g.dim)
            delayed = (take(m.sensor_delay, g.ids) > 0)[:, None]
            value = jnp.where(delayed, take(sensors, places), take(d.sensordata, places))
            ticking, due = _due(m, d, g, b.user)
            on = ~ticking | due
            b = b._replace(user=jnp.where(due, b.user + take(m.sensor_interval, g.ids)[:, 0], b.user))
        else:
            value = take(d.ctrl, g.ids)[:, None]
        history = merge(history, *write_group(g, insert(b, d.time, value, on)))
    return history


def _buffer(m: Model, sensor: bool, index: int) -> Group | None:
    for g in groups(m):
        at = np.flatnonzero(g.ids == index)
        if g.sensor == sensor and len(at):
            return g._replace(ids=g.ids[at], address=g.address[at])
    return None


@public(static=("index", "interp"))
def read_ctrl(m: Model, d: Data, index: int, time: Array, interp: int = -1) -> Array:
    """Return the control of an actuator at `time`, a scalar; `ctrl` itself if it has no history.

    `interp` is 0 (hold), 1 (linear) or 2 (cubic), -1 for the actuator's own.
    """
    g = _buffer(m, False, _checked(index, m.nu, "actuator"))
    if g is None:
        return d.ctrl[index]
    at = jnp.asarray(time, d.time.dtype) - m.actuator_delay[index]
    return lookup(read_group(g, d.history), at[None], g.interp if interp < 0 else interp)[0, 0]


@public(static=("index", "interp"))
def read_sensor(m: Model, d: Data, index: int, time: Array, interp: int = -1) -> Array:
    """Return the value (dim,) of a sensor at `time`; the one in `sensordata` if it has no history."""
    g = _buffer(m, True, _checked(index, m.nsensor, "sensor"))
    if g is None:
        return take(d.sensordata, m.sensor_adr[index] + np.arange(m.sensor_dim[index]))
    at = jnp.asarray(time, d.time.dtype) - m.sensor_delay[index]
    return lookup(read_group(g, d.history), at[None], g.interp if interp < 0 else interp)[0]


@public(compiled=False)
def init_ctrl_history(m: Model, d: Data, index: int, times: Array | None, values: Array | None) -> Data:
    """Set the history of an actuator: increasing times (n,) and values (n,); None keeps the current ones.

    Raises ValueError for an actuator without a history, or for times that do not increase.
    """
    g = _buffer(m, False, _checked(index, m.nu, "actuator"))
    return _initialise(d, g, f"actuator {index}", times, values, None)


@public(compiled=False)
def init_sensor_history(
    m: Model, d: Data, index: int, times: Array | None, values: Array | None, phase: Array = 0.0
) -> Data:
    """Set the history of a sensor: increasing times (n,), values (n, dim), and the time of its last tick."""
    g = _buffer(m, True, _checked(index, m.nsensor, "sensor"))
    return _initialise(d, g, f"sensor {index}", times, values, phase)


def _checked(index: int, count: int, what: str) -> int:
    if not 0 <= index < count:
        raise ValueError(f"{what} {index} is out of range: the model has {count}")
    return index


def _initialise(d: Data, g: Group | None, what: str, times: Any, values: Any, user: Any) -> Data:
    if g is None:
        raise ValueError(f"{what} has no history: set its nsample in the model")
    if isinstance(times, (list, tuple, np.ndarray)) and np.less(np.diff(np.asarray(times)), MINVAL).any():
        raise ValueError(f"the times of the history of {what} do not increase")
    b, dtype = read_group(g, d.history), d.history.dtype
    b = b._replace(cursor=jnp.full_like(b.cursor, g.n - 1))
    if times is not None:
        b = b._replace(times=jnp.asarray(times, dtype).reshape(1, g.n))
    if values is not None:
        b = b._replace(values=jnp.asarray(values, dtype).reshape(1, g.n, g.dim))
    if user is not None:
        b = b._replace(user=jnp.asarray(user, dtype).reshape(1))
    return d.replace(history=merge(d.history, *write_group(g, b)))
