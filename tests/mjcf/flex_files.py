"""Files for flexcomp: a cloud of points with tetrahedra inside and triangles around, in every format."""

import struct

import numpy as np
from scipy.spatial import ConvexHull, Delaunay

POINTS = np.random.default_rng(0).normal(size=(14, 3))
TETRAHEDRA = Delaunay(POINTS).simplices
CENTRE = POINTS.mean(axis=0)
SEGMENTS = np.stack([np.arange(13), np.arange(1, 14)], axis=1)


def _outwards(face):
    a, b, c = POINTS[face]
    return face if np.dot(np.cross(b - a, c - a), a - CENTRE) > 0 else face[[0, 2, 1]]


TRIANGLES = np.array([_outwards(face) for face in ConvexHull(POINTS).simplices])


def obj(points, faces, texture=False):
    """Wavefront OBJ, with more texture coordinates than points if any."""
    lines = ["v {!r} {!r} {!r}".format(*map(float, p)) for p in points]
    if texture:
        lines += [f"vt {i / len(points)!r} 0.5" for i in range(len(points) + 2)]
    for face in faces:
        corners = [f"{v + 1}/{(v + k) % len(points) + 1}" if texture else str(v + 1) for k, v in enumerate(face)]
        lines.append("f " + " ".join(corners))
    return "\n".join(lines).encode() + b"\n"


def stl(points, faces):
    """Binary STL."""
    corners = [struct.pack("<12fH", 0, 0, 0, *points[face].ravel(), 0) for face in faces]
    return b"\0" * 80 + struct.pack("<i", len(faces)) + b"".join(corners)


def gmsh22(points, elements, binary=False):
    """GMSH 2.2 as gmsh writes it."""
    kind, n = {3: 2, 4: 4}[elements.shape[1]], len(points)
    head = f"$MeshFormat\n2.2 {int(binary)} 8\n".encode() + (struct.pack("<i", 1) + b"\n" if binary else b"")
    if binary:
        nodes = b"".join(struct.pack("<i3d", i + 1, *p) for i, p in enumerate(points)) + b"\n"
        rows = b"".join(
            struct.pack(f"<{6 + len(e)}i", kind, 1, 2, i + 1, 0, 1, *(e + 1)) for i, e in enumerate(elements)
        )
    else:
        nodes = "".join("{} {!r} {!r} {!r}\n".format(i + 1, *map(float, p)) for i, p in enumerate(points)).encode()
        rows = "".join(f"{i + 1} {kind} 2 0 1 {_words(e + 1)}\n" for i, e in enumerate(elements)).encode()
    nodes = f"{n}\n".encode() + nodes
    return head + _sections(nodes, f"{len(elements)}\n".encode() + rows + b"\n")


def ftetwild(points, elements):
    """GMSH 2.2 binary as fTetWild writes it: one header for all elements."""
    head = b"$MeshFormat\n2.2 1 8\n" + struct.pack("<i", 1) + b"\n"
    nodes = f"{len(points)}\n".encode() + b"".join(struct.pack("<i3d", i + 1, *p) for i, p in enumerate(points))
    nodes += b"\n"
    rows = b"".join(struct.pack("<5i", i + 1, *(e + 1)) for i, e in enumerate(elements))
    return head + _sections(
        nodes, f"{len(elements)}\n".encode() + struct.pack("<3i", 4, len(elements), 0) + rows + b"\n\n"
    )


def gmsh41(points, elements, binary=False):
    """GMSH 4.1 with one block of nodes and one of elements."""
    dim, n, m = elements.shape[1] - 1, len(points), len(elements)
    kind = {1: 1, 2: 2, 3: 4}[dim]
    head = f"$MeshFormat\n4.1 {int(binary)} 8\n".encode() + (struct.pack("<i", 1) + b"\n" if binary else b"")
    if binary:
        nodes = struct.pack("<4Q3iQ", 1, n, 1, n, dim, 1, 0, n) + struct.pack(f"<{n}Q", *range(1, n + 1))
        nodes += np.asarray(points, "<f8").tobytes() + b"\n"
        rows = struct.pack("<4Q3iQ", 1, m, 1, m, dim, 1, kind, m)
        rows += b"".join(struct.pack(f"<{dim + 2}Q", i + 1, *(e + 1)) for i, e in enumerate(elements)) + b"\n"
    else:
        tags = "".join(f"{i + 1}\n" for i in range(n))
        places = "".join("{!r} {!r} {!r}\n".format(*map(float, p)) for p in points)
        nodes = f"1 {n} 1 {n}\n{dim} 1 0 {n}\n{tags}{places}".encode()
        lines = "".join(f"{i + 1} {_words(e + 1)}\n" for i, e in enumerate(elements))
        rows = f"1 {m} 1 {m}\n{dim} 1 {kind} {m}\n{lines}".encode()
    return head + _sections(nodes, rows)


def _words(numbers):
    return " ".join(map(str, numbers))


def _sections(nodes, elements):
    return b"$EndMeshFormat\n$Nodes\n" + nodes + b"$EndNodes\n$Elements\n" + elements + b"$EndElements\n"


GMSH = {
    "text22.msh": gmsh22(POINTS, TETRAHEDRA),
    "binary22.msh": gmsh22(POINTS, TETRAHEDRA, True),
    "surface22.msh": gmsh22(POINTS, TRIANGLES),
    "binarysurface22.msh": gmsh22(POINTS, TRIANGLES, True),
    "ftetwild.msh": ftetwild(POINTS, TETRAHEDRA),
    "text41.msh": gmsh41(POINTS, TETRAHEDRA),
    "binary41.msh": gmsh41(POINTS, TETRAHEDRA, True),
    "surface41.msh": gmsh41(POINTS, TRIANGLES),
    "binarysurface41.msh": gmsh41(POINTS, TRIANGLES, True),
    "line41.msh": gmsh41(POINTS, SEGMENTS),
    "binaryline41.msh": gmsh41(POINTS, SEGMENTS, True),
    "unused41.msh": gmsh41(np.vstack([POINTS, [[7, 7, 7]]]), TETRAHEDRA),
}
MESHES = {
    "hull.obj": obj(POINTS, TRIANGLES),
    "texture.obj": obj(POINTS, TRIANGLES, True),
    "twice.obj": obj(np.vstack([POINTS, POINTS]), np.vstack([TRIANGLES[::2], TRIANGLES[1::2] + 14])),
    "hull.stl": stl(POINTS.astype(np.float32), TRIANGLES),
}
