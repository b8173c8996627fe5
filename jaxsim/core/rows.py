"""Algebra of the slots of constraint rows: sums by group, contact frames and facets, packing in MuJoCo's order.

Functions of a `Layout` and of arrays over its slots; none of them reads a model.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.layout import Layout
from jaxsim.core.structure import moving_dofs
from jaxsim.core.types import ConstraintType
from jaxsim.math.arrays import add_at, take, take_or_zero
from jaxsim.math.safe import Array

Product = Callable[[Array], Array]


def contact_facets(layout: Layout, friction: Array, x: Array) -> Array:
    """Return values of the rows of contacts (n * nfacet, ...) from values in their frames x (n, condim, ...).

    Elliptic cones: the frame itself. Pyramidal: normal plus and minus friction times each tangent, in pairs.
    """
    rows = x.shape[0] * layout.nfacet  # not -1: a model without dofs has columns of no entries
    if not layout.pyramidal or layout.condim == 1:
        return x.reshape(rows, *x.shape[2:])
    tail = (1,) * (x.ndim - 2)
    side = friction[:, : layout.condim - 1].reshape(len(x), -1, *tail) * x[:, 1:]
    pairs = jnp.stack([x[:, :1] + side, x[:, :1] - side], axis=2)
    return pairs.reshape(rows, *x.shape[2:])


def contact_frame_force(layout: Layout, friction: Array, force: Array) -> Array:
    """Return forces in contact frames (n, condim) from row forces (n * nfacet,): `contact_facets` transposed."""
    if not layout.pyramidal or layout.condim == 1:
        return force.reshape(len(friction), layout.condim)
    pairs = force.reshape(len(friction), layout.condim - 1, 2)
    normal = pairs.sum((1, 2))[:, None]
    tangent = friction[:, : layout.condim - 1] * (pairs[..., 0] - pairs[..., 1])
    return jnp.concatenate([normal, tangent], axis=1)


def limit_to_dof(layout: Layout, x: Array) -> Array:
    """Sum the values (2 * nlimit,) of limit slots by dof (nv,)."""
    both = x[: layout.nlimit] + x[layout.nlimit :]
    index = np.full(layout.nv, -1)
    index[layout.limit_dof] = np.arange(layout.nlimit)
    return take_or_zero(both, index)


def signed_limit_to_dof(layout: Layout, x: Array) -> Array:
    """Sum the values (2 * nlimit,) of limit slots by dof (nv,): lower sides with plus, upper sides with minus."""
    n = layout.nlimit
    return limit_to_dof(layout, jnp.concatenate([x[:n], -x[n:]]))


def rows_times(layout: Layout, friction: Array, x: Array, general: Product, contact: Product) -> Array:
    """Compute J x for every slot (nslot,), x being (nv,).

    `general(x)` computes the product of the general rows (ngeneral,), `contact(x)` that of the contact rows in contact
    frames (ncontact, condim). `friction` (ncontact, 5) are the coefficients of the contacts.
    """
    at_limit = take(x, layout.limit_dof)
    parts = [x, (np.array([[1], [-1]], x.dtype) * at_limit).reshape(-1)]
    if layout.ngeneral:
        parts.insert(0, general(x))
    if layout.ncontact:
        parts.append(contact_facets(layout, friction, contact(x)))
    return jnp.concatenate(parts)


def rows_transpose_times(layout: Layout, friction: Array, force: Array, general: Product, contact: Product) -> Array:
    """Compute J' f (nv,) for forces of every slot (nslot,); `general` and `contact` are transposes (`rows_times`)."""
    _, start, limit, first, _ = layout.offsets
    out = force[start:limit]
    if layout.nlimit:
        out = out + signed_limit_to_dof(layout, force[limit:first])
    if layout.ngeneral:
        out = out + general(force[:start])
    if layout.ncontact:
        out = out + contact(contact_frame_force(layout, friction, force[first:]))
    return out


def general_dense(layout: Layout, jac: Array) -> Array:
    """Return the general rows over all dofs (ngeneral, nv), from those at the columns of a sparse layout."""
    if not layout.sparse:
        return jac
    row = np.arange(layout.ngeneral)[:, None] * layout.nv
    flat = np.where(layout.columns < 0, -1, row + layout.columns).reshape(-1)
    return add_at(flat, jac.reshape(-1), layout.ngeneral * layout.nv).reshape(layout.ngeneral, layout.nv)


def pack_rows(layout: Layout, active: Array, x: Array) -> Array:
    """Pack the `active` slots of `x` (nslot, ...) to the front: (max_constraints, ...), in MuJoCo's order of rows."""
    active = active[layout.order]
    target = jnp.where(active, jnp.cumsum(active) - 1, layout.max_constraints)
    packed = jnp.zeros((layout.max_constraints, *x.shape[1:]), x.dtype)
    return packed.at[target].set(x[layout.order], mode="drop")


def unpack_rows(layout: Layout, active: Array, x: Array) -> Array:
    """Return values (nslot, ...) of the `active` slots from packed rows (max_constraints, ...).

    This is the inverse of `pack_rows`.
    """
    active = active[layout.order]
    rank = jnp.clip(jnp.cumsum(active) - 1, 0, max(layout.max_constraints - 1, 0))
    values = jnp.where(active.reshape(-1, *(1,) * (x.ndim - 1)), x[rank], 0)
    return jnp.zeros((len(layout.order), *x.shape[1:]), x.dtype).at[layout.order].set(values)


def slot_values(efc: Any, contact: Any, cdof: Array, field: str) -> Array:
    """Return values (nslot, ...) of MuJoCo's `efc_<field>`: stored ones, types, ids, or Jacobian rows over all dofs.

    `cdof` (nv, 6) are the axes of the dofs, from which rows of sparse layouts are computed.
    """
    if field == "type":
        return _types(efc.layout, contact)
    if field == "id":
        return _ids(efc.layout)
    if field == "J":
        return _jacobian(efc, contact, cdof)
    return getattr(efc, field)


def _types(layout: Layout, contact: Any) -> Array:
    scalar = np.concatenate(
        [
            layout.general.type,
            np.full(layout.nv, ConstraintType.FRICTION_DOF),
            np.full(2 * layout.nlimit, ConstraintType.LIMIT_JOINT),
        ]
    )
    cone = ConstraintType.CONTACT_PYRAMIDAL if layout.pyramidal else ConstraintType.CONTACT_ELLIPTIC
    kind = jnp.where(contact.dim > 1, int(cone), int(ConstraintType.CONTACT_FRICTIONLESS))
    return jnp.concatenate([jnp.asarray(scalar, kind.dtype), jnp.repeat(kind, layout.nfacet)])


def _ids(layout: Layout) -> Array:
    contacts = np.repeat(np.arange(layout.ncontact), layout.nfacet)
    return jnp.asarray(
        np.concatenate([layout.general.id, np.arange(layout.nv), np.tile(layout.limit_jnt, 2), contacts]), jnp.int32
    )


def _jacobian(efc: Any, contact: Any, cdof: Array) -> Array:
    layout: Layout = efc.layout
    eye = np.eye(layout.nv, dtype=efc.J_contact.dtype)
    limit = eye[layout.limit_dof]
    parts = [general_dense(layout, efc.J_general), eye, limit, -limit]
    if layout.ncontact:
        rows = _rows_of_wrenches(layout, efc, contact.geom, cdof) if layout.sparse else efc.J_contact
        parts.append(contact_facets(layout, contact.friction, rows))
    return jnp.concatenate(parts)


def _rows_of_wrenches(layout: Layout, efc: Any, geom: Array, cdof: Array) -> Array:
    """Compute contact rows over all dofs (ncontact, condim, nv) from wrenches on bodies.

    The wrenches have the shape (ncontact, condim, nside, 6).
    """
    bodies = efc.bodies if layout.flexes else jnp.asarray(layout.structure.geom_bodyid)[jnp.maximum(geom, 0)]
    along = jnp.einsum("cksi,vi->cksv", efc.J_contact, cdof, precision="highest")
    return jnp.sum(jnp.where(moving_dofs(layout.structure, bodies)[:, None], along, 0), axis=2)
