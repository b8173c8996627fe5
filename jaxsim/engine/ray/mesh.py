"""Rays against triangles of meshes: all at once for small meshes, along the meshes' own hierarchies for large ones.

The searches say which triangle a ray meets first. They see no gradients: the caller measures the distance again, to the
plane of that triangle.
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

BRUTE_FACES = 64  # up to this many triangles of all mesh geoms are tested one by one


class Found(NamedTuple):
    """What rays (n,) meet first: distance, infinite if nothing, the geom's place in a list, the part of its surface."""

    dist: Array
    place: Array
    part: Array


class Triangles(NamedTuple):
    """The triangles of all meshes in use: vertices as a mesh's row in `mesh_vert`, and the first of each mesh."""

    vertex: np.ndarray
    first: np.ndarray


@per_structure
def triangles(m: Any) -> Triangles:
    """All faces of all meshes, by their places in `mesh_vert`."""
    owner = np.repeat(np.arange(m.nmesh), m.mesh_facenum)
    return Triangles((m.mesh_face + m.mesh_vertadr[owner][:, None]).astype(np.int32), m.mesh_faceadr)


def meet(v0: Vector, v1: Vector, v2: Vector, p: Vector, v: Vector, front: bool) -> Array:
    """Where rays meet triangles, from either side or only from the front; infinite where they do not."""
    a, b, start = c.sub(v1, v0), c.sub(v2, v0), c.sub(p, v0)
    normal = c.cross(a, b)
    slope = _dot(normal, v)
    turn = c.cross(start, v)
    # the areas that the ray's line makes with two sides, of one sign with the triangle's inside it
    first, second = -_dot(turn, b), _dot(turn, a)
    sign = jnp.sign(slope)
    first, second, size = first * sign, second * sign, jnp.abs(slope)
    ok = (size >= MINVAL) & (first >= 0) & (second >= 0) & (first + second <= size)
    ok &= (slope < 0) | (not front)
    t = -_dot(start, normal) / jnp.where(ok, slope, 1)
    return jnp.where(ok & (t >= 0), t, jnp.inf)


def _dot(a: Vector, b: Vector) -> Array:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def plane_of(m: Any, triangle: Array) -> tuple[Array, Array]:
    """A point and the unit normal of the planes of triangles (n,), in the frames of their meshes."""
    corner = gather(m.mesh_vert, gather(jnp.asarray(triangles(m).vertex), triangle))
    v0, v1, v2 = corner[:, 0], corner[:, 1], corner[:, 2]
    return v0, c.join(c.cross(c.split(v1 - v0), c.split(v2 - v0)))


def few(m: Any, geoms: np.ndarray) -> bool:
    """Whether the meshes of these geoms are small enough to test every triangle."""
    return int(m.mesh_facenum[m.geom_dataid[geoms]].sum()) <= BRUTE_FACES


def search_all(m: Any, geoms: np.ndarray, p: Vector, v: Vector, able: Array, front: bool) -> Found:
    """The first triangle on each ray, of all triangles.

    Args:
        geoms: (k,) static ids of mesh geoms.
        p, v: components (n, k), the rays in the frames of the geoms.
        able: (n or 1, k), which geoms each ray can meet.
        front: whether triangles are only met from the front.
    """
    mesh = m.geom_dataid[geoms]
    place = np.repeat(np.arange(len(geoms)), m.mesh_facenum[mesh])
    face = np.concatenate([m.mesh_faceadr[i] + np.arange(m.mesh_facenum[i]) for i in mesh])
    corner = take(m.mesh_vert, triangles(m).vertex[face])
    corners = [tuple(corner[:, i, j] for j in range(3)) for i in range(3)]
    p, v = (tuple(take(x.T, place).T for x in a) for a in (p, v))
    t = jnp.where(take(able.T, place).T, meet(*corners, p, v, front), jnp.inf)
    best = jnp.argmin(t, axis=1)
    dist = jnp.take_along_axis(t, best[:, None], axis=1)[:, 0]
    return Found(dist, gather(jnp.asarray(place), best), gather(jnp.asarray(face), best))


class Ropes(NamedTuple):
    """Hierarchies of meshes, node after node, depth first: a ray that misses a node's box goes on at `skip`.

    `box` (nodes, 6) centre and half sizes; `face` (nodes,) the triangle of a leaf, -1 for inner nodes; `start` and
    `end` (nmesh,) the nodes of a mesh.
    """

    box: np.ndarray
    face: np.ndarray
    skip: np.ndarray
    start: np.ndarray
    end: np.ndarray


@per_structure
def ropes(m: Any) -> Ropes:
    """The meshes' hierarchies as ropes."""
    start, end = m.mesh_bvhadr, m.mesh_bvhadr + m.mesh_bvhnum
    owner = np.full(m.nbvh, -1)
    for mesh in range(m.nmesh):
        owner[start[mesh] : end[mesh]] = mesh
    mine = np.flatnonzero(owner >= 0)
    skip = np.zeros(m.nbvh, np.int32)
    skip[start] = end
    child = np.where(m.bvh_child < 0, -1, m.bvh_child + start[owner][:, None])
    for depth in range(int(m.bvh_depth[mine].max(initial=0))):
        parent = mine[(m.bvh_depth[mine] == depth) & (child[mine, 0] >= 0)]
        left, right = child[parent].T
        skip[left], skip[right] = right, skip[parent]
    face = np.where(m.bvh_nodeid < 0, -1, m.bvh_nodeid + m.mesh_faceadr[owner])
    box = np.zeros((m.nbvh, 6))
    box[mine] = m.bvh_aabb[mine]
    return Ropes(box, face.astype(np.int32), skip, start.astype(np.int32), end.astype(np.int32))


class _Walk(NamedTuple):
    place: Array
    node: Array
    found: Found


def search_tree(m: Any, geoms: np.ndarray, p: Vector, v: Vector, able: Array, front: bool) -> Found:
    """The same as `search_all`, walking the meshes' hierarchies: every ray on its own, in one loop for all."""
    rope, mesh = ropes(m), m.geom_dataid[geoms]
    dtype, k = p[0].dtype, len(geoms)
    start = jnp.asarray(np.append(rope.start[mesh], 0))
    end = jnp.asarray(rope.end[mesh])
    table = jnp.asarray(
        np.concatenate([rope.box[:, :3] - rope.box[:, 3:], rope.box[:, :3] + rope.box[:, 3:]], 1), dtype
    )
    links = jnp.asarray(np.stack([rope.face, rope.skip], axis=1))
    corner = take(m.mesh_vert, triangles(m).vertex).reshape(-1, 9)
    able = jnp.broadcast_to(able, p[0].shape)

    def walk(p: Array, v: Array, able: Array) -> Found:
        def step(s: _Walk) -> _Walk:
            origin, way, box = gather(p, s.place), gather(v, s.place), gather(table, s.node)
            face, skip = gather(links, s.node)
            inside = gather(able, s.place) & _crosses(box, origin, way, s.found.dist)
            leaf = inside & (face >= 0)
            corners = gather(corner, jnp.maximum(face, 0))
            t = meet(*(tuple(corners[i : i + 3]) for i in (0, 3, 6)), tuple(origin), tuple(way), front)
            better = leaf & (t < s.found.dist)
            new = Found(t, s.place, face)
            found = jax.tree.map(lambda a, b: jnp.where(better, b, a), s.found, new)
            node = jnp.where(inside & ~leaf, s.node + 1, skip)
            node = jnp.where(gather(able, s.place), node, gather(end, s.place))
            done = node >= gather(end, s.place)
            place = s.place + done
            return _Walk(place, jnp.where(done, gather(start, place), node), found)

        nothing = Found(jnp.array(jnp.inf, dtype), jnp.int32(0), jnp.int32(0))
        return jax.lax.while_loop(lambda s: s.place < k, step, _Walk(jnp.int32(0), start[0], nothing)).found

    return jax.vmap(walk)(jnp.stack(p, axis=-1), jnp.stack(v, axis=-1), able)


def _crosses(box: Array, p: Array, v: Array, reach: Array) -> Array:
    """Whether a ray meets a box before `reach`; boxes are widened by what rounding can lose."""
    slope = jnp.where(jnp.abs(v) > MINVAL, v, MINVAL)
    a, b = (box[:3] - p) / slope, (box[3:] - p) / slope
    slack = 4 * jnp.finfo(p.dtype).eps
    enter = jnp.max(jnp.minimum(a, b))
    leave = jnp.min(jnp.maximum(a, b))
    leave = leave + slack * (jnp.abs(leave) + jnp.abs(enter))
    return (enter <= leave) & (leave >= 0) & (enter <= reach)


def search(m: Any, geoms: np.ndarray, p: Vector, v: Vector, able: Array, front: bool) -> Found:
    """The first triangle on each ray (n,): its distance, the place of its geom among `geoms`, its number."""
    return (search_all if few(m, geoms) else search_tree)(m, geoms, p, v, able, front)
