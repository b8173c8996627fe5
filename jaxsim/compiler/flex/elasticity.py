"""Stiffness of flexes whose vertices move freely: strain of triangles and tetrahedra, bending of pairs of triangles.

Strains are functions of squared edge lengths: the energy of an element is a quadratic form in them. The basis of an
edge is the symmetrised product of the normals of the sides not containing it (Weischedel, "A discrete geometric view on
shear-deformable shell models"). Bending is the cotangent operator of Wardetzky et al. with the correction for curved
rest shapes of Garg et al., "Cubic shells".
"""

from __future__ import annotations

import numpy as np

from jaxsim.compiler.asset.bvh import cross, dot
from jaxsim.mjcf.pose import EPS

STRAIN_ENTRIES = 21
"""Numbers kept for each element: the upper triangle of a 6 x 6 matrix; triangles use the first six."""
BENDING_ENTRIES = 17
"""Numbers kept for each edge: a 4 x 4 matrix by rows, and the coefficient of the curved rest shape."""

# of a triangle: the two other edges; of a tetrahedron: the two faces that an edge does not lie in
_TRIANGLE_SIDES = np.array([[2, 0], [0, 1], [1, 2]])
_FACES = np.array([[2, 1, 0], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
_FACES_OF_EDGE = np.array([[2, 3], [1, 3], [2, 1], [1, 0], [0, 2], [0, 3]])


def triangle_stiffness(x: np.ndarray, young: float, poisson: float, thickness: float) -> np.ndarray:
    """Compute the strain stiffness (n, 21) of triangles with corners x (n, 3, 3)."""
    normal = cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
    square = dot(normal, normal)
    area = np.where(square < EPS, 0.0, np.sqrt(square)) / 2
    left, right = _TRIANGLE_SIDES, np.roll(_TRIANGLE_SIDES, -1, axis=0)
    edge_left = x[:, left[:, 0]] - x[:, left[:, 1]]
    edge_right = x[:, right[:, 1]] - x[:, right[:, 0]]
    across = _unit(cross(edge_right, edge_left))
    normals = cross(across, edge_left), cross(edge_right, across)
    return _strain(normals, 8 * area**2, area * thickness, young, poisson)


def tetrahedron_stiffness(x: np.ndarray, young: float, poisson: float) -> np.ndarray:
    """Compute the strain stiffness (n, 21) of tetrahedra with corners x (n, 4, 3)."""
    volume = dot(cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]), x[:, 3] - x[:, 0]) / 6
    corner = x[:, _FACES]
    area = cross(corner[:, :, 1] - corner[:, :, 0], corner[:, :, 2] - corner[:, :, 0])
    normals = area[:, _FACES_OF_EDGE[:, 0]], area[:, _FACES_OF_EDGE[:, 1]]
    return _strain(normals, 72 * volume**2, 4 * np.abs(volume), young, poisson)


def _strain(normals, scale: np.ndarray, weight: np.ndarray, young: float, poisson: float):
    """Compute the quadratic form from pairs of normals (n, e, 3).

    `scale` divides the basis, `weight` multiplies the moduli.
    """
    left, right = normals
    product = left[..., :, None] * right[..., None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        basis = (product + np.swapaxes(product, -1, -2)) / scale[:, None, None, None]
    mu = young / (2 * (1 + poisson)) * weight / 4
    la = young * poisson / ((1 + poisson) * (1 - 2 * poisson)) * weight / 4
    trace = np.trace(basis, axis1=-2, axis2=-1)
    double = np.einsum("naij,nbji->nab", basis, basis)
    form = mu[:, None, None] * double + la[:, None, None] * trace[:, :, None] * trace[:, None, :]
    upper = np.triu_indices(basis.shape[1])
    out = np.zeros((len(form), STRAIN_ENTRIES))
    out[:, : len(upper[0])] = form[:, upper[0], upper[1]]
    return out


def _unit(vec: np.ndarray) -> np.ndarray:
    """Normalise vectors; those that are too short do not change."""
    square = dot(vec, vec)
    return np.where((square < EPS)[..., None], vec, vec / np.sqrt(np.where(square < EPS, 1.0, square))[..., None])


def _cotangent(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Compute the cotangent of the angle at `a` in triangles a, b, c."""
    one, two = b - a, c - a
    normal = cross(one, two)
    return dot(one, two) / np.sqrt(dot(normal, normal))


def _area(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    normal = cross(b - a, c - a)
    return np.sqrt(dot(normal, normal)) / 2


def bending(x: np.ndarray, flap: np.ndarray, shear: float, thickness: float) -> np.ndarray:
    """Compute bending stiffness (nedge, 17) of edges: flaps (nedge, 4) of vertices x (nvert, 3); zero on the border."""
    out = np.zeros((len(flap), BENDING_ENTRIES))
    inner = flap[:, 3] >= 0
    v = [x[flap[inner, k]] for k in range(4)]
    with np.errstate(divide="ignore", invalid="ignore"):
        a01, a02 = _cotangent(v[0], v[1], v[2]), _cotangent(v[0], v[3], v[1])
        a03, a04 = _cotangent(v[1], v[2], v[0]), _cotangent(v[1], v[0], v[3])
        c = np.stack([a03 + a04, a01 + a02, -(a01 + a03), -(a02 + a04)], axis=1)
        volume = _area(*v[:3]) + _area(v[1], v[0], v[3])
        stiffness = 3 * shear * thickness**3 / (24 * volume)
        along = v[1] - v[0]
        height1 = -(a03[:, None] * (v[2] - v[0]) + a01[:, None] * (v[2] - v[1]))
        height2 = -(a04[:, None] * (v[3] - v[0]) + a02[:, None] * (v[3] - v[1]))
        square = dot(along, along)
        cosine = -dot(height1, height2) / square
        out[inner, :16] = (c[:, :, None] * c[:, None, :] * (cosine * stiffness)[:, None, None]).reshape(-1, 16)
        triple = dot(cross(along, v[2] - v[0]), v[3] - v[0])
        out[inner, 16] = triple * (a01 - a03) * (a04 - a02) * stiffness / (square * np.sqrt(square))
    return out
