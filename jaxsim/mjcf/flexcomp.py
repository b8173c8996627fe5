"""The macro `flexcomp`: a flex with its points, elements, bodies and constraints from a few numbers.

Built here are the shapes that need no file (grid, circle, box, cylinder, ellipsoid, square, disc, direct), with a body
for each point. Meshes and points that follow a coarser lattice (dof trilinear and quadratic) are refused by name.
"""

from __future__ import annotations

import numpy as np

from jaxsim.errors import UnsupportedError
from jaxsim.mjcf.composite import PLAIN_CLASS
from jaxsim.mjcf.defaults import DefaultClass, resolve
from jaxsim.mjcf.pose import orientation, rotate, unit
from jaxsim.mjcf.references import Names
from jaxsim.mjcf.rules import check_name_free
from jaxsim.mjcf.schema import SCHEMA
from jaxsim.mjcf.spec import Element, Spec, compiler_of

_FLEX = SCHEMA.children["deformable"].children["flex"]
_EPS = 1e-14
_BOXES = ("box", "cylinder", "ellipsoid")
_FLAT = ("square", "disc")
_TETS = np.array([[0, 3, 1, 7], [0, 1, 4, 7], [1, 3, 2, 7], [1, 2, 6, 7], [1, 5, 4, 7], [1, 6, 5, 7]])
_CORNERS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]])
_AXES = {"full": (0, 1, 2), "2d": (0, 1)}


class _Shape:
    """Points (n, 3), elements (flat), texture coordinates (flat or None) and the dimension of a flex."""

    def __init__(self, points: np.ndarray, elements: np.ndarray, texcoord: np.ndarray | None, dim: int):
        self.points, self.elements, self.texcoord, self.dim = points, elements, texcoord, dim


def flexcomp(element: Element, into: Element, spec: Spec, names: Names) -> None:
    """Append the flex that `element` describes to `spec` and its bodies to the body that `into` is or stands in."""
    a = resolve(spec, element)
    if any(child.tag == "plugin" for child in element.children):
        raise UnsupportedError(f"{element.label()}: plugins are not supported")
    if a["type"] in ("mesh", "gmsh") or a["dof"] in ("trilinear", "quadratic"):
        feature = f"type {a['type']}" if a["type"] in ("mesh", "gmsh") else f"dof {a['dof']}"
        raise UnsupportedError(f"{element.label()}: flexcomp of {feature} is not built yet")
    body = _parent(element, into)
    _check(element, a)
    shape = _make(element, a)
    _check_shape(element, shape)
    if a["type"] == "direct":
        shape.points = shape.points * a["scale"]
    quat = orientation(element, compiler_of(spec, element))
    shape.points = np.array([rotate(quat, p) for p in shape.points]) + a["pos"]
    pinned = _pinned(element, a, shape)
    if a["type"] == "direct":
        pinned = _drop_unused(shape, pinned)
    rigid = bool(pinned.all())
    spec.defaults = {**spec.defaults, PLAIN_CLASS: DefaultClass.fresh()}
    flex = _add_flex(element, a, spec, shape, names)
    if rigid:
        flex.attrs.update(body=(body.name or "world",), vertex=shape.points.ravel())
        return
    vertex = np.where(pinned[:, None], shape.points, 0.0)
    if pinned.any():
        flex.attrs["vertex"] = vertex.ravel()
    flex.attrs["body"] = tuple(_add_bodies(element, a, body, shape, pinned, names))
    _add_equality(element, spec)


def _parent(element: Element, into: Element) -> Element:
    """The body that the points belong to; frames in between have no effect, as in the reference."""
    body = into
    while body.tag == "frame":
        body = body.parent
    if body.tag != "worldbody" and not body.name:
        raise element.error("the body around a flexcomp must have a name")
    if any(around.tag == "replicate" for around in element.ancestors()) and not _inside_body(element):
        raise element.error("a flexcomp in a replicate must stand in a named body")
    return body


def _inside_body(element: Element) -> bool:
    for around in element.ancestors():
        if around.tag in ("body", "replicate"):
            return around.tag == "body"
    return False


def _check(element: Element, a: dict) -> None:
    if not 1 <= a["dim"] <= 3:
        raise element.error("dim must be 1, 2 or 3")
    least = 2 if a["dof"] == "radial" and a["dim"] == 3 else 1
    if np.any(a["count"] < least) or (a["type"] in _BOXES and np.any(a["count"] < 2)):
        raise element.error("count is too small")
    contact = element.child("contact")
    margin = contact.attrs.get("margin", 0.0) if contact is not None else 0.0
    if a["type"] != "direct" and np.any(a["spacing"] < 2 * a["radius"] + margin):
        raise element.error("spacing must not be smaller than twice the radius plus the margin")
    if np.any(a["scale"] < 1e-15) or a["mass"] < 1e-15 or a["inertiabox"] < 1e-15:
        raise element.error("scale, mass and inertiabox must be positive")
    if a["type"] in _BOXES and a["dim"] == 1:
        raise UnsupportedError(f"{element.label()}: flexcomp of type {a['type']} with dim 1 is not built")


def _make(element: Element, a: dict) -> _Shape:
    texture = a["texcoord"] is None and bool(a["material"])
    if a["type"] == "direct":
        points = a["point"] if a["point"] is not None else np.zeros(0)
        if len(points) % 3:
            raise element.error("point needs three numbers a point")
        elements = a["element"] if a["element"] is not None else np.zeros(0, int)
        return _Shape(points.reshape(-1, 3), elements, a["texcoord"], a["dim"])
    if a["type"] in _BOXES:
        shape = _box(a, texture)
    elif a["type"] in _FLAT or a["dim"] == 2:
        shape = _plane(a, texture)
    else:
        shape = _line(a) if a["dim"] == 1 else _block(a, texture)
    if a["texcoord"] is not None:
        shape.texcoord = a["texcoord"]
    return shape


def _line(a: dict) -> _Shape:
    n = a["count"][0]
    if a["type"] == "circle":
        steps = np.arange(n - 1)
        angle = 2 * np.pi / (n - 1) if n > 1 else 1.0
        radius = a["spacing"][0] / np.sin(angle / 2) / 2
        points = np.stack([radius * np.cos(angle * steps), radius * np.sin(angle * steps), 0.0 * steps], axis=1)
        elements = np.stack([steps, np.where(steps == n - 2, 0, steps + 1)], axis=1)
    else:
        x = a["spacing"][0] * (np.arange(n) - 0.5 * (n - 1))
        points = np.stack([x, 0 * x, 0 * x], axis=1)
        elements = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    return _Shape(points, elements.ravel(), None, 1)


def _lattice(counts: np.ndarray) -> np.ndarray:
    """All index triples (or pairs) of a lattice, the last index running fastest."""
    return np.stack(np.meshgrid(*[np.arange(n) for n in counts], indexing="ij"), axis=-1).reshape(-1, len(counts))


def _texture(index: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return (index / np.maximum(counts - 1, 1)).astype(np.float32).astype(np.float64)


def _plane(a: dict, texture: bool) -> _Shape:
    count, spacing = a["count"], a["spacing"]
    index = _lattice(count[:2])
    flat = spacing[:2] * (index - 0.5 * (count[:2] - 1))
    turned = ((flat[:, 0] < -_EPS) & (flat[:, 1] > -_EPS)) | ((flat[:, 0] > -_EPS) & (flat[:, 1] < -_EPS))
    turned &= a["type"] == "disc"
    corners = index[:, None, :] + np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    vert = count[2] * (count[1] * corners[..., 0] + corners[..., 1])
    straight, other = vert[:, [0, 1, 2, 0, 2, 3]], vert[:, [0, 1, 3, 1, 2, 3]]
    inner = np.all(index < count[:2] - 1, axis=1)
    elements = np.where(turned[:, None], other, straight)[inner]
    if a["type"] == "disc":
        size = 0.5 * spacing[:2] * (count[:2] - 1)
        reach = np.abs(flat).max(axis=1, keepdims=True)
        flat = np.array([unit(p) for p in flat]) * size * reach
    points = np.concatenate([flat, np.zeros((len(flat), 1))], axis=1)
    return _Shape(points, elements.ravel(), _texture(index, count[:2]).ravel() if texture else None, 2)


def _block(a: dict, texture: bool) -> _Shape:
    count, spacing = a["count"], a["spacing"]
    index = _lattice(count)
    corners = index[:, None, :] + _CORNERS
    vert = (corners[..., 0] * count[1] + corners[..., 1]) * count[2] + corners[..., 2]
    inner = np.all(index < count - 1, axis=1)
    elements = vert[inner][:, _TETS.ravel()]
    points = spacing * (index - 0.5 * (count - 1))
    return _Shape(points, elements.ravel(), _texture(index[:, :2], count[:2]).ravel() if texture else None, 3)


def _faces(count: np.ndarray, dim: int) -> list[tuple[int, int, tuple[int, int]]]:
    """The six sides of a box (five of an open one): normal axis, place on it, the two axes in it."""
    sides = []
    for normal, inside in ((2, (0, 1)), (1, (0, 2)), (0, (1, 2))):
        for place in (0, int(count[normal]) - 1):
            if not (dim == 2 and normal == 2 and place):
                sides.append((normal, place, inside))
    return sides


def _box(a: dict, texture: bool) -> _Shape:
    count, dim = a["count"], a["dim"]
    top = count[2] if dim == 2 else count[2] - 1
    limits = {2: ((0, count[0]), (0, count[1])), 1: ((0, count[0]), (1, top)), 0: ((1, count[1] - 1), (1, top))}
    number: dict[tuple[int, ...], int] = {}
    points, tex = ([np.zeros(3)] if dim == 3 else []), ([0.0, 0.0] if texture else [])
    for normal, place, inside in _faces(count, dim):
        for pair in _lattice(np.array([high - low for low, high in limits[normal]])):
            at = np.zeros(3, int)
            at[normal] = place
            at[list(inside)] = pair + [low for low, _ in limits[normal]]
            number[tuple(at.tolist())] = len(points)
            points.append(_project(a, at))
            tex += list(_texture(at[list(inside)], count[list(inside)])) if texture else []
    elements = []
    for normal, place, inside in _faces(count, dim):
        for pair in _lattice(count[list(inside)] - 1):
            corner = {}
            for step in ((0, 0), (1, 0), (1, 1), (0, 1)):
                at = np.zeros(3, int)
                at[normal] = place
                at[list(inside)] = pair + step
                corner[step] = number[tuple(at.tolist())]
            elements += _side(corner, normal, place == 0, dim)
    return _Shape(np.array(points), np.array(elements, int), np.array(tex) if texture else None, dim)


def _side(corner: dict, normal: int, low: bool, dim: int) -> list[int]:
    """The elements of one square of a side: two tetrahedra to the centre, or two triangles that face outwards."""
    o, x, xy, y = corner[0, 0], corner[1, 0], corner[1, 1], corner[0, 1]
    if dim == 3:
        return [0, o, x, xy, 0, o, y, xy]
    if normal == 2:
        return [o, xy, x, o, y, xy] if low else [o, x, xy, o, xy, y]
    forward = low if normal == 1 else not low
    return [o, x, xy, o, xy, y] if forward else [x, o, y, x, y, xy]


def _project(a: dict, at: np.ndarray) -> np.ndarray:
    """A lattice point of a box on the shape that the box stands for."""
    count = a["count"]
    size = 0.5 * a["spacing"] * (count - 1)
    pos = 2.0 * at / (count - 1) - 1
    if a["type"] == "cylinder":
        reach = np.abs(pos[:2]).max()
        pos[:2] = unit(pos[:2]) * reach
    elif a["type"] == "ellipsoid":
        pos = unit(pos)
    return pos * size


def _check_shape(element: Element, shape: _Shape) -> None:
    n = len(shape.points)
    if n == 0 or len(shape.elements) == 0:
        raise element.error("a flexcomp needs points and elements")
    if len(shape.elements) % (shape.dim + 1):
        raise element.error(f"an element has {shape.dim + 1} points; there are {len(shape.elements)} numbers")
    if shape.elements.min() < 0 or shape.elements.max() >= n:
        raise element.error(f"an element names a point that does not exist; there are {n}")


def _pinned(element: Element, a: dict, shape: _Shape) -> np.ndarray:
    """Which points are fixed to the parent body."""
    n, dim, count = len(shape.points), shape.dim, a["count"]
    pinned = np.full(n, bool(a["rigid"]))
    if a["rigid"]:
        return pinned
    chosen: list[int] = []
    grid = _lattice(count[:dim])
    for pin in (child for child in element.children if child.tag == "pin"):
        chosen += list(pin.attrs.get("id", ()))
        for first, last in _groups(pin, "range", 2):
            chosen += [int(first), int(last), *range(int(first), int(last) + 1)]
        if ("grid" in pin.attrs or "gridrange" in pin.attrs) and (a["type"] != "grid" or dim == 1):
            raise pin.error("grid and gridrange pin points of grids of dimension 2 or 3 only")
        for point in _groups(pin, "grid", dim):
            _check_grid(pin, point, count[:dim])
            chosen += list(np.flatnonzero(np.all(grid == point, axis=1)))
        for low, high in ((g[:dim], g[dim:]) for g in _groups(pin, "gridrange", 2 * dim)):
            _check_grid(pin, low, count[:dim])
            _check_grid(pin, high, count[:dim])
            chosen += list(np.flatnonzero(np.all((grid >= low) & (grid <= high), axis=1)))
    if any(not 0 <= i < n for i in chosen):
        raise element.error(f"a pin names a point that does not exist; there are {n}")
    pinned[np.array(chosen, int)] = True
    if a["dof"] == "radial":
        pinned[0] = True
    return pinned


def _groups(pin: Element, name: str, size: int) -> np.ndarray:
    values = np.asarray(pin.attrs.get(name, ()), int)
    if len(values) % size:
        raise pin.error(f"{name} needs a multiple of {size} numbers")
    return values.reshape(-1, size)


def _check_grid(pin: Element, point: np.ndarray, count: np.ndarray) -> None:
    if np.any(point < 0) or np.any(point >= count):
        raise pin.error("a pin lies outside of the grid")


def _drop_unused(shape: _Shape, pinned: np.ndarray) -> np.ndarray:
    """Take out points that no element uses; returns what is left of `pinned`."""
    used = np.zeros(len(shape.points), bool)
    used[shape.elements] = True
    shape.elements = (np.cumsum(used) - 1)[shape.elements]
    shape.points = shape.points[used]
    if shape.texcoord is not None:
        shape.texcoord = shape.texcoord.reshape(-1, 2)[used].ravel()
    return pinned[used]


def _add_flex(element: Element, a: dict, spec: Spec, shape: _Shape, names: Names) -> Element:
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
    for child in element.children:
        kind = _FLEX.children.get(child.tag)
        if kind is not None:
            twin = flex.append(Element(kind, child.source))
            twin.attrs = {name: value for name, value in child.attrs.items() if name in kind.attributes}
    check_name_free(flex, names)
    names.add(flex)
    return flex


def _add_bodies(
    element: Element, a: dict, parent: Element, shape: _Shape, pinned: np.ndarray, names: Names
) -> list[str]:
    """A body for each point that is not pinned; returns the name of the body of each point."""
    mass = a["mass"] / len(shape.points)
    inertia = np.full(3, mass * (2.0 * a["inertiabox"] ** 2) / 3.0)
    of_point = []
    for i, point in enumerate(shape.points):
        if pinned[i]:
            of_point.append(parent.name or "world")
            continue
        body = parent.add("body", name=f"{element.attrs['name']}_{i}", pos=point)
        body.add("inertial", pos=np.zeros(3), mass=mass, diaginertia=inertia)
        axes = [unit(point)] if a["dof"] == "radial" else [np.eye(3)[k] for k in _AXES[a["dof"]]]
        for axis in axes:
            body.add("joint", type="slide", axis=axis)
        check_name_free(body, names)
        for made in body.all():
            made.source, made.compiler = element.source, element.compiler
            names.add(made)
        of_point.append(body.name)
    return of_point


def _add_equality(element: Element, spec: Spec) -> None:
    edge = element.child("edge")
    kind = edge.attrs.get("equality", "false") if edge is not None else "false"
    if kind == "false":
        return
    if kind == "strain":
        raise UnsupportedError(f"{element.label()}: strain constraints are not built yet")
    tag = "flex" if kind == "true" else "flexvert"
    equality = spec.section("equality").add(tag, flex=element.attrs["name"], class_=PLAIN_CLASS)
    equality.source, equality.compiler = element.source, element.compiler
    for name in ("solref", "solimp"):
        if name in edge.attrs:
            equality.attrs[name] = edge.attrs[name]
