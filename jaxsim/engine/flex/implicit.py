"""Flexes in the implicit integrators: damping of edges, and the stiffness and damping of lattices."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import MINVAL
from jaxsim.engine.flex.kinematics import node_chains, node_jacobian, node_positions
from jaxsim.engine.flex.lattice import Cells, frames, lattice_cells, node_velocities, stiffness
from jaxsim.engine.kinematics.wrench import apply_wrench
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.engine.structure import tables as engine_tables
from jaxsim.math.arrays import add_at, dot, einsum, inner, matvec, matvec_t, merge, take, take_or_zero
from jaxsim.math.bins import Bins, make_bins, sum_into
from jaxsim.math.rotation import quat_to_mat
from jaxsim.math.safe import Array, divide, xp_of
from jaxsim.native import linalg

DENSE_DOFS = 100  # up to this many dofs of lattices use a dense factor
ROUNDING = 10  # residual of conjugate gradients, in units in the last place of the right-hand side


class Products(NamedTuple):
    """Products of two entries of one edge's Jacobian that occur in a matrix of dofs by dofs: edges, entries, bins."""

    edge: np.ndarray
    one: np.ndarray
    two: np.ndarray
    to_entries: Bins


def _products(m: Any, row: np.ndarray, col: np.ndarray) -> Products:
    entries, by_edge = tables.edge_entries(m), tables.edges(m)
    rows = np.where((~m.flexedge_rigid & ~m.flex_rigid[by_edge.flex])[:, None], entries.rows, -1)
    one, two = np.broadcast_arrays(rows[:, :, None], rows[:, None, :])
    edge = np.broadcast_to(np.arange(len(rows))[:, None, None], one.shape)
    both = (one >= 0) & (two >= 0)
    one, two, edge = one[both], two[both], edge[both]
    key = row * m.nv + col
    order = np.argsort(key)
    wanted = entries.dof[one] * m.nv + entries.dof[two]
    at = order[np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)]
    found = key[at] == wanted
    return Products(edge[found], one[found], two[found], make_bins(at[found], len(key)))


@per_structure
def _lower_products(m: Any) -> Products:
    return _products(m, *engine_tables.inertia_pattern(m))


@per_structure
def _other_products(m: Any) -> Products:
    row = np.where(m.mapM2D < 0, np.repeat(np.arange(m.nv), m.D_rownnz), m.nv)
    return _products(m, row, np.asarray(m.D_colind))


def edge_damping_vel(m: Model, d: Data, lower: bool) -> Array:
    """Compute the derivative of the forces of dampers in edges by qvel.

    Returns entries in the pattern of `d.M` (`lower`), or the entries of D that are not in it. As in MuJoCo, the
    coupling of different trees is left out.
    """
    products = _lower_products(m) if lower else _other_products(m)
    count = m.nC if lower else m.nD
    if not len(products.edge):
        return xp_of(d.qvel).zeros(count, d.qvel.dtype)
    damping = take(m.flex_edgedamping, tables.edges(m).flex[products.edge])
    both = take(d.flexedge_J, products.one) * take(d.flexedge_J, products.two)
    return sum_into(products.to_entries, -damping * both)


class LatticeDofs(NamedTuple):
    """Dofs that move nodes of elastic lattices.

    Attributes:
        dof: (n,) the dofs solved together: of the nodes' bodies, or the dofs that move the bodies if they have none.
        local: (nflexnode, w) the positions in `dof` of all dofs that move each node (`node_chains`), or -1.
    """

    dof: np.ndarray
    local: np.ndarray


@per_structure
def _lattice_dofs(m: Any) -> LatticeDofs:
    active = np.isin(tables.node_flex(m), np.concatenate([cells.flex for cells in lattice_cells(m)]))
    chain, solved = node_chains(m), []
    for body, whole in zip(m.flex_nodebodyid[active], chain[active], strict=True):
        own = m.body_dofadr[body] + np.arange(m.body_dofnum[body])
        solved += own.tolist() or whole[whole >= 0].tolist()
    dof = np.array(list(dict.fromkeys(solved)), int)
    place = np.full(m.nv + 1, -1)
    place[dof] = np.arange(len(dof))
    return LatticeDofs(dof, place[chain])


class Coupling(NamedTuple):
    """Entries of a sparse matrix of dofs that couple solved dofs: address (n, n), -1 for none.

    `address`, `row`, `other` are entries in rows of solved dofs and columns of other dofs, as in MuJoCo's sums.
    """

    square: np.ndarray
    address: np.ndarray
    row: np.ndarray
    other: np.ndarray


def _coupling(m: Any, row: np.ndarray, col: np.ndarray) -> Coupling:
    dof = _lattice_dofs(m).dof
    local = np.full(m.nv, -1)
    local[dof] = np.arange(len(dof))
    inside = np.flatnonzero((local[row] >= 0) & (local[col] >= 0))
    square = np.full((len(dof), len(dof)), -1)
    i, j = local[row[inside]], local[col[inside]]
    # the lower triangle is kept, by the order of the solved dofs; where both are stored the lower row counts
    low = i < j
    square[j[low], i[low]] = inside[low]
    square[i[~low], j[~low]] = inside[~low]
    square = np.where(square < 0, square.T, square)
    across = np.flatnonzero((local[row] >= 0) & (local[col] < 0))
    return Coupling(square, across, local[row[across]], col[across])


@per_structure
def _lower_coupling(m: Any) -> Coupling:
    return _coupling(m, *engine_tables.inertia_pattern(m))


@per_structure
def _full_coupling(m: Any) -> Coupling:
    return _coupling(m, np.repeat(np.arange(m.nv), m.D_rownnz), np.asarray(m.D_colind))


class _Stiff(NamedTuple):
    """A group of elements with their scaled stiffness (n, 3 k, 3 k) and their rotations (n, 3, 3)."""

    cells: Cells
    scaled: Array
    turned: Array


def stiff_lattices(m: Model, d: Data, matrix: Array, force: Array, qacc: Array, lower: bool) -> Array:
    """Replace in `qacc` the accelerations of the nodes of elastic lattices, with implicit stiffness and damping.

    Solves (H + (h^2 + h c) J' K J) a = force - h J' K J qvel for the dofs of nodes, H being the matrix of the
    integrator, with all other accelerations given. Only this system couples dofs of different trees. Few dofs are
    solved with a dense factor, many by conjugate gradients.

    Args:
        matrix: entries of H, in the pattern of `d.M` (`lower`) or of D.
    """
    h, dofs = m.opt.timestep, _lattice_dofs(m)
    coupling = _lower_coupling(m) if lower else _full_coupling(m)
    if not len(dofs.dof):
        return qacc
    xp = xp_of(qacc)
    position = node_positions(m, d)
    velocity = node_velocities(m, d, position)
    jacobian = node_jacobian(m, d, position)
    groups: list[_Stiff] = []
    pull = xp.zeros_like(position)
    for cells in lattice_cells(m):
        turned = quat_to_mat(frames(cells, take(position, cells.node)))
        scale = h * h + h * take(m.flex_damping, cells.flex)
        groups.append(_Stiff(cells, stiffness(m, cells) * scale[:, None, None], turned))
        pull = pull + _products_with(*groups[-1], velocity)
    # as in MuJoCo, the damping of the first flex counts for all
    first = h * h + h * m.flex_damping[0]
    large = first > MINVAL
    factor = xp.where(large, h / xp.where(large, first, 1), 0)
    extra = apply_wrench(m, d, pull * factor, xp.zeros_like(pull), position, m.flex_nodebodyid)
    wanted = take(force + extra, dofs.dof)
    if len(coupling.address):
        given = take(matrix, coupling.address) * take(qacc, coupling.other)
        wanted = wanted - add_at(coupling.row, given, len(dofs.dof))
    solve = _solve_dense if len(dofs.dof) <= DENSE_DOFS else _solve_by_search
    return merge(qacc, dofs.dof, solve(m, matrix, coupling, groups, jacobian, wanted))


def _solve_dense(
    m: Model, matrix: Array, coupling: Coupling, groups: list[_Stiff], jacobian: Array, wanted: Array
) -> Array:
    total = take_or_zero(matrix, coupling.square)
    for group in groups:
        total = total - _on_pairs(m, *group, jacobian)
    total = jnp.tril(total) + jnp.tril(total, -1).T  # as in MuJoCo, the upper triangle is ignored
    fixed = lax.stop_gradient(total)
    return lax.custom_linear_solve(
        lambda x: dot(total, x), wanted, lambda _, x: linalg.solve_positive(fixed, x), symmetric=True
    )


def _sum(terms: Iterable[Array]) -> Array:
    return sum(terms)


def _solve_by_search(
    m: Model, matrix: Array, coupling: Coupling, groups: list[_Stiff], jacobian: Array, wanted: Array
) -> Array:
    """Solve by conjugate gradients with a diagonal preconditioner, up to rounding.

    Forms no matrix.
    """
    local = _lattice_dofs(m).local
    count = len(wanted)
    row, col = np.nonzero(coupling.square >= 0)
    to_rows, to_dofs = make_bins(row, count), make_bins(local.reshape(-1), count)
    entries = take(matrix, coupling.square[row, col])

    def times(entries: Array, jacobian: Array, groups: list[tuple[Array, Array]], x: Array) -> Array:
        velocity = (jacobian * take_or_zero(x, local)[..., None]).sum(1)
        pull = _sum(_products_with(cells, *numbers, velocity) for cells, numbers in zip(elements, groups, strict=True))
        back = (jacobian * pull[:, None]).sum(-1).reshape(-1)
        return sum_into(to_rows, entries * take(x, col)) - sum_into(to_dofs, back)

    elements = [group.cells for group in groups]
    numbers = (entries, jacobian, [(group.scaled, group.turned) for group in groups])
    fixed = lax.stop_gradient(numbers)
    diagonal = sum_into(to_rows, jnp.where(row == col, fixed[0], 0))
    for (scaled, turned), cells in zip(fixed[2], elements, strict=True):
        diagonal = diagonal - _own(cells, scaled, turned, fixed[1], to_dofs)
    diagonal = jnp.maximum(diagonal, jnp.finfo(wanted.dtype).tiny)

    def search(_: Any, b: Array) -> Array:
        return _conjugate_gradients(partial(times, *fixed), diagonal, b)

    return lax.custom_linear_solve(partial(times, *numbers), wanted, search, symmetric=True)


def _own(cells: Cells, scaled: Array, turned: Array, jacobian: Array, to_dofs: Bins) -> Array:
    """Approximate the diagonal of J' K J by each node's own block."""
    n, k = cells.node.shape
    block = scaled.reshape(n, k, 3, k, 3)[:, np.arange(k), :, np.arange(k)]  # (k, n, 3, 3)
    columns = matvec_t(turned[:, None, None], take(jacobian, cells.node))  # (n, k, w, 3)
    own = jnp.einsum("nawi,anij,nawj->naw", columns, block, columns, precision="highest")
    by_node = sum_into(cells.to_nodes, own.reshape(n * k, -1))
    return sum_into(to_dofs, by_node.reshape(-1))


def _conjugate_gradients(times: Callable[[Array], Array], diagonal: Array, b: Array) -> Array:
    enough = (ROUNDING * jnp.finfo(b.dtype).eps) ** 2

    def unfinished(s: tuple) -> Array:
        return (s[3] > enough * first) & (s[4] < 4 * len(b))

    def go(s: tuple) -> tuple:
        x, r, q, rho, count = s
        aq = times(q)
        alpha = divide(rho, inner(q, aq))
        x, r = x + alpha * q, r - alpha * aq
        z = r / diagonal
        new = inner(r, z)
        return x, r, z + divide(new, rho) * q, new, count + 1

    z = b / diagonal
    first = inner(b, z)
    return lax.while_loop(unfinished, go, (jnp.zeros_like(b), b, z, first, jnp.zeros((), jnp.int32)))[0]


def _products_with(cells: Cells, scaled: Array, turned: Array, velocity: Array) -> Array:
    """Compute forces (nflexnode, 3) of scaled stiffness on nodes displaced along `velocity`."""
    n, k = cells.node.shape
    local = matvec_t(turned[:, None], take(velocity, cells.node)).reshape(n, 3 * k, 1)
    force = einsum("nij,njc->nic", scaled, local).reshape(n, k, 3)
    return sum_into(cells.to_nodes, matvec(turned[:, None], force).reshape(n * k, 3))


def _on_pairs(m: Model, cells: Cells, scaled: Array, turned: Array, jacobian: Array) -> Array:
    """Compute J' K J of one group of elements over the solved dofs (n, n)."""
    dofs = _lattice_dofs(m)
    n, k = cells.node.shape
    w = dofs.local.shape[1]
    # columns of the Jacobian in the frames of elements: (n, k, w, 3)
    columns = matvec_t(turned[:, None, None], take(jacobian, cells.node))
    block = scaled.reshape(n, k, 3, k, 3)
    half = einsum("nawi,naibj->nawbj", columns, block)
    whole = einsum("nawbj,nbvj->nawbv", half, columns).reshape(-1)
    local = dofs.local[cells.node].reshape(n, k * w)
    size = len(dofs.dof)
    one, two = local[:, :, None], local[:, None, :]
    index = np.where((one >= 0) & (two >= 0), one * size + two, -1).reshape(-1)
    return add_at(index, whole, size * size).reshape(size, size)
