"""Coplanar triangles of a convex hull merged into polygons: `mesh_poly*`.

Triangles are grouped by the direction of their normals, rounded to a hundredth of a radian; triangles of one group that
share an edge become one polygon. The groups come in the order in which the reference's hash table lists them, which
is reproduced here because it numbers the polygons.
"""

from __future__ import annotations

import struct
from collections import deque

import numpy as np

from jaxsim.compiler.bvh import cross, dot
from jaxsim.compiler.hull import MINVAL
from jaxsim.compiler.linalg import EPS

ANGLE_TOLERANCE = 0.01
_POLE = 1.0 - 1e-7


def make_polygons(vert: np.ndarray, face: np.ndarray) -> list[list[int]]:
    """Polygons of a hull as lists of vertex indices.

    Args:
        vert: (n, 3) float64 vertices.
        face: (nf, 3) triangles of the hull, counter-clockwise seen from outside.
    """
    keys, valid = _direction_keys(vert, face)
    groups: dict[tuple[float, float], list[tuple[int, int, int]]] = {}
    for key, triangle in zip(keys[valid].tolist(), face[valid].tolist(), strict=True):
        groups.setdefault((key[0], key[1]), []).append(tuple(triangle))
    order = _table_order([_hash(key) for key in groups])
    triangles = list(groups.values())
    return [path for k in order for path in _outlines(triangles[k]) if len(path) >= 3]


def polygon_normals(vert: np.ndarray, polygons: list[list[int]]) -> np.ndarray:
    """(npoly, 3) unit normals from the first three vertices of every polygon.

    Where their triangle has (almost) no area the normal is along x, divided by that length as the reference has it.
    """
    if not polygons:
        return np.zeros((0, 3))
    a, b, c = (vert[[p[k] for p in polygons]] for k in range(3))
    normal = cross(b - a, c - a)
    norm = np.sqrt(dot(normal, normal))[:, None]
    return np.where(norm < EPS, [1.0, 0, 0], normal) / np.where(norm > 0, norm, 1.0)


def _direction_keys(vert: np.ndarray, face: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(nf, 2) rounded azimuth and polar angle of every normal; (nf,) whether the triangle has an area."""
    a, b, c = (vert[face[:, k]] for k in range(3))
    normal = cross(b - a, c - a)
    norm = np.sqrt(dot(normal, normal))
    valid = norm >= MINVAL
    normal = normal / np.where(valid, norm, 1.0)[:, None] + 0.0
    pole = np.abs(normal[:, 2]) > _POLE
    azimuth = _round(np.arctan2(normal[:, 1], normal[:, 0]) / ANGLE_TOLERANCE)
    polar = _round(np.arccos(np.clip(normal[:, 2], -1, 1)) / ANGLE_TOLERANCE)
    azimuth = np.where(pole, 0.0, azimuth)
    polar = np.where(pole, np.where(normal[:, 2] < 0, _round(np.array(np.pi / ANGLE_TOLERANCE)), 0.0), polar)
    return np.stack([azimuth, polar], axis=1), valid


def _round(x: np.ndarray) -> np.ndarray:
    """To the nearest integer, halves away from zero."""
    whole = np.floor(np.abs(x))
    return np.copysign(whole + (np.abs(x) - whole >= 0.5), x)


def _hash(key: tuple[float, float]) -> int:
    bits = [0 if x == 0 else struct.unpack("<Q", struct.pack("<d", x))[0] for x in key]
    return bits[0] ^ bits[1]


def _next_prime(n: int) -> int:
    while n > 2 and any(n % k == 0 for k in range(2, int(n**0.5) + 1)):
        n += 1
    return n


def _table_order(hashes: list[int]) -> list[int]:
    """Order in which a chained hash table of prime size lists its entries, after they were put in one by one.

    The buckets stand on one list. A new entry becomes the first of its bucket, a new bucket the first of the list.
    """
    chain: deque[deque[int]] = deque()
    bucket_of: dict[int, deque[int]] = {}
    size = 0
    for k, value in enumerate(hashes):
        if k + 1 > size:
            size = 2 if size == 0 else _next_prime(max(2 * size + 1, k + 1))
            chain, bucket_of = _regroup(chain, hashes, size)
        bucket = bucket_of.get(value % size)
        if bucket is None:
            bucket = bucket_of[value % size] = deque()
            chain.appendleft(bucket)
        bucket.appendleft(k)
    return [entry for bucket in chain for entry in bucket]


def _regroup(chain: deque[deque[int]], hashes: list[int], size: int) -> tuple[deque[deque[int]], dict]:
    """The list of buckets after the table has grown.

    The old list is walked once: a bucket stands where it is first met; an entry follows the one before it where both
    share a bucket, else it becomes the first of its own.
    """
    grown: deque[deque[int]] = deque()
    bucket_of: dict[int, deque[int]] = {}
    for entry in (entry for bucket in chain for entry in bucket):
        bucket = bucket_of.get(hashes[entry] % size)
        if bucket is None:
            bucket = bucket_of[hashes[entry] % size] = deque([entry])
            grown.append(bucket)
        elif bucket is grown[-1]:
            bucket.append(entry)
        else:
            bucket.appendleft(entry)
    return grown, bucket_of


def _outlines(triangles: list[tuple[int, int, int]]) -> list[list[int]]:
    """Outlines of the connected parts of a set of coplanar triangles."""
    edges: dict[tuple[int, int], int] = {}
    nisland = 0
    for a, b, c in triangles:
        nisland = _insert(edges, nisland, (a, b), (b, c), (c, a))
    if len(edges) == 3:
        return [[first for first, _ in edges]]
    items = list(edges.items())
    follow: dict[tuple[int, int], int] = {}
    for (first, second), island in items[1:]:
        follow.setdefault((island, first), second)
    paths = []
    for island in range(nisland):
        start = next((edge for edge, of in items if of == island), None)
        path = _trace(start, island, follow, len(items)) if start else None
        if path:
            paths.append(path)
    return paths


def _trace(start: tuple[int, int], island: int, follow: dict, limit: int) -> list[int] | None:
    """Vertices along the edges from `start` until they close, or None where they do not."""
    path = list(start)
    for _ in range(limit):
        after = follow.get((island, path[-1]))
        if after is None:
            return None
        if after == path[0]:
            return path
        path.append(after)
    return None


def _insert(edges: dict[tuple[int, int], int], nisland: int, *triangle: tuple[int, int]) -> int:
    """Add a triangle's edges to the outline: an edge that runs against one already there removes it and joins."""
    island = -1
    added = []
    for first, second in triangle:
        twin = edges.get((second, first))
        if twin is None:
            added.append((first, second))
            continue
        if island == -1:
            island = twin
        elif twin != island:
            nisland -= 1
            island, gone = min(island, twin), max(island, twin)
            for edge, of in edges.items():
                edges[edge] = island if of == gone else of - (of > gone)
        del edges[(second, first)]
    if island == -1:
        island = nisland
        nisland += 1
    for edge in added:
        edges[edge] = island
    return nisland
