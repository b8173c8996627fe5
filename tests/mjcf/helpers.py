"""Models for the tests of the front end: one that has an object of every kind, and any element put into it."""

from jaxsim.mjcf.schema.element_type import SCHEMA, ElementType, all_types
from jaxsim.mjcf.schema.values import ENUMS, Attribute

CONTEXT = """<mujoco>
<default><default class="main2"/></default>
<asset>
  <mesh name="mesh1" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
  <texture name="texture1" type="2d" builtin="flat" width="2" height="2"/>
  <material name="material1"/><hfield name="hfield1" nrow="2" ncol="2" size="1 1 1 1"/>
</asset>
<worldbody>
  <body name="body1"><joint name="joint1"/><geom name="geom1" size="1"/><site name="site1"/>
    <camera name="camera1"/></body>
  <body name="body2"><joint name="joint2"/><geom name="geom2" size="1"/><site name="site2"/></body>
</worldbody>
<deformable><flex name="flex1" dim="1" body="body1 body2" vertex="0 0 0 1 0 0" element="0 1"/></deformable>
<tendon><fixed name="tendon1"><joint joint="joint1" coef="1"/></fixed></tendon>
<actuator><motor name="actuator1" joint="joint1"/></actuator>
%s
</mujoco>"""

# what an element needs besides its required attributes, to be accepted
NEEDS = {
    "mujoco/custom/numeric": {"data": "1 2"},
    "mujoco/custom/text": {"data": "text"},
    "mujoco/asset/hfield": {"nrow": "2", "ncol": "2"},
    "mujoco/asset/mesh": {"vertex": "0 0 0 1 0 0 0 1 0 0 0 1"},
    "mujoco/asset/texture": {"builtin": "flat", "width": "2", "height": "2"},
    "mujoco/body/composite": {"type": "cable", "count": "3 1 1", "size": "1", "curve": "s"},
    "mujoco/body/flexcomp": {"count": "3 3 1", "name": "text", "spacing": ".1 .1 .1"},
    "mujoco/sensor/camprojection": {"site": "site1", "camera": "camera1"},
    "mujoco/body/composite/geom": {"type": "capsule", "size": ".1"},
    "mujoco/body/flexcomp/edge": {"equality": "true"},
    "mujoco/contact/pair": {"geom1": "geom1", "geom2": "geom2"},
    "mujoco/equality/connect": {"body1": "body1", "anchor": "0 0 0"},
    "mujoco/equality/weld": {"body1": "body1"},
    "mujoco/sensor/rangefinder": {"site": "site1"},
    "mujoco/sensor/distance": {"geom1": "geom1", "geom2": "geom2"},
    "mujoco/sensor/normal": {"geom1": "geom1", "geom2": "geom2"},
    "mujoco/sensor/fromto": {"geom1": "geom1", "geom2": "geom2"},
    "mujoco/actuator/dcmotor": {"motorconst": "1", "resistance": "1"},
    "mujoco/default/dcmotor": {"motorconst": "1", "resistance": "1"},
}
# attributes that another attribute needs
WITH = {
    "objtype": {"objname": "body1"},
    "objname": {"objtype": "body"},
    "reftype": {"refname": "body1"},
    "refname": {"reftype": "body"},
    "cranklength": {"cranksite": "site1"},
    "slidersite": {"cranksite": "site1"},
    "refsite": {"site": "site1"},
    "cranksite": {"slidersite": "site2"},
    "site1": {"site2": "site2"},
    "site2": {"site1": "site1"},
    "gridlayout": {"gridsize": "1 1"},
    "builtin": {"params": "1"},
    "params": {"builtin": "sphere"},
}
REPLACES = {
    "site1": ("body1", "anchor"),
    "site2": ("body1", "anchor"),
    "body1": ("geom1",),
    "body2": ("geom2",),
    "builtin": ("vertex",),
    "params": ("vertex",),
    "vertex": ("count", "curve"),
}
TEXTS = {
    "eulerseq": "zyx",
    "xyaxes": "1 0 0 0 1 0",
    "gridlayout": "U",
    "curve": "s 0 0",
    "class": "main2",
    "actuatorgroupdisable": "1 2",
    "maxhullvert": "4",
    "coordinate": "local",
}


WORDS = {"flexcomp": "grid", "composite": "cable", "flexeq": "true", "object": "body", "flexdof": "full"}


def sample(attribute: Attribute) -> str:
    """A value of the attribute's type as text."""
    if attribute.name == "elevation" and attribute.length is None:
        return "1 2 3 4"
    if attribute.words in WORDS:
        return WORDS[attribute.words]
    if attribute.name in TEXTS:
        return TEXTS[attribute.name]
    if attribute.kind == "ref":
        kind = {"default": "main2", "(objtype)": "body1", "(reftype)": "body1"}.get(attribute.refers)
        return kind or f"{attribute.refers}1"
    if attribute.kind == "word":
        return list(ENUMS[attribute.words])[-1]
    if attribute.is_number:
        return " ".join(["1"] * (attribute.length or 3))
    return {"b": "true", "bytes": "1M"}.get(attribute.kind, "text")


def minimal(kind: ElementType) -> dict[str, str]:
    """Attributes with which an element of this type is accepted."""
    attrs = {a.name: sample(a) for a in kind.attributes.values() if a.required}
    if "objtype" in attrs:
        attrs["objtype"] = "body"
    return attrs | NEEDS.get(kind.path, {})


INSIDE = {"mujoco/body/composite": '<geom type="capsule" size=".1"/>'}


def element(kind: ElementType, attrs: dict[str, str], inside: str = "") -> str:
    """One element as text."""
    written = "".join(f' {name}="{value}"' for name, value in attrs.items())
    return f"<{kind.tag}{written}>{inside}</{kind.tag}>"


def document(kind: ElementType, attrs: dict[str, str]) -> str:
    """The context with one element of this type in it, and what must stand around it."""
    text = element(kind, attrs, INSIDE.get(kind.path, ""))
    places = kind.path.split("/")[1:-1]
    for depth in range(len(places), 0, -1):
        path = "/".join(["mujoco", *places[:depth]])
        parent = _by_path(path)
        if path == "mujoco/default" and depth == 1:
            text = f"<default>{text}</default>"
        elif path == "mujoco/body":
            text = f'<worldbody><body name="around">{text}</body></worldbody>'
        else:
            inner = "" if kind.tag == "geom" else INSIDE.get(path, "")
            text = element(parent, minimal(parent), text + inner)
    if kind.path == "mujoco":
        return f"<mujoco {' '.join(f'{k}={chr(34)}{v}{chr(34)}' for k, v in attrs.items())}/>"
    if kind.path in ("mujoco/body",):
        text = f"<worldbody>{text}</worldbody>"
    if kind.path == "mujoco/default":
        text = f"<default>{text}</default>"
    return CONTEXT % text


def _by_path(path: str) -> ElementType:
    return next(kind for kind in all_types() if kind.path == path)


ROOT = SCHEMA
