"""Dense rows of contacts, and of points of bodies, from the axes of the dofs."""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.layout import Layout
from jaxsim.core.model import Model
from jaxsim.core.structure import geom_bodies, moving_dofs
from jaxsim.engine.kinematics.contact_jvp import ContactParts
from jaxsim.engine.kinematics.contact_sides import contact_sides
from jaxsim.interface.public import public
from jaxsim.math.arrays import dot, take
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array
from jaxsim.native.rows import RowsInUse, rows_in_use


def contacts_in_buffer(d: Data) -> RowsInUse:
    """Return the contacts in the buffer."""
    return rows_in_use(d.contact.dim > 0)


def dof_axes(m: Model, d: Data) -> tuple[Array, Array]:
    """Return the spatial axes (6, nv) of all dofs, rotation then translation at one common point, and that point (3,).

    The common point is the centre of mass of the world: it is near all moving bodies, which keeps float32 accurate.
    """
    point = d.subtree_com[0]
    root = m.body_rootid[m.dof_bodyid]
    angular, linear = d.cdof[:, :3], d.cdof[:, 3:]
    linear = linear + cross(angular, point - take(d.subtree_com, root))
    return jnp.concatenate([angular, linear], axis=1).T, point


def jacobian_rows(axes: Array, affects: Array, wrench: Array) -> Array:
    """Compute rows of a Jacobian: the velocity of each dof along given wrenches.

    axes (6, nv) of `dof_axes`; wrench (n, k, 6) about the same point; affects (n, nv), the signed mask of the dofs that
    move the body, or the difference of two. Returns (n, k, nv).
    """
    # explicit sum: with so few terms it is cheaper than a matrix product, since it fuses with the mask
    return sum(wrench[:, :, i, None] * axes[i] for i in range(6)) * affects[:, None, :]


def point_wrench(direction: Array, arm: Array) -> Array:
    """Return the wrench of unit forces along `direction` (..., 3) at `arm` from the common point: (torque, force)."""
    return jnp.concatenate([cross(arm, direction), direction], axis=-1)


def frame_wrenches(frame: Array, arm: Array, condim: int) -> Array:
    """Return the wrenches (n, condim, ..., 6) of the rows of contacts, whose axes are `frame` (n, 3, ..., 3).

    They are unit forces along the axes at `arm`, then unit torques about them.
    """
    force, spin = frame[:, : min(condim, 3)], frame[:, : max(condim - 3, 0)]
    wrench = point_wrench(force, jnp.broadcast_to(arm, force.shape))
    if condim <= 3:
        return wrench
    return jnp.concatenate([wrench, jnp.concatenate([spin, jnp.zeros_like(spin)], axis=-1)], axis=1)


def contact_bodies(m: Model, d: Data) -> Array:
    """Return the bodies (ncontact, 2) of the two geoms of each contact, the world in empty slots."""
    geom = jnp.maximum(d.contact.geom, 0)
    return jnp.asarray(geom_bodies(m)).at[geom].get(mode="promise_in_bounds")


def bodies_of_geoms(m: Model, d: Data) -> Array:
    """Return the bodies (ncontact, 2) of the geoms of contacts for sensors, -1 for a flex; the world in empty slots."""
    bodies = contact_bodies(m, d)
    return jnp.where(d.contact.flex >= 0, -1, bodies) if d.efc.layout.flexes else bodies


def contact_jacobian(m: Model, d: Data, layout: Layout, axes: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
    """Compute the Jacobians of the contact buffer in contact frames (ncontact, condim, nv), and a mask of contacts.

    `axes` are those of `dof_axes` if they are known. The mask selects contacts that a dof moves. Row 0 is along the
    normal, 1 and 2 the tangents, 3 the rotation about the normal, 4 and 5 about the tangents.
    """
    contact = d.contact
    affects, moves = (_affected_by_flexes if layout.flexes else _affected)(m, d)
    axes, point = dof_axes(m, d) if axes is None else axes
    wrench = frame_wrenches(contact.frame.reshape(-1, 3, 3), (contact.pos - point)[:, None, :], layout.condim)
    used = jnp.arange(layout.condim, dtype=jnp.int32) < contact.dim[:, None]
    wrench = jnp.where(used[..., None], wrench, 0)
    return jacobian_rows(axes, affects, wrench), jnp.any(moves, axis=1)


def _affected(m: Model, d: Data) -> tuple[Array, Array]:
    """Return the signs with which dofs separate the sides of contacts (ncontact, nv): 1, -1 or 0.

    And a mask of dofs.
    """
    bodies = contact_bodies(m, d)
    first, second = moving_dofs(m, bodies[:, 0]), moving_dofs(m, bodies[:, 1])
    moves = (first != second) & (d.contact.dim > 0)[:, None]
    return jnp.where(moves, jnp.where(second, 1, -1), 0).astype(d.qpos.dtype), moves


def _affected_by_flexes(m: Model, d: Data) -> tuple[Array, Array]:
    """Compute `_affected` for sides that may be weighted sums of bodies."""
    sides = contact_sides(m, d)
    weights = jnp.where(moving_dofs(m, sides.body), sides.weight[..., None], 0)
    return jnp.sum(weights, axis=1), jnp.any(weights != 0, axis=1)


def contact_parts(m: Model, d: Data, layout: Layout) -> ContactParts:
    """Return the arguments of the rows of `contact_jacobian`."""
    used = np.arange(layout.condim, dtype=np.int32) < d.contact.dim[:, None]
    bodies, weight = contact_bodies(m, d), None
    if layout.flexes:
        bodies, weight, _ = contact_sides(m, d)
    return ContactParts(d.contact.frame, d.contact.pos, used, bodies, d.cdof, d.subtree_com, weight, m.structure)


@public
def mul_jac_vec(m: Model, d: Data, vec: Array) -> Array:
    """Compute the product of the constraint Jacobian with a vector (nv,): mj_mulJacVec.

    Returns (max_constraints,), zero from nefc on.
    """
    return dot(d.efc_J, jnp.asarray(vec, d.qpos.dtype))


@public
def mul_jac_t_vec(m: Model, d: Data, vec: Array) -> Array:
    """Compute the product of the transposed constraint Jacobian with a vector (max_constraints,): mj_mulJacTVec.

    Returns (nv,).
    """
    return dot(d.efc_J.T, jnp.asarray(vec, d.qpos.dtype))
