"""Gathers with static indices, sums into bins, and products in full precision; for NumPy and JAX alike.

Index arrays here are always NumPy: a gather that is an identity, a slice or a broadcast becomes one, and nothing is
checked at run time. Scatters are avoided: `merge` is a concatenation and a gather.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.safe import Array, short_sum, xp_of

DENSE_BINS = 1 << 14  # up to this many entries a sum into bins is a product with a 0/1 matrix


def is_numpy(*arrays: Array) -> bool:
    """Return whether all of these are NumPy arrays.

    The compiler runs stages on the host, in float64.
    """
    return xp_of(*arrays) is np


def dot(a: Array, b: Array) -> Array:
    """Compute the matrix product in full precision."""
    if is_numpy(a, b):
        return a @ b
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def dot_static(a: np.ndarray, x: Array) -> Array:
    """Compute the product of a constant matrix (m, k), in the dtype of `x`, with x (k, n)."""
    return dot(a.astype(x.dtype), x)


def sums(*terms: Array) -> tuple[Array, ...]:
    """Sum all entries of each of several arrays of one shape, in one pass over them; not differentiable."""
    zeros = (np.zeros((), terms[0].dtype),) * len(terms)
    axes = range(terms[0].ndim)
    return tuple(lax.reduce(terms, zeros, lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)), axes))


def einsum(spec: str, *args: Array) -> Array:
    """Compute an Einstein sum in full precision."""
    if is_numpy(*args):
        return np.einsum(spec, *args)
    return jnp.einsum(spec, *args, precision=lax.Precision.HIGHEST)


def take(x: Array, index: np.ndarray) -> Array:
    """Return `x[index]` along the first axis; `index` is static and every entry is in bounds."""
    index = np.asarray(index)
    if is_numpy(x):
        return x[index]
    flat = index.reshape(-1)
    n = len(flat)
    if n == 0:
        return jnp.zeros((*index.shape, *x.shape[1:]), x.dtype)
    step = np.diff(flat)
    if n == 1 or np.all(step == 1):
        out = x if n == x.shape[0] else lax.slice_in_dim(x, int(flat[0]), int(flat[-1]) + 1)
        return out if index.ndim == 1 else out.reshape(*index.shape, *x.shape[1:])
    if not step.any():
        return jnp.broadcast_to(lax.index_in_dim(x, int(flat[0]), keepdims=False), (*index.shape, *x.shape[1:]))
    unique = bool(np.all(step > 0)) or len(np.unique(flat)) == n
    return x.at[index.astype(np.int32)].get(
        mode="promise_in_bounds", unique_indices=unique, indices_are_sorted=bool(index.ndim == 1 and np.all(step >= 0))
    )


def gather(x: Array, index: Array) -> Array:
    """Return `x[index]` along the first axis for a traced index, every entry of which is in bounds."""
    if is_numpy(x, index):
        return x[index]
    return jnp.asarray(x).at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def row_at(x: Array, i: Array) -> Array:
    """Return `x[i]` for one traced index that is in bounds: a single load, without a test."""
    start = (jnp.asarray(i, jnp.int32),) + (np.int32(0),) * (x.ndim - 1)
    row = lax.dynamic_slice(x, start, (1, *x.shape[1:]), allow_negative_indices=False)
    return lax.squeeze(row, (0,))


def with_row(x: Array, i: Array, row: Array) -> Array:
    """Return `x` with `x[i]` replaced, for one index in bounds; within one kernel of a CPU in place."""
    start = (jnp.asarray(i, jnp.int32),) + (np.int32(0),) * (x.ndim - 1)
    row = lax.expand_dims(jnp.asarray(row, x.dtype), (0,))
    return lax.dynamic_update_slice(x, row, start, allow_negative_indices=False)


def entry_at(x: Array, *index: Array) -> Array:
    """Return `x[i, j, ...]` for traced indices in bounds: a single load, without a test."""
    n = len(index)
    rest = tuple(x.shape[n:])
    numbers = lax.GatherDimensionNumbers(tuple(range(len(rest))), tuple(range(n)), tuple(range(n)))
    return lax.gather(x, _place(index), numbers, (1,) * n + rest, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def with_entry(x: Array, i: Array, value: Array) -> Array:
    """Return `x` with `x[i]` replaced, as `with_row`, without a test."""
    numbers = lax.ScatterDimensionNumbers(tuple(range(x.ndim - 1)), (0,), (0,))
    value = jnp.broadcast_to(jnp.asarray(value, x.dtype), x.shape[1:])
    return lax.scatter(x, _place((i,)), value, numbers, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def _place(index: tuple[Array, ...]) -> Array:
    """Return indices as one array (n,)."""
    each = [lax.reshape(lax.convert_element_type(i, np.int32), (1,)) for i in index]
    return each[0] if len(each) == 1 else lax.concatenate(each, 0)


def gather_all(index: Array, *tables: Array) -> list[Array]:
    """Return `x[index]` of several arrays with as many rows each, by one gather of concatenated rows."""
    if is_numpy(index, *tables):
        return [x[index] for x in tables]
    rows = [jnp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))) for x in tables]
    ends = np.cumsum([x.shape[1] for x in rows])
    found = gather(jnp.concatenate(rows, axis=1), index)
    parts = [found[..., e - x.shape[1] : e] for x, e in zip(rows, ends, strict=True)]
    return [y.reshape(*index.shape, *x.shape[1:]) for x, y in zip(tables, parts, strict=True)]


def take_or_zero(x: Array, index: np.ndarray) -> Array:
    """Return `x[index]` along the first axis, zero where `index` is negative."""
    index = np.asarray(index)
    hole = index < 0
    if x.shape[0] == 0:
        return xp_of(x).zeros((*index.shape, *x.shape[1:]), x.dtype)
    if not hole.any():
        return take(x, index)
    keep = ~hole.reshape(hole.shape + (1,) * (x.ndim - 1))
    return xp_of(x).where(keep, take(x, np.where(hole, 0, index)), np.zeros((), x.dtype))


def assemble(parts: list[tuple[np.ndarray, Array]], n: int, like: Array) -> Array:
    """Assemble `n` rows from parts (index, rows), each with the static positions of its rows; other rows are zero."""
    parts = [(np.asarray(index).reshape(-1), rows) for index, rows in parts if np.size(index)]
    xp = xp_of(like)
    if not parts:
        return xp.zeros(n, like.dtype)
    origin = np.full(n, -1)
    index = np.concatenate([index for index, _ in parts])
    origin[index] = np.arange(len(index))
    rows = [rows.reshape(len(index), *rows.shape[np.ndim(index) :]) for index, rows in parts]
    return take_or_zero(xp.concatenate(rows) if len(rows) > 1 else rows[0], origin)


def merge(x: Array, index: np.ndarray, new: Array) -> Array:
    """Return `x` with the rows at the static, distinct `index` replaced by `new`."""
    index = np.asarray(index)
    if len(index) == 0:
        return x
    if len(index) == x.shape[0]:
        return take(new, np.argsort(index))
    source = np.arange(x.shape[0])
    source[index] = x.shape[0] + np.arange(len(index))
    return take(xp_of(x, new).concatenate([x, new]), source)


def add_at(index: np.ndarray, x: Array, n: int) -> Array:
    """Sum the rows of `x` (k, ...) into `n` bins; row i goes to bin `index[i]`, nowhere if that is negative."""
    index = np.asarray(index)
    k = len(index)
    if k == 0 or n == 0:
        return xp_of(x).zeros((n, *x.shape[1:]), x.dtype)
    if k == n and np.array_equal(index, np.arange(n)):
        return x
    if n * k <= DENSE_BINS and not is_numpy(x):  # on the host, infinity and NaN stay in their bin
        return dot_static(np.arange(n)[:, None] == index, x.reshape(k, -1)).reshape(n, *x.shape[1:])
    bins = np.where(index < 0, n, index)
    if is_numpy(x):
        out = np.zeros((n + 1, *x.shape[1:]), x.dtype)
        np.add.at(out, bins, x)
        return out[:n]
    return jax.ops.segment_sum(x, bins, n + 1)[:n]


def matvec(r: Array, v: Array) -> Array:
    """Compute the product of small matrices (..., i, j) and vectors (..., j), as a sum that XLA fuses."""
    return short_sum(r * v[..., None, :])


def matvec_t(r: Array, v: Array) -> Array:
    """Compute the product of the transposes of small matrices (..., j, i) and vectors (..., j)."""
    return short_sum(r * v[..., :, None], -2)


def matmul(a: Array, b: Array) -> Array:
    """Compute the product of small matrices (..., i, j) and (..., j, k), as a sum that XLA fuses."""
    return short_sum(a[..., :, :, None] * b[..., None, :, :], -2)


def matmul_t(a: Array, b: Array) -> Array:
    """Compute a.T @ b of matrices (n, 3, 3), as a sum that XLA fuses."""
    return (a[:, :, :, None] * b[:, :, None, :]).sum(axis=1)


def inner(a: Array, b: Array) -> Array:
    """Compute the inner product along the last axis."""
    return short_sum(a * b)
