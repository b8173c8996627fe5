"""How well a fit determines its parameters: covariance by a factorisation that sees rank, and what stays open."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxsim.core.describe import describe_struct

WEAK = 1e-3  # a singular value below it, relative to the largest, names a direction that the data hardly determine
SHARE = 0.1  # of a direction, from which on a parameter takes part in it


class Uncertainty(NamedTuple):
    """Covariance (p, p) of free coordinates within the determined directions, and which coordinates lie there (p,)."""

    covariance: np.ndarray
    identified: np.ndarray

    __repr__ = describe_struct


def uncertainty(jac: np.ndarray) -> Uncertainty:
    """From the Jacobian (n, p) of residuals in units of the noise.

    Its columns are scaled to length one and factored (SVD). Directions whose singular values are within the rounding of
    the Jacobian's own precision are not determined; nor are the coordinates that have a share in them.
    """
    rounding = float(np.finfo(jac.dtype).eps) * max(jac.shape)
    jac = np.asarray(jac, np.float64)
    size = np.linalg.norm(jac, axis=0)
    used = size > 0
    _, s, v = np.linalg.svd(jac / np.where(used, size, 1), full_matrices=False)
    determined = s > rounding * s.max(initial=0)
    inverse = (v[determined].T / s[determined]) / np.where(used, size, 1)[:, None]
    lost = np.sqrt(np.maximum(1 - (v[determined] ** 2).sum(0), 0))  # share of the undetermined directions
    return Uncertainty(inverse @ inverse.T, used & (lost < SHARE))


def unidentifiable(information: np.ndarray, labels: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each direction of the parameters that the information matrix J' J (p, p) does not determine."""
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
    """A sentence for each coordinate at a bound where the measurements do not change with it."""
    flat = ~np.any(jac, axis=0)
    return [
        f"{label} stands at its bound, where its derivative is zero: start it inside the bounds"
        for label, stuck in zip(labels, flat & ((free <= low) | (free >= high)), strict=True)
        if stuck
    ]
