"""Custom numbers, texts and tuples, and keyframes."""

from __future__ import annotations

import math

import numpy as np

from jaxsim.compiler.draft import Draft, starts
from jaxsim.compiler.objects import DraftObject
from jaxsim.core.types import MINVAL, ObjType
from jaxsim.engine.structure.tables import quat_address
from jaxsim.mjcf import Element
from jaxsim.mjcf.pose import normalize

MAX_NUMERIC = 500


def compile_custom(draft: Draft) -> None:
    """Set data and sizes of numerics, and members of tuples."""
    for numeric in draft.lists.numeric:
        data = numeric.attrs["data"]
        numeric.data = [] if data is None else [float(x) for x in data]
        numeric.size = int(numeric.attrs["size"]) if "size" in numeric.el.attrs else len(numeric.data)
        if not 1 <= numeric.size <= MAX_NUMERIC:
            raise numeric.error(f"the size of a numeric must be between 1 and {MAX_NUMERIC}")
    for group in draft.lists.tuple:
        group.members = [_member(draft, el) for el in group.el.children]
        if not group.members:
            raise group.error("the tuple is empty")


def _member(draft: Draft, el: Element) -> tuple[ObjType, DraftObject, float]:
    kind = el.attrs["objtype"]
    found = draft.refer(DraftObject("tuple", el, el.attrs), kind, el.attrs["objname"], "objname")
    if kind == "geom":
        found.visual = False
    return ObjType[kind.upper()], found, float(el.attrs.get("prm", 0.0))


def custom_tables(draft: Draft) -> None:
    """Fill numeric_*, text_* and tuple_* fields."""
    v = draft.values
    numerics, texts, tuples = (draft.lists[kind] for kind in ("numeric", "text", "tuple"))
    padded = [n.data + [0.0] * (n.size - len(n.data)) for n in numerics]
    v["numeric_data"] = np.array([x for data in padded for x in data], np.float64)
    v["numeric_adr"] = starts([n.size for n in numerics])
    data = [t.attrs["data"].encode() + b"\0" for t in texts]
    v["text_data"] = b"".join(data)
    v["text_size"], v["text_adr"] = np.array([len(x) for x in data], np.int32), starts([len(x) for x in data])
    members = [m for t in tuples for m in t.members]
    v["tuple_size"] = np.array([len(t.members) for t in tuples], np.int32)
    v["tuple_adr"] = starts([len(t.members) for t in tuples])
    v["tuple_objtype"], v["tuple_objid"] = (
        np.array(x, np.int32) for x in ([m[0] for m in members], [m[1].id for m in members])
    )
    v["tuple_objprm"] = np.array([m[2] for m in members], np.float64)
    v["nnumericdata"], v["ntextdata"], v["ntupledata"] = len(v["numeric_data"]), len(v["text_data"]), len(members)


def key_tables(draft: Draft) -> None:
    """Fill key_* fields; missing arrays of a keyframe are those of the initial state."""
    v, keys = draft.values, draft.lists.key
    mocap = [b for b in draft.lists.body if b.mocap]
    rest = {
        "qpos": v["qpos0"].tolist(),
        "qvel": [0.0] * v["nv"],
        "act": [0.0] * v["na"],
        "ctrl": [0.0] * len(draft.lists.actuator),
        "mpos": [x for b in mocap for x in b.pos],
        "mquat": [x for b in mocap for x in b.quat],
    }
    first = quat_address(np.array([j.type for j in draft.lists.joint], int), v["jnt_qposadr"])
    quats = first[first >= 0].tolist()
    for name, default in rest.items():
        rows = [_row(key, name, default) for key in keys]
        for row in rows:
            for at in quats if name == "qpos" else ():
                row[at : at + 4] = _unit_quat(row[at : at + 4])
            for at in range(0, len(default), 4) if name == "mquat" else ():
                row[at : at + 4] = normalize(row[at : at + 4])[0]
        v[f"key_{name}"] = np.array(rows, np.float64).reshape(len(keys), len(default))


def _row(key: DraftObject, name: str, default: list[float]) -> list[float]:
    """Return one array of a keyframe.

    NaN, which macros write for missing entries, becomes the initial state's value.
    """
    value = key.attrs.get(name)
    if value is None or len(value) == 0:
        return list(default)
    if len(value) != len(default):
        raise key.error(f"'{name}' has {len(value)} numbers; the model has {len(default)}")
    return [rest if math.isnan(x) else float(x) for x, rest in zip(value, default, strict=True)]


def _unit_quat(quat: list[float]) -> list[float]:
    length = math.sqrt(sum(x * x for x in quat))
    return [1.0, 0.0, 0.0, 0.0] if length < MINVAL else [x / length for x in quat]
