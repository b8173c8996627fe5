"""Arguments of the optimisers: starting points as floats, limits, and cached compiled functions."""

from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from jaxsim.core.model import Model
from jaxsim.math.safe import Array

SHARED_PROGRAMS = 16  # of functions that the user has compiled; each holds what the function closes over


def floats(x: Any) -> Any:
    """Convert a PyTree of numbers or arrays to arrays of floats, integers in the default precision."""

    def convert(leaf: Any) -> Array:
        array = jnp.asarray(leaf)
        return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(jnp.result_type(float))

    return jax.tree.map(convert, x)


def limits(low: Any, high: Any, x: Any, what: str) -> tuple[Any, Any]:
    """Lower and upper limits for every leaf of `x`, infinite where None.

    A limit is a number or an array for all leaves, or has the structure of `x`. Raises ValueError if a limit has
    another shape, or if a lower limit is above the upper one.
    """
    below, above = _limit("low", low, -np.inf, x, what), _limit("high", high, np.inf, x, what)
    for a, b in zip(jax.tree.leaves(below), jax.tree.leaves(above), strict=True):
        if bool((a > b).any()):
            raise ValueError(f"{what}: low is above high")
    return below, above


def control_limits(m: Model, low: Any, high: Any, row: Array, what: str) -> tuple[Array, Array]:
    """Return the limits of one row of controls; by default the ranges of the actuators that have one."""
    limited = np.asarray(m.actuator_ctrllimited, bool)
    own = [jnp.where(limited, m.actuator_ctrlrange[..., k], sign * np.inf) for k, sign in ((0, -1), (1, 1))]
    given = [own[k] if bound is None else bound for k, bound in enumerate((low, high))]
    if any(isinstance(x, jax.core.Tracer) for x in (*given, row)):
        return jnp.broadcast_to(given[0], row.shape), jnp.broadcast_to(given[1], row.shape)
    return limits(given[0], given[1], row, what)


def _limit(name: str, bound: Any, default: float, x: Any, what: str) -> Any:
    """NumPy arrays of the shapes of the leaves of `x`."""
    given = default if bound is None else bound
    structure = jax.tree.structure(x)
    if jax.tree.structure(given) != structure:
        if not isinstance(given, jax.Array) and np.asarray(given).dtype.kind not in "fiub":
            hint = "" if structure == jax.tree.structure(0) else f", or the structure of the start, {structure}"
            raise ValueError(f"{what}: {name} is a {type(given).__name__}, wanted a number or an array{hint}")
        given = jax.tree.map(lambda _: given, x)

    def fit(b: Any, v: Array) -> np.ndarray:
        try:
            return np.broadcast_to(np.asarray(b, v.dtype), v.shape)  # numbers also within a program
        except ValueError:
            raise ValueError(
                f"{what}: {name} has shape {np.shape(b)}, which does not fit the start's {v.shape}"
            ) from None

    return jax.tree.map(fit, given, x)


def is_compiled(function: Any) -> bool:
    """Return whether a function was made by `jax.jit`."""
    return hasattr(function, "lower") and hasattr(function, "__wrapped__")


def plain(function: Any) -> Any:
    """Return the original function of a jitted one: JAX refuses compiler options within a program."""
    return function.__wrapped__ if is_compiled(function) else function
