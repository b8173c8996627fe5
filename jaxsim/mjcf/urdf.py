"""URDF to Spec: links become bodies, joints joints, visual and collision shapes geoms.

As in MuJoCo: the base link is fixed to the world, angles are radians, `fusestatic` and `discardvisual` are on unless a
`<mujoco><compiler .../></mujoco>` inside sets them, the orientation of the origin of an `<inertial>` is not used, and
elements of URDF without a role in physics (transmission, gazebo, safety_controller, ...) are ignored. Meshes are named
after their files. Unlike in MuJoCo, which ignores `mimic`, a joint that mimics another is held by an equality of the
two.
"""

from __future__ import annotations

import os

import lxml.etree as etree
import numpy as np

from jaxsim.core.errors import ModelError, warn
from jaxsim.mjcf.files import base_name
from jaxsim.mjcf.pose import euler_to_quat, quat2mat, z_to_quat
from jaxsim.mjcf.schema.element_type import SCHEMA
from jaxsim.mjcf.schema.values import Attribute, did_you_mean, parse_value
from jaxsim.mjcf.spec import Element, Spec
from jaxsim.mjcf.xml import XACRO

_JOINTS = {
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "slide",
    "fixed": None,
    "floating": "free",
    "planar": "planar",
    "spherical": "ball",
}
_SHAPES = {
    "box": ("box", (("size", 3),)),
    "cylinder": ("cylinder", (("radius", 1), ("length", 1))),
    "sphere": ("sphere", (("radius", 1),)),
    "capsule": ("capsule", (("radius", 1), ("length", 1))),
}
_SECTIONS = ("compiler", "option", "size")
_SCALAR = ("revolute", "continuous", "prismatic")


class _UrdfNode:
    """A node of the XML tree with the name of its file, for errors with file and line."""

    def __init__(self, node: etree._Element, filename: str):
        self.node, self.filename = node, filename

    @property
    def location(self) -> tuple[str, int]:
        return self.filename, self.node.sourceline

    @property
    def place(self) -> tuple[tuple[str, int], str]:
        """File and line, and the element in readable form."""
        name, tag = self.node.get("name"), etree.QName(self.node).localname
        return self.location, f"{tag} '{name}'" if name else tag

    def error(self, what: str) -> ModelError:
        return ModelError(what, *self.place)

    def child(self, tag: str) -> _UrdfNode | None:
        found = self.node.findall(tag)
        if len(found) > 1:
            raise self.error(f"'{tag}' occurs {len(found)} times; once is allowed")
        return _UrdfNode(found[0], self.filename) if found else None

    def required_child(self, tag: str) -> _UrdfNode:
        found = self.child(tag)
        if found is None:
            raise self.error(f"the element '{tag}' is missing")
        return found

    def children(self, *tags: str) -> list[_UrdfNode]:
        return [_UrdfNode(node, self.filename) for node in self.node if node.tag in tags]

    def text(self, name: str) -> str:
        value = self.node.get(name)
        if value is None:
            raise self.error(f"the attribute '{name}' is required")
        return value

    def numbers(self, name: str, length: int, single: bool = False) -> np.ndarray | None:
        """Return the numbers of an attribute as an array of this length, None if it is not written."""
        if name not in self.node.attrib:
            return None
        try:
            value = parse_value(Attribute(name, "g" if single else "f", length), self.node.get(name))
        except ValueError as reason:
            raise self.error(f"attribute '{name}': {reason}") from None
        return None if value is None else np.atleast_1d(value)

    def required_numbers(self, name: str, length: int, single: bool = False) -> np.ndarray:
        """Return the numbers of an attribute as an array of this length; raise ModelError if it is missing."""
        self.text(name)
        value = self.numbers(name, length, single)
        if value is None:
            raise self.error(f"the attribute '{name}' is empty")
        return value

    def origin(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the position and quaternion of the element's origin."""
        pos, quat = np.zeros(3), np.array([1.0, 0, 0, 0])
        origin = self.child("origin")
        if origin is not None:
            xyz, rpy = origin.numbers("xyz", 3), origin.numbers("rpy", 3)
            pos = pos if xyz is None else xyz
            quat = quat if rpy is None else np.array(euler_to_quat(rpy, False, "XYZ"))
        return pos, quat


def read_urdf(node: etree._Element, spec: Spec, filename: str) -> Spec:
    """Fill an empty spec from the root element of a URDF file; raise ModelError for an invalid file."""
    robot = _UrdfNode(node, filename)
    _refuse_xacro(robot)
    if node.get("name"):
        spec.root.attrs["model"] = node.get("name")
    spec.root.source = robot.location
    _settings(robot, spec)
    colours = _colours(robot)
    bodies = _tree(robot, spec)
    seen: set[str] = set()
    meshes: dict[str, list[Element]] = {}
    for link in robot.children("link"):
        _link(link, bodies[link.text("name")], spec, colours, seen, meshes)
    for joint in robot.children("joint"):
        _joint(joint, bodies[joint.required_child("child").text("link")])
    _mimics(robot, spec)
    return spec


def _refuse_xacro(robot: _UrdfNode) -> None:
    """Raise ModelError at the first element or expression of xacro."""
    for node in robot.node.iter(etree.Element):
        remnant = "xacro" in (etree.QName(node).namespace or "")
        if remnant or any("${" in value or "$(" in value for value in node.attrib.values()):
            raise _UrdfNode(node, robot.filename).error(XACRO)


def _settings(robot: _UrdfNode, spec: Spec) -> None:
    """Return the MuJoCo sections that a URDF file may hold."""
    inner = robot.child("mujoco")
    for section in inner.children(*SCHEMA.children) if inner is not None else ():
        if section.node.tag not in _SECTIONS:
            raise section.error(f"a URDF file can have the MuJoCo sections {', '.join(_SECTIONS)} only")
        _settings_of(section, spec.section(section.node.tag))
    compiler = spec.section("compiler")
    compiler.attrs.setdefault("fusestatic", True)
    compiler.attrs.setdefault("discardvisual", True)
    compiler.attrs["angle"] = "radian"


def _settings_of(source: _UrdfNode, element: Element) -> None:
    element.source = source.location
    element.set(**dict(source.node.attrib))
    for child in source.children(*element.type.children):
        _settings_of(child, element.add(child.node.tag))


def _colours(robot: _UrdfNode) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for node in robot.node.iter("material"):
        material = _UrdfNode(node, robot.filename)
        colour, name = material.child("color"), node.get("name")
        if name is not None and colour is not None and name not in found:
            found[name] = colour.required_numbers("rgba", 4, single=True)
    return found


def _tree(robot: _UrdfNode, spec: Spec) -> dict[str, Element]:
    """Return the bodies of all links by name, nested by the joints' parents and children."""
    links: dict[str, _UrdfNode] = {}
    for link in robot.children("link"):
        name = link.text("name")
        if name in links:
            raise link.error(f"the link name '{name}' is taken")
        links[name] = link
    parents: dict[str, str] = {}
    children: dict[str, list[str]] = {name: [] for name in links}
    for joint in robot.children("joint"):
        parent, child = (joint.required_child(tag).text("link") for tag in ("parent", "child"))
        for name in (parent, child):
            if name not in links:
                raise joint.error(f"there is no link '{name}'")
        if child in parents:
            raise joint.error(f"the link '{child}' has more than one parent")
        parents[child] = parent
        children[parent].append(child)

    bodies: dict[str, Element] = {}
    todo = [(name, spec.worldbody) for name in reversed(list(links)) if name not in parents]
    while todo:
        name, into = todo.pop()
        bodies[name] = spec.worldbody if name == "world" else into.add("body", name=name or None)
        if name != "world":
            bodies[name].source = links[name].location
        todo += [(child, bodies[name]) for child in reversed(children[name])]
    for name, link in links.items():
        if name not in bodies:
            raise link.error(f"the link '{name}' is its own ancestor")
    return bodies


def _link(
    link: _UrdfNode,
    body: Element,
    spec: Spec,
    colours: dict[str, np.ndarray],
    seen: set[str],
    meshes: dict[str, list[Element]],
) -> None:
    inertial = link.child("inertial")
    if inertial is not None and body.tag != "worldbody":
        _inertial(inertial, body)
    discard = spec.section("compiler").attrs["discardvisual"]
    rgba = None
    for shape in link.children("visual", "collision"):
        visual = shape.node.tag == "visual"
        if visual:
            rgba = _colour(shape, colours, rgba)
            if discard:
                continue
        geom = _geom(shape, body, spec, meshes)
        if visual:
            geom.set(contype=0, conaffinity=0, group=1, density=0)
        if rgba is not None:
            geom.attrs["rgba"] = rgba
        name = shape.node.get("name", "")
        if name and name not in seen:
            geom.attrs["name"] = name
        seen.add(name)


def _colour(visual: _UrdfNode, colours: dict[str, np.ndarray], before: np.ndarray | None) -> np.ndarray | None:
    """Return the colour of a visual; without a material it is that of the previous visual."""
    material = visual.child("material")
    if material is None:
        return before
    colour = material.child("color")
    if colour is not None:
        return colour.required_numbers("rgba", 4, single=True)
    return colours.get(material.text("name"), before)


def _inertial(source: _UrdfNode, body: Element) -> None:
    pos, quat = source.origin()
    mass = source.required_child("mass").required_numbers("value", 1)[0]
    tensor = source.required_child("inertia")
    full = np.array([tensor.required_numbers(name, 1)[0] for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")])
    inertial = body.add("inertial", pos=pos, mass=mass)
    inertial.source = source.location
    if np.any(full != 0):
        inertial.attrs["fullinertia"] = full
    else:
        inertial.attrs["quat"] = quat


def _geom(shape: _UrdfNode, body: Element, spec: Spec, meshes: dict[str, list[Element]]) -> Element:
    geometry = shape.required_child("geometry")
    geom = body.add("geom")
    geom.source = shape.location
    for tag, (kind, sizes) in _SHAPES.items():
        found = geometry.child(tag)
        if found is not None:
            size = np.concatenate([found.required_numbers(name, n) for name, n in sizes])
            if tag == "box":
                size = size / 2
            elif len(size) == 2:
                size[1] /= 2
            geom.set(type=kind, size=size)
            break
    else:
        found = geometry.child("mesh")
        if found is None:
            raise geometry.error("a geometry needs a box, cylinder, sphere, capsule or mesh")
        geom.set(type="mesh", mesh=_mesh(found, spec, meshes))
    pos, quat = shape.origin()
    geom.attrs.update(pos=pos, quat=quat)
    return geom


def _mesh(source: _UrdfNode, spec: Spec, meshes: dict[str, list[Element]]) -> str:
    """Return the name of the mesh asset for a file at a scale, created on first use."""
    filename = source.text("filename")
    if spec.section("compiler").attrs.get("strippath"):
        filename = base_name(filename)
    base = os.path.splitext(base_name(filename))[0]
    scale = source.numbers("scale", 3)
    scale = np.ones(3) if scale is None else scale
    known = meshes.setdefault(base, [])
    if any(np.array_equal(mesh.attrs["scale"], scale) for mesh in known):
        return base
    name = f"{base}{len(known)}" if known else base
    mesh = spec.add("asset", "mesh", name=name, file=filename, scale=scale)
    mesh.source = source.location
    known.append(mesh)
    return name


def _joint(source: _UrdfNode, body: Element) -> None:
    kind, name = source.text("type"), source.text("name")
    if kind not in _JOINTS:
        raise source.error(f"unknown joint type '{kind}'; allowed are {', '.join(_JOINTS)}")
    pos, quat = source.origin()
    axis_element = source.child("axis")
    axis = np.array([1.0, 0, 0]) if axis_element is None else axis_element.required_numbers("xyz", 3)
    if body.tag == "worldbody":
        raise source.error("the link 'world' cannot be the child of a joint")
    body.attrs.update(pos=pos, quat=quat)
    made = _joints(_JOINTS[kind], name, axis, body)
    for joint in made:
        joint.source = source.location
    if made:
        _dynamics(source, made)


def _joints(kind: str | None, name: str, axis: np.ndarray, body: Element) -> list[Element]:
    if kind is None:
        return []
    if kind == "planar":
        frame = np.reshape(quat2mat(z_to_quat(axis)), (3, 3))
        rows = (("_TX", "slide", frame[:, 0]), ("_TY", "slide", frame[:, 1]), ("_RZ", "hinge", axis))
        return [body.add("joint", name=name + end, type=kind, axis=line) for end, kind, line in rows]
    joint = body.add("joint", name=name, type=kind)
    if kind != "free":
        joint.attrs["axis"] = axis
    return [joint]


def _mimics(robot: _UrdfNode, spec: Spec) -> None:
    """Return an equality for each joint that mimics another: q = multiplier * q_other + offset."""
    types = {joint.text("name"): joint.text("type") for joint in robot.children("joint")}
    for joint in robot.children("joint"):
        mimic = joint.child("mimic")
        if mimic is None:
            continue
        name, other = joint.text("name"), mimic.text("joint")
        if other not in types:
            raise joint.error(f"it mimics the joint '{other}', which does not exist{did_you_mean(other, types)}")
        if types[name] not in _SCALAR or types[other] not in _SCALAR:
            raise joint.error(f"a {types[name]} joint cannot mimic a {types[other]} one; both need one number")
        factor, offset = (mimic.numbers(word, 1) for word in ("multiplier", "offset"))
        factor, offset = 1.0 if factor is None else factor[0], 0.0 if offset is None else offset[0]
        equality = spec.add("equality", "joint", joint1=name, joint2=other, polycoef=[offset, factor, 0, 0, 0])
        equality.source = joint.location
        warn(
            f"it mimics the joint '{other}': held by an equality. MuJoCo ignores mimic; for its model delete the "
            "equality from the Spec",
            *joint.place,
        )


def _dynamics(source: _UrdfNode, made: list[Element]) -> None:
    dynamics, limit = source.child("dynamics"), source.child("limit")
    if dynamics is not None:
        for name, ours in (("damping", "damping"), ("friction", "frictionloss")):
            value = dynamics.numbers(name, 1)
            for joint in made if value is not None else ():
                joint.set(**{ours: value})
    if limit is None:
        return
    lower, upper, effort = (limit.numbers(name, 1) for name in ("lower", "upper", "effort"))
    bounds = np.array([0.0 if bound is None else bound[0] for bound in (lower, upper)])
    joint = made[0]
    if lower is not None or upper is not None:
        joint.attrs["range"] = bounds
    if (lower is None) != (upper is None) or bounds[0] > bounds[1]:
        joint.attrs["limited"] = "false"
    if effort is not None and effort[0] != 0:
        joint.attrs["actuatorfrcrange"] = abs(effort[0]) * np.array([-1.0, 1.0])
