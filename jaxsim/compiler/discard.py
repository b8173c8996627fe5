"""`discardvisual`: materials and textures go, and geoms and meshes that nothing collides with or names."""

from __future__ import annotations

from jaxsim.compiler.draft import Draft


def drop_materials(draft: Draft) -> None:
    """Forget materials, textures and the texture coordinates that meshes are given in the file."""
    if not draft.settings.discardvisual:
        return
    for kind in ("material", "texture"):
        draft.lists[kind], draft.ids[kind] = [], {}
    for mesh in draft.lists["mesh"]:
        mesh.a["texcoord"] = None


def drop_visual(draft: Draft) -> None:
    """Forget geoms that cannot touch and are not named by pairs, tendons, sensors or tuples, and meshes left over.

    Runs when inertias are known; ids of what stays move up.
    """
    if not draft.settings.discardvisual:
        return
    geoms = [geom for geom in draft.lists["geom"] if not geom.visual]
    used = {id(geom.mesh) for geom in geoms}
    draft.lists["mesh"] = [m for m in draft.lists["mesh"] if id(m) in used or not getattr(m, "visual", True)]
    draft.lists["geom"] = geoms
    for body in draft.lists["body"]:
        body.objects["geom"] = [geom for geom in body.geoms if not geom.visual]
    for kind in ("geom", "mesh"):
        for i, obj in enumerate(draft.lists[kind]):
            obj.id = i
