"""Compilation of meshes, height fields, textures and skins, and mjModel's concatenated fields of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxsim.compiler.asset.collect import asset_file, call_located, compile_meshes, listed, read_asset
from jaxsim.compiler.asset.hfield import HFieldInput, compile_hfield
from jaxsim.compiler.asset.skin import SkinInput, compile_skin
from jaxsim.compiler.asset.texture import TextureInput, compile_texture
from jaxsim.compiler.draft import Draft, starts, starts_or_none
from jaxsim.compiler.objects import HField, Skin, Texture

_CUBE_FACES = ("right", "left", "up", "down", "front", "back")


def compile_assets(draft: Draft) -> None:
    """Compile all assets of the draft."""
    compile_meshes(draft)
    for field in draft.lists.hfield:
        _hfield(draft, field)
    for texture in draft.lists.texture:
        _texture(draft, texture)
    for skin in draft.lists.skin:
        _skin(draft, skin)


def _file(draft: Draft, obj: HField | Texture | Skin) -> dict[str, Any]:
    """Set the name of an object's file; return its content and name, the latter alone for a builtin pattern."""
    name = obj.attrs["file"]
    obj.file = asset_file(draft, name) if name else ""
    if obj.attrs.get("builtin", "none") != "none":
        return {"filename": obj.file}
    return {"file": read_asset(draft, obj.el, "file") if name else None, "filename": obj.file}


def _hfield(draft: Draft, field: HField) -> None:
    a = field.attrs
    given = HFieldInput(
        name=field.name,
        size=a["size"],
        nrow=int(a["nrow"]),
        ncol=int(a["ncol"]),
        elevation=listed(field, "elevation"),
        content_type=a["content_type"] or "",
        **_file(draft, field),
    )
    field.arrays = call_located(field.el, compile_hfield, given)
    field.size = [float(x) for x in field.arrays.size]


def _texture(draft: Draft, texture: Texture) -> None:
    a = texture.attrs
    builtin = a["builtin"] != "none"
    cube = [f"file{face}" for face in _CUBE_FACES]
    given = TextureInput(
        **{name: a[name] for name in ("type", "colorspace", "builtin", "rgb1", "rgb2", "mark", "markrgb")},
        **{name: int(a[name]) for name in ("width", "height", "nchannel")},
        name=texture.name,
        random=float(a["random"]),
        hflip=bool(a["hflip"]),
        vflip=bool(a["vflip"]),
        content_type=a["content_type"] or "",
        gridsize=(int(a["gridsize"][0]), int(a["gridsize"][1])),
        gridlayout=a["gridlayout"],
        cubefiles=[(read_asset(draft, texture.el, n), a[n]) if a[n] and not builtin else None for n in cube],
        **_file(draft, texture),
    )
    texture.arrays = call_located(texture.el, compile_texture, given)


def _skin(draft: Draft, skin: Skin) -> None:
    bones = skin.el.children
    given = SkinInput(
        name=skin.name,
        **{name: listed(skin, name) for name in ("vertex", "texcoord", "face")},
        body=[bone.attrs["body"] for bone in bones],
        bindpos=np.array([bone.attrs["bindpos"] for bone in bones]),
        bindquat=np.array([bone.attrs["bindquat"] for bone in bones]),
        vertid=[bone.attrs["vertid"] for bone in bones],
        vertweight=[bone.attrs["vertweight"] for bone in bones],
        **_file(draft, skin),
    )
    skin.arrays = call_located(skin.el, compile_skin, given)


def _join(parts: list[np.ndarray], width: int) -> np.ndarray:
    parts = [np.asarray(p).reshape(-1, width) for p in parts]
    return np.concatenate(parts) if parts else np.zeros((0, width))


def asset_tables(draft: Draft) -> None:
    """Fill mesh_*, hfield_*, tex_* and skin_* fields."""
    _mesh_tables(draft)
    _hfield_tables(draft)
    _texture_tables(draft)
    _skin_tables(draft)


def _mesh_tables(draft: Draft) -> None:
    v, arrays = draft.values, [m.arrays for m in draft.lists.mesh]
    names = ("vert", "normal", "texcoord", "face", "graph", "polyvert", "polymap")
    counts = {name: [len(getattr(a, name)) for a in arrays] for name in names}
    counts |= {"poly": [len(a.polynormal) for a in arrays], "oct": [len(a.octree.depth) for a in arrays]}
    start = {name: starts(count) for name, count in counts.items()}
    for name, count in counts.items():
        v["noct" if name == "oct" else f"nmesh{name}"] = int(sum(count))
    for name in ("vert", "normal", "face"):
        v[f"mesh_{name}adr"], v[f"mesh_{name}num"] = start[name], np.array(counts[name], np.int32)
    v["mesh_polyadr"], v["mesh_polynum"] = start["poly"], np.array(counts["poly"], np.int32)
    v["mesh_octadr"], v["mesh_graphadr"] = starts_or_none(counts["oct"]), starts_or_none(counts["graph"])
    v["mesh_octnum"], v["mesh_texcoordnum"] = np.array(counts["oct"]), np.array(counts["texcoord"])
    v["mesh_texcoordadr"] = np.where(np.array([a.has_texcoord for a in arrays], bool), start["texcoord"], -1)
    for name, width in (("vert", 3), ("normal", 3), ("texcoord", 2), ("face", 3), ("facenormal", 3), ("graph", 1)):
        v[f"mesh_{name}"] = _join([getattr(a, name) for a in arrays], width)
    for name, width in (("facetexcoord", 3), ("scale", 3), ("pos", 3), ("quat", 4), ("polynormal", 3), ("polyvert", 1)):
        v[f"mesh_{name}"] = _join([getattr(a, name) for a in arrays], width)
    v["mesh_polymap"] = _join([a.polymap for a in arrays], 1)
    for name, base in (("polyvertadr", "polyvert"), ("polymapadr", "polymap")):
        v[f"mesh_{name}"] = _join([getattr(a, name) + b for a, b in zip(arrays, start[base], strict=True)], 1)
    for name in ("polyvertnum", "polymapnum"):
        v[f"mesh_{name}"] = _join([getattr(a, name) for a in arrays], 1)
    for name, width in (("depth", 1), ("child", 8), ("aabb", 6), ("coeff", 8)):
        v[f"oct_{name}"] = _join([getattr(a.octree, name) for a in arrays], width)


def _hfield_tables(draft: Draft) -> None:
    v, arrays = draft.values, [h.arrays for h in draft.lists.hfield]
    v["hfield_size"] = _join([a.size for a in arrays], 4)
    v["hfield_nrow"], v["hfield_ncol"] = np.array([a.nrow for a in arrays]), np.array([a.ncol for a in arrays])
    v["hfield_data"], v["hfield_adr"] = _join([a.data for a in arrays], 1), starts([len(a.data) for a in arrays])
    v["nhfielddata"] = len(v["hfield_data"])


def _texture_tables(draft: Draft) -> None:
    v, arrays = draft.values, [t.arrays for t in draft.lists.texture]
    for name in ("type", "colorspace", "height", "width", "nchannel"):
        v[f"tex_{name}"] = np.array([getattr(a, name) for a in arrays], np.int32)
    v["tex_adr"], v["ntexdata"] = starts([len(a.data) for a in arrays]), sum(len(a.data) for a in arrays)
    v["tex_data"] = np.concatenate([a.data for a in arrays]) if arrays else np.zeros(0, np.uint8)


def _skin_tables(draft: Draft) -> None:
    v, skins = draft.values, draft.lists.skin
    arrays = [s.arrays for s in skins]
    v["skin_matid"] = np.array([s.matid for s in skins], np.int32)
    v["skin_group"] = np.array([s.attrs["group"] for s in skins], np.int32)
    v["skin_rgba"] = _join([s.attrs["rgba"] for s in skins], 4)
    v["skin_inflate"] = np.array([s.attrs["inflate"] for s in skins])
    counted = {"vert": "vert", "texcoord": "texcoord", "face": "face", "bone": "bonebody", "bonevert": "bonevertid"}
    counts = {name: [len(getattr(a, field)) for a in arrays] for name, field in counted.items()}
    start = {name: starts(count) for name, count in counts.items()}
    for name, count in counts.items():
        v["nskintexvert" if name == "texcoord" else f"nskin{name}"] = int(sum(count))
    for name in ("vert", "face", "bone"):
        v[f"skin_{name}adr"], v[f"skin_{name}num"] = start[name], np.array(counts[name], np.int32)
    v["skin_texcoordadr"] = np.where(np.array([a.has_texcoord for a in arrays], bool), start["texcoord"], -1)
    for name, width in (("vert", 3), ("texcoord", 2), ("face", 3), ("bonebindpos", 3), ("bonebindquat", 4)):
        v[f"skin_{name}"] = _join([getattr(a, name) for a in arrays], width)
    for name in ("bonevertnum", "bonevertid", "bonevertweight"):
        v[f"skin_{name}"] = _join([getattr(a, name) for a in arrays], 1)
    moved = [a.bonevertadr + b for a, b in zip(arrays, start["bonevert"], strict=True)]
    v["skin_bonevertadr"] = _join(moved, 1)
    bodies = [draft.refer(s, "body", name, "body").id for s in skins for name in s.arrays.bonebody]
    v["skin_bonebodyid"] = np.array(bodies, np.int32)
