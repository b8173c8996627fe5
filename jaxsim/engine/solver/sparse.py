"""The solver of large models: Newton's method without a Hessian, for every name of `opt.solver`.

The function and its minimum are those of `problem`; no matrix of size nv x nv is formed. Newton's direction comes from
conjugate gradients on H = M + J' s'' J, whose products go through the rows as an operator, preconditioned with the
blocks of H on the diagonal, one for each tree. Directions are inexact: they leave a hundredth of the gradient, since
further digits save few Newton iterations.

On a CPU with a C compiler `used_sparse.py` implements the same method, and eliminates where that costs less.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.core.layout import Layout
from jaxsim.core.types import Backend
from jaxsim.engine.solver import kernel, primal, used_sparse
from jaxsim.engine.solver.conjugate_gradients import conjugate_gradients, needed_precision
from jaxsim.engine.solver.primal import (
    LS_NEWTON,
    Guesses,
    IterationLimits,
    SolverState,
    Tolerances,
)
from jaxsim.engine.solver.problem import (
    ConstraintProblem,
    Curvature,
    contact_blocks,
    curvature,
    gradient,
    hessian_times,
    residual,
)
from jaxsim.math.safe import Array
from jaxsim.native import world_program
from jaxsim.native.expressions import UnsupportedPrimitive
from jaxsim.native.function import CPU, NativeFunction, of_world
from jaxsim.native.world_program import WorldProgram, scalar_source

LABEL = "the solver of large models"
MOST_DOFS = 6000  # a factor by rows as wide as the model
DIRECT = 50  # most that elimination may cost, in rounds of conjugate gradients
PRECISE = 1e-10  # tolerance below which conjugate gradients are too inexact for a stiff problem
DIRECT_IF_PRECISE = 5000  # most that elimination may cost then, in rounds


def direction(
    layout: Layout,
    p: ConstraintProblem,
    c: Curvature,
    b: Array,
    tolerance: Array,
    idle: Array,
    least_gain: Array | float = 0.0,
) -> Array:
    """Compute an approximation of H^-1 b."""
    inverse = p.J.tree_hessian(p.M, c.weight, partial(contact_blocks, layout, p, c)).inverse()
    return conjugate_gradients(partial(hessian_times, layout, p, c), inverse.times, b, tolerance, idle, least_gain)


def minimise(
    layout: Layout, limits: IterationLimits, p: ConstraintProblem, settings: Tolerances, guesses: Guesses
) -> tuple[Array, Array]:
    """Compute qacc (nv,) and the number of Newton iterations."""
    limits = limits._replace(solver=limits.solver._replace(ls_relative=LS_NEWTON))
    if limits.backend == Backend.XLA:
        return by_jax(layout, limits, p, settings, guesses)
    leaves, tree = jax.tree.flatten((p, settings, guesses))
    effort = used_sparse.Effort(DIRECT, DIRECT_IF_PRECISE, PRECISE)
    acc, niter = SPARSE_SOLVE(_Plan(layout, limits, tree, effort), *leaves)
    return acc, niter


class _Plan(NamedTuple):
    """Static data of a solve, and the tree of its operands: problem, settings and guesses."""

    layout: Layout
    limits: IterationLimits
    tree: Any
    effort: used_sparse.Effort

    def again(self, operands: Sequence[Array]) -> tuple[ConstraintProblem, Tolerances, Guesses]:
        """Return the operands as problem, settings and guesses."""
        return self.tree.unflatten(operands)


def _plain(plan: _Plan, *operands: Array) -> tuple[Array, Array]:
    return by_jax(plan.layout, plan.limits, *plan.again(operands))


def _on_core(plan: _Plan, *operands: Array) -> tuple[Array, Array]:
    return used_sparse.solve(plan.layout, plan.limits, *plan.again(operands), plan.effort)


def _results(plan: _Plan, operands: Sequence[jax.ShapeDtypeStruct]) -> list[jax.ShapeDtypeStruct]:
    real = next(x.dtype for x in operands if jnp.issubdtype(x.dtype, jnp.floating))
    return [jax.ShapeDtypeStruct((plan.layout.nv,), real), jax.ShapeDtypeStruct((), jnp.int32)]


@lru_cache(maxsize=32)
def _program(plan: _Plan, operands: tuple[jax.ShapeDtypeStruct, ...]) -> WorldProgram:
    """Return the program of one world on one core. Raises UnsupportedPrimitive."""
    if plan.layout.nv > MOST_DOFS:
        raise UnsupportedPrimitive(f"more than {MOST_DOFS} dofs")
    source = scalar_source(partial(_on_core, plan), operands)
    return kernel.on_core(partial(_plain, plan), source, _results(plan, operands), LABEL, worlds_of_part=1)


def _begin(plan: _Plan, worlds: Sequence[bool], operands: Sequence[jax.ShapeDtypeStruct]) -> None:
    if plan.layout.nv <= MOST_DOFS:
        world_program.begin(_program(plan, tuple(operands)), worlds, operands)


def _on_cpu(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    return world_program.on_cpu(_program(plan, of_world(operands, worlds)), worlds, count, operands)


def by_jax(
    layout: Layout, limits: IterationLimits, p: ConstraintProblem, settings: Tolerances, guesses: Guesses
) -> tuple[Array, Array]:
    """Compute `minimise` by JAX operations."""

    def inexact(s: SolverState) -> tuple[Array, tuple[()]]:
        precision, gain = needed_precision(layout, settings, s.grad)
        return direction(layout, p, curvature(layout, p, s.r), -s.grad, precision, s.done, gain), ()

    s, _ = primal.minimise_problem(layout, limits, p, settings, guesses, (inexact, ()), jax.lax.while_loop)
    return s.acc, s.niter


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def solve(
    layout: Layout, limits: IterationLimits, p: ConstraintProblem, settings: Tolerances, guesses: Guesses
) -> tuple[Array, Array]:
    """Compute qacc (nv,), differentiable in the problem only (see `implicit`), and the number of iterations (float)."""
    acc, niter = minimise(layout, limits, p, settings, guesses)
    return acc, niter.astype(acc.dtype)


@solve.defjvp
def _solve_jvp(layout: Layout, limits: IterationLimits, primals: tuple, tangents: tuple) -> tuple:
    p, *rest = primals
    acc, niter = solve(layout, limits, p, *rest)
    _, dg = jax.jvp(lambda q: gradient(layout, q, acc), (p,), (tangents[0],))
    c = curvature(layout, p, residual(layout, p, acc))
    fixed_p, fixed_c = jax.lax.stop_gradient((p, c))
    exact = 10 * float(jnp.finfo(acc.dtype).eps)
    dacc = jax.lax.custom_linear_solve(
        partial(hessian_times, layout, p, c),
        -dg,
        lambda _, b: direction(layout, fixed_p, fixed_c, b, exact, jnp.zeros((), bool)),
        symmetric=True,
    )
    return (acc, niter), (dacc, jnp.zeros_like(niter))


SPARSE_SOLVE = NativeFunction(
    name="sparse_solve",
    plain=_plain,
    results=_results,
    programs={CPU: _on_cpu},
    begin=_begin,
    label=lambda _: LABEL,
)
