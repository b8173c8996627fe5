"""The sweeps of the noslip solver over the rows in use alone, world by world: one kernel of a CPU.

Rows are visited in *blocks*: a row of dry friction, a pair of opposing edges of a pyramid, or the friction of an
elliptic contact. A list holds the blocks in use. After each sweep it keeps those whose island goes on, so that the work
is that of the rows visited. Loops have the length of the list, which in a kernel costs nothing to start.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.layout import Layout
from jaxsim.engine.solver.problem import elliptic
from jaxsim.engine.solver.slip import cone_block, visit_cone, visit_scalar
from jaxsim.engine.solver.sweeps import SweepProblem, friction_slots, has_pairs
from jaxsim.math.arrays import row_at, with_row
from jaxsim.math.safe import Array
from jaxsim.xla.fusion import one_kernel_of_tables


class Kind(NamedTuple):
    """`size` blocks of one kind with `width` rows each; functions of the number of a block.

    `first` is its first slot, whose label is that of its island, and `present` tells whether it has rows. `jacobian`
    gives (k, nv). `visit(i, z, products, force)` has z = J a (k,) and the inner products (k, k) of its rows L^-1 J'; it
    gives the changes of its forces (k,), the forces of its slots, and what the visit improved.
    """

    size: int
    width: int
    first: Callable[[Array], Array]
    present: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    visit: Callable[[Array, Array, Array, Array], tuple[Array, Array, Array]]


class Used(NamedTuple):
    """The first `count` entries of `order` (n,) are the blocks in use."""

    order: Array
    count: Array


class State(NamedTuple):
    """y (nv,), forces (nslot,); of each island whether it goes on, its improvement and its sweeps; blocks; turns."""

    y: Array
    force: Array
    running: Array
    improved: Array
    sweeps: Array
    used: tuple[Used, ...]
    turn: Array


def sweep_batch(layout: Layout, iterations: int, s: SweepProblem) -> tuple[Array, Array]:
    """Forces (size, nslot) and the greatest number of sweeps of any island (size,) of a batch of worlds."""
    leaves, tree = jax.tree.flatten(s)

    def noslip_sweeps(*batch: Array) -> tuple[Array, Array]:
        return _worlds(partial(_sweep, layout, iterations), tree.unflatten(batch))

    return one_kernel_of_tables(noslip_sweeps)(*leaves)


def _worlds(sweep: Callable[[SweepProblem], tuple[Array, Array]], s: SweepProblem) -> tuple[Array, Array]:
    def world(i: Array, out: tuple[Array, Array]) -> tuple[Array, Array]:
        return jax.tree.map(lambda x, new: with_row(x, i, new), out, sweep(jax.tree.map(lambda x: row_at(x, i), s)))

    size = len(s.force)
    return lax.fori_loop(0, size, world, (jnp.zeros_like(s.force), jnp.zeros(size, jnp.int32)))


def _sweep(layout: Layout, iterations: int, s: SweepProblem) -> tuple[Array, Array]:
    """Forces (nslot,) and the greatest number of sweeps of any island."""
    kinds = _kinds(layout, s)
    state, touched = _start(layout, s, kinds)
    columns = s.factor.T
    rows = [_rows(kind, used, columns) for kind, used in zip(kinds, state.used, strict=True)]

    def unfinished(state: State) -> Array:
        return jnp.any(state.running & touched) & (state.turn < iterations)

    def sweep(state: State) -> State:
        for kind, x, used in zip(kinds, rows, state.used, strict=True):
            state = lax.fori_loop(0, used.count, partial(_visit, s, kind, x, used), state)
        running = state.running & (state.improved * s.scale >= s.tolerance)
        still = [
            _keep(used, lambda i, kind=kind: row_at(running, row_at(s.label, kind.first(i))))
            for kind, used in zip(kinds, state.used, strict=True)
        ]
        sweeps = state.sweeps + state.running.astype(jnp.int32)
        return State(
            state.y, state.force, running, jnp.zeros_like(state.improved), sweeps, tuple(still), state.turn + 1
        )

    state = lax.while_loop(unfinished, sweep, state)
    return state.force, jnp.max(jnp.where(touched, state.sweeps, 0))


def _visit(s: SweepProblem, kind: Kind, rows: tuple[Array, Array], used: Used, j: Array, state: State) -> State:
    i = row_at(used.order, j)
    x = row_at(rows[0], i)
    moved, new, won = kind.visit(i, jnp.sum(x * state.y, axis=1), row_at(rows[1], i), state.force)
    slot = kind.first(i)
    label = row_at(s.label, slot)
    return state._replace(
        y=state.y + jnp.sum(moved[:, None] * x, axis=0),
        force=lax.dynamic_update_slice_in_dim(state.force, new, slot, 0),
        improved=with_row(state.improved, label, row_at(state.improved, label) + won),
    )


def _start(layout: Layout, s: SweepProblem, kinds: list[Kind]) -> tuple[State, Array]:
    """The state before the first sweep, and which islands have rows.

    The first sweep takes away the cost of regularisation, which counts as its improvement.
    """

    def add(i: Array, sums: tuple[Array, Array]) -> tuple[Array, Array]:
        gain, touched = sums
        label, force = row_at(s.label, i), row_at(s.force, i)
        gain = with_row(gain, label, row_at(gain, label) + 0.5 * force * force * row_at(s.regular, i))
        return gain, with_row(touched, label, row_at(touched, label) | row_at(s.active, i))

    islands = layout.nv + 1
    none = jnp.zeros(islands, bool)
    gain, touched = lax.fori_loop(0, layout.nslot, add, (jnp.zeros(islands, s.y.dtype), none))
    used = tuple(
        _keep(Used(lax.iota(jnp.int32, kind.size), jnp.full((), kind.size, jnp.int32)), kind.present) for kind in kinds
    )
    count = jnp.zeros(islands, jnp.int32)
    return State(s.y, s.force, ~none, gain, count, used, jnp.zeros((), jnp.int32)), touched


def _keep(used: Used, kept: Callable[[Array], Array]) -> Used:
    """The blocks in use that are kept, in their order."""

    def step(j: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        order, count = state
        i = row_at(order, j)
        return with_row(order, count, i), count + kept(i).astype(jnp.int32)

    return Used(*lax.fori_loop(0, used.count, step, (used.order, jnp.zeros((), jnp.int32))))


def _rows(kind: Kind, used: Used, columns: Array) -> tuple[Array, Array]:
    """L^-1 J' of the blocks in use (n, k, nv) and its inner products (n, k, k)."""
    nv = len(columns)
    col = np.arange(nv)

    def substitute(x: Array) -> Array:
        def step(d: Array, x: Array) -> Array:
            column = row_at(columns, d)
            found = lax.dynamic_slice_in_dim(x, d, 1, axis=1) / row_at(column, d)
            return jnp.where(col == d, found, x - found * column)  # of the column nothing stands before its diagonal

        return lax.fori_loop(0, nv, step, x)

    def block(j: Array, out: tuple[Array, Array]) -> tuple[Array, Array]:
        i = row_at(used.order, j)
        x = substitute(kind.jacobian(i))
        return with_row(out[0], i, x), with_row(out[1], i, jnp.sum(x[:, None] * x[None], axis=2))

    zeros = partial(jnp.zeros, dtype=columns.dtype)
    shape = (kind.size, kind.width)
    return lax.fori_loop(0, used.count, block, (zeros((*shape, nv)), zeros((*shape, kind.width))))


def _kinds(layout: Layout, s: SweepProblem) -> list[Kind]:
    """All kinds of blocks in MuJoCo's order."""
    kinds = [_dry(layout, s)]
    if has_pairs(layout):
        kinds.append(_pairs(layout, s))
    if elliptic(layout):
        kinds.append(_cones(layout, s))
    return kinds


def _dry(layout: Layout, s: SweepProblem) -> Kind:
    slots = friction_slots(layout)
    slot = lambda i: row_at(jnp.asarray(slots, jnp.int32), i)  # noqa: E731

    def jacobian(i: Array) -> Array:
        unit = (np.arange(layout.nv) == i).astype(s.factor.dtype)
        if s.general is None:
            return unit[None]
        return jnp.where(i < layout.nv, unit, row_at(s.general, jnp.maximum(i - layout.nv, 0)))[None]

    def visit(i: Array, z: Array, products: Array, force: Array) -> tuple[Array, Array, Array]:
        at = slot(i)
        value = row_at(force, at)
        new, won = visit_scalar(z[0] - row_at(s.aref, at), products[0, 0], value, row_at(s.bound, at), False)
        return (new - value)[None], new[None], won

    return Kind(len(slots), 1, slot, lambda i: row_at(s.active, slot(i)), jacobian, visit)


def _pairs(layout: Layout, s: SweepProblem) -> Kind:
    tangents = layout.condim - 1
    slot = lambda i: layout.offsets[3] + 2 * i  # noqa: E731

    def jacobian(i: Array) -> Array:
        c, k = i // tangents, i % tangents
        return 2 * row_at(row_at(s.friction, c), k) * row_at(row_at(s.contact, c), 1 + k)[None]

    def visit(i: Array, z: Array, products: Array, force: Array) -> tuple[Array, Array, Array]:
        refs, pair = (lax.dynamic_slice_in_dim(x, slot(i), 2) for x in (s.aref, force))
        value, middle = 0.5 * (pair[0] - pair[1]), 0.5 * (pair[0] + pair[1])
        new, won = visit_scalar(z[0] - (refs[0] - refs[1]), products[0, 0], value, middle, True)
        return (new - value)[None], jnp.stack([middle + new, middle - new]), won

    return Kind(layout.ncontact * tangents, 1, slot, lambda i: row_at(s.active, slot(i) + 1), jacobian, visit)


def _cones(layout: Layout, s: SweepProblem) -> Kind:
    width = layout.condim
    slot = lambda i: layout.offsets[3] + width * i  # noqa: E731
    tangents = lambda x, i: lax.dynamic_slice_in_dim(x, slot(i), width)[1:]  # noqa: E731

    def visit(i: Array, z: Array, products: Array, force: Array) -> tuple[Array, Array, Array]:
        active, normal, value = tangents(s.active, i), row_at(force, slot(i)), tangents(force, i)
        friction = jnp.where(active, row_at(s.friction, i), 1)
        block = cone_block(products, active)
        new, won = visit_cone(z - tangents(s.aref, i), block, friction, active, value, normal)
        return new - value, jnp.concatenate([normal[None], new]), won

    return Kind(
        layout.ncontact,
        width - 1,
        slot,
        lambda i: jnp.any(tangents(s.active, i)),
        lambda i: row_at(s.contact, i)[1:],
        visit,
    )
