"""Inverse weights of bodies and edges from entries of the inverse of M; each depends on few dofs."""

import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.engine.structure import tables
from jaxsim.math.arrays import add_at, dot, is_numpy, take, take_or_zero
from jaxsim.math.safe import Array, xp_of

_PAIRS_AT_ONCE = 2_000_000
_DENSE = 8  # use dense products of a tree up to this multiple of the pairs of entries


def inverse_blocks(blocks: Array) -> Array:
    """Compute inverses of inertia matrices (k, n, n).

    On the host by elimination from the last dof on without pivoting: a matrix that is not positive definite gives, as
    in MuJoCo, the numbers of the elimination, including NaN. Rows and columns that a step does not change are skipped.
    """
    if not is_numpy(blocks):
        return xp_of(blocks).linalg.inv(blocks)
    a = blocks.copy()
    with np.errstate(all="ignore"):
        for j in reversed(range(a.shape[-1])):
            pivot, row = a[:, j, j].copy(), a[:, j].copy()
            column = a[:, :, j] / pivot[:, None]
            used = np.flatnonzero(np.any((column != 0) | (row != 0), axis=0))
            if 2 * len(used) < a.shape[-1]:
                a[:, used[:, None], used] -= column[:, used, None] * row[:, None, used]
            else:
                a -= column[:, :, None] * row[:, None, :]
            a[:, j], a[:, :, j], a[:, j, j] = row / pivot[:, None], column, -1 / pivot
    finite = np.isfinite(a).all((1, 2))
    np.negative(a, out=a)
    a[~finite] = np.nan
    return a


def substituted(m: Model, mass: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Compute the product of the inverse of M with x (nv, k) on the host, by M = L' D L and substitution.

    Entries that M does not store are not used: overflow gives infinity or NaN at the same places as in MuJoCo.
    """
    out = x.astype(float)
    with np.errstate(all="ignore"):
        for block in tables.inertia_blocks(m):
            for dofs, place in zip(block.dofs, block.lower, strict=True):
                out[dofs] = _substituted(take_or_zero(mass, place), place >= 0, out[dofs])
    return out


def _substituted(a: np.ndarray, stored: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Substitute for one tree: lower triangle of M (n, n), its stored entries, and x (n, k)."""
    above = [np.flatnonzero(stored[i, :i]) for i in range(len(a))]
    for i, up in reversed(list(enumerate(above))):
        factor = a[i, up] / a[i, i]
        for j, f in zip(up, factor, strict=True):
            here = np.append(above[j], j)
            a[j, here] -= f * a[i, here]
        x[up] -= np.where(x[i] != 0, factor[:, None] * x[i], 0)
        a[i, up] = factor
    x /= np.diagonal(a)[:, None]
    for i, up in enumerate(above):
        x[i] -= (a[i, up, None] * x[up]).sum(0)
    return x


@per_structure
def _places(m) -> tuple[np.ndarray, np.ndarray]:
    """Return the start of the row of each dof among all entries of all blocks, and the index of the dof in its tree."""
    begin, local, offset = np.zeros(m.nv, int), np.zeros(m.nv, int), 0
    for block in tables.inertia_blocks(m):
        trees, n = block.dofs.shape
        begin[block.dofs] = offset + n * np.arange(trees * n).reshape(trees, n)
        local[block.dofs] = np.arange(n)
        offset += trees * n * n
    return begin, local


def quadratic_forms(m: Model, inverses: list[Array], row: np.ndarray, dof: np.ndarray, value: Array, n: int) -> Array:
    """Compute x' inv(M) x for n sparse vectors x at once, (n, c).

    Args:
        inverses: inverses of the blocks of M.
        row, dof: (k,) static: the vector of an entry, in increasing order, and its dof; no pair occurs twice.
        value: (k, c) the entries, of c vectors with one pattern.
    """
    xp = xp_of(value, *inverses)
    count = np.bincount(row, minlength=n)
    if m.ntree == 1 and n * m.nv**2 <= _DENSE * np.sum(count.astype(float) ** 2):
        x = add_at(dof * n + row, value, m.nv * n).reshape(m.nv, -1)
        forms = xp.sum(x * dot(inverses[0][0], x), axis=0).reshape(n, -1)
        return xp.where(count[:, None] > 0, forms, 0)  # an inverse may be nan
    begin, local = _places(m)
    flats = [inverse.reshape(-1) for inverse in inverses]
    flat = flats[0] if len(flats) == 1 else xp.concatenate(flats)
    start = np.cumsum(count) - count
    out = xp.zeros((n, value.shape[-1]), value.dtype)
    for first, last in _chunks(count):
        some = np.arange(start[first], start[last - 1] + count[last - 1])
        left = np.repeat(some, count[row[some]])
        step = np.arange(len(left)) - np.repeat(np.cumsum(count[row[some]]) - count[row[some]], count[row[some]])
        right = start[row[left]] + step
        tied = m.dof_treeid[dof[left]] == m.dof_treeid[dof[right]]
        entry = take_or_zero(flat, np.where(tied, begin[dof[left]] + local[dof[right]], -1))
        out = out + add_at(row[left], entry[:, None] * take(value, left) * take(value, right), n)
    return out


def _chunks(count: np.ndarray) -> list[tuple[int, int]]:
    """Return runs of rows with a limited number of pairs of entries each."""
    total = np.cumsum(count.astype(np.int64) ** 2)
    if not len(total) or not total[-1]:
        return []
    cuts = np.unique(total // _PAIRS_AT_ONCE, return_index=True)[1]
    return list(zip(cuts, np.append(cuts[1:], len(count)), strict=True))
