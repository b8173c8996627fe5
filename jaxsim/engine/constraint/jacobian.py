"""Jacobians of points and contacts, and the product of all constraint rows with a vector, from the tree's dof axes."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.layout import Layout
from jaxsim.core.model import Model
from jaxsim.core.rows import contact_facets, contact_frame_force, signed_limit_to_dof
from jaxsim.core.structure import moving_dofs
from jaxsim.engine.constraint import contact_jvp, sparse_contact
from jaxsim.math.arrays import add_at, dot, inner, take, take_or_zero
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array
from jaxsim.xla.fusion import fusion_barrier


def dof_axes(m: Model, d: Data) -> tuple[Array, Array]:
    """Spatial axes (6, nv) of all dofs, rotation then translation at one common point, and that point (3,).

    The common point is the centre of mass of the world: near to everything that moves, so that float32 loses little.
    """
    point = d.subtree_com[0]
    root = m.body_rootid[m.dof_bodyid]
    angular, linear = d.cdof[:, :3], d.cdof[:, 3:]
    linear = linear + cross(angular, point - take(d.subtree_com, root))
    return jnp.concatenate([angular, linear], axis=1).T, point


def jacobian_rows(axes: Array, affects: Array, wrench: Array) -> Array:
    """Rows of a Jacobian: what each dof does along given wrenches.

    axes (6, nv) of `dof_axes`; wrench (n, k, 6) about the same point; affects (n, nv), the signed mask of the dofs that
    move the body, or the difference of two. Returns (n, k, nv).
    """
    # written out: a product of so few terms costs less where it fuses with the mask than as one of matrices
    return sum(wrench[:, :, i, None] * axes[i] for i in range(6)) * affects[:, None, :]


def point_wrench(direction: Array, arm: Array) -> Array:
    """Wrench of unit forces along `direction` (..., 3) at `arm` from the common point: (torque, force)."""
    return jnp.concatenate([cross(arm, direction), direction], axis=-1)


def contact_bodies(m: Model, d: Data) -> Array:
    """Bodies (ncontact, 2) of the two geoms of each contact, the world in empty slots."""
    geom = jnp.maximum(d.contact.geom, 0)
    return jnp.asarray(m.geom_bodyid).at[geom].get(mode="promise_in_bounds")


def contact_jacobian(m: Model, d: Data, layout: Layout) -> tuple[Array, Array]:
    """Jacobian blocks of the contact buffer in contact frames (ncontact, condim, nv), and which contacts move any dof.

    Row 0 is along the normal, 1 and 2 the tangents, 3 the rotation about the normal, 4 and 5 about the tangents.
    """
    contact = d.contact
    real = contact.dim > 0
    bodies = contact_bodies(m, d)
    first, second = moving_dofs(m, bodies[:, 0]), moving_dofs(m, bodies[:, 1])
    moves = (first != second) & real[:, None]
    affects = jnp.where(moves, jnp.where(second, 1, -1), 0).astype(d.qpos.dtype)
    axes, point = dof_axes(m, d)
    frame = contact.frame.reshape(-1, 3, 3)
    arm = (contact.pos - point)[:, None, :]
    wrench = point_wrench(frame[:, : min(layout.condim, 3)], jnp.broadcast_to(arm, frame.shape)[:, : layout.condim])
    if layout.condim > 3:
        spin = frame[:, : layout.condim - 3]
        wrench = jnp.concatenate([wrench, jnp.concatenate([spin, jnp.zeros_like(spin)], axis=-1)], axis=1)
    used = jnp.arange(layout.condim) < contact.dim[:, None]
    wrench = jnp.where(used[..., None], wrench, 0)
    return jacobian_rows(axes, affects, wrench), jnp.any(moves, axis=1)


def contact_source(m: Model, d: Data, layout: Layout) -> contact_jvp.Source:
    """What the rows of `contact_jacobian` are functions of."""
    used = np.arange(layout.condim) < d.contact.dim[:, None]
    bodies = contact_bodies(m, d)
    return contact_jvp.Source(d.contact.frame, d.contact.pos, used, bodies, d.cdof, d.subtree_com, m.structure)


def rows_times(layout: Layout, jac: Any, x: Array) -> Array:
    """J x for every slot (nslot,): `jac` has J_general, J_contact (an operator if sparse) and friction; x is (nv,)."""
    parts = [general_times(layout, jac.J_general, x)] if layout.ngeneral else []
    at_limit = take(x, layout.limit_dof)
    parts += [x, (np.array([[1], [-1]], x.dtype) * at_limit).reshape(-1)]
    if layout.ncontact:
        if layout.sparse:
            frame = sparse_contact.times(layout, jac.J_contact, x)
        else:
            frame = contact_jvp.times(layout, jac.J_contact, jac.source, x)
        parts.append(contact_facets(layout, jac.friction, frame))
    return jnp.concatenate(parts)


def general_times(layout: Layout, jac: Array, x: Array) -> Array:
    """J x of the general rows (ngeneral,)."""
    return inner(jac, take_or_zero(x, layout.columns)) if layout.sparse else dot(jac, x)


def general_transpose_times(layout: Layout, jac: Array, force: Array) -> Array:
    """J' f (nv,) of the general rows."""
    if layout.sparse:
        return add_at(layout.columns.reshape(-1), (jac * force[:, None]).reshape(-1), layout.nv)
    return dot(force, jac)


def rows_transpose_times(layout: Layout, jac: Any, force: Array) -> Array:
    """J' f (nv,) from forces of every slot (nslot,)."""
    _, friction, limit, contact, end = layout.offsets
    force = fusion_barrier(force)
    out = force[friction:limit]
    if layout.nlimit:
        out = out + signed_limit_to_dof(layout, force[limit:contact])
    if layout.ngeneral:
        out = out + general_transpose_times(layout, jac.J_general, force[:friction])
    if layout.ncontact:
        frame = contact_frame_force(layout, jac.friction, force[contact:end])
        if layout.sparse:
            out = out + sparse_contact.transpose_times(layout, jac.J_contact, frame)
        else:
            out = out + contact_jvp.transpose_times(layout, jac.J_contact, jac.source, frame)
    return out


def mul_jac_vec(m: Model, d: Data, vec: Array) -> Array:
    """Product of the constraint Jacobian with a vector (nv,): (max_constraints,), zero from nefc on: mj_mulJacVec."""
    return dot(d.efc_J, jnp.asarray(vec, d.qpos.dtype))


def mul_jac_t_vec(m: Model, d: Data, vec: Array) -> Array:
    """Product of the transposed constraint Jacobian with a vector (max_constraints,): (nv,), mj_mulJacTVec."""
    return dot(d.efc_J.T, jnp.asarray(vec, d.qpos.dtype))
