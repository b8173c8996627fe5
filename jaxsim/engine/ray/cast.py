"""Rays against the geoms of a model: `ray`, `multi_ray`, and what cameras and sensors share.

A search that sees no gradients says which geom each ray meets first, and which part of its surface. The distance and
the normal are then measured again, on that geom alone, by formulas that can be differentiated in everything.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.core.types import GeomType
from jaxsim.engine.ray import hfield as ray_hfield
from jaxsim.engine.ray import mesh as ray_mesh
from jaxsim.engine.ray.primitive import DISTANCES, NORMALS, along
from jaxsim.math import component as c
from jaxsim.math import safe
from jaxsim.math.arrays import gather, inner, matvec, matvec_t, take
from jaxsim.math.component import Vector
from jaxsim.math.safe import Array, xp_of

NGROUP = 6  # groups of geoms, mjNGROUP


class Hit(NamedTuple):
    """What rays (n,) meet first: distance (inf if nothing), geom, normal (n, 3), and the part of a geom's surface."""

    dist: Array
    geom: Array
    normal: Array
    part: Array


def ray(
    m: Model,
    d: Data,
    pnt: Array,
    vec: Array,
    geomgroup: Sequence[int] | None = None,
    flg_static: bool = True,
    bodyexclude: Any = -1,
) -> tuple[Array, Array, Array]:
    """The first geom on a ray: mj_ray.

    Args:
        pnt, vec: (3,) origin and direction, global; the direction need not have unit length.
        geomgroup: six flags, which groups are seen; None for all. Known while tracing.
        flg_static: whether geoms that never move are seen. Known while tracing.
        bodyexclude: a body whose geoms are not seen, or -1; may be traced.

    Returns:
        Distance in units of the length of `vec` and the geom's id, both -1 if nothing is met, and the surface's normal
        (3,), zero if nothing is met. Geoms that are fully transparent are not seen. Raises UnsupportedError for a geom
        type that rays do not know.
    """
    pnt, vec = jnp.asarray(pnt, d.qpos.dtype), jnp.asarray(vec, d.qpos.dtype)
    hit = cast(m, d, pnt[None], vec[None], visible(m, geomgroup, flg_static), exclude=bodyexclude)
    return tuple(x[0] for x in report(hit))


def multi_ray(
    m: Model,
    d: Data,
    pnt: Array,
    vec: Array,
    geomgroup: Sequence[int] | None = None,
    flg_static: bool = True,
    bodyexclude: Any = -1,
    cutoff: float | Array = np.inf,
) -> tuple[Array, Array, Array]:
    """The first geoms on rays from one point: mj_multiRay.

    As `ray`, with directions (n, 3), of which those of length zero meet nothing. Bodies are left out as the reference
    does it: geoms with bounding spheres beyond `cutoff`, and bodies whose sphere of colliding geoms a ray misses.
    Returns distances and geom ids (n,) and normals (n, 3).
    """
    pnt, vec = jnp.asarray(pnt, d.qpos.dtype), jnp.asarray(vec, d.qpos.dtype)
    geoms = visible(m, geomgroup, flg_static)
    able = culled(m, d, geoms, pnt, vec, cutoff)
    return report(cast(m, d, jnp.broadcast_to(pnt, vec.shape), vec, geoms, able, bodyexclude))


def report(hit: Hit) -> tuple[Array, Array, Array]:
    """Distance, geom and normal, with -1, -1 and zeros where nothing is met."""
    met = jnp.isfinite(hit.dist)
    return jnp.where(met, hit.dist, -1), jnp.where(met, hit.geom, -1), jnp.where(met[:, None], hit.normal, 0)


def visible(m: Model, geomgroup: Sequence[int] | np.ndarray | None = None, flg_static: bool = True) -> np.ndarray:
    """Static ids of the geoms that rays see, by group and by whether they can move."""
    seen = np.ones(m.ngeom, bool)
    if geomgroup is not None:
        seen &= np.asarray(geomgroup, bool)[np.clip(m.geom_group, 0, NGROUP - 1)]
    if not flg_static:
        seen &= m.body_weldid[m.geom_bodyid] != 0
    return np.flatnonzero(seen)


def _opaque(m: Model, geoms: np.ndarray) -> Array:
    """Whether geoms (k,) have a colour that is not fully transparent."""
    alpha = take(m.geom_rgba, geoms)[:, 3]
    if m.nmat:
        material = m.geom_matid[geoms]
        alpha = xp_of(alpha).where(material >= 0, take(m.mat_rgba, np.maximum(material, 0))[:, 3], alpha)
    return alpha != 0


def culled(m: Model, d: Data, geoms: np.ndarray, pnt: Array, vec: Array, cutoff: Array) -> Array:
    """Which geoms (n, k) rays from one point (3,), or one each (n, 3), can meet after mj_multiRay's tests of bounds."""
    pnt = pnt[..., None, :]
    body = m.geom_bodyid[geoms]
    bounded = m.body_bvhadr[body] >= 0
    reach = cutoff + take(m.geom_rbound, geoms)
    able = ~bounded | (safe.norm(take(d.geom_xpos, geoms) - pnt) <= reach)
    box = m.bvh_aabb[np.where(bounded, m.body_bvhadr[body], 0)] if m.nbvhstatic else np.zeros((len(geoms), 6))
    # the reference's spheres stand where the boxes' centres would be if the bodies' inertial frames were not turned
    centre = take(d.xipos, body) + box[:, :3].astype(pnt.dtype)
    radius = np.sqrt(np.sum(box[:, 3:] ** 2, axis=1)).astype(pnt.dtype)
    meets = DISTANCES[GeomType.SPHERE]((radius,), c.split(pnt - centre), c.split(vec[:, None]))
    return able & (~bounded | jnp.isfinite(meets))


def cast(
    m: Model,
    d: Data,
    pnt: Array,
    vec: Array,
    geoms: np.ndarray,
    able: Array | bool = True,
    exclude: Any = -1,
    front: bool = False,
) -> Hit:
    """The first of some geoms on each ray.

    Args:
        pnt, vec: (n, 3) origins and directions, global.
        geoms: (k,) static ids of the geoms.
        able: which geoms each ray can meet, broadcast to (n, k).
        exclude: a body that is not seen, or one for each ray (n,).
        front: whether surfaces are only met from the front, as a renderer draws them.
    """
    n = len(vec)
    exclude = jnp.broadcast_to(jnp.asarray(exclude), n)[:, None]
    able = able & _opaque(m, geoms) & (m.geom_bodyid[geoms] != exclude)
    if not len(geoms):
        return Hit(jnp.full(n, jnp.inf, vec.dtype), jnp.zeros(n, jnp.int32), jnp.zeros_like(vec), jnp.zeros(n, int))
    able = jnp.broadcast_to(able, (n, len(geoms)))
    geom, part, met = search(m, *jax.lax.stop_gradient((d, pnt, vec)), geoms, able, front)
    dist, normal = measure(m, d, pnt, vec, geoms, geom, part)
    return Hit(jnp.where(met, dist, jnp.inf), geom, normal, part)


def search(
    m: Model, d: Data, pnt: Array, vec: Array, geoms: np.ndarray, able: Array, front: bool
) -> tuple[Array, Array, Array]:
    """For each ray the geom that it meets first, the part of its surface, and whether there is any."""
    m = jax.lax.stop_gradient(m)
    dists, owners, parts = [], [], []
    for kind in np.unique(m.geom_type[geoms]):
        which = np.flatnonzero(m.geom_type[geoms] == kind)
        mine, may = geoms[which], take(able.T, which).T
        mat = take(d.geom_xmat, mine).reshape(-1, 3, 3)
        p, v = _local(take(d.geom_xpos, mine), mat, pnt[:, None], vec[:, None])
        if kind in DISTANCES:
            size = c.split(take(m.geom_size, mine))
            dist = DISTANCES[kind](size, p, v)
            if front and kind != GeomType.PLANE:
                outward = NORMALS[kind](size, along(p, v, jnp.where(jnp.isfinite(dist), dist, 0)))
                may = may & (sum(x * y for x, y in zip(outward, v, strict=True)) < 0)
            dist = jnp.where(may, dist, jnp.inf)
            owner, part = jnp.broadcast_to(mine, dist.shape), jnp.zeros(dist.shape, jnp.int32)
        elif kind == GeomType.MESH:
            dist, place, part = (x[:, None] for x in ray_mesh.search(m, mine, p, v, may, front))
            owner = gather(jnp.asarray(mine), place)
        elif kind == GeomType.HFIELD:
            found = [
                ray_hfield.search(m, g, *(tuple(x[:, i] for x in a) for a in (p, v)), front) for i, g in enumerate(mine)
            ]
            dist = jnp.where(may, jnp.stack([f.dist for f in found], 1), jnp.inf)
            owner, part = jnp.broadcast_to(mine, dist.shape), jnp.stack([f.part for f in found], 1)
        else:
            raise UnsupportedError(f"rays against geoms of type {GeomType(kind).name.lower()}")
        dists.append(dist)
        owners.append(owner.astype(jnp.int32))
        parts.append(part)
    dist, owner, part = (jnp.concatenate(x, axis=1) for x in (dists, owners, parts))
    best = jnp.min(dist, axis=1, keepdims=True)
    # of geoms at one distance the first
    first = jnp.argmin(jnp.where(dist == best, owner, m.ngeom), axis=1)[:, None]
    return *(jnp.take_along_axis(x, first, axis=1)[:, 0] for x in (owner, part)), jnp.isfinite(best[:, 0])


def _local(pos: Array, mat: Array, pnt: Array, vec: Array) -> tuple[Vector, Vector]:
    """Rays in the frames of geoms, as components; all broadcast."""
    away = c.split(pnt - pos)
    vec = c.split(vec)
    rows = [[mat[..., j, i] for j in range(3)] for i in range(3)]
    return tuple(tuple(sum(r * x for r, x in zip(row, a, strict=True)) for row in rows) for a in (away, vec))


def measure(
    m: Model, d: Data, pnt: Array, vec: Array, geoms: np.ndarray, geom: Array, part: Array
) -> tuple[Array, Array]:
    """Distances (n,) along rays to the surfaces of geoms (n,) that they meet, and the unit normals there (n, 3)."""
    mat = gather(d.geom_xmat, geom).reshape(-1, 3, 3)
    away = pnt - gather(d.geom_xpos, geom)
    p, v = c.split(matvec_t(mat, away)), c.split(matvec_t(mat, vec))
    size = c.split(gather(m.geom_size, geom))
    kind = jnp.asarray(m.geom_type)[geom]
    dist, normal = jnp.full(len(geom), jnp.inf, vec.dtype), jnp.zeros_like(vec)
    for k in np.unique(m.geom_type[geoms]):
        if k in DISTANCES:
            t = DISTANCES[k](size, p, v)
            side = c.join(NORMALS[k](size, along(p, v, jnp.where(jnp.isfinite(t), t, 0))))
            mine = kind == k
            dist, normal = jnp.where(mine, t, dist), jnp.where(mine[:, None], side, normal)
        elif k == GeomType.MESH:
            mine = kind == k
            t, side = _to_plane(*ray_mesh.plane_of(m, jnp.where(mine, part, 0)), p, v)
            dist, normal = jnp.where(mine, t, dist), jnp.where(mine[:, None], side, normal)
        else:
            for g in geoms[m.geom_type[geoms] == k]:
                mine = geom == g
                t, side = _to_plane(*ray_hfield.plane_of(m, ray_hfield.grid(m, g), jnp.where(mine, part, -1)), p, v)
                dist, normal = jnp.where(mine, t, dist), jnp.where(mine[:, None], side, normal)
    return dist, matvec(mat, safe.normalize(normal)[0])


def _to_plane(point: Array, normal: Array, p: Vector, v: Vector) -> tuple[Array, Array]:
    """Distance along rays to planes, and the planes' normals."""
    return safe.divide(inner(normal, point - c.join(p)), inner(normal, c.join(v))), normal


def ray_hits(kind: np.ndarray, size: Array, origin: Array, direction: Array) -> Array:
    """Whether rays meet the surfaces of shapes: (k, n).

    Args:
        kind: (k,) static GeomType: a primitive.
        size: (k, 3).
        origin, direction: (k, n, 3), in the frame of the shape.
    """
    xp = xp_of(size, origin)
    size, p, v = c.split(size[:, None]), c.split(origin), c.split(direction)
    tests = [(kind == shape)[:, None] & xp.isfinite(DISTANCES[shape](size, p, v)) for shape in np.unique(kind)]
    return sum(tests) > 0
