"""Stages `crb` and `factor_m`: the joint-space inertia matrix, its factor, products and solves with it.

`d.M` holds the lower triangle in MuJoCo's sparse form: entries (i, j) with dof j an ancestor of dof i. Trees do not
couple, so that factors and solves work on the dense blocks of the trees, trees of one size in one batched call.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import lax

from jaxsim.data import Data
from jaxsim.engine import inertia_slope, tables
from jaxsim.engine.tendon import tendon_armature
from jaxsim.math import linalg
from jaxsim.math.arrays import add_at, dot, einsum, inner, is_numpy, take, take_or_zero
from jaxsim.math.safe import Array, xp_of
from jaxsim.math.spatial import inertia_mul
from jaxsim.math.tree import subtree_sum
from jaxsim.model import Model

DENSE_PRODUCT = 8  # one product of all dofs with all, while no more than this times the entries that are kept


def crb(m: Model, d: Data) -> Data:
    """Composite inertias and the inertia matrix, `M` and `qM`, with the armature of dofs and actuators."""
    composite = subtree_sum(tables.tree(m), d.cinert) * _not_world(m.nbody, d.cinert)
    force = inertia_mul(take(composite, m.dof_bodyid), d.cdof)
    row, col = tables.inertia_pattern(m)
    if m.nv * m.nv <= DENSE_PRODUCT * m.nC:
        matrix = take(dot(force, d.cdof.T).reshape(-1), row * m.nv + col)
    else:
        matrix = inner(take(force, row), take(d.cdof, col))
    matrix = matrix + take_or_zero(inertia_slope.dof_armature(m), np.where(row == col, row, -1))
    tendon, a, b, k = tendon_pairs(m)
    if len(k):
        matrix = matrix + add_at(k, take(tendon_armature(m), tendon) * take(d.ten_J, a) * take(d.ten_J, b), m.nC)
    return d.replace(crb=composite, M=matrix, qM=take_or_zero(matrix, _legacy_order(m)))


def _not_world(n: int, like: Array) -> np.ndarray:
    return (np.arange(n) > 0).astype(like.dtype)[:, None]


@tables.per_structure
def _legacy_order(m) -> np.ndarray:
    source = np.full(m.nM, -1)
    source[m.mapM2M] = np.arange(m.nC)
    return source


@tables.per_structure
def tendon_pairs(m) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of entries of `ten_J` of one tendon whose dofs couple in M: tendon, both entries, entry of M."""
    row, col = tables.inertia_pattern(m)
    address = {(i, j): k for k, (i, j) in enumerate(zip(row.tolist(), col.tolist(), strict=True))}
    found = []
    for t in range(m.ntendon):
        entries = range(m.ten_J_rowadr[t], m.ten_J_rowadr[t] + m.ten_J_rownnz[t])
        for a in entries:
            for b in entries:
                k = address.get((int(m.ten_J_colind[a]), int(m.ten_J_colind[b])))
                if k is not None:
                    found.append((t, a, b, k))
    return tuple(np.array(found, dtype=int).reshape(-1, 4).T)


def factor_m(m: Model, d: Data) -> Data:
    """`qLD` and `qLDiagInv`: M = L' D L in the sparse form of `d.M`, L with a unit diagonal, D on the diagonal.

    `solve_m` differentiates the solution of M x = y, not the factorization, whose derivative nothing else asks for.
    """
    ld, inverse = factor(m, d.M)
    return d.replace(qLD=ld, qLDiagInv=inverse)


def factor(m: Model, matrix: Array) -> tuple[Array, Array]:
    """The sparse factor (nC,) and the inverse of its diagonal (nv,) of a matrix in the sparse form of `d.M`."""
    xp = xp_of(matrix)
    if not m.nv:
        return matrix, xp.zeros(0, matrix.dtype)
    # Cholesky runs from the first row down; eliminating the leaves first needs the reverse order
    blocks = [_cholesky(take_or_zero(matrix, b.full[:, ::-1, ::-1])) for b in tables.inertia_blocks(m)]
    flat = xp.concatenate([b.reshape(-1) for b in blocks])
    entry, diagonal = _reversed_pattern(m)
    root = take(flat, diagonal)
    d, inverse = root * root, 1 / (root * root)
    row, col = tables.inertia_pattern(m)
    below = take(flat, entry) * take(root * inverse, row)
    return xp.where(row == col, take(d, row), below), inverse


@tables.per_structure
def _reversed_pattern(m) -> tuple[np.ndarray, np.ndarray]:
    """Where entry (i, j) of the sparse factor and dof i's diagonal stand in the factors of the reversed blocks."""
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
    """Lower factors of symmetric blocks (k, n, n)."""
    if a.shape[-1] == 1:
        return xp_of(a).sqrt(a)
    return np.linalg.cholesky(a) if is_numpy(a) else linalg.cholesky(a)


def solve_blocks(m: Model, matrix: Array, x: Array) -> Array:
    """Solve with a positive matrix in the sparse form of `d.M` for x (nv,); nan in trees where it is not positive."""
    blocks = tables.inertia_blocks(m)
    out = [linalg.solve_positive(take_or_zero(matrix, b.full), take(x, b.dofs)).reshape(-1) for b in blocks]
    return take(jnp.concatenate(out), tables.dof_order(m))


def _solve_block(ld: Array, inverse: Array, x: Array) -> Array:
    """Solve with L' D L; `ld` (k, n, n) strictly lower triangular, `x` (k, n, cols)."""
    n = ld.shape[-1]
    if n == 1:
        return x * inverse[..., None]
    if is_numpy(ld, x):
        unit = ld + np.eye(n)
        return np.stack(
            [
                scipy.linalg.solve_triangular(
                    a, scipy.linalg.solve_triangular(a.T, b, unit_diagonal=True) * i[:, None], lower=True
                )
                for a, b, i in zip(unit, x, inverse, strict=True)
            ]
        )
    y = linalg.solve_triangular(ld, x, transpose_a=True, unit_diagonal=True)
    return linalg.solve_triangular(ld, y * inverse[..., None], unit_diagonal=True)


@tables.per_structure
def _strict_lower(m) -> tuple[np.ndarray, ...]:
    return tuple(np.where(np.eye(b.lower.shape[-1], dtype=bool), -1, b.lower) for b in tables.inertia_blocks(m))


def solve_ld(m: Model, ld: Array, inverse: Array, x: Array) -> Array:
    """Solve with a factor made by `factor`: x is (nv,) or (nv, k)."""
    if not m.nv:
        return x
    xp = xp_of(ld, x)
    columns = x.reshape(m.nv, -1)
    out = []
    for block, lower in zip(tables.inertia_blocks(m), _strict_lower(m), strict=True):
        part = _solve_block(take_or_zero(ld, lower), take(inverse, block.dofs), take(columns, block.dofs))
        out.append(part.reshape(-1, columns.shape[-1]))
    return take(xp.concatenate(out), tables.dof_order(m)).reshape(x.shape)


def solve_m(m: Model, d: Data, x: Array) -> Array:
    """Solve M y = x with the factor in `d`: x is (nv,) or (nv, k). Derivatives are those of the solution."""
    return solve_spd(m, d.M, d.qLD, d.qLDiagInv, x)


def solve_spd(m: Model, matrix: Array, ld: Array, inverse: Array, x: Array) -> Array:
    """Solve with a sparse matrix and its factor; differentiates the equation, never the factorization."""
    if is_numpy(ld, x):
        return solve_ld(m, ld, inverse, x)
    ld, inverse = lax.stop_gradient(ld), lax.stop_gradient(inverse)
    return lax.custom_linear_solve(
        lambda y: mul_sparse(m, matrix, y), x, lambda _, y: solve_ld(m, ld, inverse, y), symmetric=True
    )


def solve_positive(m: Model, matrix: Array, x: Array, source: inertia_slope.Source | None = None) -> Array:
    """Solve with a positive matrix in the form of `d.M`, for x (nv,); `source`, if given, is what derivatives go to."""
    if not m.nv:
        return x
    fixed = lax.stop_gradient(matrix)
    multiply = partial(mul_sparse, m.structure)
    return lax.custom_linear_solve(
        lambda y: inertia_slope.times(multiply, matrix, source, y),
        x,
        lambda _, y: solve_blocks(m, fixed, y),
        symmetric=True,
    )


def mul_sparse(m: Model, matrix: Array, x: Array) -> Array:
    """Product of a matrix in the sparse form of `d.M` with (nv,) or (nv, k)."""
    if not m.nv:
        return x
    xp = xp_of(matrix, x)
    columns = x.reshape(m.nv, -1)
    out = []
    for block in tables.inertia_blocks(m):
        a, b = take_or_zero(matrix, block.full), take(columns, block.dofs)
        product = dot(a[0], b[0]) if len(a) == 1 else einsum("kij,kjc->kic", a, b)
        out.append(product.reshape(-1, columns.shape[-1]))
    return take(xp.concatenate(out), tables.dof_order(m)).reshape(x.shape)


def mul_m(m: Model, d: Data, x: Array) -> Array:
    """Product M x for (nv,) or (nv, k)."""
    return mul_sparse(m, d.M, x)


def full_m(m: Model, d: Data) -> Array:
    """The inertia matrix, dense (nv, nv)."""
    return take_or_zero(d.M, _dense_pattern(m))


@tables.per_structure
def _dense_pattern(m) -> np.ndarray:
    row, col = tables.inertia_pattern(m)
    address = np.full((m.nv, m.nv), -1)
    address[row, col] = address[col, row] = np.arange(m.nC)
    return address
