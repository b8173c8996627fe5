"""The solver of large models: Newton's method without a Hessian, for every name of `opt.solver`.

The function and its minimum are those of `problem`; nothing of size nv x nv is formed. Newton's direction comes from
conjugate gradients on H = M + J' s'' J, whose products go through the rows as an operator, preconditioned with the
blocks of H on the diagonal, one for each tree. Directions are inexact, by a hundredth of what is left of the gradient:
the last digits cost a few more iterations, the first ones cost little.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.layout import Layout
from jaxsim.core.model import Model
from jaxsim.core.rows import limit_to_dof
from jaxsim.engine import tables
from jaxsim.engine.constraint import sparse_contact
from jaxsim.engine.constraint.jacobian import rows_times, rows_transpose_times
from jaxsim.engine.solver.linesearch import Ray, line_search
from jaxsim.engine.solver.primal import Guess, Limits, Settings
from jaxsim.engine.solver.problem import ConstraintProblem, Curvature, along, contact_blocks, curvature, force, residual
from jaxsim.math.arrays import add_at, einsum, take, take_or_zero
from jaxsim.math.safe import Array, divide, norm
from jaxsim.xla.linalg import cholesky, solve_triangular

FORCING = 1e-2  # what a direction may leave of the gradient
ROUNDS = 200  # conjugate gradients for one direction, at most
LS_RELATIVE = 1e-2  # slope that the line search may leave, of that at its start

Blocks = tuple[Array, ...]  # (k, n, n) for each of `tables.inertia_blocks`


class State(NamedTuple):
    acc: Array
    momentum: Array  # M a
    r: Array
    grad: Array
    niter: Array
    done: Array


def inertia_blocks(m: Model, d: Data) -> Blocks:
    """The inertia matrix by trees."""
    return tuple(take_or_zero(d.M, block.full) for block in tables.inertia_blocks(m))


def mul_blocks(layout: Layout, blocks: Blocks, x: Array, transpose: bool = False) -> Array:
    """Product of a block-diagonal matrix, or of its transpose, with (nv,)."""
    spec = "kji,kj->ki" if transpose else "kij,kj->ki"
    parts = [
        einsum(spec, a, take(x, block.dofs)).reshape(-1)
        for a, block in zip(blocks, tables.inertia_blocks(layout.structure), strict=True)
    ]
    return take(jnp.concatenate(parts), tables.dof_order(layout.structure))


def hessian_times(layout: Layout, p: ConstraintProblem, c: Curvature, x: Array) -> Array:
    """(M + J' s'' J) x."""
    z = rows_times(layout, p.jac, x)
    weighted = c.weight * z
    if c.blocks is not None:
        start = layout.offsets[3]
        frame = einsum("cij,cj->ci", c.blocks, z[start:].reshape(layout.ncontact, layout.condim))
        weighted = jnp.concatenate([weighted[:start], frame.reshape(-1)])
    return mul_blocks(layout, p.M, x) + rows_transpose_times(layout, p.jac, weighted)


def preconditioner(layout: Layout, p: ConstraintProblem, c: Curvature) -> Blocks:
    """Inverses of the Cholesky factors of H on the diagonal, tree by tree."""
    structure = layout.structure
    _, friction, limit, contact, _ = layout.offsets
    diagonal = c.weight[friction:limit]
    if layout.nlimit:
        diagonal = diagonal + limit_to_dof(layout, c.weight[limit:contact])
    extra = take_or_zero(diagonal, tables.diagonal(structure))
    if layout.ncontact:
        extra = extra + sparse_contact.inertia_like(layout, p.jac.J_contact, contact_blocks(layout, p, c))
    parts = [take_or_zero(extra, block.full) for block in tables.inertia_blocks(structure)]
    if layout.ngeneral:
        parts = _add_general(layout, parts, p.jac.J_general, c.weight[:friction])
    out = []
    for mass, part in zip(p.M, parts, strict=True):
        factor = cholesky(mass + part)
        eye = jnp.broadcast_to(jnp.eye(mass.shape[-1], dtype=mass.dtype), mass.shape)
        out.append(solve_triangular(factor, eye))
    return tuple(out)


def _add_general(layout: Layout, parts: list[Array], jac: Array, weight: Array) -> list[Array]:
    """Blocks with J' w J of the general rows added."""
    left, right, place = _general_pairs(layout)
    flat = jac.reshape(-1)
    width = layout.columns.shape[1]
    product = take(flat, left) * take(flat, right) * take(weight, left // max(width, 1))
    sizes = [part.size for part in parts]
    total = add_at(place, product, sum(sizes))
    pieces = jnp.split(total, np.cumsum(sizes)[:-1])
    return [part + piece.reshape(part.shape) for part, piece in zip(parts, pieces, strict=True)]


def _general_pairs(layout: Layout) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of entries of one general row whose dofs are of one tree: both entries, and their place in the blocks."""
    structure, columns = layout.structure, layout.columns
    blocks = tables.inertia_blocks(structure)
    row_start = np.zeros(layout.nv, int)  # where the row of a dof starts in the flattened blocks
    local, offset = np.zeros(layout.nv, int), 0
    for block in blocks:
        k, n = block.dofs.shape
        row_start[block.dofs] = offset + n * np.arange(k * n).reshape(k, n)
        local[block.dofs] = np.arange(n)
        offset += k * n * n
    a, b = (np.broadcast_to(x, (*columns.shape, columns.shape[1])) for x in (columns[:, :, None], columns[:, None]))
    tree = structure.dof_treeid
    same = (a >= 0) & (b >= 0) & (tree[np.maximum(a, 0)] == tree[np.maximum(b, 0)])
    row, i, j = np.nonzero(same)
    width = columns.shape[1]
    return row * width + i, row * width + j, row_start[a[same]] + local[b[same]]


def conjugate_gradients(times, precondition, b: Array, tolerance: float, rounds: int, idle: Array) -> Array:
    """x with A x = b to a relative `tolerance` in the norm of the preconditioner; zero for a world that is `idle`."""

    def unfinished(s: tuple) -> Array:
        _, _, _, rho, count = s
        return (rho > enough) & (count < rounds) & ~idle

    def go(s: tuple) -> tuple:
        x, r, q, rho, count = s
        aq = times(q)
        alpha = divide(rho, jnp.sum(q * aq))
        x, r = x + alpha * q, r - alpha * aq
        z = precondition(r)
        new = jnp.sum(r * z)
        return x, r, z + divide(new, rho) * q, new, count + 1

    z = precondition(b)
    rho = jnp.sum(b * z)
    enough = tolerance**2 * rho
    return jax.lax.while_loop(unfinished, go, (jnp.zeros_like(b), b, z, rho, jnp.zeros((), jnp.int32)))[0]


def direction(layout: Layout, p: ConstraintProblem, c: Curvature, b: Array, tolerance: float, idle: Array) -> Array:
    """About H^-1 b."""
    factor = preconditioner(layout, p, c)

    def precondition(r: Array) -> Array:
        return mul_blocks(layout, factor, mul_blocks(layout, factor, r), transpose=True)

    return conjugate_gradients(partial(hessian_times, layout, p, c), precondition, b, tolerance, ROUNDS, idle)


def minimise(
    layout: Layout, limits: Limits, p: ConstraintProblem, settings: Settings, start: Guess
) -> tuple[Array, Array]:
    """qacc (nv,) and the number of Newton iterations."""

    def prepare(acc: Array, momentum: Array, r: Array, niter: Array) -> State:
        constraint = rows_transpose_times(layout, p.jac, force(layout, p, r))
        grad = momentum - p.qfrc_smooth - constraint
        floor = 4 * jnp.finfo(acc.dtype).eps * (norm(momentum) + norm(p.qfrc_smooth) + norm(constraint))
        small = norm(grad)
        return State(acc, momentum, r, grad, niter, (settings.scale * small < settings.tolerance) | (small <= floor))

    def iterate(s: State) -> State:
        search = direction(layout, p, curvature(layout, p, s.r), -s.grad, FORCING, s.done)
        mv, z = mul_blocks(layout, p.M, search), rows_times(layout, p.jac, search)
        slope = jnp.sum(search * s.grad)
        ray = Ray(s.r, z, jnp.sum(search * (s.momentum - p.qfrc_smooth)), jnp.sum(search * mv))
        exact = settings.tolerance * settings.ls_tolerance * norm(search) / settings.scale
        enough = jnp.maximum(exact, LS_RELATIVE * jnp.abs(slope))
        alpha = line_search(partial(along, layout, p), ray, enough, limits.ls_iterations, s.done)
        new = prepare(s.acc + alpha * search, s.momentum + alpha * mv, s.r + alpha * z, s.niter + 1)
        gain = -0.5 * alpha * slope
        return new._replace(done=new.done | (settings.scale * gain < settings.tolerance) | (slope >= 0))

    first = prepare(*start, jnp.zeros((), jnp.int32))
    last = jax.lax.while_loop(lambda s: ~s.done & (s.niter < limits.iterations), iterate, first)
    return last.acc, last.niter


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def solve(
    layout: Layout, limits: Limits, p: ConstraintProblem, settings: Settings, start: Guess
) -> tuple[Array, Array]:
    """qacc (nv,), differentiable in the problem alone (see `implicit`), and the number of iterations as a float."""
    acc, niter = minimise(layout, limits, p, settings, start)
    return acc, niter.astype(acc.dtype)


@solve.defjvp
def _solve_jvp(layout: Layout, limits: Limits, primals: tuple, tangents: tuple) -> tuple:
    p, *rest = primals
    acc, niter = solve(layout, limits, p, *rest)

    def gradient(q: ConstraintProblem) -> Array:
        push = rows_transpose_times(layout, q.jac, force(layout, q, residual(layout, q, acc)))
        return mul_blocks(layout, q.M, acc) - q.qfrc_smooth - push

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
