"""Losses of residuals: squares, and robust losses with less weight on large residuals."""

import dataclasses
from typing import NamedTuple

import numpy as np

LOSSES = ("squares", "huber", "cauchy")


class Weighted(NamedTuple):
    """Residuals whose half squares are the loss, and their derivatives by the residuals."""

    value: np.ndarray
    derivative: np.ndarray


@dataclasses.dataclass(frozen=True)
class Loss:
    """Loss of a residual r in units of the noise, by its name.

    "squares": r^2 / 2. "huber": the same up to `scale`, linear beyond. "cauchy": scale^2 log(1 + (r / scale)^2) / 2,
    which gives outliers little weight.
    """

    name: str = "squares"
    scale: float = 1.5

    def __post_init__(self):
        if self.name not in LOSSES:
            raise ValueError(f"loss is {self.name!r}; expected one of {', '.join(LOSSES)}")
        if not self.scale > 0:
            raise ValueError(f"the scale of a loss is {self.scale:g}; it is positive, in units of the noise")

    def weighted(self, r: np.ndarray) -> Weighted:
        """Compute signed roots of twice the loss of residuals, and their derivatives."""
        if self.name == "squares":
            return Weighted(r, np.ones_like(r))
        size, s = np.abs(r), self.scale
        if self.name == "huber":
            far = np.maximum(size, s)
            root = np.sqrt(2 * s * far - s * s)
            return Weighted(np.where(size <= s, r, np.sign(r) * root), np.where(size <= s, 1.0, s / root))
        ratio = (r / s) ** 2
        root = s * np.sqrt(np.log1p(ratio))
        near = ratio < 1e-12
        derivative = size / (1 + ratio) / np.where(near, 1, root)
        return Weighted(np.sign(r) * root, np.where(near, 1.0, derivative))
