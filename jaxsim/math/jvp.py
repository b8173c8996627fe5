"""Tangents in rules of `custom_jvp` with symbolic zeros (`symbolic_zeros=True`)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from jaxsim.math.safe import Array


def _is_zero(tangent: Any) -> bool:
    return isinstance(tangent, SymbolicZero) or getattr(tangent, "dtype", None) == jax.dtypes.float0


def all_zero(tangents: Any) -> bool:
    """Return whether all leaves of a PyTree of tangents are symbolic zeros, or empty."""
    return all(_is_zero(x) or not jnp.size(x) for x in jax.tree.leaves(tangents, is_leaf=_is_zero))


def sum_of_tangents(out: Array, *terms: tuple[Callable[[Any], Array], Any]) -> Array:
    """Compute the tangent of `out`: the sum of f(tangent) over the terms (f, tangent) with nonzero tangents.

    A tangent may be a PyTree, of which some leaves are zero; its f is made by `jvp_at`.
    """
    moving = [(f, t) for f, t in terms if not all_zero(t)]
    total = [f(t) for f, t in moving]
    return sum(total[1:], start=total[0]) if total else jnp.zeros_like(out)


def value_and_tangent(f: Callable[[Any], Any], x: Any, tangent: Any) -> tuple[Any, Any]:
    """Return `f` at the PyTree x, and its tangent for one of x, with leaves that may be symbolic zeros."""
    leaves, tree = jax.tree.flatten(x)
    moves = {i: t for i, t in enumerate(jax.tree.leaves(tangent, is_leaf=_is_zero)) if not _is_zero(t)}

    def of_moving(new: dict[int, Array]) -> Any:
        return f(tree.unflatten([new.get(i, leaf) for i, leaf in enumerate(leaves)]))

    return jax.jvp(of_moving, ({i: leaves[i] for i in moves},), (moves,))


def jvp_at(f: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """Return the derivative of `f` at the PyTree x: a function of a tangent, with leaves that may be symbolic zeros."""
    return lambda tangent: value_and_tangent(f, x, tangent)[1]


@jax.custom_jvp
def with_derivatives_of(twin: Any, value: Any) -> Any:
    """Give a constant PyTree `value` the derivatives of `twin`, of any order: other formulas for the same numbers."""
    return value


@with_derivatives_of.defjvp
def _with_derivatives_of_jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    return with_derivatives_of(*primals), tangents[0]


def product_by_parts(multiply: Callable[..., Array], by_parts: Callable[..., Array]) -> Callable[..., Array]:
    """Return `multiply(static, matrix, parts, x)`, differentiated by the parts of the matrix.

    `by_parts(static, parts, x)` is the same product, linear in x, from the factors of the matrix. Derivatives by the
    matrix itself are taken only where `parts` is None.
    """

    @partial(jax.custom_jvp, nondiff_argnums=(0,))
    def product(static: Any, matrix: Array, parts: Any, x: Array) -> Array:
        return multiply(static, matrix, parts, x)

    def rule(static: Any, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
        matrix, parts, x = primals
        out = product(static, matrix, parts, x)
        if parts is None:
            carried = (lambda t: multiply(static, t, None, x)), tangents[0]
        else:
            carried = jvp_at(lambda s: by_parts(static, s, x), parts), tangents[1]
        return out, sum_of_tangents(out, carried, (lambda t: product(static, matrix, parts, t), tangents[2]))

    product.defjvp(rule, symbolic_zeros=True)
    return product


# of (multiply, matrix, parts, x): multiply(matrix, x); `parts` is a PyTree with `times(x)`, the same product, or None
matrix_times = product_by_parts(lambda multiply, matrix, _, x: multiply(matrix, x), lambda _, parts, x: parts.times(x))
