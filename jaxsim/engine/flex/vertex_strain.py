"""Strain of surfaces at their vertices, for the equality `flexvert`: two invariants of the metric and their Jacobians.

The deformation gradient at a vertex is fitted to its edges (Chen, Kry and Vouga, "Locking-free simulation of isometric
thin plates", 2019), each weighted with the mass of the vertex at its other end. A row is scaled with the root of the
vertex's own mass.
"""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import MINVAL
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.math import component as c
from jaxsim.math.arrays import add_at, inner, take
from jaxsim.math.bins import Bins, make_bins, sum_into
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, sqrt, xp_of


class Stars(NamedTuple):
    """Vertices with their edges.

    Attributes:
        vertex: (n,) ids of vertices whose strain is constrained.
        center: (k,) of each edge at a vertex: the index of the vertex in `vertex`; bins `to_vertex` sum by it.
        edge: (k,) its id.
        other: (k,) the vertex at its other end.
        sign: (k,) 1 if that is the edge's second end, else -1.
        slot, place, mover, dof: (t,) terms of the Jacobian: entry of flexvert_J, row of the gradients (edges at
            vertices, then vertices themselves), vertex and dof that moves it; `invariant` is the row's kind, 0 or 1.
        to_slots: bins from the terms to flexvert_J.
    """

    vertex: np.ndarray
    edge: np.ndarray
    other: np.ndarray
    sign: np.ndarray
    to_vertex: Bins
    place: np.ndarray
    invariant: np.ndarray
    mover: np.ndarray
    dof: np.ndarray
    to_slots: Bins


@per_structure
def stars(m: Any) -> Stars:
    """Return the vertices of surfaces with constraints on vertices."""
    held = (m.flex_dim == 2) & (m.flex_edgeequality == 2) & (m.flex_interp == 0) & ~m.flex_rigid
    flex = tables.vertex_flex(m)
    vertex = np.flatnonzero(held[flex])
    count = m.flex_vertedgenum[vertex]
    center = np.repeat(np.arange(len(vertex)), count)
    step = np.arange(len(center)) - np.repeat(np.cumsum(count) - count, count)
    edge = m.flex_vertedge.reshape(-1)[m.flex_vertedgeadr[vertex][center] + step]
    edge = edge + m.flex_edgeadr[flex[vertex[center]]]
    ends = tables.edges(m).ends[edge]
    second = ends[:, 0] == vertex[center]
    other = np.where(second, ends[:, 1], ends[:, 0])
    slot, place, invariant, mover, dof = _terms(m, vertex, center, other)
    sign = np.where(second, 1, -1)
    to_slots = make_bins(slot, 2 * m.nJfv)
    to_vertex = make_bins(center, len(vertex))
    return Stars(vertex, edge, other, sign, to_vertex, place, invariant, mover, dof, to_slots)


def _terms(m: Any, vertex: np.ndarray, center: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return slots of flexvert_J, rows of the gradients, kinds of rows, vertices and dofs, of all terms of a slot."""
    row = np.concatenate([center, np.arange(len(vertex))])
    mover = np.concatenate([other, vertex])
    number = m.flexvert_J_rownnz[vertex][row]  # (rows, 2)
    first = m.flexvert_J_rowadr[vertex][row]
    width = int(number.max(initial=0))
    slot = first[..., None] + np.arange(width)
    slot = np.where((np.arange(width) < number[..., None]) & (slot < 2 * m.nJfv), slot, -1)
    place, invariant, column = np.nonzero(slot >= 0)
    slot = slot[place, invariant, column]
    dof = m.flexvert_J_colind.reshape(-1)[slot]
    moved = tables.moves(m, dof, m.flex_vertbodyid[mover[place]])
    return tuple(x[moved] for x in (slot, place, invariant, mover[place], dof))


def vertex_strain(m: Model, d: Data) -> tuple[Array, Array]:
    """Compute flexvert_length (nflexvert, 2) and flexvert_J (nJfv, 2)."""
    star = stars(m)
    xp = xp_of(d.flexvert_xpos, m.flex_vertmetric, m.body_mass)
    center = star.to_vertex.index
    flex = tables.vertex_flex(m)
    ends = tables.edges(m).ends[star.edge]
    size = take(m.flex_size, flex[star.vertex][center])[:, :2]
    rest = (take(m.flex_vert0, ends[:, 1]) - take(m.flex_vert0, ends[:, 0]))[:, :2] * 2 * size
    now = take(d.flexvert_xpos, ends[:, 1]) - take(d.flexvert_xpos, ends[:, 0])
    weight = xp.maximum(take(m.body_mass, m.flex_vertbodyid[star.other]), MINVAL)[:, None]
    metric = take(m.flex_vertmetric, star.vertex)
    fitted = [sum_into(star.to_vertex, weight * now * rest[:, k : k + 1]) for k in range(2)]
    gradient = _times(fitted, metric)
    f, g = (c.split(x) for x in gradient)
    c00, c01, c11 = c.dot(f, f), c.dot(f, g), c.dot(g, g)
    mass = take(m.body_mass, m.flex_vertbodyid[star.vertex])
    heavy = mass > MINVAL
    scale = xp.where(heavy, sqrt(xp.where(heavy, mass, 1)), 1)
    both = xp.stack([(c00 + c11 - 2) * scale, (c00 * c11 - c01 * c01 - 1) * scale], axis=1)
    length = add_at(star.vertex, both, m.nflexvert)
    # derivatives of the invariants by the gradient, taken back to the edges at a vertex
    adjugate = xp.stack([c11, -c01, -c01, c00], axis=1)
    through = [_times(gradient, metric), _times(_times(gradient, adjugate), metric)]
    pulls = []
    for x in through:
        along = take(x[0], center) * rest[:, :1] + take(x[1], center) * rest[:, 1:]
        pulls.append(2 * weight * along * take(scale, center)[:, None])
    by_end = xp.stack(pulls, axis=1) * star.sign[:, None, None].astype(now.dtype)  # (k, 2, 3), by the other end
    own = -sum_into(star.to_vertex, by_end.reshape(-1, 6)).reshape(-1, 2, 3)
    return length, _jacobian(m, d, star, xp.concatenate([by_end, own]))


def _times(columns: list[Array], square: Array) -> list[Array]:
    """Compute the product of (n, 3, 2), given by its columns, with (n, 4) by rows."""
    a, b = columns
    return [a * square[:, :1] + b * square[:, 2:3], a * square[:, 1:2] + b * square[:, 3:]]


def _jacobian(m: Model, d: Data, star: Stars, gradients: Array) -> Array:
    axis = take(d.cdof, star.dof)
    velocity = axis[:, 3:]
    if not tables.translates(m)[star.dof].all():
        body = m.flex_vertbodyid[star.mover]
        arm = take(d.flexvert_xpos, star.mover) - take(d.subtree_com, m.body_rootid[body])
        velocity = velocity + cross(axis[:, :3], arm)
    pull = take(gradients.reshape(-1, 3), 2 * star.place + star.invariant)
    return sum_into(star.to_slots, inner(pull, velocity)).reshape(m.nJfv, 2)
