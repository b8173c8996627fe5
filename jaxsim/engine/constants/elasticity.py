"""Stiffness of flexes from a material: `flex_elasticity`, differentiable by Young's modulus and other parameters.

Strain of elements is a quadratic form in squared lengths of edges (Weischedel, "A discrete geometric view on
shear-deformable shell models"), bending the cotangent operator (Wardetzky et al.) with the term of Garg et al., "Cubic
shells"; lattices have the linear elasticity of their cells or faces.
"""

import itertools
from typing import Any

import numpy as np

from jaxsim.core.allocate import allocate
from jaxsim.core.flex_lattice import lattice_elements
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.engine.flex.elastic import STRAIN_ENTRIES
from jaxsim.engine.flex.kinematics import flex as flex_stage
from jaxsim.engine.flex.lattice import EDGE_ENTRIES
from jaxsim.engine.kinematics.com import com_pos
from jaxsim.engine.kinematics.kinematics import kinematics
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.engine.structure.flex_interpolation import polynomials, slopes
from jaxsim.math.arrays import inner, merge, take
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, divide, norm, normalize, xp_of

# of a triangle: the two other edges; of a tetrahedron: the two faces that an edge does not lie in
_SIDES = np.array([[2, 0], [0, 1], [1, 2]], np.int32)
_FACES = np.array([[2, 1, 0], [0, 1, 3], [1, 2, 3], [2, 0, 3]], np.int32)
_FACES_OF_EDGE = np.array([[2, 3], [1, 3], [2, 1], [1, 0], [0, 2], [0, 3]], np.int32)
_ENDS = np.array([[1, 2], [2, 0], [0, 1]], np.int32)  # of the edges of a triangle, as in flex_elemedge
ELASTIC2D = ("none", "bend", "stretch", "both")


def flex_elasticity(
    m: Model, young: Any, poisson: Any, thickness: Any = 0.0, flex: int | None = None, elastic2d: str = "both"
) -> Model:
    """Set flex_stiffness and flex_bending for a material, as the compiler computes them from `elasticity`.

    Pure, and differentiable by the material: a modulus can be found from motion. The model must have been compiled with
    a positive `young`, so that it has the entries; flexes with constraints of strain do not change.

    Args:
        m: the model.
        young: Young's modulus, in Pa.
        poisson: Poisson's ratio, from 0 to less than 0.5.
        thickness: of surfaces and shells, in m.
        flex: the id of one flex; None for all.
        elastic2d: MJCF's attribute for surfaces: "bend", "stretch", "both" or "none".

    Raises:
        ValueError: `elastic2d` has another value.
    """
    if elastic2d not in ELASTIC2D:
        raise ValueError(f"elastic2d is {elastic2d!r}; it must be one of {', '.join(ELASTIC2D)}")
    chosen = range(m.nflex) if flex is None else (int(flex),)
    moduli = young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    stiffness, bending = m.flex_stiffness, m.flex_bending
    rest = flex_stage(m, com_pos(m, kinematics(m, allocate(m)))).flexvert_xpos if m.nflex else None
    for f in chosen:
        if m.flex_rigid[f]:
            continue
        if m.flex_interp[f]:
            stiffness = _lattice(m, f, stiffness, moduli[0], young, poisson, thickness)
            bending = _creases(m, f, bending, young * thickness**3 / (12 * (1 - poisson * poisson)))
            continue
        first = m.flex_stiffnessadr[f]
        if first >= 0 and m.flex_dim[f] > 1:
            form = _free(m, f, rest, *moduli, thickness)
            stretches = m.flex_dim[f] == 3 or elastic2d in ("stretch", "both")
            stiffness = _placed(stiffness, first, form if stretches else form * 0)
        if m.flex_bendingadr[f] >= 0:
            form = _plates(m, f, rest, moduli[0], thickness)
            bending = _placed(bending, m.flex_bendingadr[f], form if elastic2d in ("bend", "both") else form * 0)
    return m.replace(flex_stiffness=stiffness, flex_bending=bending)


def _placed(x: Array, first: int, rows: Array) -> Array:
    flat = rows.reshape(-1)
    return merge(x, first + np.arange(flat.shape[0]), flat.astype(x.dtype))


def _free(m: Model, f: int, rest: Array, shear: Array, lame: Array, thickness: Array) -> Array:
    """Compute the entries of the elements of a flex whose vertices move freely: (n, 21)."""
    ids, vertices = tables.elements(m)[int(m.flex_dim[f])]
    own = (ids >= m.flex_elemadr[f]) & (ids < m.flex_elemadr[f] + m.flex_elemnum[f])
    x = take(rest, vertices[own])
    if m.flex_dim[f] == 2:
        area = norm(cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])) / 2
        left, right = _SIDES, np.roll(_SIDES, -1, axis=0)
        one = x[:, left[:, 0]] - x[:, left[:, 1]]
        two = x[:, right[:, 1]] - x[:, right[:, 0]]
        across = normalize(cross(two, one))[0]
        normals, scale, weight = (cross(across, one), cross(two, across)), 8 * area**2, area * thickness
    else:
        volume = inner(cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]), x[:, 3] - x[:, 0]) / 6
        corner = x[:, _FACES]
        face = cross(corner[:, :, 1] - corner[:, :, 0], corner[:, :, 2] - corner[:, :, 0])
        normals = face[:, _FACES_OF_EDGE[:, 0]], face[:, _FACES_OF_EDGE[:, 1]]
        scale, weight = 72 * volume**2, 4 * abs(volume)
    product = normals[0][..., :, None] * normals[1][..., None, :]
    xp = xp_of(product)
    basis = divide(product + xp.swapaxes(product, -1, -2), scale[:, None, None, None])
    trace = basis[..., 0, 0] + basis[..., 1, 1] + basis[..., 2, 2]
    double = (basis[:, :, None] * xp.swapaxes(basis, -1, -2)[:, None]).sum((-1, -2))
    form = shear * double + lame * trace[:, :, None] * trace[:, None, :]
    form = form * (weight / 4)[:, None, None]
    upper = np.triu_indices(basis.shape[1])
    entries = form[:, upper[0], upper[1]]
    return xp.concatenate([entries, xp.zeros((len(entries), STRAIN_ENTRIES - entries.shape[1]), form.dtype)], axis=1)


@per_structure
def _first_sides(m: Any) -> np.ndarray:
    """Return the vertices of each edge (nflexedge, 2) in the order of the first triangle that has it."""
    out = tables.edges(m).ends.copy()
    for f in np.flatnonzero(m.flex_dim == 2):
        ids, vertices = tables.elements(m)[2]
        own = (ids >= m.flex_elemadr[f]) & (ids < m.flex_elemadr[f] + m.flex_elemnum[f])
        first = m.flex_elemedgeadr[f]
        edge = m.flex_elemedge[first : first + 3 * own.sum()] + m.flex_edgeadr[f]
        ends = vertices[own][:, _ENDS].reshape(-1, 2)
        out[edge[::-1]] = ends[::-1]
    return out


def _cotangent(a: Array, b: Array, c: Array) -> Array:
    """Compute the cotangent of the angle at `a` in triangles a, b, c."""
    return divide(inner(b - a, c - a), norm(cross(b - a, c - a)))


def _plates(m: Model, f: int, rest: Array, shear: Array, thickness: Array) -> Array:
    """Compute the entries of the edges of a surface that resists bending: (nedge, 17), zero on the border."""
    edge = m.flex_edgeadr[f] + np.arange(m.flex_edgenum[f])
    inside = m.flex_edgeflap[edge, 1] >= 0
    flap = np.maximum(m.flex_edgeflap[edge], 0) + m.flex_vertadr[f]
    v = [take(rest, index) for index in (*_first_sides(m)[edge].T, *flap.T)]
    xp = xp_of(rest)
    a01, a02 = _cotangent(v[0], v[1], v[2]), _cotangent(v[0], v[3], v[1])
    a03, a04 = _cotangent(v[1], v[2], v[0]), _cotangent(v[1], v[0], v[3])
    c = xp.stack([a03 + a04, a01 + a02, -(a01 + a03), -(a02 + a04)], axis=1)
    along = v[1] - v[0]
    area = (norm(cross(along, v[2] - v[0])) + norm(cross(v[0] - v[1], v[3] - v[1]))) / 2
    stiffness = divide(3 * shear * thickness**3, 24 * area)
    height1 = -(a03[:, None] * (v[2] - v[0]) + a01[:, None] * (v[2] - v[1]))
    height2 = -(a04[:, None] * (v[3] - v[0]) + a02[:, None] * (v[3] - v[1]))
    square = inner(along, along)
    cosine = -divide(inner(height1, height2), square)
    plate = (c[:, :, None] * c[:, None, :] * (cosine * stiffness)[:, None, None]).reshape(-1, 16)
    triple = inner(cross(along, v[2] - v[0]), v[3] - v[0])
    curved = divide(triple * (a01 - a03) * (a04 - a02) * stiffness, square * norm(along))
    rows = xp.concatenate([plate, curved[:, None]], axis=1)
    return xp.where(inside[:, None], rows, 0)


def _quadrature(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return quadrature points and weights on (0, 1), in MuJoCo's form.

    For degree 2 the outer points are beyond the ends of the interval.
    """
    half = 0.5 / np.sqrt(3 if order == 1 else 3 / 5)
    if order == 1:
        return np.array([0.5 - half, 0.5 + half]), np.array([0.5, 0.5])
    return np.array([0.5, 0.5 - half, 0.5 + half]), np.array([8, 5, 5]) / 18


def _gradients(order: int, dims: int) -> list[tuple[float, np.ndarray]]:
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


def _lattice(m: Model, f: int, out: Array, shear: Array, young: Array, poisson: Array, thickness: Array) -> Array:
    """Set in `flex_stiffness` the matrices of the elements of a lattice; empty cells stay empty."""
    first, shell, order = m.flex_stiffnessadr[f], m.flex_interp[f] < 0, abs(int(m.flex_interp[f]))
    if first < 0 or m.flex_edgeequality[f] == 3:
        return out
    node, axes = lattice_elements(m, f)
    n, k = node.shape
    dims = 2 if shell else 3
    at = take(m.flex_node0, node)
    xp = xp_of(at)
    span = (at[:, -1] - at[:, 0]).reshape(-1)
    span = take(span, 3 * np.arange(n)[:, None] + axes[:, :dims])
    volume = span.prod(1) * (thickness if shell else 1.0)
    plane = young * poisson / (1 - poisson * poisson)
    lame = plane if shell else young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    direction = np.eye(3)[axes[:, :dims]]  # (n, dims, 3)
    total = 0.0
    for weight, gradient in _gradients(order, dims):
        scaled = gradient.astype(at.dtype)[None] / span[:, None]  # (n, k, dims)
        g = (scaled[..., None] * direction.astype(at.dtype)[:, None]).sum(2)  # (n, k, 3)
        outer = g[:, :, :, None, None] * g[:, None, None]  # node, its axis, node, its axis
        dots = (g[:, :, None] * g[:, None]).sum(-1)
        same = dots[:, :, None, :, None] * np.eye(3, dtype=at.dtype)[None, None, :, None]
        strains = 0.5 * (same + xp.transpose(outer, (0, 1, 4, 3, 2)))
        amount = (weight * volume)[:, None, None, None, None]
        total = total - (lame * outer + shear * strains) * amount
    old = take(out, first + np.arange(n * 9 * k * k)).reshape(n, -1)
    new = xp.where(old[:, :1] != 0, xp.reshape(total, (n, -1)), 0)
    return _placed(out, first, new)


def _creases(m: Model, f: int, out: Array, modulus: Array) -> Array:
    """Set in `flex_bending` the stiffness of the edges between faces of a shell; its other numbers do not change."""
    begin = int(m.flex_bendingadr[f])
    if begin < 0 or m.flex_interp[f] >= 0:
        return out
    starts = np.append(m.flex_bendingadr[m.flex_bendingadr > begin], m.nflexbending)
    entry = begin + 1 + EDGE_ENTRIES * np.arange((int(starts.min()) - begin - 1) // EDGE_ENTRIES)
    node, _ = lattice_elements(m, f)
    order = -int(m.flex_interp[f])
    data = take(out, entry[:, None] + np.arange(EDGE_ENTRIES))
    lengths = []
    for side in range(2):
        lengths.append(_edge_lengths(m, node, order, data[:, side], data[:, 2 + 2 * side : 4 + 2 * side]))
    along, across = (0.5 * (a + b) for a, b in zip(*lengths, strict=True))
    old = data[:, 6]
    return merge(out, entry + 6, xp_of(old).where(old != 0, modulus * divide(along, across), 0).astype(out.dtype))


def _edge_lengths(m: Model, node: np.ndarray, order: int, face: Array, place: Array) -> tuple[Array, Array]:
    """Compute the lengths of faces along an edge and across it, at the middle of the edge."""
    at = take(m.flex_node0, node)[face.astype(np.int32)]
    xp = xp_of(at, place)
    values = [[polynomials(place[:, k], order), slopes(place[:, k], order)] for k in range(2)]
    tangents = []
    for axis in range(2):
        factors = [values[k][int(k == axis)] for k in range(2)]
        weight = xp.stack([a * b for a, b in itertools.product(*factors)], axis=1)
        tangents.append(norm((weight[..., None] * at).sum(1)))
    first = place[:, 0] == 0.5
    return xp.where(first, tangents[0], tangents[1]), xp.where(first, tangents[1], tangents[0])
