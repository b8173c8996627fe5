"""Comparison of a model of ours with MuJoCo's, field by field, names of what differs in the message."""

import numpy as np

from jaxsim import fields
from jaxsim.model import MODEL_FIELDS, OPTION_FLOATS, OPTION_INTS, SIZES, Statistic

ABSOLUTE, RELATIVE = 1e-9, 1e-6


def _same(ours, theirs) -> bool:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        return False
    if ours.dtype.kind == "f" or theirs.dtype.kind == "f":
        return np.allclose(ours.astype(np.float64), theirs.astype(np.float64), RELATIVE, ABSOLUTE, equal_nan=True)
    return np.array_equal(ours, theirs)


def _theirs(mj_model, name):
    value = getattr(mj_model, name)
    return np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)


def model_differences(ours, mj_model) -> dict[str, str]:
    """Fields that differ, with a short account of how."""
    out = {}
    for name in SIZES:
        if getattr(ours, name) != getattr(mj_model, name):
            out[name] = f"{getattr(ours, name)} != {getattr(mj_model, name)}"
    for name, *_ in MODEL_FIELDS:
        a, b = np.asarray(getattr(ours, name)), _theirs(mj_model, name)
        if a.size == b.size:
            b = b.reshape(a.shape)
        if not _same(a, b):
            out[name] = _account(a, b)
    for group, names in (("opt", (*OPTION_FLOATS, *OPTION_INTS)), ("stat", Statistic._fields)):
        for name in (n for n in names if n != "medium"):  # an option of our own
            a, b = getattr(getattr(ours, group), name), getattr(getattr(mj_model, group), name)
            if not _same(a, b):
                out[f"{group}.{name}"] = f"{a} != {b}"
    for line in fields.VISUAL.strip().splitlines():
        group, name, *_ = line.split()
        group = "global_" if group == "global" else group
        a, b = getattr(getattr(ours.vis, group), name), getattr(getattr(mj_model.vis, group), name)
        if np.size(b) and not _same(a, b):  # the bindings give vis.rgba.bv and bvactive as empty arrays
            out[f"vis.{group}.{name}"] = f"{a} != {b}"
    return out


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
