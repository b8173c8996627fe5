"""The derivative of the solver: implicit differentiation at the minimum.

At the solution g(a, p) = M a - f - J' force(J a - aref; p) = 0, so da = -H^-1 (dg/dp) dp with H = M + J' s'' J. One
`custom_jvp` whose rule is a jvp of g at fixed a and one symmetric solve gives forward mode, reverse mode (the solve is
its own transpose) and second derivatives (the rule is made of differentiable parts), for every solver, in constant
memory. Blondel et al., "Efficient and Modular Implicit Differentiation", NeurIPS 2022.

There the force of the constraints is what momentum leaves for them, M a - f, and is differentiated as such.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from jaxsim.core.layout import Layout
from jaxsim.engine.solver import kernel, primal
from jaxsim.engine.solver.problem import ConstraintProblem, curvature, gradient, hessian, momentum_gap, residual
from jaxsim.math.arrays import dot
from jaxsim.math.safe import Array
from jaxsim.xla.linalg import solve_positive

SOLUTION = "qacc"  # the name under which a checkpoint policy may keep the answer, so that nothing is solved again


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def solve(
    layout: Layout,
    limits: primal.IterationLimits,
    p: ConstraintProblem,
    settings: primal.Tolerances,
    factor: Array,
    start: primal.InitialGuess,
) -> tuple[Array, Array]:
    """qacc (nv,), differentiable in the problem alone, and the number of iterations as a float."""
    if limits.kernel:
        acc, niter = kernel.solve(layout, limits, p, settings, start)
    else:
        acc, niter = primal.solve(layout, limits, p, settings, factor, start)
    return acc, niter.astype(acc.dtype)


@solve.defjvp
def _solve_jvp(layout: Layout, limits: primal.IterationLimits, primals: tuple, tangents: tuple) -> tuple:
    p, *rest = primals
    acc, niter = solve(layout, limits, p, *rest)
    acc = checkpoint_name(acc, SOLUTION)
    _, dg = jax.jvp(lambda q: gradient(layout, q, acc), (p,), (tangents[0],))
    r = residual(layout, p, acc)
    h = hessian(layout, p, curvature(layout, p, r))  # for derivatives of derivatives; one alone does not compute it
    fixed = primal.hessian_of_used(layout, *jax.lax.stop_gradient((p, r)))
    dacc = jax.lax.custom_linear_solve(partial(dot, h), -dg, lambda _, b: solve_positive(fixed, b), symmetric=True)
    return (acc, niter), (dacc, jnp.zeros_like(niter))


@jax.custom_jvp
def balanced(qfrc: Array, p: ConstraintProblem, acc: Array) -> Array:
    """The force of constraints `qfrc` (nv,) at the solution `acc`, with the derivatives of M acc - qfrc_smooth."""
    return qfrc


@balanced.defjvp
def _balanced_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    return balanced(*primals), jax.jvp(momentum_gap, primals[1:], tangents[1:])[1]
