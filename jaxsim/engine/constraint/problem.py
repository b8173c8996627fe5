"""The constraint problem of a model: inertia and rows as operators, bounds slot by slot."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.layout import Layout
from jaxsim.core.model import Model
from jaxsim.core.types import ConstraintType
from jaxsim.engine.constraint.tree_blocks import BodyRows, TreeBlocks, tree_blocks
from jaxsim.engine.dynamics.inertia import full_m
from jaxsim.engine.dynamics.inertia_jvp import inertia_parts
from jaxsim.engine.kinematics.contact_jacobian import contact_parts, contacts_in_buffer
from jaxsim.engine.kinematics.sparse_contact import make_operator
from jaxsim.engine.solver.operators import DenseInertia, DenseRows
from jaxsim.engine.solver.problem import ConstraintProblem
from jaxsim.math.safe import Array
from jaxsim.native.rows import RowsInUse, over_rows


def row_operator(m: Model, d: Data) -> DenseRows | BodyRows:
    """Return the constraint rows in `d` as a linear operator."""
    layout: Layout = d.efc.layout
    if layout.sparse:
        return BodyRows(layout, d.efc.J_general, make_operator(d, layout), d.contact.friction)
    parts = contact_parts(m, d, layout) if layout.ncontact else None
    return DenseRows(layout, d.efc.J_general, d.efc.J_contact, d.contact.friction, parts)


def over_slots(d: Data, function: Callable[..., Any], *rows: Array) -> Any:
    """Return the tree `function(*rows)` of arrays (nslot, ...) of which each row depends on the same row (nslot, ...).

    Rows of contacts that are not in use are not computed by native programs, and are zeros.
    """
    layout: Layout = d.efc.layout
    start = layout.offsets[3]
    fixed = function(*(x[:start] for x in rows))
    if not layout.ncontact:
        return fixed
    used = RowsInUse(d.efc.active[start:], layout.nfacet * contacts_in_buffer(d).count)
    contacts = over_rows(lambda _, x: (function(*x), ()), used, (), tuple(x[start:] for x in rows))[0]
    return jax.tree.map(lambda *x: jnp.concatenate(x), fixed, contacts)


def inertia_operator(m: Model, d: Data) -> DenseInertia | TreeBlocks:
    """Return the inertia matrix in `d` as a linear operator."""
    if d.efc.layout.sparse:
        return tree_blocks(m, d.M)
    return DenseInertia(full_m(m, d), inertia_parts(m, d))


def make_problem(m: Model, d: Data) -> ConstraintProblem:
    """Return the problem of a world whose constraint rows, reference and smooth force are in `d`."""
    efc = d.efc
    layout: Layout = efc.layout
    start = layout.offsets[3]  # of contacts
    friction = np.zeros(start, bool)
    friction[: layout.ngeneral] = layout.general.type == ConstraintType.FRICTION_TENDON
    friction[layout.offsets[1] : layout.offsets[2]] = True
    two_sided = np.zeros(start, bool)
    two_sided[: layout.ngeneral] = layout.general.type == ConstraintType.EQUALITY
    frictionloss = efc.frictionloss[:start]
    lo = jnp.where(friction, -frictionloss, -jnp.inf)
    hi = jnp.where(friction, frictionloss, jnp.where(two_sided, jnp.inf, 0))
    contacts = jnp.zeros(layout.nslot - start, lo.dtype)
    return ConstraintProblem(
        M=inertia_operator(m, d),
        J=row_operator(m, d),
        qfrc_smooth=d.qfrc_smooth,
        aref=efc.aref,
        D=efc.D,
        lo=jnp.concatenate([lo, contacts - jnp.inf]),
        hi=jnp.concatenate([hi, contacts]),
        mu=d.contact.mu,
    )
