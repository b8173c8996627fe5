"""Rows of constraints in their slots, by operations of JAX: activity, impedance and regularisation of every slot.

Rows of each group are computed as arrays; the formulas of impedance run once over all of them. The rows of a contact
with a pyramidal cone differ in nothing but whether they are active: they are computed as one.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.layout import Layout
from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL, ConstraintType, DisableBit
from jaxsim.engine import sleep
from jaxsim.engine.constraint import impedance as imp
from jaxsim.engine.constraint.contact_passive import PASSIVE
from jaxsim.engine.constraint.contact_sides import contact_sides
from jaxsim.engine.constraint.general import GeneralRows
from jaxsim.engine.constraint.jacobian import contact_bodies, contact_jacobian
from jaxsim.engine.constraint.sparse_contact import contact_wrenches
from jaxsim.math.arrays import gather_all, take
from jaxsim.math.safe import Array, components, divide, sqrt
from jaxsim.xla.fusion import fusion_barrier

FIXED = 3  # `contact.exclude` of a contact that moves no dof
NSCALAR = 5  # columns before solref and solimp


class ConstraintRows(NamedTuple):
    """What the position stage makes of the rows: fields of `efc` and `contact`, and counts ne, nf, nl, nefc, wanted.

    `wanted` (in `count`) are the rows that there would be without a capacity.
    """

    active: Array
    pos: Array
    margin: Array
    frictionloss: Array
    diagApprox: Array
    KBIP: Array
    D: Array
    R: Array
    J_contact: Array
    efc_address: Array
    exclude: Array
    mu: Array
    count: Array
    bodies: Array


class RowGroup(NamedTuple):
    """Rows of one group of slots, before regularisation; of a pyramidal contact one, but each of its rows' `active`.

    `depth`, position less margin of the whole constraint, sets the impedance; `frictional` rows, which are known to
    the compiler, damp only (K is zero).
    """

    active: Array
    pos: Array
    depth: Array
    margin: Array
    frictionloss: Array
    solref: Array
    solimp: Array
    diag: Array
    frictional: np.ndarray


def plain_rows(m: Model, d: Data, layout: Layout, general: GeneralRows | None) -> ConstraintRows:
    """The rows of a world from its contacts, positions, and general rows."""
    groups = [] if general is None else [_general_group(general, layout)]
    groups += [_friction_group(m), _limit_group(m, d, layout)]
    bodies, exclude = d.efc.bodies, d.contact.exclude
    if not layout.ncontact:
        jac = jnp.zeros((0, layout.condim, *((layout.nside, 6) if layout.sparse else (m.nv,))), d.qpos.dtype)
    else:
        if layout.sparse:
            jac, moves, bodies = contact_wrenches(m, d, layout)
        else:
            jac, moves = contact_jacobian(m, d, layout)
        if layout.flexes and m.flex_passive.any():
            exclude = jnp.where((exclude == PASSIVE) & ~moves, FIXED, exclude)
        groups.append(_contact_group(m, d, layout, moves))
    active = jnp.concatenate([g.active for g in groups])
    if sleep.sleeps(m):
        active &= sleep.awake_rows(m, d, layout)
    table = jnp.concatenate([_columns(g) for g in groups], axis=1)
    table, active, jac = fusion_barrier((table, active & _enabled(m, layout), jac))
    address, exclude, count, active = _account(m, d, layout, active, exclude)
    scalars, solref, solimp = jnp.split(table, (NSCALAR, NSCALAR + 2))
    (pos, depth, margin, frictionloss, diag), solref, solimp = components(scalars, 0), solref.T, solimp.T

    found = imp.row_numbers(m.opt.timestep, imp.is_safe(m), solref, solimp, depth, diag)
    stiffness, damping, imped, derivative, regular = found
    stiffness = jnp.where(np.concatenate([g.frictional for g in groups]), 0, stiffness)
    mu = jnp.zeros_like(d.contact.dist)
    if layout.ncontact:
        mu, regular = _contact_regularizer(m, d, layout, regular)
    inverse = divide(jnp.ones_like(regular), regular)
    diag = regular * imped / (1 - imped)
    rows = jnp.stack([pos, margin, frictionloss, inverse, stiffness, damping, imped, derivative])
    rarely_read = jnp.stack([diag, regular])  # apart from the others, so that XLA drops them where nothing reads them
    rows, rarely_read = [fusion_barrier(jnp.where(active, _spread(layout, x), 0)) for x in (rows, rarely_read)]
    rows, kbip = jnp.split(rows, 2)
    (pos, margin, frictionloss, inverse), (diag, regular) = components(rows, 0), components(rarely_read, 0)
    return ConstraintRows(
        active, pos, margin, frictionloss, diag, kbip.T, inverse, regular, jac, address, exclude, mu, count, bodies
    )


def _columns(group: RowGroup) -> Array:
    """All numbers of the rows as one array (12, n): it takes one kernel, and its rows are contiguous."""
    scalars = (group.pos, group.depth, group.margin, group.frictionloss, group.diag)
    return jnp.concatenate([*(x[None] for x in scalars), group.solref.T, group.solimp.T])


def _spread(layout: Layout, x: Array) -> Array:
    """Values of all slots (k, nslot) from the rows that are computed, one for each pyramidal contact."""
    if not (layout.pyramidal and layout.ncontact):
        return x
    start = layout.offsets[3]
    return jnp.concatenate([x[:, :start], jnp.repeat(x[:, start:], layout.nfacet, axis=1)], axis=1)


def _general_group(rows: GeneralRows, layout: Layout) -> RowGroup:
    friction = layout.general.type == ConstraintType.FRICTION_TENDON
    return RowGroup(
        rows.active,
        rows.pos,
        rows.impedance_pos - rows.margin,
        rows.margin,
        rows.frictionloss,
        rows.solref,
        rows.solimp,
        rows.diag,
        friction,
    )


def _friction_group(m: Model) -> RowGroup:
    loss = m.dof_frictionloss
    zero = jnp.zeros_like(loss)
    always = np.ones(m.nv, bool)
    return RowGroup(loss != 0, zero, zero, zero, loss, m.dof_solref, m.dof_solimp, m.dof_invweight0, always)


def _limit_group(m: Model, d: Data, layout: Layout) -> RowGroup:
    joint = layout.limit_jnt
    value = take(d.qpos, m.jnt_qposadr[joint])
    bounds = take(m.jnt_range, joint)
    pos = jnp.concatenate([value - bounds[:, 0], bounds[:, 1] - value])
    both = np.tile(joint, 2)
    margin, solref, solimp = gather_all(both, m.jnt_margin, m.jnt_solref, m.jnt_solimp)
    never = np.zeros(len(both), bool)
    zero = jnp.zeros_like(pos)
    diag = take(m.dof_invweight0, m.jnt_dofadr[both])
    return RowGroup(pos < margin, pos, pos - margin, margin, zero, solref, solimp, diag, never)


def _contact_group(m: Model, d: Data, layout: Layout, moves: Array) -> RowGroup:
    """Contact rows: the normal sets position and impedance; elliptic friction rows damp only."""
    contact = d.contact
    row = np.arange(layout.nfacet, dtype=np.int32)
    count = contact.dim[:, None] if not layout.pyramidal else jnp.maximum(2 * (contact.dim[:, None] - 1), 1)
    active = (row < count) & ((contact.exclude == 0) & (contact.dim > 0) & moves)[:, None]
    nrow = 1 if layout.pyramidal else layout.nfacet  # that differ
    frictional = np.arange(nrow) > 0
    if layout.flexes:
        weight = contact_sides(m, d, layout).inverse_inertia
    else:
        weight = m.body_invweight0[:, 0].at[contact_bodies(m, d)].get(mode="promise_in_bounds").sum(1)
    first = contact.friction[:, 0]
    pyramid = layout.pyramidal & (contact.dim > 1)
    diag = jnp.where(pyramid, weight * (1 + first * first), weight)

    def each(x: Array) -> Array:
        return jnp.repeat(x, nrow, axis=0)

    own = jnp.any(contact.solreffriction != 0, axis=1)[:, None, None] & frictional[:, None]
    solref = jnp.where(own, contact.solreffriction[:, None], contact.solref[:, None]).reshape(-1, 2)
    return RowGroup(
        active=active.reshape(-1),
        pos=jnp.where(frictional, 0, contact.dist[:, None]).reshape(-1),
        depth=each(contact.dist - contact.includemargin),
        margin=jnp.where(frictional, 0, contact.includemargin[:, None]).reshape(-1),
        frictionloss=jnp.zeros(layout.ncontact * nrow, contact.dist.dtype),
        solref=solref,
        solimp=each(contact.solimp),
        diag=each(diag),
        frictional=np.tile(frictional, layout.ncontact),
    )


def _contact_regularizer(m: Model, d: Data, layout: Layout, regular: Array) -> tuple[Array, Array]:
    """`contact.mu`, and R of all rows, in which friction has `impratio` times the impedance of the normal.

    Elliptic: R_j friction_j^2 is the same for all friction rows. Pyramidal: all rows get 2 mu^2 R, which matches the
    friction of the elliptic model.
    """
    contact = d.contact
    start = layout.offsets[3]
    ratio = 1 / jnp.maximum(MINVAL, m.opt.impratio)
    mu = contact.friction[:, 0] * sqrt(ratio)
    if layout.pyramidal:
        normal = regular[start:]
        rows = jnp.where(contact.dim > 1, 2 * mu * mu * normal, normal)
    else:
        normal = regular[start :: layout.nfacet] if layout.nfacet else regular[start:]
        friction = contact.friction[:, : layout.condim - 1]
        scale = divide(contact.friction[:, :1] ** 2, friction**2, default=1.0)
        rows = jnp.concatenate([normal[:, None], normal[:, None] * ratio * scale], axis=1).reshape(-1)
    mu = jnp.where(contact.dim > 1, mu, 0)
    return mu, jnp.concatenate([regular[:start], rows])


def _enabled(m: Model, layout: Layout) -> np.ndarray:
    """Slots that the disable flags leave on. Static."""
    flags = m.opt.disableflags
    general = layout.general.type
    contacts = layout.ncontact * layout.nfacet
    kinds = np.concatenate(
        [
            general,
            np.full(layout.nv, ConstraintType.FRICTION_DOF),
            np.full(2 * layout.nlimit, ConstraintType.LIMIT_JOINT),
            np.full(contacts, ConstraintType.CONTACT_FRICTIONLESS),
        ]
    )
    on = np.full(layout.nslot, not flags & DisableBit.CONSTRAINT)
    for flag, off in (
        (DisableBit.EQUALITY, (ConstraintType.EQUALITY,)),
        (DisableBit.FRICTIONLOSS, (ConstraintType.FRICTION_DOF, ConstraintType.FRICTION_TENDON)),
        (DisableBit.LIMIT, (ConstraintType.LIMIT_JOINT, ConstraintType.LIMIT_TENDON)),
        (DisableBit.CONTACT, (ConstraintType.CONTACT_FRICTIONLESS,)),
    ):
        if flags & flag:
            on &= ~np.isin(kinds, off)
    return on


def _account(m: Model, d: Data, layout: Layout, active: Array, exclude: Array) -> tuple[Array, Array, Array, Array]:
    """Addresses of contacts, their `exclude`, counts of rows by kind, and the rows that stay.

    Whole contacts beyond the capacity are dropped.
    """
    _, _, _, contact, _ = layout.offsets
    general = layout.general.type

    def count(mask: Array) -> Array:
        return jnp.sum(mask, dtype=jnp.int32)

    def general_of(kind: ConstraintType) -> Array:
        return count(take(active, np.flatnonzero(general == kind)))

    ne = general_of(ConstraintType.EQUALITY)
    nf = general_of(ConstraintType.FRICTION_TENDON) + count(active[layout.offsets[1] : layout.offsets[2]])
    scalar = count(active[:contact])
    nefc, wanted, address = scalar, scalar, jnp.full(layout.ncontact, -1, jnp.int32)
    if layout.ncontact:
        block = active[contact:].reshape(layout.ncontact, layout.nfacet)
        rows = jnp.sum(block, axis=1, dtype=jnp.int32)
        after = scalar + jnp.cumsum(rows)
        fits = after <= layout.max_constraints
        kept = (rows > 0) & fits
        wanted, nefc = after[-1], scalar + jnp.sum(jnp.where(kept, rows, 0), dtype=jnp.int32)
        fused = (exclude == 0) & (d.contact.dim > 0) & (rows == 0)
        exclude = jnp.where(fused & _contacts_on(m), FIXED, exclude)
        address = jnp.where(kept, after - rows, -1)
        active = jnp.concatenate([active[:contact], (block & fits[:, None]).reshape(-1)])
    return address, exclude, jnp.stack([ne, nf, scalar - ne - nf, nefc, wanted]), active


def _contacts_on(m: Model) -> bool:
    return not m.opt.disableflags & (DisableBit.CONTACT | DisableBit.CONSTRAINT)
