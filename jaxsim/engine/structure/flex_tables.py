"""Index tables of flexes that follow from a model's structure: vertices, nodes, edges, elements, entries of Jacobians.

All ids are global: a vertex, edge, element or node of the model, not of its flex.
"""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.structure import per_structure
from jaxsim.core.types import JointType
from jaxsim.engine.structure.tables import in_world


class Edges(NamedTuple):
    """Edges: their flex, their two vertices, the bodies of these, and the mask of vertices fixed in bodies.

    Vertices of interpolated flexes have no bodies of their own and get body 0.
    """

    flex: np.ndarray
    ends: np.ndarray
    body: np.ndarray
    fixed: np.ndarray


@per_structure
def edges(m: Any) -> Edges:
    """Return all edges of a model."""
    flex = np.repeat(np.arange(m.nflex), m.flex_edgenum)
    ends = m.flex_edge + m.flex_vertadr[flex][:, None]
    return Edges(flex, ends, np.maximum(m.flex_vertbodyid[ends], 0), m.flex_interp[flex] == 0)


@per_structure
def vertex_flex(m: Any) -> np.ndarray:
    """Return the flex of each vertex (nflexvert,)."""
    return np.repeat(np.arange(m.nflex), m.flex_vertnum)


@per_structure
def node_flex(m: Any) -> np.ndarray:
    """Return the flex of each node (nflexnode,)."""
    return np.repeat(np.arange(m.nflex), m.flex_nodenum)


@per_structure
def elements(m: Any) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return the ids (n,) of the elements of each dimension that occurs, and their vertices (n, dim + 1)."""
    found: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
    for f in range(m.nflex):
        dim, num = int(m.flex_dim[f]), int(m.flex_elemnum[f])
        first = m.flex_elemdataadr[f]
        vertices = m.flex_elem[first : first + num * (dim + 1)].reshape(num, dim + 1) + m.flex_vertadr[f]
        found.setdefault(dim, []).append((m.flex_elemadr[f] + np.arange(num), vertices))
    return {
        dim: (np.concatenate([ids for ids, _ in parts]), np.concatenate([vertices for _, vertices in parts]))
        for dim, parts in found.items()
    }


@per_structure
def element_vertices(m: Any) -> np.ndarray:
    """Return the vertices of each element (nflexelem, 4), padded with -1."""
    out = np.full((m.nflexelem, 4), -1, np.int32)
    for ids, vertices in elements(m).values():
        out[ids, : vertices.shape[1]] = vertices
    return out


@per_structure
def element_flex(m: Any) -> np.ndarray:
    """Return the flex of each element (nflexelem,)."""
    return np.repeat(np.arange(m.nflex), m.flex_elemnum)


def moves(m: Any, dof: np.ndarray, body: np.ndarray) -> np.ndarray:
    """Return whether each dof moves the body paired with it, for two arrays of one shape."""
    mover, above = m.dof_bodyid[dof], np.asarray(body)
    while True:  # parents come first
        higher = np.where(above > mover, m.body_parentid[above], above)
        if np.array_equal(higher, above):
            return above == mover
        above = higher


class EdgeEntries(NamedTuple):
    """The stored entries of `flexedge_J`.

    Attributes:
        edge: (nJfe,) the edge whose Jacobian an entry holds, -1 for none. As in MuJoCo, rows of a flex after one
            without forces begin again at address 0, and the last write wins.
        dof: (nJfe,) its dof.
        sign: (nJfe,) 1 if the dof moves the second end only, -1 for the first only, 0 for both or none.
        moved: (nJfe, 2) mask of the ends that it moves.
        shifts: (nJfe,) whether the dof is a translation, which moves every point of its bodies alike.
        rows: (nflexedge, width) addresses of the entries of each edge's row, padded with -1.
    """

    edge: np.ndarray
    dof: np.ndarray
    sign: np.ndarray
    moved: np.ndarray
    shifts: np.ndarray
    rows: np.ndarray


@per_structure
def edge_entries(m: Any) -> EdgeEntries:
    """Return the entries of the Jacobian of edges."""
    width = int(m.flexedge_J_rownnz.max(initial=0))
    step = np.arange(width)
    rows = np.where(step < m.flexedge_J_rownnz[:, None], m.flexedge_J_rowadr[:, None] + step, -1)
    rows = np.where(rows < m.nJfe, rows, -1)
    by_edge = edges(m)
    written = by_edge.fixed & ~m.flex_rigid[by_edge.flex]
    edge = np.full(m.nJfe, -1)
    place = np.where(written[:, None], rows, -1)
    owner = np.broadcast_to(np.arange(m.nflexedge)[:, None], rows.shape)
    edge[place[place >= 0]] = owner[place >= 0]
    dof = np.asarray(m.flexedge_J_colind)
    moved = moves(m, np.repeat(dof[:, None], 2, 1), by_edge.body[edge]) & (edge >= 0)[:, None]
    return EdgeEntries(edge, dof, moved[:, 1].astype(int) - moved[:, 0], moved, translates(m)[dof], rows)


@per_structure
def translates(m: Any) -> np.ndarray:
    """Return the mask of dofs (nv,) that are translations: slides, and the first three of free joints."""
    return (m.jnt_type[m.dof_jntid] == JointType.SLIDE) | in_world(m)


class Lattice(NamedTuple):
    """Vertices that are interpolated from nodes by polynomials of one degree.

    Attributes:
        order: the degree, 1 or 2.
        vertex: (n,) their ids.
        cells: (n, 3) number of cells of their flex by axis.
        first: (n,) first node of their flex.
        single: whether each of these flexes has one cell, so that the nodes follow from structure.
    """

    order: int
    vertex: np.ndarray
    cells: np.ndarray
    first: np.ndarray
    single: bool


@per_structure
def lattices(m: Any) -> tuple[Lattice, ...]:
    """Group interpolated vertices by the degree of their polynomials."""
    flex = vertex_flex(m)
    order = abs(m.flex_interp[flex])
    out = []
    for k in np.unique(order[order > 0]).tolist():
        vertex = np.flatnonzero(order == k)
        cells = m.flex_cellnum[flex[vertex]]
        out.append(Lattice(k, vertex, cells, m.flex_nodeadr[flex[vertex]], bool((cells == 1).all())))
    return tuple(out)
