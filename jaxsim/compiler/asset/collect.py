"""Files of assets, inputs of meshes, materials and their textures; each format has a module of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jaxsim.compiler.asset import mesh as meshes
from jaxsim.compiler.draft import Draft
from jaxsim.compiler.objects import DraftObject, Mesh
from jaxsim.core.errors import ModelError
from jaxsim.core.plugins import numbers
from jaxsim.core.types import GeomType, TextureRole
from jaxsim.mjcf import Element, asset_path, read_file
from jaxsim.mjcf.files import base_name, not_found, portable
from jaxsim.mjcf.schema.values import ENUMS

_MESHES = (GeomType.MESH, GeomType.SDF)


def asset_file(draft: Draft, name: str) -> str:
    """Return the name of a file in the model: reduced, or without folders under `strippath`."""
    return base_name(name) if draft.settings.strippath else reduce_path(name)


def reduce_path(name: str) -> str:
    """Return a path without `.` and without `..` after a folder; symbolic links are not followed."""
    *folders, last = portable(name).split("/")
    kept: list[str] = []
    for folder in folders:
        if folder == ".." and kept and kept[-1] not in ("..", ""):
            kept.pop()
        elif folder != ".":
            kept.append(folder)
    return "/".join([*kept, last])


def read_asset(draft: Draft, el: Element, attribute: str) -> bytes:
    """Read the file that an attribute names; raise ModelError with file and line if it cannot be read."""
    try:
        data = read_file(draft.spec, path := asset_path(draft.spec, el, attribute))
    except ModelError as reason:
        raise el.error(reason.what) from None
    if data is None:
        raise el.error(not_found(path))
    return data


def listed(obj: DraftObject, name: str) -> np.ndarray | Sequence:
    """Return the numbers of an attribute, none where it is not given."""
    return () if obj.attrs[name] is None else obj.attrs[name]


def call_located(el: Element, fn, *args):
    """Call a function; a ModelError that it raises gets the file, line and name of the element."""
    try:
        return fn(*args)
    except ModelError as reason:
        raise reason if reason.source else el.error(reason.what.removeprefix(f"{el.label()}: ")) from None


def compile_meshes(draft: Draft) -> None:
    """Compile all meshes, with hulls for those that can collide."""
    hulled, sdf = set(), set()
    paired = {id(g) for pair in draft.lists.pair for g in pair.geoms}
    for geom in draft.lists.geom:
        if geom.mesh is None or geom.type not in _MESHES:
            continue
        a = geom.attrs
        if a["contype"] or a["conaffinity"] or id(geom) in paired or geom.mesh.attrs["inertia"] == "convex":
            hulled.add(id(geom.mesh))
        if geom.type == GeomType.SDF:
            sdf.add(id(geom.mesh))
    for mesh in draft.lists.mesh:
        given = replace(_mesh_input(draft, mesh), needhull=id(mesh) in hulled, needsdf=id(mesh) in sdf)
        mesh.arrays = call_located(mesh.el, meshes.compile_mesh, given)


def _mesh_input(draft: Draft, mesh: Mesh) -> meshes.MeshInput:
    a, el = mesh.attrs, mesh.el
    mesh.file = asset_file(draft, a["file"]) if a["file"] else ""
    return meshes.MeshInput(
        name=mesh.name,
        file=read_asset(draft, el, "file") if a["file"] else None,
        filename=mesh.file,
        content_type=a["content_type"] or "",
        vertex=listed(mesh, "vertex"),
        normal=listed(mesh, "normal"),
        texcoord=listed(mesh, "texcoord"),
        face=listed(mesh, "face"),
        builtin="" if a["builtin"] == "none" else a["builtin"],
        params=listed(mesh, "params"),
        refpos=a["refpos"],
        refquat=a["refquat"],
        scale=a["scale"],
        inertia=a["inertia"],
        smoothnormal=bool(a["smoothnormal"]),
        maxhullvert=int(a["maxhullvert"]),
        field=(mesh.plugin.plugin.name, numbers(mesh.plugin.plugin, mesh.plugin.texts())) if mesh.plugin else None,
    )


def link_materials(draft: Draft) -> None:
    """Set textures of materials by role, and the materials of geoms, sites, tendons and skins."""
    for material in draft.lists.material:
        material.texid = [-1] * len(TextureRole)
        for role, name in (material.attrs.get("layers") or {}).items():
            material.texid[ENUMS["role"][role]] = draft.refer(material, "texture", name, "texture").id
    for kind in ("geom", "site", "tendon", "skin", "flex"):
        for obj in draft.lists[kind]:
            name = obj.attrs.get("material")
            if not name and getattr(obj, "mesh", None) is not None:
                name = obj.mesh.attrs.get("material")
            if draft.settings.discardvisual:
                name = None
            obj.matid = draft.refer(obj, "material", name, "material").id if name else -1


def check_names(draft: Draft) -> None:
    """Check that all assets except skyboxes have a name."""
    for kind in ("mesh", "hfield", "texture", "material"):
        for obj in draft.lists[kind]:
            if not obj.name and not (kind == "texture" and obj.attrs["type"] == "skybox"):
                raise obj.error("the attribute 'name' is missing")
