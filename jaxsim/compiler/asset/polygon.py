"""Coplanar triangles of a convex hull merged into polygons: `mesh_poly*`.

Triangles are grouped by the direction of their normals, rounded to a hundredth of a radian; triangles of one group that
share an edge become one polygon. Polygons are numbered in the order in which MuJoCo's hash table lists the groups;
that order is reproduced here.
"""

from __future__ import annotations

import struct
from collections import deque

import numpy as np

from jaxsim.compiler.asset.bvh import cross, dot
from jaxsim.core.types import MINVAL
from jaxsim.mjcf.pose import EPS

ANGLE_TOLERANCE = 0.01
_POLE = 1.0 - 1e-7


def make_polygons(vert: np.ndarray, face: np.ndarray) -> list[list[int]]:
    """Merge the triangles of a hull to polygons; return them as lists of vertex indices.

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
    """Compute unit normals (npoly, 3) from the first three vertices of every polygon.

    If their triangle has (almost) no area, the normal is the x axis divided by the length, as in MuJoCo.
    """
    if not polygons:
        return np.zeros((0, 3))
    a, b, c = (vert[[p[k] for p in polygons]] for k in range(3))
    normal = cross(b - a, c - a)
    norm = np.sqrt(dot(normal, normal))[:, None]
    return np.where(norm < EPS, [1.0, 0, 0], normal) / np.where(norm > 0, norm, 1.0)


def _direction_keys(vert: np.ndarray, face: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rounded azimuth and polar angle (nf, 2) of every normal, and the mask (nf,) of triangles with an area."""
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
    """Round to the nearest integer, halves away from zero."""
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
    """Return the order of entries in a chained hash table of prime size, after one-by-one insertion.

    All buckets are in one list. A new entry becomes the first of its bucket, a new bucket the first of the list.
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
    """Return the list of buckets after the table has grown.

    The old list is traversed once. A bucket is appended at its first occurrence. An entry is appended to the bucket of
    the entry before it if both share one, else it becomes the first of its bucket.
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
    """Return the outlines of the connected parts of a set of coplanar triangles.

    An edge opposite to one already in the outline removes it and joins the two parts. Parts are numbered by their first
    triangle.
    """
    edges: dict[tuple[int, int], int] = {}
    joined: list[int] = []
    for a, b, c in triangles:
        _insert(edges, joined, ((a, b), (b, c), (c, a)))
    if len(edges) == 3:
        return [[first for first, _ in edges]]
    follow: dict[tuple[int, int], int] = {}
    start: dict[int, tuple[int, int]] = {}
    for k, ((first, second), part) in enumerate(edges.items()):
        part = _root(joined, part)
        start.setdefault(part, (first, second))
        if k > 0:
            follow.setdefault((part, first), second)
    paths = (_trace(start[part], part, follow, len(edges)) for part in sorted(start))
    return [path for path in paths if path]


def _root(joined: list[int], part: int) -> int:
    """Return the first part that was joined with `part`."""
    while joined[part] != part:
        joined[part] = joined[joined[part]]
        part = joined[part]
    return part


def _insert(edges: dict[tuple[int, int], int], joined: list[int], triangle: tuple[tuple[int, int], ...]) -> None:
    """Add a triangle's edges to the outline."""
    twins = [(second, first) for first, second in triangle if (second, first) in edges]
    parts = {_root(joined, edges.pop(twin)) for twin in twins}
    if not parts:
        parts = {len(joined)}
        joined.append(len(joined))
    part = min(parts)
    for other in parts:
        joined[other] = part
    for first, second in triangle:
        if (second, first) not in twins:
            edges[(first, second)] = part


def _trace(start: tuple[int, int], part: int, follow: dict, limit: int) -> list[int] | None:
    """Follow the edges from `start` until they close, and return their vertices; None if they do not close."""
    path = list(start)
    for _ in range(limit):
        after = follow.get((part, path[-1]))
        if after is None:
            return None
        if after == path[0]:
            return path
        path.append(after)
    return None
