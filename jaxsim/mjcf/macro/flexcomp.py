"""The macro `flexcomp`: a flex with its points, elements, bodies and constraints from a few numbers or a file.

Each point gets a body, or the points follow a lattice of nodes (dof trilinear and quadratic) and each node gets a body.
Pinned points and nodes are fixed in the body that contains the flexcomp.
"""

from __future__ import annotations

import itertools

import numpy as np

from jaxsim.core.errors import ModelError
from jaxsim.mjcf.defaults import DefaultClass, resolve
from jaxsim.mjcf.flexcomp.cells import empty_cells, lonely_nodes
from jaxsim.mjcf.flexcomp.grids import BOX_TYPES, GIVEN_TYPES, FlexShape, make_shape
from jaxsim.mjcf.flexcomp.pins import pinned_points
from jaxsim.mjcf.macro.composite import PLAIN_CLASS, add_instance
from jaxsim.mjcf.pose import orientation, rotate, unit
from jaxsim.mjcf.references import DeclaredNames
from jaxsim.mjcf.schema.element_type import SCHEMA
from jaxsim.mjcf.schema.rules import check_name_free
from jaxsim.mjcf.spec import Element, Spec, compiler_of

_FLEX = SCHEMA.children["deformable"].children["flex"]
_ORDERS = {"trilinear": 1, "quadratic": 2}
_AXES = {"full": (0, 1, 2), "2d": (0, 1)}
_SIMPSON = (1 / 6, 2 / 3)
_MAX_BODIES = 65534


def flexcomp(element: Element, into: Element, spec: Spec, names: DeclaredNames) -> None:
    """Append the flex that `element` describes to `spec`, and its bodies to the body that is or contains `into`."""
    a = resolve(spec, element)
    body = _parent(element, into)
    _check(element, a)
    shape = make_shape(element, a, spec)
    _check_shape(element, shape)
    _pose(element, a, spec, shape)
    order = _ORDERS.get(a["dof"], 0)
    bounds = shape.points.min(axis=0), shape.points.max(axis=0)
    pinned, centered = _pinned(element, a, shape, order)
    if a["type"] in GIVEN_TYPES:
        pinned = _drop_unused(shape, pinned, _nodes_for_pins(a, order))
    spec.defaults = {**spec.defaults, PLAIN_CLASS: DefaultClass.fresh()}
    flex = _add_flex(element, a, spec, shape, names)
    if pinned[: len(shape.points)].all():
        flex.attrs.update(body=(body.name or "world",), vertex=shape.points.ravel())
        flex.derived = {"flexcomp": element}
        return
    made = _add_nodes(element, a, body, flex, shape, pinned, centered, bounds) if order else None
    if made is None:
        made = _add_points(element, a, body, flex, shape, pinned, centered)
    for child in made:
        check_name_free(child, names)
        for inner in child.all():
            inner.source, inner.compiler = element.source, element.compiler
            names.add(inner)
    fixed = order > 0 or bool(pinned[: len(shape.points)].any())
    _add_plugin(element, into, [*made, *([body] if fixed else [])], names)
    _add_equality(element, spec, flex)
    flex.derived = {**(flex.derived or {}), "flexcomp": element}


def _parent(element: Element, into: Element) -> Element:
    """Return the body that contains the points; frames in between have no effect, as in MuJoCo."""
    body = into
    while body.tag == "frame":
        body = body.parent
        assert body is not None
    if body.tag != "worldbody" and not body.name:
        raise element.error("the body around a flexcomp must have a name")
    if any(around.tag == "replicate" for around in element.ancestors()) and not _inside_body(element):
        raise element.error("a flexcomp in a replicate must be in a named body")
    return body


def _inside_body(element: Element) -> bool:
    return next((around.tag == "body" for around in element.ancestors() if around.tag in ("body", "replicate")), False)


def _check(element: Element, a: dict) -> None:
    if not 1 <= a["dim"] <= 3:
        raise element.error("dim must be 1, 2 or 3")
    least = 2 if a["dof"] == "radial" and a["dim"] == 3 else 1
    if np.any(a["count"] < least) or (a["type"] in BOX_TYPES and np.any(a["count"] < 2)):
        raise element.error("count is too small")
    contact = element.child("contact")
    margin = contact.attrs.get("margin", 0.0) if contact is not None else 0.0
    if a["type"] not in GIVEN_TYPES and np.any(a["spacing"] < 2 * a["radius"] + margin):
        raise element.error("spacing must not be smaller than twice the radius plus the margin")
    if not (np.all(a["scale"] >= 1e-15) and a["mass"] >= 1e-15 and a["inertiabox"] >= 1e-15):
        raise element.error("scale, mass and inertiabox must be positive")
    if a["dof"] in _ORDERS and a["cellcount"][0] >= 0 and np.any(a["cellcount"] < 1):
        raise element.error("cellcount must be positive")


def _check_shape(element: Element, shape: FlexShape) -> None:
    n = len(shape.points)
    if n == 0 or len(shape.elements) == 0:
        raise element.error("a flexcomp needs points and elements")
    if len(shape.elements) % (shape.dim + 1):
        raise element.error(f"an element has {shape.dim + 1} points; there are {len(shape.elements)} numbers")
    if shape.elements.min() < 0 or shape.elements.max() >= n:
        raise element.error(f"an element names a point that does not exist; there are {n}")
    if not np.all(np.isfinite(shape.points)):
        raise element.error("a point is not finite")


def _pose(element: Element, a: dict, spec: Spec, shape: FlexShape) -> None:
    """Scale points from a list or a file, and transform all points to the frame of the containing body."""
    if a["type"] in GIVEN_TYPES:
        shape.points = shape.points * a["scale"]
    compiler = compiler_of(spec, element)
    try:
        quat = orientation(element.attrs, compiler["angle"] == "degree", compiler["eulerseq"])
    except ModelError as reason:
        raise element.error(reason.what) from None
    shape.points = np.stack(rotate(quat, shape.points.T), axis=1) + a["pos"]


def _cells(a: dict) -> np.ndarray:
    return a["cellcount"].astype(int) if a["cellcount"][0] >= 0 else np.ones(3, int)


def _nodes_for_pins(a: dict, order: int) -> int:
    """Return the number of nodes that pins can name; around generated grids only those of one cell."""
    cells = _cells(a) if a["type"] in GIVEN_TYPES else np.ones(3, int)
    return int(np.prod(cells * order + 1)) if order else 0


def _pinned(element: Element, a: dict, shape: FlexShape, order: int) -> tuple[np.ndarray, bool]:
    """Return the mask of points or nodes fixed to the parent body, and whether no point is fixed."""
    nnode, n = _nodes_for_pins(a, order), len(shape.points)
    if order and int(np.prod(_cells(a) * order + 1, dtype=object)) > _MAX_BODIES:
        raise element.error(f"cellcount makes more than {_MAX_BODIES} nodes")
    if a["rigid"]:
        return np.ones(max(n, nnode), bool), False
    pinned = pinned_points(element, a, shape, nnode)
    if a["dof"] == "radial":
        pinned[0] = True
    if not order and np.count_nonzero(~pinned) > _MAX_BODIES:
        raise element.error(f"there are more than {_MAX_BODIES} points to move; a model cannot have so many bodies")
    return pinned, not pinned[:n].any()


def _drop_unused(shape: FlexShape, pinned: np.ndarray, nnode: int) -> np.ndarray:
    """Remove points that no element uses; return `pinned` for the remaining points, or for nodes if these are more."""
    n = len(shape.points)
    used = np.zeros(n, bool)
    used[shape.elements] = True
    if used.all():
        return pinned
    shape.elements = (np.cumsum(used) - 1)[shape.elements]
    shape.points = shape.points[used]
    left = len(shape.points)
    if shape.texcoord is not None:
        pairs = shape.texcoord[: len(shape.texcoord) // 2 * 2].reshape(-1, 2)
        pairs = np.vstack([pairs, np.zeros((max(0, n - len(pairs)), 2))])[:n]
        shape.texcoord = pairs[used].ravel()
    kept = pinned.copy()
    kept[:left] = pinned[:n][used]
    return kept[: max(left, nnode)]


def _add_flex(element: Element, a: dict, spec: Spec, shape: FlexShape, names: DeclaredNames) -> Element:
    flex = spec.section("deformable").append(Element(_FLEX, element.source))
    flex.compiler = element.compiler
    for name in ("name", "group", "radius", "material", "rgba", "flatskin"):
        if name in element.attrs:
            flex.attrs[name] = element.attrs[name]
    flex.attrs.update(dim=shape.dim, element=np.asarray(shape.elements, np.int64))
    if a["type"] in ("box", "cylinder") or (a["type"] == "grid" and shape.dim == 3):
        flex.attrs["flatskin"] = True
    if shape.texcoord is not None and len(shape.texcoord):
        flex.attrs["texcoord"] = np.asarray(shape.texcoord, np.float64)
    if shape.elemtexcoord is not None and len(shape.elemtexcoord):
        flex.attrs["elemtexcoord"] = shape.elemtexcoord
    for child in element.children:
        kind = _FLEX.children.get(child.tag)
        if kind is not None:
            twin = flex.append(Element(kind, child.source))
            twin.attrs = {name: value for name, value in child.attrs.items() if name in kind.attributes}
    check_name_free(flex, names)
    names.add(flex)
    return flex


def _add_body(parent: Element, name: str, number: str, pos: np.ndarray, mass: float, inertia: float, axes) -> Element:
    """Add a body with slide joints along the given axes."""
    body = parent.add("body", name=name + number, pos=pos)
    body.derived = {"made": number}
    body.add("inertial", pos=np.zeros(3), mass=mass, diaginertia=np.full(3, inertia))
    for axis in axes:
        body.add("joint", type="slide", axis=axis)
    return body


def _add_points(element: Element, a: dict, parent: Element, flex: Element, shape: FlexShape, pinned, centered: bool):
    """Add a body for each point that is not pinned; returns the bodies."""
    mass = a["mass"] / len(shape.points)
    inertia = mass * (2.0 * a["inertiabox"] ** 2) / 3.0
    made, of_point = [], []
    for i, point in enumerate(shape.points):
        if pinned[i]:
            of_point.append(parent.name or "world")
            continue
        axes = [unit(point)] if a["dof"] == "radial" else [np.eye(3)[k] for k in _AXES[a["dof"]]]
        made.append(_add_body(parent, element.attrs["name"], f"_{i}", point, mass, inertia, axes))
        of_point.append(made[-1].name)
    if not centered:
        flex.attrs["vertex"] = np.where(pinned[: len(shape.points), None], shape.points, 0.0).ravel()
    flex.attrs["body"] = tuple(of_point)
    return made


def _add_nodes(
    element: Element, a: dict, parent: Element, flex: Element, shape: FlexShape, pinned, centered: bool, bounds
):
    """Add a body for each node of the lattice, except pinned nodes and nodes of empty cells only."""
    order, cells = _ORDERS[a["dof"]], _cells(a)
    empty = empty_cells(shape.points, shape.elements.reshape(-1, shape.dim + 1), cells, bounds)
    lonely = lonely_nodes(empty, order)
    fixed = np.zeros(len(lonely), bool)
    fixed[: len(pinned)] = pinned[: len(lonely)]
    fixed |= lonely
    places = np.array(list(itertools.product(*(range(n * order + 1) for n in cells))))
    low, high = bounds
    points = low + places / (cells * order) * (high - low)
    weight = np.ones(len(places)) if order == 1 else _simpson(places, cells).prod(axis=1)
    total = weight[~fixed].sum()
    name, made, of_node = element.attrs["name"], [], []
    for place, point, share, pin in zip(places.tolist(), points, weight, fixed, strict=True):
        if pin:
            of_node.append(parent.name or "world")
            continue
        mass = share * a["mass"] / total
        inertia = mass * (2.0 * a["inertiabox"] ** 2) / 3.0
        made.append(_add_body(parent, name, "".join(f"_{k}" for k in place), point, mass, inertia, np.eye(3)))
        of_node.append(made[-1].name)
    flex.attrs.update(
        body=(parent.name or "world",) * len(shape.points), vertex=shape.points.ravel(), node=tuple(of_node)
    )
    flex.attrs.update(dof=a["dof"], cellcount=cells)
    flex.derived = {"empty": empty}
    if not centered or fixed.any():
        flex.derived["node"] = np.where(fixed[:, None], points, 0.0)
    return made


def _simpson(places: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return the share of the mass of each node of a quadratic lattice, in each direction.

    Nodes between two cells get both shares.
    """
    middle = places % 2
    between = (middle == 0) & (places > 0) & (places < 2 * cells)
    return np.where(middle == 1, _SIMPSON[1], _SIMPSON[0]) * np.where(between, 2, 1)


def _add_plugin(element: Element, into: Element, bodies: list[Element], names: DeclaredNames) -> None:
    """Add the plugin of a flexcomp to the bodies of its points; an implied instance is appended to `into`."""
    written = element.child("plugin")
    if written is None:
        return
    instance = written.attrs.get("instance")
    if not instance:
        instance = f"flexcomp_{element.attrs['name']}"
        made = add_instance(into, written, instance)
        check_name_free(made, names)
        names.add(made)
    for body in bodies:
        if body.child("plugin") is not None:
            raise written.error(f"the body '{body.name}' has a plugin already")
        plugin = body.append(Element(body.child_type("plugin"), written.source))
        plugin.attrs, plugin.derived = {**written.attrs, "instance": instance}, {"made": ""}


def _add_equality(element: Element, spec: Spec, flex: Element) -> None:
    edge = element.child("edge")
    if edge is None:
        return
    kind = edge.attrs.get("equality", "false")
    if kind == "false":
        return
    if kind != "strain":
        _add_constraint(element, edge, spec, "flex" if kind == "true" else "flexvert")
        return
    for cell in _strained_cells(element, flex):
        _add_constraint(element, edge, spec, "flexstrain", cell=cell)


def _strained_cells(element: Element, flex: Element) -> list[tuple[int, ...]]:
    """Return the cells of strain constraints: nonempty ones, or of a shell the numbers of its outer faces."""
    if flex.derived is None:
        return [(0, 0, 0)]
    elastic = element.child("elasticity")
    if elastic is not None and elastic.attrs.get("elastic2d", "none") != "none":
        x, y, z = flex.attrs["cellcount"].tolist()
        return [(face, -1, -1) for face in range(2 * (y * z + x * z + x * y))]
    return [tuple(cell) for cell in np.argwhere(~flex.derived["empty"]).tolist()]


def _add_constraint(element: Element, edge: Element, spec: Spec, tag: str, **attrs) -> None:
    equality = spec.section("equality").add(tag, flex=element.attrs["name"], class_=PLAIN_CLASS, **attrs)
    equality.source, equality.compiler, equality.derived = element.source, element.compiler, {"made": ""}
    for name in ("solref", "solimp"):
        if name in edge.attrs:
            equality.attrs[name] = edge.attrs[name]
