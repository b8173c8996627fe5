"""Rays against the geoms of a model: `ray`, `multi_ray`, and the casts of cameras and sensors.

A search without derivatives finds the geom that each ray hits first, and the part of its surface. The distance and the
normal are then computed again, for that geom alone, by formulas that are differentiable with respect to all their
inputs.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.data import Data
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL, GeomType
from jaxsim.engine.ray import hfield as ray_hfield
from jaxsim.engine.ray import mesh as ray_mesh
from jaxsim.engine.ray import sdf as ray_sdf
from jaxsim.engine.ray.primitive import DISTANCES, NORMALS, points_or_origins
from jaxsim.engine.structure.geom_bounds import with_current_bounds
from jaxsim.interface.public import public
from jaxsim.math import component as c
from jaxsim.math import safe
from jaxsim.math.arrays import gather, inner, matvec, matvec_t, take
from jaxsim.math.component import Vector
from jaxsim.math.rotation import quat_conj, quat_mul, quat_rotate, quat_to_mat
from jaxsim.math.safe import Array, xp_of

NGROUP = 6  # groups of geoms, mjNGROUP


class RayHit(NamedTuple):
    """First hits of rays (n,): distance (inf if none), geom, normal (n, 3), and part of the geom's surface."""

    dist: Array
    geom: Array
    normal: Array
    part: Array


def _with_direction(given: dict[str, Any]) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """Raise ValueError for a direction of length zero, as mj_ray does."""
    if np.linalg.norm(given["vec"]) < MINVAL:
        raise ValueError("ray: vec has length zero")
    return given, lambda result: result


@public(static=("geomgroup", "flg_static"), shared=_with_direction)
def ray(
    m: Model,
    d: Data,
    pnt: Array,
    vec: Array,
    geomgroup: Sequence[int] | None = None,
    flg_static: bool = True,
    bodyexclude: Any = -1,
) -> tuple[Array, Array, Array]:
    """Return the first geom on a ray. Source: mj_ray.

    Args:
        pnt: (3,) origin, global.
        vec: (3,) direction, global; it need not have unit length.
        geomgroup: six flags, which groups are visible; None for all. Known while tracing.
        flg_static: whether geoms of static bodies are visible. Known while tracing.
        bodyexclude: a body whose geoms are invisible, or -1; may be traced.

    Returns:
        Distance in units of the length of `vec` and the geom's id, both -1 without a hit, and the surface's normal
        (3,), zero without a hit. As in MuJoCo, distances from signed distance fields are in units of length. Fully
        transparent geoms are invisible. A `vec` of length zero hits nothing while traced.

    Raises:
        UnsupportedError: a geom type has no ray test.
        ValueError: the length of `vec` is zero, in a call that is not traced.
    """
    pnt, vec = jnp.asarray(pnt, d.qpos.dtype), jnp.asarray(vec, d.qpos.dtype)
    hit = cast(m, d, pnt[None], vec[None], visible(m, geomgroup, flg_static), exclude=bodyexclude)
    return tuple(x[0] for x in mujoco_results(hit))


@public(static=("geomgroup", "flg_static"))
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
    """Return the first geoms on rays from one point. Source: mj_multiRay.

    As `ray`, with directions (n, 3); a direction of length zero hits nothing. As in MuJoCo, geoms with bounding spheres
    beyond `cutoff` and bodies whose bounding sphere a ray misses are left out. Returns distances and geom ids (n,) and
    normals (n, 3).
    """
    pnt, vec = jnp.asarray(pnt, d.qpos.dtype), jnp.asarray(vec, d.qpos.dtype)
    geoms = visible(m, geomgroup, flg_static)
    allowed = within_bounds(m, d, geoms, pnt, vec, cutoff)
    return mujoco_results(cast(m, d, jnp.broadcast_to(pnt, vec.shape), vec, geoms, allowed, bodyexclude))


def mujoco_results(hit: RayHit) -> tuple[Array, Array, Array]:
    """Return the distance, geom and normal, with -1, -1 and zeros where nothing is hit."""
    met = jnp.isfinite(hit.dist)
    return jnp.where(met, hit.dist, -1), jnp.where(met, hit.geom, -1), jnp.where(met[:, None], hit.normal, 0)


def visible(m: Model, geomgroup: Sequence[int] | np.ndarray | None = None, flg_static: bool = True) -> np.ndarray:
    """Return the static ids of the geoms that are visible to rays, by group and by whether they can move."""
    seen = np.ones(m.ngeom, bool)
    if geomgroup is not None:
        seen &= np.asarray(geomgroup, bool)[np.clip(m.geom_group, 0, NGROUP - 1)]
    if not flg_static:
        seen &= m.body_weldid[m.geom_bodyid] != 0
    return np.flatnonzero(seen)


def _opaque(m: Model, geoms: np.ndarray) -> Array:
    """Return whether geoms (k,) have a colour that is not fully transparent."""
    alpha = take(m.geom_rgba, geoms)[:, 3]
    if m.nmat:
        material = m.geom_matid[geoms]
        alpha = xp_of(alpha).where(material >= 0, take(m.mat_rgba, np.maximum(material, 0))[:, 3], alpha)
    return alpha != 0


def within_bounds(m: Model, d: Data, geoms: np.ndarray, pnt: Array, vec: Array, cutoff: Array) -> Array:
    """Return the mask of geoms (n, k) that pass mj_multiRay's bound tests.

    Rays start at one point (3,) or at one each (n, 3).
    """
    pnt = pnt[..., None, :]
    body = m.geom_bodyid[geoms]
    bounded = m.body_bvhadr[body] >= 0
    m = with_current_bounds(m, geoms)
    reach = cutoff + take(m.geom_rbound, geoms)
    allowed = ~bounded | (safe.norm(take(d.geom_xpos, geoms) - pnt) <= reach)
    box = take(_body_boxes(with_current_bounds(m)), body)
    # MuJoCo's spheres are centred as if the bodies' inertial frames were not rotated
    centre = take(d.xipos, body) + box[:, :3]
    radius = safe.norm(box[:, 3:])
    dist_to_bound = DISTANCES[GeomType.SPHERE]((radius,), c.split(pnt - centre), c.split(vec[:, None]))
    return allowed & (~bounded | jnp.isfinite(dist_to_bound))


def _body_boxes(m: Model) -> Array:
    """Return boxes (nbody, 6) of the geoms of bodies that can collide, in inertial frames: centres and half sizes."""
    geoms = np.flatnonzero((m.geom_contype != 0) | (m.geom_conaffinity != 0))
    body = m.geom_bodyid[geoms]
    to_inertial = quat_conj(take(m.body_iquat, body))
    mat = quat_to_mat(quat_mul(to_inertial, take(m.geom_quat, geoms)))
    box = take(m.geom_aabb, geoms)
    middle = quat_rotate(to_inertial, take(m.geom_pos, geoms) - take(m.body_ipos, body)) + matvec(mat, box[:, :3])
    half = matvec(abs(mat), box[:, 3:])
    corner = jax.ops.segment_max(jnp.concatenate([middle + half, half - middle], axis=1), body, m.nbody)
    high, low = corner[:, :3], -corner[:, 3:]
    return lax.stop_gradient(jnp.concatenate([(high + low) / 2, (high - low) / 2], axis=1))


def cast(
    m: Model,
    d: Data,
    pnt: Array,
    vec: Array,
    geoms: np.ndarray,
    allowed: Array | bool = True,
    exclude: Any = -1,
    front_only: bool = False,
) -> RayHit:
    """Return the first hit of each ray among some geoms.

    Args:
        pnt, vec: (n, 3) origins and directions, global.
        geoms: (k,) static ids of the geoms.
        allowed: mask of geoms for each ray, broadcast to (n, k).
        exclude: an invisible body, or one for each ray (n,).
        front_only: whether surfaces are hit from the front only, as a renderer draws them.
    """
    n = len(vec)
    exclude = jnp.broadcast_to(jnp.asarray(exclude), n)[:, None]
    allowed = allowed & _opaque(m, geoms) & (m.geom_bodyid[geoms] != exclude)
    if not len(geoms):
        return RayHit(jnp.full(n, jnp.inf, vec.dtype), jnp.zeros(n, jnp.int32), jnp.zeros_like(vec), jnp.zeros(n, int))
    allowed = jnp.broadcast_to(allowed, (n, len(geoms)))
    geom, part, met = search(m, *jax.lax.stop_gradient((d, pnt, vec)), geoms, allowed, front_only)
    dist, normal = measure(m, d, pnt, vec, geoms, geom, part)
    return RayHit(jnp.where(met, dist, jnp.inf), geom, normal, part)


def search(
    m: Model, d: Data, pnt: Array, vec: Array, geoms: np.ndarray, allowed: Array, front_only: bool
) -> tuple[Array, Array, Array]:
    """Find for each ray the geom that it hits first, the part of its surface, and whether there is one."""
    m = jax.lax.stop_gradient(m)
    dists, geom_ids, parts = [], [], []
    for geom_type in np.unique(m.geom_type[geoms]):
        index = np.flatnonzero(m.geom_type[geoms] == geom_type)
        ids, can_meet = geoms[index], take(allowed.T, index).T
        mat = take(d.geom_xmat, ids).reshape(-1, 3, 3)
        p, v = _in_geom_frames(take(d.geom_xpos, ids), mat, pnt[:, None], vec[:, None])
        if geom_type in DISTANCES:
            size = c.split(take(m.geom_size, ids))
            dist = DISTANCES[geom_type](size, p, v)
            if front_only and geom_type != GeomType.PLANE:
                outward = NORMALS[geom_type](size, points_or_origins(p, v, dist))
                can_meet = can_meet & (sum(x * y for x, y in zip(outward, v, strict=True)) < 0)
            dist = jnp.where(can_meet, dist, jnp.inf)
            geom, part = jnp.broadcast_to(ids, dist.shape), jnp.zeros(dist.shape, jnp.int32)
        elif geom_type == GeomType.MESH:
            dist, index_of_geom, part = (x[:, None] for x in ray_mesh.search(m, ids, p, v, can_meet, front_only))
            geom = gather(jnp.asarray(ids), index_of_geom)
        elif geom_type == GeomType.HFIELD:
            found = [
                ray_hfield.search(m, g, c.vector(x[:, i] for x in p), c.vector(x[:, i] for x in v), front_only)
                for i, g in enumerate(ids)
            ]
            dist = jnp.where(can_meet, jnp.stack([f.dist for f in found], 1), jnp.inf)
            geom, part = jnp.broadcast_to(ids, dist.shape), jnp.stack([f.part for f in found], 1)
        elif geom_type == GeomType.SDF:
            dist = jnp.where(can_meet, ray_sdf.search(m, ids, p, v, front_only), jnp.inf)
            geom, part = jnp.broadcast_to(ids, dist.shape), jnp.zeros(dist.shape, jnp.int32)
        else:
            raise UnsupportedError(f"rays against geoms of type {GeomType(geom_type).name.lower()} are not supported")
        dists.append(dist)
        geom_ids.append(geom.astype(jnp.int32))
        parts.append(part)
    dist, geom, part = (jnp.concatenate(x, axis=1) for x in (dists, geom_ids, parts))
    best = jnp.min(dist, axis=1, keepdims=True)
    # at equal distance, the first geom
    first = jnp.argmin(jnp.where(dist == best, geom, m.ngeom), axis=1)[:, None]
    geom, part = (jnp.take_along_axis(x, first, axis=1)[:, 0] for x in (geom, part))
    return geom, part, jnp.isfinite(best[:, 0])


def _in_geom_frames(pos: Array, mat: Array, pnt: Array, vec: Array) -> tuple[Vector, Vector]:
    """Transform rays to the frames of geoms, as components; all broadcast."""
    offset = c.split(pnt - pos)
    vec = c.split(vec)
    rows = [[mat[..., j, i] for j in range(3)] for i in range(3)]
    pos, direction = (c.vector(sum(r * x for r, x in zip(row, a, strict=True)) for row in rows) for a in (offset, vec))
    return pos, direction


def measure(
    m: Model, d: Data, pnt: Array, vec: Array, geoms: np.ndarray, geom: Array, part: Array
) -> tuple[Array, Array]:
    """Compute distances (n,) along rays to the surfaces of the geoms (n,) that they hit, and unit normals (n, 3)."""
    mat = gather(d.geom_xmat, geom).reshape(-1, 3, 3)
    offset = pnt - gather(d.geom_xpos, geom)
    p, v = c.split(matvec_t(mat, offset)), c.split(matvec_t(mat, vec))
    size = c.split(gather(m.geom_size, geom))
    types = jnp.asarray(m.geom_type)[geom]
    found = []  # which rays, with their distances and normals
    for geom_type in np.unique(m.geom_type[geoms]):
        applies, ids = types == geom_type, geoms[m.geom_type[geoms] == geom_type]
        if geom_type in DISTANCES:
            t = DISTANCES[geom_type](size, p, v)
            found.append((applies, t, c.join(NORMALS[geom_type](size, points_or_origins(p, v, t)))))
        elif geom_type == GeomType.MESH:
            plane = ray_mesh.plane_of(m, jnp.where(applies, part, 0))
            found.append((applies, *_distance_to_plane(*plane, p, v)))
        elif geom_type == GeomType.SDF:
            found.append((applies, *ray_sdf.measure(m, ids, jnp.where(applies, geom, ids[0]), p, v)))
        else:
            for g in ids:
                plane = ray_hfield.plane_of(m, ray_hfield.hfield_grid(m, g), jnp.where(geom == g, part, -1))
                found.append((geom == g, *_distance_to_plane(*plane, p, v)))
    dist, normal = jnp.full(len(geom), jnp.inf, vec.dtype), jnp.zeros_like(vec)
    for applies, t, surface_normal in found:
        dist, normal = jnp.where(applies, t, dist), jnp.where(applies[:, None], surface_normal, normal)
    return dist, matvec(mat, safe.normalize(normal)[0])


def _distance_to_plane(point: Array, normal: Array, p: Vector, v: Vector) -> tuple[Array, Array]:
    """Return the distance along rays to planes, and the planes' normals."""
    return safe.divide(inner(normal, point - c.join(p)), inner(normal, c.join(v))), normal


def rays_meet_shapes(types: np.ndarray, size: Array, origin: Array, direction: Array) -> Array:
    """Return whether rays hit the surfaces of shapes: (k, n).

    Args:
        types: (k,) static GeomType: a primitive.
        size: (k, 3).
        origin, direction: (k, n, 3), in the frame of the shape.
    """
    xp = xp_of(size, origin)
    size, p, v = c.split(size[:, None]), c.split(origin), c.split(direction)
    tests = [
        (types == shape_type)[:, None] & xp.isfinite(DISTANCES[shape_type](size, p, v))
        for shape_type in np.unique(types)
    ]
    return functools.reduce(operator.or_, tests)
