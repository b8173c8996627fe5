"""Rays against one flex, drawn as vertices, edges, faces or a skin. Source: mj_rayFlex."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import GeomType
from jaxsim.engine.ray.mesh import ray_triangle
from jaxsim.engine.ray.primitive import DISTANCES, NORMALS, points_or_origins
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.interface.public import public
from jaxsim.math import component as c
from jaxsim.math.arrays import gather, inner, matvec, matvec_t, take
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, norm, normalize

# corners of the triangles of an element
FACES = {
    2: np.array([[0, 1, 2]], np.int32),
    3: np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]], np.int32),
}


@public(static=("flex_layer", "flg_vert", "flg_edge", "flg_face", "flg_skin", "flexid"))
def ray_flex(
    m: Model,
    d: Data,
    flex_layer: int,
    flg_vert: bool,
    flg_edge: bool,
    flg_face: bool,
    flg_skin: bool,
    flexid: int,
    pnt: Array,
    vec: Array,
) -> tuple[Array, Array, Array]:
    """Return the first surface of a flex on a ray, after `flex`. Source: mj_rayFlex.

    Args:
        flex_layer: the visible layer of tetrahedra, without a skin.
        flg_vert: whether vertices are visible, as in `mjvOption`; they count only without edges.
        flg_edge: whether edges are visible.
        flg_face: whether faces are visible.
        flg_skin: whether the skin is visible.
        flexid: the flex. All arguments up to here are known while tracing.
        pnt: (3,) origin, global.
        vec: (3,) direction, global; it need not have unit length.

    Returns:
        Distance in units of the length of `vec`, the nearest vertex of the flex, both -1 without a hit, and the
        surface's normal (3,), zero without a hit. Faces are hit from both sides.
    """
    pnt, vec = jnp.asarray(pnt, d.qpos.dtype), jnp.asarray(vec, d.qpos.dtype)
    skin = bool(flg_skin) and m.flex_dim[flexid] > 1
    parts = []
    if flg_edge or skin:
        parts.append(_edges(m, d, flexid, pnt, vec))
    elif flg_vert:
        parts.append(_vertices(m, d, flexid, pnt, vec))
    if m.flex_dim[flexid] > 1 and (flg_face or flg_skin):
        parts.append(_faces(m, d, _triangles(m, flexid, flex_layer, bool(flg_skin)), pnt, vec))
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return jnp.full((), -1, vec.dtype), jnp.int32(-1), jnp.zeros_like(vec)
    dist, normal, corner = (jnp.concatenate(x) for x in zip(*parts, strict=True))
    best = jnp.argmin(jax.lax.stop_gradient(dist))
    dist, normal, corner = dist[best], normal[best], corner[best]
    met = jnp.isfinite(dist)
    point = pnt + jnp.where(met, dist, 0) * vec
    nearest = corner[jnp.argmin(norm(gather(d.flexvert_xpos, corner) - point))]
    vertex = jnp.where(met, nearest - m.flex_vertadr[flexid], -1)
    return jnp.where(met, dist, -1), vertex, jnp.where(met, normalize(normal)[0], 0)


def _triangles(m: Any, flex: int, layer: int, skin: bool) -> np.ndarray:
    """Return the vertices (n, 3) of the visible faces."""
    dim = int(m.flex_dim[flex])
    ids, vertices = tables.elements(m)[dim]
    drawn = tables.element_flex(m)[ids] == flex
    if dim == 3:
        drawn &= (m.flex_elemlayer[ids] <= 0) if skin else (m.flex_elemlayer[ids] == layer)
    return vertices[drawn][:, FACES[dim]].reshape(-1, 3).astype(np.int32)


def _faces(m: Any, d: Data, corner: np.ndarray, pnt: Array, vec: Array) -> tuple[Array, Array, np.ndarray]:
    """Return distances (n,), normals (n, 3) and vertices (n, 3) of triangles."""
    first, second, third = (take(d.flexvert_xpos, corner[:, k]) for k in range(3))
    dist = ray_triangle(c.split(first), c.split(second), c.split(third), c.split(pnt), c.split(vec), False)
    return dist, cross(first - third, second - third), corner


def _edges(m: Any, d: Data, flex: int, pnt: Array, vec: Array) -> tuple[Array, Array, np.ndarray]:
    """Return distances (n,), normals (n, 3) and vertices (n, 3) of capsules around edges."""
    ends = tables.edges(m).ends[m.flex_edgeadr[flex] + np.arange(m.flex_edgenum[flex])].astype(np.int32)
    first, second = take(d.flexvert_xpos, ends[:, 0]), take(d.flexvert_xpos, ends[:, 1])
    axis, length = normalize(second - first, default=np.array([0.0, 0, 1]))
    helper = jnp.where(jnp.abs(axis[:, :1]) < 0.5, jnp.array([1.0, 0, 0]), jnp.array([0.0, 1, 0]))
    across = normalize(helper - inner(helper, axis)[:, None] * axis)[0]
    mat = jnp.stack([across, cross(axis, across), axis], axis=-1)
    radius = jnp.broadcast_to(m.flex_radius[flex], length.shape)
    size = (radius, 0.5 * length, jnp.zeros_like(length))
    p = c.split(matvec_t(mat, pnt - 0.5 * (first + second)))
    v = c.split(matvec_t(mat, jnp.broadcast_to(vec, first.shape)))
    dist = DISTANCES[GeomType.CAPSULE](size, p, v)
    normal = NORMALS[GeomType.CAPSULE](size, points_or_origins(p, v, dist))
    return dist, matvec(mat, c.join(normal)), ends[:, [0, 1, 1]]


def _vertices(m: Any, d: Data, flex: int, pnt: Array, vec: Array) -> tuple[Array, Array, np.ndarray]:
    """Return distances (n,), normals (n, 3) and vertices (n, 3) of spheres around vertices."""
    ids = (m.flex_vertadr[flex] + np.arange(m.flex_vertnum[flex])).astype(np.int32)
    p = c.split(pnt - take(d.flexvert_xpos, ids))
    v = c.split(jnp.broadcast_to(vec, (len(ids), 3)))
    size = (m.flex_radius[flex], m.flex_radius[flex], m.flex_radius[flex])
    dist = DISTANCES[GeomType.SPHERE](size, p, v)
    normal = NORMALS[GeomType.SPHERE](size, points_or_origins(p, v, dist))
    return dist, c.join(normal), np.repeat(ids[:, None], 3, axis=1)
