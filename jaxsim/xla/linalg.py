"""Cholesky factors and solves with them, of one matrix or of batches."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.safe import Array
from jaxsim.xla.batching import in_parts, of_batches
from jaxsim.xla.fusion import one_kernel

# From this many operations on, jaxlib hands parts of a batch to other threads and waits for them: a program loses its
# caches, and when as many programs as XLA has threads wait, none goes on.
SHARED_WORK = 200_000

# On a CPU, batches of at least FEW matrices of at most LARGE rows are solved together, up to LANES at a time, in
# vector registers. LLVM unrolls loops of up to 32 short turns before it thinks of vectors.
FEW, LANES, LARGE = 33, 256, 64


def cholesky(a: Array) -> Array:
    """Lower Cholesky factors of positive matrices (..., n, n), of which the lower triangle is read; nan for others."""
    n = a.shape[-1]
    factors = _by_one_thread(partial(lax.linalg.cholesky, symmetrize_input=False), factor_work(n))
    return factors(a.reshape(-1, n, n)).reshape(a.shape)


def solve_triangular(a: Array, b: Array, **options: Any) -> Array:
    """Solve a x = b for b (..., n, k) with lower triangles a (..., n, n); options of `lax.linalg.triangular_solve`."""
    n, k = b.shape[-2:]
    solve = partial(lax.linalg.triangular_solve, left_side=True, lower=True, **options)
    return _by_one_thread(solve, n * n * k)(a.reshape(-1, n, n), b.reshape(-1, n, k)).reshape(b.shape)


def solve_factored(factor: Array, b: Array) -> Array:
    """Solve L L' x = b, `factor` being lower Cholesky factors L (..., n, n) and b (..., n) or (..., n, k)."""
    vector = b.ndim < factor.ndim
    column = b[..., None] if vector else b
    x = solve_triangular(factor, solve_triangular(factor, column), transpose_a=True)
    return x[..., 0] if vector else x


def solve_positive(a: Array, b: Array) -> Array:
    """Solve a x = b for positive matrices (..., n, n) and b (..., n); nan for others. Not differentiable."""
    n = a.shape[-1]
    if n == 1:
        return jnp.where(a[..., 0] > 0, b / a[..., 0], jnp.nan)
    together = one_kernel(partial(in_parts, _solve_in_lanes, LANES))
    by_library = _in_shares(_solve_positive, factor_work(n))
    solved = of_batches(_solve_positive, lambda size: together if size >= FEW and n <= LARGE else by_library(size))
    return solved(a.reshape(-1, n, n), b.reshape(-1, n)).reshape(b.shape)


def _solve_in_lanes(a: Array, b: Array) -> Array:
    """`solve_positive` of a batch (size, n, n) and (size, n) by column after column of all of its matrices together.

    Left-looking Cholesky (Golub and Van Loan, Matrix Computations, 4th ed., 4.2.5), the last axis being that of the
    batch; the forward substitution goes with it.
    """
    a, b = jnp.moveaxis(a, 0, -1), b.T
    n, rows = len(b), np.arange(len(b))[:, None]
    take, put = lax.dynamic_index_in_dim, lax.dynamic_update_index_in_dim

    def column(j: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        factor, inverse, x = state

        def subtract(k: Array, c: Array) -> Array:
            known = take(factor, k, keepdims=False)
            return c - known * take(known, j)

        c = lax.fori_loop(0, j, subtract, take(a, j, keepdims=False))
        pivot = take(c, j)
        scale = jnp.where(pivot > 0, 1 / jnp.sqrt(pivot), jnp.nan)  # nan is the answer; nothing differentiates it
        below = jnp.where(rows > j, c * scale, 0)
        found = take(x, j) * scale
        return put(factor, below, j, 0), put(inverse, scale, j, 0), jnp.where(rows == j, found, x - below * found)

    def back(i: Array, x: Array) -> Array:
        k = n - 1 - i
        found = take(x, k) * take(inverse, k)
        return jnp.where(rows == k, found, x - take(factor, k, axis=1, keepdims=False) * found)

    factor, inverse, x = lax.fori_loop(0, n, column, (jnp.zeros_like(a), jnp.zeros_like(b), b))
    return lax.fori_loop(0, n, back, x).T


def _solve_positive(a: Array, b: Array) -> Array:
    # LAPACK reads columns, and a symmetric matrix is its own transpose: so nothing has to be moved
    return solve_factored(cholesky(jnp.swapaxes(a, -1, -2)), b)


def solve(a: Array, b: Array) -> Array:
    """Solve a x = b for any matrices (..., n, n) and b (..., n, k); derivatives are those of the solution."""
    n = a.shape[-1]
    factors = _by_one_thread(lax.linalg.lu, n**3)
    lu, _, order = [x.reshape(*a.shape[:-2], *x.shape[1:]) for x in factors(lax.stop_gradient(a).reshape(-1, n, n))]
    upper = jnp.swapaxes(lu, -1, -2)  # its lower triangle is U'

    def solved(_: Any, y: Array) -> Array:
        y = solve_triangular(lu, jnp.take_along_axis(y, order[..., None], axis=-2), unit_diagonal=True)
        return solve_triangular(upper, y, transpose_a=True)

    def transposed(_: Any, y: Array) -> Array:
        y = solve_triangular(lu, solve_triangular(upper, y), transpose_a=True, unit_diagonal=True)
        return jnp.take_along_axis(y, jnp.argsort(order, axis=-1)[..., None], axis=-2)

    product = partial(jnp.matmul, a, precision=lax.Precision.HIGHEST)
    return lax.custom_linear_solve(product, b, solved, transposed)


def eigh(a: Array) -> tuple[Array, Array]:
    """Eigenvalues (..., n), ascending, and vectors (..., n, n) of symmetric matrices (lower triangles are read)."""
    n = a.shape[-1]
    decompose = partial(jnp.linalg.eigh, symmetrize_input=False)
    values, vectors = _by_one_thread(lambda x: tuple(decompose(x)), 5 * n**3)(a.reshape(-1, n, n))
    return values.reshape(a.shape[:-1]), vectors.reshape(a.shape)


def factor_work(n: int) -> int:
    """Operations of the Cholesky factor of an (n, n) matrix, as jaxlib counts them."""
    return n**3 // 3


def at_once(work: int) -> int:
    """How many matrices of so much work jaxlib computes in the thread that asks."""
    return max(1, (SHARED_WORK - 1) // max(1, work))


def _by_one_thread(function: Callable[..., Any], work: int) -> Callable[..., Any]:
    """A function of batches (size, ...) that a CPU computes in parts, each too small to be shared among threads."""
    return of_batches(function, _in_shares(function, work))


def _in_shares(function: Callable[..., Any], work: int) -> Callable[[int], Callable[..., Any]]:
    limit = at_once(work)
    return lambda size: function if size <= limit else partial(in_parts, function, limit)
