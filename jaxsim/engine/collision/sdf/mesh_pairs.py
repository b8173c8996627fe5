"""Meshes against signed distance fields: in each triangle near the field, descents to the deepest of its points.

Descents go by the method of Frank and Wolfe: each step leads towards the corner that lies lowest along the field's
slope, so that a point is a mean of corners. Weights are searched without derivatives; points, distances and normals
follow from them by differentiable formulas.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MAXCONPAIR, MINVAL
from jaxsim.engine.collision.sdf.field import Field, fields_of
from jaxsim.engine.collision.sdf.sdf import distance_of, gradient_of, halton, known
from jaxsim.engine.collision.shapes import Geoms, Hits, unit
from jaxsim.math import safe
from jaxsim.math.arrays import gather, inner, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array

CHUNK = 128  # triangles that are searched at a time
SHALLOW = 0.1  # a tetrahedron over a triangle that is lower than this is not looked at
HEIGHT = 0.1  # of that tetrahedron, relative to the distance of the triangle's centre


class Trees(NamedTuple):
    """Bounding volumes of meshes in the order of the reference's walk, one row a mesh; missing ones are not real.

    `box` (r, N, 6) of the nodes, `parent` (r, N) their places; `face` (r, F, 3) the vertices of the triangles, in the
    order in which the walk meets them, `leaf` (r, F) their nodes; `depth` of the deepest tree; `of_geom` (ngeom,) rows.
    """

    box: np.ndarray
    parent: np.ndarray
    face: np.ndarray
    leaf: np.ndarray
    real: np.ndarray
    depth: int
    of_geom: np.ndarray


class MeshSdfContext(NamedTuple):
    """The fields of the second geoms, the trees and vertices of the first, weights to start at (s, 3), steps."""

    fields: tuple[np.ndarray, dict[int, Field]]
    trees: Trees
    vert: Array
    start: np.ndarray
    iterations: int


def setup(m: Any, g1: np.ndarray, g2: np.ndarray) -> MeshSdfContext:
    """The context of pairs of meshes g1 and geoms of signed distance g2 (n,)."""
    u, v = (halton(max(int(m.opt.sdf_initpoints), 1) + 1, base)[1:] for base in (2, 3))
    over = u + v > 1
    u, v = np.where(over, 1 - u, u), np.where(over, 1 - v, v)
    start = np.stack([1 - u - v, u, v], axis=-1)
    return MeshSdfContext(fields_of(m, g2), _trees(m, g1), m.mesh_vert, start, int(m.opt.sdf_iterations))


def _trees(m: Any, geoms: np.ndarray) -> Trees:
    meshes = np.unique(m.geom_dataid[geoms])
    rows = [_walk(m, mesh) for mesh in meshes]
    width = np.max([(len(row[0]), len(row[2])) for row in rows], axis=0)

    def table(i: int, n: int) -> np.ndarray:
        return np.stack([np.pad(row[i], [(0, n - len(row[i]))] + [(0, 0)] * (row[i].ndim - 1)) for row in rows])

    nodes, faces = ([table(i, n) for i in part] for part, n in zip(((0, 1), (2, 3)), width, strict=True))
    real = np.stack([np.arange(width[1]) < len(row[2]) for row in rows])
    of_geom = np.searchsorted(meshes, m.geom_dataid).clip(0, len(meshes) - 1).astype(np.int32)
    return Trees(*nodes, *faces, real, max(row[4] for row in rows), of_geom)


def _walk(m: Any, mesh: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """Boxes and parents of a mesh's nodes, its triangles and their nodes as a walk meets them, and the tree's depth."""
    nodes = slice(m.mesh_bvhadr[mesh], m.mesh_bvhadr[mesh] + m.mesh_bvhnum[mesh])
    child, face = m.bvh_child[nodes], m.bvh_nodeid[nodes]
    parent = np.zeros(len(child), np.int32)
    inner_node, side = np.nonzero(child >= 0)
    parent[child[inner_node, side]] = inner_node
    order, stack = [], [0]
    while stack:  # the second child first
        node = stack.pop()
        order += [node] if face[node] >= 0 else []
        stack += [c for c in child[node] if c >= 0]
    leaf = np.array(order, np.int32)
    vertices = m.mesh_vertadr[mesh] + m.mesh_face[m.mesh_faceadr[mesh] + face[leaf]]
    return m.bvh_aabb[nodes], parent, vertices.astype(np.int32), leaf, int(m.bvh_depth[nodes].max(initial=0))


def mesh_sdf(c: MeshSdfContext, a: Geoms, b: Geoms, margin: Array) -> Hits:
    """A mesh and a field: a contact for each point found inside, the first 50 as the walk meets them.

    `margin` plays no part, as in the reference.
    """
    row = jnp.asarray(c.trees.of_geom)[a.id]
    rel, offset = jnp.sum(b.mat[:, :, :, None] * a.mat[:, :, None, :], axis=1), matvec_t(b.mat, a.pos - b.pos)
    corner = matvec(rel[:, None, None], gather(c.vert, jnp.asarray(c.trees.face)[row])) + offset[:, None, None]
    at, weight = _search(c, b, row, *jax.lax.stop_gradient((rel, offset, corner)))

    corner = jnp.take_along_axis(corner, jnp.maximum(at, 0)[..., None, None], axis=1)
    x = jnp.swapaxes(jnp.sum(weight[..., None] * corner, axis=2), 0, 1)  # (50, n, 3), in the frame of b
    dist = distance_of(c.fields, b, x)
    inward, length = unit(-gradient_of(c.fields, b, x))
    valid = (at >= 0).T & (dist <= 0)
    valid &= ~known(jax.lax.stop_gradient(x), valid) & (length >= MINVAL)
    normal = matvec(b.mat, inward)
    pos = b.pos + matvec(b.mat, x) - 0.5 * dist[..., None] * normal
    return Hits(*(jnp.swapaxes(part, 0, 1) for part in (dist, pos, normal, valid)))


def _near(c: MeshSdfContext, b: Geoms, row: Array, rel: Array, offset: Array, corner: Array) -> Array:
    """Which triangles (n, F) a walk down the trees reaches and that may touch the field."""
    box = jnp.asarray(c.trees.box, corner.dtype)[row]
    centre = matvec(rel[:, None], box[..., :3]) + offset[:, None]
    reached = _distances(c, b, centre) < safe.norm(box[..., 3:])
    parent = jnp.asarray(c.trees.parent)[row]
    for _ in range(int(np.ceil(np.log2(c.trees.depth + 1)))):
        reached &= jnp.take_along_axis(reached, parent, axis=1)
        parent = jnp.take_along_axis(parent, parent, axis=1)
    reached = jnp.take_along_axis(reached, jnp.asarray(c.trees.leaf)[row], axis=1)
    return reached & jnp.asarray(c.trees.real)[row] & _touches(c, b, corner)


def _distances(c: MeshSdfContext, b: Geoms, x: Array) -> Array:
    """Distances (n, k) of points (n, k, 3)."""
    return distance_of(c.fields, b, jnp.swapaxes(x, 0, 1)).T


def _touches(c: MeshSdfContext, b: Geoms, corner: Array) -> Array:
    """Whether the field reaches into a sphere around each triangle (n, F, 3, 3): of the triangle, or of a tetrahedron
    over it whose height goes with the distance of its centre."""
    first, second, third = (corner[..., i, :] for i in range(3))
    along, across = second - first, third - first
    middle = (first + second + third) / 3
    dist = _distances(c, b, middle)
    sides = [safe.norm(x) for x in (along, third - second, across)]
    half = sum(sides) / 2
    area = safe.sqrt(half * (half - sides[0]) * (half - sides[1]) * (half - sides[2]))
    circle = sides[0] * sides[1] * sides[2] / (4 * jnp.maximum(area, MINVAL))

    height = -HEIGHT * dist
    tip = middle - height[..., None] * unit(cross(along, across))[0]
    v = [x - tip for x in (first, second, third)]
    turned = [cross(v[1], v[2]), cross(v[2], v[0]), cross(v[0], v[1])]
    volume = 2 * inner(v[0], turned[0])
    centre = sum(inner(x, x)[..., None] * t for x, t in zip(v, turned, strict=True))
    centre = safe.divide(centre, volume[..., None])
    inside = _distances(c, b, centre + tip) < safe.norm(centre)
    inside = jnp.where(jnp.abs(volume) < MINVAL, dist < sides[0], inside)
    return jnp.where(jnp.abs(height) < SHALLOW, dist < circle, inside)


def _search(c: MeshSdfContext, b: Geoms, row: Array, rel: Array, offset: Array, corner: Array) -> tuple[Array, Array]:
    """The first points inside the field: their triangles (n, 50), -1 where there is none, and weights (n, 50, 3)."""
    n, width = corner.shape[:2]
    near = _near(c, b, row, rel, offset, corner).reshape(-1)
    total = jnp.cumsum(near, dtype=jnp.int32)
    empty = jnp.full((n, MAXCONPAIR), -1, jnp.int32), jnp.zeros((n, MAXCONPAIR, 3), corner.dtype)

    def more(state: tuple) -> Array:
        done, count, _ = state
        return (done < total[-1]) & jnp.any(count < MAXCONPAIR)

    def visit(state: tuple) -> tuple:
        done, count, (at, weight) = state
        rank = done + jnp.arange(1, CHUNK + 1, dtype=jnp.int32)
        lane = jnp.minimum(jnp.searchsorted(total, rank, method="scan_unrolled"), len(near) - 1).astype(jnp.int32)
        pair, triangle = lane // width, lane % width
        end, deep = _descend(c, Geoms(*[x[pair] for x in b[:3]], jnp.asarray(b.id)[pair]), corner[pair, triangle])
        hit = (deep & (rank <= total[-1])).T.reshape(-1)  # triangle by triangle
        pair, triangle = (jnp.repeat(x, len(c.start)) for x in (pair, triangle))
        ours = hit & (pair == jnp.arange(n)[:, None])
        place = count[:, None] + jnp.cumsum(ours, axis=1, dtype=jnp.int32) - 1
        place = jnp.where(ours & (place < MAXCONPAIR), place, MAXCONPAIR)
        place = jnp.take_along_axis(place, pair[None], axis=0)[0]
        at = at.at[pair, place].set(triangle, mode="drop")
        weight = weight.at[pair, place].set(jnp.swapaxes(end, 0, 1).reshape(-1, 3), mode="drop")
        return done + CHUNK, count + jnp.sum(ours, axis=1, dtype=jnp.int32), (at, weight)

    start = jnp.int32(0), jnp.zeros(n, jnp.int32), empty
    return jax.lax.while_loop(more, visit, start)[2]


def _descend(c: MeshSdfContext, b: Geoms, corner: Array) -> tuple[Array, Array]:
    """Weights (s, k, 3) of the points of triangles (k, 3, 3) where the descents end, and whether they are inside."""
    start = jnp.broadcast_to(jnp.asarray(c.start, corner.dtype)[:, None], (len(c.start), len(corner), 3))

    def point(weight: Array) -> Array:
        return jnp.sum(weight[..., None] * corner, axis=-2)

    def step(weight: Array, k: Array) -> tuple[Array, None]:
        slope = gradient_of(c.fields, b, point(weight))
        lowest = jnp.argmin(inner(corner, slope[..., None, :]), axis=-1)[..., None] == np.arange(3)
        share = 2 / (k + 2).astype(weight.dtype)
        return jnp.where(k == 0, lowest, weight + share * (lowest - weight)).astype(weight.dtype), None

    weight, _ = jax.lax.scan(step, start, jnp.arange(c.iterations, dtype=jnp.int32))
    return weight, distance_of(c.fields, b, point(weight)) < 0
