"""Layout of constraint rows: the fixed slots of `Data.efc`, a function of the model's structure only.

Slots come in four groups, in this order:

- *general* rows, each with a row in `efc.J_general`: equality, friction in tendons, limits of ball joints and tendons;
- *friction*: one slot for every dof, whose Jacobian row is a unit vector and is never formed;
- *limit*: the lower sides of all limited slides and hinges, then the upper sides; a signed unit vector each;
- *contact*: `nfacet` rows for each entry of the contact buffer, from its block of `condim` rows in `efc.J_contact`.

Large models of many trees are `sparse`: their general rows hold values at static columns only, their contacts wrenches
on bodies instead of rows over all dofs (`engine/kinematics/sparse_contact.py`), and no array is nv x nv.

A slot that is not active holds zeros. `order` lists the slots in MuJoCo's order of rows.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.flex_lattice import lattice_elements
from jaxsim.core.structure import path
from jaxsim.core.types import ConeType, ConstraintType, EnableBit, EqType, JointType, ObjType

SPARSE_DOFS = 200  # models with more dofs, no tree having more than a quarter of them, are sparse
ELEMENT_VERTICES = 4  # most vertices of an element of a flex: a tetrahedron
SPARSE_DOFS_FLEX = 60  # the same for models with flexes, whose vertices are trees of three dofs
EQ_ROWS = {EqType.CONNECT: 3, EqType.WELD: 6, EqType.JOINT: 1, EqType.TENDON: 1}


class General(NamedTuple):
    """General rows: their mjtConstraint, the id of their object, and their row within it (side -1/+1 for limits)."""

    type: np.ndarray
    id: np.ndarray
    row: np.ndarray


@dataclasses.dataclass(frozen=True)
class Layout:
    """Slots of the constraint rows; compared and hashed by `key`."""

    key: tuple
    general: General = dataclasses.field(compare=False)
    limit_jnt: np.ndarray = dataclasses.field(compare=False)  # limited slides and hinges
    limit_dof: np.ndarray = dataclasses.field(compare=False)
    order: np.ndarray = dataclasses.field(compare=False)  # slots in MuJoCo's order
    nv: int = dataclasses.field(compare=False)
    ncontact: int = dataclasses.field(compare=False)  # capacity of the contact buffer
    condim: int = dataclasses.field(compare=False)  # largest contact dimension that can occur
    nfacet: int = dataclasses.field(compare=False)  # rows of one contact slot
    pyramidal: bool = dataclasses.field(compare=False)
    max_constraints: int = dataclasses.field(compare=False)
    structure: Any = dataclasses.field(compare=False, default=None)  # of a sparse model, else None
    columns: Any = dataclasses.field(compare=False, default=None)  # (ngeneral, width), padded with -1; None: all dofs
    nside: int = dataclasses.field(compare=False, default=2)  # bodies of one contact
    flexes: bool = dataclasses.field(compare=False, default=False)  # whether contacts may touch flexes
    strains: bool = dataclasses.field(compare=False, default=False)  # whether rows hold strains of flexes

    @property
    def sparse(self) -> bool:
        """Whether rows are stored by bodies and columns rather than over all dofs."""
        return self.structure is not None

    @property
    def ngeneral(self) -> int:
        return len(self.general.id)

    @property
    def nlimit(self) -> int:
        return len(self.limit_jnt)

    @property
    def offsets(self) -> tuple[int, int, int, int, int]:
        """First slot of each group (general, friction, limit, contact) and the number of slots."""
        friction = self.ngeneral
        limit = friction + self.nv
        contact = limit + 2 * self.nlimit
        return 0, friction, limit, contact, contact + self.ncontact * self.nfacet

    @property
    def nslot(self) -> int:
        return self.offsets[-1]


def make_layout(m) -> Layout:
    """Return the layout for a model."""
    general = _general_rows(m)
    limited = np.asarray(m.jnt_limited, bool) & np.isin(m.jnt_type, (JointType.HINGE, JointType.SLIDE))
    limit_jnt = np.flatnonzero(limited)
    condim = max_condim(m) if m.max_contacts else 1
    pyramidal = m.opt.cone == ConeType.PYRAMIDAL
    nfacet = max(2 * (condim - 1), 1) if pyramidal else condim
    ncontact = m.max_contacts
    structure = m.structure if is_sparse(m) else None
    strains = bool(np.isin(m.eq_type, (EqType.FLEXVERT, EqType.FLEXSTRAIN)).any())
    return Layout(
        key=(
            tuple(np.stack(general).ravel().tolist()),
            tuple(limit_jnt.tolist()),
            (m.nv, ncontact, condim, pyramidal, m.max_constraints, *side_widths(m), strains),
            structure,
        ),
        general=general,
        limit_jnt=limit_jnt,
        limit_dof=m.jnt_dofadr[limit_jnt],
        order=_mujoco_order(general, m.nv, limit_jnt, ncontact * nfacet),
        nv=m.nv,
        ncontact=ncontact,
        condim=condim,
        nfacet=nfacet,
        pyramidal=pyramidal,
        max_constraints=m.max_constraints,
        structure=structure,
        columns=_columns(structure, general) if structure is not None else None,
        nside=sum(side_widths(m)),
        flexes=side_widths(m)[1] > 1,
        strains=strains,
    )


def side_widths(m) -> tuple[int, int]:
    """Return the largest numbers of bodies of the first and second side of a contact: more than one only for flexes.

    An element has the bodies of its vertices; a vertex of an interpolated flex has those of the nodes of its cell.
    """
    touching = np.flatnonzero((m.flex_contype != 0) | (m.flex_conaffinity != 0))
    if not len(touching):
        return 1, 1
    nodes = (abs(m.flex_interp[touching]) + 1) ** 3
    width = int(max(ELEMENT_VERTICES, *np.where(m.flex_interp[touching] != 0, nodes, 0)))
    contype, affinity = m.flex_contype[touching], m.flex_conaffinity[touching]
    meets = ((contype[:, None] & affinity) | (contype & affinity[:, None])) != 0
    itself = (m.flex_internal[touching] | (m.flex_selfcollide[touching] != 0)) & ~m.flex_rigid[touching]
    meets[np.diag_indices(len(touching))] &= itself
    return (width if meets.any() else 1), width


def is_sparse(m) -> bool:
    """Return whether a model is large and has many trees.

    Islands that sleep and the noslip solver need dense rows.
    """
    few = m.nv <= (SPARSE_DOFS_FLEX if m.nflex else SPARSE_DOFS)
    if few or m.opt.noslip_iterations or m.opt.enableflags & EnableBit.SLEEP:
        return False
    return 4 * max(m.tree_dofnum) <= m.nv


def max_condim(m) -> int:
    """Return an upper bound of the dimension of all contacts of the model."""
    colliding = (m.geom_contype != 0) | (m.geom_conaffinity != 0)
    flexes = (m.flex_contype != 0) | (m.flex_conaffinity != 0)
    dims = (m.geom_condim[colliding], m.pair_dim, m.flex_condim[flexes])
    return int(max([1, *np.concatenate(dims).tolist()]))


def flex_edges(m, flex: int) -> np.ndarray:
    """Return the edges of a flex that an equality holds: those that are not rigid, by MuJoCo's ids."""
    edge = m.flex_edgeadr[flex] + np.arange(m.flex_edgenum[flex])
    return edge[~m.flexedge_rigid[edge]]


def _equality_rows(m, i: int) -> int:
    """Return the number of rows of an equality."""
    if m.eq_type[i] == EqType.FLEX:
        return len(flex_edges(m, m.eq_obj1id[i]))
    if m.eq_type[i] == EqType.FLEXVERT:
        return 2 * int(m.flex_vertnum[m.eq_obj1id[i]])
    if m.eq_type[i] == EqType.FLEXSTRAIN:
        return int(m.eq_strain[i, 1])
    return EQ_ROWS.get(m.eq_type[i], 0)


def _general_rows(m) -> General:
    count = [_equality_rows(m, i) for i in range(m.neq)]
    equality = [(ConstraintType.EQUALITY, i, row) for i, n in enumerate(count) for row in range(n)]
    friction = [(ConstraintType.FRICTION_TENDON, i, 0) for i in range(m.ntendon)]
    balls = np.flatnonzero(np.asarray(m.jnt_limited, bool) & (m.jnt_type == JointType.BALL))
    joint = [(ConstraintType.LIMIT_JOINT, i, 0) for i in balls.tolist()]
    tendon = [(ConstraintType.LIMIT_TENDON, i, s) for i in np.flatnonzero(m.tendon_limited).tolist() for s in (-1, 1)]
    rows = np.array([*equality, *friction, *joint, *tendon], dtype=int).reshape(-1, 3)
    return General(*rows.T)


def _columns(m, general: General) -> np.ndarray:
    """Return the dofs on which each general row of a sparse model acts (ngeneral, width), padded with -1."""
    of_object: dict[tuple[int, int, int], np.ndarray] = {}
    keys = [
        (kind, i, row if kind == ConstraintType.EQUALITY and m.eq_type[i] in _BY_ROW else 0)
        for kind, i, row in zip(*(x.tolist() for x in general), strict=True)
    ]
    for key in keys:
        if key not in of_object:
            of_object[key] = np.unique(_dofs_of(m, *key))
    rows = [of_object[key] for key in keys]
    columns = np.full((len(rows), max([len(r) for r in rows], default=0)), -1)
    for out, dofs in zip(columns, rows, strict=True):
        out[: len(dofs)] = dofs
    return columns


_BY_ROW = (EqType.FLEX, EqType.FLEXVERT)  # equalities whose rows act on different dofs


def _dofs_of(m, kind: int, index: int, row: int) -> np.ndarray:
    """Return the dofs on which a general constraint can act."""
    if kind == ConstraintType.LIMIT_JOINT:
        return m.jnt_dofadr[index] + np.arange(3)
    if kind != ConstraintType.EQUALITY:
        return _dofs_of_tendon(m, index)
    if m.eq_type[index] in (EqType.FLEX, EqType.FLEXVERT, EqType.FLEXSTRAIN):
        return _dofs_of_flex(m, index, row)
    objects = [int(i) for i in (m.eq_obj1id[index], m.eq_obj2id[index]) if i >= 0]
    if m.eq_type[index] == EqType.JOINT:
        return m.jnt_dofadr[objects]
    if m.eq_type[index] == EqType.TENDON:
        return np.concatenate([_dofs_of_tendon(m, i) for i in objects])
    sites = m.eq_objtype[index] == ObjType.SITE
    return np.concatenate([path(m, int(m.site_bodyid[i]) if sites else i) for i in objects])


def _dofs_of_flex(m, index: int, row: int) -> np.ndarray:
    flex = m.eq_obj1id[index]
    if m.eq_type[index] == EqType.FLEX:
        edge = flex_edges(m, flex)[row]
        return m.flexedge_J_colind[m.flexedge_J_rowadr[edge] + np.arange(m.flexedge_J_rownnz[edge])]
    if m.eq_type[index] == EqType.FLEXVERT:
        at = m.flex_vertadr[flex] + row // 2, row % 2
        return m.flexvert_J_colind.reshape(-1)[m.flexvert_J_rowadr[at] + np.arange(m.flexvert_J_rownnz[at])]
    node, _ = lattice_elements(m, flex)
    return np.concatenate([path(m, int(b)) for b in m.flex_nodebodyid[node[m.eq_strain[index, 0]]]])


def _dofs_of_tendon(m, index: int) -> np.ndarray:
    start = m.ten_J_rowadr[index]
    return m.ten_J_colind[start : start + m.ten_J_rownnz[index]]


def _mujoco_order(general: General, nv: int, limit_jnt: np.ndarray, ncontactrow: int) -> np.ndarray:
    """Sort slots by kind, then object, then row within the object."""
    nlimit = len(limit_jnt)
    kind = [
        general.type,
        np.full(nv, ConstraintType.FRICTION_DOF),
        np.full(2 * nlimit, ConstraintType.LIMIT_JOINT),
        np.full(ncontactrow, ConstraintType.CONTACT_FRICTIONLESS),
    ]
    objects = [general.id, np.arange(nv), np.tile(limit_jnt, 2), np.arange(ncontactrow)]
    row = [general.row, np.zeros(nv, int), np.repeat([-1, 1], nlimit), np.zeros(ncontactrow, int)]
    return np.lexsort((np.concatenate(row), np.concatenate(objects), np.concatenate(kind)))
