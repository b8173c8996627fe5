"""Uncertainty of a fit: covariance by a rank-revealing factorisation, and parameters that the data do not determine."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxsim.core.describe import describe_struct

WEAK = 1e-3  # a singular value below it, relative to the largest, names a direction that the data hardly determine
DIFFERENCES = (0.003, 0.01)  # of a coordinate, steps of the differences that derivatives are compared with
DISAGREE = 0.5  # of the larger of the two, from which on a derivative and a difference disagree
ROUNDING = 1e3  # rounding errors by which residuals of a rollout may be off
TINY = 1e-300
SHARE = 0.1  # of a direction, from which on a parameter takes part in it


class Uncertainty(NamedTuple):
    """Covariance (p, p) of free coordinates within the determined directions, and which coordinates lie there (p,)."""

    covariance: np.ndarray
    identified: np.ndarray

    __repr__ = describe_struct


def uncertainty(jac: np.ndarray, rounding: float | None = None) -> Uncertainty:
    """Compute the uncertainty from the Jacobian (n, p) of residuals in units of the noise.

    A factor with the same inner products serves too. The columns are scaled to length one and factored (SVD).
    Directions with singular values within the rounding error of the Jacobian are not determined, and neither are
    coordinates with a component in them. `rounding` is that relative error; by default machine epsilon times the
    larger dimension.
    """
    rounding = float(np.finfo(jac.dtype).eps) * max(jac.shape) if rounding is None else rounding
    jac = np.asarray(jac, np.float64)
    size = np.linalg.norm(jac, axis=0)
    used = size > 0
    _, s, v = np.linalg.svd(jac / np.where(used, size, 1), full_matrices=False)
    determined = s > rounding * s.max(initial=0)
    inverse = (v[determined].T / s[determined]) / np.where(used, size, 1)[:, None]
    lost = np.sqrt(np.maximum(1 - (v[determined] ** 2).sum(0), 0))  # share of the undetermined directions
    return Uncertainty(inverse @ inverse.T, used & (lost < SHARE))


def unidentifiable(information: np.ndarray, labels: Sequence[str]) -> tuple[str, ...]:
    """Describe, in a sentence each, the directions that an information matrix J' J (p, p) does not determine."""
    size = np.sqrt(np.diag(information))
    lines = [f"{label} has no effect on the measurements" for label, s in zip(labels, size, strict=True) if s == 0]
    used = np.flatnonzero(size > 0)
    if len(used) < 2:
        return tuple(lines)
    scaled = information[np.ix_(used, used)] / np.outer(size[used], size[used])
    values, vectors = np.linalg.eigh(scaled)
    for value, v in zip(values, vectors.T, strict=True):
        if value < WEAK**2 * values[-1]:
            names = [f"{labels[int(used[i])]} ({v[i]:+.2f})" for i in np.argsort(-abs(v)) if abs(v[i]) > SHARE]
            lines.append(f"the data cannot tell apart: {', '.join(names)}")
    return tuple(lines)


def at_bounds(free: np.ndarray, low: np.ndarray, high: np.ndarray, jac: np.ndarray, labels: Sequence[str]) -> list[str]:
    """Describe, in a sentence each, coordinates at a bound at which their derivative is zero."""
    flat = ~np.any(jac, axis=0)
    return [
        f"{label} stands at its bound, where its derivative is zero: start it inside the bounds"
        for label, stuck in zip(labels, flat & ((free <= low) | (free >= high)), strict=True)
        if stuck
    ]


def rough(
    residuals: Callable[[np.ndarray], np.ndarray],
    free: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    jac: np.ndarray,
    std: np.ndarray,
    sizes: np.ndarray,
    labels: Sequence[str],
) -> list[str]:
    """Describe, in a sentence each, coordinates whose derivative disagrees with finite differences of the residuals.

    Central differences over a standard deviation and over `DIFFERENCES` of a coordinate are compared with the columns
    of the Jacobian. If an impact moves from one step to the next, the derivative does not contain the jump.

    Args:
        residuals: residuals (k, n) at points (k, p).
        free, low, high: coordinates (p,) and their bounds.
        jac: Jacobian (n, p) at `free`. std: standard deviations (p,) from it.
        sizes: scale (p,) of each coordinate's steps: its value, or 1 for a logarithm.
    """
    p = len(free)
    steps = np.stack([np.where(np.isfinite(std), std, 0), *(share * sizes for share in DIFFERENCES)])
    moves = (steps[:, :, None] * np.eye(p)).reshape(-1, p)
    above, below = np.clip(free + moves, low, high), np.clip(free - moves, low, high)
    values = np.asarray(residuals(np.concatenate([above, below])), np.float64)
    width = (above - below).sum(1)
    change = values[: len(moves)] - values[len(moves) :]
    size, column = (np.sqrt((x**2).sum(-1)) for x in (change, np.float64(jac.T)))
    said = width * np.tile(column, len(steps))
    cross = width * np.einsum("kpn,np->kp", change.reshape(-1, p, len(jac)), np.float64(jac)).ravel()
    off = np.sqrt(np.maximum(size**2 - 2 * cross + said**2, 0))
    noise = ROUNDING * np.finfo(jac.dtype).eps * np.sqrt((values**2).sum(1).max())
    lines = []
    for j in range(p):
        found = [_disagreement(float(size[i]), float(said[i]), float(off[i]), noise) for i in range(j, len(moves), p)]
        worst = int(np.argmax([max(ratio, 1 / ratio) for ratio in found]))
        if found[worst] != 1:
            lines.append(
                f"{labels[j]}: over {width[worst * p + j] / 2:.2g} to each side residuals change {found[worst]:.3g} "
                "times as much as their derivative says: do not trust value and interval. An impact or a stick-slip "
                "moves between time steps; fit from several starts, with a shorter time step, or with smoother contacts"
            )
    return lines


def _disagreement(size: float, said: float, off: float, noise: float) -> float:
    """Size of a change of residuals relative to what the derivative says, one where they agree.

    `off` is the length of their difference.
    """
    agree = not np.isfinite(off) or off <= max(DISAGREE * max(size, said), noise)
    ratio = max(size, TINY) / max(said, TINY)
    return 1.0 if agree else ratio if ratio != 1 else 1 + DISAGREE
