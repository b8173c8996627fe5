"""Contacts between flexes, and of a flex with itself. Sources: mj_collideElems, mj_collideFlexInternal."""

from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import EnableBit, FlexSelf
from jaxsim.engine.collision.convex.convex import convex_pairs, shapes_touch
from jaxsim.engine.collision.flex import segments as static
from jaxsim.engine.collision.flex.elements import Elements, edge_capsules, element_search, element_shapes
from jaxsim.engine.collision.flex.found import Found, found_of
from jaxsim.engine.collision.flex.pairs import NearElements, Relation, margin_of, near_elements, relations
from jaxsim.engine.collision.flex.rounding import run_time_one
from jaxsim.engine.collision.flex.trees import leaf_pairs, node_surfaces, tree_keys, tree_paths
from jaxsim.engine.collision.flex.triangle import face_vertex, sphere_triangle
from jaxsim.engine.collision.primitive.capsule import capsule_capsule
from jaxsim.engine.collision.primitive.sphere import sphere_capsule
from jaxsim.engine.collision.shapes import Geoms, PairContacts
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.math import component
from jaxsim.math.arrays import gather, row_at, take
from jaxsim.math.component import Vector, split
from jaxsim.math.safe import Array
from jaxsim.native.pool import for_each
from jaxsim.xla.compaction import compact

FACES = ((0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2), (1, 3, 2, 0))  # of a tetrahedron, and the vertex opposite
NEAR_MIN = 512  # least capacity for pairs of elements that touch, or are near vertices
TOUCHING_PER_ELEMENT = 2  # and per element; a cloth that folds over itself has 1.7


def flex_flex_contacts(m: Any, d: Any) -> list[Found]:
    """Compute the contacts between elements of two flexes, or of a flex that collides with itself.

    Two edges collide as capsules; all other pairs use the convex search.
    """
    edges, others = [], []
    for r in relations(m):
        (edges if m.flex_dim[r.flex[0]] == m.flex_dim[r.flex[1]] == 1 else others).append(r)
    found = (_of_relations(m, d, group, search) for group, search in ((edges, False), (others, True)))
    return [x for x in found if x is not None]


def internal_contacts(m: Any, d: Any) -> list[Found]:
    """Compute the contacts of flexes with their own vertices."""
    out = [_with_vertices(m, d, dim, static.internal_pairs(m, dim)) for dim in tables.elements(m)]
    return [x for x in out if x is not None] + [_with_faces(m, d, *x) for x in static.internal_solids(m).tolist()]


def _elements(m: Any, d: Any, element: Array) -> Elements:
    """Return elements (n,), ids of the model, with four vertices each; missing vertices repeat the first."""
    vertex = tables.element_vertices(m)
    vertex = np.where(vertex < 0, vertex[:, :1], vertex)
    radius = take(m.flex_radius, tables.element_flex(m))
    at = gather(d.flexvert_xpos, gather(jnp.asarray(vertex), element))
    return Elements(at, gather(d.flexelem_aabb[:, :3], element), gather(radius, element))


def _of_relations(m: Any, d: Any, group: list[Relation], search: bool) -> Found | None:
    near = [near_elements(m, d, r) for r in group]
    size = [len(x.real) for x in near]
    if not sum(size):
        return None
    element, real, dropped = jnp.concatenate([x.element for x in near]), jnp.concatenate([x.real for x in near]), 0
    which = jnp.asarray(np.repeat(np.arange(len(group), dtype=np.int32), size))
    rank = _ranks(m, group, near)
    in_rank = jnp.asarray([r.mode in (FlexSelf.BVH, FlexSelf.SAP) for r in group])[which]
    swap = in_rank & (gather(rank, element[:, 0]) > gather(rank, element[:, 1]))
    element = jnp.where(swap[:, None], element[:, ::-1], element)
    margin = jnp.stack([margin_of(m, r) for r in group]).astype(d.flexvert_xpos.dtype)
    if search:
        index, real, _ = compact(real, len(real))
        element, which = gather(element, index), gather(which, index)
        count = jnp.sum(real, dtype=jnp.int32)
        touch = _touch(m, lax.stop_gradient(d), element, lax.stop_gradient(gather(margin, which)), count)
        most = max(NEAR_MIN, 4 * m.max_contacts, TOUCHING_PER_ELEMENT * m.nflexelem)
        index, real, dropped = compact(real & touch, min(len(real), most))
        element, which = gather(element, index), gather(which, index)
    margins = gather(margin, which)
    first, second = (_elements(m, d, e) for e in element.T)
    if search:
        a, b = (element_shapes(e, margins) for e in (first, second))
        contacts = convex_pairs(*element_search(m), a, b, margins, jnp.sum(real, dtype=jnp.int32))
    else:
        contacts = capsule_capsule(edge_capsules(first), edge_capsules(second), margins)
    contacts = contacts._replace(valid=contacts.valid & real[:, None])
    flex = gather(jnp.asarray(tables.element_flex(m), jnp.int32), element)
    local = element - gather(jnp.asarray(m.flex_elemadr, jnp.int32), flex)
    keys = _keys(m, d, jnp.asarray([int(r.mode) for r in group])[which], rank, element, local)
    ids = {"flex1": flex[:, 0], "elem1": local[:, 0], "flex2": flex[:, 1], "elem2": local[:, 1]}
    found = found_of(contacts, jnp.asarray([r.segment for r in group], jnp.int32)[which], keys, ids)
    return found._replace(dropped=found.dropped + dropped + sum(x.dropped for x in near))


def _ranks(m: Any, group: list[Relation], near: list[NearElements]) -> Array:
    """Return the positions (nflexelem,) of elements in MuJoCo's search order, for flexes whose contacts it sorts."""
    rank = jnp.asarray(tree_paths(m).element[:, -1])  # the leaves
    for r, x in zip(group, near, strict=True):
        if r.mode == FlexSelf.SAP:
            rank = rank.at[r.first].set(x.rank)
    return rank


def _keys(m: Any, d: Any, mode: Array, rank: Array, element: Array, local: Array) -> tuple[Array, Array, Array]:
    """Return keys that order the contacts of pairs of elements, by the `FlexSelf` of each pair."""
    by_tree, by_sweep = mode == FlexSelf.BVH, mode == FlexSelf.SAP
    key1, key2 = (jnp.where(by_sweep, gather(rank, element[:, 1 - i]), local[:, i]) for i in (0, 1))
    if (m.flex_bvhadr >= 0).any():
        leaf = leaf_pairs(m, jnp.full_like(mode, -1), *element.T)
        high, low = tree_keys(m, node_surfaces(m, lax.stop_gradient(d)), leaf)
        key1, key2 = jnp.where(by_tree, high, key1), jnp.where(by_tree, low, key2)
    return jnp.full_like(mode, 2), key1, key2


def _touch(m: Any, d: Any, element: Array, margin: Array, count: Array) -> Array:
    """Return whether elements (n, 2) touch, for the first `count` of n pairs.

    The search returns only the answer, no contact.
    """
    every = lax.stop_gradient(_elements(m, d, jnp.arange(m.nflexelem, dtype=jnp.int32)))
    settings, tables_of = element_search(lax.stop_gradient(m))

    def of_pair(shared: Any, row: tuple, active: Array) -> Array:
        (tables_of, every), (pair, margin) = shared, row
        a, b = (Elements(*(row_at(x, i)[None] for x in every[:3])) for i in (pair[0], pair[1]))
        reach = margin + a.radius[0] + b.radius[0]
        reach = (1 + 1e-5) * reach + 2 * tables_of.tolerance
        corners = tuple(tuple(split(x) for x in e.vertex[0]) for e in (a, b))
        near = active & ~far_along(component.sub(split(b.centre[0]), split(a.centre[0])), corners, reach)
        near = lax.cond(near, lambda: ~far_along_normals(corners, reach), lambda: jnp.array(False))

        def search() -> Array:
            one, two = (jax.tree.map(lambda x: x[0], element_shapes(e, margin[None])) for e in (a, b))
            return shapes_touch(settings, tables_of, one, two, near)

        return lax.cond(near, search, lambda: jnp.array(False)).astype(every.radius.dtype)

    return for_each(of_pair, (tables_of, every), (element, margin), count) > 0


def far_along(axis: Vector, corners: tuple[tuple[Vector, ...], ...], reach: Array) -> Array:
    """Return whether `axis`, of any length, separates the corners of two elements by more than `reach`.

    A cheap test before the search. The line of centres separates most pairs whose boxes overlap.
    """
    (a, b), less, more = corners, lambda x, y: jnp.where(x < y, x, y), lambda x, y: jnp.where(x > y, x, y)
    along = [[component.dot(component.sub(x, a[0]), axis) for x in element] for element in (a, b)]
    (low1, low2), (high1, high2) = ([reduce(pick, x) for x in along] for pick in (less, more))
    gap = more(low2 - high1, low1 - high2)
    return (gap > 0) & (gap * gap > reach * reach * component.dot(axis, axis))


def far_along_normals(corners: tuple[tuple[Vector, ...], ...], reach: Array) -> Array:
    """Return whether the normal of the first face of either element separates the corners by more than `reach`."""
    sides = [[component.sub(x, element[0]) for x in element[1:3]] for element in corners]
    one, two = (far_along(component.cross(*s), corners, reach) for s in sides)
    return one | two


def _with_vertices(m: Any, d: Any, dim: int, pairs: static.ElementVertices) -> Found | None:
    """Compute the contacts of elements with nearby vertices as spheres. Source: mj_collideElemVert."""
    if not len(pairs.element):
        return None
    margin = m.opt.o_margin if m.opt.enableflags & EnableBit.OVERRIDE else take(m.flex_margin, pairs.flex)
    reach = (margin + take(m.flex_radius, pairs.flex))[:, None]
    box, at = take(d.flexelem_aabb, pairs.element), take(d.flexvert_xpos, pairs.vertex)
    near = jnp.all(jnp.abs(box[:, :3] - at) <= box[:, 3:] + reach, axis=1)
    index, real, dropped = compact(near, min(len(near), max(NEAR_MIN, 2 * m.max_contacts)))
    element, vertex, flex, segment, rank = (gather(jnp.asarray(x), index) for x in pairs)
    e, at = _elements(m, d, element), gather(d.flexvert_xpos, vertex)
    zero = jnp.zeros_like(e.radius)
    if dim == 1:
        axis = jnp.broadcast_to(jnp.array([0.0, 0, 1], at.dtype), at.shape)
        sphere = Geoms(at, None, jnp.stack([e.radius, zero, zero], axis=1), None, axis)
        contacts = sphere_capsule(sphere, edge_capsules(e), zero)
    elif dim == 2:
        found = sphere_triangle(at, e.radius, e.vertex[:, :3], e.radius, zero, run_time_one(m))
        contacts = PairContacts(*(x[:, None] for x in found))
    else:
        point = Elements(jnp.broadcast_to(at[:, None], e.vertex.shape), at, e.radius)
        a, b = (element_shapes(x, zero) for x in (point, e))
        contacts = convex_pairs(*element_search(m), a, b, zero, jnp.sum(real, dtype=jnp.int32))
    contacts = contacts._replace(valid=contacts.valid & real[:, None])
    ids = {
        "flex1": flex,
        "vert1": vertex - gather(jnp.asarray(m.flex_vertadr, jnp.int32), flex),
        "flex2": flex,
        "elem2": element - gather(jnp.asarray(m.flex_elemadr, jnp.int32), flex),
    }
    none = jnp.zeros_like(rank)
    found = found_of(contacts, segment, (none, none, rank), ids)
    return found._replace(dropped=found.dropped + dropped)


def _with_faces(m: Any, d: Any, flex: int, segment: int) -> Found:
    """Compute the contacts of the faces of tetrahedra with the opposite vertices."""
    count = int(m.flex_elemnum[flex])
    vertex = tables.element_vertices(m)[m.flex_elemadr[flex] + np.arange(count)]
    corner = vertex[:, FACES].reshape(-1, 4)
    at = take(d.flexvert_xpos, corner)
    contacts = face_vertex(at[:, :3], at[:, 3], jnp.broadcast_to(m.flex_radius[flex], (len(corner),)), run_time_one(m))
    rank = np.arange(len(corner), dtype=np.int32)
    ids = {"flex1": 0 * rank + flex, "elem1": rank // 4, "flex2": 0 * rank + flex}
    ids["vert2"] = corner[:, 3] - m.flex_vertadr[flex]
    return found_of(contacts, segment, (0 * rank, 0 * rank + 1, rank), ids)
