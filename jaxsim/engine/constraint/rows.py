"""Rows of constraints in their slots, by JAX operations: activity, impedance and regularisation of every slot.

Rows of each group are computed as arrays; the formulas of impedance run once over all of them. The rows of a contact
with a pyramidal cone differ only in their activity: they are computed as one.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.contact import Contact
from jaxsim.core.data import Data
from jaxsim.core.layout import Layout
from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL, ConstraintType, DisableBit
from jaxsim.engine.constraint import impedance as imp
from jaxsim.engine.constraint.contact_passive import PASSIVE
from jaxsim.engine.constraint.general import GeneralRows
from jaxsim.engine.islands import sleep
from jaxsim.engine.kinematics.contact_jacobian import contact_bodies, contact_jacobian, contacts_in_buffer, dof_axes
from jaxsim.engine.kinematics.contact_sides import contact_sides
from jaxsim.engine.kinematics.sparse_contact import contact_wrenches
from jaxsim.math.arrays import gather_all, take
from jaxsim.math.safe import Array, divide, sqrt
from jaxsim.native.rows import over_rows, rows_in_use

FIXED = 3  # `contact.exclude` of a contact that moves no dof


class RowNumbers(NamedTuple):
    """Numbers of rows (n, ...): fields of `efc`."""

    pos: Array
    margin: Array
    frictionloss: Array
    diagApprox: Array
    KBIP: Array
    D: Array
    R: Array


class ConstraintRows(NamedTuple):
    """Rows after the position stage: fields of `efc` and `contact`, and counts ne, nf, nl, nefc, wanted.

    `wanted` (in `count`) is the number of rows without the limit of the capacity.
    """

    active: Array
    numbers: RowNumbers
    J_contact: Array
    efc_address: Array
    exclude: Array
    mu: Array
    count: Array
    bodies: Array


class RowGroup(NamedTuple):
    """Rows of one group of slots, before regularisation.

    A pyramidal contact has one row here, but `active` for each of its rows. `depth`, position less margin of the whole
    constraint, sets the impedance; `frictional` rows, which are static, damp only (K is zero).
    """

    active: Array
    pos: Array
    depth: Array
    margin: Array
    frictionloss: Array
    solref: Array
    solimp: Array
    diag: Array
    frictional: Array


def constraint_rows(m: Model, d: Data, general: GeneralRows | None, layout: Layout) -> ConstraintRows:
    """Compute the rows of a world from its contacts, positions, and general rows."""
    groups = [] if general is None else [_general_group(general, layout)]
    groups += [_friction_group(m), _limit_group(m, d, layout)]
    group = RowGroup(*(jnp.concatenate(x) for x in zip(*groups, strict=True)))
    active = group.active & _enabled(m, layout)
    if sleep.sleeps(m):
        active &= sleep.awake_rows(m, d, layout)
    jac, moves, bodies = _contact_jacobians(m, d, layout)
    nrow = jnp.where(moves & (d.contact.exclude == 0) & _contacts_on(m), _contact_rows(layout, d.contact.dim), 0)
    address, exclude, count = _account(m, d, layout, active, nrow, moves)
    block = np.arange(layout.nfacet, dtype=np.int32) < jnp.where(address >= 0, nrow, 0)[:, None]
    numbers = _numbers_of_group(m, group, active)
    mu = jnp.zeros_like(d.contact.dist)
    if layout.ncontact:
        mu = jnp.where(d.contact.dim > 1, d.contact.friction[:, 0] * sqrt(_friction_ratio(m)), 0)
        of_contacts = _numbers_of_contacts(m, d, layout, bodies, mu, block)
        numbers = jax.tree.map(lambda x, y: jnp.concatenate([x, lax.collapse(y, 0, 2)]), numbers, of_contacts)
        active = jnp.concatenate([active, block.reshape(-1)])
    return ConstraintRows(active, numbers, jac, address, exclude, mu, count, bodies)


def _numbers(m: Model, timestep: Array, g: RowGroup) -> RowNumbers:
    """Return the numbers of rows."""
    stiffness, damping, imped, derivative, regular = imp.row_numbers(
        timestep, imp.is_safe(m), g.solref, g.solimp, g.depth, g.diag
    )
    stiffness = jnp.where(g.frictional, 0, stiffness)
    kbip = jnp.stack([stiffness, damping, imped, derivative], axis=1)
    return _regularized(RowNumbers(g.pos, g.margin, g.frictionloss, g.diag, kbip, regular, regular), regular)


def _regularized(n: RowNumbers, regular: Array) -> RowNumbers:
    """Replace R, and compute D and the diagonal from it."""
    imped = n.KBIP[:, 2]
    return n._replace(R=regular, D=divide(jnp.ones_like(regular), regular), diagApprox=regular * imped / (1 - imped))


def _of_active(active: Array, numbers: RowNumbers) -> RowNumbers:
    """Return the numbers with zeros in rows that are not active."""
    of = lambda x: jnp.where(active.reshape(*active.shape, *(1,) * (x.ndim - active.ndim)), x, 0)  # noqa: E731
    return RowNumbers(*map(of, numbers))


def _numbers_of_group(m: Model, group: RowGroup, active: Array) -> RowNumbers:
    """Return the numbers of the rows of a group, of those that are `active`."""

    def of_rows(timestep: Array, rows: tuple[RowGroup, Array]) -> tuple[RowNumbers, tuple[()]]:
        group, active = rows
        return _of_active(active, _numbers(m, timestep, group)), ()

    return over_rows(of_rows, rows_in_use(active), m.opt.timestep, (group, active))[0]


def _contact_jacobians(m: Model, d: Data, layout: Layout) -> tuple[Array, Array, Array]:
    """Return the Jacobians of contacts, the mask of contacts that a dof moves, and `efc.bodies`."""
    if not layout.ncontact:
        shape = (0, layout.condim, *((layout.nside, 6) if layout.sparse else (m.nv,)))
        return jnp.zeros(shape, d.qpos.dtype), jnp.zeros(0, bool), d.efc.bodies

    def of_contacts(shared: tuple[Model, Data, Any], rows: tuple[Contact, Array]) -> tuple[Any, tuple[()]]:
        (m, d, axes), (contact, bodies) = shared, rows
        d = d.replace(contact=contact, efc=d.efc.replace(bodies=bodies))
        if layout.sparse:
            return contact_wrenches(m, d, layout), ()
        return (*contact_jacobian(m, d, layout, axes), bodies), ()

    axes = None if layout.sparse else dof_axes(m, d)
    used = contacts_in_buffer(d)
    jac, moves, bodies = over_rows(of_contacts, used, (m, d, axes), (d.contact, d.efc.bodies))[0]
    return jac, moves & (d.contact.dim > 0), bodies


def _contact_rows(layout: Layout, dim: Array) -> Array:
    """Return the number of rows of contacts of these dimensions (ncontact,)."""
    return jnp.maximum(2 * (dim - 1), jnp.minimum(dim, 1)) if layout.pyramidal else dim


def _numbers_of_contacts(m: Model, d: Data, layout: Layout, bodies: Array, mu: Array, active: Array) -> RowNumbers:
    """Return the numbers of all rows of contacts (ncontact, nfacet, ...)."""

    def of_contacts(shared: tuple[Model, Data], rows: tuple[Any, ...]) -> tuple[RowNumbers, tuple[()]]:
        (m, d), (contact, bodies, mu, active) = shared, rows
        d = d.replace(contact=contact, efc=d.efc.replace(bodies=bodies))
        group = _contact_group(m, d, layout)
        numbers = _numbers(m, m.opt.timestep, group)
        numbers = _regularized(numbers, _contact_regularizer(m, contact, layout, mu, numbers.R))
        in_facets = lambda x: _facets(layout, x.reshape(len(mu), -1, *x.shape[1:]))  # noqa: E731
        return _of_active(active, RowNumbers(*map(in_facets, numbers))), ()

    return over_rows(of_contacts, rows_in_use(active.any(1)), (m, d), (d.contact, bodies, mu, active))[0]


def _facets(layout: Layout, x: Array) -> Array:
    """Expand computed rows (n, k, ...) to all rows (n, nfacet, ...); a pyramid has one computed row."""
    return jnp.broadcast_to(x, (len(x), layout.nfacet, *x.shape[2:])) if layout.pyramidal else x


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


def _contact_group(m: Model, d: Data, layout: Layout) -> RowGroup:
    """Compute contact rows: the normal sets position and impedance; elliptic friction rows damp only."""
    contact = d.contact
    nrow = 1 if layout.pyramidal else layout.nfacet  # rows computed per contact
    frictional = np.arange(nrow) > 0
    if layout.flexes:
        weight = contact_sides(m, d).inverse_inertia
    else:
        weight = m.body_invweight0[:, 0].at[contact_bodies(m, d)].get(mode="promise_in_bounds").sum(1)
    sliding = contact.friction[:, 0]
    pyramid = layout.pyramidal & (contact.dim > 1)
    diag = jnp.where(pyramid, weight * (1 + sliding * sliding), weight)

    def each(x: Array) -> Array:
        return jnp.repeat(x, nrow, axis=0)

    first, second = contact.solreffriction.T
    own = ((first != 0) | (second != 0)) & ((first > 0) == (second > 0))  # of mixed signs: MuJoCo ignores it
    own = own[:, None, None] & frictional[:, None]
    solref = jnp.where(own, contact.solreffriction[:, None], contact.solref[:, None]).reshape(-1, 2)
    return RowGroup(
        active=jnp.ones(len(contact.dim) * nrow, bool),
        pos=jnp.where(frictional, 0, contact.dist[:, None]).reshape(-1),
        depth=each(contact.dist - contact.includemargin),
        margin=jnp.where(frictional, 0, contact.includemargin[:, None]).reshape(-1),
        frictionloss=jnp.zeros(len(contact.dim) * nrow, contact.dist.dtype),
        solref=solref,
        solimp=each(contact.solimp),
        diag=each(diag),
        frictional=np.tile(frictional, len(contact.dim)),
    )


def _friction_ratio(m: Model) -> Array:
    """Return the impedance of friction over that of the normal."""
    return 1 / jnp.maximum(MINVAL, m.opt.impratio)


def _contact_regularizer(m: Model, contact: Contact, layout: Layout, mu: Array, regular: Array) -> Array:
    """Compute R of the rows of contacts.

    Elliptic: R_j friction_j^2 is the same for all friction rows. Pyramidal: all rows get 2 mu^2 R, which matches the
    friction of the elliptic model.
    """
    if layout.pyramidal:
        return jnp.where(contact.dim > 1, 2 * mu * mu * regular, regular)
    normal = regular[:: layout.nfacet]
    friction = contact.friction[:, : layout.condim - 1]
    scale = divide(contact.friction[:, :1] ** 2, friction**2, default=1.0)
    return jnp.concatenate([normal[:, None], normal[:, None] * _friction_ratio(m) * scale], axis=1).reshape(-1)


def _enabled(m: Model, layout: Layout) -> np.ndarray:
    """Return the mask of slots before those of contacts that the disable flags leave enabled. Static."""
    flags, general = m.opt.disableflags, layout.general.type
    kinds = np.concatenate(
        [
            general,
            np.full(layout.nv, ConstraintType.FRICTION_DOF),
            np.full(2 * layout.nlimit, ConstraintType.LIMIT_JOINT),
        ]
    )
    on = np.full(len(kinds), not flags & DisableBit.CONSTRAINT)
    for flag, off in (
        (DisableBit.EQUALITY, (ConstraintType.EQUALITY,)),
        (DisableBit.FRICTIONLOSS, (ConstraintType.FRICTION_DOF, ConstraintType.FRICTION_TENDON)),
        (DisableBit.LIMIT, (ConstraintType.LIMIT_JOINT, ConstraintType.LIMIT_TENDON)),
    ):
        if flags & flag:
            on &= ~np.isin(kinds, off)
    return on


def _account(m: Model, d: Data, layout: Layout, active: Array, nrow: Array, moves: Array) -> tuple[Array, Array, Array]:
    """Return addresses of contacts (-1: no rows), their `exclude`, and counts of rows by kind.

    `active` are the rows before those of contacts, `nrow` (ncontact,) the rows of contacts. Whole contacts beyond the
    capacity are dropped.
    """
    general = layout.general.type

    def count(mask: Array) -> Array:
        return jnp.sum(mask, dtype=jnp.int32)

    def general_of(kind: ConstraintType) -> Array:
        return count(take(active, np.flatnonzero(general == kind)))

    ne = general_of(ConstraintType.EQUALITY)
    nf = general_of(ConstraintType.FRICTION_TENDON) + count(active[layout.offsets[1] : layout.offsets[2]])
    scalar = count(active)
    nefc, wanted, address, exclude = scalar, scalar, jnp.full(layout.ncontact, -1, jnp.int32), d.contact.exclude
    if layout.ncontact:
        after = scalar + jnp.cumsum(nrow)
        kept = (nrow > 0) & (after <= layout.max_constraints)
        wanted, nefc = after[-1], scalar + count(jnp.where(kept, nrow, 0))
        address = jnp.where(kept, after - nrow, -1)
        if _contacts_on(m):
            still = (d.contact.dim > 0) & ~moves & (exclude == 0)
            exclude = jnp.where(still, FIXED, exclude)
        if layout.flexes and m.flex_passive.any():
            exclude = jnp.where((d.contact.exclude == PASSIVE) & ~moves, FIXED, exclude)
    return address, exclude, jnp.stack([ne, nf, scalar - ne - nf, nefc, wanted])


def _contacts_on(m: Model) -> bool:
    return not m.opt.disableflags & (DisableBit.CONTACT | DisableBit.CONSTRAINT)
