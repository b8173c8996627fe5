"""Constants of flexes that follow from a model's numbers at qpos0; part of `set_const`.

A surface with vertex constraints has its rest shape in the plane of its first element; each of its vertices has the
inverse of a metric, from which the constraint computes strain.
"""

from typing import NamedTuple

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import MINVAL
from jaxsim.engine.constants.invweight import quadratic_forms
from jaxsim.engine.structure.flex_tables import edges, moves
from jaxsim.math.arrays import add_at, inner, matvec, matvec_t, take
from jaxsim.math.rotation import axis_angle_to_quat, cross, quat_to_mat
from jaxsim.math.safe import Array, arctan2, norm, normalize, xp_of

_BODIES_AT_ONCE = 256


def flex_constants(m: Model, d: Data, inverses: list[Array]) -> dict[str, Array]:
    """Compute flex_vert0, flex_vertmetric, flexedge_length0 and flexedge_invweight0.

    Args:
        inverses: inverses of the blocks of M.
    """
    if not m.nflex:
        return {}
    vert = _vertices(m, d)
    out = {"flexedge_length0": _lengths(m, vert), "flexedge_invweight0": _weights(m, d, vert, inverses)}
    flat = np.flatnonzero((m.flex_dim == 2) & (m.flex_edgeequality == 2))
    if len(flat):
        out["flex_vertmetric"] = _metric(m, flat)
        out["flex_vert0"] = _aligned(m, flat)
    return out


def _vertices(m: Model, d: Data) -> Array:
    """Compute the global positions of vertices that are fixed in bodies."""
    body = np.maximum(m.flex_vertbodyid, 0)
    return take(d.xpos, body) + matvec(take(d.xmat.reshape(-1, 3, 3), body), m.flex_vert)


def _lengths(m: Model, vert: Array) -> Array:
    by_edge = edges(m)
    ends = by_edge.ends[by_edge.fixed]
    length = norm(take(vert, ends[:, 1]) - take(vert, ends[:, 0]))
    return add_at(np.flatnonzero(by_edge.fixed), length, m.nflexedge)


class _General(NamedTuple):
    """Edges that need the inertia matrix, and the entries of their Jacobians.

    Attributes:
        edge: (k,) their ids.
        row, dof: (n,) the edge (index in `edge`) and the dof of an entry.
        source: (n,) the edge whose Jacobian the entry holds: rows of a flex after one without forces begin again at
            address 0, and the last write wins.
        moved: (n, 2) mask of the source's ends whose bodies the dof moves.
    """

    edge: np.ndarray
    row: np.ndarray
    dof: np.ndarray
    source: np.ndarray
    moved: np.ndarray


@per_structure
def _general(m) -> _General:
    by_edge = edges(m)
    simple = np.all(m.body_simple[by_edge.body] == 2, axis=1)
    edge = np.flatnonzero(by_edge.fixed & ~m.flexedge_rigid & ~simple & (m.flexedge_J_rownnz > 0))
    writer = np.full(m.nJfe, -1)
    for e in np.flatnonzero(by_edge.fixed & (m.flex_edgeequality[by_edge.flex] < 2)):
        writer[m.flexedge_J_rowadr[e] : m.flexedge_J_rowadr[e] + m.flexedge_J_rownnz[e]] = e
    count = m.flexedge_J_rownnz[edge]
    row = np.repeat(np.arange(len(edge)), count)
    step = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    slot = m.flexedge_J_rowadr[edge][row] + step
    inside = slot < m.nJfe
    row, slot = row[inside], slot[inside]
    source = np.where(writer[slot] >= 0, writer[slot], edge[row])
    dof = m.flexedge_J_colind[slot]
    # for a repeated dof the last entry counts
    last = len(row) - 1 - np.unique((row * m.nv + dof)[::-1], return_index=True)[1]
    row, dof, source = row[last], dof[last], source[last]
    moved = moves(m, np.repeat(dof[:, None], 2, 1), by_edge.body[source])
    return _General(edge, row, dof, source, moved)


def _weights(m: Model, d: Data, vert: Array, inverses: list[Array]) -> Array:
    """Compute the inverse weights of edges, the effect of a unit force along an edge on its length.

    They are 1 / mass for edges between points, else from the inertia.
    """
    by_edge, general = edges(m), _general(m)
    if not m.nv:
        return m.flexedge_invweight0
    points = np.flatnonzero(by_edge.fixed & ~m.flexedge_rigid & np.all(m.body_simple[by_edge.body] == 2, axis=1))
    plain = (1 / take(m.body_mass, by_edge.body[points])).sum(-1) / 2
    out = add_at(points, plain, m.nflexedge)
    if not len(general.edge):
        return out
    entries = _jacobian_entries(m, d, vert, general)[:, None]
    weights = quadratic_forms(m, inverses, general.row, general.dof, entries, len(general.edge))[:, 0]
    return out + add_at(general.edge, weights, m.nflexedge)


def _jacobian_entries(m: Model, d: Data, vert: Array, general: _General) -> Array:
    """Compute the derivative of a source's length by a dof, for all entries.

    It is zero where no force or constraint acts on the edge's length.
    """
    xp = xp_of(d.xpos)
    by_edge = edges(m)
    ends, body = by_edge.ends[general.source], by_edge.body[general.source]
    along = normalize(take(vert, ends[:, 1]) - take(vert, ends[:, 0]), default=np.array([1.0, 0, 0]))[0]
    cdof = take(d.cdof, general.dof)
    velocity = 0.0
    for k, sign in ((0, -1), (1, 1)):
        arm = take(vert, ends[:, k]) - take(d.subtree_com, m.body_rootid[body[:, k]])
        point = cdof[:, 3:] + cross(cdof[:, :3], arm)
        velocity = velocity + sign * xp.where(general.moved[:, k, None], point, 0)
    acts = (m.flex_edgedamping != 0) | (m.flex_edgestiffness != 0) | (m.flex_damping != 0) | (m.flex_edgeequality == 1)
    return xp.where(take(acts, by_edge.flex[general.source]), inner(velocity, along), 0)


def _metric(m: Model, flat: np.ndarray) -> Array:
    """Compute flex_vertmetric, inverses of metrics of vertices.

    A metric sums the products of the edges of a vertex, weighted by masses.
    """
    xp = xp_of(m.flex_vert0, m.body_mass)
    by_edge = edges(m)
    which = np.flatnonzero(np.isin(by_edge.flex, flat))
    ends = by_edge.ends[which]
    size = take(m.flex_size, by_edge.flex[which])
    step = (take(m.flex_vert0, ends[:, 1]) - take(m.flex_vert0, ends[:, 0])) * 2 * size
    product = (step[:, :2, None] * step[:, None, :2]).reshape(-1, 4)
    mass = xp.maximum(take(m.body_mass, by_edge.body[which]), MINVAL)
    both = xp.concatenate([product * mass[:, 1:], product * mass[:, :1]])
    b = add_at(ends.T.ravel(), both, m.nflexvert)
    det = b[:, 0] * b[:, 3] - b[:, 1] * b[:, 2]
    regular = abs(det) >= MINVAL
    inverse = xp.stack([b[:, 3], -b[:, 1], -b[:, 2], b[:, 0]], axis=-1) / xp.where(regular, det, 1)[:, None]
    return xp.where(regular[:, None], inverse, 0)


def _aligned(m: Model, flat: np.ndarray) -> Array:
    """Rotate the surfaces of flex_vert0 so that the normal of their first element is the z axis."""
    xp = xp_of(m.flex_vert0)
    corner = m.flex_elem[m.flex_elemdataadr[flat][:, None] + np.arange(3)] + m.flex_vertadr[flat][:, None]
    a, b, c = (take(m.flex_vert0, corner[:, k]) for k in range(3))
    normal = normalize(cross(b - a, c - a), default=np.array([0.0, 0, 1]))[0]
    axis, sine = normalize(cross(np.array([0.0, 0, 1]), normal), default=np.array([1.0, 0, 0]))
    angle = arctan2(sine, normal[:, 2])
    mat = quat_to_mat(axis_angle_to_quat(axis, xp.where((sine < MINVAL) & (normal[:, 2] > 0), 0, angle)))
    place = np.full(m.nflex, 0)
    place[flat] = np.arange(len(flat))
    flex = np.repeat(np.arange(m.nflex), m.flex_vertnum)
    turned = matvec_t(take(mat.reshape(-1, 3, 3), place[flex]), m.flex_vert0)
    return xp.where(np.isin(flex, flat)[:, None], turned, m.flex_vert0)


def body_reach(m: Model, d: Data) -> list[tuple[np.ndarray, Array]]:
    """Return lengths of flexes for bodies, as (bodies, lengths): their edges, and the distances among their nodes."""
    if not m.nflex:
        return []
    by_edge = edges(m)
    fixed = by_edge.fixed
    length = take(m.flexedge_length0, np.flatnonzero(fixed))
    out = [(by_edge.body[fixed, k], length) for k in range(2)]
    for adr, num in zip(m.flex_nodeadr, m.flex_nodenum, strict=True):
        bodies = np.unique(m.flex_nodebodyid[adr : adr + num])
        pos = take(d.xpos, bodies)
        for first in range(0, len(bodies), _BODIES_AT_ONCE):
            some = slice(first, first + _BODIES_AT_ONCE)
            reach = norm(pos[some, None] - pos[None])
            out.append((bodies[some], xp_of(reach).max(reach, axis=1)))
    return out
