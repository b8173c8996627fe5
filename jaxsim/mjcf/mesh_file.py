"""Mesh files to arrays: binary STL, Wavefront OBJ, legacy MSH.

Counts in headers are checked against the size of the file before anything is allocated, so that a wrong header costs no
more memory than the file has.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from jaxsim.core.errors import ModelError, UnsupportedError

STL_MAX_FACES = 200_000
MAX_CORNERS = 1024
_STL_MAX_COORDINATE = 2.0**30
_STL_FACE = np.dtype([("normal", "<f4", 3), ("vertex", "<f4", (3, 3)), ("attribute", "<u2")])


def _no_floats() -> np.ndarray:
    return np.zeros(0, dtype=np.float32)


def _no_ints() -> np.ndarray:
    return np.zeros(0, dtype=np.int64)


@dataclass
class RawMesh:
    """Data of a mesh as a file or the attributes of the element give it, in flat arrays.

    Attributes:
        vertex, normal, texcoord: float32, lengths multiples of 3, 3, 2.
        face, facenormal, facetexcoord: int64, lengths multiples of 3.
        kind: "stl", "obj", "msh", or "" for data from the element's attributes.
    """

    vertex: np.ndarray = field(default_factory=_no_floats)
    normal: np.ndarray = field(default_factory=_no_floats)
    texcoord: np.ndarray = field(default_factory=_no_floats)
    face: np.ndarray = field(default_factory=_no_ints)
    facenormal: np.ndarray = field(default_factory=_no_ints)
    facetexcoord: np.ndarray = field(default_factory=_no_ints)
    kind: str = ""


_MSH = "model/vnd.mujoco.msh"


def read_mesh(data: bytes, filename: str, content_type: str = "", righthand: bool = True) -> RawMesh:
    """Read a mesh file.

    Args:
        data: the bytes of the file.
        filename: its name, whose extension gives the format.
        content_type: the type, or ""; only "model/vnd.mujoco.msh" takes precedence over the extension.
        righthand: False if the scale of the mesh mirrors it.

    Raises:
        ModelError: for an unknown format or a file that is not well formed.
    """
    extension = filename.rsplit(".", 1)[-1].lower() if "." in filename else ""
    kind = content_type.split(";")[0].strip().lower()
    if kind == _MSH or (extension == "msh" and not kind):
        return read_msh(data, filename, righthand)
    if extension == "stl":
        return read_stl(data, filename)
    if extension == "obj":
        return read_obj(data, filename)
    raise ModelError(f"no decoder found for mesh file '{filename}': STL, OBJ and MSH files are known")


def read_stl(data: bytes, filename: str = "") -> RawMesh:
    """Binary STL; equal vertices become one, numbered in the order of their first appearance."""
    if not data:
        raise ModelError(f"STL file '{filename}' is empty")
    if len(data) < 84:
        raise ModelError(f"invalid header in STL file '{filename}'")
    (nface,) = struct.unpack_from("<i", data, 80)
    hint = "perhaps this is an ASCII file? Only binary STL is read"
    if not 1 <= nface <= STL_MAX_FACES:
        raise ModelError(f"number of faces should be between 1 and {STL_MAX_FACES} in STL file '{filename}'; {hint}")
    if len(data) != 84 + 50 * nface:
        raise ModelError(f"STL file '{filename}' has wrong size; {hint}")
    corner = np.frombuffer(data, dtype=_STL_FACE, count=nface, offset=84)["vertex"].reshape(-1, 3).astype(np.float32)
    if np.any(np.abs(corner) > _STL_MAX_COORDINATE):
        raise ModelError(f"vertex in STL file '{filename}' exceeds maximum bounds")
    vertex, face = deduplicate(corner, np.arange(len(corner)))
    return RawMesh(vertex=vertex.reshape(-1), face=face, kind="stl")


def deduplicate(vertex: np.ndarray, face: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One vertex for each set with equal bits, in the order of first appearance; faces renumbered.

    Args:
        vertex: (n, 3) float32.
        face: integers into `vertex`.
    """
    bits = np.ascontiguousarray(vertex).view(np.uint32)
    _, first, inverse = np.unique(bits, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return vertex[np.sort(first)], rank[inverse.reshape(-1)][face]


def read_msh(data: bytes, filename: str = "", righthand: bool = True) -> RawMesh:
    """Legacy binary format: four counts, then vertices, normals, texture coordinates, faces."""
    if not data:
        raise ModelError(f"MSH file '{filename}' is empty")
    if len(data) < 16:
        raise ModelError(f"missing header in MSH file '{filename}'")
    nvert, nnormal, ntexcoord, nface = struct.unpack_from("<4i", data)
    if nvert < 4 or min(nface, nnormal, ntexcoord) < 0 or nnormal not in (0, nvert) or ntexcoord not in (0, nvert):
        raise ModelError(f"invalid sizes in MSH file '{filename}'")
    if len(data) != 16 + 12 * nvert + 12 * nnormal + 8 * ntexcoord + 12 * nface:
        raise ModelError(f"unexpected file size in MSH file '{filename}'")
    floats = np.frombuffer(data, "<f4", 3 * nvert + 3 * nnormal + 2 * ntexcoord, 16).astype(np.float32)
    vertex, normal, texcoord = np.split(floats, [3 * nvert, 3 * nvert + 3 * nnormal])
    face = np.frombuffer(data, "<i4", 3 * nface, len(data) - 12 * nface).astype(np.int64)
    turned = face if righthand else face.reshape(-1, 3)[:, [0, 2, 1]].reshape(-1)
    facetexcoord = face if ntexcoord else _no_ints()
    return RawMesh(vertex, normal, texcoord, turned, face, facetexcoord, kind="msh")


def read_obj(data: bytes, filename: str = "") -> RawMesh:
    """Wavefront OBJ: the first object or group that has faces; polygons are cut into triangles."""
    vertex, normal, texcoord = [], [], []
    polygons: list[list[list[int]]] = []
    lines = closed = False
    text = data.decode("latin-1").replace("\r", "\n")
    for line in text.split("\n"):
        token = line.split()
        if not token:
            continue
        word = token[0]
        try:
            if word == "v":
                vertex.append([float(token[1]), float(token[2]), float(token[3])])
            elif word == "vn":
                normal.append([float(token[1]), float(token[2]), float(token[3])])
            elif word == "vt":
                texcoord.append([float(token[1]), float(token[2]) if len(token) > 2 else 0.0])
            elif word == "f":
                counts = (len(vertex), len(texcoord), len(normal))
                polygon = [_obj_corner(corner, counts) for corner in token[1:]]
                if not closed and len(polygon) > 2:
                    polygons.append(polygon)
            elif word in ("l", "p"):
                lines = True
            elif word == "g":
                closed, lines = closed or bool(polygons), False
            elif word == "o":
                closed = closed or bool(polygons) or lines
        except (ValueError, IndexError) as error:
            raise ModelError(f"could not parse OBJ file '{filename}' at '{line.strip()[:60]}'") from error
    vertices = _float32(vertex)
    index = _triangulate(polygons, vertices.reshape(-1, 3), filename)
    texcoords = _float32(texcoord).reshape(-1, 2)
    texcoords[:, 1] = 1 - texcoords[:, 1]
    _check_range(index[:, 2], len(normal), "normal", filename)
    _check_range(index[:, 1], len(texcoord), "texcoord", filename)
    return RawMesh(
        vertex=vertices,
        normal=_float32(normal),
        texcoord=texcoords.reshape(-1),
        face=index[:, 0],
        facenormal=index[:, 2] if normal else _no_ints(),
        facetexcoord=index[:, 1] if texcoord else _no_ints(),
        kind="obj",
    )


def _triangulate(polygons: list[list[list[int]]], vertex: np.ndarray, filename: str) -> np.ndarray:
    """(3 nf, 3) corners [vertex, texcoord, normal] of triangles: fans of quads, ears of larger polygons."""
    corners: list[list[int]] = []
    for polygon in polygons:
        if len(polygon) <= 4:
            for k in range(1, len(polygon) - 1):
                corners += [polygon[0], polygon[k], polygon[k + 1]]
            continue
        if len(polygon) > MAX_CORNERS:
            raise UnsupportedError(f"polygon of more than {MAX_CORNERS} corners in OBJ file '{filename}'")
        ids = np.array([corner[0] for corner in polygon])
        if ids.max() >= len(vertex):
            raise ModelError(f"vertex index {ids.max()} does not exist in OBJ file '{filename}'")
        corners += [polygon[k] for k in _clip_ears(vertex[ids])]
    return np.array(corners, dtype=np.int64).reshape(-1, 3)


def _clip_ears(point: np.ndarray) -> list[int]:
    """Corners of triangles, as indices into the polygon's points (n, 3) float32.

    A corner is an ear where it turns the way of the whole polygon and no other of its points lies in the triangle.
    A polygon that runs out of ears stays incomplete, as in MuJoCo.
    """
    flat = point[:, _plane_axes(point)]
    x, y = flat.T
    area = _sum32((x * np.roll(y, -1) - y * np.roll(x, -1)) * np.float32(0.5))
    left = list(range(len(point)))
    out: list[int] = []
    guess, tries, before = 0, len(left), len(left)
    while len(left) > 3 and tries > 0:
        n = len(left)
        guess -= n if guess >= n else 0
        tries = n if n != before else tries - 1
        before = n
        ring = [left[(guess + k) % n] for k in range(n)]
        (x0, y0), (x1, y1), (x2, y2) = ear = flat[ring[:3]]
        turn = (x1 - x0) * (y2 - y1) - (y1 - y0) * (x2 - x1)
        if turn * area < 0 or _any_inside(ear, flat[ring[3:]]):
            guess += 1
            continue
        out += ring[:3]
        del left[(guess + 1) % n]
    return out + left if len(left) == 3 else out


def _sum32(values: np.ndarray) -> np.float32:
    return np.add.accumulate(values, dtype=np.float32)[-1]


def _plane_axes(point: np.ndarray) -> list[int]:
    """The two axes of the plane nearest to the polygon's first corner that is not straight."""
    edge = np.roll(point, -1, axis=0) - point
    x, y, z = np.abs(np.cross(edge, np.roll(edge, -1, axis=0))).T
    bent = np.flatnonzero(np.maximum(np.maximum(x, y), z) > np.finfo(np.float32).eps)
    if not bent.size:
        return [1, 2]
    x, y, z = (float(values[bent[0]]) for values in (x, y, z))
    if x > y and x > z:
        return [1, 2]
    return [0, 1] if z > x and z > y else [0, 2]


def _any_inside(triangle: np.ndarray, point: np.ndarray) -> bool:
    """Whether any of the points (n, 2) lies in the triangle (3, 2), by the number of edges to its right."""
    inside = np.zeros(len(point), dtype=bool)
    for k in range(3):
        (xi, yi), (xj, yj) = triangle[k], triangle[k - 1]
        if yi == yj:
            continue
        crosses = ((yi > point[:, 1]) != (yj > point[:, 1])) & (
            point[:, 0] < (xj - xi) * (point[:, 1] - yi) / (yj - yi) + xi
        )
        inside ^= crosses
    return bool(inside.any())


def _float32(rows: list[list[float]]) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array(rows, dtype=np.float64).astype(np.float32).reshape(-1)


def _check_range(index: np.ndarray, count: int, what: str, filename: str) -> None:
    if count and np.any(index >= count):
        raise ModelError(f"{what} index {int(index.max()) + 1} does not exist in OBJ file '{filename}'")


def _obj_corner(text: str, counts: tuple[int, int, int]) -> list[int]:
    """[vertex, texcoord, normal] from "1", "1/2", "1//3" or "1/2/3"; negative ones count back, -1 where absent."""
    parts = text.split("/")
    corner = [-1, -1, -1]
    for k, part in enumerate(parts):
        if not part and k:
            continue
        value = int(part)
        corner[k] = value - 1 if value > 0 else counts[k] + value
        if value == 0 or corner[k] < 0:
            raise ValueError(part)
    return corner
