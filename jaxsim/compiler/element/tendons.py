"""Tendons and their paths: sites, wrapping geoms and pulleys of spatial tendons, joints of fixed tendons."""

from __future__ import annotations

from jaxsim.compiler.draft import Draft
from jaxsim.compiler.element.elements import limited
from jaxsim.compiler.objects import DraftObject, PathObject, Tendon
from jaxsim.core.types import GeomType, WrapType
from jaxsim.mjcf import Element


def compile_tendons(draft: Draft) -> None:
    """Set paths, limits and parameters of tendons."""
    for tendon in draft.lists.tendon:
        tendon.path = [_wrap(draft, el) for el in tendon.el.children]
        if not tendon.path:
            raise tendon.error("the path is empty")
        tendon.spatial = tendon.path[0].type != WrapType.JOINT
        if tendon.spatial:
            _check_spatial(tendon)
        _limits(draft, tendon)
        tendon.springlength = tendon.floats("springlength")
        if tendon.springlength[0] > tendon.springlength[1]:
            raise tendon.error("the second number of 'springlength' cannot be less than the first")


def _wrap(draft: Draft, el: Element) -> PathObject:
    a = el.attrs
    user = DraftObject("tendon", el, a)
    if el.tag == "joint":
        return PathObject(WrapType.JOINT, draft.refer(user, "joint", a["joint"], "joint"), float(a["coef"]))
    if el.tag == "site":
        return PathObject(WrapType.SITE, draft.refer(user, "site", a["site"], "site"))
    if el.tag == "pulley":
        if a["divisor"] < 0:
            raise el.error("'divisor' cannot be negative")
        return PathObject(WrapType.PULLEY, None, float(a["divisor"]))
    geom = draft.refer(user, "geom", a["geom"], "geom")
    types = {GeomType.SPHERE: WrapType.SPHERE, GeomType.CYLINDER: WrapType.CYLINDER}
    if geom.type not in types:
        raise el.error("a tendon wraps only spheres and cylinders")
    side = draft.refer(user, "site", a["sidesite"], "sidesite") if a.get("sidesite") else None
    geom.visual = False
    return PathObject(types[geom.type], geom, side=side)


def _check_spatial(tendon: Tendon) -> None:
    path, a = tendon.path, tendon.attrs
    last = len(path) - 1
    if last < 1:
        raise tendon.error("the path of a spatial tendon needs two objects")
    if a["width"] <= 0:
        raise tendon.error("'width' must be positive")
    if a["armature"] < 0:
        raise tendon.error("'armature' cannot be negative")
    for i, wrap in enumerate(path):
        before = path[i - 1].type if i else WrapType.PULLEY
        after = path[i + 1].type if i < last else WrapType.PULLEY
        if wrap.type == WrapType.PULLEY:
            if i and before == WrapType.PULLEY:
                raise tendon.error(f"two pulleys in a row at {i}")
            if i == last:
                raise tendon.error("the path ends with a pulley")
        elif wrap.type == WrapType.SITE:
            if before == WrapType.PULLEY and after == WrapType.PULLEY:
                raise tendon.error(f"the site at {i} needs a neighbour that is not a pulley")
            if after == WrapType.SITE and i < last and path[i + 1].obj is wrap.obj:
                raise tendon.error(f"the site at {i} is repeated")
        elif wrap.type in (WrapType.SPHERE, WrapType.CYLINDER):
            if before != WrapType.SITE or after != WrapType.SITE:
                raise tendon.error(f"the geom at {i} must be between two sites")
            if a["armature"] > 0:
                raise tendon.error("a tendon with armature cannot wrap geoms")
        else:
            raise tendon.error(f"a joint at {i} in the path: joints belong to <fixed> tendons")


def _limits(draft: Draft, tendon: Tendon) -> None:
    a, autolimits = tendon.attrs, draft.settings_of(tendon.el).autolimits
    tendon.range, tendon.actfrcrange = tendon.floats("range"), [float(x) for x in a.get("actuatorfrcrange", (0, 0))]
    tendon.limited = limited(tendon, a["limited"], tendon.range, autolimits)
    if tendon.limited and tendon.range[0] >= tendon.range[1]:
        raise tendon.error("'range' must rise")
    switch = a.get("actuatorfrclimited", "auto")
    tendon.actfrclimited = limited(tendon, switch, tendon.actfrcrange, autolimits, "actuatorfrc")
    low, high = tendon.actfrcrange
    if tendon.actfrclimited and (low >= high or low > 0 or high < 0):
        raise tendon.error("'actuatorfrcrange' must rise and contain zero")
