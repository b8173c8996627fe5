"""Points and elements of GMSH files, formats 2.2 and 4.1, text and binary, to the extent that MuJoCo reads them.

One block of nodes and one of elements, all of them segments, triangles or tetrahedra. Counts are checked against the
length of the file before they are used.
"""

from __future__ import annotations

import re
import struct

import numpy as np

from jaxsim.core.errors import ModelError

_TYPES_41 = {1: 1, 2: 2, 3: 4}
_CORNERS_22 = {2: 3, 4: 4}
_HEADER_41 = struct.Struct("<4Q3iQ")


def read_gmsh(data: bytes) -> tuple[np.ndarray, np.ndarray, int]:
    """Read points (n, 3), elements (m, dim + 1) counted from zero, and their dimension.

    Raises ModelError for a file that is not well formed.
    """
    if not data.startswith(b"$MeshFormat"):
        raise ModelError("a GMSH file begins with $MeshFormat")
    header = re.match(rb"\s*([-+.\deE]+)\s+([-+]?\d+)", data[11:200])
    if header is None:
        raise ModelError("the header of the GMSH file cannot be read")
    try:
        version = round(100 * float(header[1]))
    except (ValueError, OverflowError):
        version = 0
    if version not in (220, 410):
        raise ModelError("only the GMSH formats 2.2 and 4.1 are read")
    nodes, elements = _section(data, b"Nodes"), _section(data, b"Elements")
    text = int(header[2]) == 0
    if version == 410:
        return _text_41(nodes, elements) if text else _binary_41(nodes, elements)
    return _text_22(nodes, elements) if text else _binary_22(nodes, elements)


def _section(data: bytes, name: bytes) -> bytes:
    begin, end = data.find(b"$" + name), data.find(b"$End" + name)
    first = begin + len(name) + 2
    if begin < 0 or end < first:
        raise ModelError(f"the GMSH file has no complete section ${name.decode()}")
    return data[first:end]


class _Numbers:
    """The numbers of a section of text, taken from the front."""

    def __init__(self, text: bytes, what: str):
        self.words, self.at, self.what = text.split(), 0, what
        if text and not text[-1:].isspace():
            self.words = self.words[:-1]  # a number cut by the end of the section is ignored

    def take(self, n: int, kind: type) -> np.ndarray:
        """Return the next n numbers."""
        if n < 0 or self.at + n > len(self.words):
            raise ModelError(f"the GMSH file ends within its {self.what}")
        try:
            found = np.array([kind(word) for word in self.words[self.at : self.at + n]], kind)
        except (ValueError, OverflowError):
            raise ModelError(f"the GMSH file has a wrong number among its {self.what}") from None
        self.at += n
        return found

    def count(self) -> int:
        """Return the next number, a count."""
        return int(self.take(1, int)[0])


def _need(condition: bool, what: str) -> None:
    if not condition:
        raise ModelError(f"GMSH file: {what}")


def _check_block(blocks: int, total: int, inside: int, what: str) -> None:
    _need(blocks == 1 and total == inside, f"all {what} must be in a single block")


def _check_elements_41(dim: int, nodes_dim: int, kind: int) -> None:
    _need(dim == nodes_dim, f"elements of dimension {dim} over nodes of dimension {nodes_dim}")
    _need(_TYPES_41.get(dim) == kind, f"elements of type {kind} do not have dimension {dim}")


def _text_41(nodes: bytes, elements: bytes) -> tuple[np.ndarray, np.ndarray, int]:
    numbers = _Numbers(nodes, "nodes")
    blocks, total, low, high, dim, _, _, inside = numbers.take(8, int).tolist()
    _check_block(blocks, total, inside, "nodes")
    _need(high == inside, "the greatest tag of a node must be the number of nodes")
    _need(1 <= dim <= 3, "nodes must lie on a curve, a surface or a volume")
    _need(np.array_equal(numbers.take(total, int), low + np.arange(total)), "tags of nodes must be sequential")
    points = numbers.take(3 * total, float).reshape(-1, 3)
    numbers = _Numbers(elements, "elements")
    blocks, total, _, _, element_dim, _, kind, inside = numbers.take(8, int).tolist()
    _check_block(blocks, total, inside, "elements")
    _check_elements_41(element_dim, dim, kind)
    rows = numbers.take((dim + 2) * total, int).reshape(-1, dim + 2)
    return points, rows[:, 1:] - low, dim


def _header_41(section: bytes, what: str) -> tuple[int, int, int, int]:
    """Return count, lowest tag, dimension and type of a binary section."""
    _need(len(section) >= _HEADER_41.size, f"the header of the {what} is not complete")
    blocks, total, low, _, dim, _, kind, inside = _HEADER_41.unpack_from(section)
    _check_block(blocks, total, inside, what)
    return total, low, dim, kind


def _binary_41(nodes: bytes, elements: bytes) -> tuple[np.ndarray, np.ndarray, int]:
    total, low, dim, _ = _header_41(nodes, "nodes")
    start = _HEADER_41.size
    _need(1 <= dim <= 3, "nodes must lie on a curve, a surface or a volume")
    _need(len(nodes) >= start + 32 * total, "the nodes are not complete")
    tags = np.frombuffer(nodes, "<u8", total, start)
    _need(low < 2**31 and np.array_equal(tags, low + np.arange(total, dtype=np.uint64)), "tags must be sequential")
    points = np.frombuffer(nodes, "<f8", 3 * total, start + 8 * total).reshape(-1, 3)
    total, _, element_dim, kind = _header_41(elements, "elements")
    _check_elements_41(element_dim, dim, kind)
    _need(len(elements) >= start + 8 * (dim + 2) * total, "the elements are not complete")
    rows = np.frombuffer(elements, "<i8", (dim + 2) * total, start).reshape(-1, dim + 2)
    return points, rows[:, 1:] - low, dim


def _first_line(section: bytes, what: str) -> None:
    line = section.split(b"\n", 1)[0]
    _need(not line or line.isdigit(), f"the line of the number of {what} holds more than a number")


def _text_22(nodes: bytes, elements: bytes) -> tuple[np.ndarray, np.ndarray, int]:
    _first_line(nodes, "nodes")
    numbers = _Numbers(nodes, "nodes")
    total = numbers.count()
    points = numbers.take(4 * total, float).reshape(-1, 4)[:, 1:]
    _first_line(elements, "elements")
    numbers = _Numbers(elements, "elements")
    count, found, corners = numbers.count(), [], 0
    _need(count <= len(numbers.words), "there are fewer elements than the file says")
    for _ in range(count):
        _, kind, tags = numbers.take(3, int)
        corners = corners or _corners(int(kind))
        found.append(numbers.take((2 if tags > 0 else 0) + corners, int)[-corners:])
    return points, _from_one(np.array(found, int).reshape(-1, corners or 1), total), corners - 1


def _corners(kind: int) -> int:
    _need(kind in _CORNERS_22, f"elements of type {kind} are not read, only triangles (2) and tetrahedra (4)")
    return _CORNERS_22[kind]


def _from_one(elements: np.ndarray, limit: int) -> np.ndarray:
    wrong = elements[(elements < 1) | (elements > limit)]
    if len(wrong):
        raise ModelError(f"GMSH file: an element has node {wrong[0]}; there are nodes 1 to {limit}")
    return elements - 1


def _count_22(section: bytes, what: str) -> tuple[int, int]:
    """Return the count written as text before the numbers of a binary section, and the offset of the numbers."""
    _need(len(section) >= 4, f"the header of the {what} is not complete")
    text = section[:10].split(b"\0", 1)[0]
    digits = re.match(rb"\s*\+?(\d+)", text)
    _need(digits is not None, f"the number of {what} cannot be read")
    assert digits is not None
    return int(digits[1]), len(text) - 1


def _binary_22(nodes: bytes, elements: bytes) -> tuple[np.ndarray, np.ndarray, int]:
    total, start = _count_22(nodes, "nodes")
    record = np.dtype([("tag", "<i4"), ("x", "<f8", 3)])
    _need(len(nodes) >= max(start, 4) + record.itemsize * total, "the nodes are not complete")
    points = np.frombuffer(nodes, record, total, start)["x"]
    count, start = _count_22(elements, "elements")
    words = np.frombuffer(elements, "<i4", (len(elements) - start) // 4, start)
    _need(len(words) >= 4 and count > 0, "the elements are not complete")
    corners = _corners(int(words[0]))
    _need(len(elements) >= 17 + 20 * count, "the elements are not complete")
    if words[2] > 0:  # gmsh: every element has a header of its own and two tags
        first, width, skip = 0, 6 + corners, 6
        _need(len(elements) >= 4 + 4 * width * count, "the elements are not complete")
    else:  # fTetWild: one header, then a tag and four nodes for each element
        first, width, skip = 3, 5, 1
    need = first + width * (count - 1) + skip + corners
    _need(len(words) >= need, "the elements are not complete")
    at = first + width * np.arange(count)[:, None] + skip + np.arange(corners)
    found = words[at].astype(np.int64)
    # as in MuJoCo, nodes of all elements but the first are compared with the number of elements
    return points, np.concatenate([_from_one(found[:1], total), _from_one(found[1:], count)]), corners - 1
