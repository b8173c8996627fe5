"""The solver's operators on one core, over the rows in use: scalar functions of a world with loops of dynamic length.

The method is that of `primal.minimise`, and the formulas of rows and cones are those of `problem`. Rows with D = 0 are
left out. The others lie one after another: rows of single dofs, general rows, contacts. Their Jacobians keep the
columns that are not zero.
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
from jaxsim.engine.solver.lower_rows import LowerRows, repeat_on
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
    on. `index` are the blocks among all rows, `total` is the number of columns of all blocks in use.
    """

    dim: int
    count: Array
    index: Array
    total: Array
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


# ---- rows


Pack = Callable[[Array, Array], Blocks]  # of the number of blocks in use, and which they are


def rows_in_use(layout: Layout, p: ConstraintProblem, pack_general: Pack, pack_contacts: Pack) -> Rows:
    """Return the rows with D > 0."""
    first, start, nfacet = layout.ngeneral, layout.offsets[3], layout.nfacet
    present = ~(p.D <= 0)  # NaN too
    units, unit = _listed(present[first:start])
    general = pack_general(*_listed(present[:first]))
    contact = pack_contacts(*_listed(contact_slots(layout, present).any(1)))
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
    dof, sign = chosen(units, unit, dofs, signs.astype(p.D.dtype))
    aref, *bounds = chosen(count, slot, p.aref, p.D, p.lo, p.hi)
    return Rows(
        units=units,
        dof=dof,
        sign=sign,
        general=general,
        contact=contact,
        first=scalars,
        count=count,
        scalars=scalars if elliptic(layout) else count,
        slot=slot,
        aref=aref,
        bounds=FixedRows(*bounds),
        friction=p.J.friction,
        mu=p.mu,
    )


def _empty(layout: Layout, dtype: Any) -> Array:
    return lax.empty((layout.nslot,), dtype)


def _listed(present: Array) -> tuple[Array, Array]:
    """Return how many entries of a mask (n,) hold, and which."""

    def add(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        count, index = state
        return count + entry_at(present, i).astype(jnp.int32), with_entry(index, count, i)

    start = jnp.int32(0), lax.empty(present.shape, jnp.int32)
    return repeat(len(present), add, start) if len(present) else start


def chosen(count: Array, index: Array, *arrays: Array, fresh: Callable[..., Array] = lax.empty) -> list[Array]:
    """Return `x[index]` of each array, for the first `count` indices; `fresh(shape, dtype)` makes new arrays."""

    def copy(k: Array, found: list[Array]) -> list[Array]:
        i = entry_at(index, k)
        return [with_entry(y, k, entry_at(x, i)) for x, y in zip(arrays, found, strict=True)]

    return repeat(count, copy, [fresh(index.shape, x.dtype) for x in arrays])


def _with_rows(x: Array, first: Array, values: Array) -> Array:
    """Return `x` with `values` from `first` on."""
    return lax.dynamic_update_slice(x, values, (first,), allow_negative_indices=False)


# ---- products


def block_times(b: Blocks, k: Array, x: Array) -> Array:
    """Compute the product (dim,) of a block with x (nv,)."""
    start, n = entry_at(b.start, k), entry_at(b.size, k)

    def add(i: Array, totals: tuple[Array, ...]) -> tuple[Array, ...]:
        own = entry_at(x, entry_at(b.column, start + i))
        return tuple(t + entry_at(b.value, b.dim * start + d * n + i) * own for d, t in enumerate(totals))

    return jnp.stack(repeat(n, add, (jnp.zeros((), x.dtype),) * b.dim))


def add_transpose_times(b: Blocks, k: Array, f: Array, x: Array) -> Array:
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
    aref, stiffness, lo, hi = (gather(x, rows)[None] for x in (a.aref, *a.bounds))
    return ContactRows(aref, stiffness, lo, hi, row_at(a.friction, c)[None], entry_at(a.mu, c)[None])


def _rows_of_contact(layout: Layout, a: Rows, k: Array) -> Array:
    return a.first + layout.nfacet * k + np.arange(layout.nfacet, dtype=np.int32)


def rows_times(layout: Layout, a: Rows, x: Array) -> Array:
    """Compute J x of the rows in use."""
    of_unit = lambda k, z: with_entry(z, k, entry_at(a.sign, k) * entry_at(x, entry_at(a.dof, k)))  # noqa: E731
    z = repeat(a.units, of_unit, _empty(layout, x.dtype))
    general = lambda k, z: with_entry(z, a.units + k, block_times(a.general, k, x)[0])  # noqa: E731
    z = a.general.each(general, z)

    def contact(k: Array, z: Array) -> Array:
        friction = row_at(a.friction, entry_at(a.contact.index, k))
        own = contact_facets(layout, friction[None], block_times(a.contact, k, x)[None])
        return _with_rows(z, a.first + layout.nfacet * k, own)

    return a.contact.each(contact, z)


def _ahead(count: Array, r: Array, z: Array, alpha: Array) -> Array:
    return repeat(count, lambda k, r: with_entry(r, k, entry_at(r, k) + alpha * entry_at(z, k)), r)


def residual(layout: Layout, a: Rows, acc: Array) -> Array:
    """Compute J a - aref of the rows in use."""
    return _ahead(a.count, rows_times(layout, a, acc), a.aref, -1)


def in_slots(a: Rows, r: Array) -> Array:
    """Return values of rows in use in their slots (nslot,)."""
    return repeat(a.count, lambda k, x: with_entry(x, entry_at(a.slot, k), entry_at(r, k)), jnp.zeros_like(r))


def constraint_force(layout: Layout, a: Rows, r: Array) -> Array:
    """Compute J' f (nv,) for the forces of the rows in use."""
    of_scalar = lambda k: scalar_force(_scalar(a, k), entry_at(r, k))  # noqa: E731

    def unit(k: Array, x: Array) -> Array:
        v = entry_at(a.dof, k)
        return with_entry(x, v, entry_at(x, v) + entry_at(a.sign, k) * of_scalar(k))

    def general(k: Array, x: Array) -> Array:
        return add_transpose_times(a.general, k, of_scalar(a.units + k)[None], x)

    def contact(k: Array, x: Array) -> Array:
        own = _contact(layout, a, k)
        f = contact_force(layout, own, gather(r, _rows_of_contact(layout, a, k))[None])

        def add(x: Array) -> Array:
            return add_transpose_times(a.contact, k, contact_frame_force(layout, own.friction, f.reshape(-1))[0], x)

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


# ---- the method


def hessian(layout: Layout, a: Rows, h: LowerRows, r: Array, least: Array | None = None) -> LowerRows:
    """Add J' s'' J to M; of row i only the columns from `least[i]` on, if given."""

    def unit(k: Array, h: LowerRows) -> LowerRows:
        v = entry_at(a.dof, k)
        return h.with_diagonal(v, h.diagonal(v) + scalar_weight(_scalar(a, k), entry_at(r, k)))

    def general(k: Array, h: LowerRows) -> LowerRows:
        row = a.units + k
        weight = scalar_weight(_scalar(a, row), entry_at(r, row))
        return _with_block(a.general, k, weight[None, None], h, least)

    def contact(k: Array, h: LowerRows) -> LowerRows:
        return _with_block(a.contact, k, curvature_of_contact(layout, a, r, k), h, least)

    h = repeat_on(h, a.units, unit)
    h = repeat_on(h, a.general.count, general) if layout.ngeneral else h
    return repeat_on(h, a.contact.count, contact) if layout.ncontact else h


def scalar_weights(a: Rows, r: Array) -> Array:
    """Compute s'' of the rows before those of contacts."""
    one = lambda k, x: with_entry(x, k, scalar_weight(_scalar(a, k), entry_at(r, k)))  # noqa: E731
    return repeat(a.first, one, lax.empty(r.shape, r.dtype))


def curvature_of_contact(layout: Layout, a: Rows, r: Array, k: Array) -> Array:
    """Compute s'' (dim, dim) of a contact in its frame."""
    return blocks_of_contacts(layout, _contact(layout, a, k), gather(r, _rows_of_contact(layout, a, k))[None])[0]


def _with_block(b: Blocks, k: Array, curvature: Array, h: LowerRows, least: Array | None) -> LowerRows:
    """Add J' s'' J for the rows of a block with s'' (dim, dim), which is zero where its first entry is."""
    start, n, dims = entry_at(b.start, k), entry_at(b.size, k), range(b.dim)
    size, dtype = len(h.first), curvature.dtype
    column = lambda i: entry_at(b.column, start + i)  # noqa: E731
    values = lambda i: [entry_at(b.value, b.dim * start + d * n + i) for d in dims]  # noqa: E731
    inner = lambda x, y: sum(a * b for a, b in zip(x, y, strict=True))  # noqa: E731

    def weigh(i: Array, weighted: list[Array]) -> list[Array]:
        own = values(i)
        return [with_entry(w, i, inner(curvature[d], own)) for d, w in enumerate(weighted)]

    def add(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        weighted = repeat(n, weigh, [lax.empty((size,), dtype) for _ in dims])

        def row(i: Array, state: tuple) -> tuple:
            begin, carry = state
            v, own = column(i), values(i)
            if least is not None:
                begin = lax.while_loop(lambda j: column(j) < entry_at(least, v), lambda j: j + 1, begin)
            kept, place = h.carried(carry).kept_from(v, column(begin)), entry_at(h.place, v)
            term = lambda j, s: with_entry(s, j, inner(own, [entry_at(w, j) for w in weighted]))  # noqa: E731
            terms = lax.fori_loop(begin, i + 1, term, lax.empty((size,), dtype))

            def put(j: Array, x: Array) -> Array:
                to = place + column(j)
                return with_entry(x, to, entry_at(x, to) + entry_at(terms, j))

            return begin, kept._replace(value=lax.fori_loop(begin, i + 1, put, kept.value)).carry()

        return repeat(n, row, (jnp.int32(0), carry))[1]

    return h.carried(lax.cond(curvature[0, 0] != 0, add, lambda carry: carry, h.carry()))


def minimise(
    layout: Layout,
    limits: primal.IterationLimits,
    a: Rows,
    p: ConstraintProblem,
    settings: primal.Tolerances,
    guesses: primal.Guesses,
    directions: tuple[Callable, Any],
) -> tuple[primal.SolverState, Array]:
    """Run `primal.minimise`; return the last state and the residual of the first guess."""
    direction, last = directions
    operators = primal.SolverOperators(
        smooth=p.qfrc_smooth,
        inertia=p.M.times,
        rows=partial(rows_times, layout, a),
        constraint=partial(constraint_force, layout, a),
        along=partial(along, layout, a),
        direction=direction,
        last=last,
        search_loop=lambda cond, body, s: lax.while_loop(lambda s: (s.count == 0) | cond(s), body, s),
        ahead=partial(_ahead, a.count),
    )
    one = primal.one_by_one(partial(residual, layout, a), partial(cost, layout, a))
    each = lambda *accs: list(zip(*lax.map(lambda x: one(x)[0], jnp.stack(accs)), strict=True))  # noqa: E731
    start, free = primal.first_guess(each, p, guesses)
    return primal.minimise(operators, limits, settings, start, lax.while_loop), free
