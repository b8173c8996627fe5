"""mjModel's arrays from the draft's objects, driven by one table of fields for each kind of object.

An entry `field=source` gives the source of the field: `.x` is an attribute that a pass set on the object, `#x` the id
of an object in this attribute, and `x` an MJCF attribute. Fields in single precision in MuJoCo are rounded to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxsim.compiler.draft import KINDS, Draft
from jaxsim.compiler.objects import DraftObject
from jaxsim.compiler.settings import USER_DATA_KINDS
from jaxsim.core.model import MODEL_FIELDS, SIZES
from jaxsim.core.struct import evaluate

FIELD_SOURCES = {
    "body": "pos=.pos quat=.quat ipos=.ipos iquat=.iquat mass=.mass inertia=.inertia gravcomp=gravcomp weldid=.weldid",
    "jnt": "type=.type limited=.limited actfrclimited=.actfrclimited pos=.pos axis=.axis range=.range "
    "actfrcrange=.actfrcrange group=group actgravcomp=actuatorgravcomp solref=solreflimit solimp=solimplimit "
    "margin=margin",
    "geom": "type=.type contype=contype conaffinity=conaffinity condim=condim matid=.matid group=group "
    "priority=priority solmix=solmix solref=solref solimp=solimp size=.size aabb=.aabb rbound=.rbound pos=.pos "
    "quat=.quat friction=friction margin=margin gap=gap fluid=.fluid rgba=rgba",
    "site": "type=.type matid=.matid group=group size=.size pos=.pos quat=.quat rgba=rgba",
    "cam": "mode=.mode targetbodyid=.target pos=.pos quat=.quat projection=.projection fovy=.fovy ipd=ipd "
    "resolution=resolution output=.output sensorsize=sensorsize intrinsic=.intrinsic",
    "light": "mode=.mode targetbodyid=.target type=.type texid=.texture castshadow=castshadow bulbradius=bulbradius "
    "intensity=intensity range=range active=active pos=.pos dir=.dir attenuation=attenuation cutoff=cutoff "
    "exponent=exponent ambient=ambient diffuse=diffuse specular=specular",
    "mat": "texid=.texid texuniform=texuniform texrepeat=texrepeat emission=emission specular=specular "
    "shininess=shininess reflectance=reflectance metallic=metallic roughness=roughness rgba=rgba",
    "pair": "dim=condim solref=.solref solreffriction=.solreffriction solimp=.solimp margin=margin gap=gap "
    "friction=.friction signature=.signature geom1=#geom1 geom2=#geom2",
    "exclude": "signature=.signature",
    "eq": "type=.type obj1id=.obj1 obj2id=.obj2 objtype=.objtype active0=active solref=solref solimp=solimp data=.data",
    "tendon": "matid=.matid group=group limited=.limited actfrclimited=.actfrclimited width=width "
    "solref_lim=solreflimit solimp_lim=solimplimit solref_fri=solreffriction solimp_fri=solimpfriction range=.range "
    "actfrcrange=.actfrcrange margin=margin armature=armature frictionloss=frictionloss "
    "lengthspring=.springlength rgba=rgba",
    "actuator": "trntype=.trntype dyntype=.dyntype gaintype=.gaintype biastype=.biastype trnid=.trnid "
    "armature=armature actnum=.actdim group=group delay=delay ctrllimited=.ctrllimited forcelimited=.forcelimited "
    "actlimited=.actlimited dynprm=.dynprm gainprm=.gainprm biasprm=.biasprm actearly=actearly ctrlrange=.ctrlrange "
    "forcerange=.forcerange actrange=.actrange gear=.gear cranklength=cranklength lengthrange=.lengthrange",
    "sensor": "type=.type datatype=.datatype needstage=.stage objtype=.objtype objid=#obj reftype=.reftype "
    "refid=#ref intprm=.intprm dim=.dim cutoff=.cutoff noise=.noise delay=.delay interval=.interval",
    "numeric": "size=.size",
    "key": "time=time",
}
POLYNOMIAL_FIELDS = {"jnt": ("stiffness",), "tendon": ("stiffness", "damping"), "actuator": ("damping",)}
SINGLE_PRECISION = {
    *("geom_rgba", "site_rgba", "cam_ipd", "cam_sensorsize", "cam_intrinsic", "light_bulbradius", "light_intensity"),
    *("light_range", "light_attenuation", "light_cutoff", "light_exponent", "light_ambient", "light_diffuse"),
    *("light_specular", "mat_texrepeat", "mat_emission", "mat_specular", "mat_shininess", "mat_reflectance"),
    *("mat_metallic", "mat_roughness", "mat_rgba", "tendon_rgba"),
}
SET_CONST_FIELDS = {
    *("body_subtreemass", "body_invweight0", "dof_invweight0", "dof_M0", "dof_length", "tendon_length0"),
    *("tendon_invweight0", "actuator_acc0", "actuator_length0", "cam_poscom0", "cam_pos0", "cam_mat0", "light_poscom0"),
    *("light_pos0", "light_dir0", "flexedge_length0", "flexedge_invweight0", "flex_vertmetric"),
}  # the engine's set_const computes them
PREFIX_KIND = {prefix: kind for kind, prefix in KINDS.items()}
_SHAPES = {f.name: (f.kind, f.shape) for f in MODEL_FIELDS}


def _getter(source: str) -> Callable[[DraftObject], Any]:
    name = source[1:]
    if source[0] == ".":
        return lambda obj: getattr(obj, name)
    if source[0] == "#":
        return lambda obj: id_of(getattr(obj, name))
    return lambda obj: obj.attrs[source]


def id_of(obj: DraftObject | None) -> int:
    """Return the id of an object, -1 for None."""
    return -1 if obj is None else obj.id


def column(name: str, objects: list[DraftObject], get: Callable[[DraftObject], Any]) -> np.ndarray:
    """Return the array of one field, with its dtype and row shape, from all objects of its kind."""
    kind, shape = _SHAPES[name]
    dtype = {"int": np.int32, "bool": np.bool_}.get(kind, np.float64)
    row = tuple(shape[1:])
    out = np.array([get(obj) for obj in objects], dtype=dtype).reshape(len(objects), *row)
    return out.astype(np.float32).astype(np.float64) if name in SINGLE_PRECISION else out


def object_tables(draft: Draft) -> None:
    """Fill the fields of FIELD_SOURCES, and stiffness and damping polynomials."""
    v = draft.values
    for prefix, rows in FIELD_SOURCES.items():
        objects = draft.lists[PREFIX_KIND[prefix]]
        for row in rows.split():
            name, _, source = row.partition("=")
            v[f"{prefix}_{name}"] = column(f"{prefix}_{name}", objects, _getter(source))
    for prefix, names in POLYNOMIAL_FIELDS.items():
        objects = draft.lists[PREFIX_KIND[prefix]]
        for name in names:
            full = np.array([obj.floats(name) for obj in objects]).reshape(len(objects), 3)
            v[f"{prefix}_{name}"], v[f"{prefix}_{name}poly"] = full[:, 0], full[:, 1:]


def user_widths(draft: Draft) -> None:
    """Set the width of user data of each kind: from `size`, or the largest of any object."""
    for prefix in USER_DATA_KINDS:
        width = draft.size[f"nuser_{prefix}"]
        if width == -1:
            width = max([len(obj.user()) for obj in draft.lists[PREFIX_KIND[prefix]]], default=0)
        draft.values[f"nuser_{prefix}"] = width


def user_tables(draft: Draft) -> None:
    """Fill user data, padded with zeros to the width of its kind."""
    for prefix in USER_DATA_KINDS:
        objects = draft.lists[PREFIX_KIND[prefix]]
        data = [obj.user() for obj in objects]
        width = draft.values[f"nuser_{prefix}"]
        for obj, x in zip(objects, data, strict=True):
            if len(x) > width:
                raise obj.error(f"'user' has {len(x)} numbers; 'nuser_{prefix}' of size allows {width}")
        padded = [x + [0.0] * (width - len(x)) for x in data]
        draft.values[f"{prefix}_user"] = np.array(padded, np.float64).reshape(len(objects), width)


def empty_tables(draft: Draft) -> None:
    """Fill fields and sizes of kinds of objects that the model does not have."""
    v = draft.values
    for name in SIZES:
        v.setdefault(name, 0)
    for name, kind, shape, *_ in MODEL_FIELDS:
        if name not in v:
            size = evaluate(shape, v)
            if name not in SET_CONST_FIELDS and np.prod(size, dtype=int):
                raise AssertionError(f"the compiler left {name} empty")
            v[name] = np.zeros(size, np.int32 if kind == "int" else np.float64)
