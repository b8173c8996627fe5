"""Optimal experiment design: controls within limits that minimise a criterion of the parameters' covariance."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.describe import describe_struct
from jaxsim.core.model import Model
from jaxsim.core.types import JointType
from jaxsim.identify.parameters import Parameter
from jaxsim.identify.simulator import Chunk, Setting, Simulator, sensor_columns
from jaxsim.math.safe import Array
from jaxsim.optim.progress import bar

CRITERIA = ("D", "A", "E")
MARGIN = 0.01  # of a limit's range, from which on a penalty keeps away from it
PENALTY = 100.0  # of the squared excess, relative to a criterion in natural logarithms; grows where limits are broken
GROWTH = 1.3
RATE = 0.1  # of Adam, in units in which the range of a control is some four wide
SIGHT = 0.01  # m above the clearance of geoms, from which on their distance counts
BATCH = 32  # random controls that are simulated at a time


@dataclasses.dataclass(frozen=True, repr=False)
class Excitation:
    """Result of `excite`.

    `ctrl` (k, n, nu) are the controls, `time` (n,) their times. `covariance` (p, p) of the values in the order of
    `labels` is that of a fit to such records (the Cramer-Rao bound), with the standard deviations `std`. `criterion` is
    the final value, `random` (r,) that of random controls, infinite where they violate a limit, and `history` that of
    every iteration. `peaks` are the largest values relative to their limits, by name: 1 is at the limit.
    """

    ctrl: np.ndarray
    time: np.ndarray
    labels: tuple[str, ...]
    std: np.ndarray
    covariance: np.ndarray
    criterion: float
    random: np.ndarray
    history: np.ndarray
    peaks: dict[str, float]

    __repr__ = describe_struct

    def __str__(self) -> str:
        lines = [f"{label:40s} std {s:12.4g}" for label, s in zip(self.labels, self.std, strict=True)]
        used = ", ".join(f"{name} {share:.2f}" for name, share in self.peaks.items())
        best = np.min(self.random, initial=np.inf)
        return "\n".join([*lines, f"criterion {self.criterion:.4g}; best random controls {best:.4g}", f"used: {used}"])


class Limits(NamedTuple):
    """Bounds of recorded fields: (low, high), infinite for entries without a bound."""

    qpos: tuple[np.ndarray, np.ndarray]
    qvel: tuple[np.ndarray, np.ndarray]
    qfrc_actuator: tuple[np.ndarray, np.ndarray]


NAMES = {"qpos": "position", "qvel": "speed", "qfrc_actuator": "torque", "contact.dist": "clearance"}


def excite(
    m: Model,
    parameters: Sequence[Parameter],
    *,
    steps: int,
    sigma: Mapping[str, float],
    criterion: str = "D",
    trajectories: int = 1,
    ctrl: tuple[Any, Any] | None = None,
    position: tuple[Any, Any] | None = None,
    speed: Any = np.inf,
    torque: Any = np.inf,
    clearance: float | None = None,
    qpos: Any = None,
    hold: int = 10,
    iterations: int = 100,
    random: int = 32,
    seed: int = 0,
    progress: bool = False,
) -> Excitation:
    """Find controls within limits that minimise the uncertainty of parameters, at their values in the model.

    The covariance of a fit to the records is the inverse of the information J'J, with the exact Jacobian J of the
    measurements by the parameters in units of the noise. A criterion of it is minimised by gradient (reverse mode
    through the Jacobian's forward mode), from the best of `random` smooth random controls.

    Args:
        steps: rows of the controls, one a time step.
        sigma: standard deviations of the noise of the sensors that are measured, by name.
        criterion: "D": half the logarithm of the covariance's determinant; "A": that of its trace; "E": that of its
            largest eigenvalue; the latter two of coordinates relative to values (logarithms with `log=True`).
        trajectories: number of experiments, each of `steps` from the same initial position.
        ctrl: lower and upper limits of the controls (nu,); by default the actuators' `ctrlrange`.
        position: lower and upper limits of `qpos` (nq,); by default the ranges of limited hinges and slides.
        speed: limits of the size of `qvel`, one or (nv,). torque: likewise of `qfrc_actuator`.
        clearance: least distance (m) of geoms that may collide, where a step begins; None: contacts are allowed.
        qpos: initial position (nq,); by default qpos0. Velocities are zero there.
        hold: steps between the knots of the controls, which are linear in between.
        iterations: of Adam.
        random: number of random controls.

    Limits are enforced at every step, not in between. Raises ValueError for an actuator without limits, for
    inconsistent numbers, or if no controls within the limits were found. Raises UnsupportedError if a derivative is not
    supported.
    """
    if criterion not in CRITERIA:
        raise ValueError(f"criterion is {criterion!r}; expected one of {', '.join(CRITERIA)}")
    if steps < 1 or hold < 1 or trajectories < 1:
        raise ValueError("steps, hold and trajectories are positive")
    low, high = _control_limits(m, ctrl)
    limits = Limits(_position_limits(m, position), _sizes(speed, m.nv, "speed"), _sizes(torque, m.nv, "torque"))
    knots = -(-steps // hold) + 1
    design = _Design(m, tuple(parameters), sigma, criterion, limits, clearance, qpos, low, high, steps, hold)
    shape = (trajectories, knots, m.nu)
    drawn = _random(np.random.default_rng(seed), (max(1, random), *shape))
    values, excess = design.evaluate(drawn)
    found = np.where(excess > 0, np.inf, values)
    first = int(np.argmin(found if np.isfinite(found).any() else values + PENALTY * excess))
    z, best, cost, history, weight = drawn[first], drawn[first], found[first], [], PENALTY
    slope, square = np.zeros_like(z), np.zeros_like(z)
    with bar(iterations, "excitation", progress) as shown:
        for i in range(1, iterations + 1):
            (value, broken), gradient = design.gradient(z, weight)
            if not np.isfinite(gradient).all():
                break
            if not broken and value < cost:
                best, cost = z, value
            weight *= GROWTH if broken else 1.0
            slope, square = 0.9 * slope + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
            rate = RATE * 0.5 * (1 + np.cos(np.pi * i / iterations))
            z = z - rate * (slope / (1 - 0.9**i)) / (np.sqrt(square / (1 - 0.99**i)) + 1e-8)
            history.append(value)
            shown(value)
    if not np.isfinite(cost):
        raise ValueError(
            "no controls within the limits were found: draw more (random=), allow more, or start at another qpos"
        )
    return design.result(best, float(cost), found, np.array(history))


class _Design:
    """Criterion of controls given by knots (k, knots, nu), and how far limits are broken."""

    def __init__(self, m, parameters, sigma, criterion, limits, clearance, qpos, low, high, steps, hold):
        m = m if clearance is None else seen_from(m, clearance + SIGHT)
        self.m, self.parameters, self.criterion, self.clearance = m, parameters, criterion, clearance
        self.labels = tuple(label for p in parameters for label in p.labels)
        columns = np.concatenate([sensor_columns(m, name) for name in sigma])
        noise = np.concatenate([np.full(len(sensor_columns(m, name)), float(s)) for name, s in sigma.items()])
        if not (np.isfinite(noise) & (noise > 0)).all():
            raise ValueError("sigma has entries that are not positive numbers")
        self.simulator = Simulator(tuple(p.form for p in parameters), tuple(columns.tolist()), jaxsim.step, None, ())
        self.setting = Setting(m, jnp.zeros(0), None, None)
        self.free = jnp.concatenate([p.to_free(jnp.asarray(p.start, float)) for p in parameters])
        logs = np.concatenate([np.full(len(p.labels), p.log) for p in parameters])
        values = np.asarray(self.simulator.values(self.free))
        self.to_values = np.where(logs, values, 1.0)
        self.size = jnp.asarray(np.where(logs, 1.0, np.maximum(np.abs(values), 1e-2)))
        self.noise, self.low, self.high = jnp.asarray(noise), jnp.asarray(low), jnp.asarray(high)
        self.qpos = jnp.asarray(m.qpos0 if qpos is None else qpos)
        place = np.arange(steps) / hold
        self.left, self.share = place.astype(int), jnp.asarray(place - place.astype(int))[:, None]
        self.bounded = {name: bound for name, bound in limits._asdict().items() if np.isfinite(bound).any()}
        self.watched = (*self.bounded, *(() if clearance is None else ("contact.dist", "ncon")))

        def objective(z: Array, weight: Array) -> tuple[Array, tuple[Array, Array]]:
            information, records = self.information(z)
            value = criterion_of(information, self.size, self.criterion)
            used = self.used(records)
            excess = sum((jnp.sum(jnp.maximum(x - (1 - MARGIN), 0) ** 2) for x in used.values()), jnp.zeros(()))
            broken = sum((jnp.sum(jnp.maximum(x - 1, 0) ** 2) for x in used.values()), jnp.zeros(()))
            return value + weight * excess, (value, broken)

        self._gradient = jaxsim.jit(jax.value_and_grad(objective, has_aux=True))
        self._values = jaxsim.jit(jax.vmap(lambda z: objective(z, 0.0)[1]))

    def controls(self, z: Array) -> Array:
        """Compute controls (k, n, nu) within their limits, linear between knots."""
        knots = self.low + (self.high - self.low) * jax.nn.sigmoid(z)
        return knots[:, self.left] * (1 - self.share) + knots[:, self.left + 1] * self.share

    def information(self, z: Array) -> tuple[Array, dict[str, Array]]:
        """Compute the information matrix (p, p) of free coordinates, and records of limited fields."""
        ctrl = self.controls(z)
        k = len(ctrl)
        chunk = Chunk(
            jnp.broadcast_to(self.qpos, (k, 1, self.m.nq)), jnp.zeros((k, 1, self.m.nv), self.qpos.dtype), ctrl
        )

        def ahead(free: Array) -> tuple[Array, dict[str, Array]]:
            y, _, found = self.simulator.watched(self.setting, free, jnp.zeros((k, 1, 0)), chunk, self.watched)
            return y / self.noise, found

        def along(direction: Array) -> tuple:
            (_, found), (moved, _) = jax.jvp(ahead, (self.free,), (direction,))
            return found, moved

        found, moved = jax.vmap(along, out_axes=(None, 0))(jnp.eye(len(self.free), dtype=self.free.dtype))
        rows = moved.reshape(len(moved), -1)
        return jnp.matmul(rows, rows.T, precision="highest"), found

    def used(self, records: Mapping[str, Array]) -> dict[str, Array]:
        """Return the values of limited fields relative to their limits, by field: 1 is at the limit."""
        shares = {}
        for name, (low, high) in self.bounded.items():
            bound = np.isfinite(low) & np.isfinite(high)
            middle, half = 0.5 * (low + high)[bound], 0.5 * (high - low)[bound]
            shares[name] = jnp.abs(records[name][..., bound] - middle) / half
        if self.clearance is not None:
            near = records["contact.dist"]
            near = jnp.where(jnp.arange(near.shape[-1]) < records["ncon"][..., None], near, self.clearance + SIGHT)
            shares["contact.dist"] = 1 + jnp.maximum(self.clearance - near, -SIGHT) / SIGHT
        return shares

    def evaluate(self, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate criteria (r,), infinite where information is singular, and excess of knots (r, k, knots, nu)."""
        found = []
        for begin in range(0, len(drawn), BATCH):
            rows = np.minimum(np.arange(begin, begin + min(BATCH, len(drawn))), len(drawn) - 1)
            found.append([np.asarray(x) for x in self._values(jnp.asarray(drawn[rows]))])
        value, excess = (np.concatenate(x)[: len(drawn)] for x in zip(*found, strict=True))
        return np.where(np.isfinite(value), value, np.inf), np.nan_to_num(excess, nan=np.inf)

    def gradient(self, z: np.ndarray, weight: float) -> tuple[tuple[float, bool], np.ndarray]:
        """Compute the criterion and whether limits are broken, and the gradient with the penalty."""
        (_, (value, broken)), gradient = self._gradient(jnp.asarray(z), jnp.asarray(weight, float))
        return (float(value), bool(broken > 0)), np.asarray(gradient)

    def result(self, z: np.ndarray, cost: float, found: np.ndarray, history: np.ndarray) -> Excitation:
        information, records = jaxsim.jit(self.information)(jnp.asarray(z))
        covariance = np.linalg.inv(np.asarray(information, float)) * np.outer(self.to_values, self.to_values)
        peaks = {NAMES[name]: float(jnp.max(x)) for name, x in self.used(records).items() if x.size}
        ctrl = np.asarray(self.controls(jnp.asarray(z)))
        time = float(self.m.opt.timestep) * np.arange(ctrl.shape[1])
        std = np.sqrt(np.diag(covariance))
        return Excitation(ctrl, time, self.labels, std, covariance, cost, found, history, peaks)


def criterion_of(information: Array, size: Array, criterion: str) -> Array:
    """Compute the criterion of an information matrix (p, p), a natural logarithm; "A", "E" relative to sizes (p,)."""
    scaled = information * jnp.outer(size, size)
    scale = jnp.sqrt(jnp.maximum(jnp.diagonal(scaled), 1e-30))
    factor = jnp.linalg.cholesky(scaled / jnp.outer(scale, scale))
    if criterion == "D":
        return jnp.log(size).sum() - jnp.log(scale).sum() - jnp.log(jnp.diagonal(factor)).sum()
    inverse = jax.scipy.linalg.solve_triangular(factor, jnp.diag(1 / scale), lower=True)
    if criterion == "A":
        return jnp.log(jnp.sum(inverse**2))
    return jnp.log(jnp.linalg.eigvalsh(inverse.T @ inverse)[-1])


def seen_from(m: Model, distance: float) -> Model:
    """Return a model of the same forces that lists contacts earlier: margin and gap increase by the same distance."""
    names = ("geom_margin", "geom_gap", "pair_margin", "pair_gap")
    return m.replace(**{name: getattr(m, name) + distance for name in names})


def _random(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Knots of random controls, of all amplitudes."""
    amplitude = np.exp(rng.uniform(np.log(0.05), np.log(2.0), shape[0]))
    return rng.standard_normal(shape) * amplitude.reshape(-1, *(1,) * (len(shape) - 1))


def _control_limits(m: Model, given: tuple[Any, Any] | None) -> tuple[np.ndarray, np.ndarray]:
    if given is None:
        limited = np.asarray(m.actuator_ctrllimited, bool)
        if not limited.all():
            names = ", ".join(str(m.id2name("actuator", int(i)) or i) for i in np.flatnonzero(~limited))
            raise ValueError(f"actuators without a ctrlrange: {names}; pass ctrl=(low, high)")
        low, high = np.asarray(m.actuator_ctrlrange, float).T
        given = low, high
    return _pair(given, m.nu, "ctrl")


def _position_limits(m: Model, given: tuple[Any, Any] | None) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.full(m.nq, -np.inf), np.full(m.nq, np.inf)
    if given is not None:
        return _pair(given, m.nq, "position")
    for j in np.flatnonzero(np.asarray(m.jnt_limited, bool)):
        if m.jnt_type[j] in (JointType.HINGE, JointType.SLIDE):
            low[m.jnt_qposadr[j]], high[m.jnt_qposadr[j]] = np.asarray(m.jnt_range[j], float)
    return low, high


def _pair(given: Any, size: int, what: str) -> tuple[np.ndarray, np.ndarray]:
    try:
        low, high = (np.broadcast_to(np.asarray(x, float), (size,)) for x in given)
    except ValueError as error:
        raise ValueError(f"{what} is {given!r}; expected lower and upper limits, one or ({size},)") from error
    if not (low < high).all():
        raise ValueError(f"{what}: lower limits are below upper ones")
    return low, high


def _sizes(limit: Any, size: int, what: str) -> tuple[np.ndarray, np.ndarray]:
    high = np.broadcast_to(np.asarray(limit, float), (size,))
    if not (high > 0).all():
        raise ValueError(f"{what} is {limit!r}; expected positive limits")
    return -high, high
