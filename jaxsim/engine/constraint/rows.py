"""What MuJoCo's `efc_*` arrays hold, slot by slot: types, ids and Jacobian rows besides the stored fields."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.layout import Layout
from jaxsim.core.types import ConstraintType
from jaxsim.engine.constraint.jacobian import contact_facets, general_dense
from jaxsim.engine.constraint.sparse_contact import ContactOperator, bodies_of, dense_rows
from jaxsim.math.safe import Array


def slot_values(efc: Any, contact: Any, cdof: Array, field: str) -> Array:
    """Values of `efc_<field>` in slot order (nslot, ...); `cdof` are the axes of the dofs."""
    if field == "type":
        return _types(efc, contact)
    if field == "id":
        return _ids(efc.layout)
    if field == "J":
        return _jacobian(efc, contact, cdof)
    return getattr(efc, field)


def _types(efc: Any, contact: Any) -> Array:
    layout: Layout = efc.layout
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
        rows = efc.J_contact
        if layout.sparse:
            rows = dense_rows(layout, ContactOperator(rows, bodies_of(layout.structure, contact.geom), cdof))
        parts.append(contact_facets(layout, contact.friction, rows))
    return jnp.concatenate(parts)
