"""Stiffness of flexes that follow a lattice of nodes: linear elasticity of cells, or of the cells' outer faces.

Basis functions are products of linear or quadratic polynomials in the three directions of a cell. The lattice is a
regular grid, rotated as a whole; everything here is in its own frame. A shell takes only the faces on the border
of the lattice, each a flat element in its plane, tied by bending across their common edges.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from jaxsim.compiler.asset.bvh import cross, dot
from jaxsim.core.errors import ModelError
from jaxsim.core.flex_lattice import cells, faces, nodes, side_axes
from jaxsim.engine.constants.flex_elements import gradients
from jaxsim.engine.structure.flex_interpolation import polynomials, slopes
from jaxsim.mjcf.pose import EPS

STRAIN_YOUNG, STRAIN_POISSON = 10.0, 0.3
"""Material of flexes with strain constraints: only the shapes of its modes matter."""
_MIN_LENGTH = 1e-12


@dataclass
class Lattice:
    """Nodes of a flex: their positions (n, 3), cells in three directions, intervals of a cell, empty cells or None."""

    nodes: np.ndarray
    count: list[int]
    order: int
    empty: np.ndarray | None


def frame(lattice: Lattice) -> np.ndarray:
    """Return the rotation (3, 3) whose rows are the directions of the lattice, from its first cell that is not empty.

    Raises ModelError if the directions are not at right angles.
    """
    filled = np.argwhere(~lattice.empty) if lattice.empty is not None else np.zeros((0, 3), int)
    first = (filled[0] if len(filled) else np.zeros(3, int)) * lattice.order
    at = np.vstack([first, first + lattice.order * np.eye(3, dtype=int)])
    corners = nodes(lattice.count, lattice.order, at)
    axes = lattice.nodes[corners[1:]] - lattice.nodes[corners[0]]
    square = dot(axes, axes)[:, None]
    length = np.sqrt(np.where(square < EPS, 1.0, square))
    axes = np.where((square < EPS) | (np.abs(length - 1) <= EPS), axes, axes / length)
    if np.any(np.abs(dot(axes[:, None], axes[None, :]) - np.eye(3)) > 1e-8):
        raise ModelError("the nodes must form a regular grid with axes at right angles")
    return axes


def turn(points: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Transform points to the frame whose axes are the rows of a rotation matrix."""
    return dot(points[:, None, :], axes[None, :, :])


def stiffness(size: np.ndarray, axes, order: int, la: float, mu: float, thickness: float | None = None) -> np.ndarray:
    """Compute the negative stiffness (3n, 3n) of an element of the given size along `axes`, as in MuJoCo.

    The sums run in one fixed order, since modes of equal stiffness depend on the last bits.
    """
    dims = len(axes)
    scale = 1.0 / size
    volume = size[0] * size[1] * (size[2] if dims == 3 else 1.0)
    n = (order + 1) ** dims
    out = np.zeros((n, 3, n, 3))
    for weight, gradient in gradients(order, dims):
        amount = weight * volume
        if thickness is not None:
            amount = amount * thickness
        gradient_xyz = np.zeros((n, 3))
        gradient_xyz[:, axes] = scale * gradient
        out -= la * gradient_xyz[:, :, None, None] * gradient_xyz[None, None, :, :] * amount
        out -= mu * _double_product(gradient_xyz) * amount
    return out.reshape(3 * n, 3 * n)


def _double_product(gradient_xyz: np.ndarray) -> np.ndarray:
    """Compute inner products (n, 3, n, 3) of the symmetric strains due to unit displacements of two nodes."""
    n = len(gradient_xyz)
    strain = np.zeros((n, 3, 3, 3))  # node, direction of the displacement, then the strain
    for k in range(3):
        strain[:, k, k, :] = gradient_xyz
    strain = (strain + np.swapaxes(strain, -1, -2)) / 2
    one, two = strain[:, :, None, None], strain[None, None]
    rows = [
        one[..., i, 0] * two[..., 0, i] + one[..., i, 1] * two[..., 1, i] + one[..., i, 2] * two[..., 2, i]
        for i in range(3)
    ]
    return rows[0] + rows[1] + rows[2]


def lattice_stiffness(lattice: Lattice, young: float, poisson: float, shell: bool, thickness: float, modes: bool):
    """Return stiffness matrices of all elements, flat; with `modes`, the strain modes of each element instead."""
    elements, axes = (faces if shell else cells)(lattice.count, lattice.order)
    la = young * poisson / (1.0 - poisson * poisson) if shell else young * poisson / (1 + poisson) / (1 - 2 * poisson)
    mu = young / (2 * (1 + poisson))
    corner = lattice.nodes[elements]
    span = corner[:, -1] - corner[:, 0]
    out = np.zeros((len(elements), (3 * elements.shape[1]) ** 2))
    empty = lattice.empty.ravel() if lattice.empty is not None and not shell else np.zeros(len(elements), bool)
    known: dict[tuple, tuple[np.ndarray, ...]] = {}
    for e in np.flatnonzero(~empty):
        own = axes[e, : 2 if shell else 3]
        key = (*own, *span[e, own].tolist())
        if key not in known:
            if shell and not np.all(span[e, own]):
                raise ModelError("a face of the lattice of nodes has no extent")
            matrix = stiffness(span[e, own], own, lattice.order, la, mu, thickness if shell else None)
            known[key] = eigen(matrix) if modes else (matrix,)
        matrix, *vectors = known[key]
        out[e] = _modes(matrix, vectors[0], corner[e]) if modes else matrix.ravel()
    return out.ravel()


def eigen(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute eigenvalues and eigenvectors (columns) by cyclic Jacobi rotations, without sorting."""
    a, n = matrix.copy(), len(matrix)
    vectors = np.eye(n)
    for _ in range(200):
        if np.sum(np.triu(a, 1) ** 2) < 1e-24:
            break
        for p in range(n):
            for q in range(p + 1, n):
                if abs(a[p, q]) >= 1e-15:
                    _rotate(a, vectors, p, q)
    return np.diagonal(a).copy(), vectors


def _rotate(a: np.ndarray, vectors: np.ndarray, p: int, q: int) -> None:
    """Apply one Jacobi rotation that makes a[p, q] zero, in place."""
    apq, app, aqq = a[p, q], a[p, p], a[q, q]
    tau = (aqq - app) / (2.0 * apq)
    t = (1.0 if tau >= 0 else -1.0) / (abs(tau) + np.sqrt(1.0 + tau * tau))
    c = 1.0 / np.sqrt(1.0 + t * t)
    s = t * c
    left, right = a[:, p].copy(), a[:, q].copy()
    a[:, p] = a[p, :] = c * left - s * right
    a[:, q] = a[q, :] = s * left + c * right
    a[p, p], a[q, q] = app - t * apq, aqq + t * apq
    a[p, q] = a[q, p] = 0.0
    left, right = vectors[:, p].copy(), vectors[:, q].copy()
    vectors[:, p] = c * left - s * right
    vectors[:, q] = s * left + c * right


def _rigid_motions(nodes: np.ndarray) -> np.ndarray:
    """Compute the orthonormal rigid motions (6, 3n) of nodes (n, 3): translations, rotations about their centre."""
    n = len(nodes)
    arm = nodes - np.add.accumulate(nodes, axis=0)[-1] / n
    motion = np.zeros((6, n, 3))
    for k in range(3):
        motion[k, :, k] = 1
        motion[3 + k] = cross(np.eye(3)[k], arm)
    motion = motion.reshape(6, -1)
    for i in range(6):
        for j in range(i):
            motion[i] -= (motion[i] @ motion[j]) * motion[j]
        square = motion[i] @ motion[i]
        motion[i] = motion[i] / np.sqrt(square) if square > 1e-20 else 0.0
    return motion


def _modes(values: np.ndarray, vectors: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Return the number of modes that strain an element, then each mode scaled by the square root of its stiffness."""
    n = len(values)
    rigid = _rigid_motions(nodes)
    out = np.zeros(n * n)
    found = 0
    for i in np.flatnonzero(-values > np.abs(values).max() * 1e-8):
        mode = np.sqrt(-values[i]) * vectors[:, i]
        for motion in rigid:
            mode = mode - (mode @ motion) * motion
        if mode @ mode >= -values[i] * 1e-6 and 1 + (found + 1) * n <= n * n:
            out[1 + found * n : 1 + (found + 1) * n] = mode
            found += 1
    out[0] = found
    return out


def shell_bending(lattice: Lattice, young: float, poisson: float, thickness: float) -> np.ndarray:
    """Compute bending data of a shell, flat: the number of edges between faces, then ten numbers for each edge.

    The numbers are both faces, the middle of the edge in the coordinates of each, stiffness, and the difference of the
    unit normals at rest.
    """
    modulus = young * thickness * thickness * thickness / (12.0 * (1.0 - poisson * poisson))
    elements, _ = faces(lattice.count, lattice.order)
    pairs = _face_pairs(lattice)
    out = np.zeros((len(pairs), 10))
    for row, (one, two, at_one, at_two) in zip(out, pairs, strict=True):
        here, there = _edge_frame(lattice, elements[one], at_one), _edge_frame(lattice, elements[two], at_two)
        if here is None or there is None:
            continue
        (n1, l1, h1), (n2, l2, h2) = here, there
        row[:] = [one, two, *at_one, *at_two, modulus * ((l1 + l2) / 2) / max((h1 + h2) / 2, _MIN_LENGTH), *(n1 - n2)]
    return np.concatenate([[len(pairs)], out.ravel()])


def _edge_frame(lattice: Lattice, element: np.ndarray, at: tuple[float, float]):
    """Compute the unit normal of a face at the middle of an edge, and its length along the edge and across it.

    Returns None if there is no normal.
    """
    (v0, v1), (d0, d1) = ([basis(s, lattice.order) for s in at] for basis in (polynomials, slopes))
    corner = lattice.nodes[element]
    tangents = [(np.outer(a, b).ravel()[:, None] * corner).sum(axis=0) for a, b in ((d0, v1), (v0, d1))]
    normal = cross(*tangents)
    square = normal @ normal
    if square < EPS or np.sqrt(square) < _MIN_LENGTH:
        return None
    along, across = tangents if at[0] == 0.5 else tangents[::-1]
    return normal / np.sqrt(square), _length(along), _length(across)


def _length(vec: np.ndarray) -> float:
    square = vec @ vec
    return 0.0 if square < EPS else float(np.sqrt(square))


def _face_pairs(lattice: Lattice) -> list[tuple[int, int, tuple[float, float], tuple[float, float]]]:
    """Return pairs of faces with a common edge, each once, and the middle of the edge in the coordinates of both."""
    counts = [[lattice.count[a] for a in side_axes(side)[1:]] for side in range(6)]
    first = np.cumsum([0] + [a * b for a, b in counts])
    pairs = []
    for side in range(6):
        for quad in itertools.product(*map(range, counts[side])):
            one = first[side] + quad[0] * counts[side][1] + quad[1]
            for along, step in itertools.product((0, 1), (-1, 1)):
                other, at, middle_there = _neighbour(lattice, counts, side, quad, along, step)
                two = first[other] + at[0] * counts[other][1] + at[1]
                if one < two:
                    middle = tuple((1.0 if step > 0 else 0.0) if k == along else 0.5 for k in range(2))
                    pairs.append((int(one), int(two), middle, middle_there))
    return pairs


def _neighbour(lattice: Lattice, counts, side: int, quad: tuple[int, ...], along: int, step: int):
    """Return the face beyond an edge: its side, its index there, and the middle of the edge in its coordinates."""
    moved = list(quad)
    moved[along] += step
    if 0 <= moved[along] < counts[side][along]:
        middle_there = tuple((0.0 if step > 0 else 1.0) if k == along else 0.5 for k in range(2))
        return side, tuple(moved), middle_there
    normal, *inside = side_axes(side)
    other = 2 * inside[along] + int(step > 0)
    end = float(side % 2)
    last = int(lattice.count[normal]) - 1 if side % 2 else 0
    run = quad[1 - along]
    return (other, (run, last), (0.5, end)) if along == 0 else (other, (last, run), (end, 0.5))
