"""Least squares on rollouts: Levenberg-Marquardt with exact Jacobians, several starts in a batch, identifiability."""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.describe import describe_struct
from jaxsim.core.model import Model
from jaxsim.identify.data import Recordings, sensor_sizes
from jaxsim.identify.loss import Loss
from jaxsim.identify.parameters import Parameter
from jaxsim.identify.plausible import suspicious
from jaxsim.identify.problem import TRIALS, Controller, Initial, Point, Problem
from jaxsim.identify.uncertainty import at_bounds, rough, uncertainty, unidentifiable
from jaxsim.identify.validation import Validation, validate
from jaxsim.identify.whiteness import coloured
from jaxsim.identify.windows import errors_grow, has_windows, linked, noise_scale, through_windows
from jaxsim.math.safe import Array
from jaxsim.optim.options import Shooting
from jaxsim.optim.progress import bar
from jaxsim.optim.shooting import shoot

HELD_OUT = 0.2  # of the trajectories, if that is one or more
HORIZONS = (60, 200, 600, 2000)  # steps of the first fits to a long record
LARGEST_PART = 0.7  # of the record that a first fit may have
NEAR = 1e-2  # relative improvement that ends a preliminary fit
LEAST = 1e-10  # relative improvement below which an iteration has found nothing
NEARLY = 0.05  # relative difference of an iteration's decrease from its prediction, below which the next is believed
SETTLED = 1e-6  # relative improvement of the last iteration below which a fit has converged
PERFECT = 1e-6  # of the variation of the measurements: residuals that leave nothing to improve
EXACT = 1e-9  # likewise, residuals at which iterations end
FIRST_SCALE = 5.0  # of a robust loss, after squares and before its own: at a bad start all residuals are outliers
ROUNDS = 8  # of estimates of the noise and fits with it
AGREE = 1e-3  # relative change of the noise at which its estimate ends
UNTESTED = "not validated: no recordings were held out (held_out=)"
FAILED = 3.0  # residuals so many times the noise that was given are no noise


@dataclasses.dataclass(frozen=True, repr=False)
class Fit:
    """Result of `identify`.

    `values` and their standard deviations `std` are in the order of `labels`; `interval` (n, 2) is that of 95 %.
    `m` is the model with the values. `residual` (k, n, ny) is simulated less measured, in units of the noise;
    `simulated` is in units of the sensors. `cost` (starts, iterations) is that of every start and iteration.
    `unidentifiable` has a sentence for each direction of the parameters that the data do not determine. `noise` is the
    standard deviation of the residuals divided by `sigma`: near 1 if model and noise are right. If it is above 1,
    intervals are widened by this factor. `identified` marks the values that the data determine: the others have an
    infinite `std`. `converged`: the cost no longer decreased, and `noise` is at most 3.
    `qpos` (k, w, nq) and `qvel` (k, w, nv) are the states in which the w windows of each trajectory begin. `validation`
    compares predictions of held-out records with the nominal model's. `problem` and `point` are the problem that was
    solved and its solution, with the standard deviations `sigma` (ny,) of the measurements' noise.
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
    qpos: np.ndarray
    qvel: np.ndarray
    validation: Validation | None
    problem: Problem
    point: Point
    sigma: np.ndarray

    __repr__ = describe_struct

    def interval_text(self, i: int) -> str:
        """Write the interval of value i as text, or that there is none."""
        low, high = self.interval[i]
        return f"[{low:.6g}, {high:.6g}]" if self.identified[i] else "not identified"

    def __str__(self) -> str:
        rows = zip(self.labels, self.values, strict=True)
        lines = [f"{label:40s} {v:12.6g}   {self.interval_text(i)}" for i, (label, v) in enumerate(rows)]
        state = "converged" if self.converged else "NOT converged"
        lines.append(f"{state} after {self.iterations} iterations; residuals {self.noise:.3g} times the given noise")
        held_out = [UNTESTED if self.validation is None else str(self.validation)]
        return "\n".join([*lines, *self.unidentifiable, *held_out])


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
    initial: Initial | None = None,
    window: int | None = None,
    continuity: Initial | None = None,
    loss: str | Loss = "squares",
    controller: Controller | None = None,
    held_out: Recordings | float | None = HELD_OUT,
    noise: str = "given",
    chunk: int | None = None,
    resume: str | Path | None = None,
    step: Callable = jaxsim.step,
    progress: bool = False,
) -> Fit:
    """Estimate parameters from recordings by maximum likelihood or, with priors, maximum a posteriori.

    Args:
        method: "lm": Levenberg-Marquardt with exact Jacobians by forward mode; "adam": optax on the same cost.
        iterations: maximum number of iterations.
        starts: number of starts in the batch: the first is the model's own numbers, the others are these times
            (1 + `spread` w), w normal. The best result is returned.
        horizons: numbers of first steps that are fitted one after the other, before the whole record. Over a long
            record a rollout with wrong parameters drifts away, and its derivatives are of little use. By default 60,
            200, 600 and 2000 steps, if shorter than 0.7 of the record; () fits the whole record at once, as windows do.
            Also by default, a record over which errors grow, or whose fit fails, is fitted by multiple shooting, if
            sensors measure all positions and neither `window`, `resume` nor method "adam" is given: in windows of 30
            steps whose gaps close step by step, then as a whole, if errors do not grow over it.
        initial: initial states are unknowns of every window, with these standard deviations about the measured ones.
        window: steps of the windows that trajectories are cut into. Each begins in the measured state of its row
            (`measured_states`, or the `states` of the recordings).
        continuity: standard deviations of a window's end from the start of the next: multiple shooting. Needs
            `initial`, which is then the prior of the first window only. None: windows are independent.
        loss: "squares", "huber" or "cauchy", or a `Loss` with its scale.
        controller: (data, row of recorded controls, values of `gain` parameters by name) -> ctrl (nu,), in the loop.
        held_out: recordings that are not fitted, to validate the fit with: `Fit.validation`. Or the share of the
            trajectories of `data` that are held out, evenly spread: by default a fifth, if there are five or more.
            None: nothing is held out.
        noise: "given": `sigma` of the recordings; "estimated": that of each sensor from the residuals, and fitted
            again until they agree. The result is `Fit.sigma`.
        chunk: trajectories that are simulated at a time; by default as many as fit into 256 MB.
        resume: file that stores the last iterate. A later call continues from it.

    Warns (UserWarning) when parameters have no effect on the data or cannot be told apart, and when windows had to keep
    gaps: then the model does not hold over the whole record.
    """
    if not isinstance(held_out, (Recordings, float, type(None))):
        raise TypeError(f"held_out is {held_out!r}; expected recordings, a share between 0 and 1, or None")
    data, others = _split(data, held_out) if isinstance(held_out, float) else (data, held_out)
    options = {"initial": initial, "window": window, "continuity": continuity, "controller": controller, "chunk": chunk}
    options["loss"] = Loss(loss) if isinstance(loss, str) else loss
    problem = Problem(m, data, parameters, step, **options)
    first = _starts(problem, starts, spread, seed)
    if method not in ("lm", "adam"):
        raise ValueError(f'method is {method!r}; expected "lm" or "adam"')
    if method == "adam" and (problem.shifts or problem.loss.name != "squares" or resume is not None):
        raise ValueError('method="adam" has no initial states, losses or resume: use "lm"')
    steps, can_cut = data.ctrl.shape[1], False
    if horizons is None:
        can_cut = window is None and method == "lm" and resume is None and has_windows(problem)
        horizons = [h for h in HORIZONS if h <= LARGEST_PART * steps] if window is None else []
    elif horizons and window is not None:
        raise ValueError("horizons and window exclude each other: windows are short already")
    if noise not in ("given", "estimated") or (noise == "estimated" and resume is not None):
        raise ValueError(f'noise is {noise!r}; expected "given" or, without resume, "estimated"')
    run = levenberg if method == "lm" else partial(_adam, learning_rate=learning_rate)
    point = problem.start(first)
    fresh = resume is None or not Path(resume).exists()
    parts = [problem.until(h) for h in horizons] if fresh else []
    if method == "lm":
        begin = parts[0] if parts else problem
        simulated = begin.linearised(point).simulated  # the first evaluation of the fit
        for line in suspicious(m, data.names, simulated, begin.measured, data.sigma, not problem.shifts):
            warnings.warn(line, UserWarning, stacklevel=2)
    near = partial(_preliminary, run, iterations=iterations, progress=progress)
    for part in parts:
        point, _ = near(part, point)
    point = _first_losses(near, problem, point, iterations) if fresh else point
    if method == "lm":
        exact = EXACT**2 * _variation(problem)
        run = partial(levenberg, resume=None if resume is None else Path(resume), enough=exact)
    gaps, notes = 0.0, ()
    failed = can_cut and errors_grow(problem, point)
    if not failed:
        point, history = run(problem, point, iterations, progress)
        failed = can_cut and _fails(problem, history)
    if failed:
        loosely = partial(levenberg, iterations=iterations, progress=progress, settled=NEAR)
        problem, point, gaps, notes = through_windows(problem, first, loosely)
        point, history = run(problem, point, iterations, progress)
    for _ in range(ROUNDS if noise == "estimated" else 0):
        before = problem.data.sigma
        sigma = _estimated_noise(problem, point, history)
        problem = problem.replace(data=dataclasses.replace(data, sigma=sigma))
        problem = linked(problem, gaps) if gaps else problem
        point, history = run(problem, point, iterations, progress)
        if np.allclose(problem.data.sigma, before, rtol=AGREE):
            break
    if noise == "estimated" and others is not None:
        others = dataclasses.replace(others, sigma=problem.data.sigma)
    best = int(np.nanargmin(history[:, -1]))
    return _summary(problem, Point(point.free[best], point.shift[best]), history, first, others, notes)


def _split(data: Recordings, share: float) -> tuple[Recordings, Recordings | None]:
    """Recordings to fit, and those to hold out, or None if there are too few trajectories."""
    if not 0 < share < 1:
        raise ValueError(f"held_out is {share:g}; expected recordings, a share between 0 and 1, or None")
    k = len(data.ctrl)
    marks = np.floor(share * np.arange(k + 1) + 1e-9)
    out = marks[1:] > marks[:-1]
    return (data.chosen(~out), data.chosen(out)) if out.any() else (data, None)


def _starts(problem: Problem, starts: int, spread: float, seed: int) -> np.ndarray:
    """Free coordinates (starts, p) of the starts."""
    first = np.asarray(problem.first)
    noise = np.zeros((starts, len(first)))
    if starts > 1:
        noise[1:] = jax.random.normal(jax.random.key(seed), noise.shape, first.dtype)[1:]
    return np.clip(first + spread * problem.scale * noise, problem.low, problem.high).astype(first.dtype)


def _fails(problem: Problem, history: np.ndarray) -> bool:
    """Return whether residuals are no noise."""
    noise = FAILED * noise_scale(problem.data)
    return bool(2 * np.nanmin(history[:, -1]) > noise**2 * problem.known.sum())


def _first_losses(near: Callable, problem: Problem, point: Point, iterations: int) -> Point:
    """Fit with squares and a wider loss, before a robust loss."""
    loss = problem.loss
    if loss.name != "squares":
        for first in (Loss(), dataclasses.replace(loss, scale=FIRST_SCALE * loss.scale)):
            point, _ = near(problem.replace(loss=first), point, iterations=max(1, iterations // 3))
    return point


def _preliminary(
    run: Callable, problem: Problem, point: Point, iterations: int, progress: bool
) -> tuple[Point, np.ndarray]:
    """Points and costs of a fit that only has to come near: to part of a record, or with another loss."""
    options = {"enough": 0.5 * problem.known.sum(), "settled": NEAR} if run is levenberg else {}
    return run(problem, point, iterations, progress, **options)


def levenberg(
    problem: Problem,
    first: Point,
    iterations: int,
    progress: bool,
    resume: Path | None = None,
    *,
    enough: float = 0.0,
    settled: float = 0.0,
) -> tuple[Point, np.ndarray]:
    """Run a batch of Levenberg-Marquardt iterations; return points (starts, .) and costs (starts, iterations + 1).

    Iterations end when every start has a cost of at most `enough`, or decreased by at most the share `settled`. With
    `settled`, whose fits are followed by others, a predicted cost is enough after an iteration that went as predicted.
    """
    point, damping, history, believed = first, np.full(len(first.free), 1e-2), [], False
    if resume is not None and resume.exists():
        point, damping, history = _load(resume, first, problem.fingerprint())
    costs = np.array([linear.cost() for linear in problem.linear(point)])
    history = history or [np.where(np.isfinite(costs), costs, np.inf)]
    low, high = np.asarray(problem.low), np.asarray(problem.high)
    count = max(1, int(problem.known.sum())) if progress else 1
    with bar(iterations, "identification", progress) as shown:
        for _ in range(iterations):
            before = point.free
            trials, expected, moves = damping[:, None] * TRIALS, np.zeros((len(damping), len(TRIALS))), []
            for i, linear in enumerate(problem.linear(point)):
                at, gradient = point.free[i], linear.gradient()
                fixed = ((at <= low) & (gradient > 0)) | ((at >= high) & (gradient < 0)) | (low == high)
                steps = linear.steps(trials[i], fixed)
                expected[i] = [s.expected for s in steps]
                moves += [(at + s.free, point.shift[i] + s.shift) for s in steps]
            free, shift = (np.stack(x) for x in zip(*moves, strict=True))
            tried = Point(np.clip(free, low, high).astype(point.free.dtype), shift.astype(point.shift.dtype))
            if believed and np.all(history[-1] - expected[:, 0] <= enough):
                point = Point(*(x[:: len(TRIALS)] for x in tried))
                break
            costs = problem.costs(tried).reshape(trials.shape)
            choice = np.argmin(costs, 1)
            row = np.arange(len(damping))
            better = costs[row, choice] < (1 - LEAST) * history[-1]
            picked = row * len(TRIALS) + choice
            point = Point(*(np.where(better.reshape(-1, *(1,) * (x.ndim - 1)), y[picked], x)
                            for x, y in zip(point, tried, strict=True)))  # fmt: skip
            damping = np.clip(np.where(better, trials[row, choice], 100 * damping), 1e-12, 1e12)
            history.append(np.minimum(history[-1], costs[row, choice]))
            at = int(np.nanargmin(history[-1]))
            length = float(np.linalg.norm(tried.free[picked[at]] - before[at])) if better[at] else 0.0
            shown(history[-1][at], residual=(2 * history[-1][at] / count) ** 0.5, step=length)
            if resume is not None:
                _save(resume, point, damping, history, problem.fingerprint())
            stalled = history[-2] - history[-1] <= LEAST * history[-1]
            if np.all(stalled & ((damping > 1e3) | (expected[:, 0] <= LEAST * history[-1]))):
                break
            change = history[-2] - history[-1]
            believed = bool(settled) and np.all(np.abs(change - expected[row, choice]) <= NEARLY * change)
            slow = better & (history[-2] - history[-1] <= settled * history[-1])
            if np.all(slow | (history[-1] <= enough)):
                break
    return point, np.stack(history, 1)


def _estimated_noise(problem: Problem, point: Point, history: np.ndarray) -> np.ndarray:
    """Standard deviations (ny,) of the residuals of each sensor at the best point, less what was fitted."""
    best = int(np.nanargmin(history[:, -1]))
    at = Point(point.free[best], point.shift[best]).repeated(len(TRIALS) * len(point.free))
    y = np.concatenate([y[0] for _, y, _ in problem.simulated(at)])
    known = problem.known
    r = np.where(known, y - np.where(known, problem.measured, 0), 0)
    count = known.sum((0, 1))
    states = point.shift[best] if problem.ends is None else point.shift[best, :, :1]  # the others follow
    unknowns = len(problem.first) + states.size
    names = np.repeat(np.arange(len(problem.data.names)), sensor_sizes(problem.m, problem.data.names))
    sums, counts = (np.bincount(names, x)[names] for x in ((r**2).sum((0, 1)), count))
    share = max(1e-3, 1 - unknowns / max(1, count.sum()))
    return np.maximum(np.sqrt(sums / np.maximum(1, counts) / share), 1e-9 * problem.data.sigma)


def _save(path: Path, point: Point, damping: np.ndarray, history: list[np.ndarray], fingerprint: str) -> None:
    """Write the state of a fit, whole or not at all."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        costs = np.stack(history)
        np.savez(file, free=point.free, shift=point.shift, damping=damping, history=costs, fingerprint=fingerprint)
    part.replace(path)


def _load(path: Path, first: Point, fingerprint: str) -> tuple[Point, np.ndarray, list[np.ndarray]]:
    """State of a fit. Raises ValueError where it is that of another."""
    try:
        kept = dict(np.load(path, allow_pickle=False))
        point = Point(kept["free"], kept["shift"])
    except (ValueError, EOFError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no iterate of a fit: {error}") from None
    if point.free.shape != first.free.shape or point.shift.shape != first.shift.shape:
        raise ValueError(f"{path} is of a fit with other parameters, starts or windows")
    if str(kept["fingerprint"]) != fingerprint:
        raise ValueError(f"{path} is of a fit to other recordings, or with another noise, loss or prior: remove it")
    return point, kept["damping"], list(kept["history"])


def _adam(
    problem: Problem, first: Point, iterations: int, progress: bool, learning_rate: float
) -> tuple[Point, np.ndarray]:
    """Points and costs (starts, iterations) by Adam, one start after the other."""
    cost, shift = problem.differentiable_cost(), jnp.asarray(first.shift[0])
    options, low, high = Shooting(iterations, learning_rate, clip=1e9), problem.low, problem.high
    of_free = lambda free: cost(free, shift)  # noqa: E731
    found = [shoot(of_free, jnp.asarray(x), options, low=low, high=high, progress=progress) for x in first.free]
    point = Point(np.stack([np.asarray(f.x) for f in found]), first.shift)
    return point, np.stack([np.minimum.accumulate(f.history[:-1]) for f in found])


def _summary(
    problem: Problem,
    point: Point,
    history: np.ndarray,
    first: Array,
    held_out: Recordings | None,
    notes: tuple[str, ...],
) -> Fit:
    """Fit at the point found: intervals by the Cramer-Rao bound, and warnings, `notes` first."""
    free, labels, data = point.free, problem.labels, problem.data
    starts = len(first)  # the compiled programs are of so many points
    at = problem.linearised(point.repeated(starts))
    linear, y, jac = at.linears[0], at.simulated.astype(free.dtype), at.jacobian(len(free))
    marginal = linear.marginal()[:, :-1]
    known = problem.known
    low, high = np.asarray(problem.low), np.asarray(problem.high)
    sentences = (*notes, *at_bounds(free, low, high, marginal, labels))
    sentences += unidentifiable(marginal.T @ marginal, labels)
    found = uncertainty(marginal, float(np.finfo(free.dtype).eps) * max(int(known.sum()), len(free)))
    # every state has a row of its prior or of a gap, except those that continuity takes as measured
    held = 0 if problem.ends is None else point.shift[:, 1:, 0].size * (2 * problem.m.nv - problem.shifts)
    noise = float(np.sqrt(2 * linear.cost() / max(1, known.sum() - len(free) + held)))
    deviation = max(1.0, noise) * np.sqrt(np.diag(found.covariance))
    deviation = np.where(found.identified, deviation, np.inf)
    logs = np.repeat([p.log for p in problem.parameters], problem.sizes)
    values = np.asarray(problem.values(jnp.asarray(free)))
    to_values = np.where(logs, values, 1.0)
    sizes = np.where(logs, 1.0, np.abs(free))
    residuals = problem.sample(point, starts)
    residual = (np.where(known, y - problem.measured, np.nan) / data.sigma)[:, : data.ctrl.shape[1]]
    sentences += (
        *coloured(
            residual * data.sigma, y, data.names, sensor_sizes(problem.m, data.names), float(problem.m.opt.timestep)
        ),
    )
    sentences += (*rough(residuals, free, low, high, jac.astype(free.dtype), deviation, sizes, labels),)
    if noise > FAILED:
        sentences += (
            f"the residuals are {noise:.3g} times the noise that was given: the fit failed, or the model lacks "
            "something, or the noise is larger",
        )
    for line in sentences:
        warnings.warn(line, UserWarning, stacklevel=3)
    covariance = max(1.0, noise) ** 2 * found.covariance * np.outer(to_values, to_values)
    std = np.where(found.identified, np.sqrt(np.maximum(np.diag(covariance), 0)), np.inf)
    interval = np.stack([values - 1.96 * std, values + 1.96 * std], axis=1)
    best = history[int(np.nanargmin(history[:, -1]))]
    settled = len(best) < 2 or bool(
        best[-2] - best[-1] <= SETTLED * best[-1] or best[-1] <= PERFECT**2 * _variation(problem)
    )
    steps = data.ctrl.shape[1]
    qpos, qvel = (np.asarray(x) for x in problem.started(point.shift))
    validation = None if held_out is None else validate(problem, free, held_out)
    return Fit(
        labels, values, std, interval, covariance, problem.model(jnp.asarray(free)), y[:, :steps], residual, history,
        np.asarray(jax.vmap(problem.values)(first)), sentences, noise, found.identified, settled and noise <= FAILED,
        history.shape[1] - 1, qpos, qvel, validation, problem, point, data.sigma,
    )  # fmt: skip


def _variation(problem: Problem) -> float:
    """Cost of the mean of each sensor as its prediction."""
    measured = problem.data.measured / problem.data.sigma
    return 0.5 * float(np.nansum((measured - np.nanmean(measured, axis=(0, 1))) ** 2))
