"""The constraint problem: the interface of the solvers, and the convex function whose minimum is `qacc`.

    minimise  1/2 a' M a - a' f + s(J a - aref)

where f is the smooth force and s is a sum over rows. With r = J a - aref, every scalar row (equality, dry friction,
limit, frictionless contact, edge of a pyramidal cone) has the force -clip(D r, lo, hi): unbounded for equality,
[-floss, floss] for friction, (-inf, 0] for the one-sided rows. The rows of an elliptic contact have the force of
MuJoCo's manual, "Computation", Constraint model: zero in the dual cone, quadratic in the polar cone, and the squared
distance to the cone between them. Rows with D = 0 are absent.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxsim.core.layout import Layout
from jaxsim.core.rows import limit_to_dof
from jaxsim.core.types import ConstraintState
from jaxsim.math.arrays import dot, einsum, sums
from jaxsim.math.safe import SHORT, Array, divide, norm, short_sum
from jaxsim.native.hints import symmetric_matrix
from jaxsim.native.rows import RowsInUse, over_rows, rows_in_use

HESSIAN_CHUNK = 8  # contacts per chunk of the sum of the Hessian in XLA


class ConstraintProblem(NamedTuple):
    """Inertia, smooth force (nv,), rows, and per slot (nslot,) reference, D and bounds of D r.

    M and J are linear operators: `operators` has the dense ones, and defines the interface that solvers use. `mu`
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


class ContactRows(NamedTuple):
    """Rows of contacts: reference, D and bounds of D r (n, nfacet), coefficients of friction (n, 5) and mu (n,)."""

    aref: Array
    D: Array
    lo: Array
    hi: Array
    friction: Array
    mu: Array


def contact_rows(layout: Layout, p: ConstraintProblem) -> ContactRows:
    """Return the rows of the contacts of a problem."""
    aref, stiffness, lo, hi = (contact_slots(layout, x) for x in (p.aref, p.D, p.lo, p.hi))
    return ContactRows(aref, stiffness, lo, hi, p.J.friction, p.mu)


def contact_slots(layout: Layout, x: Array) -> Array:
    """Return the entries (ncontact, nfacet) of contacts of an array over slots."""
    return x[layout.offsets[3] :].reshape(layout.ncontact, layout.nfacet)


def contacts_in_use(layout: Layout, p: ConstraintProblem) -> RowsInUse:
    """Return the contacts with rows."""
    return rows_in_use((contact_slots(layout, p.D) > 0).any(1))


def over_contacts(
    layout: Layout,
    p: ConstraintProblem,
    used: RowsInUse,
    function: Callable[..., Any],
    *rows: Array,
    chunk: int | None = None,
) -> Any:
    """Call `over_rows` with `function(contacts, *rows)` for the contacts in use."""
    return over_rows(lambda _, x: function(*x), used, (), (contact_rows(layout, p), *rows), chunk)


def residual(layout: Layout, p: ConstraintProblem, acc: Array) -> Array:
    """Compute r = J a - aref of every slot."""
    return p.J.times(acc) - p.aref


def elliptic(layout: Layout) -> bool:
    """Return whether contact rows form elliptic cones rather than scalar rows."""
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
    """Classify contacts by scaled rows, N and T; `normal` is the unscaled row, `stiffness` its D."""
    frictionless = mu <= 0
    normal = jnp.where(frictionless, normal, n)
    top = (normal >= mu * t) | ((t <= 0) & (normal >= 0))
    bottom = ~top & ((mu * normal + t <= 0) | ((t <= 0) & (normal < 0)))
    square = mu * mu
    weight = divide(stiffness, square * (1 + square))
    return Cone(u, scale, n, t, weight, mu, bottom, ~top & ~bottom)


def middle_normal(c: Cone) -> Array:
    """Compute the normal force of contacts in the middle zone."""
    return -c.weight * (c.n - c.mu * c.t) * c.mu


class MiddleCurvature(NamedTuple):
    """Second derivative of (N - mu T)^2 / 2 by u, over the weight: 1, -ratio u, outer u u' + rest on the diagonal."""

    ratio: Array
    outer: Array
    rest: Array


def middle_curvature(c: Cone) -> MiddleCurvature:
    """Compute the second derivative of contacts in the middle zone."""
    ratio = divide(c.mu, c.t)
    return MiddleCurvature(ratio, divide(c.mu * c.n, c.t**3), c.mu**2 - ratio * c.n)


def _cone(layout: Layout, c: ContactRows, r: Array) -> Cone:
    scale = jnp.concatenate([c.mu[:, None], c.friction[:, : layout.condim - 1]], axis=1)
    u = jnp.where(c.D > 0, r * scale, 0)
    return make_cone(u, scale, u[:, 0], norm(u[:, 1:]), r[:, 0], c.D[:, 0], c.mu)


def _cone_force(layout: Layout, rows: ContactRows, r: Array) -> Array:
    c = _cone(layout, rows, r)
    normal = middle_normal(c)
    tangent = -divide(normal, c.t)[:, None] * c.u[:, 1:] * c.scale[:, 1:]
    middle = jnp.concatenate([normal[:, None], tangent], axis=1)
    return jnp.where(c.bottom[:, None], -rows.D * r, jnp.where(c.middle[:, None], middle, 0))


def _cone_blocks(layout: Layout, rows: ContactRows, r: Array) -> Array:
    """Compute the second derivative of the cost of each elliptic contact (n, dim, dim)."""
    c = _cone(layout, rows, r)
    dim = layout.condim
    ratio, outer, rest = middle_curvature(c)
    cross = -ratio[:, None] * c.u[:, 1:]
    tangents = outer[:, None, None] * c.u[:, 1:, None] * c.u[:, None, 1:]
    tangents = tangents + rest[:, None, None] * jnp.eye(dim - 1, dtype=r.dtype)
    top = jnp.concatenate([jnp.ones_like(c.n)[:, None], cross], axis=1)[:, None, :]
    block = jnp.concatenate([top, jnp.concatenate([cross[:, :, None], tangents], axis=2)], axis=1)
    block = block * (c.weight[:, None, None] * c.scale[:, :, None] * c.scale[:, None, :])
    diagonal = rows.D[:, :, None] * jnp.eye(dim, dtype=r.dtype)
    return jnp.where(c.bottom[:, None, None], diagonal, jnp.where(c.middle[:, None, None], block, 0))


def _cone_along(layout: Layout, rows: ContactRows, r: Array, z: Array) -> Array:
    """Compute terms (n, dim) of z' s'' z, whose sum over the rows of a contact counts."""
    c = _cone(layout, rows, r)
    ratio, outer, rest = (x[:, None] for x in middle_curvature(c))
    y = z * c.scale
    normal, side, u = y[:, :1], y[:, 1:], c.u[:, 1:]
    along = short_sum(u * side, 1, keepdims=True)
    first = normal * (normal - 2 * ratio * along)
    middle = c.weight[:, None] * jnp.concatenate([first, outer * along * u * side + rest * side * side], axis=1)
    return jnp.where(c.bottom[:, None], rows.D * z * z, jnp.where(c.middle[:, None], middle, 0))


def _cone_costs(layout: Layout, rows: ContactRows, r: Array) -> Array:
    c = _cone(layout, rows, r)
    square = (rows.D * r * r).sum(1)
    gap = c.n - c.mu * c.t
    return 0.5 * jnp.where(c.bottom, square, jnp.where(c.middle, c.weight * gap * gap, 0))


def scalar_force(p: Any, r: Array) -> Array:
    """Compute the force of scalar rows with D, lo and hi: -clip(D r, lo, hi)."""
    t = p.D * r
    return -jnp.where(t <= p.lo, p.lo, jnp.where(t >= p.hi, p.hi, t))


def scalar_weight(p: Any, r: Array) -> Array:
    """Compute the second derivative of the cost of scalar rows with D, lo and hi."""
    t = p.D * r
    return jnp.where((t > p.lo) & (t < p.hi), p.D, 0)


def force(layout: Layout, p: ConstraintProblem, r: Array) -> Array:
    """Compute the force of every slot (nslot,), minus the derivative of s."""
    if not elliptic(layout):
        return scalar_force(p, r)

    def of_contacts(c: ContactRows, r: Array) -> tuple[Array, tuple[()]]:
        return _cone_force(layout, c, r), ()

    scalar = scalar_force(fixed_rows(layout, p), r[: layout.offsets[3]])
    contact = over_contacts(layout, p, contacts_in_use(layout, p), of_contacts, contact_slots(layout, r))[0]
    return jnp.concatenate([scalar, contact.reshape(-1)])


def contact_force(layout: Layout, c: ContactRows, r: Array) -> Array:
    """Compute the force of rows of contacts (n, nfacet)."""
    return _cone_force(layout, c, r) if elliptic(layout) else scalar_force(c, r)


class FixedRows(NamedTuple):
    """Bounds of all slots except those of contacts."""

    D: Array
    lo: Array
    hi: Array


def fixed_rows(layout: Layout, p: ConstraintProblem) -> FixedRows:
    """Return the rows of a problem except those of contacts."""
    end = layout.offsets[3]
    return FixedRows(p.D[:end], p.lo[:end], p.hi[:end])


def scalar_costs(p: Any, r: Array) -> Array:
    """Compute the costs of scalar rows with D, lo and hi."""
    t = p.D * r
    bound = jnp.where(t <= p.lo, p.lo, jnp.where(t >= p.hi, p.hi, 0))
    inside = (t > p.lo) & (t < p.hi)
    bound = jnp.where(inside, 0, bound)
    return jnp.where(inside, 0.5 * t * r, bound * r - 0.5 * divide(bound * bound, p.D))


def contact_costs(layout: Layout, c: ContactRows, r: Array) -> Array:
    """Compute the terms of the cost of rows of contacts (n, nfacet)."""
    return _cone_costs(layout, c, r) if elliptic(layout) else scalar_costs(c, r)


def cost(layout: Layout, p: ConstraintProblem, used: RowsInUse, r: Array) -> Array:
    """Compute the cost s(r)."""

    def of_contacts(c: ContactRows, r: Array) -> tuple[tuple[()], Array]:
        return (), jnp.sum(contact_costs(layout, c, r))

    total = jnp.sum(scalar_costs(fixed_rows(layout, p), r[: layout.offsets[3]]))
    if not layout.ncontact:
        return total
    return total + over_contacts(layout, p, used, of_contacts, contact_slots(layout, r))[1]


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
    return Curvature(scalar, _cone_blocks(layout, contact_rows(layout, p), contact_slots(layout, r)))


def curvature_times(layout: Layout, c: Curvature, z: Array) -> Array:
    """Compute s'' z of every slot (nslot,)."""
    product = c.weight * z
    if c.blocks is None:
        return product
    contacts = einsum("cij,cj->ci", c.blocks, contact_slots(layout, z))
    return jnp.concatenate([product[: layout.offsets[3]], contacts.reshape(-1)])


def along(layout: Layout, p: ConstraintProblem, used: RowsInUse, r: Array, z: Array) -> tuple[Array, Array, Array]:
    """Compute derivatives of s at r along z: f'z, the sum of its absolute terms, and z' s'' z.

    f'z is minus the first derivative.
    """

    def of_contacts(c: ContactRows, r: Array, z: Array) -> tuple[tuple[()], tuple[Array, ...]]:
        return (), contact_along(layout, c, r, z)

    end, fixed = layout.offsets[3], fixed_rows(layout, p)
    push = scalar_force(fixed, r[:end]) * z[:end]
    total = sums(push, jnp.abs(push), scalar_weight(fixed, r[:end]) * z[:end] * z[:end])
    if not layout.ncontact:
        return total
    found = over_contacts(layout, p, used, of_contacts, contact_slots(layout, r), contact_slots(layout, z))[1]
    return tuple(x + y for x, y in zip(total, found, strict=True))


def contact_along(layout: Layout, c: ContactRows, r: Array, z: Array) -> tuple[Array, Array, Array]:
    """Compute the part of `along` due to rows of contacts (n, nfacet)."""
    push = contact_force(layout, c, r) * z
    curvature_along = _cone_along(layout, c, r, z) if elliptic(layout) else scalar_weight(c, r) * z * z
    return sums(push, jnp.abs(push), curvature_along)


def contact_blocks(layout: Layout, p: ConstraintProblem, c: Curvature) -> Array:
    """Return s'' of contacts in their frames (ncontact, dim, dim), for either type of cone."""
    if c.blocks is not None:
        return c.blocks
    return _facet_blocks(layout, contact_slots(layout, c.weight), p.J.friction)


def blocks_of_contacts(layout: Layout, c: ContactRows, r: Array) -> Array:
    """Compute s'' of contacts in their frames (n, dim, dim) from residuals of rows (n, nfacet)."""
    if elliptic(layout):
        return _cone_blocks(layout, c, r)
    return _facet_blocks(layout, scalar_weight(c, r), c.friction)


def _facet_blocks(layout: Layout, w: Array, friction: Array) -> Array:
    """Compute s'' of contacts in their frames from the weights (n, nfacet) of scalar rows."""
    if layout.condim == 1:
        return w[:, :, None]
    plus, minus = w[:, 0::2], w[:, 1::2]
    mu = friction[:, : layout.condim - 1]
    both, side = plus + minus, mu * (plus - minus)
    diagonal = (mu * mu * both)[:, :, None] * jnp.eye(layout.condim - 1, dtype=w.dtype)
    top = jnp.concatenate([jnp.sum(both, axis=1, keepdims=True), side], axis=1)[:, None, :]
    return jnp.concatenate([top, jnp.concatenate([side[:, :, None], diagonal], axis=2)], axis=1)


def weighted_rows(blocks: Array, jacobian: Array) -> Array:
    """Compute s'' J of contacts (n, dim, nv) from blocks (n, dim, dim) and rows (n, dim, nv)."""
    if blocks.shape[-1] > SHORT:
        return einsum("cij,cjv->civ", blocks, jacobian)
    return short_sum(blocks[:, :, :, None] * jacobian[:, None], 2)


def hessian(layout: Layout, p: ConstraintProblem, used: RowsInUse, r: Array) -> Array:
    """Compute M + J' s'' J (nv, nv)."""

    def of_contacts(c: ContactRows, jacobian: Array, r: Array) -> tuple[tuple[()], Array]:
        weighted = weighted_rows(blocks_of_contacts(layout, c, r), jacobian)
        product = dot(lax.collapse(jacobian, 0, 2).T, lax.collapse(weighted, 0, 2))
        return (), symmetric_matrix(product)

    _, friction, limit, contact, _ = layout.offsets
    weight = scalar_weight(fixed_rows(layout, p), r[:contact])
    diagonal = weight[friction:limit]
    if layout.nlimit:
        diagonal = diagonal + limit_to_dof(layout, weight[limit:])
    h = p.M.matrix + diagonal[:, None] * jnp.eye(layout.nv, dtype=diagonal.dtype)
    if layout.ngeneral:
        h = h + dot((p.J.general * weight[:friction, None]).T, p.J.general)
    if not layout.ncontact:
        return h
    rows = p.J.contact, contact_slots(layout, r)
    return h + over_contacts(layout, p, used, of_contacts, *rows, chunk=HESSIAN_CHUNK)[1]


def hessian_times(layout: Layout, p: ConstraintProblem, c: Curvature, x: Array) -> Array:
    """Compute (M + J' s'' J) x (nv,) by the operators of the problem."""
    return p.M.times(x) + p.J.transpose_times(curvature_times(layout, c, p.J.times(x)))


def gradient(layout: Layout, p: ConstraintProblem, acc: Array) -> Array:
    """Compute M a - f - J' force(J a - aref), zero at the solution."""
    return momentum_gap(p, acc) - qfrc_constraint(layout, p, acc)


def momentum_gap(p: ConstraintProblem, acc: Array) -> Array:
    """Compute M a - f."""
    return p.M.times(acc) - p.qfrc_smooth


def qfrc_constraint(layout: Layout, p: ConstraintProblem, acc: Array) -> Array:
    """Compute J' force (nv,)."""
    return p.J.transpose_times(force(layout, p, residual(layout, p, acc)))


def scalar_state(p: Any, r: Array) -> Array:
    """Return the mjtConstraintState of scalar rows with D, lo and hi."""
    t = p.D * r
    friction = jnp.isfinite(p.lo)
    low = jnp.where(friction, int(ConstraintState.LINEARNEG), int(ConstraintState.QUADRATIC))
    high = jnp.where(friction, int(ConstraintState.LINEARPOS), int(ConstraintState.SATISFIED))
    state = jnp.where(t <= p.lo, low, jnp.where(t >= p.hi, high, int(ConstraintState.QUADRATIC)))
    return jnp.where(p.D > 0, state, 0).astype(jnp.int32)


def _cone_state(layout: Layout, rows: ContactRows, r: Array) -> Array:
    """Return the mjtConstraintState of rows of elliptic contacts (n, dim)."""
    c = _cone(layout, rows, r)
    state = jnp.where(c.bottom, int(ConstraintState.QUADRATIC), int(ConstraintState.SATISFIED))
    state = jnp.where(c.middle, int(ConstraintState.CONE), state)
    return jnp.where(rows.D > 0, state[:, None], 0).astype(jnp.int32)


def forces_and_states(layout: Layout, p: ConstraintProblem, used: RowsInUse, r: Array) -> tuple[Array, ...]:
    """Return the force and the mjtConstraintState of every slot (nslot,), given the contacts in use."""

    def of_contacts(c: ContactRows, r: Array) -> tuple[tuple[Array, Array], tuple[()]]:
        state = _cone_state(layout, c, r) if elliptic(layout) else scalar_state(c, r)
        return (contact_force(layout, c, r), state), ()

    end, fixed = layout.offsets[3], fixed_rows(layout, p)
    found = scalar_force(fixed, r[:end]), scalar_state(fixed, r[:end])
    if not layout.ncontact:
        return found
    contacts = over_contacts(layout, p, used, of_contacts, contact_slots(layout, r))[0]
    return tuple(jnp.concatenate([x, y.reshape(-1)]) for x, y in zip(found, contacts, strict=True))
