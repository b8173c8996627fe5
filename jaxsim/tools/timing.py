"""Wall-clock time of compiled programs."""

import time
from collections.abc import Callable
from typing import Any

import jax

REPEATS = 3


def best_time(run: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Measure the seconds of the fastest of `repeats` or more runs that last a second together, after a first call."""
    jax.block_until_ready(run())
    times: list[float] = []
    while len(times) < repeats or sum(times) < 1:
        begin = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - begin)
    return min(times)
