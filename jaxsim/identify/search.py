"""Search without derivatives: CMA-ES (Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772).

Use it for costs with unreliable derivatives, such as errors of whole trajectories after several impacts. All candidates
of a generation are one batch.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxsim.core.describe import describe_struct
from jaxsim.optim.progress import bar


class Search(NamedTuple):
    """Result of `search`: the mean of the last generation, the best candidate, its cost, and the median of each."""

    mean: np.ndarray
    best: np.ndarray
    cost: float
    history: np.ndarray

    __repr__ = describe_struct


def search(
    costs: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    deviation: np.ndarray,
    *,
    iterations: int = 50,
    population: int | None = None,
    low: np.ndarray | float = -np.inf,
    high: np.ndarray | float = np.inf,
    seed: int = 0,
    seconds: float = np.inf,
    progress: bool = False,
) -> Search:
    """Minimise a function of n numbers by covariance matrix adaptation.

    Args:
        costs: costs (s,) of candidates (s, n). Costs that are not finite count as the worst.
        start: mean (n,) of the first candidates.
        deviation: their standard deviations (n,).
        population: candidates of a generation; by default 4 + 3 log n.
        low: lower bounds; candidates are clipped.
        high: upper bounds, likewise.
        seconds: processor time after which no further generation begins.

    `costs` may draw new noise at every call, the same for all candidates: the search then minimises an expectation. If
    costs are noisy, use the mean: the cost of the best candidate is biased low.
    """
    x, size = np.asarray(start, float), np.asarray(deviation, float)
    n, rng = len(x), np.random.default_rng(seed)
    count = population or 4 + int(3 * np.log(n))
    weights = np.log(count / 2 + 0.5) - np.log(np.arange(1, count // 2 + 1))
    weights /= weights.sum()
    effective = 1 / (weights**2).sum()
    c_path, c_sigma = (4 + effective / n) / (n + 4 + 2 * effective / n), (effective + 2) / (n + effective + 5)
    c_one = 2 / ((n + 1.3) ** 2 + effective)
    c_rank = min(1 - c_one, 2 * (effective - 2 + 1 / effective) / ((n + 2) ** 2 + effective))
    damping = 1 + 2 * max(0.0, np.sqrt((effective - 1) / (n + 1)) - 1) + c_sigma
    expected = np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))
    covariance, path, path_sigma, sigma = np.eye(n), np.zeros(n), np.zeros(n), 1.0
    best, cost, history, began = x, np.inf, [], time.process_time()
    with bar(iterations, "search", progress) as shown:
        for generation in range(iterations):
            if time.process_time() - began > seconds:
                break
            values, axes = np.linalg.eigh(covariance)
            lengths = np.sqrt(np.maximum(values, 1e-20))
            drawn = (rng.standard_normal((count, n)) * lengths) @ axes.T
            points = np.clip(x + size * sigma * drawn, low, high)
            found = np.asarray(costs(points), float)
            found = np.where(np.isfinite(found), found, np.inf)
            order = np.argsort(found)
            if found[order[0]] < cost:
                best, cost = points[order[0]].copy(), float(found[order[0]])
            moves = (points[order[: len(weights)]] - x) / (size * sigma)
            move = weights @ moves
            x = x + size * sigma * move
            path_sigma = (1 - c_sigma) * path_sigma + np.sqrt(c_sigma * (2 - c_sigma) * effective) * (
                axes @ ((axes.T @ move) / lengths)
            )
            length = np.linalg.norm(path_sigma) / np.sqrt(1 - (1 - c_sigma) ** (2 * (generation + 1)))
            steady = float(length / expected < 1.4 + 2 / (n + 1))
            path = (1 - c_path) * path + steady * np.sqrt(c_path * (2 - c_path) * effective) * move
            covariance = (
                (1 - c_one - c_rank) * covariance
                + c_one * (np.outer(path, path) + (1 - steady) * c_path * (2 - c_path) * covariance)
                + c_rank * (moves.T * weights) @ moves
            )
            sigma *= np.exp(c_sigma / damping * (np.linalg.norm(path_sigma) / expected - 1))
            history.append(float(np.median(found)))
            shown(found[order[0]])
    return Search(x, best, cost, np.array(history))
