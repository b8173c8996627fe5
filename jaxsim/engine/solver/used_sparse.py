"""The solver of large models on one core, over the rows in use: a scalar function with loops of dynamic length.

M comes by trees, general rows at static columns, contacts as wrenches that are projected on the dofs of their bodies'
chains. Trees that no row touches have their unconstrained accelerations, since M does not couple trees. The problem is
that of the others, numbered anew in the order of `elimination`: a rank is a dof's place in that order.

Newton's direction comes from elimination. Where that costs too much, it comes from conjugate gradients on H, with the
blocks of H of each tree as preconditioner.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.layout import Layout
from jaxsim.engine.solver import primal
from jaxsim.engine.solver.conjugate_gradients import conjugate_gradients, needed_precision
from jaxsim.engine.solver.elimination import elimination_order
from jaxsim.engine.solver.lower_rows import MOST_PRODUCTS, Factor, LowerRows, copied, factorised, repeat_on, substituted
from jaxsim.engine.solver.problem import ConstraintProblem
from jaxsim.engine.solver.used_rows import (
    Blocks,
    Rows,
    add_transpose_times,
    block_times,
    chosen,
    curvature_of_contact,
    hessian,
    minimise,
    rows_in_use,
    scalar_weights,
)
from jaxsim.math.arrays import entry_at, with_entry
from jaxsim.math.safe import Array
from jaxsim.native.linalg import RIDGES
from jaxsim.xla.loops import repeat


class Effort(NamedTuple):
    """The most that elimination may cost, in rounds of conjugate gradients, for a tolerance `below` a number or not."""

    usual: int
    precise: int
    below: float


class _Dofs(NamedTuple):
    """Static tables of dofs: `rank` of each, the dof of each rank (`order`), and the first rank of each rank's tree.

    `parent` is the dof before each one on its path, `last` the last dof that moves each body; -1 for none.
    """

    rank: np.ndarray
    order: np.ndarray
    root: np.ndarray
    parent: np.ndarray
    last: np.ndarray


def solve(
    layout: Layout,
    limits: primal.IterationLimits,
    p: ConstraintProblem,
    settings: primal.Tolerances,
    guesses: primal.Guesses,
    effort: Effort,
) -> tuple[Array, Array]:
    """Compute qacc (nv,) and the number of iterations, as `sparse.by_jax` does."""
    columns = np.asarray(layout.columns if layout.ngeneral else np.zeros((0, 1), int))
    parent, last = p.J.chains()
    order, products = elimination_order(columns, parent)
    dofs = _dofs(order, parent, last)
    ranks = np.where(columns < 0, -1, dofs.rank[np.maximum(columns, 0)]).astype(np.int32)
    a = rows_in_use(layout, p, partial(_general, layout, ranks, p), partial(_contacts, layout, dofs, p))
    a, q, own, index = _restricted(dofs, a, p, guesses)
    rounds = jnp.where(settings.tolerance < effort.below, effort.precise, effort.usual)
    expected = int(products / (4 * layout.nv + 2 * np.count_nonzero(columns >= 0)))
    directions = partial(_direction, layout, a, q, settings, rounds), min(expected, 1 << 30) > rounds
    s, _ = minimise(layout, limits, a, q, settings, own, directions)
    put = lambda i, acc: with_entry(acc, entry_at(index, i), entry_at(s.acc, i))  # noqa: E731
    return repeat(q.M.count, put, guesses.free), s.niter


def _dofs(order: np.ndarray, parent: np.ndarray, last: np.ndarray) -> _Dofs:
    rank, root = np.argsort(order), np.arange(len(order))
    for r, v in enumerate(order):
        if parent[v] >= 0:
            root[r] = root[rank[parent[v]]]
    return _Dofs(*(np.asarray(x, np.int32) for x in (rank, order, root, parent, last)))


# ---- rows


Visit = Callable[[Array, list[Array], Any], Any]  # of the rank of a dof, the values of a block's rows, and a state


def _built(
    walk: Callable[[Array, Visit, Any], Any], dim: int, width: int, nv: int, dtype: Any, count: Array, index: Array
) -> Blocks:
    """Return blocks of at most `width` columns; `walk(block, visit, state)` visits dofs, which may come again."""

    def add(k: Array, state: tuple) -> tuple:
        end, start, size, column, value, place = state
        block = entry_at(index, k)

        def touch(v: Array, _: list[Array], state: tuple) -> tuple:
            n, column, place = state
            fresh = entry_at(place, v) < 0
            return n + fresh, with_entry(column, end + n, v), with_entry(place, v, 0)

        n, column, place = walk(block, touch, (jnp.int32(0), column, place))
        column = _sorted(column, end, n)
        place = repeat(n, lambda i, x: with_entry(x, entry_at(column, end + i), i), place)
        zero = jnp.zeros((), dtype)
        value = lax.fori_loop(dim * end, dim * (end + n), lambda i, x: with_entry(x, i, zero), value)

        def put(v: Array, values: list[Array], value: Array) -> Array:
            at = dim * end + entry_at(place, v)
            for d, x in enumerate(values):
                value = with_entry(value, at + d * n, entry_at(value, at + d * n) + x)
            return value

        value = walk(block, put, value)
        place = repeat(n, lambda i, x: with_entry(x, entry_at(column, end + i), -1), place)
        return end + n, with_entry(start, k, end), with_entry(size, k, n), column, value, place

    ints, column = lax.empty(index.shape, jnp.int32), lax.empty((len(index) * width + 1,), jnp.int32)
    value = lax.empty((len(index) * dim * width,), dtype)
    none = Blocks(dim, count, index, jnp.int32(0), ints, ints, column, value)
    return Blocks(dim, count, index, *none.each(add, (*none[3:], jnp.full((nv,), -1, jnp.int32)))[:-1])


def _sorted(x: Array, begin: Array, count: Array) -> Array:
    """Sort `count` numbers from `begin` on by insertion."""

    def insert(i: Array, x: Array) -> Array:
        own = entry_at(x, begin + i)
        above = lambda s: (s[0] > 0) & (entry_at(s[1], begin + jnp.maximum(s[0] - 1, 0)) > own)  # noqa: E731
        shift = lambda s: (s[0] - 1, with_entry(s[1], begin + s[0], entry_at(s[1], begin + s[0] - 1)))  # noqa: E731
        j, x = lax.while_loop(above, shift, (i, x))
        return with_entry(x, begin + j, own)

    return repeat(count, insert, x)


def _general(layout: Layout, ranks: np.ndarray, p: ConstraintProblem, count: Array, index: Array) -> Blocks:
    """Return the general rows in use, over the ranks of their static columns."""
    table, jacobian = jnp.asarray(ranks), p.J.general

    def walk(block: Array, visit: Visit, state: Any) -> Any:
        def entry(i: Array, state: Any) -> Any:
            v, x = entry_at(table, block, i), entry_at(jacobian, block, i)
            return lax.cond((v >= 0) & (x != 0), lambda s: visit(v, [x], s), lambda s: s, state)

        return repeat(ranks.shape[1], entry, state)

    return _built(walk, 1, ranks.shape[1], layout.nv, p.D.dtype, count, index)


def _contacts(layout: Layout, dofs: _Dofs, p: ConstraintProblem, count: Array, index: Array) -> Blocks:
    """Return the contacts in use, over the ranks of the dofs that move their bodies."""
    wrench, body, cdof = p.J.contact
    rank, parent, last = map(jnp.asarray, (dofs.rank, dofs.parent, dofs.last))

    def walk(block: Array, visit: Visit, state: Any) -> Any:
        def side(k: Array, state: Any) -> Any:
            of = lambda d, i: entry_at(wrench, block, np.int32(d), k, np.int32(i))  # noqa: E731

            def link(state: tuple) -> tuple:
                v, state = state
                axis = [entry_at(cdof, v, np.int32(i)) for i in range(6)]
                values = [sum(of(d, i) * x for i, x in enumerate(axis)) for d in range(layout.condim)]
                return entry_at(parent, v), visit(entry_at(rank, v), values, state)

            def chain(state: Any) -> Any:
                return lax.while_loop(lambda s: s[0] >= 0, link, (entry_at(last, entry_at(body, block, k)), state))[1]

            acts = jnp.stack([of(d, i) != 0 for d in range(layout.condim) for i in range(6)]).any()
            return lax.cond(acts, chain, lambda s: s, state)

        return repeat(layout.nside, side, state)

    width = min(layout.nv, layout.nside * _longest_chain(dofs.parent))
    return _built(walk, layout.condim, width, layout.nv, p.D.dtype, count, index)


def _longest_chain(parent: np.ndarray) -> int:
    """Return the largest number of dofs on a path to the root."""
    depth = np.zeros(len(parent) + 1, int)
    for v, above in enumerate(parent):
        depth[v] = depth[above] + 1 if above >= 0 else 1
    return int(depth.max())


def _restricted(
    dofs: _Dofs, a: Rows, p: ConstraintProblem, guesses: primal.Guesses
) -> tuple[Rows, ConstraintProblem, primal.Guesses, Array]:
    """Return the problem of the trees that rows in use touch, and the dofs of its numbers.

    Dofs of a tree follow each other, so that its rows of M stay where they are.
    """
    rank, order, root = map(jnp.asarray, dofs[:3])
    keep = lambda r, number: with_entry(number, entry_at(root, r), 0)  # noqa: E731
    number = jnp.full(rank.shape, -1, jnp.int32)
    number = repeat(a.units, lambda k, x: keep(entry_at(rank, entry_at(a.dof, k)), x), number)
    for b in (a.general, a.contact):
        number = repeat(b.total, lambda i, x, b=b: keep(entry_at(b.column, i), x), number) if len(b.index) else number

    def add(r: Array, state: tuple) -> tuple:
        n, number, index = state
        kept = entry_at(number, entry_at(root, r)) >= 0
        number = with_entry(number, r, jnp.where(kept, n, -1))
        return n + kept, number, with_entry(index, n, entry_at(order, r))

    n, number, index = repeat(len(rank), add, (jnp.int32(0), number, lax.empty(rank.shape, jnp.int32)))
    renumber = lambda i, x: with_entry(x, i, entry_at(number, entry_at(x, i)))  # noqa: E731
    of_unit = lambda k, x: with_entry(x, k, entry_at(number, entry_at(rank, entry_at(x, k))))  # noqa: E731
    general, contact = (
        b._replace(column=repeat(b.total, renumber, b.column)) if len(b.index) else b for b in (a.general, a.contact)
    )
    a = a._replace(dof=repeat(a.units, of_unit, a.dof), general=general, contact=contact)
    value, *tables = p.M.lower_rows()
    tables = [jnp.asarray(x, jnp.int32) for x in tables]

    def move(i: Array, state: tuple) -> tuple:
        v = entry_at(index, i)
        ends = [entry_at(x, v) + sign * (v - i) for x, sign in zip(tables, (-1, 1), strict=True)]
        return tuple(with_entry(x, i, y) for x, y in zip(state, ends, strict=True))

    first, place = repeat(n, move, (lax.empty(rank.shape, jnp.int32),) * 2)
    given = [x for x in (p.qfrc_smooth, *guesses) if x is not None]
    smooth, *own = chosen(n, index, *given, fresh=jnp.zeros)
    p = p._replace(M=LowerRows(value, first, place, n), qfrc_smooth=smooth)
    return a, p, primal.Guesses(own[0], own[1] if len(own) > 1 else None), index


# ---- the direction


def _direction(
    layout: Layout,
    a: Rows,
    p: ConstraintProblem,
    settings: primal.Tolerances,
    rounds: Array,
    s: primal.SolverState,
) -> tuple[Array, Array]:
    """Return Newton's direction, exact or inexact; `s.last` is whether elimination costs too much."""
    h: LowerRows = p.M
    nv, n, eps = layout.nv, h.count, jnp.finfo(p.D.dtype).eps
    whole = jnp.arange(nv, dtype=jnp.int32) * n
    most = jnp.minimum(rounds * _products_of_round(a, h).astype(p.D.dtype), MOST_PRODUCTS).astype(jnp.int32)

    def attempt(state: tuple) -> tuple:
        _, trees, count, ridge, memory, *_ = state
        place, least = jnp.where(trees, h.place, whole), jnp.where(trees, h.first, 0)
        full = hessian(layout, a, copied(h, place, memory), s.r, least)
        full = repeat_on(full, n, lambda v, x: x.with_diagonal(v, x.diagonal(v) * (1 + ridge)))
        f = factorised(full, jnp.where(trees, MOST_PRODUCTS, most))
        early = f.left < 0
        count = jnp.where(early, 0, count + 1)
        ridge = jnp.where(early, 0, jnp.where(ridge > 0, 8 * ridge, 2 * n * eps))
        going = early | (~f.positive & (count < RIDGES))
        return going, trees | early, count, ridge.astype(p.D.dtype), f.lower.value, f.lower.first, f.inverse

    real = lambda *shape: lax.empty(shape, p.D.dtype)  # noqa: E731
    start = jnp.bool_(True), s.last, jnp.int32(0), jnp.zeros((), p.D.dtype)
    start = *start, real(max(nv * nv, h.value.size)), lax.empty((nv,), jnp.int32), real(nv)
    _, trees, _, _, value, first, inverse = lax.while_loop(lambda state: state[0], attempt, start)
    f = Factor(LowerRows(value, first, jnp.where(trees, h.place, whole), n), inverse, most, trees)

    def inexact(z: Array) -> Array:
        precision, gain = needed_precision(layout, settings, s.grad)
        times = partial(_hessian_times, a, h, *_curvature(layout, a, s.r))
        return conjugate_gradients(times, partial(substituted, f), -s.grad, precision, jnp.bool_(False), gain, z)

    return lax.cond(trees, inexact, lambda z: z, substituted(f, -s.grad)), trees


def _products_of_round(a: Rows, h: LowerRows) -> Array:
    """Return about how many products a round of conjugate gradients takes."""
    of_row = lambda v, total: total + 4 * (v + 1 - entry_at(h.first, v))  # noqa: E731
    return repeat(h.count, of_row, 2 * (a.general.total + a.contact.dim * a.contact.total))


def _curvature(layout: Layout, a: Rows, r: Array) -> tuple[Array, Array]:
    """Return s'' of the scalar rows before those of contacts, and of the contacts in their frames."""
    size = a.contact.dim**2

    def contact(k: Array, x: Array) -> Array:
        return lax.dynamic_update_slice(x, curvature_of_contact(layout, a, r, k).reshape(1, size), (k, np.int32(0)))

    return scalar_weights(a, r), a.contact.each(contact, lax.empty((len(a.contact.index), size), r.dtype))


def _hessian_times(a: Rows, h: LowerRows, weight: Array, blocks: Array, x: Array) -> Array:
    """Compute (M + J' s'' J) x."""

    def unit(k: Array, y: Array) -> Array:
        v = entry_at(a.dof, k)
        return with_entry(y, v, entry_at(y, v) + entry_at(weight, k) * entry_at(x, v))

    def general(k: Array, y: Array) -> Array:
        own = entry_at(weight, a.units + k)
        add = lambda y: add_transpose_times(a.general, k, own * block_times(a.general, k, x), y)  # noqa: E731
        return lax.cond(own != 0, add, lambda y: y, y)

    def contact(k: Array, y: Array) -> Array:
        def add(y: Array) -> Array:
            frame, dims = block_times(a.contact, k, x), range(a.contact.dim)
            entry = lambda d, e: entry_at(blocks, k, np.int32(d * a.contact.dim + e))  # noqa: E731
            push = jnp.stack([sum(entry(d, e) * frame[e] for e in dims) for d in dims])
            return add_transpose_times(a.contact, k, push, y)

        return lax.cond(entry_at(blocks, k, np.int32(0)) != 0, add, lambda y: y, y)

    y = repeat(a.units, unit, h.times(x))
    return a.contact.each(contact, a.general.each(general, y))
