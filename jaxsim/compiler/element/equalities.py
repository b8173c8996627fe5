"""Contact pairs, exclusions and equality constraints."""

from __future__ import annotations

from jaxsim.compiler.draft import Draft
from jaxsim.compiler.objects import Equality
from jaxsim.core.types import EqType, ObjType

_EQ_TYPES = {"connect": EqType.CONNECT, "weld": EqType.WELD, "joint": EqType.JOINT, "tendon": EqType.TENDON}
_FLEX_TYPES = {"flex": EqType.FLEX, "flexvert": EqType.FLEXVERT, "flexstrain": EqType.FLEXSTRAIN}


def link_pairs(draft: Draft) -> None:
    """Find the geoms of each contact pair, in the order of their bodies, and mark them as not visual."""
    for pair in draft.lists.pair:
        geoms = []
        for name in ("geom1", "geom2"):
            if not pair.attrs[name]:
                raise pair.error(f"'{name}' is missing")
            geoms.append(draft.refer(pair, "geom", pair.attrs[name], name))
        if geoms[0].body.id > geoms[1].body.id:
            geoms.reverse()
        pair.geoms = geoms
        for geom in geoms:
            geom.visual = False
        pair.signature = (geoms[0].body.id << 16) + geoms[1].body.id


def compile_pairs(draft: Draft) -> None:
    """Set parameters of contact pairs, and sort the pairs by signature."""
    link_pairs(draft)
    for pair in draft.lists.pair:
        a = pair.attrs
        if a["condim"] not in (1, 3, 4, 6):
            raise pair.error(f"'condim' must be 1, 3, 4 or 6, not {a['condim']}")
        for name in ("friction", "solref", "solimp", "solreffriction"):
            setattr(pair, name, pair.floats(name))
        pair.geom1, pair.geom2 = pair.geoms
    draft.lists.pair.sort(key=lambda pair: pair.signature)


def compile_excludes(draft: Draft) -> None:
    """Set signatures of the pairs of bodies that do not collide, and sort by them."""
    for exclude in draft.lists.exclude:
        ids = sorted(draft.refer(exclude, "body", exclude.attrs[name], name).id for name in ("body1", "body2"))
        exclude.signature = (ids[0] << 16) + ids[1]
    draft.lists.exclude.sort(key=lambda exclude: exclude.signature)


def compile_equalities(draft: Draft) -> None:
    """Set objects and data of equality constraints."""
    for eq in draft.lists.equality:
        tag = eq.el.tag
        if tag in _FLEX_TYPES:
            _flex(draft, eq, tag)
            continue
        eq.type = _EQ_TYPES[tag]
        eq.data = [0.0, 1.0] + [0.0] * 8 + [1.0]
        if tag in ("connect", "weld"):
            kind, names, attributes = _rigid(eq, tag)
        else:
            kind, attributes = tag, (f"{tag}1", f"{tag}2")
            names = eq.attrs[attributes[0]], eq.attrs[attributes[1]]
            eq.data[:5] = eq.floats("polycoef")
        eq.objtype = {"site": ObjType.SITE, "body": ObjType.BODY}.get(kind, ObjType.UNKNOWN)
        _objects(draft, eq, kind, names, attributes)


def _flex(draft: Draft, eq: Equality, tag: str) -> None:
    """Compile a constraint on the edges, vertices or cells of a flex."""
    flex = draft.refer(eq, "flex", eq.attrs["flex"], "flex")
    if flex.flex.rigid:
        raise eq.error(f"the flex '{flex.name}' is rigid: its vertices are fixed in one body")
    eq.type, eq.objtype, eq.obj1, eq.obj2 = _FLEX_TYPES[tag], ObjType.UNKNOWN, flex.id, -1
    eq.data = [0.0, 1.0] + [0.0] * 8 + [1.0]
    if tag == "flexstrain":
        eq.data[:3] = eq.floats("cell")


def _rigid(eq: Equality, tag: str) -> tuple[str, tuple[str, str | None], tuple[str, str]]:
    """Return kind, names and attributes of the objects of a connect or weld: two bodies at an anchor, or two sites."""
    own = eq.el.attrs
    if tag == "weld":
        eq.data[10] = float(eq.attrs["torquescale"])
        if "relpose" in own:
            eq.data[3:10] = eq.floats("relpose")
    if "body1" in own:
        eq.data[:3] = eq.floats("anchor") if "anchor" in own else [0.0] * 3
        return "body", (own["body1"], own.get("body2")), ("body1", "body2")
    return "site", (own["site1"], own["site2"]), ("site1", "site2")


def _objects(draft: Draft, eq: Equality, kind: str, names: tuple[str, str | None], attributes: tuple[str, str]) -> None:
    first = draft.refer(eq, kind, names[0], attributes[0])
    second = draft.refer(eq, kind, names[1], attributes[1]) if names[1] else None
    eq.obj1 = first.id
    eq.obj2 = second.id if second is not None else (0 if kind == "body" else -1)
    if eq.obj1 == eq.obj2:
        raise eq.error(f"both sides of the constraint are the same {kind}")
    for joint in (first, second):
        if kind == "joint" and joint is not None and joint.nv != 1:
            raise eq.error("only hinge and slide joints can be coupled")
