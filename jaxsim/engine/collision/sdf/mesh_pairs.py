"""Collider of meshes and signed distance fields: descents to the deepest points of each triangle near the field.

Descents use the method of Frank and Wolfe (1956): each step moves towards the corner that is lowest along the field's
gradient, so that a point is a weighted mean of corners (Macklin et al. 2020, Local optimization for robust signed
distance field collision). The weights are searched without derivatives; points, distances and normals follow from them
by differentiable formulas.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MAXCONPAIR, MINVAL
from jaxsim.engine.collision.sdf.sdf import halton, is_repeated
from jaxsim.engine.collision.shapes import Geoms, PairContacts, unit
from jaxsim.engine.structure.distance_field import Fields, distance_fields, distance_of, gradient_of
from jaxsim.math import safe
from jaxsim.math.arrays import gather, inner, matmul_t, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array

TRIANGLE_CHUNK = 128  # triangles in one step of the search
TETRAHEDRON_MIN_HEIGHT = 0.1  # a lower tetrahedron over a triangle is replaced by the triangle
TETRAHEDRON_HEIGHT_RATIO = 0.1  # of that tetrahedron's height to the distance of the triangle's centre


class BvhTable(NamedTuple):
    """Bounding volume hierarchies of meshes, one row per mesh, padded.

    `box` (r, N, 6) of the nodes, `parent` (r, N) their indices; `face` (r, F, 3) the vertices of the triangles in the
    order of MuJoCo's traversal, `leaf` (r, F) their nodes, `real` (r, F) the mask without padding; `depth` of the
    deepest tree; `of_geom` (ngeom,) the row of each geom.
    """

    box: np.ndarray
    parent: np.ndarray
    face: np.ndarray
    leaf: np.ndarray
    real: np.ndarray
    depth: int
    of_geom: np.ndarray


class Descents(NamedTuple):
    """Settings of the search in triangles: the fields, starting weights (s, 3), number of steps."""

    fields: Fields
    start: np.ndarray
    iterations: int


class MeshSdfContext(NamedTuple):
    """Fields of the second geoms, settings of the search, hierarchies and vertices of the first geoms."""

    descents: Descents
    bvh: BvhTable
    vert: Array


def mesh_sdf_setup(m: Any, g1: np.ndarray, g2: np.ndarray) -> MeshSdfContext:
    """Return the context of pairs of meshes g1 and SDF geoms g2 (n,)."""
    return MeshSdfContext(descents_into(m, g2), _bvh_table(m, g1), m.mesh_vert)


def descents_into(m: Any, geoms: np.ndarray) -> Descents:
    """Return the settings of the search for triangles near these SDF geoms."""
    u, v = (halton(max(int(m.opt.sdf_initpoints), 1) + 1, base)[1:] for base in (2, 3))
    over = u + v > 1
    u, v = np.where(over, 1 - u, u), np.where(over, 1 - v, v)
    start = np.stack([1 - u - v, u, v], axis=-1)
    return Descents(distance_fields(m, geoms), start, int(m.opt.sdf_iterations))


def _bvh_table(m: Any, geoms: np.ndarray) -> BvhTable:
    """Return the bounding volume hierarchies of the meshes of these geoms."""
    meshes = np.unique(m.geom_dataid[geoms])
    rows = [_bvh_walk(m, mesh) for mesh in meshes]
    width = np.max([(len(row[0]), len(row[2])) for row in rows], axis=0)

    def table(parts: Iterable[np.ndarray], n: int) -> np.ndarray:
        return np.stack([np.pad(x, [(0, n - len(x))] + [(0, 0)] * (x.ndim - 1)) for x in parts])

    box, parent = table((row[0] for row in rows), width[0]), table((row[1] for row in rows), width[0])
    face, leaf = table((row[2] for row in rows), width[1]), table((row[3] for row in rows), width[1])
    real = np.stack([np.arange(width[1]) < len(row[2]) for row in rows])
    of_geom = np.searchsorted(meshes, m.geom_dataid).clip(0, len(meshes) - 1).astype(np.int32)
    return BvhTable(box, parent, face, leaf, real, max(row[4] for row in rows), of_geom)


def _bvh_walk(m: Any, mesh: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """Return boxes and parents of a mesh's nodes, triangles and leaves in traversal order, and the tree's depth."""
    nodes = slice(m.mesh_bvhadr[mesh], m.mesh_bvhadr[mesh] + m.mesh_bvhnum[mesh])
    child, face = m.bvh_child[nodes], m.bvh_nodeid[nodes]
    parent = np.zeros(len(child), np.int32)
    inner_node, side = np.nonzero(child >= 0)
    parent[child[inner_node, side]] = inner_node
    leaf = leaves_in_order(child, face)
    vertices = m.mesh_vertadr[mesh] + m.mesh_face[m.mesh_faceadr[mesh] + face[leaf]]
    return m.bvh_aabb[nodes], parent, vertices.astype(np.int32), leaf, int(m.bvh_depth[nodes].max(initial=0))


def leaves_in_order(child: np.ndarray, content: np.ndarray) -> np.ndarray:
    """Return the leaves of a tree in the order of MuJoCo's walk, the second child first.

    `child` (n, 2) are the children of its nodes and `content` (n,) what leaves hold; both -1 for none.
    """
    order, stack = [], [0] if len(content) else []
    while stack:
        node = stack.pop()
        order += [node] if content[node] >= 0 else []
        stack += [c for c in child[node] if c >= 0]
    return np.array(order, np.int32)


def mesh_sdf(c: MeshSdfContext, a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contacts of a mesh and a field: one per point found inside, the first 50 in the order of traversal.

    `margin` is not used, as in MuJoCo.
    """
    row = jnp.asarray(c.bvh.of_geom)[a.id]
    rel, offset = matmul_t(b.mat, a.mat), matvec_t(b.mat, a.pos - b.pos)
    corner = matvec(rel[:, None, None], gather(c.vert, jnp.asarray(c.bvh.face)[row])) + offset[:, None, None]
    triangle, weight = _points_inside(c, b, row, *jax.lax.stop_gradient((rel, offset, corner)))

    corner = jnp.take_along_axis(corner, jnp.maximum(triangle, 0)[..., None, None], axis=1)
    x = jnp.swapaxes(jnp.sum(weight[..., None] * corner, axis=2), 0, 1)  # (50, n, 3), in the frame of b
    dist = distance_of(c.descents.fields, b, x)
    inward, length = unit(-gradient_of(c.descents.fields, b, x))
    valid = (triangle >= 0).T & (dist <= 0)
    valid &= ~is_repeated(jax.lax.stop_gradient(x), valid) & (length >= MINVAL)
    normal = matvec(b.mat, inward)
    pos = b.pos + matvec(b.mat, x) - 0.5 * dist[..., None] * normal
    return PairContacts(*(jnp.swapaxes(part, 0, 1) for part in (dist, pos, normal, valid)))


def _near_triangles(c: MeshSdfContext, b: Geoms, row: Array, rel: Array, offset: Array, corner: Array) -> Array:
    """Return the mask of triangles (n, F) that a traversal of the hierarchies reaches and that may touch the field."""
    box = jnp.asarray(c.bvh.box, corner.dtype)[row]
    centre = matvec(rel[:, None], box[..., :3]) + offset[:, None]
    reached = _distances(c.descents, b, centre) < safe.norm(box[..., 3:])
    parent = jnp.asarray(c.bvh.parent)[row]
    for _ in range(int(np.ceil(np.log2(c.bvh.depth + 1)))):
        reached &= jnp.take_along_axis(reached, parent, axis=1)
        parent = jnp.take_along_axis(parent, parent, axis=1)
    reached = jnp.take_along_axis(reached, jnp.asarray(c.bvh.leaf)[row], axis=1)
    return reached & jnp.asarray(c.bvh.real)[row] & field_reaches(c.descents, b, corner)


def _distances(c: Descents, b: Geoms, x: Array) -> Array:
    """Return distances (n, k) of points (n, k, 3)."""
    return distance_of(c.fields, b, jnp.swapaxes(x, 0, 1)).T


def field_reaches(c: Descents, b: Geoms, corner: Array) -> Array:
    """Return whether the field reaches into a sphere around each triangle (n, F, 3, 3).

    The sphere encloses the triangle, or a tetrahedron over it whose height is proportional to its centre's distance.
    """
    first, second, third = (corner[..., i, :] for i in range(3))
    along, across = second - first, third - first
    middle = (first + second + third) / 3
    dist = _distances(c, b, middle)
    sides = [safe.norm(x) for x in (along, third - second, across)]
    half = sum(sides) / 2
    area = safe.sqrt(half * (half - sides[0]) * (half - sides[1]) * (half - sides[2]))
    circumradius = sides[0] * sides[1] * sides[2] / (4 * jnp.maximum(area, MINVAL))

    height = -TETRAHEDRON_HEIGHT_RATIO * dist
    tip = middle - height[..., None] * unit(cross(along, across))[0]
    v = [x - tip for x in (first, second, third)]
    turned = [cross(v[1], v[2]), cross(v[2], v[0]), cross(v[0], v[1])]
    volume = 2 * inner(v[0], turned[0])
    centre = sum(inner(x, x)[..., None] * t for x, t in zip(v, turned, strict=True))
    centre = safe.divide(centre, volume[..., None])
    inside = _distances(c, b, centre + tip) < safe.norm(centre)
    inside = jnp.where(jnp.abs(volume) < MINVAL, dist < sides[0], inside)
    return jnp.where(jnp.abs(height) < TETRAHEDRON_MIN_HEIGHT, dist < circumradius, inside)


def _points_inside(
    c: MeshSdfContext, b: Geoms, row: Array, rel: Array, offset: Array, corner: Array
) -> tuple[Array, Array]:
    """Find the first points inside the field: their triangles (n, 50), -1 for none, and weights (n, 50, 3)."""
    n, width = corner.shape[:2]
    is_near = _near_triangles(c, b, row, rel, offset, corner).reshape(-1)
    total = jnp.cumsum(is_near, dtype=jnp.int32)
    empty = jnp.full((n, MAXCONPAIR), -1, jnp.int32), jnp.zeros((n, MAXCONPAIR, 3), corner.dtype)

    def more(state: tuple) -> Array:
        done, count, _ = state
        return (done < total[-1]) & jnp.any(count < MAXCONPAIR)

    def visit(state: tuple) -> tuple:
        done, count, (triangles, weight) = state
        rank = done + jnp.arange(1, TRIANGLE_CHUNK + 1, dtype=jnp.int32)
        index = jnp.minimum(jnp.searchsorted(total, rank, method="scan_unrolled"), len(is_near) - 1).astype(jnp.int32)
        pair, triangle = index // width, index % width
        geoms = Geoms(b.pos[pair], b.mat[pair], b.size[pair], jnp.asarray(b.id)[pair])
        weights, is_inside = frank_wolfe(c.descents, geoms, corner[pair, triangle])
        hit = (is_inside & (rank <= total[-1])).T.reshape(-1)  # triangle by triangle
        pair, triangle = (jnp.repeat(x, len(c.descents.start)) for x in (pair, triangle))
        of_pair = hit & (pair == jnp.arange(n)[:, None])
        slot = count[:, None] + jnp.cumsum(of_pair, axis=1, dtype=jnp.int32) - 1
        slot = jnp.where(of_pair & (slot < MAXCONPAIR), slot, MAXCONPAIR)
        slot = jnp.take_along_axis(slot, pair[None], axis=0)[0]
        triangles = triangles.at[pair, slot].set(triangle, mode="drop")
        weight = weight.at[pair, slot].set(jnp.swapaxes(weights, 0, 1).reshape(-1, 3), mode="drop")
        return done + TRIANGLE_CHUNK, count + jnp.sum(of_pair, axis=1, dtype=jnp.int32), (triangles, weight)

    start = jnp.int32(0), jnp.zeros(n, jnp.int32), empty
    return jax.lax.while_loop(more, visit, start)[2]


def frank_wolfe(c: Descents, b: Geoms, corner: Array) -> tuple[Array, Array]:
    """Descend in triangles (k, 3, 3); return the weights (s, k, 3) of the points found, and whether they are inside."""
    start = jnp.broadcast_to(jnp.asarray(c.start, corner.dtype)[:, None], (len(c.start), len(corner), 3))

    def point(weight: Array) -> Array:
        return jnp.sum(weight[..., None] * corner, axis=-2)

    def step(weight: Array, k: Array) -> tuple[Array, None]:
        gradient = gradient_of(c.fields, b, point(weight))
        lowest = jnp.argmin(inner(corner, gradient[..., None, :]), axis=-1)[..., None] == np.arange(3)
        fraction = 2 / (k + 2).astype(weight.dtype)
        return jnp.where(k == 0, lowest, weight + fraction * (lowest - weight)).astype(weight.dtype), None

    weight, _ = jax.lax.scan(step, start, jnp.arange(c.iterations, dtype=jnp.int32))
    return weight, distance_of(c.fields, b, point(weight)) < 0
