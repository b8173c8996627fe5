"""How many contacts and constraint rows a model needs room for."""

from jaxsim.layout import make_layout
from jaxsim.model import Model


def default_capacities(m: Model, max_contacts: int | None = None, max_constraints: int | None = None) -> Model:
    """`m` with its capacities set: those given, else chosen so that ordinary use never overflows."""
    if max_contacts is None:
        max_contacts = 32
    m = m.replace(max_contacts=max_contacts, max_constraints=0)
    full = make_layout(m).nslot
    return m.replace(max_constraints=full if max_constraints is None else min(max_constraints, full))
