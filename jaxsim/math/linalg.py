"""Solves with a dense Cholesky factor."""

import jax

from jaxsim.math.safe import Array


def solve_factored(factor: Array, b: Array) -> Array:
    """Solve L L' x = b, `factor` being the lower Cholesky factor L (n, n) and b (n,) or (n, k)."""
    column = b[:, None] if b.ndim == 1 else b
    y = jax.lax.linalg.triangular_solve(factor, column, left_side=True, lower=True)
    x = jax.lax.linalg.triangular_solve(factor, y, left_side=True, lower=True, transpose_a=True)
    return x[:, 0] if b.ndim == 1 else x
