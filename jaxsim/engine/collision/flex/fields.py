"""Contacts of signed distance fields with triangles of flexes: the deepest point of each triangle inside a field.

Source: mjc_FlexSDF. Neither margins nor the radius of the flex count, as in MuJoCo.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.structure import per_structure
from jaxsim.core.types import MAXCONPAIR, MINVAL
from jaxsim.engine.collision.flex import segments as static
from jaxsim.engine.collision.flex.found import Found, found_of
from jaxsim.engine.collision.flex.trees import node_boxes, tree_paths
from jaxsim.engine.collision.sdf.mesh_pairs import Descents, descents_into, field_reaches, frank_wolfe, leaves_in_order
from jaxsim.engine.collision.shapes import Geoms, PairContacts, posed_geoms, unit
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.engine.structure.distance_field import distance_of, gradient_of
from jaxsim.math import safe
from jaxsim.math.arrays import gather, matvec, matvec_t, take
from jaxsim.math.safe import Array
from jaxsim.xla.compaction import compact

NEAR_MIN = 512  # least capacity for triangles near fields


class FieldTriangles(NamedTuple):
    """Fields against triangles, one pair after the other, each in the order of MuJoCo's walk: arrays (n,).

    `pair` is the pair of a geom and a flex; `vertex` (n, 3) are rows of `flexvert_xpos`; `element` is an id within the
    flex.
    """

    pair: np.ndarray
    geom: np.ndarray
    flex: np.ndarray
    segment: np.ndarray
    element: np.ndarray
    vertex: np.ndarray


@per_structure
def _walks(m: Any) -> list[np.ndarray]:
    """Return the elements (local) in each flex's tree, in the order of MuJoCo's walk."""
    out = []
    for first, count in zip(m.flex_bvhadr, m.flex_bvhnum, strict=True):
        nodes = slice(first, first + count) if first >= 0 else slice(0)
        element = m.bvh_nodeid[nodes]
        out.append(element[leaves_in_order(m.bvh_child[nodes], element)])
    return out


def _triangles(m: Any) -> FieldTriangles:
    """Return the pairs of fields and triangles of a model."""
    rows, vertices = [], []
    vertex_of = np.zeros((m.nflexelem, 3), int)
    if 2 in tables.elements(m):
        ids, corners = tables.elements(m)[2]
        vertex_of[ids] = corners
    for i, (geom, flex, segment) in enumerate(static.sdf_geoms(m)):
        local = _walks(m)[flex]
        rows.append(np.column_stack([np.full((len(local), 4), (i, geom, flex, segment)), local]))
        vertices.append(vertex_of[m.flex_elemadr[flex] + local])
    table = np.concatenate([np.zeros((0, 5), int), *rows]).astype(np.int32)
    vertex = np.concatenate([np.zeros((0, 3), int), *vertices]).astype(np.int32)
    pair, geom, flex, segment, element = table.T
    return FieldTriangles(pair, geom, flex, segment, element, vertex)


def field_contacts(m: Any, d: Any) -> list[Found]:
    """Compute the contacts of SDF geoms with flexes of triangles."""
    rows = _triangles(m)
    if not len(rows.pair):
        return []
    descents = descents_into(m, np.unique(rows.geom))
    row, weight, real, dropped = _points_inside(m, *lax.stop_gradient((d,)), rows, descents)
    geom = gather(jnp.asarray(rows.geom), row)
    g, corner = _posed(m, d, geom), gather(d.flexvert_xpos, gather(jnp.asarray(rows.vertex), row))
    local = matvec_t(g.mat[:, None], corner - g.pos[:, None])
    x = jnp.sum(weight[..., None] * local, axis=1)
    dist = distance_of(descents.fields, g, x[None])[0]
    outward, length = unit(gradient_of(descents.fields, g, x[None])[0])
    pair = gather(jnp.asarray(rows.pair), row)
    valid = real & (dist <= 0) & (length >= MINVAL)
    valid &= ~_repeated(lax.stop_gradient(x), real & (dist <= 0), pair)
    normal = matvec(g.mat, outward)
    pos = g.pos + matvec(g.mat, x) - 0.5 * dist[:, None] * normal
    contacts = PairContacts(dist[:, None], pos[:, None], normal[:, None], valid[:, None])
    element, flex = (gather(jnp.asarray(a), row) for a in (rows.element, rows.flex))
    named = {"geom": geom, "flex2": flex, "elem2": element}
    found = found_of(contacts, gather(jnp.asarray(rows.segment), row), (jnp.ones_like(geom), geom, element), named)
    return [found._replace(dropped=found.dropped + dropped)]


def _posed(m: Any, d: Any, geom: Array) -> Geoms:
    mat = d.geom_xmat.reshape(-1, 3, 3)
    return posed_geoms(gather, d.geom_xpos, mat, gather(m.geom_size, geom), geom)


def _repeated(x: Array, valid: Array, pair: Array) -> Array:
    """Return whether an earlier valid point (n, 3) of the same pair is equal."""
    equal = (safe.norm(x[:, None] - x[None]) < MINVAL) & (pair[:, None] == pair[None])
    return jnp.any(equal & np.tril(np.ones((len(x), len(x)), bool), -1) & valid[None], axis=1)


def _near(m: Any, d: Any, rows: FieldTriangles, c: Descents) -> Array:
    """Return the mask of triangles (n,) that a tree walk reaches and that may touch the field."""
    g = _posed(m, d, rows.geom)
    local = matvec_t(g.mat[:, None], take(d.flexvert_xpos, rows.vertex) - g.pos[:, None])
    path = tree_paths(m).element[m.flex_elemadr[rows.flex] + rows.element]
    box = take(node_boxes(m, d), path)  # (n, depth, 6)
    centre = matvec_t(g.mat[:, None], box[..., :3] - g.pos[:, None])
    reached = safe.norm(box[..., 3:]) > distance_of(c.fields, g, jnp.swapaxes(centre, 0, 1)).T
    return field_reaches(c, g, local[:, None])[:, 0] & reached.all(1)


def _points_inside(m: Any, d: Any, rows: FieldTriangles, c: Descents) -> tuple[Array, Array, Array, Array]:
    """Find the first triangles of each pair that reach inside the field, each with its deepest point.

    Returns rows (k,), weights of the corners (k, 3), the mask of real ones, and the number dropped.
    """
    capacity = min(len(rows.pair), max(NEAR_MIN, 2 * m.max_contacts))
    row, real, dropped = compact(_near(m, d, rows, c), capacity)
    g = _posed(m, d, gather(jnp.asarray(rows.geom), row))
    corner = gather(d.flexvert_xpos, gather(jnp.asarray(rows.vertex), row))
    local = matvec_t(g.mat[:, None], corner - g.pos[:, None])
    weight, inside = frank_wolfe(c, g, local)  # (s, k, 3), (s, k)
    point = jnp.sum(weight[..., None] * local, axis=-2)
    depth = jnp.where(inside, distance_of(c.fields, g, point), jnp.inf)
    best = jnp.argmin(depth, axis=0)
    weight = jnp.take_along_axis(weight, best[None, :, None], axis=0)[0]
    hit = inside.any(0) & real
    pair, npair = gather(jnp.asarray(rows.pair), row), int(rows.pair[-1]) + 1
    of_pair = jnp.cumsum(hit[:, None] & (pair[:, None] == np.arange(npair)), axis=0, dtype=jnp.int32)
    hit &= jnp.take_along_axis(of_pair, pair[:, None], axis=1)[:, 0] <= MAXCONPAIR
    kept, real, _ = compact(hit, min(capacity, MAXCONPAIR * npair))
    return gather(row, kept), gather(weight, kept), real, dropped
