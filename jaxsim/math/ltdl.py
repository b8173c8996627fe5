"""M = L' D L of many sparse matrices at once, L being unit lower triangular with the pattern of M.

For matrices of kinematic trees, where an entry (i, j) needs j to be an ancestor of i: eliminating the last row first
then has no fill-in (Featherstone, Rigid Body Dynamics Algorithms, 6.5). The method is a static sequence of operations
on single entries, each computed for a whole batch, which is the last axis here.
"""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.safe import Array, xp_of

_take = partial(lax.dynamic_index_in_dim, axis=0, keepdims=False, allow_negative_indices=False)
_put = partial(lax.dynamic_update_index_in_dim, axis=0, allow_negative_indices=False)


class Elimination(NamedTuple):
    """The entries below the diagonal, last row and last column first: their addresses, rows and columns.

    Entry e has the operations `first[e]` to `first[e + 1]`: each subtracts its multiplier times the entry at `source`
    from the entry at `target`. `diagonal` is the address of each row's entry on the diagonal.
    """

    place: np.ndarray
    row: np.ndarray
    col: np.ndarray
    diagonal: np.ndarray
    first: np.ndarray
    source: np.ndarray
    target: np.ndarray


def elimination(row: np.ndarray, col: np.ndarray) -> Elimination:
    """Return the elimination of lower triangles with these entries, row by row, each row's last on the diagonal.

    At least one entry must be below the diagonal.
    """
    below = np.flatnonzero(row > col)[::-1]
    begin = np.searchsorted(row, row[below])
    count = below - begin + 1  # each entry of a row pairs with itself and the earlier ones
    first = np.append(0, np.cumsum(count))
    source = np.arange(first[-1]) - np.repeat(first[:-1] - begin, count)
    key = row * (len(row) + 1) + col
    target = np.searchsorted(key, np.repeat(col[below], count) * (len(row) + 1) + col[source])
    tables = (below, row[below], col[below], np.flatnonzero(row == col), first, source, target)
    return Elimination(*(np.asarray(x, np.int32) for x in tables))


def operations(row: np.ndarray, col: np.ndarray) -> int:
    """Return the number of operations of `elimination`."""
    return int((np.arange(len(row)) - np.searchsorted(row, row) + 1)[row > col].sum())


def factor(t: Elimination, a: Array) -> Array:
    """Factor matrices a (entries, size): L below the diagonal and D on it.

    Entries after a pivot that is not positive are NaN.
    """

    def eliminate(i: Array, a: Array) -> Array:
        e, pivot = _at(t.place, i), _take(a, _at(t.diagonal, _at(t.row, i)))
        multiplier = _take(a, e) / jnp.where(pivot > 0, pivot, jnp.nan)

        def subtract(k: Array, a: Array) -> Array:
            target = _at(t.target, k)
            return _put(a, _take(a, target) - multiplier * _take(a, _at(t.source, k)), target)

        a = lax.fori_loop(_at(t.first, i), _at(t.first, i + 1), subtract, a)
        return _put(a, multiplier, e)

    return lax.fori_loop(0, len(t.place), eliminate, a)


def solve(t: Elimination, ld: Array, inverse: Array, x: Array) -> Array:
    """Solve for x (n, k, size), with `factor` and the inverse (n, size) of D."""
    count = len(t.place)
    up, down = (t.place, t.row, t.col), (t.place[::-1], t.col[::-1], t.row[::-1])
    sweeps = [np.concatenate(pair) for pair in zip(up, down, strict=True)]

    def sweep(second: Array, x: Array) -> Array:
        x = lax.fori_loop(second * count, (second + 1) * count, partial(_subtract, ld, *sweeps), x)
        return jnp.where(second == 0, x * inverse[:, None], x)

    return lax.fori_loop(0, 2, sweep, x)


def factor_and_solve(t: Elimination, a: Array, x: Array) -> Array:
    """Solve matrices a (entries, size) for x (n, size); NaN for matrices that are not positive."""
    entries = len(a)
    ld = factor(_with_column(t, entries), jnp.concatenate([a, x]))
    x = ld[entries:] * inverse(ld[t.diagonal])
    down = partial(_subtract, ld, t.place[::-1], t.col[::-1], t.row[::-1])
    return lax.fori_loop(0, len(t.place), down, x)


def _with_column(t: Elimination, entries: int) -> Elimination:
    """Return the elimination for matrices with one more column below their entries, the right-hand side of a system."""
    end = t.first[1:]
    source = np.insert(t.source, end, entries + t.row)
    target = np.insert(t.target, end, entries + t.col)
    return t._replace(first=t.first + np.arange(len(t.first), dtype=np.int32), source=source, target=target)


def _subtract(ld: Array, place: np.ndarray, source: np.ndarray, target: np.ndarray, i: Array, x: Array) -> Array:
    to = _at(target, i)
    return _put(x, _take(x, to) - _take(ld, _at(place, i)) * _take(x, _at(source, i)), to)


def inverse(d: Array) -> Array:
    """Compute 1 / D, NaN where D is not positive."""
    xp = xp_of(d)
    return xp.where(d > 0, 1 / xp.where(d > 0, d, 1), np.nan)


def _at(table: np.ndarray, i: Array) -> Array:
    return _take(jnp.asarray(table), i)
