"""Cholesky factors and solves with them, of one matrix or of batches."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.arrays import inner
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, components
from jaxsim.native.matrices import of_matrices
from jaxsim.xla.batching import batch_max, in_parts, of_batches
from jaxsim.xla.fusion import one_kernel

# From this many operations on, jaxlib hands parts of a batch to other threads and waits for them: a program loses its
# caches, and when as many programs as XLA has threads wait, none goes on.
SHARED_WORK = 200_000

# On a CPU, batches of at least FEW matrices of at most LARGE rows are solved together, up to LANES at a time, in
# vector registers. LLVM unrolls loops of up to 32 short turns before it thinks of vectors.
FEW, LANES, LARGE = 33, 256, 64
RIDGES = 6  # tries of `solve_nearly_positive`; the last ridge of single precision is about 1e-2 for 50 rows


def cholesky(a: Array) -> Array:
    """Lower Cholesky factors of positive matrices (..., n, n), of which the lower triangle is read; nan for others."""
    n = a.shape[-1]
    plain = partial(lax.linalg.cholesky, symmetrize_input=False)
    factors = _by_one_thread(plain, factor_work(n), partial(of_matrices, "cholesky", plain))
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
    solved = of_batches(
        _solve_positive,
        lambda size: together if size >= FEW and n <= LARGE else by_library(size),
        partial(of_matrices, "solve_positive", _solve_positive),
    )
    return solved(a.reshape(-1, n, n), b.reshape(-1, n)).reshape(b.shape)


def solve_ltdl(ld: Array, inverse: Array, x: Array) -> Array:
    """Solve L' D L z = x for x (k, n, cols): L is strictly below the diagonal of `ld` (k, n, n), `inverse` (k, n)."""
    plain = _solve_ltdl
    return of_batches(plain, lambda _: plain, partial(of_matrices, "solve_ltdl", plain))(ld, inverse, x)


def _solve_ltdl(ld: Array, inverse: Array, x: Array) -> Array:
    y = solve_triangular(ld, x, transpose_a=True, unit_diagonal=True)
    return solve_triangular(ld, y * inverse[..., None], unit_diagonal=True)


def solve_nearly_positive(a: Array, b: Array) -> Array:
    """Solve a x = b as `solve_positive` does, for a (n, n) that rounding may have made indefinite; not differentiable.

    Where it has no Cholesky factor its diagonal grows by a small multiple of itself, a larger one at each try. The
    matrix of what is solved is positive, so that x remains a direction of descent.
    """
    n, eps = len(b), float(jnp.finfo(a.dtype).eps)

    def lacking(x: Array) -> Array:
        return ~jnp.all(jnp.isfinite(x))

    def unfinished(state: tuple[Array, Array]) -> Array:
        x, count = state
        return (batch_max(lacking(x).astype(jnp.int32)) > 0) & (count < RIDGES)

    def attempt(state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, count = state
        ridge = jnp.where(count == 0, 0, 2 * n * eps * 8.0 ** (count - 1)).astype(a.dtype)
        again = solve_positive(a + jnp.diag(ridge * jnp.diagonal(a)), b)
        return jnp.where(lacking(x), again, x), count + 1

    return lax.while_loop(unfinished, attempt, (jnp.full_like(b, jnp.nan), jnp.zeros((), jnp.int32)))[0]


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
    if n == 1:
        return b / a
    fixed = lax.stop_gradient(a)
    product = partial(jnp.matmul, a, precision=lax.Precision.HIGHEST)
    if n <= 3:
        solved, transposed = (partial(_by_determinants, x) for x in (fixed, jnp.swapaxes(fixed, -1, -2)))
        return lax.custom_linear_solve(product, b, lambda _, y: solved(y), lambda _, y: transposed(y))
    lu, _, order = [x.reshape(*a.shape[:-2], *x.shape[1:]) for x in _factors(fixed.reshape(-1, n, n))]

    def either(by_factors: Callable[..., Array], matrix: Array, y: Array) -> Array:
        """Solve by the factors; on a GPU one kernel factors and solves."""
        flat = [x.reshape(-1, *x.shape[a.ndim - 2 :]) for x in (lu, order, matrix, y)]
        at_once = lambda lu, order, matrix, y: of_matrices("solve_any", _solve_any, matrix, y)  # noqa: E731
        return of_batches(by_factors, lambda _: by_factors, at_once)(*flat).reshape(y.shape)

    solved = partial(either, lambda lu, order, _, y: _by_factors(lu, order, y), fixed)
    transposed = partial(either, lambda lu, order, _, y: _by_transposed(lu, order, y), jnp.swapaxes(fixed, -1, -2))
    return lax.custom_linear_solve(product, b, lambda _, y: solved(y), lambda _, y: transposed(y))


def _by_determinants(a: Array, b: Array) -> Array:
    """Solve a x = b for matrices of two or three rows by Cramer's rule: a few products, where a library is called."""
    rows, given = components(a, -2), components(b[..., None, :], -3)
    if len(rows) == 2:
        (p, q), (r, s) = (components(row, -1) for row in rows)
        minors = [jnp.stack(x, axis=-1) for x in ((s, -r), (-q, p))]
    else:
        minors = [cross(rows[(i + 1) % 3], rows[(i + 2) % 3]) for i in range(3)]
    total = sum(minor[..., None] * y for minor, y in zip(minors, given, strict=True))
    return total / inner(rows[0], minors[0])[..., None, None]


def _factors(a: Array) -> tuple[Array, Array, Array]:
    """LU factors of (k, n, n), pivots and order of rows."""
    return _by_one_thread(lax.linalg.lu, a.shape[-1] ** 3)(a)


def _solve_any(a: Array, y: Array) -> Array:
    lu, _, order = _factors(a)
    return _by_factors(lu, order, y)


def _by_factors(lu: Array, order: Array, y: Array) -> Array:
    y = solve_triangular(lu, jnp.take_along_axis(y, order[..., None], axis=-2), unit_diagonal=True)
    return solve_triangular(jnp.swapaxes(lu, -1, -2), y, transpose_a=True)  # its lower triangle is U'


def _by_transposed(lu: Array, order: Array, y: Array) -> Array:
    y = solve_triangular(lu, solve_triangular(jnp.swapaxes(lu, -1, -2), y), transpose_a=True, unit_diagonal=True)
    return jnp.take_along_axis(y, jnp.argsort(order, axis=-1)[..., None], axis=-2)


def eigh(a: Array) -> tuple[Array, Array]:
    """Compute eigenvalues (..., n), ascending, and vectors (..., n, n) of symmetric matrices from lower triangles."""
    n = a.shape[-1]
    decompose = partial(jnp.linalg.eigh, symmetrize_input=False)
    values, vectors = _by_one_thread(lambda x: tuple(decompose(x)), 5 * n**3)(a.reshape(-1, n, n))
    return values.reshape(a.shape[:-1]), vectors.reshape(a.shape)


def factor_work(n: int) -> int:
    """Count the operations of the Cholesky factor of an (n, n) matrix, as jaxlib does."""
    return n**3 // 3


def at_once(work: int) -> int:
    """Number of matrices of this size that jaxlib computes in the calling thread."""
    return max(1, (SHARED_WORK - 1) // max(1, work))


def _by_one_thread(
    function: Callable[..., Any], work: int, elsewhere: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """A function of batches (size, ...) that a CPU computes in parts, each too small to be shared among threads."""
    return of_batches(function, _in_shares(function, work), elsewhere)


def _in_shares(function: Callable[..., Any], work: int) -> Callable[[int], Callable[..., Any]]:
    limit = at_once(work)
    return lambda size: function if size <= limit else partial(in_parts, function, limit)
