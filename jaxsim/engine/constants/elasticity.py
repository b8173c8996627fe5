"""Stiffness of flexes from a material: `flex_elasticity`, differentiable by Young's modulus and other parameters.

`flex_elements` has the formulas of elements whose vertices move freely; lattices have the linear elasticity of their
cells or faces.
"""

import itertools
from typing import Any

import numpy as np

from jaxsim.core.allocate import allocate
from jaxsim.core.flex_lattice import lattice_elements
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.engine.constants import flex_elements as elements
from jaxsim.engine.flex.elastic import BENDING_ENTRIES
from jaxsim.engine.flex.kinematics import flex as flex_stage
from jaxsim.engine.flex.lattice import EDGE_ENTRIES
from jaxsim.engine.kinematics.com import com_pos
from jaxsim.engine.kinematics.kinematics import kinematics
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.engine.structure.flex_interpolation import polynomials, slopes
from jaxsim.math.arrays import merge, take
from jaxsim.math.safe import Array, divide, norm, xp_of

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
    shear, _ = elements.moduli(young, poisson)
    stiffness, bending = m.flex_stiffness, m.flex_bending
    rest = flex_stage(m, com_pos(m, kinematics(m, allocate(m)))).flexvert_xpos if m.nflex else None
    for f in chosen:
        if m.flex_rigid[f]:
            continue
        if m.flex_interp[f]:
            stiffness = _lattice(m, f, stiffness, shear, young, poisson, thickness)
            bending = _creases(m, f, bending, young * thickness**3 / (12 * (1 - poisson * poisson)))
            continue
        first = m.flex_stiffnessadr[f]
        if first >= 0 and m.flex_dim[f] > 1:
            form = _free(m, f, rest, young, poisson, thickness)
            stretches = m.flex_dim[f] == 3 or elastic2d in ("stretch", "both")
            place = first + np.arange(form.size)
            stiffness = _placed(stiffness, place, form if stretches else form * 0)
        if m.flex_bendingadr[f] >= 0:
            place, form = _plates(m, f, rest, shear, thickness)
            bending = _placed(bending, place, form if elastic2d in ("bend", "both") else form * 0)
    return m.replace(flex_stiffness=stiffness, flex_bending=bending)


def _placed(x: Array, place: np.ndarray, rows: Array) -> Array:
    return merge(x, place.reshape(-1), rows.reshape(-1).astype(x.dtype))


def _free(m: Model, f: int, rest: Array, young: Array, poisson: Array, thickness: Array) -> Array:
    """Compute the entries of the elements of a flex whose vertices move freely: (n, 21)."""
    ids, vertices = tables.elements(m)[int(m.flex_dim[f])]
    own = (ids >= m.flex_elemadr[f]) & (ids < m.flex_elemadr[f] + m.flex_elemnum[f])
    x = take(rest, vertices[own])
    if m.flex_dim[f] == 2:
        return elements.triangle_strain(x, young, poisson, thickness)
    return elements.tetrahedron_strain(x, young, poisson)


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


def _plates(m: Model, f: int, rest: Array, shear: Array, thickness: Array) -> tuple[np.ndarray, Array]:
    """Compute the entries (n, 17) of the inner edges of a surface that resists bending; return their places too."""
    first = m.flex_edgeadr[f]
    inner = np.flatnonzero(m.flex_edgeflap[first : first + m.flex_edgenum[f], 1] >= 0)
    corner = *_first_sides(m)[first + inner].T, *(m.flex_edgeflap[first + inner] + m.flex_vertadr[f]).T
    place = m.flex_bendingadr[f] + BENDING_ENTRIES * inner[:, None] + np.arange(BENDING_ENTRIES)
    return place, elements.bending([take(rest, index) for index in corner], shear, thickness)


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
    lame = young * poisson / (1 - poisson * poisson) if shell else elements.moduli(young, poisson)[1]
    direction = np.eye(3)[axes[:, :dims]]  # (n, dims, 3)
    total = 0.0
    for weight, gradient in elements.gradients(order, dims):
        scaled = gradient.astype(at.dtype)[None] / span[:, None]  # (n, k, dims)
        g = (scaled[..., None] * direction.astype(at.dtype)[:, None]).sum(2)  # (n, k, 3)
        outer = g[:, :, :, None, None] * g[:, None, None]  # node, its axis, node, its axis
        dots = (g[:, :, None] * g[:, None]).sum(-1)
        same = dots[:, :, None, :, None] * np.eye(3, dtype=at.dtype)[None, None, :, None]
        strains = 0.5 * (same + xp.transpose(outer, (0, 1, 4, 3, 2)))
        amount = (weight * volume)[:, None, None, None, None]
        total = total - (lame * outer + shear * strains) * amount
    place = first + np.arange(n * 9 * k * k)
    old = take(out, place).reshape(n, -1)
    return _placed(out, place, xp.where(old[:, :1] != 0, xp.reshape(total, (n, -1)), 0))


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
