"""Symmetric matrices on one core, by rows from their first nonzero entry to the diagonal, and their factors.

Elimination goes from the last row to the first, so that the matrices of trees do not fill (Featherstone, Rigid Body
Dynamics Algorithms, 6.5). Scalar functions of one world with loops of dynamic length.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.arrays import entry_at, with_entry
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat

MOST_PRODUCTS = np.int32(2**31 - 2**24)


class LowerRows(NamedTuple):
    """A symmetric matrix of `count` rows: of row i, `value[place[i] + j]` from column `first[i]` to the diagonal."""

    value: Array
    first: Array
    place: Array
    count: Array | int

    def times(self, x: Array) -> Array:
        """Compute the product with x, whose entries beyond `count` stay zero."""

        def row(i: Array, y: Array) -> Array:
            place, own = entry_at(self.place, i), entry_at(x, i)

            def add(j: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
                total, y = state
                value = entry_at(self.value, place + j)
                return total + value * entry_at(x, j), with_entry(y, j, entry_at(y, j) + value * own)

            start = entry_at(self.value, place + i) * own, y
            total, y = lax.fori_loop(entry_at(self.first, i), i, add, start)
            return with_entry(y, i, total)

        return repeat(self.count, row, jnp.zeros_like(x))

    def kept_from(self, row: Array, column: Array) -> "LowerRows":
        """Keep a row from `column` on, or from an earlier one; new entries are zero."""
        first, place, zero = entry_at(self.first, row), entry_at(self.place, row), jnp.zeros((), self.value.dtype)
        value = lax.fori_loop(column, first, lambda j, x: with_entry(x, place + j, zero), self.value)
        return self._replace(value=value, first=with_entry(self.first, row, jnp.minimum(first, column)))

    def with_diagonal(self, row: Array, value: Array) -> "LowerRows":
        """Replace a number of the diagonal."""
        return self._replace(value=with_entry(self.value, entry_at(self.place, row) + row, value))

    def diagonal(self, row: Array) -> Array:
        """Return a number of the diagonal."""
        return entry_at(self.value, entry_at(self.place, row) + row)

    def carry(self) -> tuple[Array, Array]:
        """Return what changes while the matrix is written."""
        return self.value, self.first

    def carried(self, state: tuple[Array, Array]) -> "LowerRows":
        """Return the matrix with what has changed."""
        return self._replace(value=state[0], first=state[1])


def repeat_on(h: LowerRows, count: Array | int, body: Any) -> LowerRows:
    """Repeat `h = body(i, h)` for i from 0 to `count` - 1."""
    return h.carried(repeat(count, lambda i, s: body(i, h.carried(s)).carry(), h.carry()))


def copied(a: LowerRows, place: Array, memory: Array) -> LowerRows:
    """Copy a matrix over the numbers of `memory`, with rows at another place."""

    def row(i: Array, x: Array) -> Array:
        old, new = entry_at(a.place, i), entry_at(place, i)
        copy = lambda j, x: with_entry(x, new + j, entry_at(a.value, old + j))  # noqa: E731
        return lax.fori_loop(entry_at(a.first, i), i + 1, copy, x)

    return LowerRows(repeat(a.count, row, memory), a.first, place, a.count)


def first_columns(matrix: Array) -> Array:
    """Return the column of the first nonzero entry of each row of a matrix (n, n), at most that of the diagonal."""

    def row(i: Array, first: Array) -> Array:
        j = lax.while_loop(lambda j: (j < i) & (entry_at(matrix, i, j) == 0), lambda j: j + 1, jnp.int32(0))
        return with_entry(first, i, j)

    return repeat(len(matrix), row, lax.empty((len(matrix),), jnp.int32))


class Factor(NamedTuple):
    """L' D L of a symmetric matrix: L with a unit diagonal, and 1 / D.

    `left` is below zero if elimination ended early, `positive` whether all of D is positive.
    """

    lower: LowerRows
    inverse: Array
    left: Array
    positive: Array


def factorised(h: LowerRows, most: Array | np.int32 = MOST_PRODUCTS) -> Factor:
    """Factor a matrix as L' D L, in place, unless that takes more than `most` products; NaN if it is not positive."""

    def unfinished(state: tuple) -> Array:
        k, _, _, left, _ = state
        return (k >= 0) & (left >= 0)

    def pivot(state: tuple) -> tuple:
        k, carry, inverse, left, positive = state
        h_ = h.carried(carry)
        d, first, place = h_.diagonal(k), entry_at(h_.first, k), entry_at(h.place, k)
        over = jnp.where(d > 0, 1 / d, jnp.nan)

        def row(j: Array, state: tuple) -> tuple:
            value = entry_at(state[0][0], place + j)

            def eliminate(state: tuple) -> tuple:
                carry, left = state
                m, to = value * over, entry_at(h.place, j)
                kept = h.carried(carry).kept_from(j, first)
                take = lambda i, x: with_entry(x, to + i, entry_at(x, to + i) - m * entry_at(x, place + i))  # noqa: E731
                x = lax.fori_loop(first, j + 1, take, kept.value)
                return kept._replace(value=x).carry(), left - (j + 1 - first)

            return lax.cond(value != 0, eliminate, lambda state: state, state)

        (x, begin), left = lax.fori_loop(first, k, row, (carry, left))
        x = lax.fori_loop(first, k, lambda j, x: with_entry(x, place + j, entry_at(x, place + j) * over), x)
        return k - 1, (x, begin), with_entry(inverse, k, over), left, positive & jnp.isfinite(over)

    start = jnp.asarray(h.count - 1, jnp.int32), h.carry(), lax.empty(h.first.shape, h.value.dtype)
    start = *start, jnp.asarray(most, jnp.int32), jnp.bool_(True)
    _, carry, *rest = lax.while_loop(unfinished, pivot, start)
    return Factor(h.carried(carry), *rest)


def substituted(f: Factor, x: Array) -> Array:
    """Solve for b = `x`."""
    h, count = f.lower, f.lower.count

    def up(t: Array, x: Array) -> Array:
        k = count - 1 - t
        own, place = entry_at(x, k), entry_at(h.place, k)
        take = lambda j, x: with_entry(x, j, entry_at(x, j) - entry_at(h.value, place + j) * own)  # noqa: E731
        return lax.fori_loop(entry_at(h.first, k), k, take, x)

    def down(k: Array, x: Array) -> Array:
        place = entry_at(h.place, k)
        take = lambda j, total: total - entry_at(h.value, place + j) * entry_at(x, j)  # noqa: E731
        own = entry_at(x, k) * entry_at(f.inverse, k)
        return with_entry(x, k, lax.fori_loop(entry_at(h.first, k), k, take, own))

    return repeat(count, down, repeat(count, up, x))
