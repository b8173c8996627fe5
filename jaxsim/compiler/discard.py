"""`discardvisual`: removal of materials, textures, and geoms and meshes that neither collide nor are named."""

from __future__ import annotations

from jaxsim.compiler.draft import Draft


def drop_materials(draft: Draft) -> None:
    """Remove materials, textures and the texture coordinates that the file gives to meshes."""
    if not draft.settings.discardvisual:
        return
    for kind in ("material", "texture"):
        draft.lists[kind], draft.ids[kind] = [], {}
    for mesh in draft.lists.mesh:
        mesh.attrs["texcoord"] = None


def drop_visual(draft: Draft) -> None:
    """Remove geoms that cannot collide and that no pair, tendon, sensor or tuple names, and meshes without users.

    Runs after inertias are computed; the remaining geoms and meshes are renumbered.
    """
    if not draft.settings.discardvisual:
        return
    geoms = [geom for geom in draft.lists.geom if not geom.visual]
    used = {id(geom.mesh) for geom in geoms}
    draft.lists.mesh = [m for m in draft.lists.mesh if id(m) in used or not getattr(m, "visual", True)]
    draft.lists.geom = geoms
    for body in draft.lists.body:
        body.objects.geom = [geom for geom in body.geoms if not geom.visual]
    for kind in ("geom", "mesh"):
        for i, obj in enumerate(draft.lists[kind]):
            obj.id = i
