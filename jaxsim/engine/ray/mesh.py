"""Rays against triangles of meshes: every one for small meshes, by bounding volume hierarchies for large ones.

The searches find the triangle that a ray hits first, without derivatives. The caller computes the distance to the plane
of that triangle again, differentiably.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.structure import per_structure
from jaxsim.core.types import MINVAL
from jaxsim.math import component as c
from jaxsim.math.arrays import gather, take
from jaxsim.math.component import Vector
from jaxsim.math.safe import Array

BRUTE_FORCE_MAX_TRIANGLES = 64  # with at most this many triangles of all mesh geoms, every one is tested


class FirstHit(NamedTuple):
    """First hits of rays (n,): distance, infinite if none, the geom's index in a list, the part of its surface."""

    dist: Array
    index: Array
    part: Array


class MeshTriangles(NamedTuple):
    """The triangles of all meshes: vertices as rows of `mesh_vert`, and the first triangle of each mesh."""

    vertex: np.ndarray
    first: np.ndarray


@per_structure
def mesh_triangles(m: Any) -> MeshTriangles:
    """Return the triangles of all meshes, with vertices as rows of `mesh_vert`."""
    owner = np.repeat(np.arange(m.nmesh), m.mesh_facenum)
    return MeshTriangles((m.mesh_face + m.mesh_vertadr[owner][:, None]).astype(np.int32), m.mesh_faceadr)


def ray_triangle(v0: Vector, v1: Vector, v2: Vector, p: Vector, v: Vector, front_only: bool) -> Array:
    """Return distances along rays to triangles, from both sides or only from the front; infinite without a hit.

    Source: Moller and Trumbore (1997), Fast, minimum storage ray/triangle intersection.
    """
    a, b, start = c.sub(v1, v0), c.sub(v2, v0), c.sub(p, v0)
    normal = c.cross(a, b)
    approach = c.dot(normal, v)
    moment = c.cross(start, v)
    # barycentric coordinates times the scale; all have the sign of `approach` inside the triangle
    first, second = -c.dot(moment, b), c.dot(moment, a)
    sign = jnp.sign(approach)
    first, second, scale = first * sign, second * sign, jnp.abs(approach)
    ok = (scale >= MINVAL) & (first >= 0) & (second >= 0) & (first + second <= scale)
    ok &= (approach < 0) | (not front_only)
    t = -c.dot(start, normal) / jnp.where(ok, approach, 1)
    return jnp.where(ok & (t >= 0), t, jnp.inf)


def plane_of(m: Any, triangle: Array) -> tuple[Array, Array]:
    """Return a point and a normal, of any length, of the planes of triangles (n,), in the frames of their meshes."""
    corner = gather(m.mesh_vert, gather(jnp.asarray(mesh_triangles(m).vertex), triangle))
    v0, v1, v2 = corner[:, 0], corner[:, 1], corner[:, 2]
    return v0, c.join(c.cross(c.split(v1 - v0), c.split(v2 - v0)))


def is_brute_force(m: Any, geoms: np.ndarray) -> bool:
    """Return whether the meshes of these geoms are small enough to test every triangle."""
    return int(m.mesh_facenum[m.geom_dataid[geoms]].sum()) <= BRUTE_FORCE_MAX_TRIANGLES


def search_brute_force(m: Any, geoms: np.ndarray, p: Vector, v: Vector, allowed: Array, front_only: bool) -> FirstHit:
    """Find the first triangle on each ray, by a test of every triangle.

    Args:
        geoms: (k,) static ids of mesh geoms.
        p, v: components (n, k), the rays in the frames of the geoms.
        allowed: (n or 1, k), mask of geoms for each ray.
        front_only: whether triangles are hit from the front only.
    """
    mesh = m.geom_dataid[geoms]
    index = np.repeat(np.arange(len(geoms)), m.mesh_facenum[mesh])
    face = np.concatenate([m.mesh_faceadr[i] + np.arange(m.mesh_facenum[i]) for i in mesh])
    corner = take(m.mesh_vert, mesh_triangles(m).vertex[face])
    v0, v1, v2 = (c.vector(corner[:, i, j] for j in range(3)) for i in range(3))
    p, v = (c.vector(take(x.T, index).T for x in a) for a in (p, v))
    t = jnp.where(take(allowed.T, index).T, ray_triangle(v0, v1, v2, p, v, front_only), jnp.inf)
    best = jnp.argmin(t, axis=1)
    dist = jnp.take_along_axis(t, best[:, None], axis=1)[:, 0]
    return FirstHit(dist, gather(jnp.asarray(index), best), gather(jnp.asarray(face), best))


class SkipLinkBvh(NamedTuple):
    """Bounding volume hierarchies of meshes with skip links, for traversal without a stack; nodes in depth-first order.

    A ray that misses the box of a node continues at its `skip`. `box` (nodes, 6) are centre and half sizes; `face`
    (nodes,) is the triangle of a leaf, -1 for inner nodes; `start` and `end` (nmesh,) are the nodes of each mesh.
    """

    box: np.ndarray
    face: np.ndarray
    skip: np.ndarray
    start: np.ndarray
    end: np.ndarray


@per_structure
def skip_link_bvh(m: Any) -> SkipLinkBvh:
    """Return the bounding volume hierarchies of all meshes, with skip links."""
    start, end = m.mesh_bvhadr, m.mesh_bvhadr + m.mesh_bvhnum
    owner = np.full(m.nbvh, -1)
    for mesh in range(m.nmesh):
        owner[start[mesh] : end[mesh]] = mesh
    nodes = np.flatnonzero(owner >= 0)
    skip = np.zeros(m.nbvh, np.int32)
    skip[start] = end
    child = np.where(m.bvh_child < 0, -1, m.bvh_child + start[owner][:, None])
    for depth in range(int(m.bvh_depth[nodes].max(initial=0))):
        parent = nodes[(m.bvh_depth[nodes] == depth) & (child[nodes, 0] >= 0)]
        left, right = child[parent].T
        skip[left], skip[right] = right, skip[parent]
    face = np.where(m.bvh_nodeid < 0, -1, m.bvh_nodeid + m.mesh_faceadr[owner])
    box = np.zeros((m.nbvh, 6))
    box[nodes] = m.bvh_aabb[nodes]
    return SkipLinkBvh(box, face.astype(np.int32), skip, start.astype(np.int32), end.astype(np.int32))


class _TraversalState(NamedTuple):
    index: Array
    node: Array
    hit: FirstHit


def search_bvh(m: Any, geoms: np.ndarray, p: Vector, v: Vector, allowed: Array, front_only: bool) -> FirstHit:
    """Find the first triangle on each ray, arguments as in `search_brute_force`, by traversal of the hierarchies."""
    bvh, mesh = skip_link_bvh(m), m.geom_dataid[geoms]
    dtype, k = p[0].dtype, len(geoms)
    start = jnp.asarray(np.append(bvh.start[mesh], 0))
    end = jnp.asarray(bvh.end[mesh])
    table = jnp.asarray(np.concatenate([bvh.box[:, :3] - bvh.box[:, 3:], bvh.box[:, :3] + bvh.box[:, 3:]], 1), dtype)
    face_and_skip = jnp.asarray(np.stack([bvh.face, bvh.skip], axis=1))
    corner = take(m.mesh_vert, mesh_triangles(m).vertex).reshape(-1, 9)
    allowed = jnp.broadcast_to(allowed, p[0].shape)

    def traverse(p: Array, v: Array, allowed: Array) -> FirstHit:
        def step(s: _TraversalState) -> _TraversalState:
            origin, direction, box = gather(p, s.index), gather(v, s.index), gather(table, s.node)
            face, skip = gather(face_and_skip, s.node)
            inside = gather(allowed, s.index) & _meets_box(box, origin, direction, s.hit.dist)
            leaf = inside & (face >= 0)
            corners = gather(corner, jnp.maximum(face, 0))
            v0, v1, v2 = (c.vector(corners[i : i + 3]) for i in (0, 3, 6))
            t = ray_triangle(v0, v1, v2, c.vector(origin), c.vector(direction), front_only)
            nearer = leaf & (t < s.hit.dist)
            new = FirstHit(t, s.index, face)
            hit = jax.tree.map(lambda a, b: jnp.where(nearer, b, a), s.hit, new)
            node = jnp.where(inside & ~leaf, s.node + 1, skip)
            node = jnp.where(gather(allowed, s.index), node, gather(end, s.index))
            done = node >= gather(end, s.index)
            index = s.index + done
            return _TraversalState(index, jnp.where(done, gather(start, index), node), hit)

        no_hit = FirstHit(jnp.array(jnp.inf, dtype), jnp.int32(0), jnp.int32(0))
        return jax.lax.while_loop(lambda s: s.index < k, step, _TraversalState(jnp.int32(0), start[0], no_hit)).hit

    return jax.vmap(traverse)(jnp.stack(p, axis=-1), jnp.stack(v, axis=-1), allowed)


def _meets_box(box: Array, p: Array, v: Array, reach: Array) -> Array:
    """Return whether a ray hits a box before `reach`; boxes are widened by the possible rounding error."""
    divisor = jnp.where(jnp.abs(v) > MINVAL, v, MINVAL)
    a, b = (box[:3] - p) / divisor, (box[3:] - p) / divisor
    slack = 4 * jnp.finfo(p.dtype).eps
    enter = jnp.max(jnp.minimum(a, b))
    leave = jnp.min(jnp.maximum(a, b))
    leave = leave + slack * (jnp.abs(leave) + jnp.abs(enter))
    return (enter <= leave) & (leave >= 0) & (enter <= reach)


def search(m: Any, geoms: np.ndarray, p: Vector, v: Vector, allowed: Array, front_only: bool) -> FirstHit:
    """Find the first triangle on each ray (n,): distance, index of its geom in `geoms`, and triangle."""
    return (search_brute_force if is_brute_force(m, geoms) else search_bvh)(m, geoms, p, v, allowed, front_only)
