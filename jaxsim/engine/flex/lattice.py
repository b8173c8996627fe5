"""Elastic forces of flexes that follow a lattice of nodes: linear elasticity of cells or faces in corotational frames.

A cell, or in a shell a face on the border of the lattice, rotates with the rotation of its deformation at the centre;
in that frame its force is linear in the displacements of its nodes. Faces of a shell resist bending by the jump of
their normals at the middle of common edges.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.flex_lattice import lattice_elements
from jaxsim.core.model import Model
from jaxsim.core.structure import path, per_structure
from jaxsim.core.types import MINVAL
from jaxsim.engine.flex.kinematics import node_positions
from jaxsim.engine.flex.polar import rotation
from jaxsim.engine.kinematics.wrench import apply_wrench
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.engine.structure.flex_interpolation import polynomials, slopes
from jaxsim.math.arrays import einsum, gather, inner, matvec, matvec_t, merge, take
from jaxsim.math.bins import Bins, make_bins, sum_into
from jaxsim.math.rotation import cross, quat_normalize, quat_rotate, quat_to_mat
from jaxsim.math.safe import Array, norm, xp_of

EDGE_ENTRIES = 10  # numbers of an edge of a shell in flex_bending


class Cells(NamedTuple):
    """Elements of all flexes whose cells, or faces, have the same number of nodes.

    Attributes:
        order: degree of the polynomials.
        shell: whether they are faces.
        node: (n, k) their nodes.
        flex: (n,) their flex.
        axes: (n, 3) of faces: slow axis, fast axis, normal; of cells 0, 1, 2.
        entry: (n,) address of the stiffness of each in flex_stiffness, -1 for none.
        first: (n,) address of the stiffness of the first one of its flex, or 0.
        to_nodes: bins from their nodes, flat, to all nodes.
    """

    order: int
    shell: bool
    node: np.ndarray
    flex: np.ndarray
    axes: np.ndarray
    entry: np.ndarray
    first: np.ndarray
    to_nodes: Bins


def _resists(m: Any, f: int) -> bool:
    """Return whether an interpolated flex has elastic forces.

    A flex with constraints of strain has none by strain.
    """
    return bool(m.flex_interp[f]) and not m.flex_rigid[f] and m.flex_dim[f] != 1


@per_structure
def lattice_cells(m: Any) -> tuple[Cells, ...]:
    """Return the elements that resist strain, grouped by degree and by whether they are faces."""
    found: dict[int, list[tuple]] = {}
    for f in range(m.nflex):
        if _resists(m, f) and m.flex_stiffnessadr[f] >= 0 and m.flex_edgeequality[f] != 3:
            found.setdefault(int(m.flex_interp[f]), []).append(_cells_of(m, f))
    out = []
    for interp, parts in found.items():
        node, flex, axes, entry, first = (np.concatenate(x) for x in zip(*parts, strict=True))
        out.append(
            Cells(abs(interp), interp < 0, node, flex, axes, entry, first, make_bins(node.reshape(-1), m.nflexnode))
        )
    return tuple(out)


def _cells_of(m: Any, f: int) -> tuple[np.ndarray, ...]:
    node, axes = lattice_elements(m, f)
    n, k = node.shape
    first = int(m.flex_stiffnessadr[f])
    return node, np.full(n, f), axes, first + 9 * k * k * np.arange(n), np.full(n, first)


def stiffness(m: Model, cells: Cells) -> Array:
    """Return the stiffness (n, 3 k, 3 k) of elements in their own frames, negative as in MuJoCo.

    As in MuJoCo, a flex whose first cell is empty has no stiffness at all.
    """
    k = 3 * cells.node.shape[1]
    whole = take(m.flex_stiffness, cells.entry[:, None] + np.arange(k * k)).reshape(-1, k, k)
    begins = take(m.flex_stiffness, cells.first)[:, None, None]
    return xp_of(whole).where(begins != 0, whole, 0)


def _weights(order: int, at: tuple, dims: int) -> list[list[Array]]:
    """Evaluate for each direction the derivatives of all basis functions, products of polynomials, at a point."""
    lines = [[polynomials(s, order), slopes(s, order)] for s in at]
    out = []
    for axis in range(dims):
        factors = [lines[k][int(k == axis)] for k in range(dims)]
        weights = []
        for row in itertools.product(*factors):
            weight = row[0]
            for x in row[1:]:
                weight = weight * x
            weights.append(weight)
        out.append(weights)
    return out


def frames(cells: Cells, position: Array) -> Array:
    """Compute quaternions (n, 4) of the rotations of elements from rest, for positions (n, k, 3) of their nodes."""
    xp, dims = xp_of(position), 2 if cells.shell else 3
    slope = np.array(_weights(cells.order, (0.5,) * dims, dims), position.dtype)  # (dims, k)
    tangent = (position[:, None] * slope[None, :, :, None]).sum(2)  # (n, dims, 3)
    if not cells.shell:
        return rotation(xp.swapaxes(tangent, -1, -2))
    both = xp.concatenate([tangent, cross(tangent[:, 0], tangent[:, 1])[:, None]], axis=1)
    column = np.argsort(cells.axes, axis=1)
    ordered = take(both.reshape(-1, 3), 3 * np.arange(len(column))[:, None] + column)
    return rotation(xp.swapaxes(ordered, -1, -2))


def node_velocities(m: Model, d: Data, position: Array) -> Array:
    """Compute the global velocities (nflexnode, 3) of nodes at these positions, from the results of `com_vel`."""
    body = m.flex_nodebodyid
    velocity = take(d.cvel, body)
    return velocity[:, 3:] + cross(velocity[:, :3], position - take(d.subtree_com, m.body_rootid[body]))


def _strain(m: Model, cells: Cells, position: Array, velocity: Array, spring: bool, damper: bool) -> Array:
    """Compute forces on nodes, of springs then of dampers: (nflexnode, 3) or (nflexnode, 6)."""
    xp = xp_of(position, m.flex_stiffness)
    at = take(position, cells.node)
    turned = quat_to_mat(frames(cells, at))[:, None]
    rest = take(m.flex_node0, cells.node)
    columns = []
    if spring:  # translations have no force: centres are subtracted for precision in float32
        here = matvec_t(turned, at - at.mean(1, keepdims=True))
        columns.append(here - (rest - rest.mean(1, keepdims=True)))
    if damper:
        speed = take(velocity, cells.node)
        damping = take(m.flex_damping, cells.flex)[:, None, None]
        columns.append(matvec_t(turned, speed - speed.mean(1, keepdims=True)) * damping)
    n, k = cells.node.shape
    column = xp.stack([x.reshape(n, 3 * k) for x in columns], axis=-1)
    force = einsum("nij,njc->nic", stiffness(m, cells), column).reshape(n, k, 3, len(columns))
    force = [matvec(turned, force[..., i]) for i in range(len(columns))]
    return sum_into(cells.to_nodes, xp.concatenate(force, axis=-1).reshape(n * k, -1))


class Creases(NamedTuple):
    """Edges between faces of shells: addresses of their numbers in flex_bending, and offsets of their faces.

    `faces` are those of all shells of one degree, as in `Cells`; face ids in flex_bending count from `offset`.
    """

    order: int
    entry: np.ndarray
    offset: np.ndarray
    faces: Cells


@per_structure
def _creases(m: Any) -> tuple[Creases, ...]:
    starts = np.append(m.flex_bendingadr[m.flex_bendingadr >= 0], m.nflexbending)
    found: dict[int, list[tuple]] = {}
    for f in range(m.nflex):
        if not _resists(m, f) or m.flex_interp[f] >= 0 or m.flex_bendingadr[f] < 0:
            continue
        begin = int(m.flex_bendingadr[f])
        end = int(starts[starts > begin].min())
        node, axes = lattice_elements(m, f)
        known = found.setdefault(-int(m.flex_interp[f]), [])
        before = sum(len(part[0]) for part in known)
        entry = begin + 1 + EDGE_ENTRIES * np.arange((end - begin - 1) // EDGE_ENTRIES)
        known.append((node, np.full(len(node), f), axes, entry, np.full(len(entry), before)))
    out = []
    for order, parts in found.items():
        node, flex, axes, entry, offset = (np.concatenate(x) for x in zip(*parts, strict=True))
        none = np.zeros(0, int)
        faces = Cells(order, True, node, flex, axes, none, none, make_bins(node.reshape(-1), m.nflexnode))
        out.append(Creases(order, entry, offset, faces))
    return tuple(out)


def _normal(order: int, at: Array, place: Array) -> tuple[list[Array], Array, Array]:
    """Evaluate derivatives of the basis functions of faces at points (n, 2), as (n, k) by direction.

    Also returns the two tangents.
    """
    xp = xp_of(at, place)
    weights = [xp.stack(w, axis=-1) for w in _weights(order, (place[:, 0], place[:, 1]), 2)]
    tangents = [(w[..., None] * at).sum(1) for w in weights]
    return weights, tangents[0], tangents[1]


def _fold(m: Model, creases: Creases, position: Array) -> Array:
    """Compute bending forces on nodes (nflexnode, 3); the faces that an edge joins are read from flex_bending."""
    xp = xp_of(position, m.flex_bending)
    data = take(m.flex_bending, creases.entry[:, None] + np.arange(EDGE_ENTRIES))
    stiff, at_rest = data[:, 6], data[:, 7:]
    at = take(position, creases.faces.node)
    quat = frames(creases.faces, at)
    sides = []
    for k in range(2):
        face = data[:, k].astype(np.int32) + creases.offset.astype(np.int32)
        there, turn = gather(at, face), gather(quat, face)
        weights, one, two = _normal(creases.order, there, data[:, 2 + 2 * k : 4 + 2 * k])
        normal = cross(one, two)
        sides.append((face, weights, one, two, normal, norm(normal), turn))
    regular = (sides[0][5] >= MINVAL) & (sides[1][5] >= MINVAL) & (stiff != 0)
    inverse = [xp.where(regular, 1, 0) / xp.where(regular, side[5], 1) for side in sides]
    unit = [side[4] * x[:, None] for side, x in zip(sides, inverse, strict=True)]
    turns = [sides[0][6], sides[1][6]]
    turns[1] = xp.where(inner(turns[0], turns[1])[:, None] < 0, -turns[1], turns[1])
    between = quat_normalize(turns[0] + turns[1])
    jump = unit[0] - unit[1] - quat_rotate(between, at_rest)
    total = xp.zeros((creases.faces.node.size, 3), position.dtype)
    count = creases.faces.node.shape[1]
    for sign, side, n, scale in zip((1, -1), sides, unit, inverse, strict=True):
        face, weights, one, two = side[:4]
        pull = (jump - n * inner(n, jump)[:, None]) * (scale * stiff * sign)[:, None]
        force = weights[0][..., None] * cross(pull, two)[:, None] - weights[1][..., None] * cross(pull, one)[:, None]
        index = face[:, None] * count + np.arange(count, dtype=np.int32)
        total = _scatter(total, index.reshape(-1), force.reshape(-1, 3))
    return sum_into(creases.faces.to_nodes, total)


def _scatter(total: Array, index: Array, x: Array) -> Array:
    if isinstance(total, np.ndarray):
        np.add.at(total, index, x)
        return total
    return total.at[index].add(x, mode="promise_in_bounds")


class NodeTargets(NamedTuple):
    """Map from forces on nodes to forces on dofs.

    `direct` are bins from the entries of (nflexnode, 3), flat, to the first three dofs of the nodes' bodies, and
    `pinned` are nodes of bodies without dofs of their own. `tested` are nodes of bodies with dofs, of flexes that are
    not centred: as in MuJoCo, those at the origins of their bodies act directly on these dofs.
    """

    direct: Bins
    pinned: np.ndarray
    tested: np.ndarray


@per_structure
def _node_targets(m: Any) -> NodeTargets:
    body, flex = m.flex_nodebodyid, tables.node_flex(m)
    acts = np.array([_resists(m, f) for f in range(m.nflex)], bool)[flex]
    own = m.body_dofnum[body] > 0
    dof = m.body_dofadr[body][:, None] + np.arange(3)
    dof = np.where((acts & own)[:, None] & (dof < m.nv), dof, -1)
    moved = np.array([len(path(m, int(b))) > 0 for b in body], bool)
    centered = m.flex_centered[flex]
    return NodeTargets(
        make_bins(dof.reshape(-1), m.nv),
        np.flatnonzero(acts & ~own & moved),
        np.flatnonzero(acts & own & ~centered),
    )


def _on_dofs(m: Model, d: Data, position: Array, force: Array) -> Array:
    """Compute the joint-space force (nv,) of forces (nflexnode, 3) on nodes, mapped to dofs as in MuJoCo."""
    targets, xp = _node_targets(m), xp_of(force)
    direct, aside = force, np.concatenate([targets.pinned, targets.tested])
    apart = take(force, aside)
    if len(targets.tested):
        away = (take(m.flex_node, targets.tested) != 0).any(1)[:, None]
        mask = merge(np.ones((m.nflexnode, 1), bool), targets.tested, ~away)
        direct = xp.where(mask, force, 0)
        apart = xp.concatenate([apart[: len(targets.pinned)], xp.where(away, apart[len(targets.pinned) :], 0)])
    out = sum_into(targets.direct, direct.reshape(-1))
    if len(aside):
        point = take(position, aside)
        out = out + apply_wrench(m, d, apart, xp.zeros_like(apart), point, m.flex_nodebodyid[aside])
    return out


def lattice_force(m: Model, d: Data, spring: bool, damper: bool) -> tuple[Array, Array] | None:
    """Compute the joint-space forces (nv,) of the elasticity of lattices and of its damping; None without lattices."""
    cells, creases = lattice_cells(m), _creases(m)
    if not cells and not creases:
        return None
    xp = xp_of(d.xpos, m.flex_stiffness)
    position = node_positions(m, d)
    velocity = node_velocities(m, d, position) if damper else None
    zero = xp.zeros((m.nflexnode, 3), position.dtype)
    pulled, damped = zero, zero
    for group in cells:
        both = _strain(m, group, position, velocity, spring, damper)
        pulled = pulled + both[:, :3] if spring else pulled
        damped = damped + both[:, -3:] if damper else damped
    for group in creases if spring else ():
        pulled = pulled + _fold(m, group, position)
    nothing = xp.zeros_like(d.qvel)
    return (
        _on_dofs(m, d, position, pulled) if spring else nothing,
        _on_dofs(m, d, position, damped) if damper else nothing,
    )
