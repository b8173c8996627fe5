"""Contact rows of large models as an operator: no array has a column for every dof.

A row of a contact's Jacobian is the action of a wrench on its two bodies. So J x is the velocity that x gives to every
body, gathered at the bodies of the contacts and projected on their wrenches, and J' f is the wrenches of the contacts
summed by body and then over the trees. The wrenches (ncontact, condim, nside, 6), torque then force about the centre of
mass of each body's tree, are stored in `efc.J_contact`, where small models have dense rows. They include the sign of
the first side, and the weights of bodies that carry an element of a flex.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.layout import Layout
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.engine.kinematics.contact_jacobian import contact_bodies, frame_wrenches
from jaxsim.engine.kinematics.contact_sides import contact_sides
from jaxsim.engine.structure import tables
from jaxsim.math.arrays import einsum, gather, inner, take
from jaxsim.math.safe import Array, short_sum
from jaxsim.math.tree import dof_path_sum, dof_subtree_sum, subtree_sum


class ContactOperator(NamedTuple):
    """Wrenches (ncontact, condim, nside, 6) and bodies (ncontact, nside) of the contacts, and axes of dofs (nv, 6)."""

    wrench: Array
    body: Array
    cdof: Array


def make_operator(d: Data, layout: Layout) -> ContactOperator:
    """Return the operator from the results of `make_constraint` in `d`."""
    body = d.efc.bodies if layout.flexes else contact_bodies(layout.structure, d)
    return ContactOperator(d.efc.J_contact, body, d.cdof)


@per_structure
def last_dof(m: Model) -> np.ndarray:
    """Return the last dof that moves each body, -1 for none; bodies with the same one have no relative motion."""
    last = np.full(m.nbody, -1)
    for b in range(1, m.nbody):
        own = m.body_dofadr[b] + m.body_dofnum[b] - 1
        last[b] = own if m.body_dofnum[b] else last[m.body_parentid[b]]
    return last


def contact_wrenches(m: Model, d: Data, layout: Layout) -> tuple[Array, Array, Array]:
    """Compute the wrenches (ncontact, condim, nside, 6) of the rows in contact frames.

    Also returns the mask of contacts that a dof moves, and the bodies (ncontact, nside) for
    `efc.bodies`, which change only if contacts may touch flexes.
    """
    contact, condim = d.contact, layout.condim
    if layout.flexes:
        body, weight, _ = contact_sides(m, d)
        moves = jnp.any((weight != 0) & (gather(jnp.asarray(last_dof(m)), body) >= 0), axis=1)
        stored, sign = body, weight[:, None, :, None]
    else:
        body = contact_bodies(m, d)
        last = gather(jnp.asarray(last_dof(m)), body)
        moves = (last[:, 0] != last[:, 1]) & (contact.dim > 0)
        stored, sign = d.efc.bodies, np.array([-1.0, 1.0], contact.dist.dtype)[:, None]
    point = gather(d.subtree_com, gather(jnp.asarray(m.body_rootid), body))
    arm = (contact.pos[:, None] - point)[:, None]  # (ncontact, 1, nside, 3)
    frame = jnp.broadcast_to(contact.frame.reshape(-1, 3, 1, 3), (len(body), 3, layout.nside, 3))
    wrench = frame_wrenches(frame, arm, condim)
    used = (np.arange(condim) < contact.dim[:, None]) & moves[:, None]
    return jnp.where(used[..., None, None], sign * wrench, 0), moves, stored


def times(layout: Layout, op: ContactOperator, x: Array) -> Array:
    """Compute J x in contact frames (ncontact, condim) for x (nv,)."""
    velocity = dof_path_sum(tables.tree(layout.structure), op.cdof * x[:, None])
    return (op.wrench * gather(velocity, op.body)[:, None]).sum((2, 3))


def transpose_times(layout: Layout, op: ContactOperator, force: Array) -> Array:
    """Compute J' f (nv,) for forces in contact frames (ncontact, condim)."""
    wrench = short_sum(op.wrench * force[:, :, None, None], 1)
    total = jax.ops.segment_sum(wrench.reshape(-1, 6), op.body.reshape(-1), layout.structure.nbody)
    return inner(op.cdof, dof_subtree_sum(tables.tree(layout.structure), total))


def inertia_like(layout: Layout, op: ContactOperator, blocks: Array) -> Array:
    """Compute the entries (nC,), placed as in `d.M`, of J' C J for C (ncontact, condim, condim).

    Each side of a contact is treated alone. The coupling of the two sides is left out: between trees it has no entry in
    the blocks of trees.
    """
    structure = layout.structure
    tree = tables.tree(structure)
    weighted = einsum("cij,cjsk->cisk", blocks, op.wrench)
    stiff = einsum("cisk,cisl->cskl", op.wrench, weighted)
    of_body = jax.ops.segment_sum(stiff.reshape(-1, 36), op.body.reshape(-1), structure.nbody)
    composite = take(subtree_sum(tree, of_body), structure.dof_bodyid).reshape(-1, 6, 6)
    push = einsum("ik,ikl->il", op.cdof, composite)
    row, col = tables.inertia_pattern(structure)
    return inner(take(push, row), take(op.cdof, col))


def touched_dofs(layout: Layout, op: ContactOperator, real: Array) -> Array:
    """Return the mask of dofs (nv,) on which the contacts with `real` (ncontact,) act."""
    tree = tables.tree(layout.structure)
    sides = jnp.repeat(real.astype(op.cdof.dtype), layout.nside)[:, None]
    count = jax.ops.segment_sum(sides, op.body.reshape(-1), layout.structure.nbody)
    return dof_subtree_sum(tree, count)[:, 0] > 0


def normal_sums(d: Data, weight: Array) -> Array:
    """Sum the normal rows of the contacts (k, nv) with weights (k, ncontact)."""
    layout = d.efc.layout
    op = make_operator(d, layout)
    normal = np.arange(layout.condim) == 0
    return jax.vmap(lambda w: transpose_times(layout, op, w[:, None] * normal))(weight)
