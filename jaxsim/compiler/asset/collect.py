"""Assets: files are found and read here, the formats and shapes are made by the modules of their own."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from jaxsim.compiler.asset import mesh as meshes
from jaxsim.compiler.draft import Draft, Obj
from jaxsim.compiler.element.plugins import sdf_numbers
from jaxsim.core.errors import ModelError
from jaxsim.core.types import GeomType, TextureRole
from jaxsim.mjcf import Element, asset_path, read_file
from jaxsim.mjcf.schema.values import ENUMS

_MESHES = (GeomType.MESH, GeomType.SDF)


def asset_file(draft: Draft, name: str) -> str:
    """The name of a file as the model keeps it: short, without its folder where the compiler strips paths."""
    return os.path.basename(name.replace("\\", "/")) if draft.settings.strippath else reduce_path(name)


def reduce_path(name: str) -> str:
    """A path without `.` and without `..` after a folder; links are not asked."""
    *folders, last = name.replace("\\", "/").split("/")
    kept: list[str] = []
    for folder in folders:
        if folder == ".." and kept and kept[-1] not in ("..", ""):
            kept.pop()
        elif folder != ".":
            kept.append(folder)
    return "/".join([*kept, last])


def read_asset(draft: Draft, el: Element, attribute: str) -> bytes:
    """The bytes of the file that an attribute names; ModelError with the element's place where it cannot be read."""
    try:
        data = read_file(draft.spec, path := asset_path(draft.spec, el, attribute))
    except ModelError as reason:
        raise el.error(reason.what) from None
    if data is None:
        raise el.error(f"cannot find the file '{path}'")
    return data


def about(el: Element, fn, *args):
    """Call a function of an asset; its errors get the element's place."""
    try:
        return fn(*args)
    except ModelError as reason:
        raise reason if reason.source else el.error(reason.what) from None


def compile_meshes(draft: Draft) -> None:
    """Arrays of all meshes, with hulls for those that can collide."""
    hulled, sdf = set(), set()
    paired = {id(g) for pair in draft.lists["pair"] for g in pair.geoms}
    for geom in draft.lists["geom"]:
        if geom.mesh is None or geom.type not in _MESHES:
            continue
        a = geom.a
        if a["contype"] or a["conaffinity"] or id(geom) in paired or geom.mesh.a["inertia"] == "convex":
            hulled.add(id(geom.mesh))
        if geom.type == GeomType.SDF:
            sdf.add(id(geom.mesh))
    for mesh in draft.lists["mesh"]:
        given = replace(_mesh_input(draft, mesh), needhull=id(mesh) in hulled, needsdf=id(mesh) in sdf)
        mesh.arrays = about(mesh.el, meshes.compile_mesh, given)


def _mesh_input(draft: Draft, mesh: Obj) -> meshes.MeshInput:
    a, el = mesh.a, mesh.el

    def listed(name: str) -> np.ndarray:
        return np.zeros(0) if a[name] is None else np.asarray(a[name])

    mesh.file = asset_file(draft, a["file"]) if a["file"] else ""
    return meshes.MeshInput(
        name=mesh.name,
        file=read_asset(draft, el, "file") if a["file"] else None,
        filename=mesh.file,
        content_type=a["content_type"] or "",
        vertex=listed("vertex"),
        normal=listed("normal"),
        texcoord=listed("texcoord"),
        face=listed("face"),
        builtin="" if a["builtin"] == "none" else a["builtin"],
        params=listed("params"),
        refpos=a["refpos"],
        refquat=a["refquat"],
        scale=a["scale"],
        inertia=a["inertia"],
        smoothnormal=bool(a["smoothnormal"]),
        maxhullvert=int(a["maxhullvert"]),
        field=(mesh.plugin.plugin.name, sdf_numbers(mesh.plugin)) if mesh.plugin else None,
    )


def link_materials(draft: Draft) -> None:
    """Textures of materials by role, and the materials of geoms, sites, tendons and skins."""
    for material in draft.lists["material"]:
        material.texid = [-1] * len(TextureRole)
        for role, name in (material.a.get("layers") or {}).items():
            material.texid[ENUMS["role"][role]] = draft.refer(material, "texture", name, "texture").id
    for kind in ("geom", "site", "tendon", "skin", "flex"):
        for obj in draft.lists[kind]:
            name = obj.a.get("material")
            if not name and getattr(obj, "mesh", None) is not None:
                name = obj.mesh.a.get("material")
            if draft.settings.discardvisual:
                name = None
            obj.matid = draft.refer(obj, "material", name, "material").id if name else -1


def check_names(draft: Draft) -> None:
    """Assets are referred to by name and must have one; a skybox may do without."""
    for kind in ("mesh", "hfield", "texture", "material"):
        for obj in draft.lists[kind]:
            if not obj.name and not (kind == "texture" and obj.a["type"] == "skybox"):
                raise obj.error("a name is missing")
