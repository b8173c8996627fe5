"""Elastic forces of flexes whose vertices move freely: strain of triangles and tetrahedra, bending, edges as springs.

An element's energy is a quadratic form in the squared lengths of its edges (Saint Venant-Kirchhoff), so that forces of
strain act along edges. Damping is Rayleigh damping, in the form of Kharevych et al., "Geometric, variational
integrators for computer animation", section 5.2. Bending is linear in positions, with a term for surfaces that are
curved at rest.
"""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import path, per_structure
from jaxsim.engine.flex.growth import squared_growth
from jaxsim.engine.kinematics.wrench import apply_wrench
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.math.arrays import take, take_or_zero
from jaxsim.math.bins import Bins, make_bins, sum_into
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, xp_of

STRAIN_ENTRIES, BENDING_ENTRIES = 21, 17  # numbers of an element in flex_stiffness, of an edge in flex_bending


def _elastic(m: Any, f: int) -> bool:
    """Return whether a flex has free vertices with forces of elements."""
    return not (m.flex_dim[f] == 1 or m.flex_rigid[f] or m.flex_interp[f])


class Strain(NamedTuple):
    """Elements of one dimension: their edges (n, k), and addresses of their symmetric k x k forms in flex_stiffness."""

    edge: np.ndarray
    entry: np.ndarray  # (n, k, k)


class Pull(NamedTuple):
    """Edges with strain forces.

    Attributes:
        edge: (n,) their ids.
        of_elements: bins from the edges of the elements of all `strains`, concatenated, to these edges.
        to_vertices: bins from these edges' first ends, then their second ends, to vertices.
        strains: the elements by dimension.
    """

    edge: np.ndarray
    of_elements: Bins
    to_vertices: Bins
    strains: tuple[Strain, ...]


@per_structure
def _pull(m: Any) -> Pull:
    strains, local = [], {2: 3, 3: 6}
    for dim, count in local.items():
        edges, entries = [], []
        upper = np.zeros((count, count), int)
        upper[np.triu_indices(count)] = np.arange(count * (count + 1) // 2)
        square = np.maximum(upper, upper.T)
        for f in np.flatnonzero((m.flex_dim == dim) & (m.flex_stiffnessadr >= 0)).tolist():
            if not _elastic(m, f):
                continue
            n, first = int(m.flex_elemnum[f]), m.flex_elemedgeadr[f]
            edges.append(m.flex_elemedge[first : first + n * count].reshape(n, count) + m.flex_edgeadr[f])
            entries.append((m.flex_stiffnessadr[f] + STRAIN_ENTRIES * np.arange(n))[:, None, None] + square)
        if edges:
            strains.append(Strain(np.concatenate(edges), np.concatenate(entries)))
    flat = np.concatenate([s.edge.reshape(-1) for s in strains]) if strains else np.zeros(0, int)
    edge, place = np.unique(flat, return_inverse=True)
    ends = tables.edges(m).ends[edge].T.reshape(-1)
    return Pull(edge, make_bins(place, len(edge)), make_bins(ends, m.nflexvert), tuple(strains))


def strain_force(m: Model, d: Data) -> Array | None:
    """Compute the force (nflexvert, 3) of strain on every vertex, with damping; None if no flex resists strain."""
    pull = _pull(m)
    if not len(pull.edge):
        return None
    xp = xp_of(d.flexvert_xpos, m.flex_stiffness)
    length, rate = take(d.flexedge_length, pull.edge), take(d.flexedge_velocity, pull.edge)
    damping = take(m.flex_damping, tables.edges(m).flex[pull.edge])
    # difference of squared lengths over one step, divided by the step
    growing = rate * (2 * length - rate * m.opt.timestep)
    stretch = squared_growth(m, d, pull.edge) + damping * growing
    parts, place, first = [], pull.of_elements.index, 0
    for strain in pull.strains:
        n, k = strain.edge.shape
        elongation = take(stretch, place[first : first + n * k].reshape(n, k))
        parts.append((take(m.flex_stiffness, strain.entry) * elongation[:, None]).sum(-1).reshape(-1))
        first += n * k
    tension = sum_into(pull.of_elements, xp.concatenate(parts))
    ends = tables.edges(m).ends[pull.edge]
    force = tension[:, None] * (take(d.flexvert_xpos, ends[:, 1]) - take(d.flexvert_xpos, ends[:, 0]))
    return sum_into(pull.to_vertices, xp.concatenate([force, -force]))


class Targets(NamedTuple):
    """Map from forces on vertices to forces on dofs: as in MuJoCo, axis by axis for bodies that have only slides.

    Attributes:
        direct: bins from the entries of (nflexvert, 3), flat, to dofs.
        other: (k,) vertices of other bodies, moved by dofs of any kind.
    """

    direct: Bins
    other: np.ndarray


def _direct(m: Any, vertex: np.ndarray) -> Bins:
    """Return bins from all (nflexvert, 3) numbers to the first three dofs of the bodies of some vertices."""
    index = np.full((m.nflexvert, 3), -1)
    body = m.flex_vertbodyid[vertex]
    dof = m.body_dofadr[body][:, None] + np.arange(3)
    index[vertex] = np.where(np.arange(3) < m.body_dofnum[body][:, None], dof, -1)
    return make_bins(index.reshape(-1), m.nv)


@per_structure
def _targets(m: Any) -> Targets:
    vertex = np.flatnonzero([_elastic(m, f) and m.flex_stiffnessadr[f] >= 0 for f in tables.vertex_flex(m)])
    body = m.flex_vertbodyid[vertex]
    plain = m.body_simple[body] == 2
    moved = np.array([len(path(m, int(b))) > 0 for b in body], bool)
    return Targets(_direct(m, vertex[plain]), vertex[~plain & moved])


def force_on_dofs(m: Model, d: Data, force: Array) -> Array:
    """Compute the joint-space force (nv,) of forces (nflexvert, 3) on vertices."""
    targets = _targets(m)
    out = sum_into(targets.direct, force.reshape(-1))
    if len(targets.other):
        pulled = take(force, targets.other)
        point = take(d.flexvert_xpos, targets.other)
        body = m.flex_vertbodyid[targets.other]
        out = out + apply_wrench(m, d, pulled, xp_of(pulled).zeros_like(pulled), point, body)
    return out


class Bending(NamedTuple):
    """Edges between two triangles that resist bending.

    Attributes:
        vertex: (n, 4) the ends of each edge, then the opposite vertices.
        entry: (n, 17) addresses of its coefficients in flex_bending.
        flex: (n,) its flex.
        speed: (n, 4, 3) the dofs of these vertices' bodies, -1 for none.
        to_dofs: bins from the entries of (n, 4, 3), flat, to dofs.
    """

    vertex: np.ndarray
    entry: np.ndarray
    flex: np.ndarray
    speed: np.ndarray
    to_dofs: Bins


@per_structure
def _bending(m: Any) -> Bending:
    by_edge = tables.edges(m)
    shell = np.array([m.flex_dim[f] == 2 and _elastic(m, f) and m.flex_bendingadr[f] >= 0 for f in range(m.nflex)])
    edge = np.flatnonzero(shell[by_edge.flex] & (m.flex_edgeflap[:, 1] >= 0))
    flex = by_edge.flex[edge]
    opposite = m.flex_edgeflap[edge] + m.flex_vertadr[flex][:, None]
    vertex = np.concatenate([by_edge.ends[edge], opposite], axis=1)
    entry = (m.flex_bendingadr[flex] + BENDING_ENTRIES * (edge - m.flex_edgeadr[flex]))[:, None]
    body = m.flex_vertbodyid[vertex]
    dof = m.body_dofadr[body][..., None] + np.arange(3)
    dof = np.where(np.arange(3) < m.body_dofnum[body][..., None], dof, -1)
    return Bending(vertex, entry + np.arange(BENDING_ENTRIES), flex, dof, make_bins(dof.reshape(-1), m.nv))


def bending_force(m: Model, d: Data, spring: bool, damper: bool) -> tuple[Array, Array] | None:
    """Compute the joint-space forces (nv,) of bending and of its damping; None if no flex resists bending.

    As in MuJoCo the three dofs of a vertex count as the axes of the world.
    """
    bend = _bending(m)
    if not len(bend.vertex):
        return None
    xp = xp_of(d.flexvert_xpos, m.flex_bending)
    b = take(m.flex_bending, bend.entry)
    plate = b[:, :16].reshape(-1, 4, 4)[:, :, 1:]  # rows sum to zero: positions relative to the first vertex do
    out = []
    if spring:
        at = take(d.flexvert_xpos, bend.vertex)
        arm = at[:, 1:] - at[:, :1]
        one, two, three = arm[:, 0], arm[:, 1], arm[:, 2]
        turned = [cross(two, three), cross(three, one), cross(one, two)]
        curved = xp.stack([-(turned[0] + turned[1] + turned[2]), *turned], axis=1)
        out.append((plate[..., None] * arm[:, None]).sum(2) + b[:, 16, None, None] * curved)
    if damper:
        speed = take_or_zero(d.qvel, bend.speed)
        rate = (plate[..., None] * (speed[:, 1:] - speed[:, :1])[:, None]).sum(2)
        out.append(rate * take(m.flex_damping, bend.flex)[:, None, None])
    both = sum_into(bend.to_dofs, xp.stack([-x.reshape(-1) for x in out], axis=1))
    zero = xp.zeros_like(d.qvel)
    return (both[:, 0] if spring else zero), (both[:, -1] if damper else zero)


class Lines(NamedTuple):
    """Entries of the Jacobian of edges that are springs: (k,) addresses in flexedge_J, edges, and bins to dofs."""

    entry: np.ndarray
    edge: np.ndarray
    to_dofs: Bins


@per_structure
def _lines(m: Any) -> Lines:
    rows, by_edge = tables.edge_entries(m).rows, tables.edges(m)
    free = ~m.flexedge_rigid & ~m.flex_rigid[by_edge.flex]
    rows = np.where(free[:, None], rows, -1)
    edge, _ = np.nonzero(rows >= 0)
    entry = rows[rows >= 0]
    entries = tables.edge_entries(m)
    acts = entries.moved[entry].any(1) & ~(entries.shifts & (entries.sign == 0))[entry]
    entry, edge = entry[acts], edge[acts]
    return Lines(entry, edge, make_bins(entries.dof[entry], m.nv))


def edge_force(m: Model, d: Data, spring: bool, damper: bool) -> tuple[Array, Array] | None:
    """Compute the joint-space forces (nv,) of springs and of dampers in edges; None if edges have no Jacobian."""
    lines = _lines(m)
    if not len(lines.entry):
        return None
    xp, flex = xp_of(d.flexedge_length, m.flex_edgestiffness), tables.edges(m).flex
    out = []
    if spring:
        out.append(take(m.flex_edgestiffness, flex) * (m.flexedge_length0 - d.flexedge_length))
    if damper:
        out.append(-take(m.flex_edgedamping, flex) * d.flexedge_velocity)
    along = xp.stack(out, axis=1)
    pulls = take(d.flexedge_J, lines.entry)[:, None] * take(along, lines.edge)
    both = sum_into(lines.to_dofs, pulls)
    zero = xp.zeros_like(d.qvel)
    return (both[:, 0] if spring else zero), (both[:, -1] if damper else zero)


def edge_energy(m: Model, d: Data) -> Array:
    """Compute the potential energy of the springs in edges, which MuJoCo counts for flexes of dimension 1."""
    flex = tables.edges(m).flex
    counts = (m.flex_dim[flex] == 1) & ~m.flex_rigid[flex] & ~m.flexedge_rigid
    edge = np.flatnonzero(counts & tables.edges(m).fixed)
    stretch = take(m.flexedge_length0, edge) - take(d.flexedge_length, edge)
    return (0.5 * take(m.flex_edgestiffness, flex[edge]) * stretch * stretch).sum()
