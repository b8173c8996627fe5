"""What a caller knows of an array and a program can use. XLA and derivatives see the array itself."""

import jax

from jaxsim.math.safe import Array


@jax.jit
def symmetric_matrix(x: Array) -> Array:
    """Return a matrix (n, n) that is symmetric: a program computes its lower triangle alone, and copies the rest."""
    return x
