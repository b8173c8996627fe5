"""Warnings about models that are valid and probably unintended, with file, line and element."""

from __future__ import annotations

import math

import numpy as np

from jaxsim.compiler.draft import Draft
from jaxsim.compiler.objects import Body

_MAX_INERTIA_RATIO = 10.0  # to the inertia of the body's mass at the greatest distance within its geoms


def warn_suspicious(draft: Draft) -> None:
    """Warn about unused meshes and about inertias that the geoms of a body cannot have."""
    _unused_meshes(draft)
    for body in draft.lists.body:
        _suspicious_inertia(body)


def _unused_meshes(draft: Draft) -> None:
    if draft.settings.discardvisual:
        return
    used = {id(geom.mesh) for geom in draft.lists.geom if geom.mesh is not None}
    used |= {id(sensor.obj) for sensor in draft.lists.sensor if sensor.obj is not None}
    for mesh in draft.lists.mesh:
        if id(mesh) not in used:
            mesh.el.warn("no geom uses this mesh; remove it, or name it in a geom")


def _suspicious_inertia(body: Body) -> None:
    """Warn about an inertia far above that of any distribution of the mass over the body's geoms."""
    if body.inertial is None or not body.geoms or not body.mass > 0:
        return
    reach = max(math.dist(geom.pos, body.ipos) + geom.rbound for geom in body.geoms)
    largest = max(body.inertia)
    if 0 < reach < math.inf and largest > _MAX_INERTIA_RATIO * body.mass * reach * reach:
        body.el.warn(
            f"suspicious inertia {largest:g}: its mass of {body.mass:g} within the geoms, {reach:g} from its centre, "
            f"gives {body.mass * reach * reach:g} at most"
        )


def warn_loose_flexes(draft: Draft) -> None:
    """Warn about flexes that move without elasticity, edge constraints or passive forces."""
    v = draft.values
    forces = ("flex_edgeequality", "flex_edgestiffness", "flex_edgedamping", "flex_damping")
    for i, flex in enumerate(draft.lists.flex):
        if v["flex_rigid"][i] or v["flex_bendingadr"][i] >= 0 or any(np.any(v[name][i]) for name in forces):
            continue
        flex.el.warn("it is not rigid and has no equality constraints or passive forces; give it elasticity or an edge")
