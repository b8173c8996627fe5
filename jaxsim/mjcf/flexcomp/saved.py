"""Flexcomps put back where the language has no plain elements for what they have made: nodes that are pinned."""

from __future__ import annotations

from collections.abc import Callable

from jaxsim.core.errors import UnsupportedError
from jaxsim.mjcf.defaults import DefaultClass, resolve
from jaxsim.mjcf.foreign import same
from jaxsim.mjcf.spec import Element, Spec


def keep_flexcomps(spec: Spec) -> Spec:
    """An expanded spec in which flexcomps stand for what they have made, if any of them has pinned nodes.

    All of them, since flexes come in the order in which they are made. Raises UnsupportedError where a macro around has
    changed what was made, so that no flexcomp says it.
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
    """Whether these flexes come behind all others, which is where flexcomps put them."""
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
        place = around.children.index(made[0])
        around.children[place:place] = [twin]
        twin.parent = around
    else:
        around.append(twin)
    for element in (*made, *(e for e in around.children if e.tag == "plugin" and e.derived)):
        element.delete()
    return twin


def _check_body(flex: Element, body: Element) -> None:
    """A body must be what a flexcomp makes: a macro around may have renamed it."""
    if body.name != flex.name + body.derived["made"]:
        raise _refuse(flex, "inside of a replicate")


def _joint_defaults(spec: Spec, body: Element) -> dict:
    """What default classes say of the joints that a flexcomp has made."""
    plain = DefaultClass.fresh().records["joint"]
    said = resolve(spec, body.child("joint"))
    return {name: said[name] for name in plain if name not in ("type", "axis") and not same(said[name], plain[name])}


def joints_of_flexcomps(spec: Spec, new_class: Callable[..., str]) -> None:
    """Give the joints that kept flexcomps will make, in a spec without classes, what `_joint_defaults` found.

    The body around gets a class, and joints that stand in it too are taken out of that again.
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
    """Name the plugin's instance, or drop the one that the flexcomp makes anew."""
    plugin, name = twin.child("plugin"), used.attrs["instance"]
    if plugin.attrs.get("instance"):
        plugin.attrs["instance"] = name
        return
    if name != f"flexcomp_{flex.name}":
        raise _refuse(flex, "under a prefix, with a plugin")
    for instance in list(spec.worldbody.all("instance")):
        if instance.name == name:
            instance.delete()
