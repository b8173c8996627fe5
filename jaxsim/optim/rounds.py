"""Rules that end and regularise a search in rounds: each has a line search, an expansion, and a next step."""

from typing import Any

import jax.numpy as jnp

from jaxsim.math.safe import Array

LARGEST_WEIGHT = 1e8  # of the regularisation, at which the search ends
PROMISE = 1e-4  # of the cost, an improvement that derivatives promise and that is no rounding
STEP_LENGTHS = 8  # of a line search, each half the one before
SUFFICIENT = 0.5  # of the decrease that derivatives promise, with which a line search is content
LARGEST_PENALTY = 1e6  # of constraints
PENALTY_FACTOR = 10.0


def improves(s: Any, gain: Array, tolerance: Array) -> Array:
    """Return whether a round lowers the cost: by more than the tolerance where derivatives promise no more than that.

    A decrease within rounding would count as an iteration. `gain` is infinite in the first round; see `verdict`.
    """
    small = tolerance * jnp.abs(s.cost)
    is_noise = s.fresh & (s.promised <= small) & (gain <= small) & jnp.isfinite(gain)
    return (gain > 0) & ~is_noise


def verdict(s: Any, better: Array, gain: Array, cost: Array, tolerance: Array) -> tuple[Array, Array, Array]:
    """Return whether a round is the last, as one that finds a minimum or as one that gives up, and whether derivatives
    promise more than is found where it is.

    `s` is the state before the round: `cost`, `promised` decrease, `weight` of the regularisation, and whether the step
    is the first after an expansion (`fresh`). `gain` is the decrease to `cost`, if it is `better`.
    """
    small = tolerance * jnp.abs(cost)
    done = jnp.where(better, gain <= small, s.fresh & (s.promised <= small))
    gives_up = ~better & (s.weight > LARGEST_WEIGHT)
    more = s.promised > jnp.maximum(PROMISE * jnp.abs(s.cost), small / SUFFICIENT)
    return done, gives_up, (done | gives_up) & more


def next_weight(weight: Array, better: Array, first: Array, least: float) -> Array:
    """Return the weight of the regularisation after a round: less after a decrease, more where there was none."""
    return jnp.where(better & ~first, jnp.maximum(weight / 4, least), jnp.where(better, weight, weight * 4))


def is_over(count: Array, rounds: Array, iterations: int) -> Array:
    """Return whether all iterations, or all rounds that they may take, are used."""
    return (count >= iterations) | (rounds > 12 * iterations + 40)
