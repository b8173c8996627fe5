"""Expanded flexcomps restored for saving, since MJCF has no plain elements for flexes with pinned nodes."""

from __future__ import annotations

from collections.abc import Callable

from jaxsim.core.errors import UnsupportedError
from jaxsim.mjcf.defaults import DefaultClass, resolve
from jaxsim.mjcf.foreign import same
from jaxsim.mjcf.spec import Element, Spec


def keep_flexcomps(spec: Spec) -> Spec:
    """Return an expanded spec with all flexcomps restored if any of them has pinned nodes, else the spec itself.

    All are restored, because flexes are ordered by their creation. Raises UnsupportedError if another macro has changed
    the result of a flexcomp, so that no flexcomp can express it.
    """
    if not any("node" in (flex.derived or {}) for flex in spec.elements("flex")):
        return spec
    table, spec = spec.defaults, spec.copy()
    spec.defaults = table
    flexes = [flex for flex in spec.elements("flex") if "flexcomp" in (flex.derived or {})]
    equalities = spec.section("equality").children
    made = [e for flex in flexes for e in equalities if _made_by(e, flex)]
    kept = [_put_back(spec, flex) for flex in flexes]
    in_tree = list(spec.worldbody.all("flexcomp"))
    last = equalities[len(equalities) - len(made) :]
    if any(a is not b for a, b in zip((*in_tree, *last), (*kept, *made), strict=True)) or not _last(spec, flexes):
        raise UnsupportedError(
            f"{flexes[0].label()}: written flat, flexcomps would not come in the order that they had"
        )
    for element in (*made, *flexes):
        element.delete()
    return spec


def _last(spec: Spec, flexes: list[Element]) -> bool:
    """Return whether these flexes come after all others, where flexcomps append them."""
    return list(spec.elements("flex"))[-len(flexes) :] == flexes


def _made_by(equality: Element, flex: Element) -> bool:
    return bool(equality.derived) and equality.attrs.get("flex") == flex.name


def _refuse(flex: Element, reason: str) -> UnsupportedError:
    return UnsupportedError(f"{flex.label()}: pinned nodes cannot be written flat {reason}; save it with its flexcomp")


def _put_back(spec: Spec, flex: Element) -> Element:
    """Replace the bodies of one flexcomp by a flexcomp; returns it."""
    known = {body.name or "world": body for body in (spec.worldbody, *spec.worldbody.all("body"))}
    bodies = [known[name] for name in dict.fromkeys(flex.attrs.get("node", flex.attrs["body"]))]
    made = [body for body in bodies if "made" in (body.derived or {})]
    around = made[0].parent if made else bodies[0]
    assert around is not None and flex.derived is not None
    twin = flex.derived["flexcomp"].copy()
    twin.compiler = flex.compiler
    twin.attrs["name"] = flex.name
    if "material" in flex.attrs:
        twin.attrs["material"] = flex.attrs["material"]
    for body in made:
        _check_body(flex, body)
        plugin = body.child("plugin")
        if plugin is not None:
            _put_back_plugin(spec, flex, twin, plugin)
    if made:
        twin.derived = {"joint": _joint_defaults(spec, made[0])}
        at = around.children.index(made[0])
        around.children[at:at] = [twin]
        twin.parent = around
    else:
        around.append(twin)
    for element in (*made, *(e for e in around.children if e.tag == "plugin" and e.derived)):
        element.delete()
    return twin


def _check_body(flex: Element, body: Element) -> None:
    """Check that a body has the name from its flexcomp: a replicate may have renamed it."""
    if body.name != f"{flex.name}{(body.derived or {})['made']}":
        raise _refuse(flex, "inside of a replicate")


def _joint_defaults(spec: Spec, body: Element) -> dict:
    """Return the attributes that the joints of a flexcomp got from default classes."""
    plain = DefaultClass.fresh().records["joint"]
    joint = body.child("joint")
    assert joint is not None
    values = resolve(spec, joint)
    names = [name for name in plain if name not in ("type", "axis")]
    return {name: values[name] for name in names if not same(values[name], plain[name])}


def joints_of_flexcomps(spec: Spec, new_class: Callable[..., str]) -> None:
    """Apply the result of `_joint_defaults` to the joints of restored flexcomps, in a spec without classes.

    The containing body gets a class, and its other joints get the class main.
    """
    for element in list(spec.worldbody.all("flexcomp")):
        attrs = (element.derived or {}).get("joint")
        if not attrs:
            continue
        around = next(e for e in element.ancestors() if e.tag in ("body", "worldbody"))
        if "childclass" not in around.attrs:
            around.attrs["childclass"] = new_class(("joint", attrs))
        for joint in around.all("joint"):
            joint.attrs.setdefault("class", "main")


def _put_back_plugin(spec: Spec, flex: Element, twin: Element, used: Element) -> None:
    """Set the plugin's instance name, or delete the instance that the restored flexcomp creates again."""
    plugin, name = twin.child("plugin"), used.attrs["instance"]
    assert plugin is not None
    if plugin.attrs.get("instance"):
        plugin.attrs["instance"] = name
        return
    if name != f"flexcomp_{flex.name}":
        raise _refuse(flex, "under a prefix, with a plugin")
    for instance in list(spec.worldbody.all("instance")):
        if instance.name == name:
            instance.delete()
