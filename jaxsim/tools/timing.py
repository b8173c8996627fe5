"""Wall-clock time of compiled programs."""

import time
from collections.abc import Callable
from typing import Any

import jax

REPEATS = 3


def best_time(run: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Seconds of the fastest of `repeats` or more runs that last a second together; a first call is not counted."""
    jax.block_until_ready(run())
    times: list[float] = []
    while len(times) < repeats or sum(times) < 1:
        begin = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - begin)
    return min(times)
