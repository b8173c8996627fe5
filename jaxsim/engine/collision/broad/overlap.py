"""Which pairs of geoms overlap in the poses that a model names: in numpy, when capacities are chosen."""

from typing import Any

import numpy as np

from jaxsim.core.data import allocate, reset_to_keyframe
from jaxsim.core.types import GeomType
from jaxsim.engine.collision.broad.bounds import boxes_touch, spheres_touch
from jaxsim.engine.collision.broad.pairs import Candidates
from jaxsim.engine.collision.convex.hull import BOX_SIGNS, hull_vertices
from jaxsim.engine.collision.parameters import margins
from jaxsim.engine.dynamics.kinematics import kinematics
from jaxsim.math.arrays import inner, matvec, matvec_t

POSES = 32  # poses looked at, at most
ROUNDS = 24  # steps of the search for a plane between two geoms
RING = 16  # corners that stand for a cylinder's edge
AROUND = np.arange(RING) * 2 * np.pi / RING


def most_overlapping(m: Any, pairs: Candidates, weight: np.ndarray, least: float) -> float:
    """The largest sum of `weight` (n,) of those pairs that may overlap in one pose, qpos0 or a keyframe, or `least`.

    `m` is a host model. Geoms count as overlapping unless a plane between them is found; height fields never do.
    """
    if weight.sum() <= least:
        return least
    kept = m.geom_type[pairs.geom[:, 0]] != GeomType.HFIELD
    pairs, weight = Candidates(*[x[kept] for x in pairs]), weight[kept]
    margin = np.asarray(margins(m, pairs))
    d = allocate(m.replace(max_contacts=0, max_constraints=0))
    poses = [d] + [reset_to_keyframe(m, d, key) for key in range(min(m.nkey, POSES - 1))]
    clouds: dict[int, np.ndarray] = {}
    for pose in poses:
        d = kinematics(m, pose)
        near = _near(m, d, pairs, margin)
        if weight[near].sum() > least:
            near = near[~_parted(m, d, Candidates(*[x[near] for x in pairs]), margin[near], clouds)]
            least = max(least, weight[near].sum())
    return least


def _near(m: Any, d: Any, pairs: Candidates, margin: np.ndarray) -> np.ndarray:
    """Pairs whose spheres and boxes overlap, or whose box reaches a plane."""
    g1, g2 = pairs.geom.T
    pos, mat = d.geom_xpos, d.geom_xmat.reshape(-1, 3, 3)
    plane = m.geom_type[g1] == GeomType.PLANE
    normal, centre = mat[g1, :, 2], pos[g2] + matvec(mat[g2], m.geom_aabb[g2, :3])
    height = inner(normal, centre - pos[g1]) - inner(abs(matvec_t(mat[g2], normal)), m.geom_aabb[g2, 3:])
    reach = m.geom_rbound[g1] + m.geom_rbound[g2] + margin
    near = spheres_touch(pos[g2] - pos[g1], reach) & boxes_touch(m, pos, mat, margin, g1, g2)
    return np.flatnonzero(np.where(plane, height <= margin, near))


def _parted(m: Any, d: Any, pairs: Candidates, margin: np.ndarray, clouds: dict) -> np.ndarray:
    """Whether a plane parts the geoms of pairs (n,); `clouds` keeps the points of geoms seen before."""
    solid = np.flatnonzero(m.geom_type[pairs.geom[:, 0]] != GeomType.PLANE)
    for geom in np.unique(pairs.geom[solid]):
        clouds.setdefault(geom, _cloud(m, geom))
    sides, room = [], margin[solid]
    for side in pairs.geom[solid].T:
        size = max([1, *(len(clouds[g]) for g in side)])
        local = np.array([np.resize(clouds[g], (size, 3)) for g in side]).reshape(-1, size, 3)
        sides.append(d.geom_xpos[side, None] + matvec(d.geom_xmat.reshape(-1, 3, 3)[side, None], local))
        room = room + _radius(m, side)
    out = np.zeros(len(margin), bool)
    out[solid] = _apart(*sides, room)
    return out


def _apart(a: np.ndarray, b: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Whether the hulls of points (n, k, 3) are known to be farther apart than `room` (n,): Gilbert's algorithm."""
    rows = np.arange(len(a))
    x = a.mean(axis=1) - b.mean(axis=1)
    apart = np.zeros(len(a), bool)
    for _ in range(ROUNDS):
        i, j = np.argmin(inner(a, x[:, None]), axis=1), np.argmax(inner(b, x[:, None]), axis=1)
        w = a[rows, i] - b[rows, j]
        apart |= inner(x, w) > room * np.sqrt(inner(x, x))
        step = x - w
        length = inner(step, step)
        x = x - np.clip(inner(x, step) / np.where(length > 0, length, 1), 0, 1)[:, None] * step
    return apart


def _cloud(m: Any, geom: int) -> np.ndarray:
    """Points (k, 3) in a geom's frame whose hull, grown by its radius, holds it."""
    kind, size = m.geom_type[geom], m.geom_size[geom]
    if kind == GeomType.SPHERE:
        return np.zeros((1, 3))
    if kind == GeomType.CAPSULE:
        return np.array([[0, 0, -size[1]], [0, 0, size[1]]])
    if kind == GeomType.CYLINDER:
        ring = size[0] / np.cos(np.pi / RING) * np.stack([np.cos(AROUND), np.sin(AROUND), 0 * AROUND], axis=1)
        return (ring + np.array([[[0, 0, -size[1]]], [[0, 0, size[1]]]])).reshape(-1, 3)
    if kind == GeomType.MESH:
        mesh = m.geom_dataid[geom]
        return m.mesh_vert[m.mesh_vertadr[mesh] + hull_vertices(m, mesh)].astype(float)
    return m.geom_aabb[geom, :3] + BOX_SIGNS * m.geom_aabb[geom, 3:]


def _radius(m: Any, geom: np.ndarray) -> np.ndarray:
    return np.where(np.isin(m.geom_type[geom], (GeomType.SPHERE, GeomType.CAPSULE)), m.geom_size[geom, 0], 0)
