"""Stiffness of the elements of flexes, for the compiler (NumPy) and for `flex_elasticity`.

Strains are functions of squared edge lengths: the energy of an element is a quadratic form in them. The basis of an
edge is the symmetrised product of the normals of the sides not containing it (Weischedel, "A discrete geometric view on
shear-deformable shell models"). Bending is the cotangent operator of Wardetzky et al. with the correction for curved
rest shapes of Garg et al., "Cubic shells". Elements without area or volume have NaN, as in MuJoCo.
"""

import itertools

import numpy as np

from jaxsim.engine.flex.elastic import STRAIN_ENTRIES
from jaxsim.engine.structure.flex_interpolation import polynomials, slopes
from jaxsim.math.arrays import einsum, inner
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, divide, norm, normalize, xp_of

MIN_LENGTH = 1e-7  # shorter vectors have no direction
# of a triangle: the two other edges; of a tetrahedron: the two faces that an edge does not lie in
_SIDES = np.array([[2, 0], [0, 1], [1, 2]], np.int32)
_FACES = np.array([[2, 1, 0], [0, 1, 3], [1, 2, 3], [2, 0, 3]], np.int32)
_FACES_OF_EDGE = np.array([[2, 3], [1, 3], [2, 1], [1, 0], [0, 2], [0, 3]], np.int32)


def moduli(young: Array, poisson: Array) -> tuple[Array, Array]:
    """Return Lame's parameters of a material: the shear modulus first."""
    return young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))


def triangle_strain(x: Array, young: Array, poisson: Array, thickness: Array) -> Array:
    """Compute the strain stiffness (n, 21) of triangles with corners x (n, 3, 3)."""
    length = norm(cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]))
    area = xp_of(length).where(length < MIN_LENGTH, 0, length) / 2
    left, right = _SIDES, np.roll(_SIDES, -1, axis=0)
    edge_left = x[:, left[:, 0]] - x[:, left[:, 1]]
    edge_right = x[:, right[:, 1]] - x[:, right[:, 0]]
    normal = cross(edge_right, edge_left)
    across = normalize(normal, normal, MIN_LENGTH)[0]
    normals = cross(across, edge_left), cross(edge_right, across)
    return _strain(normals, 8 * area**2, area * thickness, young, poisson)


def tetrahedron_strain(x: Array, young: Array, poisson: Array) -> Array:
    """Compute the strain stiffness (n, 21) of tetrahedra with corners x (n, 4, 3)."""
    volume = inner(cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]), x[:, 3] - x[:, 0]) / 6
    corner = x[:, _FACES]
    area = cross(corner[:, :, 1] - corner[:, :, 0], corner[:, :, 2] - corner[:, :, 0])
    normals = area[:, _FACES_OF_EDGE[:, 0]], area[:, _FACES_OF_EDGE[:, 1]]
    return _strain(normals, 72 * volume**2, 4 * abs(volume), young, poisson)


def _strain(normals: tuple[Array, Array], scale: Array, weight: Array, young: Array, poisson: Array) -> Array:
    """Compute the quadratic form from pairs of normals (n, e, 3).

    `scale` divides the basis, `weight` multiplies the moduli.
    """
    product = normals[0][..., :, None] * normals[1][..., None, :]
    xp = xp_of(product)
    basis = divide(product + xp.swapaxes(product, -1, -2), scale[:, None, None, None], np.nan)
    mu, la = (modulus * weight / 4 for modulus in moduli(young, poisson))
    trace = xp.trace(basis, axis1=-2, axis2=-1)
    double = einsum("naij,nbji->nab", basis, basis)
    form = mu[:, None, None] * double + la[:, None, None] * trace[:, :, None] * trace[:, None, :]
    upper = np.triu_indices(form.shape[1])
    entries = form[:, upper[0], upper[1]]
    return xp.concatenate([entries, xp.zeros((len(entries), STRAIN_ENTRIES - entries.shape[1]), form.dtype)], axis=1)


def _cotangent(a: Array, b: Array, c: Array) -> Array:
    """Compute the cotangent of the angle at `a` in triangles a, b, c."""
    return divide(inner(b - a, c - a), norm(cross(b - a, c - a)), np.nan)


def bending(v: list[Array], shear: Array, thickness: Array) -> Array:
    """Compute the bending stiffness (n, 17) of edges, from four corners (n, 3) each: both ends, then the others.

    Of the 17 numbers 16 are a 4 x 4 matrix by rows, the last is the coefficient of the curved rest shape.
    """
    a01, a02 = _cotangent(v[0], v[1], v[2]), _cotangent(v[0], v[3], v[1])
    a03, a04 = _cotangent(v[1], v[2], v[0]), _cotangent(v[1], v[0], v[3])
    xp = xp_of(a01)
    c = xp.stack([a03 + a04, a01 + a02, -(a01 + a03), -(a02 + a04)], axis=1)
    along = v[1] - v[0]
    area = norm(cross(along, v[2] - v[0])) / 2 + norm(cross(v[0] - v[1], v[3] - v[1])) / 2
    stiffness = divide(3 * shear * thickness**3, 24 * area, np.nan)
    height1 = -(a03[:, None] * (v[2] - v[0]) + a01[:, None] * (v[2] - v[1]))
    height2 = -(a04[:, None] * (v[3] - v[0]) + a02[:, None] * (v[3] - v[1]))
    square = inner(along, along)
    cosine = divide(-inner(height1, height2), square, np.nan)
    plate = (c[:, :, None] * c[:, None, :] * (cosine * stiffness)[:, None, None]).reshape(-1, 16)
    triple = inner(cross(along, v[2] - v[0]), v[3] - v[0])
    curved = divide(triple * (a01 - a03) * (a04 - a02) * stiffness, square * norm(along), np.nan)
    return xp.concatenate([plate, curved[:, None]], axis=1)


def _quadrature(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return quadrature points and weights on (0, 1), in MuJoCo's form.

    For degree 2 the outer points are beyond the ends of the interval.
    """
    half = 0.5 / np.sqrt(3 if order == 1 else 3 / 5)
    if order == 1:
        return np.array([0.5 - half, 0.5 + half]), np.array([0.5, 0.5])
    return np.array([0.5, 0.5 - half, 0.5 + half]), np.array([8, 5, 5]) / 18


def gradients(order: int, dims: int) -> list[tuple[float, np.ndarray]]:
    """Return the weight and the gradients (nodes, dims) of all basis functions at each quadrature point."""
    points, weights = _quadrature(order)
    lines = [(np.array(polynomials(s, order)), np.array(slopes(s, order))) for s in points]
    out = []
    for at in itertools.product(range(order + 1), repeat=dims):
        columns = []
        for axis in range(dims):
            factors = [lines[a][int(k == axis)] for k, a in enumerate(at)]
            columns.append(np.array([np.prod(row) for row in itertools.product(*factors)]))
        out.append((float(np.prod(weights[list(at)])), np.stack(columns, axis=1)))
    return out
