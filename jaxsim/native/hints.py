"""Properties of arrays that the caller knows and a native program uses. For XLA and derivatives they are identities."""

import jax

from jaxsim.math.safe import Array


@jax.jit
def symmetric_matrix(x: Array) -> Array:
    """Mark a matrix (n, n) as symmetric: a native program computes its lower triangle only and copies the rest."""
    return x
