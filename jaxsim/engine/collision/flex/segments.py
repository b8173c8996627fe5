"""Geoms, elements and vertices of flexes that can collide, as static structure.

MuJoCo collides one body with one flex, or two flexes, at a time. The contacts of one of these pairs are a *segment*.
MuJoCo keeps at most `MAXCONPAIR` contacts of a segment and orders them within it. Segments are ordered by their
signature.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.structure import per_structure
from jaxsim.core.types import DisableBit, FlexSelf, GeomType
from jaxsim.engine.structure import flex_tables as tables

SELF_SIGNATURE = 0xFFFFFFFE  # contacts of a flex with itself come after all others
GEOM, FLEX, INTERNAL, SELF = range(4)  # kinds of segments


class Segments(NamedTuple):
    """All segments of a model, in MuJoCo's order: arrays (n,).

    `signature` orders them among the contacts of geoms. `kind` is GEOM, FLEX, INTERNAL or SELF; `body` the body of the
    first side or -1, `flex` (n, 2) the flexes, -1 for a body. `tree` marks segments for which MuJoCo walks two trees of
    bounding volumes and sorts the contacts found.
    """

    signature: np.ndarray
    kind: np.ndarray
    body: np.ndarray
    flex: np.ndarray
    tree: np.ndarray


class GeomPairs(NamedTuple):
    """Geoms (k,) against all elements of flexes of one dimension.

    `allowed` (k, n) marks the pairs that pass the static filters, `segment` (k, nflex) is the segment of a geom and a
    flex, or -1, `tree` (k, nflex) marks segments found by trees.
    """

    geom: np.ndarray
    allowed: np.ndarray
    segment: np.ndarray
    tree: np.ndarray


class VertexPairs(NamedTuple):
    """Planes and vertices: geom, vertex of the model, flex and segment of each pair (n,)."""

    geom: np.ndarray
    vertex: np.ndarray
    flex: np.ndarray
    segment: np.ndarray


def bits_meet(contype1: Any, affinity1: Any, contype2: Any, affinity2: Any) -> Any:
    """Return whether contact bits let two sides collide."""
    return ((contype1 & affinity2) != 0) | ((contype2 & affinity1) != 0)


@per_structure
def collides(m: Any) -> bool:
    """Return whether any flex can collide."""
    return bool(m.nflex) and bool(np.any((m.flex_contype != 0) | (m.flex_conaffinity != 0)))


def segments(m: Any) -> Segments:
    """Return the segments of a model."""
    return _segments(m.structure, not m.opt.disableflags & DisableBit.MIDPHASE)


def self_kind(m: Any, flex: int) -> int:
    """Return the method of self-collision of a flex: a member of `FlexSelf` other than AUTO."""
    kind = int(m.flex_selfcollide[flex])
    direct = m.opt.disableflags & DisableBit.MIDPHASE or m.flex_bvhadr[flex] < 0
    if kind == FlexSelf.NONE:
        return FlexSelf.NONE
    if direct or kind == FlexSelf.NARROW:
        return FlexSelf.NARROW
    if kind == FlexSelf.BVH or (kind == FlexSelf.AUTO and m.flex_dim[flex] == 3):
        return FlexSelf.BVH
    return FlexSelf.SAP


@lru_cache(maxsize=256)
def _segments(m: Any, trees: bool) -> Segments:
    rows: list[tuple] = []
    for f in range(m.nflex):
        bits = m.flex_contype[f], m.flex_conaffinity[f]
        if not any(bits):
            continue
        for b in np.flatnonzero(bits_meet(m.body_contype, m.body_conaffinity, *bits)):
            tree = trees and m.body_bvhadr[b] >= 0 and m.flex_bvhadr[f] >= 0
            start = (int(b) << 16) + m.nbody + f
            count = 1 if tree else int(m.body_geomnum[b])  # without trees each geom has its own segment
            rows += [(start, i, GEOM, b, -1, f, tree) for i in range(count)]
        for g in range(f):
            if bits_meet(m.flex_contype[g], m.flex_conaffinity[g], *bits):
                tree = trees and m.flex_bvhadr[g] >= 0 and m.flex_bvhadr[f] >= 0
                rows.append(((m.nbody + g << 16) + m.nbody + f, 0, FLEX, -1, g, f, tree))
        if not m.flex_rigid[f] and bits[0] & bits[1]:
            if m.flex_internal[f]:
                rows.append((SELF_SIGNATURE, 2 * f, INTERNAL, -1, f, f, False))
            if m.flex_selfcollide[f] != FlexSelf.NONE:
                rows.append((SELF_SIGNATURE, 2 * f + 1, SELF, -1, f, f, False))
    table = np.array(sorted(rows), np.int64).reshape(-1, 7)
    return Segments(table[:, 0], table[:, 2], table[:, 3], table[:, 4:6], table[:, 6].astype(bool))


def _segment_table(m: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the segment of each geom and flex (ngeom, nflex), -1 for none, and the mask of those found by trees."""
    found, tree = np.full((m.ngeom, m.nflex), -1), np.zeros((m.ngeom, m.nflex), bool)
    of = segments(m)
    for i in np.flatnonzero(of.kind == GEOM):
        b, f = of.body[i], of.flex[i, 1]
        geoms = m.body_geomadr[b] + np.arange(m.body_geomnum[b])
        if of.tree[i]:
            found[geoms, f], tree[geoms, f] = i, True
        else:
            free = geoms[found[geoms, f] < 0]
            found[free[:1], f] = i
    return found, tree


def plane_vertices(m: Any) -> VertexPairs:
    """Return the pairs of planes and vertices of flexes.

    MuJoCo's trees ignore the contact bits of planes of static bodies.
    """
    found, tree = _segment_table(m)
    plane = (m.geom_type == GeomType.PLANE)[:, None] & (found >= 0)
    bits = _bits(m)
    static = (m.body_weldid[m.geom_bodyid] == 0)[:, None]
    pairs = np.argwhere(plane & np.where(tree, static, bits))
    flex = tables.vertex_flex(m)
    rows = [(g, v, f, found[g, f]) for g, f in pairs for v in np.flatnonzero(flex == f)]
    return VertexPairs(*np.array(rows, np.int32).reshape(-1, 4).T)


def sdf_geoms(m: Any) -> np.ndarray:
    """Return the geom, flex and segment (n, 3) of SDFs that may touch flexes of triangles."""
    found, tree = _segment_table(m)
    ok = (m.geom_type == GeomType.SDF)[:, None] & (found >= 0) & (tree | _bits(m))
    ok &= (m.flex_dim == 2) & (m.flex_bvhadr >= 0)
    return np.array([(g, f, found[g, f]) for g, f in np.argwhere(ok)], np.int32).reshape(-1, 3)


def _bits(m: Any) -> np.ndarray:
    return bits_meet(m.geom_contype[:, None], m.geom_conaffinity[:, None], m.flex_contype, m.flex_conaffinity)


def geom_elements(m: Any, dim: int) -> GeomPairs:
    """Return the pairs of geoms and elements of dimension `dim`, without planes and SDFs."""
    found, tree = _segment_table(m)
    ok = (found >= 0) & _bits(m) & ~np.isin(m.geom_type, (GeomType.PLANE, GeomType.SDF))[:, None]
    ids, vertices = tables.elements(m)[dim]
    flex = tables.element_flex(m)[ids]
    geom = np.flatnonzero((ok & (m.flex_dim == dim)).any(1))
    allowed = ok[geom][:, flex] & (in_tree(m)[ids] | ~tree[geom][:, flex])
    body = m.flex_vertbodyid[vertices]
    allowed &= ~(m.geom_bodyid[geom][:, None, None] == body).any(-1)
    keep = allowed.any(1)
    return GeomPairs(geom[keep], allowed[keep], found[geom[keep]], tree[geom[keep]])


class ElementVertices(NamedTuple):
    """Elements and vertices of one flex that may collide: element and vertex of the model, flex, segment, rank (n,)."""

    element: np.ndarray
    vertex: np.ndarray
    flex: np.ndarray
    segment: np.ndarray
    rank: np.ndarray


def internal_pairs(m: Any, dim: int) -> ElementVertices:
    """Return the pairs of elements of dimension `dim` and vertices near them."""
    of, rows = segments(m), []
    for i in np.flatnonzero(of.kind == INTERNAL):
        f = of.flex[i, 0]
        if m.flex_dim[f] == dim:
            pair = m.flex_evpair.reshape(-1, 2)[m.flex_evpairadr[f] + np.arange(m.flex_evpairnum[f])]
            rank, base = np.arange(len(pair)), np.array([m.flex_elemadr[f], m.flex_vertadr[f]])
            rows.append(np.column_stack([pair + base, np.full((len(pair), 2), (f, i)), rank]))
    return ElementVertices(*np.concatenate([np.zeros((0, 5), np.int32), *rows]).astype(np.int32).T)


def internal_solids(m: Any) -> np.ndarray:
    """Return flex and segment (n, 2) of flexes of tetrahedra whose elements collide with their own vertices."""
    of = segments(m)
    found = np.flatnonzero((of.kind == INTERNAL) & (m.flex_dim[of.flex[:, 0]] == 3))
    return np.column_stack([of.flex[found, 0], found])


@per_structure
def in_tree(m: Any) -> np.ndarray:
    """Return the mask of elements (nflexelem,) that are leaves of the tree of their flex: those in active layers."""
    out = np.zeros(m.nflexelem, bool)
    for f in np.flatnonzero(m.flex_bvhadr >= 0):
        node = m.bvh_nodeid[m.flex_bvhadr[f] + np.arange(m.flex_bvhnum[f])]
        out[m.flex_elemadr[f] + node[node >= 0]] = True
    return out


@per_structure
def is_active(m: Any) -> np.ndarray:
    """Return the mask of elements (nflexelem,) in active layers: all but inner tetrahedra."""
    flex = tables.element_flex(m)
    return (m.flex_dim[flex] < 3) | (m.flex_elemlayer < m.flex_activelayers[flex])
