"""Operators of large models: inertia by trees, rows by bodies and columns. No array has size nv x nv.

General rows hold values at static columns, contacts wrenches on their two bodies (`sparse_contact`). A solver needs
products with the Hessian M + J' s'' J, and its diagonal blocks, one for each tree.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.layout import Layout
from jaxsim.core.rows import limit_to_dof, rows_times, rows_transpose_times
from jaxsim.core.structure import structure_of
from jaxsim.engine.kinematics import sparse_contact
from jaxsim.engine.kinematics.sparse_contact import ContactOperator
from jaxsim.engine.structure import tables
from jaxsim.math.arrays import einsum, inner, take, take_or_zero
from jaxsim.math.bins import make_bins, sum_into
from jaxsim.math.safe import Array, components, short_sum
from jaxsim.native.linalg import cholesky, solve_triangular

SMALL = 3  # blocks up to this size use explicit formulas: particles have three dofs


@partial(jax.tree_util.register_dataclass, data_fields=["blocks"], meta_fields=["structure"])
@dataclasses.dataclass(frozen=True)
class TreeBlocks:
    """A matrix (nv, nv) that couples no trees: blocks (k, n, n) for each of `tables.inertia_blocks`."""

    blocks: tuple[Array, ...]
    structure: Any

    def times(self, x: Array, transpose: bool = False) -> Array:
        """Compute the product of the matrix, or of its transpose, with x (nv,)."""

        def product(a: Array, x: Array) -> Array:
            if a.shape[-1] <= SMALL:  # a sum that XLA fuses with its neighbours
                return short_sum(a * (x[:, :, None] if transpose else x[:, None]), 1 if transpose else 2)
            return einsum("kji,kj->ki" if transpose else "kij,kj->ki", a, x)

        parts = [
            product(a, take(x, block.dofs)).reshape(-1)
            for a, block in zip(self.blocks, tables.inertia_blocks(self.structure), strict=True)
        ]
        return take(jnp.concatenate(parts), tables.dof_order(self.structure))

    def lower_rows(self) -> tuple[Array, np.ndarray, np.ndarray]:
        """Return all entries concatenated, and two tables over dofs.

        For each dof these are the first dof of its tree, and the offset of its row, counted from column 0.
        """
        first, place = np.zeros((2, len(self.structure.dof_treeid)), int)
        offset = 0
        for block in tables.inertia_blocks(self.structure):
            k, n = block.dofs.shape
            first[block.dofs] = block.dofs[:, :1]
            place[block.dofs] = offset + n * np.arange(k * n).reshape(k, n) - block.dofs[:, :1]
            offset += k * n * n
        return jnp.concatenate([block.reshape(-1) for block in self.blocks]), first, place

    def inverse(self) -> "TreeBlocks | TreeRoots":
        """Return the inverse as an operator with `times`, for positive definite blocks."""
        if all(block.shape[-1] <= SMALL for block in self.blocks):
            return TreeBlocks(tuple(small_inverse(block) for block in self.blocks), self.structure)
        inverses = []
        for block in self.blocks:
            eye = jnp.broadcast_to(jnp.eye(block.shape[-1], dtype=block.dtype), block.shape)
            inverses.append(solve_triangular(cholesky(block), eye))
        return TreeRoots(TreeBlocks(tuple(inverses), self.structure))


@partial(jax.tree_util.register_dataclass, data_fields=["root"], meta_fields=[])
@dataclasses.dataclass(frozen=True)
class TreeRoots:
    """The inverse of a matrix that couples no trees, by the inverse `root` of L, where L L' is the matrix."""

    root: TreeBlocks

    def times(self, x: Array) -> Array:
        """Compute the product of the inverse with x (nv,)."""
        return self.root.times(self.root.times(x), transpose=True)


def small_inverse(a: Array) -> Array:
    """Invert positive definite matrices (k, n, n) with n up to SMALL by explicit formulas.

    Pivots lost to rounding are raised. The inverse stays positive definite: it is W' W, where W is the inverse of a
    Cholesky factor.
    """
    n = a.shape[-1]
    entry = [components(row, -1) for row in components(a, -2)]
    tiny = jnp.finfo(a.dtype).eps
    factor = [[None] * n for _ in range(n)]
    root = [[None] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = entry[i][j] - sum(factor[i][k] * factor[j][k] for k in range(j))
            if i == j:
                factor[i][i] = jnp.sqrt(jnp.maximum(rest, jnp.maximum(tiny * entry[i][i], jnp.finfo(a.dtype).tiny)))
            else:
                factor[i][j] = rest / factor[j][j]
    for i in range(n):
        root[i][i] = 1 / factor[i][i]
        for j in range(i):
            root[i][j] = -sum(factor[i][k] * root[k][j] for k in range(j, i)) / factor[i][i]
    rows = [[sum(root[k][i] * root[k][j] for k in range(max(i, j), n)) for j in range(n)] for i in range(n)]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def tree_blocks(m: Any, entries: Array) -> TreeBlocks:
    """Return the matrix with these entries (nC,), placed as in `d.M`."""
    return TreeBlocks(tuple(take_or_zero(entries, block.full) for block in tables.inertia_blocks(m)), structure_of(m))


@partial(jax.tree_util.register_dataclass, data_fields=["general", "contact", "friction"], meta_fields=["layout"])
@dataclasses.dataclass(frozen=True)
class BodyRows:
    """Constraint rows of a large model: general values (ngeneral, width) at `layout.columns`, contacts by wrenches."""

    layout: Layout
    general: Array
    contact: ContactOperator
    friction: Array  # (ncontact, 5)

    def times(self, x: Array) -> Array:
        """Compute J x for every slot (nslot,), x being (nv,)."""

        def general(x: Array) -> Array:
            return inner(self.general, take_or_zero(x, self.layout.columns))

        contact = partial(sparse_contact.times, self.layout, self.contact)
        return rows_times(self.layout, self.friction, x, general, contact)

    def transpose_times(self, force: Array) -> Array:
        """Compute J' f (nv,) for forces of every slot (nslot,)."""

        def general(force: Array) -> Array:
            values = (self.general * force[:, None]).reshape(-1)
            return sum_into(make_bins(self.layout.columns.reshape(-1), self.layout.nv), values)

        contact = partial(sparse_contact.transpose_times, self.layout, self.contact)
        return rows_transpose_times(self.layout, self.friction, force, general, contact)

    def chains(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the parent of each dof (nv,), and the last dof that moves each body (nbody,); -1 for none."""
        structure = self.layout.structure
        return np.asarray(structure.dof_parentid), sparse_contact.last_dof(structure)

    def tree_hessian(self, inertia: TreeBlocks, weight: Array, contact_blocks: Callable[[], Array]) -> TreeBlocks:
        """Compute the diagonal blocks of M + J' s'' J, one for each tree.

        Args:
            weight: s'' of the scalar slots (nslot,).
            contact_blocks: function that returns s'' of the contacts in their frames (ncontact, condim, condim).
        """
        layout, structure = self.layout, self.layout.structure
        _, friction, limit, contact, _ = layout.offsets
        diagonal = weight[friction:limit]
        if layout.nlimit:
            diagonal = diagonal + limit_to_dof(layout, weight[limit:contact])
        extra = take_or_zero(diagonal, tables.diagonal(structure))
        if layout.ncontact:
            extra = extra + sparse_contact.inertia_like(layout, self.contact, contact_blocks())
        parts = list(tree_blocks(structure, extra).blocks)
        if layout.ngeneral:
            parts = _add_general(layout, parts, self.general, weight[:friction])
        return TreeBlocks(tuple(mass + part for mass, part in zip(inertia.blocks, parts, strict=True)), structure)


def _add_general(layout: Layout, parts: list[Array], jac: Array, weight: Array) -> list[Array]:
    """Add J' w J of the general rows to the blocks."""
    left, right, place = _general_pairs(layout)
    flat = jac.reshape(-1)
    width = layout.columns.shape[1]
    product = take(flat, left) * take(flat, right) * take(weight, left // max(width, 1))
    sizes = [part.size for part in parts]
    total = sum_into(make_bins(place, sum(sizes)), product)
    pieces = jnp.split(total, np.cumsum(sizes)[:-1])
    return [part + piece.reshape(part.shape) for part, piece in zip(parts, pieces, strict=True)]


def _general_pairs(layout: Layout) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pairs of entries of one general row whose dofs are in one tree.

    Returns the indices of both entries, and their address in the blocks.
    """
    structure, columns = layout.structure, layout.columns
    blocks = tables.inertia_blocks(structure)
    row_start = np.zeros(layout.nv, int)  # start of a dof's row in the flattened blocks
    local, offset = np.zeros(layout.nv, int), 0
    for block in blocks:
        k, n = block.dofs.shape
        row_start[block.dofs] = offset + n * np.arange(k * n).reshape(k, n)
        local[block.dofs] = np.arange(n)
        offset += k * n * n
    a, b = (np.broadcast_to(x, (*columns.shape, columns.shape[1])) for x in (columns[:, :, None], columns[:, None]))
    tree = structure.dof_treeid
    same = (a >= 0) & (b >= 0) & (tree[np.maximum(a, 0)] == tree[np.maximum(b, 0)])
    row, i, j = np.nonzero(same)
    width = columns.shape[1]
    return row * width + i, row * width + j, row_start[a[same]] + local[b[same]]
