"""Objects of a draft: a class for each kind, which declares the results of the compile passes for its objects.

An attribute that is declared without a value exists from the pass on that sets it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from jaxsim.core.errors import ModelError
from jaxsim.core.types import (
    BiasType,
    DataType,
    DynType,
    EqType,
    GainType,
    GeomType,
    JointType,
    ObjType,
    SensorType,
    Stage,
    TrnType,
    WrapType,
)
from jaxsim.mjcf import Element

if TYPE_CHECKING:
    from jaxsim.compiler.asset.hfield import HFieldArrays
    from jaxsim.compiler.asset.mesh import MeshArrays
    from jaxsim.compiler.asset.skin import SkinArrays
    from jaxsim.compiler.asset.texture import TextureArrays
    from jaxsim.compiler.flex.flex import Flex
    from jaxsim.core.plugins import Plugin

Frame = tuple[list[float], list[float]]  # position and quaternion


class DraftObject:
    """An object of the model: its element, its resolved attributes, and the results of the passes for it."""

    def __init__(self, kind: str, el: Element | None, attrs: dict[str, Any], name: str = ""):
        self.kind, self._el, self.attrs, self.name = kind, el, attrs, name
        self.id = -1
        self.frame: Frame | None = None

    @property
    def el(self) -> Element:
        """The element; keyframes added by `nkey` have none."""
        assert self._el is not None
        return self._el

    def error(self, what: str) -> ModelError:
        """Return a ModelError about this object, to be raised."""
        if self._el is None:
            return ModelError(what, None, f"{self.kind} '{self.name}'" if self.name else self.kind)
        return self._el.error(what)

    def floats(self, name: str) -> list[float]:
        """Return an array attribute as a list."""
        return [float(x) for x in self.attrs[name]]

    def user(self) -> list[float]:
        """Return the user data as written."""
        value = self.attrs.get("user")
        return [] if value is None else [float(x) for x in value]


class Body(DraftObject):
    """A body of the draft, with its joints, geoms, sites, cameras, lights and child bodies."""

    pos: list[float]
    quat: list[float]
    mocap: bool
    mass: float
    inertia: list[float]
    ipos: list[float]  # empty until an inertia is given or inferred
    iquat: list[float]
    inertial_frame: Frame  # before a free body is aligned with it
    dofnum: int
    lastdof: int
    weldid: int
    rootid: int
    parentid: int
    plugin: Instance | None

    def __init__(self, el: Element, attrs: dict[str, Any], name: str, parent: Body | None):
        super().__init__("body", el, attrs, name)
        self.parent = parent
        self.bodies: list[Body] = []
        self.inertials: list[Element] = []
        self.plugin_el: Element | None = None
        self.nodes: list[Geom | None] = []  # geoms at the nodes of its bounding volumes, where `fusestatic` kept them
        self.objects = Lists(ATTACHED)

    @property
    def inertial(self) -> Element | None:
        """The `inertial` element of the body; the last one if frames hold several."""
        return self.inertials[-1] if self.inertials else None

    @property
    def joints(self) -> list[Joint]:
        return self.objects.joint

    @property
    def geoms(self) -> list[Geom]:
        return self.objects.geom


class Attached(DraftObject):
    """Element attached to a body: a joint, geom, site, camera or light."""

    body: Body


class Joint(Attached):
    """A joint: its limits and reference positions in radians."""

    type: JointType
    nq: int
    nv: int
    pos: list[float]
    axis: list[float]
    limited: bool
    range: list[float]
    actfrclimited: bool
    actfrcrange: list[float]
    springdamper: list[float]
    ref: float
    springref: float


class Geom(Attached):
    """A geom; `visual` means that it cannot collide and that no other element needs it."""

    type: GeomType
    mesh: Mesh | None
    hfield: HField | None
    visual: bool
    pos: list[float]
    quat: list[float]
    size: list[float]
    aabb: list[float]
    rbound: float
    mass: float
    inertia: list[float]
    fluid: list[float]
    matid: int
    plugin: Instance | None


class Site(Attached):
    """A site."""

    type: GeomType
    pos: list[float]
    quat: list[float]
    size: list[float]
    matid: int


class Camera(Attached):
    """A camera; `target` is the id of a body or -1."""

    pos: list[float]
    quat: list[float]
    target: int
    fovy: float
    output: int
    mode: int
    projection: int
    intrinsic: list[float]


class Light(Attached):
    """A light; `target` and `texture` are ids or -1."""

    pos: list[float]
    dir: list[float]
    mode: int
    type: int
    target: int
    texture: int


class FlexObject(DraftObject):
    """A flex, with the resolved attributes of its children; `strained` means that an equality holds its strain."""

    flex: Flex
    contact: dict[str, Any]
    edge: dict[str, Any]
    elasticity: dict[str, Any]
    strained: bool
    matid: int


class Mesh(DraftObject):
    """A mesh asset; `visual` is set if a sensor needs it."""

    file: str
    arrays: MeshArrays
    visual: bool
    plugin: Instance | None


class Skin(DraftObject):
    """A skin."""

    file: str
    arrays: SkinArrays
    matid: int


class HField(DraftObject):
    """A height field."""

    file: str
    arrays: HFieldArrays
    size: list[float]


class Texture(DraftObject):
    """A texture."""

    file: str
    arrays: TextureArrays


class Material(DraftObject):
    """A material, with the id of its texture in each role, or -1."""

    texid: list[int]


class Pair(DraftObject):
    """A contact pair, with its geoms in the order of their bodies."""

    geoms: list[Geom]
    geom1: Geom
    geom2: Geom
    signature: int
    friction: list[float]
    solref: list[float]
    solimp: list[float]
    solreffriction: list[float]


class Exclude(DraftObject):
    """Two bodies that do not collide."""

    signature: int


class Equality(DraftObject):
    """An equality constraint; its objects are ids or -1."""

    type: EqType
    objtype: ObjType
    obj1: int
    obj2: int
    data: list[float]


@dataclass
class PathObject:
    """One entry of a tendon's path: its type, the object (None for a pulley), a parameter, a geom's side site."""

    type: WrapType
    obj: Attached | None
    parameter: float = 0.0
    side: Site | None = None

    @property
    def objid(self) -> int:
        return -1 if self.obj is None else self.obj.id

    @property
    def prm(self) -> float:
        """`wrap_prm`: coefficient of a joint, divisor of a pulley, or id of a geom's side site (-1 for none)."""
        if self.type in (WrapType.SPHERE, WrapType.CYLINDER):
            return -1.0 if self.side is None else float(self.side.id)
        return self.parameter


class Tendon(DraftObject):
    """A tendon, with its path and the kinematic trees that it connects."""

    path: list[PathObject]
    spatial: bool
    trees: list[int]
    limited: bool
    range: list[float]
    actfrclimited: bool
    actfrcrange: list[float]
    springlength: list[float]
    matid: int


class Actuator(DraftObject):
    """An actuator. `target` is a Joint, Tendon, Site or Body, according to `trntype`."""

    trntype: TrnType
    target: Any
    trnid: list[int]
    dyntype: DynType
    gaintype: GainType
    biastype: BiasType
    dynprm: list[float]
    gainprm: list[float]
    biasprm: list[float]
    gear: list[float]
    damping: list[float]
    actdim: int
    ctrllimited: bool
    ctrlrange: list[float]
    forcelimited: bool
    forcerange: list[float]
    actlimited: bool
    actrange: list[float]
    lengthrange: list[float]
    plugin: Instance | None


class Sensor(DraftObject):
    """A sensor. `obj` and `ref` are objects of the kinds `objtype` and `reftype`, or None."""

    type: SensorType
    stage: Stage
    datatype: DataType
    dim: int
    obj: Any
    objtype: ObjType
    ref: Any
    reftype: ObjType
    intprm: list[int]
    noise: float
    cutoff: float
    interval: list[float]
    delay: float
    nsample: int
    interp: int
    plugin: Instance | None


class Numeric(DraftObject):
    """Custom numbers, and their count including unwritten ones."""

    data: list[float]
    size: int


class TupleObject(DraftObject):
    """A custom tuple; a member is (type, object, parameter)."""

    members: list[tuple[ObjType, DraftObject, float]]


class Instance(DraftObject):
    """A plugin instance: its plugin, its configuration by key, and the objects that use it."""

    def __init__(self, el: Element, name: str, plugin: Plugin | None):
        super().__init__("plugin", el, {}, name)
        self.declared = plugin
        self.config = {child.attrs["key"]: child.attrs["value"] for child in el.children if child.tag == "config"}
        self.users: list[Any] = []  # objects that use the plugin: actuators, or sensors, ...

    @property
    def plugin(self) -> Plugin:
        """The plugin; an implied instance has it once its user is known."""
        assert self.declared is not None
        return self.declared

    def texts(self) -> dict[str, str]:
        """Return the configuration: the text of each attribute of the plugin, empty if it is not written."""
        return {name: self.config.get(name, "") for name in self.plugin.attributes}


ATTACHED: dict[str, type[Attached]] = {"joint": Joint, "geom": Geom, "site": Site, "camera": Camera, "light": Light}


class Lists:
    """Objects by kind, as attributes; an item where the kind is a variable."""

    body: list[Body]
    joint: list[Joint]
    geom: list[Geom]
    site: list[Site]
    camera: list[Camera]
    light: list[Light]
    flex: list[FlexObject]
    mesh: list[Mesh]
    skin: list[Skin]
    hfield: list[HField]
    texture: list[Texture]
    material: list[Material]
    pair: list[Pair]
    exclude: list[Exclude]
    equality: list[Equality]
    tendon: list[Tendon]
    actuator: list[Actuator]
    sensor: list[Sensor]
    numeric: list[Numeric]
    text: list[DraftObject]
    tuple: list[TupleObject]
    key: list[DraftObject]
    plugin: list[Instance]

    def __init__(self, kinds: Iterable[str]):
        self.__dict__.update((kind, []) for kind in kinds)

    def __getitem__(self, kind: str) -> list[Any]:
        return self.__dict__[kind]

    def __setitem__(self, kind: str, objects: list[Any]) -> None:
        self.__dict__[kind] = objects


CLASSES: dict[str, type[DraftObject]] = {kind: get_args(of)[0] for kind, of in get_type_hints(Lists).items()}


def make_object(kind: str, el: Element | None, attrs: dict[str, Any], name: str = "") -> DraftObject:
    """Return a new object of the class of its kind; passes create bodies and plugin instances themselves."""
    return CLASSES[kind](kind, el, attrs, name)
