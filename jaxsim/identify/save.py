"""Fitted models as MJCF, with intervals as comments."""

import os
from pathlib import Path
from typing import Any

import numpy as np

import jaxsim
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import FLOATS, Model
from jaxsim.mjcf.reader import read
from jaxsim.mjcf.spec import Element, Spec

# prefix of the fields -> their names, and the attributes of the element that has the row where they are other words
ATTRIBUTES = {
    "jnt": "stiffness solref=solreflimit solimp=solimplimit margin",
    "dof": "damping armature frictionloss solref=solreffriction solimp=solimpfriction",
    "geom": "friction solref solimp margin gap size pos quat",
    "pair": "friction solref solreffriction solimp margin gap",
    "body": "pos quat",
    "actuator": "gainprm biasprm dynprm gear forcerange ctrlrange",
}
INERTIAL = {"body_mass": "mass", "body_ipos": "pos", "body_iquat": "quat", "body_inertia": "diaginertia"}
OPTION = ("timestep", "gravity", "impratio", "density", "viscosity", "wind", "o_margin", "o_solref", "o_solimp",
          "o_friction")  # fmt: skip
FROM_SHAPES = ("dof_length", "geom_rbound", "geom_aabb")  # derived from sizes anew when the text is compiled
SAME = 1e-5  # relative difference of what is read back
DIGITS = 10


def save_mjcf(fit: Any, path: str | os.PathLike) -> str:
    """Write the fitted model as MJCF, which MuJoCo loads as well, and return the text.

    Macros are expanded and every element lists its attributes. Comments at the top give values and intervals of the
    parameters.

    Raises UnsupportedError if MJCF text cannot express the fitted model: a changed field that this function does not
    write, a delay of a control, a controller in the loop.
    """
    lost = [label for p in fit.problem.parameters for label in p.labels if p.kind in ("ctrl_delay", "controller")]
    if lost:
        raise UnsupportedError(
            f"MJCF text of {', '.join(lost)}: write the controller or its delay into the model. (MJCF's own `delay` "
            "of an actuator begins with controls of zero, where a recording begins with those of its first row.)"
        )
    text = jaxsim.save_mjcf(written(fit.problem.m, fit.m))
    rows = [f"  <!-- {label} = {fit.values[i]:.6g}, 95 %: {fit.interval_text(i)} -->" for i, label in
            enumerate(fit.labels)]  # fmt: skip
    head, body = text.split("\n", 1)
    text = "\n".join([head, *rows, body])
    Path(path).write_text(text, encoding="utf-8")
    return text


def written(before: Model, m: Model) -> Spec:
    """Write the flat spec of a model whose numbers changed since it was compiled: `before` has those of its spec."""
    spec = read(jaxsim.save_mjcf(before, flat=True))
    for name in OPTION:
        value = np.asarray(getattr(m.opt, name), float)
        if not np.array_equal(value, np.asarray(getattr(before.opt, name), float)):
            spec.section("option").set(**{name: rounded(value)})
    changed = [name for name in FLOATS if _differ(getattr(m, name), getattr(before, name), 0.0)]
    joints = [e for e in spec.elements("joint") if e.tag in ("joint", "freejoint")]
    bodies = [e for e in spec.elements("body") if e.tag == "body"]
    elements = {kind: list(spec.elements(kind)) for kind in ("geom", "pair", "actuator")}
    elements |= {"jnt": joints, "dof": joints, "body": bodies}
    rows = {"dof": m.jnt_dofadr, "body": slice(1, None)}
    for prefix, words in ATTRIBUTES.items():
        for word in words.split():
            name, _, attribute = word.partition("=")
            field = f"{prefix}_{name}"
            if field in changed:
                value, old = (np.asarray(getattr(x, field), float)[rows.get(prefix, ...)] for x in (m, before))
                _write(elements[prefix], attribute or name, value, old)
    inertias = [name for name in changed if name in INERTIAL]
    for i, body in enumerate(bodies, 1):
        if any(not np.array_equal(getattr(m, name)[i], getattr(before, name)[i]) for name in inertias):
            numbers = {INERTIAL[name]: rounded(np.asarray(getattr(m, name), float)[i]) for name in INERTIAL}
            (body.child("inertial") or body.add("inertial")).set(**numbers, fullinertia=None)
    back = jaxsim.load_model(jaxsim.save_mjcf(spec))
    lost = [
        name for name in changed if name not in FROM_SHAPES and _differ(getattr(back, name), getattr(m, name), SAME)
    ]
    if lost:
        raise UnsupportedError(f"MJCF text of a model with other numbers in {', '.join(lost)}; use jaxsim.save_model")
    return spec


def rounded(value: Any) -> Any:
    """Round numbers to `DIGITS` significant digits, as a list or a float."""
    flat = [float(f"{x:.{DIGITS}g}") for x in np.ravel(value)]
    return flat if np.ndim(value) else flat[0]


def _write(elements: list[Element], attribute: str, rows: np.ndarray, before: np.ndarray) -> None:
    """Write an attribute of the elements whose rows changed, as many numbers as stood there."""
    if len(elements) != len(rows):
        raise UnsupportedError(f"MJCF text of {attribute!r}: elements of the spec are not those of the model")
    for element, row, old in zip(elements, rows, before, strict=True):
        if not np.array_equal(row, old):
            stood = element.get(attribute)
            size = np.size(row) if stood is None else np.size(stood)
            element.set(**{attribute: rounded(np.ravel(row)[:size] if np.ndim(row) else row)})


def _differ(a: Any, b: Any, share: float) -> bool:
    """Whether arrays differ by more than a share of the size of their entries."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    if a.shape != b.shape:
        return True
    return not np.allclose(a, b, rtol=share, atol=share * np.abs(b).max(initial=0), equal_nan=True)
