"""Where each constraint row stands: the fixed slots of `Data.efc`, a function of the model's structure alone.

Slots follow MuJoCo's order of rows: equality, dry friction in dofs, dry friction in tendons, joint limits, tendon
limits, contacts. A slot that is not active holds zeros. Rows that touch one dof (dof friction, limits of hinges and
slides) have no Jacobian row: `dof_slot` lists them with their dof and sign. The other scalar rows are *general* and have
a row in `efc.J_general`. Contacts have a block of `condim` rows in `efc.J_contact`, in the contact frame.
"""

import dataclasses

import numpy as np

from jaxsim.types import ConeType, EqType, JointType

EQ_ROWS = {EqType.CONNECT: 3, EqType.WELD: 6, EqType.JOINT: 1, EqType.TENDON: 1}


@dataclasses.dataclass(frozen=True)
class Layout:
    """Slots of the constraint rows; compared and hashed by `key`."""

    key: tuple
    eq_id: np.ndarray = dataclasses.field(compare=False)  # equality slot -> equality constraint
    eq_row: np.ndarray = dataclasses.field(compare=False)  # equality slot -> row within the constraint
    limit_jnt: np.ndarray = dataclasses.field(compare=False)  # joint-limit slot -> joint
    limit_side: np.ndarray = dataclasses.field(compare=False)  # joint-limit slot -> -1 lower, +1 upper, 0 ball
    limit_tendon: np.ndarray = dataclasses.field(compare=False)  # tendon-limit slot -> tendon
    limit_tendon_side: np.ndarray = dataclasses.field(compare=False)
    nv: int = 0
    ntendon: int = 0
    ncontact: int = 0  # capacity of the contact buffer
    condim: int = 1  # largest contact dimension that can occur
    nfacet: int = 1  # scalar rows of one contact slot
    max_constraints: int = 0

    @property
    def offsets(self) -> tuple[int, ...]:
        """First slot of each kind: equality, dof friction, tendon friction, joint limit, tendon limit, contact, end."""
        counts = (
            len(self.eq_id),
            self.nv,
            self.ntendon,
            len(self.limit_jnt),
            len(self.limit_tendon),
            self.ncontact * self.nfacet,
        )
        return tuple(int(x) for x in np.concatenate([[0], np.cumsum(counts)]))

    @property
    def nslot(self) -> int:
        return self.offsets[-1]


def make_layout(m) -> Layout:
    """The layout for a model (or its `Structure`)."""
    rows = [EQ_ROWS.get(t, 0) for t in m.eq_type]
    jnt, side = [], []
    for j in np.flatnonzero(m.jnt_limited):
        sides = (-1, 1) if m.jnt_type[j] in (JointType.HINGE, JointType.SLIDE) else (0,)
        jnt += [j] * len(sides)
        side += sides
    tendons = np.flatnonzero(m.tendon_limited)
    condim = max_condim(m) if m.max_contacts else 1
    pyramidal = m.opt.cone == ConeType.PYRAMIDAL
    nfacet = max(2 * (condim - 1), 1) if pyramidal else condim
    eq_id = np.repeat(np.arange(m.neq), rows)
    eq_row = np.concatenate([np.arange(r) for r in rows]) if rows else np.zeros(0, int)
    key = (
        *(tuple(eq_id.tolist()), m.nv, m.ntendon, tuple(jnt), tuple(tendons.tolist())),
        *(m.max_contacts, condim, pyramidal, m.max_constraints),
    )
    return Layout(
        key=key,
        eq_id=eq_id,
        eq_row=eq_row,
        limit_jnt=np.array(jnt, dtype=int),
        limit_side=np.array(side, dtype=int),
        limit_tendon=np.repeat(tendons, 2),
        limit_tendon_side=np.tile([-1, 1], len(tendons)),
        nv=m.nv,
        ntendon=m.ntendon,
        ncontact=m.max_contacts,
        condim=condim,
        nfacet=nfacet,
        max_constraints=m.max_constraints,
    )


def max_condim(m) -> int:
    """A bound on the dimension of any contact of the model."""
    colliding = (m.geom_contype != 0) | (m.geom_conaffinity != 0)
    return int(max([1, *m.geom_condim[colliding].tolist(), *m.pair_dim.tolist()]))
