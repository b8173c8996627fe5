"""Progress bar of the optimisers, and their warning."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm


def warn_of_zero_gradient(what: str) -> None:
    """Warn that the cost does not change, to first order, with anything at the start."""
    warnings.warn(
        f"{what}: the gradient of the cost is exactly zero at the start, so nothing can be improved from here. Does "
        "the cost depend on what is optimised? Start elsewhere, or use contacts that act at a distance (jaxsim.optim)",
        RuntimeWarning,
        stacklevel=3,
    )


@contextmanager
def bar(total: int, what: str, show: bool) -> Iterator[Callable[[Any], None]]:
    """Context that gives a function to call with the cost after every iteration; draws a bar when `show` is set."""
    if not show:
        yield lambda cost: None
        return
    with tqdm(total=total, desc=what) as shown:

        def update(cost: Any) -> None:
            shown.set_postfix(cost=f"{float(cost):.4g}", refresh=False)
            shown.update()

        yield update
