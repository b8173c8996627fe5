"""Progress bar of the optimisers, and their warnings."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from jaxsim.math.safe import Array
from jaxsim.optim.options import Iteration

FLAT = 2 / 3  # a derivative below this power of the rounding error, relative to what it is made of, is none
MOST_NAMED = 5


def negligible(dtype: Any) -> float:
    """Return the relative size below which a derivative is rounding error, 4e-11 in double and 2e-5 in single."""
    return float(jnp.finfo(dtype).eps) ** FLAT


def warn(text: str) -> None:
    """Warn at the line that calls this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, RuntimeWarning, stacklevel=level)


def warn_of_zero_gradient(what: str) -> None:
    """Warn that the gradient of the cost is zero at the start."""
    warn(
        f"{what}: the gradient of the cost is zero at the start, or no more than rounding, so nothing can be improved "
        "from here. Does the cost depend on what is optimised? Start elsewhere, or use contacts that act at a distance "
        "(jaxsim.optim)",
    )


def warn_of_bad_gradient(what: str, bad: Any, iterations: int) -> None:
    """Warn of entries of the gradient that were not finite, by name; `bad` counts the iterations for each."""
    names: list[str] = []
    for path, count in jax.tree_util.tree_flatten_with_path(bad)[0]:
        for index in np.argwhere(np.asarray(count)):
            entry = f"[{', '.join(map(str, index))}]" if len(index) else ""
            names.append(f"x{jax.tree_util.keystr(path)}{entry} ({int(np.asarray(count)[tuple(index)])})")
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    warn(
        f"{what}: the gradient was not finite, and taken as zero, for {', '.join(names[:MOST_NAMED])}{more} (of "
        f"{iterations} iterations). A root or a norm at zero? Add a small constant below it",
    )


def warn_of_bad_costs(what: str, nans: int, bad: int, total: int) -> None:
    """Warn where costs were NaN, or never finite."""
    if bad == total:
        text = "no cost was finite, and nothing was found: start elsewhere, or draw samples from further away (sigma)"
    elif nans:
        text = f"the cost was NaN for {nans} of {total} points; they count as the worst"
    else:
        return
    warn(f"{what}: {text}")


@contextmanager
def bar(total: int, what: str, show: bool) -> Iterator[Callable[..., None]]:
    """Open a context with a function to call with the cost after every iteration, and other numbers to show by name.

    Draws a bar if `show` is set.
    """
    if not show:
        yield lambda cost, **others: None
        return
    with tqdm(total=total, desc=what) as shown:

        def update(cost: Any, **others: float) -> None:
            shown.set_postfix({name: f"{float(x):.4g}" for name, x in {"cost": cost, **others}.items()}, refresh=False)
            shown.update()

        yield update


def is_flat(gradient: Any, cost: Array, x: Any) -> Array:
    """Return whether a gradient is zero or rounding error, for a change of each entry by max(|x|, 1)."""
    leaves = zip(jax.tree.leaves(gradient), jax.tree.leaves(x), strict=True)
    change = jnp.array([jnp.max(jnp.abs(g) * jnp.maximum(jnp.abs(v), 1), initial=0) for g, v in leaves])
    return jnp.max(change, initial=0) <= negligible(cost.dtype) * jnp.where(jnp.isfinite(cost), jnp.abs(cost), 0)


_LISTENERS: list[Callable[[Iteration], None]] = []


def _notify(iteration: Iteration) -> None:
    for listener in tuple(_LISTENERS):
        listener(iteration)


def report(watched: bool, number: Any, cost: Any, violation: Any, x: Any) -> None:
    """Report an iteration to the callbacks of `listen`, from within a program."""
    if watched:
        jax.debug.callback(_notify, Iteration(number, cost, violation, x), ordered=False)


@contextmanager
def listen(total: int, what: str, show: bool, callback: Callable[[Iteration], None] | None) -> Iterator[bool]:
    """Open a context in which programs report their iterations; yield whether there is a callback."""
    if not show and callback is None:
        yield False
        return
    with bar(total, what, show) as shown:

        def listener(iteration: Iteration) -> None:
            shown(iteration.cost)
            if callback is not None:
                callback(iteration)

        _LISTENERS.append(listener)
        try:
            yield True
            jax.effects_barrier()
        finally:
            _LISTENERS.remove(listener)


def is_traced(*trees: Any) -> bool:
    """Return whether any leaf is a tracer: the call is part of a larger program."""
    return any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(trees))
