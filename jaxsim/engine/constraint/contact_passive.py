"""Passive contact: contacts of flexes as springs, without rows. Source: mj_contactPassive."""

import jax.numpy as jnp

from jaxsim.core.data import Data
from jaxsim.core.flags import disabled
from jaxsim.core.model import Model
from jaxsim.core.types import DisableBit
from jaxsim.engine.kinematics.contact_jacobian import contact_parts
from jaxsim.engine.kinematics.sparse_contact import make_operator, transpose_times
from jaxsim.engine.solver.operators import contact_transpose_times

PASSIVE = 4  # `contact.exclude` of a contact with a flex whose contacts are passive
STIFFNESS = 1e4  # of passive contacts, N/m


def contact_passive(m: Model, d: Data) -> Data:
    """Add the normal forces of passive contacts to `qfrc_spring` and `qfrc_passive`."""
    layout = d.efc.layout
    if not layout.flexes or not m.flex_passive.any() or not layout.ncontact:
        return d
    if disabled(m, DisableBit.SPRING) and disabled(m, DisableBit.DAMPER):
        return d
    push = jnp.where(d.contact.exclude == PASSIVE, -STIFFNESS * d.contact.dist, 0)
    force = jnp.zeros((layout.ncontact, layout.condim), push.dtype).at[:, 0].set(push)
    if layout.sparse:
        total = transpose_times(layout, make_operator(d, layout), force)
    else:
        total = contact_transpose_times(layout, d.efc.J_contact, contact_parts(m, d, layout), force)
    return d.replace(qfrc_spring=d.qfrc_spring + total, qfrc_passive=d.qfrc_passive + total)
