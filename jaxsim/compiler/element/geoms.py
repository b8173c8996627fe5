"""Geoms: type, pose, size, bounds, mass and inertia, fluid coefficients."""

from __future__ import annotations

import math

from jaxsim.compiler.asset.mesh import MeshArrays, fit_geom
from jaxsim.compiler.draft import Draft
from jaxsim.compiler.element import volumes
from jaxsim.compiler.element.elements import check_size, pose_from_fromto
from jaxsim.compiler.kinematic_tree import in_frame, own_orientation
from jaxsim.compiler.objects import Geom
from jaxsim.core.types import GeomType
from jaxsim.mjcf.pose import EPS, compose, rotate, unit
from jaxsim.mjcf.resolved import ORIENTATIONS
from jaxsim.mjcf.schema.values import ENUMS

_MESHES = (GeomType.MESH, GeomType.SDF)


def link_geoms(draft: Draft) -> None:
    """Find the mesh and height field that each geom names, and the geoms that cannot collide."""
    for geom in draft.lists.geom:
        a = geom.attrs
        geom.type = GeomType(ENUMS["geom"][a["type"]])
        geom.mesh = draft.refer(geom, "mesh", a["mesh"], "mesh") if a["mesh"] else None
        geom.hfield = draft.refer(geom, "hfield", a["hfield"], "hfield") if a["hfield"] else None
        if geom.type in _MESHES and geom.mesh is None:
            raise geom.error("a mesh geom needs 'mesh'")
        if (geom.type == GeomType.HFIELD) != (geom.hfield is not None):
            raise geom.error("a geom of type hfield needs 'hfield', and no other geom can have it")
        geom.visual = not a["contype"] and not a["conaffinity"]


def compile_geom(draft: Draft, geom: Geom, infer: bool) -> None:
    """Compile one geom; `infer` is whether its mass and inertia are computed."""
    a = geom.attrs
    if a["condim"] not in (1, 3, 4, 6):
        raise geom.error(f"'condim' must be 1, 3, 4 or 6, not {a['condim']}")
    if geom.type == GeomType.PLANE and geom.body.weldid != 0:
        raise geom.error("a plane can only be in a body that is fixed to the world")
    size = geom.floats("size")
    if a["fromto"] is not None:
        if geom.mesh is not None:
            raise geom.error("'fromto' cannot be used with a mesh")
        pos, quat, size = pose_from_fromto(geom, geom.type, size)
    else:
        pos, quat = geom.floats("pos"), own_orientation(geom.el, a, draft.settings_of(geom.el))
        if all(a[kind] is None for kind in ORIENTATIONS):
            quat = unit(quat)
    if geom.mesh is not None:
        pos, quat, size = _place_mesh(draft, geom, pos, quat, size)
    check_size(geom, geom.type, size)
    _bounds(geom, size)
    geom.mass, geom.inertia = 0.0, [0.0] * 3
    if infer:
        _infer_mass(geom)
    coefs = geom.floats("fluidcoef")
    geom.fluid = volumes.fluid(geom.type, geom.size, coefs) if a["fluidshape"] == "ellipsoid" else [0.0] * 12
    geom.pos, geom.quat = in_frame(geom, pos, quat)


def _arrays(geom: Geom) -> MeshArrays:
    """Return the compiled mesh of a geom that has one."""
    assert geom.mesh is not None
    return geom.mesh.arrays


def _place_mesh(draft: Draft, geom: Geom, pos: list[float], quat: list[float], size: list[float]):
    """Return the pose and size of a geom with a mesh.

    A mesh geom gets the mesh's frame, a primitive is fitted to the mesh.
    """
    mesh = _arrays(geom)
    center = [0.0] * 3
    if geom.type not in _MESHES:
        fitaabb = draft.settings_of(geom.el).fitaabb
        fitted = fit_geom(mesh, geom.type.name.lower(), size, float(geom.attrs["fitscale"]), fitaabb)
        size, center = fitted[0].tolist(), fitted[1].tolist()
    elif geom.attrs["shellinertia"]:
        raise geom.error("'shellinertia' cannot be used with a mesh geom; write inertia='shell' in the mesh asset")
    mesh_pos, mesh_quat = [float(x) for x in mesh.pos], [float(x) for x in mesh.quat]
    at = [a + b for a, b in zip(rotate(mesh_quat, center), mesh_pos, strict=True)]
    return *compose(pos, quat, at, mesh_quat), size


def _bounds(geom: Geom, size: list[float]) -> None:
    """Set size, bounding box and radius of the bounding sphere."""
    if geom.type in _MESHES:
        low_high = [float(x) for x in _arrays(geom).aamm]
        low, high = low_high[:3], low_high[3:]
        geom.size = [max(abs(a), abs(b)) for a, b in zip(low, high, strict=True)]
    elif geom.type == GeomType.HFIELD:
        assert geom.hfield is not None
        x, y, top, base = geom.hfield.size
        geom.size = [x, y, 0.25 * top + 0.5 * base]
        low, high = [-x, -y, -base], [x, y, top]
        geom.rbound = math.sqrt(x * x + y * y + max(top * top, base * base))
    else:
        geom.size, geom.aabb = size, volumes.aabb(geom.type, size)
    if geom.type in (*_MESHES, GeomType.HFIELD):
        middle = [(b + a) / 2 for a, b in zip(low, high, strict=True)]
        geom.aabb = middle + [(b - a) / 2 for a, b in zip(low, high, strict=True)]
    if geom.type != GeomType.HFIELD:
        geom.rbound = volumes.rbound(geom.type, geom.size)
    if any(math.isnan(x) for x in geom.size):
        raise geom.error("'size' holds NaN")


def _infer_mass(geom: Geom) -> None:
    a = geom.attrs
    mass, density = a["mass"], a["density"]
    meshed = geom.type in _MESHES
    shell = bool(a["shellinertia"]) and not meshed
    volume = float(_arrays(geom).volume) if meshed else volumes.volume(geom.type, geom.size, shell)
    if mass is not None:
        weight = float(mass) if mass == 0 or volume > EPS else None
        density = 0.0 if mass == 0 else density
        density = mass / volume if weight else density
    else:
        weight = density * volume if density else 0.0
    if weight is not None:
        geom.mass = weight
        if weight or density:
            if meshed:
                geom.inertia = volumes.box_inertia(weight, _arrays(geom).boxsz.tolist())
            else:
                geom.inertia = volumes.inertia(geom.type, geom.size, weight, shell)
    if geom.mass < 0 or density < 0 or min(geom.inertia) < 0:
        raise geom.error("mass, inertia and density cannot be negative")
