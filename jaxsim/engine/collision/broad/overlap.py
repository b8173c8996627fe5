"""Overlapping pairs of geoms in the poses that a model defines: a NumPy test for the choice of capacities."""

from typing import Any

import numpy as np

from jaxsim.core.allocate import allocate, reset_to_keyframe
from jaxsim.core.types import GeomType
from jaxsim.engine.collision.broad.bounds import boxes_touch, spheres_touch
from jaxsim.engine.collision.broad.pairs import Candidates
from jaxsim.engine.collision.parameters import margins
from jaxsim.engine.collision.shapes import BOX_SIGNS
from jaxsim.engine.kinematics.kinematics import kinematics
from jaxsim.engine.structure.geom_bounds import hull_vertices
from jaxsim.math.arrays import inner, matvec, matvec_t

MAX_POSES = 32  # qpos0 and keyframes beyond this number are not tested
SEPARATION_STEPS = 24  # of the search for a separating plane
CYLINDER_CORNERS = 16  # of the prism that replaces a cylinder
CYLINDER_ANGLES = np.arange(CYLINDER_CORNERS) * 2 * np.pi / CYLINDER_CORNERS


def max_overlapping_weight(m: Any, pairs: Candidates, weight: np.ndarray, least: float) -> float:
    """Return the largest sum of `weight` (n,) over pairs that may overlap in one pose, at least `least`.

    The poses are qpos0 and the keyframes of the host model `m`. Geoms count as overlapping unless a separating plane is
    found. Height fields are not tested.
    """
    if weight.sum() <= least:
        return least
    kept = m.geom_type[pairs.geom[:, 0]] != GeomType.HFIELD
    pairs, weight = Candidates(*[x[kept] for x in pairs]), weight[kept]
    margin = np.asarray(margins(m, pairs))
    d = allocate(m.replace(max_contacts=0, max_constraints=0))
    poses = [d] + [reset_to_keyframe(m, d, key) for key in range(min(m.nkey, MAX_POSES - 1))]
    points: dict[int, np.ndarray] = {}
    for pose in poses:
        d = kinematics(m, pose)
        overlap = _bounds_touch(m, d, pairs, margin)
        if weight[overlap].sum() > least:
            overlap = overlap[~_separated(m, d, Candidates(*[x[overlap] for x in pairs]), margin[overlap], points)]
            least = max(least, weight[overlap].sum())
    return least


def _bounds_touch(m: Any, d: Any, pairs: Candidates, margin: np.ndarray) -> np.ndarray:
    """Return the indices of the pairs whose spheres and boxes overlap, or whose box reaches a plane."""
    g1, g2 = pairs.geom.T
    pos, mat = d.geom_xpos, d.geom_xmat.reshape(-1, 3, 3)
    plane = m.geom_type[g1] == GeomType.PLANE
    normal, centre = mat[g1, :, 2], pos[g2] + matvec(mat[g2], m.geom_aabb[g2, :3])
    height = inner(normal, centre - pos[g1]) - inner(abs(matvec_t(mat[g2], normal)), m.geom_aabb[g2, 3:])
    reach = m.geom_rbound[g1] + m.geom_rbound[g2] + margin
    near = spheres_touch(pos[g2] - pos[g1], reach) & boxes_touch(m, pos, mat, margin, g1, g2)
    return np.flatnonzero(np.where(plane, height <= margin, near))


def _separated(m: Any, d: Any, pairs: Candidates, margin: np.ndarray, points: dict) -> np.ndarray:
    """Return whether the geoms of pairs (n,) have a separating plane; `points` caches the hull points of geoms."""
    solid = np.flatnonzero(m.geom_type[pairs.geom[:, 0]] != GeomType.PLANE)
    for geom in np.unique(pairs.geom[solid]):
        points.setdefault(geom, _hull_points(m, geom))
    sides, distance = [], margin[solid]
    for side in pairs.geom[solid].T:
        size = max([1, *(len(points[g]) for g in side)])
        local = np.array([np.resize(points[g], (size, 3)) for g in side]).reshape(-1, size, 3)
        sides.append(d.geom_xpos[side, None] + matvec(d.geom_xmat.reshape(-1, 3, 3)[side, None], local))
        distance = distance + _radius(m, side)
    out = np.zeros(len(margin), bool)
    out[solid] = _hulls_separated(sides[0], sides[1], distance)
    return out


def _hulls_separated(a: np.ndarray, b: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Return whether the hulls of points (n, k, 3) are known to be farther from each other than `distance` (n,).

    Source: Gilbert (1966), An iterative procedure for computing the minimum of a quadratic form on a convex set.
    """
    rows = np.arange(len(a))
    x = a.mean(axis=1) - b.mean(axis=1)
    separated = np.zeros(len(a), bool)
    for _ in range(SEPARATION_STEPS):
        i, j = np.argmin(inner(a, x[:, None]), axis=1), np.argmax(inner(b, x[:, None]), axis=1)
        w = a[rows, i] - b[rows, j]
        separated |= inner(x, w) > distance * np.sqrt(inner(x, x))
        step = x - w
        length = inner(step, step)
        x = x - np.clip(inner(x, step) / np.where(length > 0, length, 1), 0, 1)[:, None] * step
    return separated


def _hull_points(m: Any, geom: int) -> np.ndarray:
    """Return points (k, 3) in a geom's frame whose convex hull, grown by `_radius`, contains the geom."""
    geom_type, size = m.geom_type[geom], m.geom_size[geom]
    if geom_type == GeomType.SPHERE:
        return np.zeros((1, 3))
    if geom_type == GeomType.CAPSULE:
        return np.array([[0, 0, -size[1]], [0, 0, size[1]]])
    if geom_type == GeomType.CYLINDER:
        circle = np.stack([np.cos(CYLINDER_ANGLES), np.sin(CYLINDER_ANGLES), 0 * CYLINDER_ANGLES], axis=1)
        ring = size[0] / np.cos(np.pi / CYLINDER_CORNERS) * circle
        return (ring + np.array([[[0, 0, -size[1]]], [[0, 0, size[1]]]])).reshape(-1, 3)
    if geom_type == GeomType.MESH:
        mesh = m.geom_dataid[geom]
        return m.mesh_vert[m.mesh_vertadr[mesh] + hull_vertices(m, mesh)].astype(float)
    return m.geom_aabb[geom, :3] + BOX_SIGNS * m.geom_aabb[geom, 3:]


def _radius(m: Any, geom: np.ndarray) -> np.ndarray:
    """Return the radius by which the hull points of a sphere or capsule are grown, else zero."""
    return np.where(np.isin(m.geom_type[geom], (GeomType.SPHERE, GeomType.CAPSULE)), m.geom_size[geom, 0], 0)
