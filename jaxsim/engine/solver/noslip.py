"""The noslip solver: sweeps over dry friction and contact friction without regularisation, after the main solver.

Normal forces, limits and equalities keep the values of the main solver. Each sweep updates, in MuJoCo's order, the rows
of dry friction and then the friction of every contact. An update minimises 1/2 f'A f + f'b (A = J M^-1 J', without R)
over the force of that row or contact alone, within its bounds. A pair of opposing edges of a pyramid is one scalar row:
half the difference of its two forces, bounded by half their sum. Sweeps end, island by island, when the cost improves
by less than the tolerance or their number is reached.

With M = L L' a row is kept as x = L^-1 J', the acceleration a as y = L'a: then J a = x'y, and a force moves y along x.

Two functions implement the sweeps. On a CPU `used_sweeps.py` updates only the rows in use. Elsewhere, and for
derivatives, sweeps are scans of fixed length, so that both modes of differentiation pass through them: the derivative
is that of the sweeps executed. The multiplier of the friction cone takes its derivative from the implicit function
theorem.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.layout import Layout
from jaxsim.core.rows import contact_facets
from jaxsim.core.types import ConstraintState
from jaxsim.engine.solver.problem import ConstraintProblem, elliptic
from jaxsim.engine.solver.slip import cone_block, visit_cone, visit_scalar
from jaxsim.engine.solver.sweeps import SweepProblem, friction_slots, has_pairs
from jaxsim.engine.solver.used_sweeps import sweep_used
from jaxsim.math.arrays import dot, einsum, inner
from jaxsim.math.safe import Array, divide, norm
from jaxsim.native.linalg import cholesky, solve_factored, solve_triangular
from jaxsim.native.world_program import WorldProgram, run_program, scalar_source


class ScalarRows(NamedTuple):
    """Scalar rows (n,): L^-1 J' (n, nv), reference, diagonal of A, and mask of active rows."""

    x: Array
    aref: Array
    diagonal: Array
    active: Array
    paired: np.ndarray  # edges of a pyramid, not dry friction


class ConeRows(NamedTuple):
    """Friction of elliptic contacts (n, k, ...): L^-1 J', reference, A of each contact, coefficients."""

    x: Array
    aref: Array
    block: Array
    friction: Array
    active: Array


def solve(
    layout: Layout,
    p: ConstraintProblem,
    smooth: Array,
    forces: Array,
    regular: Array,
    label: Array,
    settings: tuple[int, Array, Array],
) -> tuple[Array, Array, Array]:
    """Run the noslip solver; return qacc (nv,), forces (nslot,) and the greatest number of sweeps of any island.

    Args:
        smooth: acceleration without constraints (nv,).
        forces: of the main solver (nslot,).
        regular: R of the rows (nslot,).
        label: island of each slot (nslot,), below nv + 1; slots without a row have the largest label.
        settings: number of sweeps (static), tolerance, and 1 / (meaninertia * nv).
    """
    iterations, tolerance, scale = settings
    factor = cholesky(p.M.matrix)

    def to_acc(force: Array) -> Array:
        return smooth + solve_factored(factor, p.J.transpose_times(force))

    tendons = friction_slots(layout)[layout.nv :]
    frictional = layout.ncontact > 0 and layout.condim > 1
    s = SweepProblem(
        factor=factor,
        y=dot(to_acc(forces), factor),
        general=p.J.general[tendons] if len(tendons) else None,
        contact=p.J.contact if frictional else None,
        friction=p.J.friction[:, : layout.condim - 1] if frictional else None,
        aref=p.aref,
        active=p.D > 0,
        bound=p.hi,
        force=forces,
        regular=regular,
        label=label,
        tolerance=jnp.asarray(tolerance, smooth.dtype),
        scale=jnp.asarray(scale, smooth.dtype),
    )
    force, count = sweep(layout, iterations, s)
    return to_acc(force), force, count


def sweep(layout: Layout, iterations: int, s: SweepProblem) -> tuple[Array, Array]:
    """Run the sweeps by the program for the platform; return forces (nslot,) and the greatest number of sweeps."""
    given = {n: x for n, x in s._asdict().items() if x is not None}
    absent = dict.fromkeys(set(s._fields) - set(given))

    def run(sweeps: Callable[..., tuple[Array, Array]]) -> Callable[..., tuple[Array, Array]]:
        return lambda *x: sweeps(layout, iterations, SweepProblem(**dict(zip(given, x, strict=True)), **absent))

    operands = list(given.values())
    results = jax.ShapeDtypeStruct((layout.nslot,), s.y.dtype), jax.ShapeDtypeStruct((), jnp.int32)
    source = scalar_source(run(sweep_used), operands)
    force, count = run_program(WorldProgram(run(sweep_all), source, results, "the noslip solver"), *operands)
    return force, count


def sweep_all(layout: Layout, iterations: int, s: SweepProblem) -> tuple[Array, Array]:
    """Run the sweeps by scans over all rows; return forces (nslot,) and the greatest number of sweeps of any island."""
    label = s.label
    scalars, scalar_label = _scalar_rows(layout, s)
    cones = _cones(layout, s) if elliptic(layout) else None
    contact_label = label[layout.offsets[3] :: layout.nfacet] if layout.ncontact else label[:0]

    def sweep(carry: tuple, first: Array) -> tuple:
        y, force, running, count = carry
        values, bound = _read_scalars(layout, s, force)
        gain = jnp.where(first, 0.5 * force * force * s.regular, 0)
        improved = jnp.zeros_like(running, dtype=y.dtype).at[label].add(gain)
        y, values, won = _sweep_scalars(scalars, y, values, bound, running[scalar_label])
        improved = improved.at[scalar_label].add(won)
        new = _write_scalars(layout, force, values, bound)
        if cones is not None:
            y, tangents, won = _sweep_cones(layout, cones, y, new, running[contact_label])
            improved = improved.at[contact_label].add(won)
            new = _write_cones(layout, new, tangents)
        count = count + running.astype(count.dtype)
        return (y, new, running & (improved * s.scale >= s.tolerance), count), None

    islands = layout.nv + 1
    start = (s.y, s.force, jnp.ones(islands, bool), jnp.zeros(islands, jnp.int32))
    (_, force, _, count), _ = lax.scan(sweep, start, np.arange(iterations) == 0)
    used = jnp.zeros(islands, bool).at[label].max(s.active)
    return force, jnp.max(jnp.where(used, count, 0))


def _through_factor(factor: Array, jac: Array) -> Array:
    """Compute L^-1 J' of rows (..., nv), as rows."""
    return solve_triangular(factor, lax.collapse(jac, 0, jac.ndim - 1).T).T.reshape(jac.shape)


def _scalar_rows(layout: Layout, s: SweepProblem) -> tuple[ScalarRows, Array]:
    slots = friction_slots(layout)
    jac = jnp.eye(layout.nv, dtype=s.factor.dtype)
    if s.general is not None:
        jac = jnp.concatenate([jac, s.general])
    aref, active, labels = s.aref[slots], s.active[slots], s.label[slots]
    if has_pairs(layout):
        rows = contact_facets(layout, s.friction, s.contact)
        rows = rows.reshape(len(rows) // 2, 2, layout.nv)
        start = layout.offsets[3]
        jac = jnp.concatenate([jac, rows[:, 0] - rows[:, 1]])
        refs = s.aref[start:].reshape(-1, 2)
        aref = jnp.concatenate([aref, refs[:, 0] - refs[:, 1]])
        active = jnp.concatenate([active, s.active[start + 1 :: 2]])
        labels = jnp.concatenate([labels, s.label[start::2]])
    x = _through_factor(s.factor, jac)
    paired = np.arange(jac.shape[0]) >= len(slots)
    return ScalarRows(x, aref, inner(x, x), active, paired), labels


def _read_scalars(layout: Layout, s: SweepProblem, force: Array) -> tuple[Array, Array]:
    """Return the forces of the scalar rows and their bounds."""
    slots = friction_slots(layout)
    values, bound = force[slots], s.bound[slots]
    if not has_pairs(layout):
        return values, bound
    pairs = force[layout.offsets[3] :].reshape(-1, 2)
    half = 0.5 * (pairs[:, 0] - pairs[:, 1])
    return jnp.concatenate([values, half]), jnp.concatenate([bound, 0.5 * (pairs[:, 0] + pairs[:, 1])])


def _write_scalars(layout: Layout, force: Array, values: Array, bound: Array) -> Array:
    slots = friction_slots(layout)
    new = force.at[slots].set(values[: len(slots)])
    if not has_pairs(layout):
        return new
    start = layout.offsets[3]
    half, mid = values[len(slots) :], bound[len(slots) :]
    pairs = jnp.stack([mid + half, mid - half], axis=1).reshape(-1)
    return jnp.concatenate([new[:start], pairs])


def _sweep_scalars(r: ScalarRows, y: Array, values: Array, bound: Array, running: Array) -> tuple[Array, Array, Array]:
    """Update every scalar row once: return y, the new forces, and the improvement of each row."""

    def visit(y: Array, row: tuple) -> tuple:
        x, aref, diagonal, value, limit, paired, on = row
        new, won = visit_scalar(inner(x, y) - aref, diagonal, value, limit, paired)
        new = jnp.where(on, new, value)
        return y + (new - value) * x, (new, jnp.where(on, won, 0))

    rows = (r.x, r.aref, r.diagonal, values, bound, r.paired, r.active & running)
    y, (new, won) = lax.scan(visit, y, rows)
    return y, new, won


def _cones(layout: Layout, s: SweepProblem) -> ConeRows:
    assert s.contact is not None and s.friction is not None  # cones have friction
    x = _through_factor(s.factor, s.contact[:, 1:])
    aref, active = (z[layout.offsets[3] :].reshape(layout.ncontact, layout.condim)[:, 1:] for z in (s.aref, s.active))
    block = jax.vmap(cone_block)(einsum("cik,cjk->cij", x, x), active)
    return ConeRows(x, aref, block, jnp.where(active, s.friction, 1), active)


def _write_cones(layout: Layout, force: Array, tangents: Array) -> Array:
    start = layout.offsets[3]
    rows = force[start:].reshape(layout.ncontact, layout.condim)
    rows = jnp.concatenate([rows[:, :1], tangents], axis=1)
    return jnp.concatenate([force[:start], rows.reshape(-1)])


def _sweep_cones(layout: Layout, c: ConeRows, y: Array, force: Array, running: Array) -> tuple[Array, Array, Array]:
    """Update every elliptic contact once: return y, its tangential forces (n, k), and the improvements (n,)."""
    rows = force[layout.offsets[3] :].reshape(layout.ncontact, layout.condim)

    def visit(y: Array, row: tuple) -> tuple:
        x, aref, block, friction, active, value, normal, on = row
        new, won = visit_cone(dot(x, y) - aref, block, friction, active, value, normal)
        new = jnp.where(on, new, value)
        return y + dot(new - value, x), (new, jnp.where(on, won, 0))

    on = c.active.any(1) & running
    xs = (c.x, c.aref, c.block, c.friction, c.active, rows[:, 1:], rows[:, 0], on)
    y, (new, won) = lax.scan(visit, y, xs)
    return y, new, won


def dual_state(layout: Layout, p: ConstraintProblem, force: Array) -> Array:
    """Return the mjtConstraintState of every slot, from its force."""
    friction = jnp.isfinite(p.lo)
    state = jnp.where(force > 0, int(ConstraintState.QUADRATIC), int(ConstraintState.SATISFIED))
    state = jnp.where(jnp.isinf(p.lo) & jnp.isinf(p.hi), int(ConstraintState.QUADRATIC), state)
    dry = jnp.where(force >= p.hi, int(ConstraintState.LINEARNEG), int(ConstraintState.QUADRATIC))
    state = jnp.where(friction, jnp.where(force <= p.lo, int(ConstraintState.LINEARPOS), dry), state)
    if elliptic(layout):
        start = layout.offsets[3]
        rows = force[start:].reshape(layout.ncontact, layout.condim)
        friction = p.J.friction[:, : layout.condim - 1]
        tangent = norm(divide(rows[:, 1:], friction))
        n = divide(rows[:, 0], p.mu)
        kind = jnp.where(n + p.mu * tangent <= 0, int(ConstraintState.QUADRATIC), int(ConstraintState.CONE))
        kind = jnp.where(p.mu * n >= tangent, int(ConstraintState.SATISFIED), kind)
        frictionless = jnp.where(rows[:, 0] > 0, int(ConstraintState.QUADRATIC), int(ConstraintState.SATISFIED))
        kind = jnp.where(p.mu > 0, kind, frictionless)
        state = jnp.concatenate([state[:start], jnp.repeat(kind, layout.condim)])
    return jnp.where(p.D > 0, state, 0).astype(jnp.int32)
