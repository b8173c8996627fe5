"""The sweeps of the noslip solver on one core, over rows in use and islands that have not converged.

The results are those of `noslip.sweep_all`. Rows of a kind are kept in a list, which is compacted after each sweep.
"""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.layout import Layout
from jaxsim.engine.solver.problem import elliptic
from jaxsim.engine.solver.slip import cone_block, visit_cone, visit_scalar
from jaxsim.engine.solver.sweeps import SweepProblem, friction_slots, has_pairs
from jaxsim.math.arrays import entry_at, inner, row_at, with_entry
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat


class _Blocks(NamedTuple):
    """Blocks of rows, the first `count` in use: slots (n,) and numbers; `order` lists the blocks to update.

    `x` (n, k, nv) is L^-1 J' of their rows, `products` (n, k, k) A.
    """

    count: Array
    order: Array
    slot: Array
    x: Array
    products: Array


class _State(NamedTuple):
    """State of the sweeps: L'a (nv,), forces (nslot,), and the improvement of each island."""

    y: Array
    force: Array
    improved: Array


def sweep_used(layout: Layout, iterations: int, s: SweepProblem) -> tuple[Array, Array]:
    """Run the sweeps; return forces (nslot,) and the greatest number of sweeps of any island that has rows."""
    islands, dtype = layout.nv + 1, s.y.dtype
    blocks = (_scalars(layout, s), _cones(layout, s)) if elliptic(layout) else (_scalars(layout, s),)

    def begin(i: Array, state: tuple) -> tuple:  # the first sweep removes the cost of regularisation
        improved, touched = state
        k, f = entry_at(s.label, i), entry_at(s.force, i)
        gain = 0.5 * f * f * entry_at(s.regular, i)
        return with_entry(improved, k, entry_at(improved, k) + gain), with_entry(
            touched, k, entry_at(touched, k) | entry_at(s.active, i)
        )

    improved, touched = repeat(layout.nslot, begin, (jnp.zeros(islands, dtype), jnp.zeros(islands, bool)))

    def sweep(state: tuple) -> tuple:
        turn, now, running, sweeps, blocks = state
        for b, visit in zip(blocks, (_visit_scalar, _visit_cone), strict=False):
            now = repeat(b.count, partial(visit, layout, s, b), now)
        sweeps = sweeps + running
        running = running & (now.improved * s.scale >= s.tolerance)
        now = now._replace(improved=jnp.zeros(islands, dtype))
        return turn + 1, now, running, sweeps, tuple(_going(s, b, running) for b in blocks)

    start = _State(s.y, s.force, improved)
    state = jnp.int32(0), start, jnp.ones(islands, bool), jnp.zeros(islands, jnp.int32), blocks
    unfinished = lambda state: (state[0] < iterations) & jnp.any(state[2] & touched)  # noqa: E731
    _, now, _, sweeps, _ = lax.while_loop(unfinished, sweep, state)
    return now.force, jnp.max(jnp.where(touched, sweeps, 0))


def _going(s: SweepProblem, b: _Blocks, running: Array) -> _Blocks:
    """Remove the blocks of converged islands from the list."""

    def keep(i: Array, state: tuple) -> tuple:
        count, order = state
        k = entry_at(order, i)
        going = entry_at(running, entry_at(s.label, entry_at(b.slot, k)))
        return count + going.astype(jnp.int32), with_entry(order, count, k)

    count, order = repeat(b.count, keep, (jnp.int32(0), b.order))
    return b._replace(count=count, order=order)


def _none(s: SweepProblem, most: int, rows: int) -> _Blocks:
    nv, dtype = len(s.y), s.y.dtype
    empty = lambda *shape: lax.empty(shape, dtype)  # noqa: E731
    places = jnp.arange(most, dtype=jnp.int32)
    return _Blocks(jnp.int32(0), places, places, empty(most, rows, nv), empty(most, rows, rows))


def _added(s: SweepProblem, b: _Blocks, slot: Array, rows: list[Array]) -> _Blocks:
    """Append a block with these rows of J."""
    n, x = b.count, b.x
    for k, row in enumerate(rows):
        x = lax.dynamic_update_slice(x, row[None, None], (n, np.int32(k), np.int32(0)), allow_negative_indices=False)
        x = _substituted(s.factor, x, n, np.int32(k))
    each = range(len(rows))
    products = jnp.stack([jnp.stack([inner(entry_at(x, n, i), entry_at(x, n, j)) for j in each]) for i in each])
    return _Blocks(n + 1, b.order, with_entry(b.slot, n, slot), x, with_entry(b.products, n, products))


def _substituted(factor: Array, x: Array, n: Array, k: np.int32) -> Array:
    """Replace the row b at (n, k) of x (n, k, nv) by L^-1 b, from its first nonzero entry on."""
    nv = len(factor)
    first = lax.while_loop(lambda i: (i < nv) & (entry_at(x, n, k, i) == 0), lambda i: i + 1, jnp.int32(0))

    def solve(i: Array, x: Array) -> Array:
        add = lambda j, total: total + entry_at(factor, i, j) * entry_at(x, n, k, j)  # noqa: E731
        known = lax.fori_loop(first, i, add, jnp.zeros((), x.dtype))
        value = (entry_at(x, n, k, i) - known) / entry_at(factor, i, i)
        return x.at[n, k, i].set(value, mode="promise_in_bounds", wrap_negative_indices=False)

    return lax.fori_loop(first, jnp.int32(nv), solve, x)


def _scalars(layout: Layout, s: SweepProblem) -> _Blocks:
    """Return the rows of dry friction and of pairs of pyramid edges in use."""
    slots, nv, start = friction_slots(layout), layout.nv, layout.offsets[3]
    tangents = layout.condim - 1 if has_pairs(layout) else 0
    blocks = _none(s, len(slots) + layout.ncontact * tangents, 1)

    def dry(i: Array, b: _Blocks) -> _Blocks:
        slot = entry_at(jnp.asarray(slots, jnp.int32), i)

        def add(b: _Blocks) -> _Blocks:
            row = (jnp.arange(nv) == i).astype(s.y.dtype)
            if s.general is not None:
                row = jnp.where(i < nv, row, entry_at(s.general, jnp.maximum(i - nv, 0)))
            return _added(s, b, slot, [row])

        return lax.cond(entry_at(s.active, slot), add, lambda b: b, b)

    def pair(i: Array, b: _Blocks) -> _Blocks:
        assert s.contact is not None and s.friction is not None  # pairs have friction
        c, k = i // tangents, i % tangents
        slot = start + c * layout.nfacet + 2 * k

        def add(b: _Blocks) -> _Blocks:
            return _added(s, b, slot, [2 * entry_at(s.friction, c, k) * entry_at(s.contact, c, k + 1)])

        return lax.cond(entry_at(s.active, slot + 1), add, lambda b: b, b)

    blocks = repeat(len(slots), dry, blocks)
    return repeat(layout.ncontact * tangents, pair, blocks) if tangents else blocks


def _cones(layout: Layout, s: SweepProblem) -> _Blocks:
    """Return the friction of elliptic contacts in use."""
    assert s.contact is not None  # cones have friction
    tangents = range(1, layout.condim)

    def cone(c: Array, b: _Blocks) -> _Blocks:
        slot = layout.offsets[3] + c * layout.nfacet
        active = jnp.stack([entry_at(s.active, slot + k) for k in tangents])

        def add(b: _Blocks) -> _Blocks:
            b = _added(s, b, slot, [entry_at(s.contact, c, np.int32(k)) for k in tangents])
            block = cone_block(entry_at(b.products, b.count - 1), active)
            return b._replace(products=with_entry(b.products, b.count - 1, block))

        return lax.cond(jnp.any(active), add, lambda b: b, b)

    return repeat(layout.ncontact, cone, _none(s, layout.ncontact, len(tangents)))


def _visit_scalar(layout: Layout, s: SweepProblem, b: _Blocks, i: Array, now: _State) -> _State:
    """Update a scalar row."""
    k = entry_at(b.order, i)
    slot, x = entry_at(b.slot, k), entry_at(b.x, k, np.int32(0))
    reference, value, limit = entry_at(s.aref, slot), entry_at(now.force, slot), entry_at(s.bound, slot)
    paired, other = False, slot
    if has_pairs(layout):
        paired = slot >= layout.offsets[3]
        other = slot + paired
        second = entry_at(now.force, other)
        reference = reference - jnp.where(paired, entry_at(s.aref, other), 0)
        limit = jnp.where(paired, (value + second) / 2, limit)
        value = jnp.where(paired, (value - second) / 2, value)
    new, won = visit_scalar(inner(x, now.y) - reference, entry_at(b.products, k, 0, 0), value, limit, paired)
    force = now.force
    if has_pairs(layout):
        force = with_entry(force, other, limit - new)
    force = with_entry(force, slot, jnp.where(paired, limit + new, new))
    return _State(now.y + (new - value) * x, force, _improved(s, now.improved, slot, won))


def _visit_cone(layout: Layout, s: SweepProblem, b: _Blocks, i: Array, now: _State) -> _State:
    """Update the friction of an elliptic contact."""
    k = entry_at(b.order, i)
    slot, tangents = entry_at(b.slot, k), range(layout.condim - 1)
    x = [entry_at(b.x, k, np.int32(j)) for j in tangents]
    of_tangents = lambda z: jnp.stack([entry_at(z, slot + 1 + j) for j in tangents])  # noqa: E731
    active, value = of_tangents(s.active), of_tangents(now.force)
    slip = jnp.stack([inner(row, now.y) for row in x]) - of_tangents(s.aref)
    friction = jnp.where(active, row_at(s.friction, (slot - layout.offsets[3]) // layout.nfacet), 1)
    new, won = visit_cone(slip, entry_at(b.products, k), friction, active, value, entry_at(now.force, slot))
    force, y = now.force, now.y
    for j in tangents:
        force = with_entry(force, slot + 1 + j, new[j])
        y = y + (new[j] - value[j]) * x[j]
    return _State(y, force, _improved(s, now.improved, slot, won))


def _improved(s: SweepProblem, improved: Array, slot: Array, won: Array) -> Array:
    k = entry_at(s.label, slot)
    return with_entry(improved, k, entry_at(improved, k) + won)
