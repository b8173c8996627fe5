"""Posterior of a fit's parameters: NUTS on the exact gradient, and profile likelihoods of one parameter."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.describe import describe_struct
from jaxsim.core.extras import require
from jaxsim.identify.fit import Fit, levenberg
from jaxsim.identify.problem import Point, Problem
from jaxsim.identify.uncertainty import uncertainty
from jaxsim.math.safe import Array
from jaxsim.optim.progress import bar

SCATTER = 1.5  # standard deviations of the chains' starts about the fit
ACCEPT = 0.8  # share of proposals that the step size aims at
NORMAL = 1.959964  # standard deviations of a 95 % interval
STEPS = (1.0, 2.0, 3.0, 4.5, 7.0)  # standard deviations to each side, until a profile has its interval


@dataclasses.dataclass(frozen=True, repr=False)
class Posterior:
    """Result of `posterior`.

    `draws` (chains, n, p) are values in the order of `labels`; `interval` (p, 2) has 95 % of them. `rhat` (p,) is the
    split potential scale reduction, near 1 where chains agree, `ess` (p,) the effective number of draws. `divergences`
    counts draws whose integration failed, `accepted` is the mean share of acceptance.
    """

    labels: tuple[str, ...]
    draws: np.ndarray
    interval: np.ndarray
    rhat: np.ndarray
    ess: np.ndarray
    divergences: int
    accepted: float

    __repr__ = describe_struct

    def __str__(self) -> str:
        values = self.draws.reshape(-1, len(self.labels))
        lines = [f"{'':40s} {'mean':>12s} {'std':>10s}   95 %"]
        for i, label in enumerate(self.labels):
            low, high = self.interval[i]
            lines.append(
                f"{label:40s} {values[:, i].mean():12.6g} {values[:, i].std():10.3g}   [{low:.6g}, {high:.6g}]"
                f"   R-hat {self.rhat[i]:.3f}, {self.ess[i]:.0f} effective draws"
            )
        return "\n".join([*lines, f"{self.divergences} divergences, acceptance {self.accepted:.2f}"])


def posterior(
    fit: Fit,
    *,
    chains: int = 4,
    draws: int = 500,
    warmup: int = 200,
    depth: int = 6,
    seed: int = 0,
    progress: bool = False,
) -> Posterior:
    """Draw from the posterior of a fit by the no-U-turn sampler, on the exact gradient; needs blackjax.

    The likelihood uses the noise of the fit (`fit.problem.data.sigma`). The prior is that of the parameters, and flat
    in a coordinate without a prior (in the logarithm with `log=True`). Unknown initial states are drawn too. Chains run
    in coordinates in which the fit's Laplace approximation is standard normal, and start around its mean. A trajectory
    doubles at most `depth` times: 2^depth - 1 gradients a draw. The bar shows the mean cost, draws and time left.

    Raises ValueError for a fit with another loss than squares, with continuity, or with parameters that are not
    determined; ImportError, which names the extra, where blackjax is missing.
    """
    blackjax = require("blackjax", "the posterior needs blackjax", "posterior")
    problem, cost = fit.problem, fit.problem.differentiable_cost()
    space = _Whitened(fit)
    low, high = problem.low, problem.high

    def log_density(z: Array) -> Array:
        free, shift = space.unwhitened(z)
        inside = jnp.all((free >= low) & (free <= high))
        return jnp.where(inside, -cost(free, shift), -jnp.inf)

    kernel = blackjax.nuts.build_kernel()

    def drawn(key: Array, state: Any, step: Array, inverse: Array) -> tuple:
        return kernel(key, state, log_density, step, inverse, depth)

    advance = jaxsim.jit(jax.vmap(drawn, (0, 0, None, None)))
    rng = np.random.default_rng(seed)
    begin = SCATTER * rng.standard_normal((chains, space.size))
    state = jaxsim.jit(jax.vmap(lambda z: blackjax.nuts.init(z, log_density)))(jnp.asarray(begin))
    step, inverse, found, divergences, accepted = _StepSize(1.0), np.ones(space.size), [], 0, []
    values = jaxsim.jit(jax.vmap(lambda z: problem.values(space.unwhitened(z)[0])))
    metric_from, metric_at = warmup // 4, (3 * warmup) // 4
    early = []
    with bar(warmup + draws, "posterior", progress) as shown:
        for i in range(warmup + draws):
            keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), i), chains)
            state, info = advance(keys, state, jnp.asarray(step.size(i < warmup)), jnp.asarray(inverse))
            rate = float(np.mean(np.nan_to_num(np.asarray(info.acceptance_rate))))
            shown(-float(np.mean(np.asarray(state.logdensity))))
            if i < warmup:
                step.update(rate)
                early += [np.asarray(state.position)] if i >= metric_from else []
                if i == metric_at:
                    inverse, step = np.concatenate(early).var(0), _StepSize(step.size(False))
            else:
                found.append(np.asarray(values(state.position)))
                divergences += int(np.sum(np.asarray(info.is_divergent)))
                accepted.append(rate)
    array = np.stack(found, 1)
    interval = np.quantile(array.reshape(-1, array.shape[-1]), [0.025, 0.975], axis=0).T
    rhat, ess = _diagnostics(array)
    return Posterior(fit.labels, array, interval, rhat, ess, divergences, float(np.mean(accepted)))


class _StepSize:
    """Step size by dual averaging (Hoffman and Gelman, "The No-U-Turn Sampler", JMLR 2014, algorithm 6)."""

    def __init__(self, first: float):
        self.middle, self.log, self.mean, self.error, self.count = np.log(2 * first), np.log(first), 0.0, 0.0, 0

    def update(self, accepted: float) -> None:
        self.count += 1
        share = 1 / (self.count + 10)
        self.error = (1 - share) * self.error + share * (ACCEPT - accepted)
        self.log = self.middle - np.sqrt(self.count) / 0.05 * self.error
        weight = self.count**-0.75
        self.mean = weight * self.log + (1 - weight) * self.mean

    def size(self, adapting: bool) -> float:
        return float(np.exp(self.log if adapting or not self.count else self.mean))


class _Whitened:
    """Coordinates in which the Laplace approximation of a fit is a standard normal distribution."""

    def __init__(self, fit: Fit):
        problem = fit.problem
        if problem.loss.name != "squares" or problem.ends is not None:
            raise ValueError(
                "a posterior needs the loss squares, and windows without continuity, as identify uses by itself for a "
                "record over which errors grow: horizons=() fits the whole record at once"
            )
        lost = [label for label, known in zip(fit.labels, fit.identified, strict=True) if not known]
        if lost:
            raise ValueError(f"the data do not determine {', '.join(lost)}: give priors, or leave them out")
        linear = problem.linear(fit.point.repeated(len(fit.starts)))[0]
        marginal, stored = linear.eliminated(0.0)
        self.free, self.shift = (jnp.asarray(x) for x in fit.point)
        self.factor = jnp.asarray(np.linalg.cholesky(uncertainty(marginal[:, :-1]).covariance))
        p, q = len(self.free), problem.shifts
        rows = np.stack([x[:, :q] for x in stored], 1) if q else np.zeros((*self.shift.shape[:2], 0, p + 1))
        self.own, self.by = jnp.asarray(rows[..., :q]), jnp.asarray(rows[..., q : q + p])
        self.size = p + self.shift.size

    def unwhitened(self, z: Array) -> tuple[Array, Array]:
        """Compute free coordinates (p,) and shifts (k, w, q) from whitened numbers."""
        p = len(self.free)
        move = self.factor @ z[:p]
        shift = self.shift
        if shift.size:
            right = z[p:].reshape(shift.shape) - self.by @ move
            shift = shift + jax.scipy.linalg.solve_triangular(self.own, right[..., None])[..., 0]
        return self.free + move, shift


def _diagnostics(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split R-hat and effective number of draws of (chains, n, p), from Geyer's initial positive pairs."""
    half = draws.shape[1] // 2
    x = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    within, between = x.var(1, ddof=1).mean(0), half * x.mean(1).var(0, ddof=1)
    total = (half - 1) / half * within + between / half
    rhat = np.sqrt(total / within)
    size = 1 << (2 * half - 1).bit_length()
    spectrum = np.fft.rfft(x - x.mean(1, keepdims=True), size, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :half].mean(0) / half
    rho = 1 - (within - covariance) / total
    pairs = rho[0 : half - half % 2 : 2] + rho[1:half:2]
    positive = np.cumprod(pairs > 0, 0)
    time = 2 * (np.minimum.accumulate(pairs, 0) * positive).sum(0) - 1
    return rhat, np.minimum(x.shape[0] * half / np.maximum(time, 1e-3), x.shape[0] * half * np.log10(len(x) * half))


@dataclasses.dataclass(frozen=True, repr=False)
class Profile:
    """Result of `profile`: `deviance` (n,) is twice the increase of the cost with a parameter fixed at `values`.

    All others are fitted again. `interval` (2,) is the 95 % interval by the deviance, infinite where the deviance does
    not reach its threshold. `laplace` (2,) is the interval of the fit.
    """

    label: str
    values: np.ndarray
    deviance: np.ndarray
    interval: np.ndarray
    laplace: np.ndarray

    __repr__ = describe_struct


def profile(fit: Fit, label: str, *, iterations: int = 10) -> Profile:
    """Compute a parameter's profile likelihood, whose interval need not be symmetric, by the fit's compiled programs.

    Raises KeyError for a label that the fit does not have, ValueError for one that the data do not determine.
    """
    if label not in fit.labels:
        raise KeyError(f"no parameter {label!r}; the fit has {', '.join(fit.labels)}")
    i = fit.labels.index(label)
    if not fit.identified[i]:
        raise ValueError(f"the data do not determine {label}")
    problem, starts = fit.problem, len(fit.starts)
    marginal = problem.linear(fit.point.repeated(starts))[0].marginal()[:, :-1]
    covariance = uncertainty(marginal).covariance
    wide = max(1.0, fit.noise)
    std = wide * np.sqrt(covariance[i, i])
    least = _cost(problem, fit.point, starts)
    low, high = float(problem.low[i]), float(problem.high[i])
    places, deviances = [float(fit.point.free[i])], [0.0]
    for side in (-1, 1):
        point = fit.point
        for count in STEPS:
            place = float(np.clip(fit.point.free[i] + side * count * std, low, high))
            move = (place - float(point.free[i])) * covariance[:, i] / covariance[i, i]
            point = _held(problem, Point(point.free + move, point.shift), i, place, starts, iterations)
            places.append(place)
            deviances.append(2 * (_cost(problem, point, starts) - least) / wide**2)
            if deviances[-1] > NORMAL**2 or place in (low, high):
                break
    order = np.argsort(places)
    at, deviance = np.array(places)[order], np.maximum(np.array(deviances)[order], 0)
    signed = np.sign(at - float(fit.point.free[i])) * np.sqrt(deviance)
    ends = [_crossing(at, signed, -NORMAL), _crossing(at, signed, NORMAL)]
    return Profile(label, _value(fit, i, at), deviance, _value(fit, i, np.array(ends)), fit.interval[i])


def _held(problem: Problem, point: Point, i: int, place: float, starts: int, iterations: int) -> Point:
    """Best point with coordinate i at a place."""
    part = problem.replace(low=problem.low.at[i].set(place), high=problem.high.at[i].set(place))
    free = np.array(point.free)
    free[i] = place
    points, history = levenberg(part, Point(free, point.shift).repeated(starts), iterations, False)
    best = int(np.nanargmin(history[:, -1]))
    return Point(points.free[best], points.shift[best])


def _cost(problem: Problem, point: Point, starts: int) -> float:
    return problem.linear(point.repeated(starts))[0].cost()


def _crossing(at: np.ndarray, signed: np.ndarray, level: float) -> float:
    """Place at which the signed root of the deviance has a level, infinite where it is not reached."""
    if not signed.min() <= level <= signed.max():
        return float(np.copysign(np.inf, level))
    return float(np.interp(level, np.maximum.accumulate(signed), at))


def _value(fit: Fit, i: int, free: np.ndarray) -> np.ndarray:
    """Values of coordinate i at free coordinates (n,)."""
    logs = np.repeat([p.log for p in fit.problem.parameters], fit.problem.sizes)
    return np.exp(free) if logs[i] else np.asarray(free)
