"""Elements of attached models rewritten for the root model's compiler settings, since a file has only one set."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from jaxsim.core.errors import UnsupportedError
from jaxsim.mjcf.pose import euler_to_quat
from jaxsim.mjcf.reader import asset_path
from jaxsim.mjcf.spec import Element, Spec, compiler_of, object_name

INERTIAL = ("boundmass", "boundinertia", "balanceinertia", "inertiafromgeom", "inertiagrouprange")
_ANGLES = {"hinge": ("range", "ref", "springref"), "ball": ("range",)}
_INHERITS = {"position": "ctrl", "intvelocity": "act"}


def same(a: Any, b: Any) -> bool:
    """Return whether two values of attributes are equal, None only to itself."""
    if a is None or b is None:
        return a is b
    return np.shape(a) == np.shape(b) and bool(np.all(np.asarray(a) == np.asarray(b)))


def files(element: Element) -> list:
    """Return the attributes of an element that name files."""
    return [a for a in element.type.attributes.values() if a.kind == "file"]


def translate(spec: Spec, element: Element, twin: Element) -> None:
    """Rewrite `twin`, a copy of an attached element with all effective attributes, for the root's settings."""
    ours, own = compiler_of(spec), compiler_of(spec, element)
    _check(ours, own, element, twin)
    attrs = twin.attrs
    if own["autolimits"] and not ours["autolimits"]:
        _limit(twin)
    free = element.tag == "freejoint" or (element.tag == "joint" and attrs.get("type", "hinge") == "free")
    if free and own["alignfree"] != ours["alignfree"] and attrs.get("align", "auto") == "auto":
        attrs["align"] = "true" if own["alignfree"] else "false"
    if "euler" in attrs and element.tag != "replicate":
        attrs["quat"] = np.array(euler_to_quat(attrs.pop("euler"), own["angle"] == "degree", own["eulerseq"]))
    if own["angle"] != ours["angle"]:
        factor = np.pi / 180 if own["angle"] == "degree" else 180 / np.pi
        if "axisangle" in attrs:
            attrs["axisangle"] = attrs["axisangle"] * np.array([1, 1, 1, factor])
        if element.type.kind == "joint":
            for name in _ANGLES.get(attrs.get("type", "hinge"), ()):
                if name in attrs:
                    attrs[name] = attrs[name] * factor
    for attribute in files(element):
        if attribute.name in attrs:
            attrs[attribute.name] = _file_from_root(spec, element, attribute.name)
    if element.type.kind in ("mesh", "hfield", "texture", "skin") and object_name(element):
        attrs["name"] = object_name(element)


def _check(ours: dict, own: dict, element: Element, twin: Element) -> None:
    """Raise UnsupportedError for settings that no attribute can express."""
    for name in INERTIAL if element.type.kind == "body" else ():
        if not same(ours[name], own[name]):
            raise UnsupportedError(
                f"{element.label()} comes from a model with another compiler setting '{name}'; "
                "save with jaxsim.save_mjcf, which writes out inertias"
            )
    fitted = element.tag == "geom" and "mesh" in twin.attrs and twin.attrs.get("type", "sphere") not in ("mesh", "sdf")
    if fitted and ours["fitaabb"] != own["fitaabb"]:
        raise UnsupportedError(f"{element.label()} comes from a model with another compiler setting 'fitaabb'")


def _limit(twin: Element) -> None:
    """Write the `limited` attribute of every range, since the root model has no `autolimits`."""
    for name in twin.type.attributes:
        what = name.removesuffix("limited")
        if what == name or twin.attrs.get(name, "auto") != "auto":
            continue
        low, high = twin.attrs.get(f"{what}range", (0.0, 0.0))
        inherits = twin.attrs.get("inheritrange", 0) > 0 and what == _INHERITS.get(twin.tag)
        if low or high or inherits:
            twin.attrs[name] = "true" if low < high or inherits else "false"


def _file_from_root(spec: Spec, element: Element, name: str) -> str:
    ours = Element(element.type)
    ours.attrs[name] = ""
    return os.path.relpath(asset_path(spec, element, name), asset_path(spec, ours, name) or ".")
