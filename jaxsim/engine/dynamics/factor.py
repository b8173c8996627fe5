"""The factor of the inertia matrix, M = L' D L in the sparse form of `d.M`, and solves with it.

Trees are dense blocks, those of one size in one batched call.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.engine.structure import tables
from jaxsim.math.arrays import is_numpy, take, take_or_zero
from jaxsim.math.safe import Array, xp_of
from jaxsim.native import linalg

# Order of the rows and columns of blocks (k, n, n): elimination starts at the first row, and leaves that come first
# leave most zeros of a tree.
LEAVES_FIRST = np.s_[:, ::-1, ::-1]


def factor(m: Model, matrix: Array) -> tuple[Array, Array]:
    """Compute the sparse factor (nC,) and the inverse of its diagonal (nv,), NaN where the matrix is not positive."""
    ld = matrix if m.nC == m.nv else _factor(m, matrix)
    return ld, _inverse(take(ld, m.M_rowadr + m.M_rownnz - 1))


def solve_ld(m: Model, ld: Array, inverse: Array, x: Array) -> Array:
    """Solve with a factor made by `factor`: x is (nv,) or (nv, k)."""
    columns = x[:, None] if x.ndim == 1 else x
    if m.nC == m.nv:
        return (columns * inverse[:, None]).reshape(x.shape)
    out = []
    for block, lower in zip(tables.inertia_blocks(m), strict_lower(m), strict=True):
        part = _solve_block(take_or_zero(ld, lower), take(inverse, block.dofs), take(columns, block.dofs))
        out.append(part.reshape(-1, columns.shape[-1]))
    return take(xp_of(ld, x).concatenate(out), tables.dof_order(m)).reshape(x.shape)


def solve_once(m: Model, matrix: Array, x: Array) -> Array:
    """Solve with a positive matrix in the sparse form of `d.M` for x (nv,); NaN in trees where it is not positive."""
    if m.nC == m.nv:
        return x * _inverse(matrix)
    out = []
    for b in tables.inertia_blocks(m):
        found = linalg.solve_positive(take_or_zero(matrix, b.full[LEAVES_FIRST]), take(x, b.dofs[:, ::-1]))
        out.append(jnp.flip(found, 1).reshape(-1))
    return take(jnp.concatenate(out), tables.dof_order(m))


def _inverse(d: Array) -> Array:
    """Compute 1 / D, NaN where D is not positive."""
    xp = xp_of(d)
    return xp.where(d > 0, 1 / xp.where(d > 0, d, 1), np.nan)


def _factor(m: Model, matrix: Array) -> Array:
    xp = xp_of(matrix)
    blocks = [_cholesky(take_or_zero(matrix, b.full[LEAVES_FIRST])) for b in tables.inertia_blocks(m)]
    flat = xp.concatenate([b.reshape(-1) for b in blocks])
    entry, diagonal = _reversed_pattern(m)
    root = take(flat, diagonal)
    row, col = tables.inertia_pattern(m)
    return xp.where(row == col, take(root * root, row), take(flat, entry) * take(1 / root, row))


@per_structure
def _reversed_pattern(m) -> tuple[np.ndarray, np.ndarray]:
    """Return addresses in the factors of reversed blocks.

    They are those of entry (i, j) of the sparse factor, and of dof i's diagonal.
    """
    place = tables.pattern_in_blocks(m)
    offset, entry = 0, np.zeros(m.nC, int)
    for block in tables.inertia_blocks(m):
        k, n, _ = block.lower.shape
        mine = (place >= offset) & (place < offset + k * n * n)
        which, i, j = np.unravel_index(place[mine] - offset, (k, n, n))
        entry[mine] = offset + np.ravel_multi_index((which, n - 1 - j, n - 1 - i), (k, n, n))
        offset += k * n * n
    row, col = tables.inertia_pattern(m)
    return entry, entry[row == col]


def _cholesky(a: Array) -> Array:
    """Compute lower Cholesky factors of symmetric blocks (k, n, n)."""
    if a.shape[-1] == 1:
        return xp_of(a).sqrt(a)
    return np.linalg.cholesky(a) if is_numpy(a) else linalg.cholesky(a)


def _solve_block(ld: Array, inverse: Array, x: Array) -> Array:
    """Solve with L' D L; `ld` (k, n, n) strictly lower triangular, `x` (k, n, cols)."""
    n = ld.shape[-1]
    if n == 1:
        return x * inverse[..., None]
    if is_numpy(ld, x):
        from scipy.linalg import solve_triangular  # here: a tenth of the time to import jaxsim

        unit = ld + np.eye(n)
        return np.stack(
            [
                solve_triangular(a, solve_triangular(a.T, b, unit_diagonal=True) * i[:, None], lower=True)
                for a, b, i in zip(unit, x, inverse, strict=True)
            ]
        )
    return linalg.solve_ltdl(ld, inverse, x)


@per_structure
def strict_lower(m) -> tuple[np.ndarray, ...]:
    """Return the addresses (k, n, n) of the entries below the diagonal of each of `inertia_blocks`, -1 elsewhere."""
    return tuple(np.where(np.eye(b.lower.shape[-1], dtype=bool), -1, b.lower) for b in tables.inertia_blocks(m))
