"""Mesh files to arrays: binary STL, Wavefront OBJ, legacy MSH.

Counts in headers are checked against the size of the file before anything is allocated, so that a wrong header costs no
more memory than the file has.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

import numpy as np

from jaxsim.core.errors import ModelError, warn

STL_MAX_FACES = 200_000
MAX_CORNERS = 100
_MOST_DIGITS = 9  # most digits of an index
_ALIKE = {  # columns of vertex, texcoord and normal for corners of one form
    column: re.compile(rf"(?:\s*+{corner}(?![/\d]))*+\s*".replace("I", rf"\d{{1,{_MOST_DIGITS}}}"), re.ASCII)
    for column, corner in {(0,): "I", (0, 1): "I/I", (0, 2): "I//I", (0, 1, 2): "I/I/I"}.items()
}
_WORDS = {"v ": "v", "vn": "vn", "vt": "vt", "f ": "f"}  # kinds of lines by their first two characters
_STL_MAX_COORDINATE = 2.0**30
_STL_FACE = np.dtype([("normal", "<f4", 3), ("vertex", "<f4", (3, 3)), ("attribute", "<u2")])


def _no_floats() -> np.ndarray:
    return np.zeros(0, dtype=np.float32)


def _no_ints() -> np.ndarray:
    return np.zeros(0, dtype=np.int64)


@dataclass
class RawMesh:
    """Data of a mesh from a file or from the attributes of the element, in flat arrays.

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
    raise ModelError(f"mesh file '{filename}' has an unknown ending: STL, OBJ and MSH files are read")


def read_stl(data: bytes, filename: str = "") -> RawMesh:
    """Read binary STL; equal vertices become one, numbered in the order of their first appearance."""
    if not data:
        raise ModelError(f"STL file '{filename}' is empty")
    if len(data) < 84:
        raise ModelError(f"STL file '{filename}' is too short for its header")
    (nface,) = struct.unpack_from("<i", data, 80)
    hint = "perhaps this is an ASCII file? Only binary STL is read"
    if not 1 <= nface <= STL_MAX_FACES:
        raise ModelError(f"number of faces should be between 1 and {STL_MAX_FACES} in STL file '{filename}'; {hint}")
    if len(data) != 84 + 50 * nface:
        raise ModelError(f"STL file '{filename}' has wrong size; {hint}")
    corner = np.frombuffer(data, dtype=_STL_FACE, count=nface, offset=84)["vertex"].reshape(-1, 3).astype(np.float32)
    if np.any(np.abs(corner) > _STL_MAX_COORDINATE):
        raise ModelError(f"STL file '{filename}' has a vertex further than {_STL_MAX_COORDINATE:g} from the origin")
    vertex, face = deduplicate(corner, np.arange(len(corner)))
    return RawMesh(vertex=vertex.reshape(-1), face=face, kind="stl")


def deduplicate(vertex: np.ndarray, face: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keep one vertex of each set with equal bits, in the order of first appearance; faces are renumbered.

    Args:
        vertex: (n, 3) float32.
        face: integers into `vertex`.
    """
    bits = np.ascontiguousarray(vertex).view(np.uint32).astype(np.uint64)
    number = bits[:, 0]  # equal where the bits are
    for k in (1, 2):
        number = np.unique(number << np.uint64(32) | bits[:, k], return_inverse=True)[1].astype(np.uint64)
    first = np.zeros(len(bits), np.int64)
    first[number[::-1]] = np.arange(len(bits))[::-1]
    origin = first[number]
    new = origin == np.arange(len(bits))
    return vertex[new], (np.cumsum(new) - 1)[origin[face]]


def read_msh(data: bytes, filename: str = "", righthand: bool = True) -> RawMesh:
    """Read the legacy binary format: four counts, then vertices, normals, texture coordinates, faces."""
    if not data:
        raise ModelError(f"MSH file '{filename}' is empty")
    if len(data) < 16:
        raise ModelError(f"MSH file '{filename}' is too short for its header")
    nvert, nnormal, ntexcoord, nface = struct.unpack_from("<4i", data)
    if nvert < 4 or min(nface, nnormal, ntexcoord) < 0 or nnormal not in (0, nvert) or ntexcoord not in (0, nvert):
        raise ModelError(
            f"MSH file '{filename}' has a header with wrong numbers of vertices, normals or texture coordinates"
        )
    if len(data) != 16 + 12 * nvert + 12 * nnormal + 8 * ntexcoord + 12 * nface:
        raise ModelError(f"MSH file '{filename}' has another size than its header says")
    floats = np.frombuffer(data, "<f4", 3 * nvert + 3 * nnormal + 2 * ntexcoord, 16).astype(np.float32)
    vertex, normal, texcoord = np.split(floats, [3 * nvert, 3 * nvert + 3 * nnormal])
    face = np.frombuffer(data, "<i4", 3 * nface, len(data) - 12 * nface).astype(np.int64)
    turned = face if righthand else face.reshape(-1, 3)[:, [0, 2, 1]].reshape(-1)
    facetexcoord = face if ntexcoord else _no_ints()
    return RawMesh(vertex, normal, texcoord, turned, face, facetexcoord, kind="msh")


def read_obj(data: bytes, filename: str = "") -> RawMesh:
    """Read Wavefront OBJ: the first object or group that has faces; polygons are cut into triangles."""
    rows: dict[str, list[str]] = {"v": [], "vn": [], "vt": [], "f": []}
    relative: dict[int, tuple[int, ...]] = {}  # of polygons with relative indices: the counts before them
    lines = closed = False
    used = 0  # polygons of the current object
    for line in data.decode("latin-1").replace("\r", "\n").split("\n"):
        word = _WORDS.get(line[:2]) or next(iter(line.split(None, 1)), "")
        if word in rows:
            rows[word].append(line)
            if word == "f":
                used += not closed
                if "-" in line:
                    relative[len(rows["f"]) - 1] = tuple(len(rows[w]) for w in ("v", "vt", "vn"))
        elif word in ("l", "p"):
            lines = True
        elif word in ("g", "o"):
            closed = closed or any(len(p.split()) > 3 for p in rows["f"]) or (word == "o" and lines)
            lines = lines and word == "o"
    vertex, normal = _numbers(rows["v"], 3, filename), _numbers(rows["vn"], 3, filename)
    texcoord = _numbers([line if len(line.split()) > 2 else f"{line} 0" for line in rows["vt"]], 2, filename)
    texcoord[:, 1] = 1 - texcoord[:, 1]
    corner = _corners(rows["f"], relative, filename)
    count = np.array([len(line.split()) - 1 for line in rows["f"][:used]], np.int64)
    index = _triangulate(corner[: count.sum()], count, vertex, filename)
    _check_range(index[:, 2], len(normal), "normal", filename)
    _check_range(index[:, 1], len(texcoord), "texcoord", filename)
    return RawMesh(
        vertex=vertex.reshape(-1),
        normal=normal.reshape(-1),
        texcoord=texcoord.reshape(-1),
        face=index[:, 0],
        facenormal=index[:, 2] if len(normal) else _no_ints(),
        facetexcoord=index[:, 1] if len(texcoord) else _no_ints(),
        kind="obj",
    )


def _not_read(line: str, filename: str) -> ModelError:
    return ModelError(f"could not parse OBJ file '{filename}' at '{line.strip()[:60]}'")


def _numbers(lines: list[str], count: int, filename: str) -> np.ndarray:
    """Parse (n, count) float32 numbers after the first word of each line."""
    token, size = " ".join(lines).split(), count + 1
    if len(token) == size * len(lines) and len(set(token[::size])) <= 1:  # all lines have equally many
        del token[::size]
    else:
        token = [t for line in lines for t in line.split()[1:size]]
    try:
        found = np.array(list(map(float, token)), dtype=np.float64)
    except ValueError:
        found = np.zeros(0)
    if found.size != count * len(lines):
        raise _not_read(next(line for line in lines if not _has_numbers(line, count)), filename)
    with np.errstate(over="ignore"):
        return found.astype(np.float32).reshape(-1, count)


def _has_numbers(line: str, count: int) -> bool:
    try:
        return len(list(map(float, line.split()[1 : count + 1]))) == count
    except ValueError:
        return False


def _corners(lines: list[str], relative: dict[int, tuple[int, ...]], filename: str) -> np.ndarray:
    """Parse (n, 3) [vertex, texcoord, normal] of all corners of polygons, -1 where absent.

    Usually all corners have the same form, with positive numbers: these are parsed at once.
    """
    text = " ".join([line.lstrip()[1:] for line in lines])
    column = next((column for column, pattern in _ALIKE.items() if pattern.fullmatch(text)), None)
    if column is not None:
        given = np.fromstring(text.replace("/", " "), np.int64, sep=" ").reshape(-1, len(column)) - 1
        if not np.any(given < 0):
            found = np.full((len(given), 3), -1, np.int64)
            found[:, column] = given
            return found
    found = []
    for k, line in enumerate(lines):
        try:
            found += [_obj_corner(corner, relative.get(k, (0, 0, 0))) for corner in line.split()[1:]]
        except ValueError as error:
            raise _not_read(line, filename) from error
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def _triangulate(corner: np.ndarray, count: np.ndarray, vertex: np.ndarray, filename: str) -> np.ndarray:
    """Cut polygons with `count` of the corners (n, 3) each into triangles: corners (3 nf, 3), in the polygons' order.

    As in MuJoCo, polygons of more than `MAX_CORNERS` corners are left out, which leaves a hole; a warning is issued.
    """
    if np.any(count > MAX_CORNERS):
        lost = int(np.sum(count > MAX_CORNERS))
        warn(
            f"{lost} polygon{'s' * (lost > 1)} of more than {MAX_CORNERS} corners in OBJ file '{filename}' left out, "
            "as in MuJoCo: cut them into triangles when the file is written"
        )
    begin = np.cumsum(count) - count
    owner, found = [np.zeros(0, np.int64)], [np.zeros((0, 3), np.int64)]
    for n in np.unique(count[(count > 2) & (count <= MAX_CORNERS)]):
        which = np.flatnonzero(count == n)
        own = corner[begin[which, None] + np.arange(n)]
        if n > 3 and own[..., 0].max() >= len(vertex):
            raise ModelError(f"vertex index {own[..., 0].max()} does not exist in OBJ file '{filename}'")
        if n == 3:
            polygon, ears = np.arange(len(which)), np.arange(3)
        else:
            polygon, ears = _ears(vertex[own[..., 0]])
        owner.append(which[polygon])
        found.append(own[polygon[:, None], ears].reshape(-1, 3))
    order = np.argsort(np.concatenate(owner), kind="stable")
    return np.concatenate(found).reshape(-1, 3, 3)[order].reshape(-1, 3)


def _ears(point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangulate k polygons (k, n, 3) float32 of equal size; return polygon (t,) and corners (t, 3) of triangles.

    Most are convex: their triangles are a fan from the first corner, which is computed for all at once.
    """
    n = point.shape[1]
    flat = np.take_along_axis(point, _plane_axes(point)[:, None], axis=2)
    x, y = flat[..., 0], flat[..., 1]
    area = np.add.accumulate((x * np.roll(y, -1, 1) - y * np.roll(x, -1, 1)) * np.float32(0.5), 1, np.float32)[:, -1]
    is_fan = np.ones(len(point), dtype=bool)
    for k in range(1, n - 2):
        ear = flat[:, [0, k, k + 1]]
        is_fan &= (_turn(ear) * area >= 0) & ~_inside(ear, flat[:, k + 2 :]).any(1)
    fans, others = np.flatnonzero(is_fan), np.flatnonzero(~is_fan)
    clipped = [np.array(_clip_ears(flat[k], area[k]), np.int64).reshape(-1, 3) for k in others]
    owner = np.repeat(others, [len(c) for c in clipped])
    fan = np.array([(0, k, k + 1) for k in range(1, n - 1)])
    polygon = np.concatenate([np.repeat(fans, n - 2), owner])
    return polygon, np.concatenate([np.tile(fan, (len(fans), 1)), *clipped])


def _clip_ears(flat: np.ndarray, area: np.float32) -> list[int]:
    """Return corners of triangles, as indices into the points (n, 2) float32 of a polygon of this signed area.

    A corner is an ear if it turns in the direction of the whole polygon and no other point is in its triangle. A
    polygon that runs out of ears stays incomplete, as in MuJoCo.
    """
    left = list(range(len(flat)))
    out: list[int] = []
    guess, tries, before = 0, len(left), len(left)
    while len(left) > 3 and tries > 0:
        n = len(left)
        guess -= n if guess >= n else 0
        tries = n if n != before else tries - 1
        before = n
        ring = [left[(guess + k) % n] for k in range(n)]
        ear = flat[None, ring[:3]]
        if _turn(ear)[0] * area < 0 or _inside(ear, flat[None, ring[3:]]).any():
            guess += 1
            continue
        out += ring[:3]
        del left[(guess + 1) % n]
    return out + left if len(left) == 3 else out


def _turn(ear: np.ndarray) -> np.ndarray:
    """Compute twice the signed area of triangles (k, 3, 2)."""
    (x0, y0), (x1, y1), (x2, y2) = ear.transpose(1, 2, 0)
    return (x1 - x0) * (y2 - y1) - (y1 - y0) * (x2 - x1)


def _plane_axes(point: np.ndarray) -> np.ndarray:
    """Return axes (k, 2) of the plane nearest to the first corner that is not straight, of each polygon (k, n, 3)."""
    edge = np.roll(point, -1, axis=1) - point
    size = np.abs(np.cross(edge, np.roll(edge, -1, axis=1)))
    bent = size.max(2) > np.finfo(np.float32).eps
    x, y, z = size[np.arange(len(point)), bent.argmax(1)].T
    along_x = ~bent.any(1) | ((x > y) & (x > z))
    along_z = (z > x) & (z > y)
    axes = np.where(along_z[:, None], [[0, 1]], [[0, 2]])
    return np.where(along_x[:, None], [[1, 2]], axes)


def _inside(triangle: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return whether points (k, m, 2) are in their triangle (k, 3, 2), by counting edges to their right: (k, m)."""
    x, y = point[..., 0], point[..., 1]
    inside = np.zeros(x.shape, dtype=bool)
    for i in range(3):
        (xi, yi), (xj, yj) = triangle[:, i, :, None].transpose(1, 0, 2), triangle[:, i - 1, :, None].transpose(1, 0, 2)
        rise = np.where(yi == yj, np.float32(1), yj - yi)
        inside ^= ((yi > y) != (yj > y)) & (x < (xj - xi) * (y - yi) / rise + xi)
    return inside


def _check_range(index: np.ndarray, count: int, what: str, filename: str) -> None:
    if count and np.any(index >= count):
        raise ModelError(f"{what} index {int(index.max()) + 1} does not exist in OBJ file '{filename}'")


def _obj_corner(text: str, counts: tuple[int, ...]) -> list[int]:
    """Parse [vertex, texcoord, normal] from "1", "1/2", "1//3" or "1/2/3".

    Negative ones count back, -1 where absent.
    """
    parts = text.split("/")
    if len(parts) > 3:
        raise ValueError(text)
    corner = [-1, -1, -1]
    for k, part in enumerate(parts):
        if not part and k:
            continue
        value = int(part)
        corner[k] = value - 1 if value > 0 else counts[k] + value
        if value == 0 or corner[k] < 0 or len(part) > _MOST_DIGITS:
            raise ValueError(part)
    return corner
