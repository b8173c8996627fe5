"""Compilation of flex elements to arrays, with MJCF's checks; runs after the poses of bodies are computed.

A flex is a set of vertices, each fixed in a body, and of elements between them. If it has nodes, its vertices are fixed
in the cells of a lattice of nodes instead, and the nodes in bodies.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compiler.asset.bvh import build_bvh, rotate
from jaxsim.compiler.asset.collect import call_located, listed
from jaxsim.compiler.draft import Draft
from jaxsim.compiler.flex import interpolation
from jaxsim.compiler.flex.flex import Flex
from jaxsim.compiler.flex.topology import topology
from jaxsim.compiler.objects import FlexObject
from jaxsim.core.flex_lattice import cells
from jaxsim.core.types import MINVAL
from jaxsim.engine.constants import flex_elements
from jaxsim.engine.flex.elastic import BENDING_ENTRIES, STRAIN_ENTRIES
from jaxsim.mjcf import resolve
from jaxsim.mjcf.flexcomp.cells import empty_cells
from jaxsim.mjcf.pose import mul_quat

_ORDERS = {"trilinear": 1, "quadratic": 2}
_BENDING, _STRETCHING = ("bend", "both"), ("stretch", "both")


def compile_flexes(draft: Draft) -> None:
    """Compile all flexes, and set the resolved attributes of their children `contact`, `edge` and `elasticity`."""
    if not draft.lists.flex:
        return
    poses = _rest_poses(draft)
    strained = {eq.attrs["flex"] for eq in draft.lists.equality if eq.el.tag == "flexstrain"}
    for obj in draft.lists.flex:
        if obj.attrs["material"] and draft.settings.discardvisual:
            raise obj.error("'material' cannot be used: the compiler element has discardvisual='true'")
        for part in ("contact", "edge", "elasticity"):
            el = obj.el.child(part)
            kind = obj.el.type.children[part]
            defaults = {name: attribute.default for name, attribute in kind.attributes.items()}
            setattr(obj, part, resolve(draft.spec, el) if el is not None else defaults)
        obj.strained = obj.name in strained and bool(obj.name)
        obj.flex = call_located(obj.el, _compile, draft, obj, poses)


def _rest_poses(draft: Draft) -> tuple[np.ndarray, np.ndarray]:
    """Compute poses of all bodies in the world with every joint at rest."""
    pos, quat = [np.zeros(3)], [[1.0, 0.0, 0.0, 0.0]]
    for body in draft.lists.body[1:]:
        assert body.parent is not None
        at = np.array(quat[body.parent.id])
        pos.append(rotate(np.array(body.pos), at) + pos[body.parent.id])
        quat.append(mul_quat(quat[body.parent.id], body.quat))
    return np.array(pos), np.array(quat)


def _compile(draft: Draft, obj: FlexObject, poses: tuple[np.ndarray, np.ndarray]) -> Flex:
    flex = _read(obj)
    _check_elastic(obj, flex)
    _read_texture(obj, flex)
    _find_bodies(draft, obj, flex)
    _place(flex, poses)
    axes, lattice = np.eye(3), None
    if flex.interpolated:
        lattice, axes = _lattice(obj, flex, poses)
    if flex.dim == 3:
        _turn_outwards(flex)
    flex.topology = topology(flex.elem)
    if lattice is None:
        _free_elasticity(obj, flex)
    else:
        _nodal_elasticity(obj, flex, lattice)
    _enclose(obj, flex)
    _normalize(obj, flex, axes)
    return flex


def _read(obj: FlexObject) -> Flex:
    """Read a flex: sizes, vertices and elements from the attributes, checked."""
    a, dim = obj.attrs, obj.attrs["dim"]
    elements, vertex = (np.asarray(listed(obj, name)) for name in ("element", "vertex"))
    bodies, nodes = a["body"] or (), a["node"] or ()
    if not 1 <= dim <= 3:
        raise obj.error("'dim' must be 1, 2 or 3")
    if not len(elements) or len(elements) % (dim + 1):
        raise obj.error(f"'element' needs {dim + 1} vertices for each element; it has {len(elements)} numbers")
    if not bodies and not nodes:
        raise obj.error("'body' and 'node' are both empty")
    if len(vertex) % 3:
        raise obj.error("'vertex' needs three numbers for each vertex")
    if not np.all(np.isfinite(vertex)):
        raise obj.error("'vertex' has numbers that are not finite")
    if nodes and not len(vertex):
        raise obj.error("a flex with nodes needs 'vertex'")
    flex = Flex(dim, _ORDERS.get(a["dof"], 0), np.array(a["cellcount"], int), elements.reshape(-1, dim + 1).copy())
    flex.centered = not len(vertex)
    flex.vert = vertex.reshape(-1, 3) if len(vertex) else np.zeros((len(bodies), 3))
    flex.rigid = len(bodies) == 1 and bool(len(vertex))
    if len(bodies) not in (flex.nvert, int(flex.rigid)) or (flex.rigid and nodes):
        raise obj.error(f"'body' needs one name, or one for each of the {flex.nvert} vertices; it has {len(bodies)}")
    if flex.nvert < dim + 1:
        raise obj.error(f"elements of dimension {dim} need {dim + 1} vertices at least")
    if flex.elem.min() < 0 or flex.elem.max() >= flex.nvert:
        bad = flex.elem[(flex.elem < 0) | (flex.elem >= flex.nvert)][0]
        raise obj.error(f"'element' names vertex {bad}; there are {flex.nvert}")
    ordered = np.sort(flex.elem, axis=1)
    if np.any(ordered[:, 1:] == ordered[:, :-1]):
        bad = int(np.flatnonzero(np.any(ordered[:, 1:] == ordered[:, :-1], axis=1))[0])
        raise obj.error(f"element {bad} has a vertex twice")
    _check_nodes(obj, flex, len(nodes))
    return flex


def _check_nodes(obj: FlexObject, flex: Flex, nnode: int) -> None:
    if nnode and not flex.order:
        raise obj.error("a flex with nodes needs 'dof', trilinear or quadratic")
    if not flex.order:
        return
    if np.any(flex.cellcount < 1):
        raise obj.error("'cellcount' must be positive where a flex has nodes")
    if obj.elasticity["elastic2d"] != "none" and np.all(flex.cellcount != 1):
        raise obj.error("a shell with nodes needs one direction with a single cell; write 1 in 'cellcount'")
    expected = int(np.prod([int(n) * flex.order + 1 for n in flex.cellcount], dtype=object))
    if nnode != expected:
        raise obj.error(f"'cellcount' and 'dof' need {expected} nodes; there are {nnode}")


def _check_elastic(obj: FlexObject, flex: Flex) -> None:
    elastic, nodes = obj.elasticity, bool(obj.attrs["node"])
    if obj.edge["stiffness"] > 0 and flex.dim > 1:
        raise obj.error("stiffness of edges is for dim 1; elasticity does that for surfaces and solids")
    if nodes and obj.contact["selfcollide"] != "none":
        raise obj.error("a flex with nodes cannot collide with itself; write selfcollide='none' in its contact")
    if nodes and obj.contact["internal"]:
        raise obj.error("a flex with nodes cannot have internal collisions; write internal='false' in its contact")
    valid = 0 <= elastic["poisson"] < 0.5
    if elastic["elastic2d"] != "none":
        if not elastic["thickness"] > 0:
            raise obj.error("elastic2d needs a positive thickness")
        if not valid:
            raise obj.error("poisson must be 0 or more and less than 0.5")
        if flex.dim != 2 and not nodes:
            raise obj.error("elastic2d is for flexes of dim 2")
    if elastic["young"] > 0 and not valid:
        raise obj.error("poisson must be 0 or more and less than 0.5")


def _read_texture(obj: FlexObject, flex: Flex) -> None:
    texcoord, chosen = (np.asarray(listed(obj, name)) for name in ("texcoord", "elemtexcoord"))
    if not len(texcoord):
        return
    if not len(chosen) and len(texcoord) != 2 * flex.nvert:
        raise obj.error(f"'texcoord' needs two numbers for each of the {flex.nvert} vertices")
    flex.texcoord = texcoord.astype(np.float32).astype(np.float64)[: len(texcoord) // 2 * 2].reshape(-1, 2)
    flex.elemtexcoord = flex.elem.ravel().copy()
    if len(chosen):
        if len(chosen) > flex.elem.size:
            raise obj.error(f"'elemtexcoord' has {len(chosen)} numbers; the elements have {flex.elem.size} vertices")
        flex.elemtexcoord = np.concatenate([chosen, np.zeros(flex.elem.size - len(chosen), int)])


def _find_bodies(draft: Draft, obj: FlexObject, flex: Flex) -> None:
    bends = flex.dim == 2 and obj.elasticity["elastic2d"] in _BENDING and not obj.attrs["node"]
    bodies = {name: draft.refer(obj, "body", name, "body") for name in dict.fromkeys(obj.attrs["body"] or ())}
    for name, body in bodies.items():
        if bends and len(body.joints) != 3:
            raise obj.error(f"bending cannot have pins: the body '{name}' of a vertex does not have three joints")
    flex.body = np.array([bodies[name].id for name in obj.attrs["body"] or ()], int)
    nodes = {name: draft.refer(obj, "body", name, "node").id for name in dict.fromkeys(obj.attrs["node"] or ())}
    flex.nodebody = np.array([nodes[name] for name in obj.attrs["node"] or ()], int)


def _place(flex: Flex, poses: tuple[np.ndarray, np.ndarray]) -> None:
    """Set global positions of vertices, and whether the flex is rigid and centered."""
    if not flex.interpolated:
        flex.rigid = flex.rigid or bool(np.all(flex.body == flex.body[0]))
        flex.centered = flex.centered or not np.any(flex.vert)
    body = np.broadcast_to(flex.body, flex.nvert)
    flex.xpos = poses[0][body] + (0.0 if flex.centered else rotate(flex.vert, poses[1][body]))
    if flex.interpolated:
        flex.body = np.full(flex.nvert, -1)


def _lattice(obj: FlexObject, flex: Flex, poses) -> tuple[interpolation.Lattice, np.ndarray]:
    """Return the lattice of nodes, and the axes of its frame.

    A flexcomp stores local positions of nodes and empty cells in the element's `derived`.
    """
    derived = obj.el.derived or {}
    flex.node = derived.get("node", np.zeros((len(flex.nodebody), 3)))
    flex.centered = not np.any(flex.node)
    xpos = poses[0][flex.nodebody] + (0.0 if flex.centered else rotate(flex.node, poses[1][flex.nodebody]))
    lattice = interpolation.Lattice(xpos, flex.cellcount.tolist(), flex.order, derived.get("empty"))
    axes = interpolation.frame(lattice)
    lattice.nodes = flex.node0 = interpolation.turn(xpos, axes)
    flex.cells, _ = cells(lattice.count, lattice.order)
    if lattice.empty is None and np.prod(flex.cellcount) > 1:
        lattice.empty = empty_cells(flex.xpos, flex.elem, flex.cellcount)
    return lattice, axes


def _turn_outwards(flex: Flex) -> None:
    """Order the corners of tetrahedra so that their faces are oriented outwards."""
    a, b, c, d = (flex.xpos[flex.elem[:, k]] for k in range(4))
    inside_out = np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a) > 0
    flex.elem[inside_out] = flex.elem[inside_out][:, [0, 2, 1, 3]]


def _free_elasticity(obj: FlexObject, flex: Flex) -> None:
    elastic = obj.elasticity
    young, poisson, thickness = (elastic[name] for name in ("young", "poisson", "thickness"))
    if not young > 0:
        return
    x = flex.xpos[flex.elem]
    if flex.dim == 2 and elastic["elastic2d"] in _STRETCHING:
        flex.stiffness = flex_elements.triangle_strain(x, young, poisson, thickness).ravel()
    elif flex.dim == 3:
        flex.stiffness = flex_elements.tetrahedron_strain(x, young, poisson).ravel()
    else:
        flex.stiffness = np.zeros(STRAIN_ENTRIES * len(x))
    if flex.dim == 2 and elastic["elastic2d"] in _BENDING:
        flap, shear = flex.topology.flap, flex_elements.moduli(young, poisson)[0]
        inner = np.flatnonzero(flap[:, 3] >= 0)  # not on the border
        bending = np.zeros((len(flap), BENDING_ENTRIES))
        bending[inner] = flex_elements.bending([flex.xpos[k] for k in flap[inner].T], shear, thickness)
        flex.bending = bending.ravel()


def _nodal_elasticity(obj: FlexObject, flex: Flex, lattice: interpolation.Lattice) -> None:
    elastic = obj.elasticity
    young, poisson, thickness = (elastic[name] for name in ("young", "poisson", "thickness"))
    if obj.strained:
        material = interpolation.STRAIN_YOUNG, interpolation.STRAIN_POISSON
    else:
        material = young, poisson
    shell = elastic["elastic2d"] != "none"
    if obj.strained or young > 0:
        flex.stiffness = interpolation.lattice_stiffness(lattice, *material, shell, thickness, modes=obj.strained)
    if elastic["elastic2d"] in _BENDING and young > 0:
        flex.bending = interpolation.shell_bending(lattice, young, poisson, thickness)


def _enclose(obj: FlexObject, flex: Flex) -> None:
    """Set the bounding volume hierarchy of the elements; for a solid, only of elements in active layers."""
    near = np.arange(len(flex.elem))
    if flex.dim == 3:
        near = np.flatnonzero(flex.topology.elemlayer < obj.contact["activelayers"])
    corner = flex.xpos[flex.elem[near]]
    low, high = corner.min(axis=1), corner.max(axis=1)
    middle, half = 0.5 * (high + low), 0.5 * (high - low) + obj.attrs["radius"]
    flex.bvh = build_bvh(middle, middle - half, middle + half, near)


def _normalize(obj: FlexObject, flex: Flex, axes: np.ndarray) -> None:
    """Set vert0, vertices scaled to [0, 1] in the box of the nodes or else of the elements, and size."""
    if flex.interpolated:
        low, high = flex.node0.min(axis=0), flex.node0.max(axis=0)
        x, width = interpolation.turn(flex.xpos, axes), high - low
        flex.size = width / 2
        scaled = (x - low) / np.where(width > MINVAL, width, 1)
    else:
        if not len(flex.bvh.aabb):
            raise obj.error("no element is active; 'activelayers' must be positive")
        flex.size = flex.bvh.aabb[0, 3:] - obj.attrs["radius"]
        width = flex.size
        scaled = (flex.xpos - flex.bvh.aabb[0, :3]) / (2 * np.where(width > MINVAL, width, 1)) + 0.5
    flex.vert0 = np.where(width > MINVAL, scaled, 0.5)
