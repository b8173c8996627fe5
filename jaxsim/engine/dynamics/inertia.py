"""Stages `crb` and `factor_m`: the joint-space inertia matrix, its factor, products and solves with it.

`d.M` holds the lower triangle in MuJoCo's sparse form: entries (i, j) with dof j an ancestor of dof i.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure, structure_of
from jaxsim.engine.dynamics.factor import factor, solve_ld, solve_once, strict_lower
from jaxsim.engine.dynamics.inertia_jvp import InertiaParts, dof_armature
from jaxsim.engine.structure import tables
from jaxsim.engine.tendon.tendon import tendon_armature
from jaxsim.interface.public import public
from jaxsim.math.arrays import add_at, dot, einsum, inner, is_numpy, take, take_or_zero
from jaxsim.math.jvp import matrix_times
from jaxsim.math.safe import Array, xp_of
from jaxsim.math.spatial import inertia_mul
from jaxsim.math.tree import subtree_sum

DENSE_PRODUCT = 8  # use one dense product of all dofs up to this multiple of the kept entries


@public
def crb(m: Model, d: Data) -> Data:
    """Compute the composite inertias and the inertia matrix, `M` and `qM`, with the armature of dofs and actuators."""
    composite = subtree_sum(tables.tree(m), d.cinert) * _not_world(m.nbody, d.cinert)
    force = inertia_mul(take(composite, m.dof_bodyid), d.cdof)
    row, col = tables.inertia_pattern(m)
    if m.nv * m.nv <= DENSE_PRODUCT * m.nC:
        matrix = take(dot(force, d.cdof.T).reshape(-1), row * m.nv + col)
    else:
        matrix = inner(take(force, row), take(d.cdof, col))
    matrix = matrix + take_or_zero(dof_armature(m), np.where(row == col, row, -1))
    tendon, a, b, k = tendon_pairs(m)
    if len(k):
        matrix = matrix + add_at(k, take(tendon_armature(m), tendon) * take(d.ten_J, a) * take(d.ten_J, b), m.nC)
    return d.replace(crb=composite, M=matrix, qM=take_or_zero(matrix, _legacy_order(m)))


def _not_world(n: int, like: Array) -> np.ndarray:
    return (np.arange(n) > 0).astype(like.dtype)[:, None]


@per_structure
def _legacy_order(m) -> np.ndarray:
    source = np.full(m.nM, -1)
    source[m.mapM2M] = np.arange(m.nC)
    return source


@per_structure
def tendon_pairs(m) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return pairs of entries of `ten_J` of one tendon whose dofs couple in M: tendon, both entries, entry of M."""
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
    tendon, a, b, place = np.array(found, dtype=int).reshape(-1, 4).T
    return tendon, a, b, place


@public
def factor_m(m: Model, d: Data) -> Data:
    """Compute `qLD` and `qLDiagInv`: M = L' D L in the sparse form of `d.M`, L with a unit diagonal, D on the diagonal.

    `solve_m` differentiates the solution of M x = y, not the factorisation, whose derivative is used nowhere else.
    """
    ld, inverse = factor(m, d.M)
    return d.replace(qLD=ld, qLDiagInv=inverse)


@public
def solve_m(m: Model, d: Data, vec: Array) -> Array:
    """Solve M x = vec for vectors (..., nv), by the factor in `d`: mj_solveM.

    Derivatives are those of the solution, not of the factor.
    """
    return _by_columns(lambda x: solve_spd(m, d.M, d.qLD, d.qLDiagInv, x), vec)


def solve_spd(m: Any, matrix: Array, ld: Array, inverse: Array, x: Array, parts: InertiaParts | None = None) -> Array:
    """Solve with a sparse matrix and its factor; differentiates the equation, never the factorisation.

    `m` is a model or its structure. Derivatives by the matrix are those by its `parts`, if they are given; x is then
    (nv,).
    """
    if is_numpy(ld, x):
        return solve_ld(m, ld, inverse, x)
    ld, inverse = lax.stop_gradient(ld), lax.stop_gradient(inverse)
    return _differentiable(m, matrix, x, parts, lambda y: solve_ld(m, ld, inverse, y))


def solve_positive(m: Model, matrix: Array, x: Array, parts: Any = None) -> Array:
    """Solve with a positive matrix in the form of `d.M` for x (nv,); differentiated by its `parts`, if given."""
    fixed = lax.stop_gradient(matrix)
    return _differentiable(m, matrix, x, parts, lambda y: solve_once(m, fixed, y))


def _differentiable(m: Model, matrix: Array, x: Array, parts: Any, solve: Callable[[Array], Array]) -> Array:
    if not m.nv:
        return x
    multiply = partial(mul_sparse, structure_of(m))
    return lax.custom_linear_solve(
        lambda y: matrix_times(multiply, matrix, parts, y), x, lambda _, y: solve(y), symmetric=True
    )


def mul_sparse(m: Model, matrix: Array, x: Array) -> Array:
    """Compute the product of a matrix in the sparse form of `d.M` with x (nv,) or (nv, k)."""
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


@public
def mul_m(m: Model, d: Data, vec: Array) -> Array:
    """Compute the product of the inertia matrix with vectors (..., nv): mj_mulM."""
    return _by_columns(lambda x: mul_sparse(m, d.M, x), vec)


@public
def mul_m2(m: Model, d: Data, vec: Array) -> Array:
    """Compute the product of vectors (..., nv) with the root sqrt(D) L of M = L' D L: mj_mulM2."""

    def blocks(lower: Array, x: Array) -> Array:
        return x + einsum("kij,kjc->kic", lower, x)

    return _by_root(m, d, vec, blocks, 0.5)


@public
def solve_m2(m: Model, d: Data, vec: Array) -> Array:
    """Compute half of a solve, inverse(sqrt(D)) inverse(L') vec where M = L' D L, for vectors (..., nv).

    This is mj_solveM2.
    """

    def blocks(lower: Array, x: Array) -> Array:
        return lax.linalg.triangular_solve(lower, x, left_side=True, lower=True, transpose_a=True, unit_diagonal=True)

    return _by_root(m, d, vec, blocks, -0.5)


def _by_root(m: Model, d: Data, vec: Array, blocks: Callable[[Array, Array], Array], power: float) -> Array:
    """Apply `blocks(L, x)` on the trees' blocks of the factor L, then D to a power, to vectors (..., nv)."""
    if not m.nv:
        return vec
    ld, inverse = factor(m, d.M)  # recomputed, since the factor in `d` has no derivative

    def product(x: Array) -> Array:
        x = x.reshape(m.nv, -1)
        parts = [
            blocks(take_or_zero(ld, lower), take(x, block.dofs)).reshape(-1, x.shape[-1])
            for block, lower in zip(tables.inertia_blocks(m), strict_lower(m), strict=True)
        ]
        return take(jnp.concatenate(parts), tables.dof_order(m)) * inverse[:, None] ** -power

    return _by_columns(product, vec)


def _by_columns(function: Callable[[Array], Array], vec: Array) -> Array:
    """Apply a function of (nv,) or of columns (nv, k) to vectors (..., nv)."""
    vec = vec if isinstance(vec, np.ndarray) else jnp.asarray(vec)
    if vec.ndim == 1:
        return function(vec).reshape(vec.shape)
    return function(vec.reshape(-1, vec.shape[-1]).T).T.reshape(vec.shape)


@public
def full_m(m: Model, d: Data) -> Array:
    """Return the inertia matrix, dense (nv, nv): mj_fullM."""
    return take_or_zero(d.M, _dense_pattern(m))


@per_structure
def _dense_pattern(m) -> np.ndarray:
    row, col = tables.inertia_pattern(m)
    address = np.full((m.nv, m.nv), -1)
    address[row, col] = address[col, row] = np.arange(m.nC)
    return address
