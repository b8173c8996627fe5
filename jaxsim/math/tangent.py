"""Tangents in rules of `custom_jvp` that are told which of them are zero (`symbolic_zeros=True`)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from jaxsim.math.safe import Array


def _is_zero(tangent: Any) -> bool:
    return isinstance(tangent, SymbolicZero) or getattr(tangent, "dtype", None) == jax.dtypes.float0


def _written_out(tangent: Any) -> Any:
    if not isinstance(tangent, SymbolicZero):
        return tangent
    dtype = tangent.aval.dtype
    return np.zeros(tangent.shape, dtype) if dtype == jax.dtypes.float0 else jnp.zeros(tangent.shape, dtype)


def product_slope(out: Array, *terms: tuple[Callable[[Any], Array], Any]) -> Array:
    """The tangent of the product `out`: the sum of f(tangent) over the terms (f, tangent) whose tangents are not zero.

    A tangent may be a PyTree, of which some leaves are zero.
    """
    moving = [(f, t) for f, t in terms if not all(map(_is_zero, jax.tree.leaves(t, is_leaf=_is_zero)))]
    total = [f(jax.tree.map(_written_out, t, is_leaf=_is_zero)) for f, t in moving]
    return sum(total[1:], start=total[0]) if total else jnp.zeros_like(out)
