"""Least squares on rollouts: Levenberg-Marquardt with exact Jacobians, several starts in a batch, identifiability."""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.describe import describe_struct
from jaxsim.core.model import Model
from jaxsim.engine.rollout import rollout
from jaxsim.identify.data import Recordings
from jaxsim.identify.parameters import Parameter
from jaxsim.identify.uncertainty import at_bounds, rough, uncertainty, unidentifiable
from jaxsim.math.safe import Array
from jaxsim.optim.progress import bar
from jaxsim.optim.shooting import shoot

HORIZONS = (60, 200, 600, 2000)  # steps of the first fits to a long record
LARGEST_PART = 0.7  # of the record that a first fit may have
SETTLED = 1e-6  # relative improvement of the last iteration below which a fit has converged
PERFECT = 1e-6  # of the variation of the measurements: residuals that leave nothing to improve
FAILED = 3.0  # residuals so many times the noise that was given are no noise


@dataclasses.dataclass(frozen=True, repr=False)
class Fit:
    """Result of `identify`.

    `values` and their standard deviations `std` are in the order of `labels`; `interval` (n, 2) is that of 95 %.
    `m` is the model with the values. `residual` (k, n, ny) is simulated less measured, in units of the noise;
    `simulated` is in units of the sensors. `cost` (starts, iterations) is that of every start and iteration.
    `unidentifiable` has a sentence for each direction of the parameters that the data do not determine. `noise` is the
    standard deviation of the residuals in units of the one given: near 1 when model and noise are right; where it is
    above 1, intervals are as many times as wide. `identified` says which values the data determine: the others have an
    infinite `std`. `converged`: the last `iterations` improved nothing more, and residuals are no larger than noise.
    """

    labels: tuple[str, ...]
    values: np.ndarray
    std: np.ndarray
    interval: np.ndarray
    covariance: np.ndarray
    m: Model
    simulated: np.ndarray
    residual: np.ndarray
    cost: np.ndarray
    starts: np.ndarray
    unidentifiable: tuple[str, ...]
    noise: float
    identified: np.ndarray
    converged: bool
    iterations: int

    __repr__ = describe_struct

    def interval_text(self, i: int) -> str:
        """The interval of value i as text, or that there is none."""
        low, high = self.interval[i]
        return f"[{low:.6g}, {high:.6g}]" if self.identified[i] else "not identified"

    def __str__(self) -> str:
        rows = zip(self.labels, self.values, strict=True)
        lines = [f"{label:40s} {v:12.6g}   {self.interval_text(i)}" for i, (label, v) in enumerate(rows)]
        state = "converged" if self.converged else "NOT converged"
        lines.append(f"{state} after {self.iterations} iterations; residuals {self.noise:.3g} times the given noise")
        return "\n".join([*lines, *self.unidentifiable])


class Problem:
    """Residual of recordings as a pure function of the free coordinates of parameters, and maps to their values."""

    def __init__(self, m: Model, data: Recordings, parameters: Sequence[Parameter], step: Callable = jaxsim.step):
        self.m, self.data, self.parameters, self.step = m, data, tuple(parameters), step
        self.labels = tuple(label for p in parameters for label in p.labels)
        self.sizes = [len(p.labels) for p in parameters]
        self.columns = np.concatenate([_columns(m, name) for name in data.names])
        self.first = jnp.concatenate([p.to_free(jnp.asarray(p.start, float)) for p in parameters])
        bounds = [[p.to_free(jnp.maximum(x, 1e-300) if p.log else x) for x in (p.low, p.high)] for p in parameters]
        low, high = (jnp.asarray(np.repeat([float(b[i]) for b in bounds], self.sizes)) for i in (0, 1))
        self.low, self.high = low, high

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

    def simulate(self, free: Array) -> Array:
        """Simulated measurements (k, n, ny)."""
        m, data = self.model(free), self.data
        d = jaxsim.make_data(self.m)
        ctrl = self._controls(jnp.asarray(data.ctrl), free)

        def one(qpos: Array, qvel: Array, u: Array) -> Array:
            start = d.replace(qpos=qpos, qvel=qvel)
            return rollout(m, start, u, outputs=("sensordata",), step=self.step)[1]["sensordata"][:, self.columns]

        return self._signals(jax.vmap(one)(jnp.asarray(data.qpos), jnp.asarray(data.qvel), ctrl), free)

    def _controls(self, ctrl: Array, free: Array) -> Array:
        """Controls with the delays of actuators."""
        for p, x in zip(self.parameters, self.split(free), strict=True):
            if p.kind == "ctrl_delay":
                for name, delay in zip(p.channels, p.to_value(x), strict=True):
                    i = self.m.name2id("actuator", name)
                    ctrl = ctrl.at[..., i].set(delayed(ctrl[..., i], delay / self.m.opt.timestep))
        return ctrl

    def _signals(self, y: Array, free: Array) -> Array:
        """Sensor values with delays, gains and biases of the channels."""
        by_kind = {"gain": lambda y, g: g * y, "bias": lambda y, b: y + b}
        by_kind["delay"] = lambda y, t: delayed(y, t / self.m.opt.timestep)
        for kind in ("delay", "gain", "bias"):  # in the order in which a measurement chain applies them
            for p, x in zip(self.parameters, self.split(free), strict=True):
                if p.kind == kind:
                    for name, value in zip(p.channels, p.to_value(x), strict=True):
                        for i in np.flatnonzero(np.isin(self.columns, _columns(self.m, name))):
                            y = y.at[..., i].set(by_kind[kind](y[..., i], value))
        return y

    def residual(self, free: Array) -> Array:
        """Differences in units of the noise, those from priors last; zero where a measurement is missing."""
        measured = jnp.asarray(self.data.measured)
        known = jnp.isfinite(measured)
        error = jnp.where(known, self.simulate(free) - jnp.where(known, measured, 0), 0) / jnp.asarray(self.data.sigma)
        priors = []
        for p, x in zip(self.parameters, self.split(free), strict=True):
            if p.prior is not None:
                mean, deviation = p.prior
                priors.append((x - p.to_free(jnp.asarray(mean, x.dtype))) / deviation)
        return jnp.concatenate([error.reshape(-1), *(q.reshape(-1) for q in priors)])


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


def identify(
    m: Model,
    data: Recordings,
    parameters: Sequence[Parameter],
    *,
    method: str = "lm",
    iterations: int = 30,
    starts: int = 1,
    spread: float = 0.2,
    seed: int = 0,
    learning_rate: float = 0.03,
    horizons: Sequence[int] | None = None,
    step: Callable = jaxsim.step,
    progress: bool = False,
) -> Fit:
    """Estimate parameters from recordings by maximum likelihood or, with priors, maximum a posteriori.

    Args:
        method: "lm": Levenberg-Marquardt with exact Jacobians by forward mode; "adam": optax on the same cost.
        iterations: at most so many.
        starts: number of starts in the batch: the first is the model's own numbers, the others are these times
            (1 + `spread` w), w normal. The best result is returned.
        horizons: numbers of first steps that are fitted one after the other, before the whole record: over a long one
            a rollout with wrong parameters drifts away, and its derivatives say little. By default 60, 200, 600 and
            2000 steps, as far as they are shorter than 0.7 of the record; () fits the whole at once.

    Warns (UserWarning) when parameters have no effect on the data or cannot be told apart.
    """
    problem = Problem(m, data, parameters, step)
    first = _starts(problem, starts, spread, seed)
    run = {"lm": levenberg, "adam": partial(_adam, learning_rate=learning_rate)}.get(method)
    if run is None:
        raise ValueError(f'method is {method!r}; expected "lm" or "adam"')
    steps = data.ctrl.shape[1]
    if horizons is None:
        horizons = [h for h in HORIZONS if h <= LARGEST_PART * steps]
    free = first
    for h in horizons:
        part = dataclasses.replace(data, ctrl=data.ctrl[:, :h], measured=data.measured[:, :h])
        free, _ = run(Problem(m, part, parameters, step), free, iterations, progress)
    free, history = run(problem, free, iterations, progress)
    best = free[int(np.nanargmin(history[:, -1]))]
    return _summary(problem, best, history, first)


def _starts(problem: Problem, starts: int, spread: float, seed: int) -> Array:
    """Free coordinates (starts, p) of the starts."""
    noise = jax.random.normal(jax.random.key(seed), (starts, len(problem.first)), problem.first.dtype).at[0].set(0)
    size = jnp.concatenate([jnp.ones(n) if p.log else jnp.maximum(jnp.abs(jnp.asarray(p.start, float)), 1e-2)
                            for p, n in zip(problem.parameters, problem.sizes, strict=True)])  # fmt: skip
    return jnp.clip(problem.first + spread * size * noise, problem.low, problem.high)


def levenberg(problem: Problem, first: Array, iterations: int, progress: bool) -> tuple[Array, np.ndarray]:
    """Free coordinates (starts, p) and costs (starts, iterations + 1) of a batch of Levenberg-Marquardt iterations."""

    def improve(free: Array, damping: Array) -> tuple[Array, Array, Array, Array]:
        r, jac = _residual_and_jacobian(problem, free)
        cost = 0.5 * r @ r
        h, g = jac.T @ jac, jac.T @ r
        clamped = ((free <= problem.low) & (g > 0)) | ((free >= problem.high) & (g < 0))
        g = jnp.where(clamped, 0, g)
        h = jnp.where(clamped[:, None] | clamped[None], 0, h)
        scale = jnp.maximum(jnp.diagonal(h), 1e-12 * jnp.max(jnp.diagonal(h)) + 1e-30)
        trials = damping * jnp.asarray([0.1, 1.0, 10.0, 100.0], free.dtype)
        moves = jax.vmap(lambda t: -jnp.linalg.solve(h + t * jnp.diag(scale), g))(trials)
        points = jnp.clip(free + moves, problem.low, problem.high)
        costs = jax.lax.map(lambda x: 0.5 * jnp.sum(problem.residual(x) ** 2), points)
        costs = jnp.where(jnp.isfinite(costs), costs, jnp.inf)
        k = jnp.argmin(costs)
        better = costs[k] < cost
        damping = jnp.where(better, trials[k], 100 * damping)
        expected = -0.5 * g @ moves[0]  # improvement by the least damped step if residuals were linear
        return jnp.where(better, points[k], free), jnp.clip(damping, 1e-12, 1e12), jnp.minimum(cost, costs[k]), expected

    batch = jaxsim.jit(jax.vmap(improve))
    free, damping = first, jnp.full(len(first), 1e-2, first.dtype)
    history = [np.asarray(jaxsim.jit(jax.vmap(lambda x: 0.5 * jnp.sum(problem.residual(x) ** 2)))(first))]
    with bar(iterations, "identification", progress) as shown:
        for _ in range(iterations):
            free, damping, cost, expected = batch(free, damping)
            history.append(np.asarray(cost))
            shown(np.nanmin(history[-1]))
            stalled = history[-2] - history[-1] <= 1e-10 * history[-1]
            if np.all(stalled & ((np.asarray(damping) > 1e3) | (np.asarray(expected) <= 1e-10 * history[-1]))):
                break
    return free, np.stack(history, 1)


def _residual_and_jacobian(problem: Problem, free: Array) -> tuple[Array, Array]:
    """Residual (n,) and its Jacobian (n, p) by forward mode."""
    r, jvp = jax.linearize(problem.residual, free)
    return r, jax.vmap(jvp, out_axes=1)(jnp.eye(len(free), dtype=free.dtype))


def _adam(
    problem: Problem, first: Array, iterations: int, progress: bool, learning_rate: float
) -> tuple[Array, np.ndarray]:
    """Free coordinates (starts, p) and costs (starts, iterations) by Adam, one start after the other."""

    def cost(free: Array) -> Array:
        return 0.5 * jnp.sum(problem.residual(free) ** 2)

    found = [
        shoot(cost, x, iterations, learning_rate, low=problem.low, high=problem.high, clip=1e9, progress=progress)
        for x in first
    ]
    return jnp.stack([f.x for f in found]), np.stack([np.minimum.accumulate(f.history) for f in found])


def _summary(problem: Problem, free: Array, history: np.ndarray, first: Array) -> Fit:
    """Fit at the free coordinates found: intervals by the Cramer-Rao bound, and warnings."""
    r, jac = (np.asarray(x) for x in jaxsim.jit(partial(_residual_and_jacobian, problem))(free))
    simulated = np.asarray(jaxsim.jit(problem.simulate)(free))
    to_values = np.asarray(
        jax.vmap(jax.grad(lambda x, i: problem.values(x)[i]), (None, 0))(free, jnp.arange(len(free)))
    )
    labels = problem.labels
    low, high = np.asarray(problem.low), np.asarray(problem.high)
    sentences = (*at_bounds(np.asarray(free), low, high, jac, labels),)
    sentences += unidentifiable(np.float64(jac).T @ jac, labels)
    found = uncertainty(jac)
    known = np.isfinite(problem.data.measured)
    noise = float(np.sqrt(r @ r / max(1, known.sum() - len(free))))
    deviation = max(1.0, noise) * np.sqrt(np.diag(found.covariance))
    deviation = np.where(found.identified, deviation, np.inf)
    logs = np.repeat([p.log for p in problem.parameters], problem.sizes)
    many = jaxsim.jit(lambda points: jax.lax.map(problem.residual, points))
    sizes = np.where(logs, 1.0, np.abs(np.asarray(free)))
    sentences += (*rough(many, np.asarray(free), low, high, jac, deviation, sizes, labels),)
    if noise > FAILED:
        sentences += (
            f"the residuals are {noise:.3g} times the noise that was given: the fit failed, or the model lacks "
            "something, or the noise is larger",
        )
    for line in sentences:
        warnings.warn(line, UserWarning, stacklevel=3)
    covariance = max(1.0, noise) ** 2 * to_values @ found.covariance @ to_values.T
    values = np.asarray(problem.values(free))
    identified = (abs(to_values) > 0) @ ~found.identified == 0
    std = np.where(identified, np.sqrt(np.maximum(np.diag(covariance), 0)), np.inf)
    interval = np.stack([values - 1.96 * std, values + 1.96 * std], axis=1)
    best = history[int(np.nanargmin(history[:, -1]))]
    settled = len(best) < 2 or bool(best[-2] - best[-1] <= SETTLED * best[-1] or _is_perfect(problem, best[-1]))
    residual = np.where(known, simulated - problem.data.measured, np.nan) / problem.data.sigma
    starts = np.asarray(jax.vmap(problem.values)(first))
    return Fit(
        problem.labels, values, std, interval, covariance, problem.model(free), simulated, residual, history, starts,
        sentences, noise, identified, settled and noise <= FAILED, history.shape[1] - 1,
    )  # fmt: skip


def _is_perfect(problem: Problem, cost: float) -> bool:
    """Whether residuals are nothing against the variation of the measurements, so that iterations improve rounding."""
    measured = problem.data.measured / problem.data.sigma
    varied = measured - np.nanmean(measured, axis=(0, 1))
    return bool(2 * cost <= PERFECT**2 * np.nansum(varied**2))
