"""`Contact`, `Constraint` and `Warning`: the parts of `Data`."""

from jax import Array

from jaxsim.core.describe import describe_constraint, describe_contact, describe_warning
from jaxsim.core.layout import Layout
from jaxsim.core.struct import Struct, boolean, fields_of, integer, part, real


class Contact(Struct):
    """Contacts of one world, `d.contact`: mjContact's fields as arrays over the contact buffer (max_contacts, ...)."""

    dist: Array = real("", "distance of the surfaces; negative: penetration", "m")
    pos: Array = real("3", "midpoint between the surfaces, global frame", "m")
    frame: Array = real("9", "axes by rows, normal first (from geom[0] to geom[1]), global frame")
    includemargin: Array = real("", "distance below which the contact makes force: margin - gap", "m")
    friction: Array = real("5", "friction: two tangents, spinning, two rolling", "-, -, m, m, m")
    solref: Array = real("2", "solver reference, normal direction", "s, - or N/m, N s/m")
    solreffriction: Array = real("2", "solver reference, friction directions", "s, - or N/m, N s/m")
    solimp: Array = real("5", "solver impedance")
    mu: Array = real("", "friction of the regularized cone")
    dim: Array = integer("", "dimension: 1, 3, 4 or 6")
    geom: Array = integer("2", "ids of both geoms; -1: a flex, or an empty entry")
    flex: Array = integer("2", "ids of both flexes; -1: a geom")
    elem: Array = integer("2", "elements of both flexes; -1: a geom or a vertex")
    vert: Array = integer("2", "vertices of both flexes; -1: a geom or an element")
    exclude: Array = integer("", "0: makes force; else why not (1: in the gap, 2: fused, 3: no dofs, 4: passive)")
    efc_address: Array = integer("", "first of its rows among the packed ones; -1: none")

    def __repr__(self) -> str:
        return describe_contact(self)


class Constraint(Struct):
    """Constraint rows in their slots (nslot, ...), `d.efc`: see `jaxsim.core.layout`.

    Sparse models have fewer columns in `J_general`, and wrenches (2, 6) on both bodies in place of nv numbers.
    """

    active: Array = boolean("", "whether the slot holds a row")
    pos: Array = real("", "violation: position error, or distance of the contact or limit", "m or rad")
    margin: Array = real("", "value of pos below which the row becomes active", "m or rad")
    frictionloss: Array = real("", "largest force of dry friction", "N or N m")
    diagApprox: Array = real("", "approximate diagonal of the inverse inertia of rows", "1/kg or 1/(kg m^2)")
    KBIP: Array = real("4", "stiffness, damping, impedance and its derivative by position", "1/s^2, 1/s, -, 1/m")
    D: Array = real("", "inertia of the row: inverse of R", "kg or kg m^2")
    R: Array = real("", "regularization: diagonal added to the inverse inertia of rows", "1/kg or 1/(kg m^2)")
    vel: Array = real("", "velocity of the row: J qvel", "m/s or rad/s")
    aref: Array = real("", "acceleration that the constraint aims at", "m/s^2 or rad/s^2")
    b: Array = real("", "J qacc_smooth - aref", "m/s^2 or rad/s^2")
    force: Array = real("", "force of the row", "N or N m")
    state: Array = integer("", "part of the cost that the row is in (mjtConstraintState)")
    # Jacobians
    J_general: Array = real("ngeneral nv", "Jacobian rows of equality, tendons and limits of balls", "-, m")
    J_contact: Array = real("max_contacts condim nv", "Jacobian rows of contacts, in their frames", "-, m")
    bodies: Array = integer("max_contacts nside", "bodies of contacts, in sparse rows of models whose flexes collide")
    layout: Layout = part("which row stands in which slot; static")

    def __repr__(self) -> str:
        return describe_constraint(self)


class Warning(Struct):
    """mjWarningStat by kind (mjtWarning), `d.warning`: number of occurrences, and the last index."""

    number: Array = integer("7", "how often the warning was given")
    lastinfo: Array = integer("7", "index that the last one was about")

    def __repr__(self) -> str:
        return describe_warning(self)


CONTACT_FIELDS = fields_of(Contact)
JACOBIANS = ("J_general", "J_contact", "bodies")  # fields of `Constraint` that do not have one entry for each slot
CONSTRAINT_FIELDS = [f for f in fields_of(Constraint) if f.name not in JACOBIANS]
WARNING_FIELDS = fields_of(Warning)
EMPTY_CONTACT = ("geom", "flex", "elem", "vert", "efc_address")  # fields of contacts that are -1 in empty entries
