"""The constraint problem: all that a solver may see, and the convex function whose minimum is `qacc`.

    minimise  1/2 a' M a - a' f + s(J a - aref)

where f is the smooth force and s adds up over rows. With r = J a - aref, every scalar row (equality, dry friction,
limit, frictionless contact, edge of a pyramidal cone) has the force -clip(D r, lo, hi): unbounded for equality,
[-floss, floss] for friction, (-inf, 0] for the one-sided rows. The rows of an elliptic contact have the force of
MuJoCo's manual, "Computation", Constraint model: zero in the dual cone, quadratic in the polar cone, and the squared
distance to the cone between them. Rows with D = 0 are absent.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxsim.core.layout import Layout
from jaxsim.core.rows import limit_to_dof
from jaxsim.core.types import ConstraintState
from jaxsim.math.arrays import dot, einsum, sums
from jaxsim.math.safe import SHORT, Array, divide, norm, short_sum


class ConstraintProblem(NamedTuple):
    """Inertia, smooth force (nv,), rows, and per slot (nslot,) reference, D and bounds of D r.

    M and J are linear operators: `operators` has those of dense arrays, and says what a solver may ask of others. `mu`
    (ncontact,) is the friction of the regularised cone. The layout is static and is passed with the problem.
    """

    M: Any
    J: Any
    qfrc_smooth: Array
    aref: Array
    D: Array
    lo: Array
    hi: Array
    mu: Array


def residual(layout: Layout, p: ConstraintProblem, acc: Array) -> Array:
    """r = J a - aref of every slot."""
    return p.J.times(acc) - p.aref


def elliptic(layout: Layout) -> bool:
    """Whether contact rows form elliptic cones rather than scalar rows."""
    return not layout.pyramidal and layout.condim > 1 and layout.ncontact > 0


class Cone(NamedTuple):
    """Elliptic contacts in regular dual cone space: scaled rows u (n, dim), scale, normal N, tangent length T, zone."""

    u: Any
    scale: Any
    n: Array
    t: Array
    weight: Array  # D0 / (mu^2 (1 + mu^2))
    mu: Array
    bottom: Array
    middle: Array


def make_cone(u: Any, scale: Any, n: Array, t: Array, normal: Array, stiffness: Array, mu: Array) -> Cone:
    """Cones from scaled rows, N and T; `normal` is the unscaled row, `stiffness` its D."""
    frictionless = mu <= 0
    normal = jnp.where(frictionless, normal, n)
    top = (normal >= mu * t) | ((t <= 0) & (normal >= 0))
    bottom = ~top & ((mu * normal + t <= 0) | ((t <= 0) & (normal < 0)))
    square = mu * mu
    weight = divide(stiffness, square * (1 + square))
    return Cone(u, scale, n, t, weight, mu, bottom, ~top & ~bottom)


def middle_normal(c: Cone) -> Array:
    """The normal force of contacts in the middle zone."""
    return -c.weight * (c.n - c.mu * c.t) * c.mu


class MiddleCurvature(NamedTuple):
    """Second derivative of (N - mu T)^2 / 2 by u, over the weight: 1, -ratio u, outer u u' + rest on the diagonal."""

    ratio: Array
    outer: Array
    rest: Array


def middle_curvature(c: Cone) -> MiddleCurvature:
    """Of contacts in the middle zone."""
    ratio = divide(c.mu, c.t)
    return MiddleCurvature(ratio, divide(c.mu * c.n, c.t**3), c.mu**2 - ratio * c.n)


def _cone(layout: Layout, p: ConstraintProblem, r: Array) -> Cone:
    rows = r.reshape(layout.ncontact, layout.condim)
    friction = p.J.friction[:, : layout.condim - 1]
    scale = jnp.concatenate([p.mu[:, None], friction], axis=1)
    present = p.D[layout.offsets[3] :].reshape(rows.shape) > 0
    u = jnp.where(present, rows * scale, 0)
    stiffness = p.D[layout.offsets[3] :: layout.condim]
    return make_cone(u, scale, u[:, 0], norm(u[:, 1:]), rows[:, 0], stiffness, p.mu)


def _cone_force(layout: Layout, p: ConstraintProblem, r: Array) -> Array:
    c = _cone(layout, p, r)
    quadratic = -p.D[layout.offsets[3] :].reshape(c.u.shape) * r.reshape(c.u.shape)
    normal = middle_normal(c)
    tangent = -divide(normal, c.t)[:, None] * c.u[:, 1:] * c.scale[:, 1:]
    middle = jnp.concatenate([normal[:, None], tangent], axis=1)
    force = jnp.where(c.bottom[:, None], quadratic, jnp.where(c.middle[:, None], middle, 0))
    return force.reshape(-1)


def _cone_blocks(layout: Layout, p: ConstraintProblem, r: Array) -> Array:
    """Second derivative of the cost of each elliptic contact (ncontact, dim, dim)."""
    c = _cone(layout, p, r)
    dim = layout.condim
    ratio, outer, rest = middle_curvature(c)
    cross = -ratio[:, None] * c.u[:, 1:]
    tangents = outer[:, None, None] * c.u[:, 1:, None] * c.u[:, None, 1:]
    tangents = tangents + rest[:, None, None] * jnp.eye(dim - 1, dtype=r.dtype)
    top = jnp.concatenate([jnp.ones_like(c.n)[:, None], cross], axis=1)[:, None, :]
    block = jnp.concatenate([top, jnp.concatenate([cross[:, :, None], tangents], axis=2)], axis=1)
    block = block * (c.weight[:, None, None] * c.scale[:, :, None] * c.scale[:, None, :])
    diagonal = p.D[layout.offsets[3] :].reshape(-1, dim, 1) * jnp.eye(dim, dtype=r.dtype)
    return jnp.where(c.bottom[:, None, None], diagonal, jnp.where(c.middle[:, None, None], block, 0))


def _cone_costs(layout: Layout, p: ConstraintProblem, r: Array) -> Array:
    c = _cone(layout, p, r)
    square = (p.D[layout.offsets[3] :] * r * r).reshape(c.u.shape).sum(1)
    gap = c.n - c.mu * c.t
    return 0.5 * jnp.where(c.bottom, square, jnp.where(c.middle, c.weight * gap * gap, 0))


def scalar_force(p: Any, r: Array) -> Array:
    """Force of scalar rows with D, lo and hi: -clip(D r, lo, hi)."""
    t = p.D * r
    return -jnp.where(t <= p.lo, p.lo, jnp.where(t >= p.hi, p.hi, t))


def scalar_weight(p: Any, r: Array) -> Array:
    """Second derivative of the cost of scalar rows with D, lo and hi."""
    t = p.D * r
    return jnp.where((t > p.lo) & (t < p.hi), p.D, 0)


def force(layout: Layout, p: ConstraintProblem, r: Array) -> Array:
    """Force of every slot (nslot,), minus the derivative of s."""
    scalar = scalar_force(p, r)
    if not elliptic(layout):
        return scalar
    start = layout.offsets[3]
    return jnp.concatenate([scalar[:start], _cone_force(layout, p, r[start:])])


def costs(layout: Layout, p: ConstraintProblem, r: Array) -> Array:
    """What s(r) is the sum of: a term for each scalar slot and for each elliptic contact."""
    t = p.D * r
    bound = jnp.where(t <= p.lo, p.lo, jnp.where(t >= p.hi, p.hi, 0))
    inside = (t > p.lo) & (t < p.hi)
    bound = jnp.where(inside, 0, bound)
    each = jnp.where(inside, 0.5 * t * r, bound * r - 0.5 * divide(bound * bound, p.D))
    if not elliptic(layout):
        return each
    start = layout.offsets[3]
    return jnp.concatenate([each[:start], _cone_costs(layout, p, r[start:])])


class Curvature(NamedTuple):
    """s'': a weight for every scalar slot (nslot,), and blocks (ncontact, dim, dim) of elliptic contacts or None."""

    weight: Array
    blocks: Array | None


def curvature(layout: Layout, p: ConstraintProblem, r: Array) -> Curvature:
    weight = scalar_weight(p, r)
    if not elliptic(layout):
        return Curvature(weight, None)
    start = layout.offsets[3]
    scalar = jnp.concatenate([weight[:start], jnp.zeros_like(weight[start:])])
    return Curvature(scalar, _cone_blocks(layout, p, r[start:]))


def along(layout: Layout, p: ConstraintProblem, r: Array, z: Array) -> tuple[Array, Array, Array]:
    """Derivatives of s at r along z: f'z, which is minus the first, the sum of sizes of its terms, and z' s'' z."""
    push, c = force(layout, p, r) * z, curvature(layout, p, r)
    curvature_along = c.weight * z * z
    if c.blocks is not None:
        start = layout.offsets[3]
        frame = z[start:].reshape(layout.ncontact, layout.condim)
        contacts = einsum("cij,cj->ci", c.blocks, frame) * frame
        curvature_along = jnp.concatenate([curvature_along[:start], contacts.reshape(-1)])
    return sums(push, jnp.abs(push), curvature_along)


def contact_blocks(layout: Layout, p: ConstraintProblem, c: Curvature) -> Array:
    """s'' of contacts in their frames (ncontact, dim, dim), whatever the cone."""
    if c.blocks is not None:
        return c.blocks
    w = c.weight[layout.offsets[3] :].reshape(layout.ncontact, layout.nfacet)
    if layout.condim == 1:
        return w[:, :, None]
    plus, minus = w[:, 0::2], w[:, 1::2]
    mu = p.J.friction[:, : layout.condim - 1]
    both, side = plus + minus, mu * (plus - minus)
    diagonal = (mu * mu * both)[:, :, None] * jnp.eye(layout.condim - 1, dtype=w.dtype)
    top = jnp.concatenate([jnp.sum(both, axis=1, keepdims=True), side], axis=1)[:, None, :]
    return jnp.concatenate([top, jnp.concatenate([side[:, :, None], diagonal], axis=2)], axis=1)


def weighted_rows(blocks: Array, jacobian: Array) -> Array:
    """s'' J of contacts (n, dim, nv) from blocks (n, dim, dim) and rows (n, dim, nv)."""
    if blocks.shape[-1] > SHORT:
        return einsum("cij,cjv->civ", blocks, jacobian)
    return short_sum(blocks[:, :, :, None] * jacobian[:, None], 2)


def contact_hessian(blocks: Array, jacobian: Array) -> Array:
    """J' s'' J (nv, nv) of contacts."""
    return dot(lax.collapse(jacobian, 0, 2).T, lax.collapse(weighted_rows(blocks, jacobian), 0, 2))


def hessian(layout: Layout, p: ConstraintProblem, c: Curvature) -> Array:
    """M + J' s'' J (nv, nv)."""
    h = hessian_without_contacts(layout, p, c)
    return h + contact_hessian(contact_blocks(layout, p, c), p.J.contact) if layout.ncontact else h


def hessian_without_contacts(layout: Layout, p: ConstraintProblem, c: Curvature) -> Array:
    """The part of `hessian` that all rows but those of contacts make."""
    _, friction, limit, contact, _ = layout.offsets
    diagonal = c.weight[friction:limit]
    if layout.nlimit:
        diagonal = diagonal + limit_to_dof(layout, c.weight[limit:contact])
    h = p.M.matrix + diagonal[:, None] * jnp.eye(layout.nv, dtype=diagonal.dtype)
    if layout.ngeneral:
        h = h + dot((p.J.general * c.weight[:friction, None]).T, p.J.general)
    return h


def gradient(layout: Layout, p: ConstraintProblem, acc: Array) -> Array:
    """M a - f - J' force(J a - aref), zero at the solution."""
    return momentum_gap(p, acc) - qfrc_constraint(layout, p, acc)


def momentum_gap(p: ConstraintProblem, acc: Array) -> Array:
    """M a - f."""
    return p.M.times(acc) - p.qfrc_smooth


def qfrc_constraint(layout: Layout, p: ConstraintProblem, acc: Array) -> Array:
    """J' force (nv,)."""
    return p.J.transpose_times(force(layout, p, residual(layout, p, acc)))


def row_state(layout: Layout, p: ConstraintProblem, r: Array) -> Array:
    """mjtConstraintState of every slot."""
    t = p.D * r
    friction = jnp.isfinite(p.lo)
    low = jnp.where(friction, int(ConstraintState.LINEARNEG), int(ConstraintState.QUADRATIC))
    high = jnp.where(friction, int(ConstraintState.LINEARPOS), int(ConstraintState.SATISFIED))
    state = jnp.where(t <= p.lo, low, jnp.where(t >= p.hi, high, int(ConstraintState.QUADRATIC)))
    if elliptic(layout):
        start = layout.offsets[3]
        c = _cone(layout, p, r[start:])
        cone = jnp.where(c.bottom, int(ConstraintState.QUADRATIC), int(ConstraintState.SATISFIED))
        cone = jnp.where(c.middle, int(ConstraintState.CONE), cone)
        state = jnp.concatenate([state[:start], jnp.repeat(cone, layout.condim)])
    return jnp.where(p.D > 0, state, 0).astype(jnp.int32)
