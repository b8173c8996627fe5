"""Newton's method for one world in one kernel: on a GPU each world of a batch stops by itself.

The iteration is that of `primal`, the formulas are those of `problem` on the rows of `planes`. Under `vmap` the worlds
become the grid of the kernel, so that no world waits for another and nothing between two iterations passes through
global memory but Jacobian and inertia, which are read again. Directions come from elimination without pivots, stable
for a positive definite matrix: loops over columns whose steps are elementwise, since gathers cannot be lowered.

Lowered by Pallas for Triton on GPUs, interpreted elsewhere: slow, the same numbers, for tests.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.core.layout import Layout
from jaxsim.engine.solver import planes, primal
from jaxsim.engine.solver.planes import CHUNK, UNIT_SIGNS, ProblemPlanes, RowConstants, RowPlanes, total
from jaxsim.engine.solver.problem import ConstraintProblem
from jaxsim.math.safe import Array, divide

WARP_ENTRIES = 1024  # entries of the Hessian for each warp


class _World(NamedTuple):
    """What a kernel works on: references to the problem, what is known of its rows, chunks of rows in use."""

    refs: ProblemPlanes
    table: RowConstants
    dense: Any
    cones: Any


def solve(
    layout: Layout,
    limits: primal.IterationLimits,
    p: ConstraintProblem,
    settings: primal.Tolerances,
    start: primal.InitialGuess,
) -> tuple[Array, Array]:
    """qacc (nv,) and the number of iterations, as `primal.solve` with Newton's method."""
    extra = planes.padded_size(layout.nv) - layout.nv
    stop = jnp.stack([settings.tolerance, settings.ls_tolerance, settings.scale, jnp.zeros_like(settings.scale)])
    args = (planes.pack(layout, p), jnp.pad(start.acc, (0, extra)), stop)
    call = partial(_call, layout.nv, limits)
    compiled, interpreted = partial(call, False), partial(call, True)
    acc, niter = lax.platform_dependent(*args, cuda=compiled, rocm=compiled, default=interpreted)
    return acc[: layout.nv], niter[0]


def _call(
    nv: int, limits: primal.IterationLimits, interpret: bool, p: ProblemPlanes, start: Array, stop: Array
) -> list[Array]:
    from jax.experimental import pallas as pl  # an import of a second, for those who ask for it
    from jax.experimental.pallas import triton

    warps = limits.kernel if limits.kernel > 1 else max(1, start.shape[0] ** 2 // WARP_ENTRIES)
    return pl.pallas_call(
        partial(_kernel, nv, limits),
        out_shape=[jax.ShapeDtypeStruct(start.shape, start.dtype), jax.ShapeDtypeStruct((1,), jnp.int32)],
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1),
        interpret=interpret,
        name="constraint_newton",
    )(p, start, stop)


def _kernel(
    nv: int, limits: primal.IterationLimits, refs: ProblemPlanes, start: Any, stop: Any, acc: Any, niter: Any
) -> None:
    world = _load(refs)
    operators = primal.SolverOperators(
        smooth=refs.smooth[...],
        inertia=lambda x: jnp.sum(refs.M[...] * x[None, :], axis=1),
        rows=partial(_rows_times, world),
        transpose=partial(_transpose_times, world),
        force=partial(planes.force, world.table),
        along=partial(planes.along, world.table),
        sums=lambda *x: tuple(map(jnp.sum, x)),
        search_loop=lax.while_loop,
        direction=partial(_direction, nv, world),
    )
    guess = start[...]
    first = primal.InitialGuess(guess, operators.inertia(guess), planes.residual(world.table, operators.rows(guess)))
    settings = primal.Tolerances(stop[0], stop[1], stop[2])
    acc[...], niter[0] = primal.minimise(operators, limits, settings, first, lax.while_loop)


def _load(refs: ProblemPlanes) -> _World:
    def plane(group: Any, k: int) -> Any:
        return type(group)(*(field[k] for field in group))

    count = refs.unit.D.shape[0]
    scalars = [plane(refs.unit, k) for k in range(count)]
    dense = cones = None
    if refs.dense is not None:
        scalars.append(plane(refs.dense, 0))
        dense = _chunks_in_use(scalars[-1].D)
    table = RowConstants(tuple(scalars), None)
    if refs.cones is not None:
        dim = refs.cones.D.shape[0]
        table = table._replace(cones=type(refs.cones)(*(tuple(x[k] for k in range(dim)) for x in refs.cones)))
        cones = _chunks_in_use(table.cones.D[0])
    return _World(refs, table, dense, cones)


def _chunks_in_use(d: Array) -> Array:
    """The number of leading chunks outside of which all rows are absent."""
    return jnp.max(jnp.where(d > 0, _iota(d, 0) + 1, 0))


def _iota(x: Array, axis: int) -> Array:
    return lax.broadcasted_iota(jnp.int32, x.shape, axis)


def _pick(x: Array, k: Array) -> Array:
    """x[k] of (chunks, CHUNK) in registers."""
    return jnp.sum(jnp.where(_iota(x, 0) == k, x, 0), axis=0)


def _put(x: Array, k: Array, row: Array) -> Array:
    return jnp.where(_iota(x, 0) == k, row[None, :], x)


def _rows_times(world: _World, x: Array) -> RowPlanes:
    scalars = [x if sign > 0 else -x for sign in UNIT_SIGNS[: world.refs.unit.D.shape[0]]]
    if world.dense is not None:
        scalars += _group_times(world.refs.J_dense, world.dense, world.refs.dense.D.shape[1], x)
    cones = ()
    if world.cones is not None:
        cones = _group_times(world.refs.J_cones, world.cones, world.refs.cones.D.shape[1], x)
    return RowPlanes(tuple(scalars), tuple(cones))


def _group_times(jac: Any, used: Array, chunks: int, x: Array) -> list[Array]:
    def add(k: Array, z: list[Array]) -> list[Array]:
        return [_put(plane, k, jnp.sum(jac[i, k] * x[None, :], axis=1)) for i, plane in enumerate(z)]

    return lax.fori_loop(0, used, add, [jnp.zeros((chunks, CHUNK), x.dtype)] * jac.shape[0])


def _transpose_times(world: _World, f: RowPlanes) -> Array:
    unit = world.refs.unit.D.shape[0]
    out = total([x if sign > 0 else -x for sign, x in zip(UNIT_SIGNS[:unit], f.scalars[:unit], strict=True)])
    if world.dense is not None:
        out = _add_transpose(world.refs.J_dense, world.dense, f.scalars[unit:], out)
    if world.cones is not None:
        out = _add_transpose(world.refs.J_cones, world.cones, f.cones, out)
    return out


def _add_transpose(jac: Any, used: Array, f: tuple[Array, ...], out: Array) -> Array:
    def add(k: Array, out: Array) -> Array:
        return out + total([jnp.sum(jac[i, k] * _pick(plane, k)[:, None], axis=0) for i, plane in enumerate(f)])

    return lax.fori_loop(0, used, add, out)


def _direction(nv: int, world: _World, s: primal.SolverState) -> tuple[Array, tuple[()]]:
    return -_eliminate(_hessian(world, s.r), s.grad, nv), ()


def _hessian(world: _World, r: RowPlanes) -> Array:
    unit = world.refs.unit.D.shape[0]
    w = planes.weights(world.table, r)
    h = world.refs.M[...]
    h = h + jnp.where(_iota(h, 0) == _iota(h, 1), total(w[:unit])[:, None], 0)
    if world.dense is not None:
        h = _add_hessian(world.refs.J_dense, world.dense, [[w[-1]]], h)
    if world.cones is not None:
        h = _add_hessian(world.refs.J_cones, world.cones, planes.blocks(world.table, r), h)
    return h


def _add_hessian(jac: Any, used: Array, blocks: list[list[Array]], h: Array) -> Array:
    """h + J' s'' J of a group of rows, a chunk at a time."""

    def add(k: Array, h: Array) -> Array:
        rows = [jac[i, k] for i in range(len(blocks))]
        for line, row in zip(blocks, rows, strict=True):
            weighted = total([_pick(b, k)[:, None] * x for b, x in zip(line, rows, strict=True)])
            h = h + lax.dot_general(row, weighted, (((0,), (0,)), ((), ())), precision=lax.Precision.HIGHEST)
        return h

    return lax.fori_loop(0, used, add, h)


def _eliminate(h: Array, b: Array, nv: int) -> Array:
    """x with h x = b for a positive definite h (n, n), of which rows from `nv` on are those of a unit matrix."""
    row, col, index = _iota(h, 0), _iota(h, 1), _iota(b, 0)

    def forward(j: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        h, b = carry
        pivots = jnp.sum(jnp.where(row == j, h, 0), axis=0)
        below = jnp.sum(jnp.where(col == j, h, 0), axis=1)
        ratio = jnp.where(index > j, divide(below, jnp.sum(jnp.where(index == j, below, 0))), 0)
        return h - ratio[:, None] * pivots[None, :], b - ratio * jnp.sum(jnp.where(index == j, b, 0))

    def backward(i: Array, x: Array) -> Array:
        j = nv - 1 - i
        above = jnp.sum(jnp.where(col == j, h, 0), axis=1)
        return jnp.where(index < j, x - above * jnp.sum(jnp.where(index == j, x * scale, 0)), x)

    h, b = lax.fori_loop(0, nv, forward, (h, b))
    scale = divide(1, jnp.sum(jnp.where(row == col, h, 0), axis=1))
    return scale * lax.fori_loop(0, nv, backward, b)
