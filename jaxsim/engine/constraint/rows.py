"""Rows of constraints in their slots, by JAX operations: activity, impedance and regularisation of every slot.

Rows of each group are computed as arrays; the formulas of impedance run once over all of them. The rows of a contact
with a pyramidal cone differ only in their activity: they are computed as one.
"""

from typing import NamedTuple

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
from jaxsim.engine.kinematics.contact_jacobian import contact_bodies, contact_jacobian
from jaxsim.engine.kinematics.contact_sides import contact_sides
from jaxsim.engine.kinematics.sparse_contact import contact_wrenches
from jaxsim.math.arrays import gather_all, take
from jaxsim.math.safe import Array, components, divide, sqrt
from jaxsim.native.rows import count_in_use, over_rows
from jaxsim.xla.fusion import fusion_barrier

FIXED = 3  # `contact.exclude` of a contact that moves no dof
NSCALAR = 5  # columns before solref and solimp


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
    frictional: np.ndarray


class ContactPart(NamedTuple):
    """Rows of contacts: activity (n, nfacet), numbers (n, nfacet, ...), Jacobian and mu."""

    active: Array
    moves: Array
    numbers: RowNumbers
    jac: Array
    bodies: Array
    mu: Array


def constraint_rows(m: Model, d: Data, layout: Layout, general: GeneralRows | None) -> ConstraintRows:
    """Compute the rows of a world from its contacts, positions, and general rows."""
    groups = [] if general is None else [_general_group(general, layout)]
    groups += [_friction_group(m), _limit_group(m, d, layout)]
    table = jnp.concatenate([_columns(g) for g in groups], axis=1)
    frictional = np.concatenate([g.frictional for g in groups])
    numbers = _numbers(m, fusion_barrier(table), frictional)
    active, exclude, mu = jnp.concatenate([g.active for g in groups]), d.contact.exclude, jnp.zeros_like(d.contact.dist)
    jac, bodies = _no_jacobian(m, d, layout), d.efc.bodies
    if layout.ncontact:
        contacts = _contact_part(m, d, layout)
        active = jnp.concatenate([active, contacts.active.reshape(-1)])
        numbers = jax.tree.map(lambda x, y: jnp.concatenate([x, lax.collapse(y, 0, 2)]), numbers, contacts.numbers)
        jac, bodies, mu = contacts.jac, contacts.bodies, contacts.mu
        if layout.flexes and m.flex_passive.any():
            exclude = jnp.where((exclude == PASSIVE) & ~contacts.moves, FIXED, exclude)
    if sleep.sleeps(m):
        active &= sleep.awake_rows(m, d, layout)
    address, exclude, count, active = _account(m, d, layout, active & _enabled(m, layout), exclude)
    of_active = lambda x: jnp.where(active.reshape(-1, *(1,) * (x.ndim - 1)), x, 0)  # noqa: E731
    numbers = RowNumbers(*map(of_active, numbers))
    return ConstraintRows(active, numbers, jac, address, exclude, mu, count, bodies)


def _no_jacobian(m: Model, d: Data, layout: Layout) -> Array:
    """Return the Jacobian of zero contacts."""
    return jnp.zeros((0, layout.condim, *((layout.nside, 6) if layout.sparse else (m.nv,))), d.qpos.dtype)


def _numbers(m: Model, table: Array, frictional: np.ndarray) -> RowNumbers:
    """Return the numbers of rows from their columns."""
    scalars, solref, solimp = jnp.split(table, (NSCALAR, NSCALAR + 2))
    (pos, depth, margin, frictionloss, diag), solref, solimp = components(scalars, 0), solref.T, solimp.T
    found = imp.row_numbers(m.opt.timestep, imp.is_safe(m), solref, solimp, depth, diag)
    stiffness, damping, imped, derivative, regular = found
    stiffness = jnp.where(frictional, 0, stiffness)
    kbip = jnp.stack([stiffness, damping, imped, derivative], axis=1)
    return _regularized(RowNumbers(pos, margin, frictionloss, diag, kbip, regular, regular), regular)


def _regularized(n: RowNumbers, regular: Array) -> RowNumbers:
    """Replace R, and compute D and the diagonal from it."""
    imped = n.KBIP[:, 2]
    return n._replace(R=regular, D=divide(jnp.ones_like(regular), regular), diagApprox=regular * imped / (1 - imped))


def _contact_part(m: Model, d: Data, layout: Layout) -> ContactPart:
    """Split off the part of contacts, which come first in their buffer."""

    def of_contacts(shared: tuple[Model, Data], rows: tuple[Contact, Array]) -> tuple[ContactPart, tuple[()]]:
        m, d = shared
        contact, bodies = rows
        return _of_contacts(m, d.replace(contact=contact, efc=d.efc.replace(bodies=bodies)), layout), ()

    count = count_in_use(d.contact.dim > 0)
    return over_rows(of_contacts, count, (m, d), (d.contact, d.efc.bodies))[0]


def _of_contacts(m: Model, d: Data, layout: Layout) -> ContactPart:
    """Compute the rows of all contacts of `d`; numbers of inactive rows have no meaning."""
    contact, bodies = d.contact, d.efc.bodies
    if layout.sparse:
        jac, moves, bodies = contact_wrenches(m, d, layout)
    else:
        jac, moves = contact_jacobian(m, d, layout)
    group = _contact_group(m, d, layout, moves)
    numbers = _numbers(m, _columns(group), group.frictional)
    mu, regular = _contact_regularizer(m, contact, layout, numbers.R)
    numbers = _regularized(numbers, regular)
    active = group.active.reshape(len(contact.dim), layout.nfacet)
    in_facets = lambda x: _facets(layout, x.reshape(len(contact.dim), -1, *x.shape[1:]))  # noqa: E731
    return ContactPart(active, moves, RowNumbers(*map(in_facets, numbers)), jac, bodies, mu)


def _facets(layout: Layout, x: Array) -> Array:
    """Expand computed rows (n, k, ...) to all rows (n, nfacet, ...); a pyramid has one computed row."""
    return jnp.broadcast_to(x, (len(x), layout.nfacet, *x.shape[2:])) if layout.pyramidal else x


def _columns(group: RowGroup) -> Array:
    """Stack all numbers of the rows in one array (12, n), which takes one kernel and has contiguous rows."""
    scalars = (group.pos, group.depth, group.margin, group.frictionloss, group.diag)
    return jnp.concatenate([*(x[None] for x in scalars), group.solref.T, group.solimp.T])


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
    """Compute contact rows: the normal sets position and impedance; elliptic friction rows damp only."""
    contact = d.contact
    row = np.arange(layout.nfacet, dtype=np.int32)
    count = contact.dim[:, None] if not layout.pyramidal else jnp.maximum(2 * (contact.dim[:, None] - 1), 1)
    active = (row < count) & ((contact.exclude == 0) & (contact.dim > 0) & moves)[:, None]
    nrow = 1 if layout.pyramidal else layout.nfacet  # rows computed per contact
    frictional = np.arange(nrow) > 0
    if layout.flexes:
        weight = contact_sides(m, d, layout).inverse_inertia
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
        active=active.reshape(-1),
        pos=jnp.where(frictional, 0, contact.dist[:, None]).reshape(-1),
        depth=each(contact.dist - contact.includemargin),
        margin=jnp.where(frictional, 0, contact.includemargin[:, None]).reshape(-1),
        frictionloss=jnp.zeros(len(contact.dim) * nrow, contact.dist.dtype),
        solref=solref,
        solimp=each(contact.solimp),
        diag=each(diag),
        frictional=np.tile(frictional, len(contact.dim)),
    )


def _contact_regularizer(m: Model, contact: Contact, layout: Layout, regular: Array) -> tuple[Array, Array]:
    """Compute `contact.mu`, and R of the rows of contacts.

    Friction has `impratio` times the impedance of the normal. Elliptic: R_j friction_j^2 is the same for all friction
    rows. Pyramidal: all rows get 2 mu^2 R, which matches the friction of the elliptic model.
    """
    ratio = 1 / jnp.maximum(MINVAL, m.opt.impratio)
    mu = contact.friction[:, 0] * sqrt(ratio)
    if layout.pyramidal:
        rows = jnp.where(contact.dim > 1, 2 * mu * mu * regular, regular)
    else:
        normal = regular[:: layout.nfacet]
        friction = contact.friction[:, : layout.condim - 1]
        scale = divide(contact.friction[:, :1] ** 2, friction**2, default=1.0)
        rows = jnp.concatenate([normal[:, None], normal[:, None] * ratio * scale], axis=1).reshape(-1)
    return jnp.where(contact.dim > 1, mu, 0), rows


def _enabled(m: Model, layout: Layout) -> np.ndarray:
    """Return the mask of slots that the disable flags leave enabled. Static."""
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
    """Return addresses of contacts, their `exclude`, counts of rows by kind, and the mask of rows that are kept.

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
