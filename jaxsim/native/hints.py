"""Properties of arrays that the caller knows and a native program uses. For XLA and derivatives they are identities."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.math.safe import Array


@jax.jit
def symmetric_matrix(x: Array) -> Array:
    """Mark a matrix (n, n) as symmetric: a native program computes its lower triangle only and copies the rest."""
    return x


@jax.jit
def any_of_vector(test: Array) -> Array:
    """Return whether a test holds for any entry of the vector that a program computes at once; alone, the test itself.

    For loops and branches that all entries of a vector take together. Results may not depend on the other entries.
    """
    return test


def by_value(function: Callable[..., Any], key: Array, *operands: Any) -> Any:
    """Return `function(key, *operands)` for a key (int32), of which a vector of entries holds few different values.

    A program for vectors calls the function once for each value, which then is a number, and not a vector. Results of
    entries with a negative key mean nothing. `function` closes over no traced array.
    """

    def by_value(key: Array, *operands: Any) -> Any:
        return function(jnp.maximum(key, 0), *operands)

    return jax.jit(by_value)(key, *operands)
