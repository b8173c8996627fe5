"""What the optimisers borrow: optax (an extra), and a progress bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def import_optax() -> Any:
    """The module optax; raises ImportError that names the extra when it is not installed."""
    try:
        import optax
    except ImportError:
        raise ImportError("this needs optax: pip install 'jaxsim-mjcf[optim]'") from None
    return optax


@contextmanager
def bar(total: int, what: str, show: bool) -> Iterator[Callable[[Any], None]]:
    """A function to call with the cost after every iteration; draws a bar when `show` is set."""
    if not show:
        yield lambda cost: None
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=what) as shown:

        def update(cost: Any) -> None:
            shown.set_postfix(cost=f"{float(cost):.4g}", refresh=False)
            shown.update()

        yield update
