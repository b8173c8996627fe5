"""Stage `flex`: vertices, boxes of elements, lengths of edges and their Jacobians."""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import path, per_structure
from jaxsim.engine.flex.vertex_strain import stars, vertex_strain
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.engine.structure.flex_interpolation import vertex_nodes
from jaxsim.math.arrays import assemble, gather, inner, matvec, merge, take, take_or_zero
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, greatest, least, normalize, short_sum, xp_of


def flex(m: Model, d: Data) -> Data:
    """Compute vertices, boxes of elements, lengths of edges, strains of vertices and their Jacobians: mj_flex.

    Runs after `com_pos`. Sets flexvert_xpos, flexelem_aabb, flexedge_length, flexedge_J, flexvert_length and
    flexvert_J.
    """
    if not m.nflex:
        return d
    d = d.replace(flexvert_xpos=_vertices(m, d))
    d = d.replace(flexelem_aabb=_boxes(m, d))
    if not m.nflexedge:
        return d
    along, length = edge_directions(m, d)
    keep = ~m.flex_rigid[tables.edges(m).flex] & tables.edges(m).fixed
    xp = xp_of(length)
    d = d.replace(flexedge_length=xp.where(keep, length, 0), flexedge_J=_edge_jacobian(m, d, along))
    if not len(stars(m).vertex):
        return d
    strain, jacobian = vertex_strain(m, d)
    return d.replace(flexvert_length=strain, flexvert_J=jacobian)


@per_structure
def _in_bodies(m) -> np.ndarray:
    """Return the vertices that are fixed in bodies."""
    return np.flatnonzero(m.flex_interp[tables.vertex_flex(m)] == 0)


def points_of_bodies(d: Data, body: np.ndarray, local: Array, centered: np.ndarray) -> Array:
    """Return the global positions (n, 3) of points with these `local` positions in bodies.

    Points that are `centered` are at the origins of their bodies.
    """
    pos, away = take(d.xpos, body), np.flatnonzero(~centered)
    if not len(away):
        return pos
    arm = matvec(take(d.xmat.reshape(-1, 3, 3), body[away]), take(local, away))
    return merge(pos, away, take(pos, away) + arm)


def node_positions(m: Model, d: Data) -> Array:
    """Compute the global positions (nflexnode, 3) of the nodes of all interpolated flexes."""
    return points_of_bodies(d, m.flex_nodebodyid, m.flex_node, m.flex_centered[tables.node_flex(m)])


@per_structure
def node_chains(m) -> np.ndarray:
    """Return the dofs that move each node (nflexnode, w), padded with -1."""
    paths = [path(m, int(b)) for b in m.flex_nodebodyid]
    chain = np.full((m.nflexnode, max(map(len, paths), default=0)), -1)
    for row, dofs in zip(chain, paths, strict=True):
        row[: len(dofs)] = dofs
    return chain


def node_jacobian(m: Model, d: Data, position: Array) -> Array:
    """Compute velocities of nodes by the dofs of `node_chains`: (nflexnode, w, 3), zero for the padding."""
    cdof = take_or_zero(d.cdof, node_chains(m))
    arm = position - take(d.subtree_com, m.body_rootid[m.flex_nodebodyid])
    return cdof[..., 3:] + cross(cdof[..., :3], xp_of(arm).broadcast_to(arm[:, None], cdof[..., 3:].shape))


def _vertices(m: Model, d: Data) -> Array:
    """Compute the global positions of all vertices."""
    own, parts = _in_bodies(m), []
    if len(own):
        centered = m.flex_centered[tables.vertex_flex(m)[own]]
        parts.append((own, points_of_bodies(d, m.flex_vertbodyid[own], take(m.flex_vert, own), centered)))
    node = node_positions(m, d) if m.nflexnode else None
    for lattice in tables.lattices(m):
        carrier, weight = vertex_nodes(m, lattice)
        at = take(node, carrier) if isinstance(carrier, np.ndarray) else gather(node, carrier)
        parts.append((lattice.vertex, (weight[..., None] * at).sum(1)))
    if len(parts) == 1:
        return parts[0][1]
    return assemble(parts, m.nflexvert, d.xpos)


def _boxes(m: Model, d: Data) -> Array:
    """Compute axis-aligned boxes (nflexelem, 6) of elements, centre and half sizes, with the radius of their flex."""
    xp, parts = xp_of(d.flexvert_xpos), []
    for ids, vertices in tables.elements(m).values():
        at = take(d.flexvert_xpos, vertices)
        low, high = least(at, 1), greatest(at, 1)
        radius = take(m.flex_radius, tables.element_flex(m)[ids])[:, None]
        parts.append((ids, xp.concatenate([0.5 * (high + low), 0.5 * (high - low) + radius], axis=1)))
    return parts[0][1] if len(parts) == 1 else assemble(parts, m.nflexelem, d.flexvert_xpos)


def edge_directions(m: Model, d: Data) -> tuple[Array, Array]:
    """Compute the unit vectors (nflexedge, 3) from the first to the second vertex of edges.

    Also returns the lengths (nflexedge,).
    """
    ends = tables.edges(m).ends
    step = take(d.flexvert_xpos, ends[:, 1]) - take(d.flexvert_xpos, ends[:, 0])
    return normalize(step, default=np.array([1.0, 0, 0]))


def _edge_jacobian(m: Model, d: Data, along: Array) -> Array:
    """Compute flexedge_J: derivatives of the lengths of edges by the dofs that move one of their ends."""
    entries = tables.edge_entries(m)
    slide = np.flatnonzero(entries.shifts & (entries.sign != 0))
    turn = np.flatnonzero(~entries.shifts & entries.moved.any(1))
    parts = []
    if len(slide):
        linear = take(d.cdof, entries.dof[slide])[:, 3:] * entries.sign[slide, None].astype(along.dtype)
        parts.append((slide, inner(linear, take(along, entries.edge[slide]))))
    if len(turn):
        parts.append((turn, _turning(m, d, along, turn)))
    jacobian = assemble(parts, m.nJfe, along)
    flex_of = tables.edges(m).flex[np.maximum(entries.edge, 0)]
    by_forces = m.flex_edgeequality[flex_of] >= 2  # these constraints need no lengths of edges
    if not by_forces.any():
        return jacobian
    acts = (m.flex_edgedamping != 0) | (m.flex_edgestiffness != 0) | (m.flex_damping != 0)
    return xp_of(jacobian).where(take(acts, flex_of) | ~by_forces, jacobian, 0)


def _turning(m: Model, d: Data, along: Array, entry: np.ndarray) -> Array:
    """Compute entries of the Jacobian of edges for dofs that rotate bodies."""
    entries, by_edge = tables.edge_entries(m), tables.edges(m)
    edge, cdof = entries.edge[entry], take(d.cdof, entries.dof[entry])
    speed = 0.0
    for k, sign in ((0, -1), (1, 1)):
        arm = take(d.flexvert_xpos, by_edge.ends[edge, k]) - take(d.subtree_com, m.body_rootid[by_edge.body[edge, k]])
        point = cdof[:, 3:] + cross(cdof[:, :3], arm)
        speed = speed + point * (sign * entries.moved[entry, k, None]).astype(cdof.dtype)
    return inner(speed, take(along, edge))


def edge_velocities(m: Model, d: Data, v: Array) -> Array:
    """Compute the product of `flexedge_J` with a vector (nv,): the velocities of the edges' lengths (nflexedge,)."""
    rows = tables.edge_entries(m).rows
    if not rows.size:
        return xp_of(v).zeros(m.nflexedge, v.dtype)
    product = d.flexedge_J * take(v, tables.edge_entries(m).dof)
    return short_sum(take_or_zero(product, rows))
