"""The dense solvers on one core, over the rows in use: a scalar function of one world with loops of dynamic length.

The method is that of `primal.minimise`, and the formulas of rows and cones are those of `problem`. Here are the
operators. Rows with D = 0 are left out. The others lie one after another: rows of single dofs, general rows, contacts.
Their Jacobians keep the columns that are not zero. Row i of a matrix is kept from its first nonzero entry to the
diagonal. Elimination goes from the last dof to the first, so that trees fill nothing (Featherstone, Rigid Body Dynamics
Algorithms, 6.5).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.layout import Layout
from jaxsim.core.rows import contact_facets, contact_frame_force
from jaxsim.engine.solver import primal
from jaxsim.engine.solver.problem import (
    ConstraintProblem,
    ContactRows,
    FixedRows,
    blocks_of_contacts,
    contact_along,
    contact_costs,
    contact_force,
    contact_slots,
    elliptic,
    scalar_costs,
    scalar_force,
    scalar_weight,
)
from jaxsim.math.arrays import entry_at, gather, row_at, with_entry
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat


class Blocks(NamedTuple):
    """Rows over the columns that are not zero, in blocks of `dim` rows, the first `count` blocks in use.

    Block k has the columns `column[start[k] : start[k] + size[k]]`, and its values lie row by row from `dim * start[k]`
    on. `index` are the blocks among all rows.
    """

    dim: int
    count: Array
    index: Array
    start: Array
    size: Array
    column: Array
    value: Array

    def each(self, body: Callable[[Array, Any], Any], state: Any) -> Any:
        """Repeat `state = body(k, state)` for the blocks in use."""
        return repeat(self.count, body, state) if len(self.index) else state


class Rows(NamedTuple):
    """The rows in use, `count` of them: rows of one dof with a sign, general rows, contacts from row `first` on.

    The first `scalars` have forces of their own. `slot` are their slots.
    """

    units: Array
    dof: Array
    sign: Array
    general: Blocks
    contact: Blocks
    first: Array
    count: Array
    scalars: Array
    slot: Array
    aref: Array
    bounds: FixedRows
    friction: Array
    mu: Array


class LowerRows(NamedTuple):
    """A symmetric matrix (nv, nv), of which row i is kept from column `first[i]` to the diagonal."""

    matrix: Array
    first: Array

    def times(self, x: Array) -> Array:
        """Compute the product with a vector (nv,)."""
        nv = len(x)

        def row(i: Array, y: Array) -> Array:
            own = entry_at(x, i)

            def add(j: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
                total, y = state
                value = entry_at(self.matrix, i, j)
                return total + value * entry_at(x, j), with_entry(y, j, entry_at(y, j) + value * own)

            total, y = _loop(entry_at(self.first, i), i, add, (entry_at(self.matrix, i, i) * own, y))
            return with_entry(y, i, total)

        return repeat(nv, row, lax.empty((nv,), x.dtype))


def solve(
    layout: Layout,
    limits: primal.IterationLimits,
    p: ConstraintProblem,
    settings: primal.Tolerances,
    guesses: primal.Guesses,
) -> primal.Solution:
    """Solve the problem as `primal.solve` does."""
    a, inertia = rows_in_use(layout, p), LowerRows(p.M.matrix, _first_columns(p.M.matrix))
    p = p._replace(M=inertia)
    of_solver = (newton_directions, cg_directions)[limits.solver.in_c or 0]
    direction, last = of_solver(layout, a, inertia)
    operators = primal.SolverOperators(
        smooth=p.qfrc_smooth,
        inertia=inertia.times,
        rows=partial(rows_times, layout, a),
        constraint=partial(constraint_force, layout, a),
        along=partial(along, layout, a),
        direction=direction,
        last=last,
        search_loop=lax.while_loop,
        ahead=partial(_ahead, a.count),
    )
    start, free = primal.first_guess(
        partial(residual, layout, a), partial(cost, layout, a), p, guesses.free, guesses.warm
    )
    acc, niter = primal.minimise(operators, limits, settings, start, lax.while_loop)
    r = residual(layout, a, acc)
    return primal.Solution(acc, niter, _in_slots(a, r), _in_slots(a, free), constraint_force(layout, a, r))


def _loop(begin: Array, end: Array, body: Callable[[Array, Any], Any], state: Any) -> Any:
    return lax.fori_loop(begin, end, body, state)


# ---- rows


def rows_in_use(layout: Layout, p: ConstraintProblem) -> Rows:
    """Return the rows with D > 0."""
    first, start, nfacet = layout.ngeneral, layout.offsets[3], layout.nfacet
    present = ~(p.D <= 0)  # NaN too
    units, unit = _listed(present[first:start])
    general = _packed(p.J.general[:, None], *_listed(present[:first]))
    contact = _packed(p.J.contact, *_listed(contact_slots(layout, present).any(1)))
    slot = repeat(units, lambda k, slot: with_entry(slot, k, first + entry_at(unit, k)), _empty(layout, jnp.int32))
    slot = general.each(lambda k, slot: with_entry(slot, units + k, entry_at(general.index, k)), slot)
    scalars = units + general.count

    def of_contact(k: Array, slot: Array) -> Array:
        own = start + nfacet * entry_at(contact.index, k) + np.arange(nfacet, dtype=np.int32)
        return _with_rows(slot, scalars + nfacet * k, own)

    slot = contact.each(of_contact, slot)
    count = scalars + nfacet * contact.count
    dofs = np.concatenate([np.arange(layout.nv), layout.limit_dof, layout.limit_dof]).astype(np.int32)
    signs = np.repeat([1, 1, -1], [layout.nv, layout.nlimit, layout.nlimit])
    of_slot = lambda x: _chosen(count, x, slot)  # noqa: E731
    return Rows(
        units=units,
        dof=_chosen(units, dofs, unit),
        sign=_chosen(units, signs.astype(p.D.dtype), unit),
        general=general,
        contact=contact,
        first=scalars,
        count=count,
        scalars=scalars if elliptic(layout) else count,
        slot=slot,
        aref=of_slot(p.aref),
        bounds=FixedRows(of_slot(p.D), of_slot(p.lo), of_slot(p.hi)),
        friction=p.J.friction,
        mu=p.mu,
    )


def _empty(layout: Layout, dtype: Any) -> Array:
    return lax.empty((layout.nslot,), dtype)


def _listed(present: Array) -> tuple[Array, Array]:
    """Return how many entries of a mask (n,) hold, and which."""

    def add(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        count, index = state
        return count + entry_at(present, i), with_entry(index, count, i)

    start = jnp.int32(0), lax.empty(present.shape, jnp.int32)
    return repeat(len(present), add, start) if len(present) else start


def _chosen(count: Array, x: Array, index: Array) -> Array:
    """Return `x[index]` for the first `count` indices."""
    x = jnp.asarray(x)
    return repeat(
        count, lambda k, y: with_entry(y, k, entry_at(x, entry_at(index, k))), lax.empty(index.shape, x.dtype)
    )


def _with_rows(x: Array, first: Array, values: Array) -> Array:
    """Return `x` with `values` from `first` on."""
    return lax.dynamic_update_slice(x, values, (first,), allow_negative_indices=False)


def _packed(jacobian: Array, count: Array, index: Array) -> Blocks:
    """Return blocks of rows from those over all dofs (n, dim, nv)."""
    most, dim, nv = jacobian.shape
    dims = [np.int32(d) for d in range(dim)]

    def add(k: Array, state: tuple) -> tuple:
        end, start, size, column, value = state
        block = entry_at(index, k)

        def find(v: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            n, column = state
            used = [entry_at(jacobian, block, d, v) != 0 for d in dims]
            return n + jnp.stack(used).any(), with_entry(column, end + n, v)

        n, column = repeat(nv, find, (jnp.int32(0), column))

        def copy(i: Array, value: Array) -> Array:
            v = entry_at(column, end + i)
            for d in dims:
                value = with_entry(value, dim * end + d * n + i, entry_at(jacobian, block, d, v))
            return value

        value = repeat(n, copy, value)
        return end + n, with_entry(start, k, end), with_entry(size, k, n), column, value

    ints = lax.empty((most,), jnp.int32)
    column, value = lax.empty((most * nv,), jnp.int32), lax.empty((most * dim * nv,), jacobian.dtype)
    none = Blocks(dim, count, index, ints, ints, column, value)
    _, *found = none.each(add, (jnp.int32(0), *none[3:]))
    return Blocks(dim, count, index, *found)


def _block_times(b: Blocks, k: Array, x: Array) -> Array:
    """Compute the product (dim,) of a block with x (nv,)."""
    start, n = entry_at(b.start, k), entry_at(b.size, k)

    def add(i: Array, totals: tuple[Array, ...]) -> tuple[Array, ...]:
        own = entry_at(x, entry_at(b.column, start + i))
        return tuple(t + entry_at(b.value, b.dim * start + d * n + i) * own for d, t in enumerate(totals))

    return jnp.stack(repeat(n, add, (jnp.zeros((), x.dtype),) * b.dim))


def _add_transpose_times(b: Blocks, k: Array, f: Array, x: Array) -> Array:
    """Return x (nv,) plus the product of a block's transpose with f (dim,)."""
    start, n = entry_at(b.start, k), entry_at(b.size, k)

    def add(i: Array, x: Array) -> Array:
        v = entry_at(b.column, start + i)
        total = sum(entry_at(b.value, b.dim * start + d * n + i) * f[d] for d in range(b.dim))
        return with_entry(x, v, entry_at(x, v) + total)

    return repeat(n, add, x)


def _scalar(a: Rows, k: Array) -> FixedRows:
    return FixedRows(*(entry_at(x, k) for x in a.bounds))


def _contact(layout: Layout, a: Rows, k: Array) -> ContactRows:
    """Return the rows of a contact in use, as a single contact."""
    rows, c = _rows_of_contact(layout, a, k), entry_at(a.contact.index, k)
    own = [gather(x, rows)[None] for x in (a.aref, *a.bounds)]
    return ContactRows(*own, row_at(a.friction, c)[None], entry_at(a.mu, c)[None])


def _rows_of_contact(layout: Layout, a: Rows, k: Array) -> Array:
    return a.first + layout.nfacet * k + np.arange(layout.nfacet, dtype=np.int32)


def rows_times(layout: Layout, a: Rows, x: Array) -> Array:
    """Compute J x of the rows in use."""
    of_unit = lambda k, z: with_entry(z, k, entry_at(a.sign, k) * entry_at(x, entry_at(a.dof, k)))  # noqa: E731
    z = repeat(a.units, of_unit, _empty(layout, x.dtype))
    general = lambda k, z: with_entry(z, a.units + k, _block_times(a.general, k, x)[0])  # noqa: E731
    z = a.general.each(general, z)

    def contact(k: Array, z: Array) -> Array:
        friction = row_at(a.friction, entry_at(a.contact.index, k))
        own = contact_facets(layout, friction[None], _block_times(a.contact, k, x)[None])
        return _with_rows(z, a.first + layout.nfacet * k, own)

    return a.contact.each(contact, z)


def _ahead(count: Array, r: Array, z: Array, alpha: Array) -> Array:
    return repeat(count, lambda k, r: with_entry(r, k, entry_at(r, k) + alpha * entry_at(z, k)), r)


def residual(layout: Layout, a: Rows, acc: Array) -> Array:
    """Compute J a - aref of the rows in use."""
    return _ahead(a.count, rows_times(layout, a, acc), a.aref, -1)


def _in_slots(a: Rows, r: Array) -> Array:
    """Return values of rows in use in their slots (nslot,)."""
    return repeat(a.count, lambda k, x: with_entry(x, entry_at(a.slot, k), entry_at(r, k)), jnp.zeros_like(r))


def constraint_force(layout: Layout, a: Rows, r: Array) -> Array:
    """Compute J' f (nv,) for the forces of the rows in use."""
    of_scalar = lambda k: scalar_force(_scalar(a, k), entry_at(r, k))  # noqa: E731

    def unit(k: Array, x: Array) -> Array:
        v = entry_at(a.dof, k)
        return with_entry(x, v, entry_at(x, v) + entry_at(a.sign, k) * of_scalar(k))

    def general(k: Array, x: Array) -> Array:
        return _add_transpose_times(a.general, k, of_scalar(a.units + k)[None], x)

    def contact(k: Array, x: Array) -> Array:
        own = _contact(layout, a, k)
        f = contact_force(layout, own, gather(r, _rows_of_contact(layout, a, k))[None])

        def add(x: Array) -> Array:
            return _add_transpose_times(a.contact, k, contact_frame_force(layout, own.friction, f.reshape(-1))[0], x)

        return lax.cond(jnp.any(f != 0), add, lambda x: x, x)

    x = repeat(a.units, unit, jnp.zeros((layout.nv,), r.dtype))
    x = a.general.each(general, x)
    return a.contact.each(contact, x)


def _over_rows(
    layout: Layout, a: Rows, scalar: Callable, contact: Callable, totals: tuple[Array, ...]
) -> tuple[Array, ...]:
    """Add the tuples `scalar(k)` of scalar rows and `contact(k)` of contacts that are not scalar rows."""
    add = lambda of, k, totals: tuple(t + x for t, x in zip(totals, of(k), strict=True))  # noqa: E731
    totals = repeat(a.scalars, partial(add, scalar), totals)
    return a.contact.each(partial(add, contact), totals) if elliptic(layout) else totals


def cost(layout: Layout, a: Rows, r: Array) -> Array:
    """Compute the cost s(r)."""
    scalar = lambda k: (scalar_costs(_scalar(a, k), entry_at(r, k)),)  # noqa: E731

    def contact(k: Array) -> tuple[Array]:
        rows = gather(r, _rows_of_contact(layout, a, k))[None]
        return (contact_costs(layout, _contact(layout, a, k), rows)[0],)

    return _over_rows(layout, a, scalar, contact, (jnp.zeros((), r.dtype),))[0]


def along(layout: Layout, a: Rows, r: Array, z: Array, alpha: Array) -> tuple[Array, Array, Array]:
    """Compute derivatives of s at r + alpha z along z: f'z, the sum of its absolute terms, and z' s'' z."""

    def scalar(k: Array) -> tuple[Array, Array, Array]:
        own, y = _scalar(a, k), entry_at(z, k)
        x = entry_at(r, k) + alpha * y
        push = scalar_force(own, x) * y
        return push, jnp.abs(push), scalar_weight(own, x) * y * y

    def contact(k: Array) -> tuple[Array, Array, Array]:
        rows = _rows_of_contact(layout, a, k)
        y = gather(z, rows)[None]
        return contact_along(layout, _contact(layout, a, k), gather(r, rows)[None] + alpha * y, y)

    return _over_rows(layout, a, scalar, contact, (jnp.zeros((), r.dtype),) * 3)


# ---- matrices


class Factor(NamedTuple):
    """L' D L of a symmetric matrix: L with a unit diagonal, kept as `LowerRows`, and 1 / D."""

    lower: LowerRows
    inverse: Array


def _first_columns(matrix: Array) -> Array:
    """Return the column of the first nonzero entry of each row, at most that of the diagonal."""

    def row(i: Array, first: Array) -> Array:
        j = lax.while_loop(lambda j: (j < i) & (entry_at(matrix, i, j) == 0), lambda j: j + 1, jnp.int32(0))
        return with_entry(first, i, j)

    return repeat(len(matrix), row, lax.empty((len(matrix),), jnp.int32))


def _with_matrix_entry(h: Array, i: Array, j: Array, value: Array) -> Array:
    return h.at[i, j].set(value, mode="promise_in_bounds", wrap_negative_indices=False)


def _copied(a: LowerRows) -> LowerRows:
    """Copy the entries that are kept."""

    def row(i: Array, h: Array) -> Array:
        copy = lambda j, h: _with_matrix_entry(h, i, j, entry_at(a.matrix, i, j))  # noqa: E731
        return _loop(entry_at(a.first, i), i + 1, copy, h)

    return LowerRows(repeat(len(a.first), row, lax.empty(a.matrix.shape, a.matrix.dtype)), a.first)


def _kept_from(h: LowerRows, row: Array, column: Array) -> LowerRows:
    """Keep a row from `column` on, or from an earlier one; new entries are zero."""
    first, zero = entry_at(h.first, row), jnp.zeros((), h.matrix.dtype)
    matrix = _loop(column, first, lambda j, m: _with_matrix_entry(m, row, j, zero), h.matrix)
    return LowerRows(matrix, with_entry(h.first, row, jnp.minimum(first, column)))


def hessian(layout: Layout, a: Rows, inertia: LowerRows, r: Array) -> LowerRows:
    """Compute M + J' s'' J."""

    def unit(k: Array, h: LowerRows) -> LowerRows:
        v = entry_at(a.dof, k)
        value = entry_at(h.matrix, v, v) + scalar_weight(_scalar(a, k), entry_at(r, k))
        return h._replace(matrix=_with_matrix_entry(h.matrix, v, v, value))

    def general(k: Array, h: LowerRows) -> LowerRows:
        row = a.units + k
        return _with_block(a.general, k, scalar_weight(_scalar(a, row), entry_at(r, row))[None, None], h)

    def contact(k: Array, h: LowerRows) -> LowerRows:
        rows = gather(r, _rows_of_contact(layout, a, k))[None]
        return _with_block(a.contact, k, blocks_of_contacts(layout, _contact(layout, a, k), rows)[0], h)

    h = repeat(a.units, unit, _copied(inertia))
    h = a.general.each(general, h)
    return a.contact.each(contact, h)


def _with_block(b: Blocks, k: Array, curvature: Array, h: LowerRows) -> LowerRows:
    """Return h + J' s'' J for the rows of a block with s'' (dim, dim), zero where its first entry is."""
    start, n, dims = entry_at(b.start, k), entry_at(b.size, k), range(b.dim)
    column = lambda i: entry_at(b.column, start + i)  # noqa: E731
    value = lambda d, i: entry_at(b.value, b.dim * start + d * n + i)  # noqa: E731
    nv = len(h.first)

    def add(h: LowerRows) -> LowerRows:
        def weigh(i: Array, weighted: list[Array]) -> list[Array]:
            own = [value(d, i) for d in dims]
            return [with_entry(w, i, sum(c * x for c, x in zip(curvature[d], own, strict=True))) for d, w in enumerate(weighted)]

        def row(i: Array, h: LowerRows) -> LowerRows:
            v, own = column(i), [value(d, i) for d in dims]
            h = _kept_from(h, v, column(0))
            term = lambda j, s: with_entry(s, j, sum(x * entry_at(w, j) for x, w in zip(own, weighted, strict=True)))  # noqa: E731
            terms = repeat(i + 1, term, lax.empty((nv,), curvature.dtype))

            def place(j: Array, m: Array) -> Array:
                return _with_matrix_entry(m, v, column(j), entry_at(m, v, column(j)) + entry_at(terms, j))

            return h._replace(matrix=repeat(i + 1, place, h.matrix))

        weighted = repeat(n, weigh, [lax.empty((nv,), curvature.dtype) for _ in dims])
        return repeat(n, row, h)

    return lax.cond(curvature[0, 0] != 0, add, lambda h: h, h)


def factorised(h: LowerRows) -> Factor:
    """Factor a matrix as L' D L; NaN where it is not positive definite."""
    nv = len(h.first)

    def pivot(t: Array, state: tuple[LowerRows, Array]) -> tuple[LowerRows, Array]:
        h, inverse = state
        k = nv - 1 - t
        d, first = entry_at(h.matrix, k, k), entry_at(h.first, k)
        over = jnp.where(d > 0, 1 / d, jnp.nan)

        def row(j: Array, h: LowerRows) -> LowerRows:
            value = entry_at(h.matrix, k, j)

            def eliminate(h: LowerRows) -> LowerRows:
                m = value * over
                h = _kept_from(h, j, first)

                def take(i: Array, x: Array) -> Array:
                    return _with_matrix_entry(x, j, i, entry_at(x, j, i) - m * entry_at(x, k, i))

                return h._replace(matrix=_loop(first, j + 1, take, h.matrix))

            return lax.cond(value != 0, eliminate, lambda h: h, h)

        h = _loop(first, k, row, h)
        scale = lambda j, x: _with_matrix_entry(x, k, j, entry_at(x, k, j) * over)  # noqa: E731
        return h._replace(matrix=_loop(first, k, scale, h.matrix)), with_entry(inverse, k, over)

    return Factor(*repeat(nv, pivot, (h, lax.empty((nv,), h.matrix.dtype))))


def substituted(f: Factor, x: Array) -> Array:
    """Solve for b = `x` (nv,)."""
    lower, first, nv = f.lower.matrix, f.lower.first, len(x)

    def up(t: Array, x: Array) -> Array:
        k = nv - 1 - t
        own = entry_at(x, k)
        take = lambda j, x: with_entry(x, j, entry_at(x, j) - entry_at(lower, k, j) * own)  # noqa: E731
        return _loop(entry_at(first, k), k, take, x)

    def down(k: Array, x: Array) -> Array:
        take = lambda j, total: total - entry_at(lower, k, j) * entry_at(x, j)  # noqa: E731
        return with_entry(x, k, _loop(entry_at(first, k), k, take, entry_at(x, k) * entry_at(f.inverse, k)))

    return repeat(nv, down, repeat(nv, up, x))


# ---- methods


def newton_directions(layout: Layout, a: Rows, inertia: LowerRows) -> tuple[Callable, tuple[()]]:
    """Return the directions of `primal.newton_directions`."""
    return lambda s: (substituted(factorised(hessian(layout, a, inertia, s.r)), -s.grad), ()), ()


def cg_directions(layout: Layout, a: Rows, inertia: LowerRows) -> tuple[Callable, tuple[Array, Array]]:
    """Return the directions of `primal.cg_directions`."""
    nothing = jnp.zeros((layout.nv,), inertia.matrix.dtype)
    precondition = partial(substituted, factorised(_copied(inertia)))
    return partial(primal.cg_direction, precondition, inertia.times), (nothing, nothing)
