"""Derivative of the solver: implicit differentiation at the minimum.

At the solution g(a, p) = M a - f - J' force(J a - aref; p) = 0, so da = -H^-1 (dg/dp) dp with H = M + J' s'' J. One
`custom_jvp` whose rule is a jvp of g at fixed a and one symmetric solve gives forward mode, reverse mode (the solve is
its own transpose) and second derivatives (the rule is made of differentiable parts), for every solver, in constant
memory. Blondel et al., "Efficient and Modular Implicit Differentiation", NeurIPS 2022.

At the solution the constraint force equals M a - f, and is differentiated in that form.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from jaxsim.core.layout import Layout
from jaxsim.engine.solver import kernel, primal
from jaxsim.engine.solver.problem import (
    ConstraintProblem,
    contacts_in_use,
    curvature,
    force,
    gradient,
    hessian,
    hessian_times,
    momentum_gap,
    residual,
)
from jaxsim.math.jvp import jvp_at, value_and_tangent
from jaxsim.math.safe import Array

SOLUTION = "qacc"  # a checkpoint policy may save this name, which avoids a second solve


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def solve(
    layout: Layout,
    limits: primal.IterationLimits,
    p: ConstraintProblem,
    settings: primal.Tolerances,
    guesses: primal.Guesses,
) -> primal.Solution:
    """Solve the problem; differentiable in the problem except `qfrc`, with the number of iterations as a float."""
    found = kernel.solve(layout, limits, p, settings, guesses)
    return found._replace(niter=found.niter.astype(found.acc.dtype))


@partial(solve.defjvp, symbolic_zeros=True)
def _solve_jvp(layout: Layout, limits: primal.IterationLimits, primals: tuple, tangents: tuple) -> tuple:
    p, settings, guesses = primals
    found = solve(layout, limits, p, settings, guesses)
    acc = checkpoint_name(found.acc, SOLUTION)
    dg = jvp_at(lambda q: gradient(layout, q, acc), p)(tangents[0])
    r = residual(layout, p, acc)
    q, at = jax.lax.stop_gradient((p, r))
    solve_fixed = partial(primal.solve_hessian, layout, hessian(layout, q, contacts_in_use(layout, q), at))
    # used by second derivatives only, of which the matrix would need the tangent of all rows
    matvec = partial(hessian_times, layout, p, curvature(layout, p, r))
    dacc = jax.lax.custom_linear_solve(matvec, -dg, lambda _, b: solve_fixed(b), symmetric=True)
    # from `acc` alone, so that a checkpoint that saves it avoids a second solve
    along, starts = (tangents[0], dacc), (tangents[0], tangents[2].free)
    residuals = lambda x: residual(layout, *x)  # noqa: E731
    r, dr = value_and_tangent(residuals, (p, acc), along)
    free, dfree = value_and_tangent(residuals, (p, guesses.free), starts)
    qfrc = p.J.transpose_times(force(layout, p, r))
    still = jnp.zeros_like
    return (
        primal.Solution(acc, found.niter, r, free, qfrc),
        primal.Solution(dacc, still(found.niter), dr, dfree, still(qfrc)),
    )


@jax.custom_jvp
def balanced(qfrc: Array, p: ConstraintProblem, acc: Array) -> Array:
    """Return the constraint force `qfrc` (nv,) at the solution `acc`, with the derivatives of M acc - qfrc_smooth."""
    return qfrc


@partial(balanced.defjvp, symbolic_zeros=True)
def _balanced_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    return balanced(*primals), jvp_at(lambda x: momentum_gap(*x), primals[1:])(tangents[1:])
