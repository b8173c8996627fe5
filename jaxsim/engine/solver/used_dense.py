"""The dense solvers on one core, over the rows in use: a scalar function of one world with loops of dynamic length."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.layout import Layout
from jaxsim.engine.solver import primal
from jaxsim.engine.solver.lower_rows import LowerRows, copied, factorised, first_columns, substituted
from jaxsim.engine.solver.problem import ConstraintProblem
from jaxsim.engine.solver.used_rows import Blocks, Rows, hessian, in_slots, minimise, rows_in_use
from jaxsim.math.arrays import entry_at, with_entry
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat


def solve(
    layout: Layout,
    limits: primal.IterationLimits,
    p: ConstraintProblem,
    settings: primal.Tolerances,
    guesses: primal.Guesses,
) -> primal.Solution:
    """Solve the problem as `primal.solve` does."""
    a = rows_in_use(layout, p, partial(_packed, p.J.general[:, None]), partial(_packed, p.J.contact))
    matrix, places = p.M.matrix, jnp.arange(layout.nv, dtype=jnp.int32) * layout.nv
    p = p._replace(M=LowerRows(matrix.reshape(-1), first_columns(matrix), places, layout.nv))
    directions = METHODS[limits.solver.native_id](layout, a, p)
    s, free = minimise(layout, limits, a, p, settings, guesses, directions)
    return primal.Solution(s.acc, s.niter, in_slots(a, s.r), in_slots(a, free), s.momentum - p.qfrc_smooth - s.grad)


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
            return n + jnp.stack(used).any().astype(jnp.int32), with_entry(column, end + n, v)

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
    none = Blocks(dim, count, index, jnp.int32(0), ints, ints, column, value)
    return Blocks(dim, count, index, *none.each(add, none[3:]))


def newton_directions(layout: Layout, a: Rows, p: ConstraintProblem) -> tuple[Callable, tuple[()]]:
    """Return the directions of `primal.newton_directions`."""

    def direction(s: primal.SolverState) -> tuple[Array, Any]:
        h = hessian(layout, a, copied(p.M, p.M.place, lax.empty(p.M.value.shape, p.M.value.dtype)), s.r)
        return substituted(factorised(h), -s.grad), ()

    return direction, ()


def cg_directions(layout: Layout, a: Rows, p: ConstraintProblem) -> tuple[Callable, tuple[Array, Array]]:
    """Return the directions of `primal.cg_directions`."""
    nothing = jnp.zeros_like(p.qfrc_smooth)
    precondition = partial(substituted, factorised(copied(p.M, p.M.place, lax.empty(p.M.value.shape, p.M.value.dtype))))
    return partial(primal.cg_direction, precondition, p.M.times), (nothing, nothing)


METHODS: dict[int | None, Callable[..., tuple[Callable, Any]]] = {0: newton_directions, 1: cg_directions}
