"""Arguments of the optimisers: starting points as floats, limits, and functions that are compiled once."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.math.safe import Array

SHARED_PROGRAMS = 16  # of functions that the user has compiled; each holds what the function closes over


def floats(x: Any) -> Any:
    """A PyTree of numbers or arrays as arrays of floats, integers in the default precision."""

    def convert(leaf: Any) -> Array:
        array = jnp.asarray(leaf)
        return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(jnp.result_type(float))

    return jax.tree.map(convert, x)


def limits(low: Any, high: Any, x: Any, what: str) -> tuple[Any, Any]:
    """Lower and upper limits for every leaf of `x`, infinite where None.

    A limit is a number or an array for all leaves, or has the structure of `x`. Raises ValueError where one does not
    fit, or where they leave nothing between them.
    """
    below, above = _limit("low", low, -np.inf, x, what), _limit("high", high, np.inf, x, what)
    for a, b in zip(jax.tree.leaves(below), jax.tree.leaves(above), strict=True):
        if bool((a > b).any()):
            raise ValueError(f"{what}: low is above high")
    return below, above


def _limit(name: str, bound: Any, default: float, x: Any, what: str) -> Any:
    """Arrays of the shapes of the leaves of `x`."""
    given = default if bound is None else bound
    structure = jax.tree.structure(x)
    if jax.tree.structure(given) != structure:
        if not isinstance(given, jax.Array) and np.asarray(given).dtype.kind not in "fiub":
            hint = "" if structure == jax.tree.structure(0) else f", or the structure of the start, {structure}"
            raise ValueError(f"{what}: {name} is a {type(given).__name__}, wanted a number or an array{hint}")
        given = jax.tree.map(lambda _: given, x)

    def fit(b: Any, v: Array) -> Array:
        try:
            return jnp.broadcast_to(jnp.asarray(b, v.dtype), v.shape)
        except ValueError:
            raise ValueError(
                f"{what}: {name} has shape {np.shape(b)}, which does not fit the start's {v.shape}"
            ) from None

    return jax.tree.map(fit, given, x)


def is_compiled(function: Any) -> bool:
    """Whether a function was made by `jax.jit`."""
    return hasattr(function, "lower") and hasattr(function, "__wrapped__")


def compiled(transform: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """`transform(function)` compiled: once in a process for a function that the user has compiled, else anew.

    A function that is not compiled is traced at every call, since what it closes over may have changed.
    """
    if is_compiled(function):
        return _shared(transform, function)
    return jaxsim.jit(transform(function))


@lru_cache(maxsize=SHARED_PROGRAMS)
def _shared(transform: Callable[..., Any], function: Any) -> Callable[..., Any]:
    return jaxsim.jit(transform(function.__wrapped__))  # JAX refuses compiler options within a program
