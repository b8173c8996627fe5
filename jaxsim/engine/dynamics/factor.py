"""The factor of the inertia matrix, M = L' D L in the sparse form of `d.M`, and solves with it.

On a CPU the factorisation goes entry by entry, for all worlds of a batch at once. Elsewhere, and where the list of
entries would be too long, it uses the dense blocks of the trees, with trees of one size in one batched call.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure, structure_of
from jaxsim.engine.structure import tables
from jaxsim.math import ltdl
from jaxsim.math.arrays import is_numpy, take, take_or_zero
from jaxsim.math.safe import Array, xp_of
from jaxsim.native import linalg
from jaxsim.xla import batching
from jaxsim.xla.fusion import one_kernel

# Order of the rows and columns of blocks (k, n, n): elimination starts at the first row, and leaves that come first
# leave most zeros of a tree.
LEAVES_FIRST = np.s_[:, ::-1, ::-1]


def factor(m: Model, matrix: Array) -> tuple[Array, Array]:
    """Compute the sparse factor (nC,) and the inverse of its diagonal (nv,), NaN where the matrix is not positive."""
    if m.nC == m.nv:
        ld = matrix
    else:
        ld = _chosen(m, lambda t, a: ltdl.factor(t, a.T).T, factor_blocks)(matrix)
    return ld, ltdl.inverse(take(ld, m.M_rowadr + m.M_rownnz - 1))


def solve_ld(m: Model, ld: Array, inverse: Array, x: Array) -> Array:
    """Solve with a factor made by `factor`: x is (nv,) or (nv, k)."""
    columns = x[:, None] if x.ndim == 1 else x
    if m.nC == m.nv:
        return (columns * inverse[:, None]).reshape(x.shape)

    def entries(t: ltdl.Elimination, ld: Array, inverse: Array, x: Array) -> Array:
        return jnp.moveaxis(ltdl.solve(t, ld.T, inverse.T, jnp.moveaxis(x, 0, -1)), -1, 0)

    return _chosen(m, entries, _solve_ld_blocks)(ld, inverse, columns).reshape(x.shape)


def solve_once(m: Model, matrix: Array, x: Array) -> Array:
    """Solve with a positive matrix in the sparse form of `d.M` for x (nv,); NaN in trees where it is not positive."""
    if m.nC == m.nv:
        return x * ltdl.inverse(matrix)
    return _chosen(m, lambda t, a, x: ltdl.factor_and_solve(t, a.T, x.T).T, _solve_blocks)(matrix, x)


def _chosen(m: Model, on_entries: Callable[..., Array], on_blocks: Callable[..., Array]) -> Callable[..., Array]:
    """Call `on_blocks(m, ...)`, but on a CPU one kernel of `on_entries(elimination, ...)`, with batches as operands."""
    blocks, table = partial(on_blocks, structure_of(m)), tables.elimination(m)
    if table is None:
        return blocks
    kernel = one_kernel(partial(batching.in_parts, partial(on_entries, table), linalg.LANES))
    batch = batching.of_batches(jax.vmap(blocks), lambda _: kernel)

    def run(*operands: Array) -> Array:
        return blocks(*operands) if is_numpy(*operands) else batch(*[x[None] for x in operands])[0]

    return run


def factor_blocks(m: Model, matrix: Array) -> Array:
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


def _solve_blocks(m: Model, matrix: Array, x: Array) -> Array:
    out = []
    for b in tables.inertia_blocks(m):
        found = linalg.solve_positive(take_or_zero(matrix, b.full[LEAVES_FIRST]), take(x, b.dofs[:, ::-1]))
        out.append(jnp.flip(found, 1).reshape(-1))
    return take(jnp.concatenate(out), tables.dof_order(m))


def _solve_ld_blocks(m: Model, ld: Array, inverse: Array, x: Array) -> Array:
    out = []
    for block, lower in zip(tables.inertia_blocks(m), strict_lower(m), strict=True):
        part = _solve_block(take_or_zero(ld, lower), take(inverse, block.dofs), take(x, block.dofs))
        out.append(part.reshape(-1, x.shape[-1]))
    return take(xp_of(ld, x).concatenate(out), tables.dof_order(m))


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
