"""Norms, divisions and roots that are finite in value and in derivative everywhere.

Each guards the *operand* with a `where`, never only the result: the derivative of the branch not taken is then finite,
so that a product with zero gives no NaN. Every function works on NumPy and on JAX arrays alike (`xp_of`).
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = Any  # NumPy or JAX array, tracer or number: most functions take all of them
SHORT = 4


_HOST = (np.ndarray, np.generic, float, int)


def xp_of(*arrays: Array) -> Any:
    """Return the namespace for these arrays: NumPy if all are NumPy arrays, else jax.numpy.

    The compiler runs stages on NumPy.
    """
    for a in arrays:  # a loop, since the compiler calls this some thousand times per model
        if not isinstance(a, _HOST):
            return jnp
    return np


def divide(x: Array, y: Array, default: float = 0.0) -> Array:
    """Compute x / y, and `default` with zero derivative where y is zero."""
    xp = xp_of(x, y)
    ok = y != 0
    return xp.where(ok, x / xp.where(ok, y, 1), default)


def sqrt(x: Array) -> Array:
    """Compute the square root; zero with zero derivative where x is not above 4e-40 (4e-24 in float32).

    The operand is bounded, not selected: XLA may compute `x` twice, rounded differently, so that a condition and the
    selected value may disagree.
    """
    xp = xp_of(x)
    least = 1e-20 if getattr(x, "dtype", np.float64) == np.float64 else 1e-12
    root = xp.sqrt(xp.maximum(x, least * least))
    return xp.where(root > 2 * least, root, 0)


def components(x: Array, axis: int) -> tuple[Array, ...]:
    """Return the slices of an array along an axis, without that axis.

    They are cut by one operation: its transpose is one concatenation, while that of separate slices is a sum of padded
    arrays.
    """
    n, axis = x.shape[axis], axis % x.ndim
    if isinstance(x, np.ndarray):
        return tuple(x.take(i, axis) for i in range(n))
    return tuple(lax.squeeze(part, (axis,)) for part in lax.split(x, (1,) * n, axis))


def short_sum(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    """Sum along an axis; up to SHORT entries are added explicitly, since a reduction is a kernel of its own."""
    n = x.shape[axis]
    if not 0 < n <= SHORT or isinstance(x, np.ndarray):
        return x.sum(axis, keepdims=keepdims)
    terms = lax.split(x, (1,) * n, axis % x.ndim)
    total = sum(terms[1:], start=terms[0])
    return total if keepdims else lax.squeeze(total, (axis,))


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _least(x: Array, axis: int, keepdims: bool) -> Array:
    return x.min(axis, keepdims=keepdims)


@_least.defjvp
def _least_jvp(axis: int, keepdims: bool, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    first = lax.broadcasted_iota(np.int32, x.shape, axis % x.ndim) == x.argmin(axis, keepdims=True).astype(np.int32)
    return _least(x, axis, keepdims), jnp.where(first, dx, 0).sum(axis, keepdims=keepdims)


def least(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    """Return the smallest entry along an axis, with the derivative of the first one.

    JAX finds the entries of a derivative by comparing them with the result. Where XLA computes an entry twice, rounded
    differently, none is equal, and the mean over no entries is NaN.
    """
    return x.min(axis, keepdims=keepdims) if isinstance(x, np.ndarray) else _least(x, axis, keepdims)


def greatest(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    """Return the largest entry along an axis, with the derivative of the first one (see `least`)."""
    return -least(-x, axis, keepdims)


def norm(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    """Compute the Euclidean norm along an axis, row by row; zero with zero derivative at zero."""
    return sqrt(short_sum(x * x, axis, keepdims))


def normalize(x: Array, default: Array | None = None, eps: float = 0.0) -> tuple[Array, Array]:
    """Return unit vectors along the last axis and their lengths; rows no longer than `eps` become `default` (zeros)."""
    xp = xp_of(x)
    length = norm(x, keepdims=True)
    ok = length > eps
    unit = x / xp.where(ok, length, 1)
    other = xp.zeros_like(x) if default is None else xp.broadcast_to(xp.asarray(default, dtype=x.dtype), x.shape)
    return xp.where(ok, unit, other), length[..., 0]


def arccos(x: Array) -> Array:
    """Compute the arc cosine of a number clipped to [-1, 1], with zero derivative at and beyond the ends."""
    xp = xp_of(x)
    inside = abs(x) < 1
    return xp.where(inside, xp.arccos(xp.where(inside, x, 0)), xp.where(x > 0, 0.0, np.pi))


def arctan2(y: Array, x: Array) -> Array:
    """Compute arctan2, zero with zero derivative at the origin."""
    xp = xp_of(x, y)
    ok = (x != 0) | (y != 0)
    return xp.where(ok, xp.arctan2(xp.where(ok, y, 0), xp.where(ok, x, 1)), 0)
