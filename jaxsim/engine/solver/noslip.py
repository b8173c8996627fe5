"""The noslip solver: sweeps over dry friction and contact friction without regularisation, after the main solver.

Normal forces, limits and equalities stay as the main solver left them. Each sweep visits, in MuJoCo's order, the rows
of dry friction and then the friction of every contact, and minimises 1/2 f'A f + f'b (A = J M^-1 J', without R) over
the force of that row or contact alone, inside its bounds. A pair of opposing edges of a pyramid is one scalar row: half
the difference of its two forces, bounded by half their sum. The sweeps go on until the cost improves by less than
the tolerance, island by island, and no more than the given number.

Sweeps are scans of fixed length, so that both modes of differentiation pass through them: the derivative is that of the
sweeps which were made. The multiplier of the friction cone takes its derivative from the implicit function theorem.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.layout import Layout
from jaxsim.core.rows import contact_facets
from jaxsim.core.types import MINVAL, ConstraintState, ConstraintType
from jaxsim.engine.solver.problem import ConstraintProblem, elliptic
from jaxsim.math.arrays import dot, einsum, inner
from jaxsim.math.safe import Array, divide, norm
from jaxsim.xla.linalg import cholesky, eigh, solve_factored

COST_RISE = 1e-10  # a block whose cost rises by more keeps its force
MULTIPLIER_STEPS = 20
MULTIPLIER_EXACT = 1e-10  # squared force by which a multiplier may miss its cone, and the least step of one


class ScalarRows(NamedTuple):
    """Scalar rows (n,): Jacobian and M^-1 J' (n, nv), reference, diagonal of A, and which are there."""

    jac: Array
    response: Array
    aref: Array
    diagonal: Array
    active: Array
    paired: np.ndarray  # edges of a pyramid, not dry friction


class ConeRows(NamedTuple):
    """Friction of elliptic contacts (n, k, ...): Jacobian, M^-1 J', reference, A of each contact, coefficients."""

    jac: Array
    response: Array
    aref: Array
    block: Array
    friction: Array
    active: Array
    count: Array  # tangential directions of each contact


def solve(
    layout: Layout,
    p: ConstraintProblem,
    smooth: Array,
    forces: Array,
    regular: Array,
    label: Array,
    settings: tuple[int, Array, Array],
) -> tuple[Array, Array, Array]:
    """qacc (nv,), forces (nslot,) and the greatest number of sweeps of any island.

    Args:
        smooth: acceleration without constraints (nv,).
        forces: of the main solver (nslot,).
        regular: R of the rows (nslot,).
        label: a number below nv + 1 for the island of each slot (nslot,); slots of no row have the largest.
        settings: number of sweeps (static), tolerance, and 1 / (meaninertia * nv).
    """
    iterations, tolerance, scale = settings
    factor = cholesky(p.M.matrix)

    def to_acc(force: Array) -> Array:
        return smooth + solve_factored(factor, p.J.transpose_times(force))

    scalars, scalar_label = _scalar_rows(layout, p, factor, label)
    cones = _cones(layout, p, factor) if elliptic(layout) else None
    contact_label = label[layout.offsets[3] :: layout.nfacet] if layout.ncontact else label[:0]

    def sweep(carry: tuple, first: Array) -> tuple:
        force, running, count = carry
        acc = to_acc(force)
        values, bound = _read_scalars(layout, p, force)
        gain = jnp.where(first, 0.5 * force * force * regular, 0)
        improved = jnp.zeros_like(running, dtype=acc.dtype).at[label].add(gain)
        acc, values, won = _sweep_scalars(scalars, acc, values, bound, running[scalar_label])
        improved = improved.at[scalar_label].add(won)
        new = _write_scalars(layout, force, values, bound)
        if cones is not None:
            tangents, won = _sweep_cones(layout, cones, acc, new, running[contact_label])
            improved = improved.at[contact_label].add(won)
            new = _write_cones(layout, new, tangents)
        count = count + running.astype(count.dtype)
        return (new, running & (improved * scale >= tolerance), count), None

    islands = layout.nv + 1
    start = (forces, jnp.ones(islands, bool), jnp.zeros(islands, jnp.int32))
    (force, _, count), _ = lax.scan(sweep, start, np.arange(iterations) == 0)
    used = jnp.zeros(islands, bool).at[label].max(p.D > 0)
    return to_acc(force), force, jnp.max(jnp.where(used, count, 0))


def _response(factor: Array, jac: Array) -> Array:
    return solve_factored(factor, jac.reshape(-1, jac.shape[-1]).T).T.reshape(jac.shape)


def _friction_slots(layout: Layout) -> np.ndarray:
    """Slots of dry friction in MuJoCo's order: dofs, then tendons."""
    dofs = np.arange(layout.offsets[1], layout.offsets[2])
    return np.concatenate([dofs, np.flatnonzero(layout.general.type == ConstraintType.FRICTION_TENDON)])


def _paired(layout: Layout) -> bool:
    return layout.pyramidal and layout.condim > 1 and layout.ncontact > 0


def _scalar_rows(layout: Layout, p: ConstraintProblem, factor: Array, label: Array) -> tuple[ScalarRows, Array]:
    slots = _friction_slots(layout)
    tendons = slots[layout.nv :]
    jac = jnp.concatenate([jnp.eye(layout.nv, dtype=p.M.matrix.dtype), p.J.general[tendons]])
    aref, active, labels = p.aref[slots], p.D[slots] > 0, label[slots]
    if _paired(layout):
        rows = contact_facets(layout, p.J.friction, p.J.contact).reshape(-1, 2, layout.nv)
        start = layout.offsets[3]
        jac = jnp.concatenate([jac, rows[:, 0] - rows[:, 1]])
        refs = p.aref[start:].reshape(-1, 2)
        aref = jnp.concatenate([aref, refs[:, 0] - refs[:, 1]])
        active = jnp.concatenate([active, p.D[start + 1 :: 2] > 0])
        labels = jnp.concatenate([labels, label[start::2]])
    response = _response(factor, jac)
    paired = np.arange(jac.shape[0]) >= len(slots)
    return ScalarRows(jac, response, aref, inner(jac, response), active, paired), labels


def _read_scalars(layout: Layout, p: ConstraintProblem, force: Array) -> tuple[Array, Array]:
    """Forces of the scalar rows and their bounds."""
    slots = _friction_slots(layout)
    values, bound = force[slots], p.hi[slots]
    if not _paired(layout):
        return values, bound
    pairs = force[layout.offsets[3] :].reshape(-1, 2)
    half = 0.5 * (pairs[:, 0] - pairs[:, 1])
    return jnp.concatenate([values, half]), jnp.concatenate([bound, 0.5 * (pairs[:, 0] + pairs[:, 1])])


def _write_scalars(layout: Layout, force: Array, values: Array, bound: Array) -> Array:
    slots = _friction_slots(layout)
    new = force.at[slots].set(values[: len(slots)])
    if not _paired(layout):
        return new
    start = layout.offsets[3]
    half, mid = values[len(slots) :], bound[len(slots) :]
    pairs = jnp.stack([mid + half, mid - half], axis=1).reshape(-1)
    return jnp.concatenate([new[:start], pairs])


def _sweep_scalars(
    s: ScalarRows, acc: Array, values: Array, bound: Array, running: Array
) -> tuple[Array, Array, Array]:
    """One visit of every scalar row: the acceleration, the new forces, and what each visit improved."""

    def visit(acc: Array, row: tuple) -> tuple:
        jac, response, aref, diagonal, value, limit, paired, on = row
        slip = inner(jac, acc) - aref
        flat = diagonal < MINVAL
        step = slip / jnp.where(flat, jnp.where(paired, 1, MINVAL), diagonal)
        free = jnp.where(flat & paired, 0, value - step)
        new = jnp.minimum(jnp.maximum(free, -limit), limit)
        change = 0.5 * (new - value) ** 2 * diagonal + (new - value) * slip
        new = jnp.where(on & ~(paired & (change > COST_RISE)), new, value)
        return acc + (new - value) * response, (new, jnp.where(on & (new != value), -change, 0))

    rows = (s.jac, s.response, s.aref, s.diagonal, values, bound, s.paired, s.active & running)
    acc, (new, won) = lax.scan(visit, acc, rows)
    return acc, new, won


def _cones(layout: Layout, p: ConstraintProblem, factor: Array) -> ConeRows:
    jac = p.J.contact[:, 1:]
    response = _response(factor, jac)
    present = p.D[layout.offsets[3] :].reshape(layout.ncontact, layout.condim)[:, 1:] > 0
    block = einsum("cik,cjk->cij", jac, response)
    both = present[:, :, None] & present[:, None, :]
    eye = np.eye(layout.condim - 1, dtype=jac.dtype)
    floor = jnp.maximum(block, COST_RISE)
    block = jnp.where(eye > 0, jnp.where(both, floor, 1), jnp.where(both, block, 0))
    aref = p.aref[layout.offsets[3] :].reshape(layout.ncontact, layout.condim)[:, 1:]
    friction = jnp.where(present, p.J.friction[:, : layout.condim - 1], 1)
    return ConeRows(jac, response, aref, block, friction, present, present.sum(1))


def _write_cones(layout: Layout, force: Array, tangents: Array) -> Array:
    start = layout.offsets[3]
    rows = force[start:].reshape(layout.ncontact, layout.condim)
    rows = jnp.concatenate([rows[:, :1], tangents], axis=1)
    return jnp.concatenate([force[:start], rows.reshape(-1)])


def _sweep_cones(layout: Layout, c: ConeRows, acc: Array, force: Array, running: Array) -> tuple[Array, Array]:
    """One visit of every elliptic contact: its new tangential forces (n, k), and what the visit improved (n,)."""
    rows = force[layout.offsets[3] :].reshape(layout.ncontact, layout.condim)

    def visit(acc: Array, row: tuple) -> tuple:
        jac, response, aref, block, friction, active, count, value, normal, on = row
        slip = jnp.where(active, dot(jac, acc) - aref, 0)
        pulled = slip - dot(block, value)
        new = _in_cone(block, pulled, friction, normal, active, count)
        new = jnp.where((normal >= MINVAL) & active, new, 0)
        delta = new - value
        change = 0.5 * jnp.sum(delta * dot(block, delta)) + jnp.sum(delta * slip)
        new = jnp.where(on & active & (change <= COST_RISE), new, value)
        won = jnp.where(on & (change <= COST_RISE), -change, 0)
        return acc + dot(new - value, response), (new, won)

    on = c.active.any(1) & running
    xs = (c.jac, c.response, c.aref, c.block, c.friction, c.active, c.count, rows[:, 1:], rows[:, 0], on)
    _, (new, won) = lax.scan(visit, acc, xs)
    return new, won


def _in_cone(block: Array, b: Array, friction: Array, normal: Array, active: Array, count: Array) -> Array:
    """Minimise 1/2 v'A v + v'b over sum (v / friction)^2 <= normal^2: (k,). Zero where A is close to singular."""
    scaled = block * friction[:, None] * friction[None, :]
    scaled = jnp.where(active[:, None] & active[None, :], scaled, jnp.eye(len(b), dtype=b.dtype))
    rhs = jnp.where(active, b * friction, 0)
    square = normal * normal
    singular, multiplier = _multiplier(*lax.stop_gradient((scaled, rhs, square)), count)
    on_cone = multiplier > 0
    at = scaled + multiplier * jnp.eye(len(b), dtype=b.dtype)
    safe = jnp.where(singular, jnp.eye(len(b), dtype=b.dtype), at)
    factor = cholesky(safe)
    v = -solve_factored(factor, rhs)
    # the multiplier's own derivative: it moves so that |v| stays the radius of the cone
    curvature = lax.stop_gradient(inner(v, solve_factored(factor, v)))
    excess = inner(v, v) - square
    moved = divide(excess - lax.stop_gradient(excess), 2 * curvature)
    v = v - jnp.where(on_cone, moved, 0) * lax.stop_gradient(solve_factored(factor, v))
    v = v * jnp.where(on_cone, divide(normal, norm(v), 1.0), 1)
    return jnp.where(singular, 0, v * friction)


def _multiplier(a: Array, b: Array, square: Array, count: Array) -> tuple[Array, Array]:
    """Whether A is too close to singular, and the multiplier that brings |(A + l)^-1 b| to the radius, zero inside."""
    values, vectors = eigh(a)
    along = dot(b, vectors)
    pivots = jnp.min(jnp.diagonal(cholesky(jnp.where(values[0] > 0, a, jnp.eye(len(b))))))
    small = jnp.where(count > 3, pivots * pivots, jnp.prod(values)) < MULTIPLIER_EXACT
    singular = small | (values[0] <= 0)
    safe = jnp.where(singular, 1, values)

    def improve(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        multiplier, done = state
        v = along / (safe + multiplier)
        excess = jnp.sum(v * v) - square
        step = divide(excess, 2 * jnp.sum(v * v / (safe + multiplier)))
        done = done | (excess < MULTIPLIER_EXACT) | (step < MULTIPLIER_EXACT)
        return jnp.where(done, multiplier, multiplier + step), done

    zero = jnp.zeros_like(square)
    multiplier, _ = lax.fori_loop(0, MULTIPLIER_STEPS, improve, (zero, jnp.zeros((), bool)))
    return singular, multiplier


def dual_state(layout: Layout, p: ConstraintProblem, force: Array) -> Array:
    """mjtConstraintState of every slot, from its force."""
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
