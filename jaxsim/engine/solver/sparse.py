"""The solver of large models: Newton's method without a Hessian, for every name of `opt.solver`.

The function and its minimum are those of `problem`; no matrix of size nv x nv is formed. Newton's direction comes from
conjugate gradients on H = M + J' s'' J, whose products go through the rows as an operator, preconditioned with the
blocks of H on the diagonal, one for each tree. Directions are inexact: they leave a hundredth of the gradient, since
further digits save few Newton iterations.

On a CPU with a C compiler `sparse_worlds.c` implements the same method, and eliminates where that costs less.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.layout import Layout
from jaxsim.core.types import Backend, ConstraintType
from jaxsim.engine.solver import kernel
from jaxsim.engine.solver.elimination import elimination_order
from jaxsim.engine.solver.linesearch import ahead, line_search
from jaxsim.engine.solver.primal import Guesses, IterationLimits, Tolerances, first_guess
from jaxsim.engine.solver.problem import (
    ConstraintProblem,
    Curvature,
    along,
    contact_blocks,
    costs,
    curvature,
    force,
    residual,
)
from jaxsim.math.arrays import einsum
from jaxsim.math.safe import Array, divide, norm
from jaxsim.native import compiler as native
from jaxsim.native.expressions import UnsupportedPrimitive
from jaxsim.native.function import CPU, NativeFunction
from jaxsim.native.linalg import RIDGES

FORCING = 1e-2  # residual gradient of an inexact direction, relative to the gradient
QUADRATIC = 1e-6  # the same for equalities only, where one direction leads to the minimum
SPARE = 0.3  # least residual gradient of a direction, relative to the tolerance
MAX_CG_ITERATIONS = 200  # for one direction
MOST_DOFS = 6000  # a factor by rows as wide as the model
DIRECT = 50  # most that elimination may cost, in rounds of conjugate gradients
PRECISE = 1e-10  # tolerance below which conjugate gradients are too inexact for a stiff problem
DIRECT_IF_PRECISE = 5000  # most that elimination may cost then, in rounds
LS_RELATIVE = 1e-2  # residual derivative of the line search, relative to that at its start


class SolverState(NamedTuple):
    acc: Array
    momentum: Array  # M a
    r: Array
    grad: Array
    niter: Array
    done: Array


def hessian_times(layout: Layout, p: ConstraintProblem, c: Curvature, x: Array) -> Array:
    """Compute (M + J' s'' J) x."""
    z = p.J.times(x)
    weighted = c.weight * z
    if c.blocks is not None:
        start = layout.offsets[3]
        frame = einsum("cij,cj->ci", c.blocks, z[start:].reshape(layout.ncontact, layout.condim))
        weighted = jnp.concatenate([weighted[:start], frame.reshape(-1)])
    return p.M.times(x) + p.J.transpose_times(weighted)


def conjugate_gradients(
    times, precondition, b: Array, tolerance: Array, rounds: int, idle: Array, least_gain: Array | float = 0.0
) -> Array:
    """Solve A x = b to a relative `tolerance` in the norm of the preconditioner; zero for a world that is `idle`.

    Also stops after a round that lowers x' A x / 2 - b' x by no more than `least_gain`.
    """

    def unfinished(s: tuple) -> Array:
        _, _, _, rho, count, gain = s
        return (rho > enough) & (gain > least_gain) & (count < rounds) & ~idle

    def go(s: tuple) -> tuple:
        x, r, q, rho, count, _ = s
        aq = times(q)
        alpha = divide(rho, jnp.sum(q * aq))
        x, r = x + alpha * q, r - alpha * aq
        z = precondition(r)
        new = jnp.sum(r * z)
        return x, r, z + divide(new, rho) * q, new, count + 1, 0.5 * alpha * rho

    z = precondition(b)
    rho = jnp.sum(b * z)
    enough = tolerance**2 * rho
    start = (jnp.zeros_like(b), b, z, rho, jnp.zeros((), jnp.int32), jnp.full_like(rho, jnp.inf))
    return jax.lax.while_loop(unfinished, go, start)[0]


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
    return conjugate_gradients(
        partial(hessian_times, layout, p, c), inverse.times, b, tolerance, MAX_CG_ITERATIONS, idle, least_gain
    )


def minimise(
    layout: Layout, limits: IterationLimits, p: ConstraintProblem, settings: Tolerances, guesses: Guesses
) -> tuple[Array, Array]:
    """Compute qacc (nv,) and the number of Newton iterations."""
    if limits.backend == Backend.XLA:
        return by_jax(layout, limits, p, settings, guesses)
    leaves, tree = jax.tree.flatten((p, settings, guesses))
    again = lambda values: tree.unflatten(values)  # noqa: E731  (JAX cannot keep the bound method)
    acc, niter = SPARSE_SOLVE(_Plan(layout, limits, again), *leaves)
    return acc, niter


class _Plan(NamedTuple):
    """Static data of a solve, and its operands as a problem, settings and guesses."""

    layout: Layout
    limits: IterationLimits
    again: Callable[[Sequence[Array]], tuple[ConstraintProblem, Tolerances, Guesses]]


def _plain(plan: _Plan, *operands: Array) -> tuple[Array, Array]:
    return by_jax(plan.layout, plan.limits, *plan.again(operands))


def _results(plan: _Plan, operands: Sequence[jax.ShapeDtypeStruct]) -> list[jax.ShapeDtypeStruct]:
    real = next(x.dtype for x in operands if jnp.issubdtype(x.dtype, jnp.floating))
    return [jax.ShapeDtypeStruct((plan.layout.nv,), real), jax.ShapeDtypeStruct((), jnp.int32)]


def _on_cpu(plan: _Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> tuple[Array, Array]:
    layout, limits, again = plan
    if layout.nv > MOST_DOFS:
        raise UnsupportedPrimitive(f"more than {MOST_DOFS} dofs")
    target = native.target_of(native_source(layout, _results(plan, operands)[0].dtype), native.VECTOR)
    one = lambda *x: natively(layout, limits, target, *again(x))  # noqa: E731
    axes = [0 if w else None for w in worlds]
    return jax.vmap(one, in_axes=axes, axis_size=count)(*operands)


def native_source(layout: Layout, dtype: Any) -> str:
    """Return the source of the handler for all sparse layouts with the same number of rows per contact."""
    names = {
        "FORCING": FORCING,
        "QUADRATIC": QUADRATIC,
        "SPARE": SPARE,
        "MAX_CG": MAX_CG_ITERATIONS,
        "RIDGES": RIDGES,
        "DIRECT": DIRECT,
        "PRECISE": PRECISE,
        "DIRECT_IF_PRECISE": DIRECT_IF_PRECISE,
    }
    return kernel.worlds_source(layout, dtype, names | {"LS_NEWTON": LS_RELATIVE}, "sparse_worlds.c")


def natively(
    layout: Layout,
    limits: IterationLimits,
    target: str,
    p: ConstraintProblem,
    settings: Tolerances,
    guesses: Guesses,
) -> tuple[Array, Array]:
    """Run `by_jax` as a native program of a CPU; trees without rows get their unconstrained accelerations."""
    dtype, warm = p.aref.dtype, guesses.free if guesses.warm is None else guesses.warm
    inertia, first, place = p.M.lower_rows()
    parent, last = p.J.chains()
    columns = np.asarray(layout.columns if layout.ngeneral else np.zeros((0, 1), int))
    wrench, body = p.J.contact.wrench, p.J.contact.body
    sides = wrench.shape[-2] if layout.ncontact else 1
    if not layout.ncontact:
        wrench, body = jnp.zeros((0, 1, 1, 6), dtype), jnp.zeros((0, 1), jnp.int32)
    general = p.J.general if layout.ngeneral else jnp.zeros((0, 1), dtype)
    numbers = (inertia, p.qfrc_smooth, p.aref, p.D, p.lo, p.hi, general, wrench, p.J.friction, p.mu)
    given = [jnp.asarray(x, dtype) for x in (*numbers, jnp.stack(settings), guesses.free, warm)]
    size = [layout.nv, layout.ngeneral, layout.nlimit, layout.ncontact, layout.nslot]
    size += [limits.iterations, limits.ls_iterations, guesses.warm is not None]
    size += [columns.shape[1], sides, _only_equalities(layout)]
    order, products = elimination_order(columns, parent)
    rank = np.argsort(order)
    ranks = np.where(columns < 0, -1, rank[np.maximum(columns, 0)])
    one_round = 4 * layout.nv + 2 * np.count_nonzero(columns >= 0)
    size += [min(layout.nv, sides * _longest_chain(parent)), min(int(products / one_round), 1 << 30)]
    tables = (size, layout.limit_dof, first, place, ranks.ravel(), parent, order, rank, last)
    plan = np.concatenate(tables).astype(np.int32)
    out = [jax.ShapeDtypeStruct((layout.nv,), dtype), jax.ShapeDtypeStruct((), jnp.int32)]
    call = jax.ffi.ffi_call(target, out, vmap_method="broadcast_all")
    acc, niter = call(*given, body.astype(jnp.int32), p.J.contact.cdof.astype(dtype), plan=plan)
    return acc, niter


def _longest_chain(parent: np.ndarray) -> int:
    """Return the largest number of dofs on a path to the root."""
    depth = np.zeros(len(parent) + 1, int)
    for v, above in enumerate(parent):
        depth[v] = depth[above] + 1 if above >= 0 else 1
    return int(depth.max())


def _only_equalities(layout: Layout) -> bool:
    """Return whether all rows are equalities, whose forces have no bounds."""
    equalities = np.all(layout.general.type == ConstraintType.EQUALITY)
    return bool(equalities and not layout.nlimit and not layout.ncontact)


def by_jax(
    layout: Layout, limits: IterationLimits, p: ConstraintProblem, settings: Tolerances, guesses: Guesses
) -> tuple[Array, Array]:
    """Compute `minimise` by JAX operations."""
    total = lambda r: jnp.sum(costs(layout, p, r))  # noqa: E731
    start, _ = first_guess(partial(residual, layout, p), total, p, guesses.free, guesses.warm)

    def prepare(acc: Array, momentum: Array, r: Array, niter: Array) -> SolverState:
        constraint = p.J.transpose_times(force(layout, p, r))
        grad = momentum - p.qfrc_smooth - constraint
        floor = 4 * jnp.finfo(acc.dtype).eps * (norm(momentum) + norm(p.qfrc_smooth) + norm(constraint))
        small = norm(grad)
        return SolverState(
            acc, momentum, r, grad, niter, (settings.scale * small < settings.tolerance) | (small <= floor)
        )

    def iterate(s: SolverState) -> SolverState:
        needed = SPARE * divide(settings.tolerance, settings.scale * norm(s.grad))
        precision, gain = jnp.clip(needed, least, 0.5), settings.tolerance / settings.scale
        search = direction(layout, p, curvature(layout, p, s.r), -s.grad, precision, s.done, gain)
        mv, z = p.M.times(search), p.J.times(search)
        derivative = jnp.sum(search * s.grad)
        line = jnp.sum(search * (s.momentum - p.qfrc_smooth)), jnp.sum(search * mv)
        exact = settings.tolerance * settings.ls_tolerance * norm(search) / settings.scale
        enough = jnp.maximum(exact, LS_RELATIVE * jnp.abs(derivative))
        of_rows = lambda alpha: along(layout, p, ahead(s.r, z, alpha), z)  # noqa: E731
        alpha = line_search(of_rows, line, enough, limits.ls_iterations, s.done)
        new = prepare(s.acc + alpha * search, s.momentum + alpha * mv, s.r + alpha * z, s.niter + 1)
        gain = -0.5 * alpha * derivative
        return new._replace(done=new.done | (settings.scale * gain < settings.tolerance) | (derivative >= 0))

    least = QUADRATIC if _only_equalities(layout) else FORCING
    first = prepare(*start, jnp.zeros((), jnp.int32))
    last = jax.lax.while_loop(lambda s: ~s.done & (s.niter < limits.iterations), iterate, first)
    return last.acc, last.niter


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

    def gradient(q: ConstraintProblem) -> Array:
        push = q.J.transpose_times(force(layout, q, residual(layout, q, acc)))
        return q.M.times(acc) - q.qfrc_smooth - push

    _, dg = jax.jvp(gradient, (p,), (tangents[0],))
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
    label=lambda _: "the solver of large models",
)
