"""The macro `composite` of type cable: a chain of bodies along a curve, joined by ball joints.

MuJoCo has removed the other types; their errors name the replacements.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from jaxsim.mjcf.defaults import DefaultClass
from jaxsim.mjcf.macro.composite_skin import add_skin, size_of
from jaxsim.mjcf.pose import axes_to_quat, conjugate, mul_quat, rotate, turn, unit
from jaxsim.mjcf.references import DeclaredNames
from jaxsim.mjcf.schema.element_type import SCHEMA
from jaxsim.mjcf.schema.rules import check_name_free
from jaxsim.mjcf.spec import Element, Spec

PLAIN_CLASS = "(composite)"
"""The default class of elements that a composite makes: MJCF's own defaults, whatever class contains the composite."""

CABLE_PLUGIN = "mujoco.elasticity.cable"
_INSTANCE = SCHEMA.children["extension"].children["plugin"].children["instance"]
_INSTEAD = {"particle": "replicate", "grid": "flexcomp", "rope": "cable", "loop": "flexcomp", "cloth": "flexcomp"}
_JOINT_ATTRIBUTES_UNUSED = ("kind", "type", "axis", "solreffix", "solimpfix", "limited")


def composite(element: Element, into: Element, spec: Spec, names: DeclaredNames) -> None:
    """Append the cable that `element` describes to `into`, a body or frame of `spec`."""
    kind = element.attrs["type"]
    if kind != "cable":
        raise element.error(f"composites of type {kind} were removed from MJCF; write {_INSTEAD[kind]}")
    count = _count(element)
    plugin = _plugin(element, into)
    geom = element.child("geom")
    shape = geom.attrs.get("type", "sphere") if geom is not None else "sphere"
    if shape not in ("cylinder", "capsule", "box"):
        raise element.error("the geom of a cable must be a capsule, cylinder or box; write its type in a geom inside")
    spec.defaults = {**spec.defaults, PLAIN_CLASS: DefaultClass.fresh()}
    prefix = element.attrs.get("prefix", "")
    spec.section("custom").add("text", name=f"composite_{prefix}", data=f"rope_{prefix}")
    points = _points(element, count)
    first = _add_bodies(element, into, spec, points)
    if plugin is not None:
        for body in first.all("body"):
            body.append(plugin.copy())
    for made in first.all():
        check_name_free(made, names)
        names.add(made)
    if shape == "box":
        add_skin(element, spec, len(points))


def _plugin(element: Element, into: Element) -> Element | None:
    """Return the plugin of every body of the cable; an implied instance is appended to `into`."""
    written = element.child("plugin")
    if written is None:
        return None
    if written.attrs.get("plugin") != CABLE_PLUGIN:
        raise written.error(f"a composite takes no plugin but {CABLE_PLUGIN}; write plugin='{CABLE_PLUGIN}'")
    plugin = Element(written.type, written.source)
    plugin.attrs = dict(written.attrs)
    if not written.attrs.get("instance"):
        plugin.attrs["instance"] = f"composite{element.attrs.get('prefix', '')}"
        add_instance(into, written, plugin.attrs["instance"])
    return plugin


def add_instance(into: Element, written: Element, name: str) -> Element:
    """Append the instance of a plugin to `into`, with the configuration `written` in a macro; return it."""
    made = into.append(Element(_INSTANCE, written.source))
    made.attrs["name"] = name
    for config in written.children:
        made.append(config.copy())
    return made


def _count(element: Element) -> list[int]:
    """Return the numbers of vertices in three directions; only the first may be more than one."""
    written = [int(n) for n in element.attrs.get("count", ())]
    count = written + [1] * (3 - len(written))
    vertex = element.attrs.get("vertex")
    if min(count) < 1:
        raise element.error("count must be positive")
    if vertex is None and not np.any(size_of(element, 1.0)):
        raise element.error("size must be positive")
    if vertex is not None:
        if count[0] > 1:
            raise element.error("vertex and count exclude each other")
        if len(vertex) % 3:
            raise element.error("vertex needs three numbers for each point")
        count[:2] = [len(vertex) // 3, 1]
    if count[0] < 2 or count[1:] != [1, 1]:
        raise element.error("a cable has one dimension and two vertices or more; write count='N 1 1'")
    if count[0] == 3:
        raise element.error("a cable of three vertices cannot be made (nor by MuJoCo); write four or more")
    return count


def _points(element: Element, count: list[int]) -> np.ndarray:
    """Compute the vertices of the cable (n, 3), rounded to float32 as in MuJoCo."""
    if "vertex" in element.attrs:
        return element.attrs["vertex"].astype(np.float32).reshape(-1, 3)
    size, n = size_of(element, 1.0), count[0]
    steps = np.arange(n)
    shapes = {
        "s": steps * size[0] / (n - 1),
        "cos(s)": size[1] * np.cos(np.pi * steps * size[2] / (n - 1)),
        "sin(s)": size[1] * np.sin(np.pi * steps * size[2] / (n - 1)),
        "0": np.zeros(n),
    }
    words = element.attrs.get("curve", "").split()
    points = np.stack([shapes[word] for word in [*words, "0", "0", "0"][:3]], axis=1)
    quat = element.attrs.get("quat", np.array([1.0, 0, 0, 0]))
    return np.array([rotate(quat, point) for point in points]).astype(np.float32)


def _frames(points: np.ndarray) -> tuple[list[list[float]], list[float]]:
    """Compute the orientation and length of each edge: a frame that follows the curve without twist."""
    edges = np.diff(points, axis=0).astype(np.float64)
    tangents = [unit(edge) for edge in edges]
    following = tangents[1] if len(tangents) > 1 else np.zeros(3)
    normal = unit(np.cross(unit(np.cross(tangents[0], following)), tangents[0]))
    quats = [axes_to_quat(tangents[0], normal, unit(np.cross(tangents[0], following)))]
    for before, tangent in itertools.pairwise(tangents):
        axis = np.cross(before, tangent)
        length = np.sqrt(axis @ axis)
        angle = math.atan2(length if length**2 >= 1e-14 else 0.0, np.dot(before, tangent))
        normal = unit(rotate(turn(unit(axis), angle), normal))
        quats.append(axes_to_quat(tangent, normal, unit(np.cross(tangent, normal))))
    return quats, [float(np.sqrt(edge @ edge)) for edge in edges]


def _name(index: int, last: int) -> str:
    return "first" if index == 0 else "last" if index == last else str(index)


def _add_bodies(element: Element, into: Element, spec: Spec, points: np.ndarray) -> Element:
    """Add the chain of bodies, each with its geom and joint; return the first."""
    quats, lengths = _frames(points)
    prefix, last = element.attrs.get("prefix", ""), len(lengths) - 1
    parent, first = into, None
    for i, (quat, length) in enumerate(zip(quats, lengths, strict=True)):
        body = Element(parent.child_type("body"), element.source)
        body.compiler = element.compiler
        body.attrs["name"] = f"{prefix}B_{_name(i, last)}"
        if i == 0:
            body.attrs["pos"] = element.attrs.get("offset", np.zeros(3)) + points[0]
            body.attrs["quat"] = np.array(quat)
            first = body
        else:
            body.attrs["pos"] = np.array([lengths[i - 1], 0.0, 0.0])
            body.attrs["quat"] = np.array(mul_quat(conjugate(quats[i - 1]), quat))
        parent.append(body)
        _add_geom(element, body, f"{prefix}G{i}", length)
        _add_joint(element, body, f"{prefix}J_{_name(i, last)}", i == 0)
        if i < last:
            names = (body.name, f"{prefix}B_{_name(i + 1, last)}")
            spec.section("contact").add("exclude", body1=names[0], body2=names[1])
        if i in (0, last):
            _add_site(element, body, f"{prefix}S_{_name(i, last)}", length if i == last else 0.0)
        parent = body
    assert first is not None
    return first


def _made(element: Element, body: Element, tag: str, name: str, unused: tuple[str, ...] = ()) -> Element:
    """Add a child to a body, with the attributes that the composite gives for its tag."""
    child = body.append(Element(body.child_type(tag), element.source))
    child.compiler = element.compiler
    written = element.child(tag)
    child.attrs.update(name=name)
    child.attrs["class"] = PLAIN_CLASS
    if tag in ("joint", "site"):
        child.attrs["group"] = 3
    if written is not None:
        child.attrs.update({k: v for k, v in written.attrs.items() if k not in unused})
    return child


def _add_geom(element: Element, body: Element, name: str, length: float) -> None:
    geom = _made(element, body, "geom", name)
    if geom.attrs["type"] == "box":
        size = size_of(geom)
        size[0] = length / 2
        geom.attrs.update(size=size, pos=np.array([length / 2, 0.0, 0.0]))
    else:
        geom.attrs["fromto"] = np.array([0.0, 0, 0, length, 0, 0])


def _add_joint(element: Element, body: Element, name: str, first: bool) -> None:
    initial = element.attrs.get("initial", "ball")
    if first and initial == "none":
        return
    joint = _made(element, body, "joint", name, _JOINT_ATTRIBUTES_UNUSED)
    free = first and initial == "free"
    joint.attrs["type"] = "free" if free else "ball"
    for key in ("stiffness", "damping"):
        if key in joint.attrs:
            joint.attrs[key] = np.array([float(joint.attrs[key])])
    if free:
        for key in ("damping", "armature", "frictionloss"):
            joint.attrs.pop(key, None)


def _add_site(element: Element, body: Element, name: str, x: float) -> None:
    site = _made(element, body, "site", name)
    site.attrs.update(pos=np.array([x, 0.0, 0.0]), quat=np.array([1.0, 0, 0, 0]))
