"""Progress bar of the optimisers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm


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
