"""Points and elements of a flexcomp: grids, shapes made from boxes, lists in the element, files."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from jaxsim.core.errors import ModelError
from jaxsim.mjcf.files import base_name, not_found
from jaxsim.mjcf.flexcomp.gmsh import read_gmsh
from jaxsim.mjcf.mesh_file import deduplicate, read_mesh
from jaxsim.mjcf.pose import unit
from jaxsim.mjcf.reader import asset_path, read_file
from jaxsim.mjcf.spec import Element, Spec

MAX_POINTS = 10_000_000
GIVEN_TYPES = ("direct", "mesh", "gmsh")
BOX_TYPES = ("box", "cylinder", "ellipsoid")
_EPS = 1e-14
_MIN_VOLUME = 1e-15
_PLANAR_TYPES = ("square", "disc")
_CUBE_TETRAHEDRA = np.array([[0, 3, 1, 7], [0, 1, 4, 7], [1, 3, 2, 7], [1, 2, 6, 7], [1, 5, 4, 7], [1, 6, 5, 7]])
_CUBE_CORNERS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]])


@dataclass
class FlexShape:
    """Points (n, 3), elements (flat), the dimension; texture coordinates of points and elements, flat or None."""

    points: np.ndarray
    elements: np.ndarray
    dim: int
    texcoord: np.ndarray | None = None
    elemtexcoord: np.ndarray | None = None


def make_shape(element: Element, a: dict, spec: Spec) -> FlexShape:
    """Return the points and elements of a flexcomp with attributes `a`; raise ModelError if there are none."""
    kind, texture = a["type"], a["texcoord"] is None and bool(a["material"])
    if kind not in GIVEN_TYPES and np.prod(a["count"].astype(float)) > MAX_POINTS:
        raise element.error(f"count makes more than {MAX_POINTS} points")
    if kind == "direct":
        shape = _listed(element, a)
    elif kind == "mesh":
        shape = _mesh(element, a, _file(element, a, spec))
    elif kind == "gmsh":
        shape = _gmsh(element, a, _file(element, a, spec))
    elif kind in BOX_TYPES:
        shape = _box(a, texture)
    elif kind in _PLANAR_TYPES or a["dim"] == 2:
        shape = _plane(a, texture)
    else:
        shape = _line(a) if a["dim"] == 1 else _block(a, texture)
    if kind not in GIVEN_TYPES and (a["point"] is not None or a["element"] is not None):
        first = _listed(element, a)  # MuJoCo appends the generated points to the written ones
        if kind == "disc":
            first.points[:, :2] = _on_disc(a, first.points[:, :2])
        shape.points = np.concatenate([first.points, shape.points])
        shape.elements = np.concatenate([first.elements, shape.elements])
    if a["texcoord"] is not None and shape.elemtexcoord is None:
        shape.texcoord = a["texcoord"]
    return shape


def lattice(counts: np.ndarray) -> np.ndarray:
    """Return all index triples (or pairs) of a lattice, the last index running fastest."""
    return np.stack(np.meshgrid(*[np.arange(n) for n in counts], indexing="ij"), axis=-1).reshape(-1, len(counts))


def _listed(element: Element, a: dict) -> FlexShape:
    points = a["point"] if a["point"] is not None else np.zeros(0)
    if len(points) % 3:
        raise element.error("point needs three numbers for each point")
    elements = a["element"] if a["element"] is not None else np.zeros(0, int)
    return FlexShape(points.reshape(-1, 3), elements, a["dim"])


def _file(element: Element, a: dict, spec: Spec) -> bytes:
    if not a["file"]:
        raise element.error(f"a flexcomp of type {a['type']} needs a file")
    path = asset_path(spec, element)
    data = read_file(spec, path)
    if data is None:
        raise element.error(not_found(path))
    return data


def _gmsh(element: Element, a: dict, data: bytes) -> FlexShape:
    try:
        points, elements, dim = read_gmsh(data)
    except ModelError as reason:
        raise element.error(f"file '{a['file']}': {reason.what}") from None
    return FlexShape(points, elements.ravel(), dim)


def _mesh(element: Element, a: dict, data: bytes) -> FlexShape:
    """Return the surface in a mesh file, or the tetrahedra between its triangles and `origin`, without empty ones."""
    if a["dim"] < 2:
        raise element.error("a flexcomp of type mesh has dim 2 or 3")
    name = base_name(a["file"])
    if name.lower().endswith(".msh"):
        raise element.error("legacy MSH files are not for flexcomp; write type='gmsh' for a file of GMSH")
    try:
        raw = read_mesh(data, name)
    except ModelError as reason:
        raise element.error(reason.what) from None
    if not len(raw.vertex) or not len(raw.face):
        raise element.error(f"file '{a['file']}': vertices and faces are needed")
    vertex = raw.vertex.reshape(-1, 3)
    if not np.all(np.isfinite(vertex)):
        raise element.error(f"file '{a['file']}': a vertex is not finite")
    if raw.face.min() < 0 or raw.face.max() >= len(vertex):
        raise element.error(f"file '{a['file']}': a face names a vertex that does not exist")
    vertex, face = deduplicate(vertex + np.float32(0), raw.face)
    points, face = vertex.astype(np.float64), face.reshape(-1, 3)
    shape = FlexShape(points, face.ravel(), 2)
    if a["dim"] == 3:
        points = np.vstack([a["origin"], points])
        a1, a2, a3 = (points[face[:, k] + 1] - a["origin"] for k in range(3))
        solid = face[~(np.einsum("ij,ij->i", np.cross(a1, a2), a3) < _MIN_VOLUME)]
        shape = FlexShape(points, np.insert(solid + 1, 0, 0, axis=1).ravel(), 3)
    if len(raw.texcoord):
        shape.texcoord = raw.texcoord.astype(np.float64)
        shape.elemtexcoord = raw.facetexcoord.astype(np.int64)
    return shape


def _line(a: dict) -> FlexShape:
    n = a["count"][0]
    if a["type"] == "circle":
        steps = np.arange(n - 1)
        angle = 2 * np.pi / (n - 1) if n > 1 else 1.0
        radius = a["spacing"][0] / np.sin(angle / 2) / 2
        points = np.stack([radius * np.cos(angle * steps), radius * np.sin(angle * steps), 0.0 * steps], axis=1)
        elements = np.stack([steps, np.where(steps == n - 2, 0, steps + 1)], axis=1)
    else:
        x = a["spacing"][0] * (np.arange(n) - 0.5 * (n - 1))
        points = np.stack([x, 0 * x, 0 * x], axis=1)
        elements = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    return FlexShape(points, elements.ravel(), 1)


def _texture(index: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return (index / np.maximum(counts - 1, 1)).astype(np.float32).astype(np.float64)


def _plane(a: dict, texture: bool) -> FlexShape:
    count, spacing = a["count"], a["spacing"]
    index = lattice(count[:2])
    flat = spacing[:2] * (index - 0.5 * (count[:2] - 1))
    turned = ((flat[:, 0] < -_EPS) & (flat[:, 1] > -_EPS)) | ((flat[:, 0] > -_EPS) & (flat[:, 1] < -_EPS))
    turned &= a["type"] == "disc"
    corners = index[:, None, :] + np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    vert = count[2] * (count[1] * corners[..., 0] + corners[..., 1])
    straight, other = vert[:, [0, 1, 2, 0, 2, 3]], vert[:, [0, 1, 3, 1, 2, 3]]
    inner = np.all(index < count[:2] - 1, axis=1)
    elements = np.where(turned[:, None], other, straight)[inner]
    if a["type"] == "disc":
        flat = _on_disc(a, flat)
    points = np.concatenate([flat, np.zeros((len(flat), 1))], axis=1)
    return FlexShape(points, elements.ravel(), 2, _texture(index, count[:2]).ravel() if texture else None)


def _on_disc(a: dict, flat: np.ndarray) -> np.ndarray:
    size = 0.5 * a["spacing"][:2] * (a["count"][:2] - 1)
    return np.array([unit(p) for p in flat]).reshape(-1, 2) * size * np.abs(flat).max(axis=1, keepdims=True)


def _block(a: dict, texture: bool) -> FlexShape:
    count, spacing = a["count"], a["spacing"]
    index = lattice(count)
    corners = index[:, None, :] + _CUBE_CORNERS
    vert = (corners[..., 0] * count[1] + corners[..., 1]) * count[2] + corners[..., 2]
    inner = np.all(index < count - 1, axis=1)
    elements = vert[inner][:, _CUBE_TETRAHEDRA.ravel()]
    points = spacing * (index - 0.5 * (count - 1))
    return FlexShape(points, elements.ravel(), 3, _texture(index[:, :2], count[:2]).ravel() if texture else None)


def _faces(count: np.ndarray, dim: int) -> list[tuple[int, int, tuple[int, int]]]:
    """Return the six sides of a box (five if it is open): normal axis, index along it, the two axes in the side."""
    sides = []
    for normal, inside in ((2, (0, 1)), (1, (0, 2)), (0, (1, 2))):
        for place in (0, int(count[normal]) - 1):
            if not (dim == 2 and normal == 2 and place):
                sides.append((normal, place, inside))
    return sides


def _box(a: dict, texture: bool) -> FlexShape:
    count, dim = a["count"], a["dim"]
    top = count[2] if dim == 2 else count[2] - 1
    limits = {2: ((0, count[0]), (0, count[1])), 1: ((0, count[0]), (1, top)), 0: ((1, count[1] - 1), (1, top))}
    number: dict[tuple[int, ...], int] = {}
    points, tex = ([np.zeros(3)] if dim == 3 else []), ([0.0, 0.0] if texture else [])
    for normal, place, inside in _faces(count, dim):
        for pair in lattice(np.array([high - low for low, high in limits[normal]])):
            at = np.zeros(3, int)
            at[normal] = place
            at[list(inside)] = pair + [low for low, _ in limits[normal]]
            number[tuple(at.tolist())] = len(points)
            points.append(_project(a, at))
            tex += list(_texture(at[list(inside)], count[list(inside)])) if texture else []
    elements = []
    for normal, place, inside in _faces(count, dim):
        for pair in lattice(count[list(inside)] - 1):
            corner = {}
            for step in itertools.product((0, 1), (0, 1)):
                at = np.zeros(3, int)
                at[normal] = place
                at[list(inside)] = pair + step
                corner[step] = number[tuple(at.tolist())]
            elements += _side(corner, normal, place == 0, dim)
    return FlexShape(np.array(points), np.array(elements, int), dim, np.array(tex) if texture else None)


def _side(corner: dict, normal: int, low: bool, dim: int) -> list[int]:
    """Return the elements of one square of a side: two tetrahedra to the centre, or two outward triangles."""
    o, x, xy, y = corner[0, 0], corner[1, 0], corner[1, 1], corner[0, 1]
    if dim == 3:
        return [0, o, x, xy, 0, o, y, xy]
    if normal == 2:
        return [o, xy, x, o, y, xy] if low else [o, x, xy, o, xy, y]
    forward = low if normal == 1 else not low
    return [o, x, xy, o, xy, y] if forward else [x, o, y, x, y, xy]


def _project(a: dict, at: np.ndarray) -> np.ndarray:
    """Project a grid point of a box on the shape that is made from the box."""
    count = a["count"]
    size = 0.5 * a["spacing"] * (count - 1)
    pos = 2.0 * at / (count - 1) - 1
    if a["type"] == "cylinder":
        reach = np.abs(pos[:2]).max()
        pos[:2] = np.array(unit(pos[:2])) * reach
    elif a["type"] == "ellipsoid":
        pos = np.array(unit(pos))
    return pos * size
