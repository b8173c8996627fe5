"""Builtin meshes: the shapes of the mesh attribute `builtin`, generated from parameters."""

from __future__ import annotations

from inspect import signature

import numpy as np

from jaxsim.core.errors import ModelError
from jaxsim.mjcf.mesh_file import RawMesh

MAX_VERTICES = 4_000_000


def builtin_mesh(kind: str, params) -> tuple[RawMesh, str | None]:
    """Return vertices, faces and normals of a builtin shape.

    Args:
        kind: "sphere", "hemisphere", "cone", "supersphere", "supertorus", "wedge" or "plate".
        params: its parameters.

    Returns:
        mesh: vertices, faces and normals.
        inertia: the inertia mode that the shape requires, or None.

    Raises:
        ModelError: for a wrong number of parameters or one outside its range.
    """
    make = _SHAPES.get(kind)
    if make is None:
        raise ModelError(f"unknown builtin mesh '{kind}'; known are {', '.join(_SHAPES)}")
    params = [float(p) for p in params]
    wanted = len(signature(make).parameters)
    if len(params) != wanted:
        raise ModelError(f"builtin mesh '{kind}' requires {wanted} parameter(s), {len(params)} given")
    if not all(np.isfinite(params)) or any(abs(p) > 1e8 for p in params):
        raise ModelError(f"builtin mesh '{kind}' has a parameter that is not finite or too large")
    vertex, face, normal = make(*params)
    raw = RawMesh(
        vertex=vertex.astype(np.float32).reshape(-1),
        face=np.asarray(face, dtype=np.int64).reshape(-1),
        normal=np.asarray(normal, dtype=np.float64).astype(np.float32).reshape(-1),
    )
    return raw, "shell" if kind == "plate" else None


def _require(good: bool, message: str) -> None:
    if not good:
        raise ModelError(message)


def _check_count(nvert: int) -> None:
    _require(nvert <= MAX_VERTICES, f"builtin mesh of {nvert} vertices is too large")


def _icosahedron() -> tuple[np.ndarray, np.ndarray]:
    phi = np.float32((1 + np.sqrt(5.0)) / 2)
    long = float(phi)
    corners = [(-1, long, 0), (1, long, 0), (-1, -long, 0), (1, -long, 0)]
    vertex = np.array([np.roll(c, k) for k in (0, 1, 2) for c in corners], dtype=np.float32)
    norm = np.sqrt(1 + np.float64(np.float32(phi * phi)))
    vertex = (vertex / norm).astype(np.float32)
    text = "0 11 5 0 5 1 0 1 7 0 7 10 0 10 11 1 5 9 5 11 4 11 10 2 10 7 6 7 1 8 "
    text += "3 9 4 3 4 2 3 2 6 3 6 8 3 8 9 4 9 5 2 4 11 6 2 10 8 6 7 9 8 1"
    return vertex, np.array(text.split(), dtype=np.int64).reshape(-1, 3)


def _sphere(subdivisions: float):
    """Return an icosahedron whose triangles are cut into four, `subdivisions` times, in float32."""
    n = int(subdivisions)
    _require(0 <= n <= 4, "sphere subdivision must be between 0 and 4")
    vertex, face = _icosahedron()
    for _ in range(n):
        edge = face[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
        low_high = np.sort(edge, axis=1)
        _, first, inverse = np.unique(low_high, axis=0, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        made = low_high[np.sort(first)]
        middle = (vertex[made[:, 0]] + vertex[made[:, 1]]) / np.float32(2)
        x, y, z = middle.T
        middle = middle / np.sqrt(x * x + y * y + z * z)[:, None]
        m12, m23, m31 = (rank[inverse.reshape(-1)] + len(vertex)).reshape(-1, 3).T
        v1, v2, v3 = face.T
        face = np.stack([v1, m12, m31, v2, m23, m12, v3, m31, m23, m12, m23, m31], axis=1).reshape(-1, 3)
        vertex = np.concatenate([vertex, middle])
    return vertex, face, []


def _hemisphere(resolution: float):
    """Return the upper half sphere: rows that grow by one vertex on each of four sides, closed by a flat cap."""
    res = int(resolution)
    _require(0 <= res <= 10, "hemisphere resolution must be between 0 and 10")
    pole, equator = np.array([0.0, 0, 1]), np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]])
    vertex, face = [pole], []
    for row in range(res + 1):
        factor = (row + 1) / (res + 1)
        for side in range(4):
            start = pole + factor * (equator[side] - pole)
            end = pole + factor * (equator[(side + 1) % 4] - pole)
            for i in range(row + 1):
                p = start + i * ((end - start) / (row + 1))
                vertex.append(p / np.sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]))
    face += [(0, 1 + k, 1 + (k + 1) % 4) for k in range(4)]
    for row in range(res):
        here, count = 2 * row * (row + 1) + 1, 4 * (row + 1)
        below, nbelow = here + count, 4 * (row + 2)
        for side in range(4):
            for i in range(row + 2):
                a, b = i + (row + 1) * side, i + (row + 2) * side
                face.append((here + a % count, below + b % nbelow, below + (b + 1) % nbelow))
                if i < row + 1:
                    face.append((here + a % count, below + (b + 1) % nbelow, here + (a + 1) % count))
    rim, count, center = 2 * res * (res + 1) + 1, 4 * (res + 1), len(vertex)
    face += [(rim + i, center, rim + (i + 1) % count) for i in range(count)]
    return np.array([*vertex, [0.0, 0, 0]]), face, []


def _cone(nedge: float, radius: float):
    """Return the vertices of a cone: a regular polygon below, and above it a scaled one, or a point without `radius`.

    A `radius` that is not positive means none. The faces are those of the convex hull.
    """
    n = int(nedge)
    _require(n >= 0, "cone must have a number of edges that is not negative")
    _check_count(2 * n)
    i = np.arange(n)
    x, y = np.cos(2 * i * np.pi / max(n, 1)), np.sin(2 * i * np.pi / max(n, 1))
    bottom = np.stack([x, y, np.full(n, -1.0)], axis=1)
    if radius <= 0:
        return np.concatenate([bottom, [[0.0, 0, 1]]]), [], []
    i = np.arange(n, 2 * n)
    x, y = radius * np.cos(2 * i * np.pi / max(n, 1)), radius * np.sin(2 * i * np.pi / max(n, 1))
    return np.concatenate([bottom, np.stack([x, y, np.ones(n)], axis=1)]), [], []


def _signed_power(x: np.ndarray, exponent: float) -> np.ndarray:
    return np.copysign(np.abs(x) ** exponent, x)


def _supersphere(resolution: float, e: float, n: float):
    """Return a superellipsoid with two exponents: rings of vertices between two poles."""
    res = int(resolution)
    _require(res >= 3, "supersphere resolution must be greater than 2")
    _require(e >= 0 and n >= 0, "supersphere exponents cannot be negative")
    _check_count(res * res)
    v = (-np.pi / 2 + np.arange(1, res) * np.pi / res)[:, None]
    u = (-np.pi + np.arange(res) * 2 * np.pi / res)[None, :]
    x = _signed_power(np.cos(v), n) * _signed_power(np.cos(u), e)
    y = _signed_power(np.cos(v), n) * _signed_power(np.sin(u), e)
    z = np.broadcast_to(_signed_power(np.sin(v), n), x.shape)
    rings = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    vertex = np.concatenate([[[0.0, 0, -1]], rings, [[0.0, 0, 1]]])
    j = np.arange(res)
    right = (j + 1) % res
    south = np.stack([np.zeros(res, int), 1 + right, 1 + j], axis=1)
    base = 1 + res * np.arange(res - 2)[:, None]
    v1, v2, v4, v3 = base + j, base + right, base + res + j, base + res + right
    middle = np.stack([v1, v2, v4, v2, v3, v4], axis=-1).reshape(-1, 3)
    last = 1 + (res - 2) * res
    north = np.stack([last + j, last + right, np.full(res, len(vertex) - 1)], axis=1)
    return vertex, np.concatenate([south, middle, north]), []


def _supertorus(resolution: float, radius: float, s: float, t: float):
    """Return a supertoroid around the z axis."""
    res = int(resolution)
    _require(res >= 3, "supertorus resolution must be greater than 2")
    _require(0 < radius <= 1, "supertorus radius must be in (0, 1]")
    _require(s > 0 and t > 0, "supertorus exponents must be greater than 0")
    _check_count(res * res)
    u = (2 * np.pi * np.arange(res) / res)[:, None]
    v = (2 * np.pi * np.arange(res) / res)[None, :]
    ring = 1 + radius * _signed_power(np.cos(v), s)
    x, y = ring * _signed_power(np.cos(u), t), ring * _signed_power(np.sin(u), t)
    z = np.broadcast_to(radius * _signed_power(np.sin(v), s), x.shape)
    i, j = np.meshgrid(np.arange(res), np.arange(res), indexing="ij")
    inext, jnext = (i + 1) % res, (j + 1) % res
    v1, v2, v3, v4 = i * res + j, inext * res + j, inext * res + jnext, i * res + jnext
    face = np.stack([v1, v2, v4, v2, v3, v4], axis=-1).reshape(-1, 3)
    return np.stack([x, y, z], axis=-1).reshape(-1, 3), face, []


def _edges(n: int, gamma: float, fov: float) -> np.ndarray:
    """Return the edges in radians of n bins over a field of view in degrees.

    Bins in the middle shrink as gamma grows.
    """
    x = np.add.accumulate(np.r_[-1.0, np.full(n, 2.0 / n)])
    if gamma:
        x = gamma * x**5 + (1 - gamma) * x
    return x * (fov * np.pi / 180)


def _wedge(nx: float, ny: float, fovx: float, fovy: float, gamma: float):
    """Return the points of a spherical wedge, each with a tangent frame (three normals)."""
    nx, ny = int(nx), int(ny)
    _require(0 < fovx <= 180, "fov[0] must be in (0, 180] degrees")
    _require(0 < fovy <= 90, "fov[1] must be in (0, 90] degrees")
    _require(nx > 0 and ny > 0, "horizontal and vertical resolutions must be positive")
    _require(0 <= gamma <= 1, "gamma must be in [0, 1]")
    _check_count(nx * ny)
    x, y = _edges(nx, gamma, fovx), _edges(ny, gamma, fovy)
    a, e = np.meshgrid(0.5 * (x[1:] + x[:-1]), 0.5 * (y[1:] + y[:-1]), indexing="ij")
    ca, sa, ce, se = np.cos(a), np.sin(a), np.cos(e), np.sin(e)
    vertex = np.stack([ce * sa, se, -ce * ca], axis=-1).reshape(-1, 3)
    ta = np.stack([ce * ca, np.zeros_like(a), ce * sa], axis=-1)
    te = np.stack([-se * sa, ce, se * ca], axis=-1)
    ta /= np.linalg.norm(ta, axis=-1, keepdims=True)
    te /= np.linalg.norm(te, axis=-1, keepdims=True)
    return vertex, [], np.stack([np.cross(te, ta), ta, te], axis=-2).reshape(-1)


def _plate(nx: float, ny: float):
    """Return the flat grid of points at z = -1, each with the identity as tangent frame (three normals)."""
    nx, ny = int(nx), int(ny)
    _require(nx > 0 and ny > 0, "horizontal and vertical resolutions must be positive")
    _check_count(nx * ny)
    i, j = np.meshgrid(np.arange(nx), np.arange(ny), indexing="ij")
    x, y = -1 + (i + 0.5) * (2.0 / nx), -1 + (j + 0.5) * (2.0 / ny)
    vertex = np.stack([x, y, np.full(x.shape, -1.0)], axis=-1).reshape(-1, 3)
    i, j = i[1:, 1:], j[1:, 1:]
    corner = (i - 1) * ny + j - 1
    face = np.stack([corner, corner + ny, corner + 1, corner + ny + 1, corner + 1, corner + ny], axis=-1)
    return vertex, face.reshape(-1, 3), np.tile(np.eye(3).reshape(-1), nx * ny)


_MAKERS = (_sphere, _hemisphere, _cone, _supersphere, _supertorus, _wedge, _plate)
_SHAPES = {make.__name__.removeprefix("_"): make for make in _MAKERS}
