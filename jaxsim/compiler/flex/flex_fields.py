"""mjModel's flex_*, flexedge_* and flexvert_* fields: the arrays of all flexes, concatenated."""

from __future__ import annotations

import numpy as np

from jaxsim.compiler.draft import Draft, starts, starts_or_none
from jaxsim.compiler.flex.flex import Flex
from jaxsim.compiler.objects import FlexObject
from jaxsim.core.types import MINVAL
from jaxsim.mjcf.schema.values import ENUMS

_CONTACT = (
    *("contype", "conaffinity", "condim", "priority", "solmix", "solref", "solimp", "friction", "margin", "gap"),
    *("internal", "activelayers", "passive"),
)
_EQUALITIES = {"flex": 1, "flexvert": 2, "flexstrain": 3}
_LOCAL_EDGES = {1: 1, 2: 3, 3: 6}


def flex_tables(draft: Draft) -> None:
    """Fill all flex fields that do not depend on joint positions; set_const adds lengths and weights of edges."""
    objects = draft.lists.flex
    if not objects:
        return
    flexes = [obj.flex for obj in objects]
    _attributes(draft, objects)
    _vertices(draft.values, flexes)
    _elements(draft, objects)
    _coefficients(draft.values, flexes)
    _edge_rows(draft, flexes)
    _vertex_rows(draft, flexes)
    _bandwidth(draft, flexes)


def _attributes(draft: Draft, objects: list[FlexObject]) -> None:
    v = draft.values
    for name in _CONTACT:
        v[f"flex_{name}"] = np.array([obj.contact[name] for obj in objects])
    v["flex_selfcollide"] = np.array([ENUMS["selfcollide"][obj.contact["selfcollide"]] for obj in objects], np.int32)
    for name in ("group", "radius", "flatskin"):
        v[f"flex_{name}"] = np.array([obj.attrs[name] for obj in objects])
    v["flex_rgba"] = np.array([obj.attrs["rgba"] for obj in objects], np.float32).astype(np.float64)
    v["flex_matid"] = np.array([obj.matid for obj in objects], np.int32)
    for name, part in (("damping", "elasticity"), ("edgestiffness", "edge"), ("edgedamping", "edge")):
        v[f"flex_{name}"] = np.array([getattr(obj, part)[name.removeprefix("edge")] for obj in objects])
    tied = {}
    for eq in draft.lists.equality:
        if eq.el.tag in _EQUALITIES:
            tied.setdefault(eq.obj1, _EQUALITIES[eq.el.tag])
    v["flex_edgeequality"] = np.array([tied.get(obj.id, 0) for obj in objects], np.int32)
    shell = np.array([obj.elasticity["elastic2d"] != "none" for obj in objects])
    order = np.array([obj.flex.order for obj in objects], np.int32)
    v["flex_interp"] = np.where(shell, -order, order).astype(np.int32)
    v["flex_cellnum"] = np.array([obj.flex.cellcount for obj in objects], np.int32)
    for name in ("dim", "rigid", "centered", "size"):
        v[f"flex_{name}"] = np.array([getattr(obj.flex, name) for obj in objects])


def _join(parts: list, width: int = 0) -> np.ndarray:
    shape = (-1, width) if width else (-1,)
    return np.concatenate([np.asarray(part).reshape(shape) for part in parts])


def _vertices(v: dict, flexes: list[Flex]) -> None:
    for name, counts in (("vert", [f.nvert for f in flexes]), ("node", [len(f.nodebody) for f in flexes])):
        v[f"nflex{name}"] = sum(counts)
        v[f"flex_{name}adr"], v[f"flex_{name}num"] = starts(counts), np.array(counts, np.int32)
    v["flex_vertbodyid"] = _join([np.broadcast_to(f.body, f.nvert) for f in flexes]).astype(np.int32)
    v["flex_nodebodyid"] = _join([f.nodebody for f in flexes]).astype(np.int32)
    still = [f.centered and not f.interpolated for f in flexes]
    v["flex_vert"] = _join([0.0 * f.vert if s else f.vert for f, s in zip(flexes, still, strict=True)], 3)
    v["flex_vert0"] = _join([f.vert0 for f in flexes], 3)
    v["flex_node"] = _join([f.node for f in flexes], 3)
    v["flex_node0"] = _join([f.node0 for f in flexes], 3)


def _elements(draft: Draft, objects: list[FlexObject]) -> None:
    """Set elements, edges, shells, layers, pairs, texture coordinates."""
    v, flexes = draft.values, [obj.flex for obj in objects]
    parts = [f.topology for f in flexes]
    number = {
        "edge": [len(t.edge) for t in parts],
        "elem": [len(f.elem) for f in flexes],
        "evpair": [len(t.evpair) for t in parts],
        "shell": [len(t.shell) for t in parts],
    }
    for name, counts in number.items():
        v[f"flex_{name}num"] = np.array(counts, np.int32)
    v["flex_edgeadr"], v["flex_elemadr"] = starts(number["edge"]), starts(number["elem"])
    v["flex_evpairadr"] = starts_or_none(number["evpair"])
    sizes = {
        "elemdata": [f.elem.size for f in flexes],
        "elemedge": [len(f.elem) * _LOCAL_EDGES[f.dim] for f in flexes],
        "shelldata": [t.shell.size for t in parts],
    }
    for name, counts in sizes.items():
        address = starts_or_none if name == "shelldata" else starts
        v[f"flex_{name}adr"], v[f"nflex{name}"] = address(counts), sum(counts)
    for name in ("edge", "elem", "evpair"):
        v[f"nflex{name}"] = sum(number[name])
    v["flex_edge"] = _join([t.edge for t in parts], 2).astype(np.int32)
    v["flex_edgeflap"] = _join([_flaps(obj) for obj in objects], 2).astype(np.int32)
    v["flex_elem"] = _join([f.elem for f in flexes]).astype(np.int32)
    v["flex_elemedge"] = _join([t.elemedge for t in parts]).astype(np.int32)
    v["flex_elemlayer"] = _join([t.elemlayer for t in parts]).astype(np.int32)
    v["flex_shell"] = _join([t.shell for t in parts]).astype(np.int32)
    v["flex_evpair"] = _join([t.evpair for t in parts], 2).astype(np.int32)
    v["flexedge_rigid"] = _join([_rigid_edges(draft, f) for f in flexes])
    coords = [np.zeros((0, 2)) if f.texcoord is None else f.texcoord for f in flexes]
    v["flex_texcoord"], v["nflextexcoord"] = _join(coords, 2), sum(map(len, coords))
    v["flex_texcoordadr"] = starts_or_none([len(c) for c in coords])
    chosen = [f.elem.ravel() if f.texcoord is None else f.elemtexcoord for f in flexes]
    v["flex_elemtexcoord"] = _join(chosen).astype(np.int32)


def _flaps(obj: FlexObject) -> np.ndarray:
    t = obj.flex.topology
    bends = obj.flex.dim == 2 and obj.elasticity["elastic2d"] in ("bend", "both")
    return t.flap[:, 2:] if bends else np.full((len(t.edge), 2), -1)


def _rigid_edges(draft: Draft, flex: Flex) -> np.ndarray:
    edge = flex.topology.edge
    if flex.rigid or flex.interpolated:
        return np.full(len(edge), flex.rigid)
    weld = draft.values["body_weldid"][flex.body[edge]]
    return weld[:, 0] == weld[:, 1]


def _coefficients(v: dict, flexes: list[Flex]) -> None:
    for name in ("stiffness", "bending"):
        parts = [getattr(f, name) for f in flexes]
        v[f"flex_{name}"], v[f"nflex{name}"] = _join(parts), sum(map(len, parts))
        v[f"flex_{name}adr"] = starts_or_none([len(p) for p in parts])


class _DofChains:
    """Lookup of the dofs that move a body, in increasing order; for a simple body only its own dofs."""

    def __init__(self, draft: Draft):
        self.values, self.bodies = draft.values, draft.lists.body
        self.known: dict[int, list[int]] = {}

    def simple(self, body: int) -> bool:
        return bool(self.values["body_simple"][body])

    def own(self, body: int) -> list[int]:
        first = int(self.values["body_dofadr"][body])
        return list(range(first, first + int(self.values["body_dofnum"][body])))

    def all(self, body: int) -> list[int]:
        """Return the dofs of the body and of its ancestors."""
        if body not in self.known:
            parent = self.bodies[body].parent
            own = self.own(body)
            self.known[body] = (self.all(parent.id) if parent is not None else []) + own
        return self.known[body]

    def of(self, body: int) -> list[int]:
        return self.own(body) if self.simple(body) else self.all(body)

    def pair(self, one: int, two: int) -> list[int]:
        """Return the columns of the difference of two points' Jacobians.

        Simple bodies are listed one after the other.
        """
        if self.simple(one) and self.simple(two):
            return self.own(min(one, two)) + self.own(max(one, two))
        return sorted({*self.all(one), *self.all(two)})


def _moves(flex: Flex) -> bool:
    return not flex.rigid and not flex.interpolated


def _edge_rows(draft: Draft, flexes: list[Flex]) -> None:
    """Set the pattern of flexedge_J.

    As in MuJoCo, nJfe counts the edges of every flex that moves, but only flexes on which a force or a constraint acts
    have rows, and rows after a flex without any start again at address 0.
    """
    v, chains = draft.values, _DofChains(draft)
    nedge = v["nflexedge"]
    rows = [[tuple(flex.body[e]) for e in flex.topology.edge.tolist()] if _moves(flex) else [] for flex in flexes]
    capacity = {pair: len({*chains.all(pair[0]), *chains.all(pair[1])}) for pair in set().union(*rows)}
    v["nJfe"] = sum(capacity[pair] for row in rows for pair in row)
    num, adr = np.zeros(nedge, np.int32), np.zeros(nedge, np.int32)
    col = np.zeros(v["nJfe"], np.int32)
    acting = v["flex_edgeequality"] + v["flex_edgedamping"] + v["flex_edgestiffness"] + v["flex_damping"] != 0
    columns = {pair: np.array(chains.pair(*pair), np.int32) for pair in capacity}
    for row, first, acts in zip(rows, v["flex_edgeadr"].tolist(), acting, strict=True):
        for i, pair in enumerate(row if acts else [], first):
            adr[i] = adr[i - 1] + num[i - 1] if i else 0
            num[i] = len(columns[pair])
            space = col[adr[i] : adr[i] + num[i]]
            space[:] = columns[pair][: len(space)]
    v["flexedge_J_rownnz"], v["flexedge_J_rowadr"], v["flexedge_J_colind"] = num, adr, col


def _vertex_rows(draft: Draft, flexes: list[Flex]) -> None:
    """Set the edges at each vertex and the pattern of flexvert_J, of surfaces with vertex constraints.

    A vertex has two rows.
    """
    v, chains = draft.values, _DofChains(draft)
    nvert = v["nflexvert"]
    near = [_neighbours(flex) if _moves(flex) else [] for flex in flexes]
    capacity = [[len(set().union(*(chains.all(b) for b in bodies))) for bodies in row] for row in near]
    v["nJfv"] = sum(map(sum, capacity))
    num, adr = np.zeros(2 * nvert, np.int32), np.zeros(2 * nvert, np.int32)
    edgenum, edgeadr = np.zeros(nvert, np.int32), np.zeros(nvert, np.int32)
    col, vertedge, filled = np.zeros(2 * v["nJfv"], np.int32), np.zeros(2 * v["nflexedge"], np.int32), 0
    for flex, bodies, first, kind in zip(flexes, near, v["flex_vertadr"], v["flex_edgeequality"], strict=True):
        if not _moves(flex) or flex.dim != 2 or kind != 2:
            continue
        _check_plane(draft, flex)
        ends = flex.topology.edge.ravel()
        count = np.bincount(ends, minlength=flex.nvert)
        edgenum[first : first + flex.nvert] = count
        edgeadr[first : first + flex.nvert] = filled + np.cumsum(count) - count
        vertedge[filled : filled + len(ends)] = np.argsort(ends, kind="stable") // 2
        filled += len(ends)
        dofs = [
            sorted(set().union(*(chains.of(b) for b in row))) if n else [] for row, n in zip(bodies, count, strict=True)
        ]
        wide = np.repeat([len(d) for d in dofs], 2)
        at = 2 * first
        start = adr[at - 1] + num[at - 1] if at else 0
        num[at : at + len(wide)] = wide
        adr[at : at + len(wide)] = start + np.cumsum(wide) - wide
        adr[at + len(wide) : at + len(wide) + 1] = start + wide.sum()
        flat = [c for d in dofs for c in (*d, *d)]
        col[start : start + len(flat)] = flat
    v["flexvert_J_rownnz"], v["flexvert_J_rowadr"] = num.reshape(-1, 2), adr.reshape(-1, 2)
    v["flexvert_J_colind"] = col.reshape(-1, 2)
    v["flex_vertedgenum"], v["flex_vertedgeadr"] = edgenum, edgeadr
    v["flex_vertedge"] = vertedge.reshape(-1, 2)


def _check_plane(draft: Draft, flex: Flex) -> None:
    """Check that a surface with vertex constraints is horizontal at rest."""
    height = 2 * flex.size[2] * flex.vert0[flex.topology.edge, 2]
    if np.any(np.abs(height[:, 1] - height[:, 0]) > MINVAL):
        obj = next(obj for obj in draft.lists.flex if obj.flex is flex)
        raise obj.error("constraints on vertices need a surface that is flat and horizontal at rest")


def _neighbours(flex: Flex) -> list[set[int]]:
    """Return the bodies of each vertex and of the vertices that share an edge with it."""
    near = [{int(b)} for b in flex.body]
    for one, two in flex.topology.edge.tolist():
        near[one].add(int(flex.body[two]))
        near[two].add(int(flex.body[one]))
    return near


def _bandwidth(draft: Draft, flexes: list[Flex]) -> None:
    """Set flex_bandwidth: largest distance of coupled dofs of nodes, in the order in which flexes name the nodes.

    Inertia couples dofs along the tree, stiffness couples dofs of nodes of one cell.
    """
    v, chains = draft.values, _DofChains(draft)
    bodies = [int(b) for f in flexes for b in f.nodebody]
    dofs = list(dict.fromkeys(d for b in bodies for d in (chains.own(b) if v["body_dofnum"][b] else chains.of(b))))
    local = np.full(v["nv"] + 1, -1)
    local[dofs] = np.arange(len(dofs))
    width = 0
    for matrix in ("D", "M"):
        row = np.repeat(np.arange(v["nv"]), v[f"{matrix}_rownnz"])
        col = v[f"{matrix}_colind"]
        both = (local[row] >= 0) & (local[col] >= 0)
        width = max(width, int(np.abs(local[row] - local[col])[both].max(initial=0)))
    for flex in flexes:
        width = max(width, _cell_width(flex, chains, local))
    v["flex_bandwidth"] = np.full(len(flexes), width, np.int32)


def _cell_width(flex: Flex, chains: _DofChains, local: np.ndarray) -> int:
    """Return the largest distance of dofs of the nodes of one cell."""
    if not flex.interpolated:
        return 0
    positions = [local[chains.of(b)] for b in flex.nodebody.tolist()]
    positions = [p[p >= 0] for p in positions]
    low = np.array([p.min(initial=len(local)) for p in positions])
    high = np.array([p.max(initial=-1) for p in positions])
    elements = flex.cells
    low, high = low[elements].min(axis=1), high[elements].max(axis=1)
    return int(np.where(high >= 0, high - low, 0).max())
