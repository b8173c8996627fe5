"""Mesh assets: from a file, attributes or a builtin shape to mjModel's mesh fields.

The entry is `compile_mesh(MeshInput(...)) -> MeshArrays`: pure NumPy, independent of the Spec. Addresses in the result
are relative to this mesh: the caller adds the offsets of the concatenated arrays. `fit_geom` returns the size of a
primitive geom fitted to a mesh.

The steps are: read, check, convex hull of the vertices as given, normals, polygons of the hull, `refpos`, `refquat` and
scale, mass properties. Then the mesh is moved into the frame of its centre of mass and principal axes, which is stored
in `pos` and `quat`. Sums run in the order of the faces, and normals are accumulated in float32, as in MuJoCo: the signs
and the order of the principal axes of symmetric shapes depend on the last bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jaxsim.compiler import linalg
from jaxsim.compiler.asset import builtin, polygon
from jaxsim.compiler.asset.bvh import Bvh, cross, dot, face_bvh
from jaxsim.compiler.asset.hull import convex_hull
from jaxsim.compiler.asset.mesh_sdf import sdf_mesh
from jaxsim.compiler.asset.octree import Octree, build_octree
from jaxsim.core.errors import ModelError
from jaxsim.core.types import MINVAL
from jaxsim.mjcf import mesh_file, pose
from jaxsim.mjcf.mesh_file import RawMesh

INERTIA_MODES = ("convex", "legacy", "exact", "shell")
_SMOOTH_COSINE = 0.8


@dataclass
class MeshInput:
    """Attributes of a mesh element, and the bytes of its file.

    Attributes:
        name: for messages.
        file, filename, content_type: bytes of the file (None: no file), its name, its type if given.
        vertex, normal, texcoord: flat floats of the attributes; face: flat ints; empty if not given.
        builtin, params: name of a builtin shape ("" or "none": no shape) and its parameters.
        refpos, refquat, scale: frame and scale of the imported mesh.
        inertia: "convex", "legacy", "exact" or "shell".
        maxhullvert: most vertices of the convex hull, -1 for no bound.
        needhull: a geom collides with the mesh or its inertia is convex (a mesh without faces gets its hull anyway).
        needsdf: a geom of type sdf uses it: compute the octree, of at most `octree_maxdepth` levels.
        field: name and attributes of a plugin: the mesh is the zero surface of its field, in the plugin's frame.
    """

    name: str = ""
    file: bytes | None = None
    filename: str = ""
    content_type: str = ""
    vertex: np.ndarray | Sequence = ()
    normal: np.ndarray | Sequence = ()
    texcoord: np.ndarray | Sequence = ()
    face: np.ndarray | Sequence = ()
    builtin: str = ""
    params: np.ndarray | Sequence = ()
    refpos: np.ndarray | Sequence = (0.0, 0.0, 0.0)
    refquat: np.ndarray | Sequence = (1.0, 0.0, 0.0, 0.0)
    scale: np.ndarray | Sequence = (1.0, 1.0, 1.0)
    inertia: str = "legacy"
    smoothnormal: bool = False
    maxhullvert: int = -1
    needhull: bool = True
    needsdf: bool = False
    octree_maxdepth: int = 6
    field: tuple[str, tuple[float, ...]] | None = None


@dataclass
class MeshArrays:
    """mjModel's fields of one mesh; addresses relative to the mesh.

    Attributes:
        vert (nv, 3), normal (nn, 3), texcoord (nt, 2): float32. has_texcoord: else `mesh_texcoordadr` is -1.
        face, facenormal, facetexcoord: (nf, 3) int32.
        graph: (ngraph,) int32, empty where there is no hull (`mesh_graphadr` -1).
        scale (3,), pos (3,), quat (4,): float64.
        polynormal (np, 3); polyvertadr, polyvertnum (np,); polyvert: the polygons of the hull.
        polymapadr, polymapnum (nv,); polymap: for every vertex the polygons that it belongs to.
        bvh: hierarchy of the faces. octree: with needsdf only.
        volume: volume, or surface area for a shell. boxsz: (3,) half sizes of the box of equal inertia.
        aamm: (6,) least and greatest corner of the moved mesh.
    """

    vert: np.ndarray
    normal: np.ndarray
    texcoord: np.ndarray
    face: np.ndarray
    facenormal: np.ndarray
    facetexcoord: np.ndarray
    graph: np.ndarray
    scale: np.ndarray
    pos: np.ndarray
    quat: np.ndarray
    polynormal: np.ndarray
    polyvert: np.ndarray
    polyvertadr: np.ndarray
    polyvertnum: np.ndarray
    polymap: np.ndarray
    polymapadr: np.ndarray
    polymapnum: np.ndarray
    bvh: Bvh
    octree: Octree
    volume: float
    boxsz: np.ndarray
    aamm: np.ndarray
    has_texcoord: bool = field(default=False)


def compile_mesh(mesh: MeshInput) -> MeshArrays:
    """Compile the fields of a mesh.

    Raises:
        ModelError: for data that is not well formed, a hull that does not exist, a volume or surface that is too small
            or negative, or inconsistently oriented faces if the inertia mode needs their orientation.
    """
    if mesh.inertia not in INERTIA_MODES:
        raise ModelError(f"unknown mesh inertia '{mesh.inertia}'; known are {', '.join(INERTIA_MODES)}")
    scale = _vector(mesh.scale, 3, "scale")
    righthand = bool(scale[0] * scale[1] * scale[2] > 0)
    raw, inertia = _gather(mesh, righthand)
    field = mesh.field is not None and mesh.file is None
    _check(raw, mesh.name)
    vert = raw.vertex.astype(np.float64).reshape(-1, 3)
    face = raw.face.reshape(-1, 3)
    if inertia == "exact":
        _check_orientation(vert, face, mesh.name)

    hull = None
    if mesh.needhull or inertia == "convex" or not len(face):
        hull = convex_hull(vert, mesh.maxhullvert, mesh.name)
    if not len(face):
        assert hull is not None
        face = hull.face.astype(np.int64)
    normal, facenormal = _normals(raw, vert, face, mesh.smoothnormal)
    facetexcoord = raw.facetexcoord.reshape(-1, 3)
    if raw.texcoord.size and not len(facetexcoord):
        facetexcoord = face
    polygons = polygon.make_polygons(vert, hull.face.astype(np.int64)) if hull else []
    if not righthand:
        face, facenormal, facetexcoord = (x[:, [0, 2, 1]] for x in (face, facenormal, facetexcoord))

    vert, normal = _transform(vert, normal, mesh, scale)
    solid = hull.face.astype(np.int64) if hull is not None and inertia == "convex" else face
    com, quat, boxsz, volume = _mass_properties(vert, face, solid, inertia, mesh.name)
    if field:
        com, quat = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    vert, normal = _rotate_back(vert - com, normal, quat)
    aamm = np.concatenate([np.minimum(vert.min(axis=0), 1e10), np.maximum(vert.max(axis=0), -1e10)])
    bvh = face_bvh(vert, face)
    needsdf = mesh.needsdf and not field
    octree = build_octree(vert, face, aamm, bvh, mesh.octree_maxdepth) if needsdf else Octree.empty()
    return MeshArrays(
        vert=vert.astype(np.float32),
        normal=normal,
        texcoord=raw.texcoord.reshape(-1, 2),
        face=face.astype(np.int32),
        facenormal=facenormal.astype(np.int32),
        facetexcoord=facetexcoord.astype(np.int32) if raw.texcoord.size else np.zeros(face.shape, np.int32),
        graph=hull.graph if hull else np.zeros(0, np.int32),
        scale=scale,
        pos=com,
        quat=quat,
        bvh=bvh,
        octree=octree,
        volume=volume,
        boxsz=boxsz,
        aamm=aamm,
        has_texcoord=bool(raw.texcoord.size),
        **_polygon_arrays(polygons, vert),
    )


def _vector(value, n: int, what: str) -> np.ndarray:
    out = np.asarray(value, dtype=np.float64).reshape(-1)
    if out.size != n or not np.all(np.isfinite(out)):
        raise ModelError(f"mesh {what} must be {n} finite numbers")
    return out


# reading


def _gather(mesh: MeshInput, righthand: bool) -> tuple[RawMesh, str]:
    """Read the mesh from its builtin shape, field or file, completed by the attributes.

    Return it and the inertia mode.
    """
    given = RawMesh(
        vertex=flat32(mesh.vertex),
        normal=flat32(mesh.normal),
        texcoord=flat32(mesh.texcoord),
        face=np.asarray(mesh.face, dtype=np.int64).reshape(-1),
    )
    if mesh.builtin and mesh.builtin != "none":
        if mesh.file is not None:
            raise ModelError("builtin cannot be used with a mesh file")
        if given.vertex.size:
            raise ModelError("builtin mesh cannot be used with user vertex data")
        shape, imposed = builtin.builtin_mesh(mesh.builtin, mesh.params)
        for what in ("vertex", "normal", "face"):
            if getattr(shape, what).size:
                setattr(given, what, getattr(shape, what))
        return given, imposed or mesh.inertia
    if mesh.file is None and mesh.field is not None:
        return _surface(mesh, given), mesh.inertia
    if mesh.file is None:
        return given, mesh.inertia
    raw = mesh_file.read_mesh(mesh.file, mesh.filename, mesh.content_type, righthand)
    for what in ("normal", "texcoord", "face", "vertex"):
        if getattr(raw, what).size and getattr(given, what).size:
            raise ModelError(f"repeated {what} specification: both in the element and in '{mesh.filename}'")
        if not getattr(raw, what).size:
            setattr(raw, what, getattr(given, what))
    if raw.facenormal.size and given.normal.size:
        raise ModelError(f"repeated facenormal specification: both in the element and in '{mesh.filename}'")
    return raw, mesh.inertia


def _surface(mesh: MeshInput, given: RawMesh) -> RawMesh:
    if np.any(np.asarray(mesh.scale) != 1):
        raise ModelError(f"mesh '{mesh.name}': 'scale' cannot be used with a signed distance field")
    assert mesh.field is not None
    raw = sdf_mesh(*mesh.field)
    raw.texcoord = given.texcoord
    return raw


def flat32(values) -> np.ndarray:
    """Return values as a flat array of float32, infinite where they are too large."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float64).astype(np.float32).reshape(-1)


def _check(raw: RawMesh, name: str) -> None:
    """Raise ModelError if counts or indices are inconsistent or data is not finite."""
    for what, values, multiple in (
        ("vertex", raw.vertex, 3),
        ("normal", raw.normal, 3),
        ("texcoord", raw.texcoord, 2),
        ("face", raw.face, 3),
    ):
        if values.size % multiple:
            raise ModelError(f"mesh '{name}': {what} data must be a multiple of {multiple}")
    for what, values, width in (("vertex", raw.vertex, 3), ("normal", raw.normal, 3), ("texcoord", raw.texcoord, 2)):
        rows = values.reshape(-1, width)
        bad = np.flatnonzero(~np.isfinite(rows).all(1))
        if bad.size:
            numbers = ", ".join(f"{x:g}" for x in rows[bad[0]])
            raise ModelError(f"mesh '{name}': {what} {bad[0]} is not finite: ({numbers})")
    if raw.vertex.size < 12:
        raise ModelError(f"mesh '{name}': at least 4 vertices required")
    nvert = raw.vertex.size // 3
    bad = np.flatnonzero((raw.face < 0) | (raw.face >= nvert))
    if bad.size:
        raise ModelError(f"mesh '{name}': in face {bad[0] // 3}, vertex index {raw.face[bad[0]]} does not exist")
    if raw.texcoord.size not in (0, 2 * nvert) and not raw.facetexcoord.size and raw.kind != "obj":
        raise ModelError(
            f"mesh '{name}': 'texcoord' needs two numbers for each of the {nvert} vertices; it has {raw.texcoord.size}"
        )
    if raw.facenormal.size and raw.facenormal.size != raw.face.size:
        raise ModelError(
            f"mesh '{name}': its faces have {raw.face.size} corners and {raw.facenormal.size} indices of normals"
        )


def _check_orientation(vert: np.ndarray, face: np.ndarray, name: str) -> None:
    """Raise ModelError if two faces have a common edge in the same direction."""
    area = _triangles(vert, face)[0]
    solid = face[area > np.sqrt(MINVAL)]
    edge = solid[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    unique, count = np.unique(edge, axis=0, return_counts=True)
    if np.any(count > 1):
        a, b = unique[np.flatnonzero(count > 1)[0]] + 1
        raise ModelError(
            f"faces of mesh '{name}' have inconsistent orientation. "
            f"Please check the faces containing the vertices {a} and {b}."
        )


# normals


def _normals(raw: RawMesh, vert: np.ndarray, face: np.ndarray, smooth: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return normals (nn, 3) float32 and their indices in the faces: given ones, or one computed for every vertex."""
    if raw.normal.size:
        if raw.facenormal.size:
            return raw.normal.reshape(-1, 3), raw.facenormal.reshape(-1, 3)
        return raw.normal.reshape(-1, 3), (raw.normal.size // raw.vertex.size) * face
    return _vertex_normals(vert, face, smooth), face


def _vertex_normals(vert: np.ndarray, face: np.ndarray, smooth: bool) -> np.ndarray:
    """Compute normals of the vertices: the faces' normals weighted by area.

    Unless smooth, faces at a large angle are left out.
    """
    a, b, c = (vert[face[:, k]] for k in range(3))
    unit, area = _unit(cross(b - a, c - a))
    weighted = np.repeat(unit * area[:, None], 3, axis=0)
    index = face.reshape(-1)
    normal = _accumulate(index, weighted, len(vert))
    if not smooth:
        along = dot(np.repeat(unit, 3, axis=0), _unit(normal.astype(np.float64))[0][index])
        far = along < _SMOOTH_COSINE
        normal = normal - _accumulate(index[far], weighted[far], len(vert))
    length = np.sqrt(dot(normal, normal))
    return _divide_or_z(normal, length, length > MINVAL)


def _unit(vec: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Normalise rows and return their lengths; rows that are too short do not change and have length 0."""
    square = dot(vec, vec)
    norm = np.where(square < pose.EPS, 0.0, np.sqrt(square))
    scale = np.where((norm == 0) | (np.abs(norm - 1) <= pose.EPS), 1.0, norm)
    return vec / scale[:, None], norm


def _accumulate(index: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """Sum rows by index in order (n, 3), rounded to float32 after every addition."""
    out = np.zeros((n, 3), dtype=np.float32)
    order = np.argsort(index, kind="stable")
    grouped = index[order]
    rank = np.arange(len(grouped)) - np.searchsorted(grouped, grouped)
    by_rank = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank)) if len(rank) else []
    for part in np.split(order[by_rank], ends[:-1]) if len(rank) else []:
        out[index[part]] = (out[index[part]].astype(np.float64) + values[part]).astype(np.float32)
    return out


def _divide_or_z(normal: np.ndarray, length: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Divide rows by their lengths; the z axis for rows that are not good."""
    safe = np.where(good, length, np.float32(1)).astype(np.float32)
    return np.where(good[:, None], normal / safe[:, None], np.array([0, 0, 1], np.float32)).astype(np.float32)


# refpos, refquat, scale, mass properties


def _mul(vec: np.ndarray, mat: list[float], transposed: bool = False) -> np.ndarray:
    """Multiply rows by a 3x3 matrix given as 9 numbers, summed left to right."""
    x, y, z = vec.astype(np.float64).T
    m = [mat[k] for k in (0, 3, 6, 1, 4, 7, 2, 5, 8)] if transposed else mat
    return np.stack([m[3 * i] * x + m[3 * i + 1] * y + m[3 * i + 2] * z for i in range(3)], axis=1)


def _transform(vert, normal, mesh: MeshInput, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Transform vertices and unit normals by `refpos`, `refquat` and scale."""
    vert = vert - _vector(mesh.refpos, 3, "refpos")
    refquat = _vector(mesh.refquat, 4, "refquat").tolist()
    if refquat != [1.0, 0.0, 0.0, 0.0]:
        mat = pose.quat2mat(pose.unit(refquat))
        vert = _mul(vert, mat, transposed=True)
        normal = _mul(normal, mat, transposed=True).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        vert = vert * scale
        normal = (normal.astype(np.float64) * scale).astype(np.float32)
        square = dot(normal, normal)
        inverse = np.float32(1) / np.sqrt(np.where(square > MINVAL, square, np.float32(1)))
    if not np.all(np.isfinite(vert)):
        raise ModelError(f"mesh '{mesh.name}': vertices are not finite after scaling")
    z = np.array([0, 0, 1], np.float32)
    return vert, np.where((square > MINVAL)[:, None], normal * inverse[:, None], z).astype(np.float32)


def _triangles(vert: np.ndarray, face: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute areas (nf,), normals (nf, 3) and centres (nf, 3).

    Tiny triangles have area 0 and a normal that is not a unit vector.
    """
    a, b, c = (vert[face[:, k]] for k in range(3))
    normal = cross(b - a, c - a)
    length = np.sqrt(dot(normal, normal))
    good = length >= MINVAL
    normal = normal / np.where(good, length, 1.0)[:, None]
    return np.where(good, 0.5 * length, 0.0), normal, (a + b + c) / 3


def _sum(values: np.ndarray) -> np.ndarray:
    """Sum over the first axis, term by term."""
    return np.add.accumulate(values, axis=0)[-1] if len(values) else np.zeros(values.shape[1:])


def _mass_properties(vert, face, solid, inertia: str, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Compute the centre of mass, principal frame, half sizes of the box of equal inertia, and volume.

    The volume is the surface area for a shell.

    Args:
        face: faces of the mesh, whose centroid is the apex of the pyramids that are summed.
        solid: faces that bound the solid: those of the hull for "convex", else the same.
    """
    area, normal, center = _triangles(vert, face)
    total_area = _sum(area)
    if not total_area >= MINVAL:
        raise ModelError(f"mesh '{name}' has a surface without area; check its faces and its scale")
    facecen = _sum(area[:, None] * center) / total_area
    if solid is not face:
        area, normal, center = _triangles(vert, solid)
    part = area if inertia == "shell" else dot(center - facecen, normal) * area / 3
    if inertia == "legacy":
        part = np.abs(part)
    total = float(_sum(part))
    if not total >= MINVAL:
        raise ModelError(_small_volume(total, inertia, name))
    com = _sum(part[:, None] * (center * 3.0 / 4.0 + facecen / 4.0)) / total
    inert, total = _inertia(vert - com, solid, inertia)
    eigval, quat = linalg.eig3(inert)
    _check_eigenvalues(eigval, name)
    e0, e1, e2 = eigval
    with np.errstate(invalid="ignore"):
        boxsz = 0.5 * np.sqrt(6 * np.array([e1 + e2 - e0, e0 + e2 - e1, e0 + e1 - e2]) / total)
    return com, quat, boxsz, total


def _small_volume(total: float, inertia: str, name: str) -> str:
    if inertia == "shell":
        return f"mesh '{name}' has a surface without area; check its faces and its scale"
    if total < 0:
        return f"mesh volume is negative (misoriented triangles): {name}"
    return f"mesh volume is too small: {name} . Try setting inertia to shell"


def _inertia(vert: np.ndarray, face: np.ndarray, inertia: str) -> tuple[np.ndarray, float]:
    """Compute the inertia matrix (3, 3) of unit density about the origin, and the volume (area for a shell)."""
    area, normal, center = _triangles(vert, face)
    part = area if inertia == "shell" else dot(center, normal) * area / 3
    if inertia == "legacy":
        part = np.abs(part)
    d, e, f = (vert[face[:, k]] for k in range(3))
    weight = part / (12 if inertia == "shell" else 20)
    products = []
    for j, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
        moment = 2 * (d[:, j] * d[:, k] + e[:, j] * e[:, k] + f[:, j] * f[:, k])
        for p, q in ((d, e), (d, f), (e, f)):
            moment = moment + p[:, j] * q[:, k]
            moment = moment + p[:, k] * q[:, j]
        products.append(float(_sum(weight * moment)))
    xx, yy, zz, xy, xz, yz = products
    return np.array([[yy + zz, -xy, -xz], [-xy, xx + zz, -yz], [-xz, -yz, xx + yy]]), float(_sum(part))


INERTIA_REMEDY = "it is flat or open, or faces point inwards: mend it, or write inertia='convex' or 'shell' in the mesh"


def _check_eigenvalues(eigval: np.ndarray, name: str) -> None:
    if not eigval[2] > 0:
        raise ModelError(f"mesh '{name}' has an inertia that is not positive; {INERTIA_REMEDY}")
    for k in range(3):
        if eigval[k - 1] + eigval[k - 2] < eigval[k] * (1 - 1e-6) - 1e-9:
            raise ModelError(f"mesh '{name}' has an inertia that no solid has; {INERTIA_REMEDY}")


def _rotate_back(vert: np.ndarray, normal: np.ndarray, quat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Transform vertices and normals to the frame `quat`."""
    mat = pose.quat2mat(pose.conjugate(quat))
    return _mul(vert, mat), _mul(normal, mat).astype(np.float32)


# polygons


def _polygon_arrays(polygons: list[list[int]], vert: np.ndarray) -> dict[str, np.ndarray]:
    """Return the polygon fields: vertices of the polygons, and polygons of the vertices."""
    num = np.array([len(p) for p in polygons], dtype=np.int32)
    flat = np.array([v for p in polygons for v in p], dtype=np.int32)
    owner = np.repeat(np.arange(len(polygons), dtype=np.int32), num)
    mapnum = np.bincount(flat, minlength=len(vert)).astype(np.int32)
    return {
        "polynormal": polygon.polygon_normals(vert, polygons),
        "polyvert": flat,
        "polyvertadr": (np.cumsum(num) - num).astype(np.int32),
        "polyvertnum": num,
        "polymap": owner[np.argsort(flat, kind="stable")],
        "polymapadr": (np.cumsum(mapnum) - mapnum).astype(np.int32),
        "polymapnum": mapnum,
    }


# geoms fitted to a mesh


def fit_geom(mesh: MeshArrays, geomtype: str, size, fitscale: float = 1.0, fitaabb: bool = False):
    """Fit the size of a primitive geom to a mesh; return it and the geom's centre in the mesh's frame.

    Args:
        geomtype: "sphere", "capsule", "cylinder", "ellipsoid" or "box".
        size: (3,) the size that the geom has; unused entries of its type only get the scale.
        fitscale: factor on the result.
        fitaabb: fit to the axis-aligned box instead of the box of equal inertia.

    Returns:
        size (3,), center (3,).
    """
    out = np.array(size, dtype=np.float64).reshape(3)
    low, high = mesh.aamm[:3], mesh.aamm[3:]
    center = (low + high) / 2 if fitaabb else np.zeros(3)
    half = high - center if fitaabb else mesh.boxsz
    if geomtype in ("ellipsoid", "box"):
        out[:] = half
    elif geomtype == "sphere":
        out[0] = half.max() if fitaabb else (half[0] + half[1] + half[2]) / 3
    elif geomtype in ("capsule", "cylinder"):
        out[0] = max(half[0], half[1]) if fitaabb else (half[0] + half[1]) / 2
        out[1] = half[2]
        if geomtype == "capsule":
            out[1] = half[2] - out[0] if fitaabb else max(0.0, half[2] - out[0] / 2)
    else:
        raise ModelError(f"invalid geom type '{geomtype}' in fitting a mesh")
    return out * fitscale, center
