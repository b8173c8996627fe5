"""Constraint rows from positions, and their reference accelerations from velocities.

`make_constraint` fills the position-dependent part of `d.efc`, `reference_constraint` the velocity and the reference
acceleration.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.layout import make_layout
from jaxsim.core.model import Model
from jaxsim.core.types import WarningType
from jaxsim.engine.constraint import impedance as imp
from jaxsim.engine.constraint.general import general_rows, velocity_product
from jaxsim.engine.constraint.problem import row_operator, rows_of_slots
from jaxsim.engine.constraint.rows import ConstraintRows, constraint_rows
from jaxsim.interface.public import public
from jaxsim.math.safe import Array
from jaxsim.native.rows import over_rows
from jaxsim.native.world_program import in_one_call


@public
def make_constraint(m: Model, d: Data) -> Data:
    """Compute the rows of the position stage: `efc`, `ne`, `nf`, `nl`, `nefc`, `contact.efc_address`, `contact.mu`."""
    layout = make_layout(m)
    general = general_rows(m, d, layout)
    rows = in_one_call(partial(constraint_rows, layout=layout), "rows of constraints")(m, d, general)
    changed = rows.numbers._asdict() | {name: getattr(rows, name) for name in ("active", "J_contact", "bodies")}
    jac = d.efc.J_general if general is None else general.jac
    d = d.replace(efc=d.efc.replace(**changed, J_general=jac))
    if layout.ncontact:
        contact = {name: getattr(rows, name) for name in ("efc_address", "exclude", "mu")}
        d = d.replace(contact=d.contact.replace(**contact))
    return _count(d, rows)


def _count(d: Data, rows: ConstraintRows) -> Data:
    """Set the numbers of rows; count dropped rows in `overflow_constraints` and as a warning."""
    ne, nf, nl, nefc, wanted = (rows.count[i] for i in range(5))
    dropped = wanted - nefc
    full = (np.arange(d.warning.number.shape[-1]) == WarningType.CNSTRFULL) & (dropped > 0)
    return d.replace(
        ne=ne,
        nf=nf,
        nl=nl,
        nefc=nefc,
        maxuse_efc=jnp.maximum(d.maxuse_efc, wanted),
        overflow_constraints=d.overflow_constraints + dropped,
        warning=d.warning.replace(number=d.warning.number + jnp.where(full, 1, 0)),
    )


@public
def reference_constraint(m: Model, d: Data) -> Data:
    """Compute velocities of the rows and their reference accelerations: `efc.vel`, `efc.aref`."""
    efc, layout = d.efc, d.efc.layout
    if not layout.nslot:
        return d
    product = velocity_product(m, d, layout)

    def of_rows(_: tuple[()], rows: tuple[Array, ...]) -> tuple[tuple[Array, Array], tuple[()]]:
        active, vel, kbip, pos, margin = rows
        vel = jnp.where(active, vel, 0)
        return (vel, jnp.where(active, imp.reference(kbip, vel, pos, margin), 0)), ()

    rows = efc.active, row_operator(m, d).times(d.qvel), efc.KBIP, efc.pos, efc.margin
    vel, aref = over_rows(of_rows, rows_of_slots(d), (), rows)[0]
    if product is not None:
        general = jnp.where(efc.active[: layout.ngeneral], product, 0)
        aref = aref - jnp.concatenate([general, jnp.zeros(layout.nslot - layout.ngeneral, aref.dtype)])
    return d.replace(efc=efc.replace(vel=vel, aref=aref))
