"""Comparison of a model of ours with MuJoCo's, field by field, names of what differs in the message."""

import os

import mujoco
import numpy as np

import jaxsim
from jaxsim.compiler import compile_spec
from jaxsim.core.model import MODEL_FIELDS, SIZES
from jaxsim.core.option import OPTION_FLOATS, OPTION_INTS, OWN_OPTIONS, STATISTICS
from jaxsim.core.visual import visual_fields
from jaxsim.io.archive import read_archive, save_model
from jaxsim.mjcf import read

ABSOLUTE, RELATIVE = 1e-9, 1e-6


def _same(ours, theirs) -> bool:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        return False
    if ours.dtype.kind == "f" or theirs.dtype.kind == "f":
        return np.allclose(ours.astype(np.float64), theirs.astype(np.float64), RELATIVE, ABSOLUTE, equal_nan=True)
    return np.array_equal(ours, theirs)


def _array(value) -> np.ndarray:
    return np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)


def model_differences(ours, mj_model) -> dict[str, str]:
    """Fields that differ, with a short account of how."""
    out = {}
    for name in SIZES:
        if getattr(ours, name) != getattr(mj_model, name):
            out[name] = f"{getattr(ours, name)} != {getattr(mj_model, name)}"
    for name, *_ in MODEL_FIELDS:
        a, b = _array(getattr(ours, name)), _array(getattr(mj_model, name))
        if a.size == b.size:
            b = b.reshape(a.shape)
        if not _same(a, b):
            out[name] = _account(a, b)
    for group, names in (("opt", (*OPTION_FLOATS, *OPTION_INTS)), ("stat", STATISTICS)):
        for name in (n for n in names if n not in OWN_OPTIONS):
            a, b = getattr(getattr(ours, group), name), getattr(getattr(mj_model, group), name)
            if not _same(a, b):
                out[f"{group}.{name}"] = f"{a} != {b}"
    for group, field in visual_fields():
        name = field.name
        a, b = getattr(getattr(ours.vis, group), name), getattr(getattr(mj_model.vis, group), name)
        if np.size(b) and not _same(a, b):  # the bindings give vis.rgba.bv and bvactive as empty arrays
            out[f"vis.{group}.{name}"] = f"{a} != {b}"
    return out


def saved_differences(spec, mj_model, path, flat=False) -> dict[str, str]:
    """Fields in which a spec, saved to a path and compiled here or by MuJoCo, differs from the reference's model."""
    text = jaxsim.save_mjcf(spec, path, flat)
    again = compile_spec(read(os.fspath(path), spec.assets))
    out = {f"ours: {k}": v for k, v in model_differences(again, mj_model).items() if not _placed(k)}
    theirs = mujoco.MjModel.from_xml_path(os.fspath(path), dict(spec.assets))
    out |= {f"theirs: {k}": v for k, v in model_differences(again, theirs).items()}
    if jaxsim.save_mjcf(read(os.fspath(path), spec.assets), path) != text:
        out["text"] = "is another when saved again"
    return out


def _placed(name: str) -> bool:
    """Whether a field holds names of files, which depend on where the model lies."""
    return name in ("paths", "npaths") or name.endswith("_pathadr")


def archive_differences(m, path) -> dict[str, str]:
    """Fields of a compiled model that are not bit for bit what they were, after it was written and read."""
    save_model(m, path)
    again = read_archive(path)
    names = [*SIZES, *(name for name, *_ in MODEL_FIELDS)]
    pairs = {name: (getattr(m, name), getattr(again, name)) for name in names}
    for group in ("opt", "stat"):
        a, b = getattr(m, group), getattr(again, group)
        keys = (*OPTION_FLOATS, *OPTION_INTS) if group == "opt" else STATISTICS
        pairs |= {f"{group}.{name}": (getattr(a, name), getattr(b, name)) for name in keys}
    out = {k: f"{a} != {b}" for k, (a, b) in pairs.items() if not _identical(a, b)}
    return out | ({} if m.vis == again.vis else {"vis": "differs"})


def _identical(a, b) -> bool:
    if isinstance(a, bytes) or isinstance(b, bytes):
        return a == b
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _account(a: np.ndarray, b: np.ndarray) -> str:
    if a.shape != b.shape:
        return f"shape {a.shape} != {b.shape}"
    if a.dtype.kind == "f":
        bad = ~np.isclose(a, b, RELATIVE, ABSOLUTE, equal_nan=True)
    else:
        bad = a != b
    at = tuple(int(i[0]) for i in np.nonzero(bad))
    return f"{int(bad.sum())} of {bad.size} entries; at {at}: {a[at]} != {b[at]}"


def assert_models_equal(ours, mj_model, ignore=()):
    """Fail with the list of fields that differ."""
    bad = {name: how for name, how in model_differences(ours, mj_model).items() if name not in ignore}
    assert not bad, "\n".join(f"{name}: {how}" for name, how in bad.items())
