"""Linear least squares in which initial states are eliminated window by window, by orthogonal factorisations.

The unknowns are a step of the parameters (p,), which affects all residuals, and steps of initial states (k, w, q). Each
of the latter affects only the residuals of its own window and the gap to the next window. Trajectories are batched, and
windows are eliminated one after the other: a square-root information filter, whose reverse pass gives the states.
"""

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

LEAST = 1e-12  # damping of what no residual depends on, relative to the largest column
BLOCK = 256  # rows of one factorisation, below which BLAS starts no threads: 8 ms for 160,000 rows by 11, for 66


class Step(NamedTuple):
    """Step (p,) of parameters and (k, w, q) of initial states, and the predicted decrease of the cost."""

    free: np.ndarray
    shift: np.ndarray
    expected: float


@dataclasses.dataclass(frozen=True)
class Linear:
    """Linearised residuals r + J d: rows of derivatives by initial states and by parameters, followed by r.

    `own` (k, w, s, q + p + 1) are those of windows, `edge` (k, w - 1, 2 nv, 2 q + p + 1) those of gaps, with the states
    of both windows, `prior` (k, w, q) the initial states themselves, and `shared` (s, p + 1) those without any.
    """

    own: np.ndarray | None
    edge: np.ndarray | None
    prior: np.ndarray
    shared: np.ndarray

    @staticmethod
    def joined(parts: "list[Linear]", priors: np.ndarray) -> "Linear":
        """Join the residuals of several chunks, and rows of priors of the parameters."""
        own = None if parts[0].own is None else np.concatenate([x.own for x in parts if x.own is not None])
        edge = None if parts[0].edge is None else np.concatenate([x.edge for x in parts if x.edge is not None])
        shared = _triangle(np.concatenate([*(x.shared for x in parts), priors]))
        return Linear(own, edge, np.concatenate([x.prior for x in parts]), shared)

    @property
    def parameters(self) -> int:
        """Number of parameters p."""
        return self.shared.shape[-1] - 1

    def _blocks(self) -> list[np.ndarray]:
        """All rows, by parameters and r: (s, p + 1) each."""
        n = self.parameters + 1
        found = [x[..., -n:].reshape(-1, n) for x in (self.own, self.edge) if x is not None]
        return [*found, self.shared]

    def gradient(self) -> np.ndarray:
        """Compute the derivative of the cost by the parameters (p,)."""
        return sum((rows[:, -1] @ rows[:, :-1] for rows in self._blocks()), np.zeros(self.parameters))

    def cost(self) -> float:
        """Compute half the sum of squares."""
        first = self.prior[:, :1] if self.edge is not None else self.prior
        return 0.5 * float(sum(rows[:, -1] @ rows[:, -1] for rows in self._blocks()) + (first**2).sum())

    @cached_property
    def scale(self) -> np.ndarray:
        """Lengths of the parameters' columns (p,)."""
        size = np.sqrt(sum((rows[:, :-1] ** 2).sum(0) for rows in self._blocks()))
        return np.maximum(size, 1e-6 * size.max(initial=0) + 1e-15)

    def marginal(self) -> np.ndarray:
        """Return rows (s, p + 1) of the parameters only, with the same least-squares solution."""
        return self.eliminated(0.0)[0]

    def step(self, damping: float, fixed: np.ndarray) -> Step:
        """Solve least squares with a `damping` of each unknown relative to its column; those `fixed` (p,) stay."""
        return self.steps([damping], fixed)[0]

    def steps(self, dampings: Sequence[float], fixed: np.ndarray) -> list[Step]:
        """Return the results of `step` for several dampings."""
        if self.own is None:
            return self._steps(np.array(dampings), fixed, self.shared, [])
        # one after the other: rows that recover states may be large
        return [self._steps(np.array([x]), fixed, *self.eliminated(x))[0] for x in dampings]

    def _steps(self, dampings: np.ndarray, fixed: np.ndarray, rows: np.ndarray, stored: list[np.ndarray]) -> list[Step]:
        """Steps by singular values of rows (s, p + 1) of the parameters only, and rows that recover states."""
        free, r = np.flatnonzero(~fixed), rows[:, -1]
        moves, expected = np.zeros((len(dampings), self.parameters)), np.full(len(dampings), np.nan)
        if np.isfinite(rows).all():
            scale = self.scale[free]
            u, s, v = np.linalg.svd(rows[:, free] / scale, full_matrices=False)
            along = r @ u
            share = along * s / (s**2 + dampings[:, None])
            moves[:, free] = -(share @ v) / scale
            rest = 0.0 if self.own is None else self.cost() - 0.5 * (r @ r)
            expected = np.maximum(0.0, rest + 0.5 * (share @ (s * along)))
        else:
            moves[:, free] = np.nan
        return [
            Step(move, self._substituted(stored, move), float(decrease))
            for move, decrease in zip(moves, expected, strict=True)
        ]

    def eliminated(self, damping: float) -> tuple[np.ndarray, list[np.ndarray]]:
        """Compute rows of the parameters only, and rows (k, q, .) of each window that recover its states."""
        own, edge = self.own, self.edge
        if own is None:
            return self.shared, []
        k, w, q = self.prior.shape
        p1 = self.parameters + 1
        rest, stored, carry = [self.shared], [], np.zeros((k, 0, q + p1))
        size = np.sqrt((own[..., :q] ** 2).sum(2))  # (k, w, q)
        size = np.maximum(size, 1.0 if edge is None else 1e-6 * size.max(initial=1.0))
        for i in range(w):
            rows = [carry, own[:, i]]
            if edge is None or i == 0:
                rows.append(np.concatenate(
                    [np.broadcast_to(np.eye(q), (k, q, q)), np.zeros((k, q, p1 - 1)), self.prior[:, i, :, None]], -1
                ))  # fmt: skip
            held = np.zeros((k, q, q + p1))
            held[:, np.arange(q), np.arange(q)] = np.sqrt(max(damping, LEAST)) * size[:, i]
            block = np.concatenate([*rows, held], 1)
            if edge is not None and i < w - 1:
                wide = np.concatenate([block[..., :q], np.zeros((*block.shape[:2], q)), block[..., q:]], -1)
                block = np.concatenate([wide, edge[:, i]], 1)
            factor = np.asarray(np.linalg.qr(block, mode="r"))
            stored.append(factor[:, :q])
            if edge is not None and i < w - 1:
                carry = factor[:, q:, q:]
            else:
                carry = np.zeros((k, 0, q + p1))
                rest.append(factor[:, q:, q:].reshape(-1, p1))
        return _triangle(np.concatenate(rest)), stored

    def _substituted(self, stored: list[np.ndarray], move: np.ndarray) -> np.ndarray:
        """Steps of the initial states (k, w, q) for a step of the parameters, from the last window to the first."""
        k, w, q = self.prior.shape
        shift = np.zeros((k, w, q))
        p1 = self.parameters + 1
        for i in reversed(range(len(stored))):
            rows = stored[i]
            right = rows[..., -1] + rows[..., -p1:-1] @ move
            if rows.shape[-1] > q + p1:
                right = right + (rows[..., q : 2 * q] @ shift[:, i + 1, :, None])[..., 0]
            shift[:, i] = -np.linalg.solve(rows[..., :q], right[..., None])[..., 0]
        return shift


def compressed(columns: np.ndarray, edge: np.ndarray | None, prior: np.ndarray, q: int) -> Linear:
    """Compress rows of windows (c, w, n, q + p + 1) to fewer rows with the same inner products."""
    width = columns.shape[-1] - q
    if not q:
        return Linear(None, None, prior, _triangle(columns.reshape(-1, width)))
    return Linear(_triangle(columns), edge, prior, np.zeros((0, width)))


def _triangle(rows: np.ndarray) -> np.ndarray:
    """At most as many rows (..., n, width) as columns, with the same inner products."""
    width, batch = rows.shape[-1], rows.shape[:-2]
    while 2 * width <= BLOCK < rows.shape[-2]:
        whole = rows.shape[-2] // BLOCK * BLOCK
        blocks = np.asarray(np.linalg.qr(rows[..., :whole, :].reshape(*batch, -1, BLOCK, width), mode="r"))
        rows = np.concatenate([blocks.reshape(*batch, -1, width), rows[..., whole:, :]], -2)
    return np.asarray(np.linalg.qr(rows, mode="r")) if rows.shape[-2] > width else rows
