"""Spec to Model: an ordered list of passes over a draft, in NumPy, without tracing."""

from __future__ import annotations

import numpy as np

from jaxsim.compiler import connectivity, settings
from jaxsim.compiler.assemble import empty_tables, object_tables, user_tables, user_widths
from jaxsim.compiler.asset.collect import check_names, link_materials
from jaxsim.compiler.asset.pack import asset_tables, compile_assets
from jaxsim.compiler.discard import drop_materials, drop_visual
from jaxsim.compiler.draft import KINDS, Draft
from jaxsim.compiler.element.actuators import compile_actuators
from jaxsim.compiler.element.bodies import check_free_bodies, check_moving_inertia, compile_bodies
from jaxsim.compiler.element.custom import compile_custom, custom_tables, key_tables
from jaxsim.compiler.element.equalities import compile_equalities, compile_excludes, compile_pairs, link_pairs
from jaxsim.compiler.element.geoms import link_geoms
from jaxsim.compiler.element.plugins import check_plugins, link_plugins, list_plugins, plugin_tables
from jaxsim.compiler.element.sensors import compile_sensors
from jaxsim.compiler.element.tendons import compile_tendons
from jaxsim.compiler.flex.build import compile_flexes
from jaxsim.compiler.flex.flex_fields import flex_tables
from jaxsim.compiler.fuse import fuse_static
from jaxsim.compiler.kinematic_tree import build_tree
from jaxsim.compiler.lengthrange import set_length_ranges
from jaxsim.compiler.model_warnings import warn_loose_flexes, warn_suspicious
from jaxsim.compiler.names import name_tables, path_tables
from jaxsim.compiler.objects import DraftObject
from jaxsim.core.make_model import make_model
from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL
from jaxsim.engine.collision.broad.capacity import default_capacities
from jaxsim.engine.constants.set_const import set_const
from jaxsim.mjcf import Spec, expand, object_name, resolve, resolve_actuator
from jaxsim.mjcf.keyframes import extend

_SECTIONS = {
    "asset": ("mesh", "hfield", "skin", "texture", "material"),
    "deformable": ("flex", "skin"),
    "contact": ("pair", "exclude"),
    "custom": ("numeric", "text", "tuple"),
    "keyframe": ("key",),
}
_WHOLE_SECTIONS = {"equality": "equality", "tendon": "tendon", "actuator": "actuator", "sensor": "sensor"}


def list_objects(draft: Draft) -> None:
    """List all objects outside the kinematic tree in document order, except that skins of assets come first."""
    sections = sorted(draft.spec.root.children, key=lambda section: section.tag == "deformable")
    for section in sections:
        for el in section.children:
            kind = _WHOLE_SECTIONS.get(section.tag)
            if kind is None and el.tag in _SECTIONS.get(section.tag, ()):
                kind = el.tag
            if kind is None:
                continue
            attrs = resolve_actuator(draft.spec, el) if kind == "actuator" else resolve(draft.spec, el)
            draft.add(kind, el, attrs, object_name(el) or "")
    missing = draft.size["nkey"] - len(draft.lists.key)
    draft.lists.key += [DraftObject("key", None, {"time": 0.0}) for _ in range(missing)]


def index_names(draft: Draft) -> None:
    """Number all objects and index their names."""
    draft.index()


def spring_dampers(draft: Draft, m: Model) -> Model:
    """Set stiffness and damping of joints with `springdamper`: a time constant and a damping ratio."""
    stiffness, damping = m.jnt_stiffness.copy(), m.dof_damping.copy()
    found = False
    for j, adr in zip(draft.lists.joint, m.jnt_dofadr, strict=True):
        time, ratio = j.springdamper
        if time <= 0 or ratio <= 0:
            continue
        found = True
        inertia = j.nv / max(MINVAL, float(np.sum(m.dof_invweight0[adr : adr + j.nv])))
        stiffness[j.id] = inertia / max(MINVAL, time * time * ratio * ratio)
        damping[adr : adr + j.nv] = 2 * inertia / max(MINVAL, time)
    return m.replace(jnt_stiffness=stiffness, dof_damping=damping) if found else m


def size_tables(draft: Draft) -> None:
    """Set sizes: numbers of objects of each kind, and sizes given in the file."""
    v = draft.values
    plural = {"body": "nbody", "equality": "neq", "actuator": "nu", "camera": "ncam", "texture": "ntex"}
    for kind, prefix in KINDS.items():
        v[plural.get(kind, f"n{prefix}")] = len(draft.lists[kind])
    v["nmocap"] = sum(b.mocap for b in draft.lists.body)
    rows = {"connect": 3, "weld": 7}
    v["nemax"] = sum(rows.get(eq.el.tag, 1) for eq in draft.lists.equality)
    v["njmax"], v["nconmax"], v["nuserdata"] = (draft.size[name] for name in ("njmax", "nconmax", "nuserdata"))
    v["ngravcomp"] = sum(b.attrs["gravcomp"] > 0 for b in draft.lists.body)


def text_tables(draft: Draft) -> None:
    """Fill names, names_map, paths and all addresses into them."""
    v = draft.values
    lists = [[obj.name for obj in draft.lists[kind]] for kind in KINDS]
    v["names"], v["names_map"], addresses = name_tables(draft.spec.modelname, lists)
    for prefix, adr in zip(KINDS.values(), addresses, strict=True):
        v[f"name_{prefix}adr"] = adr
    kinds = ("hfield", "mesh", "skin", "texture")
    v["paths"], addresses = path_tables([[obj.file for obj in draft.lists[kind]] for kind in kinds])
    for kind, adr in zip(kinds, addresses, strict=True):
        v[f"{KINDS[kind]}_pathadr"] = adr
    v["nnames"], v["nnames_map"], v["npaths"] = len(v["names"]), len(v["names_map"]), len(v["paths"])


def scale_total_mass(draft: Draft) -> None:
    """Scale masses and inertias so that the total mass is the compiler element's `settotalmass`."""
    target, v = draft.settings.settotalmass, draft.values
    if target > 0:
        scale = max(MINVAL, target / max(MINVAL, float(np.sum(v["body_mass"]))))
        v["body_mass"][1:] *= scale
        v["body_inertia"][1:] *= scale


PASSES = (
    settings.read_settings,
    build_tree,
    list_objects,
    list_plugins,
    index_names,
    link_plugins,
    check_names,
    drop_materials,
    link_geoms,
    link_pairs,
    user_widths,
    compile_assets,
    compile_bodies,
    fuse_static,
    check_free_bodies,
    compile_flexes,
    compile_pairs,
    compile_excludes,
    compile_equalities,
    compile_tendons,
    compile_actuators,
    compile_sensors,
    check_plugins,
    compile_custom,
    drop_visual,
    link_materials,
    check_moving_inertia,
    warn_suspicious,
    size_tables,
    object_tables,
    user_tables,
    connectivity.body_tables,
    connectivity.joint_tables,
    connectivity.tree_tables,
    connectivity.simple_tables,
    connectivity.tendon_tables,
    connectivity.actuator_tables,
    connectivity.sensor_tables,
    connectivity.sleep_tables,
    connectivity.bvh_tables,
    connectivity.sparse_tables,
    flex_tables,
    warn_loose_flexes,
    asset_tables,
    custom_tables,
    plugin_tables,
    key_tables,
    text_tables,
    scale_total_mass,
    empty_tables,
)


def compile_spec(spec: Spec, max_contacts: int | None = None, max_constraints: int | None = None) -> Model:
    """Compile a spec to a host model (NumPy, float64) with every field of mjModel, and capacities as in `load_model`.

    Raises ModelError for an invalid model, UnsupportedError for a feature that is not implemented.
    """
    expanded = expand(spec)
    extend(expanded)
    draft = Draft(expanded)
    for step in PASSES:
        step(draft)
    statistic = {"meaninertia": 1.0, "meanmass": 1.0, "meansize": 0.2, "extent": 2.0, "center": np.zeros(3)}
    m = make_model(draft.values, draft.option, statistic, draft.visual, modelname=spec.modelname)
    m = set_const(m)
    m = spring_dampers(draft, m)
    m = set_length_ranges(draft, m)
    m = m.replace(stat=m.stat.replace(**draft.statistic)) if draft.statistic else m
    return default_capacities(m, max_contacts, max_constraints)
